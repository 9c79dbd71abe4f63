//! The plan of a source: whether it requests all tickers of its exchange, several at a time or one at a time.
//!
//! [`QuotePlan`] owns the size and the duration of each way to request tickers, by the responses so far. It
//! chooses among the ways that fit the budget and end soon: the one with the fewest bytes or, if several have
//! about the same bytes, the one of them with the fewest units. [`QuotePlan`] sends nothing.

use crate::config::Poll;
use crate::core::sources::staged::Staged;
use crate::core::sources::task::{PERCENT_UNITS, Profile, Task};
use crate::exchange::Way;
use crate::time::Now;
use std::time::Duration;

/// A round of several requests fits if it takes at most `pollMs` or, if that is more, `staleAfterMs` divided
/// by this.
const PARTS_OF_STALE: u32 = 4;

/// Bytes of a response beside its tickers: a head, mostly.
const HEAD_BYTES: u64 = 500;

/// In percent of the least bytes: ways that need no more than this count as equal. So the plan does not
/// change with every response.
const PERCENT_EQUAL: u64 = 125;

/// The assumed duration of a request, until a response has shown how long it takes.
const LATENCY: Duration = Duration::from_millis(100);

/// The assumed number of markets of an exchange, as long as its list was read only for some of them.
const LISTED: usize = 1000;

/// See the module's page.
#[derive(Debug)]
pub struct QuotePlan {
    /// The first one requests all tickers at once, if the exchange has such a call.
    ways: Vec<Known>,
    current: usize,
    /// The markets of the exchange, tracked or not; 0 until this node has read its list. If its list was
    /// requested only for some markets, [`LISTED`].
    listed: usize,
}

/// A way, and what is known of it.
#[derive(Clone, Debug)]
struct Known {
    way: Way,
    /// Bytes of a ticker, by the responses so far.
    bytes: u64,
    /// How long a request takes, with all its pages.
    took: Duration,
    /// The pages of a poll of all tickers.
    pages: u64,
    is_learned: bool,
}

/// What a poll by some way takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    bytes: u64,
    units: u64,
    fits: bool,
}

impl QuotePlan {
    /// The plan of a source that has requested nothing yet. If it may request all tickers, it does.
    pub fn new(profile: &Profile) -> QuotePlan {
        let ways = profile.dialect.ways().into_iter().map(Known::new).collect();
        QuotePlan { ways, current: 0, listed: 0 }
    }

    /// The most markets of a request; `None`: one request brings all tickers.
    pub fn markets(&self) -> Option<usize> {
        self.ways[self.current].way.markets
    }

    /// Chooses the way to request `tracked` tickers on `connections` connections, and how often.
    pub fn choose(&mut self, tracked: usize, connections: usize, profile: &mut Profile) {
        let cost = |it: &Known| it.cost(tracked, self.listed, connections, profile);
        let costs: Vec<Cost> = self.ways.iter().map(cost).collect();
        // If nearly all markets are tracked, all tickers are requested, however slow that is. All are also
        // requested if no market is tracked, because the source must know whether it is up, and if another
        // node has read the list, because its length is not known.
        let has_all = self.ways[0].way.markets.is_none();
        let least = costs.iter().map(|it| it.bytes).min().unwrap_or(0);
        let all =
            Some(0).filter(|_| has_all && (tracked * self.listed == 0 || costs[0].is_near(least)));
        let fitting = || (0..costs.len()).filter(|at| costs[*at].fits);
        let least = fitting().map(|at| costs[at].bytes).min().unwrap_or(0);
        let near = fitting().filter(|at| costs[*at].is_near(least));
        let best = near.min_by_key(|at| costs[*at].units);
        let cheapest = (0..costs.len()).min_by_key(|at| (costs[*at].units, costs[*at].bytes));
        self.current = all.or(best).or(cheapest).unwrap_or(self.current);
        profile.set_cost(costs[self.current].units);
    }

