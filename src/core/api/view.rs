//! What an endpoint is given. A [`View`] shows the core during one call: nothing can be changed through it
//! but caches. The functions read the values of parameters, and the symbols that they name.

use crate::config::Config;
use crate::core::compressed_cache::CompressedBodies;
use crate::core::{Context, ProcessFacts, Status};
use crate::http::{Cache, Error, echo};
use crate::interval::{Interval, Stored};
use crate::json::Decimals;
use crate::market::{Lookup, Market, Quote, SourceId, SymbolId};
use crate::time::{Mono, Now, UnixMs, digits};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What responses are made from.
pub struct View<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Quotes, catalog and charts.
    pub market: &'a Market,
    /// Counters and the state of each source.
    pub status: &'a Status,
    /// Compressed bodies.
    pub compressed: &'a CompressedBodies,
    /// Distinguishes the versions of this run from those of another.
    pub boot: u64,
    /// The time of this turn.
    now: Now,
    /// Until when the time changes nothing in what was made from this view.
    holds_until: Cell<Mono>,
    /// How to ask the system about the process.
    pub facts: fn() -> ProcessFacts,
}

impl<'a> View<'a> {
    /// A view of the core.
    #[inline]
    pub fn new(cx: &'a Context) -> View<'a> {
        View {
            config: &cx.config,
            market: &cx.market,
            status: &cx.stats,
            compressed: &cx.compressed,
            boot: cx.boot,
            now: cx.now,
            holds_until: Cell::new(Mono::NEVER),
            facts: cx.facts,
        }
    }

    /// The time of this turn. A response that is made with it holds for this moment alone.
    pub fn now(&self) -> Now {
        self.holds_until.set(Mono(0));
        self.now
    }

    /// Until when a response that was made from this view would be made again as it is, unless the state of
    /// the core changes before (`Context::state`).
    pub fn holds_until(&self) -> Mono {
        self.holds_until.get()
    }

    fn note(&self, until: Mono) {
        self.holds_until.set(self.holds_until.get().min(until));
    }

    /// How long to cache a response whose quotes come from these sources: until the next poll, but not longer
    /// than the quotes are fresh, in whole seconds, at least one.
    pub fn until_poll(&self, sources: impl IntoIterator<Item = SourceId>) -> Cache {
        let next = sources.into_iter().map(|source| self.status[source].cacheable_until);
        self.until(next.min().unwrap_or_default())
    }

    /// Like [`View::until_poll`], for a response that any source may change.
    pub fn until_any_poll(&self) -> Cache {
        self.until_poll(self.status.running().map(|(id, _)| id))
    }

    /// How long candles of these sources may be cached: until the next poll, which changes the forming one,
    /// but not longer than the minute lasts on the exchange's clock, since the next candle comes behind it.
    /// Candles that are missing may come at any time.
    pub fn until_candles(
        &self,
        sources: impl IntoIterator<Item = SourceId>,
        are_complete: bool,
    ) -> Cache {
        let next = sources
            .into_iter()
            .filter(|_| are_complete)
            .map(|source| self.status[source].cacheable_until.min(self.minute_ends(source).0));
        self.until(next.min().unwrap_or_default())
    }

    /// Like [`View::until_any_poll`], but clients ask for a stale response again each time.
    pub fn until_any_poll_unless(&self, is_stale: bool) -> Cache {
        if is_stale { Cache::NoCache } else { self.until_any_poll() }
    }

    fn until(&self, next: Mono) -> Cache {
        let wait_ms = next.0.saturating_sub(self.now.mono.0) / 1000;
        let seconds = wait_ms.div_ceil(1000).max(1);
        if seconds > 1 {
            self.note(Mono(next.0 - (seconds - 1) * 1_000_000 - 999));
        }
        Cache::MaxAge(seconds as u32)
    }

    /// The latest time that the clock of an exchange may show. While it is in doubt, this machine's clock
    /// counts too.
    pub fn latest_time(&self, source: SourceId) -> UnixMs {
        let time = self.exchange_time(source);
        let doubt = self.status[source].clock_doubt.as_ref();
        doubt.map_or(time, |_| time.max(self.now().unix))
    }

    /// The time on the clock of an exchange. The response must depend only on the minute of it.
    pub fn exchange_time(&self, source: SourceId) -> UnixMs {
        let (ends, time) = self.minute_ends(source);
        self.note(ends);
        time
    }

    /// When the minute ends on the clock of an exchange, and the time on that clock.
    fn minute_ends(&self, source: SourceId) -> (Mono, UnixMs) {
        let status = &self.status[source];
        let time = status.exchange_time(self.now);
        // The time is cut to milliseconds: the minute may end up to one earlier.
        let left_ms = Stored::M1.open_of(Stored::M1.slot_of(time) + 1) - time - 1;
        let left_us = 1000 * left_ms as u64 / u64::from(status.clock_speed()).max(1);
        (self.now.mono + Duration::from_micros(left_us), time)
    }

    /// The intervals that can be served: one of these sources has the stored candles that they are made of.
    pub fn intervals(&self, sources: &[SourceId]) -> impl Iterator<Item = Interval> {
        let has = |base| sources.iter().any(|source| self.has_interval(*source, base));
        Interval::ALL.into_iter().filter(move |it| has(it.base()))
    }

    /// True if the exchange of a source has candles of this interval.
    pub fn has_interval(&self, source: SourceId, interval: Stored) -> bool {
        self.status[source].intervals[interval as usize]
    }

    /// The id of a source.
    pub fn id_of(&self, source: SourceId) -> &'a str {
        &self.config.sources[source.index()].id
    }

