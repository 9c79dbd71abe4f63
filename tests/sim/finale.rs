//! How each run ends: the weather clears and the clients leave, and all must be well again; or
//! the daemon is told to stop in the middle of it.

use super::answers::{Answer, chart_fields};
use super::charts::{ChartAsk, read_rows};
use super::client::{Nature, Stage};
use super::grammar::{Ask, Kind};
use super::ledger::Words;
use super::lists::List;
use super::quotes::kept;
use super::setup::add_client;
use super::trace::us;
use super::truth::REREAD;
use super::udf::{Found, Page, UdfAsk};
use super::weather::SECOND;
use super::wire::{Link, Peer};
use super::world::World;
use crate::support::naive::{INTERVALS, STORED, base_of, candle_at, length_ms};
use crate::support::{Json, Rng};

impl World {
    /// The end: in some of so many runs in the middle of it.
    pub fn end(&mut self, some: u64, of: u64, rng: &mut Rng) {
        match rng.chance(some, of) {
            true => self.stop(rng, false),
            false => self.recover_and_stop(rng),
        }
    }

    /// All is well again, for everybody; then the end, in order.
    fn recover_and_stop(&mut self, rng: &mut Rng) {
        if let Some(disk) = &mut self.disk {
            disk.calm = true;
        }
        self.is_calm = true;
        for exchange in &mut self.exchanges {
            exchange.truth.freeze = None;
            exchange.dribbles = false;
        }
        self.expect_ok(rng);
        self.expect_quotes(rng);
        self.expect_charts(rng);
        self.expect_history(rng);
        self.expect_nobody(rng);
        self.stop(rng, true);
    }

    /// A client that asks for one thing, and its answer.
    fn ask(&mut self, target: &str, kind: Kind, rng: &mut Rng) -> Answer {
        let side = self.service_at(target);
        let nature = Nature { requests: 1, pause: 100, think: 100, ..Nature::plain(side) };
        let at = add_client(self, nature, 0, rng);
        self.clients[at].only = Some(Ask::plain(target.to_string(), kind));
        let limit = self.now + 10 * SECOND;
        while self.clients[at].talk.last.is_none() {
            if self.now >= limit {
                self.fail(&format!("{target} is not answered in ten seconds"));
            }
            self.step(limit);
        }
        // It leaves.
        self.run_until(self.now + SECOND / 100);
        self.clients[at].talk.last.take().expect("it is there")
    }

    fn ask_json(&mut self, target: &str, kind: Kind, rng: &mut Rng) -> (u16, Json) {
        // Listeners stay for ever. Where they take all places, nobody is told more than the health.
        let is_full = self.clients_open() >= self.config.limits.max_connections;
        if is_full && !matches!(kind, Kind::Health) {
            self.dismiss_listeners();
            self.run_until(self.now + SECOND);
        }
        let answer = self.ask(target, kind, rng);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        match Json::parse(&text) {
            Ok(json) => (answer.status, json),
            Err(why) => self.fail(&format!("{target}: {why} in {text}")),
        }
    }

    /// Within one step of the back-off and one poll, once what was under way has ended.
    fn expect_ok(&mut self, rng: &mut Rng) {
        let slowest = |world: &World| {
            let sources = world.config.sources.iter().zip(&world.schedules);
            let begin = sources.map(|(source, schedule)| {
                let begin = schedule.not_before.max(world.now + 4 * us(source.timeout));
                begin + us(source.poll.usual()) + us(source.timeout)
            });
            // Writes that failed are tried again.
            let disk = world.disk.as_ref().map_or(0, |_| 90 * SECOND);
            // So long rests a series whose requests have failed, when others did not.
            let rest = us(world.config.limits.backoff_max).max(64 * SECOND);
            let slack = rest + 5 * SECOND + disk;
            begin.max().unwrap_or(0) + slack
        };
        let limit = slowest(self);
        loop {
            let is_full = self.clients_open() >= self.config.limits.max_connections;
            if is_full {
                self.dismiss_listeners();
            }
            let (status, health) = self.ask_json("/health", Kind::Health, rng);
            if status == 200 && health["status"] == "ok" && !is_full {
                return;
            }
            if self.now > limit && !is_full {
                let (_, metrics) = self.ask_json("/api/v1/metrics", Kind::Metrics, rng);
                self.fail(&format!("health is still {health}; {metrics}"));
            }
            self.run_until(self.now + SECOND);
        }
    }

