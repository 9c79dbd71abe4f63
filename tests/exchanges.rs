//! Recorded answers of exchanges, through everything: a fake exchange sends the recorded bytes over
//! a socket, the built binary polls it, and what a client gets is compared with the recording,
//! digit for digit.
//!
//! Beside each recording stands what CCXT 4.5.84 made of the same bytes. In every figure that both
//! have, the two are equal as exact decimals; where they differ in form:
//!
//! - Tickers: CCXT also takes `weightedAvgPrice`, `prevClosePrice` and a middle price, repeats the
//!   last price as `close` and the time as `datetime`. The API has no fields for them.
//! - Markets: CCXT gives the steps of price and amount (`1e-05`), the API their decimal places (5).
//!   Binance calls one asset `YOYO`; CCXT, and marketd with it, calls it `YOYOW`.
//! - Candles and time: in nothing.
//!
//! The recordings stand in `../shared/exchange-fixtures`, or where `MARKETD_FIXTURES` says. Where
//! they are not, these tests say so on the terminal and pass.

use crate::support;

use marketd::exchange::{Call, Caps, Dialect, Reading, Reject, Sink};
use marketd::interval::Stored;
use marketd::record::{Candle, MarketInfo, Ticker};
use marketd::time::UnixMs;
use serde_json::{Value, json};
use support::binance::{KLINES, MARKETS, TICKERS};
use support::*;

/// Reads one of Binance's recordings.
#[track_caller]
fn recorded(fixtures: &Fixtures, name: &str) -> (Json, Option<Json>) {
    let fixture = fixtures.load(&format!("binance.{name}"));
    let body = Json::parse(&fixture.body).expect("a recording is JSON");
    let expected = fixture.expected.as_deref().map(Json::parse);
    (body, expected.map(|json| json.expect("CCXT's result is JSON")))
}

/// A daemon that polls this exchange alone.
fn polling(exchange: &Binance, source: &Value) -> Launch {
    let mut source = source.clone();
    source["id"] = json!("binance");
    source["dialect"] = json!("binance");
    source["url"] = json!(exchange.url());
    let depth = json!({ "keep": 1_000_000, "backfill": 0 });
    let launch = Launch::new(&["--data", ":memory:"]);
    launch.config(json!({
        "sources": [source],
        "history": { "1m": { "keep": 100_000_000, "backfill": 0 }, "1h": depth, "1d": depth },
        "limits": { "chartWaitMs": 60_000 },
    }))
}

/// Waits until health says `ok`: the list and the tickers have been read.
#[track_caller]
fn polled(launch: Launch) -> Marketd {
    let marketd = launch.start();
    let ok = || (get(marketd.addr(), "/health").exact()["status"] == "ok").then_some(());
    eventually(LONG, ok);
    marketd
}

