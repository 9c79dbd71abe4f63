//! The built binary over real sockets: what it promises to clients, and what it does when an
//! exchange misbehaves.
//!
//! Every test starts a daemon of its own on a free port. Where an exchange is needed, a fake one
//! is polled; where none is, the daemon's own demo. A test that compares two answers asks for
//! both in one write, so that no poll comes between them.

mod support;

#[path = "loopback/catalog.rs"]
mod catalog;
#[path = "loopback/chart.rs"]
mod chart;
#[path = "loopback/contract.rs"]
mod contract;
#[path = "loopback/crowd.rs"]
mod crowd;
#[path = "loopback/demo.rs"]
mod demo;
#[path = "loopback/described.rs"]
mod described;
#[path = "loopback/encodings.rs"]
mod encodings;
#[path = "loopback/errors.rs"]
mod errors;
#[path = "loopback/fetch.rs"]
mod fetch;
#[path = "loopback/gzip.rs"]
mod gzip;
#[path = "loopback/hostile.rs"]
mod hostile;
#[path = "loopback/http.rs"]
mod http;
#[path = "loopback/lists.rs"]
mod lists;
#[path = "loopback/naive.rs"]
mod naive;
#[path = "loopback/outage.rs"]
mod outage;
#[path = "loopback/packed.rs"]
mod packed;
#[path = "loopback/page.rs"]
mod page;
#[path = "loopback/process.rs"]
mod process;
#[path = "loopback/quotes.rs"]
mod quotes;
#[path = "loopback/reasons.rs"]
mod reasons;
#[path = "loopback/setup.rs"]
mod setup;
#[path = "loopback/several.rs"]
mod several;
#[path = "loopback/stream.rs"]
mod stream;
#[path = "loopback/symbols.rs"]
mod symbols;
#[path = "loopback/watch.rs"]
mod watch;
