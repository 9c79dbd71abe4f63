//! The feed for charting libraries, asked as the adapter of TradingView's library asks: configuration,
//! search, symbol, history, quotes. Bars, pages that lead to the left, and where they end, are judged by the
//! simulation (`tests/sim/udf.rs`).

#![cfg(feature = "page")]

use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const MINUTE: i64 = 60;

/// The open time of the minute of [`NOW`], in seconds.
const PRESENT: i64 = NOW / 60_000 * 60;

/// Candles that are kept of each stored interval.
const KEEP: [(&str, i64); 3] = [("1m", 4000), ("1h", 1500), ("1d", 500)];

fn world(exchange: &Binance, wait_ms: u64) -> Marketd {
    exchange.set_time(ServerTime::Fixed(NOW));
    let depth = |keep: i64| json!({ "keep": keep, "backfill": 0 });
    let history: Value = KEEP.iter().map(|(name, keep)| (name.to_string(), depth(*keep))).collect();
    let source = with(source("fake", exchange), "timeoutMs", json!(60_000));
    let config = with(config(&[source]), "history", history);
    start(&with(config, "limits", json!({ "chartWaitMs": wait_ms }))).with_clock()
}

/// What the adapter gets for a request.
#[derive(Debug, PartialEq)]
enum Page {
    /// Time in seconds, open, high, low, close, volume.
    Bars(Vec<[String; 6]>),
    NoData(Option<i64>),
    Fault(String),
}

/// The adapter of the charting library.
struct Adapter(SocketAddr);

impl Adapter {
    #[track_caller]
    fn ask(&self, target: &str) -> Json {
        let answer = get(self.0, &format!("/udf/{target}"));
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        answer.exact()
    }

    /// The ticker of the first result of a search, resolved.
    #[track_caller]
    fn find(&self, query: &str) -> (String, Json) {
        let found = self.ask(&format!("search?query={query}&type=&exchange=&limit=30"));
        let ticker = found.items()[0]["ticker"].text().expect("a ticker").to_string();
        let symbol = self.ask(&format!("symbols?symbol={}", ticker.replace('/', "%2F")));
        assert_eq!(symbol["ticker"].text(), Some(ticker.as_str()));
        (ticker, symbol)
    }

    #[track_caller]
    fn history(&self, ticker: &str, rest: &str) -> Page {
        let ticker = ticker.replace('/', "%2F");
        let page = self.ask(&format!("history?symbol={ticker}&{rest}"));
        match page["s"].text().expect("a state") {
            "ok" => {
                assert_eq!(page.keys(), ["s", "t", "o", "h", "l", "c", "v"]);
                let columns = ["t", "o", "h", "l", "c", "v"].map(|key| page[key].items());
                let count = columns[0].len();
                assert!(columns.iter().all(|column| column.len() == count), "{rest}");
                let bar =
                    |at: usize| columns.map(|it| it[at].text().expect("a number").to_string());
                Page::Bars((0..count).map(bar).collect())
            }
            "no_data" => Page::NoData(page.get("nextTime").and_then(Json::integer)),
            "error" => Page::Fault(page["errmsg"].text().expect("a message").to_string()),
            other => panic!("{other} is no state"),
        }
    }

    #[track_caller]
    fn bars(&self, ticker: &str, rest: &str) -> Vec<[String; 6]> {
        match self.history(ticker, rest) {
            Page::Bars(bars) => bars,
            other => panic!("{rest}: {other:?}"),
        }
    }
}

fn time(bar: &[String; 6]) -> i64 {
    bar[0].parse().expect("seconds")
}

#[test]
fn candles_that_are_known_come_while_the_exchange_is_away() {
    let exchange = Binance::generated(3, 4);
    exchange.set_time(ServerTime::Offset(-3 * 3_600_000));
    let config = with(config(&[source("fake", &exchange)]), "data", json!("history.db"));
    let config = with(config, "limits", json!({ "chartWaitMs": 300 }));
    let marketd = start(&config);
    let newest = "resolution=1&from=0&to=9999999999&countback=30";
    let bars = eventually(LONG, || match Adapter(marketd.addr()).history("BTC/USDT", newest) {
        Page::Bars(bars) => (bars.len() == 30).then_some(bars),
        _ => None,
    });
    let dir = marketd.dir();
    assert_eq!(marketd.stop(LONG).code, Some(0));
    // Three hours later by all that is known, and the exchange says nothing of them.
    exchange.refuse();
    let marketd = Launch::new(&[]).in_dir(dir).config(config).start();
    let shown = eventually(LONG, || match Adapter(marketd.addr()).history("BTC/USDT", newest) {
        Page::Bars(shown) => Some(shown),
        _ => None,
    });
    let known = shown.iter().filter(|bar| time(bar) >= time(&bars[0]));
    let known: Vec<&[String; 6]> = known.collect();
    assert!(known.len() >= 27 && known.into_iter().all(|bar| bars.contains(bar)), "{shown:?}");
}

