//! What the tests of this layer share: a sink that writes down, and a reading in pieces.

use crate::exchange::{Call, Dialect, ItemFault, ReadError, Reading, Reject, Sink};
use crate::interval::Stored;
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;
use std::sync::LazyLock;

pub(in crate::exchange) static BINANCE: LazyLock<&'static Dialect> =
    LazyLock::new(|| Dialect::by_name("binance").expect("it is built in"));

/// A made-up exchange with every habit that the machine knows: markets under their own names, figures in arrays
/// and objects, ratios, stamps in front of the list, times in seconds, columns in an odd order, flags, archives,
/// errors in a 200.
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

/// The most bytes of an item.
const ITEM_BYTES: usize = 1000;

/// A sink that writes down what it is told.
#[derive(Debug, Default, PartialEq)]
pub(in crate::exchange) struct Notes {
    pub(in crate::exchange) unwanted: Option<&'static str>,
    pub(in crate::exchange) assets: Option<[&'static str; 2]>,
    pub(in crate::exchange) tickers: Vec<(String, Ticker)>,
    pub(in crate::exchange) stats: Vec<(String, Stats)>,
    pub(in crate::exchange) candles: Vec<(Candle, bool)>,
    pub(in crate::exchange) markets: Vec<MarketInfo>,
    pub(in crate::exchange) times: Vec<UnixMs>,
    pub(in crate::exchange) rejected: Vec<(Option<String>, &'static str, ItemFault)>,
}

impl Sink for Notes {
    fn wants(&mut self, ticker_id: &str) -> bool {
        self.unwanted != Some(ticker_id)
    }
    fn assets(&self, _: &str) -> Option<[&str; 2]> {
        self.assets
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn stats(&mut self, ticker_id: &str, stats: Stats) {
        self.stats.push((ticker_id.to_owned(), stats));
    }
    fn candle(&mut self, candle: Candle, is_forming: bool) {
        self.candles.push((candle, is_forming));
    }
    fn market(&mut self, info: MarketInfo) {
        self.markets.push(info);
    }
    fn stamp(&mut self, time: UnixMs) {
        for (_, ticker) in &mut self.tickers {
            ticker.timestamp = ticker.timestamp.or(Some(time));
        }
    }
    fn time(&mut self, time: UnixMs) {
        self.times.push(time);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        let id = reason.id.map(str::to_owned);
        self.rejected.push((id, reason.field, reason.fault));
    }
}

/// Reads a body at once and split at every place: always the same end, and the same items where they may be used.
pub(in crate::exchange) fn read(
    dialect: &'static Dialect,
    call: &Call<'_>,
    body: &str,
    status: u16,
    assets: Option<[&'static str; 2]>,
) -> (Notes, Result<(), ReadError>) {
    let pieces = |split: &[&[u8]]| {
        let mut notes = Notes { assets, ..Notes::default() };
        let mut reading = Reading::new(dialect, call, ITEM_BYTES);
        for piece in split {
            // What finish says, counts: it knows of every error before.
            let _ = reading.feed(piece, &mut notes);
        }
        (notes, reading.finish(status))
    };
    let bytes = body.as_bytes();
    let whole = pieces(&[bytes]);
    let same = |other: (Notes, Result<(), ReadError>), how: &str| {
        assert_eq!(other.1, whole.1, "{how}: {body}");
        assert!(other.0 == whole.0 || whole.1.is_err(), "{how}: {body}");
    };
    for at in 0..=bytes.len() {
        let (front, back) = bytes.split_at(at);
        same(pieces(&[front, back]), &format!("split at {at}"));
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    same(pieces(&single), "byte by byte");
    whole
}

/// Candles of the market `A-B`, from one open time to another, both in milliseconds.
pub(in crate::exchange) fn candles(
    interval: Stored,
    from: i64,
    to: i64,
    now: i64,
) -> Call<'static> {
    Call::Candles { id: "A-B", interval, from: UnixMs(from), to: UnixMs(to), now: UnixMs(now) }
}
