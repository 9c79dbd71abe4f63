//! Compares the time to decode and apply a poll with the time that serde_json takes to read its
//! body.
//!
//!     scripts/ingest.sh
//!
//! It measures twice: with all markets tracked, and with only those of one quote asset.
//!
//! First only the decoder reads the body, in slices of 16 KiB: it reads every number of a tracked ticker
//! exactly. Then the core gets the answer of an exchange with many made-up markets, in the same slices as
//! from its driver, and does all the work that follows: framing, reading, decimals, rejects, and storing the
//! quotes. Prices have moved since the previous poll. The reference reads the whole body from memory into a
//! list of structs whose texts are borrowed and whose prices stay texts. A program that reads JSON with serde
//! can hardly do less. The two run alternately on one thread, whose processor time is measured. There is no
//! network.

#[path = "../tests/support/mod.rs"]
mod support;

use marketd::config::{Config, Data, SourceConfig, Url};
use marketd::core::{Action, Core, Event, ProcessFacts, Service};
use marketd::exchange::{Call, Dialect, Reading, Reject, Sink};
use marketd::record::{Candle, MarketInfo, Ticker};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;
use support::generated::{Generated, GeneratedMarket};

/// The number of markets of the largest exchange.
const TICKERS: usize = 3500;

/// Polls that are measured. Some polls before them are not.
const ROUNDS: usize = 40;
const WARM_UP: usize = 5;

/// The number of bytes that the driver hands over at a time.
const SLICE: usize = 16 * 1024;

/// 2026-01-01.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// One ticker with all its members, as serde_json reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are read for the reading's sake")]
struct Texts<'a> {
    symbol: &'a str,
    price_change: &'a str,
    price_change_percent: &'a str,
    weighted_avg_price: &'a str,
    prev_close_price: &'a str,
    last_price: &'a str,
    last_qty: &'a str,
    bid_price: &'a str,
    bid_qty: &'a str,
    ask_price: &'a str,
    ask_qty: &'a str,
    open_price: &'a str,
    high_price: &'a str,
    low_price: &'a str,
    volume: &'a str,
    quote_volume: &'a str,
    open_time: i64,
    close_time: i64,
    first_id: i64,
    last_id: i64,
    count: i64,
}

/// What is tracked: the quote assets, and the limits of the decoder and the core, in hundredths of the
/// reference.
const CASES: [(&str, [u128; 2]); 2] = [("*", [80, 125]), ("USDT", [40, 55])];

fn main() -> ExitCode {
    let results = CASES.map(|(quote, limit)| measure(quote, limit));
    ExitCode::from(u8::from(results.contains(&false)))
}

/// Measures polls with the markets of this quote asset tracked. Returns true if they are within the limit.
fn measure(quote: &str, limits: [u128; 2]) -> bool {
    let market = Generated::new(TICKERS, 1);
    let mut decoded = Vec::with_capacity(ROUNDS);
    let mut ours = Vec::with_capacity(ROUNDS);
    let mut theirs = Vec::with_capacity(ROUNDS);
    let mut poll = Poll::new(&market, quote);
    let is_tracked = |it: &&GeneratedMarket| quote == "*" || it.quote == quote;
    let tracked = market.markets().iter().filter(is_tracked).count();
    let mut bytes = 0;
    for round in 0..WARM_UP + ROUNDS {
        let body = poll.next_body(&market);
        bytes = body.len();
        let alone = decode(&body, quote, tracked);
        let took = poll.take_in(&body);
        let reference = read_with_serde(&body);
        if round >= WARM_UP {
            decoded.push(alone);
            ours.push(took);
            theirs.push(reference);
        }
    }
    let expected = format!("\"collected\":{}", tracked * (WARM_UP + ROUNDS));
    let metrics = poll.ask("/api/v1/metrics");
    if !metrics.contains(&expected) {
        eprintln!("not every ticker was applied: {metrics}");
        return false;
    }
    println!(
        "{tracked} of {TICKERS} tickers tracked, {bytes} bytes, {ROUNDS} polls each, in turn.\n"
    );
    report(limits, [&mut decoded, &mut ours], &mut theirs)
}

/// Prints the table, with the ratios of the medians. Returns true if they are within the limits.
fn report(limits: [u128; 2], ours: [&mut [Duration]; 2], theirs: &mut [Duration]) -> bool {
    println!("| | processor, microseconds a poll | nanoseconds a ticker | lowest..highest |");
    println!("|---|---:|---:|---|");
    let row = |name: &str, times: &mut [Duration]| {
        times.sort_unstable();
        let median = times[times.len() / 2];
        let each = median.as_nanos() / TICKERS as u128;
        let (least, most) = (times[0].as_micros(), times[times.len() - 1].as_micros());
        let poll = median.as_micros();
        println!("| {name} | {poll} | {each} | {least}..{most} |");
        median.as_nanos()
    };
    let [decoded, applied] = ours;
    let decoded = row("marketd, decoded", decoded);
    let applied = row("marketd, decoded and applied", applied);
    let theirs = row("serde_json, into structs", theirs);
    let ratios = [decoded, applied].map(|it| it * 100 / theirs);
    let text = |hundredths: u128| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    for (limit, ratio) in limits.into_iter().zip(ratios) {
        let verdict = if ratio > limit { ": too much" } else { "" };
        println!("\nratio {}, at most {}{verdict}", text(ratio), text(limit));
    }
    println!();
    limits.into_iter().zip(ratios).all(|(limit, ratio)| ratio <= limit)
}

