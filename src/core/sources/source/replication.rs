//! What a source does in a cluster: it tells the other nodes what it applies, or applies what the
//! collector tells.

use super::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::candle_page::CandlePage;
use crate::core::sources::jobs::{Job, drop_records};
use crate::core::sources::replica::{ListWriter, Role, Told, named};
use crate::core::sources::schedule::HOURLY;
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::staged::{Items, Staged, Stager, Tickers};
use crate::core::sources::task::Task;
use crate::core::stats::SourceState;
use crate::exchange::Sink;
use crate::market::{Lookup, Reported, SeriesKey};
use crate::replication::{self, Body, Candles, Entry, Head, Markets};
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// How long after its time a follower waits for the newest candles, which the collector reads unasked.
const GRACE: Duration = Duration::from_secs(5);

/// A follower's clock of the exchange that is this far off is set anew.
const CLOCK_OFF_MS: i64 = 500;

/// Markets of a list that are read in one slice: some 0.1 ms.
const MARKETS_A_SLICE: usize = 256;

impl Source {
    /// What this node does for the source.
    pub fn role(&self) -> Role {
        self.replica.role
    }

    /// Takes on a role. What was requested in the former one is dropped, unless it goes on collecting.
    pub fn set_role(&mut self, role: Role, cx: &mut Context) {
        let was = self.replica.role;
        self.replica.begin(role);
        if was.collects() && !role.collects() {
            self.put_back_all(|_| true, cx);
            self.connections.close_all(cx);
            drop_records(&mut self.jobs, &mut self.schedule, cx.now.mono);
            self.schedule.round.abandon();
        }
        if !was.collects() && role.collects() {
            self.schedule.quotes_due = cx.now.mono;
            self.schedule.candles.forget_sent();
        }
        if role == Role::Alone {
            self.schedule.budget.go_alone(cx.now.mono);
        }
        if role == Role::Collector && self.schedule.has_list {
            self.jobs.push([Job::WriteList(ListWriter::new())]);
        }
        self.wake_up(cx.now);
    }

    /// Takes on the role of collector, with what the last one has left of the budget.
    pub fn collect(&mut self, left: Option<(u64, u64)>, is_halved: bool, cx: &mut Context) {
        self.set_role(Role::Collector, cx);
        let budget = &mut self.schedule.budget;
        budget.take_over(left, is_halved, cx.now.mono);
    }

    /// No other node spends of the exchange's limit any more.
    pub fn use_whole_budget(&mut self, now: Now) {
        self.schedule.budget.use_whole(now.mono);
    }

    /// What may be told of the budget, and the count of [`Source::note_told`].
    pub fn budget_to_tell(&self, now: Now) -> (u64, u64) {
        self.schedule.budget.to_tell(now.mono)
    }

    /// What is left of the budget.
    pub fn budget_left(&self, now: Now) -> u64 {
        self.schedule.budget.left(now.mono)
    }

    /// The other nodes have been told of the budget.
    pub fn note_told(&mut self, spent: u64, now: Now) {
        self.schedule.budget.note_told(spent);
        self.wake_up(now);
    }

    /// Takes out what the other nodes are to be told next.
    pub fn next_told(&mut self) -> Option<Told> {
        self.replica.next_told()
    }

    /// Tells the other nodes of something that was received then.
    pub(super) fn publish(&mut self, body: Body, received: Now, cx: &Context) {
        if self.replica.publishes() {
            let rest = self.schedule.backoff.until;
            self.replica
                .publish(self.profile.id, body, received, rest, cx);
        }
    }

    /// Tells the other nodes how the source does.
    pub(super) fn publish_status(&mut self, cx: &Context) {
        if self.replica.publishes() {
            let error = cx.stats[self.profile.id].last_error.as_deref();
            self.publish(Body::Status(error.map(Into::into)), cx.now, cx);
        }
    }

