//! The outcome of a request: a response that is written, or one that takes more than this turn.

use super::error::Error;
use super::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::http::{Cache, ETag, EndlessBody, Head, Output, Responder};
use crate::interval::Interval;
use crate::json::{Decimals, json};
use crate::market::{SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display, Formatter};
use std::ops::Range;
use std::sync::Arc;

/// The outcome of a request: `None` if the response is written.
pub type Outcome = Result<Option<Deferred>, Error>;

/// A prepared request, or why it is refused.
pub type Preparation = Result<Box<dyn Prepared>, Error>;

/// How a response comes about that is not written yet.
pub enum Deferred {
    /// It is made in parts.
    InParts(Box<dyn InParts>),
    /// Its body is compressed first.
    ToCompress(Box<ToCompress>),
    /// Its body is a stream, which ends with its connection.
    Stream(Box<StreamRequest>),
}

/// A request whose parameters are read. Equal request lines give equal prepared requests until the catalog
/// changes. A prepared request depends on no field of the head, no price and no candle.
pub trait Prepared: Debug + Sync {
    /// Responds to it.
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome;
}

/// A request for a stream: what the stream is to send.
#[derive(Debug)]
pub struct StreamRequest {
    /// The candles of these charts.
    pub charts: Vec<ChartPlace>,
    /// The quotes of these symbols.
    pub symbols: StreamedSymbols,
    /// The names that stand for no symbol yet, by place: charts come before symbols.
    pub unknown: BTreeMap<usize, Box<[u8]>>,
    /// All of this source, if given.
    pub source: Option<SourceId>,
    /// The form of its numbers.
    pub decimals: Decimals,
    /// The position that `Last-Event-ID` names, if the client was connected before.
    pub resumed: Option<Position>,
    /// Its framing.
    pub body: EndlessBody,
}

/// A chart of a stream, and what was sent of it.
#[derive(Debug)]
pub struct ChartPlace {
    /// The market. `None` if its name is unknown, or another place has the same chart.
    pub symbol: Option<SymbolId>,
    /// The interval of its candles.
    pub interval: Interval,
    /// Its newest candle that was sent as closed, or the newest closed one when the stream began.
    pub closed: Option<UnixMs>,
}

/// How far a stream has come, as the ids of its events say: everything up to here was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Which changes of quotes.
    pub quotes: Round,
    /// How often the health of the service had changed.
    pub health_changes: u64,
    /// The newest closed candle of each chart.
    pub closes: Vec<Option<UnixMs>>,
}

/// How far a stream has come in a round over its places. A round sends what had changed before it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The places before this one have had their turn.
    pub places: usize,
    /// The version of all quotes at which the round began.
    pub version: u64,
    /// The version up to which all changes of the other places were sent. 0: nothing was.
    pub before: u64,
}

impl Round {
    /// The version up to which all changes of a place were sent.
    pub fn sent(&self, place: usize) -> u64 {
        if place < self.places { self.version } else { self.before }
    }

    /// Reads it back from a part of an id.
    fn read(text: &str) -> Option<Round> {
        let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16).ok());
        let before = parts.next()??;
        let Some(places) = parts.next() else {
            return Some(Round { places: 0, version: before, before });
        };
        let (places, version) = (usize::try_from(places?).ok()?, parts.next()??);
        parts.next().is_none().then_some(Round { places, version, before })
    }
}

/// A round that is over, or has told nothing new yet, is written as its version alone.
impl Display for Round {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Round { places, version, before } = self;
        if before == version {
            write!(out, "{version:x}")
        } else {
            write!(out, "{before:x}.{places:x}.{version:x}")
        }
    }
}

/// Ids of events have times in minutes: every interval is a multiple of one.
const MINUTE_MS: i64 = 60_000;

impl Position {
    /// Appends it as an id: hexadecimal numbers. The first one names the run of marketd.
    pub fn write(&self, boot: u64, out: &mut Vec<u8>) {
        let mut id = format!("id: {boot:x}-{}-{:x}", self.quotes, self.health_changes);
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
        let number = |part: &str| u64::from_str_radix(part, 16).ok();
        let run = number(parts.next()?)?;
        let quotes = Round::read(parts.next()?)?;
        let health = number(parts.next()?)?;
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
    /// These symbols, each once. A place is empty if its symbol has another place, or is unknown.
    Named(Box<[Option<SymbolId>]>),
    /// Every symbol, also symbols that become known later.
    All,
}

impl StreamedSymbols {
    /// The places of the symbols that the request names.
    pub fn places(&self) -> &[Option<SymbolId>] {
        match self {
            StreamedSymbols::Named(symbols) => symbols,
            StreamedSymbols::All => &[],
        }
    }

