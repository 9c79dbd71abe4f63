//! What becomes of an answer, or of its failure.
//!
//! Owns the way from staged items into the market, in slices, and the back-off. A failure changes
//! nothing that is served.

use super::candles::Page;
use super::source::Source;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::Upstream;
use crate::core::sources::fault::{Blame, Fault};
use crate::core::sources::staged::Tickers;
use crate::core::sources::task::{Task, describe};
use crate::core::sources::upstream::{Answered, Staged};
use crate::core::stats::SourceState;
use crate::core::stats::on_wall;
use crate::durations::POLL_BOUNDS_US;
use crate::http::RetryAfter;
use crate::interval::Stored;
use crate::log_targets::SOURCE;
use crate::market::{ListChange, Lookup, Market, SeriesKey, SourceId, SymbolId};
use crate::record::Ticker;
use crate::table::Table;
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// Before the next try of an hourly task that failed.
const HOURLY_RETRY: Duration = Duration::from_secs(60);

/// Named markets whose series are opened in one slice: some 0.1 ms where a thousand are followed.
const FOLLOWED_A_SLICE: usize = 32;

/// Markets that have left a list whose quotes are dropped in one slice: less than 0.1 ms.
const LEFT_A_SLICE: usize = 256;

/// Longest that an exchange's `Retry-After` is believed: a day. A ban can last that long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// Items of a good answer, on their way into the market.
#[derive(Debug)]
pub(super) enum Applying {
    /// One piece a slice: some 0.1 ms.
    Tickers(Tickers),
    Candles(Page),
    /// A list, which is taken over.
    List,
    /// Markets that have left the list: their quotes are dropped. Nobody can ask for them any more.
    Left(std::vec::IntoIter<SymbolId>),
    /// Named markets of a list, whose candles are followed from now on.
    Named(std::vec::IntoIter<SymbolId>),
}

impl Source {
    /// Applies one slice of the items at hand, or unpacks one of an answer, or counts some of what
    /// is known. `true`: the last one of an answer.
    pub fn work(
        &mut self,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        let Some(mut items) = self.applying.pop_front() else {
            if let Some(lane) = self.unpacking() {
                return self.unpack(lane, conns, history, cx);
            }
            self.count_on(history, cx);
            return false;
        };
        let done = match &mut items {
            Applying::Tickers(tickers) => self.take_tickers(tickers, cx),
            Applying::Candles(page) => self.take_candles(page, history, cx),
            Applying::List => self.take_list(history, cx),
            Applying::Left(symbols) => self.drop_left(symbols, cx),
            Applying::Named(symbols) => self.follow_named(symbols, cx),
        };
        match done {
            true => self.start_due(conns, history, cx),
            false => self.applying.push_front(items),
        }
        done
    }

    fn take_tickers(&mut self, tickers: &mut Tickers, cx: &mut Context) -> bool {
        let exchange = self.known_time(cx);
        for (symbol, ticker) in tickers.next_piece().into_iter().flatten() {
            apply_ticker(self.id, symbol, ticker, exchange, cx);
        }
        let done = tickers.is_empty();
        if done {
            cx.market.quotes.end_poll(self.id, cx.now);
            cx.stats[self.id].quotes_polled = true;
            self.in_place(cx);
        }
        done
    }

    /// The answer on a lane has come to its end.
    pub(super) fn succeed(&mut self, lane: usize, history: &mut History, cx: &mut Context) {
        let Some(asking) = self.lanes[lane].asking.take() else {
            return;
        };
        let (task, began) = (asking.task.clone(), asking.began);
        log::debug!(
            target: SOURCE,
            "response source={} what={:?} status={} bytes={} ms={}",
            self.config.id,
            describe(&task, &cx.market),
            asking.status().unwrap_or(0),
            asking.received,
            cx.now.mono.since(asking.sent_at.map_or(began, |sent| sent.mono)).as_millis(),
        );
        let answered = match asking.finish(cx.now) {
            Ok(answered) => answered,
            Err(fault) => return self.failed(task, fault, began, cx),
        };
        let status = &mut cx.stats[self.id];
        status.ok += 1;
        status.rejected += answered.rejected;
        status.last_success_at = Some(cx.now.unix);
        let took = cx.now.mono.since(answered.sent_at.mono);
        status.last_latency_ms = Some(took.as_millis() as u64);
        (status.latencies).note(&POLL_BOUNDS_US, took.as_micros() as u64, 1);
        // Nothing is served without quotes: that others succeed is not enough.
        if task.is_quotes() {
            status.quotes_at = Some(cx.now.unix);
            self.well_at = cx.now.mono;
            self.recovered(cx);
        }
        self.apply(answered, history, cx);
    }

