//! Exchanges that answer in gzip: what a list packed in it comes to; and a bomb.

use crate::loopback::setup::*;
use crate::support::binance::{KLINES, MARKETS, TICKERS, TIME};
use crate::support::*;
use flate2::{Compress, Compression, FlushCompress};
use std::sync::Arc;
use std::time::Duration;

/// An exchange of so many markets whose list of tickers is always the same.
fn steady(count: usize) -> Binance {
    let of = |text: fn(usize) -> String| (0..count).map(text).collect::<Vec<String>>();
    let symbols = of(|n| format!("A{n}/USDT"));
    let exchange = exchange_of(&symbols.iter().map(String::as_str).collect::<Vec<_>>());
    let (ids, prices) = (of(|n| format!("A{n}USDT")), of(|n| format!("{n}.50")));
    let prices = ids.iter().zip(&prices).map(|(id, price)| (id.as_str(), price.as_str()));
    exchange.set_prices(&prices.collect::<Vec<_>>());
    exchange
}

/// The prices of all quotes, in their order.
fn prices(marketd: &Marketd) -> Vec<String> {
    let all = read(marketd.addr(), "/api/v1/quotes?symbols=*");
    let quotes = all["quotes"].items().iter();
    let prices = quotes.map(|quote| format!("{} {}", quote["symbol"], quote["last"]));
    prices.collect()
}

#[test]
fn everything_may_come_in_gzip() {
    let exchange = steady(2000);
    let plain = get(exchange.addr(), TICKERS).body.len() as i64;
    for path in [TICKERS, KLINES, MARKETS, TIME] {
        exchange.fault_on(path, Fault::Gzipped);
    }
    let marketd = polling(&exchange);
    // The first list is taken in slice by slice.
    let all = || Some(prices(&marketd)).filter(|quotes| quotes.len() == 2000);
    let quotes = poll_until(Duration::from_secs(20), all).expect("all quotes come");
    for n in [0, 1, 999, 1999] {
        let quote = format!("\"A{n}/USDT\" {n}.5");
        assert!(quotes.contains(&quote), "{quote} in {quotes:?}");
    }
    let chart = "/api/ecosystem/chart?symbol=A1USDT&interval=1h&limit=2";
    await_answer(marketd.addr(), chart, |answer| answer.status == 200);
    let counted = || {
        let told = &metrics(&marketd)["upstreams"][0];
        let count = |key: &str| told[key].integer().unwrap_or_default();
        (count("bytesReceived"), count("ok"), count("errors"))
    };
    let (bytes, ok, _) = counted();
    await_polls(&marketd, 3);
    let (more, polls, errors) = counted();
    // Counted is what came over the wire: well below the lists' own size.
    assert!(more - bytes < (polls - ok + 1) * plain / 2, "{more} bytes");
    assert_eq!(errors, 0);
    // The same connections all the time.
    assert!(exchange.connections() <= 3, "{}", exchange.connections());
}

/// A body of this status that unpacks to a gigabyte of one byte: a megabyte that is one kilobyte,
/// again and again.
pub fn bomb(status: u16, begin: &[u8], filling: u8) -> Fault {
    let mut compress = Compress::new(Compression::best(), false);
    let mut pack = |bytes: &[u8]| {
        let mut out = Vec::with_capacity(1 << 16);
        let packed = compress.compress_vec(bytes, &mut out, FlushCompress::Full);
        packed.expect("a vector takes everything");
        out
    };
    let head = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255][..], &pack(begin)].concat();
    let parts = [(head, 1), (pack(&vec![filling; 1 << 20]), 1024)];
    let parts = parts.map(|(bytes, times)| (Arc::from(bytes), times));
    let reply = Reply::with_body(status, Body(parts.to_vec()));
    Fault::Instead(reply.field("Content-Encoding", "gzip"))
}
