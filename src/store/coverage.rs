//! The covered spans of a series, as rows: how a range is put in and taken out.
//!
//! Owns the table `span`. Only rows that overlap or touch the range are looked at, so that a series
//! in many pieces costs no more than one in one.
//!
//! Invariant: spans of a series are not empty, and neither overlap nor touch. A span that breaks it
//! is passed over when read and goes when a range is put over it.

use super::row::{seconds, slot};
use super::sqlite::{Database, Row, Statement, Value};
use super::write::Series;
use crate::history::StoreError;
use crate::interval::Stored;
use std::ops::Range;

/// The statements that change spans.
pub(super) struct Spans<'a> {
    touching: Statement<'a>,
    put: Statement<'a>,
    take: Statement<'a>,
}

impl<'a> Spans<'a> {
    /// Prepares them.
    pub(super) fn new(db: &'a Database) -> Result<Spans<'a>, StoreError> {
        Ok(Spans {
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

    /// Puts these times in.
    pub(super) fn cover(&mut self, series: Series, times: &Range<i64>) -> Result<(), StoreError> {
        if times.is_empty() {
            return Ok(());
        }
        let touched = self.touched(series, times)?;
        let start = touched
            .iter()
            .map(|span| span.start)
            .fold(times.start, i64::min);
        let end = touched
            .iter()
            .map(|span| span.end)
            .fold(times.end, i64::max);
        for span in &touched {
            if span.start != start {
                self.take(series, span.start)?;
            }
        }
        self.set(series, start..end)
    }

    /// Takes these times out.
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
        let seal = Value::Int(series.seal.over(&ends).number());
        let values = [Value::Int(series.id), ends[0], ends[1], seal];
        self.put.run(&values).map(|_| ())
    }

    fn take(&mut self, series: Series, first: i64) -> Result<(), StoreError> {
        let key = [Value::Int(series.id), Value::Int(first)];
        self.take.run(&key).map(|_| ())
    }

    /// The spans that overlap or touch these times. Those that cannot be believed are taken out.
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
                    // They lie apart from each other: the first one that ends before is the last
                    // one to look at.
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

/// The span of a row, in times. `None`: it is not what was written.
fn span(series: Series, row: &Row<'_>) -> Option<Range<i64>> {
    let span = row.int(0)?..row.int(1)?;
    let holds = series.seal.holds(row, 0..2);
    (holds && !span.is_empty()).then_some(span)
}

/// The covered slots of a series among these times, in order; and how many rows made no sense.
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
