//! Whose file it is: another marketd's, something else's, a later version's, or nobody's.

use super::child::{Child, Said, Task};
use super::desk::Desk;
use super::support::daemon::TempDir;
use super::world::{self, batch};
use marketd::history::{APPLICATION_ID, Answer, OpenError, StoreError, VERSION};
use std::path::{Path, PathBuf};

/// The file is refused, and is as it was.
#[track_caller]
fn refused(path: &Path) -> OpenError {
    let before = std::fs::read(path).ok();
    let error = Desk::try_open(path).err().expect("it is no file of ours");
    assert_eq!(std::fs::read(path).ok(), before, "it is untouched");
    for suffix in ["-wal", "-shm", "-new"] {
        let name = format!("{}{suffix}", path.display());
        assert!(!Path::new(&name).exists(), "{name} is left behind");
    }
    assert!(
        error.is_refusal() || matches!(error, OpenError::Damaged { .. }),
        "{error}"
    );
    error
}

/// A file with a few batches, and what SQL makes of it.
fn altered(dir: &TempDir, sql: &str) -> PathBuf {
    let path = dir.path().join("history.db");
    let mut desk = Desk::open(&path);
    desk.write(0, batch(0)).expect("a sound disk");
    desk.stop();
    let shell = rusqlite::Connection::open(&path).expect("it is SQLite's");
    shell.execute_batch(sql).expect("sql");
    path
}

#[test]
fn a_second_one_on_the_same_file_is_refused_and_told_who_has_it() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let (from, to, all) = (0, u64::MAX, false);
    let task = Task {
        path: &path,
        from,
        to,
        all,
    };
    let mut child = Child::start(task, |_| ());
    while child.next() != Some(Said::Written(3)) {}
    let other = dir.path().join("other.db");
    std::os::unix::fs::symlink(&path, &other).expect("a link");
    for name in [&path, &other] {
        let error = Desk::try_open(name).err().expect("it is in use");
        let OpenError::InUse { path: named, by } = &error else {
            panic!("{error}");
        };
        assert_eq!(named.canonicalize().ok(), path.canonicalize().ok());
        assert_eq!(*by, Some(child.id()));
        assert!(error.is_refusal());
    }
    // A process that is gone has no lock, however it went.
    let known = super::child::written(4, &child.kill());
    let mut desk = Desk::open(&other);
    world::check(&mut desk, known..=known + 1);
    let error = Desk::try_open(&path).err().expect("it is in use");
    let by = Some(std::process::id());
    assert!(
        matches!(error, OpenError::InUse { by: found, .. } if found == by),
        "{error}"
    );
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let dir = TempDir::new();
    let path = dir.path().join("diary.txt");
    for text in ["Dear diary", &"today, ".repeat(10_000)] {
        std::fs::write(&path, text).expect("a directory of ours");
        assert!(matches!(refused(&path), OpenError::Foreign { .. }));
    }
    let path = dir.path().join("mail.sqlite");
    let mail = rusqlite::Connection::open(&path).expect("a directory of ours");
    mail.execute_batch("CREATE TABLE mail (text)").expect("sql");
    drop(mail);
    assert!(matches!(refused(&path), OpenError::Foreign { .. }));
    let error = refused(&altered(&dir, "PRAGMA application_id = 5"));
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let dir = TempDir::new();
    let path = altered(&dir, &format!("PRAGMA user_version = {}", VERSION + 1));
    let error = refused(&path);
    let (later, ours) = (VERSION + 1, VERSION);
    assert!(
        matches!(error, OpenError::Newer { found, known, .. } if (found, known) == (later, ours)),
        "{error}"
    );
    // Also when only its log says so.
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let desk = Desk::open(&path);
    let shell = rusqlite::Connection::open(&path).expect("anybody may write, alas");
    shell
        .execute_batch(&format!("PRAGMA user_version = {later}"))
        .expect("sql");
    let copy = dir.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", path.display());
        let to = format!("{}{suffix}", copy.display());
        std::fs::copy(from, to).expect("a copy");
    }
    let log = dir.path().join("copy.db-wal");
    let before = (std::fs::read(&copy).ok(), std::fs::read(&log).ok());
    let error = Desk::try_open(&copy).err().expect("it is newer");
    assert!(matches!(error, OpenError::Newer { .. }), "{error}");
    assert_eq!(
        (std::fs::read(&copy).ok(), std::fs::read(&log).ok()),
        before
    );
    drop(desk);
}

