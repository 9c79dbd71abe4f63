//! Calls: the kinds of requests to an exchange, and its limits.

use crate::interval::Stored;
use crate::named::named;
use crate::time::UnixMs;
use std::time::Duration;

/// A request to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// The tickers of all markets.
    Tickers,
    /// The ticker of one market.
    Ticker {
        /// The market's `ticker_id`.
        id: &'a str,
    },
    /// The tickers of several markets.
    Several {
        /// Their `ticker_id`s.
        ids: &'a [&'a str],
    },
    /// The figures of the last 24 hours that the ticker of one market lacks.
    /// [`Ticker::fill_from`](crate::record::Ticker::fill_from) adds them to it.
    Stats {
        /// The market's `ticker_id`.
        id: &'a str,
    },
    /// Candles of one market.
    Candles {
        /// The market's `candle_id`, or its `ticker_id` if it has none.
        id: &'a str,
        /// The interval.
        interval: Stored,
        /// First open time. Exchanges may send more candles on either side.
        from: UnixMs,
        /// Last open time.
        to: UnixMs,
        /// The exchange's clock, because some exchanges have another endpoint for old candles.
        now: UnixMs,
    },
    /// The list of markets.
    Markets,
    /// The list of some markets.
    MarketsOf {
        /// Their ids, by [`Dialect::list_ids`](super::Dialect::list_ids).
        ids: &'a [String],
    },
    /// The exchange's clock.
    Time,
}

/// The budget of requests that an exchange allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The costs that may be spent ...
    pub units: u32,
    /// ... within any such period.
    pub per: Duration,
}

/// Where a page after the first one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextPage {
    /// Its number: the first page of all is 1.
    pub number: u32,
    /// The items of the pages before.
    pub offset: u64,
    /// The cursor that the previous page gave for it; empty if pages are counted.
    pub cursor: Box<str>,
    /// The cursors of the pages before.
    pub before: Vec<Box<str>>,
}

/// A way to request tickers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The most markets of a request; `None`: all that the exchange has.
    pub markets: Option<usize>,
    /// What such a request costs.
    pub cost: u32,
    /// The bytes of one ticker on the wire, about.
    pub bytes: u32,
}

/// What one request for candles may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most rows. A range must not have more slots than this, because exchanges differ in which
    /// rows of a longer range they send.
    pub rows: usize,
    /// How many candles, back from the newest, the exchange serves; `None`: all.
    pub depth: Option<usize>,
    /// True if the range may be wider, because the exchange sends the first rows of a range.
    pub wide: bool,
}

named! {
    /// The kinds of requests to an exchange, by the names in the log and the metrics.
    #[derive(Hash)]
    pub enum RequestKind {
        /// Tickers.
        Quotes "quotes"
        /// Candles.
        Candles "candles"
        /// The market list.
        List "markets"
        /// The exchange's clock.
        Time "time"
        /// The 24-hour figures of single markets.
        Stats "stats"
    }
}
