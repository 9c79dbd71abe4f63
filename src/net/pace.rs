//! Decides when to read the clock.
//!
//! Counts the work of a turn roughly. A unit takes about a nanosecond, like one byte that is sent. The clock
//! is read after enough work: reading it after every small step would cost more than the step.

use std::time::Duration;

/// Work between two reads of the clock: some 50 microseconds.
const READ_EVERY: u64 = 64 * 1024;

/// Work of serving a connection, without the bytes that are moved: one or two system calls.
pub const PUMP: usize = 4 * 1024;

/// Work of accepting a connection.
pub const ACCEPT: usize = 16 * 1024;

/// Work of an action, which most often closes a socket: 0.1 ms if much of its output is not sent.
pub const ACTION: usize = READ_EVERY as usize;

/// The work of a turn, and when the clock was last read.
#[derive(Debug, Default)]
pub struct ClockPace {
    /// Work of the driver so far.
    work: u64,
    /// Work of the driver and the core when the clock was last read.
    at_read: u64,
    /// How long the turn had taken when the clock was last read.
    pub took: Duration,
}

impl ClockPace {
    /// Starts a turn. `core` is the core's work so far.
    pub fn begin_turn(&mut self, core: u64) {
        self.at_read = self.work + core;
        self.took = Duration::ZERO;
    }

    /// Counts work of the driver.
    #[inline]
    pub fn add(&mut self, work: usize) {
        self.work += work as u64;
    }

    /// True if the clock is to be read now. The caller reads it then.
    #[inline]
    pub fn is_due(&mut self, core: u64) -> bool {
        let all = self.work + core;
        let due = all - self.at_read >= READ_EVERY;
        if due {
            self.at_read = all;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_after_sixteen_quiet_connections_or_one_busy_one() {
        let mut pace = ClockPace::default();
        pace.begin_turn(1000);
        for quiet in 1..=32 {
            pace.add(PUMP);
            assert_eq!(pace.is_due(1000), quiet % 16 == 0, "{quiet}");
        }
        pace.add(PUMP);
        assert!(pace.is_due(1000 + READ_EVERY), "the core has worked");
        pace.add(READ_EVERY as usize);
        assert!(pace.is_due(1000 + READ_EVERY), "bytes were moved");
        pace.add(READ_EVERY as usize);
        pace.begin_turn(1000 + READ_EVERY);
        assert!(!pace.is_due(1000 + READ_EVERY), "a new turn");
    }
}
