//! The built binary over real sockets: what it promises to clients, and what it does when an
//! exchange misbehaves.
//!
//! Every test starts a daemon of its own on a free port. Where an exchange is needed, a fake one
//! is polled; where none is, the daemon's own demo. A test that compares two answers asks for
//! both in one write, so that no poll comes between them.

mod catalog;
mod chart;
pub mod contract;
mod crowd;
mod demo;
mod described;
mod encodings;
mod errors;
mod fetch;
mod gzip;
mod hostile;
mod http;
mod lists;
mod outage;
mod packed;
mod page;
mod process;
mod quotes;
mod reasons;
pub mod setup;
mod several;
mod stream;
mod watch;
