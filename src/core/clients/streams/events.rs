//! Events that are written one behind the other, and those of quotes that all readers share.

use crate::core::api::stream::write_quote;
use crate::core::api::{Position, View};
use crate::core::clients::pending::SHARE;
use crate::json::Decimals;
use crate::market::{Quote, SourceId, SymbolId};
use std::collections::HashMap;

/// Events of one reader. Each lacks its empty line until the next one, or the end.
pub struct Events<'a> {
    out: &'a mut Vec<u8>,
    /// The length at which the share is used up.
    end: usize,
    count: u64,
}

impl<'a> Events<'a> {
    /// Events of about one share, behind what is there.
    pub fn new(out: &'a mut Vec<u8>) -> Events<'a> {
        Events { end: out.len() + SHARE as usize, out, count: 0 }
    }

    /// The place to append the next event.
    pub fn next(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            self.out.push(b'\n');
        }
        self.count += 1;
        self.out
    }

    /// True if the share is used up.
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.end
    }

    /// Ends the last event, with this id if it has one. Returns the number of events.
    pub fn finish(self, id: Option<(Position, u64)>) -> u64 {
        if self.count > 0 {
            if let Some((position, boot)) = id {
                position.write(boot, self.out);
            }
            self.out.push(b'\n');
        }
        self.count
    }
}

/// Events of quotes with decimals as strings, and their versions: one for each quote, rendered once for all
/// readers. (With decimals as numbers, the JSON is kept with the quote.)
#[derive(Default)]
pub struct QuotedEvents(HashMap<(SourceId, SymbolId), (u64, Vec<u8>)>);

impl QuotedEvents {
    /// The event of a quote.
    pub fn of(&mut self, quote: &Quote, view: &View<'_>) -> &[u8] {
        let place = (quote.source, quote.symbol);
        let (version, event) = self.0.entry(place).or_default();
        if *version != quote.version {
            *version = quote.version;
            event.clear();
            write_quote(event, view, quote, Decimals::String);
        }
        event
    }
}
