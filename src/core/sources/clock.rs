//! The exchange's time: measured, and measured again as soon as something contradicts it.
//!
//! [`ExchangeClock`] decides whether the exchange's time is known. From the last time that the exchange
//! told it, it follows our monotonic clock. It is in doubt before it was told first; when the machine's
//! two clocks have moved against each other (it slept, it was paused, its clock was set); and when a
//! response carries a time that the exchange cannot have reached yet, or has left behind. While it is
//! in doubt no candles are requested, quotes change no candle, and no chart that ends now is complete.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::candle_plans::CandlePlans;
use crate::interval::Stored;
use crate::log_targets::SOURCE;
use crate::market::{Market, SourceId};
use crate::named::named;
use crate::time::{Mono, TOLD_DIFFERENCE_MS, UnixMs, who_is_ahead};
use std::time::Duration;

/// A step of the exchange's clock that makes the newest candles due.
const CLOCK_OFFSET_MS: i64 = 2000;

/// How far the time in a response may be from the exchange's time as we know it. Its servers' clocks
/// differ by less, and a `Date` has whole seconds.
const CONTRADICTION_MS: i64 = 5000;

/// After the exchange has told the same time as before, what contradicted it is ignored for this long,
/// unless it contradicts by more: some responses carry times of another kind.
const CONFIRMED: Duration = Duration::from_secs(600);

/// See the module's page.
#[derive(Debug)]
pub struct ExchangeClock {
    source: SourceId,
    /// When it is read next.
    pub due: Mono,
    /// Since when it is in doubt.
    in_doubt_since: Option<Mono>,
    /// When the exchange last told its time; before that, when the source began.
    told_at: Mono,
    /// When it was last set to another time.
    moved_at: Mono,
    /// What contradicts it, and by how much.
    contradiction: Option<(Sign, i64)>,
    /// By kind: a contradiction that was not confirmed, and until when it is ignored.
    refuted: [(i64, Mono); 3],
    /// The newest time of the last poll of all quotes.
    newest: Option<UnixMs>,
    /// How far the `Date` of responses is ahead, at most.
    date_ahead: Option<i64>,
}

named! {
    /// What may contradict the exchange's time as we know it.
    enum Sign {
        /// A time in a response that is still to come.
        Ahead "a time in a response is ahead"
        /// The newest quote, which is older than the one before.
        Back "the newest quote went back"
        /// The `Date` of a response, further ahead than before.
        Date "the date of a response is ahead"
    }
}

impl ExchangeClock {
    /// A clock that is read at once.
    pub fn new(source: SourceId, now: Mono) -> ExchangeClock {
        ExchangeClock {
            source,
            due: now,
            in_doubt_since: Some(now),
            told_at: now,
            moved_at: Mono(0),
            contradiction: None,
            refuted: [(0, now); 3],
            newest: None,
            date_ahead: None,
        }
    }

