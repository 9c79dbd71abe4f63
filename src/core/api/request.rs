//! A request as its endpoint sees it. An [`ApiRequest`] has what responds to it, the parameters of its query
//! by name (each at most once, unknown ones ignored), and the symbol that its path names.

use super::endpoint::Endpoint;
use super::outcome::{Deferred, Outcome, Preparation, Prepared, send_error, send_fault};
use super::view::{ParamValue, View, decimals, invalid};
use crate::core::Service;
use crate::http::{Error, Request, Responder, decode_segment, query_pairs};
use crate::json::Decimals;
use std::borrow::Cow;

/// A request with what responds to it.
#[derive(Clone, Copy)]
pub struct ApiRequest<'a> {
    /// What it is for, for the rate limit and the metrics.
    pub endpoint: Endpoint,
    /// What responds.
    pub handler: Handler,
    /// What the listener serves.
    pub service: Service,
    /// Its head.
    pub request: &'a Request<'a>,
    /// The part of the path that the table of endpoints leaves open.
    pub rest: &'a [u8],
}

/// What responds to a request.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Responds, or returns how the response comes about.
    Respond(fn(&ApiRequest<'_>, &View<'_>, &mut Responder<'_>) -> Outcome),
    /// Prepares a request that is worth keeping until the same request comes again.
    Prepare(fn(&ApiRequest<'_>, &View<'_>) -> Preparation),
}

impl<'a> ApiRequest<'a> {
    /// The values of the parameters with these names. One that is given twice is an error. Unknown ones
    /// are ignored: cache busters are common.
    pub fn params<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[ParamValue<'a>; N], Error> {
        let mut values = [const { None }; N];
        if self.request.query.is_empty() {
            return Ok(values);
        }
        for (key, value) in query_pairs(self.request.query) {
            let Some(at) = names.iter().position(|name| name.as_bytes() == &*key) else {
                continue;
            };
            let name = names[at];
            if values[at].replace(value).is_some() {
                let message = format!("Parameter \"{name}\" is given twice.");
                return Err(Error::bad("duplicate_parameter", name, message));
            }
        }
        Ok(values)
    }

    /// The value of `decimals`, the only parameter of several endpoints.
    pub fn only_decimals(&self) -> Result<Decimals, Error> {
        let [value] = self.params(["decimals"])?;
        decimals(&value)
    }

    /// The symbol that a path names, decoded: in one segment, or in two, since proxies decode `%2F`. Segments
    /// are counted before they are decoded.
    pub fn path_text(&self) -> Result<Cow<'a, [u8]>, Error> {
        match self.rest.split(|byte| *byte == b'/').count() {
            1 | 2 => decode_segment(self.rest).map_err(|_| invalid(self.rest)),
            _ => Err(Error::not_found(self.request.path)),
        }
    }

    /// Responds to the request, or returns how its response comes about. `newly_prepared`: takes the
    /// prepared request, if it is worth keeping.
    #[inline]
    pub fn respond(
        &self,
        view: &View<'_>,
        responder: &mut Responder<'_>,
        newly_prepared: &mut Option<Box<dyn Prepared>>,
    ) -> Option<Deferred> {
        let result = match self.handler {
            Handler::Prepare(prepare) => prepare(self, view)
                .and_then(|prepared| newly_prepared.insert(prepared).respond(view, responder)),
            Handler::Respond(respond) => respond(self, view, responder),
        };
        match result {
            Ok(outcome) => outcome,
            Err(error) if self.endpoint == Endpoint::Udf && error != Error::METHOD_NOT_ALLOWED => {
                send_fault(&error.message, responder)
            }
            Err(error) => send_error(&error, responder),
        }
    }
}