#[track_caller]
fn read(marketd: &Marketd, target: &str) -> Json {
    let answer = get(marketd.addr(), target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.exact()
}

/// A decimal of any spelling in its shortest form: `6933.000` and `6.933e3` are `6933`. Written
/// without marketd's own, so that the two are judged by each other.
fn plain(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (digits, power) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let power: i32 = power.parse().expect("an exponent is a whole number");
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let mut all = format!("{whole}{places}");
    let mut point = whole.len() as i32 + power;
    while point < 1 {
        all.insert(0, '0');
        point += 1;
    }
    while all.len() < point as usize {
        all.push('0');
    }
    let (whole, places) = all.split_at(point as usize);
    let whole = whole.trim_start_matches('0');
    let places = places.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    match (whole, places) {
        ("0", "") => "0".to_string(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, places) => format!("{sign}{whole}.{places}"),
    }
}

#[test]
fn decimals_of_any_spelling_have_one_shortest_form() {
    for (text, expected) in [
        ("64123.45000000", "64123.45"),
        ("1e-05", "0.00001"),
        ("1.2e-7", "0.00000012"),
        ("-0.00055000", "-0.00055"),
        ("6.933e3", "6933"),
        ("1E+3", "1000"),
        ("0.00000000", "0"),
        ("100", "100"),
        ("007.50", "7.5"),
    ] {
        assert_eq!(plain(text), expected, "{text}");
    }
}

/// A member as the client's digits: `None` where it is null or absent.
fn digits(json: &Json, key: &str) -> Option<String> {
    json.get(key).and_then(Json::text).map(plain)
}

/// The quote's key, the body's, CCXT's.
const FIGURES: [(&str, &str, &str); 12] = [
    ("last", "lastPrice", "last"),
    ("bid", "bidPrice", "bid"),
    ("bidVolume", "bidQty", "bidVolume"),
    ("ask", "askPrice", "ask"),
    ("askVolume", "askQty", "askVolume"),
    ("open", "openPrice", "open"),
    ("high", "highPrice", "high"),
    ("low", "lowPrice", "low"),
    ("change", "priceChange", "change"),
    ("percentage", "priceChangePercent", "percentage"),
    ("baseVolume", "volume", "baseVolume"),
    ("quoteVolume", "quoteVolume", "quoteVolume"),
];

/// What only CCXT says of a ticker.
const ONLY_CCXT: [&str; 5] = ["datetime", "vwap", "previousClose", "average", "close"];

#[track_caller]
fn check_quote(quote: &Json, sent: &Json, theirs: &Json) {
    for (ours, member, ccxt) in FIGURES {
        let shown = quote[ours].to_string();
        let text = sent[member].text().expect("Binance sends texts");
        assert_eq!(shown, plain(text), "{ours} of {sent}");
        assert_eq!(Some(shown), digits(theirs, ccxt), "{ours} beside CCXT's {theirs}");
    }
    assert_eq!(quote["timestamp"], sent["closeTime"]);
    assert_eq!(quote["timestamp"], theirs["timestamp"]);
    assert_eq!(quote["symbol"], theirs["symbol"]);
    // Everything that CCXT says has been looked at.
    for key in theirs.keys() {
        let known = FIGURES.iter().any(|(_, _, ccxt)| *ccxt == key);
        let looked_at = known || ["symbol", "timestamp"].contains(&key) || ONLY_CCXT.contains(&key);
        assert!(looked_at, "CCXT's {key} in {theirs}");
    }
}

#[test]
fn recorded_tickers_come_out_digit_for_digit() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let exchange = Binance::recorded(&fixtures);
    let (sent, expected) = recorded(&fixtures, "fetchTickers.all6");
    let expected = expected.expect("it is recorded");
    let (markets, _) = recorded(&fixtures, "fetchMarkets.trimmed25");
    let is_active = |id: &str| {
        let mut items = markets["symbols"].items().iter();
        items.any(|market| market["symbol"].text() == Some(id) && market["status"] == "TRADING")
    };
    let name = |theirs: &Json| theirs["symbol"].text().unwrap_or_default().to_string();
    let Json::Object(theirs) = &expected else {
        panic!("CCXT gives an object");
    };
    let by_id = |id: &str| {
        let found = theirs.iter().find(|(symbol, _)| symbol.replace('/', "") == id);
        found.map(|(_, theirs)| theirs).expect("CCXT has the same markets")
    };
    // All active ones; then all that are named, the halted one among them.
    let marketd = polled(polling(&exchange, &json!({})));
    let every = read(&marketd, "/api/v1/quotes?symbols=*");
    let active: Vec<&Json> =
        sent.items().iter().filter(|t| is_active(t["symbol"].text().unwrap_or(""))).collect();
    assert_eq!((sent.items().len(), active.len()), (6, 5));
    assert_eq!(every["quotes"].items().len(), active.len());
    let named: Vec<String> = theirs.iter().map(|(_, theirs)| name(theirs)).collect();
    let all = polled(polling(&exchange, &json!({ "symbols": named })));
    for ticker in sent.items() {
        let id = ticker["symbol"].text().expect("a ticker has a name");
        let theirs = by_id(id);
        let target = format!("/api/v1/quotes/{id}");
        check_quote(&read(&all, &target), ticker, theirs);
        match is_active(id) {
            true => check_quote(&read(&marketd, &target), ticker, theirs),
            false => assert_eq!(get(marketd.addr(), &target).status, 404, "{id} is halted"),
        }
    }
    let rejected = read(&all, "/api/v1/metrics")["quotes"]["rejected"].clone();
    assert_eq!(rejected, 0);
}

