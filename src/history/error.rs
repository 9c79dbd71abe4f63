//! What marks the history file, and its errors, with texts for the person who runs marketd.
//!
//! An [`OpenError`] says why the file cannot be used, a [`StoreError`] why a job failed.

use std::fmt;
use std::path::{Path, PathBuf};

/// Marks the file as marketd's among all SQLite files: `mktd`.
pub const APPLICATION_ID: u32 = 0x6d6b_7464;

/// The version of the tables that this build writes.
pub const VERSION: u32 = 3;

/// The suffix of a write-ahead log whose history file was removed. A person who has moved the file can
/// rename the log back to its name.
pub const LOG_SET_ASIDE: &str = "-wal-left";

/// The file cannot be used. It is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: Unusable,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The path does not exist, or this process may not write it. Has the system's error.
    Unreachable(String),
    /// There is no such file, and none is to be created.
    Missing,
    /// Another process uses it. Has the id of that process, if known.
    InUse(Option<u32>),
    /// It is not a history file. Says what it is.
    Foreign(&'static str),
    /// A later marketd wrote it. Has the version of its tables.
    Newer(u32),
    /// It is a history file, but its content is damaged. Says what was found.
    Damaged(String),
    /// It was removed or replaced while it was in use. Then the file that now has its name is opened, or one
    /// is created.
    Gone,
    /// An I/O error, for example of a full disk.
    Io(StoreError),
}

impl Unusable {
    /// The error with this reason for this file.
    pub fn at(self, path: &Path) -> OpenError {
        OpenError { path: path.to_path_buf(), why: self }
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file is not open: see the last [`Failed`](super::Reply::Failed).
    NotOpen,
    /// The disk is full.
    Full(String),
    /// The file or its file system is read-only.
    ReadOnly(String),
    /// Another program is writing to the file.
    Busy(String),
    /// An I/O error.
    Io(String),
    /// The file's content is damaged. The file is closed and not written to any more.
    Damaged(String),
    /// Any other error of SQLite: a bug, or another program has changed the tables.
    Internal(String),
}

impl OpenError {
    /// True if a person has to decide what to do: the process should end with exit code 2 instead of
    /// running without history.
    pub fn is_refusal(&self) -> bool {
        !matches!(self.why, Unusable::Damaged(_) | Unusable::Gone | Unusable::Io(_))
    }

    /// True if the error may go away by itself. Then each further job tries to open the file again.
    pub fn may_pass(&self) -> bool {
        matches!(self.why, Unusable::InUse(_) | Unusable::Gone | Unusable::Io(_))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNTOUCHED: &str = "it is left untouched";
        const ANOTHER: &str = "name another file with --data, or keep history in memory with \
                               --data :memory:";
        let path = self.path.display();
        match &self.why {
            Unusable::Unreachable(reason) => {
                write!(f, "{path}: cannot keep history here: {reason}; {ANOTHER}")
            }
            Unusable::Missing => {
                write!(f, "{path}: there is no history file: name it with --data")
            }
            Unusable::InUse(by) => {
                write!(f, "{path} is in use by another marketd")?;
                if let Some(by) = by {
                    write!(f, " (process {by})")?;
                }
                write!(f, ": stop that one, or {ANOTHER}")
            }
            Unusable::Foreign(what) => {
                write!(f, "{path} is not marketd's: it is {what}; {UNTOUCHED}; {ANOTHER}")
            }
            Unusable::Newer(found) => write!(
                f,
                "{path} was written by a later marketd (its tables have version {found}, this one \
                 knows {VERSION}); {UNTOUCHED}: run that marketd, or {ANOTHER}"
            ),
            Unusable::Damaged(what) => write!(
                f,
                "{path} is damaged ({what}); {UNTOUCHED}, and no history is kept until it is \
                 mended. Stop marketd, then either move {path}, {path}-wal and {path}-shm \
                 away, so that candles are fetched anew, or save what can be read (Debian 12's \
                 sqlite3 cannot): sqlite3 {path} .recover | sqlite3 mended.db; \
                 sqlite3 mended.db 'pragma application_id={APPLICATION_ID}; pragma \
                 user_version={VERSION}'; and start with --data mended.db"
            ),
            Unusable::Gone => write!(
                f,
                "{path} was removed or replaced while it was in use: what memory holds is written to \
                 the file of that name again, and the rest is fetched again"
            ),
            Unusable::Io(error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            StoreError::NotOpen => return f.write_str("the history file is not open"),
            StoreError::Full(text) => ("the disk is full", text),
            StoreError::ReadOnly(text) => ("the history file cannot be written", text),
            StoreError::Busy(text) => ("another program is writing to the history file", text),
            StoreError::Io(text) => ("the disk failed", text),
            StoreError::Damaged(text) => ("the history file is damaged", text),
            StoreError::Internal(text) => ("the history file's tables failed", text),
        };
        write!(f, "{what}: {text}")
    }
}
