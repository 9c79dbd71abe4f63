//! Entries, lists and requests on their way into bytes.

use super::entry::{Entry, Head, MOST_TEXT, SentCandles, SeriesPart, Update, VERSION};
use crate::decimal::Decimal;
use crate::record::{MarketInfo, Stats, Ticker};

/// Appends an entry.
pub fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let Head { epoch, waited_ms, received, exchange_time, state, rest_ms } = &entry.head;
    let kind = match &entry.body {
        Update::Quotes { .. } => 0,
        Update::Candles(_) => 1,
        Update::Status(_) => 2,
        Update::Released(_) => 3,
        Update::Stats(..) => 4,
    };
    out.extend([VERSION, kind]);
    put(out, *epoch);
    put(out, *waited_ms);
    put_signed(out, received.0);
    put_option(out, exchange_time, |out, time| put_signed(out, time.0));
    out.push(*state);
    put(out, *rest_ms);
    match &entry.body {
        Update::Quotes { is_first, is_last, tickers } => {
            out.push(u8::from(*is_first) | u8::from(*is_last) << 1);
            put(out, tickers.len() as u64);
            for (id, ticker) in tickers {
                put_text(out, id);
                put_ticker(out, ticker);
            }
        }
        Update::Stats(id, stats) => {
            put_text(out, id);
            let Stats { open, high, low, base_volume, quote_volume } = &**stats;
            for figure in [open, high, low, base_volume, quote_volume] {
                put_option(out, figure, put_decimal);
            }
        }
        Update::Candles(page) => put_candles(out, page),
        Update::Status(text) | Update::Released(text) => {
            put_option(out, text, |out, text| put_text(out, text));
        }
    }
}

/// Writes a request for candles.
pub fn encode_ask(series: &SeriesPart) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_series(&mut out, series);
    out
}

/// Appends one market to a list, whose first byte is [`VERSION`].
pub fn encode_market(info: &MarketInfo, out: &mut Vec<u8>) {
    let rules = &info.rules;
    put_text(out, &info.ticker_id);
    put_option(out, &info.candle_id, |out, id| put_text(out, id));
    put_text(out, &info.base);
    put_text(out, &info.quote);
    out.push(u8::from(info.active));
    for places in [rules.amount_places, rules.price_places] {
        put_option(out, &places, |out, places| out.push(*places));
    }
    for bounds in [&rules.amount, &rules.price, &rules.cost] {
        put_option(out, &bounds.min, put_decimal);
        put_option(out, &bounds.max, put_decimal);
    }
    put_option(out, &rules.taker, put_decimal);
    put_option(out, &rules.maker, put_decimal);
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put(out, end as u64);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn put_decimal(out: &mut Vec<u8>, decimal: &Decimal) {
    let at = out.len();
    out.push(0);
    decimal.write(out);
    // A decimal's text has at most 64 digits, a sign, a point, and as many zeros as its scale.
    out[at] = (out.len() - at - 1).min(255) as u8;
}

fn put_option<T>(out: &mut Vec<u8>, value: &Option<T>, put: impl Fn(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// A set of the figures that there are, then these.
fn put_ticker(out: &mut Vec<u8>, ticker: &Ticker) {
    let figures = [
        &ticker.bid,
        &ticker.ask,
        &ticker.bid_volume,
        &ticker.ask_volume,
        &ticker.open,
        &ticker.high,
        &ticker.low,
        &ticker.change,
        &ticker.percentage,
        &ticker.base_volume,
        &ticker.quote_volume,
    ];
    let set = (0..).zip(figures).map(|(at, it)| u64::from(it.is_some()) << at);
    put(out, set.sum());
    put_decimal(out, &ticker.last);
    figures.into_iter().flatten().for_each(|it| put_decimal(out, it));
    put_option(out, &ticker.timestamp, |out, time| put_signed(out, time.0));
}

fn put_series(out: &mut Vec<u8>, series: &SeriesPart) {
    put_text(out, &series.symbol);
    out.push(series.interval as u8);
    put_signed(out, series.slots.start);
    put(out, series.slots.end.abs_diff(series.slots.start));
}

fn put_candles(out: &mut Vec<u8>, page: &SentCandles) {
    put_series(out, &page.series);
    put_signed(out, page.closed_before.0);
    out.push(u8::from(page.is_dated) | u8::from(page.is_full) << 1 | u8::from(page.is_proven) << 2);
    put(out, page.rows.len() as u64);
    for (candle, closed) in &page.rows {
        put_signed(out, candle.open_time.0);
        out.push(closed.map_or(2, u8::from));
        for figure in candle.figures() {
            put_decimal(out, figure);
        }
    }
}
