//! The kernel's side of the daemon's sockets: buffers of a size, readiness that is told once.

use std::io::ErrorKind;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Client(usize),
    /// A source's exchange, and which of its connections.
    Exchange(usize, usize),
}

impl Default for Peer {
    fn default() -> Peer {
        Peer::Client(0)
    }
}

/// What one call came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Moved {
    Bytes(usize),
    End,
    Blocked,
    Failed(ErrorKind),
}

/// One socket of the daemon.
#[derive(Debug, Default)]
pub struct Link {
    pub peer: Peer,
    /// Bytes that have come and were not read.
    pub inbound: Vec<u8>,
    pub eof: bool,
    /// Broken; told once what has come is read.
    pub broken: bool,
    /// Bytes that fit into the send buffer now.
    pub room: usize,
    /// Whether the peer has closed its side for reading, too.
    pub deaf: bool,
    /// Bytes written.
    pub sent: u64,
    /// Bytes read.
    pub read: u64,
    /// When something was last read or written.
    pub active: u64,
    /// When something was first read after a pause, and how long that was.
    pub woke: u64,
    pub slept: u64,
    /// When it was made.
    pub since: u64,
    pub connecting: bool,
    /// Whether the connection has ever stood.
    pub stood: bool,
    connected: Option<Result<(), ErrorKind>>,
    readable: bool,
    writable: bool,
    pub queued: bool,
    /// The daemon has shut its side for writing.
    pub finished: bool,
    /// The core has done so between two requests: what comes then is not answered.
    pub parted: bool,
}

/// What the core decides at the end of a turn is done before this long has passed.
pub const JUST_NOW: u64 = 50_000;

impl Link {
    /// A socket that has just been accepted, which counts as ready, or one that begins to connect.
    pub fn new(peer: Peer, room: usize, now: u64) -> Link {
        let stands = matches!(peer, Peer::Client(_));
        Link {
            peer,
            room,
            active: now,
            woke: now,
            since: now,
            connecting: !stands,
            stood: stands,
            readable: stands,
            writable: stands,
            ..Link::default()
        }
    }

    /// Bytes come in.
    pub fn deliver(&mut self, bytes: &[u8]) {
        if !self.eof && !self.broken {
            self.inbound.extend_from_slice(bytes);
            self.readable = true;
        }
    }

    /// The peer sends nothing more.
    pub fn end(&mut self) {
        self.eof = true;
        self.readable = true;
    }

    /// The peer breaks the connection.
    pub fn reset(&mut self) {
        self.broken = true;
        self.readable = true;
        self.writable = true;
    }

    /// The attempt to connect has come to its end.
    pub fn settle(&mut self, result: Result<(), ErrorKind>) {
        self.connected = Some(result);
        self.writable = true;
    }

    /// There is room for so many more bytes. Whether that is news.
    pub fn make_room(&mut self, bytes: usize) -> bool {
        let news = self.room == 0 && bytes > 0 && !self.writable;
        self.room = self.room.saturating_add(bytes);
        self.writable |= news;
        news
    }

    /// For a link that is connecting: `Some` once.
    pub fn connected(&mut self) -> Option<Result<(), ErrorKind>> {
        if !self.connecting || self.connected.is_none() {
            return None;
        }
        self.connecting = false;
        self.stood = self.connected == Some(Ok(()));
        self.connected.take()
    }

    pub fn is_readable(&self) -> bool {
        self.readable && !self.connecting
    }

    pub fn is_writable(&self) -> bool {
        self.writable && !self.connecting
    }

    /// Reads into `buffer`, at most its length.
    pub fn read(&mut self, buffer: &mut Vec<u8>, most: usize, now: u64) -> Moved {
        buffer.clear();
        let count = most.min(self.inbound.len());
        if count > 0 {
            buffer.extend(self.inbound.drain(..count));
            self.read += count as u64;
            if now - self.active >= JUST_NOW {
                (self.woke, self.slept) = (now, now - self.active);
            }
            self.active = now;
            // A short read has drained the socket, unless there is an end to be told.
            if count < most && !self.eof && !self.broken {
                self.readable = false;
            }
            return Moved::Bytes(count);
        }
        if self.broken {
            return Moved::Failed(ErrorKind::ConnectionReset);
        }
        self.readable = false;
        match self.eof {
            true => Moved::End,
            false => Moved::Blocked,
        }
    }

    /// Writes as many of these bytes as there is room for.
    pub fn write(&mut self, bytes: usize, now: u64) -> Moved {
        if self.broken {
            return Moved::Failed(ErrorKind::BrokenPipe);
        }
        if self.room == 0 {
            self.writable = false;
            return Moved::Blocked;
        }
        let count = bytes.min(self.room);
        self.room -= count;
        self.sent += count as u64;
        self.active = now;
        Moved::Bytes(count)
    }
}
