//! The whole core beside one fake exchange, in virtual time. A message takes a while, another one each time, so
//! requests of several connections may bunch or overtake each other on their way, as they do in a network.

use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::support::*;
use crate::virtual_time::{Peers, Request, Response, VirtualTime};
use marketd::config::{Config, Data, Poll, SourceConfig, Url};
use marketd::core::{Core, ProcessFacts};
use std::net::SocketAddr;
use std::time::Duration;

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
pub type World = VirtualTime<Shopkeeper>;

/// The exchange, and what it has seen.
pub struct Shopkeeper {
    pub fake: &'static Fake,
    pub shop: Shop,
    pub weather: Weather,
    pub ledger: Ledger,
    /// When each request came in, and what it asked for.
    pub asked: Vec<(u64, String)>,
    /// Bytes and units of each of them, if it was answered.
    pub costs: Vec<(u64, u32)>,
    /// Units that another program spends, as the exchange counts them.
    pub others: u32,
    rng: Rng,
    begin_ms: i64,
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
    pub fn of(fake: &'static Fake, shop: Shop, sources: Vec<SourceConfig>, seed: u64) -> World {
        let config = Config { sources, data: Data::Memory, ..Config::default() };
        World::with(fake, shop, config, seed)
    }

    /// The same with this configuration.
    pub fn with(fake: &'static Fake, shop: Shop, mut config: Config, seed: u64) -> World {
        for source in &mut config.sources {
            source.url = Some(Url::parse("http://192.0.2.1:80").expect("an address"));
        }
        let begin_ms = shop.now;
        let shopkeeper = Shopkeeper {
            fake,
            shop,
            weather: Weather::Fair,
            ledger: Ledger::default(),
            asked: Vec::new(),
            costs: Vec::new(),
            others: 0,
            rng: Rng::new(seed),
            begin_ms,
        };
        let core = |now| Core::new(config, None, ProcessFacts::default, seed, now);
        VirtualTime::begin(shopkeeper, (begin_ms, 0), core)
    }

    /// How many requests with these words came in since then.
    pub fn count(&self, words: &str, since_us: u64) -> usize {
        let is_meant = |(at, target): &&(u64, String)| *at >= since_us && target.contains(words);
        self.asked.iter().filter(is_meant).count()
    }

    /// The answer to a target that is answered at once.
    pub fn at_once(&mut self, target: &str) -> client::Response {
        let key = self.ask_for(target);
        self.answer_to(key)
            .unwrap_or_else(|| panic!("{target} of {} is not at hand", self.fake.name))
    }

    /// The body of it.
    pub fn get(&mut self, target: &str) -> Json {
        self.at_once(target).exact()
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
            self.cut_all();
        }
        self.weather = weather;
    }
}

impl Peers for Shopkeeper {
    fn takes_connection(&mut self, _: SocketAddr, _: u64) -> bool {
        !matches!(self.weather, Weather::Gone)
    }

    fn flight_us(&mut self) -> u64 {
        self.rng.between(FLIGHT_US.0, FLIGHT_US.1) as u64
    }

    /// What reaches it counts, whatever it does then, and also when nobody waits for the answer any more.
    fn answer(&mut self, request: &Request, us: u64) -> Response {
        if matches!(self.weather, Weather::Gone) {
            return Response::Silence;
        }
        let asked = Asked::of(&request.target);
        let charge = self.fake.charge(&asked);
        let units = self.ledger.enter(&charge, us, &asked.target) + self.others;
        self.asked.push((us, asked.target.clone()));
        self.costs.push((0, charge.units));
        self.shop.now = self.begin_ms + (us / 1000) as i64;
        let reply = match &self.weather {
            Weather::AnswersTo(words, reply) if asked.target.contains(words) => reply.clone(),
            Weather::Fair | Weather::AnswersTo(..) => self.fake.answer(&self.shop, &asked),
            Weather::Answers(replies) => self.rng.pick(replies).clone(),
            Weather::Cut => return Response::End,
            Weather::Silent | Weather::Gone => return Response::Silence,
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
        Response::Message { bytes, slow_us: 0 }
    }
}
