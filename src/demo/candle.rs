//! A candle of the demo exchange, and its division into shorter candles.
//!
//! [`DemoCandle::then`] joins two consecutive candles; [`DemoCandle::divide`] is its inverse. A candle does
//! not know its time. The caller passes a [`RandomStream`], whose numbers depend only on a key, a tag and an
//! index. So candles can be generated in any order.
//!
//! Invariant of a division, exact and tested: the first part opens where the parent opens, each
//! other part opens where the previous part closed, and the last part closes where the parent
//! closes. The highest high and the lowest low are the parent's. The volumes sum to the parent's.

use crate::rng::{GOLDEN, Rng, mix};

/// A candle with its prices in ticks and its volume in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DemoCandle {
    pub(super) open: i64,
    pub(super) high: i64,
    pub(super) low: i64,
    pub(super) close: i64,
    pub(super) volume: i64,
}

/// The largest step of the random walk is the parent's range divided by this: the first number for
/// a division into 24 parts, the second for one into 60.
///
/// With [`MIN_WICK`] and [`DemoCandle::waypoints`], this bounds the range of a part:
///
/// - A random step counts twice: as itself, and in the slope that compensates for it.
/// - The straight line between two waypoints has at least a sixth of the parts, so it takes at most
///   `6 / parts` of the range in each of them.
/// - A wick is at most 0.047 of the range, or 0.063 if it reaches the parent's high or low.
///
/// So an hour's range is at most 0.61 of its day's, a minute's 0.38 of its hour's, and a second's
/// 0.27 of its minute's. A day's range is at most 14.3 % (see `generator`). So a price changes in a
/// second by at most 0.9 %, plus six ticks for rounding.
const STEP_OF_24: i64 = 8;
const STEP_OF_60: i64 = 12;

/// The shortest wick of a part is the parent's range divided by this, plus a tick. The longest wick
/// is one and a half times as long, or twice as long if it reaches the parent's high or low.
const MIN_WICK: i64 = 32;

/// The weight of a part in its parent's volume is the sum of a random number below this, a quarter
/// of this, and at most this for the part's width.
const WEIGHT: i64 = 4096;

/// A point on the price's path: after `at` parts, the price is `price`.
struct Waypoint {
    at: usize,
    price: i64,
}

impl DemoCandle {
    /// Joins this candle and the one right after it.
    pub(super) fn then(&self, next: &DemoCandle) -> DemoCandle {
        debug_assert_eq!(self.close, next.open);
        DemoCandle {
            open: self.open,
            high: self.high.max(next.high),
            low: self.low.min(next.low),
            close: next.close,
            volume: self.volume + next.volume,
        }
    }

    /// Divides a day into hours, an hour into minutes, or a minute into seconds. Seconds have no wicks: the
    /// price moves only once, from the open to the close.
    pub(super) fn divide(
        &self,
        parts: &mut [DemoCandle],
        has_wicks: bool,
        random: &mut RandomStream,
    ) {
        let range = self.high - self.low;
        let (least, more) =
            if has_wicks { (1 + range / MIN_WICK, range / (2 * MIN_WICK)) } else { (0, 0) };
        let margin = least + more + random.below(more + 1);
        let waypoints = self.waypoints(parts.len(), margin, random);
        self.walk(parts, &waypoints, random);
        for part in parts.iter_mut() {
            // At most half way to the parent's high or low: only one part should reach it.
            let mut wick = |room: i64| (least + random.below(more + 1)).min((room + 1) / 2);
            let (top, bottom) = (part.open.max(part.close), part.open.min(part.close));
            part.high = top + wick(self.high - top);
            part.low = bottom - wick(bottom - self.low);
        }
        for turn in &waypoints[1..waypoints.len() - 1] {
            // The part that ends at a turning point gets the parent's high or low.
            let part = &mut parts[turn.at - 1];
            match turn.price * 2 > self.high + self.low {
                true => part.high = self.high,
                false => part.low = self.low,
            }
        }
        self.distribute_volume(parts, random);
    }

