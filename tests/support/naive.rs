//! Arithmetic done the slow and obvious way: decimals, calendars, roll-ups. Nothing here is shared with the
//! code under test.

use super::Json;

/// The stored intervals.
pub const STORED: [&str; 3] = ["1m", "1h", "1d"];

/// The served intervals.
pub const INTERVALS: [&str; 15] =
    ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M"];

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A decimal without exponent and needless zeros.
pub fn plain(text: &str) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().expect("an exponent")),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    let mut point = whole.len() as i64 + exponent;
    while point < 0 {
        digits.insert(0, '0');
        point += 1;
    }
    while (digits.len() as i64) < point {
        digits.push('0');
    }
    let (whole, fraction) = digits.split_at(point as usize);
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    match (whole, fraction) {
        ("0", "") => "0".to_string(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

/// A decimal as a number of 10^-12.
pub fn fixed(text: &str) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= 12, "{text} has too many places");
    let digits = format!("{whole}{fraction:0<12}");
    digits.parse().expect("a decimal")
}

/// The inverse of [`fixed`].
pub fn from_fixed(value: i128) -> String {
    let unit = 1_000_000_000_000;
    plain(&format!("{}.{:012}", value / unit, value % unit))
}

/// Length of an interval; `None` for the month and for what is none.
pub fn length_ms(interval: &str) -> Option<i64> {
    let (number, unit) = interval.split_at(interval.len() - 1);
    let unit = match unit {
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        "w" => 7 * DAY,
        _ => return None,
    };
    Some(number.parse::<i64>().ok()? * unit)
}

/// The stored interval that another one is made of.
pub fn base_of(interval: &str) -> &'static str {
    match interval.as_bytes().last() {
        Some(b'm') => "1m",
        Some(b'h') => "1h",
        _ => "1d",
    }
}

/// Open time of the candle that holds this moment, and of the next one.
pub fn candle_at(interval: &str, time: i64) -> (i64, i64) {
    let Some(length) = length_ms(interval) else {
        return month_at(time);
    };
    // 1970-01-05 was the first Monday.
    let origin = if interval == "1w" { 4 * DAY } else { 0 };
    let open = (time - origin).div_euclid(length) * length + origin;
    (open, open + length)
}

/// The month that holds this moment, found by counting from 1970 on.
fn month_at(time: i64) -> (i64, i64) {
    let (mut open, mut year, mut month) = (0, 1970, 0);
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let end = open + days[month] * DAY;
        if time < end {
            return (open, end);
        }
        open = end;
        month = (month + 1) % 12;
        year += i64::from(month == 0);
    }
}

/// Open time; open, high, low, close and volume.
pub type Row = (i64, [String; 5]);

/// The rows of a chart, or of an exchange's candles, in the fewest digits.
pub fn rows_of(body: &Json) -> Vec<Row> {
    let figure = |text: &Json| plain(text.text().expect("a figure"));
    let row = |row: &Json| {
        let open = row[0].integer().expect("a time");
        (open, [1, 2, 3, 4, 5].map(|at| figure(&row[at])))
    };
    body.items().iter().map(row).collect()
}

/// One candle of many, oldest first: open, high, low, close, volume. At least one.
pub fn roll_up(rows: &[[String; 5]]) -> [String; 5] {
    let column = |at: usize| rows.iter().map(move |row| fixed(&row[at]));
    [
        rows[0][0].clone(),
        from_fixed(column(1).max().expect("a row")),
        from_fixed(column(2).min().expect("a row")),
        rows[rows.len() - 1][3].clone(),
        from_fixed(column(4).sum()),
    ]
}
