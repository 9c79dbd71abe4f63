//! The whole core beside one fake exchange, without a socket and without a clock.
//!
//! [`World::run_to`] goes from event to event: what the core waits for, what arrives at either
//! end. A message takes a while, another one each time, so requests of several connections may
//! bunch or overtake each other on their way, as they do in a network.

use crate::fakes::ledger::Ledger;
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::support::message::parse_head;
use crate::support::*;
use marketd::config::{Config, Data, Poll, SourceConfig, Url};
use marketd::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// A message takes so many microseconds, at least and at most.
const FLIGHT_US: (i64, i64) = (10_000, 60_000);

/// What the exchange does with a request.
#[derive(Clone, Debug)]
pub enum Weather {
    /// Answers it.
    Fair,
    /// Takes no connection, and has cut those that stood.
    Gone,
    /// Says nothing.
    Silent,
    /// Closes the connection in place of an answer.
    Cut,
    /// Answers one of these, by turns.
    Answers(Vec<Reply>),
    /// Answers this where the target has these words, and is fair elsewhere.
    AnswersTo(&'static str, Reply),
}

/// See the module's page.
pub struct World {
    pub core: Core,
    pub fake: &'static Fake,
    pub shop: Shop,
    pub weather: Weather,
    pub ledger: Ledger,
    /// By an exchange's `Retry-After`, nothing may be asked before.
    pub quiet_until: u64,
    /// When each request came in, and what it asked for.
    pub asked: Vec<(u64, String)>,
    /// Bytes and units of each of them, if it was answered.
    pub costs: Vec<(u64, u32)>,
    /// Units that another program spends, as the exchange counts them.
    pub others: u32,
    rng: Rng,
    mono_us: u64,
    begin_ms: i64,
    mail: BTreeMap<(u64, u64), Mail>,
    posted: u64,
    links: HashMap<Key, Link>,
    /// Answers to clients that are complete.
    answers: HashMap<Key, Vec<u8>>,
}

#[derive(Default)]
struct Link {
    is_client: bool,
    connected: bool,
    /// What the core has sent: on its way to the exchange, or read by the client.
    outbox: Vec<u8>,
    /// The last message on it arrives then: none overtakes another on one connection.
    busy_until: u64,
}

enum Mail {
    Connected(Key),
    Refused(Key),
    /// At the exchange.
    Request(Key, Asked),
    /// At the core.
    Answer {
        key: Key,
        bytes: Vec<u8>,
        /// By its `Retry-After`.
        quiet_us: u64,
    },
    Eof(Key),
}

impl World {
    /// A core that has just been started, and follows these symbols of a fake with some markets.
    pub fn new(fake: &'static Fake, shop: Shop, poll: Duration, seed: u64) -> World {
        let symbols = shop.markets().iter().map(|market| market.symbol());
        let source = SourceConfig {
            symbols: symbols.collect(),
            poll: Poll::Every(poll),
            ..SourceConfig::new(fake.name)
        };
        World::of(fake, shop, vec![source], seed)
    }

    /// The same of these sources, all of them at the one exchange.
    pub fn of(fake: &'static Fake, shop: Shop, mut sources: Vec<SourceConfig>, seed: u64) -> World {
        for source in &mut sources {
            source.url = Some(Url::parse("http://192.0.2.1:80").expect("an address"));
        }
        let config = Config { sources, data: Data::Memory, ..Config::default() };
        World::with(fake, shop, config, seed)
    }

    /// The same with this configuration.
    pub fn with(fake: &'static Fake, shop: Shop, config: Config, seed: u64) -> World {
        let begin_ms = shop.now;
        let now = Now { mono: Mono(0), unix: UnixMs(begin_ms) };
        World {
            core: Core::new(config, None, ProcessFacts::default, seed, now),
            fake,
            shop,
            weather: Weather::Fair,
            ledger: Ledger::default(),
            quiet_until: 0,
            asked: Vec::new(),
            costs: Vec::new(),
            others: 0,
            rng: Rng::new(seed),
            mono_us: 0,
            begin_ms,
            mail: BTreeMap::new(),
            posted: 0,
            links: HashMap::new(),
            answers: HashMap::new(),
        }
    }

