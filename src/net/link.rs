//! One connected socket that remembers its readiness.
//!
//! Owns the stream and two booleans, *readable* and *writable*. The poller tells of a change
//! once (edge-triggered); the booleans keep it until the kernel says `WouldBlock`, which is the
//! only thing that clears them (and a short read, which says the same). So a link may stop early,
//! out of fairness, and go on in a later turn without a new event.
//!
//! It never decides what to read or write: it asks nothing but the kernel.

use crate::table::Key;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

/// See the module's page.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// The connection's key in the core, and its token at the poller.
    pub key: Key,
    /// Whether this is one of our own connections to an exchange.
    pub upstream: bool,
    /// Whether it waits in the driver's queue of links that have more to do.
    pub queued: bool,
    /// Whether the poller knows it.
    pub registered: bool,
    connecting: bool,
    readable: bool,
    writable: bool,
    /// The peer has closed its side: a short read is then no sign that all is drained.
    read_closed: bool,
}

/// What one call to the kernel came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// The peer has sent its last byte.
    End,
    /// Nothing now: wait for the poller.
    Blocked,
    /// The connection is broken.
    Failed(ErrorKind),
}

impl Link {
    /// A client's connection, just accepted. It counts as ready until the kernel says otherwise.
    pub fn accepted(stream: TcpStream, key: Key) -> Link {
        Link {
            stream,
            key,
            upstream: false,
            queued: false,
            registered: false,
            connecting: false,
            readable: true,
            writable: true,
            read_closed: false,
        }
    }

    /// A connection to an exchange, which begins to connect.
    pub fn connect(address: SocketAddr, key: Key) -> io::Result<Link> {
        let stream = TcpStream::connect(address)?;
        // A request is one write: waiting to gather more only delays it. Failure costs speed alone.
        let _ = stream.set_nodelay(true);
        Ok(Link {
            connecting: true,
            readable: false,
            writable: false,
            upstream: true,
            ..Link::accepted(stream, key)
        })
    }

    /// Makes the poller watch it, once, for both directions.
    pub fn register(&mut self, registry: &Registry) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut self.stream, Token(self.key.token()), both)?;
        self.registered = true;
        Ok(())
    }

    /// Takes in what the poller says.
    pub fn wake(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_error() || event.is_read_closed();
        self.writable |= event.is_writable() || event.is_error() || event.is_write_closed();
        self.read_closed |= event.is_read_closed();
    }

    /// Whether reading may bring something.
    pub fn is_readable(&self) -> bool {
        self.readable && !self.connecting
    }

    /// Whether writing may take something.
    pub fn is_writable(&self) -> bool {
        self.writable && !self.connecting
    }

    /// For a link that is connecting: `Some` once, when that has succeeded or failed.
    pub fn connected(&mut self) -> Option<Result<(), ErrorKind>> {
        if !self.connecting || !self.writable {
            return None;
        }
        if let Ok(Some(error)) = self.stream.take_error() {
            self.connecting = false;
            return Some(Err(error.kind()));
        }
        match self.stream.peer_addr() {
            Ok(_) => {
                self.connecting = false;
                Some(Ok(()))
            }
            // Not yet: the event was of something else (mio, "TcpStream::connect").
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                self.writable = false;
                None
            }
            Err(error) => Some(Err(error.kind())),
        }
    }

    /// Reads into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> Moved {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => {
                    self.readable = false;
                    Moved::End
                }
                Ok(count) => {
                    // A short read has drained the socket: it saves the call that would say so.
                    if count < buffer.len() && !self.read_closed {
                        self.readable = false;
                    }
                    Moved::Bytes(count)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    Moved::Blocked
                }
                Err(error) => Moved::Failed(error.kind()),
            };
        }
    }

    /// Writes from `bytes`.
    pub fn write(&mut self, bytes: &[u8]) -> Moved {
        loop {
            return match self.stream.write(bytes) {
                Ok(0) => Moved::Failed(ErrorKind::WriteZero),
                Ok(count) => Moved::Bytes(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.writable = false;
                    Moved::Blocked
                }
                Err(error) => Moved::Failed(error.kind()),
            };
        }
    }

    /// Says to the peer that nothing more will come. A peer that is gone already cannot mind.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
