//! The rules of quotes, each tried, and all of them against a naive model.

use super::*;
use crate::decimal::Decimal;
use crate::market::testing::{source, ticker};
use crate::rng::Rng;
use std::collections::HashMap;

const A: SourceId = SourceId(0);
const B: SourceId = SourceId(1);
const BTC: SymbolId = SymbolId(0);
const ETH: SymbolId = SymbolId(7);

/// The clocks, this many milliseconds after the start.
fn at_ms(ms: u64) -> Now {
    Now { mono: Mono(ms * 1000), unix: UnixMs(1_700_000_000_000 + ms as i64) }
}

#[test]
fn a_quote_takes_at_most_264_bytes() {
    // An allocator that adds 8 bytes and rounds up to a multiple of 16 takes as much for 250 bytes.
    assert!(size_of::<Quote>() <= 264);
    assert_eq!(size_of::<Option<Box<Quote>>>(), size_of::<usize>());
}

#[test]
fn figures_that_are_lost_or_come_late_do_not_thaw_a_frozen_source() {
    let mut quotes = Quotes::new(&[source("x", &[], &[])]);
    let high = |high: Option<i64>| Ticker {
        high: high.map(Decimal::from),
        ..Ticker::of_last(Decimal::from(5))
    };
    // The minute, the highest price, and whether the source is frozen after the poll.
    for (minute, highest, expected) in [
        (0, Some(9), false),
        (4, None, false),
        (5, None, true),
        (6, None, true),
        (7, Some(9), true),
        (13, None, true),
        (14, Some(8), true),
        (15, Some(7), false),
    ] {
        let now = at_ms(minute * 60_000);
        quotes.apply(A, BTC, high(highest), now).expect("it is sound");
        quotes.end_poll(A, now);
        let quote = quotes.of(A, BTC).expect("it has come");
        assert_eq!((quotes.frozen(A), quote.stale()), (expected, expected), "{minute}");
        assert_eq!(quote.ticker.high, high(highest).high, "{minute}");
    }
}

/// The rules of quotes, computed naively: what was received, when, and what was restored.
struct Naive {
    held: Vec<NaiveQuote>,
    last_change: [Option<u64>; 3],
    frozen: [bool; 3],
    stale_ms: [u64; 3],
    frozen_ms: [u64; 3],
    rejected: u64,
}

struct NaiveQuote {
    source: SourceId,
    symbol: SymbolId,
    last: u64,
    /// Milliseconds; `None`: restored.
    received: Option<u64>,
    /// Since when it is fresh again.
    returning: Option<u64>,
    shown_at: UnixMs,
    timestamp: Option<UnixMs>,
}

impl Naive {
    fn new() -> Naive {
        Naive {
            held: Vec::new(),
            last_change: [None; 3],
            frozen: [false; 3],
            stale_ms: [1_000, 3_000, 10_000],
            frozen_ms: [5_000, 4_000, 2_000],
            rejected: 0,
        }
    }

    fn sources(&self) -> Vec<SourceConfig> {
        let source = |at: usize| SourceConfig {
            stale_after: Duration::from_millis(self.stale_ms[at]),
            frozen_after: Duration::from_millis(self.frozen_ms[at]),
            ..source("x", &[], &[])
        };
        (0..3).map(source).collect()
    }

    fn get(&self, source: SourceId, symbol: SymbolId) -> Option<&NaiveQuote> {
        let wanted = |quote: &&NaiveQuote| (quote.source, quote.symbol) == (source, symbol);
        self.held.iter().find(wanted)
    }

    fn apply(
        &mut self,
        (source, symbol): (SourceId, SymbolId),
        last: u64,
        timestamp: Option<UnixMs>,
        now: u64,
    ) -> bool {
        let before = self.get(source, symbol);
        let changed = before.is_none_or(|quote| quote.last != last);
        let returning = before.and_then(|quote| match self.stale(quote, now) {
            true => quote.received.map(|_| now),
            false => quote.returning.filter(|since| now / 1000 - since / 1000 < 10),
        });
        self.drop_symbol(source, symbol);
        self.held.push(NaiveQuote {
            source,
            symbol,
            last,
            received: Some(now),
            returning,
            shown_at: at_ms(now).unix,
            timestamp,
        });
        if changed {
            self.last_change[source.index()] = Some(now);
            self.frozen[source.index()] = false;
        }
        changed
    }

