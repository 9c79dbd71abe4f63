//! The test support, tested: a fake that cannot fail proves nothing.

use crate::support;

use std::collections::HashSet;
use std::time::{Duration, Instant};
use support::binance::{KLINES, MARKETS, TICKERS, TIME};
use support::daemon::TempDir;
use support::*;

const BODY: &str = r#"[{"symbol":"A","price":"1.50"},{"symbol":"B","price":"2"}]"#;

fn simple() -> FakeExchange {
    FakeExchange::table(vec![("/list", Reply::json(BODY)), ("/one?x=1", Reply::json("{}"))])
}

#[test]
fn a_table_answers_and_everything_asked_is_kept() {
    let exchange = simple();
    let mut client = Client::connect(exchange.addr());
    assert_eq!(client.get("/list?any=%2Fthing+here&b").text(), BODY);
    assert_eq!(client.get("/one?x=1").text(), "{}");
    assert_eq!(client.get("/one?x=2").status, 404);
    let asked = exchange.asked();
    assert_eq!(asked[0].path(), "/list");
    assert_eq!(asked[0].param("any").as_deref(), Some("/thing here"));
    assert_eq!(asked[0].param("b").as_deref(), Some(""));
    assert_eq!(asked[0].field("host"), Some("marketd"));
    assert!(asked.iter().all(|one| one.connection == 1 && one.at <= Instant::now()));
    assert_eq!((exchange.count("/list"), exchange.count("/one")), (1, 2));
    assert_eq!((exchange.connections(), exchange.connections_open()), (1, 1));
    drop(client);
    eventually(PATIENCE, || (exchange.connections_open() == 0).then_some(()));
    exchange.forget();
    assert_eq!(exchange.count("/list"), 0);
}

#[test]
fn requests_are_answered_in_a_row_and_head_has_no_body() {
    let exchange = simple();
    let answers = pipeline(exchange.addr(), &["/list", "/one?x=1", "/none", "/list"]);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 404, 200]);
    let answer = head(exchange.addr(), "/list");
    assert_eq!(answer.header("content-length"), Some(BODY.len().to_string().as_str()));
    assert!(answer.body.is_empty() && answer.header_lists("Connection", "CLOSE"));
}

/// What a client makes of one answer under a fault.
fn outcome(fault: Fault) -> Result<Response, ClientError> {
    let stalls = matches!(fault, Fault::Silence | Fault::HalfThen(End::Stall));
    let patience = if stalls { Duration::from_secs(2) } else { PATIENCE };
    let exchange = simple();
    exchange.fault(fault);
    let mut client = Client::connect(exchange.addr()).patience(patience);
    client.send_get("/list")?;
    client.read()
}

