//! The loop: runs turn after turn until the core has finished, and reads the configuration again at a signal.
//!
//! This file owns the order of the work within a turn, and how much of each kind a turn does. It limits how
//! many connections a turn accepts, and how much it does of the work that can wait: reading from exchanges,
//! the core's long work, replies of the disk thread.
//!
//! A configuration is read on the loop, once for each signal. It is a regular file of at most 16 MiB.

use super::connection::NetConnection;
use super::driver::{
    ACCEPT, CLIENT_BYTES, ConnectionQueues, Driver, LISTENERS, MOST_LISTENERS, SIGNALS,
    TURN_BUDGET, UPSTREAM_SLICE, WAKER, connection,
};
use super::listen::{BACKLOG, Listener, fails};
use super::script_file::ScriptFile;
use super::{listen, process};
use crate::config::{ConfigFault, DEMO, LoadedConfig};
use crate::core::{Event, LongWork};
use crate::log_targets::{CONFIG, NET, quoted};
use crate::table::Key;
use crate::time::{Mono, Now};
use mio::{Events, Token};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::signal_name;
use std::collections::VecDeque;
use std::io;
use std::mem::take;
use std::time::Duration;

/// Events that one call of the poller returns.
const EVENTS: usize = 128;

/// Time since the wake-up after which a turn accepts no more connections, so that a flood of new
/// connections leaves time for the open ones.
const ACCEPT_BUDGET: Duration = Duration::from_micros(200);

/// If a turn begins this much later than expected, the process was paused.
const PAUSE: Duration = Duration::from_millis(250);

/// How long after a pause the core waits with its judgement of deadlines, as long as something that has come
/// is yet to be read.
const CATCH_UP: Duration = Duration::from_secs(1);

/// The least time that each turn spends on work that can wait, however busy the clients are. The largest
/// slice takes about as long. So a turn with small slices does about as much of this work as a turn with one
/// large slice.
const MIN_LONG_WORK: Duration = Duration::from_micros(100);

