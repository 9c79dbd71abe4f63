//! The rules of quotes, each tried, and all of them against a naive model.

use super::*;
use crate::decimal::Decimal;
use crate::market::testing::{source, ticker};
use crate::rng::Rng;

const A: SourceId = SourceId(0);
const B: SourceId = SourceId(1);
const BTC: SymbolId = SymbolId(0);
const ETH: SymbolId = SymbolId(7);

/// The clocks, `seconds` after the start.
fn at(seconds: u64) -> Now {
    at_ms(seconds * 1000)
}

fn at_ms(ms: u64) -> Now {
    Now { mono: Mono(ms * 1000), unix: UnixMs(1_700_000_000_000 + ms as i64) }
}

/// Two sources; stale after 15 s, frozen after 300 s.
fn quotes() -> Quotes {
    Quotes::new(&[source("a", &[], &[]), source("b", &[], &[])])
}

fn apply(quotes: &mut Quotes, source: SourceId, symbol: SymbolId, last: &str, now: Now) -> bool {
    let applied = quotes.apply(source, symbol, ticker(last), now);
    applied.expect("a good ticker")
}

fn stale(quotes: &Quotes, source: SourceId, symbol: SymbolId) -> Option<bool> {
    quotes.of(source, symbol).map(Quote::stale)
}

#[test]
fn the_exchange_s_timestamp_is_kept_and_is_no_change() {
    let mut quotes = quotes();
    apply(&mut quotes, A, BTC, "10", at(1));
    let mut stamped = ticker("10");
    stamped.timestamp = Some(UnixMs(5));
    let applied = quotes.apply(A, BTC, stamped, at(2));
    assert_eq!(applied, Ok(false));
    let quote = quotes.of(A, BTC).expect("applied");
    assert_eq!(quote.ticker.timestamp, Some(UnixMs(5)));
}

#[test]
fn a_refused_item_changes_nothing_but_a_counter() {
    let mut quotes = quotes();
    apply(&mut quotes, A, BTC, "10", at(1));
    let version = quotes.version();
    let refused = quotes.apply(A, BTC, ticker("0"), at(2));
    assert_eq!(refused, Err(QuoteReject));
    quotes.count_rejected(2);
    assert_eq!(quotes.version(), version);
    let quote = quotes.of(A, BTC).expect("applied");
    assert_eq!(quote.received_at, at(1).unix);
    let counts = quotes.counts();
    assert_eq!((counts.collected, counts.rejected), (1, 3));
    assert!(!quotes.restore(A, ETH, ticker("0"), at(1).unix));
}

#[test]
fn a_frozen_source_stays_so_unless_the_new_age_allows_it() {
    let mut quotes = quotes();
    for second in 0..=300 {
        apply(&mut quotes, A, BTC, "10", at(second));
        quotes.end_poll(A, at(second));
    }
    let mut sources = [source("a", &[], &[]), source("b", &[], &[])];
    let mut seen = Vec::new();
    for (stale_s, frozen_s) in [(20, 300), (20, 100), (20, 1000), (20, 300)] {
        sources[0].stale_after = Duration::from_secs(stale_s);
        sources[0].frozen_after = Duration::from_secs(frozen_s);
        quotes.reconfigure(&sources, at(301).mono);
        seen.push((quotes.frozen(A), stale(&quotes, A, BTC)));
    }
    let (frozen, fresh) = ((true, Some(true)), (false, Some(false)));
    assert_eq!(seen, [frozen, frozen, fresh, fresh]);
    quotes.end_poll(A, at(302));
    assert!(quotes.frozen(A), "the next poll judges by the new age");
}

#[test]
fn a_body_is_rendered_once_for_each_state() {
    let mut quotes = quotes();
    let mut made = 0;
    let mut render = |quotes: &Quotes| {
        let quote = quotes.of(A, BTC).expect("applied");
        let body = |quote: &Quote| {
            made += 1;
            format!("{} {}", quote.ticker.last, quote.stale()).into_bytes().into()
        };
        (String::from_utf8_lossy(quote.rendered(body)).to_string(), made)
    };
    apply(&mut quotes, A, BTC, "10", at(0));
    assert_eq!(render(&quotes), ("10 false".to_string(), 1));
    assert_eq!(render(&quotes), ("10 false".to_string(), 1));
    quotes.update_staleness(at(15));
    assert_eq!(render(&quotes), ("10 true".to_string(), 2));
    apply(&mut quotes, A, BTC, "10", at(16));
    assert_eq!(render(&quotes), ("10 false".to_string(), 3));
    apply(&mut quotes, A, BTC, "11", at(17));
    assert_eq!(render(&quotes), ("11 false".to_string(), 4));
}

#[test]
fn a_quote_takes_at_most_264_bytes() {
    // An allocator that adds 8 bytes and rounds up to 16 takes as much for 250 of them.
    assert!(size_of::<Quote>() <= 264);
    assert_eq!(size_of::<Option<Box<Quote>>>(), size_of::<usize>());
}

/// The same rules without any cleverness: what was received, when, and what was restored.
#[derive(Default)]
struct Naive {
    held: Vec<NaiveQuote>,
    last_change: [Option<u64>; 3],
    frozen: [bool; 3],
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
}

