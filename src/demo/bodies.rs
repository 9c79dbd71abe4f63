//! The response bodies of the demo exchange, with Binance's names and order of values.
//!
//! This module owns the 24-hour window, the pages of candles and the market list. It never sees a
//! request: its callers pass a market, a time and parameters that are already checked.

use super::assets::{MARKETS, Market};
use super::candle::Candle;
use super::generator::{DAY, Generator};
use super::random::{Random, derive_key};
use crate::interval::Interval;
use crate::json::{Array, Object, Value};
use crate::time::UnixMs;
use std::fmt;

/// The candles that a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) interval: Interval,
    /// The earliest open time, inclusive, in milliseconds.
    pub(super) from: Option<i64>,
    /// The latest open time, inclusive, in milliseconds.
    pub(super) to: Option<i64>,
    /// Most rows. These are the oldest since `from`; without `from`, the newest up to `to`.
    pub(super) limit: i64,
}

const SIZES_TAG: u64 = 0x73697a;

/// Appends the 24-hour statistics of a market, which cover 86,400 seconds with the current one as
/// the last. `openTime` and `closeTime` are the starts of the seconds whose closing prices are
/// `openPrice` and `lastPrice`.
pub(super) fn write_ticker(seed: u64, market: &Market, now: UnixMs, out: &mut Vec<u8>) {
    let second = now.0 / 1000;
    let midnight = second - second % DAY;
    let start = (second + 1 - DAY).max(0);
    let mut generator = Generator::new(seed, market);
    let yesterday = (start < midnight).then(|| generator.candle(start, midnight));
    let today = generator.candle(midnight, second + 1);
    let window = yesterday.map_or(today, |yesterday| yesterday.then(&today));

    // Every day has the same number of trades, so the ids of a day follow from its number.
    let last_id = midnight / DAY * market.trades + today.trades;
    let mut random = Random::new(derive_key(seed, market.symbol), SIZES_TAG, second);
    // At most the volume of a minute is offered on each side of the order book.
    let mut size = || 1 + random.below(market.half_daily_volume() / 720);
    let price = |ticks| Fixed(ticks, market.price_places);
    let amount = |steps| Fixed(steps, market.amount_places);
    let change = window.close - window.open;
    let mut object = Object::open(out);
    object.put("symbol", market.symbol);
    object.put("priceChange", price(change));
    object.put("priceChangePercent", Thousandths(percent(change, window.open)));
    object.put("weightedAvgPrice", Fixed(average(market, &window), 8));
    object.put("prevClosePrice", price(window.open));
    object.put("lastPrice", price(window.close));
    object.put("lastQty", amount(size() / 100 + 1));
    object.put("bidPrice", price(window.close - 1));
    object.put("bidQty", amount(size()));
    object.put("askPrice", price(window.close + 1));
    object.put("askQty", amount(size()));
    object.put("openPrice", price(window.open));
    object.put("highPrice", price(window.high));
    object.put("lowPrice", price(window.low));
    object.put("volume", amount(2 * window.half_volume));
    object.put("quoteVolume", quote_amount(market, 2 * window.half_turnover));
    object.put("openTime", (start - 1).max(0) * 1000);
    object.put("closeTime", second * 1000);
    object.put("firstId", last_id - window.trades + 1);
    object.put("lastId", last_id);
    object.put("count", window.trades);
    object.close();
}

/// Appends the 24-hour statistics of all markets.
pub(super) fn write_tickers(seed: u64, now: UnixMs, out: &mut Vec<u8>) {
    let mut array = Array::open(out);
    for market in &MARKETS {
        write_ticker(seed, market, now, array.item());
    }
    array.close();
}

/// Appends a page of candles, oldest first. The first candle in the history is the first that opens
/// at the epoch or later, the last one is the forming candle.
pub(super) fn write_klines(
    seed: u64,
    market: &Market,
    page: &Page,
    now: UnixMs,
    out: &mut Vec<u8>,
) {
    let mut generator = Generator::new(seed, market);
    let end = now.0 / 1000 + 1;
    let mut array = Array::open(out);
    for open in open_times(page, now) {
        let next = page.interval.end_of(open);
        let candle = generator.candle(open.0 / 1000, end.min(next.0 / 1000));
        write_row(market, open, next, &candle, array.array());
    }
    array.close();
}

/// The open times of a page's candles, oldest first.
fn open_times(page: &Page, now: UnixMs) -> impl Iterator<Item = UnixMs> {
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

/// Writes one candle as a Binance row of twelve values.
fn write_row(market: &Market, open: UnixMs, next: UnixMs, candle: &Candle, mut row: Array<'_>) {
    let price = |ticks| Fixed(ticks, market.price_places);
    let amount = |steps| Fixed(steps, market.amount_places);
    row.put(open);
    row.put(price(candle.open));
    row.put(price(candle.high));
    row.put(price(candle.low));
    row.put(price(candle.close));
    row.put(amount(2 * candle.half_volume));
    row.put(next.0 - 1);
    row.put(quote_amount(market, 2 * candle.half_turnover));
    row.put(candle.trades);
    row.put(amount(candle.half_volume));
    row.put(quote_amount(market, candle.half_turnover));
    row.put("0");
    row.close();
}

/// Appends the market list of these markets, with their rules for orders.
pub(super) fn write_exchange_info(markets: &[Market], now: UnixMs, out: &mut Vec<u8>) {
    let markets: Vec<String> = markets.iter().map(listing).collect();
    let list = format!(
        r#"{{
            "timezone": "UTC", "serverTime": {},
            "rateLimits": [{{
                "rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE",
                "intervalNum": 1, "limit": 6000
            }}],
            "exchangeFilters": [], "symbols": [{}]
        }}"#,
        now.0,
        markets.join(",")
    );
    // No text of the list has a space.
    out.extend(list.bytes().filter(|byte| !byte.is_ascii_whitespace()));
}

