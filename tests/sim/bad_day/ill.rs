//! What may be wrong with an exchange on a bad day, and when.

use super::market::{DAY_MS, HOUR_MS, MINUTE_MS};
use crate::support::Rng;

pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Quotes,
    Candles,
    List,
    Clock,
}

/// What a clock says instead of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Zero,
    SecondsForMs,
    Off(i64),
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ill {
    /// Candles are answered with an empty list.
    CandlesEmpty,
    /// Candles are those of the spell's begin.
    CandlesFrozen,
    /// The time call lies; with `once` in its first answer alone.
    ClockLies { lie: Lie, once: bool },
    /// The time call takes three seconds.
    ClockSlow,
    /// The time call is not there. Whether the answers have a `Date` nevertheless.
    ClockMissing { date: bool },
    /// Answers come from a cache: an `Age`, and a `Date` as old as that.
    Aged,
    /// The `Date` is off by so many milliseconds.
    DateOff(i64),
    /// One ticker is dated so many milliseconds off; or all of them are.
    TickersDated { off_ms: i64, all: bool },
    /// The times of tickers cannot be read.
    TickersUndated,
    /// The market list lacks every market but so many; with `once` in its first answer alone.
    ListShort { left: usize, once: bool },
    /// Requests are refused: all of them, or those of one kind; every one, or every other one.
    Refuses { kind: Option<Kind>, status: u16, retry_after: Option<u64>, every_other: bool },
    /// Another program has spent so much of the budget of each window.
    OtherProgram { percent: u64 },
    /// Nobody can connect.
    Gone,
}

/// A stretch of time in which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spell {
    pub from: u64,
    pub until: u64,
    pub ill: Ill,
}

impl Spell {
    pub fn is_on(&self, us: u64) -> bool {
        (self.from..self.until).contains(&us)
    }

    /// Whether only some witness of the time is wrong, so little that what has long ended has ended by
    /// every witness.
    pub fn leaves_the_past(&self) -> bool {
        match self.ill {
            Ill::ClockLies { lie: Lie::Off(ms), .. } => ms > -HOUR_MS,
            Ill::ClockSlow
            | Ill::ClockMissing { .. }
            | Ill::Aged
            | Ill::DateOff(_)
            | Ill::TickersDated { .. }
            | Ill::TickersUndated => true,
            _ => false,
        }
    }
}

impl Lie {
    pub fn tell(self, now_ms: i64) -> i64 {
        match self {
            Lie::Zero => 0,
            Lie::SecondsForMs => now_ms / 1000,
            Lie::Off(ms) => now_ms + ms,
        }
    }

    fn any(rng: &mut Rng) -> Lie {
        let decade = 3650 * DAY_MS;
        match rng.below(6) {
            0 => Lie::Zero,
            1 => Lie::SecondsForMs,
            2 => Lie::Off(decade),
            3 => Lie::Off(-decade),
            _ => Lie::Off(rng.between(-30, 30) * MINUTE_MS + 7000),
        }
    }
}

/// Something about one of the witnesses of the exchange's time. Never two at once: which of two liars is
/// right nobody can tell.
fn about_time(rng: &mut Rng) -> Ill {
    let once = rng.chance(1, 3);
    let off_ms = *rng.pick(&[-20 * MINUTE_MS, 9 * MINUTE_MS, 3650 * DAY_MS, 28_000 * DAY_MS]);
    match rng.below(11) {
        0..4 => Ill::ClockLies { lie: Lie::any(rng), once },
        4 => Ill::ClockSlow,
        5 => Ill::ClockMissing { date: true },
        6 => Ill::ClockMissing { date: false },
        7 => Ill::Aged,
        8 => Ill::DateOff(off_ms),
        9 => Ill::TickersDated { off_ms, all: rng.chance(1, 2) },
        _ => Ill::TickersUndated,
    }
}

fn about_data(rng: &mut Rng) -> Ill {
    match rng.below(5) {
        0 | 1 => Ill::CandlesEmpty,
        2 | 3 => Ill::CandlesFrozen,
        _ => Ill::ListShort { left: 1 + rng.below(3) as usize, once: rng.chance(1, 2) },
    }
}

fn about_access(rng: &mut Rng) -> Ill {
    let kinds = [Kind::Quotes, Kind::Candles, Kind::Candles, Kind::List, Kind::Clock];
    let kind = rng.chance(3, 4).then(|| *rng.pick(&kinds));
    let retry_after = rng.chance(1, 2).then(|| 5 + rng.below(300));
    match rng.below(8) {
        0 => Ill::Gone,
        1 => Ill::OtherProgram { percent: 40 + rng.below(60) },
        _ => Ill::Refuses {
            kind,
            status: *rng.pick(&[429, 429, 418, 503, 503, 500]),
            retry_after,
            every_other: rng.chance(1, 5),
        },
    }
}

/// All that is wrong up to `until`, in three tracks that overlap; nothing is from then on.
pub fn forecast(until: u64, rng: &mut Rng) -> Vec<Spell> {
    let mut spells = Vec::new();
    let makers: [fn(&mut Rng) -> Ill; 3] = [about_time, about_data, about_access];
    for make in makers {
        let mut at = match rng.chance(1, 2) {
            true => 0,
            false => rng.below(20 * MINUTE),
        };
        while at < until {
            let length =
                *rng.pick(&[20 * SECOND, 90 * SECOND, 5 * MINUTE, 15 * MINUTE, 70 * MINUTE]);
            let length = length / 2 + rng.below(length);
            let end = (at + length).min(until);
            spells.push(Spell { from: at, until: end, ill: make(rng) });
            at = end + 30 * SECOND + rng.below(40 * MINUTE);
        }
    }
    spells.sort_by_key(|spell| spell.from);
    spells
}
