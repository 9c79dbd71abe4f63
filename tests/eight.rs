//! The exchanges of this build, each by a fake of its own: a source that names one serves its quotes,
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
#[path = "eight/binanceus.rs"]
mod binanceus;
#[path = "eight/bitget.rs"]
mod bitget;
#[path = "eight/bitstamp.rs"]
mod bitstamp;
#[path = "eight/bybit.rs"]
mod bybit;
#[path = "eight/coinbase.rs"]
mod coinbase;
#[path = "eight/cryptocom.rs"]
mod cryptocom;
#[path = "eight/day.rs"]
mod day;
#[path = "eight/errors.rs"]
mod errors;
#[path = "eight/gate.rs"]
mod gate;
#[path = "eight/htx.rs"]
mod htx;
#[path = "eight/kraken.rs"]
mod kraken;
#[path = "eight/kucoin.rs"]
mod kucoin;
#[path = "eight/ledger.rs"]
mod ledger;
#[path = "eight/mexc.rs"]
mod mexc;
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
#[path = "eight/upbit.rs"]
mod upbit;
#[path = "eight/virtual_time.rs"]
mod virtual_time;

use shop::House;

/// All of them.
const HOUSES: [&House; 14] = [
    &binance::HOUSE,
    &okx::HOUSE,
    &bybit::HOUSE,
    &kraken::HOUSE,
    &coinbase::HOUSE,
    &kucoin::HOUSE,
    &gate::HOUSE,
    &bitget::HOUSE,
    &binanceus::HOUSE,
    &bitstamp::HOUSE,
    &cryptocom::HOUSE,
    &htx::HOUSE,
    &mexc::HOUSE,
    &upbit::HOUSE,
];
