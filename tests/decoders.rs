//! Recorded answers of exchanges, decoded: every field equals the text of the body digit for
//! digit, and what CCXT makes of the same bytes, where that is recorded beside them.
//!
//! The recordings stand in `../shared/exchange-fixtures`, or where `MARKETD_FIXTURES` says. Where
//! they are not, these tests say so and pass.

use marketd::decimal::Decimal;
use marketd::exchange::{Call, Caps, Dialect, ReadError, Reading, RefusalKind, Reject, Sink};
use marketd::interval::Stored;
use marketd::record::{Candle, MarketInfo, Ticker};
use marketd::time::UnixMs;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// One recording.
struct Fixture {
    name: String,
    text: String,
}

/// The members of an object as they are written.
type Texts<'a> = BTreeMap<String, &'a RawValue>;

impl Fixture {
    /// The body as it was sent.
    fn body(&self) -> &str {
        self.member("httpResponse")
            .expect("every recording has a body")
    }

    /// What CCXT made of it. Its numbers are read as texts here.
    fn expected(&self) -> Option<&str> {
        self.member("expected")
    }

    fn member(&self, name: &str) -> Option<&str> {
        texts(&self.text).remove(name).map(RawValue::get)
    }
}

/// The recordings whose names begin so; none where the folder is absent.
fn fixtures(prefix: &str) -> Vec<Fixture> {
    let folder = std::env::var_os("MARKETD_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/exchange-fixtures"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&folder) else {
        // Past the test harness, which would keep it to itself.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no recordings in {}",
            folder.display()
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        let name = path.file_name().expect("an entry has a name");
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            let text = std::fs::read_to_string(&path).expect("a recording can be read");
            found.push(Fixture { name, text });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!found.is_empty(), "no {prefix}* in {}", folder.display());
    found
}

fn texts(object: &str) -> Texts<'_> {
    serde_json::from_str(object).expect("an object")
}

fn list(array: &str) -> Vec<&RawValue> {
    serde_json::from_str(array).expect("an array")
}

/// What a number's text is once its needless parts are gone. Written without [`Decimal`], so
/// that the two are judged by each other.
fn plain(raw: &RawValue) -> String {
    let text = raw.get().trim_matches('"');
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    assert!(
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.'),
        "{text}"
    );
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    let text = match text.trim_start_matches('0') {
        "" => return "0".to_owned(),
        rest if rest.starts_with('.') => format!("0{rest}"),
        rest => rest.to_owned(),
    };
    format!("{sign}{text}")
}

fn unquoted(raw: &RawValue) -> &str {
    raw.get().trim_matches('"')
}

/// CCXT's numbers went through binary floating point: equal is what is the same there.
fn check_near(ours: Option<&Decimal>, theirs: Option<&&RawValue>, what: &str) {
    let ours = ours.map(|ours| ours.to_string().parse::<f64>().expect("a number"));
    let theirs = theirs.map(|theirs| theirs.get().parse::<f64>().expect("a number"));
    assert_eq!(ours, theirs, "{what}");
}

fn check_digits(ours: Option<&Decimal>, sent: &RawValue, what: &str) {
    assert_eq!(ours.map(ToString::to_string), Some(plain(sent)), "{what}");
}

/// A sink that keeps everything.
#[derive(Debug, Default, PartialEq)]
struct Kept {
    tickers: Vec<(String, Ticker)>,
    candles: Vec<Candle>,
    markets: Vec<MarketInfo>,
    times: Vec<UnixMs>,
}

