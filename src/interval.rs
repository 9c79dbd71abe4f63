//! Candle intervals: their names, and where a candle of each begins and ends.
//!
//! Three intervals are *stored* ([`Stored`]): asked of exchanges and kept. The fifteen *served*
//! ones ([`Interval`]) are those three and what is rolled up from them on read.
//!
//! A *slot* is the number of a stored candle, counted from the epoch: `open time / length`.

use crate::time::{DAY_MS, UnixMs, civil, days_of};

/// An interval that clients may ask for, shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "each is what its letters say: minutes, hours, days, week, month"
)]
pub enum Interval {
    M1,
    M3,
    M5,
    M15,
    M30,
    H1,
    H2,
    H4,
    H6,
    H8,
    H12,
    D1,
    D3,
    W1,
    Month1,
}

/// An interval that is asked of exchanges and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is what its letters say")]
pub enum Stored {
    M1,
    H1,
    D1,
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;
/// 1970-01-01 was a Thursday: the first Monday came four days later.
const FIRST_MONDAY_MS: i64 = 4 * DAY_MS;

impl Interval {
    /// All of them, shortest first.
    pub const ALL: [Interval; 15] = {
        use Interval::*;
        [
            M1, M3, M5, M15, M30, H1, H2, H4, H6, H8, H12, D1, D3, W1, Month1,
        ]
    };

    /// The name that clients use: `1m`, `1h`, `1M`, ...
    pub fn name(self) -> &'static str {
        match self {
            Interval::M1 => "1m",
            Interval::M3 => "3m",
            Interval::M5 => "5m",
            Interval::M15 => "15m",
            Interval::M30 => "30m",
            Interval::H1 => "1h",
            Interval::H2 => "2h",
            Interval::H4 => "4h",
            Interval::H6 => "6h",
            Interval::H8 => "8h",
            Interval::H12 => "12h",
            Interval::D1 => "1d",
            Interval::D3 => "3d",
            Interval::W1 => "1w",
            Interval::Month1 => "1M",
        }
    }

    /// The interval of that name. Case matters: `1m` is a minute, `1M` a month.
    pub fn parse(name: &[u8]) -> Option<Interval> {
        Interval::ALL
            .into_iter()
            .find(|interval| interval.name().as_bytes() == name)
    }

