//! The process: its use of memory, files and processor time, for the metrics; giving memory back to the
//! system; and how many of its files clients may use.
//!
//! The figures are read from the system when metrics are requested. Memory and open files come from `/proc`,
//! and are unknown on a system without it.
//!
//! The soft limit on files is raised to the hard limit (`RLIMIT_NOFILE`, getrlimit(2)). Some files are
//! reserved for the loop and the history, whatever clients do. Connections to exchanges are reserved
//! separately.

use crate::config::{Config, Data};
use crate::core::{self, ProcessFacts};
use crate::time::cpu_us;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;
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

/// The name of this node in a cluster, if none is configured: the name of the host, and the inode of the
/// history file. Both are the same after a restart. `None` without a file.
pub fn node_name(data: &Data) -> Option<String> {
    let Data::File(path) = data else {
        return None;
    };
    let file = fs::metadata(path).ok()?.ino();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "._-".contains(*char);
    let host = uname();
    let host = host.nodename().to_string_lossy();
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

/// The number of open files. Since Linux 6.2, this is the size of `/proc/self/fd`. Earlier versions report 0,
/// which counts as unknown: listing the directory would take milliseconds with ten thousand connections.
fn open_fds() -> Option<u64> {
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    (size > 0).then_some(size)
}

/// Returns free memory to the system, after many clients have left. Takes some milliseconds for 32 MB. By
/// itself, the allocator keeps all free memory below the highest block in use. That is nearly all of it if
/// entries of connections lie between the freed buffers.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the one call of the allocator that no safe crate offers")]
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes only a number and may be called at any time.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

/// Files that are not connections: standard streams, poller, waker, signals, listeners, the history
/// file with its log and lock, a name look-up, the process's figures. The reserve is twice the
/// usual number.
const RESERVE: usize = 40;

/// The number of clients that must be possible; otherwise marketd does not start.
const MIN_CLIENTS: usize = 8;

/// The part of the reserve that is always in use.
const USED: usize = 20;

/// Raises the limit on files, and lowers `max_connections` to what the limit allows. It is an error if the
/// limit allows too few. Returns the configured value and the limit if it lowers the value.
pub fn settle(config: &mut Config) -> Result<Option<(usize, u64)>, String> {
    let Some(limit) = raise() else {
        return Ok(None);
    };
    let needed = needed(config);
    if limit < needed as u64 {
        return Err(format!(
            "only {limit} files may be open, and at least {needed} are needed (ulimit -n)"
        ));
    }
    let cap = cap(config, limit);
    let most = &mut config.limits.max_connections;
    let configured = std::mem::replace(most, cap.min(*most));
    Ok((cap < configured).then_some((configured, limit)))
}

/// The number of files that are needed to request data from exchanges and to serve a few clients.
fn needed(config: &Config) -> usize {
    let upstream = config.limits.connections_per_source * config.sources.len();
    // The demo exchange is in this process, so both ends of its connections count.
    let ends = if config.demo.is_some() { 2 } else { 1 };
    USED + ends * upstream + MIN_CLIENTS
}

/// The limit after raising it; `None` if there is no limit.
fn raise() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, maximum: now.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => now.maximum,
        // Some systems refuse their own hard limit (macOS, setrlimit(2)).
        Err(_) => now.current,
    }
}

/// How many clients this many files allow. A refused client needs a file too, for its response.
fn cap(config: &Config, limit: u64) -> usize {
    // An upstream connection that reconnects has two sockets until the old one is closed.
    let upstream = 2 * config.limits.connections_per_source * config.sources.len();
    let demo = match config.demo {
        Some(_) => core::DEMO_CLIENTS,
        None => 0,
    };
    let taken = RESERVE + upstream + demo + core::MOST_REFUSED;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    limit.saturating_sub(taken).max(MIN_CLIENTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;

    #[test]
    fn the_cap_and_the_least_number_of_files_leave_room_for_all_that_is_not_a_client() {
        let sources = vec![SourceConfig::new("binance"); 2];
        let mut config = Config { sources, demo: None, ..Config::default() };
        config.limits.connections_per_source = 3;
        assert_eq!(cap(&config, 1024), 1024 - 40 - 12 - 64);
        assert_eq!(cap(&config, 100), MIN_CLIENTS);
        assert_eq!(cap(&config, 0), MIN_CLIENTS);
        assert_eq!(needed(&config), 20 + 6 + 8);
        config.demo = Some(crate::config::DemoConfig::default());
        assert_eq!(cap(&config, 1024), 1024 - 40 - 12 - 64 - 32);
        assert_eq!(needed(&config), 20 + 12 + 8);
    }

    #[test]
    fn the_limit_is_raised_to_its_most() {
        let raised = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, raised);
        assert_eq!(now.current, now.maximum);
    }
}
