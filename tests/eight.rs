//! The eight exchanges, each by a fake of its own: a source that names one serves its quotes,
//! its charts and its markets, no fault of it harms what is served, and no limit of it is passed.
//!
//! A fake (`eight/okx.rs` and its like) is written from the exchange's documents alone, without a
//! look at the dialect that asks it: addresses, columns, units of time, order and ends of ranges,
//! pages, and what each request counts for. It is strict: what the exchange would refuse, it
//! refuses. The same fakes answer over sockets and in virtual time.

#[path = "support/mod.rs"]
mod support;

#[path = "eight/binance.rs"]
mod binance;
#[path = "eight/bitget.rs"]
mod bitget;
#[path = "eight/bybit.rs"]
mod bybit;
#[path = "eight/coinbase.rs"]
mod coinbase;
#[path = "eight/day.rs"]
mod day;
#[path = "eight/errors.rs"]
mod errors;
#[path = "eight/gate.rs"]
mod gate;
#[path = "eight/kraken.rs"]
mod kraken;
#[path = "eight/kucoin.rs"]
mod kucoin;
#[path = "eight/ledger.rs"]
mod ledger;
#[path = "eight/okx.rs"]
mod okx;
#[path = "eight/pages.rs"]
mod pages;
#[path = "eight/recorded.rs"]
mod recorded;
#[path = "eight/serves.rs"]
mod serves;
#[path = "eight/shop.rs"]
mod shop;
#[path = "eight/virtual_time.rs"]
mod virtual_time;

use shop::House;

/// All of them.
const HOUSES: [&House; 8] = [
    &binance::HOUSE,
    &okx::HOUSE,
    &bybit::HOUSE,
    &kraken::HOUSE,
    &coinbase::HOUSE,
    &kucoin::HOUSE,
    &gate::HOUSE,
    &bitget::HOUSE,
];
