//! The readers of each quote.

use crate::core::api::stream::served_quote;
use crate::core::api::{StreamedSymbols, View};
use crate::market::{SourceId, SymbolId};
use crate::table::Key;
use std::collections::BTreeMap;

/// The streams that read one thing, each with the place that it has it at. They are in the order of their
/// keys, in one piece: a map would take twice the memory, for each symbol of each stream.
#[derive(Debug, Default)]
pub struct Readers(Vec<(Key, u32)>);

impl Readers {
    /// True if nobody reads it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many read it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: Key, place: usize) {
        let at = self.0.partition_point(|(key, _)| *key < stream);
        self.0.insert(at, (stream, place as u32));
    }

    /// Removes a stream.
    pub fn remove(&mut self, stream: Key) {
        if let Ok(at) = self.0.binary_search_by_key(&stream, |(key, _)| *key) {
            self.0.remove(at);
            if self.0.len() < self.0.capacity() / 4 {
                self.0.shrink_to(2 * self.0.len());
            }
        }
    }

    /// Each of them, with its place.
    pub fn iter(&self) -> impl Iterator<Item = (Key, usize)> {
        self.0.iter().map(|(key, place)| (*key, *place as usize))
    }
}

/// The streams that read quotes.
#[derive(Default)]
pub struct QuoteReaders {
    /// Those that name a symbol, by symbol and source.
    named: BTreeMap<(SymbolId, Option<SourceId>), Group>,
    /// Those that read every symbol, by source, with the place of the first one.
    all: BTreeMap<Option<SourceId>, Group>,
}

/// Readers of the same quotes.
struct Group {
    readers: Readers,
    /// By symbol, counted from the first one: the version that the readers were told of last, 0 if of none.
    /// One that joins is told of it by itself: its places wait to be sent, but for what it knows already.
    told: Vec<u64>,
}

