//! Batches and when their slots are archived, eviction, and saved quotes.

use super::*;

#[test]
fn a_batch_of_many_series_is_taken_slice_by_slice() {
    const COUNT: usize = 300;
    let mut bench = Bench::new();
    let keys: [SeriesKey; COUNT] = std::array::from_fn(|at| bench.key(&format!("S{at}/USDT")));
    for key in keys {
        assert!(bench.cx.market.charts.open(key));
        bench.fetched(key, ago(10, 5), 5);
    }
    bench.at(bench.cx.now.mono + FLUSH);
    bench.with(History::handle_timeout);
    let batch = bench.batch();
    assert_eq!((batch.series.len(), batch.weight()), (COUNT, COUNT * 6));
    // Changes that come meanwhile go into the next batch.
    let later = &keys[1..6];
    later.iter().for_each(|key| bench.fetched(*key, ago(5, 4), 5));
    bench.with(|history, cx| history.handle(on_disk(batch), cx));
    let (mut known, mut slices) = (0, 0);
    while bench.history.has_work() {
        bench.with(History::work);
        slices += 1;
        let count = keys.iter().filter(|key| !bench.archived(**key).is_empty()).count();
        assert!(count <= known + COUNT / 4, "{count} after {known}");
        known = count;
        // A slot that changes before its series is archived waits until the change is written.
        bench.fetched(keys[20], ago(10, 6), 6);
    }
    assert!((4..10).contains(&slices), "{slices} slices");
    for (at, key) in keys.into_iter().enumerate() {
        let expected: &[_] = if at == 20 { &[(-9, -8), (-6, -5)] } else { &[(-10, -5)] };
        assert_eq!(bench.archived(key), expected, "{at}");
    }
    let batch = bench.flush();
    assert_eq!(batch.series.len(), later.len() + 1);
    assert_eq!(bench.archived(keys[20]), [(-10, -5)]);
    assert_eq!(bench.archived(keys[1]), [(-10, -4)]);
}

#[test]
fn a_batch_that_comes_back_waits_longer_each_time_and_takes_in_what_came_since() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.pass(1);
    for (round, pause) in [1, 2, 4, 8, 16, 30, 30].into_iter().enumerate() {
        let batch = bench.batch();
        bench.fetched(key, ago(6, 5), round as i64 + 1);
        bench.unwritten(batch);
        assert!(bench.cx.stats.history.write_failed);
        assert_eq!(bench.cx.stats.history.persist_errors, round as u64 + 1);
        bench.fetched(key, ago(5, 4), round as i64 + 1);
        bench.pass(pause - 1);
        assert!(bench.jobs.is_empty(), "it rests for {pause} s");
        bench.pass(1);
    }
    let batch = bench.batch();
    assert_eq!(batch.weight(), 6 + 1, "six candles in one range");
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    let opens: Vec<_> = changes.candles().map(|(_, it)| it.map(|it| it.open.clone())).collect();
    let expected = [5, 5, 5, 5, 7, 7].map(|price| Some(Decimal::from(price)));
    assert_eq!(opens, expected, "what came last counts");
    bench.written(batch);
    assert!(!bench.cx.stats.history.write_failed);
    assert_eq!(bench.archived(key), [(-10, -4)]);
}

/// Applies twenty thousand candles, older than those of the last call.
fn fill(bench: &mut Bench, key: SeriesKey, begin: &mut i64) {
    for _ in 0..20 {
        *begin -= 1000;
        bench.fetched(key, *begin..*begin + 1000, 5);
    }
}

