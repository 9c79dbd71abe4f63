//! The tape of one market: the candle of any span of seconds.
//!
//! Owns the way from a day down to its seconds and, as a memory, the division it made last at
//! each depth: whoever walks along the tape makes each one once. It never depends on that
//! memory: a tape that was made this moment says the same.
//!
//! A second's price is where its candle closes, and holds from its first millisecond on. So a
//! candle that is still forming ends with the second that is running, and at its last
//! millisecond it is what it will always be.

use super::assets::Market;
use super::candle::Candle;
use super::random::Random;

pub(super) const MINUTE: i64 = 60;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// How far a day's high lies above its body, and its low below, in millionths: at least, and
/// the factors of a product that favours the small. With the most that anchors move in a day
/// (9.9 %, of a coin in another coin) a day's range is at most 14.3 % of its low.
const LEAST_WICK: i64 = 2500;
const WICK_FACTOR: i64 = 130;

const DAY_TAG: u64 = 1;
const HOURS_TAG: u64 = 2;
const MINUTES_TAG: u64 = 3;
const SECONDS_TAG: u64 = 4;

pub(super) struct Tape<'a> {
    market: &'a Market,
    seed: u64,
    key: u64,
    /// Each with the number of what was divided, counted from the epoch.
    day: (i64, Candle),
    hours: (i64, [Candle; 24]),
    minutes: (i64, [Candle; 60]),
    seconds: (i64, [Candle; 60]),
}

/// No day, hour or minute has this number.
const NONE: i64 = i64::MIN;

impl Tape<'_> {
    pub(super) fn new(seed: u64, market: &Market) -> Tape<'_> {
        Tape {
            market,
            seed,
            key: market.key(seed),
            day: (NONE, Candle::default()),
            hours: (NONE, [Candle::default(); 24]),
            minutes: (NONE, [Candle::default(); 60]),
            seconds: (NONE, [Candle::default(); 60]),
        }
    }

    /// The candle from one second to before another one, both counted from the epoch. `from` is
    /// before `to`, and not before the epoch.
    pub(super) fn span(&mut self, from: i64, to: i64) -> Candle {
        debug_assert!(0 <= from && from < to);
        let (mut whole, mut at) = self.longest(from, to);
        while at < to {
            let (part, end) = self.longest(at, to);
            whole = whole.then(&part);
            at = end;
        }
        whole
    }

    /// The longest of day, hour, minute and second that begins here and ends in time, with its
    /// end.
    fn longest(&mut self, at: i64, to: i64) -> (Candle, i64) {
        let fits = |length| at % length == 0 && at + length <= to;
        if fits(DAY) {
            (self.day(at / DAY), at + DAY)
        } else if fits(HOUR) {
            (self.hour(at / HOUR), at + HOUR)
        } else if fits(MINUTE) {
            (self.minute(at / MINUTE), at + MINUTE)
        } else {
            (self.second(at), at + 1)
        }
    }

    fn day(&mut self, number: i64) -> Candle {
        if self.day.0 != number {
            // Where the day before closed, this one opens: whoever walks has that already.
            let open = if self.day.0.checked_add(1) == Some(number) {
                self.day.1.close
            } else {
                self.market.anchor(self.seed, number)
            };
            self.day = (number, self.make_day(number, open));
        }
        self.day.1
    }

    fn make_day(&self, number: i64, open: i64) -> Candle {
        let mut random = Random::new(self.key, DAY_TAG, number);
        let close = self.market.anchor(self.seed, number + 1);
        let (top, bottom) = (open.max(close), open.min(close));
        let mut wick = |price: i64| {
            let chance = random.below(WICK_FACTOR) * random.below(WICK_FACTOR);
            1 + price * (LEAST_WICK + chance) / 1_000_000
        };
        let (high, low) = (top + wick(top), bottom - wick(bottom));
        let half_volume = self.market.half_turnover() / 100 * (60 + random.below(80));
        Candle {
            open,
            high,
            low,
            close,
            half_volume,
            half_turnover: half_volume * (open + high + low + close) / 4,
            trades: self.market.trades,
        }
    }

    fn hour(&mut self, number: i64) -> Candle {
        let day = number.div_euclid(24);
        if self.hours.0 != day {
            let mut random = Random::new(self.key, HOURS_TAG, day);
            self.day(day).divide(&mut self.hours.1, &mut random);
            self.hours.0 = day;
        }
        self.hours.1[number.rem_euclid(24) as usize]
    }

    fn minute(&mut self, number: i64) -> Candle {
        let hour = number.div_euclid(60);
        if self.minutes.0 != hour {
            let mut random = Random::new(self.key, MINUTES_TAG, hour);
            self.hour(hour).divide(&mut self.minutes.1, &mut random);
            self.minutes.0 = hour;
        }
        self.minutes.1[number.rem_euclid(60) as usize]
    }

    fn second(&mut self, number: i64) -> Candle {
        let minute = number.div_euclid(60);
        if self.seconds.0 != minute {
            let mut random = Random::new(self.key, SECONDS_TAG, minute);
            self.minute(minute)
                .seconds(&mut self.seconds.1, &mut random);
            self.seconds.0 = minute;
        }
        self.seconds.1[number.rem_euclid(60) as usize]
    }
}
