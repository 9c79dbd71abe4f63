//! Whose file it is: another marketd's, something else's, a later version's, or nobody's.

use super::bench::Bench;
use super::child::{Child, Said, Task};
use super::world::{self, batch};
use crate::support::daemon::TempDir;
use marketd::decimal::Decimal;
use marketd::history::{
    APPLICATION_ID, Batch, LOG_SET_ASIDE, OpenError, Reply, StoreError, Unusable, VERSION,
};
use marketd::interval::Stored;
use marketd::record::{Candle, Edge};
use marketd::store::HistoryReader;
use std::path::{Path, PathBuf};

/// The file is refused, and is as it was.
#[track_caller]
fn refused(path: &Path) -> OpenError {
    let before = std::fs::read(path).ok();
    let error = Bench::try_open(path).err().expect("it is no file of ours");
    assert_eq!(std::fs::read(path).ok(), before, "it is untouched");
    for suffix in ["-wal", "-shm", "-new"] {
        let name = format!("{}{suffix}", path.display());
        assert!(!Path::new(&name).exists(), "{name} is left behind");
    }
    assert!(error.is_refusal() || matches!(error.why, Unusable::Damaged(_)), "{error}");
    error
}

/// A file with a few batches, and what SQL makes of it.
fn altered(dir: &TempDir, sql: &str) -> PathBuf {
    let path = dir.path().join("history.db");
    let mut bench = Bench::open(&path);
    bench.write(0, batch(0)).expect("a sound disk");
    bench.stop();
    let shell = Bench::shell(&path);
    shell.execute_batch(sql).expect("sql");
    path
}

#[test]
fn a_second_one_on_the_same_file_is_refused_and_told_who_has_it() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let (from, to, all) = (0, u64::MAX, false);
    let task = Task { path: &path, from, to, all };
    let mut child = Child::start(task, |_| ());
    while child.next() != Some(Said::Written(3)) {}
    let other = dir.path().join("other.db");
    std::os::unix::fs::symlink(&path, &other).expect("a link");
    for name in [&path, &other] {
        let error = Bench::try_open(name).err().expect("it is in use");
        assert_eq!(error.path.canonicalize().ok(), path.canonicalize().ok());
        assert_eq!(error.why, Unusable::InUse(Some(child.id())));
        assert!(error.is_refusal());
    }
    // A process that is gone has no lock, however it went.
    let known = super::child::written(4, &child.kill());
    let mut bench = Bench::open(&other);
    world::check(&mut bench, known..=known + 1);
    let error = Bench::try_open(&path).err().expect("it is in use");
    let by = Some(std::process::id());
    assert_eq!(error.why, Unusable::InUse(by));
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let dir = TempDir::new();
    let path = dir.path().join("diary.txt");
    for text in ["Dear diary", &"today, ".repeat(10_000)] {
        std::fs::write(&path, text).expect("a directory of ours");
        assert!(matches!(refused(&path).why, Unusable::Foreign(_)));
    }
    let path = dir.path().join("mail.sqlite");
    let mail = Bench::shell(&path);
    mail.execute_batch("CREATE TABLE mail (text)").expect("sql");
    drop(mail);
    assert!(matches!(refused(&path).why, Unusable::Foreign(_)));
    let error = refused(&altered(&dir, "PRAGMA application_id = 5"));
    assert!(matches!(error.why, Unusable::Foreign(_)), "{error}");
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let dir = TempDir::new();
    let path = altered(&dir, &format!("PRAGMA user_version = {}", VERSION + 1));
    let error = refused(&path);
    let later = VERSION + 1;
    assert_eq!(error.why, Unusable::Newer(later));
    // Also when only its log says so.
    let (dir, path, bench) = Bench::fresh();
    let shell = Bench::shell(&path);
    shell.execute_batch(&format!("PRAGMA user_version = {later}")).expect("sql");
    let copy = dir.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", path.display());
        let to = format!("{}{suffix}", copy.display());
        std::fs::copy(from, to).expect("a copy");
    }
    let log = dir.path().join("copy.db-wal");
    let before = (std::fs::read(&copy).ok(), std::fs::read(&log).ok());
    let error = Bench::try_open(&copy).err().expect("it is newer");
    assert!(matches!(error.why, Unusable::Newer(_)), "{error}");
    assert_eq!((std::fs::read(&copy).ok(), std::fs::read(&log).ok()), before);
    drop(bench);
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
        assert!(matches!(error.why, Unusable::Damaged(_)), "{sql}: {error}");
    }
}

