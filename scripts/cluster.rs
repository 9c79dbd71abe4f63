//! Runs the nodes of a cluster whose collectors are killed and whose Redis goes away, freezes, or is lost
//! during a start (scripts/cluster.sh). Prints what clients and exchanges have noticed, with the limits. The
//! exit code is 1 above any limit.
//!
//! It also plays the exchanges, so it knows which node polled at which time. A client is a reader of the
//! stream. The arrival times of the events give the age of a quote at any moment.

#[path = "../tests/history/file.rs"]
#[expect(dead_code, reason = "a test uses the rest of it")]
mod file;
mod history {
    pub(crate) use crate::file;
}
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "../tests/cluster/world.rs"]
#[expect(dead_code, reason = "tests use the rest of it")]
mod world;

use file::Slot;
use lexopt::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::LONG;
use support::{Client, EventSource, Passage, eventually, poll_until};
use world::{Node, World, now_ms, pass, quote_of};

const HELP: &str = "cluster [options] PROGRAM
    --nodes N       of the cluster (default 3)
    --sources N     exchanges (default 3)
    --tickers N     of each (default 500)
    --poll MS       from one poll to the next (default 1000)
    --steady S      how long nothing happens, to measure (default 10)
    --kills N       how often a collector is killed (default 3)
    --stops N       how often one is stopped in order (default 3)
    --away S        how long Redis is away (default 10); 0: nothing but the steady time is measured
    --trials N      how often each fault is tried that leaves nodes half-dead (default 3)
    --margin N      allows times and processors N times their limits (default 1)";

/// The default length of a lease.
const LEASE: Duration = Duration::from_secs(3);

/// How often a client checks the age of a quote.
const LOOK_US: i64 = 10_000;

/// How often each node is asked while Redis is away: the connections stay within what one may ask.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// An answer within this time counts as quick, however long others take.
const QUICK_US: u128 = 1000;

/// The budget of an exchange. Polls once a second leave little of it, as at the largest real
/// exchanges.
const BUDGET: (u32, u32) = (90, 60_000);

/// The part of the budget that becomes free again within its span, in percent
/// (src/core/sources/budget.rs).
const PERCENT_RATE: u32 = 80;

struct Options {
    nodes: usize,
    sources: usize,
    tickers: usize,
    poll: Duration,
    steady: Duration,
    kills: usize,
    stops: usize,
    away: Duration,
    trials: usize,
    margin: u32,
    program: Option<std::path::PathBuf>,
}

/// A quote as a client saw it.
#[derive(Clone, Copy)]
struct Sight {
    /// The stream on which it arrived.
    stream: usize,
    node: usize,
    source: usize,
    symbol: usize,
    received_us: i64,
    seen_us: i64,
}

/// Clients of all nodes, and what they saw.
struct Clients {
    sights: Arc<Mutex<Vec<Sight>>>,
    streams: usize,
    /// Symbols of each source, spread over its poll.
    symbols: Vec<Vec<String>>,
}

/// A line of the report: a figure of each trial.
struct Line {
    what: String,
    figures: Vec<u128>,
    most: Option<u128>,
}

#[derive(Default)]
struct Report(Vec<Line>);

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(fault) => {
            eprintln!("cluster: {fault}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Some(report) if report.print() => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        nodes: 3,
        sources: 3,
        tickers: 500,
        poll: Duration::from_secs(1),
        steady: Duration::from_secs(10),
        kills: 3,
        stops: 3,
        away: Duration::from_secs(10),
        trials: 3,
        margin: 1,
        program: None,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("nodes") => options.nodes = parser.value()?.parse()?,
            Long("sources") => options.sources = parser.value()?.parse()?,
            Long("tickers") => options.tickers = parser.value()?.parse()?,
            Long("poll") => options.poll = Duration::from_millis(parser.value()?.parse()?),
            Long("steady") => options.steady = Duration::from_secs(parser.value()?.parse()?),
            Long("kills") => options.kills = parser.value()?.parse()?,
            Long("stops") => options.stops = parser.value()?.parse()?,
            Long("away") => options.away = Duration::from_secs(parser.value()?.parse()?),
            Long("trials") => options.trials = parser.value()?.parse()?,
            Long("margin") => options.margin = parser.value()?.parse()?,
            // Each node runs in a directory of its own.
            Value(program) => {
                let path = std::fs::canonicalize(&program);
                options.program = Some(path.map_err(|fault| format!("{program:?}: {fault}"))?);
            }
            other => return Err(other.unexpected()),
        }
    }
    match options.program {
        Some(_) => Ok(options),
        None => Err("which marketd?".into()),
    }
}

