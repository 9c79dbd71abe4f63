//! Candles: makes a [`Candle`] of an item.
//!
//! Owns the fields of a candle and the check of each. The market layer checks that candles are
//! aligned and in order.

use super::endpoint::{ANY, ByInterval, Counts, EndpointSpec, INTERVAL_NAME};
use super::error::{ItemFault, Reject, WrongPart};
use super::fields::{Constants, TableOf};
use super::json::Raw;
use super::shape::ItemFields;
use super::sink::Sink;
use super::value::{Unit, amount, time};
use crate::config::forms::STORED;
use crate::config::members::{Named as _, count, members, names};
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

/// The most rows of a page.
const MOST_ROWS: u64 = 10_000;

members! {
    /// The calls for candles.
    pub(super) struct Candles {
        /// The endpoint.
        call: EndpointSpec, "call";
        /// The endpoint of older candles, for exchanges that keep them elsewhere.
        archive: Option<Archive> = None, "archive";
        /// The exchange's names of the intervals.
        intervals: ByInterval<String>, "intervals" (STORED, INTERVAL_NAME);
        /// The most rows of a response. A range never has more slots.
        rows: Counts, "rows" count(1, MOST_ROWS);
        /// How many candles, back from the newest, the exchange serves; all, if it is not there.
        depth: Option<Counts> = None, "depth" count(1, u32::MAX as u64);
        /// True if a page begins with the first candle of its range, wherever that is. So one page of a wide
        /// range tells which candle was the first of all.
        wide: bool = false, "wide";
        /// The unit of their times.
        time: Unit, "time";
        /// The value of the field `closed` for yes.
        closed: String = String::new(), "closed";
        /// The members or columns of a candle.
        fields: TableOf<CandleField>, "fields";
        /// What is the same of every candle and not sent: the volume of what has none.
        constants: Constants<CandleField> = Constants::default(), "constants";
    }
}

members! {
    /// The endpoint of older candles.
    pub(super) struct Archive {
        /// The endpoint.
        call: EndpointSpec, "call";
        /// How many candles, back from now, the other endpoint has.
        behind: ByInterval<u32>, "behind" (STORED, ANY);
    }
}

/// Passes one candle to the sink.
pub(super) fn take(fields: &ItemFields<'_>, form: &Candles, sink: &mut dyn Sink) {
    match candle(fields, form.time) {
        Ok(candle) => sink.candle(candle, is_forming(fields, &form.closed)),
        Err((field, fault)) => sink.rejected(Reject {
            time: (time(fields.get(CandleField::Time), form.time).ok()).flatten(),
            ..Reject::new(None, field, fault)
        }),
    }
}

fn candle(fields: &ItemFields<'_>, unit: Unit) -> Result<Candle, WrongPart> {
    use CandleField::*;
    let number =
        |field: CandleField| amount(fields, field)?.ok_or((field.name(), ItemFault::Missing));
    let open_time = time(fields.get(Time), unit)
        .and_then(|time| time.ok_or(ItemFault::Missing))
        .map_err(|fault| ("openTime", fault))?;
    Ok(Candle {
        open_time,
        open: number(Open)?,
        high: number(High)?,
        low: number(Low)?,
        close: number(Close)?,
        volume: number(Volume)?,
    })
}

/// True if the exchange says that the candle is not closed yet.
fn is_forming(fields: &ItemFields<'_>, yes: &str) -> bool {
    match fields.get(CandleField::Closed) {
        Raw::Text(word) | Raw::Number(word) => word != yes.as_bytes(),
        Raw::Bool(is_closed) => !is_closed,
        _ => false,
    }
}
