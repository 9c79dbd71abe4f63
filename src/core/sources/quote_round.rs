//! A round of quotes, some markets at a time, if they are not requested all at once.
//!
//! [`QuoteRound`] owns which markets of the running round are still to be requested, and the 24-hour figures,
//! which are requested separately and less often. A round begins at the first tick after the end of the last
//! round. It begins with its urgent markets: those that the configuration names or a stream follows. At a
//! tick during the round, the urgent markets come again before the rest ([`SHARE_OF_REST`]). No market is in
//! two requests at the same time: the later response could come first. A market that the exchange does not
//! know is left out of more and more rounds. If a request for several markets is refused, half of them are
//! requested at a time, until it is known which one was to blame.

use crate::core::context::Context;
use crate::core::sources::staged::Newest;
use crate::core::sources::task::Task;
use crate::market::{SourceId, SymbolId};
use crate::record::{Stats, Ticker};
use crate::time::Mono;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

/// Between two readings of a market's 24-hour figures: they change by a thousandth a minute.
const STATS_AGE: Duration = Duration::from_secs(60);

/// The least number of rounds between two readings: the figures take at most a tenth of what quotes take.
const STATS_ROUNDS: u32 = 10;

/// The figures take at most one part in `STATS_PARTS` of the budget, and leave the rest to candles.
const STATS_PARTS: u32 = 4;

/// Figures are served for this long after they were read, or for [`STATS_MISSED`] times the time between two
/// readings if that is longer.
const STATS_SERVED: Duration = Duration::from_secs(600);

/// See [`STATS_SERVED`].
const STATS_MISSED: u32 = 3;

/// The longest pause of a market that the exchange does not know: listings change a few times a day.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The urgent markets come again only after one market of the rest was requested for every four of them. So
/// every round ends.
const SHARE_OF_REST: usize = 4;

/// What the end of a request means for its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// Nothing: markets are left, or the round was abandoned.
    NotYet,
    /// At least one market was answered well.
    WithQuotes,
    /// No market was answered well.
    WithoutQuotes,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct QuoteRound {
    /// The urgent markets to request, the next one first.
    urgent: VecDeque<SymbolId>,
    /// The other markets to request, after the urgent ones.
    rest: VecDeque<SymbolId>,
    /// How many of the rest were requested since the urgent ones came last.
    rest_sent: usize,
    /// The markets of this round.
    total: usize,
    /// The most markets of a request.
    most: usize,
    /// `most` after refusals: refusals halve it, and each good response doubles it again.
    most_now: usize,
    /// The markets of the requests in flight.
    in_flight: HashSet<SymbolId>,
    /// True if a market of this round has been answered well.
    pub has_good: bool,
    /// The newest ticker of this round.
    pub newest: Newest,
    /// When the running round began, unless it was abandoned.
    began: Option<Mono>,
    /// How long the last round took.
    took: Option<Duration>,
    /// When the 24-hour figures of each market are read next, in that order.
    stats_due: VecDeque<(Mono, SymbolId)>,
    /// The time between the last two readings of a market's figures, as planned.
    stats_age: Duration,
    /// The 24-hour figures, as they were last read, and when.
    stats: HashMap<SymbolId, (Stats, Mono)>,
    /// Markets that the exchange does not know: how long each is left alone, and until when.
    paused: HashMap<SymbolId, (Duration, Mono)>,
}

impl QuoteRound {
    /// Begins a round over these markets, the urgent ones first. `most`: the most markets in a request. The
    /// 24-hour figures of new markets are read first.
    pub fn begin(
        &mut self,
        (mut urgent, mut rest): (Vec<SymbolId>, Vec<SymbolId>),
        most: usize,
        has_stats: bool,
        now: Mono,
    ) {
        if self.most != most {
            (self.most, self.most_now) = (most, most);
        }
        urgent.retain(|symbol| !self.is_paused(*symbol, now));
        rest.retain(|symbol| !self.is_paused(*symbol, now));
        if has_stats {
            self.plan_stats(&urgent, &rest, now);
        }
        (self.has_good, self.newest) = (false, Newest::default());
        (self.rest_sent, self.total) = (0, urgent.len() + rest.len());
        (self.urgent, self.rest) = (urgent.into(), rest.into());
        self.began = Some(now);
    }

