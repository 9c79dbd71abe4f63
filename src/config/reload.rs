//! A reload of the configuration: which keys need a restart, and how each source changes.

use super::schema::{Config, SourceConfig};

/// Lists the keys that need a restart: their values are used to open, size or share something at the start.
macro_rules! fixed {
    ($($key:literal $first:ident $(. $rest:ident)?;)+) => {
        impl Config {
            /// The keys that need a restart and have a different value in `new`.
            pub fn fixed_changes(&self, new: &Config) -> Vec<&'static str> {
                let all = [$((self.$first $(.$rest)? != new.$first $(.$rest)?).then_some($key)),+];
                all.into_iter().flatten().collect()
            }

            /// Sets the keys that need a restart to their values in `running`.
            pub fn keep_fixed(&mut self, running: &Config) {
                $(self.$first $(.$rest)?.clone_from(&running.$first $(.$rest)?);)+
            }
        }
    };
}

fixed! {
    "listen" listen;
    "ecosystemListen" ecosystem_listen;
    "deferAccept" defer_accept;
    "basePath" base_path;
    "ecosystemBasePath" ecosystem_base_path;
    "data" data;
    "history" history;
    "demo" demo;
    "tls" tls;
    "cluster" cluster;
    "limits.maxConnections" limits.max_connections;
    "limits.connectionsPerSource" limits.connections_per_source;
}

/// The change of a source by a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChange {
    /// It does not change. A source that has ended stays ended.
    Same,
    /// It continues with other settings.
    Settings {
        /// True if it tracks other markets.
        markets: bool,
        /// True if its exchange has another address or proxy.
        route: bool,
    },
    /// It begins: its id is new or was removed before, or its dialect's file has changed.
    Begins,
    /// It ends: it is not configured any more.
    Ends,
}

/// The sources after a reload. Each source keeps its place, even after it has ended, so its number never goes
/// to another source. New sources get places at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePlaces {
    /// By place.
    pub all: Vec<SourceConfig>,
    /// By place.
    pub changes: Vec<SourceChange>,
    /// True if the order of the places, which is the order of failover, differs from the order in the file.
    pub is_reordered: bool,
}

impl SourcePlaces {
    /// Puts each source of `new` into the place that `old` has for its id. A source without a place gets a
    /// new one at the end. `has_ended` returns true for the place of a source that has ended.
    pub fn after(
        old: &[SourceConfig],
        has_ended: impl Fn(usize) -> bool,
        new: &[SourceConfig],
    ) -> SourcePlaces {
        let mut all = old.to_vec();
        let ends = |at| if has_ended(at) { SourceChange::Same } else { SourceChange::Ends };
        let mut changes: Vec<SourceChange> = (0..old.len()).map(ends).collect();
        let mut places = Vec::new();
        for source in new {
            let found = all.iter().position(|it| it.id == source.id);
            let at = found.unwrap_or(all.len());
            places.push(at);
            if found.is_none() {
                all.push(source.clone());
                changes.push(SourceChange::Begins);
                continue;
            }
            changes[at] =
                if has_ended(at) { SourceChange::Begins } else { change(&all[at], source) };
            all[at].clone_from(source);
        }
        SourcePlaces { all, changes, is_reordered: !places.is_sorted() }
    }
}

fn change(old: &SourceConfig, new: &SourceConfig) -> SourceChange {
    if old == new {
        return SourceChange::Same;
    }
    if old.dialect_text != new.dialect_text {
        return SourceChange::Begins;
    }
    SourceChange::Settings {
        markets: old.symbols != new.symbols || old.quote_assets != new.quote_assets,
        route: old.url != new.url || old.proxy != new.proxy,
    }
}

#[cfg(test)]
mod tests {
    use super::SourceChange::{Begins, Ends, Same, Settings};
    use super::*;
    use crate::config::Poll;

    fn sources(ids: &[&str]) -> Vec<SourceConfig> {
        let named = |id: &&str| SourceConfig { id: id.to_string(), ..SourceConfig::new("binance") };
        ids.iter().map(named).collect()
    }

    #[test]
    fn a_source_keeps_its_place_and_new_ones_come_behind() {
        let check =
            |old: &[&str], ended: &[usize], new: &[&str], changes: &[SourceChange], order| {
                let found =
                    SourcePlaces::after(&sources(old), |at| ended.contains(&at), &sources(new));
                assert_eq!((&found.changes[..], found.is_reordered), (changes, order));
                assert_eq!(found.all[..old.len()], sources(old));
            };
        check(&["a", "b"], &[], &["a", "b"], &[Same, Same], false);
        check(&["a", "b"], &[], &["b", "a"], &[Same, Same], true);
        check(&["a", "b"], &[], &["b"], &[Ends, Same], false);
        check(&["a", "b"], &[0], &["b", "c"], &[Same, Same, Begins], false);
        check(&["a", "b"], &[0], &["a", "b"], &[Begins, Same], false);
        check(&["a"], &[], &["b", "a"], &[Same, Begins], true);
    }

    #[test]
    fn what_has_changed_of_a_source_is_told() {
        let check = |change: fn(&mut SourceConfig), expected| {
            let (old, mut new) = (sources(&["a"]), sources(&["a"]));
            change(&mut new[0]);
            assert_eq!(SourcePlaces::after(&old, |_| false, &new).changes, [expected]);
        };
        let settings = |markets, route| Settings { markets, route };
        check(|it| it.poll = Poll::Auto, settings(false, false));
        check(|it| it.symbols.push("A/B".into()), settings(true, false));
        check(|it| it.quote_assets.push("B".into()), settings(true, false));
        check(|it| it.url = super::super::Url::parse("http://h").ok(), settings(false, true));
        check(|it| it.dialect_text = "{}".into(), Begins);
    }
}
