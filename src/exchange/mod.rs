//! The exchanges: their addresses, and the JSON that they answer with.
//!
//! Owns the [`Dialect`]s, one small file of data each, and the one machine that reads by them: a
//! [`Call`] becomes the target of a request, and its answer's body, fed to a [`Reading`] as it
//! arrives, becomes records in a [`Sink`]. Numbers keep every digit.
//!
//! It never opens a connection and never decides when to ask; it does not know HTTP beyond a
//! status, nor which markets are served. It never holds a body: an item (a ticker, a row of
//! candles, a market) is read where it lies, and only the front of a cut one is kept, capped.
//!
//! From the bytes up: `json` (a cursor over words and brackets), `envelope` and `items` (the way
//! through a body that comes in pieces), `shape` (tables of members and fields), `value` (numbers,
//! times, names), `ticker`, `candle` and `listing` (the kinds of items), `refusal` (errors in a
//! 200), `reading` (all of it together), `dialect` (addresses, costs, the table of exchanges).
//!
//! # To add an exchange
//!
//! 1. Copy `binance.rs` to a file of the exchange's name, and fill in one `Dialect`:
//!    - `budget`: what the exchange allows, in its own weights, or in calls that cost 1. Where
//!      limits differ by address, take the widest as the budget and let narrower ones cost more.
//!      `meter`: the header that tells how much is spent or left.
//!    - `refusal`: where a body says that it is an error, and with which codes.
//!    - Each `Endpoint`: the target with its `{...}` names (see `dialect::Endpoint`), its cost,
//!      and its `Place`: the path to the items and whether they are `Elements` of an array,
//!      `Members` of an object, or the one value `Itself`.
//!    - `tickers`, `markets`: a table of member and field. List the members in the order in which
//!      they are sent. What means something else than the field does (a day's opening price is
//!      none of 24 hours ago) is left out: it will be `null`. `tickers.all` is `None` where there
//!      is no call for all.
//!    - `candles`: the number of each column, the unit of time, the names of the intervals, the
//!      size of a page, which end of a too long range it holds, and how far back it can be asked.
//! 2. Name it here and in the table in `dialect.rs`.
//! 3. Put recorded answers beside the others and name them in `tests/decoders.rs`. That test is
//!    the judge: what is decoded must equal the body digit for digit, whole and in pieces.
//!
//! An exchange with a habit that no table knows yet gets a new variant in the module whose habit
//! it is (`Node`, `TimeForm`, `Form`), with a test in the made-up exchange of `sample.rs`.

mod binance;
mod bitget;
mod bybit;
mod candle;
mod coinbase;
mod dialect;
mod envelope;
mod error;
mod gate;
mod items;
mod json;
mod kraken;
mod kucoin;
mod listing;
mod okx;
mod reading;
mod refusal;
#[cfg(test)]
mod sample;
mod shape;
#[cfg(test)]
mod testing;
mod ticker;
mod value;

pub use dialect::{Budget, Call, Dialect, Meter, Page, RowOrder};
pub use error::{Fault, ReadError, RefusalKind, Reject};
pub use items::Caps;
pub use reading::{Reading, Sink};
