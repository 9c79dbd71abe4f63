//! The 24 markets of the demo exchange, the assets that they trade, and their price at each
//! midnight.
//!
//! This module owns all names, price levels, precisions and volumes. `generator` makes the prices
//! between two midnights.
//!
//! The value of an asset in dollars is a level plus a sum of noises with nine periods, from 1 to 256 days. So
//! it moves like the price of a real market at any scale, and never leaves its band. A midnight price is the
//! quotient of two such values. So at midnight, the prices of `BTC/EUR` and `ETH/BTC` agree with the prices
//! of `BTC/USDT` and `ETH/USDT`.
//!
//! Invariants, tested: the markets' symbols are unique; `price_places + amount_places <= 8`, as the
//! product of a price and an amount has at most eight places at Binance; eight times a day's
//! turnover, in ticks times steps, and 2^20 times its volume are below 2^62.

use super::candle::{RandomStream, derive_key};

/// A coin or a currency.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) name: &'static str,
    /// The value around which the asset's value moves, in 10^-12 dollars.
    level: i64,
    /// The largest distance of the value from its level, in thousandths of the level.
    swing: i64,
    /// The minimum cost of an order that is quoted in this asset, in 10^-8 of the asset.
    pub(super) min_order: i64,
    /// True for a currency or a stablecoin. All markets of one base asset that are quoted in such
    /// assets draw the same noise between midnights, so they move together.
    is_cash: bool,
}

/// One market.
#[derive(Debug)]
pub(super) struct DemoMarket {
    /// Binance's name of the market: both assets, joined.
    pub(super) symbol: &'static str,
    pub(super) base: &'static Asset,
    pub(super) quote: &'static Asset,
    /// Decimal places of a price. A *tick* is one unit of the last place.
    pub(super) price_places: u32,
    /// Decimal places of an amount. A *step* is one unit of the last place.
    pub(super) amount_places: u32,
    /// Base asset traded on an average day, in steps.
    pub(super) daily_volume: i64,
}

const DOLLAR: i64 = 1_000_000_000_000;
const CENT: i64 = DOLLAR / 100;

const fn cash(name: &'static str, level: i64, swing: i64) -> Asset {
    Asset { name, level, swing, min_order: 500_000_000, is_cash: true }
}

const fn coin(name: &'static str, level: i64, swing: i64, min_order: i64) -> Asset {
    Asset { name, level, swing, min_order, is_cash: false }
}

static USDT: Asset = cash("USDT", DOLLAR, 0);
static USDC: Asset = cash("USDC", DOLLAR, 1);
static EUR: Asset = cash("EUR", 108 * CENT, 40);
static BTC: Asset = coin("BTC", 95_000 * DOLLAR, 250, 10_000);
static ETH: Asset = coin("ETH", 3_300 * DOLLAR, 250, 100_000);
static BNB: Asset = coin("BNB", 640 * DOLLAR, 250, 0);
static SOL: Asset = coin("SOL", 180 * DOLLAR, 300, 0);
static XRP: Asset = coin("XRP", 220 * CENT, 300, 0);
static ADA: Asset = coin("ADA", 75 * CENT, 300, 0);
static DOGE: Asset = coin("DOGE", 21 * CENT, 300, 0);
static TRX: Asset = coin("TRX", 27 * CENT, 250, 0);
static LTC: Asset = coin("LTC", 105 * DOLLAR, 300, 0);
static LINK: Asset = coin("LINK", 17 * DOLLAR, 300, 0);
static AVAX: Asset = coin("AVAX", 26 * DOLLAR, 300, 0);
static DOT: Asset = coin("DOT", 520 * CENT, 300, 0);
static BCH: Asset = coin("BCH", 480 * DOLLAR, 300, 0);
static SHIB: Asset = coin("SHIB", 12_340_000, 300, 0);

