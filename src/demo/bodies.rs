//! The response bodies of the demo exchange: of Binance's, the members that its dialect reads.
//!
//! This module owns the 24-hour window, the pages of candles and the market list. It never sees a
//! request: its callers pass a market, a time and parameters that are already checked.

use super::assets::{DemoMarket, MARKETS};
use super::generator::{DAY, Generator};
use super::random::{RandomStream, derive_key};
use crate::decimal::Decimal;
use crate::interval::Interval;
use crate::json::{Array, Decimals, List, Value, json};
use crate::time::UnixMs;

/// The candles that a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandleQuery {
    pub(super) interval: Interval,
    /// The earliest open time, inclusive, in milliseconds.
    pub(super) from: Option<i64>,
    /// The latest open time, inclusive, in milliseconds.
    pub(super) to: Option<i64>,
    /// Most rows. These are the oldest since `from`; without `from`, the newest up to `to`.
    pub(super) limit: i64,
}

const SIZES_TAG: u64 = 0x73697a;

/// Writes the 24-hour statistics of all markets.
pub(super) fn tickers(seed: u64, now: UnixMs, out: &mut Vec<u8>) {
    let one = |market| move |out: &mut Vec<u8>| ticker(seed, market, now, out);
    List(MARKETS.iter().map(one)).write(out);
}

/// Writes the 24-hour statistics of a market, which cover 86,400 seconds with the current one as
/// the last. `quoteVolume` is the volume at the mean of the four prices. `closeTime` is the start of
/// the second whose closing price is `lastPrice`.
pub(super) fn ticker(seed: u64, market: &DemoMarket, now: UnixMs, out: &mut Vec<u8>) {
    let second = now.0 / 1000;
    let midnight = second - second % DAY;
    let start = (second + 1 - DAY).max(0);
    let mut generator = Generator::new(seed, market);
    let yesterday = (start < midnight).then(|| generator.candle(start, midnight));
    let today = generator.candle(midnight, second + 1);
    let window = yesterday.map_or(today, |yesterday| yesterday.then(&today));

    let mut random = RandomStream::new(derive_key(seed, market.symbol), SIZES_TAG, second);
    // At most the volume of a minute is offered on each side of the order book.
    let mut size = || 1 + random.below(market.daily_volume / 1440);
    let price = |ticks| decimal(ticks, market.price_places);
    let amount = |steps| decimal(steps, market.amount_places);
    let turnover = (window.open + window.high + window.low + window.close) * window.volume / 4;
    let change = window.close - window.open;
    let percent = Decimal::from(change).percent_of(&Decimal::from(window.open), 3);
    json!(out, {
        "symbol": market.symbol,
        "priceChange": price(change),
        "priceChangePercent": Decimals::String.value(percent.as_ref()),
        "lastPrice": price(window.close),
        "bidPrice": price(window.close - 1),
        "bidQty": amount(size()),
        "askPrice": price(window.close + 1),
        "askQty": amount(size()),
        "openPrice": price(window.open),
        "highPrice": price(window.high),
        "lowPrice": price(window.low),
        "volume": amount(window.volume),
        "quoteVolume": decimal(turnover, market.price_places + market.amount_places),
        "closeTime": second * 1000,
    });
}

/// Writes a page of candles, oldest first. The first candle in the history is the first that opens
/// at the epoch or later, the last one is the forming candle.
pub(super) fn klines(
    seed: u64,
    market: &DemoMarket,
    page: &CandleQuery,
    now: UnixMs,
    out: &mut Vec<u8>,
) {
    let mut generator = Generator::new(seed, market);
    let end = now.0 / 1000 + 1;
    let mut rows = Array::open(out);
    for open in open_times(page, now) {
        let next = page.interval.end_of(open);
        let candle = generator.candle(open.0 / 1000, end.min(next.0 / 1000));
        let mut row = Array::open(rows.item());
        row.put(open);
        for ticks in [candle.open, candle.high, candle.low, candle.close] {
            row.put(decimal(ticks, market.price_places));
        }
        row.put(decimal(candle.volume, market.amount_places));
        row.close();
    }
    rows.close();
}

/// The open times of a page's candles, oldest first.
fn open_times(page: &CandleQuery, now: UnixMs) -> impl Iterator<Item = UnixMs> {
    let interval = page.interval;
    // The open time of the first candle that opens at `time` or later.
    let at_or_after = |time: i64| {
        let open = interval.open_of(UnixMs(time));
        if open.0 < time { interval.end_of(open) } else { open }
    };
    let last = interval.open_of(UnixMs(page.to.map_or(now.0, |to| to.min(now.0))));
    let first = match page.from {
        // A start in the future gives no candle; `now + 1` does as well, and cannot overflow.
        Some(from) => at_or_after(from.clamp(0, now.0.saturating_add(1))),
        None => interval.step(last, 1 - page.limit).max(at_or_after(0)),
    };
    std::iter::successors(Some(first), move |open| Some(interval.end_of(*open)))
        .take_while(move |open| *open <= last)
        .take(page.limit as usize)
}

/// Writes the market list, with the rules of each market for orders.
pub(super) fn exchange_info(out: &mut Vec<u8>) {
    let one = |market| move |out: &mut Vec<u8>| listing(market, out);
    json!(out, { "symbols": List(MARKETS.iter().map(one)) });
}

/// Writes one market of the market list.
fn listing(market: &DemoMarket, out: &mut Vec<u8>) {
    let price = |ticks| decimal(ticks, market.price_places);
    let amount = |steps| decimal(steps, market.amount_places);
    let filters = |out: &mut Vec<u8>| {
        let mut filters = Array::open(out);
        json!(filters.item(), {
            "filterType": "PRICE_FILTER",
            "minPrice": price(1),
            "maxPrice": price(100_000_000),
            "tickSize": price(1),
        });
        json!(filters.item(), {
            "filterType": "LOT_SIZE",
            "minQty": amount(1),
            "maxQty": amount(market.daily_volume / 20),
            "stepSize": amount(1),
        });
        json!(filters.item(), {
            "filterType": "NOTIONAL",
            "minNotional": decimal(market.quote.min_order, 8),
            "maxNotional": decimal(9_000_000, 0),
        });
        filters.close();
    };
    json!(out, {
        "symbol": market.symbol,
        "status": "TRADING",
        "baseAsset": market.base.name,
        "quoteAsset": market.quote.name,
        "filters": filters,
    });
}

/// `units / 10^places`, as a string.
fn decimal(units: i64, places: u32) -> impl Value {
    let decimal = Decimal::from_parts(i128::from(units), places);
    move |out: &mut Vec<u8>| Decimals::String.value(decimal.as_ref()).write(out)
}
