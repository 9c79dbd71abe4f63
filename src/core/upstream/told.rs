//! Who uses an upstream connection, and what the user is told of it.

use crate::core::Broken;
use crate::core::context::Context;
use crate::market::SourceId;
use std::fmt;

/// Who uses an upstream connection.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// For whom names are looked up: a source, or the engine.
    pub id: SourceId,
    /// The target of the log.
    pub target: &'static str,
}

impl User {
    /// Its name in the log.
    pub fn name(self, cx: &Context) -> &str {
        cx.stats.sources.get(self.id.index()).map_or("engine", |it| &it.id)
    }
}

/// What an event of a connection means to its user.
pub enum Told<'a> {
    /// Nothing.
    Nothing,
    /// It is open: what is to be sent is sent from now on.
    Opened,
    /// So many bytes were sent.
    Sent(usize),
    /// Bytes have come.
    Received(&'a [u8]),
    /// It was open and has ended. Without a reason, the peer has closed it in order.
    Lost(Option<&'a Broken>),
    /// It was never open, at any address.
    Unreachable(Obstacle),
}

/// Why no connection was opened.
#[derive(Debug)]
pub struct Obstacle {
    /// What has failed.
    pub what: &'static str,
    /// How. `None`: it took too long.
    pub why: Option<String>,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why.as_deref().unwrap_or("no answer in time"))
    }
}
