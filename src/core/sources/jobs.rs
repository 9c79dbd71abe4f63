//! What takes a source longer than a turn: its jobs, and what their steps do.
//!
//! Responses are applied first and in their order; then the bodies that came compressed are
//! decompressed, those of quotes first; then candles are counted. The source steps one job at a time.

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::backfill_progress::Count;
use crate::core::sources::candle_page::CandlePage;
use crate::core::sources::fault::Fault;
use crate::core::sources::replica::ReplicaJob;
use crate::core::sources::schedule::Schedule;
use crate::core::sources::staged::{Items, Staged, Tickers};
use crate::core::sources::task::{Profile, Task};
use crate::interval::Stored;
use crate::job_queue::{self, JobQueue};
use crate::log_targets::SOURCE;
use crate::market::{Awaited, Lookup, Market, SeriesKey, SourceId, SymbolId};
use crate::record::Ticker;
use crate::time::{Mono, Now, UnixMs};

/// Named markets whose series are opened in one slice: some 0.1 ms with a thousand followed series.
const FOLLOWED_A_SLICE: usize = 32;

/// Markets that have left a list whose quotes are dropped in one slice: less than 0.1 ms.
const DROPPED_A_SLICE: usize = 256;

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Job {
    /// Puts the tickers of a whole exchange, received then, into the market, one piece a slice.
    ApplyTickers(Tickers, Now),
    /// Puts a page of candles into its series.
    ApplyCandles(CandlePage),
    /// Puts the market list that has come into place.
    RefreshList,
    /// Drops the quotes of markets that have left the list. No client can ask for them any more.
    DropQuotes(std::vec::IntoIter<SymbolId>),
    /// Follows the candles of the markets that the configuration names.
    FollowNamed(std::vec::IntoIter<SymbolId>),
    /// Decompresses what has come of a response. If its connection is closed meanwhile, nothing is
    /// left to do.
    Decompress {
        /// The connection.
        conn: usize,
        /// True if quotes are awaited on it.
        is_quotes: bool,
    },
    /// Counts how far the backfill has come.
    Count(Count),
    /// What the nodes of a cluster tell each other.
    Replicate(ReplicaJob),
}

impl job_queue::Job for Job {
    fn rank(&self) -> u8 {
        match self {
            Job::Decompress { is_quotes, .. } => 2 - u8::from(*is_quotes),
            Job::Count(_) | Job::Replicate(ReplicaJob::WriteList(_)) => 3,
            _ => 0,
        }
    }

    fn replaces(&self, older: &Job) -> bool {
        match (self, older) {
            (Job::Count(_), Job::Count(_)) => true,
            (Job::Replicate(job), Job::Replicate(older)) => {
                let is_written = |it: &ReplicaJob| matches!(it, ReplicaJob::WriteList(_));
                is_written(job) && is_written(older)
            }
            (Job::Decompress { conn, .. }, Job::Decompress { conn: older, .. }) => conn == older,
            _ => false,
        }
    }
}

impl Job {
    /// True if it applies a response.
    pub fn applies(&self) -> bool {
        !matches!(
            self,
            Job::Decompress { .. } | Job::Count(_) | Job::Replicate(ReplicaJob::WriteList(_))
        )
    }
}

/// Drops the quotes and candles that are not applied yet. They are requested again.
pub fn drop_records(jobs: &mut JobQueue<Job>, schedule: &mut Schedule, now: Mono) {
    jobs.retain(|job| match job {
        Job::ApplyTickers(..) => {
            schedule.quotes_due = now;
            false
        }
        Job::ApplyCandles(page) => {
            schedule.candles.put_back(page.key());
            false
        }
        Job::Replicate(ReplicaJob::Tell(..)) => false,
        _ => true,
    });
}

