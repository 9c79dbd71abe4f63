//! A disk in the made-up world: a naive file, and somebody who works on it slowly and not always.
//!
//! Owns what has been written, slot by slot, and the jobs that wait. Answers come after a while;
//! writes and reads fail, the file closes and opens again. What was not acknowledged when the
//! daemon dies may be there or not, and all that was is.

use super::ledger::{Closed, Ledger};
use super::trace::excerpt;
use super::weather::SECOND;
use super::world::{Event, World};
use crate::support::Rng;
use marketd::history::{
    Batch, DiskJob, Extent, Loaded, Opened, QuoteName, ReadJob, Reply, Rows, SavedQuote,
    SeriesHead, SeriesName, StoreError, Unusable, Written,
};
use marketd::record::{Candle, Edge};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Jobs that the real queue takes: the daemon is never to send more.
const QUEUE: usize = 128;

/// One series of the file.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub covered: BTreeSet<i64>,
    pub candles: BTreeMap<i64, Candle>,
}

impl Kept {
    fn extent(&self) -> Extent {
        Extent {
            first: self.candles.keys().next().copied(),
            last: self.candles.keys().next_back().copied(),
            count: self.candles.len() as u64,
        }
    }
}

#[derive(Debug)]
pub struct Disk {
    pub series: BTreeMap<SeriesName, Kept>,
    /// The saved quotes, if it keeps any.
    pub quotes: Option<BTreeMap<QuoteName, SavedQuote>>,
    /// Whether it takes nothing.
    pub is_full: bool,
    queue: VecDeque<DiskJob>,
    /// When the file can be opened again; `None`: it is open.
    shut_until: Option<u64>,
    /// Whether the daemon has been told that it is shut.
    told: bool,
    /// Whether nothing goes wrong, and nothing ever did.
    pub calm: bool,
    pub unhurt: bool,
    rng: Rng,
}

impl Disk {
    pub fn new(calm: bool, rng: Rng) -> Disk {
        Disk {
            series: BTreeMap::new(),
            quotes: None,
            is_full: false,
            queue: VecDeque::new(),
            shut_until: None,
            told: false,
            calm,
            unhurt: calm,
            rng,
        }
    }

    /// The daemon has died: what was under way is whole or not there at all.
    pub fn survive(&mut self) {
        if let Some(DiskJob::Write(batch)) = self.queue.front().cloned()
            && self.rng.chance(1, 2)
        {
            self.write(&batch);
        }
        self.queue.clear();
        (self.shut_until, self.told) = (None, false);
    }

    /// How the first look at the file ends.
    pub fn opened() -> Reply {
        Reply::Opened(Opened {
            created: false,
            bytes: 4096,
            log_set_aside: false,
            upgraded_from: None,
        })
    }

    fn wait(&mut self) -> u64 {
        match self.rng.below(if self.calm { 20 } else { 40 }) {
            0..18 => 100 + self.rng.below(3000),
            18..39 => self.rng.below(300_000),
            _ => self.rng.below(20 * SECOND),
        }
    }

    /// Does one job: what the daemon hears of it.
    pub fn work(&mut self, job: DiskJob, now: u64) -> Vec<Reply> {
        let mut said = Vec::new();
        if let Some(until) = self.shut_until.filter(|_| job != DiskJob::Stop) {
            if now < until {
                if !std::mem::replace(&mut self.told, true) {
                    let error = StoreError::Io("no such device".to_string());
                    let gone = Unusable::Io(error).at("history.db".as_ref());
                    said.push(Reply::Failed(gone));
                }
                said.push(refused(job, StoreError::NotOpen));
                return said;
            }
            self.shut_until = None;
            if std::mem::take(&mut self.told) {
                said.push(Disk::opened());
            }
        }
        if !self.calm && self.rng.chance(1, 10) && job != DiskJob::Stop {
            let error = match (&job, self.rng.below(3)) {
                (DiskJob::Write(_), 0) => StoreError::Full("no room".to_string()),
                _ => {
                    self.shut_until = Some(now + self.rng.below(2) * self.rng.below(40 * SECOND));
                    StoreError::Io("a bad sector".to_string())
                }
            };
            said.push(refused(job, error));
            return said;
        }
        match job {
            DiskJob::Write(_) if self.is_full => {
                said.push(refused(job, StoreError::Full("no room".to_string())));
            }
            job => self.succeed(job, &mut said),
        }
        said
    }

