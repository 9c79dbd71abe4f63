//! The rate limiter: how many requests each client address has left.
//!
//! Each address has a bucket of requests that fills at an even pace. An address without a place has a full
//! bucket, so only buckets that are not full need a place. Owns a fixed number of places. A hash with a
//! secret of this run selects eight places for an address. So a look-up takes the same time however many
//! addresses there are.
//!
//! If all eight places are taken, the bucket that is nearest to full is dropped. So no client is refused
//! because of others, however many addresses somebody has, and the address that has used up most is
//! forgotten last. What a flood of addresses gains, a few requests each, is counted. The alternative, one
//! bucket for all addresses that find no place, would let the flood lock them out.
//!
//! It never knows what a request is for, and never responds.

use crate::config::Limits;
use crate::core::clients::address_counts::network;
use crate::http::Quota;
use crate::time::Mono;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};

/// Places for one address: four lines of a processor's cache.
const WAYS: usize = 8;

const MINUTE_US: u64 = 60_000_000;

/// See the module's page.
#[derive(Debug)]
pub struct RateLimiter {
    /// Empty if there is no limit.
    sets: Box<[[Bucket; WAYS]]>,
    secret: RandomState,
    /// Microseconds in which one request comes back.
    each_us: u64,
    /// Requests of a full bucket.
    burst: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    address: IpAddr,
    /// When it will be full.
    full_at: Mono,
}

impl RateLimiter {
    /// A limiter in which every bucket is full, or no limit.
    pub fn new(limits: &Limits) -> RateLimiter {
        let pace = u64::from(limits.requests_per_minute);
        let sets = match pace {
            0 => 0,
            _ => limits.request_addresses.div_ceil(WAYS),
        };
        let free = Bucket { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), full_at: Mono(0) };
        RateLimiter {
            sets: vec![[free; WAYS]; sets].into_boxed_slice(),
            secret: RandomState::new(),
            // Rounded up: the pace is never above the configured one.
            each_us: MINUTE_US.div_ceil(pace.max(1)),
            burst: limits.request_burst,
        }
    }

    /// True if there is a limit.
    pub fn is_on(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Takes one request out of an address's bucket, unless it is empty. Returns what is left, and whether
    /// another address was forgotten for this one.
    pub fn take(&mut self, address: IpAddr, now: Mono) -> (Quota, bool) {
        let (each_us, limit) = (self.each_us, self.burst);
        let whole_us = u64::from(limit) * each_us;
        let (bucket, forgot) = self.bucket(network(address), now);
        let taken_us = bucket.full_at.0.saturating_sub(now.0) + each_us;
        let is_used_up = taken_us > whole_us;
        let reset_us = if is_used_up { taken_us - whole_us } else { taken_us };
        if !is_used_up {
            bucket.full_at = Mono(now.0 + taken_us);
        }
        let remaining = (whole_us.saturating_sub(taken_us) / each_us) as u32;
        (Quota { limit, remaining, reset_s: seconds(reset_us), is_used_up }, forgot)
    }

    /// The bucket of an address, and whether another one that was not full was dropped for it.
    fn bucket(&mut self, address: IpAddr, now: Mono) -> (&mut Bucket, bool) {
        let hash = self.secret.hash_one(address);
        let set = (hash % self.sets.len() as u64) as usize;
        let set = &mut self.sets[set];
        let own = set.iter().position(|bucket| bucket.address == address);
        let place = own.unwrap_or_else(|| {
            let fullest = (0..WAYS).min_by_key(|at| set[*at].full_at);
            fullest.expect("a set has several places")
        });
        let bucket = &mut set[place];
        if own.is_some() {
            return (bucket, false);
        }
        let forgot = bucket.full_at > now;
        *bucket = Bucket { address, full_at: now };
        (bucket, forgot)
    }
}

/// In whole seconds, rounded up, so that it is always long enough.
fn seconds(us: u64) -> u32 {
    u32::try_from(us.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::HashMap;
    use std::net::Ipv6Addr;

    fn rates(per_minute: u32, burst: u32, addresses: usize) -> RateLimiter {
        RateLimiter::new(&Limits {
            requests_per_minute: per_minute,
            request_burst: burst,
            request_addresses: addresses,
            ..Limits::default()
        })
    }

    fn at(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn v4(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 | number).into()
    }

    #[test]
    fn one_subscriber_has_one_bucket() {
        let mut rates = rates(1, 2, 64);
        let mut left = |text: &str| rates.take(at(text), Mono(0)).0.remaining;
        assert_eq!(left("192.0.2.1"), 1);
        assert_eq!(left("::ffff:192.0.2.1"), 0);
        assert_eq!(left("192.0.2.2"), 1);
        assert_eq!(left("2001:db8::1"), 1);
        assert_eq!(left("2001:db8::ffff:0:0:1"), 0);
        assert_eq!(left("2001:db8:0:1::1"), 1);
    }

    /// However requests come, an address gets at most a burst and its pace; and where everybody has
    /// a place, at least that.
    #[test]
    fn an_address_gets_its_burst_and_its_pace_and_no_more() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let (pace, burst) = (1 + rng.below(600) as u32, 1 + rng.below(20) as u32);
            // Four addresses never fill eight places.
            let mut rates = rates(pace, burst, 64);
            let each_us = MINUTE_US.div_ceil(u64::from(pace));
            let mut now = Mono(1 + rng.below(1_000_000));
            // By address: requests that are left, in parts of `each_us`, and as of when.
            let mut model: HashMap<u32, (u64, Mono)> = HashMap::new();
            for _ in 0..2000 {
                let step = rng.below(2 * each_us);
                now = Mono(now.0 + step / 4);
                let who = rng.below(4) as u32;
                let whole = u64::from(burst) * each_us;
                let (left, then) = model.get(&who).copied().unwrap_or((whole, now));
                let left = (left + (now.0 - then.0)).min(whole);
                let (quota, _) = rates.take(v4(who), now);
                assert_eq!(!quota.is_used_up, left >= each_us, "seed {seed}");
                let left = if left >= each_us { left - each_us } else { left };
                assert_eq!(u64::from(quota.remaining), left / each_us);
                if quota.is_used_up {
                    let missing = each_us - left;
                    assert!(u64::from(quota.reset_s) * 1_000_000 >= missing, "seed {seed}");
                }
                model.insert(who, (left, now));
            }
        }
    }

    #[test]
    fn a_flood_of_addresses_neither_grows_the_table_nor_locks_anybody_out_nor_goes_unnoticed() {
        let mut rates = rates(1, 5, 1024);
        let places = rates.sets.len() * WAYS;
        assert_eq!(places, 1024);
        // One that has used up all it had.
        while !rates.take(at("192.0.2.1"), Mono(1)).0.is_used_up {}
        let mut forgotten = 0;
        for number in 0..100_000u32 {
            let network = u128::from(0x2001_0db8_0000_0000 | u64::from(number)) << 64;
            let (quota, forgot) = rates.take(Ipv6Addr::from_bits(network).into(), Mono(2));
            assert!(!quota.is_used_up, "a newcomer is let in");
            forgotten += u32::from(forgot);
        }
        assert_eq!(rates.sets.len() * WAYS, places);
        // All but those that found a free place took one of somebody.
        assert!(forgotten as usize >= 100_000 - places, "{forgotten}");
        let (spent, _) = rates.take(at("192.0.2.1"), Mono(3));
        assert!(spent.is_used_up, "the flood has not washed it clean");
    }
}
