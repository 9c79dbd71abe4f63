//! Prices: makes a [`Ticker`] of an item, or its [`Stats`], or a [`Candle`].
//!
//! Owns the fields of tickers and candles, and the rules for each field. It computes no missing figures, and
//! passes a zero on as a zero: the market layer decides what a zero means, and checks that candles are
//! aligned and in order. Only the time of a ticker is left out if it is zero.

use super::call::{Call, Page};
use super::endpoint::{ANY, ByInterval, Counts, EndpointSpec, INTERVAL_NAME};
use super::error::{ItemFault, Reject, WrongPart};
use super::fields::{Constants, TableOf};
use super::json::Raw;
use super::listing::ListingForm;
use super::shape::{ItemFields, ItemForm};
use super::sink::Sink;
use super::value::{Unit, amount, name, signed, time};
use crate::config::forms::STORED;
use crate::config::members::{Named as _, count, members, names};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::{Candle, Stats, Ticker};
use std::borrow::Cow;

names! {
    /// What a member of a ticker is.
    pub(super) enum TickerField {
        // The id comes first, because the other fields of an unwanted ticker are not read.
        /// The exchange's name of the market.
        Id "id"
        Last "last"
        Bid "bid"
        Ask "ask"
        BidVolume "bidVolume"
        AskVolume "askVolume"
        /// The price 24 hours ago, not the day's opening price.
        Open "open"
        High "high"
        Low "low"
        Change "change"
        /// The change in percent.
        Percentage "percentage"
        /// The change as a fraction: 0.01 is 1 %.
        Ratio "ratio"
        BaseVolume "baseVolume"
        QuoteVolume "quoteVolume"
        Time "time"
    }
}

/// The fields that `stats` brings.
pub(super) const OF_STATS: [TickerField; 5] = {
    use TickerField::*;
    [Open, High, Low, BaseVolume, QuoteVolume]
};

/// What is known about the items of a body before they are read.
pub(super) struct Known {
    /// The unit of their times.
    pub(super) unit: Unit,
    /// True if they hold only figures of 24 hours.
    pub(super) stats: bool,
    /// The requested market, if only one was.
    pub(super) id: Option<Box<str>>,
    /// How the exchange writes assets, if the items have members that are named after them.
    pub(super) by_asset: Option<&'static ListingForm>,
}

