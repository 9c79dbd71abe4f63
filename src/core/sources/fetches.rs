//! Which candles are to be asked of one exchange, and in which order.
//!
//! Owns a plan for each series of one source: ranges that clients have asked for, the next
//! refresh of its newest candles, and what of the configured backfill is still missing. The order
//! is that: asked, live, backfill.
//!
//! It never asks anything itself: `sources` takes the next page from it when a lane is
//! free, and tells it how that ended.

mod missing;

use crate::core::sources::upstream::newest_page;
use crate::interval::Stored;
use crate::market::{IntervalSet, LEAST_PAGE, REREAD, Series, SeriesKey, refresh_ms};
use crate::time::{Mono, Now, UnixMs};
use missing::until;
pub use missing::widened;
use std::ops::Range;
use std::time::Duration;

/// From a candle's end to the first try to read it as closed: exchanges need a moment to write it.
const SETTLE: Duration = Duration::from_millis(500);

/// Pause before a closed candle that the exchange has not shown yet is asked for again, and the
/// first back-off of a series whose requests fail; that doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest back-off of one series: an exchange that has delisted a market is asked this often.
const RETRY_MAX: Duration = Duration::from_secs(600);

/// Ranges that may wait for one series. Ranges that touch become one, so only scattered ones count.
const ASKED_PER_SERIES: usize = 8;

/// After this, what an exchange could not tell is asked for once more.
const VAIN: Duration = Duration::from_secs(600);

/// Pause before a client's wish has slots asked for again that the last answer has left out. An
/// exchange whose pages are empty for a moment is not found out sooner, and a market's empty past is
/// not asked for with each look at its chart.
pub const SILENT_FOR_MS: i64 = 30_000;

/// How urgent a page of candles is, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A client waits for it.
    Asked,
    /// The newest candles of a followed series.
    Live,
    /// What is missing since the newest candle before: the service, or the exchange, was away.
    Hole,
    /// The configured depth of history.
    Backfill,
}

/// A page to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Not before this.
    pub when: Mono,
    /// How urgent.
    pub urgency: Urgency,
    /// Of which series.
    pub series: SeriesKey,
    /// Which slots.
    pub slots: Range<i64>,
}

/// A page as it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// From its oldest candle's slot to behind its newest's.
    pub between: Range<i64>,
    /// Its rows.
    pub rows: usize,
    /// Whether it was asked about as many slots as a page may have.
    pub is_full: bool,
    /// Whether it brought candles that were not known.
    pub has_news: bool,
}

/// Which slots of a series the backfill is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// So many, counted back from the newest.
    pub depth: i64,
    /// But none below this one.
    pub floor: i64,
    /// Rows of a page.
    pub rows: usize,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Fetches {
    plans: Vec<Plan>,
    /// Rows of a page by interval, where fewer come than the exchange's documentation says.
    learned: [Option<usize>; 3],
}

#[derive(Debug)]
struct Plan {
    series: SeriesKey,
    /// When the newest candles are read next.
    live: Mono,
    /// What clients have asked for, newest last.
    asked: Vec<Range<i64>>,
    /// What is still missing of the backfill, or is to be asked again; the newest range of it. Not
    /// before this moment.
    backfill: Option<(Mono, Range<i64>)>,
    /// An answer looked as if it had been cut to so many rows: it was, if there is a candle in this
    /// slot.
    cut: Option<(usize, i64)>,
    /// Whether it is a hole between candles that are known.
    is_hole: bool,
    /// Slots that have been asked for in vain, since then.
    vain: IntervalSet,
    vain_since: Mono,
    /// The last of them.
    vain_last: Mono,
    /// How often in a row the candle that has just closed was not there yet.
    misses: u32,
    failures: u32,
    /// Not before this, after a failure.
    rest_until: Mono,
    in_flight: Option<Range<i64>>,
    /// What is missing since this slot was missed, by what was known before anything was asked.
    reach: Option<i64>,
    /// Whether anything was asked.
    has_begun: bool,
}

impl Fetches {
    /// Follows a series from now on; its newest candles are due at once.
    pub fn open(&mut self, series: SeriesKey, now: Now) {
        if self.plan(series).is_none() {
            self.plans.push(Plan {
                series,
                live: now.mono,
                asked: Vec::new(),
                backfill: None,
                cut: None,
                is_hole: false,
                vain: IntervalSet::new(),
                vain_since: now.mono,
                vain_last: now.mono,
                misses: 0,
                failures: 0,
                rest_until: now.mono,
                in_flight: None,
                reach: None,
                has_begun: false,
            });
        }
    }

