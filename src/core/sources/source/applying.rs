//! Applies responses, at once or by a job that is stepped, and records failures.

use super::Source;
use super::schedule::LIST_RETRY;
use crate::config::DEMO;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::clock::{HOURLY, Witness};
use crate::core::sources::fault::{Blame, Fault};
use crate::core::sources::host::{Host, Pause};
use crate::core::sources::jobs::{CandlePage, Job};
use crate::core::sources::quote_round::RoundEnd;
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::staged::{Newest, Paging, Staged, StagedTickers};
use crate::core::sources::task::Task;
use crate::exchange::RequestKind;
use crate::log_targets::{SOURCE, quoted};
use crate::market::{Awaited, CandleResponse, Evidence, Market, SymbolId};
use crate::record::Ticker;
use crate::replication::Update;
use crate::time::{Mono, UnixMs};

/// While no market trades, the list is read again after a part of the time for which no market has traded so
/// far: one in `PAUSE_PARTS`.
const PAUSE_PARTS: u32 = 10;

/// Tickers by the exchange's ids, as the nodes of a cluster tell each other.
pub(super) type TickersById = Vec<(Box<str>, Ticker)>;

impl Source {
    /// Takes in a complete response. The error says what is wrong with it: its task has failed.
    pub(super) fn complete(
        &mut self,
        request: Box<RequestInFlight>,
        host: &mut Host,
        cx: &mut Context,
    ) -> Result<(), Fault> {
        let took = cx.now.mono.since(request.sent_mono());
        let (what, code) = (request.task().describe(&cx.market), request.status().unwrap_or(0));
        let (id, bytes, ms) = (&cx.stats[self.id].id, request.received, took.as_millis());
        log::debug!(
            target: SOURCE,
            "response source={id} what={} status={code} bytes={bytes} ms={ms}",
            quoted(what)
        );
        let (task, began) = (request.task().clone(), request.began);
        if request.status() == Some(304) && request.is_conditional {
            // The list in place still stands (RFC 9110, 15.4.5). It may name a market that has not traded
            // for too long.
            cx.market.catalog.list_again(self.id);
            self.jobs.push([Job::RefreshList]);
            cx.stats[self.id].ok += 1;
            self.answered(&task, began, host, cx);
            return Ok(());
        }
        let staged = request.finish(cx.now)?;
        let status = &mut cx.stats[self.id];
        status.rejected += staged.rejected;
        if staged.page.as_ref() != self.pages.next(&task) {
            // The pages before it have been dropped since it was requested.
            self.put_back(&task, cx.now.mono);
            return Ok(());
        }
        let Some(mut staged) = self.pages.add(staged) else {
            status.ok += 1;
            return Ok(());
        };
        if let Some(fault) = staged.fault(&cx.market.catalog) {
            return Err(fault);
        }
        status.ok += 1;
        status.last_success_at = Some(cx.now.unix);
        status.last_latency_ms = Some(took.as_millis() as u64);
        status.latencies.note(took.as_micros() as u64, 1);
        if staged.task.is_quotes() {
            self.newest_quotes = cx.now.mono;
            self.failures.quotes_received(cx);
            cx.market.quotes.count_rejected(staged.rejected);
        }
        let named = self.profile.list_ids.as_ref().map(Vec::len);
        self.plan.note(&staged, named, cx.now);
        self.apply(staged, cx)?;
        self.answered(&task, began, host, cx);
        Ok(())
    }

    /// A request that began at `began` was answered well.
    fn answered(&mut self, task: &Task, began: Mono, host: &mut Host, cx: &mut Context) {
        match task {
            Task::TickersOf { symbols, .. } => self.round.answered(symbols),
            Task::Candles { series, .. } => self.candles.answered(*series, cx.now),
            Task::Stats(_) | Task::Tickers | Task::Markets | Task::Time => {}
        }
        host.answered(began, cx.now.mono);
        self.failures.answered(task.kind(), cx);
    }

