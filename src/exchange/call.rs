//! Calls: the kinds of requests to an exchange, its limits, and the target of a request: path and query, with
//! placeholders.
//!
//! Owns the placeholders of targets. A market has `{id}`, several markets have `{ids}`. Candles have
//! `{interval}`, `{limit}` (rows of a page), `{slots}` (how many rows the range can have), `{back}` (the
//! number of rows from its start until now and one more, for exchanges that send only the newest rows),
//! `{from}` and `{to}` (first and last open time). Pages of a list have `{page}`, `{offset}` and `{cursor}`.
//!
//! - `{id lower}`, `{id upper}`, `{id bare}`: the id in one case, or only its letters and digits.
//! - `{from-}`, `{to+}`: one unit outside of the range, for exchanges that leave its ends out.
//! - `{page-}`, `{page+}`: one less or more, for exchanges that do not count pages from 1.
//! - `{from s}`, `{to+ iso}`: in this unit (`value::Unit`), if it is not the unit of the rows.
//!
//! A value is never searched for placeholders. Ids and cursors, which come from the exchange, are
//! escaped.

use super::value::Unit;
use crate::config::forms::{TextForm, form};
use crate::config::members::{Named, names, texts};
use crate::interval::Stored;
use crate::named::named;
use crate::time::UnixMs;
use std::fmt::Write;
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
    Markets {
        /// The symbols of the source: the markets of an exchange without a list.
        named: &'a [String],
    },
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
    /// How many units may be spent within any `per`.
    pub units: u32,
    /// The length of the period.
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

impl Way {
    /// The cost of the tickers of this many markets.
    pub fn cost_of(&self, markets: usize) -> u32 {
        let requests = self.markets.map_or(1, |most| markets.div_ceil(most));
        self.cost.saturating_mul(u32::try_from(requests).unwrap_or(u32::MAX))
    }
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

/// The longest target in a file. Servers accept 8 KiB.
const TARGET_BYTES: usize = 1000;

/// Path and query.
pub(super) struct TargetTemplate {
    /// The placeholders, each with the text in front of it.
    pieces: Vec<(Box<str>, Placeholder)>,
    /// The text behind the last placeholder.
    rest: Box<str>,
}

/// A placeholder of a target, with its modifiers.
#[derive(Clone, Copy, Debug)]
struct Placeholder {
    name: PlaceholderName,
    /// Of an id: the case of its letters.
    case: fn(&u8) -> u8,
    is_bare: bool,
    /// Of a time: how many units later. Of a page: how many pages more.
    shift: i64,
    unit: Option<Unit>,
}

names! {
    /// The name of a placeholder.
    pub(super) enum PlaceholderName {
        Id "id"
        /// The ids of several markets.
        Ids "ids"
        Interval "interval"
        Limit "limit"
        Slots "slots"
        Back "back"
        /// The first open time.
        From "from"
        /// The last open time.
        To "to"
        /// The number of a page.
        Page "page"
        /// The items before a page.
        Offset "offset"
        /// What the previous page gave as the cursor of this one.
        Cursor "cursor"
    }
}

/// What placeholders need besides the call: values of candles, the text between two ids, and the page.
pub(super) struct FileValues<'d> {
    pub(super) interval: &'d str,
    pub(super) between: &'d str,
    pub(super) page: i64,
    pub(super) unit: Unit,
    /// The requested page, if it is not the first one.
    pub(super) next: Option<&'d NextPage>,
}

texts!(TargetTemplate, "/v1/candles?market={id}");

impl TryFrom<String> for TargetTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<TargetTemplate, String> {
        if !text.starts_with('/') || text.starts_with("//") || text.len() > TARGET_BYTES {
            return Err(format!(
                "expected a path that starts with one \"/\", of at most {TARGET_BYTES} bytes"
            ));
        }
        let (mut pieces, mut rest) = (Vec::new(), &*text);
        while let Some((front, behind)) = rest.split_once('{') {
            let front = check_text(front)?;
            let (name, behind) =
                behind.split_once('}').ok_or("expected a \"}\" after the \"{\"")?;
            pieces.push((front, Placeholder::parse(name)?));
            rest = behind;
        }
        Ok(TargetTemplate { pieces, rest: check_text(rest)? })
    }
}

/// What stands between two ids.
pub(super) const BETWEEN: TextForm<String> = form("the characters of a path and a query", |text| {
    check_text(text).map(String::from).map_err(Some)
});

/// The text, if it may stand in a target.
fn check_text(text: &str) -> Result<Box<str>, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?%".contains(it);
    match text.chars().find(|it| !is_plain(*it)) {
        Some(odd) => Err(format!("expected the characters of a path and a query, found {odd:?}")),
        None => Ok(text.into()),
    }
}

