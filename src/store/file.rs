//! The history file: how it is found good, made, kept, and closed.
//!
//! Owns the lock, the connection, what tells the file from another one of its name, and the count of
//! flushes since the log was last moved into the file. What is not ours, newer, or not whole is
//! refused as it is: nothing here rebuilds a file, and a file appears under its name only once it is
//! complete.
//!
//! It knows nothing of candles; what is written and read is `write.rs`'s and `read.rs`'s.

use super::header::{Look, beside, damaged, failed, foreign, log_of, look};
use super::lock::Lock;
use super::schema::{self, MIGRATIONS};
use super::sqlite::{Checkpoint, Database};
use super::write::Known;
use crate::history::Opened;
use crate::history::{APPLICATION_ID, LOG_SET_ASIDE, VERSION};
use crate::history::{OpenError, StoreError};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files up to this size are checked whole before they are used, some 0.2 s at the most. Above it,
/// a start would take seconds, and only what is read at a start is checked by being read; damage
/// elsewhere is noticed when it is met.
const CHECKED_BYTES: u64 = 64 << 20;

/// Flushes after which the log is moved into the file. A flush appends to the log and syncs it; a
/// move reads the log and writes the file, and is cheaper the more flushes share a page.
const FLUSHES_PER_CHECKPOINT: u32 = 10;

/// Frames of a log begin with 24 bytes, the log itself with 32 (sqlite.org, "WAL File Format").
const FRAME_HEADER: u64 = 24;

/// How closely a file is looked at before it is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Whole where that is quickly done.
    Usual,
    /// Whole, however long it takes: there is reason to doubt it.
    Thorough,
}

/// See the module's page.
pub(super) struct HistoryFile {
    pub(super) db: Database,
    /// Series that were met.
    pub(super) known: Known,
    flushes: u32,
    path: PathBuf,
    /// The file, and its log. SQLite goes on with a file that has lost its name, and all that it
    /// writes is lost with the process.
    identity: Option<Identity>,
    log: Option<Identity>,
    lock: Lock,
}

/// Device and inode: no other file has both while this one is open.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    /// Of what has this name now. Looking at the name takes a microsecond; to open the file would
    /// give up SQLite's locks when it is closed again.
    fn of(path: &Path) -> Option<Identity> {
        let about = fs::metadata(path).ok()?;
        Some(Identity(about.dev(), about.ino()))
    }
}

impl HistoryFile {
    /// Opens the file of this name, or makes it.
    pub(super) fn open(path: &Path, care: Care) -> Result<(HistoryFile, Opened), OpenError> {
        let path = resolved(path)?;
        let lock = Lock::take(&path)?;
        let created = look(&path)?.is_none();
        let log_set_aside = created && set_log_aside(&path)?;
        if created {
            create(&path)?;
        }
        let Some(look) = look(&path)? else {
            return Err(damaged(&path, "it has gone while it was being opened"));
        };
        let db = open_database(&path, &look, care)?;
        let bytes = db.bytes().map_err(|error| unopened(&path, error))?;
        let file = HistoryFile {
            db,
            known: Known::default(),
            flushes: 0,
            identity: Identity::of(&path),
            log: Identity::of(&log_of(&path)),
            path,
            lock,
        };
        let opened = Opened {
            created,
            bytes,
            log_set_aside,
        };
        Ok((file, opened))
    }

