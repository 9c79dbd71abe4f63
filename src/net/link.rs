//! One connection: a socket, and TLS over it where that is spoken.
//!
//! Owns the two, and how far they have come. Readiness is that of the socket ([`super::socket`]),
//! with one addition: what TLS has decrypted and nobody has read yet makes a link readable,
//! whatever the kernel says. So a link may stop early, out of fairness, and go on in a later turn
//! without a new event.
//!
//! It never decides what to read or write: it asks nothing but the kernel and TLS.
//!
//! ```text
//! Connecting -> Open -> (Securing -> Open)
//! ```

use super::socket::Socket;
use super::tls::Session;
use crate::core::Broken;
use crate::http::Outgoing;
use crate::table::Key;
use mio::Registry;
use mio::event::Event;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;

/// Pieces handed to the kernel at once: a chart of 5000 candles has some 40.
const PIECES: usize = 48;

/// See the module's page.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    session: Option<Box<Session>>,
    state: State,
    /// The connection's key in the core, and its token at the poller.
    pub key: Key,
    /// Whether this is one of our own connections to an exchange.
    pub upstream: bool,
    /// Whether it waits in the driver's queue of links that have more to do.
    pub queued: bool,
    /// Whether it had more to send, when it was last seen to, than it could.
    pub sending: bool,
    /// Whether the poller knows it.
    pub registered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Securing,
    Open,
}

/// How far a link is on its way to carry the core's bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All the way.
    Open,
    /// It has just connected.
    Connected,
    /// Its handshake has just come to its end.
    Secured,
    /// Nothing now: wait for the poller.
    Waiting,
    /// There is more to do, in another turn.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS alone needs it"))]
    More,
    /// It will not come to be.
    Failed(Broken),
}

/// What one call to the kernel came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// So many bytes that were for TLS itself.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS alone needs it"))]
    Inner(usize),
    /// The peer has sent its last byte.
    End,
    /// Nothing now: wait for the poller.
    Blocked,
    /// The connection is broken.
    Failed(Broken),
}

impl Link {
    /// A client's connection, just accepted.
    pub fn accepted(stream: TcpStream, key: Key) -> Link {
        Link {
            socket: Socket::accepted(stream),
            session: None,
            state: State::Open,
            key,
            upstream: false,
            queued: false,
            sending: false,
            registered: false,
        }
    }

    /// A connection to an exchange, which begins to connect.
    pub fn connect(address: SocketAddr, key: Key) -> io::Result<Link> {
        Ok(Link {
            socket: Socket::connect(address)?,
            session: None,
            state: State::Connecting,
            key,
            upstream: true,
            queued: false,
            sending: false,
            registered: false,
        })
    }

    /// Speaks TLS from here on. The handshake goes on with [`Link::progress`].
    pub fn secure(&mut self, session: Session) {
        self.session = Some(Box::new(session));
        self.state = State::Securing;
    }

    /// Makes the poller watch it, once, for both directions.
    pub fn register(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.register(registry, self.key.token())?;
        self.registered = true;
        Ok(())
    }

    /// Takes in what the poller says.
    pub fn wake(&mut self, event: &Event) {
        self.socket.wake(event);
    }

    /// Whether reading may bring something.
    pub fn is_readable(&self) -> bool {
        let holds = self.session.as_ref().is_some_and(|it| it.holds_bytes());
        self.state == State::Open && (self.socket.is_readable() || holds)
    }

    /// Whether writing may take something. TLS first has to be rid of what it took before.
    pub fn is_writable(&self) -> bool {
        let full = self.session.as_ref().is_some_and(|it| it.wants_write());
        self.state == State::Open && self.socket.is_writable() && !full
    }

    /// Takes one step on the way to carry the core's bytes: the end of connecting, one step of the
    /// handshake, or bytes of TLS that the kernel did not take before. `Connected` and `Secured`
    /// are answered once each.
    pub fn progress(&mut self) -> Progress {
        match (self.state, &mut self.session) {
            (State::Connecting, _) => match self.socket.connected() {
                None => Progress::Waiting,
                Some(Ok(())) => {
                    self.state = State::Open;
                    Progress::Connected
                }
                Some(Err(kind)) => Progress::Failed(Broken::Io(kind)),
            },
            (State::Securing, Some(session)) => {
                let progress = session.shake_hands(&mut self.socket);
                if progress == Progress::Secured {
                    self.state = State::Open;
                }
                progress
            }
            (_, Some(session)) => match session.flush(&mut self.socket) {
                Ok(()) => Progress::Open,
                Err(why) => Progress::Failed(why),
            },
            (_, None) => Progress::Open,
        }
    }

    /// Reads into `buffer`.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Moved {
        match &mut self.session {
            Some(session) => session.read(&mut self.socket, buffer),
            None => moved(self.socket.read(buffer), Moved::End),
        }
    }

    /// Writes at most so many bytes of what is to be sent, which is not nothing.
    pub fn write(&mut self, outgoing: Outgoing<'_>, most: usize) -> Moved {
        let none = Moved::Failed(Broken::Io(ErrorKind::WriteZero));
        match (&mut self.session, outgoing.whole()) {
            (None, Some(bytes)) => {
                let bytes = &bytes[..bytes.len().min(most)];
                moved(self.socket.write(bytes), none)
            }
            (None, None) => moved(self.write_pieces(outgoing, most), none),
            (Some(session), whole) => {
                let mut first = whole.unwrap_or_default();
                if whole.is_none() {
                    outgoing.each(|piece| {
                        first = piece;
                        false
                    });
                }
                session.write(&mut self.socket, first)
            }
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

    /// Reads what has come from a client, whatever the poller has said so far.
    pub fn last_look(&mut self, buffer: &mut [u8]) -> Moved {
        match self.upstream {
            true => Moved::Blocked,
            false => moved(self.socket.read(buffer), Moved::End),
        }
    }

    /// Says to the peer that nothing more will come.
    pub fn finish(&mut self) {
        if let Some(session) = &mut self.session {
            session.finish(&mut self.socket);
        }
        self.socket.finish();
    }

    /// Before the link is dropped: says so, where the peer must not take the end for an accident. A
    /// socket that is closed over bytes which nobody has read is reset, and what the kernel has still
    /// to send of the last answer is lost (RFC 9112, 9.6); so those of a client that has sent more
    /// than it should are taken out first.
    pub fn part(&mut self, buffer: &mut [u8]) {
        if self.session.is_some() {
            self.finish();
        } else if !self.upstream && self.socket.is_readable() {
            // Whatever comes of it, this is the end.
            let _ = self.socket.read(buffer);
        }
    }
}

/// What a call of the system means; `zero` is the meaning of no byte.
#[inline]
fn moved(result: io::Result<usize>, zero: Moved) -> Moved {
    match result {
        Ok(0) => zero,
        Ok(count) => Moved::Bytes(count),
        Err(error) => not_moved(&error),
    }
}

/// Out of the way of those calls that succeed, which are nearly all.
#[cold]
fn not_moved(error: &io::Error) -> Moved {
    match error.kind() {
        ErrorKind::WouldBlock => Moved::Blocked,
        kind => Moved::Failed(Broken::Io(kind)),
    }
}
