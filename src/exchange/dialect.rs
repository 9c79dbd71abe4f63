//! A dialect: the endpoints, limits and JSON of one exchange, as data.
//!
//! Owns the structs that a dialect's file is read into; what their members mean to each other is
//! `check`'s. It sends nothing, reads no clock, and does not count what was spent: it only tells
//! what a call costs.

use super::call::{BudgetLimit, Call, Meter, Page};
use super::candle::{Archive, CandleField, Candles};
use super::endpoint::{BudgetForm, EndpointSpec};
use super::listing::{ListingField, ListingForm};
use super::refusal::Refusal;
use super::shape::{ItemForm, MemberTable, TableOf};
use super::target::CandlePlaceholders;
use super::ticker::TickerField;
use super::value::Unit;
use crate::config::forms::SOURCE_ID;
use crate::config::members::{Named as _, members};
use crate::interval::Stored;
use std::time::Duration;

/// The endpoints, limits and JSON of one exchange.
pub struct Dialect {
    /// What its file says.
    pub(super) file: DialectForm,
    /// The markets of an exchange without a list: base and quote of each.
    pub(super) named: Vec<(String, String)>,
}

members! {
    /// The endpoints, limits and JSON of one exchange: the whole of a dialect's file.
    pub(super) struct DialectForm {
        /// Address of the JSON Schema, for editors. Not read.
        _schema: Option<String> = None, "$schema";
        /// What the exchange is called in messages: 1 to 32 of a-z, 0-9 and -.
        name: String, "name" SOURCE_ID;
        /// Remarks for people. Not read.
        _notes: Option<Vec<Box<str>>> = None, "notes";
        /// Scheme and host of every request.
        base_url: String, "baseUrl";
        /// What the exchange allows.
        budget: BudgetForm, "budget";
        /// How the exchange says that it will not answer.
        errors: Refusal = Refusal::default(), "errors";
        /// Tickers.
        tickers: Tickers, "tickers";
        /// Candles.
        candles: Candles, "candles";
        /// The market list.
        markets: ListingForm, "markets";
        /// The exchange's clock.
        time: Time, "time";
    }
}

members! {
    /// The calls for tickers.
    pub(super) struct Tickers {
        /// All markets at once.
        all: Option<TickerCall> = None, "all";
        /// One market. It is used where there is no call for all.
        one: Option<TickerCall> = None, "one";
        /// What the ticker of one market lacks of the last 24 hours.
        stats: Option<TickerCall> = None, "stats";
        /// The unit of their times.
        time: Option<Unit> = None, "time";
        /// The members of a ticker, for the calls that do not say their own.
        fields: Option<TableOf<TickerField>> = None, "fields";
    }
}

members! {
    /// A call for tickers.
    pub(super) struct TickerCall {
        /// The endpoint.
        call: EndpointSpec, "call";
        /// The members of its tickers, if they are others.
        fields: Option<TableOf<TickerField>> = None, "fields";
    }
}

members! {
    /// The call for the exchange's clock.
    pub(super) struct Time {
        /// The endpoint. Its item is the time itself.
        call: EndpointSpec, "call";
        /// The unit of the time.
        unit: Option<Unit> = None, "unit";
        /// True if no body has the time of the exchange: it is then the `Date` field of this response.
        date: bool = false, "date";
    }
}

impl Dialect {
    /// The exchange's name.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// The exchange's own base URL: scheme and host.
    pub fn base_url(&self) -> &str {
        &self.file.base_url
    }

    /// True if the exchange's time is the `Date` of a response, because no body has it.
    pub fn is_dated(&self) -> bool {
        self.file.time.date
    }

    /// True if the exchange knows [`Call::Tickers`]. If not, each market is requested by
    /// [`Call::Ticker`].
    pub fn tickers_at_once(&self) -> bool {
        self.file.tickers.all.is_some()
    }

    /// True if the exchange has a market list. If not, its markets are those that the source names.
    pub fn has_list(&self) -> bool {
        self.file.markets.call.is_some()
    }

    /// True if the ticker of a market lacks figures of the last 24 hours, which [`Call::Stats`]
    /// brings. A quote is served without them too.
    pub fn has_stats(&self) -> bool {
        self.file.tickers.stats.is_some()
    }

