//! The next candle request of one series.
//!
//! [`SeriesPlan`] owns what clients wait for, when the newest candles are read next, which part of
//! the backfill is missing, unsure or not settled, and the judgement of how many rows a page has.

use crate::interval::Stored;
use crate::market::{IntervalSet, LEAST_PAGE, REREAD, Series, refresh_ms};
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// From a candle's end to the first try to read it as closed: exchanges need a moment to write it.
const WRITTEN_AFTER: Duration = Duration::from_millis(500);

/// Pause before a closed candle that the exchange has not shown yet is requested again, and the
/// first rest of a series whose requests fail; both double, the latter up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest rest of one series: an exchange that has delisted a market is asked this often.
const RETRY_MAX: Duration = Duration::from_secs(600);

/// Ranges that may wait for one series. Ranges that touch become one, so only scattered ones count.
const ASKED_PER_SERIES: usize = 8;

/// After this, what was requested and did not come is requested once more.
const UNAVAILABLE_FOR: Duration = Duration::from_secs(600);

/// Slots that were requested and did not come are not requested for a client again before this has passed.
const UNAVAILABLE_FOR_CLIENTS: Duration = Duration::from_secs(30);

/// Slots that the last response left out are not requested for a client again before this has passed. So a
/// market's empty past is not requested with each look at its chart. An exchange whose pages are empty for a
/// moment is not asked again sooner either.
pub const SILENT_FOR_MS: i64 = 30_000;

/// How many slots behind a missing part are searched for a known candle. If there is one, it is requested
/// together with the part, because everything between two candles of one response is known at once. At most a
/// quarter of a page.
const NEIGHBOUR: i64 = 64;

/// How urgent a page of candles is, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A client waits for it.
    Client,
    /// The newest candles of a followed series.
    Newest,
    /// Missing between known candles: marketd, or the exchange, was away.
    Hole,
    /// The configured depth of history.
    Backfill,
}

/// What came of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResult {
    /// The requested slots.
    pub slots: Range<i64>,
    /// From the slot of its oldest candle to behind that of its newest.
    pub between: Range<i64>,
    /// Its rows.
    pub rows: usize,
    /// True if it brought candles that were not known.
    pub is_new: bool,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct SeriesPlan {
    /// When the newest candles are read next.
    pub refresh_at: Mono,
    /// What clients wait for.
    pub asked: IntervalSet,
    /// The next request without a client: when it is due, how urgent it is, and its slots. These are the
    /// newest part that is missing or due again, or else the part that is due first.
    pub unasked: Option<(Mono, Urgency, Range<i64>)>,
    /// Everything newer than this slot is fetched, however long the outage was ([`Series::reach`]). It is
    /// fixed at the first request. `Some(None)`: nothing was known then. `None`: nothing was requested
    /// yet.
    pub reach: Option<Option<i64>>,
    /// A response that may have been cut: the number of its rows, and a slot next to them. It was cut if that
    /// slot turns out to have a candle.
    suspected_cut: Option<(i64, i64)>,
    /// Slots that were requested and did not come, and when that first and last happened.
    unavailable: IntervalSet,
    unavailable_since: Mono,
    unavailable_last: Mono,
    /// How often in a row the candle that has just closed was not there yet.
    misses: u32,
    failures: u32,
    /// After a failure: not before this.
    rest_until: Mono,
}

impl SeriesPlan {
    /// A plan whose newest candles are due at once.
    pub fn new(now: Mono) -> SeriesPlan {
        SeriesPlan {
            refresh_at: now,
            unavailable_since: now,
            unavailable_last: now,
            rest_until: now,
            ..SeriesPlan::default()
        }
    }

    /// When the next page may be requested, and how urgent that is.
    pub fn next(&self, now: Now) -> (Mono, Urgency) {
        let (at, urgency) = match &self.unasked {
            _ if !self.asked.is_empty() => (Mono::default(), Urgency::Client),
            Some((at, urgency, _)) if *at < self.refresh_at && self.refresh_at > now.mono => {
                (*at, *urgency)
            }
            _ => (self.refresh_at, Urgency::Newest),
        };
        (at.max(self.rest_until), urgency)
    }

