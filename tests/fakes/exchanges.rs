//! The exchanges as their documents describe them, without a look at the dialects that ask them. One
//! description serves for all: the fakes answer by it, and recorded answers are read by it.
//!
//! A line that begins with an exchange's name begins its description: how it names a market, what happens to
//! those names, `padded` if prices have all their zeros, and how its list says that a market trades. Then, each
//! with its words as [`super::places`] reads them: the limit of requests, the figures of a quote that it
//! sends, its addresses with their body and its items (without any: those of the address before), and its
//! refusals with their kind, code, words and body. The first refusal of each kind is the one that the fake
//! uses.

pub const EXCHANGES: &str = r#"
binance {base}{quote} padded open=TRADING
limit 6000 in 60000
sends last bid ask bidVolume askVolume open high low change baseVolume quoteVolume
/api/v3/time
 {"serverTime":$now}
/api/v3/ticker/24hr with=symbol markets=symbol cost=2
 $items
 {"symbol":"$id","priceChange":"$change","priceChangePercent":"$percent","weightedAvgPrice":"1","prevClosePrice":"1","lastPrice":"$last","lastQty":"0.1","bidPrice":"$bid","bidQty":"$bidVolume","askPrice":"$ask","askQty":"$askVolume","openPrice":"$open","highPrice":"$high","lowPrice":"$low","volume":"$baseVolume","quoteVolume":"$quoteVolume","openTime":1,"closeTime":$now,"firstId":1,"lastId":2,"count":2}
/api/v3/ticker/24hr markets=symbols cost=2,40,80
 [$items]
/api/v3/exchangeInfo markets=symbols cost=20
 {"timezone":"UTC","serverTime":$now,"rateLimits":[],"exchangeFilters":[],"symbols":[$items]}
 {"symbol":"$id","status":"$status","baseAsset":"$base","quoteAsset":"$quote","filters":[{"filterType":"PRICE_FILTER","minPrice":"$minPrice","maxPrice":"$maxPrice","tickSize":"$tick"},{"filterType":"LOT_SIZE","minQty":"$minAmount","maxQty":"$maxAmount","stepSize":"$step"},{"filterType":"NOTIONAL","minNotional":"$minCost","maxNotional":"$maxCost"}]}
/api/v3/klines interval=interval:1m,1h,1d from=startTime? to=endTime? first=limit:1000:500 cost=2
 [$items]
 [$time,"$open","$high","$low","$close","$volume",$end,"$turnover",1,"2","3","0"]
400 UnknownMarket | -1121 | Invalid symbol. | {"code":-1121,"msg":"Invalid symbol."}
400 Other | -1102 | Mandatory parameter was not sent. | {"code":-1102,"msg":"Mandatory parameter was not sent."}
429 RateLimited | -1003 | Too much request weight used. | {"code":-1003,"msg":"Too much request weight used."}
200 RateLimited | -1003 | Too many requests. | {"code":-1003,"msg":"Too many requests."}

binanceus {base}{quote} padded open=TRADING half=binance
limit 1200 in 60000
sends last bid ask bidVolume askVolume open high low change baseVolume quoteVolume

okx {base}-{quote} open=live
limit 20 in 2000
sends last bid ask bidVolume askVolume open high low baseVolume quoteVolume
/api/v5/public/time pool=time most=10
 {"code":"0","msg":"","data":[{"ts":"$now"}]}
/api/v5/market/tickers with=instType=SPOT markets pool=tickers
 {"code":"0","msg":"","data":[$items]}
 {"instType":"SPOT","instId":"$id","last":"$last","lastSz":"0.1","askPx":"$ask","askSz":"$askVolume","bidPx":"$bid","bidSz":"$bidVolume","open24h":"$open","high24h":"$high","low24h":"$low","volCcy24h":"$quoteVolume","vol24h":"$baseVolume","ts":"$now","sodUtc0":"1","sodUtc8":"2"}
/api/v5/market/ticker with=instId markets=instId pool=ticker
 {"code":"0","msg":"","data":[$items]}
/api/v5/public/instruments with=instType=SPOT markets=instId pool=instruments
 {"code":"0","msg":"","data":[$items]}
 {"instType":"SPOT","instId":"$id","uly":"","category":"1","baseCcy":"$base","quoteCcy":"$quote","settleCcy":"","ctVal":"","tickSz":"$tick","lotSz":"$step","minSz":"$minAmount","maxLmtSz":"$maxAmount","maxMktSz":"1000000","state":"$status"}
