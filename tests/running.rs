//! marketd among the programs of a server: Unix sockets, passed sockets and the service manager.

mod support;

#[path = "running/manager.rs"]
mod manager;
#[path = "running/reload.rs"]
mod reload;
#[path = "loopback/setup.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod setup;
#[path = "running/sockets.rs"]
mod sockets;