/// `None` if there is no Redis.
fn run(options: &Options) -> Option<Report> {
    let mut world = World::with(options.sources, options.tickers, &[])?;
    world.poll = options.poll;
    world.lease = LEASE;
    world.budget = BUDGET;
    world.program = options.program.clone();
    world.add(options.nodes);
    world.await_spread();
    let mut clients = Clients::new(&world);
    (0..options.nodes).for_each(|node| clients.open(&world, node));
    let mut report = Report::default();
    steady(&world, &clients, options, &mut report);
    if options.away.is_zero() {
        return Some(report);
    }
    stops(&mut world, &mut clients, options, &mut report);
    kills(&mut world, &mut clients, options, &mut report);
    judge_ages(&clients, options, &mut report);
    judge_turns(&world, &mut report);
    away(&mut world, options, &mut report);
    for _ in 0..options.trials {
        drills(&mut world, options, &mut report);
    }
    judge_budget(&world, &mut report);
    judge_files(&world, &mut report);
    lacking(&mut world, options, &mut report);
    Some(report)
}

/// Nothing happens: what it costs, and how far followers are behind.
fn steady(world: &World, clients: &Clients, options: &Options, report: &mut Report) {
    // Events from when the streams were opened do not count.
    pass(options.poll * 2);
    let from = clients.count();
    let used = || -> Vec<u128> {
        let nodes = world.nodes.iter().map(|node| node.marketd().pid());
        nodes.chain(world.redis.pid()).map(used_ns).collect()
    };
    let of_redis = |what: &str| {
        let told = world.redis.ask(&["INFO"]);
        let told = told.text().expect("a text");
        let line = told.lines().find_map(|line| line.strip_prefix(what)).expect("it is told");
        line.trim_start_matches(':').parse::<u128>().expect("a number")
    };
    let passed = || ["total_net_input_bytes", "total_net_output_bytes"].map(of_redis);
    let (before, begin, bytes) = (used(), Instant::now(), passed());
    pass(options.steady);
    let took = begin.elapsed().as_nanos();
    for (what, (after, before)) in ["takes", "sends"].iter().zip(passed().iter().zip(bytes)) {
        report.tell(&format!("Redis {what}, kB a second"), (after - before) * 1_000_000 / took);
    }
    report.tell("memory of Redis, kB", of_redis("used_memory") / 1000);
    for (at, (after, before)) in used().iter().zip(before).enumerate() {
        let who = world.nodes.get(at).map_or("Redis", |node| &*node.name);
        let part = (after - before) * 100_000 / took;
        report.tell(&format!("{who}, hundred thousandths of a core"), part);
    }
    let mut lags = lags(&clients.sights.lock().expect("no client panics")[from..]);
    assert!(!lags.is_empty(), "no event has reached two nodes");
    let [p50, p99, most] = percentiles(&mut lags);
    report.tell("a follower is behind, us, p50", p50);
    report.limit("a follower is behind, us, p99", p99, 50_000 * u128::from(options.margin));
    report.tell("a follower is behind, us, at most", most);
}

/// Nanoseconds that all threads of a process have run.
fn used_ns(process: u32) -> u128 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let used = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u128>().ok()
    });
    used.sum()
}

/// How long after the first node each other one had the same quote. A node that goes from collecting to
/// following reads the last poll once more: only the first time counts.
fn lags(sights: &[Sight]) -> Vec<u128> {
    let (mut first, mut known) = (HashMap::new(), HashSet::new());
    let key = |it: &Sight| (it.source, it.symbol, it.received_us);
    let sights = sights.iter();
    let sights: Vec<_> = sights.filter(|it| known.insert((it.stream, key(it)))).collect();
    for sight in sights.iter().copied() {
        let seen = first.entry(key(sight)).or_insert(sight);
        if sight.seen_us < seen.seen_us {
            *seen = sight;
        }
    }
    let behind = sights.iter().filter_map(|sight| {
        let first = first[&key(sight)];
        let lag = u128::try_from(sight.seen_us - first.seen_us).unwrap_or(0);
        (first.node != sight.node).then_some(lag)
    });
    behind.collect()
}

