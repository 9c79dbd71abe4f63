//! One source: what is asked of its exchange, and when.
//!
//! Owns the source's lanes, its schedule, its back-off and its addresses. A task starts when it is
//! due, a lane is free and the source is not backing off; the most urgent one first:
//!
//! 1. at the start the market list and the exchange's clock: nothing else makes sense before;
//! 2. quotes, on `pollMs`; one lane is kept free for them;
//! 3. candles that a client waits for, then the newest of each followed series;
//! 4. the market list and the clock, hourly;
//! 5. what is missing between candles that are known, then the configured depth of history.
//!
//! A tick is planned from the last due time; a missed one is skipped, never queued. While a source
//! fails, one request at a time is tried, and after each that fails nothing until the back-off's
//! next step is over.
//!
//! Every request takes its cost from the source's budget, and waits until that has it.
//!
//! It never serves anybody and never keeps a price: what it reads goes to the market at once, in
//! slices ([`Poller::work`]), after its body has parsed to its end.

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
mod staged;
mod task;
mod upstream;
mod wire;

use crate::config::{Config, SourceConfig, Url};
use crate::core::Broken;
use crate::core::history::Archive;
use crate::core::stats::{SourceState, SourceStatus};
use crate::core::{Action, Upstream};
use crate::exchange::{Budget as Limit, Call, Dialect};
use crate::log_targets::{FETCH, SOURCE};
use crate::market::{Market, SeriesKey, SourceId};
use crate::rng::Rng;
use crate::table::Table;
use crate::time::{Mono, Now};
use addresses::Addresses;
use budget::Budget;
use clock::ExchangeClock;
use dial::Route;
pub use failover::Failover;
use fault::Fault;
use fetches::{Fetches, SILENT_FOR_MS};
use outcome::Applying;
use progress::Progress;
use round::Round;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::ops::Range;
use std::time::Duration;
use upstream::Lane;

/// The demo exchange speaks Binance's dialect, and is nobody's but ours.
const DEMO_BUDGET: Limit = Limit {
    units: 1_000_000,
    per: Duration::from_secs(1),
};

/// See the module's page.
pub struct Poller {
    id: SourceId,
    config: SourceConfig,
    dialect: &'static Dialect,
    url: Url,
    route: Route,
    addresses: Addresses,
    lanes: Vec<Lane>,
    /// When quotes and the market list are due.
    tickers: Mono,
    markets: Mono,
    clock: ExchangeClock,
    has_list: bool,
    /// Where the exchange has no call for all quotes.
    round: Round,
    fetches: Fetches,
    budget: Budget,
    failures: u32,
    /// When the running back-off began, and until when nothing is asked.
    backoff_since: Mono,
    backoff_until: Mono,
    /// When quotes last came; before that, when this began.
    well_at: Mono,
    progress: Progress,
    rng: Rng,
    /// Answers whose items are on their way into the market, in their order. An answer that comes
    /// while another one is applied waits for its turn.
    applying: VecDeque<Applying>,
    /// When [`Poller::handle_timeout`] is wanted; worked out after each change.
    wake: Option<Mono>,
}

/// What a poller works on: the parts of the core that are not its own.
pub struct Desk<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Where items go.
    pub market: &'a mut Market,
    /// This source's public record.
    pub status: &'a mut SourceStatus,
    /// What is written, and whether that can be had again.
    pub archive: &'a mut Archive,
    /// What the driver is to do.
    pub actions: &'a mut VecDeque<Action>,
    /// Whether the service is stopping: only what a client waits for is still requested.
    pub is_stopping: bool,
}

impl Poller {
    /// A poller whose first task is due at once.
    ///
    /// # Panics
    /// When the source's dialect does not exist, or it has no address: the configuration has been
    /// checked.
    pub fn new(id: SourceId, config: &Config, seed: u64, now: Now) -> Poller {
        let source = config.sources[usize::from(id.0)].clone();
        let dialect = Dialect::of(&source).expect("dialects have been checked");
        let own = || Url::parse(dialect.base_url()).expect("a dialect's own address is sound");
        let url = source.url.clone().unwrap_or_else(own);
        let route = Route::new(&url, source.proxy.clone());
        if let Some(proxy) = route.proxy() {
            log::info!(target: SOURCE, "{}: through the proxy {proxy}", source.id);
        }
        let (host, port) = route.first();
        let lanes = config.limits.lanes_per_source.max(1);
        let limit = match config.demo_source() {
            Some(demo) if demo == id.index() => DEMO_BUDGET,
            _ => dialect.budget(),
        };
        Poller {
            id,
            dialect,
            addresses: Addresses::of(host, port),
            route,
            url,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            tickers: now.mono,
            markets: now.mono,
            clock: ExchangeClock::new(now.mono),
            has_list: false,
            round: Round::default(),
            fetches: Fetches::default(),
            budget: Budget::new(limit, dearest(dialect), now.mono),
            failures: 0,
            backoff_since: now.mono,
            backoff_until: now.mono,
            well_at: now.mono,
            progress: Progress::new(now.mono),
            rng: Rng::new(seed),
            applying: VecDeque::new(),
            wake: Some(now.mono),
            config: source,
        }
    }

