//! The faults that leave a cluster half-dead, and how soon it is whole again. Every second, the world looks
//! at what all nodes have spent in the minute before.

use super::{BANS, BLOCKS, SOURCES, STEP_MS, World};
use crate::config::SourceConfig;
use crate::core::cluster::link::EntryId;
use crate::core::cluster::tests::model::Model;
use crate::core::stats::SourceState;
use crate::core::testing::{HANGS, Manner};
use crate::interval::Stored;
use crate::market::{Lookup, SeriesKey, SourceId};
use crate::replication::{Entry, EntryHead, Update, VERSION, encode};

/// The stream of the source "one", and of another exchange's source with the same id.
const STREAM: &str = "{test}:one:stream";

/// The lease of that source: who collects it, and until when.
const LEASE: &str = "{test}:one:lease";

impl World {
    /// Appends an entry to the stream of the source "one".
    fn forge(&mut self, bytes: Vec<u8>) {
        let stream = self.model.streams.get_mut(STREAM).expect("it has entries");
        let last = stream.last().expect("it has entries").0;
        stream.push((EntryId { number: last.number + 1, ..last }, bytes));
    }

    /// A world of two nodes that have collected candles for a while.
    fn charted() -> World {
        let mut world = World::new(0, super::seed());
        world.charted = &["BTC/USDT"];
        world.add(2);
        world.run(30_000);
        world
    }

    /// Has a client of a node wait for the last `count` minutes of a market of the source "one".
    fn ask(&mut self, at: usize, market: &str, count: i64) -> SeriesKey {
        let now = Stored::M1.slot_of(self.now().unix);
        let core = &mut self.node(at).core;
        let found = core.cx.market.catalog.find(market.as_bytes());
        let Lookup::Known(symbol) = found else { panic!("it is listed") };
        let key = SeriesKey { source: SourceId(0), symbol, interval: Stored::M1 };
        core.backend.fetch(key, &(now - count..now), &mut core.cx);
        key
    }

    /// Runs until the source "one" is renewed.
    fn next_renewal(&mut self) {
        let until = |world: &World| world.model.hashes[LEASE]["until"].clone();
        let before = until(self);
        while until(self) == before {
            self.run(STEP_MS);
        }
    }

    /// The index of a node that follows the source "one".
    fn follower(&self) -> usize {
        (0..self.nodes.len()).find(|at| self.role(*at, 0) == "follower").expect("one follows")
    }
}

#[test]
fn nodes_that_start_without_an_engine_collect_a_quarter_each_and_join_when_it_comes() {
    let mut world = World::new(0, super::seed());
    world.is_engine_up = false;
    world.add(3);
    world.run(20_000);
    world.is_fresh(8000);
    for at in 0..3 {
        assert!((0..SOURCES.len()).all(|source| world.role(at, source) == "alone"));
        assert!(world.health(at).contains("cluster_down"), "{}", world.health(at));
    }
    world.run(90_000);
    world.is_fresh(12_000);
    world.is_engine_up = true;
    world.comes_together(5000, 3100);
    world.run(60_000);
}

#[test]
fn an_engine_that_is_lost_while_a_collector_restarts_leaves_nobody_stale() {
    for _ in 0..3 {
        let mut world = World::settled(3);
        let before = world.epoch(0);
        world.is_engine_up = false;
        world.run(2000);
        let old = world.collectors(0)[0];
        world.nodes[old] = None;
        world.run(1000);
        world.start(old);
        world.run(3000);
        (world.model, world.is_engine_up) = (Model::default(), true);
        world.run(5000);
        world.ends_with_one_collector_each();
        world.run(3000);
        world.agrees(4000);
        // The fresh node may be the first collector. The next epoch is above all that were seen.
        let first = world.collectors(0)[0];
        world.nodes[first] = None;
        world.run(8000);
        world.ends_with_one_collector_each();
        assert!(world.epoch(0) > before || first != old, "{} {before}", world.epoch(0));
        world.run(40_000);
        world.agrees(4000);
    }
}

