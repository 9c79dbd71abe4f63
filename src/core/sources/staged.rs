//! Items of one answer, from the reading to where they wait until its body has parsed to its end.
//!
//! Owns what is kept of each and what is counted, and the bound on how many. It never applies
//! anything: an answer that breaks off changes nothing that is served.

use crate::core::sources::task::Task;
use crate::exchange::{Reject, Sink};
use crate::log_targets::SOURCE;
use crate::market::{Catalog, Reported, SourceId, SymbolId};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;
use std::collections::VecDeque;

/// Tickers that stand together: below what an allocator asks the system for and gives back at once.
/// Those of a whole exchange in one piece would be moved as it grows, and be given back, in half a
/// millisecond each.
const TICKERS_A_PIECE: usize = 256;

/// Tickers, in their order, in pieces of bounded size.
#[derive(Debug, Default)]
pub struct Tickers {
    /// All are full but the last one.
    pieces: VecDeque<Vec<(SymbolId, Ticker)>>,
    /// The time of those that have none of their own.
    stamp: Option<UnixMs>,
}

impl Tickers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// The newest time that one of them tells.
    pub fn newest(&self) -> Option<UnixMs> {
        let all = self.pieces.iter().flatten();
        all.filter_map(|(_, ticker)| ticker.timestamp).max()
    }

    /// Takes out the first piece.
    pub fn next_piece(&mut self) -> Option<Vec<(SymbolId, Ticker)>> {
        let mut piece = self.pieces.pop_front()?;
        if self.stamp.is_some() {
            for (_, ticker) in &mut piece {
                ticker.timestamp = ticker.timestamp.or(self.stamp);
            }
        }
        Some(piece)
    }

    /// Whether none is left.
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

/// Items read and not yet applied.
#[derive(Debug)]
pub enum Staged {
    /// Of tracked markets, and how many there were of all.
    Tickers(Tickers, u64),
    /// With the exchange's own word on whether each is closed.
    Candles(Vec<Reported>),
    /// So many. They stand in the catalog already, which serves none of them before the list ends.
    Markets(usize),
    /// The exchange's clock.
    Time(Option<UnixMs>),
    /// One market's 24 hours.
    Stats(Option<Stats>),
}

impl Staged {
    /// Nothing yet, of the kind that this task brings.
    pub fn nothing_of(task: &Task) -> Staged {
        match task {
            Task::Markets => Staged::Markets(0),
            Task::Time => Staged::Time(None),
            Task::Tickers | Task::Ticker(_) => Staged::Tickers(Tickers::default(), 0),
            Task::Stats(_) => Staged::Stats(None),
            Task::Candles { .. } => Staged::Candles(Vec::new()),
        }
    }

    /// Whether a list that cannot be empty is. No candles is a fair answer: nobody traded.
    pub fn is_empty(&self) -> bool {
        match self {
            Staged::Tickers(_, seen) => *seen == 0,
            Staged::Candles(_) => false,
            Staged::Markets(count) => *count == 0,
            Staged::Time(time) => time.is_none(),
            Staged::Stats(stats) => stats.is_none(),
        }
    }
}

/// Takes items from the reading and stages them.
pub struct Stager<'a> {
    /// Whose items they are.
    pub source: SourceId,
    /// Where the market list goes.
    pub catalog: &'a mut Catalog,
    /// What was asked.
    pub task: &'a Task,
    /// Where all else goes.
    pub staged: &'a mut Staged,
    /// Items refused so far.
    pub rejected: &'a mut u64,
    /// Whether one of them is a candle of nobody knows which slot.
    pub undated: &'a mut bool,
    /// The symbol of the ticker that was last asked about.
    pub wanted: Option<SymbolId>,
}

impl Stager<'_> {
    /// Whether there are so many items that most of them must be repeated: more than two for each
    /// symbol, or for each slot of candles. A body of any length is staged in bounded room.
    pub fn is_overfull(&self) -> bool {
        match (&*self.staged, self.task) {
            (Staged::Tickers(list, _), _) => list.len() > 2 * self.catalog.known().len(),
            (Staged::Candles(list), Task::Candles { slots, .. }) => {
                list.len() as u64 > 2 * slots.end.abs_diff(slots.start)
            }
            _ => false,
        }
    }
}

impl Sink for Stager<'_> {
    fn wants(&mut self, ticker_id: &str) -> bool {
        if let Staged::Tickers(_, seen) = self.staged {
            *seen += 1;
        }
        self.wanted = self.catalog.by_ticker_id(self.source, ticker_id);
        self.wanted.is_some()
    }

    fn ticker(&mut self, _ticker_id: &str, ticker: Ticker) {
        if let (Staged::Tickers(list, _), Some(symbol)) = (&mut *self.staged, self.wanted) {
            list.push(symbol, ticker);
        }
    }

    fn candle(&mut self, candle: Candle, closed: Option<bool>) {
        // Some exchanges answer with more than was asked for.
        if let (Staged::Candles(list), Task::Candles { series, slots }) =
            (&mut *self.staged, self.task)
            && slots.contains(&series.interval.slot_of(candle.open_time))
        {
            list.push(Reported { candle, closed });
        }
    }

    fn market(&mut self, info: MarketInfo) {
        if let Staged::Markets(count) = self.staged {
            *count += 1;
            self.catalog.list(self.source, info);
        }
    }

    fn stats(&mut self, _ticker_id: &str, stats: Stats) {
        if let Staged::Stats(slot) = self.staged {
            *slot = Some(stats);
        }
    }

    fn stamp(&mut self, time: UnixMs) {
        if let Staged::Tickers(list, _) = self.staged {
            list.stamp = Some(time);
        }
    }

    fn time(&mut self, time: UnixMs) {
        if let Staged::Time(slot) = self.staged {
            *slot = Some(time);
        }
    }

    fn rejected(&mut self, reason: Reject<'_>) {
        log::debug!(target: SOURCE, "item refused: {reason:?}");
        match (&mut *self.staged, reason.time) {
            // Without its numbers it is unsound: no word about its slot, and counted as such.
            (Staged::Candles(_), Some(open_time)) => {
                return self.candle(Candle::without_numbers(open_time), None);
            }
            (Staged::Candles(_), None) => *self.undated = true,
            (Staged::Tickers(_, seen), _) => *seen += 1,
            _ => {}
        }
        *self.rejected += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;

    fn ticker() -> Ticker {
        Ticker::of_last(Decimal::from(1))
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
        check(
            2 * TICKERS_A_PIECE + 1,
            &[TICKERS_A_PIECE, TICKERS_A_PIECE, 1],
        );
    }
}
