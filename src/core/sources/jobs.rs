//! The jobs of a source: work that takes longer than a turn.
//!
//! The source steps one job at a time, one of the lowest rank that there is. Rank 0 applies responses and
//! market lists, in their order. Rank 1 decompresses bodies. Rank 2 counts candles, and writes lists for
//! other nodes.

use crate::core::sources::candle_page::CandlePage;
use crate::core::sources::replica::ListWriter;
use crate::core::sources::staged::StagedTickers;
use crate::job_queue;
use crate::market::SymbolId;
use crate::replication::Markets;
use crate::time::Now;
use std::vec::IntoIter;

/// The symbols that a new market list has still to be applied to.
#[derive(Debug)]
pub struct ListEnd {
    /// Markets that have left the list: their quotes are dropped. No client can ask for them any more.
    pub removed: IntoIter<SymbolId>,
    /// Markets that the configuration names: their candles are followed.
    pub named: IntoIter<SymbolId>,
}

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Job {
    /// Puts the tickers of a whole exchange into the market, one piece a slice. With the time of receipt.
    ApplyTickers(StagedTickers, Now),
    /// Puts a page of candles into its series. With the time of its receipt, the other nodes of a cluster
    /// are told of it first.
    ApplyCandles(CandlePage, Option<Now>),
    /// Reads the market list of another node.
    ReadList(Markets),
    /// Puts the market list that has come into place.
    RefreshList,
    /// Does what a new market list leads to.
    EndList(ListEnd),
    /// Decompresses what has come of the response on this connection. If it is closed meanwhile, nothing is
    /// left to do.
    Decompress(usize),
    /// Counts how far the backfill has come.
    Count,
    /// Writes the market list for the other nodes.
    WriteList(ListWriter),
}

impl job_queue::QueuedJob for Job {
    fn rank(&self) -> u8 {
        match self {
            Job::Decompress(_) => 1,
            Job::Count | Job::WriteList(_) => 2,
            _ => 0,
        }
    }

    fn replaces(&self, older: &Job) -> bool {
        match (self, older) {
            (Job::Count, Job::Count) | (Job::WriteList(_), Job::WriteList(_)) => true,
            (Job::Decompress(conn), Job::Decompress(older)) => conn == older,
            _ => false,
        }
    }
}

impl Job {
    /// True if it applies a response, or does what a new market list leads to.
    pub fn applies(&self) -> bool {
        job_queue::QueuedJob::rank(self) == 0
    }
}