#[test]
fn a_forged_epoch_costs_nobody_more_than_its_entry() {
    let mut world = World::settled(3);
    for epoch in [u64::MAX, 1 << 60, 0] {
        let head = EntryHead { epoch, ..EntryHead::default() };
        world.forge(encode(&Entry { head, body: Update::Status(None) }));
        for _ in 0..10 {
            world.run(1000);
            world.agrees(2100);
        }
    }
    for epoch in [&*u64::MAX.to_string(), "-1", "x", "7"] {
        let before = world.epoch(0);
        let lease = world.model.hashes.get_mut(LEASE).expect("it was taken");
        lease.insert("epoch".to_string(), epoch.to_string());
        let asked = world.model.asked;
        world.run(6000);
        assert!(world.model.asked - asked < 2500, "{} commands", world.model.asked - asked);
        world.ends_with_one_collector_each();
        assert!(world.epoch(0) > before, "{epoch}");
        world.run(5000);
        world.agrees(2100);
    }
}

#[test]
fn entries_that_a_node_cannot_read_cost_it_no_more_than_themselves() {
    let mut world = World::settled(3);
    let follower = world.follower();
    world.forge(b"hello".to_vec());
    for _ in 0..20 {
        world.run(200);
        assert_eq!(world.role(follower, 0), "follower");
    }
    world.agrees(2100);
    assert!(!world.health(follower).contains("cluster_format"), "it has read later ones");
    // The collector has a newer version. Its followers collect for themselves, within the budget.
    world.model.format = Some(VERSION + 1);
    world.run(3000);
    assert!(world.health(follower).contains("cluster_format"));
    world.run(80_000);
    world.is_fresh(8000);
    assert_eq!(world.role(follower, 0), "alone");
    assert!(world.health(follower).contains("cluster_alone"), "{}", world.health(follower));
    world.model.format = None;
    world.comes_together(5000, 3100);
}

#[test]
fn a_source_that_others_lack_stays_where_it_is() {
    let mut world = World::new(0, super::seed());
    world.add(1);
    world.run(8000);
    let epochs: Vec<u64> = (0..3).map(|source| world.epoch(source)).collect();
    for _ in 0..2 {
        let config = world.config(world.nodes.len(), &["one"]);
        world.add_with(config);
    }
    world.run(60_000);
    let after: Vec<u64> = (0..3).map(|source| world.epoch(source)).collect();
    assert_eq!(epochs[1..], after[1..], "nobody else has them");
    assert!(after[0] <= epochs[0] + 2, "it went to and fro: {epochs:?} {after:?}");
    world.is_fresh(2100);
    world.ends_with_one_collector_each();
}

#[test]
fn a_collector_that_does_not_reach_its_exchange_hands_it_over_once_and_then_rarely() {
    for refuses in [Manner::Rejects, BLOCKS, HANGS] {
        let mut world = World::settled(3);
        let epochs = |world: &World| (0..3).map(|source| world.epoch(source)).sum::<u64>();
        let old = world.collectors(0)[0];
        world.node(old).exchanges = refuses;
        world.run(if refuses == HANGS { 24_000 } else { 14_000 });
        world.ends_with_one_collector_each();
        assert_ne!(world.collectors(0), [old]);
        for _ in 0..30 {
            world.run(1000);
            world.is_fresh(3100);
        }
        let before = epochs(&world);
        world.run_in_steps(600_000, 100);
        world.ends_with_one_collector_each();
        assert!(epochs(&world) - before < 10, "{refuses:?} {}", epochs(&world) - before);
        // No node reaches the exchanges: the sources are handed on, more and more rarely.
        let before = world.epoch(0);
        (0..3).for_each(|at| world.node(at).exchanges = refuses);
        world.run_in_steps(600_000, 100);
        assert!(world.epoch(0) - before < 10, "{refuses:?} {}", world.epoch(0) - before);
        (0..3).for_each(|at| world.node(at).exchanges = Manner::Serves);
        world.comes_together(60_000, 3100);
    }
}

#[test]
fn a_slow_engine_holds_up_no_poll() {
    for delay_ms in [500, 1500, 2100, 2600, 4000] {
        let mut world = World::settled(3);
        world.delay_ms = delay_ms;
        world.run(20_000);
        let since = world.ms;
        world.run(20_000);
        let gap = world.longest_gap(since);
        assert!(gap <= 2200, "{delay_ms}: {gap} ms");
        for at in 0..3 {
            assert_eq!(world.health(at).contains("cluster_down"), delay_ms > 2200, "{delay_ms}");
        }
        world.is_fresh(12_000);
        world.delay_ms = 0;
        // A source may be given on at once, and its new collector begins with nothing left of the budget.
        world.comes_together(6000, 3100);
    }
}