    /// Every tracked market has a fresh quote.
    fn expect_quotes(&mut self, rng: &mut Rng) {
        let polls = self.config.sources.iter().map(|source| us(source.poll.usual()));
        let poll_us = polls.max().unwrap_or(0);
        let begin = self.now;
        self.run_until(begin + 2 * poll_us + SECOND);
        // What a reload has changed may be found late, a list that it has asked for come late, and quotes of
        // what is new in it after that.
        let limit = self.now + 60 * SECOND;
        let is_behind = |world: &World, at: usize| {
            let listed = world.ledgers[at].listed_at();
            world.reload.is_there[at] && world.schedules[at].answered <= Some(listed.max(begin))
        };
        while (0..self.ledgers.len()).any(|at| is_behind(self, at)) && self.now < limit {
            self.run_until(self.now + SECOND);
        }
        let (target, kind) = Kind::whole(List::Quotes, false);
        let (_, all) = self.ask_json(&target, kind, rng);
        // One that has only just come back was not polled yet.
        let settled_ms = poll_us as i64 / 1000 * 3 + 10_000;
        // Lists are read hourly: a market may have left that the daemon still tracks.
        let has = |source: usize, market: usize| {
            let truth = self.truth(source);
            let clock = truth.clock(self.now);
            let stays = truth.change(market, clock) == truth.change(market, clock - settled_ms);
            let there = stays && truth.state(market, clock) == Some(true);
            there && self.ledgers[source].tracked().contains(&market)
        };
        let is_there = |at: &usize| self.reload.is_there[*at];
        let sources = (0..self.ledgers.len()).filter(is_there);
        for quote in all["quotes"].items() {
            let market = self.symbols.iter().position(|s| quote["symbol"] == s.as_str());
            let listed = market.is_some_and(|market| sources.clone().all(|at| has(at, market)));
            if listed && quote["stale"] != Json::Bool(false) {
                self.fail(&format!("all is well, and it is stale: {quote}"));
            }
        }
        for market in 0..self.symbols.len() {
            let symbol = self.symbols[market].clone();
            let shown = all["quotes"].items().iter();
            let shown = shown.filter(|quote| quote["symbol"] == symbol.as_str());
            if sources.clone().any(|at| has(at, market)) && shown.count() != 1 {
                self.fail(&format!("all is well, and there is no quote of {symbol}"));
            }
        }
    }

    /// The charts of named markets fill up, and are what the exchange would say, once its clock
    /// is known.
    fn expect_charts(&mut self, rng: &mut Rng) {
        let limit = self.now + 150 * SECOND;
        while !self.ledgers[0].has_clock() && self.now < limit {
            self.run_until(self.now + SECOND);
        }
        if !self.ledgers[0].has_clock() {
            self.fail("all is well, and nobody has asked for the exchange's clock");
        }
        if self.holds_little() {
            return;
        }
        for interval in STORED {
            let length = length_ms(interval).expect("stored");
            for (from, to) in [self.newest(length), self.unsettled(interval)] {
                if from > to {
                    continue;
                }
                let range = (Some(from * length), Some(to * length));
                let ask = ChartAsk { source: Some(0), ..ChartAsk::of(0, interval, range) };
                if self.expect_truth(ask, rng) {
                    self.expect_all_forms(interval, (from, to), rng);
                }
            }
        }
    }

    /// A charting library that goes to the left comes to the end of what there is: each page that it gets is
    /// judged, and none is an error for ever.
    fn expect_history(&mut self, rng: &mut Rng) {
        if !cfg!(feature = "page") || self.holds_little() || rng.chance(1, 2) {
            return;
        }
        let interval = *rng.pick(&INTERVALS);
        let mut page = Page {
            market: 0,
            source: 0,
            interval,
            from: None,
            to: self.moment().unix_ms / 1000 + 20_000 * 3600,
            countback: Some(100 + rng.below(900) as usize),
        };
        let limit = self.now + 2600 * SECOND;
        loop {
            let target = page.target(&self.grammar);
            let kind = Kind::Udf(UdfAsk::History(page.clone()));
            let (status, json) = self.ask_json(&target, kind, rng);
            match page.read(&json) {
                // Clients of before still take all places: it is to come back.
                Err(_) if status == 503 && self.now < limit => self.run_until(self.now + SECOND),
                Ok(Found::Bars(rows)) => page.to = rows.first().map_or(0, |row| row.0 / 1000),
                Ok(Found::NoData(None)) => return,
                Ok(Found::NoData(_) | Found::Error(_)) if self.now < limit => {
                    self.run_until(self.now + 7 * SECOND);
                }
                // What is not proven to be empty is passed over, as a library does. At the end of what is
                // known, it is told where to go on.
                Ok(Found::NoData(Some(next))) if next + 1 < page.to => page.to = next + 1,
                // There is no end yet as long as something is unknown.
                Ok(Found::NoData(Some(_))) if !self.knows_all_before(&page, rng) => return,
                Ok(Found::NoData(Some(_))) if self.now < limit + 60 * SECOND => {
                    self.run_until(self.now + 7 * SECOND);
                }
                other => self.fail(&format!("{target} is still {other:?}")),
            }
        }
    }

