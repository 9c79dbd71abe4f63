//! Exchanges: their endpoints, and the JSON of their answers.
//!
//! Owns the [`Dialect`]s, one file of JSON each, and the one reader that works by them. A [`Call`]
//! becomes the target of a request. The body of the response is fed to a [`Reading`] as it arrives,
//! and becomes records in a [`Sink`]. Numbers keep every digit.
//!
//! It opens no connection and does not decide when to send a request. Of HTTP it knows only the
//! status, and it does not know which markets are served. It never holds a whole body: an item (a
//! ticker, a candle, a market) is read where it lies. Only the front of a cut item is kept, up to a
//! limit.
//!
//! From the bytes up: `json` (a cursor over words and brackets), `path` (places in a body), `items` (finds
//! the items of a body that comes in pieces), `fields` (tables of members and fields), `shape` (reads an item
//! by such a table), `value` (numbers, times, names), `prices` and `listing` (the kinds of items), `error`
//! (what is wrong), `sink` (takes the records), `call` (the kinds of requests, path and query of each),
//! `endpoint` (what a file says about one request, and about refusals), `dialect` (the whole file), `check`
//! (the faults of a file, and the table of exchanges) and `reading` (all of it together). A file becomes
//! structs by the macros of `config::members`.
//!
//! # To add an exchange
//!
//! A file that a source names as its dialect needs no build of marketd. To build an exchange in:
//!
//! 1. Put the file into `dialects`, and its name into `check.rs`. Say in its `notes` where the figures
//!    are from, and which of them no recording confirms.
//! 2. Describe it in `tests/fakes/exchanges.rs`, from its documents and without a look at that file, and add
//!    its name to `tests/fakes.rs`. The tests of `tests/fakes` then make every call of it, read every
//!    refusal, serve it and poll it for hours. Where it differs from the others (no amounts in its list, the
//!    status of a ban, the field of its count), `serves.rs`, `refusals.rs` or `virtual_time.rs` name it.
//! 3. Record its answers in the directory of recordings, which is not part of the repository:
//!    `tests/fakes/recorded.rs` names it, and skips its tests without it. Fetch the address of each call with
//!    curl. Keep each body as `httpResponse` in a file of its own, `EXCHANGE.METHOD.WHAT.json`; exchange and
//!    method are those of CCXT (`gate.fetchTickers.two.json`). `File` in `recorded.rs` says what else is
//!    in it. What is decoded must equal the body digit for digit, whole and in pieces. It must also equal
//!    what CCXT has made of the body (`expected` in the file), but for the lines of `DIFFERS` there, each
//!    with its reason. Raise `RECORDINGS`.
//! 4. Add bodies that no recording shows, and what is read of them, to `src/exchange/tests/bodies.rs`.
//! 5. Add its name to `README.md` and to the list in `tests/cli.rs`, and its row, which
//!    `tests/fakes/plans.rs` prints, to the table in `src/docs/dialects.md`. Raise the number of exchanges:
//!    the length of `BUILT_IN` in `check.rs`, and the word in `src/docs/dialects.md` and
//!    `src/docs/testing.md`.
//!
//! If the format cannot express a habit of an exchange, extend the format, for every exchange: add a variant
//! to the module that reads such members, and a test to the made-up exchange of
//! `src/exchange/tests/sample.json`. `UPDATE_DOCS=1 cargo test --lib exchange` writes the JSON Schema.

mod call;
mod check;
mod dialect;
mod endpoint;
mod error;
mod fields;
mod items;
mod json;
mod listing;
mod path;
mod prices;
mod reading;
mod shape;
mod sink;
#[cfg(test)]
mod tests;
mod value;

pub use call::{BudgetLimit, Call, NextPage, Page, RequestKind, Way};
pub use check::{FILE_BYTES, SCHEMA};
pub use dialect::Dialect;
pub use error::{ItemFault, ReadError, RefusalKind, Reject};
pub use reading::Reading;
pub use sink::{Explained, Sink};
