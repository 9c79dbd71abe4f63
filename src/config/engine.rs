//! The address of a cluster's engine: scheme, user and password, host, port, database.

use super::url::{Authority, Credentials, in_brackets};
use std::fmt;

/// The port of Redis and Valkey.
const PORT: u16 = 6379;

const EXPECTED: &str = "expected redis://HOST or rediss://HOST, with USER:PASSWORD@, :PORT and /DATABASE \
    where needed";

/// What is printed for user and password. It is refused where it is read: as a password it would be wrong.
const HIDDEN: &str = "***@";

/// Where a Redis or Valkey is. It prints without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl {
    /// Whether TLS is spoken.
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
    /// Reads an address. The error says what was expected, and nothing of the text, which may hold a
    /// password.
    pub fn parse(text: &str) -> Result<EngineUrl, String> {
        let refused = |why: &str| format!("{EXPECTED}{why}");
        let (tls, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("redis") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("rediss") => (true, rest),
            _ => return Err(refused("")),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

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
        for text in [
            "",
            "s3cret",
            "http://s3cret@h",
            "redis://",
            "redis://s3cret@",
            "redis://u:s3cret/@h",
            "redis://u:s3cret%@h",
            "redis://s3cret@h:0x",
            "redis://u:s3cret@h/x",
            "redis://u:s3cret@h/70000",
            "redis://h?s3cret",
            "redis://***@h",
        ] {
            let fault = EngineUrl::parse(text).expect_err(text);
            assert!(fault.starts_with(EXPECTED) && !fault.contains("s3cret"), "{fault}");
        }
    }
}
