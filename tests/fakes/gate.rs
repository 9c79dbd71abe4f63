//! Gate: the spot part of its "API v4".

use crate::fakes::shop::*;
use crate::support::generated::GeneratedMarket;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "gate",
    id: |base, quote| format!("{base}_{quote}"),
    answer,
    charge,
    too_many: || {
        Reply::status(
            429,
            r#"{"label":"TOO_MANY_REQUESTS","message":"Request Rate limit Exceeded"}"#,
        )
    },
    sends: "last bid ask high low baseVolume quoteVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v4/spot/time" => Reply::json(format!(r#"{{"server_time":{}}}"#, shop.now)),
        "/api/v4/spot/tickers" => {
            let made = shop.each_of(&FAKE, asked.param("currency_pair"), |market| {
                let day = shop.day(market);
                let change = day.last as i64 - day.open as i64;
                format!(
                    r#"{{"currency_pair":"{}_{}","last":"{}","lowest_ask":"{}","lowest_size":"1","highest_bid":"{}","highest_size":"2","change_percentage":"{}","base_volume":"{}","quote_volume":"{}","high_24h":"{}","low_24h":"{}"}}"#,
                    market.base, market.quote, plain(day.last), plain(day.ask), plain(day.bid),
                    signed(change * 10_000 / day.open as i64 * 1_000_000),
                    plain(day.base_volume), plain(day.quote_volume), plain(day.high),
                    plain(day.low)
                )
            });
            match made {
                Some(items) => Reply::json(format!("[{items}]")),
                None => refused("INVALID_CURRENCY_PAIR", "Invalid currency pair"),
            }
        }
        "/api/v4/spot/currency_pairs" => Reply::json(format!("[{}]", shop.each(pair))),
        "/api/v4/spot/candlesticks" => candles(shop, asked),
        path => match path.strip_prefix("/api/v4/spot/currency_pairs/") {
            Some(id) => shop.find(&FAKE, id).map_or_else(
                || refused("INVALID_CURRENCY_PAIR", "Invalid currency pair"),
                |market| Reply::json(pair(market)),
            ),
            None => refused("NOT_FOUND", "not found"),
        },
    }
}

fn pair(market: &GeneratedMarket) -> String {
    format!(
        r#"{{"id":"{base}_{quote}","base":"{base}","base_name":"x","quote":"{quote}","quote_name":"y","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"5","max_quote_amount":"5000000","amount_precision":4,"precision":{},"trade_status":"tradable","sell_start":0,"buy_start":0,"delisting_time":0,"type":"normal","trade_url":"https://example.org/"}}"#,
        places(market.tick),
        base = market.base,
        quote = market.quote
    )
}

/// Oldest first, the volume in quote asset and the close in front; both ends included.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("currency_pair").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return refused("INVALID_CURRENCY_PAIR", "Invalid currency pair");
    };
    let interval = match asked.param("interval").as_deref() {
        Some("1m") => MINUTE_MS,
        Some("1h") => HOUR_MS,
        Some("1d") => DAY_MS,
        _ => return refused("INVALID_PARAM_VALUE", "Invalid interval"),
    };
    let at = |name: &str| number(asked, name).map(|at| at * 1000);
    let (Some(from), Some(to), None) = (at("from"), at("to"), asked.param("limit")) else {
        return refused("INVALID_PARAM_VALUE", "Either a range or a limit");
    };
    if (to - from) / interval + 1 > 1000 {
        let message =
            "Candlestick range too broad. Maximum 1000 data points are allowed per request";
        return refused("INVALID_PARAM_VALUE", message);
    }
    if (shop.now - from) / interval > 10_000 {
        let message = "Candlestick too long ago. Maximum 10000 points ago are allowed";
        return refused("INVALID_PARAM_VALUE", message);
    }
    let rows = shop.rows(market, interval, from, to);
    Reply::json(array(&rows, |row| {
        format!(
            r#"["{}","{}","{}","{}","{}","{}","{}","{}"]"#,
            row.open_ms / 1000,
            plain(row.turnover),
            plain(row.close),
            plain(row.high),
            plain(row.low),
            plain(row.open),
            plain(row.volume),
            row.open_ms + interval <= shop.now
        )
    }))
}

fn refused(label: &str, message: &str) -> Reply {
    Reply::status(400, format!(r#"{{"label":"{label}","message":"{message}"}}"#))
}

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        "/api/v4/spot/tickers" => "tickers",
        "/api/v4/spot/candlesticks" => "candlesticks",
        "/api/v4/spot/time" => "time",
        _ => "currency_pairs",
    };
    Charge { pool, units: 1, most: 200, span_ms: 10_000 }
}
