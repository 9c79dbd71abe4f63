//! Items of one response that are read and not yet applied.
//!
//! [`Staged`] owns them until the body has parsed to its end: a response that breaks off changes
//! nothing that is served. It bounds how many there may be.

use crate::core::sources::fault::Fault;
use crate::core::sources::task::Task;
use crate::exchange::{Reject, Sink};
use crate::log_targets::{SOURCE, quoted};
use crate::market::{Catalog, Reported, SourceId, SymbolId};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;
use std::collections::VecDeque;

/// Tickers in one piece: below the size that an allocator takes from the system and gives back at
/// once. All tickers of an exchange in one piece would be moved as it grows, and freed, in half a
/// millisecond each.
const TICKERS_A_PIECE: usize = 256;

/// Tickers in their order, in pieces of bounded size.
#[derive(Debug, Default)]
pub struct Tickers {
    /// All are full but the last one.
    pieces: VecDeque<Vec<(SymbolId, Ticker)>>,
    /// The time of those that have none of their own.
    default_time: Option<UnixMs>,
    /// True if a piece has been taken out.
    has_begun: bool,
    /// True if more of the poll comes later, as of one that another node has made.
    pub goes_on: bool,
}

impl Tickers {
    /// Their number.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// The newest time of one of them.
    pub fn newest(&self) -> Option<UnixMs> {
        let all = self.pieces.iter().flatten();
        all.filter_map(|(_, ticker)| ticker.timestamp).max()
    }

    /// Takes out the first piece.
    pub fn next_piece(&mut self) -> Option<Vec<(SymbolId, Ticker)>> {
        let mut piece = self.pieces.pop_front()?;
        self.has_begun = true;
        if self.default_time.is_some() {
            for (_, ticker) in &mut piece {
                ticker.timestamp = ticker.timestamp.or(self.default_time);
            }
        }
        Some(piece)
    }

    /// The piece that is taken out next, and the time of those in it that have none.
    pub fn first_piece(&self) -> (&[(SymbolId, Ticker)], Option<UnixMs>) {
        let piece = self.pieces.front().map_or(&[][..], Vec::as_slice);
        (piece, self.default_time)
    }

    /// True if the next piece is the first one, and if it is the last one.
    pub fn ends(&self) -> (bool, bool) {
        (!self.has_begun, self.pieces.len() <= 1)
    }

    /// True if none is left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn push(&mut self, symbol: SymbolId, ticker: Ticker) {
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < TICKERS_A_PIECE => piece.push((symbol, ticker)),
            _ => self.pieces.push_back(vec![(symbol, ticker)]),
        }
    }
}

/// The items of a response, by the kind of its task.
#[derive(Debug)]
pub enum Items {
    /// Of tracked markets, and the number of all that came.
    Tickers(Tickers, u64),
    /// With what the exchange itself says on whether each is closed.
    Candles(Vec<Reported>),
    /// Their number. They are in the catalog already, which serves none of them before the list ends.
    Markets(usize),
    /// The exchange's clock.
    Time(Option<UnixMs>),
    /// The 24-hour figures of one market.
    Stats(Option<Stats>),
}

/// See the module's page.
#[derive(Debug)]
pub struct Staged {
    /// The source that was asked.
    pub source: SourceId,
    /// What was asked.
    pub task: Task,
    /// What has come.
    pub items: Items,
    /// Items that were refused.
    pub rejected: u64,
    /// True if one of them is a candle whose slot is unknown.
    pub has_undated: bool,
    /// Why the first of them was refused.
    first_refusal: Option<String>,
    /// True if one of them is the ticker of a tracked market.
    has_refused_tracked: bool,
    /// The most symbols that were known while items came: a reload or a market list may know fewer.
    known: usize,
}

impl Staged {
    /// No items yet.
    pub fn new(source: SourceId, task: Task) -> Staged {
        Staged {
            items: match task {
                Task::Markets => Items::Markets(0),
                Task::Time => Items::Time(None),
                Task::Tickers | Task::Ticker(_) => Items::Tickers(Tickers::default(), 0),
                Task::Stats(_) => Items::Stats(None),
                Task::Candles { .. } => Items::Candles(Vec::new()),
            },
            source,
            task,
            rejected: 0,
            has_undated: false,
            first_refusal: None,
            has_refused_tracked: false,
            known: 0,
        }
    }

    /// True if a list that cannot be empty is. Having no candles is sound: nobody traded.
    pub fn is_empty(&self) -> bool {
        match &self.items {
            Items::Tickers(_, seen) => *seen == 0,
            Items::Candles(_) => false,
            Items::Markets(count) => *count == 0,
            Items::Time(time) => time.is_none(),
            Items::Stats(stats) => stats.is_none(),
        }
    }

    /// The fault of a response without a good item: the dialect does not fit it. A refused ticker of an
    /// untracked market means nothing beside others.
    pub fn all_refused(&self) -> Option<Fault> {
        let is_all = match &self.items {
            Items::Tickers(list, seen) => {
                list.is_empty() && (self.has_refused_tracked || *seen == self.rejected)
            }
            Items::Candles(list) => list.is_empty() && self.has_undated,
            Items::Markets(_) | Items::Time(_) | Items::Stats(_) => self.is_empty(),
        };
        let first = self.first_refusal.as_ref().filter(|_| is_all);
        first.map(|first| Fault::AllRefused(first.clone()))
    }

