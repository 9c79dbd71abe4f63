//! A dialect: the endpoints, limits and JSON of one exchange, as data.
//!
//! Owns the structs that a dialect's file is read into. `check` has the rules between their
//! members. A dialect sends nothing, reads no clock, and does not count what was spent: it only
//! tells what a call costs.

use super::call::{BETWEEN, BudgetLimit, Call, FileValues, NextPage, Page, Way};
use super::endpoint::{BudgetForm, EndpointSpec, KeyForm, Refusal, SizeCost};
use super::fields::{Constants, MemberTable, TableOf};
use super::json::Raw;
use super::listing::ListingForm;
use super::path::{Step, find};
use super::prices::{Candles, OF_STATS, TickerField};
use super::shape::ItemForm;
use super::value::Unit;
use crate::config::forms::{SOURCE_ID, URL};
use crate::config::members::{Named as _, count, members};
use crate::config::{Secret, Url};
use crate::interval::Stored;
use std::time::Duration;

/// Bytes of one market's ticker on the wire, if a file does not say it: in responses with all tickers,
/// several, and one. Most exchanges compress, and many tickers compress better than few.
const BYTES_OF_ALL: u32 = 120;
const BYTES_OF_SEVERAL: u32 = 200;
const BYTES_OF_ONE: u32 = 350;

/// The endpoints, limits and JSON of one exchange.
pub struct Dialect {
    /// The contents of its file.
    pub(super) file: DialectForm,
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
        base_url: Url, "baseUrl" URL;
        /// What the exchange allows.
        budget: BudgetForm, "budget";
        /// How every request carries the key from the source's configuration, if the exchange needs a key.
        key: Option<KeyForm> = None, "key";
        /// How the exchange refuses a request.
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
        /// One market.
        one: Option<TickerCall> = None, "one";
        /// Several markets, by `{ids}`.
        several: Option<TickerCall> = None, "several";
        /// The figures of the last 24 hours that the ticker of one market lacks.
        stats: Option<TickerCall> = None, "stats";
        /// The unit of their times.
        time: Option<Unit> = None, "time";
        /// The members of a ticker, for the calls that do not say their own.
        fields: Option<TableOf<TickerField>> = None, "fields";
        /// Values that are the same for every ticker and not sent, by field.
        constants: Constants<TickerField> = Constants::default(), "constants";
    }
}

members! {
    /// A call for tickers.
    pub(super) struct TickerCall {
        /// The endpoint.
        call: EndpointSpec, "call";
        /// The members of its tickers, if they are others.
        fields: Option<TableOf<TickerField>> = None, "fields";
        /// Bytes of one market's ticker on the wire, compressed if the exchange compresses. This is the first
        /// estimate; responses correct it.
        bytes: Option<u32> = None, "bytes" count(1, 100_000);
        /// Of `several`: what stands between two ids.
        between: String = ",".to_owned(), "between" BETWEEN;
        /// Of `several`: the most markets of a request, and the cost of such a request if it is not the cost
        /// of the call. The fewest markets first.
        sizes: Vec<SizeCost> = Vec::new(), "sizes";
    }
}

members! {
    /// The call for the exchange's clock.
    pub(super) struct Time {
        /// The endpoint. Its item is the time itself.
        call: EndpointSpec, "call";
        /// The unit of the time.
        unit: Option<Unit> = None, "unit";
        /// True if no body has the time of the exchange. Then the time is the `Date` field of this response.
        date: bool = false, "date";
    }
}

impl Dialect {
    /// The exchange's name.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// The address of the exchange: scheme and host.
    pub fn base_url(&self) -> &Url {
        &self.file.base_url
    }

    /// True if every request carries the key of the source.
    pub fn has_key(&self) -> bool {
        self.file.key.is_some()
    }

    /// The header field with the key of a source: its name and its value.
    pub fn key_field(&self, key: Option<&Secret>) -> Option<(&str, String)> {
        let form = self.file.key.as_ref()?;
        Some((&form.header, format!("{}{}", form.prefix, key?.expose())))
    }

    /// True if the exchange's time is the `Date` of a response, because no body has it.
    pub fn is_dated(&self) -> bool {
        self.file.time.date
    }

    /// True if the exchange has [`Call::Tickers`].
    pub fn tickers_at_once(&self) -> bool {
        self.file.tickers.all.is_some()
    }

