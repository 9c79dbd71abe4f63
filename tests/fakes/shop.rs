//! What the fakes tell of: made-up markets, their day and their candles; and what they count of requests.

use crate::fakes::places::Fake;
use crate::support::chance::mix;
use crate::support::generated::{FIRST_MS, Generated, GeneratedMarket, UNIT};
use crate::support::*;
use marketd::time::UnixMs;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::OnceLock;

/// 2024-05-15 10:37:05: a minute, an hour and a day are forming, and none ends during a test.
pub const NOW: i64 = 1_715_769_425_000;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 86_400_000;

/// A count of requests, or of their weights, and the limit of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// What is counted together.
    pub pool: &'static str,
    pub units: u32,
    /// Most units ...
    pub most: u32,
    /// ... within any such span.
    pub span_ms: u64,
}

/// What is on sale, and the time there.
pub struct Shop {
    pub generated: Generated,
    pub now: i64,
    /// Markets that are listed and answer nothing but an error.
    pub broken: BTreeSet<String>,
    /// Markets that are listed and that tickers know no more.
    pub gone: BTreeSet<String>,
    /// Markets, by their symbols, that are listed no more, and are unknown everywhere.
    pub delisted: BTreeSet<String>,
    /// The place of each market by its name there.
    places: OnceLock<HashMap<String, usize>>,
    /// If it is set, tickers are those of that time.
    pub frozen: Option<i64>,
}

/// The last 24 hours of a market; prices and amounts in [`UNIT`]ths.
pub struct Day {
    pub last: u64,
    pub bid: u64,
    pub ask: u64,
    pub bid_size: u64,
    pub ask_size: u64,
    pub open: u64,
    pub high: u64,
    pub low: u64,
    pub base_volume: u64,
    pub quote_volume: u64,
}

/// A candle, in [`UNIT`]ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub open_ms: i64,
    pub open: u64,
    pub high: u64,
    pub low: u64,
    pub close: u64,
    pub volume: u64,
    pub turnover: u64,
}

impl Shop {
    /// So many markets, the first of them BTC/USDT.
    pub fn new(markets: usize) -> Shop {
        Shop {
            generated: Generated::new(markets, 17),
            now: NOW,
            broken: BTreeSet::new(),
            gone: BTreeSet::new(),
            delisted: BTreeSet::new(),
            frozen: None,
            places: OnceLock::new(),
        }
    }

    pub fn markets(&self) -> &[GeneratedMarket] {
        self.generated.markets()
    }

    /// The market that has this name there.
    pub fn find(&self, fake: &Fake, id: &str) -> Option<&GeneratedMarket> {
        let places = self.places.get_or_init(|| {
            let ids = self.markets().iter().map(|it| fake.id(&it.base, it.quote));
            ids.zip(0..).collect()
        });
        let found = places.get(id).filter(|_| !self.broken.contains(id));
        found.map(|at| &self.markets()[*at]).filter(|it| self.is_listed(it))
    }

    fn is_listed(&self, market: &GeneratedMarket) -> bool {
        self.delisted.is_empty() || !self.delisted.contains(&market.symbol())
    }

    /// The markets of its list.
    pub fn listed(&self) -> impl Iterator<Item = &GeneratedMarket> {
        self.markets().iter().filter(|it| self.is_listed(it))
    }

    /// A value of no market.
    pub fn value(&self, name: &str) -> String {
        match name {
            "now" => self.now.to_string(),
            "seconds" => (self.now / 1000).to_string(),
            "millis" => format!("{:03}", self.now % 1000),
            "iso" => UnixMs(self.now).to_string(),
            _ => panic!("nothing is called {name}"),
        }
    }

    pub fn day(&self, market: &GeneratedMarket) -> Day {
        let now = self.frozen.unwrap_or(self.now);
        let (last, open) = (market.price(now), market.price(now - DAY_MS));
        let minute = now.div_euclid(MINUTE_MS);
        let base_volume = amount(market, minute, 1);
        Day {
            last,
            bid: last - market.tick,
            ask: last + market.tick,
            bid_size: amount(market, now, 2),
            ask_size: amount(market, now, 3),
            open,
            high: last.max(open) + 3 * market.tick,
            low: last.min(open) - 2 * market.tick,
            base_volume,
            quote_volume: worth(base_volume, last),
        }
    }