    /// Its name as a TradingView resolution: minutes as a bare number, `1D`, `1W`, `1M`
    /// (TradingView, "Charting Library: Resolution").
    pub fn resolution(self) -> &'static str {
        match self {
            Interval::M1 => "1",
            Interval::M3 => "3",
            Interval::M5 => "5",
            Interval::M15 => "15",
            Interval::M30 => "30",
            Interval::H1 => "60",
            Interval::H2 => "120",
            Interval::H4 => "240",
            Interval::H6 => "360",
            Interval::H8 => "480",
            Interval::H12 => "720",
            Interval::D1 => "1D",
            Interval::D3 => "3D",
            Interval::W1 => "1W",
            Interval::Month1 => "1M",
        }
    }

    /// The interval of a TradingView resolution, with the one-letter forms `D`, `W` and `M`.
    pub fn parse_resolution(name: &[u8]) -> Option<Interval> {
        match name {
            b"D" => Some(Interval::D1),
            b"W" => Some(Interval::W1),
            b"M" => Some(Interval::Month1),
            _ => (Interval::ALL.into_iter())
                .find(|interval| interval.resolution().as_bytes() == name),
        }
    }

    /// The stored interval that this one is made of.
    pub fn base(self) -> Stored {
        match self {
            Interval::M1 | Interval::M3 | Interval::M5 | Interval::M15 | Interval::M30 => {
                Stored::M1
            }
            Interval::H1
            | Interval::H2
            | Interval::H4
            | Interval::H6
            | Interval::H8
            | Interval::H12 => Stored::H1,
            Interval::D1 | Interval::D3 | Interval::W1 | Interval::Month1 => Stored::D1,
        }
    }

    /// Whether candles of this interval are stored as they are.
    pub fn is_stored(self) -> bool {
        self.base().interval() == self
    }

    /// Length in milliseconds; `None` for the month, which has no one length.
    pub fn length_ms(self) -> Option<i64> {
        Some(match self {
            Interval::M1 => MINUTE_MS,
            Interval::M3 => 3 * MINUTE_MS,
            Interval::M5 => 5 * MINUTE_MS,
            Interval::M15 => 15 * MINUTE_MS,
            Interval::M30 => 30 * MINUTE_MS,
            Interval::H1 => HOUR_MS,
            Interval::H2 => 2 * HOUR_MS,
            Interval::H4 => 4 * HOUR_MS,
            Interval::H6 => 6 * HOUR_MS,
            Interval::H8 => 8 * HOUR_MS,
            Interval::H12 => 12 * HOUR_MS,
            Interval::D1 => DAY_MS,
            Interval::D3 => 3 * DAY_MS,
            Interval::W1 => 7 * DAY_MS,
            Interval::Month1 => return None,
        })
    }

    /// Open time of the candle that holds this moment: the week begins on Monday 00:00 UTC, the
    /// month on its first, three days are counted from the epoch.
    pub fn open_of(self, time: UnixMs) -> UnixMs {
        let Some(length) = self.length_ms() else {
            let (year, month, _) = civil(time.0.div_euclid(DAY_MS));
            return UnixMs(days_of(year, month, 1) * DAY_MS);
        };
        let origin = if self == Interval::W1 {
            FIRST_MONDAY_MS
        } else {
            0
        };
        UnixMs((time.0 - origin).div_euclid(length) * length + origin)
    }

    /// Open time of the candle `count` places after the one that opens at `open` (before it, when
    /// `count` is negative).
    pub fn step(self, open: UnixMs, count: i64) -> UnixMs {
        let Some(length) = self.length_ms() else {
            let (year, month, _) = civil(open.0.div_euclid(DAY_MS));
            let months = (year * 12 + i64::from(month) - 1).saturating_add(count);
            let month = months.rem_euclid(12) as u32 + 1;
            return UnixMs(days_of(months.div_euclid(12), month, 1) * DAY_MS);
        };
        open + length.saturating_mul(count)
    }

    /// End of the candle that opens at `open`: the open time of the next one.
    pub fn end_of(self, open: UnixMs) -> UnixMs {
        self.step(open, 1)
    }
}

impl Stored {
    /// All of them, shortest first.
    pub const ALL: [Stored; 3] = [Stored::M1, Stored::H1, Stored::D1];

    /// The same interval among the served ones.
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

    /// The slot that holds this moment.
    pub fn slot_of(self, time: UnixMs) -> i64 {
        time.0.div_euclid(self.length_ms())
    }

    /// Open time of a slot.
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
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let time = UnixMs(1_586_991_278_494); // Wednesday 2020-04-15T22:54:38Z
        let check = |interval: Interval, open: &str, end: &str| {
            let begin = interval.open_of(time);
            assert_eq!(begin.to_string(), open, "{interval:?}");
            assert_eq!(interval.end_of(begin).to_string(), end, "{interval:?}");
            assert_eq!(interval.open_of(begin), begin);
            assert_eq!(interval.step(interval.end_of(begin), -1), begin);
        };
        check(
            Interval::W1,
            "2020-04-13T00:00:00.000Z",
            "2020-04-20T00:00:00.000Z",
        );
        check(
            Interval::Month1,
            "2020-04-01T00:00:00.000Z",
            "2020-05-01T00:00:00.000Z",
        );
        check(
            Interval::D3,
            "2020-04-14T00:00:00.000Z",
            "2020-04-17T00:00:00.000Z",
        );
        check(
            Interval::H12,
            "2020-04-15T12:00:00.000Z",
            "2020-04-16T00:00:00.000Z",
        );
        assert_eq!(
            Interval::Month1.step(UnixMs(0), -1).to_string(),
            "1969-12-01T00:00:00.000Z"
        );
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
