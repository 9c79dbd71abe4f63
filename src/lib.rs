//! marketd polls exchanges, keeps the latest quotes and candles, and serves them as read-only JSON over HTTP
//! GET. It is one small binary with one event loop. Helper threads write the history file and the log, and
//! look up names.
//!
//! # Layers
//!
//! A module imports only from lower layers. The modules within layers 4, 3 and 1 are ordered, too:
//! [`docs::architecture`] draws their order, and a test checks it. The modules of layer 2 do not import each
//! other.
//!
//! ```text
//! layer 4 main                 arguments, configuration, logger, exit code
//!         commands  probe      what marketd does besides serving; one look at an exchange
//!         logging              the log: its rules, the form of its lines, how they are written
//!         net                  the loop: sockets, TLS, clock, resolver, the way to the store
//!         store                the disk thread and its SQLite file
//! layer 3 core                 all decisions; no I/O, no clock
//!           clients              one client connection from accept to close, and every limit on it
//!           api                  the endpoints; the table of metrics; OpenAPI
//!           sources              one exchange: schedule, requests, candle plans, jobs; failover
//!           history              what is in the history file, on its way there, on its way back
//!           upstream             the way to one host: its addresses and a few connections to it
//!           cluster              which node collects a source, and what the nodes tell each other
//! layer 2 http                 messages: parses and writes requests and responses
//!         market               meaning: symbols, quotes, candle series, charts
//!         exchange             dialects: what one exchange's addresses and JSON mean
//!         demo                 a simulated exchange, computed from a seed
//!         replication          what the nodes of a cluster tell each other, as bytes
//! layer 1 time  table  job_queue  run_queue  rng  decimal  fingerprint  interval  record  history  json
//!         log_targets  config  durations  named  resp  place_set
//! ```
//!
//! # Three walks
//!
//! *A quote.* `Driver::pump` of [`net`] reads at most 16 KiB from an exchange and tells the core
//! ([`core::Core::handle`]). The upstream connection removes head and framing ([`http`]),
//! [`exchange::Reading`] finds one ticker after another, and those of tracked markets are staged. When the
//! whole body has been parsed, [`core::Core::step`] puts the staged tickers into [`market::Quotes`], some
//! hundred a turn.
//!
//! *A request.* `Driver::pump` of [`net`] reads into the driver's one buffer, and hands the bytes to the
//! core. There, `core::clients` does nearly all of the work ([`docs::architecture`] lists the types that a
//! request passes): it parses the request in place ([`http::parse`]), finds the endpoint of its path
//! ([`core::api`]), admits the request, and has the endpoint write the response to the connection's output
//! ([`http::Output`]). The response is a head, and a body that was rendered once and is shared by all
//! clients. Mostly one write sends it. A response that needs candles which are not in memory, or many of
//! them, is deferred: only that client waits.
//!
//! *A closed candle.* It is read and staged like a quote. Then it is stored in its series, and becomes a
//! change in the batch for the file ([`history::Batch`]). The batch goes to the disk thread ([`store`]) a
//! second after its first change, or at once if it is heavy. When the disk thread has acknowledged the batch,
//! memory may drop the candle. A dropped candle is read from the file when a chart needs it; the exchange is
//! not asked again.
//!
//! # To read it
//!
//! Begin with [`decimal`], [`interval`] and [`record`]; then [`market`] and [`exchange`]; then [`core`],
//! whose page lists what the core is told and asked, with its part `core::clients`, where requests are
//! served; then [`net`], which carries out the core's actions. The manual is in [`docs`]. Recipes for adding
//! something are on the pages of [`core::api`] (an endpoint), [`core::api::stream`] (an event of the stream)
//! and [`exchange`] (an exchange). Others are at the top of the source of `core/api/metrics/table.rs` (a
//! metric), `config/limits.rs` (a limit) and `config/schema.rs` (a key of the file).

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod commands;
pub mod config;
pub mod core;
pub mod decimal;
pub mod demo;
pub mod docs;
pub mod durations;
pub mod exchange;
pub mod fingerprint;
pub mod history;
pub mod http;
pub mod interval;
pub mod job_queue;
pub mod json;
pub mod log_targets;
pub mod logging;
pub mod market;
pub mod named;
pub mod net;
pub mod place_set;
pub mod probe;
pub mod record;
pub mod replication;
pub mod resp;
pub mod rng;
pub mod run_queue;
pub mod store;
pub mod table;
pub mod time;
