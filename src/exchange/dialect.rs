//! A dialect: the endpoints, limits and JSON of one exchange, as data.
//!
//! Owns the structs that a dialect's file is read into; what their members mean to each other is
//! `check`'s. It sends nothing, reads no clock, and does not count what was spent: it only tells
//! what a call costs.

use super::candle::{CandleField, CandleForm};
use super::error::RefusalKind;
use super::listing::ListingForm;
use super::path::{Path, Place};
use super::refusal::Refusal;
use super::shape::Node;
use super::target::{Rows, Target};
use super::ticker::TickerField;
use super::value::Unit;
use crate::interval::Stored;
use crate::time::UnixMs;
use serde::Deserialize;
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
    /// The figures of the last 24 hours that the ticker of one market lacks.
    /// [`Ticker::fill_from`](crate::record::Ticker::fill_from) adds them to it.
    Stats {
        /// The market's `ticker_id`.
        id: &'a str,
    },
    /// Candles of one market.
    Candles {
        /// The market's `candle_id`, or its `ticker_id` where it has none.
        id: &'a str,
        /// The interval.
        interval: Stored,
        /// First open time. Exchanges may answer with more on either side.
        from: UnixMs,
        /// Last open time.
        to: UnixMs,
        /// The most rows, at most those of a page.
        limit: usize,
        /// The exchange's clock: some keep old candles elsewhere.
        now: UnixMs,
    },
    /// The list of markets.
    Markets,
    /// The exchange's clock.
    Time,
}

/// What an exchange allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The costs that may be spent ...
    pub units: u32,
    /// ... within any such period.
    pub per: Duration,
}

/// A header field (its name in lower case) that reports the state of the budget, as a whole number
/// in the units of [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter<'d> {
    /// Spent in the current period.
    Used(&'d str),
    /// Left in the current period.
    Left(&'d str),
}

/// What one request for candles may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most rows. A range must not have more slots than this: exchanges differ in which of its
    /// rows they send then.
    pub rows: usize,
    /// How many candles, back from the newest, the exchange serves; `None`: all.
    pub depth: Option<usize>,
}

/// The endpoints, limits and JSON of one exchange: the whole of a dialect's file.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dialect {
    /// Address of the JSON Schema, for editors. Not read.
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    /// What the exchange is called in messages: 1 to 32 of a-z, 0-9 and -.
    pub(super) name: String,
    /// Remarks for people. Not read.
    #[serde(rename = "notes")]
    _notes: Option<Vec<String>>,
    /// Scheme and host of every request.
    pub(super) base_url: String,
    /// What the exchange allows.
    pub(super) budget: BudgetForm,
    /// How the exchange says that it will not answer.
    #[serde(default)]
    pub(super) errors: Refusal,
    /// Tickers.
    pub(super) tickers: Tickers,
    /// Candles.
    pub(super) candles: Candles,
    /// The market list.
    pub(super) markets: ListingForm,
    /// The exchange's clock.
    pub(super) time: Time,
    /// The markets of an exchange without a list: base and quote of each.
    #[serde(skip)]
    pub(super) named: Vec<(String, String)>,
}

/// What an exchange allows, and the header field that tells of it.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BudgetForm {
    /// The costs that may be spent.
    pub(super) units: u32,
    /// The period of that.
    pub(super) per_ms: u32,
    /// A header field (its name in lower case) with what is spent in the current period, in units.
    pub(super) used: Option<String>,
    /// A header field with what is left in the current period.
    pub(super) left: Option<String>,
}

/// One endpoint.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Endpoint {
    /// Path and query.
    pub(super) target: Target,
    /// What a request costs of the budget; 1 if neither this nor `limit` is there.
    pub(super) cost: Option<u32>,
    /// A limit of this endpoint alone, in place of its cost.
    pub(super) limit: Option<Limit>,
    /// Where the items are.
    pub(super) items: Place,
    /// Where the time of all tickers is, for tickers without a time of their own.
    pub(super) stamp: Option<Path>,
}

/// A limit of one endpoint.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Limit {
    /// So many requests.
    pub(super) calls: u32,
    /// In any such period.
    pub(super) per_ms: u32,
}

/// A value for each stored interval that the exchange has.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ByInterval<T> {
    /// One minute.
    #[serde(rename = "1m")]
    minute: Option<T>,
    /// One hour.
    #[serde(rename = "1h")]
    hour: Option<T>,
    /// One day, from midnight UTC.
    #[serde(rename = "1d")]
    day: Option<T>,
}

/// The calls for tickers.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Tickers {
    /// All markets at once.
    pub(super) all: Option<TickerCall>,
    /// One market. It is used where there is no call for all.
    pub(super) one: Option<TickerCall>,
    /// What the ticker of one market lacks of the last 24 hours.
    pub(super) stats: Option<TickerCall>,
    /// The unit of their times.
    pub(super) time: Option<Unit>,
    /// The members of a ticker, for the calls that do not say their own.
    pub(super) fields: Option<Node<TickerField>>,
}

/// A call for tickers.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TickerCall {
    /// The endpoint.
    pub(super) call: Endpoint,
    /// The members of its tickers, if they are others.
    pub(super) fields: Option<Node<TickerField>>,
}

/// The calls for candles.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Candles {
    /// The endpoint.
    pub(super) call: Endpoint,
    /// The endpoint of older candles, for exchanges that keep them elsewhere.
    pub(super) archive: Option<Archive>,
    /// The exchange's names of the intervals.
    pub(super) intervals: ByInterval<String>,
    /// The most rows of a response. A range never has more slots.
    pub(super) rows: u32,
    /// How many candles, back from the newest, the exchange serves; all, if it is not there.
    pub(super) depth: Option<u32>,
    /// The unit of their times.
    pub(super) time: Unit,
    /// The value of the field `closed` for yes.
    #[serde(default)]
    pub(super) closed: String,
    /// The members or columns of a candle.
    pub(super) fields: Node<CandleField>,
}

