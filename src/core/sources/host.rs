//! What the sources of one exchange's host share: its budget, the most requests in flight, and its halt.
//!
//! Sources have the same [`Host`] if the host and the port of their addresses are the same. A halt stops
//! every request of every source of the host: the exchange has asked for a pause, has banned this address,
//! has refused a second request in a row as one too many, or is not reached. After a halt, one request at a
//! time is sent until an answer is good. [`Sources`](super::Sources) tells each source of a halt.

use crate::config::Url;
use crate::core::sources::budget::Budget;
use crate::time::Mono;
use std::time::Duration;

/// The longest halt, whatever the exchange asks for: a day. A ban can last that long.
pub const HALT_MAX: Duration = Duration::from_secs(86_400);

/// A pause. Of two of them, the one that ends later counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    pub until: Mono,
    /// True if another node might do better ([`Fault::is_of_node`](super::fault::Fault::is_of_node)).
    pub is_of_node: bool,
}

/// See the module's page.
#[derive(Default)]
pub struct Host {
    name: String,
    port: u16,
    /// The budget of requests to the host.
    pub budget: Budget,
    /// Nothing is requested before this.
    pub halt: Pause,
    /// True after a halt, until an answer is good.
    pub is_probing: bool,
    /// When a request was last refused as too many, and the exchange did not say how long to wait.
    refused_at: Mono,
    /// Until when only half of the budget is spent, because of such refusals.
    halved_until: Mono,
    /// True until a request that was sent after the refusal is answered well.
    is_refused: bool,
    /// The requests in flight of its other sources, counted by [`Sources`](super::Sources) before one acts.
    pub in_flight_elsewhere: usize,
    /// Into how many parts its sources divide the budget: in a cluster, other nodes may collect the others.
    pub shares: u32,
    /// True if there are other sources of this host.
    pub is_shared: bool,
    /// True if another source has a request due that is not for quotes.
    pub others_wait: bool,
}

impl Host {
    /// The host of this address. Nothing is known of it.
    pub fn new(url: &Url) -> Host {
        Host { name: url.host.clone(), port: url.port, shares: 1, ..Host::default() }
    }

    /// True if this address is of the host.
    pub fn is_of(&self, url: &Url) -> bool {
        (&self.name, self.port) == (&url.host, url.port)
    }

    /// True if nothing of the past matters any more.
    pub fn is_unused(&self, now: Mono) -> bool {
        self.halt.until.max(self.halved_until) <= now && self.budget.is_unused(now)
    }

    /// Halts every request for this long. `is_of_node`: another node might do better.
    pub fn halt(&mut self, wait: Duration, is_of_node: bool, now: Mono) {
        let until = now + wait.min(HALT_MAX);
        self.halt = self.halt.max(Pause { until, is_of_node });
        self.is_probing = true;
    }

    /// A request that began at `began` was refused as too many, and its kind waits until `until`. Meanwhile,
    /// only half of the budget is spent. The second refusal in a row, whatever was asked, halts the host.
    pub fn refused(&mut self, began: Mono, until: Mono, now: Mono) {
        // A request that began before the first refusal is refused for the same reason, and does not count.
        if self.is_refused && began >= self.refused_at {
            self.halt(until.since(now), false, now);
        }
        (self.refused_at, self.is_refused) = (now, true);
        self.halved_until = self.halved_until.max(until);
    }

    /// The answer to a request that began at `began` was good. It does not shorten a halt.
    pub fn answered(&mut self, began: Mono, now: Mono) {
        self.is_refused &= began < self.refused_at;
        self.is_probing &= now < self.halt.until;
    }

    /// True if a source with so many requests `in_flight` and so many `connections` may send another request.
    pub fn has_room(&self, in_flight: usize, connections: usize) -> bool {
        let all = in_flight + self.in_flight_elsewhere;
        all < if self.is_probing { 1 } else { connections }
    }

    /// Into how many parts a refusal and its sources divide the budget.
    pub fn parts(&self, now: Mono) -> u32 {
        if now < self.halved_until { 2 * self.shares } else { self.shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_refusal_in_a_row_halts_the_host_and_two_at_once_are_one() {
        let mut host = Host { shares: 1, ..Host::default() };
        let until = Mono(2_000_000);
        host.refused(Mono(5), until, Mono(10));
        assert_eq!((host.parts(Mono(11)), host.halt.until), (2, Mono(0)));
        host.refused(Mono(6), until, Mono(12));
        assert_eq!(host.halt.until, Mono(0), "it was on its way");
        host.answered(Mono(11), Mono(50));
        assert!(host.has_room(1, 3));
        host.refused(Mono(100), until, Mono(200));
        assert_eq!(host.halt.until, until, "the good answer was on its way, too");
        assert!(!host.has_room(1, 3) && host.has_room(0, 3), "one at a time");
        host.answered(Mono(201), Mono(300));
        assert!(!host.has_room(1, 3), "only time ends a halt");
        host.answered(until, until);
        assert!(host.has_room(2, 3) && host.parts(until) == 1);
        host.refused(until, Mono(3_000_000), until);
        let later = Mono(4_000_000);
        host.answered(Mono(3_000_000), later);
        host.refused(later, Mono(8_000_000), later);
        assert_eq!(host.halt.until, until, "others are answered well meanwhile");
        host.refused(later, Mono(9_000_000), Mono(5_000_000));
        assert_eq!(host.halt.until, Mono(9_000_000));
    }

    #[test]
    fn a_halt_is_not_shortened_and_ends_within_a_day() {
        let mut host = Host::default();
        host.halt(Duration::from_secs(300), false, Mono(0));
        host.halt(Duration::from_secs(2), true, Mono(0));
        assert_eq!(host.halt.until, Mono(300_000_000));
        host.halt(Duration::MAX, false, Mono(0));
        assert_eq!(host.halt.until, Mono(0) + HALT_MAX);
    }
}
