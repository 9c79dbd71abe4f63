//! The part of SQLite that the store uses: a connection, statements, transactions, checkpoints.
//!
//! `Database` owns the connection and its settings. This is the only file that names `rusqlite`. It knows
//! nothing of candles, and never waits longer than [`BUSY`] for another program.

use super::header::beside;
use crate::decimal::Decimal;
use crate::history::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
pub(super) use rusqlite::{OpenFlags, OptionalExtension, Result, Row, params_from_iter};
pub(super) use rusqlite::{types::Value, types::ValueRef};
use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The first SQLite in which resetting the write-ahead log cannot corrupt the file
/// (sqlite.org, release log of 3.51.3).
const SOUND_SQLITE: i32 = 3_051_003;
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= SOUND_SQLITE);

/// How long a write waits for another program that writes to the file, such as the `sqlite3` shell.
/// It is short, because later jobs wait too, and the batch is retried anyway.
const BUSY: Duration = Duration::from_millis(100);

/// Statements that stay prepared: all statements of a batch, a read and a load.
const STATEMENTS: usize = 32;

/// The settings of a connection. Every commit is on disk when it returns (FULL), and there are no automatic
/// checkpoints. The file is not mapped into memory: with a mapped file, a failing disk would kill the process
/// by a signal. `cell_size_check` finds more damage before a page is used. The log is truncated to 16 MiB
/// when it restarts, because a long read or a large backfill may have let it grow.
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
pub(super) struct Database(Connection);

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Database {
    /// A database in memory.
    pub(super) fn in_memory() -> Result<Database, StoreError> {
        Ok(Database(Connection::open_in_memory()?))
    }

    /// Opens a file, which other programs may be using.
    pub(super) fn open(path: &Path, flags: OpenFlags) -> Result<Database, StoreError> {
        if rusqlite::version_number() < SOUND_SQLITE {
            let version = rusqlite::version();
            return Err(StoreError::Internal(format!(
                "linked with SQLite {version}, but 3.51.3 or later is needed"
            )));
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Database(Connection::open_with_flags(path, flags)?);
        // This setting comes first: closing after an error must not remove a log that was never
        // read.
        database.leave_log(true)?;
        database.busy_timeout(BUSY)?;
        database.set_prepared_statement_cache_capacity(STATEMENTS);
        database.execute(SETTINGS)?;
        Ok(database)
    }

    /// Opens a file that has no log for reading, without writing to its directory. It takes no locks, and
    /// does not see later writes of other programs.
    pub(super) fn open_unlocked(path: &Path) -> Result<Database, StoreError> {
        let mut uri = b"file:".to_vec();
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02X}").bytes()),
                byte => uri.push(*byte),
            }
        }
        uri.extend(b"?immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Database::open(Path::new(OsStr::from_bytes(&uri)), flags)
    }

    /// Writes a copy without unused pages to a file that does not exist. After a failure, this removes the
    /// journal that SQLite left beside that file; the caller removes the file.
    pub(super) fn copy_into(&self, path: &Path) -> Result<(), StoreError> {
        // SQLite takes a name that begins with `file:` for a URI.
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let name = path.to_str();
        let name = name.ok_or_else(|| StoreError::Internal("its name is not UTF-8".to_string()))?;
        let copied = self.0.execute("VACUUM INTO ?1", [name]);
        if copied.is_err() {
            let _ = fs::remove_file(beside(path, "-journal"));
        }
        copied?;
        Ok(())
    }

    /// Replaces all content by the content of another file, in one transaction.
    pub(super) fn replace_by(&mut self, path: &Path) -> Result<(), StoreError> {
        let from = Database::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match Backup::new(&from, &mut self.0)?.step(-1)? {
            StepResult::Done => Ok(()),
            _ => Err(StoreError::Busy("another program uses it".to_string())),
        }
    }

    /// Sets whether closing leaves the log as it is, which is the setting after [`Database::open`]. Otherwise
    /// the last connection to close moves the log into the file and removes it.
    pub(super) fn leave_log(&self, leave: bool) -> Result<(), StoreError> {
        self.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave)?;
        Ok(())
    }

    /// Runs statements that return no rows.
    pub(super) fn execute(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.execute_batch(sql)?)
    }

    /// The number in the first column of the first row.
    pub(super) fn number(&self, sql: &str) -> Result<i64, StoreError> {
        Ok(self.query_row(sql, (), |row| row.get(0))?)
    }

    /// The text in the first column of the first row.
    pub(super) fn text(&self, sql: &str) -> Result<String, StoreError> {
        Ok(self.query_row(sql, (), |row| text(row, 0))?)
    }

    /// Runs `work` in a transaction: either all its changes are on disk afterwards, or none.
    pub(super) fn transaction<T>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A transaction that is dropped is rolled back. If the rollback fails too, the connection stays in
        // the transaction.
        let transaction = Transaction::new_unchecked(self, TransactionBehavior::Immediate)?;
        let value = work()?;
        transaction.commit()?;
        Ok(value)
    }

    /// Moves the log into the file, as far as readers allow.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.number("PRAGMA wal_checkpoint(PASSIVE)").map(|_| ())
    }

    /// Moves all of the log into the file, and empties it.
    pub(super) fn empty_log(&self) -> Result<(), StoreError> {
        match self.number("PRAGMA wal_checkpoint(TRUNCATE)")? {
            0 => Ok(()),
            _ => Err(StoreError::Busy("the log is being read".to_string())),
        }
    }

    /// Size of the file in bytes, including pages that are still in the log.
    pub(super) fn bytes(&self) -> Result<u64, StoreError> {
        let pages = self.number("PRAGMA page_count")?;
        let size = self.number("PRAGMA page_size")?;
        Ok((pages * size).unsigned_abs())
    }

    /// Used bytes of the file, including pages that are still in the log. Free pages do not count: SQLite
    /// reuses them before the file grows.
    pub(super) fn used_bytes(&self) -> Result<u64, StoreError> {
        let free = self.number("PRAGMA freelist_count")?;
        let size = self.number("PRAGMA page_size")?;
        Ok(self.bytes()?.saturating_sub((free * size).unsigned_abs()))
    }

    pub(super) fn close(self) -> Result<(), StoreError> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}

/// A text, which may not be UTF-8 in a damaged file.
pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

/// Decimals are stored as their texts.
impl From<&Decimal> for Value {
    fn from(decimal: &Decimal) -> Value {
        Value::Text(decimal.to_string())
    }
}

impl FromSql for Decimal {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Decimal> {
        Decimal::parse(value.as_str()?.as_bytes()).map_err(|_| FromSqlError::InvalidType)
    }
}

/// The meaning of an error of SQLite.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use ErrorCode::*;
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(DiskFull) => StoreError::Full(text),
            Some(ReadOnly | PermissionDenied) => StoreError::ReadOnly(text),
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => {
                StoreError::Busy(text)
            }
            Some(SystemIoFailure | CannotOpen | OutOfMemory) => StoreError::Io(text),
            Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged(text),
            _ => StoreError::Internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(db.is_autocommit());
        assert_eq!(db.number("SELECT count(*) FROM t"), Ok(1));
    }
}
