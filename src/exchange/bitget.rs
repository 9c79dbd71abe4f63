//! Bitget, spot.
//!
//! Source: Bitget, "API v2", Spot, checked against recorded answers and against CCXT 4.5.84
//! (intervals, pages, days at hand). From memory: the limit, whether `endTime` belongs to the
//! range, and that a plain `1day` begins at 16:00 UTC.

use super::candle::CandleForm;
use super::dialect::{Archive, Budget, Candles, Dialect, Endpoint, Markets, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step::Key;
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::Is;
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static BITGET: Dialect = Dialect {
    name: "bitget",
    base_url: "https://api.bitget.com",
    budget: Budget {
        units: 20,
        per: Duration::from_secs(1),
    },
    meter: None,
    refusal: Refusal {
        code: "code",
        ok: Some("00000"),
        message: "msg",
        rate_limited: &["429", "1001", "50009"],
        // "Parameter does not exist", and a market that was removed.
        unknown_market: &["40034", "40309"],
    },
    statuses: Statuses::USUAL,
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/api/v2/spot/market/tickers",
            cost: 1,
            place: Place::elements(&[Key("data")]),
        }),
        one: Endpoint {
            target: "/api/v2/spot/market/tickers?symbol={id}",
            cost: 1,
            place: Place::elements(&[Key("data")]),
        },
        stats: None,
        stamp: None,
        form: TickerForm {
            time: TimeForm::Millis,
            // `openUtc` and `changeUtc24h` count from the day's begin.
            members: &[
                ("symbol", Is(T::Id)),
                ("high24h", Is(T::High)),
                ("open", Is(T::Open)),
                ("low24h", Is(T::Low)),
                ("lastPr", Is(T::Last)),
                ("quoteVolume", Is(T::QuoteVolume)),
                ("baseVolume", Is(T::BaseVolume)),
                ("bidPr", Is(T::Bid)),
                ("askPr", Is(T::Ask)),
                ("bidSz", Is(T::BidVolume)),
                ("askSz", Is(T::AskVolume)),
                ("ts", Is(T::Time)),
                ("change24h", Is(T::Ratio)),
            ],
        },
    },
    candles: Candles {
        endpoint: Endpoint {
            target: "/api/v2/spot/market/candles?symbol={id}&granularity={interval}\
                     &startTime={from}&endTime={to+}&limit={limit}",
            cost: 1,
            place: Place::elements(&[Key("data")]),
        },
        archive: Some(Archive {
            // It counts back from the end, and has no start time.
            endpoint: Endpoint {
                target: "/api/v2/spot/market/history-candles?symbol={id}&granularity={interval}\
                         &endTime={to+}&limit={slots}",
                cost: 1,
                place: Place::elements(&[Key("data")]),
            },
            // It has 30, 60 and 1440 days; one less here, because the clock goes on.
            behind: [29 * 24 * 60, 59 * 24, 1439],
        }),
        intervals: ["1min", "1h", "1Dutc"],
        // The limit of the archive. The other endpoint has 1000, but only 300 for days.
        page: Page {
            rows: 200,
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
            target: "/api/v2/spot/public/symbols",
            cost: 1,
            place: Place::elements(&[Key("data")]),
        },
        form: ListingForm {
            members: &[
                ("symbol", Is(L::Id)),
                ("baseCoin", Is(L::Base)),
                ("quoteCoin", Is(L::Quote)),
                ("minTradeAmount", Is(L::AmountMin)),
                ("maxTradeAmount", Is(L::AmountMax)),
                ("takerFeeRate", Is(L::Taker)),
                ("makerFeeRate", Is(L::Maker)),
                ("pricePrecision", Is(L::PricePlaces)),
                ("quantityPrecision", Is(L::AmountPlaces)),
                ("status", Is(L::Status)),
                ("minTradeUSDT", Is(L::CostMinUsdt)),
            ],
            open: "online",
            // Names that belong to another asset elsewhere.
            renamed: &[
                ("APX", "ASTROPEPEX"),
                ("DEGEN", "DEGENREBORN"),
                ("EVA", "EVADORE"),
                ("JADE", "JADEPROTOCOL"),
                ("TONCOIN", "TON"),
            ],
            skipped: &[],
            fees_in_percent: false,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/api/v2/public/time",
            cost: 1,
            place: Place::itself(&[Key("data"), Key("serverTime")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::BITGET;
    use crate::exchange::testing::{candles, check_refusals, check_targets, read};
    use crate::exchange::{Call, RefusalKind::*};
    use crate::interval::Stored;

    /// Of two hours in May of 2020, seen from then.
    const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

    #[test]
    fn its_calls_have_its_targets() {
        let (from, to) = HOURS;
        check_targets(
            &BITGET,
            &[
                (Call::Tickers, "/api/v2/spot/market/tickers"),
                (
                    Call::Ticker { id: "A-B" },
                    "/api/v2/spot/market/tickers?symbol=A-B",
                ),
                (Call::Markets, "/api/v2/spot/public/symbols"),
                (Call::Time, "/api/v2/public/time"),
                (
                    candles(Stored::H1, from, to, to),
                    "/api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200",
                ),
                (
                    candles(Stored::H1, from, to, from + 59 * 86_400_000 - 1),
                    "/api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200",
                ),
                (
                    candles(Stored::H1, from, to, from + 59 * 86_400_000),
                    "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1h&endTime=1588284000001&limit=2",
                ),
                (
                    candles(Stored::M1, from, to, from + 29 * 86_400_000),
                    "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1min&endTime=1588284000001&limit=61",
                ),
                (
                    candles(Stored::D1, 0, 0, to),
                    "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1Dutc&endTime=1&limit=1",
                ),
            ],
        );
    }

    #[test]
    fn its_errors_are_refusals_whatever_was_asked() {
        check_refusals(
            &BITGET,
            &[
                (
                    400,
                    r#"{"code":"40034","msg":"Parameter FOOBAR does not exist","requestTime":1725192127389,"data":null}"#,
                    "40034",
                    "Parameter FOOBAR does not exist",
                    UnknownMarket,
                ),
                (
                    429,
                    r#"{"code":"429","msg":"Too Many Requests","requestTime":1,"data":null}"#,
                    "429",
                    "Too Many Requests",
                    RateLimited,
                ),
                (
                    200,
                    r#"{"code":429,"msg":"Too Many Requests"}"#,
                    "429",
                    "Too Many Requests",
                    RateLimited,
                ),
                (
                    200,
                    r#"{"code":"40015","msg":"","requestTime":1595698564931,"data":null}"#,
                    "40015",
                    "40015",
                    Other,
                ),
            ],
        );
    }

    #[test]
    fn a_least_cost_in_usdt_is_said_of_markets_quoted_in_it_alone() {
        let list = |quote| {
            format!(
                r#"{{"code":"00000","data":[{{"symbol":"X","baseCoin":"A","quoteCoin":"{quote}","minTradeUSDT":"1"}}]}}"#
            )
        };
        for (quote, expected) in [("USDT", Some("1")), ("BTC", None)] {
            let (notes, end) = read(&BITGET, &Call::Markets, &list(quote));
            assert_eq!(end, Ok(()));
            let cost = notes.markets[0]
                .rules
                .cost
                .min
                .as_ref()
                .map(ToString::to_string);
            assert_eq!(cost.as_deref(), expected, "{quote}");
        }
    }
}
