//! The check of a dialect's file: the rules between its members. Also reads the dialects: the built-in files,
//! and the files that sources name. A dialect that was read lives as long as the program.
//!
//! Names, types and the bounds of numbers were checked while the file was read. This module checks that each
//! call has the fields and placeholders that it needs and no others, and that costs fit the budget. It
//! reports every fault with its line and member.

use super::call::PlaceholderName;
use super::dialect::{Dialect, DialectForm, TickerCall};
use super::endpoint::{EndpointSpec, KeyForm, PagesForm};
use super::fields::{check_constants, names_of};
use super::listing::ListingField;
use super::path::Form;
use super::prices::{Archive, CandleField, OF_STATS, TickerField};
use crate::config::members::Named;
use crate::config::values::read_text;
use crate::config::{ConfigFault, Report, SourceConfig};
use crate::interval::Stored;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reports every fault of a dialect's file that has been read.
pub(super) fn check(dialect: &DialectForm, report: &mut Report) {
    dialect.check_itself(report);
    dialect.check_tickers(report);
    dialect.check_candles(report);
    dialect.check_others(report);
    dialect.check_constants(report);
    dialect.check_words(report);
    dialect.check_unread(report);
}

/// Header fields that every request has already, or that frame its body.
const OWN_FIELDS: &str =
    "host user-agent accept accept-encoding connection content-length transfer-encoding";

fn expect_list(call: &EndpointSpec, member: &str, report: &mut Report) {
    let is_list = call.items.form != Form::Itself;
    report.expect(is_list, member, "expected elements (`[]`) or members (`{}`)");
}

fn check_pages(pages: &PagesForm, member: &str, report: &mut Report) {
    let is_meant = |name| match pages.cursor {
        Some(_) => name == PlaceholderName::Cursor,
        None => matches!(name, PlaceholderName::Page | PlaceholderName::Offset),
    };
    let mut names = pages.target.placeholders();
    let is_one = names.next().is_some_and(is_meant) && names.next().is_none();
    let message =
        "expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}";
    report.expect(is_one, &format!("{member}.target"), message);
    let message = "nothing reads it: the last page has no cursor";
    let is_read = pages.size.is_none() || pages.cursor.is_none();
    report.expect(is_read, &format!("{member}.size"), message);
}

/// The placeholders that a call has values for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    None,
    /// None. The answer has everything, perhaps in pages.
    Pages,
    Id,
    Ids,
    Candles,
}

impl DialectForm {
    fn check_itself(&self, report: &mut Report) {
        let is_own = |key: &KeyForm| OWN_FIELDS.split(' ').any(|own| *own == key.header);
        let is_own = self.key.as_ref().is_some_and(is_own);
        report.expect(!is_own, "key.header", "every request has this field already");
        let is_one = self.budget.used.is_none() || self.budget.left.is_none();
        report.expect(is_one, "budget.left", "expected either `used` or `left`");
    }

    fn check_call(&self, call: &EndpointSpec, member: &str, values: Values, report: &mut Report) {
        let of = |name: &str| format!("{member}.{name}");
        let (cost, most) = (call.cost_in(&self.budget), self.budget.units);
        let is_one = call.limit.is_none() || call.cost.is_none();
        report.expect(is_one, &of("cost"), "expected either `cost` or `limit`");
        if !report.is_faulty_within("budget") && !(1..=u64::from(most)).contains(&cost) {
            let said = if call.limit.is_some() { "limit" } else { "cost" };
            let expected = format!("expected a cost from 1 to that of the budget ({most})");
            report.fault(&of(said), format!("{expected}, found {cost}"));
        }
        let needed = match values {
            Values::Ids => PlaceholderName::Ids,
            _ => PlaceholderName::Id,
        };
        let needs_id = !matches!(values, Values::None | Values::Pages);
        for placeholder in call.target.placeholders().filter(|it| !needs_id || *it != needed) {
            use PlaceholderName::{Cursor, Id, Ids, Offset, Page};
            let is_of_range = !matches!(placeholder, Id | Ids | Page | Offset | Cursor);
            let name = placeholder.name();
            let message = format!("this call has no value for the placeholder {{{name}}}");
            report.expect(is_of_range && values == Values::Candles, &of("target"), &message);
        }
        let has_id = call.target.placeholders().any(|placeholder| placeholder == needed);
        let message = format!("expected the placeholder {{{}}}", needed.name());
        report.expect(has_id || !needs_id, &of("target"), &message);
        if let Some(pages) = &call.pages {
            let message = "only the market list and the tickers of all markets have pages";
            report.expect(values == Values::Pages, &of("pages"), message);
            check_pages(pages, &of("pages"), report);
        }
    }

