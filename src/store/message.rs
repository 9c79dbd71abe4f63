//! What passes between the core and the disk thread: plain data both ways, and nothing that acts.
//!
//! Owns the words: [`Job`] goes down, [`Answer`] comes up, [`Batch`] is what a flush writes. A
//! batch that could not be written comes back with its answer; [`Batch::absorb`] puts what has
//! happened since on top of it, key by key, so that waiting for a full disk takes memory for what
//! changed and not for how often.
//!
//! It never names a file. Series are named by texts, because the numbers that the market gives
//! them do not survive the process.

use super::error::{OpenError, StoreError};
use crate::interval::Stored;
use crate::market::rows::Edge;
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a stored series is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
    /// Its interval.
    pub interval: Stored,
}

/// What a stored quote is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuoteName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
}

/// The last quote of a source, as it is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuote {
    /// The figures.
    pub ticker: Ticker,
    /// When the last successful poll that contained it was received.
    pub received_at: UnixMs,
}

/// What the disk thread is to do. Jobs are done in the order in which they were sent; only
/// evictions are put off, and cut up, so that nothing waits for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Tell what the file holds: [`Answer::Heads`] and [`Answer::Quotes`] in pieces, then
    /// [`Answer::Loaded`]. Candles are not among it: their number does not matter for the time
    /// that this takes.
    Load,
    /// Read candles: [`Answer::Rows`].
    Read(Read),
    /// Write, in one transaction: [`Answer::Written`].
    Write {
        /// The caller's number, which comes back with the answer.
        number: u64,
        /// What to write.
        batch: Box<Batch>,
    },
    /// Forget all slots of a series before this one, some rows at a time: [`Answer::Evicted`].
    Evict {
        /// Which series.
        series: SeriesName,
        /// The first slot that stays.
        before: i64,
    },
    /// Move the log into the file now: [`Answer::Checkpointed`]. It happens by itself every ten
    /// flushes.
    Checkpoint,
    /// Finish: everything sent before is done, the log is moved into the file and emptied, the
    /// file is closed: [`Answer::Stopped`]. Evictions under way are left for the next run.
    Stop,
}

/// Candles that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The caller's number, which comes back with the answer.
    pub ticket: u64,
    /// Which series.
    pub series: SeriesName,
    /// Which slots, half-open. Wider than what is stored is fine.
    pub slots: Range<i64>,
    /// Most candles.
    pub limit: usize,
    /// Which of them, when there are more.
    pub keep: Edge,
}

/// What the disk thread says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The file is open. Comes first, or after an [`Answer::Failed`] that has passed: what was
    /// loaded before still holds, since nobody else writes.
    Opened(Opened),
    /// The file cannot be used; see [`OpenError::is_refusal`] and [`OpenError::may_pass`]. All
    /// jobs are answered with [`StoreError::NotOpen`] from now on.
    Failed(OpenError),
    /// Some of the stored series, in the order of their creation.
    Heads(Vec<Head>),
    /// Some of the saved quotes.
    Quotes(Vec<(QuoteName, SavedQuote)>),
    /// All series and quotes have been told, or the error that cut it short.
    Loaded(Result<Loaded, StoreError>),
    /// The candles that were asked for.
    Rows {
        /// The number of the [`Read`].
        ticket: u64,
        /// They, or why not.
        result: Result<Rows, StoreError>,
    },
    /// What became of a batch.
    Written {
        /// The number of the [`Job::Write`].
        number: u64,
        /// On disk, synced; or as if it had never been sent.
        result: Result<Written, Unwritten>,
    },
    /// What became of an eviction. On an error some of the slots may be gone, the oldest first.
    Evicted {
        /// Which series.
        series: SeriesName,
        /// The first slot that stays.
        before: i64,
        /// Candles that left.
        result: Result<u64, StoreError>,
    },
    /// What became of [`Job::Checkpoint`].
    Checkpointed(Result<(), StoreError>),
    /// The thread has ended. An error is what kept the log from being emptied; nothing that was
    /// acknowledged is lost by that.
    Stopped(Result<(), StoreError>),
}

