//! What keeps the driver from running.
//!
//! Owns the words for it, one line each, for the person who started it.

use crate::history::OpenError;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// What keeps marketd from running, in one line for the person who started it.
#[derive(Debug)]
pub enum RunError {
    /// An address cannot be listened on.
    Listen {
        /// The configuration's key.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// What is to be trusted cannot be: key, file and what is wrong with it.
    Trust(String),
    /// The history file cannot be used, and a person has to choose.
    History(OpenError),
    /// Too few files may be open to serve anybody.
    Files {
        /// How many may be.
        limit: u64,
        /// How many it takes at least.
        needed: usize,
    },
    /// The system refuses what every event loop needs.
    System(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Listen {
                key,
                address,
                error,
            } => write!(f, "{key}: cannot listen on {address}: {error}"),
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
