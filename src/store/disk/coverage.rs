//! The covered times of a series: the interval set that the table `span` holds.
//!
//! Adding or removing a range looks only at the rows that overlap or touch it, so the number of the
//! other rows does not matter.
//!
//! Invariant: the ranges of a series are not empty, and neither overlap nor touch. A row that breaks
//! this is ignored by a read, and deleted when a range is added over it.

use super::row::{seconds, slot};
use super::series::Series;
use super::sqlite::{Database, Row, Statement, Value};
use crate::history::StoreError;
use crate::interval::Stored;
use std::ops::Range;

/// The statements that change coverage.
pub(super) struct CoverageWriter<'a> {
    touching: Statement<'a>,
    put: Statement<'a>,
    take: Statement<'a>,
}

impl<'a> CoverageWriter<'a> {
    /// Prepares the statements.
    pub(super) fn new(db: &'a Database) -> Result<CoverageWriter<'a>, StoreError> {
        Ok(CoverageWriter {
            touching: db.prepare(
                "SELECT first, until, seal FROM span WHERE series = ?1 AND first <= ?2
                 ORDER BY first DESC",
            )?,
            put: db.prepare(
                "INSERT INTO span VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET until = ?3, seal = ?4 WHERE (until, seal) <> (?3, ?4)",
            )?,
            take: db.prepare("DELETE FROM span WHERE series = ?1 AND first = ?2")?,
        })
    }

    /// Adds these times.
    pub(super) fn cover(&mut self, series: Series, times: &Range<i64>) -> Result<(), StoreError> {
        if times.is_empty() {
            return Ok(());
        }
        let touched = self.touched(series, times)?;
        let starts = touched.iter().map(|span| span.start);
        let start = starts.fold(times.start, i64::min);
        let ends = touched.iter().map(|span| span.end);
        let end = ends.fold(times.end, i64::max);
        for span in &touched {
            if span.start != start {
                self.take(series, span.start)?;
            }
        }
        self.set(series, start..end)
    }

    /// Removes these times.
    pub(super) fn forget(&mut self, series: Series, times: &Range<i64>) -> Result<(), StoreError> {
        if times.is_empty() {
            return Ok(());
        }
        for span in self.touched(series, times)? {
            if span.start >= times.end {
                continue;
            }
            if span.start >= times.start {
                self.take(series, span.start)?;
            } else if span.end > times.start {
                self.set(series, span.start..times.start)?;
            }
            if span.end > times.end {
                self.set(series, times.end..span.end)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, series: Series, span: Range<i64>) -> Result<(), StoreError> {
        let ends = [Value::Int(span.start), Value::Int(span.end)];
        let checksum = Value::Int(series.checksum.with_all(&ends).number());
        let values = [Value::Int(series.id), ends[0], ends[1], checksum];
        self.put.run(&values).map(|_| ())
    }

    fn take(&mut self, series: Series, first: i64) -> Result<(), StoreError> {
        let key = [Value::Int(series.id), Value::Int(first)];
        self.take.run(&key).map(|_| ())
    }

    /// The ranges that overlap or touch these times, last first. Rows that break the invariant or
    /// whose checksum is wrong are deleted.
    fn touched(
        &mut self,
        series: Series,
        times: &Range<i64>,
    ) -> Result<Vec<Range<i64>>, StoreError> {
        let mut touched: Vec<Range<i64>> = Vec::new();
        let mut broken = Vec::new();
        let values = [Value::Int(series.id), Value::Int(times.end)];
        let mut found = self.touching.query(&values)?;
        while let Some(row) = found.next()? {
            match span(series, &row) {
                Some(span) if touched.last().is_none_or(|later| span.end < later.start) => {
                    // The ranges do not touch each other, so all that follow end even earlier.
                    if span.end < times.start {
                        break;
                    }
                    touched.push(span);
                }
                _ => broken.extend(row.int(0)),
            }
        }
        drop(found);
        for first in broken {
            self.take(series, first)?;
        }
        Ok(touched)
    }
}

/// The range of a row, in times. `None` if it is empty or its checksum is wrong.
fn span(series: Series, row: &Row<'_>) -> Option<Range<i64>> {
    let span = row.int(0)?..row.int(1)?;
    let holds = series.checksum.holds(row);
    (holds && !span.is_empty()).then_some(span)
}

/// The covered slots of a series among these times, in order, and the number of invalid rows.
pub(super) fn read(
    db: &Database,
    series: Series,
    interval: Stored,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, u64), StoreError> {
    let mut query = db.prepare(
        "SELECT first, until, seal FROM span WHERE series = ?1 AND first < ?2 ORDER BY first DESC",
    )?;
    let mut found = query.query(&[Value::Int(series.id), Value::Int(times.end)])?;
    let (mut spans, mut unsound): (Vec<Range<i64>>, u64) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let slots = span(series, &row).and_then(|span| {
            let slots = slot(interval, span.start)?..slot(interval, span.end)?;
            let apart = spans.last().is_none_or(|later| slots.end < later.start);
            apart.then_some(slots)
        });
        let Some(slots) = slots else {
            unsound += 1;
            continue;
        };
        if slots.end * seconds(interval) <= times.start {
            break;
        }
        spans.push(slots);
    }
    spans.reverse();
    Ok((spans, unsound))
}
