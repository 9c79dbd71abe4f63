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

use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::{Bounds, Candle, MarketInfo, MarketRules, Ticker};
use crate::time::UnixMs;
use std::ops::Range;

/// The version that is written, and the newest that is read.
pub const VERSION: u8 = 1;

/// Most items of one entry: a page of candles has up to 5,000, a piece of quotes 256.
const MOST_ITEMS: usize = 16_384;

/// Most markets of a list: as many as there may be symbols by default, and some.
const MOST_MARKETS: usize = 1_000_000;

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
    /// The node has let the source go: another may collect it.
    Released,
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

/// Appends an entry.
pub fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let Head {
        epoch,
        waited_ms,
        received,
        exchange_time,
        state,
        rest_ms,
    } = &entry.head;
    let kind = match &entry.body {
        Body::Quotes { .. } => 0,
        Body::Candles(_) => 1,
        Body::Status(_) => 2,
        Body::Released => 3,
    };
    out.extend([VERSION, kind]);
    put(out, *epoch);
    put(out, *waited_ms);
    put_signed(out, received.0);
    put_option(out, exchange_time, |out, time| put_signed(out, time.0));
    out.push(*state);
    put(out, *rest_ms);
    match &entry.body {
        Body::Quotes {
            is_first,
            is_last,
            tickers,
        } => {
            out.push(u8::from(*is_first) | u8::from(*is_last) << 1);
            put(out, tickers.len() as u64);
            for (id, ticker) in tickers {
                put_text(out, id);
                put_ticker(out, ticker);
            }
        }
        Body::Candles(page) => put_candles(out, page),
        Body::Status(error) => put_option(out, error, |out, text| put_text(out, text)),
        Body::Released => {}
    }
}

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

/// Writes a request for candles.
pub fn encode_ask(series: &Series) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_series(&mut out, series);
    out
}

/// Reads a request for candles.
pub fn decode_ask(bytes: &[u8]) -> Result<Series, EntryError> {
    match bytes.split_first() {
        Some((version, _)) if *version > VERSION => Err(EntryError::Newer(*version)),
        Some((_, rest)) => Reader(rest).series().ok_or(EntryError::Malformed),
        None => Err(EntryError::Malformed),
    }
}

/// Appends one market to a list, whose first byte is [`VERSION`].
pub fn encode_market(info: &MarketInfo, out: &mut Vec<u8>) {
    let rules = &info.rules;
    put_text(out, &info.ticker_id);
    put_option(out, &info.candle_id, |out, id| put_text(out, id));
    put_text(out, &info.base);
    put_text(out, &info.quote);
    out.push(u8::from(info.active));
    for places in [rules.amount_places, rules.price_places] {
        put_option(out, &places, |out, places| out.push(*places));
    }
    for bounds in [&rules.amount, &rules.price, &rules.cost] {
        put_option(out, &bounds.min, put_decimal);
        put_option(out, &bounds.max, put_decimal);
    }
    put_option(out, &rules.taker, put_decimal);
    put_option(out, &rules.maker, put_decimal);
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
            Some(&VERSION) => Ok(Markets {
                bytes,
                at: 1,
                left: MOST_MARKETS,
            }),
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

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put(out, end as u64);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn put_decimal(out: &mut Vec<u8>, decimal: &Decimal) {
    let at = out.len();
    out.push(0);
    decimal.write(out);
    // A decimal's text has at most 64 digits, a sign, a point, and as many zeros as its scale.
    out[at] = (out.len() - at - 1).min(255) as u8;
}

fn put_option<T>(out: &mut Vec<u8>, value: &Option<T>, put: impl Fn(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// A set of the figures that there are, then these.
fn put_ticker(out: &mut Vec<u8>, ticker: &Ticker) {
    let figures = [
        &ticker.bid,
        &ticker.ask,
        &ticker.bid_volume,
        &ticker.ask_volume,
        &ticker.open,
        &ticker.high,
        &ticker.low,
        &ticker.change,
        &ticker.percentage,
        &ticker.base_volume,
        &ticker.quote_volume,
    ];
    let set = (0..)
        .zip(figures)
        .map(|(at, it)| u64::from(it.is_some()) << at);
    put(out, set.sum());
    put_decimal(out, &ticker.last);
    figures
        .into_iter()
        .flatten()
        .for_each(|it| put_decimal(out, it));
    put_option(out, &ticker.timestamp, |out, time| put_signed(out, time.0));
}

fn put_series(out: &mut Vec<u8>, series: &Series) {
    put_text(out, &series.symbol);
    out.push(series.interval as u8);
    put_signed(out, series.slots.start);
    put(out, series.slots.end.abs_diff(series.slots.start));
}

fn put_candles(out: &mut Vec<u8>, page: &Candles) {
    put_series(out, &page.series);
    put_signed(out, page.closed_before.0);
    out.push(u8::from(page.is_dated) | u8::from(page.is_full) << 1 | u8::from(page.is_proven) << 2);
    put(out, page.rows.len() as u64);
    for (candle, closed) in &page.rows {
        put_signed(out, candle.open_time.0);
        out.push(closed.map_or(2, u8::from));
        let Candle {
            open_time: _,
            open,
            high,
            low,
            close,
            volume,
        } = candle;
        for figure in [open, high, low, close, volume] {
            put_decimal(out, figure);
        }
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
            received: UnixMs(self.signed()?),
            exchange_time: self.option(|it| Some(UnixMs(it.signed()?)))?,
            state: self.byte()?,
            rest_ms: self.number()?,
        };
        let body = match kind {
            0 => {
                let flags = self.byte()?;
                Body::Quotes {
                    is_first: flags & 1 != 0,
                    is_last: flags & 2 != 0,
                    tickers: self.list(|it| Some((it.text()?.into(), it.ticker()?)))?,
                }
            }
            1 => Body::Candles(self.candles()?),
            2 => Body::Status(self.option(|it| Some(it.text()?.into()))?),
            3 => Body::Released,
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
            timestamp: self.option(|it| Some(UnixMs(it.signed()?)))?,
        })
    }

    fn series(&mut self) -> Option<Series> {
        let symbol = self.text()?.into();
        let interval = *Stored::ALL.get(usize::from(self.byte()?))?;
        let start = self.signed()?;
        let count = i64::try_from(self.number()?).ok()?;
        let slots = start..start.checked_add(count)?;
        Some(Series {
            symbol,
            interval,
            slots,
        })
    }

    fn candles(&mut self) -> Option<Candles> {
        let series = self.series()?;
        let closed_before = UnixMs(self.signed()?);
        let flags = self.byte()?;
        let rows = self.list(|it| {
            let open_time = UnixMs(it.signed()?);
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
        Some(Candles {
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
        Some(Bounds {
            min: self.option(Reader::decimal)?,
            max: self.option(Reader::decimal)?,
        })
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
