//! The listening sockets, of TCP or Unix, and the file that tells other programs their addresses. Port 0
//! makes such a file necessary.
//!
//! A [`Listener`] knows whether more connections may wait in its queue. It never spins: when it
//! cannot accept, for example because no descriptor is left, it pauses until a deadline.
//!
//! An [`OwnFile`] is the file of a Unix socket, or the file of addresses, and is removed at the end. The file
//! of a socket that a dead process has left is replaced. A file on which a process listens stays. If two
//! processes start at the same moment, both may take the file for a dead one. Then the later process gets it.

use super::sockopt;
use crate::config::{Config, DEMO, ListenAddress, Url};
use crate::core::Service;
use crate::json::json;
use crate::log_targets::{HTTP, quoted};
use crate::time::Mono;
use mio::net::{TcpListener, TcpStream, UnixListener};
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections that the kernel queues between two turns, at most `net.core.somaxconn`.
pub const BACKLOG: i32 = 4096;

/// How long a listener pauses when it cannot accept: for example, no descriptor is left, or another process
/// has shut its socket.
const REST: Duration = Duration::from_millis(100);

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: ListeningSocket,
    /// The address for clients, for the log and the address file.
    pub place: String,
    /// The file of a Unix socket that was bound here.
    _file: Option<OwnFile>,
    /// The service that its clients reach.
    pub service: Service,
    /// True if more connections may be waiting.
    pub ready: bool,
    /// When its pause ends; `None` if it does not pause.
    pub resting: Option<Mono>,
    /// True after a pause, until a connection is accepted again.
    has_failed: bool,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection, and the peer's address. A connection of a Unix socket has none.
type Accepted = (TcpStream, Option<IpAddr>);

impl Listener {
    /// Binds and listens. Port 0 picks a free port.
    pub fn bind(
        address: &ListenAddress,
        service: Service,
        config: &Config,
    ) -> io::Result<Listener> {
        let (socket, file) = match address {
            ListenAddress::Tcp(address) => (bind(*address)?, None),
            ListenAddress::Unix(path) => {
                let (socket, file) = bind_file(path)?;
                (socket, Some(file))
            }
        };
        socket.listen(BACKLOG)?;
        Listener::new(socket, file, service, config)
    }

    /// A listener of this socket, which listens already. With `deferAccept`, the kernel holds a connection
    /// back until its first bytes have come.
    pub fn new(
        socket: Socket,
        file: Option<OwnFile>,
        service: Service,
        config: &Config,
    ) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let (socket, place) = if let Some(address) = address.as_socket() {
            // Accepted sockets inherit these options. A response is one write, which TCP would otherwise
            // delay.
            socket.set_tcp_nodelay(true)?;
            sockopt::limit_unsent(&socket);
            if config.defer_accept {
                sockopt::defer_accept(&socket);
            }
            let socket = ListeningSocket::Tcp(TcpListener::from_std(socket.into()));
            (socket, format!("http://{address}"))
        } else {
            let socket = ListeningSocket::Unix(UnixListener::from_std(socket.into()));
            let path = address.as_pathname().map(|path| path.display().to_string());
            (socket, format!("unix:{}", path.as_deref().unwrap_or("(no file)")))
        };
        let (ready, resting, has_failed) = (false, None, false);
        let listener = Listener { socket, place, _file: file, service, ready, resting, has_failed };
        listener.limit_unacknowledged(config);
        Ok(listener)
    }

    /// Sets how long a client that is accepted from now on may acknowledge nothing. Otherwise a stream whose
    /// reader has vanished would be held until the kernel gives up, a quarter of an hour later: the kernel
    /// takes its few events meanwhile, so they count as written.
    pub fn limit_unacknowledged(&self, config: &Config) {
        if let ListeningSocket::Tcp(socket) = &self.socket {
            sockopt::limit_unacknowledged(socket, config.limits.write_timeout);
        }
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListeningSocket::Tcp(socket) => registry.register(socket, token, Interest::READABLE),
            ListeningSocket::Unix(socket) => registry.register(socket, token, Interest::READABLE),
        }
    }

    /// The URL of the demo exchange, if this is its listener.
    pub fn demo_url(&self) -> Option<Url> {
        if self.service == Service::Demo { Url::parse(&self.place).ok() } else { None }
    }

    /// Takes one connection. A Unix stream is returned as a `TcpStream` too, because the system calls are the
    /// same.
    fn take(&self) -> io::Result<Accepted> {
        match &self.socket {
            ListeningSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                // A socket of both families writes IPv4 addresses as IPv6 ones.
                Ok((stream, Some(peer.ip().to_canonical())))
            }
            ListeningSocket::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                let stream = std::net::TcpStream::from(OwnedFd::from(stream));
                Ok((TcpStream::from_std(stream), None))
            }
        }
    }

    /// Takes one connection from the queue. After `None`, [`Listener::is_due`] tells whether to try again.
    pub fn accept(&mut self, now: Mono) -> Option<Accepted> {
        match self.take() {
            Ok(accepted) => {
                if std::mem::take(&mut self.has_failed) {
                    log::info!(target: HTTP, "accept works again");
                }
                return Some(accepted);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.ready = false,
            // The connection may have ended while it waited. Linux reports its network errors here too
            // (accept(2), "Error handling"). The next connection may be good.
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                self.resting = Some(now + REST);
                if !std::mem::replace(&mut self.has_failed, true) {
                    let retry_ms = REST.as_millis();
                    log::warn!(target: HTTP, "accept failed retry_ms={retry_ms} error={}", quoted(error));
                }
            }
        }
        None
    }

    /// True if `accept` may be called now.
    pub fn is_due(&mut self, now: Mono) -> bool {
        if self.resting.is_some_and(|until| now >= until) {
            self.resting = None;
        }
        self.ready && self.resting.is_none()
    }
}

