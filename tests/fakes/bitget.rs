//! Bitget: the spot part of its "API v2".

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "bitget",
    id: |base, quote| format!("{base}{quote}"),
    answer,
    charge: |_| Charge { pool: "address", units: 1, most: 20, span_ms: 1_000 },
    too_many: || Reply::status(429, error("429", "Too Many Requests")),
    sends: ALL_BUT_CHANGE,
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let unknown = || Reply::status(400, error("40034", "Parameter does not exist"));
    match asked.path() {
        "/api/v2/public/time" => good(shop, &format!(r#"{{"serverTime":"{}"}}"#, shop.now)),
        "/api/v2/spot/market/tickers" => shop.each_of(&FAKE, asked.param("symbol"), |market| {
            let day = shop.day(market);
            let ratio = (day.last as i64 - day.open as i64) * 100_000 / day.open as i64 * 1_000;
            format!(
                r#"{{"open":"{}","symbol":"{}","high24h":"{}","low24h":"{}","lastPr":"{}","quoteVolume":"{quote}","baseVolume":"{}","usdtVolume":"{quote}","ts":"{}","bidPr":"{}","askPr":"{}","bidSz":"{}","askSz":"{}","openUtc":"3","changeUtc24h":"0.5","change24h":"{}"}}"#,
                plain(day.open), market.id(), plain(day.high), plain(day.low), plain(day.last),
                plain(day.base_volume), shop.now, plain(day.bid), plain(day.ask),
                plain(day.bid_size), plain(day.ask_size), signed(ratio),
                quote = plain(day.quote_volume)
            )
        }).map_or_else(unknown, |items| good(shop, &format!("[{items}]"))),
        "/api/v2/spot/public/symbols" => shop.each_of(&FAKE, asked.param("symbol"), |market| {
            format!(
                r#"{{"symbol":"{}","baseCoin":"{}","quoteCoin":"{}","minTradeAmount":"0.001","maxTradeAmount":"10000000000","takerFeeRate":"0.002","makerFeeRate":"0.002","pricePrecision":"{}","quantityPrecision":"4","quotePrecision":"8","status":"online","minTradeUSDT":"5","buyLimitPriceRatio":"0.05","sellLimitPriceRatio":"0.05"}}"#,
                market.id(), market.base, market.quote, places(market.tick)
            )
        }).map_or_else(unknown, |items| good(shop, &format!("[{items}]"))),
        "/api/v2/spot/market/candles" => candles(shop, asked, true),
        "/api/v2/spot/market/history-candles" => candles(shop, asked, false),
        _ => Reply::status(404, error("40404", "Request URL NOT FOUND")),
    }
}

/// Oldest first, older than the end. The archive counts back from it and knows no begin.
fn candles(shop: &Shop, asked: &Asked, at_hand: bool) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::status(400, error("40034", "Parameter does not exist"));
    };
    let (interval, days) = match asked.param("granularity").as_deref() {
        Some("1min") => (MINUTE_MS, 30),
        Some("1h") => (HOUR_MS, 60),
        Some("1Dutc") => (DAY_MS, 1440),
        _ => return Reply::status(400, error("40020", "Parameter granularity error")),
    };
    let most = if at_hand { 1000 } else { 200 };
    let limit = number(asked, "limit").unwrap_or(100);
    if !(1..=most).contains(&limit) {
        return Reply::status(400, error("40020", "Parameter limit error"));
    }
    let Some(end) = number(asked, "endTime").or(at_hand.then_some(shop.now)) else {
        return Reply::status(400, error("40019", "Parameter endTime cannot be empty"));
    };
    let from = match at_hand {
        true => (shop.now - days * DAY_MS).max(number(asked, "startTime").unwrap_or(0)),
        false => 0,
    };
    let rows = shop.newest(market, interval, (from, end - 1), limit as usize);
    good(
        shop,
        &array(&rows, |row| {
            format!(
                r#"["{}","{}","{}","{}","{}","{}","{turnover}","{turnover}"]"#,
                row.open_ms,
                plain(row.open),
                plain(row.high),
                plain(row.low),
                plain(row.close),
                plain(row.volume),
                turnover = plain(row.turnover)
            )
        }),
    )
}

fn good(shop: &Shop, data: &str) -> Reply {
    let now = shop.now;
    Reply::json(format!(r#"{{"code":"00000","msg":"success","requestTime":{now},"data":{data}}}"#))
}

fn error(code: &str, message: &str) -> String {
    format!(r#"{{"code":"{code}","msg":"{message}","requestTime":1,"data":null}}"#)
}
