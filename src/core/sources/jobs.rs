//! The jobs of a source: work that takes longer than a turn.
//!
//! Most jobs have a [`CandlePage`], which owns the rows of a response that are not in their series yet.
//!
//! The source steps one job at a time, always one of the lowest rank in the queue. Rank 0 applies responses
//! and market lists, in their order. Rank 1 decompresses bodies. Rank 2 counts candles, and writes lists for
//! other nodes.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::replica::{ListWriter, series_part};
use crate::core::sources::staged::StagedTickers;
use crate::history::Changes;
use crate::job_queue;
use crate::market::{
    CandleResponse, CandleService, Evidence, IntervalSet, MAX_INTERVALS, Reported, SeriesKey,
    SymbolId,
};
use crate::replication::{Markets, SentCandles};
use crate::time::Now;
use std::collections::VecDeque;
use std::ops::Range;
use std::vec::IntoIter;

/// Candles put into their series in one slice: some 0.1 ms, most of it for their rows, and for the
/// copies that go to the file.
const CANDLES_A_SLICE: usize = 64;

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Job {
    /// Puts the tickers of a whole exchange into the market, one piece a slice.
    ApplyTickers(StagedTickers),
    /// Puts a page of candles into its series. If the time of its receipt is given, the other nodes of a
    /// cluster are told of the page first.
    ApplyCandles(CandlePage, Option<Now>),
    /// Reads the market list of another node.
    ReadList(Markets),
    /// Puts the market list that has come into place.
    RefreshList,
    /// Drops the quotes of markets that have left the list. No client can ask for them any more.
    DropQuotes(IntoIter<SymbolId>),
    /// Follows the candles of the markets that the configuration names: some may be new in the list.
    FollowNamed(IntoIter<SymbolId>),
    /// Decompresses what has come of the response on this connection. If the connection is closed meanwhile,
    /// nothing is left to do.
    Decompress(usize),
    /// Counts how far the backfill has come.
    Count,
    /// Writes the market list for the other nodes.
    WriteList(ListWriter),
}

impl job_queue::QueuedJob for Job {
    fn rank(&self) -> u8 {
        match self {
            Job::Decompress(_) => 1,
            Job::Count | Job::WriteList(_) => 2,
            _ => 0,
        }
    }

    fn replaces(&self, older: &Job) -> bool {
        match (self, older) {
            (Job::Count, Job::Count) | (Job::WriteList(_), Job::WriteList(_)) => true,
            (Job::Decompress(conn), Job::Decompress(older)) => conn == older,
            _ => false,
        }
    }
}

impl Job {
    /// True if it reads a market list, or puts one in place.
    pub fn is_of_list(&self) -> bool {
        matches!(self, Job::ReadList(_) | Job::RefreshList)
    }

    /// True if it applies a response, or does what a new market list leads to.
    pub fn applies(&self) -> bool {
        job_queue::QueuedJob::rank(self) == 0
    }
}

/// A page of candles on its way into its series, slice by slice: the rows that are not in the series yet.
/// Which slots are closed is decided by the exchange's clock at the time of the request.
#[derive(Debug)]
pub struct CandlePage {
    pub key: SeriesKey,
    /// The slots that are not in the series yet, and their rows, the oldest first.
    left: Range<i64>,
    rows: VecDeque<Reported>,
    /// The requested slots.
    pub slots: Range<i64>,
    /// What is not requested again at once: `slots`, unless the page was cut, or answers for more slots.
    pub told: Range<i64>,
    /// True if closed slots between its candles were unknown.
    is_new: bool,
    /// What a slot without a candle means.
    pub evidence: Evidence,
    /// False if a row came without its time: it may be of any of the slots.
    is_dated: bool,
    /// When it was requested.
    sent_at: Now,
    /// True if the newest slices come first.
    is_backwards: bool,
}

impl CandlePage {
    /// A page whose rows are in any order.
    pub fn new(
        key: SeriesKey,
        slots: Range<i64>,
        mut rows: Vec<Reported>,
        evidence: Evidence,
        is_dated: bool,
        sent_at: Now,
    ) -> CandlePage {
        let time = |row: &Reported| row.candle.open_time.0;
        if !rows.is_sorted_by_key(time) {
            // By their times alone, since rows are wide. Of two rows of one slot, the later one counts.
            rows.sort_by_cached_key(time);
        }
        CandlePage {
            key,
            left: slots.clone(),
            rows: rows.into(),
            told: slots.clone(),
            slots,
            is_new: false,
            evidence,
            is_dated,
            sent_at,
            is_backwards: false,
        }
    }

    /// The page of a response for the other nodes of a cluster, as long as none of it is in the series.
    pub fn to_send(&self, cx: &Context) -> SentCandles {
        let mut page = SentCandles {
            series: series_part(self.key, self.slots.clone(), cx),
            closed_before: cx.stats[self.key.source].sure_time(self.sent_at),
            is_dated: self.is_dated,
            rows: self.rows.iter().map(|row| (row.candle.clone(), row.is_forming)).collect(),
            ..SentCandles::default()
        };
        if let Evidence::Exchange(it) = &self.evidence {
            (page.between, page.is_whole) = (it.between.clone(), it.is_whole);
            page.is_archived = it.service == CandleService::Archive;
        }
        page
    }

