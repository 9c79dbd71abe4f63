//! The covered times of a series: the interval set that the table `span` holds.
//!
//! Adding or removing a range looks only at the rows that overlap or touch it, so the number of the
//! other rows does not matter.
//!
//! Invariant: the ranges of a series are not empty, and neither overlap nor touch. A row that breaks
//! this is ignored by a read, and deleted when a range is added over it.

use super::row::slot;
use super::series::Series;
use super::sqlite::{Database, Statement};
use crate::history::StoreError;
use crate::interval::Stored;
use rangemap::RangeSet;
use std::ops::Range;

/// The rows that may overlap or touch the times before `?2`, last first.
const BEFORE: &str = "SELECT first, until, seal FROM span WHERE series = ?1 AND first <= ?2
    ORDER BY first DESC";

/// The statements that change coverage.
pub(super) struct CoverageWriter<'a> {
    before: Statement<'a>,
    put: Statement<'a>,
    take: Statement<'a>,
}

impl<'a> CoverageWriter<'a> {
    /// Prepares the statements.
    pub(super) fn new(db: &'a Database) -> Result<CoverageWriter<'a>, StoreError> {
        Ok(CoverageWriter {
            before: db.prepare(BEFORE)?,
            put: db.prepare(
                "INSERT INTO span VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET until = ?3, seal = ?4",
            )?,
            take: db.prepare("DELETE FROM span WHERE series = ?1 AND first = ?2")?,
        })
    }

    /// Adds these times, or removes them.
    pub(super) fn set(
        &mut self,
        series: Series,
        times: &Range<i64>,
        is_covered: bool,
    ) -> Result<(), StoreError> {
        if times.is_empty() {
            return Ok(());
        }
        let (old, broken) = touching(&mut self.before, series, times)?;
        let mut new: RangeSet<i64> = old.iter().cloned().collect();
        match is_covered {
            true => new.insert(times.clone()),
            false => new.remove(times.clone()),
        }
        let is_gone = |first: &i64| new.iter().all(|span| span.start != *first);
        let starts = old.iter().map(|span| span.start).chain(broken);
        for first in starts.filter(is_gone) {
            self.take.execute((series.id, first))?;
        }
        for span in new.iter().filter(|span| !old.contains(span)) {
            let ends = [span.start.into(), span.end.into()];
            let seal = series.checksum.with_all(&ends).number();
            self.put.execute((series.id, span.start, span.end, seal))?;
        }
        Ok(())
    }
}

/// The ranges that overlap or touch these times, last first, and the starts of rows that break the
/// invariant or whose checksum is wrong.
fn touching(
    before: &mut Statement<'_>,
    series: Series,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, Vec<i64>), StoreError> {
    let (mut touching, mut broken): (Vec<Range<i64>>, _) = (Vec::new(), Vec::new());
    let mut found = before.query((series.id, times.end))?;
    while let Some(row) = found.next()? {
        let span = row.get(0).unwrap_or(i64::MIN)..row.get(1).unwrap_or(i64::MIN);
        let is_apart = touching.last().is_none_or(|later| span.end < later.start);
        if span.is_empty() || !is_apart || !series.checksum.holds(row) {
            broken.push(span.start);
        } else if span.end < times.start {
            // The ranges do not touch each other, so all that follow end even earlier.
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
    series: Series,
    interval: Stored,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, u64), StoreError> {
    let (spans, broken) = touching(&mut db.prepare(BEFORE)?, series, times)?;
    let slots = |span: &Range<i64>| Some(slot(interval, span.start)?..slot(interval, span.end)?);
    let covered: Vec<_> = spans.iter().rev().filter_map(slots).collect();
    let unsound = broken.len() + spans.len() - covered.len();
    Ok((covered, unsound as u64))
}
