//! What takes the history longer than a turn: its jobs, each with a cursor inside.
//!
//! The history steps one at a time ([`History::work`](super::History::work)), the first of those that
//! can go on.

use super::refill::Refill;
use super::saved_quotes::{Restore, SaveRound};
use crate::history::{Batch, Extent, SeriesName};
use crate::job_queue::QueuedJob;
use crate::market::SourceId;

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Work {
    /// Puts the saved quotes of a source back.
    RestoreQuotes(Restore),
    /// Notes the ranges of a batch, up to this series; then the batch is sent.
    SendBatch(Box<Batch>, Option<SeriesName>),
    /// Archives the ranges of a batch that is written. The file holds this of its series now.
    ArchiveBatch(Vec<(SeriesName, Extent)>),
    /// Saves the quotes that have changed.
    SaveQuotes(SaveRound),
    /// Saves what the market list of a source says of orders, from this place among the known symbols.
    SaveRules(SourceId, usize),
    /// Writes from memory what the file lacks.
    Refill(Refill),
}

impl QueuedJob for Work {
    fn rank(&self) -> u8 {
        match self {
            Work::RestoreQuotes(_) => 0,
            Work::SendBatch(..) | Work::ArchiveBatch(_) => 1,
            Work::SaveQuotes(_) => 2,
            Work::SaveRules(..) => 3,
            Work::Refill(_) => 4,
        }
    }

    fn replaces(&self, older: &Work) -> bool {
        match (self, older) {
            (Work::Refill(_), Work::Refill(_)) => true,
            (Work::SaveRules(source, _), Work::SaveRules(older, _)) => source == older,
            _ => false,
        }
    }
}

impl Work {
    /// True if it is a step of the batch that is being written.
    pub fn is_batch(&self) -> bool {
        matches!(self, Work::SendBatch(..) | Work::ArchiveBatch(_))
    }

    /// The batch that is being sent.
    pub fn unsent(&self) -> Option<&Batch> {
        match self {
            Work::SendBatch(batch, _) => Some(batch),
            _ => None,
        }
    }
}