#[test]
fn what_a_person_adds_or_restores_from_a_copy_is_welcome() {
    let dir = TempDir::new();
    let path = altered(&dir, "CREATE INDEX mine ON candle (time); CREATE VIEW two AS SELECT 2");
    let mut bench = Bench::open(&path);
    bench.write(1, batch(1)).expect("a sound disk");
    world::check(&mut bench, 2..=2);
    let copy = dir.path().join("copy.db");
    let shell = Bench::shell(&path);
    let copied = shell.execute("VACUUM INTO ?1", [copy.to_str().expect("a text")]);
    copied.expect("a copy while it runs");
    let mut bench = Bench::open(&copy);
    world::check(&mut bench, 2..=2);
    bench.write(2, batch(2)).expect("a sound disk");
    bench.stop();
    let shell = Bench::shell(&copy);
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
    for path in [dir.path().join("no/such/place.db"), file.join("in.db"), dir.path().join("..")] {
        let error = Bench::try_open(&path).err().expect("there is nothing to open");
        assert!(error.is_refusal(), "{}: {error}", path.display());
    }
    let error = Bench::try_open(dir.path()).err().expect("it is a directory");
    assert!(matches!(error.why, Unusable::Foreign(_)), "{error}");
}

#[test]
fn an_empty_file_is_a_new_history_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    std::fs::write(&path, "").expect("a directory of ours");
    let owner_alone = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, owner_alone).expect("a file of ours");
    let mut bench = Bench::open(&path);
    assert!(bench.opened().created);
    bench.write(0, batch(0)).expect("a sound disk");
    world::check(&mut bench, 1..=1);
    let mode = std::fs::metadata(&path).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn a_log_without_its_file_is_set_aside_and_a_new_history_begun() {
    for empty in [false, true] {
        let dir = TempDir::new();
        let path = dir.path().join("history.db");
        let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
        if empty {
            std::fs::write(&path, "").expect("a directory of ours");
        }
        std::fs::write(beside("-wal"), [7; 5000]).expect("a directory of ours");
        std::fs::write(beside("-shm"), [7; 5000]).expect("a directory of ours");
        let mut bench = Bench::open(&path);
        assert!(bench.opened().created && bench.opened().log_set_aside);
        assert_eq!(std::fs::read(beside(LOG_SET_ASIDE)).ok(), Some(vec![7; 5000]));
        bench.write(0, batch(0)).expect("a sound disk");
        world::check(&mut bench, 1..=1);
        bench.stop();
    }
}

#[test]
fn a_file_that_loses_its_name_is_noticed_before_the_next_batch() {
    let (dir, path, mut bench) = Bench::fresh();
    bench.write(0, batch(0)).expect("a sound disk");
    for number in 1..3 {
        match number {
            1 => std::fs::remove_file(&path).expect("it is there"),
            _ => std::fs::rename(&path, dir.path().join("moved.db")).expect("it is there"),
        }
        bench.write(number, batch(0)).expect("a new file");
        let failure = bench.failure().expect("it was said");
        assert!(failure.why == Unusable::Gone, "{failure}");
        world::check(&mut bench, 1..=1);
    }
    bench.stop();
    world::check(&mut Bench::open(&path), 1..=1);
}

#[test]
fn a_pipe_is_refused_at_once() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is there").success());
    let error = Bench::try_open(&path).err().expect("it is a pipe");
    assert!(matches!(error.why, Unusable::Foreign(_)), "{error}");
    let checked = marketd::store::check(&path);
    assert!(
        matches!(&checked, Err(error) if matches!(error.why, Unusable::Foreign(_))),
        "{checked:?}"
    );
}

#[test]
fn a_file_of_version_1_is_read_and_brought_up_to_date() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    let shell = Bench::shell(&path);
    let made = shell.execute_batch(include_str!("version_1.sql"));
    made.expect("it was made by a release");
    drop(shell);
    let stored = HistoryReader::open(&path).and_then(|it| it.markets()).expect("it is sound");
    let stored: Vec<_> = stored.values().map(|it| (it.has_quote, it.has_rules)).collect();
    assert_eq!(stored, [(true, false)]);
    for _ in 0..2 {
        let mut bench = Bench::open(&path);
        assert!(!bench.opened().created);
        let (heads, quotes, loaded) = bench.load();
        assert_eq!(loaded.map(|loaded| loaded.unsound), Ok(0));
        assert_eq!((heads.len(), heads[0].extent.count, quotes.len()), (1, 5, 1));
        let rows = bench.read(&heads[0].series, i64::MIN..i64::MAX, 10, Edge::Oldest);
        let rows = rows.expect("a sound disk");
        assert_eq!((rows.candles.len(), rows.unsound.len()), (5, 0));
        bench.stop();
    }
    let shell = Bench::shell(&path);
    let version = shell.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0));
    assert_eq!(version, Ok(VERSION));
}

