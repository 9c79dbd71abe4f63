//! Bitstamp: public data of its "HTTP API v2".

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "bitstamp",
    id: |base, quote| format!("{base}{quote}").to_lowercase(),
    answer,
    charge,
    too_many: || {
        Reply::status(
            400,
            r#"{"status":"error","reason":"Request rate limit exceeded.","code":"400.002"}"#,
        )
    },
    sends: "last bid ask open high low baseVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let seconds = shop.now / 1000;
    let path = asked.path();
    match path {
        "/api/v2/ticker/" => tickers(shop, None),
        "/api/v2/ticker/btcusd/" => Reply::json(format!(
            r#"{{"timestamp":"{seconds}","open":"1","high":"1","low":"1","last":"1","volume":"1"}}"#
        )),
        "/api/v2/trading-pairs-info/" => Reply::json(format!("[{}]", shop.each(|market| {
            format!(
                r#"{{"base_decimals":4,"counter_decimals":{},"minimum_order":"20.0 {quote}","name":"{base}/{quote}","trading":"Enabled","url_symbol":"{}"}}"#,
                places(market.tick), (FAKE.id)(&market.base, market.quote),
                base = market.base, quote = market.quote
            )
        }))),
        _ if path.starts_with("/api/v2/ticker/") => {
            let id = path.strip_prefix("/api/v2/ticker/").and_then(|id| id.strip_suffix('/'));
            tickers(shop, id.map(str::to_string))
        }
        _ => match path.strip_prefix("/api/v2/ohlc/").and_then(|id| id.strip_suffix('/')) {
            Some(id) => candles(shop, asked, id),
            None => Reply::not_found(),
        },
    }
}

/// An array of all markets, or the object of one, without its name.
fn tickers(shop: &Shop, id: Option<String>) -> Reply {
    let is_one = id.is_some();
    let made = shop.each_of(&FAKE, id, |market| {
        let day = shop.day(market);
        let change = day.last as i64 - day.open as i64;
        format!(
            r#"{{"timestamp":"{}","open":"1","high":"{}","low":"{}","last":"{}","volume":"{}","vwap":"1","bid":"{}","ask":"{}","side":"0","open_24":"{}","percent_change_24":"{}","pair":"{}/{}"}}"#, shop.now / 1000,
            plain(day.high), plain(day.low), plain(day.last), plain(day.base_volume),
            plain(day.bid), plain(day.ask), plain(day.open),
            signed(change * 10_000 / day.open as i64 * 1_000_000), market.base, market.quote
        )
    });
    match made {
        Some(ticker) if is_one => Reply::json(ticker),
        Some(tickers) => Reply::json(format!("[{tickers}]")),
        None => Reply::status(404, "<html>not found</html>"),
    }
}

/// Oldest first, so many up to the end, which belongs to the range.
fn candles(shop: &Shop, asked: &Asked, id: &str) -> Reply {
    let Some(market) = shop.find(&FAKE, id) else {
        return Reply::status(404, "<html>not found</html>");
    };
    let interval = match number(asked, "step") {
        Some(60) => MINUTE_MS,
        Some(3600) => HOUR_MS,
        Some(86_400) => DAY_MS,
        _ => {
            return Reply::status(
                400,
                r#"{"code":"400.009","reason":"Invalid step","status":"error"}"#,
            );
        }
    };
    let (limit, end) = (number(asked, "limit"), number(asked, "end"));
    let (Some(limit @ 1..=1000), Some(end)) = (limit, end) else {
        return Reply::status(
            400,
            r#"{"code":"400.009","reason":"Invalid limit","status":"error"}"#,
        );
    };
    let rows = shop.newest(market, interval, (0, end * 1000), limit as usize);
    let made = array(&rows, |row| {
        format!(
            r#"{{"timestamp":"{}","open":"{}","high":"{}","low":"{}","close":"{}","volume":"{}"}}"#,
            row.open_ms / 1000,
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            plain(row.volume)
        )
    });
    Reply::json(format!(
        r#"{{"data":{{"pair":"{}/{}","ohlc":{made}}}}}"#,
        market.base, market.quote
    ))
}

/// The limit of ten minutes, as the share of it that falls to a tenth.
fn charge(_: &Asked) -> Charge {
    Charge { pool: "requests", units: 1, most: 1000, span_ms: 60_000 }
}
