//! The table over real sockets, against the built binary: the same answers, also to a client that
//! has shut its side before it reads them.

use crate::requests::answers::{Answer, read_answers};
use crate::requests::bench::{show, tag_in};
use crate::requests::table::{Row, TAGGED, table};
use crate::support::{Client, Marketd, PATIENCE, count, eventually, get};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A daemon with these settings whose only exchange cannot be reached.
fn start(mut settings: serde_json::Value) -> Marketd {
    let source = json!({
        "id": "gone",
        "dialect": "binance",
        "url": "http://127.0.0.1:1",
        "symbols": ["BTC/USDT"],
    });
    settings["sources"] = json!([source]);
    settings["data"] = json!(":memory:");
    Marketd::with_config(settings)
}

fn tag(addr: SocketAddr) -> Vec<u8> {
    let answer = get(addr, TAGGED);
    tag_in(&format!("ETag: {}", answer.header("ETag").expect("it has a tag")))
}

/// Sends these pieces, each in a packet of its own, and reads until the server closes.
fn talk<'a>(
    addr: SocketAddr,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Answer>, String> {
    let mut client = Client::connect(addr);
    for piece in pieces {
        // Nothing more is taken of a connection that has ended; its answer can be read all the same.
        if client.send(piece).is_err() {
            break;
        }
    }
    client.finish();
    let read = client.read_to_close().map_err(|fault| fault.to_string())?;
    read_answers(&read)
}

/// What a row expects, but for the word of the connection: whether it stays open cannot be seen by
/// a client that has shut its side.
fn without_end(expected: &str) -> &str {
    let ends = [", open", ", shut", "open"];
    ends.iter().find_map(|end| expected.strip_suffix(end)).unwrap_or(expected)
}

fn summary(answers: &[Answer]) -> String {
    let words: Vec<String> = answers.iter().map(Answer::summary).collect();
    words.join(", ")
}

#[test]
fn every_row_is_answered_over_a_socket_as_it_is_at_the_desk() {
    let marketd = start(json!({}));
    let tag = tag(marketd.addr());
    let check = |row: &Row, bytes: &[u8], size: usize| {
        let answers = talk(marketd.addr(), bytes.chunks(size));
        let answers = answers.unwrap_or_else(|fault| panic!("{fault}: {}", show(bytes)));
        assert_eq!(summary(&answers), without_end(row.expected), "{}", show(bytes));
        let closes = answers.last().is_some_and(|last| last.closes);
        assert_eq!(closes, row.expected.ends_with("shut"), "{}", show(bytes));
    };
    for row in table() {
        let bytes = row.bytes_with_tag(&tag);
        check(&row, &bytes, bytes.len());
        // A client that has asked for the end and sends on may reset its own answer.
        let is_error = row.expected.rsplit_once(", ").is_some_and(|(answers, _)| {
            let last = answers.rsplit(", ").next().unwrap_or_default();
            last.contains("bad_request") || last.starts_with('5') || last.starts_with("41")
        });
        if is_error || !row.expected.ends_with("shut") {
            check(&row, &bytes, 1);
        }
    }
    let counted = get(marketd.addr(), "/api/v1/metrics");
    assert_eq!(counted.exact()["http"]["inFlight"], 0, "{}", counted.text());
}

#[test]
fn every_connection_of_a_flood_is_taken_in_however_few_a_turn_takes() {
    let marketd = start(json!({ "limits": { "acceptsPerTurn": 1 } }));
    let mut flood: Vec<Client> = (0..100).map(|_| Client::connect(marketd.addr())).collect();
    // What waits in the queue brings its request along.
    for client in &mut flood {
        client.send_get("/health/live").expect("it is connected");
    }
    for client in flood.iter_mut().rev() {
        assert_eq!(client.read().expect("an answer").status, 200);
    }
}

#[test]
fn a_flood_at_one_listener_keeps_nobody_out_of_another() {
    let limits = json!({ "acceptsPerTurn": 1 });
    let marketd = start(json!({ "ecosystemListen": "127.0.0.1:0", "limits": limits }));
    let ecosystem = marketd.ecosystem_addr();
    marketd.signal("STOP");
    let mut flood: Vec<Client> = (0..200).map(|_| Client::connect(marketd.addr())).collect();
    for client in &mut flood {
        client.send_get("/health/live").expect("it is connected");
    }
    let mut other = Client::connect(ecosystem);
    other.send_get("/metrics").expect("it is connected");
    marketd.signal("CONT");
    let answer = other.read().expect("an answer");
    let before = count(answer.text(), "marketd_http_connections_total");
    assert!(before < 100, "{before} connections came before it");
}

/// Connections that were taken in, without the one that asks.
fn taken(client: &mut Client) -> u64 {
    count(client.get("/metrics").text(), "marketd_http_connections_total") - 1
}

#[test]
fn a_silent_connection_is_taken_in_at_once_or_after_a_second() {
    let cookies = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_syncookies");
    let has_cookies = cookies.is_ok_and(|it| it.trim() != "0");
    if !has_cookies {
        eprintln!("SKIPPED: without SYN cookies, no connection is held back");
    }
    for defers in [true, false] {
        let marketd = start(json!({ "deferAccept": defers }));
        let mut client = Client::connect(marketd.addr());
        assert_eq!(taken(&mut client), 0);
        let begun = Instant::now();
        let _silent = Client::connect(marketd.addr());
        // One that speaks is not held up by it.
        assert_eq!(Client::connect(marketd.addr()).get("/health/live").status, 200);
        let with_speaker = taken(&mut client);
        let is_soon = begun.elapsed() < Duration::from_millis(500);
        if defers && has_cookies && is_soon {
            assert_eq!(with_speaker, 1, "the kernel holds the silent one back");
        }
        eventually(PATIENCE, || (taken(&mut client) == 2).then_some(()));
    }
}
