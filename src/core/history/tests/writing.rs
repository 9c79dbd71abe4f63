//! What is written, and when it is archived.

use super::*;

#[test]
fn what_is_acknowledged_is_archived_and_what_has_changed_meanwhile_with_the_next_batch() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(1);
    let (first, batch) = bench.batch();
    assert_eq!(batch.weight(), 11);
    assert!(bench.archived(key).is_empty());
    bench.fetched(key, ago(3, 1), 6);
    bench.pass(5);
    assert!(bench.jobs.is_empty(), "one batch at a time");
    bench.written(first);
    assert_eq!(bench.archived(key), [(-10, -3), (-1, 0)]);
    bench.pass(1);
    let (second, _) = bench.batch();
    assert_eq!(bench.archived(key), [(-10, -3), (-1, 0)]);
    bench.written(second);
    assert_eq!(bench.archived(key), [(-10, 0)]);
    assert_eq!(bench.cx.stats.history.inserted, 2);
    // Nothing has changed: nothing is written.
    bench.pass(5);
    assert!(bench.jobs.is_empty());
}

#[test]
fn a_batch_of_many_series_is_taken_slice_by_slice() {
    const COUNT: usize = 300;
    let mut bench = Bench::new();
    let keys = [(); COUNT];
    let mut number = 0;
    let keys = keys.map(|()| {
        number += 1;
        bench.key(&format!("S{number}/USDT"))
    });
    for key in keys {
        assert!(bench.cx.market.charts.open(key));
        bench.fetched(key, ago(10, 5), 5);
    }
    bench.at(bench.cx.now.mono + FLUSH);
    bench.with(History::handle_timeout);
    let (number, batch) = bench.batch();
    assert_eq!((batch.series.len(), batch.weight()), (COUNT, COUNT * 6));
    // What comes meanwhile is for the next batch.
    let later = &keys[1..6];
    later.iter().for_each(|key| bench.fetched(*key, ago(5, 4), 5));
    let written = Reply::Written { number, result: Ok(bench.on_disk()) };
    bench.with(|history, cx| history.handle(written, cx));
    let archived = |bench: &Bench, key: &SeriesKey| !bench.archived(*key).is_empty();
    let (mut known, mut slices) = (0, 0);
    while bench.history.has_work() {
        bench.with(History::work);
        slices += 1;
        let count = keys.iter().filter(|key| archived(&bench, key)).count();
        assert!(count <= known + COUNT / 4, "{count} after {known}");
        known = count;
        // An older word about what is still to be taken: it is not believed before it is written.
        bench.fetched(keys[20], ago(10, 9), 6);
    }
    assert!((4..10).contains(&slices), "{slices} slices");
    for (at, key) in keys.into_iter().enumerate() {
        let expected = match at {
            20 => (-9, -5),
            _ => (-10, -5),
        };
        assert_eq!(bench.archived(key), [expected], "{at}");
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
        let (number, batch) = bench.batch();
        bench.fetched(key, ago(6, 5), round as i64 + 1);
        bench.unwritten(number, batch);
        assert!(bench.cx.stats.history.write_failed);
        assert_eq!(bench.cx.stats.history.persist_errors, round as u64 + 1);
        bench.fetched(key, ago(5, 4), round as i64 + 1);
        bench.pass(pause - 1);
        assert!(bench.jobs.is_empty(), "it rests for {pause} s");
        bench.pass(1);
    }
    let batch = bench.write();
    assert_eq!(batch.weight(), 6 + 1, "six candles in one range");
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    let closes: Vec<_> = changes.candles().map(|(_, it)| it.map(|it| it.close.clone())).collect();
    let expected = [5, 5, 5, 5, 7, 7].map(|price| Some(Decimal::from(price)));
    assert_eq!(closes, expected, "what came last counts");
    assert!(!bench.cx.stats.history.write_failed);
    assert_eq!(bench.archived(key), [(-10, -4)]);
}

#[test]
fn a_disk_that_fails_again_and_again_takes_no_more_memory() {
    let (mut bench, key) = Bench::with_btc();
    let (mut begin, mut refused) = (BEGIN, 0);
    for _ in 0..40 {
        for _ in 0..8 {
            begin -= 1000;
            bench.fetched(key, begin..begin + 1000, 5);
        }
        bench.pass(30);
        if let Some(DiskJob::Write { number, batch }) = bench.jobs.pop_front() {
            assert!(batch.weight() < PENDING + 2000, "{}", batch.weight());
            // What comes while it is under way counts as well.
            for _ in 0..8 {
                begin -= 1000;
                bench.fetched(key, begin..begin + 1000, 5);
            }
            bench.unwritten(number, batch);
        }
        refused += usize::from(!bench.history.writer.has_room());
    }
    assert!(refused > 20);
    assert!(!bench.keeps(key));
    // What is to be forgotten is said nevertheless.
    let slots = BEGIN..i64::MAX;
    (bench.history).forget(key, slots, &bench.cx);
    let changes = &bench.history.writer.batch.series[&name("BTC/USDT", &bench.cx.config)];
    assert!(changes.forgotten().any(|slots| slots.end == i64::MAX));
}

