//! One connection: a socket that remembers its readiness, and a TLS session over it if it speaks TLS.
//!
//! [`Socket`] owns the stream and two booleans, *readable* and *writable*. The poller reports a change once
//! (edge-triggered). The booleans stay true until the kernel reports `WouldBlock`, or until a short read,
//! which also means that the socket is drained. [`NetConnection`] owns the socket, the session, and the state
//! of connecting and of the handshake. It is readable if its socket is, or if TLS holds decrypted bytes. So
//! reading may stop at any point, for fairness, and continue in a later turn without a new event.
//!
//! Neither decides what to read or write.
//!
//! ```text
//! Connecting -> Open -> (Securing -> Open)
//! ```

use super::sockopt;
use crate::core::Broken;
use crate::http::Output;
use crate::table::Key;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// Most pieces in one write: more pieces of a chart than a connection sends in a turn.
const PIECES: usize = 20;

/// A connection with a client or an exchange.
#[derive(Debug)]
pub struct NetConnection {
    pub socket: Socket,
    /// Boxed twice, so that a client's connection, which has no session, spends only one pointer on
    /// it.
    session: Option<Box<Box<dyn Session>>>,
    state: State,
    /// The generation of the connection's key. The index of the key is the place among the driver's
    /// connections.
    pub generation: u32,
    /// True for a connection that marketd has opened: to an exchange, a proxy or the engine of a cluster.
    pub upstream: bool,
    /// True while the connection is in one of the driver's queues.
    pub queued: bool,
    /// True if the last turn left something to send or to read.
    pub has_more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Securing,
    Open,
}

impl NetConnection {
    /// A connection that is open. It counts as ready.
    pub fn open(stream: TcpStream, key: Key) -> NetConnection {
        NetConnection::new(Socket::open(stream), State::Open, key)
    }

    /// Starts to connect to an exchange.
    pub fn connect(address: SocketAddr, key: Key) -> io::Result<NetConnection> {
        let socket = Socket::connect(address)?;
        Ok(NetConnection { upstream: true, ..NetConnection::new(socket, State::Connecting, key) })
    }

    fn new(socket: Socket, state: State, key: Key) -> NetConnection {
        NetConnection {
            socket,
            session: None,
            state,
            generation: key.generation(),
            upstream: false,
            queued: false,
            has_more: false,
        }
    }

    /// Starts TLS. [`NetConnection::progress`] does the handshake.
    pub fn secure(&mut self, session: Box<dyn Session>) {
        self.session = Some(Box::new(session));
        self.state = State::Securing;
    }

    /// True if it is a client's connection without bytes to read for now.
    pub fn is_quiet_client(&self) -> bool {
        !self.upstream && !self.is_readable() && !self.socket.is_dead
    }

    /// True if a read may return bytes.
    pub fn is_readable(&self) -> bool {
        let holds = self.session.as_ref().is_some_and(|it| it.holds_bytes());
        self.state == State::Open && (self.socket.readable || holds)
    }

    /// True if a write may accept bytes. TLS must have written all bytes that it accepted before.
    pub fn is_writable(&self) -> bool {
        let full = self.session.as_ref().is_some_and(|it| it.wants_write());
        self.state == State::Open && self.socket.writable && !full
    }

