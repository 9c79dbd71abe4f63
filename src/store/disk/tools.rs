//! The tools for the history file: export a series, copy the file, prune markets that no source tracks,
//! rename a source.
//!
//! Reading works beside a running marketd, needs no permission to write, and changes nothing. Tools that
//! change the file take its lock, so they are refused while a marketd uses the file. They change it
//! completely or not at all.

use super::file::{
    CHECKED_BYTES, DRAFTS, HistoryFile, WRITE, at_resolved, check_content, clear_drafts,
    look_to_write,
};
use super::header::{beside, log_of, look};
use super::sqlite::{Database, OpenFlags};
use super::tables;
use crate::history::{
    Batch, OpenError, QuoteName, SavedQuote, SeriesHead, SeriesName, StoreError, Unusable,
};
use crate::interval::Stored;
use crate::record::{Candle, MarketRules};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The history file, opened only for reading.
pub struct HistoryReader {
    path: PathBuf,
    db: Database,
    /// When the file was written last, if it had no log when it was opened. Then no marketd was using it, and
    /// the reads are valid only if none has written to it since.
    unlocked: Option<SystemTime>,
}

/// The stored data of one market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredMarket {
    /// The stored intervals, and how many candles each has.
    pub series: Vec<(Stored, u64)>,
    /// True if the last quote is stored.
    pub has_quote: bool,
    /// True if the exchange's rules are stored.
    pub has_rules: bool,
}

/// The stored data of all markets.
pub type StoredMarkets = BTreeMap<QuoteName, StoredMarket>;

impl HistoryReader {
    /// Opens an existing file. A marketd may be using it. Nothing is written beside it: a file without a log
    /// is opened in a way that makes SQLite create none.
    ///
    /// # Errors
    /// If the file does not exist, is not a history file, or cannot be read.
    pub fn open(path: &Path) -> Result<HistoryReader, OpenError> {
        at_resolved(path, |path| {
            let look = look(path, File::options().read(true))?.ok_or(Unusable::Missing)?;
            let written = fs::metadata(path)?.modified()?;
            let has_log = log_of(path).exists();
            let db = if has_log {
                Database::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?
            } else {
                Database::open_unlocked(path)?
            };
            check_content(&db, path, look.page, CHECKED_BYTES)?;
            let unlocked = (!has_log).then_some(written);
            Ok(HistoryReader { path: path.to_path_buf(), db, unlocked })
        })
    }

    /// Confirms that all reads so far are valid.
    ///
    /// # Errors
    /// If a marketd has begun to write to the file since it was opened, so that the reads may be
    /// inconsistent.
    pub fn confirm(&self) -> Result<(), OpenError> {
        let written = fs::metadata(&self.path).and_then(|about| about.modified());
        match self.unlocked {
            Some(before) if written.ok() != Some(before) => {
                let text = "a marketd has begun to write to it: try again".to_string();
                Err(Unusable::Io(StoreError::Busy(text)).at(&self.path))
            }
            _ => Ok(()),
        }
    }

    /// Writes a copy of the file as of now to `copy`, which must not exist.
    ///
    /// # Errors
    /// If the file cannot be read, or the copy cannot be written.
    pub fn copy_into(&self, copy: &Path) -> Result<(), StoreError> {
        self.db.copy_into(copy)
    }

    /// The stored data of all markets.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn markets(&self) -> Result<StoredMarkets, OpenError> {
        markets(&self.db).map_err(|error| Unusable::from(error).at(&self.path))
    }

    /// All series, in the order of their creation.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn series(&self) -> Result<Vec<SeriesHead>, OpenError> {
        let read = tables::heads(&self.db);
        Ok(read.map_err(|error| Unusable::from(error).at(&self.path))?.0)
    }

    /// Passes the candles of these slots to `tell`, oldest first. Invalid rows are left out. Returns their
    /// number.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn candles(
        &self,
        series: &SeriesName,
        slots: Range<i64>,
        mut tell: impl FnMut(&Candle),
    ) -> Result<usize, OpenError> {
        let mut unsound = 0;
        let read = tables::pages(&self.db, series, slots, |page| {
            page.candles.iter().for_each(&mut tell);
            unsound += page.unsound.len();
            Ok(())
        });
        read.map_err(|error| Unusable::from(error).at(&self.path))?;
        Ok(unsound)
    }
}

