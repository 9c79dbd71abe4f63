//! The exchange's time: measured, and measured again as soon as something speaks against it.
//!
//! Owns the judgement of whether the exchange's time is known. It follows our monotonic clock from the
//! last time that it was told. That is in doubt before it was told first; when the machine's two
//! clocks have moved against each other (it slept, it was paused, its clock was set); and when an
//! answer carries a time that the exchange cannot have reached yet, or has left behind. While it is in
//! doubt no candles are asked for, quotes change no candle, and no chart that ends now is complete.

use super::source::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::interval::Stored;
use crate::log_targets::SOURCE;
use crate::market::Market;
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// A difference between the exchange's clock and ours that is worth a line in the log, and that makes
/// the newest candles due.
const CLOCK_OFFSET_MS: i64 = 2000;

/// So far the time in an answer may be from the exchange's time as we know it. Its servers' clocks
/// differ by less, and a `Date` has whole seconds.
const CONTRADICTION_MS: i64 = 5000;

/// After the exchange has told the same time as before, what spoke against it counts for nothing for so
/// long, unless it speaks of more: some answers carry times of another kind.
const CONFIRMED: Duration = Duration::from_secs(600);

/// Before the next try of a reading that failed: nothing is complete without it.
const RETRY: Duration = Duration::from_secs(5);

/// See the module's page.
#[derive(Debug)]
pub(super) struct ExchangeClock {
    /// When it is read next.
    pub(super) due: Mono,
    /// Since when it is in doubt.
    doubted: Option<Mono>,
    /// When the exchange last told its time; before that, when this began.
    told_at: Mono,
    /// When it was last set to another time.
    moved_at: Mono,
    /// What speaks against it, and how far off it says that the clock is.
    against: Option<(Sign, i64)>,
    /// What spoke against it, by its kind, and was not confirmed; and until when that counts for
    /// nothing.
    refuted: [(i64, Mono); 3],
    /// The newest time of the last poll of all quotes.
    newest: Option<UnixMs>,
    /// How far the `Date` of its answers is ahead of its time, at most.
    date_ahead: Option<i64>,
}

/// What may speak against the exchange's time as we know it.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// A time in an answer that is still to come.
    Ahead,
    /// The newest quote, which is older than the one before.
    Back,
    /// The `Date` of an answer, further ahead than before.
    Date,
}

impl Sign {
    fn text(self) -> &'static str {
        match self {
            Sign::Ahead => "an answer's own time is ahead",
            Sign::Back => "the newest quote went back",
            Sign::Date => "the date of an answer is ahead",
        }
    }
}

impl ExchangeClock {
    /// A clock that is to be read at once.
    pub(super) fn new(now: Mono) -> ExchangeClock {
        ExchangeClock {
            due: now,
            doubted: Some(now),
            told_at: now,
            moved_at: Mono(0),
            against: None,
            refuted: [(0, now); 3],
            newest: None,
            date_ahead: None,
        }
    }

    /// Whether the exchange's time is not known.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubted.is_some()
    }

    /// Whether what was asked then is judged by another time than it was asked at.
    pub(super) fn is_overtaken(&self, sent_at: Mono) -> bool {
        self.doubted.is_some_and(|since| sent_at <= since) || sent_at < self.moved_at
    }
}

