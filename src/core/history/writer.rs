//! Batches on their way to the file. Also the names of series and quotes in the file, and their keys in the
//! core: series and quotes of a source that is no longer configured have no key. They stay in the file, and
//! are not served.
//!
//! [`Writer`] owns the batch of changes that is gathered for the next flush, what is known of the batch that
//! is being written, and the pace at which a failing disk is tried. It never drops a batch that comes back,
//! except if the file is given up.
//!
//! ```text
//! gathered -> sent -> written: its ranges are archived
//!                  -> not written: it is gathered again
//! ```

use super::file_state::note_size;
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Batch, Changes, DiskJob, Extent, QuoteName, SeriesName, StoreError, Written};
use crate::log_targets::{HISTORY, quoted};
use crate::market::{SeriesKey, SourceId, SymbolId};
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// From the first change to its flush: what a whole round of polls brings shares one transaction, and
/// a closed candle is on disk well within two seconds.
pub const FLUSH: Duration = Duration::from_secs(1);

/// First pause after a write that failed; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause after a write that failed: a disk with room again is noticed this soon.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A write that takes longer counts as failed, until it ends.
const STALLED: Duration = Duration::from_secs(10);

/// The most weight of the changes that wait for the disk, or are being written: some 10 MB. Above it, no
/// candles are requested while the disk works. So no requested candle has to be dropped: at most one page for
/// each upstream connection still comes. While the disk fails, changes above this weight are left out, and
/// are written from memory later ([`super::jobs`]).
pub const PENDING: usize = 50_000;

/// Weight from which on a batch is written at once, not after [`FLUSH`]: some 50 ms of the disk
/// thread, for which reads wait.
pub const HEAVY: usize = PENDING / 8;

/// Series that one slice archives: some 0.1 ms.
const SERIES_A_SLICE: usize = 64;

/// Which candles may be requested from an exchange, as far as the disk keeps up. A greater pace
/// allows more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// None.
    Hold,
    /// Candles that clients wait for, and the newest: the disk fails, and the service goes on.
    NewestAndAsked,
    /// All.
    Free,
}

/// Time between two looks for candles that are older than the kept window.
pub const SWEEP: Duration = Duration::from_secs(60);

/// Slots of a series are evicted once the oldest one is past the window by a 64th of the window. So this
/// happens now and then, and not every minute.
const SLACK: i64 = 64;

/// Slots that one batch evicts: some 20 ms of the disk thread, for which reads wait.
pub const SLOTS_A_BATCH: i64 = 4096;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Writer {
    /// The changes that are gathered for the next flush.
    pub batch: Box<Batch>,
    /// The batch that is being written. The disk thread has it.
    writing: Option<Writing>,
    /// How many batches were sent.
    pub sent: u64,
    flush_at: Option<Mono>,
    /// Failures in a row.
    failures: u32,
}

#[derive(Debug)]
struct Writing {
    weight: usize,
    /// When it counts as stalled. `None`: it counts as stalled already.
    stalls_at: Option<Mono>,
}

impl Writer {
    /// True if another change can be gathered.
    pub fn has_room(&self) -> bool {
        self.pending() < PENDING
    }

    /// Weight of the changes that wait for the disk, or are being written.
    pub fn pending(&self) -> usize {
        let writing = self.writing.as_ref().map_or(0, |writing| writing.weight);
        writing + self.batch.weight()
    }

    /// True if the last write failed, or takes very long.
    pub fn is_failing(&self) -> bool {
        let is_stalled = self.writing.as_ref().is_some_and(|writing| writing.stalls_at.is_none());
        self.has_failed() || is_stalled
    }

    /// True if the last write failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// True if a batch is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// The gathered changes of a series. A flush is due.
    pub fn changes(&mut self, key: SeriesKey, cx: &Context) -> &mut Changes {
        self.flush_soon(cx.now);
        self.flush_at.get_or_insert(cx.now.mono + FLUSH);
        self.batch.of(&name_of(key, cx))
    }

