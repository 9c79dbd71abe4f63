//! Entries that no node of this version has written.

use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;

/// The stream of the only source.
const STREAM: &str = "{marketd}:s0:stream";

/// Puts something into the stream, as a node would.
#[track_caller]
fn put(world: &World, entry: &str) {
    let answer = world.redis.ask(&["XADD", STREAM, "*", "e", entry]);
    assert!(answer.text().is_some(), "{answer:?}");
}

#[test]
fn entries_that_make_no_sense_are_passed_over() {
    let Some(world) = World::settled(1, 2) else {
        return;
    };
    let collector = world.await_roles();
    for_each_seed(20, |_, rng| {
        let length = rng.below(300) as usize;
        let letter = |_| char::from(rng.below(128) as u8);
        // Of this version, so that it is read.
        let entry: String = "\u{1}".chars().chain((0..length).map(letter)).collect();
        put(&world, &entry);
    });
    put(&world, "");
    put(&world, &"\u{1}".repeat(1 << 20));
    // Something that is not even a field of ours.
    world.redis.ask(&["XADD", STREAM, "*", "other", "x", "more", "y"]);
    world.await_news(0, LONG);
    assert_eq!(world.await_roles(), collector);
    world.await_same(&SAME);
}

#[test]
fn a_newer_format_is_told_of_and_the_node_goes_on_by_itself() {
    let Some(world) = World::settled(1, 2) else {
        return;
    };
    let collector = world.await_roles()[0];
    let follower = &world.nodes[1 - collector];
    put(&world, "\u{2}\u{0}\u{1}");
    let reason = eventually(LONG, || follower.cluster_reason());
    assert_eq!(reason.0, "cluster_format");
    assert_eq!(follower.health()["status"], "degraded");
    // It goes on by itself, and the others without it.
    let before = follower.received_at(0);
    eventually(LONG, || (follower.received_at(0) > before).then_some(()));
    world.await_news(0, LONG);
    assert!(world.polls(0).iter().any(|(_, node)| *node != collector));
    let lines = follower.marketd().log().matches("newer format source=").count();
    assert_eq!(lines, 1, "{}", follower.marketd().log());
}

#[test]
fn a_newer_node_is_told_of_wherever_it_is_met() {
    // In the market list that it writes, and in its requests for candles.
    for is_list in [true, false] {
        let Some(world) = World::settled(1, 2) else {
            return;
        };
        let collector = world.await_roles()[0];
        let redis = &world.redis;
        let older = match is_list {
            true => {
                redis.ask(&["SET", "{marketd}:s0:list", "\u{2}of tomorrow"]);
                redis.ask(&["HINCRBY", "{marketd}:s0:lease", "list", "1"]);
                1 - collector
            }
            false => {
                redis.ask(&["XADD", "{marketd}:s0:ask", "*", "e", "\u{2}of tomorrow"]);
                collector
            }
        };
        let [older, other] = [older, 1 - older].map(|at| &world.nodes[at]);
        let (code, _) = eventually(LONG, || older.cluster_reason());
        assert_eq!(code, "cluster_format");
        let told = older.metrics()["cluster"].clone();
        assert_eq!(told["engine"], "down", "{told}");
        assert_eq!(told["sources"].items()[0]["role"], "collector", "{told}");
        let page = older.get("/metrics");
        assert!(page.text().contains("marketd_cluster_engine_up 0\n"));
        let says = "ERROR cluster: newer format source=s0 version=2";
        eventually(LONG, || older.marketd().log().contains(says).then_some(()));
        // It collects for itself, and knocks no more.
        let knocks = older.engine.connections();
        let before = older.received_at(0);
        eventually(LONG, || (older.received_at(0) > before).then_some(()));
        // The other goes on, until it is asked the same by taking the source over.
        if is_list {
            eventually(LONG, || (other.health()["status"] == "ok").then_some(()));
            assert_eq!(other.cluster_reason(), None);
            assert_eq!(other.role(0).map(|role| role.is_collector), Some(true));
        }
        assert_eq!(older.engine.connections(), knocks);
        assert_eq!(older.cluster_reason().map(|it| it.0).as_deref(), Some("cluster_format"));
    }
}

#[test]
fn keys_of_another_kind_do_not_stop_a_node() {
    let Some(world) = World::new(1) else {
        return;
    };
    // Somebody else uses the names.
    for name in ["nodes", "s0:lease", "s0:stream", "s0:list", "s0:ask"] {
        world.redis.ask(&["LPUSH", &format!("{{marketd}}:{name}"), "x"]);
    }
    let mut world = world;
    world.add(1);
    let node = &world.nodes[0];
    eventually(LONG, || node.cluster_reason());
    assert_eq!(node.get("/health/live").status, 200);
    world.redis.ask(&["FLUSHALL"]);
    world.await_roles();
}
