//! Nodes of a cluster in virtual time, with a model of the engine and the demo exchange.
//!
//! One seed is one run: `CLUSTER_SEED=7 cargo test --lib cluster::tests`.

mod drills;
mod model;

use crate::config::{ClusterConfig, Config, Poll, SourceConfig, Url};
use crate::core::stats::ClusterStatus;
use crate::core::testing::{Manner, answer, target};
use crate::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use crate::demo::Demo;
use crate::interval::Stored;
use crate::market::{Quote, SeriesKey, SourceId};
use crate::record::Candle;
use crate::rng::Rng;
use crate::table::Key;
use crate::time::{Mono, Now, UnixMs};
use model::Model;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

const STEP_MS: u64 = 10;

/// Units in a minute of each exchange.
const BUDGET: u64 = 6000;
const SOURCES: [&str; 3] = ["one", "two", "three"];

/// The nodes of the engine: the configured one, and another that may have the keys.
const ENGINES: [([u8; 4], u16); 2] = [([10, 0, 0, 2], 6379), ([10, 0, 0, 3], 7000)];

/// What a connection of a node leads to.
#[derive(Default)]
struct Wire {
    /// The address of the engine's node, if it is a connection to the engine.
    engine: Option<SocketAddr>,
    bytes: Vec<u8>,
    /// A command that waits for entries, and until when.
    waiting: Option<(Vec<Vec<u8>>, u64)>,
    /// Replies that are on their way, and when they arrive.
    replies: Vec<(u64, Vec<u8>)>,
}

impl Wire {
    /// A reply arrives at this time, but not before earlier ones.
    fn reply(&mut self, at: u64, reply: Vec<u8>) {
        let last = self.replies.last().map_or(0, |(at, _)| *at);
        self.replies.push((at.max(last), reply));
    }
}

/// The exchanges have banned a node for a while.
const BANS: Manner =
    Manner::Answers("HTTP/1.1 418 No\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n");

/// The exchanges do not serve the country of a node.
const BLOCKS: Manner = Manner::Answers("HTTP/1.1 451 No\r\nContent-Length: 0\r\n\r\n");

struct Node {
    core: Core,
    wires: HashMap<Key, Wire>,
    is_paused: bool,
    is_cut: bool,
    /// What it gets from the exchanges.
    exchanges: Manner,
    /// By how much its wall clock is ahead.
    skew_ms: i64,
    /// How many microseconds its monotonic clock loses in each millisecond, and how many it has lost.
    drift_us: u64,
    lost_us: u64,
    /// What the node had spent of each budget at the last look.
    spent: [u64; SOURCES.len()],
}

impl Node {
    /// The node's figures of the cluster.
    fn stats(&self) -> &ClusterStatus {
        self.core.cx.stats.cluster.as_ref().expect("it is in a cluster")
    }
}

struct World {
    ms: u64,
    model: Model,
    is_engine_up: bool,
    /// How late the engine replies.
    delay_ms: u64,
    /// True while the engine accepts connections and does not reply on them.
    is_mute: bool,
    /// Connections to it that were opened.
    engine_connects: usize,
    /// Commands whose reply is lost: the connection breaks after they were run.
    lost_replies: usize,
    nodes: Vec<Option<Node>>,
    demo: Demo,
    /// Markets that the exchange leaves out of its answers.
    hidden: &'static [&'static str],
    /// From one poll to the next, of nodes that are started from now on.
    poll: Duration,
    /// Markets whose candles these nodes follow.
    charted: &'static [&'static str],
    /// Polls of all quotes: when, of which source, by which node.
    polls: Vec<(u64, String, usize)>,
    /// What all nodes have spent of each budget, second by second.
    spent: Vec<[u64; SOURCES.len()]>,
    rng: Rng,
}

impl World {
    fn new(count: usize, seed: u64) -> World {
        let mut world = World {
            ms: 5000,
            model: Model::default(),
            is_engine_up: true,
            delay_ms: 0,
            is_mute: false,
            engine_connects: 0,
            lost_replies: 0,
            nodes: Vec::new(),
            demo: Demo::new(1),
            hidden: &[],
            poll: Duration::from_secs(1),
            charted: &[],
            polls: Vec::new(),
            spent: vec![[0; SOURCES.len()]],
            rng: Rng::new(seed),
        };
        world.add(count);
        world
    }

