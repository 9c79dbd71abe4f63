//! The real marketd as a process: the built binary, in a fresh directory, on a free port.
//!
//! It is killed when the test lets go of it, and its log is printed when the test failed.

use super::exchange::locked;
use super::{Json, LONG, PATIENCE, Response, get, poll_until};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::time::Duration;

/// Begin of the log line that names the address.
const LISTENING: &str = "listening on http://";

/// The same for the ecosystem's own listener.
const ECOSYSTEM_LISTENING: &str = "ecosystem listening on http://";

/// What is to be started, and how.
pub struct Launch {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    listen: bool,
    dir: Arc<TempDir>,
}

/// A running daemon that listens.
pub struct Marketd {
    process: Process,
    addr: SocketAddr,
    dir: Arc<TempDir>,
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error: the log.
    pub stderr: String,
}

impl Finished {
    /// Exit code, standard output, standard error. Panics if a signal ended it.
    pub fn parts(self) -> (i32, String, String) {
        (self.code.expect("it ends by itself"), self.stdout, self.stderr)
    }
}

/// What the name of a temporary directory begins with, before the id of its process.
const TEMPORARY: &str = "marketd-test-";

/// A directory that is removed with its content when the last one lets go of it.
#[derive(Debug)]
pub struct TempDir(PathBuf);

struct Process {
    child: Child,
    stdout: Output,
    stderr: Output,
    ended: Option<ExitStatus>,
}

/// What a process wrote, read by a thread as it comes.
struct Output {
    lines: Arc<Mutex<Vec<String>>>,
    /// True while nothing is read, so that the pipe fills; and what wakes the reader.
    rests: Arc<(Mutex<bool>, Condvar)>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Launch {
    /// The built binary with these arguments, in a fresh directory. `--listen 127.0.0.1:0` is
    /// added unless they say where to listen, and no `MARKETD_...` variable reaches it, and none
    /// that names a proxy.
    pub fn new(args: &[&str]) -> Launch {
        let built = option_env!("CARGO_BIN_EXE_marketd");
        Launch {
            // Cargo names the binary to every test. An example names its program itself.
            program: PathBuf::from(built.unwrap_or_default()),
            args: args.iter().map(|arg| (*arg).to_string()).collect(),
            env: Vec::new(),
            listen: true,
            dir: Arc::new(TempDir::new()),
        }
    }

    /// Another program in its place.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Launch {
        self.program = program.into();
        self
    }

    /// One more argument.
    pub fn arg(mut self, arg: &str) -> Launch {
        self.args.push(arg.to_string());
        self
    }

