//! The schedule of one source: which request to its exchange starts next, and when. The most urgent first:
//!
//! 1. the market list as long as there is none, since quotes and candles need it;
//! 2. quotes, on `pollMs`, the named and followed ones first; one connection is kept free for them;
//! 3. the exchange's clock while it is in doubt, since candles need it;
//! 4. candles that a client waits for, then the newest of each followed series;
//! 5. the market list, then the clock, hourly;
//! 6. the 24-hour figures of markets whose tickers lack them;
//! 7. what is missing between known candles, then the configured depth of history.
//!
//! A task may have to wait for the market list or the exchange's clock, and waits until the back-off of its
//! kind is over. A tick is planned from the last due time; a missed one is skipped, never queued. A request
//! waits until the budget of the [`Host`] has what it costs.

use super::Source;
use crate::core::context::Context;
use crate::core::history::Pace;
use crate::core::sources::budget::Purpose;
use crate::core::sources::candle_plans::PlannedPage;
use crate::core::sources::fault::{Blame, Fault};
use crate::core::sources::host::Host;
use crate::core::sources::quote_round::{RoundEnd, markets};
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::series_plan::Urgency;
use crate::core::sources::task::Task;
use crate::exchange::RequestKind;
use crate::log_targets::{SOURCE, quoted};
use crate::market::{Awaited, SymbolId};
use crate::time::{Mono, Now};
use std::mem::discriminant;
use std::time::Duration;

/// The pause before a market list that lacks markets that may be there is read again.
pub const LIST_RETRY: Duration = Duration::from_secs(60);

/// A task that may be requested.
pub struct Offer {
    /// Not before this.
    pub due: Mono,
    pub task: Task,
    /// What it is for.
    pub purpose: Purpose,
}

impl Source {
    /// Quotes are due at `at`, and then in a phase of the interval that is the source's own.
    pub(super) fn begin_quotes(&mut self, at: Mono) {
        (self.quotes_due, self.is_first) = (at, true);
    }

    /// Quotes are requested now: sets when they are due next.
    fn plan_quotes(&mut self, now: Now) {
        if std::mem::take(&mut self.is_first) {
            self.quotes_due = now.mono + self.profile.until_phase(now.unix);
            return;
        }
        // Missed ticks are skipped.
        let poll = self.profile.poll.as_micros().max(1) as u64;
        let missed = now.mono.0.saturating_sub(self.quotes_due.0) / poll;
        self.quotes_due = Mono(self.quotes_due.0.saturating_add((missed + 1).saturating_mul(poll)));
    }

    /// When the next quotes are due, the back-off included.
    pub(super) fn next_quotes(&self) -> Mono {
        self.quotes_due.max(self.failures.until(RequestKind::Quotes))
    }

    /// When the next round of quotes begins, or all are requested. While the service stops, never.
    pub(super) fn next_round(&self, cx: &Context) -> Option<Mono> {
        let has_list = cx.market.catalog.has_list(self.id);
        (has_list && !cx.stats.stopping).then(|| self.next_quotes())
    }

    /// Begins a round of quotes, if one is due and the last one is over. If the last one is not over, the
    /// urgent quotes come again.
    pub(super) fn begin_round(&mut self, host: &Host, cx: &mut Context) {
        let id = self.id;
        if self.next_round(cx).is_none_or(|due| due > cx.now.mono) {
            return;
        }
        if self.round.is_over() && self.pages.next(&Task::Tickers).is_none() {
            let listed = cx.market.catalog.listed_by(id);
            self.plan.choose(listed, self.requests.len(), &mut self.profile);
            let (plan, ms) = (self.plan.name(), self.profile.poll.as_millis());
            if std::mem::replace(&mut cx.stats[id].plan, plan) != plan {
                let source = &cx.stats[id].id;
                log::info!(target: SOURCE, "quotes planned source={source} plan={plan} poll_ms={ms}");
            }
        }
        let Some(most) = self.plan.markets() else {
            return self.round.abandon();
        };
        self.plan_quotes(cx.now);
        let (urgent, rest) = markets(id, cx);
        if self.round.is_over() {
            let has_stats = self.profile.dialect.has_stats();
            self.round.begin((urgent, rest), most, has_stats, cx.now.mono);
            cx.market.quotes.arrived(id, Awaited::Poll);
            if self.round.is_over() {
                self.end_empty_round(host, cx);
            }
        } else {
            self.round.repeat(urgent, cx.now.mono);
        }
    }

