//! Upbit: its "Quotation API". The quote asset comes first in a market's name.

use crate::fakes::shop::*;
use crate::support::*;
use marketd::time::UnixMs;

pub const FAKE: Fake = Fake {
    name: "upbit",
    id: |base, quote| format!("{quote}-{base}"),
    answer,
    charge,
    too_many: || {
        Reply::status(
            429,
            r#"{"error":{"name":"too_many_requests","message":"Too many API requests."}}"#,
        )
    },
    sends: "last baseVolume quoteVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let ticker = |id: &str, (last, base, quote): (u64, u64, u64)| {
        format!(
            r#"{{"market":"{id}","trade_date":"20240515","opening_price":1,"high_price":2,"low_price":1,"trade_price":{},"prev_closing_price":1,"change":"RISE","signed_change_rate":0.5,"acc_trade_price":1,"acc_trade_price_24h":{},"acc_trade_volume":1,"acc_trade_volume_24h":{},"timestamp":{}}}"#,
            plain(last),
            plain(quote),
            plain(base),
            shop.now
        )
    };
    match asked.path() {
        "/v1/market/all" => Reply::json(format!(
            "[{}]",
            shop.each(|market| format!(
                r#"{{"market":"{}-{}","korean_name":"\ube44","english_name":"X"}}"#,
                market.quote, market.base
            ))
        )),
        "/v1/ticker" if asked.param("markets").as_deref() == Some("KRW-BTC") => {
            Reply::json(format!("[{}]", ticker("KRW-BTC", (1, 1, 1))))
        }
        "/v1/ticker/all" | "/v1/ticker" => {
            let made = shop.each_of(&FAKE, asked.param("markets"), |market| {
                let day = shop.day(market);
                ticker(
                    &(FAKE.id)(&market.base, market.quote),
                    (day.last, day.base_volume, day.quote_volume),
                )
            });
            let unknown = r#"{"error":{"name":404,"message":"Code not found"}}"#;
            made.map_or_else(
                || Reply::status(404, unknown),
                |items| Reply::json(format!("[{items}]")),
            )
        }
        "/v1/candles/minutes/1" => candles(shop, asked, MINUTE_MS),
        "/v1/candles/minutes/60" => candles(shop, asked, HOUR_MS),
        "/v1/candles/days" => candles(shop, asked, DAY_MS),
        _ => Reply::not_found(),
    }
}

/// Newest first, so many before `to`, which is left out.
fn candles(shop: &Shop, asked: &Asked, interval: i64) -> Reply {
    let id = asked.param("market").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::status(404, r#"{"error":{"name":404,"message":"Code not found"}}"#);
    };
    let Some(count @ 1..=200) = number(asked, "count") else {
        return Reply::status(400, r#"{"error":{"name":"validation_error","message":"count"}}"#);
    };
    let to = asked.param("to").unwrap_or_default();
    let Some(to) = millis(&to) else {
        return Reply::status(400, r#"{"error":{"name":"validation_error","message":"to"}}"#);
    };
    let mut rows = shop.newest(market, interval, (0, to - 1), count as usize);
    rows.reverse();
    Reply::json(array(&rows, |row| {
        let opens = UnixMs(row.open_ms).to_string();
        format!(
            r#"{{"market":"{id}","candle_date_time_utc":"{}","candle_date_time_kst":"x","opening_price":{},"high_price":{},"low_price":{},"trade_price":{},"timestamp":{},"candle_acc_trade_price":{},"candle_acc_trade_volume":{},"unit":1}}"#,
            opens.trim_end_matches(".000Z"),
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            shop.now,
            plain(row.turnover),
            plain(row.volume)
        )
    }))
}

/// A date like `2024-05-15T10:37:05Z`, by trying the days since 2017.
fn millis(text: &str) -> Option<i64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let of = |text: &str| text.parse::<i64>().ok();
    let mut parts = clock.split(':').map(of);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let days = (0..40_000).find(|day| UnixMs(day * DAY_MS).to_string().starts_with(date))?;
    Some(days * DAY_MS + (hour * 3600 + minute * 60 + second) * 1000)
}

/// Each group of addresses alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        path if path.starts_with("/v1/candles") => "candles",
        path if path.starts_with("/v1/ticker") => "ticker",
        _ => "market",
    };
    Charge { pool, units: 1, most: 10, span_ms: 1_000 }
}
