//! The outcome of a request: a response that is written, or one that takes more than this turn.

use super::compressed_cache::CacheKey;
use super::endpoint::Endpoint;
use super::error::Error;
use super::view::View;
use crate::http::{Cache, ETag, EndlessBody, Head, Output, Responder};
use crate::interval::Interval;
use crate::json::{Decimals, json};
use crate::market::{SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// The outcome of a request.
pub enum Outcome {
    /// The response is written.
    Sent,
    /// The response is made in parts.
    Deferred(Box<dyn Deferred>),
    /// The body is compressed first.
    ToCompress(Box<ToCompress>),
    /// The body is a stream, which ends with its connection.
    Stream(Box<StreamRequest>),
}

/// A request whose parameters are read. It is the same for the same request until the catalog changes, and
/// does not depend on prices or candles.
pub trait Prepared: Debug {
    /// Responds to it.
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error>;
}

/// What a request is for, and the request.
pub type PreparedRequest = (Endpoint, Box<dyn Prepared>);

/// A request for a stream: what the stream is to send.
#[derive(Debug)]
pub struct StreamRequest {
    /// The quotes of these symbols.
    pub symbols: StreamedSymbols,
    /// The candles of these charts.
    pub charts: Vec<(SymbolId, Interval)>,
    /// All of this source, if given.
    pub source: Option<SourceId>,
    /// The form of its numbers.
    pub decimals: Decimals,
    /// The position that `Last-Event-ID` names, if the client was connected before.
    pub resumed: Option<Position>,
    /// Its framing.
    pub body: EndlessBody,
}

/// How far a stream has come, as the ids of its events say: everything up to here was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The version of all quotes.
    pub quotes: u64,
    /// How often the health of the service had changed.
    pub health_changes: u64,
    /// The newest closed candle of each chart.
    pub closes: Vec<Option<UnixMs>>,
}

/// Ids of events have times in minutes: every interval is a multiple of one.
const MINUTE_MS: i64 = 60_000;

impl Position {
    /// Appends it as an id: hexadecimal numbers, of which the first is that of the run.
    pub fn write(&self, boot: u64, out: &mut Vec<u8>) {
        let mut id = format!("id: {boot:x}-{:x}-{:x}", self.quotes, self.health_changes);
        for close in &self.closes {
            id.push('-');
            if let Some(open) = close {
                id.push_str(&format!("{:x}", open.0 / MINUTE_MS));
            }
        }
        id.push('\n');
        out.extend_from_slice(id.as_bytes());
    }

    /// Reads an id back. `None` if it is of another run, or of a stream with another number of charts.
    pub fn read(id: &[u8], boot: u64, charts: usize) -> Option<Position> {
        let mut parts = str::from_utf8(id).ok()?.split('-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (run, quotes, health) = (number()?, number()?, number()?);
        let close = |part: &str| match part {
            "" => Some(None),
            part => {
                let minutes = i64::from_str_radix(part, 16).ok()?;
                Some(Some(UnixMs(minutes.checked_mul(MINUTE_MS)?)))
            }
        };
        let closes: Option<Vec<Option<UnixMs>>> = parts.map(close).collect();
        let closes = closes.filter(|closes| closes.len() == charts && run == boot)?;
        Some(Position { quotes, health_changes: health, closes })
    }
}

/// The symbols whose quotes a stream tells.
#[derive(Debug)]
pub enum StreamedSymbols {
    /// These, each once.
    Named(Box<[SymbolId]>),
    /// Every one, also those that become known later.
    All,
}

/// Slots of a series.
pub type SeriesSlots = (SeriesKey, Range<i64>);

/// A response that is made in parts.
pub trait Deferred {
    /// The candles that it is made of. They must stay in memory until it is finished.
    fn needs(&self) -> Vec<SeriesSlots> {
        Vec::new()
    }

    /// The candles that it waits for: those that have not come yet.
    fn missing(&self, _view: &View<'_>) -> Vec<SeriesSlots> {
        Vec::new()
    }

    /// The history file is loaded: it may hold candles of other sources than the one that was chosen.
    fn choose_again(&mut self, _view: &View<'_>) {}

    /// Makes one part. Returns true if that was the last one.
    fn step(&mut self, view: &View<'_>) -> bool;

    /// Sends what was made.
    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome;
}

/// A body that is to be compressed, and its response.
pub struct ToCompress {
    /// Identifies the body.
    pub key: CacheKey,
    /// The tag of the compressed body.
    pub tag: ETag,
    /// The body.
    pub body: Output,
    /// The rest of the response.
    pub response: CompressedResponse,
}

/// A response but for its compressed body.
pub struct CompressedResponse {
    head: Head<'static>,
    fields: Box<[u8]>,
}

impl CompressedResponse {
    /// With this head.
    pub fn new(head: &Head<'_>) -> CompressedResponse {
        let fields = head.fields.into();
        let head = Head { fields: b"", ..*head };
        CompressedResponse { head, fields }
    }

    /// Sends it with this body.
    pub fn send(&self, body: &Arc<[u8]>, responder: &mut Responder<'_>) {
        let head = Head { fields: &self.fields, ..self.head };
        if let Some(out) = responder.begin(&head, body.len()) {
            out.share(body, 0..body.len());
        }
    }
}

/// Sends an error.
pub fn send_error(error: &Error, responder: &mut Responder<'_>) -> Outcome {
    responder.error(error);
    Outcome::Sent
}

/// Sends an error as the protocol of charting libraries wants it: with status 200, since their adapter takes
/// any other for a failure of the network.
pub fn send_fault(message: &str, responder: &mut Responder<'_>) -> Outcome {
    let mut body = Vec::with_capacity(128);
    json!(&mut body, { "s": "error", "errmsg": message });
    responder.send(&Head::json(None, Cache::NoStore), &body);
    Outcome::Sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_from_its_id_in_the_same_run_alone() {
        let position = Position {
            quotes: 0x1f,
            health_changes: 2,
            closes: vec![Some(UnixMs(60_000 * 0x1b8)), None],
        };
        let mut out = Vec::new();
        position.write(0xabc, &mut out);
        assert_eq!(out, b"id: abc-1f-2-1b8-\n");
        let id = &out[4..out.len() - 1];
        assert_eq!(Position::read(id, 0xabc, 2), Some(position));
        assert_eq!(Position::read(id, 0xabd, 2), None, "another run");
        assert_eq!(Position::read(id, 0xabc, 1), None, "another stream");
        for id in [&b""[..], b"abc", b"abc-1-", b"abc-1-2-x", b"\xff", b"abc-1-2--7fffffffffffffff"]
        {
            for charts in 0..3 {
                assert_eq!(Position::read(id, 0xabc, charts), None, "{id:?}");
            }
        }
    }
}