# The last 1440 of each interval are at hand; older ones are in the archive. `before` and `after` are left out.
/api/v5/market/candles market=instId interval=bar:1m,1H,1Dutc from=before?:1 to=after?:-1 last=limit:300:100 newest reach=1,60,1440 pool=candles most=40
 {"code":"0","msg":"","data":[$items]}
 ["$time","$open","$high","$low","$close","$volume","$turnover","$turnover","$closedFlag"]
/api/v5/market/history-candles market=instId interval=bar:1m,1H,1Dutc from=before?:1 to=after?:-1 last=limit:300:100 newest pool=history-candles
 {"code":"0","msg":"","data":[$items]}
200 UnknownMarket | 51001 | Instrument ID does not exist | {"code":"51001","msg":"Instrument ID does not exist","data":[]}
200 Other | 50014 | Parameter can not be empty | {"code":"50014","msg":"Parameter can not be empty","data":[]}
200 Other | 50001 | Service temporarily unavailable | {"code":"50001","msg":"Service temporarily unavailable","data":[]}
429 RateLimited | 50011 | Requests too frequent. | {"msg":"Requests too frequent.","code":"50011"}
200 RateLimited | 50011 | Too Many Requests | {"data":[],"msg":"Too Many Requests","code":"50011"}
503 Other | 50001 | 50001 | {"code":"50001","msg":"","data":[]}

bybit {base}{quote} open=Trading
limit 600 in 5000
sends last bid ask bidVolume askVolume open high low baseVolume quoteVolume
/v5/market/time
 {"retCode":0,"retMsg":"OK","result":{"timeSecond":"$seconds","timeNano":"$seconds000000000"},"retExtInfo":{},"time":$now}
/v5/market/tickers with=category=spot markets=symbol
 {"retCode":0,"retMsg":"OK","result":{"category":"spot","list":[$items]},"retExtInfo":{},"time":$now}
 {"symbol":"$id","bid1Price":"$bid","bid1Size":"$bidVolume","ask1Price":"$ask","ask1Size":"$askVolume","lastPrice":"$last","prevPrice24h":"$open","price24hPcnt":"$ratio","highPrice24h":"$high","lowPrice24h":"$low","turnover24h":"$quoteVolume","volume24h":"$baseVolume","usdIndexPrice":"1"}
# A name that is unknown is left out.
/v5/market/instruments-info with=category=spot markets=symbol lenient
 {"retCode":0,"retMsg":"OK","result":{"category":"spot","list":[$items]},"retExtInfo":{},"time":$now}
 {"symbol":"$id","baseCoin":"$base","quoteCoin":"$quote","innovation":"0","status":"$status","marginTrading":"both","lotSizeFilter":{"basePrecision":"$step","quotePrecision":"0.00000001","minOrderQty":"$minAmount","maxOrderQty":"$maxAmount","minOrderAmt":"$minCost","maxOrderAmt":"$maxCost"},"priceFilter":{"tickSize":"$tick"}}
/v5/market/kline with=category=spot interval=interval:1,60,D from=start? to=end? last=limit:1000:200 newest
 {"retCode":0,"retMsg":"OK","result":{"category":"spot","list":[$items]},"retExtInfo":{},"time":$now}
 ["$time","$open","$high","$low","$close","$volume","$turnover"]
