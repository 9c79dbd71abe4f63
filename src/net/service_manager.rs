//! The service manager: the listening sockets that it has opened and passed on (sd_listen_fds(3)), and what
//! it is told of the state of marketd (sd_notify(3)).
//!
//! Passed sockets replace the configured listeners. Sockets with the name `ecosystem` (`FileDescriptorName=`)
//! serve the ecosystem, and all others serve the rest. If no socket has this name, all sockets serve
//! everything.
//!
//! [`Notifier`] owns the address that `NOTIFY_SOCKET` names, and the time of the next message. Messages are
//! sent from the loop: if the loop hangs, the watchdog gets none. While the manager's queue is full, all
//! messages wait. Without `NOTIFY_SOCKET` nothing is sent.

use crate::core::Service;
use crate::log_targets::{NET, quoted};
use crate::time::{Clock, Mono};
use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Domain, SockAddr, Socket, Type};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use std::{
    env,
    io::{self, ErrorKind},
};

/// The first of the passed descriptors.
const FIRST: RawFd = 3;

/// Most sockets that may be passed: both services, each by IPv4, IPv6, a Unix socket and one more.
pub const MOST: usize = 8;

/// The name of the ecosystem's sockets.
const ECOSYSTEM: &str = "ecosystem";

const VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Takes the sockets that were passed to this process, if any. `is_split` is true if the configuration gives
/// the ecosystem a listener of its own. Must be called only once, before anything is opened. The only other
/// thread may be the log's. The error names the variable or the socket.
#[expect(unsafe_code, reason = "descriptors come as numbers in the environment")]
pub fn take(is_split: bool) -> Result<Vec<(Socket, Service)>, String> {
    let [pid, count, names] = VARIABLES.map(|name| {
        let value = env::var_os(name).map(OsString::into_string);
        // SAFETY: the only other thread is the log's, which does not read the environment.
        unsafe { env::remove_var(name) };
        value.and_then(Result::ok).unwrap_or_default()
    });
    // The variables may be inherited: then they were meant for another process.
    if pid.parse() != Ok(std::process::id()) {
        return Ok(Vec::new());
    }
    let services = services(&count, &names, is_split)?;
    let sockets = (FIRST..).zip(services).map(|(number, service)| {
        let fault = |why: &str| format!("socket {number} of LISTEN_FDS: {why}");
        // SAFETY: the number is only named to a system call, which fails if it is not open.
        let named = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(named, FdFlags::CLOEXEC).map_err(|error| fault(&error.to_string()))?;
        // SAFETY: the descriptor is open. LISTEN_PID says that it was opened for this process, and nothing
        // else in this process has taken it.
        let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(number) });
        check(&socket).map_err(fault)?;
        Ok((socket, service))
    });
    sockets.collect()
}

/// The service of each passed socket.
fn services(count: &str, names: &str, is_split: bool) -> Result<Vec<Service>, String> {
    let good = 0..=MOST;
    let count = count.parse().ok().filter(|count| good.contains(count));
    let Some(count) = count else {
        return Err(format!("LISTEN_FDS: expected a number from 0 to {MOST}"));
    };
    let names: Vec<&str> = names.split(':').take(count).collect();
    let is_ecosystem = |at: usize| names.get(at) == Some(&ECOSYSTEM);
    let of_ecosystem = (0..count).filter(|at| is_ecosystem(*at)).count();
    if count > 0 && is_split && of_ecosystem == 0 {
        return Err(format!(
            "LISTEN_FDNAMES: ecosystemListen is set, and no socket has the name {ECOSYSTEM}"
        ));
    }
    if count > 0 && of_ecosystem == count {
        return Err(format!("LISTEN_FDNAMES: every socket has the name {ECOSYSTEM}"));
    }
    let service = |at| match of_ecosystem {
        0 => Service::Both,
        _ if is_ecosystem(at) => Service::Ecosystem,
        _ => Service::Api,
    };
    Ok((0..count).map(service).collect())
}

/// Refuses a socket from which connections cannot be accepted.
fn check(socket: &Socket) -> Result<(), &'static str> {
    let is_known = |it: socket2::SockAddr| it.as_socket().is_some() || it.is_unix();
    if !socket.local_addr().is_ok_and(is_known) {
        return Err("expected a socket of TCP or a Unix socket");
    }
    if !socket.r#type().is_ok_and(|it| it == Type::STREAM) {
        return Err("expected a stream socket (ListenStream=)");
    }
    match socket.is_listener() {
        Ok(true) => Ok(()),
        _ => Err("it does not listen (Accept=no is needed)"),
    }
}

/// The least time between two status texts, so that a state that comes and goes causes few
/// messages.
const STATUS_EVERY: Duration = Duration::from_secs(2);

/// The time between two tries to send a message of the state to a manager whose queue is full.
const RETRY: Duration = Duration::from_millis(100);

/// The shortest time between two messages to the watchdog, whatever the manager wants.
const WATCHDOG_LEAST: Duration = Duration::from_millis(1);