    /// Requests a range for a client. `false`: it cannot be taken, because too much waits already or
    /// the exchange has just refused this series.
    pub fn ask(&mut self, range: Range<i64>, has_room: bool, now: Now) -> bool {
        let was_unavailable = now.mono.since(self.unavailable_last) < UNAVAILABLE_FOR_CLIENTS
            && self.unavailable.covers(range.clone());
        if self.rest_until > now.mono || was_unavailable {
            return false;
        }
        // Ranges that touch become one.
        let touches = self.asked.within(range.start - 1..range.end + 1).next().is_some();
        let has_room = has_room && self.asked.len() < ASKED_PER_SERIES;
        (touches || has_room) && self.asked.insert(range).is_ok()
    }

    /// A page has been applied. The backfill goes down to `oldest`, in pages of `rows`. Returns the rows of
    /// a page if it has turned out that fewer come than assumed.
    pub fn applied(
        &mut self,
        series: &Series,
        page: &PageResult,
        (oldest, rows): (i64, i64),
        exchange: UnixMs,
        now: Now,
    ) -> Option<i64> {
        let (slots, between) = (&page.slots, &page.between);
        let current = series.interval().slot_of(exchange);
        // What was requested is not requested again at once, even if it is unknown: it may have been
        // dropped, for want of room or for its age. A response whose candles are new and have stayed is
        // an exception: the slots outside of them are requested again at once. This ends, because each
        // such response leaves less to request.
        let is_new = page.is_new && series.unknown(until(between, current)).is_empty();
        let told = if is_new { between } else { slots };
        self.keep_asked(series, told, exchange);
        self.note_unavailable(series, told, exchange, now);
        self.unasked = self.next_unasked(series, (oldest, rows), exchange, now);
        let last = current - 1;
        let is_told = series.covered().covers(last..current) || series.is_silent(last);
        self.misses = match is_told {
            true => 0,
            false => self.misses.saturating_add(1),
        };
        let next = next_refresh(series.interval(), self.misses, exchange, now);
        if slots.end > current {
            let was_cut = is_new && !is_told && page.rows >= LEAST_PAGE;
            self.refresh_at = if was_cut { now.mono } else { next };
        } else if slots.end == current && series.covered().covers(slots.clone()) {
            self.refresh_at = self.refresh_at.min(next);
        }
        self.learn_rows(series, page, rows)
    }

    /// Returns the rows of a page if this response shows that an earlier one was cut. Remembers whether this
    /// one may have been cut. `most`: the rows that a page was assumed to have.
    fn learn_rows(&mut self, series: &Series, page: &PageResult, most: i64) -> Option<i64> {
        let (slots, between, rows) = (&page.slots, &page.between, page.rows as i64);
        let is_judged = |(_, slot): &mut (i64, i64)| between.contains(slot);
        let suspected = self.suspected_cut.take_if(is_judged);
        let (before, behind) = (between.start - slots.start, slots.end - between.end);
        let is_full = slots.end - slots.start >= most;
        let is_dense = between.end - between.start == rows && page.rows >= LEAST_PAGE;
        if is_full && is_dense && before.max(behind) >= LEAST_PAGE as i64 {
            let slot = match before > behind {
                true => between.start - 1,
                false => between.end,
            };
            self.suspected_cut = Some((rows, slot));
        }
        let (rows, slot) = suspected?;
        series.next_candle(slot..slot + 1).map(|_| rows)
    }

    /// A request has failed: the series rests, so that the others have their turn.
    pub fn failed(&mut self, now: Now) {
        self.failures += 1;
        self.asked = IntervalSet::default();
        self.rest_until = now.mono + doubled(self.failures).min(RETRY_MAX);
    }

    /// A request has been answered well.
    pub fn answered(&mut self, now: Now) {
        (self.failures, self.rest_until) = (0, now.mono);
    }

    /// True if its last request failed.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Keeps what clients wait for and is still worth requesting, without what was just told.
    fn keep_asked(&mut self, series: &Series, told: &Range<i64>, exchange: UnixMs) {
        let current = series.interval().slot_of(exchange);
        self.asked.remove(told.clone());
        for range in std::mem::take(&mut self.asked).iter() {
            let left = series.askable(until(&range, current), exchange, SILENT_FOR_MS);
            if let (Some(first), Some(last)) = (left.first(), left.last()) {
                // Refused if there are too many ranges: clients ask for these slots again.
                let _ = self.asked.insert(first.start..last.end);
            }
        }
    }