const fn market(
    symbol: &'static str,
    (base, quote): (&'static Asset, &'static Asset),
    (price_places, amount_places): (u32, u32),
    daily_units: i64,
) -> DemoMarket {
    let daily_volume = daily_units * 10i64.pow(amount_places);
    DemoMarket { symbol, base, quote, price_places, amount_places, daily_volume }
}

/// All markets, in the order of the exchange's market list.
#[rustfmt::skip] // a table is read by its columns
pub(super) static MARKETS: [DemoMarket; 24] = [
    market("BTCUSDT",  (&BTC,  &USDT), (2, 5), 16_000),
    market("ETHUSDT",  (&ETH,  &USDT), (2, 4), 420_000),
    market("BNBUSDT",  (&BNB,  &USDT), (2, 3), 250_000),
    market("SOLUSDT",  (&SOL,  &USDT), (2, 3), 4_000_000),
    market("XRPUSDT",  (&XRP,  &USDT), (4, 1), 300_000_000),
    market("ADAUSDT",  (&ADA,  &USDT), (4, 1), 150_000_000),
    market("DOGEUSDT", (&DOGE, &USDT), (5, 0), 1_500_000_000),
    market("TRXUSDT",  (&TRX,  &USDT), (4, 1), 300_000_000),
    market("LTCUSDT",  (&LTC,  &USDT), (2, 3), 500_000),
    market("LINKUSDT", (&LINK, &USDT), (2, 2), 3_000_000),
    market("AVAXUSDT", (&AVAX, &USDT), (2, 2), 3_200_000),
    market("DOTUSDT",  (&DOT,  &USDT), (3, 2), 6_000_000),
    market("BCHUSDT",  (&BCH,  &USDT), (1, 3), 60_000),
    market("SHIBUSDT", (&SHIB, &USDT), (8, 0), 1_200_000_000_000),
    market("ETHBTC",   (&ETH,  &BTC),  (5, 3), 30_000),
    market("SOLBTC",   (&SOL,  &BTC),  (7, 1), 90_000),
    market("XRPBTC",   (&XRP,  &BTC),  (8, 0), 9_000_000),
    market("LTCBTC",   (&LTC,  &BTC),  (6, 2), 40_000),
    market("SOLETH",   (&SOL,  &ETH),  (5, 3), 30_000),
    market("LINKETH",  (&LINK, &ETH),  (6, 2), 80_000),
    market("BTCUSDC",  (&BTC,  &USDC), (2, 5), 9_000),
    market("ETHUSDC",  (&ETH,  &USDC), (2, 4), 130_000),
    market("BTCEUR",   (&BTC,  &EUR),  (2, 5), 900),
    market("ETHEUR",   (&ETH,  &EUR),  (2, 4), 9_000),
];

impl DemoMarket {
    /// The key of the market's random numbers between two midnights.
    pub(super) fn key(&self, seed: u64) -> u64 {
        let key = derive_key(seed, self.base.name);
        if self.quote.is_cash { key } else { derive_key(key, self.quote.name) }
    }

    /// The price in ticks at the start of a day. Days are counted from the epoch.
    pub(super) fn midnight_price(&self, seed: u64, day: i64) -> i64 {
        let base = i128::from(self.base.value(seed, day));
        let quote = i128::from(self.quote.value(seed, day));
        (base * 10i128.pow(self.price_places) / quote) as i64
    }
}

/// Weights of the noises with periods of 1, 2, 4, ... 256 days, in thousandths. They are the square
/// roots of the periods, as in a random walk.
const WEIGHTS: [i64; 9] = [1000, 1414, 2000, 2828, 4000, 5657, 8000, 11_314, 16_000];
const WEIGHT_SUM: i64 = 52_213;
/// At the ends of its periods, a noise is a random number from `-NOISE` to `NOISE`. In between it
/// is interpolated.
const NOISE: i64 = 1 << NOISE_BITS;
const NOISE_BITS: u32 = 16;
const NOISE_TAG: u64 = 0x6e6f;
const BILLION: i64 = 1_000_000_000;

