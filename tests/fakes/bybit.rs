//! Bybit: market data of "API v5". Failures come with status 200.

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "bybit",
    id: |base, quote| format!("{base}{quote}"),
    answer,
    charge: |_| Charge { pool: "address", units: 1, most: 600, span_ms: 5_000 },
    too_many: || Reply::json(body(10006, "Too many visits!", "{}", 1)),
    sends: ALL_BUT_CHANGE,
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let spot = asked.param("category").as_deref() == Some("spot");
    let list = |items: &str| {
        let result = format!(r#"{{"category":"spot","list":[{items}]}}"#);
        Reply::json(body(0, "OK", &result, shop.now))
    };
    let unknown = || Reply::json(body(10001, "Not supported symbols", "{}", shop.now));
    match asked.path() {
        "/v5/market/time" => {
            let seconds = shop.now / 1000;
            let result = format!(r#"{{"timeSecond":"{seconds}","timeNano":"{seconds}000000000"}}"#);
            Reply::json(body(0, "OK", &result, shop.now))
        }
        "/v5/market/tickers" if spot => shop.each_of(&FAKE, asked.param("symbol"), |market| {
            let day = shop.day(market);
            let ratio = (day.last as i64 - day.open as i64) * 10_000 / day.open as i64;
            format!(
                r#"{{"symbol":"{}","bid1Price":"{}","bid1Size":"{}","ask1Price":"{}","ask1Size":"{}","lastPrice":"{}","prevPrice24h":"{}","price24hPcnt":"{}","highPrice24h":"{}","lowPrice24h":"{}","turnover24h":"{}","volume24h":"{}","usdIndexPrice":"1"}}"#,
                market.id(), plain(day.bid), plain(day.bid_size), plain(day.ask),
                plain(day.ask_size), plain(day.last), plain(day.open), signed(ratio * 10_000),
                plain(day.high), plain(day.low), plain(day.quote_volume), plain(day.base_volume)
            )
        }).map_or_else(unknown, |items| list(&items)),
        "/v5/market/instruments-info" if spot => list(&shop.each_of(&FAKE, asked.param("symbol"), |market| {
            format!(
                r#"{{"symbol":"{}","baseCoin":"{}","quoteCoin":"{}","innovation":"0","status":"Trading","marginTrading":"both","lotSizeFilter":{{"basePrecision":"0.0001","quotePrecision":"0.00000001","minOrderQty":"0.001","maxOrderQty":"71.73956243","minOrderAmt":"5","maxOrderAmt":"2000000"}},"priceFilter":{{"tickSize":"{}"}}}}"#,
                market.id(), market.base, market.quote, plain(market.tick)
            )
            // A name that is unknown is left out.
        }).unwrap_or_default()),
        "/v5/market/kline" if spot => candles(shop, asked),
        _ => Reply::json(body(10001, "Request parameter error.", "{}", shop.now)),
    }
}

/// Newest first; both ends of the range included, and the newest kept where it is too long.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::json(body(10001, "Not supported symbols", "{}", shop.now));
    };
    let interval = match asked.param("interval").as_deref() {
        Some("1") => MINUTE_MS,
        Some("60") => HOUR_MS,
        Some("D") => DAY_MS,
        _ => return Reply::json(body(10001, "Invalid period!", "{}", shop.now)),
    };
    let limit = number(asked, "limit").unwrap_or(200).clamp(1, 1000) as usize;
    let range = (number(asked, "start").unwrap_or(0), number(asked, "end").unwrap_or(shop.now));
    let mut rows = shop.newest(market, interval, range, limit);
    rows.reverse();
    let rows = array(&rows, |row| {
        format!(
            r#"["{}","{}","{}","{}","{}","{}","{}"]"#,
            row.open_ms,
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            plain(row.volume),
            plain(row.turnover)
        )
    });
    let result = format!(r#"{{"category":"spot","symbol":"{id}","list":{rows}}}"#);
    Reply::json(body(0, "OK", &result, shop.now))
}

fn body(code: u32, message: &str, result: &str, now: i64) -> String {
    format!(
        r#"{{"retCode":{code},"retMsg":"{message}","result":{result},"retExtInfo":{{}},"time":{now}}}"#
    )
}
