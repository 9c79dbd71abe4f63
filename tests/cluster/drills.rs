//! The faults that leave a cluster half-dead, and how soon clients of every node have fresh data again.

use crate::cluster::engine::{STALE, await_down, await_reunion, settled};
use crate::cluster::roles::SAME;
use crate::cluster::world::*;
use crate::support::*;
use serde_json::json;
use std::time::{Duration, Instant};

/// How soon a client of a node that is by itself has data: `staleAfterMs`, and five seconds.
const DATA: Duration = STALE.saturating_add(Duration::from_secs(5)).saturating_add(NOISE);

/// Nodes around one exchange with a tight budget, whose quotes are soon stale.
fn tight(nodes: usize) -> Option<World> {
    let mut world = World::new(1)?;
    (world.budget, world.backfill, world.stale) = ((16, 4000), 0, STALE);
    world.add(nodes);
    world.await_roles();
    Some(world)
}

/// Redis is as it should be: soon all are in their places, with the same quotes. Candles come as the budget lets
/// them.
#[track_caller]
fn await_places(world: &World) {
    let within = Duration::from_secs(5) + NOISE;
    world.await_roles_within(within);
    world.await_same_within(&SAME[..3], within);
}

/// The node has this reason of health, whose message is returned.
#[track_caller]
fn await_reason(node: &Node, code: &str) -> String {
    eventually(LONG, || node.cluster_reason().filter(|it| it.0 == code)).1
}

/// Each node says that it collects for itself, and has a quote that was received after this call.
#[track_caller]
fn await_alone(world: &World) {
    let begin = now_ms();
    for (_, node) in world.up() {
        eventually(DATA, || node.role(0).filter(|role| role.is_alone));
        eventually(DATA, || node.received_at(0).filter(|received| *received > begin));
    }
}

#[test]
fn connections_that_stay_open_and_silent_are_left() {
    trials(|| {
        let Some(world) = settled(2) else {
            return;
        };
        for (_, node) in world.up() {
            node.engine.set(Passage::Lost);
        }
        await_down(&world);
        // Each of several tries finds a server that accepts, and says nothing.
        await_alone(&world);
        for (_, node) in world.up() {
            node.engine.set(Passage::Open);
        }
        await_reunion(&world);
        world.assert_within_budget(0);
    });
}

#[test]
fn an_engine_that_is_lost_during_a_restart_leaves_nobody_behind() {
    trials(|| {
        let Some(mut world) = settled(3) else {
            return;
        };
        let old = world.await_roles()[0];
        world.redis.kill();
        world.kill(old);
        world.restart(old);
        pass(STALE);
        world.redis.run();
        await_reunion(&world);
        // The restarted one is the collector that knows of no former epoch.
        for other in (0..3).filter(|it| *it != old) {
            world.kill(other);
        }
        world.await_news(0, LONG);
        for other in (0..3).filter(|it| *it != old) {
            world.restart(other);
        }
        await_reunion(&world);
    });
}

#[test]
fn a_forged_entry_or_epoch_is_outlived() {
    let Some(world) = settled(2) else {
        return;
    };
    // Version, kind and epoch: 2^64-1.
    let forged = "\u{1}\u{2}\u{7f}".to_string();
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", &forged]);
    world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", "hello"]);
    world.await_news(0, LONG);
    let follower = 1 - world.await_roles()[0];
    let commands = || {
        let told = world.redis.ask(&["INFO", "stats"]).text().expect("a text");
        let count = told.split("total_commands_processed:").nth(1).expect("it is told");
        count.split('\r').next().and_then(|it| it.parse::<i64>().ok()).expect("a count")
    };
    let in_a_second = || {
        let (count, begin) = (commands(), Instant::now());
        pass(Duration::from_secs(1));
        (commands() - count) as u128 * 1000 / begin.elapsed().as_millis()
    };
    let usual = in_a_second();
    for epoch in ["18446744073709551615", "-1", "x", "7"] {
        let before = world.nodes[follower].role(0).map(|role| role.epoch);
        world.redis.ask(&["HSET", "{marketd}:s0:lease", "epoch", epoch]);
        await_reunion(&world);
        let rate = in_a_second();
        assert!(rate < 2 * usual, "{rate} commands a second, {usual} before");
        eventually(LONG, || {
            let after = world.nodes[follower].role(0).map(|role| role.epoch);
            (after > before).then_some(())
        });
    }
    world.await_same(&SAME);
}

#[test]
fn nodes_that_start_without_a_redis_have_data_and_join_later() {
    trials(|| {
        let Some(mut world) = tight(2) else {
            return;
        };
        (0..2).for_each(|node| world.kill(node));
        world.redis.kill();
        // The window of the exchange is over.
        pass(Duration::from_secs(4));
        (0..2).for_each(|node| world.restart(node));
        await_alone(&world);
        await_down(&world);
        pass(Duration::from_secs(5));
        world.redis.run();
        await_places(&world);
        world.assert_within_budget(0);
    });
}

