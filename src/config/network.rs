//! Networks: addresses that begin with the same bits, as CIDR writes them (RFC 4632, 3.1).
//!
//! Owns their form and who is in one. It never looks a name up.

use super::fault::quoted;
use std::fmt;
use std::net::IpAddr;

/// What a network is written like.
pub(super) const EXPECTED: &str = "an address or a network like \"10.0.0.0/8\"";

/// See the module's page. A single address has all of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// `10.0.0.0/8`, `fd00::/8`, or an address, which stands for itself.
    pub fn parse(text: &str) -> Option<Network> {
        let Some((address, bits)) = text.split_once('/') else {
            let address = text.parse::<IpAddr>().ok()?;
            return Some(address.to_canonical().into());
        };
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        match (address, address.to_canonical()) {
            _ if bits > length(address) => None,
            // IPv4 in the clothes of IPv6 (RFC 4291, 2.5.5.2), as which no peer is known.
            (IpAddr::V6(_), IpAddr::V4(inner)) if bits >= 96 => Some(Network {
                address: inner.into(),
                bits: bits - 96,
            }),
            _ => Some(Network { address, bits }),
        }
    }

    /// The same for a key of the file: in its one spelling, or what was expected and found.
    pub(super) fn form(text: &str) -> Result<String, String> {
        let network = Network::parse(text).map(|network| network.to_string());
        network.ok_or_else(|| format!("expected {EXPECTED}, found {}", quoted(text)))
    }

    /// Whether an address is one of these. One of IPv4 is in no network of IPv6, nor the other way
    /// round.
    pub fn holds(&self, address: IpAddr) -> bool {
        let shift = u32::from(length(address).saturating_sub(self.bits));
        match (address, self.address) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let different = address.to_bits() ^ network.to_bits();
                different.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                let different = address.to_bits() ^ network.to_bits();
                different.checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// Whether every address of its family is in it.
    pub fn is_everything(&self) -> bool {
        self.bits == 0
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network {
            address,
            bits: length(address),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == length(self.address) {
            return self.address.fmt(f);
        }
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Bits of an address of this family.
fn length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let long = Network::form("192.0.2.1/32");
        assert_eq!(long.as_deref(), Ok("192.0.2.1"));
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/",
            "h",
            "[::1]",
        ] {
            let message = format!("expected {EXPECTED}, found {text:?}");
            assert_eq!(Network::form(text), Err(message));
        }
    }
}
