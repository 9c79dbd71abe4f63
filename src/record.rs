//! The plain records that pass from an exchange's JSON to the market: numbers with their units,
//! and nothing that acts.
//!
//! They stand in the lowest row so that `exchange`, which makes them, and `market`, which keeps
//! them, need not know each other.

use crate::decimal::Decimal;
use crate::time::UnixMs;

/// One market's figures, as the exchange sent them. `None` is what it does not send.
/// Prices are quote asset per base; `open`, `high`, `low` and the volumes are of the last 24 hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticker {
    /// Price of the last trade.
    pub last: Decimal,
    /// Best price of a buyer.
    pub bid: Option<Decimal>,
    /// Best price of a seller.
    pub ask: Option<Decimal>,
    /// Base asset wanted at `bid`.
    pub bid_volume: Option<Decimal>,
    /// Base asset offered at `ask`.
    pub ask_volume: Option<Decimal>,
    /// Price 24 hours ago.
    pub open: Option<Decimal>,
    /// Highest price.
    pub high: Option<Decimal>,
    /// Lowest price.
    pub low: Option<Decimal>,
    /// `last - open`, in quote asset.
    pub change: Option<Decimal>,
    /// Percent points: -1.25 is minus 1.25 %.
    pub percentage: Option<Decimal>,
    /// Traded, in base asset.
    pub base_volume: Option<Decimal>,
    /// Traded, in quote asset.
    pub quote_volume: Option<Decimal>,
    /// The exchange's own time of these figures.
    pub timestamp: Option<UnixMs>,
}

/// One candle. Prices are quote asset per base; `volume` is in base asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candle {
    /// Begin of the interval.
    pub open_time: UnixMs,
    /// First price.
    pub open: Decimal,
    /// Highest price.
    pub high: Decimal,
    /// Lowest price.
    pub low: Decimal,
    /// Last price.
    pub close: Decimal,
    /// Traded, in base asset.
    pub volume: Decimal,
}

impl Candle {
    /// Whether a market can have such numbers: all prices positive, none outside of low and high,
    /// no negative volume. Says nothing of the open time, which only an interval can judge.
    pub fn is_sound(&self) -> bool {
        let Candle {
            open_time: _,
            open,
            high,
            low,
            close,
            volume,
        } = self;
        low.is_positive()
            && low <= open
            && low <= close
            && open <= high
            && close <= high
            && !volume.is_negative()
    }
}

/// One market of an exchange's market list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketInfo {
    /// The exchange's own name of the market, as its tickers carry it (`BTCUSDT`).
    pub ticker_id: Box<str>,
    /// The name by which its candles are asked for, where that is another one (Kraken).
    pub candle_id: Option<Box<str>>,
    /// Base asset in the common spelling (`BTC`, never `XBT`).
    pub base: Box<str>,
    /// Quote asset in the common spelling.
    pub quote: Box<str>,
    /// Whether it trades now. A list without a status field means yes.
    pub active: bool,
    /// Steps, limits and fees.
    pub rules: MarketRules,
}

/// What an exchange demands of orders in a market, as far as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketRules {
    /// Decimal places of an amount.
    pub amount_places: Option<u8>,
    /// Decimal places of a price.
    pub price_places: Option<u8>,
    /// Least and most base asset of an order.
    pub amount: Bounds,
    /// Least and highest price of an order.
    pub price: Bounds,
    /// Least and most quote asset of an order.
    pub cost: Bounds,
    /// Fee of a taker: 0.001 is 0.1 %.
    pub taker: Option<Decimal>,
    /// Fee of a maker: 0.001 is 0.1 %.
    pub maker: Option<Decimal>,
}

/// A least and a most, each where it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The least that is allowed.
    pub min: Option<Decimal>,
    /// The most that is allowed.
    pub max: Option<Decimal>,
}
