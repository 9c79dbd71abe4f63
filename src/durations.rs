//! Histograms of durations, as monitoring reads them.
//!
//! Owns the bounds of the buckets and the counters. It never reads a clock: a request that is served within
//! one turn of the loop counts with the duration of the whole turn. [`Requests::end_turn`] gets this duration
//! at the end of the turn. So counting a request is cheap.

use crate::time::Now;

/// The most bounds of a histogram.
const MOST_BOUNDS: usize = 10;

/// Durations by size.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram {
    /// The upper bounds of the buckets, in microseconds.
    pub bounds_us: &'static [u64],
    /// The number of durations in each bucket: up to its bound, and above the bound before. The last count is
    /// of the durations above the last bound.
    counts: [u64; MOST_BOUNDS + 1],
    /// The sum of all durations.
    pub sum_us: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new(bounds_us: &'static [u64]) -> Histogram {
        debug_assert!(bounds_us.len() <= MOST_BOUNDS);
        Histogram { bounds_us, ..Histogram::default() }
    }

    /// Counts `count` durations of this length.
    pub fn note(&mut self, took_us: u64, count: u64) {
        let bucket = self.bounds_us.iter().position(|bound| took_us <= *bound);
        self.counts[bucket.unwrap_or(self.bounds_us.len())] += count;
        self.sum_us = self.sum_us.saturating_add(took_us.saturating_mul(count));
    }

    /// The number of durations in each bucket. The last bucket has the durations above all bounds.
    pub fn counts(&self) -> &[u64] {
        &self.counts[..=self.bounds_us.len()]
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Upper bounds for requests of clients: from less than a turn to more than the longest wait for candles.
const REQUEST_BOUNDS_US: [u64; 8] = [100, 250, 1_000, 5_000, 25_000, 250_000, 1_000_000, 5_000_000];

/// Upper bounds for requests to exchanges: a round trip within a city to the default deadline.
pub const POLL_BOUNDS_US: [u64; 8] =
    [10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000];

/// The most endpoints.
pub const MOST_ENDPOINTS: usize = 32;

/// The classes of status: 2xx to 5xx.
const CLASSES: usize = 4;

/// The number of histograms: one for each endpoint and class of status.
const CELLS: usize = MOST_ENDPOINTS * CLASSES;

/// Requests by endpoint, class of status and duration. An endpoint is a number here.
#[derive(Clone, Debug)]
pub struct Requests {
    cells: [Histogram; CELLS],
    /// Requests of the current turn, whose duration is not known yet.
    turn: [u32; CELLS],
    /// Which places of `turn` are not zero.
    touched: Vec<usize>,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            cells: [Histogram::new(&REQUEST_BOUNDS_US); CELLS],
            turn: [0; CELLS],
            touched: Vec::with_capacity(CELLS),
        }
    }
}

impl Requests {
    /// Counts a request that was served within the turn that read it.
    pub fn note(&mut self, endpoint: usize, status: u16) {
        let cell = cell(endpoint, status);
        if self.turn[cell] == 0 {
            self.touched.push(cell);
        }
        self.turn[cell] += 1;
    }

    /// Counts a request that took longer.
    pub fn note_deferred(&mut self, endpoint: usize, status: u16, took_us: u64) {
        self.cells[cell(endpoint, status)].note(took_us, 1);
    }

    /// Ends the turn, and counts its requests with its duration.
    pub fn end_turn(&mut self, took_us: u64) {
        while let Some(cell) = self.touched.pop() {
            let count = std::mem::take(&mut self.turn[cell]);
            self.cells[cell].note(took_us, u64::from(count));
        }
    }

    /// The histograms with a request: endpoint, first digit of the status, durations.
    pub fn counted(&self) -> impl Iterator<Item = (usize, usize, &Histogram)> {
        let places = self.cells.iter().enumerate();
        let counted = places.filter(|(_, histogram)| histogram.count() > 0);
        counted.map(|(at, histogram)| (at / CLASSES, at % CLASSES + 2, histogram))
    }
}

fn cell(endpoint: usize, status: u16) -> usize {
    endpoint * CLASSES + usize::from(status / 100).clamp(2, 5) - 2
}

