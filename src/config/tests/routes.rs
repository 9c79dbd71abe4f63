//! How exchanges are reached: TLS, root certificates, proxies.

use super::*;

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_that_it_cannot_speak_https() {
    let why = "this build cannot speak https (it is made without the feature \"tls\")";
    let text = "{ \"sources\": [ { \"dialect\": \"okx\",\n\"url\": \"https://x.com\" }, { \"dialect\": \"kraken\" },\n { \"dialect\": \"kraken\", \"id\": \"k\", \"url\": \"http://y.com\" } ] }";
    assert_eq!(
        faults(text),
        [
            format!(
                "m.json:2: sources[0].url: expected an http address, found https://x.com: {why}"
            ),
            format!(
                "m.json:2: sources[1].dialect: expected an http address, found https://api.kraken.com: {why}"
            ),
        ]
    );
    assert_eq!(
        run(&["--source", "kraken"], &[]),
        Err(vec![format!(
            "--source: expected an http address, found https://api.kraken.com: {why}"
        )])
    );
}

#[test]
fn a_file_of_roots_is_read_and_its_faults_name_the_key() {
    let pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    let good = TestFile::new("roots.pem", pem);
    let text = |path: &str| format!("{{\n\"tls\": {{ \"caFile\": {path:?} }} }}");
    let (config, warnings) = from_json("m.json", &text(&good)).expect("good");
    assert_eq!(config.tls.ca_file.as_deref(), Some(&*good));
    assert_eq!(config.tls.ca_text, pem);
    assert_eq!(warnings.len(), usize::from(!HAS_TLS));
    let check = |path: &str, expected: &str| {
        let fault = format!("m.json:2: tls.caFile: {expected}");
        assert_eq!(faults(&text(path)), [fault], "{path}");
    };
    check("/nowhere", "\"/nowhere\": cannot be read: No such file or directory (os error 2)");
    check("", "expected a file name, found \"\"");
    let other = TestFile::new("key.pem", "-----BEGIN PRIVATE KEY-----\n");
    let name = format!("{:?}", &*other);
    check(&other, &format!("{name} holds no certificate in PEM form"));
    std::fs::write(&*other, [0x30, 0x82, 0xff]).expect("the file can be written");
    check(&other, &format!("{name}: not UTF-8"));
    assert!(faults("{ \"tls\": { \"caFile\": null } }").is_empty());
}

#[test]
fn proxies_come_from_the_environment_and_are_never_printed() {
    let sources = ["--source=binance", "--source=okx=http://127.0.0.1:1"];
    let line = [sources[0], sources[1], "--source=okx=http://okx.corp", "--demo"];
    let secret = "http://me:hunter2@proxy:3128";
    let variables = [("HTTP_PROXY", secret), ("NO_PROXY", "corp")];
    let config = loaded(&line, &variables).config;
    let through = |source: &SourceConfig| source.proxy.as_ref().map(Url::authority);
    let found: Vec<_> = config.sources.iter().map(through).collect();
    assert_eq!(found, [Some("proxy:3128".to_string()), None, None, None]);
    assert!(!config.to_json().contains("hunter2"));
    assert!(!format!("{config:?}").contains("hunter2"));
    let plain = loaded(&line, &[]).config;
    assert_eq!(config.to_json(), plain.to_json());
    // Told once, and only where somebody needs it.
    let wrong = [("http_proxy", "socks5://me:hunter2@proxy:3128")];
    let expected = "http_proxy: expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (only HTTP proxies are supported)";
    assert_eq!(run(&line, &wrong), Err(vec![expected.to_string()]));
    assert!(run(&["--demo"], &wrong).is_ok());
}

