//! What is older than the window leaves the file.

use super::*;

/// A history whose minutes leave when they are older than a thousand of them.
fn keeping_1000() -> Bench {
    Bench::unopened(|config| {
        config.history = Keep { m1: Depth { keep: 1000, backfill: 0 }, ..Keep::default() };
    })
}

/// What a batch evicts: the symbols, and the first slots that stay.
fn evicted(batch: &Batch) -> Vec<(&str, i64)> {
    let ends = batch.series.iter().map(|(name, changes)| {
        let slots = changes.forgotten().next().expect("a change");
        assert_eq!((slots.start, changes.weight()), (i64::MIN, 1));
        (&*name.symbol, slots.end)
    });
    ends.collect()
}

#[test]
fn what_is_evicted_is_archived_no_longer_and_tried_again_when_that_fails() {
    let mut bench = keeping_1000();
    bench.open();
    bench.head("BTC/USDT", ago(3000, 10));
    bench.head("ETH/USDT", ago(990, 10));
    bench.loaded();
    let key = bench.key("BTC/USDT");
    bench.pass(61);
    // Another minute has begun.
    let before = BEGIN + 1 - 1000;
    assert_eq!(bench.archived(key), [(-999, -10)]);
    bench.pass(5);
    assert_eq!(bench.jobs.len(), 1, "it is under way");
    let (number, batch) = bench.batch();
    assert_eq!(evicted(&batch), [("BTC/USDT", before)]);
    bench.unwritten(number, batch);
    bench.pass(2);
    let (number, batch) = bench.batch();
    assert_eq!(evicted(&batch), [("BTC/USDT", before)]);
    let result = Ok(Written { evicted: 2001, ..bench.on_disk() });
    bench.tell(Reply::Written { number, result });
    assert_eq!(bench.cx.stats.history.evicted, 2001);
    assert_eq!(bench.archived(key), [(-999, -10)]);
    bench.pass(120);
    assert!(bench.jobs.is_empty());
}

#[test]
fn a_batch_evicts_only_so_many_slots_and_the_next_ones_the_rest() {
    let mut bench = keeping_1000();
    bench.open();
    bench.head("BTC/USDT", ago(9000, 10));
    bench.head("ETH/USDT", ago(4000, 10));
    bench.loaded();
    let keys = ["BTC/USDT", "ETH/USDT"].map(|symbol| bench.key(symbol));
    let archived = |bench: &Bench| -> i64 {
        let spans = keys.iter().flat_map(|key| bench.archived(*key));
        spans.map(|(from, to)| to - from).sum()
    };
    let (mut left, mut batches) = (archived(&bench), 0);
    bench.pass(61);
    while !bench.jobs.is_empty() {
        let (number, _) = bench.batch();
        let gone = left - archived(&bench);
        assert!((1..=SLOTS_A_BATCH).contains(&gone), "{gone}");
        (left, batches) = (left - gone, batches + 1);
        // The disk takes its time: nothing more is evicted meanwhile.
        bench.pass(5);
        assert_eq!((bench.jobs.len(), archived(&bench)), (0, left));
        bench.written(number);
        bench.pass(2);
    }
    assert_eq!(batches, 3);
    // Of a small rest there is more later.
    assert!((2 * 989..2 * (989 + 1000 / 64)).contains(&left), "{left}");
}

#[test]
fn no_clock_evicts_anything_that_is_not_older_than_newer_candles() {
    let mut bench = keeping_1000();
    bench.cx.stats.sources[0].clock = Some(bench.cx.now.unix.0 * 3);
    bench.open();
    bench.loaded_with(ago(1000, 10));
    bench.pass(200);
    assert!(bench.jobs.is_empty());
}