/// Upper bounds of the histogram of turns, in microseconds.
const TURN_BOUNDS_US: [u64; 10] = [50, 100, 250, 500, 1000, 2000, 5000, 10_000, 50_000, 250_000];

/// Seconds over which the longest turn is reported.
const STALL_WINDOW: u64 = 60;

/// How long the loop's turns took, from wake-up to sleep.
#[derive(Debug)]
pub struct Turns {
    /// Turns by duration.
    pub durations: Histogram,
    /// The longest turn of each second of the window: the second, and the duration in microseconds. The index
    /// is the second modulo the window.
    longest: [(u64, u32); STALL_WINDOW as usize],
}

impl Default for Turns {
    fn default() -> Turns {
        let longest = [(0, 0); STALL_WINDOW as usize];
        Turns { durations: Histogram::new(&TURN_BOUNDS_US), longest }
    }
}

impl Turns {
    /// Counts one turn.
    pub fn note(&mut self, took_us: u64, now: Now) {
        self.durations.note(took_us, 1);
        let now = second_of(now);
        let (second, longest) = &mut self.longest[(now % STALL_WINDOW) as usize];
        if *second != now {
            (*second, *longest) = (now, 0);
        }
        *longest = (*longest).max(u32::try_from(took_us).unwrap_or(u32::MAX));
    }

    /// The longest turn of the last minute, in microseconds.
    pub fn longest_us(&self, now: Now) -> u32 {
        let is_recent = |second: u64| second_of(now).saturating_sub(second) < STALL_WINDOW;
        let recent = self.longest.iter().filter(|(second, _)| is_recent(*second));
        recent.map(|(_, longest)| *longest).max().unwrap_or(0)
    }
}

fn second_of(now: Now) -> u64 {
    now.mono.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Mono, UnixMs};

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_holds_it() {
        let check = |took_us: u64, expected: &[u64], above: u64| {
            let mut histogram = Histogram::new(&[10, 20]);
            histogram.note(took_us, 3);
            assert_eq!(histogram.counts(), [expected, &[above]].concat(), "{took_us}");
            assert_eq!(histogram.count(), 3);
            assert_eq!(histogram.sum_us, took_us.saturating_mul(3));
        };
        check(0, &[3, 0], 0);
        check(10, &[3, 0], 0);
        check(11, &[0, 3], 0);
        check(20, &[0, 3], 0);
        check(21, &[0, 0], 3);
        check(u64::MAX, &[0, 0], 3);
    }

    #[test]
    fn requests_of_a_turn_are_counted_at_its_end() {
        const QUOTE: usize = 3;
        const CHART: usize = 5;
        const UNREAD: usize = 31;
        let mut requests = Requests::default();
        requests.note(QUOTE, 200);
        requests.note(QUOTE, 204);
        requests.note(UNREAD, 505);
        assert_eq!(requests.counted().count(), 0);
        requests.end_turn(120);
        requests.end_turn(7);
        requests.note_deferred(CHART, 200, 2_000_000);
        let counted = requests.counted();
        let counted: Vec<(usize, usize, u64, u64)> =
            counted.map(|(endpoint, class, it)| (endpoint, class, it.count(), it.sum_us)).collect();
        let expected = [(QUOTE, 2, 2, 240), (CHART, 2, 1, 2_000_000), (UNREAD, 5, 1, 120)];
        assert_eq!(counted, expected);
    }

    fn at(seconds: u64) -> Now {
        Now { mono: Mono(seconds * 1_000_000), unix: UnixMs(0) }
    }

    #[test]
    fn the_longest_turn_is_forgotten_after_a_minute() {
        let mut turns = Turns::default();
        turns.note(7000, at(5));
        turns.note(3000, at(30));
        assert_eq!(turns.longest_us(at(30)), 7000);
        assert_eq!(turns.longest_us(at(64)), 7000);
        assert_eq!(turns.longest_us(at(65)), 3000);
        assert_eq!(turns.longest_us(at(89)), 3000);
        assert_eq!(turns.longest_us(at(90)), 0);
        turns.note(1000, at(200));
        assert_eq!(turns.longest_us(at(200)), 1000);
        assert_eq!(turns.durations.count(), 3);
    }
}
