//! Crypto.com: public market data of "Exchange API v1".

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "cryptocom",
    id: |base, quote| format!("{base}_{quote}"),
    answer,
    charge,
    too_many: || Reply::status(429, r#"{"id":-1,"code":42901,"message":"RATE_LIMIT"}"#),
    sends: "last bid ask high low baseVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let unknown =
        || Reply::status(400, r#"{"id":-1,"code":40004,"message":"Invalid instrument_name"}"#);
    match asked.path() {
        "/exchange/v1/public/get-tickers" => shop.each_of(&FAKE, asked.param("instrument_name"), |market| {
            let day = shop.day(market);
            format!(
                r#"{{"i":"{}_{}","h":"{}","l":"{}","a":"{}","v":"{}","vv":"1","oi":"0","c":"0.01","b":"{}","k":"{}","t":{}}}"#,
                market.base, market.quote, plain(day.high), plain(day.low), plain(day.last),
                plain(day.base_volume), plain(day.bid), plain(day.ask), shop.now
            )
        }).map_or_else(unknown, |items| good(&items)),
        "/exchange/v1/public/get-instruments" => {
            let spot = shop.each(|market| {
                format!(
                    r#"{{"symbol":"{base}_{quote}","inst_type":"CCY_PAIR","display_name":"{base}/{quote}","base_ccy":"{base}","quote_ccy":"{quote}","quote_decimals":{},"quantity_decimals":4,"price_tick_size":"{}","qty_tick_size":"0.0001","max_leverage":"50","tradable":true}}"#,
                    places(market.tick), plain(market.tick), base = market.base, quote = market.quote
                )
            });
            // Contracts have the same assets.
            let perpetual = r#"{"symbol":"BTCUSDT-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USDT","tradable":true}"#;
            good(&format!("{perpetual},{spot}"))
        }
        "/exchange/v1/public/get-candlestick" => candles(shop, asked),
        _ => Reply::status(404, r#"{"id":-1,"code":10004,"message":"BAD_REQUEST"}"#),
    }
}

/// Oldest first, the newest of the range, whose end is left out.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("instrument_name").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::status(400, r#"{"id":-1,"code":40004,"message":"Invalid instrument_name"}"#);
    };
    let interval = match asked.param("timeframe").as_deref() {
        Some("1m") => MINUTE_MS,
        Some("1h") => HOUR_MS,
        Some("1D") => DAY_MS,
        _ => {
            return Reply::status(400, r#"{"id":-1,"code":40004,"message":"Invalid timeframe"}"#);
        }
    };
    let count = number(asked, "count").unwrap_or(25).clamp(1, 300);
    let from = number(asked, "start_ts").unwrap_or(0);
    let to = number(asked, "end_ts").map_or(shop.now, |end| end - 1);
    let rows = shop.newest(market, interval, (from, to), count as usize);
    let made = array(&rows, |row| {
        format!(
            r#"{{"o":"{}","h":"{}","l":"{}","c":"{}","v":"{}","t":{}}}"#,
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            plain(row.volume),
            row.open_ms
        )
    });
    let inner = made.trim_start_matches('[').trim_end_matches(']');
    good(inner)
}

fn good(items: &str) -> Reply {
    Reply::json(format!(
        r#"{{"id":-1,"method":"public/get","code":0,"result":{{"data":[{items}]}}}}"#
    ))
}

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        "/exchange/v1/public/get-tickers" => "tickers",
        "/exchange/v1/public/get-candlestick" => "candlestick",
        _ => "instruments",
    };
    Charge { pool, units: 1, most: 100, span_ms: 1_000 }
}
