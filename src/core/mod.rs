//! The core: it decides, and hands back the actions that the driver carries out.
//!
//! [`Core`] is the conductor. It owns the clients, the backend (the sources, the history, and the cluster if
//! there is one), and one `Context`: the configuration, the market, the figures, the actions and the time. It
//! hands each event to the part that owns it. The driver tells the core what happened and what time it is.
//! The core tells the driver what to do. So the whole of it runs in a test, in virtual time.
//!
//! Each part is lent the `Context` for each call. Clients call [`api`]. Sources hand what they read to the
//! history, and ask it whether they may request candles. The cluster gives each source its role, and the
//! entries that other nodes published. A response that needs candles leaves a wish in the `Context`. [`Core`]
//! passes the wish to the backend, which reads the candles from the file or has a source request them.
//!
//! The core never touches a socket, a file or a clock (only the metrics ask for the figures of the process,
//! by a function that the driver lends). What takes long is done in slices ([`Core::step`]); only a market
//! list is applied in a single slice, so that no response shows half of a list.

pub mod api;
mod backend;
mod clients;
mod cluster;
mod compressed_cache;
mod context;
mod event;
mod held;
mod history;
mod sources;
mod stats;
#[cfg(test)]
mod testing;
mod upstream;

pub use clients::{DEMO_CLIENTS, MOST_REFUSED};
pub use event::{Action, Broken, CloseReason, Event, LogFigures, LogStatus, LongWork};
pub use event::{LookUp, ProcessFacts, ReloadStatus, Resolved, SHARES, Service, WorkSet};
pub use stats::{SourceState, SourceStatus, Status};

use crate::config::{Config, SourceConfig};
use crate::demo::{Demo, DemoScript};
use crate::history::Reply;
use crate::http::Output;
use crate::market::{Market, SeriesKey};
use crate::run_queue::RunQueue;
use crate::table::Key;
use crate::time::{Mono, Now};
use backend::Backend;
use clients::Clients;
use context::{Context, Wish};
use history::ReadStart;
use std::net::IpAddr;
use std::ops::Range;

/// See the module's page.
pub struct Core {
    clients: Clients,
    backend: Backend,
    cx: Context,
    /// The time that the driver told last.
    told: Now,
    /// The driver notes how long each slice has taken, in microseconds.
    pub run_queue: RunQueue<{ SHARES.len() }>,
    /// The deadline of the shutdown.
    stop_at: Option<Mono>,
    clients_done: bool,
    finished: bool,
}

impl Core {
    /// A core that polls and serves what the configuration says. `boot` tells this run's versions
    /// from those of another, and seeds the jitter.
    ///
    /// # Panics
    /// If a source names a dialect that does not exist. A checked configuration has no such source.
    pub fn new(
        config: Config,
        demo: Option<Demo>,
        facts: fn() -> ProcessFacts,
        boot: u64,
        now: Now,
    ) -> Core {
        let market = Market::new(&config);
        let stats = Status::new(config.sources.iter().map(|source| &*source.id), now);
        let mut cx = Context::new(config, market, stats, now);
        (cx.boot, cx.facts) = (boot, facts);
        let first = Backend::capacity(&cx.config);
        let mut core = Core {
            clients: Clients::new(demo, first, &cx),
            backend: Backend::new(&mut cx),
            cx,
            told: Now::default(),
            run_queue: RunQueue::new(SHARES.map(|(_, share)| share)),
            stop_at: None,
            clients_done: false,
            finished: false,
        };
        core.handle_timeout(now);
        core
    }

    /// Accepts a client. The client counts for its address, if the address is known. `None`: the connection
    /// is closed at once, because even the places for a 503 are taken.
    pub fn accept(&mut self, peer: Option<IpAddr>, service: Service, now: Now) -> Option<Key> {
        self.set_time(now);
        self.clients.accept(peer, service, &mut self.cx)
    }

    /// Notes that the driver has closed the socket of a connection, after [`Action::Close`].
    pub fn closed(&mut self, key: Key) {
        self.cx.upstreams.remove(key);
        self.clients.closed(key, &mut self.cx);
        // The shutdown waits for the last client.
        self.check_end();
    }

    /// Takes in what happened to a connection. An event for a connection that is gone came late, and is
    /// ignored.
    pub fn handle(&mut self, key: Key, event: Event<'_>, now: Now) {
        self.set_time(now);
        if self.clients.may_own(key) {
            self.clients.handle(key, event, &mut self.cx);
            self.grant_wishes();
        } else {
            self.backend.handle(key, event, &mut self.cx);
            self.wake_clients();
        }
    }

    /// Takes in what a look-up has found: addresses, or why there are none.
    pub fn resolved(&mut self, resolved: Resolved, now: Now) {
        self.set_time(now);
        self.backend.resolved(resolved, &mut self.cx);
        self.wake_clients();
    }

