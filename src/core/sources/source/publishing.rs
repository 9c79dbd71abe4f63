//! What a source does in a cluster while this node collects: it takes on its role, tells the other nodes
//! what it applies, and answers what they ask for.

use super::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::budget::Budget;
use crate::core::sources::jobs::{Job, drop_records};
use crate::core::sources::replica::{AskedRange, ListWriter, Outbound, ReplicaJob, Role, named};
use crate::core::sources::staged::{Items, Staged, Tickers};
use crate::core::sources::task::Task;
use crate::market::{Lookup, SeriesKey};
use crate::replication::{HAS_CLUSTERS, SentCandles, SeriesPart, Update};
use crate::time::{Now, UnixMs};
use std::ops::Range;

impl Source {
    /// What this node does for the source.
    pub fn role(&self) -> Role {
        self.replica.role()
    }

    /// Takes on a role. What was requested in the former one is dropped, unless it goes on collecting.
    pub fn set_role(&mut self, role: Role, cx: &mut Context) {
        let was = self.replica.role();
        self.replica.begin(role, cx.now.mono);
        if was.collects() && !role.collects() {
            self.put_back_all(|_| true, cx);
            self.connections.close_all(cx);
            drop_records(&mut self.jobs, &mut self.schedule, cx.now.mono);
            self.schedule.round.abandon();
        }
        if !was.collects() && role.collects() {
            self.schedule.quotes_due = cx.now.mono;
        }
        if !was.collects() || !role.collects() {
            // What was asked of another node is asked again.
            self.schedule.candles.forget_sent();
        }
        if role == Role::Follower {
            self.schedule.candles.refresh_all(cx.now);
        }
        if role == Role::Alone {
            self.schedule.budget.go_alone(cx.now.mono);
        }
        if role == Role::Collector && self.schedule.has_list {
            self.write_list();
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
        self.replica.next_told()
    }

    /// Tells the other nodes of something that was received then.
    pub(super) fn publish(&mut self, body: Update, received: Now, cx: &Context) {
        if self.replica.publishes() {
            let rest = self.schedule.backoff.until;
            self.replica.publish(self.profile.id, body, received, rest, cx);
        }
    }

    /// Tells the other nodes how the source does.
    pub(super) fn publish_status(&mut self, cx: &Context) {
        if self.replica.publishes() {
            let error = cx.stats[self.profile.id].last_error.as_deref();
            self.publish(Update::Status(error.map(Into::into)), cx.now, cx);
        }
    }

    /// Tells them the next piece of a poll, which is about to be applied.
    pub(super) fn publish_piece(&mut self, tickers: &Tickers, received: Now, cx: &Context) {
        if !self.replica.publishes() {
            return;
        }
        let id = self.profile.id;
        let (piece, default_time) = tickers.first_piece();
        let named = piece.iter().filter_map(|(symbol, ticker)| named(id, *symbol, ticker, cx));
        let mut tickers_named: Vec<_> = named.collect();
        for (_, ticker) in &mut tickers_named {
            ticker.timestamp = ticker.timestamp.or(default_time);
        }
        let (is_first, is_last) = tickers.ends();
        let body = Update::Quotes { is_first, is_last, tickers: tickers_named };
        self.publish(body, received, cx);
    }

    /// What the other nodes are told of a response that is about to be applied, if all of it is applied at
    /// once.
    pub(super) fn to_publish(&self, staged: &Staged, sent_at: Now, cx: &Context) -> Option<Update> {
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
                Some(Update::Quotes { is_first: false, is_last: false, tickers: filled.collect() })
            }
            (Items::Candles(rows), Task::Candles { series, slots }) => {
                let rows_a_page = self.schedule.candles.page_rows(series.interval) as i64;
                let rows = rows.iter().map(|row| (row.candle.clone(), row.closed));
                Some(Update::Candles(SentCandles {
                    series: series_named(*series, slots.clone(), cx),
                    closed_before: cx.stats[id].exchange_time(sent_at),
                    is_dated: !staged.has_undated,
                    is_full: slots.end - slots.start >= rows_a_page,
                    is_proven: false,
                    rows: rows.collect(),
                }))
            }
            (Items::Stats(Some(stats)), Task::Stats(symbol)) => {
                let listing = cx.market.catalog.listing(id, *symbol)?;
                Some(Update::Stats(listing.ticker_id.clone(), Box::new(stats.clone())))
            }
            (Items::Time(_), _) => Some(Update::Status(None)),
            _ => None,
        }
    }

    /// What the other nodes are told of a response, with the ends of the round of quotes that it is part of.
    pub(super) fn with_ends(&self, mut body: Update) -> Update {
        if let Update::Quotes { is_first, is_last, .. } = &mut body {
            (*is_first, *is_last) = self.schedule.round.ends();
        }
        body
    }

    /// Tells the other nodes of a response when the next job is begun, which applies it.
    pub(super) fn tell_later(&mut self, body: Box<Update>, cx: &Context) {
        let job = ReplicaJob::Tell(body, cx.now);
        self.jobs.push([Job::Replicate(job)]);
    }

    /// Writes the market list for the other nodes, which has changed.
    pub fn list_changed(&mut self) {
        if self.replica.publishes() {
            self.write_list();
        }
    }

    fn write_list(&mut self) {
        let job = ReplicaJob::WriteList(ListWriter::new());
        self.jobs.push([Job::Replicate(job)]);
    }

    /// Steps a job once. `true`: it is done.
    pub(super) fn replicate(&mut self, job: &mut ReplicaJob, cx: &mut Context) -> bool {
        match job {
            _ if !HAS_CLUSTERS => true,
            ReplicaJob::Tell(body, received) => {
                let body = std::mem::replace(&mut **body, Update::Status(None));
                self.publish(body, *received, cx);
                true
            }
            ReplicaJob::ReadList(list) => {
                let next = self.read_list(list, cx);
                let is_done = next.is_some();
                self.jobs.push(next.flatten());
                is_done
            }
            ReplicaJob::WriteList(writer) => {
                let list = writer.step(self.profile.id, cx);
                let is_done = list.is_some();
                list.into_iter().for_each(|list| self.replica.publish_list(list));
                is_done
            }
        }
    }
}