/// Where older candles are.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Archive {
    /// The endpoint.
    pub(super) call: Endpoint,
    /// How many candles, back from now, the other endpoint has.
    pub(super) behind: ByInterval<u32>,
}

/// The call for the exchange's clock.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Time {
    /// The endpoint. Its item is the time itself.
    pub(super) call: Endpoint,
    /// The unit of the time.
    pub(super) unit: Unit,
}

impl<T> ByInterval<T> {
    pub(super) fn of(&self, interval: Stored) -> Option<&T> {
        match interval {
            Stored::M1 => self.minute.as_ref(),
            Stored::H1 => self.hour.as_ref(),
            Stored::D1 => self.day.as_ref(),
        }
    }
}

impl Endpoint {
    /// What a request costs of this budget. With a limit of its own, the least cost that keeps it:
    /// in its period begin so many periods of the budget, and each may be spent wholly on it.
    pub(super) fn cost_in(&self, budget: &BudgetForm) -> u64 {
        match (&self.limit, self.cost) {
            (Some(limit), _) => {
                let periods = u64::from(limit.per_ms.div_ceil(budget.per_ms.max(1)));
                (u64::from(budget.units) * periods).div_ceil(limit.calls.max(1).into())
            }
            (None, cost) => cost.unwrap_or(1).into(),
        }
    }
}

impl Dialect {
    /// The exchange's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exchange's own base URL: scheme and host.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// True if the exchange knows [`Call::Tickers`]. If not, each market is requested by
    /// [`Call::Ticker`].
    pub fn tickers_at_once(&self) -> bool {
        self.tickers.all.is_some()
    }

    /// True if the ticker of a market lacks figures of the last 24 hours, which [`Call::Stats`]
    /// brings. A quote is served without them too.
    pub fn has_stats(&self) -> bool {
        self.tickers.stats.is_some()
    }

    /// What the exchange allows.
    pub fn budget(&self) -> Budget {
        Budget {
            units: self.budget.units,
            per: Duration::from_millis(self.budget.per_ms.into()),
        }
    }

    /// The header field that reports the budget.
    pub fn meter(&self) -> Option<Meter<'_>> {
        let used = self.budget.used.as_deref().map(Meter::Used);
        used.or(self.budget.left.as_deref().map(Meter::Left))
    }

    /// What the status of a response means, without its body.
    pub fn status_kind(&self, status: u16) -> RefusalKind {
        self.errors.statuses.kind(status)
    }

    /// True if the exchange has candles of this interval.
    pub fn has_interval(&self, interval: Stored) -> bool {
        self.candles.intervals.of(interval).is_some()
    }

    /// What one request for candles may return.
    pub fn page(&self) -> Page {
        Page {
            rows: self.candles.rows as usize,
            depth: self.candles.depth.map(|depth| depth as usize),
        }
    }

    /// The cost of this call.
    ///
    /// # Panics
    /// As [`Dialect::target`].
    pub fn cost(&self, call: &Call<'_>) -> u32 {
        let cost = self.endpoint(call).cost_in(&self.budget);
        u32::try_from(cost).unwrap_or(u32::MAX)
    }

    /// Path and query of this call's request.
    ///
    /// # Panics
    /// For [`Call::Tickers`] if [`Dialect::tickers_at_once`] is false, for [`Call::Ticker`] if it
    /// is true and the exchange has no such call, and for [`Call::Stats`] if
    /// [`Dialect::has_stats`] is false.
    pub fn target(&self, call: &Call<'_>) -> String {
        let interval = match call {
            Call::Candles { interval, .. } => self.candles.intervals.of(*interval),
            _ => None,
        };
        let rows = Rows {
            interval: interval.map_or("", String::as_str),
            page: self.page().rows,
            unit: self.candles.time,
        };
        self.endpoint(call).target.of(call, &rows)
    }

    pub(super) fn endpoint(&self, call: &Call<'_>) -> &Endpoint {
        match call {
            Call::Tickers | Call::Ticker { .. } | Call::Stats { .. } => {
                &self.ticker_call(call).call
            }
            Call::Candles {
                interval,
                from,
                now,
                ..
            } => {
                let age = (*now - *from) / interval.length_ms();
                let is_old = |archive: &&Archive| {
                    let behind = archive.behind.of(*interval);
                    behind.is_some_and(|behind| age >= i64::from(*behind))
                };
                let archive = self.candles.archive.as_ref().filter(is_old);
                archive.map_or(&self.candles.call, |archive| &archive.call)
            }
            // Any answer will do for an exchange without a list.
            Call::Markets => self.markets.call.as_ref().unwrap_or(&self.time.call),
            Call::Time => &self.time.call,
        }
    }

    /// What a call for tickers is.
    pub(super) fn ticker_call(&self, call: &Call<'_>) -> &TickerCall {
        let found = match call {
            Call::Tickers => &self.tickers.all,
            Call::Stats { .. } => &self.tickers.stats,
            _ => &self.tickers.one,
        };
        found
            .as_ref()
            .expect("the caller has seen that there is such a call")
    }

    /// The members of the tickers of a call.
    pub(super) fn ticker_fields(&self, call: &Call<'_>) -> &Node<TickerField> {
        let own = self.ticker_call(call).fields.as_ref();
        own.or(self.tickers.fields.as_ref())
            .expect("the check of the file has seen them")
    }

    /// What candles are.
    pub(super) fn candle_form(&'static self) -> CandleForm<'static> {
        CandleForm {
            table: &self.candles.fields,
            unit: self.candles.time,
            closed: &self.candles.closed,
        }
    }
}
