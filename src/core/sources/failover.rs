//! Failover: from which source each symbol is served, when several quote it.
//!
//! [`Failover`] owns the source that last had the first fresh quote of each symbol, and the moves that
//! are not logged yet. It looks when quotes have become stale or fresh, never while a client waits:
//! [`Quotes::best`](crate::market::Quotes::best) decides which quote is served.
//!
//! A symbol *moves on* when its source has no fresh quote of it and a later one has. It *returns* when
//! a source from which it had moved on has a fresh quote again. These do not count as failover: a symbol
//! whose quotes are all stale, one that its source no longer lists, and, at the start, an earlier source
//! whose quotes come only after those of a later one.
//!
//! Each move is counted at once. Moves between the same two sources are logged together: the quotes of
//! one poll become stale some milliseconds apart, those of a round of single requests over seconds.

use crate::core::stats::SourceStatus;
use crate::log_targets::FAILOVER;
use crate::market::{Market, SourceId, SymbolId};
use crate::time::Mono;
use std::time::Duration;

/// From the first of some moves to their log line: as long as the others may take, and no longer than
/// somebody who watches the log will wait.
const GATHER: Duration = Duration::from_secs(1);

/// From one log line about two sources to the next of the same kind: a market that comes and goes does
/// not flood the log.
const QUIET: Duration = Duration::from_secs(30);

/// Symbols that one slice looks at: some 50 microseconds.
const SYMBOLS_A_SLICE: usize = 512;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Failover {
    /// [`Quotes::availability_changes`](crate::market::Quotes::availability_changes) at the last look.
    seen: u64,
    /// A look under way.
    looking: Option<Look>,
    /// By symbol.
    holders: Vec<Option<Holder>>,
    reports: Vec<MoveReport>,
}

/// A look at every symbol, some of them at a time.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// The place among the known symbols at which it goes on.
    from: usize,
    /// The version of the catalog, on which the places depend.
    version: u64,
}

/// From which source a symbol is served.
#[derive(Clone, Copy, Debug)]
struct Holder {
    /// The source with the first fresh quote, when there last was one.
    now: SourceId,
    /// The earliest in the order of failover that ever had it.
    first: SourceId,
}

/// How a symbol moves between two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    /// The one that is earlier in the order of failover.
    earlier: SourceId,
    later: SourceId,
    /// True if symbols return to the earlier one; false if they leave it.
    returns: bool,
}

/// Moves of one kind, for the log.
#[derive(Debug)]
struct MoveReport {
    moved: Move,
    /// Moves that are not logged yet.
    symbols: usize,
    /// When those are logged. Without any: the next are not logged before.
    due: Mono,
}

impl Failover {
    /// Looks from which source each symbol is served, if that may have changed, and logs the moves.
    /// While a response is only half applied (`is_applying`), it waits, so that its moves are logged
    /// together. `true`: it has looked.
    pub fn watch(
        &mut self,
        market: &Market,
        sources: &mut [SourceStatus],
        is_applying: bool,
        now: Mono,
    ) -> bool {
        let quotes = &market.quotes;
        let is_behind = self.looking.is_some() || self.seen != quotes.availability_changes();
        let looks = is_behind && !is_applying;
        if looks {
            self.look(market, sources, now);
        }
        for line in self.lines(sources, now) {
            log::warn!(target: FAILOVER, "{line}");
        }
        looks
    }

    /// When there is something to log, or a look goes on.
    pub fn next_due(&self) -> Option<Mono> {
        let unlogged = self.reports.iter().filter(|report| report.symbols > 0);
        let at_once = self.looking.map(|_| Mono::default());
        unlogged.map(|report| report.due).chain(at_once).min()
    }

    /// Looks at some of the symbols, and counts those that have moved. Quotes that change meanwhile are
    /// looked at again.
    fn look(&mut self, market: &Market, sources: &mut [SourceStatus], now: Mono) {
        let (quotes, catalog) = (&market.quotes, &market.catalog);
        if sources.len() < 2 {
            self.seen = quotes.availability_changes();
            return;
        }
        let here = |look: &Look| look.version == catalog.version();
        let mut look = self.looking.take().filter(here).unwrap_or_else(|| {
            self.seen = quotes.availability_changes();
            Look { from: 0, version: catalog.version() }
        });
        let known = &catalog.known()[look.from..];
        look.from += SYMBOLS_A_SLICE;
        self.looking = (known.len() > SYMBOLS_A_SLICE).then_some(look);
        for symbol in known.iter().take(SYMBOLS_A_SLICE) {
            if let Some(moved) = self.judge(*symbol, market) {
                log::debug!(
                    target: FAILOVER,
                    "moved symbol={} earlier={} later={} returns={}",
                    catalog.name(*symbol).as_str(),
                    sources[moved.earlier.index()].id,
                    sources[moved.later.index()].id,
                    moved.returns,
                );
                let earlier = &mut sources[moved.earlier.index()];
                match moved.returns {
                    true => earlier.returns += 1,
                    false => earlier.failovers += 1,
                }
                self.note(moved, now);
            }
        }
    }

