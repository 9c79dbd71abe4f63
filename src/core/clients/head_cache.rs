//! The request-head cache: parsed requests by the bytes of their heads.
//!
//! Clients of a price service send the same request again and again, and a proxy in front of many sends
//! the same bytes for all of them. So a head that comes back byte for byte is not parsed again, and what was
//! prepared of it holds for the same listener and catalog. A reload empties the cache.
//!
//! Owns a fixed number of places, each for one head; the head's own bytes select its place. A head is
//! copied when it asks for its place twice in a row, so heads that come once are never copied.
//! It never holds a response: those are made from the current market.

use crate::core::Service;
use crate::core::api::{Endpoint, Prepared};
use crate::http::{OwnedRequest, Request, RequestBody};

/// Heads that are kept: as many as there are clients that are likely to poll at the same time.
const PLACES: usize = 256;

/// The longest head that is kept: what browsers send, with cookies. All places together take less than
/// half a megabyte, and a megabyte more where each asks for a hundred quotes.
const HEAD_BYTES: usize = 1536;

/// Bytes of a head that select its place: most of a request line, or all of a short head.
const KEY_BYTES: usize = 128;

/// See the module's page.
#[derive(Debug)]
pub struct HeadCache {
    places: Box<[Place]>,
}

#[derive(Debug, Default)]
struct Place {
    /// The hash of the whole head that asked for this place last.
    last: u64,
    /// The head that is kept.
    request: Option<OwnedRequest>,
    /// What was prepared of it.
    prepared: Option<(Validity, Endpoint, Box<dyn Prepared>)>,
}

/// For which listener and version of the catalog a prepared request is valid.
type Validity = (Service, u64);

impl HeadCache {
    /// An empty cache.
    pub fn new() -> HeadCache {
        HeadCache { places: (0..PLACES).map(|_| Place::default()).collect() }
    }

    /// The place of the head that `bytes` begin with.
    #[inline]
    pub fn place(&self, bytes: &[u8]) -> usize {
        hash(&bytes[..bytes.len().min(KEY_BYTES)]) as usize % PLACES
    }

    /// The request at the start of `bytes`, if its head is kept in its place.
    #[inline(always)]
    pub fn find<'b>(&self, place: usize, bytes: &'b [u8]) -> Option<Request<'b>> {
        self.places[place].request.as_ref()?.find(bytes)
    }

    /// True if a request was prepared for the head in this place.
    #[inline]
    pub fn is_prepared(&self, place: usize) -> bool {
        self.places[place].prepared.is_some()
    }

    /// What was prepared of the head in this place, if that is still valid.
    #[inline]
    pub fn prepared(&self, place: usize, at: Validity) -> Option<(Endpoint, &dyn Prepared)> {
        let (valid_at, endpoint, prepared) = self.places[place].prepared.as_ref()?;
        (*valid_at == at).then_some((*endpoint, &**prepared))
    }

    /// Keeps what was prepared of the head in this place.
    pub fn keep(
        &mut self,
        place: usize,
        at: Validity,
        (endpoint, prepared): (Endpoint, Box<dyn Prepared>),
    ) {
        self.places[place].prepared = Some((at, endpoint, prepared));
    }

    /// Notes a request that was parsed because it was not found in its place. One that a body follows is
    /// not kept: no client needs to send one.
    pub fn note(&mut self, place: usize, request: &Request<'_>) {
        let place = &mut self.places[place];
        // Heads that differ only behind `KEY_BYTES` share a place: the hash of the whole head tells them
        // apart.
        let hash = hash(request.head);
        let came_before = std::mem::replace(&mut place.last, hash) == hash;
        let may_be_kept = request.head.len() <= HEAD_BYTES && request.body == RequestBody::None;
        if came_before && may_be_kept {
            (place.request, place.prepared) = (Some(OwnedRequest::new(request)), None);
        }
    }
}

/// A hash of these bytes. It is not secret: a collision costs a parse and nothing else.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    /// Odd, and about half of its bits are set: the golden ratio's digits.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    // The last eight bytes overlap those before them. No head is shorter.
    let last = bytes.last_chunk().copied().unwrap_or_default();
    let words = bytes.as_chunks().0.iter().chain([&last]);
    let words = words.map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use crate::core::api::Endpoint;
    use crate::core::api::chart::ChartRequest;
    use crate::http::{HeadLimits, Parsed, parse};
    use crate::interval::Interval;
    use crate::market::{ChartSpec, SymbolId};

    fn look(cache: &mut HeadCache, raw: &[u8]) -> bool {
        let limits = HeadLimits::from(&Limits::default());
        let Ok(Parsed::Complete { request, used }) = parse(raw, &limits) else {
            panic!("a request");
        };
        if let Some(found) = cache.find(cache.place(raw), raw) {
            assert_eq!((found, found.head.len()), (request, used));
            return true;
        }
        cache.note(cache.place(raw), &request);
        false
    }

    #[test]
    fn a_head_is_known_from_its_third_time_on() {
        let mut cache = HeadCache::new();
        let raw = b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\n\r\n";
        let times: Vec<bool> = (0..4).map(|_| look(&mut cache, raw)).collect();
        assert_eq!(times, [false, false, true, true]);
        let other = b"GET /a?b=d HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\n\r\n";
        assert!(!look(&mut cache, other));
    }

    #[test]
    fn a_head_is_known_only_byte_for_byte_to_its_end() {
        let mut cache = HeadCache::new();
        let path = "x".repeat(KEY_BYTES);
        let head = |agent: &str| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nUser-Agent: {agent}");
        for _ in 0..3 {
            look(&mut cache, format!("{}\r\n\r\n", head("a")).as_bytes());
        }
        assert!(look(&mut cache, format!("{}\r\n\r\n", head("a")).as_bytes()));
        assert!(!look(&mut cache, format!("{}\r\n\r\n", head("b")).as_bytes()));
        let part = head("a");
        let found = cache.find(cache.place(part.as_bytes()), part.as_bytes());
        assert!(found.is_none(), "a part of a head is none");
    }

    #[test]
    fn heads_that_differ_behind_their_keys_do_not_pass_for_one_that_comes_again() {
        let mut cache = HeadCache::new();
        let path = "x".repeat(KEY_BYTES);
        let head = |number: u8| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nX: {number}\r\n\r\n");
        (0..9).for_each(|number| _ = look(&mut cache, head(number).as_bytes()));
        assert!(cache.places.iter().all(|place| place.request.is_none()), "none has come twice");
    }

    #[test]
    fn a_prepared_request_holds_at_one_listener_until_the_catalog_changes() {
        let mut cache = HeadCache::new();
        let raw = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        (0..3).for_each(|_| _ = look(&mut cache, raw));
        let spec = ChartSpec {
            interval: Interval::H1,
            from: None,
            to: None,
            limit: 1,
            fill_previous: false,
            quoted: false,
        };
        let prepared = Box::new(ChartRequest { symbol: SymbolId(1), spec, source: None }) as _;
        let place = cache.place(raw);
        assert!(cache.prepared(place, (Service::Api, 7)).is_none());
        cache.keep(place, (Service::Api, 7), (Endpoint::Chart, prepared));
        assert!(cache.prepared(place, (Service::Api, 7)).is_some());
        assert!(cache.prepared(place, (Service::Both, 7)).is_none());
        assert!(cache.prepared(place, (Service::Api, 8)).is_none());
    }
}
