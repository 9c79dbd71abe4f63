//! The exchanges of this build, each by a fake of its own: a source that names one serves its quotes,
//! its charts and its markets, no fault of it harms what is served, and no limit of it is passed.
//!
//! A fake (`fakes/okx.rs` and its like) is written from the exchange's documents alone, without a
//! look at the dialect that asks it: addresses, columns, units of time, order and ends of ranges,
//! pages, and what each request counts for. It is strict: what the exchange would refuse, it
//! refuses. The same fakes answer over sockets and in virtual time.

mod binance;
mod binanceus;
mod bitget;
mod bitstamp;
mod bybit;
mod coinbase;
mod cryptocom;
mod day;
mod errors;
mod gate;
mod htx;
mod kraken;
mod kucoin;
mod ledger;
mod mexc;
mod okx;
mod pages;
mod plans;
mod recorded;
mod refusals;
mod serves;
mod shop;
mod upbit;
mod virtual_time;

use shop::Fake;

/// All of them.
const FAKES: [&Fake; 14] = [
    &binance::FAKE,
    &okx::FAKE,
    &bybit::FAKE,
    &kraken::FAKE,
    &coinbase::FAKE,
    &kucoin::FAKE,
    &gate::FAKE,
    &bitget::FAKE,
    &binanceus::FAKE,
    &bitstamp::FAKE,
    &cryptocom::FAKE,
    &htx::FAKE,
    &mexc::FAKE,
    &upbit::FAKE,
];
