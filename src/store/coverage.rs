//! The covered spans of a series, as rows: how a range is put in and taken out.
//!
//! Owns the table `span`. Only rows that overlap or touch the range are looked at, so that a series
//! in many pieces costs no more than one in one.
//!
//! Invariant: spans of a series are not empty, and neither overlap nor touch. A span that breaks it
//! is passed over when read and goes when a range is put over it.

use super::error::StoreError;
use super::row::slot;
use super::sqlite::{Database, Statement, Value};
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
                "SELECT first, until FROM span WHERE series = ?1 AND first <= ?2 ORDER BY first DESC",
            )?,
            put: db.prepare(
                "INSERT INTO span VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <> excluded.until",
            )?,
            take: db.prepare("DELETE FROM span WHERE series = ?1 AND first = ?2")?,
        })
    }

    /// Puts these times in.
    pub(super) fn cover(&mut self, series: i64, times: &Range<i64>) -> Result<(), StoreError> {
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
                self.take
                    .run(&[Value::Int(series), Value::Int(span.start)])?;
            }
        }
        self.set(series, start..end)
    }

    /// Takes these times out.
    pub(super) fn forget(&mut self, series: i64, times: &Range<i64>) -> Result<(), StoreError> {
        if times.is_empty() {
            return Ok(());
        }
        for span in self.touched(series, times)? {
            if span.start >= times.end {
                continue;
            }
            if span.start >= times.start {
                self.take
                    .run(&[Value::Int(series), Value::Int(span.start)])?;
            } else if span.end > times.start {
                self.set(series, span.start..times.start)?;
            }
            if span.end > times.end {
                self.set(series, times.end..span.end)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, series: i64, span: Range<i64>) -> Result<(), StoreError> {
        let values = [
            Value::Int(series),
            Value::Int(span.start),
            Value::Int(span.end),
        ];
        self.put.run(&values).map(|_| ())
    }

    /// The spans that overlap or touch these times.
    fn touched(&mut self, series: i64, times: &Range<i64>) -> Result<Vec<Range<i64>>, StoreError> {
        let mut found = self
            .touching
            .query(&[Value::Int(series), Value::Int(times.end)])?;
        let mut touched = Vec::new();
        while let Some(row) = found.next()? {
            let (Some(first), Some(until)) = (row.int(0), row.int(1)) else {
                continue;
            };
            // Spans lie apart from each other: the first one that ends before is the last one to
            // look at.
            if until < times.start {
                break;
            }
            touched.push(first..until);
        }
        Ok(touched)
    }
}

/// The covered slots of a series among these times, in order; and how many rows made no sense.
pub(super) fn read(
    db: &Database,
    series: i64,
    interval: Stored,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, u64), StoreError> {
    let mut query = db.prepare(
        "SELECT first, until FROM span WHERE series = ?1 AND first < ?2 ORDER BY first DESC",
    )?;
    let mut found = query.query(&[Value::Int(series), Value::Int(times.end)])?;
    let (mut spans, mut unsound): (Vec<Range<i64>>, u64) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let ends = row.int(0).zip(row.int(1));
        let slots = ends.and_then(|(first, until)| {
            let span = slot(interval, first)?..slot(interval, until)?;
            let apart = spans.last().is_none_or(|later| span.end < later.start);
            (apart && !span.is_empty()).then_some(span)
        });
        let Some(slots) = slots else {
            unsound += 1;
            continue;
        };
        if slots.end * super::row::seconds(interval) <= times.start {
            break;
        }
        spans.push(slots);
    }
    spans.reverse();
    Ok((spans, unsound))
}
