//! Configurations that are read again while clients ask and exchanges answer.
//!
//! Owns what has come of the sources: which of them are configured, and the place of each in the daemon's
//! list. Settings change, sources that clients know come and go and come back, others come and go that
//! nobody can reach and that track nothing. One exchange has two names, and one of them at a time. What
//! holds from when on is told to those who judge answers at the very moment at which the daemon takes it in,
//! and all of them go on judging.

use super::ledger::Selection;
use super::trace::{ms, us};
use super::truth::Brain;
use super::weather::SECOND;
use super::world::{Event, World};
use crate::support::Rng;
use marketd::config::{Config, Depth, Poll, SourceConfig, Url};
use std::net::SocketAddr;

/// The network of the sources that come and go.
const ADDED: &str = "10.77.0.";

/// The assets of which a source may track all that is quoted in them.
const QUOTE_ASSETS: [&[&str]; 5] = [&["*"], &["*"], &["USDT"], &["USDT", "EUR"], &["BTC"]];

#[derive(Debug, Default)]
pub struct Reload {
    /// Whether all that may change does, also what answers show.
    pub is_restless: bool,
    /// Whether one comes in the middle of this turn.
    pub is_soon: bool,
    /// True in the turn in which one was taken in: requests to exchanges have ended.
    pub is_new: bool,
    /// By source: whether it is configured.
    pub is_there: Vec<bool>,
    /// Sources that come and go, which nobody can reach.
    added: [bool; 4],
    /// The ids of all sources that the daemon has known, in its order.
    places: Vec<String>,
    /// The configuration of the begin.
    first: Option<Box<(Config, Vec<bool>)>>,
}

/// A configuration to come.
#[derive(Debug)]
struct Next {
    /// With the settings of all sources, also of those that are not there.
    config: Config,
    is_there: Vec<bool>,
    added: [bool; 4],
    /// What the file says.
    file: Config,
}

/// True for the address of a source that comes and goes.
pub fn is_added(address: SocketAddr) -> bool {
    address.ip().to_string().starts_with(ADDED)
}

fn added_source(at: usize) -> SourceConfig {
    SourceConfig {
        id: format!("added-{at}"),
        url: Url::parse(&format!("http://{ADDED}{}", at + 1)).ok(),
        quote_assets: vec!["NOBODY".to_string()],
        ..SourceConfig::new("binance")
    }
}

/// The configuration without the sources that are not there.
pub fn file(config: &Config, is_there: &[bool]) -> Config {
    let mut file = config.clone();
    let mut is_there = is_there.iter();
    file.sources.retain(|_| is_there.next() == Some(&true));
    file
}

/// What a source is to track.
pub fn selection(source: &SourceConfig, brain: &Brain) -> Selection {
    let all = || brain.markets.iter().enumerate();
    let named = all().filter(|(_, market)| source.symbols.contains(&market.symbol()));
    let is_all = source.symbols.is_empty() && source.quote_assets.is_empty()
        || source.quote_assets.iter().any(|asset| asset == "*");
    let wanted =
        all().filter(|(_, it)| is_all || source.quote_assets.iter().any(|asset| asset == it.quote));
    Selection {
        named: named.map(|(at, _)| at).collect(),
        wanted: wanted.map(|(at, _)| at).collect(),
    }
}

impl Reload {
    /// Nothing was read again yet.
    pub fn new(config: &Config, is_there: Vec<bool>, is_restless: bool) -> Reload {
        let ids = file(config, &is_there).sources.into_iter();
        Reload {
            is_restless,
            places: ids.map(|source| source.id).collect(),
            first: Some(Box::new((config.clone(), is_there.clone()))),
            is_there,
            ..Reload::default()
        }
    }

    /// The place of a source in the daemon's list, which is the order of failover: one that comes later is
    /// behind the others.
    pub fn place_of(&self, id: &str) -> Option<usize> {
        self.places.iter().position(|it| it == id)
    }

    /// The daemon has died, and begins anew with what was configured last.
    pub fn next_life(self, config: &Config) -> Reload {
        Reload { first: self.first, ..Reload::new(config, self.is_there, self.is_restless) }
    }
}

/// Plans some reloads until then. The last one brings back what there was.
pub fn plan(world: &mut World, until: u64, rng: &mut Rng) {
    let most = if world.reload.is_restless { 25 } else { 12 };
    if !world.reload.is_restless && rng.chance(1, 2) {
        return;
    }
    for _ in 0..1 + rng.below(most) {
        let after = rng.below(until);
        world.after(after, Event::Reload(false));
        // Some come together.
        if rng.chance(1, 3) {
            world.after(after + rng.below(3) * 200, Event::Reload(false));
        }
    }
    world.after(until + SECOND / 10, Event::Reload(true));
}

