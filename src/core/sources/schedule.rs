//! When a source is asked for what.
//!
//! Owns the order of urgency and the arithmetic of ticks. It never touches a connection: a task
//! that starts is handed to its lane.

use super::source::Source;
use crate::core::Action;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::history::Pace;
use crate::core::sources::Upstream;
use crate::core::sources::budget::Share;
use crate::core::sources::fetches::{Page, SILENT_FOR_MS, Urgency, widened};
use crate::core::sources::task::{Task, describe, time_for};
use crate::core::sources::upstream::{Asking, Lane, open_times};
use crate::core::stats::on_wall;
use crate::exchange::{Call, Caps, Meter, Reading};
use crate::http::write_request;
use crate::interval::Stored;
use crate::log_targets::SOURCE;
use crate::market::{Market, REREAD, Series, SeriesKey, SymbolId};
use crate::table::Table;
use crate::time::{Mono, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// Between two readings of the market list, and of the exchange's clock. Listings change a few
/// times a day; clocks of machines drift by seconds a day.
const HOURLY: Duration = Duration::from_secs(3600);

/// Candles in a row by which a series counts as followed, at the least: a client's one look into the
/// past is mostly shorter, also where hardly anything is fetched unasked.
const FOLLOWED: i64 = 1000;

impl Source {
    /// Starts every task that is due and has a free lane, then works out when to look again.
    pub(super) fn start_due(
        &mut self,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) {
        self.begin_round(cx);
        let mut next = None;
        while let Some(lane) = self.lanes.iter().position(|lane| lane.asking.is_none()) {
            match self.plan(history, cx) {
                Some((when, task)) if when <= cx.now.mono => {
                    self.start(lane, task, conns, cx);
                }
                planned => {
                    if let Some((when, task)) = &planned {
                        log::debug!(
                            target: SOURCE,
                            "planned source={} what={:?} in_ms={}",
                            self.config.id,
                            describe(task, &cx.market),
                            when.since(cx.now.mono).as_millis(),
                        );
                    }
                    next = planned.map(|(when, _)| when);
                    break;
                }
            }
        }
        let deadlines = self.lanes.iter().filter_map(Lane::due);
        let waits_for_round = !self.dialect.tickers_at_once() && self.has_list;
        let round =
            (waits_for_round && self.round.is_over()).then(|| self.tickers.max(self.backoff_until));
        let down = self.down_at(cx);
        self.wake = deadlines.chain(next).chain(round).chain(down).min();
        cx.stats[self.id].next_poll = self.tickers.max(self.backoff_until);
        cx.stats[self.id].next_poll_at = Some(on_wall(cx.stats[self.id].next_poll, cx.now));
        cx.stats[self.id].budget_left = self.budget.left(cx.now.mono);
    }

    /// The most urgent task that may start now, or else the first that may start later.
    fn plan(&self, history: &History, cx: &Context) -> Option<(Mono, Task)> {
        let busy = self
            .lanes
            .iter()
            .filter(|lane| lane.asking.is_some())
            .count();
        // A failing source gets one request at a time.
        if self.failures > 0 && busy > 0 || !self.applying.is_empty() {
            return None;
        }
        // One lane stays free for quotes, unless there is but one.
        let spare = busy + 1 < self.lanes.len() || self.lanes.len() == 1;
        let in_doubt = self.clock.is_in_doubt();
        let goes_on = !cx.stats.stopping;
        let offer = |wanted: bool, due: Mono, task: Task| {
            (wanted && goes_on && !self.is_under_way(&task)).then_some((due, task))
        };
        let page = spare.then(|| self.next_page(history, cx)).flatten();
        let page_of = |history: bool| {
            let page = page.as_ref()?;
            if cx.stats.stopping && page.urgency != Urgency::Asked {
                return None;
            }
            let (series, slots) = (page.series, page.slots.clone());
            let is_history = page.urgency >= Urgency::Hole;
            (is_history == history).then_some((page.when, Task::Candles { series, slots }))
        };
        // The order is that of urgency.
        let offers = [
            offer(!self.has_list, self.markets, Task::Markets),
            self.next_quotes().filter(|_| goes_on),
            offer(spare && in_doubt, self.clock.due, Task::Time),
            page_of(false),
            offer(spare && self.has_list, self.markets, Task::Markets),
            offer(spare && !in_doubt, self.clock.due, Task::Time),
            (spare && goes_on).then(|| self.next_stats()).flatten(),
            page_of(true),
        ];
        let gate = |(due, task): (Mono, Task)| (due.max(self.backoff_until), task);
        let mut offers: Vec<(Mono, Task)> = offers.into_iter().flatten().map(gate).collect();
        // Of several that are due, the most urgent: the first of the least.
        let next = |offers: &[(Mono, Task)]| {
            let places = 0..offers.len();
            places.min_by_key(|at| offers[*at].0.max(cx.now.mono))
        };
        let (mut when, mut task) = offers.remove(next(&offers)?);
        if let Some(rest) = next(&offers)
            && offers[rest].0 <= cx.now.mono
            && self.must_share(&task, cx)
        {
            (when, task) = offers.swap_remove(rest);
        }
        Some((when.max(self.affordable_at(&task, cx)), task))
    }

    /// Begins a round of quotes when it is due, where they are asked for market by market.
    fn begin_round(&mut self, cx: &Context) {
        let is_due = self.has_list && self.tickers.max(self.backoff_until) <= cx.now.mono;
        if self.dialect.tickers_at_once() || !is_due || !self.round.is_over() {
            return;
        }
        self.tickers = next_tick(self.tickers, self.config.poll, cx.now.mono);
        let catalog = &cx.market.catalog;
        let listed = |symbol: &SymbolId| catalog.listing(self.id, *symbol).is_some();
        let symbols = catalog.known().iter().copied().filter(listed).collect();
        self.round
            .begin(symbols, self.dialect.has_stats(), cx.now.mono);
    }

    /// The next request for quotes: of all markets, or of the next one of the round.
    fn next_quotes(&self) -> Option<(Mono, Task)> {
        if !self.has_list {
            return None;
        }
        if !self.dialect.tickers_at_once() {
            return Some((Mono::default(), Task::Ticker(self.round.next()?)));
        }
        (!self.is_under_way(&Task::Tickers)).then_some((self.tickers, Task::Tickers))
    }

    fn next_stats(&self) -> Option<(Mono, Task)> {
        let (due, symbol) = self.round.next_stats()?;
        let task = Task::Stats(symbol);
        (!self.is_under_way(&task)).then_some((due, task))
    }

    /// Whether quotes have to let somebody else go first: the budget is tight, and they went last.
    fn must_share(&self, task: &Task, cx: &Context) -> bool {
        task.is_quotes() && self.budget.turn() == Share::Rest && self.is_tight(cx)
    }

    /// When the budget has what a task costs. The others leave what the next quotes will cost,
    /// unless quotes alone keep the budget busy.
    fn affordable_at(&self, task: &Task, cx: &Context) -> Mono {
        let cost = self.cost(task, cx);
        let reserve = match task.is_quotes() || self.is_tight(cx) {
            true => 0,
            false => self.quotes_cost(cx),
        };
        self.budget.ready_at(cost + reserve, cx.now.mono)
    }

    /// Whether quotes alone take more than half of the budget.
    fn is_tight(&self, cx: &Context) -> bool {
        let requests = match self.dialect.tickers_at_once() {
            true => 1,
            false => self.round.len(),
        };
        let cost = self.quotes_cost(cx).saturating_mul(requests);
        self.budget.is_tight(cost, self.config.poll)
    }

    /// Cost of one request for quotes.
    fn quotes_cost(&self, cx: &Context) -> u32 {
        match (self.dialect.tickers_at_once(), self.round.next()) {
            (true, _) => self.cost(&Task::Tickers, cx),
            (false, Some(symbol)) => self.cost(&Task::Ticker(symbol), cx),
            (false, None) => 1,
        }
    }

    fn cost(&self, task: &Task, cx: &Context) -> u32 {
        let exchange = cx.stats[self.id].exchange_time(cx.now);
        self.dialect.cost(&self.call(task, &cx.market, exchange))
    }

    /// The next page of candles. None before the list has come, which tells their names, and
    /// while the clock is in doubt, which tells which of them are closed; and none while the history
    /// file is still to tell which of them are there, or has too much to write.
    fn next_page(&self, history: &History, cx: &Context) -> Option<Page> {
        let pace = history.pace();
        let waits = pace == Pace::Hold || self.is_under_way(&Task::Time);
        if !self.has_list || self.clock.is_in_doubt() || waits {
            return None;
        }
        let exchange = cx.stats[self.id].exchange_time(cx.now);
        let rows = |interval: Stored| self.page_rows(interval);
        let newest = |key: &SeriesKey| {
            let current = key.interval.slot_of(exchange);
            let covered = (cx.market.charts.get(*key)).and_then(Series::newest_known);
            let page = i64::try_from(rows(key.interval)).unwrap_or(i64::MAX);
            let end = covered.map_or(current.saturating_sub(page), |last| last + 1);
            // What is older than what is kept would leave at once.
            let floor = current.saturating_sub(cx.market.charts.keep(key.interval));
            (end.max(floor + REREAD), current)
        };
        let part = |key: &SeriesKey, range: &Range<i64>| {
            let (series, current) = (cx.market.charts.get(*key)?, key.interval.slot_of(exchange));
            let part = series
                .askable(range.clone(), exchange, SILENT_FOR_MS)
                .pop()?;
            Some(widened(series, part, current, rows(key.interval)))
        };
        let page = self.fetches.next(cx.now, rows, newest, part)?;
        (pace == Pace::Free || page.urgency <= Urgency::Live).then_some(page)
    }

    /// Rows of a page of candles.
    pub(super) fn page_rows(&self, interval: Stored) -> usize {
        self.fetches.page_rows(interval, self.dialect.page().rows)
    }

    fn is_under_way(&self, task: &Task) -> bool {
        let same = |asking: &Asking| asking.task.is_like(task);
        self.lanes
            .iter()
            .any(|lane| lane.asking.as_deref().is_some_and(same))
    }

    fn start(&mut self, lane: usize, task: Task, conns: &mut Table<Upstream>, cx: &mut Context) {
        match &task {
            Task::Tickers => self.tickers = next_tick(self.tickers, self.config.poll, cx.now.mono),
            Task::Ticker(symbol) => self.round.began(*symbol),
            Task::Stats(symbol) => self.round.began_stats(*symbol, cx.now.mono),
            Task::Markets => {
                self.markets = cx.now.mono + HOURLY;
                cx.market.catalog.begin_list(self.id);
            }
            Task::Time => self.clock.due = cx.now.mono + HOURLY,
            Task::Candles { series, slots } => {
                let current = series
                    .interval
                    .slot_of(cx.stats[self.id].exchange_time(cx.now));
                let depth = cx.config.history.of(series.interval);
                let floor = current.saturating_sub(depth.keep);
                self.fetches.began(*series, slots.clone(), || {
                    let series = cx.market.charts.get(*series)?;
                    series.reach(floor, depth.backfill.max(FOLLOWED))
                });
            }
        }
        let exchange = cx.stats[self.id].exchange_time(cx.now);
        let call = self.call(&task, &cx.market, exchange);
        let target = format!("{}{}", self.url.path, self.dialect.target(&call));
        let reading = Reading::new(self.dialect, &call, Caps::from(&cx.config.limits));
        let mut request = Vec::with_capacity(256);
        write_request(&mut request, &self.url.authority(), &target);
        let deadline = cx.now.mono + time_for(&task, self.config.timeout);
        let share = match task.is_quotes() {
            true => Share::Quotes,
            false => Share::Rest,
        };
        self.budget
            .spend(self.dialect.cost(&call), share, cx.now.mono);
        let meter = self.dialect.meter().map(|meter| match meter {
            Meter::Used(name) | Meter::Left(name) => name,
        });
        log::debug!(
            target: SOURCE,
            "request source={} what={:?} target={target:?} cost={} budget_left={}",
            self.config.id,
            describe(&task, &cx.market),
            self.dialect.cost(&call),
            self.budget.left(cx.now.mono),
        );
        let asking = Asking::new(task, reading, request, meter, (cx.now.mono, deadline));
        cx.stats[self.id].polls += 1;
        cx.stats[self.id].budget_spent = self.budget.spent();
        let place = &mut self.lanes[lane];
        place.asking = Some(Box::new(asking));
        match place.conn {
            Some(key) => {
                place.asking.as_mut().expect("set just above").fresh = false;
                cx.actions.push_back(Action::Flush(key));
            }
            None => self.connect(lane, conns, cx),
        }
    }

    fn call<'m>(&self, task: &Task, market: &'m Market, exchange: UnixMs) -> Call<'m> {
        let listing = |symbol: SymbolId| market.catalog.listing(self.id, symbol);
        match task {
            Task::Ticker(symbol) => Call::Ticker {
                id: listing(*symbol).map_or("", |listing| &listing.ticker_id),
            },
            Task::Stats(symbol) => Call::Stats {
                id: listing(*symbol).map_or("", |listing| &listing.ticker_id),
            },
            Task::Markets => Call::Markets,
            Task::Time => Call::Time,
            Task::Tickers => Call::Tickers,
            Task::Candles { series, slots } => {
                let id = listing(series.symbol).map_or("", |listing| listing.candle_id());
                let (from, to) = open_times(series.interval, slots);
                Call::Candles {
                    id,
                    interval: series.interval,
                    from,
                    to,
                    limit: self.dialect.page().rows,
                    now: exchange,
                }
            }
        }
    }
}

/// The first tick after `now` of those that began at `due`. Missed ones are skipped.
fn next_tick(due: Mono, every: Duration, now: Mono) -> Mono {
    let every = every.as_micros().max(1) as u64;
    let missed = now.0.saturating_sub(due.0) / every;
    Mono(due.0.saturating_add((missed + 1).saturating_mul(every)))
}
