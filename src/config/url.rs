//! Addresses: of an exchange ([`Url`]), of the engine of a cluster ([`EngineUrl`]), and of the proxy in front
//! of an exchange ([`Proxy`]). Also networks.
//!
//! The HTTP proxy of each source comes from the environment variables that most programs read, with the
//! exceptions in `NO_PROXY`. The caller passes in a function that looks up a variable. The address of a proxy
//! may have a password, so no message repeats it: faults name the variable, [`Proxy`] prints as host and
//! port, and a printed configuration has no proxy.
//!
//! A network is the set of all addresses that begin with the same bits, in CIDR notation (RFC 4632, 3.1).
//! Networks say which proxies in front are trusted, and which addresses are reached without a proxy.

use super::fault::{ConfigFault, wrong};
use crate::time::digits;
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// User and password in an address. Neither is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user, without escapes.
    pub user: Vec<u8>,
    /// The password, without escapes; empty if none is given.
    pub password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The part of an address after the scheme: `USER:PASSWORD@HOST:PORT/PATH`.
pub(super) struct Authority<'t> {
    pub(super) credentials: Option<Credentials>,
    /// Lower case, an IPv6 address without its brackets.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// Without the slash in front of it.
    pub(super) path: &'t str,
}

impl Authority<'_> {
    /// Parses the part after the scheme. The error is a hint, and repeats nothing of the text, which may have
    /// a password.
    pub(super) fn parse(text: &str) -> Result<Authority<'_>, &'static str> {
        let (userinfo, rest) = match text.rsplit_once('@') {
            Some((userinfo, _)) if userinfo.contains('/') => {
                return Err(" (a slash in user or password is written %2F)");
            }
            Some((userinfo, rest)) => (Some(userinfo), rest),
            None => (None, text),
        };
        let credentials = match userinfo.map(|it| it.split_once(':').unwrap_or((it, ""))) {
            Some((user, password)) => match (unescaped(user), unescaped(password)) {
                (Some(user), Some(password)) => Some(Credentials { user, password }),
                _ => return Err(" (user and password hold a bad escape)"),
            },
            None => None,
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let place = split_port(place).filter(|(host, _)| host.chars().all(is_plain));
        let (host, port) = place.ok_or("")?;
        Ok(Authority { credentials, host: host.to_ascii_lowercase(), port, path })
    }
}

/// Splits off the scheme of an address. Returns false for the first of these schemes, and true for the
/// second. Also returns the rest of the address.
pub(super) fn scheme<'t>(text: &'t str, both: [&str; 2]) -> Option<(bool, &'t str)> {
    let (scheme, rest) = text.split_once("://")?;
    let at = both.iter().position(|known| scheme.eq_ignore_ascii_case(known))?;
    Some((at == 1, rest))
}

/// A text without its escapes (RFC 3986, 2.1). `None` if an escape is malformed.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

/// True for the characters of a host or a path.
fn is_plain(char: char) -> bool {
    char.is_ascii_graphic() && !"?#@\\".contains(char)
}

/// An `http` or `https` address without user, query and fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Url {
    /// True if TLS is used.
    pub https: bool,
    /// Host name or address, lower case, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path in front of every request: empty, or `/x` without a slash at its end.
    pub path: String,
}

impl Url {
    /// Parses an address. The error says what was expected and what was found.
    pub fn parse(text: &str) -> Result<Url, String> {
        let found = scheme(text, ["http", "https"]);
        let (https, rest) = found.ok_or_else(|| wrong("http://HOST or https://HOST", text))?;
        if !rest.chars().all(is_plain) {
            return Err(wrong("an address without user, query and fragment", text));
        }
        let expected = "HOST or HOST:PORT with a port from 1 to 65535";
        let Authority { host, port, path, .. } =
            Authority::parse(rest).map_err(|_| wrong(expected, rest))?;
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        let port = port.unwrap_or(if https { 443 } else { 80 });
        Ok(Url { https, host, port, path })
    }

