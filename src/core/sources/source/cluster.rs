//! What a source does in a cluster. A collector publishes what it applies, and answers requests for candles.
//! A follower applies what the collector publishes, and requests from it the candles that it lacks.

use super::Source;
use super::applying::TickersById;
use crate::core::context::Context;
use crate::core::history::{History, Pace};
use crate::core::sources::candle_plans::PlannedPage;
use crate::core::sources::clock::Witness;
use crate::core::sources::jobs::{CandlePage, Job};
use crate::core::sources::replica::{AskedRange, ListWriter, Outbound, Replica, Role, series_part};
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::staged::StagedTickers;
use crate::core::stats::{SourceState, on_wall};
use crate::exchange::RequestKind;
use crate::log_targets::CLUSTER;
use crate::market::{Awaited, Lookup, SeriesKey, SymbolId};
use crate::record::Ticker;
use crate::replication::{Entry, EntryHead, Markets, SentCandles, SeriesPart, Update};
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;
use std::time::Duration;

/// The most requests for candles that a follower has open at a time.
const FOLLOWER_REQUESTS: usize = 16;

/// The most requests of followers that a collector holds. Further requests are dropped, and time out.
const COLLECTOR_REQUESTS: usize = 64;

/// Timeout of a request for candles, at the follower and at the collector: by default, clients wait less.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after its due time a follower requests a page, unless a client waits for it: the collector mostly
/// publishes it unasked.
const GRACE: Duration = Duration::from_secs(5);

/// Quotes that were received more than this before the newest ones are dropped. A smaller difference may be
/// an error, because the age of an entry is known to within a round trip.
const AGE_ERROR: Duration = Duration::from_millis(200);

/// Longest back-off that a follower takes over.
const BACKOFF_MAX_MS: u64 = 86_400_000;

/// A follower sets its clock of the exchange if it differs by more than this from the collector's clock.
const CLOCK_OFF_MS: i64 = 500;

/// If an entry's age and its time of receipt disagree by more than this, the clock of a node is wrong.
const CLOCKS_APART_MS: i64 = 2000;

/// Markets of a list that one slice reads: some 0.1 ms.
const MARKETS_A_SLICE: usize = 256;

impl Source {
    /// What this node does for the source.
    pub fn role(&self) -> Role {
        self.replica.role()
    }

    /// Since when this node does not collect.
    pub fn idle_since(&self) -> Option<Mono> {
        Some(self.replica.since).filter(|_| !self.role().collects())
    }

    /// What it collects. Nodes share a source only if all of them collect the same.
    pub fn identity(&self) -> String {
        format!("{} at {}", self.profile.dialect.name(), self.profile.url)
    }

    /// True if quotes have come from the exchange since this node has its role.
    pub fn has_collected(&self) -> bool {
        self.newest_quotes > self.replica.since
    }

    /// True if another node may do better for `span`, and this node has had its role for as long.
    pub fn should_give_away(&self, span: Duration, cx: &Context) -> bool {
        self.failures.is_of_node(span, cx) && cx.now.mono.since(self.replica.since) >= span
    }

    /// Takes on a role. If this node stops collecting, its requests and unapplied records are dropped.
    pub fn set_role(&mut self, role: Role, cx: &mut Context) {
        let was = self.replica.role();
        self.replica = Replica::new(role, cx.now.mono);
        if was.collects() && !role.collects() {
            self.put_back_all(|_| true, cx);
            self.upstream.close_all(cx);
            self.drop_records(cx);
            self.round.abandon();
            self.failures.forget(cx);
        }
        if !was.collects() && role.collects() {
            self.begin_quotes(cx.now.mono);
            // The list in place is from another node.
            self.list_tag = None;
        }
        if role == Role::Follower {
            self.refresh_candles(cx);
        }
        if cx.market.catalog.has_list(self.id) {
            self.list_changed();
        }
        self.wake_up(cx.now);
    }

    /// Takes out the next message to the other nodes.
    pub fn next_outbound(&mut self) -> Option<Outbound> {
        self.replica.outbound.pop_front()
    }

    /// Publishes an update that was received at `received`, if this node is the collector.
    pub(super) fn publish(&mut self, body: Update, received: Now, cx: &Context) {
        if self.replica.publishes() {
            let entry = Box::new(self.entry(body, received, cx));
            self.replica.outbound.push_back(Outbound::Entry(entry));
        }
    }

