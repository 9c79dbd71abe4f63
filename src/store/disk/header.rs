//! Checks the file's header and size before SQLite opens it, and locks the file.
//!
//! The check tells whether the file is marketd's, whether its version is known, and whether it is complete.
//! It comes first because SQLite may write to a file that has a log as soon as it opens it.
//!
//! The check never writes.

use crate::history::{APPLICATION_ID, StoreError, Unusable, VERSION};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt::Display;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Length of the header (sqlite.org, "Database File Format", 1.3).
const HEADER: usize = 100;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The facts of a file with the header of a history file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Size of a page in bytes.
    pub(super) page: u64,
    /// Size of its log in bytes; 0 if there is none, as after an orderly stop.
    pub(super) log: u64,
}

/// Checks the file, which is opened with these options. `None` if it does not exist or is empty: SQLite takes
/// an empty file for a new one. It is an error if the options ask for writing and the file cannot be written:
/// SQLite would open it and fail at the first write.
pub(super) fn look(path: &Path, options: &OpenOptions) -> Result<Option<Look>, Unusable> {
    let log = log_bytes(path);
    let file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(None);
    }
    let mut header = Vec::with_capacity(HEADER);
    (&file).take(HEADER as u64).read_to_end(&mut header)?;
    judge(&header, bytes, log).map(Some)
}

/// The path of a file's log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Size of a file's log in bytes; 0 if there is none.
pub(super) fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(log_of(path)).map_or(0, |log| log.len())
}

/// What tells a file from all others, removed ones too: its device, its inode, and when it was created. A new
/// file may get the inode of a removed one.
pub(super) type Identity = (u64, u64, Option<SystemTime>);

/// The identity of a file.
pub(super) fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino(), about.created().ok())
}

/// The identity of the file that has this name now. This function must not open the file: closing it would
/// drop SQLite's locks.
pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|about| identity(&about))
}

/// The path with a suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

fn judge(header: &[u8], bytes: u64, log: u64) -> Result<Look, Unusable> {
    let known = header.len().min(MAGIC.len());
    if header[..known] != MAGIC[..known] {
        return Err(Unusable::Foreign("not an SQLite file"));
    }
    let Some(header) = header.first_chunk::<HEADER>() else {
        return Err(damaged("it is cut off within its first hundred bytes"));
    };
    let word = |at: usize| {
        let bytes = header[at..at + 4].try_into().expect("four bytes of a longer header");
        u32::from_be_bytes(bytes)
    };
    if word(68) != APPLICATION_ID {
        return Err(Unusable::Foreign("an SQLite file of something else"));
    }
    let version = word(60);
    if version > VERSION {
        return Err(Unusable::Newer(version));
    }
    // 1 stands for 65536 ("Page Size").
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        size if size.is_power_of_two() && size >= 512 => size,
        size => return Err(damaged(&format!("its header says pages of {size} bytes"))),
    };
    if version == 0 {
        return Err(damaged("its header lacks the version of its tables"));
    }
    // The size in the header is valid only if both change counters are equal ("In-header database
    // size"). Missing pages may still be in the log.
    let pages = u64::from(word(28));
    let counts = word(24) == word(92) && pages > 0;
    let missing = (pages * page).saturating_sub(bytes);
    if log == 0 && (!bytes.is_multiple_of(page) || (counts && missing > 0)) {
        return Err(damaged(&format!("it is cut off after {bytes} bytes")));
    }
    Ok(Look { page, log })
}

/// The meaning of an I/O error: a person must correct a wrong path; other errors may go away.
impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Unusable {
        let reason = error.to_string();
        match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidFilename
            | ErrorKind::Unsupported => Unusable::Unreachable(reason),
            _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => Unusable::Unreachable(reason),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Unusable::Io(StoreError::Full(reason))
            }
            _ => Unusable::Io(StoreError::Io(reason)),
        }
    }
}

/// The meaning of an error while the file is being opened.
impl From<StoreError> for Unusable {
    fn from(error: StoreError) -> Unusable {
        match error {
            StoreError::Damaged(what) => Unusable::Damaged(what),
            StoreError::ReadOnly(reason) => Unusable::Unreachable(reason),
            error => Unusable::Io(error),
        }
    }
}

/// The error of a damaged file. Joins the lines of SQLite's message into one, for the log.
pub(super) fn damaged(what: &str) -> Unusable {
    let lines: Vec<&str> = what.lines().map(str::trim).collect();
    Unusable::Damaged(lines.join(" "))
}

