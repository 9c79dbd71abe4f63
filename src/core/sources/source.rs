//! One source: one exchange that is polled.
//!
//! [`Source`] conducts its parts: it sends the most urgent request (`schedule`) on a connection of its
//! [`Upstream`] (`requests`), and turns each response into a [`Job`] (`applying`). A failure changes nothing
//! that is served. While a kind of requests fails, one request of this kind is sent at a time. After each
//! failure of the kind, none is sent until the back-off is over.
//!
//! It serves no client and keeps no price. A response goes to the market in slices ([`Source::work`]), after
//! its body has parsed to the end.

mod applying;
mod cluster;
mod requests;
mod schedule;

use crate::config::Config;
use crate::core::Context;
use crate::core::history::{History, Pace};
use crate::core::sources::backfill_progress::BackfillProgress;
use crate::core::sources::backoff::Failures;
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::sources::clock::ExchangeClock;
use crate::core::sources::host::Host;
use crate::core::sources::jobs::Job;
use crate::core::sources::quote_plan::QuotePlan;
use crate::core::sources::quote_round::QuoteRound;
use crate::core::sources::replica::{Outbound, Replica, Role};
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::staged::Paging;
use crate::core::sources::task::{Profile, Task};
use crate::core::stats::{SourceState, on_wall};
use crate::core::upstream::{Route, Upstream};
use crate::exchange::RequestKind;
use crate::interval::Stored;
use crate::job_queue::JobQueue;
use crate::log_targets::{SOURCE, quoted};
use crate::market::{Catalog, Market, SeriesKey, SourceId};
use crate::replication::Update;
use crate::time::{Mono, Now};
use std::ops::Range;

/// Markets that lose their quotes in one slice, after they have left the list: less than 0.1 ms.
const DROPPED_A_SLICE: usize = 256;

/// Named markets whose series are opened in one slice: some 0.1 ms with a thousand followed series.
const FOLLOWED_A_SLICE: usize = 32;

/// See the module's page.
pub struct Source {
    pub(super) id: SourceId,
    /// The place of its host among the hosts of [`Sources`](super::Sources).
    pub(super) host: usize,
    /// Its connections.
    pub(super) upstream: Upstream,
    /// The request in flight of each connection.
    requests: Vec<Option<Box<RequestInFlight>>>,
    /// Its settings.
    pub(super) profile: Profile,
    /// When all quotes are due, or the next round of them.
    quotes_due: Mono,
    /// True from [`Source::begin_quotes`] until the next request for quotes.
    is_first: bool,
    /// When the market list is due.
    list_due: Mono,
    /// Since when no market of the list trades.
    nothing_trades_since: Option<Mono>,
    /// The tag of the list in place, if the exchange has sent one: the same list is not sent again.
    list_tag: Option<Box<str>>,
    /// How tickers are requested.
    plan: QuotePlan,
    /// The running round of quotes, if the plan does not request all of them at once.
    round: QuoteRound,
    /// The pages that have arrived so far, of a market list or of all tickers.
    pages: Paging,
    candles: CandlePlans,
    clock: ExchangeClock,
    failures: Failures,
    /// Into how many parts the cluster divides the budget. This node has one.
    pub spenders: u32,
    /// True if a request for something other than quotes was due when a request was last chosen.
    pub(super) others_wait: bool,
    /// What [`Source::work`] has to do.
    pub(super) jobs: JobQueue<Job>,
    progress: BackfillProgress,
    replica: Replica,
    /// When the newest quotes were received.
    newest_quotes: Mono,
    /// When a request for quotes was last sent.
    pub(super) quotes_sent_at: Mono,
    /// When [`Source::handle_timeout`] is wanted; recomputed after each change.
    pub(super) wake_at: Option<Mono>,
    /// True if it is configured no longer: it requests nothing.
    has_ended: bool,
}