#[test]
fn a_missing_right_is_told_of_and_tried_ever_more_rarely() {
    let mut world = World::new(0, super::seed());
    world.model.forbids = Some("XREAD");
    world.add(2);
    world.run(10_000);
    assert!(world.engine_connects <= 80, "{}", world.engine_connects);
    world.run(10_000);
    world.is_fresh(8000);
    assert!(world.health(0).contains("missing permission"), "{}", world.health(0));
    world.model.forbids = None;
    world.run(5000);
    world.ends_with_one_collector_each();
}

#[test]
fn malformed_keys_of_one_source_concern_that_one_alone() {
    for key in ["lease", "stream", "list", "ask"] {
        let key = format!("{{test}}:one:{key}");
        let mut world = World::settled(2);
        world.model.malformed = Some(Box::leak(key.clone().into_boxed_str()));
        for _ in 0..30 {
            world.run(1000);
            world.is_fresh(8000);
        }
        for (at, source) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
            assert_ne!(world.role(at, source), "alone", "{key}");
        }
        world.is_fresh(8000);
        world.model.malformed = None;
        world.run(5000);
        world.ends_with_one_collector_each();
        world.run(1000);
        world.agrees(3100);
    }
}

#[test]
fn another_exchange_under_the_same_id_is_told_of_where_it_came_later() {
    let mut world = World::settled(1);
    let mut config = world.config(1, &SOURCES);
    config.sources[0] = SourceConfig {
        url: crate::config::Url::parse("http://10.0.0.1:9/other").ok(),
        ..config.sources[0].clone()
    };
    world.add_with(config);
    world.run(10_000);
    assert_eq!((world.role(0, 0), world.role(1, 0)), ("collector", "alone"));
    let health = world.health(1);
    assert!(health.contains("cluster_alone") && health.contains("under this id"), "{health}");
    assert!(!world.health(0).contains("cluster_"), "{}", world.health(0));
    world.is_fresh(4000);
    let polls = world.polls.iter().filter(|(_, source, node)| source == "other" && *node == 1);
    assert!(polls.count() > 0, "it does not collect");
}

#[test]
fn nodes_that_are_reloaded_with_another_url_share_the_source_again() {
    let mut world = World::settled(2);
    for at in 0..2 {
        let mut config = world.config(at, &SOURCES);
        config.sources[0].url = crate::config::Url::parse("http://10.0.0.1:9/one").ok();
        world.reload(at, config);
    }
    world.comes_together(5000, 2100);
}

#[test]
fn a_source_that_a_reload_brings_back_is_followed_at_once() {
    let mut world = World::settled(2);
    let follower = world.follower();
    for (sources, ms) in [(&SOURCES[1..], 40_000), (&SOURCES[..], 0)] {
        world.reload(follower, world.config(follower, sources));
        world.run(ms);
    }
    for _ in 0..300 {
        world.run(STEP_MS);
        assert_eq!(world.role(follower, 0), "follower");
    }
    world.agrees(2100);
}

#[test]
fn a_source_that_ends_while_its_lease_is_taken_is_let_go() {
    let mut world = World::new(1, super::seed());
    world.delay_ms = 300;
    while !world.model.hashes.get(LEASE).is_some_and(|it| it.contains_key("until")) {
        world.run(STEP_MS);
    }
    world.reload(0, world.config(0, &SOURCES[1..]));
    world.run(2000);
    assert_eq!(world.model.hashes[LEASE]["released"], "1");
}

#[test]
fn a_follower_asks_again_only_after_a_while_for_candles_that_its_collector_cannot_get() {
    let mut world = World::charted();
    (0..2).for_each(|at| world.node(at).exchanges = Manner::Rejects);
    let follower = world.follower();
    world.ask(follower, "BTC/USDT", 2000);
    let asked = |world: &World| world.model.streams["{test}:one:ask"].len();
    let before = asked(&world);
    world.run(5000);
    assert!(asked(&world) - before < 8, "{}", asked(&world) - before);
}

