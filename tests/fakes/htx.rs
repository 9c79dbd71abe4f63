//! HTX: market data of its "Spot API". Failures come with status 200.

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "htx",
    id: |base, quote| format!("{base}{quote}").to_lowercase(),
    answer,
    charge,
    too_many: || {
        Reply::status(
            429,
            r#"{"status":"error","err-code":"api-limit","err-msg":"too many request"}"#,
        )
    },
    sends: ALL_BUT_CHANGE,
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let now = shop.now;
    match asked.path() {
        "/v1/common/timestamp" => Reply::json(format!(r#"{{"status":"ok","data":{now}}}"#)),
        "/market/tickers" => Reply::json(format!(
            r#"{{"status":"ok","ts":{now},"data":[{}]}}"#,
            shop.each(|market| {
                let day = shop.day(market);
                format!(
                    r#"{{"symbol":"{}","open":{},"high":{},"low":{},"close":{},"amount":{},"vol":{},"count":7,"bid":{},"bidSize":{},"ask":{},"askSize":{}}}"#,
                    (FAKE.id)(&market.base, market.quote), plain(day.open), plain(day.high),
                    plain(day.low), plain(day.last), plain(day.base_volume),
                    plain(day.quote_volume), plain(day.bid), plain(day.bid_size), plain(day.ask),
                    plain(day.ask_size)
                )
            })
        )),
        "/market/detail/merged" => {
            let made = shop.each_of(&FAKE, asked.param("symbol"), |market| {
                let day = shop.day(market);
                format!(
                    r#"{{"id":1,"version":2,"open":{},"high":{},"low":{},"close":{},"amount":{},"vol":{},"count":7,"bid":[{},{}],"ask":[{},{}]}}"#,
                    plain(day.open), plain(day.high), plain(day.low), plain(day.last),
                    plain(day.base_volume), plain(day.quote_volume), plain(day.bid),
                    plain(day.bid_size), plain(day.ask), plain(day.ask_size)
                )
            });
            made.map_or_else(
                || error("invalid-parameter", "invalid symbol"),
                |tick| Reply::json(format!(r#"{{"status":"ok","ch":"x","ts":{now},"tick":{tick}}}"#)),
            )
        }
        "/v1/common/symbols" => Reply::json(format!(
            r#"{{"status":"ok","data":[{}]}}"#,
            shop.each(|market| {
                format!(
                    r#"{{"base-currency":"{}","quote-currency":"{}","price-precision":{},"amount-precision":4,"symbol-partition":"main","symbol":"{}","state":"online","value-precision":8,"min-order-amt":0.001,"max-order-amt":1000,"min-order-value":5}}"#,
                    market.base.to_lowercase(), market.quote.to_lowercase(), places(market.tick),
                    (FAKE.id)(&market.base, market.quote)
                )
            })
        )),
        "/market/history/kline" => candles(shop, asked),
        _ => error("bad-request", "no such path"),
    }
}

/// Newest first, the newest of all alone; days begin in the afternoon.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("symbol").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return error("invalid-parameter", "invalid symbol");
    };
    let interval = match asked.param("period").as_deref() {
        Some("1min") => MINUTE_MS,
        Some("60min") => HOUR_MS,
        _ => return error("invalid-parameter", "invalid period"),
    };
    let Some(size @ 1..=2000) = number(asked, "size") else {
        return error("invalid-parameter", "invalid size");
    };
    let mut rows = shop.newest(market, interval, (0, shop.now), size as usize);
    rows.reverse();
    let made = array(&rows, |row| {
        format!(
            r#"{{"id":{},"open":{},"close":{},"low":{},"high":{},"amount":{},"vol":{},"count":3}}"#,
            row.open_ms / 1000,
            plain(row.open),
            plain(row.close),
            plain(row.low),
            plain(row.high),
            plain(row.volume),
            plain(row.turnover)
        )
    });
    Reply::json(format!(
        r#"{{"ch":"market.{id}.kline","status":"ok","ts":{},"data":{made}}}"#,
        shop.now
    ))
}

fn error(code: &str, message: &str) -> Reply {
    Reply::json(format!(
        r#"{{"status":"error","ts":1,"err-code":"{code}","err-msg":"{message}","data":null}}"#
    ))
}

fn charge(_: &Asked) -> Charge {
    Charge { pool: "requests", units: 1, most: 10, span_ms: 1_000 }
}
