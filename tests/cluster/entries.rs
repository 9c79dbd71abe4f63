//! Entries that no node of this version has written.

use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;
use std::time::Duration;

/// The stream of the only source.
const STREAM: &str = "{marketd}:s0:stream";

/// Puts something into the stream, as a node would.
#[track_caller]
fn put(world: &World, entry: &str) {
    let answer = world.redis.ask(&["XADD", STREAM, "*", "e", entry]);
    assert!(answer.text().is_some(), "{answer:?}");
}

#[test]
fn an_entry_that_makes_no_sense_or_is_newer_costs_a_node_no_more_than_itself() {
    let Some(world) = World::settled(1, 2) else { return };
    let collector = world.await_roles()[0];
    put(&world, "");
    put(&world, &"\u{1}".repeat(1 << 20));
    // Something that is not even a field of ours.
    world.redis.ask(&["XADD", STREAM, "*", "other", "x", "more", "y"]);
    put(&world, "\u{2}\u{0}\u{1}");
    world.redis.ask(&["XADD", "{marketd}:s0:ask", "*", "e", "\u{2}of tomorrow"]);
    for at in [collector, 1 - collector] {
        let says = "error=\"newer format 2\"";
        eventually(LONG, || world.nodes[at].marketd().log().contains(says).then_some(()));
    }
    world.await_news(0, LONG);
    assert_eq!(world.await_roles(), [collector]);
    world.await_same(&SAME);
    assert_eq!(world.turns(0), [collector]);
}

#[test]
fn a_list_of_tomorrow_is_told_of_and_the_node_works_by_itself() {
    let Some(mut world) = World::new(1) else { return };
    world.stale = Duration::from_millis(1500);
    world.add(1);
    world.await_roles();
    // In place before a second node reads it.
    world.redis.ask(&["SET", "{marketd}:s0:list", "\u{2}of tomorrow"]);
    world.add(1);
    let older = &world.nodes[1];
    eventually(LONG, || older.marketd().log().contains("alone source=s0").then_some(()));
    eventually(LONG, || older.received_at(0));
    assert_eq!(older.engine_state(), "up");
    let says = "error=\"newer format 2\"";
    assert_eq!(older.marketd().log().matches(says).count(), 1, "{}", older.marketd().log());
    assert_eq!(world.nodes[0].cluster_reason(), None);
}

#[test]
fn keys_of_another_kind_do_not_stop_a_node() {
    let Some(world) = World::new(1) else { return };
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
