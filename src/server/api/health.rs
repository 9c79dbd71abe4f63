//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::write::write_integer;
use super::{Error, Outcome, View};
use crate::http::{Cache, Head, Responder};
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
    let uptime_ms = view.now.mono.since(view.status.started.mono).as_millis() as i64;
    // Balancers ask all the time, and the formatter would take five times as long.
    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(b"{\"status\":\"");
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(match ready {
        true => b"\",\"live\":true,\"ready\":true",
        false => b"\",\"live\":true,\"ready\":false".as_slice(),
    });
    const CACHED: &str = concat!(
        ",\"version\":\"",
        env!("CARGO_PKG_VERSION"),
        "\",\"quotes\":{\"cached\":"
    );
    let figures = [
        (",\"uptimeMs\":", uptime_ms),
        (CACHED, quotes.cached as i64),
        (",\"fresh\":", quotes.fresh as i64),
        (",\"stale\":", quotes.stale as i64),
        ("},\"upstreams\":{\"up\":", up as i64),
        (",\"total\":", total as i64),
    ];
    for (text, figure) in figures {
        body.extend_from_slice(text.as_bytes());
        write_integer(&mut body, figure);
    }
    body.extend_from_slice(b"}}");
    let head = Head {
        status: if healthy { 200 } else { 503 },
        fields: if healthy { b"" } else { b"Retry-After: 1\r\n" },
        ..Head::json(None, Cache::NoStore)
    };
    responder.send(&head, &body);
    Ok(Outcome::Answered)
}
