//! The response bodies of the demo exchange, with Binance's names of values.
//!
//! This module owns the 24-hour window, the pages of candles and the market list. It never sees a
//! request: its callers pass a market, a time and parameters that are already checked.

use super::assets::Market;
use super::candle::Candle;
use super::generator::{DAY, Generator};
use super::random::{Random, derive_key};
use crate::interval::Interval;
use crate::time::UnixMs;
use serde_json::{Value, json};

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

/// The 24-hour statistics of a market, which cover 86,400 seconds with the current one as the last.
/// `openTime` and `closeTime` are the starts of the seconds whose closing prices are `openPrice` and
/// `lastPrice`.
pub(super) fn ticker(seed: u64, market: &Market, now: UnixMs) -> Value {
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
    let price = |ticks| fixed(ticks, market.price_places, 8);
    let amount = |steps| fixed(steps, market.amount_places, 8);
    let change = window.close - window.open;
    json!({
        "symbol": market.symbol,
        "priceChange": price(change),
        "priceChangePercent": fixed(percent(change, window.open), 3, 3),
        "weightedAvgPrice": fixed(average(market, &window), 8, 8),
        "prevClosePrice": price(window.open),
        "lastPrice": price(window.close),
        "lastQty": amount(size() / 100 + 1),
        "bidPrice": price(window.close - 1),
        "bidQty": amount(size()),
        "askPrice": price(window.close + 1),
        "askQty": amount(size()),
        "openPrice": price(window.open),
        "highPrice": price(window.high),
        "lowPrice": price(window.low),
        "volume": amount(2 * window.half_volume),
        "quoteVolume": quote_amount(market, 2 * window.half_turnover),
        "openTime": (start - 1).max(0) * 1000,
        "closeTime": second * 1000,
        "firstId": last_id - window.trades + 1,
        "lastId": last_id,
        "count": window.trades,
    })
}

/// A page of candles, oldest first. The first candle in the history is the first that opens at the
/// epoch or later, the last one is the forming candle.
pub(super) fn klines(seed: u64, market: &Market, page: &Page, now: UnixMs) -> Value {
    let mut generator = Generator::new(seed, market);
    let end = now.0 / 1000 + 1;
    let rows = open_times(page, now).map(|open| {
        let next = page.interval.end_of(open);
        let candle = generator.candle(open.0 / 1000, end.min(next.0 / 1000));
        row(market, open, next, &candle)
    });
    rows.collect()
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

/// A candle as a Binance row of twelve values.
fn row(market: &Market, open: UnixMs, next: UnixMs, candle: &Candle) -> Value {
    let price = |ticks| fixed(ticks, market.price_places, 8);
    let amount = |steps| fixed(steps, market.amount_places, 8);
    json!([
        open.0,
        price(candle.open),
        price(candle.high),
        price(candle.low),
        price(candle.close),
        amount(2 * candle.half_volume),
        next.0 - 1,
        quote_amount(market, 2 * candle.half_turnover),
        candle.trades,
        amount(candle.half_volume),
        quote_amount(market, candle.half_turnover),
        "0",
    ])
}

/// The market list of these markets, with their rules for orders.
pub(super) fn exchange_info(markets: &[Market], now: UnixMs) -> Value {
    let minute = json!({
        "rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": 6000,
    });
    json!({
        "timezone": "UTC", "serverTime": now.0, "rateLimits": [minute], "exchangeFilters": [],
        "symbols": markets.iter().map(listing).collect::<Value>(),
    })
}

/// One market of the market list.
fn listing(market: &Market) -> Value {
    let price = |ticks| fixed(ticks, market.price_places, 8);
    let amount = |steps| fixed(steps, market.amount_places, 8);
    json!({
        "symbol": market.symbol, "status": "TRADING",
        "baseAsset": market.base.name, "baseAssetPrecision": 8,
        "quoteAsset": market.quote.name, "quotePrecision": 8, "quoteAssetPrecision": 8,
        "baseCommissionPrecision": 8, "quoteCommissionPrecision": 8,
        "orderTypes": ["LIMIT", "MARKET"],
        "icebergAllowed": false, "ocoAllowed": false, "otoAllowed": false,
        "quoteOrderQtyMarketAllowed": true, "allowTrailingStop": false,
        "cancelReplaceAllowed": false, "amendAllowed": false,
        "isSpotTradingAllowed": true, "isMarginTradingAllowed": false,
        "filters": [
            {
                "filterType": "PRICE_FILTER", "minPrice": price(1), "maxPrice": price(100_000_000),
                "tickSize": price(1),
            },
            {
                "filterType": "LOT_SIZE", "minQty": amount(1),
                "maxQty": amount(market.half_daily_volume() / 10), "stepSize": amount(1),
            },
            {
                "filterType": "NOTIONAL", "minNotional": fixed(market.quote.min_order, 8, 8),
                "applyMinToMarket": true, "maxNotional": fixed(9_000_000, 0, 8),
                "applyMaxToMarket": false, "avgPriceMins": 5,
            },
        ],
        "permissions": [], "permissionSets": [["SPOT"]],
        "defaultSelfTradePreventionMode": "NONE",
        "allowedSelfTradePreventionModes": ["NONE"],
    })
}

/// An amount of the quote asset, from a turnover in ticks times steps.
fn quote_amount(market: &Market, turnover: i64) -> String {
    fixed(turnover, market.price_places + market.amount_places, 8)
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

/// `units / 10^scale` with so many decimal places, which are at least `scale`.
fn fixed(units: i64, scale: u32, places: usize) -> String {
    let (sign, unit) = (if units < 0 { "-" } else { "" }, 10u64.pow(scale));
    let (whole, part) = (units.unsigned_abs() / unit, units.unsigned_abs() % unit);
    let fraction = part * 10u64.pow(places as u32 - scale);
    format!("{sign}{whole}.{fraction:0places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_binance_writes_them() {
        #[track_caller]
        fn check(value: String, expected: &str) {
            assert_eq!(value, expected);
        }
        check(fixed(6_412_345, 2, 8), "64123.45000000");
        check(fixed(1234, 8, 8), "0.00001234");
        check(fixed(-16_682, 2, 8), "-166.82000000");
        check(fixed(-5, 2, 8), "-0.05000000");
        check(fixed(7, 0, 8), "7.00000000");
        check(fixed(0, 0, 8), "0.00000000");
        check(fixed(i64::MAX, 8, 8), "92233720368.54775807");
        check(fixed(-2427, 3, 3), "-2.427");
        check(fixed(0, 3, 3), "0.000");
    }
}