    /// What everything depends on has succeeded.
    fn recovered(&mut self, cx: &mut Context) {
        if self.failures > 0 {
            self.failures = 0;
            log::info!(target: SOURCE, "{}: answers again", self.config.id);
        }
        let is_first =
            !cx.stats[self.id].quotes_polled && cx.stats[self.id].state != SourceState::Up;
        if is_first && self.backoff_until <= cx.now.mono {
            // The list, or an answer whose quotes are still on their way into the market.
            cx.stats[self.id].state = SourceState::Starting;
            cx.stats[self.id].backoff_until = None;
            cx.stats[self.id].failing_since = None;
        }
        let is_fresh = cx.now.mono.since(self.well_at) < self.config.stale_after;
        if cx.stats[self.id].state == SourceState::Down && is_fresh {
            // The exchange has asked for a pause, and what it still answered is fresh.
            cx.stats[self.id].state = SourceState::Backoff;
        }
    }

    /// There are quotes to serve: whoever reads that a source is up finds them.
    fn in_place(&self, cx: &mut Context) {
        // What the exchange has asked for holds, also when an answer was still on its way.
        if self.backoff_until <= cx.now.mono {
            cx.stats[self.id].state = SourceState::Up;
            cx.stats[self.id].backoff_until = None;
            cx.stats[self.id].failing_since = None;
        }
    }

    /// Quotes and candles that are on their way into the market are asked again instead.
    pub(super) fn drop_staged(&mut self, now: Now) {
        let mut dropped = std::mem::take(&mut self.applying);
        dropped.retain(|items| match items {
            Applying::Tickers(_) => {
                self.tickers = now.mono;
                false
            }
            Applying::Candles(page) => {
                self.fetches.put_back(page.key());
                false
            }
            Applying::List | Applying::Left(_) | Applying::Named(_) => true,
        });
        self.applying = dropped;
    }

    fn apply(&mut self, answered: Answered, history: &mut History, cx: &mut Context) {
        cx.market.quotes.count_rejected(match answered.task {
            Task::Tickers | Task::Ticker(_) => answered.rejected,
            _ => 0,
        });
        match answered.staged {
            Staged::Tickers(mut items, _) if matches!(answered.task, Task::Ticker(_)) => {
                if let Some(newest) = items.newest() {
                    self.heed_time(newest, false, cx);
                }
                let exchange = self.known_time(cx);
                let pieces = std::iter::from_fn(|| items.next_piece());
                for (symbol, mut ticker) in pieces.flatten() {
                    if let Some(stats) = self.round.stats(symbol) {
                        ticker.fill_from(stats);
                    }
                    apply_ticker(self.id, symbol, ticker, exchange, cx);
                }
                self.in_place(cx);
                self.market_ended(true, cx);
            }
            Staged::Stats(stats) => {
                if let (Task::Stats(symbol), Some(stats)) = (answered.task, stats) {
                    self.round.keep_stats(symbol, stats);
                }
            }
            Staged::Tickers(items, _) => {
                if let Some(newest) = items.newest() {
                    self.heed_time(newest, true, cx);
                }
                self.applying.push_back(Applying::Tickers(items));
            }
            Staged::Markets(_) => match cx.market.catalog.end_list(self.id) {
                Ok(()) => self.applying.push_back(Applying::List),
                Err(_) => self.failed(Task::Markets, Fault::Empty, cx.now.mono, cx),
            },
            Staged::Time(time) => {
                if let Some(time) = time {
                    self.set_clock(time, answered.sent_at.mono, history, cx);
                }
            }
            Staged::Candles(rows) => {
                if let Task::Candles { series, slots } = answered.task {
                    let newest = rows.iter().map(|row| row.candle.open_time).max();
                    if let Some(newest) = newest {
                        self.heed_time(newest, false, cx);
                    }
                    let is_full = slots.end - slots.start >= self.page_rows(series.interval) as i64;
                    let is_dated = !answered.undated;
                    let page =
                        Page::new(series, slots, rows, (is_dated, is_full), answered.sent_at);
                    self.applying.push_back(Applying::Candles(page));
                }
            }
        }
    }

    /// Does one slice of taking over a list. `true`: it is in place.
    fn take_list(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let change = cx.market.catalog.refresh_list(self.id, cx.now.unix);
        let is_over = change.is_some();
        if let Some(change) = change {
            self.listed(change, history, cx);
        }
        is_over
    }