#[test]
fn recorded_single_tickers_come_out_digit_for_digit() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let exchange = Binance::recorded(&fixtures);
    let both = ["fetchTicker.btcusdt", "fetchTicker.dogeusdt"];
    let both = both.map(|name| recorded(&fixtures, name));
    let bodies: Vec<String> = both.iter().map(|(sent, _)| sent.to_string()).collect();
    exchange.set_tickers(&format!("[{}]", bodies.join(",")));
    // The recorded list has no DOGE: one more element, made of another's.
    let list = fixtures.load("binance.fetchMarkets.trimmed25").body;
    let (markets, _) = recorded(&fixtures, "fetchMarkets.trimmed25");
    let items = markets["symbols"].items();
    let bitcoin = items.iter().find(|market| market["symbol"] == "BTCUSDT");
    let doge = bitcoin.expect("it is in the list").to_string().replace("\"BTC", "\"DOGE");
    let begin = list.find("\"symbols\":[").expect("a list of markets") + 11;
    exchange.set_markets(&format!("{}{doge},{}", &list[..begin], &list[begin..]));
    let marketd = polled(polling(&exchange, &json!({ "symbols": ["BTC/USDT", "DOGE/USDT"] })));
    for (sent, theirs) in &both {
        let id = sent["symbol"].text().expect("a ticker has a name");
        let quote = read(&marketd, &format!("/api/v1/quotes/{id}"));
        check_quote(&quote, sent, theirs.as_ref().expect("it is recorded"));
    }
    assert_eq!(digits(&read(&marketd, "/api/v1/quotes/BTCUSDT"), "high"), Some("6933".to_string()));
}

/// The row that a client gets of one that Binance has sent.
fn row_of(sent: &Json) -> Json {
    let digits = (1..6).map(|column| {
        let text = sent[column].text().expect("Binance sends texts");
        Json::Number(plain(text))
    });
    Json::Array(std::iter::once(sent[0].clone()).chain(digits).collect())
}

/// CCXT's rows with every number in its shortest form.
fn rows_of_ccxt(expected: &Json) -> Json {
    let number = |number: &Json| Json::Number(plain(number.text().expect("a row of numbers")));
    let row = |row: &Json| Json::Array(row.items().iter().map(number).collect());
    Json::Array(expected.items().iter().map(row).collect())
}

/// A range that was recorded, asked for by its two ends: exactly the recorded rows.
fn check_candles(fixtures: &Fixtures, name: &str, interval: &str, length: i64) {
    let exchange = Binance::recorded(fixtures);
    let (sent, expected) = recorded(fixtures, name);
    let expected = rows_of_ccxt(&expected.expect("it is recorded"));
    let rows = Json::Array(sent.items().iter().map(row_of).collect());
    assert_eq!(rows, expected, "{name}: CCXT's rows are those of the body");
    let open = |row: &Json| row[0].integer().expect("an open time");
    let (first, last) = (open(&sent[0]), open(&sent[sent.items().len() - 1]));
    let range = format!("from={first}&to={last}");
    let chart = |marketd: &Marketd, query: &str| {
        let target = format!("/api/ecosystem/chart?symbol=BTC/USDT&interval={interval}&{query}");
        let answer = get(marketd.addr(), &target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        assert_eq!(answer.header("Chart-Coverage"), Some("complete"), "{target}");
        answer
    };
    // Years later, on request.
    let marketd = polled(polling(
        &exchange,
        &json!({ "symbols": ["ETH/BTC", "BTC/USDT"], "quoteAssets": ["BTC"] }),
    ));
    let answer = chart(&marketd, &range);
    assert_eq!(answer.exact(), rows, "{name}");
    let missing = (last - first) / length + 1 - rows.items().len() as i64;
    assert_eq!(answer.header("Chart-Gaps"), Some(missing.to_string().as_str()));
    let texts = chart(&marketd, &format!("{range}&decimals=string"));
    let without_quotes = texts.text().replace('"', "");
    assert_eq!(without_quotes, answer.text(), "{name}");
    assert!(texts.text().matches('"').count() == rows.items().len() * 10);
    // At the time of the recording they are the newest.
    exchange.set_time(ServerTime::Fixed(last + length / 2));
    let marketd = polled(polling(&exchange, &json!({ "symbols": ["LTC/BTC", "BTC/USDT"] })));
    let answer = chart(&marketd, "limit=100");
    let newest = &rows.items()[rows.items().len() - 100..];
    assert_eq!(answer.exact().items()[..99], newest[..99], "{name}");
    // The last one was forming then: its end was not known.
    let closed = open(&newest[98]).to_string();
    assert_eq!(answer.header("Chart-Last-Closed"), Some(closed.as_str()));
    let record = read(&marketd, "/api/ecosystem/market/BTCUSDT");
    assert_eq!(record["chart"][interval]["to"], open(&newest[98]));
}

#[test]
fn a_thousand_recorded_hours_come_out_as_exact_rows_on_request() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    check_candles(&fixtures, "fetchOHLCV.btcusdt-1h-1000", "1h", 3_600_000);
}

