//! The files in `scripts/deploy`: the example configurations are good, and what the alerts and the dashboard
//! ask for is told by a running marketd.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::*;

fn deployed(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts/deploy")
        .join(name);
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

#[test]
fn the_unit_starts_what_there_is() {
    let (_, unit) = deployed("marketd.service");
    let help = Launch::new(&["--help"]).listen_as_configured().run();
    let commands = unit
        .lines()
        .filter_map(|line| line.strip_prefix("ExecStart"));
    let flags = commands.flat_map(|line| line.split(' ').filter(|word| word.starts_with("--")));
    let mut count = 0;
    for flag in flags {
        assert!(help.stdout.contains(flag), "{flag} is not a flag");
        count += 1;
    }
    assert!(count >= 4, "{unit}");
}
