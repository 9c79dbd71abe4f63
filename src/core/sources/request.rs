//! One request to an exchange, from its first byte to the end of its response.
//!
//! ```text
//! waiting for the connection -> sending -> reading the head -> reading the body -> ended
//! ```
//!
//! [`RequestInFlight`] owns the request's bytes, the framing of the response, the reading of its body,
//! and the [`Staged`] items. Items are decoded as bytes come; the body is never held whole. A
//! compressed body is decompressed slice by slice ([`RequestInFlight::decompress`]), and until that is
//! done nothing more is read. It does not know connections: `source/requests` sends and receives.

use crate::core::context::Context;
use crate::core::sources::fault::Fault;
use crate::core::sources::staged::{Staged, Stager};
use crate::core::sources::task::{Profile, Task};
use crate::exchange::{BudgetLimit, Dialect, NextPage, ReadError, Reading, RefusalKind};
use crate::http::{
    BodyReader, Decompressor, Encoding, Output, ResponseHead, parse_response, read_current_date,
    write_request,
};
use crate::log_targets::{SOURCE, quoted};
use crate::market::{CandleService, Catalog};
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// Bytes from the start of a body that are shown if it is not JSON.
const BEGIN_TOLD: usize = 40;

/// Most bytes of a redirect's target in the error.
const LOCATION_TOLD: usize = 200;

/// The longest tag of a market list that is sent back: more than any server makes.
const TAG_MOST: usize = 256;

/// See the module's page.
pub struct RequestInFlight {
    /// When the request was created. Its connection may still have to be opened.
    pub began: Mono,
    /// What it costs of the budget, as long as nothing of it is sent; then 0.
    pub unsent: u32,
    /// The units of the budget that were sent with it and before it, once it is sent.
    pub units: u64,
    /// When the first byte was sent.
    pub sent_at: Option<Now>,
    /// How long the next bytes of the response may take.
    timeout: Duration,
    /// The deadline of the whole response.
    end_by: Mono,
    /// True if the body is wanted only if it has another tag.
    pub is_conditional: bool,
    /// True if its connection carried a request before.
    pub is_on_reused: bool,
    /// Bytes of the response so far.
    pub received: u64,
    staged: Staged,
    /// What is still to be sent.
    pub output: Output,
    /// Bytes of a head that is not complete.
    inbox: Vec<u8>,
    head: Option<Head>,
    /// What decompresses the body, if it is compressed.
    gunzip: Option<Box<Decompressor>>,
    /// The units of the limit that the exchange has counted, as the head tells; taken out once.
    pub used: Option<u64>,
    /// When the response was made, as the head tells, and when the request was sent; taken out once. `None`
    /// if the status is not one of success, or if a cache has kept the response.
    pub date: Option<(UnixMs, Mono)>,
    dialect: &'static Dialect,
    /// The limit that it is sent under.
    pub limit: BudgetLimit,
    reading: Reading,
    /// The first bytes of the body.
    begin: Vec<u8>,
}

/// How a request ended.
pub enum RequestEnd {
    /// Its response is complete.
    Complete,
    /// It failed.
    Failed(Fault),
    /// It ended through nobody's fault: its task is due again at once.
    PutBack,
}

struct Head {
    told: ResponseHead,
    /// Where it leads, in words, if it is a redirect.
    redirect: Option<String>,
    body: BodyReader,
}

impl RequestInFlight {
    /// A request for a task, or for a later page of it. Nothing of it is sent yet. If a tag is given, the
    /// body is wanted only if it has another tag.
    pub fn new(
        profile: &Profile,
        task: Task,
        page: Option<NextPage>,
        tag: Option<&str>,
        cx: &Context,
    ) -> RequestInFlight {
        let (item_bytes, dialect) = (cx.config.limits.upstream_item_bytes, profile.dialect);
        let mut staged = Staged::new(profile.id, task.clone(), page);
        let (target, reading, cost) = profile.with_call(&task, cx, |call| {
            if dialect.is_archived(call) {
                staged.all_rows.service = CandleService::Archive;
            }
            staged.all_rows.most = dialect.most_rows(call);
            let target = dialect.target(call, staged.page.as_ref());
            (target, Reading::new(dialect, call, item_bytes), dialect.cost(call))
        });
        let target = format!("{}{target}", profile.url.path);
        let (id, what) = (&profile.config.id, task.describe(&cx.market));
        log::debug!(
            target: SOURCE,
            "request source={id} what={} target={} cost={cost}",
            quoted(what),
            quoted(&target)
        );
        let mut output = Output::default();
        let key = dialect.key_field(profile.config.key.as_ref());
        let key = key.as_ref().map(|(name, value)| (*name, &**value));
        let fields = key.into_iter().chain(tag.map(|tag| ("If-None-Match", tag)));
        write_request(output.bytes(), &profile.url.authority(), &target, fields);
        // A market list is up to a hundred times the size of anything else, and nobody waits for it. So it
        // may take longer, as long as it goes on.
        let patience = if task == Task::Markets { 4 } else { 1 };
        let timeout = profile.config.timeout;
        RequestInFlight {
            began: cx.now.mono,
            unsent: cost,
            units: 0,
            sent_at: None,
            timeout,
            end_by: cx.now.mono + timeout * patience,
            is_conditional: tag.is_some(),
            is_on_reused: false,
            received: 0,
            reading,
            staged,
            output,
            inbox: Vec::new(),
            head: None,
            gunzip: None,
            used: None,
            date: None,
            dialect,
            limit: profile.limit,
            begin: Vec::new(),
        }
    }

