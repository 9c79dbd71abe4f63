//! The exchange's time, by witnesses.
//!
//! [`ExchangeClock`] owns what each witness has told: the exchange's time call, the `Date` of its responses,
//! and the newest ticker of a whole poll or round. This machine's clock is the weakest witness. No witness is
//! believed alone: a time holds once two of them agree on it, and no other time has as many witnesses. If an
//! exchange has only one witness, its time holds if it tells the same time a minute later. A clock that holds
//! follows our monotonic clock. If no time holds, the clock is *in doubt*, and the time call is read again.
//!
//! While it is in doubt, the exchange's time is the earliest that a witness has told. Candles that had ended
//! by then have ended by every witness: they are requested and served as usual. Meanwhile no later candle
//! closes, quotes change no candle, and a chart that ends now is incomplete.
//!
//! A wrong time deletes no stored candle. If the clock goes back, memory drops the candles that lie ahead,
//! and treats them as missing from the file. They are requested again when they have ended, and the answer of
//! the exchange replaces them.

use crate::core::context::{Context, wall_zero};
use crate::core::sources::staged::Newest;
use crate::core::stats::ClockDoubt;
use crate::interval::Stored;
use crate::log_targets::{SOURCE, quoted};
use crate::market::{Market, SourceId};
use crate::time::{Mono, TOLD_DIFFERENCE_MS, UnixMs, who_is_ahead};
use std::time::Duration;

/// Two readings agree if they differ by no more than this. A response that took longer to come is ignored.
const TOLERANCE_MS: i64 = 2000;

/// The only witness confirms itself if it has told the same time, by the monotonic clock, for this long.
const CONFIRMED: Duration = Duration::from_secs(60);

/// The votes of each witness of the exchange. This machine's clock has one vote.
const VOTES: u32 = 2;

/// The votes that a clock needs to hold: two witnesses, of which one may be this machine's clock.
const NEEDED: u32 = 3;

/// The newest ticker counts once it has kept pace with our clock for this long: the newest ticker of a quiet
/// market stands still.
const IN_STEP: Duration = Duration::from_secs(10);

/// In doubt, this machine's clock counts as ahead by this much: nobody knows how well it is set.
const MACHINE_OFF_MS: i64 = 300_000;

/// The first pause before the time call is read again while the clock is in doubt.
const RETRY: Duration = Duration::from_secs(5);

/// The longest pause in doubt, and the pause after a time call that has failed while the clock is known.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Between two readings of the market list, and between two of a clock that holds: listings change a few
/// times a day, and clocks of machines drift by seconds a day.
pub const HOURLY: Duration = Duration::from_secs(3600);

/// A witness of the exchange's time, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// The exchange's time call.
    Call,
    /// The `Date` of a response that no cache has kept.
    Date,
    /// The newest ticker of a poll of all quotes, or of a round.
    Ticker,
}

/// The names of the witnesses, in their order.
const NAMES: [&str; 3] = ["time call", "date", "newest ticker"];

/// What one witness tells. Times are what the exchange's clock showed when our monotonic clock was zero, in
/// milliseconds.
#[derive(Clone, Copy, Debug)]
struct Story {
    witness: Witness,
    earliest: i64,
    latest: i64,
    /// When the first request was sent whose response told this time.
    since: Mono,
    /// The earliest time by that response.
    first: i64,
    /// When the last response that told this time came.
    until: Mono,
    /// True if it was outvoted: it counts for nothing until it agrees with the clock that holds.
    is_odd: bool,
}

impl Story {
    /// True if both may tell the same time.
    fn agrees(&self, other: &Story) -> bool {
        let is_before = |a: &Story, b: &Story| a.earliest.saturating_sub(b.latest) <= TOLERANCE_MS;
        is_before(self, other) && is_before(other, self)
    }

    /// A story that tells exactly this time.
    fn at(zero: i64) -> Story {
        let (witness, (since, until)) = (Witness::Call, Default::default());
        Story { witness, earliest: zero, latest: zero, since, first: zero, until, is_odd: false }
    }

