//! The history file: opens, creates, checks and closes it.
//!
//! `HistoryFile` owns the connection and the number of flushes since the last checkpoint. `KnownFile` tells
//! whether the file was removed or replaced. A file that is not marketd's, is newer, or is damaged is refused
//! and left unchanged. Nothing here repairs a file. A new file gets its name only when it is complete.
//!
//! It knows nothing of candles: `tables.rs` reads and writes them.

use super::header::{
    Identity, Lock, Look, beside, damaged, identity, identity_at, log_bytes, log_of, look,
};
use super::schema::{self, MIGRATIONS};
use super::sqlite::{Database, OpenFlags};
use crate::history::{
    APPLICATION_ID, LOG_SET_ASIDE, OpenError, Opened, StoreError, Unusable, VERSION,
};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files up to this size are checked completely before they are used, which takes at most 0.2 s. For a larger
/// file this would take seconds. Its damage is noticed when a damaged page is read.
pub(super) const CHECKED_BYTES: u64 = 64 << 20;

/// Flushes between two checkpoints. A flush appends to the log and syncs it. A checkpoint copies the changed
/// pages into the file. It is cheaper if several flushes have changed the same pages.
const FLUSHES_PER_CHECKPOINT: u32 = 10;

/// The path has no symbolic links: a link that appears meanwhile is not followed.
pub(super) const WRITE: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Bytes before each page in the log (sqlite.org, "WAL File Format").
const FRAME_HEADER: u64 = 24;

/// Files that are made beside the history file: a new one, and the two copies of a prune. The next start
/// deletes what is left of them, so these are names that nobody else gives to a file.
pub(super) const DRAFTS: [&str; 3] = ["-marketd-new", "-marketd-prune", "-marketd-pruned"];

/// Most bytes of the file's path. SQLite takes 512, with its own suffix of 8. The suffix of a draft comes
/// before it; the last one is the longest.
const PATH_BYTES: usize = 512 - 8 - DRAFTS[2].len();

/// An open history file.
pub(super) struct HistoryFile {
    pub(super) db: Database,
    flushes: u32,
}

/// Which file had its name when it was opened. SQLite keeps writing to a file that was removed, and all of
/// that is lost when the process ends.
pub(super) struct KnownFile {
    path: PathBuf,
    file: Option<Identity>,
    log: Option<Identity>,
}

impl KnownFile {
    /// True if the file was removed, or replaced by another file.
    pub(super) fn has_gone(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(about) => Some(identity(&about)) != self.file,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Renames the log of the file that was removed or replaced, and is closed: SQLite would take it for the
    /// log of the next file with this name.
    pub(super) fn set_log_aside(&self) {
        if !self.path.exists() || identity_at(&log_of(&self.path)) == self.log {
            // If this fails, opening the next file reports why.
            let _ = set_log_aside(&self.path);
        }
    }
}

impl HistoryFile {
    /// Opens the file, or creates it if it does not exist. Checks it completely if it has at most
    /// `checked` bytes. `lock`: the lock of this file, if it is held already. It is held afterwards.
    pub(super) fn open(
        path: &Path,
        checked: u64,
        lock: &mut Option<Lock>,
    ) -> Result<(HistoryFile, KnownFile, Opened), OpenError> {
        at_resolved(path, |path| {
            *lock = Some(Lock::take(path, lock.take())?);
            clear_drafts(path);
            let created = look_to_write(path)?.is_none();
            let log_set_aside = created && set_log_aside(path)?;
            if created {
                create(path)?;
            }
            let look = look_to_write(path)?
                .ok_or_else(|| damaged("it was removed while it was being opened"))?;
            let (db, upgraded_from) = open_database(path, &look, checked)?;
            let bytes = db.used_bytes()?;
            let (file, log) = (identity_at(path), identity_at(&log_of(path)));
            let known = KnownFile { path: path.to_path_buf(), file, log };
            let opened = Opened { created, bytes, log_set_aside, upgraded_from };
            Ok((HistoryFile { db, flushes: 0 }, known, opened))
        })
    }

    /// Counts a flush, and makes a checkpoint when one is due.
    pub(super) fn flushed(&mut self) -> Result<(), StoreError> {
        self.flushes += 1;
        if self.flushes < FLUSHES_PER_CHECKPOINT {
            return Ok(());
        }
        // The count is reset first: after a failure, the next try comes after as many flushes.
        self.flushes = 0;
        self.db.checkpoint()
    }

    /// Empties the log and closes the file.
    pub(super) fn close(self) -> Result<(), StoreError> {
        let emptied = self.db.empty_log();
        // Closing removes the empty log. After an error it must not try another checkpoint.
        self.db.leave_log(emptied.is_err())?;
        self.db.close().and(emptied)
    }

