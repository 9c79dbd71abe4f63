//! `/`: the page for people, and the index of all addresses for programs; and the files of the page.
//!
//! Owns the choice between the page and the index, the files, and what a browser may do with them. The page
//! links to the configuration in effect. The page is built in unless the feature `page` is off. Then
//! everybody gets the index.

use super::body::Body;
use super::outcome::{Deferred, Outcome};
use super::request::ApiRequest;
use super::view::View;
use super::{body, described};
use crate::core::Service;
use crate::core::compressed_cache::CacheKey;
use crate::http::{Cache, ContentType, ETag, Error, Head, Responder, normal_path, prefers_html};
use crate::json::json;

/// What a browser may load: nothing that does not come from here.
const POLICY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'\r\n";

/// Its address, and its text.
type PageFile = (&'static str, &'static [u8]);

/// The files with these names.
macro_rules! files {
    ($($name:literal)+) => {
        &[$((concat!("/page/", $name), include_bytes!(concat!("../../page/", $name)))),+]
    };
}

/// The files of the page. The first is the page itself.
#[rustfmt::skip]
static FILES: &[PageFile] = if described::HAS_PAGE { files! {
    "index.html" "page.css" "api.js" "app.js" "axis.js" "chart.js" "choices.js" "digits.js" "dom.js"
    "draw.js" "feed.js" "hub.js" "keep.js" "links.js" "overlay.js" "panel.js" "rates.js" "row.js" "series.js"
    "service.js" "slots.js" "spark.js" "table.js" "text.js" "time.js" "tools.js" "views.js"
} } else { &[] };

/// Responds to `/`, and redirects a client that has left out the slash.
pub fn root(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    if call.rest.is_empty() {
        return Ok(add_slash(call, responder));
    }
    // The page requests quotes and charts from the addresses beside its own.
    let base = view.config.base_path.as_bytes();
    let is_home = normal_path(call.request.path).strip_suffix(b"/") == Some(base);
    let has_quotes = call.service != Service::Ecosystem && is_home;
    match FILES.first() {
        Some(page) if has_quotes && prefers_html(call.request.fields) => {
            Ok(send(view, page, true, responder))
        }
        _ => Ok(index(call, view, responder)),
    }
}

/// Responds to the address of a file of the page.
pub fn file(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    if call.rest == b"config.json" {
        return Ok(configuration(view, responder));
    }
    let is_asked = |file: &&PageFile| file.0.as_bytes()["/page/".len()..] == *call.rest;
    // The page itself is at `/`, where its references lead to the others.
    let file = FILES.iter().skip(1).find(is_asked);
    let file = file.ok_or_else(|| Error::not_found(call.request.path))?;
    Ok(send(view, file, false, responder))
}

fn send(
    view: &View<'_>,
    (address, text): &'static PageFile,
    by_media: bool,
    responder: &mut Responder<'_>,
) -> Option<Deferred> {
    let content_type = match address.rsplit('.').next() {
        Some("html") => ContentType::HTML,
        Some("css") => ContentType::CSS,
        _ => ContentType::JAVASCRIPT,
    };
    let mut fields = POLICY.as_bytes().to_vec();
    if by_media {
        preload(&mut fields);
    }
    let head = Head {
        content_type,
        fields: &fields,
        by_media,
        // The file has one version in each run.
        ..Head::json(Some(ETag::new(0, b'p')), Cache::NoCache)
    };
    let key = || CacheKey::new(address, ());
    body::send(view, responder, head, key, text.len(), |out| {
        out.bytes().extend_from_slice(text);
    })
}

/// Names the page's scripts, so that a browser asks for all of them at once.
fn preload(fields: &mut Vec<u8>) {
    let addresses = FILES.iter().map(|file| file.0);
    let scripts = addresses.filter(|address| address.ends_with(".js"));
    // Relative to the page.
    let links = scripts.map(|address| format!("<{}>; rel=modulepreload", &address[1..]));
    let links = links.collect::<Vec<_>>().join(", ");
    fields.extend_from_slice(format!("Link: {links}\r\n").as_bytes());
}

/// Sends the configuration in effect, as `--print-config` prints it: without users and passwords.
fn configuration(view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
    let text = view.config.to_json();
    let head = Head { fields: POLICY.as_bytes(), ..Head::json(None, Cache::NoCache) };
    let key = CacheKey::new("/page/config.json", ());
    Body::from_text(text.as_bytes()).send(view, responder, head, b'c', key)
}

/// Sends all addresses of this listener.
fn index(
    call: &ApiRequest<'_>,
    view: &View<'_>,
    responder: &mut Responder<'_>,
) -> Option<Deferred> {
    let mut text = Vec::with_capacity(2048);
    json!(&mut text, {
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "endpoints": |out: &mut Vec<u8>| described::write_addresses(out, call.service, view.config),
    });
    let head = Head { by_media: true, ..Head::json(None, Cache::NoCache) };
    let key = CacheKey::new("/", call.service.name());
    Body::from_text(&text).send(view, responder, head, b'i', key)
}

/// Redirects to the same address with a slash, because references in the page are relative to what is before
/// the last slash. The redirect is relative, too.
fn add_slash(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
    let last = call.request.path.rsplit(|byte| *byte == b'/').next();
    let mut fields = b"Location: ".to_vec();
    fields.extend_from_slice(last.unwrap_or_default());
    fields.push(b'/');
    if !call.request.query.is_empty() {
        fields.push(b'?');
        fields.extend_from_slice(call.request.query);
    }
    fields.extend_from_slice(b"\r\n");
    let head = Head { status: 308, fields: &fields, ..Head::json(None, Cache::NoCache) };
    responder.send(&head, b"{}");
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_page_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");
        let entries = std::fs::read_dir(folder).expect("a folder of the source");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("an entry").file_name();
            format!("/page/{}", name.to_string_lossy())
        };
        let found: BTreeSet<String> = entries.map(name).collect();
        let built_in = FILES.iter().map(|file| file.0.to_string()).collect();
        assert!(found == built_in || !described::HAS_PAGE, "{found:?}");
    }
}
