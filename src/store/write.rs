//! Writing: a batch, and the eviction of what is old.
//!
//! Owns the order in which changes become rows, and the count of candles that each series carries.
//! A candle that is there already, as it is, is not written again: a redelivery costs a look.
//!
//! It never begins or ends a transaction; `disk.rs` does, around one batch or one slice of an
//! eviction.

use super::coverage::Spans;
use super::row::{Digits, MARKET, QUOTE, slot, times};
use super::seal::Seal;
use super::sqlite::{Database, Statement, Value};
use crate::history::StoreError;
use crate::history::{Batch, Changes, Extent, Fate, QuoteName, SavedQuote, SeriesName, Written};
use crate::interval::Stored;
use crate::record::MarketRules;
use std::collections::HashMap;
use std::ops::Range;

/// Series that are in the file. Forgotten after a transaction that failed, which may have made
/// some of them.
pub(super) type Known = HashMap<SeriesName, Series>;

/// A series that is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    pub(super) id: i64,
    /// The begin of the seals of its rows.
    pub(super) seal: Seal,
}

/// Everything that writing takes, prepared once a batch.
struct Writer<'a> {
    spans: Spans<'a>,
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

/// Takes the oldest slots of a series out, at most `rows` candles of them. Answers what is left, how
/// many candles went, and whether that was all.
pub(super) fn evict(
    db: &Database,
    series: Series,
    interval: Stored,
    before: i64,
    rows: u64,
) -> Result<(Extent, u64, bool), StoreError> {
    let end = times(interval, &(0..before)).end;
    // The first candle that is to stay for now.
    let bound = {
        let mut query = db.prepare(
            "SELECT time FROM candle WHERE series = ?1 AND time < ?2 ORDER BY time LIMIT 1 OFFSET ?3",
        )?;
        let offset = Value::Int(i64::try_from(rows).unwrap_or(i64::MAX));
        let mut found = query.query(&[Value::Int(series.id), Value::Int(end), offset])?;
        found.next()?.and_then(|row| row.int(0))
    };
    let mut writer = Writer::new(db)?;
    // Coverage goes with the candles: a covered slot without one would say that nobody traded.
    let removed = writer.forget(series, &(i64::MIN..bound.unwrap_or(end)))?;
    writer.count(series, 0, removed)?;
    Ok((extent(db, series, interval)?, removed, bound.is_none()))
}

/// What the file holds of a series: two looks at the ends of its rows.
pub(super) fn extent(
    db: &Database,
    series: Series,
    interval: Stored,
) -> Result<Extent, StoreError> {
    let mut query = db.prepare(
        "SELECT (SELECT min(time) FROM candle WHERE series = ?1),
             (SELECT max(time) FROM candle WHERE series = ?1),
             (SELECT candles FROM series WHERE id = ?1)",
    )?;
    let mut found = query.query(&[Value::Int(series.id)])?;
    let row = found.next()?;
    let number = |column| row.as_ref()?.int(column);
    let end = |column| slot(interval, number(column)?);
    Ok(Extent {
        first: end(0),
        last: end(1),
        count: number(2)
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0),
    })
}

/// The series of this name, if it is in the file.
pub(super) fn find_series(
    db: &Database,
    known: &mut Known,
    name: &SeriesName,
) -> Result<Option<Series>, StoreError> {
    if let Some(series) = known.get(name) {
        return Ok(Some(*series));
    }
    let mut query =
        db.prepare("SELECT id FROM series WHERE source = ?1 AND symbol = ?2 AND interval = ?3")?;
    let id = query
        .query(&names(name))?
        .next()?
        .and_then(|row| row.int(0));
    let seal = Seal::of(name);
    let series = id.map(|id| Series { id, seal });
    if let Some(series) = series {
        known.insert(name.clone(), series);
    }
    Ok(series)
}

/// The series of this name, which is put into the file where it is not.
fn make_series(db: &Database, known: &mut Known, name: &SeriesName) -> Result<Series, StoreError> {
    if let Some(series) = find_series(db, known, name)? {
        return Ok(series);
    }
    db.prepare("INSERT INTO series (source, symbol, interval) VALUES (?1, ?2, ?3)")?
        .run(&names(name))?;
    let series = find_series(db, known, name)?;
    series.ok_or_else(|| StoreError::Internal("a series that was just written is gone".into()))
}

fn names(series: &SeriesName) -> [Value<'_>; 3] {
    [
        Value::Text(series.source.as_bytes()),
        Value::Text(series.symbol.as_bytes()),
        Value::Text(series.interval.name().as_bytes()),
    ]
}

impl<'a> Writer<'a> {
    fn new(db: &'a Database) -> Result<Writer<'a>, StoreError> {
        Ok(Writer {
            spans: Spans::new(db)?,
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
                self.spans.cover(series, &times)?;
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
            let seal = Value::Int(series.seal.over(&row).number());
            let values = [key[0], key[1], open, high, low, close, volume, seal];
            match self.insert.run(&values)? {
                0 => written.updated += self.update.run(&values)?,
                rows => inserted += rows,
            }
        }
        written.inserted += inserted;
        written.removed += removed;
        self.count(series, inserted, removed)
    }

    /// Takes these times out, candles and coverage. Answers how many candles.
    fn forget(&mut self, series: Series, times: &Range<i64>) -> Result<u64, StoreError> {
        self.spans.forget(series, times)?;
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
        values.push(Value::Int(Seal::new().over(&values).number()));
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
    // Nearly always a list says what it said before: then nothing is written.
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
        values.push(Value::Int(Seal::new().over(&values).number()));
        put.run(&values)?;
    }
    Ok(())
}