    /// Records the failure of a task that began at `began`. Nothing that is served changes.
    pub(super) fn failed(
        &mut self,
        task: &Task,
        fault: Fault,
        began: Mono,
        host: &mut Host,
        cx: &mut Context,
    ) {
        if self.widens_list(task, &fault, cx) {
            return;
        }
        let begun = (began, self.upstream.addresses.len());
        let blame = self.failures.failed(task, &fault, begun, host, cx);
        let what = task.describe(&cx.market);
        let text = format!("{what}: {fault}");
        let status = &mut cx.stats[self.id];
        status.errors += 1;
        status.timeouts += u64::from(fault.is_timeout());
        status.rate_limited += u64::from(blame == Blame::RateLimit);
        status.last_error_at = Some(cx.now.unix);
        let (id, of, ms) = (&status.id, blame.name(), cx.now.mono.since(began).as_millis());
        log::debug!(
            target: SOURCE,
            "failed source={id} what={} blame={of} ms={ms} error={}",
            quoted(what),
            quoted(&fault)
        );
        status.last_error = Some(text.clone());
        status.kind_errors[task.kind() as usize] = Some(text.clone());
        if let Task::TickersOf { symbols, .. } = task
            && let [symbol] = symbols[..]
            && fault.is_unknown_market()
        {
            // The market is left alone for a while, and longer each time.
            self.round.pause(symbol, self.profile.poll * 2, cx.now.mono);
        }
        let has_no_quote = blame == Blame::Market && fault.denies_market();
        if self.plan_again(task, blame, has_no_quote, cx) == RoundEnd::WithQuotes {
            // The other nodes learn that the round is over, too.
            let end = Update::Quotes { is_first: false, is_last: true, tickers: Vec::new() };
            self.publish(end, cx.now, cx);
        }
        if blame != Blame::Market {
            self.kind_failed(task.kind(), cx);
        }
        self.publish(Update::Status(Some(text.into())), cx.now, cx);
    }

    /// No request of this kind is sent for a while.
    fn kind_failed(&mut self, kind: RequestKind, cx: &mut Context) {
        // Requests that have begun and are not sent yet would fail for the same reason.
        self.put_back_all(|request| request.sent_at.is_none(), cx);
        // Nothing is served without quotes, and there are no quotes without the list.
        let has_list = cx.market.catalog.has_list(self.id);
        if kind == RequestKind::Quotes || kind == RequestKind::List && !has_list {
            self.round.abandon();
            self.failures.back_off(cx.now.mono, cx);
        }
        if kind == RequestKind::Candles {
            self.candles.give_up_asked();
        }
    }

    /// The host is halted. Requests that have begun and are not sent yet wait as well, and no
    /// client need wait for candles.
    pub fn halted(&mut self, halt: Pause, cx: &mut Context) {
        if cx.now.mono < halt.until && self.replica.role().collects() && !self.has_ended {
            self.failures.halted(halt, cx);
            self.put_back_all(|request| request.sent_at.is_none(), cx);
            self.candles.give_up_asked();
            self.wake_up(cx.now);
        }
    }

