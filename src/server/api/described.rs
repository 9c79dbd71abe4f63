//! `/openapi.json`: the description of all addresses, for programs (OpenAPI 3.1.0).
//!
//! Owns the document, which is a file of the source tree. The program holds it packed: without the
//! blanks that make the file readable, and with what it says again as references to where it said
//! so before; some tens of kilobytes of a small program are a lot. It is unpacked at the first
//! request for it. It describes and decides nothing; tests hold it to the code: its paths to the
//! routes, its parameters and error codes to those that the code names, its schemas and examples
//! to real answers.

use super::packed::{self, Question};
use super::{Error, Outcome, View};
use crate::http::{Cache, ETag, Head, Responder};
use std::sync::{Arc, OnceLock};

/// How long caches may keep it: it changes with the program alone.
const KEPT_S: u32 = 3600;

/// Answers `/openapi.json`.
pub fn document(view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    static DOCUMENT: OnceLock<Arc<[u8]>> = OnceLock::new();
    let etag = ETag {
        boot: view.boot,
        version: 0,
        variant: b'o',
    };
    let head = Head::json(Some(etag), Cache::MaxAge(KEPT_S));
    let body = DOCUMENT.get_or_init(|| unpacked().into());
    let question = || Question::OpenApi;
    let to_pack = packed::send(view, responder, head, question, body.len(), |out| {
        out.share(body, 0..body.len());
    });
    Ok(to_pack.into())
}

const FILE: &[u8] = include_bytes!("openapi.json");

/// A byte below 128 stands for itself. Another one begins a reference of three bytes: that byte
/// without its highest bit is how much longer than [`SHORTEST`] it is, and the other two, the low
/// one first, how far back it begins.
static PACKED: [u8; PACKING.1] = {
    let mut out = [0; PACKING.1];
    let mut at = 0;
    while at < out.len() {
        out[at] = PACKING.0[at];
        at += 1;
    }
    out
};

/// Bytes from which a reference is shorter than what it stands for.
const SHORTEST: usize = 4;

/// What a length in seven bits and a distance in sixteen can say.
const LONGEST: usize = SHORTEST + 127;
const FARTHEST: usize = 65_535;

/// Places that are remembered, by a hash of the bytes there.
const PLACES: usize = 8192;

const DENSE: ([u8; FILE.len()], usize) = without_blanks();

const PACKING: ([u8; FILE.len()], usize) = packed();

/// The file without blanks outside of its strings.
const fn without_blanks() -> ([u8; FILE.len()], usize) {
    let mut out = [0; FILE.len()];
    let (mut at, mut len) = (0, 0);
    let (mut in_string, mut escaped) = (false, false);
    while at < FILE.len() {
        let byte = FILE[at];
        assert!(byte < 128, "the file is ASCII");
        at += 1;
        if !in_string && matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            continue;
        }
        if byte == b'"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && byte == b'\\' && !escaped;
        out[len] = byte;
        len += 1;
    }
    (out, len)
}

const fn packed() -> ([u8; FILE.len()], usize) {
    let (text, end) = &DENSE;
    let end = *end;
    let mut out = [0; FILE.len()];
    let (mut at, mut len) = (0, 0);
    let mut seen = [usize::MAX; PLACES];
    while at < end {
        let mut same = 0;
        let mut back = 0;
        if at + SHORTEST <= end {
            let four = u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]);
            let place = (four.wrapping_mul(0x9e37_79b1) >> 19) as usize;
            let before = seen[place];
            seen[place] = at;
            if before != usize::MAX && at - before <= FARTHEST {
                back = at - before;
                while same < LONGEST && at + same < end && text[at + same] == text[before + same] {
                    same += 1;
                }
            }
        }
        if same < SHORTEST {
            out[len] = text[at];
            len += 1;
            at += 1;
        } else {
            out[len] = 128 | (same - SHORTEST) as u8;
            out[len + 1] = back as u8;
            out[len + 2] = (back >> 8) as u8;
            len += 3;
            at += same;
        }
    }
    (out, len)
}

fn unpacked() -> Vec<u8> {
    let mut out = Vec::with_capacity(DENSE.1);
    let mut bytes = PACKED.iter();
    while let Some(&byte) = bytes.next() {
        if byte < 128 {
            out.push(byte);
            continue;
        }
        let mut next = || usize::from(*bytes.next().expect("a reference has three bytes"));
        let back = next() + (next() << 8);
        let begin = out.len() - back;
        // Byte by byte: what is repeated may reach into what it makes.
        for at in begin..begin + SHORTEST + usize::from(byte & 127) {
            out.push(out[at]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Service, route};
    use super::*;
    use crate::config::Config;
    use crate::server::Endpoint;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn document() -> Value {
        serde_json::from_slice(&unpacked()).expect("it is JSON")
    }

    #[test]
    fn the_document_says_what_its_file_says() {
        let file: Value = serde_json::from_slice(FILE).expect("it is JSON");
        assert_eq!(document(), file);
        let dense = &DENSE.0[..DENSE.1];
        assert_eq!(unpacked(), dense);
        assert!(PACKED.len() < dense.len() / 3, "{} bytes", PACKED.len());
        assert_eq!(file["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn every_endpoint_is_described_and_every_path_leads_somewhere() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let config = Config::default();
        let mut found = BTreeSet::new();
        for path in paths.keys() {
            let asked = path.replace('{', "a").replace('}', "z");
            let route = route(&config, Service::Both, asked.as_bytes());
            let route = route.unwrap_or_else(|| panic!("{path} leads nowhere"));
            found.insert(route.endpoint().name());
        }
        let all = Endpoint::all().filter(|endpoint| {
            use Endpoint::{Options, Unknown, Unread};
            !matches!(endpoint, Options | Unknown | Unread)
        });
        assert_eq!(found, all.map(Endpoint::name).collect());
        // Three addresses are one endpoint.
        assert_eq!(paths.len(), found.len() + 2);
    }
}
