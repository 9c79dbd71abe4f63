//! Recorded answers over sockets: what is served has the digits of the body.
//!
//! Where the figures of a recording stand is in the tables of [`crate::decoders`]. Recordings of
//! derivatives, of intervals that are not stored, and of rows that begin at no slot are judged there alone.

use crate::decoders::decode::{pairs, text_at};
use crate::decoders::{candles, markets, tickers};
use crate::fakes::FAKES;
use crate::fakes::places::Fake;
use crate::fakes::serves::*;
use crate::fakes::shop::*;
use crate::support::naive::plain;
use crate::support::*;

/// Recorded tickers, and a market that is among them.
const TICKERS: [(&str, &str); 10] = [
    ("binance.fetchTickers.all6", "ETH/BTC"),
    ("bybit.fetchTickers.spot", "BTC/USDT"),
    ("kraken.fetchTicker.btcusdt", "BTC/USDT"),
    ("kraken.fetchTickers.btcusd", "BTC/USD"),
    ("coinbaseexchange.fetchTicker.btcusdt", "BTC/USDT"),
    ("kucoin.fetchTickers.sample", "BTC/USDT"),
    ("gate.fetchTickers.two", "ETH/USDT"),
    ("gate.fetchTicker.btcusdt", "BTC/USDT"),
    ("bitget.fetchTickers.sample", "BTC/USDT"),
    ("htx.fetchTicker.btcusdt", "BTC/USDT"),
];

/// Recorded candles.
const CANDLES: [&str; 9] = [
    "binance.fetchOHLCV.btcusdt-1h-1000",
    "binance.fetchOHLCV.btcusdt-1d-365",
    "kraken.fetchOHLCV.btcusd-1m-720",
    "coinbaseexchange.fetchOHLCV.btcusd-1m-2018",
    "coinbaseexchange.fetchOHLCV.btcusdt-1h-1",
    "kucoin.fetchOHLCV.sample",
    "gate.fetchOHLCV.one",
    "mexc.fetchOHLCV.btcusdt-1h-1",
    "bitstamp.fetchOHLCV.btcusdt-1h-1",
];

fn fake_of(dialect: &str) -> &'static Fake {
    FAKES.into_iter().find(|fake| fake.name == dialect).expect("every dialect has a fake")
}

/// A shop of which this is recorded; markets that are not made up are those of the recorded list.
fn shop_of(fixtures: &Fixtures, dialect: &str, symbol: &str, fixture: &Fixture) -> Shop {
    let mut shop = Shop::new(30);
    shop.recorded = vec![(fixture.path().to_string(), fixture.body.clone())];
    if !symbol.ends_with("USDT") {
        let list = markets::RECORDED.iter().find(|list| list.dialect == dialect);
        let list = fixtures.load(list.expect("a recorded list").file);
        shop.recorded.push((list.path().to_string(), list.body));
    }
    shop
}

/// What a quote or a row shows of a figure that a body holds as a text or as a number.
fn figure(item: &Json, path: &str) -> Json {
    text_at(item, path).map_or(Json::Null, |text| Json::Number(plain(text)))
}

#[test]
fn recorded_tickers_are_served_with_their_digits() {
    let Some(fixtures) = &Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for (file, symbol) in TICKERS {
            scope.spawn(move || {
                let recorded = tickers::RECORDED.iter().find(|recorded| recorded.file == file);
                let recorded = recorded.expect("a row of that table");
                let fixture = fixtures.load(file);
                let fake = fake_of(recorded.dialect);
                let open = Open::new(fake, shop_of(fixtures, fake.name, symbol, &fixture));
                let marketd = start(&open, symbol);
                let quote = await_quote(&marketd, &symbol.replace('/', "-"));
                let body = Json::parse(&fixture.body).expect("a body is JSON");
                let items = recorded.items.of(&body);
                let (base, quote_asset) = symbol.split_once('/').expect("two assets");
                let id = (fake.id)(base, quote_asset);
                let is_it = |item: &Json| text_at(item, recorded.id) == Some(&id);
                let found = items.iter().find(|(_, item)| items.len() == 1 || is_it(item));
                let (_, item) = found.expect("it is among them");
                for (field, path) in pairs(recorded.figures) {
                    // A price of zero is none, and nor is the size beside it.
                    let beside = field.strip_suffix("Volume").filter(|side| side.len() == 3);
                    let price = pairs(recorded.figures)
                        .find(|(name, _)| *name == beside.unwrap_or(field))
                        .map(|(_, path)| figure(item, path));
                    let is_price = beside.is_some() || !field.ends_with("Volume");
                    let expected = match is_price && price == Some(Json::Number("0".into())) {
                        true => Json::Null,
                        false => figure(item, path),
                    };
                    assert_eq!(quote[field], expected, "{field} of {file}");
                }
            });
        }
    });
}

