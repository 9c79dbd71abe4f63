//! Names in the file, numbers in the core.
//!
//! Owns the way between them. What the file names of sources that are no longer configured has no
//! number.

use crate::config::Config;
use crate::core::context::Context;
use crate::history::{Changes, Fate, SeriesName};
use crate::market::{SeriesKey, SourceId};
use std::ops::Range;

/// The ranges of these series of a batch, in their order.
pub(super) fn ranges_of<'b>(
    series: impl Iterator<Item = (&'b SeriesName, &'b Changes)>,
    cx: &mut Context,
) -> Vec<(SeriesKey, Range<i64>, Fate)> {
    let mut all = Vec::new();
    for (name, changes) in series {
        if let Some(key) = key_of(name, cx) {
            all.extend(changes.ranges().map(|(slots, fate)| (key, slots, fate)));
        }
    }
    all
}

pub(super) fn key_of(name: &SeriesName, cx: &mut Context) -> Option<SeriesKey> {
    Some(SeriesKey {
        source: source_of(&name.source, &cx.config)?,
        symbol: cx.market.catalog.number_of(&name.symbol)?,
        interval: name.interval,
    })
}

pub(super) fn source_of(id: &str, config: &Config) -> Option<SourceId> {
    let at = config.sources.iter().position(|source| source.id == id)?;
    Some(SourceId(at as u16))
}

pub(super) fn name_of(key: SeriesKey, cx: &Context) -> SeriesName {
    SeriesName {
        source: cx.config.sources[key.source.index()].id.as_str().into(),
        symbol: cx.market.catalog.name(key.symbol).as_str().into(),
        interval: key.interval,
    }
}
