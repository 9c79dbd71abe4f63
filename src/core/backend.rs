//! The backend: the half of the core that collects. It conducts the sources, the history and the cluster.
//!
//! [`Backend`] hands each event to the part that owns it. Then it tells the sources that the history has room
//! again, and the other nodes what was applied. After each event that changed something, it updates health
//! and failover. It knows no client: [`Backend::take_progress`] tells whether something has come that clients
//! may wait for.

use super::api::health::log::HealthLog;
use super::cluster::{Cluster, MOST_CONNECTIONS, OptionalCluster};
use super::context::Context;
use super::history::{History, Pace, ReadStart};
use super::sources::Sources;
use crate::config::Config;
use crate::core::{Event, LongWork, Resolved, WorkSet};
use crate::history::Reply;
use crate::http::{EMPTY, Output};
use crate::market::{SeriesKey, SourceId};
use crate::table::{Key, Table};
use crate::time::Mono;
use std::cell::Cell;
use std::ops::Range;

/// See the module's page.
pub struct Backend {
    sources: Sources,
    history: History,
    cluster: OptionalCluster,
    health: HealthLog,
    /// The next wake-up, if it is known. It is cached, because most turns change nothing that it depends on.
    ///
    /// Invariant: the cached value equals a recomputation. A method that lets the sources, the quotes, the
    /// health log, the history or the cluster act must call [`Backend::changed`], as [`Backend::relay`] does.
    /// Debug builds compare both each time.
    next_wake: Cell<Option<NextWake>>,
    /// [`History::pace`] at the last call of [`Backend::relay`].
    pace: Pace,
    /// [`History::load_stage`] at the last call of [`Backend::relay`].
    load_stage: u8,
    /// True if a load has ended since the last call of [`Backend::take_restored`].
    has_restored: bool,
    /// True if something has come that a client may wait for.
    has_progressed: bool,
}

/// What the parts of the backend want next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextWake {
    /// When one of them is to be told that time has passed.
    pub due: Mono,
    /// Which of them have a job to step.
    pub has_work: WorkSet,
    /// Responses that are read and not yet completely in the market.
    pub staged: usize,
}

impl Backend {
    /// How many keys its connections may have. All their indexes are below this number.
    pub fn capacity(config: &Config) -> usize {
        let of_cluster = config.cluster.as_ref().map_or(0, |_| MOST_CONNECTIONS);
        Sources::capacity(config) + of_cluster
    }

    /// The backend of the configuration.
    pub fn new(cx: &mut Context) -> Backend {
        cx.upstreams = Table::new(Backend::capacity(&cx.config));
        let mut sources = Sources::new(cx);
        let history = History::new(cx.now);
        Backend {
            pace: history.pace(),
            load_stage: history.load_stage(),
            has_restored: false,
            history,
            cluster: OptionalCluster(Cluster::new(&mut sources, cx)),
            sources,
            health: HealthLog::new(&cx.stats, &cx.market.quotes),
            next_wake: Cell::new(None),
            has_progressed: false,
        }
    }

