//! The lock that keeps a second marketd from the same file.
//!
//! Owns an empty file beside the history file, held locked for as long as that is open, with the
//! process id of the holder in it for the person who wonders. SQLite's own locks are left to
//! SQLite, so that anybody may read the history meanwhile.
//!
//! It never removes the file: between two processes, removing a lock file is how both come to hold
//! one. The kernel lets go of the lock when the process ends, however it ends.

use super::header::{beside, failed};
use crate::history::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a history file.
    pub(super) fn take(path: &Path) -> Result<Lock, OpenError> {
        let name = beside(path, "-lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(name).map_err(|error| failed(path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let by = read.ok().and_then(|_| text.trim().parse().ok());
                let path = path.to_path_buf();
                return Err(OpenError::InUse { path, by });
            }
            Err(TryLockError::Error(error)) => return Err(failed(path, &error)),
        }
        // For people alone: without it the refusal does not name the process.
        let _ = (file.set_len(0)).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, unless another thread is starting a process just now: until that
        // becomes its program, it has a copy of every open file, and of the lock with it.
        let _ = self.0.unlock();
    }
}
