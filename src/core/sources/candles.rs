//! A source's candles: what their answers do to the charts.
//!
//! Owns the step from a page of candles to a series, to what is archived of it and to what is asked
//! next, slice by slice. Which slots are closed is the exchange's clock's word: see [`super::clock`].

use super::{Desk, Poller};
use crate::core::sources::fetches::{Answered, Window};
use crate::log_targets::{FETCH, SOURCE};
use crate::market::{IntervalSet, MAX_INTERVALS, Market, Reported, SeriesKey, Word};
use crate::time::Now;
use std::ops::Range;

/// Candles put into their series in one slice: some 0.1 ms, most of it for their rows, and for the
/// copies that go to the file.
const CANDLES_A_SLICE: usize = 64;

/// A page of candles as an exchange has told it, on its way into its series.
#[derive(Debug)]
pub(super) struct Page {
    key: SeriesKey,
    /// What it was asked about and is not yet in the series.
    slots: Range<i64>,
    /// What it has there, the oldest first.
    rows: std::vec::IntoIter<Reported>,
    /// What was asked, and what it means that it leaves slots out. Where a row came without its time,
    /// it may be of any of them.
    told: Answered,
    word: Word,
    is_dated: bool,
    /// When it was asked.
    sent_at: Now,
    /// Whether the newest come first.
    is_backwards: bool,
}

impl Page {
    /// `rows` are in any order.
    pub(super) fn new(
        key: SeriesKey,
        slots: Range<i64>,
        mut rows: Vec<Reported>,
        (is_dated, is_full): (bool, bool),
        sent_at: Now,
    ) -> Page {
        let time = |row: &Reported| row.candle.open_time.0;
        if !rows.is_sorted_by_key(time) {
            // By their times alone, since rows are wide. Of two of one slot the later one counts.
            let mut order: Vec<(i64, usize)> = rows.iter().map(time).zip(0..).collect();
            order.sort_unstable();
            let mut wild: Vec<Option<Reported>> = rows.into_iter().map(Some).collect();
            rows = (order.into_iter().filter_map(|(_, at)| wild[at].take())).collect();
        }
        let word = Word::of(key.interval, &slots, &rows, is_dated);
        let between = match &word {
            Word::Answer { between, .. } => between.clone(),
            Word::History => slots.clone(),
        };
        Page {
            key,
            told: Answered {
                between,
                rows: rows.len(),
                is_full,
                has_news: false,
            },
            slots,
            rows: rows.into_iter(),
            word,
            is_dated,
            sent_at,
            is_backwards: false,
        }
    }

    /// Of which series.
    pub(super) fn key(&self) -> SeriesKey {
        self.key
    }

    fn slot(&self, row: &Reported) -> i64 {
        self.key.interval.slot_of(row.candle.open_time)
    }

    /// Where coverage can take no further piece, a page in front of it is taken from its end: the
    /// slice that touches what is known comes first, and each other one touches the one before.
    fn touch(&mut self, covered: &IntervalSet) {
        let (is_full, first) = (covered.len() >= MAX_INTERVALS, covered.first());
        let is_in_front = first.is_some_and(|it| self.slots.start < it && it <= self.slots.end);
        self.is_backwards |= is_full && is_in_front;
    }

    /// How many rows the next slice has, and the slots that they tell of. The oldest come first: a
    /// series is filled, and let go of, from there.
    fn next(&self) -> (usize, Range<i64>) {
        let rows = self.rows.as_slice();
        if self.is_backwards {
            return self.last();
        }
        let Some(first_left) = rows.get(CANDLES_A_SLICE) else {
            return (rows.len(), self.slots.clone());
        };
        // No slot is told in two slices: what is not in the first of them would be none.
        let end = self.slot(first_left);
        match rows[..CANDLES_A_SLICE].partition_point(|row| self.slot(row) < end) {
            0 => (rows.len(), self.slots.clone()),
            count => (count, self.slots.start..end),
        }
    }
}

