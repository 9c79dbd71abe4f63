//! The failures of a source by kind of request, their back-offs, the halts of its host, and the steps of
//! [`SourceState`].
//!
//! [`Failures`] owns a back-off for each kind ([`RequestKind`]): one kind that fails does not hold up the
//! others. Some failures concern one market alone, until [`FAILURES_IN_A_ROW`] of one kind follow each other.
//! Failures that count for the kind are in the figures of the source. Their number gives the length of the
//! kind's pause. A good answer does not end a pause; the first one after the pause ends the back-off. What
//! concerns every kind halts the [`Host`]: a halt is a pause of every kind.
//!
//! Whatever fails is logged by an [`Episode`]. Failures of single markets have one of their own, which
//! ends an hour after its last line: a market that always fails does not hide failures that count for the
//! kind. Other markets that fail in the same way are told at debug.
//!
//! A source is up while quotes of it are served. It backs off after a failure of quotes, and while its host
//! is halted. If the newest quotes grow stale before newer ones come, the source is down.

use crate::core::context::Context;
use crate::core::sources::fault::{Blame, Fault};
use crate::core::sources::host::{Host, Pause};
use crate::core::sources::task::Task;
use crate::core::stats::{SourceState, on_wall};
use crate::exchange::RequestKind;
use crate::log_targets::{SOURCE, quoted};
use crate::market::SourceId;
use crate::rng::Rng;
use crate::time::Mono;
use std::time::Duration;

/// This many failures of one kind in a row, each of a request for one market, count as a failure of the kind.
/// The failure "unknown market" is not one of them. Fewer may come from single markets. To wait for more
/// would send requests in vain.
pub const FAILURES_IN_A_ROW: u32 = 5;

/// How long each logged line keeps the log quiet.
const PAUSE: Duration = Duration::from_secs(120);

/// How long after a logged line the same fault of a single market is logged again.
const MARKETS_PAUSE: Duration = Duration::from_secs(3600);

/// The most different faults that one episode logs.
const CODES: usize = 4;

/// See the module's page.
pub struct Failures {
    source: SourceId,
    kinds: [KindFailures; RequestKind::NAMES.len()],
    /// When quotes last came; before that, when the source began.
    quotes_at: Mono,
    rng: Rng,
}

#[derive(Debug, Default)]
struct KindFailures {
    /// Failures of requests for one market since the last good answer, without "unknown market".
    in_a_row: u32,
    /// When the running pause began.
    since: Mono,
    /// Until when none of the kind is requested: a back-off, or the host's halt.
    pause: Pause,
    episode: Episode,
    /// The failures of single markets.
    of_markets: Episode,
}

impl Failures {
    /// No failures. `seed`: for the jitter.
    pub fn new(source: SourceId, seed: u64, now: Mono) -> Failures {
        Failures { source, kinds: Default::default(), quotes_at: now, rng: Rng::new(seed) }
    }

    /// True if this kind has failed, and was not answered well since its back-off.
    pub fn is_failing(&self, kind: RequestKind, cx: &Context) -> bool {
        cx.stats[self.source].failing[kind as usize] > 0
    }

    /// Other nodes call the exchange from now on: what failed here does not matter. Pauses go on, because
    /// only time ends them, and this node may call the exchange again before their end.
    pub fn forget(&mut self, cx: &mut Context) {
        for it in &mut self.kinds {
            it.pause.is_of_node = false;
            it.episode.forget();
        }
        let status = &mut cx.stats[self.source];
        (status.failing, status.kind_failing_since) = Default::default();
    }

    /// The route to the exchange has changed: failures on the former route do not matter. If the host stays
    /// the same, `Sources` tells its halt again.
    pub fn rerouted(&mut self, cx: &mut Context) {
        self.forget(cx);
        for it in &mut self.kinds {
            (it.in_a_row, it.since, it.pause) = Default::default();
        }
    }

    /// The kind no longer fails, or nothing of it is requested any more that would tell.
    pub fn forget_kind(&mut self, kind: RequestKind, cx: &mut Context) {
        self.kinds[kind as usize].episode.forget();
        let status = &mut cx.stats[self.source];
        status.failing[kind as usize] = 0;
        status.kind_failing_since[kind as usize] = None;
    }

