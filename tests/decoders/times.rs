//! The exchanges' clocks, and what they say instead of an answer.

use crate::decoders::decode::{Kept, decode, decode_good, sent, text_at};
use crate::decoders::recordings;
use crate::support::Fixture;
use marketd::exchange::{Call, ReadError, RefusalKind};

/// A recording, the dialect, where the time stands, and the milliseconds of its unit.
static TIMES: [(&str, &str, &str, i64); 5] = [
    ("binance.fetchTime.sample", "binance", "serverTime", 1),
    ("okx.fetchTime.sample", "okx", "data/0/ts", 1),
    ("kraken.fetchTime.2014", "kraken", "result/unixtime", 1000),
    ("bitget.fetchTime.sample", "bitget", "data/serverTime", 1),
    ("mexc.fetchTime.sample", "mexc", "serverTime", 1),
];

/// A recording, the dialect, the code and the words.
static REFUSALS: [(&str, &str, &str, &str, RefusalKind); 1] = [(
    "binance.error.invalid-symbol",
    "binance",
    "-1121",
    "Invalid symbol.",
    RefusalKind::UnknownMarket,
)];

pub fn files() -> Vec<&'static str> {
    let times = TIMES.iter().map(|row| row.0);
    times.chain(REFUSALS.iter().map(|row| row.0)).collect()
}

#[test]
fn recorded_times_equal_the_body_and_ccxt() {
    for ((_, dialect, path, unit_ms), fixture) in recordings(&TIMES, |row| row.0) {
        let kept = decode_good(dialect, &fixture, &Call::Time);
        let body = sent(&fixture);
        let time: i64 = text_at(&body, path).expect("a time").parse().expect("a number");
        let ours: Vec<i64> = kept.times.iter().map(|time| time.0).collect();
        assert_eq!(ours, [time * unit_ms], "{}", fixture.file);
        assert_eq!(Some(ours[0].to_string()), fixture.expected, "{}", fixture.file);
    }
}

#[test]
fn recorded_errors_are_refusals_whatever_was_asked() {
    let check = |fixture: &Fixture, dialect: &str, call: &Call<'_>, expected: &ReadError| {
        let (kept, end) = decode(dialect, fixture, call);
        assert_eq!(kept, Kept::default(), "{call:?}");
        assert_eq!(end.as_ref(), Err(expected), "{call:?}");
    };
    for ((_, dialect, code, message, kind), fixture) in recordings(&REFUSALS, |row| row.0) {
        let expected =
            ReadError::Refused { code: (*code).into(), message: (*message).into(), kind: *kind };
        check(&fixture, dialect, &Call::Tickers, &expected);
        check(&fixture, dialect, &Call::Ticker { id: "BTCUSD_201225" }, &expected);
        check(&fixture, dialect, &Call::Markets, &expected);
        check(&fixture, dialect, &Call::Time, &expected);
    }
}
