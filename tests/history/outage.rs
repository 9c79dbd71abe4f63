//! An exchange that goes and comes back, and what the file is good for while it is away.

use super::*;
use crate::support::daemon::TempDir;
use crate::support::naive::rows_of;
use crate::support::*;
use std::sync::Arc;

const MINUTE: i64 = 60_000;

fn chart(interval: &str, rest: &str) -> String {
    format!("/api/ecosystem/chart?symbol=BTC/USDT&interval={interval}&decimals=string{rest}")
}

/// A fake with one market whose clock stands still.
fn exchange() -> Binance {
    let exchange = Binance::generated(3, 7);
    exchange.set_time(ServerTime::Fixed(1_700_000_030_000));
    exchange
}

#[test]
fn quotes_charts_and_rules_are_back_at_once_when_the_exchange_is_dead() {
    // Also those of markets that only the dead exchange lists.
    [&["BTC/USDT"][..], &[]].into_iter().for_each(all_is_back);
}

fn all_is_back(symbols: &[&str]) {
    let exchange = exchange();
    let config = config(&[source(&exchange, symbols)], 0);
    let marketd = Launch::new(&[]).config(&config).start();
    await_health(&marketd, "ok");
    let before = read(marketd.addr(), "/api/v1/quotes/BTC/USDT");
    let count = read(marketd.addr(), "/api/v1/quotes?symbols=*")["quotes"].items().len();
    let rules = |marketd: &Marketd| {
        let record = read(marketd.addr(), "/api/ecosystem/market/BTC-USDT");
        record["metadata"]["precision"]["price"].integer().map(|_| record["metadata"].to_string())
    };
    let known = rules(&marketd).expect("a list has come");
    let hours = chart("2h", &format!("&limit=50&to={}", 1_700_000_030_000_i64 - 120 * MINUTE));
    let rows = rows_of(&await_complete(&marketd, &hours).exact());
    assert_eq!(rows.len(), 50);
    let dir = marketd.dir();
    marketd.stop(LONG);
    exchange.refuse();
    exchange.cut();
    let marketd = launch(&dir, &config).start();
    let after = eventually(LONG, || {
        let answer = get(marketd.addr(), "/api/v1/quotes/BTC/USDT");
        (answer.status == 200).then(|| answer.exact())
    });
    assert_eq!(rules(&marketd), Some(known));
    assert_eq!(after["stale"], Json::Bool(true));
    assert_eq!(before["last"], after["last"]);
    assert_eq!(before["bid"], after["bid"]);
    let all = read(marketd.addr(), "/api/v1/quotes?symbols=*");
    assert_eq!(all["quotes"].items().len(), count);
    assert_eq!(rows_of(&await_complete(&marketd, &hours).exact()), rows);
    let health = get(marketd.addr(), "/health");
    assert_eq!(health.status, 200);
    assert_eq!(health.exact()["status"], "degraded");
}

#[test]
fn a_chart_that_is_asked_for_before_the_clock_is_known_stops_no_other_request() {
    // Its clock is years behind this machine's, which counts until an answer comes.
    let exchange = exchange();
    let mut config = config(&[source(&exchange, &["BTC/USDT"])], 300);
    config["limits"]["chartWaitMs"] = json!(500);
    let dir = Arc::new(TempDir::new());
    let marketd = launch(&dir, &config).start();
    let target = chart("1m", "&limit=200");
    await_complete(&marketd, &target);
    eventually(LONG, || (history(&marketd, "inserted") >= 900).then_some(()));
    kill(marketd);
    exchange.fault(Fault::NoAnswer(End::Close));
    let marketd = launch(&dir, &config).start();
    marketd.await_log("history: loaded", LONG);
    let asked = get(marketd.addr(), &target);
    assert_eq!(asked.header("Chart-Coverage"), Some("partial"), "{}", asked.text());
    exchange.heal();
    await_complete(&marketd, &target);
}
