//! The exchanges' own habits: the target of each call, bodies of errors, clocks, and what no recording
//! shows. Binance has a page of its own.

use super::testing::{
    BITGET, BYBIT, COINBASE, CRYPTOCOM, GATE, HTX, KRAKEN, KUCOIN, OKX, UPBIT, candles, read,
    read_with,
};
use crate::exchange::{Call, Dialect, ItemFault, ReadError, RefusalKind};
use crate::interval::Stored;
use crate::time::UnixMs;

/// Exchange, call, target. A call for candles has an interval, its first and last open time, and the time
/// of the call: most are of two hours in May of 2020.
const TARGETS: &str = "
okx | tickers | /api/v5/market/tickers?instType=SPOT
okx | ticker A-B | /api/v5/market/ticker?instId=A-B
okx | markets | /api/v5/public/instruments?instType=SPOT
okx | time | /api/v5/public/time
okx | 1h 1588280400000 1588284000000 1588284000000 | /api/v5/market/candles?instId=A-B&bar=1H&before=1588280399999&after=1588284000001&limit=300
okx | 1m 1588280400000 1588284000000 1588366140000 | /api/v5/market/candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300
okx | 1m 1588280400000 1588284000000 1588366200000 | /api/v5/market/history-candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300
okx | 1d 0 86400000 1588284000000 | /api/v5/market/history-candles?instId=A-B&bar=1Dutc&before=0&after=86400001&limit=300
bybit | tickers | /v5/market/tickers?category=spot
bybit | ticker A-B | /v5/market/tickers?category=spot&symbol=A-B
bybit | markets | /v5/market/instruments-info?category=spot
bybit | time | /v5/market/time
bybit | 1h 1588280400000 1588284000000 1588284000000 | /v5/market/kline?category=spot&symbol=A-B&interval=60&start=1588280400000&end=1588284000000&limit=1000
bybit | 1m 1588280400000 1588284000000 9223372036854775807 | /v5/market/kline?category=spot&symbol=A-B&interval=1&start=1588280400000&end=1588284000000&limit=1000
bybit | 1d 0 0 1588284000000 | /v5/market/kline?category=spot&symbol=A-B&interval=D&start=0&end=0&limit=1000
kraken | tickers | /0/public/Ticker
kraken | ticker A-B | /0/public/Ticker?pair=A-B
kraken | markets | /0/public/AssetPairs
kraken | time | /0/public/Time
kraken | 1h 1588280400000 1588284000000 1588284000000 | /0/public/OHLC?pair=A-B&interval=60&since=1588280399
kraken | 1m 1588280400000 1588284000000 9223372036854775807 | /0/public/OHLC?pair=A-B&interval=1&since=1588280399
kraken | 1d 0 0 1588284000000 | /0/public/OHLC?pair=A-B&interval=1440&since=0
coinbase | ticker A-B | /products/A-B/ticker
coinbase | stats A-B | /products/A-B/stats
coinbase | markets | /products
coinbase | time | /time
coinbase | 1h 1588280400000 1588284000000 1588284000000 | /products/A-B/candles?granularity=3600&start=2020-04-30T21:00:00.000Z&end=2020-04-30T22:00:00.000Z
coinbase | 1m 1588280400000 1588284000000 9223372036854775807 | /products/A-B/candles?granularity=60&start=2020-04-30T21:00:00.000Z&end=2020-04-30T22:00:00.000Z
coinbase | 1d 0 0 1588284000000 | /products/A-B/candles?granularity=86400&start=1970-01-01T00:00:00.000Z&end=1970-01-01T00:00:00.000Z
kucoin | tickers | /api/v1/market/allTickers
kucoin | ticker A-B | /api/v1/market/stats?symbol=A-B
kucoin | markets | /api/v2/symbols
kucoin | time | /api/v1/timestamp
kucoin | 1h 1588280400000 1588284000000 1588284000000 | /api/v1/market/candles?symbol=A-B&type=1hour&startAt=1588280400&endAt=1588284001
kucoin | 1m 1588280400000 1588284000000 9223372036854775807 | /api/v1/market/candles?symbol=A-B&type=1min&startAt=1588280400&endAt=1588284001
kucoin | 1d 0 0 1588284000000 | /api/v1/market/candles?symbol=A-B&type=1day&startAt=0&endAt=1
gate | tickers | /api/v4/spot/tickers
gate | ticker A-B | /api/v4/spot/tickers?currency_pair=A-B
gate | markets | /api/v4/spot/currency_pairs
gate | time | /api/v4/spot/time
gate | 1h 1588280400000 1588284000000 1588284000000 | /api/v4/spot/candlesticks?currency_pair=A-B&interval=1h&from=1588280400&to=1588284000
gate | 1m 1588280400000 1588284000000 9223372036854775807 | /api/v4/spot/candlesticks?currency_pair=A-B&interval=1m&from=1588280400&to=1588284000
gate | 1d 0 0 1588284000000 | /api/v4/spot/candlesticks?currency_pair=A-B&interval=1d&from=0&to=0
bitget | tickers | /api/v2/spot/market/tickers
bitget | ticker A-B | /api/v2/spot/market/tickers?symbol=A-B
bitget | markets | /api/v2/spot/public/symbols
bitget | time | /api/v2/public/time
bitget | 1h 1588280400000 1588284000000 1588284000000 | /api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200
bitget | 1h 1588280400000 1588284000000 1593377999999 | /api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200
bitget | 1h 1588280400000 1588284000000 1593378000000 | /api/v2/spot/market/history-candles?symbol=A-B&granularity=1h&endTime=1588284000001&limit=2
bitget | 1m 1588280400000 1588284000000 1590786000000 | /api/v2/spot/market/history-candles?symbol=A-B&granularity=1min&endTime=1588284000001&limit=61
bitget | 1d 0 0 1588284000000 | /api/v2/spot/market/history-candles?symbol=A-B&granularity=1Dutc&endTime=1&limit=1
binanceus | ticker A | /api/v3/ticker/24hr?symbol=A
binanceus | 1h 1588280400000 1588284000000 1588284000000 | /api/v3/klines?symbol=A-B&interval=1h&startTime=1588280400000&endTime=1588284000000&limit=1000
bitstamp | ticker A/B | /api/v2/ticker/ab/
bitstamp | 1h 1588280400000 1588284000000 1588284000000 | /api/v2/ohlc/A-B/?step=3600&end=1588284000&limit=2
bitstamp | time | /api/v2/ticker/btcusd/
cryptocom | 1d 0 86400000 1588284000000 | /exchange/v1/public/get-candlestick?instrument_name=A-B&timeframe=1D&start_ts=0&end_ts=86400001&count=300
htx | ticker ab | /market/detail/merged?symbol=ab
htx | 1h 1588280400000 1588284000000 1588284000000 | /market/history/kline?symbol=A-B&period=60min&size=2
htx | 1h 1588280400000 1588280400000 1588320000000 | /market/history/kline?symbol=A-B&period=60min&size=12
htx | 1h 1588280400000 1588284000000 9223372036854775807 | /market/history/kline?symbol=A-B&period=60min&size=2000
mexc | 1h 1588280400000 1588284000000 1588284000000 | /api/v3/klines?symbol=A-B&interval=60m&startTime=1588280400000&endTime=1588284000000&limit=500
upbit | ticker KRW-BTC | /v1/ticker?markets=KRW-BTC
upbit | 1h 1588280400000 1588284000000 1588284000000 | /v1/candles/minutes/60?market=A-B&to=2020-04-30T22:00:01Z&count=2
upbit | 1d 0 86400000 1588284000000 | /v1/candles/days?market=A-B&to=1970-01-02T00:00:01Z&count=2
";

