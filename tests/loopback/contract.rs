//! The contract's bodies as data: every key of every answer, in its order, with its type.

use crate::support::{Json, Response};

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A text that is not empty.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A name in addresses: `[a-z0-9-]{1,64}`.
    Slug,
    /// A canonical symbol.
    Symbol,
    /// Exact digits in their shortest form: a number, or a text when that was asked for.
    Decimal,
    /// A whole number, not below zero.
    Count,
    /// A number of milliseconds, with up to three places.
    Millis,
    /// Milliseconds since 1970, of our time.
    Time,
    /// The same in ISO 8601, UTC.
    Iso,
    /// `true` or `false`.
    Bool,
    /// `null`, or this.
    Maybe(&'static Shape),
    /// An object of exactly these counts, in this order.
    Counts(&'static str),
    /// Any number of these.
    List(&'static Shape),
    /// Exactly these members, in this order.
    Object(&'static [(&'static str, Shape)]),
    /// An array of exactly these.
    Row(&'static [Shape]),
}

use Shape::*;

pub const QUOTE: Shape = Object(&[
    ("symbol", Symbol),
    ("base", Text),
    ("quote", Text),
    ("source", Slug),
    ("last", Decimal),
    ("bid", Maybe(&Decimal)),
    ("ask", Maybe(&Decimal)),
    ("bidVolume", Maybe(&Decimal)),
    ("askVolume", Maybe(&Decimal)),
    ("open", Maybe(&Decimal)),
    ("high", Maybe(&Decimal)),
    ("low", Maybe(&Decimal)),
    ("change", Maybe(&Decimal)),
    ("percentage", Maybe(&Decimal)),
    ("baseVolume", Maybe(&Decimal)),
    ("quoteVolume", Maybe(&Decimal)),
    ("timestamp", Maybe(&Time)),
    ("receivedAt", Time),
    ("stale", Bool),
]);

pub const QUOTES: Shape = Object(&[
    ("quotes", List(&QUOTE)),
    ("errors", List(&Object(&[("symbol", Text), ("code", Text), ("message", Text)]))),
]);

pub const CATEGORY: Shape =
    Object(&[("id", Slug), ("name", Text), ("description", Maybe(&Text)), ("marketCount", Count)]);

pub const CATEGORIES: Shape = Object(&[("categories", List(&CATEGORY))]);

pub const MARKETS: Shape = Object(&[
    ("category", CATEGORY),
    (
        "markets",
        List(&Object(&[
            ("symbol", Symbol),
            ("base", Text),
            ("quote", Text),
            ("active", Bool),
            ("source", Maybe(&Slug)),
            ("last", Maybe(&Decimal)),
            ("percentage", Maybe(&Decimal)),
            ("quoteVolume", Maybe(&Decimal)),
            ("timestamp", Maybe(&Time)),
            ("receivedAt", Maybe(&Time)),
            ("stale", Maybe(&Bool)),
        ])),
    ),
]);

const BOUNDS: Shape = Object(&[("min", Maybe(&Decimal)), ("max", Maybe(&Decimal))]);

const METADATA: Shape = Object(&[
    ("precision", Object(&[("amount", Maybe(&Count)), ("price", Maybe(&Count))])),
    ("limits", Object(&[("amount", BOUNDS), ("price", BOUNDS), ("cost", BOUNDS)])),
    ("taker", Maybe(&Decimal)),
    ("maker", Maybe(&Decimal)),
]);

pub const ECOSYSTEM_LIST: Shape = List(&Object(&[
    ("id", Text),
    ("name", Symbol),
    ("symbol", Symbol),
    ("currency", Text),
    ("pair", Text),
    ("isTrending", Bool),
    ("isHot", Bool),
    ("icon", Maybe(&Text)),
    ("status", Bool),
    ("metadata", METADATA),
]));

const EXTENT: Shape = Object(&[("from", Maybe(&Time)), ("to", Maybe(&Time)), ("count", Count)]);

pub const ECOSYSTEM_MARKET: Shape = Object(&[
    ("id", Text),
    ("name", Symbol),
    ("symbol", Symbol),
    ("currency", Text),
    ("pair", Text),
    ("isTrending", Bool),
    ("isHot", Bool),
    ("icon", Maybe(&Text)),
    ("status", Bool),
    ("metadata", METADATA),
    ("categories", List(&Slug)),
    ("sources", List(&Slug)),
    ("intervals", List(&OneOf(&INTERVALS))),
    ("chart", Object(&[("1m", EXTENT), ("1h", EXTENT), ("1d", EXTENT)])),
    ("quote", Maybe(&QUOTE)),
    ("createdAt", Maybe(&Iso)),
    ("updatedAt", Maybe(&Iso)),
]);

pub const CHART: Shape = List(&Row(&[Time, Decimal, Decimal, Decimal, Decimal, Decimal]));

pub const METRICS: Shape = Object(&[
    ("quotesCollected", Count),
    ("cachedEntries", Count),
    ("chartsStored", Count),
    ("candlesStored", Count),
    ("startedAt", Time),
    ("uptimeMs", Count),
    ("version", Text),
    ("quotes", Counts("collected rejected stale symbols failovers returns")),
    ("charts", Counts("series candles written updated gaps evicted bytes persistErrors")),
    (
        "history",
        Object(&[
            ("enabled", Bool),
            ("usable", Bool),
            ("inserted", Count),
            ("updated", Count),
            ("evicted", Count),
            ("bytes", Count),
        ]),
    ),
    ("upstreams", List(&UPSTREAM)),
    ("cluster", Maybe(&CLUSTER)),
    (
        "http",
        Object(&[
            ("requests", Count),
            ("inFlight", Count),
            ("status", Counts("2xx 3xx 4xx 5xx")),
            ("notModified", Count),
            ("badRequests", Count),
            ("timeouts", Count),
            ("rejected", Count),
            ("rateLimited", Count),
            ("bytesPending", Count),
            ("bytesOut", Count),
            ("connectionsOpen", Count),
            ("connectionsTotal", Count),
        ]),
    ),
    (
        "streams",
        Object(&[
            ("open", Count),
            ("opened", Count),
            ("refused", Count),
            ("events", Count),
            ("conflated", Count),
            ("closes", CLOSES),
        ]),
    ),
    (
        "process",
        Object(&[
            ("rssBytes", Maybe(&Count)),
            ("openFds", Maybe(&Count)),
            ("logLinesLost", Count),
            ("loopMaxStallMs", Millis),
        ]),
    ),
]);

/// Null without a cluster.
const CLUSTER: Shape = Object(&[
    ("node", Text),
    ("engine", OneOf(&["up", "down"])),
    (
        "sources",
        List(&Object(&[
            ("id", Text),
            ("role", OneOf(&["collector", "follower"])),
            ("epoch", Count),
            ("lagMs", Maybe(&Count)),
        ])),
    ),
]);

const CLOSES: Shape = Counts(
    "client_closed cut_short answered request_limit bad_request head_timeout body_timeout \
     idle_timeout write_timeout slow_reader slow_sender broken refused stopping made_room",
);

const UPSTREAM: Shape = Object(&[
    ("id", Slug),
    ("state", OneOf(&["starting", "up", "backoff", "down"])),
    ("polls", Count),
    ("ok", Count),
    ("errors", Count),
    ("timeouts", Count),
    ("rateLimited", Count),
    ("lastSuccessAt", Maybe(&Time)),
    ("lastErrorAt", Maybe(&Time)),
    ("lastError", Maybe(&Text)),
    ("lastLatencyMs", Maybe(&Count)),
    ("bytesReceived", Count),
    ("bytesSent", Count),
    ("plan", OneOf(&["", "all", "several", "one"])),
    ("nextPollAt", Maybe(&Time)),
    ("backoffUntil", Maybe(&Time)),
    ("budgetSpent", Count),
    ("budgetLeft", Count),
    ("failing", Counts("quotes candles markets time stats")),
    ("roundMs", Count),
    ("spentByOthers", Count),
    ("failovers", Count),
    ("returns", Count),
    ("stale", Count),
    ("frozen", Bool),
    ("clockInDoubt", Bool),
    (
        "backfill",
        Object(&[
            ("wanted", Count),
            ("done", Count),
            ("perMinute", Count),
            ("endsAt", Maybe(&Time)),
        ]),
    ),
]);

pub const HEALTH: Shape = Object(&[
    ("status", OneOf(&["ok", "degraded", "starting", "stopping"])),
    ("live", Bool),
    ("ready", Bool),
    ("uptimeMs", Count),
    ("version", Text),
    ("quotes", Counts("cached fresh stale")),
    ("upstreams", Counts("up total")),
    ("reasons", List(&REASON)),
]);

const REASON: Shape = Object(&[
    (
        "code",
        OneOf(&[
            "stopping",
            "starting",
            "quotes_stale",
            "history_unusable",
            "history_write_failed",
            "log_loses_lines",
            "reload_refused",
            "source_starting",
            "source_backoff",
            "source_down",
            "source_frozen",
            "source_clock_in_doubt",
            "source_candles",
            "source_round",
            "source_budget",
        ]),
    ),
    ("source", Maybe(&Slug)),
    ("message", Text),
]);

const ERROR: Shape =
    Object(&[("status", Count), ("code", Text), ("message", Text), ("param", Maybe(&Text))]);

/// The intervals in the order in which they are told.
pub const INTERVALS: [&str; 15] =
    ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M"];

/// The same in TradingView's words.
pub const RESOLUTIONS: [&str; 15] =
    ["1", "3", "5", "15", "30", "60", "120", "240", "360", "480", "720", "1D", "3D", "1W", "1M"];

/// A good answer with a body of this shape; decimals are numbers.
#[track_caller]
pub fn good(answer: &Response, shape: Shape) -> Json {
    body(answer, shape, Decimals::Numbers)
}

/// The same with `decimals=string`.
#[track_caller]
pub fn good_strings(answer: &Response, shape: Shape) -> Json {
    body(answer, shape, Decimals::Texts)
}

#[track_caller]
fn body(answer: &Response, shape: Shape, decimals: Decimals) -> Json {
    assert_eq!(answer.status, 200, "{}", answer.text());
    common(answer);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    let value = answer.exact();
    if let Err(fault) = shape.fits(&value, decimals) {
        panic!("{fault}, in {value}");
    }
    value
}

/// An error of this status and code that names this parameter, as every error is to be.
#[track_caller]
pub fn error(answer: &Response, status: u16, code: &str, param: Option<&str>) -> String {
    let value = answer.exact();
    assert_eq!(answer.status, status, "{value}");
    common(answer);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(answer.header("Cache-Control"), Some("no-store"), "{value}");
    if let Err(fault) = ERROR.fits(&value, Decimals::Numbers) {
        panic!("{fault}, in {value}");
    }
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
    let mut names: Vec<String> = names.collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a field stands twice: {:?}", answer.headers);
}

/// How decimals leave.
#[derive(Clone, Copy, PartialEq)]
enum Decimals {
    Numbers,
    Texts,
}

impl Shape {
    /// Whether a value has this shape; otherwise where it has not.
    fn fits(&self, value: &Json, decimals: Decimals) -> Result<(), String> {
        let fits = match (self, value) {
            (Maybe(_), Json::Null) => true,
            (Maybe(shape), value) => return shape.fits(value, decimals),
            (Text, Json::Text(text)) => !text.is_empty(),
            (OneOf(texts), Json::Text(text)) => texts.contains(&text.as_str()),
            (Slug, Json::Text(text)) => is_slug(text),
            (Symbol, Json::Text(text)) => is_symbol(text),
            (Iso, Json::Text(text)) => is_iso(text),
            (Decimal, Json::Number(digits)) => decimals == Decimals::Numbers && is_plain(digits),
            (Decimal, Json::Text(digits)) => decimals == Decimals::Texts && is_plain(digits),
            (Count, Json::Number(digits)) => is_count(digits),
            (Millis, Json::Number(digits)) => {
                digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            }
            // From 2001 to 2286 these are the numbers of thirteen digits.
            (Time, Json::Number(digits)) => is_count(digits) && digits.len() == 13,
            (Bool, Json::Bool(_)) => true,
            (List(shape), Json::Array(items)) => {
                return items.iter().try_for_each(|item| shape.fits(item, decimals));
            }
            (Row(shapes), Json::Array(items)) if shapes.len() == items.len() => {
                let mut pairs = shapes.iter().zip(items);
                return pairs.try_for_each(|(shape, item)| shape.fits(item, decimals));
            }
            (Counts(_) | Object(_), Json::Object(found)) => {
                let members: Vec<(&str, &Shape)> = match self {
                    Counts(names) => names.split(' ').map(|name| (name, &Count)).collect(),
                    Object(members) => members.iter().map(|(key, shape)| (*key, shape)).collect(),
                    _ => Vec::new(),
                };
                let keys: Vec<&str> = members.iter().map(|(key, _)| *key).collect();
                if value.keys() != keys {
                    return Err(format!("keys {:?}, not {keys:?}", value.keys()));
                }
                return members.iter().zip(found).try_for_each(|((key, shape), (_, member))| {
                    let fits = shape.fits(member, decimals);
                    fits.map_err(|fault| format!("{key}: {fault}"))
                });
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{value} is no {self:?}")) }
    }
}

fn is_count(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_slug(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(fine)
}

fn is_symbol(text: &str) -> bool {
    let is_asset = |asset: &str| {
        let fine = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        (1..=20).contains(&asset.len()) && asset.bytes().all(fine)
    };
    text.split_once('/').is_some_and(|(base, quote)| is_asset(base) && is_asset(quote))
}

fn is_iso(text: &str) -> bool {
    let pattern = "0000-00-00T00:00:00.000Z";
    let same = |(have, want): (char, char)| have == want || want == '0' && have.is_ascii_digit();
    text.len() == pattern.len() && text.chars().zip(pattern.chars()).all(same)
}

/// The one way to write a decimal: no exponent, no plus, no needless zero, no minus zero.
fn is_plain(digits: &str) -> bool {
    let digits = digits.strip_prefix('-').filter(|rest| *rest != "0").unwrap_or(digits);
    let (whole, places) = match digits.split_once('.') {
        Some((whole, places)) => (whole, Some(places)),
        None => (digits, None),
    };
    let whole_fits =
        is_count(whole) && !whole.is_empty() && (whole == "0" || !whole.starts_with('0'));
    let ends = |places: &str| is_count(places) && !places.is_empty() && !places.ends_with('0');
    whole_fits && places.is_none_or(ends)
}

#[test]
fn shapes_see_what_is_wrong() {
    let check = |shape: Shape, text: &str, fits: bool| {
        let value = Json::parse(text).expect("the test writes JSON");
        assert_eq!(shape.fits(&value, Decimals::Numbers).is_ok(), fits, "{text}");
    };
    for (text, fits) in [
        ("0", true),
        ("-1.5", true),
        ("0.00000012", true),
        ("1.50", false),
        ("1.0", false),
        ("-0", false),
        ("1e5", false),
        ("\"1.5\"", false),
        ("null", false),
    ] {
        check(Decimal, text, fits);
        check(Maybe(&Decimal), text, fits || text == "null");
    }
    check(Object(&[("a", Bool), ("b", Count)]), "{\"a\":true,\"b\":1}", true);
    check(Object(&[("a", Bool), ("b", Count)]), "{\"b\":1,\"a\":true}", false);
    check(Object(&[("a", Bool)]), "{\"a\":true,\"b\":1}", false);
    check(Object(&[("a", Bool), ("b", Count)]), "{\"a\":true}", false);
    check(Row(&[Time, Decimal]), "[1795182473000,1.5]", true);
    check(Row(&[Time, Decimal]), "[1795182473,1.5]", false);
    check(Symbol, "\"BTC/USDT\"", true);
    check(Symbol, "\"btc/usdt\"", false);
    check(Iso, "\"2026-11-20T13:47:22.110Z\"", true);
    check(Iso, "\"2026-11-20T13:47:22Z\"", false);
}
