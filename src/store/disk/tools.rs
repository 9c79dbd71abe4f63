//! What a person does with the history file: export a series, prune what nobody tracks, rename a source.
//!
//! Reading works beside a running marketd and changes nothing. What changes the file takes its lock, so
//! it is refused while a marketd uses the file, and is done completely or not at all.

use super::file::{CHECKED_BYTES, HistoryFile, at_resolved, check_content, look_to_write};
use super::header::look;
use super::sqlite::{Database, OpenFlags};
use super::{read, write};
use crate::history::{
    Batch, OpenError, QuoteName, SavedQuote, SeriesHead, SeriesName, StoreError, Unusable,
};
use crate::record::{Candle, MarketRules};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The history file, opened for reading alone.
pub struct HistoryReader {
    path: PathBuf,
    db: Database,
}

/// What [`prune`] removed or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Series.
    pub series: u64,
    /// Their candles.
    pub candles: u64,
    /// Size of the file afterwards, in bytes.
    pub bytes: u64,
}

impl HistoryReader {
    /// Opens a file that exists; a marketd may be using it.
    ///
    /// # Errors
    /// If there is none, if it is not a history file, or if it cannot be read.
    pub fn open(path: &Path) -> Result<HistoryReader, OpenError> {
        at_resolved(path, |path| {
            let look = look(path, File::options().read(true))?.ok_or(Unusable::Missing)?;
            let db = Database::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            check_content(&db, &look, CHECKED_BYTES)?;
            Ok(HistoryReader { path: path.to_path_buf(), db })
        })
    }

    /// All series, in the order of their creation.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn series(&self) -> Result<Vec<SeriesHead>, OpenError> {
        let read = read::heads(&self.db);
        Ok(read.map_err(|error| Unusable::from(error).at(&self.path))?.0)
    }

    /// Passes the candles of these slots to `tell`, oldest first. Rows that are not sound are left out;
    /// returns their number.
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
        let read = read::pages(&self.db, series, slots, |page| {
            page.candles.iter().for_each(&mut tell);
            unsound += page.unsound.len();
            Ok(())
        });
        read.map_err(|error| Unusable::from(error).at(&self.path))?;
        Ok(unsound)
    }
}

/// Removes the series, quotes and rules of markets that `keep` does not want, by source and symbol, and
/// gives their space back to the file system.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has been removed.
pub fn prune(path: &Path, keep: impl Fn(&str, &str) -> bool) -> Result<Pruned, OpenError> {
    on_file(path, |db| {
        let mut markets: BTreeSet<_> =
            read::heads(db)?.0.into_iter().map(|it| market(it.series)).collect();
        markets.extend(read::records::<SavedQuote>(db)?.0.into_iter().map(|(name, _)| name));
        markets.extend(read::records::<MarketRules>(db)?.0.into_iter().map(|(name, _)| name));
        markets.retain(|name| !keep(&name.source, &name.symbol));
        let mut pruned = Pruned::default();
        db.transaction(|| markets.iter().try_for_each(|name| remove(db, name, &mut pruned)))?;
        db.execute("VACUUM")?;
        pruned.bytes = db.bytes()?;
        Ok(pruned)
    })
}

/// The outcome of [`rename`].
pub enum Renamed {
    /// The file already has candles of the other source. Nothing has changed.
    Taken,
    /// The file has nothing of the source.
    Nothing,
    /// All of it belongs to the other source now: the number of its candles.
    Moved(u64),
}

/// Gives what is stored of a source to another source. Rows that are not sound do not come along.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has changed.
pub fn rename(path: &Path, old: &str, new: &str) -> Result<Renamed, OpenError> {
    on_file(path, |db| {
        let mut all: Vec<_> = read::heads(db)?.0.into_iter().map(|head| head.series).collect();
        if all.iter().any(|series| &*series.source == new) {
            return Ok(Renamed::Taken);
        }
        all.retain(|series| &*series.source == old);
        db.transaction(|| {
            let (mut candles, mut moved) = (0, BTreeSet::new());
            for series in all {
                candles += rename_series(db, &series, new)?;
                moved.insert(market(series));
            }
            let mut batch = Batch::default();
            let renamed = |name: &QuoteName| QuoteName { source: new.into(), ..name.clone() };
            for (name, quote) in
                read::records(db)?.0.into_iter().filter(|(name, _)| &*name.source == old)
            {
                batch.quotes.insert(renamed(&name), quote);
                moved.insert(name);
            }
            for (name, rules) in
                read::records(db)?.0.into_iter().filter(|(name, _)| &*name.source == old)
            {
                batch.markets.insert(renamed(&name), rules);
                moved.insert(name);
            }
            write::apply(db, &batch)?;
            moved.iter().try_for_each(|name| remove(db, name, &mut Pruned::default()))?;
            Ok(if moved.is_empty() { Renamed::Nothing } else { Renamed::Moved(candles) })
        })
    })
}

/// Opens the file, does the work, and closes it.
fn on_file<T>(
    path: &Path,
    work: impl FnOnce(&Database) -> Result<T, StoreError>,
) -> Result<T, OpenError> {
    let found = look_to_write(path).and_then(|look| look.ok_or(Unusable::Missing));
    found.map_err(|why| why.at(path))?;
    let (file, _) = HistoryFile::open(path, CHECKED_BYTES)?;
    let done = work(&file.db);
    let closed = file.close();
    done.and_then(|value| closed.map(|()| value)).map_err(|error| Unusable::from(error).at(path))
}

fn market(SeriesName { source, symbol, .. }: SeriesName) -> QuoteName {
    QuoteName { source, symbol }
}

/// Removes all that is stored of a market.
fn remove(db: &Database, market: &QuoteName, removed: &mut Pruned) -> Result<(), StoreError> {
    const OF_MARKET: &str = "source = ?1 AND symbol = ?2";
    const OF_SERIES: &str = "series IN (SELECT id FROM series WHERE source = ?1 AND symbol = ?2)";
    let remove = |table: &str, which: &str| -> Result<u64, StoreError> {
        let sql = format!("DELETE FROM {table} WHERE {which}");
        Ok(db.prepare_cached(&sql)?.execute((&market.source, &market.symbol))? as u64)
    };
    remove("span", OF_SERIES)?;
    removed.candles += remove("candle", OF_SERIES)?;
    removed.series += remove("series", OF_MARKET)?;
    remove("quote", OF_MARKET)?;
    remove("market", OF_MARKET)?;
    Ok(())
}

/// Moves the candles of a series to another source, page by page, so that the file does not grow. Returns
/// their number.
fn rename_series(db: &Database, series: &SeriesName, new: &str) -> Result<u64, StoreError> {
    let renamed = SeriesName { source: new.into(), ..series.clone() };
    let mut moved = 0;
    read::pages(db, series, i64::MIN..i64::MAX, |page| {
        moved += page.candles.len() as u64;
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
        write::apply(db, &batch).map(|_| ())
    })?;
    Ok(moved)
}
