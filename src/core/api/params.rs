//! A request as its endpoint sees it, and the parameters of its query, by name: each at most once,
//! unknown ones ignored.

use super::error::{Error, echo};
use super::view::View;
use crate::core::Service;
use crate::http::Query;
use crate::json::Decimals;
use crate::market::SourceId;
use std::borrow::Cow;

/// A request as its endpoint sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the listener serves.
    pub service: Service,
    /// The path, as the client has sent it.
    pub path: &'a [u8],
    /// The part of the path that the table of endpoints leaves open.
    pub rest: &'a [u8],
    /// The query, without its question mark.
    pub query: &'a [u8],
}

/// The values of some known parameters, in the order of their names.
pub type Values<'a, const N: usize> = [Option<Cow<'a, [u8]>>; N];

/// Reads the parameters of these names. One that is given twice is an error; one that nobody knows
/// is ignored: cache busters are common.
pub fn read<'a, const N: usize>(
    query: &'a [u8],
    names: &[&'static str; N],
) -> Result<Values<'a, N>, Error> {
    let mut values = [const { None }; N];
    if query.is_empty() {
        return Ok(values);
    }
    for (key, value) in Query::new(query) {
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

/// `decimals`: `number`, which is the default, or `string`.
pub fn decimals(value: &Option<Cow<'_, [u8]>>) -> Result<Decimals, Error> {
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

/// `source`: the id of a configured source.
pub fn source(view: &View<'_>, value: &Option<Cow<'_, [u8]>>) -> Result<Option<SourceId>, Error> {
    let Some(id) = value.as_deref() else {
        return Ok(None);
    };
    match view.source(id) {
        Some(source) => Ok(Some(source)),
        None => {
            let message = format!("Unknown source \"{}\".", echo(id));
            let mut error = Error::new(404, "source_not_found", message);
            error.param = Some("source");
            Err(error)
        }
    }
}
