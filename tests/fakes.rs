//! The exchanges of this build, each by a fake of its own: a source that names one serves its quotes,
//! its charts and its markets, no fault of it harms what is served, and no limit of it is passed.
//!
//! A fake (`fakes/okx.rs` and its like) is a table ([`places`]) that is written from the exchange's
//! documents alone, without a look at the dialect that asks it: addresses, columns, units of time, order
//! and ends of ranges, pages, and what each request counts for. It is strict: what the exchange would
//! refuse, it refuses. The same fakes answer over sockets and in virtual time.

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
mod places;
mod plans;
mod recorded;
mod refusals;
mod serves;
mod shop;
mod upbit;
mod virtual_time;

use places::Fake;

/// The fakes, and for each of them a test of what it serves and a test of hours of polling it.
macro_rules! fakes {
    ($($name:ident)*) => {
        /// All of them.
        const FAKES: [&Fake; 14] = [$(&$name::FAKE),*];

        mod serve {
            $(#[test]
            fn $name() {
                super::serves::check(&super::$name::FAKE);
            })*
        }

        mod hours {
            $(#[test]
            fn $name() {
                super::day::keeps_its_limits(&super::$name::FAKE);
            })*
        }
    };
}

fakes! {
    binance okx bybit kraken coinbase kucoin gate bitget binanceus bitstamp cryptocom htx mexc upbit
}