/// Stops one node after the other in order: how soon others collect, and how far behind followers are then.
fn stops(world: &mut World, clients: &mut Clients, options: &Options, report: &mut Report) {
    let (mut took, mut lags) = (Vec::new(), Vec::new());
    for stop in 0..options.stops {
        let collectors = world.await_spread();
        let old = collectors[stop % collectors.len()];
        let orphans = (0..collectors.len()).filter(|source| collectors[*source] == old);
        let orphans: Vec<usize> = orphans.collect();
        let from = clients.count();
        let marketd = world.nodes[old].marketd.take().expect("it runs");
        marketd.signal("TERM");
        let begin = Instant::now();
        eventually(LONG, || {
            let all: Vec<Vec<bool>> = world.up().map(|(_, node)| collected(node)).collect();
            let is_taken = |source: &usize| all.iter().any(|of_node| of_node[*source]);
            orphans.iter().all(is_taken).then_some(())
        });
        took.push(begin.elapsed().as_millis());
        marketd.await_end(LONG);
        pass(rarest_poll(options) * 2);
        lags.extend(self::lags(&clients.sights.lock().expect("no client panics")[from..]));
        world.restart(old);
        world.await_roles();
        clients.open(world, old);
    }
    if !took.is_empty() {
        let margin = u128::from(options.margin);
        let [p50, _, most] = percentiles(&mut took);
        report.tell("all sources are handed over, ms, p50", p50);
        report.limit("all sources are handed over, ms, at most", most, 100 * margin);
        let [_, p99, most] = percentiles(&mut lags);
        report.limit("a follower is behind then, us, p99", p99, 50_000 * margin);
        report.tell("a follower is behind then, us, at most", most);
    }
}

/// The sources that a node collects, as it says.
fn collected(node: &Node) -> Vec<bool> {
    let metrics = node.metrics();
    let sources = metrics["cluster"]["sources"].items().iter();
    sources.map(|it| it["role"] == "collector").collect()
}

/// Kills the collector of one source after the other.
fn kills(world: &mut World, clients: &mut Clients, options: &Options, report: &mut Report) {
    let mut took = Vec::new();
    for kill in 0..options.kills {
        let collectors = world.await_roles();
        let old = collectors[kill % collectors.len()];
        let orphans = (0..collectors.len()).filter(|source| collectors[*source] == old);
        let orphans: Vec<usize> = orphans.collect();
        world.kill(old);
        let begin = Instant::now();
        for source in &orphans {
            let first = eventually(LONG, || {
                let polls = world.polls(*source);
                let first = polls.iter().find(|(at, node)| *at > begin && *node != old);
                first.map(|(at, _)| *at)
            });
            took.push((first - begin).as_millis());
        }
        eprintln!(
            "kill {}: {} collected {} of {} sources; taken over within {} ms",
            kill + 1,
            world.nodes[old].name,
            orphans.len(),
            collectors.len(),
            took.iter().rev().take(orphans.len()).max().unwrap_or(&0)
        );
        world.restart(old);
        world.await_roles();
        clients.open(world, old);
    }
    if !took.is_empty() {
        let [p50, _, most] = percentiles(&mut took);
        report.tell("a source is taken over, ms, p50", p50);
        let limit = (LEASE + options.poll).as_millis() * u128::from(options.margin);
        report.limit("a source is taken over, ms, at most", most, limit);
    }
}

/// The ages of the quotes that clients have seen until now.
fn judge_ages(clients: &Clients, options: &Options, report: &mut Report) {
    let sights = clients.sights.lock().expect("no client panics").clone();
    let mut last = HashMap::new();
    let mut ages = Vec::new();
    for sight in &sights {
        let before: Option<Sight> = last.insert((sight.stream, sight.symbol), *sight);
        let Some(before) = before else {
            continue;
        };
        let looks = (before.seen_us..sight.seen_us).step_by(LOOK_US as usize);
        let age = |at: i64| u128::try_from(at - before.received_us).unwrap_or(0) / 1000;
        ages.extend(looks.map(age));
        ages.push(age(sight.seen_us));
    }
    let [p50, p99, most] = percentiles(&mut ages);
    report.tell("age of quotes that clients saw, ms, p50", p50);
    report.tell("age of quotes that clients saw, ms, p99", p99);
    let limit = (LEASE + rarest_poll(options) * 2).as_millis() * u128::from(options.margin);
    report.limit("age of quotes that clients saw, ms, at most", most, limit);
}

