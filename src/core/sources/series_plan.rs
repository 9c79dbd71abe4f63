//! The next candle request of one series.
//!
//! [`SeriesPlan`] owns the slots that clients wait for, when the newest candles are read next, and what is
//! requested next without a client.

use crate::core::sources::jobs::CandlePage;
use crate::core::stats::SourceStatus;
use crate::interval::Stored;
use crate::market::{IntervalSet, NEAR, REREAD, Series, refresh_ms};
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// From a candle's end to the first try to read it as closed: exchanges need a moment to write it.
const WRITTEN_AFTER: Duration = Duration::from_millis(500);

/// How much later than other series a series without trades is read. The candles of other markets prove that
/// the exchange's candle service goes on.
const AFTER_OTHERS: Duration = Duration::from_secs(3);

/// First rest of a series whose requests fail. It doubles, up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest rest of one series: an exchange that has delisted a market is asked this often.
const RETRY_MAX: Duration = Duration::from_secs(600);

/// Ranges that may wait for one series. Ranges that touch become one, so only scattered ones count.
const ASKED_PER_SERIES: usize = 8;

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
    /// Everything newer than this slot is fetched, however long the outage was. It is fixed at the first
    /// request: what the file shows ([`Series::reach`]), or else the slot that was current then. `None`:
    /// nothing was requested yet.
    pub reach: Option<i64>,
    /// False as long as `reach` is a slot by a clock in doubt.
    pub is_reach_fixed: bool,
    /// When the first request was made.
    began: Mono,
    failures: u32,
    /// After a failure: not before this.
    rest_until: Mono,
}

impl SeriesPlan {
    /// A plan whose newest candles are due at once.
    pub fn new(now: Mono) -> SeriesPlan {
        SeriesPlan { refresh_at: now, rest_until: now, ..SeriesPlan::default() }
    }