impl World {
    /// The source at a place.
    pub fn source_at(&self, place: usize) -> usize {
        let id = &self.reload.places[place];
        let source = self.config.sources.iter().position(|it| it.id == *id);
        source.expect("nobody looks up an added source")
    }

    /// The configuration is read again.
    pub fn reload(&mut self, is_last: bool) {
        self.reload.is_soon = false;
        let now = self.clocks();
        if self.stopped_at.is_some() {
            let file = file(&self.config, &self.reload.is_there);
            if self.core.reconfigure(file, Vec::new(), || (), now).is_ok() {
                self.fail("a reload after the end has begun");
            }
            return;
        }
        let next = match is_last {
            true => {
                self.reload.is_restless = false;
                self.former()
            }
            false => self.changed(),
        };
        let (is_there, added) = (&next.is_there, next.added);
        self.note(format!("a reload with sources {is_there:?} and added {added:?}"));
        let reloaded = self.core.reconfigure(next.file.clone(), Vec::new(), || (), now);
        self.check(reloaded, &|| "a reload".to_string());
        self.woken = true;
        self.take_in(next);
    }

    /// What there was at the begin.
    fn former(&mut self) -> Next {
        let (config, is_there) = (self.reload.first.as_deref().cloned()).expect("it has begun");
        let added = [false; 4];
        Next { file: file(&config, &is_there), config, is_there, added }
    }

    /// Something else than now.
    fn changed(&mut self) -> Next {
        let mut config = self.config.clone();
        let mut is_there = self.reload.is_there.clone();
        for (at, source) in config.sources.iter_mut().enumerate() {
            self.change_quietly(at, source);
            if self.reload.is_restless {
                self.change_source(source);
            }
        }
        config.limits.head_fields = *self.rng.pick(&[64, 100]);
        config.limits.input_total = *self.rng.pick(&[16 << 20, 32 << 20]);
        if self.reload.is_restless {
            self.change_limits(&mut config);
            for it in &mut is_there {
                *it ^= self.rng.chance(1, 4);
            }
            // One exchange has one of its names at a time, and sometimes changes it.
            if let [_, _, one, other] = &mut is_there[..] {
                *other &= !*one;
                if self.rng.chance(1, 3) {
                    std::mem::swap(one, other);
                }
            }
            if !is_there.contains(&true) {
                is_there[0] = true;
            }
        }
        let added = self.reload.added.map(|_| self.rng.chance(1, 2));
        let mut file = file(&config, &is_there);
        let coming = (0..added.len()).filter(|at| added[*at]).map(added_source);
        file.sources.extend(coming);
        // Another order is told in the log, and changes nothing.
        if self.rng.chance(1, 4) {
            let is_known = |it: &SourceConfig| self.reload.places.contains(&it.id);
            let count = file.sources.iter().take_while(|it| is_known(it)).count();
            file.sources[..count].reverse();
        }
        // These hold until the end.
        if self.rng.chance(1, 4) {
            let (keep, backfill) = (self.rng.between(1, 5000), 0);
            file.history.m1 = Depth { keep, backfill };
            file.limits.max_connections += 1;
            file.limits.connections_per_source = 1 + file.limits.connections_per_source % 3;
        }
        Next { file, config, is_there, added }
    }

    /// What no answer shows.
    fn change_quietly(&mut self, at: usize, source: &mut SourceConfig) {
        match self.rng.below(8) {
            // The same markets, in other words: the list is read again.
            0 if source.quote_assets == ["*"] => source.quote_assets.push("USDT".to_string()),
            0 | 1 if source.quote_assets.starts_with(&["*".to_string()]) => {
                source.quote_assets.truncate(1);
            }
            2 => source.symbols.reverse(),
            3 if at < 2 => {
                let url = source.url.as_mut().expect("every source has one");
                url.host = format!("{}x", &url.host[..url.host.len().min(40)]);
            }
            4 => source.timeout = ms(*self.rng.pick(&[1000, 3000, 5000])),
            _ => {}
        }
    }

