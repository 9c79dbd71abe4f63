//! The tables of the file, and the migrations from earlier versions.
//!
//! marketd reads the tables `series`, `candle`, `span`, `quote` and `market`. People read the views
//! `candles`, `coverage` and `quotes` with `sqlite3 marketd.db`, even while marketd runs. Tables have numbers
//! as TEXT, with the digits that the exchange sent. Views show each number as a REAL, which SQL can compare
//! and sum, and as its text.
//!
//! The SQL of a table never changes after its release, not even its comments, because [`missing`] compares
//! the SQL. A change is a new entry of [`MIGRATIONS`]. The last entry with views makes all views again, so
//! older entries no longer have theirs.

use super::sqlite::{Database, Result, text};
use crate::history::StoreError;
use std::collections::BTreeMap;

/// Entry `n` turns version `n` into version `n + 1`.
pub(super) const MIGRATIONS: [&str; crate::history::VERSION as usize] =
    [VERSION_1, VERSION_2, VERSION_3];

/// A candle takes about 65 bytes, 39 of which are digits. `candle` is WITHOUT ROWID, so a row is stored once,
/// with its key. Times are in seconds, which take four bytes until 2038; milliseconds would take six. The
/// candles of a series are adjacent, so reading a range reads adjacent pages.
///
/// Only `prune` shrinks the file. Evicting the oldest candles of a series frees whole pages, and new candles
/// reuse them before the file grows. `auto_vacuum` would move pages with every eviction, and free space that
/// is needed again within a minute.
const VERSION_1: &str = "
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,               -- id of the source in the configuration
    symbol TEXT NOT NULL,               -- BTC/USDT
    interval TEXT NOT NULL,             -- 1m, 1h or 1d
    candles INTEGER NOT NULL DEFAULT 0, -- how many rows of candle belong to it
    UNIQUE (source, symbol, interval)
) STRICT;

CREATE TABLE candle (
    series INTEGER NOT NULL, -- id of series
    time INTEGER NOT NULL,   -- begin of the candle, in seconds since 1970, UTC
    open TEXT NOT NULL,      -- quote asset per base, as the exchange wrote it
    high TEXT NOT NULL,
    low TEXT NOT NULL,
    close TEXT NOT NULL,
    volume TEXT NOT NULL,    -- base asset
    seal INTEGER NOT NULL,   -- of the row: one that was changed by hand is not believed
    PRIMARY KEY (series, time)
) STRICT, WITHOUT ROWID;

-- What the exchange was asked for and has answered. A time in a span without a candle is one in
-- which nobody traded; a time outside of all spans is one about which nothing is known.
CREATE TABLE span (
    series INTEGER NOT NULL, -- id of series
    first INTEGER NOT NULL,  -- begin of the first candle's time, in seconds since 1970, UTC
    until INTEGER NOT NULL,  -- end of the last candle's time
    seal INTEGER NOT NULL,
    PRIMARY KEY (series, first)
) STRICT, WITHOUT ROWID;

-- The last quote of every market, to start with.
CREATE TABLE quote (
    source TEXT NOT NULL,
    symbol TEXT NOT NULL,
    last TEXT NOT NULL,
    bid TEXT,
    ask TEXT,
    bid_volume TEXT,
    ask_volume TEXT,
    open TEXT,                 -- of 24 hours, as all that follow
    high TEXT,
    low TEXT,
    change TEXT,
    percentage TEXT,
    base_volume TEXT,
    quote_volume TEXT,
    time INTEGER,              -- the exchange's own time, in milliseconds since 1970, UTC
    received INTEGER NOT NULL, -- when we got it
    seal INTEGER NOT NULL,
    PRIMARY KEY (source, symbol)
) STRICT, WITHOUT ROWID;
";

/// The rules of markets.
const VERSION_2: &str = "
-- What an exchange demands of orders in a market, to start with.
CREATE TABLE market (
    source TEXT NOT NULL,
    symbol TEXT NOT NULL,
    amount_places INTEGER, -- decimal places of an amount
    price_places INTEGER,
    amount_min TEXT,       -- base asset
    amount_max TEXT,
    price_min TEXT,
    price_max TEXT,
    cost_min TEXT,         -- quote asset
    cost_max TEXT,
    taker TEXT,            -- 0.001 is 0.1 %
    maker TEXT,
    seal INTEGER NOT NULL,
    PRIMARY KEY (source, symbol)
) STRICT, WITHOUT ROWID;
";