    /// True if the time of all tickers of this call stands in one place.
    ///
    /// # Panics
    /// As [`Dialect::target`].
    pub fn has_stamp(&self, call: &Call<'_>) -> bool {
        self.endpoint(call).stamp.is_some()
    }

    /// What the exchange allows.
    pub fn budget(&self) -> BudgetLimit {
        BudgetLimit {
            units: self.file.budget.units,
            per: Duration::from_millis(self.file.budget.per_ms.into()),
        }
    }

    /// The header field that reports the budget.
    pub fn meter(&self) -> Option<Meter<'_>> {
        let used = self.file.budget.used.as_deref().map(Meter::Used);
        used.or(self.file.budget.left.as_deref().map(Meter::Left))
    }

    /// True if the exchange has candles of this interval.
    pub fn has_interval(&self, interval: Stored) -> bool {
        self.file.candles.intervals.get(interval).is_some()
    }

    /// What one request for candles may return.
    pub fn page(&self) -> Page {
        Page {
            rows: self.file.candles.rows as usize,
            depth: self.file.candles.depth.map(|depth| depth as usize),
        }
    }

    /// The cost of this call.
    ///
    /// # Panics
    /// As [`Dialect::target`].
    pub fn cost(&self, call: &Call<'_>) -> u32 {
        let cost = self.endpoint(call).cost_in(&self.file.budget);
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
            Call::Candles { interval, .. } => self.file.candles.intervals.get(*interval),
            _ => None,
        };
        let rows = CandlePlaceholders {
            interval: interval.map_or("", String::as_str),
            page: self.file.candles.rows.into(),
            unit: self.file.candles.time,
        };
        self.endpoint(call).target.fill(call, &rows)
    }

    pub(super) fn endpoint(&self, call: &Call<'_>) -> &EndpointSpec {
        match call {
            Call::Tickers | Call::Ticker { .. } | Call::Stats { .. } => {
                &self.ticker_call(call).call
            }
            Call::Candles { interval, from, now, .. } => {
                let age = (*now - *from) / interval.length_ms();
                let is_old = |archive: &&Archive| {
                    let behind = archive.behind.get(*interval);
                    behind.is_some_and(|behind| age >= i64::from(behind))
                };
                let archive = self.file.candles.archive.as_ref().filter(is_old);
                archive.map_or(&self.file.candles.call, |archive| &archive.call)
            }
            // Any answer will do for an exchange without a list.
            Call::Markets => {
                let own = self.file.markets.call.as_ref();
                own.unwrap_or(&self.file.time.call)
            }
            Call::Time => &self.file.time.call,
        }
    }

    /// What a call for tickers is.
    pub(super) fn ticker_call(&self, call: &Call<'_>) -> &TickerCall {
        let found = match call {
            Call::Tickers => &self.file.tickers.all,
            Call::Stats { .. } => &self.file.tickers.stats,
            _ => &self.file.tickers.one,
        };
        let found = found.as_ref();
        found.expect("the caller has seen that there is such a call")
    }

    /// How the items of a call are written, if it has any.
    pub(super) fn item_form(&'static self, call: &Call<'_>) -> Option<ItemForm> {
        /// The first field of each kind: the id of a market, the time of a candle.
        static FIRST: MemberTable = MemberTable::Is(0);
        let DialectForm { tickers, candles, markets, .. } = &self.file;
        let (table, name, words): (&MemberTable, _, _) = match call {
            Call::Time => return None,
            Call::Candles { .. } => (&candles.fields, None, CandleField::NAMES),
            Call::Markets => {
                (markets.fields.as_ref()?, markets.name.as_deref(), ListingField::NAMES)
            }
            Call::Tickers | Call::Ticker { .. } | Call::Stats { .. } => {
                let own = self.ticker_call(call).fields.as_ref();
                let table = own.or(tickers.fields.as_ref());
                (table.expect("the check of the file has seen them"), None, TickerField::NAMES)
            }
        };
        Some(ItemForm { table, name: name.unwrap_or(&FIRST), words })
    }
}
