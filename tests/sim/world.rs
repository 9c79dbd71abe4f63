//! One run: a daemon's core in a made-up world, in virtual time, all from one seed.
//!
//! Owns the clocks, the sockets, the clients, the exchanges, and what is yet to happen. It goes
//! from one event to the next: what is due happens, then the driver makes one turn
//! ([`super::driver`]), and now and then everything is looked at ([`super::watch`]).
//!
//! Nothing here reads a clock or a socket, and nothing depends on anything but the seed.

use super::answers::{Allowance, Told};
use super::client::Client;
use super::disk::Disk;
use super::exchange::{Exchange, Step};
use super::grammar::Grammar;
use super::ledger::{Ledger, Moment, Offsets};
use super::reload::Reload;
use super::trace::{Trace, Verdict, seconds, us};
use super::truth::Truth;
use super::watch::Schedule;
use super::weather::{SECOND, Weather};
use super::wire::{Link, Peer};
use crate::support::Rng;
use marketd::config::{Config, Limits};
use marketd::core::{Core, LookUp, Resolved};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

/// What is yet to happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client acts.
    Client(usize),
    /// An attempt to connect ends so.
    Settle(Key, Result<(), ErrorKind>),
    /// An exchange does this to a connection.
    Exchange(usize, usize, Step),
    /// There is room again on a connection to an exchange.
    Drained(Key),
    /// A look-up of a source's name ends.
    Resolved(usize),
    /// The disk has done a job.
    Disk,
    /// Everything is looked at.
    Look,
    /// Somebody sets this machine's clock, by so many milliseconds.
    SetClock(i64),
    /// This machine sleeps for so many milliseconds: its monotonic clock stands. Whether its
    /// connections survive that.
    Sleep(i64, bool),
    /// An exchange's clock jumps by so many milliseconds.
    Jump(usize, i64),
    /// The configuration is read again. Whether that is the last time.
    Reload(bool),
    /// Somebody takes a list in pieces.
    Browse,
}

pub struct World {
    pub rng: Rng,
    /// Microseconds since the begin.
    pub now: u64,
    /// The wall clock at the begin.
    pub unix_ms: i64,
    pub core: Core,
    pub config: Config,
    pub links: BTreeMap<Key, Link>,
    /// Clients that have more to move, and exchanges.
    pub hot: VecDeque<Key>,
    pub upstream: VecDeque<Key>,
    /// Clients that have connected and were not accepted yet.
    pub backlog: VecDeque<usize>,
    /// By time, and in the order of planning.
    agenda: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    pub clients: Vec<Client>,
    pub exchanges: Vec<Exchange>,
    pub ledgers: Vec<Ledger>,
    pub schedules: Vec<Schedule>,
    /// Whether a look-up is under way.
    pub resolving: Vec<Vec<LookUp>>,
    /// Where history is kept, if it is.
    pub disk: Option<Disk>,
    pub grammar: Grammar,
    pub symbols: Vec<String>,
    /// Connections of clients that asked once and are let go.
    pub strangers: HashSet<Key>,
    /// Clients whose bytes the core has dropped: it must let them go at once.
    pub taken_back: HashMap<Key, usize>,
    /// What clients have been told, in this life and before.
    pub told: Told,
    /// When clients last left more than half of what they may unread.
    pub crowded_at: Option<u64>,
    /// When a client last came though there was no room.
    pub full_at: Option<u64>,
    /// Where requests are limited: what each address has left.
    pub allowances: HashMap<IpAddr, Allowance>,
    /// Longest that a turn of the driver may last.
    pub stall: u64,
    pub trace: Trace,
    pub buffer: Vec<u8>,
    pub stopped_at: Option<u64>,
    /// Whether some event is to wake the daemon up.
    pub woken: bool,
    /// Turns since something last happened, and turns at this very moment.
    pub idle_turns: (u64, u32),
    pub repeated_turns: u32,
    /// All turns.
    pub turns: u64,
    pub answers: usize,
    /// Things that have happened.
    pub happened: u64,
    /// Whether no clock moves any more.
    pub is_calm: bool,
    /// Whether one of the machine's clocks was set or stood still since the last turn.
    pub clock_moved: bool,
    /// What reloads have made of the sources.
    pub reload: Reload,
    /// All limits that have held since the begin.
    pub past_limits: Vec<Limits>,
    /// When the limit on requests was last changed.
    pub rates_since: u64,
}