    /// Host and port as in a `Host` field: the port only if it is not the default of the scheme (RFC
    /// 9110, 7.2).
    pub fn authority(&self) -> String {
        let host = in_brackets(&self.host);
        if self.port == if self.https { 443 } else { 80 } {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// The port of Redis and Valkey.
const PORT: u16 = 6379;

const ENGINE: &str = "expected redis://HOST or rediss://HOST, with USER:PASSWORD@, :PORT and /DATABASE \
    where needed";

/// The text that is printed instead of user and password. An address with this text is refused, because it is
/// not the real password.
const HIDDEN: &str = "***@";

/// The address of a Redis or Valkey. It prints without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl {
    /// True if TLS is used.
    pub tls: bool,
    /// Host name or address, lower case, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User and password; the user may be empty.
    pub credentials: Option<Credentials>,
    /// The number of the database.
    pub database: u16,
}

impl EngineUrl {
    /// Parses an address. The error says what was expected, and repeats nothing of the text, which may have a
    /// password.
    pub fn parse(text: &str) -> Result<EngineUrl, String> {
        let refused = |why: &str| format!("{ENGINE}{why}");
        let (tls, rest) = scheme(text, ["redis", "rediss"]).ok_or_else(|| refused(""))?;
        let Authority { credentials, host, port, path } =
            Authority::parse(rest).map_err(refused)?;
        if rest.starts_with(HIDDEN) {
            return Err(refused(" (*** stands for user and password that were not printed)"));
        }
        let database = match path {
            "" => 0,
            digits => digits.parse().map_err(|_| refused(" (a database is a number)"))?,
        };
        Ok(EngineUrl { tls, host, port: port.unwrap_or(PORT), credentials, database })
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let hidden = self.credentials.as_ref().map_or("", |_| HIDDEN);
        let (host, port) = (in_brackets(&self.host), self.port);
        write!(f, "{scheme}://{hidden}{host}:{port}/{}", self.database)
    }
}

/// A host as it is written in an address: IPv6 in brackets.
pub(super) fn in_brackets(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_string() }
}

/// The host, and the port if there is one. `None` if either is malformed.
pub(super) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_good = if authority.starts_with('[') {
        host.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        !host.is_empty() && !host.contains(['[', ']'])
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(digits(port.as_bytes()).filter(|port| *port > 0)?),
        None if port.is_empty() => None,
        _ => return None,
    };
    is_good.then_some((host, port))
}

/// What the value of a variable must be.
const EXPECTED: &str = "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";

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
    /// The variable for https addresses, and its value. The value is parsed only when a source needs the
    /// proxy, because it may be in a form that only other programs know.
    https: Option<(&'static str, String)>,
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
    /// Looks up every variable. The first one that is not empty is used, so lower case wins, as in curl and
    /// most other programs.
    pub(super) fn read(mut variable: impl FnMut(&'static str) -> Option<String>) -> Proxies {
        let mut first = |names: &[&'static str]| {
            names.iter().find_map(|&name| {
                let text = variable(name)?.trim().to_string();
                (!text.is_empty()).then_some((name, text))
            })
        };
        let except = first(&["no_proxy", "NO_PROXY"]).map_or(String::new(), |(_, text)| text);
        Proxies {
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
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
    /// `host`, `.suffix`, `*.suffix`, an address or `*`, each with or without a port; or a network
    /// (`10.0.0.0/8`). Any other entry is ignored, as in other programs.
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
pub struct Network(pub(super) IpNet);

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
    fn addresses_are_read_and_written_back() {
        let check = |text: &str, expected: Option<&str>| {
            let url = Url::parse(text).ok().map(|url| url.to_string());
            assert_eq!(url.as_deref(), expected, "{text}");
        };
        check("https://api.binance.com", Some("https://api.binance.com"));
        check("HTTP://Example.COM:8080/x/", Some("http://example.com:8080/x"));
        check("http://[::1]:81", Some("http://[::1]:81"));
        check("http://127.0.0.1:80/", Some("http://127.0.0.1"));
        for text in
            ["", "ftp://x", "http://", "http://a:0", "http://a:99999", "http://a:", "http://u@a"]
        {
            check(text, None);
        }
        for text in ["http://[::1", "http://[x]:1", "http://a?b", "http://a:+1", "api.binance.com"]
        {
            check(text, None);
        }
    }

    #[test]
    fn an_address_is_read_in_all_its_parts_and_never_tells_its_password() {
        let check = |text: &str, expected: &str| {
            let url = EngineUrl::parse(text).expect("it is well-formed");
            assert_eq!(url.to_string(), expected);
            assert!(!format!("{url} {url:?}").contains("s3cret"));
        };
        check("redis://Host", "redis://host:6379/0");
        check("REDISS://[::1]:7/3", "rediss://[::1]:7/3");
        check("redis://:s3cret@h", "redis://***@h:6379/0");
        check("redis://u%40x:s3cret%2F@h/", "redis://***@h:6379/0");
        let url = EngineUrl::parse("redis://u%40x:p%2F@h").expect("it is well-formed");
        let Some(Credentials { user, password }) = url.credentials else {
            panic!("it has credentials");
        };
        assert_eq!((&user[..], &password[..]), (&b"u@x"[..], &b"p/"[..]));
    }

    #[test]
    fn a_fault_tells_nothing_of_the_address() {
        let hosts =
            ["", "s3cret", "http://s3cret@h", "redis://", "redis://s3cret@", "redis://***@h"];
        let ends = ["redis://u:s3cret/@h", "redis://u:s3cret%@h", "redis://s3cret@h:0x"];
        let paths = ["redis://u:s3cret@h/x", "redis://u:s3cret@h/70000", "redis://h?s3cret"];
        for text in hosts.into_iter().chain(ends).chain(paths) {
            let fault = EngineUrl::parse(text).expect_err(text);
            assert!(fault.starts_with(ENGINE) && !fault.contains("s3cret"), "{fault}");
        }
    }

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
