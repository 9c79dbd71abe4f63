//! Writes a batch.
//!
//! Owns the order in which changes become rows, and keeps the number of candles of each series. A
//! candle that is already stored with the same numbers is not written again.
//!
//! The disk thread begins and ends the transaction of a batch.

use super::row::{Checksum, Record, SeriesRow, columns, extent, make_series, set_covered, times};
use super::sqlite::{Database, Value, params_from_iter};
use crate::history::{Batch, Changes, QuoteName, SeriesName, StoreError, Written};
use std::collections::BTreeMap;

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
