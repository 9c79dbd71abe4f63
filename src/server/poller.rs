//! One source: what is asked of its exchange, and when.
//!
//! Owns the source's lanes, its schedule, its back-off and its addresses. A task starts when it is
//! due, a lane is free and the source is not backing off; the most urgent one first:
//!
//! 1. at the start the market list and the exchange's clock: nothing else makes sense before;
//! 2. quotes, on `pollMs`; one lane is kept free for them;
//! 3. candles that a client waits for, then the newest of each followed series;
//! 4. the market list and the clock, hourly;
//! 5. the configured depth of history.
//!
//! A tick is planned from the last due time; a missed one is skipped, never queued. While a source
//! fails, one request at a time is tried, each after the back-off's next step.
//!
//! It never serves anybody and never keeps a price: what it reads goes to the market at once, in
//! slices ([`Poller::work`]), after its body has parsed to its end.

use super::fetches::{Fetches, Page, Urgency};
use super::lane::{Answered, Asking, Blame, Fault, Lane, Staged, Task, open_times, time_for};
use super::status::{SourceState, SourceStatus};
use super::{Action, Conn, Core, Event, Rest};
use crate::config::{Config, SourceConfig, Url};
use crate::exchange::{Call, Caps, Dialect, Reading};
use crate::http::{RetryAfter, write_request};
use crate::interval::Stored;
use crate::market::{Lookup, Market, SeriesKey, SourceId, SymbolId};
use crate::record::{MarketInfo, Ticker};
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::{Mono, Now, UnixMs};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

/// Between two readings of the market list, and of the exchange's clock. Listings change a few
/// times a day; clocks of machines drift by seconds a day.
const HOURLY: Duration = Duration::from_secs(3600);

/// Before the next try of an hourly task that failed.
const HOURLY_RETRY: Duration = Duration::from_secs(60);

/// Addresses of a name are looked up again after this.
const ADDRESS_AGE: Duration = Duration::from_secs(300);

/// Tickers applied in one slice: some 0.1 ms.
const TICKERS_A_SLICE: usize = 256;

/// Markets taken into the catalog in one slice: some 0.1 ms.
const MARKETS_A_SLICE: usize = 128;

/// A difference between the exchange's clock and ours that is worth a line in the log.
const CLOCK_OFFSET_MS: i64 = 2000;

/// Longest that an exchange's `Retry-After` is believed: a day. A ban can last that long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// See the module's page.
pub struct Poller {
    id: SourceId,
    config: SourceConfig,
    dialect: &'static Dialect,
    url: Url,
    addresses: Addresses,
    lanes: Vec<Lane>,
    /// When quotes, the market list and the clock are due.
    tickers: Mono,
    markets: Mono,
    clock: Mono,
    has_list: bool,
    fetches: Fetches,
    failures: u32,
    backoff_until: Mono,
    rng: Rng,
    applying: Option<Applying>,
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
    /// What the driver is to do.
    pub actions: &'a mut VecDeque<Action>,
}

#[derive(Debug, Default)]
struct Addresses {
    list: Vec<SocketAddr>,
    /// The one to try first: the last that worked.
    first: usize,
    asked: bool,
    known_since: Mono,
}

/// Items of a good answer, on their way into the market.
enum Applying {
    Tickers(std::vec::IntoIter<(SymbolId, Ticker)>),
    Markets(std::vec::IntoIter<MarketInfo>),
}

