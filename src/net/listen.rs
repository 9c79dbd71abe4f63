//! The listening sockets: how they are bound, and how many connections one turn takes from them.
//!
//! Owns each listener and whether more may wait in its queue. It never spins: when the process
//! is out of descriptors, it rests until a deadline.

use super::RunError;
use crate::config::{Config, Url};
use crate::core::Service;
use crate::log_targets::HTTP;
use crate::time::Mono;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Connections that the kernel may hold for us between two turns; the kernel clips it to
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Rest after the process or the machine has run out of descriptors or memory for sockets.
const REST: Duration = Duration::from_millis(100);

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// What its clients are served.
    pub service: Service,
    /// Whether more connections may be waiting.
    pub ready: bool,
    /// Until when it rests.
    pub resting: Option<Mono>,
    exhausted: bool,
}

/// What one try to accept came to.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, and where it comes from.
    Stream(TcpStream, IpAddr),
    /// The queue is empty.
    Drained,
    /// A connection that had died while it waited, or the like: try again.
    Lost,
    /// No descriptor or memory: the listener rests.
    Exhausted(io::Error),
}

impl Listener {
    /// Binds and listens. Port 0 picks a free one.
    pub fn bind(address: SocketAddr, service: Service) -> io::Result<Listener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM.nonblocking(),
            Some(Protocol::TCP),
        )?;
        // A restart must not wait for the connections of the last run to be forgotten.
        socket.set_reuse_address(true)?;
        // Accepted sockets inherit it: an answer is one write and is not to wait for more.
        socket.set_tcp_nodelay(true)?;
        super::sockopt::limit_unsent(&socket);
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Listener {
            socket: TcpListener::from_std(socket.into()),
            service,
            ready: false,
            resting: None,
            exhausted: false,
        })
    }

    /// The address that it is really bound to.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes one connection from the queue.
    pub fn accept(&mut self, now: Mono) -> Accepted {
        match self.socket.accept() {
            Ok((stream, peer)) => {
                if std::mem::take(&mut self.exhausted) {
                    log::info!(target: HTTP, "connections are accepted again");
                }
                Accepted::Stream(stream, peer.ip())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.ready = false;
                Accepted::Drained
            }
            Err(error) if is_exhaustion(&error) => {
                self.resting = Some(now + REST);
                Accepted::Exhausted(error)
            }
            // accept(2), "Error handling": pending network errors of the new connection are
            // passed on, and should be treated like "try again".
            Err(_) => Accepted::Lost,
        }
    }

    /// Says once that it had to rest; that connections come again, says `accept`.
    pub fn complain(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.exhausted, true) {
            log::warn!(target: HTTP, "cannot accept connections: {error}; trying again every {REST:?}");
        }
    }

    /// Whether it may be asked for connections now.
    pub fn is_due(&mut self, now: Mono) -> bool {
        if self.resting.is_some_and(|until| now >= until) {
            self.resting = None;
        }
        self.ready && self.resting.is_none()
    }
}

/// EMFILE, ENFILE, ENOBUFS and ENOMEM: trying again at once would find the same.
fn is_exhaustion(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(
        error.raw_os_error(),
        Some(ENOMEM | ENFILE | EMFILE | ENOBUFS)
    )
}

/// Binds every listener that the configuration asks for, the demo exchange's among them, and
/// tells its source where that is. Their tokens count down from `first_token`.
pub fn bind_all(
    config: &mut Config,
    registry: &Registry,
    first_token: usize,
) -> Result<Vec<Listener>, RunError> {
    let mut wanted = Vec::new();
    match config.ecosystem_listen {
        Some(address) => {
            wanted.push(("listen", config.listen, Service::Api));
            wanted.push(("ecosystemListen", address, Service::Ecosystem));
        }
        None => wanted.push(("listen", config.listen, Service::Both)),
    }
    if config.demo.is_some() {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        wanted.push(("demo", loopback, Service::Demo));
    }
    let mut listeners = Vec::new();
    for (key, address, service) in wanted {
        let fault = |error| RunError::Listen {
            key,
            address,
            error,
        };
        let mut listener = Listener::bind(address, service).map_err(fault)?;
        let token = Token(first_token - listeners.len());
        registry
            .register(&mut listener.socket, token, Interest::READABLE)
            .map_err(fault)?;
        if service == Service::Demo {
            let address = listener.address().map_err(fault)?;
            if let Some(source) = config.demo_source() {
                config.sources[source].url = Some(Url {
                    https: false,
                    host: address.ip().to_string(),
                    port: address.port(),
                    path: String::new(),
                });
            }
        }
        listeners.push(listener);
    }
    Ok(listeners)
}
