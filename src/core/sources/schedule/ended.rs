//! What the end of a request means for the schedule, if its response is not good or is the last of a round.

use super::{HOURLY_RETRY, Schedule};
use crate::core::context::Context;
use crate::core::sources::fault::Blame;
use crate::core::sources::quote_round::RoundEnd;
use crate::core::sources::staged::Paging;
use crate::core::sources::task::Task;
use crate::exchange::RequestKind;
use crate::market::Awaited;
use crate::time::Mono;
use std::time::Duration;

impl Schedule {
    /// A request has come to nothing through nobody's fault: its task is due again, at once.
    pub fn put_back(&mut self, task: &Task, now: Mono) {
        match task {
            Task::Tickers | Task::Markets if self.pages.next(task).is_some() => {}
            Task::Tickers => self.quotes_due = now,
            Task::TickersOf { symbols, .. } => self.round.put_back(symbols),
            Task::Stats(symbol) => self.round.put_back_stats(*symbol, now),
            Task::Markets => self.list_due = now,
            Task::Time => self.clock.due = now,
            // It is due as long as its slots are missing.
            Task::Candles { .. } => {}
        }
    }

    /// Drops the pages that have come. Tickers begin again with the next poll, a list at once.
    pub fn forget_pages(&mut self, now: Mono) {
        if self.pages.next(&Task::Markets).is_some() {
            self.list_due = now;
        }
        self.pages = Paging::default();
    }

    /// A request has failed, which concerns `blame`: sets when its task is due again. Returns what that means
    /// for the round.
    pub fn failed(&mut self, task: &Task, blame: Blame, cx: &mut Context) -> RoundEnd {
        self.pages.forget(task);
        match task {
            Task::Candles { series, .. } => {
                self.candles.failed(*series, blame == Blame::Market, cx.now);
            }
            Task::Markets => {
                // Without a first list nothing is served: then only the back-off counts.
                let pause = if self.has_list { HOURLY_RETRY } else { Duration::ZERO };
                self.list_due = cx.now.mono + pause;
                cx.market.catalog.drop_list(self.profile.id);
            }
            Task::Time => self.clock.failed(&mut self.candles, cx),
            Task::TickersOf { symbols, .. } if blame == Blame::Market && symbols.len() > 1 => {
                self.round.divide(symbols);
            }
            Task::TickersOf { symbols, .. } => {
                self.round.note(RequestKind::Quotes, symbols, false);
                return self.market_ended(false, cx);
            }
            Task::Stats(symbol) => self.round.note(RequestKind::Stats, &[*symbol], false),
            Task::Tickers => {}
        }
        RoundEnd::NotYet
    }

    /// A request of a round has been answered well, or not: the last one ends the round.
    pub fn market_ended(&mut self, is_good: bool, cx: &mut Context) -> RoundEnd {
        let id = self.profile.id;
        let end = self.round.ended(is_good, cx.now.mono);
        match end {
            RoundEnd::NotYet => return end,
            RoundEnd::WithQuotes => {
                cx.market.quotes.end_poll(id, cx.now);
                self.clock.note_newest(&self.round.newest, cx.now.mono, &mut self.candles, cx);
            }
            // The exchange answers, and has none of the markets: nothing is waited for, and the source
            // must not pass for up.
            RoundEnd::WithoutQuotes => self.failures.back_off(cx),
        }
        cx.market.quotes.arrived(id, Awaited::PollEnd);
        cx.stats[id].quotes_polled = true;
        end
    }

    /// True if a request of this kind failed for some market, and has not been answered well since.
    pub fn has_failing_market(&self, kind: RequestKind) -> bool {
        match kind {
            RequestKind::Candles => self.candles.has_failing(),
            RequestKind::Quotes | RequestKind::Stats => self.round.has_failed(kind),
            RequestKind::List | RequestKind::Time => false,
        }
    }
}
