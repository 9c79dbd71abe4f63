//! The schedule of one source: which request to its exchange starts next, and when. The most urgent first:
//!
//! 1. the market list as long as there is none, since quotes and candles need it;
//! 2. quotes, on `pollMs`; one connection is kept free for them;
//! 3. the exchange's clock while it is in doubt, since candles need it;
//! 4. candles that a client waits for, then the newest of each followed series;
//! 5. the market list, then the clock, hourly;
//! 6. the 24-hour figures of markets whose tickers lack them;
//! 7. what is missing between known candles, then the configured depth of history.
//!
//! [`Schedule`] owns when each kind of task is due next, what has to be known before (the market list,
//! the exchange's clock), the exchange's budget and the back-off. A tick is planned from the last due
//! time; a missed one is skipped, never queued. A request waits until the budget has what it costs.

use crate::config::Config;
use crate::core::context::Context;
use crate::core::history::Pace;
use crate::core::sources::backoff::Backoff;
use crate::core::sources::budget::{Budget, Share};
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::sources::clock::{ExchangeClock, Witness};
use crate::core::sources::quote_round::{QuoteRound, RoundEnd};
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::task::{Profile, Task};
use crate::core::stats::SourceState;
use crate::exchange::Meter;
use crate::market::{Awaited, SymbolId};
use crate::time::{Mono, UnixMs};
use std::mem::discriminant;
use std::time::Duration;

/// Between two readings of the market list: listings change a few times a day.
pub const HOURLY: Duration = Duration::from_secs(3600);

/// The pause before a market list that failed, or lacks markets that may be there, is read again.
pub const HOURLY_RETRY: Duration = Duration::from_secs(60);

/// See the module's page.
pub struct Schedule {
    /// The source's settings.
    pub profile: Profile,
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
    pub fn new(profile: Profile, seed: u64, now: Mono) -> Schedule {
        Schedule {
            quotes_due: now,
            is_first: false,
            list_due: now,
            has_list: false,
            round: QuoteRound::default(),
            candles: CandlePlans::new(&profile),
            clock: ExchangeClock::new(profile.id, now),
            budget: Budget::new(profile.limit, profile.dearest(), now),
            backoff: Backoff::new(profile.id, seed, now),
            profile,
        }
    }

    /// Takes in new settings. Budget and back-off go on.
    pub fn reconfigure(&mut self, config: &Config, now: Mono) {
        self.profile = self.profile.renewed(config);
        if self.quotes_due > now + self.profile.config.poll {
            self.quotes_due = now + self.profile.second_poll;
        }
    }

    /// Quotes are due at once, and then in a phase of the interval that is the source's own
    /// ([`Profile::second_poll`]).
    pub fn begin_quotes(&mut self, now: Mono) {
        self.quotes_due = now;
        self.is_first = true;
    }

    /// Quotes are requested now: sets when they are due next.
    fn plan_quotes(&mut self, now: Mono) {
        self.quotes_due = match std::mem::take(&mut self.is_first) {
            true => now + self.profile.second_poll,
            false => {
                // Missed ticks are skipped.
                let poll = self.profile.config.poll.as_micros().max(1) as u64;
                let missed = now.0.saturating_sub(self.quotes_due.0) / poll;
                Mono(self.quotes_due.0.saturating_add((missed + 1).saturating_mul(poll)))
            }
        };
    }

    /// When the next quotes are due, the back-off included.
    pub fn next_quotes(&self) -> Mono {
        self.quotes_due.max(self.backoff.until)
    }

    /// Begins a round of quotes if one is due and the last one is over.
    pub fn begin_round(&mut self, cx: &mut Context) {
        let (id, dialect) = (self.profile.id, self.profile.dialect);
        let is_due = self.has_list && self.next_quotes() <= cx.now.mono && !cx.stats.stopping;
        if dialect.tickers_at_once() || !is_due || !self.round.is_over() {
            return;
        }
        self.plan_quotes(cx.now.mono);
        let catalog = &cx.market.catalog;
        let is_listed = |symbol: &SymbolId| catalog.listing(id, *symbol).is_some();
        let symbols = catalog.known().iter().copied().filter(is_listed).collect();
        self.round.begin(symbols, dialect.has_stats(), cx.now.mono);
        cx.market.quotes.arrived(id, Awaited::Poll);
    }

