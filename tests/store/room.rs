//! Room: a disk that has none left, and a file that must not grow for ever.

use super::bench::Bench;
use super::child::{Child, Said, Task, written};
use super::faults::Dir;
use super::world::{self, START, batch, name};
use marketd::history::{Batch, SeriesName};
use std::process::Command;

/// Runs a child that may make no file larger than so many blocks of 512 bytes.
fn limited(task: Task<'_>, blocks: u64) -> Vec<Said> {
    // The limit is set by a shell, which POSIX gives this builtin; doing it here would take
    // unsafe code. Then the shell becomes the child.
    let mut shell = Command::new("sh");
    let script = format!("ulimit -f {blocks} && exec \"$0\" \"$@\"");
    shell.arg("-c").arg(script);
    let (said, status) = Child::start_under(shell, task).end();
    assert!(status.success(), "{blocks} blocks: {status}, {said:?}");
    said
}

#[test]
fn a_full_disk_ends_nothing_and_loses_nothing() {
    let mut full = 0;
    for blocks in (0..=400).step_by(20) {
        let dir = Dir::new();
        let path = dir.file();
        let mut task = Task { path: &path, from: 0, to: 40, all: blocks % 40 == 0 };
        let said = limited(task, blocks);
        let known = written(0, &said);
        full += u64::from(known < 40);
        if path.exists() {
            world::check(&mut Bench::open(&path), known..=known + 1);
        } else {
            assert_eq!(known, 0, "{said:?}");
        }
        // Once there is room again, it goes on from there.
        task.from = known;
        let said = limited(task, 1 << 20);
        assert_eq!(written(known, &said), 40, "{said:?}");
        assert_eq!(said.last(), Some(&Said::Stopped), "{said:?}");
        world::check(&mut Bench::open(&path), 40..=40);
    }
    assert!(full > 5, "some limits were met");
}

/// A hundred slots of each series.
fn large(number: u64) -> Batch {
    let mut all = Batch::default();
    for part in 0..13 {
        all.absorb(batch(number * 13 + part));
    }
    all
}

#[test]
fn eviction_bounds_the_size_of_the_file() {
    let keep = 1500;
    let dir = Dir::new();
    let mut bench = Bench::open(&dir.file());
    let (mut settled, mut most) = (0, 0);
    for number in 0..150 {
        let written = bench.put(large(number));
        for (series, first) in START.into_iter().enumerate() {
            let newest = first + (number as i64 + 1) * 13 * 8;
            bench.evict(&name(series), newest - keep).expect("a sound disk");
        }
        most = most.max(written.bytes);
        if number == 30 {
            settled = most;
        }
    }
    eprintln!("{settled} bytes after two times what is kept, {most} after ten times");
    assert!(most <= settled + settled / 10, "{settled} bytes became {most}");
    let (heads, _, _) = bench.load();
    assert!(heads.iter().all(|head| head.covered.len() == 1));
    assert!(heads.iter().all(|head| head.covered[0].end - head.covered[0].start == keep));
    let newest = |first: i64| first + 151 * 13 * 8;
    for (series, first) in START.into_iter().enumerate() {
        bench.evict(&name(series), newest(first)).expect("a sound disk");
    }
    let written = bench.put(large(150));
    bench.stop();
    let bytes = std::fs::metadata(dir.file()).expect("it is there").len();
    assert!(bytes >= most, "{bytes} bytes of which {most} held something");
    assert!(written.bytes < most / 2, "free pages count as room: {} of {most}", written.bytes);
}

/// Candles of many markets, minute after minute and a row each, as a running marketd writes them;
/// every so often what is older than `keep` minutes goes. Sizes of the file, one for each `keep`.
fn live(symbols: usize, minutes: i64, flush: i64, keep: i64) -> Vec<u64> {
    let dir = Dir::new();
    let mut bench = Bench::open(&dir.file());
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
