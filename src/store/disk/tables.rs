//! Reads and writes the tables: pages of candles, a load (all series, quotes and markets), and batches.
//!
//! A candle is returned only if it is sound, aligned and in a covered slot. Other rows are skipped
//! and counted. Reading never changes the file.
//!
//! `apply` owns the order in which changes become rows, and maintains the number of candles of each series. A
//! candle that is already stored with the same numbers is not written again. The disk thread begins and ends
//! the transaction of a batch.

use super::row::{
    CANDLE, Checksum, Record, SeriesRow, candle, columns, covered, extent, find_series,
    make_series, name, record, seconds, set_covered, times,
};
use super::sqlite::{Database, Row, Value, params_from_iter};
use crate::history::{
    Batch, Changes, PAGE, QuoteName, ReadJob, Rows, SeriesHead, SeriesName, StoreError, Written,
};
use crate::interval::Stored;
use crate::record::Edge;
use std::collections::BTreeMap;
use std::ops::Range;

/// Reads one page of candles.
pub(super) fn rows(db: &Database, read: &ReadJob) -> Result<Rows, StoreError> {
    let mut rows = Rows {
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
    let (covered, _) = covered(db, series, interval, &times)?;
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
        let (covered, unsound) = covered(db, series, name.interval, &all)?;
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

/// Writes a batch.
pub(super) fn apply(db: &Database, batch: &Batch) -> Result<Written, StoreError> {
    let mut written = Written::default();
    for (name, changes) in batch.series.iter().filter(|(_, changes)| !changes.is_empty()) {
        let series = make_series(db, name)?;
        write_series(db, series, name, changes, &mut written)?;
        written.extents.push((name.clone(), extent(db, series, name.interval)?));
    }
    write_records(db, &batch.quotes)?;
    write_records(db, &batch.markets)?;
    written.bytes = db.used_bytes()?;
    Ok(written)
}

fn write_series(
    db: &Database,
    series: SeriesRow,
    name: &SeriesName,
    changes: &Changes,
    written: &mut Written,
) -> Result<(), StoreError> {
    let mut delete =
        db.prepare_cached("DELETE FROM candle WHERE series = ?1 AND time >= ?2 AND time < ?3")?;
    let mut insert = db.prepare_cached(
        "INSERT INTO candle VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
    )?;
    let mut update = db.prepare_cached(
        "UPDATE candle SET open = ?3, high = ?4, low = ?5, close = ?6, volume = ?7, seal = ?8
         WHERE series = ?1 AND time = ?2
             AND (open, high, low, close, volume, seal) <> (?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (mut inserted, mut removed) = (0, 0);
    for slots in changes.forgotten() {
        let times = times(name.interval, &slots);
        // Coverage is removed with the candles: a covered slot without a candle means that nobody traded.
        set_covered(db, series, &times, false)?;
        let count = delete.execute((series.id, times.start, times.end))? as u64;
        removed += count;
        written.evicted += if slots.start == i64::MIN { count } else { 0 };
    }
    for slots in changes.covered() {
        set_covered(db, series, &times(name.interval, &slots), true)?;
    }
    for (slot, candle) in changes.candles() {
        let time = times(name.interval, &(slot..slot.saturating_add(1)));
        if time.is_empty() {
            continue;
        }
        let Some(candle) = candle else {
            removed += delete.execute((series.id, time.start, time.end))? as u64;
            continue;
        };
        let mut values = vec![series.id.into(), time.start.into()];
        let numbers = [&candle.open, &candle.high, &candle.low, &candle.close, &candle.volume];
        values.extend(numbers.map(Value::from));
        values.push(series.checksum.with_all(&values[1..]).number().into());
        match insert.execute(params_from_iter(&values))? {
            0 => written.updated += update.execute(params_from_iter(&values))? as u64,
            rows => inserted += rows as u64,
        }
    }
    written.inserted += inserted;
    written.removed += removed;
    let change = inserted as i64 - removed as i64;
    if change != 0 {
        let sql = "UPDATE series SET candles = candles + ?2 WHERE id = ?1";
        db.prepare_cached(sql)?.execute((series.id, change))?;
    }
    Ok(())
}

/// Writes the records that differ from the stored ones: lists of markets rarely change.
fn write_records<R: Record>(
    db: &Database,
    records: &BTreeMap<QuoteName, R>,
) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let (table, columns) = (R::TABLE, columns::<R>());
    let places = (1..=columns.split(',').count()).map(|place| format!("?{place}"));
    let places = places.collect::<Vec<_>>().join(", ");
    let mut put = db.prepare_cached(&format!(
        "INSERT INTO {table} ({columns}) VALUES ({places})
         ON CONFLICT DO UPDATE SET ({columns}) = ({places})
         WHERE ({columns}) IS NOT ({places})"
    ))?;
    for (name, record) in records {
        let mut values =
            [&name.source, &name.symbol].map(|it| Value::Text(it.to_string())).to_vec();
        values.extend(record.values());
        values.push(Checksum::new().with_all(&values).number().into());
        put.execute(params_from_iter(&values))?;
    }
    Ok(())
}
