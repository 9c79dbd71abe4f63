//! One socket that remembers its readiness.
//!
//! Owns the stream and two booleans, *readable* and *writable*. The poller tells of a change
//! once (edge-triggered); the booleans keep it until the kernel says `WouldBlock`, which is the
//! only thing that clears them (and a short read, which says the same). So whoever reads may stop
//! early, out of fairness, and go on in a later turn without a new event.
//!
//! It never decides what to read or write, and never interprets a byte.

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};

/// See the module's page.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    readable: bool,
    writable: bool,
    /// The peer has closed its side: a short read is then no sign that all is drained.
    read_closed: bool,
}

impl Socket {
    /// One that was just accepted. It counts as ready until the kernel says otherwise.
    pub fn accepted(stream: TcpStream) -> Socket {
        Socket {
            stream,
            readable: true,
            writable: true,
            read_closed: false,
        }
    }

    /// One that begins to connect.
    pub fn connect(address: SocketAddr) -> io::Result<Socket> {
        let stream = TcpStream::connect(address)?;
        // A request is one write: waiting to gather more only delays it. Failure costs speed alone.
        let _ = stream.set_nodelay(true);
        Ok(Socket {
            readable: false,
            writable: false,
            ..Socket::accepted(stream)
        })
    }

    /// Makes the poller watch it, once, for both directions.
    pub fn register(&mut self, registry: &Registry, token: usize) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut self.stream, Token(token), both)
    }

    /// Takes in what the poller says.
    pub fn wake(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_error() || event.is_read_closed();
        self.writable |= event.is_writable() || event.is_error() || event.is_write_closed();
        self.read_closed |= event.is_read_closed();
    }

    /// Whether reading may bring something.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether writing may take something.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// For one that is connecting: `Some` when that has succeeded or failed.
    pub fn connected(&mut self) -> Option<Result<(), ErrorKind>> {
        if !self.writable {
            return None;
        }
        if let Ok(Some(error)) = self.stream.take_error() {
            return Some(Err(error.kind()));
        }
        match self.stream.peer_addr() {
            Ok(_) => Some(Ok(())),
            // Not yet: the event was of something else (mio, "TcpStream::connect").
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                self.writable = false;
                None
            }
            Err(error) => Some(Err(error.kind())),
        }
    }

    /// Says to the peer that nothing more will come. A peer that is gone already cannot mind.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

impl Socket {
    fn try_write(
        &mut self,
        mut write: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match write(&mut self.stream) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(count) => return Ok(count),
                Err(error) => return Err(refused(error, &mut self.writable)),
            }
        }
    }
}

/// What a call has failed with; the socket is not ready any more, if it was that.
#[cold]
fn refused(error: io::Error, ready: &mut bool) -> io::Error {
    *ready &= error.kind() != ErrorKind::WouldBlock;
    error
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(count) => {
                    // A short read has drained the socket: it saves the call that would say so.
                    let drained = count < buffer.len() && !self.read_closed;
                    self.readable &= count > 0 && !drained;
                    return Ok(count);
                }
                Err(error) => return Err(refused(error, &mut self.readable)),
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
