//! The candle generator of the demo exchange: makes the candle of any span of seconds.
//!
//! A [`Generator`] makes a day's candle from the two midnight prices around it, and divides it into
//! hours, these into minutes and those into seconds. It caches the last division at each depth, so
//! going through consecutive candles divides each parent once. The cache never changes a result.
//!
//! The price during a second is the close of its candle, from its first millisecond on. So a forming
//! candle includes the current second, and in its last millisecond it has its final values.

use super::assets::Market;
use super::candle::Candle;
use super::random::Random;

pub(super) const MINUTE: i64 = 60;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// The shortest wick of a day, in millionths of the price. A wick is how far the high is above the
/// larger, or the low below the smaller, of open and close.
const MIN_WICK: i64 = 2500;
/// Wicks are longer by the product of two random numbers below this, which favours short wicks.
/// Midnight prices change by at most 9.9 % a day (a coin in another coin), so a day's range is at
/// most 14.3 % of its low.
const WICK_FACTOR: i64 = 130;

const DAY_TAG: u64 = 1;
const HOURS_TAG: u64 = 2;
const MINUTES_TAG: u64 = 3;
const SECONDS_TAG: u64 = 4;

/// Generates the candles of one market. See the module documentation.
pub(super) struct Generator<'a> {
    market: &'a Market,
    seed: u64,
    key: u64,
    // The caches. The first number is that of the day, hour or minute, counted from the epoch.
    day: (i64, Candle),
    /// A day's hours; below, an hour's minutes and a minute's seconds.
    hours: (i64, [Candle; 24]),
    minutes: (i64, [Candle; 60]),
    seconds: (i64, [Candle; 60]),
}

/// The number of no day, hour or minute: nothing is cached.
const NONE: i64 = i64::MIN;

impl Generator<'_> {
    pub(super) fn new(seed: u64, market: &Market) -> Generator<'_> {
        Generator {
            market,
            seed,
            key: market.key(seed),
            day: (NONE, Candle::default()),
            hours: (NONE, [Candle::default(); 24]),
            minutes: (NONE, [Candle::default(); 60]),
            seconds: (NONE, [Candle::default(); 60]),
        }
    }

    /// The candle of the seconds `from..to`, counted from the epoch. `from` is at least 0 and less
    /// than `to`.
    pub(super) fn candle(&mut self, from: i64, to: i64) -> Candle {
        debug_assert!(0 <= from && from < to);
        let (mut whole, mut at) = self.longest_from(from, to);
        while at < to {
            let (part, end) = self.longest_from(at, to);
            whole = whole.then(&part);
            at = end;
        }
        whole
    }

    /// The candle of the longest day, hour, minute or second that starts at `at` and ends by `to`,
    /// and its end.
    fn longest_from(&mut self, at: i64, to: i64) -> (Candle, i64) {
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
            // A day opens where the day before it closed, and that one is often cached.
            let open = if self.day.0.checked_add(1) == Some(number) {
                self.day.1.close
            } else {
                self.market.midnight_price(self.seed, number)
            };
            self.day = (number, self.make_day(number, open));
        }
        self.day.1
    }

    fn make_day(&self, number: i64, open: i64) -> Candle {
        let mut random = Random::new(self.key, DAY_TAG, number);
        let close = self.market.midnight_price(self.seed, number + 1);
        let (top, bottom) = (open.max(close), open.min(close));
        let mut wick = |price: i64| {
            let more = random.below(WICK_FACTOR) * random.below(WICK_FACTOR);
            1 + price * (MIN_WICK + more) / 1_000_000
        };
        let (high, low) = (top + wick(top), bottom - wick(bottom));
        let half_volume = self.market.half_daily_volume() / 100 * (60 + random.below(80));
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
            self.minute(minute).divide_into_seconds(&mut self.seconds.1, &mut random);
            self.seconds.0 = minute;
        }
        self.seconds.1[number.rem_euclid(60) as usize]
    }
}
