//! The probe: sends each kind of request to an exchange once, and prints what it reads from the
//! answers.
//!
//! Owns the messages for a person who writes a dialect. It looks for typical mistakes of a dialect: wrong
//! units of time, swapped columns, paths that lead nowhere. It stores nothing.

mod report;

use self::report::{CANDLES, Kept, ProbeReport, SHOWN, is_absurd, or_null, say, symbol};
use crate::config::{Config, ProbeOptions, SourceConfig, Url};
use crate::exchange::{Call, Dialect, NextPage, Reading};
use crate::interval::Stored;
use crate::net::{Fetched, Fetcher};
use crate::record::{MarketInfo, Ticker};
use crate::time::{DAY_MS, TOLD_DIFFERENCE_MS, UnixMs, who_is_ahead};
use std::collections::HashMap;
use std::time::Duration;

/// Probes one source. Returns the report, and true if everything could be read.
pub fn probe(config: &Config, source: &SourceConfig, options: &ProbeOptions) -> (String, bool) {
    let dialect = Dialect::for_source(source).expect("dialects have been checked");
    let url = source.url.as_ref().unwrap_or(dialect.base_url()).clone();
    let mut report = ProbeReport::new(options.is_strict, source.key.clone());
    let fetcher = match Fetcher::new(config) {
        Ok(fetcher) => fetcher,
        Err(error) => {
            report.fail("tls", error);
            return (report.text, false);
        }
    };
    let mut probe = Probe {
        item_bytes: config.limits.upstream_item_bytes,
        source,
        dialect,
        url,
        fetcher,
        report,
        offset_ms: 0,
        listed: HashMap::new(),
        pause: Duration::ZERO,
        used: None,
        has_witness: false,
        bodies: &options.bodies,
        read: vec![false; options.bodies.len()],
    };
    probe.run();
    let what = "nothing tells the exchange's time: its time call fails or takes too long, and no answer \
                has a current Date; the newest candles stay in doubt";
    probe.report.doubt(!probe.has_witness && options.bodies.is_empty(), what);
    (probe.report.text, probe.report.is_good)
}

struct Probe<'c> {
    item_bytes: usize,
    source: &'c SourceConfig,
    dialect: &'static Dialect,
    url: Url,
    fetcher: Fetcher,
    report: ProbeReport,
    /// How far the exchange's clock is ahead.
    offset_ms: i64,
    /// The market list, once it has come: the base and the quote of each ticker id.
    listed: HashMap<String, [String; 2]>,
    /// How long to wait before the next request, by the budget.
    pause: Duration,
    /// The used budget that the last answer told.
    used: Option<u64>,
    /// True if something tells the exchange's time: its time call in good time, or the `Date` of an answer.
    has_witness: bool,
    /// The recorded bodies to read instead of asking the exchange: the name of the call, and the
    /// body.
    bodies: &'c [(String, String)],
    /// For each recorded body, true if it was read.
    read: Vec<bool>,
}