impl World {
    pub fn new(rng: Rng, core: Core, config: Config, unix_ms: i64, grammar: Grammar) -> World {
        World {
            rng,
            now: 0,
            unix_ms,
            core,
            config,
            links: BTreeMap::new(),
            hot: VecDeque::new(),
            upstream: VecDeque::new(),
            backlog: VecDeque::new(),
            agenda: BTreeMap::new(),
            scheduled: 0,
            clients: Vec::new(),
            exchanges: Vec::new(),
            ledgers: Vec::new(),
            schedules: Vec::new(),
            resolving: Vec::new(),
            disk: None,
            symbols: grammar.symbols.clone(),
            grammar,
            strangers: HashSet::new(),
            told: Told::default(),
            taken_back: HashMap::new(),
            crowded_at: None,
            full_at: None,
            allowances: HashMap::new(),
            stall: 0,
            trace: Trace::new(),
            buffer: Vec::new(),
            stopped_at: None,
            woken: false,
            idle_turns: (0, 0),
            repeated_turns: 0,
            turns: 0,
            answers: 0,
            happened: 0,
            is_calm: false,
            clock_moved: false,
            reload: Reload::default(),
            past_limits: Vec::new(),
            rates_since: 0,
        }
    }

    /// The clocks, as the daemon reads them.
    pub fn clocks(&self) -> Now {
        Now { mono: Mono(self.now), unix: UnixMs(self.unix_ms + (self.now / 1000) as i64) }
    }

    /// The same as plain numbers.
    pub fn moment(&self) -> Moment {
        Moment { us: self.now, unix_ms: self.clocks().unix.0 }
    }

    /// What really happened at an exchange.
    pub fn truth(&self, source: usize) -> &Truth {
        &self.exchanges[source].truth
    }

    /// How much the daemon may be wrong about the exchange's clock.
    pub fn offsets(&self, source: usize) -> Offsets {
        let calm_since = self.schedules[source].trouble;
        self.ledgers[source].offsets(self.truth(source), self.moment(), calm_since)
    }

    /// Plans an event, after so long.
    pub fn after(&mut self, wait: u64, event: Event) {
        self.scheduled += 1;
        self.agenda.insert((self.now + wait, self.scheduled), event);
    }

    /// Takes note of what happens now.
    pub fn note(&self, event: String) {
        self.trace.note(self.now, event);
    }

    /// Ends the run: something is not as it should be.
    #[track_caller]
    pub fn fail(&self, why: &str) -> ! {
        let at = seconds(self.now);
        panic!("after {at} s of virtual time: {why}");
    }

    /// Checks, and ends the run where the check fails.
    #[track_caller]
    pub fn check(&self, verdict: Verdict, about: &dyn Fn() -> String) {
        if let Err(why) = verdict {
            self.fail(&format!("{}: {why}", about()));
        }
    }

    /// Goes on until then, or until the daemon has finished.
    pub fn run_until(&mut self, until: u64) {
        while self.now < until && !self.core.is_finished() {
            self.step(until);
        }
    }

    /// Sleeps until something happens, and makes one turn.
    pub fn step(&mut self, until: u64) {
        let planned = self.agenda.keys().next().map(|(at, _)| *at);
        let timeout = self.core.poll_timeout().map(|at| at.0);
        let queues = [&self.hot, &self.upstream];
        let busy = queues.iter().any(|it| !it.is_empty())
            || !self.backlog.is_empty()
            || self.core.has_work();
        let next = match busy {
            // A turn takes a while.
            true => Some(self.now + 30 + self.rng.below(300)),
            false => [planned, timeout].into_iter().flatten().min(),
        };
        let before = self.now;
        let Some(next) = next.filter(|next| *next <= until) else {
            // Nothing wakes the daemon up before then.
            self.now = until;
            return;
        };
        self.now = next.max(self.now);
        if self.stall > 0 && self.rng.chance(1, 40) {
            self.now += self.rng.below(self.stall);
        }
        self.woken = false;
        while let Some(next) = self.agenda.first_entry()
            && next.key().0 <= self.now
        {
            let event = next.remove();
            self.happen(event);
        }
        // Nothing wakes the daemon but its own deadline and what its sockets have to tell.
        if self.woken || busy || timeout.is_some_and(|at| at <= self.now) {
            let answers = self.answers;
            let mut caused = self.woken || busy;
            self.turn();
            // Who asks for several charts at once may get one in each turn.
            caused |= self.answers > answers;
            self.clock_moved = false;
            self.reload.is_new = false;
            self.count_turn(before, caused);
        }
    }

