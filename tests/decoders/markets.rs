//! Market lists: names, steps, limits, fees, and whether a market is open.

use crate::decoders::decode::{
    Differences, Differs, Items, at, check_digits, decode_good, is_near, pairs, sent, shifted,
    text_at, theirs,
};
use crate::decoders::recordings;
use crate::support::Json;
use crate::support::naive::plain;
use marketd::decimal::Decimal;
use marketd::exchange::Call;
use marketd::record::MarketInfo;

/// A recording, and where its figures stand.
pub struct Recorded {
    pub file: &'static str,
    pub dialect: &'static str,
    pub items: Items,
    /// Where the id is; empty: it is the item's name.
    pub id: &'static str,
    pub names: Names,
    /// Where the status is and what it says of an open market; nowhere: all are open.
    pub open: (&'static str, &'static str),
    pub price: Precision,
    pub amount: Precision,
    /// CCXT's names of limits, and where each is: the first place that has it counts, with bars between them.
    pub limits: &'static str,
    /// Where taker's and maker's fee are, and by how many places they are shifted.
    pub fees: Option<(&'static str, &'static str, i32)>,
}

/// Where the assets' names stand.
pub enum Names {
    /// Each at a place.
    Two(&'static str, &'static str),
    /// Both at one, with a slash between them.
    Pair(&'static str),
    /// Both at one, the quote asset first, with a hyphen between them.
    QuotePair(&'static str),
}

/// Where a precision stands.
pub enum Precision {
    /// As a step.
    Step(&'static str),
    /// As a number of decimal places.
    Places(&'static str),
    Nowhere,
}

pub const LIMITS: [&str; 6] =
    ["minPrice", "maxPrice", "minAmount", "maxAmount", "minCost", "maxCost"];

const BINANCE: Recorded = Recorded {
    file: "binance.fetchMarkets.trimmed25",
    dialect: "binance",
    items: Items::Elements("symbols"),
    id: "symbol",
    names: Names::Two("baseAsset", "quoteAsset"),
    open: ("status", "TRADING"),
    price: Precision::Step("filters/filterType=PRICE_FILTER/tickSize"),
    amount: Precision::Step("filters/filterType=LOT_SIZE/stepSize"),
    limits: "minPrice=filters/filterType=PRICE_FILTER/minPrice maxPrice=filters/filterType=PRICE_FILTER/maxPrice minAmount=filters/filterType=LOT_SIZE/minQty maxAmount=filters/filterType=LOT_SIZE/maxQty minCost=filters/filterType=NOTIONAL/minNotional|filters/filterType=MIN_NOTIONAL/minNotional maxCost=filters/filterType=NOTIONAL/maxNotional",
    fees: None,
};

pub static RECORDED: [Recorded; 11] = [
    BINANCE,
    Recorded { file: "binanceus.fetchMarkets.full-2021", dialect: "binanceus", ..BINANCE },
    Recorded {
        file: "okx.fetchMarkets.spot-full-2022",
        dialect: "okx",
        items: Items::Elements("data"),
        id: "instId",
        names: Names::Two("baseCcy", "quoteCcy"),
        open: ("state", "live"),
        price: Precision::Step("tickSz"),
        amount: Precision::Step("lotSz"),
        limits: "minAmount=minSz maxAmount=maxLmtSz",
        fees: None,
    },
    Recorded {
        file: "bybit.fetchMarkets.spot",
        dialect: "bybit",
        items: Items::Elements("result/list"),
        id: "symbol",
        names: Names::Two("baseCoin", "quoteCoin"),
        open: ("status", "Trading"),
        price: Precision::Step("priceFilter/tickSize"),
        amount: Precision::Step("lotSizeFilter/basePrecision"),
        limits: "minAmount=lotSizeFilter/minOrderQty maxAmount=lotSizeFilter/maxOrderQty minCost=lotSizeFilter/minOrderAmt maxCost=lotSizeFilter/maxOrderAmt",
        fees: None,
    },
    Recorded {
        file: "kraken.fetchMarkets.full-2021",
        dialect: "kraken",
        items: Items::Members("result"),
        id: "",
        names: Names::Pair("wsname"),
        open: ("", ""),
        price: Precision::Places("pair_decimals"),
        amount: Precision::Places("lot_decimals"),
        limits: "minAmount=ordermin",
        fees: Some(("fees/0/1", "fees_maker/0/1", -2)),
    },
    Recorded {
        file: "coinbaseexchange.fetchMarkets.full-2021",
        dialect: "coinbase",
        items: Items::Elements(""),
        id: "id",
        names: Names::Two("base_currency", "quote_currency"),
        open: ("status", "online"),
        price: Precision::Step("quote_increment"),
        amount: Precision::Step("base_increment"),
        limits: "minAmount=base_min_size maxAmount=base_max_size minCost=min_market_funds maxCost=max_market_funds",
        fees: None,
    },
    Recorded {
        file: "kucoin.fetchMarkets.full-2021",
        dialect: "kucoin",
        items: Items::Elements("data"),
        id: "symbol",
        names: Names::Two("baseCurrency", "quoteCurrency"),
        open: ("enableTrading", "true"),
        price: Precision::Step("priceIncrement"),
        amount: Precision::Step("baseIncrement"),
        limits: "minAmount=baseMinSize maxAmount=baseMaxSize minCost=minFunds|quoteMinSize maxCost=quoteMaxSize",
        fees: None,
    },
    Recorded {
        file: "gate.fetchMarkets.full-2021",
        dialect: "gate",
        items: Items::Elements(""),
        id: "id",
        names: Names::Two("base", "quote"),
        open: ("trade_status", "tradable"),
        price: Precision::Places("precision"),
        amount: Precision::Places("amount_precision"),
        limits: "minAmount=min_base_amount minCost=min_quote_amount",
        fees: Some(("fee", "fee", -2)),
    },
    Recorded {
        file: "bitget.fetchMarkets.few",
        dialect: "bitget",
        items: Items::Elements("data"),
        id: "symbol",
        names: Names::Two("baseCoin", "quoteCoin"),
        open: ("status", "online"),
        price: Precision::Places("pricePrecision"),
        amount: Precision::Places("quantityPrecision"),
        limits: "minAmount=minTradeAmount maxAmount=maxTradeAmount minCost=minTradeUSDT",
        fees: Some(("takerFeeRate", "makerFeeRate", 0)),
    },
    Recorded {
        file: "bitstamp.fetchMarkets.full",
        dialect: "bitstamp",
        items: Items::Elements(""),
        id: "name",
        names: Names::Pair("name"),
        open: ("trading", "Enabled"),
        price: Precision::Places("counter_decimals"),
        amount: Precision::Places("base_decimals"),
        limits: "",
        fees: None,
    },
    Recorded {
        file: "upbit.fetchMarkets.full-2021",
        dialect: "upbit",
        items: Items::Elements(""),
        id: "market",
        names: Names::QuotePair("market"),
        open: ("", ""),
        price: Precision::Nowhere,
        amount: Precision::Nowhere,
        limits: "",
        fees: None,
    },
];

/// The exchange's name of an asset and ours, for each that is recorded and has another one.
static RENAMED: [(&str, &str, &str); 21] = [
    ("binance", "YOYO", "YOYOW"),
    ("coinbase", "CGLD", "CELO"),
    ("gate", "88MPH", "MPH"),
    ("gate", "AXIS", "AXISDEFI"),
    ("gate", "BIFI", "BITCOINFILE"),
    ("gate", "BOX", "DEFIBOX"),
    ("gate", "EGG", "GOOSEFINANCE"),
    ("gate", "GTC", "GAMECOM"),
    ("gate", "HIT", "HITCHAIN"),
    ("gate", "MPH", "MORPHER"),
    ("gate", "RAI", "RAIREFLEXINDEX"),
    ("gate", "SBTC", "SUPERBITCOIN"),
    ("gate", "TNC", "TRINITYNETWORKCREDIT"),
    ("gate", "VAI", "VAIOT"),
    ("kraken", "REP", "REPV1"),
    ("kraken", "REPV2", "REP"),
    ("kraken", "XBT", "BTC"),
    ("kraken", "XDG", "DOGE"),
    ("kucoin", "VAI", "VAIOT"),
    ("okx", "AE", "AET"),
    ("upbit", "TON", "TOKAMAK"),
];

/// Where CCXT has another figure.
static DIFFERS: [Differs; 8] = [
    Differs {
        dialect: "kraken",
        figures: &["id"],
        why: "dark pools share a name with the lit market: CCXT lists both",
    },
    Differs {
        dialect: "kraken",
        figures: &["base"],
        why: "CCXT calls both the old REP and its successor REPV2 by the one name REP, against its \
              own table, by which the old one is REPV1",
    },
    Differs {
        dialect: "kraken",
        figures: &["active"],
        why: "the list is older than its status field: CCXT takes its absence for a closed market",
    },
    Differs {
        dialect: "coinbase",
        figures: &["minAmount"],
        why: "newer answers have no base_min_size, and CCXT no longer reads it",
    },
    Differs {
        dialect: "kucoin",
        figures: &["base"],
        why: "CCXT cuts it from the id, which keeps the old name of an asset that was renamed",
    },
    Differs {
        dialect: "gate",
        figures: &["minAmount"],
        why: "where none is sent, CCXT says the step",
    },
    Differs {
        dialect: "upbit",
        figures: &["price", "amount"],
        why: "the list is only names: the eight places are CCXT's own",
    },
    Differs {
        dialect: "upbit",
        figures: &["base"],
        why: "CCXT calls an asset by two words, which are no symbol here",
    },
];

/// The ends of ids that are left out.
const DARK_POOLS: &str = ".d";

pub fn files() -> Vec<&'static str> {
    RECORDED.iter().map(|recorded| recorded.file).collect()
}

/// Decimal places of a step, from its text.
fn places_of(step: &str) -> Option<u8> {
    if step.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return None;
    }
    let behind = step.split_once('.').map_or("", |(_, behind)| behind);
    Some(behind.trim_end_matches('0').len() as u8)
}

pub fn places(item: &Json, precision: &Precision) -> Option<u8> {
    match precision {
        Precision::Step(path) => places_of(text_at(item, path)?),
        Precision::Places(path) => Some(text_at(item, path)?.parse().expect("a small number")),
        Precision::Nowhere => None,
    }
}

fn limit<'m>(market: &'m MarketInfo, name: &str) -> Option<&'m Decimal> {
    let rules = &market.rules;
    let limit = match name {
        "minPrice" => &rules.price.min,
        "maxPrice" => &rules.price.max,
        "minAmount" => &rules.amount.min,
        "maxAmount" => &rules.amount.max,
        "minCost" => &rules.cost.min,
        "maxCost" => &rules.cost.max,
        _ => panic!("{name} is no limit"),
    };
    limit.as_ref()
}