    /// False if it may be the ticker of a quiet market, which stands still. A ticker counts once it has kept
    /// pace with our clock, or if it is ahead of `running`, the clock that held last, and was not outvoted.
    fn is_clock(&self, running: Option<i64>) -> bool {
        let is_ahead = running.is_some_and(|zero| self.earliest - zero > TOLERANCE_MS);
        let is_in_step = self.until.since(self.since) >= IN_STEP;
        self.witness != Witness::Ticker || is_ahead && !self.is_odd || is_in_step
    }
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct ExchangeClock {
    source: SourceId,
    /// When the time call is read next.
    pub due: Mono,
    /// When the time call was last sent.
    asked_at: Option<Mono>,
    /// When the time call was last answered, or has failed. Before the first time, a doubt is logged and
    /// reported only if some witness counts.
    ended_at: Option<Mono>,
    /// By witness.
    stories: [Option<Story>; NAMES.len()],
    /// The last clock that held, as in a [`Story`], unless our clocks have moved against each other since.
    running: Option<i64>,
    /// True if the clock was set since [`ExchangeClock::has_moved`] was last asked.
    is_set: bool,
    /// Since when the clock is in doubt.
    in_doubt_since: Option<Mono>,
    /// Quotes that come before this may have been requested before the clock was set.
    quotes_from: Mono,
}

impl ExchangeClock {
    /// A clock that is read at once.
    pub fn new(source: SourceId, now: Mono) -> ExchangeClock {
        ExchangeClock {
            source,
            due: now,
            in_doubt_since: Some(now),
            quotes_from: now,
            ..ExchangeClock::default()
        }
    }

    /// True if the exchange's time is not known.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt_since.is_some()
    }

    /// True if the clock is in doubt, and no time call has ended since the doubt began.
    pub fn awaits_call(&self) -> bool {
        self.in_doubt_since.is_some_and(|since| self.ended_at.is_none_or(|at| at < since))
    }

    /// True if the exchange's time is known, and was known when the quotes that come now were requested.
    pub fn dates_quotes(&self, now: Mono) -> bool {
        !self.is_in_doubt() && self.quotes_from <= now
    }

