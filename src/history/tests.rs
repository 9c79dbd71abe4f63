//! Compares batches with a model, and checks the texts of the errors.

use super::testing::{Model, candle, random_changes, series};
use super::*;
use crate::interval::Stored;
use crate::rng::Rng;
use std::path::Path;

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
    let check = |why: Unusable, refusal: bool, parts: &[&str]| {
        let error = why.at(Path::new("/d/m.db"));
        assert_eq!(error.is_refusal(), refusal, "{error:?}");
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
    };
    let io = StoreError::Full("so it is".to_string());
    let reason = "No such file".to_string();
    check(Unusable::Unreachable(reason), true, &["No such file", "--data"]);
    check(Unusable::InUse(Some(17)), true, &["in use", "process 17", "--data"]);
    let what = "not an SQLite file";
    check(Unusable::Foreign(what), true, &[what, "untouched", "--data"]);
    check(Unusable::Newer(3), true, &["version 3", "untouched"]);
    check(
        Unusable::Damaged("page 7".to_string()),
        false,
        &["page 7", "untouched", ".recover", "application_id=1835758692"],
    );
    check(Unusable::Io(io), false, &["the disk is full: so it is"]);
}