    /// The market list is in place: tracked markets may have come and gone.
    fn listed(&mut self, change: ListChange, history: &mut History, cx: &mut Context) {
        let followed: Vec<SeriesKey> = self.fetches.series().collect();
        for key in followed {
            // What is named and not listed stays as it is.
            if cx.market.catalog.listing(self.id, key.symbol).is_none() {
                self.fetches.close(key);
            }
            if change.removed.binary_search(&key.symbol).is_ok() {
                cx.market.charts.close(key);
            }
        }
        history.listed(self.id);
        let mut left = change.removed.into_iter();
        if !self.drop_left(&mut left, cx) {
            self.applying.push_back(Applying::Left(left));
        }
        if !self.has_list {
            self.has_list = true;
            self.tickers = cx.now.mono;
            self.recovered(cx);
            let tracked = cx.market.catalog.tracked_by(self.id);
            log::info!(target: SOURCE, "{}: tracks {tracked} markets", self.config.id);
        }
        // A named market may have been listed only now, or have come back.
        let mut named = self.named(&cx.market).into_iter();
        if !self.follow_named(&mut named, cx) {
            self.applying.push_back(Applying::Named(named));
        }
    }

    /// Drops the quotes of some of the markets that have left the list. `true`: the last ones.
    fn drop_left(&self, symbols: &mut std::vec::IntoIter<SymbolId>, cx: &mut Context) -> bool {
        for symbol in symbols.take(LEFT_A_SLICE) {
            cx.market.quotes.drop_symbol(self.id, symbol);
        }
        symbols.len() == 0
    }

    /// Follows some of the named markets. `true`: the last ones.
    fn follow_named(
        &mut self,
        symbols: &mut std::vec::IntoIter<SymbolId>,
        cx: &mut Context,
    ) -> bool {
        for symbol in symbols.take(FOLLOWED_A_SLICE) {
            for interval in Stored::ALL {
                let series = SeriesKey {
                    source: self.id,
                    symbol,
                    interval,
                };
                self.follow(series, cx);
            }
        }
        symbols.len() == 0
    }

    /// The symbols that the configuration names for this source.
    fn named(&self, market: &Market) -> Vec<SymbolId> {
        let find = |name: &String| match market.catalog.find(name.as_bytes()) {
            Lookup::Known(symbol) => Some(symbol),
            Lookup::Unknown | Lookup::Malformed => None,
        };
        self.config.symbols.iter().filter_map(find).collect()
    }

    pub(super) fn fail(&mut self, lane: usize, fault: Fault, cx: &mut Context) {
        if let Some(asking) = self.lanes[lane].asking.take() {
            self.failed(asking.task, fault, asking.began, cx);
        }
    }

    /// A request has come to nothing through nobody's fault: its task is due again, at once.
    pub(super) fn put_back(&mut self, lane: usize, now: Now) {
        let Some(asking) = self.lanes[lane].asking.take() else {
            return;
        };
        match asking.task {
            Task::Tickers => self.tickers = now.mono,
            Task::Ticker(symbol) => self.round.put_back(symbol),
            Task::Stats(symbol) => self.round.put_back_stats(symbol, now.mono),
            Task::Markets => self.markets = now.mono,
            Task::Time => self.clock.due = now.mono,
            Task::Candles { series, .. } => self.fetches.put_back(series),
        }
    }

    /// A task that began then has failed: it changes nothing that is served.
    pub(super) fn failed(&mut self, task: Task, fault: Fault, began: Mono, cx: &mut Context) {
        let status = &mut cx.stats[self.id];
        let of_one_market = matches!(
            task,
            Task::Candles { .. } | Task::Ticker(_) | Task::Stats(_)
        );
        // An exchange may fail at one market and serve the others.
        let blame = match fault.blame() {
            Blame::Source if of_one_market && fault.is_answer() => Blame::Call,
            blame => blame,
        };
        status.errors += 1;
        status.timeouts += u64::from(matches!(fault, Fault::Timeout(_)));
        status.rate_limited += u64::from(blame == Blame::RateLimit);
        status.last_error_at = Some(cx.now.unix);
        let what = describe(&task, &cx.market);
        let text = format!("{what}: {fault}");
        if self.failures == 0 || status.last_error.as_deref() != Some(&text) {
            log::warn!(target: SOURCE, "{}: {text}", self.config.id);
        }
        log::debug!(
            target: SOURCE,
            "failed source={} what={what:?} blame={blame:?} ms={} error={:?}",
            self.config.id,
            cx.now.mono.since(began).as_millis(),
            fault.to_string(),
        );
        status.last_error = Some(text);
        // Nothing is served without quotes, and no quotes without the list: their faults are
        // the source's, whatever they say about.
        let vital = task == Task::Tickers || task == Task::Markets && !self.has_list;
        match &task {
            Task::Candles { series, .. } => self.fetches.failed(*series, cx.now),
            Task::Markets => {
                // Without a first list nothing is served: after the wait of the whole source.
                self.markets = match self.has_list {
                    true => cx.now.mono + HOURLY_RETRY,
                    false => cx.now.mono,
                };
                cx.market.catalog.abandon_list(self.id);
            }
            Task::Time => {
                self.clock_failed(HOURLY_RETRY, cx.now);
            }
            Task::Ticker(_) => self.market_ended(false, cx),
            Task::Tickers | Task::Stats(_) => {}
        }
        if vital || blame != Blame::Call {
            self.back_off(&fault, began, cx);
        }
    }