    /// The most urgent task that may start now, or else the first that may start later. `pace` tells which
    /// candles the history takes now.
    pub(super) fn next_offer(&mut self, pace: Pace, host: &Host, cx: &Context) -> Option<Offer> {
        let connections = self.requests.len();
        let in_flight: Vec<&Task> = self.requests().map(RequestInFlight::task).collect();
        if !host.has_room(in_flight.len(), connections) {
            return None;
        }
        let now = cx.now.mono;
        // One connection stays free for quotes, unless there is only one.
        let has_spare = host.has_room(in_flight.len() + 1, connections) || in_flight.is_empty();
        let mut offers = self.offers(&in_flight, pace, cx);
        let quotes = offers.extract_if(.., |it| it.task.is_quotes()).next();
        // The other offer that is due first. If several are due now, the most urgent one.
        let other = offers.into_iter().min_by_key(|offer| (offer.due.max(now), offer.purpose));
        let parts = self.parts(host, now);
        self.others_wait = other.as_ref().is_some_and(|it| it.due <= now);
        let other = other.filter(|it| has_spare || it.purpose == Purpose::Named);
        let ready = |Offer { due, task, purpose }: Offer| {
            let cost = self.profile.with_call(&task, cx, |call| self.profile.dialect.cost(call));
            let mut at = host.budget.ready_at(cost, purpose, parts, now);
            if task.is_quotes() && (self.others_wait || host.others_wait) {
                // Both need the budget: quotes leave the others their share.
                at = at.max(host.budget.quotes_turn(cost, parts, now));
            }
            Offer { due: due.max(at).max(host.halt.until), task, purpose }
        };
        [quotes, other].into_iter().flatten().map(ready).min_by_key(|it| it.due.max(now))
    }

    /// Into how many parts the budget is divided: by a refusal, by the host's sources, and for other nodes.
    pub fn parts(&self, host: &Host, now: Mono) -> u32 {
        host.parts(now) * self.spenders
    }

