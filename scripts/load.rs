//! A small load client: keep-alive, pipelined, or one connection a request, from one thread.
//!
//!     cargo run --release --example load -- --connections 64 --ms 5000 http://127.0.0.1:8080/health
//!
//! It counts every answer, checks its status, and prints one line of `name=value`; times are
//! nanoseconds. The first unexpected answer ends it with exit code 1, so that a faulty server does
//! not look fast.

use lexopt::prelude::*;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "load [options] http://ADDRESS:PORT/PATH
    --connections N   kept open side by side (default 1)
    --pipeline N      requests sent at once on each (default 1)
    --close           one connection a request
    --ms N            how long (default 5000)
    --requests N      how many, instead of how long
    --hold            one request on each connection, which then stays open and quiet for --ms;
                      `held` is printed when all are answered
    --header LINE     another header field, as often as you like
    --vary            a header field with another number in each request (in each batch)
    --status N        what every answer must be (default 200)";

/// Bytes read at once: a few of the largest answers.
const READ_BUFFER: usize = 256 * 1024;

/// After this time without any answer, the server counts as dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Events taken at once.
const EVENTS: usize = 1024;

struct Options {
    connections: usize,
    pipeline: usize,
    close: bool,
    span: Duration,
    requests: Option<u64>,
    hold: bool,
    headers: Vec<String>,
    vary: bool,
    status: u16,
    url: String,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("{fault}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match Load::new(options).and_then(Load::run) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("load: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// The command line; `None` asks for help.
fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        connections: 1,
        pipeline: 1,
        close: false,
        span: Duration::from_secs(5),
        requests: None,
        hold: false,
        headers: Vec::new(),
        vary: false,
        status: 200,
        url: String::new(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("connections") => options.connections = parser.value()?.parse()?,
            Long("pipeline") => options.pipeline = parser.value()?.parse()?,
            Long("close") => options.close = true,
            Long("ms") => options.span = Duration::from_millis(parser.value()?.parse()?),
            Long("requests") => options.requests = Some(parser.value()?.parse()?),
            Long("hold") => options.hold = true,
            Long("header") => options.headers.push(parser.value()?.string()?),
            Long("vary") => options.vary = true,
            Long("status") => options.status = parser.value()?.parse()?,
            Long("help") | Short('h') => return Ok(None),
            Value(url) if options.url.is_empty() => options.url = url.string()?,
            other => return Err(other.unexpected()),
        }
    }
    if options.url.is_empty() || options.connections == 0 || options.pipeline == 0 {
        return Err("an address and at least one connection and request are needed".into());
    }
    if options.hold && (options.close || options.pipeline > 1 || options.requests.is_some()) {
        return Err("a held connection carries one request".into());
    }
    if options.close && options.pipeline > 1 {
        return Err("a connection that closes after one request carries no batch".into());
    }
    Ok(Some(options))
}

/// All connections and their results.
struct Load {
    poll: Poll,
    address: SocketAddr,
    /// One request.
    request: Vec<u8>,
    /// The requests that one connection sends at once.
    batch: Vec<u8>,
    /// The position of the varying number in a request.
    varies: Option<usize>,
    close: bool,
    pipeline: usize,
    status: [u8; 3],
    /// Requests that may still be sent.
    unsent: u64,
    /// Requests to be answered before the load ends.
    wanted: u64,
    hold: bool,
    span: Duration,
    peers: Vec<Peer>,
    buffer: Box<[u8]>,
    report: Report,
}

/// One connection.
struct Peer {
    stream: TcpStream,
    /// How many of the last bytes of the batch the kernel has not taken yet.
    unwritten: usize,
    unanswered: usize,
    sent: Instant,
    /// The start of a head whose rest has not arrived yet.
    head: Vec<u8>,
    /// How many bytes of the current answer's body have not arrived yet.
    body: usize,
}

