//! A source that one node of a cluster collects, and that the others follow.
//!
//! [`Replica`] owns the role of this node, its messages to the others, and the open requests for candles: its
//! own if it follows, and the requests of other nodes if it collects. It decides neither who collects
//! (`core::cluster` does) nor what is requested of the exchange.

use crate::core::context::Context;
use crate::market::{SeriesKey, SourceId};
use crate::record::MarketInfo;
use crate::replication::{Entry, HAS_CLUSTERS, SeriesPart, VERSION, encode_market};
use crate::time::Mono;
use std::collections::VecDeque;
use std::ops::Range;

/// Markets that one slice of writing a list looks at: some 0.1 ms.
const MARKETS_A_SLICE: usize = 256;

/// What this node does for a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It collects, and tells nobody.
    #[default]
    Alone,
    /// It collects, and tells the others.
    Collector,
    /// It follows the collector, and requests nothing of the exchange.
    Follower,
    /// It requests nothing until it is known who collects.
    Waiting,
}

impl Role {
    /// Its name in the metrics. A node that waits is shown as a follower.
    pub fn name(self) -> &'static str {
        match self {
            Role::Collector => "collector",
            Role::Alone => "alone",
            Role::Follower | Role::Waiting => "follower",
        }
    }

    /// True if this node may send requests to the exchange.
    pub fn collects(self) -> bool {
        matches!(self, Role::Alone | Role::Collector)
    }
}

/// An open request for candles: of this node if it follows, of another one if it collects.
#[derive(Debug)]
pub struct AskedRange {
    pub key: SeriesKey,
    pub slots: Range<i64>,
    /// When it times out.
    pub until: Mono,
}

/// A message to the other nodes.
#[derive(Debug)]
pub enum Outbound {
    /// An entry of the stream.
    Entry(Box<Entry>),
    /// The market list.
    List(Vec<u8>),
    /// Candles that this node asks for.
    Ask(SeriesPart),
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Replica {
    role: Role,
    /// When this node took on the role.
    pub since: Mono,
    /// Messages that are not sent yet, the oldest first.
    pub outbound: VecDeque<Outbound>,
    /// The open requests for candles.
    pub asked: Vec<AskedRange>,
}

impl Replica {
    /// Takes on a role. The messages and requests of the former one are dropped.
    pub fn new(role: Role, now: Mono) -> Replica {
        Replica { role, since: now, ..Replica::default() }
    }

    /// What this node does.
    pub fn role(&self) -> Role {
        if HAS_CLUSTERS { self.role } else { Role::Alone }
    }

    /// True if this node is the collector.
    pub fn publishes(&self) -> bool {
        self.role() == Role::Collector
    }
}

/// A series and some of its slots, as the nodes tell each other.
pub fn series_part(key: SeriesKey, slots: Range<i64>, cx: &Context) -> SeriesPart {
    let symbol = cx.market.catalog.name(key.symbol).as_str().into();
    SeriesPart { symbol, interval: key.interval, slots }
}

/// A market list that is being written, slice by slice.
#[derive(Debug, Default)]
pub struct ListWriter {
    bytes: Vec<u8>,
    /// The index of the next market among the known markets.
    next: usize,
    /// The version of the catalog when the list was begun.
    version: u64,
}

impl ListWriter {
    /// Writes some markets. Returns the bytes of the whole list after the last one. If markets come or go
    /// meanwhile, the list begins anew.
    pub fn step(&mut self, source: SourceId, cx: &Context) -> Option<Vec<u8>> {
        let catalog = &cx.market.catalog;
        let known = catalog.known();
        if self.bytes.is_empty() || self.version != catalog.version() {
            *self = ListWriter { bytes: vec![VERSION], next: 0, version: catalog.version() };
        }
        let end = known.len().min(self.next + MARKETS_A_SLICE);
        for symbol in known.get(self.next..end).unwrap_or_default() {
            let Some(listing) = catalog.listing(source, *symbol) else {
                continue;
            };
            let (name, candle_id) = (catalog.name(*symbol), Some(listing.candle_id()));
            let market = MarketInfo {
                ticker_id: listing.ticker_id.clone(),
                candle_id: candle_id.filter(|it| **it != *listing.ticker_id).map(Into::into),
                base: name.base().into(),
                quote: name.quote().into(),
                active: listing.active,
                rules: listing.rules.clone(),
            };
            encode_market(&market, &mut self.bytes);
        }
        self.next = end;
        (end == known.len()).then(|| std::mem::take(&mut self.bytes))
    }
}
