//! Failover: from which source each symbol is served, when several quote it.
//!
//! [`Quotes::best`](crate::market::Quotes::best) decides that. [`Failover`] only counts and logs the moves.
//! Between requests, it takes in which quotes have become stale, and which have been fresh again for a while.
//!
//! A symbol *moves on* when the quote that was served becomes stale and another source has a fresh one. It
//! *returns* when the quote that it left has been fresh again for a while.
//!
//! Each move is counted at once. Moves between the same two sources are logged together: the quotes of one
//! poll become stale some milliseconds apart, and the quotes of a round of single requests over seconds.

use crate::core::stats::SourceStatus;
use crate::log_targets::FAILOVER;
use crate::market::{Market, QuoteTurn, SourceId};
use crate::time::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long moves are gathered before their log line: long enough for the other moves of a poll, and no
/// longer than somebody who watches the log will wait.
const GATHER: Duration = Duration::from_secs(1);

/// The least time between two log lines about moves of one kind: a market that comes and goes does not flood
/// the log.
const QUIET: Duration = Duration::from_secs(30);

/// See the module's page.
#[derive(Debug, Default)]
pub struct Failover {
    reports: BTreeMap<Move, MoveReport>,
}

/// How a symbol moves between two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Move {
    /// The source that is earlier in the order of failover.
    earlier: SourceId,
    later: SourceId,
    /// True if symbols return to the earlier one; false if they leave it.
    returns: bool,
}

/// Moves of one kind, for the log.
#[derive(Debug)]
struct MoveReport {
    /// Moves that are not logged yet.
    symbols: usize,
    /// When these moves are logged. If there are none, the next moves are not logged before this.
    due: Mono,
}

impl Failover {
    /// Takes in the quotes that have become stale or have been fresh again for a while. Counts the moves of
    /// their symbols, and logs the moves that are due. Returns true if there was such a quote.
    pub fn watch(&mut self, market: &mut Market, sources: &mut [SourceStatus], now: Mono) -> bool {
        let turns = market.quotes.take_turns();
        for turn in &turns {
            let moved = moved(turn, market);
            // A quote is left once its symbol moves on. It is left no more once it is fresh again.
            let is_new = (turn.returns || moved.is_some())
                && market.quotes.set_left(turn.source, turn.symbol, !turn.returns);
            if let Some(moved) = moved.filter(|_| is_new) {
                let earlier = &mut sources[moved.earlier.index()];
                earlier.returns += u64::from(moved.returns);
                earlier.failovers += u64::from(!moved.returns);
                let report = self.reports.entry(moved);
                let report = report.or_insert(MoveReport { symbols: 0, due: now });
                if report.symbols == 0 {
                    report.due = report.due.max(now + GATHER);
                }
                report.symbols += 1;
            }
        }
        for line in self.lines(sources, now) {
            log::warn!(target: FAILOVER, "{line}");
        }
        !turns.is_empty()
    }

    /// When there is something to log.
    pub fn next_due(&self) -> Option<Mono> {
        let unlogged = self.reports.values().filter(|report| report.symbols > 0);
        unlogged.map(|report| report.due).min()
    }

    /// The log lines that are due.
    fn lines(&mut self, sources: &[SourceStatus], now: Mono) -> Vec<String> {
        let due = self.reports.iter_mut().filter(|(_, it)| it.symbols > 0 && it.due <= now);
        let lines = due.map(|(moved, report)| {
            let count = std::mem::take(&mut report.symbols);
            report.due = now + QUIET;
            let id = |source: SourceId| &sources[source.index()].id;
            let (earlier, later) = (id(moved.earlier), id(moved.later));
            match moved.returns {
                true => format!("returned from={later} to={earlier} markets={count}"),
                false => format!("moved from={earlier} to={later} markets={count} reason=stale"),
            }
        });
        lines.collect()
    }
}

