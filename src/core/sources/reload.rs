//! A configuration that was read again while the core runs.
//!
//! [`Reload`] decides what becomes of each source, and each part takes in what concerns it. Sources keep
//! their numbers, so nothing that names a source has to be translated. A source that has ended keeps its
//! place, and tracks and requests nothing.

use super::Sources;
use crate::config::{Config, SourceChange, SourceConfig, SourcePlaces};
use crate::core::Context;
use crate::core::history::History;
use crate::exchange::Dialect;
use crate::log_targets::{CONFIG, quoted};
use crate::market::SourceId;

/// See the module's page.
#[derive(Debug)]
pub struct Reload {
    config: Config,
    changes: Vec<SourceChange>,
    /// Changed keys that keep their running value until a restart.
    fixed: Vec<&'static str>,
}

impl Reload {
    /// Builds the reload that replaces the running configuration. `fixed`: changed keys that keep their
    /// running value until a restart. The error says why nothing is changed.
    pub fn new(
        mut config: Config,
        mut fixed: Vec<&'static str>,
        most: usize,
        cx: &Context,
    ) -> Result<Reload, String> {
        let has_ended = |at: usize| cx.stats.sources[at].has_ended;
        let places = SourcePlaces::after(&cx.config.sources, has_ended, &config.sources);
        let count = places.all.len();
        if count > most {
            return Err(format!("sources: too many since the start: {count}, at most {most}"));
        }
        let changes = places.all.iter().zip(&places.changes);
        let is_read = |(source, change): &(&SourceConfig, &SourceChange)| {
            !source.dialect_text.is_empty() && **change != SourceChange::Same
        };
        if !Dialect::has_room(changes.filter(is_read).count()) {
            return Err("sources: too many dialect files read since the start".to_string());
        }
        fixed.extend(places.is_reordered.then_some("the order of sources"));
        config.keep_fixed(&cx.config);
        config.sources = places.all;
        Ok(Reload { config, changes: places.changes, fixed })
    }

    /// Lets the market, the history and the sources take in the configuration. Returns the former one.
    pub fn apply(self, sources: &mut Sources, history: &mut History, cx: &mut Context) -> Config {
        let known = cx.stats.sources.len();
        let old = std::mem::replace(&mut cx.config, self.config);
        cx.market.reconfigure(&cx.config, &self.changes, cx.now.mono);
        sources.reconfigure(&self.changes, cx);
        history.recall(SourceId(known as u16), cx);
        cx.stats.reloads.take();
        let count = |is: fn(&SourceChange) -> bool| self.changes.iter().filter(|it| is(it)).count();
        log::info!(
            target: CONFIG,
            "reloaded sources={} begun={} ended={} changed={}",
            cx.stats.running().count(),
            count(|it| matches!(it, SourceChange::Begins)),
            count(|it| matches!(it, SourceChange::Ends)),
            count(|it| matches!(it, SourceChange::Settings { .. })),
        );
        if !self.fixed.is_empty() {
            let keys = self.fixed.join(", ");
            log::warn!(target: CONFIG, "restart needed keys={}", quoted(&keys));
        }
        old
    }
}