    /// True if another node may do better: no quotes have come for `span` after a poll was due, because the
    /// exchange is not reached, fails itself, or does not serve this node.
    pub fn is_of_node(&self, span: Duration, cx: &Context) -> bool {
        let span = span + cx.config.sources[self.source.index()].poll.usual();
        // There are no quotes without the list.
        let has_list = cx.market.catalog.has_list(self.source);
        let needed = if has_list { RequestKind::Quotes } else { RequestKind::List };
        let pause = self.kinds[needed as usize].pause;
        // A pause that ended before the last quotes came says nothing any more.
        let is_recent = pause.until > self.quotes_at;
        pause.is_of_node && is_recent && cx.now.mono.since(self.quotes_at) >= span
    }

    /// True if nothing of this kind can be expected soon.
    pub fn holds(&self, kind: RequestKind, cx: &Context) -> bool {
        self.is_failing(kind, cx) || cx.now.mono < self.until(kind)
    }

    /// Until when none of this kind is requested.
    pub fn until(&self, kind: RequestKind) -> Mono {
        self.kinds[kind as usize].pause.until
    }

    /// Quotes are not requested before this: another node has said so.
    pub fn set_quotes_until(&mut self, until: Mono) {
        self.kinds[RequestKind::Quotes as usize].pause = Pause { until, is_of_node: false };
    }

    /// Takes in a failure of a request that began at `began`. The host has `addresses` addresses. The
    /// host is halted if the failure concerns it. A new fault is logged. Returns what the failure concerns.
    ///
    /// The pause of a kind begins at `pollMs` and doubles with each failure in a row, at most
    /// `limits.backoffMaxMs`. If one of several addresses is at fault, the pause is divided by their number,
    /// so that each is tried within it. A pause is never shorter than `pollMs`, unless `limits.backoffMaxMs`
    /// is. Up to a tenth is then taken off, so that many daemons do not come back at once.
    pub fn failed(
        &mut self,
        task: &Task,
        fault: &Fault,
        (began, addresses): (Mono, u32),
        host: &mut Host,
        cx: &mut Context,
    ) -> Blame {
        let (now, kind) = (cx.now.mono, task.kind());
        let blame = fault.blame(task.may_blame_market(fault));
        let is_again = self.is_failing(kind, cx);
        let it = &mut self.kinds[kind as usize];
        let is_one = !matches!(task, Task::TickersOf { symbols, .. } if symbols.len() > 1);
        it.in_a_row += u32::from(blame == Blame::Market && is_one && !fault.is_unknown_market());
        let is_of_market = blame == Blame::Market && !is_again && it.in_a_row < FAILURES_IN_A_ROW;
        if now.since(it.of_markets.quiet_until) >= MARKETS_PAUSE - PAUSE {
            it.of_markets.forget();
        }
        let episode = if is_of_market { &mut it.of_markets } else { &mut it.episode };
        if let Some(failures) = episode.failed(&fault.code, now) {
            let (id, what) = (&cx.stats[self.source].id, task.describe(&cx.market));
            log::warn!(
                target: SOURCE,
                "request failed source={id} what={} failures={failures} error={}",
                quoted(what),
                quoted(fault)
            );
        }
        if is_of_market {
            return blame;
        }
        let status = &mut cx.stats[self.source];
        let failures = &mut status.failing[kind as usize];
        // Requests sent before this back-off began fail for the same reason: they count as one failure.
        if !is_again || began >= it.since {
            *failures += 1;
            it.since = now;
        }
        let failures = *failures;
        // Without a first list, the state of the source tells it.
        if kind != RequestKind::List || cx.market.catalog.has_list(self.source) {
            status.kind_failing_since[kind as usize].get_or_insert(cx.now.unix);
        }
        let poll = cx.config.sources[self.source.index()].poll.usual();
        let doubled = poll * 2u32.saturating_pow((failures - 1).min(16) as u32);
        let most = doubled.min(cx.config.limits.backoff_max);
        // If no connection could be opened (`Blame::Host`), all addresses have been tried.
        let others_may_do = fault.is_of_address() && blame != Blame::Host;
        let turns = if others_may_do { addresses.max(1) } else { 1 };
        let step = (most / turns).max(poll.min(most));
        let step = step - Duration::from_micros(self.rng.below(step.as_micros() as u64 / 10));
        let is_of_node = fault.is_of_node();
        let until = now + step;
        it.pause = it.pause.max(Pause { until, is_of_node });
        let asked = fault.asked_pause(cx.exchange_time(self.source));
        match (asked, blame) {
            (Some(asked), _) => host.halt(asked.max(step), is_of_node, now),
            (None, Blame::Host) => host.halt(step, is_of_node, now),
            (None, Blame::RateLimit) => host.refused(began, until, now),
            (None, Blame::Kind | Blame::Market) => {}
        }
        log::debug!(
            target: SOURCE,
            "back-off source={} kind={} failures={failures} wait_ms={} asked_for_ms={}",
            cx.stats[self.source].id,
            quoted(kind.name()),
            it.pause.until.since(now).as_millis(),
            asked.map_or(0, |asked| asked.as_millis()),
        );
        if blame == Blame::Market { Blame::Kind } else { blame }
    }

