//! What the system says of this process: memory and open descriptors.
//!
//! Read from `/proc` when metrics are asked for: two short calls, no directory is walked. Where a
//! system has no `/proc`, the figures are unknown.

use crate::core::ProcessFacts;
use std::fs;

/// Reads the figures.
pub fn facts() -> ProcessFacts {
    ProcessFacts {
        rss_bytes: rss_bytes(),
        open_fds: open_fds(),
    }
}

/// Resident set: the second number of `/proc/self/statm`, in pages (proc(5)). `/proc/self/status`
/// says the same and takes the kernel five times as long.
fn rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Linux 6.2 and later give the number of open descriptors as the size of `/proc/self/fd`;
/// earlier ones give 0, which means unknown here: walking the directory takes milliseconds with
/// ten thousand connections.
fn open_fds() -> Option<u64> {
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    (size > 0).then_some(size)
}