#[test]
fn a_collector_that_does_not_reach_its_exchange_hands_it_over() {
    for_each([Passage::Cut, Passage::Lost], |passage| {
        let Some(mut world) = World::new(1) else {
            return;
        };
        (world.stale, world.backfill) = (Duration::from_secs(5), 0);
        world.add(2);
        let old = world.await_roles()[0];
        world.nodes[old].gate.set(passage);
        let begin = Instant::now();
        eventually(LONG, || world.collector(0).filter(|new| *new != old));
        // Ten seconds of failures; the first of them takes `timeoutMs`.
        let most = Duration::from_secs(16) + NOISE;
        assert!(begin.elapsed() < most, "took {:?}", begin.elapsed());
        world.await_roles();
        let turns = world.turns(0).len();
        // Within a minute it does not take it back.
        world.nodes[old].gate.set(Passage::Open);
        pass(Duration::from_secs(3));
        assert!(world.turns(0).len() <= turns + 1, "it went to and fro: {:?}", world.turns(0));
    });
}

#[test]
fn a_source_that_another_node_lacks_stays_with_its_slow_exchange() {
    let Some(mut world) = World::new(3) else {
        return;
    };
    world.backfill = 0;
    world.add(1);
    world.await_roles();
    let slow = Duration::from_millis(700);
    let lacks = |mut config: serde_json::Value| {
        let all = config["sources"].as_array_mut().expect("a list");
        all.truncate(1);
        config
    };
    world.add_to(world.redis.addr(), &lacks);
    world.add_to(world.redis.addr(), &lacks);
    let pause = Fault::Slowly { bytes: 1 << 20, pause: slow };
    world.exchanges[2].fault(pause);
    pass(2 * LEASE);
    let epoch = |source: usize| world.nodes[0].role(source).map(|role| role.epoch);
    let before = [epoch(1), epoch(2)];
    throughout(Duration::from_secs(8), || {
        let received = world.nodes[0].received_at(2).expect("a quote");
        assert!(now_ms() - received < 3000, "{} ms old", now_ms() - received);
    });
    assert_eq!([epoch(1), epoch(2)], before);
}

#[test]
fn followers_that_cannot_read_a_newer_format_stay_within_the_budget() {
    let Some(mut world) = tight(3) else {
        return;
    };
    let old = world.await_roles()[0];
    let epoch = world.nodes[old].role(0).expect("it collects").epoch;
    world.kill(old);
    // A collector of tomorrow, as the others see it.
    let newer = || {
        let until = (now_ms() + LEASE.as_millis() as i64).to_string();
        let epoch = (epoch + 1).to_string();
        let lease = "{marketd}:s0:lease";
        world.redis.ask(&[
            "HSET", lease, "holder", "x#1", "epoch", &epoch, "released", "0", "until", &until,
        ]);
        world.redis.ask(&["XADD", "{marketd}:s0:stream", "*", "e", "\u{2}of tomorrow"]);
    };
    for (_, node) in world.up() {
        eventually(LONG, || {
            newer();
            let (code, _) = node.cluster_reason()?;
            let is_alone = node.role(0).is_some_and(|role| role.is_alone);
            (code == "cluster_format" && is_alone).then_some(())
        });
        let before = node.received_at(0);
        eventually(LONG, || {
            newer();
            (node.received_at(0) > before).then_some(())
        });
        let lines = node.marketd().log().matches("newer format 2").count();
        assert_eq!(lines, 1, "{}", node.marketd().log());
    }
    // It is gone: the others have the source again.
    await_places(&world);
    world.assert_within_budget(0);
}

#[test]
fn two_nodes_of_one_name_stay_within_the_budget() {
    trials(|| {
        let Some(mut world) = tight(2) else {
            return;
        };
        world.add_to(world.redis.addr(), &|mut config| {
            config["cluster"]["node"] = json!("n0");
            config
        });
        await_reason(&world.nodes[2], "cluster_name");
        // All have heard of it.
        pass(LEASE);
        assert_eq!(world.nodes[0].cluster_reason(), None);
        world.redis.kill();
        await_down(&world);
        await_alone(&world);
        pass(Duration::from_secs(4));
        world.redis.run();
        eventually(LONG, || world.collector(0));
        let lines = world.nodes[2].marketd().log().matches("name taken").count();
        assert_eq!(lines, 1, "{}", world.nodes[2].marketd().log());
        world.assert_within_budget(0);
    });
}

#[test]
fn another_exchange_under_one_id_is_told_of_and_not_mixed() {
    let Some(mut world) = settled(2) else {
        return;
    };
    let other = Binance::generated(4, 99);
    let url = format!("http://{}", other.addr());
    world.add_to(world.redis.addr(), &|mut config| {
        config["sources"][0]["url"] = json!(url);
        config
    });
    let node = &world.nodes[2];
    let reason = await_reason(node, "cluster_alone");
    assert!(reason.contains("under this id"), "{reason}");
    eventually(DATA, || node.received_at(0));
    assert!(other.count(binance::TICKERS) > 0, "it has the quotes of the others");
    for other in &world.nodes[..2] {
        assert_eq!(other.cluster_reason(), None);
    }
}

