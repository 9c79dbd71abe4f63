//! The series of the file: their ids, and how many candles each has.
//!
//! Owns the table `series`. It knows nothing of candles but their first and last time.

use super::checksum::Checksum;
use super::row::slot;
use super::sqlite::{Database, OptionalExtension};
use crate::history::{Extent, SeriesName, StoreError};
use crate::interval::Stored;

/// A series in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesRow {
    pub(super) id: i64,
    /// The checksum of its name, with which those of its rows begin.
    pub(super) checksum: Checksum,
}

/// The series with this name, if the file has it.
pub(super) fn find_series(
    db: &Database,
    name: &SeriesName,
) -> Result<Option<SeriesRow>, StoreError> {
    let sql = "SELECT id FROM series WHERE source = ?1 AND symbol = ?2 AND interval = ?3";
    let id = db.prepare_cached(sql)?.query_row(names(name), |row| row.get(0)).optional()?;
    Ok(id.map(|id| SeriesRow { id, checksum: Checksum::of_series(name) }))
}

/// The series with this name. Inserts it if the file lacks it.
pub(super) fn make_series(db: &Database, name: &SeriesName) -> Result<SeriesRow, StoreError> {
    if let Some(series) = find_series(db, name)? {
        return Ok(series);
    }
    let sql = "INSERT INTO series (source, symbol, interval) VALUES (?1, ?2, ?3)";
    let id = db.prepare_cached(sql)?.insert(names(name))?;
    Ok(SeriesRow { id, checksum: Checksum::of_series(name) })
}

fn names(series: &SeriesName) -> [&str; 3] {
    [&series.source, &series.symbol, series.interval.name()]
}

/// The first and the last candle of a series, and how many it has.
pub(super) fn extent(
    db: &Database,
    series: SeriesRow,
    interval: Stored,
) -> Result<Extent, StoreError> {
    let sql = "SELECT (SELECT min(time) FROM candle WHERE series = ?1),
        (SELECT max(time) FROM candle WHERE series = ?1),
        (SELECT candles FROM series WHERE id = ?1)";
    let extent = db.prepare_cached(sql)?.query_row([series.id], |row| {
        let end = |column| slot(interval, row.get(column).ok()?);
        let count: i64 = row.get(2).unwrap_or(0);
        Ok(Extent { first: end(0), last: end(1), count: count.try_into().unwrap_or(0) })
    });
    Ok(extent?)
}
