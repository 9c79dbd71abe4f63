//! Binance, and every exchange that speaks its dialect (Binance US, the built-in demo).
//!
//! Source: Binance, "Public Rest API for Binance" (binance-spot-api-docs, rest-api.md,
//! filters.md, errors.md), checked against recorded answers. Binance sends no fees with its
//! markets.

use super::candle::CandleForm;
use super::dialect::{Budget, Candles, Dialect, Endpoint, Markets, Meter, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step;
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::{Is, Tagged};
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static BINANCE: Dialect = Dialect {
    name: "binance",
    base_url: "https://api.binance.com",
    budget: Budget {
        units: 6000,
        per: Duration::from_secs(60),
    },
    meter: Some(Meter::Used("x-mbx-used-weight-1m")),
    refusal: Refusal {
        code: "code",
        ok: None,
        message: "msg",
        rate_limited: &["-1003"],
        unknown_market: &["-1121"],
    },
    // 429 comes first. 418 is the ban for ignoring it. 403 is what the firewall sends for the same
    // reason (rest-api.md, "IP Limits" and "HTTP Return Codes").
    statuses: Statuses {
        rate_limited: &[403, 418, 429],
        banned: &[],
    },
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/api/v3/ticker/24hr",
            cost: 80,
            place: Place::elements(&[]),
        }),
        one: Endpoint {
            target: "/api/v3/ticker/24hr?symbol={id}",
            cost: 2,
            place: Place::itself(&[]),
        },
        stats: None,
        stamp: None,
        form: TickerForm {
            time: TimeForm::Millis,
            members: &[
                ("symbol", Is(T::Id)),
                ("priceChange", Is(T::Change)),
                ("priceChangePercent", Is(T::Percentage)),
                ("lastPrice", Is(T::Last)),
                ("bidPrice", Is(T::Bid)),
                ("bidQty", Is(T::BidVolume)),
                ("askPrice", Is(T::Ask)),
                ("askQty", Is(T::AskVolume)),
                ("openPrice", Is(T::Open)),
                ("highPrice", Is(T::High)),
                ("lowPrice", Is(T::Low)),
                ("volume", Is(T::BaseVolume)),
                ("quoteVolume", Is(T::QuoteVolume)),
                ("closeTime", Is(T::Time)),
            ],
        },
    },
    candles: Candles {
        endpoint: Endpoint {
            target: "/api/v3/klines?symbol={id}&interval={interval}&startTime={from}&endTime={to}\
                     &limit={limit}",
            cost: 2,
            place: Place::elements(&[]),
        },
        archive: None,
        intervals: ["1m", "1h", "1d"],
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
            target: "/api/v3/exchangeInfo",
            cost: 20,
            place: Place::elements(&[Step::Key("symbols")]),
        },
        form: ListingForm {
            members: &[
                ("symbol", Is(L::Id)),
                ("status", Is(L::Status)),
                ("baseAsset", Is(L::Base)),
                ("quoteAsset", Is(L::Quote)),
                (
                    "filters",
                    Tagged {
                        tag: "filterType",
                        kinds: &[
                            (
                                "PRICE_FILTER",
                                &[
                                    ("minPrice", Is(L::PriceMin)),
                                    ("maxPrice", Is(L::PriceMax)),
                                    ("tickSize", Is(L::PriceStep)),
                                ],
                            ),
                            (
                                "LOT_SIZE",
                                &[
                                    ("minQty", Is(L::AmountMin)),
                                    ("maxQty", Is(L::AmountMax)),
                                    ("stepSize", Is(L::AmountStep)),
                                ],
                            ),
                            (
                                "NOTIONAL",
                                &[
                                    ("minNotional", Is(L::CostMin)),
                                    ("maxNotional", Is(L::CostMax)),
                                ],
                            ),
                            ("MIN_NOTIONAL", &[("minNotional", Is(L::CostMin))]),
                        ],
                    },
                ),
            ],
            open: "TRADING",
            // The asset is Yoyow everywhere else.
            renamed: &[("YOYO", "YOYOW")],
            skipped: &[],
            fees_in_percent: false,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/api/v3/time",
            cost: 1,
            place: Place::itself(&[Step::Key("serverTime")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::BINANCE;
    use crate::exchange::testing::read;
    use crate::exchange::{Call, Fault};
    use crate::time::UnixMs;

    #[test]
    fn a_bad_ticker_is_rejected_alone() {
        let check = |bad: &str, id: Option<&str>, field, fault| {
            let body = format!(
                r#"[{{"symbol":"A","lastPrice":"1"}},{bad},{{"symbol":"B","lastPrice":"2"}}]"#
            );
            let (notes, end) = read(&BINANCE, &Call::Tickers, &body);
            assert_eq!(end, Ok(()), "{bad}");
            assert_eq!(
                notes.rejected,
                [(id.map(str::to_owned), field, fault)],
                "{bad}"
            );
            let ids: Vec<_> = notes.tickers.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids, ["A", "B"], "{bad}");
        };
        for other in ["7", "null", "\"X\"", "[]", "NaN"] {
            check(other, None, "ticker", Fault::WrongType);
        }
        check("{}", None, "id", Fault::Missing);
        check(r#"{"symbol":""}"#, None, "id", Fault::Missing);
        check(
            r#"{"symbol":["X"],"lastPrice":"1"}"#,
            None,
            "id",
            Fault::WrongType,
        );
        check(r#"{"symbol":"X"}"#, Some("X"), "last", Fault::Missing);
        check(
            r#"{"symbol":"X","lastPrice":null}"#,
            Some("X"),
            "last",
            Fault::Missing,
        );
        check(
            r#"{"symbol":"X","lastPrice":""}"#,
            Some("X"),
            "last",
            Fault::Missing,
        );
        let members = [
            ("lastPrice", "last"),
            ("bidPrice", "bid"),
            ("bidQty", "bidVolume"),
            ("askPrice", "ask"),
            ("askQty", "askVolume"),
            ("openPrice", "open"),
            ("highPrice", "high"),
            ("lowPrice", "low"),
            ("volume", "baseVolume"),
            ("quoteVolume", "quoteVolume"),
            ("priceChange", "change"),
            ("priceChangePercent", "percentage"),
        ];
        for (member, field) in members {
            let bad =
                |value: &str| format!(r#"{{"symbol":"X","lastPrice":"1","{member}":{value}}}"#);
            for word in [r#""NaN""#, r#""abc""#, "NaN", "-Infinity", r#""1\u0030""#] {
                check(&bad(word), Some("X"), field, Fault::NotANumber);
            }
            for other in ["true", "[]", "[1]", r#"{"a":1}"#] {
                check(&bad(other), Some("X"), field, Fault::WrongType);
            }
            check(&bad("1e999"), Some("X"), field, Fault::TooLong);
            check(&bad(r#""1e999""#), Some("X"), field, Fault::TooLong);
            if !matches!(field, "change" | "percentage") {
                check(&bad("-1"), Some("X"), field, Fault::Negative);
            }
        }
        check(
            r#"{"symbol":"X","lastPrice":"1","closeTime":"soon"}"#,
            Some("X"),
            "timestamp",
            Fault::NotATime,
        );
    }

    #[test]
    fn what_is_not_sent_is_unknown_and_zeros_are_left_to_the_market() {
        let body = r#"[{"symbol":"X","lastPrice":"0.00000000","bidPrice":0,"askPrice":"","priceChange":"-1.50","weightedAvgPrice":NaN,"closeTime":0}]"#;
        let (notes, end) = read(&BINANCE, &Call::Tickers, body);
        assert_eq!(end, Ok(()));
        let ticker = &notes.tickers[0].1;
        assert!(ticker.last.is_zero());
        assert!(ticker.bid.as_ref().is_some_and(|bid| bid.is_zero()));
        assert_eq!(ticker.ask, None);
        assert_eq!(ticker.timestamp, None);
        assert_eq!(
            ticker.change.as_ref().map(ToString::to_string),
            Some("-1.5".into())
        );
        assert_eq!(ticker.base_volume, None);
    }

    #[test]
    fn one_ticker_a_time_and_a_market_are_read() {
        let one = r#"{"symbol":"X","lastPrice":"7","priceChangePercent":"-2.427"}"#;
        let (notes, end) = read(&BINANCE, &Call::Ticker { id: "X" }, one);
        assert_eq!((end, notes.tickers.len()), (Ok(()), 1));
        let (notes, end) = read(&BINANCE, &Call::Time, r#"{"serverTime":1499827319559}"#);
        assert_eq!(
            (end, notes.times),
            (Ok(()), vec![UnixMs(1_499_827_319_559)])
        );
        let list = r#"{"timezone":"UTC","symbols":[{"symbol":"YOYOBTC","status":"BREAK","baseAsset":"YOYO","quoteAsset":"BTC","filters":[
            {"filterType":"LOT_SIZE","minQty":"0","maxQty":"9.50","stepSize":"1.00000000"},
            {"minNotional":"10.0000","filterType":"MIN_NOTIONAL"},{"filterType":"PRICE_FILTER","tickSize":"0.00000000"}]}]}"#;
        let (notes, end) = read(&BINANCE, &Call::Markets, list);
        assert_eq!(end, Ok(()));
        let market = &notes.markets[0];
        assert_eq!((&*market.base, market.active), ("YOYOW", false));
        let rules = &market.rules;
        assert_eq!((rules.amount_places, rules.price_places), (Some(0), None));
        assert_eq!(
            (&rules.amount.min, &rules.cost.max, &rules.price.min),
            (&None, &None, &None)
        );
        assert_eq!(
            rules.amount.max.as_ref().map(ToString::to_string),
            Some("9.5".into())
        );
        assert_eq!(
            rules.cost.min.as_ref().map(ToString::to_string),
            Some("10".into())
        );
    }
}
