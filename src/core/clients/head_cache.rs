//! The request-head cache: parsed requests by the bytes of their heads.
//!
//! Clients of a price service send the same request again and again, and a proxy in front of many clients
//! sends the same bytes for all of them. So a head that comes back byte for byte is not parsed again. Its
//! prepared request is used again for the same listener and catalog. If a new head has the first line and the
//! `Host` of a kept head, only its other fields are parsed. Heads that differ only in fields that no response
//! depends on (a number of the request, say) share a prepared request. A reload empties the cache.
//!
//! Owns two tables with the same number of places, one head in each place. In the first table, the bytes of a
//! head select its place. A head may have two places in the second table: by its opening (the first line and
//! `Host`), and by all that its response depends on. There it stands for all heads with the same hash. A head
//! is copied when its hash asks for a place twice in a row. So the first table hardly ever copies a head that
//! comes once.
//!
//! The response to a prepared request is kept when it was made twice in the same state of the core. The kept
//! bytes are sent until that state changes ([`Context::state`]), or until the time of the response is over
//! (`until`). The pieces of a chart are joined for that: one piece is sent faster than ten.

use crate::config::Limits;
use crate::core::api::{Deferred, Endpoint, Prepared, View, send_error};
use crate::core::{Context, Service};
use crate::http::{
    Output, OwnedRequest, Parsed, Request, RequestBody, Responder, parse, parse_behind,
};
use crate::time::Mono;
use memchr::memchr;

/// The places of each of the two tables: as many as clients that are likely to poll at the same time.
const PLACES: usize = 256;

/// The longest head that is kept: what browsers send, with cookies. All places together take less than
/// a megabyte, and two megabytes more where each asks for a hundred quotes.
const HEAD_BYTES: usize = 1536;

/// Bytes of a head that select its place: most of a request line, or all of a short head.
const KEY_BYTES: usize = 128;

/// A response is kept if at most this many of its bytes must be copied: twenty quotes. Shared parts do not
/// count.
const RESPONSE_BYTES: usize = 8 * 1024;

/// The most bytes that are joined between two sweeps: some seventy charts of a thousand candles. A sweep
/// drops the joined bytes. Other charts are sent in the pieces that they share with others.
const JOINED_BYTES: usize = 4 * 1024 * 1024;

/// See the module's page.
#[derive(Debug)]
pub struct HeadCache {
    places: Box<[Place]>,
    /// The place of the head that was found last.
    newest: usize,
    /// Bytes joined since the last sweep.
    pub joined: usize,
    /// True if there may be a response that [`HeadCache::sweep`] drops.
    pub has_responses: bool,
}

#[derive(Debug, Default)]
struct Place {
    /// The hash of the last head that asked for this place.
    last: u64,
    /// The head that is kept.
    request: Option<OwnedRequest>,
    /// What was prepared of it.
    prepared: Option<PreparedHead>,
}

/// What was prepared of a head.
#[derive(Debug)]
pub struct PreparedHead {
    /// For which listener and version of the catalog it was prepared.
    valid_for: Validity,
    /// The endpoint of the request.
    pub endpoint: Endpoint,
    /// The request.
    pub prepared: Box<dyn Prepared>,
    /// The state of the core when a response was last noted.
    state: u64,
    /// `bytes` may be sent before this time. If no response is kept, the time is in the past.
    until: Mono,
    /// The status of the response.
    pub status: u16,
    /// The size of its body.
    pub weight: usize,
    /// The bytes of the response.
    pub bytes: Output,
}

impl PreparedHead {
    /// True if its response is kept, and would be made again as it is.
    pub fn has_response(&self, cx: &Context) -> bool {
        self.state == cx.state && cx.now.mono < self.until
    }

    /// Responds to the request, which came again.
    pub fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
        let outcome = self.prepared.respond(view, responder);
        outcome.unwrap_or_else(|error| send_error(&error, responder))
    }

    fn drop_response(&mut self) {
        (self.state, self.until, self.bytes) = Default::default();
    }
}

