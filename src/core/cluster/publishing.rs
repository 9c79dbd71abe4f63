//! What this node tells the others: entries of the sources that it collects, and candles that it asks for.
//!
//! What cannot be sent now is dropped and counted: the next poll brings quotes anew, and followers ask for
//! candles that they miss.

use super::Cluster;
use super::engine::Which;
use super::link::EngineCommand;
use super::scripts::Script;
use super::seat::Hold;
use crate::core::context::Context;
use crate::core::sources::{Outbound, Sources};
use crate::market::SourceId;
use crate::replication::{Entry, EntryHead, Update, encode, encode_ask};
use std::fmt::Display;

/// Requests for candles that stay in the engine.
const MOST_ASKS: &[u8] = b"256";

/// Longest entry: a page of 5,000 candles has some 400 KB.
const MOST_ENTRY: usize = 1024 * 1024;

impl Cluster {
    /// Tells the other nodes something of a source.
    pub(super) fn tell(&mut self, id: SourceId, told: Outbound, cx: &mut Context) {
        let is_told = match told {
            Outbound::Entry(entry) => self.publish(id, *entry, cx),
            Outbound::List(bytes) => self.publish_list(id, &bytes, cx),
            Outbound::Ask(series) => self.ask(id, &encode_ask(&series), cx),
        };
        if let Some(cluster) = &mut cx.stats.cluster {
            match is_told {
                true => cluster.published += 1,
                false => cluster.dropped += 1,
            }
        }
    }

    fn publish(&mut self, id: SourceId, mut entry: Entry, cx: &mut Context) -> bool {
        let seat = &mut self.seats[id.index()];
        let Some(epoch) = seat.epoch(cx.now.mono).filter(|_| self.engine.is_up()) else {
            return false;
        };
        entry.head.epoch = epoch;
        let mark = match &entry.body {
            Update::Quotes { is_first, is_last, .. } => {
                u8::from(*is_first) | u8::from(*is_last) << 1
            }
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(256);
        encode(&entry, &mut bytes);
        if bytes.len() > MOST_ENTRY || !self.engine.link(Which::Commands).has_room(bytes.len()) {
            return false;
        }
        let keep = seat.keep(bytes.len(), mark & 1 == 1);
        let name = &cx.stats[id].id;
        let keys = ["lease", "stream"].map(|what| self.keys.of(name, what));
        let command = (Script::Publish, EngineCommand::Publish(id));
        let words: [&dyn Display; 4] = [&self.run, &epoch, &keep, &mark];
        self.engine.run(command, &keys, &words, Some(&bytes), cx);
        true
    }

    fn publish_list(&mut self, id: SourceId, bytes: &[u8], cx: &mut Context) -> bool {
        let seat = &self.seats[id.index()];
        let Some(epoch) = seat.epoch(cx.now.mono).filter(|_| self.engine.is_up()) else {
            return false;
        };
        let name = &cx.stats[id].id;
        let keys = ["lease", "list"].map(|what| self.keys.of(name, what));
        let command = (Script::List, EngineCommand::Publish(id));
        self.engine.run(command, &keys, &[&self.run, &epoch], Some(bytes), cx);
        true
    }

    fn ask(&mut self, id: SourceId, bytes: &[u8], cx: &mut Context) -> bool {
        let follows = self.seats[id.index()].hold == Hold::Follows;
        if !follows
            || !self.engine.is_up()
            || !self.engine.link(Which::Commands).has_room(bytes.len())
        {
            return false;
        }
        let key = self.keys.of(&cx.stats[id].id, "ask");
        let words: [&[u8]; 8] =
            [b"XADD", key.as_bytes(), b"MAXLEN", b"~", MOST_ASKS, b"*", b"e", bytes];
        self.engine.send(Which::Commands, EngineCommand::Other, &words, cx);
        true
    }

    /// Lets a lease go, and tells the followers.
    pub(super) fn send_release(
        &mut self,
        id: SourceId,
        epoch: u64,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let leaver = self.ends_since.map(|_| self.node.as_str().into());
        let entry = Entry {
            head: EntryHead {
                epoch,
                received: cx.now.unix,
                exchange_time: cx.stats[id].clock.map(|_| cx.exchange_time(id)),
                state: cx.stats[id].state as u8,
                ..EntryHead::default()
            },
            body: Update::Released(leaver),
        };
        let mut bytes = Vec::new();
        encode(&entry, &mut bytes);
        let keep = self.seats[id.index()].keep(bytes.len(), false);
        let left = sources[id].budget().left(cx.now.mono);
        let keys = ["lease", "stream"].map(|what| self.keys.of(&cx.stats[id].id, what));
        if self.engine.is_up() {
            let command = (Script::Release, EngineCommand::Other);
            let words: [&dyn Display; 4] = [&self.run, &epoch, &left, &keep];
            self.engine.run(command, &keys, &words, Some(&bytes), cx);
        }
    }
}
