//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::{Error, Outcome, View};
use crate::decimal::write_whole;
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

/// Room for the body: 180 bytes of text, and six numbers of at most 20 digits.
const BODY_BYTES: usize = 320;

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
    } else if up < total || all_stale || history.fault().is_some() {
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
    let uptime_ms = view.now.mono.since(view.status.started.mono).as_millis() as u64;
    const CACHED: &str = concat!(
        ",\"version\":\"",
        env!("CARGO_PKG_VERSION"),
        "\",\"quotes\":{\"cached\":"
    );
    let ready_text = match ready {
        true => "\",\"live\":true,\"ready\":true,\"uptimeMs\":",
        false => "\",\"live\":true,\"ready\":false,\"uptimeMs\":",
    };
    let figures = [
        (ready_text, uptime_ms),
        (CACHED, quotes.cached as u64),
        (",\"fresh\":", quotes.fresh as u64),
        (",\"stale\":", quotes.stale as u64),
        ("},\"upstreams\":{\"up\":", up as u64),
        (",\"total\":", total as u64),
    ];
    // Balancers ask all the time: the formatter would take five times as long, and room from the
    // allocator as long again.
    let mut body = [0; BODY_BYTES];
    let mut length = 0;
    let mut push = |text: &[u8]| {
        body[length..length + text.len()].copy_from_slice(text);
        length += text.len();
    };
    push(b"{\"status\":\"");
    push(name.as_bytes());
    for (text, figure) in figures {
        push(text.as_bytes());
        let mut digits = [0; 20];
        let begin = write_whole(figure, &mut digits);
        push(&digits[begin..]);
    }
    push(b"}}");
    let body = &body[..length];
    let head = Head {
        status: if healthy { 200 } else { 503 },
        fields: if healthy { b"" } else { b"Retry-After: 1\r\n" },
        ..Head::json(None, Cache::NoStore)
    };
    responder.send(&head, body);
    Ok(Outcome::Answered)
}
