//! The exchanges: what is requested of each, and when.
//!
//! [`Sources`] owns one [`Source`](source::Source) for each configured exchange, the hosts that they share,
//! and failover between them. `source` is the file to begin with: it conducts one exchange's connections and
//! `jobs`; its `schedule` chooses what is requested next. The life of a request is in `request`, from top to
//! bottom; `source/requests` tells a request what happens to the connection that it uses. `source/applying`
//! turns the response into changes of the market. `staged` collects a response that comes in pages until its
//! last page.
//!
//! No client is served here. Quotes and candles go to the market.

mod backfill_progress;
mod backoff;
mod budget;
mod candle_plans;
mod clock;
mod failover;
mod fault;
mod host;
mod jobs;
mod quote_plan;
mod quote_round;
mod replica;
mod request;
mod series_plan;
mod source;
mod staged;
mod task;

use crate::config::{Config, DEMO, SourceChange, SourceConfig, SourcePlaces};
use crate::core::history::History;
use crate::core::stats::SourceStatus;
use crate::core::{Context, Event, Resolved};
use crate::exchange::Dialect;
use crate::interval::Stored;
use crate::log_targets::{CONFIG, quoted};
use crate::market::SourceId;
use crate::rng::Rng;
use crate::table::Key;
use crate::time::{Mono, Now};
use budget::Budget;
use failover::Failover;
use host::Host;
pub use replica::{Outbound, Role};
pub use source::Source;
use std::ops::{Index, IndexMut};
use task::Profile;

/// The most sources that reloads may add. Each source keeps its place until marketd ends, and the table of
/// connections is sized at the start.
const MOST_ADDED: usize = 16;

/// All exchanges. See the module's page. Clients' requests for candles and the cluster concern one source at
/// a time, and reach it by its id, as an index.
pub struct Sources {
    /// By `SourceId`.
    all: Vec<Source>,
    /// The hosts. Each source knows the place of its host.
    hosts: Vec<Host>,
    /// The index after the source that stepped a job last.
    next_to_work: usize,
    /// From which source each symbol is served.
    pub failover: Failover,
    /// Seeds the jitter of each new source.
    rng: Rng,
    /// The most sources for which the table of connections has room.
    most: usize,
}

impl Sources {
    /// The most sources: those of the start, and some that come later.
    fn most(config: &Config) -> usize {
        config.sources.len() + MOST_ADDED
    }

    /// The most entries of all exchanges in the table of connections. A connection that is opened anew has
    /// two entries until the driver has closed the old socket.
    pub fn capacity(config: &Config) -> usize {
        2 * config.limits.connections_per_source * Sources::most(config)
    }

    /// The configured sources.
    pub fn new(cx: &mut Context) -> Sources {
        let ids = (0..).map(SourceId).take(cx.config.sources.len());
        let mut sources = Sources {
            all: Vec::new(),
            hosts: Vec::new(),
            next_to_work: 0,
            failover: Failover::default(),
            rng: Rng::new(cx.boot),
            most: Sources::most(&cx.config),
        };
        ids.for_each(|id| sources.begin(id, cx));
        sources.find_hosts(cx);
        sources
    }

    /// Gives each source its host, and each host the limits of its sources. Every source looks again, because
    /// requests may have ended for which it has waited.
    fn find_hosts(&mut self, cx: &mut Context) {
        let (Sources { all, hosts, .. }, now) = (self, cx.now.mono);
        let is_used = |host: &Host| all.iter().any(|it| host.is_of(&it.profile.url));
        hosts.retain(|host| is_used(host) || !host.is_unused(now));
        for source in all.iter_mut() {
            let url = &source.profile.url;
            let known = hosts.iter().position(|host| host.is_of(url));
            source.host = known.unwrap_or_else(|| {
                hosts.push(Host::new(url));
                hosts.len() - 1
            });
            source.halted(hosts[source.host].halt, cx);
            source.wake_up(cx.now);
        }
        for (place, host) in hosts.iter_mut().enumerate() {
            let profiles = || all.iter().filter(|it| it.uses(place)).map(|it| &it.profile);
            let limits: Vec<_> = profiles().map(|it| it.limit).collect();
            host.shares = if cx.config.cluster.is_some() { limits.len().max(1) as u32 } else { 1 };
            if let Some(dearest) = profiles().map(Profile::dearest).max() {
                host.budget.configure(&limits, dearest, now);
            }
        }
    }

