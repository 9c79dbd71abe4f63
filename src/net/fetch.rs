//! A blocking client for `marketd probe`: sends one request after another, without the event loop.
//!
//! Each request has its own connection. The client follows no redirects and uses no proxy.

use super::connection::{NetConnection, Opener, Progress, Transfer};
use super::tls;
use crate::config::{Config, Limits, Url};
use crate::http::{
    BodyReader, Encoding, Output, decompress, parse_response, read_current_date, write_request,
};
use crate::table::Key;
use crate::time::{Clock, Mono, Now, UnixMs};
use std::error::Error;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The response to a request.
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The value of the requested header field.
    pub field: Option<String>,
    /// When the response was made, if its head says so and it does not come from a cache.
    pub date: Option<UnixMs>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// When the request was sent.
    pub sent: Now,
    /// The time from `sent` to the last byte of the response.
    pub took: Duration,
}

/// Sends requests.
pub struct Fetcher {
    tls: Opener,
    clock: Clock,
    limits: Limits,
}

impl Fetcher {
    /// A client. The error says what is wrong with `tls.caFile`.
    pub fn new(config: &Config) -> Result<Fetcher, String> {
        let clock = Clock::new();
        let tls = tls::opener(config, clock)?;
        Ok(Fetcher { tls, clock, limits: config.limits.clone() })
    }

    /// The current time.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Waits, so that no limit of the exchange is exceeded.
    pub fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Gets this target. `key` is a field for the request's head. `field` names the field of the
    /// response's head to return.
    pub fn get(
        &self,
        url: &Url,
        target: &str,
        key: Option<(&str, &str)>,
        field: Option<&str>,
        timeout: Duration,
    ) -> Result<Fetched, Box<dyn Error>> {
        let sent = self.clock.now();
        let by = sent.mono + timeout;
        let mut conn = self.open(url, timeout, by)?;
        let mut request = Output::default();
        let target = format!("{}{target}", url.path);
        write_request(request.bytes(), &url.authority(), &target, key);
        while !request.is_empty() {
            self.await_ready(&mut conn, by)?;
            request.advance(conn.write(&request, usize::MAX)?);
        }
        // Appends the next bytes, if any have come. Returns false at the end.
        let mut read = |bytes: &mut Vec<u8>| -> Result<bool, Box<dyn Error>> {
            let mut buffer = [0; 16 * 1024];
            self.await_ready(&mut conn, by)?;
            match conn.read(&mut buffer)? {
                Transfer::Bytes(count) => bytes.extend_from_slice(&buffer[..count]),
                Transfer::Inner(_) => {}
                Transfer::End => return Ok(false),
            }
            Ok(true)
        };
        let mut bytes = Vec::new();
        let most = self.limits.upstream_head_bytes;
        let (head, used, field, date) = loop {
            if let Some(found) = parse_response(&bytes, most)? {
                let field = field.and_then(|name| found.fields.get(name));
                let field = field.map(|value| String::from_utf8_lossy(value).into_owned());
                break (found.head, found.used, field, read_current_date(found.fields));
            }
            if !read(&mut bytes)? {
                return Err("the response broke off".into());
            }
        };
        let mut taken = used;
        let most = self.limits.upstream_body_bytes as u64;
        let mut reader = BodyReader::new(head.framing, most)?;
        let mut body = Vec::new();
        while !reader.is_done() {
            if taken == bytes.len() {
                (taken, bytes) = (0, Vec::new());
                if !read(&mut bytes)? {
                    reader.finish_at_close()?;
                    break;
                }
            }
            let piece = reader.decode(&bytes[taken..])?;
            body.extend_from_slice(piece.data);
            taken += piece.used;
        }
        let body = match head.content_encoding {
            Encoding::Identity => body,
            Encoding::Gzip => decompress(&body, most)?,
            Encoding::Other => Err("the response has a content coding that was not asked for")?,
        };
        let took = self.clock.now().mono.since(sent.mono);
        Ok(Fetched { status: head.status, field, date, body, sent, took })
    }

    /// Opens a connection whose socket blocks.
    fn open(
        &self,
        url: &Url,
        timeout: Duration,
        by: Mono,
    ) -> Result<NetConnection, Box<dyn Error>> {
        let socket = connect(url, timeout).map_err(|why| format!("{}: {why}", url.authority()))?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let stream = mio::net::TcpStream::from_std(socket);
        let mut conn = NetConnection::open(stream, Key::from_token(0));
        if url.is_tls() {
            conn.secure((self.tls)(&url.host)?);
            while conn.progress()? != Progress::Secured {
                self.await_ready(&mut conn, by)?;
            }
        }
        Ok(conn)
    }

    /// Lets the connection use its socket, until `by`: a socket that blocks is always ready.
    fn await_ready(&self, conn: &mut NetConnection, by: Mono) -> io::Result<()> {
        (conn.socket.readable, conn.socket.writable) = (true, true);
        match self.clock.now().mono > by {
            true => Err(io::Error::other("the response took too long")),
            false => Ok(()),
        }
    }
}

/// Connects to the first address of a host that accepts. Waits up to `timeout` for each address.
pub fn connect(url: &Url, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
