//! Endpoints: what a dialect's file says about one request, and what that costs.

use super::json::Raw;
use super::path::{Path, Place, Step};
use super::target::TargetTemplate;
use crate::config::leaves::{Number, count};
use crate::config::members::members;
use crate::config::values::{KeyType, KeyValue as _, Wrong};
use crate::config::{Node, Report};
use crate::interval::Stored;

/// A number of requests, or of what they cost.
const COUNT: Number = count(1, 1_000_000_000);

/// A period in which requests are limited: a day at most.
const PERIOD: Number = count(1, 86_400_000);

/// The most markets of a request: servers take targets of 8 KiB.
const MOST_IDS: u64 = 500;

/// The most pages of a list, each a request: of 100 rows each, more than any exchange has markets.
const MOST_PAGES: u64 = 200;

/// Any number.
const ANY: Number = count(0, u32::MAX as u64);

members! {
    /// What an exchange allows, and the header field that tells of it.
    pub(super) struct BudgetForm {
        /// The costs that may be spent.
        units: u32, "units" COUNT;
        /// The period of that.
        per_ms: u32, "perMs" PERIOD;
        /// A header field (its name in lower case) with what is spent in the current period, in units.
        used: Option<String> = None, "used";
        /// A header field with what is left in the current period.
        left: Option<String> = None, "left";
    }
}

members! {
    /// The header field that carries the key of the source.
    pub(super) struct KeyForm {
        /// The name of the field, in lower case.
        header: String, "header";
        /// What stands in front of the key: `Bearer `, with its blank.
        prefix: String = String::new(), "prefix";
    }
}

members! {
    /// One endpoint.
    pub(super) struct EndpointSpec {
        /// Path and query.
        target: TargetTemplate, "target";
        /// What a request costs of the budget; 1 if neither this nor `limit` is there.
        cost: Option<u32> = None, "cost" ANY;
        /// A limit of this endpoint alone, in place of its cost.
        limit: Option<Limit> = None, "limit";
        /// Where the items are.
        items: Place, "items";
        /// Where the time of all tickers is, for tickers without a time of their own. If it is the path of a
        /// member among the items, that is no item.
        stamp: Option<Path> = None, "stamp";
        /// The pages behind the first, of a list of markets or the tickers of all that come in several.
        pages: Option<PagesForm> = None, "pages";
    }
}

members! {
    /// The pages of a list behind the first.
    pub(super) struct PagesForm {
        /// Path and query of such a page, with `{page}`, `{offset}` or `{cursor}`.
        target: TargetTemplate, "target";
        /// Where a page says what the cursor of the next one is. The last page says none.
        cursor: Option<Path> = None, "cursor";
        /// The rows of a full page: one with fewer is the last. Without it, the last page is an empty one.
        size: Option<u32> = None, "size" count(1, 100_000);
        /// The most pages, the first included. A list with more is refused.
        most: u32 = 20, "most" count(2, MOST_PAGES);
    }
}

members! {
    /// A limit of one endpoint.
    pub(super) struct Limit {
        /// So many requests.
        calls: u32, "calls" COUNT;
        /// In any such period.
        per_ms: u32, "perMs" PERIOD;
    }
}

members! {
    /// What a request for the tickers of several markets costs, by their number.
    pub(super) struct SizeCost {
        /// For so many markets at most.
        most: u32, "most" count(1, MOST_IDS);
        /// What it costs, if that is not the cost of the call.
        cost: Option<u32> = None, "cost" COUNT;
    }
}

members! {
    /// The exchange's names of the stored intervals that it has.
    pub(super) struct IntervalNames {
        /// One minute.
        minute: Option<String> = None, "1m";
        /// One hour.
        hour: Option<String> = None, "1h";
        /// One day, from midnight UTC.
        day: Option<String> = None, "1d";
    }
}

members! {
    /// A number of candles of each stored interval.
    pub(super) struct IntervalCounts {
        /// Of one minute.
        minute: Option<u32> = None, "1m" ANY;
        /// Of one hour.
        hour: Option<u32> = None, "1h" ANY;
        /// Of one day.
        day: Option<u32> = None, "1d" ANY;
    }
}

/// A number of candles: of all intervals alike, or of each.
pub(super) struct Counts([Option<u32>; 3]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([Some(1); 3])
    }
}

impl Counts {
    /// That of an interval.
    pub(super) fn get(&self, interval: Stored) -> Option<u32> {
        self.0[interval as usize]
    }
}

impl KeyType for Counts {
    type Rule = Number;

    fn expected(rule: &Number) -> String {
        format!("{rule}, or such numbers by interval")
    }

    fn read(rule: &Number, node: &Node<'_>, report: &mut Report) -> Result<Counts, Wrong> {
        if node.members().is_none() {
            return u32::read(rule, node, report).map(|count| Counts([Some(count); 3]));
        }
        let mut counts = IntervalCounts::default();
        (&mut counts, &()).read(node, report);
        let counts = [counts.minute, counts.hour, counts.day];
        let is_within = |count: &u32| (rule.min..=rule.max).contains(&u64::from(*count));
        let fits = counts.iter().flatten().all(is_within) && counts != [None; 3];
        fits.then_some(Counts(counts)).ok_or(None)
    }
}

impl IntervalNames {
    pub(super) fn get(&self, interval: Stored) -> Option<&String> {
        [&self.minute, &self.hour, &self.day][interval as usize].as_ref()
    }
}

impl IntervalCounts {
    pub(super) fn get(&self, interval: Stored) -> Option<u32> {
        [self.minute, self.hour, self.day][interval as usize]
    }
}

impl EndpointSpec {
    /// True if the time of all tickers is the value of this member, one among the items.
    pub(super) fn is_stamp(&self, name: Raw<'_>) -> bool {
        let stamp = self.stamp.as_deref().and_then(<[Step]>::split_last);
        match (stamp, name) {
            (Some((Step::Key(last), front)), Raw::Text(name)) => {
                last.as_bytes() == name && *front == *self.items.path
            }
            _ => false,
        }
    }

    /// What a request costs of this budget. For a request with a limit of its own, it is the lowest cost
    /// that keeps that limit, even if several whole budgets are spent on it within the limit's period.
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