/// Applies a response at once, if it is small. Otherwise returns the job that applies it.
pub fn apply(
    staged: Staged,
    sent_at: Now,
    profile: &Profile,
    schedule: &mut Schedule,
    history: &mut History,
    cx: &mut Context,
) -> Result<Option<Job>, Fault> {
    match (staged.items, staged.task) {
        (Items::Tickers(tickers, _), Task::Tickers) => {
            if let Some(newest) = tickers.newest() {
                schedule.clock.check_time(newest, true, cx);
            }
            return Ok(Some(Job::ApplyTickers(tickers, cx.now)));
        }
        (Items::Tickers(mut tickers, _), _) => {
            if let Some(newest) = tickers.newest() {
                schedule.clock.check_time(newest, false, cx);
            }
            let exchange = schedule.clock.known_time(cx);
            for (symbol, mut ticker) in tickers.next_piece().into_iter().flatten() {
                schedule.round.resume(symbol);
                if let Some(stats) = schedule.round.stats(symbol) {
                    ticker.fill_from(stats);
                }
                apply_ticker(profile.id, (symbol, ticker), cx.now, exchange, cx);
            }
            schedule.backoff.quotes_served(cx);
            schedule.market_ended(profile, true, cx);
        }
        (Items::Stats(Some(stats)), Task::Stats(symbol)) => {
            schedule.round.keep_stats(symbol, stats);
        }
        (Items::Markets(_), _) => {
            let ended = cx.market.catalog.end_list(profile.id);
            return ended.map(|()| Some(Job::RefreshList)).map_err(|_| Fault::Empty);
        }
        (Items::Time(Some(time)), _) => {
            let Schedule { clock, candles, .. } = schedule;
            clock.set(time, sent_at.mono, candles, history, cx);
        }
        (Items::Candles(rows), Task::Candles { series, slots }) => {
            if let Some(newest) = rows.iter().map(|row| row.candle.open_time).max() {
                schedule.clock.check_time(newest, false, cx);
            }
            let rows_a_page = schedule.candles.page_rows(series.interval) as i64;
            let is_full = slots.end - slots.start >= rows_a_page;
            let known = (!staged.has_undated, is_full);
            let page = CandlePage::new(series, slots, rows, known, sent_at);
            return Ok(Some(Job::ApplyCandles(page)));
        }
        (Items::Stats(_) | Items::Time(_) | Items::Candles(_), _) => {}
    }
    Ok(None)
}

/// Puts one piece of tickers, which were received then, into the market. `true`: that was the last one.
pub fn apply_tickers(
    source: SourceId,
    tickers: &mut Tickers,
    received: Now,
    schedule: &Schedule,
    cx: &mut Context,
) -> bool {
    let exchange = schedule.clock.known_time(cx);
    for item in tickers.next_piece().into_iter().flatten() {
        apply_ticker(source, item, received, exchange, cx);
    }
    let is_done = tickers.is_empty();
    if is_done && !tickers.goes_on {
        cx.market.quotes.end_poll(source, cx.now);
        cx.market.quotes.came(source, Awaited::Answer);
        cx.stats[source].quotes_polled = true;
        schedule.backoff.quotes_served(cx);
    }
    is_done
}

/// Puts one ticker into the market: the quote, and the forming candles of its symbol if the
/// exchange's time is known.
fn apply_ticker(
    source: SourceId,
    (symbol, ticker): (SymbolId, Ticker),
    received: Now,
    exchange: Option<UnixMs>,
    cx: &mut Context,
) {
    let Market { quotes, charts, catalog } = &mut cx.market;
    if catalog.listing(source, symbol).is_none() {
        // It has left the list since this ticker came.
        return;
    }
    let last = ticker.last.clone();
    match (quotes.apply(source, symbol, ticker, received), exchange) {
        (Ok(true), Some(exchange)) => {
            charts.tick(source, symbol, &last, exchange);
        }
        (Ok(_), _) => {}
        (Err(_), _) => cx.stats[source].rejected += 1,
    }
    if received.mono < cx.now.mono {
        quotes.judge(source, symbol, cx.now.mono);
    }
}

