//! Market lists: what a list says about a market, and what it changes.

use super::super::ids::SymbolId;
use crate::record::{MarketInfo, MarketRules};

/// What the list of a source says about one market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of the market in tickers.
    pub ticker_id: Box<str>,
    pub(super) candle_id: Option<Box<str>>,
    /// True if it trades now.
    pub active: bool,
    /// Steps, limits and fees.
    pub rules: MarketRules,
}

/// What a list changed for its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// Tracked from now on.
    pub added: Vec<SymbolId>,
    /// No longer tracked: the source's quotes and candles of them are to be dropped.
    pub removed: Vec<SymbolId>,
    /// Markets whose symbol cannot be written.
    pub skipped: u32,
    /// Markets left out because another one of the list has the same symbol.
    pub duplicates: u32,
    /// Markets left out because of `limits.symbols`.
    pub over_cap: u32,
}

/// A list without any usable market: an error of the exchange, so it changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyList;

impl Listing {
    /// The name for requests of candles.
    pub fn candle_id(&self) -> &str {
        self.candle_id.as_deref().unwrap_or(&self.ticker_id)
    }

    pub(super) fn new(info: MarketInfo) -> Listing {
        Listing {
            ticker_id: info.ticker_id,
            candle_id: info.candle_id,
            active: info.active,
            rules: info.rules,
        }
    }
}
