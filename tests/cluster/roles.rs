//! Who polls, who follows, and that nobody can tell the difference.

use crate::cluster::engine::settled;
use crate::cluster::world::*;
use crate::support::*;

/// What is the same on all nodes at any moment.
pub const SAME: [&str; 7] = [
    "/api/v1/quotes/BTC-USDT?source=s0",
    "/api/v1/quotes?symbols=*&source=s0",
    "/api/v1/categories",
    "/api/v1/categories/usdt/markets",
    "/api/ecosystem/market",
    "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&source=s0&limit=50",
    "/api/ecosystem/chart?symbol=ETH/USDT&interval=1m&source=s0&limit=50",
];

#[test]
fn one_node_polls_an_exchange_and_all_answer_the_same_bytes() {
    let Some(world) = World::settled(1, 3) else { return };
    for _ in 0..5 {
        world.await_same(&SAME);
    }
    // A tag of one node says nothing to another.
    for target in SAME {
        let tags = [0, 1].map(|node| world.nodes[node].get(target));
        assert_ne!(tags[0].header("ETag"), tags[1].header("ETag"), "{target}");
    }
    let collector = world.await_roles()[0];
    assert_eq!(world.turns(0), [collector]);
    let asked = world.exchanges[0].asked();
    let strays: Vec<&str> = asked
        .iter()
        .filter(|it| world.asker(it) != collector)
        .map(|it| it.target.as_str())
        .collect();
    assert!(strays.is_empty(), "followers asked for {strays:?}");
    // A stream of a follower is as alive as one of the collector.
    let follower = &world.nodes[(collector + 1) % 3];
    let target = "/api/v1/stream?symbols=BTC/USDT&source=s0";
    let mut events = EventSource::open(follower.marketd().addr(), target);
    let first = events.next_of("quote").exact()["receivedAt"].integer();
    events.until(|it| it.name == "quote" && it.exact()["receivedAt"].integer() > first);
    // The metrics tell who does what.
    for (at, node) in world.up() {
        let told = node.metrics()["cluster"].clone();
        assert_eq!(told["node"], &*node.name);
        assert_eq!(told["engine"], "up");
        let sources = told["sources"].items();
        assert_eq!(sources.len(), 1, "{told}");
        assert_eq!(sources[0]["id"], "s0");
        let role = if at == collector { "collector" } else { "follower" };
        assert_eq!(sources[0]["role"], role);
        assert!(sources[0]["epoch"].integer() > Some(0), "{told}");
        let lag = sources[0].get("lagMs").expect("lagMs is there");
        assert!(lag.is_null() || lag.integer() < Some(1000), "{told}");
        let page = node.get("/metrics");
        assert!(page.text().contains("marketd_cluster_"), "no figures of the cluster");
        assert_eq!(node.cluster_reason(), None);
    }
    let epochs: Vec<i64> = (0..2).filter_map(|at| Some(world.nodes[at].role(0)?.epoch)).collect();
    assert_eq!(epochs[0], epochs[1]);
    // One that is in no cluster has none.
    let alone = Marketd::start(&["--source", &world.exchanges[0].source(), "--data", ":memory:"]);
    let metrics = get(alone.addr(), "/api/v1/metrics").exact();
    assert!(metrics["cluster"].is_null());
}

#[test]
fn sources_are_spread_over_the_nodes_and_each_is_polled_by_one() {
    let Some(mut world) = World::new(6) else { return };
    world.backfill = 0;
    world.add(3);
    world.await_spread();
    for source in 0..6 {
        let mut turns = world.turns(source);
        let count = turns.len();
        turns.sort();
        turns.dedup();
        assert_eq!(turns.len(), count, "s{source} went to and fro: {:?}", world.turns(source));
        world.assert_within_budget(source);
    }
}

#[test]
fn a_node_that_joins_late_has_everything_and_each_file_holds_the_same_candles() {
    let Some(mut world) = World::settled(1, 2) else { return };
    let await_complete = |node: &Node, target: &str| {
        let is_complete = |it: &Response| it.header("Chart-Coverage") == Some("complete");
        await_answer(node.marketd().addr(), target, is_complete);
    };
    SAME[5..].iter().for_each(|target| await_complete(&world.nodes[0], target));
    world.add(1);
    world.await_roles();
    world.await_same(&SAME);
    SAME[5..].iter().for_each(|target| await_complete(&world.nodes[2], target));
    let asked = world.exchanges[0].asked();
    assert!(asked.iter().all(|it| world.asker(it) == world.asker(&asked[0])));
    // Two symbols, three intervals.
    let wanted = 2 * 3 * (world.backfill as usize - 1);
    let same = |world: &World| {
        let rows: Vec<_> = world.up().map(|(_, node)| node.candles()).collect();
        let is_same = rows.windows(2).all(|two| two[0] == two[1]);
        (is_same && rows[0].len() >= wanted).then_some(())
    };
    eventually(LONG, || same(&world));
    // One that was away while the others went on has what it has missed.
    world.kill(2);
    world.await_roles();
    let hour_ago = now_ms() - 100 * 3_600_000;
    let older = format!(
        "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&source=s0&to={hour_ago}&limit=20"
    );
    await_complete(&world.nodes[0], &older);
    world.restart(2);
    world.await_roles();
    world.await_same(&[&older]);
    eventually(LONG, || same(&world));
}

#[test]
fn two_clusters_share_a_redis_by_their_prefixes() {
    let Some(mut world) = World::new(1) else { return };
    world.backfill = 0;
    world.add(1);
    world.add_to(world.redis.addr(), &|mut config| {
        config["cluster"]["prefix"] = "another".into();
        config
    });
    for node in 0..2 {
        let collects = || world.nodes[node].role(0).filter(|role| role.is_collector);
        eventually(LONG, collects);
    }
    let keys = world.redis.keys();
    let belongs = |key: &&String, prefix: &str| key.trim_start_matches('{').starts_with(prefix);
    let ours = keys.iter().filter(|key| belongs(key, "marketd")).count();
    let theirs = keys.iter().filter(|key| belongs(key, "another")).count();
    assert!(ours > 0 && theirs > 0 && ours + theirs == keys.len(), "{keys:?}");
}

/// Waits until every node says that its quotes are stale.
#[track_caller]
fn await_stale(world: &World) {
    for (_, node) in world.up() {
        eventually(LONG, || node.body(&quote_of(0)).contains("\"stale\":true").then_some(()));
        assert_eq!(node.health()["status"], "degraded", "{}", node.name);
    }
}

#[test]
fn an_exchange_that_fails_or_is_frozen_is_told_of_by_every_node() {
    let Some(world) = settled(2) else { return };
    let (turns, exchange) = (world.turns(0), &world.exchanges[0]);
    exchange.fault(Fault::Status(500));
    await_stale(&world);
    for (_, node) in world.up() {
        let metrics = node.metrics();
        assert!(metrics["upstreams"][0]["state"] != "up", "{}", metrics["upstreams"]);
    }
    exchange.heal();
    world.await_roles();
    world.await_same(&SAME[..5]);
    assert_eq!(world.turns(0), turns, "a failing exchange is no reason to change hands");
    exchange.set_time(ServerTime::Fixed(now_ms()));
    await_stale(&world);
    exchange.set_time(ServerTime::Offset(0));
    world.await_roles();
    world.await_same(&SAME[..5]);
}
