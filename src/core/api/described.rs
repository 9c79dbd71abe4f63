//! `/openapi.json`: the description of all addresses for programs (OpenAPI 3.1.0).
//!
//! Owns the document: the file `openapi.json`, minified when marketd is compiled, with the schema of the
//! metrics, which is made from their table. Each listener's document has the paths that it serves and their
//! base paths. Tests hold the file to the code: its paths to the table of endpoints, its parameters and
//! error codes to those in the code, its schemas and examples to real responses.

use super::compressed_cache::CacheKey;
use super::compression;
use super::error::Error;
use super::metrics::{self, Figures};
use super::outcome::Outcome;
use super::params::Call;
use crate::config::Config;
use crate::core::Service;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, Head, Responder};
use crate::json::Value as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Seconds for which it may be cached: it changes with the version of marketd alone.
const KEPT_S: u32 = 3600;

const FILE: &[u8] = include_bytes!("openapi.json");

/// The file without white space outside of its strings.
static TEXT: [u8; MINIFIED.1] = {
    let mut out = [0; MINIFIED.1];
    out.copy_from_slice(MINIFIED.0.split_at(MINIFIED.1).0);
    out
};

const MINIFIED: ([u8; FILE.len()], usize) = {
    let mut out = [0; FILE.len()];
    let (mut at, mut len) = (0, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    while at < FILE.len() {
        let byte = FILE[at];
        at += 1;
        if !in_string && byte.is_ascii_whitespace() {
            continue;
        }
        if byte == b'"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && byte == b'\\' && !is_escaped;
        out[len] = byte;
        len += 1;
    }
    (out, len)
};

/// Responds to `/openapi.json`.
pub fn document(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| Document::new(&metrics::schema(&Figures::of(view))));
    let pieces = document.on(view.config, call.service);
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
    let key = || CacheKey::Address("/openapi.json");
    Ok(compression::send(
        view,
        responder,
        head,
        key,
        length,
        |out| {
            for piece in pieces {
                match piece {
                    Piece::Shared(range) => out.share(&document.text, range),
                    Piece::Own(text) => out.bytes().extend_from_slice(&text),
                }
            }
        },
    ))
}

/// The document, and the places in it that depend on the listener.
struct Document {
    text: Arc<[u8]>,
    /// The member `servers`.
    servers: Range<usize>,
    /// The paths of the API, and behind them those of the ecosystem. Every listener has the others.
    api: Range<usize>,
    ecosystem: Range<usize>,
    /// Behind the opening brace of each path of the ecosystem.
    inside: Vec<usize>,
}

/// A part of a listener's document.
enum Piece {
    /// A range of the document.
    Shared(Range<usize>),
    /// Text of its own.
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
    /// The document with this schema of the metrics.
    fn new(metrics: &[u8]) -> Document {
        const SERVERS: &str = "\"servers\":[{\"url\":\"/\"}]";
        const METRICS: &str = "\"Metrics\":{";
        let text = str::from_utf8(&TEXT).expect("the file of the source tree is UTF-8");
        let place = |wanted| {
            text.find(wanted)
                .expect("the file of the source tree has it")
        };
        let (schema, servers) = (place(METRICS) + METRICS.len() - 1, place(SERVERS));
        let api = place("\"/api/v1/")..place("\"/api/ecosystem/");
        let ecosystem = api.end..place("\"/health\":");
        let paths = text[ecosystem.clone()].match_indices("{\"get\":");
        Document {
            text: [&TEXT[..schema], metrics, &TEXT[schema + 2..]]
                .concat()
                .into(),
            servers: servers..servers + SERVERS.len(),
            inside: paths.map(|(at, _)| ecosystem.start + at + 1).collect(),
            api,
            ecosystem,
        }
    }

    /// The document of a listener of this service: the addresses that it serves, and their base paths.
    fn on(&self, config: &Config, service: Service) -> Vec<Piece> {
        let base = match service {
            Service::Ecosystem => &config.ecosystem_base_path,
            _ => &config.base_path,
        };
        let mut pieces = vec![
            Piece::Shared(0..self.servers.start),
            Piece::Own(servers(base)),
            Piece::Shared(self.servers.end..self.api.start),
        ];
        if service != Service::Ecosystem {
            pieces.push(Piece::Shared(self.api.clone()));
        }
        let mut begin = self.ecosystem.start;
        if service == Service::Api {
            begin = self.ecosystem.end;
        } else if config.ecosystem_base_path != *base {
            for inside in &self.inside {
                pieces.push(Piece::Shared(begin..*inside));
                let mut own = servers(&config.ecosystem_base_path);
                own.push(b',');
                pieces.push(Piece::Own(own));
                begin = *inside;
            }
        }
        pieces.push(Piece::Shared(begin..self.text.len()));
        pieces
    }
}

/// The member `servers` with this base path.
fn servers(base: &str) -> Vec<u8> {
    let mut out = b"\"servers\":[{\"url\":".to_vec();
    let base = if base.is_empty() { "/" } else { base };
    base.write(&mut out);
    out.extend_from_slice(b"}]");
    out
}

/// The file.
#[cfg(test)]
pub fn file() -> serde_json::Value {
    serde_json::from_slice(FILE).expect("it is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_its_file_says() {
        let minified: serde_json::Value = serde_json::from_slice(&TEXT).expect("it is JSON");
        assert_eq!(minified, file());
        assert!(!TEXT.contains(&b'\n'));
        assert_eq!(minified["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
