//! OKX: market data of "API v5". Failures come with status 200.

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "okx",
    id: |base, quote| format!("{base}-{quote}"),
    answer,
    charge,
    too_many: || Reply::status(429, error("50011", "Too Many Requests")),
    sends: ALL_BUT_CHANGE,
};

/// Candles at hand; older ones are in the archive.
const AT_HAND: i64 = 1440;

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    let spot = asked.param("instType").as_deref() == Some("SPOT");
    match asked.path() {
        "/api/v5/public/time" => good(&format!(r#"{{"ts":"{}"}}"#, shop.now)),
        "/api/v5/market/tickers" if spot => tickers(shop, None),
        "/api/v5/market/ticker" => tickers(shop, asked.param("instId")),
        "/api/v5/public/instruments" if spot => known(shop.each_of(&FAKE, asked.param("instId"), |market| {
            format!(
                r#"{{"instType":"SPOT","instId":"{base}-{quote}","uly":"","category":"1","baseCcy":"{base}","quoteCcy":"{quote}","settleCcy":"","ctVal":"","tickSz":"{}","lotSz":"0.0001","minSz":"0.001","maxLmtSz":"999999","maxMktSz":"1000000","state":"live"}}"#,
                plain(market.tick), base = market.base, quote = market.quote
            )
        })),
        "/api/v5/market/candles" => candles(shop, asked, true),
        "/api/v5/market/history-candles" => candles(shop, asked, false),
        _ => Reply::json(error("50014", "Parameter can not be empty")),
    }
}

/// Of one market, or of all.
fn tickers(shop: &Shop, id: Option<String>) -> Reply {
    let made = shop.each_of(&FAKE, id, |market| {
        let day = shop.day(market);
        format!(
            r#"{{"instType":"SPOT","instId":"{}-{}","last":"{}","lastSz":"0.1","askPx":"{}","askSz":"{}","bidPx":"{}","bidSz":"{}","open24h":"{}","high24h":"{}","low24h":"{}","volCcy24h":"{}","vol24h":"{}","ts":"{}","sodUtc0":"1","sodUtc8":"2"}}"#,
            market.base, market.quote,
            plain(day.last), plain(day.ask), plain(day.ask_size), plain(day.bid),
            plain(day.bid_size), plain(day.open), plain(day.high), plain(day.low),
            plain(day.quote_volume), plain(day.base_volume), shop.now
        )
    });
    known(made)
}

/// Newest first, between `before` and `after`, both left out.
fn candles(shop: &Shop, asked: &Asked, at_hand: bool) -> Reply {
    let id = asked.param("instId").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        let message = "Instrument ID does not exist";
        return Reply::json(error("51001", message));
    };
    let interval = match asked.param("bar").as_deref() {
        Some("1m") => MINUTE_MS,
        Some("1H") => HOUR_MS,
        Some("1Dutc") => DAY_MS,
        _ => return Reply::json(error("51000", "Parameter bar error")),
    };
    let limit = number(asked, "limit").unwrap_or(100);
    if !(1..=300).contains(&limit) {
        return Reply::json(error("51000", "Parameter limit error"));
    }
    let mut from = number(asked, "before").map_or(0, |before| before + 1);
    let to = number(asked, "after").map_or(shop.now, |after| after - 1);
    if at_hand {
        from = from.max(shop.now - AT_HAND * interval);
    }
    let mut rows = shop.newest(market, interval, (from, to), limit as usize);
    rows.reverse();
    let made = array(&rows, |row| {
        let closed = row.open_ms + interval <= shop.now;
        format!(
            r#"["{}","{}","{}","{}","{}","{}","{turnover}","{turnover}","{}"]"#,
            row.open_ms,
            plain(row.open),
            plain(row.high),
            plain(row.low),
            plain(row.close),
            plain(row.volume),
            u8::from(closed),
            turnover = plain(row.turnover)
        )
    });
    Reply::json(format!(r#"{{"code":"0","msg":"","data":{made}}}"#))
}

fn known(made: Option<String>) -> Reply {
    made.map_or_else(|| Reply::json(error("51001", "Instrument ID does not exist")), |it| good(&it))
}

fn good(items: &str) -> Reply {
    Reply::json(format!(r#"{{"code":"0","msg":"","data":[{items}]}}"#))
}

fn error(code: &str, message: &str) -> String {
    format!(r#"{{"code":"{code}","msg":"{message}","data":[]}}"#)
}

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let (pool, most) = match asked.path() {
        "/api/v5/market/tickers" => ("tickers", 20),
        "/api/v5/market/ticker" => ("ticker", 20),
        "/api/v5/market/candles" => ("candles", 40),
        "/api/v5/market/history-candles" => ("history-candles", 20),
        "/api/v5/public/time" => ("time", 10),
        _ => ("instruments", 20),
    };
    Charge { pool, units: 1, most, span_ms: 2_000 }
}
