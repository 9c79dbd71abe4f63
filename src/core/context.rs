//! What every part of the core works on, beside its own state: one [`Context`], which the core owns.

use crate::config::{Config, DEMO, DemoConfig};
use crate::core::compressed_cache::CompressedBodies;
use crate::core::{Action, ProcessFacts, Status};
use crate::log_targets::SOURCE;
use crate::market::{Market, SeriesKey, SourceId, SymbolId};
use crate::table::{Key, Table};
use crate::time::{Now, SimulatedClock, UnixMs};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// The wall clock counts as set if it moved further than this against the monotonic one. The limit is longer
/// than the time between the readings of the two, even on a busy machine. Slewing does not count: it changes
/// both clocks alike.
const CLOCKS_MOVED_MS: i64 = 2000;

/// What belongs to no single part. [`Core`](crate::core::Core) owns it, and lends it with each call.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// Quotes, markets and candles.
    pub market: Market,
    /// The figures that metrics and health report.
    pub stats: Status,
    /// What the driver is to do.
    pub actions: VecDeque<Action>,
    /// Connections to exchanges and to the engine of the cluster. Each has its owner ([`SourceId::ENGINE`]
    /// for the engine), and its number among the connections of the owner.
    pub upstreams: Table<(SourceId, usize)>,
    /// The candles that clients wait for and that are not requested yet.
    pub wishes: VecDeque<Wish>,
    /// Bodies in gzip, and those that are being compressed.
    pub compressed: CompressedBodies,
    /// The symbols that streams follow.
    pub followed: FollowedSymbols,
    /// Tells this run from others, and seeds what is left to chance.
    pub boot: u64,
    /// How to ask the system about the process.
    pub facts: fn() -> ProcessFacts,
    /// The time of this call.
    pub now: Now,
    /// True while the driver has yet to read what came during a pause of the process. Meanwhile nobody is
    /// late, neither a peer nor the disk: no connection is closed, and no request, waiting client or job of
    /// the disk given up, because nothing has come.
    pub is_behind: bool,
    /// The number of the core's state. While the number stays the same, a response changes only with the time
    /// ([`View::holds_until`](crate::core::api::View::holds_until)). Each second is a new state, because
    /// heads contain the date.
    pub state: u64,
    /// The demo exchange's own clock, if it has one. [`Context::now`] then has the wall-clock time of that
    /// clock.
    pub clock: Option<SimulatedClock>,
    /// What the wall clock shows when the monotonic one is zero, in milliseconds.
    wall_zero: i64,
}

/// How many streams name each symbol. Streams of all symbols count for none.
#[derive(Debug, Default)]
pub struct FollowedSymbols(HashMap<SymbolId, usize>);

impl FollowedSymbols {
    /// True if some stream names this symbol.
    pub fn contains(&self, symbol: SymbolId) -> bool {
        self.0.contains_key(&symbol)
    }

    /// A stream names this symbol from now on.
    pub fn enter(&mut self, symbol: SymbolId) {
        *self.0.entry(symbol).or_default() += 1;
    }

    /// A stream that named this symbol has ended.
    pub fn leave(&mut self, symbol: SymbolId) {
        if let Some(count) = self.0.get_mut(&symbol) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&symbol);
            }
        }
    }
}

/// Candles that a client waits for. The conductor knows who can bring them.
pub struct Wish {
    /// Whose response is deferred for them; `None` if they are for a stream.
    pub client: Option<Key>,
    /// The missing ranges; never empty.
    pub candles: Vec<Candles>,
}

/// Slots of a series.
type Candles = (SeriesKey, Range<i64>);

impl Context {
    /// Keeps the candles that a response needs in memory, and asks for those that are missing, if any.
    pub fn wish(&mut self, client: Option<Key>, needed: Vec<Candles>, missing: Vec<Candles>) {
        for (series, slots) in needed {
            let now = self.exchange_time(series.source);
            if let Some(series) = self.market.charts.get_mut(series) {
                series.want(slots, now);
            }
        }
        if !missing.is_empty() {
            self.wishes.push_back(Wish { client, candles: missing });
        }
    }

    /// A context without actions. `boot` is 0, and `facts` returns no figures.
    pub fn new(config: Config, market: Market, mut stats: Status, now: Now) -> Context {
        let wall_zero = wall_zero(now);
        let demo = config.demo.as_ref().filter(|demo| demo.has_clock());
        let at = |demo: &DemoConfig| demo.at.unwrap_or(now.unix);
        let clock = demo.map(|demo| SimulatedClock::set(at(demo), demo.speed(), now.mono));
        let now = shown(clock, now);
        stats.started = now;
        let compressed = CompressedBodies::new(config.limits.compressed_bytes);
        Context {
            config,
            market,
            stats,
            actions: VecDeque::new(),
            upstreams: Table::new(0),
            wishes: VecDeque::new(),
            compressed,
            followed: FollowedSymbols::default(),
            boot: 0,
            facts: ProcessFacts::default,
            now,
            is_behind: false,
            state: 1,
            clock,
            wall_zero,
        }
    }

    /// The exchange's time now, as far as it is known.
    pub fn exchange_time(&self, source: SourceId) -> UnixMs {
        self.stats[source].exchange_time(self.now)
    }

    /// The simulated clock, if this source polls the demo exchange. That exchange follows the same clock, so
    /// no response has to tell its time.
    pub fn given_clock(&self, source: SourceId) -> Option<SimulatedClock> {
        self.clock.filter(|_| self.config.sources[source.index()].dialect == DEMO)
    }

    /// The clock of the demo exchange shows this time now.
    pub fn set_demo_clock(&mut self, at: UnixMs) {
        let speed = self.config.demo.as_ref().map_or(1, DemoConfig::speed);
        self.clock = Some(SimulatedClock::set(at, speed, self.now.mono));
        self.now.unix = at;
    }

    /// Compares the clocks. If they moved apart since the last call, the machine slept, or a clock was set:
    /// logs the move, ages the quotes by a move forward, and returns how long the machine may have slept.
    pub fn check_clocks(&mut self) -> Option<Duration> {
        let zero = wall_zero(self.now);
        let moved_ms = zero - self.wall_zero;
        if moved_ms.abs() <= CLOCKS_MOVED_MS {
            return None;
        }
        self.wall_zero = zero;
        log::warn!(target: SOURCE, "wall clock moved ms={moved_ms}");
        let slept = Duration::from_millis(moved_ms.max(0) as u64);
        self.market.quotes.aged(slept, self.now.mono);
        Some(slept)
    }
}

/// What the wall clock shows when the monotonic one is zero, in milliseconds.
pub fn wall_zero(now: Now) -> i64 {
    now.unix.0 - now.mono.as_ms()
}

/// The time as bodies show it, with this clock if there is one.
pub fn shown(clock: Option<SimulatedClock>, now: Now) -> Now {
    Now { unix: clock.map_or(now.unix, |clock| clock.time(now.mono)), ..now }
}
