//! Candle intervals: their names, and where a candle of each begins and ends.
//!
//! An [`Interval`] is one of the fifteen that clients may ask for. A [`Stored`] interval is one of
//! the three that marketd requests from exchanges and stores. A request for another interval rolls
//! its candles up from stored ones. `TABLE` has one row for each interval.
//!
//! A *slot* is the number of a stored candle, counted from the epoch: `open time / length`.

use crate::time::{DAY_MS, UnixMs, civil, days_of};
use std::ops::Range;

/// An interval whose candles are requested from exchanges and stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the letters stand for minutes, hours and days")]
pub enum Stored {
    #[default]
    M1,
    H1,
    D1,
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;
/// The day of the first Monday after the epoch: 1970-01-01 was a Thursday.
const FIRST_MONDAY: i64 = 4;

/// What the name of an interval stands for.
struct Row {
    /// The name in marketd's API.
    name: &'static str,
    /// The names in TradingView's charting library.
    resolutions: &'static [&'static str],
    base: Stored,
    /// How many base candles make one candle; `None` if this number varies.
    base_candles: Option<i64>,
}

/// Makes the intervals and their rows.
macro_rules! intervals {
    ($($interval:ident $name:literal $resolutions:expr, $base:ident $base_candles:expr;)+) => {
        /// An interval that clients may ask for, shortest first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the letters stand for minutes, hours, days, weeks")]
        pub enum Interval { $($interval),+ }

        impl Interval {
            /// All intervals, shortest first.
            pub const ALL: [Interval; 15] = [$(Interval::$interval),+];
        }

        /// Their rows.
        static TABLE: [Row; Interval::ALL.len()] = [$(Row {
            name: $name,
            resolutions: $resolutions,
            base: Stored::$base,
            base_candles: $base_candles,
        }),+];
    };
}

intervals! {
    M1 "1m" &["1"], M1 Some(1);
    M3 "3m" &["3"], M1 Some(3);
    M5 "5m" &["5"], M1 Some(5);
    M15 "15m" &["15"], M1 Some(15);
    M30 "30m" &["30"], M1 Some(30);
    H1 "1h" &["60"], H1 Some(1);
    H2 "2h" &["120"], H1 Some(2);
    H4 "4h" &["240"], H1 Some(4);
    H6 "6h" &["360"], H1 Some(6);
    H8 "8h" &["480"], H1 Some(8);
    H12 "12h" &["720"], H1 Some(12);
    D1 "1d" &["1D", "D"], D1 Some(1);
    D3 "3d" &["3D"], D1 Some(3);
    W1 "1w" &["1W", "W"], D1 Some(7);
    Month1 "1M" &["1M", "M"], D1 None;
}

impl Interval {
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name that clients use: `1m`, `1h`, `1M`, ...
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The interval with this name. Case matters: `1m` is a minute, `1M` a month.
    pub fn parse(name: &[u8]) -> Option<Interval> {
        Interval::ALL.into_iter().find(|it| it.name().as_bytes() == name)
    }

    /// Its name as a TradingView resolution: minutes as a bare number, `1D`, `1W`, `1M`
    /// (TradingView, "Charting Library: Resolution").
    pub fn resolution(self) -> &'static str {
        self.row().resolutions[0]
    }

    /// The interval of a TradingView resolution, with the one-letter forms `D`, `W` and `M`.
    pub fn parse_resolution(name: &[u8]) -> Option<Interval> {
        Interval::ALL
            .into_iter()
            .find(|it| it.row().resolutions.iter().any(|text| text.as_bytes() == name))
    }

    /// The stored interval whose candles make up the candles of this interval.
    pub fn base(self) -> Stored {
        self.row().base
    }

    /// True if candles of this interval are stored as they are.
    pub fn is_stored(self) -> bool {
        matches!(self, Interval::M1 | Interval::H1 | Interval::D1)
    }

    /// Open time of the candle that contains this time.
    pub fn open_of(self, time: UnixMs) -> UnixMs {
        let base = self.base();
        base.open_of(self.bucket_of(base.slot_of(time)).start)
    }

    /// Open time of the candle `count` candles after the one that opens at `open`; a negative
    /// `count` goes back.
    pub fn step(self, open: UnixMs, count: i64) -> UnixMs {
        let base = self.base();
        base.open_of(self.bucket_after(base.slot_of(open), count))
    }

    /// End of the candle that opens at `open`, which is the open time of the next one.
    pub fn end_of(self, open: UnixMs) -> UnixMs {
        self.step(open, 1)
    }
}

/// Buckets: a bucket is a candle of an interval, as the range of the base slots that it is made of. A bucket
/// of a stored interval is one slot. Buckets are numbered one by one.
impl Interval {
    /// The number of the bucket that holds this slot. Weeks begin on Monday 00:00 UTC, months on their first
    /// day; three-day candles are counted from the epoch.
    fn bucket_number(self, slot: i64) -> i64 {
        match self.row().base_candles {
            Some(1) => slot,
            Some(count) => (slot - self.origin()).div_euclid(count),
            None => {
                let (year, month, _) = civil(slot);
                year * 12 + i64::from(month) - 1
            }
        }
    }

