//! A page of candles on its way into its series, slice by slice.
//!
//! [`CandlePage`] owns the rows that are not in the series yet. Which slots are closed is decided by
//! the exchange's clock at the time of the request.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::sources::clock::ExchangeClock;
use crate::core::sources::replica::series_part;
use crate::core::sources::series_plan::PageResult;
use crate::market::{Evidence, IntervalSet, MAX_INTERVALS, Reported, SeriesKey};
use crate::replication::SentCandles;
use crate::time::Now;
use std::ops::Range;

/// Candles put into their series in one slice: some 0.1 ms, most of it for their rows, and for the
/// copies that go to the file.
const CANDLES_A_SLICE: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub struct CandlePage {
    key: SeriesKey,
    /// The requested slots that are not in the series yet.
    slots: Range<i64>,
    /// Their rows, oldest first.
    rows: std::vec::IntoIter<Reported>,
    result: PageResult,
    /// What it means that the page leaves slots out.
    evidence: Evidence,
    /// False if a row came without its time: it may be of any of the slots.
    is_dated: bool,
    /// When it was requested.
    sent_at: Now,
    /// True if the newest slices come first.
    is_backwards: bool,
    /// What another node has asked for.
    asked_elsewhere: Option<Range<i64>>,
}

impl CandlePage {
    /// A page whose rows are in any order. `is_full`: as many slots were requested as a page may have.
    pub fn new(
        key: SeriesKey,
        slots: Range<i64>,
        mut rows: Vec<Reported>,
        (is_dated, is_full): (bool, bool),
        sent_at: Now,
    ) -> CandlePage {
        let time = |row: &Reported| row.candle.open_time.0;
        if !rows.is_sorted_by_key(time) {
            // By their times alone, since rows are wide. Of two of one slot the later one counts.
            let mut order: Vec<(i64, usize)> = rows.iter().map(time).zip(0..).collect();
            order.sort_unstable();
            let mut unsorted: Vec<Option<Reported>> = rows.into_iter().map(Some).collect();
            rows = (order.into_iter().filter_map(|(_, at)| unsorted[at].take())).collect();
        }
        let evidence = Evidence::of(key.interval, &slots, &rows, is_dated);
        let between = match &evidence {
            Evidence::Answer { between, .. } => between.clone(),
            Evidence::History => slots.clone(),
        };
        CandlePage {
            key,
            result: PageResult { between, rows: rows.len(), is_full, has_news: false },
            slots,
            rows: rows.into_iter(),
            evidence,
            is_dated,
            sent_at,
            is_backwards: false,
            asked_elsewhere: None,
        }
    }

    /// Another node has asked for these slots. If it has proof, slots without a candle are empty.
    pub fn asked_elsewhere(mut self, is_proven: bool) -> CandlePage {
        if is_proven {
            let between = self.slots.clone();
            let is_whole = false;
            self.result.between.clone_from(&between);
            self.evidence = Evidence::Answer { between, is_whole };
        }
        self.asked_elsewhere = Some(self.slots.clone());
        self
    }

    /// The page for the other nodes of a cluster, as long as none of it is in the series.
    pub fn to_send(&self, cx: &Context) -> SentCandles {
        let rows = self.rows.as_slice().iter();
        SentCandles {
            series: series_part(self.key, self.slots.clone(), cx),
            closed_before: cx.stats[self.key.source].exchange_time(self.sent_at),
            is_dated: self.is_dated,
            is_full: self.result.is_full,
            is_proven: false,
            rows: rows.map(|row| (row.candle.clone(), row.closed)).collect(),
        }
    }

    /// The series.
    pub fn key(&self) -> SeriesKey {
        self.key
    }

    fn slot(&self, row: &Reported) -> i64 {
        self.key.interval.slot_of(row.candle.open_time)
    }

    /// If coverage can take no further piece, a page in front of it is taken from its end: the slice
    /// that touches what is known comes first, and each other one touches the one before.
    fn choose_direction(&mut self, covered: &IntervalSet) {
        let (is_full, first) = (covered.len() >= MAX_INTERVALS, covered.first());
        let is_in_front = first.is_some_and(|it| self.slots.start < it && it <= self.slots.end);
        self.is_backwards |= is_full && is_in_front;
    }