impl Probe<'_> {
    fn run(&mut self) {
        let budget = self.dialect.budget();
        say!(self.report, "{} at {}", self.dialect.name(), self.url);
        say!(self.report, "budget: {} in {} ms", budget.units, budget.per.as_millis());
        say!(self.report, "costs: {}", self.dialect.costs());
        let has_proxy = self.source.proxy.is_some();
        self.report.doubt(has_proxy, "the proxy of the environment is not used by this probe");
        self.clock();
        let mut markets = self.markets();
        if markets.is_empty() {
            if self.bodies.is_empty() {
                return;
            }
            // The recorded bodies may be of any market.
            markets.push(MarketInfo::default());
        }
        let (market, ticker) = (&markets[0], self.tickers(&markets));
        let stats = Call::Stats { id: &market.ticker_id };
        if self.dialect.has_stats()
            && let Some((_, kept)) = self.ask(&stats)
        {
            self.report.explain(&kept, "", "");
            if let (Some(mut ticker), Some(stats)) = (ticker, kept.stats) {
                ticker.fill_from(&stats);
                self.report.judge_ticker("merged", &ticker);
            }
        }
        for interval in Stored::ALL {
            match self.dialect.has_interval(interval) {
                true => self.candles(market, interval, 0),
                false => say!(self.report, "\ncandles {}: the exchange has none", interval.name()),
            }
            let behind = self.dialect.archive_behind(interval).filter(|_| self.bodies.is_empty());
            behind.into_iter().for_each(|behind| self.candles(market, interval, behind.into()));
        }
        for ((call, _), _) in self.bodies.iter().zip(&self.read).filter(|(_, is_read)| !**is_read) {
            let why = "nothing reads it: no such request is made, or another --body answers it";
            self.report.fail(&format!("--body {call}"), why);
        }
    }

    /// Sends the requests of a call, one for each page, and reads the answers.
    fn ask(&mut self, call: &Call<'_>) -> Option<(Fetched, Kept)> {
        let (listed, is_of_all) = (self.listed.clone(), *call == Call::Tickers);
        let mut kept = Kept { listed, is_of_all, ..Kept::default() };
        let (fetched, mut next) = self.ask_page(call, None, &mut kept)?;
        while let Some(page) = next {
            if !self.bodies.is_empty() {
                say!(self.report, "  further pages follow, which are not recorded");
                break;
            }
            next = self.ask_page(call, Some(&page), &mut kept)?.1;
        }
        self.report.say_rejected(&kept);
        Some((fetched, kept))
    }

    /// Requests one page of a call, and reads it. Also returns where the next page begins.
    fn ask_page(
        &mut self,
        call: &Call<'_>,
        page: Option<&NextPage>,
        kept: &mut Kept,
    ) -> Option<(Fetched, Option<NextPage>)> {
        let (target, cost) = (self.dialect.target(call, page), self.dialect.cost(call));
        let meter = self.dialect.meter();
        let fetched = match self.recorded(call) {
            Some(fetched) => {
                say!(self.report, "\n{}: the recorded body, for GET {target}", name_of(call));
                fetched
            }
            None if !self.bodies.is_empty() => return None,
            None => {
                self.fetcher.pause(self.pause);
                let budget = self.dialect.budget();
                self.pause = budget.per * cost / budget.units;
                say!(self.report, "\nGET {target} (costs {cost})");
                let key = self.dialect.key_field(self.source.key.as_ref());
                let key = key.as_ref().map(|(name, value)| (*name, &**value));
                let timeout = self.source.timeout;
                let fetched = self.fetcher.get(&self.url, &target, key, meter, timeout);
                fetched.map_err(|error| self.report.fail("the answer", error)).ok()?
            }
        };
        let (status, body, ms) = (fetched.status, &*fetched.body, fetched.took.as_millis());
        say!(self.report, "  status {status}, {} bytes, {ms} ms", body.len());
        if let Some(meter) = meter.filter(|_| self.bodies.is_empty()) {
            self.budget(meter, fetched.field.as_deref());
        }
        let mut reading = Reading::new(self.dialect, call, self.item_bytes);
        reading.explain();
        if let Some(date) = fetched.date {
            reading.date(date, kept);
            self.has_witness = true;
        }
        // `finish` returns the same error.
        let _ = reading.feed(body, kept);
        let next = reading.next_page(page);
        if let Err(error) = reading.finish(status).and(next.clone()) {
            self.report.fail("the body", error);
            let front = String::from_utf8_lossy(&body[..body.len().min(300)]);
            say!(self.report, "  it begins: {front}");
            say!(self.report, "  {}", self.dialect.missing(call, body));
            return None;
        }
        Some((fetched, next.ok()?))
    }

    /// Shows what an answer tells about the budget.
    fn budget(&mut self, name: &str, told: Option<&str>) {
        let Some(told) = told else {
            return self.report.wrong(format_args!("the answer has no header field {name}"));
        };
        let used = told.parse().ok().map(|told| self.dialect.spent(told));
        let units = self.dialect.budget().units;
        let of = used.map(|used| format!(": {used} of {units} are used"));
        // `None` if the exchange's window has ended meanwhile.
        let more = used.zip(self.used).and_then(|(used, before)| used.checked_sub(before));
        let more = more.map(|more| format!(", {more} more than before"));
        say!(self.report, "  {name}: {told}{}{}", of.unwrap_or_default(), more.unwrap_or_default());
        self.used = used;
    }

    /// The recorded body of a call.
    fn recorded(&mut self, call: &Call<'_>) -> Option<Fetched> {
        let at = self.bodies.iter().position(|(name, _)| name == name_of(call))?;
        self.read[at] = true;
        Some(Fetched {
            status: 200,
            field: None,
            date: None,
            body: self.bodies[at].1.clone().into_bytes(),
            sent: self.fetcher.now(),
            took: Duration::ZERO,
        })
    }

    fn clock(&mut self) {
        let Some((fetched, kept)) = self.ask(&Call::Time) else {
            return;
        };
        let Some(time) = kept.times.first() else {
            return;
        };
        let half = fetched.took.as_millis() as i64 / 2;
        self.has_witness |= 2 * half <= TOLD_DIFFERENCE_MS;
        self.offset_ms = time.0 - fetched.sent.unix.0 - half;
        let (who, ms) = (who_is_ahead(-self.offset_ms), self.offset_ms.abs());
        say!(self.report, "  clock: {time}, the {who} is ahead by {ms} ms");
        if !self.bodies.is_empty() {
            // The time of the recording is not known.
        } else if ms > DAY_MS {
            // Probably the dialect says another unit than the exchange sends.
            let what = "more than a day: check time.unit, time.call.items and this machine's clock";
            self.report.wrong(what);
        } else if ms > TOLD_DIFFERENCE_MS {
            self.report.wrong(format_args!(
                "the {who} is ahead by {ms} ms: check that time.call tells the time of the answer \
                 (a candle's open time does not), and this machine's clock"
            ));
        }
    }

    /// Requests the market list. Returns the market that the next requests are for, and another one for
    /// requests of several markets.
    fn markets(&mut self) -> Vec<MarketInfo> {
        // Like a source: requests the named markets if the dialect can name them in a request, or
        // else all.
        let is_named = self.bodies.is_empty() && self.source.quote_assets.is_empty();
        let ids = self.dialect.list_ids(&self.source.symbols).filter(|_| is_named);
        let named = ids.and_then(|ids| self.ask(&Call::MarketsOf { ids: &ids }));
        let Some((_, kept)) =
            named.or_else(|| self.ask(&Call::Markets { named: &self.source.symbols }))
        else {
            return Vec::new();
        };
        self.report.judge_markets(&kept);
        let assets = |it: &MarketInfo| [it.base.to_string(), it.quote.to_string()];
        let ids = kept.markets.iter().map(|market| (market.ticker_id.to_string(), assets(market)));
        self.listed = ids.collect();
        self.round(&kept.markets);
        let wanted = self.source.symbols.first();
        let is_wanted = |market: &&MarketInfo| match wanted {
            Some(wanted) => symbol(market) == *wanted,
            None => market.active,
        };
        let Some(found) = kept.markets.iter().find(is_wanted) else {
            let what = wanted.map_or("an active one", String::as_str);
            self.report.fail("the market", format_args!("{what} is not in the list"));
            return Vec::new();
        };
        self.report.explain(&kept, "id", &found.ticker_id);
        let is_other = |it: &&MarketInfo| it.active && it.ticker_id != found.ticker_id;
        [Some(found), kept.markets.iter().find(is_other)].into_iter().flatten().cloned().collect()
    }

    /// Judges how long a round of quotes takes, if no request gets the tickers of all markets.
    fn round(&mut self, markets: &[MarketInfo]) {
        if self.dialect.tickers_at_once() {
            return;
        }
        let SourceConfig { symbols, quote_assets, stale_after, .. } = self.source;
        let takes_all = symbols.is_empty() && quote_assets.is_empty();
        let is_collected = |market: &&MarketInfo| {
            let has_quote = |asset: &String| asset == "*" || **asset == *market.quote;
            let is_named = || symbols.contains(&symbol(market));
            market.active && (takes_all || quote_assets.iter().any(has_quote)) || is_named()
        };
        let count = markets.iter().filter(is_collected).count();
        let budget = self.dialect.budget();
        let cost = self.dialect.ways().iter().map(|way| way.cost_of(count)).min().unwrap_or(0);
        let round = budget.per * cost / budget.units;
        let stale = stale_after.as_millis();
        let ms = round.as_millis();
        say!(self.report, "  a round of quotes: {count} markets, {ms} ms of the budget");
        if round >= *stale_after {
            let what = "quotes turn stale within a round: name fewer markets";
            self.report.wrong(format_args!("{ms} ms are not below staleAfterMs ({stale}): {what}"));
        }
    }

    /// Makes each call that polls of quotes make. Returns the ticker of the first market.
    fn tickers(&mut self, markets: &[MarketInfo]) -> Option<Ticker> {
        let ways = self.dialect.ways();
        let most = ways.iter().filter_map(|way| way.markets).max();
        let ids = markets.iter().map(|market| &*market.ticker_id);
        let ids: Vec<&str> = ids.take(most.unwrap_or(1)).collect();
        let all = self.dialect.tickers_at_once().then_some(Call::Tickers);
        let some = most.map(|_| self.dialect.tickers_of(&ids));
        let calls = all.into_iter().chain(some);
        calls.fold(None, |first, call| {
            let ticker = self.ticker(ids[0], &call);
            first.or(ticker)
        })
    }

    fn ticker(&mut self, id: &str, call: &Call<'_>) -> Option<Ticker> {
        let (fetched, kept) = self.ask(call)?;
        let count = kept.tickers.len();
        say!(self.report, "  tickers: {count}");
        if let Call::Several { ids } = call
            && count < ids.len()
            && self.bodies.is_empty()
        {
            let what = "tickers came: check the target and `between`";
            self.report.wrong(format_args!("{count} of {} {what}", ids.len()));
        }
        let is_it = |(found, _): &&(String, Ticker)| id.is_empty() || found == id;
        let Some((id, ticker)) = kept.tickers.iter().find(is_it) else {
            let firsts = |ids: &mut dyn Iterator<Item = &String>| {
                let firsts: Vec<&str> = ids.take(SHOWN).map(String::as_str).collect();
                if firsts.is_empty() { "none".to_owned() } else { firsts.join(", ") }
            };
            let mut seen = kept.tickers.iter().map(|(id, _)| id).chain(&kept.others);
            let (seen, mut listed) = (firsts(&mut seen), self.listed.keys().collect::<Vec<_>>());
            listed.sort();
            let listed = firsts(&mut listed.into_iter());
            let why = format_args!(
                "{id} is not among them: the first are {seen}, and those of the list {listed}"
            );
            self.report.fail("the ticker", why);
            return None;
        };
        let wanted = if let Call::Ticker { .. } = call { "" } else { id };
        self.report.explain(&kept, "id", wanted);
        let time = ticker.timestamp.or(kept.stamp);
        let ticker = Ticker { timestamp: time, ..ticker.clone() };
        self.report.judge_ticker("read", &ticker);
        let what =
            "no time is at `stamp`: it is read outside of the items, or as a member among them";
        self.report.doubt(time.is_none() && self.dialect.has_stamp(call), what);
        let age = time.map_or(0, |time| fetched.sent.unix.0 + self.offset_ms - time.0);
        if age.abs() > DAY_MS && self.bodies.is_empty() || time.is_some_and(is_absurd) {
            let what = "is more than a day away from the clock: check tickers.time";
            self.report.wrong(format_args!("timestamp {} {what}", or_null(&time)));
        }
        Some(ticker)
    }

    /// Requests the candles of ten slots, this many slots ago.
    fn candles(&mut self, market: &MarketInfo, interval: Stored, behind: i64) {
        let now = UnixMs(self.fetcher.now().unix.0 + self.offset_ms);
        let (length, newest) = (interval.length_ms(), interval.slot_of(now) - behind);
        let (from, to) = (UnixMs((newest - CANDLES) * length), UnixMs((newest - 1) * length));
        let call = Call::Candles {
            id: market.candle_id.as_deref().unwrap_or(&market.ticker_id),
            interval,
            from,
            to,
            now,
        };
        let Some((_, kept)) = self.ask(&call) else {
            return;
        };
        if behind > 0 && kept.candles.is_empty() {
            return say!(self.report, "  no candle: perhaps the market is younger");
        }
        // The time of a recording is not known.
        let asked = self.bodies.is_empty().then_some((from, to));
        self.report.judge_candles(&kept, interval, asked);
    }
}

/// The name of a call in `--body`.
fn name_of(call: &Call<'_>) -> &'static str {
    match call {
        Call::Time => "time",
        Call::Markets { .. } | Call::MarketsOf { .. } => "markets",
        Call::Tickers => "tickers",
        Call::Several { .. } | Call::Ticker { .. } => "ticker",
        Call::Stats { .. } => "stats",
        Call::Candles { interval, .. } => interval.name(),
    }
}
