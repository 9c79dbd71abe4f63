//! The body of a chart while it is built, row by row.
//!
//! Owns the bytes, their fingerprint, and the counts reported about the rows.

use super::known::BucketState;
use super::window::Outcome;
use crate::decimal::Decimal;
use crate::fingerprint::Fingerprint;
use crate::time::UnixMs;

/// The rows made so far.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) body: Vec<u8>,
    pub(super) made_of: Fingerprint,
    /// The volume of the next row.
    pub(super) volume: Vec<u8>,
    pub(super) outcome: Outcome,
    quoted: bool,
}

impl Rows {
    pub(super) fn new(quoted: bool) -> Rows {
        Rows {
            body: b"[".to_vec(),
            made_of: Fingerprint::new(),
            volume: Vec::new(),
            outcome: Outcome::default(),
            quoted,
        }
    }

    /// Appends a row: open time, open, high, low, close, and the volume set before.
    pub(super) fn push(&mut self, open: UnixMs, prices: [&[u8]; 4]) {
        let body = &mut self.body;
        body.push(b'[');
        Decimal::from(open.0).write(body);
        for number in prices.into_iter().chain([&self.volume[..]]) {
            body.push(b',');
            if self.quoted {
                body.push(b'"');
                body.extend_from_slice(number);
                body.push(b'"');
            } else {
                body.extend_from_slice(number);
            }
        }
        body.extend_from_slice(b"],");
    }

    pub(super) fn count(&mut self, slot: i64, state: BucketState) {
        let outcome = &mut self.outcome;
        outcome.rows += 1;
        outcome.begin.get_or_insert(slot);
        outcome.first.get_or_insert(slot);
        outcome.last = Some(slot);
        outcome.has_forming |= state == BucketState::Open;
    }

    pub(super) fn close(&mut self) {
        if self.body.last() == Some(&b',') {
            self.body.pop();
        }
        self.body.push(b']');
    }
}