    /// Applies the tickers of some markets, 24-hour figures and the clock at once. All tickers, market lists
    /// and candles become jobs. The other nodes of a cluster are told of a response when it is applied, so
    /// that they apply responses in the same order.
    pub(super) fn apply(&mut self, staged: Staged, cx: &mut Context) -> Result<(), Fault> {
        let [_, sent_at] = staged.sent;
        match staged.task {
            Task::Tickers => {
                let mut newest = Newest::default();
                staged.tickers.note_times(&mut newest, cx.now.mono);
                self.clock.note_newest(&newest, sent_at.mono, cx);
                self.jobs.push([Job::ApplyTickers(staged.tickers)]);
            }
            Task::TickersOf { symbols, .. } => self.apply_of_round(&symbols, staged.tickers, cx),
            Task::Stats(symbol) => {
                if let Some(stats) = staged.stats
                    && let Some(listing) = cx.market.catalog.listing(self.id, symbol)
                {
                    self.round.note_stats(symbol, stats.clone(), cx.now.mono);
                    let body = Update::Stats(listing.ticker_id.clone(), Box::new(stats));
                    self.publish(body, cx.now, cx);
                }
            }
            Task::Markets => {
                cx.market.catalog.end_list(self.id).map_err(|_| Fault::empty())?;
                let profile = &mut self.profile;
                let is_usual = profile.list_ids == profile.named_ids;
                profile.list_ids.clone_from(&profile.named_ids);
                self.list_tag = staged.tag.filter(|_| is_usual);
                self.jobs.push([Job::RefreshList]);
            }
            Task::Time => {
                // If the time call is the date of a response, the date has been noted with the head.
                if let Some(time) = staged.time
                    && !self.profile.dialect.is_dated()
                {
                    // A time without a fraction may be of any moment of that second.
                    let most = if time.0 % 1000 == 0 { time + 999 } else { time };
                    self.clock.note(Witness::Call, [time, most], sent_at.mono, cx);
                }
                self.publish(Update::Status(None), cx.now, cx);
            }
            Task::Candles { series, slots } => {
                let (rows, all) = (staged.candles, staged.all_rows);
                let response = CandleResponse::of(&slots, &rows, &all, sent_at.mono);
                let evidence = Evidence::Exchange(response);
                let page = CandlePage::new(series, slots, rows, evidence, all.is_dated, sent_at);
                // The other nodes need no page of a series that nobody follows.
                let told = cx.market.charts.get(series).map(|_| cx.now);
                self.jobs.push([Job::ApplyCandles(page, told)]);
            }
        }
        Ok(())
    }

    /// Puts the tickers of the request of a round for these markets into the market.
    fn apply_of_round(
        &mut self,
        symbols: &[SymbolId],
        mut tickers: StagedTickers,
        cx: &mut Context,
    ) {
        tickers.note_times(&mut self.round.newest, cx.now.mono);
        let mut published = self.apply_piece(&mut tickers, cx);
        while !tickers.is_empty() {
            published.extend(self.apply_piece(&mut tickers, cx));
        }
        let is_first = !self.round.has_good;
        let is_last = self.market_ended(symbols, true, cx) != RoundEnd::NotYet;
        self.publish(Update::Quotes { is_first, is_last, tickers: published }, cx.now, cx);
    }

    /// A round has begun that requests nothing: no response will end it. If no market is listed, the round
    /// counts as a good one, unless the host has yet to answer after a halt.
    pub(super) fn end_empty_round(&mut self, host: &Host, cx: &mut Context) {
        if cx.market.catalog.listed_by(self.id) > 0 {
            // The exchange knows none of the markets.
            self.market_ended(&[], false, cx);
        } else if !host.is_probing {
            self.newest_quotes = cx.now.mono;
            self.failures.quotes_received(cx);
            self.failures.forget_kind(RequestKind::Quotes, cx);
            self.failures.forget_kind(RequestKind::Stats, cx);
            self.apply_of_round(&[], StagedTickers::default(), cx);
        }
    }

    /// Puts one piece of tickers into the market. `true`: the last one.
    pub(super) fn apply_tickers(&mut self, tickers: &mut StagedTickers, cx: &mut Context) -> bool {
        let (is_first, is_last) = tickers.ends();
        let (goes_on, received) = (tickers.goes_on, tickers.received);
        let tickers = self.apply_piece(tickers, cx);
        self.publish(Update::Quotes { is_first, is_last, tickers }, received, cx);
        if is_last && !goes_on {
            let id = self.id;
            cx.market.quotes.end_poll(id, cx.now);
            cx.market.quotes.arrived(id, Awaited::PollEnd);
            cx.stats[id].quotes_polled = true;
        }
        is_last
    }