    /// Whether a chart from the oldest slot that is kept up to the last bar of a page says that it is complete.
    fn knows_all_before(&mut self, page: &Page, rng: &mut Rng) -> bool {
        let base = base_of(page.interval);
        let from = (self.oldest_kept(base) + 2) * length_ms(base).expect("stored");
        let to = candle_at(page.interval, (page.to - 1) * 1000).1;
        if from >= to {
            return false;
        }
        let ask = ChartAsk { source: Some(0), ..ChartAsk::of(0, base, (Some(from), Some(to - 1))) };
        let target = ask.target(&self.symbols[0].replace('/', "-"), "alpha");
        let answer = self.ask(&target, Kind::Chart(ask), rng);
        answer.field("Chart-Coverage").ok().flatten() == Some("complete")
            && answer.field("Link").ok().flatten().is_none()
    }

    /// Whether memory has no room for the candles of a run.
    fn holds_little(&self) -> bool {
        self.config.limits.candle_series < 12 || self.config.limits.candle_bytes < 1_000_000
    }

    fn present(&self, length: i64) -> i64 {
        self.truth(0).clock(self.now).div_euclid(length)
    }

    /// The newest slots that are final soon.
    fn newest(&self, length: i64) -> (i64, i64) {
        let present = self.present(length);
        (present - 30, present - REREAD - 1)
    }

    /// From the first to the last slot whose row is not final as it was last told, though it is by
    /// now, of those that are kept for a while.
    fn unsettled(&self, interval: &'static str) -> (i64, i64) {
        let length = length_ms(interval).expect("stored");
        let truth = self.truth(0);
        let kept = self.oldest_kept(interval) + 30..self.present(length) - REREAD;
        let candles = self.ledgers[0].candles.get(&(0, interval));
        let said = candles.into_iter().flat_map(|candles| &candles.said);
        let is_wrong = |(slot, words): &(&i64, &Words)| {
            let row = words.last().map(|(_, _, row)| row);
            kept.contains(slot) && truth.row(0, interval, **slot).as_ref() != row
        };
        let mut wrong = said.filter(is_wrong).map(|(slot, _)| *slot);
        let Some(first) = wrong.next() else {
            return (0, -1);
        };
        (first, wrong.next_back().unwrap_or(first))
    }

    /// The oldest slot that is kept.
    fn oldest_kept(&self, interval: &'static str) -> i64 {
        let length = length_ms(interval).expect("stored");
        self.present(length) - kept(&self.config.history, interval)
    }

    /// Sooner or later a chart is complete, and then it is what the exchange has, unless it has become older
    /// than what is kept meanwhile. Answers whether it is complete, and newer candles prove what it lacks.
    fn expect_truth(&mut self, ask: ChartAsk, rng: &mut Rng) -> bool {
        let (from, to) = (ask.from.unwrap_or(0), ask.to.unwrap_or(0));
        let symbol = self.symbols[0].replace('/', "-");
        let interval = ask.interval;
        let target = ask.target(&symbol, "alpha");
        // A series whose candles could not be had rests for up to ten minutes, and what was told
        // unsoundly is asked again after as long. Quotes that contradict an empty slot are outweighed by ten
        // answers over an hour, each up to ten minutes after the one before.
        let limit = self.now + (1300 + 5400) * SECOND;
        // That candles are missing is proven by newer ones alone. Until then, candles made of quotes are
        // shown there.
        let length = length_ms(interval).expect("stored");
        let truth = self.truth(0);
        let newer = to / length + 1..=self.present(length);
        let is_provable = newer.into_iter().any(|slot| truth.row(0, interval, slot).is_some());
        loop {
            let answer = self.ask(&target, Kind::Chart(ask.clone()), rng);
            let coverage = answer.field("Chart-Coverage").unwrap_or_default();
            let difference = self.difference(&answer, &ask, is_provable);
            let is_right = (coverage == Some("complete") || !is_provable) && difference.is_none();
            let is_old = from / length <= self.oldest_kept(interval);
            if is_right || is_old {
                return is_right && is_provable && !is_old;
            }
            if self.now > limit {
                // Every candle is there, and a slot without one is not proven to be empty: the chart says
                // so, and that is true.
                if coverage == Some("partial") && difference.is_none() {
                    return false;
                }
                let head = &answer.headers;
                self.fail(&format!("{target} is still {head:?}: {difference:?}"));
            }
            self.run_until(self.now + 31 * SECOND);
        }
    }