    /// Notes what was requested and did not come. What a response has left out waits for its own time.
    fn note_unavailable(&mut self, series: &Series, told: &Range<i64>, exchange: UnixMs, now: Now) {
        if now.mono.since(self.unavailable_since) > UNAVAILABLE_FOR {
            self.unavailable = IntervalSet::default();
            self.unavailable_since = now.mono;
        }
        let current = series.interval().slot_of(exchange);
        let unknown = series.askable(until(told, current), exchange, i64::MAX);
        let unsettled = series.unsettled(until(told, current - REREAD));
        let silent = series.silent(told.clone()).into_iter();
        let due = silent.filter_map(|(part, at)| (at <= exchange).then_some(part));
        for slots in unknown.into_iter().chain(unsettled).chain(due) {
            self.unavailable_last = now.mono;
            // Refused if there are too many ranges: these slots are requested again, which costs a page.
            let _ = self.unavailable.insert(slots);
        }
    }

    /// What is requested next without a client, and when: the newest part that is missing or due
    /// again, or else what will be due first.
    fn next_unasked(
        &self,
        series: &Series,
        (oldest, rows): (i64, i64),
        exchange: UnixMs,
        now: Now,
    ) -> Option<(Mono, Urgency, Range<i64>)> {
        let current = series.interval().slot_of(exchange);
        let unknown = series.askable(oldest..current.max(oldest), exchange, i64::MAX);
        // The next refresh reads the slots from this one on.
        let refreshed = series.newest_known().map_or(current, |last| last + 1) - REREAD;
        let refreshed = refreshed.min(current).max(0);
        let unsettled = series.unsettled(0..refreshed.min(current - REREAD).max(0));
        let silent = series.silent(0..refreshed).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = silent.partition(|(_, at)| *at <= exchange);
        let due = due.into_iter().map(|(part, _)| part);
        let mut todo = IntervalSet::default();
        for part in unknown.into_iter().chain(unsettled).chain(due) {
            for part in self.unavailable.missing(part) {
                // Refused if there are too many ranges: these slots are requested when others are done.
                let _ = todo.insert(part);
            }
        }
        let (part, at) = match todo.iter().next_back() {
            Some(part) => (part, exchange),
            None => later.into_iter().min_by_key(|(_, at)| *at)?,
        };
        let wait = Duration::from_millis((at - exchange).unsigned_abs());
        let slots = widened(series, part, current, rows);
        let urgency = match series.oldest_known().is_some_and(|oldest| oldest < slots.start) {
            true => Urgency::Hole,
            false => Urgency::Backfill,
        };
        Some((now.mono + wait, urgency, slots))
    }
}

/// A missing part, together with the candles next to it if they are known.
pub fn widened(series: &Series, part: Range<i64>, current: i64, rows: i64) -> Range<i64> {
    let before = part.start - 1;
    let start = match series.covered().covers(before..part.start) {
        true => before.max(0),
        false => part.start,
    };
    let near = NEIGHBOUR.min(rows / 4);
    let next = series.next_candle(part.end..part.end + near);
    let end = next.map_or(part.end, |slot| slot + 1);
    // The forming candle, too, tells that the slots before it are empty.
    match part.end == current {
        true => start..end.max(current + 1),
        false => start..end,
    }
}

/// A range without the current slot, which is still open.
fn until(range: &Range<i64>, current: i64) -> Range<i64> {
    range.start..range.end.min(current).max(range.start)
}

/// When the newest candles of a series are read again, after the last closed one was missing so
/// often in a row.
fn next_refresh(interval: Stored, misses: u32, exchange: UnixMs, now: Now) -> Mono {
    let refresh = refresh_ms(interval);
    let next = (exchange.0.div_euclid(refresh) + 1) * refresh;
    let next = Duration::from_millis((next - exchange.0).unsigned_abs()) + WRITTEN_AFTER;
    // If the candle that has just closed is not there yet: soon, and then less and less often.
    let retry = match misses {
        0 => next,
        misses => doubled(misses),
    };
    now.mono + retry.min(next)
}

/// [`RETRY`], doubled with each time after the first.
fn doubled(times: u32) -> Duration {
    RETRY * 2u32.saturating_pow((times - 1).min(16))
}
