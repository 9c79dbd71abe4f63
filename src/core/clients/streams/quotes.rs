//! The quotes that streams read: which stream has which symbol at which place.
//!
//! Owns the lists of readers, and the version of each quote that they know of.

use crate::core::api::stream::served_quote;
use crate::core::api::{StreamedSymbols, View};
use crate::core::clients::streams::readers::Readers;
use crate::core::clients::streams::stream::EventStream;
use crate::market::{SourceId, SymbolId};
use crate::table::Key;
use std::collections::BTreeMap;

/// See the module's page.
#[derive(Default)]
pub struct QuoteReaders {
    /// The quotes that a stream names, and those that have changed while a stream reads every symbol.
    quotes: BTreeMap<(SymbolId, Option<SourceId>), ReadQuote>,
    /// By source: those who read every symbol, with the place of the first one.
    all: BTreeMap<Option<SourceId>, Readers>,
}

#[derive(Default)]
struct ReadQuote {
    version: u64,
    /// Those who name it, with its place.
    readers: Readers,
}

impl QuoteReaders {
    /// A stream reads its symbols from now on.
    pub fn add(&mut self, key: Key, stream: &EventStream, view: &View<'_>) {
        let (source, first) = (stream.source, stream.charts.len() as u32);
        match &stream.symbols {
            StreamedSymbols::All => {
                self.all.entry(source).or_default().insert(key, first);
            }
            StreamedSymbols::Named(symbols) => {
                // Where others read it, they may not have been told of the newest one yet.
                let is_read = self.all.contains_key(&source);
                for (symbol, place) in symbols.iter().zip(first..) {
                    let quote = self.quotes.entry((*symbol, source));
                    let quote = quote.or_insert_with(|| ReadQuote {
                        version: if is_read { 0 } else { version(view, *symbol, source) },
                        readers: Readers::default(),
                    });
                    quote.readers.insert(key, place);
                }
            }
        }
    }

    /// A stream does not read them any more.
    pub fn remove(&mut self, key: Key, stream: &EventStream) {
        match &stream.symbols {
            StreamedSymbols::All => {
                let Some(readers) = self.all.get_mut(&stream.source) else {
                    return;
                };
                readers.remove(key);
                if readers.is_empty() {
                    self.all.remove(&stream.source);
                    let is_read = |quote: &ReadQuote| !quote.readers.is_empty();
                    self.quotes
                        .retain(|(_, source), quote| *source != stream.source || is_read(quote));
                }
            }
            StreamedSymbols::Named(symbols) => {
                for symbol in symbols {
                    let place = (*symbol, stream.source);
                    if let Some(quote) = self.quotes.get_mut(&place) {
                        quote.readers.remove(key);
                        if quote.readers.is_empty() {
                            self.quotes.remove(&place);
                        }
                    }
                }
            }
        }
    }

    /// Passes the readers of a quote to `note` if another one is served for the symbol than before. Returns
    /// how many there were, and one for each quote that was looked at.
    pub fn changed(
        &mut self,
        symbol: SymbolId,
        view: &View<'_>,
        mut note: impl FnMut(Key, usize),
    ) -> usize {
        for source in self.all.keys() {
            self.quotes.entry((symbol, *source)).or_default();
        }
        let mut count = 0;
        let of_symbol = self.quotes.range_mut((symbol, None)..);
        for ((_, source), quote) in of_symbol.take_while(|((it, _), _)| *it == symbol) {
            count += 1;
            let version = version(view, symbol, *source);
            if std::mem::replace(&mut quote.version, version) == version {
                continue;
            }
            let all = self.all.get(source).into_iter().flat_map(Readers::iter);
            let all = all.map(|(key, first)| (key, first + symbol.0));
            for (key, place) in quote.readers.iter().chain(all) {
                note(key, place as usize);
                count += 1;
            }
        }
        count
    }
}

