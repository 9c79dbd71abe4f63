//! marketd among the programs of a server: Unix sockets, passed sockets and the service manager.

mod manager;
mod reload;
mod sockets;
