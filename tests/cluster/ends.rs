//! How a collector ends, and who goes on.

use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;
use std::time::{Duration, Instant};

/// How long an orderly hand-over takes: nobody waits for the end of the lease.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The oldest quote that a client of any node may see when a collector is gone.
const OLDEST: Duration = LEASE.saturating_add(POLL).saturating_add(POLL);

#[test]
fn a_collector_that_is_killed_is_replaced_within_the_lease() {
    let Some(mut world) = World::settled(1, 3) else {
        return;
    };
    for _ in 0..2 {
        let old = world.await_roles()[0];
        let epoch = world.nodes[old].role(0).map(|role| role.epoch);
        world.exchanges[0].forget();
        world.kill(old);
        let oldest = world.await_news(0, LONG);
        assert!(oldest < OLDEST + NOISE, "clients saw quotes as old as {oldest:?}");
        let new = world.await_roles()[0];
        let turns = world.turns(0);
        assert!(turns == [new] || turns == [old, new], "{turns:?}");
        assert!(world.nodes[new].role(0).map(|role| role.epoch) > epoch);
        world.await_same(&SAME);
        world.restart(old);
        world.await_roles();
        world.await_same(&SAME);
    }
    world.assert_within_budget(0);
}

#[test]
fn an_orderly_stop_hands_over_at_once() {
    let Some(mut world) = World::settled(1, 2) else {
        return;
    };
    let mut took = Vec::new();
    for _ in 0..3 {
        let old = world.await_roles()[0];
        let begin = Instant::now();
        let marketd = world.nodes[old].marketd.take().expect("it runs");
        marketd.signal("TERM");
        eventually(LONG, || (world.collector(0) == Some(1 - old)).then_some(()));
        took.push(begin.elapsed());
        assert_eq!(marketd.await_end(LONG).code, Some(0));
        world.await_news(0, LONG);
        let polls = world.polls(0).into_iter().filter(|(at, _)| *at > begin);
        let mut turns: Vec<usize> = polls.map(|(_, node)| node).collect();
        turns.dedup();
        assert!(turns == [1 - old] || turns == [old, 1 - old], "both polled: {turns:?}");
        world.restart(old);
        world.await_same(&SAME);
    }
    // One of them on a machine that was busy with something else.
    took.sort();
    assert!(took[0] < HAND_OVER && took[1] < HAND_OVER + NOISE / 2, "took {took:?}");
}

#[test]
fn a_collector_that_slept_is_refused_and_follows() {
    let Some(mut world) = World::settled(1, 3) else {
        return;
    };
    let old = world.await_roles()[0];
    let exchange = &world.exchanges[0];
    // It sleeps in the middle of a response that nobody else may ever see.
    exchange.patch_ticker("BTCUSDT", "lastPrice", "\"7.7654321\"");
    let slowly = Fault::Slowly { bytes: 100, pause: Duration::from_millis(50) };
    exchange.fault_times(1, Some(binance::TICKERS), slowly);
    exchange.forget();
    exchange.await_asked(binance::TICKERS, 1, LONG);
    world.pause(old);
    world.exchanges[0].unpatch();
    let asleep = Instant::now();
    let oldest = world.await_news(0, LONG);
    assert!(oldest < OLDEST + NOISE, "clients saw quotes as old as {oldest:?}");
    let new = eventually(LONG, || world.collector(0));
    pass((LEASE * 3 / 2).saturating_sub(asleep.elapsed()));
    let turns = world.turns(0);
    world.resume(old);
    let mut newest = 0;
    eventually(LONG, || {
        for (at, node) in world.up().filter(|(at, _)| *at != old) {
            let quote = node.body(&quote_of(0));
            assert!(!quote.contains("7.7654321"), "{at}: a late write was taken: {quote}");
        }
        // Nor does anything older come after something newer.
        let received = world.nodes[new].received_at(0).unwrap_or(0);
        assert!(received >= newest, "{received} after {newest}");
        newest = received;
        let role = world.nodes[old].role(0);
        role.is_some_and(|role| !role.is_collector).then_some(())
    });
    assert_eq!(world.await_roles(), [new]);
    assert_eq!(world.turns(0), turns, "it polled although it had slept through its lease");
    world.await_same(&SAME);
}

