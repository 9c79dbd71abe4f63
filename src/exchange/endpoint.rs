//! Endpoints: what a dialect's file says about one request, and the cost of the request. And refusals: an
//! exchange's own statement that it refuses a request. Some exchanges send it with status 200.
//!
//! Owns the search for a refusal in a body, and what the statuses of refusals mean.
//! [`Reading`](super::Reading) combines the two.

use super::call::TargetTemplate;
use super::error::{ReadError, RefusalKind};
use super::json::Raw;
use super::path::{Path, Place, Step, find};
use super::value;
use crate::config::forms::{STORED, TextForm, form, is_slug, name, plain};
use crate::config::members::{Number, count, members};
use crate::config::values::{KeyType, Wrong};
use crate::config::{Node, Report};
use crate::interval::Stored;
use std::collections::BTreeMap;

/// A number of requests, or a cost.
const COUNT: Number = count(1, 1_000_000_000);

/// A period in which requests are limited: a day at most.
const PERIOD: Number = count(1, 86_400_000);

/// The most markets of a request: servers accept targets of 8 KiB.
pub(super) const MOST_IDS: u64 = 500;

/// The most pages of a list. Each page is a request. With 100 rows each, these are more rows than
/// any exchange has markets.
const MOST_PAGES: u64 = 200;

/// Any number.
pub(super) const ANY: Number = count(0, u32::MAX as u64);

/// The name of a header field.
const HEADER: TextForm<String> = form("the name of a header field in lower case", |text| {
    name(text, usize::MAX, |char| is_slug(char) || "_.".contains(char))
});

/// The text in front of a key.
const PREFIX: TextForm<String> = form("printable characters of ASCII", |text| {
    plain(text, text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()))
});

/// An exchange's name of an interval.
pub(super) const INTERVAL_NAME: TextForm<String> =
    form("1 to 32 of A-Z, a-z, 0-9, -, _, . and /", |text| {
        name(text, 32, |char| char.is_ascii_alphanumeric() || "-_./".contains(char))
    });

members! {
    /// The budget that an exchange allows, and the header field that reports it.
    pub(super) struct BudgetForm {
        /// The costs that may be spent.
        units: u32, "units" COUNT;
        /// The period in which they may be spent.
        per_ms: u32, "perMs" PERIOD;
        /// A header field (its name in lower case) with what is spent in the current period, in units.
        used: Option<String> = None, "used" HEADER;
        /// A header field with what is left in the current period.
        left: Option<String> = None, "left" HEADER;
    }
}

members! {
    /// The header field that carries the key of the source.
    pub(super) struct KeyForm {
        /// The name of the field, in lower case.
        header: String, "header" HEADER;
        /// The text in front of the key: `Bearer `, with its space.
        prefix: String = String::new(), "prefix" PREFIX;
    }
}

members! {
    /// One endpoint.
    pub(super) struct EndpointSpec {
        /// Path and query.
        target: TargetTemplate, "target";
        /// What a request costs of the budget; 1 if neither this nor `limit` is there.
        cost: Option<u32> = None, "cost" ANY;
        /// A limit of this endpoint alone, instead of a cost.
        limit: Option<Limit> = None, "limit";
        /// Where the items are.
        items: Place, "items";
        /// Where the time of all tickers is, for tickers without a time of their own. If the path leads to a
        /// member among the items, this member is no item.
        stamp: Option<Path> = None, "stamp";
        /// The pages after the first, if the market list or the tickers of all markets come in several pages.
        pages: Option<PagesForm> = None, "pages";
    }
}

members! {
    /// The pages of a list after the first.
    pub(super) struct PagesForm {
        /// Path and query of such a page, with `{page}`, `{offset}` or `{cursor}`.
        target: TargetTemplate, "target";
        /// Where a page has the cursor of the next page. The last page has none.
        cursor: Option<Path> = None, "cursor";
        /// The rows of a full page: a page with fewer rows is the last. Without `size`, the first empty page
        /// is the last.
        size: Option<u32> = None, "size" count(1, 100_000);
        /// The most pages, the first included. A list with more is refused.
        most: u32 = 20, "most" count(2, MOST_PAGES);
    }
}

members! {
    /// A limit of one endpoint.
    pub(super) struct Limit {
        /// The most requests in a period.
        calls: u32, "calls" COUNT;
        /// The length of the period. The limit holds for any period of this length.
        per_ms: u32, "perMs" PERIOD;
    }
}

members! {
    /// What a request for the tickers of several markets costs, by their number.
    pub(super) struct SizeCost {
        /// The most markets of such a request.
        most: u32, "most" count(1, MOST_IDS);
        /// What it costs, if that is not the cost of the call.
        cost: Option<u32> = None, "cost" COUNT;
    }
}

/// A value for each stored interval.
pub(super) type ByInterval<T> = BTreeMap<Stored, T>;

/// A number of candles: one for all intervals, or one for each.
#[derive(Default)]
pub(super) struct Counts(ByInterval<u32>);

impl Counts {
    /// The count of an interval.
    pub(super) fn get(&self, interval: Stored) -> Option<u32> {
        self.0.get(&interval).copied()
    }
}

impl KeyType for Counts {
    type Rule = Number;

    fn expected(rule: &Number) -> String {
        format!("{rule}, or such numbers by interval")
    }

