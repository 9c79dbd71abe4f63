//! A raw HTTP client over a plain socket: sends any bytes, reads answers strictly, and every
//! wait has a deadline.
//!
//! It is picky on purpose: an answer that a lenient client would forgive is an error here.

use super::json::Json;
use super::message::{self, MessageHead, parse_head};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One connection to a server under test.
pub struct Client {
    stream: TcpStream,
    inbox: Vec<u8>,
    patience: Duration,
}

/// One answer, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// What was asked for; empty where the client was not told.
    pub target: String,
    /// Status code.
    pub status: u16,
    /// In order, names as sent.
    pub headers: Vec<(String, String)>,
    /// Decoded from its framing; empty for HEAD.
    pub body: Vec<u8>,
}

/// Why no answer was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// Nothing complete within the client's patience; what had come.
    TimedOut(String),
    /// The server closed; what had come of an answer.
    Closed(String),
    /// The server reset the connection; what had come of an answer.
    Reset(String),
    /// What came is no HTTP answer.
    Malformed(String),
}

/// How an answer's body ends.
enum Ends {
    After(usize),
    Chunks,
    AtClose,
}

/// Asks for `target` on a connection of its own. Panics when no answer comes.
#[track_caller]
pub fn get(addr: SocketAddr, target: &str) -> Response {
    request(addr, format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n"))
}

/// The same with these fields.
#[track_caller]
pub fn get_with(addr: SocketAddr, target: &str, fields: &str) -> Response {
    request(addr, format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n"))
}

/// The same with HEAD: the answer has no body.
#[track_caller]
pub fn head(addr: SocketAddr, target: &str) -> Response {
    let mut client = Client::connect(addr);
    let line = format!("HEAD {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    let answer = client.send(line).and_then(|()| client.read_head());
    answer.unwrap_or_else(|fault| panic!("HEAD {target}: {fault}")).to(target)
}

/// Sends these bytes on a connection of its own and reads one answer, as to a GET.
#[track_caller]
pub fn request(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> Response {
    let mut client = Client::connect(addr);
    let answer = client.send(&bytes).and_then(|()| client.read());
    let shown = String::from_utf8_lossy(bytes.as_ref());
    match answer {
        Ok(response) => response.to(shown.split(' ').nth(1).unwrap_or_default()),
        Err(fault) => panic!("{shown:?}: {fault:?}"),
    }
}

impl Client {
    /// Connects, with [`super::PATIENCE`] for every wait.
    #[track_caller]
    pub fn connect(addr: SocketAddr) -> Client {
        match Client::try_connect(addr) {
            Ok(client) => client,
            Err(fault) => panic!("cannot connect to {addr}: {fault}"),
        }
    }

    /// The same, for a server that may refuse.
    pub fn try_connect(addr: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&addr, super::PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(super::PATIENCE))?;
        Ok(Client { stream, inbox: Vec::new(), patience: super::PATIENCE })
    }

    /// Another longest time for each read.
    pub fn patience(mut self, patience: Duration) -> Client {
        self.patience = patience;
        self
    }

    /// The socket itself, for its options.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends these bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), ClientError> {
        let sent = self.stream.write_all(bytes.as_ref());
        sent.map_err(|fault| self.failed(&fault))
    }

    /// Sends a GET that keeps the connection.
    pub fn send_get(&mut self, target: &str) -> Result<(), ClientError> {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: marketd\r\n\r\n"))
    }

    /// Sends a GET that keeps the connection, and reads its answer. Panics when none comes.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        let answer = self.send_get(target).and_then(|()| self.read());
        answer.unwrap_or_else(|fault| panic!("GET {target}: {fault}")).to(target)
    }

    /// Reads one answer to anything but HEAD.
    pub fn read(&mut self) -> Result<Response, ClientError> {
        self.read_answer(false)
    }

    /// Reads one answer to a HEAD: no body follows, whatever its head says.
    pub fn read_head(&mut self) -> Result<Response, ClientError> {
        self.read_answer(true)
    }

    /// Reads so many answers.
    pub fn read_many(&mut self, count: usize) -> Result<Vec<Response>, ClientError> {
        (0..count).map(|_| self.read()).collect()
    }

    /// Says that nothing more will be sent; answers are still read.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Everything up to the server's close; an error when it does not come in time.
    pub fn read_to_close(&mut self) -> Result<Vec<u8>, ClientError> {
        let deadline = Instant::now() + self.patience;
        loop {
            match self.fill(deadline) {
                Ok(()) => {}
                Err(ClientError::Closed(_)) => return Ok(std::mem::take(&mut self.inbox)),
                Err(fault) => return Err(fault),
            }
        }
    }

    /// More of an answer whose head alone was read; `None` behind the last chunk.
    pub fn read_more(&mut self, is_chunked: bool) -> Result<Option<Vec<u8>>, ClientError> {
        let deadline = Instant::now() + self.patience;
        loop {
            let more = match is_chunked {
                true => read_chunk(&self.inbox).map_err(ClientError::Malformed)?,
                false => Some((&self.inbox[..], self.inbox.len())).filter(|it| it.1 > 0),
            };
            if let Some((data, used)) = more {
                let data = Some(data.to_vec()).filter(|data| !data.is_empty());
                self.inbox.drain(..used);
                return Ok(data);
            }
            self.fill(deadline)?;
        }
    }

    /// Bytes that came and belong to no answer read so far.
    pub fn unread(&self) -> &[u8] {
        &self.inbox
    }

    /// Reads one answer. `is_bare`: no body follows, whatever its head says.
    fn read_answer(&mut self, is_bare: bool) -> Result<Response, ClientError> {
        let deadline = Instant::now() + self.patience;
        let mut is_all = false;
        loop {
            let read = read_response(&self.inbox, is_bare, is_all);
            if let Some((response, used)) = read.map_err(ClientError::Malformed)? {
                self.inbox.drain(..used);
                if !(100..200).contains(&response.status) || response.status == 101 {
                    return Ok(response);
                }
            } else {
                match self.fill(deadline) {
                    Err(ClientError::Closed(_)) if !is_all => is_all = true,
                    filled => filled?,
                }
            }
        }
    }

    /// Reads what is there, or waits for something up to the deadline.
    fn fill(&mut self, deadline: Instant) -> Result<(), ClientError> {
        // A timeout of zero would mean none.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
        let set = self.stream.set_read_timeout(Some(left));
        set.map_err(|fault| self.failed(&fault))?;
        let mut room = [0; 64 * 1024];
        match self.stream.read(&mut room) {
            Ok(0) => Err(ClientError::Closed(self.so_far())),
            Ok(n) => {
                self.inbox.extend_from_slice(&room[..n]);
                Ok(())
            }
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(fault) => Err(self.failed(&fault)),
        }
    }

    fn failed(&self, fault: &io::Error) -> ClientError {
        match fault.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ClientError::TimedOut(self.so_far())
            }
            _ => ClientError::Reset(self.so_far()),
        }
    }

    /// What had come of a head, or of the body behind it.
    fn so_far(&self) -> String {
        let body = self.inbox.windows(4).position(|four| four == b"\r\n\r\n");
        let begin = body.map_or(0, |at| at + 4);
        let shown = &self.inbox[begin..self.inbox.len().min(begin + 400)];
        String::from_utf8_lossy(shown).into_owned()
    }
}