/// The lock that keeps two marketd processes from using the same file, held until it is dropped.
///
/// It is on a file of its own next to the history file. It is held while the history file is in use, also
/// while it is closed for another try, and contains the holder's process id. SQLite's own locks are not used
/// for this, so other programs may read the history at the same time.
///
/// The lock file is never removed: if it were, two processes could hold locks on two files of the same name.
/// The kernel releases the lock when the process ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Opens the file of the lock, or creates it. It must be a file with this name alone: root changes its
    /// owner and its content, and the directory may belong to another user.
    pub(super) fn file(path: &Path) -> Result<File, Unusable> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let name = beside(path, "-lock");
        // The report also names the lock file, because the history file may be good.
        let text = |error: &dyn Display| format!("{}: {error}", name.display());
        let opened = options.open(&name).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Ok((about, file)) if about.is_file() && about.nlink() == 1 => Ok(file),
            Err(error) if !name.is_symlink() => {
                Err(io::Error::new(error.kind(), text(&error)).into())
            }
            _ => Err(Unusable::Unreachable(text(&"not a regular file with one name"))),
        }
    }

    /// True if this is the lock of the history file at this path.
    fn is_at(&self, path: &Path) -> bool {
        let own = self.0.metadata().ok().map(|about| identity(&about));
        own.is_some() && own == identity_at(&beside(path, "-lock"))
    }

    /// Takes the lock of the history file at this path, unless `held` is this lock.
    pub(super) fn take(path: &Path, held: Option<Lock>) -> Result<Lock, Unusable> {
        if let Some(lock) = held.filter(|lock| lock.is_at(path)) {
            return Ok(lock);
        }
        let mut file = Lock::file(path)?;
        // A lock file that root creates would keep the owner of the history file from locking. Other users
        // cannot change the owner, and need not.
        if let Ok(about) = std::fs::metadata(path) {
            let _ = fchown(&file, Some(about.uid()), Some(about.gid()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let by = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(Unusable::InUse(by));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // An error only means that the message of another process cannot name this one.
        let _ = (file.set_len(0)).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread starts a process: between fork and
        // exec, the new process has a copy of the file, and the lock with it.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        let mut header = vec![0; HEADER];
        header[..16].copy_from_slice(MAGIC);
        header[16..18].copy_from_slice(&4096u16.to_be_bytes());
        header[28..32].copy_from_slice(&3u32.to_be_bytes());
        header[60..64].copy_from_slice(&VERSION.to_be_bytes());
        header[68..72].copy_from_slice(&APPLICATION_ID.to_be_bytes());
        header
    }

    fn check(header: &[u8], bytes: u64, log: u64, expected: &str) {
        let judged = match judge(header, bytes, log) {
            Ok(_) => "ours".to_string(),
            Err(Unusable::Newer(found)) => format!("newer {found}"),
            Err(Unusable::Foreign(what)) => what.to_string(),
            Err(Unusable::Damaged(what)) => what,
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(judged, expected);
    }

    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut header = header();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header
    }

    #[test]
    fn a_file_is_ours_or_it_is_said_why_not() {
        let whole = 3 * 4096;
        check(&header(), whole, 0, "ours");
        check(&header(), whole + 4096, 0, "ours");
        check(&with(16, &[0, 1]), 3 * 65_536, 0, "ours");
        check(b"SQLite", 6, 0, "it is cut off within its first hundred bytes");
        check(&header()[..99], 99, 0, "it is cut off within its first hundred bytes");
        check(b"a diary", 7, 0, "not an SQLite file");
        check(&[0; 100], 4096, 0, "not an SQLite file");
        check(&with(68, &[0, 0, 0, 0]), whole, 0, "an SQLite file of something else");
        check(&with(60, &[0, 0, 0, 77]), whole, 0, "newer 77");
        check(&with(60, &[0, 0, 0, 0]), whole, 0, "its header lacks the version of its tables");
        check(&with(16, &[0x10, 0x10]), whole, 0, "its header says pages of 4112 bytes");
    }

    #[test]
    fn a_file_that_is_too_short_is_damaged_unless_its_log_may_have_the_rest() {
        let cut = "it is cut off after 8192 bytes";
        check(&header(), 2 * 4096, 0, cut);
        check(&header(), 2 * 4096, 32, "ours");
        check(&header(), 3 * 4096 + 1, 0, "it is cut off after 12289 bytes");
        // A size that was not written with the last change says nothing.
        check(&with(24, &[0, 0, 0, 9]), 2 * 4096, 0, "ours");
    }
}