    /// The symbols that the request names, as far as they are known, with their places.
    pub fn named(&self) -> impl Iterator<Item = (usize, SymbolId)> {
        (0..).zip(self.places()).filter_map(|(at, symbol)| Some((at, (*symbol)?)))
    }
}

/// Slots of a series.
pub type SeriesSlots = (SeriesKey, Range<i64>);

/// What a step of a deferred response has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// There is more to be made.
    More,
    /// It lacks candles ([`InParts::missing`]). Once they are there, or will not come, it goes on.
    Waits,
    /// It is made.
    Done,
}

/// A response that is made in parts. Before its first step it holds no more than its request needs.
pub trait InParts {
    /// The candles that it is made of. They must stay in memory until it is finished.
    fn needs(&self) -> Vec<SeriesSlots> {
        Vec::new()
    }

    /// The candles that it waits for: those that have not come yet.
    fn missing(&self, _view: &View<'_>) -> Vec<SeriesSlots> {
        Vec::new()
    }

    /// True if it waits for missing candles until its deadline, even if they are not on their way.
    fn is_patient(&self) -> bool {
        false
    }

    /// The history file is loaded: it may hold candles of other sources than the one that was chosen.
    fn choose_again(&mut self, _view: &View<'_>) {}

    /// The bytes that it holds, about.
    fn held(&self) -> usize;

    /// Makes one part.
    fn step(&mut self, view: &View<'_>) -> Advance;

    /// Sends what was made, or hands its body back to be compressed first.
    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred>;
}

/// A response whose body is compressed first.
pub struct ToCompress {
    /// Identifies the body.
    pub key: CacheKey,
    /// The tag of the compressed body.
    pub tag: ETag,
    /// The body, until it is being compressed.
    pub body: Output,
    /// The compressed body, once there is one.
    pub compressed: Option<Arc<[u8]>>,
    /// The head of the compressed body, without its own fields.
    pub head: Head<'static>,
    /// The fields of the head.
    pub fields: Box<[u8]>,
}

impl ToCompress {
    /// Sends it, once its body is compressed.
    pub fn send(&self, responder: &mut Responder<'_>) -> Option<Deferred> {
        let body = self.compressed.as_ref().expect("sent only once its body is compressed");
        send_shared(&Head { fields: &self.fields, ..self.head }, body, responder);
        None
    }
}

/// Sends a body that is shared with others who hold it.
pub fn send_shared(head: &Head<'_>, body: &Arc<[u8]>, responder: &mut Responder<'_>) {
    if let Some(out) = responder.begin(head, body.len()) {
        out.share(body, 0..body.len());
    }
}

/// Sends an error.
pub fn send_error(error: &Error, responder: &mut Responder<'_>) -> Option<Deferred> {
    responder.error(error);
    None
}

/// Sends an error as the protocol of charting libraries wants it: with status 200, since their adapter takes
/// any other for a failure of the network.
pub fn send_fault(message: &str, responder: &mut Responder<'_>) -> Option<Deferred> {
    let mut body = Vec::with_capacity(128);
    json!(&mut body, { "s": "error", "errmsg": message });
    responder.send(&Head::json(None, Cache::NoStore), &body);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_from_its_id_in_the_same_run_alone() {
        let closes = vec![Some(UnixMs(60_000 * 0x1b8)), None];
        let mut position = Position { health_changes: 2, closes, ..Position::default() };
        for (places, version, before, expected) in [
            (0, 0x1f, 0x1f, "id: abc-1f-2-1b8-\n"),
            (0x10, 0x20, 0x1f, "id: abc-1f.10.20-2-1b8-\n"),
            (0x10, 0x20, 0, "id: abc-0.10.20-2-1b8-\n"),
        ] {
            position.quotes = Round { places, version, before };
            let mut out = Vec::new();
            position.write(0xabc, &mut out);
            assert_eq!(out, expected.as_bytes());
            let id = &out[4..out.len() - 1];
            assert_eq!(Position::read(id, 0xabc, 2).as_ref(), Some(&position));
            assert_eq!(Position::read(id, 0xabd, 2), None, "another run");
            assert_eq!(Position::read(id, 0xabc, 1), None, "another stream");
        }
        let far = b"abc-1-2--7fffffffffffffff";
        let rounds = [b"abc-1.2-2", b"abc-1.2.-", b"abc-1..2-"];
        for id in [&b""[..], b"abc", b"abc-1-", b"abc-1-2-x", b"\xff", far, b"abc-1.2.3.4-2"]
            .into_iter()
            .chain(rounds.map(|it| &it[..]))
        {
            for charts in 0..3 {
                assert_eq!(Position::read(id, 0xabc, charts), None, "{id:?}");
            }
        }
    }
}
