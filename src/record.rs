//! Records: what an exchange says of a market, as plain data. A [`Ticker`] has current prices, a
//! [`Candle`] the trades of one interval, a [`MarketInfo`] the rules of a market.
//!
//! This module is in the lowest layer so that `exchange`, which parses records, and `market`, which
//! keeps them, do not depend on each other. Records know nothing of JSON or of the API.

use crate::decimal::Decimal;
use crate::time::UnixMs;

/// The current prices and 24-hour statistics of one market, as the exchange sent them. A value is
/// `None` if the exchange does not send it. Prices are in quote asset per base asset; `open`, `high`,
/// `low` and the volumes are of the last 24 hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticker {
    /// Price of the last trade.
    pub last: Decimal,
    /// Highest price that a buyer offers.
    pub bid: Option<Decimal>,
    /// Lowest price that a seller asks.
    pub ask: Option<Decimal>,
    /// Amount wanted at `bid`, in base asset.
    pub bid_volume: Option<Decimal>,
    /// Amount offered at `ask`, in base asset.
    pub ask_volume: Option<Decimal>,
    /// Price 24 hours ago.
    pub open: Option<Decimal>,
    /// Highest price.
    pub high: Option<Decimal>,
    /// Lowest price.
    pub low: Option<Decimal>,
    /// `last - open`.
    pub change: Option<Decimal>,
    /// `change` in percent of `open`: -1.25 means -1.25 %.
    pub percentage: Option<Decimal>,
    /// Traded amount, in base asset.
    pub base_volume: Option<Decimal>,
    /// Traded amount, in quote asset.
    pub quote_volume: Option<Decimal>,
    /// Time of these values by the exchange's clock.
    pub timestamp: Option<UnixMs>,
}

/// Lists the optional figures of a ticker. Their order is the order in the history file and in the messages
/// between nodes.
macro_rules! figures {
    ($($figure:ident $name:literal)+) => {
        impl Ticker {
            /// The names of the figures that may be `None`, in their order.
            pub const FIGURES: [&str; 11] = [$($name),+];

            /// The figures that may be `None`.
            pub fn figures(&self) -> [&Option<Decimal>; 11] {
                [$(&self.$figure),+]
            }

            /// The figures that may be `None`, to be set.
            pub fn figures_mut(&mut self) -> [&mut Option<Decimal>; 11] {
                [$(&mut self.$figure),+]
            }
        }
    };
}

figures! {
    bid "bid" ask "ask" bid_volume "bidVolume" ask_volume "askVolume" open "open" high "high" low "low"
    change "change" percentage "percentage" base_volume "baseVolume" quote_volume "quoteVolume"
}

impl Ticker {
    /// A ticker with nothing but a last price.
    pub fn of_last(last: Decimal) -> Ticker {
        Ticker { last, ..Ticker::default() }
    }

    /// True if a price or a volume of this ticker differs from the older one's. A figure that only one of
    /// them has says nothing. Nor does the timestamp: many exchanges send the time of the answer even if
    /// nothing changes.
    pub fn tells_more_than(&self, older: &Ticker) -> bool {
        let mut pairs = self.figures().into_iter().zip(older.figures());
        let differs = pairs.any(|(new, old)| new.is_some() && old.is_some() && new != old);
        self.last != older.last || differs
    }

    /// A ticker made of a candle of the last 24 hours.
    pub fn of_window(Candle { open, high, low, close, volume, .. }: Candle) -> Ticker {
        let change = close.checked_sub(&open);
        Ticker {
            percentage: change.as_ref().and_then(|change| change.percent_of(&open, 3)),
            change,
            open: Some(open),
            high: Some(high),
            low: Some(low),
            base_volume: Some(volume),
            ..Ticker::of_last(close)
        }
    }