    fn add(&mut self, count: usize) {
        for at in self.nodes.len()..self.nodes.len() + count {
            self.nodes.push(None);
            self.start(at);
        }
    }

    /// A world of `count` nodes that have run for 12 seconds.
    fn settled(count: usize) -> World {
        let mut world = World::new(count, seed());
        world.run(12_000);
        world
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.ms * 1000), unix: UnixMs(1_790_000_000_000 + self.ms as i64) }
    }

    /// The time by the clocks of a node.
    fn now_of(&self, node: &Node) -> Now {
        let now = self.now();
        Now { mono: Mono(now.mono.0 - node.lost_us), unix: now.unix + node.skew_ms }
    }

    /// The configuration of a node with these sources.
    fn config(&self, at: usize, sources: &[&str]) -> Config {
        // Each source is an exchange of its own.
        let port = |id: &str| id.bytes().map(u16::from).sum::<u16>();
        let source = |id: &&str| SourceConfig {
            id: id.to_string(),
            url: Url::parse(&format!("http://10.0.0.1:{}/{id}", port(id))).ok(),
            poll: Poll::Every(self.poll),
            symbols: self.charted.iter().map(|it| it.to_string()).collect(),
            quote_assets: vec!["*".to_string()],
            ..SourceConfig::new("binance")
        };
        Config {
            sources: sources.iter().map(source).collect(),
            cluster: Some(ClusterConfig {
                url: Url::engine("redis://10.0.0.2").expect("it is well-formed"),
                prefix: "test".to_string(),
                node: Some(format!("n{at}")),
                ..ClusterConfig::default()
            }),
            ..Config::default()
        }
    }

    fn start(&mut self, at: usize) {
        self.start_with(at, self.config(at, &SOURCES));
    }

    /// Starts one more node.
    fn add_with(&mut self, config: Config) {
        self.nodes.push(None);
        self.start_with(self.nodes.len() - 1, config);
    }

    fn start_with(&mut self, at: usize, config: Config) {
        let boot = self.rng.next_u64();
        let core = Core::new(config, None, ProcessFacts::default, boot, self.now());
        self.nodes[at] = Some(Node {
            core,
            wires: HashMap::new(),
            is_paused: false,
            is_cut: false,
            exchanges: Manner::Serves,
            skew_ms: 0,
            drift_us: 0,
            lost_us: 0,
            spent: [0; SOURCES.len()],
        });
    }

    /// Has a node take in another configuration.
    fn reload(&mut self, at: usize, config: Config) {
        let now = self.now();
        self.node(at).core.reconfigure(config, Vec::new(), || (), now).expect("it is sound");
    }

    fn node(&mut self, at: usize) -> &mut Node {
        self.nodes[at].as_mut().expect("the node runs")
    }

    fn run(&mut self, ms: u64) {
        self.run_in_steps(ms, STEP_MS);
    }

    fn run_in_steps(&mut self, ms: u64, step_ms: u64) {
        let end = self.ms + ms;
        while self.ms < end {
            self.ms += step_ms;
            self.model.time_ms = 1_790_000_000_000 + self.ms as i64;
            for at in 0..self.nodes.len() {
                if let Some(mut node) = self.nodes[at].take() {
                    node.lost_us += node.drift_us * step_ms;
                    if !node.is_paused {
                        self.step(at, &mut node);
                    }
                    self.nodes[at] = Some(node);
                }
            }
            if self.ms.is_multiple_of(1000) {
                self.note_spent();
            }
        }
    }

    /// Adds what each node has spent since the last second, and looks at the budget of the last minute.
    fn note_spent(&mut self) {
        let mut all = *self.spent.last().expect("it has a first");
        for node in self.nodes.iter_mut().flatten() {
            for (source, all) in all.iter_mut().enumerate() {
                let status = node.core.cx.stats.sources.get(source);
                let spent = status.map_or(0, |it| it.budget_spent);
                *all += spent.saturating_sub(node.spent[source]);
                node.spent[source] = spent;
            }
        }
        self.spent.push(all);
        let minute = self.spent.len().saturating_sub(61);
        for (now, before) in all.iter().zip(self.spent[minute]) {
            assert!(now - before <= BUDGET, "{} of {BUDGET} in a minute", now - before);
        }
    }

    fn step(&mut self, at: usize, node: &mut Node) {
        let now = self.now_of(node);
        let keys: Vec<Key> = node.wires.keys().copied().collect();
        for key in keys {
            self.deliver(key, node);
        }
        if node.core.poll_timeout().is_some_and(|due| due <= now.mono) {
            node.core.handle_timeout(now);
        }
        for _ in 0..300 {
            let mut is_done = true;
            while let Some(action) = node.core.poll_action() {
                self.act(at, action, node);
                is_done = false;
            }
            if node.core.has_work() {
                node.core.work(now);
                is_done = false;
            }
            if is_done {
                return;
            }
        }
        panic!("node {at} has no end of work");
    }

    fn act(&mut self, at: usize, action: Action, node: &mut Node) {
        let now = self.now_of(node);
        match action {
            Action::Connect(key, address) => {
                let engine = Some(address).filter(|it| ENGINES.map(SocketAddr::from).contains(it));
                if engine.is_some()
                    && (!self.is_engine_up || node.is_cut || self.model.is_deaf == engine)
                {
                    let why = Broken::Io(ErrorKind::ConnectionRefused);
                    return node.core.handle(key, Event::Failed(&why), now);
                }
                if engine.is_none() && node.exchanges == Manner::Rejects {
                    let why = Broken::Io(ErrorKind::HostUnreachable);
                    return node.core.handle(key, Event::Failed(&why), now);
                }
                self.engine_connects += usize::from(engine.is_some());
                let wire = Wire { engine, ..Wire::default() };
                node.wires.insert(key, wire);
                node.core.handle(key, Event::Connected, now);
                self.pump(at, key, node);
            }
            Action::Flush(key) => self.pump(at, key, node),
            Action::Close(key) => {
                node.wires.remove(&key);
                node.core.closed(key);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Takes what a node sends, and has it answered.
    fn pump(&mut self, at: usize, key: Key, node: &mut Node) {
        let now = self.now_of(node);
        loop {
            let bytes = node.core.outgoing(key).to_vec();
            let Some(wire) = node.wires.get_mut(&key).filter(|_| !bytes.is_empty()) else { break };
            wire.bytes.extend_from_slice(&bytes);
            node.core.handle(key, Event::Sent(bytes.len()), now);
        }
        let Some(wire) = node.wires.get_mut(&key) else { return };
        let Some(engine) = wire.engine else {
            return self.exchange(at, key, node);
        };
        while !self.is_mute
            && wire.waiting.is_none()
            && let Some(command) = Model::next_command(&mut wire.bytes)
        {
            match self.model.ask(engine, &command, false) {
                Some(_) if self.lost_replies > 0 => {
                    self.lost_replies -= 1;
                    return node.core.handle(key, Event::Eof, now);
                }
                Some(reply) => wire.reply(self.ms + self.delay_ms, reply),
                None => wire.waiting = Some((command, self.ms + 250)),
            }
        }
    }

    fn deliver(&mut self, key: Key, node: &mut Node) {
        let now = self.now_of(node);
        let wire = node.wires.get_mut(&key);
        let Some((wire, engine)) = wire.and_then(|it| it.engine.map(|engine| (it, engine))) else {
            return;
        };
        let is_gone = !self.is_engine_up || self.model.is_deaf == Some(engine);
        if is_gone || node.is_cut {
            // A node that is cut off gets no event. A dead engine closes the connection.
            if is_gone {
                node.core.handle(key, Event::Eof, now);
            }
            return;
        }
        if let Some((command, until)) = wire.waiting.take() {
            match self.model.ask(engine, &command, self.ms >= until) {
                Some(reply) => wire.reply(self.ms + self.delay_ms, reply),
                None => wire.waiting = Some((command, until)),
            }
        }
        let due: Vec<_> = wire.replies.extract_if(.., |(at, _)| *at <= self.ms).collect();
        for (_, reply) in due {
            node.core.handle(key, Event::Received(&reply), now);
        }
    }

    /// The exchange answers at once.
    fn exchange(&mut self, at: usize, key: Key, node: &mut Node) {
        let (now, unix) = (self.now_of(node), self.now().unix);
        let wire = node.wires.get_mut(&key).filter(|it| it.bytes.ends_with(b"\r\n\r\n"));
        let Some(wire) = wire else { return };
        let request = std::mem::take(&mut wire.bytes);
        let target = target(&request);
        let source = target[1..].split('/').next().expect("the base path is the source");
        if target.contains("24hr") {
            self.polls.push((self.ms, source.to_string(), at));
        }
        let reply = match node.exchanges {
            Manner::Serves => {
                let shown = |body| without(body, self.hidden);
                answer(&self.demo, &target[1 + source.len()..], unix, shown)
            }
            Manner::Answers(text) => text.into(),
            _ => return node.core.handle(key, Event::Eof, now),
        };
        if !reply.is_empty() {
            node.core.handle(key, Event::Received(&reply), now);
        }
    }

    /// The nodes that collect a source, as they see it.
    fn collectors(&self, source: usize) -> Vec<usize> {
        let role = |node: &Node| node.stats().sources.get(source).map(|it| it.role);
        let collects = |node: &Node| role(node).is_some_and(|it| it != "follower");
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.as_ref().is_some_and(collects)).map(|(at, _)| at).collect()
    }

    fn all_collectors(&self) -> [Vec<usize>; SOURCES.len()] {
        std::array::from_fn(|source| self.collectors(source))
    }

    /// Checks that each source has one collector, now or after a source that is being given away is taken.
    fn ends_with_one_collector_each(&mut self) {
        let each = |world: &World| (0..SOURCES.len()).all(|it| world.collectors(it).len() == 1);
        for _ in 0..30 {
            if each(self) {
                return;
            }
            self.run(STEP_MS);
        }
        for (source, name) in SOURCES.iter().enumerate() {
            assert_eq!(self.collectors(source).len(), 1, "{name}");
        }
    }

    /// After this time, each source has one collector, and all nodes serve the same quotes.
    fn comes_together(&mut self, ms: u64, most_ms: i64) {
        self.run(ms);
        self.ends_with_one_collector_each();
        self.agrees(most_ms);
    }

    /// Checks that all nodes serve the same quotes, none older than this: now, or after the poll that is on
    /// its way has reached all nodes.
    fn agrees(&mut self, most_ms: i64) {
        for _ in 0..10 {
            if self.differing(most_ms).is_none() {
                return;
            }
            self.run(STEP_MS);
        }
        assert_eq!(self.differing(most_ms), None);
    }

    /// The forming candles of this quote's market at a node.
    fn forming(&self, node: &Node, quote: &Quote) -> [Option<Candle>; Stored::ALL.len()] {
        Stored::ALL.map(|interval| {
            let key = SeriesKey { source: quote.source, symbol: quote.symbol, interval };
            let series = node.core.cx.market.charts.get(key)?;
            series.forming(interval.slot_of(self.now().unix)).cloned()
        })
    }

    /// A quote that differs between two nodes, or the forming candles of its market.
    fn differing(&self, most_ms: i64) -> Option<(String, String)> {
        let now = self.now().unix;
        let mut all: BTreeMap<(usize, String), String> = BTreeMap::new();
        for node in self.nodes.iter().flatten() {
            let (catalog, quotes) = (&node.core.cx.market.catalog, &node.core.cx.market.quotes);
            for source in 0..SOURCES.len() {
                for symbol in catalog.known() {
                    let quote = quotes.of(SourceId(source as u16), *symbol).expect("it is served");
                    let age = now - quote.received_at;
                    assert!(age <= most_ms, "{age} ms");
                    let mut text = format!("{:?} {:?}", quote.ticker, quote.received_at);
                    let name = catalog.name(*symbol).as_str().to_string();
                    if self.charted.contains(&name.as_str()) {
                        text += &format!("{:?}", self.forming(node, quote));
                        assert!(!text.contains("None, None, None"), "{name} {text}");
                    }
                    let known = all.entry((source, name)).or_insert_with(|| text.clone());
                    if *known != text {
                        return Some((known.clone(), text));
                    }
                }
            }
        }
        assert_eq!(all.len(), SOURCES.len() * 24);
        None
    }

    /// No node serves a quote that is older than this.
    fn is_fresh(&self, most_ms: i64) {
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            let (now, market) = (self.now_of(node).unix, &node.core.cx.market);
            for (id, _) in node.core.cx.stats.running() {
                for symbol in market.catalog.known() {
                    let quote = market.quotes.of(id, *symbol).expect("it is served");
                    let age = now - quote.received_at;
                    assert!(age <= most_ms, "{at}: {age} ms");
                }
            }
        }
    }

    /// The health that a node reports.
    fn health(&mut self, at: usize) -> String {
        let now = self.now_of(self.nodes[at].as_ref().expect("the node runs"));
        let core = &mut self.node(at).core;
        let client = core.accept(None, Service::Api, now).expect("there is room");
        core.handle(client, Event::Received(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"), now);
        let bytes = core.outgoing(client).to_vec();
        core.handle(client, Event::Sent(bytes.len()), now);
        core.handle(client, Event::Eof, now);
        String::from_utf8(bytes).expect("a text")
    }

    /// What a node does for a source.
    fn role(&self, at: usize, source: usize) -> &'static str {
        let node = self.nodes[at].as_ref().expect("the node runs");
        node.stats().sources[source].role
    }

    /// The epoch of a source, as its collector says.
    fn epoch(&self, source: usize) -> u64 {
        let collector = self.collectors(source)[0];
        let node = self.nodes[collector].as_ref().expect("the node runs");
        node.stats().sources[source].epoch
    }

    /// No epoch has two holders.
    fn epochs_are_unique(&self) {
        let leases = self.model.published.iter().map(|(lease, epoch, _)| (lease, epoch));
        let leases: Vec<_> = leases.collect();
        assert!(leases.windows(2).all(|pair| pair[0] != pair[1]));
    }

    /// Polls of each source since then: when, and by which node.
    fn polls_since(&self, since: u64) -> [Vec<(u64, usize)>; SOURCES.len()] {
        SOURCES.map(|source| {
            let polls = self.polls.iter().filter(|(at, of, _)| *at >= since && of == source);
            polls.map(|(at, _, node)| (*at, *node)).collect()
        })
    }

    /// The longest time between two polls of a source since then.
    fn longest_gap(&self, since: u64) -> u64 {
        let gaps = self.polls_since(since).map(|polls| {
            let times: Vec<u64> = polls.iter().map(|(at, _)| *at).chain([self.ms]).collect();
            times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
        });
        gaps.into_iter().max().expect("there are sources")
    }

    /// How often one node polled a source between two polls of another node: both collect it.
    fn doubled(&self, since: u64) -> usize {
        let is_doubled = |polls: &&[(u64, usize)]| {
            let [(begin, first), (_, second), (end, third)] = polls[..] else { return false };
            first == third && first != second && end - begin < 2 * self.poll.as_millis() as u64
        };
        let counts = self.polls_since(since).map(|it| it.windows(3).filter(is_doubled).count());
        counts.into_iter().sum()
    }
}

/// A body without what it says of these markets.
fn without(body: Vec<u8>, markets: &[&str]) -> Vec<u8> {
    if markets.is_empty() {
        return body;
    }
    let mut body: Value = serde_json::from_slice(&body).expect("the demo speaks JSON");
    let is_shown = |it: &Value| !it["symbol"].as_str().is_some_and(|it| markets.contains(&it));
    match body.get("symbols").is_some() {
        true => &mut body["symbols"],
        false => &mut body,
    }
    .as_array_mut()
    .into_iter()
    .for_each(|list| list.retain(is_shown));
    body.to_string().into_bytes()
}

fn seed() -> u64 {
    let given = std::env::var("CLUSTER_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn each_node_collects_a_source_and_a_dead_one_is_replaced_within_the_lease_and_a_poll() {
    let mut world = World::settled(3);
    world.agrees(2100);
    let mut all = world.all_collectors().concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2], "each node has its share");
    assert_eq!(world.model.fenced, 0);
    for round in 0..4 {
        let dead = world.collectors(round % 3)[0];
        let since = world.ms;
        world.nodes[dead] = None;
        world.run(6000);
        world.ends_with_one_collector_each();
        // The gap is the lease and two polls: while a node is lost, the collector has half of the budget.
        assert!(world.longest_gap(since) <= 5000, "{}", world.longest_gap(since));
        world.start(dead);
        world.run(9000);
        world.agrees(2100);
    }
    // All nodes die at once, and start again.
    let before = world.epoch(0);
    (0..3).for_each(|at| world.nodes[at] = None);
    (0..3).for_each(|at| world.start(at));
    world.run(9000);
    world.ends_with_one_collector_each();
    world.agrees(2100);
    assert!(world.epoch(0) > before);
    assert_eq!(world.doubled(0), 0);
    world.epochs_are_unique();
}