    /// The exchange's time of the first request, as its clock is known now. That request is made now if there
    /// was none.
    pub fn begin(&mut self, status: &SourceStatus, now: Now) -> UnixMs {
        if self.reach.is_none() {
            self.began = now.mono;
        }
        let passed = now.mono.since(self.began) * status.clock_speed();
        status.exchange_time(now) - passed.as_millis() as i64
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
    /// the last request of this series has failed.
    pub fn ask(&mut self, range: Range<i64>, has_room: bool, now: Now) -> bool {
        if self.rest_until > now.mono {
            return false;
        }
        // Ranges that touch become one.
        let touches = self.asked.within(range.start - 1..range.end + 1).next().is_some();
        let has_room = has_room && self.asked.len() < ASKED_PER_SERIES;
        (touches || has_room) && self.asked.insert(range).is_ok()
    }

    /// A page has been applied. `depth`: the oldest slot that the exchange serves, the oldest slot of the
    /// backfill, and the rows of a page. `now` has the exchange's time.
    pub fn applied(&mut self, series: &Series, page: &CandlePage, depth: [i64; 3], now: Now) {
        let exchange = now.unix;
        let current = series.interval().slot_of(exchange);
        self.keep_asked(series, &page.told, now);
        self.unasked = next_unasked(series, depth, exchange, now);
        let closed = page.slots.start..page.slots.end.min(current);
        let is_silent = series.ends_silent(closed);
        let after_others = if is_silent { AFTER_OTHERS } else { Duration::ZERO };
        let next = next_refresh(series.interval(), exchange, now) + after_others;
        let has_newest = series.covered().covers(current - 1..current);
        if page.slots.end > current {
            let was_cut = page.told.end < current && !has_newest;
            self.refresh_at = if was_cut { now.mono } else { next };
        } else if page.slots.end == current && series.covered().covers(page.slots.clone()) {
            self.refresh_at = self.refresh_at.min(next);
        }
    }

    /// A request has failed: the series rests, so that the others have their turn. The rest grows only with
    /// failures of the series' own (`is_own`): failures that all series meet have the back-off of their kind.
    pub fn failed(&mut self, is_own: bool, now: Now) {
        self.failures = (self.failures + u32::from(is_own)).max(1);
        self.asked = IntervalSet::default();
        let rest = RETRY * 2u32.saturating_pow((self.failures - 1).min(16));
        self.rest_until = now.mono + rest.min(RETRY_MAX);
        // Whichever request failed, the newest candles are due after the rest: only an answer ends the
        // failures.
        self.refresh_at = self.refresh_at.min(self.rest_until);
    }

    /// A request has been answered well.
    pub fn answered(&mut self, now: Now) {
        (self.failures, self.rest_until) = (0, now.mono);
    }

    /// Keeps the slots that clients wait for and that are still worth requesting. Drops the slots of `told`.
    fn keep_asked(&mut self, series: &Series, told: &Range<i64>, now: Now) {
        let current = series.interval().slot_of(now.unix);
        self.asked.remove(told.clone());
        for range in std::mem::take(&mut self.asked).iter() {
            // The current slot is still open.
            let closed = range.start..range.end.min(current).max(range.start);
            let left = series.askable(closed, now.mono);
            if let (Some(first), Some(last)) = (left.first(), left.last()) {
                // Refused if there are too many ranges: clients ask for these slots again.
                let _ = self.asked.insert(first.start..last.end);
            }
        }
    }
}

/// What is requested next without a client, and when: the newest part that is missing or due
/// again, or else what will be due first.
fn next_unasked(
    series: &Series,
    [served, oldest, rows]: [i64; 3],
    exchange: UnixMs,
    now: Now,
) -> Option<(Mono, Urgency, Range<i64>)> {
    let current = series.interval().slot_of(exchange);
    let refreshed = refreshed_from(series, current, rows);
    let open = series.open_slots(served, (oldest, refreshed, current), rows, now.mono);
    let due: IntervalSet =
        open.iter().filter(|(_, at)| *at <= now.mono).map(|(part, _)| part.clone()).collect();
    let (part, at) = match due.iter().next_back() {
        Some(part) => (part, now.mono),
        None => {
            let (part, at) = open.iter().min_by_key(|(_, at)| *at)?;
            // If the response cannot have a newer candle, another response must tell that the exchange's
            // candles go on: the response for another market, which is read a moment before.
            let has_newer = series.next_candle(part.end..part.start + rows).is_some();
            let wait = at.since(now.mono).as_millis() as i64;
            let due = Now { mono: *at, unix: now.unix };
            let at = match has_newer {
                true => *at,
                false => next_refresh(Stored::M1, exchange + wait, due) + AFTER_OTHERS,
            };
            (part.clone(), at)
        }
    };
    // The open slots next to it come with the same page.
    let all: IntervalSet = open.into_iter().map(|(part, _)| part).collect();
    let run = all.iter().find(|run| run.contains(&part.start)).unwrap_or(part.clone());
    let start = part.start.min(run.start.max(part.end.saturating_sub(rows)));
    let whole = start..part.end.max(run.end.min(start + rows));
    let mut slots = widened(series, whole, current, rows);
    if part.end - part.start < rows {
        // A page that cannot hold its range leaves out the older end. So the range ends where the part that
        // is due still fits.
        slots.end = slots.end.min(part.start + rows);
    }
    let urgency = match series.oldest_known().is_some_and(|oldest| oldest < slots.start) {
        true => Urgency::Hole,
        false => Urgency::Backfill,
    };
    Some((at, urgency, slots))
}

/// The first slot of the next refresh, which ends with the current slot and has at most `rows` slots.
pub fn refreshed_from(series: &Series, current: i64, rows: i64) -> i64 {
    let last_page = (current + 1).saturating_sub(rows).max(0);
    series.refresh_from().unwrap_or(last_page).clamp(last_page, current.max(last_page))
}

/// Widens a missing part. Behind it, the page ends with a known candle that proves the candles of the part
/// final, or else with the slot of such a candle. Before it, candles that are not final come along, and if
/// the page has room, the other missing slots down to the next known ones.
pub fn widened(series: &Series, part: Range<i64>, current: i64, rows: i64) -> Range<i64> {
    let before = part.start - 1;
    let start = match series.unknown(before..part.start).is_empty() {
        true => series.unsettled_before(before).max(0),
        false => part.start,
    };
    let left = rows - (part.end - start);
    let near = (left - REREAD).max(NEAR.min(rows / 4));
    let proof = part.end + REREAD;
    let end = match series.next_candle(proof..proof + near) {
        Some(next) => next + 1,
        None => part.end + (REREAD + 1).min(left.max(0)),
    };
    // The forming candle, too, tells that the slots before it are empty.
    let end = if part.end == current { end.max(current + 1) } else { end.min(current + 1) };
    let room = (rows - (end - start)).max(0);
    let oldest = start.saturating_sub(room);
    let known = series.covered().within(oldest..start).next_back().filter(|it| it.end < start);
    let known = known.map(|it| series.unsettled_before(it.end - 1));
    known.filter(|known| *known >= oldest).unwrap_or(start)..end
}

/// When the newest candles of a series are read next.
fn next_refresh(interval: Stored, exchange: UnixMs, now: Now) -> Mono {
    let refresh = refresh_ms(interval);
    let next = (exchange.0.div_euclid(refresh) + 1) * refresh;
    now.mono + Duration::from_millis((next - exchange.0).unsigned_abs()) + WRITTEN_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::testing::{key, minute, minutes};

    #[test]
    fn a_series_rests_longer_only_for_failures_of_its_own() {
        let now = Now { mono: Mono(0), unix: UnixMs(0) };
        let mut plan = SeriesPlan::new(now.mono);
        let mut rests = |is_own: [bool; 4]| {
            plan.answered(now);
            is_own.map(|is_own| {
                plan.failed(is_own, now);
                plan.next(now).0.since(now.mono).as_secs()
            })
        };
        assert_eq!(rests([true; 4]), [1, 2, 4, 8]);
        assert_eq!(rests([false; 4]), [1; 4], "an outage of the exchange");
        assert_eq!(rests([true, true, false, true]), [1, 2, 2, 4]);
    }

    #[test]
    fn a_page_that_cannot_hold_all_that_is_open_holds_what_is_due() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(1100..2104, &minutes(2100..2104), minute(2104), None);
        assert!(series.ends_silent(1100..2100) && !series.ends_silent(1100..2101));
        let now = Now { mono: Mono(2104 * 60_000_000 + 1), unix: UnixMs(0) };
        series.note_open(&(1100..2104), now.mono, 2104);
        let next = next_unasked(&series, [0, 1058, 1000], minute(2104), now);
        let (at, _, slots) = next.expect("42 slots were never requested");
        assert_eq!((at, slots), (now.mono, 1058..2058));
    }

    #[test]
    fn what_is_missing_up_to_the_known_candles_before_comes_along_if_there_is_room() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(10..41, &minutes(10..41), minute(900), None);
        assert_eq!(widened(&series, 100..120, 900, 84), 100..123, "38 would stay as it is");
        assert_eq!(widened(&series, 100..120, 900, 85), 38..123);
        // A candle that proves a part is not asked for in place of the part.
        assert_eq!(widened(&series, 1..2, 900, 9), 1..5);
        assert_eq!(widened(&series, 1..2, 900, 10), 1..11);
    }
}