#[test]
fn a_file_is_taken_back_to_version_1_as_the_manual_says() {
    let dir = TempDir::new();
    let open = |name: &str| rusqlite::Connection::open(dir.path().join(name)).expect("it is ours");
    let old = open("old.db");
    old.execute_batch(include_str!("version_1.sql")).expect("it was made by a release");
    open("new.db").execute_batch(include_str!("version_1.sql")).expect("the same");
    let upgraded = Bench::open(&dir.path().join("new.db"));
    assert_eq!(upgraded.opened().upgraded_from, Some(1));
    upgraded.stop();
    let page = include_str!("../../src/docs/backup.md");
    let (_, rest) = page.split_once("```sql\n").expect("the lines");
    let (lines, _) = rest.split_once("```").expect("their end");
    let new = open("new.db");
    new.execute_batch(lines).expect("sound SQL");
    let schema = |shell: &rusqlite::Connection| -> Vec<String> {
        let sql = "SELECT name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1";
        let mut all = shell.prepare(sql).expect("sql");
        let all = all.query_map([], |row| row.get(0)).expect("sql");
        all.map(|text| text.expect("a text")).collect()
    };
    assert_eq!(schema(&new), schema(&old));
    for sql in ["SELECT count(*) FROM candle", "SELECT count(*) FROM quote", "PRAGMA user_version"]
    {
        let number =
            |shell: &rusqlite::Connection| shell.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(number(&new), number(&old), "{sql}");
        assert!(number(&new).is_ok_and(|number| number > 0), "{sql}");
    }
    drop((new, old));
    let mut again = Bench::open(&dir.path().join("new.db"));
    assert_eq!((again.load().0.len(), again.opened().upgraded_from), (1, Some(1)));
}

#[test]
fn prices_of_the_view_are_compared_as_numbers_and_have_their_exact_text_beside_them() {
    let (_dir, path, mut bench) = Bench::fresh();
    let mut batch = Batch::default();
    let price = |text: &str| Decimal::parse(text.as_bytes()).expect("a price");
    let candle = |slot: i64, high: &str| Candle {
        open_time: Stored::M1.open_of(slot),
        open: price("9.5"),
        high: price(high),
        low: price("9.5"),
        close: price("9.5"),
        volume: price("0.10"),
    };
    let highs = ["9.9", "10.000000000000000001", "9.95"];
    let candles = (0..).zip(highs).map(|(slot, high)| (slot, Some(candle(slot, high))));
    batch.of(&world::name(0)).answered(0..3, candles);
    bench.write(0, batch).expect("a sound disk");
    let shell = Bench::shell(&path);
    let highest = "SELECT high_text FROM candles WHERE high = (SELECT max(high) FROM candles)";
    let highest = shell.query_row(highest, [], |row| row.get::<_, String>(0));
    assert_eq!(highest.as_deref(), Ok(highs[1]));
    let sum = shell.query_row("SELECT sum(volume) FROM candles", [], |row| row.get::<_, f64>(0));
    assert!(sum.is_ok_and(|sum| (sum - 0.3).abs() < 1e-9));
}

#[test]
fn a_check_says_what_is_wrong_and_changes_nothing() {
    use marketd::store::check;
    let dir = TempDir::new();
    let names = || std::fs::read_dir(dir.path()).expect("a directory").count();
    let path = dir.path().join("history.db");
    assert_eq!(check(&path), Ok(()));
    assert_eq!(names(), 0);
    let mut bench = Bench::open(&path);
    bench.write(0, batch(0)).expect("a sound disk");
    let before = names();
    assert_eq!(check(&path), Ok(()), "also while it is in use");
    assert_eq!(names(), before);
    let nowhere = check(&dir.path().join("no/such/history.db"));
    assert!(
        matches!(&nowhere, Err(error) if matches!(error.why, Unusable::Unreachable(_))),
        "{nowhere:?}"
    );
    let foreign = dir.path().join("diary.txt");
    std::fs::write(&foreign, "Dear diary").expect("a directory of ours");
    assert!(check(&foreign).is_err_and(|error| matches!(error.why, Unusable::Foreign(_))));
}

#[test]
fn what_keeps_it_closed_is_told_once_and_what_passes_opens_it() {
    let dir = TempDir::new();
    let path = dir.path().join("history.db");
    // A link to itself: no answer about the file, for now.
    std::os::unix::fs::symlink(&path, &path).expect("a link");
    let mut bench = Bench::start(&path, Box::new(|| ())).expect("a thread");
    for _ in 0..3 {
        assert_eq!(bench.load().2, Err(StoreError::NotOpen));
        let unwritten = bench.write(1, batch(0)).expect_err("it is not open");
        assert_eq!(unwritten.error, StoreError::NotOpen);
        assert_eq!(*unwritten.batch, batch(0), "it comes back");
    }
    let failure = bench.failure().expect("it was said");
    assert!(failure.may_pass() && !failure.is_refusal(), "{failure}");
    assert_eq!(bench.failure(), None, "once");
    std::fs::remove_file(&path).expect("it is there");
    bench.write(1, batch(0)).expect("a sound disk");
    let opened = bench.wait(|answer| match answer {
        Reply::Opened(opened) => Ok(opened),
        other => Err(other),
    });
    assert!(opened.created);
    world::check(&mut bench, 1..=1);
}