impl Sink for Kept {
    fn wants(&mut self, _: &str) -> bool {
        true
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn candle(&mut self, candle: Candle, closed: Option<bool>) {
        assert_eq!(closed, None, "Binance says nothing of it");
        self.candles.push(candle);
    }
    fn market(&mut self, info: MarketInfo) {
        self.markets.push(info);
    }
    fn time(&mut self, time: UnixMs) {
        self.times.push(time);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        panic!("rejected: {reason}");
    }
}

/// Most places at which one body is split in two.
const SPLITS: usize = 3000;

/// Decodes the body at once; then in slices of several sizes and split in two at every place
/// (of a long body: at seeded ones), which must give the same.
fn decode(fixture: &Fixture, call: &Call<'_>) -> (Kept, Result<(), ReadError>) {
    let dialect = Dialect::by_name("binance").expect("it is there");
    let caps = Caps {
        item_bytes: 64 * 1024,
        envelope_bytes: 16 * 1024,
    };
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut kept = Kept::default();
        let mut reading = Reading::new(dialect, call, caps);
        for piece in pieces {
            // What finish says, counts: it knows of every error before.
            let _ = reading.feed(piece, &mut kept);
        }
        (kept, reading.finish(200))
    };
    let body = fixture.body().as_bytes();
    let whole = run(&mut std::iter::once(body));
    for size in [1, 2, 3, 7, 100, 1000, 16 * 1024] {
        let other = run(&mut body.chunks(size));
        assert!(other == whole, "{} by {size}", fixture.name);
    }
    // A split costs a whole reading: as many as a debug build does in about a second.
    let splits = SPLITS.min(60_000_000 / (body.len() + 1)).max(50);
    let mut seed = body.len() as u64;
    for index in 0..splits.min(body.len()) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = match body.len() <= splits {
            true => index,
            false => (seed >> 33) as usize % body.len(),
        };
        let (front, back) = body.split_at(at);
        let other = run(&mut [front, back].into_iter());
        assert!(other == whole, "{} at {at}", fixture.name);
    }
    whole
}

fn check_ticker(sent: &Texts<'_>, id: &str, ticker: &Ticker) {
    assert_eq!(unquoted(sent["symbol"]), id);
    let figures = [
        ("lastPrice", Some(&ticker.last)),
        ("bidPrice", ticker.bid.as_ref()),
        ("bidQty", ticker.bid_volume.as_ref()),
        ("askPrice", ticker.ask.as_ref()),
        ("askQty", ticker.ask_volume.as_ref()),
        ("openPrice", ticker.open.as_ref()),
        ("highPrice", ticker.high.as_ref()),
        ("lowPrice", ticker.low.as_ref()),
        ("priceChange", ticker.change.as_ref()),
        ("priceChangePercent", ticker.percentage.as_ref()),
        ("volume", ticker.base_volume.as_ref()),
        ("quoteVolume", ticker.quote_volume.as_ref()),
    ];
    for (member, ours) in figures {
        check_digits(ours, sent[member], &format!("{id} {member}"));
    }
    let time = ticker.timestamp.map(|time| time.0.to_string());
    assert_eq!(time.as_deref(), Some(sent["closeTime"].get()), "{id}");
}

fn check_ccxt_ticker(theirs: &Texts<'_>, id: &str, ticker: &Ticker) {
    assert_eq!(unquoted(theirs["symbol"]).replace('/', ""), id);
    let figures = [
        ("last", Some(&ticker.last)),
        ("bid", ticker.bid.as_ref()),
        ("bidVolume", ticker.bid_volume.as_ref()),
        ("ask", ticker.ask.as_ref()),
        ("askVolume", ticker.ask_volume.as_ref()),
        ("open", ticker.open.as_ref()),
        ("high", ticker.high.as_ref()),
        ("low", ticker.low.as_ref()),
        ("change", ticker.change.as_ref()),
        ("percentage", ticker.percentage.as_ref()),
        ("baseVolume", ticker.base_volume.as_ref()),
        ("quoteVolume", ticker.quote_volume.as_ref()),
    ];
    for (member, ours) in figures {
        check_near(ours, theirs.get(member), &format!("{id} {member}"));
    }
    let time = ticker.timestamp.map(|time| time.0.to_string());
    assert_eq!(
        time.as_deref(),
        theirs.get("timestamp").map(|raw| raw.get()),
        "{id}"
    );
}

