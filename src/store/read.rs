//! Reading: candles of a range, and what the file holds at all.
//!
//! Owns the rule of what is handed out: a candle is sound, aligned, and lies in a covered slot;
//! whatever else is found in the file is passed over and counted, never changed.

use super::coverage;
use super::row::{CANDLE, QUOTE, candle, name, quote, seconds, slot, times};
use super::seal::Seal;
use super::sqlite::{Database, Value};
use super::write::{Known, Series, find_series};
use crate::history::StoreError;
use crate::history::{Head, PAGE, QuoteName, Read, Rows, SavedQuote, SeriesName};
use crate::interval::Stored;
use crate::record::Edge;
use std::ops::Range;

/// Series in one piece of a load.
const HEADS: usize = 64;

/// Quotes in one piece of a load: about 300 KB.
const QUOTES: usize = 512;

/// Reads candles: one page of them.
pub(super) fn rows(db: &Database, known: &mut Known, read: &Read) -> Result<Rows, StoreError> {
    let mut rows = Rows {
        series: read.series.clone(),
        slots: read.slots.clone(),
        candles: Vec::new(),
        unsound: Vec::new(),
    };
    let Some(series) = find_series(db, known, &read.series)? else {
        return Ok(rows);
    };
    let interval = read.series.interval;
    let times = times(interval, &read.slots);
    let (covered, _) = coverage::read(db, series, interval, &times)?;
    let is_covered = |slot: i64| {
        let span = covered.partition_point(|span| span.end <= slot);
        covered.get(span).is_some_and(|span| span.contains(&slot))
    };
    let order = match read.keep {
        Edge::Oldest => "ASC",
        Edge::Newest => "DESC",
    };
    let mut query = db.prepare(&format!(
        "SELECT {CANDLE} FROM candle WHERE series = ?1 AND time >= ?2 AND time < ?3
         ORDER BY time {order}"
    ))?;
    let mut found = query.query(&[
        Value::Int(series.id),
        Value::Int(times.start),
        Value::Int(times.end),
    ])?;
    let (mut left, mut before) = (read.limit.min(PAGE), None);
    while let Some(row) = found.next()? {
        let slot = row.int(0).map(|time| time.div_euclid(seconds(interval)));
        // Rows that lie askew may share a slot: a page never ends within one.
        if left == 0 && slot != before {
            cut(&mut rows.slots, slot, read.keep);
            break;
        }
        (left, before) = (left.saturating_sub(1), slot);
        let covered = slot.filter(|slot| is_covered(*slot));
        match covered.and_then(|_| candle(interval, series.seal, &row)) {
            Some(candle) => rows.candles.push(candle),
            None => rows.unsound.extend(slot),
        }
    }
    if read.keep == Edge::Newest {
        rows.candles.reverse();
        rows.unsound.reverse();
    }
    Ok(rows)
}

/// Leaves of what was asked for the part before the first slot that is not in the page.
fn cut(slots: &mut Range<i64>, next: Option<i64>, keep: Edge) {
    match (next, keep) {
        (Some(next), Edge::Oldest) => slots.end = next,
        (Some(next), Edge::Newest) => slots.start = next + 1,
        (None, _) => {}
    }
}

/// Tells every series, some at a time. Answers how many there are, and how many rows made no sense.
pub(super) fn heads(
    db: &Database,
    mut tell: impl FnMut(Vec<Head>),
) -> Result<(usize, u64), StoreError> {
    let mut query =
        db.prepare("SELECT id, source, symbol, interval, candles FROM series ORDER BY id")?;
    let mut extent = db.prepare(
        "SELECT (SELECT min(time) FROM candle WHERE series = ?1),
             (SELECT max(time) FROM candle WHERE series = ?1)",
    )?;
    let mut found = query.query(&[])?;
    let (mut told, mut unsound, mut piece) = (0, 0, Vec::new());
    while let Some(row) = found.next()? {
        let named = || {
            let interval = row.text(3)?;
            let series = SeriesName {
                source: name(row.text(1)?)?,
                symbol: name(row.text(2)?)?,
                interval: (Stored::ALL.into_iter())
                    .find(|stored| stored.name().as_bytes() == interval)?,
            };
            Some((row.int(0)?, series, row.int(4)?))
        };
        let Some((id, series, count)) = named() else {
            unsound += 1;
            continue;
        };
        let interval = series.interval;
        let seal = Seal::of(&series);
        let (covered, odd) =
            coverage::read(db, Series { id, seal }, interval, &(i64::MIN..i64::MAX))?;
        unsound += odd;
        let mut ends = extent.query(&[Value::Int(id)])?;
        let ends = ends.next()?;
        let end = |column| slot(interval, ends.as_ref()?.int(column)?);
        let (first, last) = (end(0), end(1));
        piece.push(Head {
            series,
            covered,
            first,
            last,
            count: u64::try_from(count).unwrap_or(0),
        });
        told += 1;
        if piece.len() == HEADS {
            tell(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        tell(piece);
    }
    Ok((told, unsound))
}

/// Tells every quote, some at a time. Answers as [`heads`] does.
pub(super) fn quotes(
    db: &Database,
    mut tell: impl FnMut(Vec<(QuoteName, SavedQuote)>),
) -> Result<(usize, u64), StoreError> {
    let mut query = db.prepare(&format!("SELECT {QUOTE} FROM quote"))?;
    let mut found = query.query(&[])?;
    let (mut told, mut unsound, mut piece) = (0, 0, Vec::new());
    while let Some(row) = found.next()? {
        let Some(quote) = quote(&row) else {
            unsound += 1;
            continue;
        };
        piece.push(quote);
        told += 1;
        if piece.len() == QUOTES {
            tell(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        tell(piece);
    }
    Ok((told, unsound))
}