    /// A turn without cause is a spin: `poll_timeout` named a moment at which nothing was due.
    fn count_turn(&mut self, before: u64, caused: bool) {
        self.turns += 1;
        let second = self.now / SECOND;
        if second != self.idle_turns.0 {
            self.idle_turns = (second, 0);
        }
        if caused {
            self.repeated_turns = 0;
            return;
        }
        // What was asked of a source is looked at once more right after the turn.
        let follows = self.now == before && self.repeated_turns == 0;
        self.idle_turns.1 += u32::from(!follows);
        if self.idle_turns.1 > 60 {
            let timeout = self.core.poll_timeout();
            let count = self.idle_turns.1;
            self.fail(&format!(
                "{count} turns in one second without an event; the next is wanted at {timeout:?}"
            ));
        }
        if self.now == before {
            self.repeated_turns += 1;
            if self.repeated_turns > 3 {
                let timeout = self.core.poll_timeout();
                self.fail(&format!("poll_timeout stays at {timeout:?}"));
            }
        } else {
            self.repeated_turns = 0;
        }
    }

    fn happen(&mut self, event: Event) {
        self.happened += 1;
        match event {
            Event::Client(client) => self.client_acts(client),
            Event::Settle(key, result) => {
                if let Some(link) = self.links.get_mut(&key) {
                    link.settle(result);
                    self.wake(key);
                }
            }
            Event::Exchange(source, conn, step) => self.exchange_acts(source, conn, step),
            Event::Drained(key) => {
                if let Some(link) = self.links.get_mut(&key)
                    && link.make_room(100_000)
                {
                    self.wake(key);
                }
            }
            Event::Resolved(source) => self.resolve(source),
            Event::Disk => self.disk_acts(),
            Event::Look => {
                self.look();
                self.after(SECOND, Event::Look);
            }
            Event::SetClock(_) | Event::Sleep(..) | Event::Jump(..) if self.is_calm => {}
            Event::Reload(is_last) => self.reload(is_last),
            Event::Browse => self.browse(),
            Event::SetClock(ms) => {
                self.unix_ms += ms;
                self.clock_moved = true;
                for ledger in &mut self.ledgers {
                    ledger.sets.push((self.now, ms));
                }
                self.note(format!("the clock is set by {ms} ms"));
            }
            Event::Sleep(ms, survive) => self.sleep(ms, survive),
            Event::Jump(source, ms) if ms < 0 && !self.shows(source, ms) => {
                self.after(5 * SECOND, Event::Jump(source, ms));
            }
            Event::Jump(source, ms) => {
                let now = self.moment();
                self.exchanges[source].truth.off_ms += ms;
                self.ledgers[source].jumped(ms, now);
                if ms < 0 {
                    // By that clock, what was settled may not have happened yet.
                    let id = &self.ledgers[source].id;
                    self.told.settled.retain(|(_, of), _| of != id);
                }
                self.note(format!("source {source}'s clock jumps by {ms} ms"));
            }
        }
    }

    /// Whether quotes would show that an exchange's clock has gone back by so much: they come without
    /// trouble, and the next ones are older than the last.
    fn shows(&self, source: usize, ms: i64) -> bool {
        let poll_us = self.config.sources[source].poll.usual().as_micros() as u64;
        let exchange = &self.exchanges[source];
        let least = self.now.saturating_sub(2 * poll_us);
        let most = self.now + 2 * poll_us + 10 * SECOND;
        let spells = exchange.forecast.iter();
        let mut spells = spells.filter(|(until, _)| *until > least);
        let is_fine =
            spells.all(|(until, weather)| weather.is_fine() || exchange.begin_of(*until) > most);
        let (from, to) = exchange.truth.freeze.unwrap_or_default();
        let is_frozen = from < most && least < to;
        let schedule = &self.schedules[source];
        let is_calm = schedule.trouble < least && schedule.answered > Some(least);
        let is_far = ms.unsigned_abs() * 1000 > 2 * poll_us + 20 * SECOND;
        is_fine && !is_frozen && is_calm && is_far
    }

