//! A world of a seed: what is configured, who comes when, and how the exchanges feel.

use super::client::{Client, Nature};
use super::disk::{self, Disk};
use super::exchange::Exchange;
use super::grammar::Grammar;
use super::ledger::Ledger;
use super::listeners::add_listeners;
use super::reload::{self, Reload};
use super::trace::{ms, us};
use super::truth::{Brain, Habits, ListChange, Truth};
use super::udf::Adapter;
use super::watch::Schedule;
use super::weather::{Places, SECOND, Weather};
use super::world::{Event, World};
use crate::support::Rng;
use marketd::config::{Config, Data, Depth, HistoryConfig, Limits, Poll, SourceConfig, Url};
use marketd::core::{Core, ProcessFacts};
use marketd::time::{Mono, Now, UnixMs};
use std::net::Ipv4Addr;
use std::rc::Rc;

/// When runs begin: shortly before something turns, by the exchange's clock.
const BEGINS: [i64; 5] = [
    // 2026-11-20T11:58:30Z, an hour.
    1_795_175_910_000,
    // 2026-11-29T23:58:30Z, a Sunday: a week.
    1_795_996_710_000,
    // 2026-12-31T23:58:30Z, a year.
    1_798_761_510_000,
    // 2028-02-29T23:58:30Z, a leap month.
    1_835_481_510_000,
    // 2026-11-20T04:13:00Z, nothing but minutes.
    1_795_147_980_000,
];

const HOUR_MS: i64 = 3_600_000;

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Clients of all kinds, and an exchange as it may be.
    Clients,
    /// Exchanges of all kinds, and some clients.
    Exchanges,
    /// A market of hundreds of symbols.
    Wide,
    /// The same for hours, so that its list is read again.
    WideAndLong,
    /// Hours, in which market lists change.
    Long,
    /// Clients of all kinds, and a configuration that is read again and again.
    Reloads,
}

/// How long clients come and exchanges misbehave.
pub fn busy_time(theme: Theme, rng: &mut Rng) -> u64 {
    let seconds = match theme {
        Theme::Clients => 60 + rng.below(120),
        Theme::Exchanges => 100 + rng.below(200),
        Theme::Reloads => 40 + rng.below(100),
        Theme::Wide => 40 + rng.below(60),
        Theme::Long => 4000 + rng.below(9000),
        Theme::WideAndLong => 3610 + 3600 * rng.below(3),
    };
    seconds * SECOND
}

/// A world of that theme; things go wrong in it until then.
pub fn world(theme: Theme, until: u64, disk: Option<Disk>, rng: &mut Rng) -> World {
    let extra = match theme {
        Theme::Wide | Theme::WideAndLong => 300 + rng.below(300) as usize,
        _ => 0,
    };
    let brain = &Rc::new(Brain::new(1 + rng.below(2), extra));
    let config = config(theme, brain, rng);
    // Clocks differ: mostly by little, sometimes by minutes, and sometimes by hours.
    let skew = match rng.below(8) {
        0 => rng.between(-300_000, 300_000),
        1 => rng.between(-4 * HOUR_MS, 4 * HOUR_MS),
        _ => rng.between(-300, 300),
    };
    let begin = *rng.pick(&BEGINS) + rng.between(0, 9) * 1000;
    let unix_ms = begin + skew;
    let now = Now { mono: Mono(0), unix: UnixMs(unix_ms) };
    let is_restless = theme == Theme::Reloads;
    // Some come later.
    let is_there =
        |at: usize| !is_restless || at == 0 || at == 1 && (until / SECOND).is_multiple_of(2);
    let is_there: Vec<bool> = (0..config.sources.len()).map(is_there).collect();
    let core = core(&reload::file(&config, &is_there), disk.is_some(), now, rng);
    let grammar = grammar(&config, brain, begin, rng);
    let mut world = World::new(Rng::new(rng.next()), core, config, unix_ms, grammar);
    world.disk = disk;
    world.reload = Reload::new(&world.config, is_there, is_restless);
    if rng.chance(1, 4) {
        world.stall = 1000 * rng.below(60);
    }
    for source in 0..world.config.sources.len() {
        add_source(&mut world, theme, source, (brain, begin, until), rng);
        world.ledgers[source].remembers = world.disk.is_some();
    }
    super::lists::plan(&mut world, until, rng);
    peopled(world, theme, until, rng)
}

/// The same world with its clients, and all that happens to them.
fn peopled(mut world: World, theme: Theme, until: u64, rng: &mut Rng) -> World {
    add_clients(&mut world, theme, until, rng);
    add_listeners(&mut world, until, rng);
    add_clock_trouble(&mut world, until, rng);
    reload::plan(&mut world, until, rng);
    world.after(SECOND, Event::Look);
    world.carry_out();
    world
}

