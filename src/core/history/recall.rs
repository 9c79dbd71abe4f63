//! Candles on their way back from the file.
//!
//! Owns which slots of which series are being read, one page of a series at a time, the newest
//! first. Many clients who want the same share one read. It never keeps a candle: a page goes into
//! its series, which is where a chart is made from.

use super::names::name_of;
use super::{History, State};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Job, Read, Rows, StoreError};
use crate::log_targets::HISTORY;
use crate::market::{Charts, SeriesKey};
use crate::record::Edge;
use std::collections::BTreeMap;
use std::ops::Range;

/// Candles of one page: rendering them takes some 200 microseconds of the loop.
const ROWS: usize = 512;

/// Slices of making room with each page: more leaves than comes.
const TRIMS: usize = 2;

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
    /// The page that is being read, and where it ends.
    ticket: u64,
    end: i64,
}

impl History {
    /// Has those of these slots read that are archived and not in memory; the series is open.
    /// Whether some will come; `None`: too many wait already.
    pub fn recall(&mut self, key: SeriesKey, slots: &Range<i64>, cx: &mut Context) -> Option<bool> {
        let parts = hidden(&cx.market.charts, key, slots.clone());
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return Some(false);
        };
        if self.state != State::On {
            return Some(false);
        }
        let slots = first.start..last.end;
        if let Some(recall) = self.recalls.wanted.get_mut(&key) {
            recall.slots = recall.slots.start.min(slots.start)..recall.slots.end.max(slots.end);
            return Some(true);
        }
        if self.recalls.wanted.len() >= SERIES {
            return None;
        }
        let recall = Recall {
            ticket: 0,
            end: slots.end,
            slots,
        };
        self.recalls.wanted.insert(key, recall);
        self.read_on(key, cx);
        Some(true)
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
        cx: &mut Context,
    ) -> bool {
        let mut waiting = self.recalls.wanted.iter_mut();
        let Some((key, recall)) = waiting.find(|(_, recall)| recall.ticket == ticket) else {
            return false;
        };
        let key = *key;
        match result {
            Ok(rows) if !rows.slots.is_empty() => {
                log::debug!(
                    target: HISTORY,
                    "read done ticket={ticket} candles={}",
                    rows.candles.len()
                );
                // Each page ends where the one before began, so that this comes to an end; unless
                // somebody has asked for newer ones meanwhile.
                if recall.slots.end <= recall.end {
                    recall.slots.end = rows.slots.start;
                }
                self.take(key, rows, cx);
                self.read_on(key, cx);
            }
            Ok(_) => drop(self.recalls.wanted.remove(&key)),
            Err(error) => {
                log::warn!(target: HISTORY, "cannot be read: {error}");
                self.recalls.wanted.remove(&key);
            }
        }
        true
    }

    /// Puts a page into its series. What is unsound of it is asked of the exchange again.
    fn take(&mut self, key: SeriesKey, rows: Rows, cx: &mut Context) {
        for slot in rows.unsound {
            let slots = slot..slot.saturating_add(1);
            cx.market.charts.unarchive(key, slots.clone());
            self.forget(key, slots, cx);
        }
        let exchange = cx.stats[key.source].exchange_time(cx.now);
        let charts = &mut cx.market.charts;
        // The file knows less than was believed: somebody has worked on it, or it is damaged.
        let mut from = rows.slots.start;
        for part in rows.covered {
            charts.unarchive(key, from..part.start);
            from = part.end;
        }
        charts.unarchive(key, from..rows.slots.end);
        charts.ingest_archived(key, rows.slots, rows.candles, exchange);
        for _ in 0..TRIMS {
            charts.trim();
        }
    }

    /// Asks for the next page of a series, or is done with it.
    fn read_on(&mut self, key: SeriesKey, cx: &mut Context) {
        let Some(recall) = self.recalls.wanted.get_mut(&key) else {
            return;
        };
        let parts = hidden(&cx.market.charts, key, recall.slots.clone());
        let Some(slots) = parts.last().cloned() else {
            self.recalls.wanted.remove(&key);
            return;
        };
        recall.end = slots.end;
        recall.slots.end = slots.end;
        self.recalls.tickets += 1;
        recall.ticket = self.recalls.tickets;
        let series = name_of(key, cx);
        log::debug!(
            target: HISTORY,
            "read ticket={} source={} symbol={} interval={} slots={}..{}",
            recall.ticket,
            series.source,
            series.symbol,
            series.interval.name(),
            slots.start,
            slots.end
        );
        let read = Read {
            ticket: recall.ticket,
            series,
            slots,
            limit: ROWS,
            keep: Edge::Newest,
        };
        cx.actions.push_back(Action::Store(Job::Read(read)));
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