    /// Applies a new configuration. Keys that need a restart keep their values. `fixed` names the changed
    /// ones, which are logged. Sources that stay lose nothing. Calls `accepted` before anything changes. The
    /// error says why nothing has changed.
    pub fn reconfigure(
        &mut self,
        config: Config,
        fixed: Vec<&'static str>,
        accepted: impl FnOnce(),
        now: Now,
    ) -> Result<(), String> {
        self.set_time(now);
        if self.cx.stats.stopping {
            return Err("marketd is stopping".to_string());
        }
        let old = self.backend.reconfigure(config, fixed, accepted, &mut self.cx)?;
        self.clients.reconfigure(&old.limits, &mut self.cx);
        self.wake_clients();
        Ok(())
    }

    /// The sources since the start. Those that have ended are among them.
    pub fn sources(&self) -> &[SourceConfig] {
        &self.cx.config.sources
    }

    /// A reload was refused.
    pub fn refuse_reload(&mut self, now: Now) {
        self.set_time(now);
        self.cx.stats.reloads.refuse(now.unix);
        self.backend.watch(&mut self.cx);
    }

    /// The demo exchange follows this script from now on. Everything that the script may have changed is
    /// requested at once.
    pub fn follow_script(&mut self, script: DemoScript, now: Now) {
        self.set_time(now);
        self.clients.follow_script(script, &mut self.cx);
        self.backend.demo_changed(&mut self.cx);
    }

    /// Keeps history in a file from now on. `opened` tells what came of opening it.
    pub fn keep_history(&mut self, opened: Reply, now: Now) {
        self.set_time(now);
        self.backend.keep_history(opened, &mut self.cx);
    }

    /// Takes in a message of the disk thread.
    pub fn stored(&mut self, reply: Reply, now: Now) {
        self.set_time(now);
        self.backend.stored(reply, &mut self.cx);
        self.wake_clients();
        self.check_end();
    }