impl Recorded {
    /// The markets of a body: the id and the item of each.
    pub fn markets<'j>(&self, body: &'j Json) -> Vec<(&'j str, &'j Json)> {
        let id = |name: Option<&'j str>, item: &'j Json| match self.id {
            "" => name.expect("it has one"),
            path => text_at(item, path).expect("it has one"),
        };
        let items = self.items.of(body).into_iter().map(|(name, item)| (id(name, item), item));
        items.filter(|(id, _)| !id.ends_with(DARK_POOLS)).collect()
    }

    /// What a body says of a limit of one of its markets. A limit of zero is none.
    pub fn limit<'j>(&self, item: &'j Json, name: &str) -> Option<&'j str> {
        let (_, paths) = pairs(self.limits).find(|(limit, _)| *limit == name)?;
        let text = paths.split('|').find_map(|path| text_at(item, path));
        text.filter(|text| plain(text) != "0")
    }
}

/// A listing against its item; gives the assets' names that are not as they were sent.
fn check(recorded: &Recorded, item: &Json, market: &MarketInfo) -> Vec<(String, String)> {
    let what = &format!("{} {}", recorded.dialect, market.ticker_id);
    // Bitstamp asks for candles by another name than it gives tickers.
    let candle_id = text_at(item, "url_symbol");
    assert_eq!(market.candle_id.as_deref(), candle_id, "{what}");
    let (base, quote) = match recorded.names {
        Names::Two(base, quote) => (text_at(item, base), text_at(item, quote)),
        Names::Pair(path) => text_at(item, path).and_then(|pair| pair.split_once('/')).unzip(),
        Names::QuotePair(path) => {
            let pair = text_at(item, path).and_then(|pair| pair.split_once('-'));
            pair.map(|(quote, base)| (base, quote)).unzip()
        }
    };
    let pairs = [(base, &market.base), (quote, &market.quote)];
    let names = pairs.map(|(sent, ours)| (sent.expect("a name").to_owned(), ours.to_string()));
    let is_open = match recorded.open {
        ("", _) => true,
        (path, open) => match at(item, path).expect("a status") {
            Json::Bool(word) => word.to_string() == open,
            other => other.text() == Some(open),
        },
    };
    assert_eq!(market.active, is_open, "{what}");
    let rules = &market.rules;
    assert_eq!(rules.price_places, places(item, &recorded.price), "{what}");
    assert_eq!(rules.amount_places, places(item, &recorded.amount), "{what}");
    for name in LIMITS {
        let text = recorded.limit(item, name);
        check_digits(limit(market, name), text, &format!("{what} {name}"));
    }
    let fee = |path| text_at(item, path);
    let (taker, maker, shift) = match recorded.fees {
        Some((taker, maker, shift)) => (fee(taker), fee(maker), shift),
        None => (None, None, 0),
    };
    for (ours, sent) in [(&rules.taker, taker), (&rules.maker, maker)] {
        let sent = sent.map(|fee| shifted(fee, shift));
        check_digits(ours.as_ref(), sent.as_deref(), what);
    }
    names.into_iter().filter(|(sent, ours)| sent != ours).collect()
}