    /// Plans to read the 24-hour figures of these markets and no others. Of the new ones, the urgent come
    /// first.
    pub fn plan_stats(&mut self, urgent: &[SymbolId], rest: &[SymbolId], now: Mono) {
        let wanted: HashSet<SymbolId> = urgent.iter().chain(rest).copied().collect();
        self.stats_due.retain(|(_, symbol)| wanted.contains(symbol));
        let known: HashSet<SymbolId> = self.stats_due.iter().map(|(_, known)| *known).collect();
        // Each market goes to the front, so the first one is pushed last.
        let all = rest.iter().chain(urgent.iter().rev());
        for symbol in all.filter(|symbol| !known.contains(*symbol)) {
            self.stats_due.push_front((now, *symbol));
        }
    }

    /// A tick during the round: the urgent markets that are not in flight come again, unless some of them
    /// still wait, no others are left, or too few of the others were requested since.
    pub fn repeat(&mut self, mut urgent: Vec<SymbolId>, now: Mono) {
        urgent.retain(|symbol| !self.in_flight.contains(symbol) && !self.is_paused(*symbol, now));
        let is_turn = self.rest_sent * SHARE_OF_REST >= urgent.len();
        if urgent.is_empty() || self.rest.is_empty() || !self.urgent.is_empty() || !is_turn {
            return;
        }
        // Some of the rest may have become urgent.
        let again: HashSet<&SymbolId> = urgent.iter().collect();
        self.rest.retain(|symbol| !again.contains(symbol));
        (self.urgent, self.rest_sent) = (urgent.into(), 0);
    }

    fn is_paused(&self, symbol: SymbolId, now: Mono) -> bool {
        self.paused.get(&symbol).is_some_and(|(_, until)| now < *until)
    }

    /// Until when nothing can be requested, if all markets were paused when the round began.
    pub fn idle_until(&self) -> Mono {
        let ends = || self.paused.values().map(|(_, until)| *until).min();
        (self.total == 0).then(ends).flatten().unwrap_or_default()
    }

    /// How long the last round took or, if that is longer, the running one so far.
    pub fn duration(&self, now: Mono) -> Option<Duration> {
        self.took.max(self.began.map(|began| now.since(began)).filter(|_| !self.is_over()))
    }

    /// What to request next, and whether it is urgent.
    pub fn next(&self) -> Option<(Task, bool)> {
        let left = self.urgent.iter().chain(&self.rest);
        let symbols: Vec<_> = left.take(self.most_now).copied().collect();
        let (is_some, is_whole) = (!symbols.is_empty(), symbols.len() == self.total);
        is_some.then_some((Task::TickersOf { symbols, is_whole }, !self.urgent.is_empty()))
    }

    /// The market whose 24-hour figures are read next, and when.
    pub fn next_stats(&self) -> Option<(Mono, SymbolId)> {
        self.stats_due.front().copied()
    }

    /// These markets are being requested.
    pub fn sent(&mut self, symbols: &[SymbolId]) {
        for symbol in symbols {
            if self.urgent.front() == Some(symbol) {
                self.urgent.pop_front();
            } else if self.urgent.is_empty() && self.rest.front() == Some(symbol) {
                self.rest.pop_front();
                self.rest_sent += 1;
            }
        }
        self.in_flight.extend(symbols);
    }

    /// A market's 24-hour figures are being requested. `takes`: the time in which the budget pays for that.
    /// The figures are due again later, whatever comes.
    pub fn sent_stats(&mut self, symbol: SymbolId, takes: Duration, now: Mono) {
        if self.stats_due.front().is_some_and(|(_, due)| *due == symbol) {
            self.stats_due.pop_front();
        }
        let age = self.duration(now).map_or(STATS_AGE, |took| STATS_AGE.max(took * STATS_ROUNDS));
        let markets = self.stats_due.len() as u32 + 1;
        self.stats_age = age.max(takes.saturating_mul(markets.saturating_mul(STATS_PARTS)));
        self.stats_due.push_back((now + self.stats_age, symbol));
    }

    /// Forgets the markets that `is_kept` rejects: they are not requested, and begin anew if they come back.
    pub fn retain(&mut self, is_kept: impl Fn(SymbolId) -> bool) {
        self.urgent.retain(|symbol| is_kept(*symbol));
        self.rest.retain(|symbol| is_kept(*symbol));
        self.stats_due.retain(|(_, symbol)| is_kept(*symbol));
        self.stats.retain(|symbol, _| is_kept(*symbol));
        self.paused.retain(|symbol, _| is_kept(*symbol));
    }

