//! What really happened at one made-up exchange, and how honestly it tells of it.
//!
//! Owns the true history: for each market and slot what was traded or that nothing was, what the
//! exchange's row said before it was final and when it became final, when a market was traded at
//! all, and the exchange's own clock. Answers are judged by this, and by nothing that marketd
//! believes. It never looks at a connection or at what marketd does with what it is told.
//!
//! Real exchanges tell their history badly, each in its own way, and so does this one:
//!
//! - *silent*: now and then a page is `[]` though something was traded. It heals: all such answers
//!   that leave out one traded slot come within [`HEALS_MS`] of each other, which is less than
//!   the least distance at which two answers count as two (one re-read apart).
//! - *cut*: a page never holds more than so many rows, fewer than documented. The limit stays the
//!   same for the whole run, and the rows that are lost are those on the side on which this
//!   exchange cuts: the newest. [`LEAST_PAGE`] rows always fit.
//! - *late*: an answer is made of what was there up to [`LATE_MS`] ago.
//! - *revised*: a closed row changes until it is final, at the latest [`FINAL_BEFORE_MS`] before the
//!   moment from which a second reading counts (`REREAD` slots after its close), so that a late
//!   answer at that moment has the final row.
//! - *thin*: in many slots nothing is traded, and the first trade of a slot comes at any time in it.
//! - *young*: before some time nothing was traded at all, and silence is all that is told of it.
//! - *away*: a market leaves the list, or is halted, and comes back. Meanwhile nothing is traded.
//!   Its history stays, or is refused as an unknown market's; it is never answered with silence,
//!   which two times in a row would be the word of an exchange that has no history.
//!
//! What no rule can tell from the truth is left out: an exchange that says twice, a re-read apart,
//! that nothing was traded where something was; a row that is missing in the middle of a page; a
//! revision after `REREAD` slots.
//!
//! The clock may be off by hours, jumps, and goes on while the machine under marketd sleeps. A jump
//! forward shows in whatever the exchange says next: the time of its quotes, the `Date` of every answer.
//! A jump back shows only where quotes are older than those of the poll before: any other answer that
//! is old may just be late, and so may quotes after an outage or a standstill of the exchange. So it
//! comes while the exchange answers well, and goes back by more than two polls.

use super::brain::{Brain, Row, row_of};
use crate::support::Rng;
use crate::support::chance::mix;
use crate::support::naive::{length_ms, plain};
use std::collections::HashMap;
use std::rc::Rc;

/// Closed candles that are read again: a row is final so many slots after its close.
pub const REREAD: i64 = 2;

/// Silent answers about one traded slot come within this time.
pub const HEALS_MS: i64 = 30_000;

/// How late an answer may be.
pub const LATE_MS: i64 = 20_000;

/// How long before the second reading a row is final.
pub const FINAL_BEFORE_MS: i64 = 30_000;

/// A page holds so many rows at least, however it is cut.
pub const LEAST_PAGE: u64 = 20;

/// How one exchange tells of its history. All off: without fault.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// So many of a thousand pages are silent, where the truth lets them.
    pub silent: u64,
    /// Most rows of a page.
    pub cut: Option<usize>,
    /// Most milliseconds that an answer is late.
    pub late: i64,
    /// One in so many rows is revised; 0: none.
    pub revised: u64,
    /// By market: of a thousand slots in so many something is traded.
    pub traded: Vec<u64>,
    /// Whether the history of a market that is away is refused.
    pub refuses: bool,
    /// When its markets were first traded, by its clock.
    pub born_ms: Option<i64>,
}

impl Habits {
    /// Some habits, each of them on in some seeds.
    pub fn any(rng: &mut Rng, markets: usize) -> Habits {
        let some = |rng: &mut Rng, from: &[u64]| match rng.chance(1, 3) {
            true => *rng.pick(from),
            false => 0,
        };
        Habits {
            silent: some(rng, &[30, 200]),
            cut: (rng.chance(1, 4)).then(|| (LEAST_PAGE + rng.below(400)) as usize),
            late: some(rng, &[500, LATE_MS as u64]) as i64,
            revised: *rng.pick(&[0, 0, 2, 8]),
            traded: (0..markets).map(|_| *rng.pick(&[1000, 1000, 1000, 960, 500, 60])).collect(),
            refuses: rng.chance(1, 2),
            born_ms: None,
        }
    }
}

/// A change of the market list, at this time of the exchange's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    pub at_ms: i64,
    pub market: usize,
    /// `None`: it leaves the list.
    pub active: Option<bool>,
    /// Whether tickers go on to hold it all the same.
    pub lingers: bool,
    /// The least worth of an order from then on.
    pub least: u64,
}

/// See the module's page.
#[derive(Debug)]
pub struct Truth {
    pub brain: Rc<Brain>,
    pub habits: Habits,
    /// The exchange's clock at zero of the run, and how much it is off the world's time.
    zero_ms: i64,
    pub off_ms: i64,
    /// Oldest first.
    pub changes: Vec<ListChange>,
    /// When a silent answer first left out a traded slot: the world's time.
    silenced: HashMap<(usize, &'static str, i64), i64>,
}

impl Truth {
    pub fn new(brain: Rc<Brain>, habits: Habits, zero_ms: i64) -> Truth {
        Truth { brain, habits, zero_ms, off_ms: 0, changes: Vec::new(), silenced: HashMap::new() }
    }