    /// When [`Poller::handle_timeout`] is wanted next.
    pub fn wake_at(&self) -> Option<Mono> {
        self.wake
    }

    /// Whether [`Poller::work`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.applying.is_empty()
            || self.lanes.iter().any(Lane::is_unpacking)
            || self.progress.is_counting()
    }

    /// Answers that have been read and are not yet wholly in the market.
    pub fn staged(&self) -> usize {
        self.applying.len()
    }

    /// Asks for those candles of a series that only the exchange can tell of, on a client's behalf.
    /// `false`: it need not wait, none will come.
    pub fn ask(
        &mut self,
        series: SeriesKey,
        slots: &Range<i64>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        let Some(open) = desk.market.charts.get(series) else {
            return false;
        };
        if self.failures > 0 {
            return false;
        }
        // What the exchange no longer tells is not waited for.
        let current = (series.interval).slot_of(desk.status.exchange_time(now));
        let oldest = self.oldest_slot(current);
        let exchange = desk.status.exchange_time(now);
        let unknown = slots.start.max(oldest)..slots.end;
        let unknown = open.askable(unknown, exchange, SILENT_FOR_MS);
        let (Some(first), Some(last)) = (unknown.first(), unknown.last()) else {
            return false;
        };
        let slots = first.start..last.end;
        let room = desk.config.limits.chart_fetches;
        log::debug!(
            target: FETCH,
            "wanted by a client source={} symbol={} interval={} slots={}..{}",
            self.config.id,
            desk.market.catalog.name(series.symbol).as_str(),
            series.interval.name(),
            slots.start,
            slots.end,
        );
        let taken = self.fetches.ask(series, slots, room, now);
        // The end of this turn starts it, not the midst of serving a client.
        self.wake = Some(now.mono);
        taken
    }

    /// The oldest slot of which the exchange still tells, when `current` is the newest.
    fn oldest_slot(&self, current: i64) -> i64 {
        let depth = self.dialect.page().depth;
        depth.map_or(0, |depth| {
            let depth = i64::try_from(depth).unwrap_or(i64::MAX);
            current.saturating_sub(depth - 1)
        })
    }

    /// Looks again at once for what is due.
    pub fn hurry(&mut self, now: Now) {
        self.wake = Some(now.mono);
    }

    /// Whether some of these candles are asked for and not answered yet.
    pub fn is_asking(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.fetches.is_asking(series, slots)
    }

    /// Deadlines that have passed, tasks that are due. `true`: a task has ended.
    pub fn handle_timeout(
        &mut self,
        conns: &mut Table<Upstream>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        let mut ended = false;
        for lane in 0..self.lanes.len() {
            let Lane { asking, dial, .. } = &self.lanes[lane];
            let Some(asking) = asking else { continue };
            if asking.deadline <= now.mono {
                let fault = asking.cut(Fault::Timeout(dial.obstacle()));
                self.hang_up(lane, desk);
                self.fail(lane, fault, desk, now);
                ended = true;
            } else if dial.until().is_some_and(|until| until <= now.mono) {
                let why = Broken::Io(ErrorKind::TimedOut);
                ended |= self.lost(lane, Some(&why), conns, desk, now);
            }
        }
        if self.down_at(desk).is_some_and(|at| at <= now.mono) {
            desk.status.state = SourceState::Down;
        }
        self.start_due(conns, desk, now);
        ended
    }

    /// When a source that backs off counts as down, whether it is asked again before or not.
    fn down_at(&self, desk: &Desk<'_>) -> Option<Mono> {
        let backs_off = desk.status.state == SourceState::Backoff;
        backs_off.then(|| self.well_at + self.config.stale_after)
    }
}

/// Cost of the dearest request to this exchange.
fn dearest(dialect: &Dialect) -> u32 {
    let tickers = match dialect.tickers_at_once() {
        true => Call::Tickers,
        false => Call::Ticker { id: "" },
    };
    let calls = [Call::Markets, Call::Time, tickers];
    let costs = calls.iter().map(|call| dialect.cost(call));
    costs.max().unwrap_or(1)
}
