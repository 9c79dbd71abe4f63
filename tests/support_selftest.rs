//! The test support, tested where nobody would notice that it is wrong: a fault that is none, a client
//! that takes what is no answer, a process that outlives its test. What else it does, the tests that use it
//! show.

use crate::support::*;
use std::collections::HashSet;
use std::time::Duration;

const BODY: &str = r#"[{"symbol":"A","price":"1.50"},{"symbol":"B","price":"2"}]"#;

fn simple() -> FakeExchange {
    FakeExchange::start(|_| Reply::json(BODY))
}

/// What a client makes of one answer under a fault.
fn outcome(fault: Fault) -> Result<Response, ClientError> {
    let stalls = matches!(fault, Fault::Silence | Fault::HalfThen(End::Stall));
    let patience = if stalls { Duration::from_millis(500) } else { PATIENCE };
    let exchange = simple();
    exchange.fault(fault);
    let mut client = Client::connect(exchange.addr()).patience(patience);
    client.send_get("/list")?;
    client.read()
}

/// The usual answer with its end told in this way.
fn framed(framing: Framing) -> Fault {
    Fault::Instead(Reply::json(BODY).framed(framing))
}

#[test]
fn faults_do_to_an_answer_what_is_ordered() {
    let check = |fault: Fault, expected: Result<(u16, &str), ClientError>| {
        let told = format!("{fault:?}");
        let found = outcome(fault);
        let found = found.as_ref().map(|answer| (answer.status, answer.text()));
        assert_eq!(found, expected.as_ref().copied(), "{told}");
    };
    check(framed(Framing::Chunked(vec![1, 7, 3])), Ok((200, BODY)));
    check(framed(Framing::Chunked(vec![100_000])), Ok((200, BODY)));
    check(framed(Framing::LengthOff(-1)), Ok((200, &BODY[..BODY.len() - 1])));
    check(framed(Framing::LengthOff(5)), Err(ClientError::Closed(BODY.to_string())));
    check(Fault::EmptyList, Ok((200, "[]")));
    check(Fault::Slowly { bytes: 1, pause: Duration::from_micros(10) }, Ok((200, BODY)));
    check(Fault::Instead(Reply::status(503, "gone")), Ok((503, "gone")));
    let (none, half) = (String::new(), BODY[..BODY.len() / 2].to_string());
    check(Fault::Silence, Err(ClientError::TimedOut(none.clone())));
    check(Fault::NoAnswer(End::Close), Err(ClientError::Closed(none.clone())));
    check(Fault::NoAnswer(End::Reset), Err(ClientError::Reset(none)));
    check(Fault::HalfThen(End::Close), Err(ClientError::Closed(half.clone())));
    check(Fault::HalfThen(End::Stall), Err(ClientError::TimedOut(half)));
    // A reset may overtake the bytes before it.
    assert!(matches!(outcome(Fault::HalfThen(End::Reset)), Err(ClientError::Reset(_))));
    let answer = outcome(Fault::UntilClose).unwrap();
    assert_eq!((answer.text(), answer.header("Content-Length")), (BODY, None));
    assert_eq!(outcome(Fault::Status(418)).unwrap().status, 418);
    for after in [Some("7"), None] {
        let answer = outcome(Fault::TooManyRequests(after.map(str::to_string))).unwrap();
        assert_eq!((answer.status, answer.header("Retry-After")), (429, after));
    }
}

#[test]
fn the_client_takes_no_answer_that_is_not_right() {
    let check = |bytes: &str, expected: Result<&str, &str>| {
        let raw = Reply::json("").delivered(Delivery::Raw(bytes.as_bytes().to_vec()));
        let exchange = FakeExchange::start(move |_| raw.clone());
        let mut client = Client::connect(exchange.addr());
        let answer = client.send_get("/").and_then(|()| client.read());
        let seen = match &answer {
            Ok(response) => Ok(response.text()),
            Err(ClientError::TimedOut(_)) => Err("timed out"),
            Err(ClientError::Closed(_)) => Err("closed"),
            Err(ClientError::Reset(_)) => Err("reset"),
            Err(ClientError::Malformed(_)) => Err("malformed"),
        };
        assert_eq!(seen, expected, "{bytes:?}: {answer:?}");
    };
    let bad = Err("malformed");
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", Ok("[]"));
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Ok(""));
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n[]\r\n0\r\nX: y\r\n\r\n",
        Ok("[]"),
    );
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", Ok(""));
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[]", Err("closed"));
    check("HTTP/1.1 200 OK\nContent-Length: 2\n\n[]", Err("closed"));
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n[]", bad);
    check("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n[]", bad);
    check("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", bad);
    check("HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n[]", bad);
    check("HTTP/1.1 200 OK\r\nX: a\nb\r\nContent-Length: 2\r\n\r\n[]", bad);
    check("HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n[]", bad);
    check("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n[]", bad);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]X\r\n0\r\n\r\n", bad);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", bad);
}

#[test]
fn a_process_is_killed_when_it_is_let_go() {
    // A stand-in for the daemon that says where it listens, and stays at SIGTERM.
    let script = "trap '' TERM; echo 'listening on http://[::1]:99' >&2; exec sleep 3600";
    let marketd = Launch::new(&["-c", script, "stand-in"]).program("/bin/sh").start();
    assert_eq!(marketd.addr().to_string(), "[::1]:99");
    let proc = format!("/proc/{}", marketd.pid());
    assert!(std::path::Path::new(&proc).exists());
    drop(marketd);
    assert!(!std::path::Path::new(&proc).exists());
}

#[test]
fn chance_is_the_same_for_the_same_seed() {
    let draw = |seed: u64| {
        let mut rng = Rng::new(seed);
        (0..100).map(|_| rng.next()).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let mut rng = Rng::new(3);
    let faces: HashSet<i64> = (0..200).map(|_| rng.between(-2, 3)).collect();
    assert_eq!(faces, HashSet::from([-2, -1, 0, 1, 2, 3]));
    assert!((0..100).all(|_| rng.below(1) == 0 && rng.chance(1, 1) && !rng.chance(0, 1)));
    let mut order: Vec<u32> = (0..50).collect();
    rng.shuffle(&mut order);
    assert_ne!(order, (0..50).collect::<Vec<_>>());
    assert_eq!(order.iter().copied().collect::<HashSet<_>>().len(), 50);
}

#[test]
fn the_json_tree_keeps_digits_and_order_and_takes_no_key_twice() {
    let text = r#"{"z":64123.450,"a":[1e999,"x\n",null,true],"é":{}}"#;
    let json = Json::parse(text).unwrap();
    assert_eq!(json.to_string(), text);
    assert_eq!(json["z"].text(), Some("64123.450"));
    assert_eq!((json.keys(), json["a"][1] == "x\n"), (vec!["z", "a", "é"], true));
    assert!(Json::parse(r#"{"a":1,"b":{"c":1,"c":2}}"#).is_err());
    assert!(Json::parse("[1] 2").is_err() && Json::parse("NaN").is_err());
}