/// The version of the quote that is served; 0 if there is none.
fn version(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> u64 {
    served_quote(view, symbol, source).map_or(0, |quote| quote.version)
}

impl Group {
    /// Without readers. The first one is told of what is served now.
    fn new(
        symbols: impl Iterator<Item = SymbolId>,
        source: Option<SourceId>,
        view: &View<'_>,
    ) -> Group {
        let told = symbols.map(|symbol| version(view, symbol, source)).collect();
        Group { readers: Readers::default(), told }
    }

    /// Passes the readers to `note`, unless they were told of this version last. So a change of a source that
    /// is not served costs nothing more than this look. Returns how many there were.
    fn note(&mut self, offset: usize, version: u64, note: &mut impl FnMut(Key, usize)) -> usize {
        if self.told.len() <= offset {
            self.told.resize(offset + 1, 0);
        }
        if std::mem::replace(&mut self.told[offset], version) == version {
            return 0;
        }
        self.readers.iter().for_each(|(key, place)| note(key, place + offset));
        self.readers.len()
    }
}

impl QuoteReaders {
    /// A stream reads these symbols of a source from now on. `first`: the place of the first one.
    pub fn add(
        &mut self,
        key: Key,
        symbols: &StreamedSymbols,
        source: Option<SourceId>,
        (first, view): (usize, &View<'_>),
    ) {
        match symbols {
            StreamedSymbols::All => {
                let all = 0..view.market.catalog.symbols_ever() as u32;
                let new = || Group::new(all.map(SymbolId), source, view);
                self.all.entry(source).or_insert_with(new).readers.insert(key, first);
            }
            StreamedSymbols::Named(symbols) => {
                let places = symbols.iter().zip(first..);
                for (symbol, place) in places.filter_map(|(it, place)| Some(((*it)?, place))) {
                    self.add_one((key, place), symbol, source, view);
                }
            }
        }
    }

    /// A stream reads one more symbol from now on, at this place.
    pub fn add_one(
        &mut self,
        (key, place): (Key, usize),
        symbol: SymbolId,
        source: Option<SourceId>,
        view: &View<'_>,
    ) {
        let new = || Group::new(std::iter::once(symbol), source, view);
        self.named.entry((symbol, source)).or_insert_with(new).readers.insert(key, place);
    }

    /// A stream does not read them any more.
    pub fn remove(&mut self, key: Key, symbols: &StreamedSymbols, source: Option<SourceId>) {
        match symbols {
            StreamedSymbols::All => leave(&mut self.all, &source, key),
            StreamedSymbols::Named(symbols) => {
                for symbol in symbols.iter().flatten() {
                    leave(&mut self.named, &(*symbol, source), key);
                }
            }
        }
    }

    /// Passes the readers of a symbol to `note` who were not told of the quote that is served to them.
    /// Returns how many there were, and one for each quote that was looked up.
    pub fn changed(
        &mut self,
        symbol: SymbolId,
        view: &View<'_>,
        mut note: impl FnMut(Key, usize),
    ) -> usize {
        let named = self.named.range_mut((symbol, None)..);
        let named = named.take_while(|((it, _), _)| *it == symbol);
        let named = named.map(|((_, source), group)| (source, 0, group));
        let all = self.all.iter_mut().map(|(source, group)| (source, symbol.index(), group));
        let mut count = 0;
        for (source, offset, group) in named.chain(all) {
            count += 1 + group.note(offset, version(view, symbol, *source), &mut note);
        }
        count
    }
}

/// Removes a stream from the readers of one thing.
fn leave<K: Ord>(groups: &mut BTreeMap<K, Group>, of: &K, stream: Key) {
    if let Some(group) = groups.get_mut(of) {
        group.readers.remove(stream);
        if group.readers.is_empty() {
            groups.remove(of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::core::api::compressed_cache::CompressedBodies;
    use crate::core::api::{Endpoint, StreamRequest};
    use crate::core::clients::admission::Admitted;
    use crate::core::clients::pending::Served;
    use crate::core::clients::streams::stream::{EventStream, SharedEvents};
    use crate::core::{Context, Status};
    use crate::decimal::Decimal;
    use crate::http::{EndlessBody, Version};
    use crate::json::Decimals;
    use crate::market::Market;
    use crate::market::testing::info;
    use crate::record::Ticker;
    use crate::table::{Key, Table};
    use crate::time::{Mono, Now, UnixMs};
    use std::collections::BTreeMap;

    const SOURCE: SourceId = SourceId(0);

    /// A market with one symbol.
    fn context() -> (Context, SymbolId) {
        let now = Now { mono: Mono(1), unix: UnixMs(1) };
        let symbols = vec!["BTC/USDT".to_string()];
        let source = SourceConfig { symbols, ..SourceConfig::new("binance") };
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
            charts: Vec::new(),
            symbols,
            unknown: BTreeMap::new(),
            source: None,
            decimals: Decimals::Number,
            resumed: None,
            body: EndlessBody(Version::Http11),
        };
        let served = Served {
            endpoint: Endpoint::Unknown,
            closing: None,
            admitted: Admitted::unlimited(None),
            line: None,
            asked_at: view.now.mono,
        };
        EventStream::new(request, served, (0, 0), (0, view))
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
        let mut streams = BTreeMap::new();
        let named = || StreamedSymbols::Named([Some(symbol)].into());
        let mut add = |key: Key, symbols: StreamedSymbols, is_sent: bool, cx: &Context| {
            let view = View::new(cx, &compressed);
            readers.add(key, &symbols, None, (0, &view));
            let mut stream = stream(symbols, &view);
            if is_sent {
                stream.write(&mut Vec::new(), &view, &mut SharedEvents::default());
            }
            streams.insert(key, stream);
        };
        if is_named {
            add(keys[0], named(), true, &cx);
        }
        add(keys[1], StreamedSymbols::All, true, &cx);
        let ticker = Ticker::of_last(Decimal::from(7));
        cx.market.quotes.apply(SOURCE, symbol, ticker, cx.now).expect("a good ticker");
        // Changes are noted before anything is sent.
        add(keys[2], named(), false, &cx);
        let view = View::new(&cx, &compressed);
        let mut changed = || {
            let mut noted = Vec::new();
            let count = readers.changed(symbol, &view, |key, place| {
                let stream = streams.get_mut(&key).expect("a reader has a stream");
                if stream.note(place) {
                    noted.push((key, place));
                }
            });
            noted.sort();
            (noted, count)
        };
        // The last one is to be sent it anyway.
        let told = keys[usize::from(!is_named)..2].iter().map(|key| (*key, 0));
        assert_eq!(changed(), (told.collect(), if is_named { 5 } else { 3 }));
        assert_eq!(changed(), (Vec::new(), 2), "nothing has changed, also for the new one");
        readers.remove(keys[1], &StreamedSymbols::All, None);
        readers.remove(keys[0], &named(), None);
        readers.remove(keys[2], &named(), None);
        assert!(readers.named.is_empty() && readers.all.is_empty());
    }
}
