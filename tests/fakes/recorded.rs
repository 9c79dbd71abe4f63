//! Recorded answers over sockets: what is served has the digits of the body.
//!
//! Recordings of derivatives, of intervals that are not stored, and of rows that begin at no slot
//! are judged by the decoders' own tests alone.

use crate::fakes::serves::*;
use crate::fakes::shop::*;
use crate::fakes::{bitget, bybit, coinbase, gate, kraken, kucoin, okx};
use crate::support::*;

/// A recorded ticker: where its item stands, and the member of each field of the quote.
struct Ticker {
    fake: &'static Fake,
    file: &'static str,
    path: &'static str,
    symbol: &'static str,
    item: &'static [&'static str],
    fields: &'static [(&'static str, &'static [&'static str])],
}

const KRAKEN: &[(&str, &[&str])] = &[
    ("last", &["c", "0"]),
    ("bid", &["b", "0"]),
    ("bidVolume", &["b", "2"]),
    ("ask", &["a", "0"]),
    ("askVolume", &["a", "2"]),
    ("high", &["h", "1"]),
    ("low", &["l", "1"]),
    ("baseVolume", &["v", "1"]),
];

const GATE: &[(&str, &[&str])] = &[
    ("last", &["last"]),
    ("bid", &["highest_bid"]),
    ("ask", &["lowest_ask"]),
    ("high", &["high_24h"]),
    ("low", &["low_24h"]),
    ("percentage", &["change_percentage"]),
    ("baseVolume", &["base_volume"]),
    ("quoteVolume", &["quote_volume"]),
];

const TICKERS: [Ticker; 8] = [
    Ticker {
        fake: &bybit::FAKE,
        file: "bybit.fetchTickers.spot",
        path: "/v5/market/tickers",
        symbol: "BTC/USDT",
        item: &["result", "list", "0"],
        fields: &[
            ("last", &["lastPrice"]),
            ("bid", &["bid1Price"]),
            ("bidVolume", &["bid1Size"]),
            ("ask", &["ask1Price"]),
            ("askVolume", &["ask1Size"]),
            ("open", &["prevPrice24h"]),
            ("high", &["highPrice24h"]),
            ("low", &["lowPrice24h"]),
            ("baseVolume", &["volume24h"]),
            ("quoteVolume", &["turnover24h"]),
        ],
    },
    Ticker {
        fake: &kraken::FAKE,
        file: "kraken.fetchTicker.btcusdt",
        path: "/0/public/Ticker",
        symbol: "BTC/USDT",
        item: &["result", "XBTUSDT"],
        fields: KRAKEN,
    },
    Ticker {
        fake: &kraken::FAKE,
        file: "kraken.fetchTickers.btcusd",
        path: "/0/public/Ticker",
        symbol: "BTC/USD",
        item: &["result", "XXBTZUSD"],
        fields: KRAKEN,
    },
    Ticker {
        fake: &coinbase::FAKE,
        file: "coinbaseexchange.fetchTicker.btcusdt",
        path: "/products/BTC-USDT/ticker",
        symbol: "BTC/USDT",
        item: &[],
        fields: &[
            ("last", &["price"]),
            ("bid", &["bid"]),
            ("ask", &["ask"]),
            ("baseVolume", &["volume"]),
        ],
    },
    Ticker {
        fake: &kucoin::FAKE,
        file: "kucoin.fetchTickers.sample",
        path: "/api/v1/market/allTickers",
        symbol: "BTC/USDT",
        item: &["data", "ticker", "0"],
        fields: &[
            ("last", &["last"]),
            ("bid", &["buy"]),
            ("bidVolume", &["bestBidSize"]),
            ("ask", &["sell"]),
            ("askVolume", &["bestAskSize"]),
            ("high", &["high"]),
            ("low", &["low"]),
            ("change", &["changePrice"]),
            ("baseVolume", &["vol"]),
            ("quoteVolume", &["volValue"]),
        ],
    },
    Ticker {
        fake: &gate::FAKE,
        file: "gate.fetchTickers.two",
        path: "/api/v4/spot/tickers",
        symbol: "ETH/USDT",
        item: &["1"],
        fields: GATE,
    },
    Ticker {
        fake: &gate::FAKE,
        file: "gate.fetchTicker.btcusdt",
        path: "/api/v4/spot/tickers",
        symbol: "BTC/USDT",
        item: &["0"],
        fields: GATE,
    },
    Ticker {
        fake: &bitget::FAKE,
        file: "bitget.fetchTickers.sample",
        path: "/api/v2/spot/market/tickers",
        symbol: "BTC/USDT",
        item: &["data", "0"],
        fields: &[
            ("last", &["lastPr"]),
            ("open", &["open"]),
            ("high", &["high24h"]),
            ("low", &["low24h"]),
        ],
    },
];

