//! The quotes of one source, and which of them are stale.
//!
//! Owns the flags of staleness, and the time at which the next one may change. Of symbols that the source
//! tracks only lately it owns what they wait for.

use super::super::ids::SymbolId;
use super::held::{Quote, Totals};
use crate::config::SourceConfig;
use crate::time::Mono;
use std::collections::BTreeSet;
use std::time::Duration;

/// What has to come before a missing quote means that the exchange has none, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A market list.
    List,
    /// A poll that is begun after it.
    Poll,
    /// The end of that poll.
    Answer,
}

/// The quotes of one source.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// By symbol. Boxed, because the symbols of one source may be few among all.
    pub(super) quotes: Vec<Option<Box<Quote>>>,
    pub(super) stale_after: Duration,
    pub(super) frozen_after: Duration,
    /// No fresh quote becomes stale before this; `None` if none is fresh.
    pub(super) next_stale: Option<Mono>,
    pub(super) last_change: Option<Mono>,
    /// The number of stale quotes.
    pub(super) stale: usize,
    pub(super) frozen: bool,
    /// Symbols that no poll has asked for, by what they wait for.
    pub(super) awaited: [BTreeSet<SymbolId>; 3],
}

impl Feed {
    pub(super) fn new(source: &SourceConfig) -> Feed {
        Feed {
            stale_after: source.stale_after,
            frozen_after: source.frozen_after,
            ..Feed::default()
        }
    }

    /// What some symbols wait for has come.
    pub(super) fn came(&mut self, awaited: Awaited) {
        let symbols = std::mem::take(&mut self.awaited[awaited as usize]);
        if let Some(next) = self.awaited.get_mut(awaited as usize + 1) {
            next.extend(symbols);
        }
    }

    /// Notes that a quote was received.
    pub(super) fn received(&mut self, changed: bool, now: Mono, totals: &mut Totals) {
        if changed {
            self.last_change = Some(now);
            if self.frozen {
                self.frozen = false;
                self.judge(now, totals);
            }
        }
        if !self.frozen {
            self.next_stale = self.next_stale.into_iter().chain([now + self.stale_after]).min();
        }
    }

    /// Scans every quote and corrects the flags. Returns the number of changes.
    pub(super) fn judge(&mut self, now: Mono, totals: &mut Totals) -> usize {
        let (mut turned, mut next_stale) = (0, None);
        for quote in self.quotes.iter_mut().flatten() {
            let stale =
                self.frozen || quote.restored || now.since(quote.received) >= self.stale_after;
            if stale != quote.stale {
                quote.set_stale(stale, &mut self.stale, totals);
                turned += 1;
            }
            if !stale {
                next_stale =
                    next_stale.into_iter().chain([quote.received + self.stale_after]).min();
            }
        }
        self.next_stale = next_stale;
        turned
    }
}
