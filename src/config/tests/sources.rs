//! Which sources run: those of flags, of the file, or the demo exchange.

use super::*;

/// Id, dialect, url, symbols and quote assets of each source.
fn sources(config: &Config) -> Vec<String> {
    let each = config.sources.iter().map(|it| {
        let url = it.url.as_ref().map_or(String::new(), Url::to_string);
        let (symbols, assets) = (it.symbols.join(","), it.quote_assets.join(","));
        format!("{}|{}|{url}|{symbols}|{assets}", it.id, it.spoken())
    });
    each.collect()
}

#[test]
fn sources_come_from_flags_else_from_the_file_else_the_demo_exchange_runs() {
    let path = TestFile::new(
        "sources.json",
        "{ \"sources\": [ { \"dialect\": \"okx\", \"symbols\": [\"X/Y\"] } ], \"demo\": { \"seed\": 7 } }",
    );
    let check = |line: &[&str], demo: Option<u64>, expected: &[&str]| {
        let config = loaded(line, &[]).config;
        assert_eq!(sources(&config), expected, "{line:?}");
        assert_eq!(config.demo.map(|demo| demo.seed), demo, "{line:?}");
        let runs = config.sources.iter().any(|source| source.dialect == DEMO);
        assert_eq!(runs, demo.is_some(), "{line:?}");
    };
    let demo = "demo|binance||BTC/USDT,ETH/USDT|*";
    check(&[], Some(1), &[demo]);
    check(&["--demo"], Some(1), &[demo]);
    check(&["--symbols", "sol-usdt, A/B,,A_B"], Some(1), &["demo|binance||SOL/USDT,A/B|"]);
    check(&["--config", &path], None, &["okx|okx||X/Y|"]);
    check(&["--config", &path, "--demo"], Some(7), &["okx|okx||X/Y|", demo]);
    check(&["--config", &path, "--source", "binance"], None, &["binance|binance|||"]);
    let several = "--source binance --source okx=http://a:1/ --source=binance=http://b --demo";
    let words: Vec<&str> = several.split(' ').chain(["--symbols", "A/B"]).collect();
    let (one, other) = ("binance|binance||A/B|", "binance-2|binance|http://b|A/B|");
    check(&words, Some(1), &[one, "okx|okx|http://a:1|A/B|", other, demo]);
    check(&["--source", "demo", "--demo"], Some(1), &[demo]);
    check(&["--source", "demo", "--source", "okx"], Some(1), &[demo, "okx|okx|||"]);
}

#[test]
fn the_dialect_of_a_source_may_be_a_file() {
    let fine = TestFile::new("My_Exchange.json", "fine");
    let name = std::path::Path::new(&*fine);
    let name = name.file_name().expect("a name").to_string_lossy();
    let config = format!(
        "{{ \"sources\": [\n{{ \"dialect\": \"./{name}\" }}, {{ \"dialect\": \"./no.json\" }} ] }}"
    );
    let own = TestFile::new("dialects.json", &config);
    // Relative to the configuration's file, from the command line to the working directory.
    let found = run(&["--config", &own], &[]).expect_err("a file is missing");
    let [fault] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(fault.contains("dialects.json:2: sources[1].dialect: "), "{fault}");
    assert!(fault.contains("no.json\": cannot be read: "), "{fault}");
    // Without a name in front of the ending, the ending is the name.
    let id = |file| SourceConfig::new(file).id;
    assert_eq!([id("./.json"), id("a/B_c.json")], ["-json", "b-c"]);
    let twice = ["--source", &fine, "--source", &format!("{}=http://10.0.0.1", &*fine)];
    let found = loaded(&twice, &[]);
    let [one, two] = &found.config.sources[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&*one.dialect_text, &*two.dialect_text), ("fine", "fine"));
    let id = name.trim_end_matches(".json").to_ascii_lowercase().replace('_', "-");
    let id: String = id.chars().take(32).collect();
    assert_eq!((&*one.id, &two.id), (&*id, &format!("{id}-2")));
    assert_eq!(found.warnings.len(), 2, "the budget: {:?}", found.warnings);
    // Everything that is wrong with it, by its own lines.
    let faulty = TestFile::new("faulty.json", "no dialect");
    let found = run(&["--source", &faulty], &[]).expect_err("it is faulty");
    assert!(found[1].ends_with("faulty.json:1: a.b: wrong"), "{found:?}");
    assert!(found[2].ends_with("faulty.json:7: missing"), "{found:?}");
    assert!(found[0].ends_with("is not a dialect: see its faults"), "{found:?}");
    assert_eq!(found.len(), 3);
    // A fault of a whole dialect's file does not hide those of the configuration.
    let config = format!("{{ \"sources\": [ {{ \"dialect\": {:?} }} ] }}", &*faulty);
    let own = TestFile::new("names-faulty.json", &config);
    let found = run(&["--config", &own], &[]).expect_err("it is faulty");
    let is_told = |it: &String| it.ends_with("is not a dialect: see its faults");
    assert!(found.len() == 3 && found.iter().any(is_told), "{found:?}");
}