    fn check_tickers(&self, report: &mut Report) {
        use TickerField::*;
        let tickers = &self.tickers;
        let is_there = [&tickers.all, &tickers.several, &tickers.one].iter().any(|it| it.is_some());
        report.expect(is_there, "tickers", "expected `all`, `several` or `one`");
        let calls = [
            ("all", &tickers.all, Values::Pages),
            ("one", &tickers.one, Values::Id),
            ("several", &tickers.several, Values::Ids),
            ("stats", &tickers.stats, Values::Id),
        ];
        for (name, call, values) in calls {
            let Some(it @ TickerCall { call, fields, .. }) = call else {
                continue;
            };
            let of = |member: &str| format!("tickers.{name}.{member}");
            self.check_call(call, &of("call"), values, report);
            self.check_sizes(it, values == Values::Ids, &of("sizes"), report);
            let (fields, place) = match (fields, &tickers.fields) {
                (Some(fields), _) => (fields, of("fields")),
                (None, Some(fields)) => (fields, "tickers.fields".to_owned()),
                (None, None) => {
                    report.fault(&of("fields"), "missing: there are no `tickers.fields` either");
                    continue;
                }
            };
            fields.check_once(&place, report);
            fields.check_beside(&tickers.constants, "tickers.constants", report);
            let has_last = fields.has(Last) || name == "stats";
            report.expect(has_last, &place, "expected a member that is `last`");
            let is_named =
                fields.has(Id) || call.items.form == Form::Members || values == Values::Id;
            report.expect(is_named, &place, "expected a member that is `id`");
            let has_unit = tickers.time.is_some() || !fields.has(Time) && call.stamp.is_none();
            report.expect(has_unit, "tickers.time", "missing: expected the unit of the times");
        }
    }

    fn check_sizes(&self, it: &TickerCall, is_several: bool, member: &str, report: &mut Report) {
        let is_said = it.sizes.is_empty() != is_several;
        report.expect(is_said, member, "expected the sizes of `several`, and of no other call");
        let rises = it.sizes.is_sorted_by(|a, b| a.most < b.most);
        report.expect(rises, member, "expected the fewest markets first");
        let units = self.budget.units;
        let fits = it.sizes.iter().all(|size| size.cost.is_none_or(|cost| cost <= units));
        let message = format!("expected costs from 1 to that of the budget ({units})");
        report.expect(fits, member, &message);
    }

    fn check_candles(&self, report: &mut Report) {
        let candles = &self.candles;
        if let Some(Archive { call, behind }) = &candles.archive {
            use PlaceholderName::{Back, From, To};
            let has_range = call.target.placeholders().any(|it| matches!(it, From | To | Back));
            let message = "expected {from}, {to} or {back}: an archive is asked for a range";
            report.expect(has_range, "candles.archive.call.target", message);
            let message = "expected a number for one of `candles.intervals` at least";
            report.expect(!behind.is_empty(), "candles.archive.behind", message);
        }
        let archive = candles.archive.as_ref();
        let archive = archive.map(|archive| (&archive.call, "candles.archive.call"));
        for (call, member) in [(&candles.call, "candles.call")].into_iter().chain(archive) {
            self.check_call(call, member, Values::Candles, report);
            expect_list(call, &format!("{member}.items"), report);
        }
        candles.fields.check_once("candles.fields", report);
        candles.fields.check_beside(&candles.constants, "candles.constants", report);
        let intervals = &candles.intervals;
        let has_rows = intervals.keys().all(|interval| candles.rows.get(*interval).is_some());
        let message = "expected a number for each of `candles.intervals`";
        report.expect(has_rows, "candles.rows", message);
        let message = "expected one of `1m`, `1h` and `1d` at least";
        report.expect(!intervals.is_empty(), "candles.intervals", message);
        let is_named = candles.call.items.form == Form::Members;
        let lacks = |field: &&CandleField| match field {
            CandleField::Time if is_named => false,
            CandleField::Closed => false,
            field => !candles.fields.has(**field) && !candles.constants.contains_key(field),
        };
        let lacking = names_of(CandleField::ALL.iter().filter(lacks));
        let message = format!("expected members or columns that are {lacking}");
        report.expect(lacking.is_empty(), "candles.fields", &message);
        let has_yes = !candles.fields.has(CandleField::Closed) || !candles.closed.is_empty();
        report.expect(has_yes, "candles.closed", "missing: expected the value of `closed` for yes");
    }

