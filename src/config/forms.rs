//! The forms of what a text may say: addresses, paths, symbols, names.
//!
//! Owns the one way in which each of them is read, whether a flag, a variable or the file says
//! it. It never looks anything up: no file, no name server.
//!
//! Every function answers the value in its one normal form, or a message that tells what was
//! expected and what was found.

use super::Data;
use super::fault::quoted;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

pub(super) const ADDRESS: &str = "ADDR:PORT";
pub(super) const BASE_PATH: &str = "an empty text or a path like \"/x\"";
pub(super) const DATA: &str = "a file name or \":memory:\"";
pub(super) const FILE: &str = "a file name";
pub(super) const SYMBOL: &str = "BASE/QUOTE";
pub(super) const QUOTE_ASSET: &str = "an asset like \"USDT\" or \"*\"";
pub(super) const SOURCE_ID: &str = "1 to 32 of a-z, 0-9 and -";
pub(super) const CATEGORY_ID: &str = "1 to 64 of a-z, 0-9 and -";
pub(super) const MARKET_ID: &str = "1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'";
pub(super) const LEVEL: &str = "off, error, warn, info, debug or trace";

/// Longest text for people: a name, a description.
const TEXT_BYTES: usize = 1024;

/// Longest address of a picture, and longest base path: browsers stop at about 2000.
const URL_BYTES: usize = 2000;

/// Characters of one side of a symbol.
const ASSET_CHARS: usize = 20;

/// Where to listen: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` (the same as 127.0.0.1, since
/// no name is looked up) or `:8080` (every address of IPv4).
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let refused = |hint: &str| {
        let found = quoted(text);
        Err(format!("expected {ADDRESS}, found {found}{hint}"))
    };
    let Some((host, digits)) = text.rsplit_once(':') else {
        return match port(text) {
            Some(port) => refused(&format!(", did you mean \":{port}\"?")),
            None => refused(""),
        };
    };
    let Some(port) = port(digits) else {
        return refused(" (a port is a number from 0 to 65535)");
    };
    let every = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    match host {
        "" => Ok(SocketAddr::new(every, port)),
        name if name.eq_ignore_ascii_case("localhost") => {
            Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        }
        name if name.contains(':') => refused(" (an IPv6 address stands in [])"),
        _ => refused(" (no name but localhost is looked up)"),
    }
}

/// A path in front of every address: empty, or `/x/y`. A slash at the end is dropped.
pub(super) fn base_path(text: &str) -> Result<String, String> {
    let path = text.strip_suffix('/').unwrap_or(text);
    // RFC 3986, 2.3: what never needs an escape, so that there is one spelling.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let segment = |it: &str| !it.is_empty() && it != "." && it != ".." && it.bytes().all(plain);
    let good = match path.strip_prefix('/') {
        Some(rest) => rest.split('/').all(segment) && path.len() <= URL_BYTES,
        None => path.is_empty(),
    };
    if good {
        return Ok(path.to_string());
    }
    let found = quoted(text);
    Err(format!(
        "expected {BASE_PATH} (letters, digits, '-', '.', '_' and '~' between the slashes), found {found}"
    ))
}

/// Where history is kept.
pub(super) fn data(text: &str) -> Result<Data, String> {
    match text {
        ":memory:" => Ok(Data::Memory),
        text if text.is_empty() || text.contains('\0') => {
            Err(format!("expected {DATA}, found {}", quoted(text)))
        }
        text => Ok(Data::File(PathBuf::from(text))),
    }
}

/// The name of a file.
pub(super) fn file(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("expected {FILE}, found {}", quoted(text)));
    }
    Ok(text.to_string())
}

/// A symbol in any case, with `/`, `-` or `_` between its sides, as `BASE/QUOTE`.
pub(super) fn symbol(text: &str) -> Result<String, String> {
    let mut sides = text.split(['/', '-', '_']);
    match (sides.next(), sides.next(), sides.next()) {
        (Some(base), Some(quote), None) if is_asset(base) && is_asset(quote) => {
            Ok(format!("{base}/{quote}").to_ascii_uppercase())
        }
        (Some(joined), None, _) if joined.bytes().all(|it| it.is_ascii_alphanumeric()) => {
            Err(format!(
                "expected {SYMBOL}, found {}: the joined form does not say where the base ends",
                quoted(text)
            ))
        }
        _ => Err(format!(
            "expected {SYMBOL} with 1 to {ASSET_CHARS} letters and digits on each side, found {}",
            quoted(text)
        )),
    }
}

/// An asset in any case, as upper case, or `*` for all.
pub(super) fn quote_asset(text: &str) -> Result<String, String> {
    if text == "*" || is_asset(text) {
        return Ok(text.to_ascii_uppercase());
    }
    Err(format!("expected {QUOTE_ASSET}, found {}", quoted(text)))
}

