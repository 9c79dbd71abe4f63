//! The exchanges of this build, each by a fake of its own: a source that names one serves its quotes,
//! its charts and its markets, no fault of it harms what is served, and no limit of it is passed.
//!
//! A fake is a description ([`exchanges`]) that is written from the exchange's documents alone, without a look
//! at the dialect that asks it: addresses, columns, units of time, order and ends of ranges, pages, and what
//! each request counts for. The same fakes answer over sockets and in virtual time, and recorded answers are
//! read by the same descriptions.

mod calls;
mod day;
mod exchanges;
mod judge;
mod places;
mod plans;
mod recorded;
mod refusals;
mod serves;
mod shop;
mod virtual_time;

use places::Fake;
use std::sync::LazyLock;

/// All of them.
fn fakes() -> &'static [Fake] {
    static FAKES: LazyLock<Vec<Fake>> = LazyLock::new(|| Fake::read(exchanges::EXCHANGES));
    &FAKES
}

fn fake(name: &str) -> &'static Fake {
    let found = fakes().iter().find(|fake| fake.name == name);
    found.unwrap_or_else(|| panic!("no fake is called {name}"))
}

/// For each of them a test of what it serves and a test of hours of polling it.
macro_rules! tests {
    ($($name:ident)*) => {
        /// Their names.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod serve {
            $(#[test]
            fn $name() {
                super::serves::check(super::fake(stringify!($name)));
            })*
        }

        mod hours {
            $(#[test]
            fn $name() {
                super::day::keeps_its_limits(super::fake(stringify!($name)));
            })*
        }
    };
}

tests! {
    binance okx bybit kraken coinbase kucoin gate bitget binanceus bitstamp cryptocom htx mexc upbit
}