    /// Lets a source act with its host. What concerns the other sources of the host is passed on to them.
    fn act<T>(
        &mut self,
        id: SourceId,
        cx: &mut Context,
        act: impl FnOnce(&mut Source, &mut Host, &mut Context) -> T,
    ) -> T {
        let place = self[id].host;
        let all = || self.all.iter().filter(|it| it.host == place);
        let others = || all().filter(|it| it.id != id);
        let host = &mut self.hosts[place];
        host.in_flight_elsewhere = others().map(Source::in_flight).sum();
        host.is_shared = others().any(|it| it.uses(place));
        host.others_wait = others().any(|it| it.uses(place) && it.others_wait);
        let requests = all().flat_map(|it| it.requests());
        host.budget.unsent = requests.map(|it| u64::from(it.unsent)).sum();
        let (was_halted, is_shared) = (host.halt, host.is_shared);
        let was_in_flight = self.all[id.index()].in_flight();
        let done = act(&mut self.all[id.index()], host, cx);
        let halt = self.hosts[place].halt;
        for source in self.all.iter_mut().filter(|it| it.host == place && halt != was_halted) {
            source.halted(halt, cx);
        }
        if is_shared && self[id].in_flight() < was_in_flight {
            // Another source of the host may have waited for this connection: every source of the host looks
            // again.
            self.all.iter_mut().filter(|it| it.uses(place)).for_each(|it| it.wake_up(cx.now));
        }
        self[id].upstream.open(cx);
        done
    }

    /// Lets the market, the history and the sources take in a configuration that was read again, and returns
    /// the former one. Sources keep their numbers, so nothing that names a source has to be translated. A
    /// source that has ended keeps its place, and tracks and requests nothing. `fixed`: changed keys that
    /// keep their running value until a restart. Calls `accepted` before anything changes. The error says why
    /// nothing is changed.
    pub fn reload(
        &mut self,
        mut config: Config,
        mut fixed: Vec<&'static str>,
        accepted: impl FnOnce(),
        history: &mut History,
        cx: &mut Context,
    ) -> Result<Config, String> {
        let known = cx.stats.sources.len();
        let has_ended = |at: usize| cx.stats.sources[at].has_ended;
        let SourcePlaces { all, mut changes, is_reordered } =
            SourcePlaces::after(&cx.config.sources, has_ended, &config.sources);
        if all.len() > self.most {
            let (count, most) = (all.len(), self.most);
            return Err(format!("sources: too many since the start: {count}, at most {most}"));
        }
        let is_read = |(source, change): &(&SourceConfig, &SourceChange)| {
            !source.dialect_text.is_empty() && **change == SourceChange::Begins
        };
        if !Dialect::has_room(all.iter().zip(&changes).filter(is_read).count()) {
            return Err("sources: too many dialect files read since the start".to_string());
        }
        accepted();
        let tracked = |it: &Config| (it.limits.symbols, it.limits.candle_series);
        if tracked(&config) != tracked(&cx.config) {
            // The market lists tell what there is room for now.
            for (at, change) in changes.iter_mut().enumerate() {
                match change {
                    SourceChange::Same if !has_ended(at) => {
                        *change = SourceChange::Settings { markets: true, route: false };
                    }
                    SourceChange::Settings { markets, .. } => *markets = true,
                    _ => {}
                }
            }
        }
        fixed.extend(is_reordered.then_some("the order of sources"));
        config.keep_fixed(&cx.config);
        config.sources = all;
        let old = std::mem::replace(&mut cx.config, config);
        cx.market.reconfigure(&cx.config, &changes, cx.now.mono);
        self.reconfigure(&changes, cx);
        history.recall(SourceId(known as u16), cx);
        cx.stats.reloads.take();
        let count = |is: fn(&SourceChange) -> bool| changes.iter().filter(|it| is(it)).count();
        log::info!(
            target: CONFIG,
            "reloaded sources={} begun={} ended={} changed={}",
            cx.stats.running().count(),
            count(|it| matches!(it, SourceChange::Begins)),
            count(|it| matches!(it, SourceChange::Ends)),
            count(|it| matches!(it, SourceChange::Settings { .. })),
        );
        if !fixed.is_empty() {
            log::warn!(target: CONFIG, "restart needed keys={}", quoted(fixed.join(", ")));
        }
        Ok(old)
    }

    /// Takes in the configuration of the context. `changes` tells, by source, what becomes of it.
    fn reconfigure(&mut self, changes: &[SourceChange], cx: &mut Context) {
        // Sources that end come first: a new one may use their host.
        let ending = self.all.iter_mut().zip(changes);
        for (source, _) in ending.filter(|(_, change)| **change == SourceChange::Ends) {
            source.end(cx);
        }
        for (id, change) in (0..).map(SourceId).zip(changes) {
            match change {
                SourceChange::Same | SourceChange::Ends => continue,
                SourceChange::Settings { markets, route } => {
                    self[id].reconfigure(*markets, *route, cx);
                }
                SourceChange::Begins => self.begin(id, cx),
            }
            self[id].upstream.open(cx);
        }
        self.find_hosts(cx);
    }

    fn begin(&mut self, id: SourceId, cx: &mut Context) {
        let mut source = Source::new(id, &cx.config, self.rng.next_u64(), cx.now);
        cx.market.charts.doubt_clock(id, Some(cx.now.unix));
        if let Some(former) = self.all.get_mut(id.index()) {
            former.end(cx);
            source.upstream.inherit(&mut former.upstream);
            *former = source;
        } else {
            self.all.push(source);
        }
        let mut status = SourceStatus::new(&cx.config.sources[id.index()].id);
        let dialect = self[id].profile.dialect;
        status.intervals = Stored::ALL.map(|interval| dialect.has_interval(interval));
        match cx.stats.sources.get_mut(id.index()) {
            Some(former) => *former = status,
            None => cx.stats.sources.push(status),
        }
    }

