//! A proxy that opens tunnels, a peer that says what it is told to say, and an address at which
//! nobody is.

use super::exchange::locked;
use super::message::{field, parse_head};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A running proxy (CONNECT). Its tunnels end when this is dropped.
pub struct Proxy {
    addr: SocketAddr,
    inner: Arc<Inner>,
}

/// What a proxy does with those who ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Opens tunnels.
    Open,
    /// Opens tunnels to whoever sends this `Proxy-Authorization`; 407 to all others.
    OpenTo(String),
    /// Answers this.
    Answer(Vec<u8>),
    /// Takes the question and closes.
    Close,
    /// Takes the question and says nothing.
    Stall,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// `HOST:PORT`
    pub target: String,
    /// Of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

struct Inner {
    /// Where names lead: there is no name server here.
    routes: Vec<(String, SocketAddr)>,
    manner: Mutex<Manner>,
    asked: Mutex<Vec<Connect>>,
    streams: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy that knows the way to these places (`HOST:PORT`).
    pub fn start(manner: Manner, routes: &[(&str, SocketAddr)]) -> Proxy {
        let owned = routes.iter().map(|(name, to)| ((*name).to_string(), *to));
        let inner = Arc::new(Inner {
            routes: owned.collect(),
            manner: Mutex::new(manner),
            asked: Mutex::default(),
            streams: Mutex::default(),
        });
        let serving = Arc::clone(&inner);
        let addr = serve_each(move |stream| {
            // Whoever asks in a wrong way is hung up on.
            let _ = serving.serve(stream);
        });
        Proxy { addr, inner }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Connect> {
        locked(&self.inner.asked).clone()
    }

    /// Behaves like this from now on.
    pub fn set(&self, manner: Manner) {
        *locked(&self.inner.manner) = manner;
    }

    /// Ends every tunnel at once.
    pub fn cut(&self) {
        for stream in locked(&self.inner.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Inner {
    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        locked(&self.streams).push(stream.try_clone()?);
        let mut inbox = Vec::new();
        let head = loop {
            match parse_head(&inbox) {
                Ok(Some((head, used))) if used == inbox.len() => break head,
                Ok(None) => {}
                _ => return Ok(()),
            }
            let mut room = [0; 4096];
            match stream.read(&mut room)? {
                0 => return Ok(()),
                count => inbox.extend_from_slice(&room[..count]),
            }
        };
        let mut words = head.first_line.split(' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        let authorization = field(&head.fields, "Proxy-Authorization").map(str::to_string);
        locked(&self.asked)
            .push(Connect { target: target.to_string(), authorization: authorization.clone() });
        let manner = locked(&self.manner).clone();
        match manner {
            _ if method != Some("CONNECT") => {
                return stream.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
            }
            Manner::OpenTo(wanted) if authorization.as_deref() != Some(wanted.as_str()) => {
                let page = b"HTTP/1.1 407 Proxy Authentication Required\r\n\
                    Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 6\r\n\r\nsorry\n";
                return stream.write_all(page);
            }
            Manner::Open | Manner::OpenTo(_) => {}
            Manner::Answer(answer) => return stream.write_all(&answer),
            Manner::Close => return Ok(()),
            Manner::Stall => return stream.read(&mut [0; 1]).map(|_| ()),
        }
        let Some((_, to)) = self.routes.iter().find(|(name, _)| name == target) else {
            return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        };
        let back = TcpStream::connect(to)?;
        locked(&self.streams).push(back.try_clone()?);
        stream.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n")?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = io::copy(&mut { stream }, &mut &back);
                let _ = back.shutdown(Shutdown::Write);
            });
            let _ = io::copy(&mut &back, &mut { stream });
            let _ = stream.shutdown(Shutdown::Both);
        });
        Ok(())
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
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        listener.bind(&any.into()).expect("a port is free");
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

impl Default for BlackHole {
    fn default() -> BlackHole {
        BlackHole::new()
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