#[test]
fn faults_that_answer_answer_as_ordered() {
    let check = |fault: Fault, status: u16, body: &str| {
        let told = format!("{fault:?}");
        let answer = outcome(fault).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!((answer.status, answer.text()), (status, body), "{told}");
        answer
    };
    check(Fault::Chunked(vec![1, 7, 3]), 200, BODY);
    check(Fault::Chunked(vec![100_000]), 200, BODY);
    let answer = check(Fault::UntilClose, 200, BODY);
    assert_eq!(answer.header("Content-Length"), None);
    check(Fault::LengthOff(-1), 200, &BODY[..BODY.len() - 1]);
    check(Fault::BrokenJson, 200, &BODY[..BODY.len() / 2]);
    check(Fault::WrongType, 200, r#"{"unexpected":true}"#);
    check(Fault::EmptyList, 200, "[]");
    check(Fault::Drip(Duration::from_micros(10)), 200, BODY);
    check(Fault::Instead(Reply::status(503, "gone")), 503, "gone");
    assert_eq!(outcome(Fault::Status(418)).unwrap().status, 418);
    let answer = outcome(Fault::TooManyRequests(Some("7".to_string()))).unwrap();
    assert_eq!((answer.status, answer.header("Retry-After")), (429, Some("7")));
    let answer = outcome(Fault::TooManyRequests(None)).unwrap();
    assert_eq!((answer.status, answer.header("Retry-After")), (429, None));
}

#[test]
fn faults_that_break_an_answer_break_it_where_ordered() {
    let half = &BODY[..BODY.len() / 2];
    let check = |fault: Fault, expected: ClientError| {
        let told = format!("{fault:?}");
        assert_eq!(outcome(fault).unwrap_err(), expected, "{told}");
    };
    let (none, part) = (String::new(), half.to_string());
    check(Fault::Silence, ClientError::TimedOut(none.clone()));
    check(Fault::NoAnswer(End::Close), ClientError::Closed(none.clone()));
    check(Fault::NoAnswer(End::Reset), ClientError::Reset(none));
    check(Fault::HalfThen(End::Close), ClientError::Closed(part.clone()));
    check(Fault::HalfThen(End::Stall), ClientError::TimedOut(part));
    // A reset may overtake the bytes before it.
    assert!(matches!(outcome(Fault::HalfThen(End::Reset)), Err(ClientError::Reset(_))));
    check(Fault::LengthOff(5), ClientError::Closed(BODY.to_string()));
    assert!(matches!(outcome(Fault::NotHttp), Err(ClientError::Malformed(_))));
}

#[test]
fn huge_answers_are_as_long_as_ordered_and_json() {
    let exchange = simple();
    exchange.fault(Fault::HugeList(3_000_000));
    let answer = get(exchange.addr(), "/list");
    assert!((3_000_000..3_001_000).contains(&answer.body.len()), "{}", answer.body.len());
    let elements = answer.json().as_array().map_or(0, Vec::len);
    assert_eq!(elements % 2, 0);
    exchange.heal();
    exchange.fault(Fault::HugeItem(3_000_000));
    let answer = get(exchange.addr(), "/list");
    assert!(answer.exact()[0].text().is_some_and(|text| text.len() >= 3_000_000));
}

#[test]
fn faults_are_ordered_by_path_and_number_of_times() {
    let exchange = simple();
    exchange.fault_on("/one", Fault::Status(500));
    exchange.fault_times(2, Some("/list"), Fault::Status(503));
    exchange.fault_times(1, None, Fault::Status(429));
    let mut client = Client::connect(exchange.addr());
    let mut status = |target: &str| client.get(target).status;
    assert_eq!((status("/one"), status("/list"), status("/list")), (500, 503, 503));
    assert_eq!((status("/list"), status("/list"), status("/one")), (429, 200, 500));
    exchange.heal();
    assert_eq!(status("/one?x=1"), 200);
}

#[test]
fn a_refusing_exchange_comes_back_at_the_same_address() {
    let exchange = simple();
    let mut kept = Client::connect(exchange.addr());
    assert_eq!(kept.get("/list").status, 200);
    for _ in 0..20 {
        exchange.refuse();
        let refused = Client::try_connect(exchange.addr()).err().map(|fault| fault.kind());
        assert_eq!(refused, Some(std::io::ErrorKind::ConnectionRefused));
        exchange.open();
        assert_eq!(get(exchange.addr(), "/list").status, 200);
    }
    assert_eq!(kept.get("/list").status, 200, "open connections stay");
    exchange.cut();
    assert!(kept.read_to_close().is_ok_and(|rest| rest.is_empty()));
}

#[test]
fn an_exchange_that_hangs_up_resets_every_connection() {
    let exchange = simple();
    exchange.hang_up();
    match Client::try_connect(exchange.addr()) {
        Ok(mut client) => {
            let answer = client.send_get("/list").and_then(|()| client.read());
            assert!(matches!(answer, Err(ClientError::Reset(_))), "{answer:?}");
        }
        Err(fault) => assert_eq!(fault.kind(), std::io::ErrorKind::ConnectionReset),
    }
    assert_eq!((exchange.connections(), exchange.asked().len()), (1, 0));
    exchange.open();
    assert_eq!(get(exchange.addr(), "/list").status, 200);
}

#[test]
fn an_exchange_ends_at_once_whatever_its_connections_do() {
    let exchange = simple();
    exchange.fault_times(1, None, Fault::Drip(Duration::from_secs(3600)));
    exchange.fault_times(1, None, Fault::Silence);
    // Nobody reads this one, so its thread is stuck in the middle of sending.
    exchange.fault_times(1, None, Fault::HugeItem(50_000_000));
    let mut clients: Vec<Client> = Vec::new();
    for asked in 1..=3 {
        let mut client = Client::connect(exchange.addr());
        client.send_get("/list").unwrap();
        exchange.await_asked("/list", asked, PATIENCE);
        clients.push(client);
    }
    clients.push(Client::connect(exchange.addr()));
    let begin = Instant::now();
    drop(exchange);
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
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
fn made_up_markets_look_like_binance() {
    let binance = Binance::generated(3_500, 7);
    binance.set_time(ServerTime::Fixed(1_700_000_000_123));
    let body = get(binance.addr(), TICKERS);
    assert!((1_800_000..2_200_000).contains(&body.body.len()), "{} bytes", body.body.len());
    let tickers = body.exact();
    let listed = get(binance.addr(), MARKETS).exact();
    let names: HashSet<&str> =
        listed["symbols"].items().iter().filter_map(|m| m["symbol"].text()).collect();
    assert_eq!((tickers.items().len(), names.len()), (3_500, 3_500));
    for ticker in tickers.items() {
        assert_eq!(ticker.keys().len(), 21);
        assert!(ticker["symbol"].text().is_some_and(|name| names.contains(name)));
        let units =
            |key: &str| ticker[key].text().unwrap().replace('.', "").parse::<u64>().unwrap();
        let (low, high) = (units("lowPrice"), units("highPrice"));
        assert!(low > 0 && low <= units("lastPrice") && units("lastPrice") <= high, "{ticker}");
        assert!(low <= units("openPrice") && units("openPrice") <= high, "{ticker}");
        assert!(units("bidPrice") < units("askPrice") && units("volume") > 0, "{ticker}");
    }
    assert_eq!(get(binance.addr(), TICKERS).body, body.body, "the same at the same time");
    binance.set_time(ServerTime::Fixed(1_700_000_001_123));
    assert_ne!(get(binance.addr(), TICKERS).body, body.body, "another one a second later");
    let first = &binance.symbols()[0];
    assert_eq!(first, "BTC/USDT");
}

#[test]
fn made_up_candles_join_and_end_at_the_last_price() {
    let binance = Binance::generated(12, 7);
    let now = 1_700_000_030_000;
    binance.set_time(ServerTime::Fixed(now));
    for (interval, length) in [("1m", 60_000), ("1h", 3_600_000), ("1d", 86_400_000)] {
        let target = format!("{KLINES}?symbol=ETHUSDT&interval={interval}&limit=1000");
        let rows = get(binance.addr(), &target).exact();
        assert_eq!(rows.items().len(), 1000);
        for pair in rows.items().windows(2) {
            assert_eq!(pair[1][0], pair[0][0].integer().unwrap() + length);
            assert_eq!(pair[0][4], pair[1][1], "a close is the next open");
        }
        let ticker = get(binance.addr(), &format!("{TICKERS}?symbol=ETHUSDT")).exact();
        assert_eq!(rows[999][4], ticker["lastPrice"]);
        assert_eq!(rows[999][0].integer().unwrap(), now - now % length);
    }
    let ancient =
        get(binance.addr(), &format!("{KLINES}?symbol=ETHUSDT&interval=1d&startTime=0&limit=1"));
    assert_eq!(ancient.exact()[0][0], generated::FIRST_MS);
}

#[test]
fn candles_are_cut_as_binance_cuts_them() {
    let binance = Binance::empty();
    let rows: Vec<String> = (1..=9).map(|n| format!(r#"[{},"{n}.50"]"#, n * 10)).collect();
    binance.set_klines("AB", "1m", &format!("[{}]", rows.join(",")));
    let check = |query: &str, expected: &[i64]| {
        let answer = get(binance.addr(), &format!("{KLINES}?symbol=AB&interval=1m{query}"));
        let answer = answer.exact();
        let opens: Vec<i64> = answer.items().iter().filter_map(|row| row[0].integer()).collect();
        assert_eq!(opens, expected, "{query}");
    };
    check("", &[10, 20, 30, 40, 50, 60, 70, 80, 90]);
    check("&limit=2", &[80, 90]);
    check("&startTime=30&limit=2", &[30, 40]);
    check("&endTime=30&limit=2", &[20, 30]);
    check("&startTime=21&endTime=59", &[30, 40, 50]);
    check("&startTime=20&endTime=60&limit=2", &[20, 30]);
    check("&startTime=91", &[]);
    check("&startTime=50&endTime=40", &[]);
    let check = |query: &str, status: u16, code: i64| {
        let answer = get(binance.addr(), &format!("{KLINES}{query}"));
        assert_eq!(
            (answer.status, answer.exact()["code"].integer()),
            (status, Some(code)),
            "{query}"
        );
    };
    check("?interval=1m", 400, -1102);
    check("?symbol=AB", 400, -1102);
    check("?symbol=AB&interval=7m", 400, -1120);
    check("?symbol=NO&interval=1m", 400, -1121);
    check("?symbol=AB&interval=1m&limit=x", 400, -1100);
}

#[test]
fn tickers_are_asked_for_alone_in_a_list_and_with_patches() {
    let binance = Binance::generated(3, 1);
    binance.set_time(ServerTime::Fixed(1_700_000_000_000));
    let whole = get(binance.addr(), TICKERS).exact();
    let alone = get(binance.addr(), &format!("{TICKERS}?symbol=ETHUSDT")).exact();
    assert_eq!(alone, whole[1]);
    let some = get(binance.addr(), &format!("{TICKERS}?symbols=%5B%22BNBUSDT%22,%22BTCUSDT%22%5D"));
    assert_eq!(some.exact().items(), [whole[2].clone(), whole[0].clone()]);
    let unknown = get(binance.addr(), &format!("{TICKERS}?symbol=NO"));
    assert_eq!(
        (unknown.status, &unknown.exact()["code"]),
        (400, &Json::Number("-1121".to_string()))
    );
    binance.patch_ticker("ETHUSDT", "lastPrice", "1e999");
    let patched = get(binance.addr(), TICKERS);
    assert!(patched.text().contains(r#""lastPrice":1e999"#));
    assert_eq!(patched.exact()[1]["lastPrice"], Json::Number("1e999".to_string()));
    assert_eq!((&patched.exact()[0], &patched.exact()[2]), (&whole[0], &whole[2]));
    binance.unpatch();
    assert_eq!(get(binance.addr(), TICKERS).exact(), whole);
    assert_eq!(get(binance.addr(), TIME).text(), r#"{"serverTime":1700000000000}"#);
}

#[test]
fn recorded_bodies_are_served_byte_for_byte() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let binance = Binance::recorded(&fixtures);
    let mut seen = 0;
    for name in fixtures.names("binance.fetch") {
        let fixture = fixtures.load(&name);
        assert_eq!(fixture.exchange, "binance", "{name}");
        if fixture.path() == TIME {
            continue;
        }
        assert!(fixture.recorded && fixture.expected.is_some(), "{name}");
        assert_eq!(get(binance.addr(), fixture.target()).text(), fixture.body, "{name}");
        seen += 1;
    }
    assert!(seen >= 7, "{seen}");
}

/// A stand-in for the daemon that says where it listens, and what to do at SIGTERM.
fn stand_in(script: &str) -> Launch {
    let launch = Launch::new(&[]).program("/bin/sh");
    let path = launch.file("stand-in.sh", script);
    launch.arg(&path.to_string_lossy())
}

#[test]
fn a_process_is_started_heard_and_stopped() {
    let launch = stand_in(
        "trap 'echo bye; exit 7' TERM
         echo 'INFO ecosystem listening on http://127.0.0.1:4243' >&2
         echo \"INFO listening on http://127.0.0.1:4242 ($1 $2, $FOO, $MARKETD_SEED)\" >&2
         while :; do sleep 0.01; done",
    );
    let marketd = launch.env("FOO", "bar").start();
    assert_eq!(marketd.addr().to_string(), "127.0.0.1:4242");
    assert_eq!(marketd.ecosystem_addr().to_string(), "127.0.0.1:4243");
    assert!(marketd.log().contains("(--listen 127.0.0.1:0, bar, )"), "{}", marketd.log());
    assert!(marketd.rss_bytes() > 0 && marketd.open_fds() > 2);
    let dir = marketd.dir();
    assert!(dir.path().join("stand-in.sh").is_file());
    let finished = marketd.stop(PATIENCE);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "bye\n"));
    let path = dir.path().to_path_buf();
    drop(dir);
    assert!(!path.exists());
}

#[test]
fn a_process_that_ends_at_once_is_told_from_one_that_listens() {
    let finished = stand_in("echo 'bad flag' >&2; exit 2").try_start().err();
    let finished = finished.expect("it never listens");
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), "bad flag\n"));
    let finished = stand_in("echo \"$#\"; exit 0").run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "0\n"));
}

