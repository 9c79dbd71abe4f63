//! `/openapi.json`: the description of all addresses, for programs (OpenAPI 3.1.0).
//!
//! Owns the document, which is a file of the source tree. The program holds it packed: without the
//! blanks that make the file readable, and with what it says again as references to where it said
//! so before; some tens of kilobytes of a small program are a lot. It is unpacked at the first
//! request for it. It describes and decides nothing; tests hold it to the code: its paths to the
//! routes, its parameters and error codes to those that the code names, its schemas and examples
//! to real answers.

use super::packed::{self, Question};
use super::{Error, Outcome, Service, View};
use crate::config::Config;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, Head, Responder};
use crate::json::Value as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// How long caches may keep it: it changes with the program alone.
const KEPT_S: u32 = 3600;

/// Answers `/openapi.json`.
pub fn document(
    view: &View<'_>,
    service: Service,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| Document::new(unpacked().into()));
    let pieces = document.on(view.config, service);
    let mut made_of = Fingerprint::new();
    for piece in &pieces {
        match piece {
            Piece::Shared(range) => made_of.add(Part::From(range.start as i64)),
            Piece::Own(text) => made_of.add(Part::Text(text)),
        }
    }
    let etag = view.tag(made_of, b'o');
    let head = Head::json(Some(etag), Cache::MaxAge(KEPT_S));
    let length = pieces.iter().map(Piece::len).sum();
    let question = || Question::OpenApi;
    let to_pack = packed::send(view, responder, head, question, length, |out| {
        for piece in pieces {
            match piece {
                Piece::Shared(range) => out.share(&document.text, range),
                Piece::Own(text) => out.bytes().extend_from_slice(&text),
            }
        }
    });
    Ok(to_pack.into())
}

/// The document, and where in it stands what depends on the listener.
struct Document {
    text: Arc<[u8]>,
    /// The member `servers`.
    servers: Range<usize>,
    paths: Vec<PathItem>,
}

/// One member of `paths`.
struct PathItem {
    /// The services on whose listeners it is an address.
    family: Family,
    /// From its name to its end.
    whole: Range<usize>,
    /// Behind the brace that opens it.
    inside: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Api,
    Ecosystem,
    Common,
}

/// A part of a document as it is served.
enum Piece {
    /// As the document has it.
    Shared(Range<usize>),
    Own(Vec<u8>),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Shared(range) => range.len(),
            Piece::Own(text) => text.len(),
        }
    }
}

impl Document {
    fn new(text: Arc<[u8]>) -> Document {
        const SERVERS: &[u8] = b"\"servers\":[{\"url\":\"/\"}]";
        const PATHS: &[u8] = b"\"paths\":{";
        let place = |wanted| place_in(&text, wanted);
        let servers = place(SERVERS)..place(SERVERS) + SERVERS.len();
        let mut paths = Vec::new();
        let mut at = place(PATHS) + PATHS.len();
        while text[at] != b'}' {
            let inside = at + place_in(&text[at..], b"\":{") + 3;
            let end = end_of_object(&text, inside);
            let family = match &text[at + 1..] {
                path if path.starts_with(b"/api/v1/") => Family::Api,
                path if path.starts_with(b"/api/ecosystem/") => Family::Ecosystem,
                _ => Family::Common,
            };
            let whole = at..end;
            paths.push(PathItem {
                family,
                whole,
                inside,
            });
            at = end + usize::from(text[end] == b',');
        }
        Document {
            text,
            servers,
            paths,
        }
    }

    /// What a listener of this service says: the addresses that it serves, and what stands in front
    /// of them.
    fn on(&self, config: &Config, service: Service) -> Vec<Piece> {
        let (api, ecosystem) = (&config.base_path, &config.ecosystem_base_path);
        let base = match service {
            Service::Ecosystem => ecosystem,
            _ => api,
        };
        let is_served = |item: &&PathItem| match item.family {
            Family::Api => service != Service::Ecosystem,
            Family::Ecosystem => service != Service::Api,
            Family::Common => true,
        };
        let first = self.paths.first().map_or(0, |item| item.whole.start);
        let behind = self.paths.last().map_or(0, |item| item.whole.end);
        let mut pieces = vec![
            Piece::Shared(0..self.servers.start),
            Piece::Own(servers(base)),
            Piece::Shared(self.servers.end..first),
        ];
        for (at, item) in self.paths.iter().filter(is_served).enumerate() {
            if at > 0 {
                pieces.push(Piece::Own(b",".to_vec()));
            }
            if item.family == Family::Ecosystem && ecosystem != base {
                pieces.push(Piece::Shared(item.whole.start..item.inside));
                let mut own = servers(ecosystem);
                own.push(b',');
                pieces.push(Piece::Own(own));
                pieces.push(Piece::Shared(item.inside..item.whole.end));
            } else {
                pieces.push(Piece::Shared(item.whole.clone()));
            }
        }
        pieces.push(Piece::Shared(behind..self.text.len()));
        pieces
    }
}

/// The member `servers` where this stands in front of the paths.
fn servers(base: &str) -> Vec<u8> {
    let mut out = b"\"servers\":[{\"url\":".to_vec();
    let base = if base.is_empty() { "/" } else { base };
    base.write(&mut out);
    out.extend_from_slice(b"}]");
    out
}

fn place_in(text: &[u8], wanted: &[u8]) -> usize {
    let found = text.windows(wanted.len()).position(|it| it == wanted);
    found.expect("the document has it")
}

/// Behind the object that was opened right before `at`.
fn end_of_object(text: &[u8], mut at: usize) -> usize {
    let (mut depth, mut in_string, mut is_escaped) = (1, false, false);
    while depth > 0 {
        let byte = text[at];
        match byte {
            b'"' if !is_escaped => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => depth -= 1,
            _ => {}
        }
        is_escaped = in_string && byte == b'\\' && !is_escaped;
        at += 1;
    }
    at
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
    use super::super::route;
    use super::*;
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
