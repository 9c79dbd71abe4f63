//! Converts rows of the file to records, and back.
//!
//! Owns the units: slots and milliseconds in memory, seconds on disk, decimals as their texts. Each
//! value that is read is checked, because a person may have edited the file, or the disk may have
//! failed.

use super::checksum::Checksum;
use super::sqlite::{Row, Value};
use crate::decimal::Decimal;
use crate::history::{QuoteName, SavedQuote};
use crate::interval::Stored;
use crate::record::{Bounds, Candle, MarketRules, Ticker};
use crate::time::UnixMs;
use std::ops::Range;

/// The end of the year 9999, in seconds: later years have five digits. No slot at or after it is
/// stored.
const END_OF_TIME: i64 = 253_402_300_800;

/// The columns of `candle` that [`candle`] reads, in its order.
pub(super) const CANDLE: &str = "time, open, high, low, close, volume, seal";

/// A record that is stored under the names of a source and a symbol.
pub(super) trait Record: Sized {
    /// Its table.
    const TABLE: &str;

    /// The columns between the names and the checksum.
    const COLUMNS: &str;

    /// The values of these columns.
    fn values(&self) -> Vec<Value<'_>>;

    /// The record of these columns; `None` if a value is invalid.
    fn read(columns: &mut Columns<'_>) -> Option<Self>;
}

/// All columns of a record.
pub(super) fn columns<R: Record>() -> String {
    format!("source, symbol, {}, seal", R::COLUMNS)
}

/// The columns of a row that are not read yet.
pub(super) struct Columns<'a> {
    row: &'a Row<'a>,
    next: usize,
}

/// The length of a candle in seconds.
pub(super) fn seconds(interval: Stored) -> i64 {
    interval.length_ms() / 1000
}

/// The times under which these slots are stored. Empty if none of them can be stored.
pub(super) fn times(interval: Stored, slots: &Range<i64>) -> Range<i64> {
    let length = seconds(interval);
    let clip = |slot: i64| slot.clamp(0, END_OF_TIME / length) * length;
    clip(slots.start)..clip(slots.end)
}

/// The slot that is stored under this time, or `None` if the time is not valid.
pub(super) fn slot(interval: Stored, time: i64) -> Option<i64> {
    let length = seconds(interval);
    let sound = (0..=END_OF_TIME).contains(&time) && time % length == 0;
    sound.then(|| time / length)
}

/// The candle of a row, or `None` if it is not sound or its checksum is wrong.
pub(super) fn candle(interval: Stored, checksum: Checksum, row: &Row<'_>) -> Option<Candle> {
    parse_candle(interval, row).filter(|_| checksum.holds(row))
}

fn parse_candle(interval: Stored, row: &Row<'_>) -> Option<Candle> {
    let mut columns = Columns { row, next: 0 };
    let slot = slot(interval, columns.int()??)?;
    let mut decimal = || columns.decimal()?;
    let candle = Candle {
        open_time: interval.open_of(slot),
        open: decimal()?,
        high: decimal()?,
        low: decimal()?,
        close: decimal()?,
        volume: decimal()?,
    };
    candle.is_sound().then_some(candle)
}

/// The record of a row, or `None` if a value is invalid or its checksum is wrong.
pub(super) fn record<R: Record>(row: &Row<'_>) -> Option<(QuoteName, R)> {
    let mut columns = Columns { row, next: 2 };
    let name = QuoteName { source: name(row.text(0)?)?, symbol: name(row.text(1)?)? };
    let record = R::read(&mut columns)?;
    Checksum::new().holds(row).then_some((name, record))
}

impl Columns<'_> {
    /// Reads the next column; NULL is `Some(None)`.
    fn value<T>(&mut self, read: impl FnOnce(&Row<'_>, usize) -> Option<T>) -> Option<Option<T>> {
        let column = self.next;
        self.next += 1;
        match self.row.is_null(column) {
            true => Some(None),
            false => read(self.row, column).map(Some),
        }
    }

    fn int(&mut self) -> Option<Option<i64>> {
        self.value(|row, column| row.int(column))
    }

    fn decimal(&mut self) -> Option<Option<Decimal>> {
        self.value(|row, column| Decimal::parse(row.text(column)?).ok())
    }
}

impl Record for SavedQuote {
    const TABLE: &str = "quote";
    const COLUMNS: &str = "last, bid, ask, bid_volume, ask_volume, open, high, low, change, \
        percentage, base_volume, quote_volume, time, received";

    fn values(&self) -> Vec<Value<'_>> {
        let it = &self.ticker;
        vec![
            (&it.last).into(),
            it.bid.as_ref().into(),
            it.ask.as_ref().into(),
            it.bid_volume.as_ref().into(),
            it.ask_volume.as_ref().into(),
            it.open.as_ref().into(),
            it.high.as_ref().into(),
            it.low.as_ref().into(),
            it.change.as_ref().into(),
            it.percentage.as_ref().into(),
            it.base_volume.as_ref().into(),
            it.quote_volume.as_ref().into(),
            it.timestamp.map(|time| time.0).into(),
            self.received_at.0.into(),
        ]
    }

    fn read(columns: &mut Columns<'_>) -> Option<SavedQuote> {
        let mut decimal = || columns.decimal();
        let ticker = Ticker {
            last: decimal()??,
            bid: decimal()?,
            ask: decimal()?,
            bid_volume: decimal()?,
            ask_volume: decimal()?,
            open: decimal()?,
            high: decimal()?,
            low: decimal()?,
            change: decimal()?,
            percentage: decimal()?,
            base_volume: decimal()?,
            quote_volume: decimal()?,
            timestamp: columns.int()?.map(UnixMs),
        };
        let received_at = UnixMs(columns.int()??);
        Some(SavedQuote { ticker, received_at })
    }
}