    /// Fills each value that is `None` from the same market's 24-hour statistics.
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

/// The 24-hour statistics of one market, from exchanges that do not send them with the ticker. A
/// value is `None` if the exchange does not send it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Price 24 hours ago.
    pub open: Option<Decimal>,
    /// Highest price.
    pub high: Option<Decimal>,
    /// Lowest price.
    pub low: Option<Decimal>,
    /// Traded amount, in base asset.
    pub base_volume: Option<Decimal>,
    /// Traded amount, in quote asset.
    pub quote_volume: Option<Decimal>,
}

/// One candle: the trades of one interval. Prices are in quote asset per base asset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candle {
    /// Start of the interval.
    pub open_time: UnixMs,
    /// First price.
    pub open: Decimal,
    /// Highest price.
    pub high: Decimal,
    /// Lowest price.
    pub low: Decimal,
    /// Last price.
    pub close: Decimal,
    /// Traded amount, in base asset.
    pub volume: Decimal,
}

impl Candle {
    /// A placeholder for a candle whose numbers could not be parsed: all zero, so it is not
    /// [sound](Candle::is_sound).
    pub fn without_numbers(open_time: UnixMs) -> Candle {
        Candle { open_time, ..Candle::default() }
    }

    /// Open, high, low, close and volume.
    pub fn figures(&self) -> [&Decimal; 5] {
        let Candle { open_time: _, open, high, low, close, volume } = self;
        [open, high, low, close, volume]
    }

    /// True if the numbers are possible: all prices are positive and within `low` and `high`, and
    /// the volume is not negative. The open time is not checked, because the rule depends on the
    /// interval.
    pub fn is_sound(&self) -> bool {
        let [open, high, low, close, volume] = self.figures();
        low.is_positive()
            && low <= open
            && low <= close
            && open <= high
            && close <= high
            && !volume.is_negative()
    }
}

/// Which end of a range of candles to keep when the range has more than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Keep the oldest candles.
    Oldest,
    /// Keep the newest candles.
    Newest,
}

/// One entry of an exchange's market list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketInfo {
    /// The exchange's name of the market in its tickers (`BTCUSDT`).
    pub ticker_id: Box<str>,
    /// The exchange's name of the market in requests for candles, if that differs (Kraken).
    pub candle_id: Option<Box<str>>,
    /// Base asset in the common spelling (`BTC`, never `XBT`).
    pub base: Box<str>,
    /// Quote asset in the common spelling.
    pub quote: Box<str>,
    /// True if the market is open for trading. True if the list has no status field.
    pub active: bool,
    /// Precision, limits and fees.
    pub rules: MarketRules,
}

/// The rules that an exchange publishes for orders in a market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketRules {
    /// Decimal places of an amount.
    pub amount_places: Option<u8>,
    /// Decimal places of a price.
    pub price_places: Option<u8>,
    /// Limits of an order's amount, in base asset.
    pub amount: Bounds,
    /// Limits of an order's price.
    pub price: Bounds,
    /// Limits of an order's cost (price times amount), in quote asset.
    pub cost: Bounds,
    /// Fee of a taker, as a fraction: 0.001 is 0.1 %.
    pub taker: Option<Decimal>,
    /// Fee of a maker, as a fraction: 0.001 is 0.1 %.
    pub maker: Option<Decimal>,
}

/// A minimum and a maximum. `None` if the exchange does not publish it.
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
            let (bid, timestamp) = (Some(Decimal::from(6)), Some(UnixMs(5)));
            let bare = Ticker::of_last(Decimal::from(7));
            Ticker { bid, open, high, low, base_volume, quote_volume, timestamp, ..bare }
        };
        let figures = [Some(20), Some(21), Some(22), None, Some(24)];
        let Ticker { open, high, low, base_volume, quote_volume, .. } = ticker(figures);
        let stats = Stats { open, high, low, base_volume, quote_volume };
        for known in 0..5 {
            let own = std::array::from_fn(|index| (index == known).then_some(index as i64));
            let mut filled = ticker(own);
            filled.fill_from(&stats);
            let expected = std::array::from_fn(|index| own[index].or(figures[index]));
            assert_eq!(filled, ticker(expected), "{known}");
        }
    }
}
