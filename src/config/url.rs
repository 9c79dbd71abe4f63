//! Addresses: of an exchange ([`Url`]) and of the engine of a cluster ([`EngineUrl`]). Also the grammar that
//! they share with the address of a proxy.

use super::fault::wrong;
use std::fmt;

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
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        None if port.is_empty() => None,
        _ => return None,
    };
    is_good.then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
