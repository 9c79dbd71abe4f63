//! The process and its file: who may not begin, and what an end leaves behind.

use super::*;
use crate::support::daemon::TempDir;
use crate::support::*;
use std::path::Path;

fn refused(launch: Launch, part: &str) {
    let finished = launch.run();
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    assert!(finished.stderr.contains(part), "{finished:?}");
}

fn of(path: &Path) -> Launch {
    let path = path.to_string_lossy();
    Launch::new(&["--data", &path, "--listen", "127.0.0.1:0"])
}

#[test]
fn a_damaged_file_is_left_alone_and_the_service_goes_on_without_it() {
    let exchange = Binance::generated(3, 7);
    let config = config(&[source(&exchange, &["BTC/USDT"])], 600);
    let marketd = Launch::new(&[]).config(&config).start();
    eventually(LONG, || (history(&marketd, "inserted") >= 1800).then_some(()));
    let dir = marketd.dir();
    marketd.stop(LONG);
    let path = dir.path().join(FILE);
    let is_left = |suffix: &str| dir.path().join(format!("{FILE}{suffix}")).exists();
    assert!(!is_left("-wal") && !is_left("-shm"));
    let mut bytes = std::fs::read(&path).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[4096..middle].fill(0x5a);
    std::fs::write(&path, &bytes).expect("it may be written");
    let marketd = launch(&dir, &config).start();
    await_health(&marketd, "degraded");
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=300";
    assert_eq!(await_complete(&marketd, target).exact().items().len(), 300);
    assert_eq!(metrics(&marketd)["history"]["usable"], Json::Bool(false));
    let finished = marketd.stop(LONG);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("damaged"), "{finished:?}");
    assert!(finished.stderr.contains(".recover"), "{finished:?}");
    // SQLite tells of whole pages in several lines, the log in one behind the address.
    let mut lines = finished.stderr.lines();
    assert!(lines.next().is_some_and(|line| line.contains("listening on")), "{finished:?}");
    assert!(lines.all(|line| line.starts_with("20")), "no line of its own: {finished:?}");
    assert!(std::fs::read(&path).expect("it is there") == bytes, "it was written to");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_at_the_start() {
    let dir = TempDir::new();
    let path = dir.path().join(FILE);
    let marketd = of(&path).start();
    await_health(&marketd, "ok");
    marketd.stop(LONG);
    let mut mode = std::fs::metadata(&path).expect("it is there").permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&path, mode).expect("a file of ours");
    // Root may write to any file, unless it gives that up.
    let plain = "exec setpriv --bounding-set=-dac_override --inh-caps=-dac_override \"$0\" \"$@\"";
    let is_root = std::fs::File::options().write(true).open(&path).is_ok();
    let line = match is_root {
        true => plain,
        false => "exec \"$0\" \"$@\"",
    };
    let path = path.to_string_lossy();
    let shell = |args: &[&str]| {
        let words = ["-c", line, env!("CARGO_BIN_EXE_marketd")];
        let words: Vec<&str> = words.iter().chain(args).copied().collect();
        Launch::new(&words).program("/bin/sh")
    };
    refused(shell(&["--data", &path, "--listen", "127.0.0.1:0"]), "denied");
    refused(shell(&["--data", &path, "--check"]), "denied");
}