    /// Takes in a response whose last page has come now. `named`: how many markets the list was requested
    /// for, if not for all.
    pub fn note(&mut self, staged: &Staged, named: Option<usize>, now: Now) {
        let bytes = staged.bytes;
        let took = now.mono.since(staged.sent[0].mono);
        match &staged.task {
            Task::Markets => {
                let seen = staged.seen as usize;
                let is_part = named.is_some_and(|named| seen <= named);
                // The length of an earlier whole list still holds.
                if !is_part || self.listed == 0 {
                    self.listed = if is_part { LISTED } else { seen };
                }
                // Ways that were too slow may be fast by now.
                self.ways.iter_mut().for_each(|it| it.took = it.took.min(LATENCY));
            }
            Task::Tickers => {
                self.learn(None, bytes, took);
                let all = self.ways.iter_mut().find(|it| it.way.markets.is_none());
                all.into_iter().for_each(|it| it.pages = staged.pages.into());
            }
            Task::TickersOf { symbols, .. } => self.learn(Some(symbols.len()), bytes, took),
            Task::Candles { .. } | Task::Stats(_) | Task::Time => {}
        }
    }

    /// Takes in a response with the tickers of this many markets, or with all tickers.
    fn learn(&mut self, markets: Option<usize>, bytes: u64, took: Duration) {
        let tickers = markets.unwrap_or(self.listed).max(1) as u64;
        let bytes = (bytes.saturating_sub(HEAD_BYTES) / tickers).max(1);
        let guess = u64::from(self.ways[self.current].way.bytes);
        for it in &mut self.ways {
            // The ways that request some markets differ only in how many.
            let is_meant = it.way.markets.is_some() == markets.is_some();
            match (is_meant, it.is_learned) {
                (true, true) => {
                    (it.bytes, it.took) = ((3 * it.bytes + bytes) / 4, (3 * it.took + took) / 4);
                }
                (true, false) => (it.bytes, it.took, it.is_learned) = (bytes, took, true),
                // If one guess was too low, as for an exchange that does not compress, so is the other.
                (false, false) => it.bytes = u64::from(it.way.bytes) * bytes.max(guess) / guess,
                (false, true) => {}
            }
        }
    }

    /// Its name in the metrics.
    pub fn name(&self) -> &'static str {
        match self.markets() {
            None => "all",
            Some(1) => "one",
            Some(_) => "several",
        }
    }
}

impl Cost {
    fn is_near(&self, least: u64) -> bool {
        self.bytes * 100 <= least * PERCENT_EQUAL
    }
}

impl Known {
    fn new(way: Way) -> Known {
        Known { way, bytes: way.bytes.into(), took: LATENCY, pages: 1, is_learned: false }
    }

    /// What a poll takes that brings `tracked` tickers of `listed` markets.
    fn cost(&self, tracked: usize, listed: usize, connections: usize, profile: &Profile) -> Cost {
        let (requests, tickers) = match self.way.markets {
            None => (self.pages, listed.max(tracked)),
            Some(most) => (tracked.div_ceil(most) as u64, tracked),
        };
        let rounds = if self.way.markets.is_none() { 1 } else { requests };
        let units = requests * u64::from(self.way.cost);
        let (limit, poll) = (profile.limit, profile.poll);
        let most = u128::from(limit.units) * poll.as_millis() * u128::from(PERCENT_UNITS);
        let fits_budget = profile.config.poll == Poll::Auto
            || u128::from(units) * limit.per.as_millis() * 100 <= most;
        let took = self.took.as_micros() * u128::from(rounds) / connections.max(1) as u128;
        let most_time = poll.max(profile.config.stale_after / PARTS_OF_STALE).as_micros();
        Cost {
            bytes: requests * HEAD_BYTES + tickers as u64 * self.bytes,
            units,
            fits: fits_budget && (rounds <= 1 || took <= most_time),
        }
    }
}