#[test]
fn a_paused_collector_asks_before_it_calls_the_exchange_again() {
    for (is_asleep, more_ms) in [(false, 0), (true, 0), (true, 500)] {
        let mut world = World::settled(2);
        let paused = world.collectors(0)[0];
        world.node(paused).is_paused = true;
        let pause_ms = 10_000 + more_ms;
        world.run(pause_ms);
        if is_asleep {
            // The monotonic clock of a machine that sleeps stands still.
            world.node(paused).lost_us += 1000 * pause_ms;
        }
        let since = world.ms;
        (world.node(paused).is_paused, world.delay_ms) = (false, 600);
        // A renewal is due, and was not answered.
        world.run(550);
        assert_ne!(world.role(paused, 0), "collector", "another node may be one now");
        world.run(3000);
        assert_eq!(world.doubled(since), 0, "{is_asleep} {more_ms}");
        world.delay_ms = 0;
        assert!(!world.health(paused).contains("cluster_clock"));
        world.comes_together(6000, 2100);
    }
}

#[test]
fn without_engine_collectors_go_on_and_followers_begin_once_their_quotes_are_stale() {
    let mut world = World::settled(3);
    let before = world.all_collectors();
    for is_wiped in [false, true] {
        let old = world.model.clone();
        world.is_engine_up = false;
        let since = world.ms;
        world.run(14_000);
        assert_eq!(before, world.all_collectors());
        assert_eq!(world.doubled(since), 0);
        world.run(6000);
        assert!((0..3).all(|source| world.collectors(source) == [0, 1, 2]));
        world.run(40_000);
        assert!(world.longest_gap(since) <= 3100, "{}", world.longest_gap(since));
        world.is_fresh(8000);
        // The engine comes back empty, or with the data that it held.
        world.model = if is_wiped { Model::default() } else { old };
        world.is_engine_up = true;
        world.run(5000);
        world.ends_with_one_collector_each();
        assert_eq!(before, world.all_collectors(), "former collectors come first");
        world.agrees(3100);
        world.run(8000);
    }
}

