//! The response bodies of the demo exchange, with Binance's names and order of values.
//!
//! This module owns the 24-hour window, the pages of candles and the market list. It never sees a
//! request: its callers pass a market, a time and parameters that are already checked.

use super::assets::{MARKETS, Market};
use super::candle::Candle;
use super::generator::{DAY, Generator};
use super::json::{Value, write_list};
use super::random::{Random, derive_key};
use crate::interval::Interval;
use crate::time::UnixMs;

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
    let price = |ticks| Value::Fixed(ticks, market.price_places);
    let amount = |steps| Value::Fixed(steps, market.amount_places);
    let members = [
        ("symbol", Value::Text(market.symbol)),
        ("priceChange", price(window.close - window.open)),
        (
            "priceChangePercent",
            Value::Thousandths(percent(window.close - window.open, window.open)),
        ),
        (
            "weightedAvgPrice",
            Value::Fixed(average(market, &window), 8),
        ),
        ("prevClosePrice", price(window.open)),
        ("lastPrice", price(window.close)),
        ("lastQty", amount(size() / 100 + 1)),
        ("bidPrice", price(window.close - 1)),
        ("bidQty", amount(size())),
        ("askPrice", price(window.close + 1)),
        ("askQty", amount(size())),
        ("openPrice", price(window.open)),
        ("highPrice", price(window.high)),
        ("lowPrice", price(window.low)),
        ("volume", amount(2 * window.half_volume)),
        (
            "quoteVolume",
            quote_amount(market, 2 * window.half_turnover),
        ),
        ("openTime", Value::Int((start - 1).max(0) * 1000)),
        ("closeTime", Value::Int(second * 1000)),
        ("firstId", Value::Int(last_id - window.trades + 1)),
        ("lastId", Value::Int(last_id)),
        ("count", Value::Int(window.trades)),
    ];
    Value::Object(&members).write(out);
}

/// Appends the 24-hour statistics of all markets.
pub(super) fn write_tickers(seed: u64, now: UnixMs, out: &mut Vec<u8>) {
    write_list(MARKETS.iter(), out, |market, out| {
        write_ticker(seed, market, now, out);
    });
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
    write_list(open_times(page, now), out, |open, out| {
        let next = page.interval.end_of(open);
        let candle = generator.candle(open.0 / 1000, end.min(next.0 / 1000));
        write_row(market, open, next, &candle, out);
    });
}

/// The open times of a page's candles, oldest first.
fn open_times(page: &Page, now: UnixMs) -> impl Iterator<Item = UnixMs> {
    let interval = page.interval;
    // The open time of the first candle that opens at `time` or later.
    let at_or_after = |time: i64| {
        let open = interval.open_of(UnixMs(time));
        if open.0 < time {
            interval.end_of(open)
        } else {
            open
        }
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

/// Appends one candle as a Binance row of twelve values.
fn write_row(market: &Market, open: UnixMs, next: UnixMs, candle: &Candle, out: &mut Vec<u8>) {
    let price = |ticks| Value::Fixed(ticks, market.price_places);
    let amount = |steps| Value::Fixed(steps, market.amount_places);
    let row = [
        Value::Int(open.0),
        price(candle.open),
        price(candle.high),
        price(candle.low),
        price(candle.close),
        amount(2 * candle.half_volume),
        Value::Int(next.0 - 1),
        quote_amount(market, 2 * candle.half_turnover),
        Value::Int(candle.trades),
        amount(candle.half_volume),
        quote_amount(market, candle.half_turnover),
        Value::Text("0"),
    ];
    Value::List(&row).write(out);
}

/// Appends the market list of these markets, with their rules for orders.
pub(super) fn write_exchange_info(markets: &[Market], now: UnixMs, out: &mut Vec<u8>) {
    let weight_limit = [
        ("rateLimitType", Value::Text("REQUEST_WEIGHT")),
        ("interval", Value::Text("MINUTE")),
        ("intervalNum", Value::Int(1)),
        ("limit", Value::Int(6000)),
    ];
    out.extend_from_slice(b"{\"timezone\":\"UTC\",\"serverTime\":");
    Value::Int(now.0).write(out);
    out.extend_from_slice(b",\"rateLimits\":");
    Value::List(&[Value::Object(&weight_limit)]).write(out);
    out.extend_from_slice(b",\"exchangeFilters\":[],\"symbols\":");
    write_list(markets.iter(), out, write_symbol);
    out.push(b'}');
}

/// Appends one market of the market list.
fn write_symbol(market: &Market, out: &mut Vec<u8>) {
    let price = |ticks| Value::Fixed(ticks, market.price_places);
    let amount = |steps| Value::Fixed(steps, market.amount_places);
    let price_filter = [
        ("filterType", Value::Text("PRICE_FILTER")),
        ("minPrice", price(1)),
        ("maxPrice", price(100_000_000)),
        ("tickSize", price(1)),
    ];
    let lot_size = [
        ("filterType", Value::Text("LOT_SIZE")),
        ("minQty", amount(1)),
        ("maxQty", amount(market.half_daily_volume() / 10)),
        ("stepSize", amount(1)),
    ];
    let notional = [
        ("filterType", Value::Text("NOTIONAL")),
        ("minNotional", Value::Fixed(market.quote.min_order, 8)),
        ("applyMinToMarket", Value::Bool(true)),
        ("maxNotional", Value::Fixed(9_000_000, 0)),
        ("applyMaxToMarket", Value::Bool(false)),
        ("avgPriceMins", Value::Int(5)),
    ];
    let filters = [
        Value::Object(&price_filter),
        Value::Object(&lot_size),
        Value::Object(&notional),
    ];
    let members = [
        ("symbol", Value::Text(market.symbol)),
        ("status", Value::Text("TRADING")),
        ("baseAsset", Value::Text(market.base.name)),
        ("baseAssetPrecision", Value::Int(8)),
        ("quoteAsset", Value::Text(market.quote.name)),
        ("quotePrecision", Value::Int(8)),
        ("quoteAssetPrecision", Value::Int(8)),
        ("baseCommissionPrecision", Value::Int(8)),
        ("quoteCommissionPrecision", Value::Int(8)),
        (
            "orderTypes",
            Value::List(&[Value::Text("LIMIT"), Value::Text("MARKET")]),
        ),
        ("icebergAllowed", Value::Bool(false)),
        ("ocoAllowed", Value::Bool(false)),
        ("otoAllowed", Value::Bool(false)),
        ("quoteOrderQtyMarketAllowed", Value::Bool(true)),
        ("allowTrailingStop", Value::Bool(false)),
        ("cancelReplaceAllowed", Value::Bool(false)),
        ("amendAllowed", Value::Bool(false)),
        ("isSpotTradingAllowed", Value::Bool(true)),
        ("isMarginTradingAllowed", Value::Bool(false)),
        ("filters", Value::List(&filters)),
        ("permissions", Value::List(&[])),
        (
            "permissionSets",
            Value::List(&[Value::List(&[Value::Text("SPOT")])]),
        ),
        ("defaultSelfTradePreventionMode", Value::Text("NONE")),
        (
            "allowedSelfTradePreventionModes",
            Value::List(&[Value::Text("NONE")]),
        ),
    ];
    Value::Object(&members).write(out);
}

/// An amount of the quote asset, from a turnover in ticks times steps.
fn quote_amount(market: &Market, turnover: i64) -> Value<'static> {
    Value::Fixed(turnover, market.price_places + market.amount_places)
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