impl Naive {
    const STALE_MS: [u64; 3] = [1_000, 3_000, 10_000];
    const FROZEN_MS: [u64; 3] = [5_000, 4_000, 2_000];

    fn get(&self, source: SourceId, symbol: SymbolId) -> Option<&NaiveQuote> {
        let wanted = |quote: &&NaiveQuote| (quote.source, quote.symbol) == (source, symbol);
        self.held.iter().find(wanted)
    }

    fn apply(&mut self, source: SourceId, symbol: SymbolId, last: u64, now: u64) -> bool {
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
        });
        if changed {
            self.last_change[source.index()] = Some(now);
            self.frozen[source.index()] = false;
        }
        changed
    }

    fn end_poll(&mut self, source: SourceId, now: u64) {
        let since = *self.last_change[source.index()].get_or_insert(now);
        if now - since >= Naive::FROZEN_MS[source.index()] {
            self.frozen[source.index()] = true;
        }
    }

    fn drop_symbol(&mut self, source: SourceId, symbol: SymbolId) {
        self.held.retain(|quote| (quote.source, quote.symbol) != (source, symbol));
    }

    fn stale(&self, quote: &NaiveQuote, now: u64) -> bool {
        let limit = Naive::STALE_MS[quote.source.index()];
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
    let sources: Vec<_> = (0..3)
        .map(|at| SourceConfig {
            stale_after: Duration::from_millis(Naive::STALE_MS[at]),
            frozen_after: Duration::from_millis(Naive::FROZEN_MS[at]),
            ..source("x", &[], &[])
        })
        .collect();
    let (mut quotes, mut naive) = (Quotes::new(&sources), Naive::default());
    let (mut now, mut versions) = (0, std::collections::HashMap::new());
    for _ in 0..400 {
        now += [0, 1, 200, 500, 1_000, 3_000][random.below(6) as usize];
        let id = SourceId(random.below(3) as u16);
        let symbol = SymbolId(random.below(5) as u32);
        match random.below(20) {
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
                    });
                }
            }
            2..=6 => {
                quotes.end_poll(id, at_ms(now));
                naive.end_poll(id, now);
            }
            _ => {
                // Mostly the same price again, so that sources do freeze.
                let last = 7 + random.below(8) / 7;
                let changed = apply(&mut quotes, id, symbol, &last.to_string(), at_ms(now));
                assert_eq!(changed, naive.apply(id, symbol, last, now), "seed {seed}");
            }
        }
        if quotes.staleness_due().is_some_and(|next| next <= at_ms(now).mono) {
            quotes.update_staleness(at_ms(now));
        }
        compare(&quotes, &naive, now, &mut versions, seed);
    }
}

type Shown = (SourceId, SymbolId, bool, UnixMs, Decimal, Option<UnixMs>);

fn compare(
    quotes: &Quotes,
    naive: &Naive,
    now: u64,
    versions: &mut std::collections::HashMap<u64, Shown>,
    seed: u64,
) {
    let order = [SourceId(2), SourceId(0), SourceId(1)];
    let mut counts = QuoteCounts { collected: quotes.counts().collected, ..QuoteCounts::default() };
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
            assert_eq!(
                got.ticker.last,
                Decimal::from(expected.last as i64),
                "seed {seed} at {now}"
            );
            counts.cached += 1;
            counts.stale += usize::from(is_stale);
            counts.fresh += usize::from(!is_stale);
            let ticker = &got.ticker;
            let shown =
                (id, symbol, is_stale, got.received_at, ticker.last.clone(), ticker.timestamp);
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
    let mut quotes = quotes();
    let came = |quotes: &mut Quotes, all: &[Awaited]| {
        all.iter().for_each(|it| quotes.arrived(A, *it));
        (quotes.is_awaited(A, BTC), quotes.is_awaited(A, ETH))
    };
    quotes.expect(A, [BTC]);
    assert!(!quotes.is_awaited(B, BTC));
    // Polls that know nothing of it yet.
    assert_eq!(came(&mut quotes, &[Poll, PollEnd, Poll]), (true, false));
    assert_eq!(came(&mut quotes, &[List, PollEnd]), (true, false));
    assert_eq!(came(&mut quotes, &[Poll]), (true, false));
    quotes.expect(A, [ETH]);
    assert_eq!(came(&mut quotes, &[List]), (true, true));
    assert_eq!(came(&mut quotes, &[PollEnd]), (false, true));
    // The request for it is cut short: only the next poll tells.
    assert_eq!(came(&mut quotes, &[Poll]), (false, true));
    quotes.missed(A, &[BTC, ETH], false);
    assert_eq!(came(&mut quotes, &[PollEnd]), (false, true));
    assert_eq!(came(&mut quotes, &[Poll, PollEnd]), (false, false));
    // No poll has ended before: nothing is known of either.
    quotes.missed(A, &[BTC, ETH], true);
    assert_eq!(came(&mut quotes, &[PollEnd]), (true, true));
    assert_eq!(came(&mut quotes, &[Poll, PollEnd]), (false, false));
}