/// The connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    manager: Option<(Socket, SockAddr)>,
    /// The interval of the messages to the watchdog: half of the manager's limit.
    watchdog: Option<Duration>,
    watchdog_due: Mono,
    status: String,
    status_due: Mono,
    /// Messages of the state that are not sent yet: at most the begin of a reload and its end.
    unsent: VecDeque<String>,
    retry_at: Mono,
    /// True once the shutdown has begun. After that no `READY=1` is sent, because the manager would think
    /// that the service runs.
    is_stopping: bool,
}

impl Notifier {
    /// A notifier for the manager that the environment names.
    pub fn from_env() -> Notifier {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let Some(name) = text("NOTIFY_SOCKET") else {
            return Notifier::default();
        };
        let manager = open(&name).inspect_err(|error| {
            let path = quoted(&name);
            log::warn!(target: NET, "service manager not told path={path} error={}", quoted(error));
        });
        let own = std::process::id();
        let is_mine = text("WATCHDOG_PID").is_none_or(|pid| pid.parse() == Ok(own));
        let limit = text("WATCHDOG_USEC").and_then(|text| text.parse::<u64>().ok());
        Notifier {
            manager: manager.ok(),
            watchdog: limit
                .filter(|limit| is_mine && *limit > 0)
                .map(|limit| Duration::from_micros(limit / 2).max(WATCHDOG_LEAST)),
            ..Notifier::default()
        }
    }

    /// Tells that the service listens, or has finished a reload.
    pub fn ready(&mut self) {
        if !self.is_stopping {
            self.add("READY=1");
        }
    }

    /// Tells that a reload has begun.
    pub fn reloading(&mut self) {
        if !self.is_stopping {
            let time = Clock::system_us();
            self.unsent.clear();
            self.add(&format!("RELOADING=1\nMONOTONIC_USEC={time}"));
        }
    }

    /// Tells that the shutdown has begun.
    pub fn stopping(&mut self) {
        self.is_stopping = true;
        self.unsent.clear();
        self.add("STOPPING=1\nSTATUS=Stopping");
    }

    /// Sends a message of the state, behind the messages that wait.
    fn add(&mut self, message: &str) {
        self.unsent.push_back(message.to_string());
        self.send_unsent();
    }

    fn send_unsent(&mut self) {
        while self.unsent.front().is_some_and(|message| self.send(message)) {
            self.unsent.pop_front();
        }
    }

    /// When [`Notifier::turn`] must be called at the latest.
    pub fn due(&self) -> Mono {
        let is_watched = self.manager.is_some() && self.watchdog.is_some();
        let watchdog_due = if is_watched { self.watchdog_due } else { Mono::NEVER };
        if self.unsent.is_empty() { watchdog_due } else { watchdog_due.min(self.retry_at) }
    }

    /// Notes a turn of the loop, and sends what is due. `status` describes the service for people.
    #[inline(always)]
    pub fn turn(&mut self, now: Mono, status: impl Fn() -> String) {
        if self.manager.is_some() {
            self.tell(now, status);
        }
    }

    #[inline(never)]
    fn tell(&mut self, now: Mono, status: impl Fn() -> String) {
        if !self.unsent.is_empty() && now >= self.retry_at {
            self.retry_at = now + RETRY;
            self.send_unsent();
        }
        if let Some(every) = self.watchdog
            && now >= self.watchdog_due
        {
            let pause = if self.send("WATCHDOG=1") { every } else { every.min(RETRY) };
            self.watchdog_due = now + pause;
        }
        if now >= self.status_due {
            self.status_due = now + STATUS_EVERY;
            let status = status();
            if status != self.status && self.send(&format!("STATUS={status}")) {
                self.status = status;
            }
        }
    }

    /// Returns false if the manager's queue is full. Any other failure is ignored: a manager that is gone
    /// would cause a log line for each message.
    fn send(&self, message: &str) -> bool {
        self.manager.as_ref().is_none_or(|(socket, address)| {
            let sent = socket.send_to(message.as_bytes(), address);
            !sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        })
    }
}

/// A socket, and the address for a name, which is a path or `@` and an abstract name.
fn open(name: &str) -> io::Result<(Socket, SockAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SockAddr::unix(format!("\0{name}"))?,
        None => SockAddr::unix(name)?,
    };
    let socket = Socket::new(Domain::UNIX, Type::DGRAM.nonblocking(), None)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_socket_serves_what_its_name_says() {
        use Service::{Api, Both, Ecosystem};
        let check = |count: &str, names: &str, is_split, expected: Result<&[Service], &str>| {
            let found = services(count, names, is_split);
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, expected, "{count} {names}");
        };
        check("0", "", true, Ok(&[]));
        check("1", "marketd.socket", false, Ok(&[Both]));
        check("2", "", false, Ok(&[Both, Both]));
        check("2", "web:ecosystem", false, Ok(&[Api, Ecosystem]));
        check("2", "web:ecosystem", true, Ok(&[Api, Ecosystem]));
        check("1", "web:ecosystem", false, Ok(&[Both]));
        let number = "LISTEN_FDS: expected a number from 0 to 8";
        for count in ["", "-1", "9", "x", "18446744073709551616"] {
            check(count, "", false, Err(number));
        }
        let alone = "LISTEN_FDNAMES: every socket has the name ecosystem";
        check("1", "ecosystem", true, Err(alone));
        let split = "LISTEN_FDNAMES: ecosystemListen is set, and no socket has the name ecosystem";
        check("1", "web", true, Err(split));
    }
}