#[test]
fn a_late_engine_holds_up_no_poll() {
    for_each([1000, 1900, 2600], |late_ms| {
        let Some(mut world) = World::new(1) else {
            return;
        };
        (world.lease, world.stale) = (Duration::from_secs(3), Duration::from_secs(5));
        world.add(2);
        world.await_roles();
        for (_, node) in world.up() {
            node.engine.set(Passage::Late(Duration::from_millis(late_ms)));
        }
        pass(Duration::from_secs(6));
        let begin = Instant::now();
        throughout(Duration::from_secs(5), || {
            for (_, node) in world.up() {
                let age = now_ms() - node.received_at(0).expect("a quote");
                assert!(age < 5000 + 1000, "{late_ms}: {} has {age} ms", node.name);
            }
        });
        let mut polls = world.polls(0);
        polls.retain(|(at, _)| *at > begin);
        let gaps = polls.windows(2).map(|two| two[1].0 - two[0].0);
        assert!(gaps.max() < Some(Duration::from_millis(1500)), "{late_ms}: {polls:?}");
        for (_, node) in world.up() {
            node.engine.set(Passage::Open);
        }
        await_reunion(&world);
    });
}

#[test]
fn a_user_who_may_not_read_streams_is_told_of() {
    let rules = "--user node on >secret ~* &* +@all -xread";
    let words: Vec<&str> = rules.split(' ').collect();
    let Some(mut world) = World::with(1, 4, &words) else {
        return;
    };
    (world.login, world.stale) = ("node:secret@".to_string(), STALE);
    world.add(2);
    await_alone(&world);
    for (_, node) in world.up() {
        let reason = eventually(LONG, || node.cluster_reason());
        assert!(reason.1.contains("missing permission"), "{}", reason.1);
        let before = node.engine.connections();
        pass(Duration::from_secs(5));
        let count = node.engine.connections() - before;
        assert!(count <= 24, "{count} connections in five seconds");
    }
    let allow = world.redis.ask(&["ACL", "SETUSER", "node", "+xread"]);
    assert_eq!(allow, Answer::Text("OK".to_string()));
    await_places(&world);
}

#[test]
fn malformed_keys_of_one_source_concern_that_one_alone() {
    for_each(["lease", "stream", "ask"], |name| {
        let Some(mut world) = World::new(2) else {
            return;
        };
        (world.backfill, world.stale) = (0, STALE);
        world.add(2);
        world.await_roles();
        let key = format!("{{marketd}}:s0:{name}");
        world.redis.ask(&["DEL", &key]);
        world.redis.ask(&["SET", &key, "x"]);
        for (_, node) in world.up() {
            eventually(LONG, || node.role(0).filter(|role| role.is_alone));
            let reason = eventually(LONG, || node.cluster_reason());
            assert!(reason.1.contains("malformed"), "{name}: {}", reason.1);
            assert_eq!(node.engine_state(), "up");
        }
        world.await_news(0, LONG);
        assert!(world.collector(1).is_some(), "{name}");
        world.redis.ask(&["DEL", &key]);
        world.await_roles();
    });
}

#[test]
fn a_node_without_a_name_is_known_again_after_a_kill() {
    let Some(mut world) = World::new(1) else {
        return;
    };
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
    let runs = world.redis.ask(&["ZRANGE", "{marketd}:nodes", "0", "-1"]).texts();
    let own = names[old].clone().expect("it has a name");
    assert_eq!(runs.iter().filter(|run| run.starts_with(&own)).count(), 2, "{runs:?}");
}

#[test]
fn keys_expire_a_day_after_the_last_node_has_gone() {
    let Some(world) = World::settled(1, 1) else {
        return;
    };
    for name in ["nodes", "s0:lease", "s0:stream", "s0:list"] {
        let key = format!("{{marketd}}:{name}");
        let answer = world.redis.await_answer(&["TTL", &key], |it| it.number() > Some(0));
        assert!(answer.number() > Some(86_000), "{key}: {answer:?}");
    }
}

#[test]
fn a_partition_and_a_frozen_redis_heal() {
    trials(|| {
        let Some(world) = tight(3) else {
            return;
        };
        let old = world.await_roles()[0];
        world.nodes[old].engine.set(Passage::Held);
        pass(Duration::from_secs(4));
        world.nodes[old].engine.set(Passage::Open);
        await_places(&world);
        world.redis.signal("STOP");
        await_down(&world);
        await_alone(&world);
        pass(Duration::from_secs(4));
        world.redis.signal("CONT");
        await_places(&world);
        world.assert_within_budget(0);
    });
}
