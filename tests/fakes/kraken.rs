//! Kraken: market data of its "REST API". It has names of its own for assets and markets, and
//! failures come with status 200.

use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "kraken",
    id: |base, quote| format!("{}{quote}", asset(base)),
    answer,
    charge: |_| Charge { pool: "address", units: 1, most: 1, span_ms: 1_000 },
    too_many: || Reply::json(r#"{"error":["EGeneral:Too many requests"]}"#),
    sends: "last bid ask bidVolume askVolume high low baseVolume",
};

/// Rows of candles, always the latest ones, whatever is asked.
const LATEST: usize = 720;

fn asset(name: &str) -> &str {
    match name {
        "BTC" => "XBT",
        "DOGE" => "XDG",
        other => other,
    }
}

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/0/public/Time" => good(&format!(
            r#"{{"unixtime":{},"rfc1123":"Wed, 15 May 24 10:37:05 +0000"}}"#,
            shop.now / 1000
        )),
        "/0/public/Ticker" => {
            let items = shop.each_of(&FAKE, asked.param("pair"), |market| {
                let day = shop.day(market);
                let (last, low, high) = (padded(day.last), padded(day.low), padded(day.high));
                format!(
                    r#""{}":{{"a":["{}","7","{}"],"b":["{}","8","{}"],"c":["{last}","0.00067643"],"v":["1.5","{}"],"p":["3","4"],"t":[34619,38907],"l":["1","{low}"],"h":["2","{high}"],"o":"5"}}"#,
                    (FAKE.id)(&market.base, market.quote),
                    padded(day.ask), padded(day.ask_size), padded(day.bid), padded(day.bid_size),
                    padded(day.base_volume)
                )
            });
            known(items)
        }
        "/0/public/AssetPairs" => {
            let items = shop.each_of(&FAKE, asked.param("pair"), |market| {
                let (base, places) = (asset(&market.base), places(market.tick));
                format!(
                    r#""{base}{quote}":{{"altname":"{base}{quote}","wsname":"{base}/{quote}","aclass_base":"currency","base":"X{base}","aclass_quote":"currency","quote":"{quote}","lot":"unit","cost_decimals":5,"pair_decimals":{places},"lot_decimals":4,"lot_multiplier":1,"leverage_buy":[2,3],"leverage_sell":[],"fees":[[0,0.26],[50000,0.24]],"fees_maker":[[0,0.16],[50000,0.14]],"fee_volume_currency":"ZUSD","margin_call":80,"margin_stop":40,"ordermin":"0.001","costmin":"5","tick_size":"{}","status":"online"}},"{base}{quote}.d":{{"altname":"{base}{quote}.d","wsname":"{base}/{quote}","base":"X{base}","quote":"{quote}","pair_decimals":0,"lot_decimals":0}}"#,
                    plain(market.tick), quote = market.quote
                )
            });
            known(items)
        }
        "/0/public/OHLC" => candles(shop, asked),
        _ => Reply::json(r#"{"error":["EGeneral:Unknown method"]}"#),
    }
}

/// Oldest first, and of the latest those after `since`.
fn candles(shop: &Shop, asked: &Asked) -> Reply {
    let id = asked.param("pair").unwrap_or_default();
    let Some(market) = shop.find(&FAKE, &id) else {
        return Reply::json(r#"{"error":["EQuery:Unknown asset pair"]}"#);
    };
    let interval = match asked.param("interval").as_deref() {
        Some("1") => MINUTE_MS,
        Some("60") => HOUR_MS,
        Some("1440") => DAY_MS,
        _ => return Reply::json(r#"{"error":["EGeneral:Invalid arguments"]}"#),
    };
    let since = number(asked, "since").unwrap_or(0) * 1000;
    let rows = shop.newest(market, interval, (since + 1, shop.now), LATEST);
    let made = array(&rows, |row| {
        format!(
            r#"[{},"{}","{}","{}","{}","{}","{}",23]"#,
            row.open_ms / 1000,
            padded(row.open),
            padded(row.high),
            padded(row.low),
            padded(row.close),
            padded(row.open),
            padded(row.volume)
        )
    });
    let last = (shop.now / interval - 1) * interval / 1000;
    good(&format!(r#"{{"{id}":{made},"last":{last}}}"#))
}

/// Members of the result, unless a pair is unknown.
fn known(items: Option<String>) -> Reply {
    match items {
        Some(items) => good(&format!("{{{items}}}")),
        None => Reply::json(r#"{"error":["EQuery:Unknown asset pair"]}"#),
    }
}

fn good(result: &str) -> Reply {
    Reply::json(format!(r#"{{"error":[],"result":{result}}}"#))
}
