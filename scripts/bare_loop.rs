//! A server that does the least that a server can do, for comparison with marketd.
//!
//!     cargo run --release --example bare_loop -- quote=quote.bytes health=health.bytes
//!
//! It has one listener for each file, and answers each blank line that arrives there with the bytes
//! of that file, including the head. It parses nothing, looks nothing up, and keeps neither
//! deadlines nor counts. Its system calls are those of marketd: the same socket options, one shared
//! buffer, a short read as the sign that all is read, a first read before a connection is watched,
//! one send for a whole batch. If the file has `Connection: close`, an answer ends its connection.

#[path = "../src/net/sockopt.rs"]
mod sockopt;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

/// As in marketd's `net`: the listener's queue, the shared buffer, events and accepts of a turn.
const BACKLOG: i32 = 4096;
const READ_BUFFER: usize = 64 * 1024;
const EVENTS: usize = 128;
const ACCEPTS: usize = 32;

/// Bytes of prepared answers in a row, so that a batch of them is one send. marketd has at most
/// this many pending for one connection.
const READY: usize = 64 * 1024;

/// Tokens below this one are listeners.
const CONNECTIONS: usize = 1024;

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() || files.len() > CONNECTIONS {
        eprintln!(
            "bare_loop NAME=FILE...    files of whole answers, each served on a port of its own"
        );
        return ExitCode::from(2);
    }
    let run = Loop::new(&files).and_then(Loop::run);
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bare_loop: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A listener and its answer.
struct Service {
    listener: TcpListener,
    /// More connections may be waiting.
    ready: bool,
    /// As many answers as fit into `READY`, or one.
    answers: Vec<u8>,
    /// Bytes of one answer.
    length: usize,
    closes: bool,
}

struct Connection {
    stream: TcpStream,
    service: usize,
    /// Bytes of a blank line that the last read ended with: 0 to 3.
    matched: usize,
    /// The position of the next byte within an answer.
    at: usize,
    /// Bytes that are still to be sent.
    owed: usize,
    readable: bool,
    writable: bool,
    read_closed: bool,
}

struct Loop {
    poll: Poll,
    services: Vec<Service>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Box<[u8]>,
}

impl Loop {
    /// Binds a free port for each file, and prints the port: `NAME http://127.0.0.1:PORT`.
    fn new(files: &[String]) -> io::Result<Loop> {
        let poll = Poll::new()?;
        let mut services = Vec::new();
        for (place, file) in files.iter().enumerate() {
            let (name, path) = file.split_once('=').unwrap_or((file, file));
            let answer = std::fs::read(path)?;
            let mut listener = listen()?;
            let registry = poll.registry();
            registry.register(&mut listener, Token(place), Interest::READABLE)?;
            println!("{name} http://{}", listener.local_addr()?);
            let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
            let head = head.split("\r\n\r\n").next().unwrap_or_default();
            services.push(Service {
                listener,
                ready: false,
                length: answer.len(),
                closes: head.contains("\r\nconnection: close"),
                answers: answer.repeat((READY / answer.len().max(1)).max(1)),
            });
        }
        Ok(Loop {
            poll,
            services,
            connections: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        })
    }

    /// Runs until it is killed.
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let waiting = self.services.iter().any(|service| service.ready);
            let timeout = waiting.then_some(std::time::Duration::ZERO);
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error);
            }
            for event in &events {
                let Token(token) = event.token();
                if token < CONNECTIONS {
                    self.services[token].ready = true;
                    continue;
                }
                let place = token - CONNECTIONS;
                let Some(mut connection) = self.connections[place].take() else {
                    continue;
                };
                connection.readable |= event.is_readable() || event.is_read_closed();
                connection.writable |= event.is_writable();
                connection.read_closed |= event.is_read_closed();
                if connection.pump(&self.services, &mut self.buffer) {
                    self.connections[place] = Some(connection);
                } else {
                    self.free.push(place);
                }
            }
            for place in 0..self.services.len() {
                if self.services[place].ready {
                    self.accept(place);
                }
            }
        }
    }

    /// Accepts some connections. Each is answered at once, and watched only if it stays open.
    fn accept(&mut self, service: usize) {
        for _ in 0..ACCEPTS {
            let stream = match self.services[service].listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    self.services[service].ready = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            };
            let mut connection = Connection {
                stream,
                service,
                matched: 0,
                at: 0,
                owed: 0,
                readable: true,
                writable: true,
                read_closed: false,
            };
            if connection.pump(&self.services, &mut self.buffer) {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.connections.push(None);
                    self.connections.len() - 1
                });
                if connection.watch(self.poll.registry(), place).is_ok() {
                    self.connections[place] = Some(connection);
                } else {
                    self.free.push(place);
                }
            }
        }
    }
}

impl Connection {
    fn watch(&mut self, registry: &Registry, place: usize) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut self.stream, Token(CONNECTIONS + place), both)
    }

    /// Reads and answers as much as possible. Returns false if the connection has ended.
    fn pump(&mut self, services: &[Service], buffer: &mut [u8]) -> bool {
        let service = &services[self.service];
        loop {
            if self.owed > 0 && self.writable {
                let end = service.answers.len().min(self.at + self.owed);
                match self.stream.write(&service.answers[self.at..end]) {
                    Ok(count) => {
                        self.owed -= count;
                        self.at = (self.at + count) % service.length;
                        if service.closes && self.owed == 0 {
                            return false;
                        }
                    }
                    Err(error) if is_later(&error) => self.writable = false,
                    Err(_) => return false,
                }
            } else if self.owed == 0 && self.readable {
                match self.stream.read(buffer) {
                    Ok(0) => return false,
                    Ok(count) => {
                        self.readable = count == buffer.len() || self.read_closed;
                        self.owed = service.length * self.blank_lines(&buffer[..count]);
                    }
                    Err(error) if is_later(&error) => self.readable = false,
                    Err(_) => return false,
                }
            } else {
                return true;
            }
        }
    }

    /// The number of blank lines that end in these bytes. They follow the bytes of the last read.
    fn blank_lines(&mut self, bytes: &[u8]) -> usize {
        const BLANK: &[u8; 4] = b"\r\n\r\n";
        let mut found = 0;
        let mut at = 0;
        while at < bytes.len() {
            // If no blank line has begun, three of four bytes need no check.
            if self.matched == 0
                && let Some(byte) = bytes.get(at + 3)
                && !BLANK.contains(byte)
            {
                at += 4;
                continue;
            }
            self.matched = match bytes[at] {
                byte if byte == BLANK[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            at += 1;
            if self.matched == BLANK.len() {
                self.matched = 0;
                found += 1;
            }
        }
        found
    }
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// A listener on a free port of 127.0.0.1, with marketd's options.
fn listen() -> io::Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    sockopt::limit_unsent(&socket);
    sockopt::limit_unacknowledged(&socket, std::time::Duration::from_secs(30));
    sockopt::defer_accept(&socket);
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}
