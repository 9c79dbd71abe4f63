//! A chart: which candles a request is about, and the quick way to answer it.
//!
//! Owns the rules of a chart's range and of what is said about it beside its rows. It never waits
//! for candles that are not there: it says what is missing.
//!
//! Two ways lead to a body. A [`ChartPlan`] answers what is stored as it is asked for: it measures
//! the rows without reading them, so that the length is known before the first byte is written,
//! and hands out shared bytes. Everything else is made row by row, over several turns if need be,
//! by a [`ChartMaker`](super::maker::ChartMaker).
//!
//! A *target* is a candle of the asked interval; it is made of *slots*, candles of the stored one.

use super::charts::floor_slot;
use super::chunk::seconds;
use super::series::{Edge, Series, Tail};
use super::spans::Spans;
use crate::interval::{Interval, Stored};
use crate::time::{DAY_MS, UnixMs, civil};
use std::ops::Range;
use std::sync::Arc;

/// 9999-12-31: times beyond it mean it. Calendars and sums hold up to there.
const MAX_TIME: UnixMs = UnixMs(253_402_300_799_999);

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartSpec {
    /// Of the candles.
    pub interval: Interval,
    /// Least open time. Given: the oldest candles from there; not: the newest ones.
    pub from: Option<UnixMs>,
    /// Greatest open time.
    pub to: Option<UnixMs>,
    /// Most candles. At least 1.
    pub limit: usize,
    /// Flat candles without volume where the exchange had none, between those it had.
    pub fill_previous: bool,
    /// Decimals as JSON strings.
    pub quoted: bool,
}

/// What is said about a chart beside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartInfo {
    /// Candles in the body.
    pub rows: usize,
    /// Open time of the first one.
    pub first: Option<UnixMs>,
    /// Open time of the last one.
    pub last: Option<UnixMs>,
    /// Targets of the answered range that the exchange was asked for and had no candle.
    pub gaps: u64,
    /// Whether the exchange has answered for every closed slot of `depends`.
    pub complete: bool,
    /// The closed slots that the answer depends on: the asked range within what is kept; without
    /// a `from`, the newest `limit` targets or down to the first row, whichever goes further. What
    /// is missing of it in [`Series::covered`] is worth fetching.
    pub depends: Range<i64>,
    /// Open time of the newest candle of this interval that the exchange has confirmed as
    /// closed. A later one is forming or provisional.
    pub last_closed: Option<UnixMs>,
    /// Where the next page begins, when a range was cut by the limit.
    pub next_from: Option<UnixMs>,
    /// Whether a row is provisional or forming.
    pub touches_tail: bool,
    /// The series' version that the body is of; `None` when there is no series, or it changed
    /// while the body was made.
    pub version: Option<u64>,
}

/// A chart of stored rows as they are: found, measured, and not copied. It is a chart of the
/// moment at which it was made, whatever becomes of the series.
#[derive(Clone, Debug)]
pub struct ChartPlan {
    /// All but the brackets around them.
    pieces: Vec<(Arc<[u8]>, Range<usize>)>,
    body_len: usize,
    info: ChartInfo,
}

/// The base slots whose coverage an answer depends on, as far as that is known before looking:
/// `limit` targets in the asked direction, clipped to the kept window and to what is closed by
/// `now` on the exchange's clock. `keep` is in base slots.
pub fn needed(spec: &ChartSpec, now: UnixMs, keep: i64) -> Range<i64> {
    Window::new(spec).needed(spec, now, keep)
}

