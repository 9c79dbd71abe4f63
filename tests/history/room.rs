//! Little room on the disk: the service goes on, and what could not be written is written later.

use super::*;
use crate::support::naive::rows_of;
use crate::support::*;

#[test]
fn on_a_full_disk_it_serves_from_memory_and_with_room_again_all_is_written() {
    let exchange = Binance::generated(3, 7);
    exchange.set_time(ServerTime::Fixed(1_700_000_030_000));
    let config = config(&[source(&exchange, &["BTC/USDT"])], 2000);
    // No file above 200 blocks of 512 bytes: less than the candles of one interval.
    let limited = "ulimit -f 200; exec \"$0\" \"$@\"";
    let marketd = Launch::new(&["-c", limited, env!("CARGO_BIN_EXE_marketd")])
        .program("/bin/sh")
        .config(&config)
        .start();
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1500&decimals=string";
    eventually(LONG, || {
        (metrics(&marketd)["charts"]["persistErrors"].integer() >= Some(2)).then_some(())
    });
    await_health(&marketd, "degraded");
    let health = get(marketd.addr(), "/health").exact();
    let reason = &health["reasons"][0];
    assert_eq!(
        (&reason["code"], &reason["source"]),
        (&Json::Text("history_write_failed".into()), &Json::Null),
        "{health}"
    );
    let figures = get(marketd.addr(), "/metrics");
    let sample = "\nmarketd_history_write_failed 1\n";
    assert!(figures.text().contains(sample), "{}", figures.text());
    marketd.await_log("health: degraded reasons=history_write_failed", LONG);
    assert_eq!(get(marketd.addr(), "/health").status, 200);
    let rows = rows_of(&await_complete(&marketd, target).exact());
    let truth = exchange.candles("BTCUSDT", "1m", rows[0].0, rows[1499].0);
    assert_eq!(rows[..1499], truth[..1499], "without room");
    let dir = marketd.dir();
    let finished = marketd.stop(LONG);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("write failed"), "{finished:?}");

    let marketd = launch(&dir, &config).start();
    eventually(LONG, || (history(&marketd, "inserted") >= 6000).then_some(()));
    await_health(&marketd, "ok");
    kill(marketd);
    exchange.fault_on(binance::KLINES, Fault::Status(500));
    let marketd = launch(&dir, &config).start();
    // The candle that is forming comes with the next quote.
    let mut again = rows_of(&await_complete(&marketd, target).exact());
    again.retain(|(time, _)| (rows[0].0..=rows[1498].0).contains(time));
    assert_eq!(again, rows[..1499]);
}