/// Clocks are set, or jump, and the machine sleeps.
fn add_clock_trouble(world: &mut World, until: u64, rng: &mut Rng) {
    let some_jump = |rng: &mut Rng| match rng.chance(1, 2) {
        true => rng.between(-90_000, 90_000),
        false => rng.between(-3 * HOUR_MS, 3 * HOUR_MS),
    };
    if rng.chance(1, 8) {
        let event = Event::SetClock(some_jump(rng));
        world.after(rng.below(until), event);
    }
    for source in 0..world.exchanges.len() {
        if rng.chance(1, 6) {
            let event = Event::Jump(source, some_jump(rng));
            world.after(rng.below(until), event);
        }
    }
    if rng.chance(1, 5) {
        let longest = *rng.pick(&[60_000, 3 * HOUR_MS, 3 * HOUR_MS, 40 * HOUR_MS]);
        let event = Event::Sleep(rng.between(2000, longest), rng.chance(1, 4));
        world.after(rng.below(until), event);
    }
}

/// The daemon has died, and begins anew after so many milliseconds, in the same world and with the same file.
pub fn next_life(old: World, theme: Theme, until: u64, away: u64, rng: &mut Rng) -> World {
    let passed = (old.now / 1000 + away) as i64;
    let unix_ms = old.unix_ms + passed;
    let now = Now { mono: Mono(0), unix: UnixMs(unix_ms) };
    let mut disk = old.disk.expect("there is a file");
    disk.survive();
    let file = reload::file(&old.config, &old.reload.is_there);
    let core = core(&file, true, now, rng);
    let mut grammar = old.grammar;
    grammar.now_ms += passed;
    let mut world = World::new(Rng::new(rng.next()), core, old.config, unix_ms, grammar);
    (world.told, world.happened) = (old.told, old.happened);
    world.reload = old.reload.next_life(&world.config);
    for (source, exchange) in old.exchanges.into_iter().enumerate() {
        let brain = exchange.truth.brain.clone();
        add_source(&mut world, theme, source, (&brain, 0, until), rng);
        let truth = &mut world.exchanges[source].truth;
        *truth = exchange.truth;
        truth.passes(passed);
        truth.freeze = None;
        let new = &mut world.ledgers[source];
        new.remembers = true;
        disk::remembered(&old.ledgers[source], new, &world.symbols, &disk);
    }
    world.disk = Some(disk);
    peopled(world, theme, until, rng)
}

/// A daemon that begins.
fn core(config: &Config, with_file: bool, now: Now, rng: &mut Rng) -> Core {
    let mut core = Core::new(config.clone(), None, ProcessFacts::default, rng.next(), now);
    if with_file {
        core.keep_history(Disk::opened(), now);
    }
    core
}

fn config(theme: Theme, brain: &Brain, rng: &mut Rng) -> Config {
    let sources = match theme {
        Theme::Reloads => 4,
        _ => 1 + usize::from(rng.chance(1, 3)),
    };
    let sources = (0..sources).map(|at| source_config(theme, brain, at, rng)).collect();
    let depth = |keep: i64, rng: &mut Rng| Depth { keep, backfill: rng.between(0, keep / 2) };
    let long = rng.chance(1, 4);
    let history = HistoryConfig {
        m1: depth(if long { 3000 } else { rng.between(60, 400) }, rng),
        h1: depth(rng.between(50, 500), rng),
        d1: depth(rng.between(40, 400), rng),
    };
    Config {
        ecosystem_listen: rng.chance(1, 6).then(|| super::driver::address_of(200, 0).into()),
        data: Data::Memory,
        sources,
        history,
        limits: limits(theme, rng),
        ..Config::default()
    }
}

fn source_config(theme: Theme, brain: &Brain, at: usize, rng: &mut Rng) -> SourceConfig {
    let symbols = brain.markets[..2].iter().map(|market| market.symbol());
    let poll = match theme {
        Theme::Long => 15_000 + rng.below(45_000),
        // Polls fall on the hours, when the list is read too.
        Theme::WideAndLong => 60_000,
        _ => *rng.pick(&[2000, 2000, 3000, 5000]),
    };
    SourceConfig {
        id: ["alpha", "beta", "gamma", "delta"][at].to_string(),
        // The last two are one exchange by two names.
        url: Url::parse(&format!("http://exchange-{}.test", at.min(2))).ok(),
        symbols: symbols.take(1 + rng.below(2) as usize).collect(),
        quote_assets: vec!["*".to_string()],
        poll: Poll::Every(ms(poll)),
        stale_after: ms(poll * (2 + rng.below(6))),
        frozen_after: ms(match rng.chance(1, 3) {
            true => poll * (3 + rng.below(20)),
            false => 100_000_000,
        }),
        timeout: ms(*rng.pick(&[1000, 3000, 5000])),
        ..SourceConfig::new("binance")
    }
}

