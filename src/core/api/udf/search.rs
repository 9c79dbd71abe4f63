//! `/udf/search`: the markets whose symbols have a text in them, the best match first.

use super::markets::{Named, TYPE, write_names};
use crate::core::api::compressed_cache::CacheKey;
use crate::core::api::error::Error;
use crate::core::api::list::Body;
use crate::core::api::outcome::{Deferred, Outcome};
use crate::core::api::params::{Call, whole_number};
use crate::core::api::selection::{Selection, find};
use crate::core::api::view::View;
use crate::http::{Cache, Responder};
use crate::json::Array;
use crate::market::{SourceId, SymbolId, SymbolName};
use std::collections::BTreeSet;

/// Markets looked at in one step: some 0.1 ms.
const MARKETS_A_STEP: usize = 512;

/// The most results: some screens.
const MAX_RESULTS: usize = 200;

/// What a client gets that does not say how much it wants.
const DEFAULT_RESULTS: usize = 30;

/// A search in progress.
struct Search {
    needle: Box<[u8]>,
    /// Only markets of this source.
    source: Option<SourceId>,
    limit: usize,
    /// How many markets were looked at.
    seen: usize,
    /// The best matches so far, by rank and place in the list of all markets.
    best: BTreeSet<(u8, usize, SymbolId)>,
}

/// Responds to `/udf/search`.
pub fn search(call: &Call<'_>) -> Result<Outcome, Error> {
    let [query, kind, exchange, limit] = call.params(["query", "type", "exchange", "limit"])?;
    let limit = match limit.as_deref() {
        None | Some(b"") => DEFAULT_RESULTS,
        Some(text) => whole_number(text)
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| *limit > 0)
            .ok_or_else(|| {
                let message = "\"limit\" must be a whole number from 1 on.";
                Error::bad("invalid_limit", "limit", message)
            })?,
    };
    let is_given = |text: &&[u8]| !text.is_empty();
    let exchange = exchange.as_deref().filter(is_given);
    let kind = kind.as_deref().filter(is_given);
    let source = exchange.map(|id| call.view.source(&id.to_ascii_lowercase()));
    // There is no other type, and nothing on an exchange that is not configured.
    let is_empty = kind.is_some_and(|kind| kind != TYPE.as_bytes()) || source == Some(None);
    Ok(Outcome::Deferred(Box::new(Search {
        needle: Selection::needle(query.as_deref().unwrap_or_default()),
        source: source.flatten(),
        limit: if is_empty { 0 } else { limit.min(MAX_RESULTS) },
        seen: 0,
        best: BTreeSet::new(),
    })))
}

/// How well a symbol matches; less is better.
fn rank(needle: &[u8], name: &SymbolName) -> u8 {
    match name {
        _ if name.base().as_bytes() == needle => 0,
        _ if name.as_str().as_bytes().starts_with(needle) => 1,
        _ => 2,
    }
}

impl Deferred for Search {
    fn step(&mut self, view: &View<'_>) -> bool {
        let catalog = &view.market.catalog;
        let known = catalog.known();
        let end = known.len().min(self.seen + MARKETS_A_STEP);
        for (place, &symbol) in known.iter().enumerate().take(end).skip(self.seen) {
            let name = catalog.name(symbol);
            let is_there = |source| catalog.sources_of(symbol).contains(&source);
            if find(&self.needle, name) && self.source.is_none_or(is_there) {
                self.best.insert((rank(&self.needle, name), place, symbol));
                if self.best.len() > self.limit {
                    self.best.pop_last();
                }
            }
        }
        self.seen = end;
        end == known.len()
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let mut text = Vec::with_capacity(self.best.len() * 192 + 2);
        let mut array = Array::open(&mut text);
        for (_, _, symbol) in &self.best {
            let (symbol, source) = (*symbol, self.source);
            let mut object = array.object();
            write_names(&mut object, view, Named { symbol, source });
            object.close();
        }
        array.close();
        let key = CacheKey::of("/udf/search", ());
        Body::of(&text).send(responder, view, (b'u', Cache::NoCache), key)
    }
}