#[test]
fn candles_that_the_exchange_may_still_revise_are_final_at_no_node() {
    let mut world = World::charted();
    let newest = Stored::M1.slot_of(world.now().unix) - 1;
    (0..2).for_each(|at| world.node(at).exchanges = Manner::Rejects);
    world.run_in_steps(300_000, 50);
    let follower = world.follower();
    let key = world.ask(follower, "BTC/USDT", 60);
    world.run(6000);
    for at in 0..2 {
        let series = world.node(at).core.cx.market.charts.get(key).expect("it is open");
        let is_settled = |slot: i64| series.is_settled(&(slot..slot + 1));
        assert!(series.covered().covers(newest - 9..newest + 1), "{at}");
        assert!(is_settled(newest - 9) && !is_settled(newest), "{at}");
    }
}

#[test]
fn no_request_is_lost_while_its_collector_asks_for_its_lease_again() {
    let mut world = World::charted();
    let (collector, follower) = (world.collectors(0)[0], world.follower());
    world.next_renewal();
    // The reply comes when the lease has run out, because the node was paused.
    let replies = world.node(collector).wires.values_mut().flat_map(|it| &mut it.replies);
    replies.for_each(|(at, _)| *at += 2400);
    world.run(50);
    world.node(collector).is_paused = true;
    world.run(2050);
    world.node(collector).is_paused = false;
    world.run(150);
    assert_eq!(world.role(collector, 0), "follower", "its lease has run out");
    let key = world.ask(follower, "ETH/USDT", 100);
    world.run(1000);
    assert_eq!(world.role(collector, 0), "collector");
    assert!(world.node(collector).core.cx.market.charts.get(key).is_some());
}

#[test]
fn no_other_node_and_no_reply_is_late_before_what_came_during_a_pause_is_read() {
    // A request for candles, and commands of two seconds before a pause that is shorter than half a lease.
    for (before_ms, pause_ms) in [(10, 5200), (1500, 1200)] {
        let kept = [true, false].map(|is_behind| {
            let mut world = World::charted();
            let (collector, follower) = (world.collectors(0)[0], world.follower());
            world.node(collector).is_paused = true;
            world.delay_ms = 60_000;
            let key = world.ask(follower, "ETH/USDT", 100);
            world.run(before_ms);
            world.node(follower).is_paused = true;
            world.run(pause_ms);
            let node = world.node(follower);
            node.is_paused = false;
            node.core.set_behind(is_behind);
            world.run(STEP_MS);
            let node = world.node(follower);
            let is_linked = node.wires.values().any(|it| it.engine.is_some());
            let now = Stored::M1.slot_of(node.core.cx.now.unix);
            (node.core.backend.brings(key, &(now - 50..now - 40)), is_linked)
        });
        let lost = if pause_ms > 5000 { (false, true) } else { (true, false) };
        assert_eq!(kept, [(true, true), lost], "{pause_ms}");
    }
}

#[test]
fn a_ban_does_not_matter_while_another_node_collects_and_is_known_again_afterwards() {
    let mut world = World::settled(1);
    world.node(0).exchanges = BANS;
    world.run(2000);
    world.add(1);
    world.run(12_000);
    let given = (0..SOURCES.len()).find(|it| world.collectors(*it) == [1]);
    let given = given.expect("the node has given one source away");
    let state = |world: &mut World| world.node(0).core.cx.stats[SourceId(given as u16)].state;
    assert_eq!(state(&mut world), SourceState::Up);
    world.nodes[1] = None;
    let since = world.ms;
    world.run(10_000);
    assert_eq!(world.role(0, given), "collector");
    assert!(world.polls_since(since)[given].iter().all(|(_, node)| *node == 1));
    assert_ne!(state(&mut world), SourceState::Up);
}

#[test]
fn a_node_without_a_list_follows_again_if_it_was_alone_when_the_list_came() {
    let mut world = World::settled(1);
    world.add(1);
    (world.node(1).exchanges, world.node(1).is_cut) = (Manner::Rejects, true);
    world.run(15_000);
    world.node(1).is_cut = false;
    world.run(5000);
    assert!((0..3).all(|source| world.role(1, source) != "alone"));
    world.agrees(6000);
}

#[test]
fn an_outage_of_the_engine_is_no_pause_of_the_nodes() {
    let mut world = World::settled(2);
    let follower = world.follower();
    world.is_engine_up = false;
    world.run(20_000);
    // The node cannot read what its collector tells.
    (world.model.format, world.is_engine_up) = (Some(VERSION + 1), true);
    for _ in 0..20 {
        world.run(200);
        assert_eq!(world.role(follower, 0), "alone");
    }
}