impl Rest {
    /// Runs `act` with a source's poller and the rest of the core beside it.
    pub(super) fn with_poller<R>(
        &mut self,
        source: SourceId,
        act: impl FnOnce(&mut Poller, &mut Desk<'_>) -> R,
    ) -> R {
        let at = usize::from(source.0);
        let mut desk = Desk {
            config: &self.config,
            market: &mut self.market,
            status: &mut self.status.sources[at],
            actions: &mut self.actions,
        };
        act(&mut self.pollers[at], &mut desk)
    }
}

impl Core {
    pub(super) fn handle_upstream(
        &mut self,
        key: Key,
        source: SourceId,
        lane: usize,
        event: Event<'_>,
        now: Now,
    ) {
        let Core { conns, rest } = self;
        let ended = rest.with_poller(source, |poller, desk| {
            poller.handle(lane, key, event, conns, desk, now)
        });
        if ended {
            self.wake_longs(now);
        }
    }
}

impl Poller {
    /// A poller whose first task is due at once.
    ///
    /// # Panics
    /// When the source's dialect does not exist, or it has no address: the configuration has been
    /// checked.
    pub fn new(id: SourceId, config: &Config, seed: u64, now: Now) -> Poller {
        let source = config.sources[usize::from(id.0)].clone();
        let dialect = Dialect::by_name(&source.dialect).expect("dialects have been checked");
        let own = || Url::parse(dialect.base_url()).expect("a dialect's own address is sound");
        let url = source.url.clone().unwrap_or_else(own);
        let lanes = config.limits.lanes_per_source.max(1);
        Poller {
            id,
            dialect,
            addresses: Addresses::of(&url),
            url,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            tickers: now.mono,
            markets: now.mono,
            clock: now.mono,
            has_list: false,
            fetches: Fetches::default(),
            failures: 0,
            backoff_until: now.mono,
            rng: Rng::new(seed),
            applying: None,
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
        self.applying.is_some()
    }

    /// Bytes to be sent on a lane's connection.
    pub fn outgoing(&self, lane: usize, key: Key) -> &[u8] {
        let lane = &self.lanes[lane];
        match &lane.asking {
            Some(asking) if lane.conn == Some(key) && lane.connected => asking.outgoing(),
            _ => &[],
        }
    }

    /// Asks for candles on a client's behalf. `false`: it need not wait, they will not come.
    pub fn ask(
        &mut self,
        series: SeriesKey,
        slots: Range<i64>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        if !self.follow(series, desk, now) || self.failures > 0 {
            return false;
        }
        let room = desk.config.limits.chart_fetches;
        let taken = self.fetches.ask(series, slots, room, now);
        // The next turn starts it: this one belongs to the client.
        self.wake = Some(now.mono);
        taken
    }

    /// Whether some of these candles are asked for and not answered yet.
    pub fn is_asking(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.fetches.is_asking(series, slots)
    }

    /// The name's addresses have come, or have not.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) {
        self.addresses.asked = false;
        match addresses {
            Ok(list) => {
                self.addresses.list = list;
                self.addresses.first = 0;
                self.addresses.known_since = now.mono;
            }
            // The last good addresses are kept: most name servers' troubles pass.
            Err(why) if self.addresses.list.is_empty() => {
                for lane in 0..self.lanes.len() {
                    if self.lanes[lane].asking.is_some() && self.lanes[lane].conn.is_none() {
                        self.fail(lane, Fault::Resolve(why.clone()), desk, now);
                    }
                }
            }
            Err(why) => log::warn!("{}: {why}; keeping the known addresses", self.config.id),
        }
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].asking.is_some() && self.lanes[lane].conn.is_none() {
                self.connect(lane, conns, desk, now);
            }
        }
        self.start_due(conns, desk, now);
    }

    /// Takes in what happened to a lane's connection. `true`: a task has ended.
    fn handle(
        &mut self,
        lane: usize,
        key: Key,
        event: Event<'_>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        if self.lanes[lane].conn != Some(key) {
            return false;
        }
        let ended = match event {
            Event::Connected => {
                self.lanes[lane].connected = true;
                return false;
            }
            Event::Sent(count) => {
                if let Some(asking) = &mut self.lanes[lane].asking {
                    asking.advance(count, now);
                }
                return false;
            }
            Event::Received(bytes) => {
                desk.status.bytes_received += bytes.len() as u64;
                match self.receive(lane, bytes, desk) {
                    Ok(None) => return false,
                    Ok(Some(keep_alive)) => {
                        if !keep_alive {
                            self.hang_up(lane, desk);
                        }
                        self.succeed(lane, desk, now);
                        true
                    }
                    Err(fault) => {
                        self.hang_up(lane, desk);
                        self.fail(lane, fault, desk, now);
                        true
                    }
                }
            }
            Event::Eof => self.lost(lane, None, conns, desk, now),
            Event::Failed(kind) => self.lost(lane, Some(kind), conns, desk, now),
        };
        self.start_due(conns, desk, now);
        ended
    }

    fn receive(
        &mut self,
        lane: usize,
        bytes: &[u8],
        desk: &mut Desk<'_>,
    ) -> Result<Option<bool>, Fault> {
        match &mut self.lanes[lane].asking {
            Some(asking) => {
                asking.receive(bytes, self.id, &desk.market.catalog, &desk.config.limits)
            }
            // Bytes that nobody asked for: the next answer could not be told from them.
            None => Err(Fault::CutShort),
        }
    }

    /// A connection has ended, or never came to be.
    fn lost(
        &mut self,
        lane: usize,
        kind: Option<ErrorKind>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        let was_connected = self.lanes[lane].connected;
        self.hang_up(lane, desk);
        let Some(asking) = &mut self.lanes[lane].asking else {
            return false;
        };
        if !was_connected {
            asking.tried += 1;
            if asking.tried < self.addresses.list.len() {
                self.addresses.first = (self.addresses.first + 1) % self.addresses.list.len();
                self.connect(lane, conns, desk, now);
                return false;
            }
            // None of them answers: perhaps the name has moved.
            self.addresses.known_since = Mono::default();
            let fault = Fault::Connect(kind.unwrap_or(ErrorKind::ConnectionRefused));
            self.fail(lane, fault, desk, now);
            return true;
        }
        if !asking.fresh && !asking.has_begun() {
            asking.rewind();
            self.connect(lane, conns, desk, now);
            return false;
        }
        match (kind, asking.end()) {
            (None, Ok(())) => self.succeed(lane, desk, now),
            (None, Err(fault)) => self.fail(lane, fault, desk, now),
            (Some(kind), _) => self.fail(lane, Fault::Broken(kind), desk, now),
        }
        true
    }

    /// Deadlines that have passed, tasks that are due. `true`: a task has ended.
    pub fn handle_timeout(
        &mut self,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        let mut ended = false;
        for lane in 0..self.lanes.len() {
            let late = |asking: &Asking| asking.deadline <= now.mono;
            if self.lanes[lane].asking.as_deref().is_some_and(late) {
                self.hang_up(lane, desk);
                self.fail(lane, Fault::Timeout, desk, now);
                ended = true;
            }
        }
        self.start_due(conns, desk, now);
        ended
    }

    /// Applies one slice of the items at hand. `true`: the last one.
    pub fn work(&mut self, conns: &mut Table<Conn>, desk: &mut Desk<'_>, now: Now) -> bool {
        let done = match &mut self.applying {
            Some(Applying::Tickers(items)) => {
                let exchange = desk.status.exchange_time(now);
                for (symbol, ticker) in items.take(TICKERS_A_SLICE) {
                    apply_ticker(self.id, symbol, ticker, exchange, desk, now);
                }
                items.len() == 0
            }
            Some(Applying::Markets(items)) => {
                for info in items.take(MARKETS_A_SLICE) {
                    desk.market.catalog.list(self.id, info);
                }
                items.len() == 0
            }
            None => return false,
        };
        if done {
            match self.applying.take() {
                Some(Applying::Tickers(_)) => {
                    desk.market.quotes.end_poll(self.id, now);
                    desk.status.quotes_polled = true;
                }
                Some(Applying::Markets(_)) => self.listed(desk, now),
                None => {}
            }
            self.start_due(conns, desk, now);
        }
        done
    }

    /// Starts every task that is due and has a free lane, then works out when to look again.
    fn start_due(&mut self, conns: &mut Table<Conn>, desk: &mut Desk<'_>, now: Now) {
        let mut next = None;
        while let Some(lane) = self.lanes.iter().position(|lane| lane.asking.is_none()) {
            match self.plan(desk, now) {
                Some((when, task)) if when <= now.mono => {
                    self.start(lane, task, conns, desk, now);
                }
                planned => {
                    next = planned.map(|(when, _)| when);
                    break;
                }
            }
        }
        let deadlines = self
            .lanes
            .iter()
            .filter_map(|lane| Some(lane.asking.as_ref()?.deadline));
        self.wake = deadlines.chain(next).min();
        desk.status.next_poll = self.tickers;
        desk.status.next_poll_at = Some(on_wall(self.tickers, now));
    }

    /// The most urgent task that may start now, or else the first that may start later.
    fn plan(&self, desk: &Desk<'_>, now: Now) -> Option<(Mono, Task)> {
        let busy = self
            .lanes
            .iter()
            .filter(|lane| lane.asking.is_some())
            .count();
        // A failing source gets one request at a time.
        if self.failures > 0 && busy > 0 || self.applying.is_some() {
            return None;
        }
        let gate = |due: Mono| due.max(self.backoff_until);
        let mut best: Option<(Mono, Task)> = None;
        let mut offer = |when: Mono, task: Task| {
            if best
                .as_ref()
                .is_none_or(|(best, _)| when.max(now.mono) < (*best).max(now.mono))
            {
                best = Some((when, task));
            }
        };
        // The order of the offers is the order of urgency: a later one wins by time alone.
        if !self.has_list && !self.is_under_way(&Task::Markets) {
            offer(gate(self.markets), Task::Markets);
        }
        if self.has_list && !self.is_under_way(&Task::Tickers) {
            offer(gate(self.tickers), Task::Tickers);
        }
        // One lane stays free for quotes, unless there is but one.
        if busy + 1 < self.lanes.len() || self.lanes.len() == 1 {
            if desk.status.clock.is_none() && !self.is_under_way(&Task::Time) {
                offer(gate(self.clock), Task::Time);
            }
            let page = self.next_page(desk, now);
            let (history, page): (bool, Option<Page>) = match page {
                Some(page) if page.urgency == Urgency::Backfill => (true, Some(page)),
                page => (false, page),
            };
            let offer_page = |offer: &mut dyn FnMut(Mono, Task)| {
                if let Some(page) = page.clone() {
                    let (series, slots) = (page.series, page.slots);
                    offer(gate(page.when), Task::Candles { series, slots });
                }
            };
            if !history {
                offer_page(&mut offer);
            }
            if self.has_list && !self.is_under_way(&Task::Markets) {
                offer(gate(self.markets), Task::Markets);
            }
            if desk.status.clock.is_some() && !self.is_under_way(&Task::Time) {
                offer(gate(self.clock), Task::Time);
            }
            if history {
                offer_page(&mut offer);
            }
        }
        best
    }

    /// The next page of candles. None before the list has come, which tells their names, and
    /// before the clock was asked, which tells which of them are closed.
    fn next_page(&self, desk: &Desk<'_>, now: Now) -> Option<Page> {
        let clock_asked = desk.status.clock.is_some() || self.clock > now.mono;
        if !self.has_list || !clock_asked || self.is_under_way(&Task::Time) {
            return None;
        }
        let exchange = desk.status.exchange_time(now);
        let rows = |interval: Stored| self.dialect.page(interval).rows;
        let newest = |key: &SeriesKey| {
            let current = key.interval.slot_of(exchange);
            let covered = (desk.market.charts.get(*key)).and_then(|series| series.covered().last());
            let page = i64::try_from(rows(key.interval)).unwrap_or(i64::MAX);
            (
                covered.map_or(current.saturating_sub(page), |last| last + 1),
                current,
            )
        };
        self.fetches.next(now, rows, newest)
    }

    fn is_under_way(&self, task: &Task) -> bool {
        let same = |asking: &Asking| asking.task.is_like(task);
        self.lanes
            .iter()
            .any(|lane| lane.asking.as_deref().is_some_and(same))
    }

    fn start(
        &mut self,
        lane: usize,
        task: Task,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) {
        match &task {
            Task::Tickers => self.tickers = next_tick(self.tickers, self.config.poll, now.mono),
            Task::Markets => self.markets = now.mono + HOURLY,
            Task::Time => self.clock = now.mono + HOURLY,
            Task::Candles { series, slots } => self.fetches.began(*series, slots.clone()),
        }
        let exchange = desk.status.exchange_time(now);
        let call = self.call(&task, desk.market, exchange);
        let target = format!("{}{}", self.url.path, self.dialect.target(&call));
        let reading = Reading::new(self.dialect, &call, Caps::from(&desk.config.limits));
        let mut request = Vec::with_capacity(256);
        write_request(&mut request, &self.url.authority(), &target);
        let deadline = now.mono + time_for(&task, self.config.timeout);
        let asking = Asking::new(task, reading, request, deadline);
        desk.status.polls += 1;
        let place = &mut self.lanes[lane];
        place.asking = Some(Box::new(asking));
        match place.conn {
            Some(key) => {
                place.asking.as_mut().expect("set just above").fresh = false;
                desk.actions.push_back(Action::Flush(key));
            }
            None => self.connect(lane, conns, desk, now),
        }
    }

    fn call<'m>(&self, task: &Task, market: &'m Market, exchange: UnixMs) -> Call<'m> {
        match task {
            Task::Markets => Call::Markets,
            Task::Time => Call::Time,
            Task::Tickers => Call::Tickers,
            Task::Candles { series, slots } => {
                let listing = market.catalog.listing(self.id, series.symbol);
                let id = listing.map_or("", |listing| listing.candle_id());
                let (from, to) = open_times(series.interval, slots);
                Call::Candles {
                    id,
                    interval: series.interval,
                    from,
                    to,
                    limit: self.dialect.page(series.interval).rows,
                    now: exchange,
                }
            }
        }
    }

    /// Opens a lane's connection, or asks for the addresses first.
    fn connect(&mut self, lane: usize, conns: &mut Table<Conn>, desk: &mut Desk<'_>, now: Now) {
        let addresses = &mut self.addresses;
        if addresses.is_old(&self.url, now.mono) && !addresses.asked {
            addresses.asked = true;
            desk.actions.push_back(Action::Resolve {
                source: self.id,
                host: self.url.host.clone(),
                port: self.url.port,
            });
        }
        let Some(address) = addresses.list.get(addresses.first).copied() else {
            return;
        };
        let source = self.id;
        let key = conns.insert(Conn::Upstream { source, lane });
        let key = key.expect("the table has a place for every lane");
        self.lanes[lane].conn = Some(key);
        self.lanes[lane].connected = false;
        desk.actions.push_back(Action::Connect(key, address));
    }

    /// Lets a lane's connection go; what is asked on it is untouched.
    fn hang_up(&mut self, lane: usize, desk: &mut Desk<'_>) {
        if let Some(key) = self.lanes[lane].conn.take() {
            self.lanes[lane].connected = false;
            desk.actions.push_back(Action::Close(key));
        }
    }

    /// The answer on a lane has come to its end.
    fn succeed(&mut self, lane: usize, desk: &mut Desk<'_>, now: Now) {
        let Some(asking) = self.lanes[lane].asking.take() else {
            return;
        };
        let task = asking.task.clone();
        let answered = match asking.finish(now) {
            Ok(answered) => answered,
            Err(fault) => return self.failed(task, fault, desk, now),
        };
        let status = &mut desk.status;
        status.ok += 1;
        status.rejected += answered.rejected;
        status.last_success_at = Some(now.unix);
        status.last_latency_ms = Some(now.mono.since(answered.sent_at.mono).as_millis() as u64);
        if self.failures > 0 && (task == Task::Tickers || !status.quotes_polled) {
            self.failures = 0;
            log::info!("{}: answers again", self.config.id);
        }
        if self.failures == 0 {
            status.state = SourceState::Up;
            status.backoff_until = None;
        }
        self.apply(answered, desk, now);
    }

    fn apply(&mut self, answered: Answered, desk: &mut Desk<'_>, now: Now) {
        desk.market.quotes.count_rejected(match answered.task {
            Task::Tickers => answered.rejected,
            _ => 0,
        });
        match answered.staged {
            Staged::Tickers(items, _) => {
                self.applying = Some(Applying::Tickers(items.into_iter()));
            }
            Staged::Markets(items) => {
                desk.market.catalog.begin_list(self.id);
                self.applying = Some(Applying::Markets(items.into_iter()));
            }
            Staged::Time(time) => {
                if let Some(time) = time {
                    self.set_clock(time, desk, now);
                }
            }
            Staged::Candles(rows) => {
                let Task::Candles { series: key, slots } = answered.task else {
                    return;
                };
                // Closed by the exchange's clock when the request left: later it may have closed
                // one more, but then what it sent may be older than that.
                let closed_before = desk.status.exchange_time(answered.sent_at);
                let exchange = desk.status.exchange_time(now);
                let depth = desk.config.history.of(key.interval).backfill;
                let charts = &mut desk.market.charts;
                if let Some(written) = charts.answered(key, slots, &rows, closed_before) {
                    desk.status.rejected += written.rejected as u64;
                }
                // What is over the cap beyond this goes with the next answer.
                charts.trim();
                match charts.get(key) {
                    Some(series) => self.fetches.answered(key, series, depth, exchange, now),
                    None => self.fetches.close(key),
                }
            }
        }
    }

    /// The exchange's time has come. It was taken before the answer left, so it is a lower bound,
    /// by at most one round trip.
    fn set_clock(&mut self, time: UnixMs, desk: &mut Desk<'_>, now: Now) {
        desk.status.clock = Some(time.0 - (now.mono.0 / 1000) as i64);
        let offset = now.unix - time;
        if offset.abs() > CLOCK_OFFSET_MS {
            log::warn!(
                "{}: this machine's clock is {} ms {} the exchange's; candles follow the exchange's",
                self.config.id,
                offset.abs(),
                if offset > 0 { "ahead of" } else { "behind" },
            );
        }
    }

    /// The market list is in place: tracked markets may have come and gone.
    fn listed(&mut self, desk: &mut Desk<'_>, now: Now) {
        let change = match desk.market.catalog.end_list(self.id, now.unix) {
            Ok(change) => change,
            Err(_) => return self.failed(Task::Markets, Fault::Empty, desk, now),
        };
        for symbol in &change.removed {
            desk.market.quotes.drop_symbol(self.id, *symbol);
        }
        let followed: Vec<SeriesKey> = self.fetches.series().collect();
        for key in followed {
            if change.removed.contains(&key.symbol) {
                self.fetches.close(key);
                desk.market.charts.close(key);
            }
        }
        if !self.has_list {
            self.has_list = true;
            self.tickers = now.mono;
            let tracked = desk.market.catalog.tracked_by(self.id);
            log::info!("{}: tracks {tracked} markets", self.config.id);
            for symbol in self.named(desk.market) {
                for interval in Stored::ALL {
                    let source = self.id;
                    self.follow(
                        SeriesKey {
                            source,
                            symbol,
                            interval,
                        },
                        desk,
                        now,
                    );
                }
            }
        }
    }

    /// The symbols that the configuration names for this source.
    fn named(&self, market: &Market) -> Vec<SymbolId> {
        let find = |name: &String| match market.catalog.find(name.as_bytes()) {
            Lookup::Known(symbol) => Some(symbol),
            Lookup::Unknown | Lookup::Malformed => None,
        };
        self.config.symbols.iter().filter_map(find).collect()
    }

    /// Follows a series from now on. `false`: there are too many, or the exchange does not have it.
    fn follow(&mut self, series: SeriesKey, desk: &mut Desk<'_>, now: Now) -> bool {
        let known = desk
            .market
            .catalog
            .listing(self.id, series.symbol)
            .is_some();
        if !known || !desk.market.charts.open(series) {
            return false;
        }
        self.fetches.open(series, now);
        true
    }

    fn fail(&mut self, lane: usize, fault: Fault, desk: &mut Desk<'_>, now: Now) {
        if let Some(asking) = self.lanes[lane].asking.take() {
            self.failed(asking.task, fault, desk, now);
        }
    }

    /// A task has failed: it changes nothing that is served.
    fn failed(&mut self, task: Task, fault: Fault, desk: &mut Desk<'_>, now: Now) {
        let status = &mut desk.status;
        let blame = fault.blame();
        status.errors += 1;
        status.timeouts += u64::from(matches!(fault, Fault::Timeout));
        status.rate_limited += u64::from(blame == Blame::RateLimit);
        status.last_error_at = Some(now.unix);
        let what = describe(&task, desk.market);
        let text = format!("{what}: {fault}");
        if self.failures == 0 || status.last_error.as_deref() != Some(&text) {
            log::warn!("{}: {text}", self.config.id);
        }
        status.last_error = Some(text);
        // Nothing is served without quotes, and no quotes without the list: their faults are
        // the source's, whatever they say about.
        let vital = task == Task::Tickers || task == Task::Markets && !self.has_list;
        match &task {
            Task::Candles { series, .. } => {
                self.fetches.failed(*series, blame == Blame::Call, now);
            }
            Task::Markets => self.markets = now.mono + HOURLY_RETRY,
            Task::Time => self.clock = now.mono + HOURLY_RETRY,
            Task::Tickers => {}
        }
        if vital || blame != Blame::Call {
            self.back_off(&fault, desk, now);
        }
        if !self.has_list {
            self.markets = now.mono;
        }
    }

    /// Waits before the next try: `pollMs`, doubled with each failure in a row, at most
    /// `limits.backoffMax`, less up to a tenth so that many daemons do not come back at once; or
    /// for as long as the exchange asks.
    fn back_off(&mut self, fault: &Fault, desk: &mut Desk<'_>, now: Now) {
        self.failures = self.failures.saturating_add(1);
        let doubled = self.config.poll * 2u32.saturating_pow((self.failures - 1).min(16));
        let step = doubled.min(desk.config.limits.backoff_max);
        let step = step - Duration::from_micros(self.rng.below(step.as_micros() as u64 / 10));
        let asked = match fault {
            Fault::Status { retry_after, .. } => retry_after.map(|after| match after {
                RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
                RetryAfter::Date(date) => Duration::from_millis((date - now.unix).max(0) as u64),
            }),
            _ => None,
        };
        let wait = asked.unwrap_or(step).max(step).min(RETRY_AFTER_MAX);
        self.backoff_until = now.mono + wait;
        self.fetches.give_up_asked();
        let status = &mut desk.status;
        let silent = status.last_success_at.map_or(i64::MAX, |at| now.unix - at);
        let is_down = silent >= self.config.stale_after.as_millis() as i64
            && (status.last_success_at.is_some() || self.failures > 1);
        status.state = if is_down {
            SourceState::Down
        } else {
            SourceState::Backoff
        };
        status.backoff_until = Some(on_wall(self.backoff_until, now));
    }
}

