//! The two clocks, a type for the time of each, and the calendar that candles need.
//!
//! No other module reads a clock. Callers pass the time in, so a test can run a day in a second.
//!
//! [`Mono`] never goes backwards and has no date: it is for deadlines and ages. [`UnixMs`] is the
//! wall-clock time of bodies and candles; it jumps when somebody sets the clock.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds of one day.
pub const DAY_MS: i64 = 86_400_000;

/// A time by the monotonic clock: microseconds since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

/// A time by the wall clock: milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(pub i64);

/// The time by both clocks, read at the same moment: once per turn of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The time for deadlines and ages.
    pub mono: Mono,
    /// The time to show and store.
    pub unix: UnixMs,
}

/// The log and the probe report a larger difference between the clocks of an exchange and of this machine.
pub const TOLD_DIFFERENCE_MS: i64 = 2000;

/// Whose clock is ahead. `ms`: how far this machine's clock is ahead; negative if it is behind.
pub fn who_is_ahead(ms: i64) -> &'static str {
    if ms < 0 { "exchange" } else { "machine" }
}

/// The clocks of this process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The system's monotonic time at which [`Mono`] is zero, in microseconds.
    begin: u64,
}

impl Clock {
    /// A clock whose [`Mono`] is zero now.
    #[expect(clippy::new_without_default, reason = "reading a clock is no default value")]
    pub fn new() -> Clock {
        Clock { begin: clock_us(ClockId::Monotonic) }
    }

    /// The system's monotonic time in microseconds. Other programs can compare it with their own.
    pub fn system_us() -> u64 {
        clock_us(ClockId::Monotonic)
    }

    /// Reads both clocks.
    pub fn now(&self) -> Now {
        Now { mono: self.mono(), unix: unix_now() }
    }

    /// Reads the monotonic clock alone.
    #[inline]
    pub fn mono(&self) -> Mono {
        Mono(clock_us(ClockId::Monotonic).saturating_sub(self.begin))
    }
}

/// Both clocks, for a loop that reads them in every turn. The wall clock is read once every `WALL_EVERY`. In
/// between, the wall-clock time advances with the monotonic clock, which costs next to nothing. So a change
/// of the wall clock shows after at most `WALL_EVERY`.
#[derive(Clone, Copy, Debug)]
pub struct CachedClock {
    clock: Clock,
    read: Now,
}

/// How often [`CachedClock`] reads the wall clock. No time that is shown or stored needs more precision.
const WALL_EVERY: Duration = Duration::from_millis(10);

impl CachedClock {
    /// A cache for `clock`.
    pub fn new(clock: Clock) -> CachedClock {
        CachedClock { clock, read: clock.now() }
    }

    /// The time by both clocks.
    #[inline]
    pub fn now(&mut self) -> Now {
        let mono = self.clock.mono();
        let since = mono.0.saturating_sub(self.read.mono.0);
        if since >= WALL_EVERY.as_micros() as u64 {
            self.read = Now { mono, unix: unix_now() };
            return self.read;
        }
        Now { mono, unix: self.read.unix + (since / 1000) as i64 }
    }

    /// The time by the monotonic clock alone.
    pub fn mono(&self) -> Mono {
        self.clock.mono()
    }
}

/// A clock of the system in microseconds. The monotonic one counts from an arbitrary start. The standard
/// library's `Instant` reads the same clock, but takes three times the instructions to compute how much time
/// has passed; every turn of the loop computes that twice.
#[inline]
fn clock_us(clock: ClockId) -> u64 {
    let read = clock_gettime(clock);
    // The type of `tv_nsec` depends on the C library.
    read.tv_sec as u64 * 1_000_000 + read.tv_nsec as u64 / 1000
}

/// The wall-clock time. A clock set before 1970 reads as the epoch.
fn unix_now() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    UnixMs(since.map_or(0, |since| since.as_millis() as i64))
}

/// A clock that runs faster or slower than the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedClock {
    /// The time that it shows when the monotonic clock is zero, in milliseconds.
    pub zero: i64,
    /// How many of its milliseconds pass in one of the machine's. At 0 it stands still.
    pub speed: u32,
}

impl SimulatedClock {
    /// A clock that shows this time now.
    pub fn set(time: UnixMs, speed: u32, now: Mono) -> SimulatedClock {
        let clock = SimulatedClock { zero: 0, speed };
        SimulatedClock { zero: time - clock.time(now), speed }
    }

    /// The time that it shows now.
    pub fn time(&self, now: Mono) -> UnixMs {
        UnixMs(self.zero + (now.0.saturating_mul(self.speed.into()) / 1000) as i64)
    }
}

/// Time that this process has spent on a processor, in microseconds.
pub fn cpu_us() -> u64 {
    clock_us(ClockId::ProcessCPUTime)
}

impl Mono {
    /// Never: later than any other time.
    pub const NEVER: Mono = Mono(u64::MAX);

    /// The time since `earlier`; zero if `earlier` is later than this.
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The time in milliseconds.
    pub fn as_ms(self) -> i64 {
        (self.0 / 1000) as i64
    }
}

