//! What a service manager is told (sd_notify(3)), with a small one on a Unix datagram socket.

use crate::support::*;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    marketd.await_log("not reloaded error=", PATIENCE);
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
