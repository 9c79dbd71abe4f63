//! Candles that are read back for clients.

use super::*;

#[test]
fn a_part_that_the_file_does_not_know_is_no_market_without_trades() {
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(100, 0));
    bench.recall(key, ago(100, 0));
    let DiskJob::Read(ReadJob { ticket, slots, .. }) = bench.job() else {
        panic!("no read");
    };
    let covered = vec![ago(90, 60), ago(50, 10)];
    let traded = covered.iter().cloned().flatten().filter(|slot| slot % 2 == 0);
    let sound = traded.filter(|slot| *slot != BEGIN - 30);
    let candles = sound.map(|slot| reported(slot, 7).candle).collect();
    let rows = Rows { slots, candles, covered, unsound: vec![BEGIN - 30] };
    bench.tell(Reply::Rows { ticket, result: Ok(rows) });
    let known = [(-90, -60), (-50, -30), (-29, -10)];
    assert_eq!(bench.covered(key), known);
    assert_eq!(bench.archived(key), known);
    assert!(bench.jobs.is_empty(), "it is not read again and again");
    let batch = bench.due_batch();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    let forgotten: Vec<_> = changes.forgotten().collect();
    let slot = BEGIN - 30..BEGIN - 29;
    assert_eq!(forgotten, std::slice::from_ref(&slot));
}

#[test]
fn whatever_is_wanted_the_queue_of_the_disk_has_room_for_it() {
    let mut bench = Bench::loading(|config| config.limits.candle_series = 500);
    let keys: Vec<SeriesKey> = (0..200).map(|at| bench.key(&format!("C{at}/USDT"))).collect();
    for key in &keys {
        assert!(bench.cx.market.charts.open(*key));
        bench.cx.market.charts.archive(*key, 10..20_000);
        bench.cx.market.charts.archive(*key, ago(3000, 10));
    }
    bench.loaded();
    let mut wishes = Vec::new();
    for key in &keys {
        bench.fetched(*key, ago(3, 1), 5);
        wishes.push(bench.recall(*key, ago(3000, 2000)));
    }
    bench.pass(100);
    // The bench checks the length of the queue. This checks that reads were begun, and refused.
    assert!(wishes.contains(&ReadStart::Begun) && wishes.contains(&ReadStart::Refused));
    assert!(bench.jobs.len() > 60);
}
