//! Converts rows of the file to records, and back; the series of the file with their covered times, and the
//! checksums of rows.
//!
//! This file owns the units: slots and milliseconds in memory, seconds on disk, decimals as text. Each value
//! is checked when it is read, because a person may have edited the file, or the disk may have failed.
//!
//! The covered times of a series are the interval set in the table `span`. Adding or removing a range reads
//! only the rows that overlap or touch it, so the cost does not depend on the number of rows. Invariant: the
//! ranges of a series are not empty, and neither overlap nor touch. A read ignores a row that breaks this.
//! Adding or removing a range over such a row deletes the row.

use super::sqlite::{Database, OptionalExtension, Result, Row, Value, ValueRef};
use crate::history::{Extent, QuoteName, SavedQuote, SeriesName, StoreError};
use crate::interval::Stored;
use crate::record::{Bounds, Candle, MarketRules, Ticker};
use crate::time::UnixMs;
use rangemap::RangeSet;
use std::ops::Range;

/// The end of the year 9999, in seconds: later years have five digits. No later slot is stored.
const END_OF_TIME: i64 = 253_402_300_800;

/// The columns of the table `candle`, in the order in which [`candle`] reads them.
pub(super) const CANDLE: &str = "time, open, high, low, close, volume, seal";

/// A record that is stored by source and symbol.
pub(super) trait Record: Sized {
    /// The table of these records.
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

/// The checksum of a row, which is stored in its column `seal`. It is a 32-bit FNV-1a hash (Fowler,
/// Noll and Vo): a change of one byte always changes the hash,
/// and all but once in millions the 24 bits that are stored.
///
/// SQLite notices a page that is inconsistent, but not a digit that has become another digit. A row whose
/// checksum does not match is never served. The checksum also covers the name of the row's series, so a row
/// that was moved to another series is noticed. It protects against failing disks and human mistakes, but not
/// against an attacker, who can compute checksums too.
///
/// This is the checksum of the values so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksum(u32);

impl Checksum {
    /// The checksum before the first value.
    pub(super) fn new() -> Checksum {
        Checksum(0x811c_9dc5)
    }

    /// The checksum of a series' name. The checksums of its rows continue from it.
    pub(super) fn of_series(series: &SeriesName) -> Checksum {
        let names = [&*series.source, &*series.symbol, series.interval.name()];
        names.iter().fold(Checksum::new(), |sum, name| sum.text(name.as_bytes()))
    }

    /// The checksum after these values.
    pub(super) fn with_all(self, values: &[Value]) -> Checksum {
        values.iter().fold(self, |sum, value| sum.with(value.into()))
    }

    /// The number to store: 24 bits with a sign, which take three bytes in SQLite.
    pub(super) fn number(self) -> i64 {
        let folded = (self.0 ^ (self.0 >> 24)) & 0xff_ffff;
        i64::from(folded) - 0x80_0000
    }

    /// True if the last column has the checksum of the columns before it.
    pub(super) fn holds(self, row: &Row<'_>) -> bool {
        row.get(row.as_ref().column_count() - 1) == Ok(self.with_row(row).number())
    }

    /// The checksum after all values of a row except the last.
    pub(super) fn with_row(self, row: &Row<'_>) -> Checksum {
        let columns = 0..row.as_ref().column_count() - 1;
        columns.fold(self, |sum, column| sum.with(row.get_ref(column).unwrap_or(ValueRef::Null)))
    }

    fn with(self, value: ValueRef<'_>) -> Checksum {
        // The first byte is the kind of the value. A text ends with a byte that no text contains.
        // So no two lists of values have the same bytes.
        match value {
            ValueRef::Null => self.bytes(&[0]),
            ValueRef::Integer(number) => self.bytes(&[1]).bytes(&number.to_le_bytes()),
            ValueRef::Text(text) => self.text(text),
            // The tables have no such values, so no row has such a checksum.
            ValueRef::Real(_) | ValueRef::Blob(_) => self.bytes(&[3]),
        }
    }

    fn text(self, text: &[u8]) -> Checksum {
        self.bytes(&[2]).bytes(text).bytes(&[0xff])
    }

    fn bytes(self, bytes: &[u8]) -> Checksum {
        let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        Checksum(bytes.iter().fold(self.0, step))
    }
}

/// A series in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesRow {
    pub(super) id: i64,
    /// The checksum of its name, from which the checksums of its rows continue.
    pub(super) checksum: Checksum,
}

/// The series with this name, if the file has it.
pub(super) fn find_series(
    db: &Database,
    name: &SeriesName,
) -> Result<Option<SeriesRow>, StoreError> {
    let sql = "SELECT id FROM series WHERE source = ?1 AND symbol = ?2 AND interval = ?3";
    let id = db.prepare_cached(sql)?.query_row(names(name), |row| row.get(0)).optional()?;
    Ok(id.map(|id| SeriesRow { id, checksum: Checksum::of_series(name) }))
}

/// The series with this name. Inserts it if the file lacks it.
pub(super) fn make_series(db: &Database, name: &SeriesName) -> Result<SeriesRow, StoreError> {
    if let Some(series) = find_series(db, name)? {
        return Ok(series);
    }
    let sql = "INSERT INTO series (source, symbol, interval) VALUES (?1, ?2, ?3)";
    let id = db.prepare_cached(sql)?.insert(names(name))?;
    Ok(SeriesRow { id, checksum: Checksum::of_series(name) })
}