#[test]
fn a_disk_that_fails_takes_no_more_and_more_memory_and_that_is_told_once() {
    let (mut bench, key) = Bench::with_btc();
    let mut begin = BEGIN;
    fill(&mut bench, key, &mut begin);
    let mut batch = bench.due_batch();
    bench.unwritten(batch);
    let lines = logged(|| {
        for _ in 0..5 {
            fill(&mut bench, key, &mut begin);
        }
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN changes left out waiting=5"), "{lines:?}");
    assert!(lines[0].ends_with(" backfill=paused"), "{lines:?}");
    for _ in 0..40 {
        bench.pass(30);
        batch = bench.batch();
        assert!(batch.weight() < PENDING + 2000, "{}", batch.weight());
        // Changes that come while a batch is being written count as well.
        fill(&mut bench, key, &mut begin);
        bench.unwritten(batch);
        assert!(!bench.history.writer.has_room() && !bench.history.keeps(key, &bench.cx));
    }
    // A removal is taken nevertheless.
    bench.history.forget(key, BEGIN..i64::MAX, &bench.cx);
    bench.pass(30);
    batch = bench.batch();
    let mut forgotten = batch.series[&name("BTC/USDT", &bench.cx.config)].forgotten();
    assert!(forgotten.any(|slots| slots.end == i64::MAX));
    drop(forgotten);
    let lines = logged(|| bench.written(batch));
    let expected = ["INFO write works again failures=41", "INFO changes taken again refill=begun"];
    assert_eq!(lines, expected);
}

#[test]
fn it_is_told_once_that_the_file_is_full_and_once_that_it_has_room_again() {
    let mut bench = Bench::loading(|config| config.limits.history_bytes = 1 << 20);
    bench.loaded();
    let key = bench.btc();
    let mut lines = Vec::new();
    for kib in [1023, 1024, 1025, 1023, 1022] {
        bench.fetched(key, ago(10, 5), kib);
        let batch = bench.due_batch();
        let result = Ok(Written { bytes: kib as u64 * 1024, ..Written::default() });
        lines.extend(logged(|| _ = bench.tell(Reply::Written { batch, result })));
    }
    let expected = [
        "WARN file full stored=named bytes=1048576 limit=1048576",
        "INFO file has room again stored=all bytes=1047552 limit=1048576",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_write_that_never_ends_shows() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(10);
    let batch = bench.batch();
    assert!(!bench.cx.stats.history.write_failed);
    let begin = logged(|| bench.pass(2));
    assert_eq!(begin, ["ERROR write stalled after_s=10"]);
    assert!(bench.cx.stats.history.write_failed);
    let end = logged(|| bench.written(batch));
    assert_eq!(end, ["INFO write works again failures=0"]);
    assert!(!bench.cx.stats.history.write_failed);
}

#[test]
fn what_lies_ahead_of_a_clock_that_went_back_is_unknown_and_stays_in_the_file() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 4), 5);
    let first = bench.due_batch();
    bench.fetched(key, ago(4, 0), 5);
    let back_ms = 6 * 60_000;
    let clock = &mut bench.cx.stats.sources[0].clock;
    *clock = clock.map(|zero| zero - back_ms);
    let time = bench.cx.exchange_time(SourceId(0));
    bench.cx.market.charts.hide_from(SourceId(0), time);
    let before = Stored::M1.slot_of(time) - BEGIN;
    bench.written(first);
    assert_eq!(bench.archived(key), [(-10, before)]);
    let batch = bench.flush();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    assert_eq!(changes.candles().count(), 4, "what was on its way is written");
    assert_eq!(bench.archived(key), [(-10, before)]);
}

#[test]
fn a_heavy_batch_does_not_wait_for_its_second() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(1000, 0), 5);
    let light = bench.history.due().expect("a flush is due");
    assert_eq!(light, bench.cx.now.mono + FLUSH);
    let heavy = HEAVY as i64 + 1000;
    bench.fetched(key, ago(heavy, 1000), 5);
    // The change after the one that makes the batch heavy makes its flush due.
    bench.fetched(key, ago(heavy + 1, heavy), 5);
    bench.pass(0);
    let batch = bench.batch();
    assert!(batch.weight() > HEAVY);
    // The next batch is heavy, too: it is sent as soon as this one is on disk.
    bench.fetched(key, ago(2 * heavy, heavy + 1), 5);
    bench.pass(0);
    assert!(bench.jobs.is_empty(), "one batch at a time");
    bench.written(batch);
    bench.pass(0);
    bench.batch();
}

