//! A source of which one node of a cluster collects, and the others follow.
//!
//! [`Replica`] owns the role of this node, what is to be told to the others, and the candles that are
//! asked for: those that this node waits for as a follower, and those that others wait for if it collects.
//! It decides neither who collects (`core::cluster` does) nor what is requested of the exchange.

use crate::core::context::Context;
use crate::log_targets::CLUSTER;
use crate::market::{SeriesKey, SourceId};
use crate::record::MarketInfo;
use crate::replication::{Entry, HAS_CLUSTERS, SeriesPart, VERSION, encode_market};
use crate::time::Mono;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Requests for candles that a follower waits for at a time.
const MOST_WANTED: usize = 16;

/// How long it waits: longer than a client does, and than the collector's exchange takes.
const WANTED_FOR: Duration = Duration::from_secs(5);

/// Requests of followers that a collector holds. Above it, they are dropped, and the follower asks again.
const MOST_ASKED: usize = 64;

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
    /// True if the exchange may be called.
    pub fn collects(self) -> bool {
        matches!(self, Role::Alone | Role::Collector)
    }
}

/// Candles that are waited for: by this node if it follows, by another if it collects.
#[derive(Debug)]
pub struct AskedRange {
    /// Their series.
    pub key: SeriesKey,
    /// Their slots.
    pub slots: Range<i64>,
    /// When they are waited for no longer.
    pub until: Mono,
}

/// What the other nodes are to be told.
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
    /// When it took on the role.
    pub since: Mono,
    told: VecDeque<Outbound>,
    asked: Vec<AskedRange>,
}

impl Replica {
    /// Begins with a role. What was asked before belongs to the former one.
    pub fn begin(&mut self, role: Role, now: Mono) {
        *self = Replica { role, since: now, ..Replica::default() };
    }

    /// What this node does.
    pub fn role(&self) -> Role {
        match HAS_CLUSTERS {
            true => self.role,
            false => Role::Alone,
        }
    }

    /// True if the others are told what comes.
    pub fn publishes(&self) -> bool {
        self.role() == Role::Collector
    }

    /// Takes out what is to be told next.
    pub fn next_told(&mut self) -> Option<Outbound> {
        self.told.pop_front()
    }

    /// Tells the others.
    pub fn tell(&mut self, what: Outbound) {
        self.told.push_back(what);
    }

    /// True if a follower may ask for more candles.
    pub fn has_room(&self) -> bool {
        self.asked.len() < MOST_WANTED
    }

    /// Asks the collector for candles.
    pub fn want(&mut self, key: SeriesKey, slots: Range<i64>, cx: &Context) {
        log::debug!(
            target: CLUSTER,
            "candles wanted source={} symbol={} interval={} slots={}",
            cx.stats[key.source].id,
            cx.market.catalog.name(key.symbol).as_str(),
            key.interval.name(),
            slots.end - slots.start,
        );
        let until = cx.now.mono + WANTED_FOR;
        self.asked.push(AskedRange { key, slots: slots.clone(), until });
        self.tell(Outbound::Ask(series_part(key, slots, cx)));
    }

    /// True if candles of this series are on their way.
    pub fn wants(&self, key: SeriesKey) -> bool {
        self.asked.iter().any(|it| it.key == key)
    }

    /// Candles of this series have come.
    pub fn came(&mut self, key: SeriesKey) {
        self.asked.retain(|it| it.key != key);
    }

    /// When the time of one of them is over.
    pub fn due(&self) -> Option<Mono> {
        self.asked.iter().map(|it| it.until).min()
    }

    /// Another node asks for candles. `false`: too many wait.
    pub fn ask(&mut self, key: SeriesKey, slots: Range<i64>, now: Mono) -> bool {
        let is_same = |it: &AskedRange| it.key == key && it.slots == slots;
        if !self.asked.iter().any(is_same) {
            if self.asked.len() >= MOST_ASKED {
                return false;
            }
            let until = now + WANTED_FOR;
            self.asked.push(AskedRange { key, slots, until });
        }
        true
    }

    /// Takes out what has come as far as it will, or is late.
    pub fn next_done(
        &mut self,
        now: Mono,
        comes: impl Fn(&AskedRange) -> bool,
    ) -> Option<AskedRange> {
        let is_done = |it: &AskedRange| it.until <= now || !comes(it);
        let at = self.asked.iter().position(is_done)?;
        Some(self.asked.swap_remove(at))
    }
}

/// A series and some of its slots, as the nodes tell each other.
pub fn series_part(key: SeriesKey, slots: Range<i64>, cx: &Context) -> SeriesPart {
    let symbol = cx.market.catalog.name(key.symbol).as_str().into();
    SeriesPart { symbol, interval: key.interval, slots }
}

/// A market list that is being written, slice by slice.
#[derive(Debug)]
pub struct ListWriter {
    bytes: Vec<u8>,
    /// The place of the next market among those that are known.
    next: usize,
    /// That of the catalog.
    version: u64,
}

impl ListWriter {
    /// Nothing is written yet.
    pub fn new() -> ListWriter {
        ListWriter { bytes: vec![VERSION], next: 0, version: 0 }
    }

    /// Writes some markets. `Some`: the bytes of the whole list. If markets come or go meanwhile, it begins
    /// anew.
    pub fn step(&mut self, source: SourceId, cx: &Context) -> Option<Vec<u8>> {
        let catalog = &cx.market.catalog;
        let known = catalog.known();
        if self.version != catalog.version() {
            *self = ListWriter::new();
            self.version = catalog.version();
        }
        let end = known.len().min(self.next + MARKETS_A_SLICE);
        for symbol in known.get(self.next..end).unwrap_or_default() {
            let Some(listing) = catalog.listing(source, *symbol) else {
                continue;
            };
            let name = catalog.name(*symbol);
            let market = MarketInfo {
                ticker_id: listing.ticker_id.clone(),
                candle_id: Some(listing.candle_id())
                    .filter(|it| **it != *listing.ticker_id)
                    .map(Into::into),
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