/// How a quote that has become stale or fresh moves its symbol: to the first fresh quote of a later source,
/// or back from there. Also `None` if an earlier source has a fresh quote: the symbol is served from there
/// before and after.
fn moved(turn: &QuoteTurn, market: &Market) -> Option<Move> {
    let sources = market.catalog.sources_of(turn.symbol);
    let at = sources.iter().position(|source| *source == turn.source)?;
    let fresh = |sources| market.quotes.best(sources, turn.symbol).filter(|it| !it.stale());
    let later = fresh(&sources[at + 1..])?.source;
    let is_served = fresh(&sources[..at]).is_none();
    is_served.then_some(Move { earlier: turn.source, later, returns: turn.returns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::decimal::Decimal;
    use crate::market::SymbolId;
    use crate::market::testing::info;
    use crate::record::{MarketInfo, Ticker};
    use crate::time::{Now, UnixMs};

    const A: SourceId = SourceId(0);
    const B: SourceId = SourceId(1);
    const C: SourceId = SourceId(2);

    /// Sources a, b, c with the same markets, whose quotes are stale after 15 s.
    struct Bench {
        market: Market,
        sources: Vec<SourceStatus>,
        failover: Failover,
        now: Now,
    }

    impl Bench {
        fn new(markets: usize) -> Bench {
            let ids = ["a", "b", "c"];
            let source = |id: &&str| SourceConfig {
                id: id.to_string(),
                stale_after: Duration::from_secs(15),
                ..SourceConfig::new("binance")
            };
            let config = Config { sources: ids.iter().map(source).collect(), ..Config::default() };
            let mut bench = Bench {
                market: Market::new(&config),
                sources: ids.map(SourceStatus::new).to_vec(),
                failover: Failover::default(),
                now: Now { mono: Mono(0), unix: UnixMs(0) },
            };
            for source in [A, B, C] {
                bench.list(source, markets);
            }
            bench
        }

        fn list(&mut self, source: SourceId, markets: usize) {
            let catalog = &mut self.market.catalog;
            catalog.drop_list(source);
            for at in 0..markets {
                catalog.list(source, market(at));
            }
            catalog.end_list(source).expect("a list");
            let change = catalog.refresh_list(source, UnixMs(0));
            for symbol in change.removed {
                self.market.quotes.drop_symbol(source, symbol);
            }
        }

        fn poll(&mut self, source: SourceId) {
            for symbol in self.market.catalog.known().to_vec() {
                if self.market.catalog.listing(source, symbol).is_some() {
                    self.poll_one(source, symbol);
                }
            }
        }

        fn poll_one(&mut self, source: SourceId, symbol: SymbolId) {
            let quotes = &mut self.market.quotes;
            let applied = quotes.apply(source, symbol, ticker(), self.now);
            assert!(applied.is_ok(), "{applied:?}");
        }

        /// Lets seconds pass in which these are polled. Returns what was logged.
        fn pass(&mut self, seconds: u64, polled: &[SourceId]) -> Vec<String> {
            let mut lines = Vec::new();
            for _ in 0..seconds {
                self.now.mono = self.now.mono + Duration::from_secs(1);
                for source in polled {
                    self.poll(*source);
                }
                lines.extend(self.look());
            }
            lines
        }

        fn look(&mut self) -> Vec<String> {
            let now = self.now.mono;
            self.market.quotes.update_staleness(self.now);
            let lines = self.failover.lines(&self.sources, now);
            self.failover.watch(&mut self.market, &mut self.sources, now);
            lines
        }

        /// Failovers and returns by source.
        fn counts(&self) -> [(u64, u64); 3] {
            let of = |at: usize| (self.sources[at].failovers, self.sources[at].returns);
            [of(0), of(1), of(2)]
        }
    }

    fn market(at: usize) -> MarketInfo {
        info(&format!("M{at}/USD"))
    }

    fn ticker() -> Ticker {
        Ticker::of_last(Decimal::from(1))
    }

    #[test]
    fn a_source_that_dies_and_returns_is_told_once_each_with_the_number_of_markets() {
        let mut bench = Bench::new(312);
        assert!(bench.pass(10, &[A, B]).is_empty());
        assert_eq!(bench.pass(40, &[B]), ["moved from=a to=b markets=312 reason=stale"]);
        assert_eq!(bench.counts(), [(312, 0), (0, 0), (0, 0)]);
        assert_eq!(bench.pass(40, &[A, B]), ["returned from=b to=a markets=312"]);
        assert_eq!(bench.counts(), [(312, 312), (0, 0), (0, 0)]);
        assert_eq!(bench.failover.next_due(), None);
    }

    #[test]
    fn each_step_down_the_order_and_each_step_back_up_counts_for_the_earlier_source() {
        let mut bench = Bench::new(1);
        bench.pass(1, &[A, B, C]);
        assert_eq!(bench.pass(20, &[B, C]), ["moved from=a to=b markets=1 reason=stale"]);
        assert_eq!(bench.pass(20, &[C]), ["moved from=b to=c markets=1 reason=stale"]);
        assert_eq!(bench.pass(15, &[B, C]), ["returned from=c to=b markets=1"]);
        assert_eq!(bench.pass(15, &[A, B, C]), ["returned from=b to=a markets=1"]);
        assert_eq!(bench.counts(), [(1, 1), (1, 1), (0, 0)]);
    }

    #[test]
    fn a_source_that_is_late_again_and_again_is_left_once() {
        let mut bench = Bench::new(3);
        bench.pass(1, &[A, B]);
        let mut lines = Vec::new();
        for _ in 0..20 {
            lines.extend(bench.pass(16, &[B]));
            lines.extend(bench.pass(3, &[A, B]));
        }
        assert_eq!(lines, ["moved from=a to=b markets=3 reason=stale"]);
        // If no other source has a fresh quote, the first new quote is served at once.
        bench.pass(20, &[]);
        bench.pass(1, &[A]);
        let symbol = bench.market.catalog.known()[0];
        let best = bench.market.quotes.best(&[A, B], symbol).map(|quote| quote.source);
        assert_eq!(best, Some(A));
        assert_eq!(bench.pass(15, &[A, B]), ["returned from=b to=a markets=3"]);
    }

    #[test]
    fn no_move_is_told_where_nobody_was_left_for_a_fresh_quote() {
        let mut bench = Bench::new(2);
        // The second source is polled first.
        assert!(bench.pass(3, &[B]).is_empty());
        assert!(bench.pass(3, &[A, B]).is_empty());
        // No source has a fresh quote; then the same source is polled again.
        assert!(bench.pass(60, &[]).is_empty());
        assert!(bench.pass(3, &[A]).is_empty());
        // The exchange has delisted a market, so no return of it is expected.
        bench.pass(1, &[A, B]);
        bench.list(A, 1);
        assert!(bench.pass(20, &[A, B]).is_empty());
        assert_eq!(bench.counts(), [(0, 0); 3]);
    }

    #[test]
    fn a_market_that_comes_back_to_a_source_may_move_on_again() {
        let mut bench = Bench::new(2);
        for times in 1..4 {
            bench.pass(1, &[A, B]);
            bench.pass(20, &[B]);
            assert_eq!(bench.counts(), [(1 + times, 0), (0, 0), (0, 0)]);
            // The exchange delists one, and lists it again.
            bench.list(A, 1);
            bench.list(A, 2);
        }
    }

    #[test]
    fn markets_that_go_one_by_one_do_not_flood_the_log() {
        let mut bench = Bench::new(100);
        bench.pass(1, &[B]);
        let symbols = bench.market.catalog.known().to_vec();
        // A round of single requests that takes 100 seconds: each quote is stale most of the time.
        let mut lines = Vec::new();
        for second in 0..300 {
            bench.poll_one(A, symbols[second % symbols.len()]);
            lines.extend(bench.pass(1, &[B]));
        }
        let [(failovers, returns), ..] = bench.counts();
        assert_eq!((failovers, returns), (100, 0), "each is left once");
        assert!(lines.len() <= 2 * (1 + 300 / 30), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("markets=30")), "{lines:#?}");
    }
}
