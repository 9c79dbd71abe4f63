//! Ingest: applies a response to a series.
//!
//! Owns the rules by which a response becomes coverage, stored rows and forming candles. One bad candle never
//! spoils the response. A slot that has not ended never counts as empty.

use super::chunk::{
    CHUNK_SLOTS, Draft, FormingCandle, chunk_of, chunks_of, place_of, places_of, seconds,
};
use super::interval_set::IntervalSet;
use super::report::{
    CandleResponse, Evidence, Found, IngestCounts, Reported, found_in, is_sound, left_out,
};
use super::series::Series;
use super::silence::{REREAD, Word};
use crate::history::Changes;
use crate::record::Candle;
use crate::time::{Mono, UnixMs};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl Series {
    /// Applies a response, or a slice of one, about the slots `asked`. Candles come in any order.
    /// `closed_before` is the exchange's clock at the time of the request: candles that had ended by then are
    /// closed.
    ///
    /// A slot that has ended becomes covered if it has a sound candle, or if it is proven empty
    /// (`silence.rs`). Any other slot keeps its state. An unsound candle changes nothing in its slot. A
    /// candle that has not ended becomes a forming candle.
    ///
    /// `changes` collects the changes for the archive.
    pub fn ingest(
        &mut self,
        asked: Range<i64>,
        candles: &[Reported],
        evidence: &Evidence,
        closed_before: UnixMs,
        mut changes: Option<&mut Changes>,
    ) -> IngestCounts {
        let mut written = IngestCounts::default();
        let present = self.interval().slot_of(closed_before);
        let asked = asked.start.max(0)..asked.end;
        let (found, unsound, open_from) = self.sift(&asked, candles, present, &mut written);
        let closed = asked.start..asked.end.min(open_from).max(asked.start);
        if let (Evidence::Exchange(response), 0) = (evidence, written.rejected) {
            self.note_first(&closed, response);
        }
        // The first slot, and the first candle, that may still be revised.
        let recent = present - REREAD;
        let revisable = match evidence {
            Evidence::History => None,
            Evidence::Proven => Some((recent, i64::MAX)),
            Evidence::Revisable => Some((i64::MIN, i64::MIN)),
            Evidence::Exchange(response) => Some((recent, response.young().start)),
        };
        for slots in self.decided(closed.clone(), &found, &unsound, evidence).iter() {
            let here = found_in(&found, &slots);
            if let Some(revisable) = revisable {
                self.note_settled(&slots, here, revisable);
            }
            let changes = changes.as_deref_mut();
            self.take(&slots, here, seconds(closed_before), changes, &mut written);
        }
        // Candles of the file never become forming ones: if one has not ended, a clock was wrong.
        let open = open_from..if *evidence == Evidence::History { open_from } else { i64::MAX };
        for open in found_in(&found, &open) {
            self.set_open(open.slot, open.candle);
        }
        self.trim_forming();
        self.advance(present);
        self.check();
        written
    }

    /// Sorts the sound candles by slot, one for each slot. Also returns the slots for which only an unsound
    /// candle is reported, and the first slot that has not ended.
    fn sift<'a>(
        &self,
        asked: &Range<i64>,
        candles: &'a [Reported],
        present: i64,
        written: &mut IngestCounts,
    ) -> (Vec<Found<'a>>, IntervalSet, i64) {
        let mut open_from = present;
        let (mut found, mut unsound) = (Vec::with_capacity(candles.len()), Vec::new());
        for Reported { candle, is_forming } in candles {
            let slot = self.interval().slot_of(candle.open_time);
            let asked_for = asked.contains(&slot);
            // One slot ahead is allowed: the exchange's clock may have passed a boundary that ours
            // has not.
            let is_near = slot <= present.saturating_add(1);
            if asked_for && is_near && is_sound(self.interval(), candle) {
                // The flag counts only where the clocks may disagree. Further back it is ignored,
                // because a candle that never closes would be requested forever.
                if *is_forming && slot >= present - 1 {
                    open_from = open_from.min(slot);
                }
                found.push(Found { slot, candle });
            } else {
                written.rejected += 1;
                unsound.extend(asked_for.then_some(slot..slot + 1));
            }
        }
        found.sort_by_key(|found| found.slot);
        found.dedup_by(|later, kept| {
            let same = later.slot == kept.slot;
            if same {
                kept.candle = later.candle;
            }
            same
        });
        let mut unsound = IntervalSet::from_iter(unsound);
        found.iter().for_each(|it| _ = unsound.remove(it.slot..it.slot + 1));
        (found, unsound, open_from)
    }

    /// Notes that a response begins with the oldest known candle, if the response could have held older
    /// candles.
    fn note_first(&mut self, closed: &Range<i64>, response: &CandleResponse) {
        let first = response.between.start;
        let is_known = || self.next_candle(i64::MIN..first + 1) == Some(first);
        if response.is_whole && closed.start < first && closed.contains(&first) && is_known() {
            let before = self.told_before.take().filter(|told| told.end == first);
            let start = before.map_or(closed.start, |told| told.start.min(closed.start));
            self.told_before = Some(start..first);
        }
    }

    /// Returns the closed slots that take the reported state. For a slot that the response leaves out, it
    /// notes what the response says. Such a slot is returned only when it is proven empty.
    fn decided(
        &mut self,
        closed: Range<i64>,
        found: &[Found<'_>],
        unsound: &IntervalSet,
        evidence: &Evidence,
    ) -> IntervalSet {
        let judged = match evidence {
            Evidence::Exchange(response) if !self.is_whole(response, &closed) => {
                clipped(&response.between, &closed)
            }
            _ => closed,
        };
        let mut decided: IntervalSet = match evidence {
            Evidence::History => self.hidden(judged.clone()).into_iter().collect(),
            _ => [judged.clone()].into_iter().collect(),
        };
        unsound.iter().for_each(|slots| _ = decided.remove(slots));
        let young = match evidence {
            Evidence::History | Evidence::Proven => return decided,
            Evidence::Revisable => judged.clone(),
            Evidence::Exchange(response) => clipped(&response.young(), &judged),
        };
        // Settled slots are skipped where the response cannot improve them: where only the file has the
        // candle, and where the response's own candle is not settled.
        let young = self.row_slots(young).map(|slot| slot..slot + 1);
        for part in self.hidden(judged.clone()).into_iter().chain(young) {
            let settled = self.revisable(&part).missing(part);
            settled.into_iter().for_each(|settled| _ = decided.remove(settled));
        }
        let Evidence::Exchange(response) = evidence else {
            return decided;
        };
        // One response alone removes no candle from memory or from the file. Nor does it prove a slot empty
        // if quotes show a trade there, or if the slot is outside of its candles.
        let between = clipped(&response.between, &judged);
        let mut doubtful = self.stored(judged.clone());
        doubtful.extend(self.traded.within(judged.clone()));
        doubtful.extend(self.covered.missing(judged.start..between.start));
        doubtful.extend(self.covered.missing(between.end..judged.end));
        let mut doubtful = IntervalSet::from_iter(doubtful);
        decided.missing(judged).into_iter().for_each(|slots| _ = doubtful.remove(slots));
        for part in doubtful.iter().flat_map(|part| left_out(part, found)) {
            decided.remove(part.clone());
            for (part, word) in self.words(part, response) {
                for proven in self.silences.note(part, response.at, word) {
                    // `insert` refuses a range if there are too many. Then these slots are requested again.
                    let _ = decided.insert(proven);
                }
            }
        }
        decided
    }

    /// True if a response tells of all these slots. It does not if it leaves out a candle that is newer than
    /// its own, in memory or in the file.
    fn is_whole(&self, response: &CandleResponse, closed: &Range<i64>) -> bool {
        let newer = clipped(&response.between, closed).end..closed.end;
        let stored = self.newest_stored.filter(|slot| newer.contains(slot));
        response.is_whole
            && self.row_slots(newer).next().is_none()
            && stored.is_none_or(|slot| self.hidden(slot..slot + 1).is_empty())
    }

    /// What a response that leaves out these slots says about each part of them.
    fn words(&self, slots: Range<i64>, response: &CandleResponse) -> Vec<(Range<i64>, Word)> {
        let Range { start, end } = clipped(&response.between, &slots);
        let alive = response.alive.clamp(end, slots.end);
        // A candle of another market does not prove a slot empty if the file may have a candle there.
        let hidden = self.hidden(end..alive).into_iter();
        let against: IntervalSet = self.traded.within(slots.clone()).chain(hidden).collect();
        let mut words = vec![(alive..slots.end, Word::Nothing)];
        for (part, disputed) in [
            (slots.start..start, Word::Nothing),
            (start..end, Word::Disputed),
            (end..alive, Word::Nothing),
        ] {
            words.extend(against.missing(part.clone()).into_iter().map(|it| (it, Word::Empty)));
            words.extend(against.within(part).map(|it| (it, disputed)));
        }
        words
    }

    /// The parts of these slots that have a candle in memory, or are archived and not in memory.
    fn stored(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let rows = self.row_slots(slots.clone()).map(|slot| slot..slot + 1);
        rows.chain(self.hidden(slots)).collect()
    }

    /// Notes which of the slots that were requested at `at` are still unknown, or may be revised.
    pub fn note_open(&mut self, slots: &Range<i64>, at: Mono, present: i64) {
        let closed = slots.start..slots.end.min(present).max(slots.start);
        let old = slots.start..slots.end.min(present - REREAD).max(slots.start);
        let unsettled: Vec<_> = self.unsettled.within(old).collect();
        let silent: Vec<_> = self.silences.within(&closed).map(|(part, _)| part).collect();
        for part in self.unknown(closed).into_iter().chain(unsettled).chain(silent) {
            self.silences.note_open(part, at);
        }
    }

    /// Notes which of these slots may still be revised: all slots from `recent` on, and the candles from
    /// `young` on. Settled slots stay settled.
    fn note_settled(
        &mut self,
        slots: &Range<i64>,
        found: &[Found<'_>],
        (recent, young): (i64, i64),
    ) {
        let candles = found.iter().map(|it| it.slot..it.slot + 1);
        let recent = recent.clamp(slots.start, slots.end)..slots.end;
        let young: IntervalSet = candles.filter(|it| it.start >= young).chain([recent]).collect();
        for settled in young.missing(slots.clone()) {
            self.unsettled.remove(settled.clone());
            self.silences.remove(&settled);
        }
        for part in young.iter() {
            self.silences.doubt(&part);
            for unknown in self.unknown(part) {
                // It fails only if there are more ranges than outages of an exchange cause.
                let _ = self.unsettled.insert(unknown);
            }
        }
    }

    /// Stores these slots as reported.
    fn take(
        &mut self,
        slots: &Range<i64>,
        found: &[Found<'_>],
        second: u32,
        changes: Option<&mut Changes>,
        written: &mut IngestCounts,
    ) {
        let before = written.changes();
        if let Some(changes) = changes {
            for part in self.unlike_file(slots, found).iter() {
                // Archived slots that are not in memory may hold candles that the exchange no longer has.
                self.hidden(part.clone()).into_iter().for_each(|part| changes.forget(part));
                let found = found_in(found, &part);
                let told = found.iter().map(|found| (found.slot, Some(found.candle.clone())));
                let gone = left_out(part.clone(), found).into_iter();
                let gone = gone.flat_map(|part| self.row_slots(part)).map(|slot| (slot, None));
                changes.answered(part.clone(), told.chain(gone));
                self.archived.remove(part);
            }
        }
        // `cover` refuses slots that would become the oldest range of too many.
        let Some(changed) = self.cover(slots, written) else {
            return;
        };
        self.store(slots, found, second, written);
        self.traded.remove(slots.clone());
        if changed || written.changes() > before {
            self.version += 1;
        }
    }

    /// The parts of these slots that the file may not hold as reported.
    fn unlike_file(&self, slots: &Range<i64>, found: &[Found<'_>]) -> IntervalSet {
        let archived = self.archived.within(slots.clone());
        let held: IntervalSet = archived.flat_map(|part| self.covered.within(part)).collect();
        let mut unlike = held.missing(slots.clone());
        for part in held.iter() {
            let stored: BTreeMap<i64, Candle> = self.candles(&part).into_iter().collect();
            let found = found_in(found, &part).iter().map(|it| (it.slot, it.candle));
            let found: BTreeMap<i64, &Candle> = found.collect();
            let changed = stored.keys().chain(found.keys());
            let changed = changed.filter(|slot| stored.get(slot) != found.get(slot).copied());
            unlike.extend(changed.map(|slot| *slot..slot + 1));
        }
        unlike.into_iter().collect()
    }

    /// Covers these slots. Returns true if the coverage changed. While there are too many ranges, the oldest
    /// range is forgotten. Returns `None` if these slots are older than all ranges: newer slots are worth
    /// more.
    pub(super) fn cover(
        &mut self,
        closed: &Range<i64>,
        written: &mut IngestCounts,
    ) -> Option<bool> {
        loop {
            if let Ok(changed) = self.covered.insert(closed.clone()) {
                return Some(changed);
            }
            let oldest = self.covered.iter().next().filter(|it| it.end <= closed.start)?;
            written.evicted += self.forget_before(oldest.end);
        }
    }

    /// Replaces the rows of these slots by the found candles.
    pub(super) fn store(
        &mut self,
        closed: &Range<i64>,
        found: &[Found<'_>],
        second: u32,
        written: &mut IngestCounts,
    ) {
        // A response may cover a million slots and have three candles. So only chunks that have
        // candles, or get some, are visited.
        let stored = self.chunks.range(chunks_of(closed)).map(|(id, _)| *id);
        let ids: BTreeSet<i64> = stored.chain(found.iter().map(|it| chunk_of(it.slot))).collect();
        for id in ids {
            let here = found_in(found, &(id * CHUNK_SLOTS..(id + 1) * CHUNK_SLOTS));
            self.store_chunk(id, places_of(id, closed), here, second, written);
        }
    }

    fn store_chunk(
        &mut self,
        id: i64,
        places: Range<u32>,
        found: &[Found<'_>],
        second: u32,
        written: &mut IngestCounts,
    ) {
        let old = self.chunks.get(&id).cloned().unwrap_or_default();
        let before = *written;
        let mut draft = Draft::default();
        draft.copy(&old, 0..places.start);
        for found in found {
            let place = place_of(found.slot);
            let row = draft.push(place, found.candle);
            match old.row(place) {
                None => written.written += 1,
                Some(old) if old == row => written.unchanged += 1,
                Some(_) => written.updated += 1,
            }
        }
        let confirmed = written.updated - before.updated + written.unchanged - before.unchanged;
        written.removed += old.count_in(&places) - confirmed;
        draft.copy(&old, places.end..CHUNK_SLOTS as u32);
        if written.changes() > before.changes() {
            // A new chunk counts as read now.
            let read = old.read().max(second);
            self.set_chunk(id, draft.build(read));
        }
    }

    /// Sets a forming candle, in place of the one that quotes made.
    pub(super) fn set_open(&mut self, slot: i64, candle: &Candle) {
        if self.forming(slot) == Some(candle) {
            return;
        }
        self.forming.retain(|forming| forming.slot != slot);
        let at = self.forming.partition_point(|forming| forming.slot < slot);
        let candle = candle.clone();
        self.forming.insert(at, FormingCandle { slot, candle, row: OnceCell::new() });
        self.version += 1;
    }
}

/// The part of a range that lies in these slots. If no part does, an empty range at their edge.
fn clipped(range: &Range<i64>, slots: &Range<i64>) -> Range<i64> {
    range.start.clamp(slots.start, slots.end)..range.end.clamp(slots.start, slots.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::{Decimal, MAX_DIGITS};
    use crate::interval::{Interval, Stored};
    use crate::market::ChartSpec;
    use crate::market::interval_set::MAX_INTERVALS;
    use crate::market::report::AllRows;
    use crate::market::testing::{
        all_of, candle, chart, covered, key, known, minute, minutes, slots,
    };

    fn series() -> Series {
        Series::new(key(Stored::M1), 0)
    }

    fn stored(series: &Series) -> Vec<i64> {
        slots(series, &all_of(Interval::M1), minute(5000))
    }

    fn check_rejected(why: &str, candle: Candle) {
        let mut series = series();
        series.ingest_whole(10..12, &minutes([10, 11]), minute(20), None);
        let reported = Reported { candle, is_forming: false };
        let written = series.ingest_whole(10..12, &[reported], minute(20), None);
        assert_eq!(written.rejected, 1, "{why}");
        assert_eq!((written.written, written.updated), (0, 0), "{why}");
    }

    #[test]
    fn a_candle_that_no_market_can_have_is_rejected() {
        check_rejected("not aligned", candle(600_001, [5, 9, 2, 7], 1));
        check_rejected("not asked for, old", candle(9 * 60_000, [5, 9, 2, 7], 1));
        check_rejected("not asked for, new", candle(12 * 60_000, [5, 9, 2, 7], 1));
        check_rejected("open above high", candle(600_000, [10, 9, 2, 7], 1));
        check_rejected("close above high", candle(600_000, [5, 9, 2, 10], 1));
        check_rejected("open below low", candle(600_000, [1, 9, 2, 7], 1));
        check_rejected("close below low", candle(600_000, [5, 9, 2, 1], 1));
        check_rejected("high below low", candle(600_000, [5, 2, 9, 5], 1));
        check_rejected("a price of zero", candle(600_000, [5, 9, 0, 7], 1));
        check_rejected("a negative price", candle(600_000, [5, 9, -2, 7], 1));
        check_rejected("a negative volume", candle(600_000, [5, 9, 2, 7], -1));
        check_rejected("the far future", candle(i64::MAX, [5, 9, 2, 7], 1));
        check_rejected("the far past", candle(i64::MIN, [5, 9, 2, 7], 1));
    }

    #[test]
    fn a_candle_that_is_not_settled_is_requested_again_after_an_unsound_one() {
        let mut series = series();
        series.ingest_whole(10..20, &minutes(10..20), minute(20), None);
        let mut unsound = minutes(18..23);
        unsound[0].candle.low = Decimal::ZERO;
        series.ingest_whole(18..23, &unsound, minute(23), None);
        let open = |series: &Series| series.open_slots(0, (10, 21, 23), 100, Mono(0));
        assert_eq!(open(&series), [(17..19, Mono(0))]);
        series.ingest_whole(17..23, &minutes(17..23), minute(23), None);
        assert_eq!(open(&series), []);
    }

    #[test]
    fn rows_outside_of_the_requested_slots_tell_how_far_a_response_reaches() {
        let check = |rows: Range<i64>, expected: &[(i64, i64)]| {
            let (mut series, asked) = (series(), 99..104);
            series.ingest_whole(99..100, &minutes([99]), minute(100), None);
            let inside = minutes(rows.clone().filter(|slot| asked.contains(slot)));
            let mut all = AllRows::of(Stored::M1, &minutes(rows.clone()));
            all.most = 720;
            for now in [5000, 5002] {
                let mut response =
                    CandleResponse::of(&asked, &inside, &all, Mono(now * 60_000_000));
                response.alive = 4999;
                let evidence = Evidence::Exchange(response);
                series.ingest(asked.clone(), &inside, &evidence, minute(5002), None);
            }
            assert_eq!(covered(&series), expected, "{rows:?}");
        };
        check(4281..5001, &[(99, 100)]);
        check(101..821, &[(99, 100), (101, 104)]);
        check(101..102, &[(99, 104)]);
        check(0..720, &[(99, 104)]);
        // One response proves what lies between its rows.
        let mut series = series();
        let all = AllRows::of(Stored::M1, &minutes([30, 50]));
        let evidence =
            Evidence::Exchange(CandleResponse::of(&(35..60), &minutes([50]), &all, Mono(0)));
        series.ingest(35..60, &minutes([50]), &evidence, minute(900), None);
        assert_eq!(covered(&series), [(35, 51)]);
    }

    #[test]
    fn what_the_exchange_no_longer_serves_is_not_requested_again() {
        let mut series = series();
        let mut rows = minutes(40..61);
        rows[10].candle.low = Decimal::ZERO;
        series.ingest_whole(40..61, &rows, minute(61), None);
        series.note_open(&(40..61), Mono(0), 61);
        let open = |served| series.open_slots(served, (5000, 4998, 5000), 720, Mono(1 << 50)).len();
        assert_eq!((open(50), open(51)), (1, 0));
    }

    #[test]
    fn an_unsound_candle_is_no_word_about_its_slot() {
        let mut series = series();
        series.ingest_whole(10..13, &minutes(10..13), minute(13), None);
        let mut candles = minutes([10, 11]);
        candles[0].candle.low = Decimal::ZERO;
        let written = series.ingest_whole(10..13, &candles, minute(13), None);
        let expected = IngestCounts { unchanged: 1, rejected: 1, ..IngestCounts::default() };
        assert_eq!(written, expected);
        assert_eq!(stored(&series), [10, 11, 12]);
    }

    #[test]
    fn a_chart_is_settled_once_each_of_its_candles_was_read_some_time_after_its_end() {
        let mut series = series();
        let is_settled = |series: &Series, last: i64| {
            let (from, to) = (Some(minute(0)), Some(minute(last)));
            let spec = ChartSpec { from, to, ..all_of(Interval::M1) };
            chart(series, &spec, minute(40)).1.settled
        };
        series.ingest_whole(0..10, &minutes(0..10), minute(10), None);
        // Newer candles say nothing of those that were read a moment after their end.
        series.ingest_whole(20..30, &minutes(20..30), minute(30), None);
        assert!(is_settled(&series, 8 - REREAD));
        assert!(!is_settled(&series, 9));
        series.ingest_whole(7..25, &minutes((7..10).chain(20..25)), minute(31), None);
        assert!(is_settled(&series, 9));
    }

    #[test]
    fn what_is_left_out_between_two_candles_is_empty_and_elsewhere_takes_two_responses() {
        let mut series = series();
        series.ingest_whole(10..30, &minutes([12, 15]), minute(40), None);
        assert_eq!(covered(&series), [(12, 16)]);
        assert_eq!(series.gaps(), 2);
        series.ingest_whole(10..30, &minutes([12, 15]), minute(40) + 50_000, None);
        assert_eq!(covered(&series), [(12, 16)], "not yet a minute later");
        series.ingest_whole(10..30, &minutes([12, 15]), minute(41), None);
        assert_eq!(covered(&series), [(10, 16)], "its candles may stand still behind 15");
        // A stored candle stays as long, also between two others.
        let written = series.ingest_whole(10..30, &minutes([15]), minute(50), None);
        assert_eq!((written.removed, series.count()), (0, 2));
        let written = series.ingest_whole(10..30, &minutes([15]), minute(51), None);
        assert_eq!((written.removed, series.count()), (1, 1));
    }

    #[test]
    fn a_response_that_begins_with_the_first_candle_tells_that_none_is_before_it() {
        let mut series = series();
        let told = |series: &Series| series.told_before_first();
        series.ingest_whole(20..50, &minutes([30, 40]), minute(60), None);
        assert_eq!(told(&series), None, "this candle was not known");
        assert_eq!(series.told_first(), Some(30));
        assert_eq!(series.told_once_before_first(&(0..90)), Some(20..30));
        series.ingest_whole(10..31, &minutes([30]), minute(60), None);
        assert_eq!(told(&series), Some(10..30));
        assert_eq!(series.told_once_before_first(&(0..90)), None);
        series.ingest_whole(0..31, &minutes([30]), minute(60), None);
        series.ingest_whole(25..31, &minutes([30]), minute(60), None);
        assert_eq!(told(&series), Some(0..30), "the widest one counts");
        let mut unsound = minutes([5, 30]);
        unsound[0].candle.low = Decimal::ZERO;
        for response in [&minutes(30..40)[..], &minutes([40]), &unsound, &[]] {
            let mut series = series.clone();
            series.told_before = None;
            series.ingest_whole(0..45, response, minute(60), None);
            assert_eq!(told(&series), None, "cut, begun later, with an unsound row, empty");
        }
        series.note_trade(minute(12) + 3000, minute(12) + 3001);
        assert_eq!(told(&series), None, "quotes tell of a trade");
        series.traded = IntervalSet::default();
        series.ingest_whole(5..13, &minutes([8, 12]), minute(60), None);
        assert_eq!(told(&series), None, "an older one has come");
    }

    #[test]
    fn a_response_that_may_have_been_cut_says_nothing_of_what_lies_outside() {
        let mut series = series();
        for at in [100, 101, 102] {
            series.ingest_whole(10..90, &minutes(40..60), minute(at), None);
            assert_eq!(covered(&series), [(40, 60)]);
            assert_eq!(series.silences.within(&(0..100)).count(), 0);
        }
        // A narrower one that brings no more than is known does.
        series.ingest_whole(10..41, &minutes([40]), minute(103), None);
        assert_eq!(series.silences.within(&(39..40)).count(), 1);
        series.ingest_whole(10..41, &minutes([40]), minute(104), None);
        assert_eq!(covered(&series), [(10, 60)]);
    }

    /// Applies a response about these slots while another market has a candle in `alive`.
    fn response(series: &mut Series, asked: Range<i64>, rows: &[i64], alive: i64, now: i64) {
        let candles = minutes(rows.iter().copied());
        let at = Mono(now as u64 * 60_000_000);
        let mut response =
            CandleResponse::of(&asked, &candles, &AllRows::of(Stored::M1, &candles), at);
        response.alive = response.alive.max(alive);
        let evidence = Evidence::Exchange(response);
        series.ingest(asked, &candles, &evidence, minute(now), None);
    }

    #[test]
    fn behind_the_newest_candle_two_responses_prove_up_to_where_another_market_has_one() {
        let mut series = series();
        for now in [40, 41, 42] {
            response(&mut series, 10..30, &[10], 10, now);
            assert_eq!(covered(&series), [(10, 11)]);
        }
        response(&mut series, 10..30, &[10], 25, 43);
        response(&mut series, 10..30, &[10], 20, 44);
        assert_eq!(covered(&series), [(10, 20)]);
        response(&mut series, 10..30, &[], 29, 45);
        assert_eq!(covered(&series), [(10, 20)], "the candle is left out");
        response(&mut series, 11..30, &[], 29, 45);
        assert_eq!(covered(&series), [(10, 25)], "an empty response says as much");
    }

    #[test]
    fn a_response_that_leaves_out_the_newest_candle_of_the_file_proves_nothing_behind_it() {
        for (asked, newest, evicted, expected) in [
            (10..30, Some(13), 0..0, vec![]),
            (14..30, Some(13), 0..0, vec![(14, 29)]),
            // The file knows that its last slots are empty.
            (10..30, Some(9), 0..0, vec![(14, 29)]),
            (10..30, None, 0..0, vec![(14, 29)]),
            (10..30, Some(9), 10..14, vec![]),
            // The file lacks what is evicted.
            (10..30, Some(13), 16..20, vec![]),
        ] {
            let mut series = series();
            let _ = series.archived.insert(5..14);
            series.unsettle_ends(newest);
            let rows: Vec<i64> = evicted.clone().collect();
            response(&mut series, evicted.clone(), &rows, evicted.end, evicted.end);
            series.forget(evicted);
            for now in [100, 101] {
                response(&mut series, asked.clone(), &[], 29, now);
            }
            assert_eq!(covered(&series), expected, "{asked:?} {newest:?}");
        }
    }

    #[test]
    fn a_stored_candle_is_removed_by_what_its_own_market_answers_alone() {
        let mut series = series();
        response(&mut series, 10..14, &[10, 11, 12, 13], 14, 14);
        let _ = series.archived.insert(5..10);
        for now in 30..200 {
            response(&mut series, 5..30, &[], 30, now);
        }
        assert_eq!((covered(&series), stored(&series)), (vec![(10, 14)], vec![10, 11, 12, 13]));
        for now in [200, 201] {
            response(&mut series, 5..30, &[10, 11, 12], 30, now);
            assert_eq!(stored(&series), [10, 11, 12, 13], "it is the newest");
        }
        for now in [202, 203] {
            response(&mut series, 5..30, &[10, 11, 12, 20], 30, now);
        }
        assert_eq!((covered(&series), stored(&series)), (vec![(10, 30)], vec![10, 11, 12, 20]));
    }

    #[test]
    fn archived_slots_change_only_where_they_are_not_settled() {
        let mut series = series();
        let _ = series.archived.insert(10..60);
        let _ = series.unsettled.insert(30..33);
        response(&mut series, 20..40, &(20..40).collect::<Vec<_>>(), 60, 100);
        assert_eq!(covered(&series), [(30, 33)]);
        assert!(series.is_settled(&(10..60)));
        // A response left one out before it was evicted.
        series.silences.note(51..52, Mono(0), Word::Empty);
        response(&mut series, 45..55, &(45..55).collect::<Vec<_>>(), 60, 102);
        assert_eq!(
            (covered(&series), series.is_settled(&(10..60))),
            (vec![(30, 33), (51, 52)], true)
        );
    }

    #[test]
    fn what_is_evicted_and_in_no_file_is_not_requested_again_for_what_a_response_left_out() {
        let mut series = series();
        response(&mut series, 10..20, &(10..20).collect::<Vec<_>>(), 60, 100);
        series.silences.note(15..16, Mono(0), Word::Empty);
        series.forget(10..20);
        let later = Mono(3_600_000_000);
        assert_eq!(series.open_slots(0, (30, 30, 30), 100, later), []);
    }

    #[test]
    fn what_stays_open_after_a_response_is_not_requested_again_at_once() {
        let mut series = series();
        let _ = series.archived.insert(10..60);
        series.silences.note(30..31, Mono(0), Word::Empty);
        let at = Mono(600_000_000);
        series.note_open(&(25..35), at, 100);
        let open = series.open_slots(0, (10, 60, 60), 100, at);
        assert_eq!(open, [(30..31, at + std::time::Duration::from_secs(120))]);
    }

    #[test]
    fn what_quotes_contradict_takes_ten_responses_over_an_hour_between_two_candles() {
        let mut series = series();
        series.note_trade(minute(13) + 3000, minute(14) - 1001);
        // A ticker may come late, and the clock is not known to the millisecond.
        series.note_trade(minute(15) + 2999, minute(15) + 9000);
        series.note_trade(minute(16) + 3000, minute(17) - 1000);
        for now in 0..90 {
            response(&mut series, 10..20, &[], 20, 21 + now);
        }
        assert_eq!(covered(&series), [(10, 13), (14, 20)], "of 15 and 16 they say nothing");
        for now in 0..60 {
            response(&mut series, 10..20, &[10, 19], 20, 200 + now);
            assert_eq!(covered(&series), [(10, 13), (14, 20)]);
        }
        response(&mut series, 10..20, &[10, 19], 20, 260);
        assert_eq!((covered(&series), stored(&series)), (vec![(10, 20)], vec![10, 19]));
    }

    #[test]
    fn the_newest_candle_of_a_response_is_not_settled_however_old_it_is() {
        let mut series = series();
        for now in [12, 20, 500] {
            series.ingest_whole(5..now, &minutes(5..11), minute(now), None);
            // What stands still may lack trades that are booked late, also in the two before.
            assert!(series.is_settled(&(5..8)) && !series.is_settled(&(8..9)), "{now}");
            assert_eq!(series.refresh_from(), Some(8));
        }
        series.ingest_whole(8..501, &minutes([8, 9, 10, 500]), minute(501), None);
        assert!(series.is_settled(&(5..499)) && !series.is_settled(&(5..501)));
    }

    #[test]
    fn candles_are_settled_when_they_are_read_long_enough_after_their_close() {
        let mut series = series();
        series.ingest_whole(10..20, &minutes(10..20), minute(20), None);
        for now in 20..30 {
            series.ingest_whole(now - 4..now, &minutes(now - 4..now), minute(now), None);
            assert!(series.is_settled(&(10..now - 3)) && !series.is_settled(&(10..now - 2)));
        }
        // Without the newest candle, the response may be as old as the one before it.
        series.ingest_whole(20..29, &minutes(20..29), minute(90), None);
        assert!(series.is_settled(&(10..26)) && !series.is_settled(&(10..27)));
        series.ingest_whole(20..30, &minutes(20..30), minute(90), None);
        assert!(series.is_settled(&(10..27)) && !series.is_settled(&(10..28)));
        // An older page may lack late trades of its newest candles. Those that are settled stay.
        let mut page = minutes(20..26);
        page.iter_mut().for_each(|it| it.candle.volume = Decimal::from(77));
        assert_eq!(series.ingest_whole(20..26, &page, minute(91), None).updated, 3);
        assert!(series.is_settled(&(10..27)));
    }

    #[test]
    fn what_another_node_will_read_again_is_not_settled_and_changes_no_settled_candle() {
        let mut series = series();
        known(&mut series, 10..20, &minutes(10..20), minute(90));
        let mut page = minutes(15..25);
        page.iter_mut().for_each(|it| it.candle.volume = Decimal::from(77));
        let written = series.ingest(15..30, &page, &Evidence::Revisable, minute(90), None);
        assert_eq!((written.written, written.updated), (5, 0));
        assert_eq!(covered(&series), [(10, 30)]);
        assert!(series.is_settled(&(10..20)));
        assert!(series.revisable(&(10..40)).iter().eq(std::iter::once(20..30)));
        known(&mut series, 20..30, &minutes(20..25), minute(90));
        assert!(series.is_settled(&(10..30)));
    }

    #[test]
    fn of_two_candles_for_one_slot_the_sound_one_counts_then_the_later_one() {
        let closes = |closes: &[i64]| {
            let reported = closes.iter().map(|close| Reported {
                candle: candle(600_000, [5, 9, 2, *close], 1),
                is_forming: false,
            });
            let mut series = series();
            series.ingest_whole(10..11, &reported.collect::<Vec<_>>(), minute(11), None);
            chart(&series, &all_of(Interval::M1), minute(11)).0
        };
        assert_eq!(closes(&[99, 7]), "[[600000,5,9,2,7,1]]");
        assert_eq!(closes(&[7, 99]), "[[600000,5,9,2,7,1]]");
        assert_eq!(closes(&[6, 7]), "[[600000,5,9,2,7,1]]");
    }

    #[test]
    fn a_slot_that_has_not_ended_is_neither_covered_nor_stored() {
        let check = |closed_before: UnixMs, covered: i64| {
            let mut series = series();
            series.ingest_whole(10..20, &minutes(10..14), closed_before, None);
            let expected = Some(covered).filter(|last| *last >= 10);
            assert_eq!(series.covered().last(), expected, "{closed_before}");
            assert_eq!(stored(&series), [10, 11, 12, 13], "{closed_before}");
            assert_eq!(series.count() as i64, covered.clamp(9, 13) - 9);
        };
        check(minute(14) - 1, 12);
        check(minute(14), 13);
        // One slot ahead of the clock is still believed.
        check(minute(13) - 1, 11);
        // One response that leaves out the last one is no proof.
        check(minute(15), 13);
    }

    #[test]
    fn the_exchange_s_own_word_holds_a_candle_open() {
        let mut candles = minutes(10..14);
        candles[3].is_forming = true;
        let mut first = series();
        first.ingest_whole(10..14, &candles, minute(14), None);
        assert_eq!((first.count(), first.covered().last()), (3, Some(12)));
        // Not for long: a candle that never closes would be asked for again forever.
        first.ingest_whole(10..14, &candles, minute(15), None);
        assert_eq!((first.count(), first.covered().last()), (4, Some(13)));
    }

    #[test]
    fn the_last_word_wins_slot_by_slot() {
        let mut series = series();
        series.ingest_whole(
            0..300,
            &minutes((0..300).filter(|slot| slot % 3 > 0)),
            minute(300),
            None,
        );
        let mut candles = minutes(100..200);
        candles.retain(|reported| reported.candle.open_time.0 % 120_000 == 0);
        candles[0].candle.volume = Decimal::from(77);
        let written = series.ingest_whole(100..200, &candles, minute(300), None);
        let expected =
            IngestCounts { written: 17, updated: 1, unchanged: 31, ..IngestCounts::default() };
        assert_eq!(written, expected);
        let written = series.ingest_whole(100..200, &candles, minute(301), None);
        let expected = IngestCounts { unchanged: 48, removed: 32, ..IngestCounts::default() };
        assert_eq!(written, expected, "only the second one in a row removes");
        assert_eq!(series.count(), 200 - 32 + 17);
        assert_eq!(series.gaps(), 299 - series.count() as u64);
    }

    #[test]
    fn scattered_coverage_makes_room_from_the_old_end() {
        let mut series = series();
        for i in 1..=MAX_INTERVALS as i64 {
            series.ingest_whole(i * 3..i * 3 + 1, &minutes([i * 3]), minute(100_000), None);
        }
        let written = series.ingest_whole(0..1, &minutes([0]), minute(100_000), None);
        assert_eq!(written, IngestCounts::default(), "older than all the others");
        assert_eq!(series.count(), MAX_INTERVALS);
        let written =
            series.ingest_whole(50_000..50_001, &minutes([50_000]), minute(100_000), None);
        assert_eq!((written.evicted, written.written), (1, 1));
        assert_eq!(series.covered().first(), Some(6));
        assert_eq!(series.covered().len(), MAX_INTERVALS);
    }

    #[test]
    fn numbers_of_64_digits_are_kept_to_the_last() {
        let long = |first: char| {
            let text = format!("{first}{}.25", "1".repeat(MAX_DIGITS - 3));
            Decimal::parse(text.as_bytes()).expect("64 digits")
        };
        let wide = |slot: i64| {
            let mut reported = minutes([slot]).remove(0);
            reported.candle.open = long('5');
            reported.candle.high = long('9');
            reported.candle.low = long('2');
            reported.candle.close = long('7');
            reported.candle.volume = long('8');
            reported
        };
        let mut series = series();
        let candles: Vec<Reported> = (100..300).map(wide).collect();
        series.ingest_whole(100..300, &candles, minute(300), None);
        let (body, info) = chart(&series, &all_of(Interval::M1), minute(300));
        let numbers = ['5', '9', '2', '7', '8'].map(|first| long(first).to_string());
        assert!(body.ends_with(&format!("[17940000,{}]]", numbers.join(","))));
        assert_eq!(info.rows, 200);
        // A sum of 64 digits cannot be held: the roll-up is left out, not rounded, and is no gap.
        let spec = ChartSpec { limit: 10, ..all_of(Interval::M5) };
        let (body, info) = chart(&series, &spec, minute(300));
        assert_eq!((&*body, info.complete, info.gaps), ("[]", true, 0));
    }
}
