//! The configuration: every address, deadline, limit and default, valid by type.
//!
//! It comes from the file, the environment and the command line. A [`Config`] does not change after
//! the core has started. This module opens no socket and reads no clock.
//!
//! [`command`] in `load` parses the command line with `flags`, reads the file, lets environment and
//! flags override it, and lets `check` compare the keys with each other. `schema` and `limits` list
//! the keys. `values` reads and prints them, by the `forms` of texts and the `json` of the file.
//! Everything that is wrong is a [`Fault`], and one run reports all faults.
//!
//! To add a limit: an entry in `limits`. To add a key: a row in `schema`. To add a flag: a row in
//! `flags`. Then `UPDATE_DOCS=1 cargo test reference` writes the reference.

mod check;
mod fault;
mod flags;
mod forms;
mod json;
mod limits;
mod load;
mod log_rules;
mod network;
mod proxy;
#[cfg(test)]
mod reference;
mod schema;
#[cfg(test)]
mod tests;
mod url;
mod values;

pub use check::KnownDialect;
pub use fault::Fault;
pub use flags::help;
pub use forms::Data;
pub use limits::Limits;
pub use load::{Command, Loaded, command};
pub use network::Network;
pub use proxy::{Credentials, Proxy};
pub use schema::{
    CategoryConfig, Config, DEMO, DemoConfig, Depth, Ecosystem, EcosystemMarket, History,
    SourceConfig, Tls,
};
pub use url::Url;
