//! Candles that are older than the window leave the file.
//!
//! [`Evictions`] owns which series are being evicted, and which could not be. Before it asks for an
//! eviction it marks the slots as not archived, because a half-evicted series looks like a market without
//! trades.

use super::names::{key_of, name_of};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{DiskJob, Evicted, SeriesName, StoreError};
use crate::log_targets::{HISTORY, quoted};
use crate::market::{SeriesKey, floor_slot};
use crate::time::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two looks for candles that are older than what is kept.
const SWEEP: Duration = Duration::from_secs(60);

/// What is out of the window stays until it is this part of the window, so that a series is evicted
/// now and then and not every minute.
const SLACK: i64 = 64;

/// Series that may be evicted at once. These, the reads, a write and a load have room in the disk
/// thread's queue, so that it is never full.
const EVICTIONS: usize = 48;

/// See the module's page.
#[derive(Debug)]
pub struct Evictions {
    series: BTreeMap<SeriesKey, Eviction>,
    /// When the series are looked at next.
    pub due: Mono,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eviction {
    UnderWay,
    /// Some of the oldest slots may be in the file still.
    Failed,
}

impl Evictions {
    /// No series is evicted.
    pub fn new(now: Mono) -> Evictions {
        Evictions { series: BTreeMap::new(), due: now + SWEEP }
    }

    /// Evicts what is older than the window, if a look is due and the file is on.
    pub fn handle_timeout(&mut self, is_on: bool, cx: &mut Context) {
        if cx.now.mono < self.due {
            return;
        }
        self.due = cx.now.mono + SWEEP;
        let charts = &cx.market.charts;
        let is_under_way = |eviction: &&Eviction| **eviction == Eviction::UnderWay;
        let room = EVICTIONS - self.series.values().filter(is_under_way).count();
        let mut leaving = Vec::new();
        for (key, archived) in charts.archives().filter(|_| is_on) {
            let source = &cx.stats[key.source];
            let keep = charts.keep(key.interval);
            let before = floor_slot(key.interval, source.exchange_time(cx.now), keep);
            let is_old = (archived.first()).is_some_and(|first| first < before - keep / SLACK);
            let may_go = match self.series.get(&key) {
                // This machine's own clock may be years ahead, and all would go.
                _ if leaving.len() >= room || source.clock.is_none() => false,
                None => is_old,
                Some(Eviction::Failed) => true,
                Some(Eviction::UnderWay) => false,
            };
            if may_go {
                leaving.push((key, before));
            }
        }
        for (key, before) in leaving {
            self.series.insert(key, Eviction::UnderWay);
            cx.market.charts.unarchive(key, i64::MIN..before);
            let series = name_of(key, cx);
            let job = DiskJob::Evict { series, before };
            cx.actions.push_back(Action::Store(job));
        }
    }

    /// An eviction has ended.
    pub fn ended(
        &mut self,
        name: &SeriesName,
        before: i64,
        result: Result<Evicted, StoreError>,
        cx: &mut Context,
    ) {
        let Some(key) = key_of(name, cx) else {
            return;
        };
        match result {
            Ok(evicted) => {
                self.series.remove(&key);
                cx.stats.history.evicted += evicted.count;
                cx.stats.history.stored.set(key, evicted.extent);
                cx.market.charts.unarchive(key, i64::MIN..before);
            }
            Err(error) => {
                // One line for all of them.
                if !self.series.values().any(|it| *it == Eviction::Failed) {
                    log::warn!(target: HISTORY, "evict failed error={}", quoted(error));
                }
                self.series.insert(key, Eviction::Failed);
            }
        }
    }
}
