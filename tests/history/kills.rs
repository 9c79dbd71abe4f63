//! kill -9 while candles come and are written: nothing that was on disk is lost, nothing is twice,
//! and nothing differs from what the exchange has.

use super::truth::{check, closed, demo_klines};
use super::{FILE, await_complete, file, history, kill};
use crate::support::daemon::TempDir;
use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SYMBOLS: [(&str, &str); 3] =
    [("BTC/USDT", "BTCUSDT"), ("ETH/USDT", "ETHUSDT"), ("SOL/USDT", "SOLUSDT")];

const INTERVALS: [&str; 14] =
    ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w"];

#[test]
fn ten_kills_lose_nothing_and_nothing_wrong_is_served() {
    for_each_seed(1, |_, rng| kill_often(rng, 10));
}

#[test]
#[ignore = "takes ten minutes"]
fn two_hundred_kills_lose_nothing_and_nothing_wrong_is_served() {
    for_each_seed(1, |_, rng| kill_often(rng, 200));
}

fn demo(dir: &Arc<TempDir>) -> Marketd {
    Launch::new(&["--data", FILE]).in_dir(dir.clone()).start()
}

fn target(symbol: &str, interval: &str, rest: &str) -> String {
    format!("/api/ecosystem/chart?symbol={symbol}&interval={interval}&decimals=string{rest}")
}

fn kill_often(rng: &mut Rng, kills: u64) {
    let dir = Arc::new(TempDir::new());
    let path = dir.path().join(FILE);
    let mut on_disk = BTreeMap::new();
    for _ in 0..kills {
        let marketd = demo(&dir);
        let (symbol, id) = *rng.pick(&SYMBOLS);
        let interval = *rng.pick(&INTERVALS);
        let wanted = target(symbol, interval, "");
        let answer = eventually(super::LONG, || {
            Some(get(marketd.addr(), &wanted)).filter(|answer| answer.status == 200)
        });
        check_chart(&answer, id, interval);
        // A series that nobody has asked for before, so that there is something to write.
        let from = 1_500_000_000_000 + rng.below(200) as i64 * 1_000_000_000;
        let base = *rng.pick(&["1m", "1h", "1d"]);
        let more = target(symbol, base, &format!("&from={from}"));
        let _ = get(marketd.addr(), &more);
        match rng.below(3) {
            0 => (),
            1 => {
                let wait = Duration::from_millis(rng.below(1500));
                let _ = poll_until(wait, || None::<()>);
            }
            _ => eventually(super::LONG, || (history(&marketd, "inserted") > 0).then_some(())),
        }
        if path.exists() {
            let before = std::mem::replace(&mut on_disk, file::candles(&path));
            for (key, figures) in before {
                assert_eq!(on_disk.get(&key), Some(&figures), "{key:?} was on disk");
            }
        }
        kill(marketd);
    }
    let marketd = demo(&dir);
    for (symbol, id) in SYMBOLS {
        for interval in INTERVALS {
            let answer = await_complete(&marketd, &target(symbol, interval, "&limit=600"));
            check_chart(&answer, id, interval);
        }
    }
    let finished = marketd.stop(super::LONG);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let last = file::candles(&path);
    assert!(last.len() > 10_000, "{}", last.len());
    for (key, figures) in on_disk {
        assert_eq!(last.get(&key), Some(&figures), "{key:?} was on disk");
    }
    check_file(&path);
}

/// What is served as closed is the demo exchange's own; and all of it, where that is promised.
fn check_chart(answer: &Response, id: &str, interval: &str) {
    let rows = closed(answer);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
    let truth = demo_klines(id, interval, first.0, last.0);
    let whole = answer.header("Chart-Coverage") == Some("complete");
    check(&rows, &truth, whole, &format!("{id} {interval}"));
}

/// Each candle of the file is the demo exchange's own, and none is missing in what it says to know.
fn check_file(path: &Path) {
    let mut series: BTreeMap<(String, String), Vec<_>> = BTreeMap::new();
    for ((symbol, interval, time), figures) in file::candles(path) {
        let rows = series.entry((symbol, interval)).or_default();
        rows.push((time, figures));
    }
    for ((symbol, interval), rows) in series {
        let id = symbol.replace('/', "");
        let mut begin = 0;
        while begin < rows.len() {
            let length = match interval.as_str() {
                "1m" => 60_000,
                "1h" => 3_600_000,
                _ => 86_400_000,
            };
            let run = rows[begin..].windows(2);
            let run = run.take_while(|two| two[1].0 - two[0].0 == length).count() + 1;
            let part = &rows[begin..begin + run];
            let truth = demo_klines(&id, &interval, part[0].0, part[run - 1].0);
            check(part, &truth, true, &format!("{symbol} {interval} in the file"));
            begin += run;
        }
    }
    // The demo exchange trades in every slot.
    let slots = "SELECT (until - first) / CASE interval WHEN '1m' THEN 60 WHEN '1h' THEN 3600
                 ELSE 86400 END AS slots FROM span JOIN series ON series.id = span.series";
    let slots = file::number(path, &format!("SELECT coalesce(sum(slots), 0) FROM ({slots})"));
    assert_eq!(slots, file::number(path, "SELECT count(*) FROM candle"));
    assert_eq!(slots, file::number(path, "SELECT sum(candles) FROM series"));
}
