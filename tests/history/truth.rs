//! What an exchange has, and what a chart shows, in the same shape.

use crate::support::*;
use std::collections::BTreeMap;

/// Open time in milliseconds; open, high, low, close and volume in the fewest digits.
pub type Row = (i64, [String; 5]);

/// Rows that one page of the exchange holds.
const PAGE: usize = 1000;

/// A fake's own klines.
pub fn fake_klines(
    exchange: &Binance,
    id: &str,
    interval: &str,
    mut from: i64,
    to: i64,
) -> Vec<Row> {
    let mut all = Vec::new();
    loop {
        let query =
            format!("symbol={id}&interval={interval}&startTime={from}&endTime={to}&limit={PAGE}");
        let answer = get(exchange.addr(), &format!("/api/v3/klines?{query}"));
        assert_eq!(answer.status, 200, "{query}");
        let rows = rows_of(&answer.exact());
        let count = rows.len();
        all.extend(rows);
        match all.last() {
            Some((last, _)) if count == PAGE => from = last + 1,
            _ => return all,
        }
    }
}

/// Rows of a chart, or of klines.
pub fn rows_of(body: &Json) -> Vec<Row> {
    let figure = |value: &Json| match value {
        Json::Number(text) | Json::Text(text) => lean(text),
        other => panic!("no figure: {other}"),
    };
    let row = |row: &Json| {
        let open = row[0].integer().expect("a time");
        (open, [1, 2, 3, 4, 5].map(|at| figure(&row[at])))
    };
    body.items().iter().map(row).collect()
}

/// A decimal without needless digits.
fn lean(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    }
}

/// No candle is there twice or out of order, and each is the exchange's own; with `whole`, none is
/// missing between the first and the last.
#[track_caller]
pub fn check(shown: &[Row], truth: &[Row], whole: bool, context: &str) {
    assert!(shown.windows(2).all(|two| two[0].0 < two[1].0), "{context}");
    if whole {
        let opens = |rows: &[Row]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(opens(shown), opens(truth), "{context}");
    }
    let truth: BTreeMap<i64, &[String; 5]> = truth.iter().map(|row| (row.0, &row.1)).collect();
    for (open, figures) in shown {
        assert_eq!(truth.get(open), Some(&figures), "{context}: {open}");
    }
}
