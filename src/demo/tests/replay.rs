//! Recorded candles: as they were once they have ended, and what they grow from.

use super::*;
use crate::interval::Stored;
use crate::record::Candle;

/// Midnight.
pub(super) const BEGIN: i64 = 1_790_035_200_000;
pub(super) const MINUTE: i64 = 60_000;
const HOUR: i64 = 3_600_000;

/// A day of minutes of which one is missing, the hours of half a day, and the days before.
pub(super) fn recorded(seed: i64) -> (Demo, Vec<Candle>) {
    let mut market = RecordedMarket::default();
    let candle = |open_time: i64, number: i64| {
        let mut random = RandomStream::new(7, seed as u64, number);
        let mut figure = |from: i64, most: i64| Decimal::from(from + random.below(most));
        let (low, high) = (figure(1000, 10), figure(1020, 10));
        let (open, close, volume) = (figure(1010, 10), figure(1010, 10), figure(0, 90));
        Candle { open_time: UnixMs(open_time), open, high, low, close, volume }
    };
    let minutes = (0..1440).filter(|minute| *minute != 100);
    let minutes: Vec<Candle> = minutes.map(|it| candle(BEGIN + it * MINUTE, it)).collect();
    minutes.iter().for_each(|it| market.push(Stored::M1, it));
    for hour in 0..12 {
        market.push(Stored::H1, &candle(BEGIN + hour * HOUR, 2000 + hour));
    }
    for day in -9..1 {
        market.push(Stored::D1, &candle(BEGIN + day * DAY_MS, 3000 + day));
    }
    let mut demo = Demo::new(1);
    demo.replay("one".to_string(), RecordedMarkets::from([("X/Y".to_string(), market)]));
    (demo, minutes)
}

fn as_row(candle: &Candle, interval: Interval) -> Row {
    let [open, high, low, close, volume] =
        candle.figures().map(|it| units(&Json::String(it.to_string())));
    let (open_time, close_time) = (candle.open_time.0, interval.end_of(candle.open_time).0 - 1);
    Row { open_time, close_time, open, high, low, close, volume }
}

#[test]
fn a_candle_that_has_ended_is_the_recorded_one() {
    let (demo, minutes) = recorded(1);
    let now = BEGIN + DAY_MS;
    let mut pages = Vec::new();
    for hour in 0..24 {
        let range = format!("&startTime={}&limit=60", BEGIN + hour * HOUR);
        let page = rows(&demo, "XY", "1m", &range, now);
        pages.extend(page.into_iter().filter(|it| it.open_time < BEGIN + (hour + 1) * HOUR));
    }
    assert_eq!(pages, minutes.iter().map(|it| as_row(it, Interval::M1)).collect::<Vec<_>>());
    // Of the hours that are not recorded, the minutes make them; of a day, it is recorded.
    let hours = rows(&demo, "XY", "1h", "&limit=30", now);
    assert_eq!(hours.len(), 24);
    assert_eq!(hours[13], join(&pages[13 * 60 - 1..14 * 60 - 1]).ending_as(&hours[13]));
    assert_ne!(hours[1], join(&pages[60..119]).ending_as(&hours[1]));
    assert_eq!(rows(&demo, "XY", "1d", "&limit=1000", now).len(), 10);
    let week = rows(&demo, "XY", "1w", "&limit=1000", now);
    assert_eq!(week.iter().map(|it| it.volume).sum::<i128>(), {
        rows(&demo, "XY", "1d", "&limit=1000", now).iter().map(|it| it.volume).sum()
    });
}

impl Row {
    fn ending_as(self, other: &Row) -> Row {
        Row { close_time: other.close_time, ..self }
    }
}

