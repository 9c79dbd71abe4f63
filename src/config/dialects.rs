//! The dialects that sources may name: those of this build, and files.
//!
//! A `dialect` with a slash or the ending `.json` is the path of a file. `load` reads its text; what
//! it says is read by a function that the caller passes in, because this module knows no exchange.

use super::fault::ConfigFault;
use super::url::Url;
use std::time::Duration;

/// An exchange that can be polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDialect {
    /// The name that `dialect` in the file and `--source` take.
    pub name: String,
    /// Address of the exchange.
    pub url: Url,
    /// The units that the exchange allows, and the period of that.
    pub budget: (u32, Duration),
    /// What a poll of all quotes costs of it.
    pub poll_cost: u32,
    /// The same for one symbol, if the exchange has no call for all quotes; else zero.
    pub symbol_cost: u32,
    /// If some markets can be requested in place of all: how many at a time, and what that costs.
    pub few: Option<(u32, u32)>,
    /// False if the exchange has no market list: its markets are those that `symbols` names.
    pub has_list: bool,
    /// True if its requests carry a key.
    pub has_key: bool,
}

/// The dialects that a source may have.
pub struct Dialects {
    /// Those of this build.
    pub built_in: Vec<KnownDialect>,
    /// Reads a file: its name and its text.
    pub read: fn(&str, &str) -> Result<KnownDialect, Vec<ConfigFault>>,
}
