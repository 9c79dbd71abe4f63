//! A candle of the demo exchange, and how it is divided into shorter ones.
//!
//! Owns the arithmetic of one candle: [`Candle::then`] joins neighbours, [`Candle::divide`] and
//! [`Candle::seconds`] are its inverse. It never knows where in time a candle stands: that is in
//! the [`Random`] it is given.
//!
//! Law of division, exact and tested: the first child opens where the parent opens, each other
//! one where its neighbour closed, the last closes where the parent closes; the highest high and
//! the lowest low are the parent's; volumes, turnovers and trades sum to the parent's; and each
//! candle's turnover lies between `low * volume` and `high * volume`.

use super::random::Random;

/// Prices in ticks, amounts in steps, turnover in ticks times steps.
///
/// Takers bought one half of everything that is traded. So it is halves that are counted: the
/// takers' columns then are as exact as the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candle {
    pub(super) open: i64,
    pub(super) high: i64,
    pub(super) low: i64,
    pub(super) close: i64,
    /// Half of the steps that changed hands.
    pub(super) half_volume: i64,
    /// What was paid for that half.
    pub(super) half_turnover: i64,
    pub(super) trades: i64,
}

/// Farthest step of a path's noise is the parent's range divided by this: for hours, and for
/// minutes and seconds.
///
/// This, [`WICK`] and [`Candle::way`] bound a part. A step of the noise counts twice: itself, and
/// what the tilt takes back. The straight line to the next turn takes at least a sixth of the
/// parts, so at most `6 / parts` of the range in one of them; and wicks are at most 0.047, or 0.063
/// at an extreme. So a part's range is at most 0.61 of a day's for an hour and 0.38 of an hour's
/// for a minute, and a second moves by at most 0.27 of its minute's range. A day's range is at most
/// 14.3 % (see `tape`): one second never moves a price by more than 0.9 %, and six ticks for
/// what is rounded up on the way.
const STEP_OF_24: i64 = 8;
const STEP_OF_60: i64 = 12;

/// Least wick, beyond the body on each side: the parent's range divided by this, and a tick. The
/// longest is half as long again; one that reaches an extreme is at most twice as long.
const WICK: i64 = 32;

/// A point that the path passes through: after `at` parts, at `price`.
#[derive(Clone, Copy)]
struct Turn {
    at: usize,
    price: i64,
}

/// The way through a candle: begin, the turns at its extremes, end. One that has fewer than two
/// turns repeats its end.
type Way = [Turn; 4];

impl Candle {
    /// This candle and the one right behind it, as one.
    pub(super) fn then(&self, next: &Candle) -> Candle {
        debug_assert_eq!(self.close, next.open);
        Candle {
            open: self.open,
            high: self.high.max(next.high),
            low: self.low.min(next.low),
            close: next.close,
            half_volume: self.half_volume + next.half_volume,
            half_turnover: self.half_turnover + next.half_turnover,
            trades: self.trades + next.trades,
        }
    }

    /// Divides a day into hours, or an hour into minutes.
    pub(super) fn divide<const N: usize>(&self, parts: &mut [Candle; N], random: &mut Random) {
        let range = self.high - self.low;
        let (least, more) = (1 + range / WICK, range / (2 * WICK));
        let inside = least + more + random.below(more + 1);
        let way = self.way(N, inside, random);
        self.path(parts, &way, random);
        for part in parts.iter_mut() {
            // At most half way to the extreme: only the part that has it should touch it.
            let mut wick = |room: i64| (least + random.below(more + 1)).min((room + 1) / 2);
            let (top, bottom) = (part.open.max(part.close), part.open.min(part.close));
            part.high = top + wick(self.high - top);
            part.low = bottom - wick(bottom - self.low);
        }
        for turn in &way[1..3] {
            // The part before a turn has the extreme. Where the turn is the end instead, the
            // extreme is one of the parent's own ends, and the wicks have reached it already.
            let part = &mut parts[turn.at - 1];
            if turn.at < N && turn.price * 2 > self.high + self.low {
                part.high = self.high;
            } else if turn.at < N {
                part.low = self.low;
            }
        }
        self.share_out(parts, random);
    }

