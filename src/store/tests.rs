//! A build without SQLite.

use super::*;

#[test]
fn without_sqlite_there_is_no_store() {
    let started = Store::start(PathBuf::from("m.db"), Box::new(|| ()));
    assert!(started.is_err_and(|error| error.why == Unusable::NotBuilt));
}
