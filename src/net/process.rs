//! What the system says of this process: memory and open descriptors.
//!
//! Read from `/proc` when metrics are asked for: two short calls, no directory is walked. Where a
//! system has no `/proc`, the figures are unknown.

use crate::server::ProcessFacts;
use std::fs;

/// Reads the figures.
pub fn facts() -> ProcessFacts {
    ProcessFacts {
        rss_bytes: rss_bytes(),
        open_fds: open_fds(),
    }
}

/// Resident set, from the line `VmRSS: 1234 kB` of `/proc/self/status` (proc(5)).
fn rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Linux 6.2 and later give the number of open descriptors as the size of `/proc/self/fd`;
/// earlier ones give 0, which means unknown here: walking the directory takes milliseconds with
/// ten thousand connections.
fn open_fds() -> Option<u64> {
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    (size > 0).then_some(size)
}
