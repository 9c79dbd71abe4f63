//! A Redis that lets nobody in, and what is no Redis: the node says which, in few lines, and never the
//! password.

use crate::cluster::world::*;
use crate::support::*;
use serde_json::json;
use std::time::{Duration, Instant};

const PASSWORD: &str = "p4ss-w0rd-of-the-test";

/// How long a node is watched that is not let in.
const SPAN: Duration = Duration::from_secs(3);

/// The most connections that a node tries in this time: back-off, with its first steps close together.
const MOST_TRIES: usize = 12;

/// A node that is not let in: what it says of it. It answers, and it does not knock without a pause.
#[track_caller]
fn await_refusal(world: &World, parts: &[&str]) {
    let node = &world.nodes[0];
    let begin = Instant::now();
    let (tries, ticks) = (node.engine.connections(), node.marketd().cpu_ticks());
    let reason = eventually(LONG, || node.cluster_reason());
    assert_eq!(node.get("/health/live").status, 200);
    assert_eq!(node.engine_state(), "down");
    eventually(LONG, || (begin.elapsed() > SPAN).then_some(()));
    let reason = node.cluster_reason().unwrap_or(reason);
    let log = node.marketd().log();
    for part in parts {
        assert!(log.contains(part), "no {part:?} in the log:\n{log}");
    }
    assert!(!reason.1.is_empty());
    let tries = node.engine.connections() - tries;
    assert!(tries <= MOST_TRIES, "{tries} connections in {SPAN:?}");
    let lines = log.lines().filter(|line| line.contains("cluster")).count();
    assert!(lines <= 2 * MOST_TRIES, "{lines} lines:\n{log}");
    let ticks = node.marketd().cpu_ticks() - ticks;
    assert!(ticks < 100, "{ticks} ticks of 10 ms in {SPAN:?}");
    assert_hidden(node);
}

/// Nothing that a node says holds the password.
#[track_caller]
fn assert_hidden(node: &Node) {
    for target in ["/health", "/metrics", "/api/v1/metrics", "/", "/openapi.json"] {
        assert!(!node.body(target).contains(PASSWORD), "{target}");
    }
    assert!(!node.marketd().log().contains(PASSWORD), "the log:\n{}", node.marketd().log());
}

fn world(arguments: &[&str]) -> Option<World> {
    let mut world = World::with(1, 4, arguments)?;
    world.backfill = 0;
    Some(world)
}

#[test]
fn a_password_opens_and_a_wrong_one_or_none_is_told_of() {
    let rules = format!("--user node on >{PASSWORD} ~* &* +@all");
    let user: Vec<&str> = rules.split(' ').collect();
    let alone = [&["--requirepass", PASSWORD][..], &user];
    for (words, name) in alone.into_iter().zip(["", "node"]) {
        let Some(mut world) = world(words) else { return };
        world.login = format!("{name}:{PASSWORD}@");
        world.add(2);
        world.await_roles();
        world.up().for_each(|(_, node)| assert_hidden(node));
    }
    let wrong = format!(":{PASSWORD}@");
    for (login, says) in [(&*wrong, "wrong user or password"), ("", "user and password required")] {
        let Some(mut world) = world(&["--requirepass", "right"]) else { return };
        world.login = login.to_string();
        world.add(1);
        await_refusal(&world, &[says]);
    }
}

#[test]
fn garbage_is_no_redis() {
    let long: &'static [u8] = Box::leak(vec![b'+'; 1 << 20].into_boxed_slice());
    let says: [&'static [u8]; 4] = [
        b"\x00\xff\x80garbage\r\n",
        b"*999999999\r\n$1\r\nx\r\n",
        b"$99999999999999999999\r\n",
        long,
    ];
    let check = |words| {
        let Some(mut world) = world(&[]) else { return };
        world.add_to(peer(words, false), &|config| config);
        await_refusal(&world, &[]);
        let size = world.nodes[0].marketd().peak_rss_bytes();
        assert!(size < 64 << 20, "{size} bytes of memory");
    };
    // Side by side: each waits most of the time.
    std::thread::scope(|scope| {
        for words in says {
            scope.spawn(move || check(words));
        }
    });
}