#[test]
fn a_node_that_collected_for_itself_has_the_forming_candles_of_its_collector_again() {
    let mut world = World::new(0, seed());
    (world.poll, world.charted) = (Duration::from_secs(4), &["BTC/USDT"]);
    world.add(3);
    // When each collects for itself, they poll at different moments, and see other highs and lows.
    (0..3).for_each(|at| world.node(at).skew_ms = 600 * at as i64);
    world.run(60_000);
    for round in 0..10 {
        world.is_engine_up = false;
        world.run(30_000 + round * 390);
        world.is_engine_up = true;
        world.comes_together(6000, 4100);
    }
}

#[test]
fn lost_replies_slow_replies_and_trimmed_streams_change_nothing() {
    let mut world = World::settled(3);
    for _ in 0..5 {
        world.lost_replies = 1 + world.rng.below(3) as usize;
        let ms = 500 + world.rng.below(2000);
        world.run(ms);
    }
    world.comes_together(8000, 2100);
    world.delay_ms = 2000;
    world.run(20_000);
    world.ends_with_one_collector_each();
    world.delay_ms = 0;
    world.run(4000);
    // A follower is paused, and entries that it has not read are trimmed.
    let follower = (0..3).find(|at| !world.collectors(0).contains(at)).expect("there are two");
    world.node(follower).is_paused = true;
    world.run(2000);
    world.model.streams.values_mut().for_each(|it| drop(it.drain(..it.len() - 1)));
    world.node(follower).is_paused = false;
    world.comes_together(9000, 2100);
}

