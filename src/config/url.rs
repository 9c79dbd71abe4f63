//! Addresses: of an exchange, of the engine of a cluster, and of the proxy in front of an exchange. Also
//! networks.
//!
//! The HTTP proxy of each source comes from the environment variables that most programs read, with the
//! exceptions in `NO_PROXY`. The caller passes in a function that looks up a variable. The address of a proxy
//! may have a password, so no message repeats it: faults name the variable, and a printed configuration has
//! no proxy.
//!
//! A network is the set of all addresses that begin with the same bits, in CIDR notation (RFC 4632, 3.1).
//! Networks say which proxies in front are trusted, and which addresses are reached without a proxy.

use super::fault::{ConfigFault, wrong};
use crate::time::digits;
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// User and password in an address. Neither is ever printed.
#[derive(Clone, PartialEq, Eq, Hash)]
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

/// An address of a server. It prints without user and password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Url {
    /// `http`, `https`, `redis` or `rediss`.
    pub scheme: &'static str,
    /// User and password; the user may be empty. An exchange has none here.
    pub credentials: Option<Credentials>,
    /// Host name or address, lower case, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path in front of every request: empty, or `/x` without a slash at its end. The path of an engine is
    /// the number of its database.
    pub path: String,
}

/// The schemes, with their ports.
const PORTS: [(&str, u16); 4] = [("http", 80), ("https", 443), ("redis", 6379), ("rediss", 6379)];

const EXCHANGE: &str = "http://HOST or https://HOST";

const ENGINE: &str = "expected redis://HOST or rediss://HOST, with USER:PASSWORD@, :PORT and /DATABASE \
    where needed";

/// What the value of a variable must be.
const PROXY: &str = "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";

/// The text that is printed instead of user and password. An address with this text is refused, because it is
/// not the real password.
const HIDDEN: &str = "***@";

impl Url {
    /// Parses the address of an exchange. The error says what was expected and what was found.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (scheme, rest) = split(text, ["http", "https"]).ok_or_else(|| wrong(EXCHANGE, text))?;
        if !rest.chars().all(is_plain) {
            return Err(wrong("an address without user, query and fragment", text));
        }
        let expected = "HOST or HOST:PORT with a port from 1 to 65535";
        Url::read(scheme, rest).map_err(|_| wrong(expected, rest))
    }

    /// Parses the address of an engine. The error says what was expected, and repeats nothing of the text,
    /// which may have a password.
    pub fn engine(text: &str) -> Result<Url, String> {
        let refused = |why: &str| format!("{ENGINE}{why}");
        let (scheme, rest) = split(text, ["redis", "rediss"]).ok_or_else(|| refused(""))?;
        let url = Url::read(scheme, rest).map_err(refused)?;
        if rest.starts_with(HIDDEN) {
            return Err(refused(" (*** stands for user and password that were not printed)"));
        }
        match url.database() {
            Some(_) => Ok(url),
            None => Err(refused(" (a database is a number)")),
        }
    }

    /// Parses the address of an HTTP proxy that opens tunnels (CONNECT). The error says what was expected,
    /// and repeats nothing of the value.
    fn proxy(text: &str) -> Result<Url, String> {
        let refused = |why: &str| format!("{PROXY}{why}");
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        match scheme.eq_ignore_ascii_case("http") {
            true => Url::read("http", rest).map_err(refused),
            false => Err(refused(" (only HTTP proxies are supported)")),
        }
    }

    /// Parses the part after the scheme: `USER:PASSWORD@HOST:PORT/PATH`. The error is a hint, and repeats
    /// nothing of the text, which may have a password.
    fn read(scheme: &'static str, text: &str) -> Result<Url, &'static str> {
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
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let place = split_port(place).filter(|(host, _)| host.chars().all(is_plain));
        let (host, port) = place.ok_or("")?;
        let (host, path) = (host.to_ascii_lowercase(), path.trim_end_matches('/').to_string());
        Ok(Url { scheme, credentials, host, port: port.unwrap_or(port_of(scheme)), path })
    }

    /// True if TLS is used.
    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, "https" | "rediss")
    }

    /// The number of the database of an engine; `None` if the path is no number.
    pub fn database(&self) -> Option<u16> {
        self.path.strip_prefix('/').map_or(Some(0), |number| number.parse().ok())
    }

    /// Host and port as in a `Host` field: the port only if it is not the default of the scheme (RFC
    /// 9110, 7.2).
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        if self.port == port_of(self.scheme) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.credentials.as_ref().map_or("", |_| HIDDEN);
        write!(f, "{}://{hidden}{}{}", self.scheme, self.authority(), self.path)
    }
}

fn port_of(scheme: &str) -> u16 {
    PORTS.iter().find(|(known, _)| *known == scheme).map_or(0, |(_, port)| *port)
}

