//! What is in the history file, on its way there, and on its way back.
//!
//! Owns the batch of changes that is gathered for the next flush, the candles that are being read
//! back for clients, and the judgement of how the file does. It talks to the disk thread by
//! [`Action::Store`] and [`History::answered`] alone, and never waits for it: with a file that fails,
//! or with none, the core goes on from memory.
//!
//! It never decides what is fetched; `sources` asks the charts what is archived.
//!
//! ```text
//! Off                               without a file
//! Loading -> On                     what the file holds has been told
//! Loading, On -> Failing -> Loading the file cannot be used for now: every flush tries again
//!             -> GivenUp            it is damaged: nothing is written to it any more
//! any -> Closing -> Closed          at the end
//! ```
//!
//! What is written is [archived](crate::market::Series::archived) from the moment of its
//! acknowledgement on, and not before: what is lost with the process is unknown afterwards, and so
//! fetched again. What is to be changed in the file is not archived until that is done, and with a
//! file that cannot be read nothing is: what memory lets go of is fetched again.

mod evict;
mod flush;
mod names;
mod open;
mod quotes;
mod recall;
mod refill;
mod rules;
#[cfg(test)]
mod tests;

use super::Action;
use crate::core::context::Context;
use crate::history::{Answer, Batch, Changes, Job};
use crate::log_targets::HISTORY;
use crate::market::{SeriesKey, SourceId};
use crate::time::{Mono, Now};
use evict::Eviction;
use flush::{STALLED, Writing};
use names::name_of;
use open::take_head;
use quotes::SavedQuotes;
use recall::Recalls;
use refill::Refill;
use rules::SavedRules;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// From the first change to its flush: what a whole round of polls brings shares one transaction,
/// and a closed candle is on disk well within two seconds.
const FLUSH: Duration = Duration::from_secs(1);

/// Longest pause after a write that failed: a disk with room again is noticed this soon.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Weight of the changes that wait for the disk, or are being written: some 10 MB. Above it no
/// candles are asked for, so that nothing that was asked for has to be dropped: on top comes at most
/// a page for each connection to an exchange. While the disk fails, what comes beyond is left out,
/// and is written from memory later ([`refill`]).
const PENDING: usize = 50_000;

/// Weight from which on a batch is written at once, not after [`FLUSH`]: some 50 ms of the disk
/// thread, for which reads wait.
const HEAVY: usize = PENDING / 8;

/// For telling what the file holds. On a slower disk the exchanges are asked without waiting for it.
const LOADING: Duration = Duration::from_secs(30);

/// Between two looks for candles that are older than what is kept.
const SWEEP: Duration = Duration::from_secs(60);

/// For the last flush and the closing of the file, once the clients are gone.
const CLOSING: Duration = Duration::from_secs(10);

/// See the module's page.
#[derive(Debug)]
pub struct History {
    state: State,
    /// Until when the load is waited for.
    load_by: Option<Mono>,
    /// When a load that failed is tried again.
    reload_at: Option<Mono>,
    batch: Box<Batch>,
    /// What is being written, as ranges: the candles are with the disk thread.
    writing: Option<Writing>,
    writes: u64,
    flush_at: Option<Mono>,
    failures: u32,
    /// Whether the write that is under way takes very long.
    stalled: bool,
    /// Whether changes were left out since the last refill began, or the file has gone.
    missed: bool,
    refill: Option<Refill>,
    /// The write after which a file that had gone holds again what memory does.
    mended_by: Option<u64>,
    /// Whether more is stored than when somebody last looked.
    news: bool,
    /// Size of the file.
    bytes: u64,
    recalls: Recalls,
    quotes: SavedQuotes,
    rules: SavedRules,
    evicting: BTreeMap<SeriesKey, Eviction>,
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

/// Which candles may be asked of an exchange, as far as the disk keeps up. The greater, the more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// None.
    Hold,
    /// Those that clients wait for, and the newest: the disk fails, and the service goes on.
    Seen,
    /// All.
    Free,
}

impl History {
    /// Without a file.
    pub fn new(now: Now) -> History {
        History {
            state: State::Off,
            load_by: None,
            reload_at: None,
            batch: Box::default(),
            writing: None,
            writes: 0,
            flush_at: None,
            failures: 0,
            stalled: false,
            missed: false,
            refill: None,
            mended_by: None,
            news: false,
            bytes: 0,
            recalls: Recalls::default(),
            quotes: SavedQuotes::new(now.mono),
            rules: SavedRules::default(),
            evicting: BTreeMap::new(),
            sweep_at: now.mono + SWEEP,
            close_by: None,
        }
    }