#[test]
fn the_key_of_a_source_comes_from_its_file_or_its_variable_and_is_never_printed() {
    let dialect = TestFile::new("k.json", "keyed");
    let key = TestFile::new("key", "hunter2\n");
    let config = |more: &str| {
        let source = format!("{{ \"id\": \"t-1\", \"dialect\": {:?}{more} }}", &*dialect);
        format!("{{\n\"sources\": [ {source} ] }}")
    };
    let file = |name: &str| config(&format!(",\n\"keyFile\": {name:?}"));
    let read = |text: &str, variable: &str| {
        let path = TestFile::new("c.json", text);
        let result = run(&["--config", &path], &[("MARKETD_KEY_T_1", variable)]);
        result.map_err(|all| all.join("; ").replace(&*path, "c.json"))
    };
    let good = |text: &str, variable: &str, expected: &str| {
        let Ok(Command::Run(loaded)) = read(text, variable) else {
            panic!("{text}");
        };
        let source = &loaded.config.sources[0];
        assert_eq!(source.key.as_ref().map(Secret::expose), Some(expected));
        let shown = format!("{:?} {}", loaded, loaded.config.to_json());
        assert!(!shown.contains(expected), "{shown}");
        let told = loaded.warnings.iter().map(ConfigFault::to_string).collect::<String>();
        assert!(told.contains("sources[0].dialect: without https, the key"), "{told}");
    };
    good(&config(""), "hunter1", "hunter1");
    good(&file(&key), "hunter1", "hunter2");
    let wrong = |text: &str, variable: &str, expected: &str| {
        assert_eq!(read(text, variable).err().as_deref(), Some(expected), "{text}");
    };
    let rest = "(the key of the source, unless `keyFile` names a file with it)";
    let none = format!(
        "c.json:2: sources[0].keyFile: MARKETD_KEY_T_1: expected a key, found nothing {rest}"
    );
    wrong(&config(""), "", &none);
    let one = "expected a key of at most 4096 printable characters of ASCII, in one line";
    wrong(
        &config(""),
        "a\nb",
        &format!("c.json:2: sources[0].keyFile: MARKETD_KEY_T_1: {one} {rest}"),
    );
    let why = "\"/nowhere\": cannot be read: No such file or directory (os error 2)";
    wrong(&file("/nowhere"), "x", &format!("c.json:3: sources[0].keyFile: {why}"));
    std::fs::write(&*key, " \n").expect("the file can be written");
    let empty = format!("c.json:3: sources[0].keyFile: {:?}: expected a key, found nothing", &*key);
    wrong(&file(&key), "x", &empty);
    // Who asks no exchange needs no key.
    let path = TestFile::new("c.json", &config(""));
    assert!(run(&["--config", &path, "--print-config"], &[]).is_ok());
    assert!(run(&["healthcheck", "--config", &path], &[]).is_ok());
    std::fs::write(&*dialect, "fine").expect("the file can be written");
    let vain = "c.json:3: sources[0].keyFile: nothing reads it: the dialect has no `key`";
    wrong(&file(&key), "x", vain);
}

#[test]
fn passwords_in_addresses_are_not_repeated() {
    let check = |flag: &str, expected: &str| {
        assert_eq!(run(&["--source", flag], &[]), Err(vec![format!("--source: {expected}")]));
    };
    let url = "expected an address without user, query and fragment, found";
    check("okx=http://me:hunter2@okx.com/x", &format!("{url} \"http://(hidden) okx.com/x\""));
    check(
        "okx=me:hunter2@okx.com",
        "expected http://HOST or https://HOST, found \"(hidden) okx.com\"",
    );
    let text = "{ \"sources\": [ { \"dialect\": \"okx\", \"url\": \"http://m:hunter2@x\" } ] }";
    let expected = format!("m.json:1: sources[0].url: {url} \"http://(hidden) x\"");
    assert_eq!(faults(text), [expected]);
    #[cfg(feature = "cluster")]
    {
        let config = loaded(&["--cluster", "redis://me:hunter2@h"], &[]).config.to_json();
        assert!(config.contains("\"redis://***@h\""), "{config}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn a_build_with_tls_takes_https() {
    assert!(run(&["--source", "kraken"], &[]).is_ok());
}
