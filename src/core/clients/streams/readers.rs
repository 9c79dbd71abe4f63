//! The readers of each quote.

use crate::core::api::{StreamRequest, StreamedSymbols, View};
use crate::market::{SourceId, SymbolId};
use crate::table::Key;
use std::collections::BTreeMap;

/// The streams that read one thing: the index of the connection of each, and the place of that thing in the
/// stream. A stream is removed in the same call that frees the index of its connection, so no index is of a
/// connection that is gone.
pub type Readers = BTreeMap<u32, u32>;

/// Which quotes a stream reads: of this symbol (`None`: of every symbol), from this source (`None`: from the
/// best one).
type Read = (Option<SymbolId>, Option<SourceId>);

/// The streams that read quotes, by what they read.
#[derive(Default)]
pub struct QuoteReaders(BTreeMap<Read, Group>);

/// Readers of the same quotes.
#[derive(Default)]
struct Group {
    readers: Readers,
    /// For each symbol, from the group's first symbol on: the version that the readers were told of last; 0:
    /// none. A reader that joins changes nothing here. Its stream marks all its places when it begins, except
    /// those whose quote the client has already.
    told: Vec<u64>,
}

/// The version of the quote that is served; 0 if there is none.
fn version(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> u64 {
    view.served_quote(symbol, source).map_or(0, |quote| quote.version)
}

/// The quotes that a stream reads, each with its place in the stream.
fn read_by(asked: &StreamRequest) -> impl Iterator<Item = (Read, usize)> {
    let (first, source) = (asked.charts.len(), asked.source);
    let all = matches!(asked.symbols, StreamedSymbols::All).then_some((None, first));
    let named = asked.symbols.named().map(move |(at, symbol)| (Some(symbol), first + at));
    all.into_iter().chain(named).map(move |(symbol, place)| ((symbol, source), place))
}

impl QuoteReaders {
    /// A stream reads what it asks for from now on.
    pub fn add(&mut self, key: Key, asked: &StreamRequest, view: &View<'_>) {
        for (read, place) in read_by(asked) {
            self.add_one((key, place), read, view);
        }
    }

    /// A stream reads this too from now on, at this place. For the first reader of a group, the versions that
    /// are served now count as told.
    pub fn add_one(&mut self, (key, place): (Key, usize), read: Read, view: &View<'_>) {
        let group = self.0.entry(read).or_default();
        if group.readers.is_empty() {
            let all = 0..view.market.catalog.symbols_ever() as u32;
            let version = |symbol| version(view, symbol, read.1);
            group.told = match read.0 {
                Some(symbol) => vec![version(symbol)],
                None => all.map(SymbolId).map(version).collect(),
            };
        }
        group.readers.insert(key.index() as u32, place as u32);
    }

    /// A stream has ended: removes it from the readers of all that it asked for.
    pub fn remove(&mut self, key: Key, asked: &StreamRequest) {
        for (read, _) in read_by(asked) {
            if let Some(group) = self.0.get_mut(&read) {
                group.readers.remove(&(key.index() as u32));
                if group.readers.is_empty() {
                    self.0.remove(&read);
                }
            }
        }
    }

    /// Calls `note` with the connection and the place of each reader of the symbol whose served quote has
    /// changed since the reader was told.
    /// So a change of a source that is not served costs nothing more than a look. Returns the cost: one for
    /// each reader that was passed, and one for each quote that was looked up.
    pub fn changed(
        &mut self,
        symbol: SymbolId,
        view: &View<'_>,
        mut note: impl FnMut(u32, usize),
    ) -> usize {
        let mut count = 0;
        for (read, offset) in [(Some(symbol), 0), (None, symbol.index())] {
            let groups = self.0.range_mut((read, None)..).take_while(|((it, _), _)| *it == read);
            for ((_, source), Group { readers, told }) in groups {
                count += 1;
                let version = version(view, symbol, *source);
                if told.len() <= offset {
                    told.resize(offset + 1, 0);
                }
                if std::mem::replace(&mut told[offset], version) != version {
                    readers.iter().for_each(|(index, at)| note(*index, *at as usize + offset));
                    count += readers.len();
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Context;
    use crate::core::clients::streams::stream::{EventStream, SharedEvents};
    use crate::core::testing::{SOURCE, listing};
    use crate::decimal::Decimal;
    use crate::http::{EndlessBody, Version};
    use crate::json::Decimals;
    use crate::record::Ticker;
    use crate::table::{Key, Table};
    use std::collections::BTreeMap;

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
        EventStream::new(request, None, 0, (0, view))
    }

    #[test]
    fn a_reader_that_comes_between_a_change_and_its_note_keeps_it_from_nobody() {
        check_reader_between(true);
        check_reader_between(false);
    }

    /// `is_named`: somebody named the symbol before the change, beside the one who reads every symbol.
    fn check_reader_between(is_named: bool) {
        let mut cx = listing(&["BTC/USDT".to_string()], 0);
        let symbol = cx.market.catalog.known()[0];
        let mut keys = Table::new(3);
        let keys = [(); 3].map(|()| keys.insert(()).expect("room for all"));
        let mut readers = QuoteReaders::default();
        let mut streams = BTreeMap::new();
        let named = || StreamedSymbols::Named([Some(symbol)].into());
        let mut add = |key: Key, symbols: StreamedSymbols, is_sent: bool, cx: &Context| {
            let view = View::new(cx);
            let mut stream = stream(symbols, &view);
            readers.add(key, &stream.asked, &view);
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
        let view = View::new(&cx);
        let mut changed = || {
            let mut noted = Vec::new();
            let count = readers.changed(symbol, &view, |index, place| {
                let key = keys[index as usize];
                let stream = streams.get_mut(&key).expect("a reader has a stream");
                if stream.changed.insert(place) {
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
        streams.iter().for_each(|(key, stream)| readers.remove(*key, &stream.asked));
        assert!(readers.0.is_empty());
    }
}
