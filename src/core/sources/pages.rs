//! Market lists, and tickers of all markets, that come in pages.
//!
//! [`Paging`] owns the tickers of the pages that have come, and where the next page begins. Nothing of them
//! is applied before the last page has come: what a list lacks would be removed, and quotes of one poll would
//! pass for those of two. The markets of a list are in the catalog meanwhile, which serves none of them
//! before the list ends.

use crate::core::sources::staged::Staged;
use crate::core::sources::task::Task;
use crate::exchange::NextPage;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Paging {
    /// What has come of each, and where it goes on.
    begun: Vec<(Staged, NextPage)>,
}

impl Paging {
    /// The page of this task that is requested next; `None`: the first one.
    pub fn next(&self, task: &Task) -> Option<&NextPage> {
        self.begun.iter().find(|(staged, _)| staged.task == *task).map(|(_, next)| next)
    }

    /// Takes in a page, and where the next one begins. Returns all pages together once the last one has come.
    pub fn add(&mut self, page: Staged, next: Option<NextPage>) -> Option<Staged> {
        let whole = match self.begun.iter().position(|(staged, _)| staged.task == page.task) {
            Some(at) => {
                let (mut staged, _) = self.begun.swap_remove(at);
                staged.add(page);
                staged
            }
            None => page,
        };
        let Some(next) = next else {
            return Some(whole);
        };
        self.begun.push((whole, next));
        None
    }

    /// Drops the pages of a task that have come: it begins with the first one again.
    pub fn forget(&mut self, task: &Task) {
        self.begun.retain(|(staged, _)| staged.task != *task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::exchange::Sink as _;
    use crate::market::{Catalog, SourceId, SymbolId};
    use crate::record::Ticker;
    use crate::time::{Mono, Now, UnixMs};

    fn page(ms: u64, time: i64) -> Staged {
        let mut staged = Staged::new(SourceId(0), Task::Tickers);
        staged.tickers.push(SymbolId(ms as u32), Ticker::of_last(Decimal::from(1)));
        let mut catalog = Catalog::new(&crate::config::Config::default());
        let mut stager = crate::core::sources::staged::Stager {
            staged: &mut staged,
            catalog: &mut catalog,
            symbol: None,
        };
        stager.stamp(UnixMs(time));
        let at = Now { mono: Mono(ms * 1000), unix: UnixMs(ms as i64) };
        staged.arrived(at, at, 10);
        staged
    }

    #[test]
    fn pages_are_one_when_the_last_has_come_and_are_of_the_time_of_the_first() {
        let mut pages = Paging::default();
        let next = |number| Some(NextPage { number, ..NextPage::default() });
        assert!(pages.add(page(5, 100), next(2)).is_none());
        assert_eq!(pages.next(&Task::Tickers), next(2).as_ref());
        assert_eq!(pages.next(&Task::Markets), None);
        assert!(pages.add(page(6, 200), next(3)).is_none());
        let mut whole = pages.add(page(7, 300), None).expect("the last page");
        assert_eq!((whole.received.unix, whole.bytes, whole.pages), (UnixMs(5), 30, 3));
        assert_eq!(whole.sent.map(|at| at.unix), [UnixMs(5), UnixMs(7)]);
        let mut times = Vec::new();
        while let Some(piece) = whole.tickers.next_piece() {
            times.extend(piece.iter().map(|(_, ticker)| ticker.timestamp.map(|time| time.0)));
        }
        assert_eq!(times, [Some(100), Some(200), Some(300)], "each page has its own time");
        assert_eq!(pages.next(&Task::Tickers), None);
    }

    #[test]
    fn what_is_dropped_begins_again() {
        let mut pages = Paging::default();
        pages.add(page(5, 100), Some(NextPage::default()));
        pages.forget(&Task::Tickers);
        assert_eq!(pages.next(&Task::Tickers), None);
        assert_eq!(pages.add(page(6, 100), None).map(|it| it.pages), Some(1));
    }
}
