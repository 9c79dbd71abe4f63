//! Forms of text: addresses, paths, symbols, names, decimals.
//!
//! A [`TextForm`] parses a text. It does not matter whether a flag, a variable or the file gives the text. No
//! form opens a file or looks up a name.

use super::fault::wrong;
use super::json::Node;
use super::log_rules;
use super::url::{Url, network};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::time::{MAX_TIME, UnixMs, digits, iso_8601};
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Longest name or description.
const TEXT_BYTES: usize = 1024;

/// Longest address of a picture, and longest base path: browsers stop at about 2000.
const URL_BYTES: usize = 2000;

/// Characters of one side of a symbol.
const ASSET_CHARS: usize = 20;

/// Where history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In this file.
    File(PathBuf),
    /// Only in memory.
    Memory,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::File(path) => write!(f, "{}", path.display()),
            Data::Memory => f.write_str(":memory:"),
        }
    }
}

/// Where a listener listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port of TCP.
    Tcp(SocketAddr),
    /// The file of a Unix socket.
    Unix(PathBuf),
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> ListenAddress {
        ListenAddress::Tcp(address)
    }
}

impl<A: Into<IpAddr>> From<(A, u16)> for ListenAddress {
    fn from(address: (A, u16)) -> ListenAddress {
        ListenAddress::Tcp(address.into())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// How often a source is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// At this interval, from the start of one poll to the start of the next.
    Every(Duration),
    /// As often as half of the exchange's budget permits.
    Auto,
}

impl Poll {
    /// The usual interval. A poll of all quotes of a large exchange is 2 MB, so one poll a second
    /// would be too much.
    pub const USUAL: Duration = Duration::from_secs(2);

    /// The interval, or the usual one while the real one is not known.
    pub fn usual(self) -> Duration {
        match self {
            Poll::Every(time) => time,
            Poll::Auto => Poll::USUAL,
        }
    }
}

/// A value in its normal form. The error is a message, or `None` for the usual "expected ..., found
/// ...".
type Normal<T> = Result<T, Option<String>>;

/// How a text becomes a `T`.
pub(crate) struct TextForm<T> {
    /// What is expected, for messages and the reference.
    pub(super) expected: &'static str,
    read: fn(&str) -> Normal<T>,
}

impl<T> TextForm<T> {
    /// Reads a text. The error says what was expected and what was found.
    pub(crate) fn parse(&self, text: &str) -> Result<T, String> {
        (self.read)(text).map_err(|message| message.unwrap_or_else(|| wrong(self.expected, text)))
    }

    /// What is expected, as text.
    pub(super) fn told(&self) -> String {
        self.expected.to_string()
    }

    /// Reads a text.
    pub(super) fn read(&self, node: &Node) -> Normal<T> {
        self.parse(&node.text().ok_or(None)?).map_err(Some)
    }