    fn check_others(&self, report: &mut Report) {
        let (markets, time) = (&self.markets, &self.time);
        self.check_call(&time.call, "time.call", Values::None, report);
        let is_one = time.unit.is_some() != time.date;
        report.expect(is_one, "time.unit", "expected either `unit` or `\"date\": true`");
        let is_itself = time.date || time.call.items.form == Form::Itself;
        report.expect(is_itself, "time.call.items", "expected the path to the time itself");
        let (Some(call), Some(fields)) = (&markets.call, &markets.fields) else {
            let has_none =
                markets.call.is_none() && markets.fields.is_none() && markets.several.is_none();
            let message = "expected `call` and `fields`, or none of them and `pair`";
            return report.expect(has_none && !markets.pair.is_empty(), "markets", message);
        };
        report.expect(!markets.pair.is_empty(), "markets.pair", "expected one form at least");
        self.check_call(call, "markets.call", Values::Pages, report);
        expect_list(call, "markets.call.items", report);
        if let Some(several) = &markets.several {
            self.check_call(&several.call, "markets.several.call", Values::Ids, report);
            // The answer about one market may be the item itself.
            if several.most > 1 {
                expect_list(&several.call, "markets.several.call.items", report);
            }
        }
        use ListingField::*;
        let outer = markets.name.as_ref();
        let has_names = call.items.form == Form::Members;
        let is_sound = outer.is_none_or(|name| has_names && !name.0.own().is_empty());
        let message = "expected fields like \"id base\", of members (`{}`)";
        report.expect(is_sound, "markets.name", message);
        let has = |field| {
            let is_in_name = outer.is_some_and(|name| name.has(field));
            fields.has(field) || markets.constants.contains_key(&field) || is_in_name
        };
        let is_named = has(Id) || has_names && outer.is_none();
        report.expect(is_named, "markets.fields", "expected a member that is `id`");
        let has_assets = has(Pair) || has(Base) && has(Quote);
        let message = "expected members that are `base` and `quote`, or one that is `pair`";
        report.expect(has_assets, "markets.fields", message);
    }

    /// Reports constants for fields that cannot be constant, and members named after assets outside of
    /// tickers.
    fn check_constants(&self, report: &mut Report) {
        let DialectForm { tickers, candles, markets, .. } = self;
        let numbers = &TickerField::ALL[TickerField::Bid.place()..TickerField::Time.place()];
        check_constants(&tickers.constants, (numbers, &[]), "tickers.constants", report);
        let volume = [CandleField::Volume];
        check_constants(&candles.constants, (&volume, &[]), "candles.constants", report);
        let assets = [ListingField::Base, ListingField::Quote];
        // The fields of rules come last.
        let numbers = &ListingField::ALL[ListingField::PriceStep.place()..];
        check_constants(&markets.constants, (numbers, &assets), "markets.constants", report);
        let message = "only members of tickers are named after assets";
        let is_named = markets.fields.as_ref().is_some_and(|it| it.0.names_assets());
        report.expect(!is_named, "markets.fields", message);
        report.expect(!candles.fields.0.names_assets(), "candles.fields", message);
    }

    /// Reports figures that `stats` cannot bring, and assets that are renamed to themselves.
    fn check_words(&self, report: &mut Report) {
        let stats = self.tickers.stats.as_ref().and_then(|it| it.fields.as_ref());
        let is_other =
            |field: &&TickerField| **field != TickerField::Id && !OF_STATS.contains(field);
        let others = TickerField::ALL.iter().filter(is_other);
        for field in others.filter(|field| stats.is_some_and(|it| it.has(**field))) {
            let what = "expected open, high, low, baseVolume and quoteVolume alone";
            let message = format!("`stats` brings no `{}`: {what}", field.name());
            report.fault("tickers.stats.fields", message);
        }
        for (own, common) in &self.markets.renamed {
            let member = format!("markets.renamed.{own}");
            report.expect(own != common, &member, "expected another name");
        }
    }

