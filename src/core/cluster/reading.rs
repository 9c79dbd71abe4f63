//! What the other nodes tell this one: entries of the sources that it follows, market lists, and requests for
//! candles of the sources that it collects. Each reply of the engine comes here first.
//!
//! At most one reply waits to be applied: the next read begins when all of its entries are applied.

use super::Cluster;
use super::engine::{BLOCKS, READER};
use super::link::{EngineCommand, EntryId, PendingCommand, StreamKey, Unread};
use super::scripts::Script;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::Sources;
use crate::core::upstream::ConnectState;
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::replication::{Entry, EntryError, Markets, Update, decode};
use crate::resp::{RespValue, parse};
use crate::table::Key;
use crate::time::Mono;
use std::time::Duration;

/// Entries of one stream in one reply.
const ENTRIES: &[u8] = b"16";

/// Entries are applied only while fewer staged responses than this wait to be applied.
const MOST_STAGED: usize = 8;

/// Most characters of an error of the engine that are logged.
const MOST_TOLD: usize = 120;

/// If a place is ahead of the engine's time by more than this, the clock of the engine went back.
const AHEAD_MS: u64 = 1000;

impl Cluster {
    /// True if [`Cluster::work`] has something to do.
    pub fn has_work(&self, staged: usize) -> bool {
        !self.unread.is_empty() && staged < MOST_STAGED
    }

    /// Applies the next entry.
    pub fn work(&mut self, sources: &mut Sources, history: &mut History, cx: &mut Context) {
        let Some(Unread { source, is_ask, id, bytes }) = self.unread.pop_front() else {
            return;
        };
        let lease = &mut self.leases[source.index()];
        let result = match is_ask {
            true if lease.epoch(cx.now.mono).is_some() => {
                lease.asks = id;
                decode(&bytes).map(|series| sources[source].take_request(&series, history, cx))
            }
            false if lease.held.is_none() => {
                decode(&bytes).map(|entry| self.apply(source, id, entry, sources, cx))
            }
            _ => Ok(()),
        };
        self.note_unreadable(source, id, result, cx);
        self.read_on(cx);
    }

    /// Passes over an entry that cannot be read. The first time, the log says so.
    fn note_unreadable(
        &mut self,
        source: SourceId,
        id: EntryId,
        result: Result<(), EntryError>,
        cx: &Context,
    ) {
        let Err(error) = result else {
            return;
        };
        let lease = &mut self.leases[source.index()];
        if let EntryError::Newer(version) = error {
            lease.format = Some(version).filter(|_| lease.held.is_none());
        }
        if lease.told_error.replace(error) != Some(error) {
            let source = &cx.stats[source].id;
            log::error!(target: CLUSTER, "entry unreadable source={source} id={id} error={}", quoted(error));
        }
    }

    fn apply(
        &mut self,
        source: SourceId,
        id: EntryId,
        entry: Entry,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let (now, patience) = (cx.now.mono, self.patience(cx.now.mono));
        let lease = &mut self.leases[source.index()];
        if entry.head.epoch < lease.live {
            // The entry is of a former collector: the engine came back with old data.
            return;
        }
        (lease.heard_at, lease.format) = (now, None);
        if let Update::Released(to) = &entry.body {
            lease.due = now + if to.is_none() { patience } else { Duration::ZERO };
        }
        let age_ms = self.engine.time_ms(now).saturating_sub_unsigned(id.ms).max(0) as u64;
        let status = cx.stats.cluster.get_or_insert_default();
        status.applied += 1;
        status.sources[source.index()].lag_ms = Some(age_ms);
        self.tell_role(source, sources, cx);
        sources[source].follow_entry(entry, Duration::from_millis(age_ms), cx);
    }

