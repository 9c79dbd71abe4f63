//! Gate, spot.
//!
//! Source: Gate, "API v4", Spot, checked against recorded answers and against CCXT 4.5.84. From
//! memory: the limit and its meter. Nothing recorded shows the clock: its form is what CCXT reads.
//!
//! Tickers have no time.
//!
//! Amounts are limited by `min_base_amount` and `max_base_amount`, costs by `min_quote_amount` and
//! `max_quote_amount`. The two least sizes are recorded, the two largest ones are not: their names are
//! from the documentation. `trade_status` is recorded as `tradable`, `untradable` and `sellable`; only
//! `tradable` counts as active.

use super::candle::CandleForm;
use super::dialect::{Budget, Candles, Dialect, Endpoint, Markets, Meter, Page, Tickers, Time};
use super::envelope::Place;
use super::json::Step::Key;
use super::listing::{ListingField as L, ListingForm};
use super::refusal::{Refusal, Statuses};
use super::shape::Node::{Each, Is};
use super::ticker::{TickerField as T, TickerForm};
use super::value::TimeForm;
use std::time::Duration;

pub(super) static GATE: Dialect = Dialect {
    name: "gate",
    base_url: "https://api.gateio.ws",
    // For each address alone. Taken for all together, it needs no weights.
    budget: Budget {
        units: 200,
        per: Duration::from_secs(10),
    },
    meter: Some(Meter::Left("x-gate-ratelimit-requests-remain")),
    refusal: Refusal {
        code: "label",
        ok: None,
        message: "message",
        rate_limited: &["TOO_MANY_REQUESTS", "TOO_FAST"],
        unknown_market: &["INVALID_CURRENCY_PAIR", "INVALID_CURRENCY"],
    },
    statuses: Statuses::USUAL,
    tickers: Tickers {
        all: Some(Endpoint {
            target: "/api/v4/spot/tickers",
            cost: 1,
            place: Place::elements(&[]),
        }),
        one: Endpoint {
            target: "/api/v4/spot/tickers?currency_pair={id}",
            cost: 1,
            place: Place::elements(&[]),
        },
        stats: None,
        stamp: None,
        form: TickerForm {
            time: TimeForm::Seconds,
            members: &[
                ("currency_pair", Is(T::Id)),
                ("last", Is(T::Last)),
                ("lowest_ask", Is(T::Ask)),
                ("highest_bid", Is(T::Bid)),
                ("change_percentage", Is(T::Percentage)),
                ("base_volume", Is(T::BaseVolume)),
                ("quote_volume", Is(T::QuoteVolume)),
                ("high_24h", Is(T::High)),
                ("low_24h", Is(T::Low)),
            ],
        },
    },
    candles: Candles {
        // A range and a limit exclude each other.
        endpoint: Endpoint {
            target: "/api/v4/spot/candlesticks?currency_pair={id}&interval={interval}\
                     &from={from}&to={to}",
            cost: 1,
            place: Place::elements(&[]),
        },
        archive: None,
        intervals: ["1m", "1h", "1d"],
        // "Candlestick too long ago. Maximum 10000 points ago are allowed."
        page: Page {
            rows: 1000,
            depth: Some(10_000),
        },
        // Column 1 is the volume in quote asset.
        form: CandleForm {
            time: 0,
            close: 2,
            high: 3,
            low: 4,
            open: 5,
            volume: 6,
            closed: Some((7, "true")),
            time_form: TimeForm::Seconds,
        },
    },
    markets: Markets {
        endpoint: Endpoint {
            target: "/api/v4/spot/currency_pairs",
            cost: 1,
            place: Place::elements(&[]),
        },
        form: ListingForm {
            members: &[
                ("id", Is(L::Id)),
                ("base", Is(L::Base)),
                ("quote", Is(L::Quote)),
                ("fee", Each(&[L::Taker, L::Maker])),
                ("min_base_amount", Is(L::AmountMin)),
                ("min_quote_amount", Is(L::CostMin)),
                ("max_base_amount", Is(L::AmountMax)),
                ("max_quote_amount", Is(L::CostMax)),
                ("amount_precision", Is(L::AmountPlaces)),
                ("precision", Is(L::PricePlaces)),
                ("trade_status", Is(L::Status)),
            ],
            open: "tradable",
            // Names that belong to another asset elsewhere.
            renamed: &[
                ("88MPH", "MPH"),
                ("ASS", "ASSF"),
                ("AXIS", "AXISDEFI"),
                ("BIFI", "BITCOINFILE"),
                ("BOX", "DEFIBOX"),
                ("BYN", "BEYONDFI"),
                ("EGG", "GOOSEFINANCE"),
                ("GTC", "GAMECOM"),
                ("HIT", "HITCHAIN"),
                ("MM", "MILLION"),
                ("MPH", "MORPHER"),
                ("ORT", "XREATORS"),
                ("POINT", "GATEPOINT"),
                ("RAI", "RAIREFLEXINDEX"),
                ("SBTC", "SUPERBITCOIN"),
                ("TNC", "TRINITYNETWORKCREDIT"),
                ("TRAC", "TRACO"),
                ("VAI", "VAIOT"),
            ],
            skipped: &[],
            fees_in_percent: true,
        },
    },
    time: Time {
        endpoint: Endpoint {
            target: "/api/v4/spot/time",
            cost: 1,
            place: Place::itself(&[Key("server_time")]),
        },
        form: TimeForm::Millis,
    },
};

