//! The real binary as a person meets it: what it prints, where, and its exit code.

use crate::support::{Launch, skipped};
use std::process::Command;

/// Runs marketd with these words. A bug would show itself.
pub fn run(words: &[&str]) -> (i32, String, String) {
    run_with(words, &[])
}

/// The same with these variables.
fn run_with(words: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let launch = Launch::new(words).env("RUST_BACKTRACE", "1");
    let set = |launch: Launch, (name, value): &(&str, &str)| launch.env(name, value);
    variables.iter().fold(launch, set).run().parts()
}

/// Runs a line of a shell in which `$0` is marketd.
fn run_line(line: &str) -> (i32, String, String) {
    Launch::new(&["-c", line, env!("CARGO_BIN_EXE_marketd")]).program("sh").run().parts()
}

/// A file of this name and text, which no other test may give.
pub fn file(name: &str, text: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, text).expect("the directory can be written");
    path
}

#[test]
fn help_and_version_go_to_standard_output() {
    let (code, out, err) = run(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("Usage: marketd"), "{out}");
    assert!(out.contains("--source DIALECT[=URL]"), "{out}");
    let (code, version, err) = run(&["--version"]);
    assert_eq!((code, err.as_str()), (0, ""));
    // A release has one more line.
    let mut lines = version.lines().filter(|line| !line.starts_with("commit: "));
    assert_eq!(lines.next(), Some(concat!("marketd ", env!("CARGO_PKG_VERSION"))));
    let features = lines.next().and_then(|line| line.strip_prefix("features:"));
    let features = features.expect("a line of features");
    assert_eq!(features.contains("sqlite"), cfg!(feature = "sqlite"));
    let sqlite = lines.next().is_some_and(|line| line.starts_with("SQLite 3."));
    assert_eq!((sqlite, lines.next()), (cfg!(feature = "sqlite"), None));
    assert_eq!(run(&["-V"]).1, version);
}

/// What a shell answers, without white space around its lines. `None`, and said so: it is not here.
fn shell(program: &str, script: &str) -> Option<Vec<String>> {
    let mut command = Command::new(program);
    // No file of a person's own.
    command.args(if program == "zsh" { &["-f", "-c"][..] } else { &["-c"] }).arg(script);
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped(&format!("completions of {program}, which is not here"));
            None
        }
        output => {
            let output = output.expect("it runs");
            let [out, err] =
                [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("UTF-8"));
            assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{program}");
            Some(out.lines().map(|line| line.trim().to_string()).collect())
        }
    }
}

#[test]
fn shells_complete_commands_flags_choices_and_files() {
    let script = |name: &str| file(&format!("completions.{name}"), &run(&["completions", name]).1);
    let [bash, zsh, fish] = ["bash", "zsh", "fish"].map(script);
    let typed = [
        ("ex", "export"),
        ("export --fo", "--format"),
        ("completions z", "zsh"),
        ("schema d", "dialect"),
        ("--print", "--print-config"),
        ("reload --co", "--config"),
    ];
    let of_bash = |typed: &str| {
        shell(
            "bash",
            &format!(
                "source {bash}; COMP_WORDS=(marketd {typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))
                 _marketd; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            ),
        )
    };
    for (typed, expected) in typed {
        for found in [
            of_bash(typed),
            shell("fish", &format!("source {fish}; complete -C 'marketd {typed}' | cut -f 1")),
        ] {
            assert!(found.is_none_or(|it| it == [expected]), "{typed}");
        }
    }
    // The value of a flag is a file, if anything.
    for typed in ["--config", "export --format", "backup"] {
        let found = of_bash(&format!("{typed} {bash}"));
        assert!(found.is_none_or(|it| it == [&*bash]), "{typed}");
    }
    let dir = std::path::Path::new(&zsh).parent().expect("it is in a directory").display();
    let registered = shell(
        "zsh",
        &format!("autoload -Uz compinit && compinit -D && source {zsh} && print $_comps[marketd]"),
    );
    assert!(registered.is_none_or(|it| it == ["_bash_complete -F _marketd"]));
    // As a file of its `fpath`, it answers at the first key.
    let first = shell(
        "zsh",
        &format!(
            "cp {zsh} {dir}/_marketd && fpath=({dir} $fpath) && autoload -Uz compinit && \
             compinit -u -D && print $_comps[marketd] && \
             bashcompinit() {{ _bash_complete() {{ print answered }}; complete() {{ }} }} && _marketd"
        ),
    );
    assert!(first.is_none_or(|it| it == ["_marketd", "answered"]));
}

