//! Bytes of another node on their way back into entries, lists and requests. What exceeds a bound is refused.

use super::entry::{Entry, EntryError, Head, MOST_TEXT, SentCandles, SeriesPart, Update, VERSION};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::{Bounds, Candle, MarketInfo, MarketRules, Stats, Ticker};
use crate::time::UnixMs;

/// Most items of one entry: a page of candles has up to 5,000, a piece of quotes 256.
const MOST_ITEMS: usize = 16_384;

/// Most markets of a list: as many as there may be symbols by default, and some.
const MOST_MARKETS: usize = 1_000_000;

/// Most slots of one page, or of one request.
const MOST_SLOTS: u64 = 1_000_000;

/// The last slot and the last time that are read: arithmetic on what is below cannot overflow.
const LAST_SLOT: i64 = 10_000_000_000;
const LAST_MS: u64 = 1_000_000_000_000_000;

/// Reads an entry.
pub fn decode(bytes: &[u8]) -> Result<Entry, EntryError> {
    match bytes.first() {
        Some(version) if *version > VERSION => return Err(EntryError::Newer(*version)),
        Some(_) => {}
        None => return Err(EntryError::Malformed),
    }
    let mut reader = Reader(&bytes[1..]);
    let entry = reader.entry().filter(|_| reader.0.is_empty());
    entry.ok_or(EntryError::Malformed)
}

/// Reads a request for candles.
pub fn decode_ask(bytes: &[u8]) -> Result<SeriesPart, EntryError> {
    match bytes.split_first() {
        Some((version, _)) if *version > VERSION => Err(EntryError::Newer(*version)),
        Some((_, rest)) => Reader(rest).series().ok_or(EntryError::Malformed),
        None => Err(EntryError::Malformed),
    }
}

/// The markets of a list, one after the other.
#[derive(Clone, Debug)]
pub struct Markets {
    bytes: Vec<u8>,
    at: usize,
    left: usize,
}

impl Markets {
    /// Of the bytes of a list.
    pub fn new(bytes: Vec<u8>) -> Result<Markets, EntryError> {
        match bytes.first() {
            Some(&VERSION) => Ok(Markets { bytes, at: 1, left: MOST_MARKETS }),
            Some(version) => Err(EntryError::Newer(*version)),
            None => Err(EntryError::Malformed),
        }
    }
}

impl Iterator for Markets {
    type Item = MarketInfo;

    /// The next market. What is damaged ends the list.
    fn next(&mut self) -> Option<MarketInfo> {
        self.left = self.left.checked_sub(1)?;
        let rest = &self.bytes[self.at..];
        let mut reader = Reader(rest);
        let market = reader.market()?;
        self.at += rest.len() - reader.0.len();
        Some(market)
    }
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Option<Entry> {
        let kind = self.byte()?;
        let head = Head {
            epoch: self.number()?,
            waited_ms: self.number()?,
            received: self.time()?,
            exchange_time: self.option(Reader::time)?,
            state: self.byte()?,
            rest_ms: self.number()?,
        };
        let body = match kind {
            0 => {
                let flags = self.byte()?;
                Update::Quotes {
                    is_first: flags & 1 != 0,
                    is_last: flags & 2 != 0,
                    tickers: self.list(|it| Some((it.text()?.into(), it.ticker()?)))?,
                }
            }
            1 => Update::Candles(self.candles()?),
            2 => Update::Status(self.option(|it| Some(it.text()?.into()))?),
            3 => Update::Released(self.option(|it| Some(it.text()?.into()))?),
            4 => Update::Stats(self.text()?.into(), Box::new(self.stats()?)),
            _ => return None,
        };
        Some(Entry { head, body })
    }

    fn ticker(&mut self) -> Option<Ticker> {
        let set = self.number()?;
        let last = self.decimal()?;
        let mut at = 0..;
        let mut figure = || match set >> at.next()? & 1 {
            0 => Some(None),
            _ => self.decimal().map(Some),
        };
        Some(Ticker {
            last,
            bid: figure()?,
            ask: figure()?,
            bid_volume: figure()?,
            ask_volume: figure()?,
            open: figure()?,
            high: figure()?,
            low: figure()?,
            change: figure()?,
            percentage: figure()?,
            base_volume: figure()?,
            quote_volume: figure()?,
            timestamp: self.option(Reader::time)?,
        })
    }

    fn stats(&mut self) -> Option<Stats> {
        Some(Stats {
            open: self.option(Reader::decimal)?,
            high: self.option(Reader::decimal)?,
            low: self.option(Reader::decimal)?,
            base_volume: self.option(Reader::decimal)?,
            quote_volume: self.option(Reader::decimal)?,
        })
    }

    fn series(&mut self) -> Option<SeriesPart> {
        let symbol = self.text()?.into();
        let interval = *Stored::ALL.get(usize::from(self.byte()?))?;
        let start = self.signed().filter(|it| (0..=LAST_SLOT).contains(it))?;
        let count = self.number().filter(|it| *it <= MOST_SLOTS)?;
        let slots = start..start + count as i64;
        Some(SeriesPart { symbol, interval, slots })
    }

    fn candles(&mut self) -> Option<SentCandles> {
        let series = self.series()?;
        let closed_before = self.time()?;
        let flags = self.byte()?;
        let rows = self.list(|it| {
            let open_time = it.time()?;
            let closed = match it.byte()? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            };
            let candle = Candle {
                open_time,
                open: it.decimal()?,
                high: it.decimal()?,
                low: it.decimal()?,
                close: it.decimal()?,
                volume: it.decimal()?,
            };
            Some((candle, closed))
        })?;
        Some(SentCandles {
            series,
            closed_before,
            is_dated: flags & 1 != 0,
            is_full: flags & 2 != 0,
            is_proven: flags & 4 != 0,
            rows,
        })
    }

    fn market(&mut self) -> Option<MarketInfo> {
        Some(MarketInfo {
            ticker_id: self.text()?.into(),
            candle_id: self.option(|it| Some(it.text()?.into()))?,
            base: self.text()?.into(),
            quote: self.text()?.into(),
            active: self.byte()? != 0,
            rules: MarketRules {
                amount_places: self.option(Reader::byte)?,
                price_places: self.option(Reader::byte)?,
                amount: self.bounds()?,
                price: self.bounds()?,
                cost: self.bounds()?,
                taker: self.option(Reader::decimal)?,
                maker: self.option(Reader::decimal)?,
            },
        })
    }

    fn bounds(&mut self) -> Option<Bounds> {
        Some(Bounds { min: self.option(Reader::decimal)?, max: self.option(Reader::decimal)? })
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn time(&mut self) -> Option<UnixMs> {
        let time = self.signed().filter(|it| it.unsigned_abs() <= LAST_MS)?;
        Some(UnixMs(time))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let text = (length <= MOST_TEXT).then(|| self.take(length))??;
        std::str::from_utf8(text).ok()
    }

    fn decimal(&mut self) -> Option<Decimal> {
        let length = usize::from(self.byte()?);
        Decimal::parse(self.take(length)?).ok()
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= MOST_ITEMS).then_some(())?;
        (0..count).map(|_| read(self)).collect()
    }
}