    /// The entry of an update that was received at `received`. The cluster sets its epoch when it sends it.
    pub fn entry(&self, body: Update, received: Now, cx: &Context) -> Entry {
        let status = &cx.stats[self.id];
        let quotes_until = self.failures.until(RequestKind::Quotes);
        let head = EntryHead {
            epoch: 0,
            waited_ms: cx.now.mono.since(received.mono).as_millis() as u64,
            received: received.unix,
            exchange_time: (!self.clock.is_in_doubt()).then(|| cx.exchange_time(self.id)),
            state: status.state as u8,
            rest_ms: quotes_until.since(cx.now.mono).as_millis() as u64,
        };
        Entry { head, body }
    }

    /// These tickers as they are published, by the exchange's ids. Empty if this node is not the collector.
    pub(super) fn to_publish(&self, all: &[(SymbolId, Ticker)], cx: &Context) -> TickersById {
        let with_id = |(symbol, ticker): &(SymbolId, Ticker)| {
            let listing = cx.market.catalog.listing(self.id, *symbol)?;
            Some((listing.ticker_id.clone(), ticker.clone()))
        };
        let all = all.iter().filter(|_| self.replica.publishes());
        all.filter_map(with_id).collect()
    }

    /// Begins to write the market list for the other nodes, if this node is the collector.
    pub fn list_changed(&mut self) {
        if self.replica.publishes() {
            self.jobs.push([Job::WriteList(ListWriter::default())]);
        }
    }
}

/// How a collector answers requests for candles.
impl Source {
    /// The series of a message from another node, if its market is known here.
    fn series_of(&self, part: &SeriesPart, cx: &Context) -> Option<SeriesKey> {
        let Lookup::Known(symbol) = cx.market.catalog.find(part.symbol.as_bytes()) else {
            return None;
        };
        Some(SeriesKey { source: self.id, symbol, interval: part.interval })
    }

    /// Takes in a request of another node for candles. Candles that memory lacks are read from the file, or
    /// requested from the exchange. [`Source::answer_request`] answers the request later.
    pub fn take_request(&mut self, series: &SeriesPart, history: &mut History, cx: &mut Context) {
        let (slots, until) = (series.slots.clone(), cx.now.mono + REQUEST_TIMEOUT);
        let key = self.series_of(series, cx).filter(|_| self.replica.publishes());
        let Some(key) = key.filter(|key| self.follow(*key, cx)) else {
            return;
        };
        let asked = &mut self.replica.asked;
        if !asked.iter().any(|it| it.key == key && it.slots == slots) {
            if asked.len() >= COLLECTOR_REQUESTS {
                return;
            }
            asked.push(AskedRange { key, slots, until });
        }
        history.read(key, &series.slots, cx);
        self.ask(key, &series.slots, cx);
        self.wake_up(cx.now);
    }

    /// Answers one request of another node for which nothing more is on its way, or whose time is up:
    /// publishes what memory holds of its candles.
    pub fn answer_request(&mut self, history: &History, cx: &Context) {
        let plans = &self.candles;
        let is_done = |AskedRange { key, slots, until }: &AskedRange| {
            let some_come = plans.is_asking(*key, slots) || history.is_reading(*key, slots);
            *until <= cx.now.mono || !some_come
        };
        let Some(at) = self.replica.asked.iter().position(is_done) else {
            return;
        };
        let asked = self.replica.asked.swap_remove(at);
        let Some(series) = cx.market.charts.get(asked.key) else {
            return;
        };
        let closed_before: UnixMs = cx.stats[asked.key.source].sure_time(cx.now);
        let current = asked.key.interval.slot_of(closed_before);
        let closed = series.covered().within(asked.slots.clone()).flat_map(|slots| {
            let revisable = series.revisable(&slots);
            let parts = revisable.missing(slots).into_iter().map(|part| (part, true));
            parts.chain(revisable.iter().map(|part| (part, false))).collect::<Vec<_>>()
        });
        let closed = closed.map(|(slots, is_final)| {
            let rows = series.candles(&slots).into_iter().map(|(_, candle)| (candle, false));
            (rows.collect(), slots, is_final)
        });
        let forming = series.forming(current).filter(|_| asked.slots.contains(&current));
        let forming = forming.map(|it| (vec![(it.clone(), true)], current..current + 1, false));
        let mut pages = closed.chain(forming).peekable();
        while let Some((rows, slots, is_final)) = pages.next() {
            let series = series_part(asked.key, slots, cx);
            let all = SentCandles { is_dated: true, is_answer: true, ..SentCandles::default() };
            let goes_on = pages.peek().is_some();
            let page = SentCandles { rows, series, closed_before, is_final, goes_on, ..all };
            self.publish(Update::Candles(page), cx.now, cx);
        }
    }
}

