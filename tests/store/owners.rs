//! Whose file it is: another marketd's, something else's, a later version's, or nobody's.

use super::bench::Bench;
use super::child::{Child, Task};
use super::world::{self, batch};
use crate::support::daemon::TempDir;
use marketd::decimal::Decimal;
use marketd::history::{
    APPLICATION_ID, Batch, LOG_SET_ASIDE, Reply, StoreError, Unusable, VERSION,
};
use marketd::interval::Stored;
use marketd::record::Candle;
use marketd::store::{HistoryReader, check, rename};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The path with a suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// The file is refused, and is as it was. `check` says so too, if its header or its name tell.
#[track_caller]
fn refused(path: &Path) -> Unusable {
    let content = || path.is_file().then(|| std::fs::read(path).expect("it may be read"));
    let (before, checked) = (content(), check(path));
    let error = Bench::try_open(path).err().expect("it is no file of ours");
    assert_eq!(content(), before, "it is untouched");
    for suffix in ["-wal", "-shm", "-marketd-new"] {
        assert!(!beside(path, suffix).exists(), "{suffix} is left behind");
    }
    let is_damaged = matches!(error.why, Unusable::Damaged(_));
    assert!(error.is_refusal() || is_damaged, "{error}");
    assert!(checked.as_ref().err() == Some(&error) || is_damaged, "{checked:?}");
    error.why
}

/// A file with a few batches, and what SQL makes of it.
fn altered(dir: &TempDir, sql: &str) -> PathBuf {
    let path = dir.history();
    let mut bench = Bench::open(&path);
    bench.put(batch(0));
    bench.stop();
    Bench::shell(&path).execute_batch(sql).expect("sql");
    path
}

#[test]
fn a_second_one_on_the_same_file_is_refused_and_told_who_has_it() {
    let dir = TempDir::new();
    let path = dir.history();
    let (from, to, all) = (0, u64::MAX, false);
    let task = Task { path: &path, from, to, all };
    let mut child = Child::start(task, |_| ());
    while child.next().as_deref() != Some("written 3") {}
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
    // One that runs gets the file as soon as it is free.
    let mut waiting = Bench::start(&path, Box::new(|| ())).expect("a thread");
    assert_eq!(waiting.load().2, Err(StoreError::NotOpen));
    bench.stop();
    world::check(&mut waiting, known..=known + 1);
}

#[test]
fn what_is_no_history_file_is_refused_and_left_alone() {
    let dir = TempDir::new();
    let of = |name: &str| dir.path().join(name);
    for text in ["Dear diary", &"today, ".repeat(10_000)] {
        std::fs::write(of("diary.txt"), text).expect("a directory of ours");
        assert!(matches!(refused(&of("diary.txt")), Unusable::Foreign(_)));
    }
    let made = Bench::shell(&of("mail.sqlite")).execute_batch("CREATE TABLE mail (text)");
    made.expect("sql");
    let made = std::process::Command::new("mkfifo").arg(of("pipe")).status();
    assert!(made.expect("mkfifo is there").success());
    assert_eq!(refused(&of("mail.sqlite")), Unusable::Foreign("an SQLite file of something else"));
    for path in [of("pipe"), dir.path().to_path_buf()] {
        assert_eq!(refused(&path), Unusable::Foreign("not a regular file"), "{path:?}");
    }
    // A link into a volume that is not mounted.
    std::os::unix::fs::symlink(of("volume.db"), of("link.db")).expect("a link");
    std::os::unix::fs::symlink(of("loop.db"), of("loop.db")).expect("a link");
    let deep = of(&"d".repeat(250)).join("e".repeat(250));
    std::fs::create_dir_all(&deep).expect("a directory of ours");
    let deep = deep.join("history.db");
    for path in [of("no/such/place.db"), of("diary.txt/in.db"), of("link.db"), of("loop.db"), deep]
    {
        assert!(matches!(refused(&path), Unusable::Unreachable(_)), "{path:?}");
    }
    let parent = Bench::try_open(&of("..")).err().expect("it is a directory");
    assert!(parent.is_refusal());
    for (sql, expected) in [
        ("PRAGMA application_id = 5", "Foreign("),
        ("PRAGMA user_version = 99", "Newer(99)"),
        ("PRAGMA user_version = 0", "Damaged(\"its header lacks the version"),
        ("DROP TABLE quote", "Damaged(\"its table or view quote is"),
        (
            "DROP VIEW candles; CREATE VIEW candles AS SELECT 1",
            "Damaged(\"its table or view candles is",
        ),
        (
            "ALTER TABLE candle RENAME COLUMN volume TO amount",
            "Damaged(\"its table or view candle is",
        ),
    ] {
        let why = refused(&altered(&TempDir::new(), sql));
        assert!(format!("{why:?}").starts_with(expected), "{sql}: {why:?}");
    }
}

