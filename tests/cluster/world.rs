//! Exchanges, a Redis, and nodes that reach them through a relay and a proxy of their own: so an exchange can
//! tell who asks, and each way can be cut.

use crate::history::file::{Slot, candles};
use crate::support::daemon::TempDir;
use crate::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a lease is: as short as a busy machine allows.
pub const LEASE: Duration = Duration::from_millis(600);

/// From one poll of an exchange to the next, unless [`World::poll`] says otherwise.
pub const POLL: Duration = Duration::from_millis(200);

/// What a busy machine adds to any time that is measured here.
pub const NOISE: Duration = Duration::from_secs(1);

/// From one look at what has to stay as it is to the next.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Markets of each exchange, unless a test needs more.
const MARKETS: usize = 4;

/// Nodes around one Redis, and the exchanges that they poll. Nodes are named `n0` and so on, sources `s0`.
pub struct World {
    pub redis: Redis,
    pub exchanges: Vec<Binance>,
    pub nodes: Vec<Node>,
    /// What an exchange allows: requests, in so many milliseconds.
    pub budget: (u32, u32),
    /// Minutes of history that a node fetches unasked.
    pub backfill: i64,
    /// What `cluster.url` says before the host: `user:password@`.
    pub login: String,
    /// From one poll of an exchange to the next.
    pub poll: Duration,
    /// How long a lease is.
    pub lease: Duration,
    /// How old a quote may get before it is stale.
    pub stale: Duration,
    /// What a node runs, if not the built binary.
    pub program: Option<std::path::PathBuf>,
}

/// One marketd.
pub struct Node {
    pub name: String,
    /// `None` while it is down.
    pub marketd: Option<Marketd>,
    is_paused: bool,
    /// Its way to Redis.
    pub engine: Relay,
    /// Its way to the exchanges.
    pub gate: Relay,
    pub config: Value,
    dir: Arc<TempDir>,
}

/// What the metrics say of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub is_collector: bool,
    pub is_alone: bool,
    pub epoch: i64,
}

impl World {
    /// So many exchanges and no node. `None` if no Redis is installed.
    pub fn new(exchanges: usize) -> Option<World> {
        World::with(exchanges, MARKETS, &[])
    }

    /// The same with so many markets each, and these more arguments of Redis.
    pub fn with(exchanges: usize, markets: usize, arguments: &[&str]) -> Option<World> {
        let mut world = World::around(Redis::start(arguments)?, 0);
        world.exchanges = generated(exchanges, markets);
        Some(world)
    }

    /// So many exchanges around this Redis.
    pub fn around(redis: Redis, exchanges: usize) -> World {
        World {
            redis,
            exchanges: generated(exchanges, MARKETS),
            nodes: Vec::new(),
            budget: (60_000, 60_000),
            backfill: 60,
            login: String::new(),
            poll: POLL,
            lease: LEASE,
            stale: Duration::from_secs(15),
            program: None,
        }
    }

    /// So many exchanges and nodes that are all in their places.
    pub fn settled(exchanges: usize, nodes: usize) -> Option<World> {
        let mut world = World::new(exchanges)?;
        world.add(nodes);
        world.await_roles();
        Some(world)
    }

    /// Starts so many more nodes.
    pub fn add(&mut self, count: usize) {
        for _ in 0..count {
            let node = self.node(self.redis.addr(), &|config| config);
            self.nodes.push(node);
        }
    }

    /// Starts one more, whose way to Redis leads elsewhere and whose configuration is changed so.
    pub fn add_to(&mut self, engine: std::net::SocketAddr, change: &dyn Fn(Value) -> Value) {
        let node = self.node(engine, change);
        self.nodes.push(node);
    }

