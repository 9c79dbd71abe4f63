//! Pages of candles: which ones an answer has.

use super::replay::{BEGIN, MINUTE, recorded};
use super::*;
use crate::rng::Rng;
use std::iter::successors;

/// The open times of a page. Binance ("Kline/Candlestick data") sends the first candles from a start on, and else
/// the last ones; both ends are included. There are candles from `first` on, but for the one at `gap`, of which the
/// demo's last ones count the place.
fn opens(
    interval: Interval,
    (first, gap): (i64, i64),
    (start, end): (Option<i64>, i64),
    limit: usize,
) -> Vec<i64> {
    let is_there = |open: &UnixMs| open.0 != gap;
    let (first, end) = (UnixMs(first), UnixMs(end));
    let mut opens: Vec<UnixMs> = match start.map(|it| UnixMs(it).max(first).min(end + 1)) {
        Some(start) => {
            let all = successors(Some(interval.open_of(start)), |it| Some(interval.end_of(*it)));
            let all = all.take_while(|it| *it <= end).skip_while(|it| *it < start);
            all.filter(is_there).take(limit).collect()
        }
        None => {
            let all = successors(Some(interval.open_of(end)), |it| Some(interval.step(*it, -1)));
            all.take_while(|it| *it >= first).take(limit).filter(is_there).collect()
        }
    };
    opens.sort_unstable();
    opens.into_iter().map(|it| it.0).collect()
}

#[test]
fn a_page_has_the_first_candles_from_its_start_or_the_last_ones_before_its_end() {
    let (generated, (played, _)) = (Demo::new(3), recorded(1));
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let is_played = rng.below(3) == 0;
        let intervals: &[Interval] = match is_played {
            true => &[Interval::M1, Interval::H1, Interval::D1],
            false => &Interval::ALL,
        };
        let interval = intervals[rng.below(intervals.len() as u64) as usize];
        let (demo, market) = if is_played { (&played, "XY") } else { (&generated, "BTCUSDT") };
        let (now, there) = match (is_played, interval) {
            (true, Interval::D1) => (BEGIN + DAY_MS - 1, (BEGIN - 9 * DAY_MS, -1)),
            (true, _) => (BEGIN + DAY_MS - 1, (BEGIN, BEGIN + 100 * MINUTE)),
            // Close to the begin of the history, too.
            (false, _) => ([NOW, 2 * DAY_MS, 40 * DAY_MS][rng.below(3) as usize], (0, -1)),
        };
        let present = interval.open_of(UnixMs(now));
        let mut time = || match rng.below(6) {
            0..3 => None,
            3 => Some([0, i64::MAX][rng.below(2) as usize]),
            _ => {
                let open = interval.step(present, rng.below(1200) as i64 - 1100);
                Some((open.0 + rng.below(3) as i64 - 1).max(0))
            }
        };
        let (start, end) = (time(), time());
        let limit = [None, Some(0), Some(1), Some(7), Some(5000)][rng.below(5) as usize];
        let range = [("startTime", start), ("endTime", end), ("limit", limit)];
        let range = range.map(|(name, it)| it.map_or(String::new(), |it| format!("&{name}={it}")));
        let found = rows(demo, market, interval.name(), &range.concat(), now);
        let limit = limit.map_or(500, |it| it.clamp(1, 1000)) as usize;
        let expected = opens(interval, there, (start, end.map_or(now, |it| it.min(now))), limit);
        let label = format!("seed {seed} {interval:?} {range:?} at {now}");
        assert!(found.iter().map(|row| row.open_time).eq(expected), "{label}");
        // A candle is the same on each page, and begins where the one before ends.
        for row in [found.first(), found.last()].into_iter().flatten() {
            let alone = format!("&startTime={}&limit=1", row.open_time);
            assert_eq!(rows(demo, market, interval.name(), &alone, now), [*row], "{label}");
        }
        let mut pairs = found.windows(2);
        assert!(is_played || pairs.all(|two| two[0].close == two[1].open), "{label}");
    }
}

#[test]
fn any_time_has_an_answer() {
    let demo = Demo::new(1);
    for now in [i64::MIN, -1, 0, 999, 1000, DAY_MS, i64::MAX] {
        for interval in Interval::ALL {
            rows(&demo, "BTCUSDT", interval.name(), "&limit=2", now);
        }
        get(&demo, "/api/v3/ticker/24hr", "", now);
    }
}