#[test]
fn a_lock_is_taken_on_a_file_of_its_own_alone() {
    let dir = TempDir::new();
    let path = altered(&dir, "SELECT 1");
    let (lock, secret) = (beside(&path, "-lock"), dir.path().join("secret"));
    std::fs::write(&secret, "of somebody else").expect("a directory of ours");
    for is_symbolic in [true, false] {
        std::fs::remove_file(&lock).expect("it is there");
        let linked = match is_symbolic {
            true => std::os::unix::fs::symlink(&secret, &lock),
            false => std::fs::hard_link(&secret, &lock),
        };
        linked.expect("a link");
        let why = refused(&path);
        assert!(matches!(&why, Unusable::Unreachable(it) if it.contains("-lock: ")), "{why:?}");
        assert_eq!(rename(&path, "kraken", "new").err().map(|it| it.why), Some(why));
        assert_eq!(std::fs::read_to_string(&secret).expect("it is there"), "of somebody else");
    }
}

#[test]
fn a_file_with_two_names_is_only_read() {
    let dir = TempDir::new();
    let path = altered(&dir, "SELECT 1");
    std::fs::hard_link(&path, dir.path().join("other.db")).expect("a link");
    let why = refused(&path);
    assert!(matches!(&why, Unusable::Unreachable(it) if it.contains("hard link")), "{why:?}");
    assert_eq!(rename(&path, "kraken", "new").err().map(|it| it.why), Some(why));
    assert!(HistoryReader::open(&path).is_ok());
}

#[test]
fn a_file_is_left_alone_also_if_only_its_log_says_that_it_is_newer() {
    let (dir, path, _bench) = Bench::fresh();
    let sql = format!("PRAGMA user_version = {}", VERSION + 1);
    Bench::shell(&path).execute_batch(&sql).expect("sql");
    let copy = dir.path().join("copy.db");
    for suffix in ["", "-wal"] {
        std::fs::copy(beside(&path, suffix), beside(&copy, suffix)).expect("a copy");
    }
    let content = || ["", "-wal"].map(|suffix| std::fs::read(beside(&copy, suffix)).ok());
    let before = content();
    let error = Bench::try_open(&copy).err().expect("it is newer");
    assert_eq!(error.why, Unusable::Newer(VERSION + 1));
    assert_eq!(content(), before);
}

#[test]
fn what_a_person_adds_or_restores_from_a_copy_is_welcome() {
    let dir = TempDir::new();
    let path = altered(&dir, "CREATE INDEX mine ON candle (time); CREATE VIEW two AS SELECT 2");
    let mut bench = Bench::open(&path);
    bench.put(batch(1));
    world::check(&mut bench, 2..=2);
    let copy = dir.path().join("copy.db");
    let shell = Bench::shell(&path);
    let copied = shell.execute("VACUUM INTO ?1", [copy.to_str().expect("a text")]);
    copied.expect("a copy while it runs");
    let mut bench = Bench::open(&copy);
    world::check(&mut bench, 2..=2);
    bench.put(batch(2));
    bench.stop();
    let shell = Bench::shell(&copy);
    let number = |sql: &str| shell.query_row(sql, [], |row| row.get::<_, u32>(0));
    assert_eq!(number("PRAGMA application_id"), Ok(APPLICATION_ID));
    assert_eq!(number("PRAGMA user_version"), Ok(VERSION));
    let mode = shell.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
    assert_eq!(mode.as_deref(), Ok("wal"));
}

#[test]
fn an_empty_file_keeps_its_mode_and_a_log_without_a_file_is_set_aside() {
    for (is_empty, has_log) in [(true, false), (true, true), (false, true)] {
        let dir = TempDir::new();
        let path = dir.history();
        if is_empty {
            std::fs::write(&path, "").expect("a directory of ours");
            let owner_alone = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, owner_alone).expect("a file of ours");
        }
        for suffix in ["-wal", "-shm"].iter().filter(|_| has_log) {
            std::fs::write(beside(&path, suffix), [7; 5000]).expect("a directory of ours");
        }
        let mut bench = Bench::open(&path);
        assert!(bench.opened().created);
        assert_eq!(bench.opened().log_set_aside, has_log);
        let aside = std::fs::read(beside(&path, LOG_SET_ASIDE)).ok();
        assert_eq!(aside, has_log.then(|| vec![7; 5000]));
        bench.put(batch(0));
        world::check(&mut bench, 1..=1);
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert!(!is_empty || mode & 0o777 == 0o600);
    }
}

#[test]
fn a_file_that_loses_its_name_is_noticed_before_the_next_batch() {
    let (dir, path, mut bench) = Bench::fresh();
    bench.put(batch(0));
    let (moved, copy) = (dir.path().join("moved.db"), dir.path().join("copy.db"));
    for number in 1..7 {
        // From the fourth time on, the file is closed for another try when it loses its name.
        if number > 3 {
            let shell = Bench::shell(&path);
            shell.execute_batch("BEGIN IMMEDIATE").expect("sql");
            bench.write(batch(0)).expect_err("somebody is writing");
        }
        match number % 3 {
            1 => std::fs::remove_file(&path).expect("it is there"),
            2 => std::fs::rename(&path, &moved).expect("it is there"),
            _ => {
                let copied = Bench::shell(&path).execute("VACUUM INTO ?1", [copy.to_str()]);
                copied.expect("a copy");
                std::fs::rename(&copy, &path).expect("it is there");
            }
        }
        bench.put(batch(0));
        let failure = bench.failure().expect("it was said");
        assert!(failure.why == Unusable::Gone, "{failure}");
        world::check(&mut bench, 1..=1);
    }
    bench.stop();
    world::check(&mut Bench::open(&path), 1..=1);
}