    /// What is asked.
    pub fn task(&self) -> &Task {
        &self.staged.task
    }

    /// Notes that `count` more bytes were sent.
    pub fn sent(&mut self, count: usize, now: Now) {
        self.output.advance(count);
        self.unsent = 0;
        self.sent_at = self.sent_at.or(Some(now));
    }

    /// When it was sent; before that, when it began.
    pub fn sent_mono(&self) -> Mono {
        self.sent_at.map_or(self.began, |at| at.mono)
    }

    /// The status of the response, once its head has come.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.told.status)
    }

    /// True if the exchange has closed the idle connection before it saw the request: on a reused connection,
    /// nothing of a response has come, or a 408 that closes the connection.
    pub fn is_unheard(&self) -> bool {
        let is_too_late = || self.status() == Some(408) && !self.keeps_alive();
        self.is_on_reused && (self.received == 0 || is_too_late())
    }

    /// Until when the next bytes have to come, if some came now.
    pub fn deadline(&self, now: Mono) -> Mono {
        self.end_by.min(now + self.timeout)
    }

    /// Takes in bytes of the response.
    pub fn receive(&mut self, bytes: &[u8], cx: &mut Context) -> Result<(), Fault> {
        let (catalog, limits) = (&mut cx.market.catalog, &cx.config.limits);
        cx.stats[self.staged.source].bytes_received += bytes.len() as u64;
        self.received += bytes.len() as u64;
        if self.head.is_some() {
            return self.receive_body(bytes, catalog);
        }
        self.inbox.extend_from_slice(bytes);
        let parsed = parse_response(&self.inbox, limits.upstream_head_bytes);
        let Some(response) = parsed.map_err(Fault::malformed)? else {
            return Ok(());
        };
        let used = |field: &str| {
            let told = std::str::from_utf8(response.fields.get(field)?).ok()?;
            Some(self.dialect.spent(told.trim().parse().ok()?))
        };
        self.used = self.dialect.meter().and_then(used);
        // A response without a status of success may come from any front end, with any clock.
        let date = read_current_date(response.fields).filter(|_| response.head.status / 100 == 2);
        if let Some(date) = date {
            self.date = Some((date, self.sent_mono()));
            let mut stager = Stager { staged: &mut self.staged, catalog, symbol: None };
            self.reading.date(date, &mut stager);
        }
        let tag = response.fields.get("etag").and_then(|tag| std::str::from_utf8(tag).ok());
        let is_plain =
            |tag: &&str| tag.len() <= TAG_MOST && tag.bytes().all(|it| it.is_ascii_graphic());
        self.staged.tag = tag.filter(is_plain).map(Into::into);
        let (told, used) = (response.head, response.used);
        let location = response.fields.get("location");
        let redirect = location.filter(|_| (300..400).contains(&told.status)).map(|to| {
            let to = to[..to.len().min(LOCATION_TOLD)].escape_ascii();
            format!("redirected to \"{to}\", which is not followed")
        });
        let cap = limits.upstream_body_bytes as u64;
        let body = BodyReader::new(told.framing, cap).map_err(Fault::malformed)?;
        self.head = Some(Head { told, redirect, body });
        match told.content_encoding {
            Encoding::Identity => {}
            Encoding::Gzip => self.gunzip = Some(Box::new(Decompressor::new(cap))),
            Encoding::Other => return Err(Fault::encoding(response.fields)),
        }
        let inbox = std::mem::take(&mut self.inbox);
        self.receive_body(&inbox[used..], catalog)
    }

    fn receive_body(&mut self, mut bytes: &[u8], catalog: &mut Catalog) -> Result<(), Fault> {
        loop {
            let head = self.head.as_mut().expect("the body comes after the head");
            let piece = head.body.decode(bytes).map_err(Fault::malformed)?;
            bytes = &bytes[piece.used..];
            // Bytes after the body could not be distinguished from the next response.
            head.told.keep_alive &= !piece.done || bytes.is_empty();
            match &mut self.gunzip {
                Some(gunzip) => gunzip.push(piece.data),
                None => self.read(piece.data, catalog)?,
            }
            if piece.done || bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// True if [`RequestInFlight::decompress`] has something to do.
    pub fn is_decompressing(&self) -> bool {
        self.gunzip.as_ref().is_some_and(|gunzip| gunzip.has_more())
    }

    /// Decompresses one slice of what has come, and reads it.
    pub fn decompress(&mut self, catalog: &mut Catalog) -> Result<(), Fault> {
        let mut gunzip = self.gunzip.take().expect("there is something to decompress");
        self.read(gunzip.step().map_err(Fault::malformed)?, catalog)?;
        self.gunzip = Some(gunzip);
        Ok(())
    }

    /// Reads some of the body and stages its items.
    fn read(&mut self, data: &[u8], catalog: &mut Catalog) -> Result<(), Fault> {
        let room = BEGIN_TOLD - self.begin.len();
        self.begin.extend_from_slice(&data[..data.len().min(room)]);
        let mut stager = Stager { staged: &mut self.staged, catalog, symbol: None };
        let fed = self.reading.feed(data, &mut stager);
        if let Some(why) = self.staged.excess(catalog) {
            return Err(Fault::content(why));
        }
        let head = self.head.as_ref().expect("the body comes after the head");
        match fed {
            // The status says more than this error. `finish` also reports what the body has said before.
            Err(_) if !head.is_success() => Ok(()),
            fed => fed.map_err(|error| Fault::body(error, &self.begin, head.told.retry_after)),
        }
    }

    /// True if the response has come to its end, and all of it is read.
    pub fn is_complete(&self) -> bool {
        let has_come = self.head.as_ref().is_some_and(|head| head.body.is_done());
        has_come && !self.is_decompressing()
    }

    /// True if the connection of a complete response can carry another request.
    pub fn keeps_alive(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.told.keep_alive)
    }

    /// The exchange has closed the connection. `true`: that was the end of the response.
    pub fn closed(&mut self) -> bool {
        let body = self.head.as_mut().map(|head| &mut head.body);
        body.is_some_and(|body| body.finish_at_close().is_ok()) && self.is_complete()
    }

    /// Why the request failed, if its response does not come to its end, or cannot be read: `fault`, unless a
    /// head with an error status has come, which says more.
    pub fn cut_short(&self, fault: Fault) -> Fault {
        match &self.head {
            Some(head) if !head.is_success() => {
                head.fault(self.reading.status_kind(head.told.status), head.redirect.clone())
            }
            _ => fault,
        }
    }

    /// The items of a response that is complete now.
    pub fn finish(self, now: Now) -> Result<Staged, Fault> {
        let head = self.head.expect("complete responses have a head");
        let ResponseHead { status, retry_after, .. } = head.told;
        let by_status = self.reading.status_kind(status);
        let unpacked = self.gunzip.map_or(Ok(()), |mut gunzip| gunzip.finish());
        let next = self.reading.next_page(self.staged.page.as_ref());
        // `Reading::finish` returns the first fault of the body, also one that `feed` has returned before.
        match (self.reading.finish(status).and(next), unpacked) {
            (Err(ref refusal @ ReadError::Refused { kind, .. }), _) if !head.is_success() => {
                Err(head.fault(kind, Some(refusal.to_string())))
            }
            _ if !head.is_success() => Err(head.fault(by_status, head.redirect.clone())),
            (_, Err(why)) => Err(Fault::malformed(why)),
            (Err(error), _) => Err(Fault::body(error, &self.begin, retry_after)),
            (Ok(next), Ok(())) => {
                let mut staged = self.staged;
                staged.next = next;
                staged.arrived(self.sent_at.unwrap_or(now), now, self.received);
                Ok(staged)
            }
        }
    }
}

impl Head {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.told.status)
    }

    /// The fault of a status other than success, with what the body says of it.
    fn fault(&self, kind: RefusalKind, message: Option<String>) -> Fault {
        let mut fault = Fault::status(self.told.status, kind, message);
        fault.retry_after = self.told.retry_after;
        fault
    }
}