    /// The tasks that may be requested, and when each is due. Of one purpose, the most urgent comes first.
    fn offers(&self, in_flight: &[&Task], pace: Pace, cx: &Context) -> Vec<Offer> {
        let (id, goes_on) = (self.id, !cx.stats.stopping);
        let has_list = cx.market.catalog.has_list(id);
        let in_doubt = self.clock.is_in_doubt();
        let is_in_flight =
            |task: &Task| in_flight.iter().any(|it| discriminant(*it) == discriminant(task));
        let offer = |is_wanted: bool, due: Mono, task: Task, purpose: Purpose| {
            (is_wanted && goes_on && !is_in_flight(&task)).then_some(Offer { due, task, purpose })
        };
        // The next page is due when one has come.
        let due = |task: &Task, due| self.pages.next(task).map_or(due, |_| Mono::default());
        let list_due = due(&Task::Markets, self.list_due);
        let of_list = if has_list { Purpose::Newest } else { Purpose::Named };
        let of_quotes = |is_urgent| if is_urgent { Purpose::Named } else { Purpose::Quotes };
        let quotes = match self.plan.markets() {
            None => {
                let purpose = of_quotes(!self.profile.config.symbols.is_empty());
                offer(has_list, due(&Task::Tickers, self.quotes_due), Task::Tickers, purpose)
            }
            // Several requests of a round may be in flight.
            Some(_) => self.round.next().filter(|_| goes_on).map(|(task, is_urgent)| Offer {
                due: Mono::default(),
                task,
                purpose: of_quotes(is_urgent),
            }),
        };
        // Candles wait for the market list, which tells their ids, for the end of one time call in doubt, and
        // for the history file: it must have told which candles it holds, and have room for more.
        let awaits_time = self.clock.awaits_call() && is_in_flight(&Task::Time);
        let has_page = has_list && pace != Pace::Hold && !awaits_time;
        let is_of =
            |task: &Task, key| matches!(task, Task::Candles { series, .. } if *series == key);
        let is_asked = |key| in_flight.iter().any(|task| is_of(task, key));
        let page = has_page.then(|| self.candles.next(is_asked, cx)).flatten();
        let candles = page.and_then(|PlannedPage { when: due, urgency, series, slots }| {
            let is_wanted = goes_on || urgency == Urgency::Client;
            let is_history = urgency >= Urgency::Hole;
            let purpose = if is_history { Purpose::History } else { Purpose::Newest };
            let task = Task::Candles { series, slots };
            let is_taken = is_wanted && (pace == Pace::Free || !is_history);
            is_taken.then_some(Offer { due, task, purpose })
        });
        let stats = self.round.next_stats();
        let all = [
            quotes,
            offer(in_doubt, self.clock.due, Task::Time, Purpose::Newest),
            candles,
            offer(true, list_due, Task::Markets, of_list),
            offer(!in_doubt, self.clock.due, Task::Time, Purpose::Newest),
            stats.and_then(|(due, it)| offer(true, due, Task::Stats(it), Purpose::Newest)),
        ];
        // A failing kind gets one request at a time.
        let may_go = |offer: &Offer| {
            let kind = offer.task.kind();
            !self.failures.is_failing(kind, cx) || in_flight.iter().all(|it| it.kind() != kind)
        };
        let all = all.into_iter().flatten().filter(may_go);
        all.map(|it| Offer { due: it.due.max(self.failures.until(it.task.kind())), ..it }).collect()
    }

    /// Sends a request for this task on an idle connection: sets when the task is due next, and pays for it.
    pub(super) fn start(&mut self, conn: usize, offer: Offer, host: &mut Host, cx: &mut Context) {
        let Offer { task, purpose, .. } = offer;
        let (id, now) = (self.id, cx.now.mono);
        let (page, tag) = (self.pages.next(&task).cloned(), self.tag(&task));
        let is_later_page = page.is_some();
        let mut request = RequestInFlight::new(&self.profile, task, page, tag, cx);
        match request.task() {
            _ if is_later_page => {}
            Task::Tickers => {
                self.plan_quotes(cx.now);
                if self.profile.dialect.has_stats() {
                    let (urgent, rest) = markets(id, cx);
                    self.round.plan_stats(&urgent, &rest, now);
                }
                cx.market.quotes.arrived(id, Awaited::Poll);
            }
            Task::TickersOf { symbols, .. } => self.round.sent(symbols),
            Task::Stats(symbol) => {
                let takes = request.limit.per * request.unsent / request.limit.units;
                self.round.sent_stats(*symbol, takes, now);
            }
            // The list stays due until it is in place.
            Task::Markets => cx.market.catalog.drop_list(id),
            Task::Time => self.clock.asked(now),
            Task::Candles { series, slots } => self.candles.note_reach(*series, slots, cx),
        }
        if request.task().is_quotes() {
            self.quotes_sent_at = now;
        }
        host.budget.choose(request.unsent, purpose, self.parts(host, now), now);
        // If the connection is closed, it is opened first.
        request.is_on_reused = self.upstream.want(conn, request.deadline(now), cx);
        self.requests[conn] = Some(Box::new(request));
    }

    /// The tag of the market list in place, if the task is to request the whole list. The exchange need not
    /// send a list with this tag again.
    pub(super) fn tag(&self, task: &Task) -> Option<&str> {
        let is_whole_list = *task == Task::Markets && self.pages.next(task).is_none();
        self.list_tag.as_deref().filter(|_| is_whole_list)
    }
}