    /// The source with this id.
    pub fn source(&self, id: &[u8]) -> Option<SourceId> {
        let found = self.status.running().find(|(_, source)| source.id.as_bytes() == id);
        found.map(|(id, _)| id)
    }

    /// The parameter `source`: the id of a configured source.
    pub fn named_source(&self, value: &ParamValue<'_>) -> Result<Option<SourceId>, Error> {
        let unknown = |id| {
            let message = format!("Unknown source \"{}\".", echo(id));
            Error::new(404, "source_not_found", message).about("source")
        };
        let read = |id| self.source(id).ok_or_else(|| unknown(id));
        value.as_deref().map(read).transpose()
    }

    /// The sources that answer for a symbol: the one that a request names, or all in the order of failover.
    pub fn sources_for<'s>(
        &'s self,
        symbol: SymbolId,
        source: &'s Option<SourceId>,
    ) -> &'s [SourceId] {
        match source.as_slice() {
            [] => self.market.catalog.sources_of(symbol),
            named => named,
        }
    }

    /// The quote that is served for a symbol: of this source, or of the first source with a fresh one in the
    /// order of failover.
    pub fn served_quote(&self, symbol: SymbolId, source: Option<SourceId>) -> Option<&'a Quote> {
        let sources = self.market.catalog.sources_of(symbol);
        match source {
            // A source that no longer lists the market may still have its quote for a while.
            Some(source) if !sources.contains(&source) => None,
            Some(source) => self.market.quotes.of(source, symbol),
            None => self.market.quotes.best(sources, symbol),
        }
    }

    /// Refuses a source that does not track the symbol, unless its market list has not come yet.
    pub fn check_tracked(&self, symbol: SymbolId, source: Option<SourceId>) -> Result<(), Error> {
        let catalog = &self.market.catalog;
        let tracks = |source: SourceId| {
            catalog.sources_of(symbol).contains(&source) || catalog.may_track(source, symbol)
        };
        let Some(source) = source.filter(|source| !tracks(*source)) else {
            return Ok(());
        };
        let id = self.id_of(source);
        let name = catalog.name(symbol).as_str();
        let message = format!("Source \"{id}\" does not track \"{name}\".");
        Err(Error::new(404, "symbol_not_found", message).about("source"))
    }
}

/// The value of a parameter.
pub type ParamValue<'a> = Option<Cow<'a, [u8]>>;

/// The text of a parameter that must be there. `example`: what it may be.
pub fn required<'v>(
    value: &'v ParamValue<'_>,
    param: &'static str,
    example: &str,
) -> Result<&'v [u8], Error> {
    match value.as_deref().map(<[u8]>::trim_ascii) {
        None => {
            let message = format!("\"{param}\" is required: {example}.");
            Err(Error::bad("missing_parameter", param, message))
        }
        Some(b"") => Err(empty(param)),
        Some(text) => Ok(text),
    }
}

fn empty(param: &'static str) -> Error {
    Error::bad("empty_parameter", param, format!("\"{param}\" is empty."))
}

/// The items of a list: at least one, and at most `most`.
pub fn items<'a>(list: &'a [u8], param: &'static str, most: usize) -> Result<Vec<&'a [u8]>, Error> {
    let all = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let items: Vec<&[u8]> = all.filter(|item| !item.is_empty()).collect();
    match items.len() {
        0 => Err(empty(param)),
        count if count > most => {
            let message = format!("\"{param}\" names {count} items; at most {most} are answered.");
            Err(Error::bad("too_many_symbols", param, message))
        }
        _ => Ok(items),
    }
}

