//! When to look at the clock.
//!
//! Owns a rough count of the work that a turn has done, in bytes that are copied: some ten for each
//! nanosecond. It decides nothing but whether enough has been done since the last look for another
//! one; to look after every small step would cost more than the step.

use std::time::Duration;

/// Work between two looks: some 50 microseconds.
const LOOK: u64 = 64 * 1024;

/// What it costs to see to a connection, beside the bytes that are moved: a call or two of the kernel.
pub const PUMP: usize = 4 * 1024;

/// The same for taking a new one.
pub const ACCEPT: usize = 16 * 1024;

/// The same for an action, most often one to close a socket.
pub const ACTION: usize = 4 * 1024;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Pace {
    /// Work of the driver.
    work: u64,
    /// Work of both, the driver and the core, at the last look.
    looked: u64,
    /// How long the turn had taken at the last look.
    pub took: Duration,
}

impl Pace {
    /// A turn begins. `core`: what the core's work has come to.
    pub fn begin_turn(&mut self, core: u64) {
        self.looked = self.work + core;
        self.took = Duration::ZERO;
    }

    /// Counts work of the driver.
    #[inline]
    pub fn add(&mut self, work: usize) {
        self.work += work as u64;
    }

    /// Whether another look is due, which is then taken as done.
    #[inline]
    pub fn is_due(&mut self, core: u64) -> bool {
        let all = self.work + core;
        let due = all - self.looked >= LOOK;
        if due {
            self.looked = all;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_after_sixteen_quiet_connections_or_one_busy_one() {
        let mut pace = Pace::default();
        pace.begin_turn(1000);
        for quiet in 1..=32 {
            pace.add(PUMP);
            assert_eq!(pace.is_due(1000), quiet % 16 == 0, "{quiet}");
        }
        pace.add(PUMP);
        assert!(pace.is_due(1000 + LOOK), "the core has worked");
        pace.add(LOOK as usize);
        assert!(pace.is_due(1000 + LOOK), "bytes were moved");
        pace.add(LOOK as usize);
        pace.begin_turn(1000 + LOOK);
        assert!(!pace.is_due(1000 + LOOK), "a new turn");
    }
}
