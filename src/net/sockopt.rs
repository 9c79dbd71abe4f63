//! Options of a listener that not every system knows. Accepted sockets inherit them.
//!
//! `TCP_NOTSENT_LOWAT` (tcp(7)) bounds what the kernel holds for a client that does not read.
//! With `TCP_DEFER_ACCEPT`, which no safe crate offers, a connection wakes the listener only when
//! its first bytes are there. The first read then never comes back empty, which halves the cost of
//! a connection that brings one request, and a client that says nothing costs no descriptor.

use socket2::Socket;
use std::time::Duration;

/// How long the kernel waits for the first bytes; after that it hands the connection over all the
/// same, and the deadlines of the server hold.
const DEFER: Duration = Duration::from_secs(5);

/// Bytes of one connection that the kernel may hold and has not sent. Left to itself it takes some
/// megabytes of each client that does not read, beside every limit of ours, until it has no memory
/// for anybody's connection. What a client reads between two turns is less.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 32 * 1024;

/// Sets the first. Where the system does not know it, its own limits hold.
pub fn limit_unsent(_socket: &Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = _socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Sets the second. Where the system does not know it, connections come earlier: nothing else
/// changes, so a failure is no fault.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the one socket option that neither socket2 nor rustix offers"
)]
pub fn defer_accept(socket: &Socket) {
    use std::os::fd::AsRawFd;
    let seconds = DEFER.as_secs() as libc::c_int;
    // SAFETY: the descriptor lives as long as the borrow of `socket`; the pointer and the length
    // are those of a C int that outlives the call; the kernel only reads it.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
}

/// Other systems have no such option.
#[cfg(not(target_os = "linux"))]
pub fn defer_accept(_socket: &Socket) {
    let _ = DEFER;
}