    /// The number of rows of the next slice, and its slots. The oldest come first, because a series is
    /// filled and evicted from there.
    fn next(&self) -> (usize, Range<i64>) {
        let rows = self.rows.as_slice();
        if self.is_backwards {
            return self.last();
        }
        let Some(first_left) = rows.get(CANDLES_A_SLICE) else {
            return (rows.len(), self.slots.clone());
        };
        // No slot is in two slices: a row that is not in the first of them would count as missing.
        let end = self.slot(first_left);
        match rows[..CANDLES_A_SLICE].partition_point(|row| self.slot(row) < end) {
            0 => (rows.len(), self.slots.clone()),
            count => (count, self.slots.start..end),
        }
    }

    /// The same from the end.
    fn last(&self) -> (usize, Range<i64>) {
        let rows = self.rows.as_slice();
        let Some(split) = rows.len().checked_sub(CANDLES_A_SLICE).filter(|it| *it > 0) else {
            return (rows.len(), self.slots.clone());
        };
        let begin = self.slot(&rows[split - 1]) + 1;
        match rows.len() - rows.partition_point(|row| self.slot(row) < begin) {
            0 => (rows.len(), self.slots.clone()),
            count => (count, begin..self.slots.end),
        }
    }

    /// Removes a slice from what is left.
    fn remove(&mut self, count: usize, slots: &Range<i64>) {
        if self.is_backwards {
            self.slots.end = slots.start;
            self.rows.by_ref().rev().take(count).for_each(drop);
        } else {
            self.slots.start = slots.end;
            self.rows.by_ref().take(count).for_each(drop);
        }
    }
}

impl CandlePage {
    /// Puts some of the page into its series, or makes room for it. `true`: that was the last slice.
    pub fn step(
        &mut self,
        clock: &ExchangeClock,
        plans: &mut CandlePlans,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        if clock.is_overtaken(self.sent_at.mono) {
            // Which of its candles had closed is not known: it is requested again.
            plans.put_back(self.key);
            return true;
        }
        if !self.slots.is_empty() {
            self.ingest(history, cx);
        }
        if !self.slots.is_empty() || cx.market.charts.trim() {
            return false;
        }
        if let Some(slots) = self.asked_elsewhere.take() {
            plans.sent(self.key, slots, cx);
        }
        plans.applied(self.key, &self.result, history, cx);
        true
    }