#[test]
fn the_clock_of_the_engine_may_jump() {
    let mut world = World::settled(3);
    for lease in world.model.hashes.values_mut() {
        // As if the engine's clock went back by an hour: leases end an hour later.
        let until: i64 = lease["until"].parse().expect("a number");
        lease.insert("until".to_string(), (until + 3_600_000).to_string());
    }
    let dead = world.collectors(0)[0];
    world.nodes[dead] = None;
    world.run(8000);
    world.ends_with_one_collector_each();
    world.epochs_are_unique();
}

#[test]
fn an_engine_that_refuses_is_told_in_words_and_without_the_password() {
    let mut world = World::settled(2);
    for (error, expected) in [
        ("OOM command not allowed when used memory > 'maxmemory'.", "out of memory"),
        ("READONLY You can't write against a read only replica.", "read-only replica"),
        ("ASK 7 10.0.0.9:6379", "moving the keys"),
        ("LOADING Redis is loading the dataset in memory", "loading its data"),
    ] {
        world.model.refuses = Some(error);
        world.run(4000);
        for node in world.nodes.iter().flatten() {
            let (_, why) = node.stats().down.as_ref().expect("it is down");
            assert!(why.contains(expected), "{why}");
        }
        world.model.refuses = None;
        world.comes_together(6000, 3100);
    }
}

