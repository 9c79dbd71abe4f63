//! What this process uses, for the metrics, and the memory that it gives back.
//!
//! The figures are asked of the system when metrics are requested. Memory and open files come from `/proc`,
//! and are unknown on a system without it.

use crate::config::Data;
use crate::core::ProcessFacts;
use crate::time::cpu_us;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Most characters of the host's name in the name of a node.
const MOST_HOST: usize = 40;

/// Reads all figures.
pub fn facts() -> ProcessFacts {
    ProcessFacts {
        rss_bytes: rss_bytes(),
        open_fds: open_fds(),
        max_fds: getrlimit(Resource::Nofile).current,
        cpu_us: cpu_us(),
    }
}

/// The name of this node in a cluster that was given none: the name of the host, and the number of the
/// history file on its disk, which are the same after a restart. `None`: there is no file.
pub fn node_name(data: &Data) -> Option<String> {
    let Data::File(path) = data else {
        return None;
    };
    let file = fs::metadata(path).ok()?.ino();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "._-".contains(*char);
    let host: String = host.chars().filter(is_plain).take(MOST_HOST).collect();
    Some(format!("{host}-{file:x}"))
}

/// The resident set: the second number of `/proc/self/statm`, in pages (proc(5)). `/proc/self/status`
/// has the same number, but takes the kernel five times as long.
fn rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The number of open files: since Linux 6.2, this is the size of `/proc/self/fd`. Earlier versions
/// report 0, which counts as unknown: reading the directory would take milliseconds with ten thousand
/// connections.
fn open_fds() -> Option<u64> {
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    (size > 0).then_some(size)
}

/// Returns free memory to the system, after many clients have left. Takes some milliseconds for 32 MB. The
/// allocator keeps all free memory below the highest block in use, which is nearly all of it when entries of
/// connections lie between the freed buffers.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the one call of the allocator that no safe crate offers")]
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes only a number and may be called at any time.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