/// What the end of a request means, if its response is not good or is the last of a round.
impl Source {
    /// A request has ended without an answer, through nobody's fault: its task is due again at once.
    pub(super) fn put_back(&mut self, task: &Task, now: Mono) {
        match task {
            Task::Tickers if self.pages.next(task).is_some() => {}
            Task::Tickers => self.quotes_due = now,
            Task::TickersOf { symbols, .. } => self.round.put_back(symbols),
            Task::Stats(symbol) => self.round.put_back_stats(*symbol, now),
            Task::Time => self.clock.due = now,
            // A list is due until it is in place, and candles as long as their slots are missing.
            Task::Markets | Task::Candles { .. } => {}
        }
    }

    /// The exchange may answer something else now: market list, quotes and newest candles are due at once.
    pub fn request_all(&mut self, cx: &mut Context) {
        self.quotes_due = cx.now.mono;
        // A follower gets the list of its collector.
        if self.role().collects() {
            self.request_list(cx);
        }
        self.clock.judge(cx);
        self.candles.refresh_all(cx);
        self.wake_up(cx.now);
    }

    /// The market list is due at once. What has come of a list so far is of no use.
    pub(super) fn request_list(&mut self, cx: &mut Context) {
        self.put_back_all(|request| *request.task() == Task::Markets, cx);
        self.pages.forget(&Task::Markets);
        self.jobs.retain(|job| !job.is_of_list());
        (self.list_due, self.list_tag) = (cx.now.mono, None);
    }