    /// This machine sleeps, and everybody else does not.
    fn sleep(&mut self, ms: i64, survive: bool) {
        self.note(format!("this machine sleeps for {ms} ms"));
        self.unix_ms += ms;
        self.clock_moved = true;
        self.grammar.now_ms += ms;
        let now = self.moment();
        for (exchange, ledger) in self.exchanges.iter_mut().zip(&mut self.ledgers) {
            exchange.truth.passes(ms);
            ledger.slept(ms, now);
        }
        self.woken = true;
        for key in self.links.keys().copied().collect::<Vec<_>>() {
            let link = self.links.get_mut(&key).expect("it was just seen");
            if let (Peer::Exchange(source, at), false) = (link.peer, survive) {
                link.reset();
                self.exchanges[source].conns[at].open = false;
                self.wake(key);
            }
        }
    }

    fn client_acts(&mut self, at: usize) {
        use super::client::Stage;
        if self.clients[at].stage == Stage::Waiting {
            self.clients[at].stage = Stage::Talking;
            let listener = self.clients[at].listener.take();
            if let Some(mut listener) = listener {
                let before = listener.resumes.and_then(|it| self.clients[it].listener.as_ref());
                if let Some(before) = before {
                    listener.take_over(before);
                }
                self.clients[at].listener = Some(listener);
            }
            self.backlog.push_back(at);
            self.woken = true;
            return;
        }
        let client = &mut self.clients[at];
        let Some(key) = client.link else { return };
        let Some(link) = self.links.get_mut(&key) else { return };
        let before = (link.inbound.len(), link.room, link.eof, link.broken);
        let again = client.act(link, &self.grammar);
        let after = (link.inbound.len(), link.room, link.eof, link.broken);
        let has_come = before.0 < after.0 || before.2 != after.2 || before.3 != after.3;
        let can_go = before.1 == 0 && after.1 > 0;
        if has_come || can_go {
            self.wake(key);
        }
        if let Some(wait) = again {
            self.after(wait, Event::Client(at));
        }
    }

    fn exchange_acts(&mut self, source: usize, at: usize, step: Step) {
        let conn = &mut self.exchanges[source].conns[at];
        if !conn.open && !matches!(step, Step::Reset) {
            return;
        }
        if !matches!(step, Step::Bytes(_)) {
            conn.open = false;
        }
        let peer = Peer::Exchange(source, at);
        let Some((key, link)) = self.links.iter_mut().find(|(_, link)| link.peer == peer) else {
            return;
        };
        match step {
            Step::Bytes(bytes) => link.deliver(&bytes),
            Step::Eof => link.end(),
            Step::Reset => link.reset(),
        }
        let key = *key;
        self.wake(key);
    }

    /// The spans of a deadline that have held.
    fn held(&self, of: impl Fn(&Limits) -> Duration) -> impl Iterator<Item = u64> {
        let all = self.past_limits.iter().chain([&self.config.limits]);
        all.map(move |limits| us(of(limits)))
    }

    /// The longest of a deadline that has held.
    pub fn longest(&self, of: impl Fn(&Limits) -> Duration) -> u64 {
        self.held(of).max().unwrap_or_default()
    }

    /// The shortest of a deadline that has held.
    pub fn shortest(&self, of: impl Fn(&Limits) -> Duration) -> u64 {
        self.held(of).min().unwrap_or_default()
    }

    fn resolve(&mut self, source: usize) {
        let exchange = &self.exchanges[source];
        let nameless = matches!(exchange.weather(self.now), Weather::Nameless);
        let addresses = match nameless {
            true => Err("nobody knows that name".to_string()),
            false => Ok(exchange
                .places
                .named(self.now)
                .map(|at| super::driver::address_of(source, at))
                .collect()),
        };
        let look_up = self.resolving[source].remove(0);
        self.woken = true;
        self.note(format!("source {source} resolves to {addresses:?}"));
        self.schedules[source].resolved(addresses.is_err(), self.now);
        let now = self.clocks();
        self.core.resolved(Resolved { look_up, addresses }, now);
    }
}