    pub fn now_us(&self) -> u64 {
        self.mono_us
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.mono_us), unix: UnixMs(self.begin_ms + self.mono_us as i64 / 1000) }
    }

    /// Lets everything happen that happens until then.
    pub fn run_to(&mut self, until_us: u64) {
        self.settle();
        loop {
            let timer = self.core.poll_timeout().map(|at| at.0.max(self.mono_us));
            let mail = self.mail.keys().next().map(|(at, _)| *at);
            let next = [timer, mail].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until_us) else {
                self.mono_us = until_us;
                return;
            };
            self.mono_us = next;
            while let Some(entry) = self.mail.first_entry()
                && entry.key().0 <= self.mono_us
            {
                let mail = entry.remove();
                self.deliver(mail);
            }
            self.core.handle_timeout(self.now());
            self.settle();
        }
    }

    /// How many requests with these words came in since then.
    pub fn count(&self, words: &str, since_us: u64) -> usize {
        let is_meant = |(at, target): &&(u64, String)| *at >= since_us && target.contains(words);
        self.asked.iter().filter(is_meant).count()
    }

    /// The body of an address that is answered at once.
    pub fn get(&mut self, target: &str) -> Json {
        let key = self.ask(target);
        let (_, body) = self.answer(key).expect("it is answered at once");
        Json::parse(&body).expect("it is JSON")
    }

    /// The reasons of `/health` but those of the start.
    pub fn reasons(&mut self) -> Vec<String> {
        let health = self.get("/health");
        let codes = health["reasons"].items().iter().map(|it| it["code"].text().expect("a code"));
        codes.filter(|code| !code.ends_with("starting")).map(str::to_string).collect()
    }

    /// Changes the weather; connections are cut where it takes them along.
    pub fn set_weather(&mut self, weather: Weather) {
        if matches!(weather, Weather::Gone) {
            let open: Vec<Key> = self.links.keys().copied().collect();
            for key in open {
                if !self.links[&key].is_client {
                    self.post(key, Mail::Eof(key));
                }
            }
        }
        self.weather = weather;
    }

    /// Asks as a client. The answer may come later: see [`World::answer`].
    pub fn ask(&mut self, target: &str) -> Key {
        let now = self.now();
        let key = self.core.accept(None, Service::Both, now).expect("there is room");
        self.links.insert(key, Link { is_client: true, connected: true, ..Link::default() });
        let request = format!("GET {target} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
        self.core.handle(key, Event::Received(request.as_bytes()), now);
        self.pump(key);
        self.settle();
        key
    }

    /// The answer to a client, once it is complete: status and body.
    pub fn answer(&mut self, key: Key) -> Option<(u16, String)> {
        let bytes = self.answers.remove(&key)?;
        let (head, used) = parse_head(&bytes).ok()??;
        let status = head.first_line.split(' ').nth(1)?.parse().ok()?;
        Some((status, String::from_utf8(bytes[used..].to_vec()).ok()?))
    }

    fn settle(&mut self) {
        loop {
            let now = self.now();
            match self.core.poll_action() {
                Some(Action::Connect(key, _)) => {
                    self.links.insert(key, Link::default());
                    let mail = match self.weather {
                        Weather::Gone => Mail::Refused(key),
                        _ => Mail::Connected(key),
                    };
                    self.post(key, mail);
                }
                Some(Action::Secure(..)) => panic!("nothing here speaks TLS"),
                Some(Action::Store(_)) => panic!("no history is kept here"),
                Some(Action::Flush(key)) => self.pump(key),
                Some(Action::Finish(key)) => {
                    if self.links.get(&key).is_some_and(|link| link.is_client) {
                        self.core.handle(key, Event::Eof, now);
                    }
                }
                Some(Action::Close(key)) => {
                    if let Some(link) = self.links.remove(&key)
                        && link.is_client
                    {
                        self.answers.insert(key, link.outbox);
                    }
                    self.core.closed(key);
                }
                Some(Action::Resolve(look_up)) => panic!("{look_up:?} is of an address"),
                None if self.core.has_work() => self.core.work(now),
                None => return,
            }
        }
    }

    /// Takes what the core has to send on a connection.
    fn pump(&mut self, key: Key) {
        let now = self.now();
        let Some(link) = self.links.get_mut(&key).filter(|link| link.connected) else {
            return;
        };
        let bytes = self.core.outgoing(key).to_vec();
        if bytes.is_empty() {
            return;
        }
        link.outbox.extend_from_slice(&bytes);
        self.core.handle(key, Event::Sent(bytes.len()), now);
        let link = self.links.get_mut(&key).expect("closes come by actions");
        if link.is_client {
            return self.pump(key);
        }
        let parsed = parse_head(&link.outbox).expect("a request is well formed");
        let Some((head, used)) = parsed else { return };
        assert_eq!(used, link.outbox.len(), "one request at a time");
        link.outbox.clear();
        let mut words = head.first_line.split(' ').map(str::to_string);
        let asked = Asked {
            peer: None,
            at: Instant::now(),
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            fields: head.fields,
        };
        assert!(
            self.mono_us >= self.quiet_until,
            "{} is asked at {} us, and nothing may be before {}",
            asked.target,
            self.mono_us,
            self.quiet_until
        );
        self.post(key, Mail::Request(key, asked));
    }

    fn post(&mut self, key: Key, mail: Mail) {
        let flight = self.rng.between(FLIGHT_US.0, FLIGHT_US.1) as u64;
        let Some(link) = self.links.get_mut(&key) else {
            return;
        };
        link.busy_until = (self.mono_us + flight).max(link.busy_until);
        self.posted += 1;
        self.mail.insert((link.busy_until, self.posted), mail);
    }

    fn deliver(&mut self, mail: Mail) {
        let now = self.now();
        match mail {
            Mail::Connected(key) => {
                if let Some(link) = self.links.get_mut(&key) {
                    link.connected = true;
                    self.core.handle(key, Event::Connected, now);
                    self.pump(key);
                }
            }
            Mail::Refused(key) => {
                let broken = Broken::Io(ErrorKind::ConnectionRefused);
                let event = Event::Failed(&broken);
                self.core.handle(key, event, now);
            }
            Mail::Request(key, asked) => self.serve(key, &asked),
            Mail::Answer { key, bytes, quiet_us } => {
                if quiet_us > 0 && self.links.contains_key(&key) {
                    self.quiet_until = self.quiet_until.max(self.mono_us + quiet_us);
                }
                // In pieces, as they come from a socket.
                for piece in bytes.chunks(16 * 1024) {
                    self.core.handle(key, Event::Received(piece), now);
                    self.settle();
                }
            }
            Mail::Eof(key) => self.core.handle(key, Event::Eof, now),
        }
        self.settle();
    }

    /// The exchange's side. What reaches it counts, whatever it does then, and also when nobody
    /// waits for the answer any more.
    fn serve(&mut self, key: Key, asked: &Asked) {
        if matches!(self.weather, Weather::Gone) {
            return;
        }
        let charge = (self.fake.charge)(asked);
        let units = self.ledger.enter(&charge, self.mono_us, &asked.target) + self.others;
        self.asked.push((self.mono_us, asked.target.clone()));
        self.costs.push((0, charge.units));
        self.shop.now = self.now().unix.0;
        let reply = match &self.weather {
            Weather::AnswersTo(words, reply) if asked.target.contains(words) => reply.clone(),
            Weather::Fair | Weather::AnswersTo(..) => self.fake.answer(&self.shop, asked),
            Weather::Answers(replies) => self.rng.pick(replies).clone(),
            Weather::Cut => return self.post(key, Mail::Eof(key)),
            Weather::Silent | Weather::Gone => return,
        };
        let reply = match self.fake.name {
            "binance" => reply.field("X-MBX-USED-WEIGHT-1M", &units.to_string()),
            "kucoin" => {
                let left = charge.most.saturating_sub(units);
                reply.field("gw-ratelimit-remaining", &left.to_string())
            }
            _ => reply,
        };
        let mut bytes = reply.head(false).into_bytes();
        bytes.extend_from_slice(&reply.body.to_vec());
        self.costs.last_mut().expect("it has been noted").0 = bytes.len() as u64;
        let retry_after = reply.fields.iter().find(|(name, _)| name == "Retry-After");
        let seconds = retry_after.map_or(0, |(_, text)| text.parse().expect("whole seconds"));
        let quiet_us = seconds * 1_000_000;
        let mail = Mail::Answer { key, bytes, quiet_us };
        self.post(key, mail);
    }
}