    /// True if the exchange's time is not known.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt_since.is_some()
    }

    /// True if the clock went into doubt after `sent_at` and still is, or was set to another time since:
    /// it is then unknown which candles had closed at `sent_at`.
    pub fn is_overtaken(&self, sent_at: Mono) -> bool {
        self.in_doubt_since.is_some_and(|since| sent_at <= since) || sent_at < self.moved_at
    }

    /// The time is not known from now on, and is read at once.
    pub fn doubt(&mut self, cx: &mut Context) {
        self.in_doubt_since = Some(cx.now.mono);
        self.due = cx.now.mono;
        self.date_ahead = None;
        cx.market.charts.doubt_clock(self.source, true);
    }

    fn contradict(&mut self, sign: Sign, ms: i64, cx: &mut Context) {
        let (refuted, until) = self.refuted[sign as usize];
        let is_refuted = cx.now.mono < until && ms <= refuted + CONTRADICTION_MS;
        if self.is_in_doubt() || is_refuted {
            return;
        }
        self.contradiction = Some((sign, ms));
        let (id, what) = (&cx.stats[self.source].id, sign.name());
        log::info!(target: SOURCE, "clock in doubt source={id} reason={what:?} ms={ms}");
        self.doubt(cx);
    }

    /// Compares the newest time of a response. `is_poll`: of all quotes, which never goes back.
    pub fn check_time(&mut self, newest: UnixMs, is_poll: bool, cx: &mut Context) {
        let ahead = newest - cx.exchange_time(self.source);
        let before = match is_poll {
            true => self.newest.replace(newest),
            false => None,
        };
        let back = before.map_or(0, |before| before - newest);
        if ahead > CONTRADICTION_MS {
            self.contradict(Sign::Ahead, ahead, cx);
        } else if back > CONTRADICTION_MS {
            self.contradict(Sign::Back, back, cx);
        }
    }

    /// Compares the `Date` of a response. One from a cache is old: only what lies ahead contradicts the
    /// clock, and only by how much more than before, because the servers in front may have a clock of
    /// their own.
    pub fn check_date(&mut self, date: UnixMs, cx: &mut Context) {
        if self.is_in_doubt() {
            return;
        }
        let ahead = date - cx.exchange_time(self.source);
        let before = *self.date_ahead.get_or_insert(ahead);
        self.date_ahead = Some(before.max(ahead));
        if ahead - before > CONTRADICTION_MS {
            self.contradict(Sign::Date, ahead - before, cx);
        }
    }

    /// Sets the exchange's time to `time`, from the response to a request sent at `asked`. The exchange
    /// read its clock before the response left, so `time` is behind by at most one round trip.
    pub fn set(
        &mut self,
        time: UnixMs,
        asked: Mono,
        plans: &mut CandlePlans,
        history: &mut History,
        cx: &mut Context,
    ) {
        if self.in_doubt_since.is_some_and(|since| asked < since) {
            // The request left before the clock came into doubt: its response proves nothing.
            self.due = cx.now.mono;
            return;
        }
        let before = cx.exchange_time(self.source);
        cx.stats[self.source].clock = Some(time.0 - (cx.now.mono.0 / 1000) as i64);
        if before - time > CLOCK_OFFSET_MS {
            // Since it was last set, slots may have been taken for closed that were not.
            let elapsed = cx.now.mono.since(self.told_at).as_millis() as i64;
            for (key, slot) in cx.market.charts.doubt(self.source, time - elapsed) {
                history.forget(key, slot..i64::MAX, cx);
            }
        }
        if (time - before).abs() > CLOCK_OFFSET_MS {
            cx.market.charts.forget_silences(self.source);
            plans.refresh_all(cx.now);
            self.moved_at = cx.now.mono;
            self.contradiction = None;
        }
        if let Some((sign, ms)) = self.contradiction.take() {
            self.refuted[sign as usize] = (ms, cx.now.mono + CONFIRMED);
        }
        self.told_at = cx.now.mono;
        cx.market.charts.doubt_clock(self.source, false);
        if self.in_doubt_since.take().is_some() {
            self.begin_forming(plans, cx);
        }
        let offset = cx.now.unix - cx.exchange_time(self.source);
        if offset.abs() > TOLD_DIFFERENCE_MS {
            // Candles follow the exchange's clock.
            let id = &cx.stats[self.source].id;
            let (who, ms) = (who_is_ahead(offset), offset.abs());
            log::warn!(target: SOURCE, "clock differs source={id} ahead={who} ahead_ms={ms}");
        }
    }

    /// Which slots are forming is known from now on: the quotes that came before begin them.
    fn begin_forming(&self, plans: &CandlePlans, cx: &mut Context) {
        let exchange = cx.exchange_time(self.source);
        let Market { quotes, charts, .. } = &mut cx.market;
        for key in plans.series().filter(|key| key.interval == Stored::M1) {
            if let Some(quote) = quotes.of(self.source, key.symbol)
                && !quote.stale()
            {
                charts.tick(self.source, key.symbol, &quote.ticker.last, exchange);
            }
        }
    }
}
