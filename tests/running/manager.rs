//! What a service manager is told (sd_notify(3)), with a small one on a Unix datagram socket.

use crate::support::*;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The manager's end.
pub struct Manager(UnixDatagram);

impl Manager {
    /// One that listens on an abstract name, and its name in the environment.
    pub fn new() -> (Manager, String) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("marketd-test-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        let socket = UnixDatagram::bind_addr(&address).expect("a fresh name");
        (Manager(socket), format!("@{name}"))
    }

    /// The next message; `None` if there is none within this time.
    pub fn next_within(&self, within: Duration) -> Option<String> {
        let timeout = self.0.set_read_timeout(Some(within));
        timeout.expect("a timeout is no zero");
        let mut buffer = [0; 4096];
        let count = self.0.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
    }

    /// The next message that does not begin like this.
    #[track_caller]
    pub fn next_but(&self, others: &[&str]) -> String {
        loop {
            let message = self.next_within(PATIENCE).expect("a message");
            if !others.iter().any(|it| message.starts_with(it)) {
                return message;
            }
        }
    }
}

fn launch(name: &str) -> Launch {
    Launch::new(&["--data", ":memory:"]).env("NOTIFY_SOCKET", name)
}

#[test]
fn the_manager_is_told_of_begin_watchdog_and_end() {
    let (manager, name) = Manager::new();
    let marketd = launch(&name).env("WATCHDOG_USEC", "400000").start();
    assert_eq!(manager.next_but(&[]), "READY=1");
    let status = manager.next_but(&["WATCHDOG=1"]);
    assert!(status.starts_with("STATUS=") && status.contains("of 1 sources up"), "{status}");
    for _ in 0..3 {
        assert_eq!(manager.next_but(&["STATUS="]), "WATCHDOG=1");
    }
    // A loop that stands still tells nothing.
    marketd.signal("STOP");
    let limit = Duration::from_millis(400);
    while manager.next_within(Duration::from_millis(50)).is_some() {}
    assert_eq!(manager.next_within(limit), None);
    marketd.signal("CONT");
    assert_eq!(manager.next_but(&["STATUS="]), "WATCHDOG=1");
    marketd.signal("TERM");
    let stopping = manager.next_but(&["STATUS=", "WATCHDOG=1"]);
    assert!(stopping.starts_with("STOPPING=1"), "{stopping}");
    assert_eq!(marketd.await_end(PATIENCE).code, Some(0));
}

#[test]
fn a_service_that_stops_is_not_told_to_be_ready_again() {
    let (manager, name) = Manager::new();
    let marketd = launch(&name).start();
    let mut idle = Client::connect(marketd.addr());
    assert_eq!(idle.get("/health/live").status, 200);
    marketd.signal("TERM");
    while !manager.next_but(&[]).starts_with("STOPPING=1") {}
    // The idle client, which does not close its side, holds up the end.
    marketd.signal("HUP");
    marketd.await_log("not reloaded error=\"marketd is stopping\"", PATIENCE);
    drop(idle);
    assert_eq!(marketd.await_end(PATIENCE).code, Some(0));
    while let Some(message) = manager.next_within(Duration::from_millis(50)) {
        assert!(!message.contains("READY=1") && !message.contains("RELOADING=1"), "{message}");
    }
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    let dir = Launch::new(&[]);
    let path = dir.file("manager", "");
    std::fs::remove_file(&path).expect("it was made");
    let manager = Manager(UnixDatagram::bind(&path).expect("a fresh name"));
    let marketd = launch(&path.to_string_lossy())
        .env("WATCHDOG_USEC", "20000")
        .env("WATCHDOG_PID", "1")
        .start();
    assert_eq!(manager.next_but(&[]), "READY=1");
    get(marketd.addr(), "/health/live");
    assert!(manager.next_but(&[]).starts_with("STATUS="));
    marketd.signal("TERM");
    let stopping = manager.next_but(&["STATUS="]);
    assert!(stopping.starts_with("STOPPING=1"), "{stopping}");
}

#[test]
fn a_manager_that_takes_nothing_holds_up_nobody() {
    let (manager, name) = Manager::new();
    // Soon its queue is full.
    let marketd = launch(&name).env("WATCHDOG_USEC", "2000").start();
    for _ in 0..200 {
        assert_eq!(get(marketd.addr(), "/health/live").status, 200);
    }
    drop(manager);
    assert_eq!(get(marketd.addr(), "/health/live").status, 200);
    assert_eq!(marketd.stop(PATIENCE).code, Some(0));
}