/// Exchange, status, kind, code, words and body, whatever was asked.
const REFUSALS: &str = r#"
okx | 200 | UnknownMarket | 51001 | Instrument ID does not exist | {"code":"51001","msg":"Instrument ID does not exist","data":[]}
okx | 200 | RateLimited | 50011 | Too Many Requests | {"code":"50011","msg":"Too Many Requests","data":[]}
okx | 429 | RateLimited | 50011 | Requests too frequent. | {"msg":"Requests too frequent.","code":"50011"}
okx | 503 | Other | 50001 | 50001 | {"code":"50001","msg":"","data":[]}
bybit | 200 | UnknownMarket | 10001 | Not supported symbols | {"retCode":10001,"retMsg":"Not supported symbols","result":{},"retExtInfo":{},"time":1672712468011}
bybit | 200 | RateLimited | 10006 | Too many visits! | {"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1}
bybit | 403 | RateLimited | 10018 | ip rate limit | {"retCode":10018,"retMsg":"ip rate limit","result":null}
bybit | 200 | Other | 10016 | Internal error | {"retCode":10016,"retMsg":"Internal error","result":{"list":[]}}
kraken | 200 | UnknownMarket | EQuery:Unknown asset pair | EQuery:Unknown asset pair | {"error":["EQuery:Unknown asset pair"]}
kraken | 200 | RateLimited | EGeneral:Too many requests | EGeneral:Too many requests | {"error":["EGeneral:Too many requests"]}
kraken | 200 | RateLimited | EAPI:Rate limit exceeded | EAPI:Rate limit exceeded | {"error":["EAPI:Rate limit exceeded"],"result":{}}
kraken | 200 | Other | EService:Unavailable | EService:Unavailable | {"error":["EService:Unavailable","EGeneral:Internal error"]}
coinbase | 404 | UnknownMarket | NotFound | NotFound | {"message":"NotFound"}
coinbase | 429 | RateLimited | Public rate limit exceeded | Public rate limit exceeded | {"message":"Public rate limit exceeded"}
coinbase | 200 | RateLimited | Slow rate limit exceeded | Slow rate limit exceeded | {"message":"Slow rate limit exceeded"}
coinbase | 400 | Other | granularity too small for the requested time range | granularity too small for the requested time range | {"message":"granularity too small for the requested time range"}
kucoin | 200 | UnknownMarket | 400100 | Unsupported trading pair. | {"msg":"Unsupported trading pair.","code":"400100"}
kucoin | 429 | RateLimited | 429000 | Too Many Requests | {"code":"429000","msg":"Too Many Requests"}
kucoin | 200 | RateLimited | 429000 | Too Many Requests | {"code":"429000","msg":"Too Many Requests"}
kucoin | 500 | Other | 500000 | Internal Server Error | {"code":"500000","msg":"Internal Server Error","data":null}
gate | 400 | UnknownMarket | INVALID_CURRENCY_PAIR | Invalid currency_pair FOO_BAR | {"label":"INVALID_CURRENCY_PAIR","message":"Invalid currency_pair FOO_BAR"}
gate | 429 | RateLimited | TOO_MANY_REQUESTS | Request Rate Limit Exceeded | {"label":"TOO_MANY_REQUESTS","message":"Request Rate Limit Exceeded"}
gate | 400 | RateLimited | TOO_FAST | slow down | {"message":"slow down","label":"TOO_FAST"}
gate | 400 | Other | INVALID_PARAM_VALUE | INVALID_PARAM_VALUE | {"label":"INVALID_PARAM_VALUE"}
bitget | 400 | UnknownMarket | 40034 | Parameter FOOBAR does not exist | {"code":"40034","msg":"Parameter FOOBAR does not exist","requestTime":1725192127389,"data":null}
bitget | 429 | RateLimited | 429 | Too Many Requests | {"code":"429","msg":"Too Many Requests","requestTime":1,"data":null}
bitget | 200 | RateLimited | 429 | Too Many Requests | {"code":429,"msg":"Too Many Requests"}
bitget | 200 | Other | 40015 | 40015 | {"code":"40015","msg":"","requestTime":1595698564931,"data":null}
bitstamp | 400 | RateLimited | 400.002 | Request rate limit exceeded. | {"status":"error","reason":"Request rate limit exceeded.","code":"400.002"}
cryptocom | 400 | UnknownMarket | 40004 | Invalid instrument_name | {"id":-1,"code":40004,"message":"Invalid instrument_name"}
htx | 200 | UnknownMarket | invalid-parameter | invalid symbol | {"ts":1,"status":"error","err-code":"invalid-parameter","err-msg":"invalid symbol","data":null}
htx | 200 | Other | invalid-parameter | invalid size | {"status":"error","err-code":"invalid-parameter","err-msg":"invalid size","data":null}
mexc | 400 | UnknownMarket | -1121 | Invalid symbol. | {"code":-1121,"msg":"Invalid symbol."}
binanceus | 400 | UnknownMarket | -1121 | Invalid symbol. | {"code":-1121,"msg":"Invalid symbol."}
upbit | 404 | UnknownMarket | 404 | Code not found | {"error":{"name":404,"message":"Code not found"}}
upbit | 429 | RateLimited | too_many_requests | Too many API requests. | {"error":{"message":"Too many API requests.","name":"too_many_requests"}}
"#;

/// Exchange, time, and the body that tells it.
const TIMES: &str = r#"
bybit | 1688639403423 | {"retCode":0,"retMsg":"OK","result":{"timeSecond":"1688639403","timeNano":"1688639403423213947"},"retExtInfo":{},"time":1688639403423}
coinbase | 1420674445201 | {"iso":"2015-01-07T23:47:25.201Z","epoch":1420674445.201}
kucoin | 1546837113087 | {"code":"200000","data":1546837113087}
gate | 1597026383085 | {"server_time":1597026383085}
htx | 1629715504949 | {"status":"ok","data":1629715504949}
bitstamp | 1710328241000 | {"timestamp":"1710328241","open":"1"}
upbit | 1710328237828 | [{"market":"KRW-BTC","timestamp":1710328237828}]
cryptocom | 1613580710768 | {"id":-1,"code":0,"result":{"data":[{"i":"BTC_USDT","t":1613580710768}]}}
"#;

/// The rows of a table, each with its dialect.
fn rows<const N: usize>(
    table: &'static str,
) -> impl Iterator<Item = (&'static Dialect, [&'static str; N])> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let (name, rest) = line.split_once(" | ").expect("an exchange");
        let dialect = Dialect::by_name(name).expect("it is built in");
        let fields: Vec<&str> = rest.splitn(N, " | ").collect();
        (dialect, fields.try_into().unwrap_or_else(|_| panic!("{line}")))
    })
}