/// For which listener and version of the catalog a prepared request is valid.
type Validity = (Service, u64);

impl HeadCache {
    /// An empty cache.
    pub fn new() -> HeadCache {
        let places = (0..2 * PLACES).map(|_| Place::default()).collect();
        HeadCache { places, newest: 0, joined: 0, has_responses: false }
    }

    /// The place and the length of the head that `bytes` begin with, if it is kept; otherwise its key, which
    /// selects the place. Looks at the head that was found last before it takes the key, because a comparison
    /// costs less than a key.
    #[inline]
    pub fn find(&mut self, bytes: &[u8]) -> Result<(usize, usize), u64> {
        if let Some(length) = self.length_at(self.newest, bytes) {
            return Ok((self.newest, length));
        }
        let key = key(bytes);
        let place = place(key);
        let length = self.length_at(place, bytes).ok_or(key)?;
        self.newest = place;
        Ok((place, length))
    }

    /// Parses the head at the start of `bytes`. Also returns the hash of the head's opening, if a head with
    /// the same opening is kept.
    pub fn parse<'b>(&self, bytes: &'b [u8], limits: &Limits) -> (Option<u64>, Parsed<'b>) {
        let opening = opening(bytes).map(|opening| (hash(opening), opening));
        let kept = opening.and_then(|(hash, opening)| {
            let kept = self.places[place_alike(hash)].request.as_ref();
            kept.filter(|it| it.opening() == opening).map(|it| (hash, it))
        });
        let request = kept.and_then(|(_, it)| parse_behind(it, bytes, limits));
        let parsed = match request {
            Some(request) => Ok(Some((request, request.head.len()))),
            None => parse(bytes, limits),
        };
        (kept.map(|(hash, _)| hash), parsed)
    }

    /// The length of the head at the start of `bytes`, if it is kept in this place.
    #[inline]
    fn length_at(&self, place: usize, bytes: &[u8]) -> Option<usize> {
        self.places[place].request.as_ref()?.find(bytes)
    }

    /// The request of a head that is kept in this place.
    pub fn request<'b>(&self, place: usize, head: &'b [u8]) -> Request<'b> {
        self.places[place].request.as_ref().expect("it was found").read(head)
    }

    /// What was prepared of the head in this place, if that is still valid.
    #[inline]
    pub fn prepared(&self, place: usize, at: Validity) -> Option<&PreparedHead> {
        self.places[place].prepared.as_ref().filter(|it| it.valid_for == at)
    }

    /// Keeps what was prepared of the head in this place.
    pub fn keep(
        &mut self,
        place: usize,
        valid_for: Validity,
        (endpoint, prepared): (Endpoint, Box<dyn Prepared>),
    ) {
        let (state, until, bytes) = Default::default();
        let (status, weight) = (0, 0);
        let it =
            PreparedHead { valid_for, endpoint, prepared, state, until, status, weight, bytes };
        self.places[place].prepared = Some(it);
    }

    /// Notes the response to the prepared request in this place, and keeps it if it is the second one in this
    /// state of the core. `until`: until when the response would be made with the same bytes.
    pub fn note_response(
        &mut self,
        place: usize,
        until: Mono,
        (status, weight): (u16, usize),
        bytes: &Output,
        cx: &Context,
    ) {
        let prepared = self.places[place].prepared.as_mut();
        let Some(it) = prepared.filter(|_| until > cx.now.mono) else {
            return;
        };
        if it.state != cx.state {
            it.drop_response();
            it.state = cx.state;
        } else if let Some(bytes) = bytes.copy(RESPONSE_BYTES) {
            let is_joined = bytes.whole().is_none() && self.joined + bytes.len() <= JOINED_BYTES;
            self.joined += if is_joined { bytes.len() } else { 0 };
            let bytes = if is_joined { bytes.joined() } else { bytes };
            (it.until, it.status, it.weight, it.bytes) = (until, status, weight, bytes);
            self.has_responses = true;
        }
    }

    /// Drops all responses. The caller raises [`Context::state`] first, and calls this once a second. So a
    /// response that nobody asks for takes no memory.
    pub fn sweep(&mut self) {
        self.joined = 0;
        if std::mem::take(&mut self.has_responses) {
            let prepared = self.places.iter_mut().filter_map(|place| place.prepared.as_mut());
            prepared.for_each(PreparedHead::drop_response);
        }
    }

    /// Notes a request that was parsed because its key did not lead to it. Returns the place of a kept head
    /// that gets the same response, if there is one. `opening`: see [`HeadCache::parse`]. A request with a
    /// body is not kept: no client needs to send a body. A request with a method that is not served is not
    /// kept either.
    pub fn note(&mut self, key: u64, opening: Option<u64>, request: &Request<'_>) -> Option<usize> {
        let is_short = request.head.len() <= HEAD_BYTES && request.body == RequestBody::None;
        if !is_short || !request.method.is_served() {
            return None;
        }
        // Heads that differ only behind `KEY_BYTES` share a place. The hash of the rest tells them apart,
        // unless the rest has fewer than eight bytes.
        let whole = key ^ request.head.get(KEY_BYTES..).map_or(0, hash);
        self.places[place(key)].note(whole, request);
        let begin = opening.unwrap_or_else(|| hash(request.opening()));
        let lists = request.lists.present().map(hash);
        let alike = lists.fold(begin, |all, list| all.rotate_left(7) ^ list);
        let place = place_alike(alike);
        let is_kept = self.places[place].request.as_ref().is_some_and(|it| it.is_like(request));
        if !is_kept {
            self.places[place].note(alike, request);
        }
        if opening.is_none() && alike != begin {
            self.places[place_alike(begin)].note(begin, request);
        }
        is_kept.then_some(place)
    }
}

