//! A socket that remembers its readiness, and the results of its calls. Also the interface of a TLS
//! session over it.
//!
//! Owns the stream and two booleans, *readable* and *writable*. The poller reports a change once
//! (edge-triggered). The booleans stay true until the kernel reports `WouldBlock`, or until a short
//! read, which also means that the socket is drained. So reading may stop at any point, for
//! fairness, and continue in a later turn without a new event.
//!
//! It does not decide what to read or write, and does not interpret bytes.

use crate::core::Broken;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::SockRef;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::time::Duration;

/// How long sent bytes may stay unacknowledged. By then the kernel has sent them several times.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(4);

/// A stream with its readiness.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// A read may return bytes.
    pub readable: bool,
    /// A write may accept bytes.
    pub writable: bool,
    /// The peer has closed its side. Then a short read does not mean that the socket is drained.
    pub read_closed: bool,
    /// The peer has reset the connection, or both sides are closed: the peer reads nothing any
    /// more.
    pub is_dead: bool,
}

impl Socket {
    /// A socket that was just accepted. It counts as ready.
    pub fn accepted(stream: TcpStream) -> Socket {
        Socket { stream, readable: true, writable: true, read_closed: false, is_dead: false }
    }

    /// A socket that starts to connect.
    pub fn connect(address: SocketAddr) -> io::Result<Socket> {
        let stream = TcpStream::connect(address)?;
        // A request is one write, which TCP would otherwise delay. A failure only costs time.
        let _ = stream.set_nodelay(true);
        limit_unacknowledged((&stream).into());
        Ok(Socket { readable: false, writable: false, ..Socket::accepted(stream) })
    }

    /// Registers the socket with the poller, once, for both directions.
    pub fn register(&mut self, registry: &Registry, token: usize) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut self.stream, Token(token), both)
    }

    /// Updates the readiness from an event.
    pub fn wake(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_error() || event.is_read_closed();
        self.writable |= event.is_writable() || event.is_error() || event.is_write_closed();
        self.read_closed |= event.is_read_closed();
        self.is_dead |= event.is_error() || event.is_read_closed() && event.is_write_closed();
    }

    /// True if the socket has connected, false while it is connecting.
    pub fn connected(&mut self) -> io::Result<bool> {
        if !self.writable {
            return Ok(false);
        }
        if let Ok(Some(error)) = self.stream.take_error() {
            return Err(error);
        }
        match self.stream.peer_addr() {
            // Still connecting: the event had another cause (mio, "TcpStream::connect").
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                self.writable = false;
                Ok(false)
            }
            peer => peer.map(|_| true),
        }
    }

    /// Tells the peer that nothing more will be sent. An error means that the peer has gone.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn try_write(
        &mut self,
        mut write: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match write(&mut self.stream) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(count) => return Ok(count),
                Err(error) => return Err(failed(error, &mut self.writable)),
            }
        }
    }
}

/// Returns the error of a call. After `WouldBlock`, the socket is not ready any more.
#[cold]
fn failed(error: io::Error, ready: &mut bool) -> io::Error {
    *ready &= error.kind() != ErrorKind::WouldBlock;
    error
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(count) => {
                    // A short read has drained the socket, so another call is not needed.
                    let drained = count < buffer.len() && !self.read_closed;
                    self.readable &= count > 0 && !drained;
                    return Ok(count);
                }
                Err(error) => return Err(failed(error, &mut self.readable)),
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(|stream| stream.write(bytes))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write(|stream| stream.write_vectored(pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sets `TCP_USER_TIMEOUT` (tcp(7)), on systems that have it. It ends an upstream connection whose packets
/// get lost, for example because a firewall has forgotten it.
fn limit_unacknowledged(_socket: SockRef<'_>) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = _socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
}

/// The result of one step of connecting or of the TLS handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// The connection was open before.
    Open,
    /// It has just connected.
    Connected,
    /// The TLS handshake has just finished.
    Secured,
    /// Nothing can be done until the poller reports an event.
    Waiting,
    /// There is more to do in another turn.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS needs it"))]
    More,
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub enum Transfer {
    /// This many bytes came.
    Bytes(usize),
    /// No bytes came for the core. TLS used this many bytes itself. If this is 0, wait for an event of the
    /// poller.
    Inner(usize),
    /// The peer has sent its last byte.
    End,
}

/// Any I/O error that is not handled earlier breaks the connection.
impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Io(error.kind())
    }
}

/// A TLS session over the socket of a connection.
pub trait Session: fmt::Debug {
    /// True if a read returns something even if the socket is not readable.
    fn holds_bytes(&self) -> bool;

    /// True if bytes are left to write to the socket.
    fn wants_write(&self) -> bool;

    /// Does one step of the handshake.
    fn shake_hands(&mut self, socket: &mut Socket) -> Result<Progress, Broken>;

    /// Returns decrypted bytes. Reads from the socket until there are some.
    fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> Result<Transfer, Broken>;

    /// Encrypts bytes of the core, and writes as many to the socket as it accepts. Returns how many were
    /// encrypted.
    fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> Result<usize, Broken>;

    /// Writes encrypted bytes, as many as the socket accepts.
    fn flush(&mut self, socket: &mut Socket) -> Result<(), Broken>;

    /// Sends close_notify, unless the socket would block.
    fn finish(&mut self, socket: &mut Socket);
}

/// Opens a session with a peer. The peer must have a certificate for this host, which is a name or
/// an address.
pub type Opener = Box<dyn Fn(&str) -> Result<Box<dyn Session>, Broken>>;

/// A connection that blocks, with TLS or without.
pub trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Opens a TLS session with the host of this name over a socket that blocks.
pub type BlockingOpener = Box<dyn Fn(&str, std::net::TcpStream) -> Result<Box<dyn Stream>, String>>;