/// A call in the words of a table.
fn call_of(words: &'static str) -> Call<'static> {
    let number = |text: &str| text.parse::<i64>().expect("a time");
    let words: Vec<&str> = words.split(' ').collect();
    match words[..] {
        ["tickers"] => Call::Tickers,
        ["markets"] => Call::Markets,
        ["time"] => Call::Time,
        ["ticker", id] => Call::Ticker { id },
        ["stats", id] => Call::Stats { id },
        [interval, from, to, now] => {
            let mut all = Stored::ALL.into_iter();
            let interval = all.find(|it| it.name() == interval).expect("a stored interval");
            candles(interval, number(from), number(to), number(now))
        }
        _ => panic!("{words:?}"),
    }
}

#[test]
fn calls_have_their_targets() {
    for (dialect, [call, target]) in rows(TARGETS) {
        assert_eq!(dialect.target(&call_of(call), None), target, "{call} of {}", dialect.name());
    }
    assert!(UPBIT.has_interval(Stored::D1) && !HTX.has_interval(Stored::D1));
}

#[test]
fn errors_are_refusals_whatever_was_asked() {
    for (dialect, [status, kind, code, message, body]) in rows(REFUSALS) {
        let all = dialect.tickers_at_once().then_some(Call::Tickers);
        let stats = dialect.has_stats().then_some(Call::Stats { id: "A-B" });
        let calls =
            [Call::Ticker { id: "A-B" }, candles(Stored::H1, 0, 0, 0), Call::Markets, Call::Time];
        for call in calls.into_iter().chain(all).chain(stats) {
            let (_, end) = read_with(dialect, &call, body, status.parse().expect("a status"));
            let kinds = [
                RefusalKind::RateLimited,
                RefusalKind::Banned,
                RefusalKind::UnknownMarket,
                RefusalKind::Other,
            ];
            let kind = kinds.into_iter().find(|it| format!("{it:?}") == kind).expect("a kind");
            let expected = ReadError::Refused { code: code.into(), message: message.into(), kind };
            assert_eq!(end, Err(expected), "{call:?}: {body}");
        }
    }
}

#[test]
fn clocks_are_read_also_from_a_ticker() {
    for (dialect, [ms, body]) in rows(TIMES) {
        let (notes, end) = read(dialect, &Call::Time, body);
        let time = UnixMs(ms.parse().expect("a time"));
        assert_eq!((end, notes.times), (Ok(()), vec![time]), "{body}");
    }
}

#[test]
fn the_time_of_the_response_is_that_of_its_tickers_wherever_it_stands() {
    let check = |body: &str, expected: Option<i64>| {
        let (notes, end) = read(&BYBIT, &Call::Tickers, body);
        assert_eq!((end, notes.tickers.len()), (Ok(()), 1), "{body}");
        let stamp = notes.tickers[0].1.timestamp.map(|time| time.0);
        assert_eq!(stamp, expected, "{body}");
    };
    let list = r#""result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]}"#;
    let time = r#""time":1673859087947"#;
    check(&format!("{{{list},{time}}}"), Some(1_673_859_087_947));
    check(&format!("{{{time},{list}}}"), Some(1_673_859_087_947));
    check(&format!("{{{list}}}"), None);
    check(&format!(r#"{{{list},"time":"noon"}}"#), None);
    check(&format!(r#"{{{list},"time":null}}"#), None);
}

#[test]
fn a_market_is_active_when_it_is_online_and_trading_is_not_disabled() {
    let check = |members: &str, expected: bool| {
        let body =
            format!(r#"[{{"id":"A-B","base_currency":"A","quote_currency":"B",{members}}}]"#);
        let (notes, end) = read(&COINBASE, &Call::Markets, &body);
        assert_eq!((end, notes.rejected.len()), (Ok(()), 0), "{members}");
        assert_eq!(notes.markets[0].active, expected, "{members}");
    };
    check(r#""status":"online","trading_disabled":false"#, true);
    check(r#""status":"online","trading_disabled":true"#, false);
    check(r#""trading_disabled":true,"status":"online""#, false);
    check(r#""status":"online""#, true);
    check(r#""status":"online","trading_disabled":null"#, true);
    for status in ["offline", "internal", "delisted"] {
        let members = format!(r#""status":"{status}","trading_disabled":false"#);
        check(&members, false);
    }
}

#[test]
fn the_figures_of_24_hours_complete_the_ticker_and_a_quote_stands_without_them() {
    assert!(COINBASE.has_stats() && !COINBASE.tickers_at_once());
    let one = r#"{"ask":"11.5","bid":"11","volume":"3","trade_id":5,"price":"11.2","size":"1","time":"2024-03-13T11:10:41.270099Z"}"#;
    let (notes, end) = read(&COINBASE, &Call::Ticker { id: "A-B" }, one);
    assert_eq!(end, Ok(()));
    let mut ticker = notes.tickers[0].1.clone();
    assert_eq!((&ticker.open, &ticker.high), (&None, &None));
    let day =
        r#"{"open":"10","high":"12.50","low":"9","last":"11.1","volume":"2","volume_30day":"70"}"#;
    let (notes, end) = read(&COINBASE, &Call::Stats { id: "A-B" }, day);
    assert_eq!((end, &*notes.stats[0].0), (Ok(()), "A-B"));
    ticker.fill_from(&notes.stats[0].1);
    let figures = [ticker.open, ticker.high, ticker.low, ticker.base_volume, Some(ticker.last)];
    let figures = figures.map(|figure| figure.map(|figure| figure.to_string()));
    assert_eq!(
        figures.each_ref().map(Option::as_deref),
        [Some("10"), Some("12.5"), Some("9"), Some("3"), Some("11.2")]
    );
    assert!(ticker.timestamp.is_some());
}

#[test]
fn the_least_and_largest_amounts_and_costs_are_limits() {
    let body = r#"[{"id":"A_B","base":"A","quote":"B","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"3","max_base_amount":"100.50","max_quote_amount":"5000000","amount_precision":3,"precision":6,"trade_status":"tradable"}]"#;
    let (notes, end) = read(&GATE, &Call::Markets, body);
    assert_eq!(end, Ok(()));
    let rules = &notes.markets[0].rules;
    let limits = [&rules.amount, &rules.cost].map(|bounds| {
        [&bounds.min, &bounds.max].map(|limit| limit.as_ref().map(ToString::to_string))
    });
    let limit = |text: &str| Some(text.to_string());
    assert_eq!(limits, [[limit("0.001"), limit("100.5")], [limit("3"), limit("5000000")]]);
    for (status, active) in [("sellable", false), ("buyable", false), ("untradable", false)] {
        let body = body.replace("tradable", status);
        let (notes, _) = read(&GATE, &Call::Markets, &body);
        assert_eq!(notes.markets[0].active, active, "{status}");
    }
}

#[test]
fn the_volume_of_a_bid_is_the_exact_one_and_figures_are_of_24_hours() {
    let body = r#"{"error":[],"result":{"XXBTZUSD":{"a":["9.50","4","3.750"],"b":["9.4","2","1.5"],
        "c":["9.45","0.1"],"v":["100","200"],"p":["1","2"],"t":[3,4],"l":["8","7"],"h":["10","11"],"o":"5"}}}"#;
    let (notes, end) = read(&KRAKEN, &Call::Tickers, body);
    assert_eq!(end, Ok(()));
    let (id, ticker) = &notes.tickers[0];
    assert_eq!((&**id, ticker.last.to_string()), ("XXBTZUSD", "9.45".to_owned()));
    let figures = [
        &ticker.ask_volume,
        &ticker.bid_volume,
        &ticker.base_volume,
        &ticker.low,
        &ticker.high,
        &ticker.open,
    ];
    let figures = figures.map(|figure| figure.as_ref().map(ToString::to_string));
    let expected = [Some("3.75"), Some("1.5"), Some("200"), Some("7"), Some("11"), None];
    assert_eq!(figures.each_ref().map(Option::as_deref), expected);
}

#[test]
fn steps_and_a_status_are_read_and_the_books_of_others_left_out() {
    let body = r#"{"error":[],"result":{
        "XXBTZUSD":{"wsname":"XBT\/USD","base":"XXBT","quote":"ZUSD","pair_decimals":1,"lot_decimals":8,
            "fees":[],"ordermin":"0.00005","costmin":"0.5","tick_size":"0.05","status":"cancel_only"},
        "XXBTZUSD.d":{"altname":"XBTUSD.d","base":"XXBT","quote":"ZUSD"},
        "XBTUSD:BTNL":{"wsname":"XBT/USD"}, "NONAME":{"base":"XXBT","quote":"ZUSD"}}}"#;
    let (notes, end) = read(&KRAKEN, &Call::Markets, body);
    assert_eq!(end, Ok(()));
    let [market] = &notes.markets[..] else {
        panic!("{notes:?}");
    };
    assert_eq!((&*market.base, &*market.quote, market.active), ("BTC", "USD", false));
    let rules = &market.rules;
    assert_eq!((rules.price_places, rules.amount_places), (Some(2), Some(8)));
    let cost = rules.cost.min.as_ref().map(ToString::to_string);
    assert_eq!((cost.as_deref(), &rules.taker), (Some("0.5"), &None));
    let missing = (Some("NONAME".into()), "base", ItemFault::Missing);
    assert_eq!(notes.rejected, [missing]);
}

#[test]
fn one_ticker_has_its_own_time_and_a_newer_list_its_least_cost() {
    let one = r#"{"code":"200000","data":{"time":1602832092060,"symbol":"A-B","buy":"11328.9","sell":"11329","changeRate":"-0.0055",
        "changePrice":"-63.6","high":"11610","low":"11200","vol":"2282.7","volValue":"25984946.1","last":"11328.9","averagePrice":"1"}}"#;
    let (notes, end) = read(&KUCOIN, &Call::Ticker { id: "A-B" }, one);
    assert_eq!(end, Ok(()));
    assert_eq!(notes.tickers[0].1.timestamp, Some(UnixMs(1_602_832_092_060)));
    let list = |funds| {
        format!(
            r#"{{"code":"200000","data":[{{"symbol":"A-B","baseCurrency":"A","quoteCurrency":"B","quoteMinSize":"0.1","enableTrading":false,"minFunds":{funds}}}]}}"#
        )
    };
    for (funds, expected) in [("null", "0.1"), (r#""0.5""#, "0.5")] {
        let (notes, end) = read(&KUCOIN, &Call::Markets, &list(funds));
        assert_eq!((end, notes.markets[0].active), (Ok(()), false));
        let cost = notes.markets[0].rules.cost.min.as_ref().map(ToString::to_string);
        assert_eq!(cost.as_deref(), Some(expected));
    }
}

#[test]
fn a_candle_says_whether_it_is_closed() {
    let body = r#"{"code":"0","msg":"","data":[["7200000","1","4","1","3","9","5","0","0"],["3600000","1","4","1","3","9","5","0","1"]]}"#;
    let (notes, end) = read(&OKX, &candles(Stored::H1, 0, 0, 0), body);
    assert_eq!(end, Ok(()));
    let forming: Vec<_> = notes.candles.iter().map(|(_, is_forming)| *is_forming).collect();
    assert_eq!(forming, [true, false]);
}

#[test]
fn a_least_cost_in_usdt_is_said_of_markets_quoted_in_it_alone() {
    let list = |quote| {
        format!(
            r#"{{"code":"00000","data":[{{"symbol":"X","baseCoin":"A","quoteCoin":"{quote}","minTradeUSDT":"1"}}]}}"#
        )
    };
    for (quote, expected) in [("USDT", Some("1")), ("BTC", None)] {
        let (notes, end) = read(&BITGET, &Call::Markets, &list(quote));
        assert_eq!(end, Ok(()));
        let cost = notes.markets[0].rules.cost.min.as_ref().map(ToString::to_string);
        assert_eq!(cost.as_deref(), expected, "{quote}");
    }
}

#[test]
fn contracts_are_left_out_and_assets_in_lower_case_are_raised() {
    let list = r#"{"code":0,"result":{"data":[
        {"symbol":"BTCUSD-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USD","tradable":true},
        {"symbol":"BTC_USD","inst_type":"CCY_PAIR","base_ccy":"BTC","quote_ccy":"USD","tradable":false},
        {"symbol":"X","base_ccy":"BTC","quote_ccy":"USD"}]}}"#;
    let (notes, end) = read(&CRYPTOCOM, &Call::Markets, list);
    assert_eq!((end, notes.rejected.len()), (Ok(()), 0));
    let markets: Vec<_> = notes.markets.iter().map(|it| (&*it.ticker_id, it.active)).collect();
    assert_eq!(markets, [("BTC_USD", false)]);
    let list = r#"{"status":"ok","data":[{"symbol":"gtcusdt","base-currency":"gtc","quote-currency":"usdt","state":"online"},
        {"symbol":"btcusdt","base-currency":"btc","quote-currency":"usdt","state":"suspend"}]}"#;
    let (notes, _) = read(&HTX, &Call::Markets, list);
    let markets: Vec<_> =
        notes.markets.iter().map(|it| (&*it.base, &*it.quote, it.active)).collect();
    assert_eq!(markets, [("GAMECOM", "USDT", true), ("BTC", "USDT", false)]);
}