    /// Counts a flush, and moves the log into the file when it is time to.
    pub(super) fn flushed(&mut self) -> Result<(), StoreError> {
        self.flushes += 1;
        match self.flushes >= FLUSHES_PER_CHECKPOINT {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Moves the log into the file, as far as no reader is in the way.
    fn checkpoint(&mut self) -> Result<(), StoreError> {
        // Also when it fails: the next ten flushes will try again, and none of them waits for it.
        self.flushes = 0;
        self.db.checkpoint(Checkpoint::Passive)
    }

    /// True if the file's name stands for nothing any more, or for another file.
    pub(super) fn has_gone(&self) -> bool {
        Identity::of(&self.path) != self.identity
    }

    /// Lets go of a file that has gone. Its log is set aside: it belongs to no file of this name, and
    /// would be taken for the log of the next one.
    pub(super) fn clear_away(self) {
        let log = log_of(&self.path);
        let is_ours = !self.path.exists() || Identity::of(&log) == self.log;
        let path = self.path.clone();
        // The lock is held to the end of this.
        let _lock = self.abandon();
        if is_ours {
            // Where that fails, opening the next file says why.
            let _ = set_log_aside(&path);
        }
    }

    /// Empties the log and closes the file.
    pub(super) fn close(self) -> Result<(), StoreError> {
        if self.has_gone() {
            self.clear_away();
            let text = "it was removed or replaced, and what was in it is lost";
            return Err(StoreError::Io(text.to_string()));
        }
        let emptied = self.db.checkpoint(Checkpoint::Truncate);
        // Closing then only removes the empty log; after an error it must not try once more.
        self.db.leave_log(emptied.is_err())?;
        self.db.close().and(emptied)
    }

    /// Lets go of a file that must not be written to any more.
    pub(super) fn abandon(self) -> Lock {
        // The connection was set up to leave the log alone; nothing that fails now is news.
        let _ = self.db.close();
        self.lock
    }
}

/// Tells what keeps the file of this name from being opened, as far as that is seen without changing
/// anything. It may be in use, and its content is not read.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let path = resolved(path)?;
    look(&path)?;
    // The only way to know whether files can be made there.
    let probe = beside(&path, &format!("-check-{}", std::process::id()));
    File::create_new(&probe)
        .and_then(|_| fs::remove_file(&probe))
        .map_err(|error| failed(&path, &error))
}

/// Renames a log that has no file, if there is one.
fn set_log_aside(path: &Path) -> Result<bool, OpenError> {
    let is_missing = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    // It is no more than an index of the log.
    match fs::remove_file(beside(path, "-shm")) {
        Err(error) if !is_missing(&error) => return Err(failed(path, &error)),
        _ => {}
    }
    match fs::rename(log_of(path), beside(path, LOG_SET_ASIDE)) {
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(failed(path, &error)),
        Ok(()) => Ok(true),
    }
}

/// The path without symbolic links: its neighbours are found beside the file itself, whatever
/// name led to it, and two names of one file have one lock.
///
/// What is no file is refused here, before anything is opened: opening a pipe waits for its other end.
fn resolved(path: &Path) -> Result<PathBuf, OpenError> {
    match fs::canonicalize(path) {
        Ok(path) => match fs::metadata(&path) {
            Ok(about) if !about.is_file() => Err(foreign(&path, "not a regular file")),
            _ => Ok(path),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let (Ok(parent), Some(name)) = (fs::canonicalize(parent), path.file_name()) else {
                return Err(failed(path, &error));
            };
            Ok(parent.join(name))
        }
        Err(error) => Err(failed(path, &error)),
    }
}

/// Makes the file under another name and gives it its own when it is whole: a crash on the way
/// leaves nothing that could be taken for a damaged history.
fn create(path: &Path) -> Result<(), OpenError> {
    let draft = beside(path, "-new");
    for name in [&draft, &log_of(&draft), &beside(&draft, "-journal")] {
        match fs::remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path, &error)),
            _ => {}
        }
    }
    let made = Database::create(&draft).and_then(|db| {
        schema::migrate(&db, 0, &MIGRATIONS)?;
        db.execute("PRAGMA journal_mode = WAL")?;
        db.leave_log(false)?;
        db.close()
    });
    made.map_err(|error| unopened(path, error))?;
    // An empty file may have been made for its owner and its mode: the mode is kept.
    if let Ok(about) = fs::metadata(path) {
        fs::set_permissions(&draft, about.permissions()).map_err(|error| failed(path, &error))?;
    }
    // SQLite has synced its content; the name has to be as safe as that.
    fs::rename(&draft, path)
        .and_then(|()| match path.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        })
        .map_err(|error| failed(path, &error))
}

fn open_database(path: &Path, look: &Look, care: Care) -> Result<Database, OpenError> {
    let db = Database::open(path).map_err(|error| unopened(path, error))?;
    let unopened = |error| unopened(path, error);
    let checked = check_content(&db, path, look, care);
    let made_ready = checked.and_then(|()| {
        if db.text("PRAGMA journal_mode").map_err(unopened)? != "wal" {
            db.execute("PRAGMA journal_mode = WAL").map_err(unopened)?;
        }
        schema::migrate(&db, version(&db).map_err(unopened)?, &MIGRATIONS).map_err(unopened)?;
        match schema::missing(&db).map_err(unopened)? {
            Some(name) => Err(damaged(
                path,
                &format!("its table or view {name} is not as it was made"),
            )),
            None => Ok(()),
        }
    });
    if let Err(error) = made_ready {
        if look.log == 0 {
            // Nothing to lose: closing takes away the empty log that opening has made.
            let _ = db.leave_log(false);
        }
        let _ = db.close();
        return Err(error);
    }
    Ok(db)
}

/// Whether the file is ours and whole, its log taken into account.
fn check_content(db: &Database, path: &Path, look: &Look, care: Care) -> Result<(), OpenError> {
    let unopened = |error| unopened(path, error);
    let id = db.number("PRAGMA application_id").map_err(unopened)?;
    let version = version(db).map_err(unopened)?;
    if version > VERSION {
        return Err(OpenError::Newer {
            path: path.to_path_buf(),
            found: version,
            known: VERSION,
        });
    }
    if id != i64::from(APPLICATION_ID) || version == 0 {
        return Err(damaged(
            path,
            "its header and its log do not belong together",
        ));
    }
    // Every page is in the file or in the log.
    let bytes = db.bytes().map_err(unopened)?;
    let in_log = look.log / (look.page + FRAME_HEADER) * look.page;
    if bytes > look.bytes + in_log {
        return Err(damaged(
            path,
            &format!("it is cut off after {} bytes", look.bytes),
        ));
    }
    if care == Care::Thorough || look.bytes + look.log <= CHECKED_BYTES {
        let found = db.text("PRAGMA quick_check(1)").map_err(unopened)?;
        if found != "ok" {
            return Err(damaged(path, &found));
        }
    }
    Ok(())
}

fn version(db: &Database) -> Result<u32, StoreError> {
    let version = db.number("PRAGMA user_version")?;
    // A negative one is none of ours, and none that anything is known of.
    Ok(u32::try_from(version).unwrap_or(u32::MAX))
}

/// What a failure means while the file is being opened.
fn unopened(path: &Path, error: StoreError) -> OpenError {
    let path = path.to_path_buf();
    match error {
        StoreError::Damaged(what) => OpenError::Damaged { path, what },
        StoreError::ReadOnly(reason) => OpenError::Unreachable { path, reason },
        error => OpenError::Io { path, error },
    }
}