    /// Notes where the stream is to be read from, and fetches the market list if there is a newer one.
    pub(super) fn note_place(&mut self, id: SourceId, look: &RespValue<'_>, cx: &mut Context) {
        let entry = |at: usize| EntryId::parse(look.bytes_at(at));
        let (from, last) = (entry(3), entry(4).unwrap_or_default());
        let version = look.count_at(5);
        let ahead = self.engine.time_ms(cx.now.mono).unsigned_abs() + AHEAD_MS;
        let lease = &mut self.leases[id.index()];
        let place = lease.place.unwrap_or(from.map_or(EntryId::default(), EntryId::before));
        // If the engine's clock went back, new entries come before the place.
        lease.place = Some(if place.ms > ahead { place.min(last) } else { place });
        if lease.list.replace(version) != Some(version) {
            let key = self.engine.key(id, "list", cx);
            let command = EngineCommand::GetList(id);
            self.engine.send(command, &[b"GET", key.as_bytes()], cx);
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
        let Some(bytes) = bytes.filter(|_| self.leases[id.index()].held.is_none()) else {
            return true;
        };
        match Markets::new(bytes.to_vec()) {
            Ok(list) => sources[id].follow_list(list, cx),
            Err(error) => {
                self.note_unreadable(id, EntryId::default(), Err(error), cx);
                true
            }
        }
    }

    /// Waits for more entries, if all that was read is applied.
    pub(super) fn read_on(&mut self, cx: &mut Context) {
        let is_open = self.engine.upstream.state(READER) == ConnectState::Open;
        let is_reading = !self.engine.links[READER].pending.is_empty();
        let is_open = is_open && self.engine.is_up && self.reads_from <= cx.now.mono;
        if !is_open || is_reading || !self.unread.is_empty() {
            return;
        }
        let mut places = Vec::new();
        self.streams.clear();
        for (at, lease) in (0..).zip(&self.leases) {
            let source = SourceId(at);
            // Entries name tickers by the ids of the exchange, which only the market list maps to symbols.
            // Version 0: no collector has published a list yet.
            let has_list = lease.list == Some(0) || cx.market.catalog.has_list(source);
            let (what, place) = match (lease.held, lease.place) {
                (Some(held), _) if cx.now.mono < held.until => ("ask", lease.asks),
                (None, Some(place)) if lease.list.is_some() && has_list => ("stream", place),
                _ => continue,
            };
            let name = self.engine.key(source, what, cx);
            self.streams.push(StreamKey { name, source, is_ask: what == "ask" });
            places.push(place.to_string());
        }
        if places.is_empty() {
            return;
        }
        let block = (self.engine.lease / BLOCKS).as_millis().to_string();
        let mut words: Vec<&[u8]> =
            vec![b"XREAD", b"COUNT", ENTRIES, b"BLOCK", block.as_bytes(), b"STREAMS"];
        let names = self.streams.iter().map(|stream| &stream.name);
        words.extend(names.chain(&places).map(String::as_bytes));
        self.engine.send_on(READER, EngineCommand::Read, &words, cx);
    }

    /// Takes in the reply to a read.
    pub(super) fn take_entries(&mut self, reply: &RespValue<'_>, cx: &mut Context) {
        for stream in reply.list() {
            let [name, entries] = stream.list() else {
                continue;
            };
            let is_named = |it: &&StreamKey| name.bytes() == Some(it.name.as_bytes());
            let Some(&StreamKey { source, is_ask, .. }) = self.streams.iter().find(is_named) else {
                continue;
            };
            for entry in entries.list() {
                let [id, fields] = entry.list() else { continue };
                let Some(id) = id.bytes().and_then(EntryId::parse) else {
                    continue;
                };
                let lease = &mut self.leases[source.index()];
                match (is_ask, &mut lease.place) {
                    (true, _) => {}
                    (false, Some(place)) => *place = id,
                    // The source is not followed any more.
                    (false, None) => continue,
                }
                // An entry with other fields is not of marketd, and cannot be read.
                let bytes = match fields.list() {
                    [RespValue::Bulk(b"e"), RespValue::Bulk(bytes)] => bytes.to_vec(),
                    _ => Vec::new(),
                };
                self.unread.push_back(Unread { source, is_ask, id, bytes });
            }
        }
        self.read_on(cx);
    }

    /// Takes in the replies that have come, one after the other.
    pub(super) fn take_replies(
        &mut self,
        conn: usize,
        key: Key,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let inbox = std::mem::take(&mut self.engine.links[conn].inbox);
        let mut at = 0;
        // A reply may close the connection.
        while self.engine.upstream.has_key(conn, key) {
            match parse(&inbox[at..]) {
                Ok(None) => return self.engine.links[conn].put_back(inbox, at),
                Ok(Some((reply, used))) => {
                    let Some(pending) = self.engine.links[conn].pending.pop_front() else {
                        return self.engine.fail("unexpected reply", cx);
                    };
                    self.replied(pending, &reply, sources, cx);
                    at += used;
                }
                Err(error) => return self.engine.fail(error, cx),
            }
        }
    }

    /// Takes in the reply to a command.
    fn replied(
        &mut self,
        PendingCommand { command, sent_at, .. }: PendingCommand,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        if let RespValue::Error(error) = reply {
            return self.refused(command, error, cx);
        }
        match command {
            EngineCommand::Auth | EngineCommand::Other => {}
            EngineCommand::Run(script, id) => match script {
                Script::Beat => self.beaten(sent_at, reply, cx),
                Script::Look => self.looked(id, sent_at, reply, sources, cx),
                Script::Renew => self.renewed(id, sent_at, reply, sources, cx),
                Script::Publish | Script::List if *reply == RespValue::Null => {
                    // The lease is not ours, or has run out.
                    self.leases[id.index()].due = cx.now.mono;
                    cx.stats.cluster.get_or_insert_default().fenced += 1;
                    log::warn!(target: CLUSTER, "entry refused source={}", cx.stats[id].id);
                }
                Script::Publish | Script::List | Script::Release => {}
            },
            EngineCommand::GetList(id) => {
                if !self.read_list(id, reply.bytes(), sources, cx) {
                    self.leases[id.index()].list = None;
                }
            }
            EngineCommand::Read => {
                if !self.engine.is_up {
                    self.engine.came_up(cx);
                    self.resume(sources, cx);
                }
                self.take_entries(reply, cx);
            }
        }
    }

    /// Takes in that a command was refused.
    fn refused(&mut self, command: EngineCommand, error: &[u8], cx: &mut Context) {
        let is_of_key = memchr::memmem::find(error, b"WRONGTYPE").is_some();
        match command {
            _ if error.starts_with(b"MOVED ") => self.engine.moved(&error[6..], cx),
            EngineCommand::Run(_, id) if is_of_key && id != SourceId::ENGINE => {
                self.spoil(id, "a key of the source is malformed".to_string(), cx);
            }
            EngineCommand::Read if is_of_key => {
                // The next renewals and looks find out which source the key belongs to.
                self.reads_from = cx.now.mono + self.engine.tick();
            }
            EngineCommand::GetList(_) | EngineCommand::Other if is_of_key => {}
            _ => self.engine.fail(&refusal(command, error), cx),
        }
    }

    /// The engine's time and the runs of nodes have come.
    fn beaten(&mut self, sent_at: Mono, reply: &RespValue<'_>, cx: &mut Context) {
        let (Some(time), [_, runs]) = (reply.number_at(0), reply.list()) else {
            return self.engine.fail("malformed reply to a heartbeat", cx);
        };
        self.engine.beaten(time, sent_at, cx);
        let run = |it: &[RespValue<'_>]| {
            let name = String::from_utf8_lossy(it[0].bytes()?).into_owned();
            Some((name, time.saturating_sub(it[1].number()?)))
        };
        let runs: Vec<_> = runs.list().chunks_exact(2).filter_map(run).collect();
        self.note_nodes(&runs, cx);
    }
}

/// Why a command was refused, in words.
fn refusal(command: EngineCommand, error: &[u8]) -> String {
    let error = String::from_utf8_lossy(error);
    let word = error.split(' ').next().unwrap_or("");
    let told: String = error.chars().take(MOST_TOLD).collect();
    match word {
        // An engine that does not know the command repeats its arguments, with the password.
        _ if command == EngineCommand::Auth => "wrong user or password".to_string(),
        "NOAUTH" => "user and password required".to_string(),
        "WRONGPASS" => "wrong user or password".to_string(),
        "NOPERM" => format!("missing permission: {told}"),
        "READONLY" => "read-only replica".to_string(),
        "LOADING" => "loading its data".to_string(),
        "OOM" => "out of memory".to_string(),
        // While keys move, either node has some of them. Once one node has all, `MOVED` names it.
        "ASK" | "TRYAGAIN" => "the Redis cluster is moving the keys to another node".to_string(),
        _ => format!("command refused: {told}"),
    }
}
