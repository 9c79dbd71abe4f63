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
    assert_eq!(warnings.len(), usize::from(!tls_available()));
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
    let line = [
        "--source",
        "binance",
        "--source",
        "okx=http://127.0.0.1:1",
        "--source",
        "okx=http://okx.corp",
        "--demo",
    ];
    let secret = "http://me:hunter2@proxy:3128";
    let variables = [("HTTP_PROXY", secret), ("NO_PROXY", "corp")];
    let config = loaded(&line, &variables).config;
    let through = |source: &SourceConfig| source.proxy.as_ref().map(Proxy::to_string);
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
}

#[cfg(feature = "tls")]
#[test]
fn a_build_with_tls_takes_https() {
    assert!(run(&["--source", "kraken"], &[]).is_ok());
}