    /// The most urgent task that may start now, or else the first that may start later, on one of so many
    /// connections. `pace` tells which candles the history takes now.
    pub fn next(
        &self,
        in_flight: &[&Task],
        connections: usize,
        pace: Pace,
        cx: &Context,
    ) -> Option<(Mono, Task)> {
        // A failing source gets one request at a time.
        if self.backoff.is_failing() && !in_flight.is_empty() {
            return None;
        }
        // One connection stays free for quotes, unless there is only one.
        let has_spare = in_flight.len() + 1 < connections || connections == 1;
        let mut offers = self.offers(in_flight, has_spare, pace, cx);
        // Of several that are due, the most urgent: the first of the least.
        let next = |offers: &[(Mono, Task)]| {
            (0..offers.len()).min_by_key(|at| offers[*at].0.max(cx.now.mono))
        };
        let (mut when, mut task) = offers.remove(next(&offers)?);
        let (quotes_cost, is_tight) = self.quotes_cost(cx);
        // If the budget is tight and quotes went last, another task that is due goes first.
        if task.is_quotes()
            && is_tight
            && self.budget.last == Share::Quotes
            && let Some(other) = next(&offers)
            && offers[other].0 <= cx.now.mono
        {
            (when, task) = offers.swap_remove(other);
        }
        // Other tasks leave what the next quotes will cost, unless quotes alone keep the budget busy.
        let reserve = match task.is_quotes() || is_tight {
            true => 0,
            false => quotes_cost,
        };
        let cost = self.profile.cost(&task, cx) + reserve;
        Some((when.max(self.budget.ready_at(cost, cx.now.mono)), task))
    }

    /// The tasks that may be requested, the most urgent first, and when each is due.
    fn offers(
        &self,
        in_flight: &[&Task],
        has_spare: bool,
        pace: Pace,
        cx: &Context,
    ) -> Vec<(Mono, Task)> {
        let (has_list, in_doubt) = (self.has_list, self.clock.is_in_doubt());
        let goes_on = !cx.stats.stopping;
        let is_in_flight =
            |task: &Task| in_flight.iter().any(|it| discriminant(*it) == discriminant(task));
        let offer = |is_wanted: bool, due: Mono, task: Task| {
            (is_wanted && goes_on && !is_in_flight(&task)).then_some((due, task))
        };
        let quotes = match self.profile.dialect.tickers_at_once() {
            true => offer(has_list, self.quotes_due, Task::Tickers),
            // Several of them may be in flight.
            false => {
                let next = self.round.next().filter(|_| goes_on);
                next.map(|symbol| (Mono::default(), Task::Ticker(symbol)))
            }
        };
        let stats = self.round.next_stats();
        // No candles before the market list has come, which tells their names; and none while the history file
        // has yet to tell which of them it holds, or has too much to write.
        let has_page = has_spare && has_list && pace != Pace::Hold;
        let is_asked = |key| {
            let is_same =
                |task: &&Task| matches!(task, Task::Candles { series, .. } if *series == key);
            in_flight.iter().any(is_same)
        };
        let page =
            (has_page && !is_in_flight(&Task::Time)).then(|| self.candles.next(is_asked, cx));
        let page = page.flatten().filter(|page| {
            let is_client = page.urgency == Urgency::Client;
            // What a witness takes for the future cannot be judged.
            let sure = cx.stats[self.profile.id].sure_time(cx.now);
            (goes_on || is_client)
                && (pace == Pace::Free || page.urgency <= Urgency::Newest)
                && page.slots.end <= page.series.interval.slot_of(sure) + 1
        });
        let candles = |is_history: bool| {
            let page = page.clone().filter(|it| (it.urgency >= Urgency::Hole) == is_history)?;
            Some((page.when, Task::Candles { series: page.series, slots: page.slots }))
        };
        let all = [
            offer(!has_list, self.list_due, Task::Markets),
            quotes,
            offer(has_spare && in_doubt, self.clock.due, Task::Time),
            candles(false),
            offer(has_spare && has_list, self.list_due, Task::Markets),
            offer(has_spare && !in_doubt, self.clock.due, Task::Time),
            stats.and_then(|(due, symbol)| offer(has_spare, due, Task::Stats(symbol))),
            candles(true),
        ];
        let after_backoff = |(due, task): (Mono, Task)| (due.max(self.backoff.until), task);
        all.into_iter().flatten().map(after_backoff).collect()
    }

    /// What one request for quotes costs, and whether quotes alone take more than half of the budget.
    fn quotes_cost(&self, cx: &Context) -> (u32, bool) {
        let (task, requests) = match self.profile.dialect.tickers_at_once() {
            true => (Some(Task::Tickers), 1),
            false => (self.round.next().map(Task::Ticker), self.round.len()),
        };
        let cost = task.map_or(1, |task| self.profile.cost(&task, cx));
        (cost, self.budget.is_tight(cost.saturating_mul(requests), self.profile.config.poll))
    }