    /// The exchange's clock at this time of the run.
    pub fn clock(&self, us: u64) -> i64 {
        self.zero_ms + self.off_ms + (us / 1000) as i64
    }

    /// The world's time then, which does not jump.
    pub fn world_ms(&self, us: u64) -> i64 {
        self.clock(us) - self.off_ms
    }

    /// So much time has passed in which the run's clock stood.
    pub fn passes(&mut self, ms: i64) {
        self.zero_ms += ms;
    }

    /// The listed markets by the exchange's clock, with their state.
    pub fn list(&self, clock: i64) -> Vec<(usize, bool)> {
        let all = 0..self.brain.markets.len();
        all.filter_map(|market| Some((market, self.state(market, clock)?))).collect()
    }

    /// Whether a market is listed then, and active.
    pub fn state(&self, market: usize, clock: i64) -> Option<bool> {
        match self.change(market, clock) {
            Some(change) => change.active,
            None => Some(true),
        }
    }

    /// The last change of a market up to then.
    pub fn change(&self, market: usize, clock: i64) -> Option<&ListChange> {
        let mut changes = self.changes.iter();
        changes.rfind(|change| change.market == market && change.at_ms <= clock)
    }

    /// A number that belongs to a slot, different for each purpose.
    fn chance(&self, market: usize, length: i64, slot: i64, purpose: u64) -> u64 {
        let place = mix(market as u64 ^ (length as u64) << 8 ^ purpose << 56);
        mix(place ^ slot as u64)
    }

    /// Whether something was, or will be, traded in a slot.
    pub fn traded(&self, market: usize, interval: &'static str, slot: i64) -> bool {
        if !self.brain.has_candles(market) || slot < 0 {
            return false;
        }
        let length = length_ms(interval).expect("stored");
        let span = slot * length..(slot + 1) * length;
        if self.habits.born_ms.is_some_and(|born| span.start < born) {
            return false;
        }
        let opens = |change: &ListChange| {
            change.market == market && change.active == Some(true) && span.contains(&change.at_ms)
        };
        if self.state(market, span.start) != Some(true) && !self.changes.iter().any(opens) {
            return false;
        }
        let of_a_thousand = match (interval, self.habits.traded[market]) {
            ("1m", part) => part,
            // An hour without a trade is rare, and so is a day.
            ("1h", part @ ..100) => 850 + part,
            _ => 1000,
        };
        self.chance(market, length, slot, 1) % 1000 < of_a_thousand
    }

    /// When a slot's row is final, by the exchange's clock.
    pub fn final_at(interval: &'static str, slot: i64) -> i64 {
        let length = length_ms(interval).expect("stored");
        (slot + 1 + REREAD) * length - FINAL_BEFORE_MS
    }

    /// The final row of a slot.
    pub fn row(&self, market: usize, interval: &'static str, slot: i64) -> Option<Rc<Row>> {
        self.row_at(market, interval, slot, i64::MAX)
    }

    /// The row of a slot as it was then.
    pub fn row_at(
        &self,
        market: usize,
        interval: &'static str,
        slot: i64,
        clock: i64,
    ) -> Option<Rc<Row>> {
        if !self.traded(market, interval, slot) {
            return None;
        }
        let length = length_ms(interval).expect("stored");
        let open = slot * length;
        let first_trade = match self.habits.traded[market] {
            1000 => open,
            _ => open + (self.chance(market, length, slot, 2) % 1000) as i64 * length / 1250,
        };
        if clock < first_trade {
            return None;
        }
        let row = self.brain.row(market, interval, slot, clock);
        let is_revised = match self.habits.revised {
            0 => false,
            part => self.chance(market, length, slot, 3).is_multiple_of(part),
        };
        let is_draft = (open + length..Self::final_at(interval, slot)).contains(&clock);
        Some(match is_revised && is_draft {
            true => Rc::new(draft(&row)),
            false => row,
        })
    }

    /// Whether a silent answer about these slots would be within what heals; takes note of it.
    pub fn may_be_silent(
        &mut self,
        market: usize,
        interval: &'static str,
        rows: &[Rc<Row>],
        us: u64,
    ) -> bool {
        let length = length_ms(interval).expect("stored");
        let world_ms = self.world_ms(us);
        let keys = || rows.iter().map(|row| (market, interval, row.open_ms / length));
        let told = |key| self.silenced.get(&key).copied().unwrap_or(world_ms);
        if rows.is_empty() || keys().any(|key| world_ms - told(key) > HEALS_MS) {
            return false;
        }
        let keys: Vec<_> = keys().collect();
        for key in keys {
            self.silenced.entry(key).or_insert(world_ms);
        }
        true
    }
}

/// A row as it is told before the last trades are booked: less volume, and another close.
fn draft(row: &Row) -> Row {
    let [open, high, low, close, volume] = &row.figures;
    let close = if close == high { low } else { high };
    let volume = plain(&format!("{volume}e-1"));
    row_of(&format!(
        "[{},\"{open}\",\"{high}\",\"{low}\",\"{close}\",\"{volume}\",0,\"0\",0,\"0\",\"0\",\"0\"]",
        row.open_ms
    ))
}
