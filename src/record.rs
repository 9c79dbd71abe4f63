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

impl Ticker {
    /// One of which only the last price is known.
    pub fn of_last(last: Decimal) -> Ticker {
        Ticker {
            last,
            bid: None,
            ask: None,
            bid_volume: None,
            ask_volume: None,
            open: None,
            high: None,
            low: None,
            change: None,
            percentage: None,
            base_volume: None,
            quote_volume: None,
            timestamp: None,
        }
    }
}

/// One market's figures of the last 24 hours, from exchanges that do not send them with the
/// ticker. `None` is what is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Price 24 hours ago.
    pub open: Option<Decimal>,
    /// Highest price.
    pub high: Option<Decimal>,
    /// Lowest price.
    pub low: Option<Decimal>,
    /// Traded, in base asset.
    pub base_volume: Option<Decimal>,
    /// Traded, in quote asset.
    pub quote_volume: Option<Decimal>,
}

impl Ticker {
    /// Takes from the same market's figures of 24 hours what this ticker does not say.
    pub fn fill_from(&mut self, stats: &Stats) {
        let fill = |own: &mut Option<Decimal>, other: &Option<Decimal>| {
            if own.is_none() {
                own.clone_from(other);
            }
        };
        fill(&mut self.open, &stats.open);
        fill(&mut self.high, &stats.high);
        fill(&mut self.low, &stats.low);
        fill(&mut self.base_volume, &stats.base_volume);
        fill(&mut self.quote_volume, &stats.quote_volume);
    }
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
    /// A candle whose numbers could not be read: all zero, which no market can have.
    pub fn without_numbers(open_time: UnixMs) -> Candle {
        Candle {
            open_time,
            open: Decimal::ZERO,
            high: Decimal::ZERO,
            low: Decimal::ZERO,
            close: Decimal::ZERO,
            volume: Decimal::ZERO,
        }
    }

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

/// Which candles stay when there are more than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The oldest ones.
    Oldest,
    /// The newest ones.
    Newest,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_takes_from_the_stats_what_it_does_not_say_and_keeps_what_it_does() {
        let ticker = |figures: [Option<i64>; 5]| {
            let [open, high, low, base_volume, quote_volume] =
                figures.map(|figure| figure.map(Decimal::from));
            Ticker {
                last: Decimal::from(7),
                bid: Some(Decimal::from(6)),
                ask: None,
                bid_volume: None,
                ask_volume: None,
                open,
                high,
                low,
                change: None,
                percentage: None,
                base_volume,
                quote_volume,
                timestamp: Some(UnixMs(5)),
            }
        };
        let figures = [Some(20), Some(21), Some(22), None, Some(24)];
        let Ticker {
            open,
            high,
            low,
            base_volume,
            quote_volume,
            ..
        } = ticker(figures);
        let stats = Stats {
            open,
            high,
            low,
            base_volume,
            quote_volume,
        };
        for known in 0..5 {
            let own = std::array::from_fn(|index| (index == known).then_some(index as i64));
            let mut filled = ticker(own);
            filled.fill_from(&stats);
            let expected = std::array::from_fn(|index| own[index].or(figures[index]));
            assert_eq!(filled, ticker(expected), "{known}");
        }
    }
}