    /// A page that another node has sent. The exchange received its request at `sent_at`.
    pub fn received(key: SeriesKey, page: SentCandles, sent_at: Now) -> CandlePage {
        let row = |(candle, is_forming)| Reported { candle, is_forming };
        let rows = page.rows.into_iter().map(row).collect();
        let service = if page.is_archived { CandleService::Archive } else { CandleService::Newest };
        let (between, is_whole, at) = (page.between, page.is_whole, sent_at.mono);
        let alive = between.end - 1;
        let evidence = match (page.is_answer, page.is_final) {
            (true, true) => Evidence::Proven,
            (true, false) => Evidence::Revisable,
            _ => Evidence::Exchange(CandleResponse { between, is_whole, alive, service, at }),
        };
        CandlePage::new(key, page.series.slots, rows, evidence, page.is_dated, sent_at)
    }

    /// Takes out the next slice. No slot is in two slices: a row that comes with the second slice would count
    /// as missing in the first. Slots without a candle go with the candle before them. The oldest slice comes
    /// first, because a series is filled and evicted from there. But if coverage can take no further
    /// interval, a page that lies before it comes backwards: the first slice touches what is known, and each
    /// other slice touches the slice taken before it.
    fn next(&mut self, covered: &IntervalSet) -> Option<(Range<i64>, Vec<Reported>)> {
        let Range { start, end } = self.left;
        let is_in_front = covered.first().is_some_and(|it| start < it && it <= end);
        self.is_backwards |= covered.len() >= MAX_INTERVALS && is_in_front;
        let slot = |row: &Reported| self.key.interval.slot_of(row.candle.open_time);
        let newer = self.rows.len().saturating_sub(CANDLES_A_SLICE);
        let at = if self.is_backwards { newer } else { CANDLES_A_SLICE };
        // The slot of the newer part's first row. `None`: one slice is enough, or all rows are of one slot.
        let cut = self.rows.get(at).filter(|_| newer > 0).map(slot);
        let cut = cut.filter(|cut| self.rows.front().map(slot) < Some(*cut));
        let at = cut.map(|cut| self.rows.partition_point(|row| slot(row) < cut));
        let (slots, rows) = match (cut.zip(at), self.is_backwards) {
            (Some((cut, at)), true) => (cut..end, self.rows.split_off(at).into()),
            (Some((cut, at)), false) => (start..cut, self.rows.drain(..at).collect()),
            (None, _) => (start..end, std::mem::take(&mut self.rows).into()),
        };
        self.left = if self.is_backwards { start..slots.start } else { slots.end..end };
        (!slots.is_empty()).then_some((slots, rows))
    }

    /// Puts one slice into the series. After the last slice, trims the charts. `true`: the job is done.
    pub fn step(&mut self, history: &mut History, cx: &mut Context) -> bool {
        self.ingest(history, cx);
        if !self.left.is_empty() || cx.market.charts.trim() {
            return false;
        }
        self.end(history, cx);
        true
    }

    /// Notes the requested slots that are still not known, so that they are not requested again at once: they
    /// may have been dropped, for want of room or for their age. Newer slots may also have been dropped, to
    /// make room for this page, before they were written to the file. If the page may have been cut, and has
    /// told of closed slots that were unknown, the slots outside of its candles are requested again at once.
    /// This ends, because each such page leaves less to request.
    fn end(&mut self, history: &History, cx: &mut Context) {
        let keeps = history.keeps(self.key, cx);
        let now = cx.exchange_time(self.key.source);
        if let (Evidence::Exchange(response), true) = (&self.evidence, self.is_new)
            && !response.is_whole
            && !is_unknown(self.key, response, self.sent_at, cx)
        {
            self.told = response.between.clone();
        }
        if let Some(series) = cx.market.charts.get_mut(self.key) {
            let present = self.key.interval.slot_of(now);
            let dropped = series.forgotten_before().filter(|_| keeps).unwrap_or(0);
            let told = self.told.start..self.told.end.max(dropped);
            series.note_open(&told, self.sent_at.mono, present);
        }
    }

