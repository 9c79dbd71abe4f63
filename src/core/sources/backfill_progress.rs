//! The progress of one source's backfill.
//!
//! [`BackfillProgress`] owns when the candles that are wanted and known are counted, the pace of the
//! last minute, and the log line a minute while the backfill goes on. [`Count`] is one count, slice by
//! slice. They decide nothing.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::stats::Backfill;
use crate::log_targets::SOURCE;
use crate::market::SourceId;
use crate::time::{Mono, Now};
use std::time::Duration;

/// Between two counts, each of which looks at every series.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// Series that one slice of a count looks at: less than 0.1 ms.
const SERIES_A_SLICE: usize = 64;

/// Between two log lines; the pace is that of the time between.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub struct BackfillProgress {
    count_at: Mono,
    /// When the running minute began, and how many candles were known then.
    since: (Mono, u64),
    /// True if the log has told of this backfill.
    is_logged: bool,
    was_over: bool,
}

/// A count under way.
#[derive(Debug, Default)]
pub struct Count {
    /// Series that have been looked at.
    series: usize,
    /// Candles that the configuration wants of them, and those that are known.
    wanted: u64,
    done: u64,
}

impl BackfillProgress {
    /// A count is due with the first candles.
    pub fn new(now: Mono) -> BackfillProgress {
        BackfillProgress { count_at: now, since: (now, 0), is_logged: false, was_over: false }
    }

    /// Candles have been applied. The count to begin, if one is due or nothing is left to request.
    pub fn applied(&mut self, plans: &CandlePlans, now: Now) -> Option<Count> {
        let was_over = std::mem::replace(&mut self.was_over, !plans.has_backfill(now));
        self.begin(self.was_over && !was_over, now)
    }

    /// The file holds more, or less. The count to begin, if one is due or the backfill is over.
    pub fn stored(&mut self, now: Now) -> Option<Count> {
        self.begin(self.was_over, now)
    }

    fn begin(&mut self, at_once: bool, now: Now) -> Option<Count> {
        if !at_once && now.mono < self.count_at {
            return None;
        }
        self.count_at = now.mono + COUNT_EVERY;
        Some(Count::default())
    }

    /// Takes in the result of a count.
    fn counted(&mut self, source: SourceId, count: &Count, is_over: bool, cx: &mut Context) {
        let Count { wanted, done, .. } = *count;
        let (since, before) = self.since;
        let passed = cx.now.mono.since(since);
        let status = &mut cx.stats[source];
        let pace = match (is_over, passed.as_secs()) {
            (true, _) => 0,
            (false, 0) => status.backfill.per_minute,
            (false, seconds) => done.saturating_sub(before) * 60 / seconds,
        };
        let ends_at = (pace > 0).then(|| cx.now.unix + ((wanted - done) * 60_000 / pace) as i64);
        status.backfill = Backfill { wanted, done, per_minute: pace, ends_at };
        let id = &status.id;
        if is_over {
            if std::mem::take(&mut self.is_logged) {
                log::info!(target: SOURCE, "backfill done source={id} candles={done}");
            }
            self.since = (cx.now.mono, done);
        } else if !is_over && passed >= LOG_EVERY {
            let end = ends_at.map_or("unknown".to_string(), |at| at.to_string());
            log::info!(
                target: SOURCE,
                "backfill goes on source={id} candles={done} wanted={wanted} per_minute={pace} end={end}"
            );
            self.is_logged = true;
            self.since = (cx.now.mono, done);
        }
    }
}

impl Count {
    /// Counts one slice. `true`: that was the last one.
    pub fn step(
        &mut self,
        source: SourceId,
        progress: &mut BackfillProgress,
        plans: &CandlePlans,
        history: &History,
        cx: &mut Context,
    ) -> bool {
        let before = self.series;
        let charts = &cx.market.charts;
        for key in plans.series().skip(before).take(SERIES_A_SLICE) {
            let current = key.interval.slot_of(cx.exchange_time(source));
            let depth = plans.depth(key, history, cx);
            let slots = current - depth..current;
            self.series += 1;
            self.wanted += depth.unsigned_abs();
            // In the file, if the series may go there, or else in memory.
            self.done += match history.may_store(key, cx) {
                true => charts.archived(key).map_or(0, |archived| archived.covered(slots)),
                false => charts.known(key, slots),
            };
        }
        let is_done = self.series < before + SERIES_A_SLICE;
        if is_done {
            progress.counted(source, self, !plans.has_backfill(cx.now), cx);
        }
        is_done
    }
}
