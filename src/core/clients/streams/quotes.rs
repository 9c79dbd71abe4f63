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
    named: BTreeMap<(SymbolId, Option<SourceId>), Named>,
    /// By source: those who read every symbol.
    all: BTreeMap<Option<SourceId>, All>,
}

/// A quote that some streams name.
#[derive(Default)]
struct Named {
    version: u64,
    readers: Readers,
}

#[derive(Default)]
struct All {
    /// By symbol.
    versions: Vec<u64>,
    /// With the place of the first symbol.
    readers: Readers,
}

impl QuoteReaders {
    /// A stream reads its symbols from now on.
    pub fn add(&mut self, key: Key, stream: &EventStream, view: &View<'_>) {
        let first = stream.charts.len();
        match &stream.symbols {
            StreamedSymbols::All => {
                let all = self.all.entry(stream.source).or_default();
                all.readers.add(key, first);
            }
            StreamedSymbols::Named(symbols) => {
                for (at, symbol) in symbols.iter().enumerate() {
                    let named = self.named.entry((*symbol, stream.source)).or_default();
                    named.version = version(view, *symbol, stream.source);
                    named.readers.add(key, first + at);
                }
            }
        }
    }

    /// A stream does not read them any more.
    pub fn remove(&mut self, key: Key, stream: &EventStream) {
        match &stream.symbols {
            StreamedSymbols::All => {
                if let Some(all) = self.all.get_mut(&stream.source) {
                    all.readers.remove(key);
                    if all.readers.is_empty() {
                        self.all.remove(&stream.source);
                    }
                }
            }
            StreamedSymbols::Named(symbols) => {
                for symbol in symbols {
                    let place = (*symbol, stream.source);
                    if let Some(named) = self.named.get_mut(&place) {
                        named.readers.remove(key);
                        if named.readers.is_empty() {
                            self.named.remove(&place);
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
        let mut count = 0;
        let of_symbol = self.named.range_mut((symbol, None)..);
        for ((_, source), named) in of_symbol.take_while(|((it, _), _)| *it == symbol) {
            let version = version(view, symbol, *source);
            if std::mem::replace(&mut named.version, version) != version {
                named.readers.each(&mut note);
                count += named.readers.len();
            }
        }
        for (source, all) in &mut self.all {
            let at = symbol.index();
            if all.versions.len() <= at {
                all.versions.resize(at + 1, 0);
            }
            let version = version(view, symbol, *source);
            if std::mem::replace(&mut all.versions[at], version) != version {
                all.readers.each(|key, first| note(key, first + at));
                count += all.readers.len();
            }
        }
        count
    }
}

/// The version of the quote that is served; 0 if there is none.
fn version(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> u64 {
    served_quote(view, symbol, source).map_or(0, |quote| quote.version)
}
