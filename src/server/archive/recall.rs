//! Candles on their way back from the file.
//!
//! Owns which slots of which series are being read, one page of a series at a time, the newest
//! first. Many clients who want the same share one read. It never keeps a candle: a page goes into
//! its series, which is where a chart is made from.

use super::names::name_of;
use super::{Archive, Shelf, State};
use crate::history::{Job, Read, Rows, StoreError};
use crate::market::{Charts, SeriesKey};
use crate::record::Edge;
use crate::server::Action;
use crate::time::Now;
use std::collections::BTreeMap;
use std::ops::Range;

/// Candles of one page: rendering them takes some 200 microseconds of the loop.
const ROWS: usize = 512;

/// Series that may be read at once: behind so many pages a client would wait for a second.
const SERIES: usize = 64;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    wanted: BTreeMap<SeriesKey, Recall>,
    tickets: u64,
}

#[derive(Debug)]
struct Recall {
    /// The hull of what clients want and is not read yet.
    slots: Range<i64>,
    ticket: u64,
}

/// What becomes of a client's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// The file has nothing of it.
    Nothing,
    /// It is being read.
    Coming,
    /// Too many wait already.
    Full,
}

impl Archive {
    /// Has those of these slots read that are archived and not in memory. The series is open.
    pub fn recall(
        &mut self,
        key: SeriesKey,
        slots: &Range<i64>,
        shelf: &mut Shelf<'_>,
    ) -> Recalled {
        let parts = hidden(&shelf.market.charts, key, slots.clone());
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return Recalled::Nothing;
        };
        if self.state != State::On {
            return Recalled::Nothing;
        }
        let slots = first.start..last.end;
        if let Some(recall) = self.recalls.wanted.get_mut(&key) {
            recall.slots = recall.slots.start.min(slots.start)..recall.slots.end.max(slots.end);
            return Recalled::Coming;
        }
        if self.recalls.wanted.len() >= SERIES {
            return Recalled::Full;
        }
        let ticket = 0;
        self.recalls.wanted.insert(key, Recall { slots, ticket });
        self.read_on(key, shelf);
        Recalled::Coming
    }

    /// Whether some of these slots are being read.
    pub fn is_recalling(&self, key: SeriesKey, slots: &Range<i64>) -> bool {
        let recall = self.recalls.wanted.get(&key);
        recall.is_some_and(|it| it.slots.start < slots.end && slots.start < it.slots.end)
    }

    /// A page has come. Clients may have waited for it.
    pub(super) fn recalled(
        &mut self,
        ticket: u64,
        result: Result<Rows, StoreError>,
        shelf: &mut Shelf<'_>,
        now: Now,
    ) -> bool {
        let mut waiting = self.recalls.wanted.iter_mut();
        let Some((key, recall)) = waiting.find(|(_, recall)| recall.ticket == ticket) else {
            return false;
        };
        let key = *key;
        match result {
            Ok(rows) if !rows.slots.is_empty() => {
                // Each page ends where the one before began, so that this comes to an end.
                recall.slots.end = rows.slots.start;
                self.take(key, rows, shelf, now);
                self.read_on(key, shelf);
            }
            Ok(_) => drop(self.recalls.wanted.remove(&key)),
            Err(error) => {
                log::warn!("history: cannot be read: {error}");
                self.recalls.wanted.remove(&key);
            }
        }
        true
    }

    /// Puts a page into its series. What is unsound of it is asked of the exchange again.
    fn take(&mut self, key: SeriesKey, rows: Rows, shelf: &mut Shelf<'_>, now: Now) {
        for slot in rows.unsound {
            shelf.market.charts.unarchive(key, slot..slot + 1);
            if let Some(changes) = self.changes(key, shelf.config, &shelf.market.catalog, now) {
                changes.forget(slot..slot + 1);
            }
        }
        let exchange = shelf.sources[key.source.index()].exchange_time(now);
        let charts = &mut shelf.market.charts;
        charts.recalled(key, rows.slots, rows.candles, exchange);
        charts.trim();
    }

    /// Asks for the next page of a series, or is done with it.
    fn read_on(&mut self, key: SeriesKey, shelf: &mut Shelf<'_>) {
        let Some(recall) = self.recalls.wanted.get_mut(&key) else {
            return;
        };
        let parts = hidden(&shelf.market.charts, key, recall.slots.clone());
        let Some(slots) = parts.last().cloned() else {
            self.recalls.wanted.remove(&key);
            return;
        };
        self.recalls.tickets += 1;
        recall.ticket = self.recalls.tickets;
        let read = Read {
            ticket: recall.ticket,
            series: name_of(key, shelf.config, &shelf.market.catalog),
            slots,
            limit: ROWS,
            keep: Edge::Newest,
        };
        shelf.actions.push_back(Action::Store(Job::Read(read)));
    }
}

/// The parts of these slots that are archived and not in memory, in order.
fn hidden(charts: &Charts, key: SeriesKey, slots: Range<i64>) -> Vec<Range<i64>> {
    let Some(series) = charts.get(key) else {
        return Vec::new();
    };
    let missing = series.covered().missing(slots).into_iter();
    missing
        .flat_map(|part| series.archived().within(part))
        .collect()
}