impl Load {
    fn new(options: Options) -> Result<Load, String> {
        let rest = options.url.strip_prefix("http://");
        let (host, path) = rest
            .and_then(|rest| rest.split_once('/'))
            .ok_or("the address must be like http://127.0.0.1:8080/health")?;
        let address =
            host.parse().map_err(|fault| format!("{host} is no address with a port: {fault}"))?;
        let mut request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n");
        let mut varies = None;
        if options.vary {
            request.push_str("X-Request-Id: ");
            varies = Some(request.len());
            request.push_str("00000000\r\n");
        }
        if options.close {
            request.push_str("Connection: close\r\n");
        }
        for header in &options.headers {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str("\r\n");
        let status = options.status.to_string().into_bytes();
        let wanted = match options.hold {
            true => options.connections as u64,
            false => options.requests.unwrap_or(u64::MAX),
        };
        Ok(Load {
            poll: Poll::new().map_err(told("cannot create a poller"))?,
            address,
            batch: request.as_bytes().repeat(options.pipeline),
            request: request.into_bytes(),
            varies,
            close: options.close,
            pipeline: options.pipeline,
            status: status.try_into().map_err(|_| "a status has three digits")?,
            unsent: wanted,
            wanted,
            hold: options.hold,
            span: options.span,
            peers: Vec::with_capacity(options.connections),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            report: Report::new(),
        })
        .and_then(|mut load| {
            for place in 0..options.connections {
                let peer = load.connect(place)?;
                load.peers.push(peer);
                load.begin(place);
            }
            Ok(load)
        })
    }

    /// Runs to its end.
    fn run(mut self) -> Result<Report, String> {
        let mut events = Events::with_capacity(EVENTS);
        let begin = Instant::now();
        let end = begin + self.span;
        let mut progress = (0, begin);
        loop {
            let polled = self.poll.poll(&mut events, Some(Duration::from_millis(100)));
            if let Err(error) = polled
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(told("cannot wait")(error));
            }
            for event in &events {
                let Token(place) = event.token();
                if event.is_writable() {
                    self.write(place)?;
                }
                if event.is_readable() || event.is_read_closed() {
                    self.read(place)?;
                }
            }
            let now = Instant::now();
            let timed = self.wanted == u64::MAX;
            if self.report.requests >= self.wanted || (timed && now >= end) {
                self.report.elapsed = now - begin;
                if self.hold {
                    println!("held");
                    std::thread::sleep(self.span);
                }
                return Ok(self.report);
            }
            if self.report.requests > progress.0 {
                progress = (self.report.requests, now);
            } else if now - progress.1 > PATIENCE {
                return Err(format!("no answer for {PATIENCE:?}"));
            }
        }
    }

    /// Opens a connection. It has nothing to send yet.
    fn connect(&mut self, place: usize) -> Result<Peer, String> {
        let mut stream = TcpStream::connect(self.address).map_err(told("cannot connect"))?;
        let registry = self.poll.registry();
        let both = Interest::READABLE | Interest::WRITABLE;
        registry
            .register(&mut stream, Token(place), both)
            .map_err(told("cannot watch a connection"))?;
        stream.set_nodelay(true).map_err(told("cannot set TCP_NODELAY"))?;
        Ok(Peer {
            stream,
            unwritten: 0,
            unanswered: 0,
            sent: Instant::now(),
            head: Vec::new(),
            body: 0,
        })
    }

    /// Gives a connection its next batch, or what is left of the requests.
    fn begin(&mut self, place: usize) {
        let peer = &mut self.peers[place];
        let count = self.unsent.min(self.pipeline as u64);
        self.unsent -= count;
        if let Some(at) = self.varies {
            let number = format!("{:08}", self.unsent % 100_000_000);
            for request in self.batch.chunks_mut(self.request.len()) {
                request[at..at + number.len()].copy_from_slice(number.as_bytes());
            }
        }
        peer.unanswered = count as usize;
        peer.unwritten = peer.unanswered * self.request.len();
        peer.sent = Instant::now();
    }

    /// Sends as much of a connection's output as the kernel takes.
    fn write(&mut self, place: usize) -> Result<(), String> {
        let peer = &mut self.peers[place];
        while peer.unwritten > 0 {
            let from = self.batch.len() - peer.unwritten;
            match peer.stream.write(&self.batch[from..]) {
                Ok(count) => peer.unwritten -= count,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(told("cannot send")(error)),
            }
        }
        Ok(())
    }

    /// Reads what has arrived, and starts the next batch when the last one is answered.
    fn read(&mut self, place: usize) -> Result<(), String> {
        loop {
            let count = match self.peers[place].stream.read(&mut self.buffer) {
                Ok(0) => return self.ended(place),
                Ok(count) => count,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(told("cannot receive")(error)),
            };
            self.report.bytes += count as u64;
            let buffer = std::mem::take(&mut self.buffer);
            let taken = self.take(place, &buffer[..count]);
            self.buffer = buffer;
            taken?;
            if self.peers[place].unanswered == 0 && !self.close {
                self.begin(place);
                self.write(place)?;
            }
            // A short read has drained the socket; the end of a connection brings another event.
            if count < self.buffer.len() && !self.close {
                return Ok(());
            }
        }
    }

    /// Reads the answers in these bytes.
    fn take(&mut self, place: usize, mut bytes: &[u8]) -> Result<(), String> {
        let peer = &mut self.peers[place];
        while !bytes.is_empty() {
            if peer.body == 0 {
                // A head that arrives in pieces is joined; a whole one is read in place.
                let known = peer.head.len();
                let end = if known == 0 {
                    head_end(bytes)
                } else {
                    peer.head.extend_from_slice(bytes);
                    head_end(&peer.head).map(|end| end - known)
                };
                let Some(end) = end else {
                    if known == 0 {
                        peer.head.extend_from_slice(bytes);
                    }
                    return Ok(());
                };
                let head = match known {
                    0 => &bytes[..end],
                    _ => &peer.head[..known + end],
                };
                if peer.unanswered == 0 {
                    return Err("an answer that nobody asked for".to_string());
                }
                peer.body = body_length(head, self.status)?;
                peer.head.clear();
                bytes = &bytes[end..];
            }
            let part = peer.body.min(bytes.len());
            peer.body -= part;
            bytes = &bytes[part..];
            if peer.body == 0 {
                peer.unanswered -= 1;
                self.report.note(peer.sent.elapsed());
            }
        }
        Ok(())
    }

