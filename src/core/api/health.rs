//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::error::Error;
use super::outcome::Outcome;
use super::view::View;
use crate::core::SourceState;
use crate::core::api::reasons::{self, State};
use crate::http::{Cache, Head, Responder};
use crate::json::Array;

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

/// Room for the body without reasons: 200 bytes of text, and six numbers of at most 20 digits.
const BODY_BYTES: usize = 340;

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
    let state = reasons::state(view.status, &view.market.quotes);
    let serving = matches!(state, State::Ok | State::Degraded);
    let ready = serving && !all_stale;
    let healthy = match kind {
        Kind::Whole => serving,
        Kind::Live => true,
        Kind::Ready => ready,
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
    push(state.name().as_bytes());
    for (text, figure) in figures {
        push(text.as_bytes());
        push(itoa::Buffer::new().format(figure).as_bytes());
    }
    push(b"},\"reasons\":");
    push(if state == State::Ok { b"[]}" } else { b"" });
    let mut with_reasons = Vec::new();
    let mut body = &body[..length];
    if state != State::Ok {
        with_reasons.extend_from_slice(body);
        write_reasons(view, &mut with_reasons);
        with_reasons.push(b'}');
        body = &with_reasons;
    }
    let head = Head {
        status: if healthy { 200 } else { 503 },
        fields: if healthy { b"" } else { b"Retry-After: 1\r\n" },
        ..Head::json(None, Cache::NoStore)
    };
    responder.send(&head, body);
    Ok(Outcome::Answered)
}

fn write_reasons(view: &View<'_>, out: &mut Vec<u8>) {
    let (status, quotes) = (view.status, &view.market.quotes);
    let mut array = Array::open(out);
    for reason in reasons::reasons(status, quotes) {
        let mut object = array.object();
        object.put("code", reason.code.name());
        object.put(
            "source",
            reason.source.map(|id| &*status.sources[id.index()].id),
        );
        object.put("message", reason.message(status, quotes, view.now).as_str());
        object.close();
    }
    array.close();
}
