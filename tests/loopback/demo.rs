//! What `cargo run` alone gives: the demo exchange behind every family of addresses.

use crate::loopback::contract::*;
use crate::loopback::described::good_targets;
use crate::support::*;
use std::net::SocketAddr;

fn demo() -> Marketd {
    let marketd = Marketd::start(&["--data", ":memory:"]);
    let ready = || Some(get(marketd.addr(), "/health/ready")).filter(|answer| answer.status == 200);
    eventually(LONG, ready);
    marketd
}

#[test]
fn decimals_as_strings_have_the_same_digits_at_every_address() {
    let marketd = demo();
    let mut client = Client::connect(marketd.addr());
    let has_decimals = |target: &&str| {
        let parameters = operation(path_of(target).expect("a path")).get("parameters");
        let names = parameters.into_iter().flat_map(Json::items);
        names.filter_map(|it| it.get("$ref")?.text()).any(|it| it.ends_with("/decimals"))
    };
    let targets = good_targets().into_iter().filter(has_decimals);
    let targets: Vec<&str> = targets.filter(|it| !it.contains("decimals")).collect();
    assert!(targets.len() >= 7, "{targets:?}");
    for target in targets {
        let joint = if target.contains('?') { '&' } else { '?' };
        let as_text = format!("{target}{joint}decimals=string");
        // A long answer is made over some turns, so that a poll may come between the two.
        eventually(LONG, || {
            let (plain, text) = (client.get(target), client.get(&as_text));
            let tags = [&plain, &text].map(|it| it.header("ETag"));
            let is_one = tags[0].is_some() && tags[0] == tags[1];
            assert!(!is_one || plain.body == text.body, "{target}: one tag for two forms");
            let (numbers, texts) = (good(&plain), good(&text));
            let without_quotes = |body: Json| body.to_string().replace('"', "");
            (without_quotes(numbers) == without_quotes(texts)).then_some(())
        });
    }
}

#[test]
fn the_demo_says_in_one_line_that_its_prices_are_simulated() {
    let marketd = demo();
    let line = marketd.await_log("simulated prices", LONG);
    assert!(line.contains("--source"), "{line}");
    let source = read(marketd.addr(), "/api/v1/quotes/ETH-BTC")["source"].clone();
    assert_eq!(source, "demo");
    // The exchange itself is a real one, at a real address.
    let address = line.split("http://").nth(1).and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !".:".contains(c))?;
        rest[..end].trim_end_matches(':').parse::<SocketAddr>().ok()
    });
    let address = address.expect("the line names the exchange's address");
    let ticker = read(address, "/api/v3/ticker/24hr?symbol=BTCUSDT");
    assert_eq!(ticker["symbol"], "BTCUSDT");
}
