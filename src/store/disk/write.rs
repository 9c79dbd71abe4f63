//! Writes a batch, and evicts old candles.
//!
//! Owns the order in which changes become rows, and keeps the number of candles of each series. A
//! candle that is already stored with the same numbers is not written again.
//!
//! It never begins or ends a transaction: `disk.rs` does, for one batch or one slice of an eviction.

use super::checksum::Checksum;
use super::coverage::CoverageWriter;
use super::row::{Digits, MARKET, QUOTE, times};
use super::series::{Known, Series, extent, make_series};
use super::sqlite::{Database, Statement, Value};
use crate::history::{
    Batch, Changes, Extent, Fate, QuoteName, SavedQuote, SeriesName, StoreError, Written,
};
use crate::interval::Stored;
use crate::record::MarketRules;
use std::ops::Range;

/// The statements that write candles, prepared once per batch.
struct Writer<'a> {
    coverage: CoverageWriter<'a>,
    insert: Statement<'a>,
    update: Statement<'a>,
    delete: Statement<'a>,
    delete_range: Statement<'a>,
    count: Statement<'a>,
    digits: Digits,
}

/// Writes a batch.
pub(super) fn apply(
    db: &Database,
    known: &mut Known,
    batch: &Batch,
) -> Result<Written, StoreError> {
    let mut written = Written::default();
    let mut writer = Writer::new(db)?;
    for (name, changes) in &batch.series {
        if !changes.is_empty() {
            let series = make_series(db, known, name)?;
            writer.series(series, name, changes, &mut written)?;
            let extent = extent(db, series, name.interval)?;
            written.extents.push((name.clone(), extent));
        }
    }
    write_quotes(db, batch.quotes.iter())?;
    write_markets(db, batch.markets.iter())?;
    written.bytes = db.bytes()?;
    Ok(written)
}

/// Removes the slots of a series before `before`, oldest first and at most `rows` candles. Returns
/// what is left of the series, how many candles were removed, and true if no older one is left.
pub(super) fn evict(
    db: &Database,
    series: Series,
    interval: Stored,
    before: i64,
    rows: u64,
) -> Result<(Extent, u64, bool), StoreError> {
    let end = times(interval, &(0..before)).end;
    // The first candle that stays this time.
    let bound = {
        let mut query = db.prepare(
            "SELECT time FROM candle WHERE series = ?1 AND time < ?2 ORDER BY time LIMIT 1 OFFSET ?3",
        )?;
        let offset = Value::Int(i64::try_from(rows).unwrap_or(i64::MAX));
        let mut found = query.query(&[Value::Int(series.id), Value::Int(end), offset])?;
        found.next()?.and_then(|row| row.int(0))
    };
    let mut writer = Writer::new(db)?;
    // Coverage is removed with the candles: a covered slot without a candle means that nobody traded.
    let removed = writer.forget(series, &(i64::MIN..bound.unwrap_or(end)))?;
    writer.count(series, 0, removed)?;
    Ok((extent(db, series, interval)?, removed, bound.is_none()))
}