    /// True if clients may have waited for what has come since the last call.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed)
    }

    /// True if a load of the history file has ended or failed, or is not waited for any more, since the last
    /// call. What clients wait for must then be fetched again: the file may hold more than was known.
    pub fn take_restored(&mut self) -> bool {
        std::mem::take(&mut self.has_restored)
    }

    /// True if some of these candles are being read or requested, or may be once the file is loaded.
    pub fn brings(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.history.is_reading(series, slots)
            || self.sources[series.source].is_asking(series, slots)
    }

    /// Takes in what happened to a connection.
    pub fn handle(&mut self, key: Key, event: Event<'_>, cx: &mut Context) {
        match (cx.upstreams.get(key).copied(), self.cluster.get_mut()) {
            (Some((SourceId::ENGINE, conn)), Some(cluster)) => {
                cluster.handle(conn, key, event, &mut self.sources, cx);
                self.watch(cx);
            }
            (Some(owner), _) if self.sources.handle(owner, key, event, &self.history, cx) => {
                self.has_progressed = true;
                self.watch(cx);
            }
            _ => {}
        }
        self.relay(cx);
    }

    /// Takes in what a look-up has found.
    pub fn resolved(&mut self, resolved: Resolved, cx: &mut Context) {
        match self.cluster.get_mut() {
            Some(cluster) if resolved.look_up.source == SourceId::ENGINE => {
                cluster.resolved(resolved, &mut self.sources, cx);
            }
            _ => {
                self.sources.resolved(resolved, &self.history, cx);
                self.has_progressed = true;
            }
        }
        self.watch(cx);
        self.relay(cx);
    }

    /// Takes in a configuration, and returns the former one. Calls `accepted` before anything changes. The
    /// error says why nothing has changed.
    pub fn reconfigure(
        &mut self,
        config: Config,
        fixed: Vec<&'static str>,
        accepted: impl FnOnce(),
        cx: &mut Context,
    ) -> Result<Config, String> {
        let old = self.sources.reload(config, fixed, accepted, &mut self.history, cx)?;
        if let Some(cluster) = self.cluster.get_mut() {
            cluster.reconfigure(&mut self.sources, cx);
        }
        self.has_progressed = true;
        self.relay(cx);
        self.watch(cx);
        Ok(old)
    }

    /// Keeps history in a file from now on. `opened` tells what came of opening it.
    pub fn keep_history(&mut self, opened: Reply, cx: &mut Context) {
        self.history.begin(opened, cx);
        self.relay(cx);
    }

    /// Takes in a message of the disk thread.
    pub fn stored(&mut self, reply: Reply, cx: &mut Context) {
        self.has_progressed |= self.history.handle(reply, cx);
        self.relay(cx);
    }

    /// Tells the cluster, the quotes, the sources and the history that time has passed, if one of them waits
    /// for that.
    #[inline]
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.next_wake.get().is_none_or(|it| it.due <= cx.now.mono) {
            self.keep_time(cx);
        }
    }

    #[inline(never)]
    fn keep_time(&mut self, cx: &mut Context) {
        let now = cx.now;
        // A lease that has run out is known before anything is requested.
        if let Some(cluster) = self.cluster.get_mut()
            && cluster.due() <= now.mono
        {
            cluster.handle_timeout(&mut self.sources, cx);
        }
        if cx.market.quotes.staleness_due().is_some_and(|at| at <= now.mono) {
            cx.market.quotes.update_staleness(now);
        }
        self.has_progressed |= self.sources.handle_timeout(&self.history, cx);
        if self.history.due().is_some_and(|at| at <= now.mono) {
            self.history.handle_timeout(cx);
        }
        self.relay(cx);
        self.watch(cx);
    }

    /// The next second has begun. If the machine slept or a clock was set, quotes are older than they seem,
    /// and the time of each exchange is unknown.
    #[cold]
    pub fn watch_clocks(&mut self, cx: &mut Context) {
        cx.state += 1;
        if cx.clock.is_none()
            && let Some(slept) = cx.check_clocks()
        {
            if let Some(cluster) = self.cluster.get_mut() {
                cluster.slept(slept, &mut self.sources, cx);
            }
            self.sources.clocks_moved(cx);
            self.changed(cx);
        }
    }

    /// The script of the demo exchange has changed what the demo exchange answers.
    pub fn demo_changed(&mut self, cx: &mut Context) {
        self.sources.demo_changed(cx);
        self.changed(cx);
    }

    /// Does one slice of this kind of work: steps a job of the sources or of the history, or applies some of
    /// what other nodes have told.
    pub fn step(&mut self, work: LongWork, cx: &mut Context) {
        match (work, self.cluster.get_mut()) {
            (LongWork::Sources, _) => {
                if self.sources.work(&mut self.history, cx) {
                    self.has_progressed = true;
                    self.watch(cx);
                }
            }
            (LongWork::History, _) => self.history.work(cx),
            (_, Some(cluster)) => cluster.work(&mut self.sources, &mut self.history, cx),
            (_, None) => {}
        }
        self.relay(cx);
    }

    /// Reads candles of a series from the file, and requests those that the file lacks. `None`: the source
    /// cannot follow the series. Otherwise: true if some may come, and what came of the read.
    pub fn fetch(
        &mut self,
        series: SeriesKey,
        slots: &Range<i64>,
        cx: &mut Context,
    ) -> Option<(bool, ReadStart)> {
        self.changed(cx);
        let source = &mut self.sources[series.source];
        if !source.follow(series, cx) {
            return None;
        }
        let read = self.history.read(series, slots, cx);
        let comes = match read {
            ReadStart::NotLoaded => true,
            // Both may be needed: some candles from the file, others from the exchange.
            _ => source.ask(series, slots, cx) || read == ReadStart::Begun,
        };
        Some((comes, read))
    }

    /// Bytes to be sent on a connection now, and whether bytes from it are welcome.
    #[inline]
    pub fn interest(&self, key: Key, cx: &Context) -> (&Output, bool) {
        match (cx.upstreams.get(key), self.cluster.get()) {
            (Some((SourceId::ENGINE, conn)), Some(cluster)) => cluster.engine.interest(*conn, key),
            (Some((source, conn)), _) => self.sources[*source].interest(*conn, key),
            (None, _) => (&EMPTY, false),
        }
    }

    /// The next wake-up. Every turn asks for it several times.
    #[inline(always)]
    pub fn next_wake(&self, cx: &Context) -> NextWake {
        let known = self.next_wake.get();
        debug_assert!(
            known.is_none_or(|it| it == self.compute_wake(cx)),
            "a change did not forget the next wake-up"
        );
        let next = known.unwrap_or_else(|| self.compute_wake(cx));
        self.next_wake.set(Some(next));
        next
    }

    fn compute_wake(&self, cx: &Context) -> NextWake {
        let Backend { sources, history, health, .. } = self;
        let (cluster, staged) = (self.cluster.get(), sources.staged());
        let is_reading = cluster.is_some_and(|it| it.has_work(staged));
        let all = [
            sources.due(),
            cx.market.quotes.staleness_due(),
            sources.failover.next_due(),
            health.next_due(),
            history.due(),
            cluster.map(Cluster::due),
        ];
        NextWake {
            due: all.into_iter().flatten().min().unwrap_or(Mono::NEVER),
            has_work: LongWork::Sources.if_any(sources.has_work())
                | LongWork::History.if_any(history.has_work())
                | LongWork::Cluster.if_any(is_reading),
            staged,
        }
    }

    /// Begins the shutdown. What is in flight is finished.
    pub fn shut_down(&mut self, cx: &mut Context) {
        self.watch(cx);
        if let Some(cluster) = self.cluster.get_mut() {
            cluster.shut_down(&mut self.sources, cx);
        }
        self.history.shut_down(cx);
        self.relay(cx);
    }

    /// Closes the history. Returns true once the history is closed and the other nodes know of the shutdown.
    pub fn close(&mut self, cx: &mut Context) -> bool {
        self.history.close(cx);
        self.changed(cx);
        self.history.is_closed() && self.cluster.get().is_none_or(Cluster::has_told_end)
    }

    /// Some of the parts have acted: tells each part what it must know of the others.
    fn relay(&mut self, cx: &mut Context) {
        let Backend { sources, history, .. } = self;
        let pace = std::mem::replace(&mut self.pace, history.pace());
        let load_stage = std::mem::replace(&mut self.load_stage, history.load_stage());
        let has_restored = self.load_stage < load_stage;
        // Sources may wait for room in the history, or for a load.
        if self.pace > pace || has_restored {
            sources.wake_up(cx.now);
        }
        self.has_restored |= has_restored;
        self.has_progressed |= has_restored;
        if history.take_progress() {
            sources.note_stored(cx.now);
        }
        if let Some(cluster) = self.cluster.get_mut() {
            cluster.relay(sources, history, cx);
        }
        self.changed(cx);
    }

    /// A part has acted: the cached wake-up and the kept responses are out of date.
    fn changed(&self, cx: &mut Context) {
        self.next_wake.set(None);
        cx.state += 1;
    }

    /// Updates which source serves each symbol, if that may have changed, and logs why the service is not ok.
    pub fn watch(&mut self, cx: &mut Context) {
        let Context { stats, market, now, .. } = cx;
        let has_logged = self.health.update(stats, &market.quotes, *now);
        stats.health_changes = self.health.changes();
        if has_logged || self.sources.watch_failover(cx) {
            self.changed(cx);
        }
    }
}
