//! Addresses: that of an exchange, and the parts that others have too.

use super::fault::wrong;
use std::fmt;

/// User and password in an address. Neither is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Without its escapes.
    pub user: Vec<u8>,
    /// Without its escapes; empty if none is given.
    pub password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// What follows the scheme of an address: `USER:PASSWORD@HOST:PORT/PATH`.
pub(super) struct Authority<'t> {
    pub(super) credentials: Option<Credentials>,
    /// Lower case, an IPv6 address without its brackets.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// Without the slash in front of it.
    pub(super) path: &'t str,
}

impl Authority<'_> {
    /// Reads what follows the scheme. The error is a hint, and says nothing of the text, which may hold a
    /// password.
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

/// A text without its escapes (RFC 3986, 2.1). `None`: one of them is malformed.
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    /// Whether TLS is spoken.
    pub https: bool,
    /// Host name or address, lower case, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path in front of every request: empty, or `/x` without a slash at its end.
    pub path: String,
}

impl Url {
    /// Reads an address. The error says what was expected and found.
    pub fn parse(text: &str) -> Result<Url, String> {
        let scheme = |scheme: &str| {
            let head = text.get(..scheme.len())?;
            (head.eq_ignore_ascii_case(scheme)).then(|| &text[scheme.len()..])
        };
        let (https, rest) = match (scheme("https://"), scheme("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong("http://HOST or https://HOST", text)),
        };
        if !rest.chars().all(is_plain) {
            return Err(wrong("an address without user, query and fragment", text));
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let expected = "HOST or HOST:PORT with a port from 1 to 65535";
        let (host, port) = split_port(authority).ok_or_else(|| wrong(expected, authority))?;
        Ok(Url {
            https,
            host: host.to_ascii_lowercase(),
            port: port.unwrap_or(if https { 443 } else { 80 }),
            path: path.trim_end_matches('/').to_string(),
        })
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

/// A host as it stands in an address: IPv6 in brackets.
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
}
