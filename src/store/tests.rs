//! A build without SQLite.

use super::*;

#[test]
fn without_sqlite_there_is_no_store() {
    let started = Store::start(PathBuf::from("m.db"), Box::new(|| ()));
    assert!(matches!(started, Err(OpenError::NotBuilt { .. })));
}