/// True if a connection has failed, and not the listener. After any other error, trying again at once would
/// fail again.
fn is_of_connection(error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        #[cfg(target_os = "linux")]
        Some(Errno::NONET) => true,
        Some(
            Errno::CONNABORTED
            | Errno::INTR
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH,
        ) => true,
        _ => false,
    }
}

/// A socket of TCP that is bound to this address.
fn bind(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Otherwise a restart would have to wait until connections of the last run time out.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Serve both families, whatever the system's default is. A system that cannot do this serves IPv6.
        let _ = socket.set_only_v6(false);
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Binds every listener of the configuration, or takes the sockets that were passed instead. The listener of
/// the demo exchange is always bound, and its URL goes to the demo source. The tokens of the listeners count
/// down from `first_token`.
pub fn bind_all(
    config: &mut Config,
    passed: Vec<(Socket, Service)>,
    registry: &Registry,
    first_token: usize,
) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let mut wanted = Vec::new();
    match &config.ecosystem_listen {
        _ if !passed.is_empty() => {}
        Some(address) => {
            wanted.push(("listen", config.listen.clone(), Service::Api));
            wanted.push(("ecosystemListen", address.clone(), Service::Ecosystem));
        }
        None => wanted.push(("listen", config.listen.clone(), Service::Both)),
    }
    for (socket, service) in passed {
        let listener = Listener::new(socket, None, service, config);
        listeners.push(listener.map_err(fails("use a passed socket"))?);
    }
    if let Some(demo) = &config.demo {
        let address = demo.listen.clone().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        wanted.push(("demo.listen", address, Service::Demo));
    }
    for (key, address, service) in wanted {
        let listener = Listener::bind(&address, service, config);
        let listener = listener.map_err(|error| bind_error(key, &address, &error))?;
        if let Some(url) = listener.demo_url() {
            place_demo(config, &url);
        }
        listeners.push(listener);
    }
    for (at, listener) in listeners.iter_mut().enumerate() {
        listener.register(registry, Token(first_token - at)).map_err(fails("watch a listener"))?;
    }
    Ok(listeners)
}

/// Sets the URL of the demo exchange in its sources. If the demo's clock stands still, its quotes
/// never count as frozen.
pub fn place_demo(config: &mut Config, url: &Url) {
    let is_still = config.demo.as_ref().is_some_and(|demo| demo.speed() == 0);
    let plays = config.demo.as_ref().is_some_and(|demo| demo.replay.is_some());
    for source in config.sources.iter_mut().filter(|it| it.dialect == DEMO) {
        let path = if plays { format!("/{}", source.id) } else { String::new() };
        source.url = Some(Url { path, ..url.clone() });
        if is_still {
            source.frozen_after = Duration::MAX;
        }
    }
}

fn bind_error(key: &str, address: &ListenAddress, error: &io::Error) -> String {
    let advice = match key {
        _ if error.kind() != ErrorKind::AddrInUse => "",
        "listen" => " (--listen names another address)",
        "ecosystemListen" => " (--ecosystem-listen names another address)",
        _ => "",
    };
    format!("{key}: cannot listen on {address}: {error}{advice}")
}

