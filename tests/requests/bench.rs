//! The core at a bench: clients without sockets, time without a clock.
//!
//! A client's bytes go in when the core would read them, as the driver does it, and its answers
//! are taken at once unless a test holds them back. The only exchange cannot be reached.

use crate::requests::answers::{Answer, read_answers};
use crate::requests::table::TAGGED;
use crate::support::count;
use marketd::config::{Config, Data, Limits, SourceConfig, Url};
use marketd::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

/// What the driver reads at once.
const READ: usize = 16 * 1024;

/// See the module's page.
pub struct Bench {
    pub core: Core,
    /// Nothing is done but what a test asks for: what the core does in one turn is to be seen.
    pub is_stepped: bool,
    now: Now,
    clients: HashMap<Key, Client>,
}

/// The client's end of a connection.
#[derive(Default)]
struct Client {
    /// What it was sent.
    got: Vec<u8>,
    /// Bytes of answers that it will still take.
    appetite: usize,
    /// The core has shut its side.
    shut: bool,
    /// The core has closed.
    closed: bool,
}

/// An address of a client.
pub fn at(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What a run came to.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub answers: Vec<Answer>,
    /// Whether the core has ended the connection.
    pub shut: bool,
}

impl Outcome {
    /// In the words of the table.
    pub fn summary(&self) -> String {
        let mut words: Vec<String> = self.answers.iter().map(Answer::summary).collect();
        words.push(if self.shut { "shut" } else { "open" }.to_string());
        words.join(", ")
    }
}

/// Bytes for a message of a test.
pub fn show(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    match text.len() {
        0..=600 => text,
        length => format!("{} ... {}", &text[..300], &text[length - 200..]),
    }
}

impl Bench {
    /// One known symbol, `BTC/USDT`, and nothing collected.
    pub fn new(limits: Limits) -> Bench {
        Bench::configured(limits, |_| {})
    }

    /// The same with some more that the configuration says.
    pub fn configured(limits: Limits, change: impl FnOnce(&mut Config)) -> Bench {
        let source = SourceConfig {
            url: Some(Url::parse("http://192.0.2.1:80").expect("an address")),
            symbols: vec!["BTC/USDT".to_string()],
            ..SourceConfig::new("binance")
        };
        let mut config =
            Config { sources: vec![source], data: Data::Memory, limits, ..Config::default() };
        change(&mut config);
        let now = Now { mono: Mono(0), unix: UnixMs(1_700_000_000_000) };
        let mut bench = Bench {
            core: Core::new(config, None, ProcessFacts::default, 7, now),
            is_stepped: false,
            now,
            clients: HashMap::new(),
        };
        bench.settle();
        bench
    }

    /// A client that takes every answer at once.
    pub fn connect(&mut self) -> Key {
        self.connect_with(usize::MAX)
    }

    /// A client that takes so many bytes of answers and then no more.
    pub fn connect_with(&mut self, appetite: usize) -> Key {
        self.accept(None, Service::Both, appetite).expect("there is room")
    }

    /// The same of the demo exchange.
    pub fn connect_to_demo(&mut self, appetite: usize) -> Key {
        self.accept(None, Service::Demo, appetite).expect("there is room")
    }

    /// A client that counts for its address.
    pub fn connect_from(&mut self, peer: IpAddr) -> Option<Key> {
        self.accept(Some(peer), Service::Both, usize::MAX)
    }

    fn accept(&mut self, peer: Option<IpAddr>, service: Service, appetite: usize) -> Option<Key> {
        let key = self.core.accept(peer, service, self.now)?;
        self.clients.insert(key, Client { appetite, ..Client::default() });
        self.take(key);
        self.settle();
        Some(key)
    }

    /// Sends bytes as far as the core reads them; the number of those.
    pub fn send(&mut self, key: Key, bytes: &[u8]) -> usize {
        let mut sent = 0;
        for piece in bytes.chunks(READ) {
            self.await_deferred_responses(key);
            if self.is_closed(key) || !self.core.wants_read(key) {
                break;
            }
            self.core.handle(key, Event::Received(piece), self.now);
            sent += piece.len();
            self.take(key);
            self.settle();
        }
        self.await_deferred_responses(key);
        sent
    }

