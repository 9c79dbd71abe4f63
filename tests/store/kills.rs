//! kill -9, again and again, while batches are written: what was acknowledged is there.

use super::bench::Bench;
use super::child::{Child, Said, Task, written};
use super::world;
use crate::support::daemon::TempDir;
use crate::support::{Rng, for_each_seed};

/// Kills of one run, unless `MARKETD_KILLS` says otherwise.
const KILLS: u64 = 12;

#[test]
fn nothing_that_was_acknowledged_is_lost_by_a_kill() {
    let kills = std::env::var("MARKETD_KILLS");
    let kills = kills.map_or(KILLS, |text| text.parse().expect("MARKETD_KILLS is a number"));
    for_each_seed(1, |_, rng| kill_often(rng, kills));
}

fn kill_often(rng: &mut Rng, kills: u64) {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let (mut known, mut both) = (0, 0);
    for kill in 0..kills {
        let task = Task { path: &path, from: known, to: u64::MAX, all: rng.chance(1, 3) };
        let mut child = Child::start(task, |_| ());
        // Now and then in the middle of its start, otherwise in the middle of some batch.
        let wait = rng.below(30);
        let mut said = Vec::new();
        while said.len() < wait as usize {
            said.push(child.next().expect("it lives"));
        }
        let spins = rng.below(1 << 22);
        (0..spins).for_each(|spin| {
            std::hint::black_box(spin);
        });
        said.extend(child.kill());
        assert!(
            said.iter().all(|said| matches!(said, Said::Opened | Said::Written(_))),
            "{said:?}"
        );
        let acknowledged = written(known, &said);
        let mut bench = Bench::open(&path);
        // The batch that was under way is there whole, or not at all.
        let found = world::check(&mut bench, acknowledged..=acknowledged + 1);
        both += found - acknowledged;
        known = found;
        if rng.chance(1, 2) {
            bench.stop();
        }
        eprintln!("kill {kill}: {acknowledged} batches acknowledged, {found} found");
    }
    eprintln!("{known} batches in all; {both} were on disk and not yet acknowledged");
}
