//! Charts that are nowhere yet, asked at a node that must not fetch them itself.

use crate::cluster::world::*;
use crate::support::*;
use std::time::Duration;

const HOUR: i64 = 3_600_000;

fn is_complete(answer: &Response) -> bool {
    answer.status == 200 && answer.header("Chart-Coverage") == Some("complete")
}

#[test]
fn a_chart_that_no_node_has_is_fetched_by_the_collector_for_all() {
    let Some(world) = World::settled(1, 3) else { return };
    let collector = world.await_roles()[0];
    let (asked, third) = ((collector + 1) % 3, (collector + 2) % 3);
    world.exchanges[0].forget();
    // Far behind the backfill, and of a market whose candles nobody polls.
    for (symbol, back) in [("BTC/USDT", 5000), ("BNB/USDT", 40)] {
        let to = now_ms() / HOUR * HOUR - back * HOUR;
        let from = to - 30 * HOUR;
        let target = format!(
            "/api/ecosystem/chart?symbol={symbol}&interval=1h&source=s0&from={from}&to={to}"
        );
        let answer = eventually(LONG, || Some(world.nodes[asked].get(&target)).filter(is_complete));
        assert_eq!(answer.exact().items().len(), 31, "{}", answer.text());
        // It has reached everybody: the last one is asked for what it has, and answers at once.
        eventually(Duration::from_secs(5), || {
            Some(world.nodes[third].get(&target)).filter(is_complete)
        });
        world.await_same(&[&target]);
    }
    let candles = world.exchanges[0].asked_of(binance::KLINES);
    assert!(!candles.is_empty());
    for one in &candles {
        assert_eq!(world.asker(one), collector, "{}", one.target);
    }
    let deep = candles.iter().filter(|it| {
        let from = it.param("startTime").and_then(|it| it.parse::<i64>().ok());
        it.param("symbol").as_deref() == Some("BTCUSDT")
            && from.is_some_and(|from| from < now_ms() - 4000 * HOUR)
    });
    let deep = deep.count();
    assert!(deep <= 3, "the same range was fetched {deep} times");
}

#[test]
fn many_charts_at_a_follower_stay_within_the_budget() {
    let Some(mut world) = World::new(1) else { return };
    (world.budget, world.backfill) = ((40, 4000), 0);
    world.add(2);
    let collector = world.await_roles()[0];
    let follower = &world.nodes[1 - collector];
    let mut clients: Vec<Client> =
        (0..20).map(|_| Client::connect(follower.marketd().addr())).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        let to = now_ms() / HOUR * HOUR - 2000 * (at as i64 + 1) * HOUR;
        let from = to - 20 * HOUR;
        let target = format!(
            "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&source=s0&from={from}&to={to}"
        );
        client.send_get(&target).expect("it is open");
    }
    for client in &mut clients {
        let answer = client.read().expect("it answers");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    world.await_news(0, LONG);
    world.assert_within_budget(0);
}

#[test]
fn a_chart_asked_without_redis_is_partial_and_comes_later() {
    let Some(world) = World::settled(1, 2) else { return };
    let collector = world.await_roles()[0];
    let follower = &world.nodes[1 - collector];
    follower.engine.set(Passage::Cut);
    follower.await_engine("down");
    let to = now_ms() / HOUR * HOUR - 3000 * HOUR;
    let from = to - 10 * HOUR;
    let target =
        format!("/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&source=s0&from={from}&to={to}");
    let answer = follower.get(&target);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
    follower.engine.set(Passage::Open);
    eventually(LONG, || Some(follower.get(&target)).filter(is_complete));
    world.await_same(&[&target]);
}