    /// There is a file, which the disk thread has opened, or has tried to.
    pub fn begin(&mut self, opened: Answer, cx: &mut Context) {
        self.state = State::Failing;
        cx.stats.history.enabled = true;
        self.answered(opened, cx);
    }

    /// Whether what the file holds is still to be told: nothing is asked of an exchange that may be
    /// in it.
    fn is_loading(&self) -> bool {
        self.state == State::Loading && self.load_by.is_some()
    }

    /// Which candles may be asked for now.
    pub fn pace(&self) -> Pace {
        match (self.is_loading(), self.has_room(), self.fails()) {
            (true, _, _) => Pace::Hold,
            (false, true, _) => Pace::Free,
            (false, false, true) => Pace::Seen,
            (false, false, false) => Pace::Hold,
        }
    }

    /// Whether more is stored than at the last call.
    pub fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether the disk does not take what waits for it, for now.
    fn fails(&self) -> bool {
        let is_well = self.state == State::On || self.is_loading();
        !is_well || self.failures > 0 || self.stalled
    }

    /// Whether what leaves memory of this series can be had again from the file.
    pub fn keeps(&self, key: SeriesKey, cx: &Context) -> bool {
        self.state == State::On && self.has_place() && self.is_for(key, cx)
    }

    /// Whether this series is one for the file, which grows for clients' wishes only so far.
    pub fn is_for(&self, key: SeriesKey, cx: &Context) -> bool {
        let is_small = self.bytes < cx.config.limits.history_bytes;
        self.state != State::Off && (is_small || cx.market.catalog.is_named(key.source, key.symbol))
    }

    /// Whether changes are taken. What was asked for before there was too much still finds a place,
    /// unless the disk fails.
    fn has_place(&self) -> bool {
        self.has_room() || !self.fails()
    }

    /// A source's market list has come: restored quotes of what it tracks are put back, and what it
    /// says of orders is saved.
    pub fn listed(&mut self, source: SourceId) {
        self.quotes.listed(source);
        self.rules.listed(source);
    }

