//! What becomes of an answer, or of its failure.
//!
//! Owns the way from staged items into the market, in slices, and the back-off. A failure changes
//! nothing that is served.

use super::{Desk, Poller, on_wall};
use crate::http::RetryAfter;
use crate::interval::Stored;
use crate::market::{Lookup, Market, Reported, SeriesKey, SourceId, SymbolId};
use crate::record::{MarketInfo, Ticker};
use crate::server::Conn;
use crate::server::fault::{Blame, Fault};
use crate::server::lane::{Answered, Staged, Task};
use crate::server::status::SourceState;
use crate::table::Table;
use crate::time::{Now, UnixMs};
use std::time::Duration;

/// Before the next try of an hourly task that failed.
const HOURLY_RETRY: Duration = Duration::from_secs(60);

/// Tickers applied in one slice: some 0.1 ms.
const TICKERS_A_SLICE: usize = 256;

/// Markets taken into the catalog in one slice: some 0.1 ms.
const MARKETS_A_SLICE: usize = 128;

/// A difference between the exchange's clock and ours that is worth a line in the log.
const CLOCK_OFFSET_MS: i64 = 2000;

/// Longest that an exchange's `Retry-After` is believed: a day. A ban can last that long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// Items of a good answer, on their way into the market.
pub(super) enum Applying {
    Tickers(std::vec::IntoIter<(SymbolId, Ticker)>),
    Markets(std::vec::IntoIter<MarketInfo>),
}

impl Poller {
    /// Applies one slice of the items at hand. `true`: the last one.
    pub fn work(&mut self, conns: &mut Table<Conn>, desk: &mut Desk<'_>, now: Now) -> bool {
        let done = match self.applying.front_mut() {
            Some(Applying::Tickers(items)) => {
                let exchange = desk.status.exchange_time(now);
                for (symbol, ticker) in items.take(TICKERS_A_SLICE) {
                    apply_ticker(self.id, symbol, ticker, exchange, desk, now);
                }
                items.len() == 0
            }
            Some(Applying::Markets(items)) => {
                for info in items.take(MARKETS_A_SLICE) {
                    desk.market.catalog.list(self.id, info);
                }
                items.len() == 0
            }
            None => return false,
        };
        if done {
            match self.applying.pop_front() {
                Some(Applying::Tickers(_)) => {
                    desk.market.quotes.end_poll(self.id, now);
                    desk.status.quotes_polled = true;
                }
                Some(Applying::Markets(_)) => self.listed(desk, now),
                None => {}
            }
            self.start_due(conns, desk, now);
        }
        done
    }

    /// The answer on a lane has come to its end.
    pub(super) fn succeed(&mut self, lane: usize, desk: &mut Desk<'_>, now: Now) {
        let Some(asking) = self.lanes[lane].asking.take() else {
            return;
        };
        let task = asking.task.clone();
        let answered = match asking.finish(now) {
            Ok(answered) => answered,
            Err(fault) => return self.failed(task, fault, desk, now),
        };
        let status = &mut desk.status;
        status.ok += 1;
        status.rejected += answered.rejected;
        status.last_success_at = Some(now.unix);
        status.last_latency_ms = Some(now.mono.since(answered.sent_at.mono).as_millis() as u64);
        if self.failures > 0 && (task.is_quotes() || !status.quotes_polled) {
            self.failures = 0;
            log::info!("{}: answers again", self.config.id);
        }
        if self.failures == 0 {
            status.state = SourceState::Up;
            status.backoff_until = None;
        }
        self.apply(answered, desk, now);
    }

