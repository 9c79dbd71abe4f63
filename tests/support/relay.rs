//! A relay between a client and a server of any protocol, whose faults a test orders while it runs; or a proxy
//! that opens tunnels, with the same faults. And peers that are no server: one that says what it is told to
//! say, and an address at which nobody is.
//!
//! A relay owns a listening port and two connections for each client. It never sleeps: what is held waits on a
//! condition that every order breaks.

use super::exchange::{bound, locked};
use super::message::{field, parse_head};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

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

/// One question for a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// `HOST:PORT`
    pub target: String,
    /// Of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

/// What a proxy answers whoever does not send this `Proxy-Authorization`; without one, everybody.
pub type Refusal = (Option<&'static str>, &'static [u8]);

struct Inner {
    is_proxy: bool,
    state: Mutex<State>,
    /// Told of each order.
    ordered: Condvar,
    connections: AtomicUsize,
}

struct State {
    /// `None`: to the port that each client names, here.
    to: Option<SocketAddr>,
    refusal: Option<Refusal>,
    asked: Vec<Connect>,
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
        Relay::new(false, Some(to))
    }

    /// A proxy on a free port, which opens tunnels (CONNECT): whatever host a client names, to that port here.
    pub fn proxy() -> Relay {
        Relay::new(true, None)
    }

    /// The same, to this place.
    pub fn proxy_to(to: SocketAddr) -> Relay {
        Relay::new(true, Some(to))
    }

    fn new(is_proxy: bool, to: Option<SocketAddr>) -> Relay {
        let inner = Arc::new(Inner {
            is_proxy,
            state: Mutex::new(State {
                to,
                refusal: None,
                asked: Vec::new(),
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

    /// As a proxy, answers this in place of a tunnel from now on.
    pub fn refuse(&self, refusal: Option<Refusal>) {
        locked(&self.inner.state).refusal = refusal;
    }

    /// What it was asked as a proxy so far.
    pub fn asked(&self) -> Vec<Connect> {
        locked(&self.inner.state).asked.clone()
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
        let to = if self.is_proxy { self.wanted(client, number, to) } else { to };
        let server = TcpStream::connect(to.ok_or(io::ErrorKind::PermissionDenied)?)?;
        self.serve_both(client, &server, number)
    }

    /// Where a tunnel leads that a client asks for; it is told that there is one. `None`: there is none.
    fn wanted(
        &self,
        mut client: &TcpStream,
        number: usize,
        to: Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        let mut inbox = Vec::new();
        let head = loop {
            inbox.extend(read_some(&mut client)?);
            if let Some((head, _)) = parse_head(&inbox).ok()? {
                break head;
            }
        };
        let target = head.first_line.strip_prefix("CONNECT ")?.split(' ').next()?.to_string();
        let port: u16 = target.rsplit_once(':')?.1.parse().ok()?;
        let authorization = field(&head.fields, "Proxy-Authorization").map(str::to_string);
        locked(&self.state).asked.push(Connect { target, authorization: authorization.clone() });
        self.wait_to_pass(number).ok()?;
        let refusal = locked(&self.state).refusal;
        if let Some((but, answer)) = refusal
            && (but.is_none() || but != authorization.as_deref())
        {
            let _ = client.write_all(answer);
            return None;
        }
        let answer = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n";
        client.write_all(answer).ok()?;
        to.or(Some((Ipv4Addr::LOCALHOST, port).into()))
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

/// A peer that accepts, waits for the first bytes, answers `says`, and then closes or says no
/// more. It lives as long as the test's process.
pub fn peer(says: &'static [u8], closes: bool) -> SocketAddr {
    serve_each(move |mut stream: &TcpStream| {
        let mut room = [0; 4096];
        let heard = stream.read(&mut room);
        if heard.is_ok_and(|count| count > 0) && stream.write_all(says).is_ok() && !closes {
            while stream.read(&mut room).is_ok_and(|count| count > 0) {}
        }
    })
}

/// An address at which nobody answers, nor refuses: a listener whose queue is full (Linux drops
/// what more comes then).
pub struct BlackHole {
    addr: SocketAddr,
    _listener: Socket,
    _queued: Vec<TcpStream>,
}

impl BlackHole {
    /// Fills the queue of a fresh port.
    pub fn new() -> BlackHole {
        let listener = bound((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        listener.listen(0).expect("a bound socket listens");
        let addr = listener.local_addr().ok().and_then(|addr| addr.as_socket());
        let addr = addr.expect("it is bound");
        // On the loopback a connection stands at once, or never.
        let connect = |_| TcpStream::connect_timeout(&addr, Duration::from_millis(250)).ok();
        let queued: Vec<TcpStream> = (0..16).map_while(connect).collect();
        assert!(queued.len() < 16, "the queue has no end");
        BlackHole { addr, _listener: listener, _queued: queued }
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Serves every connection to a fresh port in a thread of its own, for as long as the test's process lives.
pub fn serve_each(serve: impl Fn(&TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let addr = listener.local_addr().expect("it is bound");
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || {
                serve(&stream);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    });
    addr
}
