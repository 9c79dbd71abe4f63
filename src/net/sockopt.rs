//! Options of sockets that not every system has. Accepted sockets inherit those of their listener.
//!
//! `TCP_NOTSENT_LOWAT` (tcp(7)) bounds what the kernel buffers for a client that does not read.
//!
//! `TCP_DEFER_ACCEPT` (tcp(7)) has the kernel keep a new connection until its request has come: it is
//! read as soon as it is accepted, and need not be watched if it brings one request.

use socket2::Socket;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

/// Bytes that the kernel may buffer for a connection and has not sent. Its own limit is some megabytes
/// for each client that does not read, and many such clients would use up its memory for sockets. A
/// client reads less than this between two turns.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 32 * 1024;

/// Sets `TCP_NOTSENT_LOWAT`, on systems that have it.
pub fn limit_unsent(_socket: &Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = _socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// How long the kernel waits for a request, at most; in seconds. Then it hands over a silent connection all
/// the same, which has the usual time.
#[cfg(target_os = "linux")]
static SILENT_S: libc::c_int = 1;

/// Sets `TCP_DEFER_ACCEPT`, if SYN cookies are on. Without them, some thousand silent connections would fill
/// the kernel's queue of incomplete connections, and keep all clients out. With them, a full queue holds
/// nobody up.
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