#[test]
fn two_nodes_of_one_name_are_told_apart() {
    let mut world = World::settled(2);
    let config = world.config(0, &SOURCES);
    world.add_with(config);
    world.run(10_000);
    assert!(world.health(2).contains("cluster_name"), "{}", world.health(2));
    assert!(!world.health(0).contains("cluster_name"), "{}", world.health(0));
    world.comes_together(20_000, 2100);
    // The engine dies: each of the three nodes has its part of the budget.
    world.is_engine_up = false;
    world.run(90_000);
    world.is_engine_up = true;
    world.run(5000);
    world.ends_with_one_collector_each();
    // A node that was started again is no twin of itself.
    world.nodes[1] = None;
    world.start(1);
    world.run(10_000);
    assert!(!world.health(1).contains("cluster_name"), "{}", world.health(1));
}

#[test]
fn a_node_whose_clock_is_wrong_says_so_and_its_times_spread_to_nobody() {
    let mut world = World::settled(3);
    let old = world.collectors(0)[0];
    for (skew_ms, order) in [(-90_000, "ms behind that"), (90_000, "ms ahead of that")] {
        world.node(old).skew_ms = skew_ms;
        world.run(10_000);
        for at in 0..3 {
            let health = world.health(at);
            assert_eq!(health.contains("cluster_clock"), at == old, "{at}");
            assert_eq!(health.contains(order), at == old, "{health}");
        }
    }
    for _ in 0..10 {
        world.run(500);
        // By the clock of each node.
        world.is_fresh(3000);
        for node in world.nodes.iter().flatten() {
            let now = world.now_of(node).unix;
            let symbol = node.core.cx.market.catalog.known()[0];
            let quote = node.core.cx.market.quotes.of(SourceId(0), symbol);
            assert!(quote.expect("it is served").received_at <= now + 50);
        }
    }
}

#[test]
fn a_collector_with_a_slow_clock_ends_before_its_lease_does_in_the_engine() {
    let mut world = World::settled(2);
    let cut = world.collectors(0)[0];
    (world.node(cut).drift_us, world.node(cut).is_cut) = (90, true);
    let until: i64 = world.model.hashes[LEASE]["until"].parse().expect("a number");
    while world.model.time_ms < until {
        world.run(STEP_MS);
    }
    assert_ne!(world.role(cut, 0), "collector", "another node may be one now");
}

#[test]
fn a_follower_that_is_told_of_another_market_by_a_reload_has_it_at_once() {
    let mut world = World::new(0, super::seed());
    let config = |world: &World, at: usize, symbols: &[&str]| {
        let mut config = world.config(at, &["one"]);
        config.sources[0].symbols = symbols.iter().map(|it| it.to_string()).collect();
        config.sources[0].quote_assets = Vec::new();
        config
    };
    for at in 0..2 {
        let first = config(&world, at, &["BTC/USDT"]);
        world.add_with(first);
    }
    world.run(8000);
    let collector = world.collectors(0)[0];
    for at in [collector, 1 - collector] {
        let both = config(&world, at, &["BTC/USDT", "ETH/USDT"]);
        world.reload(at, both);
        world.run(8000);
    }
    for at in 0..2 {
        let market = &world.node(at).core.cx.market;
        let quotes = market.catalog.known().iter();
        let quotes = quotes.filter(|symbol| market.quotes.of(SourceId(0), **symbol).is_some());
        assert_eq!(quotes.count(), 2, "{at}");
    }
}

#[test]
fn a_partition_leaves_both_sides_with_data_and_within_the_budget() {
    let mut world = World::settled(5);
    let cut = [world.collectors(0)[0], world.collectors(1)[0]];
    for at in cut {
        world.node(at).is_cut = true;
    }
    world.run(90_000);
    world.is_fresh(12_000);
    for (source, at) in cut.into_iter().enumerate() {
        let both = world.collectors(source);
        assert!(both.contains(&at) && both.len() > 1, "for itself, and for all others: {both:?}");
    }
    for at in cut {
        world.node(at).is_cut = false;
    }
    world.run(5000);
    world.ends_with_one_collector_each();
    world.run(3000);
    world.agrees(4000);
    world.run(60_000);
}