/// Recorded candles: where the rows are, and the columns of open, high, low, close and volume.
struct Candles {
    fake: &'static Fake,
    file: &'static str,
    path: &'static str,
    symbol: &'static str,
    interval: (&'static str, i64),
    rows: &'static [&'static str],
    columns: [usize; 5],
    unit_ms: i64,
}

const CANDLES: [Candles; 5] = [
    Candles {
        fake: &kraken::FAKE,
        file: "kraken.fetchOHLCV.btcusd-1m-720",
        path: "/0/public/OHLC",
        symbol: "BTC/USD",
        interval: ("1m", MINUTE_MS),
        rows: &["result", "XXBTZUSD"],
        columns: [1, 2, 3, 4, 6],
        unit_ms: 1000,
    },
    Candles {
        fake: &coinbase::FAKE,
        file: "coinbaseexchange.fetchOHLCV.btcusd-1m-2018",
        path: "/products/BTC-USD/candles",
        symbol: "BTC/USD",
        interval: ("1m", MINUTE_MS),
        rows: &[],
        columns: [3, 2, 1, 4, 5],
        unit_ms: 1000,
    },
    Candles {
        fake: &coinbase::FAKE,
        file: "coinbaseexchange.fetchOHLCV.btcusdt-1h-1",
        path: "/products/BTC-USDT/candles",
        symbol: "BTC/USDT",
        interval: ("1h", HOUR_MS),
        rows: &[],
        columns: [3, 2, 1, 4, 5],
        unit_ms: 1000,
    },
    Candles {
        fake: &kucoin::FAKE,
        file: "kucoin.fetchOHLCV.sample",
        path: "/api/v1/market/candles",
        symbol: "BTC/USDT",
        interval: ("1m", MINUTE_MS),
        rows: &["data"],
        columns: [1, 3, 4, 2, 5],
        unit_ms: 1000,
    },
    Candles {
        fake: &gate::FAKE,
        file: "gate.fetchOHLCV.one",
        path: "/api/v4/spot/candlesticks",
        symbol: "BTC/USDT",
        interval: ("1m", MINUTE_MS),
        rows: &[],
        columns: [5, 3, 4, 2, 6],
        unit_ms: 1000,
    },
];

/// Market lists: file, path, and for one of its markets the body's member and value of what the
/// record shows.
const LISTS: [(&Fake, &str, &str); 7] = [
    (&okx::FAKE, "okx.fetchMarkets.spot-full-2022", "/api/v5/public/instruments"),
    (&bybit::FAKE, "bybit.fetchMarkets.spot", "/v5/market/instruments-info"),
    (&kraken::FAKE, "kraken.fetchMarkets.full-2021", "/0/public/AssetPairs"),
    (&coinbase::FAKE, "coinbaseexchange.fetchMarkets.full-2021", "/products"),
    (&kucoin::FAKE, "kucoin.fetchMarkets.full-2021", "/api/v2/symbols"),
    (&gate::FAKE, "gate.fetchMarkets.full-2021", "/api/v4/spot/currency_pairs"),
    (&bitget::FAKE, "bitget.fetchMarkets.few", "/api/v2/spot/public/symbols"),
];

fn list_of(fake: &Fake) -> (&'static str, &'static str) {
    let found = LISTS.iter().find(|(listed, ..)| listed.name == fake.name);
    let (_, file, path) = found.expect("every fake has a recorded list");
    (file, path)
}

/// Down into a body, by keys and places.
fn at<'a>(body: &'a Json, way: &[&str]) -> &'a Json {
    way.iter().fold(body, |json, step| match json {
        Json::Array(items) => &items[step.parse::<usize>().expect("a place")],
        _ => &json[*step],
    })
}