/// How a follower applies what the collector publishes, and requests candles from it.
impl Source {
    /// Applies an entry that the collector wrote this long ago.
    pub fn follow_entry(&mut self, mut entry: Entry, age: Duration, cx: &mut Context) {
        if self.has_ended || self.replica.role() != Role::Follower {
            return;
        }
        let age_ms = entry.head.waited_ms.saturating_add(age.as_millis() as u64);
        let mono = Mono(cx.now.mono.0.saturating_sub(age_ms.saturating_mul(1000)));
        // The time of receipt is the same on all nodes, unless the clock of one of them is wrong.
        let own = on_wall(mono, cx.now);
        let is_sound = (own - entry.head.received).abs() <= CLOCKS_APART_MS;
        let received = Now { mono, unix: if is_sound { entry.head.received } else { own } };
        entry.head.received = received.unix;
        self.follow_head(&entry.head, age, &entry.body, cx);
        match entry.body {
            // An engine that was restored from old data may send older quotes than the applied ones.
            Update::Quotes { .. } if received.mono + AGE_ERROR < self.newest_quotes => {}
            Update::Quotes { is_first, is_last, tickers } => {
                self.newest_quotes = self.newest_quotes.max(received.mono);
                if is_first {
                    cx.market.quotes.arrived(self.id, Awaited::Poll);
                }
                let mut staged = StagedTickers::default();
                (staged.received, staged.goes_on) = (received, !is_last);
                for (id, ticker) in tickers {
                    if let Some(symbol) = cx.market.catalog.by_ticker_id(self.id, &id) {
                        staged.push(symbol, ticker);
                    }
                }
                self.failures.quotes_received(cx);
                self.jobs.push([Job::ApplyTickers(staged)]);
            }
            Update::Candles(page) => self.follow_candles(page, cx),
            Update::Status(error) => {
                let status = &mut cx.stats[self.id];
                status.last_error = error.map(String::from).or(status.last_error.take());
            }
            Update::Stats(id, stats) => {
                if let Some(symbol) = cx.market.catalog.by_ticker_id(self.id, &id) {
                    self.round.note_stats(symbol, *stats, received.mono);
                }
            }
            Update::Released(_) => {}
        }
    }

    /// Takes over the state of the source at its collector: the exchange's time, back-off and failures.
    fn follow_head(&mut self, head: &EntryHead, age: Duration, body: &Update, cx: &mut Context) {
        let id = self.id;
        if matches!(body, Update::Quotes { .. }) {
            let last = &mut cx.stats[id].last_success_at;
            *last = (*last).max(Some(head.received));
        }
        let clock = &mut self.clock;
        match head.exchange_time {
            Some(time) => {
                let time = time + age.as_millis() as i64;
                let off = (time - cx.exchange_time(id)).abs();
                if clock.is_in_doubt() || off > CLOCK_OFF_MS {
                    clock.note(Witness::Call, [time; 2], cx.now.mono, cx);
                }
            }
            None => clock.begin_doubt("it is in doubt at the collector".to_string(), cx),
        }
        let left = Duration::from_millis(head.rest_ms.min(BACKOFF_MAX_MS)).saturating_sub(age);
        self.failures.set_quotes_until(cx.now.mono + left);
        let failing = [SourceState::Backoff, SourceState::Down];
        if let Some(state) = failing.into_iter().find(|it| *it as u8 == head.state) {
            let status = &mut cx.stats[id];
            status.state = state;
            status.failing_since.get_or_insert(cx.now.unix);
        }
    }

