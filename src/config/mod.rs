//! The configuration: every address, deadline, limit and default, valid by type.
//!
//! Holds what the file, the environment and the command line may say, and the defaults. It opens
//! no socket and reads no clock. Once built, a [`Config`] does not change.
//!
//! [`command`] (in `load`) parses the command line with `flags`, reads the file, applies environment
//! and flags, and lets `check` compare what only makes sense together. `schema` and `limits` list
//! every key; `keys` reads and prints objects made of `values`; `forms` reads texts, `json` the
//! file. Everything that is wrong is a [`Fault`], and one run reports all of them.
//!
//! To add a limit: one entry in `limits`. To add a key: one row in `schema` and its default.
//! To add a flag: one row in `flags`. `UPDATE_DOCS=1 cargo test reference` then renews the reference.

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
mod reference;
mod schema;
#[cfg(test)]
mod tests;
mod url;
mod values;

pub use check::{KnownDialect, tls_available};
pub use fault::Fault;
pub use flags::help;
pub use forms::Data;
pub use limits::Limits;
pub use load::{Command, Loaded, command};
pub use network::Network;
pub use proxy::{Credentials, Proxy};
pub use reference::reference;
pub use schema::{
    CategoryConfig, Config, DEMO, DemoConfig, Depth, Ecosystem, EcosystemMarket, History,
    SourceConfig, Tls,
};
pub use url::Url;
