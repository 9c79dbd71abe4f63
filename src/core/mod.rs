//! The core: everything that is decided, and nothing that is done.
//!
//! [`Core`] is the conductor. It owns the clients, the sources, the history, the cluster if there is one,
//! and one `Context`: the configuration, the market, the figures, the actions and the time. It hands each
//! event to the part that owns it. It is told what happened and what time it is ([`Core::handle`],
//! [`Core::handle_timeout`]), and tells what is to be done ([`Core::poll_action`], [`Core::outgoing`],
//! [`Core::poll_timeout`]). So the whole of it runs in a test, in virtual time.
//!
//! Each part is lent the `Context` for the length of a call. Clients call [`api`], sources hand what they
//! read to the history, and the cluster gives sources their roles and entries of other nodes. No other part
//! calls another: what a client needs of a source or of the history is a wish, which the conductor grants.
//!
//! It never touches a socket, a file or a clock, and no call takes long: what takes long is done
//! in slices by [`Core::work`], one a call.

pub mod api;
mod clients;
mod cluster;
mod context;
mod event;
mod history;
mod next_wake;
mod sources;
mod stats;

pub use crate::durations::Endpoint;
pub use clients::{DEMO_CLIENTS, LOBBY};
pub use event::{Action, Broken, Census, CloseReason, Event, ProcessFacts, Service};
pub use stats::{SourceState, SourceStatus, Status};

use crate::config::Config;
use crate::demo::Demo;
use crate::history::Reply;
use crate::http::Outgoing;
use crate::market::{Market, SeriesKey, SourceId};
use crate::table::Key;
use crate::time::{Mono, Now};
use api::health_log::HealthLog;
use clients::{Clients, Wish};
use cluster::{Cluster, OptionalCluster};
use context::Context;
use history::{History, ReadStart};
use next_wake::{CachedWake, NextWake};
use sources::Reload;
use sources::Sources;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// See the module's page.
pub struct Core {
    clients: Clients,
    sources: Sources,
    history: History,
    cluster: OptionalCluster,
    health: HealthLog,
    cx: Context,
    /// Whoever lets the sources, the quotes, the health log or the history act must call
    /// `next_wake.forget()`.
    next_wake: CachedWake,
    /// The kind of long work that is next.
    next_slice: usize,
    /// The most sources that there may be, those that have ended included.
    most_sources: usize,
    /// A configuration that waits to be taken in.
    reload: Option<Box<Reload>>,
    /// When the end comes in any case.
    stop_at: Option<Mono>,
    clients_done: bool,
    finished: bool,
}

impl Core {
    /// A core that polls and serves what the configuration says. `boot` tells this run's versions
    /// from those of another, and seeds the jitter.
    ///
    /// # Panics
    /// When a source names a dialect that does not exist: the configuration has been checked.
    pub fn new(
        config: Config,
        demo: Option<Demo>,
        facts: fn() -> ProcessFacts,
        boot: u64,
        now: Now,
    ) -> Core {
        let mut market = Market::new(&config);
        for at in 0..config.sources.len() {
            market.charts.doubt_clock(SourceId(at as u16), true);
        }
        let stats = Status::new(config.sources.iter().map(|source| &*source.id), now);
        let first = Sources::capacity(&config);
        let engine = first + Cluster::capacity(&config);
        let most_sources = Sources::most(&config);
        let mut core = Core {
            clients: Clients::new(&config, demo, facts, boot, (engine, now.mono)),
            sources: Sources::new(&config, boot, now),
            history: History::new(now),
            cluster: OptionalCluster::default(),
            health: HealthLog::new(&stats, &market.quotes),
            cx: Context::new(config, market, stats, now),
            next_wake: CachedWake::default(),
            next_slice: 0,
            most_sources,
            reload: None,
            stop_at: None,
            clients_done: false,
            finished: false,
        };
        core.clients.set_date(now.unix);
        core.cluster = OptionalCluster::new(boot, first, &mut core.sources, &mut core.cx);
        core.handle_timeout(now);
        core
    }

