//! A round of quotes, market by market, for exchanges that have no call for all of them.
//!
//! [`QuoteRound`] owns which markets of the running round are still to be requested, and the 24-hour
//! figures, which are requested separately and less often. A round begins at each tick at which the
//! last one is over; ticks during a longer round are skipped. A market that the exchange does not know
//! is left out of more and more rounds.

use crate::market::SymbolId;
use crate::record::Stats;
use crate::time::Mono;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

/// Between two readings of a market's 24-hour figures: they change by a thousandth a minute.
const STATS_AGE: Duration = Duration::from_secs(60);

/// The longest pause of a market that the exchange does not know: listings change a few times a day.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// What the end of a request means for its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// Nothing: markets are left, or the round was abandoned.
    NotYet,
    /// At least one market was answered well.
    WithQuotes,
    /// No market was.
    WithoutQuotes,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct QuoteRound {
    left: VecDeque<SymbolId>,
    /// Markets of the whole round.
    len: usize,
    in_flight: usize,
    /// True if a market of this round has been answered well.
    has_good: bool,
    is_abandoned: bool,
    /// When the 24-hour figures of each market are read next, in that order.
    stats_due: VecDeque<(Mono, SymbolId)>,
    /// The 24-hour figures, as they were last read.
    pub stats: HashMap<SymbolId, Stats>,
    /// Markets that the exchange does not know: how long each is left alone, and until when.
    paused: HashMap<SymbolId, (Duration, Mono)>,
}

impl QuoteRound {
    /// Begins a round over these markets. New ones get their 24-hour figures read first.
    pub fn begin(&mut self, mut symbols: Vec<SymbolId>, has_stats: bool, now: Mono) {
        if !self.paused.is_empty() {
            let listed: HashSet<SymbolId> = symbols.iter().copied().collect();
            self.paused.retain(|symbol, _| listed.contains(symbol));
            let paused =
                |symbol: SymbolId| self.paused.get(&symbol).is_some_and(|(_, until)| now < *until);
            symbols.retain(|symbol| !paused(*symbol));
        }
        if has_stats {
            let wanted: HashSet<SymbolId> = symbols.iter().copied().collect();
            self.stats_due.retain(|(_, symbol)| wanted.contains(symbol));
            self.stats.retain(|symbol, _| wanted.contains(symbol));
            let known: HashSet<SymbolId> = self.stats_due.iter().map(|(_, known)| *known).collect();
            for symbol in symbols.iter().filter(|symbol| !known.contains(*symbol)) {
                self.stats_due.push_front((now, *symbol));
            }
        }
        (self.has_good, self.is_abandoned) = (false, false);
        self.len = symbols.len();
        self.left = symbols.into();
    }

