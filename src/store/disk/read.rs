//! Reads candles of a range. For a load, reads all series, quotes and markets.
//!
//! A candle is returned only if it is sound, aligned and in a covered slot. Other rows are skipped
//! and counted. Reading never changes the file.

use super::row::{
    self, CANDLE, Checksum, Record, SeriesRow, candle, columns, extent, find_series, name, record,
    seconds, times,
};
use super::sqlite::{Database, Row};
use crate::history::{PAGE, QuoteName, ReadJob, Rows, SeriesHead, SeriesName, StoreError};
use crate::interval::Stored;
use crate::record::Edge;
use std::ops::Range;

/// Reads one page of candles.
pub(super) fn rows(db: &Database, read: &ReadJob) -> Result<Rows, StoreError> {
    let mut rows = Rows {
        series: read.series.clone(),
        slots: read.slots.clone(),
        covered: Vec::new(),
        candles: Vec::new(),
        unsound: Vec::new(),
    };
    let Some(series) = find_series(db, &read.series)? else {
        return Ok(rows);
    };
    let interval = read.series.interval;
    let times = times(interval, &read.slots);
    let (covered, _) = row::covered(db, series, interval, &times)?;
    let is_covered = |slot: i64| {
        let span = covered.partition_point(|span| span.end <= slot);
        covered.get(span).is_some_and(|span| span.contains(&slot))
    };
    let order = match read.keep {
        Edge::Oldest => "ASC",
        Edge::Newest => "DESC",
    };
    let mut query = db.prepare_cached(&format!(
        "SELECT {CANDLE} FROM candle WHERE series = ?1 AND time >= ?2 AND time < ?3
         ORDER BY time {order}"
    ))?;
    let mut found = query.query((series.id, times.start, times.end))?;
    let (mut left, mut before) = (read.limit.min(PAGE), None);
    while let Some(row) = found.next()? {
        let slot = row.get(0).ok().map(|time: i64| time.div_euclid(seconds(interval)));
        // Unaligned rows may share a slot. A page never ends within a slot.
        if left == 0 && slot != before {
            match (slot, read.keep) {
                (Some(next), Edge::Oldest) => rows.slots.end = next,
                (Some(next), Edge::Newest) => rows.slots.start = next + 1,
                (None, _) => {}
            }
            break;
        }
        (left, before) = (left.saturating_sub(1), slot);
        let covered = slot.filter(|slot| is_covered(*slot));
        match covered.and_then(|_| candle(interval, series.checksum, row)) {
            Some(candle) => rows.candles.push(candle),
            None => rows.unsound.extend(slot),
        }
    }
    if read.keep == Edge::Newest {
        rows.candles.reverse();
        rows.unsound.reverse();
    }
    let page = rows.slots.clone();
    let inside = covered.into_iter().map(|it| it.start.max(page.start)..it.end.min(page.end));
    rows.covered = inside.filter(|part| !part.is_empty()).collect();
    Ok(rows)
}

/// Passes all candles of these slots to `tell`, page by page, oldest first.
pub(super) fn pages(
    db: &Database,
    series: &SeriesName,
    slots: Range<i64>,
    mut tell: impl FnMut(Rows) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut left = slots;
    while !left.is_empty() {
        let read = ReadJob {
            ticket: 0,
            series: series.clone(),
            slots: left.clone(),
            limit: PAGE,
            keep: Edge::Oldest,
        };
        let page = rows(db, &read)?;
        left.start = page.slots.end;
        tell(page)?;
    }
    Ok(())
}

/// Every series, in the order of their creation, and the number of invalid rows.
pub(super) fn heads(db: &Database) -> Result<(Vec<SeriesHead>, u64), StoreError> {
    let mut unsound_spans = 0;
    let head = |row: &Row<'_>| {
        let named = || {
            let interval = name(row, 3)?;
            let interval = Stored::ALL.into_iter().find(|stored| *stored.name() == *interval)?;
            Some(SeriesName { source: name(row, 1)?, symbol: name(row, 2)?, interval })
        };
        let Some(name) = named() else {
            return Ok(None);
        };
        let series = SeriesRow { id: row.get(0)?, checksum: Checksum::of_series(&name) };
        let all = i64::MIN..i64::MAX;
        let (covered, unsound) = row::covered(db, series, name.interval, &all)?;
        unsound_spans += unsound;
        let extent = extent(db, series, name.interval)?;
        Ok(Some(SeriesHead { series: name, covered, extent }))
    };
    let sql = "SELECT id, source, symbol, interval FROM series ORDER BY id";
    let (heads, unsound) = all(db, sql, head)?;
    Ok((heads, unsound + unsound_spans))
}

/// Every record of a kind, and the number of invalid rows.
pub(super) fn records<R: Record>(db: &Database) -> Result<(Vec<(QuoteName, R)>, u64), StoreError> {
    let sql = format!("SELECT {} FROM {}", columns::<R>(), R::TABLE);
    all(db, &sql, |row| Ok(record(row)))
}

fn all<T>(
    db: &Database,
    sql: &str,
    mut record: impl FnMut(&Row<'_>) -> Result<Option<T>, StoreError>,
) -> Result<(Vec<T>, u64), StoreError> {
    let mut query = db.prepare(sql)?;
    let mut found = query.query(())?;
    let (mut all, mut unsound) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        match record(row)? {
            Some(record) => all.push(record),
            None => unsound += 1,
        }
    }
    Ok((all, unsound))
}
