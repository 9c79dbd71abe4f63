//! All clients' connections, and what they share.
//!
//! [`Clients`] owns the connections and the limits on all of them together; [`Shared`] what a single
//! connection works with: caches, rate limits, deferred responses. Their methods stand by subject:
//! `accepting`, `serving` (requests and their responses), `request_body`, `waiting` (deferred
//! responses), `fairness`, `closing`, `figures`.

mod accepting;
mod access_log;
mod address_counts;
mod admission;
mod closing;
mod connection;
mod deferred;
mod fairness;
mod figures;
mod head_cache;
mod rate_limiter;
mod request_body;
mod serving;
mod waiting;

use crate::config::Config;
use crate::core::api::compressed_cache::Packing;
use crate::core::{Context, DEMO_CLIENTS, Event, LOBBY, ProcessFacts};
use crate::demo::Demo;
use crate::http::{Outgoing, Output, Stamp};
use crate::table::{Key, Table};
use crate::time::{Mono, UnixMs};
use accepting::Silent;
use access_log::Access;
use address_counts::Guests;
use admission::Gate;
use connection::Session;
use deferred::Longs;
use fairness::Turns;
use head_cache::Familiar;
use std::collections::VecDeque;
pub use waiting::Wish;

/// See the module's page.
pub struct Clients {
    pub sessions: Table<Session>,
    pub shared: Shared,
    pub silent: Silent,
    /// Clients by their address, where that has a cap.
    pub guests: Guests,
    /// Connections to the demo exchange: it is nobody's service, and counts for nothing else.
    pub demo_open: usize,
    /// The most that clients held since memory was last given back.
    pub most_held: u64,
    pub next_sweep: Mono,
    /// Where the sweep goes on.
    pub swept: usize,
    pub shed_at: Mono,
}

/// See the module's page.
pub struct Shared {
    pub longs: Longs,
    pub packing: Packing,
    pub turns: Turns,
    pub wishes: VecDeque<Wish>,
    pub gate: Gate,
    pub access: Access,
    pub familiar: Familiar,
    pub stamp: Stamp,
    /// Lent to the next answer.
    pub spare: Output,
    pub demo: Option<Demo>,
    /// Reused for the demo exchange's bodies.
    pub scratch: Vec<u8>,
    pub boot: u64,
    pub facts: fn() -> ProcessFacts,
}

impl Clients {
    /// No clients yet. `first`: the lowest index of their keys.
    pub fn new(
        config: &Config,
        demo: Option<Demo>,
        facts: fn() -> ProcessFacts,
        boot: u64,
        (first, now): (usize, Mono),
    ) -> Clients {
        let limits = &config.limits;
        Clients {
            sessions: Table::behind(first, limits.max_connections + LOBBY + DEMO_CLIENTS),
            shared: Shared {
                longs: Longs::new(limits.max_connections, limits.long_answers),
                packing: Packing::new(limits.packed_bytes),
                turns: Turns::default(),
                wishes: VecDeque::new(),
                gate: Gate::new(config),
                access: Access::new(),
                familiar: Familiar::new(),
                stamp: Stamp::new(boot),
                spare: Output::default(),
                demo,
                scratch: Vec::new(),
                boot,
                facts,
            },
            silent: Silent::default(),
            guests: Guests::default(),
            demo_open: 0,
            most_held: 0,
            next_sweep: now,
            swept: 0,
            shed_at: now,
        }
    }

    /// Whether a key may be that of a client: every other one is of a connection to an exchange.
    #[inline]
    pub fn may_own(&self, key: Key) -> bool {
        self.sessions.may_own(key)
    }

    /// Takes in what happened to a client's connection.
    #[inline]
    pub fn handle(&mut self, key: Key, event: Event<'_>, cx: &mut Context) {
        if let Some(session) = self.sessions.get_mut(key) {
            self.shared.handle(key, session, event, cx);
        }
    }

    /// Bytes to be sent to a client now, and whether bytes from it are welcome.
    #[inline]
    pub fn interest(&self, key: Key) -> (Outgoing<'_>, bool) {
        match self.sessions.get(key) {
            Some(session) => (session.output.pending(), session.wants_read()),
            None => (Outgoing::from(&[][..]), false),
        }
    }

    /// Sets the date of responses. `true`: it has changed, once a second.
    #[inline]
    pub fn set_date(&mut self, now: UnixMs) -> bool {
        self.shared.stamp.refresh(now)
    }

    /// What all responses have cost so far. It only rises.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.shared.turns.spent()
    }

    /// Whether a client has waited for candles as long as it may: [`Clients::wake`] is wanted.
    #[inline]
    pub fn has_waited_enough(&self, now: Mono) -> bool {
        self.shared.longs.is_due(now)
    }

    /// What a client waits for and is to be had brought, once.
    #[inline]
    pub fn next_wish(&mut self) -> Option<Wish> {
        self.shared.wishes.pop_front()
    }

    /// Whether one of the steps has something to do.
    pub fn has_work(&self) -> bool {
        let shared = &self.shared;
        shared.turns.is_waiting() || shared.longs.has_work() || shared.packing.has_work()
    }
}