fn markets(db: &Database) -> Result<StoredMarkets, StoreError> {
    let mut all = StoredMarkets::new();
    for SeriesHead { series, extent, .. } in tables::heads(db)?.0 {
        let stored = (series.interval, extent.count);
        all.entry(market(series)).or_default().series.push(stored);
    }
    for (name, _) in tables::records::<SavedQuote>(db)?.0 {
        all.entry(name).or_default().has_quote = true;
    }
    // A file of version 1 does not have this table, and reading does not upgrade it.
    if db.number("SELECT count(*) FROM sqlite_schema WHERE name = 'market'")? > 0 {
        for (name, _) in tables::records::<MarketRules>(db)?.0 {
            all.entry(name).or_default().has_rules = true;
        }
    }
    Ok(all)
}

/// Removes the data of all markets for which `keep` returns false, and gives their space back to the file
/// system. `keep` gets the source and the symbol. Returns the removed data, and the size of the file
/// afterwards in bytes.
///
/// The markets are removed from a copy. A copy of this copy, without unused pages, replaces the file's
/// content in one transaction. SQLite's own `VACUUM` would be a second step after the removal, and would hold
/// the file in memory.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has been removed.
pub fn prune(
    path: &Path,
    keep: impl Fn(&str, &str) -> bool,
) -> Result<(StoredMarkets, u64), OpenError> {
    on_file(path, |db, path| {
        let mut gone = markets(db)?;
        gone.retain(|name, _| !keep(&name.source, &name.symbol));
        if !gone.is_empty() {
            let [_, draft, small] = DRAFTS.map(|suffix| beside(path, suffix));
            let done = copy_without(db, &gone, &draft, &small);
            let done = done.and_then(|()| db.replace_by(&small));
            clear_drafts(path);
            done?;
        }
        Ok((gone, db.bytes()?))
    })
}

/// Writes a copy without these markets to `small`. Uses `draft` on the way, and removes it: the next step
/// needs its space for the log.
fn copy_without(
    db: &Database,
    markets: &StoredMarkets,
    draft: &Path,
    small: &Path,
) -> Result<(), StoreError> {
    db.copy_into(draft)?;
    let copy = Database::open(draft, WRITE)?;
    copy.transaction(|| markets.keys().try_for_each(|name| remove(&copy, name)))?;
    copy.copy_into(small)?;
    copy.close()?;
    let _ = fs::remove_file(draft);
    Ok(())
}

/// Why a source cannot get another id. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRenamed {
    /// Data of a source with the new id is stored already.
    Taken,
    /// No data of the source is stored.
    Nothing,
}

/// The data that a rename would give to `new`: everything stored of `old`.
pub fn renamed(
    mut stored: StoredMarkets,
    old: &str,
    new: &str,
) -> Result<StoredMarkets, NotRenamed> {
    if stored.keys().any(|name| &*name.source == new) {
        return Err(NotRenamed::Taken);
    }
    stored.retain(|name, _| &*name.source == old);
    if stored.is_empty() { Err(NotRenamed::Nothing) } else { Ok(stored) }
}

