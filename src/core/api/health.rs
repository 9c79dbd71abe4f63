//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::error::Error;
use super::outcome::{Outcome, Prepared};
use super::reasons::{self, State};
use super::view::View;
use crate::core::SourceState;
use crate::http::{Cache, Head, Responder};
use crate::json::{List, Value as _, json};

/// Which of the three is requested.
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

impl Prepared for Kind {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        let mut body = Vec::with_capacity(BODY_BYTES);
        let state = write_body(view, &mut body);
        let is_healthy = match self {
            Kind::Whole => is_serving(state),
            Kind::Live => true,
            Kind::Ready => is_ready(view, state),
        };
        let head = Head {
            status: if is_healthy { 200 } else { 503 },
            fields: if is_healthy { b"" } else { b"Retry-After: 1\r\n" },
            ..Head::json(None, Cache::NoStore)
        };
        responder.send(&head, &body);
        Ok(Outcome::Sent)
    }
}

/// Appends the body of `/health`, and returns the state that it tells. Balancers ask all the time: the JSON writer would take twice as long.
pub fn write_body(view: &View<'_>, out: &mut Vec<u8>) -> State {
    const CACHED: &str =
        concat!(",\"version\":\"", env!("CARGO_PKG_VERSION"), "\",\"quotes\":{\"cached\":");
    let (status, all) = (view.status, &view.market.quotes);
    let (state, quotes) = (reasons::state(status, all), all.counts());
    let sources = || status.running();
    let up = sources().filter(|(_, it)| it.state == SourceState::Up);
    let uptime_ms = match is_ready(view, state) {
        true => "\",\"live\":true,\"ready\":true,\"uptimeMs\":",
        false => "\",\"live\":true,\"ready\":false,\"uptimeMs\":",
    };
    let uptime = view.now.mono.since(status.started.mono);
    let figures = [
        (uptime_ms, uptime.as_millis() as u64),
        (CACHED, quotes.cached as u64),
        (",\"fresh\":", quotes.fresh as u64),
        (",\"stale\":", quotes.stale as u64),
        ("},\"upstreams\":{\"up\":", up.count() as u64),
        (",\"total\":", sources().count() as u64),
    ];
    out.extend_from_slice(b"{\"status\":\"");
    out.extend_from_slice(state.name().as_bytes());
    for (text, figure) in figures {
        out.extend_from_slice(text.as_bytes());
        figure.write(out);
    }
    out.extend_from_slice(b"},\"reasons\":");
    let reasons = (state != State::Ok).then(|| reasons::reasons(status, all));
    List(reasons.into_iter().flatten().map(|reason| {
        move |out: &mut Vec<u8>| {
            json!(out, {
                "code": reason.code.name(),
                "source": reason.source.map(|id| &*status[id].id),
                "message": reason.message(status, all, view.now).as_str(),
            });
        }
    }))
    .write(out);
    out.push(b'}');
    state
}

fn is_serving(state: State) -> bool {
    matches!(state, State::Ok | State::Degraded)
}

fn is_ready(view: &View<'_>, state: State) -> bool {
    is_serving(state) && view.market.quotes.counts().fresh > 0
}
