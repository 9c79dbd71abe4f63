//! The exchanges: what is asked of each, and when.
//!
//! [`Sources`] owns one [`Source`](source::Source) for each configured exchange, the table of their
//! connections, and failover between them. `source` is the page to begin with: one exchange's schedule,
//! its connections, its budget and its back-off.
//!
//! It never serves a client and never keeps a price: what is read goes to the market.

mod addresses;
mod budget;
mod candles;
mod clock;
mod dial;
mod failover;
mod fault;
mod fetches;
mod outcome;
mod progress;
mod round;
mod schedule;
mod source;
mod staged;
mod task;
mod upstream;
mod wire;

use crate::config::Config;
use crate::core::history::History;
use crate::core::{Context, Event};
use crate::http::Outgoing;
use crate::market::{SeriesKey, SourceId};
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::{Mono, Now};
use failover::Failover;
use source::Source;
use std::net::SocketAddr;
use std::ops::Range;

/// A connection to an exchange: whose it is, and which of its connections.
#[derive(Debug)]
struct Upstream {
    source: SourceId,
    lane: usize,
}

/// All exchanges. See the module's page.
pub struct Sources {
    /// By `SourceId`.
    all: Vec<Source>,
    connections: Table<Upstream>,
    /// The one behind the source that worked last.
    worked: usize,
    failover: Failover,
}

impl Sources {
    /// The connections that all exchanges may have. One that reconnects holds two places until the
    /// driver has let the old one go.
    pub fn capacity(config: &Config) -> usize {
        2 * config.limits.lanes_per_source * config.sources.len()
    }

    /// Those of the configuration. `seed` is that of their jitter.
    pub fn new(config: &Config, seed: u64, now: Now) -> Sources {
        let mut rng = Rng::new(seed);
        let ids = (0..config.sources.len()).map(|at| SourceId(at as u16));
        Sources {
            all: ids
                .map(|id| Source::new(id, config, rng.next_u64(), now))
                .collect(),
            connections: Table::new(Sources::capacity(config)),
            worked: 0,
            failover: Failover::default(),
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Takes in what happened to a connection. `true`: a request has ended, and clients may have waited
    /// for it.
    pub fn handle(
        &mut self,
        key: Key,
        event: Event<'_>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        let Some(&Upstream { source, lane }) = self.connections.get(key) else {
            return false;
        };
        let Sources {
            all, connections, ..
        } = self;
        all[source.index()].handle(lane, key, event, connections, history, cx)
    }

    /// The socket of a connection has been let go.
    pub fn closed(&mut self, key: Key) {
        self.connections.remove(key);
    }

    /// Takes in the addresses of a source's host.
    pub fn resolved(
        &mut self,
        source: SourceId,
        addresses: Result<Vec<SocketAddr>, String>,
        history: &mut History,
        cx: &mut Context,
    ) {
        self.all[source.index()].resolved(addresses, &mut self.connections, history, cx);
    }

    /// Starts and gives up what is due. `true`: a request has ended.
    pub fn handle_timeout(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let mut ended = false;
        if cx.stats.stopping {
            return ended;
        }
        for source in &mut self.all {
            if source.wake_at().is_some_and(|at| at <= cx.now.mono) {
                ended |= source.handle_timeout(&mut self.connections, history, cx);
            }
        }
        ended
    }

    /// When [`Sources::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        self.all.iter().filter_map(Source::wake_at).min()
    }

    /// Whether [`Sources::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.all.iter().any(Source::has_work)
    }

    /// Does one slice of the long work of one source, each in its turn: one that always has something
    /// to do does not hold up the others. `true`: a response is wholly in the market.
    pub fn work(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let count = self.all.len();
        let places = (0..count).map(|step| (self.worked + step) % count);
        let Some(at) = { places }.find(|at| self.all[*at].has_work()) else {
            return false;
        };
        self.worked = at + 1;
        self.all[at].work(&mut self.connections, history, cx)
    }

    /// Responses that have been read and are not yet wholly in the market.
    pub fn staged(&self) -> usize {
        self.all.iter().map(Source::staged).sum()
    }

    /// Bytes to be sent on a connection now.
    pub fn outgoing(&self, key: Key) -> Outgoing<'_> {
        match self.connections.get(key) {
            Some(it) => self.all[it.source.index()].outgoing(it.lane, key).into(),
            None => Outgoing::from(&[][..]),
        }
    }

    /// Whether bytes from this connection are welcome now.
    pub fn wants_read(&self, key: Key) -> bool {
        let upstream = self.connections.get(key);
        upstream.is_some_and(|it| self.all[it.source.index()].wants_read(it.lane, key))
    }

    /// Has a series followed, which a client asks for. `false`: there is no room for one more.
    pub fn follow(&mut self, series: SeriesKey, cx: &mut Context) -> bool {
        self.all[series.source.index()].follow(series, cx)
    }

    /// Has candles fetched for a client. `false`: nothing comes of it.
    pub fn ask(&mut self, series: SeriesKey, slots: &Range<i64>, cx: &mut Context) -> bool {
        self.all[series.source.index()].ask(series, slots, cx)
    }

    /// Whether some of these slots are asked for, or will be.
    pub fn is_asking(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.all[series.source.index()].is_asking(series, slots)
    }

    /// There is room in the history again: what has waited for that is due.
    pub fn hurry(&mut self, now: Now) {
        self.all.iter_mut().for_each(|it| it.hurry(now));
    }

    /// The history file holds more, or less, than before.
    pub fn note_stored(&mut self, now: Now) {
        self.all.iter_mut().for_each(|it| it.note_stored(now));
    }

    /// The machine's clocks have moved against each other.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        self.all.iter_mut().for_each(|it| it.clocks_moved(cx));
    }

    /// Looks who answers for which symbol, where that may have changed. `true`: it has looked.
    pub fn watch_failover(&mut self, cx: &mut Context) -> bool {
        let Sources { all, failover, .. } = self;
        let applies = || all.iter().any(Source::has_work);
        failover.watch(&cx.market, &mut cx.stats.sources, applies, cx.now.mono)
    }

    /// When [`Sources::watch_failover`] is wanted.
    pub fn failover_due(&self) -> Option<Mono> {
        self.failover.next_due()
    }
}
