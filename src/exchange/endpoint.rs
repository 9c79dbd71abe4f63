//! Endpoints: what a dialect's file says about one request, and what that costs.

use super::json::Raw;
use super::path::{Path, Place, Step};
use super::target::TargetTemplate;
use crate::config::leaves::{Number, count};
use crate::config::members::members;
use crate::interval::Stored;

/// A number of requests, or of what they cost.
const COUNT: Number = count(1, 1_000_000_000);

/// A period in which requests are limited: a day at most.
const PERIOD: Number = count(1, 86_400_000);

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
