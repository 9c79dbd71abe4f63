//! What a source does in a cluster while this node collects: it takes on its role, tells the other nodes
//! what it applies, and answers what they ask for.

use super::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::budget::Budget;
use crate::core::sources::candle_page::CandlePage;
use crate::core::sources::jobs::Job;
use crate::core::sources::replica::{AskedRange, ListWriter, Outbound, Role, series_part};
use crate::market::{Lookup, SeriesKey, SymbolId};
use crate::record::Ticker;
use crate::replication::{Entry, EntryHead, SentCandles, SeriesPart, Update};
use crate::time::{Now, UnixMs};

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
            self.drop_records(cx);
            self.schedule.round.abandon();
        }
        if !was.collects() && role.collects() {
            self.schedule.begin_quotes(cx.now.mono);
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
        self.replica.next_told()
    }

    /// Tells the other nodes of something that was received then.
    pub(super) fn publish(&mut self, body: Update, received: Now, cx: &Context) {
        if self.replica.publishes() {
            let entry = Box::new(self.entry(body, received, cx));
            self.replica.tell(Outbound::Entry(entry));
        }
    }

    /// What the other nodes are told of something that was received then. The epoch is that of the lease.
    pub fn entry(&self, body: Update, received: Now, cx: &Context) -> Entry {
        let status = &cx.stats[self.profile.id];
        let head = EntryHead {
            epoch: 0,
            waited_ms: cx.now.mono.since(received.mono).as_millis() as u64,
            received: received.unix,
            exchange_time: status.clock.map(|_| cx.exchange_time(self.profile.id)),
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
            let listing = cx.market.catalog.listing(self.profile.id, *symbol)?;
            Some((listing.ticker_id.clone(), ticker.clone()))
        };
        let all = all.iter().filter(|_| self.replica.publishes());
        all.filter_map(named).collect()
    }

    /// Tells the other nodes of a page of candles that is about to be applied.
    pub(super) fn publish_page(&mut self, page: &CandlePage, received: Now, cx: &Context) {
        if self.replica.publishes() {
            self.publish(Update::Candles(page.to_send(cx)), received, cx);
        }
    }

    /// Writes the market list for the other nodes, which has changed.
    pub fn list_changed(&mut self) {
        if self.replica.publishes() {
            self.jobs.push([Job::WriteList(ListWriter::new())]);
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
        let Some(asked) = self.replica.next_done(cx.now.mono, comes) else {
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