/// The processor time of this thread, without that of others.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn read_with_serde(body: &str) -> Duration {
    let begin = processor_time();
    let list: Vec<Texts<'_>> = serde_json::from_str(black_box(body)).expect("the body is JSON");
    let took = processor_time() - begin;
    assert_eq!(black_box(list).len(), TICKERS);
    took
}

/// Accepts the tickers of the markets with a quote asset.
struct Tickers<'q> {
    quote: &'q str,
    count: usize,
}

impl Sink for Tickers<'_> {
    fn wants(&mut self, ticker_id: &str) -> bool {
        self.quote == "*" || ticker_id.ends_with(self.quote)
    }
    fn ticker(&mut self, _: &str, ticker: Ticker) {
        self.count += 1;
        drop(black_box(ticker));
    }
    fn candle(&mut self, _: Candle, _: bool) {}
    fn market(&mut self, _: MarketInfo) {}
    fn time(&mut self, _: UnixMs) {}
    fn rejected(&mut self, _: Reject<'_>) {}
}

/// Reads the tickers as the core does, and discards them. Returns how long that took.
fn decode(body: &str, quote: &str, expected: usize) -> Duration {
    let dialect = Dialect::by_name("binance").expect("it is built in");
    let item_bytes = Config::default().limits.upstream_item_bytes;
    let mut tickers = Tickers { quote, count: 0 };
    let begin = processor_time();
    let mut reading = Reading::new(dialect, &Call::Tickers, item_bytes);
    for slice in black_box(body).as_bytes().chunks(SLICE) {
        reading.feed(slice, &mut tickers).expect("the body is sound");
    }
    reading.finish(200).expect("the body is whole");
    let took = processor_time() - begin;
    assert_eq!(tickers.count, expected);
    took
}

/// A core with one source, and its time.
struct Poll {
    core: Core,
    now: Now,
    /// The connection that requests tickers, as soon as there is one.
    asking: Option<Key>,
    info: String,
}

impl Poll {
    fn new(market: &Generated, quote: &str) -> Poll {
        let source = SourceConfig {
            url: Url::parse("http://127.0.0.1:1").ok(),
            quote_assets: vec![quote.to_string()],
            ..SourceConfig::new("binance")
        };
        let config = Config { sources: vec![source], data: Data::Memory, ..Config::default() };
        let now = Now { mono: Mono(1_000_000), unix: UnixMs(BEGIN_MS) };
        Poll {
            core: Core::new(config, None, ProcessFacts::default, 1, now),
            now,
            asking: None,
            info: market.exchange_info(BEGIN_MS),
        }
    }

    /// Lets time pass until tickers are requested, and returns their body.
    fn next_body(&mut self, market: &Generated) -> String {
        while self.asking.is_none() {
            self.now.mono = self.now.mono + Duration::from_millis(100);
            self.now.unix = self.now.unix + 100;
            self.core.handle_timeout(self.now);
            self.carry_out();
        }
        market.tickers(self.now.unix.0)
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Connect(key, _) => {
                    self.core.handle(key, Event::Connected, self.now);
                    self.answer(key);
                }
                Action::Flush(key) => self.answer(key),
                Action::Close(key) => self.core.closed(key),
                _ => {}
            }
        }
    }

    /// Answers the request of a connection; a request for tickers is answered later.
    fn answer(&mut self, key: Key) {
        let request = self.core.outgoing(key).to_vec();
        if request.is_empty() {
            return;
        }
        self.core.handle(key, Event::Sent(request.len()), self.now);
        let asks = |path: &str| request.starts_with(format!("GET {path}").as_bytes());
        if asks("/api/v3/ticker/24hr") {
            self.asking = Some(key);
        } else if asks("/api/v3/exchangeInfo") {
            let body = std::mem::take(&mut self.info);
            self.send(key, &body);
        } else {
            let body = format!("{{\"serverTime\":{}}}", self.now.unix.0);
            self.send(key, &body);
        }
    }

    /// Hands over the requested tickers, and returns how long the core took.
    fn take_in(&mut self, body: &str) -> Duration {
        let key = self.asking.take().expect("tickers were asked for");
        self.send(key, body)
    }

    /// The answer to a client.
    fn ask(&mut self, target: &str) -> String {
        let client = self.core.accept(None, Service::Both, self.now);
        let client = client.expect("there is room for one client");
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        (self.core).handle(client, Event::Received(request.as_bytes()), self.now);
        while self.core.has_work() {
            self.core.work(self.now);
        }
        String::from_utf8_lossy(&self.core.outgoing(client).to_vec()).into_owned()
    }

    fn send(&mut self, key: Key, body: &str) -> Duration {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body.as_bytes()].concat();
        let begin = processor_time();
        for slice in answer.chunks(SLICE) {
            self.core.handle(key, Event::Received(slice), self.now);
            while self.core.has_work() {
                self.core.work(self.now);
            }
        }
        let took = processor_time() - begin;
        self.carry_out();
        took
    }
}