    /// Reads digits: a number of the file, or a text of digits.
    pub(super) fn read_digits(&self, node: &Node) -> Normal<T> {
        let digits = node.text().or(node.number().map(str::to_string));
        digits.and_then(|digits| self.parse(&digits).ok()).ok_or(None)
    }
}

impl Default for TextForm<String> {
    /// Any text.
    fn default() -> TextForm<String> {
        form("a text", |text| Ok(text.to_string()))
    }
}

/// A form that expects this, and its parser.
pub(crate) const fn form<T>(expected: &'static str, read: fn(&str) -> Normal<T>) -> TextForm<T> {
    TextForm { expected, read }
}

/// The prefix in front of the name of a Unix socket.
const UNIX: &str = "unix:";

/// Longest name of a Unix socket. Linux allows 108 bytes with the zero at its end (unix(7)), other systems
/// 104.
const SOCKET_BYTES: usize = 103;

/// Where to listen: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` (the same as 127.0.0.1, since
/// no name is looked up), `:8080` (every address of IPv4), `[::]:8080` (every address of both families) or
/// `unix:PATH`.
pub(super) const ADDRESS: TextForm<ListenAddress> = form("ADDR:PORT or unix:PATH", address);

/// A path in front of every address: empty, or `/x/y`. A slash at the end is dropped.
pub(super) const BASE_PATH: TextForm<String> = form(
    "an empty text or a path like \"/x\" (letters, digits, '-', '.', '_' and '~' between the slashes)",
    base_path,
);

/// Where history is kept.
pub(super) const DATA: TextForm<Data> = form("a file name or \":memory:\"", |text| match text {
    ":memory:" => Ok(Data::Memory),
    text if is_file(text) => Ok(Data::File(PathBuf::from(text))),
    _ => Err(None),
});

/// The name of a file.
pub(super) const FILE: TextForm<String> = form("a file name", |text| plain(text, is_file(text)));

/// A symbol in any case, with `/`, `-` or `_` between its sides, as `BASE/QUOTE`.
pub(crate) const SYMBOL: TextForm<String> = form("BASE/QUOTE", symbol);

/// An asset in any case, as upper case, or `*` for all.
pub(super) const QUOTE_ASSET: TextForm<String> = form("an asset like \"USDT\" or \"*\"", |text| {
    plain(&text.to_ascii_uppercase(), text == "*" || is_asset(text))
});

/// The base address of an exchange.
pub(crate) const URL: TextForm<Url> =
    form("http://HOST or https://HOST", |text| Url::parse(text).map_err(Some));

/// The address of a cluster's engine. No message repeats it, because it may have a password.
pub(super) const ENGINE: TextForm<Url> =
    form("redis://HOST or rediss://HOST", |text| Url::engine(text).map_err(Some));

/// The id of an ecosystem market. In a path it needs no escapes.
pub(super) const MARKET_ID: TextForm<String> =
    form("1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'", |text| {
        name(text, 64, |char| char.is_ascii_alphanumeric() || "._-".contains(char))
    });

/// The prefix of a cluster's keys, which is their hash tag, and the name of a node.
pub(super) const KEY_PART: TextForm<String> = MARKET_ID;

/// Addresses of proxies.
pub(super) const NETWORK: TextForm<IpNet> =
    form("an address or a network like \"10.0.0.0/8\"", |text| network(text).ok_or(None));

/// The name of a source.
pub(crate) const SOURCE_ID: TextForm<String> =
    form("1 to 32 of a-z, 0-9 and -", |text| name(text, 32, is_slug));

/// The name of a category.
pub(super) const CATEGORY_ID: TextForm<String> =
    form("1 to 64 of a-z, 0-9 and -", |text| name(text, 64, is_slug));

/// The exchange that a source polls. `check` compares it with the known names.
pub(super) const DIALECT: TextForm<String> =
    form("the name of an exchange", |text| bounded(text, TEXT_BYTES));

/// A text for people.
pub(crate) const WORDS: TextForm<String> = form("a text", |text| bounded(text, TEXT_BYTES));

/// The rules of the log.
pub(super) const LOG: TextForm<String> = form("a level or rules of the log", |text| {
    log_rules::of_flag(text).map(|_| text.to_string()).map_err(Some)
});

/// The address of a picture. It is not interpreted.
pub(super) const ICON: TextForm<String> = form("a text", |text| bounded(text, URL_BYTES));

/// A number of decimal places.
pub(crate) const PLACES: TextForm<u8> = form("a whole number from 0 to 64", |text| {
    let places = decimal(text).and_then(|value| value.to_string().parse().ok());
    places.filter(|places| *places <= 64).ok_or(None)
});

/// The fee of an order.
pub(super) const FRACTION: TextForm<Decimal> =
    form("a decimal fraction between -1 and 1", |text| {
        let is_good = |value: &Decimal| Decimal::from(-1) < *value && *value < Decimal::from(1);
        decimal(text).filter(is_good).ok_or(None)
    });

/// The price, amount or cost of an order.
pub(crate) const AMOUNT: TextForm<Decimal> = form("a decimal of 0 or more", |text| {
    let value = decimal(text).filter(|value| !value.is_negative());
    value.ok_or(None)
});

/// A day, a time, or a number as the API takes it.
pub(crate) const TIME: TextForm<UnixMs> = form(
    "2026-11-22, 2026-11-22T09:00:00Z, or seconds or milliseconds from 1970 to 9999",
    |text| {
        let number = digits(text.as_bytes()).map(UnixMs::of_number);
        let day = || iso_8601(format!("{text}T00:00:00").as_bytes());
        let time = || iso_8601(text.strip_suffix('Z')?.as_bytes());
        let moment = number.or_else(|| day().or_else(time).map(UnixMs));
        moment.filter(|moment| (UnixMs(0)..=MAX_TIME).contains(moment)).ok_or(None)
    },
);

/// A stored interval, by its name.
pub(crate) const STORED: TextForm<Stored> = form("1m, 1h or 1d", |text| {
    Stored::ALL.into_iter().find(|interval| interval.name() == text).ok_or(None)
});

/// A figure of a quote.
pub(crate) const FIGURE: TextForm<Decimal> = form("a decimal", |text| decimal(text).ok_or(None));

fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(text.as_bytes()).ok()
}