    /// Puts one slice into the series, and what changes into the batch for the file.
    fn ingest(&mut self, history: &mut History, cx: &mut Context) {
        let key = self.key;
        let is_open = match cx.market.charts.get(key) {
            Some(series) => {
                self.choose_direction(series.covered());
                true
            }
            None => false,
        };
        let (count, slots) = self.next();
        // Closed by the exchange's clock when the request left: later it may have closed one more,
        // but then what it sent may be older than that.
        let closed_before = cx.stats[key.source].exchange_time(self.sent_at);
        // Only an open series takes the page.
        let mut changes = is_open.then(|| history.changes(key, cx)).flatten();
        let charts = &mut cx.market.charts;
        if changes.is_none() && is_open {
            // Too much waits for the disk: what the file holds of this is out of date from now on.
            charts.unarchive(key, slots.clone());
        }
        let rows = self.rows.as_slice();
        let rows = match self.is_backwards {
            true => &rows[rows.len() - count..],
            false => &rows[..count],
        };
        let slot = |row: &Reported| self.slot(row);
        let parts: Vec<(Range<i64>, &[Reported])> = if self.is_dated {
            vec![(slots.clone(), rows)]
        } else {
            let runs = rows.chunk_by(|row, next| slot(next).abs_diff(slot(row)) <= 1);
            let ends = |run: &[Reported]| Some(slot(run.first()?)..slot(run.last()?) + 1);
            runs.filter_map(|run| Some((ends(run)?, run))).collect()
        };
        for (slots, rows) in parts {
            let changes = changes.as_deref_mut();
            let ingested = charts.ingest(key, slots, rows, &self.evidence, closed_before, changes);
            if let Some(ingested) = ingested {
                cx.stats[key.source].rejected += ingested.rejected as u64;
                self.result.has_news |= ingested.written > 0;
            }
        }
        self.remove(count, &slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Stored;
    use crate::market::{SourceId, SymbolId};
    use crate::record::Candle;
    use crate::time::{Mono, UnixMs};

    const LENGTH: i64 = CANDLES_A_SLICE as i64;

    /// The slices of a page that was asked about these slots and has rows in those: how many rows,
    /// and behind which slot each slice ends.
    #[track_caller]
    fn check(asked: Range<i64>, rows: impl Iterator<Item = i64>, expected: &[(usize, i64)]) {
        let rows: Vec<i64> = rows.collect();
        let forwards = slices(asked.clone(), &rows, false);
        let ends: Vec<(usize, i64)> = forwards.iter().map(|it| (it.0, it.1.end)).collect();
        assert_eq!(ends, expected);
        // From the end, as if time ran the other way.
        let mirrored: Vec<i64> =
            rows.iter().map(|slot| asked.end - 1 - (slot - asked.start)).collect();
        let backwards = slices(asked.clone(), &mirrored, true);
        let begins: Vec<(usize, i64)> =
            (backwards.iter()).map(|it| (it.0, asked.end - (it.1.start - asked.start))).collect();
        assert_eq!(begins, expected);
    }

    fn slices(asked: Range<i64>, rows: &[i64], is_backwards: bool) -> Vec<(usize, Range<i64>)> {
        let key = SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval: Stored::M1 };
        let rows = rows.iter().map(|slot| Reported {
            candle: Candle::without_numbers(Stored::M1.open_of(*slot)),
            closed: None,
        });
        let sent_at = Now { mono: Mono(0), unix: UnixMs(0) };
        let mut page = CandlePage::new(key, asked, rows.collect(), (true, true), sent_at);
        page.is_backwards = is_backwards;
        let mut slices = Vec::new();
        while !page.slots.is_empty() {
            let (count, slots) = page.next();
            let before = (page.slots.clone(), page.rows.as_slice().to_vec());
            page.remove(count, &slots);
            let here = match is_backwards {
                true => before.1[before.1.len() - count..].iter(),
                false => before.1[..count].iter(),
            };
            assert!(here.map(|row| page.slot(row)).all(|slot| slots.contains(&slot)));
            let together = match is_backwards {
                true => page.slots.start..slots.end,
                false => slots.start..page.slots.end,
            };
            assert_eq!((together, before.1.len() - count), (before.0, page.rows.len()));
            slices.push((count, slots));
        }
        assert_eq!(page.rows.len(), 0);
        slices
    }

    #[test]
    fn a_page_is_cut_between_slots_and_every_slot_is_in_one_slice() {
        let whole = CANDLES_A_SLICE;
        check(5..9, [].into_iter(), &[(0, 9)]);
        check(0..LENGTH, 0..LENGTH, &[(whole, LENGTH)]);
        let two = [(whole, LENGTH), (1, LENGTH + 1)];
        check(0..LENGTH + 1, 0..LENGTH + 1, &two);
        check(0..LENGTH + 1, (0..LENGTH + 1).rev(), &two);
        // Slots without a candle go with those before them, or with the last ones.
        let rows = (0..LENGTH + 1).map(|slot| slot * 3);
        let end = LENGTH * 3 + 9;
        check(0..end, rows, &[(whole, LENGTH * 3), (1, end)]);
        // Of the slot at the cut there are two.
        let rows = (0..LENGTH).chain([LENGTH - 1, LENGTH]);
        let both = [(whole - 1, LENGTH - 1), (3, LENGTH + 1)];
        check(0..LENGTH + 1, rows, &both);
        // All are of one slot.
        let many = [(2 * whole, 2)];
        check(1..2, [1].repeat(2 * whole).into_iter(), &many);
    }
}
