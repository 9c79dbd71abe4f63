//! A relay between a client and a server of any protocol, whose faults a test orders while it runs; or a proxy
//! that opens tunnels, with the same faults.
//!
//! It owns a listening port and two connections for each client. It never sleeps: what is held waits on a
//! condition that every order breaks.

use super::exchange::locked;
use super::proxy::serve_each;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

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
    streams: Vec<TcpStream>,
}

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
        let inner = Arc::new(Inner {
            state: Mutex::new(State {
                to,
                clients: 0,
                lost: 0,
                near: Vec::new(),
                passage: Passage::Open,
                streams: Vec::new(),
            }),
            ordered: Condvar::new(),
            connections: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&inner);
        // Who is not let through sees the end of the connection.
        let addr = serve_each(move |client| _ = serving.serve(client));
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

    /// True if it has opened the connection whose one end is this.
    pub fn has_opened(&self, near: SocketAddr) -> bool {
        locked(&self.inner.state).near.contains(&near)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.set(Passage::Cut);
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
        server.and_then(|server| self.serve_both(client, &server, number))
    }

    /// Where a client wants a tunnel to: it is told that there is one.
    fn wanted(&self, mut client: &TcpStream, number: usize) -> io::Result<SocketAddr> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(read_some(&mut client).ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        self.wait_to_pass(number)?;
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
        std::thread::scope(|scope| {
            scope.spawn(|| self.carry(number, client, server));
            self.carry(number, server, client);
        });
        Ok(())
    }

    /// Delivers what comes from one side to the other, until either ends.
    fn carry(&self, number: usize, mut from: &TcpStream, mut to: &TcpStream) {
        while let Some(bytes) = read_some(&mut from) {
            if self.wait_to_pass(number).and_then(|()| to.write_all(&bytes)).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits while all is held, and for ever if this client is lost. An error once it is cut.
    fn wait_to_pass(&self, number: usize) -> io::Result<()> {
        let is_silent = |state: &mut State| {
            let is_lost = state.passage == Passage::Lost || number <= state.lost;
            state.passage != Passage::Cut && (is_lost || state.passage == Passage::Held)
        };
        let waited = self.ordered.wait_while(locked(&self.state), is_silent);
        match waited.expect("nobody panics with the state in hand").passage {
            Passage::Cut => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
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