    /// True if there are so many items that most of them must be repeated: more than two for each
    /// symbol, or for each slot of candles. So a body of any length is staged in bounded memory.
    pub fn is_overfull(&mut self, catalog: &Catalog) -> bool {
        self.known = self.known.max(catalog.known().len());
        match (&self.items, &self.task) {
            (Items::Tickers(list, _), _) => list.len() > 2 * self.known,
            (Items::Candles(list), Task::Candles { slots, .. }) => {
                list.len() as u64 > 2 * slots.end.abs_diff(slots.start)
            }
            _ => false,
        }
    }
}

/// Stages the items that a reader finds in a body.
pub struct Stager<'a> {
    /// Where they go.
    pub staged: &'a mut Staged,
    /// Where the market list goes.
    pub catalog: &'a mut Catalog,
    /// The symbol of the ticker that the reader last asked about.
    pub symbol: Option<SymbolId>,
}

impl Sink for Stager<'_> {
    fn wants(&mut self, ticker_id: &str) -> bool {
        if let Items::Tickers(_, seen) = &mut self.staged.items {
            *seen += 1;
        }
        self.symbol = self.catalog.by_ticker_id(self.staged.source, ticker_id);
        self.symbol.is_some()
    }

    fn ticker(&mut self, _ticker_id: &str, ticker: Ticker) {
        if let (Items::Tickers(list, _), Some(symbol)) = (&mut self.staged.items, self.symbol) {
            list.push(symbol, ticker);
        }
    }

    fn candle(&mut self, candle: Candle, closed: Option<bool>) {
        // Some exchanges send more than was asked for.
        if let (Items::Candles(list), Task::Candles { series, slots }) =
            (&mut self.staged.items, &self.staged.task)
            && slots.contains(&series.interval.slot_of(candle.open_time))
        {
            list.push(Reported { candle, closed });
        }
    }

    fn market(&mut self, info: MarketInfo) {
        if let Items::Markets(count) = &mut self.staged.items {
            *count += 1;
            self.catalog.list(self.staged.source, info);
        }
    }

    fn stats(&mut self, _ticker_id: &str, stats: Stats) {
        if let Items::Stats(slot) = &mut self.staged.items {
            *slot = Some(stats);
        }
    }

    fn stamp(&mut self, time: UnixMs) {
        if let Items::Tickers(list, _) = &mut self.staged.items {
            list.default_time = Some(time);
        }
    }

    fn time(&mut self, time: UnixMs) {
        if let Items::Time(slot) = &mut self.staged.items {
            *slot = Some(time);
        }
    }

    fn rejected(&mut self, reason: Reject<'_>) {
        log::debug!(
            target: SOURCE,
            "item refused source={} what={} reason={}",
            self.catalog.id_of(self.staged.source),
            quoted(reason.id.unwrap_or("-")),
            quoted(Reject { id: None, ..reason })
        );
        let symbol = |id| self.catalog.by_ticker_id(self.staged.source, id);
        self.staged.has_refused_tracked |= reason.id.and_then(symbol).is_some();
        (self.staged.first_refusal).get_or_insert_with(|| reason.to_string());
        match (&mut self.staged.items, reason.time) {
            // A candle without its numbers tells nothing of its slot, and counts as unsound there.
            (Items::Candles(_), Some(open_time)) => {
                return self.candle(Candle::without_numbers(open_time), None);
            }
            (Items::Candles(_), None) => self.staged.has_undated = true,
            (Items::Tickers(_, seen), _) => *seen += 1,
            _ => {}
        }
        self.staged.rejected += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceChange, SourceConfig};
    use crate::decimal::Decimal;

    fn ticker() -> Ticker {
        Ticker::of_last(Decimal::from(1))
    }

    #[test]
    fn a_response_is_not_overfull_because_fewer_symbols_are_known_than_when_it_began() {
        let config = |symbols: &[&str]| Config {
            sources: vec![SourceConfig {
                symbols: symbols.iter().map(ToString::to_string).collect(),
                ..SourceConfig::of("binance")
            }],
            ..Config::default()
        };
        let mut catalog = Catalog::new(&config(&["A/USDT", "B/USDT", "C/USDT"]));
        let mut staged = Staged::new(SourceId(0), Task::Tickers);
        let push = |staged: &mut Staged, catalog: &Catalog| {
            if let Items::Tickers(list, _) = &mut staged.items {
                list.push(SymbolId(0), ticker());
            }
            staged.is_overfull(catalog)
        };
        assert!(!push(&mut staged, &catalog));
        let (markets, route) = (true, false);
        let change = SourceChange::Settings { markets, route };
        catalog.reconfigure(&config(&["A/USDT"]), &[change]);
        assert_eq!(catalog.known().len(), 1);
        for _ in 1..6 {
            assert!(!push(&mut staged, &catalog));
        }
        assert!(push(&mut staged, &catalog));
    }

    #[test]
    fn tickers_come_out_in_their_order_and_in_bounded_pieces() {
        let check = |count: usize, expected: &[usize]| {
            let mut tickers = Tickers::default();
            for at in 0..count {
                tickers.push(SymbolId(at as u32), ticker());
            }
            assert_eq!((tickers.len(), tickers.is_empty()), (count, count == 0));
            let (mut lens, mut symbols) = (Vec::new(), Vec::new());
            while let Some(piece) = tickers.next_piece() {
                lens.push(piece.len());
                symbols.extend(piece.into_iter().map(|(symbol, _)| symbol.index()));
            }
            assert_eq!(lens, expected);
            assert_eq!(symbols, (0..count).collect::<Vec<_>>());
        };
        check(0, &[]);
        check(1, &[1]);
        check(TICKERS_A_PIECE, &[TICKERS_A_PIECE]);
        check(2 * TICKERS_A_PIECE + 1, &[TICKERS_A_PIECE, TICKERS_A_PIECE, 1]);
    }
}
