//! marketd among the programs of a server: Unix sockets, passed sockets and the service manager.

mod support;

#[path = "running/manager.rs"]
mod manager;
#[path = "running/sockets.rs"]
mod sockets;