impl ChartPlan {
    /// Finds the rows of an answer. `None` when it cannot be made of stored rows as they are: a
    /// [`ChartMaker`](super::maker::ChartMaker) makes it. `now` is the exchange's clock, `keep`
    /// the kept window in base slots.
    pub fn new(
        series: Option<&Series>,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> Option<ChartPlan> {
        if !spec.interval.is_stored() || spec.fill_previous || spec.quoted {
            return None;
        }
        let window = Window::new(spec);
        let Some(series) = series else {
            return Some(ChartPlan {
                pieces: Vec::new(),
                body_len: 2,
                info: Outcome::default().info(None, (spec, &window), now, keep),
            });
        };
        let slots = window.start..window.end;
        let tail = series.tail(&slots);
        let (mut rows, tail) = if window.oldest {
            let rows = series.range(slots, spec.limit, Edge::Oldest, seconds(now));
            let left = tail.len().min(spec.limit - rows.rows);
            (rows, &tail[..left])
        } else {
            let tail = &tail[tail.len().saturating_sub(spec.limit)..];
            let left = spec.limit - tail.len();
            (series.range(slots, left, Edge::Newest, seconds(now)), tail)
        };
        let stored = (rows.rows > 0).then_some(&rows.slots);
        let tail_slot = |tail: Option<&Tail>| tail.map(|tail| tail.slot);
        let first = stored.map(|slots| slots.start);
        let first = first.or(tail_slot(tail.first()));
        let last = tail_slot(tail.last()).or(stored.map(|slots| slots.end - 1));
        let outcome = Outcome {
            rows: rows.rows + tail.len(),
            begin: first,
            first,
            last,
            closed: rows.rows as u64,
            touches_tail: !tail.is_empty(),
        };
        for tail in tail {
            let row = tail.row().clone();
            rows.bytes += row.len();
            rows.pieces.push((row, 0..tail.row().len()));
        }
        // The comma behind the last row gives its place to the closing bracket.
        if let Some((_, part)) = rows.pieces.last_mut() {
            part.end -= 1;
            rows.bytes -= 1;
        }
        Some(ChartPlan {
            pieces: rows.pieces,
            body_len: rows.bytes + 2,
            info: outcome.info(Some(series), (spec, &window), now, keep),
        })
    }

    /// What is said beside the rows.
    pub fn info(&self) -> &ChartInfo {
        &self.info
    }

    /// Length of the body in bytes.
    pub fn body_len(&self) -> usize {
        self.body_len
    }

    /// Appends the body: a copy of it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.body_len);
        out.push(b'[');
        for (rows, part) in &self.pieces {
            out.extend_from_slice(&rows[part.clone()]);
        }
        out.push(b']');
    }

    /// The parts of the body between `[` and `]`, oldest first: shared bytes, and which of them
    /// belong to it. To be sent without being copied; they stay as they are for as long as
    /// somebody holds them.
    pub fn into_pieces(self) -> Vec<(Arc<[u8]>, Range<usize>)> {
        self.pieces
    }
}

/// The targets that a request may be answered with, before its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) base: Stored,
    /// First slot of the first target.
    pub(super) start: i64,
    /// Slot behind the last target.
    pub(super) end: i64,
    /// Whether the limit keeps the oldest targets.
    pub(super) oldest: bool,
}

impl Window {
    pub(super) fn new(spec: &ChartSpec) -> Window {
        let (interval, base) = (spec.interval, spec.interval.base());
        let slot_of = |time: UnixMs| base.slot_of(time.clamp(UnixMs(0), MAX_TIME));
        let start = spec.from.map_or(0, |from| {
            let slot = slot_of(from);
            let late = base.open_of(slot) < from;
            first_target(interval, slot + i64::from(late))
        });
        let end = match spec.to {
            Some(to) if to < UnixMs(0) => start,
            to => target_of(interval, slot_of(to.unwrap_or(MAX_TIME))).end,
        };
        Window {
            base,
            start,
            end: end.max(start),
            oldest: spec.from.is_some(),
        }
    }

    /// See [`needed`].
    fn needed(&self, spec: &ChartSpec, now: UnixMs, keep: i64) -> Range<i64> {
        let present = self.base.slot_of(now);
        let limit = i64::try_from(spec.limit).unwrap_or(i64::MAX);
        let floor = first_target(spec.interval, floor_slot(self.base, now, keep));
        let (start, end) = if self.oldest {
            let start = self.start.max(floor);
            let end = target_after(spec.interval, start, limit);
            (start, end.min(self.end))
        } else {
            let end = self.end.min(target_of(spec.interval, present).end);
            let start = target_after(spec.interval, end, -limit);
            (start.max(floor), end)
        };
        let end = end.min(present);
        start.min(end)..end
    }
}

/// What came of a request, in slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Rows of the body.
    pub(super) rows: usize,
    /// First slot of the first target that was looked into: the first row's, unless its volume
    /// could not be held.
    pub(super) begin: Option<i64>,
    /// First slot of the first row's target.
    pub(super) first: Option<i64>,
    /// First slot of the last row's target.
    pub(super) last: Option<i64>,
    /// Targets with a candle that the exchange confirmed.
    pub(super) closed: u64,
    /// Whether a row is provisional or forming.
    pub(super) touches_tail: bool,
}