    /// Follows a series no longer.
    pub fn close(&mut self, series: SeriesKey) {
        self.plans.retain(|plan| plan.series != series);
    }

    /// The newest candles of every series are due now.
    pub fn hurry(&mut self, now: Now) {
        for plan in &mut self.plans {
            plan.live = plan.live.min(now.mono);
        }
    }

    /// Whether some of the configured history is still to be asked for.
    pub fn has_backfill(&self) -> bool {
        self.plans.iter().any(|plan| plan.backfill.is_some())
    }

    /// The series that are followed.
    pub fn series(&self) -> impl Iterator<Item = SeriesKey> + '_ {
        self.plans.iter().map(|plan| plan.series)
    }

    /// Asks for a range. `false` when it cannot be taken: too much is waiting already, or the
    /// exchange has just refused this series.
    pub fn ask(&mut self, series: SeriesKey, range: Range<i64>, room: usize, now: Now) -> bool {
        let waiting: usize = self.plans.iter().map(|plan| plan.asked.len()).sum();
        let Some(plan) = self.plans.iter_mut().find(|plan| plan.series == series) else {
            return false;
        };
        if plan.rest_until > now.mono || plan.was_in_vain(&range, now) {
            return false;
        }
        if plan.asks(&range) {
            return true;
        }
        let merged = plan
            .asked
            .iter_mut()
            .find(|asked| asked.start <= range.end && range.start <= asked.end);
        if let Some(asked) = merged {
            *asked = asked.start.min(range.start)..asked.end.max(range.end);
            return true;
        }
        if waiting >= room || plan.asked.len() >= ASKED_PER_SERIES {
            return false;
        }
        plan.asked.push(range);
        true
    }

    /// Whether some of this range is asked for and not answered yet.
    pub fn is_asking(&self, series: SeriesKey, range: &Range<i64>) -> bool {
        self.plan(series).is_some_and(|plan| {
            let overlaps = |r: &Range<i64>| r.start < range.end && range.start < r.end;
            plan.asked.iter().any(overlaps)
        })
    }

    /// The most urgent page that may be asked now, or the first that may be asked later.
    pub fn next(
        &self,
        now: Now,
        rows: impl Fn(Stored) -> usize,
        newest: impl Fn(&SeriesKey) -> (i64, i64),
        part: impl Fn(&SeriesKey, &Range<i64>) -> Option<Range<i64>>,
    ) -> Option<Page> {
        // Of hundreds of series one is chosen by its time, and only that one is looked at closer.
        let rank = |plan: &&Plan| {
            let (when, urgency) = plan.next(now);
            (when.max(now.mono), urgency, when)
        };
        let free = self.plans.iter().filter(|plan| plan.in_flight.is_none());
        let plan = free.min_by_key(rank)?;
        let (when, urgency) = plan.next(now);
        let slots = match (urgency, plan.asked.last()) {
            (Urgency::Asked, Some(range)) => {
                // Whoever asks for the newest closed candles wants to see the forming one too, and
                // it comes with the same page.
                let (_, current) = newest(&plan.series);
                let part = part(&plan.series, range).unwrap_or_else(|| range.clone());
                match part.end + REREAD >= current {
                    true => part.start..current + 1,
                    false => part,
                }
            }
            (Urgency::Hole | Urgency::Backfill, _) => {
                let (_, slots) = plan.backfill.clone()?;
                slots
            }
            _ => {
                let (covered_end, current) = newest(&plan.series);
                let from = covered_end.saturating_sub(REREAD).min(current);
                from..current + 1
            }
        };
        Some(Page {
            when,
            urgency,
            series: plan.series,
            slots: newest_page(&slots, rows(plan.series.interval)),
        })
    }

    /// A page has been asked. `reach` tells down to which slot nothing of its series is to stay
    /// missing, and is asked once: what clients want later is no part of it.
    pub fn began(
        &mut self,
        series: SeriesKey,
        slots: Range<i64>,
        reach: impl FnOnce() -> Option<i64>,
    ) {
        if let Some(plan) = self.plan_mut(series) {
            plan.in_flight = Some(slots);
            if !std::mem::replace(&mut plan.has_begun, true) {
                plan.reach = reach();
            }
        }
    }

    /// The slot down to which nothing is to stay missing, where something was known at the start.
    pub fn reach(&self, series: SeriesKey) -> Option<i64> {
        self.plan(series)?.reach
    }

    /// Rows of a page, where an exchange is documented to send so many.
    pub fn page_rows(&self, interval: Stored, documented: usize) -> usize {
        self.learned[interval as usize].map_or(documented, |rows| rows.min(documented))
    }

    /// A page has been answered, and applied to its series. `exchange` is the exchange's time. Returns
    /// the rows of a page where it has turned out that fewer come than before.
    pub fn answered(
        &mut self,
        key: SeriesKey,
        series: &Series,
        answered: &Answered,
        window: Window,
        exchange: UnixMs,
        now: Now,
    ) -> Option<usize> {
        let plan = self.plan_mut(key)?;
        let slots = plan.in_flight.take().unwrap_or_default();
        plan.failures = 0;
        plan.rest_until = now.mono;
        let current = key.interval.slot_of(exchange);
        // What was asked is not asked again at once, whatever has become of it: it may have had to
        // leave, for want of room or for its age. But where an answer has brought something that has
        // stayed, the rest of its page is: each such answer leaves less to ask for.
        let closed = until(answered.between.clone(), current);
        let has_news = answered.has_news && series.unknown(closed).is_empty();
        let told = match has_news {
            true => answered.between.clone(),
            false => slots.clone(),
        };
        plan.keep_asked(series, &told, current, exchange);
        plan.note_vain(series, &told, current, exchange, now);
        plan.backfill = plan.next_backfill(series, &window, (current, exchange), now);
        let known = series.oldest_known();
        plan.is_hole =
            (plan.backfill.as_ref()).is_some_and(|(_, it)| known.is_some_and(|k| k < it.start));
        let last = current - 1;
        let is_told = series.covered().covers(last..current) || series.is_silent(last);
        plan.misses = match is_told {
            true => 0,
            false => plan.misses.saturating_add(1),
        };
        let misses = plan.misses;
        if slots.end > current {
            plan.live = match has_news && !is_told && answered.rows >= LEAST_PAGE {
                // It was cut.
                true => now.mono,
                false => next_live(key.interval, misses, exchange, now),
            };
        } else if slots.end == current && series.covered().covers(slots.clone()) {
            plan.live = plan
                .live
                .min(next_live(key.interval, misses, exchange, now));
        }
        let learned = plan.learn(series, &slots, answered);
        if let Some(rows) = learned {
            self.learned[key.interval as usize] = Some(rows);
        }
        learned
    }

    /// A page has not been asked after all.
    pub fn put_back(&mut self, series: SeriesKey) {
        if let Some(plan) = self.plan_mut(series) {
            plan.in_flight = None;
        }
    }

    /// A page could not be had: this series rests, so that the others have their turn, and
    /// clients need not wait for it.
    pub fn failed(&mut self, series: SeriesKey, now: Now) {
        if let Some(plan) = self.plan_mut(series) {
            plan.in_flight = None;
            plan.failures += 1;
            plan.asked.clear();
            let doubled = RETRY * 2u32.saturating_pow((plan.failures - 1).min(16));
            plan.rest_until = now.mono + doubled.min(RETRY_MAX);
        }
    }

    /// The source as a whole is failing: nobody need wait for it.
    pub fn give_up_asked(&mut self) {
        for plan in &mut self.plans {
            plan.asked.clear();
        }
    }

    fn plan(&self, series: SeriesKey) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.series == series)
    }

    fn plan_mut(&mut self, series: SeriesKey) -> Option<&mut Plan> {
        self.plans.iter_mut().find(|plan| plan.series == series)
    }
}

