//! A round of quotes, market by market, for exchanges that have no call for all of them.
//!
//! Owns which markets of the running round are still to be asked, and the figures of 24 hours
//! that are asked for apart and less often. It never asks: [`super::schedule`] takes the next
//! market from it, when the budget has what that costs.
//!
//! A round begins at each tick at which the last one is over; one that takes longer than a tick
//! makes the ticks that it covers be skipped.

use crate::market::SymbolId;
use crate::record::Stats;
use crate::time::Mono;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

/// From one reading of a market's 24 hours to the next: they change by a thousandth a minute.
const STATS_AGE: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug, Default)]
pub struct Round {
    left: VecDeque<SymbolId>,
    /// Markets of the whole round.
    len: usize,
    /// Being asked now.
    asked: usize,
    /// Markets of this round that have answered well.
    good: usize,
    abandoned: bool,
    /// In the order in which they are to be read next.
    stats_due: VecDeque<(Mono, SymbolId)>,
    stats: HashMap<SymbolId, Stats>,
}

impl Round {
    /// Begins a round over these markets. Those that are new get their 24 hours read first.
    pub fn begin(&mut self, symbols: Vec<SymbolId>, has_stats: bool, now: Mono) {
        if has_stats {
            let wanted: HashSet<SymbolId> = symbols.iter().copied().collect();
            self.stats_due.retain(|(_, symbol)| wanted.contains(symbol));
            self.stats.retain(|symbol, _| wanted.contains(symbol));
            let known: HashSet<SymbolId> = self.stats_due.iter().map(|(_, known)| *known).collect();
            for symbol in symbols.iter().filter(|symbol| !known.contains(*symbol)) {
                self.stats_due.push_front((now, *symbol));
            }
        }
        (self.good, self.abandoned) = (0, false);
        self.len = symbols.len();
        self.left = symbols.into();
    }

    /// Markets of the whole round.
    pub fn len(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX)
    }

    /// The market to be asked next.
    pub fn next(&self) -> Option<SymbolId> {
        self.left.front().copied()
    }

    /// The market whose 24 hours are to be read next, and when.
    pub fn next_stats(&self) -> Option<(Mono, SymbolId)> {
        self.stats_due.front().copied()
    }

    /// A market is being asked.
    pub fn began(&mut self, symbol: SymbolId) {
        if self.left.front() == Some(&symbol) {
            self.left.pop_front();
        }
        self.asked += 1;
    }

    /// A market's 24 hours are being asked: they are due again after a while, whatever comes.
    pub fn began_stats(&mut self, symbol: SymbolId, now: Mono) {
        if self
            .stats_due
            .front()
            .is_some_and(|(_, due)| *due == symbol)
        {
            self.stats_due.pop_front();
        }
        self.stats_due.push_back((now + STATS_AGE, symbol));
    }

    /// A market that was being asked is to be asked again.
    pub fn put_back(&mut self, symbol: SymbolId) {
        self.asked = self.asked.saturating_sub(1);
        self.left.push_front(symbol);
    }

    /// A market's 24 hours, which were being asked, are to be asked again.
    pub fn put_back_stats(&mut self, symbol: SymbolId, now: Mono) {
        self.stats_due.retain(|(_, due)| *due != symbol);
        self.stats_due.push_front((now, symbol));
    }

    /// A market that was asked has answered well, or not. `Some`: it was the last of the round,
    /// in which at least one market answered well, or none. A round that was given up ends
    /// without a word.
    pub fn ended(&mut self, well: bool) -> Option<bool> {
        self.asked = self.asked.saturating_sub(1);
        self.good += usize::from(well);
        (self.is_over() && !self.abandoned).then_some(self.good > 0)
    }

    /// Whether no market is left and none is being asked.
    pub fn is_over(&self) -> bool {
        self.asked == 0 && self.left.is_empty()
    }

    /// Gives up what is left of the round.
    pub fn abandon(&mut self) {
        self.abandoned = true;
        self.left.clear();
    }

    /// Keeps a market's 24 hours.
    pub fn keep_stats(&mut self, symbol: SymbolId, stats: Stats) {
        self.stats.insert(symbol, stats);
    }

    /// A market's 24 hours, as they were last read.
    pub fn stats(&self, symbol: SymbolId) -> Option<&Stats> {
        self.stats.get(&symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_every_market_has_ended() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let mut round = Round::default();
        assert!(round.is_over());
        round.begin(vec![a, b], false, Mono(0));
        assert_eq!(round.next(), Some(a));
        round.began(a);
        assert_eq!(round.next(), Some(b));
        assert_eq!(round.ended(true), None);
        round.began(b);
        assert_eq!(round.ended(false), Some(true));
        assert!(round.is_over());
        assert_eq!(round.next_stats(), None);
    }

    #[test]
    fn a_round_without_any_answer_has_failed_and_one_given_up_says_nothing() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let mut round = Round::default();
        round.begin(vec![a], false, Mono(0));
        round.began(a);
        assert_eq!(round.ended(false), Some(false));
        round.begin(vec![a, b], false, Mono(0));
        round.began(a);
        round.abandon();
        assert_eq!(round.ended(true), None);
        assert!(round.is_over());
    }

    #[test]
    fn every_market_has_its_day_read_in_turn_and_new_ones_first() {
        let (a, b, c) = (SymbolId(1), SymbolId(2), SymbolId(3));
        let mut round = Round::default();
        round.begin(vec![a, b], true, Mono(5));
        round.began_stats(b, Mono(5));
        round.began_stats(a, Mono(6));
        assert_eq!(round.next_stats(), Some((Mono(5) + STATS_AGE, b)));
        round.begin(vec![a, c], true, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(7), c)));
        round.began_stats(c, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(6) + STATS_AGE, a)));
    }
}