    /// A flush is due, unless the batch is empty: at once, if it is heavy.
    pub fn flush_soon(&mut self, now: Now) {
        if self.failures == 0 && self.batch.weight() >= HEAVY {
            self.flush_at = Some(now.mono);
        }
        if !self.batch.is_empty() {
            self.flush_at.get_or_insert(now.mono + FLUSH);
        }
    }

    /// When [`Writer::check_stall`] or [`Writer::flush`] is wanted.
    pub fn due(&self, may_flush: bool) -> Option<Mono> {
        match &self.writing {
            Some(writing) => writing.stalls_at,
            None => self.flush_at.filter(|_| may_flush),
        }
    }

    /// True if a flush is due.
    pub fn is_due(&self, now: Now) -> bool {
        self.flush_at.is_some_and(|at| at <= now.mono)
    }

    /// Sends the gathered changes to the disk thread, which has no other batch.
    pub fn flush(&mut self, cx: &mut Context) {
        self.flush_at = None;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            // The batch names only series that have not changed.
            return;
        }
        self.sent += 1;
        let (number, weight) = (self.sent, batch.weight());
        self.writing = Some(Writing { weight, stalls_at: Some(cx.now.mono + STALLED) });
        log::debug!(
            target: HISTORY,
            "batch sent number={number} series={} changes={weight}",
            batch.series.len()
        );
        cx.actions.push_back(Action::Store(DiskJob::Write(batch)));
    }

    /// A batch is on disk.
    pub fn written(&mut self, written: &Written, cx: &mut Context) {
        let is_slow = self.writing.take().is_some_and(|writing| writing.stalls_at.is_none());
        log::debug!(
            target: HISTORY,
            "batch written number={} inserted={} updated={} bytes={}",
            self.sent,
            written.inserted,
            written.updated,
            written.bytes
        );
        note_size(written.bytes, cx);
        let status = &mut cx.stats.history;
        status.inserted += written.inserted;
        status.updated += written.updated;
        status.evicted += written.evicted;
        status.write_failed = false;
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 || is_slow {
            log::info!(target: HISTORY, "write works again failures={failures}");
        }
    }

    /// A batch could not be written: what was gathered meanwhile goes on top of it.
    pub fn unwritten(&mut self, batch: Box<Batch>, error: &StoreError, cx: &mut Context) {
        self.writing = None;
        cx.stats.history.persist_errors += 1;
        fails(format!("cannot be written: {error}"), cx);
        if self.failures == 0 {
            log::error!(target: HISTORY, "write failed retrying=true error={}", quoted(error));
        }
        self.failures = self.failures.saturating_add(1);
        let failures = self.failures;
        log::debug!(target: HISTORY, "batch failed failures={failures} error={}", quoted(error));
        let later = std::mem::replace(&mut self.batch, batch);
        self.batch.absorb(*later);
        let pause = RETRY * 2u32.saturating_pow((failures - 1).min(16));
        self.flush_at = Some(cx.now.mono + pause.min(RETRY_MAX));
    }

    /// Counts a write that takes very long as failed.
    pub fn check_stall(&mut self, cx: &mut Context) {
        let stalls_at = self.writing.as_mut().map(|writing| &mut writing.stalls_at);
        let is_late = |at: &mut Mono| *at <= cx.now.mono && !cx.is_behind;
        if stalls_at.is_some_and(|at| at.take_if(is_late).is_some()) {
            log::error!(target: HISTORY, "write stalled after_s={}", STALLED.as_secs());
            fails("the disk takes very long to write".to_string(), cx);
        }
    }

    /// Archives some of the series that a batch has written, if the file is still readable. Returns true if
    /// these were the last ones.
    pub fn archive(
        &self,
        batch: &Batch,
        extents: &mut Vec<(SeriesName, Extent)>,
        is_readable: bool,
        cx: &mut Context,
    ) -> bool {
        let left = extents.len().saturating_sub(SERIES_A_SLICE);
        for (name, extent) in extents.drain(left..) {
            let (Some(key), Some(written)) = (key_of(&name, cx), batch.series.get(&name)) else {
                continue;
            };
            cx.stats.history.stored.insert(key, extent);
            if !is_readable {
                continue;
            }
            let current = key.interval.slot_of(cx.exchange_time(key.source));
            let charts = &mut cx.market.charts;
            written.forgotten().for_each(|slots| charts.unarchive(key, slots));
            // If the clock went back since, slots in the future are hidden, and are written once more.
            let ended = |slots: Range<i64>| slots.start..slots.end.min(current);
            written.covered().for_each(|slots| charts.archive(key, ended(slots)));
            // Slots that have changed since are archived only after that change is written, too.
            let later = self.batch.series.get(&name).into_iter().flat_map(Changes::ranges);
            later.for_each(|slots| charts.unarchive(key, slots));
        }
        left == 0
    }

    /// Gathered changes are not archived: the file lacks them.
    pub fn unarchive(&self, cx: &mut Context) {
        for (name, changes) in &self.batch.series {
            if let Some(key) = key_of(name, cx) {
                changes.ranges().for_each(|slots| cx.market.charts.unarchive(key, slots));
            }
        }
    }

    /// Nothing is written any more.
    pub fn give_up(&mut self, cx: &mut Context) {
        *self.batch = Batch::default();
        self.flush_at = None;
        cx.stats.history.write_failed = false;
    }

    /// Evicts slots that are older than the window, with the batch. Returns true if there are more. The slots
    /// are not archived from now on. The candles of a source that has ended stay in the file.
    pub fn evict(&mut self, cx: &mut Context) -> bool {
        let charts = &cx.market.charts;
        let (mut leaving, mut left) = (Vec::new(), SLOTS_A_BATCH);
        let archives = charts.archives();
        for (key, archived) in archives.filter(|(key, _)| !cx.stats[key.source].has_ended) {
            let keep = charts.keep(key.interval);
            // An exchange's clock may be years ahead, and so may this machine's: slots are evicted only if
            // they are old by both. The clock of the demo exchange is given, and counts as it is.
            let latest = match (cx.given_clock(key.source), cx.stats[key.source].clock) {
                (Some(_), _) => UnixMs(i64::MAX),
                (None, Some(_)) => cx.now.unix,
                (None, None) => continue,
            };
            let present = cx.exchange_time(key.source).min(latest);
            let before = key.interval.slot_of(present) - keep;
            if let Some(first) = archived.first().filter(|first| *first < before - keep / SLACK) {
                let end = before.min(first + left);
                left -= end - first;
                leaving.push((key, end));
            }
            if left == 0 {
                break;
            }
        }
        for (key, end) in leaving {
            cx.market.charts.unarchive(key, i64::MIN..end);
            self.batch.of(&name_of(key, cx)).evict(end);
        }
        left == 0
    }
}