    /// Markets of the whole round.
    pub fn len(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX)
    }

    /// The market to request next.
    pub fn next(&self) -> Option<SymbolId> {
        self.left.front().copied()
    }

    /// The market whose 24-hour figures are read next, and when.
    pub fn next_stats(&self) -> Option<(Mono, SymbolId)> {
        self.stats_due.front().copied()
    }

    /// A market is being requested.
    pub fn sent(&mut self, symbol: SymbolId) {
        if self.left.front() == Some(&symbol) {
            self.left.pop_front();
        }
        self.in_flight += 1;
    }

    /// A market's 24-hour figures are being requested. They are due again later, whatever comes.
    pub fn sent_stats(&mut self, symbol: SymbolId, now: Mono) {
        if self.stats_due.front().is_some_and(|(_, due)| *due == symbol) {
            self.stats_due.pop_front();
        }
        self.stats_due.push_back((now + STATS_AGE, symbol));
    }

    /// Leaves out the markets that `is_kept` rejects.
    pub fn retain(&mut self, is_kept: impl Fn(SymbolId) -> bool) {
        self.left.retain(|symbol| is_kept(*symbol));
        self.stats_due.retain(|(_, symbol)| is_kept(*symbol));
    }

    /// A market that was being requested is to be requested again.
    pub fn put_back(&mut self, symbol: SymbolId) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.left.push_front(symbol);
    }

    /// A market's 24-hour figures are to be requested again.
    pub fn put_back_stats(&mut self, symbol: SymbolId, now: Mono) {
        self.stats_due.retain(|(_, due)| *due != symbol);
        self.stats_due.push_front((now, symbol));
    }

    /// The request for a market has ended, well or not.
    pub fn ended(&mut self, is_good: bool) -> RoundEnd {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.has_good |= is_good;
        match (self.is_over() && !self.is_abandoned, self.has_good) {
            (false, _) => RoundEnd::NotYet,
            (true, true) => RoundEnd::WithQuotes,
            (true, false) => RoundEnd::WithoutQuotes,
        }
    }

    /// True if a market of this round has been answered well.
    pub fn has_good(&self) -> bool {
        self.has_good
    }

    /// True if no market is left and none is in flight.
    pub fn is_over(&self) -> bool {
        self.in_flight == 0 && self.left.is_empty()
    }

    /// Abandons what is left of the round.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
        self.left.clear();
    }

    /// Leaves a market alone for this long, or twice as long as the last time. Returns true if there was
    /// one since it was last answered well.
    pub fn pause(&mut self, symbol: SymbolId, first: Duration, now: Mono) -> bool {
        let last = self.paused.get(&symbol).map(|(length, _)| *length);
        let length = last.map_or(first, |length| length * 2).min(PAUSE_MAX);
        self.paused.insert(symbol, (length, now + length));
        last.is_some()
    }

    /// A market was answered well.
    pub fn resume(&mut self, symbol: SymbolId) {
        self.paused.remove(&symbol);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_every_market_has_ended() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let mut round = QuoteRound::default();
        assert!(round.is_over());
        round.begin(vec![a, b], false, Mono(0));
        assert_eq!(round.next(), Some(a));
        round.sent(a);
        assert_eq!(round.next(), Some(b));
        assert_eq!(round.ended(true), RoundEnd::NotYet);
        round.sent(b);
        assert_eq!(round.ended(false), RoundEnd::WithQuotes);
        assert!(round.is_over());
        assert_eq!(round.next_stats(), None);
    }

    #[test]
    fn a_round_without_any_answer_has_failed_and_one_given_up_says_nothing() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let mut round = QuoteRound::default();
        round.begin(vec![a], false, Mono(0));
        round.sent(a);
        assert_eq!(round.ended(false), RoundEnd::WithoutQuotes);
        round.begin(vec![a, b], false, Mono(0));
        round.sent(a);
        round.abandon();
        assert_eq!(round.ended(true), RoundEnd::NotYet);
        assert!(round.is_over());
    }

    #[test]
    fn a_market_that_is_unknown_is_left_out_for_twice_as_long_each_time() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let (mut round, second) = (QuoteRound::default(), Duration::from_secs(1));
        let has_a = |round: &mut QuoteRound, at: Mono| {
            round.begin(vec![a, b], false, at);
            round.next() == Some(a)
        };
        let mut now = Mono(0);
        assert!(!round.pause(a, second, now), "the first time is news");
        for seconds in [1, 2, 4, 8] {
            assert!(!has_a(&mut round, now));
            now = now + second * seconds;
            assert!(has_a(&mut round, now), "{seconds}");
            assert!(round.pause(a, second, now));
        }
        for _ in 0..20 {
            round.pause(a, second, now);
        }
        assert!(has_a(&mut round, now + PAUSE_MAX));
        round.resume(a);
        assert!(!round.pause(a, second, now), "it was answered meanwhile");
        round.begin(vec![b], false, now);
        assert!(round.paused.is_empty(), "it has left the list");
    }

    #[test]
    fn every_market_has_its_day_read_in_turn_and_new_ones_first() {
        let (a, b, c) = (SymbolId(1), SymbolId(2), SymbolId(3));
        let mut round = QuoteRound::default();
        round.begin(vec![a, b], true, Mono(5));
        round.sent_stats(b, Mono(5));
        round.sent_stats(a, Mono(6));
        assert_eq!(round.next_stats(), Some((Mono(5) + STATS_AGE, b)));
        round.begin(vec![a, c], true, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(7), c)));
        round.sent_stats(c, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(6) + STATS_AGE, a)));
    }
}