/// A file that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether it was made just now.
    pub created: bool,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// A stored series without its candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which series.
    pub series: SeriesName,
    /// Slots that the exchange has answered for: sorted, apart from each other.
    pub covered: Vec<Range<i64>>,
    /// Slot of the oldest candle.
    pub first: Option<i64>,
    /// Slot of the newest candle.
    pub last: Option<i64>,
    /// How many candles.
    pub count: u64,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Series told.
    pub series: usize,
    /// Quotes told.
    pub quotes: usize,
    /// Rows that make no sense, and were passed over.
    pub unsound: u64,
}

/// Candles that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Which series.
    pub series: SeriesName,
    /// Oldest first. Each is sound, aligned, and lies in a covered slot.
    pub candles: Vec<Candle>,
    /// Whether the limit cut some off.
    pub more: bool,
    /// Slots whose rows are no sound candles, or not what was written, and were passed over. What
    /// is known of them is nothing: whoever asked should forget them, to ask the exchange again.
    pub unsound: Vec<i64>,
}

/// A batch that is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Candles in slots that had none.
    pub inserted: u64,
    /// Candles whose numbers changed.
    pub updated: u64,
    /// Candles that were deleted.
    pub removed: u64,
    /// Size of the file in bytes, once the log has been moved into it.
    pub bytes: u64,
}

/// A batch that is not on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Why.
    pub error: StoreError,
    /// The batch, back in the caller's hands.
    pub batch: Box<Batch>,
}

/// Everything that a flush writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Changes by series.
    pub series: BTreeMap<SeriesName, Changes>,
    /// Quotes to save, each in place of what was saved before.
    pub quotes: BTreeMap<QuoteName, SavedQuote>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.series.values().all(Changes::is_empty) && self.quotes.is_empty()
    }

    /// What it holds, in candles, ranges and quotes: what a caller who keeps it should bound.
    pub fn weight(&self) -> usize {
        let series: usize = self.series.values().map(Changes::weight).sum();
        series + self.quotes.len()
    }

    /// The changes of a series.
    pub fn of(&mut self, series: &SeriesName) -> &mut Changes {
        // Nearly always it is there: only a new one costs a copy of the name.
        if !self.series.contains_key(series) {
            self.series.insert(series.clone(), Changes::default());
        }
        self.series.get_mut(series).expect("inserted just above")
    }

    /// Takes in what happened after it: writing the result does what writing both in their order
    /// would.
    pub fn absorb(&mut self, later: Batch) {
        for (name, changes) in later.series {
            self.series.entry(name).or_default().absorb(changes);
        }
        self.quotes.extend(later.quotes);
    }
}

/// What becomes of a range of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The exchange has answered for them. Candles that are stored there stay, unless
    /// [`Changes::candles`] says otherwise.
    Covered,
    /// Nothing is known of them any more, and candles that are stored there go.
    Forgotten,
    /// Forgotten, and answered for anew.
    Replaced,
}

/// What is to be changed of one series.
///
/// Invariant: ranges do not overlap, neighbours that touch have different fates; every candle lies
/// in a range that is covered or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// By first slot: the slot behind the last one, and what becomes of them.
    ranges: BTreeMap<i64, (i64, Fate)>,
    /// By slot; `None` where the exchange no longer has one.
    candles: BTreeMap<i64, Option<Candle>>,
}

