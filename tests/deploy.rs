//! The files in `scripts/deploy`: the example configurations are good, and what the alerts and the dashboard
//! ask for is told by a running marketd.

use crate::support::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn deployed(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/deploy").join(name);
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    (path, text)
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("marketd_"))
        .collect()
}

#[cfg(feature = "tls")]
#[test]
fn the_example_configurations_are_good() {
    for name in ["small.json", "large.json"] {
        let (path, _) = deployed(name);
        let path = path.to_string_lossy().into_owned();
        let checked = Launch::new(&["--config", &path, "--data", ":memory:", "--check"])
            .listen_as_configured()
            .run();
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
    }
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let marketd = Launch::new(&["--data", ":memory:"]).start();
    // Durations are told of routes that have been asked for.
    get(marketd.addr(), "/health/live");
    let page = get(marketd.addr(), "/metrics");
    let told = metrics_in(page.text());
    for name in ["prometheus-rules.yml", "grafana-dashboard.json"] {
        let (_, text) = deployed(name);
        let asked = metrics_in(&text);
        assert!(asked.len() >= 8, "{name} asks for little: {asked:?}");
        let unknown: Vec<_> = asked.difference(&told).collect();
        assert!(unknown.is_empty(), "{name} asks for {unknown:?}");
    }
}

/// Without a file there is nothing to be alarmed at, with one there is.
#[test]
fn the_alert_on_an_unusable_history_file_needs_a_file() {
    let samples = |args: &[&str]| {
        let marketd = Launch::new(args).start();
        let page = get(marketd.addr(), "/metrics");
        let lines = page.text().lines().map(str::to_string);
        let names = ["marketd_history_usable ", "marketd_history_write_failed "];
        let is_sample = |line: &String| names.iter().any(|name| line.starts_with(name));
        lines.filter(is_sample).collect::<Vec<_>>()
    };
    let without = samples(&["--data", ":memory:"]);
    assert_eq!(without, ["marketd_history_write_failed 0"]);
    if cfg!(feature = "sqlite") {
        let expected = ["marketd_history_usable 1", "marketd_history_write_failed 0"];
        assert_eq!(samples(&[]), expected);
    }
}

#[test]
fn the_passed_sockets_are_those_that_can_be_listened_on() {
    let (_, unit) = deployed("marketd.socket");
    let streams = unit.lines().filter_map(|line| line.strip_prefix("ListenStream="));
    let mut count = 0;
    for stream in streams {
        let listen = match stream.starts_with('/') {
            true => format!("unix:{stream}"),
            false => stream.to_string(),
        };
        let words = ["--data", ":memory:", "--check", "--listen", &listen];
        let checked = Launch::new(&words).run();
        assert_eq!(checked.code, Some(0), "{stream}: {}", checked.stderr);
        count += 1;
    }
    assert_eq!(count, 2, "{unit}");
}

#[test]
fn the_unit_starts_what_there_is() {
    let (_, unit) = deployed("marketd.service");
    let help = Launch::new(&["--help"]).listen_as_configured().run();
    let commands = unit.lines().filter_map(|line| line.strip_prefix("Exec"));
    let flags = commands.flat_map(|line| line.split(' ').filter(|word| word.starts_with("--")));
    let mut count = 0;
    for flag in flags {
        assert!(help.stdout.contains(flag), "{flag} is not a flag");
        count += 1;
    }
    assert!(count >= 3, "{unit}");
    // Only the main process ends the restarts with its exit code.
    assert!(!unit.contains("ExecStartPre="), "{unit}");
    // It would hide whether SYN cookies are on.
    assert!(!unit.contains("ProcSubset="), "{unit}");
    // Only who is told that it listens, that its loop turns, and when it reads its file again may wait.
    for line in [
        "Type=notify",
        "WatchdogSec=30",
        "ExecReload=/usr/bin/marketd reload $MAINPID --config /etc/marketd/marketd.json",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}");
    }
}

#[test]
fn the_image_is_made_of_what_there_is_and_says_what_marketd_knows() {
    let (_, text) = deployed("Dockerfile");
    let rest_of = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(str::to_string).collect()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for copied in rest_of("COPY ") {
        let mut paths: Vec<&str> = copied.split(' ').collect();
        paths.pop();
        for path in paths.iter().filter(|_| !copied.starts_with("--from")) {
            assert!(root.join(path).exists(), "{path}");
        }
    }
    let help = Launch::new(&["--help"]).listen_as_configured().run().stdout;
    let variables = rest_of("ENV ").join(" ");
    let names: Vec<_> = variables.split(' ').filter_map(|it| it.split_once('=')).collect();
    assert_eq!(names.len(), 2, "{variables}");
    for (name, _) in names {
        assert!(help.contains(&format!("[{name}]")), "{name}");
    }
    assert!(text.contains(r#"CMD ["/marketd", "healthcheck"]"#));
    assert!(help.contains("  healthcheck "));
}
