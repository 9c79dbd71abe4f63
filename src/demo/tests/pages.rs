//! Pages of candles: their ends, and the begin of the history.

use super::*;

#[test]
fn pages_join_without_hole_or_overlap() {
    let demo = Demo::new(3);
    for interval in Interval::ALL {
        let name = interval.name();
        let page = |range: &str| rows(&demo, "BTCUSDT", name, range, NOW);
        let whole = page("&limit=100");
        assert_eq!(whole.len(), 100);
        for two in whole.windows(2) {
            assert_eq!(two[0].close_time + 1, two[1].open_time, "{name}");
            assert_eq!(two[0].close, two[1].open, "{name}");
        }
        for row in &whole {
            assert_eq!(interval.open_of(UnixMs(row.open_time)).0, row.open_time);
        }
        let mut forward: Vec<Row> = Vec::new();
        let mut from = whole[0].open_time;
        while forward.len() < 100 {
            let part = page(&format!("&startTime={from}&limit=7"));
            from = part.last().unwrap().close_time + 1;
            forward.extend(part);
        }
        assert_eq!(forward, whole, "{name}");
        let mut backward: Vec<Row> = Vec::new();
        let mut to = NOW;
        while backward.len() < 100 {
            let mut part = page(&format!("&endTime={to}&limit=8"));
            to = part[0].open_time - 1;
            part.append(&mut backward);
            backward = part;
        }
        assert_eq!(backward[backward.len() - 100..], whole, "{name}");
    }
}

#[test]
fn ranges_are_inclusive_and_cut_at_their_newer_end() {
    let demo = Demo::new(3);
    let hour = 3_600_000;
    let base = NOW - NOW % hour - 100 * hour;
    let check = |range: String, first: i64, count: usize| {
        let found = rows(&demo, "ETHUSDT", "1h", &range, NOW);
        let opens: Vec<i64> = found.iter().map(|row| (row.open_time - base) / hour).collect();
        let expected: Vec<i64> = (first..).take(count).collect();
        assert_eq!(opens, expected, "{range}");
    };
    let (begin, end) = (base, base + 10 * hour);
    check(format!("&startTime={begin}&endTime={end}"), 0, 11);
    check(format!("&startTime={}&endTime={}", begin + 1, end - 1), 1, 9);
    check(format!("&startTime={begin}&endTime={end}&limit=4"), 0, 4);
    check(format!("&endTime={end}&limit=4"), 7, 4);
    check(format!("&startTime={end}&endTime={begin}"), 0, 0);
    check(format!("&startTime={}", NOW + 1), 0, 0);
    check(format!("&startTime={begin}&limit=1000"), 0, 101);
    check(format!("&endTime={}&limit=1", NOW + 500 * hour), 100, 1);
    check(String::new(), -399, 500);
    check("&limit=5000".to_owned(), -899, 1000);
    check("&limit=0".to_owned(), 100, 1);
    check(format!("&startTime={}", i64::MAX), 0, 0);
    check(format!("&endTime={}&limit=1", i64::MAX), 100, 1);
}

#[test]
fn history_begins_with_the_epoch() {
    let demo = Demo::new(1);
    for interval in Interval::ALL {
        let first = rows(&demo, "BTCUSDT", interval.name(), "&startTime=0&limit=2", NOW);
        let expected = if interval == Interval::W1 { 4 * DAY_MS } else { 0 };
        assert_eq!(first[0].open_time, expected);
        let none = format!("&endTime={}", expected - 1);
        if expected > 0 {
            assert_eq!(rows(&demo, "BTCUSDT", interval.name(), &none, NOW), []);
        }
        let newest = rows(&demo, "BTCUSDT", interval.name(), "&limit=3", 2 * DAY_MS);
        assert!(newest.iter().all(|row| row.open_time >= 0));
    }
    for now in [i64::MIN, -1, 0, 999, 1000, DAY_MS, i64::MAX] {
        for interval in Interval::ALL {
            rows(&demo, "BTCUSDT", interval.name(), "&limit=2", now);
        }
        get(&demo, "/api/v3/ticker/24hr", "", now);
    }
}
