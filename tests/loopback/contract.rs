//! The contract's responses as data: `/openapi.json` says every key of every body, in its order and
//! with its type, and every field of every head.

use crate::support::{Decimals, Json, Marketd, Response, Schemas, get};
use std::sync::OnceLock;

/// The intervals in TradingView's words.
pub const RESOLUTIONS: [&str; 15] =
    ["1", "3", "5", "15", "30", "60", "120", "240", "360", "480", "720", "1D", "3D", "1W", "1M"];

/// The document that a marketd without a base path serves.
#[track_caller]
pub fn document() -> &'static Json {
    static DOCUMENT: OnceLock<Json> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
        let answer = get(marketd.addr(), "/openapi.json");
        assert_eq!(answer.status, 200);
        answer.exact()
    })
}

/// What its paths share, of this kind.
pub fn components(kind: &str) -> &'static Json {
    &document()["components"][kind]
}

/// Its schemas, for bodies with decimals of this form.
pub fn schemas(decimals: Decimals) -> Schemas<'static> {
    Schemas::of_bodies(document(), decimals)
}

/// The path of the document that a target is of; `None` if it is of none.
pub fn path_of(target: &str) -> Option<&'static str> {
    let target = target.split('?').next().unwrap_or_default();
    let fits = |path: &&str| match path.split_once('{') {
        None => *path == target,
        Some((begin, rest)) => {
            let end = rest.split_once('}').map_or("", |(_, end)| end);
            let inner = target.strip_prefix(begin).and_then(|it| it.strip_suffix(end));
            inner.is_some_and(|it| !it.is_empty())
        }
    };
    document()["paths"].keys().into_iter().find(fits)
}

/// Whether decimals of this target are texts.
pub fn decimals_of(target: &str) -> Decimals {
    if target.contains("decimals=string") { Decimals::Texts } else { Decimals::Numbers }
}

/// The description of a path.
pub fn operation(path: &str) -> &'static Json {
    &document()["paths"][path]["get"]
}

/// A good answer.
#[track_caller]
pub fn good(answer: &Response) -> Json {
    assert_eq!(answer.status, 200, "{}", answer.text());
    common(answer);
    as_described(answer);
    if answer.header("ETag").is_some() {
        let cache = answer.header("Cache-Control").unwrap_or_default();
        let seconds = cache.strip_prefix("public, max-age=").map(str::parse::<u32>);
        // An hour for candles of the past.
        let is_fresh = matches!(seconds, Some(Ok(1..=60 | 3600)));
        let is_stale = cache == "no-cache" && answer.text().contains("\"stale\":true");
        assert!(is_fresh || is_stale, "{}: {cache}", answer.target);
    }
    answer.exact()
}

/// An answer is as the description of its path says: status, fields, body.
#[track_caller]
pub fn as_described(answer: &Response) {
    let path = path_of(&answer.target);
    let path = path.unwrap_or_else(|| panic!("{:?} is not described", answer.target));
    let schemas = schemas(decimals_of(&answer.target));
    let responses = &operation(path)["responses"];
    let wanted = responses.get(&answer.status.to_string()).unwrap_or(&responses["default"]);
    let wanted = schemas.resolve(wanted);
    let fields = &wanted["headers"];
    for name in fields.keys() {
        let field = schemas.resolve(&fields[name]);
        match answer.header(name) {
            Some(value) => {
                let faults = schemas.faults(&field["schema"], &Json::Text(value.to_string()));
                assert!(faults.is_empty(), "{path}: {name}: {faults:?}");
            }
            None => assert_ne!(field.get("required"), Some(&Json::Bool(true)), "{path}: {name}"),
        }
    }
    // What OpenAPI says elsewhere, or what is the connection's.
    let own = ["content-type", "content-length", "connection", "transfer-encoding"];
    for (name, _) in &answer.headers {
        let is_known = fields.keys().iter().any(|it| it.eq_ignore_ascii_case(name));
        let is_own = own.contains(&name.to_ascii_lowercase().as_str());
        assert!(is_known || is_own, "{path}: {name} is not described");
    }
    let Some(content) = wanted.get("content") else {
        return assert!(answer.body.is_empty(), "{path}: a body");
    };
    let media = answer.header("Content-Type").and_then(|it| it.split(';').next());
    let content = content.get(media.unwrap_or_default());
    let content = content.unwrap_or_else(|| panic!("{path}: {media:?} is not described"));
    let body = match media {
        Some("application/json") => answer.exact(),
        _ => Json::Text(answer.text().to_string()),
    };
    let faults = schemas.faults(&content["schema"], &body);
    assert!(faults.is_empty(), "{path}: {faults:#?}");
}

/// An error of this status and code that names this parameter, as every error is to be.
#[track_caller]
pub fn error(answer: &Response, status: u16, code: &str, param: Option<&str>) -> String {
    let value = answer.exact();
    assert_eq!(answer.status, status, "{value}");
    common(answer);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(answer.header("Cache-Control"), Some("no-store"), "{value}");
    if path_of(&answer.target).is_some() {
        as_described(answer);
    }
    let faults = schemas(Decimals::Numbers).faults(&components("schemas")["Error"], &value);
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(value["status"], i64::from(status), "{value}");
    assert_eq!(value["code"], code, "{value}");
    assert_eq!(value["param"].text(), param, "{value}");
    let waits = answer.header("Retry-After").map(str::parse::<u32>);
    assert_eq!(waits.is_some(), status == 503, "{waits:?}: {value}");
    assert!(waits.is_none_or(|seconds| seconds.is_ok()));
    value["message"].text().unwrap_or_default().to_string()
}

/// What every answer carries.
#[track_caller]
pub fn common(answer: &Response) {
    assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"));
    for name in ["ETag", "Link", "Retry-After", "Chart-Coverage"] {
        assert!(answer.header_lists("Access-Control-Expose-Headers", name));
    }
    let date = answer.header("Date").expect("every answer has a date");
    assert!(httpdate::parse_http_date(date).is_ok(), "{date}");
    let names = answer.headers.iter().map(|(name, _)| name.to_lowercase());
    // What a list has more of is told in a field of its own.
    let mut names: Vec<String> = names.filter(|it| it != "access-control-expose-headers").collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a field stands twice: {:?}", answer.headers);
}
