//! The parameters of a request for a chart.

use crate::core::api::outcome::Preparation;
use crate::core::api::request::ApiRequest;
use crate::core::api::view::{
    NamedMarket, ParamValue, View, count, decimals, look_up, none_of, one_of, read_markets,
    required, whole_number,
};
use crate::http::{Error, echo};
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartSpec, SourceId, SymbolId};
use crate::time::UnixMs;

/// The most candles of one response.
const MAX_LIMIT: usize = 5000;

/// The most candles of one of several charts, and the most charts: 1.5 MB, about as much as a list of all
/// markets.
const MAX_LIMIT_OF_SEVERAL: usize = 500;
const MAX_SYMBOLS: usize = 50;

/// The limit if neither `limit` nor both ends are given.
const DEFAULT_LIMIT: usize = 500;

/// A request for a chart.
#[derive(Clone, Debug)]
pub struct ChartRequest {
    /// Of this market.
    pub symbol: SymbolId,
    /// Which candles, and their form.
    pub spec: ChartSpec,
    /// Of this source, if given.
    pub source: Option<SourceId>,
}

/// A request for charts of several markets.
#[derive(Debug)]
pub struct ChartsRequest {
    /// The markets.
    pub markets: Box<[NamedMarket]>,
    /// Which candles of each, and their form.
    pub spec: ChartSpec,
    /// Of this source, if given.
    pub source: Option<SourceId>,
    /// True if the charts wait for candles that are not in memory, from the file and the exchange. Otherwise
    /// they are made at once, and cost the exchange nothing.
    pub waits: bool,
}

/// Reads the parameters.
pub fn prepare(call: &ApiRequest<'_>, view: &View<'_>) -> Preparation {
    #[rustfmt::skip]
    let [
        symbol, symbols, interval, resolution, from, start_time, to, end_time, limit, fill, fetch, source,
        style,
    ] = call.params([
        "symbol", "symbols", "interval", "resolution", "from", "startTime", "to", "endTime", "limit", "fill",
        "fetch", "source", "decimals",
    ])?;
    let (name, value) = either(("symbol", symbol), ("symbols", symbols))?;
    let is_one = name == "symbol";
    let markets = if is_one {
        Ok(look_up(view, required(&value, "symbol", "a market like BTC/USDT")?)?)
    } else {
        Err(read_markets(view, &value.unwrap_or_default(), MAX_SYMBOLS)?)
    };
    let interval = match either(("interval", interval), ("resolution", resolution))? {
        (_, None) => Interval::H1,
        ("resolution", Some(text)) => read_resolution(&text)?,
        (_, Some(text)) => Interval::parse(&text).ok_or_else(|| {
            let error = Error::bad("invalid_interval", "interval", "");
            none_of(&text, error, Interval::ALL.map(Interval::name))
        })?,
    };
    let first = either(("from", from), ("startTime", start_time))?;
    let last = either(("to", to), ("endTime", end_time))?;
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
    let limit = count(&limit, Error::bad("invalid_limit", "limit", ""), 1..=most)?;
    let fills = [("none", false), ("previous", true)];
    let fill = one_of(&fill, Error::bad("invalid_fill", "fill", ""), fills)?;
    let fetches = [("missing", true), ("none", false)];
    let fetch = one_of(&fetch, Error::bad("invalid_fetch", "fetch", ""), fetches)?;
    let waits = fetch.unwrap_or(true);
    if is_one && !waits {
        let message = "\"fetch=none\" is for charts of several markets: it needs \"symbols\".";
        return Err(Error::bad("invalid_fetch", "fetch", message));
    }
    let spec = ChartSpec {
        interval,
        from,
        to,
        limit: limit.unwrap_or(default),
        fill_previous: fill.unwrap_or(false),
        quoted: decimals(&style)? == Decimals::String,
    };
    let source = view.named_source(&source)?;
    Ok(match markets {
        Ok(symbol) => Box::new(ChartRequest { symbol, spec, source }),
        Err(markets) => Box::new(ChartsRequest { markets, spec, source, waits }),
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

/// An interval under the name that charting libraries use.
pub fn read_resolution(text: &[u8]) -> Result<Interval, Error> {
    let error = || Error::bad("invalid_interval", "resolution", "");
    let good = Interval::ALL.map(Interval::resolution);
    Interval::parse_resolution(text).ok_or_else(|| none_of(text, error(), good))
}

fn read_time((name, value): &Named<'_>) -> Result<Option<UnixMs>, Error> {
    let error = |text| {
        let text = echo(text);
        let message =
            format!("\"{name}\" must be whole seconds or milliseconds since 1970, not \"{text}\".");
        Error::bad("invalid_time", name, message)
    };
    let read = |text| whole_number(text).map(UnixMs::of_number).ok_or_else(|| error(text));
    value.as_deref().map(read).transpose()
}
