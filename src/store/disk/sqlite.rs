//! The part of SQLite that the store uses: a connection, statements, transactions, checkpoints.
//!
//! Owns the connection and its settings. This is the only file that names `rusqlite`. It knows
//! nothing of candles, and never waits longer than [`BUSY`] for another program.

use crate::decimal::Decimal;
use crate::history::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use std::path::Path;
use std::time::Duration;

/// The first SQLite in which resetting the write-ahead log cannot corrupt the file
/// (sqlite.org, release log of 3.51.3).
const SOUND_SQLITE: i32 = 3_051_003;
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= SOUND_SQLITE);

/// How long a write waits for another program that writes to the file, such as the `sqlite3` shell.
/// It is short because later jobs wait as well, and the batch is retried anyway.
const BUSY: Duration = Duration::from_millis(100);

/// Every commit is on disk when it returns (FULL), and there are no automatic checkpoints. The file
/// is not mapped into memory: then a failing disk would kill the process by a signal.
/// `cell_size_check` finds more damage before a page is used. The log is truncated to 16 MiB when it
/// restarts, because a long read or a large backfill may have let it grow.
const SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA mmap_size = 0;
    PRAGMA cache_size = -1024;
    PRAGMA temp_store = MEMORY;
    PRAGMA cell_size_check = ON;
    PRAGMA trusted_schema = OFF;
";

/// The version of SQLite that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// A connection to a database.
pub(super) struct Database {
    conn: Connection,
}

/// A prepared statement.
pub(super) struct Statement<'a>(rusqlite::Statement<'a>);

/// The rows that a query returns.
pub(super) struct Found<'a>(rusqlite::Rows<'a>);

/// One row of a query.
pub(super) struct Row<'a>(&'a rusqlite::Row<'a>);

/// A value that is bound to a statement.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    /// UTF-8.
    Text(&'a [u8]),
    /// Stored as its text.
    Decimal(&'a Decimal),
}

/// How much of the log a checkpoint moves into the file.
#[derive(Clone, Copy)]
pub(super) enum Checkpoint {
    /// As much as no reader prevents.
    Passive,
    /// All of it. Then the log is emptied.
    Truncate,
}

impl Database {
    /// Opens a file that exists, to read and write.
    pub(super) fn open(path: &Path) -> Result<Database, StoreError> {
        Database::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Creates a file.
    pub(super) fn create(path: &Path) -> Result<Database, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Database::connect(path, flags)
    }

    /// Opens a file that exists, to read alone. Others may be writing to it.
    pub(super) fn open_to_read(path: &Path) -> Result<Database, StoreError> {
        Database::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    /// A database in memory.
    pub(super) fn in_memory() -> Result<Database, StoreError> {
        let conn = Connection::open_in_memory().map_err(store_error)?;
        Ok(Database { conn })
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Database, StoreError> {
        if rusqlite::version_number() < SOUND_SQLITE {
            let version = rusqlite::version();
            return Err(StoreError::Internal(format!(
                "linked with SQLite {version}, but 3.51.3 or later is needed"
            )));
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(store_error)?;
        let database = Database { conn };
        // This comes first: closing after an error must not remove a log that was never read.
        database.leave_log(true)?;
        database.conn.busy_timeout(BUSY).map_err(store_error)?;
        database.execute(SETTINGS)?;
        Ok(database)
    }

    /// Sets whether closing leaves the log as it is, which is the default. Otherwise the last
    /// connection to close moves the log into the file and removes it.
    pub(super) fn leave_log(&self, leave: bool) -> Result<(), StoreError> {
        let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        self.conn.set_db_config(option, leave).map_err(store_error)?;
        Ok(())
    }

    /// Runs statements that return no rows.
    pub(super) fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.conn.execute_batch(sql).map_err(store_error)
    }

    /// Prepares one statement.
    pub(super) fn prepare(&self, sql: &str) -> Result<Statement<'_>, StoreError> {
        self.conn.prepare(sql).map(Statement).map_err(store_error)
    }

    /// The number in the first column of the first row; 0 if there is none.
    pub(super) fn number(&self, sql: &str) -> Result<i64, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut found = statement.query(&[])?;
        Ok(found.next()?.and_then(|row| row.int(0)).unwrap_or(0))
    }

    /// The text in the first column of the first row; empty if there is none.
    pub(super) fn text(&self, sql: &str) -> Result<String, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut found = statement.query(&[])?;
        let row = found.next()?;
        let text = row.as_ref().and_then(|row| row.text(0)).unwrap_or(b"");
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Runs `work` in a transaction: either all its changes are on disk afterwards, or none.
    pub(super) fn transaction<T>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.execute("BEGIN IMMEDIATE")?;
        let done = work().and_then(|value| self.execute("COMMIT").map(|()| value));
        if done.is_err() && !self.is_idle() {
            // Some errors have rolled back already. If this fails, `is_idle` stays false.
            let _ = self.execute("ROLLBACK");
        }
        done
    }

    /// True if no transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// Moves the log into the file.
    pub(super) fn checkpoint(&self, how: Checkpoint) -> Result<(), StoreError> {
        let busy = match how {
            Checkpoint::Passive => self.number("PRAGMA wal_checkpoint(PASSIVE)")?,
            Checkpoint::Truncate => self.number("PRAGMA wal_checkpoint(TRUNCATE)")?,
        };
        match how {
            Checkpoint::Truncate if busy != 0 => {
                Err(StoreError::Busy("the log is being read".to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Size of the file in bytes, including what is still in the log.
    pub(super) fn bytes(&self) -> Result<u64, StoreError> {
        let pages = self.number("PRAGMA page_count")?;
        let size = self.number("PRAGMA page_size")?;
        Ok((pages * size).unsigned_abs())
    }

    /// Closes the connection.
    pub(super) fn close(self) -> Result<(), StoreError> {
        self.conn.close().map_err(|(_, error)| store_error(error))
    }
}

impl Statement<'_> {
    /// Runs the statement. Returns the number of rows that it changed.
    pub(super) fn run(&mut self, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let changed = self.0.execute(params_from_iter(values));
        let changed = changed.map_err(store_error)?;
        Ok(changed as u64)
    }

    /// Runs the statement as a query.
    pub(super) fn query(&mut self, values: &[Value<'_>]) -> Result<Found<'_>, StoreError> {
        self.0.query(params_from_iter(values)).map(Found).map_err(store_error)
    }
}

impl Found<'_> {
    /// The next row, which is valid until the next call.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        Ok(self.0.next().map_err(store_error)?.map(Row))
    }
}

impl Row<'_> {
    /// A whole number; `None` for anything else.
    pub(super) fn int(&self, column: usize) -> Option<i64> {
        match self.0.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// A text, which may not be UTF-8 in a damaged file; `None` for anything else.
    pub(super) fn text(&self, column: usize) -> Option<&[u8]> {
        match self.0.get_ref(column) {
            Ok(ValueRef::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The number of columns.
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().column_count()
    }

    /// A value of a type that the store writes; `None` for any other.
    pub(super) fn value(&self, column: usize) -> Option<Value<'_>> {
        match self.0.get_ref(column) {
            Ok(ValueRef::Null) => Some(Value::Null),
            Ok(ValueRef::Integer(number)) => Some(Value::Int(number)),
            Ok(ValueRef::Text(text)) => Some(Value::Text(text)),
            _ => None,
        }
    }

    /// True if this column is NULL.
    pub(super) fn is_null(&self, column: usize) -> bool {
        matches!(self.0.get_ref(column), Ok(ValueRef::Null))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text),
            Value::Decimal(decimal) => return Ok(decimal.to_string().into()),
        }))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text.as_bytes())
    }
}