/// One market of the market list.
fn listing(market: &Market) -> String {
    let Market { symbol, base, quote, .. } = market;
    let (base, min_cost) = (base.name, Fixed(quote.min_order, 8));
    let (quote, max_cost) = (quote.name, Fixed(9_000_000, 0));
    let (tick, max_price) =
        (Fixed(1, market.price_places), Fixed(100_000_000, market.price_places));
    let step = Fixed(1, market.amount_places);
    let max_amount = Fixed(market.half_daily_volume() / 10, market.amount_places);
    format!(
        r#"{{
            "symbol": "{symbol}", "status": "TRADING",
            "baseAsset": "{base}", "baseAssetPrecision": 8,
            "quoteAsset": "{quote}", "quotePrecision": 8, "quoteAssetPrecision": 8,
            "baseCommissionPrecision": 8, "quoteCommissionPrecision": 8,
            "orderTypes": ["LIMIT", "MARKET"],
            "icebergAllowed": false, "ocoAllowed": false, "otoAllowed": false,
            "quoteOrderQtyMarketAllowed": true, "allowTrailingStop": false,
            "cancelReplaceAllowed": false, "amendAllowed": false,
            "isSpotTradingAllowed": true, "isMarginTradingAllowed": false,
            "filters": [
                {{
                    "filterType": "PRICE_FILTER", "minPrice": {tick}, "maxPrice": {max_price},
                    "tickSize": {tick}
                }},
                {{
                    "filterType": "LOT_SIZE", "minQty": {step}, "maxQty": {max_amount},
                    "stepSize": {step}
                }},
                {{
                    "filterType": "NOTIONAL", "minNotional": {min_cost}, "applyMinToMarket": true,
                    "maxNotional": {max_cost}, "applyMaxToMarket": false, "avgPriceMins": 5
                }}
            ],
            "permissions": [], "permissionSets": [["SPOT"]],
            "defaultSelfTradePreventionMode": "NONE",
            "allowedSelfTradePreventionModes": ["NONE"]
        }}"#
    )
}

/// An amount of the quote asset, from a turnover in ticks times steps.
fn quote_amount(market: &Market, turnover: i64) -> Fixed {
    Fixed(turnover, market.price_places + market.amount_places)
}

/// The volume-weighted average price, in 10^-8 of the quote asset, rounded down.
fn average(market: &Market, candle: &Candle) -> i64 {
    let finer = 10i128.pow(8 - market.price_places);
    let turnover = i128::from(candle.half_turnover) * finer;
    (turnover / i128::from(candle.half_volume.max(1))) as i64
}

/// `100 * part / whole` in thousandths, rounded half away from zero.
fn percent(part: i64, whole: i64) -> i64 {
    let twice = 2 * 100_000 * i128::from(part.abs()) / i128::from(whole);
    part.signum() * ((twice + 1) / 2) as i64
}

/// `units / 10^scale`, as a string with eight decimal places. `scale` is at most 8.
#[derive(Clone, Copy, Debug)]
struct Fixed(i64, u32);

impl Value for Fixed {
    fn write(self, out: &mut Vec<u8>) {
        write_fixed(self.0, self.1, 8, out);
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// A number of thousandths, as a string with three decimal places.
#[derive(Clone, Copy, Debug)]
struct Thousandths(i64);

impl Value for Thousandths {
    fn write(self, out: &mut Vec<u8>) {
        write_fixed(self.0, 3, 3, out);
    }
}

/// Appends `units / 10^scale` as a string with `places` decimal places. `scale` is at most
/// `places`.
fn write_fixed(units: i64, scale: u32, places: u32, out: &mut Vec<u8>) {
    let (unit, magnitude) = (10u64.pow(scale), units.unsigned_abs());
    let mut buffer = itoa::Buffer::new();
    out.push(b'"');
    if units < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(buffer.format(magnitude / unit).as_bytes());
    out.push(b'.');
    let fraction = buffer.format(magnitude % unit * 10u64.pow(places - scale));
    out.resize(out.len() + places as usize - fraction.len(), b'0');
    out.extend_from_slice(fraction.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_binance_writes_them() {
        #[track_caller]
        fn check(value: impl Value, expected: &str) {
            let mut out = Vec::new();
            value.write(&mut out);
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
        }
        check(Fixed(6_412_345, 2), r#""64123.45000000""#);
        check(Fixed(1234, 8), r#""0.00001234""#);
        check(Fixed(-16_682, 2), r#""-166.82000000""#);
        check(Fixed(-5, 2), r#""-0.05000000""#);
        check(Fixed(7, 0), r#""7.00000000""#);
        check(Fixed(0, 0), r#""0.00000000""#);
        check(Fixed(i64::MAX, 8), r#""92233720368.54775807""#);
        check(Thousandths(-2427), r#""-2.427""#);
        check(Thousandths(0), r#""0.000""#);
    }
}
