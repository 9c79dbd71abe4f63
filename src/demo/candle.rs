//! A candle of the demo exchange, and its division into shorter candles.
//!
//! [`Candle::then`] joins two consecutive candles; [`Candle::divide`] and
//! [`Candle::divide_into_seconds`] are its inverse. A candle does not know its time: what differs
//! from one time to another comes from the [`Random`] that the caller passes.
//!
//! Invariant of a division, exact and tested: the first part opens where the parent opens, each
//! other part where the one before it closed, and the last part closes where the parent closes; the
//! highest high and the lowest low are the parent's; volumes and turnovers sum to the parent's; and
//! the turnover of each part is between `low * volume` and `high * volume`.

use super::random::Random;

/// A candle with its prices in ticks, its volume in steps and its turnover in ticks times steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candle {
    pub(super) open: i64,
    pub(super) high: i64,
    pub(super) low: i64,
    pub(super) close: i64,
    pub(super) volume: i64,
    /// What was paid for `volume`.
    pub(super) turnover: i64,
}

/// The largest step of the random walk is the parent's range divided by this: where it is divided
/// into 24 parts, and where it is divided into 60.
///
/// With [`MIN_WICK`] and [`Candle::waypoints`], this bounds the range of a part:
///
/// - A random step counts twice: once itself, once in the slope that compensates for it.
/// - The straight line between two waypoints has at least a sixth of the parts, so it takes at most
///   `6 / parts` of the range in each of them.
/// - A wick is at most 0.047 of the range, or 0.063 where it reaches the parent's high or low.
///
/// So an hour's range is at most 0.61 of its day's, a minute's 0.38 of its hour's, and a second's
/// 0.27 of its minute's. A day's range is at most 14.3 % (see `generator`). So a price changes in a
/// second by at most 0.9 %, and by six ticks for roundings.
const STEP_OF_24: i64 = 8;
const STEP_OF_60: i64 = 12;

/// The shortest wick of a part is the parent's range divided by this, plus a tick. The longest is
/// half as long again, or twice as long where it reaches the parent's high or low.
const MIN_WICK: i64 = 32;

/// A point on the price's path: after `at` parts, the price is `price`.
struct Waypoint {
    at: usize,
    price: i64,
}

impl Candle {
    /// Joins this candle and the one right after it.
    pub(super) fn then(&self, next: &Candle) -> Candle {
        debug_assert_eq!(self.close, next.open);
        Candle {
            open: self.open,
            high: self.high.max(next.high),
            low: self.low.min(next.low),
            close: next.close,
            volume: self.volume + next.volume,
            turnover: self.turnover + next.turnover,
        }
    }