#[test]
fn an_engine_that_accepts_and_says_nothing_is_left_after_its_deadline_every_time() {
    let mut world = World::settled(2);
    world.is_mute = true;
    world.run(7000);
    for node in world.nodes.iter().flatten() {
        let (_, why) = node.stats().down.as_ref().expect("it is down");
        assert_eq!(&**why, "no reply in time");
    }
    // Each try of each node takes 2.2 seconds, and a pause of at most one second follows.
    world.engine_connects = 0;
    world.run(60_000);
    assert!((36..=46).contains(&world.engine_connects), "{}", world.engine_connects);
    world.is_mute = false;
    world.comes_together(10_000, 3100);
}

#[test]
fn a_list_that_changes_at_the_exchange_changes_on_all_nodes() {
    const LATE: &str = "BTCUSDT";
    const GONE: &str = "ETHUSDT";
    let mut world = World::new(0, seed());
    (world.hidden, world.poll) = (&[LATE], Duration::from_secs(10));
    world.add(3);
    world.run(12_000);
    let all_know = |world: &World, is_late_listed: bool| {
        for node in world.nodes.iter().flatten() {
            let market = &node.core.cx.market;
            for source in (0..SOURCES.len()).map(|at| SourceId(at as u16)) {
                let has = |name: &str| {
                    let mut known = market.catalog.known().iter();
                    known.any(|symbol| {
                        let listing = market.catalog.listing(source, *symbol);
                        let is_it = listing.is_some_and(|it| *it.ticker_id == *name);
                        is_it && market.quotes.of(source, *symbol).is_some()
                    })
                };
                assert_eq!(has(LATE), is_late_listed);
                assert_eq!(has(GONE), !is_late_listed);
                assert!(has("SOLUSDT"));
            }
        }
    };
    all_know(&world, false);
    // Lists are read each hour. One node is away meanwhile.
    world.hidden = &[GONE];
    world.nodes[2] = None;
    world.run_in_steps(3_620_000, 200);
    all_know(&world, true);
    world.start(2);
    world.run(12_000);
    world.ends_with_one_collector_each();
    all_know(&world, true);
}

