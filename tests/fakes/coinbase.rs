//! Coinbase Exchange: the products of its "Exchange REST API". Tickers one by one.

use crate::fakes::shop::*;
use crate::support::generated::GeneratedMarket;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "coinbase",
    id: |base, quote| format!("{base}-{quote}"),
    answer,
    charge: |_| Charge { pool: "address", units: 1, most: 10, span_ms: 1_000 },
    too_many: || Reply::status(429, r#"{"message":"Public rate limit exceeded"}"#),
    sends: "last bid ask open high low baseVolume",
};

fn answer(shop: &Shop, asked: &Asked) -> Reply {
    match asked.path() {
        "/time" => {
            let (seconds, millis) = (shop.now / 1000, shop.now % 1000);
            let iso = iso(shop.now);
            return Reply::json(format!(r#"{{"iso":"{iso}","epoch":{seconds}.{millis:03}}}"#));
        }
        "/products" => return Reply::json(format!("[{}]", shop.each(product))),
        _ => {}
    }
    let rest = asked.path().strip_prefix("/products/").unwrap_or_default();
    let (id, what) = rest.split_once('/').unwrap_or((rest, ""));
    let Some(market) = shop.find(&FAKE, id).filter(|_| !shop.broken.contains(id)) else {
        return Reply::status(404, r#"{"message":"NotFound"}"#);
    };
    let day = shop.day(market);
    match what {
        "" => Reply::json(product(market)),
        "ticker" => Reply::json(format!(
            r#"{{"ask":"{}","bid":"{}","volume":"{}","trade_id":86326522,"price":"{}","size":"0.001","time":"{}","rfq_volume":"9.5"}}"#,
            plain(day.ask),
            plain(day.bid),
            padded(day.base_volume),
            padded(day.last),
            iso(shop.now)
        )),
        "stats" if shop.has_stats => Reply::json(format!(
            r#"{{"open":"{}","high":"{}","low":"{}","last":"{}","volume":"{}","volume_30day":"7777","rfq_volume_24hour":"1"}}"#,
            plain(day.open),
            plain(day.high),
            plain(day.low),
            plain(day.last),
            plain(day.base_volume)
        )),
        "candles" => candles(shop, asked, id),
        _ => Reply::status(404, r#"{"message":"NotFound"}"#),
    }
}

fn product(market: &GeneratedMarket) -> String {
    format!(
        r#"{{"id":"{base}-{quote}","base_currency":"{base}","quote_currency":"{quote}","quote_increment":"{}","base_increment":"0.0001","display_name":"{base}-{quote}","min_market_funds":"5","margin_enabled":false,"post_only":false,"limit_only":false,"cancel_only":false,"status":"online","status_message":"","trading_disabled":false,"fx_stablecoin":false,"auction_mode":false}}"#,
        plain(market.tick),
        base = market.base,
        quote = market.quote
    )
}

/// Newest first, low and high before open and close, both ends of the range included.
fn candles(shop: &Shop, asked: &Asked, id: &str) -> Reply {
    let market = shop.find(&FAKE, id).expect("it was found before");
    let interval = match asked.param("granularity").as_deref() {
        Some("60") => MINUTE_MS,
        Some("3600") => HOUR_MS,
        Some("86400") => DAY_MS,
        _ => return Reply::status(400, r#"{"message":"Unsupported granularity"}"#),
    };
    let at = |name: &str| asked.param(name).and_then(|text| moment(&text));
    let (Some(from), Some(to)) = (at("start"), at("end")) else {
        return Reply::status(400, r#"{"message":"Invalid start or end"}"#);
    };
    if (to - from) / interval > 300 {
        let message = "granularity too small for the requested time range. Count of aggregations requested exceeds 300";
        return Reply::status(400, format!(r#"{{"message":"{message}"}}"#));
    }
    let mut rows = shop.newest(market, interval, (from, to), 300);
    rows.reverse();
    Reply::json(array(&rows, |row| {
        format!(
            "[{},{},{},{},{},{}]",
            row.open_ms / 1000,
            plain(row.low),
            plain(row.high),
            plain(row.open),
            plain(row.close),
            plain(row.volume)
        )
    }))
}

/// `2020-04-30T21:00:00.000Z` and shorter forms of it.
fn moment(text: &str) -> Option<i64> {
    let (date, time) = text.trim_end_matches('Z').split_once('T')?;
    let part = |text: &str, at: usize, by: char| text.split(by).nth(at)?.parse::<i64>().ok();
    let (year, month, day) = (part(date, 0, '-')?, part(date, 1, '-')?, part(date, 2, '-')?);
    let (clock, millis) = time.split_once('.').unwrap_or((time, "0"));
    let seconds = part(clock, 0, ':')? * 3600 + part(clock, 1, ':')? * 60 + part(clock, 2, ':')?;
    let month_days = |month: i64| match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let years: i64 = (1970..year).map(|year| 365 + i64::from(leap(year))).sum();
    let days = years + (1..month).map(month_days).sum::<i64>() + day - 1;
    Some(days * DAY_MS + seconds * 1000 + millis.parse::<i64>().ok()?)
}

fn iso(at: i64) -> String {
    let (mut year, mut day) = (1970, at.div_euclid(DAY_MS));
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (seconds, millis) = (at.rem_euclid(DAY_MS) / 1000, at.rem_euclid(1000));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}000Z",
        month + 1,
        day + 1
    )
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[test]
fn its_dates_are_read_and_written() {
    assert_eq!(iso(NOW), "2024-05-15T10:37:05.000000Z");
    assert_eq!(moment("2024-05-15T10:37:05.000Z"), Some(NOW));
    assert_eq!(moment("2024-03-01T00:00:00Z"), Some(1_709_251_200_000));
    assert_eq!(iso(1_709_251_199_999), "2024-02-29T23:59:59.999000Z");
}