#[cfg(feature = "tls")]
#[test]
fn a_redis_behind_tls_is_trusted_by_its_certificate() {
    let Some(mut world) = world(&["--requirepass", PASSWORD]) else { return };
    let authority = Authority::new("the cluster's");
    let identity = authority.identity(&["127.0.0.1"], Validity::Now);
    let front = TlsFront::start(identity, world.redis.addr());
    let dir = daemon::TempDir::new();
    let roots = dir.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).expect("a fresh directory");
    world.login = format!(":{PASSWORD}@");
    let with_tls = |mut config: serde_json::Value| {
        let url = config["cluster"]["url"].as_str().expect("a text");
        config["cluster"]["url"] = json!(url.replace("redis://", "rediss://"));
        config
    };
    world.add_to(front.addr(), &|config| {
        let mut config = with_tls(config);
        config["tls"] = json!({ "caFile": roots });
        config
    });
    world.await_roles();
    // One who does not know the authority says nothing to it.
    world.add_to(front.addr(), &with_tls);
    let stranger = &world.nodes[1];
    eventually(LONG, || stranger.cluster_reason());
    assert_eq!(stranger.engine_state(), "down");
    assert_hidden(stranger);
}

/// A Redis in cluster mode that has no slots, and its second port.
fn slotless() -> Option<(Redis, String)> {
    // It is the first one and 10,000, unless it is told. Held until the server listens there.
    let holder = exchange::bound(([127, 0, 0, 1], 0).into()).expect("a port is free");
    let addr = holder.local_addr().ok().and_then(|addr| addr.as_socket());
    let bus = addr.expect("it is bound").port().to_string();
    let redis = Redis::start(&["--cluster-enabled", "yes", "--cluster-port", &bus])?;
    Some((redis, bus))
}

/// Has a Redis in cluster mode do something.
#[track_caller]
fn cluster(redis: &Redis, words: &[&str]) {
    let words = [&["CLUSTER"], words].concat();
    assert_eq!(redis.ask(&words), "OK");
}

/// Waits until a Redis knows that each slot has its node, and so many nodes.
#[track_caller]
fn await_slots(redis: &Redis, nodes: usize) {
    redis.await_answer(&["CLUSTER", "INFO"], |it| {
        let text = it.text().unwrap_or_default();
        let known = format!("cluster_known_nodes:{nodes}\r");
        text.contains("cluster_state:ok") && text.contains(&known)
    });
}

/// Two that are one cluster: the second one has the slot of our keys alone, the first one all others.
fn two() -> Option<(Redis, Redis, String)> {
    let ((first, _), (second, bus)) = (slotless()?, slotless()?);
    let slot = first.ask(&["CLUSTER", "KEYSLOT", "{marketd}:nodes"]).to_string();
    let others = (0..16_384).map(|it| it.to_string());
    let others: Vec<String> = others.filter(|it| *it != slot).collect();
    let words: Vec<&str> = others.iter().map(String::as_str).collect();
    cluster(&first, &[&["ADDSLOTS"], &words[..]].concat());
    cluster(&second, &["ADDSLOTS", &slot]);
    // Both would otherwise begin as the masters of the same epoch.
    cluster(&second, &["SET-CONFIG-EPOCH", "2"]);
    let port = second.addr().port().to_string();
    cluster(&first, &["MEET", "127.0.0.1", &port, &bus]);
    await_slots(&first, 2);
    await_slots(&second, 2);
    Some((first, second, slot))
}

/// Moves a slot with what it holds.
fn move_slot(slot: &str, from: &Redis, to: &Redis) {
    let id = |redis: &Redis| redis.ask(&["CLUSTER", "MYID"]).text().expect("a text").to_string();
    cluster(to, &["SETSLOT", slot, "IMPORTING", &id(from)]);
    cluster(from, &["SETSLOT", slot, "MIGRATING", &id(to)]);
    let port = to.addr().port().to_string();
    let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    eventually(LONG, || {
        let keys = from.keys();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let moved = || from.try_ask(&[&words, &keys[..]].concat());
        let is_empty = keys.is_empty() || moved().is_ok_and(|it| it == "NOKEY");
        is_empty.then_some(())
    });
    // The other one has no slot left then, and becomes a replica by itself.
    cluster(to, &["SETSLOT", slot, "NODE", &id(to)]);
}

#[test]
fn the_node_of_a_redis_cluster_that_has_the_keys_is_found() {
    let Some((redis, other, slot)) = two() else { return };
    let mut world = World::around(redis, 1);
    world.backfill = 0;
    world.add(2);
    world.await_roles();
    assert_eq!(world.redis.keys(), [""; 0]);
    assert!(other.keys().len() > 2, "{:?}", other.keys());
    for (_, node) in world.up() {
        let log = node.marketd().log();
        let address = format!("address=redis://{}/0", other.addr());
        assert!(log.contains(&format!("engine moved {address}")), "{log}");
        assert!(log.contains(&format!("engine up {address}")), "{log}");
    }
    // To the configured one, while nodes work.
    move_slot(&slot, &other, &world.redis);
    world.await_news(0, LONG);
    world.await_roles();
    assert!(world.redis.keys().len() > 2, "{:?}", world.redis.keys());
    world.await_same(&crate::cluster::roles::SAME[..5]);
}