    /// Does the next step: finishes connecting, takes one step of the handshake, or writes pending
    /// bytes of TLS. Returns `Connected` and `Secured` once each.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<Progress, Broken> {
        match (self.state, &mut self.session) {
            (State::Connecting, _) => {
                if !self.socket.connected()? {
                    return Ok(Progress::Waiting);
                }
                self.state = State::Open;
                Ok(Progress::Connected)
            }
            (State::Securing, Some(session)) => {
                let progress = session.shake_hands(&mut self.socket)?;
                if progress == Progress::Secured {
                    self.state = State::Open;
                }
                Ok(progress)
            }
            (_, Some(session)) => {
                session.flush(&mut self.socket)?;
                Ok(Progress::Open)
            }
            (_, None) => Ok(Progress::Open),
        }
    }

    /// Reads into `buffer`.
    #[inline(always)]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Transfer, Broken> {
        match &mut self.session {
            Some(session) => session.read(&mut self.socket, buffer),
            None => match self.socket.read(buffer) {
                Ok(0) => Ok(Transfer::End),
                Ok(count) => Ok(Transfer::Bytes(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Transfer::Inner(0)),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Writes at most `most` bytes of `outgoing`, which is not empty. Returns how many were written; 0 if the
    /// socket would block.
    #[inline(always)]
    pub fn write(&mut self, outgoing: &Output, most: usize) -> Result<usize, Broken> {
        if let Some(session) = &mut self.session {
            let mut first = &[][..];
            outgoing.each(|piece| {
                first = piece;
                false
            });
            return session.write(&mut self.socket, first);
        }
        let written = match outgoing.whole() {
            Some(bytes) => self.socket.write(&bytes[..bytes.len().min(most)]),
            None => self.write_pieces(outgoing, most),
        };
        match written {
            Ok(0) => Err(Broken::Io(ErrorKind::WriteZero)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            written => Ok(written?),
        }
    }

    fn write_pieces(&mut self, outgoing: &Output, most: usize) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let (mut count, mut left) = (0, most);
        outgoing.each(|piece| {
            let piece = &piece[..piece.len().min(left)];
            slices[count] = IoSlice::new(piece);
            count += 1;
            left -= piece.len();
            count < PIECES && left > 0
        });
        self.socket.write_vectored(&slices[..count])
    }

    /// Tells the peer that nothing more will be sent.
    pub fn finish(&mut self) {
        if let Some(session) = &mut self.session {
            session.finish(&mut self.socket);
        }
        self.socket.finish();
    }

    /// Prepares the connection for being dropped. Tells a TLS peer that the session ends. Reads unread bytes
    /// of a client: closing a socket with unread bytes resets it, and the rest of the last response would be
    /// lost (RFC 9112, 9.6).
    pub fn prepare_close(&mut self, buffer: &mut [u8]) {
        if self.session.is_some() {
            self.finish();
        } else if !self.upstream && self.socket.readable {
            // The connection is closed whatever the result is.
            let _ = self.socket.read(buffer);
        }
    }
}

/// A stream with its readiness.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// True if a read may return bytes.
    pub readable: bool,
    /// True if a write may accept bytes.
    pub writable: bool,
    /// The peer has closed its side. Then a short read does not mean that the socket is drained.
    pub read_closed: bool,
    /// The peer has reset the connection, or both sides are closed: the peer reads nothing any
    /// more.
    pub is_dead: bool,
}

impl Socket {
    /// A socket that is open. It counts as ready.
    pub fn open(stream: TcpStream) -> Socket {
        Socket { stream, readable: true, writable: true, read_closed: false, is_dead: false }
    }

    /// A socket that starts to connect.
    pub fn connect(address: SocketAddr) -> io::Result<Socket> {
        let stream = TcpStream::connect(address)?;
        // A request is one write, which TCP would otherwise delay. A failure only costs time.
        let _ = stream.set_nodelay(true);
        sockopt::limit_unacknowledged(&stream, Duration::ZERO);
        Ok(Socket { readable: false, writable: false, ..Socket::open(stream) })
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
}

/// Returns the error of a call. After `WouldBlock`, the socket is not ready any more. An interrupted call
/// becomes a `WouldBlock` of a socket that stays ready, so that the caller tries it again.
#[cold]
fn failed(error: io::Error, ready: &mut bool) -> io::Error {
    *ready &= error.kind() != ErrorKind::WouldBlock;
    match error.kind() {
        ErrorKind::Interrupted => ErrorKind::WouldBlock.into(),
        _ => error,
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer);
        let count = read.map_err(|error| failed(error, &mut self.readable))?;
        // A short read has drained the socket, so another call is not needed. Exceptions are urgent data
        // (tcp(7)) and passed descriptors (unix(7)), which HTTP does not use. A client that sends them waits
        // until its next bytes come.
        let drained = count < buffer.len() && !self.read_closed;
        self.readable &= count > 0 && !drained;
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes).map_err(|error| failed(error, &mut self.writable))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.write_vectored(pieces).map_err(|error| failed(error, &mut self.writable))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
