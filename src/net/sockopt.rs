//! Options of a listener that not every system knows. Accepted sockets inherit them.
//!
//! `TCP_NOTSENT_LOWAT` (tcp(7)) bounds what the kernel holds for a client that does not read.
//!
//! `TCP_DEFER_ACCEPT` is not set: connections that say nothing would wait in the queue of those that
//! are not made yet, and where the kernel sends no cookies, a few thousand of them would lock everybody
//! out. Here they cost a descriptor each, and make place when somebody else needs it.

use socket2::Socket;

/// Bytes of one connection that the kernel may hold and has not sent. Left to itself it takes some
/// megabytes of each client that does not read, beside every limit of ours, until it has no memory
/// for anybody's connection. What a client reads between two turns is less.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 32 * 1024;

/// Sets it. Where the system does not know it, its own limits hold.
pub fn limit_unsent(_socket: &Socket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = _socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}
