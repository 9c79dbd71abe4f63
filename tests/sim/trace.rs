//! What happened last, told when a run fails.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

/// How many events are remembered.
const REMEMBERED: usize = 60;

/// The last events of a run. Told on standard error when a panic passes by.
#[derive(Debug, Default)]
pub struct Trace {
    events: RefCell<VecDeque<(u64, String)>>,
    all: bool,
}

impl Trace {
    /// An empty trace. `MARKETD_TRACE` in the environment makes it tell everything at once.
    pub fn new() -> Trace {
        Trace { events: RefCell::default(), all: std::env::var_os("MARKETD_TRACE").is_some() }
    }

    /// Takes note of an event at this time, in microseconds.
    pub fn note(&self, at: u64, event: String) {
        if self.all {
            eprintln!("{:>12} {event}", seconds(at));
        }
        let mut events = self.events.borrow_mut();
        if events.len() == REMEMBERED {
            events.pop_front();
        }
        events.push_back((at, event));
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.all {
            eprintln!("the last events, by seconds of virtual time:");
            for (at, event) in self.events.borrow().iter() {
                eprintln!("{:>12} {event}", seconds(*at));
            }
        }
    }
}

/// Microseconds, written in seconds.
pub fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// What a judge finds: why something is wrong, if it is.
pub type Verdict = Result<(), String>;

/// An error with this reason, unless something is so.
pub fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Verdict {
    if is_so { Ok(()) } else { Err(why()) }
}

/// A span in microseconds.
pub fn us(span: Duration) -> u64 {
    span.as_micros() as u64
}

/// So many milliseconds.
pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The begin of some bytes, on one line.
pub fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii();
    match bytes.len() > MOST {
        true => format!("{shown}... ({} bytes)", bytes.len()),
        false => shown.to_string(),
    }
}