    /// First slot of the bucket with this number.
    fn first_slot(self, number: i64) -> i64 {
        match self.row().base_candles {
            Some(count) => number.saturating_mul(count).saturating_add(self.origin()),
            None => days_of(number.div_euclid(12), number.rem_euclid(12) as u32 + 1, 1),
        }
    }

    /// First slot of bucket 0 of an interval whose buckets are equally long.
    fn origin(self) -> i64 {
        if self == Interval::W1 { FIRST_MONDAY } else { 0 }
    }

    /// The slots of the bucket that holds this slot.
    pub fn bucket_of(self, slot: i64) -> Range<i64> {
        let number = self.bucket_number(slot);
        self.first_slot(number)..self.first_slot(number + 1)
    }

    /// First slot of the bucket `count` places after the one that begins at this slot.
    pub fn bucket_after(self, slot: i64, count: i64) -> i64 {
        self.first_slot(self.bucket_number(slot).saturating_add(count))
    }

    /// First slot of the first bucket that begins at this slot or later.
    pub fn bucket_from(self, slot: i64) -> i64 {
        let bucket = self.bucket_of(slot);
        if bucket.start == slot { slot } else { bucket.end }
    }

    /// The number of buckets from one first slot to another.
    pub fn buckets_in(self, slots: Range<i64>) -> i64 {
        self.bucket_number(slots.end) - self.bucket_number(slots.start)
    }
}

impl Stored {
    /// All stored intervals, shortest first.
    pub const ALL: [Stored; 3] = [Stored::M1, Stored::H1, Stored::D1];

    /// The same interval, as one that clients may ask for.
    pub fn interval(self) -> Interval {
        match self {
            Stored::M1 => Interval::M1,
            Stored::H1 => Interval::H1,
            Stored::D1 => Interval::D1,
        }
    }

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        self.interval().name()
    }

    /// Length in milliseconds.
    pub fn length_ms(self) -> i64 {
        match self {
            Stored::M1 => MINUTE_MS,
            Stored::H1 => HOUR_MS,
            Stored::D1 => DAY_MS,
        }
    }

    /// The slot of the candle that contains this time.
    pub fn slot_of(self, time: UnixMs) -> i64 {
        time.0.div_euclid(self.length_ms())
    }

    /// Open time of the candle of a slot.
    pub fn open_of(self, slot: i64) -> UnixMs {
        UnixMs(slot.saturating_mul(self.length_ms()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_case_matters() {
        for interval in Interval::ALL {
            assert_eq!(Interval::parse(interval.name().as_bytes()), Some(interval));
        }
        assert_eq!(Interval::parse(b"1H"), None);
        assert_eq!(Interval::parse(b""), None);
        assert_eq!(Interval::parse_resolution(b"240"), Some(Interval::H4));
        assert_eq!(Interval::parse_resolution(b"1h"), None);
    }

    #[test]
    fn the_table_has_the_order_of_the_intervals() {
        for interval in Interval::ALL {
            assert_eq!(interval.is_stored(), interval.base().interval() == interval);
        }
        assert!(Interval::ALL.is_sorted_by_key(|it| it.end_of(UnixMs(0))));
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let time = UnixMs(1_586_991_278_494); // Wednesday 2020-04-15T22:54:38Z
        let check = |interval: Interval, open: &str, end: &str| {
            let begin = interval.open_of(time);
            assert_eq!(begin.to_string(), open, "{interval:?}");
            assert_eq!(interval.end_of(begin).to_string(), end, "{interval:?}");
            assert_eq!(interval.open_of(begin), begin);
            assert_eq!(interval.step(interval.end_of(begin), -1), begin);
        };
        check(Interval::W1, "2020-04-13T00:00:00.000Z", "2020-04-20T00:00:00.000Z");
        check(Interval::Month1, "2020-04-01T00:00:00.000Z", "2020-05-01T00:00:00.000Z");
        check(Interval::D3, "2020-04-14T00:00:00.000Z", "2020-04-17T00:00:00.000Z");
        check(Interval::H12, "2020-04-15T12:00:00.000Z", "2020-04-16T00:00:00.000Z");
        assert_eq!(Interval::W1.open_of(UnixMs(0)).to_string(), "1969-12-29T00:00:00.000Z");
        assert_eq!(Interval::Month1.step(UnixMs(0), -1).to_string(), "1969-12-01T00:00:00.000Z");
    }

    #[test]
    fn every_interval_is_made_of_whole_candles_of_its_base() {
        for interval in Interval::ALL {
            let base = interval.base();
            let mut open = interval.open_of(UnixMs(1_700_000_000_000));
            for _ in 0..100 {
                assert_eq!(open.0 % base.length_ms(), 0, "{interval:?}");
                open = interval.end_of(open);
            }
        }
    }
}