    /// A request for this task is being sent: sets when the task is due next, and pays for it.
    pub fn sent(&mut self, task: &Task, cx: &mut Context) {
        let (id, now) = (self.profile.id, cx.now.mono);
        match task {
            Task::Tickers => {
                self.plan_quotes(now);
                cx.market.quotes.arrived(id, Awaited::Poll);
            }
            Task::Ticker(symbol) => self.round.sent(*symbol),
            Task::Stats(symbol) => self.round.sent_stats(*symbol, now),
            Task::Markets => {
                self.list_due = now + HOURLY;
                cx.market.catalog.begin_list(id);
            }
            Task::Time => self.clock.asked(now),
            Task::Candles { series, .. } => self.candles.note_reach(*series, cx),
        }
        let share = match task.is_quotes() {
            true => Share::Quotes,
            false => Share::Rest,
        };
        self.budget.spend(self.profile.cost(task, cx), share, now);
        cx.stats[id].polls += 1;
        cx.stats[id].budget_spent = self.budget.spent();
    }

    /// A request has come to nothing through nobody's fault: its task is due again, at once.
    pub fn put_back(&mut self, task: &Task, now: Mono) {
        match task {
            Task::Tickers => self.quotes_due = now,
            Task::Ticker(symbol) => self.round.put_back(*symbol),
            Task::Stats(symbol) => self.round.put_back_stats(*symbol, now),
            Task::Markets => self.list_due = now,
            Task::Time => self.clock.due = now,
            // It is due as long as its slots are missing.
            Task::Candles { .. } => {}
        }
    }

    /// A request has failed: sets when its task is due again. Returns what that means for the round.
    pub fn failed(&mut self, task: &Task, cx: &mut Context) -> RoundEnd {
        match task {
            Task::Candles { series, .. } => self.candles.failed(*series, cx.now),
            Task::Markets => {
                // Without a first list nothing is served: then only the back-off counts.
                self.list_due = match self.has_list {
                    true => cx.now.mono + HOURLY_RETRY,
                    false => cx.now.mono,
                };
                cx.market.catalog.abandon_list(self.profile.id);
            }
            Task::Time => self.clock.failed(&mut self.candles, cx),
            Task::Ticker(_) => return self.market_ended(false, cx),
            Task::Tickers | Task::Stats(_) => {}
        }
        RoundEnd::NotYet
    }

    /// One market of a round has been answered well, or not: the last one ends the round.
    pub fn market_ended(&mut self, is_good: bool, cx: &mut Context) -> RoundEnd {
        let id = self.profile.id;
        let end = self.round.ended(is_good);
        match end {
            RoundEnd::NotYet => return end,
            RoundEnd::WithQuotes => cx.market.quotes.end_poll(id, cx.now),
            // The exchange answers, and has none of the markets: nothing is waited for, and the source
            // must not pass for up.
            RoundEnd::WithoutQuotes => {
                cx.stats[id].state = SourceState::Backoff;
                cx.stats[id].failing_since.get_or_insert(cx.now.unix);
            }
        }
        cx.market.quotes.arrived(id, Awaited::PollEnd);
        cx.stats[id].quotes_polled = true;
        end
    }

    /// A response to a request that was sent at `sent` tells that the exchange's time was between these two.
    pub fn note_time(
        &mut self,
        witness: Witness,
        told: (UnixMs, UnixMs),
        sent: Mono,
        cx: &mut Context,
    ) {
        // Where the time call is the date of a response, both are one witness.
        let is_second = witness == Witness::Call && self.profile.dialect.is_dated();
        let witness = if is_second { Witness::Date } else { witness };
        self.clock.note(witness, told, sent, &mut self.candles, cx);
    }

    /// The head of a response tells how the budget stands.
    pub fn metered(&mut self, units: u64, now: Mono) {
        match self.profile.dialect.meter() {
            Some(Meter::Used(_)) => self.budget.note_used(units, now),
            Some(Meter::Left(_)) => self.budget.note_left(units, now),
            None => {}
        }
    }
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
            let mut schedule = Schedule::new(profile, 0, begin.mono);
            cx.now = begin;
            schedule.begin_quotes(begin.mono);
            let mut polls = Vec::new();
            for _ in 0..4 {
                polls.push(schedule.next_quotes());
                cx.now.mono = schedule.next_quotes();
                schedule.sent(&Task::Tickers, &mut cx);
            }
            let second = begin.mono + poll * (u32::from(source) + 1) / 4;
            assert_eq!(polls, [begin.mono, second, second + poll, second + poll * 2]);
        }
    }
}
