//! Recorded answers of exchanges: every figure that is decoded equals the text of the body digit for digit, and
//! what CCXT makes of the same bytes, where that is right. `serves.rs` tells that what is decoded is served.
//!
//! Where CCXT differs, [`DIFFERS`] says so and why, and an entry that no recording bears out is an error.
//!
//! The recordings stand in `../shared/exchange-fixtures`, or where `MARKETD_FIXTURES` says. Where they are not,
//! these tests say so and pass.

use crate::fakes::fakes;
use crate::fakes::judge::*;
use crate::fakes::places::Fake;
use crate::support::*;
use marketd::decimal::Decimal;
use marketd::exchange::Call;
use marketd::interval::Stored;
use marketd::time::UnixMs;
use serde_json::value::RawValue;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What is recorded.
const RECORDINGS: usize = 53;

/// Recordings of other times and markets than the description is of: the figures that they lack, and where
/// else they say something.
const ODD: [(&str, &str, &str); 5] = [
    ("mexc.fetchTickers.sample", "bidVolume askVolume quoteVolume", ""),
    ("binance.fetchMarkets.trimmed25", "", NOTIONAL),
    ("binanceus.fetchMarkets.full-2021", "", NOTIONAL),
    (
        "coinbaseexchange.fetchMarkets.full-2021",
        "",
        r#"{"base_min_size":"$minAmount","base_max_size":"$maxAmount","max_market_funds":"$maxCost"}"#,
    ),
    ("kucoin.fetchMarkets.full-2021", "", r#"{"quoteMinSize":"$minCost"}"#),
];

const NOTIONAL: &str = r#"{"filters":[{"filterType":"MIN_NOTIONAL","minNotional":"$minCost"}]}"#;

/// The exchange's name of an asset and ours, for each that is recorded and has another one.
const RENAMED: &str = "
binance YOYO=YOYOW
coinbase CGLD=CELO
gate 88MPH=MPH AXIS=AXISDEFI BIFI=BITCOINFILE BOX=DEFIBOX EGG=GOOSEFINANCE GTC=GAMECOM HIT=HITCHAIN
gate MPH=MORPHER RAI=RAIREFLEXINDEX SBTC=SUPERBITCOIN TNC=TRINITYNETWORKCREDIT VAI=VAIOT
kraken REP=REPV1 REPV2=REP XBT=BTC XDG=DOGE
kucoin VAI=VAIOT
okx AE=AET
upbit TON=TOKAMAK
";

/// Where CCXT has another figure, and why that is not ours.
const DIFFERS: &str = "
okx | change percentage | computed from open and last, which is the market's to do
okx | quoteVolume | of a derivative volCcy24h is no quote asset, so CCXT leaves it out; of spot it is
bybit | change | computed from open and last, which is the market's to do
bybit | timestamp | the time of the response, which CCXT does not read
bybit | volume | of an inverse contract, as is recorded, it is in the next column; of spot it is in this one
kraken | open change percentage | CCXT takes the price of the day's begin for that of 24 hours ago
kraken | quoteVolume | CCXT takes the average price times the volume for what was paid
kraken | id | dark pools share a name with the lit market: CCXT lists both
kraken | base | CCXT calls both REP and its successor REPV2 REP, against its own table
kraken | active | the list is older than its status field: CCXT takes its absence for a closed market
kucoin | open | computed from last and change, which is the market's to do
kucoin | base | CCXT cuts it from the id, which keeps the old name of an asset that was renamed
coinbase | minAmount | newer answers have no base_min_size, and CCXT no longer reads it
gate | open change | computed back from a percentage of two places: digits that nobody has sent
gate | minAmount | where none is sent, CCXT says the step
bitget | change | computed from open and last, which is the market's to do
bitstamp | open change percentage | CCXT takes the price of the day's begin for that of 24 hours ago
bitstamp | quoteVolume | CCXT takes the average price times the volume for what was paid
cryptocom | open change percentage | the documentation does not call that figure a percentage, as CCXT does
htx | change percentage | computed from open and last, which is the market's to do
htx | timestamp | the time of the response, which CCXT reads for one market, but not for all
upbit | open high low change percentage | CCXT takes figures of the day for those of 24 hours
upbit | timestamp | CCXT takes the time of the last trade for that of the ticker
upbit | price amount | the list is only names: the eight places are CCXT's own
upbit | base | CCXT calls an asset by two words, which are no symbol here
";

/// What a file holds of it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    /// The address that the body belongs to.
    url: String,
    #[serde(borrow)]
    http_response: &'a RawValue,
    #[serde(borrow)]
    expected: Option<&'a RawValue>,
}

