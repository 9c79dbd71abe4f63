//! Candles as the exchange itself tells them, and as the body of an answer shows them.

use crate::support::naive::{Row, plain};
use crate::support::{Binance, Json, get};

/// The row of an answer.
pub fn row((open, figures): &Row) -> Json {
    let digits = figures.iter().map(|text| Json::Number(text.clone()));
    let open = Json::Number(open.to_string());
    Json::Array(std::iter::once(open).chain(digits).collect())
}

/// The body of an answer.
pub fn body(candles: &[Row]) -> Json {
    Json::Array(candles.iter().map(row).collect())
}

/// What the exchange itself says of the slots from `from` to `to`, both open times, both included.
pub fn asked_of(exchange: &Binance, id: &str, interval: &str, from: i64, to: i64) -> Vec<Row> {
    let (mut candles, mut next) = (Vec::new(), from);
    loop {
        let target = format!(
            "/api/v3/klines?symbol={id}&interval={interval}&startTime={next}&endTime={to}&limit=1000"
        );
        let page = get(exchange.addr(), &target).exact();
        let read = |row: &Json| {
            let figure = |at: usize| plain(row[at].text().expect("a digit text"));
            (row[0].integer().expect("an open time"), [1, 2, 3, 4, 5].map(figure))
        };
        candles.extend(page.items().iter().map(read));
        if page.items().len() < 1000 {
            return candles;
        }
        next = candles.last().map_or(to, |(open, _)| open + 1);
    }
}

/// Open time of the candle of this interval that holds this moment.
pub fn open_time(interval: &str, at: i64) -> i64 {
    crate::support::naive::candle_at(interval, at).0
}