fn names(series: &SeriesName) -> [&str; 3] {
    [&series.source, &series.symbol, series.interval.name()]
}

/// The first and the last candle of a series, and the number of candles.
pub(super) fn extent(
    db: &Database,
    series: SeriesRow,
    interval: Stored,
) -> Result<Extent, StoreError> {
    let sql = "SELECT (SELECT min(time) FROM candle WHERE series = ?1),
        (SELECT max(time) FROM candle WHERE series = ?1),
        (SELECT candles FROM series WHERE id = ?1)";
    let extent = db.prepare_cached(sql)?.query_row([series.id], |row| {
        let end = |column| slot(interval, row.get(column).ok()?);
        let count: i64 = row.get(2).unwrap_or(0);
        Ok(Extent { first: end(0), last: end(1), count: count.try_into().unwrap_or(0) })
    });
    Ok(extent?)
}

/// Adds these times to the covered ones, or removes them.
pub(super) fn set_covered(
    db: &Database,
    series: SeriesRow,
    times: &Range<i64>,
    is_covered: bool,
) -> Result<(), StoreError> {
    if times.is_empty() {
        return Ok(());
    }
    let (old, broken) = touching(db, series, times)?;
    let mut new: RangeSet<i64> = old.iter().cloned().collect();
    if is_covered {
        new.insert(times.clone())
    } else {
        new.remove(times.clone())
    }
    let gone = old.iter().filter(|span| !new.iter().any(|it| it == *span));
    let mut take = db.prepare_cached("DELETE FROM span WHERE series = ?1 AND first = ?2")?;
    for first in gone.map(|span| span.start).chain(broken) {
        take.execute((series.id, first))?;
    }
    let mut put = db.prepare_cached("INSERT OR REPLACE INTO span VALUES (?1, ?2, ?3, ?4)")?;
    for span in new.iter().filter(|span| !old.contains(span)) {
        let seal = series.checksum.with_all(&[span.start.into(), span.end.into()]).number();
        put.execute((series.id, span.start, span.end, seal))?;
    }
    Ok(())
}

/// The ranges that overlap or touch these times, last first, and the starts of rows that break the
/// invariant or whose checksum is wrong.
fn touching(
    db: &Database,
    series: SeriesRow,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, Vec<i64>), StoreError> {
    let mut before = db.prepare_cached(
        "SELECT first, until, seal FROM span WHERE series = ?1 AND first <= ?2 ORDER BY first DESC",
    )?;
    let mut found = before.query((series.id, times.end))?;
    let (mut touching, mut broken): (Vec<Range<i64>>, _) = (Vec::new(), Vec::new());
    while let Some(row) = found.next()? {
        let span = row.get(0).unwrap_or(i64::MIN)..row.get(1).unwrap_or(i64::MIN);
        let is_apart = touching.last().is_none_or(|later| span.end < later.start);
        if span.is_empty() || !is_apart || !series.checksum.holds(row) {
            broken.push(span.start);
        } else if span.end < times.start {
            // The ranges do not touch each other, so all following ranges end even earlier.
            break;
        } else {
            touching.push(span);
        }
    }
    Ok((touching, broken))
}

/// The covered slots of a series among these times, in order, and the number of invalid rows.
pub(super) fn covered(
    db: &Database,
    series: SeriesRow,
    interval: Stored,
    times: &Range<i64>,
) -> Result<(Vec<Range<i64>>, u64), StoreError> {
    let (spans, broken) = touching(db, series, times)?;
    let slots = |span: &Range<i64>| Some(slot(interval, span.start)?..slot(interval, span.end)?);
    let covered: Vec<_> = spans.iter().rev().filter_map(slots).collect();
    let unsound = broken.len() + spans.len() - covered.len();
    Ok((covered, unsound as u64))
}

#[cfg(test)]
mod tests {
    use super::super::sqlite::Database;
    use super::*;

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
    fn values_in_another_order_or_cut_elsewhere_have_another_seal() {
        let text = |text: &str| Value::Text(text.to_string());
        let lists: [&[Value]; 7] = [
            &[],
            &[Value::Null],
            &[text("")],
            &[text("ab"), text("c")],
            &[text("a"), text("bc")],
            &[text("a"), Value::Integer(5), Value::Null],
            &[text("a"), Value::Null, Value::Integer(5)],
        ];
        let checksums: Vec<i64> =
            lists.map(|list| Checksum::new().with_all(list).number()).to_vec();
        for (at, checksum) in checksums.iter().enumerate() {
            assert!(!checksums[..at].contains(checksum), "{at}");
            assert!((-0x80_0000..0x80_0000).contains(checksum));
        }
    }

    #[test]
    fn a_flip_of_any_bit_breaks_it() {
        let text = *b"64123.45";
        let checksum = |text: &[u8]| Checksum::new().text(text).number();
        for bit in 0..text.len() * 8 {
            let mut flipped = text;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&flipped), checksum(&text), "bit {bit}");
        }
    }
}