#[test]
fn recorded_markets_equal_the_body_digit_for_digit() {
    let mut renamed = Vec::new();
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let kept = decode_good(recorded.dialect, &fixture, &Call::Markets);
        let body = sent(&fixture);
        let items = recorded.markets(&body);
        assert_eq!(kept.markets.len(), items.len(), "{}", recorded.file);
        for ((id, item), market) in items.iter().zip(&kept.markets) {
            assert_eq!(&*market.ticker_id, *id);
            for (sent, ours) in check(recorded, item, market) {
                renamed.push((recorded.dialect, sent, ours));
            }
        }
    }
    if renamed.is_empty() {
        return; // No recordings.
    }
    let mut renamed: Vec<_> = renamed
        .iter()
        .map(|(dialect, sent, ours)| (*dialect, sent.as_str(), ours.as_str()))
        .collect();
    renamed.sort_unstable();
    renamed.dedup();
    assert_eq!(renamed, RENAMED);
}

#[test]
fn recorded_markets_equal_ccxt_where_that_is_right() {
    let mut differences = Differences::new(&DIFFERS);
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        if fixture.expected.is_none() {
            assert_eq!(recorded.dialect, "bitstamp", "CCXT has a result");
            continue;
        }
        let kept = decode_good(recorded.dialect, &fixture, &Call::Markets).markets;
        let theirs = theirs(&fixture);
        for theirs in theirs.items() {
            let id = text_at(theirs, "id").expect("it has one");
            let what = &format!("{} {id}", recorded.file);
            let market = kept.iter().find(|market| &*market.ticker_id == id);
            differences.check(recorded.dialect, "id", market.is_some(), what);
            let Some(market) = market else {
                continue;
            };
            let mut check = |figure, same| differences.check(recorded.dialect, figure, same, what);
            check("base", text_at(theirs, "base") == Some(&*market.base));
            check("quote", text_at(theirs, "quote") == Some(&*market.quote));
            check("active", theirs.get("active").and_then(Json::bool) == Some(market.active));
            let step = |places: Option<u8>| {
                places.and_then(|places| Decimal::from_parts(1, u32::from(places)))
            };
            let rules = &market.rules;
            check("price", is_near(step(rules.price_places).as_ref(), theirs.get("price")));
            check("amount", is_near(step(rules.amount_places).as_ref(), theirs.get("amount")));
            for name in ["minAmount", "minCost"] {
                check(name, is_near(limit(market, name), theirs.get(name)));
            }
        }
        assert!(kept.len() <= theirs.items().len(), "{}", recorded.file);
    }
    differences.all_met();
}