/// Splits off the scheme of an address, if it is one of these.
fn split<'t>(text: &'t str, schemes: [&'static str; 2]) -> Option<(&'static str, &'t str)> {
    let (scheme, rest) = text.split_once("://")?;
    Some((schemes.into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?, rest))
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

/// The proxies that the environment names.
pub(super) struct Proxies {
    /// The variable for https addresses, and its value. The value is parsed only when a source needs the
    /// proxy, because it may be in a form that only other programs know.
    https: Option<(&'static str, String)>,
    http: Option<(&'static str, String)>,
    /// The entries of `NO_PROXY`.
    exceptions: Vec<String>,
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
            exceptions: except
                .to_ascii_lowercase()
                .split([',', ' ', '\t'])
                .map(String::from)
                .collect(),
        }
    }

    /// The proxy for an address; `None` if it is reached directly.
    pub(super) fn proxy_for(&self, url: &Url) -> Result<Option<Url>, ConfigFault> {
        let variable = if url.is_tls() { &self.https } else { &self.http };
        let is_direct = is_loopback(&url.host) || self.exceptions.iter().any(|it| names(it, url));
        let Some((name, text)) = variable.as_ref().filter(|_| !is_direct) else {
            return Ok(None);
        };
        let proxy = Url::proxy(text).map_err(|message| ConfigFault::by(name, message))?;
        Ok(Some(proxy))
    }
}

/// True if this entry of `NO_PROXY` names the host of an address. An entry is `host`, `.suffix`, `*.suffix`,
/// an address or `*`, each with or without a port; or a network (`10.0.0.0/8`). Any other entry is ignored,
/// as in other programs.
fn names(entry: &str, url: &Url) -> bool {
    let address = url.host.parse::<IpAddr>().ok();
    // Networks are tried first, because `split_port` would take a colon of an IPv6 address without
    // brackets as the start of a port.
    if let Some(network) = network(entry) {
        return address.is_some_and(|address| network.contains(&address));
    }
    let Some((host, port)) = split_port(entry).filter(|_| !entry.contains('/')) else {
        return false;
    };
    let name = host.strip_prefix('*').unwrap_or(host);
    let name = name.strip_prefix('.').unwrap_or(name).trim_end_matches('.');
    let fits = match (host.parse(), address) {
        (Ok(named), address) => Some(named) == address,
        (Err(_), Some(_)) => host == "*",
        (Err(_), None) => {
            let rest = url.host.trim_end_matches('.').strip_suffix(name);
            host == "*"
                || !name.is_empty() && rest.is_some_and(|it| it.is_empty() || it.ends_with('.'))
        }
    };
    fits && port.is_none_or(|port| port == url.port)
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

/// Reads a network, `10.0.0.0/8` or `fd00::/8`, or a single address, which is a network with all of its bits.
pub fn network(text: &str) -> Option<IpNet> {
    let Ok(network) = text.parse::<IpNet>() else {
        return Some(text.parse::<IpAddr>().ok()?.to_canonical().into());
    };
    // Addresses of peers are canonical: an IPv4 address is never written as IPv6 (RFC 4291, 2.5.5.2).
    match network.addr().to_canonical() {
        IpAddr::V4(inner) if network.prefix_len() >= 96 => {
            IpNet::new(inner.into(), network.prefix_len() - 96).ok()
        }
        _ => Some(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::forms::NETWORK;
    use crate::config::values::KeyType;

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
            let url = Url::engine(text).expect("it is well-formed");
            assert_eq!(url.to_string(), expected);
            assert!(!format!("{url} {url:?}").contains("s3cret"));
        };
        check("redis://Host:6379/", "redis://host");
        check("REDISS://[::1]:7/3", "rediss://[::1]:7/3");
        check("redis://:s3cret@h", "redis://***@h");
        check("redis://u%40x:s3cret%2F@h/0", "redis://***@h/0");
        let url = Url::engine("redis://u%40x:p%2F@h").expect("it is well-formed");
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
            let fault = Url::engine(text).expect_err(text);
            assert!(fault.starts_with(ENGINE) && !fault.contains("s3cret"), "{fault}");
        }
    }

    #[test]
    fn proxies_are_read_and_faults_keep_their_secrets() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let found = Url::proxy(text);
            let shown = found.as_ref().map(|proxy| {
                let credentials = proxy.credentials.as_ref();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let said = credentials.map(|it| [text(&it.user), text(&it.password)].join(" "));
                (proxy.authority(), said.unwrap_or_default())
            });
            let expected = expected
                .map(|(place, said)| (place.to_string(), said.to_string()))
                .map_err(|why| format!("{PROXY}{why}"));
            assert_eq!(shown.map_err(Clone::clone), expected, "{text}");
            assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        };
        check("http://proxy:3128", Ok(("proxy:3128", "")));
        check("proxy.corp:3128/", Ok(("proxy.corp:3128", "")));
        check("HTTP://10.0.0.1", Ok(("10.0.0.1", "")));
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
            let found = proxy.map(|proxy| proxy.authority());
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
            let mut parsed = NETWORK.parse(network).expect("a network");
            assert_eq!(parsed.print(), format!("{network:?}"));
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(parsed.contains(&address), expected, "{network} {address}");
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
        assert_eq!(long, Ok(IpNet::from(IpAddr::from([192, 0, 2, 1]))));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "h", "[::1]"] {
            let message = format!("expected {}, found {text:?}", NETWORK.expected);
            assert_eq!(NETWORK.parse(text), Err(message));
        }
    }
}
