//! One connection to an exchange, and the request that is under way on it.
//!
//! Owns the request's bytes, the answer's framing, the reading of its body, and the items read so
//! far: *staged*, not yet applied. So an answer that breaks off changes nothing that is served.
//! Items are decoded as bytes come; the body is never held whole. What comes packed is unpacked
//! slice by slice ([`Asking::unpack`]), and until that is done nothing more is read.
//!
//! It never decides when to ask what: `sources` does.
//!
//! ```text
//! (the way there: `dial`) -> Busy -> Idle -> Busy -> ... -> Closed
//! ```
//!
//! A request on a connection that was kept alive, and that ends before its answer has begun, is no
//! failure: the exchange had closed it while it was idle (RFC 9112, 9.3.1). Its task is due again
//! at once, and costs what any other does, for the exchange may have counted the first one.

use crate::config::Limits;
use crate::core::sources::dial::Dial;
use crate::core::sources::fault::Fault;
pub use crate::core::sources::staged::Staged;
use crate::core::sources::staged::Stager;
use crate::core::sources::task::Task;
use crate::exchange::{ReadError, Reading};
use crate::http::{
    BodyReader, Decompressor, Encoding, Framing, HeadLimits, RetryAfter, parse_response, read_date,
};
use crate::interval::Stored;
use crate::market::{Catalog, SourceId};
use crate::table::Key;
use crate::time::{Mono, Now, UnixMs};
use std::ops::Range;

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
    /// Whether what has come of an answer is still to be unpacked.
    pub fn is_unpacking(&self) -> bool {
        self.asking.as_deref().is_some_and(Asking::is_unpacking)
    }

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
    /// When the answer was made, by its head. Taken by the poller.
    pub date: Option<UnixMs>,
    read_error: Option<ReadError>,
}

struct Head {
    status: u16,
    keep_alive: bool,
    retry_after: Option<RetryAfter>,
    body: BodyReader,
    packing: Packing,
    /// Whether the connection can carry another request, once the last byte has come.
    ended: Option<bool>,
}

/// What is between the body's bytes and the reading.
enum Packing {
    Nothing,
    Gzip(Box<Decompressor>),
    /// The body of an error that cannot be unpacked: its status says enough.
    Unreadable,
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
    /// Whether one of them is a candle of nobody knows which slot.
    pub undated: bool,
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
        let staged = Staged::nothing_of(&task);
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
            date: None,
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