200 UnknownMarket | 10001 | Not supported symbols | {"retCode":10001,"retMsg":"Not supported symbols","result":{},"retExtInfo":{},"time":1672712468011}
200 Other | 10016 | Internal server error | {"result":{"list":[]},"retCode":10016,"retMsg":"Internal server error","time":1}
200 RateLimited | 10006 | Too many visits! | {"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1}
403 RateLimited | 10018 | ip rate limit | {"retCode":10018,"retMsg":"ip rate limit","result":null}

kraken {base}{quote} padded BTC=XBT DOGE=XDG open=online
limit 1 in 1000
sends last bid ask bidVolume askVolume high low baseVolume
/0/public/Time
 {"error":[],"result":{"unixtime":$seconds,"rfc1123":"Wed, 15 May 24 10:37:05 +0000"}}
/0/public/Ticker markets=pair
 {"error":[],"result":{$items}}
 "$id":{"a":["$ask","7","$askVolume"],"b":["$bid","8","$bidVolume"],"c":["$last","0.00067643"],"v":["1.5","$baseVolume"],"p":["3","4"],"t":[34619,38907],"l":["1","$low"],"h":["2","$high"],"o":"5"}
/0/public/AssetPairs markets=pair
 {"error":[],"result":{$items}}
 "$id":{"altname":"$id","wsname":"$ownBase/$quote","aclass_base":"currency","base":"X$ownBase","aclass_quote":"currency","quote":"Z$quote","lot":"unit","cost_decimals":5,"pair_decimals":$places,"lot_decimals":$amountPlaces,"lot_multiplier":1,"leverage_buy":[2,3],"leverage_sell":[],"fees":[[0,$takerPercent],[50000,0.24]],"fees_maker":[[0,$makerPercent],[50000,0.14]],"fee_volume_currency":"ZUSD","margin_call":80,"margin_stop":40,"ordermin":"$minAmount","costmin":"$minCost","tick_size":"$tick","status":"$status"},"$id.d":{"altname":"$id.d","wsname":"$ownBase/$quote","base":"X$ownBase","quote":"$quote","pair_decimals":0,"lot_decimals":0}
# Of the latest 720, whatever is asked, those after `since`.
/0/public/OHLC market=pair interval=interval:1,60,1440 unit=s from=since?:1 last=720
 {"error":[],"result":{"$id":[$items],"last":1715769300}}
 [$timeSeconds,"$open","$high","$low","$close","$turnover","$volume",23]
200 UnknownMarket | EQuery:Unknown asset pair | EQuery:Unknown asset pair | {"error":["EQuery:Unknown asset pair"]}
200 UnknownMarket | EQuery:Unknown asset pair | EQuery:Unknown asset pair | {"result":{},"error":["EQuery:Unknown asset pair"]}
200 Other | EGeneral:Invalid arguments | EGeneral:Invalid arguments | {"error":["EGeneral:Invalid arguments"]}
200 Other | EService:Unavailable | EService:Unavailable | {"error":["EService:Unavailable","EGeneral:Internal error"]}
200 RateLimited | EGeneral:Too many requests | EGeneral:Too many requests | {"error":["EGeneral:Too many requests"]}
200 RateLimited | EAPI:Rate limit exceeded | EAPI:Rate limit exceeded | {"error":["EAPI:Rate limit exceeded"],"result":{}}

coinbase {base}-{quote} padded open=online
limit 10 in 1000
sends last bid ask open high low baseVolume
/time
 {"iso":"$iso","epoch":$seconds.$millis}
/products markets
 [$items]
 {"id":"$id","base_currency":"$base","quote_currency":"$quote","quote_increment":"$tick","base_increment":"$step","display_name":"$id","min_market_funds":"$minCost","margin_enabled":false,"post_only":false,"limit_only":false,"cancel_only":false,"status":"$status","status_message":"","trading_disabled":false,"fx_stablecoin":false,"auction_mode":false}
/products/*/ticker markets
 $items
 {"ask":"$ask","bid":"$bid","volume":"$baseVolume","trade_id":86326522,"price":"$last","size":"0.001","time":"$iso","rfq_volume":"9.5"}
/products/*/stats markets
 $items
 {"open":"$open","high":"$high","low":"$low","last":"$last","volume":"$baseVolume","volume_30day":"7777","rfq_volume_24hour":"1"}
/products/*/candles market= interval=granularity:60,3600,86400 unit=iso from=start to=end last=300 newest span=300
 [$items]
 [$timeSeconds,$low,$high,$open,$close,$volume]
/products/* markets
 $items
 {"id":"$id","base_currency":"$base","quote_currency":"$quote","quote_increment":"$tick","base_increment":"$step","display_name":"$id","min_market_funds":"$minCost","margin_enabled":false,"post_only":false,"limit_only":false,"cancel_only":false,"status":"$status","status_message":"","trading_disabled":false,"fx_stablecoin":false,"auction_mode":false}
404 UnknownMarket | NotFound | NotFound | {"message":"NotFound"}
400 Other | granularity too small for the requested time range | granularity too small for the requested time range | {"message":"granularity too small for the requested time range"}
429 RateLimited | Public rate limit exceeded | Public rate limit exceeded | {"message":"Public rate limit exceeded"}
200 RateLimited | Slow rate limit exceeded | Slow rate limit exceeded | {"message":"Slow rate limit exceeded"}

kucoin {base}-{quote} open=true
limit 2000 in 30000
sends last bid ask bidVolume askVolume high low baseVolume quoteVolume change
/api/v1/timestamp cost=3
 {"code":"200000","msg":"success","data":$now}
/api/v1/market/allTickers markets cost=15
 {"code":"200000","data":{"time":$now,"ticker":[$items]}}
 {"symbol":"$id","symbolName":"$id","buy":"$bid","bestBidSize":"$bidVolume","sell":"$ask","bestAskSize":"$askVolume","changeRate":"$ratio","changePrice":"$change","high":"$high","low":"$low","vol":"$baseVolume","volValue":"$quoteVolume","last":"$last","averagePrice":"1","takerFeeRate":"0.001","makerFeeRate":"0.001","takerCoefficient":"1","makerCoefficient":"1"}
/api/v1/market/stats markets=symbol cost=15
 {"code":"200000","data":$items}
 {"time":$now,"symbol":"$id","buy":"$bid","sell":"$ask","changeRate":"$ratio","changePrice":"$change","high":"$high","low":"$low","vol":"$baseVolume","volValue":"$quoteVolume","last":"$last","averagePrice":"1","takerFeeRate":"0.001","makerFeeRate":"0.001","takerCoefficient":"1","makerCoefficient":"1"}
/api/v2/symbols markets cost=4
 {"code":"200000","data":[$items]}
 {"symbol":"$id","name":"$id","baseCurrency":"$base","quoteCurrency":"$quote","feeCurrency":"$quote","market":"USDS","baseMinSize":"$minAmount","quoteMinSize":"0.1","baseMaxSize":"$maxAmount","quoteMaxSize":"$maxCost","baseIncrement":"$step","quoteIncrement":"0.000001","priceIncrement":"$tick","priceLimitRate":"0.1","minFunds":"$minCost","isMarginEnabled":true,"enableTrading":$status,"st":false}
/api/v2/symbols/* markets cost=4
 {"code":"200000","data":$items}
# The begin belongs to the range, the end does not.
/api/v1/market/candles interval=type:1min,1hour,1day unit=s from=startAt? to=endAt?:-1 last=1500 newest cost=3
 {"code":"200000","data":[$items]}
 ["$timeSeconds","$open","$close","$high","$low","$volume","$turnover"]
200 UnknownMarket | 400100 | Unsupported trading pair. | {"msg":"Unsupported trading pair.","code":"400100"}
200 UnknownMarket | 400100 | wrong | {"code":"400100","msg":"wrong","data":{"time":1,"ticker":[]}}
200 Other | 900001 | symbol not exists | {"code":"900001","msg":"symbol not exists"}
429 RateLimited | 429000 | Too Many Requests | {"code":"429000","msg":"Too Many Requests"}
200 RateLimited | 429000 | Too Many Requests | {"code":"429000","msg":"Too Many Requests"}
500 Other | 500000 | Internal Server Error | {"code":"500000","msg":"Internal Server Error","data":null}

gate {base}_{quote} open=tradable
limit 200 in 10000
sends last bid ask high low baseVolume quoteVolume
/api/v4/spot/time pool=time
 {"server_time":$now}
/api/v4/spot/tickers markets=currency_pair pool=tickers
 [$items]
 {"currency_pair":"$id","last":"$last","lowest_ask":"$ask","lowest_size":"1","highest_bid":"$bid","highest_size":"2","change_percentage":"$percent","base_volume":"$baseVolume","quote_volume":"$quoteVolume","high_24h":"$high","low_24h":"$low"}
/api/v4/spot/currency_pairs markets pool=currency_pairs
 [$items]
 {"id":"$id","base":"$base","base_name":"x","quote":"$quote","quote_name":"y","fee":"$feePercent","min_base_amount":"$minAmount","min_quote_amount":"$minCost","max_base_amount":"$maxAmount","max_quote_amount":"$maxCost","amount_precision":$amountPlaces,"precision":$places,"trade_status":"$status","sell_start":0,"buy_start":0,"delisting_time":0,"type":"normal","trade_url":"https://example.org/"}
/api/v4/spot/currency_pairs/* markets pool=currency_pairs
 $items
# Either a range or a limit.
/api/v4/spot/candlesticks market=currency_pair interval=interval:1m,1h,1d unit=s from=from to=to first=1000 span=999 ago=10000 never=limit pool=candlesticks
 [$items]
 ["$timeSeconds","$turnover","$close","$high","$low","$open","$volume","$isClosed"]
400 UnknownMarket | INVALID_CURRENCY_PAIR | Invalid currency_pair FOO_BAR | {"label":"INVALID_CURRENCY_PAIR","message":"Invalid currency_pair FOO_BAR"}
400 Other | INVALID_PARAM_VALUE | Candlestick too long ago. | {"label":"INVALID_PARAM_VALUE","message":"Candlestick too long ago."}
400 Other | INVALID_PARAM_VALUE | INVALID_PARAM_VALUE | {"label":"INVALID_PARAM_VALUE"}
429 RateLimited | TOO_MANY_REQUESTS | Request Rate Limit Exceeded | {"label":"TOO_MANY_REQUESTS","message":"Request Rate Limit Exceeded"}
200 RateLimited | TOO_FAST | slow down | {"message":"slow down","label":"TOO_FAST"}

bitget {base}{quote} open=online
limit 20 in 1000
sends last bid ask bidVolume askVolume open high low baseVolume quoteVolume
/api/v2/public/time
 {"code":"00000","msg":"success","requestTime":$now,"data":{"serverTime":"$now"}}
/api/v2/spot/market/tickers markets=symbol
 {"code":"00000","msg":"success","requestTime":$now,"data":[$items]}
 {"open":"$open","symbol":"$id","high24h":"$high","low24h":"$low","lastPr":"$last","quoteVolume":"$quoteVolume","baseVolume":"$baseVolume","usdtVolume":"1","ts":"$now","bidPr":"$bid","askPr":"$ask","bidSz":"$bidVolume","askSz":"$askVolume","openUtc":"3","changeUtc24h":"0.5","change24h":"$ratio"}
/api/v2/spot/public/symbols markets=symbol
 {"code":"00000","msg":"success","requestTime":$now,"data":[$items]}
 {"symbol":"$id","baseCoin":"$base","quoteCoin":"$quote","minTradeAmount":"$minAmount","maxTradeAmount":"$maxAmount","takerFeeRate":"$taker","makerFeeRate":"$maker","pricePrecision":"$places","quantityPrecision":"$amountPlaces","quotePrecision":"8","status":"$status","minTradeUSDT":"$minCostUsdt","buyLimitPriceRatio":"0.05","sellLimitPriceRatio":"0.05"}
# Older than the end. The archive counts back from it and knows no begin.
/api/v2/spot/market/candles interval=granularity:1min,1h,1Dutc from=startTime? to=endTime?:-1 last=limit:1000:100 reach=30,60,1440
 {"code":"00000","msg":"success","requestTime":$now,"data":[$items]}
 ["$time","$open","$high","$low","$close","$volume","$turnover","$turnover"]
/api/v2/spot/market/history-candles interval=granularity:1min,1h,1Dutc to=endTime:-1 last=limit:200:100
 {"code":"00000","msg":"success","requestTime":$now,"data":[$items]}
400 UnknownMarket | 40034 | Parameter FOOBAR does not exist | {"code":"40034","msg":"Parameter FOOBAR does not exist","requestTime":1725192127389,"data":null}
400 Other | 40020 | Parameter error | {"code":"40020","msg":"Parameter error","requestTime":1,"data":null}
200 Other | 40015 | 40015 | {"code":"40015","msg":"","requestTime":1595698564931,"data":null}
429 RateLimited | 429 | Too Many Requests | {"code":"429","msg":"Too Many Requests","requestTime":1,"data":null}
200 RateLimited | 429 | Too Many Requests | {"code":429,"msg":"Too Many Requests"}

bitstamp {base}{quote} lower open=Enabled
# The limit of ten minutes, as the share of it that falls to a tenth.
limit 1000 in 60000
sends last bid ask open high low baseVolume
# Its clock is a ticker's.
/api/v2/ticker/btcusd/
 {"timestamp":"$seconds","open":"1","high":"1","low":"1","last":"1","volume":"1"}
/api/v2/ticker/ markets
 [$items]
 {"timestamp":"$seconds","open":"1","high":"$high","low":"$low","last":"$last","volume":"$baseVolume","vwap":"1","bid":"$bid","ask":"$ask","side":"0","open_24":"$open","percent_change_24":"$percent","pair":"$base/$quote"}
/api/v2/ticker/*/ markets
 $items
/api/v2/trading-pairs-info/ markets
 [$items]
 {"base_decimals":$amountPlaces,"counter_decimals":$places,"minimum_order":"20.0 USD","name":"$base/$quote","trading":"$status","url_symbol":"$candleId"}
/api/v2/ohlc/*/ market= interval=step:60,3600,86400 unit=s to=end last=limit:1000:0
 {"data":{"pair":"X/Y","ohlc":[$items]}}
 {"timestamp":"$timeSeconds","open":"$open","high":"$high","low":"$low","close":"$close","volume":"$volume"}
404 UnknownMarket | - | - | <html>not found</html>
400 Other | 400.009 | Invalid step | {"code":"400.009","reason":"Invalid step","status":"error"}
400 RateLimited | 400.002 | Request rate limit exceeded. | {"status":"error","reason":"Request rate limit exceeded.","code":"400.002"}

cryptocom {base}_{quote} open=true
limit 100 in 1000
sends last bid ask high low baseVolume
/exchange/v1/public/get-tickers markets=instrument_name pool=tickers
 {"id":-1,"method":"public/get","code":0,"result":{"data":[$items]}}
 {"i":"$id","h":"$high","l":"$low","a":"$last","v":"$baseVolume","vv":"1","oi":"0","c":"0.01","b":"$bid","k":"$ask","t":$now}
# Contracts have the same assets.
/exchange/v1/public/get-instruments markets pool=instruments
 {"id":-1,"method":"public/get","code":0,"result":{"data":[{"symbol":"BTCUSDT-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USDT","tradable":true},$items]}}
 {"symbol":"$id","inst_type":"CCY_PAIR","display_name":"$base-$quote","base_ccy":"$base","quote_ccy":"$quote","quote_decimals":$places,"quantity_decimals":$amountPlaces,"price_tick_size":"$tick","qty_tick_size":"$step","max_leverage":"50","tradable":$status}
/exchange/v1/public/get-candlestick market=instrument_name interval=timeframe:1m,1h,1D from=start_ts? to=end_ts?:-1 last=count:300:25 pool=candlestick
 {"id":-1,"method":"public/get","code":0,"result":{"data":[$items]}}
 {"o":"$open","h":"$high","l":"$low","c":"$close","v":"$volume","t":$time}
400 UnknownMarket | 40004 | Invalid instrument_name | {"id":-1,"code":40004,"message":"Invalid instrument_name"}
400 Other | 10004 | BAD_REQUEST | {"id":-1,"code":10004,"message":"BAD_REQUEST"}
429 RateLimited | 42901 | RATE_LIMIT | {"id":-1,"code":42901,"message":"RATE_LIMIT"}

htx {base}{quote} lower open=online
limit 10 in 1000
sends last bid ask bidVolume askVolume open high low baseVolume quoteVolume
/v1/common/timestamp
 {"status":"ok","data":$now}
/market/tickers markets
 {"status":"ok","ts":$now,"data":[$items]}
 {"symbol":"$id","open":$open,"high":$high,"low":$low,"close":$last,"amount":$baseVolume,"vol":$quoteVolume,"count":7,"bid":$bid,"bidSize":$bidVolume,"ask":$ask,"askSize":$askVolume}
/market/detail/merged with=symbol markets=symbol
 {"status":"ok","ch":"x","ts":$now,"tick":$items}
 {"id":1,"version":2,"open":$open,"high":$high,"low":$low,"close":$last,"amount":$baseVolume,"vol":$quoteVolume,"count":7,"bid":[$bid,$bidVolume],"ask":[$ask,$askVolume]}
/v1/common/symbols markets
 {"status":"ok","ts":$now,"data":[$items]}
 {"base-currency":"$ownBase","quote-currency":"$ownQuote","price-precision":$places,"amount-precision":$amountPlaces,"symbol-partition":"main","symbol":"$id","state":"$status","value-precision":8,"min-order-amt":$minAmount,"max-order-amt":$maxAmount,"min-order-value":$minCost}
# The newest of all alone. Days begin in the afternoon.
/market/history/kline interval=period:1min,60min,none last=size:2000:0 newest unit=s
 {"status":"ok","ts":$now,"data":[$items]}
 {"id":$timeSeconds,"open":$open,"close":$close,"low":$low,"high":$high,"amount":$volume,"vol":$turnover,"count":3}
200 UnknownMarket | invalid-parameter | invalid symbol | {"ts":1,"status":"error","err-code":"invalid-parameter","err-msg":"invalid symbol","data":null}
200 Other | bad-request | no such path | {"status":"error","ts":1,"err-code":"bad-request","err-msg":"no such path","data":null}
200 Other | invalid-parameter | invalid size | {"status":"error","err-code":"invalid-parameter","err-msg":"invalid size","data":null}
429 RateLimited | api-limit | too many request | {"status":"error","err-code":"api-limit","err-msg":"too many request"}

mexc {base}{quote} padded open=1
limit 500 in 10000
sends last bid ask bidVolume askVolume open high low change baseVolume quoteVolume
/api/v3/time pool=time
 {"serverTime":$now}
/api/v3/ticker/24hr with=symbol markets=symbol pool=tickers
 $items
 {"symbol":"$id","priceChange":"$change","priceChangePercent":"$ratio","prevClosePrice":"1","lastPrice":"$last","bidPrice":"$bid","bidQty":"$bidVolume","askPrice":"$ask","askQty":"$askVolume","openPrice":"$open","highPrice":"$high","lowPrice":"$low","volume":"$baseVolume","quoteVolume":"$quoteVolume","openTime":1,"closeTime":$now,"count":null}
/api/v3/ticker/24hr markets=symbols pool=tickers cost=1,40,40
 [$items]
/api/v3/exchangeInfo markets=symbols pool=list cost=10
 {"timezone":"CST","serverTime":$now,"rateLimits":[],"exchangeFilters":[],"symbols":[$items]}
 {"symbol":"$id","status":"$status","baseAsset":"$base","baseAssetPrecision":$amountPlaces,"quoteAsset":"$quote","quotePrecision":$places,"quoteAssetPrecision":2,"quoteAmountPrecision":"$minCost","baseSizePrecision":"0","permissions":["SPOT"],"filters":[],"maxQuoteAmount":"2000000","makerCommission":"$maker","takerCommission":"$taker"}
/api/v3/klines interval=interval:1m,60m,1d from=startTime? to=endTime? first=limit:500:500 pool=klines
 [$items]
 [$time,"$open","$high","$low","$close","$volume",$end,"$turnover"]
400 UnknownMarket | -1121 | Invalid symbol. | {"code":-1121,"msg":"Invalid symbol."}
400 Other | -1102 | Mandatory parameter was not sent. | {"code":-1102,"msg":"Mandatory parameter was not sent."}
429 RateLimited | 429 | Too Many Requests | {"code":429,"msg":"Too Many Requests"}

upbit {quote}-{base} open=
# Each group of addresses alone.
limit 10 in 1000
sends last baseVolume quoteVolume
/v1/market/all markets pool=market
 [$items]
 {"market":"$quote-$base","korean_name":"\ube44","english_name":"X"}
# Its clock is a ticker's.
/v1/ticker with=markets=KRW-BTC pool=ticker
 [{"market":"KRW-BTC","trade_price":1,"acc_trade_price_24h":1,"acc_trade_volume_24h":1,"timestamp":$now}]
/v1/ticker with=markets markets=markets pool=ticker
 [$items]
 {"market":"$id","trade_date":"20240515","opening_price":1,"high_price":2,"low_price":1,"trade_price":$last,"prev_closing_price":1,"change":"RISE","signed_change_rate":0.5,"acc_trade_price":1,"acc_trade_price_24h":$quoteVolume,"acc_trade_volume":1,"acc_trade_volume_24h":$baseVolume,"timestamp":$now}
/v1/ticker/all markets pool=ticker
 [$items]
# So many before `to`, which is left out.
/v1/candles/* market=market interval=:minutes/1,minutes/60,days unit=iso to=to:-1 last=count:200:0 newest pool=candles
 [$items]
 {"market":"x","candle_date_time_utc":"$timeIso","candle_date_time_kst":"x","opening_price":$open,"high_price":$high,"low_price":$low,"trade_price":$close,"timestamp":$now,"candle_acc_trade_price":$turnover,"candle_acc_trade_volume":$volume,"unit":1}
404 UnknownMarket | 404 | Code not found | {"error":{"name":404,"message":"Code not found"}}
400 Other | validation_error | count | {"error":{"name":"validation_error","message":"count"}}
429 RateLimited | too_many_requests | Too many API requests. | {"error":{"message":"Too many API requests.","name":"too_many_requests"}}
"#;