impl Outcome {
    /// What is said about it. `now` is the exchange's clock, `keep` the kept window in base slots.
    pub(super) fn info(
        &self,
        series: Option<&Series>,
        (spec, window): (&ChartSpec, &Window),
        now: UnixMs,
        keep: i64,
    ) -> ChartInfo {
        let (interval, base) = (spec.interval, window.base);
        let needed = window.needed(spec, now, keep);
        let unknown = Spans::new();
        let covered = series.map_or(&unknown, Series::covered);
        let closed_end = window.end.min(base.slot_of(now));
        let behind = self.last.map(|slot| target_of(interval, slot).end);
        let cut = behind.filter(|behind| {
            let rest = *behind..window.end;
            // Flat candles reach up to the newest candle, wherever that is.
            let until = if spec.fill_previous && !rest.is_empty() {
                i64::MAX
            } else {
                rest.end
            };
            let more = || series.is_some_and(|s| s.first_candle(rest.start..until).is_some());
            let full = window.oldest && self.rows >= spec.limit;
            full && (!covered.covers(*behind..closed_end.max(*behind)) || more())
        });
        let start = if window.oldest {
            window.start
        } else {
            self.begin.unwrap_or(needed.start)
        };
        let end = cut.unwrap_or(closed_end).min(closed_end);
        let depends = if window.oldest {
            needed.start..end.max(needed.end)
        } else {
            start.min(needed.start)..end.max(needed.end)
        };
        let open_of = |slot: i64| base.open_of(slot);
        ChartInfo {
            rows: self.rows,
            first: self.first.map(open_of),
            last: self.last.map(open_of),
            gaps: whole_targets(covered, start..end.max(start), interval)
                .saturating_sub(self.closed),
            complete: covered.covers(depends.clone()),
            depends,
            last_closed: series.and_then(|series| last_closed(series, interval)),
            next_from: cut.map(open_of),
            touches_tail: self.touches_tail,
            version: series.map(Series::version),
        }
    }
}

/// The base slots of the target that holds this one.
pub(super) fn target_of(interval: Interval, slot: i64) -> Range<i64> {
    if interval.is_stored() {
        return slot..slot + 1;
    }
    let base = interval.base();
    let open = interval.open_of(base.open_of(slot));
    base.slot_of(open)..base.slot_of(interval.end_of(open))
}

/// First slot of the target `count` places after the one that begins at this slot.
pub(super) fn target_after(interval: Interval, slot: i64, count: i64) -> i64 {
    if interval.is_stored() {
        return slot.saturating_add(count);
    }
    let base = interval.base();
    base.slot_of(interval.step(base.open_of(slot), count))
}

/// First slot of the first target that begins at this slot or later.
fn first_target(interval: Interval, slot: i64) -> i64 {
    let target = target_of(interval, slot);
    if target.start == slot {
        slot
    } else {
        target.end
    }
}

/// How many targets lie between two of their first slots.
pub(super) fn targets_between(interval: Interval, slots: Range<i64>) -> i64 {
    let base = interval.base();
    let number = |slot: i64| {
        let open = base.open_of(slot);
        match interval.length_ms() {
            Some(length) => open.0.div_euclid(length),
            None => {
                let (year, month, _) = civil(open.0.div_euclid(DAY_MS));
                year * 12 + i64::from(month)
            }
        }
    };
    number(slots.end) - number(slots.start)
}

/// How many targets lie in this range and are covered from their first slot to their last.
fn whole_targets(covered: &Spans, range: Range<i64>, interval: Interval) -> u64 {
    if interval.is_stored() {
        return covered.covered(range);
    }
    let whole = covered.within(range).map(|span| {
        let start = first_target(interval, span.start);
        let end = target_of(interval, span.end).start;
        targets_between(interval, start..end.max(start)) as u64
    });
    whole.sum()
}

/// Open time of the newest target that has a candle and is covered whole.
fn last_closed(series: &Series, interval: Interval) -> Option<UnixMs> {
    if interval.is_stored() {
        return series.last_closed();
    }
    let base = interval.base();
    series.covered().iter().rev().find_map(|span| {
        let start = first_target(interval, span.start);
        let end = target_of(interval, span.end).start;
        // No candle of the tail lies in a covered slot.
        let slot = series.last_candle(start..end)?;
        Some(base.open_of(target_of(interval, slot).start))
    })
}
