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

/// Has Redis do something.
#[track_caller]
fn order(redis: &Redis, words: &[&str]) {
    assert_eq!(redis.ask(words), "OK");
}

#[test]
fn a_redis_that_dies_and_comes_back_empty_or_with_old_data_leaves_every_node_answering() {
    let Some(mut world) = settled(3) else { return };
    let collector = world.await_roles()[0];
    for is_old in [false, true] {
        if is_old {
            world.redis.save();
            let polls = world.exchanges[0].count(binance::TICKERS);
            world.exchanges[0].await_asked(binance::TICKERS, polls + 10, LONG);
        }
        let received =
            |world: &World| -> Vec<_> { world.up().map(|(_, node)| node.received_at(0)).collect() };
        let before = received(&world);
        world.redis.kill();
        await_down(&world);
        watch(&world, LEASE + Duration::from_secs(1));
        assert!(received(&world)[collector] > before[collector], "it does not go on");
        world.redis.run();
        throughout(LEASE, || {
            let now = received(&world);
            assert!(now.iter().zip(&before).all(|(now, before)| now >= before), "{now:?}");
        });
        await_reunion(&world);
    }
    // It is emptied while all are connected.
    order(&world.redis, &["FLUSHALL"]);
    await_reunion(&world);
    world.await_news(0, LONG);
    world.assert_within_budget(0);
}

#[test]
fn a_redis_that_refuses_to_write_or_hangs_is_told_of_and_waited_for() {
    let (Some(world), Some(primary)) = (settled(2), Redis::start(&[])) else { return };
    let port = primary.addr().port().to_string();
    order(&world.redis, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    for (begin, words, end) in [
        (&["CONFIG", "SET", "maxmemory", "1"][..], "out of memory", ["maxmemory", "0"]),
        (&["REPLICAOF", "127.0.0.1", &port], "read-only replica", ["NO", "ONE"]),
    ] {
        order(&world.redis, begin);
        eventually(LONG, || {
            let told = world.up().filter_map(|(_, node)| node.cluster_reason());
            told.map(|(_, message)| message).find(|it| it.contains(words))
        });
        watch(&world, Duration::from_secs(2));
        order(&world.redis, &[&begin[..begin.len() - 2], &end].concat());
        await_reunion(&world);
    }
    world.redis.signal("STOP");
    await_down(&world);
    watch(&world, Duration::from_secs(2));
    world.redis.signal("CONT");
    await_reunion(&world);
}