    /// One market of a round has answered well, or not: the last one ends the round.
    fn market_ended(&mut self, well: bool, cx: &mut Context) {
        match self.round.ended(well) {
            None => {}
            Some(true) => {
                cx.market.quotes.end_poll(self.id, cx.now);
                cx.stats[self.id].quotes_polled = true;
            }
            // The exchange answers, and has none of them: there is nothing to wait for, and nobody
            // may take the source for well.
            Some(false) => {
                cx.stats[self.id].quotes_polled = true;
                cx.stats[self.id].state = SourceState::Backoff;
                cx.stats[self.id].failing_since.get_or_insert(cx.now.unix);
            }
        }
    }

    /// Waits before the next try: `pollMs`, doubled with each failure in a row, at most
    /// `limits.backoffMax`, less up to a tenth so that many daemons do not come back at once; or
    /// for as long as the exchange asks.
    fn back_off(&mut self, fault: &Fault, began: Mono, cx: &mut Context) {
        // What was asked before this back-off began fails of the same trouble: it counts once.
        if self.failures == 0 || began >= self.backoff_since {
            self.failures = self.failures.saturating_add(1);
            self.backoff_since = cx.now.mono;
        }
        let doubled = self.config.poll * 2u32.saturating_pow((self.failures - 1).min(16));
        let step = doubled.min(cx.config.limits.backoff_max);
        let step = step - Duration::from_micros(self.rng.below(step.as_micros() as u64 / 10));
        let asked = fault.retry_after().map(|after| match after {
            RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
            RetryAfter::Date(date) => {
                let exchange = cx.stats[self.id].exchange_time(cx.now);
                Duration::from_millis((date - exchange).max(0) as u64)
            }
        });
        let wait = asked.unwrap_or(step).max(step).min(RETRY_AFTER_MAX);
        // What failed at the same time does not shorten what the exchange has asked for.
        self.backoff_until = self.backoff_until.max(cx.now.mono + wait);
        // What has been begun and not sent yet waits as well.
        for lane in 0..self.lanes.len() {
            let asking = self.lanes[lane].asking.as_deref();
            if asking.is_some_and(|asking| !asking.has_left()) {
                self.hang_up(lane, cx);
                self.put_back(lane, cx.now);
            }
        }
        self.fetches.give_up_asked();
        self.round.abandon();
        let status = &mut cx.stats[self.id];
        status.state = match cx.now.mono.since(self.well_at) >= self.config.stale_after {
            true => SourceState::Down,
            false => SourceState::Backoff,
        };
        status.failing_since.get_or_insert(cx.now.unix);
        log::debug!(
            target: SOURCE,
            "back-off source={} failures={} state={} wait_ms={} asked_for_ms={}",
            self.config.id,
            self.failures,
            status.state.name(),
            self.backoff_until.since(cx.now.mono).as_millis(),
            asked.map_or(0, |asked| asked.as_millis()),
        );
        status.backoff_until = Some(on_wall(self.backoff_until, cx.now));
    }
}

/// Puts one ticker into the market: the quote, and the forming candles of its symbol where the
/// exchange's time is known.
fn apply_ticker(
    source: SourceId,
    symbol: SymbolId,
    ticker: Ticker,
    exchange: Option<UnixMs>,
    cx: &mut Context,
) {
    let Market {
        quotes,
        charts,
        catalog,
    } = &mut cx.market;
    if catalog.listing(source, symbol).is_none() {
        // It has left the list since this ticker came.
        return;
    }
    let last = ticker.last.clone();
    match (quotes.apply(source, symbol, ticker, cx.now), exchange) {
        (Ok(applied), Some(exchange)) if applied.changed => {
            charts.tick(source, symbol, &last, exchange);
        }
        (Ok(_), _) => {}
        (Err(_), _) => cx.stats[source].rejected += 1,
    }
}
