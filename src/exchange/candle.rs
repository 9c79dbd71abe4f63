//! Candles: from a row to a [`Candle`]. Every exchange sends rows of columns, in its own order.
//!
//! Owns the check of a row's shape. It does not check that rows are aligned or in order: the market
//! layer does.

use super::error::{Fault, Reject, Wrong};
use super::json::{Cursor, Raw, Stop};
use super::sink::Sink;
use super::value::{TimeForm, time, unsigned};
use crate::record::Candle;

/// The most columns that are read.
const COLUMNS: usize = 12;

/// The number of each column, from 0.
pub(super) struct CandleForm {
    pub(super) time: usize,
    pub(super) open: usize,
    pub(super) high: usize,
    pub(super) low: usize,
    pub(super) close: usize,
    /// In the base asset.
    pub(super) volume: usize,
    /// The column that tells if the candle is closed, and its value for yes.
    pub(super) closed: Option<(usize, &'static str)>,
    pub(super) time_form: TimeForm,
}

/// Reads one row and passes it to the sink.
pub(super) fn take(
    item: &mut Cursor<'_>,
    form: &CandleForm,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    if item.peek()? != b'[' {
        item.value()?;
        sink.rejected(Reject::new(None, "candle", Fault::WrongType));
        return Ok(());
    }
    item.pass(b'[', "a row")?;
    let mut columns = [Raw::Absent; COLUMNS];
    let mut first = true;
    let mut index = 0;
    while item.next(&mut first, b']')? {
        let value = item.value()?;
        if let Some(column) = columns.get_mut(index) {
            *column = value;
        }
        index += 1;
    }
    match candle(&columns, form) {
        Ok(candle) => sink.candle(candle, closed(&columns, form)),
        Err((field, fault)) => sink.rejected(Reject {
            time: time(columns[form.time], form.time_form).ok().flatten(),
            ..Reject::new(None, field, fault)
        }),
    }
    Ok(())
}

fn candle(columns: &[Raw<'_>; COLUMNS], form: &CandleForm) -> Result<Candle, Wrong> {
    let number = |column: usize, name| match unsigned(columns[column]) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err((name, Fault::Missing)),
        Err(fault) => Err((name, fault)),
    };
    let open_time = time(columns[form.time], form.time_form)
        .and_then(|time| time.ok_or(Fault::Missing))
        .map_err(|fault| ("openTime", fault))?;
    Ok(Candle {
        open_time,
        open: number(form.open, "open")?,
        high: number(form.high, "high")?,
        low: number(form.low, "low")?,
        close: number(form.close, "close")?,
        volume: number(form.volume, "volume")?,
    })
}

/// True or false if the exchange says whether the candle is closed.
fn closed(columns: &[Raw<'_>; COLUMNS], form: &CandleForm) -> Option<bool> {
    let (column, yes) = form.closed?;
    match columns[column] {
        Raw::Text(word) | Raw::Number(word) => Some(word == yes.as_bytes()),
        Raw::Bool(closed) => Some(closed),
        _ => None,
    }
}
