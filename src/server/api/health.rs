//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::params::Decimals;
use super::write::Object;
use super::{Error, Outcome, View};
use crate::http::{Cache, ContentType, Head, Responder};
use crate::server::SourceState;

/// Which of the three was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For people and monitoring: 503 while nothing can be served.
    Whole,
    /// For a supervisor: 200 as long as the loop turns.
    Live,
    /// For a balancer: 503 also while every quote is stale.
    Ready,
}

/// How the service does, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Ok,
    Degraded,
    Starting,
    Stopping,
}

/// Answers all three.
pub fn health(
    view: &View<'_>,
    kind: Kind,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let quotes = view.market.quotes.counts();
    let up = (view.status.sources.iter())
        .filter(|source| source.state == SourceState::Up)
        .count();
    let total = view.status.sources.len();
    let all_stale = quotes.fresh == 0;
    let history = &view.status.history;
    let word = if view.status.stopping {
        Word::Stopping
    } else if quotes.cached == 0 {
        Word::Starting
    } else if up < total || all_stale || history.unusable || history.write_failed {
        Word::Degraded
    } else {
        Word::Ok
    };
    let serving = matches!(word, Word::Ok | Word::Degraded);
    let ready = serving && !all_stale;
    let healthy = match kind {
        Kind::Whole => serving,
        Kind::Live => true,
        Kind::Ready => ready,
    };
    let name = match word {
        Word::Ok => "ok",
        Word::Degraded => "degraded",
        Word::Starting => "starting",
        Word::Stopping => "stopping",
    };
    let uptime_ms = view.now.mono.since(view.status.started.mono).as_millis();
    let mut body = Vec::with_capacity(256);
    let mut object = Object::open(&mut body, Decimals::Number);
    object.text("status", name);
    object.boolean("live", Some(true));
    object.boolean("ready", Some(ready));
    object.integer("uptimeMs", Some(uptime_ms as i64));
    object.text("version", env!("CARGO_PKG_VERSION"));
    let mut inner = object.object("quotes");
    inner.integer("cached", Some(quotes.cached as i64));
    inner.integer("fresh", Some(quotes.fresh as i64));
    inner.integer("stale", Some(quotes.stale as i64));
    inner.close();
    let mut inner = object.object("upstreams");
    inner.integer("up", Some(up as i64));
    inner.integer("total", Some(total as i64));
    inner.close();
    object.close();
    let head = Head {
        status: if healthy { 200 } else { 503 },
        etag: None,
        cache: Cache::NoStore,
        content_type: ContentType::Json,
        fields: if healthy { b"" } else { b"Retry-After: 1\r\n" },
    };
    responder.send(&head, &body);
    Ok(Outcome::Answered)
}