    /// Tells that time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        self.set_time(now);
        let has_waited = self.clients.handle_timeout(&mut self.cx);
        self.backend.handle_timeout(&mut self.cx);
        if self.backend.take_progress() | has_waited {
            self.wake_all();
        }
        self.grant_wishes();
        self.check_end();
    }

    /// Tells whether the driver has yet to read what came during a pause of the process. Meanwhile no
    /// deadline of a peer, of the disk or of the shutdown is judged.
    pub fn set_behind(&mut self, is_behind: bool) {
        self.cx.is_behind = is_behind;
    }

    /// Whether the core has long work to do.
    pub fn has_work(&self) -> bool {
        self.next_work(0).is_some()
    }

    /// The kind of long work that is next. `of_driver`: what the driver itself has to do.
    pub fn next_work(&self, of_driver: WorkSet) -> Option<LongWork> {
        let of_backend = self.backend.next_wake(&self.cx).has_work;
        let has_work = of_driver | of_backend | self.clients.has_work(&self.cx);
        self.run_queue.next(has_work).map(|at| SHARES[at].0)
    }

    /// Does one slice of this kind of work. The driver looks at the clock between two.
    pub fn step(&mut self, work: LongWork, now: Now) {
        self.set_time(now);
        match work {
            LongWork::Sources | LongWork::History | LongWork::Cluster => {
                self.backend.step(work, &mut self.cx);
            }
            work => self.clients.work(work, &mut self.cx),
        }
        self.wake_clients();
        self.grant_wishes();
        self.check_end();
    }

    /// Does one slice of the next work, if there is any, and counts one unit of time for it.
    pub fn work(&mut self, now: Now) {
        if let Some(work) = self.next_work(0) {
            self.run_queue.note(work as usize, 1);
            self.step(work, now);
        }
    }

    /// The next thing that the driver is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.cx.actions.pop_front()
    }

    /// True if [`Core::poll_action`] has an action.
    pub fn has_actions(&self) -> bool {
        !self.cx.actions.is_empty()
    }

    /// When [`Core::handle_timeout`] is wanted next.
    pub fn poll_timeout(&self) -> Option<Mono> {
        // Once the clients are done, the deadline of the shutdown has no effect.
        let stop_at = self.stop_at.filter(|_| !self.clients_done).unwrap_or(Mono::NEVER);
        let next = self.backend.next_wake(&self.cx).due.min(self.cx.stats.log.due());
        let next = next.min(self.clients.due(&self.cx)).min(stop_at);
        (next != Mono::NEVER).then_some(next)
    }

    /// Both [`Core::outgoing`] and [`Core::wants_read`].
    #[inline]
    pub fn interest(&self, key: Key) -> (&Output, bool) {
        match self.clients.may_own(key) {
            true => self.clients.interest(key),
            false => self.backend.interest(key, &self.cx),
        }
    }

    /// Bytes to be sent on a connection now.
    pub fn outgoing(&self, key: Key) -> &Output {
        self.interest(key).0
    }

    /// Whether bytes from this connection are welcome now.
    pub fn wants_read(&self, key: Key) -> bool {
        self.interest(key).1
    }

    /// What all responses have cost so far. It only rises. It tells the driver when to look at the clock.
    pub fn spent(&self) -> u64 {
        self.clients.spent()
    }

    /// True once, after clients have held little memory for so long that giving it back pays.
    pub fn take_shrunk(&mut self) -> bool {
        std::mem::take(&mut self.clients.has_shrunk)
    }

    /// How many responses are deferred. Costs a look at every connection.
    pub fn deferred(&self) -> usize {
        self.clients.deferred()
    }

    /// The state of the service, in a line for people.
    pub fn status_line(&self) -> String {
        api::health::status_line(&self.cx.stats)
    }

    /// Counts the turn of the loop from `now` to `end`. `waiting`: how many clients, and how many connections
    /// to exchanges, wait for the next turn. `log`: what has become of the log's lines.
    pub fn note_turn(&mut self, end: Mono, waiting: (usize, usize), log: LogFigures, now: Now) {
        let took_us = end.0.saturating_sub(now.mono.0);
        let (staged, stats) = (self.backend.next_wake(&self.cx).staged, &mut self.cx.stats);
        stats.turns.note(took_us, now);
        ((stats.queues.clients, stats.queues.upstreams), stats.queues.staged) = (waiting, staged);
        self.clients.note_turn(took_us, &mut self.cx);
        if self.cx.stats.log.note(log, now.mono) {
            self.backend.watch(&mut self.cx);
        }
    }

    /// Begins the shutdown. Requests in flight are finished, and no new ones begin.
    pub fn shut_down(&mut self, now: Now) {
        self.set_time(now);
        if self.cx.stats.stopping {
            return;
        }
        self.cx.stats.stopping = true;
        self.stop_at = Some(now.mono + self.cx.config.limits.shutdown);
        self.backend.shut_down(&mut self.cx);
        self.clients.shut_down(&mut self.cx);
        self.check_end();
    }

    /// True once the shutdown is complete.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Ends the shutdown, if it has begun. Once the last client is gone or the deadline has passed, closes
    /// the history, and lets the cluster send what it has. The shutdown is complete when both are done.
    #[inline]
    fn check_end(&mut self) {
        if let Some(stop_at) = self.stop_at {
            let is_over = self.cx.now.mono >= stop_at && !self.cx.is_behind;
            self.clients_done |= self.cx.stats.http.open == 0 || is_over;
            self.finished = self.clients_done && self.backend.close(&mut self.cx);
        }
    }

    /// Has the backend fetch the candles of all wishes.
    #[inline]
    fn grant_wishes(&mut self) {
        while let Some(wish) = self.cx.wishes.pop_front() {
            self.grant(&wish);
        }
    }

    /// Has the backend fetch the candles of a wish. If no candle can come, the response stops waiting.
    #[inline(never)]
    fn grant(&mut self, wish: &Wish) {
        let mut comes = false;
        for (series, slots) in &wish.candles {
            let Some((is_coming, read)) = self.backend.fetch(*series, slots, &mut self.cx) else {
                continue;
            };
            comes |= is_coming;
            // One chart of several does not fail the others.
            let is_alone = || wish.candles.iter().all(|(other, _)| other == series);
            if read == ReadStart::Refused && is_alone() {
                return self.clients.refuse(wish.client, &mut self.cx);
            }
        }
        if !comes && wish.client.is_some() {
            self.clients.wake(wish.client, |_, _| false, &self.cx);
        }
    }

    /// Calls [`Core::wake_all`] if the backend has received something.
    #[inline]
    fn wake_clients(&mut self) {
        if self.backend.take_progress() {
            self.wake_all();
        }
    }

    /// Resumes each waiting response whose candles have come, will not come, or are late. A candle that
    /// nothing fetches will not come: so after a load of the history file, missing candles are fetched first.
    #[inline(never)]
    fn wake_all(&mut self) {
        if self.backend.take_restored() {
            self.clients.renew_wishes(&mut self.cx);
            self.grant_wishes();
        }
        let comes = |series: SeriesKey, slots: &Range<i64>| self.backend.brings(series, slots);
        self.clients.wake(None, comes, &self.cx);
    }

    /// Sets the time and the date of responses. Once a second, compares the clocks of the machine.
    #[inline]
    fn set_time(&mut self, now: Now) {
        // Most calls are of the same turn, and pass the same time.
        if now != self.told {
            (self.told, self.cx.now) = (now, context::shown(self.cx.clock, now));
            if self.clients.set_date(now.unix) {
                self.backend.watch_clocks(&mut self.cx);
            }
        }
    }
}
