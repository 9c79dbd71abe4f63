//! What takes the history longer than a turn: its jobs, each with a cursor inside.
//!
//! [`WorkQueue`] owns the jobs. The history steps one at a time
//! ([`History::work`](super::History::work)), the first of those that can go on: in the order of the
//! variants of [`Work`], and within one variant the oldest.

use super::refill::Refill;
use super::saved_quotes::{Restore, SaveRound};
use crate::history::{Batch, Extent, SeriesName};
use crate::market::SourceId;
use std::collections::VecDeque;

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

impl Work {
    /// The lower, the earlier.
    fn rank(&self) -> u8 {
        match self {
            Work::RestoreQuotes(_) => 0,
            Work::SendBatch(..) | Work::ArchiveBatch(_) => 1,
            Work::SaveQuotes(_) => 2,
            Work::SaveRules(..) => 3,
            Work::Refill(_) => 4,
        }
    }

    /// True if it is a step of the batch that is being written.
    pub fn is_batch(&self) -> bool {
        matches!(self, Work::SendBatch(..) | Work::ArchiveBatch(_))
    }

    /// True if it writes from memory.
    pub fn is_refill(&self) -> bool {
        matches!(self, Work::Refill(_))
    }
}

/// The jobs of the history.
#[derive(Debug, Default)]
pub struct WorkQueue(VecDeque<Work>);

impl WorkQueue {
    /// Adds jobs behind the others of their kind. A refill, and the rules of a source, begin anew.
    pub fn push(&mut self, jobs: impl IntoIterator<Item = Work>) {
        for new in jobs {
            self.0.retain(|old| match (old, &new) {
                (Work::Refill(_), Work::Refill(_)) => false,
                (Work::SaveRules(old, _), Work::SaveRules(new, _)) => old != new,
                _ => true,
            });
            self.0.push_back(new);
        }
    }

    /// The place of the job that is stepped next, of those that can be.
    pub fn next(&self, can_step: impl Fn(&Work) -> bool) -> Option<usize> {
        let ready = (0..self.0.len()).filter(|at| can_step(&self.0[*at]));
        ready.min_by_key(|at| self.0[*at].rank())
    }

    /// Takes out a job.
    pub fn take(&mut self, at: usize) -> Option<Work> {
        self.0.remove(at)
    }

    /// Puts back a job that is not done: it is stepped on before the others of its kind.
    pub fn put_back(&mut self, work: Work) {
        self.0.push_front(work);
    }

    /// The batch that is being sent.
    pub fn unsent(&self) -> Option<&Batch> {
        self.0.iter().find_map(|work| match work {
            Work::SendBatch(batch, _) => Some(&**batch),
            _ => None,
        })
    }

    /// The file has gone: what was written to it is not archived, and a refill begins anew.
    pub fn forget_acknowledged(&mut self) {
        let is_moot = |work: &Work| matches!(work, Work::ArchiveBatch(_) | Work::Refill(_));
        self.0.retain(|work| !is_moot(work));
    }
}
