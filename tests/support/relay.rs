//! A relay between a client and a server of any protocol, whose faults a test orders while it runs; or a proxy
//! that opens tunnels, with the same faults.
//!
//! It owns a listening port and two connections for each client. It never sleeps: what is late waits on a
//! condition that every order breaks.

use super::exchange::locked;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A running relay. Its connections end when it is dropped.
pub struct Relay {
    addr: SocketAddr,
    inner: Arc<Inner>,
}

/// How a relay treats what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Passes all of it at once.
    Open,
    /// Delivers what the server says so much later; what the client says passes at once.
    Late(Duration),
    /// Accepts, and delivers nothing in either direction; an order to open delivers it all.
    Held,
    /// The same, but what was open then or is opened meanwhile stays silent for ever: each side takes it for open.
    Lost,
    /// Closes every connection, and each new one at once.
    Cut,
}

struct Inner {
    state: Mutex<State>,
    /// Told of each order.
    ordered: Condvar,
    connections: AtomicUsize,
}

struct State {
    /// `None`: where each client wants to.
    to: Option<SocketAddr>,
    /// Clients so far, and those among them that nothing reaches any more.
    clients: usize,
    lost: usize,
    /// The near ends of the connections to servers.
    near: Vec<SocketAddr>,
    passage: Passage,
    /// The next thing of the client with these bytes in it passes, its reply does not.
    swallow: Option<Vec<u8>>,
    swallowed: usize,
    streams: Vec<TcpStream>,
    is_over: bool,
}

/// Something read, and when.
type Piece = (Instant, Vec<u8>);

impl Relay {
    /// A relay to this place on a free port.
    pub fn start(to: SocketAddr) -> Relay {
        Relay::new(Some(to))
    }

    /// A proxy on a free port, which opens tunnels (CONNECT): whatever host a client names, to that port here.
    pub fn proxy() -> Relay {
        Relay::new(None)
    }

    fn new(to: Option<SocketAddr>) -> Relay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let inner = Arc::new(Inner {
            state: Mutex::new(State {
                to,
                clients: 0,
                lost: 0,
                near: Vec::new(),
                passage: Passage::Open,
                swallow: None,
                swallowed: 0,
                streams: Vec::new(),
                is_over: false,
            }),
            ordered: Condvar::new(),
            connections: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&inner);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if locked(&serving.state).is_over {
                    return;
                }
                let serving = Arc::clone(&serving);
                // Who is not let through sees the end of the connection.
                std::thread::spawn(move || serving.serve(&client));
            }
        });
        Relay { addr, inner }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// Treats all that passes like this from now on.
    pub fn set(&self, passage: Passage) {
        let mut state = locked(&self.inner.state);
        if state.passage == Passage::Lost {
            state.lost = state.clients;
        }
        state.passage = passage;
        if passage == Passage::Cut {
            state.close();
        }
        self.inner.ordered.notify_all();
    }

    /// Lets the next thing with these bytes in it through to the server, takes what comes back, and closes
    /// the connection: the command takes effect and nobody is told.
    pub fn swallow_reply_to(&self, mark: &str) {
        locked(&self.inner.state).swallow = Some(mark.as_bytes().to_vec());
    }

    /// How many replies have been swallowed.
    pub fn swallowed(&self) -> usize {
        locked(&self.inner.state).swallowed
    }

    /// True if it has opened the connection whose one end is this.
    pub fn has_opened(&self, near: SocketAddr) -> bool {
        locked(&self.inner.state).near.contains(&near)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        locked(&self.inner.state).is_over = true;
        self.set(Passage::Cut);
        // The acceptor waits for a connection.
        let _ = TcpStream::connect(self.addr);
    }
}