    /// Closes a file without writing to it.
    pub(super) fn abandon(self) {
        // The connection leaves the log unchanged. An error does not matter here.
        let _ = self.db.close();
    }
}

/// Checks whether the file and its lock can be opened, without changing them. It may be in use. Only its
/// header is read.
pub fn check(path: &Path) -> Result<(), OpenError> {
    at_resolved(path, |path| {
        look_to_write(path)?;
        if beside(path, "-lock").exists() {
            Lock::file(path)?;
        }
        // Creating a file is the only way to know whether files can be created there.
        let probe = beside(path, &format!("-check-{}", std::process::id()));
        File::create_new(&probe)?;
        Ok(fs::remove_file(&probe)?)
    })
}

/// Checks the header of a file that is to be written. The file must have one name: each name would have a
/// lock and a log of its own.
pub(super) fn look_to_write(path: &Path) -> Result<Option<Look>, Unusable> {
    if fs::metadata(path).is_ok_and(|about| about.nlink() > 1) {
        return Err(Unusable::Unreachable("the file has a second name (a hard link)".to_string()));
    }
    look(path, File::options().read(true).write(true))
}

/// Renames a log that does not belong to the file of its name. Returns true if there was one.
fn set_log_aside(path: &Path) -> Result<bool, Unusable> {
    // The `-shm` file is only an index of the log.
    if_there(fs::remove_file(beside(path, "-shm")))?;
    if_there(fs::rename(log_of(path), beside(path, LOG_SET_ASIDE)))
}

/// Returns true if the operation succeeded, and false if its file does not exist.
fn if_there(done: io::Result<()>) -> Result<bool, Unusable> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

/// Calls `work` with the path without symbolic links. So the log and the lock are next to the file itself,
/// and two names of one file share one lock.
///
/// Anything but a regular file is refused before it is opened, because opening a pipe blocks.
pub(super) fn at_resolved<T>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, Unusable>,
) -> Result<T, OpenError> {
    let path = resolved(path).map_err(|error| Unusable::from(error).at(path))?;
    let done = match fs::metadata(&path) {
        _ if path.as_os_str().len() > PATH_BYTES => {
            Err(Unusable::Unreachable(format!("its path has more than {PATH_BYTES} bytes")))
        }
        Ok(about) if !about.is_file() => Err(Unusable::Foreign("not a regular file")),
        _ => work(&path),
    };
    done.map_err(|why| why.at(&path))
}

/// The path without symbolic links. The file need not exist. A link must have a target: otherwise a new file
/// would be created where a volume is not mounted.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let found = fs::canonicalize(path);
    let is_missing = matches!(&found, Err(error) if error.kind() == ErrorKind::NotFound);
    if !is_missing || path.is_symlink() {
        return found;
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match (fs::canonicalize(parent), path.file_name()) {
        (Ok(parent), Some(name)) => Ok(parent.join(name)),
        _ => found,
    }
}

/// Removes the drafts of a process that was killed. The lock must be held. A draft that cannot be removed is
/// an error only for the next one that makes it.
pub(super) fn clear_drafts(path: &Path) {
    for draft in DRAFTS.map(|suffix| beside(path, suffix)) {
        for name in [&draft, &log_of(&draft), &beside(&draft, "-journal")] {
            let _ = fs::remove_file(name);
        }
    }
}

/// Creates the file under another name and renames it when it is complete, so that a crash leaves
/// no file that looks damaged.
fn create(path: &Path) -> Result<(), Unusable> {
    let [draft, ..] = DRAFTS.map(|suffix| beside(path, suffix));
    let db = Database::open(&draft, WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    schema::migrate(&db, 0, &MIGRATIONS)?;
    db.execute("PRAGMA journal_mode = WAL")?;
    db.leave_log(false)?;
    db.close()?;
    // A person may have created an empty file to set its mode. The mode is kept.
    if let Ok(about) = fs::metadata(path) {
        fs::set_permissions(&draft, about.permissions())?;
    }
    fs::rename(&draft, path)?;
    // SQLite has synced the content. The directory must be synced too, or the name may be lost.
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

fn open_database(
    path: &Path,
    look: &Look,
    checked: u64,
) -> Result<(Database, Option<u32>), Unusable> {
    let db = Database::open(path, WRITE)?;
    match make_ready(&db, path, look.page, checked) {
        Ok(upgraded_from) => Ok((db, upgraded_from)),
        Err(error) => {
            if look.log == 0 {
                // There was no log before: closing removes the empty one.
                let _ = db.leave_log(false);
            }
            let _ = db.close();
            Err(error)
        }
    }
}

/// Checks and upgrades the database. Returns the former version of its tables, if they were
/// upgraded.
fn make_ready(
    db: &Database,
    path: &Path,
    page: u64,
    checked: u64,
) -> Result<Option<u32>, Unusable> {
    check_content(db, path, page, checked)?;
    if db.text("PRAGMA journal_mode")? != "wal" {
        db.execute("PRAGMA journal_mode = WAL")?;
    }
    let before = version(db)?;
    schema::migrate(db, before, &MIGRATIONS)?;
    match schema::missing(db)? {
        Some(name) => Err(damaged(&format!("its table or view {name} is not as it was made"))),
        None => Ok((before < VERSION).then_some(before)),
    }
}

/// Checks that the file is marketd's and complete, including its log. Checks all of its content if it has at
/// most `checked` bytes.
pub(super) fn check_content(
    db: &Database,
    path: &Path,
    page: u64,
    checked: u64,
) -> Result<(), Unusable> {
    let id = db.number("PRAGMA application_id")?;
    let version = version(db)?;
    if version > VERSION {
        return Err(Unusable::Newer(version));
    }
    if id != i64::from(APPLICATION_ID) || version == 0 {
        return Err(damaged("its header and its log do not belong together"));
    }
    // Every page is in the file or in the log. A marketd that writes moves pages from the log into the file,
    // so the sizes are read after the number of pages, and the size of the log first.
    let pages = db.bytes()?;
    let (log, bytes) = (log_bytes(path), fs::metadata(path)?.len());
    if pages > bytes + log / (page + FRAME_HEADER) * page {
        return Err(damaged(&format!("it is cut off after {bytes} bytes")));
    }
    if bytes + log <= checked {
        let found = db.text("PRAGMA quick_check(1)")?;
        if found != "ok" {
            return Err(damaged(&found));
        }
    }
    Ok(())
}

fn version(db: &Database) -> Result<u32, StoreError> {
    let version = db.number("PRAGMA user_version")?;
    // No marketd writes a negative version: it counts as newer.
    Ok(u32::try_from(version).unwrap_or(u32::MAX))
}
