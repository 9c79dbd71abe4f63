//! A hostile crowd, or the one well-behaved client (scripts/hostile.sh).
//!
//!     hostile crowd --connections 8 --depth 3000 http://127.0.0.1:8080/metrics
//!     hostile probe --ms 2000 http://127.0.0.1:8080/api/v1/quotes/BTC-USDT
//!
//! The crowd sends requests as fast as the server takes them, until it is killed. It sends those of all its
//! addresses in turn, `--depth` at once. It reads the answers, or nothing at all, and replaces each closed
//! connection. The probe sends a request once a millisecond, on one connection, and prints one line of
//! `name=value`: how long it waited, in nanoseconds.

use lexopt::prelude::*;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "hostile crowd|probe [options] http://ADDRESS:PORT/PATH...
    --connections N   of the crowd (default 1)
    --depth N         requests that each sends at once (default 1)
    --deaf            read nothing
    --close           one connection a request
    --method NAME     of the crowd's requests (default GET)
    --header LINE     another header field, as often as you like
    --silent          send nothing at all
    --ms N            how long the probe asks (default 2000)";

/// Time between two requests of the probe.
const PAUSE: Duration = Duration::from_millis(1);

/// After this time without an answer, the probe considers the server dead.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Options {
    is_probe: bool,
    connections: usize,
    depth: usize,
    deaf: bool,
    close: bool,
    silent: bool,
    method: String,
    headers: String,
    span: Duration,
    urls: Vec<String>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("{fault}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let done = match options.is_probe {
        true => probe(&options),
        false => crowd(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("hostile: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// The command line; `None` asks for help.
fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        connections: 1,
        depth: 1,
        method: "GET".to_string(),
        span: Duration::from_secs(2),
        ..Options::default()
    };
    let mut parser = lexopt::Parser::from_env();
    let mut what = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("connections") => options.connections = parser.value()?.parse()?,
            Long("depth") => options.depth = parser.value()?.parse()?,
            Long("deaf") => options.deaf = true,
            Long("close") => options.close = true,
            Long("silent") => options.silent = true,
            Long("method") => options.method = parser.value()?.string()?,
            Long("header") => options.headers += &format!("{}\r\n", parser.value()?.string()?),
            Long("ms") => options.span = Duration::from_millis(parser.value()?.parse()?),
            Long("help") | Short('h') => return Ok(None),
            Value(word) if what.is_none() => what = Some(word.string()?),
            Value(url) => options.urls.push(url.string()?),
            other => return Err(other.unexpected()),
        }
    }
    options.is_probe = match what.as_deref() {
        Some("probe") => true,
        Some("crowd") => false,
        _ => return Err("crowd or probe?".into()),
    };
    if options.urls.is_empty() || options.depth == 0 {
        return Err("an address and at least one request are needed".into());
    }
    Ok(Some(options))
}

/// The address of a URL, and its path.
fn parts(url: &str) -> Result<(SocketAddr, &str), String> {
    let rest = url.strip_prefix("http://").ok_or("http:// is missing")?;
    let (host, path) = rest.split_once('/').ok_or("the path is missing")?;
    let address = host.parse().map_err(|_| format!("{host} is no address"))?;
    Ok((address, path))
}

fn told(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// One connection of the crowd.
struct Peer {
    stream: TcpStream,
    /// How many bytes of the batch are sent.
    sent: usize,
    is_open: bool,
}

/// The requests of the crowd, this many at once.
fn batch(options: &Options) -> Result<(SocketAddr, Vec<u8>), String> {
    let mut all = String::new();
    let mut address = None;
    let close = if options.close { "Connection: close\r\n" } else { "" };
    for number in 0..options.depth.max(options.urls.len()) {
        let (host, path) = parts(&options.urls[number % options.urls.len()])?;
        address = Some(host);
        let (method, headers) = (&options.method, &options.headers);
        all += &format!("{method} /{path} HTTP/1.1\r\nHost: h\r\n{headers}{close}\r\n");
    }
    Ok((address.expect("there is one"), all.into_bytes()))
}

fn crowd(options: &Options) -> Result<(), String> {
    let (address, batch) = batch(options)?;
    let mut poll = Poll::new().map_err(told("cannot create a poller"))?;
    let mut peers: Vec<Option<Peer>> = Vec::new();
    peers.resize_with(options.connections, || None);
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        for (place, peer) in peers.iter_mut().enumerate() {
            if peer.as_ref().is_none_or(|peer| !peer.is_open) {
                *peer = connect(&poll, address, place).ok();
            }
        }
        let waited = poll.poll(&mut events, Some(Duration::from_millis(20)));
        if let Err(error) = waited
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(told("cannot wait")(error));
        }
        for event in &events {
            let Token(place) = event.token();
            let Some(peer) = &mut peers[place] else {
                continue;
            };
            if !options.silent {
                peer.send(&batch, options.close);
            }
            if !options.deaf {
                peer.read(&mut buffer);
                if !options.silent {
                    peer.send(&batch, options.close);
                }
            }
        }
    }
}