    fn succeed(&mut self, job: DiskJob, said: &mut Vec<Reply>) {
        match job {
            DiskJob::Load => {
                for (name, kept) in &self.series {
                    said.push(Reply::Heads(vec![SeriesHead {
                        series: name.clone(),
                        covered: spans(&kept.covered),
                        extent: kept.extent(),
                    }]));
                }
                said.extend(self.quotes.clone().map(|it| Reply::Quotes(it.into_iter().collect())));
                said.push(Reply::Loaded(Ok(Loaded::default())));
            }
            DiskJob::Read(read) => {
                said.push(Reply::Rows { ticket: read.ticket, result: Ok(self.read(read)) })
            }
            DiskJob::Write(batch) => {
                self.write(&batch);
                let extents = batch.series.keys().map(|name| (name.clone(), self.extent(name)));
                let result = Ok(Written { extents: extents.collect(), ..Written::default() });
                said.push(Reply::Written { batch, result });
            }
            DiskJob::Stop => said.push(Reply::Stopped(Ok(()))),
        }
    }

    fn write(&mut self, batch: &Batch) {
        if let Some(quotes) = &mut self.quotes {
            quotes.extend(batch.quotes.clone());
        }
        for (name, changes) in &batch.series {
            for slots in changes.forgotten() {
                self.forget(name, slots);
            }
            let kept = self.series.entry(name.clone()).or_default();
            for slots in changes.covered() {
                kept.covered.extend(slots);
            }
            for (slot, candle) in changes.candles() {
                match candle {
                    Some(candle) => drop(kept.candles.insert(slot, candle.clone())),
                    None => drop(kept.candles.remove(&slot)),
                }
            }
        }
    }

    fn forget(&mut self, name: &SeriesName, slots: Range<i64>) {
        if let Some(kept) = self.series.get_mut(name) {
            kept.covered.retain(|slot| !slots.contains(slot));
            kept.candles.retain(|slot, _| !slots.contains(slot));
        }
    }

    fn extent(&self, name: &SeriesName) -> Extent {
        self.series.get(name).map_or_else(Extent::default, Kept::extent)
    }

    fn read(&mut self, read: ReadJob) -> Rows {
        let kept = self.series.get(&read.series).cloned().unwrap_or_default();
        let mut slots = read.slots.clone();
        let mut found: Vec<_> = kept.candles.range(slots.clone()).collect();
        // Pages may be shorter than they may be long.
        let limit = 1 + self.rng.below(read.limit as u64) as usize;
        if found.len() > limit {
            match read.keep {
                Edge::Newest => {
                    found.drain(..found.len() - limit);
                    slots.start = *found[0].0;
                }
                Edge::Oldest => {
                    slots.end = *found[limit].0;
                    found.truncate(limit);
                }
            }
        }
        Rows {
            covered: spans(&kept.covered.range(slots.clone()).copied().collect()),
            candles: found.into_iter().map(|(_, candle)| candle.clone()).collect(),
            slots,
            unsound: Vec::new(),
        }
    }
}

/// What a job that failed is answered with.
fn refused(job: DiskJob, error: StoreError) -> Reply {
    match job {
        DiskJob::Load => Reply::Loaded(Err(error)),
        DiskJob::Read(ReadJob { ticket, .. }) => Reply::Rows { ticket, result: Err(error) },
        DiskJob::Write(batch) => Reply::Written { batch, result: Err(error) },
        DiskJob::Stop => Reply::Stopped(Err(error)),
    }
}

fn spans(slots: &BTreeSet<i64>) -> Vec<Range<i64>> {
    let mut spans: Vec<Range<i64>> = Vec::new();
    for slot in slots {
        match spans.last_mut() {
            Some(span) if span.end == *slot => span.end += 1,
            _ => spans.push(*slot..slot + 1),
        }
    }
    spans
}

impl World {
    /// The daemon has something for the disk.
    pub fn store(&mut self, job: DiskJob) {
        self.note(format!("disk < {}", excerpt(format!("{job:?}").as_bytes())));
        let Some(disk) = &mut self.disk else {
            self.fail("there is a job for a disk, and there is no disk");
        };
        disk.queue.push_back(job);
        if disk.queue.len() > QUEUE {
            self.fail("more jobs than the disk's queue takes");
        }
        if disk.queue.len() == 1 {
            let wait = disk.wait();
            self.after(wait, Event::Disk);
        }
    }

    /// The disk has done the job that it was at.
    pub fn disk_acts(&mut self) {
        let now = self.clocks();
        let Some(disk) = &mut self.disk else { return };
        let Some(job) = disk.queue.pop_front() else {
            return;
        };
        let said = disk.work(job, self.now);
        if !disk.queue.is_empty() {
            let wait = disk.wait();
            self.after(wait, Event::Disk);
        }
        for answer in said {
            self.note(format!("disk > {}", excerpt(format!("{answer:?}").as_bytes())));
            self.core.stored(answer, now);
        }
        self.woken = true;
    }

