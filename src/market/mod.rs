//! What the prices mean: which markets there are, who tracks them, and what they cost now.
//!
//! Owns the catalog of markets and the latest quote of every source and symbol. It is told what
//! exchanges said and what time it is, and answers questions.
//!
//! It never does I/O, never reads a clock, and knows neither HTTP nor any exchange's JSON.
//!
//! Everything is indexed by two small numbers, [`SymbolId`] and [`SourceId`]. Both are given once
//! and never mean anything else while the process lives, so they may be kept anywhere.

mod answered;
pub mod catalog;
pub mod chart;
pub mod charts;
mod chunk;
mod hash;
pub mod maker;
#[cfg(test)]
mod model;
pub mod quote;
mod rollup;
pub mod rows;
pub mod series;
mod silence;
pub mod spans;
pub mod symbol;
mod target;
#[cfg(test)]
mod testing;

use crate::config::Config;
pub use answered::{Reported, Word, Written};
pub use catalog::{Catalog, Category, EcosystemEntry, ListChange, Listing};
pub use chart::{ChartInfo, ChartPlan, ChartSpec, needed};
pub use charts::{Charts, Counts as ChartCounts, floor_slot};
pub use maker::ChartMaker;
pub use quote::{Counts as QuoteCounts, Quote, Quotes};
pub use series::{Series, SeriesKey};
pub use silence::{LEAST_PAGE, REREAD, cut, refresh_ms};
pub use spans::{MAX_SPANS, Spans};
pub use symbol::Lookup;

/// One symbol, as a number: its place among all symbols ever met. It is never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// One source: its place in `Config::sources`, which is the order of failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

/// See the module's page.
#[derive(Debug)]
pub struct Market {
    /// Which markets there are, and who tracks them.
    pub catalog: Catalog,
    /// What they cost.
    pub quotes: Quotes,
    /// What they cost before.
    pub charts: Charts,
}

impl Market {
    /// The market before any exchange has answered: only what the configuration names is known.
    pub fn new(config: &Config) -> Market {
        Market {
            catalog: Catalog::new(config),
            quotes: Quotes::new(&config.sources),
            charts: Charts::new(&config.limits, &config.history),
        }
    }
}

impl SymbolId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// As an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