/// From one poll to the next at most. While candles are missing, quotes get every other request of so small a
/// budget, whoever collects: so a collector may die just before a poll that is later than `--poll`.
fn rarest_poll(options: &Options) -> Duration {
    let (units, per_ms) = BUDGET;
    let request = Duration::from_millis(per_ms.into()) * 100 / (units * PERCENT_RATE);
    options.poll.max(request * 2)
}

/// Redis goes away for a while; then all nodes agree again.
fn away(world: &mut World, options: &Options, report: &mut Report) {
    let addresses = world.nodes.iter().map(|node| node.marketd().addr());
    let mut connections: Vec<Client> = addresses.map(Client::connect).collect();
    let mut ask = |took: &mut Vec<u128>| {
        pass(ASK_EVERY);
        for client in &mut connections {
            let begin = Instant::now();
            let answer = client.get(&quote_of(0));
            took.push(begin.elapsed().as_micros());
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let (mut usual, mut alone, begin) = (Vec::new(), Vec::new(), Instant::now());
    while begin.elapsed() < options.away / 5 {
        ask(&mut usual);
    }
    world.redis.kill();
    let mut degraded = 0;
    let begin = Instant::now();
    while begin.elapsed() < options.away {
        ask(&mut alone);
    }
    for (_, node) in world.up() {
        degraded += usize::from(node.health()["status"] == "degraded");
    }
    world.redis.run();
    let begin = Instant::now();
    let usual = percentiles(&mut usual)[1];
    report.tell("an answer, us, p99", usual);
    let limit = (2 * usual).max(QUICK_US) * u128::from(options.margin);
    report.limit("an answer while Redis is away, us, p99", percentiles(&mut alone)[1], limit);
    let well = world.nodes.len() - degraded;
    report.limit("nodes not degraded while Redis is away", well as u128, 0);
    heal(world, "Redis is back", begin, options, report);
}

/// How long after `begin` all nodes are in their places. Then all say the same, and have new quotes.
fn heal(world: &World, what: &str, begin: Instant, options: &Options, report: &mut Report) {
    world.await_roles();
    let agreed = begin.elapsed().as_millis();
    let limit = 5000 * u128::from(options.margin);
    report.limit(&format!("all are in their places after {what}, ms"), agreed, limit);
    world.await_same(&[&quote_of(0), "/api/v1/quotes?symbols=*"]);
    for source in 0..options.sources {
        world.await_news(source, LONG);
    }
}

/// What leaves a cluster half-dead: a collector without Redis, a Redis that is frozen, and one that is away while
/// all nodes start.
fn drills(world: &mut World, options: &Options, report: &mut Report) {
    let old = world.await_roles()[0];
    world.nodes[old].engine.set(Passage::Lost);
    watch(world, "a partition", options, report);
    world.nodes[old].engine.set(Passage::Open);
    heal(world, "a partition", Instant::now(), options, report);
    world.redis.signal("STOP");
    watch(world, "Redis is frozen", options, report);
    world.redis.signal("CONT");
    heal(world, "Redis was frozen", Instant::now(), options, report);
    world.redis.kill();
    let (begin, since) = (Instant::now(), now_ms());
    for node in 0..world.nodes.len() {
        world.kill(node);
        world.restart(node);
    }
    let most = (world.stale + Duration::from_secs(5)).as_millis() * u128::from(options.margin);
    for (node, source) in
        (0..world.nodes.len()).flat_map(|it| (0..options.sources).map(move |at| (it, at)))
    {
        eventually(LONG, || world.nodes[node].received_at(source).filter(|it| *it > since));
    }
    let took = begin.elapsed().as_millis();
    report.limit("all nodes have data after a start without Redis, ms", took, most);
    while begin.elapsed() < options.away {
        pass(ASK_EVERY);
    }
    world.redis.run();
    heal(world, "a start without Redis", Instant::now(), options, report);
}

/// Looks at the quotes of all nodes while Redis is away for some of them.
fn watch(world: &World, what: &str, options: &Options, report: &mut Report) {
    let (mut oldest, begin) = (0, Instant::now());
    while begin.elapsed() < options.away {
        pass(ASK_EVERY);
        for (_, node) in world.up() {
            let received = (0..options.sources).filter_map(|source| node.received_at(source));
            oldest = received.map(|it| now_ms() - it).fold(oldest, i64::max);
        }
    }
    let most = (world.stale + Duration::from_secs(5)).as_millis() * u128::from(options.margin);
    report.limit(&format!("oldest quote during {what}, ms"), oldest.unsigned_abs().into(), most);
}

/// A node with only one source joins, again and again: the other sources stay where they are.
fn lacking(world: &mut World, options: &Options, report: &mut Report) {
    let collectors = world.await_spread();
    let epochs = |world: &World| -> Vec<i64> {
        let of =
            |(source, node): (usize, &usize)| world.nodes[*node].role(source).map(|it| it.epoch);
        collectors.iter().enumerate().skip(1).filter_map(of).collect()
    };
    for trial in 0..options.trials {
        let before = epochs(world);
        match trial {
            0 => world.add_to(world.redis.addr(), &|mut config| {
                config["sources"].as_array_mut().expect("a list").truncate(1);
                config
            }),
            _ => {
                let last = world.nodes.len() - 1;
                world.kill(last);
                world.restart(last);
            }
        }
        pass(options.steady);
        let after = epochs(world);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        report.limit("sources that moved because of a node that lacks them", moved as u128, 0);
    }
}

/// Whether two nodes polled one exchange at once, while Redis was there.
fn judge_turns(world: &World, report: &mut Report) {
    let mut at_once = 0;
    for source in 0..world.exchanges.len() {
        let mut polls = world.polls(source);
        polls.sort();
        at_once += (0..polls.len()).filter(|at| is_between(&polls, *at)).count();
    }
    report.limit("polls between two of another node", at_once as u128, 0);
}

/// The requests to each exchange in the fullest window of the whole run.
fn judge_budget(world: &World, report: &mut Report) {
    let all = world.exchanges.iter().map(|it| it.asked().len()).sum::<usize>();
    report.tell("requests at the exchanges", all as u128);
    let fullest = (0..world.exchanges.len()).map(|source| world.fullest_window(source).len()).max();
    let what = "requests of an exchange within any minute";
    report.limit(what, fullest.unwrap_or(0) as u128, world.budget.0.into());
}

/// True if another node polled shortly before and after: in so short a time, nobody can have lost a source and
/// have had it back.
fn is_between(polls: &[(Instant, usize)], at: usize) -> bool {
    let (now, node) = polls[at];
    let mut before = polls[..at].iter().rev().take_while(|it| now - it.0 < LEASE);
    before.any(|before| {
        let mut after = polls[at + 1..].iter().take_while(|it| it.0 - before.0 < LEASE);
        before.1 != node && after.any(|after| after.1 == before.1)
    })
}

/// Whether the files hold the same, once all is written. A node that joins gets what others have in memory: where a
/// file begins before the backfill is by chance, from there on it has no hole.
fn judge_files(world: &World, report: &mut Report) {
    let (mut figures, mut lacking) = ((0, 0), Vec::new());
    // Candles that were missed while Redis was away are fetched as the budget permits.
    poll_until(LONG, || {
        let files: Vec<_> = world.nodes.iter().map(Node::candles).collect();
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for (slot, figures) in files.iter().flatten() {
            all.entry(slot).or_default().push(figures);
        }
        lacking.clear();
        for (file, node) in files.iter().zip(&world.nodes) {
            let missing =
                all.keys().filter(|it| !file.contains_key(**it) && is_due(it, file, world));
            lacking.extend(missing.map(|&slot| (node.name.clone(), slot.clone())));
        }
        let differ = all.values_mut().map(|found| {
            found.dedup();
            found.len() - 1
        });
        figures = (differ.sum::<usize>(), all.len());
        (figures.0 + lacking.len() == 0).then_some(())
    });
    lacking.iter().for_each(|(node, slot)| eprintln!("the file of {node} lacks {slot:?}"));
    let (differ, all) = figures;
    report.tell("closed candles in the files", all as u128);
    report.limit("candles that differ between two files", differ as u128, 0);
    report.limit("candles that a file lacks", lacking.len() as u128, 0);
}

/// True if a file has to hold this slot: it has an older one of the series, or the backfill reaches so far.
fn is_due(slot: &Slot, file: &BTreeMap<Slot, [String; 5]>, world: &World) -> bool {
    let (source, symbol, interval, time) = slot;
    let first = (source.clone(), symbol.clone(), interval.clone(), 0);
    file.range(first..slot.clone()).next().is_some() || *time > now_ms() - world.backfill * 60_000
}

/// The median, the 99th percentile, and the maximum.
fn percentiles(figures: &mut [u128]) -> [u128; 3] {
    figures.sort_unstable();
    let count = figures.len();
    let at = |part: usize| figures.get(count.saturating_sub(1) * part / 100);
    [50, 99, 100].map(|part| at(part).copied().unwrap_or(0))
}

impl Clients {
    fn new(world: &World) -> Clients {
        let some = |symbols: Vec<String>| {
            let at = [0, symbols.len() / 2, symbols.len() - 1];
            at.iter().map(|at| symbols[*at].clone()).collect()
        };
        Clients {
            sights: Arc::default(),
            streams: 0,
            symbols: world.exchanges.iter().map(|it| some(it.symbols())).collect(),
        }
    }

    /// The number of sightings until now.
    fn count(&self) -> usize {
        self.sights.lock().expect("no client panics").len()
    }

    /// One client of this node for each source, until the node ends.
    fn open(&mut self, world: &World, node: usize) {
        for (source, symbols) in self.symbols.iter().enumerate() {
            let target = format!("/api/v1/stream?symbols={}&source=s{source}", symbols.join(","));
            let mut events = EventSource::open(world.nodes[node].marketd().addr(), &target);
            let (sights, symbols) = (Arc::clone(&self.sights), symbols.clone());
            let stream = self.streams;
            self.streams += 1;
            std::thread::spawn(move || {
                while let Ok(event) = events.next() {
                    let seen = SystemTime::now().duration_since(UNIX_EPOCH);
                    let seen_us = seen.expect("it is later").as_micros() as i64;
                    if event.name != "quote" {
                        continue;
                    }
                    let quote = event.exact();
                    let symbol = symbols.iter().position(|it| quote["symbol"] == &**it);
                    let received = quote["receivedAt"].integer();
                    let sight = Sight {
                        stream,
                        node,
                        source,
                        symbol: symbol.expect("it is one of those"),
                        received_us: received.expect("a time") * 1000,
                        seen_us,
                    };
                    sights.lock().expect("no client panics").push(sight);
                }
            });
        }
    }
}

impl Report {
    fn tell(&mut self, what: &str, figure: u128) {
        self.add(what, figure, None);
    }

    fn limit(&mut self, what: &str, figure: u128, most: u128) {
        self.add(what, figure, Some(most));
    }

    /// Adds a figure to the line, which a former trial may have begun.
    fn add(&mut self, what: &str, figure: u128, most: Option<u128>) {
        match self.0.iter_mut().find(|line| line.what == what) {
            Some(line) => line.figures.push(figure),
            None => self.0.push(Line { what: what.to_string(), figures: vec![figure], most }),
        }
    }

    /// True if all is within its limit.
    fn print(&self) -> bool {
        println!("| | measured | at most |\n|---|---:|---:|");
        let mut is_well = true;
        for Line { what, figures, most } in &self.0 {
            let is_over = most.is_some_and(|most| figures.iter().any(|figure| *figure > most));
            let figures: Vec<String> = figures.iter().map(u128::to_string).collect();
            let figures = figures.join(", ");
            is_well &= !is_over;
            let most = most.map_or(String::new(), |most| most.to_string());
            let mark = if is_over { " **above it**" } else { "" };
            println!("| {what} | {figures} | {most}{mark} |");
        }
        is_well
    }
}
