//! A store whose answers are waited for.

use super::world::batch;
use crate::support::PATIENCE;
use crate::support::daemon::TempDir;
use marketd::history::{
    Batch, DiskJob, Loaded, OpenError, Opened, QuoteName, ReadJob, Reply, Rows, SavedQuote,
    SeriesHead, SeriesName, StoreError, Written,
};
use marketd::record::{Candle, Edge};
use marketd::store::Store;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a load tells.
pub type Load = (Vec<SeriesHead>, Vec<(QuoteName, SavedQuote)>, Result<Loaded, StoreError>);

/// See the module's page.
pub struct Bench {
    store: Option<Store>,
    /// Answers that came before the one that was waited for.
    early: Vec<Reply>,
    opened: Option<Opened>,
}

impl Bench {
    /// Opens a file that is sound.
    #[track_caller]
    pub fn open(path: &Path) -> Bench {
        Bench::try_open(path).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A new file in a directory of its own, and a store that has it.
    #[track_caller]
    pub fn fresh() -> (TempDir, PathBuf, Bench) {
        let dir = TempDir::new();
        let path = dir.history();
        let bench = Bench::open(&path);
        (dir, path, bench)
    }

    /// The file as a person with a shell has it.
    pub fn shell(path: &Path) -> rusqlite::Connection {
        rusqlite::Connection::open(path).expect("anybody may, alas")
    }

    /// Opens a file, or says why not.
    pub fn try_open(path: &Path) -> Result<Bench, OpenError> {
        Bench::open_with(path, Box::new(|| ()))
    }

    /// The same, with something to be called after each answer.
    pub fn open_with(path: &Path, wake: Box<dyn Fn() + Send>) -> Result<Bench, OpenError> {
        let mut bench = Bench::start(path, wake)?;
        let opened = bench.wait(|answer| match answer {
            Reply::Opened(opened) => Ok(Ok(opened)),
            Reply::Failed(error) => Ok(Err(error)),
            other => Err(other),
        });
        match opened {
            Ok(opened) => bench.opened = Some(opened),
            Err(error) => {
                bench.close();
                return Err(error);
            }
        }
        Ok(bench)
    }

    /// Starts the thread and waits for nothing.
    pub fn start(path: &Path, wake: Box<dyn Fn() + Send>) -> Result<Bench, OpenError> {
        Ok(Bench {
            store: Some(Store::start(path.to_path_buf(), wake)?),
            early: Vec::new(),
            opened: None,
        })
    }

    /// The store itself.
    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("it was not stopped")
    }

    /// What was said when it opened.
    pub fn opened(&self) -> Opened {
        self.opened.expect("it is open")
    }

    /// Waits for the answer that `pick` takes; it hands the others back, and they wait.
    #[track_caller]
    pub fn wait<T>(&mut self, mut pick: impl FnMut(Reply) -> Result<T, Reply>) -> T {
        for at in 0..self.early.len() {
            let answer = self.early.remove(at);
            match pick(answer) {
                Ok(picked) => return picked,
                Err(answer) => self.early.insert(at, answer),
            }
        }
        loop {
            let Some(answer) = self.store().wait(PATIENCE) else {
                panic!("no answer; those before it: {:?}", self.early);
            };
            match pick(answer) {
                Ok(picked) => return picked,
                Err(answer) => self.early.push(answer),
            }
        }
    }

    /// Whether the file was said to be unusable since the last look.
    pub fn failure(&mut self) -> Option<OpenError> {
        let at = (self.early.iter()).position(|answer| matches!(answer, Reply::Failed(_)))?;
        match self.early.remove(at) {
            Reply::Failed(error) => Some(error),
            _ => None,
        }
    }

    fn send(&self, job: DiskJob) {
        self.store().send(job).expect("room in the queue");
    }

    /// After an error, the batch comes back whole.
    pub fn write(&mut self, batch: Batch) -> Result<Written, (StoreError, Box<Batch>)> {
        self.send(DiskJob::Write(Box::new(batch)));
        self.wait(|answer| match answer {
            Reply::Written { batch, result } => Ok(result.map_err(|error| (error, batch))),
            other => Err(other),
        })
    }

    /// Writes a batch to a sound disk.
    #[track_caller]
    pub fn put(&mut self, batch: Batch) -> Written {
        self.write(batch).expect("a sound disk")
    }

    /// Writes the batches of these numbers to a sound disk.
    #[track_caller]
    pub fn write_all(&mut self, numbers: Range<u64>) {
        numbers.for_each(|number| drop(self.put(batch(number))));
    }

    /// Reads all of a series, page after page: its candles, and its slots with invalid rows.
    pub fn read_all(&mut self, series: &SeriesName) -> Result<(Vec<Candle>, Vec<i64>), StoreError> {
        let (mut left, mut candles, mut unsound) = (i64::MIN..i64::MAX, Vec::new(), Vec::new());
        while !left.is_empty() {
            let page = self.page(series, left.clone(), usize::MAX, Edge::Oldest)?;
            left.start = page.slots.end;
            candles.extend(page.candles);
            unsound.extend(page.unsound);
        }
        Ok((candles, unsound))
    }

    pub fn page(
        &mut self,
        series: &SeriesName,
        slots: Range<i64>,
        limit: usize,
        keep: Edge,
    ) -> Result<Rows, StoreError> {
        self.send(DiskJob::Read(ReadJob {
            ticket: 77,
            series: series.clone(),
            slots,
            limit,
            keep,
        }));
        self.wait(|answer| match answer {
            Reply::Rows { ticket: 77, result } => Ok(result),
            other => Err(other),
        })
    }

    pub fn load(&mut self) -> Load {
        self.send(DiskJob::Load);
        let (mut heads, mut quotes) = (Vec::new(), Vec::new());
        loop {
            let loaded = self.wait(|answer| {
                match answer {
                    Reply::Heads(piece) => heads.extend(piece),
                    Reply::Quotes(piece) => quotes.extend(piece),
                    Reply::Markets(_) => {}
                    Reply::Loaded(result) => return Ok(Some(result)),
                    other => return Err(other),
                }
                Ok(None)
            });
            if let Some(loaded) = loaded {
                return (heads, quotes, loaded);
            }
        }
    }

    pub fn evict(&mut self, series: &SeriesName, before: i64) -> Result<u64, StoreError> {
        let mut batch = Batch::default();
        batch.of(series).evict(before);
        let written = self.write(batch).map_err(|(error, _)| error)?;
        Ok(written.evicted)
    }

    /// Stops in good order; says what the thread said of it.
    pub fn stopped(mut self) -> Result<(), StoreError> {
        self.send(DiskJob::Stop);
        let stopped = self.wait(|answer| match answer {
            Reply::Stopped(result) => Ok(result),
            other => Err(other),
        });
        self.close();
        stopped
    }

    /// Stops in good order, and it must be good.
    #[track_caller]
    pub fn stop(self) {
        assert_eq!(self.stopped(), Ok(()));
    }

    fn close(&mut self) {
        if let Some(store) = self.store.take() {
            store.join();
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.close();
    }
}