#[test]
fn recorded_candles_are_served_with_their_digits() {
    let Some(fixtures) = &Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for file in CANDLES {
            scope.spawn(move || {
                let recorded = candles::RECORDED.iter().find(|recorded| recorded.file == file);
                let recorded = recorded.expect("a row of that table");
                let fixture = fixtures.load(file);
                let body = Json::parse(&fixture.body).expect("a body is JSON");
                let word = |at: usize| fixture.input[at].as_str().expect("a word").to_string();
                let (symbol, name) = (word(0), word(1));
                let length = match name.as_str() {
                    "1m" => MINUTE_MS,
                    "1h" => HOUR_MS,
                    _ => DAY_MS,
                };
                let [time, columns @ ..] = recorded.columns;
                let row = |row: &Json| {
                    let open = text_at(row, time).and_then(|text| text.parse::<i64>().ok());
                    let open = open.expect("a time") * recorded.unit_ms;
                    let figures = columns.iter().map(|column| figure(row, column));
                    let time = std::iter::once(Json::Number(open.to_string()));
                    (open, Json::Array(time.chain(figures).collect()))
                };
                let rows = crate::decoders::decode::at(&body, recorded.rows).expect("rows");
                let mut expected: Vec<(i64, Json)> = rows.items().iter().map(row).collect();
                expected.sort_by_key(|(open, _)| *open);
                if recorded.dialect == "kraken" {
                    // With the candle that has begun since, it is one more than Kraken tells.
                    expected.remove(0);
                }
                let (first, last) = (expected[0].0, expected[expected.len() - 1].0);
                let mut shop = shop_of(fixtures, recorded.dialect, &symbol, &fixture);
                // The newest of them has just been closed.
                shop.now = last + length + 2_000;
                let open = Open::new(fake_of(recorded.dialect), shop);
                let marketd = start(&open, &symbol);
                let target = format!(
                    "/api/ecosystem/chart?symbol={symbol}&interval={name}&from={first}&to={last}&limit=1000"
                );
                let answer = await_answer(marketd.addr(), &target, |answer| {
                    // Until the exchange's clock is known, all of this is older than what is kept.
                    let is_there = !answer.exact().items().is_empty();
                    is_there && answer.header("Chart-Coverage") == Some("complete")
                });
                let slots = (last - first) / length + 1;
                let gaps = (slots - expected.len() as i64).to_string();
                assert_eq!(answer.header("Chart-Gaps"), Some(gaps.as_str()), "{file}");
                let rows = expected.into_iter().map(|(_, row)| row).collect();
                assert_eq!(answer.exact(), Json::Array(rows), "{file}");
            });
        }
    });
}

/// Compares the rules of a market with its item in the recorded list.
fn check_rules(recorded: &markets::Recorded, item: &Json, metadata: &Json) {
    let what = format!("{}: {item}", recorded.file);
    for (key, precision) in [("price", &recorded.price), ("amount", &recorded.amount)] {
        let places = markets::places(item, precision).map(i64::from);
        assert_eq!(metadata["precision"][key].integer(), places, "{what}");
    }
    for name in markets::LIMITS {
        let (end, of) = name.split_at(3);
        let limit = recorded.limit(item, name).map_or(Json::Null, |it| Json::Number(plain(it)));
        assert_eq!(metadata["limits"][&*of.to_lowercase()][end], limit, "{name} of {what}");
    }
}

#[test]
fn recorded_market_lists_are_served_whole() {
    let Some(fixtures) = &Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for recorded in &markets::RECORDED {
            let file = recorded.file;
            let fixture = fixtures.load(file);
            // Of Bitstamp's no other reader is known.
            let Some(theirs) = fixture.expected.as_deref().map(Json::parse) else {
                continue;
            };
            scope.spawn(move || {
                let mut shop = Shop::new(1);
                // KuCoin's has moved since.
                let path = fixture.path().replace("/api/v1/symbols", "/api/v2/symbols");
                shop.recorded = vec![(path, fixture.body.clone())];
                let open = Open::new(fake_of(recorded.dialect), shop);
                let marketd = Marketd::start(&["--source", &open.source(), "--data", ":memory:"]);
                // The list that is served follows the exchange's own, under its names for people.
                let answer = await_answer(marketd.addr(), "/api/ecosystem/market", |answer| {
                    answer.status == 200 && !answer.exact().items().is_empty()
                });
                let (served, theirs) = (answer.exact(), theirs.expect("it is JSON"));
                let body = Json::parse(&fixture.body).expect("a body is JSON");
                let sent = recorded.markets(&body);
                let (mut both, mut open_there) = (0, 0);
                for market in theirs.items() {
                    open_there += usize::from(market["active"] != Json::Bool(false));
                    let same = |one: &&Json| one["symbol"] == market["symbol"];
                    let Some(ours) = served.items().iter().find(same) else {
                        continue;
                    };
                    both += 1;
                    assert_eq!(ours["currency"], market["base"], "{file}");
                    assert_eq!(ours["pair"], market["quote"], "{file}");
                    let item = sent.iter().find(|(id, _)| market["id"].text() == Some(id));
                    match item {
                        Some((_, item)) => check_rules(recorded, item, &ours["metadata"]),
                        None => assert!(market["id"].text().is_some_and(|id| id.ends_with(".d"))),
                    }
                }
                let count = served.items().len();
                println!("{file}: {count} served, {open_there} open there, {both} in both");
                // Some assets are named otherwise on purpose, and dark pools are left out.
                assert!(both * 100 >= count * 97, "{file}: {both} of {count}");
                assert!(both * 100 >= open_there * 85, "{file}: {both} of {open_there}");
            });
        }
    });
}