    /// The host is halted, by a failure of this source or of another one.
    pub fn halted(&mut self, halt: Pause, cx: &mut Context) {
        self.kinds.iter_mut().for_each(|it| it.pause = it.pause.max(halt));
        self.back_off(cx.now.mono, cx);
    }

    /// Quotes are not requested for a while, and not before `least`.
    pub fn back_off(&self, least: Mono, cx: &mut Context) {
        let is_stale = self.stale_at(cx) <= cx.now.mono;
        let status = &mut cx.stats[self.source];
        status.state = if is_stale { SourceState::Down } else { SourceState::Backoff };
        status.failing_since.get_or_insert(cx.now.unix);
        let until = self.until(RequestKind::Quotes).max(self.until(RequestKind::List));
        status.backoff_until = Some(on_wall(until.max(least), cx.now));
    }

    /// A request of this kind was answered well. If the back-off is over, the kind no longer fails. The end
    /// is logged if the beginning was.
    pub fn answered(&mut self, kind: RequestKind, cx: &mut Context) {
        let (now, it) = (cx.now.mono, &mut self.kinds[kind as usize]);
        it.in_a_row = 0;
        if it.pause.until > now {
            return;
        }
        let ended = it.episode.ended(now);
        self.forget_kind(kind, cx);
        if let Some(failures) = ended {
            let (id, what) = (&cx.stats[self.source].id, kind.name());
            log::info!(target: SOURCE, "answers again source={id} what={} failures={failures}", quoted(what));
        }
    }

    /// Quotes have come. The state changes once they are served ([`Failures::quotes_served`]).
    pub fn quotes_received(&mut self, cx: &mut Context) {
        cx.stats[self.source].quotes_at = Some(cx.now.unix);
        self.quotes_at = cx.now.mono;
    }

    /// Quotes are served from now on. If the exchange has asked for a pause meanwhile, the pause holds.
    pub fn quotes_served(&self, cx: &mut Context) {
        let is_over = self.until(RequestKind::Quotes) <= cx.now.mono;
        let is_fresh = cx.now.mono < self.stale_at(cx);
        let status = &mut cx.stats[self.source];
        if is_over {
            status.state = SourceState::Up;
            (status.backoff_until, status.failing_since) = (None, None);
        } else if status.state == SourceState::Down && is_fresh {
            status.state = SourceState::Backoff;
        }
    }

    /// When a source that backs off counts as down, whether or not it is asked again before.
    pub fn down_at(&self, cx: &Context) -> Option<Mono> {
        let backs_off = cx.stats[self.source].state == SourceState::Backoff;
        backs_off.then(|| self.stale_at(cx))
    }

    /// When the quotes that came last grow stale.
    pub fn stale_at(&self, cx: &Context) -> Mono {
        self.quotes_at + cx.config.sources[self.source.index()].stale_after
    }
}

/// The log of something that fails and recovers: a line when it begins, one for each new fault, one when it
/// ends. On average, one line in two minutes is allowed, as in the health log: what fails every second time
/// does not flood the log. Failures without a line count in the next line of the episode.
#[derive(Debug, Default)]
struct Episode {
    /// Failures since the last line about an end.
    failures: u64,
    /// The faults that were logged since then.
    codes: Vec<String>,
    /// No failure is logged before this.
    quiet_until: Mono,
}

