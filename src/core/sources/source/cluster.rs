//! What a source does in a cluster. Where this node collects, it tells the other nodes what it applies, and
//! answers what they ask for. Where another node does, it applies what that one tells, and asks it for
//! candles.

use super::Source;
use crate::core::context::Context;
use crate::core::history::{History, Pace};
use crate::core::sources::budget::Budget;
use crate::core::sources::candle_page::CandlePage;
use crate::core::sources::candle_plans::PlannedPage;
use crate::core::sources::jobs::Job;
use crate::core::sources::replica::{AskedRange, ListWriter, Outbound, Replica, Role, series_part};
use crate::core::sources::schedule::HOURLY;
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::staged::StagedTickers;
use crate::core::stats::SourceState;
use crate::log_targets::CLUSTER;
use crate::market::{Awaited, Lookup, Reported, SeriesKey, SymbolId};
use crate::record::Ticker;
use crate::replication::{Entry, EntryHead, Markets, SentCandles, SeriesPart, Update};
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// Requests for candles that a follower waits for at a time.
const MOST_WANTED: usize = 16;

/// How long it waits: longer than a client does, and than the collector's exchange takes.
const WANTED_FOR: Duration = Duration::from_secs(5);

/// Requests of followers that a collector holds. Above it, they are dropped, and the follower asks again.
const MOST_ASKED: usize = 64;

/// How long after its time a follower waits for the newest candles, which the collector reads unasked.
const GRACE: Duration = Duration::from_secs(5);

/// Quotes that were received so long before others are passed over. The age of an entry is known to a round
/// trip.
const DISORDER: Duration = Duration::from_millis(200);

/// Longest pause of the exchange that is taken over.
const MOST_REST_MS: u64 = 86_400_000;

/// A follower's clock of the exchange that is this far off is set anew.
const CLOCK_OFF_MS: i64 = 500;

/// Markets of a list that are read in one slice: some 0.1 ms.
const MARKETS_A_SLICE: usize = 256;

impl Source {
    /// What this node does for the source.
    pub fn role(&self) -> Role {
        self.replica.role()
    }

    /// Takes on a role. If this node stops collecting, its requests and unapplied records are dropped.
    pub fn set_role(&mut self, role: Role, cx: &mut Context) {
        let was = self.replica.role();
        self.replica = Replica::new(role, cx.now.mono);
        if was.collects() && !role.collects() {
            self.put_back_all(|_| true, cx);
            self.connections.close_all(cx);
            self.drop_records(cx);
            self.schedule.round.abandon();
        }
        if !was.collects() && role.collects() {
            self.schedule.begin_quotes(cx.now.mono);
        }
        if role == Role::Follower {
            self.schedule.candles.refresh_all(cx.now);
        }
        if role == Role::Alone {
            self.schedule.budget.halve(cx.now.mono);
        }
        if self.schedule.has_list {
            self.list_changed();
        }
        self.wake_up(cx.now);
    }

    /// Takes on the role of collector, with what the last one has left of the budget.
    pub fn collect(&mut self, left: Option<(u64, u64)>, is_halved: bool, cx: &mut Context) {
        self.set_role(Role::Collector, cx);
        self.schedule.budget.take_over(left, is_halved, cx.now.mono);
    }

    /// What may still be requested.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.schedule.budget
    }

    /// The other nodes have been told of the budget.
    pub fn note_told(&mut self, spent: u64, now: Now) {
        self.schedule.budget.note_told(spent);
        self.wake_up(now);
    }

    /// Takes out what the other nodes are to be told next.
    pub fn next_told(&mut self) -> Option<Outbound> {
        self.replica.told.pop_front()
    }

    /// Tells the other nodes of something that was received then.
    pub(super) fn publish(&mut self, body: Update, received: Now, cx: &Context) {
        if self.replica.publishes() {
            let entry = Box::new(self.entry(body, received, cx));
            self.replica.told.push_back(Outbound::Entry(entry));
        }
    }

    /// The entry that tells the other nodes of `body`, received at `received`. Its epoch is set later.
    pub fn entry(&self, body: Update, received: Now, cx: &Context) -> Entry {
        let status = &cx.stats[self.id];
        let head = EntryHead {
            epoch: 0,
            waited_ms: cx.now.mono.since(received.mono).as_millis() as u64,
            received: received.unix,
            exchange_time: status.clock.map(|_| cx.exchange_time(self.id)),
            state: status.state as u8,
            rest_ms: self.schedule.backoff.until.since(cx.now.mono).as_millis() as u64,
        };
        Entry { head, body }
    }

    /// Tickers under the ids of their markets at the exchange, if the other nodes are told of them.
    pub(super) fn named(
        &self,
        all: &[(SymbolId, Ticker)],
        cx: &Context,
    ) -> Vec<(Box<str>, Ticker)> {
        let named = |(symbol, ticker): &(SymbolId, Ticker)| {
            let listing = cx.market.catalog.listing(self.id, *symbol)?;
            Some((listing.ticker_id.clone(), ticker.clone()))
        };
        let all = all.iter().filter(|_| self.replica.publishes());
        all.filter_map(named).collect()
    }

    /// Writes the market list for the other nodes, which has changed.
    pub fn list_changed(&mut self) {
        if self.replica.publishes() {
            self.jobs.push([Job::WriteList(ListWriter::default())]);
        }
    }
}

