//! Entries: what one node of a cluster tells the others of a source, as bytes.
//!
//! An [`Entry`] has a head, which says how the source does, and a body: quotes, candles, or that the source
//! was let go. Entries are written and read here alone.
//!
//! # The format, version 1
//!
//! One byte for the version and one for the kind; then numbers as LEB128 (signed ones zigzag first), texts
//! and lists behind their length, a decimal as its text, an option as one byte 0 or 1 and then the value.
//! A reader refuses what it does not understand to the last byte, and a length above its bound.
//!
//! A change of the format is a new version. [`decode`] tells which version an entry has that is too new, so
//! that its reader can say so.

mod decode;
mod encode;

pub use decode::{Markets, decode, decode_ask};
pub use encode::{encode, encode_ask, encode_market};

use crate::interval::Stored;
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;
use std::ops::Range;

/// The version that is written, and the newest that is read.
pub const VERSION: u8 = 1;

/// Longest text: an error of an exchange.
const MOST_TEXT: usize = 1024;

/// What one node tells the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How the source does.
    pub head: Head,
    /// What has come.
    pub body: Body,
}

/// How the source does at its collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The lease under which the entry was written.
    pub epoch: u64,
    /// Milliseconds from the receipt of the body to the writing of the entry.
    pub waited_ms: u64,
    /// When the body was received.
    pub received: UnixMs,
    /// The exchange's time at the writing of the entry; `None`: it is in doubt.
    pub exchange_time: Option<UnixMs>,
    /// The number of the state of the source.
    pub state: u8,
    /// How long the source is still left alone.
    pub rest_ms: u64,
}

/// What has come of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Some tickers of a poll, by their ids at the exchange.
    Quotes {
        /// True for the first part of a poll of all quotes, or of a round.
        is_first: bool,
        /// True for the last part.
        is_last: bool,
        /// The tickers.
        tickers: Vec<(Box<str>, Ticker)>,
    },
    /// Candles of one series.
    Candles(Candles),
    /// The state of the source has changed: its last error.
    Status(Option<Box<str>>),
    /// The node has let the source go: another may collect it. Its name, if it leaves the cluster.
    Released(Option<Box<str>>),
}

/// Slots of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The canonical name of the market.
    pub symbol: Box<str>,
    /// The interval.
    pub interval: Stored,
    /// The slots.
    pub slots: Range<i64>,
}

/// A page of candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candles {
    /// Whose, and what was asked for.
    pub series: Series,
    /// Candles that began before this had a chance to close: the exchange's time when it was asked.
    pub closed_before: UnixMs,
    /// False if a row came without its time.
    pub is_dated: bool,
    /// True if as many slots were asked for as a page may have.
    pub is_full: bool,
    /// True if every slot without a candle is known to be empty.
    pub is_proven: bool,
    /// The candles, and what the exchange says on whether each is closed.
    pub rows: Vec<(Candle, Option<bool>)>,
}

/// Why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// They are of this version, which is newer than [`VERSION`].
    Newer(u8),
    /// They are damaged, or exceed a bound.
    Malformed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::record::{Bounds, MarketInfo, MarketRules};

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).expect("it is a number")
    }

    fn entries() -> Vec<Entry> {
        let head = Head {
            epoch: 300,
            waited_ms: 7,
            received: UnixMs(1_790_000_000_123),
            exchange_time: Some(UnixMs(1_790_000_000_100)),
            state: 1,
            rest_ms: 0,
        };
        let mut full = Ticker::of_last(decimal("0.00000012"));
        full.bid = Some(decimal("-123456789012345678901234567890.5"));
        full.quote_volume = Some(decimal("7"));
        full.timestamp = Some(UnixMs(-5));
        let bare = Ticker::of_last(decimal("64123.45"));
        let candle = |open_time| Candle {
            open: decimal("1"),
            ..Candle::without_numbers(UnixMs(open_time))
        };
        let bodies = [
            Body::Quotes {
                is_first: true,
                is_last: false,
                tickers: vec![("A-B".into(), full), ("é".into(), bare)],
            },
            Body::Candles(Candles {
                series: Series {
                    symbol: "BTC/USDT".into(),
                    interval: Stored::H1,
                    slots: 497_000..497_500,
                },
                closed_before: UnixMs(1_790_000_000_000),
                is_dated: true,
                is_full: false,
                is_proven: true,
                rows: vec![
                    (candle(0), None),
                    (candle(1), Some(true)),
                    (candle(2), Some(false)),
                ],
            }),
            Body::Status(Some("quotes: no answer in time".into())),
            Body::Status(None),
            Body::Released(Some("paris-1".into())),
        ];
        let entry = |body| Entry {
            head: head.clone(),
            body,
        };
        bodies.map(entry).into()
    }

    #[test]
    fn every_entry_reads_back_and_no_part_of_one_does() {
        for entry in entries() {
            let mut bytes = Vec::new();
            encode(&entry, &mut bytes);
            assert_eq!(decode(&bytes), Ok(entry));
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]), Err(EntryError::Malformed));
            }
            bytes.push(0);
            assert_eq!(decode(&bytes), Err(EntryError::Malformed));
            bytes[0] = VERSION + 1;
            assert_eq!(decode(&bytes), Err(EntryError::Newer(VERSION + 1)));
        }
    }

    #[test]
    fn damaged_bytes_make_no_panic() {
        let mut rng = crate::rng::Rng::new(1);
        for entry in entries() {
            let mut whole = Vec::new();
            encode(&entry, &mut whole);
            for _ in 0..2000 {
                let mut bytes = whole.clone();
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.below(256) as u8;
                }
                let _ = decode(&bytes);
                let _ = decode_ask(&bytes);
                if let Ok(list) = Markets::new(bytes) {
                    assert!(list.count() < 200);
                }
            }
        }
    }

    #[test]
    fn a_list_and_a_request_read_back() {
        let market = |id: &str| MarketInfo {
            ticker_id: id.into(),
            candle_id: (id == "XBTUSD").then(|| "XXBTZUSD".into()),
            base: "BTC".into(),
            quote: "USD".into(),
            active: id == "XBTUSD",
            rules: MarketRules {
                amount_places: Some(8),
                taker: Some(decimal("0.001")),
                cost: Bounds {
                    min: Some(decimal("5")),
                    max: None,
                },
                ..MarketRules::default()
            },
        };
        let all = [market("XBTUSD"), market("X")];
        let mut bytes = vec![VERSION];
        all.iter()
            .for_each(|market| encode_market(market, &mut bytes));
        let list = Markets::new(bytes).expect("it is a list");
        assert_eq!(list.collect::<Vec<_>>(), all);
        let series = Series {
            symbol: "A/B".into(),
            interval: Stored::D1,
            slots: 5..5,
        };
        assert_eq!(decode_ask(&encode_ask(&series)), Ok(series));
    }
}