    /// Markets that were being requested are to be requested again, first.
    pub fn put_back(&mut self, symbols: &[SymbolId]) {
        self.landed(symbols);
        symbols.iter().rev().for_each(|symbol| self.urgent.push_front(*symbol));
    }

    /// A request for these markets was refused, because of one of them: they are requested again, half of
    /// them at a time.
    pub fn divide(&mut self, symbols: &[SymbolId]) {
        self.most_now = symbols.len().div_ceil(2);
        self.put_back(symbols);
    }

    /// A market's 24-hour figures are to be requested again.
    pub fn put_back_stats(&mut self, symbol: SymbolId, now: Mono) {
        self.stats_due.retain(|(_, due)| *due != symbol);
        self.stats_due.push_front((now, symbol));
    }

    /// The request of the round for these markets has ended, well or not.
    pub fn ended(&mut self, symbols: &[SymbolId], is_good: bool, now: Mono) -> RoundEnd {
        self.landed(symbols);
        if is_good {
            self.most_now = (2 * self.most_now).min(self.most);
        }
        self.has_good |= is_good;
        if !self.is_over() || self.began.is_none() {
            return RoundEnd::NotYet;
        }
        self.took = self.began.take().map(|began| now.since(began));
        if self.has_good { RoundEnd::WithQuotes } else { RoundEnd::WithoutQuotes }
    }

    fn landed(&mut self, symbols: &[SymbolId]) {
        symbols.iter().for_each(|symbol| _ = self.in_flight.remove(symbol));
    }

    /// True if no market is left and none is in flight.
    pub fn is_over(&self) -> bool {
        self.in_flight.is_empty() && self.urgent.is_empty() && self.rest.is_empty()
    }

    /// Abandons what is left of the round. How long a round takes is not known any more.
    pub fn abandon(&mut self) {
        (self.urgent, self.rest) = Default::default();
        (self.began, self.took) = (None, None);
    }

    /// The 24-hour figures of a market have come.
    pub fn note_stats(&mut self, symbol: SymbolId, stats: Stats, now: Mono) {
        self.stats.insert(symbol, (stats, now));
    }

    /// Completes the ticker of a market by its 24-hour figures, unless they are old.
    pub fn complete(&self, symbol: SymbolId, ticker: &mut Ticker, now: Mono) {
        let served = STATS_SERVED.max(self.stats_age * STATS_MISSED);
        if let Some((stats, at)) = self.stats.get(&symbol)
            && now.since(*at) < served
        {
            ticker.fill_from(stats);
        }
    }

    /// Leaves a market alone for this long, or twice as long as the last time.
    pub fn pause(&mut self, symbol: SymbolId, first: Duration, now: Mono) {
        let last = self.paused.get(&symbol).map(|(length, _)| *length);
        let length = last.map_or(first, |length| length * 2).min(PAUSE_MAX);
        self.paused.insert(symbol, (length, now + length));
    }

    /// A request for the quotes of these markets was answered well.
    pub fn answered(&mut self, symbols: &[SymbolId]) {
        for symbol in symbols {
            self.paused.remove(symbol);
        }
    }
}

