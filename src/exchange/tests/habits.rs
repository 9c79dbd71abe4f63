//! Exchanges that were described with the documentation alone: one that writes arrays by position and
//! has no clock, and one that names its markets by one asset.

use super::testing::Notes;
use crate::exchange::{Call, Dialect, NextPage, ReadError, Reading};
use std::sync::LazyLock;

fn dialect(text: &str) -> &'static Dialect {
    let dialect = Dialect::read("habits.json", text);
    Box::leak(Box::new(dialect.unwrap_or_else(|faults| panic!("{faults:?}"))))
}

/// Arrays by position; errors like `["error",10020,"symbol: invalid"]`.
pub(super) static ROWS: LazyLock<&Dialect> = LazyLock::new(|| {
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
            "fields": "id pair", "id": "t{id}", "skipped": ["f*", ".d"]
        },
        "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
    }"#,
    )
});

/// `{"BTC":{...}}` means BTC/KRW, and the time of all tickers is a member among them.
pub(super) static NAMED: LazyLock<&Dialect> = LazyLock::new(|| {
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

/// Volumes under the names of both assets, an index without a volume, and a list that names no quote asset.
pub(super) static ASSETS: LazyLock<&Dialect> = LazyLock::new(|| {
    dialect(
        r#"{
        "name": "assets", "baseUrl": "https://assets.invalid", "budget": { "units": 5, "perMs": 1000 },
        "tickers": {
            "one": { "call": { "target": "/t/{id}", "items": "." } },
            "time": "ms", "constants": { "askVolume": "0.5" },
            "fields": {
                "last": "last",
                "volume": { "{base}": "baseVolume", "{quote}": "quoteVolume", "timestamp": "time" }
            }
        },
        "candles": {
            "call": { "target": "/c/{id}/{interval}", "items": "[]" }, "intervals": { "1d": "1d" },
            "rows": 100, "time": "ms", "constants": { "volume": "0" },
            "fields": ["time", "open", "high", "low", "close"]
        },
        "markets": {
            "call": { "target": "/list", "items": "[]" }, "fields": { "name": "id base", "fee": "taker" },
            "renamed": { "XBT": "BTC" },
            "constants": { "quote": "USD", "priceStep": "0.010", "taker": "0.002" }
        },
        "time": { "call": { "target": "/now", "items": "now" }, "unit": "ms" }
    }"#,
    )
});

/// A list by a cursor, and tickers by the number of a page.
const PAGED: &str = r#"{
    "name": "paged", "baseUrl": "https://paged.invalid", "budget": { "units": 5, "perMs": 1000 },
    "tickers": {
        "all": { "call": {
            "target": "/t?n=2", "items": "[]",
            "pages": { "target": "/t?n=2&p={page-}&o={offset}", "size": 2, "most": 3 }
        } },
        "fields": ["id", "last"]
    },
    "candles": {
        "call": { "target": "/c/{id}/{interval}", "items": "[]" }, "intervals": { "1m": "1m" },
        "rows": 100, "time": "ms", "fields": ["time", "open", "high", "low", "close", "volume"]
    },
    "markets": {
        "call": {
            "target": "/list", "items": "rows[]",
            "pages": { "target": "/list?from={cursor}", "cursor": "next" }
        },
        "fields": "id pair"
    },
    "time": { "call": { "target": "/now", "items": "now" }, "unit": "ms" }
}"#;

/// Where the page behind this body begins, and its target.
fn next(
    dialect: &'static Dialect,
    call: &Call<'_>,
    body: &str,
    this: Option<&NextPage>,
) -> Result<Option<(NextPage, String)>, ReadError> {
    let mut notes = Notes::default();
    let mut reading = Reading::new(dialect, call, 100);
    for byte in body.as_bytes().chunks(1) {
        let _ = reading.feed(byte, &mut notes);
    }
    let next = reading.next_page(this)?;
    Ok(next.map(|next| (next.clone(), dialect.target(call, Some(&next)))))
}

#[test]
fn pages_are_counted_until_one_is_not_full() {
    let dialect = dialect(&PAGED.replace("&o={offset}", ""));
    let full = r#"[["A/B",1],["C/D","much"]]"#;
    assert_eq!(dialect.target(&Call::Tickers, None), "/t?n=2");
    let (second, target) = next(dialect, &Call::Tickers, full, None).expect("good").expect("more");
    assert_eq!((second.number, second.offset, &*target), (2, 2, "/t?n=2&p=1"));
    for last in [r#"[["A/B",1]]"#, "[]"] {
        assert_eq!(next(dialect, &Call::Tickers, last, Some(&second)), Ok(None), "{last}");
    }
    let (third, target) =
        next(dialect, &Call::Tickers, full, Some(&second)).expect("good").expect("more");
    assert_eq!((third.number, third.offset, &*target), (3, 4, "/t?n=2&p=2"));
    let end = next(dialect, &Call::Tickers, full, Some(&third));
    assert_eq!(end, Err(ReadError::TooManyPages { most: 3 }));
    assert_eq!(ReadError::TooManyPages { most: 3 }.to_string(), "more than 3 pages");
    // A body that is cut short has no next page.
    assert_eq!(next(dialect, &Call::Tickers, &full[..full.len() - 1], None), Ok(None));
    let by_offset = PAGED.replace("&p={page-}", "").replace("\"size\": 2, ", "");
    let by_offset = super::habits::dialect(&by_offset);
    let one = next(by_offset, &Call::Tickers, r#"[["A/B",1]]"#, None).expect("good");
    assert_eq!(one.map(|it| it.1).as_deref(), Some("/t?n=2&o=1"), "an empty page is the last");
}

#[test]
fn a_cursor_leads_from_page_to_page_and_never_back() {
    let dialect = dialect(&PAGED.replace("&o={offset}", ""));
    let page = |cursor: &str, this: Option<&NextPage>| {
        let body = format!(r#"{{"rows":["A/B"],"next":{cursor}}}"#);
        next(dialect, &Call::Markets { named: &[] }, &body, this)
    };
    let (second, target) = page(r#""a/b c\u0026""#, None).expect("good").expect("more");
    assert_eq!(target, "/list?from=a%2Fb%20c%26");
    let (third, target) = page("17", Some(&second)).expect("good").expect("more");
    assert_eq!((third.number, &*target), (3, "/list?from=17"));
    for last in ["null", "\"\"", "false"] {
        assert_eq!(page(last, Some(&third)), Ok(None), "{last}");
    }
    assert_eq!(
        next(dialect, &Call::Markets { named: &[] }, r#"{"rows":[]}"#, Some(&third)),
        Ok(None)
    );
    for wrong in ["17", r#""a/b c&""#, "[]", "{}", "true", &format!("\"{}\"", "x".repeat(2000))] {
        assert_eq!(page(wrong, Some(&third)), Err(ReadError::WrongCursor), "{wrong}");
    }
    // The pages of a list are bounded, also if each names another cursor.
    let mut this = third;
    while let Ok(Some((next, _))) = page(&format!("{}", 100 + this.number), Some(&this)) {
        this = next;
    }
    assert_eq!(this.number, 20);
}