/// What a collector does for the candles that others ask for.
impl Source {
    /// The series that another node has named, if its market is known here.
    pub(super) fn series_of(&self, named: &SeriesPart, cx: &Context) -> Option<SeriesKey> {
        let Lookup::Known(symbol) = cx.market.catalog.find(named.symbol.as_bytes()) else {
            return None;
        };
        Some(SeriesKey { source: self.id, symbol, interval: named.interval })
    }

    /// Another node asks for candles.
    pub fn asked(&mut self, series: &SeriesPart, history: &mut History, cx: &mut Context) {
        let (slots, until) = (series.slots.clone(), cx.now.mono + WANTED_FOR);
        let key = self.series_of(series, cx).filter(|_| self.replica.publishes());
        let Some(key) = key.filter(|key| self.follow(*key, cx)) else {
            return;
        };
        let asked = &mut self.replica.asked;
        if !asked.iter().any(|it| it.key == key && it.slots == slots) {
            if asked.len() >= MOST_ASKED {
                return;
            }
            asked.push(AskedRange { key, slots, until });
        }
        history.read(key, &series.slots, cx);
        self.ask(key, &series.slots, cx);
        self.wake_up(cx.now);
    }

    /// Answers what other nodes have asked for, as far as it is known now.
    pub fn serve_asked(&mut self, history: &History, cx: &Context) {
        let plans = &self.schedule.candles;
        let is_done = |AskedRange { key, slots, until }: &AskedRange| {
            let comes = plans.is_asking(*key, slots) || history.is_reading(*key, slots);
            *until <= cx.now.mono || !comes
        };
        let Some(at) = self.replica.asked.iter().position(is_done) else {
            return;
        };
        let asked = self.replica.asked.swap_remove(at);
        let Some(series) = cx.market.charts.get(asked.key) else {
            return;
        };
        let closed_before: UnixMs = cx.exchange_time(asked.key.source);
        let current = asked.key.interval.slot_of(closed_before);
        let closed = series.covered().within(asked.slots.clone()).map(|slots| {
            let rows = series.candles(&slots).into_iter();
            let rows: Vec<_> = rows.map(|(_, candle)| (candle, false)).collect();
            (slots, rows)
        });
        let forming = series.forming(current).filter(|_| asked.slots.contains(&current));
        let forming = forming.map(|it| (current..current + 1, vec![(it.clone(), true)]));
        for (slots, rows) in closed.chain(forming) {
            let page = SentCandles {
                rows,
                series: series_part(asked.key, slots, cx),
                closed_before,
                is_dated: true,
                is_full: false,
                is_proven: true,
            };
            self.publish(Update::Candles(page), cx.now, cx);
        }
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
        if self.has_ended || self.replica.role() != Role::Follower {
            return;
        }
        let age_ms = entry.head.waited_ms.saturating_add(age.as_millis() as u64);
        let received = Now {
            mono: Mono(cx.now.mono.0.saturating_sub(age_ms.saturating_mul(1000))),
            unix: entry.head.received,
        };
        self.follow_head(&entry.head, age, &entry.body, history, cx);
        match entry.body {
            // An engine that was restored from old data may send quotes older than those applied.
            Update::Quotes { .. } if received.mono + DISORDER < self.newest_quotes => {}
            Update::Quotes { is_last, tickers, .. } => {
                self.newest_quotes = self.newest_quotes.max(received.mono);
                cx.market.quotes.arrived(self.id, Awaited::Poll);
                let mut staged = StagedTickers::default();
                staged.goes_on = !is_last;
                for (id, ticker) in tickers {
                    if let Some(symbol) = cx.market.catalog.by_ticker_id(self.id, &id) {
                        staged.push(symbol, ticker);
                    }
                }
                self.schedule.backoff.quotes_received(cx);
                self.jobs.push([Job::ApplyTickers(staged, received)]);
            }
            Update::Candles(page) => self.follow_candles(page, cx),
            Update::Status(error) => {
                let status = &mut cx.stats[self.id];
                status.last_error = error.map(String::from).or(status.last_error.take());
            }
            Update::Stats(id, stats) => {
                if let Some(symbol) = cx.market.catalog.by_ticker_id(self.id, &id) {
                    self.schedule.round.stats.insert(symbol, *stats);
                }
            }
            Update::Released(_) => {}
        }
    }