/// The answer at the begin of these bytes, and its length; `None` while it is not whole. `is_bare`: no body
/// follows, whatever its head says. `is_all`: nothing comes behind these bytes.
pub fn read_response(
    bytes: &[u8],
    is_bare: bool,
    is_all: bool,
) -> Result<Option<(Response, usize)>, String> {
    let Some((MessageHead { first_line, fields }, begin)) = parse_head(bytes)? else {
        return Ok(None);
    };
    let (status, rest) = (status_of(&first_line)?, &bytes[begin..]);
    let read = match ends(&fields, status, is_bare)? {
        Ends::After(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
        Ends::Chunks => read_chunks(rest)?,
        Ends::AtClose => is_all.then(|| (rest.to_vec(), rest.len())),
    };
    Ok(read.map(|(body, used)| {
        let target = String::new();
        (Response { target, status, headers: fields, body }, begin + used)
    }))
}

/// The data of all chunks, and their length; `None` while the last one has not come.
fn read_chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    while let Some((data, used)) = read_chunk(&bytes[at..])? {
        body.extend(data);
        at += used;
        if data.is_empty() {
            return Ok(Some((body, at)));
        }
    }
    Ok(None)
}

/// The data of the next chunk, and its length; of the last one, which has no data, with the trailers. `None` while
/// it is not whole.
pub fn read_chunk(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let line_at = |at: usize| {
        let rest = bytes.get(at..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        Some((&rest[..end], at + end + 2))
    };
    let Some((line, begin)) = line_at(0) else { return Ok(None) };
    let line = std::str::from_utf8(line).map_err(|_| "a line that is no text")?;
    let digits = line.split(';').next().unwrap_or_default();
    let size = usize::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    let size = size.ok_or_else(|| format!("a chunk size {line:?}"))?;
    let mut next = line_at(begin + size);
    if size > 0 {
        return match next {
            Some((b"", end)) => Ok(Some((&bytes[begin..begin + size], end))),
            Some(_) => Err("a chunk without its CR LF".to_string()),
            None => Ok(None),
        };
    }
    while let Some((line, end)) = next {
        if line.is_empty() {
            return Ok(Some((b"", end)));
        }
        next = line_at(end);
    }
    Ok(None)
}

fn status_of(line: &str) -> Result<u16, String> {
    let rest = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split_once(' '));
    let digits = rest.filter(|(digits, reason)| digits.len() == 3 && !reason.is_empty());
    let status = digits.and_then(|(digits, _)| digits.parse().ok());
    status.ok_or_else(|| format!("a status line {line:?}"))
}