impl Episode {
    /// Takes in a failure. Returns the failures so far, if they are to be logged: this fault is new, and the
    /// last line was long ago.
    fn failed(&mut self, code: &str, now: Mono) -> Option<u64> {
        self.failures += 1;
        let is_known = self.codes.iter().any(|it| it == code) || self.codes.len() >= CODES;
        if is_known || now < self.quiet_until {
            return None;
        }
        self.codes.push(code.to_string());
        self.pause(now);
        Some(self.failures)
    }

    /// All is well. Returns the number of failures if their beginning was logged; then the end is logged,
    /// too.
    fn ended(&mut self, now: Mono) -> Option<u64> {
        if std::mem::take(&mut self.codes).is_empty() {
            return None;
        }
        self.pause(now);
        Some(std::mem::take(&mut self.failures))
    }

    /// Nobody knows how it would go on: the next failure is a new one. No end is logged.
    fn forget(&mut self) {
        (self.failures, self.codes) = Default::default();
    }

    fn pause(&mut self, now: Mono) {
        self.quiet_until = self.quiet_until.max(now) + PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::{NOW, SOURCE, config_of, context, list};
    use crate::exchange::RefusalKind;
    use crate::http::RetryAfter;
    use crate::interval::Stored;
    use crate::market::testing::key;

    #[test]
    fn a_begin_and_an_end_are_one_line_each_with_a_count() {
        let mut episode = Episode::default();
        assert_eq!(episode.ended(Mono(0)), None);
        assert_eq!(episode.failed("status 503", Mono(0)), Some(1));
        for at in 1..1000 {
            assert_eq!(episode.failed("status 503", Mono(at * 1_000_000)), None);
        }
        assert_eq!(episode.failed("status 500", Mono(1000 * 1_000_000)), Some(1001));
        assert_eq!(episode.ended(Mono(1001 * 1_000_000)), Some(1001));
        assert_eq!(episode.ended(Mono(1002 * 1_000_000)), None);
    }

    #[test]
    fn what_fails_every_second_time_for_a_day_is_a_line_in_two_minutes_and_no_failure_is_lost() {
        let (mut episode, mut lines, mut counted) = (Episode::default(), 0, 0);
        for second in 0..86_400 / 2 {
            let at = Mono(second * 2_000_000);
            lines += u64::from(episode.failed("status 503", at).is_some());
            if let Some(failures) = episode.ended(at + Duration::from_secs(1)) {
                lines += 1;
                counted += failures;
            }
        }
        assert!((650..=722).contains(&lines), "{lines}");
        assert!(counted > 43_200 - 240, "{counted}");
    }

    #[test]
    fn a_market_that_always_fails_leaves_the_log_to_the_failures_of_its_kind() {
        let (mut host, mut cx) = (Host::default(), context(config_of("binance"), NOW));
        list(&mut cx.market.catalog, &["A/USDT"]);
        let mut failures = Failures::new(SOURCE, 0, NOW.mono);
        let task = Task::Candles { series: key(Stored::M1), slots: 0..9 };
        let kind = RequestKind::Candles;
        let mut fail = |failures: &mut Failures, status, cx: &mut Context| {
            let fault = Fault::status(status, RefusalKind::Other, None);
            failures.failed(&task, &fault, (cx.now.mono, 1), &mut host, cx);
            let it = &failures.kinds[kind as usize];
            (it.episode.codes.len(), it.of_markets.codes.len())
        };
        for (status, expected) in [
            (400, (0, 1)),
            (404, (0, 2)),
            (410, (0, 3)),
            (500, (0, 4)),
            (501, (1, 4)),
            (502, (2, 4)),
        ] {
            cx.now.mono = cx.now.mono + PAUSE;
            assert_eq!(fail(&mut failures, status, &mut cx), expected, "{status}");
        }
        assert!(cx.stats[SOURCE].failing[kind as usize] > 0);
        cx.now.mono = cx.now.mono + PAUSE;
        failures.answered(kind, &mut cx);
        assert!(failures.kinds[kind as usize].episode.codes.is_empty(), "the end is logged");
        for (minutes, logged) in [(1, 4), (61, 1), (59, 1), (3, 1)] {
            cx.now.mono = cx.now.mono + Duration::from_secs(60 * minutes);
            assert_eq!(fail(&mut failures, 404, &mut cx), (0, logged), "{minutes} minutes");
        }
        let counted = failures.kinds[kind as usize].of_markets.failures;
        assert_eq!(counted, 1, "of the last hour");
    }

    #[test]
    fn what_is_not_requested_any_more_begins_anew_when_it_fails_again() {
        for forget in [
            |failures: &mut Failures, cx: &mut Context| failures.forget_kind(RequestKind::Time, cx),
            |failures: &mut Failures, cx: &mut Context| failures.forget(cx),
        ] {
            let (mut host, mut cx) = (Host::default(), context(config_of("binance"), NOW));
            let mut failures = Failures::new(SOURCE, 0, NOW.mono);
            let mut fail = |failures: &mut Failures, cx: &mut Context| {
                let fault = Fault::status(500, RefusalKind::Other, None);
                failures.failed(&Task::Time, &fault, (cx.now.mono, 1), &mut host, cx);
                failures.kinds[RequestKind::Time as usize].episode.failures
            };
            assert_eq!([fail(&mut failures, &mut cx), fail(&mut failures, &mut cx)], [1, 2]);
            forget(&mut failures, &mut cx);
            cx.now.mono = cx.now.mono + Duration::from_secs(3600);
            assert_eq!(fail(&mut failures, &mut cx), 1);
            assert_eq!(failures.kinds[RequestKind::Time as usize].episode.codes, ["status 500"]);
        }
    }

    #[test]
    fn another_node_may_do_better_by_what_holds_up_the_quotes() {
        let status = |status, kind, seconds| {
            let mut fault = Fault::status(status, kind, None);
            fault.retry_after = Some(RetryAfter::Seconds(seconds));
            fault
        };
        let limited = || (Task::Tickers, status(429, RefusalKind::RateLimited, 60));
        let candles = || Task::Candles { series: key(Stored::M1), slots: 0..9 };
        let banned = || (candles(), status(418, RefusalKind::Banned, 600));
        for (faults, expected) in [
            (vec![(Task::Tickers, Fault::cut_short())], true),
            (vec![banned()], true),
            (vec![(candles(), Fault::cut_short()), limited()], false),
            (vec![limited(), (candles(), Fault::cut_short())], false),
            (vec![limited(), (Task::Tickers, Fault::cut_short())], false),
            (vec![limited(), banned()], true),
        ] {
            let config = config_of("binance");
            let (mut host, mut cx) = (Host::default(), context(config, NOW));
            list(&mut cx.market.catalog, &["A/USDT"]);
            let mut failures = Failures::new(SOURCE, 0, NOW.mono);
            for (task, fault) in &faults {
                failures.failed(task, fault, (NOW.mono, 1), &mut host, &mut cx);
                failures.halted(host.halt, &mut cx);
            }
            cx.now.mono = cx.now.mono + Duration::from_secs(30);
            assert_eq!(failures.is_of_node(Duration::from_secs(10), &cx), expected, "{faults:?}");
            // Other sources of the host fail.
            for (seconds, is_of_node) in [(900, !expected), (950, expected)] {
                host.halt(Duration::from_secs(seconds), is_of_node, cx.now.mono);
                failures.halted(host.halt, &mut cx);
                assert_eq!(failures.is_of_node(Duration::from_secs(10), &cx), is_of_node);
            }
            // Quotes that were on their way come during the halt.
            failures.quotes_received(&mut cx);
            assert!(!failures.is_of_node(Duration::from_secs(10), &cx));
            cx.now.mono = cx.now.mono + Duration::from_secs(30);
            assert_eq!(failures.is_of_node(Duration::from_secs(10), &cx), expected);
            let until = failures.until(RequestKind::Quotes);
            failures.forget(&mut cx);
            assert!(!failures.is_of_node(Duration::from_secs(10), &cx));
            assert_eq!(failures.until(RequestKind::Quotes), until, "only time ends a pause");
            failures.rerouted(&mut cx);
            assert_eq!(failures.until(RequestKind::Quotes), Mono::default());
        }
    }
}