#[test]
fn an_exchange_that_is_away_makes_no_library_ask_at_once_again() {
    let exchange = Binance::generated(3, 4);
    let limits = json!({ "chartWaitMs": 700 });
    let marketd = limited(&exchange, limits);
    let adapter = Adapter(marketd.addr());
    exchange.fault_on(KLINES, Fault::Status(503));
    for round in 0..4 {
        let begin = Instant::now();
        let rest = "resolution=60&to=1700000000&countback=10";
        let found = adapter.history("ETH/USDT", rest);
        assert_eq!(found, Page::NoData(Some(1_700_000_000 / 3600 * 3600)));
        assert!(begin.elapsed() >= Duration::from_millis(600), "{round}: {:?}", begin.elapsed());
    }
}

#[test]
fn the_market_that_is_traded_most_is_found_first() {
    let exchange = exchange_of(&["BTC/EUR", "BTCA/USDT", "BTCB/USDT", "WBTC/USDT", "BTC/USDT"]);
    for (id, turnover) in
        [("BTCEUR", 9_000_000), ("BTCAUSDT", 5), ("BTCBUSDT", 70), ("WBTCUSDT", 800_000)]
    {
        exchange.patch_ticker(id, "quoteVolume", &format!("\"{turnover}\""));
    }
    let marketd = polling(&exchange);
    let adapter = Adapter(marketd.addr());
    let search = |query: &str| {
        adapter.ask(&format!("search?query={query}&type=&exchange=&limit=")).column("symbol")
    };
    let all = ["BTC/USDT", "BTC/EUR", "BTCB/USDT", "BTCA/USDT", "WBTC/USDT"];
    eventually(LONG, || (search("btc") == all).then_some(()));
    // Among all of them, those of the most common quote asset come first.
    let all = ["WBTC/USDT", "BTCB/USDT", "BTCA/USDT", "BTC/USDT", "BTC/EUR"];
    assert_eq!(search(""), all);
    assert_eq!(search("btcusdt"), ["BTC/USDT", "WBTC/USDT"]);
}

#[test]
fn a_price_scale_is_a_whole_number_for_scripts() {
    let (exchange, listed) = (exchange_of(&["TINY/USDT"]), Binance::generated(3, 4));
    exchange.patch_ticker("TINYUSDT", "lastPrice", "\"0.000000000000000012\"");
    listed.patch_ticker("ETHUSDT", "lastPrice", "\"3125\"");
    let both = config(&[source("fake", &exchange), source("listed", &listed)]);
    let ecosystem = serde_json::json!({ "markets": [{ "symbol": "TINY/USDT" }] });
    let marketd = start(&with(both, "ecosystem", ecosystem));
    let adapter = Adapter(marketd.addr());
    let scale = |symbol| adapter.ask(&format!("symbols?symbol={symbol}"))["pricescale"].integer();
    eventually(LONG, || (scale("TINYUSDT") == Some(1_000_000_000_000_000)).then_some(()));
    // The exchange's rules count, also of a market outside of the ecosystem; not the digits of its quote.
    eventually(LONG, || (scale("ETHUSDT") == Some(10_000)).then_some(()));
}

#[test]
fn what_a_library_asks_wrong_is_an_error_that_it_reads() {
    let exchange = Binance::generated(3, 4);
    let marketd = world(&exchange, 30_000);
    let adapter = Adapter(marketd.addr());
    for target in [
        "symbols?symbol=FOO/BAR",
        "symbols?symbol=",
        "symbols",
        "symbols?symbol=a.b",
        "history?symbol=FOO/BAR&resolution=60&countback=3",
        "history?symbol=BTCUSDT&countback=3",
        "history?symbol=BTCUSDT&resolution=7&countback=3",
        "history?symbol=BTCUSDT&resolution=60&countback=x",
        "history?symbol=BTCUSDT&resolution=60&from=1.5",
        "history?symbol=BTCUSDT&resolution=60&to=99999999999999999",
        "history?symbol=BTCUSDT&symbol=BTCUSDT&resolution=60",
        "history?symbol=BTCUSDT&resolution=60&from=1715769425&to=1715769424",
        "history?symbol=BTCUSDT&resolution=&countback=3",
        "quotes",
        "quotes?symbols=,",
        "search?limit=0",
        "search?limit=x",
    ] {
        let answer = adapter.ask(target);
        assert_eq!(answer.keys(), ["s", "errmsg"], "{target}");
        assert_eq!(answer["s"].text(), Some("error"), "{target}");
    }
    for target in ["/udf", "/udf/", "/udf/marks", "/udf/config/"] {
        assert_eq!(get(marketd.addr(), target).status, 404, "{target}");
    }
    // A number of candles is stronger than a beginning, and a value that is empty says nothing.
    let end = NOW / 1000;
    for rest in [
        format!("resolution=60&from={}&to={end}&countback=3", end + 1),
        format!("resolution=60&from=&to={end}&countback=3"),
    ] {
        assert_eq!(adapter.bars("BTCUSDT", &rest).len(), 3, "{rest}");
    }
    assert_eq!(adapter.bars("BTCUSDT", "resolution=60&from=&to=&countback=").len(), 500);
    // A range of any length is answered with its newest candles.
    let all = adapter.bars("BTCUSDT", "resolution=60&from=-1&to=9999999999999999");
    assert!(all.len() as i64 >= KEEP[1].1);
}

