//! What was read and not yet applied, and the engine's time, by which the age of an entry is known.
//!
//! [`Unread`] is bounded by one reply: nothing more is read before all of it is applied.

use super::seat::{EntryId, Seat};
use crate::market::SourceId;
use crate::resp::RespValue;
use crate::time::Mono;
use std::collections::VecDeque;

/// Requests for candles that were made so long before this node collected are still answered.
const RECENT_MS: i64 = 5000;

/// Signs of life by which the engine's time is judged: the quickest of them tells it best.
const TIMES: usize = 8;

/// See the module's page.
#[derive(Default)]
pub struct Unread {
    /// Entries that were read and not applied.
    pub raw: VecDeque<Raw>,
    /// True while a read is under way.
    pub is_sent: bool,
    /// The sources of the keys in the read that is under way, and whether each is a stream of requests.
    pub keys: Vec<(String, SourceId, bool)>,
    /// The engine's milliseconds at our `Mono` zero, by the last signs of life. Each is too high by the time
    /// that the command was on its way.
    zeros: VecDeque<i64>,
    /// True if entries are of a newer format: nothing is read any more.
    pub is_too_old: bool,
    /// True if a malformed entry was told.
    pub is_logged: bool,
}

/// An entry as it was read.
pub struct Raw {
    /// The source that it is about.
    pub source: SourceId,
    /// True for a request.
    pub is_ask: bool,
    /// Its place.
    pub id: EntryId,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl Unread {
    /// The engine has told its time, asked then.
    pub fn note_time(&mut self, time: i64, sent_at: Mono) {
        self.zeros.push_back(time.saturating_sub_unsigned(sent_at.0 / 1000));
        if self.zeros.len() > TIMES {
            self.zeros.pop_front();
        }
    }

    /// The engine's time in milliseconds: never too low, and too high by less than a round trip.
    pub fn engine_time(&self, now: Mono) -> i64 {
        let zero = self.zeros.iter().min().copied().unwrap_or(0);
        zero.saturating_add_unsigned(now.0 / 1000)
    }

    /// The place in a stream of requests from which on they are still answered.
    pub fn recent(&self, now: Mono) -> EntryId {
        EntryId { ms: self.engine_time(now).saturating_sub(RECENT_MS).max(0) as u64, number: 0 }
    }

    /// A reply with entries has come.
    pub fn came(&mut self, streams: &[RespValue<'_>], seats: &mut [Seat]) {
        self.is_sent = false;
        for stream in streams {
            let [name, entries] = stream.list() else {
                continue;
            };
            let is_named = |it: &&(String, SourceId, bool)| name.bytes() == Some(it.0.as_bytes());
            let Some(&(_, source, is_ask)) = self.keys.iter().find(is_named) else {
                continue;
            };
            for entry in entries.list() {
                let [id, fields] = entry.list() else { continue };
                let Some(id) = id.bytes().and_then(EntryId::parse) else {
                    continue;
                };
                let seat = &mut seats[source.index()];
                match (is_ask, &mut seat.place) {
                    (true, _) => seat.asks = id,
                    (false, Some(place)) => *place = id,
                    // It is not followed any more.
                    (false, None) => continue,
                }
                // What others have written there is passed over.
                let [RespValue::Bulk(b"e"), RespValue::Bulk(bytes)] = fields.list() else {
                    continue;
                };
                let bytes = bytes.to_vec();
                self.raw.push_back(Raw { source, is_ask, id, bytes });
            }
        }
    }
}
