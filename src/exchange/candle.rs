//! Candles: from an item to a [`Candle`].
//!
//! Owns the fields of a candle and the check of each. It does not check that candles are aligned or
//! in order: the market layer does.

use super::error::{Fault, Reject, Wrong};
use super::json::{Cursor, Raw, Stop};
use super::shape::{Fields, Order, Table};
use super::sink::Sink;
use super::value::{Unit, time, unsigned};
use crate::config::members::names;
use crate::record::Candle;

names! {
    /// What a column or a member of a candle is.
    pub(super) enum CandleField {
        /// When it opens.
        Time "time"
        Open "open"
        High "high"
        Low "low"
        Close "close"
        /// In the base asset.
        Volume "volume"
        /// Tells if the candle is closed.
        Closed "closed"
    }
}

/// How an exchange writes candles.
pub(super) struct CandleForm<'d> {
    pub(super) table: &'static Table,
    pub(super) unit: Unit,
    /// The value of [`CandleField::Closed`] for yes.
    pub(super) closed: &'d str,
}

/// Reads one candle and passes it to the sink. `opens` is the name of the item, if it has one.
pub(super) fn take<'a>(
    item: &mut Cursor<'a>,
    form: &CandleForm<'_>,
    order: &mut Order,
    opens: Raw<'a>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut fields = Fields::new();
    fields.set(CandleField::Time, opens);
    let begin = item.position();
    if !order.read(item, form.table, &mut fields)? {
        sink.rejected(Reject {
            shapes: Some(form.table.shapes(item.since(begin))),
            ..Reject::new(None, "candle", Fault::WrongType)
        });
        return Ok(());
    }
    match candle(&fields, form.unit) {
        Ok(candle) => sink.candle(candle, closed(&fields, form.closed)),
        Err((field, fault)) => sink.rejected(Reject {
            time: (time(fields.get(CandleField::Time), form.unit).ok()).flatten(),
            ..Reject::new(None, field, fault)
        }),
    }
    Ok(())
}

fn candle(fields: &Fields<'_>, unit: Unit) -> Result<Candle, Wrong> {
    use CandleField::*;
    let number = |field, name| match unsigned(fields.get(field)) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err((name, Fault::Missing)),
        Err(fault) => Err((name, fault)),
    };
    let open_time = time(fields.get(Time), unit)
        .and_then(|time| time.ok_or(Fault::Missing))
        .map_err(|fault| ("openTime", fault))?;
    Ok(Candle {
        open_time,
        open: number(Open, "open")?,
        high: number(High, "high")?,
        low: number(Low, "low")?,
        close: number(Close, "close")?,
        volume: number(Volume, "volume")?,
    })
}

/// True or false if the exchange says whether the candle is closed.
fn closed(fields: &Fields<'_>, yes: &str) -> Option<bool> {
    match fields.get(CandleField::Closed) {
        Raw::Text(word) | Raw::Number(word) => Some(word == yes.as_bytes()),
        Raw::Bool(closed) => Some(closed),
        _ => None,
    }
}
