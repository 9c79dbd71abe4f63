//! The market: the catalog, the quotes and the charts together.
//!
//! Owns the three, and nothing else. Each has its own rules.

use super::catalog::Catalog;
use super::charts::Charts;
use super::quote::Quotes;
use crate::config::Config;

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