#[test]
fn a_file_of_version_1_is_read_brought_up_to_date_and_taken_back_as_the_manual_says() {
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name);
    for name in ["old.db", "new.db"] {
        let made = Bench::shell(&file(name)).execute_batch(include_str!("version_1.sql"));
        made.expect("it was made by a release");
    }
    let stored = HistoryReader::open(&file("old.db")).and_then(|it| it.markets());
    let stored = stored.expect("it is sound");
    let stored: Vec<_> = stored.values().map(|it| (it.has_quote, it.has_rules)).collect();
    assert_eq!(stored, [(true, false)]);
    let number = |name: &str, sql: &str| {
        Bench::shell(&file(name)).query_row(sql, [], |row| row.get::<_, u32>(0)).expect("sql")
    };
    for upgraded_from in [Some(1), None] {
        let mut bench = Bench::open(&file("new.db"));
        assert_eq!((bench.opened().created, bench.opened().upgraded_from), (false, upgraded_from));
        let (heads, quotes, loaded) = bench.load();
        assert_eq!(loaded.map(|loaded| loaded.unsound), Ok(0));
        assert_eq!((heads.len(), heads[0].extent.count, quotes.len()), (1, 5, 1));
        let (candles, unsound) = bench.read_all(&heads[0].series).expect("a sound disk");
        assert_eq!((candles.len(), unsound.len()), (5, 0));
        bench.stop();
        assert_eq!(number("new.db", "PRAGMA user_version"), VERSION);
    }
    let page = include_str!("../../src/docs/backup.md");
    let (_, rest) = page.split_once("```sql\n").expect("the lines");
    let (lines, _) = rest.split_once("```").expect("their end");
    Bench::shell(&file("new.db")).execute_batch(lines).expect("sound SQL");
    let schema = |name: &str| -> Vec<String> {
        let shell = Bench::shell(&file(name));
        let sql = "SELECT name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1";
        let mut all = shell.prepare(sql).expect("sql");
        let all = all.query_map([], |row| row.get(0)).expect("sql");
        all.map(|text| text.expect("a text")).collect()
    };
    assert_eq!(schema("new.db"), schema("old.db"));
    for sql in ["SELECT count(*) FROM candle", "SELECT count(*) FROM quote", "PRAGMA user_version"]
    {
        assert_eq!(number("new.db", sql), number("old.db", sql), "{sql}");
        assert!(number("new.db", sql) > 0, "{sql}");
    }
    let mut again = Bench::open(&file("new.db"));
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
    bench.put(batch);
    let shell = Bench::shell(&path);
    let highest = "SELECT high_text FROM candles WHERE high = (SELECT max(high) FROM candles)";
    let highest = shell.query_row(highest, [], |row| row.get::<_, String>(0));
    assert_eq!(highest.as_deref(), Ok(highs[1]));
    let sum = shell.query_row("SELECT sum(volume) FROM candles", [], |row| row.get::<_, f64>(0));
    assert!(sum.is_ok_and(|sum| (sum - 0.3).abs() < 1e-9));
}

#[test]
fn a_check_of_a_good_path_changes_nothing() {
    let dir = TempDir::new();
    let names = || std::fs::read_dir(dir.path()).expect("a directory").count();
    let path = dir.history();
    assert_eq!((check(&path), names()), (Ok(()), 0));
    let _bench = Bench::open(&path);
    let before = names();
    assert_eq!((check(&path), names()), (Ok(()), before), "also while it is in use");
}

#[test]
fn what_keeps_it_closed_is_told_once_and_what_passes_opens_it() {
    let dir = TempDir::new();
    let path = dir.history();
    // The new file cannot be made, for now.
    let draft = beside(&path, "-marketd-new");
    std::fs::create_dir(&draft).expect("a directory of ours");
    let mut bench = Bench::start(&path, Box::new(|| ())).expect("a thread");
    for _ in 0..3 {
        assert_eq!(bench.load().2, Err(StoreError::NotOpen));
        let unwritten = Err((StoreError::NotOpen, Box::new(batch(0))));
        assert_eq!(bench.write(batch(0)), unwritten, "it comes back");
    }
    let failure = bench.failure().expect("it was said");
    assert!(failure.may_pass() && !failure.is_refusal(), "{failure}");
    assert_eq!(bench.failure(), None, "once");
    std::fs::remove_dir(&draft).expect("it is there");
    bench.put(batch(0));
    let opened = bench.wait(|answer| match answer {
        Reply::Opened(opened) => Ok(opened),
        other => Err(other),
    });
    assert!(opened.created);
    world::check(&mut bench, 1..=1);
}
