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
fn an_orderly_stop_hands_over_at_once() {
    let Some(mut world) = World::settled(1, 2) else { return };
    let old = world.await_roles()[0];
    let begin = Instant::now();
    let marketd = world.nodes[old].marketd.take().expect("it runs");
    marketd.signal("TERM");
    eventually(LONG, || (world.collector(0) == Some(1 - old)).then_some(()));
    assert!(begin.elapsed() < HAND_OVER + NOISE / 2, "took {:?}", begin.elapsed());
    assert_eq!(marketd.await_end(LONG).code, Some(0));
    world.await_news(0, LONG);
    let polls = world.polls(0).into_iter().filter(|(at, _)| *at > begin);
    let mut turns: Vec<usize> = polls.map(|(_, node)| node).collect();
    turns.dedup();
    assert!(turns == [1 - old] || turns == [old, 1 - old], "both polled: {turns:?}");
    world.restart(old);
    world.await_same(&SAME);
}

#[test]
fn a_collector_that_slept_is_refused_and_follows() {
    let Some(mut world) = World::settled(1, 3) else { return };
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
