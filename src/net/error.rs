//! Why marketd cannot run, with one line of text for each reason.

use crate::config::ListenAddress;
use crate::history::OpenError;
use std::fmt;
use std::io;

/// Why marketd cannot run.
#[derive(Debug)]
pub enum RunError {
    /// An address cannot be listened on.
    Listen {
        /// The configuration's key.
        key: &'static str,
        /// The address.
        address: ListenAddress,
        /// The system's error.
        error: io::Error,
    },
    /// A socket that the service manager has passed cannot be used: which one, and why.
    Passed(String),
    /// A file of trusted certificates is invalid: its key, its name and what is wrong with it.
    Trust(String),
    /// The history file cannot be used, and a person has to decide what to do.
    History(OpenError),
    /// Too few files may be open to serve any client.
    Files {
        /// How many may be.
        limit: u64,
        /// How many are needed at least.
        needed: usize,
    },
    /// A system call that every event loop needs has failed.
    System(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Listen { key, address, error } => {
                write!(f, "{key}: cannot listen on {address}: {error}")?;
                let is_taken = error.kind() == io::ErrorKind::AddrInUse;
                match (is_taken, *key) {
                    (true, "listen") => f.write_str(" (--listen names another address)"),
                    (true, "ecosystemListen") => {
                        f.write_str(" (--ecosystem-listen names another address)")
                    }
                    _ => Ok(()),
                }
            }
            RunError::Passed(what) => f.write_str(what),
            RunError::Trust(what) => f.write_str(what),
            RunError::History(error) => write!(f, "data: {error}"),
            RunError::Files { limit, needed } => write!(
                f,
                "only {limit} files may be open, and at least {needed} are needed (ulimit -n)"
            ),
            RunError::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}
