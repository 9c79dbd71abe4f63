//! Items of one response that are read and not yet applied.
//!
//! [`Staged`] owns them until the body has parsed to its end: a response that breaks off changes
//! nothing that is served. It bounds their number.
//!
//! Market lists, and tickers of all markets, may come in pages. [`Paging`] owns the pages that have come.
//! They are applied when the last page has come: otherwise, markets of later pages would be removed, and one
//! poll of quotes would count as several. The markets of a list are in the catalog meanwhile, which serves
//! none of them before the list ends.

use crate::core::sources::fault::Fault;
use crate::core::sources::task::Task;
use crate::exchange::{NextPage, Reject, Sink};
use crate::log_targets::{SOURCE, quoted};
use crate::market::{AllRows, Catalog, Reported, SourceId, SymbolId};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::{Mono, Now, UnixMs};
use std::collections::VecDeque;

/// Tickers in one piece. A piece is smaller than the blocks that an allocator takes from the system one by
/// one. If all tickers of an exchange were in one piece, moving it as it grows would take half a millisecond,
/// and so would freeing it.
const TICKERS_A_PIECE: usize = 256;

/// Unreadable items after which a response is given up: more than any exchange has markets.
const MOST_REJECTED: u64 = 20_000;

/// The newest time that two tickers have reached, or the time of the only ticker. So a single absurd time
/// does not count. Times are kept as what the exchange's clock showed when our monotonic clock was zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    newest: Option<UnixMs>,
    second: Option<UnixMs>,
}

impl Newest {
    /// Notes the time of a ticker that came at `received`.
    pub fn note(&mut self, time: UnixMs, received: Mono) {
        let zero = Some(time - received.as_ms());
        self.second = self.second.max(self.newest.min(zero));
        self.newest = self.newest.max(zero);
    }

    /// What the exchange's clock shows now, if it showed the newest time when that ticker came.
    pub fn time(&self, now: Mono) -> Option<UnixMs> {
        Some(self.second.or(self.newest)? + now.as_ms())
    }
}

/// Tickers in their order, in pieces of bounded size.
#[derive(Debug, Default)]
pub struct StagedTickers {
    /// The pieces of each page are full, except its last one.
    pieces: VecDeque<Vec<(SymbolId, Ticker)>>,
    /// When they were received. For several pages, when the first one was, so that no ticker counts as newer
    /// than it is.
    pub received: Now,
    /// True if a piece has been taken out.
    has_begun: bool,
    /// True if more of the poll follows, as when another node sends it in parts.
    pub goes_on: bool,
}

impl StagedTickers {
    /// Their number.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// Notes the times of the tickers, which came at `received`.
    pub fn note_times(&self, newest: &mut Newest, received: Mono) {
        let all = self.pieces.iter().flatten();
        let times = all.filter_map(|(_, ticker)| ticker.timestamp);
        times.for_each(|time| newest.note(time, received));
    }

    /// Takes out the first piece.
    pub fn next_piece(&mut self) -> Option<Vec<(SymbolId, Ticker)>> {
        let piece = self.pieces.pop_front()?;
        self.has_begun = true;
        Some(piece)
    }

    /// Whether the next piece is the first one, and whether it is the last one.
    pub fn ends(&self) -> (bool, bool) {
        (!self.has_begun, self.pieces.len() <= 1)
    }

    /// True if no ticker is left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn push(&mut self, symbol: SymbolId, ticker: Ticker) {
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < TICKERS_A_PIECE => piece.push((symbol, ticker)),
            _ => self.pieces.push_back(vec![(symbol, ticker)]),
        }
    }
}

/// See the module's page. The items of a response, or of all its pages together.
#[derive(Debug, Default)]
pub struct Staged {
    /// The source that was asked.
    pub source: SourceId,
    /// What was asked.
    pub task: Task,
    /// Which page of it was asked, if not the first one.
    pub page: Option<NextPage>,
    /// Where the next page begins, if there is one.
    pub next: Option<NextPage>,
    /// When the first page was requested, and the last one.
    pub sent: [Now; 2],
    /// Bytes of all pages.
    pub bytes: u64,
    /// The number of pages.
    pub pages: u32,
    /// The tag of the response (RFC 9110, 8.8.3); pages together have none.
    pub tag: Option<Box<str>>,
    /// The tickers of tracked markets.
    pub tickers: StagedTickers,
    /// The time of the tickers of this page that have no time of their own.
    stamp: Option<UnixMs>,
    /// Candles, with what the exchange itself says on whether each is closed.
    pub candles: Vec<Reported>,
    /// The exchange's clock.
    pub time: Option<UnixMs>,
    /// The 24-hour figures of one market.
    pub stats: Option<Stats>,
    /// How many tickers or markets have come, untracked ones included. Markets are in the catalog already,
    /// which serves none of them before the list ends.
    pub seen: u64,
    /// Items that were refused.
    pub rejected: u64,
    /// All rows of candles, also rows outside of the requested slots.
    pub all_rows: AllRows,
    /// Why the first refused item was refused.
    first_refusal: Option<String>,
    /// True if a refused item is the ticker of a tracked market.
    has_refused_tracked: bool,
    /// The most symbols that were known while items came: a reload or a market list may reduce their number.
    known: usize,
}