    /// How a symbol has moved since it was last looked at.
    fn judge(&mut self, symbol: SymbolId, market: &Market) -> Option<Move> {
        let sources = market.catalog.sources_of(symbol);
        let best = market.quotes.best(sources, symbol);
        let best = best.filter(|quote| !quote.stale())?.source;
        if self.holders.len() <= symbol.index() {
            self.holders.resize(symbol.index() + 1, None);
        }
        let place = &mut self.holders[symbol.index()];
        let was = place.filter(|holder| sources.contains(&holder.now));
        let first = was.map_or(best, |holder| holder.first.min(best));
        *place = Some(Holder { now: best, first });
        let Holder { now, first } = was?;
        let returns = best < now && best >= first;
        let moved = Move { earlier: now.min(best), later: now.max(best), returns };
        (best > now || returns).then_some(moved)
    }

    fn note(&mut self, moved: Move, now: Mono) {
        let known = self.reports.iter().position(|report| report.moved == moved);
        let at = known.unwrap_or_else(|| {
            self.reports.push(MoveReport { moved, symbols: 0, due: now });
            self.reports.len() - 1
        });
        let report = &mut self.reports[at];
        if report.symbols == 0 {
            report.due = report.due.max(now + GATHER);
        }
        report.symbols += 1;
    }

    /// The log lines that are due.
    fn lines(&mut self, sources: &[SourceStatus], now: Mono) -> Vec<String> {
        let mut lines = Vec::new();
        for report in &mut self.reports {
            if report.symbols > 0 && report.due <= now {
                let count = std::mem::take(&mut report.symbols);
                report.due = now + QUIET;
                let id = |source: SourceId| &sources[source.index()].id;
                let (earlier, later) = (id(report.moved.earlier), id(report.moved.later));
                lines.push(match report.moved.returns {
                    true => format!("returned from={later} to={earlier} markets={count}"),
                    false => {
                        format!("moved from={earlier} to={later} markets={count} reason=stale")
                    }
                });
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::decimal::Decimal;
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
            catalog.begin_list(source);
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
            self.failover.look(&self.market, &mut self.sources, now);
            self.failover.lines(&self.sources, now)
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
        let lines = bench.pass(40, &[B]);
        assert_eq!(lines, ["moved from=a to=b markets=312 reason=stale"]);
        assert_eq!(bench.counts(), [(312, 0), (0, 0), (0, 0)]);
        let lines = bench.pass(40, &[A, B]);
        assert_eq!(lines, ["returned from=b to=a markets=312"]);
        assert_eq!(bench.counts(), [(312, 312), (0, 0), (0, 0)]);
        assert_eq!(bench.failover.next_due(), None);
    }

    #[test]
    fn each_step_down_the_order_and_each_step_back_up_counts_for_the_earlier_source() {
        let mut bench = Bench::new(1);
        bench.pass(1, &[A, B, C]);
        let lines = bench.pass(20, &[B, C]);
        assert_eq!(lines, ["moved from=a to=b markets=1 reason=stale"]);
        let lines = bench.pass(20, &[C]);
        assert_eq!(lines, ["moved from=b to=c markets=1 reason=stale"]);
        let lines = bench.pass(15, &[B, C]);
        assert_eq!(lines, ["returned from=c to=b markets=1"]);
        let lines = bench.pass(15, &[A, B, C]);
        assert_eq!(lines, ["returned from=b to=a markets=1"]);
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
        // One that nobody else stands in for answers at once.
        bench.pass(20, &[]);
        bench.pass(1, &[A]);
        let symbol = bench.market.catalog.known()[0];
        let best = bench.market.quotes.best(&[A, B], symbol).map(|quote| quote.source);
        assert_eq!(best, Some(A));
        let lines = bench.pass(15, &[A, B]);
        assert_eq!(lines, ["returned from=b to=a markets=3"]);
    }

    #[test]
    fn no_move_is_told_where_nobody_was_left_for_a_fresh_quote() {
        let mut bench = Bench::new(2);
        // The second is heard first.
        assert!(bench.pass(3, &[B]).is_empty());
        assert!(bench.pass(3, &[A, B]).is_empty());
        // Nobody is fresh; then the same one answers again.
        assert!(bench.pass(60, &[]).is_empty());
        assert!(bench.pass(3, &[A]).is_empty());
        // The exchange has delisted a market: nobody waits for its return.
        bench.pass(1, &[A, B]);
        bench.list(A, 1);
        assert!(bench.pass(20, &[A, B]).is_empty());
        assert_eq!(bench.counts(), [(0, 0); 3]);
    }

    #[test]
    fn many_markets_are_looked_at_in_slices_and_told_in_one_line() {
        let count = 2 * SYMBOLS_A_SLICE + 1;
        let mut bench = Bench::new(count);
        bench.poll(A);
        bench.poll(B);
        let check_looks = |bench: &mut Bench, moved: [usize; 3]| {
            for (moved, goes_on) in moved.into_iter().zip([true, true, false]) {
                bench.look();
                let looks = bench.failover.looking.is_some();
                assert_eq!((bench.counts()[0].0, looks), (moved as u64, goes_on));
            }
        };
        check_looks(&mut bench, [0, 0, 0]);
        bench.now.mono = Mono(15_000_000);
        bench.poll(B);
        while bench.market.quotes.update_staleness(bench.now) > 0 {}
        check_looks(&mut bench, [SYMBOLS_A_SLICE, 2 * SYMBOLS_A_SLICE, count]);
        assert_eq!(bench.failover.seen, bench.market.quotes.availability_changes());
        bench.now.mono = Mono(17_000_000);
        let lines = bench.failover.lines(&bench.sources, bench.now.mono);
        assert_eq!(lines, [format!("moved from=a to=b markets={count} reason=stale")]);
        assert_eq!(bench.failover.next_due(), None);
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
