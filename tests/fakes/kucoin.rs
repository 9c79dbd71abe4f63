//! KuCoin: market data of its "Classic API". A pool of weights, whose rest each answer tells.

use crate::fakes::shop::*;
use crate::support::generated::GeneratedMarket;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "kucoin",
    id: |base, quote| format!("{base}-{quote}"),
    answer,
    charge,
    too_many: || Reply::status(429, r#"{"code":"429000","msg":"Too Many Requests"}"#),
    sends: "last bid ask bidVolume askVolume high low baseVolume quoteVolume change",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v1/timestamp" => {
            Reply::json(format!(r#"{{"code":"200000","msg":"success","data":{}}}"#, shop.now))
        }
        "/api/v1/market/allTickers" => {
            let items = shop.each(|market| {
                let (day, id) = (shop.day(market), (FAKE.id)(&market.base, market.quote));
                let change = day.last as i64 - day.open as i64;
                let rate = change * 10_000 / day.open as i64 * 10_000;
                format!(
                    r#"{{"symbol":"{id}","symbolName":"{id}","buy":"{}","bestBidSize":"{}","sell":"{}","bestAskSize":"{}","changeRate":"{}","changePrice":"{}","high":"{}","low":"{}","vol":"{}","volValue":"{}","last":"{}","averagePrice":"1","takerFeeRate":"0.001","makerFeeRate":"0.001","takerCoefficient":"1","makerCoefficient":"1"}}"#,
                    plain(day.bid), plain(day.bid_size), plain(day.ask), plain(day.ask_size),
                    signed(rate), signed(change), plain(day.high), plain(day.low),
                    plain(day.base_volume), plain(day.quote_volume), plain(day.last)
                )
            });
            let now = shop.now;
            good(&format!(r#"{{"time":{now},"ticker":[{items}]}}"#))
        }
        "/api/v2/symbols" => good(&format!("[{}]", shop.each(symbol))),
        "/api/v1/market/candles" => candles(shop, asked),
        path => match path.strip_prefix("/api/v2/symbols/").map(|id| shop.find(&FAKE, id)) {
            Some(Some(market)) => good(&symbol(market)),
            Some(None) => Reply::json(r#"{"code":"900001","msg":"symbol not exists"}"#),
            None => Reply::status(404, r#"{"code":"404","msg":"Url Not Found"}"#),
        },
    }
}

fn symbol(market: &GeneratedMarket) -> String {
    format!(
        r#"{{"symbol":"{base}-{quote}","name":"{base}-{quote}","baseCurrency":"{base}","quoteCurrency":"{quote}","feeCurrency":"{quote}","market":"USDS","baseMinSize":"0.001","quoteMinSize":"0.1","baseMaxSize":"10000000000","quoteMaxSize":"99999999","baseIncrement":"0.0001","quoteIncrement":"0.000001","priceIncrement":"{}","priceLimitRate":"0.1","minFunds":"5","isMarginEnabled":true,"enableTrading":true,"st":false}}"#,
        plain(market.tick),
        base = market.base,
        quote = market.quote
    )
}

/// Newest first, the close before high and low; the begin belongs to the range, the end does not.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::json(r#"{"code":"400100","msg":"This pair is not provided at present"}"#);
    };
    let interval = match asked.param("type").as_deref() {
        Some("1min") => MINUTE_MS,
        Some("1hour") => HOUR_MS,
        Some("1day") => DAY_MS,
        _ => return Reply::json(r#"{"code":"400100","msg":"Incorrect candlestick type"}"#),
    };
    let at = |name: &str| number(asked, name).filter(|at| *at != 0).map(|at| at * 1000);
    let range = (at("startAt").unwrap_or(0), at("endAt").map_or(shop.now, |end| end - 1));
    let mut rows = shop.newest(market, interval, range, 1500);
    rows.reverse();
    good(&array(&rows, |row| {
        format!(
            r#"["{}","{}","{}","{}","{}","{}","{}"]"#,
            row.open_ms / 1000,
            plain(row.open),
            plain(row.close),
            plain(row.high),
            plain(row.low),
            plain(row.volume),
            plain(row.turnover)
        )
    }))
}

fn good(data: &str) -> Reply {
    Reply::json(format!(r#"{{"code":"200000","data":{data}}}"#))
}

fn charge(asked: &Asked) -> Charge {
    let units = match asked.path() {
        "/api/v1/market/allTickers" | "/api/v1/market/stats" => 15,
        path if path.starts_with("/api/v2/symbols") => 4,
        _ => 3,
    };
    Charge { pool: "public", units, most: 2000, span_ms: 30_000 }
}
