//! Binance: market data of its "Public Rest API". A pool of weights, whose use each answer tells.

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "binance",
    id: |base, quote| format!("{base}{quote}"),
    answer,
    charge,
    too_many: || Reply::status(429, r#"{"code":-1003,"msg":"Too much request weight used."}"#),
    sends: "last bid ask bidVolume askVolume open high low change baseVolume quoteVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v3/time" => Reply::json(format!(r#"{{"serverTime":{}}}"#, shop.now)),
        "/api/v3/ticker/24hr" => tickers(shop, asked),
        "/api/v3/exchangeInfo" => markets(shop, asked),
        "/api/v3/klines" => candles(shop, asked),
        _ => Reply::not_found(),
    }
}

/// Of all, or of those that are named: a name that is unknown spoils it.
fn markets(shop: &Shop, asked: &Asked) -> Reply {
    let names = asked.param("symbols").map(|text| text.replace(['[', ']', '"'], ""));
    let made = shop.each_of(&FAKE, names, |market| {
        format!(
            r#"{{"symbol":"{base}{quote}","status":"TRADING","baseAsset":"{base}","quoteAsset":"{quote}","filters":[{{"filterType":"PRICE_FILTER","minPrice":"{tick}","maxPrice":"1000000.00000000","tickSize":"{tick}"}},{{"filterType":"LOT_SIZE","minQty":"0.00100000","maxQty":"9000.00000000","stepSize":"0.00010000"}},{{"filterType":"NOTIONAL","minNotional":"5.00000000","maxNotional":"9000000.00000000"}}]}}"#,
            base = market.base, quote = market.quote, tick = padded(market.tick)
        )
    });
    let Some(made) = made else {
        return Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
    };
    Reply::json(format!(
        r#"{{"timezone":"UTC","serverTime":{},"rateLimits":[],"exchangeFilters":[],"symbols":[{made}]}}"#,
        shop.now
    ))
}

/// Of one market the object itself, of several or all an array.
fn tickers(shop: &Shop, asked: &Asked) -> Reply {
    let (one, several) = (asked.param("symbol"), asked.param("symbols"));
    let is_one = one.is_some();
    let names = several.map(|text| text.replace(['[', ']', '"'], ""));
    let made = shop.each_of(&FAKE, one.or(names), |market| {
        let day = shop.day(market);
        let change = day.last as i64 - day.open as i64;
        format!(
            r#"{{"symbol":"{}{}","priceChange":"{}","weightedAvgPrice":"1","prevClosePrice":"1","lastPrice":"{}","lastQty":"0.1","bidPrice":"{}","bidQty":"{}","askPrice":"{}","askQty":"{}","openPrice":"{}","highPrice":"{}","lowPrice":"{}","volume":"{}","quoteVolume":"{}","openTime":{},"closeTime":{},"firstId":1,"lastId":2,"count":2}}"#,
            market.base, market.quote, signed(change), padded(day.last), padded(day.bid),
            padded(day.bid_size), padded(day.ask), padded(day.ask_size), padded(day.open),
            padded(day.high), padded(day.low), padded(day.base_volume),
            padded(day.quote_volume), shop.now - DAY_MS, shop.now
        )
    });
    match made {
        Some(ticker) if is_one => Reply::json(ticker),
        Some(tickers) => Reply::json(format!("[{tickers}]")),
        None => Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#),
    }
}

/// What a request for tickers costs: one market, up to 20, up to 100, or more.
pub fn ticker_units(asked: &Asked, [few, many, all]: [u32; 3]) -> u32 {
    match (asked.param("symbol"), asked.param("symbols")) {
        (Some(_), _) => few,
        (_, Some(ids)) if ids.split(',').count() <= 20 => few,
        (_, Some(ids)) if ids.split(',').count() <= 100 => many,
        _ => all,
    }
}

/// Oldest first, cut from the begin, both ends included.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
    };
    let interval = match asked.param("interval").as_deref() {
        Some("1m") => MINUTE_MS,
        Some("1h") => HOUR_MS,
        _ => DAY_MS,
    };
    let from = number(asked, "startTime").unwrap_or(0);
    let to = number(asked, "endTime").unwrap_or(shop.now);
    let mut rows = shop.rows(market, interval, from, to);
    rows.truncate(1000);
    Reply::json(array(&rows, |row| {
        format!(
            r#"[{},"{}","{}","{}","{}","{}",{},"{}",1,"2","3","0"]"#,
            row.open_ms,
            padded(row.open),
            padded(row.high),
            padded(row.low),
            padded(row.close),
            padded(row.volume),
            row.open_ms + interval - 1,
            padded(row.turnover)
        )
    }))
}

fn charge(asked: &Asked) -> Charge {
    let units = match asked.path() {
        "/api/v3/ticker/24hr" => ticker_units(asked, [2, 40, 80]),
        "/api/v3/exchangeInfo" => 20,
        "/api/v3/klines" => 2,
        _ => 1,
    };
    Charge { pool: "weight", units, most: 6000, span_ms: 60_000 }
}