#[test]
fn a_recorded_year_of_days_comes_out_as_exact_rows_on_request() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    check_candles(&fixtures, "fetchOHLCV.btcusdt-1d-365", "1d", 86_400_000);
}

#[test]
fn recorded_hours_are_rolled_up_as_a_person_would() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let exchange = Binance::recorded(&fixtures);
    let (sent, _) = recorded(&fixtures, "fetchOHLCV.btcusdt-1h-1000");
    let marketd = polled(polling(&exchange, &json!({ "symbols": ["BTC/USDT", "ETH/BTC"] })));
    // 2020-05-02, a whole day in the middle of the recording, four hours at a time.
    let day = 1_588_377_600_000;
    let target = format!(
        "/api/ecosystem/chart?symbol=BTCUSDT&interval=4h&from={day}&to={}",
        day + 86_400_000 - 1
    );
    let rows = read(&marketd, &target);
    let hours: Vec<Json> = sent.items().iter().map(row_of).collect();
    let units = |json: &Json| {
        let text = json.text().expect("digits");
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{places:0<8}").parse::<i128>().expect("eight places")
    };
    assert_eq!(rows.items().len(), 6);
    for (at, row) in rows.items().iter().enumerate() {
        let open = day + at as i64 * 4 * 3_600_000;
        let begin = hours.iter().position(|hour| hour[0] == open).expect("it was recorded");
        let four = &hours[begin..begin + 4];
        assert_eq!(row[0], open);
        assert_eq!((&row[1], &row[4]), (&four[0][1], &four[3][4]));
        let high = four.iter().map(|hour| units(&hour[2])).max();
        let low = four.iter().map(|hour| units(&hour[3])).min();
        let volume: i128 = four.iter().map(|hour| units(&hour[5])).sum();
        assert_eq!((Some(units(&row[2])), Some(units(&row[3]))), (high, low));
        assert_eq!(units(&row[5]), volume);
    }
}

/// Keeps candles, and takes nothing else.
#[derive(Default)]
struct Candles(Vec<Candle>);

impl Sink for Candles {
    fn wants(&mut self, _: &str) -> bool {
        false
    }
    fn ticker(&mut self, _: &str, _: Ticker) {}
    fn candle(&mut self, candle: Candle, _: bool) {
        self.0.push(candle);
    }
    fn market(&mut self, _: MarketInfo) {}
    fn time(&mut self, _: UnixMs) {}
    fn rejected(&mut self, reason: Reject<'_>) {
        panic!("rejected: {reason}");
    }
}

/// Five minutes are never asked of an exchange, they are made of minutes. So these go over a
/// socket to the decoder alone.
#[test]
fn recorded_five_minutes_are_read_by_the_decoder_from_a_socket() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let exchange = Binance::recorded(&fixtures);
    let (sent, expected) = recorded(&fixtures, "fetchOHLCV.btcusdt-5m-24");
    let fixture = fixtures.load("binance.fetchOHLCV.btcusdt-5m-24");
    let answer = get(exchange.addr(), fixture.target());
    assert_eq!(
        (answer.status, answer.exact()),
        (200, sent.clone()),
        "the fake sends what was recorded"
    );
    let dialect = Dialect::by_name("binance").expect("it is there");
    let call = Call::Candles {
        id: "BTCUSDT",
        interval: Stored::M1,
        from: UnixMs(0),
        to: UnixMs(0),
        now: UnixMs(0),
    };
    let caps = Caps { item_bytes: 65_536, envelope_bytes: 16_384 };
    let (mut reading, mut kept) = (Reading::new(dialect, &call, caps), Candles::default());
    for piece in answer.body.chunks(1460) {
        reading.feed(piece, &mut kept).expect("it is a good body");
    }
    reading.finish(answer.status).expect("it is a whole body");
    let expected = rows_of_ccxt(&expected.expect("it is recorded"));
    assert_eq!(kept.0.len(), 24);
    for ((candle, sent), theirs) in kept.0.iter().zip(sent.items()).zip(expected.items()) {
        let row = [&candle.open, &candle.high, &candle.low, &candle.close, &candle.volume];
        let ours = row.map(|decimal| Json::Number(decimal.to_string()));
        let open = Json::Number(candle.open_time.0.to_string());
        let ours = Json::Array(std::iter::once(open).chain(ours).collect());
        assert_eq!((&ours, &ours), (&row_of(sent), theirs));
    }
}

