//! The archive: what the core has in the history file, and what is on its way there or back.
//!
//! Owns the batch of changes that is gathered for the next flush, the candles that are being read
//! back for clients, and the judgement of how the file does. It talks to the disk thread by
//! [`Action::Store`] and [`Archive::answered`] alone, and never waits for it: with a file that fails,
//! or with none, the core goes on from memory.
//!
//! It never decides what is fetched; [`super::poller`] asks the charts what is archived.
//!
//! ```text
//! Off                               without a file
//! Loading -> On <-> Failing         the file cannot be used for now: every flush tries again
//!                -> GivenUp         it is damaged: nothing is written to it any more
//! On -> Closing -> Closed           at the end
//! ```
//!
//! What is written is [archived](crate::market::Series::archived) from the moment of its
//! acknowledgement on, and not before: what is lost with the process is unknown afterwards, and so
//! fetched again.

mod names;
mod quotes;
mod recall;

use super::Action;
use super::status::{HistoryStatus, SourceStatus};
use crate::config::Config;
use crate::history::{
    Answer, Batch, Changes, Fate, Head, Job, OpenError, SeriesName, StoreError, Unwritten, Written,
};
use crate::market::{Catalog, Market, SeriesKey, SourceId};
use crate::time::{Mono, Now};
use names::{key_of, name_of, ranges_of};
use quotes::SavedQuotes;
use recall::Recalls;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

pub use recall::Recalled;

/// From the first change to its flush: what a whole round of polls brings shares one transaction,
/// and a closed candle is on disk well within two seconds.
const FLUSH: Duration = Duration::from_secs(1);

/// First pause after a write that failed; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause after a write that failed: a disk with room again is noticed this soon.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Candles, ranges and quotes that wait for a disk that fails: some 10 MB. What comes beyond that is
/// not archived, and fetched again when it is wanted.
const PENDING: usize = 50_000;

/// Between two looks for candles that are older than what is kept.
const SWEEP: Duration = Duration::from_secs(60);

/// What is out of the window stays until there is this part of the window of it, so that a series
/// is touched now and then and not every minute.
const SLACK: i64 = 64;

/// Series that may be in eviction at once.
const EVICTIONS: usize = 48;

/// For the last flush and the closing of the file, once the clients are gone.
const CLOSING: Duration = Duration::from_secs(10);

/// See the module's page.
#[derive(Debug)]
pub struct Archive {
    state: State,
    loaded: bool,
    batch: Box<Batch>,
    /// What is being written, as ranges: the candles are with the disk thread.
    writing: Option<Writing>,
    writes: u64,
    flush_at: Option<Mono>,
    failures: u32,
    /// Size of the file.
    bytes: u64,
    recalls: Recalls,
    quotes: SavedQuotes,
    evicting: BTreeSet<SeriesKey>,
    sweep_at: Mono,
    close_by: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Loading,
    On,
    Failing,
    GivenUp,
    Closing,
    Closed,
}

#[derive(Debug)]
struct Writing {
    number: u64,
    ranges: Vec<(SeriesKey, Range<i64>, Fate)>,
}

/// The parts of the core that the archive works on.
pub struct Shelf<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Where candles and quotes come from and go to.
    pub market: &'a mut Market,
    /// The public record.
    pub status: &'a mut HistoryStatus,
    /// Those of the sources, whose clocks count.
    pub sources: &'a [SourceStatus],
    /// What the driver is to do.
    pub actions: &'a mut VecDeque<Action>,
}

impl Archive {
    /// Without a file.
    pub fn new(now: Now) -> Archive {
        Archive {
            state: State::Off,
            loaded: false,
            batch: Box::default(),
            writing: None,
            writes: 0,
            flush_at: None,
            failures: 0,
            bytes: 0,
            recalls: Recalls::default(),
            quotes: SavedQuotes::new(now.mono),
            evicting: BTreeSet::new(),
            sweep_at: now.mono + SWEEP,
            close_by: None,
        }
    }