    fn read(rule: &Number, node: &Node<'_>, report: &mut Report) -> Result<Counts, Wrong> {
        if node.members().is_some_and(|members| !members.is_empty()) {
            return ByInterval::read(&(STORED, *rule), node, report).map(Counts);
        }
        let count = u32::read(rule, node, report)?;
        Ok(Counts(Stored::ALL.map(|interval| (interval, count)).into()))
    }
}

impl EndpointSpec {
    /// True if this member among the items is the time of all tickers.
    pub(super) fn is_stamp(&self, name: Raw<'_>) -> bool {
        let stamp = self.stamp.as_deref().and_then(<[Step]>::split_last);
        match (stamp, name) {
            (Some((Step::Key(last), front)), Raw::Text(name)) => {
                last.as_bytes() == name && *front == *self.items.path
            }
            _ => false,
        }
    }

    /// The cost of a request in units of this budget. For an endpoint with a limit of its own, it is the
    /// lowest cost that keeps the limit, even if several whole budgets are spent on it within the limit's
    /// period.
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

/// A code of a refusal, or words that a refusal has.
const CODE: TextForm<String> = form("a code, or words between two *", |text| {
    let words = words_of(text).unwrap_or(text);
    plain(text, !words.is_empty() && (words != text || !text.starts_with('*')))
});

/// The words in a pattern of refusals, if it is no code.
fn words_of(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('*')?.strip_suffix('*')
}

members! {
    /// Where an exchange says that it refuses, and how.
    pub(super) struct Refusal {
        /// Where the code is. If it is an array, its first element is the code. If it is the path of an item,
        /// a text or a number there is a code.
        code: Option<Path> = None, "code";
        /// Codes of success. Without them, any code is an error.
        ok: Vec<Box<str>> = Vec::new(), "ok";
        /// Where the message is.
        message: Option<Path> = None, "message";
        /// Codes for too many requests. `*words*` stands for a code or a message that has these words.
        rate_limited: Vec<String> = Vec::new(), "rateLimited" CODE;
        /// Codes for an unknown market, in the same way.
        unknown_market: Vec<String> = Vec::new(), "unknownMarket" CODE;
        /// What the status of a response means.
        statuses: Statuses = Statuses::default(), "statuses";
    }
}

/// A status of a response.
const STATUS: Number = count(0, 65_535);

members! {
    /// What the statuses of refusals mean, if the body does not say more.
    pub(super) struct Statuses {
        /// Too many requests.
        // RFC 6585, 4.
        rate_limited: Vec<u16> = vec![429], "rateLimited" STATUS;
        /// Every request is refused for now.
        // Firewalls of exchanges send 403 to clients that they block, for too many requests or for
        // their location. 418 is a ban of Binance; other exchanges copy it.
        banned: Vec<u16> = vec![403, 418], "banned" STATUS;
        /// No such market.
        unknown_market: Vec<u16> = Vec::new(), "unknownMarket" STATUS;
    }
}

impl Statuses {
    pub(super) fn kind(&self, status: u16) -> RefusalKind {
        match () {
            () if self.rate_limited.contains(&status) => RefusalKind::RateLimited,
            () if self.banned.contains(&status) => RefusalKind::Banned,
            () if self.unknown_market.contains(&status) => RefusalKind::UnknownMarket,
            () => RefusalKind::Other,
        }
    }
}

/// The most bytes of a code or message that are logged.
const REASON_BYTES: usize = 200;

impl Refusal {
    /// The refusal in a complete envelope, or else in the front of the body, if there is one. In the front,
    /// the code may be in the place of an item: `[1]` among the elements of `[]`. An item that is an array or
    /// an object is not a code.
    pub(super) fn read(&self, envelope: &[u8], front: &[u8]) -> Option<ReadError> {
        let path = self.code.as_deref()?;
        let refused = self.refused(first_of(find(envelope, path)), envelope);
        refused.or_else(|| self.refused(find(front, path), front))
    }

    /// The refusal with this code. `None` if the value is no code, or the code means success.
    fn refused(&self, code: Raw<'_>, body: &[u8]) -> Option<ReadError> {
        let code = reason(code)?;
        if self.ok.iter().any(|ok| **ok == *code) {
            return None;
        }
        let message = self.message.as_deref();
        let message = message.and_then(|path| reason(first_of(find(body, path))));
        let texts = [Some(&code), message.as_ref()];
        let has = |words: &str| texts.iter().flatten().any(|text| text.contains(words));
        let fits = |pattern: &String| words_of(pattern).map_or(*pattern == code, has);
        let is = |patterns: &[String]| patterns.iter().any(fits);
        let kind = match () {
            () if is(&self.rate_limited) => RefusalKind::RateLimited,
            () if is(&self.unknown_market) => RefusalKind::UnknownMarket,
            () => RefusalKind::Other,
        };
        Some(ReadError::Refused { message: message.unwrap_or_else(|| code.clone()), code, kind })
    }
}

/// The first element of an array, or another value itself.
fn first_of(value: Raw<'_>) -> Raw<'_> {
    match value {
        Raw::Array(array) => find(array, &[Step::At(0)]),
        value => value,
    }
}

/// A code or message, without control characters and short enough for a log line.
fn reason(raw: Raw<'_>) -> Option<String> {
    let tidy = |letter: char| if letter.is_control() { ' ' } else { letter };
    let words = match raw {
        // Texts in other encodings show what they can.
        Raw::Text(text) if !text.is_empty() => String::from_utf8_lossy(text),
        raw => value::word(raw).ok()??,
    };
    let mut text: String = words.chars().map(tidy).collect();
    while text.len() > REASON_BYTES {
        text.pop();
    }
    Some(text)
}
