//! What a person does with the history file: export a series, prune what nobody tracks, rename a source.
//!
//! Reading works beside a running marketd and changes nothing. What changes the file takes its lock, so
//! it is refused while a marketd uses the file, and is done completely or not at all.

use super::checksum::Checksum;
use super::file::{Care, HistoryFile, check_content, resolved, unopened};
use super::header::{look, look_to_read};
use super::read;
use super::row::{CANDLE, Record};
use super::series::{Known, Series, find_series};
use super::sqlite::Database;
use super::write::write_records;
use crate::history::{
    Head, OpenError, PAGE, QuoteName, Read, SavedQuote, SeriesName, StoreError, Unusable,
};
use crate::record::{Candle, Edge, MarketRules};
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
        let path = resolved(path)?;
        let look = look_to_read(&path)?.ok_or_else(|| Unusable::Missing.at(&path))?;
        let db = Database::open_to_read(&path).map_err(|error| unopened(&path, error))?;
        check_content(&db, &path, &look, Care::Usual)?;
        Ok(HistoryReader { path, db, known: Known::default() })
    }

    /// All series, in the order of their creation.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn series(&self) -> Result<Vec<Head>, OpenError> {
        let mut heads = Vec::new();
        let done = read::heads(&self.db, |mut some| heads.append(&mut some));
        done.map_err(|error| unopened(&self.path, error))?;
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
            let page = Read {
                ticket: 0,
                series: series.clone(),
                slots: from..slots.end,
                limit: PAGE,
                keep: Edge::Oldest,
            };
            let rows = read::rows(&self.db, &mut self.known, &page)
                .map_err(|error| unopened(&self.path, error))?;
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
    on_file(path, |db| {
        let mut gone = Vec::new();
        read::heads(db, |some| {
            gone.extend(
                (some.into_iter()).filter(|it| !keep(&it.series.source, &it.series.symbol)),
            );
        })?;
        let mut pruned = Pruned { series: gone.len() as u64, ..Pruned::default() };
        db.transaction(|| {
            for Head { series, .. } in &gone {
                pruned.candles += remove(db, series)?;
            }
            remove_records::<SavedQuote>(db, &keep)?;
            remove_records::<MarketRules>(db, &keep)
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
            for Head { series, .. } in heads.iter().filter(|it| &*it.series.source == old) {
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
    look(path)?.ok_or_else(|| Unusable::Missing.at(path))?;
    let (file, _) = HistoryFile::open(path, Care::Usual)?;
    let done = work(&file.db);
    let closed = file.close();
    done.and_then(|value| closed.map(|()| value)).map_err(|error| unopened(path, error))
}

fn id_of(db: &Database, series: &SeriesName) -> Result<Series, StoreError> {
    let found = find_series(db, &mut Known::default(), series)?;
    found.ok_or_else(|| StoreError::Internal("a series has gone".to_string()))
}

/// Removes a series. Returns the number of its candles.
fn remove(db: &Database, series: &SeriesName) -> Result<u64, StoreError> {
    let id = [id_of(db, series)?.id];
    db.prepare("DELETE FROM span WHERE series = ?1")?.execute(id)?;
    db.prepare("DELETE FROM series WHERE id = ?1")?.execute(id)?;
    Ok(db.prepare("DELETE FROM candle WHERE series = ?1")?.execute(id)? as u64)
}

fn records_of<R: Record>(
    db: &Database,
    wanted: impl Fn(&QuoteName) -> bool,
) -> Result<Vec<(QuoteName, R)>, StoreError> {
    let mut found = Vec::new();
    read::records(db, |some| {
        found.extend(some.into_iter().filter(|(name, _)| wanted(name)));
    })?;
    Ok(found)
}

fn remove_record<R: Record>(db: &Database, name: &QuoteName) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM {} WHERE source = ?1 AND symbol = ?2", R::TABLE);
    db.prepare(&sql)?.execute([&name.source, &name.symbol])?;
    Ok(())
}

fn remove_records<R: Record>(
    db: &Database,
    keep: impl Fn(&str, &str) -> bool,
) -> Result<(), StoreError> {
    let gone = records_of::<R>(db, |name| !keep(&name.source, &name.symbol))?;
    gone.iter().try_for_each(|(name, _)| remove_record::<R>(db, name))
}

fn rename_records<R: Record>(db: &Database, old: &str, new: &str) -> Result<(), StoreError> {
    let records = records_of::<R>(db, |name| &*name.source == old)?;
    records.iter().try_for_each(|(name, _)| remove_record::<R>(db, name))?;
    let renamed = records.into_iter().map(|(name, record)| {
        let source = new.into();
        (QuoteName { source, ..name }, record)
    });
    write_records(db, &renamed.collect())
}

/// Renames a series and seals its rows anew, since their checksums cover its name. A row that is not
/// sound stays so. Returns the number of its candles.
fn rename_series(db: &Database, series: &SeriesName, new: &str) -> Result<u64, StoreError> {
    let Series { id, checksum } = id_of(db, series)?;
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