impl Record for MarketRules {
    const TABLE: &str = "market";
    const COLUMNS: &str = "amount_places, price_places, amount_min, amount_max, price_min, \
        price_max, cost_min, cost_max, taker, maker";

    fn values(&self) -> Vec<Value<'_>> {
        let places = [self.amount_places, self.price_places];
        let places = places.map(|places| places.map(i64::from).into());
        let bounds = [&self.amount, &self.price, &self.cost];
        let ends = bounds.into_iter().flat_map(|it| [&it.min, &it.max]);
        let decimals = ends.chain([&self.taker, &self.maker]);
        (places.into_iter()).chain(decimals.map(|it| it.as_ref().into())).collect()
    }

    fn read(columns: &mut Columns<'_>) -> Option<MarketRules> {
        let mut places = || columns.value(|row, column| u8::try_from(row.int(column)?).ok());
        let (amount_places, price_places) = (places()?, places()?);
        let mut decimal = || columns.decimal();
        let mut bounds = || Some(Bounds { min: decimal()?, max: decimal()? });
        Some(MarketRules {
            amount_places,
            price_places,
            amount: bounds()?,
            price: bounds()?,
            cost: bounds()?,
            taker: decimal()?,
            maker: decimal()?,
        })
    }
}

/// A stored name, or `None` if it is empty or not UTF-8.
pub(super) fn name(text: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(text).ok()?;
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::super::sqlite::Database;
    use super::*;

    /// What a row with these columns reads as.
    fn check(interval: Stored, columns: &str, expected: Option<i64>) {
        let db = Database::in_memory().expect("memory");
        let mut query = db.prepare(&format!("SELECT {columns}")).expect("sql");
        let mut found = query.query(&[]).expect("a query");
        let row = found.next().expect("a step").expect("a row");
        let candle = parse_candle(interval, &row);
        let slot = candle.map(|candle| interval.slot_of(candle.open_time));
        assert_eq!(slot, expected, "{columns}");
    }

    #[test]
    fn a_row_that_is_no_sound_candle_is_none() {
        check(Stored::M1, "600, '5', '9.5', '2', '7', '0'", Some(10));
        check(Stored::H1, "7200, '5', '9.5', '2', '7', '1.25'", Some(2));
        check(Stored::D1, "86400, '5', '9.50', '2', '7', '1e3'", Some(1));
        check(Stored::M1, "601, '5', '9', '2', '7', '0'", None);
        check(Stored::H1, "600, '5', '9', '2', '7', '0'", None);
        check(Stored::M1, "-60, '5', '9', '2', '7', '0'", None);
        check(Stored::M1, "9223372036854775800, '5', '9', '2', '7', '0'", None);
        check(Stored::M1, "'600', '5', '9', '2', '7', '0'", None);
        check(Stored::M1, "600, 5, '9', '2', '7', '0'", None);
        check(Stored::M1, "600, '5', NULL, '2', '7', '0'", None);
        check(Stored::M1, "600, '5', '9', '2', '7', ''", None);
        check(Stored::M1, "600, '5', '9', '2', 'NaN', '0'", None);
        check(Stored::M1, "600, '5', '9', x'32', '7', '0'", None);
        check(Stored::M1, "600, '5', CAST(x'39ff' AS TEXT), '2', '7', '0'", None);
        check(Stored::M1, "600, '5', '1', '2', '7', '0'", None);
        check(Stored::M1, "600, '5', '9', '0', '7', '0'", None);
        check(Stored::M1, "600, '5', '9', '2', '7', '-1'", None);
    }

    #[test]
    fn slots_and_times_are_inverse_and_clipped() {
        for interval in Stored::ALL {
            let times_of = |slots| times(interval, &slots);
            assert_eq!(times_of(3..5), 3 * seconds(interval)..5 * seconds(interval));
            assert_eq!(times_of(i64::MIN..i64::MAX), 0..END_OF_TIME);
            assert!(times_of(i64::MIN..-4).is_empty());
            assert!(times_of(i64::MAX - 1..i64::MAX).is_empty());
            assert_eq!(slot(interval, 3 * seconds(interval)), Some(3));
            assert_eq!(slot(interval, 3 * seconds(interval) + 1), None);
        }
    }

    #[test]
    fn a_decimal_that_is_not_there_is_null() {
        let five = Decimal::from(5);
        let decimals = [None, Some(&five), None, Some(&Decimal::ZERO)];
        let texts = decimals.map(|decimal| match Value::from(decimal) {
            Value::Decimal(decimal) => decimal.to_string(),
            _ => "null".to_string(),
        });
        assert_eq!(texts, ["null", "5", "null", "0"]);
    }
}
