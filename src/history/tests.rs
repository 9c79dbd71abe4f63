//! The rules of batches, tried against a model, and the words of the errors.

use super::testing::{Model, candle, random_changes, series};
use super::*;
use crate::interval::Stored;
use crate::rng::Rng;
use std::path::PathBuf;

#[test]
fn one_merged_batch_does_what_its_parts_do_in_their_order() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let (mut one_by_one, mut merged) = (Model::default(), Model::default());
        one_by_one.apply(&random_changes(&mut rng));
        merged.clone_from(&one_by_one);
        let mut all = Changes::default();
        for _ in 0..=rng.below(5) {
            let changes = random_changes(&mut rng);
            one_by_one.apply(&changes);
            all.absorb(changes);
        }
        merged.apply(&all);
        assert_eq!(merged, one_by_one, "seed {seed}");
    }
}

#[test]
fn waiting_takes_memory_for_what_changed_and_not_for_how_often() {
    let name = series(Stored::M1);
    let mut waiting = Batch::default();
    assert!(waiting.is_empty());
    for round in 0..1000 {
        let mut batch = Batch::default();
        let candles = [(round, Some(candle(Stored::M1, round, 5)))];
        batch.of(&name).answered(round..round + 1, candles);
        let again = (0..5).map(|slot| (slot, Some(candle(Stored::M1, slot, round + 1))));
        batch.of(&name).answered(0..5, again);
        waiting.absorb(batch);
    }
    assert_eq!(waiting.weight(), 1000 + 1);
    waiting.of(&name).forget(i64::MIN..999);
    assert_eq!(waiting.weight(), 1 + 2);
}

#[test]
fn errors_say_what_to_do() {
    let check = |error: OpenError, refusal: bool, parts: &[&str]| {
        assert_eq!(error.is_refusal(), refusal, "{error:?}");
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
    };
    let path = || PathBuf::from("/d/m.db");
    let io = StoreError::Full("so it is".to_string());
    check(
        OpenError::NotBuilt { path: path() },
        true,
        &["/d/m.db", "`sqlite`", ":memory:"],
    );
    let reason = "No such file".to_string();
    check(
        OpenError::Unreachable {
            path: path(),
            reason,
        },
        true,
        &["No such file", "--data"],
    );
    let by = Some(17);
    check(
        OpenError::InUse { path: path(), by },
        true,
        &["in use", "process 17", "--data"],
    );
    let what = "not an SQLite file";
    check(
        OpenError::Foreign { path: path(), what },
        true,
        &[what, "untouched", "--data"],
    );
    let (found, known) = (3, 1);
    check(
        OpenError::Newer {
            path: path(),
            found,
            known,
        },
        true,
        &["version 3", "untouched"],
    );
    let what = "page 7".to_string();
    let damaged = OpenError::Damaged { path: path(), what };
    check(
        damaged,
        false,
        &[
            "page 7",
            "untouched",
            ".recover",
            "application_id=1835758692",
        ],
    );
    check(
        OpenError::Io {
            path: path(),
            error: io,
        },
        false,
        &["the disk is full: so it is"],
    );
}