/// A recording, and the exchange that it is of.
struct Recording {
    /// The name of its file.
    file: String,
    fake: &'static Fake,
    /// Path and query of the address, as they are now.
    target: String,
    /// The body, byte for byte as in the file.
    body: String,
    /// What CCXT returned for it, byte for byte as in the file.
    expected: Option<String>,
}

impl Recording {
    /// All of them. `None`, and a line that no test runner swallows, where there are none.
    fn all() -> Option<Vec<Recording>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let named = std::env::var_os("MARKETD_FIXTURES").map(PathBuf::from);
        let folder = named.unwrap_or_else(|| root.join("../shared/exchange-fixtures"));
        let Ok(entries) = std::fs::read_dir(folder) else {
            skipped("no recorded exchange bodies here; MARKETD_FIXTURES names their folder");
            return None;
        };
        let paths = entries.map(|entry| entry.expect("a directory entry").path());
        let files = paths.filter(|it| it.extension().is_some_and(|it| it == "json"));
        Some(files.map(|path| Recording::load(&path)).collect())
    }

    fn load(path: &Path) -> Recording {
        let file = path.file_name().and_then(OsStr::to_str).expect("a name").to_string();
        let text = std::fs::read_to_string(path).expect("the file is readable");
        let read: Result<File<'_>, _> = serde_json::from_str(&text);
        let File { url, http_response, expected } =
            read.unwrap_or_else(|fault| panic!("{file}: {fault}"));
        let exchange = file.split('.').next().unwrap_or_default();
        let name = if exchange == "coinbaseexchange" { "coinbase" } else { exchange };
        let fake = fakes().iter().find(|fake| fake.name == name);
        let fake = fake.unwrap_or_else(|| panic!("{file} is of no exchange"));
        let target = url.splitn(4, '/').nth(3).unwrap_or_default();
        Recording {
            fake,
            // KuCoin's list has moved since.
            target: format!("/{target}").replace("/api/v1/symbols", "/api/v2/symbols"),
            body: http_response.get().to_string(),
            expected: expected.map(|it| it.get().to_string()),
            file,
        }
    }

    fn call(&self) -> Call<'static> {
        let time = UnixMs(0);
        match self.file.split('.').nth(1) {
            Some("fetchTickers") => Call::Tickers,
            Some("fetchTicker") => Call::Ticker { id: "of the call" },
            Some("fetchOHLCV") => {
                let interval = Stored::H1;
                Call::Candles { id: "of the call", interval, from: time, to: time, now: time }
            }
            Some("fetchMarkets") => Call::Markets { named: &[] },
            Some("fetchTime") => Call::Time,
            _ => panic!("{} is of no call", self.file),
        }
    }

    /// The records of it, each of which is what the body says.
    fn judge(&self) -> (Kept, Vec<[String; 2]>) {
        let odd = ODD.iter().find(|odd| self.file.starts_with(odd.0));
        let (_, lacks, also) = odd.copied().unwrap_or_default();
        // As much as a debug build does in about a second.
        let bytes = 60_000_000;
        let body = Received { target: &self.target, text: &self.body, lacks, also, bytes };
        judge(self.fake, &self.call(), body)
    }

    /// What differs from what CCXT made of the same bytes, by its names of the figures.
    fn differs(&self, kept: &Kept) -> Vec<&'static str> {
        let Some(theirs) = self.expected.as_deref() else {
            // Of Bitstamp's no other reader is known.
            assert_eq!(self.file, "bitstamp.fetchMarkets.full.json");
            return Vec::new();
        };
        let theirs = Json::parse(theirs).expect("it is JSON");
        let mut differs = Vec::new();
        let mut check = |name, same: bool| differs.extend((!same).then_some(name));
        for time in &kept.times {
            check("time", theirs == time.0);
        }
        let is_one = theirs.get("symbol").is_some();
        check(
            "count",
            is_one || kept.tickers.is_empty() || kept.tickers.len() == theirs.keys().len(),
        );
        for (id, ticker) in &kept.tickers {
            let theirs = if is_one { &theirs } else { one_of(&theirs, id) };
            for name in FIGURES {
                check(name, is_near(figure(ticker, name), theirs.get(name)));
            }
            let time = ticker.timestamp.map(|time| time.0.to_string());
            check("timestamp", time.as_deref() == theirs.get("timestamp").and_then(Json::text));
        }
        // CCXT gives candles oldest first, whatever the exchange does.
        let mut candles: Vec<_> = kept.candles.iter().map(|(candle, _)| candle).collect();
        candles.sort_by_key(|candle| candle.open_time);
        for (candle, theirs) in candles.iter().zip(theirs.items()) {
            check("time", theirs[0] == candle.open_time.0);
            for (at, (name, ours)) in (1..).zip(candle_figures(candle)) {
                check(name, is_near(Some(ours), theirs.items().get(at)));
            }
        }
        check("count", candles.is_empty() || candles.len() == theirs.items().len());
        let markets = if kept.markets.is_empty() { &[] } else { theirs.items() };
        check("count", kept.markets.len() <= markets.len());
        for theirs in markets {
            let id = theirs["id"].text().expect("it has one");
            let market = kept.markets.iter().find(|market| &*market.ticker_id == id);
            check("id", market.is_some());
            let Some(market) = market else {
                continue;
            };
            check("base", theirs["base"] == &*market.base);
            check("quote", theirs["quote"] == &*market.quote);
            check("active", theirs["active"] == Json::Bool(market.active));
            let step = |count: Option<u8>| Decimal::from_parts(1, u32::from(count?));
            let rules = &market.rules;
            check("price", is_near(step(rules.price_places).as_ref(), theirs.get("price")));
            check("amount", is_near(step(rules.amount_places).as_ref(), theirs.get("amount")));
            check("minAmount", is_near(rules.amount.min.as_ref(), theirs.get("minAmount")));
            check("minCost", is_near(rules.cost.min.as_ref(), theirs.get("minCost")));
        }
        differs
    }
}