impl Staged {
    /// No items yet.
    pub fn new(source: SourceId, task: Task, page: Option<NextPage>) -> Staged {
        Staged { source, task, page, pages: 1, ..Staged::default() }
    }

    /// The response to a request that was sent at `sent` is complete.
    pub fn arrived(&mut self, sent: Now, now: Now, bytes: u64) {
        (self.sent, self.tickers.received, self.bytes) = ([sent; 2], now, bytes);
        if let Some(time) = self.stamp {
            for (_, ticker) in self.tickers.pieces.iter_mut().flatten() {
                ticker.timestamp.get_or_insert(time);
            }
        }
    }

    /// These items together with the items of the next page.
    fn with(mut self, mut page: Staged) -> Staged {
        (self.sent[1], self.next, self.tag) = (page.sent[1], page.next, None);
        self.bytes += page.bytes;
        self.pages += page.pages;
        self.tickers.pieces.append(&mut page.tickers.pieces);
        self.seen += page.seen;
        self.rejected += page.rejected;
        self.first_refusal = self.first_refusal.take().or(page.first_refusal);
        self.has_refused_tracked |= page.has_refused_tracked;
        self.known = self.known.max(page.known);
        self
    }

    /// The fault of a response without a good item, or with too many items. If all items were refused, the
    /// dialect does not fit the response. A refused ticker of an untracked market means nothing if others
    /// were read. A response without candles has no fault: nobody traded.
    pub fn fault(&mut self, catalog: &Catalog) -> Option<Fault> {
        if let Some(why) = self.excess(catalog) {
            return Some(Fault::content(why));
        }
        let [is_empty, is_refused] = match &self.task {
            Task::Tickers | Task::TickersOf { .. } => {
                let is_each = self.has_refused_tracked || self.seen == self.rejected;
                [self.seen == 0, self.tickers.is_empty() && is_each]
            }
            Task::Candles { .. } => [false, self.candles.is_empty() && !self.all_rows.is_dated],
            Task::Markets => [self.seen == 0; 2],
            Task::Time => [self.time.is_none(); 2],
            Task::Stats(_) => [self.stats.is_none(); 2],
        };
        match &self.first_refusal {
            Some(first) if is_refused => {
                Some(Fault::content(format!("no item can be read, the first: {first}")))
            }
            _ => is_empty.then(Fault::empty),
        }
    }

    /// Says which items are too many, if some are. With more than two items for each symbol, or for each slot
    /// of candles, the response repeats items. So a body of any length is staged in bounded memory and time.
    pub fn excess(&mut self, catalog: &Catalog) -> Option<&'static str> {
        self.known = self.known.max(catalog.known().len());
        let slots = match &self.task {
            Task::Candles { slots, .. } => slots.end.abs_diff(slots.start),
            _ => 0,
        };
        if self.tickers.len() > 2 * self.known || self.candles.len() as u64 > 2 * slots {
            return Some("the response repeats its items");
        }
        (self.rejected > MOST_REJECTED).then_some("too many items of the response are unreadable")
    }
}

/// The pages of market lists and tickers that have come.
#[derive(Debug, Default)]
pub struct Paging {
    /// Of each task, the pages that have come, joined. More pages follow.
    begun: Vec<Staged>,
}

impl Paging {
    /// The page of this task that is requested next; `None`: the first one.
    pub fn next(&self, task: &Task) -> Option<&NextPage> {
        self.begun.iter().find(|staged| staged.task == *task)?.next.as_ref()
    }

    /// Takes in a page. Returns all pages together once the last one has come.
    pub fn add(&mut self, page: Staged) -> Option<Staged> {
        let known = self.begun.iter().position(|staged| staged.task == page.task);
        let whole = match known {
            Some(at) => self.begun.swap_remove(at).with(page),
            None => page,
        };
        if whole.next.is_none() {
            return Some(whole);
        }
        self.begun.push(whole);
        None
    }

    /// Drops the pages of a task that have come: it begins with the first one again.
    pub fn forget(&mut self, task: &Task) {
        self.begun.retain(|staged| staged.task != *task);
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
        self.symbol = self.catalog.by_ticker_id(self.staged.source, ticker_id);
        self.symbol.is_some()
    }

    fn seen(&mut self) {
        self.staged.seen += u64::from(self.staged.task.is_quotes());
    }

    fn assets(&self, _ticker_id: &str) -> Option<[&str; 2]> {
        let name = self.catalog.name(self.symbol?);
        Some([name.base(), name.quote()])
    }

    fn ticker(&mut self, _ticker_id: &str, ticker: Ticker) {
        if let Some(symbol) = self.symbol {
            self.staged.tickers.push(symbol, ticker);
        }
    }

    fn candle(&mut self, candle: Candle, is_forming: bool) {
        let Task::Candles { series, slots } = &self.staged.task else {
            return;
        };
        self.staged.all_rows.note(series.interval, &candle);
        // Some exchanges send more than was asked for.
        if slots.contains(&series.interval.slot_of(candle.open_time)) {
            self.staged.candles.push(Reported { candle, is_forming });
        }
    }

