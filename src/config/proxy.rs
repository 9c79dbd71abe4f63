//! Proxies and networks. The HTTP proxy of each source comes from the environment variables that most
//! programs read. A network is the set of all addresses that begin with the same bits, in CIDR notation (RFC
//! 4632, 3.1). Networks say which proxies in front are trusted, and which addresses are reached without a
//! proxy.
//!
//! This module parses the address of a proxy, and the exceptions in `NO_PROXY`. The caller passes in a
//! function that looks up a variable.
//!
//! The address of a proxy may have a password, so no message repeats it: faults name the variable,
//! [`Proxy`] prints as host and port, and a printed configuration has no proxy.

use super::fault::ConfigFault;
use super::url::{Authority, Credentials, Url, in_brackets, split_port};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// What the value of a variable must be.
const EXPECTED: &str = "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";

/// Variables for https addresses. The first one that is not empty is used, so lower case wins, as
/// in curl and most other programs.
const FOR_HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// Variables for http addresses.
const FOR_HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// Addresses that are reached directly.
const EXCEPT: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// An HTTP proxy that opens tunnels (CONNECT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User and password for the proxy.
    pub credentials: Option<Credentials>,
}

impl fmt::Display for Proxy {
    /// Host and port, without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", in_brackets(&self.host), self.port)
    }
}

impl Proxy {
    /// Parses the value of a variable. The error says what was expected, and repeats nothing of the
    /// value.
    fn parse(text: &str) -> Result<Proxy, String> {
        let refused = |why: &str| format!("{EXPECTED}{why}");
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(refused(" (only HTTP proxies are supported)"));
        }
        let Authority { host, port, credentials, .. } = Authority::parse(rest).map_err(refused)?;
        Ok(Proxy { host, port: port.unwrap_or(80), credentials })
    }
}

