//! The format: how each value of an entry, a list or a request is written and read. Values that exceed a
//! bound are refused.

use super::entry::{Entry, EntryError, EntryHead, SentCandles, SeriesPart, Update, VERSION};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::{Bounds, Candle, MarketInfo, MarketRules, Stats, Ticker};
use crate::time::UnixMs;
use std::ops::Range;

/// Longest text: an error of an exchange.
const MOST_TEXT: usize = 1024;

/// Most items of one entry: a page of candles has up to 5,000, a piece of quotes 256.
const MOST_ITEMS: usize = 16_384;

/// Most markets of a list: the largest value that `limits.symbols` may have.
const MOST_MARKETS: usize = 1_000_000;

/// Most slots of one page, or of one request.
const MOST_SLOTS: u64 = 1_000_000;

/// The last slot and the last time that are accepted: arithmetic on earlier ones cannot overflow.
const LAST_SLOT: i64 = 10_000_000_000;
const LAST_MS: u64 = 1_000_000_000_000_000;

/// The size that most entries do not exceed.
const ENTRY_USUAL: usize = 256;

/// Writes an entry, or a request for candles.
pub fn encode(value: &impl Coded) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENTRY_USUAL);
    out.push(VERSION);
    value.put(&mut out);
    out
}

/// Reads an entry, or a request for candles. The value must end with the last byte.
pub fn decode<T: Coded>(bytes: &[u8]) -> Result<T, EntryError> {
    let mut rest = behind_version(bytes)?;
    let value = T::get(&mut rest).filter(|_| rest.is_empty());
    value.ok_or(EntryError::Malformed)
}

/// Appends one market to a list, whose first byte is [`VERSION`].
pub fn encode_market(info: &MarketInfo, out: &mut Vec<u8>) {
    info.put(out);
}

/// An iterator over the markets of a list.
#[derive(Clone, Debug)]
pub struct Markets {
    bytes: Vec<u8>,
    at: usize,
    left: usize,
}

impl Markets {
    /// The markets in the bytes of a list.
    pub fn new(bytes: Vec<u8>) -> Result<Markets, EntryError> {
        behind_version(&bytes)?;
        Ok(Markets { bytes, at: 1, left: MOST_MARKETS })
    }
}

impl Iterator for Markets {
    type Item = MarketInfo;

    /// The next market. Damaged bytes end the list.
    fn next(&mut self) -> Option<MarketInfo> {
        self.left = self.left.checked_sub(1)?;
        let mut rest = &self.bytes[self.at..];
        let market = Coded::get(&mut rest)?;
        self.at = self.bytes.len() - rest.len();
        Some(market)
    }
}

fn behind_version(bytes: &[u8]) -> Result<&[u8], EntryError> {
    match bytes.split_first() {
        Some((version, _)) if *version > VERSION => Err(EntryError::Newer(*version)),
        Some((_, rest)) => Ok(rest),
        None => Err(EntryError::Malformed),
    }
}

