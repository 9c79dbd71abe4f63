//! The file as a person with a shell sees it.

use crate::support::LONG;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::Path;

/// Source, symbol, interval, open time in milliseconds.
pub type Slot = (String, String, String, i64);

/// All candles, their figures as they are written there.
pub fn candles(path: &Path) -> BTreeMap<Slot, [String; 5]> {
    let shell = open(path);
    let mut query = shell
        .prepare(
            "SELECT source, symbol, interval, candle.time * 1000, open, high, low, close, volume
             FROM candle JOIN series ON series.id = candle.series",
        )
        .expect("sql");
    let row = |row: &rusqlite::Row<'_>| {
        let figures = [row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?];
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?), figures))
    };
    let rows = query.query_map([], row).expect("a query");
    rows.map(|row| row.expect("a row")).collect()
}

/// One number.
pub fn number(path: &Path, sql: &str) -> i64 {
    open(path).query_row(sql, [], |row| row.get(0)).expect("a number")
}

fn open(path: &Path) -> Connection {
    let shell = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let shell = shell.expect("a file");
    shell.busy_timeout(LONG).expect("a connection");
    shell
}