#[test]
fn it_is_told_once_that_changes_are_left_out_and_once_that_they_are_taken_again() {
    let (mut bench, key) = Bench::with_btc();
    let mut begin = BEGIN;
    let mut fill = |bench: &mut Bench| {
        for _ in 0..20 {
            begin -= 1000;
            bench.fetched(key, begin..begin + 1000, 5);
        }
    };
    fill(&mut bench);
    bench.pass(1);
    bench.fail();
    let lines = logged(|| {
        for _ in 0..5 {
            fill(&mut bench);
        }
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN changes left out waiting=5"), "{lines:?}");
    assert!(lines[0].ends_with(" backfill=paused"), "{lines:?}");
    bench.pass(1);
    let (number, _) = bench.batch();
    let lines = logged(|| bench.written(number));
    let expected = ["INFO write works again failures=1", "INFO changes taken again refill=begun"];
    assert_eq!(lines, expected);
}

#[test]
fn it_is_told_once_that_the_file_is_full_and_once_that_it_has_room_again() {
    let mut bench = Bench::unopened(|config| config.limits.history_bytes = 1 << 20);
    bench.open_empty();
    let key = bench.btc();
    let mut lines = Vec::new();
    for kib in [1023, 1024, 1025, 1023, 1022] {
        bench.fetched(key, ago(10, 5), kib);
        bench.pass(1);
        let (number, _) = bench.batch();
        let result = Ok(Written { bytes: kib as u64 * 1024, ..Written::default() });
        lines.extend(logged(|| _ = bench.tell(Reply::Written { number, result })));
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
    let (number, _) = bench.batch();
    assert!(!bench.cx.stats.history.write_failed);
    let begin = logged(|| bench.pass(2));
    assert_eq!(begin, ["ERROR write stalled after_s=10"]);
    assert!(bench.cx.stats.history.write_failed);
    let end = logged(|| bench.written(number));
    assert_eq!(end, ["INFO write works again failures=0"]);
    assert!(!bench.cx.stats.history.write_failed);
}

#[test]
fn what_lies_ahead_of_a_clock_that_went_back_is_unknown_and_stays_in_the_file() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 4), 5);
    bench.pass(1);
    let (first, _) = bench.batch();
    bench.fetched(key, ago(4, 0), 5);
    let back_ms = 6 * 60_000;
    let clock = &mut bench.cx.stats.sources[0].clock;
    *clock = clock.map(|zero| zero - back_ms);
    let time = bench.cx.exchange_time(SourceId(0));
    bench.cx.market.charts.hide_from(SourceId(0), time);
    let before = Stored::M1.slot_of(time) - BEGIN;
    bench.written(first);
    assert_eq!(bench.archived(key), [(-10, before)]);
    bench.pass(1);
    let (second, batch) = bench.batch();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    assert_eq!(changes.candles().count(), 4, "what was on its way is written");
    bench.written(second);
    assert_eq!(bench.archived(key), [(-10, before)]);
}

#[test]
fn a_heavy_batch_does_not_wait_for_its_second() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(1000, 0), 5);
    let light = bench.history.due().expect("a flush is due");
    assert_eq!(light, bench.cx.now.mono + FLUSH);
    bench.fetched(key, ago(HEAVY as i64 + 1000, 1000), 5);
    // The change after the one that makes it heavy.
    bench.fetched(key, ago(HEAVY as i64 + 1001, HEAVY as i64 + 1000), 5);
    assert_eq!(bench.history.due(), Some(bench.cx.now.mono));
    bench.pass(0);
    let (number, batch) = bench.batch();
    assert!(batch.weight() > HEAVY);
    // So is the next one, as soon as this one is on disk.
    let next = HEAVY as i64 + 1001;
    bench.fetched(key, ago(next + HEAVY as i64, next), 5);
    bench.pass(0);
    assert!(bench.jobs.is_empty(), "one batch at a time");
    bench.written(number);
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
    // This was asked for before there was too much.
    bench.fetched(key, ago(full + 1500, full), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight() as i64, full + 1500 + 1);
    assert_eq!(bench.history.pace(), Pace::Hold, "it is not on disk yet");
    bench.written(number);
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!(bench.archived(key), [(-full - 1500, 0)]);
}
