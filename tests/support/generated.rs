//! Made-up markets, any number of them, in the shapes in which Binance sends them.
//!
//! Everything is a pure function of seed, market and server time: the same question at the same
//! time gets the same bytes, in every run and on every machine. Prices move each second, by less
//! than five per cent around a level that each market keeps; a candle's close is the next one's
//! open, and the last price is the forming candle's close. Highs and lows are sampled, so those
//! of an hour need not be the highest and lowest of its minutes.
//!
//! Prices and amounts are whole numbers of [`UNIT`]ths.

use super::chance::mix;
use std::fmt::Write;

/// Parts of one: Binance writes eight places.
pub const UNIT: u64 = 100_000_000;

/// The first candle of any market: 2017-08-17 00:00 UTC, as at Binance.
pub const FIRST_MS: i64 = 1_502_928_000_000;

const DAY_MS: i64 = 86_400_000;

/// Intervals and their milliseconds.
pub const INTERVALS: [(&str, i64); 3] = [("1m", 60_000), ("1h", 3_600_000), ("1d", DAY_MS)];

/// Waves of the price: milliseconds from knot to knot, and the most that one moves it, in
/// millionths.
const WAVES: [(i64, i64); 4] =
    [(1_000, 200), (60_000, 1_000), (3_600_000, 8_000), (DAY_MS, 38_000)];

/// Bases that a person knows, with a level in whole units of the quote asset.
const KNOWN: [(&str, u64); 10] = [
    ("BTC", 64_000),
    ("ETH", 3_100),
    ("BNB", 580),
    ("SOL", 150),
    ("LTC", 80),
    ("LINK", 14),
    ("AVAX", 30),
    ("ATOM", 7),
    ("XRP", 1),
    ("DOT", 6),
];

/// None of them ends with another one, so two markets never share a joined name.
const QUOTES: [&str; 5] = ["USDT", "USDC", "FDUSD", "TRY", "EUR"];

/// A set of made-up markets.
pub struct Generated {
    markets: Vec<GeneratedMarket>,
}

/// One made-up market.
#[derive(Clone, Debug)]
pub struct GeneratedMarket {
    /// `BTC`
    pub base: String,
    /// `USDT`
    pub quote: &'static str,
    /// Price around which it moves.
    pub level: u64,
    /// Price step: a power of ten, less than a millionth of the level.
    pub tick: u64,
    salt: u64,
}

impl Generated {
    /// `count` markets. The first ten are of well-known assets in USDT.
    pub fn new(count: usize, seed: u64) -> Generated {
        let market = |n: usize| {
            let salt = mix(seed ^ mix(n as u64));
            let (base, level) = match KNOWN.get(n) {
                Some((base, level)) => ((*base).to_string(), level * UNIT),
                // From 0.001 to 1000, as many below 1 as above.
                None => (letters(n), (1 + salt % 9) * 10_u64.pow(5 + (salt >> 8) as u32 % 6)),
            };
            let quote = if n < KNOWN.len() { QUOTES[0] } else { QUOTES[n % QUOTES.len()] };
            GeneratedMarket::new(base, quote, level, salt)
        };
        Generated { markets: (0..count).map(market).collect() }
    }

    /// The markets in the order in which they are listed.
    pub fn markets(&self) -> &[GeneratedMarket] {
        &self.markets
    }

    /// The market with this joined name.
    pub fn find(&self, id: &str) -> Option<&GeneratedMarket> {
        let named = |market: &&GeneratedMarket| {
            id.strip_prefix(market.base.as_str()).is_some_and(|quote| quote == market.quote)
        };
        self.markets.iter().find(named)
    }

    /// The body of `/api/v3/ticker/24hr` without a symbol.
    pub fn tickers(&self, now: i64) -> String {
        let tickers = self.markets.iter().map(|market| market.ticker(now));
        format!("[{}]", tickers.collect::<Vec<_>>().join(","))
    }