    /// Begins to apply a page. The last one ends the requests for its series, whichever slots it has.
    fn follow_candles(&mut self, page: SentCandles, cx: &mut Context) {
        let Some(key) = self.series_of(&page.series, cx) else {
            return;
        };
        let ended = self.replica.asked.extract_if(.., |it| !page.goes_on && it.key == key);
        let asked: Vec<_> = ended.map(|it| it.slots).collect();
        let Some(zero) = cx.stats[key.source].clock else {
            return;
        };
        if !self.candles.follow(key, cx) {
            // There is no room for the series: it is not requested again before a client needs it.
            return self.candles.retain(|it| *it != key);
        }
        self.candles.answered(key, cx.now);
        self.candles.note_reach(key, &page.series.slots, cx);
        // This node's monotonic time at which the exchange's clock showed `closed_before`.
        let sent_ms = page.closed_before.0.saturating_sub(zero).max(0) as u64;
        let sent_at = Now { mono: Mono(sent_ms.saturating_mul(1000)), unix: cx.now.unix };
        let (slots, is_answer) = (page.series.slots.clone(), page.is_answer);
        let mut applied = CandlePage::received(key, page, sent_at);
        // What the collector lacks is not requested again at once.
        let is_within = |it: &Range<i64>| it.start <= slots.start && slots.end <= it.end;
        if let Some(asked) = asked.into_iter().find(is_within).filter(|_| is_answer) {
            applied.told = asked;
        }
        self.jobs.push([Job::ApplyCandles(applied, None)]);
    }

    /// Takes in the market list of the collector. `false`: not taken, because another one is being applied.
    pub fn follow_list(&mut self, list: Markets, cx: &mut Context) -> bool {
        let can_read = !self.jobs.iter().any(Job::is_of_list);
        let wants = self.replica.role() == Role::Follower || !cx.market.catalog.has_list(self.id);
        if wants && !self.has_ended && can_read {
            cx.market.catalog.drop_list(self.id);
            self.jobs.push([Job::ReadList(list)]);
        }
        can_read
    }

    /// Reads one slice of a list. `true`: the last one. The next job puts the list in place.
    pub(super) fn read_list(&mut self, list: &mut Markets, cx: &mut Context) -> bool {
        let id = self.id;
        let mut left = MARKETS_A_SLICE;
        for market in list.by_ref().take(left) {
            // The list of a collector has only what it tracks, halted markets too.
            cx.market.catalog.stage(id, market, true);
            left -= 1;
        }
        let is_read = left > 0;
        if is_read && cx.market.catalog.end_list(id).is_ok() {
            self.jobs.push([Job::RefreshList]);
        }
        is_read
    }

