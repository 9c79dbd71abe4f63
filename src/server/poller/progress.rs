//! How far the backfill of one source has come.
//!
//! Owns the count of candles that are wanted and known, the pace of the last minute, and the one
//! line a minute that tells of it while it goes on. It decides nothing.

use super::{Desk, Poller};
use crate::time::{Mono, Now};
use std::time::Duration;

/// Between two counts: each looks at every series.
const COUNTED: Duration = Duration::from_secs(1);

/// Between two lines of the log; the pace is that of the time between.
const TOLD: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub(super) struct Progress {
    count_at: Mono,
    tell_at: Mono,
    /// What was known when this minute began, and when that was.
    mark: (Mono, u64),
    /// Whether the log has told of it.
    told: bool,
}

impl Progress {
    pub(super) fn new(now: Mono) -> Progress {
        Progress {
            count_at: now,
            tell_at: now + TOLD,
            mark: (now, 0),
            told: false,
        }
    }
}

impl Poller {
    /// Candles have come: counts anew where that is due, or where there is nothing left to fetch.
    pub(super) fn note_progress(&mut self, desk: &mut Desk<'_>, now: Now) {
        let is_over = !self.fetches.has_backfill();
        if now.mono < self.progress.count_at && !is_over {
            return;
        }
        self.progress.count_at = now.mono + COUNTED;
        let (wanted, done) = self.count(desk, now);
        let (since, before) = self.progress.mark;
        let seconds = now.mono.since(since).as_secs();
        let status = &mut desk.status.backfill;
        status.wanted = wanted;
        status.done = done;
        status.per_minute = match (is_over, seconds) {
            (true, _) => 0,
            (false, 0) => status.per_minute,
            (false, seconds) => done.saturating_sub(before) * 60 / seconds,
        };
        status.ends_at = match (is_over, status.per_minute) {
            (true, _) | (_, 0) => None,
            (false, pace) => Some(now.unix + ((wanted - done) * 60_000 / pace) as i64),
        };
        let id = &self.config.id;
        if is_over && std::mem::take(&mut self.progress.told) {
            log::info!("{id}: history is as deep as the exchange and the configuration say");
        } else if !is_over && now.mono >= self.progress.tell_at {
            let pace = status.per_minute;
            let end = status.ends_at.map(|at| format!(", until about {at}"));
            let end = end.unwrap_or_default();
            log::info!("{id}: {done} of {wanted} candles of history, {pace} a minute{end}");
            self.progress.told = true;
            self.progress.tell_at = now.mono + TOLD;
            self.progress.mark = (now.mono, done);
        }
    }

    /// Candles that the configuration wants, and those of them that the exchange has told about.
    fn count(&self, desk: &Desk<'_>, now: Now) -> (u64, u64) {
        let exchange = desk.status.exchange_time(now);
        let (mut wanted, mut done) = (0, 0);
        for key in self.fetches.series() {
            let current = key.interval.slot_of(exchange);
            let told = current - self.oldest_slot(key.interval, current);
            let depth = desk.config.history.of(key.interval).backfill.min(told);
            wanted += depth.unsigned_abs();
            done += desk.market.charts.known(key, current - depth..current);
        }
        (wanted, done)
    }
}