    fn node(&self, engine: std::net::SocketAddr, change: &dyn Fn(Value) -> Value) -> Node {
        let name = format!("n{}", self.nodes.len());
        let engine = Relay::start(engine);
        let gate = Relay::proxy();
        let launch = self.launch(&gate);
        launch.file("dialect.json", self.dialect());
        let sources = self.exchanges.iter().enumerate().map(|(at, exchange)| {
            let url = format!("http://s{at}.test:{}", exchange.addr().port());
            let [poll, stale] = [self.poll, self.stale].map(|it| it.as_millis() as u64);
            json!({
                "id": format!("s{at}"), "dialect": "dialect.json", "url": url, "pollMs": poll,
                "staleAfterMs": stale, "frozenAfterMs": 2 * stale,
                "symbols": ["BTC/USDT", "ETH/USDT"], "quoteAssets": ["*"],
            })
        });
        let depth = |keep: i64| json!({ "keep": keep, "backfill": self.backfill });
        let config = change(json!({
            "sources": sources.collect::<Vec<_>>(),
            "data": "history.db",
            "history": { "1m": depth(1_000_000), "1h": depth(100_000), "1d": depth(10_000) },
            "cluster": {
                "url": format!("redis://{}{}/0", self.login, engine.addr()),
                "node": name,
                "leaseMs": self.lease.as_millis() as u64,
            },
        }));
        let marketd = launch.config(&config).start();
        Node {
            name,
            dir: marketd.dir(),
            marketd: Some(marketd),
            is_paused: false,
            engine,
            gate,
            config,
        }
    }

    fn launch(&self, gate: &Relay) -> Launch {
        let launch = Launch::new(&[]).env("http_proxy", &format!("http://{}", gate.addr()));
        match &self.program {
            Some(program) => launch.program(program),
            None => launch,
        }
    }

    /// The dialect of the fakes: each request costs one, and all tickers come at once.
    fn dialect(&self) -> Value {
        let text = include_str!("../../src/exchange/dialects/binance.json");
        let mut dialect: Value = serde_json::from_str(text).expect("it is built in");
        let (units, per_ms) = self.budget;
        dialect["name"] = json!("fake");
        dialect["budget"] = json!({ "units": units, "perMs": per_ms });
        dialect["tickers"]["all"]["call"]["cost"] = json!(1);
        let calls = dialect["tickers"].as_object_mut().expect("calls");
        calls.retain(|call, _| !matches!(call.as_str(), "one" | "several"));
        dialect["candles"]["call"]["cost"] = json!(1);
        dialect["markets"]["call"]["cost"] = json!(1);
        dialect["markets"]["several"]["call"]["cost"] = json!(1);
        dialect
    }