    /// An environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Launch {
        self.env.push((name.to_string(), value.to_string()));
        self
    }

    /// Writes `text` to `marketd.json` in the directory and starts with it as the configuration.
    pub fn config(self, text: impl ToString) -> Launch {
        let path = self.file("marketd.json", text);
        self.arg("--config").arg(&path.to_string_lossy())
    }

    /// Writes a file into the directory and names its path.
    pub fn file(&self, name: &str, text: impl ToString) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text.to_string()).expect("a fresh directory can be written to");
        path
    }

    /// Runs in this directory, with what an earlier one left there: see [`Marketd::dir`].
    pub fn in_dir(mut self, dir: Arc<TempDir>) -> Launch {
        self.dir = dir;
        self
    }

    /// Adds no `--listen`: the configuration or the environment says it.
    pub fn listen_as_configured(mut self) -> Launch {
        self.listen = false;
        self
    }

    /// Starts it and waits until it listens.
    #[track_caller]
    pub fn start(mut self) -> Marketd {
        if self.listen && !self.args.iter().any(|arg| arg.starts_with("--listen")) {
            self.args.extend(["--listen".to_string(), "127.0.0.1:0".to_string()]);
        }
        let mut process = self.spawn();
        let found = poll_until(PATIENCE, || {
            // Asked first: what it wrote before it ended is then all there.
            let over = process.is_over();
            let is_own = |line: &str| !line.contains(ECOSYSTEM_LISTENING);
            match process.stderr.address(is_own, LISTENING) {
                Some(addr) => Some(addr),
                None if over => panic!("marketd ended at once: {:?}", process.finished()),
                None => None,
            }
        });
        match found {
            Some(addr) => Marketd { process, addr, dir: self.dir },
            None => panic!("no address in the log:\n{}", process.stderr.text()),
        }
    }

    /// Starts it with the arguments as they are and waits for a log line that holds `mark`, for one that
    /// listens on no address: [`Marketd::addr`] means nothing then.
    #[track_caller]
    pub fn start_until(self, mark: &str) -> Marketd {
        let marketd =
            Marketd { process: self.spawn(), addr: SocketAddr::from(([0; 4], 0)), dir: self.dir };
        marketd.await_log(mark, PATIENCE);
        marketd
    }

    /// Runs it to its end with the arguments as they are; panics when it does not end in time.
    #[track_caller]
    pub fn run(self) -> Finished {
        let mut process = self.spawn();
        match poll_until(PATIENCE, || process.is_over().then_some(())) {
            Some(()) => process.finished(),
            None => panic!("still running; its log:\n{}", process.stderr.text()),
        }
    }

    fn spawn(&self) -> Process {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(self.dir.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let proxy = text.to_ascii_lowercase().ends_with("_proxy");
            if text.starts_with("MARKETD_") || text == "RUST_LOG" || proxy {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = command.spawn();
        let mut child = spawned
            .unwrap_or_else(|fault| panic!("cannot run {}: {fault}", self.program.display()));
        Process {
            stdout: Output::of(child.stdout.take()),
            stderr: Output::of(child.stderr.take()),
            child,
            ended: None,
        }
    }
}

impl Marketd {
    /// Starts the built binary with these arguments and waits until it listens.
    #[track_caller]
    pub fn start(args: &[&str]) -> Marketd {
        Launch::new(args).start()
    }

    /// Starts it with this configuration file.
    #[track_caller]
    pub fn with_config(text: impl ToString) -> Marketd {
        Launch::new(&[]).config(text).start()
    }

    /// Runs it to its end with these arguments.
    #[track_caller]
    pub fn run(args: &[&str]) -> Finished {
        Launch::new(args).run()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the ecosystem's own listener is; panics when the log names none.
    #[track_caller]
    pub fn ecosystem_addr(&self) -> SocketAddr {
        super::eventually(PATIENCE, || self.process.stderr.address(|_| true, ECOSYSTEM_LISTENING))
    }

    /// Its working directory, which is there as long as somebody holds this.
    pub fn dir(&self) -> Arc<TempDir> {
        Arc::clone(&self.dir)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        self.process.stderr.text()
    }

    /// From now on nobody reads its log, as when a journal stalls, until it is let go on. At its end what is
    /// in the pipe is read in any case.
    pub fn stall_log(&self, stalls: bool) {
        self.process.stderr.stall(stalls);
    }

    /// Waits for a log line that holds `part`; panics when none comes within `within`.
    #[track_caller]
    pub fn await_log(&self, part: &str, within: Duration) -> String {
        let found = || self.process.stderr.find(|line| line.contains(part));
        match poll_until(within, found) {
            Some(line) => line,
            None => panic!("no log line with {part:?}:\n{}", self.log()),
        }
    }

    /// Waits until it knows that an exchange's clock stands years before this machine's: until then
    /// it takes the newest candles for those of today.
    #[track_caller]
    pub fn with_clock(self) -> Marketd {
        let said = ["clock differs", "clock known"];
        super::eventually(PATIENCE, || said.iter().any(|it| self.log().contains(it)).then_some(()));
        self
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        !self.process.is_over()
    }

    /// Sends a signal by its name: `TERM`, `INT`, `STOP`, ...
    #[track_caller]
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Sends SIGTERM and waits for the end; panics when that takes longer than `within`.
    #[track_caller]
    pub fn stop(self, within: Duration) -> Finished {
        self.signal("TERM");
        self.await_end(within)
    }

    /// Waits for its end; panics when that takes longer than `within`.
    #[track_caller]
    pub fn await_end(mut self, within: Duration) -> Finished {
        match poll_until(within, || self.process.is_over().then_some(())) {
            Some(()) => self.process.finished(),
            None => panic!("still running after {within:?}"),
        }
    }

    /// Resident memory in bytes (Linux).
    pub fn rss_bytes(&self) -> u64 {
        self.status_kb("VmRSS:") * 1024
    }

    /// The most resident memory so far, in bytes (Linux).
    pub fn peak_rss_bytes(&self) -> u64 {
        self.status_kb("VmHWM:") * 1024
    }

    /// Processor time so far, user and system, in clock ticks of 10 ms (Linux).
    pub fn cpu_ticks(&self) -> u64 {
        let stat = self.proc("stat");
        // After the name in parentheses, which may hold anything: fields 3 and up of proc(5).
        let after = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after.split_whitespace().collect();
        [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum()
    }

    /// File descriptors open now (Linux).
    pub fn open_fds(&self) -> usize {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        entries.map_or(0, Iterator::count)
    }

    fn status_kb(&self, key: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let digits = line.and_then(|rest| rest.split_whitespace().next());
        digits.and_then(|digits| digits.parse().ok()).expect("a running process has this figure")
    }

    fn proc(&self, name: &str) -> String {
        let path = format!("/proc/{}/{name}", self.pid());
        std::fs::read_to_string(path).expect("a running process has its files in /proc")
    }
}

/// Sends a process a signal by its name.
#[track_caller]
pub fn signal(pid: u32, name: &str) {
    // The shell's own `kill` is everywhere; a safe call for it would be one more dependency.
    let line = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &line]).status();
    assert!(status.is_ok_and(|status| status.success()), "{line} failed");
}

impl Process {
    fn is_over(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a child can be waited for");
            if self.ended.is_some() {
                self.stdout.join();
                self.stderr.join();
            }
        }
        self.ended.is_some()
    }

    fn finished(&self) -> Finished {
        Finished {
            code: self.ended.and_then(|status| status.code()),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stderr.join();
        if std::thread::panicking() {
            eprintln!("log of process {}:\n{}", self.child.id(), self.stderr.text());
        }
    }
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Output {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (into, pipe) = (Arc::clone(&lines), pipe.expect("a piped stream is there once"));
        let rests = Arc::new((Mutex::new(false), Condvar::new()));
        let gate = Arc::clone(&rests);
        let reader = std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                locked(&into).push(text);
                line.clear();
                drop(gate.1.wait_while(locked(&gate.0), |rests| *rests));
            }
        });
        Output { lines, rests, reader: Some(reader) }
    }

    fn stall(&self, stalls: bool) {
        *locked(&self.rests.0) = stalls;
        self.rests.1.notify_one();
    }

    /// Waits for the end of the stream: the process is gone.
    fn join(&mut self) {
        self.stall(false);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader of lines does not panic");
        }
    }

    fn text(&self) -> String {
        locked(&self.lines).concat()
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        locked(&self.lines).iter().find(|line| wanted(line)).cloned()
    }

    /// The address after `mark` in the first line that has it and that `wanted` likes.
    fn address(&self, wanted: impl Fn(&str) -> bool, mark: &str) -> Option<SocketAddr> {
        let line = self.find(|line| line.contains(mark) && wanted(line))?;
        let (_, rest) = line.split_once(mark)?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit() && !"[]:.".contains(c));
        rest[..end.unwrap_or(rest.len())].trim_end_matches('.').parse().ok()
    }
}

