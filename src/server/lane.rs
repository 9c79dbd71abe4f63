//! One connection to an exchange, and the request that is under way on it.
//!
//! Owns the request's bytes, the answer's framing, the reading of its body, and the items read so
//! far: *staged*, not yet applied. So an answer that breaks off changes nothing that is served.
//! Items are decoded as bytes come; the body is never held whole.
//!
//! It never decides when to ask what: [`super::poller`] does.
//!
//! ```text
//! (the way there: `dial`) -> Busy -> Idle -> Busy -> ... -> Closed
//! ```
//!
//! A request on a connection that was kept alive, and that ends before its answer has begun, is no
//! failure: the exchange had closed it while it was idle (RFC 9112, 9.3.1). Its task is due again
//! at once, and costs what any other does, for the exchange may have counted the first one.

use super::dial::Dial;
use super::fault::Fault;
use crate::config::Limits;
use crate::exchange::{ReadError, Reading, Reject, Sink};
use crate::http::{BodyReader, Framing, HeadLimits, RetryAfter, parse_response};
use crate::interval::Stored;
use crate::market::{Catalog, Reported, SeriesKey, SourceId, SymbolId};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::table::Key;
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;

/// What is asked of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Its market list.
    Markets,
    /// Its clock.
    Time,
    /// All its tickers.
    Tickers,
    /// The ticker of one market.
    Ticker(SymbolId),
    /// The figures of 24 hours of one market, where its ticker lacks them.
    Stats(SymbolId),
    /// Candles of these slots.
    Candles {
        /// Of which series.
        series: SeriesKey,
        /// Slots of the series' interval.
        slots: Range<i64>,
    },
}

impl Task {
    /// Whether it brings quotes.
    pub fn is_quotes(&self) -> bool {
        matches!(self, Task::Tickers | Task::Ticker(_))
    }

    /// Whether both ask for the same kind of thing.
    pub fn is_like(&self, other: &Task) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// See the module's page.
#[derive(Default)]
pub struct Lane {
    /// Its connection, while there is one.
    pub conn: Option<Key>,
    /// What is under way.
    pub asking: Option<Box<Asking>>,
    /// How far the connection has come.
    pub dial: Dial,
}

impl Lane {
    /// When something is to be done about it in any case.
    pub fn due(&self) -> Option<Mono> {
        let deadline = self.asking.as_ref()?.deadline;
        Some(
            self.dial
                .until()
                .map_or(deadline, |until| until.min(deadline)),
        )
    }
}

/// A request under way.
pub struct Asking {
    /// What is asked.
    pub task: Task,
    /// When it was decided to ask.
    pub began: Mono,
    /// When the request went to the kernel.
    pub sent_at: Option<Now>,
    /// When it has taken too long.
    pub deadline: Mono,
    /// Whether the connection was opened for this request.
    pub fresh: bool,
    request: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
    head: Option<Head>,
    reading: Reading,
    /// What has been read so far.
    pub staged: Staged,
    /// Bytes of the answer so far.
    pub received: u64,
    /// Items refused so far.
    pub rejected: u64,
    /// Whether one of them is a candle of nobody knows which slot.
    undated: bool,
    /// The field of the answer's head that tells how the budget stands, and what it told.
    meter: Option<&'static str>,
    /// Taken by the poller.
    pub metered: Option<u64>,
    read_error: Option<ReadError>,
}

#[derive(Debug)]
struct Head {
    status: u16,
    keep_alive: bool,
    retry_after: Option<RetryAfter>,
    body: BodyReader,
}

/// Items read and not yet applied.
#[derive(Debug)]
pub enum Staged {
    /// Of tracked markets.
    Tickers(Vec<(SymbolId, Ticker)>, u64),
    /// With the exchange's own word on whether each is closed.
    Candles(Vec<Reported>),
    /// So many. They stand in the catalog already, which serves none of them before the list ends.
    Markets(usize),
    /// The exchange's clock.
    Time(Option<UnixMs>),
    /// One market's 24 hours.
    Stats(Option<Stats>),
}

/// A good answer.
#[derive(Debug)]
pub struct Answered {
    /// What was asked.
    pub task: Task,
    /// When it was sent to the exchange.
    pub sent_at: Now,
    /// What came.
    pub staged: Staged,
    /// Items refused.
    pub rejected: u64,
}

impl Asking {
    /// A request that is still to be sent.
    pub fn new(
        task: Task,
        reading: Reading,
        request: Vec<u8>,
        meter: Option<&'static str>,
        (began, deadline): (Mono, Mono),
    ) -> Asking {
        let staged = match task {
            Task::Markets => Staged::Markets(0),
            Task::Time => Staged::Time(None),
            Task::Tickers | Task::Ticker(_) => Staged::Tickers(Vec::new(), 0),
            Task::Stats(_) => Staged::Stats(None),
            Task::Candles { .. } => Staged::Candles(Vec::new()),
        };
        Asking {
            reading,
            task,
            began,
            sent_at: None,
            deadline,
            fresh: true,
            request,
            sent: 0,
            inbox: Vec::new(),
            head: None,
            staged,
            received: 0,
            rejected: 0,
            undated: false,
            meter,
            metered: None,
            read_error: None,
        }
    }

