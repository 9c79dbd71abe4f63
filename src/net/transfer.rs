//! Results of the steps of a connection: how far it has come, and what one system call moved.

use super::socket::Socket;
use crate::core::Broken;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

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
    /// So many bytes came.
    Bytes(usize),
    /// No byte came for the core, and this many that TLS used itself. If this is 0 too, nothing comes until
    /// the poller reports an event.
    Inner(usize),
    /// The peer has sent its last byte.
    End,
}

impl Transfer {
    /// The result of a system call.
    #[inline]
    pub fn from_call(result: io::Result<usize>) -> Result<Transfer, Broken> {
        match result {
            Ok(0) => Ok(Transfer::End),
            Ok(count) => Ok(Transfer::Bytes(count)),
            Err(error) => Transfer::of_error(error),
        }
    }

    /// Nearly all calls succeed, so this is kept out of their code.
    #[cold]
    fn of_error(error: io::Error) -> Result<Transfer, Broken> {
        match error.kind() {
            ErrorKind::WouldBlock => Ok(Transfer::Inner(0)),
            _ => Err(error.into()),
        }
    }
}

/// A connection is broken by any error that is not handled before.
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

    /// Encrypts bytes of the core, and writes as much to the socket as that accepts. Returns how many it
    /// has encrypted.
    fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> Result<usize, Broken>;

    /// Writes encrypted bytes, as many as the socket accepts.
    fn flush(&mut self, socket: &mut Socket) -> Result<(), Broken>;

    /// Sends close_notify, unless the socket would block.
    fn finish(&mut self, socket: &mut Socket);
}

/// Opens a session with a peer that must have a certificate for this host, a name or an address.
pub type Opener = Box<dyn Fn(&str) -> Result<Box<dyn Session>, Broken>>;

/// A connection that blocks, with TLS or without.
pub trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Opens a TLS session with the host of this name over a socket that blocks.
pub type BlockingOpener = Box<dyn Fn(&str, TcpStream) -> Result<Box<dyn Stream>, String>>;
