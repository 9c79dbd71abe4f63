//! Lists by the piece: `sort`, `order`, `limit`, `offset`, `search`; their counts and links.

use crate::loopback::setup::*;
use crate::support::*;
use std::cmp::Ordering;
use std::net::SocketAddr;

/// The lists, with the parameters that they need and the member that has the rows.
const LISTS: [(&str, &str); 3] = [
    ("/api/v1/quotes?symbols=*&", "quotes"),
    ("/api/v1/categories/usdt/markets?", "markets"),
    ("/api/ecosystem/market?", ""),
];

/// A number with its digits as a whole number of 10^-18.
fn number(value: &Json) -> Option<i128> {
    let text = value.text()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= 18, "{text}");
    format!("{whole}{fraction:0<18}").parse().ok()
}

fn rows(answer: &Response, member: &str) -> Vec<Json> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.exact();
    match member {
        "" => body.items().to_vec(),
        member => body[member].items().to_vec(),
    }
}

fn names(rows: &[Json]) -> Vec<String> {
    let name = |row: &Json| row["symbol"].text().expect("a symbol").to_string();
    rows.iter().map(name).collect()
}

fn total(answer: &Response) -> usize {
    let total = answer.header("X-Total-Count").expect("it is counted");
    assert!(answer.headers.iter().any(|(name, value)| {
        name == "Access-Control-Expose-Headers" && value == "X-Total-Count"
    }));
    total.parse().expect("a number")
}

/// The target of a link with this relation, resolved against the address of the request.
fn link(answer: &Response, relation: &str, target: &str) -> Option<String> {
    let links = answer.header("Link")?.split(", ");
    let found = links
        .filter_map(|link| link.split_once(">; rel="))
        .find(|it| it.1.trim_matches('"') == relation)?;
    let path = target.split('?').next()?;
    Some(format!("{path}{}", found.0.strip_prefix('<')?))
}