/// CCXT's ticker of a market.
fn one_of<'j>(theirs: &'j Json, id: &str) -> &'j Json {
    let letters = |text: &str| text.replace(['/', '-', '_'], "").to_uppercase();
    let id = if id == "XXBTZUSD" { "BTCUSD".to_owned() } else { letters(id) };
    let mut keys = theirs.keys().into_iter();
    let key = keys.find(|key| letters(theirs[*key]["symbol"].text().expect("a symbol")) == id);
    &theirs[key.unwrap_or_else(|| panic!("no {id}"))]
}

/// Whether CCXT has the same. Its numbers went through binary floating point: equal is what is the
/// same there. It leaves out zeros in some places, where a zero is no figure.
fn is_near(ours: Option<&Decimal>, theirs: Option<&Json>) -> bool {
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let ours = ours.map(|ours| number(&ours.to_string()));
    let theirs = theirs.and_then(Json::text).map(number);
    ours.filter(|ours| *ours != 0.0) == theirs.filter(|theirs| *theirs != 0.0)
}

#[test]
fn recorded_answers_equal_the_body_and_ccxt_where_that_is_right() {
    let Some(recordings) = Recording::all() else {
        return;
    };
    let (mut renamed, mut differs) = (Vec::new(), Vec::new());
    assert!(recordings.len() >= RECORDINGS, "{}", recordings.len());
    for recording in recordings {
        let (file, name) = (&recording.file, recording.fake.name);
        if file == "binance.error.invalid-symbol.json" {
            let refused = (400, recording.body.as_str());
            let (kept, end) = decode(recording.fake, &Call::Tickers, refused, 60_000_000);
            let told = "refused: Invalid symbol. (-1121)".to_string();
            assert_eq!((kept, end.map_err(|it| it.to_string())), (Kept::default(), Err(told)));
            continue;
        }
        let (kept, names) = recording.judge();
        renamed.extend(names.into_iter().map(|[sent, ours]| format!("{name} {sent}={ours}")));
        let found = recording.differs(&kept).into_iter();
        differs.extend(found.map(|figure| (format!("{name} {figure}"), file.clone())));
    }
    let words = |line: &'static str, rest: &'static str| {
        let (name, _) = line.split_once(' ').expect("an exchange");
        rest.split(' ').map(move |word| format!("{name} {word}"))
    };
    let lines = |table: &'static str| table.lines().filter(|line| !line.is_empty());
    let known =
        lines(RENAMED).flat_map(|line| words(line, line.split_once(' ').unwrap_or_default().1));
    renamed.sort_unstable();
    renamed.dedup();
    assert_eq!(renamed, known.collect::<Vec<_>>());
    let known =
        lines(DIFFERS).flat_map(|line| words(line, line.split(" | ").nth(1).unwrap_or_default()));
    let known: Vec<String> = known.collect();
    let unknown: Vec<_> = differs.iter().filter(|it| !known.contains(&it.0)).collect();
    assert!(unknown.is_empty(), "not CCXT's: {unknown:?}");
    let unmet: Vec<_> = known.iter().filter(|it| differs.iter().all(|met| met.0 != **it)).collect();
    assert!(unmet.is_empty(), "no recording differs so: {unmet:?}");
}