    /// The body of `/api/v3/exchangeInfo`.
    pub fn exchange_info(&self, now: i64) -> String {
        let symbols: Vec<String> = self.markets.iter().map(GeneratedMarket::info).collect();
        format!(
            r#"{{"timezone":"UTC","serverTime":{now},"rateLimits":[{{"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":6000}}],"exchangeFilters":[],"symbols":[{}]}}"#,
            symbols.join(",")
        )
    }
}

impl GeneratedMarket {
    /// A market around this price.
    pub fn new(base: String, quote: &'static str, level: u64, salt: u64) -> GeneratedMarket {
        let tick = 10_u64.pow((level / 5_000_000).max(1).ilog10());
        GeneratedMarket { base, quote, level, tick, salt }
    }

    /// The joined name: `BTCUSDT`.
    pub fn id(&self) -> String {
        format!("{}{}", self.base, self.quote)
    }

    /// The canonical name: `BTC/USDT`.
    pub fn symbol(&self) -> String {
        format!("{}/{}", self.base, self.quote)
    }

    /// The price at a time in milliseconds: a whole number of ticks, above zero.
    pub fn price(&self, at: i64) -> u64 {
        let at = at.div_euclid(1000) * 1000;
        let moved: i64 = WAVES.iter().map(|wave| self.wave(*wave, at)).sum();
        let price = u128::from(self.level) * (1_000_000 + moved) as u128 / 1_000_000;
        (price as u64 / self.tick).max(1) * self.tick
    }

    /// One ticker with all 21 fields, in the order in which Binance sends them.
    pub fn ticker(&self, now: i64) -> String {
        let begin = now - DAY_MS;
        let (open, last) = (self.price(begin), self.price(now));
        let samples = (1..8).map(|eighth| self.price(begin + eighth * DAY_MS / 8));
        let (low, high) = samples
            .chain([open, last])
            .fold((open, open), |(low, high), price| (low.min(price), high.max(price)));
        let change = last as i64 - open as i64;
        let per_cent = change * 100_000 / open as i64;
        let average = low.midpoint(high);
        let volume = self.volume(DAY_MS, now.div_euclid(60_000));
        let trades = 1_000 + self.salt % 500_000;
        let first_id = now / 1000 + (self.salt % 1_000_000) as i64;
        let quantity = |salt: i64| decimal(self.volume(1_000, now.div_euclid(1000) + salt));
        let mut out = String::with_capacity(640);
        let mut text = |key: &str, value: &str| {
            let comma = if key == "symbol" { '{' } else { ',' };
            let _ = write!(out, "{comma}\"{key}\":\"{value}\"");
        };
        text("symbol", &self.id());
        text("priceChange", &signed(change, 8));
        text("priceChangePercent", &signed(per_cent, 3));
        text("weightedAvgPrice", &decimal(average));
        text("prevClosePrice", &decimal(open));
        text("lastPrice", &decimal(last));
        text("lastQty", &quantity(0));
        text("bidPrice", &decimal(last - self.tick));
        text("bidQty", &quantity(1));
        text("askPrice", &decimal(last + self.tick));
        text("askQty", &quantity(2));
        text("openPrice", &decimal(open));
        text("highPrice", &decimal(high));
        text("lowPrice", &decimal(low));
        text("volume", &decimal(volume));
        text("quoteVolume", &decimal(product(volume, average)));
        let _ = write!(
            out,
            r#","openTime":{begin},"closeTime":{now},"firstId":{first_id},"lastId":{},"count":{trades}}}"#,
            first_id + trades as i64 - 1
        );
        out
    }