/// A value that the format can represent.
pub trait Coded: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the value from the front of the remaining bytes. `None` if they do not begin with such a value.
    fn get(from: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Coded`] for structs that are written field by field, in this order. Flags in
/// brackets share a byte.
macro_rules! in_order {
    ($($struct:ident { $($field:ident),+ $([$($flag:ident),+], $($behind:ident),+)? })+) => {$(
        impl Coded for $struct {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
                $([$(self.$flag),+].put(out); $(self.$behind.put(out);)+)?
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                $(let $field = Coded::get(from)?;)+
                $(let [$($flag),+] = Coded::get(from)?; $(let $behind = Coded::get(from)?;)+)?
                Some($struct { $($field),+ $(, $($flag),+, $($behind),+)? })
            }
        }
    )+};
}

in_order! {
    EntryHead { epoch, waited_ms, received, exchange_time, state, rest_ms }
    SeriesPart { symbol, interval, slots }
    SentCandles {
        series, closed_before
        [is_dated, is_answer, is_final, goes_on, is_whole, is_archived], rows, between
    }
    Stats { open, high, low, base_volume, quote_volume }
    MarketInfo { ticker_id, candle_id, base, quote, active, rules }
    MarketRules { amount_places, price_places, amount, price, cost, taker, maker }
    Bounds { min, max }
}

impl Coded for Entry {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match &self.body {
            Update::Quotes { .. } => 0,
            Update::Candles(_) => 1,
            Update::Status(_) => 2,
            Update::Released(_) => 3,
            Update::Stats(..) => 4,
        });
        self.head.put(out);
        match &self.body {
            Update::Quotes { is_first, is_last, tickers } => {
                [*is_first, *is_last].put(out);
                tickers.put(out);
            }
            Update::Candles(page) => page.put(out),
            Update::Status(text) | Update::Released(text) => text.put(out),
            Update::Stats(id, stats) => {
                id.put(out);
                stats.put(out);
            }
        }
    }

    fn get(from: &mut &[u8]) -> Option<Entry> {
        let kind = u8::get(from)?;
        let head = Coded::get(from)?;
        let body = match kind {
            0 => {
                let [is_first, is_last] = Coded::get(from)?;
                Update::Quotes { is_first, is_last, tickers: Coded::get(from)? }
            }
            1 => Update::Candles(Coded::get(from)?),
            2 => Update::Status(Coded::get(from)?),
            3 => Update::Released(Coded::get(from)?),
            4 => Update::Stats(Coded::get(from)?, Box::new(Coded::get(from)?)),
            _ => return None,
        };
        Some(Entry { head, body })
    }
}

/// A ticker: its id, a bit set of the figures that are present, the last price, then these figures,
/// and the time.
impl Coded for (Box<str>, Ticker) {
    fn put(&self, out: &mut Vec<u8>) {
        let (id, ticker) = self;
        let figures = ticker.figures();
        let set = (0..).zip(figures).map(|(at, it)| u64::from(it.is_some()) << at);
        id.put(out);
        set.sum::<u64>().put(out);
        ticker.last.put(out);
        figures.into_iter().flatten().for_each(|it| it.put(out));
        ticker.timestamp.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let (id, set) = (Coded::get(from)?, u64::get(from)?);
        let mut ticker = Ticker::of_last(Coded::get(from)?);
        for (at, figure) in ticker.figures_mut().into_iter().enumerate() {
            if set >> at & 1 == 1 {
                *figure = Some(Coded::get(from)?);
            }
        }
        ticker.timestamp = Coded::get(from)?;
        Some((id, ticker))
    }
}

/// A candle, and true if the exchange says that it is not closed yet. The byte behind the open time is 0 for
/// such a candle, and 1 for a closed one.
impl Coded for (Candle, bool) {
    fn put(&self, out: &mut Vec<u8>) {
        let (candle, is_forming) = self;
        candle.open_time.put(out);
        (!is_forming).put(out);
        candle.figures().into_iter().for_each(|figure| figure.put(out));
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let open_time = Coded::get(from)?;
        let is_forming = !bool::get(from)?;
        let mut figure = || Decimal::get(from);
        let (open, high, low, close) = (figure()?, figure()?, figure()?, figure()?);
        Some((Candle { open_time, open, high, low, close, volume: figure()? }, is_forming))
    }
}

/// Slots: the first one, and their number.
impl Coded for Range<i64> {
    fn put(&self, out: &mut Vec<u8>) {
        put_signed(self.start, out);
        self.end.abs_diff(self.start).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Range<i64>> {
        let start = get_signed(from).filter(|it| (0..=LAST_SLOT).contains(it))?;
        let count = u64::get(from).filter(|it| *it <= MOST_SLOTS)?;
        Some(start..start + count as i64)
    }
}

impl Coded for Stored {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn get(from: &mut &[u8]) -> Option<Stored> {
        Stored::ALL.get(usize::from(u8::get(from)?)).copied()
    }
}

impl Coded for UnixMs {
    fn put(&self, out: &mut Vec<u8>) {
        put_signed(self.0, out);
    }

    fn get(from: &mut &[u8]) -> Option<UnixMs> {
        get_signed(from).filter(|it| it.unsigned_abs() <= LAST_MS).map(UnixMs)
    }
}

/// A decimal: one byte for the length, then the text.
impl Coded for Decimal {
    fn put(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.push(0);
        self.write(out);
        // A decimal's text has at most 64 digits, a sign, a point, and as many zeros as its scale.
        out[at] = (out.len() - at - 1).min(255) as u8;
    }

    fn get(from: &mut &[u8]) -> Option<Decimal> {
        let length = usize::from(u8::get(from)?);
        Decimal::parse(from.split_off(..length)?).ok()
    }
}

impl Coded for Box<str> {
    fn put(&self, out: &mut Vec<u8>) {
        let mut end = self.len().min(MOST_TEXT);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        (end as u64).put(out);
        out.extend_from_slice(&self.as_bytes()[..end]);
    }

    fn get(from: &mut &[u8]) -> Option<Box<str>> {
        let length = usize::try_from(u64::get(from)?).ok().filter(|it| *it <= MOST_TEXT)?;
        std::str::from_utf8(from.split_off(..length)?).ok().map(Into::into)
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(from: &mut &[u8]) -> Option<Option<T>> {
        match u8::get(from)? {
            0 => Some(None),
            1 => T::get(from).map(Some),
            _ => None,
        }
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }

    fn get(from: &mut &[u8]) -> Option<Vec<T>> {
        let count = usize::try_from(u64::get(from)?).ok().filter(|it| *it <= MOST_ITEMS)?;
        (0..count).map(|_| T::get(from)).collect()
    }
}

impl Coded for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(from: &mut &[u8]) -> Option<bool> {
        Some(u8::get(from)? != 0)
    }
}

/// Flags: one bit each, from the lowest bit on.
impl<const COUNT: usize> Coded for [bool; COUNT] {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((0..).zip(self).map(|(at, flag)| u8::from(*flag) << at).sum());
    }

    fn get(from: &mut &[u8]) -> Option<[bool; COUNT]> {
        let flags = u8::get(from)?;
        Some(std::array::from_fn(|at| flags >> at & 1 == 1))
    }
}

impl Coded for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(from: &mut &[u8]) -> Option<u8> {
        from.split_off_first().copied()
    }
}

impl Coded for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut number = *self;
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    fn get(from: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = u8::get(from)?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

fn put_signed(number: i64, out: &mut Vec<u8>) {
    ((number << 1 ^ number >> 63) as u64).put(out);
}

fn get_signed(from: &mut &[u8]) -> Option<i64> {
    let number = u64::get(from)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}