impl Source {
    /// A source whose first task is due at once. `seed`: for its jitter. [`Sources`](super::Sources) gives it
    /// its host.
    ///
    /// # Panics
    /// If the source's dialect does not exist, or the source has no address. A checked configuration has no
    /// such source.
    pub fn new(id: SourceId, config: &Config, seed: u64, now: Now) -> Source {
        let profile = Profile::new(id, config);
        let count = config.limits.connections_per_source.max(1);
        Source {
            id,
            host: 0,
            upstream: Upstream::new(id, route_to_exchange(&profile), count),
            requests: (0..count).map(|_| None).collect(),
            quotes_due: now.mono,
            is_first: false,
            list_due: now.mono,
            nothing_trades_since: None,
            list_tag: None,
            plan: QuotePlan::new(&profile),
            round: QuoteRound::default(),
            pages: Paging::default(),
            candles: CandlePlans::new(&profile),
            clock: ExchangeClock::new(id, now.mono),
            failures: Failures::new(id, seed, now.mono),
            spenders: 1,
            others_wait: false,
            profile,
            jobs: JobQueue::default(),
            progress: BackfillProgress::new(id, now.mono),
            replica: Replica::default(),
            newest_quotes: Mono::default(),
            quotes_sent_at: now.mono,
            wake_at: Some(now.mono),
            has_ended: false,
        }
    }

    /// True if it is a source of this host and has not ended.
    pub(super) fn uses(&self, host: usize) -> bool {
        self.host == host && !self.has_ended
    }

