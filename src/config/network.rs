//! Networks: addresses that begin with the same bits, in CIDR notation (RFC 4632, 3.1).

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// A network, or a single address, which is a network with all of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8` or a single address.
    pub fn parse(text: &str) -> Option<Network> {
        let Ok(network) = text.parse::<IpNet>() else {
            return Some(text.parse::<IpAddr>().ok()?.to_canonical().into());
        };
        // Addresses of peers are canonical: one of IPv4 is never written as IPv6 (RFC 4291, 2.5.5.2).
        match network.addr().to_canonical() {
            IpAddr::V4(inner) if network.prefix_len() >= 96 => {
                let network = IpNet::new(inner.into(), network.prefix_len() - 96);
                network.ok().map(Network)
            }
            _ => Some(Network(network)),
        }
    }

    /// True if an address is in it. An IPv4 address is in no IPv6 network, and the reverse.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// True if every address of its family is in it.
    pub(super) fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network(address.into())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::forms::NETWORK;

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        let check = |network: &str, address: &str, expected: bool| {
            let parsed = Network::parse(network).expect("a network");
            assert_eq!(parsed.to_string(), network);
            let address = address.parse().expect("an address");
            assert_eq!(parsed.holds(address), expected, "{network} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "::1", false);
        check("192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.2/31", "192.0.2.3", true);
        check("fd00::/8", "fdff::1", true);
        check("fd00::/8", "fe80::1", false);
        check("::/0", "2001:db8::1", true);
        check("::1", "::1", true);
        check("::1", "::", false);
    }

    #[test]
    fn what_is_no_network_is_told_with_what_was_expected() {
        let long = NETWORK.parse("192.0.2.1/32");
        assert_eq!(long, Ok(Network::from(IpAddr::from([192, 0, 2, 1]))));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "h", "[::1]"] {
            let message = format!("expected {}, found {text:?}", NETWORK.expected);
            assert_eq!(NETWORK.parse(text), Err(message));
        }
    }
}