    /// Takes in what happened to a connection. `true`: a request has ended, and clients may have waited
    /// for it.
    pub fn handle(
        &mut self,
        (source, conn): (SourceId, usize),
        key: Key,
        event: Event<'_>,
        history: &History,
        cx: &mut Context,
    ) -> bool {
        let pace = history.pace_of(source);
        self.act(source, cx, |it, host, cx| it.handle((conn, key), event, pace, host, cx))
    }

    /// Takes in the addresses of a source's host, or why there are none.
    pub fn resolved(&mut self, resolved: Resolved, history: &History, cx: &mut Context) {
        let source = resolved.look_up.source;
        self.act(source, cx, |it, host, cx| {
            it.upstream.resolved(resolved, cx);
            it.handle_timeout(history.pace_of(source), host, cx)
        });
    }

    /// Starts requests that are due, and gives up requests that are late. `true`: a request has ended.
    pub fn handle_timeout(&mut self, history: &History, cx: &mut Context) -> bool {
        let is_due = |it: &&Source| it.wake_at.is_some_and(|at| at <= cx.now.mono);
        // Sources that share a budget take turns.
        let mut due: Vec<_> =
            self.all.iter().filter(is_due).map(|it| (it.quotes_sent_at, it.id)).collect();
        due.sort_unstable_by_key(|(sent_at, id)| (*sent_at, id.index()));
        let mut has_ended = false;
        for (_, id) in due {
            has_ended |= self.act(id, cx, |source, host, cx| {
                source.handle_timeout(history.pace_of(id), host, cx)
            });
        }
        has_ended
    }

    /// When [`Sources::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        self.all.iter().filter_map(|it| it.wake_at).min()
    }

    /// True if [`Sources::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.all.iter().any(|it| !it.jobs.is_empty())
    }

    /// Steps a job of one source. The sources take turns, so that a busy one does not hold up the others.
    /// `true`: a request has ended, or its response is completely in the market.
    pub fn work(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let (before, behind) = self.all.split_at(self.next_to_work);
        let mut in_turn = behind.iter().chain(before);
        let Some(source) = in_turn.find(|source| !source.jobs.is_empty()) else {
            return false;
        };
        let id = source.id;
        self.next_to_work = id.index() + 1;
        self.act(id, cx, |source, host, cx| source.work(host, history, cx))
    }

    /// The number of jobs that apply responses, or do what a new market list leads to.
    pub fn staged(&self) -> usize {
        self.all.iter().map(Source::staged).sum()
    }

    /// The budget that a source spends.
    pub fn budget(&mut self, id: SourceId) -> &mut Budget {
        let place = self[id].host;
        &mut self.hosts[place].budget
    }

    /// Gives a source a role in the cluster.
    pub fn set_role(&mut self, id: SourceId, role: Role, cx: &mut Context) {
        let idle_since = self[id].idle_since();
        self[id].set_role(role, cx);
        let halt = self.hosts[self[id].host].halt;
        self[id].halted(halt, cx);
        if let Some(since) = idle_since.filter(|_| role == Role::Alone) {
            // Other nodes, or an earlier run, may have spent the whole budget before.
            self.budget(id).take_over(since);
        }
    }

    /// The history has room again, or has ended a load. Requests that have waited for the history are due.
    pub fn wake_up(&mut self, now: Now) {
        self.all.iter_mut().for_each(|it| it.wake_up(now));
    }

    /// The history file holds more, or less, than before.
    pub fn note_stored(&mut self, now: Now) {
        self.all.iter_mut().for_each(|it| it.note_stored(now));
    }

    /// The script of the demo exchange has changed what the demo exchange answers.
    pub fn demo_changed(&mut self, cx: &mut Context) {
        for source in self.all.iter_mut().filter(|it| it.profile.config.dialect == DEMO) {
            source.request_all(cx);
        }
    }

    /// The machine's clocks have moved against each other.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        self.all.iter_mut().for_each(|it| it.clocks_moved(cx));
        self.watch_failover(cx);
    }

    /// Counts and logs the symbols that changed their source. Returns true if a quote has become stale or
    /// fresh.
    pub fn watch_failover(&mut self, cx: &mut Context) -> bool {
        self.failover.watch(&mut cx.market, &mut cx.stats.sources, cx.now.mono)
    }
}

impl Index<SourceId> for Sources {
    type Output = Source;

    fn index(&self, source: SourceId) -> &Source {
        &self.all[source.index()]
    }
}

impl IndexMut<SourceId> for Sources {
    fn index_mut(&mut self, source: SourceId) -> &mut Source {
        &mut self.all[source.index()]
    }
}
