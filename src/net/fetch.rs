//! One request after another, for `marketd probe`. It blocks: no loop runs beside it.
//!
//! Owns a connection for as long as one request takes. It follows no redirect, and goes through no
//! proxy.

use super::tls;
use super::transfer::{BlockingOpener, Stream};
use crate::config::{Config, Limits, Url};
use crate::http::{
    BodyReader, Encoding, ResponseHead, decompress, parse_response, read_current_date,
    write_request,
};
use crate::time::{Clock, Now, UnixMs};
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The answer to a request.
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The value of the header field that was asked for.
    pub field: Option<String>,
    /// When the answer was made, if its head says so and it is from no cache.
    pub date: Option<UnixMs>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// When the request was sent, and how long the answer took.
    pub sent: Now,
    /// From then to the last byte.
    pub took: Duration,
}

/// Sends requests.
pub struct Fetcher {
    tls: BlockingOpener,
    clock: Clock,
    limits: Limits,
}

impl Fetcher {
    /// The error says what is wrong with `tls.caFile`.
    pub fn new(config: &Config) -> Result<Fetcher, String> {
        let clock = Clock::new();
        let tls = tls::blocking_opener(config, clock)?;
        Ok(Fetcher { tls, clock, limits: config.limits.clone() })
    }

    /// What time it is.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Waits, so that no limit of the exchange is passed.
    pub fn rest(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Gets this target, and from the head this field.
    pub fn get(
        &self,
        url: &Url,
        target: &str,
        field: Option<&str>,
        timeout: Duration,
    ) -> Result<Fetched, String> {
        let sent = self.clock.now();
        let mut stream = self.connect(url, timeout)?;
        let mut request = Vec::new();
        let target = format!("{}{target}", url.path);
        write_request(&mut request, &url.authority(), &target);
        stream.write_all(&request).map_err(text)?;
        // Appends what has come. False at the end.
        let mut read = |bytes: &mut Vec<u8>| match self.clock.now().mono.since(sent.mono) > timeout
        {
            true => Err("the answer took too long".to_string()),
            false => read_more(&mut *stream, bytes),
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
                return Err("the answer broke off".to_string());
            }
        };
        let body = self.body(head, bytes.split_off(used), read)?;
        Ok(Fetched {
            status: head.status,
            field,
            date,
            body,
            sent,
            took: self.clock.now().mono.since(sent.mono),
        })
    }

    fn connect(&self, url: &Url, timeout: Duration) -> Result<Box<dyn Stream>, String> {
        let place = (url.host.as_str(), url.port);
        let addresses = place.to_socket_addrs().map_err(text)?;
        let mut last = format!("{} has no address", url.host);
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(socket) => {
                    let timeouts = (socket.set_read_timeout(Some(timeout)))
                        .and_then(|()| socket.set_write_timeout(Some(timeout)));
                    timeouts.map_err(text)?;
                    return match url.https {
                        true => (self.tls)(&url.host, socket),
                        false => Ok(Box::new(socket)),
                    };
                }
                Err(error) => last = format!("{address}: {error}"),
            }
        }
        Err(last)
    }

    fn body(
        &self,
        head: ResponseHead,
        mut bytes: Vec<u8>,
        mut read: impl FnMut(&mut Vec<u8>) -> Result<bool, String>,
    ) -> Result<Vec<u8>, String> {
        let most = self.limits.upstream_body_bytes as u64;
        let mut reader = BodyReader::new(head.framing, most).map_err(text)?;
        let mut body = Vec::new();
        loop {
            let mut at = 0;
            while at < bytes.len() && !reader.is_done() {
                let piece = reader.decode(&bytes[at..]).map_err(text)?;
                at += piece.used;
                body.extend_from_slice(piece.data);
            }
            bytes.clear();
            if reader.is_done() {
                break;
            }
            if !read(&mut bytes)? {
                reader.finish_at_close().map_err(text)?;
                break;
            }
        }
        match head.content_encoding {
            Encoding::Identity => Ok(body),
            Encoding::Gzip => decompress(&body, most).map_err(text),
            Encoding::Other => Err("the answer has a content coding that was not asked for".into()),
        }
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Appends what has come. Returns false at the end.
fn read_more(stream: &mut dyn Stream, bytes: &mut Vec<u8>) -> Result<bool, String> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer) {
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            Ok(count > 0)
        }
        // A peer that closes without the words of TLS.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}