/// Passes one ticker to the sink. `item`: the text of the fields. `form`: how they were read. `asked`: the
/// sink's answer and the id, if the sink was asked already.
pub(super) fn take_ticker<'a>(
    fields: &mut ItemFields<'a>,
    (item, form): (&'a [u8], &ItemForm),
    known: &Known,
    asked: Option<(bool, Cow<'a, str>)>,
    sink: &mut dyn Sink,
) {
    let asked = match asked {
        Some(asked) => Ok(asked),
        None => id_of(fields, known).map(|id| (sink.wants(&id), id)),
    };
    let (is_wanted, id) = match asked {
        Ok(asked) => asked,
        Err(fault) => return sink.rejected(Reject::new(None, "id", fault)),
    };
    sink.seen();
    if !is_wanted {
        return;
    }
    if let Some(markets) = known.by_asset
        && let Some(assets) = sink.assets(&id)
    {
        form.read_by_assets(item, assets.map(|asset| markets.own(asset)), fields);
    }
    let taken = if known.stats {
        stats(fields).map(|stats| sink.stats(&id, stats))
    } else {
        ticker(fields, known).map(|ticker| sink.ticker(&id, ticker))
    };
    if let Err((field, fault)) = taken {
        sink.rejected(Reject::new(Some(&id), field, fault));
    }
}

/// The id of the item's market.
fn id_of<'a>(fields: &ItemFields<'a>, known: &'a Known) -> Result<Cow<'a, str>, ItemFault> {
    match (name(fields.get(TickerField::Id)), &known.id) {
        (Err(ItemFault::Missing), Some(id)) => Ok(Cow::Borrowed(&**id)),
        (id, _) => id,
    }
}

fn ticker(fields: &ItemFields<'_>, known: &Known) -> Result<Ticker, WrongPart> {
    use TickerField::*;
    let stats = stats(fields)?;
    // The time only dates the quote, so a time that cannot be parsed is left out.
    let sent = time(fields.get(Time), known.unit).unwrap_or_default();
    let percentage = match signed(fields, Percentage)? {
        Some(percentage) => Some(percentage),
        None => signed(fields, Ratio)?.and_then(|ratio| ratio.shifted(2)),
    };
    if fields.get(Last) == Raw::Absent {
        return Err((Last.name(), ItemFault::Missing));
    }
    Ok(Ticker {
        // The last price of a market without trades may be null or empty.
        last: amount(fields, Last)?.unwrap_or(Decimal::ZERO),
        bid: amount(fields, Bid)?,
        ask: amount(fields, Ask)?,
        bid_volume: amount(fields, BidVolume)?,
        ask_volume: amount(fields, AskVolume)?,
        open: stats.open,
        high: stats.high,
        low: stats.low,
        change: signed(fields, Change)?,
        percentage,
        base_volume: stats.base_volume,
        quote_volume: stats.quote_volume,
        // Markets that were never traded have the epoch as their time.
        timestamp: sent.filter(|time| time.0 != 0),
    })
}

fn stats(fields: &ItemFields<'_>) -> Result<Stats, WrongPart> {
    use TickerField::*;
    Ok(Stats {
        open: amount(fields, Open)?,
        high: amount(fields, High)?,
        low: amount(fields, Low)?,
        base_volume: amount(fields, BaseVolume)?,
        quote_volume: amount(fields, QuoteVolume)?,
    })
}

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
        /// The most rows of a response. Unless `wide`, a range never has more slots.
        rows: Counts, "rows" count(1, MOST_ROWS);
        /// How many candles, back from the newest, the exchange serves; all, if it is not there.
        depth: Option<Counts> = None, "depth" count(1, u32::MAX as u64);
        /// True if the exchange sends the oldest candles of a range that is longer than a page. So one page
        /// of a wide range tells which candle of the market was the first.
        wide: bool = false, "wide";
        /// The unit of their times.
        time: Unit, "time";
        /// The value of the field `closed` that means: closed.
        closed: String = String::new(), "closed";
        /// The members or columns of a candle.
        fields: TableOf<CandleField>, "fields";
        /// Values that every candle has and no response sends: for example the volume 0, if the exchange
        /// sends no volume.
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

impl Candles {
    /// The archive, if this call goes to it.
    pub(super) fn archive_for(&self, call: &Call<'_>) -> Option<&Archive> {
        let Call::Candles { interval, from, now, .. } = call else {
            return None;
        };
        let age = (*now - *from) / interval.length_ms();
        let is_old = |it: &&Archive| it.behind.get(interval).is_some_and(|it| age >= (*it).into());
        self.archive.as_ref().filter(is_old)
    }

    /// The endpoint that this call goes to.
    pub(super) fn endpoint_for(&self, call: &Call<'_>) -> &EndpointSpec {
        self.archive_for(call).map_or(&self.call, |archive| &archive.call)
    }

    /// See [`Dialect::page`](super::Dialect::page).
    pub(super) fn page(&self, interval: Stored) -> Page {
        Page {
            rows: self.rows.get(interval).unwrap_or(1) as usize,
            depth: self.depth.as_ref().and_then(|it| it.get(interval)).map(|depth| depth as usize),
            wide: self.wide,
        }
    }

    /// See [`Dialect::most_rows`](super::Dialect::most_rows).
    pub(super) fn most_rows(&self, call: &Call<'_>) -> usize {
        let Call::Candles { interval, .. } = call else {
            return 0;
        };
        let page = self.page(*interval).rows;
        let rows = self.endpoint_for(call).target.rows(call, page as i64);
        rows.map_or(page, |rows| rows as usize)
    }
}

/// Passes one candle to the sink.
pub(super) fn take_candle(fields: &ItemFields<'_>, form: &Candles, sink: &mut dyn Sink) {
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
