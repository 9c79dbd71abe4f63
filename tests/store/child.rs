//! This very program as a process of its own: it writes batch after batch and says on standard
//! output what was acknowledged, until it is done, is killed, or is told to stop.
//!
//! What it says goes through a pipe at once, so that it has been said even when the process dies
//! in the next moment.

use super::bench::Bench;
use super::world::{SERIES, START, batch, name};
use crate::support::{PATIENCE, eventually};
use marketd::history::StoreError;
use marketd::record::Edge;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};

/// Names the variable that makes the test below do its work.
const TASK: &str = "MARKETD_STORE_CHILD";

/// How often a batch is tried again, before the child gives up.
const TRIES: usize = 3;

/// Marks what the child says among what the test runner says.
const MARK: &str = "@ ";

/// What a child is to do.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub path: &'a Path,
    /// The first batch to write, and the one before which to stop.
    pub from: u64,
    pub to: u64,
    /// Read, evict, load and move the log between the batches, too.
    pub all: bool,
}

/// A running child.
pub struct Child {
    process: Process,
    said: BufReader<std::process::ChildStdout>,
}

impl Child {
    /// Starts one.
    pub fn start(task: Task<'_>, change: impl FnOnce(&mut Command)) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
        let Task { path, from, to, all } = task;
        let path = path.to_str().expect("a path of the tests is a text");
        command
            .args([
                "--exact",
                "store::child::child",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(TASK, format!("{path}\n{from}\n{to}\n{all}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        change(&mut command);
        let mut process = command.spawn().expect("a process can be started");
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        Child { process, said }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next thing it says ([`work`]); `None` when it says nothing more.
    pub fn next(&mut self) -> Option<String> {
        loop {
            let mut line = Vec::new();
            if self.said.read_until(b'\n', &mut line).expect("a pipe") == 0 {
                return None;
            }
            let line = String::from_utf8(line).expect("it speaks UTF-8");
            if !line.ends_with('\n') {
                return None;
            }
            if let Some((_, text)) = line.trim_end().split_once(MARK) {
                return Some(text.to_string());
            }
        }
    }

    /// Kills it, as `kill -9` does; answers what it had said and nobody had heard yet.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("it is ours");
        self.end().0
    }

    /// Waits for its end: what it said until then.
    pub fn end(mut self) -> (Vec<String>, ExitStatus) {
        let mut rest = Vec::new();
        while let Some(said) = self.next() {
            rest.push(said);
        }
        let status = eventually(PATIENCE, || self.process.try_wait().expect("it is ours"));
        (rest, status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A test has failed; otherwise it has ended, and there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The number of batches that are known to be on disk, after `from` of an earlier child.
pub fn written(from: u64, said: &[String]) -> u64 {
    let last = said.iter().rev().find_map(|said| said.strip_prefix("written "));
    last.map_or(from, |number| number.parse::<u64>().expect("a number") + 1)
}

#[test]
#[ignore = "the child process of other tests"]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let mut lines = task.lines();
    let mut next = || lines.next().expect("four lines");
    let path = Path::new(next());
    let (from, to) = (next().parse().expect("a number"), next().parse().expect("a number"));
    let all = next() == "true";
    work(Task { path, from, to, all });
}

fn say(text: &str) {
    let line = format!("{MARK}{text}\n");
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: then nobody will look at what is on disk either.
    let said = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    said.unwrap_or(());
}

/// Says whether the file is `opened` or `refused`, of each batch that it is `written` or has `failed`, what else
/// gave `trouble`, and that it has `stopped`.
fn work(task: Task<'_>) {
    let mut bench = match Bench::try_open(task.path) {
        Ok(bench) => bench,
        Err(error) if !error.may_pass() => return say(&format!("refused {error:?}")),
        // The thread is there and will try again.
        Err(_) => Bench::start(task.path, Box::new(|| ())).expect("a thread"),
    };
    say("opened");
    for number in task.from..task.to {
        let mut waiting = Box::new(batch(number));
        let mut tries = 0;
        loop {
            match bench.write(*waiting) {
                Ok(_) => {
                    say(&format!("written {number}"));
                    break;
                }
                Err((error, back)) => {
                    say(&format!("failed {error:?}"));
                    assert_eq!(*back, batch(number), "it comes back whole");
                    waiting = back;
                }
            }
            tries += 1;
            if tries == TRIES {
                break;
            }
        }
        if tries == TRIES {
            break;
        }
        if task.all {
            other_jobs(&mut bench, number);
        }
    }
    match bench.stopped() {
        Ok(()) => say("stopped"),
        Err(error) => say(&format!("trouble {error:?}")),
    }
}

/// Everything else that a store can do, between two batches.
fn other_jobs(bench: &mut Bench, number: u64) {
    let tell = |error: StoreError| say(&format!("trouble {error:?}"));
    let slots = START[0] + number as i64 * 8..i64::MAX;
    if let Err(error) = bench.page(&name(0), slots, 4, Edge::Newest) {
        tell(error);
    }
    if let Err(error) = bench.load().2 {
        tell(error);
    }
    let series = number as usize % SERIES.len();
    let before = START[series] + number as i64 * 4;
    if let Err(error) = bench.evict(&name(series), before) {
        tell(error);
    }
}