    /// There is a file, which the disk thread has opened, or has tried to.
    pub fn begin(&mut self, opened: Answer, shelf: &mut Shelf<'_>, now: Now) {
        self.state = State::Failing;
        shelf.status.enabled = true;
        self.answered(opened, shelf, now);
    }

    /// Whether what the file holds is still to be told: nothing is asked of an exchange that may be
    /// in it.
    pub fn is_loading(&self) -> bool {
        self.state == State::Loading
    }

    /// Whether what leaves memory of this series can be had again from the file.
    pub fn keeps(&self, key: SeriesKey, config: &Config, catalog: &Catalog) -> bool {
        self.state == State::On && self.has_room(key, config, catalog)
    }

    /// Whether changes of this series are taken: what waits for the disk is bounded, and the file
    /// grows for clients' wishes only so far.
    fn has_room(&self, key: SeriesKey, config: &Config, catalog: &Catalog) -> bool {
        let is_small = self.bytes < config.limits.history_bytes;
        self.batch.weight() < PENDING && (is_small || catalog.is_named(key.source, key.symbol))
    }

    /// A source's market list has come: restored quotes of what it tracks are put back.
    pub fn listed(&mut self, source: SourceId, market: &mut Market) {
        self.quotes.listed(source, market);
    }

    /// Whether the file is closed, or there was none.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Off | State::Closed)
    }

    /// What is to be changed of a series with the next flush. `None`: nothing is written now.
    pub fn changes(
        &mut self,
        key: SeriesKey,
        config: &Config,
        catalog: &Catalog,
        now: Now,
    ) -> Option<&mut Changes> {
        let writes = matches!(self.state, State::Loading | State::On | State::Failing);
        if !writes || !self.has_room(key, config, catalog) {
            return None;
        }
        self.flush_at.get_or_insert(now.mono + FLUSH);
        Some(self.batch.of(&name_of(key, config, catalog)))
    }

    /// When [`Archive::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        match self.state {
            State::Off | State::Closed => None,
            State::Closing => self.close_by,
            _ => {
                let flush = self.flush_at.filter(|_| self.writing.is_none());
                [flush, Some(self.sweep_at), self.quotes.due(), self.close_by]
                    .into_iter()
                    .flatten()
                    .min()
            }
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, shelf: &mut Shelf<'_>, now: Now) {
        if self.is_closed() {
            return;
        }
        if self.close_by.is_some_and(|by| by <= now.mono) {
            log::error!("history: the disk takes too long: what was not written yet is lost");
            self.state = State::Closed;
            return;
        }
        if self.sweep_at <= now.mono {
            self.sweep_at = now.mono + SWEEP;
            self.evict(shelf, now);
        }
        self.quotes.begin(now);
        if self.flush_at.is_some_and(|at| at <= now.mono) {
            self.flush(shelf);
        }
    }

    /// Whether [`Archive::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.quotes.is_saving()
    }

    /// Gathers one slice of the quotes that are to be saved.
    pub fn work(&mut self, shelf: &mut Shelf<'_>, now: Now) {
        if self.batch.weight() >= PENDING || self.state == State::GivenUp {
            return self.quotes.skip(now);
        }
        if self.quotes.gather(shelf, &mut self.batch) {
            self.flush_at.get_or_insert(now.mono + FLUSH);
        }
    }

    /// Begins the end: the last quotes are saved, and what waits is written at once.
    pub fn shut_down(&mut self, shelf: &mut Shelf<'_>, now: Now) {
        if self.is_closed() || self.close_by.is_some() {
            return;
        }
        self.close_by = Some(now.mono + shelf.config.limits.shutdown + CLOSING);
        if self.state != State::GivenUp {
            self.quotes.gather_all(shelf, &mut self.batch);
        }
        self.flush(shelf);
    }

    /// Closes the file, when nobody brings anything any more. Goes on with the answers.
    pub fn close(&mut self, shelf: &mut Shelf<'_>) {
        if self.is_closed() || self.state == State::Closing || self.writing.is_some() {
            return;
        }
        if !self.batch.is_empty() && self.failures == 0 && self.state != State::GivenUp {
            return self.flush(shelf);
        }
        if !self.batch.is_empty() {
            let left = self.batch.weight();
            log::error!("history: {left} changes could not be written, and are lost");
        }
        self.state = State::Closing;
        shelf.actions.push_back(Action::Store(Job::Stop));
    }

    /// Takes in what the disk thread says. Whether clients may have waited for it.
    pub fn answered(&mut self, answer: Answer, shelf: &mut Shelf<'_>, now: Now) -> bool {
        match answer {
            Answer::Opened(opened) => {
                self.bytes = opened.bytes;
                shelf.status.bytes = opened.bytes;
                self.opened(shelf);
            }
            Answer::Failed(error) => self.failed(&error, shelf),
            Answer::Heads(heads) => heads.into_iter().for_each(|head| take_head(head, shelf)),
            Answer::Quotes(list) => self.quotes.restore(list, shelf),
            Answer::Loaded(result) => self.load_ended(result.map(|loaded| {
                let (series, quotes) = (loaded.series, loaded.quotes);
                log::info!("history: {series} series and {quotes} quotes are on disk");
                if loaded.unsound > 0 {
                    let unsound = loaded.unsound;
                    log::warn!("history: {unsound} rows make no sense, and are passed over");
                }
            })),
            Answer::Rows { ticket, result } => return self.recalled(ticket, result, shelf, now),
            Answer::Written { number, result } => self.written(number, result, shelf, now),
            Answer::Evicted {
                series,
                before,
                result,
            } => self.evicted(&series, before, result, shelf),
            Answer::Stopped(result) => {
                if let Err(error) = result {
                    log::warn!("history: the log is left beside the file: {error}");
                }
                self.state = State::Closed;
            }
        }
        false
    }

    fn opened(&mut self, shelf: &mut Shelf<'_>) {
        if self.state != State::Failing {
            return;
        }
        if std::mem::take(&mut shelf.status.unusable) {
            log::info!("history: the file can be used again");
        }
        self.state = State::On;
        if !self.loaded {
            self.state = State::Loading;
            shelf.actions.push_back(Action::Store(Job::Load));
        }
    }

    fn failed(&mut self, error: &OpenError, shelf: &mut Shelf<'_>) {
        log::error!("history: {error}");
        shelf.status.unusable = true;
        if !matches!(self.state, State::Closing | State::Closed) {
            self.state = match error.may_pass() {
                true => State::Failing,
                false => State::GivenUp,
            };
        }
        if self.state == State::GivenUp {
            *self.batch = Batch::default();
            self.flush_at = None;
        }
    }

    fn load_ended(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = &result {
            log::error!("history: cannot be read: {error}");
        }
        if self.state == State::Loading {
            self.state = match result {
                Ok(()) => State::On,
                Err(_) => State::Failing,
            };
        }
        self.loaded |= self.state == State::On;
    }

    /// Sends what was gathered, unless a batch is under way.
    fn flush(&mut self, shelf: &mut Shelf<'_>) {
        if self.writing.is_some() {
            return;
        }
        self.flush_at = None;
        if self.batch.is_empty() {
            // Series that were looked at, and have not changed.
            self.batch.series.clear();
            return;
        }
        self.writes += 1;
        let batch = std::mem::take(&mut self.batch);
        self.writing = Some(Writing {
            number: self.writes,
            ranges: ranges_of(&batch, shelf),
        });
        let number = self.writes;
        let job = Job::Write { number, batch };
        shelf.actions.push_back(Action::Store(job));
    }

    fn written(
        &mut self,
        number: u64,
        result: Result<Written, Unwritten>,
        shelf: &mut Shelf<'_>,
        now: Now,
    ) {
        let Some(writing) = self.writing.take_if(|writing| writing.number == number) else {
            return;
        };
        match result {
            Ok(written) => {
                self.bytes = written.bytes;
                shelf.status.bytes = written.bytes;
                shelf.status.inserted += written.inserted;
                shelf.status.updated += written.updated;
                if std::mem::take(&mut self.failures) > 0 {
                    log::info!("history: is written again");
                }
                shelf.status.write_failed = false;
                let forgotten = ranges_of(&self.batch, shelf);
                let gone = forgotten
                    .iter()
                    .filter(|(_, _, fate)| *fate != Fate::Covered);
                let charts = &mut shelf.market.charts;
                for (key, slots, fate) in writing.ranges {
                    match fate {
                        Fate::Forgotten => charts.unarchive(key, slots),
                        Fate::Covered | Fate::Replaced => charts.archive(key, slots),
                    }
                }
                // What is to be forgotten with the next flush is not believed until then.
                for (key, slots, _) in gone {
                    charts.unarchive(*key, slots.clone());
                }
            }
            Err(unwritten) => self.unwritten(unwritten, shelf, now),
        }
        if !self.batch.is_empty() {
            self.flush_at.get_or_insert(now.mono + FLUSH);
        }
    }

    /// A batch has come back: what was gathered meanwhile goes on top of it.
    fn unwritten(&mut self, unwritten: Unwritten, shelf: &mut Shelf<'_>, now: Now) {
        shelf.status.persist_errors += 1;
        shelf.status.write_failed = true;
        if self.failures == 0 {
            let error = &unwritten.error;
            log::error!("history: cannot be written: {error}; trying again and again");
        }
        self.failures = self.failures.saturating_add(1);
        if self.state == State::GivenUp {
            return;
        }
        let later = std::mem::replace(&mut self.batch, unwritten.batch);
        self.batch.absorb(*later);
        let pause = RETRY * 2u32.saturating_pow((self.failures - 1).min(16));
        self.flush_at = Some(now.mono + pause.min(RETRY_MAX));
    }

    /// Has what is older than the window taken out of the file.
    fn evict(&mut self, shelf: &mut Shelf<'_>, now: Now) {
        if self.state != State::On {
            return;
        }
        let charts = &shelf.market.charts;
        for (key, archived) in charts.archives() {
            let keep = charts.keep(key.interval);
            let floor = key.interval.slot_of(now.unix).saturating_sub(keep);
            let is_old = (archived.first()).is_some_and(|first| first < floor - keep / SLACK);
            if !is_old || self.evicting.contains(&key) || self.evicting.len() >= EVICTIONS {
                continue;
            }
            self.evicting.insert(key);
            let job = Job::Evict {
                series: name_of(key, shelf.config, &shelf.market.catalog),
                before: floor,
            };
            shelf.actions.push_back(Action::Store(job));
        }
    }

    fn evicted(
        &mut self,
        name: &SeriesName,
        before: i64,
        result: Result<u64, StoreError>,
        shelf: &mut Shelf<'_>,
    ) {
        let Some(key) = key_of(name, shelf) else {
            return;
        };
        self.evicting.remove(&key);
        match result {
            Ok(count) => {
                shelf.status.evicted += count;
                shelf.market.charts.unarchive(key, i64::MIN..before);
            }
            Err(error) => log::warn!("history: old candles could not be taken out: {error}"),
        }
    }
}

/// What the file holds of one series.
fn take_head(head: Head, shelf: &mut Shelf<'_>) {
    // Of a source that is no longer configured: kept, and not served.
    let Some(key) = key_of(&head.series, shelf) else {
        return;
    };
    // The newest pieces count where there are too many.
    for slots in head.covered.into_iter().rev() {
        shelf.market.charts.archive(key, slots);
    }
}
