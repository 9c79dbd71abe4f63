//! The disk thread: takes jobs, does them in order, and sends replies.
//!
//! Owns the history file and its state: open, closed until the next job, or given up.
//!
//! It never drops a batch: a batch that could not be written goes back with the reply. It never
//! writes again to a damaged file, and never ends before it is told to.
//!
//! Each file imports only from those below it:
//!
//! ```text
//! holder                    the file's state: open, closed, given up
//! tools                     what a person does with the file
//! file                      opens and closes the file
//! lock, schema, read, write the lock file; the tables; reads; writes
//! header, coverage          the first check of the file; the covered times
//! series                    the series and their ids
//! row                       rows and records
//! checksum                  the checksum of a row
//! sqlite                    the only file that names SQLite
//! ```

mod checksum;
mod coverage;
mod file;
mod header;
mod holder;
mod lock;
mod read;
mod row;
mod schema;
mod series;
mod sqlite;
#[cfg(test)]
mod tests;
mod tools;
mod write;

pub(super) use file::check;
pub use sqlite::sqlite_version;
pub use tools::{HistoryReader, NotRenamed, StoredMarkets, prune, rename, renamed};

use crate::history::{DiskJob, Loaded, Reply, StoreError, Unwritten};
use crate::log_targets::{HISTORY, quoted};
use file::HistoryFile;
use holder::{Holder, Replies};
use signal_hook::consts::SIGXFSZ;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender};

/// Series, quotes or markets in one answer: some 40 KB.
const PIECE: usize = 64;

/// Does jobs until [`DiskJob::Stop`] comes, or until the queue has no sender.
pub(super) fn run(
    path: PathBuf,
    jobs: Receiver<DiskJob>,
    queue: SyncSender<Reply>,
    wake: Box<dyn Fn() + Send>,
) {
    // A write beyond the process's file size limit raises SIGXFSZ, which would end the process.
    // With a handler, the write fails instead, as on a full disk. A system that does not accept
    // the handler has no such limit.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let mut holder = Holder::new(path, Replies { queue, wake });
    let _ = holder.with(|_, _| Ok(()));
    // False after a failed checkpoint.
    let mut checkpoints = true;
    for job in jobs {
        match job {
            DiskJob::Load => {
                let result = holder.with(load);
                holder.replies.send(Reply::Loaded(result));
            }
            DiskJob::Read(read) => {
                let result = holder.with(|file, _| read::rows(&file.db, &read));
                holder.replies.send(Reply::Rows { ticket: read.ticket, result });
            }
            DiskJob::Write { number, batch } => {
                let result = holder
                    .with(|HistoryFile { db, .. }, _| db.transaction(|| write::apply(db, &batch)));
                let is_written = result.is_ok();
                let result = result.map_err(|error| Unwritten { error, batch });
                holder.replies.send(Reply::Written { number, result });
                // It comes after the answer, so that it delays only later jobs.
                if is_written {
                    let moved = holder.with(|file, _| file.flushed());
                    let worked = std::mem::replace(&mut checkpoints, moved.is_ok());
                    log_checkpoint(&moved, worked);
                }
            }
            DiskJob::Stop => break,
        }
    }
    let closed = holder.close();
    holder.replies.send(Reply::Stopped(closed));
}

/// Logs only changes.
fn log_checkpoint(moved: &Result<(), StoreError>, worked: bool) {
    match moved {
        Err(error) if worked => {
            log::warn!(target: HISTORY, "checkpoint failed error={}", quoted(error));
        }
        Ok(()) if !worked => log::info!(target: HISTORY, "checkpoint works again"),
        _ => {}
    }
}

fn load(file: &mut HistoryFile, replies: &Replies) -> Result<Loaded, StoreError> {
    let (heads, odd) = read::heads(&file.db)?;
    let (quotes, odd_quotes) = read::records(&file.db)?;
    let (markets, odd_markets) = read::records(&file.db)?;
    let unsound = odd + odd_quotes + odd_markets;
    let loaded = Loaded { series: heads.len(), quotes: quotes.len(), unsound };
    in_pieces(heads, |piece| replies.send(Reply::Heads(piece)));
    in_pieces(quotes, |piece| replies.send(Reply::Quotes(piece)));
    in_pieces(markets, |piece| replies.send(Reply::Markets(piece)));
    Ok(loaded)
}

fn in_pieces<T>(all: Vec<T>, tell: impl Fn(Vec<T>)) {
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        tell(all.by_ref().take(PIECE).collect());
    }
}
