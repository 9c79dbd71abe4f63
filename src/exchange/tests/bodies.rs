//! Bodies and what is read of them: of the exchanges what no recording shows, written after their documents; and of
//! made-up ones every habit that the machine knows.

use super::habits::{ASSETS, NAMED, ROWS};
use super::testing::{Notes, SAMPLE, candles, read};
use crate::decimal::Decimal;
use crate::exchange::{Call, Dialect, ReadError};
use crate::interval::Stored;
use crate::record::{Bounds, MarketInfo, Ticker};

/// Exchange, call (and status, if it is another one than 200; or the id, and the assets of its market), what is read
/// ([`shown`]), and the body without `^`.
const BODIES: &str = r#"
# What no recording shows.
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
okx | 1h | 7200000 1 4 1 3 9 forming; 3600000 1 4 1 3 9 | {"code":"0","msg":"","data":[["7200000","1","4","1","3","9","5","0","0"],["3600000","1","4","1","3","9","5","0","1"]]}
bitget | markets | X A/USDT open cost=1.. | {"code":"00000","data":[{"symbol":"X","baseCoin":"A","quoteCoin":"USDT","minTradeUSDT":"1"}]}
bitget | markets | X A/BTC open | {"code":"00000","data":[{"symbol":"X","baseCoin":"A","quoteCoin":"BTC","minTradeUSDT":"1"}]}
cryptocom | markets | BTC_USD BTC/USD closed | {"code":0,"result":{"data":[{"symbol":"BTCUSD-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USD","tradable":true},{"symbol":"BTC_USD","inst_type":"CCY_PAIR","base_ccy":"BTC","quote_ccy":"USD","tradable":false},{"symbol":"X","base_ccy":"BTC","quote_ccy":"USD"}]}}
htx | markets | gtcusdt GAMECOM/USDT open; btcusdt BTC/USDT closed | {"status":"ok","data":[{"symbol":"gtcusdt","base-currency":"gtc","quote-currency":"usdt","state":"online"},{"symbol":"btcusdt","base-currency":"btc","quote-currency":"usdt","state":"suspend"}]}
# The made-up exchange: members, arrays, objects, ratios and stamps become tickers.
sample | tickers | XXBTZUSD last=73380.6 bid=73380.6 ask=73380.7 askVolume=1 percentage=-0.55 time=1710328241270; EMPTY last=0 time=1000; XA last=100 time=1710328241270 | {"error":[],"result":{"time":"2024-03-13T11:10:41.270099Z","list":{"XXBTZUSD":{"a":["73380.70000","1","1.000"],"b":{"price":73380.6,"size":null},"c":["73380.60000","0.1"],"ratio":"-0.00550"},"EMPTY":{"a":[],"c":["0"],"b":null,"at":"1970-01-01T00:00:01Z"} , "X\u0041":{"c":[1e2]}}}}
# A figure in a container of another type rejects its ticker.
sample | tickers | GOOD last=2; BAD: ask WrongType | {"result":{"list":{"BAD":{"c":["1"],"a":"5"},"GOOD":{"c":["2"]}}}}
sample | tickers | GOOD last=2; BAD: bid WrongType | {"result":{"list":{"BAD":{"c":["1"],"b":5},"GOOD":{"c":["2"]}}}}
sample | tickers | GOOD last=2; BAD: ask WrongType | {"result":{"list":{"BAD":{"c":["1"],"a":[["5"]]},"GOOD":{"c":["2"]}}}}
sample | tickers | GOOD last=2; BAD: ask NotANumber | {"result":{"list":{"BAD":{"c":["1"],"a":[NaN]},"GOOD":{"c":["2"]}}}}
sample | tickers | LONG last=2 percentage=1.234567890123456789012 | {"result":{"list":{"LONG":{"c":["2"],"ratio":0.01234567890123456789012}}}}
sample | tickers | GOOD last=2; BAD: ratio NotANumber | {"result":{"list":{"BAD":{"c":["1"],"ratio":"much"},"GOOD":{"c":["2"]}}}}
sample | tickers | GOOD last=2; BAD: last WrongType | {"result":{"list":{"BAD":{"c":["1"],"c":7},"GOOD":{"c":["2"]}}}}
# A single ticker has the id that was asked for, and so have figures of 24 hours.
sample | ticker A-B | A-B last=7 | {"result":{"c":["7"]}}
sample | stats A/B | A/B open=5 | {"result":{"first":"5.0","now":7,"high":"","low":"4"}}
sample | stats A/B | A/B: open Negative | {"result":{"first":"-5"}}
sample | stats A/B | no ticker where the body should have one | {"result":[]}
# Columns, flags and seconds become candles, whatever the member is called.
sample | 1h | 7200000 2 4 1 3 5.5; 10800000 2 4 1 3 5 forming; 14400500 2 4 1 3 5 | {"error":"0","result":{"other":5,"XXBT":[[7200,"1","4","2","3","9","5.50","1"], [10800,1,4,2,3,9,5,"0",null],[14400.5,1,4,2,3,9,5]],"last":10800}}
sample | 1h | 7200000 2 4 1 3 5; 10800000 2 4 1 3 5 forming | {"result":{"X":[[7200,1,4,2,3,9,5,true],[10800,1,4,2,3,9,5,false]]}}
sample | 1h | 0 1 1 1 1 1; ?: openTime Missing | {"result":{"X":[[],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: volume Missing | {"result":{"X":[[1,1,1,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: candle WrongType | {"result":{"X":[{},[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: candle WrongType | {"result":{"X":[7,[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: candle WrongType | {"result":{"X":[null,[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: openTime NotATime | {"result":{"X":[["x",1,1,1,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: openTime NotATime | {"result":{"X":[[-1,1,1,1,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: low Negative | {"result":{"X":[[1,-1,1,1,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: high Missing | {"result":{"X":[[1,1,"",1,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: open TooLong | {"result":{"X":[[1,1,1,1e999,1,1,1],[0,1,1,1,1,1,1]]}}
sample | 1h | 0 1 1 1 1 1; ?: close WrongType | {"result":{"X":[[1,1,1,1,[1],1,1],[0,1,1,1,1,1,1]]}}
# Listings take names, steps, places, fees and limits as they come.
sample | markets | XXBTZUSD BTC/USD open candleId=XBTUSD pricePlaces=1 amountPlaces=8 amount=0.0002.. cost=5.. taker=0.0026 maker=0.0026; AB A/B closed pricePlaces=2 amountPlaces=0 cost=1.. taker=-0.0001 maker=-0.0001; N N/M open | {"result":{"XXBTZUSD":{"pair":"XBT\/USD","alt":"XBTUSD","trading":true,"fee":"0.26","decimals":"1","lot":{"places":8},"rules":[{"min":"0.5","kind":"other"},7,{"min":"0.0002","max":"0","kind":"amount"}],"minFirst":"1","minLast":"5"},"AB":{"base":"A","quote":"B","trading":false,"fee":"-0.01","tick":"0.050","decimals":1,"lot":{"step":"10","places":3},"minFirst":"1","minLast":null},"AB.d":{"base":"A","quote":"B"}, "N":{"base":"N","quote":"M"}}}
sample | markets | B B/C open; A: market WrongType | {"result":{"A":[],"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: base Missing | {"result":{"A":{},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: base WrongType | {"result":{"A":{"base":7,"quote":"B"},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: quote Missing | {"result":{"A":{"base":"A","quote":""},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: pair NotAText | {"result":{"A":{"pair":"AB"},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: status WrongType | {"result":{"A":{"base":"A","quote":"B","trading":[]},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: pricePlaces Negative | {"result":{"A":{"base":"A","quote":"B","decimals":-1},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: pricePlaces NotANumber | {"result":{"A":{"base":"A","quote":"B","decimals":1.5},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: costMin NotANumber | {"result":{"A":{"base":"A","quote":"B","minLast":"x"},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: amountMin WrongType | {"result":{"A":{"base":"A","quote":"B","rules":{}},"B":{"base":"B","quote":"C"}}}
sample | markets | B B/C open; A: quote NotAText | {"result":{"A":{"base":"A","quote":"\ud800"},"B":{"base":"B","quote":"C"}}}
# The clock may be deep and have a fraction.
sample | time | 1391835876123 | {"data":[{"epoch":1391835876.1239}]}
sample | time | 1391835876000 | {"error":"0","data":[{"iso":"x","epoch":"1391835876"},{}]}
sample | time | no time where the body should have one | {"data":[]}
sample | time | no time where the body should have one | {"data":[{"epoch":"soon"}]}
sample | time | no time where the body should have one | {"data":[7]}
sample | time | no time where the body should have one | [1391835876]
# A refusal is found whatever the status, and before the shape is judged.
sample | tickers | UnknownMarket: E:Unknown market (E:Unknown market) | {"error":["E:Unknown market","E2"]}
sample | tickers | RateLimited: slow down (E7) | {"error":"E7","reason":"slow\ndown","result":null}
sample | tickers 500 | Other: 5 (5) | {"error":5}
sample | tickers 429 | RateLimited: 5 (5) | {"error":5}
sample | tickers 418 | Banned: 5 (5) | {"result":{"list":{}},"error":5}
sample | tickers 403 | Banned: E:Unknown market (E:Unknown market) | {"error":"E:Unknown market"}
sample | tickers 400 | RateLimited: E7 (E7) | {"error":"E7"}
sample | tickers 403 | RateLimited: E7 (E7) | {"error":"E7"}
sample | tickers 404 | RateLimited: E7 (E7) | {"error":"E7"}
sample | tickers 503 | RateLimited: E7 (E7) | {"error":"E7"}
sample | tickers 404 | UnknownMarket: E:Unknown market (E:Unknown market) | {"error":"E:Unknown market"}
sample | tickers | no ticker where the body should have one | {"error":"0","result":[]}
sample | tickers |  | {"error":0,"result":{"list":{}}}
# An error where items are expected, and items that are none.
rows | 1m | UnknownMarket: symbol: invalid (10020) | ["error", 10020, "symbol: invalid" ]
rows | tickers | RateLimited: ratelimit: error (11010) | ["error", 11010, "ratelimit: error" ]
rows | markets | Other: maintenance (20060) | ["error", 20060, "maintenance" ]
rows | 1m 500 | UnknownMarket: symbol: invalid (10020) | ["error", 10020, "symbol: invalid" ]
rows | tickers 500 | RateLimited: ratelimit: error (11010) | ["error", 11010, "ratelimit: error" ]
rows | markets 500 | Other: maintenance (20060) | ["error", 20060, "maintenance" ]
rows | tickers | tBTCUSD last=1; tETHUSD last=2; fUSD last=3 | [["tBTCUSD",1],["tETHUSD",2],["fUSD",3]]
rows | markets | tAVAX:USD AVAX/USD open; tBTCUSD BTC/USD open | [["AVAX:USD","fUSD","BTCUSD","BTCUSD.d"]]
rows | 1m | 0 1 3 1 2 5; 60000 1 3 1 2 5 | [[0,1,2,3,1,5],[60000,1,2,3,1,5]]
# Markets named by one asset, a time among the tickers, and what no item sends.
named | markets | XBT BTC/KRW open candleId=XBT_KRW; ETH ETH/KRW open candleId=ETH_KRW | {"status":"0000","data":{"XBT":{"closing_price":"1"},"date":"1795358368485","ETH":{"closing_price":"2"}}}
named | tickers | XBT last=1 time=1795358368485; ETH last=2 time=1795358368485 | {"status":"0000","data":{"XBT":{"closing_price":"1"},"date":"1795358368485","ETH":{"closing_price":"2"}}}
assets | 1d | 0 1 4 0.5 2.5 0 | [[0,1,4,0.5,2.50]]
assets | markets | XBT BTC/USD open pricePlaces=2 taker=0.002; ETH ETH/USD open pricePlaces=2 taker=0.001 | [{"name":"XBT"},{"name":"ETH","fee":"0.001"}]
# Members may be named after the assets of the market, by the exchange's own names, and after no other asset.
assets | ticker xbtusd BTC USD | xbtusd last=64000.5 askVolume=0.5 baseVolume=12.3 quoteVolume=1234567890.123456789012345 time=1715769425000 | {"last":"64000.5","volume":{"XBT":"12.30","USD":"1234567890.123456789012345","timestamp":1715769425000}}
assets | ticker xbtusd BTC USD | xbtusd last=64000.5 askVolume=0.5 baseVolume=1 quoteVolume=2 time=1715769425000 | {"last":"64000.5","volume":{"usd":"2","xbt":"1","timestamp":1715769425000}}
assets | ticker xbtusd BTC USD | xbtusd last=64000.5 askVolume=0.5 time=1715769425000 | {"last":"64000.5","volume":{"BTC":"1","ETH":"2","{base}x":"3","timestamp":1715769425000}}
assets | ticker xbtusd ETH EUR | xbtusd last=64000.5 askVolume=0.5 time=1715769425000 | {"last":"64000.5","volume":{"XBT":"12.30","USD":"1234567890.123456789012345","timestamp":1715769425000}}
assets | ticker xbtusd | xbtusd last=64000.5 askVolume=0.5 time=1715769425000 | {"last":"64000.5","volume":{"XBT":"12.30","USD":"1234567890.123456789012345","timestamp":1715769425000}}
# A bad ticker is rejected alone. The last price of a market without trades is no fault.
binance | tickers | A last=1; B last=2; ?: ticker WrongType | [{"symbol":"A","lastPrice":"1"},7,{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: ticker WrongType | [{"symbol":"A","lastPrice":"1"},null,{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: ticker WrongType | [{"symbol":"A","lastPrice":"1"},"X",{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: ticker WrongType | [{"symbol":"A","lastPrice":"1"},[],{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: ticker WrongType | [{"symbol":"A","lastPrice":"1"},NaN,{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: id Missing | [{"symbol":"A","lastPrice":"1"},{},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: id Missing | [{"symbol":"A","lastPrice":"1"},{"symbol":""},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: id TooLong | [{"symbol":"A","lastPrice":"1"},{"symbol":"YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; ?: id WrongType | [{"symbol":"A","lastPrice":"1"},{"symbol":["X"],"lastPrice":"1"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: last Missing | [{"symbol":"A","lastPrice":"1"},{"symbol":"X"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=0 | [{"symbol":"A","lastPrice":null}]
binance | tickers | A last=0 | [{"symbol":"A","lastPrice":""}]
binance | tickers | A last=0 | [{"symbol":"A","lastPrice":"0"}]
binance | tickers | A last=1; B last=2; X: last NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","lastPrice":"NaN"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: bid NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","bidPrice":"abc"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: bidVolume NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","bidQty":NaN},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: ask NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","askPrice":-Infinity},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: askVolume NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","askQty":"1\u0030"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: open WrongType | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","openPrice":true},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: high WrongType | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","highPrice":[1]},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: low WrongType | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","lowPrice":{"a":1}},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: baseVolume TooLong | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","volume":1e999},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: quoteVolume TooLong | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","quoteVolume":"1e999"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: change NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","priceChange":"NaN"},{"symbol":"B","lastPrice":"2"}]
binance | tickers | A last=1; B last=2; X: percentage NotANumber | [{"symbol":"A","lastPrice":"1"},{"symbol":"X","lastPrice":"1","priceChangePercent":"NaN"},{"symbol":"B","lastPrice":"2"}]
# Every error of a body has its name; a status wins over the body, and a reason over the status.
binance | tickers | malformed body at byte 5: expected a value | [{}, ]
binance | markets | malformed body at byte 25: expected a value | {"symbols":[],"timezone":yes}
binance | tickers | malformed body at byte 33: expected no deeper nesting | [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
binance | tickers | body ended early | ^
binance | tickers | body ended early | ^ ^
binance | tickers | body ended early | [
binance | tickers | body ended early | [{}
binance | tickers | body ended early | {"code":-1,"msg":"x"
binance | tickers | no ticker where the body should have one | {}
binance | ticker A | no ticker where the body should have one | []
binance | 1h | no candle where the body should have one | {"a":[[]]}
binance | markets | no market where the body should have one | {"symbols":{}}
binance | time | no time where the body should have one | {"serverTime":"noon"}
binance | tickers |  | []
binance | tickers 203 |  | []
binance | tickers 304 | status 304 | ^
binance | tickers 403 | status 403 | <html>
binance | tickers 500 | status 500 | []
binance | tickers 502 | status 502 | ^
binance | tickers 418 | RateLimited: Way too much. (-1003) | {"code":-1003,"msg":"Way too much."}
"#;

/// What was read, in one line: each item with its name and the figures that it has, what was rejected, and the
/// error.
fn shown(notes: &Notes, end: &Result<(), ReadError>) -> String {
    let figure = |name: &str, value: Option<String>| value.map(|it| format!(" {name}={it}"));
    let decimal =
        |name: &str, value: Option<&Decimal>| figure(name, value.map(ToString::to_string));
    let ticker = |(id, ticker): &(String, Ticker)| {
        let figures = Ticker::FIGURES.into_iter().zip(ticker.figures());
        let figures = figures.filter_map(|(name, value)| decimal(name, value.as_ref()));
        let time = figure("time", ticker.timestamp.map(|time| time.0.to_string()));
        format!("{id} last={}{}", ticker.last, figures.chain(time).collect::<String>())
    };
    let market = |market: &MarketInfo| {
        let MarketInfo { ticker_id, base, quote, rules, candle_id, .. } = market;
        let places = [("pricePlaces", rules.price_places), ("amountPlaces", rules.amount_places)];
        let places = places.map(|(name, count)| figure(name, count.map(|it| it.to_string())));
        let bounds = [("price", &rules.price), ("amount", &rules.amount), ("cost", &rules.cost)];
        let bounds = bounds.map(|(name, Bounds { min, max })| {
            let [min, max] = [min, max].map(|it| it.as_ref().map(ToString::to_string));
            let both = [min.unwrap_or_default(), max.unwrap_or_default()].join("..");
            figure(name, Some(both).filter(|it| it != ".."))
        });
        let fees = [decimal("taker", rules.taker.as_ref()), decimal("maker", rules.maker.as_ref())];
        let candle_id = figure("candleId", candle_id.as_ref().map(ToString::to_string));
        let all =
            candle_id.into_iter().chain(places.into_iter().chain(bounds).chain(fees).flatten());
        let open = if market.active { "open" } else { "closed" };
        format!("{ticker_id} {base}/{quote} {open}{}", all.collect::<String>())
    };
    if let Err(error) = end {
        return match error {
            ReadError::Refused { code, message, kind } => format!("{kind:?}: {message} ({code})"),
            error => error.to_string(),
        };
    }
    let mut all: Vec<String> = notes.tickers.iter().map(ticker).collect();
    all.extend(notes.stats.iter().map(|(id, stats)| {
        let figures = [("open", &stats.open), ("high", &stats.high), ("low", &stats.low)];
        let volumes = [("baseVolume", &stats.base_volume), ("quoteVolume", &stats.quote_volume)];
        let figures = figures.into_iter().chain(volumes);
        let figures: String = figures.filter_map(|(name, it)| decimal(name, it.as_ref())).collect();
        format!("{id}{figures}")
    }));
    all.extend(notes.markets.iter().map(market));
    all.extend(notes.candles.iter().map(|(candle, is_forming)| {
        let figures = candle.figures().map(ToString::to_string).join(" ");
        let forming = if *is_forming { " forming" } else { "" };
        format!("{} {figures}{forming}", candle.open_time.0)
    }));
    all.extend(notes.times.iter().map(|time| time.0.to_string()));
    all.extend(
        notes.rejected.iter().map(|(id, field, fault)| {
            format!("{}: {field} {fault:?}", id.as_deref().unwrap_or("?"))
        }),
    );
    all.join("; ")
}

/// What is read of the answer to a call in the words of [`BODIES`].
pub(super) fn reads(dialect: &'static Dialect, call: &'static str, body: &str) -> String {
    let mut words = call.split(' ');
    let (call, word) = (words.next().expect("a call"), words.next().unwrap_or("200"));
    let assets = words.next().zip(words.next()).map(|(base, quote)| [base, quote]);
    let interval = Stored::ALL.into_iter().find(|it| it.name() == call);
    let call = match call {
        "tickers" => Call::Tickers,
        "ticker" => Call::Ticker { id: word },
        "stats" => Call::Stats { id: word },
        "time" => Call::Time,
        "markets" => Call::Markets { named: &[] },
        _ => candles(interval.expect("a call"), 0, 0, 0),
    };
    let (notes, end) = read(dialect, &call, body, word.parse().unwrap_or(200), assets);
    shown(&notes, &end)
}

#[test]
fn bodies_are_read_as_their_documents_say() {
    for line in BODIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(4, " | ").collect();
        let [name, call, expected, body] = fields[..] else { panic!("{line}") };
        let dialect = match name {
            "sample" => *SAMPLE,
            "rows" => *ROWS,
            "named" => *NAMED,
            "assets" => *ASSETS,
            name => Dialect::by_name(name).expect("it is built in"),
        };
        assert_eq!(reads(dialect, call, &body.replace('^', "")), expected, "{line}");
    }
}