    /// Divides a day into hours, or an hour into minutes.
    pub(super) fn divide(&self, parts: &mut [Candle], random: &mut Random) {
        let range = self.high - self.low;
        let (least, more) = (1 + range / MIN_WICK, range / (2 * MIN_WICK));
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

    /// Divides a minute into seconds. A second has no wicks: its price moves once, from its open to
    /// its close. If the minute's range is two ticks or more, the price moves in every second.
    pub(super) fn divide_into_seconds(&self, parts: &mut [Candle], random: &mut Random) {
        let waypoints = self.waypoints(60, 0, random);
        self.walk(parts, &waypoints, random);
        if self.high - self.low >= 2 {
            self.move_flat_seconds(parts, &waypoints);
        }
        for part in parts.iter_mut() {
            part.high = part.open.max(part.close);
            part.low = part.open.min(part.close);
        }
        self.distribute_volume(parts, random);
    }

    /// Chooses the waypoints: the start of the path, its turning points near the high and the low, and its
    /// end. The turning points are `margin` below the high and above the low; at least a sixth of the
    /// parts are between them and the ends, and a quarter between the two. A high or low that is the open
    /// or close has no turning point.
    fn waypoints(&self, parts: usize, margin: i64, random: &mut Random) -> Vec<Waypoint> {
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
    fn walk(&self, parts: &mut [Candle], waypoints: &[Waypoint], random: &mut Random) {
        let range = self.high - self.low;
        let steps = if parts.len() < 60 { STEP_OF_24 } else { STEP_OF_60 };
        // A price that may move at all moves by whole ticks.
        let step = (range / steps).max(range.min(1));
        for two in waypoints.windows(2) {
            let (from, to) = (&two[0], &two[1]);
            let mut walked = 0;
            for part in &mut parts[from.at..to.at] {
                walked += random.around(step);
                part.close = walked;
            }
            // Prices with 32 binary places. Rounding to the nearest tick makes up for what the
            // division of the slope cuts off, so the last part closes at the waypoint.
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

    /// Moves each close that equals its own open, or a waypoint right after it, by one or two ticks.
    /// The range has three prices or more, so one of them is neither.
    fn move_flat_seconds(&self, parts: &mut [Candle], waypoints: &[Waypoint]) {
        let fixed_at = |at: usize| Some(waypoints.iter().find(|point| point.at == at)?.price);
        for at in 1..60 {
            let (open, close) = (parts[at - 1].open, parts[at - 1].close);
            let next = fixed_at(at + 1);
            let moves = |price: &i64| *price != open && Some(*price) != next;
            if moves(&close) || fixed_at(at).is_some() {
                continue;
            }
            let near = [close + 1, close - 1, close + 2, close - 2];
            let moved = near
                .into_iter()
                .find(|price| (self.low..=self.high).contains(price) && moves(price))
                .expect("one of three prices is neither the open nor the waypoint");
            parts[at - 1].close = moved;
            parts[at].open = moved;
        }
    }

    /// Distributes volume and turnover over the parts, whose prices are set.
    fn distribute_volume(&self, parts: &mut [Candle], random: &mut Random) {
        let weights = self.weights(parts, random);
        let mut volume = Split::new(self.volume, weights.iter().sum());
        for (part, weight) in parts.iter_mut().zip(weights) {
            part.volume = volume.next(weight);
        }
        let whole = self.shift_volume(parts);
        // Each part costs at least its low; the rest of the turnover is split by the parts' widths.
        let mut above_least = Split::new(self.turnover - whole.least, whole.width);
        for part in parts {
            let costs = CostRange::of(&[*part]);
            part.turnover = costs.least + above_least.next(costs.width);
        }
    }

    /// The weights by which the parts share the volume: random, and larger where the price moves.
    /// The parts above and below the parent's average price are then scaled, so that the average
    /// price of all parts is about the parent's.
    fn weights(&self, parts: &[Candle], random: &mut Random) -> Vec<i64> {
        // A part as wide as the parent gets as much for its width as the random part of a weight
        // is at most. With 32 binary places.
        let per_tick = (4096 << 32) / (self.high - self.low).max(1);
        let twice_average = 2 * self.turnover / self.volume.max(1);
        // Twice the distance of the part's middle from the average price.
        let distance = |part: &Candle| part.low + part.high - twice_average;
        let (mut above, mut below) = (0, 0);
        let weigh = |part: &Candle| {
            let weight = 1024 + random.below(4096) + (((part.high - part.low) * per_tick) >> 32);
            above += weight * distance(part).max(0);
            below -= weight * distance(part).min(0);
            weight
        };
        let mut weights: Vec<i64> = parts.iter().map(weigh).collect();
        if above == 0 || below == 0 {
            return weights;
        }
        let most = above.max(below);
        let (scale_above, scale_below) = (1 + 63 * below / most, 1 + 63 * above / most);
        for (weight, part) in weights.iter_mut().zip(parts) {
            *weight *= if distance(part) > 0 { scale_above } else { scale_below };
        }
        weights
    }

    /// Shifts volume between the parts until they can have the parent's turnover: it must be
    /// between the cost of their volumes at their lows and at their highs. Returns that range.
    ///
    /// With the volumes by [`weights`](Self::weights), it nearly always is. If not, half the volume
    /// of every part goes to one that contains the average price, again and again. With all of the
    /// volume in that part the turnover is possible, so this ends.
    fn shift_volume(&self, parts: &mut [Candle]) -> CostRange {
        let mut costs = CostRange::of(parts);
        if costs.contains(self.turnover) {
            return costs;
        }
        let with_all = |part: &Candle| Candle { volume: self.volume, ..*part };
        let target = (parts.iter())
            .position(|part| CostRange::of(&[with_all(part)]).contains(self.turnover))
            .expect("parts that chain leave no gap between two prices next to each other");
        while !costs.contains(self.turnover) {
            let mut shifted = self.volume;
            for part in parts.iter_mut() {
                part.volume /= 2;
                shifted -= part.volume;
            }
            parts[target].volume += shifted;
            costs = CostRange::of(parts);
        }
        costs
    }
}

/// The possible turnovers of a volume: from `least`, at the lowest price, to `least + width`, at the
/// highest.
#[derive(Clone, Copy)]
struct CostRange {
    least: i64,
    width: i64,
}

impl CostRange {
    fn of(parts: &[Candle]) -> CostRange {
        let width = |part: &Candle| (part.high - part.low) * part.volume;
        CostRange {
            least: parts.iter().map(|part| part.low * part.volume).sum(),
            width: parts.iter().map(width).sum(),
        }
    }

    fn contains(self, turnover: i64) -> bool {
        (self.least..=self.least + self.width).contains(&turnover)
    }
}

/// Splits a total in proportion to weights, into whole numbers that sum to the total. If the total
/// is at most the sum of the weights, no part is larger than its weight.
///
/// After each part, the sum of the parts is `rate` times the sum of their weights, rounded down.
/// `rate` is rounded up by less than 2^-64. After the last part this adds less than one, so the sum
/// is exact. It never raises a rate of at most 1 above 1.
struct Split {
    /// `total / sum of all weights`, with 64 binary places.
    rate: u128,
    /// The sum of the weights so far.
    weights: i64,
    /// The sum of the parts so far.
    parts: i64,
}

impl Split {
    fn new(total: i64, weights: i64) -> Split {
        Split {
            rate: ((total as u128) << 64).div_ceil(weights.max(1) as u128),
            weights: 0,
            parts: 0,
        }
    }

    /// The part for the next weight.
    fn next(&mut self, weight: i64) -> i64 {
        self.weights += weight;
        let parts = ((self.weights as u128 * self.rate) >> 64) as i64;
        parts - std::mem::replace(&mut self.parts, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A candle of any shape: flat ones, narrow ones, without volume, with a turnover at the
    /// very edge of what is possible.
    fn any_candle(random: &mut Random) -> Candle {
        let pick =
            |random: &mut Random, list: &[i64]| list[random.below(list.len() as i64) as usize];
        let range = pick(random, &[0, 1, 2, 3, 5, 12, 100, 3000, 100_000]);
        let low = 500 + random.below(10_000_000);
        let price = |random: &mut Random| match random.below(4) {
            0 => low,
            1 => low + range,
            _ => low + random.below(range + 1),
        };
        let (open, close) = (price(random), price(random));
        let volume = pick(random, &[0, 1, 2, 59, 1000, 1_000_000_000]);
        let room = range * volume;
        let above = match random.below(4) {
            0 => 0,
            1 => room,
            _ => random.below(room + 1),
        };
        Candle { open, high: low + range, low, close, volume, turnover: low * volume + above }
    }

    #[track_caller]
    fn check_parts(parent: &Candle, parts: &[Candle], label: &str) {
        let mut open = parent.open;
        for part in parts {
            assert_eq!(part.open, open, "{label}");
            open = part.close;
            assert!(part.low <= part.open.min(part.close), "{label}");
            assert!(part.high >= part.open.max(part.close), "{label}");
            assert!(part.volume >= 0, "{label}");
            assert!(part.low * part.volume <= part.turnover, "{label}");
            assert!(part.high * part.volume >= part.turnover, "{label}");
        }
        let sum = |figure: fn(&Candle) -> i64| parts.iter().map(figure).sum::<i64>();
        let whole = Candle {
            open: parts[0].open,
            high: parts.iter().map(|part| part.high).max().unwrap(),
            low: parts.iter().map(|part| part.low).min().unwrap(),
            close: open,
            volume: sum(|part| part.volume),
            turnover: sum(|part| part.turnover),
        };
        assert_eq!(whole, *parent, "{label}");
    }

    #[test]
    fn any_candle_is_what_its_parts_make() {
        for seed in 0..6000 {
            let mut random = Random::new(seed, 0, 0);
            let parent = any_candle(&mut random);
            let range = parent.high - parent.low;
            let label = format!("seed {seed}: {parent:?}");

            let mut hours = [Candle::default(); 24];
            parent.divide(&mut hours, &mut random);
            check_parts(&parent, &hours, &label);
            let widest = |parts: &[Candle]| {
                let ranges = parts.iter().map(|part| part.high - part.low);
                ranges.max().unwrap()
            };
            assert!(widest(&hours) * 100 <= range * 61 + 600, "{label}");

            let mut minutes = [Candle::default(); 60];
            parent.divide(&mut minutes, &mut random);
            check_parts(&parent, &minutes, &label);
            assert!(widest(&minutes) * 100 <= range * 38 + 600, "{label}");

            let mut seconds = [Candle::default(); 60];
            parent.divide_into_seconds(&mut seconds, &mut random);
            check_parts(&parent, &seconds, &label);
            assert!(widest(&seconds) * 100 <= range * 27 + 600, "{label}");
            let still = seconds.iter().any(|second| second.open == second.close);
            assert!(range < 2 || !still, "{label}");
        }
    }

    #[test]
    fn parts_do_not_depend_on_what_their_array_held() {
        let mut random = Random::new(1, 0, 0);
        let (mut used, mut fresh) = ([Candle::default(); 60], [Candle::default(); 60]);
        for seed in 0..200 {
            let parent = any_candle(&mut random);
            fresh.fill(Candle::default());
            parent.divide(&mut used, &mut Random::new(seed, 0, 0));
            parent.divide(&mut fresh, &mut Random::new(seed, 0, 0));
            assert_eq!(used, fresh);
            fresh.fill(Candle::default());
            parent.divide_into_seconds(&mut used, &mut Random::new(seed, 0, 0));
            parent.divide_into_seconds(&mut fresh, &mut Random::new(seed, 0, 0));
            assert_eq!(used, fresh);
        }
    }

    #[test]
    fn a_split_is_exact_and_no_part_exceeds_its_weight() {
        for seed in 0..3000 {
            let mut random = Random::new(seed, 1, 0);
            let most = 1 << random.below(50);
            let shares: Vec<i64> = (0..60).map(|_| random.below(most)).collect();
            let whole: i64 = shares.iter().sum();
            for total in [0, 1, whole / 3, whole, random.below(whole + 1), 1 << 61] {
                if whole == 0 {
                    continue;
                }
                let mut split = Split::new(total, whole);
                let parts: Vec<i64> = shares.iter().map(|share| split.next(*share)).collect();
                assert_eq!(parts.iter().sum::<i64>(), total, "seed {seed}");
                for (part, share) in parts.iter().zip(&shares) {
                    assert!(*part >= 0 && (total > whole || part <= share), "seed {seed}");
                    assert!(*share > 0 || *part == 0, "seed {seed}");
                }
            }
        }
    }
}