#[test]
fn the_built_binary_is_the_one_that_runs() {
    let finished = Marketd::run(&["--version"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn a_process_is_killed_when_it_is_let_go() {
    let marketd =
        stand_in("trap '' TERM; echo 'listening on http://[::1]:99' >&2; exec sleep 3600").start();
    assert_eq!(marketd.addr().to_string(), "[::1]:99");
    let proc = format!("/proc/{}", marketd.pid());
    assert!(std::path::Path::new(&proc).exists());
    drop(marketd);
    assert!(!std::path::Path::new(&proc).exists());
}

#[test]
fn temporary_directories_are_fresh_and_go_away() {
    let (one, two) = (TempDir::new(), TempDir::new());
    assert_ne!(one.path(), two.path());
    let path = one.path().to_path_buf();
    drop(one);
    assert!(!path.exists() && two.path().is_dir());
}

#[test]
fn waiting_ends_with_what_was_waited_for_or_with_the_deadline() {
    let mut looks = 0;
    let found = eventually(PATIENCE, || {
        looks += 1;
        (looks == 3).then_some("here")
    });
    assert_eq!((found, looks), ("here", 3));
    assert_eq!(poll_until(Duration::ZERO, || Some(1)), Some(1), "one look at least");
    assert_eq!(poll_until(Duration::from_millis(5), || None::<()>), None);
}

#[test]
fn a_relay_delays_holds_cuts_and_swallows() {
    let exchange = simple();
    let relay = Relay::start(exchange.addr());
    let mut client = Client::connect(relay.addr());
    assert_eq!(client.get("/list").text(), BODY);
    let late = Duration::from_millis(300);
    relay.set(Passage::Late(late));
    let begin = Instant::now();
    assert_eq!(client.get("/list").text(), BODY);
    assert!(begin.elapsed() >= late);
    relay.set(Passage::Held);
    client.send_get("/list").expect("it is open");
    assert!(client.is_silent_for(late));
    assert_eq!(exchange.count("/list"), 2);
    relay.set(Passage::Open);
    assert_eq!(client.read().expect("what was held").text(), BODY);
    relay.swallow_reply_to("GET /one");
    client.send_get("/one?x=1").expect("it is open");
    assert!(matches!(client.read(), Err(ClientError::Closed(_))));
    assert_eq!((exchange.count("/one"), relay.swallowed()), (1, 1));
    let mut client = Client::connect(relay.addr());
    assert_eq!(client.get("/one?x=1").text(), "{}");
    relay.set(Passage::Cut);
    assert!(client.send_get("/list").and_then(|()| client.read()).is_err());
    let mut client = Client::connect(relay.addr());
    assert!(client.send_get("/list").and_then(|()| client.read()).is_err());
    assert_eq!(exchange.count("/list"), 3);
    eventually(PATIENCE, || (exchange.connections_open() == 0).then_some(()));
}

#[test]
fn a_redis_is_killed_and_comes_back_with_what_it_saved() {
    let Some(mut redis) = Redis::start(&[]) else {
        return;
    };
    let ok = Answer::Text("OK".to_string());
    assert_eq!(redis.ask(&["SET", "a", "1"]), ok);
    let addr = redis.addr();
    redis.kill();
    assert!(redis.try_ask(&["PING"]).is_err());
    redis.run();
    assert_eq!(redis.addr(), addr);
    assert_eq!(redis.ask(&["GET", "a"]), Answer::Nil);
    assert_eq!(redis.ask(&["SET", "a", "2"]), ok);
    redis.save();
    redis.kill();
    redis.run();
    assert_eq!(redis.ask(&["GET", "a"]), Answer::Text("2".to_string()));
    assert_eq!(redis.ask(&["DEL", "a", "b"]).number(), Some(1));
    assert_eq!(redis.keys(), [""; 0]);
    assert!(matches!(redis.ask(&["NOTHING"]), Answer::Error(_)));
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
