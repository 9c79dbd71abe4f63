//! A tiny and strict reader of HTTP/1 message heads, for both ends of the tests.
//!
//! It takes nothing that RFC 9112 lets a recipient forgive: a line ends in CR LF, a field has no
//! blank before its colon, and no byte of a head is a control byte.

/// First line and fields of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Request line or status line.
    pub first_line: String,
    /// In order, names as sent.
    pub fields: Vec<(String, String)>,
}

/// Reads a head from the begin of `bytes`: the head and its length, the blank line included;
/// `None` while it is not complete.
pub fn parse_head(bytes: &[u8]) -> Result<Option<(MessageHead, usize)>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "a head that is no text")?;
    let mut lines = text.split("\r\n");
    let first_line = lines.next().unwrap_or_default().to_string();
    if text.replace("\r\n", "").contains(|c: char| c.is_control() && c != '\t') {
        return Err(format!("a control byte in the head {text:?}"));
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) =
            line.split_once(':').ok_or_else(|| format!("a field without a colon: {line:?}"))?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(format!("a bad field name: {line:?}"));
        }
        fields.push((name.to_string(), value.trim_matches([' ', '\t']).to_string()));
    }
    Ok(Some((MessageHead { first_line, fields }, end + 4)))
}

/// The value of the field `name`, whose case does not matter; of several, the first.
pub fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// Whether the comma list in the field `name` holds `token`.
pub fn lists(fields: &[(String, String)], name: &str, token: &str) -> bool {
    let same = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
    let mut tokens = fields.iter().filter(same).flat_map(|(_, v)| v.split(','));
    tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
}

/// Turns `%2F` into `/` and `+` into a blank. A bad escape stays as it is.
pub fn decode_query(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3);
        let hex = escape.and_then(|two| std::str::from_utf8(two).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
