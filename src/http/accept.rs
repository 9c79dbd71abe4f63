//! The content codings and media types that a client accepts (RFC 9110, 12.5.1 and 12.5.3).
//!
//! Owns the grammar of `Accept-Encoding` and `Accept`. It chooses between gzip and no coding, and between
//! HTML and JSON. A malformed `Accept-Encoding` means no coding, which every client understands.

use super::head::{Fields, is_token, members};

/// A quality value, in thousandths.
type Quality = u16;

/// True if `Accept-Encoding` accepts gzip, with at least the quality of no coding.
pub fn accepts_gzip(list: &[u8]) -> bool {
    let (mut gzip, mut identity, mut others) = (None, None, None);
    for member in members(list) {
        let Some((coding, quality)) = read_coding(member) else {
            return false;
        };
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        let place = match coding {
            b"*" => &mut others,
            // RFC 9110, 8.4.1.3: the old name means the same coding.
            _ if is(b"gzip") || is(b"x-gzip") => &mut gzip,
            _ if is(b"identity") => &mut identity,
            _ => continue,
        };
        // If a coding is listed twice, the lower quality counts.
        *place = Some(place.map_or(quality, |before: Quality| before.min(quality)));
    }
    // If neither identity nor `*` has a quality, any quality of gzip is enough, because gzip is
    // shorter.
    let gzip = gzip.or(others).unwrap_or(0);
    gzip > 0 && gzip >= identity.or(others).unwrap_or(0)
}

/// A coding and its quality. `None` if the member is malformed.
fn read_coding(member: &[u8]) -> Option<(&[u8], Quality)> {
    let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let coding = parts.next()?;
    let quality = parts.next().map_or(Some(1000), weight)?;
    let is_name = !coding.is_empty() && coding.iter().all(|&byte| is_token(byte));
    (is_name && parts.next().is_none()).then_some((coding, quality))
}

/// True if the client names `text/html`, with at least the quality of JSON. Programs that accept anything do
/// not name it.
pub fn prefers_html(fields: Fields<'_>) -> bool {
    let (mut html, mut json, mut application, mut anything) = (None, None, None, None);
    let accept = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"accept"));
    for member in accept.flat_map(|(_, value)| members(value)) {
        let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        // A malformed weight is ignored.
        let quality = parts.find_map(weight).unwrap_or(1000);
        match &*media {
            b"text/html" => html = html.max(Some(quality)),
            b"application/json" => json = json.max(Some(quality)),
            b"application/*" => application = Some(quality),
            b"*/*" => anything = Some(quality),
            _ => {}
        }
    }
    let json = json.or(application).or(anything).unwrap_or(0);
    html.is_some_and(|html| html > 0 && html >= json)
}

/// Parses a quality value (RFC 9110, 12.4.2): `q=`, and 0 to 1 with at most three decimal places.
fn weight(text: &[u8]) -> Option<Quality> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = text else {
        return None;
    };
    let places = match rest {
        [] => rest,
        [b'.', places @ ..] if places.len() <= 3 => places,
        _ => return None,
    };
    let mut quality = Quality::from(whole - b'0') * 1000;
    for (at, digit) in places.iter().enumerate() {
        let digit = digit.is_ascii_digit().then(|| Quality::from(digit - b'0'))?;
        quality += digit * [100, 10, 1][at];
    }
    (quality <= 1000).then_some(quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expected: bool) {
        assert_eq!(accepts_gzip(list.as_bytes()), expected, "{list:?}");
    }

    #[test]
    fn gzip_is_sent_where_it_is_accepted_and_nothing_else_preferred() {
        for list in [
            "gzip",
            "GZip",
            "x-gzip",
            "X-GZIP;q=0.1",
            "gzip, deflate, br, zstd",
            "br;q=1.0, gzip;q=0.8, *;q=0.1",
            "gzip;q=1, identity;q=0.5",
            "identity, gzip",
            "*",
            "*;q=0.001",
            "br, *",
            "identity;q=0, *",
            "*;q=0, gzip",
            "gzip;q=0.001, identity;q=0",
            ",, gzip ,\t;".trim_end_matches(';'),
            "gzip ; q=1.000",
            "gzip\t;\tQ=0.50",
            "deflate;q=0, gzip;q=0.2",
        ] {
            check(list, true);
        }
    }

    #[test]
    fn what_is_refused_or_less_wanted_is_not_sent() {
        for list in [
            "",
            " , ",
            "identity",
            "br, deflate",
            "gzip;q=0",
            "gzip;q=0.000",
            "gzip;q=0, *",
            "*;q=0",
            "*, x-gzip;q=0",
            "gzip, x-gzip;q=0",
            "gzip;q=0.5, identity",
            "gzip;q=0.5, *;q=0.6",
            "identity;q=1, *;q=0.5",
            "identity;q=0",
            "gzipped",
            "not-gzip",
        ] {
            check(list, false);
        }
    }

    #[test]
    fn what_is_malformed_asks_for_nothing() {
        for list in [
            "gzip;",
            "gzip;q",
            "gzip;q=",
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=.5",
            "gzip;q=-1",
            "gzip;q=0.5;q=1",
            "gzip;level=1",
            "gzip;q =1",
            "gzip q=1",
            ";q=1, gzip",
            "gzip, \"br\"",
            "gzip, br;q=x",
            "gzip\u{e9}",
        ] {
            check(list, false);
        }
    }

    #[test]
    fn several_fields_are_one_list() {
        check("br,gzip", true);
        check("*,gzip;q=0", false);
        check("gzip,;", false);
    }
}
