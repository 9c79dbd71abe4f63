//! A made-up exchange with every habit that the machine knows, which `bodies.rs` reads: markets under
//! their own names, figures in arrays and objects, ratios, stamps in front of the list, times in
//! seconds, columns in an odd order, flags, archives, errors in a 200.

use super::testing::read;
use crate::exchange::{Call, Dialect, ItemFault};
use crate::interval::Stored;
use crate::time::UnixMs;
use std::sync::LazyLock;

pub(in crate::exchange) static SAMPLE: LazyLock<&'static Dialect> = LazyLock::new(|| {
    let dialect = Dialect::read("sample.json", include_str!("sample.json"));
    Box::leak(Box::new(dialect.unwrap_or_else(|faults| panic!("{faults:?}"))))
});

pub(in crate::exchange) const CANDLES: Call<'static> = Call::Candles {
    id: "A/B",
    interval: Stored::H1,
    from: UnixMs(7_200_000),
    to: UnixMs(10_800_000),
    now: UnixMs(10_800_000),
};

#[test]
fn names_have_a_length_at_most() {
    let long = "x".repeat(crate::exchange::value::NAME_BYTES + 1);
    let body = format!(r#"{{"result":{{"A":{{"base":"A","quote":"{long}"}}}}}}"#);
    let (notes, _) = read(&SAMPLE, &Call::Markets, &body);
    assert_eq!(notes.rejected, [(Some("A".into()), "quote", ItemFault::TooLong)]);
    let most = "x".repeat(crate::exchange::value::NAME_BYTES);
    let body = format!(r#"{{"result":{{"{most}":{{"base":"A","quote":"B"}},"{long}":{{}}}}}}"#);
    let (notes, _) = read(&SAMPLE, &Call::Markets, &body);
    assert_eq!(notes.markets.len(), 1);
    assert_eq!(notes.rejected, [(None, "id", ItemFault::TooLong)]);
}

#[test]
fn the_ends_of_a_range_and_the_archive_are_in_the_target() {
    assert_eq!(
        SAMPLE.target(&CANDLES, None),
        "/candles/A%2FB?bar=3600&after=10801&before=7199&n=300"
    );
    let old = |now| Call::Candles {
        id: "A",
        interval: Stored::M1,
        from: UnixMs(0),
        to: UnixMs(60_000),
        now: UnixMs(now),
    };
    assert_eq!(SAMPLE.target(&old(99 * 60_000), None), "/candles/A?bar=60&after=61&before=0&n=300");
    assert_eq!(
        SAMPLE.target(&old(100 * 60_000), None),
        "/old/A?bar=60&from=0&to=60&n=2&1970-01-01T00:00:00.000Z--1970-01-01T00:01:00.000Z"
    );
    let stats = Call::Stats { id: "A/B" };
    assert!(SAMPLE.has_stats());
    assert_eq!(SAMPLE.target(&stats, None), "/products/A%2FB/day");
    assert_eq!(SAMPLE.target(&Call::Ticker { id: "A-B" }, None), "/products/A-B/ticker");
    assert_eq!((SAMPLE.cost(&old(0)), SAMPLE.cost(&old(i64::MAX))), (1, 2));
}