/// The urgent markets of a source, which its configuration names or a stream follows, and the others.
pub fn markets(id: SourceId, cx: &Context) -> (Vec<SymbolId>, Vec<SymbolId>) {
    let catalog = &cx.market.catalog;
    let is_listed = |symbol: &SymbolId| catalog.listing(id, *symbol).is_some();
    let symbols = catalog.known().iter().copied().filter(is_listed);
    symbols.partition(|symbol| catalog.is_named(id, *symbol) || cx.followed.contains(*symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn symbols(ids: std::ops::Range<u32>) -> Vec<SymbolId> {
        ids.map(SymbolId).collect()
    }

    fn round_of(urgent: u32, rest: u32) -> QuoteRound {
        let mut round = QuoteRound::default();
        let all = (symbols(0..urgent), symbols(urgent..urgent + rest));
        round.begin(all, 1, false, Mono(0));
        round
    }

    /// What is requested next, and whether it is urgent.
    fn next(round: &QuoteRound) -> Option<(Vec<SymbolId>, bool)> {
        match round.next()? {
            (Task::TickersOf { symbols, .. }, is_urgent) => Some((symbols, is_urgent)),
            (task, _) => panic!("{task:?}"),
        }
    }

    /// Requests the next markets.
    fn send_all(round: &mut QuoteRound) -> Vec<SymbolId> {
        let (symbols, _) = next(round).unwrap_or_default();
        round.sent(&symbols);
        symbols
    }

    /// Requests the next market.
    fn send(round: &mut QuoteRound) -> Option<SymbolId> {
        next(round)?;
        send_all(round).first().copied()
    }

    #[test]
    fn a_refused_request_is_divided_until_it_is_known_which_market_is_to_blame() {
        let mut round = QuoteRound::default();
        round.begin((Vec::new(), symbols(0..45)), 20, false, Mono(0));
        let bad = SymbolId(27);
        let (mut good, mut requests) = (Vec::new(), 0);
        while !round.is_over() {
            let symbols = send_all(&mut round);
            requests += 1;
            match symbols.contains(&bad) {
                true if symbols.len() > 1 => round.divide(&symbols),
                is_bad => {
                    round.ended(&symbols, !is_bad, Mono(0));
                    good.extend(symbols.into_iter().filter(|_| !is_bad));
                }
            }
        }
        good.sort();
        assert_eq!(good, symbols(0..45).into_iter().filter(|it| *it != bad).collect::<Vec<_>>());
        assert!(requests <= 16, "{requests}");
    }

    #[test]
    fn urgent_markets_share_requests_with_the_rest() {
        let mut round = QuoteRound::default();
        round.begin((symbols(0..3), symbols(3..25)), 20, false, Mono(0));
        assert!(matches!(round.next(), Some((Task::TickersOf { is_whole: false, .. }, true))));
        assert_eq!(send_all(&mut round), symbols(0..20));
        assert_eq!(next(&round), Some((symbols(20..25), false)));
        round.repeat(symbols(0..3), Mono(0));
        assert_eq!(next(&round), Some((symbols(20..25), false)), "they are in flight");
        round.ended(&symbols(0..20), true, Mono(0));
        // A stream follows one of the rest.
        round.repeat([symbols(0..3), symbols(20..21)].concat(), Mono(0));
        let again = [symbols(0..3), symbols(20..25)].concat();
        assert_eq!(send_all(&mut round), again);
        round.put_back(&again);
        assert_eq!(send_all(&mut round), again);
        round.put_back(&symbols(20..25));
        assert_eq!(next(&round), Some((symbols(20..25), true)));
        round.begin((symbols(0..3), Vec::new()), 20, false, Mono(0));
        assert!(matches!(round.next(), Some((Task::TickersOf { is_whole: true, .. }, true))));
    }

    #[test]
    fn a_round_is_over_when_every_market_has_ended() {
        assert!(QuoteRound::default().is_over());
        let mut round = round_of(1, 1);
        assert_eq!(next(&round), Some((vec![SymbolId(0)], true)));
        send(&mut round);
        assert_eq!(next(&round), Some((vec![SymbolId(1)], false)));
        assert_eq!(round.ended(&symbols(0..1), true, Mono(0)), RoundEnd::NotYet);
        send(&mut round);
        assert_eq!(round.duration(Mono(3_000_000)), Some(SECOND * 3), "it runs");
        assert_eq!(round.ended(&symbols(1..2), false, Mono(5_000_000)), RoundEnd::WithQuotes);
        assert!(round.is_over());
        assert_eq!(round.duration(Mono(9_000_000)), Some(SECOND * 5));
        assert_eq!(round.next_stats(), None);
    }

    #[test]
    fn a_round_without_any_answer_has_failed_and_one_given_up_says_nothing() {
        let mut round = round_of(0, 1);
        send(&mut round);
        assert_eq!(round.ended(&symbols(0..1), false, Mono(0)), RoundEnd::WithoutQuotes);
        let mut round = round_of(0, 2);
        send(&mut round);
        round.abandon();
        assert_eq!(round.ended(&symbols(0..1), true, Mono(0)), RoundEnd::NotYet);
        assert!(round.is_over());
    }

    #[test]
    fn urgent_markets_come_again_at_each_tick_and_the_round_still_ends() {
        // 40 urgent markets are more than are sent in one tick: the rest still gets its share.
        for (urgent, a_tick) in [(1, 2), (1, 1), (10, 2), (40, 3)] {
            let (rest, mut ticks) = (105, 0);
            let mut round = round_of(urgent, rest);
            let mut sent = vec![0; (urgent + rest) as usize];
            let mut longest = 0;
            let mut since = 0;
            while !round.is_over() {
                for _ in 0..a_tick {
                    if let Some(symbol) = send(&mut round) {
                        sent[symbol.index()] += 1;
                        since = if symbol == SymbolId(0) { 0 } else { since + 1 };
                        longest = longest.max(since);
                        round.ended(&[symbol], true, Mono(0));
                    }
                }
                round.repeat(symbols(0..urgent), Mono(0));
                ticks += 1;
                assert!(ticks < 10_000, "the round ends");
            }
            assert!(sent[urgent as usize..].iter().all(|times| *times == 1));
            assert!(longest <= urgent as usize + urgent as usize / 4 + a_tick + 1, "{longest}");
        }
    }

    #[test]
    fn a_round_of_urgent_markets_alone_does_not_begin_again_before_its_end() {
        let mut round = round_of(3, 0);
        for _ in 0..3 {
            send(&mut round);
            round.repeat(symbols(0..3), Mono(0));
        }
        assert_eq!(next(&round), None);
    }

    #[test]
    fn a_market_that_is_unknown_is_left_out_for_twice_as_long_each_time() {
        let (a, b) = (SymbolId(1), SymbolId(2));
        let mut round = QuoteRound::default();
        let has_a = |round: &mut QuoteRound, at: Mono| {
            round.begin((vec![a, b], Vec::new()), 1, false, at);
            next(round) == Some((vec![a], true))
        };
        let mut now = Mono(0);
        round.pause(a, SECOND, now);
        for seconds in [1, 2, 4, 8] {
            assert!(!has_a(&mut round, now));
            now = now + SECOND * seconds;
            assert!(has_a(&mut round, now), "{seconds}");
            round.pause(a, SECOND, now);
        }
        for _ in 0..20 {
            round.pause(a, SECOND, now);
        }
        assert!(has_a(&mut round, now + PAUSE_MAX));
        round.answered(&[a]);
        assert!(has_a(&mut round, now), "it was answered meanwhile");
        round.pause(a, SECOND, now);
        round.retain(|symbol| symbol == b);
        assert!(round.paused.is_empty(), "it has left the list");
    }

    #[test]
    fn every_market_has_its_day_read_in_turn_and_new_ones_first() {
        let (a, b, c) = (SymbolId(1), SymbolId(2), SymbolId(3));
        let mut round = QuoteRound::default();
        round.begin((vec![b], vec![a]), 1, true, Mono(5));
        assert_eq!(round.next_stats(), Some((Mono(5), b)), "the urgent ones first");
        round.sent_stats(b, SECOND, Mono(5));
        round.sent_stats(a, SECOND, Mono(6));
        assert_eq!(round.next_stats(), Some((Mono(5) + STATS_AGE, b)));
        round.begin((Vec::new(), vec![a, c]), 1, true, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(7), c)));
        round.sent_stats(c, SECOND, Mono(7));
        assert_eq!(round.next_stats(), Some((Mono(6) + STATS_AGE, a)));
    }

    #[test]
    fn figures_of_the_day_take_a_tenth_of_what_slow_rounds_take() {
        let mut round = QuoteRound::default();
        round.begin((Vec::new(), symbols(0..1)), 1, true, Mono(0));
        send(&mut round);
        round.ended(&symbols(0..1), true, Mono(66_000_000));
        round.sent_stats(SymbolId(0), SECOND, Mono(66_000_000));
        assert_eq!(round.next_stats(), Some((Mono(726_000_000), SymbolId(0))));
    }

    #[test]
    fn figures_of_the_day_take_a_quarter_of_the_budget() {
        let mut round = QuoteRound::default();
        round.plan_stats(&symbols(0..1), &symbols(1..100), Mono(0));
        assert_eq!(round.next_stats(), Some((Mono(0), SymbolId(0))), "the urgent ones first");
        round.sent_stats(SymbolId(0), SECOND, Mono(0));
        let last = round.stats_due.back();
        assert_eq!(last, Some(&(Mono(400_000_000), SymbolId(0))));
        round.plan_stats(&[], &symbols(5..6), Mono(7));
        assert_eq!(round.stats_due.len(), 1, "the others have left the list");
    }
}
