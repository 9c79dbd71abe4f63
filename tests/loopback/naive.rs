//! Candles as a person would add them up: slowly, in whole numbers, with nothing of marketd's own.

use crate::support::generated::UNIT;
use crate::support::{Binance, Json, get};

const DAY_MS: i64 = 86_400_000;

/// One candle; prices and volume in [`UNIT`]ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candle {
    pub open_ms: i64,
    pub open: i128,
    pub high: i128,
    pub low: i128,
    pub close: i128,
    pub volume: i128,
}

/// The row of an answer.
pub fn row(candle: &Candle) -> Json {
    let prices = [candle.open, candle.high, candle.low, candle.close, candle.volume];
    let digits = prices.into_iter().map(|units| Json::Number(plain(units)));
    let open = Json::Number(candle.open_ms.to_string());
    Json::Array(std::iter::once(open).chain(digits).collect())
}

/// The body of an answer.
pub fn body(candles: &[Candle]) -> Json {
    Json::Array(candles.iter().map(row).collect())
}

/// Units in the shortest form of a decimal.
pub fn plain(units: i128) -> String {
    let unit = i128::from(UNIT);
    let text = format!("{}.{:08}", units / unit, units % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Units of a text with at most eight places.
fn units(text: &str) -> i128 {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let padded = format!("{whole}{places:0<8}");
    padded.parse().expect("an exchange sends digits")
}

/// What the exchange itself says of the slots from `from` to `to`, both open times, both included.
pub fn asked_of(exchange: &Binance, id: &str, interval: &str, from: i64, to: i64) -> Vec<Candle> {
    let (mut candles, mut next) = (Vec::new(), from);
    loop {
        let target = format!(
            "/api/v3/klines?symbol={id}&interval={interval}&startTime={next}&endTime={to}&limit=1000"
        );
        let page = get(exchange.addr(), &target).exact();
        let read = |row: &Json| {
            let field = |at: usize| units(row[at].text().expect("a digit text"));
            Candle {
                open_ms: row[0].integer().expect("an open time"),
                open: field(1),
                high: field(2),
                low: field(3),
                close: field(4),
                volume: field(5),
            }
        };
        candles.extend(page.items().iter().map(read));
        if page.items().len() < 1000 {
            return candles;
        }
        next = candles.last().map_or(to, |last: &Candle| last.open_ms + 1);
    }
}

/// The stored interval that an interval is made of.
pub fn base_of(interval: &str) -> &'static str {
    match interval {
        "1m" | "3m" | "5m" | "15m" | "30m" => "1m",
        "1d" | "3d" | "1w" | "1M" => "1d",
        _ => "1h",
    }
}

/// Open time of the candle of this interval that holds this moment.
pub fn open_time(interval: &str, at: i64) -> i64 {
    let (number, unit) = interval.split_at(interval.len() - 1);
    let number: i64 = number.parse().expect("an interval begins with a number");
    let length = match unit {
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        // 1970 began on a Thursday; the Monday before was three days earlier.
        "w" => return (at + 3 * DAY_MS).div_euclid(7 * DAY_MS) * 7 * DAY_MS - 3 * DAY_MS,
        "M" => return month_of(at),
        other => panic!("no interval ends with {other}"),
    };
    at.div_euclid(number * length) * number * length
}

/// The first moment of the month of this moment: counted month by month from 1970.
fn month_of(at: i64) -> i64 {
    let (mut begin, mut year, mut month) = (0, 1970, 1);
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let next = begin + days * DAY_MS;
        if at < next {
            return begin;
        }
        begin = next;
        month = month % 12 + 1;
        year += i64::from(month == 1);
    }
}

/// Candles of a longer interval.
pub fn rolled_up(candles: &[Candle], interval: &str) -> Vec<Candle> {
    let mut targets: Vec<Candle> = Vec::new();
    for candle in candles {
        let open_ms = open_time(interval, candle.open_ms);
        match targets.last_mut() {
            Some(last) if last.open_ms == open_ms => {
                last.high = last.high.max(candle.high);
                last.low = last.low.min(candle.low);
                last.close = candle.close;
                last.volume += candle.volume;
            }
            _ => targets.push(Candle { open_ms, ..candle.clone() }),
        }
    }
    targets
}

#[test]
fn intervals_begin_where_calendars_say() {
    // 2024-05-15 10:37:05, a Wednesday.
    let at = 1_715_769_425_000;
    for (interval, open) in [
        ("1m", 1_715_769_420_000),
        ("15m", 1_715_769_000_000),
        ("1h", 1_715_767_200_000),
        ("8h", 1_715_760_000_000),
        ("1d", 1_715_731_200_000),
        ("1w", 1_715_558_400_000),
        ("1M", 1_714_521_600_000),
    ] {
        assert_eq!(open_time(interval, at), open, "{interval}");
    }
    assert_eq!(plain(6_412_345_000_000), "64123.45");
    assert_eq!(plain(12), "0.00000012");
    assert_eq!(plain(200_000_000), "2");
    assert_eq!(units("64123.45000000"), 6_412_345_000_000);
}