    /// Its requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.requests().count()
    }

    /// The number of jobs that apply responses, or do what a new market list leads to.
    pub fn staged(&self) -> usize {
        self.jobs.iter().filter(|job| job.applies()).count()
    }

    /// Follows a series from now on, because somebody reads it. `false`: there are too many, or the exchange
    /// does not have it.
    pub fn follow(&mut self, series: SeriesKey, cx: &mut Context) -> bool {
        let follows = !self.has_ended && self.candles.follow(series, cx);
        let read = cx.market.charts.get(series).filter(|_| follows);
        read.inspect(|it| _ = it.touch(cx.exchange_time(self.id)));
        follows
    }

    /// Requests candles for a client. `false`: none will come, so the client need not wait.
    pub fn ask(&mut self, series: SeriesKey, slots: &Range<i64>, cx: &Context) -> bool {
        // While it is unknown which node collects, no candle is requested.
        let holds = self.failures.holds(RequestKind::Candles, cx);
        let is_well = !holds && self.replica.role() != Role::Waiting;
        let is_taken = is_well && self.candles.ask(series, slots, cx);
        if is_taken {
            // It starts at the end of this turn, not while a client is served.
            self.wake_up(cx.now);
        }
        is_taken
    }

    /// True if a client waits for some of these candles.
    pub fn is_asking(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.candles.is_asking(series, slots)
    }

    /// Has [`Source::handle_timeout`] called at once.
    pub fn wake_up(&mut self, now: Now) {
        self.wake_at = (!self.has_ended).then_some(now.mono);
    }

    /// The newest candles are due now.
    pub fn refresh_candles(&mut self, cx: &Context) {
        self.candles.refresh_all(cx);
        self.wake_up(cx.now);
    }

    /// The history file holds more, or less, than before.
    pub fn note_stored(&mut self, now: Now) {
        self.jobs.push(self.progress.stored(now).then_some(Job::Count));
    }

    /// A request has ended: starts what is due. If the host is shared, the next timeout does that, so that
    /// sources take turns. Returns true.
    fn go_on(&mut self, pace: Pace, host: &mut Host, cx: &mut Context) -> bool {
        match host.is_shared {
            true => self.wake_up(cx.now),
            false => self.start_due(pace, host, cx),
        }
        true
    }

    /// Time has passed: gives up requests whose time has ended, and starts what is due. `true`: a request has
    /// ended.
    pub fn handle_timeout(&mut self, pace: Pace, host: &mut Host, cx: &mut Context) -> bool {
        let mut has_ended = false;
        for conn in 0..self.requests.len() {
            if let Err(ended) = self.upstream.handle_timeout(conn, cx) {
                has_ended |= self.lost(conn, ended, host, cx);
            }
        }
        if self.failures.down_at(cx).is_some_and(|at| at <= cx.now.mono) {
            cx.stats[self.id].state = SourceState::Down;
        }
        self.start_due(pace, host, cx);
        has_ended
    }

    /// Starts what is due, and shows when the next poll is, what is left of the budget, and how long a round
    /// takes.
    fn start_due(&mut self, pace: Pace, host: &mut Host, cx: &mut Context) {
        if self.has_ended {
            return;
        }
        if self.clock.has_moved() {
            self.candles.refresh_all(cx);
        }
        let collects = self.replica.role().collects();
        if collects {
            self.request_from_exchange(pace, host, cx);
        } else {
            self.others_wait = false;
            self.request_due(pace, cx);
        }
        let next_poll = collects.then(|| self.next_quotes().max(self.idle_until()));
        let stale_at = self.failures.stale_at(cx);
        let status = &mut cx.stats[self.id];
        status.cacheable_until = next_poll.unwrap_or_default().min(stale_at);
        status.next_poll_at = next_poll.map(|at| on_wall(at, cx.now));
        status.budget_left = host.budget.left(self.parts(host, cx.now.mono), cx.now.mono);
        status.spent_by_others = host.budget.spent_by_others(cx.now.mono).filter(|_| collects);
        let round = self.round.duration(cx.now.mono);
        status.round_ms = round.map(|took| took.as_millis() as u64);
        status.is_round_slow = round.is_some_and(|took| took > self.profile.config.stale_after);
    }

    /// Starts every task that is due and has an idle connection, then works out when to look again.
    fn request_from_exchange(&mut self, pace: Pace, host: &mut Host, cx: &mut Context) {
        self.watch_list(cx);
        self.begin_round(host, cx);
        let mut next = None;
        // Responses that have come are applied first: the next request may depend on them.
        while self.staged() == 0
            && let Some(conn) = self.requests.iter().position(Option::is_none)
            && let Some(offer) = self.next_offer(pace, host, cx)
        {
            if offer.due > cx.now.mono {
                let (id, ms) = (&cx.stats[self.id].id, offer.due.since(cx.now.mono).as_millis());
                let what = offer.task.describe(&cx.market);
                log::debug!(target: SOURCE, "planned source={id} what={} in_ms={ms}", quoted(what));
                next = Some(offer.due);
                break;
            }
            self.start(conn, offer, host, cx);
        }
        // A plan that requests all quotes at once has no round: `next` has its time.
        let round = self.next_round(cx).filter(|_| self.plan.markets().is_some());
        let all = [self.upstream.due(), next, round, self.failures.down_at(cx)];
        self.wake_at = all.into_iter().flatten().min();
    }

    /// Steps the next job once. `true`: a response is completely in the market, or a request has ended.
    pub fn work(&mut self, host: &mut Host, history: &mut History, cx: &mut Context) -> bool {
        let next = self.jobs.next(|_| true);
        let Some(mut job) = next.and_then(|at| self.jobs.take(at)) else {
            return false;
        };
        let mut has_ended = false;
        let is_done = match &mut job {
            Job::ApplyTickers(tickers) => self.apply_tickers(tickers, cx),
            Job::ApplyCandles(page, received) => {
                if let Some(received) = received.take().filter(|_| self.replica.publishes()) {
                    self.publish(Update::Candles(page.to_send(cx)), received, cx);
                }
                let is_done = page.step(history, cx);
                if is_done {
                    self.candles.applied(page, history, cx);
                    let begins = self.progress.applied(&self.candles, cx.now);
                    self.jobs.push(begins.then_some(Job::Count));
                }
                is_done
            }
            Job::ReadList(list) => self.read_list(list, cx),
            Job::RefreshList => {
                self.refresh_list(history, cx);
                true
            }
            Job::DropQuotes(removed) => {
                let slice = removed.by_ref().take(DROPPED_A_SLICE);
                slice.for_each(|symbol| cx.market.quotes.drop_symbol(self.id, symbol));
                removed.len() == 0
            }
            Job::FollowNamed(named) => {
                for symbol in named.by_ref().take(FOLLOWED_A_SLICE) {
                    for interval in Stored::ALL {
                        let key = SeriesKey { source: self.id, symbol, interval };
                        self.candles.follow(key, cx);
                    }
                }
                named.len() == 0
            }
            Job::Decompress(conn) => {
                has_ended = self.decompress(*conn, host, cx);
                !self.is_decompressing(*conn)
            }
            Job::Count => self.progress.count(&self.candles, history, cx),
            Job::WriteList(writer) => {
                let list = writer.step(self.id, cx).map(Outbound::List);
                let is_done = list.is_some();
                self.replica.outbound.extend(list);
                is_done
            }
        };
        has_ended |= is_done && job.applies();
        if !is_done {
            self.jobs.put_back(job);
        }
        has_ended && self.go_on(history.pace_of(self.id), host, cx)
    }

    /// Takes in new settings. Requests that the changes concern end, and are due again.
    pub fn reconfigure(&mut self, markets: bool, route: bool, cx: &mut Context) {
        self.profile = self.profile.renewed(&cx.config);
        self.list_tag = None;
        self.pages = Paging::default();
        let latest = cx.now.mono + self.profile.poll;
        if self.quotes_due > latest {
            self.begin_quotes(latest);
        }
        if route {
            self.put_back_all(|_| true, cx);
            self.failures.rerouted(cx);
            // The requests on these connections have been put back.
            self.upstream.reroute(route_to_exchange(&self.profile), cx);
        }
        if markets {
            // A list that was read with the former settings is of no use. It is read again.
            self.request_list(cx);
            self.drop_gone(cx);
            self.round.abandon();
        }
    }

    /// Markets may have left, and series may have been closed: their requests end, and nothing more is
    /// requested of them. The other markets of these requests are due again.
    fn drop_gone(&mut self, cx: &mut Context) {
        let (id, Market { catalog, charts, .. }) = (self.id, &cx.market);
        let is_listed = |catalog: &Catalog, symbol| catalog.listing(id, symbol).is_some();
        let may_be_listed = |symbol| !catalog.has_list(id) || is_listed(catalog, symbol);
        let is_followed = |key: &SeriesKey| may_be_listed(key.symbol) && charts.get(*key).is_some();
        self.candles.retain(is_followed);
        let of_gone = |task: &&Task| match task {
            Task::TickersOf { symbols, .. } => symbols.iter().any(|it| !is_listed(catalog, *it)),
            Task::Stats(symbol) => !is_listed(catalog, *symbol),
            Task::Candles { series, .. } => !is_followed(series),
            Task::Markets | Task::Time | Task::Tickers => false,
        };
        let gone: Vec<Task> =
            self.requests().map(RequestInFlight::task).filter(of_gone).cloned().collect();
        self.put_back_all(|request| gone.contains(request.task()), cx);
        self.round.retain(|symbol| is_listed(&cx.market.catalog, symbol));
        let are_none = [self.candles.series().next().is_none(), self.round.next_stats().is_none()];
        let kinds = [RequestKind::Candles, RequestKind::Stats].into_iter().zip(are_none);
        kinds.filter(|it| it.1).for_each(|(kind, _)| self.failures.forget_kind(kind, cx));
        self.progress.begins(true, cx.now);
        self.jobs.push([Job::Count]);
    }

    /// It is configured no longer: its requests end, its connections are closed, and no client need wait
    /// for it.
    pub fn end(&mut self, cx: &mut Context) {
        self.put_back_all(|_| true, cx);
        self.upstream.close_all(cx);
        self.jobs = JobQueue::default();
        self.candles.retain(|_| false);
        cx.stats[self.id].has_ended = true;
        (self.has_ended, self.wake_at) = (true, None);
    }
}

/// The route to a source's exchange.
fn route_to_exchange(profile: &Profile) -> Route {
    if let Some(proxy) = &profile.config.proxy {
        let (id, proxy) = (&profile.config.id, proxy.authority());
        log::info!(target: SOURCE, "proxy used source={id} proxy={proxy}");
    }
    Route::new(&profile.url, profile.config.proxy.clone())
}