/// How the body ends (RFC 9112, 6.3), with no mercy for an answer that says it in two ways.
fn ends(fields: &[(String, String)], status: u16, is_bare: bool) -> Result<Ends, String> {
    let same = |wanted: &str| {
        let found = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let (lengths, codings) = (same("Content-Length"), same("Transfer-Encoding"));
    let bad = |what: &str| Err(format!("{what}: {fields:?}"));
    if lengths.len() + codings.len() > 1 {
        return bad("more than one length");
    }
    if status == 204 && lengths.len() + codings.len() > 0 {
        return bad("a length on a 204");
    }
    if is_bare || matches!(status, 100..=199 | 204 | 304) {
        return Ok(Ends::After(0));
    }
    match (lengths.first(), codings.first()) {
        (Some(length), _) if length.bytes().all(|digit| digit.is_ascii_digit()) => {
            length.parse().map(Ends::After).or_else(|_| bad("a bad length"))
        }
        (Some(_), _) => bad("a bad length"),
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => Ok(Ends::Chunks),
        (None, Some(_)) => bad("an unknown coding"),
        (None, None) => Ok(Ends::AtClose),
    }
}

impl Response {
    /// The same, to a request for this.
    pub fn to(mut self, target: &str) -> Response {
        self.target = target.to_string();
        self
    }

    /// A header field; its case does not matter. Of several, the first.
    pub fn header(&self, name: &str) -> Option<&str> {
        message::field(&self.headers, name)
    }

    /// Whether a comma list in a header field holds this token.
    pub fn header_lists(&self, name: &str, token: &str) -> bool {
        message::lists(&self.headers, name, token)
    }

    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        match std::str::from_utf8(&self.body) {
            Ok(text) => text,
            Err(fault) => panic!("a body that is no text: {fault}"),
        }
    }

    /// The body as a tree whose numbers are binary: easy to compare with `json!`, good for
    /// integers and texts. For prices: [`Response::exact`].
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(fault) => panic!("a body that is no JSON ({fault}): {:?}", self.text()),
        }
    }

    /// The body as a tree that keeps every digit, every member's place, and takes no key twice.
    #[track_caller]
    pub fn exact(&self) -> Json {
        match Json::parse(self.text()) {
            Ok(value) => value,
            Err(fault) => panic!("a body that is no JSON ({fault}): {:?}", self.text()),
        }
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
