//! Names of stored series and quotes, and a stored quote.

use crate::interval::Stored;
use crate::record::Ticker;
use crate::time::UnixMs;

/// The name of a stored series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
    /// The interval of its candles.
    pub interval: Stored,
}

/// The name of a stored quote, or of the stored rules of a market.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuoteName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
}

/// The last quote of a market, which is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuote {
    /// Its numbers.
    pub ticker: Ticker,
    /// When the last poll with this quote was received.
    pub received_at: UnixMs,
}