#[test]
fn binance_tickers_equal_the_body_and_ccxt() {
    for fixture in fixtures("binance.fetchTickers.") {
        let (kept, end) = decode(&fixture, &Call::Tickers);
        assert_eq!(end, Ok(()), "{}", fixture.name);
        let sent = list(fixture.body());
        assert_eq!(kept.tickers.len(), sent.len(), "{}", fixture.name);
        let expected = texts(fixture.expected().expect("it is recorded"));
        assert_eq!(expected.len(), sent.len(), "{}", fixture.name);
        for (sent, (id, ticker)) in sent.iter().zip(&kept.tickers) {
            check_ticker(&texts(sent.get()), id, ticker);
            let theirs = expected
                .iter()
                .find(|(symbol, _)| symbol.replace('/', "") == *id);
            check_ccxt_ticker(&texts(theirs.expect("the same market").1.get()), id, ticker);
        }
    }
    for fixture in fixtures("binance.fetchTicker.") {
        let (kept, end) = decode(&fixture, &Call::Ticker { id: "of the call" });
        assert_eq!(end, Ok(()), "{}", fixture.name);
        let [(id, ticker)] = &kept.tickers[..] else {
            panic!("{}: {:?}", fixture.name, kept.tickers);
        };
        check_ticker(&texts(fixture.body()), id, ticker);
        check_ccxt_ticker(
            &texts(fixture.expected().expect("it is recorded")),
            id,
            ticker,
        );
    }
}

#[test]
fn binance_candles_equal_the_body_and_ccxt() {
    for fixture in fixtures("binance.fetchOHLCV.") {
        let call = Call::Candles {
            id: "BTCUSDT",
            interval: Stored::H1,
            from: UnixMs(0),
            to: UnixMs(0),
            limit: 1000,
            now: UnixMs(0),
        };
        let (kept, end) = decode(&fixture, &call);
        assert_eq!(end, Ok(()), "{}", fixture.name);
        let (sent, expected) = (list(fixture.body()), fixture.expected());
        let expected = list(expected.expect("it is recorded"));
        assert_eq!(kept.candles.len(), sent.len(), "{}", fixture.name);
        assert_eq!(kept.candles.len(), expected.len(), "{}", fixture.name);
        for ((sent, theirs), candle) in sent.iter().zip(&expected).zip(&kept.candles) {
            let (sent, theirs) = (list(sent.get()), list(theirs.get()));
            assert_eq!(candle.open_time.0.to_string(), sent[0].get());
            assert_eq!(candle.open_time.0.to_string(), theirs[0].get());
            let row = [
                &candle.open,
                &candle.high,
                &candle.low,
                &candle.close,
                &candle.volume,
            ];
            for (column, ours) in (1..).zip(row) {
                check_digits(Some(ours), sent[column], &fixture.name);
                check_near(Some(ours), Some(&theirs[column]), &fixture.name);
            }
        }
    }
}

/// Decimal places of a step, from its text.
fn places(step: &str) -> Option<u8> {
    if step.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return None;
    }
    let behind = step.split_once('.').map_or("", |(_, behind)| behind);
    Some(behind.trim_end_matches('0').len() as u8)
}

/// The member of the first filter of one of these types; zero means none.
fn filter(sent: &Value, types: &[&str], member: &str) -> Option<String> {
    let filters = sent["filters"].as_array().expect("an array");
    let of_type = |filter: &&Value| types.iter().any(|name| filter["filterType"] == **name);
    let text = filters.iter().find(of_type)?.get(member)?;
    let raw = RawValue::from_string(text.to_string()).expect("it was JSON");
    Some(plain(&raw)).filter(|text| text != "0")
}

fn check_market(sent: &Value, market: &MarketInfo) {
    let id = sent["symbol"].as_str().expect("a text");
    assert_eq!(&*market.ticker_id, id);
    assert_eq!(market.candle_id, None, "{id}");
    let base = sent["baseAsset"].as_str().map(|base| match base {
        "YOYO" => "YOYOW",
        other => other,
    });
    assert_eq!(Some(&*market.base), base, "{id}");
    assert_eq!(Some(&*market.quote), sent["quoteAsset"].as_str(), "{id}");
    assert_eq!(market.active, sent["status"] == "TRADING", "{id}");
    let rules = &market.rules;
    let step = |kind, member| filter(sent, &[kind], member).and_then(|step| places(&step));
    assert_eq!(rules.price_places, step("PRICE_FILTER", "tickSize"), "{id}");
    assert_eq!(rules.amount_places, step("LOT_SIZE", "stepSize"), "{id}");
    let cost = &["NOTIONAL", "MIN_NOTIONAL"][..];
    for (ours, types, member) in [
        (&rules.price.min, &["PRICE_FILTER"][..], "minPrice"),
        (&rules.price.max, &["PRICE_FILTER"][..], "maxPrice"),
        (&rules.amount.min, &["LOT_SIZE"][..], "minQty"),
        (&rules.amount.max, &["LOT_SIZE"][..], "maxQty"),
        (&rules.cost.min, cost, "minNotional"),
        (&rules.cost.max, cost, "maxNotional"),
    ] {
        let sent = filter(sent, types, member);
        assert_eq!(
            ours.as_ref().map(ToString::to_string),
            sent,
            "{id} {member}"
        );
    }
    assert_eq!((&rules.taker, &rules.maker), (&None, &None), "{id}");
}