    /// Takes in a client that counts for no address. `None`: there is no room even to refuse it.
    pub fn accept(&mut self, service: Service, now: Now) -> Option<Key> {
        self.set_time(now);
        self.clients.accept(None, service, &mut self.cx)
    }

    /// The same for a client that counts for its address, where that has a cap.
    pub fn accept_from(&mut self, peer: IpAddr, service: Service, now: Now) -> Option<Key> {
        self.set_time(now);
        self.clients.accept(Some(peer), service, &mut self.cx)
    }

    /// Tells that the socket of a connection has been let go: the answer to [`Action::Close`].
    pub fn closed(&mut self, key: Key) {
        self.sources.closed(key);
        if let Some(cluster) = self.cluster.get_mut() {
            cluster.closed(key);
        }
        self.clients.closed(key, &mut self.cx);
        // Nobody is left to wait for: the end need not wait for the next deadline.
        self.clients_done |= self.stop_at.is_some() && self.cx.stats.http.open == 0;
        self.end();
    }

    /// Tells what happened to a connection. A key that is gone is no fault: the event was late.
    pub fn handle(&mut self, key: Key, event: Event<'_>, now: Now) {
        self.set_time(now);
        if self.clients.may_own(key) {
            self.clients.handle(key, event, &mut self.cx);
            self.grant_wishes();
        } else if self.cluster.get().is_some_and(|it| it.may_own(key)) {
            self.tell_cluster(|cluster, sources, cx| cluster.handle(key, event, sources, cx));
        } else {
            let (sources, history, cx) = self.split();
            if sources.handle(key, event, history, cx) {
                self.wake_clients();
            }
            self.relay();
        }
    }

    /// Takes in the addresses of a source's name, or why there are none.
    pub fn resolved(
        &mut self,
        source: SourceId,
        addresses: Result<Vec<SocketAddr>, String>,
        now: Now,
    ) {
        self.set_time(now);
        if source == SourceId::ENGINE {
            return self.tell_cluster(|cluster, _, cx| cluster.resolved(addresses, cx));
        }
        let (sources, history, cx) = self.split();
        sources.resolved(source, addresses, history, cx);
        self.wake_clients();
    }

    /// Takes in another configuration, as soon as no market list is being applied: some turns later. What
    /// holds until the end stays as it is; the keys of `fixed` are told in the log. Quotes, candles,
    /// connections, budgets and back-off of sources that stay go on. The error says why nothing is changed.
    pub fn reconfigure(
        &mut self,
        config: Config,
        fixed: Vec<&'static str>,
        now: Now,
    ) -> Result<(), String> {
        self.set_time(now);
        if self.cx.stats.stopping {
            return Err("the end has begun".to_string());
        }
        let reload = Reload::new(config, self.most_sources, &self.cx)?;
        self.reload = Some(Box::new(reload.with_fixed(fixed)));
        self.take_reload();
        Ok(())
    }

    /// True while a configuration waits to be taken in.
    pub fn is_reloading(&self) -> bool {
        self.reload.is_some()
    }

    #[cold]
    fn take_reload(&mut self) {
        // A list that was chosen by the former settings is not mixed with others.
        if self.cx.market.catalog.is_refreshing() || self.sources.has_new_list() {
            return;
        }
        if let Some(reload) = self.reload.take() {
            self.next_wake.forget();
            let (sources, history, cx) = self.split();
            let old = reload.apply(sources, history, cx);
            self.clients.reconfigure(&old.limits, &self.cx.config);
            self.tell_cluster(Cluster::reconfigure);
            self.wake_clients();
            self.watch();
        }
    }

    /// Keeps history in a file from now on. `opened` tells what came of opening it.
    pub fn keep_history(&mut self, opened: Reply, now: Now) {
        self.set_time(now);
        let (_, history, cx) = self.split();
        if history::HAS_FILES {
            history.begin(opened, cx);
        }
    }

