//! Answers that are packed, and what is told of those that cannot be unpacked.

use crate::loopback::hostile::for_each;
use crate::loopback::setup::*;
use crate::support::binance::TICKERS;
use crate::support::*;

/// A list of tickers, packed in this way and said to be.
pub fn packed(bytes: Vec<u8>, coding: &str) -> Fault {
    Fault::Instead(Reply::json(bytes).field("Content-Encoding", coding))
}

/// A list of one ticker.
pub fn list() -> Vec<u8> {
    format!("[{}]", binance::ticker("BTCUSDT", "2.5")).into_bytes()
}

const INCOMPLETE: &str =
    "malformed answer: the gzip data is cut short, or its checksum or length is wrong";

/// Damaged, or packed in what cannot be unpacked: what came, and what is told of it.
pub fn unreadable() -> Vec<(Fault, &'static str)> {
    let whole = gzip(&list());
    let damaged = |from_end: usize| {
        let mut bytes = whole.clone();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        bytes
    };
    let in_vain = |name: &str, told| (packed(whole.clone(), name), told);
    let mut cases = vec![
        in_vain("br", "the answer is encoded in \"br\", which cannot be read here"),
        in_vain("gzip, br", "the answer is encoded in \"gzip, br\", which cannot be read here"),
        in_vain("gzip, gzip", "the answer is encoded in \"gzip, gzip\", which cannot be read here"),
    ];
    let gzip_cases = [
        (Vec::new(), INCOMPLETE),
        (damaged(8), INCOMPLETE),
        (damaged(4), INCOMPLETE),
        (list(), "malformed answer: invalid gzip header"),
    ];
    let said = |(bytes, told)| (packed(bytes, "gzip"), told);
    cases.extend(gzip_cases.into_iter().map(said));
    cases
}

#[test]
fn the_status_of_an_error_counts_whatever_its_body_is_packed_in() {
    let message = r#"{"code":-1003,"msg":"Way too much request weight used."}"#;
    let error = |status| Reply::status(status, message);
    let said = |status, bytes: Vec<u8>, coding| {
        Reply::status(status, bytes).field("Content-Encoding", coding)
    };
    let page = b"<html><body>Attention Required!</body></html>".repeat(1000);
    let mut torn = gzip(message.as_bytes());
    torn.truncate(30);
    let told = |status: u16| format!("quotes: status {status}: ");
    let cases = vec![
        (error(400).gzipped(), told(400)),
        (error(418).gzipped(), told(418)),
        (error(429).gzipped(), told(429)),
        (said(429, b"xyz".to_vec(), "br"), "quotes: status 429".into()),
        (said(403, gzip(&page), "gzip"), "quotes: status 403".into()),
        (said(503, torn, "gzip"), "quotes: status 503".into()),
        (said(503, page, "gzip"), "quotes: status 503".into()),
        (said(503, Vec::new(), "gzip"), "quotes: status 503".into()),
    ];
    for_each(cases, |(reply, expected)| {
        let (exchange, marketd) = polled(&["BTC/USDT"]);
        // By the status, or by the words that were read whatever it is.
        let limited = matches!(reply.status, 403 | 418 | 429) || expected.ends_with(": ");
        let reply = reply.clone().field("Retry-After", "1");
        exchange.fault_times(1, Some(TICKERS), Fault::Instead(reply.clone()));
        eventually(LONG, || (upstream(&marketd, "errors") >= 1).then_some(()));
        let told = last_error(&marketd);
        assert!(told.starts_with(expected.as_str()), "{told}, not {expected}");
        let read = told.contains("Way too much request weight");
        assert_eq!(read, expected.ends_with(": "), "{told}");
        assert_eq!(upstream(&marketd, "rateLimited"), i64::from(limited), "{told}");
        await_health(&marketd, "ok");
    });
}
