//! Unix sockets, and sockets that were passed to the process.

use crate::support::*;
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

/// Asks for `/health/live` over a Unix socket, with these fields, and returns all that comes.
fn ask(path: &Path, fields: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is no zero");
    let request =
        format!("GET /health/live HTTP/1.1\r\nHost: x\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    answer
}

fn launch() -> Launch {
    Launch::new(&["--data", ":memory:"])
}

/// An address to listen on, by this flag: a socket of this name in the directory of that daemon.
fn at(launch: Launch, flag: &str, name: &str) -> (Launch, std::path::PathBuf) {
    let path = launch.file(name, "");
    std::fs::remove_file(&path).expect("it was made");
    let address = format!("unix:{}", path.display());
    (launch.arg(flag).arg(&address), path)
}

#[test]
fn a_unix_socket_serves_its_group_and_is_removed_at_the_end() {
    let (launch, path) = at(launch().arg("--log").arg("access=info"), "--listen", "api.sock");
    let marketd = launch.start_until("listening on unix:");
    let mode = std::fs::metadata(&path).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o660);
    assert!(ask(&path, "").starts_with("HTTP/1.1 200"));
    marketd.await_log("access: peer=- method=GET", PATIENCE);
    // Who may connect is a front end, which says whom it asks for.
    ask(&path, "X-Forwarded-For: 192.0.2.7\r\n");
    marketd.await_log("access: peer=192.0.2.7 method=GET", PATIENCE);
    let dir = marketd.dir();
    assert_eq!(marketd.stop(PATIENCE).code, Some(0));
    assert!(!path.exists(), "{dir:?}");
}

#[test]
fn the_ecosystem_may_have_a_unix_socket_beside_an_address() {
    let (launch, path) = at(launch(), "--ecosystem-listen", "eco.sock");
    let marketd = launch.start();
    assert_eq!(get(marketd.addr(), "/health/live").status, 200);
    assert_eq!(get(marketd.addr(), "/api/ecosystem/market").status, 404);
    assert!(ask(&path, "").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_socket_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_not() {
    let (dead, path) = at(launch(), "--listen", "api.sock");
    drop(UnixListener::bind(&path).expect("a fresh name"));
    assert!(path.exists(), "nobody has removed it");
    let live = dead.start_until("listening on unix:");
    let second = Launch::new(&["--data", ":memory:", "--listen"]);
    let address = format!("unix:{}", path.display());
    let refused = second.arg(&address).run();
    let expected = format!(
        "marketd: listen: cannot listen on {address}: a running process listens there \
         (--listen names another address)"
    );
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    // The one that was refused has taken nothing away.
    assert!(ask(&path, "").starts_with("HTTP/1.1 200"));
    drop(live);
    let file = Launch::new(&["--data", ":memory:", "--listen"]);
    let path = file.file("notes.txt", "mine");
    let refused = file.arg(&format!("unix:{}", path.display())).run();
    assert!(refused.stderr.contains("is not a socket"), "{refused:?}");
    assert_eq!(refused.code, Some(2));
}

#[test]
fn all_addresses_of_ipv6_are_those_of_ipv4_too() {
    let marketd = launch().arg("--listen").arg("[::]:0").start();
    let port = marketd.addr().port();
    assert_eq!(get(([127, 0, 0, 1], port).into(), "/health/live").status, 200);
}

/// The binary with these sockets as its descriptors from 3 on, and these variables.
fn passed(sockets: &[&dyn AsFd], variables: &str, args: &[&str]) -> Launch {
    let mut redirects = String::new();
    for (at, socket) in sockets.iter().enumerate() {
        let socket = socket.as_fd();
        fcntl_setfd(socket, FdFlags::empty()).expect("it is open");
        redirects += &format!(" {}<&{}", 3 + at, socket.as_raw_fd());
    }
    let script = format!("{variables} exec \"$@\"{redirects}");
    let marketd = env!("CARGO_BIN_EXE_marketd");
    let words = ["-c", &script, "bash", marketd, "--data", ":memory:"];
    Launch::new(&[&words, args].concat()).program("bash")
}

/// A socket with a number that is above those of the redirects, which would replace it.
fn above<T: AsFd>(make: impl Fn() -> T) -> T {
    let mut below = Vec::new();
    loop {
        let socket = make();
        if socket.as_fd().as_raw_fd() > 9 {
            return socket;
        }
        below.push(socket);
    }
}

fn bound() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

#[test]
fn passed_sockets_take_the_place_of_those_that_are_configured() {
    let dir = Launch::new(&[]);
    let path = dir.file("passed.sock", "");
    let unix = above(|| {
        let _ = std::fs::remove_file(&path);
        UnixListener::bind(&path).expect("a fresh name")
    });
    let tcp = above(bound);
    let variables = "LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=ecosystem:web";
    let args = ["--listen", "127.0.0.1:1", "--ecosystem-listen", "127.0.0.1:2"];
    let marketd = passed(&[&unix, &tcp], variables, &args).start();
    assert_eq!(Some(marketd.addr()), tcp.local_addr().ok());
    assert_eq!(get(marketd.addr(), "/api/v1/categories").status, 200);
    assert!(ask(&path, "").starts_with("HTTP/1.1 200"));
    let log = marketd.await_log("ecosystem listening on unix:", PATIENCE);
    assert!(log.contains("passed.sock"), "{log}");
    // It is not ours to remove.
    marketd.stop(PATIENCE);
    assert!(path.exists());
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let tcp = above(bound);
    let marketd = passed(&[&tcp], "LISTEN_PID=1 LISTEN_FDS=1", &[]).start();
    assert_ne!(Some(marketd.addr()), tcp.local_addr().ok());
}

#[test]
fn what_cannot_be_listened_on_is_told_by_its_number() {
    let refuse = |sockets: &[&dyn AsFd], count: usize, expected: &str| {
        let variables = format!("LISTEN_PID=$$ LISTEN_FDS={count}");
        let refused = passed(sockets, &variables, &[]).run();
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    };
    let tcp = above(bound);
    let datagram = above(|| UnixDatagram::unbound().expect("a socket"));
    let connected = above(|| UnixStream::pair().expect("two sockets").0);
    let stream = "socket 4 of LISTEN_FDS: expected a stream socket";
    refuse(&[&tcp, &datagram], 2, stream);
    refuse(&[&connected], 1, "socket 3 of LISTEN_FDS: it does not listen");
    let file = std::fs::File::open("/dev/null").expect("it is everywhere");
    let file = above(|| file.try_clone().expect("it can be opened again"));
    refuse(&[&file], 1, "socket 3 of LISTEN_FDS: expected a socket");
    refuse(&[&tcp], 99, "LISTEN_FDS: expected a number from 0 to 8");
}