/// A span in microseconds; the longest one if it is longer than a `Mono` can be.
fn span_us(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Mono {
    type Output = Mono;
    fn add(self, span: Duration) -> Mono {
        Mono(self.0.saturating_add(span_us(span)))
    }
}

impl Sub<Duration> for Mono {
    type Output = Mono;
    fn sub(self, span: Duration) -> Mono {
        Mono(self.0.saturating_sub(span_us(span)))
    }
}

impl Add<i64> for UnixMs {
    type Output = UnixMs;
    fn add(self, ms: i64) -> UnixMs {
        UnixMs(self.0.saturating_add(ms))
    }
}

impl Sub<i64> for UnixMs {
    type Output = UnixMs;
    fn sub(self, ms: i64) -> UnixMs {
        UnixMs(self.0.saturating_sub(ms))
    }
}

impl Sub<UnixMs> for UnixMs {
    type Output = i64;
    fn sub(self, other: UnixMs) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

impl fmt::Display for UnixMs {
    /// ISO 8601 in UTC with milliseconds: `2026-11-20T12:00:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0.div_euclid(DAY_MS));
        let ms = self.0.rem_euclid(DAY_MS);
        let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
        let (second, ms) = (ms / 1000 % 60, ms % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
pub fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day, counted from 1970-01-01, of a date: the inverse of [`civil`].
pub fn days_of(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Times below this are taken as seconds. As milliseconds they would be before 1974.
pub const SECONDS_BELOW: i64 = 100_000_000_000;

/// 9999-12-31: calendars and sums are correct up to this time.
pub const MAX_TIME: UnixMs = UnixMs(253_402_300_799_999);

impl UnixMs {
    /// The time that a person or a program gives as a number: seconds below [`SECONDS_BELOW`].
    pub fn of_number(number: i64) -> UnixMs {
        UnixMs(if number < SECONDS_BELOW { number * 1000 } else { number })
    }
}

/// Parses a whole number without a sign.
pub fn digits<T: FromStr>(text: &[u8]) -> Option<T> {
    // The standard library also reads a sign.
    let text = str::from_utf8(text).ok().filter(|_| text.iter().all(u8::is_ascii_digit))?;
    text.parse().ok()
}

/// The milliseconds of a fraction of a second: of the digits behind the point.
pub fn millis(fraction: &[u8]) -> Option<i64> {
    digits::<i64>(fraction)?;
    let digit = |at: usize| i64::from(fraction.get(at).map_or(0, |digit| digit - b'0'));
    Some(digit(0) * 100 + digit(1) * 10 + digit(2))
}

/// Parses a time in the extended form in UTC (RFC 3339, 5.6), without its `Z`. Returns milliseconds since
/// 1970.
pub fn iso_8601(text: &[u8]) -> Option<i64> {
    let (time, fraction) = text.split_at_checked("0000-00-00T00:00:00".len())?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.into_iter().any(|(at, mark)| time[at] != mark) {
        return None;
    }
    let ms = match fraction {
        [] => 0,
        [b'.', fraction @ ..] => millis(fraction)?,
        _ => return None,
    };
    let (month, day) = (digits(&time[5..7])?, digits(&time[8..10])?);
    let [hour, minute, second] = [11, 14, 17].map(|at| digits::<i64>(&time[at..at + 2]));
    let (hour, minute, second) = (hour?, minute?, second?);
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    // A leap second is 60 (RFC 3339, 5.7).
    if !valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_of(digits(&time[..4])?, month, day);
    // Not every month has 31 days.
    if day > 28 && civil(days).2 != day {
        return None;
    }
    Some(days * DAY_MS + (hour * 3600 + minute * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days_are_inverse() {
        let mut expected = (1970, 1, 1);
        for day in 0..60_000 {
            let (year, month, date) = civil(day);
            assert_eq!((year, month, date), expected, "day {day}");
            assert_eq!(days_of(year, month, date), day);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u32::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, date) {
                (12, 31) => (year + 1, 1, 1),
                (month, date) if date == length => (year, month + 1, 1),
                (month, date) => (year, month, date + 1),
            };
        }
    }

    #[test]
    fn a_watch_never_goes_backwards_and_keeps_to_its_clock() {
        let clock = Clock::new();
        let mut watch = CachedClock::new(clock);
        let mut last = watch.now();
        while last.mono.0 < 3 * WALL_EVERY.as_micros() as u64 {
            let now = watch.now();
            let behind = clock.now();
            assert!(last.mono <= now.mono && now.mono <= behind.mono);
            assert!(now.unix <= behind.unix, "the wall clock is read, not guessed");
            last = now;
        }
    }

    #[test]
    fn a_span_that_is_longer_than_time_itself_leads_to_never() {
        assert_eq!(Mono(5) + Duration::MAX, Mono::NEVER);
        let longer = Duration::from_micros(u64::MAX) + Duration::from_micros(1);
        assert_eq!(Mono(5) - longer, Mono(0));
    }

    #[test]
    fn days_that_a_month_does_not_have_are_no_dates() {
        let read = |day: &str| iso_8601(format!("{day}T00:00:00").as_bytes());
        for day in ["2024-02-29", "2026-02-28", "2026-04-30", "2026-12-31"] {
            assert!(read(day).is_some(), "{day}");
        }
        for day in ["2026-02-29", "2026-02-30", "2026-04-31", "2026-12-32", "2026-00-01"] {
            assert_eq!(read(day), None, "{day}");
        }
    }

    #[test]
    fn times_print_as_iso_8601() {
        assert_eq!(UnixMs(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(UnixMs(1_586_991_278_494).to_string(), "2020-04-15T22:54:38.494Z");
        assert_eq!(UnixMs(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }
}