    /// Requests from the collector the candles that are due, and sets when to look again.
    pub(super) fn request_due(&mut self, pace: Pace, cx: &mut Context) {
        let is_late = |it: &mut AskedRange| it.until <= cx.now.mono && !cx.is_behind;
        for unanswered in self.replica.asked.extract_if(.., is_late) {
            self.candles.failed(unanswered.key, true, cx.now);
        }
        let follows = self.replica.role() == Role::Follower;
        // As with an exchange, the market list and the clock come first.
        let has_list = cx.market.catalog.has_list(self.id);
        let can_ask = follows && has_list && cx.stats[self.id].clock.is_some();
        let mut next = None;
        while can_ask
            && self.replica.asked.len() < FOLLOWER_REQUESTS
            && self.staged() == 0
            && let asked = &mut self.replica.asked
            && let Some(page) = self.candles.next(|key| asked.iter().any(|it| it.key == key), cx)
            && (!cx.stats.stopping || page.urgency == Urgency::Client)
        {
            let PlannedPage { series: key, slots, .. } = page;
            let newest = cx.market.charts.get(key).and_then(|it| it.newest_known());
            // This node may have missed the page: it was due before this node followed, or the series is new.
            let is_missed = page.when <= self.replica.since || self.candles.is_new(key);
            let may_come = page.urgency != Urgency::Client && newest.is_some() && !is_missed;
            let when = page.when + if may_come { GRACE } else { Duration::ZERO };
            if when > cx.now.mono || pace == Pace::Hold {
                next = Some(when.max(cx.now.mono + GRACE / 10));
                break;
            }
            let (id, symbol) = (&cx.stats[self.id].id, cx.market.catalog.name(key.symbol).as_str());
            let (interval, count) = (key.interval.name(), slots.end - slots.start);
            log::debug!(
                target: CLUSTER,
                "candles wanted source={id} symbol={symbol} interval={interval} slots={count}"
            );
            self.candles.note_reach(key, &slots, cx);
            self.replica.outbound.push_back(Outbound::Ask(series_part(key, slots.clone(), cx)));
            asked.push(AskedRange { key, slots, until: cx.now.mono + REQUEST_TIMEOUT });
        }
        let waiting = self.replica.asked.iter().map(|it| it.until).min();
        self.wake_at = [waiting, next, self.failures.down_at(cx)].into_iter().flatten().min();
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;
    use crate::core::sources::host::Host;
    use crate::core::sources::staged::Staged;
    use crate::core::sources::task::Task;
    use crate::core::testing::{SOURCE, config_of, context, list};
    use crate::interval::Stored::M1;
    use crate::market::AllRows;
    use crate::market::testing::{covered, minute, minutes};

    /// A moment within the slot 2104.
    const NOW: Now = Now { mono: Mono(2104 * 60_000_000), unix: UnixMs(2104 * 60_000 + 1000) };

    /// A node that follows the minutes of a market.
    fn node(role: Role) -> (Source, Context, SeriesKey) {
        let config = config_of("binance");
        let (mut source, mut cx) = (Source::new(SOURCE, &config, 0, NOW), context(config, NOW));
        list(&mut cx.market.catalog, &["A/USDT"]);
        source.set_role(role, &mut cx);
        source.clock.note(Witness::Call, [NOW.unix; 2], NOW.mono, &mut cx);
        let key = SeriesKey { source: SOURCE, symbol: cx.market.catalog.known()[0], interval: M1 };
        assert!(source.follow(key, &mut cx));
        (source, cx, key)
    }

    #[test]
    fn a_follower_learns_from_a_response_what_its_collector_does() {
        let [(mut collector, mut cx, series), (mut follower, mut other, _)] =
            [Role::Collector, Role::Follower].map(node);
        let work = |source: &mut Source, cx: &mut Context| {
            let mut host = Host::new(&source.profile.url);
            while source.work(&mut host, &mut History::new(NOW), cx) {}
            covered(cx.market.charts.get(series).expect("it is open"))
        };
        // Cut responses. The second one also has rows outside of the requested slots.
        let responses = [
            (2055..2063, vec![2056, 2060], (2056, 2061)),
            (2065..2073, vec![2066, 2069, 2075, 2084], (2066, 2073)),
        ];
        for (slots, rows, known) in responses {
            let mut staged =
                Staged::new(SOURCE, Task::Candles { series, slots: slots.clone() }, None);
            staged.all_rows = AllRows::of(M1, &minutes(rows.clone()));
            staged.all_rows.most = rows.len();
            staged.candles = minutes(rows.into_iter().filter(|row| slots.contains(row)));
            staged.arrived(NOW, NOW, 0);
            collector.apply(staged, &mut cx).expect("it is sound");
            let expected = work(&mut collector, &mut cx);
            assert_eq!(expected.last(), Some(&known));
            while let Some(told) = collector.next_outbound() {
                if let Outbound::Entry(entry) = told {
                    follower.follow_entry(*entry, Duration::ZERO, &mut other);
                }
            }
            assert_eq!(work(&mut follower, &mut other), expected);
        }
    }

    #[test]
    fn a_chart_waits_for_all_entries_of_an_answer() {
        let slots = 2004..2104;
        let (mut collector, mut cx, key) = node(Role::Collector);
        let mut history = History::new(NOW);
        let candles = minutes(slots.clone());
        cx.market.charts.ingest_whole(key, slots.clone(), &candles, minute(2104), None);
        collector.take_request(&series_part(key, slots.clone(), &cx), &mut history, &mut cx);
        collector.answer_request(&history, &cx);

        let (mut follower, mut cx, key) = node(Role::Follower);
        assert!(follower.ask(key, &slots, &cx));
        let until = NOW.mono + REQUEST_TIMEOUT;
        follower.replica.asked.push(AskedRange { key, slots: slots.clone(), until });
        let mut host = Host::new(&follower.profile.url);
        let mut read = 0;
        while let Some(Outbound::Entry(entry)) = collector.next_outbound() {
            follower.follow_entry(*entry, Duration::ZERO, &mut cx);
            while !follower.jobs.is_empty() {
                follower.work(&mut host, &mut history, &mut cx);
            }
            read += 1;
            let series = cx.market.charts.get(key).expect("it is open");
            let is_whole = series.covered().covers(slots.clone());
            assert_eq!(follower.is_asking(key, &slots), !is_whole, "after {read} entries");
        }
        assert!(read > 1 && follower.replica.asked.iter().all(|it| it.slots != slots));
    }
}
