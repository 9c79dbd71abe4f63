//! The progress of one source's backfill.
//!
//! [`BackfillProgress`] counts the wanted and the known candles, slice by slice. It owns that count, the pace
//! of the last minute, and the log line a minute while the backfill goes on. It decides nothing.

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

/// Between two log lines. The pace is measured over this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub struct BackfillProgress {
    source: SourceId,
    /// The first candles or file changes after this begin a count.
    count_at: Mono,
    count: Count,
    /// When the running minute began, and how many candles were known then.
    since: (Mono, u64),
    /// True if the log has told of this backfill.
    is_logged: bool,
    was_over: bool,
}

/// A count under way.
#[derive(Debug, Default)]
struct Count {
    /// Series that have been looked at.
    series: usize,
    /// Candles that are to be known of these series ([`CandlePlans::depth`]).
    wanted: u64,
    /// Wanted candles that are known.
    done: u64,
}

impl BackfillProgress {
    /// A count is due with the first candles.
    pub fn new(source: SourceId, now: Mono) -> BackfillProgress {
        let (count, since) = (Count::default(), (now, 0));
        BackfillProgress { source, count_at: now, count, since, is_logged: false, was_over: false }
    }

    /// Candles have been applied. `true`: a count begins, because one is due or nothing is left to request.
    pub fn applied(&mut self, plans: &CandlePlans, now: Now) -> bool {
        let was_over = std::mem::replace(&mut self.was_over, !plans.has_backfill(now));
        self.begins(self.was_over && !was_over, now)
    }

    /// The file holds more, or less. `true`: a count begins, because one is due or the backfill is over.
    pub fn stored(&mut self, now: Now) -> bool {
        self.begins(self.was_over, now)
    }

    /// True if a count begins: at once, as when series have gone, or because one is due.
    pub fn begins(&mut self, at_once: bool, now: Now) -> bool {
        let begins = at_once || now.mono >= self.count_at;
        if begins {
            (self.count, self.count_at) = (Count::default(), now.mono + COUNT_EVERY);
        }
        begins
    }

    /// Counts one slice. `true`: that was the last one.
    pub fn count(&mut self, plans: &CandlePlans, history: &History, cx: &mut Context) -> bool {
        let count = &mut self.count;
        let before = count.series;
        let charts = &cx.market.charts;
        for key in plans.series().skip(before).take(SERIES_A_SLICE) {
            let current = key.interval.slot_of(cx.exchange_time(self.source));
            let depth = plans.depth(key, history, cx);
            let slots = current - depth..current;
            count.series += 1;
            count.wanted += depth.unsigned_abs();
            // Candles in the file count, if the series may go there. Otherwise, candles in memory count.
            count.done += match history.may_store(key, cx) {
                true => charts.archived(key).map_or(0, |archived| archived.covered(slots)),
                false => charts.known(key, slots),
            };
        }
        let is_done = count.series < before + SERIES_A_SLICE;
        if is_done {
            self.counted(!plans.has_backfill(cx.now), cx);
        }
        is_done
    }

    fn counted(&mut self, is_over: bool, cx: &mut Context) {
        let Count { wanted, done, .. } = self.count;
        let (since, before) = self.since;
        let passed = cx.now.mono.since(since);
        let status = &mut cx.stats[self.source];
        let pace = match (is_over, passed.as_secs()) {
            (true, _) => 0,
            (false, 0) => status.backfill.per_minute,
            (false, seconds) => done.saturating_sub(before) * 60 / seconds,
        };
        let ends_at = (pace > 0).then(|| cx.now.unix + ((wanted - done) * 60_000 / pace) as i64);
        status.backfill = Backfill { wanted, done, per_minute: pace, ends_at };
        if !is_over && passed < LOG_EVERY {
            return;
        }
        self.since = (cx.now.mono, done);
        let (id, was_logged) = (&status.id, std::mem::replace(&mut self.is_logged, !is_over));
        if !is_over {
            let end = ends_at.map_or("unknown".to_string(), |at| at.to_string());
            log::info!(
                target: SOURCE,
                "backfill goes on source={id} candles={done} wanted={wanted} per_minute={pace} end={end}"
            );
        } else if was_logged {
            log::info!(target: SOURCE, "backfill done source={id} candles={done}");
        }
    }
}