    /// Whichever part of slots that are all known is asked for, in whichever form: each candle of it is told,
    /// and that it is all. What is told besides is judged like every answer.
    fn expect_all_forms(&mut self, base: &'static str, (first, last): (i64, i64), rng: &mut Rng) {
        let length = length_ms(base).expect("stored");
        let intervals = INTERVALS.into_iter().filter(|it| base_of(it) == base);
        let intervals: Vec<&str> = intervals.collect();
        for _ in 0..8 {
            let interval = *rng.pick(&intervals);
            let ends = [first, last + 1].map(|end| rng.between(first, last).midpoint(end) * length);
            // The last candle of the range ends with it.
            let to = candle_at(interval, ends[1]).0 - 1;
            let from = Some(ends[0]).filter(|_| rng.chance(2, 3));
            let begin = from.unwrap_or(first * length);
            let opens = std::iter::successors(Some(candle_at(interval, begin - 1).1), |open| {
                Some(candle_at(interval, *open).1)
            });
            let opens: Vec<i64> = opens.take_while(|open| *open <= to).collect();
            let is_traded = |open: &i64| {
                let (open, end) = candle_at(interval, *open);
                (open / length..end / length).any(|slot| self.truth(0).traded(0, base, slot))
            };
            let fill = rng.chance(1, 3);
            let mut wanted = opens.clone();
            wanted.retain(|open| fill || is_traded(open));
            // Candles before the first one of the range may be filled from one before it.
            let unfilled = opens.iter().position(is_traded).unwrap_or(opens.len());
            let newest = opens.iter().copied().rfind(is_traded);
            let limit = 1 + rng.below(12) as usize;
            let is_open = from.is_none() && (wanted.len() < limit || fill && unfilled > 0);
            if opens.is_empty() || is_open {
                continue;
            }
            let (text, source) = (rng.chance(1, 3), Some(0));
            let ask = ChartAsk::of(0, interval, (from, Some(to)));
            let ask = ChartAsk { limit, fill, text, source, ..ask };
            let target = ask.target(&self.symbols[0].replace('/', "-"), "alpha");
            let answer = self.ask(&target, Kind::Chart(ask), rng);
            if answer.status != 200 {
                continue;
            }
            let rows = read_rows(&answer.body, text).unwrap_or_else(|why| self.fail(&why));
            let shown: Vec<i64> = rows.iter().map(|row| row.0).collect();
            let is_part = |wanted: &[i64]| match from {
                Some(_) => shown == wanted[..wanted.len().min(limit)],
                None => shown == wanted[wanted.len() - limit..],
            };
            let wanted = match is_part(&wanted) || !fill {
                true => &wanted,
                false => &opens[unfilled..],
            };
            let is_cut = from.is_some() && shown.last() < wanted.last();
            let fields = chart_fields(&answer.headers).unwrap_or_else(|why| self.fail(&why));
            let is_all = fields.complete && fields.last_closed >= newest;
            let led_to = |name: &str| {
                let value = fields.next.as_deref()?.split(name).nth(1)?;
                value.split(['&', '>']).next()?.parse::<i64>().ok()
            };
            let leads_on = |begin| {
                let is_next = wanted.get(shown.len()).is_some_and(|next| begin <= *next);
                is_next && shown.last() < Some(&begin) && led_to("&to=") == Some(to)
            };
            let leads_on = led_to("&from=").map(leads_on);
            if !is_part(wanted) || !is_all || leads_on != is_cut.then_some(true) {
                self.fail(&format!("{target} is {shown:?} and not of {wanted:?}: {fields:?}"));
            }
        }
    }