    /// Puts the next tickers into the market: the quotes, and the forming candles of their symbols if the
    /// exchange's time is known. Returns them as they are published.
    fn apply_piece(&mut self, tickers: &mut StagedTickers, cx: &mut Context) -> TickersById {
        let mut piece = tickers.next_piece().unwrap_or_default();
        for (symbol, ticker) in &mut piece {
            self.round.complete(*symbol, ticker, tickers.received.mono);
        }
        let published = self.to_publish(&piece, cx);
        let id = self.id;
        let received = tickers.received;
        let is_known = self.clock.dates_quotes(received.mono);
        let exchange: Option<UnixMs> = is_known.then(|| cx.stats[id].exchange_time(received));
        let speed = i64::from(cx.stats[id].clock_speed());
        let Market { quotes, charts, catalog } = &mut cx.market;
        for (symbol, ticker) in piece {
            if catalog.listing(id, symbol).is_none() {
                // The market has left the list since this ticker came.
                continue;
            }
            let last = ticker.last.clone();
            let before = quotes.of(id, symbol).and_then(|before| before.traded_since(&ticker));
            match (quotes.apply(id, symbol, ticker, received), exchange) {
                (Ok(true), Some(exchange)) => {
                    charts.tick(id, symbol, &last, exchange);
                    if let Some(before) = before {
                        self.candles.note_trade(symbol, cx.now.mono);
                        let ms = received.mono.since(before).as_millis() as i64 * speed;
                        charts.note_trade(id, symbol, exchange - ms, exchange);
                    }
                }
                (Ok(_), _) => {}
                (Err(_), _) => cx.stats[id].rejected += 1,
            }
        }
        // The tickers may have been received long ago.
        quotes.update_staleness(cx.now);
        // From the first piece on, some quotes are fresh.
        self.failures.quotes_served(cx);
        published
    }

    /// Applies the market list that has come. The next jobs drop the quotes of markets that have left the
    /// list, and follow the named markets.
    pub(super) fn refresh_list(&mut self, history: &mut History, cx: &mut Context) {
        let id = self.id;
        let source = &cx.stats[id].id;
        let Market { catalog, quotes, charts } = &mut cx.market;
        if self.replica.role().collects() {
            let is_quoted = |symbol| quotes.of(id, symbol).is_some_and(|quote| !quote.stale());
            catalog.doubt_list(id, cx.now.mono, is_quoted);
        }
        let is_first = !catalog.has_list(id);
        let change = catalog.refresh_list(id, cx.now.unix);
        change.moved.iter().for_each(|symbol| quotes.reorder(*symbol));
        if !change.removed.is_empty() {
            let markets = change.removed.len();
            log::info!(target: SOURCE, "markets removed source={source} markets={markets}");
        }
        // The candles of a market that is named and not listed stay as they are.
        charts.retain(id, |symbol| catalog.sources_of(symbol).contains(&id));
        self.drop_gone(cx);
        history.listed(id);
        if !is_first {
            cx.market.quotes.expect(id, change.added);
        }
        cx.market.quotes.arrived(id, Awaited::List);
        let now = cx.now.mono;
        self.list_due = now + HOURLY;
        if cx.market.catalog.trades_nothing(id) {
            // The longer that lasts, the later the list is read again.
            let lasts = now.since(*self.nothing_trades_since.get_or_insert(now));
            self.list_due = now + (lasts / PAUSE_PARTS).clamp(LIST_RETRY, HOURLY);
        } else {
            self.nothing_trades_since = None;
        }
        if is_first {
            self.begin_quotes(cx.now.mono);
            let listed = cx.market.catalog.listed_by(id);
            let source = &cx.stats[id].id;
            log::info!(target: SOURCE, "market list in place source={source} markets={listed}");
        }
        // A named market may be listed for the first time, or have come back.
        let named = self.profile.named(&cx.market.catalog).map(|(_, symbol)| symbol);
        let named: Vec<_> = named.collect();
        let removed = Job::DropQuotes(change.removed.into_iter());
        self.jobs.push([removed, Job::FollowNamed(named.into_iter())]);
        self.list_changed();
    }