#[test]
fn a_collector_that_is_cut_off_is_replaced_and_comes_back() {
    let Some(world) = World::settled(1, 3) else {
        return;
    };
    let old = world.await_roles()[0];
    world.nodes[old].engine.set(Passage::Held);
    let others = || world.up().filter(|(at, _)| *at != old);
    let begin = Instant::now();
    let new = eventually(LONG, || {
        let collects = |node: &Node| node.role(0).is_some_and(|role| role.is_collector);
        others().find(|(_, node)| collects(node)).map(|(at, _)| at)
    });
    assert!(begin.elapsed() < OLDEST + NOISE, "took {:?}", begin.elapsed());
    world.nodes[old].await_engine("down");
    assert_eq!(world.nodes[old].health()["status"], "degraded");
    assert!(world.nodes[old].cluster_reason().is_some());
    // What it serves by itself is honest.
    assert_eq!(world.nodes[old].get("/health/live").status, 200);
    world.nodes[old].engine.set(Passage::Open);
    let collectors = world.await_roles();
    assert_eq!(collectors, [new]);
    world.await_same(&SAME);
}

#[test]
fn a_follower_that_was_cut_off_reads_on_from_its_place() {
    let Some(world) = World::settled(1, 2) else {
        return;
    };
    let collector = world.await_roles()[0];
    let follower = 1 - collector;
    let turns = world.turns(0);
    for passage in [Passage::Held, Passage::Cut] {
        world.nodes[follower].engine.set(passage);
        world.nodes[follower].await_engine("down");
        let before = world.exchanges[0].count(binance::TICKERS);
        world.exchanges[0].await_asked(binance::TICKERS, before + 5, LONG);
        world.nodes[follower].engine.set(Passage::Open);
        world.await_roles();
        world.await_same(&SAME);
    }
    assert_eq!(world.turns(0), turns);
}

#[test]
fn a_follower_whose_place_was_trimmed_away_takes_the_snapshot() {
    let Some(world) = World::settled(1, 2) else {
        return;
    };
    let collector = world.await_roles()[0];
    let follower = &world.nodes[1 - collector];
    follower.engine.set(Passage::Cut);
    follower.await_engine("down");
    let before = world.exchanges[0].count(binance::TICKERS);
    world.exchanges[0].await_asked(binance::TICKERS, before + 5, LONG);
    let streams =
        |key: &&String| world.redis.ask(&["TYPE", key]) == Answer::Text("stream".to_string());
    let keys = world.redis.keys();
    let trimmed = keys
        .iter()
        .filter(streams)
        .filter(|key| world.redis.ask(&["XTRIM", key, "MAXLEN", "0"]).number() > Some(0));
    assert!(trimmed.count() > 0, "no stream had an entry: {keys:?}");
    follower.engine.set(Passage::Open);
    world.await_roles();
    world.await_same(&SAME);
}

#[test]
fn a_reply_that_is_lost_after_the_command_took_effect_does_no_harm() {
    let Some(world) = World::settled(1, 2) else {
        return;
    };
    let collector = world.await_roles()[0];
    for round in 1..=3 {
        world.nodes[collector].engine.swallow_reply_to("EVAL");
        eventually(LONG, || (world.nodes[collector].engine.swallowed() == round).then_some(()));
        world.await_news(0, LONG);
    }
    world.await_roles();
    world.await_same(&SAME);
    let mut turns = world.turns(0);
    turns.dedup();
    assert!(turns.len() <= 2, "the source went to and fro: {turns:?}");
}