impl State {
    fn close(&mut self) {
        for stream in self.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Inner {
    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let (to, number) = {
            let mut state = locked(&self.state);
            if state.passage == Passage::Cut {
                return Ok(());
            }
            state.streams.push(client.try_clone()?);
            state.clients += 1;
            (state.to, state.clients)
        };
        let to = to.map_or_else(|| self.wanted(client, number), Ok);
        let server = to.and_then(TcpStream::connect);
        let served = server.and_then(|server| self.serve_both(client, &server, number));
        let _ = client.shutdown(Shutdown::Both);
        served
    }

    /// Where a client wants a tunnel to: it is told that there is one.
    fn wanted(&self, mut client: &TcpStream, number: usize) -> io::Result<SocketAddr> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(read_some(&mut client).ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        self.wait_while(number, |passage| (passage == Passage::Held).then_some(None))?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head);
        let port = head.split(' ').nth(1).and_then(|it| it.rsplit_once(':')?.1.parse().ok());
        let port: u16 = port.ok_or(io::ErrorKind::InvalidInput)?;
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }

    fn serve_both(&self, client: &TcpStream, server: &TcpStream, number: usize) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        {
            let mut state = locked(&self.state);
            state.streams.push(server.try_clone()?);
            state.near.push(server.local_addr()?);
        }
        let is_swallowed = &Mutex::new(false);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = self.carry_requests((client, number), server, is_swallowed);
                let _ = server.shutdown(Shutdown::Both);
            });
            scope.spawn(move || {
                let _ = self.carry_replies(&receiver, (client, number), is_swallowed);
                let _ = client.shutdown(Shutdown::Both);
                let _ = server.shutdown(Shutdown::Both);
            });
            let mut from = server;
            while let Some(bytes) = read_some(&mut from) {
                if sender.send((Instant::now(), bytes)).is_err() {
                    break;
                }
            }
            drop(sender);
        });
        Ok(())
    }

    fn carry_requests(
        &self,
        (mut client, number): (&TcpStream, usize),
        mut server: &TcpStream,
        is_swallowed: &Mutex<bool>,
    ) -> io::Result<()> {
        while let Some(bytes) = read_some(&mut client) {
            self.wait_while(number, |passage| (passage == Passage::Held).then_some(None))?;
            let mut state = locked(&self.state);
            let marked = |mark: &Vec<u8>| memchr::memmem::find(&bytes, mark).is_some();
            if state.swallow.as_ref().is_some_and(marked) {
                state.swallow = None;
                *locked(is_swallowed) = true;
            }
            drop(state);
            server.write_all(&bytes)?;
        }
        Ok(())
    }

    fn carry_replies(
        &self,
        pieces: &Receiver<Piece>,
        (mut client, number): (&TcpStream, usize),
        is_swallowed: &Mutex<bool>,
    ) -> io::Result<()> {
        while let Ok((at, bytes)) = pieces.recv() {
            self.wait_while(number, |passage| match passage {
                Passage::Held => Some(None),
                Passage::Late(by) => {
                    let left = (at + by).saturating_duration_since(Instant::now());
                    (!left.is_zero()).then_some(Some(left))
                }
                _ => None,
            })?;
            if *locked(is_swallowed) {
                locked(&self.state).swallowed += 1;
                return Ok(());
            }
            client.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Waits as long as `held` says so: for that time, or for the next order; for ever if this client is lost. An
    /// error once it is cut.
    fn wait_while(
        &self,
        number: usize,
        held: impl Fn(Passage) -> Option<Option<Duration>>,
    ) -> io::Result<()> {
        let mut state = locked(&self.state);
        loop {
            if state.passage == Passage::Cut {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let poisoned = "nobody panics with the state in hand";
            let is_lost = state.passage == Passage::Lost || number <= state.lost;
            state = match if is_lost { Some(None) } else { held(state.passage) } {
                None => return Ok(()),
                Some(None) => self.ordered.wait(state).expect(poisoned),
                Some(Some(span)) => self.ordered.wait_timeout(state, span).expect(poisoned).0,
            };
        }
    }
}

fn read_some(stream: &mut &TcpStream) -> Option<Vec<u8>> {
    let mut room = vec![0; 64 * 1024];
    match stream.read(&mut room) {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            room.truncate(count);
            Some(room)
        }
    }
}
