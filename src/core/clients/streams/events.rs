//! The text of what a reader is sent at a time: some events. The first event may tell when to come back. The
//! last event tells how far the stream has come.

use crate::core::api::Position;
use crate::core::api::stream::write_retry;
use crate::core::clients::deferred::SHARE;

/// Events of one reader, written one behind the other. An event is ended by an empty line once the next event
/// begins or [`Events::finish`] is called.
pub struct Events<'a> {
    out: &'a mut Vec<u8>,
    /// The length at which the share is used up.
    end: usize,
    /// The time that the first event tells the client to wait before it comes back.
    retry_ms: Option<u64>,
    count: u64,
}

impl<'a> Events<'a> {
    /// Events of about one share, appended to `out`. The first event tells `retry_ms`, if given.
    pub fn new(out: &'a mut Vec<u8>, retry_ms: Option<u64>) -> Events<'a> {
        Events { end: out.len() + SHARE as usize, out, retry_ms, count: 0 }
    }

    /// The place to append the next event.
    pub fn next(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            self.out.push(b'\n');
        } else if let Some(wait_ms) = self.retry_ms {
            write_retry(self.out, wait_ms);
        }
        self.count += 1;
        self.out
    }

    /// True if the share is used up.
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.end
    }

    /// Ends the last event, with this id if there is one. Returns the number of events.
    pub fn finish(self, id: Option<(Position, u64)>) -> u64 {
        if self.count == 0 {
            return 0;
        }
        if let Some((position, boot)) = id {
            position.write(boot, self.out);
        }
        self.out.push(b'\n');
        self.count
    }
}