impl Asset {
    /// The value at the start of a day, in 10^-12 dollars.
    fn value(&self, seed: u64, day: i64) -> i64 {
        if self.swing == 0 {
            return self.level;
        }
        let key = derive_key(seed, self.name);
        let mut sum = 0;
        for (octave, weight) in WEIGHTS.iter().enumerate() {
            let (index, period) = (day >> octave, 1 << octave);
            let past = day - (index << octave);
            let [from, to] = [index, index + 1].map(|index| {
                let bits = RandomStream::new(key, NOISE_TAG + octave as u64, index).bits();
                (bits >> (63 - NOISE_BITS)) as i64 - NOISE
            });
            // The shift divides by the period.
            sum += (weight * (from * (period - past) + to * past)) >> octave;
        }
        let parts = sum * (self.swing * (BILLION / 1000)) / (WEIGHT_SUM * NOISE);
        (i128::from(self.level) * i128::from(BILLION + parts) / i128::from(BILLION)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(symbol: &str) -> &'static DemoMarket {
        MARKETS.iter().find(|market| market.symbol == symbol).expect("it is listed")
    }

    #[test]
    fn the_table_keeps_its_invariants() {
        assert_eq!(WEIGHTS.iter().sum::<i64>(), WEIGHT_SUM);
        for (index, market) in MARKETS.iter().enumerate() {
            let joined = format!("{}{}", market.base.name, market.quote.name);
            assert_eq!(market.symbol, joined);
            let again = MARKETS.iter().position(|other| other.symbol == joined);
            assert_eq!(again, Some(index), "{joined}");
            assert!(market.price_places + market.amount_places <= 8, "{joined}");
            assert!(market.quote.min_order > 0, "{joined}");
        }
    }

    #[test]
    fn midnight_prices_stay_in_their_band_for_a_century() {
        for seed in [0, 1, 7, u64::MAX] {
            for market in &MARKETS {
                let level = market.base.level as i128 * 10i128.pow(market.price_places)
                    / market.quote.level as i128;
                let busiest_day = i128::from(market.daily_volume) * 14 / 10;
                assert!(busiest_day << 20 < 1 << 62, "{}", market.symbol);
                for day in 0..36_500 {
                    let price = market.midnight_price(seed, day);
                    let (low, high) = (level * 5 / 10, level * 18 / 10);
                    assert!((low..=high).contains(&i128::from(price)), "{} {price}", market.symbol);
                    assert!(price > 500, "the tick of {} is too large", market.symbol);
                    // The price, and more than a day's wick adds to it.
                    let most = i128::from(price) * 103 / 100 * busiest_day;
                    assert!(8 * most < 1 << 62, "{}", market.symbol);
                }
            }
        }
    }

    #[test]
    fn bitcoin_moves_by_a_believable_amount() {
        let market = find("BTCUSDT");
        let prices: Vec<i64> = (18_000..21_000).map(|day| market.midnight_price(1, day)).collect();
        let (low, high) = (prices.iter().min().expect("some"), prices.iter().max().expect("some"));
        assert!(*low > 7_125_000 && *high < 11_875_000, "{low} {high}");
        assert!(high - low > 2_000_000, "{low} {high}");
        let moved: i64 = prices.windows(2).map(|two| (two[1] - two[0]).abs()).sum();
        let mean = moved / 2999;
        assert!((20_000..200_000).contains(&mean), "{mean} ticks a day");
    }

    #[test]
    fn crosses_agree_at_midnight() {
        let price = |symbol: &str, day| find(symbol).midnight_price(3, day);
        for day in 19_000..19_400 {
            // 10^5 * ETH/BTC = ETH/USDT / BTC/USDT, to a tick.
            let cross = price("ETHUSDT", day) * 100_000 / price("BTCUSDT", day);
            assert!((price("ETHBTC", day) - cross).abs() <= 1);
            let dollar = price("BTCUSDC", day) - price("BTCUSDT", day);
            assert!(dollar.abs() <= price("BTCUSDT", day) / 900);
        }
    }
}