impl Changes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What it holds, in candles and ranges.
    pub fn weight(&self) -> usize {
        self.candles.len() + self.ranges.len()
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<i64>, Fate)> {
        (self.ranges.iter()).map(|(start, (end, fate))| (*start..*end, *fate))
    }

    /// The candles by slot, in order; `None` where one is to be deleted.
    pub fn candles(&self) -> impl Iterator<Item = (i64, Option<&Candle>)> {
        (self.candles.iter()).map(|(slot, candle)| (*slot, candle.as_ref()))
    }

    /// The exchange has answered for these slots: what is stored in them stays as it is, but for
    /// these, each in one of the slots. `None`: the exchange no longer has that candle.
    pub fn answered(
        &mut self,
        slots: Range<i64>,
        candles: impl IntoIterator<Item = (i64, Option<Candle>)>,
    ) {
        self.paint(slots.clone(), Fate::Covered);
        for (slot, candle) in candles {
            debug_assert!(slots.contains(&slot), "a candle of an answer lies in it");
            self.candles.insert(slot, candle);
        }
    }

    /// Nothing is known of these slots any more.
    pub fn forget(&mut self, slots: Range<i64>) {
        self.drop_candles(&slots);
        self.paint(slots, Fate::Forgotten);
    }

    /// Takes in what happened after it.
    pub fn absorb(&mut self, later: Changes) {
        for (start, (end, fate)) in later.ranges {
            if fate != Fate::Covered {
                self.drop_candles(&(start..end));
            }
            self.paint(start..end, fate);
        }
        self.candles.extend(later.candles);
    }

    fn drop_candles(&mut self, slots: &Range<i64>) {
        self.candles.retain(|slot, _| !slots.contains(slot));
    }

    /// Gives the slots a fate, on top of the one they had.
    fn paint(&mut self, slots: Range<i64>, fate: Fate) {
        if slots.is_empty() {
            return;
        }
        let mut at = slots.start;
        for (start, end, old) in self.cut_out(&slots) {
            if at < start {
                self.lay(at, start, fate);
            }
            let both = match (old, fate) {
                (Fate::Forgotten | Fate::Replaced, Fate::Covered) => Fate::Replaced,
                _ => fate,
            };
            self.lay(start, end, both);
            at = end;
        }
        if at < slots.end {
            self.lay(at, slots.end, fate);
        }
        self.check();
    }

    /// Takes the slots out of the ranges; answers the parts, in order.
    fn cut_out(&mut self, slots: &Range<i64>) -> Vec<(i64, i64, Fate)> {
        let before = self.ranges.range(..slots.start).next_back();
        let reaches_in = before.filter(|(_, (end, _))| *end > slots.start);
        let inside = self.ranges.range(slots.clone());
        let touched: Vec<i64> = (reaches_in.into_iter().chain(inside))
            .map(|(start, _)| *start)
            .collect();
        let mut parts = Vec::with_capacity(touched.len());
        for start in touched {
            let (end, fate) = self.ranges.remove(&start).expect("found just above");
            if start < slots.start {
                self.ranges.insert(start, (slots.start, fate));
            }
            if end > slots.end {
                self.ranges.insert(slots.end, (end, fate));
            }
            parts.push((start.max(slots.start), end.min(slots.end), fate));
        }
        parts
    }

    /// Puts a range where there is none, and joins it with neighbours of the same fate.
    fn lay(&mut self, mut start: i64, mut end: i64, fate: Fate) {
        if let Some((left, (behind, same))) = self.ranges.range(..start).next_back()
            && *behind == start
            && *same == fate
        {
            start = *left;
        }
        if let Some((behind, same)) = self.ranges.get(&end).copied()
            && same == fate
        {
            self.ranges.remove(&end);
            end = behind;
        }
        self.ranges.insert(start, (end, fate));
    }

    /// The invariant.
    fn check(&self) {
        debug_assert!(self.ranges.iter().all(|(start, (end, _))| start < end));
        let pairs = self.ranges.iter().zip(self.ranges.iter().skip(1));
        debug_assert!(
            pairs
                .into_iter()
                .all(|((_, (end, fate)), (start, (_, next)))| end < start
                    || (end == start && fate != next))
        );
    }
}