/// The proxies that the environment names.
pub(super) struct Proxies {
    /// The variable that counts for https addresses, and its value. The value is parsed only when a source
    /// needs the proxy, because it may be in a form that only other programs know.
    https: Option<(&'static str, String)>,
    /// The variable that counts for http addresses, and its value.
    http: Option<(&'static str, String)>,
    exceptions: Vec<Exception>,
}

/// An entry of `NO_PROXY`: a place, and perhaps the only port that is meant.
struct Exception(Place, Option<u16>);

enum Place {
    /// `*`
    Any,
    /// A name and every name below it.
    Name(String),
    /// An address, or several.
    Network(Network),
}

impl Proxies {
    /// Looks up every variable.
    pub(super) fn read(mut variable: impl FnMut(&'static str) -> Option<String>) -> Proxies {
        let mut first = |names: &[&'static str]| {
            names.iter().find_map(|&name| {
                let text = variable(name)?.trim().to_string();
                (!text.is_empty()).then_some((name, text))
            })
        };
        let except = first(&EXCEPT).map_or(String::new(), |(_, text)| text);
        Proxies {
            https: first(&FOR_HTTPS),
            http: first(&FOR_HTTP),
            exceptions: (except.split([',', ' ', '\t'])).filter_map(Exception::parse).collect(),
        }
    }

    /// The proxy for an address; `None` if it is reached directly.
    pub(super) fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, ConfigFault> {
        let variable = if url.https { &self.https } else { &self.http };
        let is_direct = is_loopback(&url.host) || self.exceptions.iter().any(|it| it.holds(url));
        let Some((name, text)) = variable.as_ref().filter(|_| !is_direct) else {
            return Ok(None);
        };
        let proxy = Proxy::parse(text).map_err(|message| ConfigFault::by(name, message))?;
        Ok(Some(proxy))
    }
}

impl Exception {
    /// `host`, `.suffix`, `*.suffix`, an address, a network (`10.0.0.0/8`) or `*`, each with or
    /// without a port. Any other entry is ignored, as in other programs.
    fn parse(text: &str) -> Option<Exception> {
        let text = text.to_ascii_lowercase();
        // Networks are tried first, because `split_port` would take a colon of an IPv6 address without
        // brackets as the start of a port.
        if let Some(network) = Network::parse(&text) {
            return Some(Exception(Place::Network(network), None));
        }
        let (host, port) = split_port(&text).filter(|_| !text.contains('/'))?;
        let name = host.strip_prefix('*').unwrap_or(host);
        let name = name.strip_prefix('.').unwrap_or(name).trim_end_matches('.');
        let place = match host.parse::<IpAddr>() {
            Ok(address) => Place::Network(address.into()),
            Err(_) if host == "*" => Place::Any,
            Err(_) if name.is_empty() => return None,
            Err(_) => Place::Name(name.to_string()),
        };
        Some(Exception(place, port))
    }

    fn holds(&self, url: &Url) -> bool {
        let Exception(place, port) = self;
        let fits = match (place, url.host.parse()) {
            (Place::Any, _) => true,
            (Place::Network(network), Ok(address)) => network.holds(address),
            (Place::Name(name), Err(_)) => {
                let below = (url.host.trim_end_matches('.')).strip_suffix(name.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            _ => false,
        };
        fits && port.is_none_or(|port| port == url.port)
    }
}

/// True for this machine itself. It is never reached through a proxy: for the proxy, the same name means the
/// proxy's machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// A network, or a single address, which is a network with all of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8` or a single address.
    pub fn parse(text: &str) -> Option<Network> {
        let Ok(network) = text.parse::<IpNet>() else {
            return Some(text.parse::<IpAddr>().ok()?.to_canonical().into());
        };
        // Addresses of peers are canonical: an IPv4 address is never written as IPv6 (RFC 4291, 2.5.5.2).
        match network.addr().to_canonical() {
            IpAddr::V4(inner) if network.prefix_len() >= 96 => {
                let network = IpNet::new(inner.into(), network.prefix_len() - 96);
                network.ok().map(Network)
            }
            _ => Some(Network(network)),
        }
    }

    /// True if the address is in this network. An IPv4 address is in no IPv6 network, and vice
    /// versa.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// True if every address of the family is in this network.
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
    fn proxies_are_read_and_faults_keep_their_secrets() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let found = Proxy::parse(text);
            let shown = found.as_ref().map(|proxy| {
                let credentials = proxy.credentials.as_ref();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let said = credentials.map(|it| [text(&it.user), text(&it.password)].join(" "));
                (proxy.to_string(), said.unwrap_or_default())
            });
            let expected = expected
                .map(|(place, said)| (place.to_string(), said.to_string()))
                .map_err(|why| format!("{EXPECTED}{why}"));
            assert_eq!(shown.map_err(Clone::clone), expected, "{text}");
            assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        };
        check("http://proxy:3128", Ok(("proxy:3128", "")));
        check("proxy.corp:3128/", Ok(("proxy.corp:3128", "")));
        check("HTTP://10.0.0.1", Ok(("10.0.0.1:80", "")));
        check("http://[fe80::1]:8080", Ok(("[fe80::1]:8080", "")));
        check("http://me:hunter2@proxy:1", Ok(("proxy:1", "me hunter2")));
        check("me:hunter2@proxy:1", Ok(("proxy:1", "me hunter2")));
        check("me@proxy:1", Ok(("proxy:1", "me ")));
        check("http://m%40e:hunter2%2f@p:1", Ok(("p:1", "m@e hunter2/")));
        check("http://me:hunter2@home@p:1", Ok(("p:1", "me hunter2@home")));
        check("http://me:hunter2%zz@p:1", Err(" (user and password hold a bad escape)"));
        check("http://me:hunter2/@p:1", Err(" (a slash in user or password is written %2F)"));
        for text in ["", "http://", "http://me:hunter2@", "me:hunter2", "http://a b", "p:0"] {
            check(text, Err(""));
        }
        for text in ["socks5://me:hunter2@p:1", "https://me:hunter2@p"] {
            check(text, Err(" (only HTTP proxies are supported)"));
        }
    }

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_string())
        })
    }

    #[test]
    fn variables_count_by_scheme_and_in_their_order() {
        let check = |variables: &[(&str, &str)], url: &str, expected: Option<&str>| {
            let url = Url::parse(url).expect("well-formed");
            let proxy = proxies(variables).proxy_for(&url).expect("well-formed");
            let found = proxy.map(|proxy| proxy.to_string());
            assert_eq!(found.as_deref(), expected, "{variables:?} {url}");
        };
        let (plain, secure) = ("http://a.com", "https://a.com");
        let all = [
            ("ALL_PROXY", "all:1"),
            ("all_proxy", "all:2"),
            ("HTTP_PROXY", "http:1"),
            ("http_proxy", "http:2"),
            ("HTTPS_PROXY", "https:1"),
            ("https_proxy", "https:2"),
        ];
        check(&[], secure, None);
        check(&all[..1], plain, Some("all:1"));
        check(&all[..2], secure, Some("all:2"));
        check(&all[..3], secure, Some("all:2"));
        check(&all[..3], plain, Some("http:1"));
        check(&all, plain, Some("http:2"));
        check(&all[..5], secure, Some("https:1"));
        check(&all, secure, Some("https:2"));
        check(&[("https_proxy", " "), ("HTTPS_PROXY", "p:1")], secure, Some("p:1"));
        for host in ["127.0.0.1", "127.9.9.9:9", "localhost", "a.localhost", "[::1]"] {
            check(&all, &format!("https://{host}"), None);
            check(&all, &format!("http://{host}"), None);
        }
        check(&all, "https://[::ffff:127.0.0.1]", None);
    }

    #[test]
    fn exceptions_are_names_suffixes_addresses_networks_ports_or_all() {
        let check = |except: &str, url: &str, excepted: bool| {
            let url = Url::parse(url).expect("well-formed");
            let proxies = proxies(&[("ALL_PROXY", "p:1"), ("NO_PROXY", except)]);
            let proxy = proxies.proxy_for(&url).expect("well-formed");
            assert_eq!(proxy.is_none(), excepted, "{except} {url}");
        };
        let url = "https://api.okx.com";
        check("", url, false);
        check("*", url, true);
        check("a.com, api.okx.com", url, true);
        check("a.com API.OKX.COM.", url, true);
        check("okx.com", url, true);
        check(".okx.com", url, true);
        check("*.okx.com", url, true);
        check("kx.com", url, false);
        check("www.api.okx.com", url, false);
        check("api.okx.com:443", url, true);
        check("api.okx.com:80", url, false);
        check("*:443", url, true);
        check(",,:, ., *., [, a/b, 10.0.0.0/x", url, false);
        check("10.1.2.3", "http://10.1.2.3:99", true);
        check("10.1.2.3:99", "http://10.1.2.3:99", true);
        check("10.1.2.3:98", "http://10.1.2.3:99", false);
        check("10.0.0.0/8", "http://10.1.2.3", true);
        check("10.0.0.0/16", "http://10.1.2.3", false);
        check("0.0.0.0/0", "http://10.1.2.3", true);
        check("0.0.0.0/33", "http://10.1.2.3", false);
        check("0.0.0.0/0", "http://[fe80::1]", false);
        check("2.3", "http://10.1.2.3", false);
        check("fe80::1", "http://[fe80::1]", true);
        check("[fe80::1]:80", "http://[fe80::1]", true);
        check("fe80::/10", "http://[fe80::1]", true);
    }

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
        let long = NETWORK.parse("192.0.2.1/32");
        assert_eq!(long, Ok(Network::from(IpAddr::from([192, 0, 2, 1]))));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "h", "[::1]"] {
            let message = format!("expected {}, found {text:?}", NETWORK.expected);
            assert_eq!(NETWORK.parse(text), Err(message));
        }
    }
}