    /// The client sends no more.
    pub fn end(&mut self, key: Key) {
        if !self.is_closed(key) && self.core.wants_read(key) {
            self.core.handle(key, Event::Eof, self.now);
            self.take(key);
            self.settle();
        }
    }

    /// The connection breaks.
    pub fn reset(&mut self, key: Key) {
        let broken = Broken::Io(ErrorKind::ConnectionReset);
        self.core.handle(key, Event::Failed(&broken), self.now);
        self.settle();
    }

    /// The client takes so many more bytes of its answers.
    pub fn feed(&mut self, key: Key, bytes: usize) {
        let client = self.clients.get_mut(&key).expect("it has connected");
        client.appetite = client.appetite.saturating_add(bytes);
        self.take(key);
        self.settle();
    }

    /// Time passes.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now.mono + span;
        let mut rounds_at_once = 0;
        loop {
            let next = self.core.poll_timeout().filter(|at| *at <= until);
            let at = next.map_or(until, |at| at.max(self.now.mono));
            let step = at.since(self.now.mono);
            self.now.mono = at;
            self.now.unix.0 += step.as_millis() as i64;
            self.core.handle_timeout(self.now);
            self.settle();
            let Some(next) = self.core.poll_timeout().filter(|next| *next <= until) else {
                break;
            };
            // What is settled may make something due at once, but not for ever.
            rounds_at_once = if next > at { 0 } else { rounds_at_once + 1 };
            assert!(rounds_at_once < 10, "a deadline at {at:?} has been met and does not move");
        }
        let rest = until.since(self.now.mono);
        self.now.mono = until;
        self.now.unix.0 += rest.as_millis() as i64;
        self.core.handle_timeout(self.now);
        self.settle();
    }

    /// The end is asked for.
    pub fn shut_down(&mut self) {
        self.core.shut_down(self.now);
        self.settle();
    }

    /// What a client was sent.
    pub fn got(&self, key: Key) -> &[u8] {
        &self.clients[&key].got
    }

    /// What a client was sent, in the words of the table.
    #[track_caller]
    pub fn summary(&self, key: Key) -> String {
        self.outcome(key).summary()
    }

    pub fn is_shut(&self, key: Key) -> bool {
        self.clients[&key].shut || self.is_closed(key)
    }

    pub fn is_closed(&self, key: Key) -> bool {
        self.clients[&key].closed
    }

    /// Sends these pieces on a connection of their own, and then the end of it.
    #[track_caller]
    pub fn run<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let key = self.connect();
        pieces.into_iter().for_each(|piece| _ = self.send(key, piece));
        self.leave(key)
    }

    /// The same for a client that takes a few bytes of its answers only when it cannot send on.
    #[track_caller]
    pub fn run_slowly<'a>(
        &mut self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        mut appetite: impl FnMut() -> usize,
    ) -> Outcome {
        let key = self.connect_with(0);
        for mut piece in pieces {
            loop {
                let sent = self.send(key, piece);
                piece = &piece[sent..];
                if piece.is_empty() || self.is_closed(key) {
                    break;
                }
                self.feed(key, appetite());
            }
        }
        // A client that takes all from here on, and may have to send the end of a request.
        self.feed(key, usize::MAX);
        self.leave(key)
    }

    /// The client sends no more, and is let go: what it had come to before.
    #[track_caller]
    fn leave(&mut self, key: Key) -> Outcome {
        let outcome = self.outcome(key);
        self.end(key);
        assert!(self.is_closed(key), "a client that has ended is let go");
        assert_eq!(self.outcome(key).answers, outcome.answers, "nothing comes after the end");
        self.clients.remove(&key);
        outcome
    }

    #[track_caller]
    fn outcome(&self, key: Key) -> Outcome {
        let answers = read_answers(self.got(key)).unwrap_or_else(|fault| {
            panic!("{fault} in {}", show(self.got(key)));
        });
        let shut = self.is_shut(key);
        if let Some(last) = answers.last() {
            assert!(shut || !last.closes, "it says that it closes, and does not");
        }
        Outcome { answers, shut }
    }

    /// One answer to a GET of this address, alone on its connection.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> String {
        let key = self.connect();
        self.send(key, format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        self.end(key);
        let client = self.clients.remove(&key).expect("it has connected");
        String::from_utf8(client.got).expect("an answer is text")
    }

    /// The strong tag of an answer that has one.
    pub fn tag(&mut self) -> Vec<u8> {
        tag_in(&self.get(TAGGED))
    }

    /// Connections that have ended, by reason, the one that asks left out.
    pub fn closes(&mut self) -> BTreeMap<String, u64> {
        let page = self.get("/metrics");
        let lines = page.lines();
        let counts = lines.filter_map(|line| {
            let rest = line.strip_prefix("marketd_http_closes_total{reason=\"")?;
            let (reason, count) = rest.split_once("\"} ")?;
            Some((reason.to_string(), count.parse().ok()?))
        });
        counts.collect()
    }

    /// Nobody is left, and every connection that was taken in has ended for a reason.
    #[track_caller]
    pub fn check_empty(&mut self) {
        assert_eq!(self.core.deferred(), 0);
        let page = self.get("/metrics");
        // The page counts its own reader.
        assert_eq!(count(&page, "marketd_http_connections_open"), 1);
        assert_eq!(count(&page, "marketd_http_requests_in_flight"), 0);
        let total = count(&page, "marketd_http_connections_total");
        // Both pages count the one that asked for the first.
        let ended: u64 = self.closes().values().sum();
        assert_eq!(ended, total, "every end has a reason");
    }

    /// The client takes what is there for it.
    fn take(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(&key) else {
            return;
        };
        loop {
            let outgoing = self.core.outgoing(key).to_vec();
            let count = outgoing.len().min(client.appetite);
            if count == 0 || client.closed {
                return;
            }
            assert!(!client.shut, "bytes after the end");
            client.got.extend_from_slice(&outgoing[..count]);
            client.appetite -= if client.appetite == usize::MAX { 0 } else { count };
            self.core.handle(key, Event::Sent(count), self.now);
        }
    }

    fn await_deferred_responses(&mut self, key: Key) {
        for _ in 0..if self.is_stepped { 0 } else { 5 } {
            let busy = !self.is_closed(key) && !self.core.wants_read(key);
            if !busy || self.core.deferred() == 0 {
                return;
            }
            self.pass(Duration::from_secs(1));
        }
    }

    /// One turn of the jobs that wait; the clients that were to be sent something.
    pub fn step(&mut self) -> Vec<Key> {
        self.core.work(self.now);
        self.act()
    }

    /// Does what the core asks for, to the last of its jobs.
    fn settle(&mut self) {
        self.act();
        while self.core.has_work() && !self.is_stepped {
            self.step();
        }
    }

    /// Does what the core asks for now; the clients that were to be sent something.
    fn act(&mut self) -> Vec<Key> {
        let mut flushed = Vec::new();
        loop {
            match self.core.poll_action() {
                Some(Action::Connect(key, _)) => {
                    let broken = Broken::Io(ErrorKind::ConnectionRefused);
                    self.core.handle(key, Event::Failed(&broken), self.now);
                }
                Some(Action::Flush(key)) => {
                    flushed.push(key);
                    self.take(key);
                }
                Some(Action::Finish(key)) => {
                    if let Some(client) = self.clients.get_mut(&key) {
                        client.shut = true;
                    }
                }
                Some(Action::Close(key)) => {
                    if let Some(client) = self.clients.get_mut(&key) {
                        client.closed = true;
                    }
                    self.core.closed(key);
                }
                Some(Action::Secure(..) | Action::Resolve { .. } | Action::Store(_)) => {
                    panic!("the exchange is an address, and there is no file")
                }
                None => return flushed,
            }
        }
    }
}

/// The strong tag in an answer's head.
pub fn tag_in(answer: &str) -> Vec<u8> {
    let tag = answer.lines().find_map(|line| line.strip_prefix("ETag: "));
    tag.expect("the answer has a tag").as_bytes().to_vec()
}
