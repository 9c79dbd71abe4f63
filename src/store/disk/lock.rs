//! The lock that keeps two marketd processes from using the same file.
//!
//! The lock is on a file of its own next to the history file. It is held while the history file is
//! open, and contains the holder's process id. SQLite's own locks are not used for this, so other
//! programs may read the history meanwhile.
//!
//! The lock file is never removed: if it were, two processes could hold locks on two files of the
//! same name. The kernel releases the lock when the process ends.

use super::header::beside;
use crate::history::Unusable;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Opens the file of the lock, or creates it.
    pub(super) fn file(path: &Path) -> Result<File, Unusable> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let name = beside(path, "-lock");
        options.open(&name).map_err(|error| {
            // The report names the history file, which may be sound.
            let kind = error.kind();
            Unusable::from(io::Error::new(kind, format!("{}: {error}", name.display())))
        })
    }

    /// Takes the lock of the history file at this path.
    pub(super) fn take(path: &Path) -> Result<Lock, Unusable> {
        let mut file = Lock::file(path)?;
        // One that root creates would keep the owner of the history file away. For others this fails.
        if let Ok(about) = std::fs::metadata(path) {
            let _ = fchown(&file, Some(about.uid()), Some(about.gid()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let by = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(Unusable::InUse(by));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // An error is ignored: then the message of the other process does not name this one.
        let _ = (file.set_len(0)).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread starts a process: between fork and
        // exec, the new process has a copy of the file, and the lock with it.
        let _ = self.0.unlock();
    }
}