    /// Bytes of the request that are still to be sent.
    pub fn outgoing(&self) -> &[u8] {
        &self.request[self.sent..]
    }

    /// Takes note that so many bytes were sent.
    pub fn advance(&mut self, count: usize, now: Now) {
        self.sent += count;
        self.sent_at = self.sent_at.or(Some(now));
    }

    /// Whether the exchange has said anything yet.
    pub fn has_begun(&self) -> bool {
        self.received > 0
    }

    /// Whether the exchange may have heard of it.
    pub fn has_left(&self) -> bool {
        self.sent > 0
    }

    /// Takes in bytes of the answer. `Ok(Some(keep_alive))`: it has come to its end.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        source: SourceId,
        catalog: &mut Catalog,
        limits: &Limits,
    ) -> Result<Option<bool>, Fault> {
        self.received += bytes.len() as u64;
        if self.head.is_some() {
            return self.receive_body(bytes, source, catalog);
        }
        self.inbox.extend_from_slice(bytes);
        let head_limits = HeadLimits::upstream(limits);
        let parsed = parse_response(&self.inbox, &head_limits).map_err(Fault::Head)?;
        let Some(response) = parsed else {
            return Ok(None);
        };
        let metered = self.meter.and_then(|name| response.fields.get(name));
        self.metered = metered.and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
        let (head, used) = (response.head, response.used);
        let cap = limits.upstream_body_bytes as u64;
        self.head = Some(Head {
            status: head.status,
            keep_alive: head.keep_alive && head.framing != Framing::UntilClose,
            retry_after: head.retry_after,
            body: BodyReader::new(head.framing, cap).map_err(Fault::Framing)?,
        });
        let inbox = std::mem::take(&mut self.inbox);
        self.receive_body(&inbox[used..], source, catalog)
    }

