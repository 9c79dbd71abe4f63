//! The candle requests of one source, and their order.
//!
//! [`CandlePlans`] owns a [`SeriesPlan`] for each followed series. In the order of its requests, a plan has
//! ranges that clients wait for, the next refresh of the newest candles, and the missing part of the
//! configured backfill. It sends nothing: it names the next page, and is told how the request ended.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::jobs::CandlePage;
use crate::core::sources::series_plan::{SeriesPlan, Urgency, refreshed_from, widened};
use crate::core::sources::task::Profile;
use crate::exchange::Dialect;
use crate::interval::Stored;
use crate::log_targets::FETCH;
use crate::market::{
    CandleService, IntervalSet, Market, REREAD, Series, SeriesKey, SourceId, SymbolId, TOGETHER,
    refresh_ms,
};
use crate::time::{Mono, Now};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// A run of this many known slots shows that a series was polled: a single request of a client is mostly
/// shorter. If the configured backfill is larger, it takes the place of this number.
const FOLLOWED: i64 = 1000;

/// Between two readings of the newest candles of an exchange whose clock is faster than ours.
const FASTEST_REFRESH: Duration = Duration::from_millis(50);

/// A page of candles to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPage {
    /// Not before this.
    pub when: Mono,
    /// How urgent it is.
    pub urgency: Urgency,
    /// The series.
    pub series: SeriesKey,
    /// The slots.
    pub slots: Range<i64>,
}

/// See the module's page.
pub struct CandlePlans {
    source: SourceId,
    /// It says which candles the exchange has.
    dialect: &'static Dialect,
    plans: BTreeMap<SeriesKey, SeriesPlan>,
    /// The market that traded last, as quotes tell, and when.
    lively: Option<(SymbolId, Mono)>,
    /// By interval: the lively market whose newest candles were requested last, and when.
    lively_asked: BTreeMap<Stored, (SeriesKey, Mono)>,
}

impl CandlePlans {
    /// No series is followed.
    pub fn new(profile: &Profile) -> CandlePlans {
        CandlePlans {
            source: profile.id,
            dialect: profile.dialect,
            plans: BTreeMap::new(),
            lively: None,
            lively_asked: BTreeMap::new(),
        }
    }

    /// Follows a series from now on. `false`: there are too many, or the exchange does not have it. A series
    /// of a market that is not listed is followed only if it has stored candles; it gets a plan only before
    /// the first list, which may name the market.
    pub fn follow(&mut self, key: SeriesKey, cx: &mut Context) -> bool {
        let exchange = cx.exchange_time(self.source);
        let Market { catalog, charts, .. } = &mut cx.market;
        let is_listed = catalog.listing(self.source, key.symbol).is_some();
        let is_archived = || charts.archived(key).is_some_and(|slots| !slots.is_empty());
        if !(is_listed || is_archived()) || !self.dialect.has_interval(key.interval) {
            return false;
        }
        let is_new = charts.get(key).is_none();
        if !charts.open(key) {
            let may_close = |key: &SeriesKey| !catalog.is_named(key.source, key.symbol);
            let Some(closed) = charts.make_place(exchange, may_close) else {
                return false;
            };
            // If the closed series is another source's, that source drops its plan with the next page of it.
            self.plans.remove(&closed);
            if !charts.open(key) {
                // A reload has lowered `limits.candleSeries`: there are still too many.
                return false;
            }
        }
        if let Some(series) = charts.get_mut(key).filter(|_| is_new) {
            series.unsettle_ends(cx.stats.history.stored.get(&key).and_then(|it| it.last));
            series.touch(exchange);
        }
        if is_listed || !catalog.has_list(self.source) {
            self.plans.entry(key).or_insert_with(|| SeriesPlan::new(cx.now.mono));
        }
        true
    }

