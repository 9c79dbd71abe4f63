//! Binance.US: the answers of Binance, with weights and a limit of its own.

use crate::fakes::binance;
use crate::fakes::places::Fake;

pub const FAKE: Fake = Fake {
    name: "binanceus",
    charge: |asked| binance::charge(asked, 1200, [1, 20, 40], 10, 1),
    ..binance::FAKE
};
