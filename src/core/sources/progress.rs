//! How far the backfill of one source has come.
//!
//! Owns the count of candles that are wanted and known, the pace of the last minute, and the one
//! line a minute that tells of it while it goes on. It decides nothing.

use super::source::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::log_targets::SOURCE;
use crate::market::SeriesKey;
use crate::time::{Mono, Now};
use std::ops::Range;
use std::time::Duration;

/// Between two counts, each of which looks at every series.
const COUNTED: Duration = Duration::from_secs(5);

/// Series that one slice of a count looks at: less than 0.1 ms.
const SERIES_A_SLICE: usize = 64;

/// Between two lines of the log; the pace is that of the time between.
const TOLD: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub(super) struct Progress {
    count_at: Mono,
    tell_at: Mono,
    /// What was known when this minute began, and when that was.
    mark: (Mono, u64),
    /// Whether the log has told of it.
    told: bool,
    was_over: bool,
    /// While they are counted.
    counting: Option<Counting>,
}

/// A count under way.
#[derive(Debug, Default)]
struct Counting {
    /// Series that have been looked at.
    series: usize,
    /// Candles that the configuration wants of them, and those that the exchange has told about.
    wanted: u64,
    done: u64,
}

impl Progress {
    pub(super) fn new(now: Mono) -> Progress {
        Progress {
            count_at: now,
            tell_at: now + TOLD,
            mark: (now, 0),
            told: false,
            was_over: false,
            counting: None,
        }
    }

    /// Whether [`Source::count_on`] has something to do.
    pub(super) fn is_counting(&self) -> bool {
        self.counting.is_some()
    }
}

impl Source {
    /// Candles have come: begins to count anew where that is due, or where there is nothing left to
    /// fetch.
    pub(super) fn note_progress(&mut self, now: Now) {
        let is_over = !self.fetches.has_backfill();
        let was_over = std::mem::replace(&mut self.progress.was_over, is_over);
        let has_ended = is_over && !was_over;
        if now.mono < self.progress.count_at && !has_ended {
            return;
        }
        self.progress.count_at = now.mono + COUNTED;
        self.progress.counting = Some(Counting::default());
    }

    /// Counts one slice; after the last one, tells what came of it.
    pub(super) fn count_on(&mut self, history: &mut History, cx: &mut Context) {
        let Some(mut counting) = self.progress.counting.take() else {
            return;
        };
        let exchange = cx.stats[self.id].exchange_time(cx.now);
        let series: Vec<SeriesKey> = (self.fetches.series())
            .skip(counting.series)
            .take(SERIES_A_SLICE)
            .collect();
        counting.series += SERIES_A_SLICE;
        for key in &series {
            let current = key.interval.slot_of(exchange);
            let depth = self.depth(*key, history, cx, current);
            counting.wanted += depth.unsigned_abs();
            counting.done += stored(*key, current - depth..current, history, cx);
        }
        match series.len() == SERIES_A_SLICE {
            true => self.progress.counting = Some(counting),
            false => self.tell_progress(counting.wanted, counting.done, cx),
        }
    }

    /// Something has been written: counts anew where a count is due, or the fetching is over.
    pub fn note_stored(&mut self, now: Now) {
        let is_due = self.progress.was_over || now.mono >= self.progress.count_at;
        if is_due && self.progress.counting.is_none() {
            self.progress.count_at = now.mono + COUNTED;
            self.progress.counting = Some(Counting::default());
        }
    }

    fn tell_progress(&mut self, wanted: u64, done: u64, cx: &mut Context) {
        let is_over = !self.fetches.has_backfill();
        let (since, before) = self.progress.mark;
        let seconds = cx.now.mono.since(since).as_secs();
        let status = &mut cx.stats[self.id].backfill;
        status.wanted = wanted;
        status.done = done;
        status.per_minute = match (is_over, seconds) {
            (true, _) => 0,
            (false, 0) => status.per_minute,
            (false, seconds) => done.saturating_sub(before) * 60 / seconds,
        };
        status.ends_at = match (is_over, status.per_minute) {
            (true, _) | (_, 0) => None,
            (false, pace) => Some(cx.now.unix + ((wanted - done) * 60_000 / pace) as i64),
        };
        let id = &self.config.id;
        if is_over && std::mem::take(&mut self.progress.told) {
            log::info!(target: SOURCE, "{id}: history is as deep as the exchange and the configuration say");
        } else if !is_over && cx.now.mono >= self.progress.tell_at {
            let pace = status.per_minute;
            let end = status.ends_at.map(|at| format!(", until about {at}"));
            let end = end.unwrap_or_default();
            log::info!(target: SOURCE, "{id}: {done} of {wanted} candles of history, {pace} a minute{end}");
            self.progress.told = true;
            self.progress.tell_at = cx.now.mono + TOLD;
            self.progress.mark = (cx.now.mono, done);
        }
    }
}

/// How many of these slots are stored: in the file, where they are for it, or else in memory.
fn stored(key: SeriesKey, slots: Range<i64>, history: &History, cx: &Context) -> u64 {
    let charts = &cx.market.charts;
    match history.is_for(key, cx) {
        true => (charts.archived(key)).map_or(0, |archived| archived.covered(slots)),
        false => charts.known(key, slots),
    }
}