    /// Nodes that run.
    pub fn up(&self) -> impl Iterator<Item = (usize, &Node)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.marketd.is_some() && !node.is_paused)
    }

    /// The only node that says it collects this source for all, if all others say that they follow.
    pub fn collector(&self, source: usize) -> Option<usize> {
        let roles = self.up().map(|(at, node)| Some((at, node.role(source)?)));
        let roles: Vec<(usize, Role)> = roles.collect::<Option<_>>()?;
        let mut collectors = roles.iter().filter(|(_, role)| role.is_collector || role.is_alone);
        match (collectors.next(), collectors.next()) {
            (Some((at, role)), None) if role.is_collector => Some(*at),
            _ => None,
        }
    }

    /// Waits until each source has one collector, and each node that is up has a quote of it and is well.
    #[track_caller]
    pub fn await_roles(&self) -> Vec<usize> {
        self.await_roles_within(LONG)
    }

    /// The same, for which there is less time.
    #[track_caller]
    pub fn await_roles_within(&self, within: Duration) -> Vec<usize> {
        let caller = std::panic::Location::caller();
        let found = poll_until(within, || {
            let sources = 0..self.exchanges.len();
            let collectors: Vec<usize> =
                sources.clone().map(|source| self.collector(source)).collect::<Option<_>>()?;
            let is_well = |node: &Node| {
                node.health()["status"] == "ok" && sources.clone().all(|at| node.quote_is_fresh(at))
            };
            self.up().all(|(_, node)| is_well(node)).then_some(collectors)
        });
        found.unwrap_or_else(|| {
            let told = self.up().map(|(_, node)| {
                format!("{}: {}\n{}", node.name, node.health(), node.metrics()["cluster"])
            });
            let told: Vec<String> = told.collect();
            panic!("{caller}: not in their places after {within:?}:\n{}", told.join("\n"))
        })
    }

    /// Waits until every node collects no more than its share. Returns who collects each source.
    #[track_caller]
    pub fn await_spread(&self) -> Vec<usize> {
        let share = self.exchanges.len().div_ceil(self.nodes.len());
        eventually(LONG, || {
            let collectors = self.await_roles();
            let count = |node: usize| collectors.iter().filter(|it| **it == node).count();
            let is_spread = (0..self.nodes.len()).all(|node| count(node) <= share);
            is_spread.then_some(collectors)
        })
    }

    /// Waits until the bodies at these places are the same bytes on all nodes that are up.
    #[track_caller]
    pub fn await_same(&self, targets: &[&str]) {
        self.await_same_within(targets, LONG);
    }

    /// The same, for which there is less time.
    #[track_caller]
    pub fn await_same_within(&self, targets: &[&str], within: Duration) {
        let caller = std::panic::Location::caller();
        let deadline = Instant::now() + within;
        for target in targets {
            let mut bodies = Vec::new();
            let left = deadline.saturating_duration_since(Instant::now());
            let same = poll_until(left, || {
                bodies = self.up().map(|(_, node)| node.body(target)).collect();
                // Had the first one changed meanwhile, the others might be newer.
                bodies.push(bodies[0].clone());
                let (_, first) = self.up().next()?;
                bodies.push(first.body(target));
                bodies.windows(2).all(|two| two[0] == two[1]).then_some(())
            });
            assert!(
                same.is_some(),
                "{caller}: {target} differs after {within:?}:\n{}",
                differing(&bodies).join("\n")
            );
        }
    }

    /// Who polled an exchange, and when: in the order of the requests.
    pub fn polls(&self, source: usize) -> Vec<(Instant, usize)> {
        let polls = self.exchanges[source].asked_of(binance::TICKERS);
        polls.iter().map(|it| (it.at, self.asker(it))).collect()
    }

    /// Which node sent this request: it came through the node's gate.
    pub fn asker(&self, asked: &Asked) -> usize {
        let peer = asked.peer.expect("it came on a connection");
        let found = self.nodes.iter().position(|node| node.gate.has_opened(peer));
        found.unwrap_or_else(|| panic!("{peer} is at nobody's gate"))
    }

    /// Those who polled an exchange, one after the other: each is named again when another one polled between.
    pub fn turns(&self, source: usize) -> Vec<usize> {
        let mut turns: Vec<usize> = self.polls(source).iter().map(|(_, node)| *node).collect();
        turns.dedup();
        turns
    }

    /// The requests that an exchange had in the fullest window of its budget.
    pub fn fullest_window(&self, source: usize) -> Vec<Asked> {
        let span = Duration::from_millis(u64::from(self.budget.1));
        let mut asked = self.exchanges[source].asked();
        asked.sort_by_key(|it| it.at);
        let (mut fullest, mut end) = (0..0, 0);
        for begin in 0..asked.len() {
            while end < asked.len() && asked[end].at - asked[begin].at < span {
                end += 1;
            }
            if end - begin > fullest.len() {
                fullest = begin..end;
            }
        }
        asked.drain(fullest).collect()
    }

    /// The most requests that an exchange had within the span of its budget; panics if it is too many, and says
    /// who sent them.
    #[track_caller]
    pub fn assert_within_budget(&self, source: usize) -> usize {
        let (units, per_ms) = self.budget;
        let most = self.fullest_window(source);
        let told = |it: &Asked| {
            let after = (it.at - most[0].at).as_millis();
            let who = &self.nodes[self.asker(it)].name;
            format!("{after} ms {who} {}", it.target)
        };
        assert!(
            most.len() <= units as usize,
            "{} requests in {per_ms} ms, allowed are {units}:\n{}",
            most.len(),
            most.iter().map(told).collect::<Vec<_>>().join("\n")
        );
        most.len()
    }

    /// Waits until a source's clients on every node have a quote that was received after this time, and says
    /// which was the oldest one that was seen on the way.
    #[track_caller]
    pub fn await_news(&self, source: usize, within: Duration) -> Duration {
        let begin = now_ms();
        let mut oldest = 0;
        eventually(within, || {
            let received: Vec<i64> =
                self.up().map(|(_, node)| node.received_at(source)).collect::<Option<_>>()?;
            let least = received.iter().min().copied()?;
            oldest = oldest.max(now_ms() - least);
            (least > begin).then_some(())
        });
        Duration::from_millis(oldest.max(0) as u64)
    }

    /// Takes a node's process away: what it wrote stays.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].marketd = None;
    }

    /// Stops a node in the middle of what it does.
    pub fn pause(&mut self, node: usize) {
        self.nodes[node].marketd().signal("STOP");
        self.nodes[node].is_paused = true;
    }

    /// Lets it go on.
    pub fn resume(&mut self, node: usize) {
        self.nodes[node].marketd().signal("CONT");
        self.nodes[node].is_paused = false;
    }

    /// Starts a node again that is down, in its directory.
    pub fn restart(&mut self, node: usize) {
        let launch = self.launch(&self.nodes[node].gate);
        let node = &mut self.nodes[node];
        assert!(node.marketd.is_none(), "{} runs", node.name);
        let launch = launch.in_dir(Arc::clone(&node.dir));
        node.marketd = Some(launch.config(&node.config).start());
    }
}