#[test]
fn a_budget_holds_whoever_spends_it() {
    let Some(mut world) = World::new(1) else {
        return;
    };
    // Tight: polls alone would take more.
    world.budget = (16, 4000);
    world.backfill = 10_000;
    world.add(3);
    world.await_roles();
    for _ in 0..3 {
        let old = eventually(LONG, || world.collector(0));
        world.kill(old);
        world.await_news(0, LONG);
        world.restart(old);
    }
    let old = eventually(LONG, || world.collector(0));
    let marketd = world.nodes[old].marketd.take().expect("it runs");
    marketd.stop(LONG);
    world.await_news(0, LONG);
    let most = world.assert_within_budget(0);
    // Whoever takes over from a dead one uses half.
    assert!(most > 4, "the budget is hardly used: {most}");
}

#[test]
fn a_budget_holds_while_a_cut_off_node_collects_for_itself() {
    let Some((world, old)) = World::tight((16, 4000)) else {
        return;
    };
    world.nodes[old].engine.set(Passage::Held);
    let new = 1 - old;
    eventually(LONG, || world.nodes[new].role(0).filter(|role| role.is_collector));
    // Both of them for a whole span, and then one alone.
    let (_, per_ms) = world.budget;
    pass(Duration::from_millis(u64::from(per_ms)));
    world.nodes[old].engine.set(Passage::Open);
    world.await_roles();
    world.assert_within_budget(0);
}

#[test]
fn several_collectors_that_are_cut_off_at_once_leave_all_to_the_one_that_is_not() {
    let Some(mut world) = World::new(6) else {
        return;
    };
    world.budget = (16, 4000);
    world.backfill = 0;
    // Longer than this takes: only collectors go on.
    world.stale = LONG;
    world.add(3);
    let before = world.await_spread();
    let [left, cut @ ..] = [0, 1, 2];
    let cut_at = Instant::now();
    for node in cut {
        world.nodes[node].engine.set(Passage::Held);
    }
    let collects = |node: usize, source: usize| {
        let role = world.nodes[node].role(source);
        role.is_some_and(|role| role.is_collector).then_some(())
    };
    (0..6).for_each(|source| eventually(LONG, || collects(left, source)));
    for node in cut {
        world.nodes[node].await_engine("down");
    }
    // Each goes on with what it had, and with nothing else.
    pass(Duration::from_millis(u64::from(world.budget.1)));
    for (source, node) in before.iter().copied().enumerate() {
        let received = |node: usize| world.nodes[node].received_at(source);
        for node in [node, left] {
            let last = received(node);
            eventually(LONG, || (received(node) > last).then_some(()));
        }
        let mut polls = world.polls(source);
        polls.retain(|(at, _)| *at > cut_at);
        assert!(polls.iter().all(|(_, it)| [left, node].contains(it)), "{polls:?}");
        world.assert_within_budget(source);
    }
    for node in cut {
        world.nodes[node].engine.set(Passage::Open);
    }
    world.await_spread();
    for source in 0..6 {
        world.await_same(&[&quote_of(source)]);
        world.assert_within_budget(source);
    }
}

#[test]
fn a_stop_waits_for_no_redis() {
    let Some(mut world) = World::settled(1, 2) else {
        return;
    };
    for node in 0..2 {
        world.nodes[node].engine.set(Passage::Held);
        let begin = Instant::now();
        let marketd = world.nodes[node].marketd.take().expect("it runs");
        assert_eq!(marketd.stop(LONG).code, Some(0));
        assert!(begin.elapsed() < 2 * NOISE, "took {:?}", begin.elapsed());
    }
}

#[test]
fn a_cluster_that_was_away_goes_on_where_it_was() {
    let Some(mut world) = World::settled(1, 2) else {
        return;
    };
    world.await_same(&SAME);
    let epoch = |world: &World| world.nodes[0].role(0).map(|role| role.epoch);
    let before = epoch(&world);
    assert!(before.is_some());
    (0..2).for_each(|node| world.kill(node));
    (0..2).for_each(|node| world.restart(node));
    // Until the lease of the killed collector runs out, both follow what it has left.
    eventually(LONG, || (epoch(&world) > before).then_some(()));
    world.await_roles();
    world.await_same(&SAME);
}