    /// Takes over how the source does at its collector.
    fn follow_head(
        &mut self,
        head: &EntryHead,
        age: Duration,
        body: &Update,
        history: &mut History,
        cx: &mut Context,
    ) {
        let id = self.id;
        if matches!(body, Update::Quotes { .. }) {
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
        let rest = Duration::from_millis(head.rest_ms.min(MOST_REST_MS));
        self.schedule.backoff.until = cx.now.mono + rest;
        let failing = [SourceState::Backoff, SourceState::Down];
        if let Some(state) = failing.into_iter().find(|it| *it as u8 == head.state) {
            let status = &mut cx.stats[id];
            status.state = state;
            status.failing_since.get_or_insert(cx.now.unix);
        }
    }

    fn follow_candles(&mut self, page: SentCandles, cx: &mut Context) {
        let Some(key) = self.series_of(&page.series, cx) else {
            return;
        };
        self.replica.asked.retain(|it| it.key != key);
        let Some(zero) = cx.stats[key.source].clock else {
            return;
        };
        if !self.schedule.candles.follow(key, cx) {
            // There is no room for the series: it is not asked for again before a client wants it.
            return self.schedule.candles.retain(|it| *it != key);
        }
        self.schedule.candles.note_reach(key, cx);
        // Our monotonic time at which the exchange's clock showed `closed_before`.
        let sent_ms = page.closed_before.0.saturating_sub(zero);
        let sent_at =
            Now { mono: Mono((sent_ms.max(0) as u64).saturating_mul(1000)), unix: cx.now.unix };
        let slots = page.series.slots;
        let rows = page.rows.into_iter();
        let rows = rows.map(|(candle, is_forming)| Reported { candle, is_forming });
        let mut applied = CandlePage::new(key, slots, rows.collect(), page.is_dated, sent_at);
        if page.is_proven {
            applied.prove();
        }
        self.jobs.push([Job::ApplyCandles(applied, None)]);
    }

    /// Takes in the market list of the collector. `false`: one is being applied.
    pub fn follow_list(&mut self, list: Markets, cx: &mut Context) -> bool {
        let is_reading = |job: &Job| matches!(job, Job::ReadList(_) | Job::RefreshList);
        let can_read = !self.jobs.iter().any(is_reading);
        if self.replica.role() == Role::Follower && !self.has_ended && can_read {
            self.schedule.list_due = cx.now.mono + HOURLY;
            cx.market.catalog.begin_list(self.id);
            self.jobs.push([Job::ReadList(list)]);
        }
        can_read
    }

    /// Reads some of a list. `true`: all of it has been read, and the next job puts it in place.
    pub(super) fn read_list(&mut self, list: &mut Markets, cx: &mut Context) -> bool {
        let id = self.id;
        let mut left = MARKETS_A_SLICE;
        for market in list.by_ref().take(left) {
            cx.market.catalog.list(id, market);
            left -= 1;
        }
        let is_read = left > 0;
        if is_read && cx.market.catalog.end_list(id).is_ok() {
            self.jobs.push([Job::RefreshList]);
        }
        is_read
    }

    /// Asks the collector for the candles that are due, and works out when to look again.
    pub(super) fn want_due(&mut self, history: &History, cx: &mut Context) {
        for late in self.replica.asked.extract_if(.., |it| it.until <= cx.now.mono) {
            self.schedule.candles.failed(late.key, cx.now);
        }
        let follows = self.replica.role() == Role::Follower;
        let has_rest = follows && self.schedule.has_list && !self.schedule.clock.is_in_doubt();
        let mut next = None;
        while has_rest && self.replica.asked.len() < MOST_WANTED && self.staged() == 0 {
            let (plans, asked) = (&mut self.schedule.candles, &mut self.replica.asked);
            let Some(page) = plans.next(|key| asked.iter().any(|it| it.key == key), cx) else {
                break;
            };
            if cx.stats.stopping && page.urgency != Urgency::Client {
                break;
            }
            let PlannedPage { series: key, slots, .. } = page;
            let is_known = cx.market.charts.get(key).and_then(|it| it.newest_known());
            let is_late = page.when <= self.replica.since || plans.is_new(key);
            let waits = page.urgency != Urgency::Client && is_known.is_some() && !is_late;
            let when = page.when + if waits { GRACE } else { Duration::ZERO };
            if when > cx.now.mono || history.pace_of(self.id) == Pace::Hold {
                next = Some(when.max(cx.now.mono + GRACE / 10));
                break;
            }
            log::debug!(
                target: CLUSTER,
                "candles wanted source={} symbol={} interval={} slots={}",
                cx.stats[self.id].id,
                cx.market.catalog.name(key.symbol).as_str(),
                key.interval.name(),
                slots.end - slots.start,
            );
            plans.note_reach(key, cx);
            self.replica.told.push_back(Outbound::Ask(series_part(key, slots.clone(), cx)));
            asked.push(AskedRange { key, slots, until: cx.now.mono + WANTED_FOR });
        }
        let waiting = self.replica.asked.iter().map(|it| it.until).min();
        let all = [waiting, next, self.schedule.backoff.down_at(cx)];
        self.wake_at = all.into_iter().flatten().min();
    }
}