/// Renames a source: gives all of its stored data to another id. Invalid rows are left out. Returns the data
/// of the new id.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has changed.
pub fn rename(
    path: &Path,
    old: &str,
    new: &str,
) -> Result<Result<StoredMarkets, NotRenamed>, OpenError> {
    on_file(path, |db, _| {
        let moved = match renamed(markets(db)?, old, new) {
            Ok(moved) => moved,
            Err(why) => return Ok(Err(why)),
        };
        let name = |name: &QuoteName| QuoteName { source: new.into(), ..name.clone() };
        let mut batch = Batch::default();
        let quotes = tables::records(db)?.0.into_iter().filter(|(it, _)| moved.contains_key(it));
        batch.quotes.extend(quotes.map(|(it, quote)| (name(&it), quote)));
        let rules = tables::records(db)?.0.into_iter().filter(|(it, _)| moved.contains_key(it));
        batch.markets.extend(rules.map(|(it, rules)| (name(&it), rules)));
        db.transaction(|| {
            for (QuoteName { source, symbol }, stored) in &moved {
                for (interval, _) in &stored.series {
                    let (source, symbol) = (source.clone(), symbol.clone());
                    let interval = *interval;
                    rename_series(db, &SeriesName { source, symbol, interval }, new)?;
                }
            }
            tables::apply(db, &batch)?;
            moved.keys().try_for_each(|name| remove(db, name))
        })?;
        let mut has = markets(db)?;
        has.retain(|name, _| &*name.source == new);
        Ok(Ok(has))
    })
}

/// Opens the file, does the work, and closes it. The work gets the path without symbolic links.
fn on_file<T>(
    path: &Path,
    work: impl FnOnce(&mut Database, &Path) -> Result<T, Unusable>,
) -> Result<T, OpenError> {
    at_resolved(path, |path| {
        look_to_write(path)?.ok_or(Unusable::Missing)?;
        let mut lock = None;
        let opened = HistoryFile::open(path, CHECKED_BYTES, &mut lock);
        let (mut file, ..) = opened.map_err(|error| error.why)?;
        let done = work(&mut file.db, path);
        let closed = match file.close() {
            // Another program reads the file, or the disk is full. The writes are safe in the log.
            Err(StoreError::Busy(_) | StoreError::Full(_)) => Ok(()),
            closed => closed.map_err(Unusable::from),
        };
        done.and_then(|value| closed.map(|()| value))
    })
}

fn market(SeriesName { source, symbol, .. }: SeriesName) -> QuoteName {
    QuoteName { source, symbol }
}

/// Removes all stored data of a market.
fn remove(db: &Database, market: &QuoteName) -> Result<(), StoreError> {
    const OF_MARKET: &str = "source = ?1 AND symbol = ?2";
    const OF_SERIES: &str = "series IN (SELECT id FROM series WHERE source = ?1 AND symbol = ?2)";
    let tables = [
        ("span", OF_SERIES),
        ("candle", OF_SERIES),
        ("series", OF_MARKET),
        ("quote", OF_MARKET),
        ("market", OF_MARKET),
    ];
    for (table, which) in tables {
        let sql = format!("DELETE FROM {table} WHERE {which}");
        db.prepare_cached(&sql)?.execute((&market.source, &market.symbol))?;
    }
    Ok(())
}

/// Moves the candles of a series to another source, page by page, so that the file does not grow.
fn rename_series(db: &Database, series: &SeriesName, new: &str) -> Result<(), StoreError> {
    let renamed = SeriesName { source: new.into(), ..series.clone() };
    tables::pages(db, series, i64::MIN..i64::MAX, |page| {
        let mut batch = Batch::default();
        batch.of(series).forget(page.slots);
        let changes = batch.of(&renamed);
        let slot = |candle: &Candle| series.interval.slot_of(candle.open_time);
        let mut candles = page.candles.into_iter().map(|it| (slot(&it), Some(it))).peekable();
        for slots in page.covered {
            let inside = std::iter::from_fn(|| candles.next_if(|(slot, _)| slots.contains(slot)));
            changes.answered(slots.clone(), inside);
        }
        for slot in page.unsound {
            changes.forget(slot..slot.saturating_add(1));
        }
        tables::apply(db, &batch).map(|_| ())
    })
}
