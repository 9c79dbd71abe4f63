//! What of a series is still to be asked, after an answer.
//!
//! Owns the choice of the next part that is missing, unsure or not settled, and the judgement of how
//! many rows a page has. It never asks for anything.

use super::{ASKED_PER_SERIES, Answered, Plan, SILENT_FOR_MS, VAIN, Window};
use crate::market::{IntervalSet, LEAST_PAGE, REREAD, Series, cut};
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// Slots behind a missing part in which the next candle is looked for, to be asked for with it: what
/// lies between two candles of one answer is known at once. No more than a quarter of a page.
const NEIGHBOUR: i64 = 64;

/// Pause before a client's wish has slots asked for again that were asked for in vain.
const VAIN_FOR_CLIENTS: Duration = Duration::from_secs(30);

impl Plan {
    /// Whether all that is missing of a range has just been asked for in vain.
    pub(super) fn was_in_vain(&self, range: &Range<i64>, now: Now) -> bool {
        let is_fresh = now.mono.since(self.vain_last) < VAIN_FOR_CLIENTS;
        is_fresh && self.vain.covers(range.clone())
    }

    /// Keeps what clients have asked for and is still worth asking, without what was just told.
    pub(super) fn keep_asked(
        &mut self,
        series: &Series,
        told: &Range<i64>,
        current: i64,
        exchange: UnixMs,
    ) {
        let asked = std::mem::take(&mut self.asked).into_iter();
        let left = asked.flat_map(|range| cut(range, told));
        let still = left.filter_map(|range| {
            let left = series.askable(until(range, current), exchange, SILENT_FOR_MS);
            Some(left.first()?.start..left.last()?.end)
        });
        self.asked = still.collect();
        let excess = self.asked.len().saturating_sub(ASKED_PER_SERIES);
        self.asked.drain(..excess);
    }

    /// Notes what was asked in vain: what an answer has left out waits for its own time.
    pub(super) fn note_vain(
        &mut self,
        series: &Series,
        told: &Range<i64>,
        current: i64,
        exchange: UnixMs,
        now: Now,
    ) {
        if now.mono.since(self.vain_since) > VAIN {
            self.vain = IntervalSet::new();
            self.vain_since = now.mono;
        }
        let unknown = series.askable(until(told.clone(), current), exchange, i64::MAX);
        let unsettled = series.unsettled(until(told.clone(), current - REREAD));
        let silent = series.silent(told.clone()).into_iter();
        let due = silent
            .filter(|(_, at)| *at <= exchange)
            .map(|(part, _)| part);
        for slots in unknown.into_iter().chain(unsettled).chain(due) {
            self.vain_last = now.mono;
            // So many pieces that one more is refused: they are tried again, and it costs a page.
            let _ = self.vain.insert(slots);
        }
    }

    /// What is to be asked next by itself, and from when on: the newest part that is missing or due
    /// again, or else what will be due first.
    pub(super) fn next_backfill(
        &self,
        series: &Series,
        window: &Window,
        (current, exchange): (i64, UnixMs),
        now: Now,
    ) -> Option<(Mono, Range<i64>)> {
        let oldest = current
            .saturating_sub(window.depth)
            .max(window.floor)
            .max(0);
        let unknown = series.askable(oldest..current.max(oldest), exchange, i64::MAX);
        // The next refresh reads the others.
        let refreshed = series.newest_known().map_or(current, |last| last + 1) - REREAD;
        let refreshed = refreshed.min(current).max(0);
        let unsettled = series.unsettled(0..refreshed.min(current - REREAD).max(0));
        let silent = series.silent(0..refreshed);
        let due = silent.iter().filter(|(_, at)| *at <= exchange);
        let due = due.map(|(part, _)| part.clone());
        let all = unknown.into_iter().chain(unsettled).chain(due);
        let mut todo = IntervalSet::new();
        for part in all.flat_map(|part| self.vain.missing(part)) {
            // Too many pieces: the others come when these are done.
            let _ = todo.insert(part);
        }
        if let Some(part) = todo.iter().next_back() {
            return Some((now.mono, widened(series, part, current, window.rows)));
        }
        let later = silent.into_iter().filter(|(_, at)| *at > exchange);
        let (part, at) = later.min_by_key(|(_, at)| *at)?;
        let wait = Duration::from_millis((at - exchange).unsigned_abs());
        Some((now.mono + wait, widened(series, part, current, window.rows)))
    }

    /// Whether an answer before was cut: then the rows of a page. Remembers whether this one looks so.
    pub(super) fn learn(
        &mut self,
        series: &Series,
        slots: &Range<i64>,
        answered: &Answered,
    ) -> Option<usize> {
        let Answered { between, rows, .. } = answered;
        let was_cut = |(_, slot): &mut (usize, i64)| between.contains(slot);
        let cut = self.cut.take_if(was_cut);
        let least = LEAST_PAGE as i64;
        let (before, behind) = (between.start - slots.start, slots.end - between.end);
        let is_dense = answered.is_full && between.end - between.start == *rows as i64;
        if is_dense && *rows >= LEAST_PAGE && before.max(behind) >= least {
            let slot = match before > behind {
                true => between.start - 1,
                false => between.end,
            };
            self.cut = Some((*rows, slot));
        }
        let (rows, slot) = cut?;
        series.has_candle(slot).then_some(rows)
    }
}

/// A range without what cannot be answered yet: the slot that is still open.
pub(super) fn until(range: Range<i64>, current: i64) -> Range<i64> {
    range.start..range.end.min(current).max(range.start)
}

/// A part that is missing, with the candles next to it where they are known.
pub fn widened(series: &Series, part: Range<i64>, current: i64, rows: usize) -> Range<i64> {
    let before = part.start - 1..part.start;
    let start = match series.covered().covers(before.clone()) {
        true => before.start.max(0),
        false => part.start,
    };
    let near = NEIGHBOUR.min(rows as i64 / 4);
    let next = series.next_candle(part.end..part.end + near);
    let end = next.map_or(part.end, |slot| slot + 1);
    // The forming candle, too, tells that the slots before it are empty.
    match part.end == current {
        true => start..end.max(current + 1),
        false => start..end,
    }
}