    /// The machine's clocks have moved against each other: the machine slept, or a clock was set. Responses
    /// on their way may have been sent long ago.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        self.put_back_all(|_| true, cx);
        self.drop_records(cx);
        self.clock.clocks_moved(cx);
        self.wake_up(cx.now);
    }

    /// Returns true if the exchange refuses a list that was requested for some markets: one unknown market
    /// may spoil it for all. Then the list is due again at once, for the markets that were listed before. If
    /// there are none, or all were listed, the whole list is due. The list after that is requested for all
    /// named markets: they may be listed by then.
    pub(super) fn widens_list(&mut self, task: &Task, fault: &Fault, cx: &mut Context) -> bool {
        let may_differ = fault.blame(true) == Blame::Market && !fault.is_of_address();
        let profile = &mut self.profile;
        if *task != Task::Markets || !may_differ {
            return false;
        }
        let Some(asked) = profile.list_ids.take() else {
            return false;
        };
        let catalog = &cx.market.catalog;
        let listed = profile.named(catalog).filter(|it| catalog.listing(self.id, it.1).is_some());
        let listed: Vec<String> = listed.map(|(name, _)| name.clone()).collect();
        let status = &mut cx.stats[self.id];
        status.errors += 1;
        let source = &status.id;
        if (1..asked.len()).contains(&listed.len()) {
            profile.list_ids = profile.dialect.list_ids(&listed);
        } else {
            log::info!(target: SOURCE, "market list widened source={source} error={}", quoted(fault));
        }
        self.list_tag = None;
        self.pages.forget(task);
        cx.market.catalog.drop_list(self.id);
        true
    }

    /// A request has failed, and the failure concerns `blame`: sets when its task is due again.
    /// `has_no_quote`: the exchange has no quote of the only market. Returns what the failure means for the
    /// round.
    pub(super) fn plan_again(
        &mut self,
        task: &Task,
        blame: Blame,
        has_no_quote: bool,
        cx: &mut Context,
    ) -> RoundEnd {
        self.pages.forget(task);
        match task {
            Task::Candles { series: key, slots } => {
                let is_own = blame == Blame::Market;
                self.candles.failed(*key, is_own, cx.now);
                let present = key.interval.slot_of(cx.exchange_time(self.id));
                let is_past = is_own && slots.end <= present;
                if let Some(series) = cx.market.charts.get_mut(*key).filter(|_| is_past) {
                    // If it always fails, it is requested more and more rarely, also while others succeed.
                    series.note_open(slots, cx.now.mono, present);
                }
            }
            Task::Markets => cx.market.catalog.drop_list(self.id),
            Task::Time => self.clock.failed(cx),
            Task::TickersOf { symbols, .. } if blame == Blame::Market && symbols.len() > 1 => {
                self.round.divide(symbols);
            }
            Task::TickersOf { symbols, .. } => {
                if !has_no_quote {
                    let is_first = !cx.stats[self.id].quotes_polled;
                    cx.market.quotes.missed(self.id, symbols, is_first);
                }
                return self.market_ended(symbols, false, cx);
            }
            Task::Stats(_) | Task::Tickers => {}
        }
        RoundEnd::NotYet
    }

    /// The request of a round for these markets was answered well, or not: the last one ends the round.
    pub(super) fn market_ended(
        &mut self,
        symbols: &[SymbolId],
        is_good: bool,
        cx: &mut Context,
    ) -> RoundEnd {
        let (id, end) = (self.id, self.round.ended(symbols, is_good, cx.now.mono));
        match end {
            RoundEnd::NotYet => return end,
            RoundEnd::WithQuotes => {
                cx.market.quotes.end_poll(id, cx.now);
                self.clock.note_newest(&self.round.newest, cx.now.mono, cx);
            }
            // No market was answered well: no client need wait, and the source must not count as up.
            RoundEnd::WithoutQuotes => {
                self.failures.back_off(self.round.idle_until().max(self.quotes_due), cx);
            }
        }
        cx.market.quotes.arrived(id, Awaited::PollEnd);
        cx.stats[id].quotes_polled = true;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Limits, SourceConfig};
    use crate::core::history::History;
    use crate::core::sources::Role;
    use crate::core::sources::Sources;
    use crate::core::sources::clock::HOURLY;
    use crate::core::sources::jobs::Job;
    use crate::core::stats::SourceState;
    use crate::core::testing::{NOW, SOURCE, config_of, context, list};
    use crate::core::upstream::Ended;
    use crate::exchange::ReadError;
    use crate::market::SourceId;
    use crate::time::UnixMs;

    /// The usual poll interval, and when sources are polled that begin at these times.
    fn polls(sources: &[&str], begins: &[u64]) -> (Duration, Vec<Vec<Mono>>) {
        let config = Config {
            sources: sources.iter().map(|id| SourceConfig::new(id)).collect(),
            ..Config::default()
        };
        let poll = config.sources[0].poll.usual();
        let zero = Now { mono: Mono(5_000_000), unix: UnixMs(1_700_000_000_123) };
        let mut cx = context(config.clone(), zero);
        let mut of = |(at, begin_ms): (usize, &u64)| {
            let begin = zero.mono + Duration::from_millis(*begin_ms);
            let mut source =
                Source::new(SourceId(at as u16), &config, 0, Now { mono: begin, ..zero });
            let mut host = Host::new(&source.profile.url);
            source.begin_quotes(begin);
            let mut next = || {
                let due = source.next_quotes();
                let unix = zero.unix + due.since(zero.mono).as_millis() as i64;
                cx.now = Now { mono: due, unix };
                let offer = Offer { due, task: Task::Tickers, purpose: Purpose::Named };
                source.start(0, offer, &mut host, &mut cx);
                due
            };
            [(); 5].map(|()| next()).to_vec()
        };
        (poll, begins.iter().enumerate().map(&mut of).collect())
    }

    #[test]
    fn sources_are_polled_apart_whenever_they_begin() {
        let sources = ["binance", "okx", "bybit", "kraken"];
        for begins in [[0, 0, 0, 0], [0, 500, 999, 7], [1999, 1500, 1000, 500]] {
            let (poll, all) = polls(&sources, &begins);
            let in_interval = |at: &Mono| at.0 % poll.as_micros() as u64;
            let mut phases: Vec<u64> = all.iter().map(|polls| in_interval(&polls[1])).collect();
            phases.sort();
            let apart = poll.as_micros() as u64 / 4;
            assert!(phases.windows(2).all(|two| two[1] - two[0] == apart), "{phases:?}");
            for (polls, begin_ms) in all.iter().zip(begins) {
                assert_eq!(polls[0], Mono(5_000_000 + begin_ms * 1000), "the first is not put off");
                let second = polls[1].since(polls[0]);
                assert!(Duration::ZERO < second && second <= poll, "{second:?}");
                assert!(polls[1..].windows(2).all(|two| two[1].since(two[0]) == poll));
            }
        }
    }

    #[test]
    fn rounds_have_a_duration_only_where_there_are_rounds() {
        // The plan becomes to request all tickers at once, or another node collects.
        for role in [Role::Alone, Role::Follower] {
            let config = config_of("binance");
            let mut cx = context(config.clone(), NOW);
            list(&mut cx.market.catalog, &["A/USDT"]);
            let mut source = Source::new(SOURCE, &config, 0, NOW);
            let mut host = Host::new(&source.profile.url);
            let symbols = cx.market.catalog.known().to_vec();
            source.round.begin((Vec::new(), symbols.clone()), 1, false, NOW.mono);
            source.round.sent(&symbols);
            cx.now.mono = NOW.mono + source.profile.config.stale_after * 2;
            source.round.ended(&symbols, true, cx.now.mono);
            cx.stats[SOURCE].is_round_slow = true;
            cx.stats[SOURCE].spent_by_others = Some(620);
            source.set_role(role, &mut cx);
            source.handle_timeout(Pace::Free, &mut host, &mut cx);
            let status = &cx.stats[SOURCE];
            assert_eq!((status.round_ms, status.is_round_slow), (None, false), "{role:?}");
            assert_eq!(status.spent_by_others, None);
            assert_eq!(status.next_poll_at.is_some(), source.role().collects());
        }
    }

    #[test]
    fn a_round_without_a_market_ends_at_once_and_tells_whether_the_exchange_is_well() {
        let mut config = config_of("coinbase");
        config.sources[0].symbols = vec!["A/USD".to_string()];
        let mut cx = context(config.clone(), NOW);
        list(&mut cx.market.catalog, &["B/USD"]);
        let mut source = Source::new(SOURCE, &config, 0, NOW);
        let mut host = Host::new(&source.profile.url);
        cx.stats[SOURCE].failing[RequestKind::Quotes as usize] = 1;
        source.begin_round(&host, &mut cx);
        let status = &cx.stats[SOURCE];
        assert!(status.quotes_polled, "the exchange has no quote of it");
        assert_eq!(status.failing, [0; RequestKind::NAMES.len()], "none are requested");
        assert_eq!((source.round.next(), status.state), (None, SourceState::Up));
        let fault = Fault::ended(&Ended { was_open: false, what: "?".into(), why: None });
        source.failed(&Task::Time, fault, NOW.mono, &mut host, &mut cx);
        source.halted(host.halt, &mut cx);
        for (is_reached, expected) in [(false, SourceState::Backoff), (true, SourceState::Up)] {
            cx.now.mono = cx.now.mono + source.profile.config.stale_after * 2;
            if is_reached {
                host.answered(cx.now.mono, cx.now.mono);
            }
            source.begin_round(&host, &mut cx);
            let gives_away = source.should_give_away(Duration::from_secs(10), &cx);
            assert_eq!((cx.stats[SOURCE].state, gives_away), (expected, !is_reached));
        }
    }

    #[test]
    fn a_round_of_paused_markets_ends_and_the_source_is_not_up() {
        let config = config_of("coinbase");
        let mut cx = context(config.clone(), NOW);
        list(&mut cx.market.catalog, &["A/USD"]);
        let mut source = Source::new(SOURCE, &config, 0, NOW);
        let symbol = cx.market.catalog.known()[0];
        cx.market.quotes.expect(SOURCE, [symbol]);
        cx.market.quotes.arrived(SOURCE, Awaited::List);
        source.round.pause(symbol, HOURLY, NOW.mono);
        source.begin_round(&Host::new(&source.profile.url), &mut cx);
        assert!(!cx.market.quotes.is_awaited(SOURCE, symbol), "no request can tell of it");
        let status = &cx.stats[SOURCE];
        assert_eq!(status.state, SourceState::Backoff);
        assert_eq!(status.backoff_until, Some(NOW.unix + HOURLY.as_millis() as i64));
    }

    #[test]
    fn only_an_answer_about_a_market_means_that_it_has_no_quote() {
        use crate::exchange::RefusalKind::{Other, RateLimited, UnknownMarket};
        let status = |status, kind| Fault::status(status, kind, None);
        let body = |kind| {
            let (code, message) = Default::default();
            Fault::body(ReadError::Refused { code, message, kind }, b"{", None)
        };
        for (fault, has_no_quote) in [
            (status(400, Other), true),
            (status(404, Other), true),
            (status(400, UnknownMarket), true),
            (status(401, Other), false),
            (status(408, Other), false),
            (status(429, RateLimited), false),
            (status(451, Other), false),
            (status(500, Other), false),
            (body(UnknownMarket), true),
            (body(Other), false),
        ] {
            let (config, what) = (config_of("coinbase"), fault.to_string());
            let mut cx = context(config.clone(), NOW);
            list(&mut cx.market.catalog, &["A/USD", "B/USD"]);
            let mut source = Source::new(SOURCE, &config, 0, NOW);
            let mut host = Host::new(&source.profile.url);
            let symbols = cx.market.catalog.known().to_vec();
            source.round.begin((Vec::new(), symbols.clone()), 1, false, NOW.mono);
            source.round.sent(&symbols[..1]);
            let task = Task::TickersOf { symbols: symbols[..1].to_vec(), is_whole: false };
            source.failed(&task, fault, NOW.mono, &mut host, &mut cx);
            assert_eq!(cx.market.quotes.is_awaited(SOURCE, symbols[0]), !has_no_quote, "{what}");
        }
    }

    #[test]
    fn a_reload_that_changes_how_much_is_tracked_reads_the_market_list_again() {
        let usual = Limits::default();
        let changed = [
            (Limits { symbols: usual.symbols + 1, ..usual.clone() }, true),
            (Limits { candle_series: usual.candle_series + 1, ..usual.clone() }, true),
            (Limits { candle_bytes: usual.candle_bytes + 1, ..usual }, false),
        ];
        for ((limits, expected), has_other_settings) in
            changed.iter().flat_map(|it| [(it, false), (it, true)])
        {
            let mut cx = context(config_of("binance"), NOW);
            let mut sources = Sources::new(&mut cx);
            sources.all[0].list_due = NOW.mono + HOURLY;
            let mut config = cx.config.clone();
            config.limits = limits.clone();
            config.sources.push(SourceConfig::new("okx"));
            config.sources[0].stale_after *= 1 + u32::from(has_other_settings);
            let history = &mut History::new(NOW);
            sources.reload(config, Vec::new(), || (), history, &mut cx).expect("sound");
            assert_eq!(sources.all[0].list_due == NOW.mono, *expected, "{has_other_settings}");
        }
    }

    #[test]
    fn a_list_that_was_requested_before_everything_changed_is_requested_again() {
        let mut cx = context(config_of("binance"), NOW);
        list(&mut cx.market.catalog, &["A/USDT"]);
        let mut source = Source::new(SOURCE, &cx.config, 0, NOW);
        let mut host = Host::new(&source.profile.url);
        let offer = Offer { due: NOW.mono, task: Task::Markets, purpose: Purpose::Newest };
        source.start(0, offer, &mut host, &mut cx);
        source.jobs.push([Job::RefreshList]);
        source.request_all(&mut cx);
        assert!(source.in_flight() == 0 && source.jobs.is_empty() && source.list_due <= NOW.mono);
    }

    #[test]
    fn the_symbols_of_a_source_with_a_dialects_file_may_change_as_often_as_somebody_likes() {
        let text = include_str!("../../../exchange/dialects/coinbase.json");
        let source = SourceConfig { dialect_text: text.into(), ..SourceConfig::new("./x.json") };
        let mut cx = context(Config { sources: vec![source], ..Config::default() }, NOW);
        let (mut sources, history) = (Sources::new(&mut cx), &mut History::new(NOW));
        for at in 0..1001 {
            let mut config = cx.config.clone();
            config.sources[0].symbols = vec![format!("A{}/USD", at % 2)];
            sources.reload(config, Vec::new(), || (), history, &mut cx).expect("sound");
        }
    }

    #[test]
    fn in_a_cluster_other_nodes_may_collect_the_other_sources_of_a_host() {
        let of = |id: &str, dialect| SourceConfig { id: id.into(), ..SourceConfig::new(dialect) };
        let sources = vec![of("a", "okx"), of("b", "binance"), of("c", "okx")];
        for (cluster, expected) in [(None, [1, 1, 1]), (Some(Default::default()), [2, 1, 2])] {
            let mut cx =
                context(Config { cluster, sources: sources.clone(), ..Config::default() }, NOW);
            let sources = Sources::new(&mut cx);
            let parts = [0, 1, 2].map(|id| {
                let source = &sources[SourceId(id)];
                source.parts(&sources.hosts[source.host], NOW.mono)
            });
            assert_eq!(parts, expected);
        }
    }

    #[test]
    fn candles_wait_for_one_time_call_and_only_while_the_clock_is_in_doubt() {
        use crate::core::sources::clock::Witness;
        use crate::interval::Stored::M1;
        use crate::market::SeriesKey;
        let config = config_of("binance");
        let mut source = Source::new(SOURCE, &config, 0, NOW);
        let mut cx = context(config, NOW);
        list(&mut cx.market.catalog, &["A/USDT"]);
        let symbol = cx.market.catalog.known()[0];
        assert!(source.follow(SeriesKey { source: SOURCE, symbol, interval: M1 }, &mut cx));
        let waits = |source: &Source, cx: &Context| {
            let offers = source.offers(&[&Task::Time], Pace::Free, cx);
            offers.iter().all(|it| it.task.kind() != RequestKind::Candles)
        };
        assert!(waits(&source, &cx), "the first call may tell the clock");
        source.clock.failed(&mut cx);
        assert!(!waits(&source, &cx), "the second one may fail as well");
        source.clock.note(Witness::Date, [NOW.unix; 2], NOW.mono, &mut cx);
        assert!(!waits(&source, &cx), "the clock is known");
        cx.now.mono = NOW.mono + Duration::from_secs(1);
        source.clock.clocks_moved(&mut cx);
        assert!(waits(&source, &cx), "the machine slept");
        source.clock.failed(&mut cx);
        assert!(!waits(&source, &cx));
    }

    #[test]
    fn in_doubt_of_the_clock_a_series_with_nothing_to_request_holds_up_no_other() {
        use crate::core::stats::ClockDoubt;
        use crate::core::testing::{SOURCE, config_of, list};
        use crate::interval::Stored::M1;
        use crate::market::SeriesKey;
        use crate::market::testing::minutes;
        let config = config_of("binance");
        let mut source = Source::new(SOURCE, &config, 0, NOW);
        let mut cx = context(config, NOW);
        list(&mut cx.market.catalog, &["A/USDT", "B/USDT"]);
        let symbols = cx.market.catalog.known().to_vec();
        let keys = [0, 1].map(|at| SeriesKey { source: SOURCE, symbol: symbols[at], interval: M1 });
        keys.iter().for_each(|key| assert!(source.follow(*key, &mut cx)));
        let current = M1.slot_of(NOW.unix);
        let slots = current - 300..current;
        cx.market.charts.ingest_whole(keys[0], slots.clone(), &minutes(slots), NOW.unix, None);
        cx.stats[SOURCE].clock_doubt =
            Some(ClockDoubt { why: "?".into(), earliest: NOW.unix.0 - 7_200_000 });
        let page = source.candles.next(|_| false, &cx).expect("both are due");
        assert!(page.slots.end <= current - 119, "{page:?}");
    }

    #[test]
    fn a_source_that_has_no_neighbours_keeps_the_phase_of_its_first_poll() {
        let (poll, all) = polls(&["kraken"], &[77]);
        assert!(all[0].windows(2).all(|two| two[1].since(two[0]) == poll), "{all:?}");
    }
}