    /// Tells them the next piece of a poll, which is about to be applied.
    pub(super) fn publish_piece(&mut self, tickers: &Tickers, received: Now, cx: &Context) {
        if !self.replica.publishes() {
            return;
        }
        let id = self.profile.id;
        let (piece, default_time) = tickers.first_piece();
        let named = piece
            .iter()
            .filter_map(|(symbol, ticker)| named(id, *symbol, ticker, cx));
        let mut tickers_named: Vec<_> = named.collect();
        for (_, ticker) in &mut tickers_named {
            ticker.timestamp = ticker.timestamp.or(default_time);
        }
        let (is_first, is_last) = tickers.ends();
        let body = Body::Quotes {
            is_first,
            is_last,
            tickers: tickers_named,
        };
        self.publish(body, received, cx);
    }

    /// What the other nodes are told of a response that is about to be applied, if all of it is applied at
    /// once.
    pub(super) fn to_publish(&self, staged: &Staged, sent_at: Now, cx: &Context) -> Option<Body> {
        if !self.replica.publishes() {
            return None;
        }
        let id = self.profile.id;
        match (&staged.items, &staged.task) {
            (Items::Tickers(tickers, _), Task::Ticker(_)) => {
                let (piece, default_time) = tickers.first_piece();
                let filled = piece.iter().filter_map(|(symbol, ticker)| {
                    let (name, mut ticker) = named(id, *symbol, ticker, cx)?;
                    ticker.timestamp = ticker.timestamp.or(default_time);
                    if let Some(stats) = self.schedule.round.stats(*symbol) {
                        ticker.fill_from(stats);
                    }
                    Some((name, ticker))
                });
                Some(Body::Quotes {
                    is_first: false,
                    is_last: false,
                    tickers: filled.collect(),
                })
            }
            (Items::Candles(rows), Task::Candles { series, slots }) => {
                let rows_a_page = self.schedule.candles.page_rows(series.interval) as i64;
                let rows = rows.iter().map(|row| (row.candle.clone(), row.closed));
                Some(Body::Candles(Candles {
                    series: series_named(*series, slots.clone(), cx),
                    closed_before: cx.stats[id].exchange_time(sent_at),
                    is_dated: !staged.has_undated,
                    is_full: slots.end - slots.start >= rows_a_page,
                    is_proven: false,
                    rows: rows.collect(),
                }))
            }
            (Items::Time(_), _) => Some(Body::Status(None)),
            _ => None,
        }
    }

    /// Tells the other nodes of a response that was applied at once.
    pub(super) fn publish_applied(&mut self, body: Option<Body>, cx: &Context) {
        let Some(mut body) = body else { return };
        if let Body::Quotes {
            is_first, is_last, ..
        } = &mut body
        {
            (*is_first, *is_last) = self.schedule.round.ends();
        }
        self.publish(body, cx.now, cx);
    }

    /// Tells them the market list, once it is written.
    pub(super) fn publish_list(&mut self, list: Vec<u8>) {
        self.replica.publish_list(list);
    }

    /// Writes the market list for the other nodes, which has changed.
    pub fn list_changed(&mut self) {
        if self.replica.publishes() {
            self.jobs.push([Job::WriteList(ListWriter::new())]);
        }
    }
}

/// A series and some of its slots, as the nodes tell each other.
fn series_named(key: SeriesKey, slots: std::ops::Range<i64>, cx: &Context) -> replication::Series {
    replication::Series {
        symbol: cx.market.catalog.name(key.symbol).as_str().into(),
        interval: key.interval,
        slots,
    }
}