    /// The ways to request tickers. A way is left out if its tickers lack fields that the tickers of all
    /// markets have and `stats` does not bring. Requests for one market are a way only if the exchange does
    /// not have [`Call::Several`]. At least one way is left.
    pub fn ways(&self) -> Vec<Way> {
        let Tickers { all, one, several, stats, .. } = &self.file.tickers;
        let way = |it: &TickerCall, markets, cost: Option<u32>, bytes| Way {
            markets,
            cost: cost.unwrap_or(self.units_of(&it.call)),
            bytes: it.bytes.unwrap_or(bytes),
        };
        let has = |it: &TickerCall, field| self.table_of(it).has(field);
        let is_whole = |it: &&TickerCall| {
            let fields = TickerField::ALL.iter().filter(|field| **field != TickerField::Id);
            let comes = |field| {
                OF_STATS.contains(&field) && stats.as_ref().is_some_and(|stats| has(stats, field))
            };
            let lacks = |field, all| has(all, field) && !has(it, field) && !comes(field);
            !fields.copied().any(|field| all.as_ref().is_some_and(|all| lacks(field, all)))
        };
        let of_all = all.iter().map(|it| way(it, None, None, BYTES_OF_ALL));
        let sized =
            |it, size: &SizeCost| way(it, Some(size.most as usize), size.cost, BYTES_OF_SEVERAL);
        let of_several = several.iter().filter(is_whole);
        let of_several = of_several.flat_map(|it| it.sizes.iter().map(move |size| sized(it, size)));
        let of_one = one.iter().filter(|it| several.is_none() && is_whole(it));
        let of_one = of_one.map(|it| way(it, Some(1), None, BYTES_OF_ONE));
        of_all.chain(of_several).chain(of_one).collect()
    }

