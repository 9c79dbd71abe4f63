//! Histograms of durations, as monitoring reads them.
//!
//! Owns the bounds of the buckets and the counters. It never reads a clock: a request that is served within
//! one turn of the loop counts with the duration of the whole turn, which is known at the end of the turn
//! ([`Requests::end_turn`]). So to count a request costs one addition and one bit.

use crate::time::Now;

/// Durations by size, in microseconds. The owner knows the bounds of the buckets.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<const N: usize> {
    /// The durations up to each bound and above the bound before.
    pub counts: [u64; N],
    /// The durations above the last bound.
    pub above: u64,
    /// The sum of all durations.
    pub sum_us: u64,
}

/// A histogram with its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    /// The upper bounds.
    pub bounds_us: &'a [u64],
    /// The durations up to each bound and above the bound before.
    pub counts: &'a [u64],
    /// The durations above the last bound.
    pub above: u64,
    /// The sum of all durations.
    pub sum_us: u64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Histogram<N> {
        Histogram { counts: [0; N], above: 0, sum_us: 0 }
    }
}

impl<const N: usize> Histogram<N> {
    /// Counts `count` durations of this length.
    pub fn note(&mut self, bounds_us: &[u64; N], took_us: u64, count: u64) {
        let bucket = bounds_us.iter().position(|bound| took_us <= *bound);
        match bucket {
            Some(at) => self.counts[at] += count,
            None => self.above += count,
        }
        self.sum_us = self.sum_us.saturating_add(took_us.saturating_mul(count));
    }

    /// The histogram with its bounds.
    pub fn buckets<'a>(&'a self, bounds_us: &'a [u64; N]) -> Buckets<'a> {
        Buckets { bounds_us, counts: &self.counts, above: self.above, sum_us: self.sum_us }
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }
}

/// Upper bounds for requests of clients: from less than a turn to more than the longest wait for candles.
pub const REQUEST_BOUNDS_US: [u64; 8] =
    [100, 250, 1_000, 5_000, 25_000, 250_000, 1_000_000, 5_000_000];

/// Upper bounds for requests to exchanges: a round trip within a city to the default deadline.
pub const POLL_BOUNDS_US: [u64; 8] =
    [10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000];

/// What a request is for. The set is closed, so that no client can add a time series to the metrics.
#[derive(Debug, PartialEq, Eq)]
pub struct Endpoint {
    number: u8,
    name: &'static str,
    is_limited: bool,
}

impl Endpoint {
    /// The most endpoints: each has one bit of a word for each class of status.
    pub const MOST: usize = 32;

    /// The numbers below this are for the table of endpoints; the last three are for those below.
    const RESERVED: usize = Endpoint::MOST - 3;

    /// OPTIONS of any address.
    pub const OPTIONS: Endpoint = Endpoint::reserved(0, "options").without_limit();

    /// An address that does not exist.
    pub const UNKNOWN: Endpoint = Endpoint::reserved(1, "unknown");

    /// A request that was not read: malformed, incomplete in time, or of a refused client.
    pub const UNREAD: Endpoint = Endpoint::reserved(2, "unread");

    /// The endpoint with this number, which no other has, and this name in the metrics. The metrics list
    /// endpoints by number.
    pub const fn new(number: u8, name: &'static str) -> Endpoint {
        assert!((number as usize) < Endpoint::RESERVED);
        Endpoint { number, name, is_limited: true }
    }

    const fn reserved(at: u8, name: &'static str) -> Endpoint {
        Endpoint { number: Endpoint::RESERVED as u8 + at, name, is_limited: true }
    }

    /// The same, without a rate limit.
    pub const fn without_limit(mut self) -> Endpoint {
        self.is_limited = false;
        self
    }

    /// The number.
    pub fn number(&self) -> usize {
        usize::from(self.number)
    }

    /// The name in the metrics.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if the rate limit counts its requests.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }
}

/// The classes of status: 2xx to 5xx.
const CLASSES: usize = 4;

/// One for each endpoint and class of status.
const CELLS: usize = Endpoint::MOST * CLASSES;

/// Requests by endpoint, class of status and duration.
#[derive(Clone, Debug)]
pub struct Requests {
    cells: [Histogram<{ REQUEST_BOUNDS_US.len() }>; CELLS],
    /// Those of the current turn, whose duration is not known yet.
    turn: [u32; CELLS],
    /// Which of them are not zero.
    touched: Vec<usize>,
    /// The endpoints that were counted, by number.
    endpoints: [&'static Endpoint; Endpoint::MOST],
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            cells: [Histogram::default(); CELLS],
            turn: [0; CELLS],
            touched: Vec::with_capacity(CELLS),
            endpoints: [&Endpoint::UNKNOWN; Endpoint::MOST],
        }
    }
}

