//! One connection: a socket, and a TLS session over it if it speaks TLS.
//!
//! Owns both, and the state of connecting and of the handshake. A connection is readable if its socket is
//! ([`super::socket`]), or if TLS holds decrypted bytes. So reading may stop at any point, for fairness, and
//! continue in a later turn without a new event.
//!
//! It does not decide what to read or write.
//!
//! ```text
//! Connecting -> Open -> (Securing -> Open)
//! ```

use super::socket::{Progress, Session, Socket, Transfer};
use crate::core::Broken;
use crate::http::Outgoing;
use crate::table::Key;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;

/// Most pieces in one write: more pieces of a chart than a connection sends in a turn.
const PIECES: usize = 20;

/// A connection with a client or an exchange.
#[derive(Debug)]
pub struct NetConnection {
    /// The socket.
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
    /// A client's connection that was just accepted.
    pub fn accepted(stream: TcpStream, key: Key) -> NetConnection {
        NetConnection::new(Socket::accepted(stream), State::Open, key)
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
    #[inline]
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
    pub fn write(&mut self, outgoing: Outgoing<'_>, most: usize) -> Result<usize, Broken> {
        let written = match (&mut self.session, outgoing.whole()) {
            (None, Some(bytes)) => self.socket.write(&bytes[..bytes.len().min(most)]),
            (None, None) => self.write_pieces(outgoing, most),
            (Some(session), whole) => {
                let mut first = whole.unwrap_or_default();
                if whole.is_none() {
                    outgoing.each(|piece| {
                        first = piece;
                        false
                    });
                }
                return session.write(&mut self.socket, first);
            }
        };
        match written {
            Ok(0) => Err(Broken::Io(ErrorKind::WriteZero)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            written => Ok(written?),
        }
    }

    fn write_pieces(&mut self, outgoing: Outgoing<'_>, most: usize) -> io::Result<usize> {
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
