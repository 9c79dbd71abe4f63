//! OKX, spot.
//!
//! Source: OKX, "API v5", Market Data and Public Data, checked against recorded answers and against
//! CCXT 4.5.84. From memory: that `before` and `after` exclude their own time, that a plain `1D`
//! begins at 16:00 UTC, and the limits by address. OKX sends no fees with its markets, and failures
//! mostly with status 200.

use super::candle::CandleForm;
use super::dialect::{Archive, Budget, Candles, Dialect, Endpoint, Markets, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step::{First, Key};
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::Is;
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static OKX: Dialect = Dialect {
    name: "okx",
    base_url: "https://www.okx.com",
    // Each endpoint has a limit of its own. The widest is that of candles, 40 in two seconds; an
    // endpoint with half of that costs twice as much.
    budget: Budget {
        units: 40,
        per: Duration::from_secs(2),
    },
    meter: None,
    refusal: Refusal {
        code: "code",
        ok: Some("0"),
        message: "msg",
        rate_limited: &["50011"],
        unknown_market: &["51001"],
    },
    statuses: Statuses::USUAL,
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/api/v5/market/tickers?instType=SPOT",
            cost: 2,
            place: Place::elements(&[Key("data")]),
        }),
        one: Endpoint {
            target: "/api/v5/market/ticker?instId={id}",
            cost: 2,
            place: Place::elements(&[Key("data")]),
        },
        stats: None,
        stamp: None,
        form: TickerForm {
            time: TimeForm::Millis,
            // `sodUtc0` and `sodUtc8` are prices of the day's begin.
            members: &[
                ("instId", Is(T::Id)),
                ("last", Is(T::Last)),
                ("askPx", Is(T::Ask)),
                ("askSz", Is(T::AskVolume)),
                ("bidPx", Is(T::Bid)),
                ("bidSz", Is(T::BidVolume)),
                ("open24h", Is(T::Open)),
                ("high24h", Is(T::High)),
                ("low24h", Is(T::Low)),
                ("volCcy24h", Is(T::QuoteVolume)),
                ("vol24h", Is(T::BaseVolume)),
                ("ts", Is(T::Time)),
            ],
        },
    },
    candles: Candles {
        // `after` is what the rows are older than, and `before` what they are newer than.
        endpoint: Endpoint {
            target: "/api/v5/market/candles?instId={id}&bar={interval}&before={from-}&after={to+}\
                     &limit={limit}",
            cost: 1,
            place: Place::elements(&[Key("data")]),
        },
        archive: Some(Archive {
            endpoint: Endpoint {
                target: "/api/v5/market/history-candles?instId={id}&bar={interval}\
                         &before={from-}&after={to+}&limit={limit}",
                cost: 2,
                place: Place::elements(&[Key("data")]),
            },
            // It has 1440 rows; a few less here, because the clock goes on.
            behind: [1430; 3],
        }),
        intervals: ["1m", "1H", "1Dutc"],
        page: Page {
            rows: 300,
            depth: None,
        },
        form: CandleForm {
            time: 0,
            open: 1,
            high: 2,
            low: 3,
            close: 4,
            volume: 5,
            closed: Some((8, "1")),
            time_form: TimeForm::Millis,
        },
    },
    markets: Markets {
        endpoint: Endpoint {
            target: "/api/v5/public/instruments?instType=SPOT",
            cost: 2,
            place: Place::elements(&[Key("data")]),
        },
        form: ListingForm {
            members: &[
                ("baseCcy", Is(L::Base)),
                ("instId", Is(L::Id)),
                ("lotSz", Is(L::AmountStep)),
                ("maxLmtSz", Is(L::AmountMax)),
                ("minSz", Is(L::AmountMin)),
                ("quoteCcy", Is(L::Quote)),
                ("state", Is(L::Status)),
                ("tickSz", Is(L::PriceStep)),
            ],
            open: "live",
            // The old token of Aeternity, which has moved to a chain of its own.
            renamed: &[("AE", "AET")],
            skipped: &[],
            fees_in_percent: false,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/api/v5/public/time",
            cost: 4,
            place: Place::itself(&[Key("data"), First, Key("ts")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::OKX;
    use crate::exchange::testing::{candles, check_refusals, check_targets, read};
    use crate::exchange::{Call, RefusalKind::*};
    use crate::interval::Stored;

    /// Of two hours in May of 2020, seen from then.
    const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

    #[test]
    fn its_calls_have_its_targets() {
        let (from, to) = HOURS;
        check_targets(
            &OKX,
            &[
                (Call::Tickers, "/api/v5/market/tickers?instType=SPOT"),
                (
                    Call::Ticker { id: "A-B" },
                    "/api/v5/market/ticker?instId=A-B",
                ),
                (Call::Markets, "/api/v5/public/instruments?instType=SPOT"),
                (Call::Time, "/api/v5/public/time"),
                (
                    candles(Stored::H1, from, to, to),
                    "/api/v5/market/candles?instId=A-B&bar=1H&before=1588280399999&after=1588284000001&limit=300",
                ),
                (
                    candles(Stored::M1, from, to, from + 1429 * 60_000),
                    "/api/v5/market/candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300",
                ),
                (
                    candles(Stored::M1, from, to, from + 1430 * 60_000),
                    "/api/v5/market/history-candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300",
                ),
                (
                    candles(Stored::D1, 0, 86_400_000, to),
                    "/api/v5/market/history-candles?instId=A-B&bar=1Dutc&before=0&after=86400001&limit=300",
                ),
            ],
        );
    }

    #[test]
    fn its_errors_are_refusals_whatever_was_asked() {
        check_refusals(
            &OKX,
            &[
                (
                    200,
                    r#"{"code":"51001","msg":"Instrument ID does not exist","data":[]}"#,
                    "51001",
                    "Instrument ID does not exist",
                    UnknownMarket,
                ),
                (
                    200,
                    r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#,
                    "50011",
                    "Too Many Requests",
                    RateLimited,
                ),
                (
                    429,
                    r#"{"msg":"Requests too frequent.","code":"50011"}"#,
                    "50011",
                    "Requests too frequent.",
                    RateLimited,
                ),
                (
                    503,
                    r#"{"code":"50001","msg":"","data":[]}"#,
                    "50001",
                    "50001",
                    Other,
                ),
            ],
        );
    }

    #[test]
    fn a_candle_says_whether_it_is_closed() {
        let body = r#"{"code":"0","msg":"","data":[["7200000","1","4","1","3","9","5","0","0"],["3600000","1","4","1","3","9","5","0","1"]]}"#;
        let (notes, end) = read(&OKX, &candles(Stored::H1, 0, 0, 0), body);
        assert_eq!(end, Ok(()));
        let closed: Vec<_> = notes.candles.iter().map(|(_, closed)| *closed).collect();
        assert_eq!(closed, [Some(false), Some(true)]);
    }
}