/// What a follower does.
impl Source {
    /// Applies an entry of the collector that was written so long ago.
    pub fn follow_entry(
        &mut self,
        entry: Entry,
        age: Duration,
        history: &mut History,
        cx: &mut Context,
    ) {
        if self.has_ended || self.replica.role != Role::Follower {
            return;
        }
        let age_ms = entry.head.waited_ms.saturating_add(age.as_millis() as u64);
        let received = Now {
            mono: Mono(cx.now.mono.0.saturating_sub(age_ms.saturating_mul(1000))),
            unix: entry.head.received,
        };
        self.follow_head(&entry.head, age, &entry.body, history, cx);
        match entry.body {
            Body::Quotes {
                is_last, tickers, ..
            } => {
                let mut staged = Staged::new(self.profile.id, Task::Tickers);
                let catalog = &mut cx.market.catalog;
                let mut stager = Stager {
                    staged: &mut staged,
                    catalog,
                    symbol: None,
                };
                for (id, ticker) in tickers {
                    if stager.wants(&id) {
                        stager.ticker(&id, ticker);
                    }
                }
                if let Items::Tickers(mut tickers, _) = staged.items {
                    tickers.goes_on = !is_last;
                    self.schedule.backoff.quotes_came(cx);
                    self.jobs.push([Job::ApplyTickers(tickers, received)]);
                }
            }
            Body::Candles(page) => self.follow_candles(page, cx),
            Body::Status(error) => {
                let status = &mut cx.stats[self.profile.id];
                status.last_error = error.map(String::from).or(status.last_error.take());
            }
            Body::Released => {}
        }
    }

    /// Takes over how the source does at its collector.
    fn follow_head(
        &mut self,
        head: &Head,
        age: Duration,
        body: &Body,
        history: &mut History,
        cx: &mut Context,
    ) {
        let id = self.profile.id;
        if matches!(body, Body::Quotes { .. }) {
            cx.stats[id].last_success_at = Some(head.received);
        }
        match head.exchange_time {
            Some(time) => {
                let time = time + age.as_millis() as i64;
                let clock = &mut self.schedule.clock;
                let off = (time - cx.exchange_time(id)).abs();
                if clock.is_in_doubt() || off > CLOCK_OFF_MS {
                    clock.set(time, cx.now.mono, &mut self.schedule.candles, history, cx);
                }
            }
            None if !self.schedule.clock.is_in_doubt() => self.schedule.clock.doubt(cx),
            None => {}
        }
        let until = cx.now.mono + Duration::from_millis(head.rest_ms.min(86_400_000));
        self.schedule.backoff.until = if head.rest_ms > 0 { until } else { cx.now.mono };
        let failing = [SourceState::Backoff, SourceState::Down];
        if let Some(state) = failing.into_iter().find(|it| *it as u8 == head.state) {
            let status = &mut cx.stats[id];
            status.state = state;
            status.failing_since.get_or_insert(cx.now.unix);
        }
    }

    fn follow_candles(&mut self, page: Candles, cx: &mut Context) {
        let Candles { series, .. } = &page;
        let Lookup::Known(symbol) = cx.market.catalog.find(series.symbol.as_bytes()) else {
            return;
        };
        let key = SeriesKey {
            source: self.profile.id,
            symbol,
            interval: series.interval,
        };
        self.replica.came(key);
        let clock = cx.stats[key.source].clock;
        let (Some(zero), true) = (clock, self.schedule.candles.follow(key, cx)) else {
            return;
        };
        // The time of our clock at which the exchange's was what it was when the collector asked.
        let sent_ms = page.closed_before.0.saturating_sub(zero);
        let sent_at = Now {
            mono: Mono((sent_ms.max(0) as u64).saturating_mul(1000)),
            unix: cx.now.unix,
        };
        let slots = page.series.slots;
        let rows = page.rows.into_iter();
        let rows = rows.map(|(candle, closed)| Reported { candle, closed });
        let known = (page.is_dated, page.is_full);
        let applied = CandlePage::new(key, slots, rows.collect(), known, sent_at);
        let applied = applied.asked_elsewhere(page.is_proven);
        self.jobs.push([Job::ApplyCandles(applied)]);
    }

    /// Takes in the market list of the collector. `false`: one is being applied.
    pub fn follow_list(&mut self, list: Markets, cx: &mut Context) -> bool {
        let is_reading = |job: &Job| matches!(job, Job::ReadList(_) | Job::RefreshList);
        let can_read = !self.jobs.iter().any(is_reading);
        if self.replica.role == Role::Follower && !self.has_ended && can_read {
            self.schedule.list_due = cx.now.mono + HOURLY;
            cx.market.catalog.begin_list(self.profile.id);
            self.jobs.push([Job::ReadList(list)]);
        }
        can_read
    }