    /// Nothing is in the file but what the exchanges have said, and nothing is called empty there in
    /// which something was traded.
    pub fn check_disk(&self) {
        let Some(disk) = &self.disk else { return };
        for (name, kept) in &disk.series {
            for slot in &kept.covered {
                let said = self.said(name, *slot);
                let shown = kept.candles.get(slot).map(figures);
                let is_so = match &shown {
                    Some(shown) => said.contains(shown),
                    None => !self.traded(name, *slot),
                };
                if !is_so {
                    self.fail(&format!("{name:?} {slot}: {shown:?} is on disk for {said:?}"));
                }
            }
            if kept.candles.keys().any(|slot| !kept.covered.contains(slot)) {
                self.fail(&format!("{name:?}: a candle lies outside of what is covered"));
            }
        }
    }

    /// The source and the market of a series.
    fn place_of(&self, name: &SeriesName) -> Option<(usize, usize)> {
        let source = self.ledgers.iter().position(|it| *it.id == *name.source);
        let market = self.symbols.iter().position(|it| **it == *name.symbol);
        Some((source?, market?))
    }

    fn traded(&self, name: &SeriesName, slot: i64) -> bool {
        self.place_of(name).is_some_and(|(source, market)| {
            self.truth(source).traded(market, name.interval.name(), slot)
        })
    }

    /// All that the exchange ever said of a candle.
    fn said(&self, name: &SeriesName, slot: i64) -> Vec<[String; 5]> {
        let Some((source, market)) = self.place_of(name) else {
            return Vec::new();
        };
        let candles = &self.ledgers[source].candles;
        let candles = candles.get(&(market, name.interval.name()));
        let words = candles.and_then(|candles| candles.said.get(&slot));
        let words = words.into_iter().flatten();
        words.map(|(_, _, row)| row.figures().clone()).collect()
    }

    /// After the end: the last word on each candle that is kept is on disk.
    pub fn check_all_on_disk(&self) {
        let Some(disk) = self.disk.as_ref().filter(|disk| disk.unhurt) else {
            return;
        };
        for ledger in self.ledgers.iter().filter(|ledger| !ledger.has_left) {
            for ((market, interval), candles) in &ledger.candles {
                let name = disk.series.keys().find(|name| {
                    *name.source == *ledger.id
                        && *name.symbol == *self.symbols[*market]
                        && name.interval.name() == *interval
                });
                let Some(name) = name else { continue };
                let keep = super::quotes::kept(&self.config.history, interval);
                let length = crate::support::naive::length_ms(interval).expect("stored");
                let present = ledger.exchange_ms(self.moment()).div_euclid(length);
                let kept = &disk.series[name];
                for (slot, words) in candles.said.range(present - keep + 2..) {
                    let Some(sure) = words.iter().rposition(|it| it.1 == Closed::Yes) else {
                        continue;
                    };
                    let last: Vec<_> = words[sure..].iter().map(|it| it.2.figures()).collect();
                    let shown = kept.candles.get(slot).map(figures);
                    let is_last = shown.as_ref().is_some_and(|shown| last.contains(&shown));
                    if !kept.covered.contains(slot) || !is_last {
                        self.fail(&format!("{name:?} {slot}: {shown:?} is left of {last:?}"));
                    }
                }
            }
        }
    }
}

/// What a ledger says of the candles that are on disk; the others were never asked for.
pub fn remembered(old: &Ledger, new: &mut Ledger, symbols: &[String], disk: &Disk) {
    new.ticks = old.ticks.clone();
    // What is newest in memory need not be the newest that was said.
    new.has_left = true;
    for (name, kept) in &disk.series {
        let market = symbols.iter().position(|it| **it == *name.symbol);
        let Some(market) = market.filter(|_| *name.source == *old.id) else {
            continue;
        };
        let key = (market, name.interval.name());
        let Some(before) = old.candles.get(&key) else {
            continue;
        };
        let candles = new.candles.entry(key).or_default();
        for slot in &kept.covered {
            candles.asked.insert(*slot);
            let shown = kept.candles.get(slot).map(figures);
            let words = before.said.get(slot).into_iter().flatten();
            let mut rows = words.map(|(_, _, row)| row);
            if let Some(row) = rows.find(|row| Some(row.figures()) == shown.as_ref()) {
                candles.said.insert(*slot, vec![(0, Closed::Yes, row.clone())]);
            }
        }
    }
}

fn figures(candle: &Candle) -> [String; 5] {
    let Candle { open, high, low, close, volume, .. } = candle;
    [open, high, low, close, volume].map(ToString::to_string)
}
