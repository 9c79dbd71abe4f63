//! Reports: what an exchange or the history file says about the slots of a series.
//!
//! This file has the types. It changes nothing.

use super::silence::{LEAST_PAGE, REREAD};
use crate::interval::Stored;
use crate::record::Candle;
use crate::time::Mono;
use std::ops::Range;

/// A candle as an exchange reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The candle.
    pub candle: Candle,
    /// True if the exchange says that it is not closed yet.
    pub is_forming: bool,
}

/// What a response changed in a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// Candles stored in slots that had none.
    pub written: usize,
    /// Stored candles whose numbers changed.
    pub updated: usize,
    /// Stored candles that the response confirmed as they are.
    pub unchanged: usize,
    /// Stored candles that were removed, because responses of the exchange prove that they are gone.
    pub removed: usize,
    /// Refused candles: not aligned, not requested, in the future, or with impossible numbers.
    pub rejected: usize,
    /// Old candles that were dropped: they left the kept window, or the coverage had too many
    /// ranges.
    pub evicted: usize,
}

impl IngestCounts {
    /// How many slots have got, changed or lost their candle.
    pub(super) fn changes(&self) -> usize {
        self.written + self.updated + self.removed
    }
}

/// A sound candle of a response.
pub(super) struct Found<'a> {
    pub(super) slot: i64,
    pub(super) candle: &'a Candle,
}

/// Who reports, and so what a slot without a candle means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The history file: nobody traded in a slot without a candle.
    History,
    /// Another node of the cluster: a slot without a candle is proven empty, and the candles are settled.
    Proven,
    /// Another node of the cluster: a slot without a candle is proven empty, and the exchange may still
    /// revise these slots.
    Revisable,
    /// A response of the exchange, or a slice of one.
    Exchange(CandleResponse),
}

/// What a whole response of an exchange proves about the requested slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandleResponse {
    /// The requested slots from the oldest sound row of the response to the newest. These two rows may be
    /// outside of the requested slots. A slot in between without a candle is empty.
    pub between: Range<i64>,
    /// True if the response was not cut, so that it could have had candles of all requested slots.
    pub is_whole: bool,
    /// The newest slot that is known to have a candle of this market or of another one. The exchange's candle
    /// service did not stand still before this slot.
    pub alive: i64,
    /// What the response comes from.
    pub service: CandleService,
    /// When the response was requested.
    pub at: Mono,
}

/// A candle service of an exchange. Each one may stand still while the other goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandleService {
    /// It has the newest candles.
    Newest,
    /// It has older candles.
    Archive,
}

/// All rows of a response, also rows outside of the requested slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllRows {
    /// The most rows that the response can have.
    pub most: usize,
    /// True if each row has a time.
    pub is_dated: bool,
    /// What the response comes from.
    pub service: CandleService,
    /// The number of the rows with a time.
    count: usize,
    /// From the slot of the oldest sound row to the slot after the newest.
    span: Range<i64>,
}

impl Default for AllRows {
    fn default() -> AllRows {
        let (start, end) = (i64::MAX, i64::MIN);
        let service = CandleService::Newest;
        AllRows { most: usize::MAX, is_dated: true, service, count: 0, span: start..end }
    }
}

impl AllRows {
    /// Takes in a row.
    pub fn note(&mut self, interval: Stored, candle: &Candle) {
        self.count += 1;
        if is_sound(interval, candle) {
            let slot = interval.slot_of(candle.open_time);
            self.span = self.span.start.min(slot)..self.span.end.max(slot + 1);
        }
    }

    /// True if the response could have had candles of all these slots. A full response that begins later was
    /// cut at its old end: some exchanges send the newest rows, whatever the request asks for.
    pub fn reaches(&self, asked: &Range<i64>) -> bool {
        self.is_dated && (self.count < self.most || self.span.start <= asked.start)
    }
}

impl CandleResponse {
    /// The response with these candles of the requested slots, requested at `at`.
    pub fn of(asked: &Range<i64>, candles: &[Reported], all: &AllRows, at: Mono) -> CandleResponse {
        let between = all.span.start.max(asked.start)..all.span.end.min(asked.end);
        let between = if between.is_empty() { 0..0 } else { between };
        let is_whole = candles.len() < LEAST_PAGE && all.reaches(asked);
        CandleResponse { alive: between.end - 1, between, is_whole, service: all.service, at }
    }

    /// The newest candles of the response, and the slots between them. The candle service may stand still
    /// since the newest candle. Then trades that are booked late are missing in the candles before it.
    pub(super) fn young(&self) -> Range<i64> {
        self.between.end - 1 - REREAD..self.between.end
    }
}

/// True if the candle's numbers are possible, and it begins at the beginning of a slot.
pub(super) fn is_sound(interval: Stored, candle: &Candle) -> bool {
    interval.open_of(interval.slot_of(candle.open_time)) == candle.open_time && candle.is_sound()
}

/// The candles in these slots. `found` is sorted by slot.
pub(super) fn found_in<'f, 'a>(found: &'f [Found<'a>], slots: &Range<i64>) -> &'f [Found<'a>] {
    let place = |end: i64| found.partition_point(|found| found.slot < end);
    &found[place(slots.start)..place(slots.end)]
}

/// The parts of these slots that have none of these candles.
pub(super) fn left_out(slots: Range<i64>, found: &[Found<'_>]) -> Vec<Range<i64>> {
    let mut from = slots.start;
    let ends = found_in(found, &slots).iter().map(|found| found.slot).chain([slots.end]);
    let parts = ends.map(|end| std::mem::replace(&mut from, end + 1)..end);
    parts.filter(|part| !part.is_empty()).collect()
}
