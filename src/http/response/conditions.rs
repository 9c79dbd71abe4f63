//! The comparison of entity tags, for conditional requests (RFC 9110, 13).

/// How entity tags are compared (RFC 9110, 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    /// `W/` is ignored.
    Weakly,
    /// A tag with `W/` matches nothing.
    Strongly,
}

/// True if the list of `If-Match` or `If-None-Match` matches this tag, which includes its quotes. The
/// list is `*` or has tags (RFC 9110, 13.1.1 and 13.1.2). What follows a malformed member is ignored.
pub(super) fn matches_any(list: &[u8], tag: &[u8], compare: Compare) -> bool {
    if list == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        let is_gap = |byte: &&u8| matches!(byte, b',' | b' ' | b'\t');
        rest = &rest[rest.iter().take_while(is_gap).count()..];
        let strong = rest.strip_prefix(b"W/");
        let may_match = strong.is_none() || compare == Compare::Weakly;
        rest = strong.unwrap_or(rest);
        let Some(opaque) = rest.strip_prefix(b"\"") else {
            return false;
        };
        let Some(end) = opaque.iter().position(|&byte| byte == b'"') else {
            return false;
        };
        let (member, behind) = rest.split_at(end + 2);
        if member == tag && may_match {
            return true;
        }
        rest = behind;
    }
}