/// A number of the filter of one of these types; `None` where it is absent or zero.
fn filter(market: &Json, types: &[&str], member: &str) -> Option<String> {
    let is_of = |filter: &&Json| types.iter().any(|name| filter["filterType"] == *name);
    let found = market["filters"].items().iter().find(is_of)?;
    digits(found, member).filter(|digits| digits != "0")
}

/// Decimal places of a step.
fn places(step: &str) -> i64 {
    step.split_once('.').map_or(0, |(_, places)| places.len() as i64)
}

/// The step of so many decimal places, in its shortest form.
fn step_of(places: i64) -> String {
    plain(&format!("1e-{places}"))
}

#[test]
fn recorded_markets_are_listed_with_their_precision_and_limits() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let exchange = Binance::recorded(&fixtures);
    let (body, expected) = recorded(&fixtures, "fetchMarkets.trimmed25");
    let expected = expected.expect("it is recorded");
    let markets = body["symbols"].items();
    assert_eq!(markets.len(), 25);
    let symbol_of = |market: &Json| {
        let id = market["symbol"].text().unwrap_or_default();
        let theirs = expected.items().iter().find(|theirs| theirs["id"].text() == Some(id));
        theirs.expect("CCXT lists the same markets").clone()
    };
    let names: Vec<String> = markets
        .iter()
        .map(|market| symbol_of(market)["symbol"].text().unwrap_or_default().to_string())
        .collect();
    let marketd = polled(polling(&exchange, &json!({ "symbols": names })));
    let list = read(&marketd, "/api/ecosystem/market");
    let active = markets.iter().filter(|market| market["status"] == "TRADING").count();
    assert_eq!(list.items().len(), active);
    for market in markets {
        let theirs = symbol_of(market);
        let symbol = theirs["symbol"].text().unwrap_or_default();
        let item = read(&marketd, &format!("/api/ecosystem/market/{}", symbol.replace('/', "-")));
        assert_eq!(item["symbol"], theirs["symbol"]);
        assert_eq!(item["currency"], theirs["base"], "{symbol}");
        assert_eq!(item["pair"], theirs["quote"], "{symbol}");
        assert_eq!(item["pair"], market["quoteAsset"], "{symbol}");
        if symbol != "YOYOW/BTC" {
            assert_eq!(item["currency"], market["baseAsset"], "{symbol}");
        }
        let trades = market["status"] == "TRADING";
        assert_eq!((item["status"].bool(), theirs["active"].bool()), (Some(trades), Some(trades)));
        let in_list = list.items().iter().find(|listed| listed["symbol"] == item["symbol"]);
        assert_eq!(in_list.is_some(), trades, "{symbol}");
        if let Some(listed) = in_list {
            assert_eq!(listed["metadata"], item["metadata"], "{symbol}");
        }
        check_metadata(&item["metadata"], market, &theirs);
    }
}

fn check_metadata(metadata: &Json, market: &Json, theirs: &Json) {
    let name = &theirs["symbol"];
    for (key, kind, step, ccxt) in [
        ("price", "PRICE_FILTER", "tickSize", "price"),
        ("amount", "LOT_SIZE", "stepSize", "amount"),
    ] {
        let shown = metadata["precision"][key].integer();
        let sent = filter(market, &[kind], step);
        assert_eq!(shown, sent.as_deref().map(places), "{name} {key}");
        assert_eq!(shown.map(step_of), digits(theirs, ccxt), "{name} {key} of CCXT");
    }
    let cost = &["NOTIONAL", "MIN_NOTIONAL"][..];
    for (key, types, least, most) in [
        ("price", &["PRICE_FILTER"][..], "minPrice", "maxPrice"),
        ("amount", &["LOT_SIZE"][..], "minQty", "maxQty"),
        ("cost", cost, "minNotional", "maxNotional"),
    ] {
        let bounds = &metadata["limits"][key];
        assert_eq!(digits(bounds, "min"), filter(market, types, least), "{name} {key}");
        assert_eq!(digits(bounds, "max"), filter(market, types, most), "{name} {key}");
    }
    let limits = &metadata["limits"];
    assert_eq!(digits(&limits["amount"], "min"), digits(theirs, "minAmount"), "{name}");
    assert_eq!(digits(&limits["cost"], "min"), digits(theirs, "minCost"), "{name}");
    // Binance's public list says nothing of fees.
    assert!(metadata["taker"].is_null() && metadata["maker"].is_null(), "{name}");
}

