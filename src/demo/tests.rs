//! Tests of the demo exchange through its response bodies.
//!
//! All tests are seeded. A failure names seed, market and time; `Demo::new(seed).respond(..)` at
//! that time shows it again.

mod pages;
mod replay;
mod shape;

use super::assets::{DemoMarket, MARKETS};
use super::candle::RandomStream;
use super::*;
use crate::decimal::Decimal;
use serde_json::Value as Json;

/// Some time in 2026 that is not the start of any interval.
const NOW: i64 = 1_790_000_123_456;
const DAY_MS: i64 = 86_400_000;

fn call(demo: &Demo, path: &str, query: &str, now: i64) -> (u16, String) {
    let mut body = Vec::new();
    let status = demo.respond(path.as_bytes(), query.as_bytes(), UnixMs(now), &mut body);
    (status, String::from_utf8(body).unwrap())
}

#[track_caller]
fn get(demo: &Demo, path: &str, query: &str, now: i64) -> Json {
    let (status, body) = call(demo, path, query, now);
    assert_eq!(status, 200, "{path}?{query}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[track_caller]
fn ticker(demo: &Demo, market: &str, now: i64) -> Json {
    get(demo, "/api/v3/ticker/24hr", &format!("symbol={market}"), now)
}

/// The number in a string with up to eight decimal places, in units of the eighth.
#[track_caller]
fn units(value: &Json) -> i128 {
    let text = value.as_str().unwrap();
    let (front, back) = text.split_once('.').unwrap_or((text, ""));
    assert!(back.len() <= 8, "{text}");
    format!("{front}{back:0<8}").parse().unwrap()
}

/// A row of klines and its close time, with prices and amounts in units of 10^-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    open_time: i64,
    close_time: i64,
    open: i128,
    high: i128,
    low: i128,
    close: i128,
    volume: i128,
}

#[track_caller]
fn rows(demo: &Demo, market: &str, interval: &str, range: &str, now: i64) -> Vec<Row> {
    let query = format!("symbol={market}&interval={interval}{range}");
    let body = get(demo, "/api/v3/klines", &query, now);
    let interval = Interval::parse(interval.as_bytes()).unwrap();
    let row = |row: &Json| {
        let is_text = row.as_array().unwrap().iter().map(Json::is_string);
        let types: String = is_text.map(|it| if it { 's' } else { 'n' }).collect();
        assert_eq!(types, "nsssssnsnsss", "as those of Binance");
        let open_time = row[0].as_i64().unwrap();
        assert_eq!(row[6], interval.end_of(UnixMs(open_time)).0 - 1);
        Row {
            open_time,
            close_time: row[6].as_i64().unwrap(),
            open: units(&row[1]),
            high: units(&row[2]),
            low: units(&row[3]),
            close: units(&row[4]),
            volume: units(&row[5]),
        }
    };
    body.as_array().unwrap().iter().map(row).collect()
}

/// The candle that consecutive rows make, by the definition of a candle.
fn join(parts: &[Row]) -> Row {
    let (first, last) = (parts.first().unwrap(), parts.last().unwrap());
    Row {
        open_time: first.open_time,
        close_time: last.close_time,
        open: first.open,
        high: parts.iter().map(|part| part.high).max().unwrap(),
        low: parts.iter().map(|part| part.low).min().unwrap(),
        close: last.close,
        volume: parts.iter().map(|part| part.volume).sum(),
    }
}

/// The candles of the seconds `from..to`, straight from the generator.
fn seconds(seed: u64, market: &DemoMarket, from: i64, to: i64) -> Vec<candle::DemoCandle> {
    let mut generator = generator::Generator::new(seed, market);
    (from..to).map(|at| generator.candle(at, at + 1)).collect()
}

/// The row that seconds make, with these open and close times.
fn join_seconds(
    market: &DemoMarket,
    parts: &[candle::DemoCandle],
    open_time: i64,
    close_time: i64,
) -> Row {
    let scaled = |units: i64, places: u32| i128::from(units) * 10i128.pow(8 - places);
    let (price, amount) = (market.price_places, market.amount_places);
    Row {
        open_time,
        close_time,
        open: scaled(parts[0].open, price),
        high: scaled(parts.iter().map(|part| part.high).max().unwrap(), price),
        low: scaled(parts.iter().map(|part| part.low).min().unwrap(), price),
        close: scaled(parts[parts.len() - 1].close, price),
        volume: scaled(parts.iter().map(|part| part.volume).sum(), amount),
    }
}

/// Seeds, each with a market and a time: all markets, over sixty years.
fn samples(count: i64) -> impl Iterator<Item = (u64, &'static DemoMarket, i64)> {
    (0..count).map(|index| {
        let mut random = RandomStream::new(99, 0, index);
        let market = &MARKETS[index as usize % MARKETS.len()];
        (random.bits(), market, DAY_MS + random.below(60 * 366 * DAY_MS))
    })
}

#[test]
fn every_interval_is_made_of_the_shorter_ones_and_a_minute_of_its_seconds() {
    for (seed, market, now) in samples(48) {
        let (demo, name) = (Demo::new(seed), market.symbol);
        for interval in Interval::ALL {
            let parts_of = match interval {
                Interval::M1 => "1s",
                Interval::H1 => "1m",
                Interval::D1 => "1h",
                _ => interval.base().name(),
            };
            // The forming candle and some closed ones.
            for whole in rows(&demo, name, interval.name(), "&limit=4", now) {
                let (begin, end) = (whole.open_time, whole.close_time);
                let joined = if parts_of == "1s" {
                    let gone = end.min(now) / 1000 + 1;
                    join_seconds(market, &seconds(seed, market, begin / 1000, gone), begin, end)
                } else {
                    let range = format!("&startTime={begin}&endTime={end}&limit=1000");
                    let mut joined = join(&rows(&demo, name, parts_of, &range, now));
                    if end >= now {
                        joined.close_time = end;
                    }
                    joined
                };
                let label = format!("seed {seed} {name} {} at {now}", interval.name());
                assert_eq!(joined, whole, "{label}");
            }
        }
    }
}

#[test]
fn the_window_of_24_hours_is_exact_to_the_second() {
    let begins = [NOW - NOW % DAY_MS, NOW - NOW % DAY_MS - 1, DAY_MS, DAY_MS / 2, 0];
    let more = begins.map(|now| (1, &MARKETS[0], now));
    for (seed, market, now) in samples(24).chain(more) {
        let demo = Demo::new(seed);
        let figures = ticker(&demo, market.symbol, now);
        let last = now / 1000;
        let first = (last - 86_399).max(0);
        let row = join_seconds(market, &seconds(seed, market, first, last + 1), 0, 0);
        let check = |key: &str, expected: i128| {
            let label = format!("seed {seed} {} at {now}: {key}", market.symbol);
            assert_eq!(units(&figures[key]), expected, "{label}");
        };
        check("openPrice", row.open);
        check("highPrice", row.high);
        check("lowPrice", row.low);
        check("lastPrice", row.close);
        check("volume", row.volume);
        // At the mean of the four prices, rounded down to a tick times a step.
        let least = 10i128.pow(8 - market.price_places - market.amount_places);
        let paid = (row.open + row.high + row.low + row.close) * row.volume / 4 / 100_000_000;
        check("quoteVolume", paid - paid % least);
        check("priceChange", row.close - row.open);
        assert_eq!(figures["closeTime"], last * 1000);
    }
}

#[test]
fn a_ticker_is_sound() {
    for (seed, market, now) in samples(480) {
        let demo = Demo::new(seed);
        let figures = ticker(&demo, market.symbol, now);
        let figure = |key: &str| units(&figures[key]);
        let label = format!("seed {seed} {} at {now}", market.symbol);
        let tick = 10i128.pow(8 - market.price_places);
        let (last, open) = (figure("lastPrice"), figure("openPrice"));
        let (low, high) = (figure("lowPrice"), figure("highPrice"));
        assert!(0 < low && low <= last.min(open) && last.max(open) <= high, "{label}");
        assert_eq!(figure("bidPrice"), last - tick, "{label}");
        assert_eq!(figure("askPrice"), last + tick, "{label}");
        for key in ["bidQty", "askQty", "volume"] {
            assert!(figure(key) > 0, "{label}: {key}");
        }
        let (volume, paid) = (figure("volume"), figure("quoteVolume") * 100_000_000);
        assert!(low * volume <= paid && paid <= high * volume, "{label}");
        // 100 * change / open, to half a thousandth.
        let percent = figure("priceChangePercent");
        assert_eq!(percent % 100_000, 0, "{label}: {percent}");
        let off = 100_000 * (last - open) - percent / 100_000 * open;
        assert!(2 * off.abs() <= open, "{label}: {percent}");
    }
}

#[test]
fn prices_move_and_never_jump() {
    for (seed, market, now) in samples(48) {
        // Six hours on each side of a midnight.
        let midnight = now / DAY_MS * 86_400;
        let parts = seconds(seed, market, midnight - 21_600, midnight + 21_600);
        let mut sum = 0;
        for two in parts.windows(2) {
            assert_eq!(two[0].close, two[1].open);
            let (from, moved) = (two[1].open, (two[1].close - two[1].open).abs());
            let label = format!("seed {seed} {} near {midnight}", market.symbol);
            // The bound is 0.9 % and six ticks; in these samples it is far less.
            assert!(moved <= from / 400 + 6, "{label}: {moved} of {from}");
            sum += moved;
        }
        let mean = sum / parts.len() as i64;
        let level = parts[0].open;
        assert!(mean <= level / 2000 + 1, "{}: {mean} of {level}", market.symbol);
        let moves = parts.iter().filter(|part| part.open != part.close).count();
        assert!(moves * 2 > parts.len(), "{}: {moves}", market.symbol);
    }
}

#[test]
fn days_stay_within_the_range_that_the_bound_is_made_of() {
    for seed in 0..4 {
        for market in &MARKETS {
            let mut generator = generator::Generator::new(seed, market);
            for day in (seed as i64..20_000).step_by(4) {
                let candle = generator.candle(day * generator::DAY, (day + 1) * generator::DAY);
                let range = candle.high - candle.low;
                let label = format!("seed {seed} {} day {day}: {candle:?}", market.symbol);
                assert!(range * 1000 <= candle.low * 143 + 3000, "{label}");
                assert!(range * 1000 >= candle.low * 5, "{label}");
            }
        }
    }
}

#[test]
fn the_same_call_gives_the_same_bytes_whatever_was_asked_before() {
    let calls = [
        ("/api/v3/ticker/24hr", ""),
        ("/api/v3/ticker/24hr", "symbol=ETHBTC"),
        ("/api/v3/klines", "symbol=BTCUSDT&interval=1m"),
        ("/api/v3/klines", "symbol=SHIBUSDT&interval=1M"),
        ("/api/v3/exchangeInfo", ""),
    ];
    let demo = Demo::new(7);
    let first = calls.map(|(path, query)| call(&demo, path, query, NOW));
    for (path, query) in calls {
        call(&demo, path, query, NOW - DAY_MS);
    }
    for ((path, query), first) in calls.iter().zip(&first).rev() {
        assert_eq!(call(&demo, path, query, NOW), *first, "{path}?{query}");
        assert_eq!(call(&Demo::new(7), path, query, NOW), *first, "{path}?{query}");
    }
    let (path, query) = calls[0];
    assert_ne!(call(&demo, path, query, NOW + 1000), first[0]);
    assert_ne!(call(&Demo::new(8), path, query, NOW), first[0]);
}