    /// Reports members that have no effect.
    fn check_unread(&self, report: &mut Report) {
        let DialectForm { tickers, candles, markets, errors, .. } = self;
        let of_intervals = |member| Stored::ALL.map(|it| format!("candles.{member}.{}", it.name()));
        let is_named = of_intervals("intervals").map(|member| report.is_given(&member));
        let mut expect = |is_read: bool, member: &str, needs: &str| {
            if !is_read && report.is_given(member) {
                report.fault(member, format!("nothing reads it: {needs}"));
            }
        };
        for name in ["errors.ok", "errors.message", "errors.rateLimited", "errors.unknownMarket"] {
            expect(errors.code.is_some(), name, "there is no `errors.code`");
        }
        for member in ["rows", "depth", "archive.behind"] {
            for (member, is_named) in of_intervals(member).iter().zip(is_named) {
                expect(is_named, member, "`candles.intervals` has no such interval");
            }
        }
        let calls = [&tickers.all, &tickers.one, &tickers.several, &tickers.stats];
        let calls = || calls.into_iter().flatten();
        let all_own = calls().all(|it| it.fields.is_some());
        expect(!all_own, "tickers.fields", "each call has its own");
        let tables = || calls().filter_map(|it| it.fields.as_ref()).chain(&tickers.fields);
        let has_time = tables().any(|it| it.has(TickerField::Time))
            || calls().any(|it| it.call.stamp.is_some());
        expect(has_time, "tickers.time", "no ticker has a `time`, and no call a `stamp`");
        let has_closed = candles.fields.has(CandleField::Closed);
        expect(has_closed, "candles.closed", "no column is `closed`");
        let has = |field| markets.fields.iter().chain(&markets.name).any(|it| it.has(field));
        if markets.call.is_none() {
            return;
        }
        expect(has(ListingField::Status), "markets.open", "no member is `status`");
        expect(has(ListingField::Kind), "markets.kinds", "no member is `kind`");
        expect(has(ListingField::Pair), "markets.pair", "no member is `pair`");
        let has_fees = has(ListingField::Taker) || has(ListingField::Maker);
        expect(has_fees, "markets.fees", "no member is `taker` or `maker`");
        let is_idle = |field, values: &[Box<str>]| has(field) && values.is_empty();
        let message = "a member is `status`: expected those of a market that trades";
        report.expect(!is_idle(ListingField::Status, &markets.open), "markets.open", message);
        let message = "a member is `kind`: expected the kinds that are taken";
        report.expect(!is_idle(ListingField::Kind, &markets.kinds), "markets.kinds", message);
    }
}

/// Includes the files without white space that `scripts/build.rs` makes.
macro_rules! built_in {
    ($($name:literal)+) => { [$(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json"))),+] };
}

/// The built-in dialects, in the order of `--help`.
static BUILT_IN: [&str; 14] = built_in! {
    "binance" "okx" "bybit" "kraken" "coinbase" "kucoin" "gate" "bitget" "binanceus" "bitstamp"
    "cryptocom" "htx" "mexc" "upbit"
};

static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let read = |text: &&str| Dialect::read("built in", text).expect("a test reads every file");
    BUILT_IN.iter().map(read).collect()
});

/// The most dialects of files that are kept. Each takes some ten kilobytes. Each source that begins with a
/// file, at the start or by a reload, keeps one more. Nobody edits files that often without a restart.
const KEPT_MOST: usize = 1000;

/// How many dialects of files are kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The JSON Schema of a dialect's file, made from the structs that it is read into, in gzip.
pub const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dialect-schema.json.gz"));

/// The largest file of a dialect. The largest built-in one has 6 KB.
pub const FILE_BYTES: usize = 256 * 1024;

impl Dialect {
    /// The dialect of this name.
    pub fn by_name(name: &str) -> Option<&'static Dialect> {
        DIALECTS.iter().find(|dialect| dialect.name() == name)
    }

    /// True if this many more dialects of files may be kept.
    pub fn has_room(count: usize) -> bool {
        KEPT.load(Ordering::Relaxed) + count <= KEPT_MOST
    }

    /// The dialect of a source. A dialect from a file is kept for as long as the program runs: see
    /// [`Dialect::has_room`].
    pub fn for_source(source: &SourceConfig) -> Option<&'static Dialect> {
        if source.dialect_text.is_empty() {
            return Dialect::by_name(source.spoken());
        }
        let dialect = Dialect::read(&source.dialect, &source.dialect_text).ok()?;
        KEPT.fetch_add(1, Ordering::Relaxed);
        Some(Box::leak(Box::new(dialect)))
    }

    /// The names of all dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(Dialect::name)
    }

    /// The dialect that this file's text describes, or all faults of the file.
    pub fn read(file: &str, text: &str) -> Result<Dialect, Vec<ConfigFault>> {
        let (mut form, mut report) = (DialectForm::default(), Report::default());
        if text.len() > FILE_BYTES {
            report.open(file, text);
            report.fault("", format!("larger than {FILE_BYTES} bytes"));
            return Err(report.close().err().unwrap_or_default());
        }
        read_text(&mut (&mut form, &()), file, text, &mut report);
        let markets = &mut form.markets;
        if let Some(quote) = markets.quote.clone()
            && markets.constants.insert(ListingField::Quote, quote).is_some()
        {
            report.fault("markets.constants.quote", "given twice");
        }
        check(&form, &mut report);
        report.close()?;
        Ok(Dialect { file: form })
    }
}