/// The address of a listener that is not a Unix socket.
pub(super) const TCP_ADDRESS: TextForm<ListenAddress> =
    form("ADDR:PORT", |text| match address(text)? {
        ListenAddress::Unix(_) => Err(None),
        tcp => Ok(tcp),
    });

fn address(text: &str) -> Normal<ListenAddress> {
    if let Some(path) = text.strip_prefix(UNIX) {
        let is_good = is_file(path) && path.len() <= SOCKET_BYTES;
        let expected = format_args!("{UNIX}PATH with a path of 1 to {SOCKET_BYTES} bytes");
        let address = is_good.then(|| ListenAddress::Unix(path.into()));
        return address.ok_or_else(|| Some(wrong(expected, text)));
    }
    if let Ok(address) = text.parse() {
        return Ok(ListenAddress::Tcp(address));
    }
    let refused = |hint: &str| Err(Some(wrong(ADDRESS.expected, text) + hint));
    let port = |text: &str| digits::<u16>(text.as_bytes());
    let Some((host, end)) = text.rsplit_once(':') else {
        return match port(text) {
            Some(port) => refused(&format!(", did you mean \":{port}\"?")),
            None => Err(None),
        };
    };
    let Some(port) = port(end) else {
        return refused(" (a port is a number from 0 to 65535)");
    };
    match host {
        "" => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        name if name.eq_ignore_ascii_case("localhost") => Ok((Ipv4Addr::LOCALHOST, port).into()),
        name if name.contains(':') => refused(" (an IPv6 address needs brackets: [::1]:8080)"),
        _ => refused(" (localhost is the only name that is accepted)"),
    }
}

fn base_path(text: &str) -> Normal<String> {
    let path = text.strip_suffix('/').unwrap_or(text);
    // RFC 3986, 2.3: these characters never need an escape, so a path has one spelling.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_segment = |it: &str| !matches!(it, "" | "." | "..") && it.bytes().all(is_plain);
    let is_good = match path.strip_prefix('/') {
        Some(rest) => rest.split('/').all(is_segment) && path.len() <= URL_BYTES,
        None => path.is_empty(),
    };
    plain(path, is_good)
}

fn symbol(text: &str) -> Normal<String> {
    let sides: Vec<&str> = text.split(['/', '-', '_']).collect();
    match sides[..] {
        [base, quote] if is_asset(base) && is_asset(quote) => {
            Ok(format!("{base}/{quote}").to_ascii_uppercase())
        }
        [joined] if joined.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            let why = ": the joined form does not say where the base ends";
            Err(Some(wrong(SYMBOL.expected, text) + why))
        }
        _ => {
            let sides =
                format!("BASE/QUOTE with 1 to {ASSET_CHARS} letters and digits on each side");
            Err(Some(wrong(sides, text)))
        }
    }
}

fn bounded(text: &str, most: usize) -> Normal<String> {
    let is_good = (1..=most).contains(&text.len()) && !text.chars().any(char::is_control);
    let expected = format_args!("a text of 1 to {most} bytes without control characters");
    plain(text, is_good).map_err(|_| Some(wrong(expected, text)))
}

pub(crate) fn plain(text: &str, is_good: bool) -> Normal<String> {
    is_good.then(|| text.to_string()).ok_or(None)
}

