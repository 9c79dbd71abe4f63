//! Market data: the markets, the sources that track them, their quotes and their candles.
//!
//! [`Market`] owns the catalog, the quotes and the charts. Callers pass in the responses of exchanges and the
//! time, and query the data.
//!
//! It never does I/O, never reads a clock, and knows neither HTTP nor any exchange's JSON.
//!
//! Everything is indexed by two small numbers, [`SymbolId`] and [`SourceId`]. Both are assigned once. A
//! [`SourceId`] stays with one id of the configuration, which names one exchange until marketd ends.

mod body;
mod builder;
mod catalog;
mod chart;
mod charts;
mod chunk;
mod ingest;
mod interval_set;
mod known;
mod quote;
mod report;
mod rollup;
mod series;
mod silence;
mod symbol;
#[cfg(test)]
pub(crate) mod testing;
mod window;

pub use builder::ChartBuilder;
pub use catalog::{Catalog, Category, EcosystemEntry, ListChange, Listing};
pub use chart::{ChartBody, ChartInfo, ChartSpec};
pub use charts::{ChartCounts, Charts};
pub use interval_set::{IntervalSet, MAX_INTERVALS};
pub use known::NEAR;
pub use quote::{Awaited, Quote, QuoteCounts, QuoteTurn, Quotes};
pub use report::{AllRows, CandleResponse, CandleService, Evidence, IngestCounts, Reported};
pub use series::{Series, SeriesKey};
pub use silence::{REREAD, TOGETHER, refresh_ms};
pub use symbol::{Lookup, SourceId, SymbolId, SymbolName};
pub use window::{NEWEST, floor_slot, needed};

use crate::config::{Config, SourceChange};
use crate::time::Mono;

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

    /// Applies a new configuration. `changes` has the change of each source. Quotes and candles of symbols
    /// that a source no longer tracks are dropped. A source that begins anew loses all of its quotes. All
    /// others stay.
    pub fn reconfigure(&mut self, config: &Config, changes: &[SourceChange], now: Mono) {
        let joining = self.catalog.reconfigure(config, changes);
        self.quotes.reconfigure(&config.sources, now);
        for (source, symbol) in joining {
            self.quotes.expect(source, [symbol]);
        }
        self.charts.reconfigure(&config.limits);
        let changed = changes.iter().enumerate().filter(|(_, it)| **it != SourceChange::Same);
        for (at, change) in changed {
            let source = SourceId(at as u16);
            let is_tracked = |symbol| self.catalog.sources_of(symbol).contains(&source);
            self.quotes.retain(source, is_tracked);
            self.charts.retain(source, is_tracked);
            if *change == SourceChange::Begins {
                self.quotes.begin(source, &config.sources[at]);
            }
        }
    }
}
