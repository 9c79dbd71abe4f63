//! Binance: market data of its "Public Rest API". A pool of weights, whose use each answer tells.

use crate::shop::*;
use crate::support::*;

pub const HOUSE: House = House {
    name: "binance",
    id: |base, quote| format!("{base}{quote}"),
    answer,
    charge,
    too_many: || {
        Reply::status(
            429,
            r#"{"code":-1003,"msg":"Too much request weight used."}"#,
        )
    },
    sends: &[],
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v3/time" => Reply::json(format!(r#"{{"serverTime":{}}}"#, shop.now)),
        "/api/v3/ticker/24hr" => Reply::json(shop.generated.tickers(shop.now)),
        "/api/v3/exchangeInfo" => Reply::json(shop.generated.exchange_info(shop.now)),
        "/api/v3/klines" => candles(shop, asked),
        _ => Reply::not_found(),
    }
}

/// Oldest first, cut from the begin, both ends included.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&HOUSE, &id) else {
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
        "/api/v3/ticker/24hr" => 80,
        "/api/v3/exchangeInfo" => 20,
        "/api/v3/klines" => 2,
        _ => 1,
    };
    Charge {
        pool: "weight",
        units,
        most: 6000,
        span_ms: 60_000,
    }
}
