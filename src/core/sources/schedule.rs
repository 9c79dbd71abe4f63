//! When what is requested of one exchange.
//!
//! [`Schedule`] owns when each kind of task is due next, what has to be known before (the market list,
//! the exchange's clock), the exchange's budget and the back-off. A tick is planned from the last due
//! time; a missed one is skipped, never queued. `source/planning` chooses from it.

use crate::core::context::Context;
use crate::core::sources::backoff::Backoff;
use crate::core::sources::budget::{Budget, Share};
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::sources::clock::ExchangeClock;
use crate::core::sources::quote_round::{QuoteRound, RoundEnd};
use crate::core::sources::task::{Profile, Task};
use crate::core::stats::SourceState;
use crate::exchange::Meter;
use crate::market::{Awaited, SymbolId};
use crate::time::Mono;
use std::time::Duration;

/// Between two readings of the market list: listings change a few times a day.
pub const HOURLY: Duration = Duration::from_secs(3600);

/// Before the next try of an hourly task that failed.
const HOURLY_RETRY: Duration = Duration::from_secs(60);

/// See the module's page.
pub struct Schedule {
    /// When all quotes are due, or the next round of them.
    pub quotes_due: Mono,
    /// True until the first poll.
    is_first: bool,
    /// When the market list is due.
    pub list_due: Mono,
    /// True once the first market list is in place.
    pub has_list: bool,
    /// Quotes market by market, if the exchange has no call for all of them.
    pub round: QuoteRound,
    /// Candles.
    pub candles: CandlePlans,
    /// The exchange's clock.
    pub clock: ExchangeClock,
    /// What may still be asked.
    pub budget: Budget,
    /// How long the source is left alone.
    pub backoff: Backoff,
}

impl Schedule {
    /// The market list and the clock are due at once.
    pub fn new(profile: &Profile, seed: u64, now: Mono) -> Schedule {
        Schedule {
            quotes_due: now,
            is_first: false,
            list_due: now,
            has_list: false,
            round: QuoteRound::default(),
            candles: CandlePlans::new(profile),
            clock: ExchangeClock::new(profile.id, now),
            budget: Budget::new(profile.limit, profile.dearest(), now),
            backoff: Backoff::new(profile, seed, now),
        }
    }

    /// Takes in new settings. Budget and back-off go on.
    pub fn reconfigure(&mut self, profile: &Profile, now: Mono) {
        self.backoff.reconfigure(profile);
        if self.quotes_due > now + profile.config.poll {
            self.quotes_due = now + profile.second_poll;
        }
    }

    /// Quotes are due at once, and then in a phase of the interval that is the source's own
    /// ([`Profile::second_poll`]).
    pub fn begin_quotes(&mut self, now: Mono) {
        self.quotes_due = now;
        self.is_first = true;
    }

    /// Quotes are requested now: sets when they are due next.
    fn plan_quotes(&mut self, profile: &Profile, now: Mono) {
        self.quotes_due = match std::mem::take(&mut self.is_first) {
            true => now + profile.second_poll,
            false => next_tick(self.quotes_due, profile.config.poll, now),
        };
    }

    /// When the next quotes are due, the back-off included.
    pub fn next_quotes(&self) -> Mono {
        self.quotes_due.max(self.backoff.until)
    }

    /// Begins a round of quotes if one is due and the last one is over.
    pub fn begin_round(&mut self, profile: &Profile, cx: &mut Context) {
        let is_due = self.has_list && self.next_quotes() <= cx.now.mono;
        if profile.dialect.tickers_at_once() || !is_due || !self.round.is_over() {
            return;
        }
        self.plan_quotes(profile, cx.now.mono);
        let catalog = &cx.market.catalog;
        let is_listed = |symbol: &SymbolId| catalog.listing(profile.id, *symbol).is_some();
        let symbols = catalog.known().iter().copied().filter(is_listed).collect();
        self.round.begin(symbols, profile.dialect.has_stats(), cx.now.mono);
        cx.market.quotes.came(profile.id, Awaited::Poll);
    }

    /// A request for this task is being sent: sets when the task is due next, and pays for it.
    pub fn sent(&mut self, profile: &Profile, task: &Task, cx: &mut Context) {
        let now = cx.now.mono;
        match task {
            Task::Tickers => {
                self.plan_quotes(profile, now);
                cx.market.quotes.came(profile.id, Awaited::Poll);
            }
            Task::Ticker(symbol) => self.round.sent(*symbol),
            Task::Stats(symbol) => self.round.sent_stats(*symbol, now),
            Task::Markets => {
                self.list_due = now + HOURLY;
                cx.market.catalog.begin_list(profile.id);
            }
            Task::Time => self.clock.sent(cx.now),
            Task::Candles { series, slots } => self.candles.sent(*series, slots.clone(), cx),
        }
        let share = match task.is_quotes() {
            true => Share::Quotes,
            false => Share::Rest,
        };
        self.budget.spend(profile.cost(task, cx), share, now);
        cx.stats[profile.id].polls += 1;
        cx.stats[profile.id].budget_spent = self.budget.spent();
    }

