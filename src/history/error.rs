//! What can go wrong with the file, in the words that a person who runs marketd needs.
//!
//! Owns the two error types of the room: [`OpenError`], for a file that cannot be used, and
//! [`StoreError`], for a job that could not be done. It never decides what follows from them,
//! beyond telling which open errors are for a person to mend and which may pass by themselves.

use std::fmt;
use std::path::PathBuf;

/// Why the file cannot be used. It is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// This build has no SQLite.
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// The path leads nowhere, or to nothing that this process may write.
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Another process has it.
    InUse {
        /// The file.
        path: PathBuf,
        /// Its process id, where it could be read.
        by: Option<u32>,
    },
    /// It is something else's.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A later marketd wrote it.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: u32,
        /// The latest version that this build knows.
        known: u32,
    },
    /// It is ours, and its content is broken.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// It was in use, and its name stands for nothing any more, or for another file. It is opened
    /// again, or made anew.
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The system failed to read or write it: a full disk, a bad one.
    Io {
        /// The file.
        path: PathBuf,
        /// What was said.
        error: StoreError,
    },
}

/// Why a job could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file is not open: see the last [`super::Answer::Failed`].
    NotOpen,
    /// No room on the disk.
    Full(String),
    /// The file or its file system does not take writes.
    ReadOnly(String),
    /// Another program is writing to the file.
    Busy(String),
    /// The system failed to read or write.
    Io(String),
    /// The file's content is broken. It is closed, and not written to any more.
    Damaged(String),
    /// SQLite was used wrongly: a bug, or somebody has changed the tables under us.
    Internal(String),
}

impl OpenError {
    /// Whether a person has to choose, so that going on without history would be going on against
    /// somebody's will: the process should end with exit code 2.
    pub fn is_refusal(&self) -> bool {
        match self {
            OpenError::NotBuilt { .. }
            | OpenError::Unreachable { .. }
            | OpenError::InUse { .. }
            | OpenError::Foreign { .. }
            | OpenError::Newer { .. } => true,
            OpenError::Damaged { .. } | OpenError::Gone { .. } | OpenError::Io { .. } => false,
        }
    }

    /// Whether it may pass by itself: every further job tries again to open the file.
    pub fn may_pass(&self) -> bool {
        matches!(self, OpenError::Gone { .. } | OpenError::Io { .. })
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNTOUCHED: &str = "it is left untouched";
        const ANOTHER: &str = "name another file with --data, or keep history in memory with \
                               --data :memory:";
        match self {
            OpenError::NotBuilt { path } => write!(
                f,
                "{}: this marketd was built without the feature `sqlite` and keeps no file: use \
                 --data :memory:",
                path.display()
            ),
            OpenError::Unreachable { path, reason } => {
                write!(
                    f,
                    "{}: cannot keep history here: {reason}; {ANOTHER}",
                    path.display()
                )
            }
            OpenError::InUse { path, by } => {
                write!(f, "{} is in use by another marketd", path.display())?;
                if let Some(by) = by {
                    write!(f, " (process {by})")?;
                }
                write!(f, ": stop that one, or {ANOTHER}")
            }
            OpenError::Foreign { path, what } => write!(
                f,
                "{} is not marketd's: it is {what}; {UNTOUCHED}; {ANOTHER}",
                path.display()
            ),
            OpenError::Newer { path, found, known } => write!(
                f,
                "{} was written by a later marketd (its tables have version {found}, this one \
                 knows {known}); {UNTOUCHED}: run that marketd, or {ANOTHER}",
                path.display()
            ),
            OpenError::Damaged { path, what } => {
                let path = path.display();
                write!(
                    f,
                    "{path} is damaged ({what}); {UNTOUCHED}, and no history is kept until it is \
                     mended. Stop marketd, then either move {path}, {path}-wal and {path}-shm \
                     away, so that candles are fetched anew, or save what can be read: sqlite3 \
                     {path} .recover | sqlite3 mended.db; sqlite3 mended.db 'pragma \
                     application_id={}; pragma user_version={}'; and start with --data mended.db",
                    super::APPLICATION_ID,
                    super::VERSION,
                )
            }
            OpenError::Gone { path } => write!(
                f,
                "{} was removed or replaced while it was in use: what memory holds is written to \
                 the file of that name again, and the rest is fetched again",
                path.display()
            ),
            OpenError::Io { path, error } => {
                write!(f, "{}: cannot open history: {error}", path.display())
            }
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotOpen => f.write_str("the history file is not open"),
            StoreError::Full(text) => write!(f, "the disk is full: {text}"),
            StoreError::ReadOnly(text) => write!(f, "the history file cannot be written: {text}"),
            StoreError::Busy(text) => {
                write!(f, "another program is writing to the history file: {text}")
            }
            StoreError::Io(text) => write!(f, "the disk failed: {text}"),
            StoreError::Damaged(text) => write!(f, "the history file is damaged: {text}"),
            StoreError::Internal(text) => write!(f, "the history file's tables failed: {text}"),
        }
    }
}
