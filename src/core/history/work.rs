//! The jobs of the history: work that takes longer than a turn.
//!
//! The history steps one job at a time ([`History::work`](super::History::work)): the first one that can go
//! on.

use super::refill::Refill;
use super::saved_quotes::{Restore, SaveRound};
use crate::history::WrittenSeries;
use crate::job_queue::QueuedJob;
use crate::market::SourceId;

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Work {
    /// Restores the saved quotes of a source.
    RestoreQuotes(Restore),
    /// Archives what a batch has written.
    ArchiveBatch(Vec<WrittenSeries>),
    /// Saves the quotes that have changed.
    SaveQuotes(SaveRound),
    /// Saves the trading rules of the market list of a source, from this place among the known symbols.
    SaveRules(SourceId, usize),
    /// Writes from memory what the file lacks.
    Refill(Refill),
}

impl QueuedJob for Work {
    fn rank(&self) -> u8 {
        match self {
            Work::RestoreQuotes(_) => 0,
            Work::ArchiveBatch(_) => 1,
            Work::SaveQuotes(_) => 2,
            Work::SaveRules(..) => 3,
            Work::Refill(_) => 4,
        }
    }

    fn replaces(&self, older: &Work) -> bool {
        match (self, older) {
            (Work::Refill(_), Work::Refill(_)) | (Work::SaveQuotes(_), Work::SaveQuotes(_)) => true,
            (Work::SaveRules(source, _), Work::SaveRules(older, _)) => source == older,
            _ => false,
        }
    }
}