fn check_ccxt_market(theirs: &Texts<'_>, market: &MarketInfo) {
    let id = &*market.ticker_id;
    assert_eq!(unquoted(theirs["id"]), id);
    assert_eq!(unquoted(theirs["base"]), &*market.base, "{id}");
    assert_eq!(unquoted(theirs["quote"]), &*market.quote, "{id}");
    assert_eq!(theirs["active"].get(), market.active.to_string(), "{id}");
    let rules = &market.rules;
    let step =
        |places: Option<u8>| places.and_then(|places| Decimal::from_parts(1, u32::from(places)));
    check_near(step(rules.price_places).as_ref(), theirs.get("price"), id);
    check_near(step(rules.amount_places).as_ref(), theirs.get("amount"), id);
    check_near(rules.amount.min.as_ref(), theirs.get("minAmount"), id);
    check_near(rules.cost.min.as_ref(), theirs.get("minCost"), id);
}

#[test]
fn binance_markets_equal_the_body_and_ccxt() {
    let mut found = fixtures("binance.fetchMarkets.");
    found.extend(fixtures("binanceus.fetchMarkets."));
    for fixture in found {
        let (kept, end) = decode(&fixture, &Call::Markets);
        assert_eq!(end, Ok(()), "{}", fixture.name);
        let body: Value = serde_json::from_str(fixture.body()).expect("JSON");
        let sent = body["symbols"].as_array().expect("an array");
        assert_eq!(kept.markets.len(), sent.len(), "{}", fixture.name);
        for (sent, market) in sent.iter().zip(&kept.markets) {
            check_market(sent, market);
        }
        let expected = list(fixture.expected().expect("it is recorded"));
        assert_eq!(expected.len(), sent.len(), "{}", fixture.name);
        for theirs in expected {
            let theirs = texts(theirs.get());
            let id = unquoted(theirs["id"]);
            let market = kept.markets.iter().find(|market| &*market.ticker_id == id);
            check_ccxt_market(&theirs, market.expect("the same market"));
        }
    }
}

#[test]
fn binance_time_equals_the_body_and_ccxt() {
    for fixture in fixtures("binance.fetchTime.") {
        let (kept, end) = decode(&fixture, &Call::Time);
        assert_eq!(end, Ok(()), "{}", fixture.name);
        let time = kept.times[0].0.to_string();
        assert_eq!(time, texts(fixture.body())["serverTime"].get());
        assert_eq!(Some(&*time), fixture.expected());
    }
}

#[test]
fn binance_errors_are_refusals_whatever_was_asked() {
    for fixture in fixtures("binance.error.") {
        for call in [
            Call::Tickers,
            Call::Ticker {
                id: "BTCUSD_201225",
            },
            Call::Markets,
            Call::Time,
        ] {
            let (kept, end) = decode(&fixture, &call);
            let expected = ReadError::Refused {
                code: "-1121".into(),
                message: "Invalid symbol.".into(),
                kind: RefusalKind::UnknownMarket,
            };
            assert_eq!((kept, end), (Kept::default(), Err(expected)), "{call:?}");
        }
    }
}

#[test]
fn every_binance_recording_is_read_by_a_test_above() {
    for fixture in fixtures("binance.") {
        let kind = fixture.name.split('.').nth(1).unwrap_or_default();
        let known = [
            "fetchTicker",
            "fetchTickers",
            "fetchOHLCV",
            "fetchMarkets",
            "fetchTime",
            "error",
        ];
        assert!(known.contains(&kind), "{}", fixture.name);
    }
}
