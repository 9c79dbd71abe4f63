//! How long things took, counted in buckets: histograms as monitoring reads them.
//!
//! Owns the bounds of the buckets and the counters. It never reads a clock: a request that is
//! answered within one turn of the loop is counted under the time of that whole turn, which is
//! known at the turn's end ([`Requests::end_turn`]). So counting one costs an addition and a bit.

/// Durations by their size, for the bounds of whoever holds it. Everything is in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<const N: usize> {
    /// Counts up to each bound, each without those of the bound before.
    pub counts: [u64; N],
    /// Those above the last bound.
    pub above: u64,
    /// All durations together.
    pub sum_us: u64,
}

/// A histogram of any number of buckets, with its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    /// Upper bounds.
    pub bounds_us: &'a [u64],
    /// Counts up to each bound, each without those of the bound before.
    pub counts: &'a [u64],
    /// Those above the last bound.
    pub above: u64,
    /// All durations together.
    pub sum_us: u64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Histogram<N> {
        Histogram {
            counts: [0; N],
            above: 0,
            sum_us: 0,
        }
    }
}

impl<const N: usize> Histogram<N> {
    /// Counts so many durations of this length.
    pub fn note(&mut self, bounds_us: &[u64; N], took_us: u64, count: u64) {
        let bucket = bounds_us.iter().position(|bound| took_us <= *bound);
        match bucket {
            Some(at) => self.counts[at] += count,
            None => self.above += count,
        }
        self.sum_us = self.sum_us.saturating_add(took_us.saturating_mul(count));
    }

    /// What is told of it, given its bounds.
    pub fn buckets<'a>(&'a self, bounds_us: &'a [u64; N]) -> Buckets<'a> {
        Buckets {
            bounds_us,
            counts: &self.counts,
            above: self.above,
            sum_us: self.sum_us,
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }
}

/// Upper bounds for requests of clients: from less than a turn to more than the longest wait for
/// candles.
pub const REQUEST_BOUNDS_US: [u64; 8] = [
    100, 250, 1_000, 5_000, 25_000, 250_000, 1_000_000, 5_000_000,
];

/// Upper bounds for requests to exchanges: a round trip within a city to the default deadline.
pub const POLL_BOUNDS_US: [u64; 8] = [
    10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
];

/// What a request was for: a closed set, so that no client can make a new series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/api/v1/quotes/:symbol`
    Quote,
    /// `/api/v1/quotes`
    Quotes,
    /// `/api/v1/categories`
    Categories,
    /// `/api/v1/categories/:categoryId/markets`
    CategoryMarkets,
    /// `/api/ecosystem/market`
    EcosystemMarkets,
    /// `/api/ecosystem/market/{id}`
    EcosystemMarket,
    /// `/api/ecosystem/chart`
    Chart,
    /// `/api/v1/metrics`
    Metrics,
    /// `/metrics`
    Prometheus,
    /// `/health` and what is below it.
    Health,
    /// `/openapi.json`
    OpenApi,
    /// OPTIONS of any address.
    Options,
    /// An address that does not exist.
    Unknown,
    /// None that was read: malformed, not in time, or of a client that was turned away.
    Unread,
}

impl Endpoint {
    /// How many there are.
    pub const COUNT: usize = Endpoint::NAMES.len();

    /// All of them, in the order of their numbers, and the words that metrics use.
    const NAMES: [(Endpoint, &str); 14] = {
        use Endpoint::*;
        [
            (Quote, "quote"),
            (Quotes, "quotes"),
            (Categories, "categories"),
            (CategoryMarkets, "category_markets"),
            (EcosystemMarkets, "ecosystem_markets"),
            (EcosystemMarket, "ecosystem_market"),
            (Chart, "chart"),
            (Metrics, "metrics"),
            (Prometheus, "prometheus"),
            (Health, "health"),
            (OpenApi, "openapi"),
            (Options, "options"),
            (Unknown, "unknown"),
            (Unread, "unread"),
        ]
    };

    /// All of them, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Endpoint> {
        Endpoint::NAMES.into_iter().map(|(it, _)| it)
    }

    /// The word that metrics use.
    pub fn name(self) -> &'static str {
        Endpoint::NAMES[self as usize].1
    }
}

/// Classes of status: 2xx to 5xx.
const CLASSES: usize = 4;

/// One for each endpoint and class of status.
const CELLS: usize = Endpoint::COUNT * CLASSES;

// One bit of `Requests::touched` each.
const _: () = assert!(CELLS <= u64::BITS as usize);

/// Answered requests by endpoint, class of status and duration.
#[derive(Clone, Debug)]
pub struct Requests {
    cells: [Histogram<{ REQUEST_BOUNDS_US.len() }>; CELLS],
    /// Those of the running turn, whose duration is not known yet.
    turn: [u32; CELLS],
    /// Which of them are not zero.
    touched: u64,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            cells: [Histogram::default(); CELLS],
            turn: [0; CELLS],
            touched: 0,
        }
    }
}

impl Requests {
    /// Counts a request that was answered within the turn that read it.
    pub fn note(&mut self, endpoint: Endpoint, status: u16) {
        let cell = cell(endpoint, status);
        self.turn[cell] += 1;
        self.touched |= 1 << cell;
    }

    /// Counts one that took longer.
    pub fn note_long(&mut self, endpoint: Endpoint, status: u16, took_us: u64) {
        self.cells[cell(endpoint, status)].note(&REQUEST_BOUNDS_US, took_us, 1);
    }

    /// The turn has ended.
    pub fn end_turn(&mut self, took_us: u64) {
        while self.touched != 0 {
            let cell = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            let count = std::mem::take(&mut self.turn[cell]);
            self.cells[cell].note(&REQUEST_BOUNDS_US, took_us, u64::from(count));
        }
    }

    /// What was counted, where there is something: endpoint, first digit of the status, durations.
    pub fn counted(
        &self,
    ) -> impl Iterator<Item = (Endpoint, usize, &Histogram<{ REQUEST_BOUNDS_US.len() }>)> {
        let places = self.cells.iter().enumerate();
        let counted = places.filter(|(_, histogram)| histogram.count() > 0);
        counted.map(|(at, histogram)| {
            let endpoint = Endpoint::NAMES[at / CLASSES].0;
            (endpoint, at % CLASSES + 2, histogram)
        })
    }
}

fn cell(endpoint: Endpoint, status: u16) -> usize {
    let class = usize::from(status / 100).clamp(2, 5) - 2;
    endpoint as usize * CLASSES + class
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut requests = Requests::default();
        requests.note(Endpoint::Quote, 200);
        requests.note(Endpoint::Quote, 204);
        requests.note(Endpoint::Unread, 505);
        assert_eq!(requests.counted().count(), 0);
        requests.end_turn(120);
        requests.end_turn(7);
        requests.note_long(Endpoint::Chart, 200, 2_000_000);
        let counted = requests.counted();
        let counted: Vec<(&str, usize, u64, u64)> = counted
            .map(|(endpoint, class, it)| (endpoint.name(), class, it.count(), it.sum_us))
            .collect();
        let expected = [
            ("quote", 2, 2, 240),
            ("chart", 2, 1, 2_000_000),
            ("unread", 5, 1, 120),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn endpoints_are_numbered_as_they_are_listed() {
        for (at, endpoint) in Endpoint::all().enumerate() {
            assert_eq!(endpoint as usize, at);
        }
    }
}
