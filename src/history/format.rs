//! What identifies a history file: its application id, its version, and the names of its neighbours.

/// Marks the file as marketd's among all SQLite files: `mktd`.
pub const APPLICATION_ID: u32 = 0x6d6b_7464;

/// The version of the tables that this build writes.
pub const VERSION: u32 = 2;

/// The suffix of a write-ahead log whose history file was removed. A person who has moved the file can
/// rename the log back to its name.
pub const LOG_SET_ASIDE: &str = "-wal-left";
