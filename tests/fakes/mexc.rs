//! MEXC: market data of "Spot V3", much like Binance's.

use crate::fakes::binance;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "mexc",
    answer,
    charge,
    too_many: || Reply::status(429, r#"{"code":429,"msg":"Too Many Requests"}"#),
    ..binance::FAKE
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v3/exchangeInfo" => {
            let made = shop.each_of(&FAKE, asked.param("symbols"), |market| format!(
                r#"{{"symbol":"{base}{quote}","status":"1","baseAsset":"{base}","baseAssetPrecision":4,"quoteAsset":"{quote}","quotePrecision":{},"quoteAssetPrecision":2,"quoteAmountPrecision":"5","baseSizePrecision":"0","permissions":["SPOT"],"filters":[],"maxQuoteAmount":"2000000","makerCommission":"0","takerCommission":"0.0005"}}"#,
                places(market.tick), base = market.base, quote = market.quote
            ));
            let Some(made) = made else {
                return Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
            };
            Reply::json(format!(
                r#"{{"timezone":"CST","serverTime":{},"rateLimits":[],"exchangeFilters":[],"symbols":[{made}]}}"#,
                shop.now
            ))
        }
        "/api/v3/klines" => candles(shop, asked),
        _ => (binance::FAKE.answer)(shop, asked),
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
        Some("60m") => HOUR_MS,
        Some("1d") => DAY_MS,
        _ => return Reply::status(400, r#"{"code":-1121,"msg":"Invalid interval."}"#),
    };
    let from = number(asked, "startTime").unwrap_or(0);
    let to = number(asked, "endTime").unwrap_or(shop.now);
    let mut rows = shop.rows(market, interval, from, to);
    rows.truncate(500);
    Reply::json(array(&rows, |row| {
        format!(
            r#"[{},"{}","{}","{}","{}","{}",{},"{}"]"#,
            row.open_ms,
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            plain(row.volume),
            row.open_ms + interval,
            plain(row.turnover)
        )
    }))
}

/// Each address alone, by weights.
fn charge(asked: &Asked) -> Charge {
    let (pool, units) = match asked.path() {
        "/api/v3/ticker/24hr" => ("tickers", binance::ticker_units(asked, [1, 40, 40])),
        "/api/v3/exchangeInfo" => ("list", 10),
        "/api/v3/klines" => ("klines", 1),
        _ => ("time", 1),
    };
    Charge { pool, units, most: 500, span_ms: 10_000 }
}