fn limits(theme: Theme, rng: &mut Rng) -> Limits {
    let mut limits = Limits {
        connections_per_source: *rng.pick(&[1, 2, 3, 3, 3, 5]),
        head_timeout: ms(*rng.pick(&[1000, 4000, 10_000])),
        body_timeout: ms(*rng.pick(&[1000, 10_000])),
        idle_timeout: ms(*rng.pick(&[3000, 15_000, 40_000])),
        write_timeout: ms(*rng.pick(&[2000, 10_000])),
        linger: ms(*rng.pick(&[0, 500, 2000])),
        chart_wait: ms(*rng.pick(&[0, 300, 2000, 2000])),
        backoff_max: ms(*rng.pick(&[2000, 10_000, 30_000])),
        ..Limits::default()
    };
    if theme == Theme::Clients {
        limits.output_high_water = *rng.pick(&[1024, 3000, 65_536]);
        limits.max_connections = *rng.pick(&[3, 12, 16_384, 16_384]);
        limits.deferred_responses = *rng.pick(&[1, 3, 16]);
        limits.chart_fetches = *rng.pick(&[1, 4, 256]);
        limits.requests_per_connection = *rng.pick(&[1, 5, 10_000]);
        limits.body_bytes = *rng.pick(&[100, 5000, 65_536]);
        limits.request_line_bytes = *rng.pick(&[400, 8192]);
        limits.head_bytes = *rng.pick(&[900, 16_384]);
        // Less than a file may say: there are few clients.
        limits.output_total = *rng.pick(&[10_000, 60_000, 32 << 20, 32 << 20]);
        limits.compressed_bytes = *rng.pick(&[0, 3000, 50_000, 8 << 20, 8 << 20]);
        if rng.chance(1, 4) {
            limits.requests_per_minute = *rng.pick(&[1, 20, 600]);
            limits.request_burst = *rng.pick(&[1, 4, 30]);
        }
    }
    if rng.chance(1, 8) {
        limits.candle_series = 1 + rng.below(12) as usize;
    }
    if rng.chance(1, 8) {
        limits.candle_bytes = 65_536;
    }
    limits
}

fn grammar(config: &Config, brain: &Brain, begin: i64, rng: &mut Rng) -> Grammar {
    let mut grammar = Grammar {
        symbols: (brain.markets.iter()).map(|market| market.symbol()).collect(),
        sources: config.sources.iter().map(|s| s.id.clone()).collect(),
        categories: ["usdt", "btc", "eur"].map(String::from).to_vec(),
        now_ms: begin,
        limits: config.limits.clone(),
        bad: rng.chance(2, 3),
        favourites: Vec::new(),
    };
    // What many ask for again and again.
    grammar.favourites = (0..rng.below(8)).map(|_| grammar.favourite(rng)).collect();
    grammar
}

fn add_source(
    world: &mut World,
    theme: Theme,
    source: usize,
    (brain, begin, until): (&Rc<Brain>, i64, u64),
    rng: &mut Rng,
) {
    let config = world.config.sources[source].clone();
    let mut habits = Habits::any(rng, brain.markets.len());
    if rng.chance(1, 6) {
        let ago = *rng.pick(&[1_200_000, 20 * HOUR_MS, 24 * 12 * HOUR_MS]);
        habits.born_ms = Some(begin - ago);
    }
    let mut truth = Truth::new(brain.clone(), habits, begin + rng.between(-400, 400));
    // Lists are read hourly, but trading stops at once.
    if matches!(theme, Theme::Long | Theme::WideAndLong) || rng.chance(1, 4) {
        truth.changes = list_changes(brain, &config, (truth.clock(0), until), rng);
    }
    if !matches!(theme, Theme::Long | Theme::WideAndLong) && rng.chance(1, 3) {
        let from = rng.below(until);
        truth.freeze = Some((from, from + rng.below(60 * SECOND)));
    }
    let forecast = match (theme, rng.below(4)) {
        (Theme::WideAndLong, _) | (Theme::Clients | Theme::Reloads, 0..3) => {
            vec![(u64::MAX, Weather::Fine)]
        }
        (Theme::Long, 0..2) => vec![(until, Weather::Flaky(60)), (u64::MAX, Weather::Fine)],
        _ => Weather::forecast(rng, until),
    };
    let places = Places::any(until, rng);
    let is_there = world.reload.is_there[source];
    let selection = is_there.then(|| reload::selection(&config, brain));
    let mut ledger = Ledger::new(&config.id, brain.markets.len(), selection);
    ledger.place = world.reload.place_of(&config.id).unwrap_or(usize::MAX);
    // A series that nobody reads may make place for another one.
    let series = 3 * brain.markets.len() * world.config.sources.len();
    ledger.has_left = world.config.limits.candle_series < series;
    ledger.set_ages(us(config.stale_after), us(config.frozen_after), 0);
    ledger.grace_us = match theme {
        Theme::Wide | Theme::WideAndLong => 500_000 + 20 * world.stall,
        _ => 5000 + 5 * world.stall,
    };
    let limits = &world.config.limits;
    world.schedules.push(Schedule::new(
        us(config.poll.usual()),
        us(limits.backoff_max),
        places.len(),
        limits.connections_per_source,
    ));
    world.ledgers.push(ledger);
    world.resolving.push(Vec::new());
    world.exchanges.push(Exchange {
        truth,
        forecast,
        places,
        conns: Vec::new(),
        rng: Rng::new(rng.next()),
        latency: *rng.pick(&[2000, 30_000, 120_000]),
        dribbles: rng.chance(1, 3),
        beat: (theme == Theme::WideAndLong).then_some(500_000),
        date_ms: 0,
        scale: match source {
            3 => world.exchanges[2].scale.clone(),
            _ => Rc::default(),
        },
    });
}

