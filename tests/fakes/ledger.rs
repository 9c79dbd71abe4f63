//! The exchange's own count of what was asked of it.

use crate::fakes::shop::Charge;
use std::collections::{HashMap, VecDeque};

/// Units by pool, over a span that slides.
#[derive(Default)]
pub struct Ledger {
    pools: HashMap<&'static str, Pool>,
    /// Requests in all.
    pub requests: u64,
    /// Every time that a limit was passed, in words.
    pub broken: Vec<String>,
}

#[derive(Default)]
struct Pool {
    /// Microseconds, and what they cost.
    entries: VecDeque<(u64, u32)>,
    units: u32,
}

impl Ledger {
    /// A request has come in. Units of its pool in the span that ends now.
    pub fn enter(&mut self, charge: &Charge, at_us: u64, what: &str) -> u32 {
        self.requests += 1;
        let pool = self.pools.entry(charge.pool).or_default();
        pool.entries.push_back((at_us, charge.units));
        pool.units += charge.units;
        while let Some((at, units)) = pool.entries.front().copied()
            && at + charge.span_ms * 1000 <= at_us
        {
            pool.units -= units;
            pool.entries.pop_front();
        }
        if pool.units > charge.most {
            self.broken.push(format!(
                "{at_us} us: {what} makes {} of {} {} in {} ms",
                pool.units, charge.most, charge.pool, charge.span_ms
            ));
        }
        pool.units
    }
}

#[test]
fn a_span_slides_and_leaves_its_begin_out() {
    let charge = Charge { pool: "one", units: 2, most: 4, span_ms: 1 };
    let mut ledger = Ledger::default();
    for (at, units) in [(0, 2), (999, 4), (1000, 4), (1500, 6), (3000, 2)] {
        assert_eq!(ledger.enter(&charge, at, "it"), units, "{at}");
    }
    assert_eq!(ledger.broken.len(), 1);
}
