//! The whole core between two exchanges and any number of clients, in virtual time and without a
//! socket. Who moves next is up to chance: the work of the core is done slice by slice, and between
//! two slices anything may happen that may happen between two turns of the loop.

use crate::support::Rng;
use crate::support::message::{MessageHead, field, parse_head};
use crate::tags::exchange::Exchange;
use marketd::config::{Config, Data, Depth, Poll, SourceConfig, Url};
use marketd::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

/// 2024-05-15 10:37:05.
const BEGIN_MS: i64 = 1_715_769_425_000;

/// See the module's page.
pub struct World {
    pub core: Core,
    pub exchanges: Vec<Exchange>,
    pub rng: Rng,
    mono_us: u64,
    mail: BTreeMap<(u64, u64), (Key, Mail)>,
    posted: u64,
    upstream: HashMap<Key, Upstream>,
    clients: HashMap<Key, Client>,
    /// Responses that have arrived whole.
    pub answered: Vec<Answered>,
    /// Lists of markets that were sent.
    pub lists: usize,
}

struct Upstream {
    source: usize,
    request: Vec<u8>,
}

struct Client {
    asked: Asked,
    got: Vec<u8>,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Asked {
    pub head_only: bool,
    pub target: String,
    /// The tag that it says it has.
    pub has: Option<String>,
    pub takes_gzip: bool,
}

/// A request and its response.
pub struct Answered {
    pub asked: Asked,
    pub status: u16,
    head: MessageHead,
    pub body: Vec<u8>,
}

enum Mail {
    Connected,
    Refused,
    Bytes(Vec<u8>),
    Eof,
}

impl Answered {
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head.fields, name)
    }
}

/// Two sources of so many markets, of which the first is followed in all intervals.
pub fn config(pause: Duration) -> Config {
    let source = |id: &str, host: &str| SourceConfig {
        id: id.to_string(),
        url: Some(Url::parse(host).expect("an address")),
        symbols: vec!["M000/USDT".to_string(), "M001/USDT".to_string()],
        quote_assets: vec!["USDT".to_string()],
        poll: Poll::Every(pause),
        stale_after: 2 * pause,
        frozen_after: 20 * pause,
        ..SourceConfig::new("binance")
    };
    let mut config = Config {
        sources: vec![source("one", "http://192.0.2.1:80"), source("two", "http://192.0.2.2:80")],
        data: Data::Memory,
        ..Config::default()
    };
    let depth = |keep| Depth { keep, backfill: 100 };
    config.history.m1 = depth(2000);
    config.history.h1 = depth(500);
    config.history.d1 = depth(200);
    config
}

impl World {
    pub fn new(config: Config, exchanges: Vec<Exchange>, rng: Rng) -> World {
        let now = Now { mono: Mono(0), unix: UnixMs(BEGIN_MS) };
        let mut world = World {
            core: Core::new(config, None, ProcessFacts::default, 7, now),
            exchanges,
            rng,
            mono_us: 0,
            mail: BTreeMap::new(),
            posted: 0,
            upstream: HashMap::new(),
            clients: HashMap::new(),
            answered: Vec::new(),
            lists: 0,
        };
        world.act();
        world
    }

