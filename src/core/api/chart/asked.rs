//! The parameters of a request for a chart.

use crate::core::api::error::{Error, echo};
use crate::core::api::outcome::Prepared;
use crate::core::api::params::{self, ApiRequest, ParamValue, whole_number};
use crate::core::api::symbols::{NamedMarkets, look_up};
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartSpec, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::cell::Cell;

/// The most candles of one response.
const MAX_LIMIT: usize = 5000;

/// The most candles of one of several charts, and the most charts: 1.5 MB, about as much as a list of all
/// markets.
const MAX_LIMIT_OF_SEVERAL: usize = 500;
const MAX_SYMBOLS: usize = 50;

/// The limit if neither `limit` nor both ends are given.
const DEFAULT_LIMIT: usize = 500;

/// Times below this are seconds: as milliseconds they would be before 1973.
pub const SECONDS_BELOW: i64 = 100_000_000_000;

/// A request for a chart.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Of this market.
    pub symbol: SymbolId,
    /// Which candles, and their form.
    pub spec: ChartSpec,
    /// Of this source, if given.
    pub source: Option<SourceId>,
    /// What the last response was made from.
    pub known: Cell<Option<Known>>,
}

/// What the last response to a request was made from. As long as all of it is the same, so is the
/// response.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The series.
    pub key: SeriesKey,
    /// Its version.
    pub version: u64,
    /// The newest slot that had begun.
    pub present: i64,
}

impl Asked {
    /// A request without a response yet.
    pub fn new(symbol: SymbolId, spec: ChartSpec, source: Option<SourceId>) -> Asked {
        Asked { symbol, spec, source, known: Cell::new(None) }
    }
}

/// A request for charts of several markets.
#[derive(Clone, Debug)]
pub struct Several {
    /// The markets.
    pub markets: NamedMarkets,
    /// Which candles of each, and their form.
    pub spec: ChartSpec,
    /// Of this source, if given.
    pub source: Option<SourceId>,
}

/// Reads the parameters.
pub fn prepare(call: &ApiRequest<'_>) -> Result<Box<dyn Prepared>, Error> {
    #[rustfmt::skip]
    let [
        symbol, symbols, interval, resolution, from, start_time, to, end_time, limit, fill, source, decimals,
    ] = call.params([
        "symbol", "symbols", "interval", "resolution", "from", "startTime", "to", "endTime", "limit", "fill",
        "source", "decimals",
    ])?;
    let (name, symbol) = either(("symbol", symbol), ("symbols", symbols))?;
    let is_one = name == "symbol";
    let wanted = match is_one {
        true => Ok(read_symbol(call, symbol)?),
        false => Err(NamedMarkets::read(call.view, &symbol.unwrap_or_default(), MAX_SYMBOLS)?),
    };
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
    let most = if is_one { MAX_LIMIT } else { MAX_LIMIT_OF_SEVERAL };
    let default = match (from, to) {
        (Some(_), Some(_)) => most,
        _ => DEFAULT_LIMIT,
    };
    let limit = params::count(&limit, Error::bad("invalid_limit", "limit", ""), 1..=most)?;
    let fills = [("none", false), ("previous", true)];
    let fills = params::either_word(&fill, Error::bad("invalid_fill", "fill", ""), fills)?;
    let spec = ChartSpec {
        interval,
        from,
        to,
        limit: limit.unwrap_or(default),
        fill_previous: fills.unwrap_or(false),
        quoted: params::decimals(&decimals)? == Decimals::String,
    };
    let source = call.source(&source)?;
    Ok(match wanted {
        Ok(symbol) => Box::new(Asked::new(symbol, spec, source)),
        Err(markets) => Box::new(Several { markets, spec, source }),
    })
}

/// A parameter: the name that the client uses, and the value.
type Named<'a> = (&'static str, ParamValue<'a>);

/// The value of a parameter with two names.
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

fn read_symbol(call: &ApiRequest<'_>, value: ParamValue<'_>) -> Result<SymbolId, Error> {
    let Some(text) = value else {
        let message = "\"symbol\" is required, for example BTC/USDT.";
        return Err(Error::bad("missing_parameter", "symbol", message));
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        let message = "\"symbol\" is empty.";
        return Err(Error::bad("empty_parameter", "symbol", message));
    }
    look_up(call.view, text)
}

fn read_interval(interval: ParamValue<'_>, resolution: ParamValue<'_>) -> Result<Interval, Error> {
    let (param, asked) = either(("interval", interval), ("resolution", resolution))?;
    let Some(asked) = asked else {
        return Ok(Interval::H1);
    };
    let (found, name_of): (_, fn(Interval) -> &'static str) = match param {
        "resolution" => (Interval::parse_resolution(&asked), Interval::resolution),
        _ => (Interval::parse(&asked), Interval::name),
    };
    found.ok_or_else(|| {
        params::none_of(
            &asked,
            Error::bad("invalid_interval", param, ""),
            Interval::ALL.map(name_of),
        )
    })
}

fn read_time((name, value): &Named<'_>) -> Result<Option<UnixMs>, Error> {
    let Some(text) = value else {
        return Ok(None);
    };
    let number = whole_number(text).ok_or_else(|| {
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
