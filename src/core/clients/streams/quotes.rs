//! The quotes that streams read: which stream has which symbol at which place.
//!
//! Owns the lists of readers, and the version of each quote that they know of.

use crate::core::api::stream::served_quote;
use crate::core::api::{StreamedSymbols, View};
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
    all: BTreeMap<Option<SourceId>, BTreeMap<Key, u32>>,
}

#[derive(Default)]
struct ReadQuote {
    version: u64,
    /// Those who name it, with its place.
    readers: BTreeMap<Key, u32>,
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
                for (symbol, place) in symbols.iter().zip(first..) {
                    let quote = self.quotes.entry((*symbol, source)).or_default();
                    quote.version = version(view, *symbol, source);
                    quote.readers.insert(key, place);
                }
            }
        }
    }

    /// A stream does not read them any more.
    pub fn remove(&mut self, key: Key, stream: &EventStream) {
        match &stream.symbols {
            StreamedSymbols::All => self.all.retain(|_, readers| {
                readers.remove(&key);
                !readers.is_empty()
            }),
            StreamedSymbols::Named(symbols) => {
                for symbol in symbols {
                    let place = (*symbol, stream.source);
                    if let Some(quote) = self.quotes.get_mut(&place) {
                        quote.readers.remove(&key);
                        if quote.readers.is_empty() {
                            self.quotes.remove(&place);
                        }
                    }
                }
            }
        }
    }

    /// Passes the readers of a quote to `note` if another one is served for the symbol than before. Returns
    /// how many there were.
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
            let version = version(view, symbol, *source);
            if std::mem::replace(&mut quote.version, version) == version {
                continue;
            }
            let all = self.all.get(source).into_iter().flatten();
            let all = all.map(|(key, first)| (key, first + symbol.0));
            for (key, place) in quote.readers.iter().map(|(key, place)| (key, *place)).chain(all) {
                note(*key, place as usize);
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
