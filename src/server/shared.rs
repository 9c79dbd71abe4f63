//! All clients' connections, and what they share.
//!
//! [`Clients`] owns the connections and the limits on all of them together; [`Shared`] what a single
//! connection works with: caches, rate limits, deferred responses. Their methods stand by subject:
//! `door` accepts, `clients` reads requests and answers them, `later` sees to deferred responses,
//! `turns` to fairness, `ends` to the close, `counting` to the figures.

use super::access::Access;
use super::door::Silent;
use super::familiar::Familiar;
use super::gate::Gate;
use super::guests::Guests;
use super::later::Wish;
use super::long::Longs;
use super::packing::Packing;
use super::session::Session;
use super::turns::Turns;
use super::{DEMO_CLIENTS, LOBBY, ProcessFacts};
use crate::config::Config;
use crate::demo::Demo;
use crate::http::{Output, Stamp};
use crate::table::Table;
use crate::time::Mono;
use std::collections::VecDeque;
use std::time::Duration;

/// How often connections are looked through for passed deadlines: a sweep costs less than a heap,
/// and no deadline of a client needs to be sharper.
pub const SWEEP: Duration = Duration::from_secs(1);

/// Between two parts of a sweep.
pub const SWEEP_PAUSE: Duration = Duration::from_millis(1);

/// See the module's page.
pub struct Clients {
    pub(super) sessions: Table<Session>,
    pub(super) shared: Shared,
    pub(super) silent: Silent,
    /// Clients by their address, where that has a cap.
    pub(super) guests: Guests,
    /// Connections to the demo exchange: it is nobody's service, and counts for nothing else.
    pub(super) demo_open: usize,
    /// The most that clients held since memory was last given back.
    pub(super) most_held: u64,
    pub(super) next_sweep: Mono,
    /// Where the sweep goes on.
    pub(super) swept: usize,
    pub(super) shed_at: Mono,
}

/// See the module's page.
pub struct Shared {
    pub(super) longs: Longs,
    pub(super) packing: Packing,
    pub(super) turns: Turns,
    pub(super) wishes: VecDeque<Wish>,
    pub(super) gate: Gate,
    pub(super) access: Access,
    pub(super) familiar: Familiar,
    pub(super) stamp: Stamp,
    /// Lent to the next answer.
    pub(super) spare: Output,
    pub(super) demo: Option<Demo>,
    /// Reused for the demo exchange's bodies.
    pub(super) scratch: Vec<u8>,
    pub(super) boot: u64,
    pub(super) facts: fn() -> ProcessFacts,
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
                stamp: Stamp::of_boot(boot),
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
            next_sweep: now + SWEEP,
            swept: 0,
            shed_at: now,
        }
    }

    /// What a client waits for and is to be had brought, once.
    pub fn next_wish(&mut self) -> Option<Wish> {
        self.shared.wishes.pop_front()
    }

    /// Whether one of the steps has something to do.
    pub fn has_work(&self) -> bool {
        let shared = &self.shared;
        shared.turns.is_waiting() || shared.longs.has_work() || shared.packing.has_work()
    }
}
