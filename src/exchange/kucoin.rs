//! KuCoin, spot.
//!
//! Source: KuCoin, "Classic API", Spot Trading, Market Data, checked against recorded answers and
//! against CCXT 4.5.84 (weights, rows of a page). From memory: the pool of weights (CCXT reckons
//! with twice as much), the meter, the code when it is empty, and whether `endAt` belongs to the
//! range. KuCoin sends fees with its tickers, not with its markets.
//!
//! All tickers are a snapshot that is taken every two seconds.

use super::candle::CandleForm;
use super::dialect::{Budget, Candles, Dialect, Endpoint, Markets, Meter, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step::Key;
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::Is;
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static KUCOIN: Dialect = Dialect {
    name: "kucoin",
    base_url: "https://api.kucoin.com",
    budget: Budget {
        units: 2000,
        per: Duration::from_secs(30),
    },
    meter: Some(Meter::Left("gw-ratelimit-remaining")),
    refusal: Refusal {
        code: "code",
        ok: Some("200000"),
        message: "msg",
        rate_limited: &["429000"],
        // A parameter is wrong. Only the market's name differs between requests.
        unknown_market: &["400100"],
    },
    statuses: Statuses::USUAL,
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/api/v1/market/allTickers",
            cost: 15,
            place: Place::elements(&[Key("data"), Key("ticker")]),
        }),
        one: Endpoint {
            target: "/api/v1/market/stats?symbol={id}",
            cost: 15,
            place: Place::itself(&[Key("data")]),
        },
        stats: None,
        stamp: Some(&[Key("data"), Key("time")]),
        form: TickerForm {
            time: TimeForm::Millis,
            members: &[
                // In the answer about one market only.
                ("time", Is(T::Time)),
                ("symbol", Is(T::Id)),
                ("buy", Is(T::Bid)),
                ("sell", Is(T::Ask)),
                ("bestBidSize", Is(T::BidVolume)),
                ("bestAskSize", Is(T::AskVolume)),
                ("changeRate", Is(T::Ratio)),
                ("changePrice", Is(T::Change)),
                ("high", Is(T::High)),
                ("low", Is(T::Low)),
                ("vol", Is(T::BaseVolume)),
                ("volValue", Is(T::QuoteVolume)),
                ("last", Is(T::Last)),
            ],
        },
    },
    candles: Candles {
        endpoint: Endpoint {
            target: "/api/v1/market/candles?symbol={id}&type={interval}&startAt={from}&endAt={to+}",
            cost: 3,
            place: Place::elements(&[Key("data")]),
        },
        archive: None,
        intervals: ["1min", "1hour", "1day"],
        page: Page {
            rows: 1500,
            depth: None,
        },
        form: CandleForm {
            time: 0,
            open: 1,
            close: 2,
            high: 3,
            low: 4,
            volume: 5,
            closed: None,
            time_form: TimeForm::Seconds,
        },
    },
    markets: Markets {
        endpoint: Endpoint {
            target: "/api/v2/symbols",
            cost: 4,
            place: Place::elements(&[Key("data")]),
        },
        form: ListingForm {
            members: &[
                ("symbol", Is(L::Id)),
                ("baseCurrency", Is(L::Base)),
                ("quoteCurrency", Is(L::Quote)),
                ("baseMinSize", Is(L::AmountMin)),
                // Of orders by worth; `minFunds`, where it is sent, is of all.
                ("quoteMinSize", Is(L::CostMin)),
                ("baseMaxSize", Is(L::AmountMax)),
                ("quoteMaxSize", Is(L::CostMax)),
                ("baseIncrement", Is(L::AmountStep)),
                ("priceIncrement", Is(L::PriceStep)),
                ("enableTrading", Is(L::Status)),
                ("minFunds", Is(L::CostMin)),
            ],
            open: "true",
            // Names that belong to another asset elsewhere.
            renamed: &[
                ("ALT", "APTOSLAUNCHTOKEN"),
                ("BIFI", "BIFIF"),
                ("FUD", "FTXUSERSDEBT"),
                ("KALT", "ALT"),
                ("VAI", "VAIOT"),
                ("WAX", "WAXP"),
            ],
            skipped: &[],
            fees_in_percent: false,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/api/v1/timestamp",
            cost: 3,
            place: Place::itself(&[Key("data")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::KUCOIN;
    use crate::exchange::testing::{candles, check_refusals, check_targets, check_time, read};
    use crate::exchange::{Call, RefusalKind::*};
    use crate::interval::Stored;
    use crate::time::UnixMs;

    /// Of two hours in May of 2020, seen from then.
    const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

    #[test]
    fn its_calls_have_its_targets() {
        let (from, to) = HOURS;
        check_targets(
            &KUCOIN,
            &[
                (Call::Tickers, "/api/v1/market/allTickers"),
                (
                    Call::Ticker { id: "A-B" },
                    "/api/v1/market/stats?symbol=A-B",
                ),
                (Call::Markets, "/api/v2/symbols"),
                (Call::Time, "/api/v1/timestamp"),
                (
                    candles(Stored::H1, from, to, to),
                    "/api/v1/market/candles?symbol=A-B&type=1hour&startAt=1588280400&endAt=1588284001",
                ),
                (
                    candles(Stored::M1, from, to, i64::MAX),
                    "/api/v1/market/candles?symbol=A-B&type=1min&startAt=1588280400&endAt=1588284001",
                ),
                (
                    candles(Stored::D1, 0, 0, to),
                    "/api/v1/market/candles?symbol=A-B&type=1day&startAt=0&endAt=1",
                ),
            ],
        );
    }

    #[test]
    fn its_errors_are_refusals_whatever_was_asked() {
        check_refusals(
            &KUCOIN,
            &[
                (
                    200,
                    r#"{"msg":"Unsupported trading pair.","code":"400100"}"#,
                    "400100",
                    "Unsupported trading pair.",
                    UnknownMarket,
                ),
                (
                    429,
                    r#"{"code":"429000","msg":"Too Many Requests"}"#,
                    "429000",
                    "Too Many Requests",
                    RateLimited,
                ),
                (
                    200,
                    r#"{"code":"429000","msg":"Too Many Requests"}"#,
                    "429000",
                    "Too Many Requests",
                    RateLimited,
                ),
                (
                    500,
                    r#"{"code":"500000","msg":"Internal Server Error","data":null}"#,
                    "500000",
                    "Internal Server Error",
                    Other,
                ),
            ],
        );
    }

    #[test]
    fn its_clock_is_read() {
        check_time(
            &KUCOIN,
            r#"{"code":"200000","data":1546837113087}"#,
            1_546_837_113_087,
        );
    }

    #[test]
    fn one_ticker_has_its_own_time_and_a_newer_list_its_least_cost() {
        let one = r#"{"code":"200000","data":{"time":1602832092060,"symbol":"A-B","buy":"11328.9","sell":"11329","changeRate":"-0.0055",
            "changePrice":"-63.6","high":"11610","low":"11200","vol":"2282.7","volValue":"25984946.1","last":"11328.9","averagePrice":"1"}}"#;
        let (notes, end) = read(&KUCOIN, &Call::Ticker { id: "A-B" }, one);
        assert_eq!(end, Ok(()));
        assert_eq!(
            notes.tickers[0].1.timestamp,
            Some(UnixMs(1_602_832_092_060))
        );
        let list = |funds| {
            format!(
                r#"{{"code":"200000","data":[{{"symbol":"A-B","baseCurrency":"A","quoteCurrency":"B","quoteMinSize":"0.1","enableTrading":false,"minFunds":{funds}}}]}}"#
            )
        };
        for (funds, expected) in [("null", "0.1"), (r#""0.5""#, "0.5")] {
            let (notes, end) = read(&KUCOIN, &Call::Markets, &list(funds));
            assert_eq!((end, notes.markets[0].active), (Ok(()), false));
            let cost = notes.markets[0]
                .rules
                .cost
                .min
                .as_ref()
                .map(ToString::to_string);
            assert_eq!(cost.as_deref(), Some(expected));
        }
    }
}
