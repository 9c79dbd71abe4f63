//! Redis dies, stalls, forgets, fills up or turns into a replica, under nodes that answer all the while.

use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;
use std::time::{Duration, Instant};

/// How soon all agree once Redis is as it should be.
const REUNION: Duration = Duration::from_secs(5);

/// How long an answer may take while Redis is not there: as long as ever, on a busy machine.
const ANSWER: Duration = Duration::from_millis(500);

/// How old a quote may get before it is stale, where it matters.
pub const STALE: Duration = Duration::from_millis(1500);

/// Nodes that have the same, and whose quotes soon turn stale.
pub fn settled(nodes: usize) -> Option<World> {
    let mut world = World::new(1)?;
    world.stale = STALE;
    world.add(nodes);
    world.await_roles();
    world.await_same(&SAME);
    Some(world)
}

/// Looks at all nodes for so long: each answers at once, and what it says of a quote's age is true.
#[track_caller]
fn watch(world: &World, span: Duration) {
    throughout(span, || {
        for (_, node) in world.up() {
            let asked = Instant::now();
            let before = now_ms();
            let quote = node.get(&quote_of(0));
            assert!(asked.elapsed() < ANSWER, "{} took {:?}", node.name, asked.elapsed());
            assert_eq!(quote.status, 200, "{}: {}", node.name, quote.text());
            let quote = quote.exact();
            let received = quote["receivedAt"].integer().expect("a time");
            let (stale, limit) = (quote["stale"].bool(), STALE.as_millis() as i64);
            let noise = NOISE.as_millis() as i64 / 2;
            let is_old = before - received > limit + noise;
            let is_new = now_ms() - received < limit - noise;
            assert!(!is_old || stale == Some(true), "{}: old, and not stale: {quote}", node.name);
            assert!(!is_new || stale == Some(false), "{}: new, but stale: {quote}", node.name);
        }
    });
}

/// Each node says that Redis is gone, in its metrics and in its health.
#[track_caller]
pub fn await_down(world: &World) {
    for (_, node) in world.up() {
        node.await_engine("down");
        assert_eq!(node.health()["status"], "degraded", "{}", node.name);
        assert!(node.cluster_reason().is_some(), "{}", node.health());
        assert_eq!(node.get("/health").status, 200);
    }
}

/// Redis is as it should be: soon there is one collector, and all say the same.
#[track_caller]
pub fn await_reunion(world: &World) {
    let begin = Instant::now();
    world.await_roles_within(REUNION + NOISE);
    let left = (REUNION + NOISE).saturating_sub(begin.elapsed());
    world.await_same_within(&SAME, left.max(NOISE));
}

#[test]
fn a_redis_that_dies_leaves_every_node_answering() {
    let Some(mut world) = settled(3) else { return };
    let collector = world.await_roles()[0];
    world.redis.kill();
    await_down(&world);
    let before = world.nodes[collector].received_at(0);
    watch(&world, LEASE + Duration::from_secs(1));
    assert!(world.nodes[collector].received_at(0) > before, "it does not collect for itself");
    world.redis.run();
    await_reunion(&world);
    // It came back empty; now it is emptied while all are connected.
    order(&world, &["FLUSHALL"]);
    await_reunion(&world);
    world.await_news(0, LONG);
    world.assert_within_budget(0);
}

#[test]
fn a_redis_that_comes_back_with_old_data_is_not_believed() {
    let Some(mut world) = settled(2) else { return };
    world.redis.save();
    let polls = world.exchanges[0].count(binance::TICKERS);
    world.exchanges[0].await_asked(binance::TICKERS, polls + 10, LONG);
    let before: Vec<_> = (0..2).map(|node| world.nodes[node].received_at(0)).collect();
    world.redis.kill();
    await_down(&world);
    world.redis.run();
    throughout(LEASE, || {
        for (at, node) in world.up() {
            let (now, before) = (node.received_at(0), before[at]);
            assert!(now >= before, "{at} went back from {before:?} to {now:?}");
        }
    });
    await_reunion(&world);
    world.await_news(0, LONG);
}

/// Has Redis do something.
#[track_caller]
fn order(world: &World, words: &[&str]) {
    assert_eq!(world.redis.ask(words), Answer::Text("OK".to_string()));
}

/// Redis answers and refuses to write: some node says so, in these words, and all wait for it.
#[track_caller]
fn await_refused_writes(world: &World, words: &str) {
    eventually(LONG, || {
        let told = world.up().filter_map(|(_, node)| node.cluster_reason());
        told.map(|(_, message)| message).find(|it| it.contains(words))
    });
    watch(world, Duration::from_secs(2));
}

#[test]
fn a_redis_that_is_full_is_told_of_and_waited_for() {
    let Some(world) = settled(2) else { return };
    order(&world, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    order(&world, &["CONFIG", "SET", "maxmemory", "1"]);
    await_refused_writes(&world, "out of memory");
    order(&world, &["CONFIG", "SET", "maxmemory", "0"]);
    await_reunion(&world);
}

#[test]
fn a_redis_that_became_a_replica_is_told_of_and_waited_for() {
    let (Some(world), Some(primary)) = (settled(2), Redis::start(&[])) else { return };
    order(&world, &["REPLICAOF", "127.0.0.1", &primary.addr().port().to_string()]);
    await_refused_writes(&world, "read-only replica");
    order(&world, &["REPLICAOF", "NO", "ONE"]);
    await_reunion(&world);
}

#[test]
fn a_redis_that_hangs_is_given_up_and_taken_again() {
    let Some(world) = settled(2) else { return };
    world.redis.signal("STOP");
    await_down(&world);
    watch(&world, Duration::from_secs(2));
    world.redis.signal("CONT");
    await_reunion(&world);
}
