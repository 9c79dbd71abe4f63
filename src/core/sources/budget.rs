//! The budget of requests to one exchange: a token bucket in the exchange's own units.
//!
//! [`Budget`] owns the count of units at hand. They come back steadily; each request takes what it
//! costs. The bucket stays below the exchange's limit by a margin: within any span of the limit's length
//! at most what the bucket holds and what comes back in that span is spent, which is `PERCENT_BURST` and
//! `PERCENT_RATE` percent of the limit together. A request that costs more than `PERCENT_BURST` makes the
//! bucket as large as its cost. So the limit holds if no request costs more than a fifth of it, or if all
//! cost the same; with a dearer one among cheap ones, it may be exceeded right after that one.
//!
//! If the budget is tight, quotes and other requests take turns ([`Share`]): otherwise a source whose round
//! of quotes takes the whole budget would never show a chart.

use crate::exchange::BudgetLimit as Limit;
use crate::time::Mono;
use std::time::Duration;

/// Share of the limit that may be spent at once.
const PERCENT_BURST: u64 = 12;

/// Share of the limit that comes back within its span. The rest is the margin: our clock and the
/// exchange's differ, requests arrive bunched, and others may ask from the same address.
const PERCENT_RATE: u64 = 80;

/// Longest wait for a request of a sound dialect. It bounds the arithmetic on hostile figures.
const LONGEST: Duration = Duration::from_secs(3600);

/// Pause before the next look whether the other nodes have been told. Being told wakes the source too.
const TELL_PAUSE: Duration = Duration::from_millis(250);

/// Parts of a unit that are counted: a unit a minute comes back as 16 a millisecond.
const PARTS: u64 = 1_000_000;

/// See the module's page.
#[derive(Debug)]
pub struct Budget {
    /// The exchange's limit.
    limit: Limit,
    /// The most parts that the bucket holds.
    most: u64,
    /// Parts at hand at `since`.
    parts: u64,
    since: Mono,
    /// Units spent since the start.
    spent: u64,
    /// For whom units were spent last.
    pub last: Share,
    /// True if another node may be spending as well: each keeps to half.
    is_halved: bool,
    /// In a cluster: what was spent when the other nodes were last told what is left.
    told: Option<u64>,
    dearest: u32,
}

/// For whom units are spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Quotes.
    Quotes,
    /// Candles, lists, clocks.
    Rest,
}

impl Budget {
    /// A full bucket. It holds at least `dearest`, the cost of the dearest request, which could never be
    /// sent otherwise.
    pub fn new(limit: Limit, dearest: u32, now: Mono) -> Budget {
        let burst = u64::from(limit.units) * PARTS * PERCENT_BURST / 100;
        let most = burst.max(u64::from(dearest) * PARTS).max(PARTS);
        Budget {
            limit,
            most,
            parts: most,
            since: now,
            spent: 0,
            last: Share::Rest,
            is_halved: false,
            told: None,
            dearest,
        }
    }

    /// Goes on from what another node has left, so many milliseconds ago; nothing, if that is not known.
    /// From now on, the nodes are told.
    pub fn take_over(&mut self, left: Option<(u64, u64)>, is_halved: bool, now: Mono) {
        self.is_halved = is_halved;
        let (units, age_ms) = left.unwrap_or_default();
        self.parts = units.saturating_mul(PARTS).min(self.most());
        self.since = Mono(now.0.saturating_sub(age_ms.saturating_mul(1000)));
        self.told = Some(self.spent);
    }

    /// Keeps at most as much as another budget of the same exchange has at hand.
    pub fn continue_from(&mut self, other: &Budget, now: Mono) {
        self.limit_to(other.at_hand(now), now);
    }

    /// Keeps to half from now on, and tells nobody: another node may be spending as well.
    pub fn halve(&mut self, now: Mono) {
        self.limit_to(self.most, now);
        (self.is_halved, self.told) = (true, None);
    }

    /// Uses the whole again.
    pub fn use_whole(&mut self, now: Mono) {
        self.limit_to(self.most, now);
        self.is_halved = false;
    }

    /// Has at most so many parts at hand now.
    fn limit_to(&mut self, parts: u64, now: Mono) {
        self.parts = self.at_hand(now).min(parts);
        self.since = self.since.max(now);
    }

    /// The units that may be reported as left, and the count to pass to [`Budget::note_told`] after that.
    /// What may be spent until the next report is held back.
    pub fn to_tell(&self, now: Mono) -> (u64, u64) {
        let left = self.at_hand(now).saturating_sub(self.untold_most());
        (left / PARTS, self.spent)
    }

    /// The other nodes have been told when so many units were spent.
    pub fn note_told(&mut self, spent: u64) {
        self.told = self.told.map(|told| told.max(spent));
    }

    /// The most parts that may be spent before the other nodes are told: of two seconds, since they are
    /// told each second.
    fn untold_most(&self) -> u64 {
        (self.rate() * 2).max(2 * u64::from(self.dearest) * PARTS)
    }

    /// The most parts that the bucket holds.
    fn most(&self) -> u64 {
        match self.is_halved {
            true => (self.most / 2).max(u64::from(self.dearest) * PARTS),
            false => self.most,
        }
    }

    /// When a request of this cost may be sent: now or later.
    pub fn ready_at(&self, cost: u32, now: Mono) -> Mono {
        let parts = u64::from(cost) * PARTS;
        // The other nodes are told first.
        let untold = self.told.map_or(0, |told| self.spent - told);
        if untold > 0 && untold * PARTS + parts > self.untold_most() {
            return now + TELL_PAUSE;
        }
        let wanted = parts.min(self.most());
        let missing = wanted.saturating_sub(self.at_hand(now));
        if missing == 0 {
            return now;
        }
        let rate = self.rate().max(1);
        let wait = Duration::from_micros(missing.saturating_mul(1_000_000).div_ceil(rate));
        now + wait.min(LONGEST)
    }

