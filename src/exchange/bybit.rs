//! Bybit, spot.
//!
//! Source: Bybit, "API v5", Market, checked against recorded answers and against CCXT 4.5.84.
//! From memory: the limit of all addresses together. The field `X-Bapi-Limit-Status` counts
//! another limit, that of an account, so it is no meter here.
//!
//! Tickers have no time of their own. The response's `time` stands behind them and is taken for it:
//! the recorded sample has it there; that it is the time of the figures, to within the making of a
//! response, is from the documentation. Bybit sends no fees with its markets, and failures with
//! status 200.

use super::candle::CandleForm;
use super::dialect::{Budget, Candles, Dialect, Endpoint, Markets, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step::Key;
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::{In, Is};
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static BYBIT: Dialect = Dialect {
    name: "bybit",
    base_url: "https://api.bybit.com",
    budget: Budget {
        units: 600,
        per: Duration::from_secs(5),
    },
    meter: None,
    refusal: Refusal {
        code: "retCode",
        ok: Some("0"),
        message: "retMsg",
        rate_limited: &["10006", "10018"],
        // A parameter is wrong. Only the market's name differs between requests.
        unknown_market: &["10001"],
    },
    // "403, access too frequent" is all that is said to an address that asks too often.
    statuses: Statuses {
        rate_limited: &[403, 429],
        banned: &[418],
    },
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/v5/market/tickers?category=spot",
            cost: 1,
            place: Place::elements(&[Key("result"), Key("list")]),
        }),
        one: Endpoint {
            target: "/v5/market/tickers?category=spot&symbol={id}",
            cost: 1,
            place: Place::elements(&[Key("result"), Key("list")]),
        },
        stats: None,
        stamp: Some(&[Key("time")]),
        form: TickerForm {
            time: TimeForm::Millis,
            members: &[
                ("symbol", Is(T::Id)),
                ("bid1Price", Is(T::Bid)),
                ("bid1Size", Is(T::BidVolume)),
                ("ask1Price", Is(T::Ask)),
                ("ask1Size", Is(T::AskVolume)),
                ("lastPrice", Is(T::Last)),
                ("prevPrice24h", Is(T::Open)),
                ("price24hPcnt", Is(T::Ratio)),
                ("highPrice24h", Is(T::High)),
                ("lowPrice24h", Is(T::Low)),
                ("turnover24h", Is(T::QuoteVolume)),
                ("volume24h", Is(T::BaseVolume)),
            ],
        },
    },
    candles: Candles {
        endpoint: Endpoint {
            target: "/v5/market/kline?category=spot&symbol={id}&interval={interval}&start={from}\
                     &end={to}&limit={limit}",
            cost: 1,
            place: Place::elements(&[Key("result"), Key("list")]),
        },
        archive: None,
        intervals: ["1", "60", "D"],
        page: Page {
            rows: 1000,
            depth: None,
        },
        form: CandleForm {
            time: 0,
            open: 1,
            high: 2,
            low: 3,
            close: 4,
            volume: 5,
            closed: None,
            time_form: TimeForm::Millis,
        },
    },
    markets: Markets {
        endpoint: Endpoint {
            target: "/v5/market/instruments-info?category=spot",
            cost: 1,
            place: Place::elements(&[Key("result"), Key("list")]),
        },
        form: ListingForm {
            members: &[
                ("symbol", Is(L::Id)),
                ("baseCoin", Is(L::Base)),
                ("quoteCoin", Is(L::Quote)),
                ("status", Is(L::Status)),
                (
                    "lotSizeFilter",
                    In(&[
                        ("basePrecision", Is(L::AmountStep)),
                        ("minOrderQty", Is(L::AmountMin)),
                        ("maxOrderQty", Is(L::AmountMax)),
                        ("minOrderAmt", Is(L::CostMin)),
                        ("maxOrderAmt", Is(L::CostMax)),
                    ]),
                ),
                ("priceFilter", In(&[("tickSize", Is(L::PriceStep))])),
            ],
            open: "Trading",
            renamed: &[],
            skipped: &[],
            fees_in_percent: false,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/v5/market/time",
            cost: 1,
            place: Place::itself(&[Key("time")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::BYBIT;
    use crate::exchange::testing::{candles, check_refusals, check_targets, check_time, read};
    use crate::exchange::{Call, RefusalKind::*};
    use crate::interval::Stored;

    /// Of two hours in May of 2020, seen from then.
    const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

    #[test]
    fn its_calls_have_its_targets() {
        let (from, to) = HOURS;
        check_targets(
            &BYBIT,
            &[
                (Call::Tickers, "/v5/market/tickers?category=spot"),
                (
                    Call::Ticker { id: "A-B" },
                    "/v5/market/tickers?category=spot&symbol=A-B",
                ),
                (Call::Markets, "/v5/market/instruments-info?category=spot"),
                (Call::Time, "/v5/market/time"),
                (
                    candles(Stored::H1, from, to, to),
                    "/v5/market/kline?category=spot&symbol=A-B&interval=60&start=1588280400000&end=1588284000000&limit=1000",
                ),
                (
                    candles(Stored::M1, from, to, i64::MAX),
                    "/v5/market/kline?category=spot&symbol=A-B&interval=1&start=1588280400000&end=1588284000000&limit=1000",
                ),
                (
                    candles(Stored::D1, 0, 0, to),
                    "/v5/market/kline?category=spot&symbol=A-B&interval=D&start=0&end=0&limit=1000",
                ),
            ],
        );
    }

    #[test]
    fn its_errors_are_refusals_whatever_was_asked() {
        check_refusals(
            &BYBIT,
            &[
                (
                    200,
                    r#"{"retCode":10001,"retMsg":"Not supported symbols","result":{},"retExtInfo":{},"time":1672712468011}"#,
                    "10001",
                    "Not supported symbols",
                    UnknownMarket,
                ),
                (
                    200,
                    r#"{"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1}"#,
                    "10006",
                    "Too many visits!",
                    RateLimited,
                ),
                (
                    403,
                    r#"{"retCode":10018,"retMsg":"ip rate limit","result":null}"#,
                    "10018",
                    "ip rate limit",
                    RateLimited,
                ),
                (
                    200,
                    r#"{"retCode":10016,"retMsg":"Internal error","result":{"list":[]}}"#,
                    "10016",
                    "Internal error",
                    Other,
                ),
            ],
        );
    }

    #[test]
    fn the_time_of_the_response_is_that_of_its_tickers_wherever_it_stands() {
        let check = |body: &str, expected: Option<i64>| {
            let (notes, end) = read(&BYBIT, &Call::Tickers, body);
            assert_eq!((end, notes.tickers.len()), (Ok(()), 1), "{body}");
            let stamp = notes.tickers[0].1.timestamp.map(|time| time.0);
            assert_eq!(stamp, expected, "{body}");
        };
        let list = r#""result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]}"#;
        let time = r#""time":1673859087947"#;
        check(&format!("{{{list},{time}}}"), Some(1_673_859_087_947));
        check(&format!("{{{time},{list}}}"), Some(1_673_859_087_947));
        check(&format!("{{{list}}}"), None);
        check(&format!(r#"{{{list},"time":"noon"}}"#), None);
        check(&format!(r#"{{{list},"time":null}}"#), None);
    }

    #[test]
    fn its_clock_is_read() {
        check_time(
            &BYBIT,
            r#"{"retCode":0,"retMsg":"OK","result":{"timeSecond":"1688639403","timeNano":"1688639403423213947"},"retExtInfo":{},"time":1688639403423}"#,
            1_688_639_403_423,
        );
    }
}
