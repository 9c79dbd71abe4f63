//! The exchanges of this build, each by a fake of its own: a source that names one serves its quotes,
//! its charts and its markets, no fault of it harms what is served, and no limit of it is passed.
//!
//! A fake (`fakes/okx.rs` and its like) is written from the exchange's documents alone, without a
//! look at the dialect that asks it: addresses, columns, units of time, order and ends of ranges,
//! pages, and what each request counts for. It is strict: what the exchange would refuse, it
//! refuses. The same fakes answer over sockets and in virtual time.

#[path = "support/mod.rs"]
mod support;

#[path = "fakes/binance.rs"]
mod binance;
#[path = "fakes/binanceus.rs"]
mod binanceus;
#[path = "fakes/bitget.rs"]
mod bitget;
#[path = "fakes/bitstamp.rs"]
mod bitstamp;
#[path = "fakes/bybit.rs"]
mod bybit;
#[path = "fakes/coinbase.rs"]
mod coinbase;
#[path = "fakes/cryptocom.rs"]
mod cryptocom;
#[path = "fakes/day.rs"]
mod day;
#[path = "fakes/errors.rs"]
mod errors;
#[path = "fakes/gate.rs"]
mod gate;
#[path = "fakes/htx.rs"]
mod htx;
#[path = "fakes/kraken.rs"]
mod kraken;
#[path = "fakes/kucoin.rs"]
mod kucoin;
#[path = "fakes/ledger.rs"]
mod ledger;
#[path = "fakes/mexc.rs"]
mod mexc;
#[path = "fakes/okx.rs"]
mod okx;
#[path = "fakes/pages.rs"]
mod pages;
#[path = "fakes/recorded.rs"]
mod recorded;
#[path = "fakes/refusals.rs"]
mod refusals;
#[path = "fakes/serves.rs"]
mod serves;
#[path = "fakes/shop.rs"]
mod shop;
#[path = "fakes/upbit.rs"]
mod upbit;
#[path = "fakes/virtual_time.rs"]
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
