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

/// The columns of `quote` that [`quote`] reads, in its order.
pub(super) const QUOTE: &str = "source, symbol, last, bid, ask, bid_volume, ask_volume, open, high, \
    low, change, percentage, base_volume, quote_volume, time, received, seal";

/// The columns of `market` that [`market`] reads, in its order.
pub(super) const MARKET: &str = "source, symbol, amount_places, price_places, amount_min, amount_max, \
    price_min, price_max, cost_min, cost_max, taker, maker, seal";

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
    let sound = parse_candle(interval, row)?;
    checksum.holds(row, 0..6).then_some(sound)
}

fn parse_candle(interval: Stored, row: &Row<'_>) -> Option<Candle> {
    let decimal = |column| Decimal::parse(row.text(column)?).ok();
    let slot = slot(interval, row.int(0)?)?;
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

/// The quote of a row, or `None` if a value is invalid or its checksum is wrong.
pub(super) fn quote(row: &Row<'_>) -> Option<(QuoteName, SavedQuote)> {
    if !Checksum::new().holds(row, 0..16) {
        return None;
    }
    let text = |column| name(row.text(column)?);
    let decimal = |column| match row.is_null(column) {
        true => Some(None),
        false => Decimal::parse(row.text(column)?).ok().map(Some),
    };
    let time = match row.is_null(14) {
        true => None,
        false => Some(UnixMs(row.int(14)?)),
    };
    let ticker = Ticker {
        last: decimal(2)??,
        bid: decimal(3)?,
        ask: decimal(4)?,
        bid_volume: decimal(5)?,
        ask_volume: decimal(6)?,
        open: decimal(7)?,
        high: decimal(8)?,
        low: decimal(9)?,
        change: decimal(10)?,
        percentage: decimal(11)?,
        base_volume: decimal(12)?,
        quote_volume: decimal(13)?,
        timestamp: time,
    };
    let name = QuoteName {
        source: text(0)?,
        symbol: text(1)?,
    };
    let received_at = UnixMs(row.int(15)?);
    Some((
        name,
        SavedQuote {
            ticker,
            received_at,
        },
    ))
}

/// The market rules of a row, or `None` if a value is invalid or its checksum is wrong.
pub(super) fn market(row: &Row<'_>) -> Option<(QuoteName, MarketRules)> {
    if !Checksum::new().holds(row, 0..12) {
        return None;
    }
    let places = |column| match row.is_null(column) {
        true => Some(None),
        false => u8::try_from(row.int(column)?).ok().map(Some),
    };
    let decimal = |column| match row.is_null(column) {
        true => Some(None),
        false => Decimal::parse(row.text(column)?).ok().map(Some),
    };
    let bounds = |column| {
        Some(Bounds {
            min: decimal(column)?,
            max: decimal(column + 1)?,
        })
    };
    let name = QuoteName {
        source: name(row.text(0)?)?,
        symbol: name(row.text(1)?)?,
    };
    let rules = MarketRules {
        amount_places: places(2)?,
        price_places: places(3)?,
        amount: bounds(4)?,
        price: bounds(6)?,
        cost: bounds(8)?,
        taker: decimal(10)?,
        maker: decimal(11)?,
    };
    Some((name, rules))
}

/// A stored name, or `None` if it is empty or not UTF-8.
pub(super) fn name(text: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(text).ok()?;
    (!text.is_empty()).then(|| text.into())
}

/// The texts of some decimals in one buffer, to be bound to a statement. The buffer is reused, so
/// that a candle costs no allocation.
#[derive(Default)]
pub(super) struct Digits {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Digits {
    /// Replaces the texts by those of these decimals.
    pub(super) fn write<'d>(&mut self, decimals: impl IntoIterator<Item = Option<&'d Decimal>>) {
        self.text.clear();
        self.ends.clear();
        for decimal in decimals {
            if let Some(decimal) = decimal {
                decimal.write(&mut self.text);
            }
            self.ends.push(self.text.len());
        }
    }

    /// The `n`th decimal as a value: NULL for `None`, which has an empty text.
    pub(super) fn value(&self, n: usize) -> Value<'_> {
        let begin = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        match &self.text[begin..self.ends[n]] {
            [] => Value::Null,
            text => Value::Text(text),
        }
    }

    /// The numbers of a candle.
    pub(super) fn candle(&mut self, candle: &Candle) -> [Value<'_>; 5] {
        let Candle {
            open_time: _,
            open,
            high,
            low,
            close,
            volume,
        } = candle;
        self.write([open, high, low, close, volume].map(Some));
        std::array::from_fn(|n| self.value(n))
    }

    /// The numbers of a market's rules, from `amount_min` to `maker`.
    pub(super) fn rules(&mut self, rules: &MarketRules) -> [Value<'_>; 8] {
        let bounds = [&rules.amount, &rules.price, &rules.cost];
        let ends = bounds.into_iter().flat_map(|it| [&it.min, &it.max]);
        let all = ends.chain([&rules.taker, &rules.maker]);
        self.write(all.map(Option::as_ref));
        std::array::from_fn(|n| self.value(n))
    }

    /// The numbers of a quote, from `last` to `quote_volume`.
    pub(super) fn quote(&mut self, ticker: &Ticker) -> [Value<'_>; 12] {
        let Ticker {
            last,
            bid,
            ask,
            bid_volume,
            ask_volume,
            open,
            high,
            low,
            change,
            percentage,
            base_volume,
            quote_volume,
            timestamp: _,
        } = ticker;
        let others = [
            bid,
            ask,
            bid_volume,
            ask_volume,
            open,
            high,
            low,
            change,
            percentage,
            base_volume,
            quote_volume,
        ];
        self.write([Some(last)].into_iter().chain(others.map(Option::as_ref)));
        std::array::from_fn(|n| self.value(n))
    }
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
        check(
            Stored::M1,
            "9223372036854775800, '5', '9', '2', '7', '0'",
            None,
        );
        check(Stored::M1, "'600', '5', '9', '2', '7', '0'", None);
        check(Stored::M1, "600, 5, '9', '2', '7', '0'", None);
        check(Stored::M1, "600, '5', NULL, '2', '7', '0'", None);
        check(Stored::M1, "600, '5', '9', '2', '7', ''", None);
        check(Stored::M1, "600, '5', '9', '2', 'NaN', '0'", None);
        check(Stored::M1, "600, '5', '9', x'32', '7', '0'", None);
        check(
            Stored::M1,
            "600, '5', CAST(x'39ff' AS TEXT), '2', '7', '0'",
            None,
        );
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
        let mut digits = Digits::default();
        let five = Decimal::from(5);
        digits.write([None, Some(&five), None, Some(&Decimal::ZERO)]);
        let texts = (0..4).map(|n| match digits.value(n) {
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => "null".to_string(),
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["null", "5", "null", "0"]);
    }
}