#[test]
fn a_forming_candle_grows_by_open_high_low_and_close() {
    let (demo, minutes) = recorded(2);
    for minute in [0, 59, 61, 700, 1439] {
        let whole = &minutes[if minute < 100 { minute } else { minute - 1 }];
        let whole = as_row(whole, Interval::M1);
        let seen = |ms: i64| rows(&demo, "XY", "1m", "&limit=1", whole.open_time + ms)[0];
        let Row { open, high, low, close, volume, .. } = whole;
        let at = |ms: i64| {
            let seen = seen(ms);
            assert_eq!(units(&ticker(&demo, "XY", whole.open_time + ms)["lastPrice"]), seen.close);
            (seen.open, seen.high, seen.low, seen.close)
        };
        for begin in [0, 14_999] {
            assert_eq!(at(begin), (open, open, open, open));
            assert_eq!(at(begin + 15_000), (open, high, open, high));
            assert_eq!(at(begin + 30_000), (open, high, low, low));
            assert_eq!(at(begin + 45_000), (open, high, low, close));
        }
        assert_eq!(seen(59_999), whole);
        assert!((seen(30_000).volume * 4 - volume * 3).abs() <= 6 * 100_000_000);
        let told = ticker(&demo, "XY", whole.open_time + 29_999)["closeTime"].clone();
        assert_eq!(told, whole.open_time + 15_000);
    }
}

#[test]
fn longer_candles_and_the_quote_follow_the_minutes() {
    let (demo, _) = recorded(3);
    for minute in [1, 99, 101, 719, 720, 800, 1439] {
        let now = BEGIN + minute * MINUTE + 31_000;
        let last = units(&ticker(&demo, "XY", now)["lastPrice"]);
        for interval in [Interval::M5, Interval::H1, Interval::H4, Interval::D1] {
            let forming = rows(&demo, "XY", interval.name(), "&limit=1", now)[0];
            assert_eq!(forming.close, last, "minute {minute} {interval:?}");
        }
        let range = format!("&startTime={}", Interval::H1.open_of(UnixMs(now)).0);
        let minutes = rows(&demo, "XY", "1m", &range, now);
        let hour = rows(&demo, "XY", "1h", "&limit=1", now)[0];
        assert_eq!(join(&minutes).ending_as(&hour), hour, "minute {minute}");
        let day = ticker(&demo, "XY", now);
        assert!(units(&day["lowPrice"]) <= last && last <= units(&day["highPrice"]));
    }
}

#[test]
fn where_nothing_is_recorded_nothing_is_played() {
    let (demo, _) = recorded(4);
    let gap = BEGIN + 100 * MINUTE;
    let range = format!("&startTime={gap}&endTime={gap}");
    assert_eq!(rows(&demo, "XY", "1m", &range, gap + 1000), []);
    assert_eq!(rows(&demo, "XY", "1m", &range, gap + DAY_MS), []);
    let before = format!("&endTime={}", BEGIN - 1);
    assert_eq!(rows(&demo, "XY", "1m", &before, BEGIN + HOUR), []);
    // After the last candle, the quote stays for a day.
    let end = BEGIN + DAY_MS;
    let last = ticker(&demo, "XY", end - 1);
    assert_eq!(ticker(&demo, "XY", end + HOUR)["lastPrice"], last["lastPrice"]);
    assert_eq!(ticker(&demo, "XY", end + HOUR)["closeTime"], end - 15_000);
    assert_eq!(call(&demo, "/api/v3/ticker/24hr", "symbol=XY", end + DAY_MS).0, 400);
    assert_eq!(call(&demo, "/api/v3/ticker/24hr", "symbol=BTCUSDT", end).0, 400);
}

#[test]
fn each_source_plays_its_own_candles() {
    let (mut demo, _) = recorded(5);
    demo.replay("two".to_string(), recorded(6).0.replay.remove(0).1);
    let last = |demo: &Demo, path: &str| get(demo, path, "symbol=XY", BEGIN + HOUR);
    let [one, two] = [5, 6].map(|seed| last(&recorded(seed).0, "/api/v3/ticker/24hr"));
    assert_ne!(one, two);
    assert_eq!(last(&demo, "/api/v3/ticker/24hr"), one);
    assert_eq!(last(&demo, "/one/api/v3/ticker/24hr"), one);
    assert_eq!(last(&demo, "/two/api/v3/ticker/24hr"), two);
    assert_eq!(call(&demo, "/three/api/v3/ticker/24hr", "symbol=XY", BEGIN + HOUR).0, 400);
}