    /// What a source tracks, how often it is polled, and how its quotes age.
    fn change_source(&mut self, source: &mut SourceConfig) {
        match self.rng.below(8) {
            0 => {
                let assets = self.rng.pick(&QUOTE_ASSETS);
                source.quote_assets = assets.iter().map(ToString::to_string).collect();
            }
            1 => {
                let count = self.symbols.len() as u64;
                let mut symbols: Vec<String> = (0..self.rng.below(4))
                    .map(|_| self.symbols[self.rng.below(count) as usize].clone())
                    .collect();
                symbols.sort();
                symbols.dedup();
                source.symbols = symbols;
                if !source.symbols.is_empty() && self.rng.chance(1, 3) {
                    source.quote_assets.clear();
                }
            }
            2 => {
                source.poll = Poll::Every(ms(*self.rng.pick(&[500, 1000, 2000, 3000, 5000, 9000])))
            }
            3 => {
                source.stale_after = source.poll.usual() * (2 + self.rng.below(6) as u32);
                source.frozen_after = match self.rng.chance(1, 2) {
                    true => source.poll.usual() * (3 + self.rng.below(20) as u32),
                    false => ms(100_000_000),
                };
            }
            _ => {}
        }
    }

    fn change_limits(&mut self, config: &mut Config) {
        let (limits, rng) = (&mut config.limits, &mut self.rng);
        match rng.below(11) {
            0 => limits.idle_timeout = ms(*rng.pick(&[3000, 15_000, 40_000])),
            1 => limits.write_timeout = ms(*rng.pick(&[2000, 10_000])),
            2 => limits.head_timeout = ms(*rng.pick(&[1000, 4000, 10_000])),
            3 => limits.body_timeout = ms(*rng.pick(&[1000, 10_000])),
            4 => limits.linger = ms(*rng.pick(&[0, 500, 2000])),
            5 => limits.chart_wait = ms(*rng.pick(&[0, 300, 2000])),
            6 => limits.backoff_max = ms(*rng.pick(&[2000, 10_000, 30_000])),
            7 => {
                limits.requests_per_minute = *rng.pick(&[0, 20, 600]);
                limits.request_burst = *rng.pick(&[1, 4, 30]);
            }
            8 => {
                limits.candle_series = *rng.pick(&[3, 12, 600]);
                limits.candle_bytes = *rng.pick(&[65_536, 32 << 20]);
            }
            9 => limits.streams = *rng.pick(&[0, 1, 3, 1000]),
            _ => {
                limits.deferred_responses = *rng.pick(&[1, 3, 16]);
                limits.chart_fetches = *rng.pick(&[1, 4, 256]);
            }
        }
    }

    /// Tells those who judge what the daemon has taken in.
    fn take_in(&mut self, next: Next) {
        let now = self.now;
        self.note("the reload is taken in".to_string());
        for source in &next.file.sources {
            if !self.reload.places.contains(&source.id) {
                self.reload.places.push(source.id.clone());
            }
        }
        let limits = &next.config.limits;
        let series = 3 * self.symbols.len() * self.config.sources.len();
        for (at, new) in next.config.sources.iter().enumerate() {
            let (old, ledger) = (&self.config.sources[at], &mut self.ledgers[at]);
            ledger.place = self.reload.place_of(&new.id).unwrap_or(usize::MAX);
            let selection = selection(new, &self.exchanges[at].truth.brain);
            let is_other = old.symbols != new.symbols || old.quote_assets != new.quote_assets;
            match (self.reload.is_there[at], next.is_there[at]) {
                (true, false) => ledger.end(now),
                (false, true) => {
                    ledger.begin(selection, now);
                    self.schedules[at].begin(now);
                    if let (2 | 3, Some(other)) = (at, self.schedules.get(5 - at)) {
                        let other = other.clone();
                        self.schedules[at].heed(&other);
                    }
                }
                (true, true) if is_other => ledger.select(selection, now),
                _ => {}
            }
            let host = |source: &SourceConfig| source.url.as_ref().map(|url| url.host.clone());
            if host(old) != host(new) {
                // It is another exchange as far as anyone can see, with a budget of its own.
                self.schedules[at].not_before = 0;
                self.exchanges[at].scale.borrow_mut().since = now;
            }
            ledger.set_ages(us(new.stale_after), us(new.frozen_after), now);
            ledger.has_left |= limits.candle_series < series;
            self.schedules[at].reconfigure(us(new.poll.usual()), us(limits.backoff_max), now);
        }
        let old = &self.config.limits;
        let rates = |it: &marketd::config::Limits| (it.requests_per_minute, it.request_burst);
        if rates(old) != rates(limits) {
            self.allowances.clear();
            self.rates_since = now;
        }
        self.past_limits.push(old.clone());
        self.config = next.config;
        (self.reload.is_there, self.reload.added) = (next.is_there, next.added);
        self.reload.is_new = true;
    }
}
