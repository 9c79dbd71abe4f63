//! How the conductor lends its parts what they work on, and passes on what one part wants of another.
//!
//! Owns nothing: the parts are [`Core`]'s. No part calls another one.

use super::clients::{Clients, Wish};
use super::context::Context;
use super::history::Archive;
use super::sources::{Desk, Poller};
use super::{Core, Sources, Upstream};
use crate::log_targets::SOURCE;
use crate::market::{SeriesKey, SourceId};
use crate::table::Table;
use crate::time::{Mono, Now};
use std::ops::Range;
use std::time::Duration;

/// The wall clock has moved against the monotonic one when it did so by more than this: reading one
/// after the other takes less, also on a busy machine, and both are slewed together.
const CLOCKS_MOVED_MS: i64 = 2000;

impl Core {
    /// Runs `act` with the clients and what they work on.
    #[inline]
    pub(super) fn with_clients<R>(
        &mut self,
        now: Now,
        act: impl FnOnce(&mut Clients, &mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context {
            config: &self.config,
            market: &mut self.market,
            stats: &mut self.stats,
            actions: &mut self.actions,
            now,
        };
        act(&mut self.clients, &mut cx)
    }

    /// Runs `act` with a source, the connections of all sources, and what it works on.
    pub(super) fn with_source<R>(
        &mut self,
        source: SourceId,
        act: impl FnOnce(&mut Poller, &mut Table<Upstream>, &mut Desk<'_>) -> R,
    ) -> R {
        self.next_wake.set(None);
        let mut desk = Desk {
            config: &self.config,
            market: &mut self.market,
            is_stopping: self.stats.stopping,
            status: &mut self.stats.sources[source.index()],
            archive: &mut self.history,
            actions: &mut self.actions,
        };
        let Sources {
            pollers,
            connections,
            ..
        } = &mut self.sources;
        act(&mut pollers[source.index()], connections, &mut desk)
    }

    /// Runs `act` with the history and what it works on.
    pub(super) fn with_history<R>(
        &mut self,
        act: impl FnOnce(&mut Archive, &mut Context<'_>) -> R,
    ) -> R {
        self.next_wake.set(None);
        let mut cx = Context {
            config: &self.config,
            market: &mut self.market,
            stats: &mut self.stats,
            actions: &mut self.actions,
            now: self.now,
        };
        act(&mut self.history, &mut cx)
    }

    /// Lets the history act. Sources may have waited for what it has heard, or for room in it.
    pub(super) fn tell_history<R>(
        &mut self,
        now: Now,
        act: impl FnOnce(&mut Archive, &mut Context<'_>) -> R,
    ) -> R {
        let pace = self.history.pace();
        let told = self.with_history(act);
        let pollers = &mut self.sources.pollers;
        if self.history.pace() > pace {
            pollers.iter_mut().for_each(|it| it.hurry(now));
        }
        if self.history.has_news() {
            pollers.iter_mut().for_each(|it| it.note_stored(now));
        }
        told
    }

    /// Has the candles brought that clients wait for.
    #[inline]
    pub(super) fn grant_wishes(&mut self, now: Now) {
        while let Some(wish) = self.clients.next_wish() {
            self.grant(&wish, now);
        }
    }

    /// Has candles read from the file, or fetched.
    fn grant(&mut self, wish: &Wish, now: Now) {
        let Wish {
            client,
            job,
            series,
            ref slots,
        } = *wish;
        let source = series.source;
        if !self.with_source(source, |poller, _, desk| poller.follow(series, desk, now)) {
            return self.clients.go_without(job);
        }
        let recalled = self.with_history(|history, cx| history.recall(series, slots, cx));
        let asked = self.with_source(source, |poller, _, desk| {
            poller.ask(series, slots, desk, now)
        });
        match recalled {
            Some(comes) if comes || asked => {}
            Some(_) => self.clients.go_without(job),
            None => self.with_clients(now, |clients, cx| clients.refuse(client, job, cx)),
        }
    }

    /// Lets the clients look again whose candles may have come.
    pub(super) fn wake_clients(&mut self, now: Now) {
        let mut cx = Context {
            config: &self.config,
            market: &mut self.market,
            stats: &mut self.stats,
            actions: &mut self.actions,
            now,
        };
        let (pollers, history) = (&self.sources.pollers, &self.history);
        let comes = |series: SeriesKey, slots: &Range<i64>| {
            history.is_recalling(series, slots)
                || pollers[series.source.index()].is_asking(series, slots)
        };
        self.clients.wake(comes, &mut cx);
    }

    /// Looks who answers for which symbol, where that may have changed.
    pub(super) fn watch_failover(&mut self, now: Mono) {
        let Sources {
            pollers, failover, ..
        } = &mut self.sources;
        let applies = || pollers.iter().any(Poller::has_work);
        if failover.watch(&self.market, &mut self.stats.sources, applies, now) {
            self.next_wake.set(None);
        }
    }

    /// Tells the log why the service is not ok.
    pub(super) fn watch_health(&mut self, now: Now) {
        if self.health.tell(&self.stats, &self.market.quotes, now) {
            self.next_wake.set(None);
        }
    }

    /// Keeps the time, sets the date of responses, and compares the machine's clocks once a second: no
    /// smaller move of one against the other matters.
    #[inline]
    pub(super) fn set_time(&mut self, now: Now) {
        self.now = now;
        if self.clients.shared.stamp.refresh(now.unix) {
            self.watch_clocks(now);
        }
    }

    /// Notices when the machine's clocks move against each other: it slept, or one was set. Nothing that
    /// was said before is as new as it looks, and nobody knows what time it is at the exchanges.
    #[cold]
    fn watch_clocks(&mut self, now: Now) {
        let zero = wall_zero(now);
        let moved_ms = zero - self.wall_zero;
        if moved_ms.abs() <= CLOCKS_MOVED_MS {
            return;
        }
        self.wall_zero = zero;
        log::warn!(
            target: SOURCE,
            "the wall clock moved by {moved_ms} ms: asking the exchanges for their time"
        );
        if moved_ms > 0 {
            let by = Duration::from_millis(moved_ms.unsigned_abs());
            self.market.quotes.aged(by, now.mono);
        }
        for at in 0..self.sources.pollers.len() {
            self.with_source(SourceId(at as u16), |poller, _, desk| {
                poller.clocks_moved(desk, now);
            });
        }
        self.watch_failover(now.mono);
    }
}

/// What the wall clock shows when the monotonic one is zero, in milliseconds.
pub(super) fn wall_zero(now: Now) -> i64 {
    now.unix.0 - (now.mono.0 / 1000) as i64
}
