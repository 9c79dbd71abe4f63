//! Results of the steps of a connection: how far it has come, and what one system call moved.

use super::socket::Socket;
use crate::core::Broken;
use std::fmt;
use std::io::{self, ErrorKind};

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
    /// Connecting or the handshake has failed.
    Failed(Broken),
}

/// The result of one read or write.
#[derive(Debug, PartialEq, Eq)]
pub enum Transfer {
    /// So many bytes were moved.
    Bytes(usize),
    /// So many bytes were moved, all of them TLS's own.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS needs it"))]
    Inner(usize),
    /// The peer has sent its last byte.
    End,
    /// Nothing can be moved until the poller reports an event.
    Blocked,
    /// The connection is broken.
    Failed(Broken),
}

impl Transfer {
    /// The result of a system call. `zero` is the meaning of no byte.
    #[inline]
    pub fn of(result: io::Result<usize>, zero: Transfer) -> Transfer {
        match result {
            Ok(0) => zero,
            Ok(count) => Transfer::Bytes(count),
            Err(error) => Transfer::of_error(&error),
        }
    }

    /// Nearly all calls succeed, so this is kept out of their code.
    #[cold]
    fn of_error(error: &io::Error) -> Transfer {
        match error.kind() {
            ErrorKind::WouldBlock => Transfer::Blocked,
            kind => Transfer::Failed(Broken::Io(kind)),
        }
    }
}

/// A TLS session over the socket of a connection.
pub trait Session: fmt::Debug {
    /// True if a read returns something even if the socket is not readable.
    fn holds_bytes(&self) -> bool;

    /// True if bytes are left to write to the socket.
    fn wants_write(&self) -> bool;

    /// Does one step of the handshake.
    fn shake_hands(&mut self, socket: &mut Socket) -> Progress;

    /// Returns decrypted bytes. Reads from the socket until there are some.
    fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> Transfer;

    /// Encrypts bytes of the core, and writes as much to the socket as that accepts.
    fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> Transfer;

    /// Writes encrypted bytes, as many as the socket accepts.
    fn flush(&mut self, socket: &mut Socket) -> Result<(), Broken>;

    /// Sends close_notify, unless the socket would block.
    fn finish(&mut self, socket: &mut Socket);
}

/// Opens a session with a peer that must have a certificate for this host, a name or an address.
pub type Opener = Box<dyn Fn(&str) -> Result<Box<dyn Session>, Broken>>;
