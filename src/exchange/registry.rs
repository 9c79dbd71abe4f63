//! The table of exchanges: every dialect, by name.

use super::binance::BINANCE;
use super::bitget::BITGET;
use super::bybit::BYBIT;
use super::coinbase::COINBASE;
use super::dialect::Dialect;
use super::gate::GATE;
use super::kraken::KRAKEN;
use super::kucoin::KUCOIN;
use super::okx::OKX;

static DIALECTS: [&Dialect; 8] = [
    &BINANCE, &OKX, &BYBIT, &KRAKEN, &COINBASE, &KUCOIN, &GATE, &BITGET,
];

impl Dialect {
    /// The dialect of this name.
    pub fn by_name(name: &str) -> Option<&'static Dialect> {
        DIALECTS.into_iter().find(|dialect| dialect.name == name)
    }

    /// The names of all dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(|dialect| dialect.name)
    }
}
