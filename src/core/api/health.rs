//! `/health`, `/health/live` and `/health/ready`: constant cost, no I/O.

use super::error::Error;
use super::outcome::Outcome;
use super::reasons::{self, State};
use super::view::View;
use crate::core::SourceState;
use crate::http::{Cache, Head, Responder};
use crate::json::Object;

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

/// Room for a body without reasons.
const BODY_BYTES: usize = 340;

/// Responds to all three.
pub fn health(
    view: &View<'_>,
    kind: Kind,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let (status, quotes) = (view.status, &view.market.quotes);
    let counts = quotes.counts();
    let state = reasons::state(status, quotes);
    let is_serving = matches!(state, State::Ok | State::Degraded);
    let is_ready = is_serving && counts.fresh > 0;
    let is_healthy = match kind {
        Kind::Whole => is_serving,
        Kind::Live => true,
        Kind::Ready => is_ready,
    };
    let is_up = |state: SourceState| state == SourceState::Up;
    let up = status.sources.iter().filter(|it| is_up(it.state)).count();
    let uptime = view.now.mono.since(status.started.mono);
    let mut body = Vec::with_capacity(BODY_BYTES);
    let mut object = Object::open(&mut body);
    object.put("status", state.name());
    object.put("live", true);
    object.put("ready", is_ready);
    object.put("uptimeMs", uptime.as_millis() as u64);
    object.put("version", env!("CARGO_PKG_VERSION"));
    let mut inner = object.object("quotes");
    inner.put("cached", counts.cached);
    inner.put("fresh", counts.fresh);
    inner.put("stale", counts.stale);
    inner.close();
    let mut inner = object.object("upstreams");
    inner.put("up", up);
    inner.put("total", status.sources.len());
    inner.close();
    let mut array = object.array("reasons");
    // Balancers ask all the time: if the state is `ok`, the reasons need not be looked for again.
    if state != State::Ok {
        for reason in reasons::reasons(status, quotes) {
            let source = reason.source.map(|id| &*status[id].id);
            let mut object = array.object();
            object.put("code", reason.code.name());
            object.put("source", source);
            object.put("message", reason.message(status, quotes, view.now).as_str());
            object.close();
        }
    }
    array.close();
    object.close();
    let head = Head {
        status: if is_healthy { 200 } else { 503 },
        fields: if is_healthy {
            b""
        } else {
            b"Retry-After: 1\r\n"
        },
        ..Head::json(None, Cache::NoStore)
    };
    responder.send(&head, &body);
    Ok(Outcome::Sent)
}