    /// The server has closed the connection. That is right only with one connection per request.
    fn ended(&mut self, place: usize) -> Result<(), String> {
        let peer = &self.peers[place];
        if !self.close || peer.unanswered > 0 || peer.body > 0 {
            return Err("the server has closed a connection early".to_string());
        }
        if self.unsent > 0 {
            self.peers[place] = self.connect(place)?;
            self.begin(place);
        }
        Ok(())
    }
}

fn is_later(error: &io::Error) -> bool {
    // A connection that is not open yet gives either of these errors.
    let later = [ErrorKind::WouldBlock, ErrorKind::NotConnected];
    later.contains(&error.kind()) || error.kind() == ErrorKind::Interrupted
}

/// Prefixes the system's error with the action.
fn told(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Where the first head ends, including its blank line.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 3;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' if &bytes[at - 3..=at] == b"\r\n\r\n" => return Some(at + 1),
            b'\n' | b'\r' => at += 1,
            // No blank line holds this byte, so none ends at one of the next three.
            _ => at += 4,
        }
    }
    None
}

/// Bytes of the body that follow a head of the expected status.
fn body_length(head: &[u8], status: [u8; 3]) -> Result<usize, String> {
    if head.get(9..12) != Some(&status[..]) {
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or(head);
        let line = String::from_utf8_lossy(line);
        let status = String::from_utf8_lossy(&status);
        return Err(format!("expected {status}, found {line}"));
    }
    // RFC 9110, section 15.4.5: a 304 has no body, whatever length it tells.
    if &status == b"304" {
        return Ok(0);
    }
    const NAME: &[u8] = b"content-length:";
    let is_length = |line: &&[u8]| {
        let name = line.get(..NAME.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(is_length).ok_or("an answer without a length")?;
    let value = std::str::from_utf8(&line[NAME.len()..]).unwrap_or_default();
    let length = value.trim().parse();
    length.map_err(|_| format!("{value:?} is no length"))
}

/// The results of one run.
struct Report {
    requests: u64,
    bytes: u64,
    elapsed: Duration,
    histogram: Vec<u64>,
}

/// Buckets for each doubling of the time. So a percentile is accurate to 1 part in 64.
const PARTS: u64 = 64;

impl Report {
    fn new() -> Report {
        Report {
            requests: 0,
            bytes: 0,
            elapsed: Duration::ZERO,
            histogram: vec![0; 64 * PARTS as usize],
        }
    }

    fn note(&mut self, latency: Duration) {
        self.requests += 1;
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram[bucket(ns)] += 1;
    }

    /// The time in nanoseconds within which this many of 1,000 answers arrive.
    fn within(&self, per_mille: u64) -> u64 {
        let rank = (self.requests * per_mille).div_ceil(1000);
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= rank
        };
        self.histogram.iter().position(reaches).map_or(0, top_of)
    }
}

/// Below `PARTS`, a nanosecond has its own bucket; above, a bucket is `PARTS`th of its doubling.
fn bucket(ns: u64) -> usize {
    let doublings = u64::from((ns | (PARTS - 1)).ilog2()) - u64::from(PARTS.ilog2() - 1);
    let part = match doublings {
        0 => ns,
        _ => (ns >> (doublings - 1)) - PARTS,
    };
    (doublings * PARTS + part) as usize
}

/// The longest time of a bucket.
fn top_of(bucket: usize) -> u64 {
    let (doublings, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    match doublings {
        0 => part,
        _ => ((PARTS + part + 1) << (doublings - 1)) - 1,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "requests={} bytes={} ns={} p50={} p99={} p999={}",
            self.requests,
            self.bytes,
            self.elapsed.as_nanos(),
            self.within(500),
            self.within(990),
            self.within(999)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_times_and_no_others() {
        for ns in (0..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX / 2]) {
            let at = bucket(ns);
            assert!(ns <= top_of(at), "{ns} is above its bucket {at}");
            assert!(at == 0 || ns > top_of(at - 1), "{ns} belongs below bucket {at}");
        }
    }

    #[test]
    fn a_percentile_is_the_time_that_so_many_stay_within() {
        let mut report = Report::new();
        for ns in 1..=1000 {
            report.note(Duration::from_nanos(ns));
        }
        let near = |found: u64, expected: u64| found >= expected && found - expected <= 16;
        assert!(near(report.within(500), 500));
        assert!(near(report.within(990), 990));
        assert!(near(report.within(999), 999));
    }

    #[test]
    fn a_head_ends_behind_its_blank_line() {
        let check = |text: &str, expected: Option<usize>| {
            assert_eq!(head_end(text.as_bytes()), expected, "{text:?}");
        };
        check("\r\n\r\n", Some(4));
        check("a\r\n\r\nb\r\n\r\n", Some(5));
        check("ab\r\nc: d\r\n\r\n", Some(12));
        check("abc\r\n\r", None);
        check("abc\n\r\n\r\n", Some(8));
        check("", None);
    }
}
