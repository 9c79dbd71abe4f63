//! Binance.US: the answers of Binance, with weights and a limit of its own.

use crate::fakes::binance;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake { name: "binanceus", charge, ..binance::FAKE };

fn charge(asked: &Asked) -> Charge {
    let units = match asked.path() {
        "/api/v3/ticker/24hr" => binance::ticker_units(asked, [1, 20, 40]),
        "/api/v3/exchangeInfo" => 10,
        _ => 1,
    };
    Charge { pool: "weight", units, most: 1200, span_ms: 60_000 }
}