    fn end_poll(&mut self, source: SourceId, now: u64) {
        let since = *self.last_change[source.index()].get_or_insert(now);
        if now - since >= self.frozen_ms[source.index()] {
            self.frozen[source.index()] = true;
        }
    }

    /// A frozen source stays so unless the new age allows it.
    fn reconfigure(&mut self, at: usize, ages: [u64; 2], now: u64) {
        [self.stale_ms[at], self.frozen_ms[at]] = ages;
        let since = self.last_change[at].map(|changed| now - changed);
        self.frozen[at] &= since.is_some_and(|since| since >= self.frozen_ms[at]);
    }

    fn drop_symbol(&mut self, source: SourceId, symbol: SymbolId) {
        self.held.retain(|quote| (quote.source, quote.symbol) != (source, symbol));
    }

    fn stale(&self, quote: &NaiveQuote, now: u64) -> bool {
        let limit = self.stale_ms[quote.source.index()];
        self.frozen[quote.source.index()]
            || quote.received.is_none_or(|received| now - received >= limit)
    }

    fn best(&self, order: &[SourceId], symbol: SymbolId, now: u64) -> Option<SourceId> {
        let quotes: Vec<_> = order.iter().filter_map(|id| self.get(*id, symbol)).collect();
        let mut fresh = quotes.iter().filter(|quote| !self.stale(quote, now));
        let steady = fresh.clone().find(|quote| quote.returning.is_none());
        let fresh = steady.or_else(|| fresh.next());
        // The first of the greatest: `max_by_key` would take the last.
        let latest = || {
            let key = |quote: &&&NaiveQuote| (quote.received, quote.shown_at);
            quotes.iter().rev().max_by_key(key)
        };
        fresh.or_else(latest).map(|quote| quote.source)
    }
}

/// Replays one seed: random polls, pauses, drops and restores against the naive rules.
fn replay(seed: u64) {
    let mut random = Rng::new(seed);
    let mut naive = Naive::new();
    let mut quotes = Quotes::new(&naive.sources());
    let (mut now, mut versions) = (0, HashMap::new());
    for _ in 0..400 {
        now += [0, 1, 200, 500, 1_000, 3_000][random.below(6) as usize];
        let id = SourceId(random.below(3) as u16);
        let symbol = SymbolId(random.below(5) as u32);
        match random.below(22) {
            0 => {
                quotes.drop_symbol(id, symbol);
                naive.drop_symbol(id, symbol);
            }
            1 => {
                let shown_at = UnixMs(random.below(3) as i64);
                let taken = quotes.restore(id, symbol, ticker("7"), shown_at);
                assert_eq!(taken, naive.get(id, symbol).is_none(), "seed {seed}");
                if taken {
                    naive.held.push(NaiveQuote {
                        source: id,
                        symbol,
                        last: 7,
                        received: None,
                        returning: None,
                        shown_at,
                        timestamp: None,
                    });
                }
            }
            20 => {
                // It is refused, and changes nothing but a counter.
                assert!(!quotes.restore(id, symbol, ticker("0"), UnixMs(1)));
                assert_eq!(quotes.apply(id, symbol, ticker("0"), at_ms(now)), Err(QuoteReject));
                quotes.count_rejected(2);
                naive.rejected += 3;
            }
            21 => {
                let ages = [1000 + random.below(9000), 1000 + random.below(9000)];
                naive.reconfigure(id.index(), ages, now);
                quotes.reconfigure(&naive.sources(), at_ms(now).mono);
            }
            2..=6 => {
                quotes.end_poll(id, at_ms(now));
                naive.end_poll(id, now);
            }
            _ => {
                // Mostly the same price again, so that sources do freeze.
                let last = 7 + random.below(8) / 7;
                // The exchange's time is kept, and is no change.
                let timestamp = Some(UnixMs(random.below(3) as i64)).filter(|it| it.0 > 0);
                let quote = Ticker { timestamp, ..ticker(&last.to_string()) };
                let changed = quotes.apply(id, symbol, quote, at_ms(now));
                let expected = naive.apply((id, symbol), last, timestamp, now);
                assert_eq!(changed, Ok(expected), "seed {seed}");
            }
        }
        if quotes.staleness_due().is_some_and(|next| next <= at_ms(now).mono) {
            quotes.update_staleness(at_ms(now));
        }
        compare(&quotes, &naive, now, &mut versions, seed);
    }
}

type Shown = (SourceId, SymbolId, bool, UnixMs, (Decimal, Option<UnixMs>));

