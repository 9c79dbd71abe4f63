//! The covered times of a series: the interval set in the table `span`.
//!
//! Adding or removing a range reads only the rows that overlap or touch it, so the cost does not
//! depend on the number of rows.
//!
//! Invariant: the ranges of a series are not empty, and neither overlap nor touch. A read ignores a row that
//! breaks this. Adding a range over such a row deletes the row.

use super::row::{SeriesRow, slot};
use super::sqlite::Database;
use crate::history::StoreError;
use crate::interval::Stored;
use rangemap::RangeSet;
use std::ops::Range;

/// Adds these times, or removes them.
pub(super) fn set(
    db: &Database,
    series: SeriesRow,
    times: &Range<i64>,
    is_covered: bool,
) -> Result<(), StoreError> {
    if times.is_empty() {
        return Ok(());
    }
    let (old, broken) = touching(db, series, times)?;
    let mut new: RangeSet<i64> = old.iter().cloned().collect();
    if is_covered {
        new.insert(times.clone())
    } else {
        new.remove(times.clone())
    }
    let gone = old.iter().filter(|span| !new.iter().any(|it| it == *span));
    let mut take = db.prepare_cached("DELETE FROM span WHERE series = ?1 AND first = ?2")?;
    for first in gone.map(|span| span.start).chain(broken) {
        take.execute((series.id, first))?;
    }
    let mut put = db.prepare_cached("INSERT OR REPLACE INTO span VALUES (?1, ?2, ?3, ?4)")?;
    for span in new.iter().filter(|span| !old.contains(span)) {
        let seal = series.checksum.with_all(&[span.start.into(), span.end.into()]).number();
        put.execute((series.id, span.start, span.end, seal))?;
    }
    Ok(())
}

/// The ranges that overlap or touch these times, last first, and the starts of rows that break the
/// invariant or whose checksum is wrong.
fn touching(
    db: &Database,
    series: SeriesRow,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, Vec<i64>), StoreError> {
    let mut before = db.prepare_cached(
        "SELECT first, until, seal FROM span WHERE series = ?1 AND first <= ?2 ORDER BY first DESC",
    )?;
    let mut found = before.query((series.id, times.end))?;
    let (mut touching, mut broken): (Vec<Range<i64>>, _) = (Vec::new(), Vec::new());
    while let Some(row) = found.next()? {
        let span = row.get(0).unwrap_or(i64::MIN)..row.get(1).unwrap_or(i64::MIN);
        let is_apart = touching.last().is_none_or(|later| span.end < later.start);
        if span.is_empty() || !is_apart || !series.checksum.holds(row) {
            broken.push(span.start);
        } else if span.end < times.start {
            // The ranges do not touch each other, so all following ranges end even earlier.
            break;
        } else {
            touching.push(span);
        }
    }
    Ok((touching, broken))
}

/// The covered slots of a series among these times, in order, and the number of invalid rows.
pub(super) fn read(
    db: &Database,
    series: SeriesRow,
    interval: Stored,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, u64), StoreError> {
    let (spans, broken) = touching(db, series, times)?;
    let slots = |span: &Range<i64>| Some(slot(interval, span.start)?..slot(interval, span.end)?);
    let covered: Vec<_> = spans.iter().rev().filter_map(slots).collect();
    let unsound = broken.len() + spans.len() - covered.len();
    Ok((covered, unsound as u64))
}