impl Addresses {
    /// An address written as such needs no resolver.
    fn of(url: &Url) -> Addresses {
        let literal = url.host.parse::<IpAddr>().ok();
        Addresses {
            list: literal
                .map(|ip| SocketAddr::new(ip, url.port))
                .into_iter()
                .collect(),
            ..Addresses::default()
        }
    }

    fn is_old(&self, url: &Url, now: Mono) -> bool {
        let literal = url.host.parse::<IpAddr>().is_ok();
        !literal && (self.list.is_empty() || now.since(self.known_since) > ADDRESS_AGE)
    }
}

/// Puts one ticker into the market: the quote, and the forming candles of its symbol.
fn apply_ticker(
    source: SourceId,
    symbol: SymbolId,
    ticker: Ticker,
    exchange: UnixMs,
    desk: &mut Desk<'_>,
    now: Now,
) {
    let Market { quotes, charts, .. } = desk.market;
    let last = ticker.last.clone();
    match quotes.apply(source, symbol, ticker, now) {
        Ok(applied) if applied.changed => {
            charts.tick(source, symbol, &last, exchange);
        }
        Ok(_) => {}
        Err(_) => desk.status.rejected += 1,
    }
}

/// The first tick after `now` of those that began at `due`. Missed ones are skipped.
fn next_tick(due: Mono, every: Duration, now: Mono) -> Mono {
    let every = every.as_micros().max(1) as u64;
    let missed = now.0.saturating_sub(due.0) / every;
    Mono(due.0.saturating_add((missed + 1).saturating_mul(every)))
}

/// A point on the monotonic clock, as the wall clock will show it.
fn on_wall(at: Mono, now: Now) -> UnixMs {
    now.unix + ((at.0 as i64).saturating_sub(now.mono.0 as i64)) / 1000
}

/// A task in words, for the log and the metrics.
fn describe(task: &Task, market: &Market) -> String {
    match task {
        Task::Markets => "market list".to_string(),
        Task::Time => "clock".to_string(),
        Task::Tickers => "quotes".to_string(),
        Task::Candles { series, .. } => {
            let symbol = market.catalog.name(series.symbol).as_str();
            format!("{} candles of {symbol}", series.interval.name())
        }
    }
}