#[cfg(test)]
mod tests {
    use super::GATE;
    use crate::exchange::testing::{candles, check_refusals, check_targets, check_time, read};
    use crate::exchange::{Call, RefusalKind::*};
    use crate::interval::Stored;

    /// Of two hours in May of 2020, seen from then.
    const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

    #[test]
    fn its_calls_have_its_targets() {
        let (from, to) = HOURS;
        check_targets(
            &GATE,
            &[
                (Call::Tickers, "/api/v4/spot/tickers"),
                (
                    Call::Ticker { id: "A-B" },
                    "/api/v4/spot/tickers?currency_pair=A-B",
                ),
                (Call::Markets, "/api/v4/spot/currency_pairs"),
                (Call::Time, "/api/v4/spot/time"),
                (
                    candles(Stored::H1, from, to, to),
                    "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1h&from=1588280400&to=1588284000",
                ),
                (
                    candles(Stored::M1, from, to, i64::MAX),
                    "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1m&from=1588280400&to=1588284000",
                ),
                (
                    candles(Stored::D1, 0, 0, to),
                    "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1d&from=0&to=0",
                ),
            ],
        );
    }

    #[test]
    fn its_errors_are_refusals_whatever_was_asked() {
        check_refusals(
            &GATE,
            &[
                (
                    400,
                    r#"{"label":"INVALID_CURRENCY_PAIR","message":"Invalid currency_pair FOO_BAR"}"#,
                    "INVALID_CURRENCY_PAIR",
                    "Invalid currency_pair FOO_BAR",
                    UnknownMarket,
                ),
                (
                    429,
                    r#"{"label":"TOO_MANY_REQUESTS","message":"Request Rate Limit Exceeded"}"#,
                    "TOO_MANY_REQUESTS",
                    "Request Rate Limit Exceeded",
                    RateLimited,
                ),
                (
                    400,
                    r#"{"message":"slow down","label":"TOO_FAST"}"#,
                    "TOO_FAST",
                    "slow down",
                    RateLimited,
                ),
                (
                    400,
                    r#"{"label":"INVALID_PARAM_VALUE"}"#,
                    "INVALID_PARAM_VALUE",
                    "INVALID_PARAM_VALUE",
                    Other,
                ),
            ],
        );
    }

    #[test]
    fn the_least_and_largest_amounts_and_costs_are_limits() {
        let body = r#"[{"id":"A_B","base":"A","quote":"B","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"3","max_base_amount":"100.50","max_quote_amount":"5000000","amount_precision":3,"precision":6,"trade_status":"tradable"}]"#;
        let (notes, end) = read(&GATE, &Call::Markets, body);
        assert_eq!(end, Ok(()));
        let rules = &notes.markets[0].rules;
        let limits = [&rules.amount, &rules.cost].map(|bounds| {
            [&bounds.min, &bounds.max].map(|limit| limit.as_ref().map(ToString::to_string))
        });
        let limit = |text: &str| Some(text.to_string());
        assert_eq!(
            limits,
            [
                [limit("0.001"), limit("100.5")],
                [limit("3"), limit("5000000")]
            ]
        );
        for (status, active) in [
            ("sellable", false),
            ("buyable", false),
            ("untradable", false),
        ] {
            let body = body.replace("tradable", status);
            let (notes, _) = read(&GATE, &Call::Markets, &body);
            assert_eq!(notes.markets[0].active, active, "{status}");
        }
    }

    #[test]
    fn its_clock_is_read() {
        check_time(&GATE, r#"{"server_time":1597026383085}"#, 1_597_026_383_085);
    }
}