/// The figures of a quote are judged by the simulation.
#[test]
fn symbols_and_quotes_have_the_exact_figures_of_the_other_addresses() {
    let exchange = Binance::generated(40, 4);
    let marketd = world(&exchange, 30_000);
    await_polls(&marketd, 1);
    silence(&exchange);
    let adapter = Adapter(marketd.addr());
    let markets = read(marketd.addr(), "/api/ecosystem/market");
    let config = adapter.ask("config");
    assert_eq!(config["supports_search"].bool(), Some(true));
    assert_eq!(config["supported_resolutions"].items().len(), 15);
    for market in markets.items() {
        let name = market["symbol"].text().expect("a symbol");
        let (ticker, symbol) = adapter.find(&name.replace('/', "%2F").to_lowercase());
        assert_eq!(ticker, name);
        let precision = &market["metadata"]["precision"];
        let places = precision["price"].integer().expect("it is known") as u32;
        assert_eq!(symbol["pricescale"].integer(), Some(10i64.pow(places)));
        assert_eq!(symbol["minmov"].integer(), Some(1));
        assert_eq!(symbol["supported_resolutions"], config["supported_resolutions"]);
        assert_eq!(symbol["volume_precision"], precision["amount"]);
        assert_eq!(symbol["session"].text(), Some("24x7"));
        assert_eq!(symbol["timezone"].text(), Some("Etc/UTC"));
        // The same by the full name, which keeps its source.
        let full = symbol["full_name"].text().expect("a name");
        let named = adapter.ask(&format!("symbols?symbol={}", full.to_uppercase()));
        assert_eq!(named["ticker"].text(), Some(full));
        let list = format!("{name},NOPE,{full}").replace('/', "%2F");
        let quotes = adapter.ask(&format!("quotes?symbols={list}"));
        assert_eq!(quotes["s"].text(), Some("ok"));
        let [one, nope, other] = quotes["d"].items() else {
            panic!("three were asked for");
        };
        assert_eq!((nope["s"].text(), nope["n"].text()), (Some("error"), Some("NOPE")));
        assert_eq!(one["n"].text(), Some(name));
        assert_eq!(one["v"], other["v"]);
        assert_eq!(one["v"]["short_name"].text(), Some(name));
    }
    let search = |rest: &str| adapter.ask(&format!("search?{rest}")).column("symbol");
    assert_eq!(search("query=&limit=500").len(), 40);
    assert_eq!(search("query=").len(), 30);
    assert_eq!(search("query=BTC&limit=1"), ["BTC/USDT"]);
    assert!(search("query=usdt&exchange=fake&type=crypto").len() > 1);
    assert!(search("query=usdt&exchange=other").is_empty());
    assert!(search("query=usdt&type=stock").is_empty());
    let time = get(marketd.addr(), "/udf/time");
    assert_eq!(time.header("Content-Type"), Some("text/plain; charset=utf-8"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_secs();
    assert!(time.text().parse::<u64>().expect("digits").abs_diff(now) < 60);
}

#[test]
fn what_no_request_may_wait_for_is_there_when_the_library_asks_again() {
    let exchange = Binance::generated(3, 4);
    let marketd = world(&exchange, 0);
    let adapter = Adapter(marketd.addr());
    // Half a day of which only some hours are kept: no candle needs these hours, and yet they are the end.
    const HOUR: i64 = 60 * MINUTE;
    let kept = (PRESENT / HOUR - KEEP[1].1) * HOUR;
    let to = (kept / (12 * HOUR) + 1) * 12 * HOUR;
    assert!(to - kept < 12 * HOUR, "all of it is kept");
    let rest = format!("resolution=720&from=0&to={to}&countback=5");
    eventually(LONG, || (adapter.history("BTC/USDT", &rest) == Page::NoData(None)).then_some(()));
}