    /// The call for the tickers of these markets. It has only the first one if the exchange does not have
    /// [`Call::Several`].
    pub fn tickers_of<'i>(&self, ids: &'i [&'i str]) -> Call<'i> {
        match self.file.tickers.several {
            Some(_) => Call::Several { ids },
            None => Call::Ticker { id: ids.first().copied().unwrap_or_default() },
        }
    }

    /// True if the exchange has a market list. Otherwise its markets are the ones that the source
    /// names.
    pub fn has_list(&self) -> bool {
        self.file.markets.call.is_some()
    }

    /// The ids of these symbols for [`Call::MarketsOf`], if the list can be requested for them alone.
    pub fn list_ids(&self, symbols: &[String]) -> Option<Vec<String>> {
        self.file.markets.ids(symbols)
    }

    /// True if the ticker of a market lacks figures of the last 24 hours, and [`Call::Stats`]
    /// brings them. A quote is served even without them.
    pub fn has_stats(&self) -> bool {
        self.file.tickers.stats.is_some()
    }

    /// True if this call has one time for all of its tickers.
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

    /// The header field that reports the budget, in lower case: what is spent in the current period, or what
    /// is left.
    pub fn meter(&self) -> Option<&str> {
        let budget = &self.file.budget;
        budget.used.as_deref().or(budget.left.as_deref())
    }

    /// The units that are spent in the current period, if the field of [`Dialect::meter`] has this
    /// number.
    pub fn spent(&self, told: u64) -> u64 {
        let budget = &self.file.budget;
        match &budget.used {
            Some(_) => told,
            None => u64::from(budget.units).saturating_sub(told),
        }
    }

    /// True if the exchange has candles of this interval.
    pub fn has_interval(&self, interval: Stored) -> bool {
        self.file.candles.intervals.contains_key(&interval)
    }

    /// What one request for candles of this interval may return.
    pub fn page(&self, interval: Stored) -> Page {
        self.file.candles.page(interval)
    }

    /// The most rows in a response to this call for candles: as many as its target asks for.
    pub fn most_rows(&self, call: &Call<'_>) -> usize {
        self.file.candles.most_rows(call)
    }

    /// How many slots ago a range must begin to be requested from the archive, if there is one.
    pub fn archive_behind(&self, interval: Stored) -> Option<u32> {
        self.file.candles.archive.as_ref()?.behind.get(&interval).copied()
    }

    /// True if this call goes to the archive.
    pub fn is_archived(&self, call: &Call<'_>) -> bool {
        self.file.candles.archive_for(call).is_some()
    }

    /// The cost of this call.
    ///
    /// # Panics
    /// As [`Dialect::target`].
    pub fn cost(&self, call: &Call<'_>) -> u32 {
        let sized = |ids: &[&str]| {
            let mut sizes = self.ticker_call(call)?.sizes.iter();
            sizes.find(|size| size.most as usize >= ids.len())?.cost
        };
        let sized = if let Call::Several { ids } = call { sized(ids) } else { None };
        sized.unwrap_or_else(|| self.units_of(self.endpoint(call)))
    }

    /// The costs of all calls, as text.
    pub fn costs(&self) -> String {
        let DialectForm { tickers, candles, markets, time, .. } = &self.file;
        let calls = [
            ("all", tickers.all.as_ref().map(|it| &it.call)),
            ("one", tickers.one.as_ref().map(|it| &it.call)),
            ("stats", tickers.stats.as_ref().map(|it| &it.call)),
            ("candles", Some(&candles.call)),
            ("archive", candles.archive.as_ref().map(|it| &it.call)),
            ("markets", markets.call.as_ref()),
            ("markets.several", markets.several.as_ref().map(|it| &it.call)),
            ("time", Some(&time.call)),
        ];
        let calls = calls
            .into_iter()
            .filter_map(|(name, call)| Some(format!("{name} {}", self.units_of(call?))));
        let several = tickers.several.iter().flat_map(|it| {
            let cost = |size: &SizeCost| size.cost.unwrap_or(self.units_of(&it.call));
            it.sizes.iter().map(move |size| format!("several (of {}) {}", size.most, cost(size)))
        });
        calls.chain(several).collect::<Vec<_>>().join(", ")
    }

    fn units_of(&self, call: &EndpointSpec) -> u32 {
        u32::try_from(call.cost_in(&self.file.budget)).unwrap_or(u32::MAX)
    }

    /// Path and query of a request for a page of this call. `None` is the first page.
    ///
    /// # Panics
    /// For a call that the exchange does not have: see [`Dialect::ways`], [`Dialect::tickers_of`] and
    /// [`Dialect::has_stats`].
    pub fn target(&self, call: &Call<'_>, next: Option<&NextPage>) -> String {
        let (interval, rows) = match call {
            Call::Candles { interval, .. } => {
                (self.file.candles.intervals.get(interval), self.page(*interval).rows)
            }
            _ => (None, 0),
        };
        let values = FileValues {
            interval: interval.map_or("", String::as_str),
            between: match (call, &self.file.markets.several) {
                (Call::MarketsOf { .. }, Some(several)) => &several.between,
                _ => self.ticker_call(call).map_or("", |it| &it.between),
            },
            page: rows as i64,
            unit: self.file.candles.time,
            next,
        };
        let endpoint = self.endpoint(call);
        let pages = endpoint.pages.as_ref().filter(|_| next.is_some());
        let target = pages.map_or(&endpoint.target, |pages| &pages.target);
        let Call::MarketsOf { ids } = call else {
            return target.fill(call, &values);
        };
        let mut parts = self.file.markets.parts(ids);
        let ids = parts.nth(next.map_or(0, |it| it.number as usize - 1)).unwrap_or_default();
        target.fill(&Call::MarketsOf { ids }, &values)
    }

    /// Says which step of the path to a call's items leads nowhere in this body, or what is at its end.
    pub fn missing(&self, call: &Call<'_>, body: &[u8]) -> String {
        let place = &self.endpoint(call).items;
        let (mut text, mut at) = (String::new(), find(body, &[]));
        for (count, step) in place.path.iter().enumerate() {
            let next = find(body, &place.path[..=count]);
            if next == Raw::Absent {
                let within = if count == 0 { "the body".to_owned() } else { format!("`{text}`") };
                return format!("there is no `{step}` in {within}, which is {}", at.kind());
            }
            let dot = if count == 0 || matches!(step, Step::At(_)) { "" } else { "." };
            (text, at) = (format!("{text}{dot}{step}"), next);
        }
        let text = if text.is_empty() { "the body".to_owned() } else { format!("`{text}`") };
        format!("{text} is {}", at.kind())
    }

    pub(super) fn endpoint(&self, call: &Call<'_>) -> &EndpointSpec {
        match call {
            Call::Candles { .. } => self.file.candles.endpoint_for(call),
            // An exchange without a list gets any request that it answers.
            Call::Markets { .. } => self.file.markets.call.as_ref().unwrap_or(&self.file.time.call),
            Call::MarketsOf { .. } => {
                let several = self.file.markets.several.as_ref();
                &several.expect("the caller has its ids from it").call
            }
            Call::Time => &self.file.time.call,
            _ => &self.ticker_call(call).expect("the caller has seen that it is there").call,
        }
    }

    /// The file's entry for a call for tickers, if this is one and the exchange has it.
    fn ticker_call(&self, call: &Call<'_>) -> Option<&TickerCall> {
        let found = match call {
            Call::Tickers => &self.file.tickers.all,
            Call::Ticker { .. } => &self.file.tickers.one,
            Call::Several { .. } => &self.file.tickers.several,
            Call::Stats { .. } => &self.file.tickers.stats,
            Call::Candles { .. } | Call::Markets { .. } | Call::MarketsOf { .. } | Call::Time => {
                &None
            }
        };
        found.as_ref()
    }

    /// The fields of a call for tickers.
    fn table_of<'d>(&'d self, call: &'d TickerCall) -> &'d TableOf<TickerField> {
        let table = call.fields.as_ref().or(self.file.tickers.fields.as_ref());
        table.expect("the check of the file has seen them")
    }

    /// How the items of a call are written, if it has any.
    pub(super) fn item_form(&'static self, call: &Call<'_>) -> Option<ItemForm> {
        /// The first field of each kind: the id of a market, the time of a candle.
        const FIRST: MemberTable = MemberTable::Is(0);
        let DialectForm { candles, markets, .. } = &self.file;
        Some(match call {
            Call::Time => return None,
            Call::Candles { .. } => ItemForm::new(&candles.fields, &FIRST, &candles.constants),
            Call::Markets { .. } | Call::MarketsOf { .. } => {
                let name = markets.name.as_ref().map_or(&FIRST, |name| &name.0);
                ItemForm::new(markets.fields.as_ref()?, name, &markets.constants)
            }
            _ => {
                let table = self.table_of(self.ticker_call(call)?);
                ItemForm::new(table, &FIRST, &self.file.tickers.constants)
            }
        })
    }
}
