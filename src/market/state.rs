//! The market: the catalog, the quotes and the charts together.
//!

use super::catalog::Catalog;
use super::charts::Charts;
use super::quote::Quotes;
use crate::config::Config;

/// All market data.
#[derive(Debug)]
pub struct Market {
    /// The markets, and the sources that track them.
    pub catalog: Catalog,
    /// The latest quote of each market and source.
    pub quotes: Quotes,
    /// The candles.
    pub charts: Charts,
}

impl Market {
    /// The state before any exchange has answered: it knows only what the configuration names.
    pub fn new(config: &Config) -> Market {
        Market {
            catalog: Catalog::new(config),
            quotes: Quotes::new(&config.sources),
            charts: Charts::new(&config.limits, &config.history),
        }
    }
}