/// The shortest form of a decimal that a body holds as a text or as a number.
fn digits(json: &Json) -> Json {
    let text = json.to_string();
    let text = text.trim_matches('"');
    let short = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    Json::Number(short.to_string())
}

#[test]
fn recorded_tickers_are_served_with_their_digits() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for ticker in &TICKERS {
            let body = fixtures.load(ticker.file).body;
            let (list, list_path) = list_of(ticker.fake);
            let mut shop = Shop::new(2);
            shop.recorded = vec![(ticker.path.to_string(), body.clone())];
            if ticker.symbol == "BTC/USD" {
                let list = fixtures.load(list).body;
                shop.recorded.push((list_path.to_string(), list));
            }
            scope.spawn(move || {
                let open = Open::new(ticker.fake, shop);
                let marketd = start(&open, ticker.symbol);
                let quote = await_quote(&marketd, &ticker.symbol.replace('/', "-"));
                let body = Json::parse(&body).expect("a body is JSON");
                let item = at(&body, ticker.item);
                for (field, way) in ticker.fields {
                    let sent = digits(at(item, way));
                    assert_eq!(quote[*field], sent, "{field} of {}", ticker.file);
                }
            });
        }
    });
}

#[test]
fn recorded_candles_are_served_with_their_digits() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for candles in &CANDLES {
            let text = fixtures.load(candles.file).body;
            let body = Json::parse(&text).expect("a body is JSON");
            let (name, length) = candles.interval;
            let mut expected: Vec<(i64, Json)> = Vec::new();
            for row in at(&body, candles.rows).items() {
                let open = row[0].to_string().trim_matches('"').parse::<i64>();
                let open = open.expect("a time") * candles.unit_ms;
                let figures = candles.columns.iter().map(|column| digits(&row[*column]));
                let time = std::iter::once(Json::Number(open.to_string()));
                expected.push((open, Json::Array(time.chain(figures).collect())));
            }
            expected.sort_by_key(|(open, _)| *open);
            if candles.fake.name == "kraken" {
                // With the candle that has begun since, it is one more than Kraken tells.
                expected.remove(0);
            }
            let (first, last) = (expected[0].0, expected[expected.len() - 1].0);
            let mut shop = Shop::new(2);
            // The newest of them has just been closed.
            shop.now = last + length + 2_000;
            shop.recorded = vec![(candles.path.to_string(), text)];
            if candles.symbol == "BTC/USD" {
                let (list, path) = list_of(candles.fake);
                let list = fixtures.load(list).body;
                shop.recorded.push((path.to_string(), list));
            }
            scope.spawn(move || {
                let open = Open::new(candles.fake, shop);
                let marketd = start(&open, candles.symbol);
                let symbol = candles.symbol;
                let target = format!(
                    "/api/ecosystem/chart?symbol={symbol}&interval={name}&from={first}&to={last}"
                );
                let answer =
                    await_answer(marketd.addr(), &format!("{target}&limit=1000"), |answer| {
                        // Until the exchange's clock is known, all of this is older than what is kept.
                        let is_there = !answer.exact().items().is_empty();
                        is_there && answer.header("Chart-Coverage") == Some("complete")
                    });
                let rows = expected.into_iter().map(|(_, row)| row).collect();
                assert_eq!(answer.exact(), Json::Array(rows), "{}", candles.file);
            });
        }
    });
}

#[test]
fn recorded_market_lists_are_served_whole() {
    let Some(fixtures) = Fixtures::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for (fake, file, path) in LISTS {
            let fixture = fixtures.load(file);
            scope.spawn(move || {
                let mut shop = Shop::new(1);
                shop.recorded = vec![(path.to_string(), fixture.body.clone())];
                let open = Open::new(fake, shop);
                let marketd = Marketd::start(&["--source", &open.source(), "--data", ":memory:"]);
                // The list that is served follows the exchange's own, under its names for people.
                let answer = await_answer(marketd.addr(), "/api/ecosystem/market", |answer| {
                    answer.status == 200 && !answer.exact().items().is_empty()
                });
                let served = answer.exact();
                let theirs = fixture.expected.as_deref().expect("it was read by another");
                let theirs = Json::parse(theirs).expect("it is JSON");
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