    /// Chooses the waypoints: the start of the path, its turning points near the high and the low, and its
    /// end. The turning points are `margin` below the high and above the low. At least a sixth of the parts
    /// are between each of them and the nearer end, and at least a quarter between the two. A high or low
    /// that is the open or close has no turning point.
    fn waypoints(&self, parts: usize, margin: i64, random: &mut RandomStream) -> Vec<Waypoint> {
        let n = parts as i64;
        let first = n / 6 + random.below(n / 3 + 1);
        let second = first + n / 4 + random.below(n - n / 6 - first - n / 4 + 1);
        let (top, bottom) = (self.open.max(self.close), self.open.min(self.close));
        let high = self.high - margin.min(self.high - top);
        let low = self.low + margin.min(bottom - self.low);
        let mut turns = [(self.low < bottom).then_some(low), (self.high > top).then_some(high)];
        // A rising candle usually has its low before its high.
        let is_exception = random.below(4) == 0;
        if (self.close > self.open) == is_exception {
            turns.reverse();
        }
        let turns = turns.into_iter().zip([first, second]);
        let turns = turns.filter_map(|(price, at)| Some((at as usize, price?)));
        let path = std::iter::once((0, self.open)).chain(turns).chain([(parts, self.close)]);
        path.map(|(at, price)| Waypoint { at, price }).collect()
    }

    /// Sets the opens and closes of the parts by a random walk from waypoint to waypoint. A slope
    /// is added, so that the walk arrives, and the walk is reflected into the parent's range.
    fn walk(&self, parts: &mut [DemoCandle], waypoints: &[Waypoint], random: &mut RandomStream) {
        let range = self.high - self.low;
        let steps = if parts.len() < 60 { STEP_OF_24 } else { STEP_OF_60 };
        // If the price can move at all, a step is at least one tick.
        let step = (range / steps).max(range.min(1));
        for two in waypoints.windows(2) {
            let (from, to) = (&two[0], &two[1]);
            let mut walked = 0;
            for part in &mut parts[from.at..to.at] {
                walked += random.around(step);
                part.close = walked;
            }
            // Prices with 32 binary places. Rounding to the nearest tick compensates for the
            // rounding of the slope, so the last part closes at the waypoint.
            let length = (to.at - from.at).max(1) as i64;
            let slope = ((to.price - from.price - walked) << 32) / length;
            let mut line = (from.price << 32) + (1 << 31);
            for part in &mut parts[from.at..to.at] {
                line += slope;
                part.close = self.reflect((line >> 32) + part.close);
            }
        }
        let mut open = self.open;
        for part in parts {
            part.open = open;
            open = part.close;
        }
    }

    /// Reflects a price that is outside of the range at the high or low, and limits it to the range.
    fn reflect(&self, price: i64) -> i64 {
        let reflected = price.min(2 * self.high - price).max(2 * self.low - price);
        reflected.clamp(self.low, self.high)
    }

    /// Distributes the volume over the parts, whose prices are already set: at random, and more to
    /// parts in which the price moves more.
    fn distribute_volume(&self, parts: &mut [DemoCandle], random: &mut RandomStream) {
        let range = (self.high - self.low).max(1);
        let weigh = |part: &DemoCandle| {
            let width = part.high - part.low;
            WEIGHT / 4 + random.below(WEIGHT) + WEIGHT * width / range
        };
        let weights: Vec<i64> = parts.iter().map(weigh).collect();
        let sum: i64 = weights.iter().sum();
        // After each part, the sums of weights and volumes are in proportion, rounded down. So
        // after the last part the volume is exact.
        let (mut weight_so_far, mut volume_so_far) = (0, 0);
        for (part, weight) in parts.iter_mut().zip(weights) {
            weight_so_far += weight;
            let volume = self.volume * weight_so_far / sum;
            part.volume = volume - std::mem::replace(&mut volume_so_far, volume);
        }
    }
}

/// A stream of pseudorandom numbers.
pub(super) struct RandomStream(Rng);

