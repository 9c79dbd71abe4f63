//! The configuration: every address, deadline, limit and default, valid by type.
//!
//! It comes from the file, the environment and the command line. After the core has started, only a
//! reload changes a [`Config`]: `reload` compares the new configuration with the running one. This
//! module opens no socket and reads no clock.
//!
//! [`command`] parses the command line with `flags`. `load` reads the file, lets environment and flags
//! override it, and lets `check` compare the keys with each other. `schema` and `limits` list the keys.
//! `values` reads and prints them, with the `forms` of texts and the `json` of the file. Every error is a
//! [`ConfigFault`], and one run reports all faults. With the macros of `members`, the files of dialects are
//! read in the same way.
//!
//! `limits` says how to add a limit, `schema` how to add a key, `flags` how to add a flag. Then
//! `UPDATE_DOCS=1 cargo test --lib config` writes the reference and the JSON Schema.

mod check;
mod command;
mod fault;
mod files;
mod flags;
pub(crate) mod forms;
mod json;
mod limits;
mod load;
mod log_rules;
pub(crate) mod members;
mod printed;
mod reload;
mod schema;
#[cfg(test)]
pub(crate) mod tests;
mod url;
pub(crate) mod values;

pub use check::{Dialects, KnownDialect};
pub use command::{
    Command, Export, ExportFormat, HttpPlace, ProbeOptions, SCHEMA, SchemaOf, command, reload,
};
pub use fault::{ConfigFault, Report};
pub use files::{Secret, text_of_regular};
pub use forms::{Data, ListenAddress, Poll};
pub use json::{Node, unquoted};
pub use limits::Limits;
pub use load::{LoadedConfig, LogFormat, LookAtFiles, Reread};
pub use reload::{SourceChange, SourcePlaces};
pub use schema::{
    CategoryConfig, ClusterConfig, Config, DEMO, DemoConfig, Depth, Ecosystem, EcosystemMarket,
    HistoryConfig, SourceConfig, Tls,
};
pub use url::{Credentials, Url, network};