    pub fn now_ms(&self) -> i64 {
        BEGIN_MS + self.mono_us as i64 / 1000
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.mono_us), unix: UnixMs(self.now_ms()) }
    }

    /// One slice of work, where there is some; else time goes on to what comes next, at most so
    /// far.
    pub fn step(&mut self, longest: Duration) {
        if self.core.has_work() && !self.rng.chance(1, 8) {
            self.core.work(self.now());
            return self.act();
        }
        let timer = self.core.poll_timeout().map(|at| at.0);
        let mail = self.mail.keys().next().map(|(at, _)| *at);
        let next = [timer, mail].into_iter().flatten().min();
        // Nobody sleeps while there is work.
        let longest = match self.core.has_work() {
            true => longest.min(Duration::from_secs(1)),
            false => longest,
        };
        let most = self.mono_us + longest.as_micros() as u64;
        self.mono_us = next.map_or(most, |next| next.clamp(self.mono_us, most));
        if let Some(entry) = self.mail.first_entry()
            && entry.key().0 <= self.mono_us
        {
            let (key, mail) = entry.remove();
            self.deliver(key, mail);
        }
        self.core.handle_timeout(self.now());
        self.act();
    }

    /// Does all that is to be done until then.
    pub fn pass(&mut self, span: Duration) {
        let until = self.mono_us + span.as_micros() as u64;
        while self.mono_us < until || self.core.has_work() {
            let left = until.saturating_sub(self.mono_us);
            self.step(Duration::from_micros(left.max(1)));
        }
    }

    /// A client asks. Its response may come later: [`World::answered`].
    pub fn ask(&mut self, asked: Asked) {
        let now = self.now();
        let key = self.core.accept(None, Service::Both, now).expect("there is room");
        let method = if asked.head_only { "HEAD" } else { "GET" };
        let mut request =
            format!("{method} {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", asked.target);
        if let Some(tag) = &asked.has {
            request += &format!("If-None-Match: {tag}\r\n");
        }
        if asked.takes_gzip {
            request += "Accept-Encoding: gzip\r\n";
        }
        request += "\r\n";
        let got = Vec::new();
        self.clients.insert(key, Client { asked, got });
        self.core.handle(key, Event::Received(request.as_bytes()), now);
        self.pump(key);
        self.act();
    }

    /// Asks, and waits for the response.
    pub fn get(&mut self, target: &str) -> Answered {
        self.ask(Asked {
            head_only: false,
            target: target.to_string(),
            has: None,
            takes_gzip: false,
        });
        for _ in 0..10_000 {
            let is_it = |it: &Answered| it.asked.target == target;
            if let Some(at) = self.answered.iter().position(is_it) {
                return self.answered.remove(at);
            }
            self.step(Duration::from_millis(10));
        }
        panic!("{target} is not answered");
    }

    /// Does what the core asks for.
    fn act(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Connect(key, address) => self.connect(key, address),
                Action::Flush(key) => self.pump(key),
                Action::Finish(key) => {
                    if self.clients.contains_key(&key) {
                        self.core.handle(key, Event::Eof, self.now());
                    }
                }
                Action::Close(key) => {
                    self.upstream.remove(&key);
                    if let Some(client) = self.clients.remove(&key) {
                        self.answered.push(read(client));
                    }
                    self.core.closed(key);
                }
                Action::Secure(..) | Action::Resolve { .. } | Action::Store(_) => {
                    panic!("the exchanges are addresses, and there is no file")
                }
            }
        }
    }

    fn connect(&mut self, key: Key, address: SocketAddr) {
        let source = usize::from(address.ip().to_string().ends_with(".2.2"));
        let request = Vec::new();
        self.upstream.insert(key, Upstream { source, request });
        let mail = match self.exchanges[source].is_up {
            true => Mail::Connected,
            false => Mail::Refused,
        };
        self.post(key, mail);
    }

    /// Takes what the core has for one connection.
    fn pump(&mut self, key: Key) {
        loop {
            let bytes = self.core.outgoing(key).to_vec();
            if bytes.is_empty() {
                return;
            }
            if let Some(client) = self.clients.get_mut(&key) {
                client.got.extend_from_slice(&bytes);
            } else if let Some(upstream) = self.upstream.get_mut(&key) {
                upstream.request.extend_from_slice(&bytes);
            }
            self.core.handle(key, Event::Sent(bytes.len()), self.now());
            self.serve(key);
        }
    }

    /// The exchange's side of a connection.
    fn serve(&mut self, key: Key) {
        let Some(upstream) = self.upstream.get_mut(&key) else {
            return;
        };
        let head = parse_head(&upstream.request).expect("a request is well formed");
        let Some((head, _)) = head else { return };
        upstream.request.clear();
        let exchange = &self.exchanges[upstream.source];
        if !exchange.is_up {
            return self.post(key, Mail::Eof);
        }
        let target = head.first_line.split(' ').nth(1).expect("a target");
        let body = exchange.answer(target, self.now_ms());
        self.lists += usize::from(target.contains("exchangeInfo"));
        let length = body.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n\
             {body}"
        );
        self.post(key, Mail::Bytes(response.into_bytes()));
    }

    fn post(&mut self, key: Key, mail: Mail) {
        self.posted += 1;
        let flight = 5_000 + self.rng.below(100_000);
        self.mail.insert((self.mono_us + flight, self.posted), (key, mail));
    }

    fn deliver(&mut self, key: Key, mail: Mail) {
        if !self.upstream.contains_key(&key) {
            return;
        }
        let now = self.now();
        match mail {
            Mail::Connected => self.core.handle(key, Event::Connected, now),
            Mail::Refused => {
                let broken = Broken::Io(ErrorKind::ConnectionRefused);
                self.core.handle(key, Event::Failed(&broken), now);
            }
            Mail::Eof => self.core.handle(key, Event::Eof, now),
            Mail::Bytes(bytes) => {
                for piece in bytes.chunks(16 * 1024) {
                    self.core.handle(key, Event::Received(piece), now);
                }
            }
        }
        self.pump(key);
    }
}

fn read(client: Client) -> Answered {
    let head = parse_head(&client.got).expect("a response is well formed");
    let (head, used) = head.unwrap_or_else(|| panic!("no response to {:?}", client.asked));
    let status = head.first_line.split(' ').nth(1);
    Answered {
        asked: client.asked,
        status: status.and_then(|it| it.parse().ok()).expect("a status"),
        body: client.got[used..].to_vec(),
        head,
    }
}
