//! Room: a file must not grow for ever. A disk that is full is tried in `faults`, call by call, and with the
//! whole of marketd in `tests/history/room.rs`.

use super::bench::Bench;
use super::support::daemon::TempDir;
use super::world::{self, START, name};
use marketd::history::{Batch, SeriesName};

/// Candles of many markets, minute after minute and a row each, as a running marketd writes them;
/// every so often what is older than `keep` minutes goes. Sizes of the file, one for each `keep`.
fn live(symbols: usize, minutes: i64, flush: i64, keep: i64) -> Vec<u64> {
    let dir = TempDir::in_memory();
    let mut bench = Bench::open(&dir.history());
    let series: Vec<SeriesName> = (0..symbols)
        .map(|symbol| SeriesName { symbol: format!("S{symbol}/USDT").into(), ..name(0) })
        .collect();
    let (mut sizes, mut most) = (Vec::new(), 0);
    for slot in (START[0]..START[0] + minutes).step_by(flush as usize) {
        let mut all = Batch::default();
        for (symbol, series) in series.iter().enumerate() {
            let candles = (slot..slot + flush).map(|slot| (slot, Some(world::live(symbol, slot))));
            all.of(series).answered(slot..slot + flush, candles);
        }
        let written = bench.put(all);
        most = most.max(written.bytes);
        let age = slot + flush - START[0];
        if age % (keep / 20) < flush {
            for series in &series {
                bench.evict(series, slot + flush - keep).expect("a sound disk");
            }
        }
        if age % keep < flush {
            sizes.push(std::mem::take(&mut most));
        }
    }
    let (heads, _, _) = bench.load();
    assert!(heads.iter().all(|it| it.covered.len() == 1));
    // All goes: free pages count as room.
    series.iter().for_each(|it| _ = bench.evict(it, i64::MAX).expect("a sound disk"));
    let written = bench.put(Batch::default());
    assert!(written.bytes < most / 2 + (1 << 16), "{} of {most}", written.bytes);
    bench.stop();
    let bytes = std::fs::metadata(dir.history()).expect("it is there").len();
    assert!(bytes > written.bytes, "the file never shrinks");
    let candles = symbols as u64 * keep as u64;
    eprintln!("{} bytes a candle; {sizes:?}", sizes.last().unwrap_or(&0) / candles);
    sizes
}

/// The first two hold less than what is kept, or just that.
#[track_caller]
fn check_bounded(sizes: &[u64]) {
    let (settled, later) = (sizes[1], &sizes[2..]);
    let most = later.iter().max().expect("more than two");
    assert!(*most <= settled + settled / 10, "{sizes:?}");
}

#[test]
fn a_file_that_is_written_row_by_row_keeps_its_size() {
    check_bounded(&live(30, 2000, 1, 400));
}

#[test]
#[ignore = "a year of four markets takes a minute or more"]
fn a_file_keeps_its_size_over_a_year() {
    check_bounded(&live(4, 365 * 1440, 5, 43_200));
}