    /// Stops following the series that `is_kept` rejects.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&SeriesKey) -> bool) {
        self.plans.retain(|key, _| is_kept(key));
    }

    /// The series that are followed.
    pub fn series(&self) -> impl Iterator<Item = SeriesKey> + '_ {
        self.plans.keys().copied()
    }

    /// The newest candles of every series are due now. A wrong clock may have told of the future: slots there
    /// that clients asked for are dropped, and a reach there counts anew once the time is known.
    pub fn refresh_all(&mut self, cx: &Context) {
        for (key, plan) in &mut self.plans {
            plan.refresh_at = plan.refresh_at.min(cx.now.mono);
            let now = key.interval.slot_of(cx.exchange_time(self.source));
            plan.asked.remove(now + 1..i64::MAX);
            plan.is_reach_fixed &= plan.reach <= Some(now) || !cx.stats[self.source].knows_time();
        }
    }

    /// True if nothing has been requested of a series yet.
    pub fn is_new(&self, key: SeriesKey) -> bool {
        self.plans.get(&key).is_some_and(|plan| plan.reach.is_none())
    }

    /// True if some missing slots are still to be requested without a client. A slot that was requested
    /// without a result does not count until it is due again.
    pub fn has_backfill(&self, now: Now) -> bool {
        self.plans.values().any(|plan| plan.unasked.as_ref().is_some_and(|it| it.0 <= now.mono))
    }

    /// Requests, for a client, the slots of the range that only the exchange can tell of. `false`: none
    /// will come, so the client need not wait.
    pub fn ask(&mut self, key: SeriesKey, slots: &Range<i64>, cx: &Context) -> bool {
        let Some(series) = cx.market.charts.get(key) else {
            return false;
        };
        let sure = cx.stats[self.source].sure_time(cx.now);
        let current = key.interval.slot_of(sure);
        let oldest = self.oldest_served(key.interval, current);
        let start = slots.start.max(oldest);
        let unknown = start..slots.end.min(current + 1).max(start);
        let is_wide = self.dialect.page(key.interval).wide;
        let again = series.told_once_before_first(&unknown).filter(|_| is_wide);
        let mut unknown = series.askable(unknown, cx.now.mono);
        unknown.extend(again.filter(|again| unknown.last().is_none_or(|it| it.end <= again.start)));
        let (Some(first), Some(last)) = (unknown.first(), unknown.last()) else {
            return false;
        };
        let slots = first.start..last.end;
        let (id, symbol) = (&cx.stats[self.source].id, cx.market.catalog.name(key.symbol).as_str());
        let [from, to] = [slots.start, slots.end].map(|slot| key.interval.open_of(slot));
        let interval = key.interval.name();
        log::debug!(
            target: FETCH,
            "wanted by a client source={id} symbol={symbol} interval={interval} from={from} to={to}"
        );
        let waiting: usize = self.plans.values().map(|plan| plan.asked.len()).sum();
        let has_room = waiting < cx.config.limits.chart_fetches;
        let plan = self.plans.get_mut(&key);
        plan.is_some_and(|plan| plan.ask(slots, has_room, cx.now))
    }

    /// True if a client waits for some of these slots.
    pub fn is_asking(&self, key: SeriesKey, slots: &Range<i64>) -> bool {
        let plan = self.plans.get(&key);
        plan.is_some_and(|plan| plan.asked.within(slots.clone()).next().is_some())
    }

    /// Of the series without a page in flight: the most urgent page that is due, or else the first to be
    /// due.
    pub fn next(
        &self,
        is_in_flight: impl Fn(SeriesKey) -> bool,
        cx: &Context,
    ) -> Option<PlannedPage> {
        // Of hundreds of series, one is chosen by its time, and only that one is looked at closer.
        let waits =
            |interval| self.lively_asked.get(&interval).is_some_and(|it| is_in_flight(it.0));
        let is_idle = |key: &SeriesKey| !is_in_flight(*key) && !waits(key.interval);
        let idle = self.plans.iter().filter(|(key, _)| is_idle(key));
        let next = idle.map(|(key, plan)| (plan.next(cx.now), *key, plan));
        let rank = |(when, urgency): (Mono, Urgency)| (when.max(cx.now.mono), urgency, when);
        let ((when, urgency), key, plan) = next.min_by_key(|(next, ..)| rank(*next))?;
        let exchange = cx.exchange_time(self.source);
        let (current, rows) = (key.interval.slot_of(exchange), self.rows(key.interval));
        let series = cx.market.charts.get(key);
        let slots = match (urgency, plan.asked.iter().next_back()) {
            (Urgency::Client, Some(asked)) => {
                let unknown = series.and_then(|series| {
                    let unknown = series.askable(asked.clone(), cx.now.mono).pop()?;
                    // A client that scrolls to the left asks for the same length again. If a page has room,
                    // it includes that part.
                    let again = 2 * unknown.start - unknown.end;
                    let page = widened(series, unknown, current, rows);
                    let oldest = self.oldest_kept(key.interval, current, cx);
                    let oldest = oldest.max(page.end - rows.min(FOLLOWED / 2));
                    Some(page.start.min(again.max(oldest))..page.end)
                });
                let part = unknown.unwrap_or(asked);
                // A client that asks for the newest closed candles wants the forming one too. It comes with
                // the same page if the page has room.
                match part.end + REREAD >= current && part.start + rows > current {
                    true => part.start..current + 1,
                    false => part,
                }
            }
            (Urgency::Hole | Urgency::Backfill, _) => plan.unasked.clone()?.2,
            _ => self.newest(key, cx),
        };
        // A request for the newest candles alone does not include the past.
        let series = series.filter(|_| urgency != Urgency::Newest);
        let all_before = series.and_then(|series| self.all_before_first(series, &slots, cx));
        let (slots, most) = all_before.map_or((slots, rows), |all| (all, i64::MAX));
        let page = PlannedPage { when, urgency, series: key, slots };
        let lively = self.lively_first(&page, cx).filter(|it| !is_in_flight(it.series));
        let mut page = lively.unwrap_or(page);
        // Slots in the future by one witness of the clock are left out, because an answer about them cannot
        // be judged.
        let sure = key.interval.slot_of(cx.stats[self.source].sure_time(cx.now));
        let end = page.slots.end.min(sure + 1);
        // The newest part that a page holds.
        page.slots = page.slots.start.max(end.saturating_sub(most))..end;
        (!page.slots.is_empty()).then_some(page)
    }

    /// Replaces slots before the first known candle by all kept slots before it, and that candle. One page
    /// tells of all of them if the exchange counts rows. This is done when an answer has said that the slot
    /// before that candle is empty: then all older slots may be empty, too.
    fn all_before_first(
        &self,
        series: &Series,
        slots: &Range<i64>,
        cx: &Context,
    ) -> Option<Range<i64>> {
        let interval = series.interval();
        let current = interval.slot_of(cx.exchange_time(self.source));
        let first = series.told_first().filter(|_| self.dialect.page(interval).wide)?;
        let all = self.oldest_kept(interval, current, cx)..first + 1;
        (slots.start < first && slots.end <= all.end).then_some(all)
    }

    /// Quotes tell that somebody traded in this market just now.
    pub fn note_trade(&mut self, symbol: SymbolId, now: Mono) {
        self.lively = Some((symbol, now));
    }

    /// Returns the page with the newest candles of a market that trades, if `page` needs it. A silent slot is
    /// proven empty only if another market's recent candle shows that the exchange's candles go on.
    fn lively_first(&self, page: &PlannedPage, cx: &Context) -> Option<PlannedPage> {
        let (source, interval, now) = (self.source, page.series.interval, cx.now.mono);
        let exchange = cx.stats[source].sure_time(cx.now);
        let charts = &cx.market.charts;
        let closed = page.slots.start..page.slots.end.min(interval.slot_of(exchange));
        let is_silent = charts.get(page.series)?.ends_silent(closed);
        let recent = interval.slot_of(exchange - 2 * refresh_ms(Stored::M1));
        let alive = charts.alive((source, interval, CandleService::Newest), now);
        if !is_silent || alive.is_some_and(|slot| slot >= recent) {
            return None;
        }
        let is_recent = |at: Mono| now.since(at) < TOGETHER;
        let (symbol, _) = self.lively.filter(|(_, at)| is_recent(*at))?;
        let series = SeriesKey { source, symbol, interval };
        let is_asked = self.lively_asked.get(&interval).is_some_and(|(_, at)| is_recent(*at));
        let is_listed = cx.market.catalog.listing(source, symbol).is_some();
        (is_listed && !is_asked && !self.is_new(series)).then(|| PlannedPage {
            series,
            slots: self.newest(series, cx),
            ..page.clone()
        })
    }

    /// The newest candles of a series that are read again. If the series is not open, the newest two.
    fn newest(&self, key: SeriesKey, cx: &Context) -> Range<i64> {
        let current = key.interval.slot_of(cx.stats[self.source].sure_time(cx.now));
        let charts = &cx.market.charts;
        let has_backfill = cx.config.history.depth(key.interval).backfill > 0;
        let from = match charts.get(key) {
            None => current - 1,
            Some(series) if has_backfill || series.newest_known().is_some() => {
                refreshed_from(series, current, self.rows(key.interval))
            }
            // All slots that have ended since the first request are read, however long the requests have
            // failed.
            Some(_) => self.plans.get(&key).and_then(|plan| plan.reach).unwrap_or(current),
        };
        // Older slots than the kept ones would be dropped at once.
        let oldest_kept = current.saturating_sub(charts.keep(key.interval));
        from.max(oldest_kept).min(current)..current + 1
    }

    /// Notes that a page is being requested. The first one fixes the slot after which no slot may stay
    /// missing ([`Series::reach`](crate::market::Series::reach)); what clients request later does not move
    /// it. If nothing was known and the clock was in doubt, the first page after the doubt fixes it.
    pub fn note_reach(&mut self, key: SeriesKey, slots: &Range<i64>, cx: &Context) {
        let status = &cx.stats[self.source];
        let sure = key.interval.slot_of(status.sure_time(cx.now));
        let is_lively = self.lively.is_some_and(|(symbol, _)| symbol == key.symbol);
        if is_lively && slots.end > sure {
            self.lively_asked.insert(key.interval, (key, cx.now.mono));
        }
        let depth = cx.config.history.depth(key.interval);
        let knows_time = status.knows_time();
        let is_due = |it: &SeriesPlan| !it.is_reach_fixed && (knows_time || it.reach.is_none());
        if let Some(plan) = self.plans.get_mut(&key).filter(|plan| is_due(plan)) {
            let oldest_kept = sure.saturating_sub(depth.keep);
            let series = cx.market.charts.get(key).filter(|_| plan.reach.is_none());
            let known = series.and_then(|it| it.reach(oldest_kept, depth.backfill.max(FOLLOWED)));
            plan.reach = known.or(Some(key.interval.slot_of(plan.begin(status, cx.now))));
            plan.is_reach_fixed = known.is_some() || knows_time;
        }
    }

    /// A page has been applied to its series: decides what is requested next of it.
    pub fn applied(&mut self, page: &CandlePage, history: &History, cx: &Context) {
        let key = page.key;
        let Some(series) = cx.market.charts.get(key) else {
            self.plans.remove(&key);
            return;
        };
        let exchange = cx.stats[self.source].sure_time(cx.now);
        let current = key.interval.slot_of(exchange);
        let depth = self.depth(key, history, cx);
        // Slots evicted from memory are not requested again, unless the file keeps them: they would only
        // evict others.
        let forgotten = series.forgotten_before().filter(|_| !history.keeps(key, cx)).unwrap_or(0);
        let oldest = current.saturating_sub(depth).max(forgotten).max(0);
        let (id, symbol) = (&cx.stats[self.source].id, cx.market.catalog.name(key.symbol).as_str());
        log::debug!(
            target: FETCH,
            "applied source={id} symbol={symbol} interval={} ranges={} depth={depth} oldest={oldest}",
            key.interval.name(),
            series.covered().len(),
        );
        let depth = [self.oldest_served(key.interval, current), oldest, self.rows(key.interval)];
        if let Some(plan) = self.plans.get_mut(&key) {
            let before = plan.refresh_at;
            plan.applied(series, page, depth, Now { unix: exchange, ..cx.now });
            let speed = cx.stats[self.source].clock_speed();
            if speed > 1 && plan.refresh_at != before {
                let wait = plan.refresh_at.since(cx.now.mono) / speed;
                plan.refresh_at = cx.now.mono + wait.max(FASTEST_REFRESH);
            }
        }
    }

    /// The rows of a page.
    fn rows(&self, interval: Stored) -> i64 {
        self.dialect.page(interval).rows as i64
    }

    /// A request has failed. `is_own`: the failure is of this series alone. The series rests, and clients
    /// need not wait for it.
    pub fn failed(&mut self, key: SeriesKey, is_own: bool, now: Now) {
        if let Some(plan) = self.plans.get_mut(&key) {
            plan.failed(is_own, now);
        }
    }

    /// A request has been answered well: the series need not rest.
    pub fn answered(&mut self, key: SeriesKey, now: Now) {
        if let Some(plan) = self.plans.get_mut(&key) {
            plan.answered(now);
        }
    }

    /// No candles can be fetched for a while: no client need wait for them.
    pub fn give_up_asked(&mut self) {
        for plan in self.plans.values_mut() {
            plan.asked = IntervalSet::default();
        }
    }

    /// The number of closed slots before the current one that are requested without a client: the configured
    /// backfill or, if that is more, all that were missed since the first request or, as far as the file
    /// shows, since the last run. It is at most what the exchange still serves and what is kept. An outage
    /// leaves no hole, even if it was longer than the backfill, and even if filling the hole was interrupted.
    pub fn depth(&self, key: SeriesKey, history: &History, cx: &Context) -> i64 {
        let current = key.interval.slot_of(cx.exchange_time(self.source));
        let depth = cx.config.history.depth(key.interval);
        let reach = self.plans.get(&key).and_then(|plan| plan.reach);
        let reach = reach.filter(|_| history.keeps(key, cx));
        let missed = reach.map_or(0, |slot| current - slot).min(depth.keep);
        let served = current - self.oldest_served(key.interval, current);
        depth.backfill.max(missed).min(served).min(depth.keep)
    }

    /// The oldest slot that the exchange still serves and that is kept.
    fn oldest_kept(&self, interval: Stored, current: i64, cx: &Context) -> i64 {
        self.oldest_served(interval, current).max(current - cx.market.charts.keep(interval))
    }

    /// The oldest slot that the exchange still serves, if `current` is the newest.
    fn oldest_served(&self, interval: Stored, current: i64) -> i64 {
        self.dialect.page(interval).depth.map_or(0, |depth| current - (depth as i64 - 1)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::{NOW, SOURCE, config_of, context, list};
    use crate::market::testing::key;

    #[test]
    fn a_reach_of_the_file_ahead_of_a_clock_in_doubt_stays() {
        let (config, key) = (config_of("binance"), key(Stored::M1));
        let mut cx = context(config.clone(), NOW);
        list(&mut cx.market.catalog, &["A/USDT"]);
        let mut plans = CandlePlans::new(&Profile::new(SOURCE, &config));
        assert!(plans.follow(key, &mut cx));
        let ahead = key.interval.slot_of(NOW.unix) + 60;
        cx.market.charts.archive(key, ahead - 200..ahead + 1);
        plans.note_reach(key, &(ahead..ahead + 1), &cx);
        for (clock, expected) in [(None, true), (Some(NOW.unix.0 - NOW.mono.as_ms()), false)] {
            cx.stats[SOURCE].clock = clock;
            plans.refresh_all(&cx);
            let plan = &plans.plans[&key];
            assert_eq!((plan.reach, plan.is_reach_fixed), (Some(ahead), expected), "{clock:?}");
        }
    }
}