/// The views of earlier versions showed texts and times that do not compare, and left out fields of quotes.
const VERSION_3: &str = "
DROP VIEW IF EXISTS candles;
CREATE VIEW candles AS
    SELECT source, symbol, interval, time * 1000 AS time_ms,
        strftime('%Y-%m-%dT%H:%M:%SZ', time, 'unixepoch') AS time,
        CAST(open AS REAL) AS open, CAST(high AS REAL) AS high, CAST(low AS REAL) AS low,
        CAST(close AS REAL) AS close, CAST(volume AS REAL) AS volume, open AS open_text,
        high AS high_text, low AS low_text, close AS close_text, volume AS volume_text
    FROM candle JOIN series ON series.id = candle.series;

DROP VIEW IF EXISTS coverage;
CREATE VIEW coverage AS
    SELECT source, symbol, interval, first * 1000 AS first_ms, until * 1000 AS until_ms,
        strftime('%Y-%m-%dT%H:%M:%SZ', first, 'unixepoch') AS first,
        strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS until
    FROM span JOIN series ON series.id = span.series;

DROP VIEW IF EXISTS quotes;
CREATE VIEW quotes AS
    SELECT source, symbol, time AS time_ms,
        strftime('%Y-%m-%dT%H:%M:%SZ', time / 1000, 'unixepoch') AS time,
        received AS received_ms,
        strftime('%Y-%m-%dT%H:%M:%SZ', received / 1000, 'unixepoch') AS received,
        CAST(last AS REAL) AS last, CAST(bid AS REAL) AS bid, CAST(ask AS REAL) AS ask,
        CAST(bid_volume AS REAL) AS bid_volume, CAST(ask_volume AS REAL) AS ask_volume,
        CAST(open AS REAL) AS open, CAST(high AS REAL) AS high, CAST(low AS REAL) AS low,
        CAST(change AS REAL) AS change, CAST(percentage AS REAL) AS percentage,
        CAST(base_volume AS REAL) AS base_volume, CAST(quote_volume AS REAL) AS quote_volume,
        last AS last_text, bid AS bid_text, ask AS ask_text, bid_volume AS bid_volume_text,
        ask_volume AS ask_volume_text, open AS open_text, high AS high_text, low AS low_text,
        change AS change_text, percentage AS percentage_text, base_volume AS base_volume_text,
        quote_volume AS quote_volume_text
    FROM quote;
";

/// Migrates the tables from version `from` to the latest and stores that version, in one transaction.
pub(super) fn migrate(db: &Database, from: u32, migrations: &[&str]) -> Result<(), StoreError> {
    let first = usize::try_from(from).unwrap_or(usize::MAX);
    let missing = migrations.get(first..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    db.transaction(|| {
        for migration in missing {
            db.execute(migration)?;
        }
        let (version, id) = (migrations.len(), crate::history::APPLICATION_ID);
        db.execute(&format!("PRAGMA user_version = {version}; PRAGMA application_id = {id}"))
    })
}

/// The first table or view that is missing or differs, if any. Additional ones are allowed: a
/// person may have added an index or a view.
pub(super) fn missing(db: &Database) -> Result<Option<String>, StoreError> {
    let model = Database::in_memory()?;
    migrate(&model, 0, &MIGRATIONS)?;
    let found = statements(db)?;
    let wanted = statements(&model)?;
    let mut odd = wanted.into_iter().filter(|(name, sql)| found.get(name) != Some(sql));
    Ok(odd.next().map(|(name, _)| name))
}

/// The names of all tables and views, with their SQL.
fn statements(db: &Database) -> Result<BTreeMap<String, String>, StoreError> {
    let mut query = db.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let found = query.query_map((), |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    Ok(found.collect::<Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(db: &Database) -> i64 {
        db.number("PRAGMA user_version").expect("a pragma")
    }

    #[test]
    fn a_file_of_any_version_becomes_one_of_the_latest() {
        let steps = [
            "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1)",
            "ALTER TABLE a ADD COLUMN y INTEGER",
            "UPDATE a SET y = x + 1",
        ];
        for from in 0..=steps.len() {
            let db = Database::in_memory().expect("memory");
            migrate(&db, 0, &steps[..from]).expect("sound steps");
            assert_eq!(version(&db), from as i64);
            migrate(&db, from as u32, &steps).expect("sound steps");
            assert_eq!(version(&db), 3, "from {from}");
            assert_eq!(db.number("SELECT y FROM a"), Ok(2), "from {from}");
        }
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before() {
        let db = Database::in_memory().expect("memory");
        let steps =
            ["CREATE TABLE a (x INTEGER) STRICT", "CREATE TABLE b (x INTEGER) STRICT", "nonsense"];
        migrate(&db, 0, &steps[..1]).expect("a sound step");
        assert!(migrate(&db, 1, &steps).is_err());
        assert_eq!(version(&db), 1);
        assert_eq!(db.number("SELECT count(*) FROM sqlite_schema"), Ok(1));
    }
}
