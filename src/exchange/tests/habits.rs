//! Exchanges that were described with the documentation alone: one that writes arrays by position and
//! has no clock, and one that names its markets by one asset.

use super::testing::{Notes, candles, read, read_with};
use crate::exchange::{Call, Caps, Dialect, ReadError, Reading, RefusalKind};
use crate::interval::Stored;
use crate::time::UnixMs;
use std::sync::LazyLock;

fn dialect(text: &str) -> &'static Dialect {
    let dialect = Dialect::read("habits.json", text);
    Box::leak(Box::new(dialect.unwrap_or_else(|faults| panic!("{faults:?}"))))
}

/// Arrays by position; errors like `["error",10020,"symbol: invalid"]`.
static ROWS: LazyLock<&Dialect> = LazyLock::new(|| {
    dialect(
        r#"{
        "name": "rows", "baseUrl": "https://rows.invalid", "budget": { "units": 30, "perMs": 60000 },
        "errors": { "code": "[1]", "message": "[2]", "rateLimited": ["11010"], "unknownMarket": ["*symbol: *"] },
        "tickers": { "all": { "call": { "target": "/tickers", "items": "[]" } }, "fields": ["id", "last"] },
        "candles": {
            "call": { "target": "/candles/{interval}/{id}", "items": "[]" }, "intervals": { "1m": "1m" },
            "rows": 10000, "time": "ms", "fields": ["time", "open", "close", "high", "low", "volume"]
        },
        "markets": {
            "call": { "target": "/list", "items": "[0][]" }, "pair": ["{base}:{quote}", "{base:3}{quote:3}"],
            "fields": "id pair"
        },
        "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
    }"#,
    )
});

/// `{"BTC":{...}}` means BTC/KRW, and the time of all tickers is a member among them.
static NAMED: LazyLock<&Dialect> = LazyLock::new(|| {
    dialect(
        r#"{
        "name": "named", "baseUrl": "https://named.invalid", "budget": { "units": 150, "perMs": 1000 },
        "errors": { "code": "status", "ok": ["0000"], "message": "message" },
        "tickers": {
            "all": { "call": { "target": "/ticker/ALL_KRW", "items": "data{}", "stamp": "data.date" } },
            "time": "ms", "fields": { "closing_price": "last" }
        },
        "candles": {
            "call": { "target": "/candles/{id}/{interval}", "items": "data[]" }, "intervals": { "1h": "1h" },
            "rows": 10000, "time": "ms", "fields": ["time", "open", "close", "high", "low", "volume"]
        },
        "markets": {
            "call": { "target": "/ticker/ALL_KRW", "items": "data{}", "stamp": "data.date" },
            "name": "id base", "quote": "KRW", "candleId": "{base}_{quote}", "renamed": { "XBT": "BTC" },
            "fields": {}
        },
        "time": { "call": { "target": "/ticker/BTC_KRW", "items": "data.date" }, "unit": "ms" }
    }"#,
    )
});

#[test]
fn an_exchange_without_a_clock_is_dated_by_its_answers() {
    let read_dated = |date: Option<UnixMs>, body: &str| {
        let caps = Caps { item_bytes: 100, envelope_bytes: 100 };
        let mut notes = Notes::default();
        let mut reading = Reading::new(&ROWS, &Call::Time, caps);
        if let Some(date) = date {
            reading.date(date, &mut notes);
        }
        let _ = reading.feed(body.as_bytes(), &mut notes);
        (reading.finish(200), notes.times)
    };
    let date = UnixMs(1_715_769_425_000);
    assert_eq!(read_dated(Some(date), "[1]"), (Ok(()), vec![date]));
    assert_eq!(read_dated(None, "[1]"), (Err(ReadError::NoDate), vec![]));
    let (end, _) = read_dated(Some(date), r#"["error",11010,"ratelimit: error"]"#);
    assert!(matches!(end, Err(ReadError::Refused { .. })), "{end:?}");
}

#[test]
fn an_error_where_items_are_expected_is_found() {
    let check = |call: Call<'_>, status: u16, code: &str, message: &str, kind: RefusalKind| {
        let body = format!("[\"error\", {code}, \"{message}\" ]");
        let (_, end) = read_with(&ROWS, &call, &body, status);
        let expected = ReadError::Refused { code: code.into(), message: message.into(), kind };
        assert_eq!(end, Err(expected), "{body}");
    };
    let rows = candles(Stored::M1, 0, 0, 0);
    for status in [200, 500] {
        let unknown = RefusalKind::UnknownMarket;
        check(rows, status, "10020", "symbol: invalid", unknown);
        let limited = RefusalKind::RateLimited;
        check(Call::Tickers, status, "11010", "ratelimit: error", limited);
        check(Call::Markets, status, "20060", "maintenance", RefusalKind::Other);
    }
}

#[test]
fn items_are_not_taken_for_an_error() {
    let (notes, end) = read(&ROWS, &Call::Tickers, r#"[["tBTCUSD",1],["tETHUSD",2],["fUSD",3]]"#);
    assert_eq!((end, notes.tickers.len()), (Ok(()), 3));
    let (notes, end) = read(&ROWS, &Call::Markets, r#"[["AVAX:USD","BTCUSD"]]"#);
    let markets = notes.markets.iter().map(|it| (&*it.base, &*it.quote));
    assert_eq!(end, Ok(()));
    assert_eq!(markets.collect::<Vec<_>>(), [("AVAX", "USD"), ("BTC", "USD")]);
    let (notes, end) =
        read(&ROWS, &candles(Stored::M1, 0, 0, 0), "[[0,1,2,3,1,5],[60000,1,2,3,1,5]]");
    assert_eq!((end, notes.candles.len()), (Ok(()), 2));
}

#[test]
fn markets_may_be_named_by_one_asset() {
    let body = r#"{"status":"0000","data":{"XBT":{"closing_price":"1"},"date":"1795358368485","ETH":{"closing_price":"2"}}}"#;
    let (notes, end) = read(&NAMED, &Call::Markets, body);
    assert_eq!((end, &notes.rejected[..]), (Ok(()), &[][..]));
    let [bitcoin, ether] = &notes.markets[..] else {
        panic!("{notes:?}");
    };
    assert_eq!((&*bitcoin.base, &*bitcoin.quote), ("BTC", "KRW"));
    assert_eq!((&*bitcoin.ticker_id, bitcoin.candle_id.as_deref()), ("XBT", Some("XBT_KRW")));
    assert_eq!((&*ether.ticker_id, ether.candle_id.as_deref()), ("ETH", Some("ETH_KRW")));
}

#[test]
fn a_time_among_the_tickers_is_that_of_all_and_no_ticker() {
    let body = r#"{"status":"0000","data":{"BTC":{"closing_price":"1"},"date":"1795358368485","ETH":{"closing_price":"2"}}}"#;
    let (notes, end) = read(&NAMED, &Call::Tickers, body);
    assert_eq!((end, &notes.rejected[..]), (Ok(()), &[][..]));
    let times = notes.tickers.iter().map(|(_, ticker)| ticker.timestamp);
    let time = Some(UnixMs(1_795_358_368_485));
    assert_eq!(times.collect::<Vec<_>>(), [time, time]);
}