    /// Divides a minute into seconds. A second is one move of the price, from where it opens to
    /// where it closes; where the minute has a range of two ticks or more, every second moves.
    pub(super) fn seconds(&self, parts: &mut [Candle; 60], random: &mut Random) {
        let way = self.way(60, 0, random);
        self.path(parts, &way, random);
        if self.high - self.low >= 2 {
            self.stir(parts, &way);
        }
        for part in parts.iter_mut() {
            part.high = part.open.max(part.close);
            part.low = part.open.min(part.close);
        }
        self.share_out(parts, random);
    }

    /// Chooses where the extremes are reached, short of them by `inside`. They keep a sixth of the
    /// parts between them and the ends, and a quarter between them. An extreme that is one of the
    /// ends needs no turn.
    fn way(&self, parts: usize, inside: i64, random: &mut Random) -> Way {
        let n = parts as i64;
        let first = n / 6 + random.below(n / 3 + 1);
        let second = first + n / 4 + random.below(n - n / 6 - first - n / 4 + 1);
        let (top, bottom) = (self.open.max(self.close), self.open.min(self.close));
        let high = self.high - inside.min(self.high - top);
        let low = self.low + inside.min(bottom - self.low);
        // A candle that rises has more often been down first.
        let against_the_rule = random.below(4) == 0;
        let up_first = (self.close > self.open) == against_the_rule;
        let (up_at, down_at) = if up_first {
            (first, second)
        } else {
            (second, first)
        };
        let up = (self.high > top).then_some((up_at, high));
        let down = (self.low < bottom).then_some((down_at, low));
        let turns = if up_first { [up, down] } else { [down, up] };
        let end = Turn {
            at: parts,
            price: self.close,
        };
        let mut way = [end; 4];
        way[0] = Turn {
            at: 0,
            price: self.open,
        };
        for (place, (at, price)) in way[1..].iter_mut().zip(turns.into_iter().flatten()) {
            let at = at as usize;
            *place = Turn { at, price };
        }
        way
    }

    /// Opens and closes along the way: between two turns a random walk that is tilted so that it
    /// arrives, and folded back into the parent's range.
    fn path<const N: usize>(&self, parts: &mut [Candle; N], way: &Way, random: &mut Random) {
        let range = self.high - self.low;
        let step = if range == 0 {
            0
        } else {
            (range / if N < 60 { STEP_OF_24 } else { STEP_OF_60 }).max(1)
        };
        for two in way.windows(2) {
            let (from, to) = (two[0], two[1]);
            let mut walked = 0;
            for part in &mut parts[from.at..to.at] {
                walked += random.around(step);
                part.close = walked;
            }
            // Rounded to the nearest tick, so the last part arrives whatever the slope lost.
            let length = (to.at - from.at).max(1) as i64;
            let slope = ((to.price - from.price - walked) << 32) / length;
            let mut line = (from.price << 32) + (1 << 31);
            for part in &mut parts[from.at..to.at] {
                line += slope;
                part.close = self.fold((line >> 32) + part.close);
            }
        }
        let mut open = self.open;
        for part in parts {
            part.open = open;
            open = part.close;
        }
    }

    /// Mirrors a price at the extremes, so that it is inside them.
    fn fold(&self, price: i64) -> i64 {
        if price > self.high {
            (2 * self.high - price).max(self.low)
        } else if price < self.low {
            (2 * self.low - price).min(self.high)
        } else {
            price
        }
    }

    /// Moves each close that equals its open, or the turn right behind it, by one or two ticks.
    /// The range has three prices or more, and at most two are forbidden.
    fn stir(&self, parts: &mut [Candle; 60], way: &Way) {
        let turn_at = |at: usize| way.iter().find(|turn| turn.at == at).map(|turn| turn.price);
        for at in 1..60 {
            let (open, close) = (parts[at - 1].open, parts[at - 1].close);
            let behind = turn_at(at + 1);
            let good = |price: &i64| *price != open && Some(*price) != behind;
            if good(&close) || turn_at(at).is_some() {
                continue;
            }
            let near = [close + 1, close - 1, close + 2, close - 2];
            let moved = near
                .into_iter()
                .find(|price| (self.low..=self.high).contains(price) && good(price))
                .expect("one of three prices is neither the open nor the turn");
            parts[at - 1].close = moved;
            parts[at].open = moved;
        }
    }

