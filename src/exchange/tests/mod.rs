//! What holds for every dialect, for each of them, and for a made-up one.

mod binance;
mod bitget;
mod bybit;
mod coinbase;
mod dialects;
mod files;
mod gate;
mod habits;
mod kraken;
mod kucoin;
mod okx;
pub(super) mod sample;
mod schema;
mod targets_and_refusals;
pub(super) mod testing;
