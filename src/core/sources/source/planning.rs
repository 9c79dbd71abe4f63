//! Which task of a source starts next. The most urgent one first:
//!
//! 1. at the start the market list and the exchange's clock: nothing else makes sense before;
//! 2. quotes, on `pollMs`; one connection is kept free for them;
//! 3. candles that a client waits for, then the newest of each followed series;
//! 4. the market list and the clock, hourly;
//! 5. what is missing between known candles, then the configured depth of history.
//!
//! A request waits until the budget has what it costs. All of this only reads.

use super::Source;
use crate::core::context::Context;
use crate::core::history::Pace;
use crate::core::sources::budget::Share;
use crate::core::sources::candle_plans::PlannedPage;
use crate::core::sources::schedule::Schedule;
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::task::Task;
use crate::time::Mono;

impl Source {
    /// The most urgent task that may start now, or else the first that may start later. `pace` tells which
    /// candles the history takes now.
    pub(super) fn next_task(&self, pace: Pace, cx: &Context) -> Option<(Mono, Task)> {
        let Schedule { has_list, clock, list_due, backoff, .. } = &self.schedule;
        let in_flight = self.connections.requests().count();
        // A failing source gets one request at a time.
        if backoff.is_failing() && in_flight > 0 {
            return None;
        }
        // One connection stays free for quotes, unless there is only one.
        let count = self.connections.len();
        let has_spare = in_flight + 1 < count || count == 1;
        let in_doubt = clock.is_in_doubt();
        let goes_on = !cx.stats.stopping;
        let offer = |is_wanted: bool, due: Mono, task: Task| {
            (is_wanted && goes_on && !self.is_in_flight(&task)).then_some((due, task))
        };
        let page = has_spare.then(|| self.next_page(pace, cx)).flatten();
        let page = page.filter(|page| goes_on || page.urgency == Urgency::Client);
        let is_history = page.as_ref().is_some_and(|page| page.urgency >= Urgency::Hole);
        let page = page
            .map(|PlannedPage { when, series, slots, .. }| (when, Task::Candles { series, slots }));
        let (history, newest) = match is_history {
            true => (page, None),
            false => (None, page),
        };
        // The order is that of urgency.
        let offers = [
            offer(!has_list, *list_due, Task::Markets),
            self.next_quotes().filter(|_| goes_on),
            offer(has_spare && in_doubt, clock.due, Task::Time),
            newest,
            offer(has_spare && *has_list, *list_due, Task::Markets),
            offer(has_spare && !in_doubt, clock.due, Task::Time),
            self.next_stats().filter(|_| has_spare && goes_on),
            history,
        ];
        let after_backoff = |(due, task): (Mono, Task)| (due.max(backoff.until), task);
        let offers = offers.into_iter().flatten().map(after_backoff);
        let mut offers: Vec<(Mono, Task)> = offers.collect();
        // Of several that are due, the most urgent: the first of the least.
        let next = |offers: &[(Mono, Task)]| {
            (0..offers.len()).min_by_key(|at| offers[*at].0.max(cx.now.mono))
        };
        let (mut when, mut task) = offers.remove(next(&offers)?);
        if let Some(other) = next(&offers)
            && offers[other].0 <= cx.now.mono
            && self.must_share(&task, cx)
        {
            (when, task) = offers.swap_remove(other);
        }
        Some((when.max(self.affordable_at(&task, cx)), task))
    }

    /// The next request for quotes: of all markets, or of the next one of the round.
    fn next_quotes(&self) -> Option<(Mono, Task)> {
        if !self.schedule.has_list {
            return None;
        }
        if !self.profile.dialect.tickers_at_once() {
            return Some((Mono::default(), Task::Ticker(self.schedule.round.next()?)));
        }
        let is_free = !self.is_in_flight(&Task::Tickers);
        is_free.then_some((self.schedule.quotes_due, Task::Tickers))
    }

    fn next_stats(&self) -> Option<(Mono, Task)> {
        let (due, symbol) = self.schedule.round.next_stats()?;
        let task = Task::Stats(symbol);
        (!self.is_in_flight(&task)).then_some((due, task))
    }

    /// The next page of candles. None before the market list has come, which tells their names, and
    /// while the clock is in doubt, which tells which of them are closed; and none while the history
    /// file has yet to tell which of them it holds, or has too much to write.
    fn next_page(&self, pace: Pace, cx: &Context) -> Option<PlannedPage> {
        let must_wait = pace == Pace::Hold || self.is_in_flight(&Task::Time);
        if !self.schedule.has_list || self.schedule.clock.is_in_doubt() || must_wait {
            return None;
        }
        let page = self.schedule.candles.next(cx)?;
        (pace == Pace::Free || page.urgency <= Urgency::Newest).then_some(page)
    }

    /// True if a task of this kind is in flight.
    fn is_in_flight(&self, task: &Task) -> bool {
        let kind = std::mem::discriminant(task);
        let mut requests = self.connections.requests();
        requests.any(|request| std::mem::discriminant(request.task()) == kind)
    }

    /// True if quotes have to let another task go first: the budget is tight, and they went last.
    fn must_share(&self, task: &Task, cx: &Context) -> bool {
        task.is_quotes() && self.schedule.budget.turn() == Share::Rest && self.is_tight(cx)
    }

    /// When the budget has what a task costs. Other tasks leave what the next quotes will cost, unless
    /// quotes alone keep the budget busy.
    fn affordable_at(&self, task: &Task, cx: &Context) -> Mono {
        let cost = self.profile.cost(task, cx);
        let reserve = match task.is_quotes() || self.is_tight(cx) {
            true => 0,
            false => self.quotes_cost(cx),
        };
        let budget = &self.schedule.budget;
        budget.ready_at(cost + reserve, cx.now.mono)
    }

    /// True if quotes alone take more than half of the budget.
    fn is_tight(&self, cx: &Context) -> bool {
        let requests = match self.profile.dialect.tickers_at_once() {
            true => 1,
            false => self.schedule.round.len(),
        };
        let cost = self.quotes_cost(cx).saturating_mul(requests);
        (self.schedule.budget).is_tight(cost, self.profile.config.poll)
    }

    /// What one request for quotes costs.
    fn quotes_cost(&self, cx: &Context) -> u32 {
        let at_once = self.profile.dialect.tickers_at_once();
        match (at_once, self.schedule.round.next()) {
            (true, _) => self.profile.cost(&Task::Tickers, cx),
            (false, Some(symbol)) => self.profile.cost(&Task::Ticker(symbol), cx),
            (false, None) => 1,
        }
    }
}
