//! What this node is told by the others: entries of the sources that it follows, market lists, and requests
//! for candles of those that it collects.

use super::Cluster;
use super::engine::Which;
use super::link::EngineCommand;
use super::seat::{EntryId, Hold, node_of};
use super::unread::Raw;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::Sources;
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::replication::{Entry, EntryError, Markets, Update, decode, decode_ask};
use crate::resp::RespValue;
use std::time::Duration;

/// How long the engine waits for an entry before it replies that there is none. A source that is followed
/// anew is read after this at the latest.
const BLOCK: Duration = Duration::from_millis(250);

/// Entries of one stream in one reply.
const ENTRIES: &[u8] = b"16";

/// Responses that may wait to be applied before more entries are.
const MOST_STAGED: usize = 8;

/// No entry is so far ahead of the engine's time, unless its clock went back.
const AHEAD_MS: u64 = 1000;

impl Cluster {
    /// True if [`Cluster::work`] has something to do.
    pub fn has_work(&self, staged: usize) -> bool {
        !self.reading.raw.is_empty() && staged < MOST_STAGED
    }

    /// Applies the next entry.
    pub fn work(&mut self, sources: &mut Sources, history: &mut History, cx: &mut Context) {
        let Some(raw) = self.reading.raw.pop_front() else {
            return;
        };
        let seat = &self.seats[raw.source.index()];
        let result = match (raw.is_ask, seat.hold) {
            (true, Hold::Collects { .. }) => {
                decode_ask(&raw.bytes).map(|series| sources[raw.source].asked(&series, history, cx))
            }
            (false, Hold::Follows) => {
                decode(&raw.bytes).map(|entry| self.apply(&raw, entry, sources, history, cx))
            }
            _ => Ok(()),
        };
        match result {
            Ok(()) => {}
            Err(EntryError::Newer(version)) => self.leave(raw.source, version, sources, cx),
            Err(EntryError::Malformed) => {
                if !std::mem::replace(&mut self.reading.is_logged, true) {
                    let source = &cx.stats[raw.source].id;
                    log::warn!(target: CLUSTER, "entry malformed source={source} id={}", raw.id);
                }
            }
        }
        if self.reading.raw.is_empty() {
            self.read_on(cx);
        }
    }

    fn apply(
        &mut self,
        raw: &Raw,
        entry: Entry,
        sources: &mut Sources,
        history: &mut History,
        cx: &mut Context,
    ) {
        let seat = &mut self.seats[raw.source.index()];
        if entry.head.epoch < seat.seen {
            // Of a collector before the present one, in an engine that came back with old data.
            return;
        }
        seat.seen = entry.head.epoch;
        if let Update::Released(leaver) = &entry.body {
            seat.due = cx.now.mono;
            let leaver = leaver.as_deref();
            self.live.retain(|run| Some(node_of(run)) != leaver);
        }
        let age = self.reading.engine_time(cx.now.mono).saturating_sub_unsigned(raw.id.ms);
        let age = Duration::from_millis(age.max(0) as u64);
        if let Some(cluster) = &mut cx.stats.cluster {
            cluster.applied += 1;
            if let Some(source) = cluster.sources.get_mut(raw.source.index()) {
                source.lag_ms = Some(age.as_millis() as u64);
            }
        }
        sources[raw.source].follow_entry(entry, age, history, cx);
    }

    /// Notes where the stream is to be read from, and fetches the market list if there is a newer one.
    pub(super) fn note_place(&mut self, id: SourceId, look: &RespValue<'_>, cx: &mut Context) {
        let entry = |at: usize| EntryId::parse(look.bytes_at(at));
        let (from, last) = (entry(3), entry(4).unwrap_or_default());
        let version = look.count_at(5);
        let ahead = self.reading.engine_time(cx.now.mono).unsigned_abs() + AHEAD_MS;
        let seat = &mut self.seats[id.index()];
        seat.place = match seat.place {
            // The engine's clock went back: what it adds comes before the place.
            Some(place) if place.ms > ahead => Some(place.min(last)),
            Some(place) => Some(place),
            None => Some(from.map_or(EntryId::default(), EntryId::before)),
        };
        if seat.list != Some(version) && !seat.fetches_list {
            seat.fetches_list = true;
            let key = self.keys.of(&cx.stats[id].id, "list");
            let words: [&[u8]; 2] = [b"GET", key.as_bytes()];
            let command = EngineCommand::GetList(id, version);
            self.engine.send(Which::Commands, command, &words, cx);
        }
        self.read_on(cx);
    }

    /// Takes in a market list. `false`: it cannot be taken now.
    pub(super) fn read_list(
        &mut self,
        id: SourceId,
        bytes: Option<&[u8]>,
        sources: &mut Sources,
        cx: &mut Context,
    ) -> bool {
        let Some(bytes) = bytes.filter(|_| self.seats[id.index()].hold == Hold::Follows) else {
            return true;
        };
        match Markets::new(bytes.to_vec()) {
            Ok(list) => sources[id].follow_list(list, cx),
            Err(EntryError::Newer(version)) => {
                self.leave(id, version, sources, cx);
                true
            }
            Err(EntryError::Malformed) => true,
        }
    }

    /// Waits for more entries, if all that was read is applied.
    pub(super) fn read_on(&mut self, cx: &mut Context) {
        if self.reading.is_sent || !self.reading.raw.is_empty() || !self.engine.is_up() {
            return;
        }
        if !self.engine.link(Which::Reader).is_open() {
            return;
        }
        let mut places = Vec::new();
        self.reading.keys.clear();
        for (at, seat) in (0..).zip(&self.seats) {
            let id = SourceId(at);
            // Tickers are known by the ids of the list.
            let has_list = seat.list == Some(0) || cx.market.catalog.has_list(id);
            let (what, place) = match (seat.hold, seat.place) {
                (Hold::Collects { .. }, _) => ("ask", seat.asks),
                (Hold::Follows, Some(place)) if seat.list.is_some() && has_list => {
                    ("stream", place)
                }
                _ => continue,
            };
            let key = self.keys.of(&cx.stats[id].id, what);
            self.reading.keys.push((key, id, what == "ask"));
            places.push(place.to_string());
        }
        if places.is_empty() {
            return;
        }
        let block = BLOCK.as_millis().to_string();
        let mut words: Vec<&[u8]> =
            vec![b"XREAD", b"COUNT", ENTRIES, b"BLOCK", block.as_bytes(), b"STREAMS"];
        words.extend(self.reading.keys.iter().map(|(key, ..)| key.as_bytes()));
        words.extend(places.iter().map(String::as_bytes));
        self.reading.is_sent = true;
        self.engine.link(Which::Reader).send(EngineCommand::Read, &words, BLOCK, cx);
    }
}