    /// Deals out volume, turnover and trades to parts whose prices are known.
    fn share_out<const N: usize>(&self, parts: &mut [Candle; N], random: &mut Random) {
        if self.half_volume == 0 {
            for part in parts {
                (part.half_volume, part.half_turnover, part.trades) = (0, 0, 0);
            }
            return;
        }
        let weights = self.weights(parts, random);
        let mut weighed = Dealer::new(self.half_volume, weights.iter().sum());
        for (part, weight) in parts.iter_mut().zip(weights) {
            part.half_volume = weighed.deal(weight);
        }
        let costs = self.settle(parts);
        // What is paid above the lowest prices is dealt out by the room that each part has.
        let mut paid = Dealer::new(self.half_turnover - costs.least, costs.room);
        let mut trades = Dealer::new(self.trades, self.half_volume);
        for part in parts {
            let costs = Costs::of(part);
            part.half_turnover = costs.least + paid.deal(costs.room);
            part.trades = trades.deal(part.half_volume);
        }
    }

    /// How the parts share the volume: by chance, more where the price moves; and so that those
    /// above the parent's average price weigh as much against it as those below.
    fn weights<const N: usize>(&self, parts: &[Candle; N], random: &mut Random) -> [i64; N] {
        // As much for the whole range as chance gives, with 32 binary places.
        let per_tick = (4096 << 32) / (self.high - self.low).max(1);
        let twice_average = 2 * self.half_turnover / self.half_volume;
        let off = |part: &Candle| part.low + part.high - twice_average;
        let (mut above, mut below) = (0, 0);
        let weights = std::array::from_fn(|at| {
            let part = &parts[at];
            let weight = 1024 + random.below(4096) + (((part.high - part.low) * per_tick) >> 32);
            above += weight * off(part).max(0);
            below -= weight * off(part).min(0);
            weight
        });
        if above == 0 || below == 0 {
            return weights;
        }
        let most = above.max(below);
        let (up, down) = (1 + 63 * below / most, 1 + 63 * above / most);
        std::array::from_fn(|at| weights[at] * if off(&parts[at]) > 0 { up } else { down })
    }

    /// Makes the turnover possible: it must lie between what the parts' volumes cost at their
    /// lows and at their highs. The weights nearly always see to that; where they do not, volume
    /// goes to a part that the average price lies in, half of the others' at a time. With all of
    /// it there the turnover is possible, so this ends.
    fn settle<const N: usize>(&self, parts: &mut [Candle; N]) -> Costs {
        let mut costs = Costs::of_all(parts);
        if costs.allow(self.half_turnover) {
            return costs;
        }
        let whole = |part: &Candle| Candle {
            half_volume: self.half_volume,
            ..*part
        };
        let home = (parts.iter())
            .position(|part| Costs::of(&whole(part)).allow(self.half_turnover))
            .expect("parts that chain leave no gap between two prices next to each other");
        while !costs.allow(self.half_turnover) {
            let mut rest = self.half_volume;
            for part in parts.iter_mut() {
                part.half_volume /= 2;
                rest -= part.half_volume;
            }
            parts[home].half_volume += rest;
            costs = Costs::of_all(parts);
        }
        costs
    }
}

/// What a volume can cost: `least`, at the lowest price, up to `least + room`.
#[derive(Clone, Copy)]
struct Costs {
    least: i64,
    room: i64,
}

impl Costs {
    fn of(part: &Candle) -> Costs {
        Costs {
            least: part.low * part.half_volume,
            room: (part.high - part.low) * part.half_volume,
        }
    }

    fn of_all(parts: &[Candle]) -> Costs {
        let none = Costs { least: 0, room: 0 };
        parts.iter().map(Costs::of).fold(none, |sum, costs| Costs {
            least: sum.least + costs.least,
            room: sum.room + costs.room,
        })
    }

    fn allow(self, turnover: i64) -> bool {
        (self.least..=self.least + self.room).contains(&turnover)
    }
}

/// Deals out a total in proportion to shares, in whole numbers that sum to it. No share gets
/// more than itself where the total is not above the sum of the shares.
///
/// What has been dealt after some shares is `shares * rate`, cut to a whole number. `rate` is
/// rounded up by less than 2^-64: at the end that adds less than one, so the end is exact; and it
/// never lifts a rate of at most 1 above it.
struct Dealer {
    /// `total / sum of shares`, with 64 binary places.
    rate: u128,
    shares: i64,
    dealt: i64,
}