fn compare(
    quotes: &Quotes,
    naive: &Naive,
    now: u64,
    versions: &mut HashMap<u64, Shown>,
    seed: u64,
) {
    let order = [SourceId(2), SourceId(0), SourceId(1)];
    let QuoteCounts { collected, .. } = quotes.counts();
    let rejected = naive.rejected;
    let mut counts = QuoteCounts { collected, rejected, ..QuoteCounts::default() };
    for id in order {
        // Without a figure, none stands still.
        let mut received = naive.held.iter().filter(|it| it.source == id && it.received.is_some());
        let is_frozen = naive.frozen[id.index()] && received.next().is_some();
        assert_eq!(quotes.frozen(id), is_frozen, "seed {seed} at {now}");
    }
    for symbol in (0..5).map(SymbolId) {
        let best = quotes.best(&order, symbol).map(|quote| quote.source);
        assert_eq!(best, naive.best(&order, symbol, now), "seed {seed} at {now}");
        counts.symbols += usize::from(best.is_some());
        for id in order {
            let (got, expected) = (quotes.of(id, symbol), naive.get(id, symbol));
            assert_eq!(got.is_some(), expected.is_some(), "seed {seed} at {now}");
            let (Some(got), Some(expected)) = (got, expected) else {
                continue;
            };
            let is_stale = naive.stale(expected, now);
            assert_eq!(got.stale(), is_stale, "seed {seed} at {now}, {id:?} {symbol:?}");
            assert_eq!(got.received_at, expected.shown_at, "seed {seed} at {now}");
            let figures = (Decimal::from(expected.last as i64), expected.timestamp);
            let ticker = &got.ticker;
            assert_eq!((ticker.last.clone(), ticker.timestamp), figures, "seed {seed} at {now}");
            counts.cached += 1;
            counts.stale += usize::from(is_stale);
            counts.fresh += usize::from(!is_stale);
            let shown = (id, symbol, is_stale, got.received_at, figures);
            // A body is rendered once for each version, and each version is one state.
            let is_new = !versions.contains_key(&got.version);
            let text = format!("{shown:?}");
            let render = |_: &Quote| {
                assert!(is_new, "seed {seed} at {now}");
                text.clone().into_bytes().into()
            };
            assert_eq!(got.rendered(render), text.as_bytes(), "seed {seed} at {now}");
            let named = versions.entry(got.version).or_insert_with(|| shown.clone());
            assert_eq!(*named, shown, "one version, one state: seed {seed} at {now}");
        }
    }
    assert_eq!(quotes.counts(), counts, "seed {seed} at {now}");
}

#[test]
fn staleness_failover_and_counters_equal_the_naive_rules_in_every_seed() {
    for seed in 0..200 {
        replay(seed);
    }
}

#[test]
fn a_symbol_is_awaited_until_a_poll_ends_that_was_begun_after_its_list() {
    use Awaited::{List, Poll, PollEnd};
    let mut quotes = Quotes::new(&Naive::new().sources());
    let came = |quotes: &mut Quotes, all: &[Awaited]| {
        all.iter().for_each(|it| quotes.arrived(A, *it));
        (quotes.is_awaited(A, BTC), quotes.is_awaited(A, ETH))
    };
    quotes.expect(A, [BTC]);
    assert!(!quotes.is_awaited(B, BTC));
    // These polls began before the list had come, so they do not count.
    assert_eq!(came(&mut quotes, &[Poll, PollEnd, Poll]), (true, false));
    assert_eq!(came(&mut quotes, &[List, PollEnd]), (true, false));
    assert_eq!(came(&mut quotes, &[Poll]), (true, false));
    quotes.expect(A, [ETH]);
    assert_eq!(came(&mut quotes, &[List]), (true, true));
    assert_eq!(came(&mut quotes, &[PollEnd]), (false, true));
    // The request for the symbol is cut short: only the next poll tells.
    assert_eq!(came(&mut quotes, &[Poll]), (false, true));
    quotes.missed(A, &[BTC, ETH], false);
    assert_eq!(came(&mut quotes, &[PollEnd]), (false, true));
    assert_eq!(came(&mut quotes, &[Poll, PollEnd]), (false, false));
    // No poll has ended before: nothing is known of either symbol.
    quotes.missed(A, &[BTC, ETH], true);
    assert_eq!(came(&mut quotes, &[PollEnd]), (true, true));
    assert_eq!(came(&mut quotes, &[Poll, PollEnd]), (false, false));
}