/// The reason in health: why the file cannot be used; else why it cannot be written.
fn fails(why: String, cx: &mut Context) {
    let status = &mut cx.stats.history;
    if !status.unusable {
        (status.write_failed, status.why) = (true, why);
    }
}

/// The key of a series.
pub fn key_of(name: &SeriesName, cx: &mut Context) -> Option<SeriesKey> {
    let (source, symbol) = market_of(&name.source, &name.symbol, cx)?;
    Some(SeriesKey { source, symbol, interval: name.interval })
}

/// The numbers of a source and of a symbol.
pub fn market_of(source: &str, symbol: &str, cx: &mut Context) -> Option<(SourceId, SymbolId)> {
    let at = cx.config.sources.iter().position(|it| it.id == source)?;
    Some((SourceId(at as u16), cx.market.catalog.number_of(symbol)?))
}

/// The name of a series.
pub fn name_of(key: SeriesKey, cx: &Context) -> SeriesName {
    let QuoteName { source, symbol } = quote_name(key.source, key.symbol, cx);
    SeriesName { source, symbol, interval: key.interval }
}

/// The name of a quote, or of the rules of a market.
pub fn quote_name(source: SourceId, symbol: SymbolId, cx: &Context) -> QuoteName {
    QuoteName {
        source: cx.config.sources[source.index()].id.as_str().into(),
        symbol: cx.market.catalog.name(symbol).as_str().into(),
    }
}
