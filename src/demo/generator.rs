//! The candle generator of the demo exchange: makes the candle of any span of seconds, and from these the
//! quotes and candles that the exchange sends. It owns the 24-hour window.
//!
//! A [`Generator`] makes a day's candle from the two midnight prices around it. It divides a day
//! into hours, an hour into minutes, and a minute into seconds. It caches the last division at each
//! depth, so a walk through consecutive candles divides each parent once. The cache never changes a
//! result.
//!
//! The price during a second is the close of the second's candle, from the first millisecond on. So a forming
//! candle includes the current second, and has its final values before its last second ends.

use super::assets::DemoMarket;
use super::candle::{DemoCandle, RandomStream, derive_key};
use crate::decimal::Decimal;
use crate::interval::Interval;
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;

pub(super) const DAY: i64 = 86_400;

/// The lengths of candles, in seconds. Each candle is divided into candles of the next length.
const LENGTHS: [i64; 4] = [DAY, 3600, 60, 1];

/// The shortest wick of a day, in millionths of the price. A wick is the distance of the high from
/// the larger of open and close, or of the low from the smaller.
const MIN_WICK: i64 = 2500;
/// The product of two random numbers below this makes a wick longer, so short wicks are more
/// frequent. Midnight prices change by at most 9.9 % a day (a coin in another coin), so a day's
/// range is at most 14.3 % of its low.
const WICK_FACTOR: i64 = 130;

/// The kind of the random numbers of a day.
const DAY_TAG: u64 = 1;

/// Generates the candles of one market.
pub(super) struct Generator<'a> {
    market: &'a DemoMarket,
    seed: u64,
    key: u64,
    /// The last division of a day, an hour and a minute, by its number, counted from the epoch.
    divided: [(i64, Vec<DemoCandle>); 3],
}

/// A number that no day, hour or minute has: nothing is cached.
const NONE: i64 = i64::MIN;

impl Generator<'_> {
    pub(super) fn new(seed: u64, market: &DemoMarket) -> Generator<'_> {
        Generator {
            market,
            seed,
            key: market.key(seed),
            divided: [24, 60, 60].map(|parts| (NONE, vec![DemoCandle::default(); parts])),
        }
    }

    /// The candle of the seconds `from..to`, counted from the epoch. `from` is at least 0 and less
    /// than `to`.
    pub(super) fn candle(&mut self, from: i64, to: i64) -> DemoCandle {
        debug_assert!(0 <= from && from < to);
        let (mut whole, mut at) = self.longest_from(from, to);
        while at < to {
            let (part, end) = self.longest_from(at, to);
            whole = whole.then(&part);
            at = end;
        }
        whole
    }

    /// The candle that opens at `open`, with its seconds up to `now`, as the exchange sends it.
    pub(super) fn sent(&mut self, interval: Interval, open: UnixMs, now: UnixMs) -> Option<Candle> {
        let end = (interval.end_of(open).0 / 1000).min(now.0 / 1000 + 1);
        record(&self.candle(open.0 / 1000, end), open, self.market)
    }

    /// The candle of the longest day, hour, minute or second that starts at `at` and ends by `to`,
    /// and its end.
    fn longest_from(&mut self, at: i64, to: i64) -> (DemoCandle, i64) {
        let fits = |length: &i64| at % length == 0 && at + length <= to;
        let depth = LENGTHS.iter().position(fits).expect("a second fits anywhere");
        (self.part(depth, at / LENGTHS[depth]), at + LENGTHS[depth])
    }

    /// The candle with this number among the candles of one length, counted from the epoch.
    fn part(&mut self, depth: usize, number: i64) -> DemoCandle {
        let Some(above) = depth.checked_sub(1) else {
            return self.day(number);
        };
        let parts = LENGTHS[above] / LENGTHS[depth];
        let whole = number.div_euclid(parts);
        if self.divided[above].0 != whole {
            // The tags of the lengths count up from the tag of a day.
            let mut random = RandomStream::new(self.key, DAY_TAG + depth as u64, whole);
            let candle = self.part(above, whole);
            let (cached, parts) = &mut self.divided[above];
            candle.divide(parts, LENGTHS[depth] > 1, &mut random);
            *cached = whole;
        }
        self.divided[above].1[number.rem_euclid(parts) as usize]
    }

    fn day(&self, number: i64) -> DemoCandle {
        let mut random = RandomStream::new(self.key, DAY_TAG, number);
        let [open, close] =
            [number, number + 1].map(|day| self.market.midnight_price(self.seed, day));
        let (top, bottom) = (open.max(close), open.min(close));
        let mut wick = |price: i64| {
            let more = random.below(WICK_FACTOR) * random.below(WICK_FACTOR);
            1 + price * (MIN_WICK + more) / 1_000_000
        };
        let (high, low) = (top + wick(top), bottom - wick(bottom));
        let volume = self.market.daily_volume / 100 * (60 + random.below(80));
        DemoCandle { open, high, low, close, volume }
    }
}

const SIZES_TAG: u64 = 0x73697a;

/// The 24-hour statistics of a market. They cover 86,400 seconds; the current second is the last.
/// `quote_volume` is the volume at the mean of the four prices. `timestamp` is the start of the second whose
/// closing price is `last`.
pub(super) fn ticker(seed: u64, market: &DemoMarket, now: UnixMs) -> Option<Ticker> {
    let second = now.0 / 1000;
    let midnight = second - second % DAY;
    let start = (second + 1 - DAY).max(0);
    let mut generator = Generator::new(seed, market);
    let yesterday = (start < midnight).then(|| generator.candle(start, midnight));
    let today = generator.candle(midnight, second + 1);
    let window = yesterday.map_or(today, |yesterday| yesterday.then(&today));

    let mut random = RandomStream::new(derive_key(seed, market.symbol), SIZES_TAG, second);
    // Each side of the order book offers at most the volume of a minute.
    let mut size = || 1 + random.below(market.daily_volume / 1440);
    let price = |ticks| decimal(ticks, market.price_places);
    let amount = |steps| decimal(steps, market.amount_places);
    let turnover = (window.open + window.high + window.low + window.close) * window.volume / 4;
    Some(Ticker {
        bid: price(window.close - 1),
        ask: price(window.close + 1),
        bid_volume: amount(size()),
        ask_volume: amount(size()),
        quote_volume: decimal(turnover, market.price_places + market.amount_places),
        timestamp: Some(UnixMs(second * 1000)),
        ..Ticker::of_window(record(&window, UnixMs(start * 1000), market)?)
    })
}

/// A candle in decimals.
fn record(made: &DemoCandle, open_time: UnixMs, market: &DemoMarket) -> Option<Candle> {
    let price = |ticks| decimal(ticks, market.price_places);
    Some(Candle {
        open_time,
        open: price(made.open)?,
        high: price(made.high)?,
        low: price(made.low)?,
        close: price(made.close)?,
        volume: decimal(made.volume, market.amount_places)?,
    })
}

/// `units / 10^places`.
fn decimal(units: i64, places: u32) -> Option<Decimal> {
    Decimal::from_parts(i128::from(units), places)
}