impl<'a> From<&'a Decimal> for Value<'a> {
    fn from(decimal: &'a Decimal) -> Self {
        Value::Decimal(decimal)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, T::into)
    }
}

/// The meaning of an error of SQLite.
fn store_error(error: rusqlite::Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly(text),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreError::Busy(text),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::OutOfMemory) => {
            StoreError::Io(text)
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(text),
        _ => StoreError::Internal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linked_sqlite_is_a_sound_one() {
        assert!(rusqlite::version_number() >= SOUND_SQLITE);
    }

    #[test]
    fn a_transaction_is_done_whole_or_not_at_all() {
        let db = Database::in_memory().expect("memory");
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT").expect("a table");
        let done = db.transaction(|| db.execute("INSERT INTO t VALUES (1)"));
        assert_eq!(done, Ok(()));
        let failed = db.transaction(|| {
            db.execute("INSERT INTO t VALUES (2)")?;
            db.execute("INSERT INTO t VALUES (1)")
        });
        assert!(matches!(failed, Err(StoreError::Internal(_))), "{failed:?}");
        assert!(db.is_idle());
        assert_eq!(db.number("SELECT count(*) FROM t"), Ok(1));
    }

    #[test]
    fn a_value_of_another_type_is_none() {
        let db = Database::in_memory().expect("memory");
        let mut statement = db.prepare("SELECT 1, 'x', NULL, 1.5, x'00'").expect("sql");
        let mut found = statement.query(&[]).expect("a query");
        let row = found.next().expect("a step").expect("a row");
        let ints: Vec<_> = (0..5).map(|column| row.int(column)).collect();
        let texts: Vec<_> = (0..5).map(|column| row.text(column)).collect();
        assert_eq!(ints, [Some(1), None, None, None, None]);
        assert_eq!(texts, [None, Some(&b"x"[..]), None, None, None]);
        assert!(row.is_null(2) && !row.is_null(0));
    }
}