/// The symbol of a decoded text, in any accepted form.
pub fn look_up(view: &View<'_>, text: &[u8]) -> Result<SymbolId, Error> {
    match view.market.catalog.find(text) {
        Lookup::Known(symbol) => Ok(symbol),
        Lookup::Unknown => {
            let message = format!("Unknown symbol \"{}\".", echo(text));
            Err(Error::new(404, "symbol_not_found", message).about("symbol"))
        }
        Lookup::Malformed => Err(invalid(text)),
    }
}

/// A name in a list of markets, and its symbol. `None` if the catalog does not know it.
pub type NamedMarket = (Box<[u8]>, Option<SymbolId>);

/// The markets that a list names (at most `most` names), each once, in the order of their first appearance.
pub fn read_markets(
    view: &View<'_>,
    list: &[u8],
    most: usize,
) -> Result<Box<[NamedMarket]>, Error> {
    let mut markets: Vec<NamedMarket> = Vec::new();
    for name in items(list, "symbols", most)? {
        let symbol = look_up(view, name).ok();
        let is_same = |(text, other): &NamedMarket| match symbol {
            Some(_) => *other == symbol,
            None => normal(text) == normal(name),
        };
        if !markets.iter().any(is_same) {
            markets.push((name.into(), symbol));
        }
    }
    Ok(markets.into())
}

/// An unknown name as a symbol is written.
fn normal(name: &[u8]) -> Vec<u8> {
    let bytes = name.iter().map(|byte| if b"-_".contains(byte) { b'/' } else { *byte });
    bytes.map(|byte| byte.to_ascii_uppercase()).collect()
}

/// The error for a text that is no symbol.
pub fn invalid(text: &[u8]) -> Error {
    let message = format!(
        "Invalid symbol \"{}\": expected BASE/QUOTE, BASE-QUOTE, BASE_QUOTE or BASEQUOTE, letters \
         and digits, at most 20 each.",
        echo(text)
    );
    Error::bad("invalid_symbol", "symbol", message)
}

/// A number of at most 16 digits: enough for milliseconds of 300,000 years.
pub fn whole_number(text: &[u8]) -> Option<i64> {
    digits(text).filter(|_| text.len() <= 16)
}

/// Reads a whole number within `range`. `error`: the error for any other text; its message is set here.
pub fn count(
    value: &ParamValue<'_>,
    error: Error,
    range: RangeInclusive<usize>,
) -> Result<Option<usize>, Error> {
    let read = |text: &[u8]| {
        let number = whole_number(text).and_then(|number| usize::try_from(number).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let most = match *range.end() {
                usize::MAX => "on".to_string(),
                most => format!("to {most}"),
            };
            let (name, least, text) = (error.param.unwrap_or_default(), range.start(), echo(text));
            let message =
                format!("\"{name}\" must be a whole number from {least} {most}, not \"{text}\".");
            Error { message: message.into(), ..error }
        })
    };
    value.as_deref().map(read).transpose()
}

/// Reads one of `words`, and returns its meaning. `error`: as for [`count`].
pub fn one_of<T: Copy, const N: usize>(
    value: &ParamValue<'_>,
    error: Error,
    words: [(&str, T); N],
) -> Result<Option<T>, Error> {
    let read = |text: &[u8]| match words.iter().find(|(word, _)| word.as_bytes() == text) {
        Some((_, meaning)) => Ok(*meaning),
        None => Err(none_of(text, error, words.map(|(word, _)| word))),
    };
    value.as_deref().map(read).transpose()
}

/// The error for a text that is none of these words. `error`: as for [`count`].
pub fn none_of<const N: usize>(text: &[u8], error: Error, words: [&str; N]) -> Error {
    let (name, text, good) = (error.param.unwrap_or_default(), echo(text), words.join(" "));
    let message = format!("Invalid {name} \"{text}\": expected one of {good}.");
    Error { message: message.into(), ..error }
}

/// `decimals`: `number`, which is the default, or `string`.
pub fn decimals(value: &ParamValue<'_>) -> Result<Decimals, Error> {
    let words = [("number", Decimals::Number), ("string", Decimals::String)];
    let error = Error::bad("invalid_decimals", "decimals", "");
    Ok(one_of(value, error, words)?.unwrap_or(Decimals::Number))
}