impl Node {
    #[track_caller]
    pub fn marketd(&self) -> &Marketd {
        self.marketd.as_ref().unwrap_or_else(|| panic!("{} is down", self.name))
    }

    #[track_caller]
    pub fn get(&self, target: &str) -> Response {
        get(self.marketd().addr(), target)
    }

    /// Status and body.
    #[track_caller]
    pub fn body(&self, target: &str) -> String {
        let answer = self.get(target);
        format!("{} {}", answer.status, answer.text())
    }

    #[track_caller]
    pub fn health(&self) -> Json {
        self.get("/health").exact()
    }

    #[track_caller]
    pub fn metrics(&self) -> Json {
        self.get("/api/v1/metrics").exact()
    }

    /// What its metrics say of a source.
    #[track_caller]
    pub fn role(&self, source: usize) -> Option<Role> {
        let metrics = self.metrics();
        let all = metrics["cluster"].get("sources")?;
        let id = format!("s{source}");
        let told = all.items().iter().find(|it| it["id"] == &*id)?;
        let [is_collector, is_alone] = ["collector", "alone"].map(|role| told["role"] == role);
        assert!(is_collector || is_alone || told["role"] == "follower", "{told}");
        Some(Role { is_collector, is_alone, epoch: told["epoch"].integer()? })
    }

    /// What it says of Redis: `up` or `down`.
    #[track_caller]
    pub fn engine_state(&self) -> String {
        let told = self.metrics()["cluster"]["engine"].text().map(str::to_string);
        told.expect("engine is a text")
    }

    /// Waits until it says so of Redis.
    #[track_caller]
    pub fn await_engine(&self, state: &str) {
        eventually(LONG, || (self.engine_state() == state).then_some(()));
    }

    /// Its reason of health that is about the cluster, as code and message.
    #[track_caller]
    pub fn cluster_reason(&self) -> Option<(String, String)> {
        let health = self.health();
        let text = |reason: &Json, key: &str| reason[key].text().map(str::to_string);
        let reasons = health["reasons"].items().iter();
        let mut told = reasons.filter_map(|it| Some((text(it, "code")?, text(it, "message")?)));
        told.find(|(code, _)| code.starts_with("cluster"))
    }

    /// When the quote of a source was received that its clients see.
    pub fn received_at(&self, source: usize) -> Option<i64> {
        let quote = self.get(&quote_of(source));
        let quote = (quote.status == 200).then(|| quote.exact())?;
        quote["receivedAt"].integer()
    }

    fn quote_is_fresh(&self, source: usize) -> bool {
        let quote = self.get(&quote_of(source));
        quote.status == 200 && quote.exact()["stale"].bool() == Some(false)
    }

    /// All candles of its history file.
    pub fn candles(&self) -> BTreeMap<Slot, [String; 5]> {
        candles(&self.dir.history())
    }
}

/// So many exchanges of so many markets.
fn generated(exchanges: usize, markets: usize) -> Vec<Binance> {
    (1..=exchanges as u64).map(|seed| Binance::generated(markets, seed)).collect()
}

/// Lets so much time pass.
pub fn pass(span: Duration) {
    let begin = Instant::now();
    eventually(span + PATIENCE, || (begin.elapsed() >= span).then_some(()));
}

/// Looks at something again and again for so long.
pub fn throughout(span: Duration, mut look: impl FnMut()) {
    let begin = Instant::now();
    while begin.elapsed() < span {
        look();
        pass(LOOK_EVERY);
    }
}

/// The part of each body in which they differ, with a little before it.
fn differing(bodies: &[String]) -> Vec<&str> {
    let first = bodies[0].as_bytes();
    let same = |body: &String| {
        let pairs = first.iter().zip(body.as_bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let others = bodies.iter().filter(|body| *body != &bodies[0]);
    let at = others.map(same).min().unwrap_or(0).saturating_sub(100);
    let shown = bodies.iter().map(|it| &it[at.min(it.len())..it.len().min(at + 300)]);
    shown.collect()
}

/// Where a quote of this source is served.
pub fn quote_of(source: usize) -> String {
    format!("/api/v1/quotes/BTC-USDT?source=s{source}")
}

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("it is later").as_millis() as i64
}
