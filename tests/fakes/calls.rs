//! Every call of every dialect: the exchange understands its target, and what it answers is read digit for
//! digit; and so is every refusal.

use crate::fakes::fakes;
use crate::fakes::judge::{Kept, Received, decode, judge};
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::support::generated::FIRST_MS;
use crate::support::{Asked, seeds};
use marketd::exchange::{Call, Dialect, ReadError};
use marketd::interval::Stored;
use marketd::time::UnixMs;

const INTERVALS: [(Stored, i64); 3] =
    [(Stored::M1, MINUTE_MS), (Stored::H1, HOUR_MS), (Stored::D1, DAY_MS)];

/// Where pages end, by intervals ago, and how many rows are wanted at most: at either end of what is at hand,
/// and around it.
const BACK: [(i64, i64); 9] = [
    (0, 1),
    (0, 10_000),
    (1, 2),
    (700, 10),
    (1400, 100),
    (1425, 40),
    (1443, 10),
    (1500, 10_000),
    (43_190, 100),
];

/// What is read of the answer to a call.
fn ask(fake: &Fake, shop: &Shop, call: &Call<'_>) -> Kept {
    let dialect = Dialect::by_name(fake.name).expect("it is built in");
    let target = dialect.target(call, None);
    let reply = fake.answer(shop, &Asked::of(&target));
    assert_eq!(reply.status, 200, "{target} of {}", fake.name);
    let text = String::from_utf8(reply.body.to_vec()).expect("it is text");
    let bytes = seeds(250_000) as usize;
    let body = Received { target: &target, text: &text, lacks: "", also: "", bytes };
    judge(fake, call, body).0
}

/// Candles up to so many intervals ago, as many as a page has at most.
fn check_candles(fake: &Fake, shop: &Shop, id: &str, (interval, length): (Stored, i64)) {
    let dialect = Dialect::by_name(fake.name).expect("it is built in");
    let page = dialect.page(interval);
    for (back, most) in BACK {
        let to = NOW.div_euclid(length) * length - back * length;
        let known = page.depth.map_or(i64::MAX, |depth| depth as i64 - back - 1);
        let count = most.min(page.rows as i64).min(known).min((to - FIRST_MS) / length);
        if count < 1 {
            continue;
        }
        let from = to - (count - 1) * length;
        let (from, to) = (UnixMs(from), UnixMs(to));
        // The request may be on its way when a slot ends.
        for now in [NOW, NOW.div_euclid(length) * length - 1].map(UnixMs) {
            let kept = ask(fake, shop, &Call::Candles { id, interval, from, to, now });
            let is_wanted = |time: UnixMs| (from..=to).contains(&time);
            let times = kept.candles.iter().filter(|(candle, _)| is_wanted(candle.open_time));
            assert_eq!(times.count() as i64, count, "{} {interval:?} {back} {most}", fake.name);
        }
    }
}

#[test]
fn every_call_is_understood_and_its_answer_read_digit_for_digit() {
    for fake in fakes() {
        let dialect = Dialect::by_name(fake.name).expect("it is built in");
        assert!(dialect.base_url().is_tls(), "{}", fake.name);
        let shop = Shop::new(30);
        let ask = |call: Call<'_>| ask(fake, &shop, &call);
        let listed = ask(Call::Markets { named: &[] }).markets;
        let names = listed.iter().map(|it| format!("{}/{}", it.base, it.quote));
        let symbols: Vec<String> = shop.markets().iter().map(|it| it.symbol()).collect();
        assert_eq!(names.collect::<Vec<_>>(), symbols, "{}", fake.name);
        for (market, info) in shop.markets().iter().zip(&listed) {
            let id = info.candle_id.as_ref().unwrap_or(&info.ticker_id);
            assert_eq!(**id, *fake.id(&market.base, market.quote));
        }
        let ids: Vec<&str> = listed.iter().map(|it| &*it.ticker_id).collect();
        let of = |kept: Kept| kept.tickers.into_iter().map(|it| it.0).collect::<Vec<String>>();
        assert_eq!(of(ask(Call::Ticker { id: ids[7] })), [ids[7]]);
        if dialect.tickers_at_once() {
            assert_eq!(of(ask(Call::Tickers)), ids);
        }
        if let several @ Call::Several { .. } = dialect.tickers_of(&ids[..25]) {
            assert_eq!(of(ask(several)), ids[..25]);
        }
        if dialect.has_stats() {
            assert_eq!(ask(Call::Stats { id: ids[7] }).stats.len(), 1);
        }
        if let Some(ids) = dialect.list_ids(&symbols[..3]) {
            let some = ask(Call::MarketsOf { ids: &ids }).markets;
            assert!([1, 3].contains(&some.len()) && some[..] == listed[..some.len()], "{some:?}");
        }
        let clock = ask(Call::Time).times[0].0;
        assert_eq!(clock / 1000, NOW / 1000, "{}", fake.name);
        let candle_id = fake.id(&shop.markets()[0].base, shop.markets()[0].quote);
        for interval in INTERVALS.into_iter().filter(|it| dialect.has_interval(it.0)) {
            check_candles(fake, &shop, &candle_id, interval);
        }
    }
    let days = |name| Dialect::by_name(name).is_some_and(|it| it.has_interval(Stored::D1));
    assert!(days("upbit") && !days("htx"));
}

#[test]
fn refusals_are_read_whatever_was_asked() {
    for fake in fakes() {
        let dialect = Dialect::by_name(fake.name).expect("it is built in");
        let candles = Call::Candles {
            id: "A-B",
            interval: Stored::H1,
            from: UnixMs(0),
            to: UnixMs(0),
            now: UnixMs(0),
        };
        let mut calls =
            vec![Call::Ticker { id: "A-B" }, candles, Call::Markets { named: &[] }, Call::Time];
        calls.extend(dialect.tickers_at_once().then_some(Call::Tickers));
        calls.push(dialect.tickers_of(&["A-B", "C-D"]));
        calls.extend(dialect.has_stats().then_some(Call::Stats { id: "A-B" }));
        for refusal in fake.refusals.iter().filter(|it| it.body.starts_with('{')) {
            for call in &calls {
                let (_, end) = decode(fake, call, (refusal.status, refusal.body), 1_000_000);
                let what = format!("{} {call:?}: {}", fake.name, refusal.body);
                let Err(ReadError::Refused { code, message, kind }) = end else {
                    panic!("{what}: {end:?}");
                };
                let read = (&*code, &*message, &*format!("{kind:?}"));
                assert_eq!(read, (refusal.code, refusal.words, refusal.kind), "{what}");
            }
        }
    }
}
