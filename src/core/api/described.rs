//! `/openapi.json`: the description of all addresses for programs (OpenAPI 3.1.0).
//!
//! Owns the document: the file `openapi.json`, packed when marketd is compiled, with the schema of the
//! metrics, which is made from their table. Each listener's document has the paths that it serves and their
//! base paths. Tests hold the file to the code: its paths to the table of endpoints, its parameters and
//! error codes to those in the code, its schemas and examples to real responses.

use super::body::Body;
use super::compressed_cache::CacheKey;
use super::error::Error;
use super::metrics;
use super::outcome::Outcome;
use super::params::ApiRequest;
use super::view::View;
use crate::config::Config;
use crate::core::Service;
use crate::http::{Cache, Head, Responder, unpacked};
use crate::json::{Array, json};
use std::ops::Range;
use std::sync::OnceLock;

/// Seconds for which it may be cached: it changes with the version of marketd alone.
const KEPT_S: u32 = 3600;

/// True if what is for people is built in: the page, and the feed for charting libraries.
pub const HAS_PAGE: bool = cfg!(feature = "page");

/// The file without white space outside of its strings, in gzip: `scripts/build.rs` makes it.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// Responds to `/openapi.json`.
pub fn document(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    let body = Body::of(Document::of(view).on(view.config, call.service).as_bytes());
    let head = Head::json(None, Cache::MaxAge(KEPT_S));
    Ok(body.send(view, responder, head, b'o', CacheKey::of("/openapi.json", ())))
}

/// The document in the pieces of which a listener has some.
struct Document {
    start: String,
    /// The paths of the API, and behind them those for people and charting libraries.
    api: String,
    /// The paths of the ecosystem.
    ecosystem: String,
    /// The paths that every listener has, and all that is behind the paths.
    common: String,
}

/// Writes all addresses of the listener, each with what it is for.
pub fn write_addresses(out: &mut Vec<u8>, call: &ApiRequest<'_>) {
    let mut array = Array::open(out);
    for (paths, base) in Document::of(call.view).served(call.view.config, call.service) {
        for (path, summary) in addresses(paths) {
            let path = format!("{base}{path}");
            json!(array.item(), { "path": path.as_str(), "description": summary });
        }
    }
    array.close();
}

/// The paths in a part of the document, each with its summary.
fn addresses(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("\":{\"get\":{").map(move |(at, _)| {
        let path = text[..at].rsplit('"').next().unwrap_or_default();
        let summary = text[at..].split("\"summary\":\"").nth(1);
        let summary = summary.unwrap_or_default();
        (path, summary.split('"').next().unwrap_or_default())
    })
}

impl Document {
    /// The document of this program.
    fn of(view: &View<'_>) -> &'static Document {
        static DOCUMENT: OnceLock<Document> = OnceLock::new();
        DOCUMENT.get_or_init(|| Document::new(view))
    }

    /// The document with the schema of the metrics.
    fn new(view: &View<'_>) -> Document {
        let metrics = String::from_utf8(metrics::schema(view));
        let metrics = metrics.expect("the table of metrics is ASCII");
        let metrics = format!("\"Metrics\":{metrics}");
        let text = unpacked(PACKED).replacen("\"Metrics\":{}", &metrics, 1);
        let place = |wanted| text.find(wanted).expect("the file of the source tree has it");
        let (api, ecosystem) = (place("\"/api/v1/"), place("\"/api/ecosystem/"));
        let common = place("\"/health\":");
        // What is for people comes last.
        let api_end = if HAS_PAGE { ecosystem } else { place("\"/udf/") };
        let piece = |range: Range<usize>| text[range].to_string();
        Document {
            start: piece(0..api),
            api: piece(api..api_end),
            ecosystem: piece(ecosystem..common),
            common: piece(common..text.len()),
        }
    }

    /// The document of a listener of this service.
    fn on(&self, config: &Config, service: Service) -> String {
        let served = self.served(config, service);
        // The base path of most addresses stands above all of them, another one at each.
        let [.., (_, base)] = served;
        let mut text = self.start.replacen("\"servers\":[{\"url\":\"/\"}]", &servers(base), 1);
        for (paths, other) in served {
            match other == base {
                true => text += paths,
                false => {
                    let servers = servers(other);
                    text += &paths.replace("{\"get\":", &format!("{{{servers},\"get\":"));
                }
            }
        }
        text
    }

    /// The paths that a listener of this service serves, in three pieces, each with its base path.
    fn served<'a>(&'a self, config: &'a Config, service: Service) -> [(&'a str, &'a str); 3] {
        let (api, ecosystem) = (&*config.base_path, &*config.ecosystem_base_path);
        let [of_api, of_ecosystem] = [(&*self.api, api), (&*self.ecosystem, ecosystem)];
        match service {
            Service::Api => [of_api, ("", api), (&self.common, api)],
            Service::Ecosystem => [("", ecosystem), of_ecosystem, (&self.common, ecosystem)],
            _ => [of_api, of_ecosystem, (&self.common, api)],
        }
    }
}

/// The member `servers` with this base path.
fn servers(base: &str) -> String {
    let base = if base.is_empty() { "/" } else { base };
    let mut out = Vec::new();
    json!(&mut out, { "url": base });
    format!("\"servers\":[{}]", String::from_utf8_lossy(&out))
}

/// The file.
#[cfg(test)]
pub fn file() -> serde_json::Value {
    serde_json::from_slice(include_bytes!("openapi.json")).expect("it is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_its_file_says() {
        let minified: serde_json::Value =
            serde_json::from_str(&unpacked(PACKED)).expect("it is JSON");
        assert_eq!(minified, file());
        assert!(!unpacked(PACKED).contains('\n'));
        assert_eq!(minified["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
