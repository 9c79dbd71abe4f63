//! Every call to the kernel fails once, or is the last one.
//!
//! SQLite would let us put a file system of our own under it, but only by unsafe code. So the layer
//! is put lower: `faults.c`, loaded into a child process between it and the C library, where it
//! sees what SQLite does and what we do beside it, and nothing of either has to know.

use super::bench::Bench;
use super::child::{Child, Task, written};
use super::support::chance::Note;
use super::support::daemon::TempDir;
use super::support::skipped;
use super::world;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

/// Batches of a run.
const BATCHES: u64 = 2;

/// The layer, compiled. `None`, and said so: there is no C compiler, and what needs the layer is
/// not tried.
pub fn layer() -> Option<&'static Path> {
    static LAYER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let layer = LAYER.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let draft = place.join(format!("faults-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/faults.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
        let status = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&draft, &source])
            .arg("-ldl")
            .status();
        let status = match status {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            status => status.unwrap_or_else(|error| panic!("{compiler}: {error}")),
        };
        assert!(status.success(), "{compiler} cannot compile faults.c");
        let layer = place.join("faults.so");
        std::fs::rename(draft, &layer).expect("a directory of ours");
        Some(layer)
    });
    if layer.is_none() {
        skipped("no C compiler (set CC to one): no fault is injected into the disk");
    }
    layer.as_deref()
}

/// A copy of all that is in a directory.
fn copy(dir: &TempDir) -> TempDir {
    let copy = TempDir::in_memory();
    for entry in std::fs::read_dir(dir.path()).expect("a directory") {
        let entry = entry.expect("an entry");
        // What is shared between processes is made anew by the first one.
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
        }
    }
    copy
}

/// What one run came to.
struct Run {
    said: Vec<String>,
    status: ExitStatus,
}

/// Where a run begins: with a file and a log, as a kill leaves them, or with no file at all.
struct Begin(Option<TempDir>);

impl Begin {
    fn killed() -> Begin {
        let dir = TempDir::in_memory();
        let mut bench = Bench::open(&dir.history());
        bench.write_all(0..BATCHES);
        // As long as it is open, its log is there to be copied.
        let copy = copy(&dir);
        assert!(std::fs::metadata(copy.path().join("history.db-wal")).expect("a log").len() > 0);
        Begin(Some(copy))
    }

    fn dir(&self) -> TempDir {
        self.0.as_ref().map_or_else(TempDir::in_memory, copy)
    }

    /// Batches that are there.
    fn batches(&self) -> u64 {
        if self.0.is_some() { BATCHES } else { 0 }
    }

    /// Runs a child under the layer.
    fn run(&self, layer: &Path, dir: &TempDir, settings: &[(&str, &str)]) -> Run {
        let path = dir.history();
        let from = self.batches();
        let task = Task { path: &path, from, to: from + BATCHES, all: true };
        let child = Child::start(task, |command| {
            command
                .env("LD_PRELOAD", layer)
                .env("FAULTS_PATH", &path)
                .envs(settings.iter().copied());
        });
        let (said, status) = child.end();
        Run { said, status }
    }

    /// How many calls an undisturbed run makes.
    fn calls(&self, layer: &Path, settings: &[(&str, &str)]) -> u64 {
        let dir = self.dir();
        let count = dir.path().join("calls");
        let mut settings = settings.to_vec();
        settings.push(("FAULTS_COUNT", count.to_str().expect("a text")));
        let run = self.run(layer, &dir, &settings);
        assert!(run.status.success(), "{:?}", run.said);
        assert_eq!(run.said.last().map(String::as_str), Some("stopped"));
        let count = std::fs::read_to_string(count).expect("it was written");
        count.trim().parse().expect("a number")
    }
}

/// Lets call after call go wrong, and looks at what each run said and left behind.
fn each_call(begin: &Begin, settings: &[(&str, &str)], check: impl Fn(u64, &Run)) {
    let Some(layer) = layer() else { return };
    let calls = begin.calls(layer, settings);
    assert!(calls > 20, "the layer sees {calls} calls alone");
    for call in 1..=calls {
        let note = Note(format!("call {call} with {settings:?}"));
        let dir = begin.dir();
        let at = call.to_string();
        let mut settings = settings.to_vec();
        settings.push(("FAULTS_AT", &at));
        let run = begin.run(layer, &dir, &settings);
        check(call, &run);
        let known = written(begin.batches(), &run.said);
        let mut bench = Bench::open(&dir.history());
        world::check(&mut bench, known..=known + 1);
        drop(note);
    }
    eprintln!("{calls} calls, {settings:?}");
}

fn fails_once(begin: &Begin, kind: &str) {
    each_call(begin, &[("FAULTS_KIND", kind)], |call, run| {
        assert!(run.status.success(), "call {call}: {:?}", run.said);
        // It passes, so in the end everything is written.
        let all = written(0, &run.said);
        assert_eq!(all, begin.batches() + BATCHES, "call {call}: {:?}", run.said);
    });
}

#[test]
fn a_call_that_fails_once_costs_a_second_try() {
    fails_once(&Begin(None), "io");
    fails_once(&Begin::killed(), "io");
}

#[test]
fn a_disk_that_is_full_for_a_moment_costs_a_second_try() {
    fails_once(&Begin(None), "full");
    fails_once(&Begin::killed(), "full");
}

#[test]
fn a_disk_that_stays_broken_costs_nothing_that_was_acknowledged() {
    for begin in [Begin(None), Begin::killed()] {
        for kind in ["io", "full"] {
            each_call(&begin, &[("FAULTS_KIND", kind), ("FAULTS_STICKY", "1")], |call, run| {
                assert!(run.status.success(), "call {call}: {:?}", run.said);
            });
        }
    }
}

#[test]
fn a_death_at_any_call_costs_nothing_that_was_acknowledged() {
    for begin in [Begin(None), Begin::killed()] {
        for kind in ["kill", "tear"] {
            each_call(&begin, &[("FAULTS_KIND", kind)], |call, run| {
                assert!(!run.status.success(), "call {call}: {:?}", run.said);
            });
        }
    }
}