    /// Reads some of a list. `Some`: all of it has been read; the job that puts it in place.
    pub(super) fn read_list(&self, list: &mut Markets, cx: &mut Context) -> Option<Option<Job>> {
        let id = self.profile.id;
        let mut left = MARKETS_A_SLICE;
        for market in list.by_ref().take(left) {
            cx.market.catalog.list(id, market);
            left -= 1;
        }
        let is_read = left > 0;
        is_read.then(|| {
            cx.market
                .catalog
                .end_list(id)
                .ok()
                .map(|()| Job::RefreshList)
        })
    }

    /// Asks the collector for the candles that are due, and works out when to look again.
    pub(super) fn want_due(&mut self, history: &History, cx: &mut Context) {
        while let Some(key) = self.replica.next_late(cx.now.mono) {
            self.schedule.candles.failed(key, cx.now);
        }
        let follows = self.replica.role == Role::Follower;
        let has_rest = follows && self.schedule.has_list && !self.schedule.clock.is_in_doubt();
        let mut next = None;
        while has_rest && self.replica.has_room() && self.staged() == 0 {
            let Some(page) = self.schedule.candles.next(cx) else {
                break;
            };
            let is_known = cx
                .market
                .charts
                .get(page.series)
                .and_then(|it| it.newest_known());
            let waits = page.urgency != Urgency::Client && is_known.is_some();
            let when = page.when + if waits { GRACE } else { Duration::ZERO };
            let is_held = history.pace_of(self.profile.id) == crate::core::history::Pace::Hold;
            if when > cx.now.mono || is_held {
                next = Some(when.max(cx.now.mono + GRACE / 10));
                break;
            }
            self.schedule
                .candles
                .sent(page.series, page.slots.clone(), cx);
            self.replica.want(page.series, page.slots, cx);
        }
        let all = [self.replica.due(), next, self.schedule.backoff.down_at(cx)];
        self.wake_at = all.into_iter().flatten().min();
    }
}

/// What a collector does for the candles that others ask for.
impl Source {
    /// Another node asks for candles.
    pub fn asked(&mut self, series: &replication::Series, history: &mut History, cx: &mut Context) {
        let Lookup::Known(symbol) = cx.market.catalog.find(series.symbol.as_bytes()) else {
            return;
        };
        let key = SeriesKey {
            source: self.profile.id,
            symbol,
            interval: series.interval,
        };
        if self.replica.publishes()
            && self.follow(key, cx)
            && self.replica.ask(key, series.slots.clone(), cx.now.mono)
        {
            history.read(key, &series.slots, cx);
            self.ask(key, &series.slots, cx);
            let current = key.interval.slot_of(cx.exchange_time(key.source));
            if series.slots.end > current {
                self.schedule.candles.refresh(key, cx.now);
            }
            self.wake_up(cx.now);
        }
    }

    /// Answers what other nodes have asked for, as far as it is known now.
    pub fn answer_asked(&mut self, history: &History, cx: &Context) {
        let plans = &self.schedule.candles;
        let comes = |it: &crate::core::sources::replica::Asked| {
            plans.is_asking(it.key, &it.slots) || history.is_reading(it.key, &it.slots)
        };
        let Some(asked) = self.replica.next_answer(cx.now.mono, comes) else {
            return;
        };
        let Some(series) = cx.market.charts.get(asked.key) else {
            return;
        };
        let closed_before: UnixMs = cx.exchange_time(asked.key.source);
        for slots in series.covered().within(asked.slots.clone()) {
            let rows = series.candles(&slots).into_iter();
            let page = Candles {
                rows: rows.map(|(_, candle)| (candle, Some(true))).collect(),
                series: series_named(asked.key, slots, cx),
                closed_before,
                is_dated: true,
                is_full: false,
                is_proven: true,
            };
            let (id, rest) = (asked.key.source, self.schedule.backoff.until);
            self.replica
                .publish(id, Body::Candles(page), cx.now, rest, cx);
        }
    }
}