#[test]
fn candles_are_not_asked_for_while_too_many_wait_and_those_that_come_find_a_place() {
    let (mut bench, key) = Bench::with_btc();
    assert_eq!(bench.history.pace(), Pace::Free);
    let full = PENDING as i64;
    bench.fetched(key, ago(full, 0), 5);
    assert_eq!(bench.history.pace(), Pace::Hold);
    // These candles were requested before too many changes waited.
    bench.fetched(key, ago(full + 1500, full), 5);
    let batch = bench.due_batch();
    assert_eq!(batch.weight() as i64, full + 1500 + 1);
    assert_eq!(bench.history.pace(), Pace::Hold, "it is not on disk yet");
    bench.written(batch);
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!(bench.archived(key), [(-full - 1500, 0)]);
}

/// A history that keeps a thousand minutes of a series.
fn keeping_1000() -> Bench {
    Bench::loading(|config| {
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
    let batch = bench.batch();
    assert_eq!(evicted(&batch), [("BTC/USDT", before)]);
    bench.unwritten(batch);
    bench.pass(2);
    let batch = bench.batch();
    assert_eq!(evicted(&batch), [("BTC/USDT", before)]);
    let result = Ok(Written { evicted: 2001, ..Written::default() });
    bench.tell(Reply::Written { batch, result });
    assert_eq!(bench.cx.stats.history.evicted, 2001);
    assert_eq!(bench.archived(key), [(-999, -10)]);
    bench.pass(120);
    assert!(bench.jobs.is_empty());
}

#[test]
fn a_batch_evicts_only_so_many_slots_and_the_next_ones_the_rest() {
    let mut bench = keeping_1000();
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
        let batch = bench.batch();
        let gone = left - archived(&bench);
        assert!((1..=SLOTS_A_BATCH).contains(&gone), "{gone}");
        (left, batches) = (left - gone, batches + 1);
        // While a batch is being written, nothing more is evicted.
        bench.pass(5);
        assert_eq!((bench.jobs.len(), archived(&bench)), (0, left));
        bench.written(batch);
        bench.pass(2);
    }
    assert_eq!(batches, 3);
    // A few slots that are past the window stay until there are more of them.
    assert!((2 * 989..2 * (989 + 1000 / 64)).contains(&left), "{left}");
}

#[test]
fn no_clock_evicts_anything_that_is_not_older_than_newer_candles() {
    // The exchange's clock is far ahead, or it is unknown and this machine's is far ahead.
    for is_known in [true, false] {
        let mut bench = keeping_1000();
        let ahead = UnixMs(bench.cx.now.unix.0 * 3);
        match is_known {
            true => bench.cx.stats.sources[0].clock = Some(ahead.0),
            false => (bench.cx.stats.sources[0].clock, bench.cx.now.unix) = (None, ahead),
        }
        bench.loaded_with(ago(1000, 10));
        bench.pass(200);
        assert!(bench.jobs.is_empty(), "{is_known}");
    }
}

#[test]
fn nothing_of_a_source_that_a_reload_has_removed_is_evicted() {
    let mut bench = keeping_1000();
    bench.loaded_with(ago(3000, 10));
    bench.cx.stats.sources[0].has_ended = true;
    bench.pass(200);
    assert!(bench.jobs.is_empty());
}

#[test]
fn a_candle_that_changes_while_the_file_is_closed_is_removed_from_a_full_file() {
    let mut bench = Bench::loading(|config| config.limits.history_bytes = 1);
    bench.loaded();
    let key = bench.key("SOL/USDT");
    assert!(bench.cx.market.charts.open(key) && !bench.history.may_store(key, &bench.cx));
    bench.tell(broken(true));
    bench.fetched(key, ago(5, 0), 6);
    bench.open_again();
    bench.head("SOL/USDT", ago(50, 0));
    bench.loaded();
    assert_eq!(bench.archived(key), [(-50, -5)]);
    let batch = bench.due_batch();
    let changes = &batch.series[&name("SOL/USDT", &bench.cx.config)];
    assert_eq!((changes.forgotten().collect(), changes.weight()), (vec![ago(5, 0)], 1));
}

#[test]
fn quotes_are_saved_when_they_have_changed() {
    let mut bench = Bench::new();
    let symbol = bench.key("BTC/USDT").symbol;
    let (quote, now) = (ticker(&Decimal::from(5)), bench.cx.now);
    bench.cx.market.quotes.apply(SOURCE, symbol, quote, now).expect("a sound quote");
    bench.pass(302);
    let batch = bench.batch();
    let received: Vec<UnixMs> = batch.quotes.values().map(|it| it.received_at).collect();
    assert_eq!(received, [now.unix]);
    bench.written(batch);
    bench.pass(302);
    assert!(bench.jobs.is_empty(), "it has not changed");
}

#[test]
fn markets_that_only_a_list_tells_of_are_back_with_their_quotes_until_it_comes() {
    let mut bench = Bench::loading(|config| {
        config.sources[0].symbols.clear();
        config.sources[0].quote_assets = vec!["USDT".to_string()];
    });
    let now = bench.cx.now.unix;
    let saved = |symbol: &str, received_at: UnixMs| {
        let (source, symbol) = ("binance".into(), symbol.into());
        let ticker = ticker(&Decimal::from(5));
        let quote = SavedQuote { ticker, received_at };
        (QuoteName { source, symbol }, quote)
    };
    // One market is not wanted any more, and one had left the list before.
    let others = vec![saved("ETH/BTC", now), saved("LUNA/USDT", now - jobs::DELISTED_AFTER_MS)];
    let quotes = vec![saved("BTC/USDT", now), saved("SOL/USDT", now - 300_000)];
    bench.tell(Reply::Quotes(others));
    bench.tell(Reply::Quotes(quotes.clone()));
    bench.loaded();
    let shown = |bench: &Bench| {
        let Market { catalog, quotes, .. } = &bench.cx.market;
        let known = catalog.known().iter();
        let quote = |symbol: &SymbolId| {
            let quote = quotes.of(SourceId(0), *symbol)?;
            Some((quote.stale(), quote.ticker.last.clone()))
        };
        known
            .map(|symbol| (catalog.name(*symbol).as_str().to_string(), quote(symbol)))
            .collect::<Vec<_>>()
    };
    let stale = |symbol: &str| (symbol.to_string(), Some((true, Decimal::from(5))));
    assert_eq!(shown(&bench), [stale("BTC/USDT"), stale("SOL/USDT")]);
    // A market that has left the list does not come back with a later load.
    for _ in 0..3 {
        list(&mut bench.cx.market.catalog, &["BTC/USDT"]);
    }
    assert_eq!(shown(&bench), [stale("BTC/USDT")]);
    bench.tell(broken(true));
    bench.open_again();
    bench.tell(Reply::Quotes(quotes));
    bench.loaded();
    assert_eq!(shown(&bench), [stale("BTC/USDT")]);
}

#[test]
fn many_quotes_come_back_in_slices_behind_their_markets() {
    let mut bench = Bench::loading(|config| config.sources[0].symbols.clear());
    let count = 300;
    let saved = |at: usize| {
        let (source, symbol) = ("binance".into(), format!("M{at}/USDT").into());
        let quote =
            SavedQuote { ticker: ticker(&Decimal::from(5)), received_at: bench.cx.now.unix };
        (QuoteName { source, symbol }, quote)
    };
    let list: Vec<(QuoteName, SavedQuote)> = (0..count).map(saved).collect();
    bench.tell(Reply::Quotes(list));
    let loaded = Reply::Loaded(Ok(Loaded::default()));
    bench.with(|history, cx| history.handle(loaded, cx));
    let (mut back, mut slices) = (0, 0);
    while bench.history.has_work() {
        bench.with(History::work);
        let (known, counts) =
            (bench.cx.market.catalog.known().len(), bench.cx.market.quotes.counts());
        assert!(known == count || (known, counts.cached) == (0, 0), "{known}");
        let came = counts.cached - back;
        (back, slices) = (counts.cached, slices + usize::from(came > 0));
        assert!(came < count / 2, "{came} at once");
    }
    assert_eq!((back, slices), (count, 3));
}
