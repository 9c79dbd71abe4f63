//! A request as its endpoint sees it, and the parameters of its query, by name: each at most once, unknown
//! ones ignored.

use super::error::{Error, echo};
use super::view::View;
use crate::core::Service;
use crate::http::{Query, Request};
use crate::json::Decimals;
use crate::market::SourceId;
use std::borrow::Cow;

/// A request as its endpoint sees it.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// What the response is made from.
    pub view: &'a View<'a>,
    /// What the listener serves.
    pub service: Service,
    /// Its head.
    pub request: &'a Request<'a>,
    /// The path, as the client has sent it.
    pub path: &'a [u8],
    /// The part of the path that the table of endpoints leaves open.
    pub rest: &'a [u8],
    /// The query, without its question mark.
    pub query: &'a [u8],
}

/// The value of a parameter.
pub type ParamValue<'a> = Option<Cow<'a, [u8]>>;

impl<'a> Call<'a> {
    /// The values of the parameters with these names. One that is given twice is an error. Unknown ones
    /// are ignored: cache busters are common.
    pub fn params<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[ParamValue<'a>; N], Error> {
        let mut values = [const { None }; N];
        if self.query.is_empty() {
            return Ok(values);
        }
        for (key, value) in Query::new(self.query) {
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

    /// `source`: the id of a configured source.
    pub fn source(&self, value: &ParamValue<'_>) -> Result<Option<SourceId>, Error> {
        let Some(id) = value.as_deref() else {
            return Ok(None);
        };
        let found = self.view.source(id).map(Some);
        found.ok_or_else(|| {
            let message = format!("Unknown source \"{}\".", echo(id));
            Error::new(404, "source_not_found", message).about("source")
        })
    }
}

/// A number of at most 16 digits: enough for milliseconds of 300,000 years.
pub fn whole_number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0i64, |sum, byte| match byte {
        b'0'..=b'9' => Some(sum * 10 + i64::from(byte - b'0')),
        _ => None,
    })
}

/// `decimals`: `number`, which is the default, or `string`.
pub fn decimals(value: &ParamValue<'_>) -> Result<Decimals, Error> {
    match value.as_deref() {
        None | Some(b"number") => Ok(Decimals::Number),
        Some(b"string") => Ok(Decimals::String),
        Some(other) => {
            let other = echo(other);
            let message = format!("\"decimals\" must be number or string, not \"{other}\".");
            Err(Error::bad("invalid_decimals", "decimals", message))
        }
    }
}
