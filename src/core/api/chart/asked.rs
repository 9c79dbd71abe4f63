//! The parameters of a chart's request.

use super::super::error::{Error, echo};
use super::super::params::{self, Call};
use super::super::symbols::look_up;
use super::super::view::View;
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartSpec, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::borrow::Cow;
use std::cell::Cell;

/// Most candles of one answer.
const MAX_LIMIT: usize = 5000;

/// Candles of an answer when neither a limit nor both ends are given.
const DEFAULT_LIMIT: usize = 500;

/// Times below this are seconds: as milliseconds they would lie in 1973 and before.
pub(super) const SECONDS_BELOW: i64 = 100_000_000_000;

/// A request for a chart, understood.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Of which market.
    pub symbol: SymbolId,
    /// Which candles, and how they are written.
    pub spec: ChartSpec,
    /// Of which source, where that was said.
    pub source: Option<SourceId>,
    /// What answered it last.
    pub(super) known: Cell<Option<Known>>,
}

/// What answered a request, and what has to be the same for that to do so again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The series.
    pub key: SeriesKey,
    /// Its version.
    pub version: u64,
    /// The newest slot that had begun.
    pub present: i64,
}

impl Asked {
    /// A request for this, which nothing has answered yet.
    pub fn new(symbol: SymbolId, spec: ChartSpec, source: Option<SourceId>) -> Asked {
        Asked {
            symbol,
            spec,
            source,
            known: Cell::new(None),
        }
    }
}

/// Reads the parameters.
pub fn read(view: &View<'_>, call: &Call<'_>) -> Result<Asked, Error> {
    let query = call.query;
    let names = [
        "symbol",
        "interval",
        "resolution",
        "from",
        "startTime",
        "to",
        "endTime",
        "limit",
        "fill",
        "source",
        "decimals",
    ];
    let [
        symbol,
        interval,
        resolution,
        from,
        start_time,
        to,
        end_time,
        limit,
        fill,
        source,
        decimals,
    ] = params::read(query, &names)?;
    let symbol = read_symbol(view, symbol)?;
    let interval = read_interval(interval, resolution)?;
    let (first, last) = (
        either(("from", from), ("startTime", start_time))?,
        either(("to", to), ("endTime", end_time))?,
    );
    let (from, to) = (read_time(&first)?, read_time(&last)?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let message = format!("\"{}\" must not be later than \"{}\".", first.0, last.0);
        return Err(Error::bad("invalid_range", first.0, message));
    }
    let default = match (from, to) {
        (Some(_), Some(_)) => MAX_LIMIT,
        _ => DEFAULT_LIMIT,
    };
    let spec = ChartSpec {
        interval,
        from,
        to,
        limit: read_limit(limit)?.unwrap_or(default),
        fill_previous: read_fill(fill)?,
        quoted: params::decimals(&decimals)? == Decimals::String,
    };
    Ok(Asked::new(symbol, spec, params::source(view, &source)?))
}

type Value<'a> = Option<Cow<'a, [u8]>>;

/// A parameter: the name that the client has used, and the value.
type Named<'a> = (&'static str, Value<'a>);

/// One parameter that has two names.
fn either<'a>(first: Named<'a>, second: Named<'a>) -> Result<Named<'a>, Error> {
    match (&first, &second) {
        ((name, Some(_)), (alias, Some(_))) => {
            let message = format!("\"{name}\" and \"{alias}\" are the same parameter.");
            Err(Error::bad("duplicate_parameter", name, message))
        }
        ((_, None), (_, Some(_))) => Ok(second),
        _ => Ok(first),
    }
}

fn read_symbol(view: &View<'_>, value: Value<'_>) -> Result<SymbolId, Error> {
    let Some(text) = value else {
        let message = "\"symbol\" is required, for example BTC/USDT.";
        return Err(Error::bad("missing_parameter", "symbol", message));
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        let message = "\"symbol\" is empty.";
        return Err(Error::bad("empty_parameter", "symbol", message));
    }
    look_up(view, text)
}

fn read_interval(interval: Value<'_>, resolution: Value<'_>) -> Result<Interval, Error> {
    let (param, asked) = either(("interval", interval), ("resolution", resolution))?;
    let Some(asked) = asked else {
        return Ok(Interval::H1);
    };
    let (found, name_of): (_, fn(Interval) -> &'static str) = match param {
        "resolution" => (Interval::parse_resolution(&asked), Interval::resolution),
        _ => (Interval::parse(&asked), Interval::name),
    };
    found.ok_or_else(|| {
        let good: Vec<&str> = Interval::ALL.into_iter().map(name_of).collect();
        let message = format!(
            "\"{}\" is no {param}: expected one of {}.",
            echo(&asked),
            good.join(" ")
        );
        Error::bad("invalid_interval", param, message)
    })
}

fn read_time((name, value): &Named<'_>) -> Result<Option<UnixMs>, Error> {
    let Some(text) = value else {
        return Ok(None);
    };
    let number = digits(text).ok_or_else(|| {
        let message = format!(
            "\"{name}\" must be whole seconds or milliseconds since 1970, not \"{}\".",
            echo(text)
        );
        Error::bad("invalid_time", name, message)
    })?;
    Ok(Some(UnixMs(match number < SECONDS_BELOW {
        true => number * 1000,
        false => number,
    })))
}

fn read_limit(value: Value<'_>) -> Result<Option<usize>, Error> {
    let Some(text) = value else {
        return Ok(None);
    };
    let limit = digits(&text).and_then(|number| usize::try_from(number).ok());
    let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.map(Some).ok_or_else(|| {
        let message = format!(
            "\"limit\" must be a whole number from 1 to {MAX_LIMIT}, not \"{}\".",
            echo(&text)
        );
        Error::bad("invalid_limit", "limit", message)
    })
}

fn read_fill(value: Value<'_>) -> Result<bool, Error> {
    match value.as_deref() {
        None | Some(b"none") => Ok(false),
        Some(b"previous") => Ok(true),
        Some(other) => {
            let other = echo(other);
            let message = format!("\"fill\" must be none or previous, not \"{other}\".");
            Err(Error::bad("invalid_fill", "fill", message))
        }
    }
}

/// A number of at most 16 digits: enough for milliseconds of 300,000 years.
fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0i64, |sum, byte| match byte {
        b'0'..=b'9' => Some(sum * 10 + i64::from(byte - b'0')),
        _ => None,
    })
}
