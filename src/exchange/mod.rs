//! Exchanges: their endpoints, and the JSON that they answer with.
//!
//! Owns the [`Dialect`]s, one small file of data each, and the one reader that works by them: a
//! [`Call`] becomes the target of a request, and the body of its response, fed to a [`Reading`] as
//! it arrives, becomes records in a [`Sink`]. Numbers keep every digit.
//!
//! It opens no connection and does not decide when to send a request. Of HTTP it knows only the
//! status, and it does not know which markets are served. It never holds a body: an item (a ticker,
//! a row of candles, a market) is read where it lies, and only the front of a cut one is kept, up
//! to a limit.
//!
//! From the bytes up: `json` (a cursor over words and brackets), `envelope` and `items` (the way
//! through a body that comes in pieces), `shape` (tables of members and fields), `value` (numbers,
//! times, names), `ticker`, `candle` and `listing` (the kinds of items), `refusal` (errors in a
//! 200), `sink` (who takes the records), `dialect` (addresses, costs), `reading` (all of it
//! together), and `registry`, the table of exchanges.
//!
//! # To add an exchange
//!
//! 1. Copy the file of the exchange that is most like it, name it after the exchange, and fill in
//!    one `Dialect`. Say on top where the figures are from, and which of them nothing recorded
//!    bears out:
//!    - `budget`: what the exchange allows, in its own weights, or in calls that cost 1. Where
//!      limits differ by address, take the widest as the budget and let narrower ones cost more.
//!      `meter`: the header that tells how much is spent or left.
//!    - `refusal`: where a body says that it is an error, and with which codes. `statuses`: what
//!      the statuses of refusals mean, where that is not `Statuses::USUAL`.
//!    - Each `Endpoint`: the target with its `{...}` names (see `dialect::Endpoint`), its cost,
//!      and its `Place`: the path to the items and whether they are the `elements` of an array,
//!      the `members` of an object, or the one value `itself`.
//!    - `tickers`, `markets`: a table of member and field. List the members in the order in which
//!      they are sent. What means something else than the field does (a day's opening price is
//!      none of 24 hours ago) is left out: it will be `null`. `tickers.all` is `None` where there
//!      is no call for all, and `tickers.stats` is for tickers that lack the figures of 24 hours.
//!    - `markets.renamed`: assets that go by another name elsewhere, and names that elsewhere are
//!      another asset's. Sources with one symbol stand in for each other, so it must be one market.
//!    - `candles`: the number of each column, the unit of time, the names of the intervals (days
//!      must begin at midnight UTC), the size of a page, how far back it can be asked,
//!      and where older ones are. Ask for both ends of the range where the exchange lets you.
//!    - Tests below the table: the target of each call, bodies of errors, and what no recording
//!      shows. Copy them as well.
//! 2. Name it here, in `registry.rs`, and in the list of `tests/cli.rs`. The command
//!    line and the configuration know it by that table.
//! 3. Put recorded answers beside the others, their names' begin into `EXCHANGES` of
//!    `tests/decoders.rs`, and where their figures stand into the tables of `tests/decoders/`. That
//!    test is the judge: what is decoded must equal the body digit for digit, whole and in pieces,
//!    and what CCXT makes of it, but for the differences that are listed there with a reason.
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
mod registry;
#[cfg(test)]
mod sample;
mod shape;
mod sink;
#[cfg(test)]
mod testing;
mod ticker;
mod value;

pub use dialect::{Budget, Call, Dialect, Meter, Page};
pub use error::{Fault, ReadError, RefusalKind, Reject};
pub use items::Caps;
pub use reading::Reading;
pub use sink::Sink;