impl Plan {
    /// When its next page may be asked, and how urgent that is.
    fn next(&self, now: Now) -> (Mono, Urgency) {
        if !self.asked.is_empty() {
            (self.rest_until, Urgency::Asked)
        } else if let Some((at, _)) = self.backfill.as_ref().filter(|(at, _)| *at < self.live)
            && self.live > now.mono
        {
            let urgency = match self.is_hole {
                true => Urgency::Hole,
                false => Urgency::Backfill,
            };
            ((*at).max(self.rest_until), urgency)
        } else {
            (self.live.max(self.rest_until), Urgency::Live)
        }
    }

    fn asks(&self, range: &Range<i64>) -> bool {
        self.asked
            .iter()
            .any(|asked| asked.start <= range.start && range.end <= asked.end)
    }
}

/// When the newest candles of a series are to be read again: the last closed one was missing so
/// often in a row.
fn next_live(interval: Stored, misses: u32, exchange: UnixMs, now: Now) -> Mono {
    let refresh = refresh_ms(interval);
    let next = (exchange.0.div_euclid(refresh) + 1) * refresh;
    let next = Duration::from_millis((next - exchange.0).unsigned_abs()) + SETTLE;
    // The candle that has just closed is not there yet: soon, and then less and less often.
    let retry = match misses {
        0 => next,
        misses => RETRY * 2u32.saturating_pow((misses - 1).min(16)),
    };
    now.mono + retry.min(next)
}
