//! What only a real Redis shows of a cluster that is half-dead: its scripts, rights and expiries, and names
//! that outlive a process. How nodes get by with dead, slow, lost and foreign parts is tried in virtual time
//! (`src/core/cluster/tests/drills.rs`) and measured by `scripts/cluster.sh`.

use crate::cluster::engine::{STALE, await_reunion, settled};
use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;
use std::time::Duration;

#[test]
fn a_forged_entry_or_epoch_is_outlived() {
    let Some(world) = settled(2) else { return };
    // Version, kind and epoch: 2^64-1.
    let forged = "\u{1}\u{2}\u{7f}".to_string();
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", &forged]);
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", "hello"]);
    // What is not even a field of ours, and what is of a later version.
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "other", "x", "more", "y"]);
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", "\u{2}\u{0}\u{1}"]);
    world.redis.ask(&["XADD", "{marketd}:s0:ask", "*", "e", "\u{2}of tomorrow"]);
    for (_, node) in world.up() {
        let says = "error=\"newer format 2\"";
        eventually(LONG, || node.marketd().log().contains(says).then_some(()));
    }
    world.await_news(0, LONG);
    let follower = 1 - world.await_roles()[0];
    for epoch in ["18446744073709551615", "-1", "x", "7"] {
        let before = world.nodes[follower].role(0).map(|role| role.epoch);
        world.redis.ask(&["HSET", "{marketd}:s0:lease", "epoch", epoch]);
        await_reunion(&world);
        eventually(LONG, || {
            let after = world.nodes[follower].role(0).map(|role| role.epoch);
            (after > before).then_some(())
        });
    }
    world.await_same(&SAME);
}

#[test]
fn a_user_who_may_not_read_streams_is_told_of() {
    let rules = "--user node on >secret ~* &* +@all -xread";
    let words: Vec<&str> = rules.split(' ').collect();
    let Some(mut world) = World::with(1, 4, &words) else { return };
    (world.login, world.stale) = ("node:secret@".to_string(), STALE);
    world.add(2);
    for (_, node) in world.up() {
        eventually(LONG, || node.role(0).filter(|role| role.is_alone));
        eventually(LONG, || node.received_at(0));
        let reason = eventually(LONG, || node.cluster_reason());
        assert!(reason.1.contains("missing permission"), "{}", reason.1);
    }
    assert_eq!(world.redis.ask(&["ACL", "SETUSER", "node", "+xread"]), "OK");
    await_reunion(&world);
}

#[test]
fn a_node_without_a_name_is_known_again_after_a_kill() {
    let Some(mut world) = World::new(1) else { return };
    world.backfill = 0;
    for _ in 0..2 {
        world.add_to(world.redis.addr(), &|mut config| {
            config["cluster"].as_object_mut().expect("an object").remove("node");
            config
        });
    }
    let old = world.await_roles()[0];
    let name = |world: &World, node: usize| {
        world.nodes[node].metrics()["cluster"]["node"].text().map(str::to_string)
    };
    let names = [0, 1].map(|node| name(&world, node));
    assert_ne!(names[0], names[1]);
    world.kill(old);
    world.await_news(0, LONG);
    world.restart(old);
    world.await_roles();
    assert_eq!(name(&world, old), names[old]);
    assert_eq!(world.nodes[old].cluster_reason(), None);
    // One of it is left on the list, and it is not taken for lost.
    let runs = world.redis.ask(&["ZRANGE", "{marketd}:nodes", "0", "-1"]);
    let own = names[old].clone().expect("it has a name");
    assert_eq!(runs.texts().iter().filter(|run| run.starts_with(&own)).count(), 2, "{runs:?}");
}

#[test]
fn keys_expire_a_day_after_the_last_node_has_gone() {
    let Some(world) = World::settled(1, 1) else { return };
    for name in ["nodes", "s0:lease", "s0:stream", "s0:list"] {
        let key = format!("{{marketd}}:{name}");
        let answer = world.redis.await_answer(&["TTL", &key], |it| it.integer() > Some(0));
        assert!(answer.integer() > Some(86_000), "{key}: {answer:?}");
    }
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