    /// Puts one slice into the series, and what changes into the batch for the file.
    fn ingest(&mut self, history: &mut History, cx: &mut Context) {
        let key = self.key;
        if let Evidence::Exchange(response) = &mut self.evidence {
            cx.market.charts.hear(key, response);
            self.is_new |= is_unknown(key, response, self.sent_at, cx);
        }
        let Some(series) = cx.market.charts.get(key) else {
            // Only an open series takes the page.
            self.left = 0..0;
            return;
        };
        let Some((slots, rows)) = self.next(series.covered()) else {
            return;
        };
        // The exchange's clock when the request left decides which slots are closed. A slot that closed later
        // may have been read before it closed.
        let closed_before = cx.stats[key.source].sure_time(self.sent_at);
        let (mut changes, has_file) = (Changes::default(), !history.is_closed());
        let slot = |row: &Reported| key.interval.slot_of(row.candle.open_time);
        let parts: Vec<(Range<i64>, &[Reported])> = if self.is_dated {
            vec![(slots, &rows[..])]
        } else {
            let runs = rows.chunk_by(|row, next| slot(next).abs_diff(slot(row)) <= 1);
            let ends = |run: &[Reported]| Some(slot(run.first()?)..slot(run.last()?) + 1);
            runs.filter_map(|run| Some((ends(run)?, run))).collect()
        };
        for (slots, rows) in parts {
            let charts = &mut cx.market.charts;
            let (evidence, changes) = (&self.evidence, has_file.then_some(&mut changes));
            let ingested = charts.ingest(key, slots, rows, evidence, closed_before, changes);
            cx.stats[key.source].rejected += ingested.map_or(0, |it| it.rejected as u64);
        }
        history.note(key, changes, cx);
    }
}

/// True if some closed slot between the candles of a response is not known. `sent_at`: when the response was
/// requested.
fn is_unknown(key: SeriesKey, response: &CandleResponse, sent_at: Now, cx: &Context) -> bool {
    let closed_before = cx.stats[key.source].sure_time(sent_at);
    let Range { start, end } = response.between;
    let end = end.min(key.interval.slot_of(closed_before));
    let series = cx.market.charts.get(key);
    start < end && series.is_some_and(|series| !series.unknown(start..end).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Stored;
    use crate::market::SourceId;
    use crate::record::Candle;
    use crate::time::{Mono, UnixMs};

    const LENGTH: i64 = CANDLES_A_SLICE as i64;

    /// A page for the slots of `asked`, with a candle in each slot of `rows`.
    fn page(asked: Range<i64>, rows: impl Iterator<Item = i64>) -> CandlePage {
        let key = SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval: Stored::M1 };
        let rows = rows.map(|slot| Reported {
            candle: Candle::without_numbers(Stored::M1.open_of(slot)),
            is_forming: false,
        });
        let sent_at = Now { mono: Mono(0), unix: UnixMs(0) };
        CandlePage::new(key, asked, rows.collect(), Evidence::Proven, true, sent_at)
    }

    /// Checks the slices of such a page: how many rows each has, and the end of its slots.
    #[track_caller]
    fn check(asked: Range<i64>, rows: impl Iterator<Item = i64>, expected: &[(usize, i64)]) {
        let mut page = page(asked.clone(), rows);
        let (mut slices, mut start) = (Vec::new(), asked.start);
        while let Some((slots, rows)) = page.next(&IntervalSet::default()) {
            let slot = |row: &Reported| Stored::M1.slot_of(row.candle.open_time);
            assert!(rows.iter().map(slot).all(|slot| slots.contains(&slot)));
            assert_eq!(slots.start, start);
            start = slots.end;
            slices.push((rows.len(), slots.end));
        }
        assert_eq!(slices, expected);
        assert_eq!(start, asked.end);
    }

    #[test]
    fn a_page_in_front_of_full_coverage_touches_it_with_each_slice() {
        let mut covered = IntervalSet::default();
        let first = 3 * LENGTH;
        for piece in 0..MAX_INTERVALS as i64 {
            let _ = covered.insert(first + 2 * piece..first + 2 * piece + 1);
        }
        assert_eq!(covered.len(), MAX_INTERVALS);
        let mut page = page(0..first, 0..first);
        let mut end = first;
        while let Some((slots, rows)) = page.next(&covered) {
            assert_eq!((slots.end, rows.len() as i64), (end, LENGTH));
            end = slots.start;
        }
        assert_eq!(end, 0);
    }

    #[test]
    fn a_page_is_cut_between_slots_and_every_slot_is_in_one_slice() {
        let whole = CANDLES_A_SLICE;
        check(5..9, [].into_iter(), &[(0, 9)]);
        check(0..LENGTH, 0..LENGTH, &[(whole, LENGTH)]);
        let two = [(whole, LENGTH), (1, LENGTH + 1)];
        check(0..LENGTH + 1, 0..LENGTH + 1, &two);
        check(0..LENGTH + 1, (0..LENGTH + 1).rev(), &two);
        // Slots without a candle go with the candle before them.
        let rows = (0..LENGTH + 1).map(|slot| slot * 3);
        let end = LENGTH * 3 + 9;
        check(0..end, rows, &[(whole, LENGTH * 3), (1, end)]);
        // The slot at the cut has two rows.
        let rows = (0..LENGTH).chain([LENGTH - 1, LENGTH]);
        let both = [(whole - 1, LENGTH - 1), (3, LENGTH + 1)];
        check(0..LENGTH + 1, rows, &both);
        // All rows are of one slot.
        let many = [(2 * whole, 2)];
        check(1..2, [1].repeat(2 * whole).into_iter(), &many);
    }
}