/// Takes the market list over. Tracked markets may have come and gone: these jobs are next.
pub fn refresh_list(
    profile: &Profile,
    schedule: &mut Schedule,
    history: &mut History,
    cx: &mut Context,
) -> [Job; 2] {
    let id = profile.id;
    let change = cx.market.catalog.refresh_list(id, cx.now.unix);
    for key in schedule.candles.series().collect::<Vec<SeriesKey>>() {
        // The candles of a market that is named and not listed stay as they are.
        if cx.market.catalog.listing(id, key.symbol).is_none() {
            schedule.candles.close(key);
        }
        if change.removed.binary_search(&key.symbol).is_ok() {
            cx.market.charts.close(key);
        }
    }
    history.listed(id);
    if schedule.has_list {
        cx.market.quotes.expect(id, change.added);
    }
    cx.market.quotes.came(id, Awaited::List);
    if !schedule.has_list {
        schedule.first_list(profile, cx);
        let tracked = cx.market.catalog.tracked_by(id);
        let source = &profile.config.id;
        log::info!(target: SOURCE, "market list in place source={source} markets={tracked}");
    }
    // A named market may be listed for the first time, or have come back.
    let find = |name: &String| match cx.market.catalog.find(name.as_bytes()) {
        Lookup::Known(symbol) => Some(symbol),
        Lookup::Unknown | Lookup::Malformed => None,
    };
    let named = profile.config.symbols.iter().filter_map(find);
    let named: Vec<SymbolId> = named.collect();
    let dropped = Job::DropQuotes(change.removed.into_iter());
    [dropped, Job::FollowNamed(named.into_iter())]
}

/// Drops the quotes of some markets that have left the list. `true`: the last ones.
pub fn drop_quotes(
    source: SourceId,
    symbols: &mut std::vec::IntoIter<SymbolId>,
    cx: &mut Context,
) -> bool {
    for symbol in symbols.take(DROPPED_A_SLICE) {
        cx.market.quotes.drop_symbol(source, symbol);
    }
    symbols.len() == 0
}

/// Follows some of the named markets. `true`: the last ones.
pub fn follow_named(
    source: SourceId,
    symbols: &mut std::vec::IntoIter<SymbolId>,
    schedule: &mut Schedule,
    cx: &mut Context,
) -> bool {
    for symbol in symbols.take(FOLLOWED_A_SLICE) {
        for interval in Stored::ALL {
            let key = SeriesKey { source, symbol, interval };
            schedule.candles.follow(key, cx);
        }
    }
    symbols.len() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SourceConfig};
    use crate::core::sources::staged::Stager;
    use crate::core::stats::Status;
    use crate::decimal::Decimal;
    use crate::exchange::Sink;
    use crate::record::{MarketInfo, MarketRules};
    use std::time::Duration;

    const SOURCE: SourceId = SourceId(0);

    #[test]
    fn a_quote_was_received_when_its_poll_was_and_not_when_it_is_applied() {
        let config = Config { sources: vec![SourceConfig::of("binance")], ..Config::default() };
        let received = Now { mono: Mono(0), unix: UnixMs(1_700_000_000_000) };
        let profile = Profile::new(SOURCE, &config);
        let mut schedule = Schedule::new(&profile, 0, received.mono);
        let mut history = History::new(received);
        let stats = Status::new(std::iter::once("binance"), received);
        let market = Market::new(&config);
        let mut cx = Context::new(config, market, stats, received);
        cx.market.catalog.list(
            SOURCE,
            MarketInfo {
                ticker_id: "BTCUSDT".into(),
                candle_id: None,
                base: "BTC".into(),
                quote: "USDT".into(),
                active: true,
                rules: MarketRules::default(),
            },
        );
        cx.market.catalog.end_list(SOURCE).expect("it has a market");
        cx.market.catalog.refresh_list(SOURCE, received.unix);

        let mut staged = Staged::new(SOURCE, Task::Tickers);
        let mut stager =
            Stager { staged: &mut staged, catalog: &mut cx.market.catalog, symbol: None };
        assert!(stager.wants("BTCUSDT"));
        stager.ticker("BTCUSDT", Ticker::of_last(Decimal::from(5)));
        let symbol = stager.symbol.expect("it is listed");
        let job = apply(staged, received, &profile, &mut schedule, &mut history, &mut cx);
        let Ok(Some(Job::ApplyTickers(mut tickers, at))) = job else {
            panic!("all tickers of an exchange are a job");
        };
        cx.now =
            Now { mono: received.mono + Duration::from_millis(300), unix: received.unix + 300 };
        assert!(apply_tickers(SOURCE, &mut tickers, at, &schedule, &mut cx));
        let quote = cx.market.quotes.of(SOURCE, symbol).expect("it is applied");
        assert_eq!(quote.received_at, received.unix);
    }
}
