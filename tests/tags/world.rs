//! Two exchanges, and clients that ask whenever chance wants: also between two slices of the core's long
//! work.

use crate::support::Rng;
use crate::tags::exchange::Exchange;
use crate::virtual_time::{Answer, Peers, Request, Response, VirtualTime};
use marketd::config::{Config, Data, Depth, Poll, SourceConfig, Url};
use marketd::core::{Core, ProcessFacts};
use marketd::table::Key;
use std::net::SocketAddr;
use std::time::Duration;

/// 2024-05-15 10:37:05.
const BEGIN_MS: i64 = 1_715_769_425_000;

/// See the module's page.
pub struct World {
    pub time: VirtualTime<Exchanges>,
    pub rng: Rng,
    /// Requests without an answer so far.
    asked: Vec<(Key, Asked)>,
}

/// Both exchanges.
pub struct Exchanges {
    pub all: Vec<Exchange>,
    /// Lists of markets that were sent.
    pub lists: usize,
    rng: Rng,
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
    pub fn new(config: Config, all: Vec<Exchange>, rng: Rng) -> World {
        let peers = Exchanges { all, lists: 0, rng: rng.clone() };
        let core = |now| Core::new(config, None, ProcessFacts::default, 7, now);
        let mut time = VirtualTime::begin(peers, (BEGIN_MS, 0), core);
        time.is_in_slices = true;
        World { time, rng, asked: Vec::new() }
    }

    /// Goes on to what happens next, at most so far. Returns what was answered.
    pub fn step(&mut self, longest: Duration) -> Vec<(Asked, Answer)> {
        if self.time.core.has_work() && self.rng.chance(1, 8) {
            self.time.us += self.rng.below(100_000);
        }
        self.time.step(self.time.us + longest.as_micros() as u64);
        let time = &mut self.time;
        let mut answered = Vec::new();
        self.asked.retain(|(key, asked)| match time.answer_to(*key) {
            Some(answer) => {
                answered.push((asked.clone(), answer));
                false
            }
            None => true,
        });
        answered
    }

    /// A client asks. [`World::step`] returns its answer.
    pub fn ask(&mut self, asked: Asked) {
        let method = if asked.head_only { "HEAD" } else { "GET" };
        let has = asked.has.as_ref().map(|tag| format!("If-None-Match: {tag}\r\n"));
        let packed = if asked.takes_gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let fields = has.unwrap_or_default() + packed;
        let key = self.time.ask_with(method, &asked.target, &fields);
        self.asked.push((key, asked));
    }
}

impl Peers for Exchanges {
    fn takes_connection(&mut self, address: SocketAddr, _: u64) -> bool {
        self.all[place(address)].is_up
    }

    fn flight_us(&mut self) -> u64 {
        5_000 + self.rng.below(100_000)
    }

    fn answer(&mut self, request: &Request, us: u64) -> Response {
        let exchange = &self.all[place(request.address)];
        if !exchange.is_up {
            return Response::End;
        }
        self.lists += usize::from(request.target.contains("exchangeInfo"));
        let body = exchange.answer(&request.target, BEGIN_MS + (us / 1000) as i64);
        Response::new(200, "Content-Type: application/json\r\n", &body)
    }
}

/// Which of the exchanges has this address.
fn place(address: SocketAddr) -> usize {
    usize::from(address.ip().to_string().ends_with(".2.2"))
}
