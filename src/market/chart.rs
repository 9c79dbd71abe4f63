//! Charts: what a client asks for, what is reported about a chart, and its body.
//!
//! This file has the types. `body.rs` finds stored rows, `builder.rs` makes other rows. `FoundRows::info` in
//! `window.rs` computes the information about the rows: for example, whether the chart is complete, and its
//! gaps.

use crate::fingerprint::Fingerprint;
use crate::interval::Interval;
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChartSpec {
    /// The interval of the candles.
    pub interval: Interval,
    /// Least open time. If it is set, the oldest candles from there on are served; otherwise the
    /// newest.
    pub from: Option<UnixMs>,
    /// Greatest open time.
    pub to: Option<UnixMs>,
    /// The most candles; at least 1.
    pub limit: usize,
    /// Fill gaps between candles with flat candles without volume.
    pub fill_previous: bool,
    /// Write decimals as JSON strings.
    pub quoted: bool,
}

/// What is reported about a chart besides its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartInfo {
    /// Candles in the body.
    pub rows: usize,
    /// Open time of the first candle.
    pub first: Option<UnixMs>,
    /// Open time of the last candle.
    pub last: Option<UnixMs>,
    /// Buckets of the answered range that are known to have no candle: the exchange was asked for all their
    /// slots.
    pub gaps: u64,
    /// True if every closed slot of the requested range is covered, however old. The range goes from `from`,
    /// or the oldest row, to `to`, or now. If it ends now, the exchange's clock must be known too.
    pub complete: bool,
    /// True if all candles are settled: no candle will be requested again.
    pub settled: bool,
    /// The oldest kept slot whose candle is in the chart, or would be in it if there were one.
    pub oldest: i64,
    /// Open time of the newest candle of this interval that the exchange has confirmed as closed.
    pub last_closed: Option<UnixMs>,
    /// Where the next page begins, if the limit cut the range, or if the chart ends before slots that nobody
    /// has read.
    pub next_from: Option<UnixMs>,
}

/// Shared bytes of whole rows, with a comma after each row, and the range of these bytes that
/// belongs to the chart.
pub(super) type Pieces = Vec<(Arc<[u8]>, Range<usize>)>;

/// A chart body: stored rows, found and measured but not copied, or rows that a
/// [`ChartBuilder`](super::builder::ChartBuilder) has made. A body does not change when the series does.
#[derive(Clone, Debug)]
pub struct ChartBody {
    /// All bytes except the outer brackets.
    pieces: Pieces,
    body_len: usize,
    /// The fingerprint of the body.
    pub made_of: Fingerprint,
    /// What is reported besides the rows.
    pub info: ChartInfo,
    /// The text of `info`, as the first caller has written it.
    written: OnceLock<Box<[u8]>>,
}

/// The last body of a series.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// What the body depends on: the request, the kept window, the version of the series, and the newest slot
    /// that had begun. Only this slot depends on the time.
    pub(super) made_for: (ChartSpec, i64, u64, i64),
    /// When it was made, in seconds.
    pub(super) second: u32,
    pub(super) body: Arc<ChartBody>,
}

impl ChartBody {
    /// A chart of these pieces. Each row is followed by a comma, the last one too.
    pub(super) fn of(mut pieces: Pieces, made_of: Fingerprint, info: ChartInfo) -> ChartBody {
        // The closing bracket replaces the last comma.
        if let Some((_, part)) = pieces.last_mut() {
            part.end -= 1;
        }
        let bytes: usize = pieces.iter().map(|(_, part)| part.len()).sum();
        ChartBody { pieces, body_len: bytes + 2, made_of, info, written: OnceLock::new() }
    }

    /// The text of `info`. The first caller writes it.
    pub fn written(&self, write: impl FnOnce() -> Vec<u8>) -> &[u8] {
        self.written.get_or_init(|| write().into_boxed_slice())
    }

    /// The length of the body in bytes.
    pub fn body_len(&self) -> usize {
        self.body_len
    }

    /// Appends a copy of the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.body_len);
        out.push(b'[');
        for (rows, part) in &self.pieces {
            out.extend_from_slice(&rows[part.clone()]);
        }
        out.push(b']');
    }

    /// The parts of the body between `[` and `]`, oldest first. Each part has whole rows: shared bytes, and
    /// the range that belongs to the body. They are sent without a copy, and never change.
    pub fn pieces(&self) -> &[(Arc<[u8]>, Range<usize>)] {
        &self.pieces
    }
}
