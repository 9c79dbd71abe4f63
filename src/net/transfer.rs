//! Results of the steps of a connection: how far it has come, and what one system call moved.

use crate::core::Broken;
use std::io::{self, ErrorKind, Read, Write};

/// A connection that blocks, with TLS or without.
pub trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

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
