//! Candles on their way back from the file.
//!
//! [`Reads`] owns which slots of which series are being read, one page of a series at a time, the newest
//! first. Clients that request the same candles share one read. [`Reads`] keeps no candle: a page goes into
//! its series, from which charts are made.

use super::writer::name_of;
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{DiskJob, ReadJob, Rows, SeriesName, StoreError};
use crate::log_targets::{HISTORY, quoted};
use crate::market::{Charts, SeriesKey};
use crate::record::Edge;
use std::collections::BTreeMap;
use std::ops::Range;

/// Candles of one page: rendering them takes some 200 microseconds of the loop.
const ROWS: usize = 512;

/// Calls of [`Charts::trim`] after each page: they evict more than a page holds.
const TRIMS: usize = 2;

/// Series that may be read at once. Behind this many pages, a client would wait for a second. The queue of
/// the disk thread has room for these reads, a write and some loads, so it is never full.
const SERIES: usize = 64;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Reads {
    wanted: BTreeMap<SeriesKey, SeriesRead>,
    tickets: u64,
    /// True if the last page could not be read.
    is_failing: bool,
}

/// What came of a request for candles from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStart {
    /// Some of the candles are being read.
    Begun,
    /// The file holds none of the candles that memory lacks.
    Nothing,
    /// What the file holds of the source is not loaded yet. The caller must ask again after the load.
    NotLoaded,
    /// Too many reads are under way.
    Refused,
}

#[derive(Debug)]
struct SeriesRead {
    /// From the oldest to the newest slot that clients wait for and that is not read yet.
    slots: Range<i64>,
    /// The ticket of the page that is being read.
    ticket: u64,
    /// Where that page ends.
    end: i64,
}

impl Reads {
    /// Reads the slots of this range that are archived and not in memory. The series must be open.
    pub fn read(&mut self, key: SeriesKey, slots: &Range<i64>, cx: &mut Context) -> ReadStart {
        let parts = only_archived(&cx.market.charts, key, slots.clone());
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return ReadStart::Nothing;
        };
        let slots = first.start..last.end;
        if let Some(read) = self.wanted.get_mut(&key) {
            read.slots = read.slots.start.min(slots.start)..read.slots.end.max(slots.end);
            return ReadStart::Begun;
        }
        if self.wanted.len() >= SERIES {
            return ReadStart::Refused;
        }
        let read = SeriesRead { ticket: 0, end: slots.end, slots };
        self.wanted.insert(key, read);
        self.next_page(key, cx);
        ReadStart::Begun
    }

    /// True if some of these slots are being read.
    pub fn is_reading(&self, key: SeriesKey, slots: &Range<i64>) -> bool {
        let read = self.wanted.get(&key);
        read.is_some_and(|it| it.slots.start < slots.end && slots.start < it.slots.end)
    }

    /// A page has come: puts it into its series, and reads the next. Returns the series, whose clients
    /// may look again, and its slots with invalid rows.
    pub fn page_read(
        &mut self,
        ticket: u64,
        result: Result<Rows, StoreError>,
        cx: &mut Context,
    ) -> Option<(SeriesKey, Vec<i64>)> {
        let mut wanted = self.wanted.iter_mut();
        let (key, read) = wanted.find(|(_, read)| read.ticket == ticket)?;
        let key = *key;
        let mut rows = match result {
            Ok(rows) if !rows.slots.is_empty() => rows,
            result => {
                if let Err(error) = result {
                    self.failed(key, &error, cx);
                }
                self.wanted.remove(&key);
                return Some((key, Vec::new()));
            }
        };
        self.is_failing = false;
        log::debug!(target: HISTORY, "read done ticket={ticket} candles={}", rows.candles.len());
        // The next page ends where this one begins, so the read comes to its end. If a client has requested
        // newer candles meanwhile, the read starts again from the newer ones.
        if read.slots.end <= read.end {
            read.slots.end = rows.slots.start;
        }
        let unsound = std::mem::take(&mut rows.unsound);
        for slot in &unsound {
            let charts = &mut cx.market.charts;
            charts.unarchive(key, *slot..slot.saturating_add(1));
        }
        ingest(key, rows, cx);
        self.next_page(key, cx);
        Some((key, unsound))
    }

    /// Logs that a page could not be read, once until a page can be read again.
    fn failed(&mut self, key: SeriesKey, error: &StoreError, cx: &Context) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let SeriesName { source, symbol, interval } = name_of(key, cx);
            log::warn!(
                target: HISTORY,
                "read failed source={source} symbol={symbol} interval={} error={}",
                interval.name(),
                quoted(error)
            );
        }
    }

    /// Requests the next page of a series, or ends its read.
    fn next_page(&mut self, key: SeriesKey, cx: &mut Context) {
        let Some(read) = self.wanted.get_mut(&key) else {
            return;
        };
        let parts = only_archived(&cx.market.charts, key, read.slots.clone());
        let Some(slots) = parts.last().cloned() else {
            self.wanted.remove(&key);
            return;
        };
        read.end = slots.end;
        read.slots.end = slots.end;
        self.tickets += 1;
        read.ticket = self.tickets;
        let series = name_of(key, cx);
        log::debug!(
            target: HISTORY,
            "read ticket={} source={} symbol={} interval={} from={} to={}",
            read.ticket,
            series.source,
            series.symbol,
            series.interval.name(),
            series.interval.open_of(slots.start),
            series.interval.open_of(slots.end)
        );
        let read = ReadJob { ticket: read.ticket, series, slots, limit: ROWS, keep: Edge::Newest };
        cx.actions.push_back(Action::Store(DiskJob::Read(read)));
    }
}

/// Puts a page into its series. What the file does not cover is requested from the exchange again.
fn ingest(key: SeriesKey, rows: Rows, cx: &mut Context) {
    let exchange = cx.exchange_time(key.source);
    let charts = &mut cx.market.charts;
    // If the file covers less than was assumed, another program has changed it, or it is damaged.
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

/// The parts of these slots that are archived and not in memory, in order.
fn only_archived(charts: &Charts, key: SeriesKey, slots: Range<i64>) -> Vec<Range<i64>> {
    charts.get(key).map_or(Vec::new(), |series| series.hidden(slots))
}