/// Markets of which some have figures that others lack, and some have the same; nothing changes any more.
fn quiet() -> (Binance, Marketd) {
    let exchange = Binance::generated(400, 11);
    for (at, symbol) in exchange.symbols().iter().enumerate() {
        let id = symbol.replace('/', "");
        match at % 7 {
            2 => exchange.patch_ticker(&id, "quoteVolume", "null"),
            3 => exchange.patch_ticker(&id, "quoteVolume", r#""12.5""#),
            4 => exchange.patch_ticker(&id, "quoteVolume", r#""12345678901234567890.5""#),
            5 => exchange.patch_ticker(&id, "quoteVolume", r#""0.000000000000012""#),
            _ => {}
        }
    }
    let marketd = start(&config(&[source("fake", &exchange)]));
    await_polls(&marketd, 2);
    silence(&exchange);
    (exchange, marketd)
}

/// What is expected: the rows of the whole list, sorted by what the quotes say.
fn sorted(addr: SocketAddr, target: &str, member: &str, by: &str, descending: bool) -> Vec<String> {
    let quotes = rows(&get(addr, "/api/v1/quotes?symbols=*"), "quotes");
    let value = |name: &str| {
        let quote = quotes.iter().find(|quote| quote["symbol"].text() == Some(name));
        quote.filter(|_| by != "symbol").and_then(|quote| number(&quote[by]))
    };
    let all = names(&rows(&get(addr, target), member));
    let mut keyed: Vec<_> = all.iter().map(|name| (value(name), name.clone())).collect();
    // What is not known comes last either way, and what is equal is in the order of names.
    keyed.sort_by(|(a, one), (b, other)| {
        let turn = |order: Ordering| if descending { order.reverse() } else { order };
        let order = match (a, b) {
            (Some(a), Some(b)) => turn(a.cmp(b)),
            _ => b.is_some().cmp(&a.is_some()),
        };
        let by_name = one.cmp(other);
        order.then(if by == "symbol" { turn(by_name) } else { by_name })
    });
    keyed.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn a_list_is_sorted_by_exact_values_and_what_is_not_known_comes_last() {
    let (_exchange, marketd) = quiet();
    let addr = marketd.addr();
    for (target, member) in LISTS {
        for by in ["symbol", "last", "percentage", "quoteVolume"] {
            for (order, descending) in [("asc", false), ("desc", true)] {
                let expected = sorted(addr, target, member, by, descending);
                let asked = format!("{target}sort={by}&order={order}");
                let answer = get(addr, &asked);
                let found = rows(&answer, member);
                assert_eq!(names(&found), expected, "{asked}");
                assert_eq!(total(&answer), expected.len());
                assert_eq!(answer.header("Link"), None);
                let top = get(addr, &format!("{asked}&limit=20"));
                assert_eq!(names(&rows(&top, member)), expected[..expected.len().min(20)]);
                assert_eq!(total(&top), expected.len());
            }
        }
        // Each row is that of the whole list.
        let all = rows(&get(addr, target), member);
        let answer = get(addr, &format!("{target}order=asc"));
        assert_eq!(rows(&answer, member), all, "{target}");
    }
}

#[test]
fn the_links_lead_through_the_whole_list_and_back() {
    let (_exchange, marketd) = quiet();
    let addr = marketd.addr();
    for (target, member) in LISTS {
        let whole = format!("{target}sort=quoteVolume&order=desc&search=U&x=%22%3C%C3%A4");
        let expected = rows(&get(addr, &whole), member);
        let first = format!("{whole}&limit=37");
        let mut at = first.clone();
        let (mut found, mut pieces) = (Vec::new(), Vec::new());
        loop {
            let answer = get(addr, &at);
            assert_eq!(total(&answer), expected.len());
            assert!(answer.header("Link").is_some_and(|it| it.contains("&x=%22%3C%C3%A4&")));
            found.extend(rows(&answer, member));
            pieces.push(at.clone());
            match link(&answer, "next", &at) {
                Some(next) => at = next,
                None => break,
            }
        }
        assert_eq!(found, expected, "{target}");
        let answer = get(addr, &at);
        assert_eq!(link(&answer, "last", &at).as_ref(), pieces.last());
        let head = head(addr, &at);
        assert_eq!(head.header("Link"), answer.header("Link"));
        assert_eq!(head.header("ETag"), answer.header("ETag"));
        for piece in pieces.iter().rev().skip(1) {
            at = link(&get(addr, &at), "prev", &at).expect("there is one before");
            let without = |target: &str| target.replace("&offset=0", "");
            assert_eq!(without(&at), without(piece));
        }
        let answer = get(addr, &at);
        assert_eq!(link(&answer, "prev", &at), None);
        let begin = link(&answer, "first", &at).expect("there is a first one");
        assert_eq!(get(addr, &begin).body, get(addr, &first).body);
        // Behind the end there is nothing, and the way back is said.
        let behind = get(addr, &format!("{first}&offset=1000000"));
        assert!(rows(&behind, member).is_empty());
        assert_eq!(link(&behind, "prev", &first), link(&behind, "last", &first));
    }
}

#[test]
fn a_search_finds_parts_of_symbols_in_any_case() {
    let symbols = ["BTC/USDT", "ETH/BTC", "ETH/USDT", "SOL/USDC", "WBTC/ETH"];
    let exchange = exchange_of(&symbols);
    let marketd = start(&config(&[source("fake", &exchange)]));
    let check = |search: &str, expected: &[&str]| {
        for (target, member) in [LISTS[0], LISTS[2]] {
            let target = format!("{target}search={search}");
            let answer = get(marketd.addr(), &target);
            assert_eq!(names(&rows(&answer, member)), expected, "{target}");
            assert_eq!(total(&answer), expected.len(), "{target}");
        }
    };
    check("btc", &["BTC/USDT", "ETH/BTC", "WBTC/ETH"]);
    check("usd", &["BTC/USDT", "ETH/USDT", "SOL/USDC"]);
    check("Eth%2fb", &["ETH/BTC"]);
    check("eth-usdt", &["ETH/USDT"]);
    check("ethusdt", &["ETH/USDT"]);
    check("+sol+", &["SOL/USDC"]);
    check("", &symbols);
    check("doge", &[]);
    check("%2a%00", &[]);
}

#[test]
fn a_tag_names_one_order_of_the_rows() {
    let exchange = exchange_of(&["A/USDT", "B/USDT", "C/USDT"]);
    let marketd = start(&config(&[source("fake", &exchange)]));
    let addr = marketd.addr();
    // These rows have no price in them, but prices decide their order.
    let target = "/api/ecosystem/market?sort=last&order=desc";
    let set = |prices: [&str; 3]| {
        let ids = ["AUSDT", "BUSDT", "CUSDT"].iter().zip(prices);
        let tickers: Vec<String> = ids.map(|(id, price)| ticker(id, price)).collect();
        exchange.set_tickers(&format!("[{}]", tickers.join(",")));
        let first = ["A/USDT", "B/USDT", "C/USDT"].into_iter().zip(prices);
        let mut first: Vec<_> = first.map(|(name, price)| (price.len(), price, name)).collect();
        first.sort();
        let expected: Vec<_> = first.iter().rev().map(|it| it.2).collect();
        await_answer(addr, target, |answer| names(answer.exact().items()) == expected)
    };
    let one = set(["1", "22", "333"]);
    let other = set(["333", "22", "1"]);
    assert_ne!(one.header("ETag"), other.header("ETag"));
    let again = set(["1", "22", "333"]);
    assert_eq!(again.body, one.body);
    let tag = again.header("ETag").expect("a tag");
    let unchanged = get_with(addr, target, &format!("If-None-Match: {tag}"));
    assert_eq!(unchanged.status, 304);
    assert_eq!(total(&unchanged), 3);
}