    /// Takes in a message of the disk thread.
    pub fn stored(&mut self, reply: Reply, now: Now) {
        self.set_time(now);
        if history::HAS_FILES && self.tell_history(|history, cx| history.handle(reply, cx)) {
            self.wake_clients();
        }
        self.relay();
        self.check_end();
    }

    /// Tells that time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        self.set_time(now);
        self.clients.handle_timeout(&mut self.cx);
        if !self.next_wake.is_after(now.mono) {
            self.keep_time();
        }
        if self.clients.has_waited_enough(now.mono) {
            self.wake_clients();
        }
        self.grant_wishes();
        self.check_end();
    }

    /// Tells the sources, quotes, failover and the history that time has passed.
    fn keep_time(&mut self) {
        let now = self.cx.now;
        // A lease that has run out is known before anything is requested.
        if self.cluster_due().is_some_and(|at| at <= now.mono) {
            self.tell_cluster(Cluster::handle_timeout);
        }
        let flip = self.cx.market.quotes.next_flip();
        if flip.is_some_and(|at| at <= now.mono) {
            self.cx.market.quotes.flip(now);
        }
        let (sources, history, cx) = self.split();
        if sources.handle_timeout(history, cx) {
            self.wake_clients();
        }
        self.relay();
        if self.history.due().is_some_and(|at| at <= now.mono) {
            self.tell_history(History::handle_timeout);
        }
        self.watch();
        self.next_wake.forget();
    }

    /// Whether [`Core::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.clients.has_work(&self.cx) || self.is_reloading() || self.next_wake().has_work
    }

    /// The kinds of long work. Each does one slice, or returns false if it has nothing to do.
    const SLICES: [fn(&mut Core) -> bool; 4] = [
        |core| core.clients.work(&mut core.cx),
        Core::step_sources,
        Core::step_history,
        Core::step_cluster,
    ];

    /// Does one slice of long work: of the clients, the sources or the history, each in turn. One slice a
    /// call, so that the driver can look at the clock between two.
    pub fn work(&mut self, now: Now) {
        self.set_time(now);
        if self.is_reloading() {
            self.take_reload();
        }
        for _ in Core::SLICES {
            let slice = Core::SLICES[self.next_slice];
            self.next_slice = (self.next_slice + 1) % Core::SLICES.len();
            if slice(self) {
                break;
            }
        }
        self.grant_wishes();
    }

    fn step_sources(&mut self) -> bool {
        if !self.sources.has_work() {
            return false;
        }
        let (sources, history, cx) = self.split();
        if sources.work(history, cx) {
            self.wake_clients();
            self.watch();
        }
        self.relay();
        true
    }

    fn step_history(&mut self) -> bool {
        let has_work = self.history.has_work();
        if history::HAS_FILES && has_work {
            self.tell_history(History::work);
        }
        has_work
    }

    fn step_cluster(&mut self) -> bool {
        let staged = self.sources.staged();
        let Some(cluster) = self.cluster.get_mut().filter(|it| it.has_work(staged)) else {
            return false;
        };
        self.next_wake.forget();
        cluster.work(&mut self.sources, &mut self.history, &mut self.cx);
        self.relay();
        true
    }

    /// The next thing that the driver is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.cx.actions.pop_front()
    }

    /// Whether [`Core::poll_action`] has one.
    pub fn has_actions(&self) -> bool {
        !self.cx.actions.is_empty()
    }

    /// When [`Core::handle_timeout`] is wanted next.
    pub fn poll_timeout(&self) -> Option<Mono> {
        let mut next = self.next_wake().due.min(self.clients.due());
        // Once the clients have had their time, only the history is waited for.
        if !self.clients_done {
            next = next.min(self.stop_at.unwrap_or(Mono::NEVER));
        }
        (next != Mono::NEVER).then_some(next)
    }

    /// Both [`Core::outgoing`] and [`Core::wants_read`].
    #[inline]
    pub fn interest(&self, key: Key) -> (Outgoing<'_>, bool) {
        match self.clients.may_own(key) {
            true => self.clients.interest(key),
            false => match self.cluster.get().filter(|it| it.may_own(key)) {
                Some(cluster) => (cluster.outgoing(key).into(), cluster.wants_read(key)),
                None => (self.sources.outgoing(key), self.sources.wants_read(key)),
            },
        }
    }

    /// Bytes to be sent on a connection now.
    #[inline]
    pub fn outgoing(&self, key: Key) -> Outgoing<'_> {
        self.interest(key).0
    }

    /// Whether bytes from this connection are welcome now.
    #[inline]
    pub fn wants_read(&self, key: Key) -> bool {
        self.interest(key).1
    }

    /// What all responses have cost so far: it only rises, and tells the driver when to look at the
    /// clock.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.clients.spent()
    }

    /// Whether clients have held so much less than they did for so long that memory is worth giving back.
    pub fn has_shrunk(&mut self) -> bool {
        self.clients.has_shrunk(&self.cx)
    }

    /// Counts what there is. Costs a look at every connection.
    pub fn census(&self) -> Census {
        Census {
            upstreams: self.sources.connections()
                + self.cluster.get().map_or(0, |it| it.connections()),
            ..self.clients.census()
        }
    }

    /// How the service does, in a line for people.
    pub fn status_line(&self) -> String {
        api::status_line(&self.cx.stats)
    }

    /// Counts the turn of the loop from `now` to `end`, after which so many clients and connections to
    /// exchanges wait for the next one.
    pub fn note_turn(&mut self, end: Mono, waiting: (usize, usize), now: Now) {
        let took_us = end.0.saturating_sub(now.mono.0);
        let staged = self.next_wake().staged;
        let stats = &mut self.cx.stats;
        stats.turns.note(took_us, now);
        (stats.queues.clients, stats.queues.upstreams) = waiting;
        stats.queues.staged = staged;
        self.clients.note_turn(took_us, stats);
    }

    /// Begins the end: no new requests, what is in flight is finished.
    pub fn shut_down(&mut self, now: Now) {
        self.set_time(now);
        if self.cx.stats.stopping {
            return;
        }
        self.cx.stats.stopping = true;
        self.reload = None;
        self.watch();
        self.stop_at = Some(now.mono + self.cx.config.limits.shutdown);
        self.tell_cluster(Cluster::shut_down);
        let (_, history, cx) = self.split();
        history.shut_down(cx);
        self.clients.shut_down(&mut self.cx);
        self.check_end();
    }

    /// Whether all is over.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Over when it was asked for, the last client is gone, or has had its time, and the history
    /// is closed.
    fn check_end(&mut self) {
        if let Some(stop_at) = self.stop_at {
            self.clients_done |= self.cx.stats.http.open == 0 || self.cx.now.mono >= stop_at;
            self.end();
        }
    }

    /// The clients are done: closes the history, and finishes when that is closed.
    fn end(&mut self) {
        if self.clients_done {
            let (_, history, cx) = self.split();
            history.close(cx);
            let cluster = self.cluster.get();
            let is_told = cluster.is_none_or(|it| it.has_said_farewell(self.cx.now.mono));
            self.finished = self.history.is_closed() && is_told;
        }
    }

    /// Lets the cluster act, if there is one, and tells the other nodes what comes of it.
    fn tell_cluster(&mut self, act: impl FnOnce(&mut Cluster, &mut Sources, &mut Context)) {
        if let Some(cluster) = self.cluster.get_mut() {
            self.next_wake.forget();
            act(cluster, &mut self.sources, &mut self.cx);
            self.relay();
            self.watch();
        }
    }

    /// Tells the other nodes of the cluster what the sources have for them.
    #[inline]
    fn relay(&mut self) {
        if let Some(cluster) = self.cluster.get_mut() {
            self.next_wake.forget();
            cluster.relay(&mut self.sources, &self.history, &mut self.cx);
        }
    }

    fn cluster_due(&self) -> Option<Mono> {
        self.cluster.get()?.due()
    }

    /// The sources and the history, which are about to act, and what they work on.
    fn split(&mut self) -> (&mut Sources, &mut History, &mut Context) {
        self.next_wake.forget();
        (&mut self.sources, &mut self.history, &mut self.cx)
    }

    /// Lets the history act. Sources may wait for what it has received, or for room in it.
    fn tell_history<R>(&mut self, act: impl FnOnce(&mut History, &mut Context) -> R) -> R {
        let (sources, history, cx) = self.split();
        let (pace, was_recalling) = (history.pace(), history.is_recalling());
        let told = act(history, cx);
        if history.pace() > pace || was_recalling && !history.is_recalling() {
            sources.wake_up(cx.now);
        }
        if history.has_news() {
            sources.note_stored(cx.now);
        }
        told
    }

    /// Has the candles brought that clients wait for.
    #[inline(always)]
    fn grant_wishes(&mut self) {
        if self.clients.has_wishes() {
            self.grant_all();
        }
    }

    #[inline(never)]
    fn grant_all(&mut self) {
        while let Some(wish) = self.clients.next_wish() {
            self.grant(&wish);
        }
    }

    /// Has candles read from the file, or requested.
    fn grant(&mut self, wish: &Wish) {
        let mut comes = false;
        for (series, slots) in &wish.candles {
            let (sources, history, cx) = self.split();
            if !sources.follow(*series, cx) {
                continue;
            }
            let read = history.read(*series, slots, cx);
            comes |= sources.ask(*series, slots, cx) || read == ReadStart::Begun;
            // One chart of several does not fail the others.
            if read == ReadStart::Refused && wish.candles.len() == 1 {
                return self.clients.refuse(wish.client, &mut self.cx);
            }
        }
        if !comes {
            self.clients.go_without(wish.client);
        }
    }

    /// Lets the clients look again whose candles may have come.
    fn wake_clients(&mut self) {
        let (sources, history) = (&self.sources, &self.history);
        let comes = |series: SeriesKey, slots: &Range<i64>| {
            history.is_reading(series, slots) || sources.is_asking(series, slots)
        };
        self.clients.wake(comes, &self.cx);
    }

    /// Looks from which source each symbol is served, if that may have changed, and logs why the service
    /// is not ok.
    fn watch(&mut self) {
        let Context {
            stats, market, now, ..
        } = &mut self.cx;
        let has_logged = self.health.update(stats, &market.quotes, *now);
        stats.health_changes = self.health.changes();
        if has_logged || self.sources.watch_failover(&mut self.cx) {
            self.next_wake.forget();
        }
    }

    /// Keeps the time, sets the date of responses, and compares the machine's clocks once a second: no
    /// smaller move of one against the other matters.
    #[inline]
    fn set_time(&mut self, now: Now) {
        // Most calls are of a turn that has called before.
        if now != self.cx.now {
            self.cx.now = now;
            if self.clients.set_date(now.unix) {
                self.watch_clocks();
            }
        }
    }

    /// If the machine slept or a clock was set, nothing is as new as it looks, and the exchanges' time is
    /// not known.
    #[cold]
    fn watch_clocks(&mut self) {
        if self.cx.clocks_moved() {
            let (sources, _, cx) = self.split();
            sources.clocks_moved(cx);
        }
    }

    /// The next wake-up. Every turn asks for it several times, and most turns change none of it.
    #[inline]
    fn next_wake(&self) -> NextWake {
        let (sources, history, health, cx) = (&self.sources, &self.history, &self.health, &self.cx);
        self.next_wake
            .get(|| NextWake::of(sources, history, health, self.cluster.get(), cx))
    }
}