    /// Takes the cost of a request that is sent now.
    pub fn spend(&mut self, cost: u32, share: Share, now: Mono) {
        let left = self.at_hand(now).saturating_sub(u64::from(cost) * PARTS);
        self.limit_to(left, now);
        self.spent += u64::from(cost);
        self.last = share;
    }

    /// True if quotes of this cost, each `every`, take more than half of what comes back.
    pub fn is_tight(&self, cost: u32, every: Duration) -> bool {
        let back = u128::from(self.rate()) * every.as_micros() / 1_000_000;
        u128::from(cost) * u128::from(PARTS) * 2 > back
    }

    /// The exchange tells how many units it has counted in the current span. If that is more than was
    /// spent here, another program uses the same address, and the bucket gives way.
    pub fn note_used(&mut self, used: u64, now: Mono) {
        self.note_left(u64::from(self.limit.units).saturating_sub(used), now);
    }

    /// The exchange tells how many units are left in the current span. The margin is kept.
    pub fn note_left(&mut self, left: u64, now: Mono) {
        let margin = u64::from(self.limit.units) * (100 - PERCENT_BURST - PERCENT_RATE) / 100;
        self.limit_to(left.saturating_sub(margin).saturating_mul(PARTS), now);
    }

    /// Whole units at hand.
    pub fn left(&self, now: Mono) -> u64 {
        self.at_hand(now) / PARTS
    }

    /// Units spent since the start.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Parts that come back in a second.
    fn rate(&self) -> u64 {
        let percent = PERCENT_RATE / if self.is_halved { 2 } else { 1 };
        let per_span = u64::from(self.limit.units) * PARTS * percent / 100;
        let micros = (self.limit.per.as_micros() as u64).max(1);
        (u128::from(per_span) * 1_000_000 / u128::from(micros)) as u64
    }

    fn at_hand(&self, now: Mono) -> u64 {
        let micros = now.since(self.since).as_micros();
        let back = u128::from(self.rate()) * micros / 1_000_000;
        let sum = u128::from(self.parts) + back;
        sum.min(u128::from(self.most())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    fn limit(units: u32, seconds: u64) -> Limit {
        Limit { units, per: Duration::from_secs(seconds) }
    }

    #[test]
    fn no_span_ever_sees_more_than_the_limit_whatever_is_asked() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let units = 10 + rng.below(6000) as u32;
            let span = Duration::from_secs(1 + rng.below(60));
            let dearest = 1 + rng.below(u64::from(units) / 5) as u32;
            let mut now = Mono(rng.below(1 << 40));
            let limit = Limit { units, per: span };
            let mut budget = Budget::new(limit, dearest, now);
            let mut spent: VecDeque<(Mono, u32)> = VecDeque::new();
            for _ in 0..400 {
                now = now + Duration::from_micros(rng.below(2_000_000));
                let cost = 1 + rng.below(u64::from(dearest)) as u32;
                now = budget.ready_at(cost, now);
                budget.spend(cost, Share::Rest, now);
                spent.push_back((now, cost));
                while spent.front().is_some_and(|(at, _)| now.since(*at) >= span) {
                    spent.pop_front();
                }
                let sum: u32 = spent.iter().map(|(_, cost)| cost).sum();
                assert!(sum <= units, "seed {seed}: {sum} of {units} in {span:?}");
            }
        }
    }

    #[test]
    fn what_the_exchange_counts_is_believed_when_it_is_worse() {
        let start = Mono(0);
        let mut budget = Budget::new(limit(1000, 60), 10, start);
        assert_eq!(budget.left(start), 120);
        budget.note_used(100, start);
        assert_eq!(budget.left(start), 120);
        budget.note_used(870, start);
        assert_eq!(budget.left(start), 50);
        budget.note_left(0, start);
        assert_eq!(budget.left(start), 0);
        budget.note_left(1000, start);
        assert_eq!(budget.left(start), 0, "a better figure gives nothing back");
        assert!(budget.ready_at(10, start) > start);
    }

    #[test]
    fn what_another_source_has_spent_of_the_same_limit_is_not_there() {
        let (start, later) = (Mono(0), Mono(3_000_000));
        let mut other = Budget::new(limit(600, 60), 10, start);
        other.spend(60, Share::Quotes, start);
        let mut budget = Budget::new(limit(600, 60), 10, later);
        budget.continue_from(&other, later);
        assert_eq!(budget.left(later), 12 + 3 * 8);
        budget.continue_from(&Budget::new(limit(600, 60), 10, later), later);
        assert_eq!(budget.left(later), 12 + 3 * 8, "another gives nothing");
        assert_eq!(budget.spent(), 0);
    }

    #[test]
    fn a_budget_is_tight_when_quotes_take_more_than_half_of_it() {
        let budget = Budget::new(limit(6000, 60), 80, Mono(0));
        // 80 of the 80 that come back in a second, of the 160 in two.
        assert!(budget.is_tight(80, Duration::from_secs(1)));
        assert!(!budget.is_tight(80, Duration::from_secs(2)));
    }

    #[test]
    fn a_request_dearer_than_the_bucket_still_goes_some_day() {
        let mut budget = Budget::new(limit(1, 1), 1, Mono(0));
        budget.spend(1, Share::Quotes, Mono(0));
        let next = budget.ready_at(1, Mono(0));
        assert_eq!(next, Mono(1_250_000));
        assert_eq!(budget.ready_at(1, next), next);
        assert_eq!(budget.ready_at(1000, next), next);
    }
}
