//! Recorded answers of exchanges, decoded: every figure equals the text of the body digit for
//! digit, whole and in pieces, and what CCXT makes of the same bytes, where that is right.
//!
//! The tables of `decoders/*.rs` say, for each recording, where its figures stand; they are
//! written without the dialects' own tables, so that the two are judged by each other. Where CCXT
//! differs, a list there says so and why, and an entry that no recording bears out is an error.
//!
//! The recordings stand in `../shared/exchange-fixtures`, or where `MARKETD_FIXTURES` says. Where
//! they are not, these tests say so and pass.

use crate::support;

pub mod candles;
pub mod decode;
pub mod markets;
pub mod tickers;
mod times;

use support::{Fixture, Fixtures};

/// What the recordings' names of the exchanges begin with.
const EXCHANGES: [&str; 14] = [
    "binance.",
    "binanceus.",
    "okx.",
    "bybit.",
    "kraken.",
    "coinbaseexchange.",
    "kucoin.",
    "gate.",
    "bitget.",
    "bitstamp.",
    "cryptocom.",
    "htx.",
    "mexc.",
    "upbit.",
];

/// The recordings of these names; none where the folder is absent.
fn recordings<T>(table: &[T], file: impl Fn(&T) -> &str) -> impl Iterator<Item = (&T, Fixture)> {
    let fixtures = Fixtures::find();
    let load = move |row| Some((row, fixtures.as_ref()?.load(file(row))));
    table.iter().filter_map(load)
}

#[test]
fn every_recording_is_in_one_of_the_tables() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let tables = [tickers::files(), candles::files(), markets::files(), times::files()];
    let known = tables.concat();
    for file in EXCHANGES.iter().flat_map(|prefix| fixtures.names(prefix)) {
        let name = file.trim_end_matches(".json");
        let count = known.iter().filter(|known| **known == name).count();
        assert_eq!(count, 1, "{name}");
    }
}
