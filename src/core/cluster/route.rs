//! The way to the engine: the configured address, and the node of a Redis cluster that has the keys.
//!
//! All keys of marketd are in one slot. So a node that replies `MOVED slot host:port` to one command names
//! the node for all of them. [`EngineRoute`] leads to that node from then on, with the same user and
//! password. When the node fails, the configured address is tried again. The two take turns, because either
//! may be the one that knows where the keys are.

use crate::config::EngineUrl;
use crate::core::upstream::Route;

/// How often nodes may redirect this one before one of them serves. A stable cluster redirects once; one more
/// redirect happens while a slot moves.
const MOST_HOPS: u8 = 4;

/// Longest name of a host (RFC 1035).
const MOST_HOST: usize = 253;

/// Host and port.
type Place = (String, u16);

/// See the module's page.
pub struct EngineRoute {
    /// Where it leads now.
    pub url: EngineUrl,
    configured: Place,
    /// Where it leads after the next failure, unless only one place is known.
    other: Option<Place>,
    hops: u8,
}

impl EngineRoute {
    /// To the configured address.
    pub fn new(url: EngineUrl) -> EngineRoute {
        let configured = (url.host.clone(), url.port);
        EngineRoute { url, configured, other: None, hops: 0 }
    }

    /// Where it leads now, as a [`Route`] without a proxy.
    pub fn direct(&self) -> Route {
        let (host, port) = (self.url.host.clone(), self.url.port);
        Route { host, port, is_tls: self.url.tls, proxy: None }
    }

    /// The engine there is up.
    pub fn arrived(&mut self) {
        self.hops = 0;
    }

    /// The engine cannot be used. If the host has no other address to try, the other place has its turn.
    /// Returns true if the route leads elsewhere now.
    pub fn failed(&mut self, has_other_address: bool) -> bool {
        self.hops = 0;
        let other = self.other.take_if(|_| !has_other_address);
        let leads_elsewhere = other.is_some();
        if let Some(other) = other {
            self.other = Some(self.lead_to(other));
        }
        leads_elsewhere
    }

    /// The engine has said where the keys are: `slot host:port`.
    pub fn moved(&mut self, told: &[u8]) -> Result<(), &'static str> {
        let place = parse(told, &self.url.host).ok_or("the engine names no node for the keys")?;
        self.hops += 1;
        if self.hops > MOST_HOPS {
            return Err("nodes of its cluster send each other the keys");
        }
        self.other = Some(self.configured.clone()).filter(|it| *it != place);
        self.lead_to(place);
        Ok(())
    }

    /// Leads to a place from now on. Returns the former one.
    fn lead_to(&mut self, (host, port): Place) -> Place {
        let former = (std::mem::replace(&mut self.url.host, host), self.url.port);
        self.url.port = port;
        former
    }
}

/// Reads `slot host:port`. An empty host means the present `host`.
fn parse(told: &[u8], host: &str) -> Option<Place> {
    let (_, place) = std::str::from_utf8(told).ok()?.split_once(' ')?;
    let (named, port) = place.trim_end().rsplit_once(':')?;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:".contains(char);
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let named = named.trim_start_matches('[').trim_end_matches(']');
    let is_host = named.len() <= MOST_HOST && named.chars().all(is_plain);
    let named = if named.is_empty() { host } else { named };
    is_host.then(|| (named.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> EngineRoute {
        EngineRoute::new(
            EngineUrl::parse("rediss://u:p@10.0.0.1:7000/0").expect("it is well-formed"),
        )
    }

    fn port(route: &EngineRoute) -> u16 {
        route.url.port
    }

    #[test]
    fn a_node_that_has_the_keys_is_read_in_all_its_forms() {
        let check = |told: &str, expected: Option<(&str, u16)>| {
            let expected = expected.map(|(host, port)| (host.to_string(), port));
            assert_eq!(parse(told.as_bytes(), "here"), expected, "{told:?}");
        };
        check("3999 10.0.0.2:7001", Some(("10.0.0.2", 7001)));
        check("3999 :7001", Some(("here", 7001)));
        check("3999 Redis-2.example:7001", Some(("redis-2.example", 7001)));
        check("3999 2001:db8::1:7001", Some(("2001:db8::1", 7001)));
        check("3999 [2001:db8::1]:7001", Some(("2001:db8::1", 7001)));
        for told in ["", "3999", "3999 ", "3999 ?:7001", "3999 h", "3999 h:0", "3999 h:70000"] {
            check(told, None);
        }
        for told in ["3999 a b:1", "3999 a@b:1", "3999 \u{e9}:1"] {
            check(told, None);
        }
        check(&format!("1 {}:1", "x".repeat(254)), None);
    }

    #[test]
    fn a_place_that_fails_takes_turns_with_the_configured_one() {
        let mut route = route();
        assert_eq!(route.moved(b"1 10.0.0.2:7001"), Ok(()));
        route.arrived();
        assert!(!route.failed(true), "it has another address");
        let ports = [0; 4].map(|_| (route.failed(false), port(&route)));
        assert_eq!(ports, [7000, 7001, 7000, 7001].map(|port| (true, port)));
        assert_eq!(route.url.to_string(), "rediss://***@10.0.0.2:7001/0");
    }
}