impl<'a> Writer<'a> {
    fn new(db: &'a Database) -> Result<Writer<'a>, StoreError> {
        Ok(Writer {
            coverage: CoverageWriter::new(db)?,
            insert: db.prepare(
                "INSERT INTO candle VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
            )?,
            update: db.prepare(
                "UPDATE candle SET open = ?3, high = ?4, low = ?5, close = ?6, volume = ?7, seal = ?8
                 WHERE series = ?1 AND time = ?2
                     AND (open, high, low, close, volume, seal) <> (?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            delete: db.prepare("DELETE FROM candle WHERE series = ?1 AND time = ?2")?,
            delete_range: db
                .prepare("DELETE FROM candle WHERE series = ?1 AND time >= ?2 AND time < ?3")?,
            count: db.prepare("UPDATE series SET candles = candles + ?2 WHERE id = ?1")?,
            digits: Digits::default(),
        })
    }

    fn series(
        &mut self,
        series: Series,
        name: &SeriesName,
        changes: &Changes,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        let (mut inserted, mut removed) = (0, 0);
        for (slots, fate) in changes.ranges() {
            let times = times(name.interval, &slots);
            if fate != Fate::Covered {
                removed += self.forget(series, &times)?;
            }
            if fate != Fate::Forgotten {
                self.coverage.cover(series, &times)?;
            }
        }
        for (slot, candle) in changes.candles() {
            let time = times(name.interval, &(slot..slot.saturating_add(1)));
            if time.is_empty() {
                continue;
            }
            let key = [Value::Int(series.id), Value::Int(time.start)];
            let Some(candle) = candle else {
                removed += self.delete.run(&key)?;
                continue;
            };
            let [open, high, low, close, volume] = self.digits.candle(candle);
            let row = [key[1], open, high, low, close, volume];
            let checksum = Value::Int(series.checksum.with_all(&row).number());
            let values = [key[0], key[1], open, high, low, close, volume, checksum];
            match self.insert.run(&values)? {
                0 => written.updated += self.update.run(&values)?,
                rows => inserted += rows,
            }
        }
        written.inserted += inserted;
        written.removed += removed;
        self.count(series, inserted, removed)
    }

    /// Removes candles and coverage of these times. Returns the number of candles.
    fn forget(&mut self, series: Series, times: &Range<i64>) -> Result<u64, StoreError> {
        self.coverage.forget(series, times)?;
        let values = [
            Value::Int(series.id),
            Value::Int(times.start),
            Value::Int(times.end),
        ];
        self.delete_range.run(&values)
    }

    fn count(&mut self, series: Series, inserted: u64, removed: u64) -> Result<(), StoreError> {
        let change = inserted as i64 - removed as i64;
        if change != 0 {
            self.count
                .run(&[Value::Int(series.id), Value::Int(change)])?;
        }
        Ok(())
    }
}

fn write_quotes<'q>(
    db: &Database,
    quotes: impl ExactSizeIterator<Item = (&'q QuoteName, &'q SavedQuote)>,
) -> Result<(), StoreError> {
    if quotes.len() == 0 {
        return Ok(());
    }
    let places = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17";
    let mut put = db.prepare(&format!("REPLACE INTO quote ({QUOTE}) VALUES ({places})"))?;
    let mut digits = Digits::default();
    for (name, quote) in quotes {
        let mut values = Vec::with_capacity(17);
        values.push(Value::Text(name.source.as_bytes()));
        values.push(Value::Text(name.symbol.as_bytes()));
        values.extend(digits.quote(&quote.ticker));
        values.push(match quote.ticker.timestamp {
            Some(time) => Value::Int(time.0),
            None => Value::Null,
        });
        values.push(Value::Int(quote.received_at.0));
        values.push(Value::Int(Checksum::new().with_all(&values).number()));
        put.run(&values)?;
    }
    Ok(())
}

fn write_markets<'m>(
    db: &Database,
    markets: impl ExactSizeIterator<Item = (&'m QuoteName, &'m MarketRules)>,
) -> Result<(), StoreError> {
    if markets.len() == 0 {
        return Ok(());
    }
    // Market lists rarely change. An unchanged row is not written.
    let mut put = db.prepare(&format!(
        "INSERT INTO market ({MARKET}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT DO UPDATE SET ({MARKET}) = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         WHERE ({MARKET}) IS NOT (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
    ))?;
    let mut digits = Digits::default();
    for (name, rules) in markets {
        let places = [rules.amount_places, rules.price_places];
        let place = |places: Option<u8>| places.map_or(Value::Null, |it| Value::Int(it.into()));
        let mut values = Vec::with_capacity(13);
        values.push(Value::Text(name.source.as_bytes()));
        values.push(Value::Text(name.symbol.as_bytes()));
        values.extend(places.map(place));
        values.extend(digits.rules(rules));
        values.push(Value::Int(Checksum::new().with_all(&values).number()));
        put.run(&values)?;
    }
    Ok(())
}
