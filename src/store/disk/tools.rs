//! What a person does with the history file: export a series, prune what nobody tracks, rename a source.
//!
//! Reading works beside a running marketd and changes nothing. What changes the file takes its lock, so
//! it is refused while a marketd uses the file, and is done completely or not at all.

use super::checksum::Checksum;
use super::file::{CHECKED_BYTES, HistoryFile, at_resolved, check_content, look_to_write};
use super::header::look;
use super::read;
use super::row::{CANDLE, Record};
use super::series::{Known, Series, find_series};
use super::sqlite::{Database, OpenFlags, Result};
use super::write::write_records;
use crate::history::{
    OpenError, PAGE, QuoteName, ReadJob, SavedQuote, SeriesHead, SeriesName, StoreError, Unusable,
};
use crate::record::{Candle, Edge, MarketRules};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The history file, opened for reading alone.
pub struct HistoryReader {
    path: PathBuf,
    db: Database,
    known: Known,
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
            Ok(HistoryReader { path: path.to_path_buf(), db, known: Known::default() })
        })
    }

    /// All series, in the order of their creation.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn series(&self) -> Result<Vec<SeriesHead>, OpenError> {
        let mut heads = Vec::new();
        read::heads(&self.db, |mut some| heads.append(&mut some))
            .map_err(|error| Unusable::from(error).at(&self.path))?;
        Ok(heads)
    }

    /// Passes the candles of these slots to `tell`, oldest first. Rows that are not sound are left out;
    /// returns their number.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn candles(
        &mut self,
        series: &SeriesName,
        slots: Range<i64>,
        mut tell: impl FnMut(&Candle),
    ) -> Result<usize, OpenError> {
        let (mut from, mut unsound) = (slots.start, 0);
        while from < slots.end {
            let page = ReadJob {
                ticket: 0,
                series: series.clone(),
                slots: from..slots.end,
                limit: PAGE,
                keep: Edge::Oldest,
            };
            let rows = read::rows(&self.db, &mut self.known, &page)
                .map_err(|error| Unusable::from(error).at(&self.path))?;
            rows.candles.iter().for_each(&mut tell);
            unsound += rows.unsound.len();
            from = rows.slots.end;
        }
        Ok(unsound)
    }
}

/// Removes the series, quotes and rules of markets that `keep` does not want, by source and symbol, and
/// gives their space back to the file system.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has been removed.
pub fn prune(path: &Path, keep: impl Fn(&str, &str) -> bool) -> Result<Pruned, OpenError> {
    const OF_MARKET: &str = "source = ?1 AND symbol = ?2";
    const OF_SERIES: &str = "series IN (SELECT id FROM series WHERE source = ?1 AND symbol = ?2)";
    on_file(path, |db| {
        let mut pruned = Pruned::default();
        let mut gone = BTreeSet::new();
        let mut note = |source: Box<str>, symbol: Box<str>| {
            if !keep(&source, &symbol) {
                gone.insert((source, symbol));
            }
        };
        read::heads(db, |some| {
            some.into_iter().for_each(|it| note(it.series.source, it.series.symbol));
        })?;
        read::records::<SavedQuote>(db, |some| {
            some.into_iter().for_each(|(it, _)| note(it.source, it.symbol));
        })?;
        read::records::<MarketRules>(db, |some| {
            some.into_iter().for_each(|(it, _)| note(it.source, it.symbol));
        })?;
        db.transaction(|| {
            for (source, symbol) in &gone {
                let remove = |table: &str, which: &str| -> Result<u64, StoreError> {
                    let sql = format!("DELETE FROM {table} WHERE {which}");
                    Ok(db.prepare(&sql)?.execute((source, symbol))? as u64)
                };
                remove("span", OF_SERIES)?;
                pruned.candles += remove("candle", OF_SERIES)?;
                pruned.series += remove("series", OF_MARKET)?;
                remove("quote", OF_MARKET)?;
                remove("market", OF_MARKET)?;
            }
            Ok(())
        })?;
        db.execute("VACUUM")?;
        pruned.bytes = db.bytes()?;
        Ok(pruned)
    })
}

/// Gives what is stored of a source to another source. Returns the number of its candles; `None` if the
/// file has candles of the other source already, and nothing has changed.
///
/// # Errors
/// If the file cannot be opened or written; then nothing has changed.
pub fn rename(path: &Path, old: &str, new: &str) -> Result<Option<u64>, OpenError> {
    on_file(path, |db| {
        let mut heads = Vec::new();
        read::heads(db, |mut some| heads.append(&mut some))?;
        if heads.iter().any(|head| &*head.series.source == new) {
            return Ok(None);
        }
        let candles = db.transaction(|| {
            let mut candles = 0;
            for SeriesHead { series, .. } in heads.iter().filter(|it| &*it.series.source == old) {
                candles += rename_series(db, series, new)?;
            }
            rename_records::<SavedQuote>(db, old, new)?;
            rename_records::<MarketRules>(db, old, new)?;
            Ok(candles)
        });
        candles.map(Some)
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

fn rename_records<R: Record>(db: &Database, old: &str, new: &str) -> Result<(), StoreError> {
    let mut renamed = BTreeMap::new();
    read::records::<R>(db, |some| {
        let of_old = some.into_iter().filter(|(name, _)| &*name.source == old);
        renamed.extend(of_old.map(|(name, it)| (QuoteName { source: new.into(), ..name }, it)));
    })?;
    let sql = format!("DELETE FROM {} WHERE source = ?1 AND symbol = ?2", R::TABLE);
    let mut remove = db.prepare(&sql)?;
    renamed.keys().try_for_each(|name| remove.execute((old, &*name.symbol)).map(|_| ()))?;
    write_records(db, &renamed)
}

/// Renames a series and seals its rows anew, since their checksums cover its name. A row that is not
/// sound stays so. Returns the number of its candles.
fn rename_series(db: &Database, series: &SeriesName, new: &str) -> Result<u64, StoreError> {
    let found = find_series(db, &mut Known::default(), series)?;
    let Some(Series { id, checksum }) = found else {
        return Ok(0);
    };
    let renamed = SeriesName { source: new.into(), ..series.clone() };
    let sums = (checksum, Checksum::of(&renamed));
    db.prepare("UPDATE series SET source = ?2 WHERE id = ?1")?.execute((id, new))?;
    seal_anew(db, id, sums, "span", "first", "first, until, seal")?;
    seal_anew(db, id, sums, "candle", "time", CANDLE)
}

fn seal_anew(
    db: &Database,
    series: i64,
    (old, new): (Checksum, Checksum),
    table: &str,
    key: &str,
    columns: &str,
) -> Result<u64, StoreError> {
    let mut query = db.prepare(&format!("SELECT {columns} FROM {table} WHERE series = ?1"))?;
    let mut found = query.query([series])?;
    let mut seals: Vec<(i64, i64)> = Vec::new();
    while let Some(row) = found.next()? {
        if old.holds(row) {
            seals.push((row.get(0)?, new.with_row(row).number()));
        }
    }
    let sql = format!("UPDATE {table} SET seal = ?3 WHERE series = ?1 AND {key} = ?2");
    let mut update = db.prepare(&sql)?;
    for (key, seal) in &seals {
        update.execute((series, key, seal))?;
    }
    Ok(seals.len() as u64)
}