    /// Whether the file is closed, or there was none.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Off | State::Closed)
    }

    /// What is to be changed of a series with the next flush. `None`: nothing is written now.
    pub fn changes(&mut self, key: SeriesKey, cx: &Context) -> Option<&mut Changes> {
        if !self.is_for(key, cx) {
            return None;
        }
        if !self.has_place() {
            self.missed = true;
            return None;
        }
        if self.failures == 0 && self.batch.weight() >= HEAVY {
            self.flush_at = Some(cx.now.mono);
        }
        self.any_changes(key, cx)
    }

    /// These slots are not to be believed any more. Said however much waits: it weighs nothing
    /// beside what it is about.
    pub fn forget(&mut self, key: SeriesKey, slots: Range<i64>, cx: &Context) {
        if let Some(changes) = self.any_changes(key, cx) {
            changes.forget(slots);
        }
    }

    fn any_changes(&mut self, key: SeriesKey, cx: &Context) -> Option<&mut Changes> {
        if !matches!(self.state, State::Loading | State::On | State::Failing) {
            return None;
        }
        self.flush_at.get_or_insert(cx.now.mono + FLUSH);
        Some(self.batch.of(&name_of(key, cx)))
    }

    fn has_room(&self) -> bool {
        let writing = self.writing.as_ref().map_or(0, |writing| writing.weight);
        writing + self.batch.weight() < PENDING
    }

    /// When [`History::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        match self.state {
            State::Off | State::Closed => None,
            State::Closing => self.close_by,
            state => {
                let flush = self.flush_at.filter(|_| self.may_flush());
                let stall = self.writing.as_ref().and_then(|writing| writing.stalls_at);
                let load = match state {
                    State::Loading => self.load_by,
                    State::Failing => self.reload_at,
                    _ => None,
                };
                let rest = [Some(self.sweep_at), self.quotes.due(), self.close_by];
                let all = [flush, stall, load].into_iter().chain(rest);
                all.flatten().min()
            }
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.is_closed() {
            return;
        }
        if self.close_by.is_some_and(|by| by <= cx.now.mono) {
            log::error!(target: HISTORY, "the disk takes too long: what was not written yet is lost");
            self.state = State::Closed;
            return;
        }
        if self.sweep_at <= cx.now.mono {
            self.sweep_at = cx.now.mono + SWEEP;
            self.evict(cx);
        }
        self.quotes.begin(cx.now);
        self.watch_disk(cx);
        if self.flush_at.is_some_and(|at| at <= cx.now.mono) {
            self.flush(cx, Some(cx.now.mono + STALLED));
        }
    }

    /// What the disk has not done in its time.
    fn watch_disk(&mut self, cx: &mut Context) {
        let is_due = |at: &mut Mono| *at <= cx.now.mono;
        let writing = self.writing.as_mut();
        if writing.is_some_and(|writing| writing.stalls_at.take_if(is_due).is_some()) {
            log::error!(target: HISTORY, "the disk takes very long to write");
            cx.stats.history.write_failed = true;
            cx.stats.history.why = "the disk takes very long to write".to_string();
            self.stalled = true;
        }
        if self.state == State::Loading && self.load_by.take_if(is_due).is_some() {
            log::warn!(target: HISTORY, "the disk takes very long to read: not waiting for it any more");
        }
        if self.state == State::Failing && self.reload_at.take_if(is_due).is_some() {
            self.state = State::Loading;
            cx.actions.push_back(Action::Store(Job::Load));
        }
    }

    /// Whether [`History::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.quotes.is_returning()
            || self.is_writing_on()
            || self.quotes.is_saving() && self.has_place()
            || self.rules.is_saving() && self.takes_rules()
            || self.is_refilling()
    }

    /// Whether quotes and rules are written now, or as soon as the file is open.
    fn writes(&self) -> bool {
        matches!(self.state, State::Loading | State::On | State::Failing)
    }

    fn takes_rules(&self) -> bool {
        self.state == State::On && self.has_room()
    }

    /// Does one slice of the quotes that come back, and one for the batch that is under way, or of
    /// what is to be saved.
    pub fn work(&mut self, cx: &mut Context) {
        if self.quotes.is_returning() {
            self.quotes.put_back(&mut cx.market, cx.now);
        }
        if self.is_writing_on() {
            return self.write_on(cx);
        }
        if self.quotes.is_saving() && (!self.writes() || !self.has_place()) {
            return self.quotes.skip(cx.now);
        }
        let mut gathered = self.quotes.gather(cx, &mut self.batch);
        if self.takes_rules() {
            gathered |= self.rules.gather(cx, &mut self.batch);
        }
        if self.is_refilling() {
            self.refill_on(cx);
            gathered |= !self.batch.is_empty();
        }
        if gathered {
            self.flush_at.get_or_insert(cx.now.mono + FLUSH);
        }
    }

    /// Begins the end: the last quotes are saved, and what waits is written at once.
    pub fn shut_down(&mut self, cx: &mut Context) {
        if self.is_closed() || self.close_by.is_some() {
            return;
        }
        self.close_by = Some(cx.now.mono + cx.config.limits.shutdown + CLOSING);
        if self.state != State::GivenUp {
            self.quotes.gather_all(cx, &mut self.batch);
        }
        self.finish_stage(cx);
        self.flush(cx, None);
    }

    /// Closes the file, when nobody brings anything any more. Goes on with the answers.
    pub fn close(&mut self, cx: &mut Context) {
        if self.is_closed() || self.state == State::Closing || self.writing.is_some() {
            return;
        }
        if self.missed && self.is_loading() {
            // The file has just been made anew: the answer to the load leads here again.
            return;
        }
        while self.is_refilling() {
            self.refill_on(cx);
        }
        if !self.batch.is_empty() && self.failures == 0 && self.state != State::GivenUp {
            // While the file still tells what it holds, the answer to that leads here again.
            return self.flush(cx, None);
        }
        if !self.batch.is_empty() {
            let left = self.batch.weight();
            log::error!(target: HISTORY, "{left} changes could not be written, and are lost");
        }
        self.state = State::Closing;
        cx.actions.push_back(Action::Store(Job::Stop));
    }

    /// Takes in what the disk thread says. Whether clients may have waited for it.
    pub fn answered(&mut self, answer: Answer, cx: &mut Context) -> bool {
        match answer {
            Answer::Opened(opened) => self.opened(opened, cx),
            Answer::Failed(error) => self.failed(&error, cx),
            Answer::Heads(heads) => heads.into_iter().for_each(|head| take_head(head, cx)),
            Answer::Quotes(list) => self.quotes.restore(list, cx),
            Answer::Markets(list) => rules::restore(list, cx),
            Answer::Loaded(result) => self.load_ended(result, cx),
            Answer::Rows { ticket, result } => return self.recalled(ticket, result, cx),
            Answer::Written { number, result } => self.written(number, result, cx),
            Answer::Evicted {
                series,
                before,
                result,
            } => self.evicted(&series, before, result, cx),
            Answer::Stopped(result) => {
                if let Err(error) = result {
                    log::warn!(target: HISTORY, "the file is not closed in good order: {error}");
                }
                self.state = State::Closed;
            }
        }
        false
    }
}
