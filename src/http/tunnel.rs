//! The request for a tunnel through a proxy.
//!
//! Owns the request (CONNECT, RFC 9110, 9.3.6), its credentials (Basic, RFC 7617) and the response. After a
//! 2xx the tunnel begins at once, even if the head announces a body.

use super::upstream::{parse_raw, write_start};

/// Parses the head of the response to a CONNECT: its status and its length. `None` while it is not complete.
/// What its fields say about a body is ignored. Limits and errors are those of [`super::parse_response`].
pub fn parse_connected(bytes: &[u8], most: usize) -> Result<Option<(u16, usize)>, &'static str> {
    Ok(parse_raw(bytes, most)?.map(|raw| (raw.status, raw.used)))
}

/// Appends a CONNECT to `place`, which is `HOST:PORT` with an IPv6 address in brackets. `credentials`
/// are user and password.
pub fn write_connect(out: &mut Vec<u8>, place: &str, credentials: Option<(&[u8], &[u8])>) {
    write_start(out, "CONNECT", place, place);
    if let Some((user, password)) = credentials {
        out.extend_from_slice(b"Proxy-Authorization: Basic ");
        write_base64(out, &[user, b":", password].concat());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends bytes as base64 with padding (RFC 4648, 4).
fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= group.len() { digit } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, 10, and the digits that it does not show.
        let check = |bytes: &[u8], expected: &str| {
            let mut out = Vec::new();
            write_base64(&mut out, bytes);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{bytes:?}");
        };
        check(b"", "");
        check(b"f", "Zg==");
        check(b"fo", "Zm8=");
        check(b"foo", "Zm9v");
        check(b"foob", "Zm9vYg==");
        check(b"fooba", "Zm9vYmE=");
        check(b"foobar", "Zm9vYmFy");
        check(&[0xfb, 0xff, 0xbf], "+/+/");
    }

    #[test]
    fn a_tunnel_is_asked_for_with_or_without_credentials() {
        let check = |credentials: Option<(&[u8], &[u8])>, expected: &str| {
            let mut out = Vec::new();
            write_connect(&mut out, "okx.com:443", credentials);
            let agent = concat!("User-Agent: marketd/", env!("CARGO_PKG_VERSION"), "\r\n");
            let head = format!("CONNECT okx.com:443 HTTP/1.1\r\nHost: okx.com:443\r\n{agent}");
            assert_eq!(String::from_utf8_lossy(&out), format!("{head}{expected}\r\n"));
        };
        check(None, "");
        // RFC 7617, 2.
        check(
            Some((b"Aladdin", b"open sesame")),
            "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n",
        );
    }
}
