//! `/health`, `/health/live` and `/health/ready`: the state of the service and the reasons for it (`state`),
//! which a log tells too (`log`).

mod log;
mod state;

pub use self::log::HealthLog;
pub use self::state::status_line;

use self::state::{State, reasons, state};
use super::outcome::{Outcome, Prepared};
use super::view::View;
use crate::core::SourceState;
use crate::http::{Cache, Error, Head, Responder};
use crate::json::{Array, json};

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
        let state = state(view.status, &view.market.quotes);
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
        with_body(view, state, |body| responder.send(&head, body));
        Ok(Outcome::Sent)
    }
}

/// Appends the body of `/health`.
pub fn write_body(view: &View<'_>, out: &mut Vec<u8>) {
    let state = state(view.status, &view.market.quotes);
    with_body(view, state, |body| out.extend_from_slice(body));
}

/// Passes the body to `send`. Balancers ask all the time: the JSON writer and a buffer on the heap would take
/// a sixth longer, so only the reasons are written with them.
#[inline]
fn with_body(view: &View<'_>, state: State, send: impl FnOnce(&[u8])) {
    let mut figures = [0; BODY_BYTES];
    let length = write_figures(view, state, &mut figures);
    let figures = &figures[..length];
    if state == State::Ok {
        return send(figures);
    }
    let mut body = figures.to_vec();
    write_reasons(view, &mut body);
    send(&body);
}

fn is_serving(state: State) -> bool {
    matches!(state, State::Ok | State::Degraded)
}

fn is_ready(view: &View<'_>, state: State) -> bool {
    is_serving(state) && view.market.quotes.counts().fresh > 0
}

/// Writes the body up to the reasons, or to its end if there are none. Returns its length.
#[inline]
fn write_figures(view: &View<'_>, state: State, body: &mut [u8; BODY_BYTES]) -> usize {
    const CACHED: &str =
        concat!(",\"version\":\"", env!("CARGO_PKG_VERSION"), "\",\"quotes\":{\"cached\":");
    let quotes = view.market.quotes.counts();
    let sources = || view.status.running();
    let up = sources().filter(|(_, it)| it.state == SourceState::Up);
    let uptime_ms = if is_ready(view, state) {
        "\",\"live\":true,\"ready\":true,\"uptimeMs\":"
    } else {
        "\",\"live\":true,\"ready\":false,\"uptimeMs\":"
    };
    let uptime = view.now.mono.since(view.status.started.mono);
    let figures = [
        (uptime_ms, uptime.as_millis() as u64),
        (CACHED, quotes.cached as u64),
        (",\"fresh\":", quotes.fresh as u64),
        (",\"stale\":", quotes.stale as u64),
        ("},\"upstreams\":{\"up\":", up.count() as u64),
        (",\"total\":", sources().count() as u64),
    ];
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
    length
}

/// Appends the reasons and the end of the body.
fn write_reasons(view: &View<'_>, out: &mut Vec<u8>) {
    let (status, quotes) = (view.status, &view.market.quotes);
    let mut array = Array::open(out);
    for reason in reasons(status, quotes) {
        json!(array.item(), {
            "code": reason.code.name(),
            "source": reason.source.map(|id| &*status[id].id),
            "message": reason.message(status, quotes, view.now).as_str(),
        });
    }
    array.close();
    out.push(b'}');
}