    /// The status of the response, once its head has come.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
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
        self.date = response.fields.get("date").and_then(read_date);
        let (head, used) = (response.head, response.used);
        let cap = limits.upstream_body_bytes as u64;
        let packing = match head.content_encoding {
            Encoding::Identity => Packing::Nothing,
            Encoding::Gzip => Packing::Gzip(Box::new(Decompressor::new(cap))),
            Encoding::Other if is_success(head.status) => {
                return Err(Fault::encoding(response.fields));
            }
            Encoding::Other => Packing::Unreadable,
        };
        self.head = Some(Head {
            status: head.status,
            keep_alive: head.keep_alive && head.framing != Framing::UntilClose,
            retry_after: head.retry_after,
            body: BodyReader::new(head.framing, cap).map_err(Fault::Framing)?,
            packing,
            ended: None,
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
        loop {
            let head = self.head.as_mut().expect("the body comes after the head");
            let piece = head.body.decode(bytes).map_err(Fault::Framing)?;
            bytes = &bytes[piece.used..];
            if piece.done {
                head.ended = Some(head.keep_alive && bytes.is_empty());
            }
            match &mut head.packing {
                Packing::Nothing => self.read(piece.data, source, catalog)?,
                Packing::Gzip(gunzip) => gunzip.push(piece.data),
                Packing::Unreadable => {}
            }
            if piece.done || bytes.is_empty() {
                return self.ended();
            }
        }
    }

    /// Whether [`Asking::unpack`] has something to do.
    pub fn is_unpacking(&self) -> bool {
        let packing = self.head.as_ref().map(|head| &head.packing);
        matches!(packing, Some(Packing::Gzip(gunzip)) if gunzip.has_more())
    }

    /// Unpacks one slice of what has come, and reads it. Answers as [`Asking::receive`] does.
    pub fn unpack(
        &mut self,
        source: SourceId,
        catalog: &mut Catalog,
    ) -> Result<Option<bool>, Fault> {
        let head = self
            .head
            .as_mut()
            .expect("what is packed comes after the head");
        let packing = std::mem::replace(&mut head.packing, Packing::Unreadable);
        if let Packing::Gzip(mut gunzip) = packing {
            match gunzip.step() {
                Ok(data) => {
                    self.read(data, source, catalog)?;
                    // Of an error page that is no JSON, the rest is not worth the work.
                    if let (Some(head), None) = (&mut self.head, &self.read_error) {
                        head.packing = Packing::Gzip(gunzip);
                    }
                }
                Err(error) if is_success(head.status) => return Err(Fault::Unpacking(error)),
                Err(_) => {}
            }
        }
        self.ended()
    }

    /// Reads what has been unpacked.
    fn read(&mut self, data: &[u8], source: SourceId, catalog: &mut Catalog) -> Result<(), Fault> {
        let mut stager = Stager {
            source,
            catalog,
            task: &self.task,
            staged: &mut self.staged,
            rejected: &mut self.rejected,
            undated: &mut self.undated,
            wanted: None,
        };
        // An error page need not be JSON: its status says enough. So a fault of the body is
        // kept until the end, when the status has its say first.
        if self.read_error.is_none()
            && let Err(error) = self.reading.feed(data, &mut stager)
        {
            self.read_error = Some(error);
        }
        if stager.is_overfull() {
            return Err(Fault::TooMany);
        }
        let head = self.head.as_ref();
        let (status, retry_after) = head.map_or((0, None), |it| (it.status, it.retry_after));
        match self.read_error.take_if(|_| is_success(status)) {
            Some(error) => Err(Fault::Body { error, retry_after }),
            None => Ok(()),
        }
    }

    /// Whether the answer has come to its end, and is all unpacked.
    fn ended(&mut self) -> Result<Option<bool>, Fault> {
        let Some(Head {
            status,
            packing,
            ended: Some(keep_alive),
            ..
        }) = &mut self.head
        else {
            return Ok(None);
        };
        match packing {
            Packing::Gzip(gunzip) if gunzip.has_more() => return Ok(None),
            Packing::Gzip(gunzip) if is_success(*status) => {
                gunzip.finish().map_err(Fault::Unpacking)?;
            }
            _ => {}
        }
        Ok(Some(*keep_alive))
    }

    /// The exchange has closed. `Ok`: that was the end of the answer.
    pub fn end(&mut self) -> Result<(), Fault> {
        let head = self.head.as_mut().ok_or(Fault::CutShort)?;
        head.body.finish_at_close().map_err(|_| Fault::CutShort)?;
        head.ended = Some(false);
        self.ended()?.map(|_| ()).ok_or(Fault::CutShort)
    }

    /// What is wrong when the answer does not come to its end: `fault`, unless its head has come
    /// and says more.
    pub fn cut(&self, fault: Fault) -> Fault {
        match &self.head {
            Some(head) if !is_success(head.status) => Fault::Status {
                status: head.status,
                kind: self.reading.status_kind(head.status),
                retry_after: head.retry_after,
                message: None,
            },
            _ => fault,
        }
    }

    /// What the whole answer comes to.
    pub fn finish(self, now: Now) -> Result<Answered, Fault> {
        let head = self.head.as_ref().expect("finished answers have a head");
        let (status, retry_after) = (head.status, head.retry_after);
        let by_status = self.reading.status_kind(status);
        // It knows of every fault of the body that was met on the way.
        let verdict = self.reading.finish(status);
        if !is_success(status) {
            let (kind, message) = match verdict {
                Err(ReadError::Refused { kind, .. }) => (kind, verdict.err()),
                _ => (by_status, None),
            };
            let message = message.map(|refusal| refusal.to_string());
            return Err(Fault::Status {
                status,
                kind,
                retry_after,
                message,
            });
        }
        verdict.map_err(|error| Fault::Body { error, retry_after })?;
        if self.staged.is_empty() {
            return Err(Fault::Empty);
        }
        Ok(Answered {
            task: self.task,
            sent_at: self.sent_at.unwrap_or(now),
            staged: self.staged,
            rejected: self.rejected,
            undated: self.undated,
        })
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
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
