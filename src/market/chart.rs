//! A chart: what a client asks for, what is said about it, and a body of stored rows.
//!
//! Owns the types only: [`ChartPlan::new`] is in `plan.rs`.

use crate::fingerprint::Fingerprint;
use crate::interval::Interval;
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChartSpec {
    /// Of the candles.
    pub interval: Interval,
    /// Least open time. Given: the oldest candles from there; not: the newest ones.
    pub from: Option<UnixMs>,
    /// Greatest open time.
    pub to: Option<UnixMs>,
    /// Most candles. At least 1.
    pub limit: usize,
    /// Flat candles without volume where the exchange had none, between those it had.
    pub fill_previous: bool,
    /// Decimals as JSON strings.
    pub quoted: bool,
}

/// What is said about a chart beside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartInfo {
    /// Candles in the body.
    pub rows: usize,
    /// Open time of the first one.
    pub first: Option<UnixMs>,
    /// Open time of the last one.
    pub last: Option<UnixMs>,
    /// Buckets of the answered range that the exchange was asked for and had no candle.
    pub gaps: u64,
    /// Whether the exchange has answered for every closed slot of the asked range, however old: from
    /// `from`, or the oldest row, up to `to`, or now.
    pub complete: bool,
    /// Whether none of them is read again.
    pub settled: bool,
    /// The closed slots that the answer depends on: the asked range within what is kept; without
    /// a `from`, the newest `limit` buckets or down to the first row, whichever goes further. What
    /// is missing of it in [`Series::covered`] is worth fetching.
    pub depends: Range<i64>,
    /// Open time of the newest candle of this interval that the exchange has confirmed as
    /// closed. A later one is forming or provisional.
    pub last_closed: Option<UnixMs>,
    /// Where the next page begins, when a range was cut by the limit.
    pub next_from: Option<UnixMs>,
    /// Whether a row is provisional or forming.
    pub has_forming: bool,
}

/// A chart of stored rows as they are: found, measured, and not copied. It is a chart of the
/// moment at which it was made, whatever becomes of the series.
#[derive(Clone, Debug)]
pub struct ChartPlan {
    /// All but the brackets around them.
    pub(super) pieces: Vec<(Arc<[u8]>, Range<usize>)>,
    pub(super) body_len: usize,
    pub(super) made_of: Fingerprint,
    pub(super) info: ChartInfo,
    /// What is said beside it, as somebody has written it.
    pub(super) written: OnceLock<Box<[u8]>>,
}

/// The last plan that was made of a series, and all that it was made for.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) spec: ChartSpec,
    pub(super) keep: i64,
    /// Of the series.
    pub(super) version: u64,
    /// The newest slot that had begun: what else a moment says does not count.
    pub(super) present: i64,
    pub(super) second: u32,
    pub(super) plan: Arc<ChartPlan>,
}

impl ChartPlan {
    /// What is said beside the rows, written once by whoever asks for it first.
    pub fn written(&self, write: impl FnOnce() -> Vec<u8>) -> &[u8] {
        self.written.get_or_init(|| write().into_boxed_slice())
    }

    /// What is said beside the rows.
    pub fn info(&self) -> &ChartInfo {
        &self.info
    }

    /// What the body is made of.
    pub fn made_of(&self) -> Fingerprint {
        self.made_of
    }

    /// Length of the body in bytes.
    pub fn body_len(&self) -> usize {
        self.body_len
    }

    /// Appends the body: a copy of it.
    #[cfg(test)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.body_len);
        out.push(b'[');
        for (rows, part) in &self.pieces {
            out.extend_from_slice(&rows[part.clone()]);
        }
        out.push(b']');
    }

    /// The parts of the body between `[` and `]`, oldest first: shared bytes, and which of them
    /// belong to it. To be sent without being copied; they stay as they are for as long as
    /// somebody holds them.
    pub fn pieces(&self) -> &[(Arc<[u8]>, Range<usize>)] {
        &self.pieces
    }
}
