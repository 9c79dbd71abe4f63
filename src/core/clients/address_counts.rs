//! The number of connections of each client address, and the forms in which an address is counted and logged.
//!
//! Owns one count for each address that is connected, and none for any other address. So the table is never
//! larger than the number of connections. It never decides who is refused.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// See the module's page.
#[derive(Debug, Default)]
pub struct AddressCounts(HashMap<IpAddr, usize>);

impl AddressCounts {
    /// The number of connections of this address; none if it is unknown.
    pub fn count(&self, address: Option<IpAddr>) -> usize {
        address.and_then(|address| self.0.get(&network(address)).copied()).unwrap_or(0)
    }

    /// The address with the most connections.
    pub fn most(&self) -> Option<IpAddr> {
        self.0.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address)
    }

    /// Counts one more, if the address is known.
    pub fn enter(&mut self, address: Option<IpAddr>) {
        if let Some(address) = address {
            *self.0.entry(network(address)).or_insert(0) += 1;
        }
    }

    /// Counts one less.
    pub fn leave(&mut self, address: Option<IpAddr>) {
        if let Some(address) = address.map(network)
            && let Some(count) = self.0.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&address);
            }
        }
    }
}

/// What an address counts as: an IPv4 address as itself, also if it is mapped into IPv6; an IPv6 address
/// as its /64, which is what one subscriber has (RFC 6177, 2).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

/// The address of a client in the log.
pub fn shown(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "-".to_string(), |peer| peer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_counted_until_its_last_connection_has_left() {
        let at = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
        let mut counts = AddressCounts::default();
        counts.enter(at("192.0.2.1"));
        counts.enter(at("::ffff:192.0.2.1"));
        counts.enter(at("2001:db8::1"));
        counts.enter(at("2001:db8::ffff:0:0:2"));
        assert_eq!(counts.count(at("192.0.2.1")), 2);
        assert_eq!(counts.count(at("192.0.2.2")), 0);
        assert_eq!(counts.count(at("2001:db8::3")), 2);
        assert_eq!(counts.count(at("2001:db8:0:1::1")), 0);
        counts.leave(at("192.0.2.1"));
        counts.leave(at("192.0.2.1"));
        assert_eq!(counts.0.len(), 1);
        // Who never came cannot leave.
        counts.leave(at("192.0.2.1"));
        assert_eq!(counts.count(at("192.0.2.1")), 0);
    }
}