/// Markets come and go and come back; those that the configuration names are only halted.
fn list_changes(
    brain: &Brain,
    config: &SourceConfig,
    (begin_ms, until): (i64, u64),
    rng: &mut Rng,
) -> Vec<ListChange> {
    let until_ms = until as i64 / 1000;
    let mut changes = Vec::new();
    for _ in 0..rng.below(8) {
        let market = rng.below(brain.markets.len() as u64) as usize;
        let active = match market < config.symbols.len() {
            true => *rng.pick(&[Some(false), Some(true)]),
            false => *rng.pick(&[None, None, Some(false), Some(true)]),
        };
        let after_ms = rng.between(0, until_ms);
        let (lingers, least) = (rng.chance(1, 2), 2 + rng.below(3));
        let mut change = ListChange { at_ms: begin_ms + after_ms, market, active, lingers, least };
        changes.push(change.clone());
        if rng.chance(2, 3) {
            change.at_ms += rng.between(0, until_ms - after_ms);
            (change.active, change.least) = (Some(true), 1 + rng.below(3));
            changes.push(change);
        }
    }
    changes.sort_by_key(|change| change.at_ms);
    changes
}

fn add_clients(world: &mut World, theme: Theme, until: u64, rng: &mut Rng) {
    let count = match theme {
        Theme::Clients | Theme::Reloads => 20 + rng.below(60),
        Theme::Exchanges => 10 + rng.below(30),
        Theme::Wide | Theme::WideAndLong => 8 + rng.below(12),
        Theme::Long => 20 + rng.below(60),
    };
    let sides = world.services();
    for favourite in 0..world.grammar.favourites.len() {
        let side = world.service_at(&world.grammar.favourites[favourite].0);
        // To judge a list of hundreds takes long.
        let requests = if world.symbols.len() > 100 { 4 } else { 60 };
        // Half of them ask so fast that a response is kept and sent again.
        let (think, ahead) = *rng.pick(&[(4 * SECOND, 1), (1000, 3), (1000, 8), (50_000, 8)]);
        let loyal = Some(favourite);
        let nature = Nature { requests, think, ahead, loyal, ..Nature::plain(side) };
        if rng.chance(1, 2) {
            add_client(world, nature, rng.below(until / 4), rng);
        }
    }
    // The feed is built in with the page.
    let libraries = if cfg!(feature = "page") { rng.below(4) } else { 0 };
    for _ in 0..libraries {
        let requests = 40 + rng.below(60) as usize;
        let nature = Nature { requests, ..Nature::plain(sides[0]) };
        let at = add_client(world, nature, rng.below(until), rng);
        let adapter = Adapter::any(&world.grammar, rng);
        world.clients[at].adapter = Some(Box::new(adapter));
    }
    for _ in 0..count {
        let nature = Nature::any(rng, sides);
        let at = match rng.below(4) {
            // Some come together.
            0 => rng.below(8) * until / 8,
            _ => rng.below(until),
        };
        let at = add_client(world, nature, at, rng);
        // Some share theirs.
        let shared = Ipv4Addr::new(192, 0, 2, rng.below(20) as u8);
        if rng.chance(1, 2) {
            world.clients[at].peer = shared.into();
        }
    }
}

/// A client that connects after so long.
pub fn add_client(world: &mut World, nature: Nature, after: u64, rng: &mut Rng) -> usize {
    let at = world.clients.len();
    // One of its own.
    let peer = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + at as u32);
    let client = Client::new(nature, peer.into(), Rng::new(rng.next()));
    world.clients.push(client);
    world.after(after, Event::Client(at));
    at
}