impl Source {
    /// Tells that the machine's clocks have moved against each other: it slept, or one was set. What
    /// is on its way may have been said long ago.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].asking.is_some() {
                self.hang_up(lane, cx);
                self.put_back(lane, cx.now);
            }
        }
        self.drop_staged(cx.now);
        self.doubt_clock(cx);
    }

    /// Nobody knows what time it is there: it is asked at once.
    fn doubt_clock(&mut self, cx: &mut Context) {
        self.clock.doubted = Some(cx.now.mono);
        self.clock.due = cx.now.mono;
        self.clock.newest = None;
        self.clock.date_ahead = None;
        cx.market.charts.doubt_clock(self.id, true);
        self.wake = Some(cx.now.mono);
    }

    /// An answer speaks against what is known of the exchange's time.
    fn contradict(&mut self, sign: Sign, ms: i64, cx: &mut Context) {
        let (refuted, until) = self.clock.refuted[sign as usize];
        let is_refuted = cx.now.mono < until && ms <= refuted + CONTRADICTION_MS;
        if self.clock.is_in_doubt() || is_refuted {
            return;
        }
        self.clock.against = Some((sign, ms));
        let (id, what) = (&self.config.id, sign.text());
        log::info!(target: SOURCE, "{id}: {what} by {ms} ms: asking for the exchange's time");
        self.doubt_clock(cx);
    }

    /// The newest time of an answer. `is_poll`: of all quotes, which never goes back.
    pub(super) fn heed_time(&mut self, newest: UnixMs, is_poll: bool, cx: &mut Context) {
        let ahead = newest - cx.stats[self.id].exchange_time(cx.now);
        let before = match is_poll {
            true => self.clock.newest.replace(newest),
            false => None,
        };
        let back = before.map_or(0, |before| before - newest);
        if ahead > CONTRADICTION_MS {
            self.contradict(Sign::Ahead, ahead, cx);
        } else if back > CONTRADICTION_MS {
            self.contradict(Sign::Back, back, cx);
        }
    }

    /// The `Date` of an answer. One from a cache is old: only what lies ahead speaks against the clock,
    /// and only by how much more than before, for the servers in front may have a clock of their own.
    pub(super) fn heed_date(&mut self, date: UnixMs, cx: &mut Context) {
        if self.clock.is_in_doubt() {
            return;
        }
        let ahead = date - cx.stats[self.id].exchange_time(cx.now);
        let before = *self.clock.date_ahead.get_or_insert(ahead);
        self.clock.date_ahead = Some(before.max(ahead));
        if ahead - before > CONTRADICTION_MS {
            self.contradict(Sign::Date, ahead - before, cx);
        }
    }

    /// The exchange's time could not be had.
    pub(super) fn clock_failed(&mut self, retry: Duration, now: Now) {
        self.clock.due = match self.clock.is_in_doubt() {
            true => now.mono + RETRY,
            false => now.mono + retry,
        };
    }

    /// The exchange's time has come; it was asked then. It was taken before the answer left, so it is a
    /// lower bound, by at most one round trip.
    pub(super) fn set_clock(
        &mut self,
        time: UnixMs,
        asked: Mono,
        history: &mut History,
        cx: &mut Context,
    ) {
        if self.clock.doubted.is_some_and(|since| asked < since) {
            // It was told before it came into doubt.
            self.clock.due = cx.now.mono;
            return;
        }
        let before = cx.stats[self.id].exchange_time(cx.now);
        cx.stats[self.id].clock = Some(time.0 - (cx.now.mono.0 / 1000) as i64);
        let has_moved = (time - before).abs() > CLOCK_OFFSET_MS;
        if before - time > CLOCK_OFFSET_MS {
            // Since it was last set, slots may have been taken for closed that were not.
            let elapsed = cx.now.mono.since(self.clock.told_at).as_millis() as i64;
            for (key, slot) in cx.market.charts.doubt(self.id, time - elapsed) {
                history.forget(key, slot..i64::MAX, cx);
            }
        }
        if has_moved {
            cx.market.charts.forget_silences(self.id);
            self.fetches.hurry(cx.now);
            self.clock.moved_at = cx.now.mono;
            self.clock.against = None;
        }
        if let Some((sign, ms)) = self.clock.against.take() {
            self.clock.refuted[sign as usize] = (ms, cx.now.mono + CONFIRMED);
        }
        self.clock.told_at = cx.now.mono;
        let was_in_doubt = self.clock.doubted.take().is_some();
        cx.market.charts.doubt_clock(self.id, false);
        if was_in_doubt {
            self.begin_forming(cx);
        }
        self.tell_offset(cx.now.unix - time);
    }

    fn tell_offset(&self, offset: i64) {
        if offset.abs() > CLOCK_OFFSET_MS {
            log::warn!(
                target: SOURCE,
                "{}: this machine's clock is {} ms {} the exchange's; candles follow the exchange's",
                self.config.id,
                offset.abs(),
                if offset > 0 { "ahead of" } else { "behind" },
            );
        }
    }

    /// Which slots are forming is known from now on: the quotes that came before begin them.
    fn begin_forming(&mut self, cx: &mut Context) {
        let exchange = cx.stats[self.id].exchange_time(cx.now);
        let Market { quotes, charts, .. } = &mut cx.market;
        for key in self.fetches.series() {
            if let Some(quote) = quotes.of(self.id, key.symbol)
                && !quote.stale()
                && key.interval == Stored::M1
            {
                charts.tick(self.id, key.symbol, &quote.ticker.last, exchange);
            }
        }
    }

    /// The exchange's time, where it is known.
    pub(super) fn known_time(&self, cx: &Context) -> Option<UnixMs> {
        (!self.clock.is_in_doubt()).then(|| cx.stats[self.id].exchange_time(cx.now))
    }
}