/// The version of the quote that is served; 0 if there is none.
fn version(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> u64 {
    served_quote(view, symbol, source).map_or(0, |quote| quote.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::core::api::Endpoint;
    use crate::core::api::StreamRequest;
    use crate::core::api::compressed_cache::CompressedBodies;
    use crate::core::clients::admission::Admitted;
    use crate::core::clients::pending::Served;
    use crate::core::{Context, Status};
    use crate::decimal::Decimal;
    use crate::http::EndlessBody;
    use crate::json::Decimals;
    use crate::market::Market;
    use crate::market::testing::info;
    use crate::record::Ticker;
    use crate::table::Table;
    use crate::time::{Mono, Now, UnixMs};

    const SOURCE: SourceId = SourceId(0);

    /// A market with one symbol.
    fn context() -> (Context, SymbolId) {
        let now = Now { mono: Mono(1), unix: UnixMs(1) };
        let symbols = vec!["BTC/USDT".to_string()];
        let source = SourceConfig { symbols, ..SourceConfig::of("binance") };
        let config = Config { sources: vec![source], ..Config::default() };
        let mut market = Market::new(&config);
        market.catalog.begin_list(SOURCE);
        market.catalog.list(SOURCE, info("BTC/USDT"));
        market.catalog.end_list(SOURCE).expect("a usable list");
        market.catalog.refresh_list(SOURCE, now.unix);
        let stats = Status::new(["binance"].into_iter(), now);
        let symbol = market.catalog.known()[0];
        (Context::new(config, market, stats, now), symbol)
    }

    fn stream(symbols: StreamedSymbols, view: &View<'_>) -> EventStream {
        let request = StreamRequest {
            symbols,
            charts: Vec::new(),
            source: None,
            decimals: Decimals::Number,
            resumed: None,
            body: EndlessBody::Chunked,
        };
        let served = Served {
            endpoint: Endpoint::Unknown,
            closing: None,
            admitted: Admitted::unlimited(None),
            line: None,
            asked_at: view.now.mono,
        };
        EventStream::new(request, served, view)
    }

    #[test]
    fn a_reader_that_comes_between_a_change_and_its_note_keeps_it_from_nobody() {
        check_reader_between(true);
        check_reader_between(false);
    }

    /// `is_named`: somebody named the symbol before the change, beside the one who reads every symbol.
    fn check_reader_between(is_named: bool) {
        let (mut cx, symbol) = context();
        let compressed = CompressedBodies::new(0);
        let mut keys = Table::new(3);
        let keys = [(); 3].map(|()| keys.insert(()).expect("room for all"));
        let mut readers = QuoteReaders::default();
        let named = || StreamedSymbols::Named([symbol].into());
        let view = View::new(&cx, &compressed);
        if is_named {
            readers.add(keys[0], &stream(named(), &view), &view);
        }
        readers.add(keys[1], &stream(StreamedSymbols::All, &view), &view);
        let ticker = Ticker::of_last(Decimal::from(7));
        cx.market.quotes.apply(SOURCE, symbol, ticker, cx.now).expect("a good ticker");
        let view = View::new(&cx, &compressed);
        readers.add(keys[2], &stream(named(), &view), &view);
        let mut noted = Vec::new();
        let count = readers.changed(symbol, &view, |key, place| noted.push((key, place)));
        noted.sort();
        let told = &keys[usize::from(!is_named)..];
        assert_eq!(noted, told.iter().map(|key| (*key, 0)).collect::<Vec<_>>());
        assert_eq!(count, told.len() + 1);
        let again = readers.changed(symbol, &view, |_, _| panic!("nothing has changed"));
        assert_eq!(again, 1);
        readers.remove(keys[1], &stream(StreamedSymbols::All, &view));
        readers.remove(keys[0], &stream(named(), &view));
        readers.remove(keys[2], &stream(named(), &view));
        assert!(readers.quotes.is_empty() && readers.all.is_empty());
    }
}