/// The name of a source.
pub(super) fn source_id(text: &str) -> Result<String, String> {
    name(text, 32, "-", false, SOURCE_ID)
}

/// The name of a category.
pub(super) fn category_id(text: &str) -> Result<String, String> {
    name(text, 64, "-", false, CATEGORY_ID)
}

/// The id of an ecosystem market: stands in a path without escapes.
pub(super) fn market_id(text: &str) -> Result<String, String> {
    name(text, 64, "-._", true, MARKET_ID)
}

/// A text for people.
pub(super) fn words(text: &str) -> Result<String, String> {
    bounded(text, TEXT_BYTES)
}

/// The address of a picture, which is passed on as it is.
pub(super) fn icon(text: &str) -> Result<String, String> {
    bounded(text, URL_BYTES)
}

fn port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn is_asset(text: &str) -> bool {
    (1..=ASSET_CHARS).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphanumeric())
}

fn name(
    text: &str,
    most: usize,
    marks: &str,
    upper: bool,
    expected: &str,
) -> Result<String, String> {
    let plain = |char: char| match char {
        'a'..='z' | '0'..='9' => true,
        'A'..='Z' => upper,
        char => marks.contains(char),
    };
    if (1..=most).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_string());
    }
    Err(format!("expected {expected}, found {}", quoted(text)))
}

fn bounded(text: &str, most: usize) -> Result<String, String> {
    if (1..=most).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(text.to_string());
    }
    let found = quoted(text);
    Err(format!(
        "expected a text of 1 to {most} bytes without control characters, found {found}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_four_forms_and_nothing_is_looked_up() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = address(text).map(|address| address.to_string());
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{text:?}"
            );
        };
        check("127.0.0.1:8080", Ok("127.0.0.1:8080"));
        check("[::1]:8080", Ok("[::1]:8080"));
        check("localhost:0", Ok("127.0.0.1:0"));
        check("LocalHost:80", Ok("127.0.0.1:80"));
        check(":8080", Ok("0.0.0.0:8080"));
        check("x", Err("expected ADDR:PORT, found \"x\""));
        check("", Err("expected ADDR:PORT, found \"\""));
        check(
            "8080",
            Err("expected ADDR:PORT, found \"8080\", did you mean \":8080\"?"),
        );
        for text in ["127.0.0.1:", ":+80", "localhost:65536", "127.0.0.1:http"] {
            let message =
                format!("expected ADDR:PORT, found {text:?} (a port is a number from 0 to 65535)");
            check(text, Err(&message));
        }
        check(
            "::1:8080",
            Err("expected ADDR:PORT, found \"::1:8080\" (an IPv6 address stands in [])"),
        );
        check(
            "example.com:80",
            Err(
                "expected ADDR:PORT, found \"example.com:80\" (no name but localhost is looked up)",
            ),
        );
    }

    #[test]
    fn base_paths_have_one_spelling() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(base_path(text).ok().as_deref(), expected, "{text:?}");
        };
        check("", Some(""));
        check("/", Some(""));
        check("/x", Some("/x"));
        check("/x/", Some("/x"));
        check("/market/v2.1_~", Some("/market/v2.1_~"));
        for text in [
            "x", "//", "/x//", "/x//y", "/.", "/../x", "/a b", "/%41", "/ä", "/x?", "/x#",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn symbols_are_taken_in_any_case_and_with_any_separator_but_not_joined() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = symbol(text);
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{text:?}"
            );
        };
        for text in ["BTC/USDT", "btc-usdt", "Btc_Usdt"] {
            check(text, Ok("BTC/USDT"));
        }
        check("1INCH/usd", Ok("1INCH/USD"));
        check(
            "BTCUSDT",
            Err(
                "expected BASE/QUOTE, found \"BTCUSDT\": the joined form does not say where the base ends",
            ),
        );
        for text in [
            "BTC/",
            "/",
            "BTC/USDT/X",
            "BTC USDT",
            "BTC%2FUSDT",
            "ÄTH/USDT",
            "ABCDEFGHIJKLMNOPQRSTU/X",
        ] {
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
        check(true, source_id("binance-2"));
        check(false, source_id("Binance"));
        check(false, source_id(""));
        check(false, source_id(&"a".repeat(33)));
        check(true, category_id(&"a".repeat(64)));
        check(false, category_id("majors_1"));
        check(true, market_id("BTC-USDT_2.x"));
        check(false, market_id("BTC/USDT"));
        check(true, quote_asset("*"));
        check(false, quote_asset("US*"));
        check(false, words("a\nb"));
    }
}