impl Placeholder {
    fn parse(text: &str) -> Result<Placeholder, String> {
        let unknown = || {
            let known = PlaceholderName::NAMES.join("}, {");
            format!("unknown placeholder {{{text}}}: expected one of {{{known}}}")
        };
        let (name, modifier) = text.split_once(' ').unwrap_or((text, ""));
        let (name, shift) = match (name.strip_suffix('+'), name.strip_suffix('-')) {
            (Some(name), _) => (name, 1),
            (_, Some(name)) => (name, -1),
            _ => (name, 0),
        };
        let name = PlaceholderName::named(name).ok_or_else(unknown)?;
        let is_time = matches!(name, PlaceholderName::From | PlaceholderName::To);
        let unit = Unit::named(modifier);
        if is_time && unit.is_none() && !modifier.is_empty() {
            let units = Unit::NAMES.join(", ");
            return Err(format!("expected one of {units} in {{{text}}}"));
        }
        let (as_is, lower, upper) = (u8::clone, u8::to_ascii_lowercase, u8::to_ascii_uppercase);
        let (case, is_bare): (fn(&u8) -> u8, bool) = match modifier {
            _ if is_time => (as_is, false),
            _ if shift != 0 && name != PlaceholderName::Page => return Err(unknown()),
            "" => (as_is, false),
            _ if !matches!(name, PlaceholderName::Id | PlaceholderName::Ids) => {
                return Err(unknown());
            }
            "bare" => (as_is, true),
            "lower" => (lower, false),
            "upper" => (upper, false),
            "bare lower" => (lower, true),
            "bare upper" => (upper, true),
            _ => return Err(unknown()),
        };
        Ok(Placeholder { name, case, is_bare, shift, unit })
    }
}

impl TargetTemplate {
    /// The placeholders of the target.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = PlaceholderName> {
        self.pieces.iter().map(|(_, placeholder)| placeholder.name)
    }

    /// The number of rows that the target asks for; `None` if it names none.
    pub(super) fn rows(&self, call: &Call<'_>, page: i64) -> Option<i64> {
        self.pieces.iter().find_map(|(_, placeholder)| placeholder.rows(call, page))
    }

    /// The target of this call's request.
    pub(super) fn fill(&self, call: &Call<'_>, file: &FileValues<'_>) -> String {
        let mut out = String::new();
        for (text, placeholder) in &self.pieces {
            out.push_str(text);
            placeholder.write(call, file, &mut out);
        }
        out + &self.rest
    }
}

impl Placeholder {
    /// The number of rows that it asks for; `None` if it stands for something else.
    fn rows(self, call: &Call<'_>, page: i64) -> Option<i64> {
        use PlaceholderName::{Back, Limit, Slots};
        let Call::Candles { interval, from, to, now, .. } = *call else {
            return None;
        };
        let slots = |last| interval.slot_of(last).saturating_sub(interval.slot_of(from)) + 1;
        let rows = match self.name {
            Limit => page,
            Slots => slots(to),
            // Another slot may begin while the request is on its way.
            Back => slots(now) + 1,
            _ => return None,
        };
        Some(rows.clamp(1, page))
    }

    fn write(self, call: &Call<'_>, file: &FileValues<'_>, out: &mut String) {
        use PlaceholderName::*;
        let number = match (self.name, *call) {
            (Id, Call::Ticker { id } | Call::Stats { id } | Call::Candles { id, .. }) => {
                return escape(id, self.case, self.is_bare, out);
            }
            (Ids, Call::Several { ids }) => return self.write_ids(ids, file.between, out),
            (Ids, Call::MarketsOf { ids }) => return self.write_ids(ids, file.between, out),
            (Interval, Call::Candles { .. }) => return out.push_str(file.interval),
            (Limit | Slots | Back, _) => self.rows(call, file.page).unwrap_or_default(),
            (From | To, Call::Candles { from, to, .. }) => {
                let time = if self.name == To { to } else { from };
                let unit = self.unit.unwrap_or(file.unit);
                return unit.write(UnixMs(time.0.max(0)), self.shift, out);
            }
            (Page | Offset | Cursor, _) => match (self.name, file.next) {
                (Cursor, Some(next)) => return escape(&next.cursor, self.case, false, out),
                (Page, Some(next)) => i64::from(next.number) + self.shift,
                (_, next) => next.map_or(0, |next| next.offset as i64),
            },
            // The check of the file permits each placeholder only in calls that have its value.
            _ => return,
        };
        write!(out, "{number}").expect("a string takes everything");
    }

    fn write_ids(self, ids: &[impl AsRef<str>], between: &str, out: &mut String) {
        for (at, id) in ids.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { between });
            escape(id.as_ref(), self.case, self.is_bare, out);
        }
    }
}

/// Percent-encodes all characters that are not unreserved (RFC 3986, 2.3): ids come from the
/// exchange, and must not be able to end the request line.
fn escape(id: &str, case: fn(&u8) -> u8, is_bare: bool, out: &mut String) {
    let is_kept = |byte: &&u8| !is_bare || byte.is_ascii_alphanumeric();
    for byte in id.as_bytes().iter().filter(is_kept).map(case) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}