impl RandomStream {
    /// The stream for the `index`-th item of the kind `tag`, under `key`.
    pub(super) fn new(key: u64, tag: u64, index: i64) -> RandomStream {
        RandomStream(Rng::new(mix(mix(key ^ tag.wrapping_mul(GOLDEN)) ^ index as u64)))
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number, from 0 to `end - 1`. `end` is at least 1.
    pub(super) fn below(&mut self, end: i64) -> i64 {
        debug_assert!(end > 0);
        self.0.below(end as u64) as i64
    }

    /// The next number, from `-most` to `most`.
    pub(super) fn around(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
}

/// Derives the key for `name` from another key.
pub(super) fn derive_key(key: u64, name: &str) -> u64 {
    name.bytes().fold(mix(key ^ GOLDEN), |key, byte| mix(key ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A candle of any shape: flat ones, narrow ones, without volume.
    fn any_candle(random: &mut RandomStream) -> DemoCandle {
        let pick = |random: &mut RandomStream, list: &[i64]| {
            list[random.below(list.len() as i64) as usize]
        };
        let range = pick(random, &[0, 1, 2, 3, 5, 12, 100, 3000, 100_000]);
        let low = 500 + random.below(10_000_000);
        let price = |random: &mut RandomStream| match random.below(4) {
            0 => low,
            1 => low + range,
            _ => low + random.below(range + 1),
        };
        let (open, close) = (price(random), price(random));
        let volume = pick(random, &[0, 1, 2, 59, 1000, 1_000_000_000, 2_000_000_000_000]);
        DemoCandle { open, high: low + range, low, close, volume }
    }

    #[track_caller]
    fn check_parts(parent: &DemoCandle, parts: &[DemoCandle], label: &str) {
        let mut open = parent.open;
        for part in parts {
            assert_eq!(part.open, open, "{label}");
            open = part.close;
            assert!(part.low <= part.open.min(part.close), "{label}");
            assert!(part.high >= part.open.max(part.close), "{label}");
            assert!(part.volume >= 0, "{label}");
        }
        let whole = DemoCandle {
            open: parts[0].open,
            high: parts.iter().map(|part| part.high).max().expect("there are parts"),
            low: parts.iter().map(|part| part.low).min().expect("there are parts"),
            close: open,
            volume: parts.iter().map(|part| part.volume).sum(),
        };
        assert_eq!(whole, *parent, "{label}");
    }

    #[test]
    fn any_candle_is_what_its_parts_make() {
        for seed in 0..6000 {
            let mut random = RandomStream::new(seed, 0, 0);
            let parent = any_candle(&mut random);
            let range = parent.high - parent.low;
            let label = format!("seed {seed}: {parent:?}");

            // An hour, a minute and a second, and the widest one of each, in hundredths of the parent.
            for (count, has_wicks, most) in [(24, true, 61), (60, true, 38), (60, false, 27)] {
                let mut parts = vec![DemoCandle::default(); count];
                parent.divide(&mut parts, has_wicks, &mut random);
                check_parts(&parent, &parts, &label);
                let widest =
                    parts.iter().map(|part| part.high - part.low).max().expect("there are parts");
                assert!(widest * 100 <= range * most + 600, "{label}");
                let wick =
                    |part: &DemoCandle| part.high - part.low - (part.close - part.open).abs();
                assert!(has_wicks || parts.iter().all(|part| wick(part) == 0), "{label}");
            }
        }
    }

    #[test]
    fn parts_do_not_depend_on_what_their_array_held() {
        let mut random = RandomStream::new(1, 0, 0);
        let mut used = [DemoCandle::default(); 60];
        for (seed, has_wicks) in (0..200).flat_map(|seed| [(seed, true), (seed, false)]) {
            let (parent, mut fresh) = (any_candle(&mut random), [DemoCandle::default(); 60]);
            parent.divide(&mut used, has_wicks, &mut RandomStream::new(seed, 0, 0));
            parent.divide(&mut fresh, has_wicks, &mut RandomStream::new(seed, 0, 0));
            assert_eq!(used, fresh);
        }
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut random = RandomStream::new(1, 2, 3);
        let mut seen = [0; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] += 1;
            assert!((-3..=3).contains(&random.around(3)));
        }
        assert!(seen.iter().all(|count| *count > 80), "{seen:?}");
        assert_eq!(random.below(1), 0);
        assert_eq!(random.around(0), 0);
    }

    #[test]
    fn names_and_places_have_streams_of_their_own() {
        assert_ne!(derive_key(1, "BTC"), derive_key(2, "BTC"));
        assert_ne!(derive_key(1, "BTC"), derive_key(1, "CTB"));
        assert_ne!(RandomStream::new(1, 1, 7).bits(), RandomStream::new(1, 1, 8).bits());
        assert_ne!(RandomStream::new(1, 1, 7).bits(), RandomStream::new(1, 2, 7).bits());
    }
}
