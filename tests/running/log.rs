//! The log where standard error is a regular file.

use crate::support::daemon::TempDir;
use crate::support::*;
use std::fs::{self, File};
use std::process::{Command, Stdio};

#[test]
fn a_log_in_a_file_is_written_without_a_thread() {
    let dir = TempDir::new();
    let path = dir.path().join("log");
    let mut marketd = Command::new(env!("CARGO_BIN_EXE_marketd"))
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(dir.path())
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stderr(File::create(&path).expect("a fresh directory"))
        .spawn()
        .expect("the built binary runs");
    let log = || fs::read_to_string(&path).expect("the log is text");
    eventually(LONG, || log().contains(" listening on http://127.0.0.1:").then_some(()));
    let threads = fs::read_dir(format!("/proc/{}/task", marketd.id()));
    if let Ok(threads) = threads {
        let name =
            |it: fs::DirEntry| fs::read_to_string(it.path().join("comm")).unwrap_or_default();
        let names: Vec<String> = threads.flatten().map(name).collect();
        assert!(!names.iter().any(|it| it.trim() == "log"), "{names:?}");
    }
    let pid = marketd.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.is_ok_and(|it| it.success()));
    assert!(marketd.wait().expect("it is a child").success());
    assert!(log().ends_with("net: stopped\n"), "{}", log());
}