    fn receive_body(
        &mut self,
        mut bytes: &[u8],
        source: SourceId,
        catalog: &mut Catalog,
    ) -> Result<Option<bool>, Fault> {
        let head = self.head.as_mut().expect("the body comes after the head");
        let mut stager = Stager {
            source,
            catalog,
            task: &self.task,
            staged: &mut self.staged,
            rejected: &mut self.rejected,
            undated: &mut self.undated,
            wanted: None,
        };
        loop {
            let piece = head.body.decode(bytes).map_err(Fault::Framing)?;
            // An error page need not be JSON: its status says enough. So a fault of the body is
            // kept until the end, when the status has its say first.
            if self.read_error.is_none()
                && let Err(error) = self.reading.feed(piece.data, &mut stager)
            {
                self.read_error = Some(error);
            }
            if stager.is_overfull() {
                return Err(Fault::TooMany);
            }
            if self.read_error.is_some() && is_success(head.status) {
                break;
            }
            bytes = &bytes[piece.used..];
            if piece.done {
                return Ok(Some(head.keep_alive && bytes.is_empty()));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
        match self.read_error.take() {
            Some(error) => Err(Fault::Body(error)),
            None => Ok(None),
        }
    }

    /// The exchange has closed. `Ok`: that was the end of the answer.
    pub fn end(&mut self) -> Result<(), Fault> {
        match &self.head {
            Some(head) => head.body.finish_at_close().map_err(|_| Fault::CutShort),
            None => Err(Fault::CutShort),
        }
    }

    /// What is wrong when the answer does not come to its end: `fault`, unless its head has come
    /// and says more.
    pub fn cut(&self, fault: Fault) -> Fault {
        match &self.head {
            Some(head) if !is_success(head.status) => Fault::Status {
                status: head.status,
                retry_after: head.retry_after,
                message: None,
            },
            _ => fault,
        }
    }

    /// What the whole answer comes to.
    pub fn finish(mut self, now: Now) -> Result<Answered, Fault> {
        let head = self.head.as_ref().expect("finished answers have a head");
        let (status, retry_after) = (head.status, head.retry_after);
        let verdict = match self.read_error.take() {
            Some(error) => Err(error),
            None => self.reading.finish(status),
        };
        if !is_success(status) {
            let message = match verdict {
                Err(error @ ReadError::Refused { .. }) => Some(error.to_string()),
                _ => None,
            };
            return Err(Fault::Status {
                status,
                retry_after,
                message,
            });
        }
        verdict.map_err(Fault::Body)?;
        if self.staged.is_empty() {
            return Err(Fault::Empty);
        }
        // It may be any of the slots that would now seem to be without a candle.
        if self.undated {
            return Err(Fault::Undated);
        }
        Ok(Answered {
            task: self.task,
            sent_at: self.sent_at.unwrap_or(now),
            staged: self.staged,
            rejected: self.rejected,
        })
    }
}

impl Staged {
    /// Whether a list that cannot be empty is. No candles is a fair answer: nobody traded.
    fn is_empty(&self) -> bool {
        match self {
            Staged::Tickers(_, seen) => *seen == 0,
            Staged::Candles(_) => false,
            Staged::Markets(count) => *count == 0,
            Staged::Time(time) => time.is_none(),
            Staged::Stats(stats) => stats.is_none(),
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Takes items from the reading and stages them.
struct Stager<'a> {
    source: SourceId,
    catalog: &'a mut Catalog,
    task: &'a Task,
    staged: &'a mut Staged,
    rejected: &'a mut u64,
    undated: &'a mut bool,
    /// The symbol of the ticker that was last asked about.
    wanted: Option<SymbolId>,
}

impl Stager<'_> {
    /// Whether there are so many items that most of them must be repeated: more than two for each
    /// symbol, or for each slot of candles. A body of any length is staged in bounded room.
    fn is_overfull(&self) -> bool {
        match (&*self.staged, self.task) {
            (Staged::Tickers(list, _), _) => list.len() > 2 * self.catalog.known().len(),
            (Staged::Candles(list), Task::Candles { slots, .. }) => {
                list.len() as u64 > 2 * slots.end.abs_diff(slots.start)
            }
            _ => false,
        }
    }
}

impl Sink for Stager<'_> {
    fn wants(&mut self, ticker_id: &str) -> bool {
        if let Staged::Tickers(_, seen) = self.staged {
            *seen += 1;
        }
        self.wanted = self.catalog.by_ticker_id(self.source, ticker_id);
        self.wanted.is_some()
    }

    fn ticker(&mut self, _ticker_id: &str, ticker: Ticker) {
        if let (Staged::Tickers(list, _), Some(symbol)) = (&mut *self.staged, self.wanted) {
            list.push((symbol, ticker));
        }
    }

    fn candle(&mut self, candle: Candle, closed: Option<bool>) {
        // Some exchanges answer with more than was asked for.
        if let (Staged::Candles(list), Task::Candles { series, slots }) =
            (&mut *self.staged, self.task)
            && slots.contains(&series.interval.slot_of(candle.open_time))
        {
            list.push(Reported { candle, closed });
        }
    }

    fn market(&mut self, info: MarketInfo) {
        if let Staged::Markets(count) = self.staged {
            *count += 1;
            self.catalog.list(self.source, info);
        }
    }

    fn stats(&mut self, _ticker_id: &str, stats: Stats) {
        if let Staged::Stats(slot) = self.staged {
            *slot = Some(stats);
        }
    }

    fn time(&mut self, time: UnixMs) {
        if let Staged::Time(slot) = self.staged {
            *slot = Some(time);
        }
    }

    fn rejected(&mut self, reason: Reject<'_>) {
        log::debug!("item refused: {reason:?}");
        match (&mut *self.staged, reason.time) {
            // Without its numbers it is unsound: no word about its slot, and counted as such.
            (Staged::Candles(_), Some(open_time)) => {
                return self.candle(Candle::without_numbers(open_time), None);
            }
            (Staged::Candles(_), None) => *self.undated = true,
            (Staged::Tickers(_, seen), _) => *seen += 1,
            _ => {}
        }
        *self.rejected += 1;
    }
}

/// How long a request of this kind may take. A market list is up to a hundred times the size of
/// anything else, and nobody waits for it.
pub fn time_for(task: &Task, timeout: std::time::Duration) -> std::time::Duration {
    match task {
        Task::Markets => timeout * 4,
        _ => timeout,
    }
}

/// The page of a series that ends before `end`: at most `rows` slots of `range`, the newest.
pub fn newest_page(range: &Range<i64>, rows: usize) -> Range<i64> {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX).max(1);
    range.start.max(range.end.saturating_sub(rows))..range.end
}

/// From the first slot's open time to the last slot's, both inclusive: what exchanges are asked.
pub fn open_times(interval: Stored, slots: &Range<i64>) -> (UnixMs, UnixMs) {
    (
        interval.open_of(slots.start),
        interval.open_of(slots.end - 1),
    )
}
