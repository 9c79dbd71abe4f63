//! Options of sockets that not every system has. Accepted sockets inherit the options of their
//! listener.
//!
//! `TCP_NOTSENT_LOWAT` (tcp(7)) bounds what the kernel buffers for a client that does not read.
//!
//! `TCP_USER_TIMEOUT` (tcp(7)) ends a connection whose packets get lost, for example because the peer has
//! vanished, or because a firewall has forgotten the connection.
//!
//! `TCP_DEFER_ACCEPT` (tcp(7)) makes the kernel hold back a new connection until its request has come. So the
//! request is read right after the accept, and a connection with one request is mostly never registered with
//! the poller.

use socket2::Socket;
use std::os::fd::AsFd;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How many unsent bytes the kernel may buffer for a connection. Its own limit is some megabytes for each
/// client that does not read: many such clients would use up its memory for sockets. A client reads fewer
/// bytes than this between two turns.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 32 * 1024;

/// Sets `TCP_NOTSENT_LOWAT`, on systems that have it.
pub fn limit_unsent(_socket: &Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = _socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// The least time for which sent bytes may stay unacknowledged. By then the kernel has sent them several
/// times.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(4);

/// Sets `TCP_USER_TIMEOUT`, on systems that have it: sent bytes may stay unacknowledged for this long, and
/// for four seconds at least. A peer that reads nothing has as long.
pub fn limit_unacknowledged(_socket: &impl AsFd, _span: Duration) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket2::SockRef::from(_socket).set_tcp_user_timeout(Some(_span.max(UNACKNOWLEDGED)));
}

/// The most seconds that the kernel waits for a request. Then it hands over the silent connection, to which
/// the usual deadlines apply.
#[cfg(target_os = "linux")]
static SILENT_S: libc::c_int = 1;

/// Sets `TCP_DEFER_ACCEPT`, if SYN cookies are on. Without cookies, some thousand silent connections would
/// fill the kernel's queue of incomplete connections, and keep all clients out. With cookies, a full queue
/// blocks no client.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate has this option")]
pub fn defer_accept(socket: &Socket) {
    let cookies = std::fs::read("/proc/sys/net/ipv4/tcp_syncookies").unwrap_or_default();
    if matches!(cookies.first(), Some(b'1' | b'2')) {
        let (value, size) = (&raw const SILENT_S, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the descriptor is open, and the value is an int, as this option wants it.
        let _ = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_DEFER_ACCEPT,
                value.cast(),
                size,
            )
        };
    }
}

/// Does nothing: this system has no such option.
#[cfg(not(target_os = "linux"))]
pub fn defer_accept(_socket: &Socket) {}