/// Makes the error text of a system call that the loop cannot do without.
pub fn fails(what: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// The mode of a socket's file: its owner and its group may connect. A front end on the same
/// machine joins the group.
const MODE: u32 = 0o660;

/// A file that is removed when this is dropped, unless another file has replaced it.
#[derive(Debug)]
pub struct OwnFile {
    path: PathBuf,
    /// The device and the inode of the file.
    id: (u64, u64),
}

/// Binds a socket to a file. It does not listen yet, so that nobody connects before the mode is
/// set.
fn bind_file(path: &Path) -> io::Result<(Socket, OwnFile)> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            remove_dead(path, &address)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = OwnFile { path: path.to_path_buf(), id: id_of(path)? };
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok((socket, file))
}

/// Removes the file of a socket on which no process listens.
fn remove_dead(path: &Path, address: &SockAddr) -> io::Result<()> {
    let in_use = |why| Err(io::Error::new(ErrorKind::AddrInUse, why));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return in_use("the file exists and is not a socket");
    }
    // Nonblocking, so that a process that accepts nothing does not delay the start.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match probe.connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        _ => in_use("a running process listens there"),
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // A file that stays is replaced at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Most bytes of a file of addresses.
const ADDRESSES: u64 = 4096;

/// Writes the addresses to a file. It appears complete, so that a program that finds it can read
/// all of it. It replaces only a file of addresses, or an empty file.
pub fn write_addresses(path: PathBuf, listeners: &[Listener]) -> Result<OwnFile, String> {
    let place = |services: &[Service]| {
        let found = listeners.iter().find(|it| services.contains(&it.service));
        found.map(|it| it.place.as_str())
    };
    let mut text = Vec::new();
    json!(&mut text, {
        "listen": place(&[Service::Api, Service::Both]),
        "ecosystemListen": place(&[Service::Ecosystem]),
        "demo": place(&[Service::Demo]),
        "pid": i64::from(std::process::id()),
    });
    text.push(b'\n');
    let mut draft = path.clone().into_os_string();
    draft.push(format!("-new-{}", std::process::id()));
    // In a container, a process that was killed may have had the same id.
    let _ = fs::remove_file(&draft);
    let written = check_is_replaceable(&path).and_then(|()| {
        File::create_new(&draft)?.write_all(&text)?;
        fs::rename(&draft, &path)?;
        id_of(&path)
    });
    let id = written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        format!("--address-file: {}", fails(&format!("write {}", path.display()))(error))
    })?;
    Ok(OwnFile { path, id })
}

/// Checks that the file at this path may be overwritten with the addresses.
fn check_is_replaceable(path: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let mut text = String::new();
    if about.is_file() && about.len() > 0 {
        // Anything but text is not of marketd, either.
        let _ = File::open(path)?.take(ADDRESSES).read_to_string(&mut text);
    }
    // A configuration may have `listen`, but never `pid`.
    let is_ours = text.starts_with("{\"listen\":") && text.contains(",\"pid\":");
    if is_ours || about.is_file() && about.len() == 0 {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "it exists, and is not a file of addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use std::net::Shutdown;

    fn listener(config: &Config) -> Listener {
        let address = ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        Listener::bind(&address, Service::Api, config).expect("a free port")
    }

    fn socket(listener: &Listener) -> SockRef<'_> {
        match &listener.socket {
            ListeningSocket::Tcp(socket) => SockRef::from(socket),
            ListeningSocket::Unix(socket) => SockRef::from(socket),
        }
    }

    #[test]
    fn a_socket_that_does_not_listen_any_more_is_tried_again_after_a_rest() {
        let (mut listener, now) = (listener(&Config::default()), Mono(1));
        socket(&listener).shutdown(Shutdown::Both).expect("it listens");
        listener.ready = true;
        assert!(listener.accept(now).is_none());
        assert!(!listener.is_due(now));
        assert!(listener.is_due(now + REST));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_that_vanishes_is_given_up_after_the_time_for_writing() {
        let mut config = Config { defer_accept: false, ..Config::default() };
        for (write_timeout_ms, expected_ms) in [(100, 4000), (60_000, 60_000)] {
            config.limits.write_timeout = Duration::from_millis(write_timeout_ms);
            let mut listener = listener(&config);
            let address = socket(&listener).local_addr().expect("bound").as_socket();
            let _client = std::net::TcpStream::connect(address.expect("of TCP"));
            let accepted = (0..1000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(10));
                listener.accept(Mono(1))
            });
            let (stream, _) = accepted.expect("a client");
            let found = SockRef::from(&stream).tcp_user_timeout().expect("it is known");
            assert_eq!(found, Some(Duration::from_millis(expected_ms)));
        }
    }
}