#[test]
fn every_exchange_is_named_in_the_help_and_can_be_a_source() {
    let (_, help, _) = run(&["--help"]);
    let names: Vec<&str> = marketd::exchange::Dialect::names().chain(["demo"]).collect();
    assert_eq!(names.len(), 15);
    let line = format!("\nDialects: {}\n", names.join(", "));
    assert!(help.contains(&line), "{help}");
    for name in &names[..names.len() - 1] {
        let source = format!("{name}=http://127.0.0.1:1");
        let words = ["--check", "--source", &source, "--symbols", "BTC/USDT"];
        let good = "the configuration is good\n";
        assert_eq!(run(&words), (0, good.to_string(), String::new()));
    }
}

#[test]
#[cfg_attr(not(feature = "sqlite"), ignore = "this build keeps no file")]
fn a_fault_of_the_history_file_is_told_with_the_others_where_it_is_named() {
    let dir = std::env::temp_dir().join(format!("marketd-cli-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("data")).expect("a directory of ours");
    let file = dir.join("m.json").display().to_string();
    let text = "{\n  \"listen\": \"nowhere\",\n  \"data\": \"DIR/data\"\n}"
        .replace("DIR", &dir.display().to_string());
    std::fs::write(&file, text).expect("a file of ours");
    let (code, out, err) = run(&["--check", "--config", &file]);
    let starts: Vec<String> =
        ["2: listen: expected ADDR:PORT", "3: data: "].map(|it| format!("{file}:{it}")).into();
    let found =
        err.lines().zip(&starts).filter(|(line, start)| line.starts_with(&***start)).count();
    assert_eq!((code, out.as_str(), found, err.lines().count()), (2, "", 2, 2), "{err}");
    std::fs::remove_dir_all(dir).expect("it was made");
}

#[test]
fn faults_are_one_line_each_with_exit_code_2_and_warnings_are_told_as_such() {
    let path = file("bad.json", "{\n  \"listen\": 1,\n  \"colour\": 1\n}\n");
    let expected = [
        "--data: expected FILE, found nothing".to_string(),
        format!("{path}:2: listen: expected ADDR:PORT or unix:PATH, found 1"),
        format!("{path}:3: colour: unknown key"),
    ];
    let expected = expected.map(|line| line + "\n").concat();
    for mode in ["--check", "--print-config", "--demo"] {
        let found = run(&[mode, "--config", &path, "--data="]);
        assert_eq!(found, (2, String::new(), expected.clone()), "{mode}");
    }
    let path =
        file("good.json", "{ \"sources\": [ { \"dialect\": \"demo\",\n \"pollMs\": 6000 } ] }");
    let (code, out, err) = run_with(&["--check"], &[("MARKETD_CONFIG", &path)]);
    assert_eq!((code, out.as_str()), (0, "the configuration is good\n"));
    let expected = "sources[0].pollMs: 6000 is at least staleAfterMs (5000): every quote turns stale between two polls";
    assert_eq!(err, format!("warning: {path}:2: {expected}\n"));
}

#[test]
fn a_configuration_can_come_through_a_pipe() {
    let line = r#"echo '{ "listen": 1 }' | "$0" --check --config /dev/stdin"#;
    let expected = "/dev/stdin:1: listen: expected ADDR:PORT or unix:PATH, found 1\n";
    assert_eq!(run_line(line), (2, String::new(), expected.to_string()));
}

#[cfg(target_os = "linux")]
#[test]
fn nobody_who_listens_and_a_full_disk_are_no_panic() {
    assert_eq!(run_line("\"$0\" --help >&-"), (0, String::new(), String::new()));
    assert_eq!(run_line("\"$0\" --wrong 2>&-"), (2, String::new(), String::new()));
    let expected = "standard output: No space left on device (os error 28)\n";
    assert_eq!(run_line("\"$0\" --help >/dev/full"), (2, String::new(), expected.to_string()));
}

#[test]
fn the_faults_of_a_dialects_file_are_told_by_line_and_member() {
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/kraken.json");
    let text = std::fs::read_to_string(good).expect("a dialect of this build");
    let line = |part: &str| {
        let before = text.split(part).next().expect("a text has a front");
        1 + before.matches('\n').count()
    };
    let path = file(
        "dear.json",
        &text.replace("\"rows\": 720", "\"rows\": 0").replace("perMs", "perHour"),
    );
    let (code, _, err) = run(&["--source", &path]);
    let expected = format!(
        "{path}:{}: budget.perHour: unknown key, expected one of units, perMs, used, left\n",
        line("\"budget\"")
    );
    assert!(code == 2 && err.contains(&expected), "{expected}: {err}");
}
