//! How long the first answer takes with much on disk. By hand, since it writes a large file:
//!
//!     cargo test --release --test daemon history:: -- --ignored --nocapture year_of_minutes
//!
//! `MARKETD_YEAR_DAYS` is how many days there are (365), `MARKETD_YEAR_SYMBOLS` of how many markets
//! (50), `MARKETD_PROGRAM` another binary than the one that was built with the test.

use super::*;
use crate::support::daemon::TempDir;
use crate::support::*;
use marketd::decimal::Decimal;
use marketd::history::{Batch, DiskJob, Reply, SeriesName};
use marketd::interval::Stored;
use marketd::record::Candle;
use marketd::store::Store;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Candles of one batch.
const BATCH: i64 = 20_000;

const MINUTES_A_DAY: i64 = 1440;

#[test]
#[ignore = "writes more than a gigabyte"]
fn with_a_year_of_minutes_on_disk_the_first_answer_comes_at_once() {
    let number = |name: &str, default: i64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let count = number("MARKETD_YEAR_SYMBOLS", 50);
    let days = number("MARKETD_YEAR_DAYS", 365);
    let exchange = Binance::generated(count as usize, 7);
    let symbols = exchange.symbols();
    let dir = Arc::new(TempDir::new());
    let path = dir.path().join(FILE);
    let begin = Instant::now();
    let end = exchange.now() / 60_000 - 5;
    write(&path, &symbols, end - days * MINUTES_A_DAY..end);
    let bytes = std::fs::metadata(&path).expect("it is there").len();
    eprintln!("{} MB written in {:?}", bytes / 1_000_000, begin.elapsed());

    let named: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let config = config(&[source(&exchange, &named)], 1500);
    for (round, symbol) in symbols.iter().enumerate().take(5) {
        // The second half: the exchange is dead, and what is served is what is on disk.
        if round == 3 {
            exchange.fault_on(binance::KLINES, Fault::Status(500));
        }
        let mut launch = launch(&dir, &config);
        if let Ok(program) = std::env::var("MARKETD_PROGRAM") {
            launch = launch.program(program);
        }
        let begin = Instant::now();
        let marketd = launch.start();
        let listens = begin.elapsed();
        let to = (end - 1) * 60_000;
        let target = format!("/api/ecosystem/chart?symbol={symbol}&interval=1m&limit=500&to={to}");
        let answer = eventually(super::LONG, || {
            let answer = get(marketd.addr(), &target);
            let is_whole = answer.header("Chart-Coverage") == Some("complete");
            (answer.status == 200 && is_whole).then_some(answer)
        });
        let first = begin.elapsed();
        assert_eq!(answer.exact().items().len(), 500);
        let mut slowest = Duration::ZERO;
        for back in 1..50 {
            let to = (end - back * days * MINUTES_A_DAY / 60) * 60_000;
            let target =
                format!("/api/ecosystem/chart?symbol={symbol}&interval=1m&limit=500&to={to}");
            let begin = Instant::now();
            let answer = get(marketd.addr(), &target);
            assert_eq!(answer.header("Chart-Coverage"), Some("complete"));
            slowest = slowest.max(begin.elapsed());
        }
        let rss = marketd.rss_bytes() / 1_000_000;
        eprintln!(
            "listens after {listens:?}, first chart after {first:?}, slowest of 49 pages from disk \
             {slowest:?}, {rss} MB"
        );
        kill(marketd);
    }
}

fn write(path: &Path, symbols: &[String], slots: std::ops::Range<i64>) {
    let store = Store::start(path.to_path_buf(), Box::new(|| ())).expect("a thread");
    assert!(matches!(store.wait(LONG), Some(Reply::Opened(_))));
    for symbol in symbols {
        let series = SeriesName {
            source: "fake".into(),
            symbol: symbol.as_str().into(),
            interval: Stored::M1,
        };
        let mut from = slots.start;
        while from < slots.end {
            let part = from..slots.end.min(from + BATCH);
            from = part.end;
            let mut batch = Box::<Batch>::default();
            let candles = part.clone().map(|slot| (slot, Some(candle(slot))));
            batch.of(&series).answered(part, candles);
            let job = DiskJob::Write { number: 1, batch };
            store.send(job).expect("there is room");
            let answer = store.wait(LONG);
            assert!(matches!(answer, Some(Reply::Written { result: Ok(_), .. })));
        }
    }
    store.send(DiskJob::Stop).expect("there is room");
    assert_eq!(store.wait(LONG), Some(Reply::Stopped(Ok(()))));
    store.join();
}

fn candle(slot: i64) -> Candle {
    let price =
        |cents: i64| Decimal::from_parts((6_000_000 + cents).into(), 2).expect("few digits");
    let cents = slot * 7919 % 100_000;
    Candle {
        open_time: Stored::M1.open_of(slot),
        open: price(cents),
        high: price(cents + 1234),
        low: price(cents - 1234),
        close: price((slot + 1) * 7919 % 100_000 % (cents + 1234))
            .min(price(cents + 1234))
            .max(price(cents - 1234)),
        volume: Decimal::from_parts((slot * 31 % 10_000_000).into(), 5).expect("few digits"),
    }
}
