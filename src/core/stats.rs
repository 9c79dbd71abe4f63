//! The figures that metrics and health report: counters, and one record for each source.
//!
//! [`Status`] owns them. The parts that do the work write them; the api reads them.

mod cluster;

pub use cluster::{ClusterSource, ClusterStatus};

use crate::config::Limits;
use crate::core::held::HeldByClients;
use crate::core::{LogStatus, ReloadStatus};
use crate::durations::{Histogram, POLL_BOUNDS_US, Requests, Turns};
use crate::exchange::RequestKind;
use crate::history::Extent;
use crate::market::{SeriesKey, SourceId};
use crate::named::named;
use crate::time::{Mono, Now, SimulatedClock, UnixMs};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// See the module's page.
#[derive(Debug, Default)]
pub struct Status {
    /// When the process began.
    pub started: Now,
    /// True once the end has begun.
    pub stopping: bool,
    /// Clients and their requests.
    pub http: HttpStatus,
    /// By `SourceId`.
    pub sources: Vec<SourceStatus>,
    /// The history file.
    pub history: HistoryStatus,
    /// The lines of the log.
    pub log: LogStatus,
    /// How often the configuration was read again.
    pub reloads: ReloadStatus,
    /// The loop's turns.
    pub turns: Turns,
    /// The streams of clients.
    pub streams: StreamStatus,
    /// How often the health of the service has changed.
    pub health_changes: u64,
    /// What waited at the end of the last turn.
    pub queues: Queues,
    /// Bytes of charts that are kept joined into one buffer (an upper bound).
    pub joined_bytes: usize,
    /// The cluster, if there is one.
    pub cluster: Option<ClusterStatus>,
}

impl Status {
    /// The status of a process that has just started, with sources of these ids.
    pub fn new<'a>(sources: impl Iterator<Item = &'a str>, now: Now) -> Status {
        Status {
            started: now,
            sources: sources.map(SourceStatus::new).collect(),
            ..Status::default()
        }
    }

    /// The sources that are configured, in the order of failover.
    pub fn running(&self) -> impl Iterator<Item = (SourceId, &SourceStatus)> {
        let all = (0..).map(SourceId).zip(&self.sources);
        all.filter(|(_, source)| !source.has_ended)
    }
}

impl Index<SourceId> for Status {
    type Output = SourceStatus;

    fn index(&self, source: SourceId) -> &SourceStatus {
        &self.sources[source.index()]
    }
}

impl IndexMut<SourceId> for Status {
    fn index_mut(&mut self, source: SourceId) -> &mut SourceStatus {
        &mut self.sources[source.index()]
    }
}

/// How much waits for a later turn of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queues {
    /// Clients with bytes to be read or sent.
    pub clients: usize,
    /// Connections to exchanges with bytes to be read or sent.
    pub upstreams: usize,
    /// Responses that wait for candles.
    pub waiting: usize,
    /// Responses that are made in parts.
    pub in_parts: usize,
    /// Bodies that wait to be compressed, or are being compressed.
    pub compressing: usize,
    /// Upstream responses that are read and not yet completely in the market.
    pub staged: usize,
}

/// How far the backfill of a source has come, in candles of all series that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    /// Candles that the configuration wants and the exchange serves.
    pub wanted: u64,
    /// Wanted candles that are known.
    pub done: u64,
    /// The pace of the last minute; 0 if nothing is missing.
    pub per_minute: u64,
    /// When it will be done at this pace.
    pub ends_at: Option<UnixMs>,
}

/// The state of the history file.
#[derive(Clone, Debug, Default)]
pub struct HistoryStatus {
    /// True if one is configured.
    pub enabled: bool,
    /// True if it cannot be used.
    pub unusable: bool,
    /// True if the file was removed while in use, and the new file does not hold all of memory yet.
    pub lost: bool,
    /// True if the last write to it failed, or is under way and takes very long.
    pub write_failed: bool,
    /// The last fault, in one line.
    pub why: String,
    /// What it holds of each series, by the last message of the disk thread.
    pub stored: BTreeMap<SeriesKey, Extent>,
    /// Writes that failed since the start.
    pub persist_errors: u64,
    /// Candles inserted since the start.
    pub inserted: u64,
    /// Candles whose numbers changed since the start.
    pub updated: u64,
    /// Candles evicted for their age since the start.
    pub evicted: u64,
    /// Size in bytes, without its free pages.
    pub bytes: u64,
}

