//! The generated quotes and candles, as the exchange sends them.
//!
//! This module owns the 24-hour window, and turns ticks and steps into decimals.

use super::assets::DemoMarket;
use super::candle::{DemoCandle, RandomStream, derive_key};
use super::generator::{DAY, Generator};
use crate::decimal::Decimal;
use crate::interval::Interval;
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;

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

/// The candle that opens at `open`, with its seconds up to `now`.
pub(super) fn candle(
    generator: &mut Generator<'_>,
    market: &DemoMarket,
    (interval, open): (Interval, UnixMs),
    now: UnixMs,
) -> Option<Candle> {
    let end = (interval.end_of(open).0 / 1000).min(now.0 / 1000 + 1);
    record(&generator.candle(open.0 / 1000, end), open, market)
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
