//! marketd polls exchanges, keeps the latest quotes and candles, and answers read-only JSON over
//! HTTP GET: one small binary, one thread, one event loop.
//!
//! # Layers
//!
//! A module imports only from lower layers. `net` starts `store`, and `main` starts `net`; no other
//! modules of one layer import each other, except in layer 1: there `config`, `history`, `record` and
//! `interval` use `time`, `decimal` and other plain types.
//!
//! ```text
//! layer 4 main                 arguments, configuration, logger, exit code
//!         net                  the loop: sockets, TLS, clock, resolver, the way to the store
//!         store                the disk thread and its SQLite file
//! layer 3 server               the core: all decisions; no I/O, no clock
//!           clients, session     one client: its phase, its requests in their order
//!           bodies, familiar     what is sent with a request; requests that come again
//!           ends                 how its connection ends, and why
//!           poller, lane, dial   one source: what is asked when; one connection; the way there
//!           task, stage, fault   what is asked; items read and not yet applied; what goes wrong
//!           budget               what a source may spend
//!           agenda               what all sources and the archive want next, worked out once
//!           failover             which source answers for a symbol, told and counted
//!           health               why the service is not ok, and what the log was told of it
//!           fetches              which candles are asked for
//!           archive              what is in the history file, and on its way there or back
//!                                (shelf: what it works on; no_archive: without `sqlite`)
//!           api                  the endpoints
//!           later, long, packing answers that take several turns; bodies in gzip
//!           door, guests         who comes in and has left; who is connected from where
//!           gate, rates          whose request it is; how many its address has left
//!           status, counting     the figures, and what adds to them: durations, access
//! layer 2 http                 messages: parses and writes requests and responses
//!         market               meaning: symbols, quotes, candle series, charts
//!         exchange             dialects: what one exchange's addresses and JSON mean
//!         demo                 a simulated exchange, computed from a seed
//! layer 1 time  table  rng  decimal  fingerprint  interval  record  history  log_targets  config
//! ```
//!
//! # Three walks
//!
//! *A quote.* [`net`] reads at most 16 KiB from an exchange and tells the core
//! ([`server::Core::handle`]). The lane strips head and framing ([`http`]), the reading finds
//! ticker after ticker ([`exchange::Reading`]), and those of tracked markets are staged. When the
//! body has parsed to its end, [`server::Core::work`] puts them into [`market::Quotes`], some hundred a
//! turn.
//!
//! *A request.* [`net`] reads into its one buffer; the session's request is parsed in place
//! ([`http::parse`]), its address finds an endpoint ([`server::api`]), and the answer is written into
//! the session's output: a head, and bytes that were rendered when they changed. One write sends it.
//! What needs candles that are not here, or many of them, is parked, and only that client waits.
//!
//! *A closed candle.* Read and staged like a quote, it becomes a row of its series, and a change in
//! the archive's batch ([`history::Batch`]). Once a second the batch goes to the disk thread
//! ([`store`]); from its acknowledgement on, memory may let the row go: whoever wants it again has it
//! read back, and the exchange is not asked.
//!
//! # To read it
//!
//! Begin with [`decimal`], [`interval`] and [`record`]; then [`market`] and [`exchange`]; then
//! [`server`], whose page tells what the core is told and asked; then [`net`], which does what it says.
//! To add an endpoint: [`server::api`]. To add an exchange: [`exchange`]. To add a limit: [`config`].
//! The manual is in [`docs`].

pub mod config;
pub mod decimal;
pub mod demo;
pub mod docs;
pub mod exchange;
pub mod fingerprint;
pub mod history;
pub mod http;
pub mod interval;
pub mod log_targets;
pub mod market;
pub mod net;
pub mod record;
pub mod rng;
pub mod server;
pub mod store;
pub mod table;
pub mod time;