impl Page {
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

    /// Takes a slice out of what is left.
    fn taken(&mut self, count: usize, slots: &Range<i64>) {
        if self.is_backwards {
            self.slots.end = slots.start;
            self.rows.by_ref().rev().take(count).for_each(drop);
        } else {
            self.slots.start = slots.end;
            self.rows.by_ref().take(count).for_each(drop);
        }
    }
}

impl Poller {
    /// Does one slice for a page: puts some of it into its series, or makes room for it. `true`: the
    /// last one.
    pub(super) fn take_candles(&mut self, page: &mut Page, desk: &mut Desk<'_>, now: Now) -> bool {
        if self.clock.is_overtaken(page.sent_at.mono) {
            // Which of its candles had closed is not known: it is asked again.
            self.fetches.put_back(page.key);
            return true;
        }
        if !page.slots.is_empty() {
            self.take_rows(page, desk, now);
        }
        if !page.slots.is_empty() || desk.market.charts.trim() {
            return false;
        }
        self.plan_on(page.key, &page.told, desk, now);
        true
    }

    fn take_rows(&mut self, page: &mut Page, desk: &mut Desk<'_>, now: Now) {
        let key = page.key;
        if let Some(series) = desk.market.charts.get(key) {
            page.touch(series.covered());
        }
        let (count, slots) = page.next();
        // Closed by the exchange's clock when the request left: later it may have closed one more,
        // but then what it sent may be older than that.
        let closed_before = desk.status.exchange_time(page.sent_at);
        let Market {
            charts, catalog, ..
        } = &mut *desk.market;
        let mut changes = match charts.get(key) {
            Some(_) => (desk.archive).changes(key, desk.config, catalog, now),
            // Only an open series takes the answer.
            None => None,
        };
        if changes.is_none() && charts.get(key).is_some() {
            // Too much waits for the disk: what the file says of this is an old word from now on.
            charts.unarchive(key, slots.clone());
        }
        let (told, left) = (slots.clone(), page.rows.as_slice());
        let rows = match page.is_backwards {
            true => &left[left.len() - count..],
            false => &left[..count],
        };
        let slot = |row: &Reported| page.slot(row);
        let parts: Vec<(Range<i64>, &[Reported])> = if page.is_dated {
            vec![(slots, rows)]
        } else {
            let runs = rows.chunk_by(|row, next| slot(next).abs_diff(slot(row)) <= 1);
            let ends = |run: &[Reported]| Some(slot(run.first()?)..slot(run.last()?) + 1);
            runs.filter_map(|run| Some((ends(run)?, run))).collect()
        };
        for (slots, rows) in parts {
            let changes = changes.as_deref_mut();
            let told = charts.ingest(key, slots, rows, &page.word, closed_before, changes);
            if let Some(written) = told {
                desk.status.rejected += written.rejected as u64;
                page.told.has_news |= written.written > 0;
            }
        }
        page.taken(count, &told);
    }

    /// An answer has been applied: what is asked next of its series.
    fn plan_on(&mut self, key: SeriesKey, told: &Answered, desk: &mut Desk<'_>, now: Now) {
        let Some(series) = desk.market.charts.get(key) else {
            return self.fetches.close(key);
        };
        let exchange = desk.status.exchange_time(now);
        let current = key.interval.slot_of(exchange);
        // What left memory for want of room would only push out something else, unless it stays in
        // the file.
        let forgotten = series.forgotten_before().unwrap_or(0);
        let window = Window {
            depth: self.depth(key, desk, current),
            floor: match (desk.archive).keeps(key, desk.config, &desk.market.catalog) {
                true => 0,
                false => forgotten,
            },
            rows: self.page_rows(key.interval),
        };
        log::debug!(
            target: FETCH,
            "applied source={} symbol={} interval={} ranges={} depth={} floor={}",
            self.config.id,
            desk.market.catalog.name(key.symbol).as_str(),
            key.interval.name(),
            series.covered().len(),
            window.depth,
            window.floor,
        );
        let learned = (self.fetches).answered(key, series, told, window, exchange, now);
        if let Some(rows) = learned {
            let (id, interval) = (&self.config.id, key.interval.name());
            log::info!(target: SOURCE, "{id}: {interval} candles come {rows} at a time");
        }
        self.note_progress(now);
    }