fn is_file(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

/// True for the characters of names that are used in addresses and metrics.
pub(crate) fn is_slug(char: char) -> bool {
    matches!(char, 'a'..='z' | '0'..='9' | '-')
}

fn is_asset(text: &str) -> bool {
    name(text, ASSET_CHARS, |char| char.is_ascii_alphanumeric()).is_ok()
}

pub(crate) fn name(text: &str, most: usize, is_good: fn(char) -> bool) -> Normal<String> {
    plain(text, text.len() <= most && !text.is_empty() && text.chars().all(is_good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_four_forms_and_nothing_is_looked_up() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = ADDRESS.parse(text).map(|address| address.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text:?}");
        };
        check("127.0.0.1:8080", Ok("127.0.0.1:8080"));
        check("[::1]:8080", Ok("[::1]:8080"));
        check("localhost:0", Ok("127.0.0.1:0"));
        check("LocalHost:80", Ok("127.0.0.1:80"));
        check(":8080", Ok("0.0.0.0:8080"));
        check("[::]:8080", Ok("[::]:8080"));
        check("unix:/run/a b.sock", Ok("unix:/run/a b.sock"));
        check("unix:x:80", Ok("unix:x:80"));
        for text in ["unix:", "unix:a\0b", &format!("unix:{}", "a".repeat(104))] {
            let message = wrong("unix:PATH with a path of 1 to 103 bytes", text);
            check(text, Err(&message));
        }
        let port = " (a port is a number from 0 to 65535)";
        for (text, hint) in [
            ("x", ""),
            ("", ""),
            ("8080", ", did you mean \":8080\"?"),
            ("127.0.0.1:", port),
            (":+80", port),
            ("localhost:65536", port),
            ("127.0.0.1:http", port),
            ("::1:8080", " (an IPv6 address needs brackets: [::1]:8080)"),
            ("example.com:80", " (localhost is the only name that is accepted)"),
        ] {
            let message = format!("expected ADDR:PORT or unix:PATH, found {text:?}{hint}");
            check(text, Err(&message));
        }
    }

    #[test]
    fn base_paths_have_one_spelling() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(BASE_PATH.parse(text).ok().as_deref(), expected, "{text:?}");
        };
        check("", Some(""));
        check("/", Some(""));
        check("/x", Some("/x"));
        check("/x/", Some("/x"));
        check("/market/v2.1_~", Some("/market/v2.1_~"));
        for text in ["x", "//", "/x//", "/x//y", "/.", "/../x", "/a b", "/%41", "/ä", "/x?", "/x#"]
        {
            check(text, None);
        }
    }

    #[test]
    fn symbols_are_taken_in_any_case_and_with_any_separator_but_not_joined() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = SYMBOL.parse(text);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text:?}");
        };
        for text in ["BTC/USDT", "btc-usdt", "Btc_Usdt"] {
            check(text, Ok("BTC/USDT"));
        }
        check("1INCH/usd", Ok("1INCH/USD"));
        let long = "ABCDEFGHIJKLMNOPQRSTU/X";
        for text in ["BTC/", "/", "BTC/USDT/X", "BTC USDT", "BTC%2FUSDT", "ÄTH/USDT", long] {
            let message = format!(
                "expected BASE/QUOTE with 1 to 20 letters and digits on each side, found {text:?}"
            );
            check(text, Err(&message));
        }
    }

    #[test]
    fn names_keep_to_their_letters() {
        let check = |good: bool, found: Result<String, String>| {
            assert_eq!(found.is_ok(), good, "{found:?}");
        };
        check(true, SOURCE_ID.parse("binance-2"));
        check(false, SOURCE_ID.parse("Binance"));
        check(false, SOURCE_ID.parse(""));
        check(false, SOURCE_ID.parse(&"a".repeat(33)));
        check(true, CATEGORY_ID.parse(&"a".repeat(64)));
        check(false, CATEGORY_ID.parse("majors_1"));
        check(true, MARKET_ID.parse("BTC-USDT_2.x"));
        check(false, MARKET_ID.parse("BTC/USDT"));
        check(true, QUOTE_ASSET.parse("*"));
        check(false, QUOTE_ASSET.parse("US*"));
        check(false, WORDS.parse("a\nb"));
    }
}