/// Clients and their requests.
#[derive(Clone, Debug, Default)]
pub struct HttpStatus {
    /// Requests that got a response, also those that could not be read.
    pub requests: u64,
    /// Responses by the first digit of their status, 2 to 5.
    pub classes: [u64; 4],
    /// Responses 304.
    pub not_modified: u64,
    /// Requests that could not be understood.
    pub bad_requests: u64,
    /// Connections closed by a deadline while they were in use.
    pub timeouts: u64,
    /// Requests of refused connections that got a 503, and connections dropped at once.
    pub rejected: u64,
    /// Requests refused by the rate limit.
    pub rate_limited: u64,
    /// Addresses that the rate limit forgot for others.
    pub rates_forgotten: u64,
    /// What all clients make marketd hold now.
    pub held: HeldByClients,
    /// Bytes handed to the kernel.
    pub bytes_out: u64,
    /// Client connections now.
    pub open: u64,
    /// Client connections since the start.
    pub total: u64,
    /// Closed connections by `CloseReason`.
    pub closes: [u64; super::CloseReason::NAMES.len()],
    /// Responses by endpoint, class of status and duration.
    pub durations: Requests,
}

impl HttpStatus {
    /// True if a response that takes several turns is refused, because other responses that are unsent or
    /// being made hold half of `limits.outputTotalBytes`. The other half is for responses that take one turn.
    /// `own`: the bytes that the response holds already.
    pub fn is_overloaded(&self, own: u64, limits: &Limits) -> bool {
        (self.held.pending + self.held.making).saturating_sub(own) >= limits.output_total as u64 / 2
    }

    /// About how many bytes clients make marketd hold.
    pub fn client_bytes(&self) -> u64 {
        self.held.bytes(self.open)
    }
}

/// The streams of clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStatus {
    /// Streams now.
    pub open: u64,
    /// Streams since the start.
    pub opened: u64,
    /// Requests for a stream that were refused, at a limit or during the shutdown.
    pub refused: u64,
    /// Events that were written.
    pub events: u64,
    /// Changes that a reader was not told of, because a newer one came first.
    pub conflated: u64,
    /// Ended streams by `CloseReason`.
    pub closes: [u64; super::CloseReason::NAMES.len()],
}

named! {
    /// The state of a source.
    #[derive(Default)]
    pub enum SourceState {
        /// No quotes have come yet, and nothing has failed since the last good response.
        #[default]
        Starting "starting"
        /// Quotes of this source are served, and it does not back off.
        Up "up"
        /// The source has failed, and no quotes have come since; the next request waits.
        Backoff "backoff"
        /// Like `Backoff`, and no poll of quotes has succeeded for `staleAfterMs` or longer. Without any good
        /// poll, the time counts from the start. No quote of this source is fresh.
        Down "down"
    }
}