    /// The first row that is not what was really traded: as shown, and as it is. An answer without rows
    /// (503 while the candles of the source rest) differs as a whole. Unless it `is_provable` that no trade was
    /// made in a slot, a candle of this slot is no difference.
    fn difference(&self, answer: &Answer, ask: &ChartAsk, is_provable: bool) -> Option<String> {
        if answer.status != 200 {
            return Some(format!("no chart but {}", answer.status));
        }
        let rows = read_rows(&answer.body, false);
        let rows = rows.unwrap_or_else(|why| self.fail(&why));
        let truth = self.truth(0);
        let length = length_ms(ask.interval).expect("stored");
        let range = ask.from.unwrap_or(0) / length..=ask.to.unwrap_or(0) / length;
        range.into_iter().find_map(|slot| {
            let right = truth.row(0, ask.interval, slot);
            let right = right.as_ref().map(|row| row.figures());
            let shown = rows.iter().find(|(open, _)| *open == slot * length);
            let shown = shown.map(|(_, figures)| figures);
            let is_right = shown == right || (right.is_none() && !is_provable);
            (!is_right).then(|| format!("{slot}: {shown:?} is {right:?}"))
        })
    }

    /// When all clients have left, nothing of them is left.
    fn expect_nobody(&mut self, rng: &mut Rng) {
        let longest = (self.longest(|it| it.idle_timeout)).max(self.longest(|it| it.write_timeout));
        let longest =
            longest + self.longest(|it| it.head_timeout) + self.longest(|it| it.body_timeout);
        // Nobody begins anything new.
        for client in &mut self.clients {
            client.nature.requests = 0;
            if client.stage == Stage::Waiting {
                client.stage = Stage::Gone;
            }
        }
        self.backlog.clear();
        self.dismiss_listeners();
        // Who still takes an answer, however slowly, may stay so long.
        let patience = 2 * longest + self.longest(|it| it.chart_wait) + 10 * SECOND;
        let begin = self.now;
        let last_moved = |world: &World| {
            let clients = world.links.values();
            let clients = clients.filter(|link| matches!(link.peer, Peer::Client(_)));
            clients.map(|link| link.active).max().unwrap_or(begin)
        };
        while self.now < last_moved(self).max(begin) + patience {
            self.run_until(self.now + SECOND);
        }
        let deferred = self.core.deferred();
        if deferred != 0 {
            self.fail(&format!("all clients have left, and {deferred} responses are deferred"));
        }
        let sources = self.reload.is_there.iter().filter(|it| **it).count();
        let is_upstream = |link: &&Link| !matches!(link.peer, Peer::Client(_));
        let upstreams = self.links.values().filter(is_upstream).count();
        if upstreams > self.config.limits.connections_per_source * sources {
            self.fail(&format!("more connections than lanes: {upstreams}"));
        }
        let (_, metrics) = self.ask_json("/api/v1/metrics", Kind::Metrics, rng);
        let http = &metrics["http"];
        let streams = &metrics["streams"];
        if streams["open"] != 0 {
            self.fail(&format!("all clients have left, and metrics say {streams}"));
        }
        if http["inFlight"] != 0 || http["connectionsOpen"] != 1 {
            self.fail(&format!("all clients have left, and metrics say {http}"));
        }
    }

    /// The daemon is told to stop: it is over in time, and at once where nobody keeps it.
    fn stop(&mut self, rng: &mut Rng, calm: bool) {
        let waits = !calm || rng.chance(1, 2);
        if waits && calm {
            let sides = self.services();
            for _ in 0..1 + rng.below(6) {
                let nature = Nature::any(rng, sides);
                add_client(self, nature, rng.below(SECOND), rng);
            }
            self.run_until(self.now + rng.below(2 * SECOND));
        }
        let now = self.clocks();
        self.note("told to stop".to_string());
        self.stopped_at = Some(self.now);
        self.core.shut_down(now);
        self.reload(false);
        // The listeners are gone.
        self.backlog.clear();
        for at in 0..self.clients.len() {
            if self.clients[at].stage == Stage::Waiting {
                self.clients[at].stage = Stage::Gone;
            }
        }
        self.carry_out();
        // The last batch is written, and the file closed.
        let disk = self.disk.as_ref().map_or(0, |_| 45 * SECOND);
        let slack = 50_000 + self.stall + disk;
        let limit = self.now + us(self.config.limits.shutdown) + slack;
        let mut alone_since = self.now;
        while self.now < limit && !self.core.is_finished() {
            self.step(limit.min(self.now + 50_000));
            if self.clients_open() > 0 {
                alone_since = self.now;
            } else if self.now > alone_since + 50_000 + slack && !self.core.is_finished() {
                self.fail("told to stop, all clients have left, and it is not over");
            }
        }
        if !self.core.is_finished() {
            self.fail("told to stop, and it is not over in time");
        }
    }
}