impl TempDir {
    /// A fresh and empty directory.
    pub fn new() -> TempDir {
        let place = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
        let place =
            place.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp"));
        TempDir::at(&place)
    }

    /// One in memory, where that is possible: for tests that sync thousands of times.
    pub fn in_memory() -> TempDir {
        static SWEPT: Once = Once::new();
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            return TempDir::new();
        }
        SWEPT.call_once(|| sweep(memory));
        TempDir::at(memory)
    }

    fn at(place: &Path) -> TempDir {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        // One of an earlier process with the same id, which was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)
            .expect("the directory for temporary files can be written to");
        TempDir(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The history file in it.
    pub fn history(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what earlier runs that were killed have left.
fn sweep(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Waits until an answer to `target` is as wanted.
#[track_caller]
pub fn await_answer(
    addr: SocketAddr,
    target: &str,
    wanted: impl Fn(&Response) -> bool,
) -> Response {
    let caller = std::panic::Location::caller();
    let mut last = None;
    let found = poll_until(LONG, || {
        let answer = get(addr, target);
        last = Some(answer.clone());
        wanted(&answer).then_some(answer)
    });
    match (found, last) {
        (Some(answer), _) => answer,
        (None, last) => {
            let last = last.map(|it| (it.status, it.headers.clone(), it.text().to_string()));
            panic!("{caller}: {target} never was as wanted; the last answer: {last:?}")
        }
    }
}

/// Waits until health says so.
#[track_caller]
pub fn await_health(marketd: &Marketd, status: &str) -> Json {
    let is_so = |answer: &Response| answer.exact()["status"] == status;
    await_answer(marketd.addr(), "/health", is_so).exact()
}

/// The answer to `target` in all its digits; panics unless it is a 200.
#[track_caller]
pub fn read(addr: SocketAddr, target: &str) -> Json {
    let answer = get(addr, target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.exact()
}

/// The value of a sample in the text of the metrics, by its name with its labels.
#[track_caller]
pub fn sample<'a>(page: &'a str, name: &str) -> &'a str {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {page}"))
}

/// The same, of one that counts.
#[track_caller]
pub fn count(page: &str, name: &str) -> u64 {
    sample(page, name).parse().expect("a whole number")
}

/// The counters.
#[track_caller]
pub fn metrics(marketd: &Marketd) -> Json {
    read(marketd.addr(), "/api/v1/metrics")
}