impl Dealer {
    fn new(total: i64, shares: i64) -> Dealer {
        Dealer {
            rate: ((total as u128) << 64).div_ceil(shares.max(1) as u128),
            shares: 0,
            dealt: 0,
        }
    }

    fn deal(&mut self, share: i64) -> i64 {
        self.shares += share;
        let until = ((self.shares as u128 * self.rate) >> 64) as i64;
        let part = until - self.dealt;
        self.dealt = until;
        part
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
        let half_volume = pick(random, &[0, 1, 2, 59, 1000, 1_000_000_000]);
        let room = range * half_volume;
        let above = match random.below(4) {
            0 => 0,
            1 => room,
            _ => random.below(room + 1),
        };
        Candle {
            open,
            high: low + range,
            low,
            close,
            half_volume,
            half_turnover: low * half_volume + above,
            trades: if half_volume == 0 {
                0
            } else {
                random.below(2_000_000)
            },
        }
    }

    #[track_caller]
    fn check_parts(parent: &Candle, parts: &[Candle], label: &str) {
        let mut open = parent.open;
        for part in parts {
            assert_eq!(part.open, open, "{label}");
            open = part.close;
            assert!(part.low <= part.open.min(part.close), "{label}");
            assert!(part.high >= part.open.max(part.close), "{label}");
            assert!(part.half_volume >= 0 && part.trades >= 0, "{label}");
            assert!(part.low * part.half_volume <= part.half_turnover, "{label}");
            assert!(
                part.high * part.half_volume >= part.half_turnover,
                "{label}"
            );
            assert!(part.half_volume > 0 || part.trades == 0, "{label}");
        }
        let sum = |figure: fn(&Candle) -> i64| parts.iter().map(figure).sum::<i64>();
        let whole = Candle {
            open: parts[0].open,
            high: parts.iter().map(|part| part.high).max().unwrap(),
            low: parts.iter().map(|part| part.low).min().unwrap(),
            close: open,
            half_volume: sum(|part| part.half_volume),
            half_turnover: sum(|part| part.half_turnover),
            trades: sum(|part| part.trades),
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
            parent.seconds(&mut seconds, &mut random);
            check_parts(&parent, &seconds, &label);
            assert!(widest(&seconds) * 100 <= range * 27 + 600, "{label}");
            let still = seconds.iter().any(|second| second.open == second.close);
            assert!(range < 2 || !still, "{label}");
        }
    }

    #[test]
    fn parts_do_not_hang_on_what_their_place_held() {
        let mut random = Random::new(1, 0, 0);
        let (mut used, mut fresh) = ([Candle::default(); 60], [Candle::default(); 60]);
        for seed in 0..200 {
            let parent = any_candle(&mut random);
            fresh.fill(Candle::default());
            parent.divide(&mut used, &mut Random::new(seed, 0, 0));
            parent.divide(&mut fresh, &mut Random::new(seed, 0, 0));
            assert_eq!(used, fresh);
            fresh.fill(Candle::default());
            parent.seconds(&mut used, &mut Random::new(seed, 0, 0));
            parent.seconds(&mut fresh, &mut Random::new(seed, 0, 0));
            assert_eq!(used, fresh);
        }
    }

    #[test]
    fn dealing_is_exact_and_gives_no_share_more_than_itself() {
        for seed in 0..3000 {
            let mut random = Random::new(seed, 1, 0);
            let most = 1 << random.below(50);
            let shares: Vec<i64> = (0..60).map(|_| random.below(most)).collect();
            let whole: i64 = shares.iter().sum();
            for total in [0, 1, whole / 3, whole, random.below(whole + 1), 1 << 61] {
                if whole == 0 {
                    continue;
                }
                let mut dealer = Dealer::new(total, whole);
                let parts: Vec<i64> = shares.iter().map(|share| dealer.deal(*share)).collect();
                assert_eq!(parts.iter().sum::<i64>(), total, "seed {seed}");
                for (part, share) in parts.iter().zip(&shares) {
                    assert!(
                        *part >= 0 && (total > whole || part <= share),
                        "seed {seed}"
                    );
                    assert!(*share > 0 || *part == 0, "seed {seed}");
                }
            }
        }
    }
}
