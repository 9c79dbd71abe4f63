//! What tests ask a daemon again and again.

use super::{Json, LONG, Marketd, Response, get, poll_until};
use std::net::SocketAddr;

/// Waits until an answer to `target` is as wanted.
#[track_caller]
pub fn await_answer(
    addr: SocketAddr,
    target: &str,
    wanted: impl Fn(&Response) -> bool,
) -> Response {
    let caller = std::panic::Location::caller();
    let mut last = None;
    let found = poll_until(LONG, || {
        let answer = get(addr, target);
        last = Some(answer.clone());
        wanted(&answer).then_some(answer)
    });
    match (found, last) {
        (Some(answer), _) => answer,
        (None, last) => {
            let last = last.map(|answer| (answer.status, answer.text().to_string()));
            panic!("{caller}: {target} never was as wanted; the last answer: {last:?}")
        }
    }
}

/// Waits until health says so.
#[track_caller]
pub fn await_health(marketd: &Marketd, status: &str) -> Json {
    let caller = std::panic::Location::caller();
    let mut last = String::new();
    let found = poll_until(LONG, || {
        let answer = get(marketd.addr(), "/health");
        last = answer.text().to_string();
        Some(answer.exact()).filter(|health| health["status"] == status)
    });
    found.unwrap_or_else(|| panic!("{caller}: health never said {status}, but {last}"))
}

/// The answer to `target` in all its digits; panics unless it is a 200.
#[track_caller]
pub fn read(addr: SocketAddr, target: &str) -> Json {
    let answer = get(addr, target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.exact()
}

/// The value of a sample in the text of the metrics, by its name with its labels.
#[track_caller]
pub fn sample<'a>(page: &'a str, name: &str) -> &'a str {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {page}"))
}

/// The same, of one that counts.
#[track_caller]
pub fn count(page: &str, name: &str) -> u64 {
    sample(page, name).parse().expect("a whole number")
}

/// The counters.
#[track_caller]
pub fn metrics(marketd: &Marketd) -> Json {
    read(marketd.addr(), "/api/v1/metrics")
}
