//! Decides whether a request is served: finds the client address that it counts for, and asks the rate
//! limiter.
//!
//! Owns the trusted proxies and the rate limiter. By default, no proxy is trusted and no rate is limited: a
//! request then costs one check. `/health` and OPTIONS are free. It never counts connections: a connection
//! counts for the address of the peer itself.

use crate::config::{Config, Limits};
use crate::core::Context;
use crate::core::api::Endpoint;
use crate::core::clients::rate_limiter::RateLimiter;
use crate::http::{Fields, Quota, Request};
use crate::log_targets::HTTP;
use crate::time::Mono;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How often the log says that addresses are forgotten.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub struct Admission {
    trusted: Box<[IpNet]>,
    rates: RateLimiter,
    /// When the log may say again that addresses are forgotten.
    next_warning: Mono,
}

impl Admission {
    /// As configured.
    pub fn new(config: &Config) -> Admission {
        Admission {
            trusted: config.trusted_proxies.clone().into(),
            rates: RateLimiter::new(&config.limits),
            next_warning: Mono(0),
        }
    }

    /// Takes in a new configuration. What each address has left stays, unless the limit changes.
    pub fn reconfigure(&mut self, old: &Limits, config: &Config) {
        let of = |it: &Limits| (it.requests_per_minute, it.request_burst, it.request_addresses);
        if of(old) != of(&config.limits) {
            self.rates = RateLimiter::new(&config.limits);
        }
        self.trusted = config.trusted_proxies.clone().into();
    }

    /// Admits a request of this peer, or not. Returns the client address that the request counts for, if
    /// known, and what that address has left, if there is a limit.
    pub fn admit(
        &mut self,
        peer: Option<IpAddr>,
        request: &Request<'_>,
        endpoint: Endpoint,
        cx: &mut Context,
    ) -> (Option<IpAddr>, Option<Quota>) {
        if self.is_free(peer) {
            return (peer, None);
        }
        let client = self.client(peer, request.fields);
        // A probe that is refused would take the service out of its balancer, and a page whose preflight
        // is refused could not read why. Neither costs more than a 429 does.
        let is_limited = self.rates.is_on() && endpoint.is_limited();
        let Some(address) = client.filter(|_| is_limited) else {
            return (client, None);
        };
        let (quota, forgot) = self.rates.take(address, cx.now.mono);
        if forgot {
            cx.stats.http.rates_forgotten += 1;
            if cx.now.mono >= self.next_warning {
                self.next_warning = cx.now.mono + WARN_EVERY;
                let limit = cx.config.limits.request_addresses;
                log::warn!(target: HTTP, "rate limit forgot addresses limit={limit}");
            }
        }
        cx.stats.http.rate_limited += u64::from(quota.is_used_up);
        (client, Some(quota))
    }

    /// True if every request of this peer is admitted, and counts for the peer itself.
    pub fn is_free(&self, peer: Option<IpAddr>) -> bool {
        peer.is_some() && self.trusted.is_empty() && !self.rates.is_on()
    }

    /// The address that a request counts for: the peer, or the client that trusted proxies name. Each
    /// proxy appends the address that it got the request from. So the list is read from its end, while
    /// the proxy that added the entry is trusted; anybody may have made up what is before. If a trusted proxy
    /// says nothing, or something else than an address, the request counts for the proxy.
    ///
    /// A peer without an address is a front end on a Unix socket. The mode of the socket's file has let it
    /// in, so it is trusted. If it names no client, the request counts for nobody.
    fn client(&self, peer: Option<IpAddr>, fields: Fields<'_>) -> Option<IpAddr> {
        let mut client = peer.map(|peer| peer.to_canonical());
        if client.is_some_and(|client| !self.trusts(client)) {
            return client;
        }
        let is_list = |name: &[u8]| name.eq_ignore_ascii_case(b"x-forwarded-for");
        let lists: Vec<&[u8]> =
            (fields.filter(|(name, _)| is_list(name))).map(|(_, list)| list).collect();
        let members = lists.iter().rev();
        let members = members.flat_map(|list| list.rsplit(|it| *it == b','));
        let members = members.map(|member| member.trim_ascii());
        for member in members.filter(|member| !member.is_empty()) {
            let Some(address) = read_address(member) else {
                break;
            };
            client = Some(address);
            if !self.trusts(address) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// An address as proxies write it: plain, in brackets, or with a port.
fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let bare = (text.strip_prefix('[')).and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    let address = address.or_else(|| text.parse().ok().map(|it: SocketAddr| it.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::request;

    #[track_caller]
    fn check(peer: &str, lines: &[&str], expected: &str) {
        let trusted = ["10.0.0.0/8", "::1", "2001:db8:1::/48"];
        let networks = trusted.iter().filter_map(|text| crate::config::network(text));
        let config = Config { trusted_proxies: networks.collect(), ..Config::default() };
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let request = request(raw.as_bytes());
        // A Unix socket's peer has no address.
        let found = Admission::new(&config).client(peer.parse().ok(), request.fields);
        let found = found.map_or("-".to_string(), |client| client.to_string());
        assert_eq!(found, expected, "{peer} {lines:?}");
    }

    #[test]
    fn nobody_but_a_trusted_proxy_says_whose_request_it_is() {
        check("192.0.2.1", &[], "192.0.2.1");
        check("unix", &[], "-");
        check("unix", &["X-Forwarded-For: unknown"], "-");
        check("unix", &["X-Forwarded-For: 192.0.2.8, 192.0.2.9"], "192.0.2.9");
        check("192.0.2.1", &["X-Forwarded-For: 192.0.2.9"], "192.0.2.1");
        check("::ffff:192.0.2.1", &["X-Forwarded-For: 192.0.2.9"], "192.0.2.1");
        check("10.0.0.1", &["x-forwarded-FOR: 192.0.2.9"], "192.0.2.9");
        check("::ffff:10.0.0.1", &["X-Forwarded-For: 192.0.2.9"], "192.0.2.9");
        check("::1", &["X-Forwarded-For: 2001:db8::9"], "2001:db8::9");
    }

    #[test]
    fn what_a_client_has_said_itself_is_not_believed() {
        let list = "X-Forwarded-For: 198.51.100.1, 192.0.2.9";
        check("10.0.0.1", &[list], "192.0.2.9");
        check("10.0.0.1", &["X-Forwarded-For: rubbish, 192.0.2.9"], "192.0.2.9");
        // Behind two proxies, and over two lines.
        let list = "X-Forwarded-For: 10.9.9.9, 192.0.2.9, 2001:db8:1::7,10.0.0.2";
        check("10.0.0.1", &[list], "192.0.2.9");
        let first = "X-Forwarded-For: 198.51.100.1, 192.0.2.9";
        check("10.0.0.1", &[first, "X-Forwarded-For: 10.0.0.2"], "192.0.2.9");
    }

    #[test]
    fn a_trusted_proxy_that_names_nobody_speaks_for_itself() {
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For:"], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For: unknown"], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For: 192.0.2.9, _hidden"], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For: 192.0.2.9, x, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &["X-Forwarded-For: 192.0.2.256"], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For: 10.0.0.3, 10.0.0.2"], "10.0.0.3");
    }

    #[test]
    fn addresses_are_read_as_proxies_write_them() {
        for (text, expected) in [
            ("192.0.2.9:4711", "192.0.2.9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:4711", "2001:db8::9"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            (" ,, 192.0.2.9 ,", "192.0.2.9"),
        ] {
            let line = format!("X-Forwarded-For: {text}");
            check("10.0.0.1", &[&line], expected);
        }
    }
}