    /// Reads the list soon again if it lacks what an earlier one had.
    pub(super) fn watch_list(&mut self, cx: &mut Context) {
        let missing = cx.market.catalog.take_doubted(self.id);
        if missing > 0 {
            let source = &cx.stats[self.id].id;
            log::warn!(target: SOURCE, "market list doubted source={source} missing={missing}");
            self.list_tag = None;
            let is_demo = self.profile.config.dialect == DEMO;
            let pause = if is_demo { self.profile.poll } else { LIST_RETRY };
            self.list_due = cx.now.mono + pause;
        }
    }

    /// Drops the quotes and candles that are not applied yet. They are requested again.
    pub(super) fn drop_records(&mut self, cx: &Context) {
        // Tickers begin again with the next poll, and a list at once.
        self.pages = Paging::default();
        self.jobs.retain(|job| match job {
            Job::ApplyTickers(_) => {
                self.quotes_due = cx.now.mono;
                false
            }
            Job::ApplyCandles(..) => false,
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::sources::staged::Stager;
    use crate::core::testing::{NOW, SOURCE, config_of, context, list};
    use crate::decimal::Decimal;
    use crate::exchange::Sink;
    use crate::market::SymbolId;
    use crate::market::testing::info;
    use crate::record::{MarketInfo, Stats};
    use crate::time::Now;
    use std::time::Duration;

    /// A source of this exchange, which lists these markets.
    fn listing(exchange: &str, symbols: &[impl AsRef<str>]) -> (Source, Context) {
        let config = config_of(exchange);
        let source = Source::new(SOURCE, &config, 0, NOW);
        let mut cx = context(config, NOW);
        list(&mut cx.market.catalog, symbols);
        (source, cx)
    }

    /// 24-hour figures of a market, as they come.
    fn figures_of(symbol: SymbolId) -> Staged {
        let mut staged = Staged::new(SOURCE, Task::Stats(symbol), None);
        staged.stats = Some(Stats { high: Some(Decimal::from(9)), ..Stats::default() });
        staged
    }

    #[test]
    fn figures_of_24_hours_are_served_as_long_as_they_are_read() {
        // The seconds that a reading takes of the budget, so the minutes between two readings. The minutes
        // since the last one, and whether its figures are served.
        for (takes, since, expected) in
            [(1, 9, true), (1, 11, false), (300, 59, true), (300, 61, false)]
        {
            let (mut source, mut cx) = listing("coinbase", &["A/USD"]);
            let symbol = cx.market.catalog.known()[0];
            source.round.begin((Vec::new(), vec![symbol]), 1, true, NOW.mono);
            source.round.sent_stats(symbol, Duration::from_secs(takes), NOW.mono);
            source.apply(figures_of(symbol), &mut cx).expect("they are sound");
            cx.now.mono = NOW.mono + Duration::from_secs(60 * since);
            source.round.sent(&[symbol]);
            let mut tickers = StagedTickers::default();
            tickers.received = cx.now;
            tickers.push(symbol, Ticker::of_last(Decimal::from(5)));
            source.apply_of_round(&[symbol], tickers, &mut cx);
            let quote = cx.market.quotes.of(SOURCE, symbol).expect("it has come");
            assert_eq!(quote.ticker.high.is_some(), expected, "{takes} {since}");
        }
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn the_other_nodes_learn_where_a_round_of_single_markets_begins_and_ends() {
        use crate::core::sources::replica::{Outbound, Role};
        use crate::exchange::RefusalKind;
        let (mut source, mut cx) = listing("coinbase", &["A/USD", "B/USD"]);
        source.set_role(Role::Collector, &mut cx);
        let mut host = Host::new(&source.profile.url);
        let symbols = cx.market.catalog.known().to_vec();
        // `ends`: which markets are answered well. `expected`: is_first, is_last and tickers of each update.
        let mut check = |ends: [bool; 2], expected: &[(bool, bool, usize)]| {
            source.round.begin((Vec::new(), symbols.clone()), 1, false, NOW.mono);
            for (symbol, is_good) in symbols.iter().zip(ends) {
                source.round.sent(&[*symbol]);
                if is_good {
                    let mut tickers = StagedTickers::default();
                    tickers.push(*symbol, Ticker::of_last(Decimal::from(5)));
                    source.apply_of_round(&[*symbol], tickers, &mut cx);
                } else {
                    let task = Task::TickersOf { symbols: vec![*symbol], is_whole: false };
                    let fault = Fault::status(500, RefusalKind::Other, None);
                    source.failed(&task, fault, NOW.mono, &mut host, &mut cx);
                }
            }
            let mut found = Vec::new();
            while let Some(told) = source.next_outbound() {
                if let Outbound::Entry(entry) = told
                    && let Update::Quotes { is_first, is_last, tickers } = entry.body
                {
                    found.push((is_first, is_last, tickers.len()));
                }
            }
            assert_eq!(found, expected, "{ends:?}");
        };
        check([true, true], &[(true, false, 1), (false, true, 1)]);
        check([false, true], &[(true, true, 1)]);
        check([true, false], &[(true, false, 1), (false, true, 0)]);
        check([false, false], &[]);
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn what_a_collector_tells_does_not_keep_a_series_open_at_a_follower() {
        use crate::config::Limits;
        use crate::core::sources::replica::Role;
        use crate::interval::Stored::M1;
        use crate::market::SeriesKey;
        use crate::replication::{Entry, EntryHead, SentCandles, SeriesPart};
        let (mut source, mut cx) = listing("binance", &["A/USDT", "B/USDT"]);
        cx.market.charts.reconfigure(&Limits { candle_series: 1, ..Limits::default() });
        source.set_role(Role::Follower, &mut cx);
        for _ in 0..3 {
            let slot = M1.slot_of(cx.now.unix);
            let symbol = "A/USDT".into();
            let page = SentCandles {
                series: SeriesPart { symbol, interval: M1, slots: slot..slot + 1 },
                closed_before: cx.now.unix,
                is_dated: true,
                ..SentCandles::default()
            };
            let (received, exchange_time) = (cx.now.unix, Some(cx.now.unix));
            let (epoch, waited_ms, state, rest_ms) = (1, 0, 0, 0);
            let head = EntryHead { epoch, waited_ms, received, exchange_time, state, rest_ms };
            let entry = Entry { head, body: Update::Candles(page) };
            source.follow_entry(entry, Duration::ZERO, &mut cx);
            let mono = cx.now.mono + Duration::from_secs(59);
            cx.now = Now { mono, unix: cx.now.unix + 59_000 };
        }
        let symbol = cx.market.catalog.known()[1];
        let other = SeriesKey { source: SOURCE, symbol, interval: M1 };
        assert!(source.follow(other, &mut cx), "nobody has read the first for two minutes");
        assert_eq!(cx.market.charts.open_keys(SOURCE), [other]);
    }

    #[test]
    fn nothing_is_requested_or_told_of_a_market_that_has_gone() {
        use crate::config::{Depth, SourceChange};
        use crate::core::sources::backoff::FAILURES_IN_A_ROW;
        use crate::core::sources::budget::Purpose;
        use crate::core::sources::source::schedule::Offer;
        use crate::exchange::RefusalKind;
        use crate::interval::Stored::M1;
        use crate::market::SeriesKey;
        let names: Vec<String> = (0..20).map(|it| format!("A{it}/USD")).collect();
        let kind = RequestKind::Candles as usize;
        for by_reload in [false, true] {
            let (mut source, mut cx) = listing("coinbase", &names);
            cx.config.history.m1 = Depth { keep: 100, backfill: 100 };
            let mut history = History::new(NOW);
            let mut host = Host::new(&source.profile.url);
            let all = cx.market.catalog.known().to_vec();
            let (gone, mut left) = (all[19], all[..19].to_vec());
            let name = |at: usize| cx.market.catalog.name(all[at]).as_str().to_string();
            let names_left: Vec<String> = (0..19).map(name).collect();
            let series = SeriesKey { source: SOURCE, symbol: gone, interval: M1 };
            assert!(source.follow(series, &mut cx));
            let candles = Task::Candles { series, slots: 0..1 };
            for _ in 0..FAILURES_IN_A_ROW {
                let fault = Fault::status(500, RefusalKind::Other, None);
                source.failed(&candles, fault, NOW.mono, &mut host, &mut cx);
            }
            assert!(cx.stats[SOURCE].kind_failing_since[kind].is_some());
            let mut work = |source: &mut Source, cx: &mut Context| {
                while !source.jobs.is_empty() {
                    source.work(&mut Host::new(&source.profile.url), &mut history, cx);
                }
                cx.stats[SOURCE].backfill.wanted
            };
            source.note_stored(NOW);
            assert_eq!(work(&mut source, &mut cx), 100);
            source.round.begin((Vec::new(), all.clone()), 1, true, NOW.mono);
            source.apply(figures_of(gone), &mut cx).expect("they are sound");
            let quotes = Task::TickersOf { symbols: vec![left[0], gone], is_whole: false };
            for (conn, task) in [quotes, Task::Stats(gone), candles].into_iter().enumerate() {
                let offer = Offer { due: NOW.mono, task, purpose: Purpose::Named };
                source.start(conn, offer, &mut host, &mut cx);
            }
            if by_reload {
                cx.config.sources[0].symbols = names_left;
                let changes = [SourceChange::Settings { markets: true, route: false }];
                cx.market.reconfigure(&cx.config, &changes, NOW.mono);
                source.reconfigure(true, false, &mut cx);
            } else {
                cx.market.catalog.drop_list(SOURCE);
                names_left.iter().for_each(|it| cx.market.catalog.list(SOURCE, info(it)));
                cx.market.catalog.end_list(SOURCE).expect("a usable list");
                source.refresh_list(&mut History::new(NOW), &mut cx);
            }
            assert_eq!(source.in_flight(), 0);
            let status = &cx.stats[SOURCE];
            let sent = (status.polls, status.bytes_sent, status.budget_spent);
            assert_eq!(sent, (0, 0, 0), "no connection was open yet");
            assert_eq!((status.kind_failing_since[kind], status.failing[kind]), (None, 0));
            let mut requested = Vec::new();
            while let Some((Task::TickersOf { symbols, .. }, _)) = source.round.next() {
                source.round.sent(&symbols);
                requested.extend(symbols);
            }
            left.sort();
            requested.sort();
            assert_eq!(requested, if by_reload { Vec::new() } else { left.clone() });
            let mut ticker = Ticker::of_last(Decimal::from(5));
            source.round.complete(gone, &mut ticker, NOW.mono);
            assert_eq!(ticker.high, None, "a market that comes back has other figures");
            for _ in 0..40 {
                let (_, symbol) = source.round.next_stats().expect("there are markets");
                assert_ne!(symbol, gone);
                source.round.sent_stats(symbol, Duration::ZERO, NOW.mono);
            }
            assert_eq!(work(&mut source, &mut cx), 0);
        }
    }

    #[test]
    fn an_unchanged_list_is_no_failure_after_a_reload_and_drops_what_is_halted_for_long() {
        let (mut source, mut cx) = listing("binance", &["A/USDT", "B/USDT"]);
        let mut history = History::new(NOW);
        let mut host = Host::new(&source.profile.url);
        let halted = MarketInfo { active: false, ..info("B/USDT") };
        [info("A/USDT"), halted].into_iter().for_each(|it| cx.market.catalog.list(SOURCE, it));
        cx.market.catalog.end_list(SOURCE).expect("a usable list");
        source.refresh_list(&mut history, &mut cx);
        for (days, left) in [(1, 2), (20, 1)] {
            cx.now.mono = NOW.mono + Duration::from_secs(days * 24 * 3600);
            source.list_tag = Some("\"x\"".into());
            let (task, tag) = (Task::Markets, source.tag(&Task::Markets));
            let mut request = RequestInFlight::new(&source.profile, task, None, tag, &cx);
            let read = request.receive(b"HTTP/1.1 304 Not Modified\r\n\r\n", &mut cx);
            assert!(read.is_ok() && request.is_complete());
            source.reconfigure(false, false, &mut cx);
            assert!(source.complete(Box::new(request), &mut host, &mut cx).is_ok());
            while !source.jobs.is_empty() {
                source.work(&mut host, &mut history, &mut cx);
            }
            assert_eq!(cx.market.catalog.listed_by(SOURCE), left, "{days}");
        }
    }

    #[test]
    fn all_tickers_of_a_request_for_many_markets_are_applied() {
        let names: Vec<String> = (0..500).map(|it| format!("A{it}/USDT")).collect();
        let (mut source, mut cx) = listing("binance", &names);
        let symbols = cx.market.catalog.known().to_vec();
        source.round.begin((Vec::new(), symbols.clone()), 500, false, NOW.mono);
        source.round.sent(&symbols);
        let mut tickers = StagedTickers::default();
        symbols.iter().for_each(|it| tickers.push(*it, Ticker::of_last(Decimal::from(5))));
        source.apply_of_round(&symbols, tickers, &mut cx);
        let is_known = |symbol| cx.market.quotes.of(SOURCE, symbol).is_some();
        assert_eq!(symbols.into_iter().filter(|symbol| is_known(*symbol)).count(), 500);
        assert!(source.round.is_over());
    }

    #[test]
    fn a_quote_was_received_when_its_poll_was_and_not_when_it_is_applied() {
        use crate::interval::Stored::M1;
        use crate::market::SeriesKey;
        let (mut source, mut cx) = listing("binance", &["BTC/USDT"]);
        let mut history = History::new(NOW);
        // The clock is known, and a minute is about to end.
        source.clock.note(Witness::Call, [NOW.unix; 2], NOW.mono, &mut cx);
        let mono = NOW.mono + Duration::from_millis(39_900);
        let received = Now { mono, unix: NOW.unix + 39_900 };
        let symbol = cx.market.catalog.known()[0];
        let minutes = SeriesKey { source: SOURCE, symbol, interval: M1 };
        assert!(source.follow(minutes, &mut cx));
        let mut staged = Staged::new(SOURCE, Task::Tickers, None);
        let mut stager =
            Stager { staged: &mut staged, catalog: &mut cx.market.catalog, symbol: None };
        assert!(stager.wants("BTCUSDT"));
        stager.ticker("BTCUSDT", Ticker::of_last(Decimal::from(5)));
        staged.arrived(received, received, 0);
        source.apply(staged, &mut cx).expect("it is sound");
        assert_eq!(source.staged(), 1, "all tickers of an exchange are a job");
        cx.now =
            Now { mono: received.mono + Duration::from_millis(300), unix: received.unix + 300 };
        let mut host = Host::new(&source.profile.url);
        assert!(source.work(&mut host, &mut history, &mut cx));
        assert!(source.jobs.is_empty());
        let quote = cx.market.quotes.of(SOURCE, symbol).expect("it is applied");
        assert_eq!(quote.received_at, received.unix);
        let candles = cx.market.charts.get(minutes).expect("it is followed");
        assert!(candles.forming(M1.slot_of(received.unix)).is_some());
    }
}