    /// One element of the market list.
    pub fn info(&self) -> String {
        let (base, quote, tick) = (&self.base, self.quote, decimal(self.tick));
        format!(
            r#"{{"symbol":"{base}{quote}","status":"TRADING","baseAsset":"{base}","baseAssetPrecision":8,"quoteAsset":"{quote}","quotePrecision":8,"quoteAssetPrecision":8,"baseCommissionPrecision":8,"quoteCommissionPrecision":8,"orderTypes":["LIMIT","LIMIT_MAKER","MARKET","STOP_LOSS","STOP_LOSS_LIMIT","TAKE_PROFIT","TAKE_PROFIT_LIMIT"],"icebergAllowed":true,"ocoAllowed":true,"isSpotTradingAllowed":true,"isMarginTradingAllowed":false,"filters":[{{"filterType":"PRICE_FILTER","minPrice":"{tick}","maxPrice":"1000000.00000000","tickSize":"{tick}"}},{{"filterType":"LOT_SIZE","minQty":"0.00010000","maxQty":"900000.00000000","stepSize":"0.00010000"}},{{"filterType":"ICEBERG_PARTS","limit":10}},{{"filterType":"NOTIONAL","minNotional":"5.00000000","applyMinToMarket":true,"maxNotional":"9000000.00000000","applyMaxToMarket":false,"avgPriceMins":5}},{{"filterType":"MAX_NUM_ORDERS","maxNumOrders":200}}],"permissions":[],"permissionSets":[["SPOT","TRD_GRP_004","TRD_GRP_005","TRD_GRP_006"]],"defaultSelfTradePreventionMode":"EXPIRE_MAKER","allowedSelfTradePreventionModes":["EXPIRE_TAKER","EXPIRE_MAKER","EXPIRE_BOTH"]}}"#
        )
    }

    /// One candle: that of `interval_ms` opening at `open_ms`, as it looks at `now`.
    pub fn kline(&self, interval_ms: i64, open_ms: i64, now: i64) -> String {
        let end = open_ms + interval_ms;
        let (open, close) = (self.price(open_ms), self.price(end.min(now)));
        let samples = (1..4).map(|quarter| open_ms + quarter * interval_ms / 4);
        let known = samples.filter(|at| *at <= now).map(|at| self.price(at));
        let (low, high) = known
            .chain([open, close])
            .fold((open, open), |(low, high), price| (low.min(price), high.max(price)));
        let volume = self.volume(interval_ms, open_ms);
        let turnover = product(volume, low.midpoint(high));
        format!(
            r#"[{open_ms},"{}","{}","{}","{}","{}",{},"{}",{},"{}","{}","0"]"#,
            decimal(open),
            decimal(high),
            decimal(low),
            decimal(close),
            decimal(volume),
            end - 1,
            decimal(turnover),
            1 + volume % 50_000,
            decimal(volume / 2),
            decimal(turnover / 2)
        )
    }

    /// What is traded in so long a time; `when` tells one time from another.
    fn volume(&self, span_ms: i64, when: i64) -> u64 {
        let chance = mix(self.salt ^ mix(when as u64 ^ (span_ms as u64).rotate_left(32)));
        // About the same worth in every market: less of what costs more.
        let usual = UNIT * 1_000 / (self.level / UNIT + 1) * (span_ms as u64 / 1000 + 1) / 60 + 1;
        usual / 2 + chance % usual
    }

    /// A line from knot to knot, each at a height of its own.
    fn wave(&self, (every, most): (i64, i64), at: i64) -> i64 {
        let (knot, part) = (at.div_euclid(every), at.rem_euclid(every));
        let height = |knot: i64| {
            let chance = mix(self.salt ^ mix(knot as u64 ^ (every as u64) << 40));
            (chance % (2 * most as u64 + 1)) as i64 - most
        };
        (height(knot) * (every - part) + height(knot + 1) * part) / every
    }
}

/// Units as Binance writes them: eight places, always.
pub fn decimal(units: u64) -> String {
    format!("{}.{:08}", units / UNIT, units % UNIT)
}

fn signed(value: i64, places: u32) -> String {
    let one = 10_u64.pow(places);
    let (sign, size) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    format!("{sign}{}.{:0width$}", size / one, size % one, width = places as usize)
}

fn product(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) / u128::from(UNIT)) as u64
}

/// Five letters for a number, beginning with `Z`: none of the known bases does.
fn letters(number: usize) -> String {
    let letter = |place: u32| (b'A' + (number / 26_usize.pow(place) % 26) as u8) as char;
    let rest: String = [3, 2, 1, 0].into_iter().map(letter).collect();
    format!("Z{rest}")
}
