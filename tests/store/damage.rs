//! Files that were damaged while nobody looked: cut off, flipped, overwritten, in a hundred ways.
//!
//! None may crash the process, none may be rebuilt or overwritten in silence: a file is refused and
//! left as it is, or it is used, and then all that was readable before is readable after.

use super::bench::Bench;
use super::support::daemon::TempDir;
use super::world::{self, SERIES, batch, name};
use crate::support::{Rng, for_each_seed};
use marketd::history::Unusable;
use marketd::record::Candle;
use std::path::Path;

/// Batches in the file.
const BATCHES: u64 = 150;

/// Damaged files, unless one seed is asked for.
const FILES: u64 = 100;

/// What has been done to a file.
fn damage(content: &mut Vec<u8>, rng: &mut Rng) -> &'static str {
    let length = content.len() as u64;
    let at = rng.below(length) as usize;
    match rng.below(6) {
        0 => {
            content.truncate(at);
            "cut off"
        }
        1 => {
            content.truncate(at / 4096 * 4096);
            "cut off at a page"
        }
        2 => {
            let end = content.len().min(at + 512);
            let noise = rng.bytes(end - at);
            content[at..end].copy_from_slice(&noise);
            "noise"
        }
        3 => {
            let page = at / 4096 * 4096;
            content[page..page + 4096].fill(0);
            "a page of zeros"
        }
        4 => {
            // The headers of pages are where it hurts.
            let page = at / 4096 * 4096;
            for _ in 0..3 {
                content[page + rng.below(108) as usize] ^= 1 << rng.below(8);
            }
            "flips in a page's header"
        }
        _ => {
            for _ in 0..=rng.below(8) {
                content[rng.below(length) as usize] ^= 1 << rng.below(8);
            }
            "flips"
        }
    }
}

/// Everything that can be read; how many reads met damage.
fn read_all(bench: &mut Bench) -> (Vec<Candle>, usize) {
    let (mut candles, mut met) = (Vec::new(), 0);
    for series in 0..SERIES.len() {
        match bench.read_all(&name(series)) {
            Ok((rows, _)) => candles.extend(rows),
            Err(_) => met += 1,
        }
    }
    assert!(candles.iter().all(Candle::is_sound));
    (candles, met)
}

fn sound_file() -> Vec<u8> {
    let dir = TempDir::in_memory();
    let mut bench = Bench::open(&dir.history());
    bench.write_all(0..BATCHES);
    bench.stop();
    std::fs::read(dir.history()).expect("it is there")
}

#[test]
fn a_damaged_file_is_refused_as_it_is_or_keeps_what_can_be_read() {
    let sound = sound_file();
    let (mut refused, mut met_later, mut used, mut partly) = (0, 0, 0, 0);
    for_each_seed(FILES, |_, rng| {
        let dir = TempDir::in_memory();
        let path = dir.history();
        let mut content = sound.clone();
        let what = damage(&mut content, rng);
        std::fs::write(&path, &content).expect("a directory of ours");
        let untouched = |when: &str| {
            let now = std::fs::read(&path).expect("it is there");
            assert!(now == content, "{what}: it was written to, {when}");
            assert!(!log_has_content(&path), "{what}: something was written, {when}");
        };
        let mut bench = match Bench::try_open(&path) {
            Ok(bench) => bench,
            Err(error) => {
                let known = matches!(
                    error.why,
                    Unusable::Damaged(_) | Unusable::Foreign(_) | Unusable::Newer(_)
                );
                assert!(known, "{what}: {error}");
                refused += 1;
                return untouched("and refused");
            }
        };
        let loaded = bench.load().2;
        let (before, met) = read_all(&mut bench);
        if met > 0 || loaded.is_err() {
            met_later += 1;
            let error = bench.failure();
            assert!(
                matches!(&error, Some(it) if matches!(it.why, Unusable::Damaged(_))),
                "{what}: {error:?}"
            );
            drop(bench);
            return untouched("and given up");
        }
        used += 1;
        // Nothing that is handed out is anything else than what was written.
        let all: Vec<Candle> = (0..SERIES.len())
            .flat_map(|series| world::expected(series, BATCHES).into_values())
            .collect();
        assert!(before.iter().all(|candle| all.contains(candle)), "{what}");
        partly += u64::from(before != all);
        let _ = bench.write(batch(BATCHES));
        drop(bench);
        let mut bench = Bench::open(&path);
        let (after, met) = read_all(&mut bench);
        assert_eq!(met, 0, "{what}");
        // The batch says something new about the last candle of each series.
        let kept = before.iter().filter(|candle| after.contains(candle)).count();
        assert!(kept + SERIES.len() >= before.len(), "{what}: {kept} are left");
    });
    eprintln!(
        "{refused} refused, {met_later} given up when read, {used} used, {partly} of them without \
         some candles"
    );
}

fn log_has_content(path: &Path) -> bool {
    let log = format!("{}-wal", path.display());
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}