/// A series and some of its slots, as the nodes tell each other.
fn series_named(key: SeriesKey, slots: Range<i64>, cx: &Context) -> SeriesPart {
    SeriesPart {
        symbol: cx.market.catalog.name(key.symbol).as_str().into(),
        interval: key.interval,
        slots,
    }
}

/// What a collector does for the candles that others ask for.
impl Source {
    /// The series that another node has named, if its market is known here.
    pub(super) fn series_of(&self, named: &SeriesPart, cx: &Context) -> Option<SeriesKey> {
        let Lookup::Known(symbol) = cx.market.catalog.find(named.symbol.as_bytes()) else {
            return None;
        };
        Some(SeriesKey { source: self.profile.id, symbol, interval: named.interval })
    }

    /// Another node asks for candles.
    pub fn asked(&mut self, series: &SeriesPart, history: &mut History, cx: &mut Context) {
        let Some(key) = self.series_of(series, cx) else {
            return;
        };
        if self.replica.publishes()
            && self.follow(key, cx)
            && self.replica.ask(key, series.slots.clone(), cx.now.mono)
        {
            history.read(key, &series.slots, cx);
            self.ask(key, &series.slots, cx);
            self.wake_up(cx.now);
        }
    }

    /// Answers what other nodes have asked for, as far as it is known now.
    pub fn answer_asked(&mut self, history: &History, cx: &Context) {
        let plans = &self.schedule.candles;
        let comes = |it: &AskedRange| {
            plans.is_asking(it.key, &it.slots) || history.is_reading(it.key, &it.slots)
        };
        let Some(asked) = self.replica.next_answer(cx.now.mono, comes) else {
            return;
        };
        let Some(series) = cx.market.charts.get(asked.key) else {
            return;
        };
        let closed_before: UnixMs = cx.exchange_time(asked.key.source);
        let current = asked.key.interval.slot_of(closed_before);
        let closed = series.covered().within(asked.slots.clone()).map(|slots| {
            let rows = series.candles(&slots).into_iter();
            let rows: Vec<_> = rows.map(|(_, candle)| (candle, Some(true))).collect();
            (slots, rows)
        });
        let forming = series.forming(current).filter(|_| asked.slots.contains(&current));
        let forming = forming.map(|it| (current..current + 1, vec![(it.clone(), Some(false))]));
        for (slots, rows) in closed.chain(forming) {
            let page = SentCandles {
                rows,
                series: series_named(asked.key, slots, cx),
                closed_before,
                is_dated: true,
                is_full: false,
                is_proven: true,
            };
            let (id, rest) = (asked.key.source, self.schedule.backoff.until);
            self.replica.publish(id, Update::Candles(page), cx.now, rest, cx);
        }
    }
}
