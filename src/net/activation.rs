//! Listening sockets that the service manager has opened and passed on (sd_listen_fds(3)).
//!
//! They replace the configured listeners. Sockets with the name `ecosystem` (`FileDescriptorName=`) serve the
//! ecosystem, and all others serve the rest. If no socket has this name, all sockets serve everything.

use crate::core::Service;
use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Socket, Type};
use std::env;
use std::ffi::OsString;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The first of the passed descriptors.
const FIRST: RawFd = 3;

/// Most sockets that may be passed: both services, each by IPv4, IPv6, a Unix socket and one more.
pub const MOST: usize = 8;

/// The name of the ecosystem's sockets.
const ECOSYSTEM: &str = "ecosystem";

const VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Takes the sockets that were passed to this process, if any. `is_split` is true if the configuration gives
/// the ecosystem a listener of its own. Must be called only once, before anything is opened and before a
/// thread is started. The error names the variable or the socket.
#[expect(unsafe_code, reason = "descriptors come as numbers in the environment")]
pub fn take(is_split: bool) -> Result<Vec<(Socket, Service)>, String> {
    let [pid, count, names] = VARIABLES.map(|name| {
        let value = env::var_os(name).map(OsString::into_string);
        // SAFETY: no other thread runs yet, so nobody reads the environment.
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