fn connect(poll: &Poll, address: SocketAddr, place: usize) -> io::Result<Peer> {
    let mut stream = TcpStream::connect(address)?;
    let both = Interest::READABLE | Interest::WRITABLE;
    poll.registry().register(&mut stream, Token(place), both)?;
    Ok(Peer { stream, sent: 0, is_open: true })
}

impl Peer {
    /// Sends as much as the kernel takes: the batch again and again, or only once if so configured.
    fn send(&mut self, batch: &[u8], once: bool) {
        // Only a few times at once, so that the others have their turn.
        for _ in 0..4 {
            if once && self.sent == batch.len() {
                return;
            }
            match self.stream.write(&batch[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) => {
                    self.is_open &= is_later(&error);
                    return;
                }
            }
            if !once && self.sent == batch.len() {
                self.sent = 0;
            }
        }
    }

    /// Reads until there is nothing more: the end of a connection may cause no further event.
    fn read(&mut self, buffer: &mut [u8]) {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => self.is_open = false,
                Ok(_) => continue,
                Err(error) => self.is_open &= is_later(&error),
            }
            return;
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    let later = [ErrorKind::WouldBlock, ErrorKind::NotConnected, ErrorKind::Interrupted];
    later.contains(&error.kind())
}

/// Sends requests again and again, and prints how long the answers took.
fn probe(options: &Options) -> Result<(), String> {
    let (address, path) = parts(&options.urls[0])?;
    let mut stream =
        std::net::TcpStream::connect_timeout(&address, PATIENCE).map_err(told("cannot connect"))?;
    stream.set_nodelay(true).map_err(told("TCP_NODELAY"))?;
    (stream.set_read_timeout(Some(PATIENCE))).map_err(told("a timeout"))?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes();
    let mut took = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let begin = Instant::now();
    while begin.elapsed() < options.span || took.is_empty() {
        let asked = Instant::now();
        ask(&mut stream, &request, &mut buffer)?;
        took.push(asked.elapsed());
        std::thread::sleep(PAUSE);
    }
    took.sort();
    let within = |per_mille: usize| {
        let rank = (took.len() * per_mille).div_ceil(1000);
        took[rank.saturating_sub(1)].as_nanos()
    };
    println!(
        "requests={} p50={} p99={} p999={} max={}",
        took.len(),
        within(500),
        within(990),
        within(999),
        within(1000)
    );
    Ok(())
}

/// One request and its whole answer, which is a 200 with a length.
fn ask(stream: &mut impl Io, request: &[u8], buffer: &mut [u8]) -> Result<(), String> {
    stream.write_all(request).map_err(told("cannot send"))?;
    let mut got = 0;
    loop {
        let count = stream.read(&mut buffer[got..]).map_err(told("no answer"))?;
        got += count;
        let text = String::from_utf8_lossy(&buffer[..got]);
        if count == 0 || !"HTTP/1.1 200".starts_with(&text[..text.len().min(12)]) {
            return Err(format!("not a 200: {}", &text[..text.len().min(200)]));
        }
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("Content-Length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        if body.len() >= length.ok_or("an answer without a length")? {
            return Ok(());
        }
    }
}

/// A connection that blocks.
trait Io: Read + Write {}
impl<T: Read + Write> Io for T {}