    /// A request has come to nothing through nobody's fault: its task is due again, at once.
    pub fn put_back(&mut self, task: &Task, now: Mono) {
        match task {
            Task::Tickers => self.quotes_due = now,
            Task::Ticker(symbol) => self.round.put_back(*symbol),
            Task::Stats(symbol) => self.round.put_back_stats(*symbol, now),
            Task::Markets => self.list_due = now,
            Task::Time => self.clock.due = now,
            Task::Candles { series, .. } => self.candles.put_back(*series),
        }
    }

    /// A request has failed: sets when its task is due again.
    pub fn failed(&mut self, profile: &Profile, task: &Task, cx: &mut Context) {
        match task {
            Task::Candles { series, .. } => self.candles.failed(*series, cx.now),
            Task::Markets => {
                // Without a first list nothing is served: then only the back-off counts.
                self.list_due = match self.has_list {
                    true => cx.now.mono + HOURLY_RETRY,
                    false => cx.now.mono,
                };
                cx.market.catalog.abandon_list(profile.id);
            }
            Task::Time => self.clock.failed(HOURLY_RETRY, cx.now),
            Task::Ticker(_) => self.market_ended(profile, false, cx),
            Task::Tickers | Task::Stats(_) => {}
        }
    }

    /// One market of a round has been answered well, or not: the last one ends the round.
    pub fn market_ended(&mut self, profile: &Profile, is_good: bool, cx: &mut Context) {
        match self.round.ended(is_good) {
            RoundEnd::NotYet => return,
            RoundEnd::WithQuotes => cx.market.quotes.end_poll(profile.id, cx.now),
            // The exchange answers, and has none of the markets: nothing is waited for, and the source
            // must not pass for up.
            RoundEnd::WithoutQuotes => {
                cx.stats[profile.id].state = SourceState::Backoff;
                cx.stats[profile.id].failing_since.get_or_insert(cx.now.unix);
            }
        }
        cx.market.quotes.came(profile.id, Awaited::Answer);
        cx.stats[profile.id].quotes_polled = true;
    }

    /// The head of a response tells how the budget stands.
    pub fn metered(&mut self, profile: &Profile, units: u64, cx: &mut Context) {
        match profile.dialect.meter() {
            Some(Meter::Used(_)) => self.budget.note_used(units, cx.now.mono),
            Some(Meter::Left(_)) => self.budget.note_left(units, cx.now.mono),
            None => {}
        }
        cx.stats[profile.id].budget_left = self.budget.left(cx.now.mono);
    }
}

/// The first tick after `now` of those that began at `due`. Missed ones are skipped.
fn next_tick(due: Mono, every: Duration, now: Mono) -> Mono {
    let every = every.as_micros().max(1) as u64;
    let missed = now.0.saturating_sub(due.0) / every;
    Mono(due.0.saturating_add((missed + 1).saturating_mul(every)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::core::stats::Status;
    use crate::market::{Market, SourceId};
    use crate::time::{Now, UnixMs};

    #[test]
    fn sources_that_begin_together_are_polled_apart() {
        let sources = ["binance", "okx", "bybit", "kraken"].map(SourceConfig::of);
        let config = Config { sources: sources.into(), ..Config::default() };
        let poll = config.sources[0].poll;
        let begin = Now { mono: Mono(5_000_000), unix: UnixMs(1_700_000_000_000) };
        let stats = Status::new(["binance", "okx", "bybit", "kraken"].into_iter(), begin);
        let mut cx = Context::new(config.clone(), Market::new(&config), stats, begin);
        for source in 0..4 {
            let profile = Profile::new(SourceId(source), &config);
            let mut schedule = Schedule::new(&profile, 0, begin.mono);
            cx.now = begin;
            schedule.begin_quotes(begin.mono);
            let mut polls = Vec::new();
            for _ in 0..4 {
                polls.push(schedule.next_quotes());
                cx.now.mono = schedule.next_quotes();
                schedule.sent(&profile, &Task::Tickers, &mut cx);
            }
            let second = begin.mono + poll * (u32::from(source) + 1) / 4;
            assert_eq!(polls, [begin.mono, second, second + poll, second + poll * 2]);
        }
    }
}