    fn apply(&mut self, answered: Answered, desk: &mut Desk<'_>, now: Now) {
        desk.market.quotes.count_rejected(match answered.task {
            Task::Tickers => answered.rejected,
            _ => 0,
        });
        match answered.staged {
            Staged::Tickers(items, _) if matches!(answered.task, Task::Ticker(_)) => {
                let exchange = desk.status.exchange_time(now);
                for (symbol, mut ticker) in items {
                    if let Some(stats) = self.round.stats(symbol) {
                        ticker.fill_from(stats);
                    }
                    apply_ticker(self.id, symbol, ticker, exchange, desk, now);
                }
                self.market_ended(desk, now);
            }
            Staged::Stats(stats) => {
                if let (Task::Stats(symbol), Some(stats)) = (answered.task, stats) {
                    self.round.keep_stats(symbol, stats);
                }
            }
            Staged::Tickers(items, _) => {
                let items = Applying::Tickers(items.into_iter());
                self.applying.push_back(items);
            }
            Staged::Markets(items) => {
                desk.market.catalog.begin_list(self.id);
                let items = Applying::Markets(items.into_iter());
                self.applying.push_back(items);
            }
            Staged::Time(time) => {
                if let Some(time) = time {
                    self.set_clock(time, desk, now);
                }
            }
            Staged::Candles(mut rows) => {
                let Task::Candles { series: key, slots } = answered.task else {
                    return;
                };
                // Some exchanges answer with more than was asked for.
                let slot = |row: &Reported| key.interval.slot_of(row.candle.open_time);
                rows.retain(|row| slots.contains(&slot(row)));
                // Closed by the exchange's clock when the request left: later it may have closed
                // one more, but then what it sent may be older than that.
                let closed_before = desk.status.exchange_time(answered.sent_at);
                let exchange = desk.status.exchange_time(now);
                let current = key.interval.slot_of(exchange);
                let told = current - self.oldest_slot(key.interval, current);
                let depth = desk.config.history.of(key.interval).backfill.min(told);
                let charts = &mut desk.market.charts;
                if let Some(written) = charts.answered(key, slots, &rows, closed_before) {
                    desk.status.rejected += written.rejected as u64;
                }
                // What is over the cap beyond this goes with the next answer.
                charts.trim();
                match charts.get(key) {
                    Some(series) => self.fetches.answered(key, series, depth, exchange, now),
                    None => self.fetches.close(key),
                }
            }
        }
    }

    /// The exchange's time has come. It was taken before the answer left, so it is a lower bound,
    /// by at most one round trip.
    fn set_clock(&mut self, time: UnixMs, desk: &mut Desk<'_>, now: Now) {
        let before = desk.status.exchange_time(now);
        desk.status.clock = Some(time.0 - (now.mono.0 / 1000) as i64);
        if before - time > CLOCK_OFFSET_MS {
            // Since it was last set, slots may have been taken for closed that were not.
            let elapsed = now.mono.since(self.clock_set).as_millis() as i64;
            desk.market.charts.doubt(self.id, time - elapsed);
            self.fetches.hurry(now);
        }
        self.clock_set = now.mono;
        let offset = now.unix - time;
        if offset.abs() > CLOCK_OFFSET_MS {
            log::warn!(
                "{}: this machine's clock is {} ms {} the exchange's; candles follow the exchange's",
                self.config.id,
                offset.abs(),
                if offset > 0 { "ahead of" } else { "behind" },
            );
        }
    }

    /// The market list is in place: tracked markets may have come and gone.
    fn listed(&mut self, desk: &mut Desk<'_>, now: Now) {
        let change = match desk.market.catalog.end_list(self.id, now.unix) {
            Ok(change) => change,
            Err(_) => return self.failed(Task::Markets, Fault::Empty, desk, now),
        };
        for symbol in &change.removed {
            desk.market.quotes.drop_symbol(self.id, *symbol);
        }
        let followed: Vec<SeriesKey> = self.fetches.series().collect();
        for key in followed {
            if change.removed.contains(&key.symbol) {
                self.fetches.close(key);
                desk.market.charts.close(key);
            }
        }
        if !self.has_list {
            self.has_list = true;
            self.tickers = now.mono;
            let tracked = desk.market.catalog.tracked_by(self.id);
            log::info!("{}: tracks {tracked} markets", self.config.id);
            for symbol in self.named(desk.market) {
                for interval in Stored::ALL {
                    let source = self.id;
                    self.follow(
                        SeriesKey {
                            source,
                            symbol,
                            interval,
                        },
                        desk,
                        now,
                    );
                }
            }
        }
    }

    /// The symbols that the configuration names for this source.
    fn named(&self, market: &Market) -> Vec<SymbolId> {
        let find = |name: &String| match market.catalog.find(name.as_bytes()) {
            Lookup::Known(symbol) => Some(symbol),
            Lookup::Unknown | Lookup::Malformed => None,
        };
        self.config.symbols.iter().filter_map(find).collect()
    }

    /// Follows a series from now on. `false`: there are too many, or the exchange does not have it.
    pub(super) fn follow(&mut self, series: SeriesKey, desk: &mut Desk<'_>, now: Now) -> bool {
        let known = desk
            .market
            .catalog
            .listing(self.id, series.symbol)
            .is_some();
        if !known || !desk.market.charts.open(series) {
            return false;
        }
        self.fetches.open(series, now);
        true
    }

    pub(super) fn fail(&mut self, lane: usize, fault: Fault, desk: &mut Desk<'_>, now: Now) {
        if let Some(asking) = self.lanes[lane].asking.take() {
            self.failed(asking.task, fault, desk, now);
        }
    }

