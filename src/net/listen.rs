//! The listening sockets.
//!
//! A [`Listener`] knows whether more connections may wait in its queue. It never spins: when the
//! process has no descriptor left, it rests until a deadline.

use super::error::RunError;
use crate::config::{Config, Url};
use crate::core::Service;
use crate::log_targets::{HTTP, quoted};
use crate::time::Mono;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Connections that the kernel queues between two turns, at most `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How long a listener rests when there are no descriptors or no memory for sockets.
const REST: Duration = Duration::from_millis(100);

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// The service that its clients reach.
    pub service: Service,
    /// True if more connections may be waiting.
    pub ready: bool,
    /// When its rest ends; `None` if it does not rest.
    pub resting: Option<Mono>,
    /// True after it had to rest, until a connection is accepted again.
    exhausted: bool,
}

/// The result of accepting a connection.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, and the peer's address.
    Stream(TcpStream, IpAddr),
    /// The queue is empty.
    Drained,
    /// An error of the connection itself, which may have ended while it waited: try the next one.
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
        // Without it, a restart would have to wait until connections of the last run time out.
        socket.set_reuse_address(true)?;
        // Accepted sockets inherit it. A response is one write, which TCP would delay to gather more.
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

    /// The address that it is bound to.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes one connection from the queue.
    pub fn accept(&mut self, now: Mono) -> Accepted {
        match self.socket.accept() {
            Ok((stream, peer)) => {
                if std::mem::take(&mut self.exhausted) {
                    log::info!(target: HTTP, "accept works again");
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
            // Linux reports pending network errors of the new connection here (accept(2), "Error
            // handling").
            Err(_) => Accepted::Lost,
        }
    }

    /// Logs once that it has to rest. `accept` logs when connections are accepted again.
    pub fn log_exhaustion(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.exhausted, true) {
            let retry_ms = REST.as_millis();
            log::warn!(target: HTTP, "accept failed retry_ms={retry_ms} error={}", quoted(error));
        }
    }

    /// True if `accept` may be called now.
    pub fn is_due(&mut self, now: Mono) -> bool {
        if self.resting.is_some_and(|until| now >= until) {
            self.resting = None;
        }
        self.ready && self.resting.is_none()
    }
}

/// True if there are no descriptors or no memory for sockets. Trying again at once would fail again.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// Binds every listener of the configuration, that of the demo exchange included, and sets the URL of
/// the demo source to it. Their tokens count down from `first_token`.
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
