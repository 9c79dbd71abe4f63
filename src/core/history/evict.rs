//! What is older than the window leaves the file.
//!
//! Owns which series are in eviction, and which were and could not be. What leaves is archived no
//! longer from the moment that it is asked for: it goes piece by piece, and a piece that is left
//! looks like a market in which nobody traded.

use super::names::{key_of, name_of};
use super::{History, State};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Evicted, Job, SeriesName, StoreError};
use crate::log_targets::HISTORY;
use crate::market::floor_slot;

/// What is out of the window stays until there is this part of the window of it, so that a series
/// is touched now and then and not every minute.
const SLACK: i64 = 64;

/// Series that may be in eviction at once. These, the reads, a write and a load have room in the
/// disk thread's queue, so that it is never full.
const EVICTIONS: usize = 48;

/// Of a series whose oldest slots are to leave the file, or may be there still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    UnderWay,
    Failed,
}

impl History {
    /// Has what is older than the window taken out of the file.
    pub(super) fn evict(&mut self, cx: &mut Context) {
        if self.state != State::On {
            return;
        }
        let charts = &cx.market.charts;
        let is_under_way = |eviction: &&Eviction| **eviction == Eviction::UnderWay;
        let mut room = EVICTIONS - self.evicting.values().filter(is_under_way).count();
        let mut leaving = Vec::new();
        for (key, archived) in charts.archives() {
            let source = &cx.stats[key.source];
            if room == 0 || source.clock.is_none() {
                // This machine's own clock may be years ahead, and all would go.
                continue;
            }
            let keep = charts.keep(key.interval);
            let floor = floor_slot(key.interval, source.exchange_time(cx.now), keep);
            let is_old = (archived.first()).is_some_and(|first| first < floor - keep / SLACK);
            let may_go = match self.evicting.get(&key) {
                None => is_old,
                Some(Eviction::Failed) => true,
                Some(Eviction::UnderWay) => false,
            };
            if may_go {
                leaving.push((key, floor));
                room -= 1;
            }
        }
        for (key, before) in leaving {
            self.evicting.insert(key, Eviction::UnderWay);
            // It goes piece by piece: what has a part of it left is a hole that looks like none.
            cx.market.charts.unarchive(key, i64::MIN..before);
            let series = name_of(key, cx);
            let job = Job::Evict { series, before };
            cx.actions.push_back(Action::Store(job));
        }
    }

    pub(super) fn evicted(
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
                self.evicting.remove(&key);
                cx.stats.history.evicted += evicted.count;
                cx.stats.history.stored.set(key, evicted.extent);
                self.news = true;
                cx.market.charts.unarchive(key, i64::MIN..before);
            }
            Err(error) => {
                // One line for all of them.
                if !self.evicting.values().any(|it| *it == Eviction::Failed) {
                    log::warn!(target: HISTORY, "old candles could not be taken out: {error}");
                }
                self.evicting.insert(key, Eviction::Failed);
            }
        }
    }
}