#[test]
fn a_recorded_error_is_told_and_changes_nothing() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let error = fixtures.load("binance.error.invalid-symbol").body;
    for status in [400, 200] {
        let exchange = Binance::recorded(&fixtures);
        let source = json!({ "symbols": ["ETH/BTC", "BTC/USDT"], "pollMs": 200 });
        let marketd = polled(polling(&exchange, &source));
        let before = read(&marketd, "/api/v1/quotes/ETHBTC");
        exchange.fault_on(TICKERS, Fault::Instead(Reply::status(status, error.as_str())));
        let told = eventually(LONG, || {
            let source = read(&marketd, "/api/v1/metrics")["upstreams"][0].clone();
            (source["errors"].integer() > Some(1)).then_some(source)
        });
        let text = told["lastError"].text().unwrap_or_default();
        assert!(text.contains("-1121") && text.contains("Invalid symbol."), "{told}");
        assert_eq!(told["rateLimited"], 0, "{told}");
        let after = read(&marketd, "/api/v1/quotes/ETHBTC");
        for key in before.keys().into_iter().filter(|key| *key != "receivedAt") {
            assert_eq!(before[key], after[key], "{key}");
        }
        // Of candles: a market that the exchange does not know, and nobody waits for it.
        exchange.heal();
        exchange.fault_on(KLINES, Fault::Instead(Reply::status(status, error.as_str())));
        let ok = || (get(marketd.addr(), "/health").exact()["status"] == "ok").then_some(());
        eventually(LONG, ok);
        let chart = "/api/ecosystem/chart?symbol=ETHBTC&interval=1h&from=1588280400&to=1588380400";
        let answer = get(marketd.addr(), chart);
        assert_eq!((answer.status, answer.text()), (200, "[]"));
        assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
        assert_eq!(get(marketd.addr(), "/health").status, 200);
        assert!(exchange.count(MARKETS) == 1);
    }
}

#[test]
fn a_recorded_time_is_the_exchanges_clock() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let (body, expected) = recorded(&fixtures, "fetchTime.sample");
    let time = body["serverTime"].integer().expect("a whole number");
    assert_eq!(expected.and_then(|expected| expected.integer()), Some(time));
    let exchange = Binance::generated(1, 1);
    exchange.set_time(ServerTime::Fixed(time));
    let sent = get(exchange.addr(), "/api/v3/time");
    assert_eq!(sent.exact(), body);
    let marketd = polled(polling(&exchange, &json!({})));
    let line = marketd.await_log("clock differs", LONG);
    assert!(line.contains(" ahead_ms=") && !line.contains("ahead_ms=-"), "{line}");
    // The newest candle that it is asked for is that of its own minute, not of ours.
    get(marketd.addr(), "/api/ecosystem/chart?symbol=BTCUSDT&interval=1m&limit=2");
    let asked = exchange.await_asked(KLINES, 1, LONG);
    let end = asked[0].param("endTime").and_then(|text| text.parse::<i64>().ok());
    let minute = time - time % 60_000;
    // It may have ended since.
    assert!(end == Some(minute) || end == Some(minute + 60_000), "{end:?} at {time}");
}

#[test]
fn every_binance_recording_is_served_by_a_test_above() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    let served = [
        "binance.error.invalid-symbol.json",
        "binance.fetchMarkets.trimmed25.json",
        "binance.fetchOHLCV.btcusdt-1d-365.json",
        "binance.fetchOHLCV.btcusdt-1h-1000.json",
        "binance.fetchOHLCV.btcusdt-5m-24.json",
        "binance.fetchTicker.btcusdt.json",
        "binance.fetchTicker.dogeusdt.json",
        "binance.fetchTickers.all6.json",
        "binance.fetchTime.sample.json",
    ];
    assert_eq!(fixtures.names("binance."), served);
}
