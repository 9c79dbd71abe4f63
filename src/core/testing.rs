//! Helpers for the tests of this layer: a core's state, markets that are listed, requests, and an exchange.

use crate::config::{Config, Limits, SourceConfig};
use crate::core::{Context, Status};
use crate::demo::Demo;
use crate::http::{Request, parse};
use crate::market::testing::info;
use crate::market::{Catalog, Market, SourceId};
use crate::time::{Mono, Now, UnixMs};

/// The source of tests that have but one.
pub const SOURCE: SourceId = SourceId(0);

/// A moment of virtual time.
pub const NOW: Now = Now { mono: Mono(1), unix: UnixMs(1_700_000_000_000) };

/// A core of this configuration that has heard nothing yet.
pub fn context(config: Config, now: Now) -> Context {
    let stats = Status::new(config.sources.iter().map(|source| &*source.id), now);
    let market = Market::new(&config);
    Context::new(config, market, stats, now)
}

/// The configuration of one source that polls this exchange.
pub fn config_of(exchange: &str) -> Config {
    Config { sources: vec![SourceConfig::new(exchange)], ..Config::default() }
}

/// One source that names these symbols, and lists those behind the first so many.
pub fn listing(symbols: &[String], unlisted: usize) -> Context {
    let mut config = config_of("binance");
    config.sources[0].symbols = symbols.to_vec();
    let mut cx = context(config, NOW);
    list(&mut cx.market.catalog, &symbols[unlisted..]);
    cx
}

/// The source lists these markets and no others.
pub fn list(catalog: &mut Catalog, symbols: &[impl AsRef<str>]) {
    catalog.drop_list(SOURCE);
    symbols.iter().for_each(|symbol| catalog.list(SOURCE, info(symbol.as_ref())));
    catalog.end_list(SOURCE).expect("a usable list");
    catalog.refresh_list(SOURCE, NOW.unix);
}

/// The request of this head.
pub fn request(raw: &[u8]) -> Request<'_> {
    match parse(raw, &Limits::default()) {
        Ok(Some((request, _))) => request,
        other => panic!("{other:?}"),
    }
}

/// What becomes of those who connect to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Serves,
    Closes,
    Resets,
    /// Answers this, or nothing, and keeps the connection.
    Answers(&'static str),
    /// Answers requests for these paths with that, and serves all others.
    ServesExcept(&'static str, &'static str),
    /// Nobody is there.
    Rejects,
    /// Nothing comes back.
    Swallows,
}

/// An exchange that answers nothing.
pub const HANGS: Manner = Manner::Answers("");

/// The target of a request.
pub fn target(request: &[u8]) -> &str {
    let text = std::str::from_utf8(request).expect("a request is a text");
    text.split(' ').nth(1).expect("a request has a target")
}

/// The response of the demo exchange for this target, after its body was changed.
pub fn answer(
    demo: &Demo,
    target: &str,
    now: UnixMs,
    change: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> Vec<u8> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut body = Vec::new();
    demo.respond(path.as_bytes(), query.as_bytes(), now, &mut body);
    let body = change(body);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), &body].concat()
}
