//! What no recording shows: bodies of the exchanges, written after their documents, and what is read of them.

use super::testing::{BINANCE, Notes, candles, read};
use crate::decimal::Decimal;
use crate::exchange::{Call, Dialect, ItemFault};
use crate::interval::Stored;
use crate::record::{Bounds, MarketInfo, Ticker};

/// Exchange, call, what is read ([`shown`]), and the body.
const BODIES: &str = r#"
binance | tickers | X last=1 | [{"symbol":"X","lastPrice":"1","closeTime":"soon"}]
binance | tickers | X last=0 bid=0 change=-1.5 | [{"symbol":"X","lastPrice":"0.00000000","bidPrice":0,"askPrice":"","priceChange":"-1.50","weightedAvgPrice":NaN,"closeTime":0}]
binance | ticker X | X last=7 percentage=-2.427 | {"symbol":"X","lastPrice":"7","priceChangePercent":"-2.427"}
binance | markets | YOYOBTC YOYOW/BTC closed amountPlaces=0 amount=..9.5 cost=10.. | {"timezone":"UTC","symbols":[{"symbol":"YOYOBTC","status":"BREAK","baseAsset":"YOYO","quoteAsset":"BTC","filters":[{"filterType":"LOT_SIZE","minQty":"0","maxQty":"9.50","stepSize":"1.00000000"},{"minNotional":"10.0000","filterType":"MIN_NOTIONAL"},{"filterType":"PRICE_FILTER","tickSize":"0.00000000"}]}]}
bybit | tickers | AB last=1 time=1673859087947 | {"result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]},"time":1673859087947}
bybit | tickers | AB last=1 time=1673859087947 | {"time":1673859087947,"result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]}}
bybit | tickers | AB last=1 | {"result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]}}
bybit | tickers | AB last=1 | {"result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]},"time":"noon"}
bybit | tickers | AB last=1 | {"result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]},"time":null}
coinbase | markets | A-B A/B open | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"online","trading_disabled":false}]
coinbase | markets | A-B A/B closed | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"online","trading_disabled":true}]
coinbase | markets | A-B A/B closed | [{"id":"A-B","base_currency":"A","quote_currency":"B","trading_disabled":true,"status":"online"}]
coinbase | markets | A-B A/B open | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"online"}]
coinbase | markets | A-B A/B open | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"online","trading_disabled":null}]
coinbase | markets | A-B A/B closed | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"offline","trading_disabled":false}]
coinbase | markets | A-B A/B closed | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"internal","trading_disabled":false}]
coinbase | markets | A-B A/B closed | [{"id":"A-B","base_currency":"A","quote_currency":"B","status":"delisted","trading_disabled":false}]
gate | markets | A_B A/B open pricePlaces=6 amountPlaces=3 amount=0.001..100.5 cost=3..5000000 taker=0.002 maker=0.002 | [{"id":"A_B","base":"A","quote":"B","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"3","max_base_amount":"100.50","max_quote_amount":"5000000","amount_precision":3,"precision":6,"trade_status":"tradable"}]
gate | markets | A_B A/B closed | [{"id":"A_B","base":"A","quote":"B","trade_status":"sellable"}]
gate | markets | A_B A/B closed | [{"id":"A_B","base":"A","quote":"B","trade_status":"buyable"}]
gate | markets | A_B A/B closed | [{"id":"A_B","base":"A","quote":"B","trade_status":"untradable"}]
kraken | markets | XXBTZUSD BTC/USD closed pricePlaces=2 amountPlaces=8 amount=0.00005.. cost=0.5..; NONAME: base Missing | {"error":[],"result":{"XXBTZUSD":{"wsname":"XBT\/USD","base":"XXBT","quote":"ZUSD","pair_decimals":1,"lot_decimals":8,"fees":[],"ordermin":"0.00005","costmin":"0.5","tick_size":"0.05","status":"cancel_only"},"XXBTZUSD.d":{"altname":"XBTUSD.d","base":"XXBT","quote":"ZUSD"},"XBTUSD:BTNL":{"wsname":"XBT/USD"},"NONAME":{"base":"XXBT","quote":"ZUSD"}}}
kucoin | markets | A-B A/B closed cost=0.1.. | {"code":"200000","data":[{"symbol":"A-B","baseCurrency":"A","quoteCurrency":"B","quoteMinSize":"0.1","enableTrading":false,"minFunds":null}]}
kucoin | markets | A-B A/B closed cost=0.5.. | {"code":"200000","data":[{"symbol":"A-B","baseCurrency":"A","quoteCurrency":"B","quoteMinSize":"0.1","enableTrading":false,"minFunds":"0.5"}]}
okx | candles | 7200000 forming; 3600000 closed | {"code":"0","msg":"","data":[["7200000","1","4","1","3","9","5","0","0"],["3600000","1","4","1","3","9","5","0","1"]]}
bitget | markets | X A/USDT open cost=1.. | {"code":"00000","data":[{"symbol":"X","baseCoin":"A","quoteCoin":"USDT","minTradeUSDT":"1"}]}
bitget | markets | X A/BTC open | {"code":"00000","data":[{"symbol":"X","baseCoin":"A","quoteCoin":"BTC","minTradeUSDT":"1"}]}
cryptocom | markets | BTC_USD BTC/USD closed | {"code":0,"result":{"data":[{"symbol":"BTCUSD-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USD","tradable":true},{"symbol":"BTC_USD","inst_type":"CCY_PAIR","base_ccy":"BTC","quote_ccy":"USD","tradable":false},{"symbol":"X","base_ccy":"BTC","quote_ccy":"USD"}]}}
htx | markets | gtcusdt GAMECOM/USDT open; btcusdt BTC/USDT closed | {"status":"ok","data":[{"symbol":"gtcusdt","base-currency":"gtc","quote-currency":"usdt","state":"online"},{"symbol":"btcusdt","base-currency":"btc","quote-currency":"usdt","state":"suspend"}]}
"#;

/// What was read, in one line: each item with its name and the figures that it has, and what was rejected.
fn shown(notes: &Notes) -> String {
    let figure = |name: &str, value: Option<String>| value.map(|it| format!(" {name}={it}"));
    let decimal =
        |name: &str, value: Option<&Decimal>| figure(name, value.map(ToString::to_string));
    let ticker = |(id, ticker): &(String, Ticker)| {
        let figures = Ticker::FIGURES.into_iter().zip(ticker.figures());
        let figures = figures.filter_map(|(name, value)| decimal(name, value.as_ref()));
        let figures: String = figures.collect();
        let time = figure("time", ticker.timestamp.map(|time| time.0.to_string()));
        format!("{id} last={}{figures}{}", ticker.last, time.unwrap_or_default())
    };
    let market = |market: &MarketInfo| {
        let MarketInfo { ticker_id, base, quote, rules, .. } = market;
        let places = [("pricePlaces", rules.price_places), ("amountPlaces", rules.amount_places)];
        let places = places.map(|(name, count)| figure(name, count.map(|it| it.to_string())));
        let bounds = [("price", &rules.price), ("amount", &rules.amount), ("cost", &rules.cost)];
        let bounds = bounds.map(|(name, Bounds { min, max })| {
            let [min, max] =
                [min, max].map(|it| it.as_ref().map(ToString::to_string).unwrap_or_default());
            figure(name, Some(format!("{min}..{max}")).filter(|it| it != ".."))
        });
        let fees = [decimal("taker", rules.taker.as_ref()), decimal("maker", rules.maker.as_ref())];
        let all: String = places.into_iter().chain(bounds).chain(fees).flatten().collect();
        let open = if market.active { "open" } else { "closed" };
        format!("{ticker_id} {base}/{quote} {open}{all}")
    };
    let mut all: Vec<String> = notes.tickers.iter().map(ticker).collect();
    all.extend(notes.markets.iter().map(market));
    all.extend(notes.candles.iter().map(|(candle, is_forming)| {
        format!("{} {}", candle.open_time.0, if *is_forming { "forming" } else { "closed" })
    }));
    all.extend(notes.rejected.iter().map(|(id, field, fault)| {
        format!("{}: {field} {fault:?}", id.as_deref().unwrap_or_default())
    }));
    all.join("; ")
}

#[test]
fn bodies_are_read_as_their_documents_say() {
    for line in BODIES.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.splitn(4, " | ").collect();
        let [name, call, expected, body] = fields[..] else { panic!("{line}") };
        let dialect = Dialect::by_name(name).expect("it is built in");
        let call = match call.split_once(' ').unwrap_or((call, "")) {
            ("tickers", _) => Call::Tickers,
            ("ticker", id) => Call::Ticker { id },
            ("candles", _) => candles(Stored::H1, 0, 0, 0),
            _ => Call::Markets,
        };
        let (notes, end) = read(dialect, &call, body);
        assert_eq!((end, &*shown(&notes)), (Ok(()), expected), "{line}");
    }
}

#[test]
fn a_bad_ticker_is_rejected_alone() {
    let check = |bad: &str, id: Option<&str>, field, fault| {
        let body =
            format!(r#"[{{"symbol":"A","lastPrice":"1"}},{bad},{{"symbol":"B","lastPrice":"2"}}]"#);
        let (notes, end) = read(&BINANCE, &Call::Tickers, &body);
        assert_eq!(end, Ok(()), "{bad}");
        assert_eq!(notes.rejected, [(id.map(str::to_owned), field, fault)], "{bad}");
        let ids: Vec<_> = notes.tickers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["A", "B"], "{bad}");
    };
    for other in ["7", "null", "\"X\"", "[]", "NaN"] {
        check(other, None, "ticker", ItemFault::WrongType);
    }
    check("{}", None, "id", ItemFault::Missing);
    check(r#"{"symbol":""}"#, None, "id", ItemFault::Missing);
    check(r#"{"symbol":["X"],"lastPrice":"1"}"#, None, "id", ItemFault::WrongType);
    check(r#"{"symbol":"X"}"#, Some("X"), "last", ItemFault::Missing);
    check(r#"{"symbol":"X","lastPrice":null}"#, Some("X"), "last", ItemFault::Missing);
    check(r#"{"symbol":"X","lastPrice":""}"#, Some("X"), "last", ItemFault::Missing);
    let members = [
        ("lastPrice", "last"),
        ("bidPrice", "bid"),
        ("bidQty", "bidVolume"),
        ("askPrice", "ask"),
        ("askQty", "askVolume"),
        ("openPrice", "open"),
        ("highPrice", "high"),
        ("lowPrice", "low"),
        ("volume", "baseVolume"),
        ("quoteVolume", "quoteVolume"),
        ("priceChange", "change"),
        ("priceChangePercent", "percentage"),
    ];
    for (member, field) in members {
        let bad = |value: &str| format!(r#"{{"symbol":"X","lastPrice":"1","{member}":{value}}}"#);
        for word in [r#""NaN""#, r#""abc""#, "NaN", "-Infinity", r#""1\u0030""#] {
            check(&bad(word), Some("X"), field, ItemFault::NotANumber);
        }
        for other in ["true", "[]", "[1]", r#"{"a":1}"#] {
            check(&bad(other), Some("X"), field, ItemFault::WrongType);
        }
        check(&bad("1e999"), Some("X"), field, ItemFault::TooLong);
        check(&bad(r#""1e999""#), Some("X"), field, ItemFault::TooLong);
        if !matches!(field, "change" | "percentage") {
            check(&bad("-1"), Some("X"), field, ItemFault::Negative);
        }
    }
}