    /// So many closed slots before `current` are fetched unasked: as many as the configuration says,
    /// and all that have been missed, by what the file held at the start. An outage may have been
    /// longer than the backfill is deep, and is to leave no hole, also where the filling of it was
    /// cut off.
    pub(super) fn depth(&self, key: SeriesKey, desk: &Desk<'_>, current: i64) -> i64 {
        let depth = desk.config.history.of(key.interval);
        let keeps = (desk.archive).keeps(key, desk.config, &desk.market.catalog);
        let reach = self.fetches.reach(key).filter(|_| keeps);
        let missed = reach.map_or(0, |slot| current - slot).min(depth.keep);
        let told = current - self.oldest_slot(current);
        depth.backfill.max(missed).min(told).min(depth.keep)
    }

    /// Follows a series from now on. `false`: there are too many, or the exchange does not have it.
    /// Before its first list it has what it told an earlier run.
    pub fn follow(&mut self, series: SeriesKey, desk: &mut Desk<'_>, now: Now) -> bool {
        let Market {
            catalog, charts, ..
        } = desk.market;
        let archived = charts.archived(series);
        let has_it = match catalog.has_list(self.id) {
            true => catalog.listing(self.id, series.symbol).is_some(),
            false => archived.is_some_and(|slots| !slots.is_empty()),
        };
        if !has_it || !self.dialect.has_interval(series.interval) {
            return false;
        }
        let exchange = desk.status.exchange_time(now);
        if !charts.open(series) {
            let may_leave = |key: &SeriesKey| !catalog.is_named(key.source, key.symbol);
            let Some(left) = charts.make_place(exchange, may_leave) else {
                return false;
            };
            // Another source hears of it with its next answer.
            self.fetches.close(left);
            charts.open(series);
        }
        charts.touch(series, exchange);
        self.fetches.open(series, now);
        true
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
        let mirrored: Vec<i64> = rows
            .iter()
            .map(|slot| asked.end - 1 - (slot - asked.start))
            .collect();
        let backwards = slices(asked.clone(), &mirrored, true);
        let begins: Vec<(usize, i64)> = (backwards.iter())
            .map(|it| (it.0, asked.end - (it.1.start - asked.start)))
            .collect();
        assert_eq!(begins, expected);
    }

    fn slices(asked: Range<i64>, rows: &[i64], is_backwards: bool) -> Vec<(usize, Range<i64>)> {
        let key = SeriesKey {
            source: SourceId(0),
            symbol: SymbolId(0),
            interval: Stored::M1,
        };
        let rows = rows.iter().map(|slot| Reported {
            candle: Candle::without_numbers(Stored::M1.open_of(*slot)),
            closed: None,
        });
        let sent_at = Now {
            mono: Mono(0),
            unix: UnixMs(0),
        };
        let mut page = Page::new(key, asked, rows.collect(), (true, true), sent_at);
        page.is_backwards = is_backwards;
        let mut slices = Vec::new();
        while !page.slots.is_empty() {
            let (count, slots) = page.next();
            let before = (page.slots.clone(), page.rows.as_slice().to_vec());
            page.taken(count, &slots);
            let here = match is_backwards {
                true => before.1[before.1.len() - count..].iter(),
                false => before.1[..count].iter(),
            };
            assert!(
                here.map(|row| page.slot(row))
                    .all(|slot| slots.contains(&slot))
            );
            let together = match is_backwards {
                true => page.slots.start..slots.end,
                false => slots.start..page.slots.end,
            };
            assert_eq!(
                (together, before.1.len() - count),
                (before.0, page.rows.len())
            );
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