    /// The candle of a market that opens then.
    pub fn row(&self, market: &GeneratedMarket, interval_ms: i64, open_ms: i64) -> Row {
        let end = (open_ms + interval_ms).min(self.now);
        let (open, close) = (market.price(open_ms), market.price(end));
        let volume = amount(market, open_ms, interval_ms as u64);
        Row {
            open_ms,
            open,
            high: open.max(close) + market.tick * (volume % 7),
            low: open.min(close) - market.tick * (volume % 5),
            close,
            volume,
            turnover: worth(volume, close),
        }
    }

    /// The candles that open from `from` to `to`, both included, as far as they have begun;
    /// oldest first.
    pub fn rows(&self, market: &GeneratedMarket, interval_ms: i64, from: i64, to: i64) -> Vec<Row> {
        let up = |at: i64| (at + interval_ms - 1).div_euclid(interval_ms) * interval_ms;
        let first = up(from.max(FIRST_MS));
        (first..=to.min(self.now))
            .step_by(interval_ms as usize)
            .map(|open_ms| self.row(market, interval_ms, open_ms))
            .collect()
    }

    /// The newest `count` of [`Shop::rows`].
    pub fn newest(
        &self,
        market: &GeneratedMarket,
        interval_ms: i64,
        (from, to): (i64, i64),
        count: usize,
    ) -> Vec<Row> {
        let least = to.min(self.now) - interval_ms * count as i64;
        self.rows(market, interval_ms, from.max(least + 1), to)
    }
}

/// An amount that is another one for each market, time and salt.
fn amount(market: &GeneratedMarket, when: i64, salt: u64) -> u64 {
    let chance = mix(mix(when as u64) ^ salt ^ market.level);
    // Five places at most, so that no exchange has to cut any.
    (1 + chance % 90_000_000) * 1000
}

fn worth(volume: u64, price: u64) -> u64 {
    (u128::from(volume) * u128::from(price) / u128::from(UNIT)) as u64
}

/// Units in the shortest form of a decimal.
pub fn plain(units: u64) -> String {
    let (mut tail, mut places) = (units % UNIT, 8);
    if tail == 0 {
        return (units / UNIT).to_string();
    }
    while tail.is_multiple_of(10) {
        (tail, places) = (tail / 10, places - 1);
    }
    format!("{}.{tail:0places$}", units / UNIT)
}

/// A difference, in the shortest form.
pub fn signed(difference: i64) -> String {
    let sign = if difference < 0 { "-" } else { "" };
    format!("{sign}{}", plain(difference.unsigned_abs()))
}

/// Places behind the point of a step that is a power of ten.
pub fn places(step: u64) -> usize {
    plain(step).split_once('.').map_or(0, |(_, tail)| tail.len())
}

/// Opens a shop: an exchange with its sockets.
pub fn open(fake: &'static Fake, shop: Shop) -> FakeExchange {
    let begun = OnceLock::new();
    FakeExchange::start(move |asked| {
        let begun = *begun.get_or_init(std::time::Instant::now);
        fake.answer(&shop, asked).dated(shop.now, begun)
    })
}

/// The exchange's own count of what was asked of it: units by pool, over a span that slides.
#[derive(Default)]
pub struct Ledger {
    pools: HashMap<&'static str, Pool>,
    /// Requests in all.
    pub requests: u64,
    /// Every time that a limit was passed, in words.
    pub broken: Vec<String>,
}

#[derive(Default)]
struct Pool {
    /// Microseconds, and what they cost.
    entries: VecDeque<(u64, u32)>,
    units: u32,
}

impl Ledger {
    /// A request has come in. Units of its pool in the span that ends now.
    pub fn enter(&mut self, charge: &Charge, at_us: u64, what: &str) -> u32 {
        self.requests += 1;
        let pool = self.pools.entry(charge.pool).or_default();
        pool.entries.push_back((at_us, charge.units));
        pool.units += charge.units;
        while let Some((at, units)) = pool.entries.front().copied()
            && at + charge.span_ms * 1000 <= at_us
        {
            pool.units -= units;
            pool.entries.pop_front();
        }
        if pool.units > charge.most {
            self.broken.push(format!(
                "{at_us} us: {what} makes {} of {} {} in {} ms",
                pool.units, charge.most, charge.pool, charge.span_ms
            ));
        }
        pool.units
    }
}

#[test]
fn a_span_slides_and_leaves_its_begin_out() {
    let charge = Charge { pool: "one", units: 2, most: 4, span_ms: 1 };
    let mut ledger = Ledger::default();
    for (at, units) in [(0, 2), (999, 4), (1000, 4), (1500, 6), (3000, 2)] {
        assert_eq!(ledger.enter(&charge, at, "it"), units, "{at}");
    }
    assert_eq!(ledger.broken.len(), 1);
}
