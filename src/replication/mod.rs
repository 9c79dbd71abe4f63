//! Entries: what one node of a cluster tells the others about a source, as bytes.
//!
//! An [`Entry`] has a head with the state of the source, and a body: for example quotes, candles, or the
//! message that the node has given the source up. Entries are written and read only here.
//!
//! # The format, version 1
//!
//! An entry is one byte for the version, one for the kind, then the values. Numbers are LEB128 (signed ones
//! after zigzag). Texts and lists have their length in front. A decimal is its text. An option is one byte 0
//! or 1, followed by the value if it is 1. A reader refuses an entry that it does not understand completely,
//! and a length above its bound.
//!
//! A change of the format is a new version. [`decode`] returns the version of an entry that is too new, so
//! that the node can log it.

mod entry;
mod format;

/// False in a build without clusters. Code that is only for clusters checks this first, so that the compiler
/// leaves it out of such a build.
pub const HAS_CLUSTERS: bool = cfg!(feature = "cluster");

pub use entry::{Entry, EntryError, EntryHead, SentCandles, SeriesPart, Update, VERSION};
pub use format::{Markets, decode, encode, encode_market};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::interval::Stored;
    use crate::record::{Bounds, MarketInfo, MarketRules, Stats};
    use crate::record::{Candle, Ticker};
    use crate::time::UnixMs;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).expect("it is a number")
    }

    fn entries() -> Vec<Entry> {
        let head = EntryHead {
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
        let candle =
            |open_time| Candle { open: decimal("1"), ..Candle::without_numbers(UnixMs(open_time)) };
        let bodies = [
            Update::Quotes {
                is_first: true,
                is_last: false,
                tickers: vec![("A-B".into(), full), ("é".into(), bare)],
            },
            Update::Candles(SentCandles {
                series: SeriesPart {
                    symbol: "BTC/USDT".into(),
                    interval: Stored::H1,
                    slots: 497_000..497_500,
                },
                closed_before: UnixMs(1_790_000_000_000),
                between: 497_001..497_400,
                is_dated: true,
                is_whole: false,
                is_archived: true,
                is_answer: false,
                is_final: true,
                goes_on: false,
                rows: vec![(candle(0), false), (candle(1), false), (candle(2), true)],
            }),
            Update::Status(Some("quotes: no answer in time".into())),
            Update::Status(None),
            Update::Stats(
                "A-B".into(),
                Box::new(Stats { high: Some(decimal("7.5")), ..Stats::default() }),
            ),
            Update::Released(Some("paris-1".into())),
        ];
        let entry = |body| Entry { head: head.clone(), body };
        bodies.map(entry).into()
    }

    #[test]
    fn every_entry_reads_back_and_no_part_of_one_does() {
        for entry in entries() {
            let mut bytes = encode(&entry);
            assert_eq!(decode(&bytes), Ok(entry));
            for end in 0..bytes.len() {
                assert_eq!(decode::<Entry>(&bytes[..end]), Err(EntryError::Malformed));
            }
            bytes.push(0);
            assert_eq!(decode::<Entry>(&bytes), Err(EntryError::Malformed));
            bytes[0] = VERSION + 1;
            assert_eq!(decode::<Entry>(&bytes), Err(EntryError::Newer(VERSION + 1)));
        }
    }

    #[test]
    fn a_page_of_any_size_is_split_into_parts_that_make_the_whole() {
        let long = decimal("1234567890123456789012345678901234567890.1234567890123456789");
        let row = |minute: i64| {
            let at = UnixMs((29_000_000 + minute) * 60_000);
            let bare = Candle::without_numbers(at);
            let figures =
                Candle { open: long.clone(), high: long.clone(), low: long.clone(), ..bare };
            (Candle { close: long.clone(), volume: long.clone(), ..figures }, false)
        };
        let slots = 29_000_000..29_005_000;
        let rows: Vec<_> = (0..5000).map(row).collect();
        let series =
            SeriesPart { symbol: "A/B".into(), interval: Stored::M1, slots: slots.clone() };
        let page =
            SentCandles { series, is_dated: true, rows: rows.clone(), ..SentCandles::default() };
        let whole = Entry { head: EntryHead::default(), body: Update::Candles(page) };
        assert!(encode(&whole).len() > 1 << 20);
        let (mut parts, mut left) = (Vec::new(), vec![whole]);
        while let Some(mut entry) = left.pop() {
            match encode(&entry).len() > 64 * 1024 {
                true => {
                    let second = entry.split().expect("it has many rows");
                    left.extend([second, entry]);
                }
                false => parts.push(entry),
            }
        }
        let (mut end, mut together) = (slots.start, Vec::new());
        for part in parts {
            let Update::Candles(page) = part.body else { panic!("it is a page") };
            assert_eq!(page.series.slots.start, end);
            end = page.series.slots.end;
            assert_eq!(page.goes_on, end < slots.end);
            together.extend(page.rows);
        }
        assert_eq!((end, together == rows), (slots.end, true));
        // Tickers too: one of the parts begins the poll, and one ends it.
        let ticker = |at: u8| (format!("T{at}").into(), Ticker::of_last(long.clone()));
        let tickers: Vec<(Box<str>, Ticker)> = (0..9).map(ticker).collect();
        let body = Update::Quotes { is_first: true, is_last: true, tickers: tickers.clone() };
        let mut first = Entry { head: EntryHead::default(), body };
        let second = first.split().expect("it has many").body;
        let (
            Update::Quotes { is_first: true, is_last: false, tickers: one },
            Update::Quotes { is_first: false, is_last: true, tickers: two },
        ) = (first.body, second)
        else {
            panic!("wrong ends")
        };
        assert_eq!([one, two].concat(), tickers);
    }

    #[test]
    fn damaged_bytes_make_no_panic() {
        let mut rng = crate::rng::Rng::new(1);
        for entry in entries() {
            let whole = encode(&entry);
            for _ in 0..2000 {
                let mut bytes = whole.clone();
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.below(256) as u8;
                }
                let _ = decode::<Entry>(&bytes);
                let _ = decode::<SeriesPart>(&bytes);
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
                cost: Bounds { min: Some(decimal("5")), max: None },
                ..MarketRules::default()
            },
        };
        let all = [market("XBTUSD"), market("X")];
        let mut bytes = vec![VERSION];
        all.iter().for_each(|market| encode_market(market, &mut bytes));
        let list = Markets::new(bytes).expect("it is a list");
        assert_eq!(list.collect::<Vec<_>>(), all);
        let series = SeriesPart { symbol: "A/B".into(), interval: Stored::D1, slots: 5..5 };
        assert_eq!(decode(&encode(&series)), Ok(series));
    }
}