#[test]
fn a_manager_whose_queue_is_full_is_told_later() {
    let (manager, name) = Manager::new();
    let other = UnixDatagram::unbound().expect("a socket");
    let address = manager.0.local_addr().expect("bound");
    other.connect_addr(&address).expect("it is there");
    other.set_nonblocking(true).expect("a socket");
    while other.send(b"X=1").is_ok() {}
    let marketd = launch(&name).start();
    assert_eq!(get(marketd.addr(), "/health/live").status, 200);
    // The initial state, and then a reload.
    for begin in ["READY=1", "RELOADING=1"] {
        if begin != "READY=1" {
            while other.send(b"X=1").is_ok() {}
            marketd.signal("HUP");
            marketd.await_log("config: reloaded", PATIENCE);
            assert_eq!(manager.next_but(&["STATUS="]), "X=1");
            let told = manager.next_but(&["X=1", "STATUS="]);
            assert!(told.starts_with(begin), "{told}");
        }
        assert_eq!(manager.next_but(&["X=1", "STATUS="]), "READY=1");
    }
    assert_eq!(marketd.stop(PATIENCE).code, Some(0));
}

#[test]
fn what_came_during_a_pause_is_read_before_deadlines_are_judged() {
    let exchange = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = exchange.local_addr().expect("bound");
    let source = json!({
        "id": "x",
        "dialect": "binance",
        "url": format!("http://{address}"),
        "symbols": ["BTC/USDT"],
        "timeoutMs": 2000,
    });
    let marketd = Marketd::with_config(json!({
        "data": ":memory:",
        "sources": [source],
        "limits": { "idleTimeoutMs": 2000, "headTimeoutMs": 2000 },
    }));
    // More than one call of the poller returns. Every second one has begun a request.
    let mut clients: Vec<Client> = (0..300).map(|_| Client::connect(marketd.addr())).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.get("/health/live").status, 200);
        let head = if at % 2 == 0 { "GET /health/live HTTP/1.1\r\n" } else { "" };
        client.send(head).expect("it is connected");
    }
    let (mut request, _) = exchange.accept().expect("it asks");
    let asked = request.read(&mut [0; 1024]);
    assert!(asked.is_ok_and(|count| count > 0));
    marketd.signal("STOP");
    request.write_all(b"HTTP/1.1 418 No\r\nContent-Length: 0\r\n\r\n").expect("it is connected");
    for (at, client) in clients.iter_mut().enumerate() {
        let rest = if at % 2 == 0 {
            "Host: x\r\n\r\n"
        } else {
            "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
        };
        client.send(rest).expect("it is connected");
    }
    let begun = Instant::now();
    eventually(PATIENCE, || (begun.elapsed() > Duration::from_millis(2200)).then_some(()));
    marketd.signal("CONT");
    for client in &mut clients {
        assert_eq!(client.read().expect("an answer").status, 200);
    }
    let failure = marketd.await_log("what=\"market list\" failures=1", PATIENCE);
    assert!(failure.contains("418"), "{failure}");
}

#[test]
fn a_request_that_came_before_the_signal_is_answered() {
    let marketd = Launch::new(&["--data", ":memory:"]).start();
    let mut clients: Vec<Client> = (0..50).map(|_| Client::connect(marketd.addr())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/health/live").status, 200);
    }
    // While it stands still, both arrive. Every second client sends no more, every third connects anew.
    marketd.signal("STOP");
    for (at, client) in clients.iter_mut().enumerate() {
        if at % 3 == 0 {
            *client = Client::connect(marketd.addr());
        }
        client.send_get("/health/live").expect("it is connected");
        if at % 2 == 0 {
            client.finish();
        }
    }
    marketd.signal("TERM");
    marketd.signal("CONT");
    for client in &mut clients {
        let answer = client.read().expect("an answer");
        assert_eq!(answer.status, 200);
        // Then the connection ends, as one between two requests does.
        client.finish();
        assert!(client.read_to_close().is_ok_and(|rest| rest.is_empty()));
    }
    assert_eq!(marketd.await_end(PATIENCE).code, Some(0));
}