    fn market(&mut self, info: MarketInfo) {
        self.staged.seen += 1;
        self.catalog.list(self.staged.source, info);
    }

    fn stats(&mut self, _ticker_id: &str, stats: Stats) {
        self.staged.stats = Some(stats);
    }

    fn stamp(&mut self, time: UnixMs) {
        self.staged.stamp = Some(time);
    }

    fn time(&mut self, time: UnixMs) {
        self.staged.time = Some(time);
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
        match (&self.staged.task, reason.time) {
            // A candle without numbers tells nothing of its slot. Applying it counts it as rejected.
            (Task::Candles { .. }, Some(open_time)) => {
                return self.candle(Candle::without_numbers(open_time), false);
            }
            (Task::Candles { .. }, None) => self.staged.all_rows.is_dated = false,
            (task, _) => self.staged.seen += u64::from(task.is_quotes()),
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
    fn a_response_with_too_many_unreadable_items_is_given_up() {
        let catalog = Catalog::new(&Config::default());
        let mut staged = Staged::new(SourceId(0), Task::Markets, None);
        staged.rejected = MOST_REJECTED;
        assert_eq!(staged.excess(&catalog), None);
        staged.rejected += 1;
        assert!(staged.excess(&catalog).is_some());
    }

    #[test]
    fn a_response_is_not_overfull_because_fewer_symbols_are_known_than_when_it_began() {
        let config = |symbols: &[&str]| Config {
            sources: vec![SourceConfig {
                symbols: symbols.iter().map(ToString::to_string).collect(),
                ..SourceConfig::new("binance")
            }],
            ..Config::default()
        };
        let mut catalog = Catalog::new(&config(&["A/USDT", "B/USDT", "C/USDT"]));
        let mut staged = Staged::new(SourceId(0), Task::Tickers, None);
        let push = |staged: &mut Staged, catalog: &Catalog| {
            staged.tickers.push(SymbolId(0), ticker());
            staged.excess(catalog).is_some()
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
            let mut tickers = StagedTickers::default();
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

    fn page(ms: u64, time: i64, next: Option<NextPage>) -> Staged {
        let mut staged = Staged::new(SourceId(0), Task::Tickers, None);
        staged.tickers.push(SymbolId(ms as u32), Ticker::of_last(Decimal::from(1)));
        let mut catalog = Catalog::new(&crate::config::Config::default());
        let mut stager = Stager { staged: &mut staged, catalog: &mut catalog, symbol: None };
        stager.stamp(UnixMs(time));
        let at = Now { mono: Mono(ms * 1000), unix: UnixMs(ms as i64) };
        staged.arrived(at, at, 10);
        Staged { next, ..staged }
    }

    #[test]
    fn pages_are_one_when_the_last_has_come_and_are_of_the_time_of_the_first() {
        let mut pages = Paging::default();
        let next = |number| Some(NextPage { number, ..NextPage::default() });
        assert!(pages.add(page(5, 100, next(2))).is_none());
        assert_eq!(pages.next(&Task::Tickers), next(2).as_ref());
        assert_eq!(pages.next(&Task::Markets), None);
        assert!(pages.add(page(6, 200, next(3))).is_none());
        let mut whole = pages.add(page(7, 300, None)).expect("the last page");
        assert_eq!((whole.tickers.received.unix, whole.bytes, whole.pages), (UnixMs(5), 30, 3));
        assert_eq!(whole.sent.map(|at| at.unix), [UnixMs(5), UnixMs(7)]);
        let mut times = Vec::new();
        while let Some(piece) = whole.tickers.next_piece() {
            times.extend(piece.iter().map(|(_, ticker)| ticker.timestamp.map(|time| time.0)));
        }
        assert_eq!(times, [Some(100), Some(200), Some(300)], "each page has its own time");
        assert_eq!(pages.next(&Task::Tickers), None);
    }

    #[test]
    fn rows_outside_of_the_requested_slots_are_counted_and_not_kept() {
        use crate::market::testing::{key, minutes};
        let (series, slots) = (key(crate::interval::Stored::M1), 99..104);
        let mut staged = Staged::new(SourceId(0), Task::Candles { series, slots }, None);
        let mut catalog = Catalog::new(&Config::default());
        let mut stager = Stager { staged: &mut staged, catalog: &mut catalog, symbol: None };
        for row in minutes(103..823) {
            stager.candle(row.candle, false);
        }
        staged.all_rows.most = 720;
        assert_eq!((staged.candles.len(), staged.all_rows.reaches(&(99..104))), (1, false));
    }

    #[test]
    fn what_is_dropped_begins_again() {
        let mut pages = Paging::default();
        pages.add(page(5, 100, Some(NextPage::default())));
        pages.forget(&Task::Tickers);
        assert_eq!(pages.next(&Task::Tickers), None);
        assert_eq!(pages.add(page(6, 100, None)).map(|it| it.pages), Some(1));
    }
}
