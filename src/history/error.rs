//! The errors of the history file, with texts for the person who runs marketd.
//!
//! An [`OpenError`] says why the file cannot be used, a [`StoreError`] why a job failed.

use super::format::{APPLICATION_ID, VERSION};
use std::fmt;
use std::path::PathBuf;

/// Why the file cannot be used. The file is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// This build has no SQLite.
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// The path does not exist, or this process may not write it.
    Unreachable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// Another process uses it.
    InUse {
        /// The file.
        path: PathBuf,
        /// The id of that process, if known.
        by: Option<u32>,
    },
    /// It is not a history file.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
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
    /// It is a history file whose content is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// It was removed or replaced while it was in use. The file with its name is opened, or created.
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// An I/O error, for example of a full disk.
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: StoreError,
    },
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file is not open: see the last [`super::Reply::Failed`].
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
        match self {
            OpenError::NotBuilt { .. }
            | OpenError::Unreachable { .. }
            | OpenError::InUse { .. }
            | OpenError::Foreign { .. }
            | OpenError::Newer { .. } => true,
            OpenError::Damaged { .. } | OpenError::Gone { .. } | OpenError::Io { .. } => false,
        }
    }

    /// True if it may pass by itself: each further job tries to open the file again.
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
                     away, so that candles are fetched anew, or save what can be read (Debian 12's \
                     sqlite3 cannot): sqlite3 {path} .recover | sqlite3 mended.db; \
                     sqlite3 mended.db 'pragma application_id={}; pragma user_version={}'; and \
                     start with --data mended.db",
                    APPLICATION_ID, VERSION,
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