    /// True if the clock was set to another time since this was last asked: the newest candles are due.
    pub fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.is_set)
    }

    /// The time call is being read.
    pub fn asked(&mut self, now: Mono) {
        self.asked_at = Some(now);
        self.due = now + HOURLY;
    }

    /// The time call has failed. The failure says something of the clock only if other calls were answered.
    /// While the clock is in doubt, the back-off of the time call decides how soon it is read again.
    pub fn failed(&mut self, cx: &mut Context) {
        self.ended_at = Some(cx.now.mono);
        if cx.stats[self.source].ok > 0 {
            self.judge(cx);
        }
        let pause = if self.is_in_doubt() { Duration::ZERO } else { RETRY_MAX };
        self.due = cx.now.mono + pause;
    }

    /// This machine's clocks have moved against each other: what witnesses told before means nothing.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        self.stories = [None; NAMES.len()];
        self.running = None;
        self.begin_doubt("the machine slept, or its clock was set".to_string(), cx);
        self.due = cx.now.mono;
    }

    /// Takes in the newest ticker of a poll whose request was sent at `sent`, or of a round that has ended.
    pub fn note_newest(&mut self, newest: &Newest, sent: Mono, cx: &mut Context) {
        if let Some(time) = newest.time(cx.now.mono) {
            self.note(Witness::Ticker, [time, time + TOLERANCE_MS], sent, cx);
        }
    }

    /// Takes in what the response to a request that was sent at `sent` tells: since then, the exchange's
    /// clock has shown a time between these two.
    pub fn note(&mut self, witness: Witness, told: [UnixMs; 2], sent: Mono, cx: &mut Context) {
        let now = cx.now.mono;
        if now.since(sent).as_millis() as i64 <= TOLERANCE_MS {
            let (before, running) = (self.stories[witness as usize], self.running);
            let told = self.story(witness, told, sent, now);
            self.stories[witness as usize] = Some(told);
            let is_same = before.is_some_and(|it| it.since == told.since && it.is_clock(running));
            let is_other = running.is_some_and(|zero| !Story::at(zero).agrees(&told));
            if told.is_clock(running) && is_other && !is_same && witness != Witness::Call {
                self.call_again(RETRY_MAX, now);
            }
        }
        if witness != Witness::Call {
            return self.judge(cx);
        }
        self.ended_at = Some(now);
        self.judge(cx);
        match self.in_doubt_since {
            None => self.warn_of_difference(cx),
            Some(since) => self.due = now + now.since(since).clamp(RETRY, RETRY_MAX),
        }
    }

    /// The story of a witness: what it tells now, and since when it has told the same.
    fn story(&self, witness: Witness, told: [UnixMs; 2], sent: Mono, now: Mono) -> Story {
        let (earliest, latest) = (zero_of(told[0], now), zero_of(told[1], sent));
        let before = self.stories[witness as usize];
        let is_odd = before.is_some_and(|it| it.is_odd);
        let (since, first, until) = (sent, earliest, now);
        let told = Story { witness, earliest, latest, since, first, until, is_odd };
        let drift = |before: &Story| (told.earliest - before.first).abs();
        let is_same = |before: &Story| before.agrees(&told) && drift(before) <= TOLERANCE_MS;
        match before.filter(is_same) {
            Some(Story { since, first, .. }) => Story { since, first, ..told },
            None => told,
        }
    }

    /// Has the time call read again, with this pause after the last call.
    fn call_again(&mut self, pause: Duration, now: Mono) {
        self.due = self.due.min(self.asked_at.map_or(now, |at| now.max(at + pause)));
    }

    /// The stories that count, the strongest witness first.
    fn heard(&self) -> impl Iterator<Item = &Story> {
        let all = self.stories.iter().flatten();
        all.filter(move |it| !it.is_odd && it.is_clock(self.running))
    }

    fn warn_of_difference(&self, cx: &Context) {
        let offset = cx.now.unix - cx.exchange_time(self.source);
        if offset.abs() > TOLD_DIFFERENCE_MS {
            // Candles follow the exchange's clock.
            let id = &cx.stats[self.source].id;
            let (who, ms) = (who_is_ahead(offset), offset.abs());
            log::warn!(target: SOURCE, "clock differs source={id} ahead={who} ahead_ms={ms}");
        }
    }

    /// Finds the time that most witnesses tell, and whether it holds. The time of the demo exchange is given.
    pub fn judge(&mut self, cx: &mut Context) {
        if let Some(clock) = cx.given_clock(self.source) {
            cx.stats[self.source].given_clock = Some(clock);
            return self.hold(clock.zero, cx);
        }
        // A story that ended before another one began proves nothing against the other.
        let begun = self.heard().map(|it| it.since).max().unwrap_or_default();
        let heard: Vec<Story> = self.heard().filter(|it| it.until >= begun).copied().collect();
        let running = self.running.map(Story::at);
        let machine = Story::at(wall_zero(cx.now));
        let votes = |time: &Story| -> u32 {
            let told = heard.iter().filter(|it| it.agrees(time)).count() as u32;
            told * VOTES + u32::from(machine.agrees(time))
        };
        let holds = |time: &&Story| {
            let is_confirmed = time.until.since(time.since) >= CONFIRMED;
            let is_alone = is_confirmed && self.heard().all(|it| it.agrees(time));
            let is_known = running.is_some_and(|it| it.agrees(time));
            let is_enough = is_known || votes(time) >= NEEDED;
            let is_outvoted = |it: &Story| it.agrees(time) || votes(it) < votes(time);
            is_alone || is_enough && running.iter().chain(&heard).all(is_outvoted)
        };
        let Some(best) = running.iter().chain(&heard).find(holds).copied() else {
            let why = (self.ended_at.is_some() || !heard.is_empty()).then(|| self.told(cx));
            return self.begin_doubt(why.unwrap_or_default(), cx);
        };
        for it in self.stories.iter_mut().flatten() {
            it.is_odd = !it.agrees(&best) && (it.is_odd || it.is_clock(self.running));
        }
        // The strongest witness bounds the exchange's time.
        let before = cx.stats[self.source].clock.filter(|it| Story::at(*it).agrees(&best));
        let zero = match (self.heard().find(|it| it.agrees(&best)), before) {
            (Some(told), Some(before)) => before.clamp(told.earliest, told.latest),
            (told, _) => told.unwrap_or(&best).earliest,
        };
        self.hold(zero, cx);
    }

    /// Sets the exchange's clock, which holds from now on. `zero`: what it showed when our monotonic clock
    /// was zero.
    fn hold(&mut self, zero: i64, cx: &mut Context) {
        let (source, is_given) = (self.source, cx.stats[self.source].given_clock.is_some());
        let used = zero_of(cx.exchange_time(source), cx.now.mono);
        let former = cx.stats[source].clock.replace(zero);
        let before = match is_given {
            true => former.unwrap_or(zero),
            false => former.map_or(used, |it| it.max(used)),
        };
        self.running = Some(zero);
        let moved_ms = zero.saturating_sub(before);
        // This also hides candles that an earlier run has stored by a clock that was ahead.
        if moved_ms < -TOLERANCE_MS || former.is_none() {
            let time = cx.exchange_time(source);
            cx.market.charts.hide_from(source, time);
        }
        let has_moved = moved_ms.saturating_abs() > TOLERANCE_MS;
        self.is_set |= has_moved || former.is_none();
        if has_moved && former.is_some() && !is_given {
            self.quotes_from = cx.now.mono + IN_STEP;
        }
        if let Some(since) = self.in_doubt_since.take() {
            if cx.stats[source].clock_doubt.take().is_some_and(|it| it.is_told()) {
                let (id, s) = (&cx.stats[source].id, cx.now.mono.since(since).as_secs());
                log::info!(target: SOURCE, "clock known source={id} moved_ms={moved_ms} after_s={s}");
            }
            cx.market.charts.doubt_clock(source, None);
            if self.dates_quotes(cx.now.mono) {
                self.begin_forming(cx);
            }
        }
    }

    /// The time is in doubt from now on, and is read again soon. A doubt without a reason is not logged.
    pub fn begin_doubt(&mut self, why: String, cx: &mut Context) {
        let (source, now) = (self.source, cx.now.mono);
        if self.in_doubt_since.is_none() {
            self.in_doubt_since = Some(now);
            self.call_again(RETRY, now);
        }
        let (machine, told) = (wall_zero(cx.now), self.heard().map(|it| it.earliest));
        let status = &mut cx.stats[source];
        if !why.is_empty() && !status.clock_doubt.as_ref().is_some_and(ClockDoubt::is_told) {
            log::warn!(target: SOURCE, "clock in doubt source={} reason={}", status.id, quoted(&why));
        }
        let earliest = told.chain(status.clock).fold(machine - MACHINE_OFF_MS, i64::min);
        status.clock_doubt = Some(ClockDoubt { why: why.into(), earliest });
        let sure = status.sure_time(cx.now);
        cx.market.charts.doubt_clock(source, Some(sure));
    }

    /// What each witness tells, for people.
    fn told(&self, cx: &Context) -> String {
        let of = |it: &Story| {
            let time = UnixMs(it.earliest) + cx.now.mono.as_ms();
            format!("{} {time}", NAMES[it.witness as usize])
        };
        let mut told: Vec<String> = self.stories.iter().flatten().map(of).collect();
        told.push(format!("this machine {}", cx.now.unix));
        told.join(", ")
    }

    /// From now on it is known which slots are forming. The quotes that came before begin their candles.
    fn begin_forming(&self, cx: &mut Context) {
        let exchange = cx.exchange_time(self.source);
        let Market { quotes, charts, .. } = &mut cx.market;
        for key in charts.open_keys(self.source).iter().filter(|key| key.interval == Stored::M1) {
            if let Some(quote) = quotes.of(self.source, key.symbol)
                && !quote.stale()
            {
                charts.tick(self.source, key.symbol, &quote.ticker.last, exchange);
            }
        }
    }
}

/// What a clock that shows `time` at `mono` showed when our monotonic clock was zero, in milliseconds.
fn zero_of(time: UnixMs, mono: Mono) -> i64 {
    (time - mono.as_ms()).0
}