impl Requests {
    /// Counts a request that was served within the turn that read it.
    pub fn note(&mut self, endpoint: &'static Endpoint, status: u16) {
        let cell = self.cell(endpoint, status);
        if self.turn[cell] == 0 {
            self.touched.push(cell);
        }
        self.turn[cell] += 1;
    }

    /// Counts a request that took longer.
    pub fn note_long(&mut self, endpoint: &'static Endpoint, status: u16, took_us: u64) {
        let cell = self.cell(endpoint, status);
        self.cells[cell].note(&REQUEST_BOUNDS_US, took_us, 1);
    }

    /// Ends the turn, which has taken so long.
    pub fn end_turn(&mut self, took_us: u64) {
        while let Some(cell) = self.touched.pop() {
            let count = std::mem::take(&mut self.turn[cell]);
            self.cells[cell].note(&REQUEST_BOUNDS_US, took_us, u64::from(count));
        }
    }

    /// The histograms with a request: endpoint, first digit of the status, durations.
    pub fn counted(
        &self,
    ) -> impl Iterator<Item = (&'static Endpoint, usize, &Histogram<{ REQUEST_BOUNDS_US.len() }>)>
    {
        let places = self.cells.iter().enumerate();
        let counted = places.filter(|(_, histogram)| histogram.count() > 0);
        counted.map(|(at, histogram)| (self.endpoints[at / CLASSES], at % CLASSES + 2, histogram))
    }

    fn cell(&mut self, endpoint: &'static Endpoint, status: u16) -> usize {
        self.endpoints[endpoint.number()] = endpoint;
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        endpoint.number() * CLASSES + class
    }
}

/// Upper bounds of the histogram of turns, in microseconds.
pub const TURN_BOUNDS: [u64; 10] = [50, 100, 250, 500, 1000, 2000, 5000, 10_000, 50_000, 250_000];

/// Seconds over which the longest turn is reported.
const STALL_WINDOW: usize = 60;

/// How long the loop's turns took, from wake-up to sleep.
#[derive(Debug)]
pub struct Turns {
    /// Turns by duration, see [`TURN_BOUNDS`].
    pub durations: Histogram<{ TURN_BOUNDS.len() }>,
    /// Longest turn of each of the last seconds, in microseconds, by second modulo the window.
    longest: [u32; STALL_WINDOW],
    second: u64,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { durations: Histogram::default(), longest: [0; STALL_WINDOW], second: 0 }
    }
}

impl Turns {
    /// Counts one turn of so many microseconds.
    pub fn note(&mut self, took_us: u64, now: Now) {
        self.durations.note(&TURN_BOUNDS, took_us, 1);
        self.advance(now);
        let place = &mut self.longest[(self.second % STALL_WINDOW as u64) as usize];
        *place = (*place).max(u32::try_from(took_us).unwrap_or(u32::MAX));
    }

    /// The longest turn of the last minute, in microseconds.
    pub fn longest_us(&self, now: Now) -> u32 {
        let second = now.mono.0 / 1_000_000;
        let old = (second - self.second.min(second)).min(STALL_WINDOW as u64);
        // Seconds in which nothing turned hold what was there a minute before: leave them out.
        let kept = STALL_WINDOW as u64 - old;
        (0..kept)
            .map(|back| {
                let at = (self.second + STALL_WINDOW as u64 - back) % STALL_WINDOW as u64;
                self.longest[at as usize]
            })
            .max()
            .unwrap_or(0)
    }

    fn advance(&mut self, now: Now) {
        let second = now.mono.0 / 1_000_000;
        if second == self.second {
            return;
        }
        let steps = second.saturating_sub(self.second).min(STALL_WINDOW as u64);
        for step in 0..steps {
            self.longest[((second - step) % STALL_WINDOW as u64) as usize] = 0;
        }
        self.second = self.second.max(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Mono, UnixMs};

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_holds_it() {
        let check = |took_us: u64, expected: &[u64], above: u64| {
            let mut histogram = Histogram::default();
            histogram.note(&[10, 20], took_us, 3);
            assert_eq!(histogram.counts, expected, "{took_us}");
            assert_eq!(histogram.above, above, "{took_us}");
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
        static QUOTE: Endpoint = Endpoint::new(3, "quote");
        static CHART: Endpoint = Endpoint::new(5, "chart");
        let mut requests = Requests::default();
        requests.note(&QUOTE, 200);
        requests.note(&QUOTE, 204);
        requests.note(&Endpoint::UNREAD, 505);
        assert_eq!(requests.counted().count(), 0);
        requests.end_turn(120);
        requests.end_turn(7);
        requests.note_long(&CHART, 200, 2_000_000);
        let counted = requests.counted();
        let counted: Vec<(&str, usize, u64, u64)> = counted
            .map(|(endpoint, class, it)| (endpoint.name(), class, it.count(), it.sum_us))
            .collect();
        let expected = [("quote", 2, 2, 240), ("chart", 2, 1, 2_000_000), ("unread", 5, 1, 120)];
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
