//! A made-up history: what happens between two flushes is a pure function of the number of the
//! batch, so that a process that was killed need not tell what it has written.
//!
//! Each batch answers for the next eight slots of three series, says something new about the last
//! candle of the batch before, lets some candle vanish, and saves a quote that carries its number.

use super::bench::Bench;
use crate::support::chance::mix;
use marketd::decimal::Decimal;
use marketd::history::{Batch, QuoteName, SavedQuote, SeriesName};
use marketd::interval::Stored;
use marketd::record::{Candle, Ticker};
use marketd::time::UnixMs;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The series.
pub const SERIES: [(&str, &str, Stored); 3] = [
    ("binance", "BTC/USDT", Stored::M1),
    ("binance", "ETH/BTC", Stored::H1),
    ("kraken", "BTC/USDT", Stored::D1),
];

/// 2025-01-01, in seconds.
const BEGIN: i64 = 1_735_689_600;

/// Their first slots.
pub const START: [i64; 3] = [BEGIN / 60, BEGIN / 3600, BEGIN / 86_400];

/// Slots of each series in a batch.
const SLOTS: i64 = 8;

/// The name of a series.
pub fn name(series: usize) -> SeriesName {
    let (source, symbol, interval) = SERIES[series];
    SeriesName { source: source.into(), symbol: symbol.into(), interval }
}

/// What the exchange says of a slot for the `time`th time.
fn said(series: usize, slot: i64, time: u64) -> Option<Candle> {
    let dice = mix(slot as u64 * 31 + series as u64 + time * 7_777_777);
    // Nobody traded; or the exchange has changed its mind about that.
    if dice.is_multiple_of(5) {
        return None;
    }
    Some(thrown(SERIES[series].2.open_of(slot), 100_000 + dice % 100_000, dice))
}

/// A candle of this low in cents, and of what these dice say.
fn thrown(open_time: UnixMs, low: u64, dice: u64) -> Candle {
    let price = |add: u64| Decimal::from_parts((low + add).into(), 2).expect("few digits");
    Candle {
        open_time,
        open: price(20),
        high: price(45),
        low: price(0),
        close: price(dice % 46),
        volume: Decimal::from_parts((dice % 1_000_000_007).into(), 6).expect("few digits"),
    }
}

/// The candle of a market in which somebody always trades.
pub fn live(market: usize, slot: i64) -> Candle {
    let dice = mix(slot as u64 * 31 + market as u64);
    thrown(Stored::M1.open_of(slot), 6_000_000 + dice % 500_000, dice)
}

/// What happens between the flushes `number` and `number + 1`.
pub fn batch(number: u64) -> Batch {
    let mut batch = Batch::default();
    for (series, first) in START.into_iter().enumerate() {
        let first = first + number as i64 * SLOTS;
        let changes = batch.of(&name(series));
        if number > 0 {
            changes.answered(first - 1..first, [(first - 1, said(series, first - 1, 1))]);
        }
        let new =
            (first..first + SLOTS).filter_map(|slot| Some((slot, Some(said(series, slot, 0)?))));
        changes.answered(first..first + SLOTS, new);
    }
    let ticker = Ticker::of_last(Decimal::from(number as i64 + 1));
    let quote = QuoteName { source: "binance".into(), symbol: "BTC/USDT".into() };
    let received_at = UnixMs((BEGIN + number as i64) * 1000);
    batch.quotes.insert(quote, SavedQuote { ticker, received_at });
    batch
}

/// The candles of a series after so many batches, by slot.
pub fn expected(series: usize, batches: u64) -> BTreeMap<i64, Candle> {
    let first = START[series];
    let end = first + batches as i64 * SLOTS;
    let candle = |slot: i64| {
        let revised = (slot - first) % SLOTS == SLOTS - 1 && slot != end - 1;
        Some((slot, said(series, slot, u64::from(revised))?))
    };
    (first..end).filter_map(candle).collect()
}

/// The file holds the first so many batches, each whole. Answers how many. Where slots were
/// evicted, all from some slot on are there.
#[track_caller]
pub fn check(bench: &mut Bench, batches: RangeInclusive<u64>) -> u64 {
    let (heads, quotes, loaded) = bench.load();
    assert_eq!(loaded.map(|loaded| loaded.unsound), Ok(0));
    let count = match &quotes[..] {
        [] => 0,
        [(_, quote)] => quote.ticker.last.to_string().parse().expect("a number of a batch"),
        more => panic!("{more:?}"),
    };
    assert!(batches.contains(&count), "{count} batches of {batches:?} are there");
    assert_eq!(heads.len(), if count == 0 { 0 } else { SERIES.len() });
    for head in heads {
        let series = (0..SERIES.len()).find(|series| name(*series) == head.series);
        let series = series.expect("one of the three");
        let end = START[series] + count as i64 * SLOTS;
        let begin = head.covered.first().map_or(end, |span| span.start);
        assert!(begin >= START[series]);
        if begin < end {
            assert_eq!((head.covered.len(), head.covered[0].end), (1, end));
        }
        let (candles, unsound) = bench.read_all(&head.series).expect("a sound disk");
        let expected = expected(series, count);
        assert!(candles.iter().eq(expected.range(begin..).map(|(_, candle)| candle)));
        assert_eq!((head.extent.count, unsound), (candles.len() as u64, vec![]));
        let slot = |candle: &Candle| SERIES[series].2.slot_of(candle.open_time);
        assert_eq!(head.extent.first, candles.first().map(slot));
        assert_eq!(head.extent.last, candles.last().map(slot));
    }
    count
}
