//! marketd among the programs of a server: Unix sockets, passed sockets, the log and the service manager.

mod log;
mod manager;
mod reload;
mod sockets;
