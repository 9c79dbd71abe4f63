//! The access log: one line for each response, at level `info` under the target `access`.
//!
//! Owns the form of the line, and the lines of the current turn: a response that is made in the turn that
//! read its request took the whole turn, whose time is known at its end. If the log is off, which is the
//! default, a response costs the check of one flag.
//!
//! It never writes a client's bytes unescaped: a byte that is not visible ASCII, a quote or a backslash is
//! written like `\u000a`, and a long target is cut. So one line is one response.

use crate::core::clients::address_counts::shown;
use crate::log_targets::ACCESS;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes of a request's target that a line shows: a long list of symbols is cut.
const TARGET_BYTES: usize = 256;

/// Bytes of an unknown method that a line shows: the longest registered one has 17.
const METHOD_BYTES: usize = 32;

/// Lines that may wait for the end of their turn: some 200 KB. Further lines are written at once, without
/// a time.
const LINES: usize = 1024;

/// See the module's page.
#[derive(Debug)]
pub struct AccessLog {
    /// True if the logger takes such lines.
    pub on: bool,
    /// Lines that lack their time.
    turn: Vec<String>,
}

impl AccessLog {
    /// On if the logger, which runs already, takes such lines. A reload may change that.
    pub fn new() -> AccessLog {
        AccessLog { on: log::log_enabled!(target: ACCESS, log::Level::Info), turn: Vec::new() }
    }

    /// What the line of a request begins with, if lines are written. It is kept until the response is
    /// written. `client`: the address that the request counts for. `head`: empty if no request could be read.
    pub fn describe(&self, client: Option<IpAddr>, head: &[u8]) -> Option<Box<str>> {
        self.on.then(|| format!("peer={} {}", shown(client), describe(head)).into_boxed_str())
    }

    /// Logs a response, if lines are written. `bytes`: its size. `took`: how long it has taken; `None` if it
    /// was made in the turn that read its request. The line of such a response is written at the end of the
    /// turn.
    #[inline(always)]
    pub fn log(&mut self, line: Option<&str>, status: u16, bytes: usize, took: Option<Duration>) {
        if let Some(line) = line {
            self.note(format!("{line} status={status} bytes={bytes}"), took);
        }
    }

    fn note(&mut self, line: String, took: Option<Duration>) {
        match took {
            Some(took) => write_line(&line, took),
            None if self.turn.len() < LINES => self.turn.push(line),
            None => log::info!(target: ACCESS, "{line} ms=-"),
        }
    }

    /// Ends the turn, which took `took_us`.
    pub fn end_turn(&mut self, took_us: u64) {
        if !self.turn.is_empty() {
            let took = Duration::from_micros(took_us);
            self.turn.drain(..).for_each(|line| write_line(&line, took));
        }
    }
}

fn write_line(line: &str, took: Duration) {
    let micros = took.as_micros();
    log::info!(target: ACCESS, "{line} ms={}.{:03}", micros / 1000, micros % 1000);
}

fn describe(head: &[u8]) -> String {
    if head.is_empty() {
        return "method=- target=-".to_string();
    }
    let head = head.trim_ascii_start();
    let mut text = String::from("method=");
    let mut words = head.split(|byte| matches!(byte, b' ' | b'\r' | b'\n'));
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    show(&mut text, method, METHOD_BYTES);
    text.push_str(" target=\"");
    let cut = target.len().min(TARGET_BYTES);
    show(&mut text, &target[..cut], TARGET_BYTES);
    text.push('"');
    if target.len() > TARGET_BYTES {
        text.push_str("...");
    }
    text
}

/// Appends at most `most` bytes of a client's, escaped.
fn show(text: &mut String, bytes: &[u8], most: usize) {
    for byte in bytes.iter().take(most) {
        match byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\') {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("\\u{byte:04x}")),
        }
    }
    if bytes.len() > most {
        text.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::request;

    fn described(raw: &[u8]) -> String {
        describe(request(raw).head)
    }

    #[test]
    fn nothing_that_a_client_sends_can_forge_a_line() {
        let raw = b"GET /health?a=%0A HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(described(raw), "method=GET target=\"/health?a=%0A\"");
        // The parser refuses such bytes; the log does not rely on it. Blanks end the target.
        let head = |target: &[u8]| [b"GET ", target, b" HTTP/1.1\r\n"].concat();
        for byte in (0..=255u8).filter(|byte| !b" \r\n".contains(byte)) {
            let text = describe(&head(&[b'/', byte, b'z']));
            let plain = (0x21..=0x7e).contains(&byte) && byte != b'"' && byte != b'\\';
            let shown = match plain {
                true => char::from(byte).to_string(),
                false => format!("\\u{byte:04x}"),
            };
            assert_eq!(text, format!("method=GET target=\"/{shown}z\""));
        }
        let text = describe(&head(&[1; 9000]));
        assert!(text.starts_with("method=GET target=\"\\u0001\\u0001"));
        assert_eq!(text.len(), 19 + 6 * TARGET_BYTES + 4);
    }

    #[test]
    fn every_method_stands_in_its_line_by_its_own_name() {
        for method in ["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "QUERY"] {
            let raw = format!("{method} /x HTTP/1.1\r\nHost: h\r\n\r\n");
            let expected = format!("method={method} target=\"/x\"");
            assert_eq!(described(raw.as_bytes()), expected);
        }
        let check = |head: &[u8], expected: &str| assert_eq!(describe(head), expected);
        check(b"BREW /x HTTP/1.1\r\n", "method=BREW target=\"/x\"");
        check(b"\r\n!#$%&'*+ /\xff\" HTTP/1.1", "method=!#$%&'*+ target=\"/\\u00ff\\u0022\"");
        check(b"\xfe\"\n", "method=\\u00fe\\u0022 target=\"\"");
        let long = [b"M".repeat(9000), b" /".to_vec()].concat();
        check(&long, &format!("method={}... target=\"/\"", "M".repeat(METHOD_BYTES)));
    }
}
