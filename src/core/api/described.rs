//! `/openapi.json`: the description of all addresses for programs (OpenAPI 3.1.0).
//!
//! Owns the document. When marketd is compiled, `scripts/openapi.rs` expands the file `openapi.json` into it.
//! Each listener's document has the paths that it serves and their base paths. Tests compare the file with
//! the code: the paths with the tables of endpoints, the parameters and error codes with those that the code
//! names, the schemas and examples with real responses.

use super::body;
use super::outcome::Outcome;
use super::request::ApiRequest;
use super::view::View;
use crate::config::Config;
use crate::core::Service;
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Responder, unpacked};
use crate::json::{Array, json};
use std::sync::{Arc, OnceLock};

/// Seconds for which the document may be cached: it changes only when marketd starts again, with another
/// version or configuration.
const KEPT_S: u32 = 3600;

/// True if the page and the feed for charting libraries are built in.
pub const HAS_PAGE: bool = cfg!(feature = "page");

/// What `scripts/openapi.rs` makes of the file, in gzip.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.gz"));

/// Responds to `/openapi.json`.
pub fn document(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let pieces = Document::get().on(view.config, call.service);
    let mut made_of = Fingerprint::default();
    pieces.iter().for_each(|piece| made_of.add(Part::Text(piece)));
    let head = Head::json(Some(ETag::new(made_of.number(), b'o')), Cache::MaxAge(KEPT_S));
    let key = || CacheKey::new("/openapi.json", call.service.name());
    let length = pieces.iter().map(|piece| piece.len()).sum();
    Ok(body::send(view, responder, head, key, length, |out| {
        pieces.iter().for_each(|piece| out.share(piece, 0..piece.len()));
    }))
}

/// The document in parts, of which a listener has some. All responses share them.
struct Document {
    /// All but the paths: the members of an object, without its end.
    start: Arc<[u8]>,
    paths: Vec<DescribedPath>,
}

struct DescribedPath {
    /// The name of its table of endpoints.
    table: String,
    path: String,
    summary: String,
    /// Its object, without the bracket at its start.
    item: Arc<[u8]>,
}

/// The base paths of the two groups of addresses. `None`: the listener does not serve the group.
pub struct Bases<'a> {
    /// `/api/v1`, and the addresses for people and charting libraries.
    pub api: Option<&'a str>,
    /// `/api/ecosystem`.
    pub ecosystem: Option<&'a str>,
}

impl<'a> Bases<'a> {
    /// The base paths of a listener of this service.
    pub fn new(config: &'a Config, service: Service) -> Bases<'a> {
        let is_api = matches!(service, Service::Api | Service::Both);
        let is_ecosystem = matches!(service, Service::Ecosystem | Service::Both);
        Bases {
            api: is_api.then_some(&*config.base_path),
            ecosystem: is_ecosystem.then_some(&*config.ecosystem_base_path),
        }
    }

    /// The base path under which the document lists the addresses that every listener has.
    fn common(&self) -> &'a str {
        self.api.or(self.ecosystem).unwrap_or_default()
    }
}

/// Writes all addresses of the listener, each with what it is for.
pub fn write_addresses(out: &mut Vec<u8>, service: Service, config: &Config) {
    let mut array = Array::open(out);
    for (it, base) in Document::get().served(config, service) {
        let path = format!("{base}{}", it.path);
        json!(array.item(), { "path": path.as_str(), "description": it.summary.as_str() });
    }
    array.close();
}

impl Document {
    /// The document of this program.
    fn get() -> &'static Document {
        static DOCUMENT: OnceLock<Document> = OnceLock::new();
        DOCUMENT.get_or_init(Document::new)
    }

    fn new() -> Document {
        let text = unpacked(PACKED);
        let mut lines = text.lines();
        let start = lines
            .next()
            .and_then(|line| line.strip_suffix('}'))
            .expect("its first line is an object");
        let paths = lines.map(|line| {
            let mut parts = line.split('\t').map(str::to_string);
            let mut part = || parts.next().expect("a path has four parts");
            let [table, path, summary, item] = [part(), part(), part(), part()];
            DescribedPath { table, path, summary, item: item.as_bytes()[1..].into() }
        });
        let paths = paths.filter(|it| HAS_PAGE || it.table != "people").collect();
        Document { start: start.as_bytes().into(), paths }
    }

    /// The document of a listener of this service, in pieces.
    fn on(&self, config: &Config, service: Service) -> Vec<Arc<[u8]>> {
        // `servers` with the common base path stands once, above all paths. A path with another base path has
        // `servers` of its own.
        let common = Bases::new(config, service).common();
        let text = |text: String| text.into_bytes().into();
        let start = text(format!(",{},\"paths\":{{", servers(common)));
        let mut pieces = vec![Arc::clone(&self.start), start];
        for (at, (it, base)) in self.served(config, service).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let servers = if base == common { "" } else { &format!("{},", servers(base)) };
            pieces.push(text(format!("{comma}\"{}\":{{{servers}", it.path)));
            pieces.push(Arc::clone(&it.item));
        }
        pieces.push(text("}}".to_string()));
        pieces
    }

    /// The paths that a listener of this service serves, each with its base path.
    fn served<'a>(
        &'a self,
        config: &'a Config,
        service: Service,
    ) -> impl Iterator<Item = (&'a DescribedPath, &'a str)> {
        let bases = Bases::new(config, service);
        self.paths.iter().filter_map(move |it| {
            let base = match it.table.as_str() {
                "common" => Some(bases.common()),
                "ecosystem" => bases.ecosystem,
                _ => bases.api,
            };
            Some((it, base?))
        })
    }
}

/// The member `servers` with this base path.
fn servers(base: &str) -> String {
    let base = if base.is_empty() { "/" } else { base };
    let mut out = Vec::new();
    json!(&mut out, { "url": base });
    format!("\"servers\":[{}]", String::from_utf8_lossy(&out))
}

/// The paths of this build, each with the name of its table.
#[cfg(test)]
pub fn paths() -> Vec<(String, String)> {
    Document::new().paths.into_iter().map(|it| (it.table, it.path)).collect()
}