impl Driver {
    /// Runs turns until the core has finished.
    pub(super) fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(EVENTS);
        let now = self.clock.now();
        if let Some(opened) = self.opened.take() {
            self.core.keep_history(opened, now);
        }
        self.carry_out(now);
        self.notifier.ready();
        while !self.core.is_finished() {
            self.turn(&mut events)?;
        }
        log::info!(target: NET, "stopped");
        Ok(())
    }

    fn turn(&mut self, events: &mut Events) -> Result<(), String> {
        let timeout = self.sleep();
        let late = timeout.map_or(Mono::NEVER, |it| self.turn_began + it + PAUSE);
        self.wait(events, timeout)?;
        let now = self.clock.now();
        self.turn_began = now.mono;
        // A second pause renews nothing, so that deadlines are judged at least once each `CATCH_UP`.
        if now.mono > late && self.catches_up_until.is_none() {
            self.catches_up_until = Some(now.mono + CATCH_UP);
            self.core.set_behind(true);
        }
        self.pace.begin_turn(self.core.spent());
        if let Some(file) = self.script.as_mut().filter(|file| file.due() <= now.mono)
            && let Some(script) = file.look(now.mono)
        {
            self.core.follow_script(script, now);
        }
        let mut count = 0;
        for event in &*events {
            self.dispatch(event, now);
            count += 1;
        }
        // A marketd that stops serves each client that has arrived, however long this takes: a request that
        // has arrived gets its response. Of each client, as much is read as in any turn.
        let stops = take(&mut self.is_stopping);
        let budget = if stops { Duration::MAX } else { TURN_BUDGET };
        self.accept(stops, now);
        self.serve_clients(|queues| &mut queues.hot, budget, now);
        self.serve_clients(|queues| &mut queues.bulk, budget, now);
        if stops {
            self.core.shut_down(now);
        }
        if let Some(until) = self.catches_up_until {
            // The poller has more events if it returned as many as it can.
            let has_more = count == EVENTS || self.has_clients() || self.next_work().is_some();
            if now.mono >= until || !has_more {
                self.catches_up_until = None;
                self.core.set_behind(false);
            }
        }
        self.core.handle_timeout(now);
        if self.core.has_actions() {
            self.carry_out(now);
        }
        self.has_more = self.long_work(now);
        if self.core.take_shrunk() {
            process::give_back();
        }
        self.turn_ended = self.clock.mono();
        let queues = &self.queues;
        let waiting = (queues.hot.len() + queues.bulk.len(), queues.upstream.len());
        self.core.note_turn(self.turn_ended, waiting, (self.log)(), now);
        self.notifier.turn(self.turn_ended, || self.core.status_line());
        Ok(())
    }

    /// Waits for events. A signal ends the wait, and so does a pause of the process. Then the poller is asked
    /// again, because it has not looked for events.
    fn wait(&mut self, events: &mut Events, mut timeout: Option<Duration>) -> Result<(), String> {
        loop {
            match self.poll.poll(events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    timeout = Some(Duration::ZERO);
                }
                polled => return polled.map_err(fails("wait for events")),
            }
        }
    }

    /// True if clients are waiting in a queue.
    fn has_clients(&self) -> bool {
        let ConnectionQueues { new, hot, bulk, .. } = &self.queues;
        !(new.is_empty() && hot.is_empty() && bulk.is_empty())
    }

    /// How long the poller may sleep in this turn.
    fn sleep(&self) -> Option<Duration> {
        let waiting = |l: &Listener| l.ready && l.resting.is_none();
        let busy = self.has_clients()
            || self.core.has_actions()
            || self.has_more
            || self.accepting && self.listeners.iter().any(waiting);
        if busy {
            return Some(Duration::ZERO);
        }
        let mut next = self.core.poll_timeout().unwrap_or(Mono::NEVER);
        if self.accepting {
            let rests = self.listeners.iter().filter_map(|l| l.resting);
            next = rests.fold(next, Mono::min);
        }
        let script = self.script.as_ref().map_or(Mono::NEVER, ScriptFile::due);
        next = next.min(self.notifier.due()).min(script);
        // Almost no time has passed since the end of the last turn.
        (next != Mono::NEVER).then(|| next.since(self.turn_ended))
    }

    fn dispatch(&mut self, event: &mio::event::Event, now: Now) {
        match event.token() {
            SIGNALS => {
                for signal in self.signals.pending() {
                    match signal {
                        SIGHUP => self.reload(now),
                        SIGTERM | SIGINT => {
                            self.notifier.stopping();
                            self.is_stopping = true;
                        }
                        // Log rotation may send SIGUSR1 or SIGUSR2, which must not stop the service.
                        _ => {
                            let name = signal_name(signal).unwrap_or("unknown");
                            log::warn!(target: NET, "signal ignored name={name}");
                        }
                    }
                }
            }
            WAKER => {
                while let Some(resolved) = self.resolver.result() {
                    self.core.resolved(resolved, now);
                }
                self.disk_thread.ready = true;
            }
            Token(token) if token > LISTENERS - MOST_LISTENERS => {
                if let Some(listener) = self.listeners.get_mut(LISTENERS - token) {
                    listener.ready = true;
                    self.accepting = true;
                }
            }
            Token(token) => {
                let key = Key::from_token(token);
                if let Some(conn) = connection(&mut self.connections, key) {
                    conn.socket.wake(event);
                    self.queues.push(key, conn);
                }
            }
        }
    }

    /// Serves the clients of a queue in order, at least one, until the turn has taken `budget`. The others
    /// stay in the queue.
    fn serve_clients(
        &mut self,
        queue: fn(&mut ConnectionQueues) -> &mut VecDeque<Key>,
        budget: Duration,
        now: Now,
    ) {
        for _ in 0..queue(&mut self.queues).len() {
            if let Some(key) = queue(&mut self.queues).pop_front() {
                self.pump(key, CLIENT_BYTES, now);
            }
            if self.has_taken(budget, now) {
                break;
            }
        }
    }

    /// Accepts a bounded number of connections, for a bounded time. Then serves each new connection before
    /// registering it with the poller, so that a connection that closes after a single request is mostly
    /// never registered. Reading comes after all accepts, so that the requests have time to arrive.
    ///
    /// A marketd that stops accepts what the kernel has queued, however long this takes, and closes the
    /// listeners: the kernel would reset these connections.
    fn accept(&mut self, stops: bool, now: Now) {
        if stops {
            self.listeners.iter_mut().for_each(|listener| listener.ready = true);
        } else if !self.accepting && self.queues.new.is_empty() {
            return;
        }
        // Each listener gets the same share, so that a flood at one keeps nobody out of another. Once the
        // time is used up, each further listener gets one connection.
        let (share, budget) = match stops {
            true => (BACKLOG as usize + 1, Duration::MAX),
            false => (self.accepts.saturating_sub(self.queues.new.len()), ACCEPT_BUDGET),
        };
        for at in 0..self.listeners.len() {
            let mut left = share;
            while left > 0 && self.listeners[at].is_due(now.mono) {
                left -= 1;
                self.pace.add(ACCEPT);
                let service = self.listeners[at].service;
                let accepted = self.listeners[at].accept(now.mono);
                // If the core cannot even send a refusal, the connection is closed at once.
                if let Some((stream, peer)) = accepted
                    && let Some(key) = self.core.accept(peer, service, now)
                {
                    self.add(key, NetConnection::open(stream, key));
                    self.queues.new.push_back(key);
                }
                if self.has_taken(budget, now) {
                    break;
                }
            }
        }
        if stops {
            self.listeners.clear();
        }
        let has_more = |l: &Listener| l.ready || l.resting.is_some();
        self.accepting = self.listeners.iter().any(has_more);
        while let Some(key) = self.queues.new.pop_front() {
            self.pump(key, CLIENT_BYTES, now);
            self.carry_out(now);
            self.register(key, now);
            if self.has_taken(budget, now) {
                return;
            }
        }
    }

    /// Registers a connection that is still open after its first turn.
    fn register(&mut self, key: Key, now: Now) {
        let registry = self.poll.registry();
        if let Some(conn) = connection(&mut self.connections, key)
            && let Err(error) = conn.socket.register(registry, key.token())
        {
            self.core.handle(key, Event::Failed(&error.into()), now);
            self.carry_out(now);
        }
    }

    /// The next kind of work that can wait.
    fn next_work(&self) -> Option<LongWork> {
        let reads = LongWork::Exchanges.if_any(!self.queues.upstream.is_empty());
        self.core.next_work(reads | LongWork::Stored.if_any(self.disk_thread.ready))
    }

    /// Does slice after slice until the turn's budget is used up. Returns true if more is left.
    fn long_work(&mut self, now: Now) -> bool {
        let Some(mut work) = self.next_work() else {
            return false;
        };
        // Each turn does some of this work, so that clients cannot starve the exchanges.
        let mut before = self.clock.mono();
        let least = before + MIN_LONG_WORK;
        loop {
            match work {
                LongWork::Exchanges => {
                    if let Some(key) = self.queues.upstream.pop_front() {
                        self.pump(key, UPSTREAM_SLICE, now);
                    }
                }
                LongWork::Stored => {
                    if let Some(reply) = self.disk_thread.next_reply() {
                        self.core.stored(reply, now);
                    }
                }
                work => self.core.step(work, now),
            }
            // A response is sent as soon as it is made, even late in a turn, because it takes memory until
            // then.
            self.carry_out(now);
            let time = self.clock.mono();
            self.core.run_queue.note(work as usize, time.0.saturating_sub(before.0));
            before = time;
            self.pace.took = time.since(now.mono);
            match self.next_work() {
                Some(_) if self.pace.took >= TURN_BUDGET && time >= least => return true,
                Some(next) => work = next,
                None => return false,
            }
        }
    }

    /// Reloads the configuration. A configuration with a fault changes nothing.
    fn reload(&mut self, now: Now) {
        self.notifier.reloading();
        let faults: Vec<String> = match (self.reread)(self.core.sources()) {
            Ok(loaded) => self.reconfigure(loaded, now).err().into_iter().collect(),
            Err(faults) => faults.iter().map(ConfigFault::to_string).collect(),
        };
        for fault in &faults {
            log::error!(target: CONFIG, "not reloaded error={}", quoted(fault));
        }
        if !faults.is_empty() {
            self.core.refuse_reload(now);
        }
        self.notifier.ready();
    }

    fn reconfigure(&mut self, loaded: LoadedConfig, now: Now) -> Result<(), String> {
        let fixed = self.loaded.fixed_changes(&loaded.config);
        let mut config = loaded.config.clone();
        config.keep_fixed(&self.loaded);
        let mut next = config.clone();
        // A marketd that stops has no listeners any more: the core refuses whatever comes.
        if !self.listeners.is_empty() && next.sources.iter().any(|it| it.dialect == DEMO) {
            // The demo exchange listens from the start or not at all.
            let url = self.listeners.iter().find_map(|it| it.demo_url());
            let url = url.ok_or("sources: the demo exchange runs from the start or not at all")?;
            listen::place_demo(&mut next, &url);
        }
        let accepts = next.limits.accepts_per_turn;
        let taken = self.taken;
        self.core.reconfigure(next, fixed, || taken(&loaded), now)?;
        self.listeners.iter().for_each(|it| it.limit_unacknowledged(&config));
        (self.accepts, self.loaded) = (accepts, config);
        Ok(())
    }
}
