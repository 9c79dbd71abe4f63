//! Converts rows of the file to records, and back.
//!
//! Owns the units: slots and milliseconds in memory, seconds on disk, decimals as their texts. Each
//! value that is read is checked, because a person may have edited the file, or the disk may have
//! failed.

use super::checksum::Checksum;
use super::sqlite::{Result, Row, Value};
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
    fn values(&self) -> Vec<Value>;

    /// The record of a row with these columns. An error means that a value is invalid.
    fn read(row: &Row<'_>) -> Result<Self>;
}

/// All columns of a record.
pub(super) fn columns<R: Record>() -> String {
    format!("source, symbol, {}, seal", R::COLUMNS)
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
    let slot = slot(interval, row.get(0).ok()?)?;
    let decimal = |column| row.get(column).ok();
    let candle = Candle {
        open_time: interval.open_of(slot),
        open: decimal(1)?,
        high: decimal(2)?,
        low: decimal(3)?,
        close: decimal(4)?,
        volume: decimal(5)?,
    };
    candle.is_sound().then_some(candle)
}

/// The record of a row, or `None` if a value is invalid or its checksum is wrong.
pub(super) fn record<R: Record>(row: &Row<'_>) -> Option<(QuoteName, R)> {
    let name = QuoteName { source: name(row, 0)?, symbol: name(row, 1)? };
    let record = R::read(row).ok()?;
    Checksum::new().holds(row).then_some((name, record))
}

impl Record for SavedQuote {
    const TABLE: &str = "quote";
    const COLUMNS: &str = "last, bid, ask, bid_volume, ask_volume, open, high, low, change, \
        percentage, base_volume, quote_volume, time, received";

    fn values(&self) -> Vec<Value> {
        let (ticker, received) = (&self.ticker, self.received_at.0);
        let optional = ticker.figures().map(|decimal| Value::from(decimal.as_ref()));
        let times = [ticker.timestamp.map(|time| time.0).into(), received.into()];
        [(&ticker.last).into()].into_iter().chain(optional).chain(times).collect()
    }

    fn read(row: &Row<'_>) -> Result<SavedQuote> {
        let mut ticker = Ticker::of_last(row.get("last")?);
        for (column, decimal) in (3..).zip(ticker.figures_mut()) {
            *decimal = row.get(column)?;
        }
        ticker.timestamp = row.get::<_, Option<i64>>("time")?.map(UnixMs);
        Ok(SavedQuote { ticker, received_at: UnixMs(row.get("received")?) })
    }
}

impl Record for MarketRules {
    const TABLE: &str = "market";
    const COLUMNS: &str = "amount_places, price_places, amount_min, amount_max, price_min, \
        price_max, cost_min, cost_max, taker, maker";

    fn values(&self) -> Vec<Value> {
        let places = [self.amount_places, self.price_places].map(Value::from);
        let bounds = [&self.amount, &self.price, &self.cost];
        let ends = bounds.into_iter().flat_map(|it| [&it.min, &it.max]);
        let decimals = ends.chain([&self.taker, &self.maker]);
        places.into_iter().chain(decimals.map(|it| it.as_ref().into())).collect()
    }

    fn read(row: &Row<'_>) -> Result<MarketRules> {
        let bounds =
            |min, max| -> Result<Bounds> { Ok(Bounds { min: row.get(min)?, max: row.get(max)? }) };
        Ok(MarketRules {
            amount_places: row.get("amount_places")?,
            price_places: row.get("price_places")?,
            amount: bounds("amount_min", "amount_max")?,
            price: bounds("price_min", "price_max")?,
            cost: bounds("cost_min", "cost_max")?,
            taker: row.get("taker")?,
            maker: row.get("maker")?,
        })
    }
}

/// A stored name, or `None` if it is empty or not UTF-8.
pub(super) fn name(row: &Row<'_>, column: usize) -> Option<Box<str>> {
    let name: Box<str> = row.get(column).ok()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::sqlite::Database;
    use super::*;
    use crate::decimal::Decimal;

    /// What a row with these columns reads as.
    fn check(interval: Stored, columns: &str, expected: Option<i64>) {
        let db = Database::in_memory().expect("memory");
        let mut query = db.prepare(&format!("SELECT {columns}")).expect("sql");
        let mut found = query.query(()).expect("a query");
        let row = found.next().expect("a step").expect("a row");
        let candle = parse_candle(interval, row);
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
            Value::Text(decimal) => decimal,
            _ => "null".to_string(),
        });
        assert_eq!(texts, ["null", "5", "null", "0"]);
    }
}