#[test]
fn the_node_of_the_engine_that_has_the_keys_is_found_wherever_they_go() {
    let mut world = World::new(0, seed());
    world.model.keys_at = Some(ENGINES[1].into());
    world.add(3);
    world.run(12_000);
    world.ends_with_one_collector_each();
    let before = world.all_collectors();
    // The keys move while all nodes run. No other node becomes the collector.
    for to in [0, 1, 0] {
        let since = world.ms;
        world.model.keys_at = Some(ENGINES[to].into());
        world.run(1000);
        world.agrees(2100);
        world.run(5000);
        world.agrees(2100);
        assert_eq!(before, world.all_collectors());
        assert!(world.longest_gap(since) <= 2000);
    }
    // A node that was redirected and cannot connect there goes back to the former address.
    world.model.keys_at = Some(ENGINES[1].into());
    world.run(3000);
    world.model.is_deaf = Some(ENGINES[1].into());
    world.run(4000);
    world.model.keys_at = Some(ENGINES[0].into());
    world.comes_together(5000, 3100);
    world.epochs_are_unique();
}

#[test]
fn nodes_of_the_engine_that_send_each_other_the_keys_are_as_good_as_down() {
    let mut world = World::settled(2);
    world.model.is_circle = true;
    world.model.asked = 0;
    world.run(10_000);
    for node in world.nodes.iter().flatten() {
        let (_, why) = node.stats().down.as_ref().expect("it is down");
        assert!(why.contains("send each other"), "{why}");
    }
    // Each hop is a few commands, with a pause after some hops.
    assert!(world.model.asked < 2000, "{}", world.model.asked);
    world.model.is_circle = false;
    world.comes_together(6000, 3100);
}

