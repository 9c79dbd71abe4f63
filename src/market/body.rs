//! The body of a chart while it is built, row by row.
//!
//! Owns the bytes, their fingerprint, and the counts reported about the rows. The bytes are cut into pieces
//! of whole rows: one buffer that grows would be copied, and takes memory that is not there yet.

use super::chart::{ChartInfo, ChartPlan};
use super::window::FoundRows;
use crate::decimal::Decimal;
use crate::fingerprint::Fingerprint;
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::Arc;

/// Bytes after which a piece is cut.
const PIECE: usize = 16 * 1024;

/// The rows made so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ChartRows {
    pieces: Vec<(Arc<[u8]>, Range<usize>)>,
    /// The rows behind the pieces, with a comma after each.
    rest: Vec<u8>,
    pub(super) made_of: Fingerprint,
    /// The volume of the next row.
    pub(super) volume: Vec<u8>,
    pub(super) found: FoundRows,
    quoted: bool,
}

impl ChartRows {
    pub(super) fn new(quoted: bool) -> ChartRows {
        ChartRows { quoted, ..ChartRows::default() }
    }

    /// Appends the row of the bucket that begins with this slot and opens at this time, with this open,
    /// high, low and close, and the volume set before.
    pub(super) fn push(&mut self, (slot, open): (i64, UnixMs), prices: [&[u8]; 4]) {
        if self.rest.len() >= PIECE {
            self.cut();
        }
        let body = &mut self.rest;
        body.push(b'[');
        Decimal::from(open.0).write(body);
        for number in prices.into_iter().chain([&self.volume[..]]) {
            body.push(b',');
            if self.quoted {
                body.push(b'"');
                body.extend_from_slice(number);
                body.push(b'"');
            } else {
                body.extend_from_slice(number);
            }
        }
        body.extend_from_slice(b"],");
        let found = &mut self.found;
        found.rows += 1;
        found.begin.get_or_insert(slot);
        found.first.get_or_insert(slot);
        found.last = Some(slot);
    }

    /// The bytes of memory that they take.
    pub(super) fn held(&self) -> usize {
        let pieces = self.pieces.iter().map(|(bytes, _)| bytes.len() + size_of::<Range<usize>>());
        pieces.sum::<usize>() + self.rest.capacity()
    }

    fn cut(&mut self) {
        if !self.rest.is_empty() {
            let piece = Arc::from(&self.rest[..]);
            self.pieces.push((piece, 0..self.rest.len()));
            self.rest.clear();
        }
    }

    /// The chart of these rows, with what is reported beside them.
    pub(super) fn finish(mut self, info: ChartInfo) -> ChartPlan {
        self.cut();
        ChartPlan::of(self.pieces, self.made_of, info)
    }
}
