//! Options of sockets that not every system has. Accepted sockets inherit those of their listener.
//!
//! `TCP_NOTSENT_LOWAT` (tcp(7)) bounds what the kernel buffers for a client that does not read.
//!
//! `TCP_DEFER_ACCEPT` is not set. With it, silent connections would fill the kernel's queue of
//! incomplete connections: without SYN cookies, a few thousand of them would keep all clients out.
//! Without it, each costs a descriptor, and is closed when another client needs it.

use socket2::Socket;

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