/// The place of heads with this hash that are answered alike.
fn place_alike(hash: u64) -> usize {
    PLACES + hash as usize % PLACES
}

/// The first two lines of these bytes.
fn opening(bytes: &[u8]) -> Option<&[u8]> {
    let line = memchr(b'\n', bytes)? + 1;
    let host = memchr(b'\n', &bytes[line..])? + 1;
    Some(&bytes[..line + host])
}

impl Place {
    /// A request with this hash asks for the place.
    fn note(&mut self, hash: u64, request: &Request<'_>) {
        if std::mem::replace(&mut self.last, hash) == hash {
            (self.request, self.prepared) = (Some(OwnedRequest::new(request)), None);
        }
    }
}

/// The hash of what selects the place of the head that `bytes` begin with.
#[inline]
fn key(bytes: &[u8]) -> u64 {
    hash(&bytes[..bytes.len().min(KEY_BYTES)])
}

/// The place of the head with this key.
fn place(key: u64) -> usize {
    key as usize % PLACES
}

/// A hash of these bytes. It is not secret: a collision costs a parse and nothing else.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    /// Odd, and about half of its bits are set: the golden ratio's digits.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    // The last eight bytes overlap those before them. Of fewer than eight bytes, only the number counts.
    let last = bytes.last_chunk().copied().unwrap_or_default();
    let words = bytes.as_chunks().0.iter().chain([&last]);
    let words = words.map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Limits};
    use crate::core::api::health::Kind;
    use crate::core::testing::{NOW, context};
    use std::sync::Arc;
    use std::time::Duration;

    fn look(cache: &mut HeadCache, raw: &[u8]) -> bool {
        let limits = Limits::default();
        let Ok(Some((request, used))) = parse(raw, &limits) else {
            panic!("a request");
        };
        if let Ok((place, length)) = cache.find(raw) {
            let found = cache.request(place, &raw[..length]);
            assert_eq!((found, length), (request, used));
            return true;
        }
        cache.note(key(raw), None, &request);
        false
    }

    #[test]
    fn a_head_is_known_only_byte_for_byte_to_its_end() {
        let mut cache = HeadCache::new();
        let path = "x".repeat(KEY_BYTES);
        let head = |agent: &str| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nUser-Agent: {agent}");
        let whole = format!("{}\r\n\r\n", head("a"));
        let times = [(); 4].map(|()| look(&mut cache, whole.as_bytes()));
        assert_eq!(times, [false, false, true, true], "from its third time on");
        assert!(!look(&mut cache, format!("{}\r\n\r\n", head("b")).as_bytes()));
        let part = head("a");
        let found = cache.find(part.as_bytes());
        assert!(found.is_err(), "a part of a head is none");
    }

    #[test]
    fn heads_that_differ_behind_their_keys_do_not_pass_for_one_that_comes_again() {
        let mut cache = HeadCache::new();
        let path = "x".repeat(KEY_BYTES);
        let head = |number: u8| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nX: {number}\r\n\r\n");
        (0..9).for_each(|number| _ = look(&mut cache, head(number).as_bytes()));
        let whole = &cache.places[..PLACES];
        assert!(whole.iter().all(|place| place.request.is_none()), "none has come twice");
    }

    /// Parses and notes a head. Returns whether it has an opening, and its place.
    fn note(cache: &mut HeadCache, raw: &str) -> (bool, Option<usize>) {
        let limits = Limits::default();
        let (opening, parsed) = cache.parse(raw.as_bytes(), &limits);
        let Ok(Some((request, _))) = parsed else { panic!("a request") };
        (opening.is_some(), cache.note(key(raw.as_bytes()), opening, &request))
    }

    #[test]
    fn a_head_stands_for_those_that_differ_in_fields_without_a_meaning() {
        let mut cache = HeadCache::new();
        let mut note = |line: &str, fields: &str| {
            self::note(&mut cache, &format!("{line}\r\nHost: h\r\n{fields}\r\n")).1
        };
        let line = "GET /a?b=c HTTP/1.1";
        assert_eq!([note(line, "X: 1\r\n"), note(line, "X: 2\r\n")], [None, None]);
        let place = note(line, "X: 3\r\n");
        assert!(place >= Some(PLACES), "{place:?}");
        assert_eq!(note(line, "Cookie: a\r\nX: 4\r\n"), place);
        let others = [
            ("GET /a?b=d HTTP/1.1", ""),
            ("HEAD /a?b=c HTTP/1.1", ""),
            ("GET /a?b=c HTTP/1.0", ""),
            (line, "Connection: close\r\n"),
            (line, "If-None-Match: \"x\"\r\n"),
            (line, "If-Match: \"x\"\r\n"),
            (line, "Accept-Encoding: gzip\r\n"),
            (line, "Content-Length: 1\r\n"),
        ];
        for (line, fields) in others {
            assert_eq!(note(line, fields), None, "{line} {fields}");
        }
        // What several fields say together is read anew.
        let twice = "If-Match: \"x\"\r\nIf-Match: \"y\"\r\n";
        assert_eq!([(); 4].map(|()| note(line, twice)), [None; 4]);
    }

    #[test]
    fn a_head_that_begins_like_one_with_lists_is_found_by_its_opening() {
        let mut cache = HeadCache::new();
        let limits = Limits::default();
        let mut openings = [1, 2, 3].map(|number| {
            let tag = format!("If-None-Match: \"{number}\"\r\n");
            let raw = format!("GET /a HTTP/1.1\r\nHost: h\r\n{tag}\r\n");
            let (has_opening, place) = note(&mut cache, &raw);
            assert_eq!(place, None);
            has_opening
        });
        assert_eq!(openings, [false, false, true]);
        // Where that is not the second line, whole heads are parsed.
        openings = [(); 3].map(|()| {
            let raw = b"GET /b HTTP/1.1\r\nX: y\r\nHost: h\r\n\r\n";
            cache.parse(raw, &limits).0.is_some() || look(&mut cache, raw)
        });
        assert_eq!(openings, [false, false, true]);
    }

    fn prepared() -> (Endpoint, Box<dyn Prepared>) {
        (Endpoint::Health, Box::new(Kind::Live))
    }

    #[test]
    fn a_response_is_kept_from_its_second_time_on_until_something_changes() {
        let mut cx = context(Config::default(), NOW);
        let (mut cache, at) = (HeadCache::new(), (Service::Api, 7));
        cache.keep(0, at, prepared());
        let mut bytes = Output::default();
        bytes.bytes().extend_from_slice(b"HTTP/1.1 200 OK");
        let until = cx.now.mono + Duration::from_millis(5);
        let note = |cache: &mut HeadCache, cx: &Context| {
            cache.note_response(0, until, (200, 9), &bytes, cx);
            let response = cache.prepared(0, at).filter(|it| it.has_response(cx));
            response.map(|it| (it.status, it.weight, it.bytes.to_vec()))
        };
        let expected = Some((200, 9, b"HTTP/1.1 200 OK".to_vec()));
        assert_eq!(note(&mut cache, &cx), None, "it has come once");
        assert_eq!(note(&mut cache, &cx), expected);
        cx.state += 1;
        assert_eq!(note(&mut cache, &cx), None, "another state");
        assert_eq!(note(&mut cache, &cx), expected);
        cx.now.mono = until;
        assert_eq!(note(&mut cache, &cx), None, "it has had its time");
        cx.now = NOW;
        cache.sweep();
        assert_eq!(note(&mut cache, &cx), None);
        bytes.bytes().resize(RESPONSE_BYTES + 1, b'x');
        let note = |cache: &mut HeadCache| cache.note_response(0, until, (200, 9), &bytes, &cx);
        (0..3).for_each(|_| note(&mut cache));
        let response = cache.prepared(0, at).filter(|it| it.has_response(&cx));
        assert!(response.is_none(), "it is too long");
    }

    #[test]
    fn pieces_of_a_response_are_joined_as_long_as_that_takes_little_memory() {
        let cx = context(Config::default(), NOW);
        let (mut cache, at) = (HeadCache::new(), (Service::Api, 7));
        let piece: Arc<[u8]> = vec![b'x'; JOINED_BYTES / 8].into();
        let mut bytes = Output::default();
        bytes.bytes().extend_from_slice(b"HTTP/1.1 200 OK");
        (0..3).for_each(|_| bytes.share(&piece, 0..piece.len()));
        let mut is_joined = |place: usize| {
            cache.keep(place, at, prepared());
            let until = cx.now.mono + Duration::from_secs(1);
            (0..2).for_each(|_| cache.note_response(place, until, (200, 9), &bytes, &cx));
            let response = cache.prepared(place, at).filter(|it| it.has_response(&cx));
            let kept = &response.expect("it is kept").bytes;
            assert_eq!(kept.to_vec(), bytes.to_vec());
            let mut pieces = 0;
            kept.each(|_| {
                pieces += 1;
                true
            });
            pieces == 1
        };
        assert_eq!([0, 1, 2, 3].map(&mut is_joined), [true, true, false, false]);
    }

    #[test]
    fn a_prepared_request_holds_at_one_listener_until_the_catalog_changes() {
        let mut cache = HeadCache::new();
        let raw = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        (0..3).for_each(|_| _ = look(&mut cache, raw));
        let place = place(key(raw));
        assert!(cache.prepared(place, (Service::Api, 7)).is_none());
        cache.keep(place, (Service::Api, 7), prepared());
        assert!(cache.prepared(place, (Service::Api, 7)).is_some());
        assert!(cache.prepared(place, (Service::Both, 7)).is_none());
        assert!(cache.prepared(place, (Service::Api, 8)).is_none());
    }
}
