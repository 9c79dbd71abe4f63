//! Lists by the piece: `sort`, `order`, `limit`, `offset`, `search`; their counts and links.

use crate::loopback::setup::*;
use crate::support::*;

/// A number with its digits as a whole number of 10^-18.
fn number(value: &Json) -> Option<i128> {
    let text = value.text()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= 18, "{text}");
    format!("{whole}{fraction:0<18}").parse().ok()
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
    let marketd = polling(&exchange);
    await_polls(&marketd, 2);
    silence(&exchange);
    (exchange, marketd)
}

/// The simulation judges the order of rows that show what they are sorted by (`tests/sim/lists.rs`). These do
/// not: they are expected in the order of the quotes' values.
#[test]
fn a_list_is_sorted_by_exact_values_and_what_is_not_known_comes_last() {
    let (_exchange, marketd) = quiet();
    let addr = marketd.addr();
    let quotes = read(addr, "/api/v1/quotes?symbols=*")["quotes"].items().to_vec();
    for (by, descending) in
        ["last", "percentage", "quoteVolume"].into_iter().flat_map(|by| [(by, false), (by, true)])
    {
        let mut expected = quotes.clone();
        // What is equal is in the order of names, which the quotes have.
        expected.sort_by(|one, other| match (number(&one[by]), number(&other[by])) {
            (Some(one), Some(other)) if descending => other.cmp(&one),
            (Some(one), Some(other)) => one.cmp(&other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
        let order = if descending { "desc" } else { "asc" };
        let answer = get(addr, &format!("/api/ecosystem/market?sort={by}&order={order}"));
        assert_eq!(names(answer.exact().items()), names(&expected), "{by} {order}");
        assert_eq!(total(&answer), expected.len());
        assert_eq!(answer.header("Link"), None);
    }
}

#[test]
fn a_tag_names_one_order_of_the_rows() {
    let (exchange, marketd) = polled(&["A/USDT", "B/USDT", "C/USDT"]);
    let addr = marketd.addr();
    // These rows have no price in them, but prices decide their order.
    let target = "/api/ecosystem/market?sort=last&order=desc";
    let set = |prices: [&str; 3]| {
        let ids = ["AUSDT", "BUSDT", "CUSDT"].into_iter().zip(prices);
        exchange.set_prices(&ids.collect::<Vec<_>>());
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