    /// A task has failed: it changes nothing that is served.
    pub(super) fn failed(&mut self, task: Task, fault: Fault, desk: &mut Desk<'_>, now: Now) {
        let status = &mut desk.status;
        let blame = fault.blame();
        status.errors += 1;
        status.timeouts += u64::from(matches!(fault, Fault::Timeout));
        status.rate_limited += u64::from(blame == Blame::RateLimit);
        status.last_error_at = Some(now.unix);
        let what = describe(&task, desk.market);
        let text = format!("{what}: {fault}");
        if self.failures == 0 || status.last_error.as_deref() != Some(&text) {
            log::warn!("{}: {text}", self.config.id);
        }
        status.last_error = Some(text);
        // Nothing is served without quotes, and no quotes without the list: their faults are
        // the source's, whatever they say about.
        let vital = task == Task::Tickers || task == Task::Markets && !self.has_list;
        match &task {
            Task::Candles { series, .. } => {
                self.fetches.failed(*series, blame == Blame::Call, now);
            }
            Task::Markets => self.markets = now.mono + HOURLY_RETRY,
            Task::Time => self.clock = now.mono + HOURLY_RETRY,
            Task::Ticker(_) => self.market_ended(desk, now),
            Task::Tickers | Task::Stats(_) => {}
        }
        if vital || blame != Blame::Call {
            self.back_off(&fault, desk, now);
        }
        if !self.has_list {
            self.markets = now.mono;
        }
    }

    /// One market of a round has answered, or failed: the last one ends the round.
    fn market_ended(&mut self, desk: &mut Desk<'_>, now: Now) {
        if self.round.ended() {
            desk.market.quotes.end_poll(self.id, now);
            desk.status.quotes_polled = true;
        }
    }

    /// Waits before the next try: `pollMs`, doubled with each failure in a row, at most
    /// `limits.backoffMax`, less up to a tenth so that many daemons do not come back at once; or
    /// for as long as the exchange asks.
    fn back_off(&mut self, fault: &Fault, desk: &mut Desk<'_>, now: Now) {
        self.failures = self.failures.saturating_add(1);
        let doubled = self.config.poll * 2u32.saturating_pow((self.failures - 1).min(16));
        let step = doubled.min(desk.config.limits.backoff_max);
        let step = step - Duration::from_micros(self.rng.below(step.as_micros() as u64 / 10));
        let asked = match fault {
            Fault::Status { retry_after, .. } => retry_after.map(|after| match after {
                RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
                RetryAfter::Date(date) => Duration::from_millis((date - now.unix).max(0) as u64),
            }),
            _ => None,
        };
        let wait = asked.unwrap_or(step).max(step).min(RETRY_AFTER_MAX);
        // What failed at the same time does not shorten what the exchange has asked for.
        self.backoff_until = self.backoff_until.max(now.mono + wait);
        self.fetches.give_up_asked();
        self.round.abandon();
        let status = &mut desk.status;
        let silent = status.last_success_at.map_or(i64::MAX, |at| now.unix - at);
        let is_down = silent >= self.config.stale_after.as_millis() as i64
            && (status.last_success_at.is_some() || self.failures > 1);
        status.state = if is_down {
            SourceState::Down
        } else {
            SourceState::Backoff
        };
        status.backoff_until = Some(on_wall(self.backoff_until, now));
    }
}

/// Puts one ticker into the market: the quote, and the forming candles of its symbol.
fn apply_ticker(
    source: SourceId,
    symbol: SymbolId,
    ticker: Ticker,
    exchange: UnixMs,
    desk: &mut Desk<'_>,
    now: Now,
) {
    let Market {
        quotes,
        charts,
        catalog,
    } = desk.market;
    if catalog.listing(source, symbol).is_none() {
        // It has left the list since this ticker came.
        return;
    }
    let last = ticker.last.clone();
    match quotes.apply(source, symbol, ticker, now) {
        Ok(applied) if applied.changed => {
            charts.tick(source, symbol, &last, exchange);
        }
        Ok(_) => {}
        Err(_) => desk.status.rejected += 1,
    }
}

/// A task in words, for the log and the metrics.
fn describe(task: &Task, market: &Market) -> String {
    match task {
        Task::Markets => "market list".to_string(),
        Task::Time => "clock".to_string(),
        Task::Tickers => "quotes".to_string(),
        Task::Ticker(symbol) => {
            format!("quote of {}", market.catalog.name(*symbol).as_str())
        }
        Task::Stats(symbol) => {
            format!("24 hours of {}", market.catalog.name(*symbol).as_str())
        }
        Task::Candles { series, .. } => {
            let symbol = market.catalog.name(series.symbol).as_str();
            format!("{} candles of {symbol}", series.interval.name())
        }
    }
}