/// The public record of one source.
#[derive(Clone, Debug, Default)]
pub struct SourceStatus {
    /// The id of the source in the configuration.
    pub id: Box<str>,
    /// True if it is configured no longer.
    pub has_ended: bool,
    /// By stored interval: true if its exchange has such candles.
    pub intervals: [bool; 3],
    /// Its state.
    pub state: SourceState,
    /// Requests sent, of every kind.
    pub polls: u64,
    /// Requests answered well.
    pub ok: u64,
    /// Requests that failed, for whatever reason.
    pub errors: u64,
    /// Requests that failed by a deadline.
    pub timeouts: u64,
    /// Requests that the exchange refused as too many.
    pub rate_limited: u64,
    /// When a request was last answered well.
    pub last_success_at: Option<UnixMs>,
    /// When a request last failed.
    pub last_error_at: Option<UnixMs>,
    /// Why that request failed.
    pub last_error: Option<String>,
    /// From a request's first byte to its response's last, of the last request answered well.
    pub last_latency_ms: Option<u64>,
    /// These durations, of all requests answered well.
    pub latencies: Histogram,
    /// Body and head bytes of all responses.
    pub bytes_received: u64,
    /// Bytes of all requests.
    pub bytes_sent: u64,
    /// How many tickers a request brings: `all`, `several` or `one`. Empty until quotes are due.
    pub plan: &'static str,
    /// When the next poll of quotes is due.
    pub next_poll_at: Option<UnixMs>,
    /// Until when its quotes may be cached: until then, but not longer than they are fresh.
    pub cacheable_until: Mono,
    /// Until when nothing is requested.
    pub backoff_until: Option<UnixMs>,
    /// True if a poll of quotes has succeeded since the start.
    pub quotes_polled: bool,
    /// When a request for quotes was last answered well.
    pub quotes_at: Option<UnixMs>,
    /// Since when requests for quotes fail. `None`: the last one did not.
    pub failing_since: Option<UnixMs>,
    /// By `RequestKind`: failures in a row that made the kind back off.
    pub failing: [u64; RequestKind::NAMES.len()],
    /// By `RequestKind`: since when the kind backs off. `None`: it does not.
    pub kind_failing_since: [Option<UnixMs>; RequestKind::NAMES.len()],
    /// By `RequestKind`: why one last failed.
    pub kind_errors: [Option<String>; RequestKind::NAMES.len()],
    /// How long the last round of quotes took, market by market, or the running one if that is longer.
    pub round_ms: Option<u64>,
    /// True if `round_ms` is more than `staleAfterMs`.
    pub is_round_slow: bool,
    /// Units of the exchange's limit that others have spent, if they are enough to report.
    pub spent_by_others: Option<u64>,
    /// The exchange's clock: its milliseconds since the epoch at our `Mono` zero. `None` until it was told.
    pub clock: Option<i64>,
    /// The clock of the demo exchange, which no response has to tell.
    pub given_clock: Option<SimulatedClock>,
    /// Why the clock is in doubt. `None` also at the start, until some witness has told a time.
    pub clock_doubt: Option<ClockDoubt>,
    /// Items of responses that were refused.
    pub rejected: u64,
    /// How far its backfill has come.
    pub backfill: Backfill,
    /// Units of the exchange's limit that were spent.
    pub budget_spent: u64,
    /// Units that may be spent at once, as of the last response.
    pub budget_left: u64,
    /// How often a symbol moved on to another source because this one had no fresh quote of it.
    pub failovers: u64,
    /// How often a symbol returned to this source.
    pub returns: u64,
}

impl SourceStatus {
    /// A source that has done nothing yet.
    pub fn new(id: &str) -> SourceStatus {
        let latencies = Histogram::new(&POLL_BOUNDS_US);
        SourceStatus { id: id.into(), latencies, ..SourceStatus::default() }
    }

    /// The exchange's time now. It follows our monotonic clock from the last time that the
    /// exchange told its own, so setting this machine's clock does not move it.
    pub fn exchange_time(&self, now: Now) -> UnixMs {
        match (self.given_clock, self.clock) {
            (Some(clock), _) => clock.time(now.mono),
            (None, Some(zero)) => UnixMs(zero + now.mono.as_ms()),
            (None, None) => now.unix,
        }
    }

    /// True if the exchange's time is known, and not in doubt.
    pub fn knows_time(&self) -> bool {
        let is_told = self.given_clock.is_some() || self.clock.is_some();
        is_told && self.clock_doubt.is_none()
    }

    /// How many seconds pass on the exchange's clock in one of ours.
    pub fn clock_speed(&self) -> u32 {
        self.given_clock.map_or(1, |clock| clock.speed)
    }

    /// The exchange's time. While it is in doubt, the earliest time by any witness, if that is earlier. A
    /// candle that has ended by then is closed.
    pub fn sure_time(&self, now: Now) -> UnixMs {
        let doubted = self.clock_doubt.as_ref().map(|it| it.earliest);
        let sure = doubted.map(|zero| UnixMs(zero) + now.mono.as_ms());
        sure.unwrap_or(UnixMs(i64::MAX)).min(self.exchange_time(now))
    }
}

/// A doubt about the exchange's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockDoubt {
    /// What speaks for and against it. Empty while the first time call is on its way.
    pub why: Box<str>,
    /// The earliest that a witness tells, as in [`SourceStatus::clock`].
    pub earliest: i64,
}

impl ClockDoubt {
    /// True if people are told of it.
    pub fn is_told(&self) -> bool {
        !self.why.is_empty()
    }
}

/// A point on the monotonic clock, as the wall clock will show it.
pub fn on_wall(at: Mono, now: Now) -> UnixMs {
    now.unix + ((at.0 as i64).saturating_sub(now.mono.0 as i64)) / 1000
}
