//! What this node tells the others: entries of the sources that it collects, and candles that it asks for.
//!
//! Entries and requests that cannot be sent now are dropped and counted: the next poll brings new quotes,
//! and followers ask for candles that they miss. A market list is always sent.

use super::Cluster;
use super::link::EngineCommand;
use super::scripts::Script;
use crate::core::context::Context;
use crate::core::sources::Outbound;
use crate::market::SourceId;
use crate::replication::{Entry, SeriesPart, Update, encode};
use std::fmt::Display;

/// Requests for candles that stay in the engine.
const MOST_ASKS: &[u8] = b"256";

/// Longest entry that is not split: a page of 5,000 candles has some 400 KB.
const MOST_ENTRY: usize = 1024 * 1024;

impl Cluster {
    /// Tells the other nodes something of a source.
    pub(super) fn tell(&mut self, id: SourceId, told: Outbound, cx: &mut Context) {
        let is_told = match told {
            Outbound::Entry(entry) => self.publish(id, *entry, cx),
            Outbound::List(bytes) => self.publish_list(id, &bytes, cx),
            Outbound::Ask(series) => self.ask(id, &series, cx),
        };
        let status = cx.stats.cluster.get_or_insert_default();
        match is_told {
            Some(()) => status.published += 1,
            None => status.dropped += 1,
        }
    }

    fn publish(&mut self, id: SourceId, mut entry: Entry, cx: &mut Context) -> Option<()> {
        let epoch = self.epoch(id, cx)?;
        entry.head.epoch = epoch;
        let (is_first, is_last) = match entry.body {
            Update::Quotes { is_first, is_last, .. } => (is_first, is_last),
            _ => (false, false),
        };
        let bytes = encode(&entry);
        if bytes.len() > MOST_ENTRY
            && let Some(second) = entry.split()
        {
            self.publish(id, entry, cx)?;
            return self.publish(id, second, cx);
        }
        if !self.engine.has_room(bytes.len()) {
            return None;
        }
        let lease = &mut self.leases[id.index()];
        lease.told_at = cx.now.mono;
        let keep = lease.keep(bytes.len(), is_first);
        let mark = u8::from(is_first) | u8::from(is_last) << 1;
        let words: [&dyn Display; 4] = [&self.run, &epoch, &keep, &mark];
        self.engine.run(EngineCommand::Run(Script::Publish, id, 0), &words, Some(&bytes), cx);
        Some(())
    }

    fn publish_list(&mut self, id: SourceId, bytes: &[u8], cx: &mut Context) -> Option<()> {
        let epoch = self.epoch(id, cx)?;
        let command = EngineCommand::Run(Script::List, id, 0);
        self.engine.run(command, &[&self.run, &epoch], Some(bytes), cx);
        Some(())
    }

    /// The epoch under which this node may publish now.
    fn epoch(&self, id: SourceId, cx: &Context) -> Option<u64> {
        let epoch = self.leases[id.index()].epoch(cx.now.mono);
        epoch.filter(|_| self.engine.is_up)
    }

    fn ask(&mut self, id: SourceId, series: &SeriesPart, cx: &mut Context) -> Option<()> {
        let bytes = encode(series);
        let follows = self.leases[id.index()].held.is_none();
        if !follows || !self.engine.has_room(bytes.len()) {
            return None;
        }
        let key = self.engine.key(id, "ask", cx);
        let words: [&[u8]; 8] =
            [b"XADD", key.as_bytes(), b"MAXLEN", b"~", MOST_ASKS, b"*", b"e", &bytes];
        self.engine.send(EngineCommand::Other, &words, cx);
        Some(())
    }
}