#[test]
fn a_stopped_node_lets_go_at_once() {
    let mut world = World::settled(3);
    let stopped = world.collectors(1)[0];
    let now = world.now();
    world.node(stopped).core.shut_down(now);
    world.run(100);
    let others: Vec<_> = world.collectors(1).into_iter().filter(|at| *at != stopped).collect();
    assert_eq!(others.len(), 1, "another has it after 100 ms");
    world.nodes[stopped] = None;
    // The others read on, after the second in which the budget pays for a poll.
    for _ in 0..15 {
        world.run(200);
        world.agrees(2100);
    }
    world.ends_with_one_collector_each();
    world.agrees(2100);
}

#[test]
fn a_stopped_node_waits_for_its_clients_at_rest() {
    let mut world = World::settled(1);
    let now = world.now();
    let core = &mut world.node(0).core;
    let client = core.accept(None, Service::Api, now).expect("there is room");
    core.handle(client, Event::Received(b"GET /hea"), now);
    core.shut_down(now);
    world.run(2000);
    let now = world.now();
    let due = world.node(0).core.poll_timeout().expect("it waits for the client");
    assert!(due > now.mono, "{due:?} at {now:?}");
}

#[test]
fn a_stopped_node_waits_for_no_engine() {
    let mut world = World::settled(2);
    world.is_mute = true;
    for at in 0..2 {
        let now = world.now();
        world.node(at).core.shut_down(now);
        world.run(100);
        assert!(world.node(at).core.is_finished());
    }
}

#[test]
fn a_stopped_node_gives_up_nothing_before_what_came_during_a_pause_is_read() {
    let mut world = World::settled(1);
    let mut now = world.now();
    let core = &mut world.node(0).core;
    core.accept(None, Service::Api, now).expect("there is room");
    core.shut_down(now);
    now.mono = now.mono + Duration::from_secs(60);
    for is_behind in [true, false] {
        core.set_behind(is_behind);
        core.handle_timeout(now);
        assert_eq!([core.clients_done, core.is_finished()], [!is_behind; 2]);
    }
}