#[test]
fn a_file_whose_tables_are_not_as_they_were_made_is_left_alone() {
    for sql in [
        "DROP TABLE quote",
        "DROP VIEW candles; CREATE VIEW candles AS SELECT 1",
        "ALTER TABLE candle RENAME COLUMN volume TO amount",
        "PRAGMA user_version = 0",
    ] {
        let dir = TempDir::new();
        let error = refused(&altered(&dir, sql));
        assert!(matches!(error, OpenError::Damaged { .. }), "{sql}: {error}");
    }
}

#[test]
fn what_a_person_adds_or_restores_from_a_copy_is_welcome() {
    let dir = TempDir::new();
    let path = altered(
        &dir,
        "CREATE INDEX mine ON candle (time); CREATE VIEW two AS SELECT 2",
    );
    let mut desk = Desk::open(&path);
    desk.write(1, batch(1)).expect("a sound disk");
    world::check(&mut desk, 2..=2);
    let copy = dir.path().join("copy.db");
    let shell = rusqlite::Connection::open(&path).expect("anybody may read");
    let copied = shell.execute("VACUUM INTO ?1", [copy.to_str().expect("a text")]);
    copied.expect("a copy while it runs");
    let mut desk = Desk::open(&copy);
    world::check(&mut desk, 2..=2);
    desk.write(2, batch(2)).expect("a sound disk");
    desk.stop();
    let shell = rusqlite::Connection::open(&copy).expect("anybody may read");
    let number = |sql: &str| shell.query_row(sql, [], |row| row.get::<_, u32>(0));
    assert_eq!(number("PRAGMA application_id"), Ok(APPLICATION_ID));
    assert_eq!(number("PRAGMA user_version"), Ok(VERSION));
    let mode = shell.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
    assert_eq!(mode.as_deref(), Ok("wal"));
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let dir = TempDir::new();
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a directory of ours");
    for path in [
        dir.path().join("no/such/place.db"),
        file.join("in.db"),
        dir.path().join(".."),
    ] {
        let error = Desk::try_open(&path)
            .err()
            .expect("there is nothing to open");
        assert!(error.is_refusal(), "{}: {error}", path.display());
    }
    let error = Desk::try_open(dir.path()).err().expect("it is a directory");
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[test]
fn an_empty_file_and_a_log_without_its_file_are_no_new_history() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    std::fs::write(&path, "").expect("a directory of ours");
    assert!(matches!(refused(&path), OpenError::Damaged { .. }));
    std::fs::remove_file(&path).expect("it is there");
    let log = dir.path().join("history.db-wal");
    std::fs::write(&log, [7; 5000]).expect("a directory of ours");
    let error = Desk::try_open(&path).err().expect("half of it is gone");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read(&log).ok(), Some(vec![7; 5000]));
    assert!(!path.exists());
}

#[test]
fn what_keeps_it_closed_is_told_once_and_what_passes_opens_it() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    // A link to itself: no answer about the file, for now.
    std::os::unix::fs::symlink(&path, &path).expect("a link");
    let mut desk = Desk::start(&path, Box::new(|| ())).expect("a thread");
    for _ in 0..3 {
        assert_eq!(desk.load().2, Err(StoreError::NotOpen));
        let unwritten = desk.write(1, batch(0)).expect_err("it is not open");
        assert_eq!(unwritten.error, StoreError::NotOpen);
        assert_eq!(*unwritten.batch, batch(0), "it comes back");
    }
    let failure = desk.failure().expect("it was said");
    assert!(failure.may_pass() && !failure.is_refusal(), "{failure}");
    assert_eq!(desk.failure(), None, "once");
    std::fs::remove_file(&path).expect("it is there");
    desk.write(1, batch(0)).expect("a sound disk");
    let opened = desk.wait(|answer| match answer {
        Answer::Opened(opened) => Ok(opened),
        other => Err(other),
    });
    assert!(opened.created);
    world::check(&mut desk, 1..=1);
}
