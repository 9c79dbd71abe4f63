//! Heads of requests that came more than once, and what they mean.
//!
//! Clients of a price service ask the same question again and again, and a proxy in front of many
//! asks in the same words. The bytes of a head are all that its meaning depends on, beside the
//! catalog; so a head that comes back, byte for byte, is neither parsed nor read again.
//!
//! Owns a fixed number of places, each for one head: a head's own bytes say which place is its. It
//! takes one that was the last to ask for its place: heads that come once are never copied. It
//! never holds an answer; those are made of the market as it is.

use crate::core::Service;
use crate::core::api::Meaning;
use crate::http::{Request, RequestBody, RequestOffsets};

/// Heads that are kept. As many clients as are likely to ask at the same time.
const PLACES: usize = 256;

/// Longest head that is kept: what browsers send, with cookies. All places together take less than
/// half a megabyte.
const HEAD_BYTES: usize = 1536;

/// Bytes of a head that say which place is its: most of a request line, or all of a short head.
const MARK_BYTES: usize = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Familiar {
    places: Box<[Place]>,
}

#[derive(Debug, Default)]
struct Place {
    /// The mark of all of the head that asked for this place last.
    last: u64,
    known: Option<Box<Known>>,
}

#[derive(Debug)]
struct Known {
    head: Box<[u8]>,
    request: RequestOffsets,
    meaning: Option<Understood>,
}

/// What a request means at one listener, as of one version of the catalog.
#[derive(Debug)]
struct Understood {
    service: Service,
    catalog: u64,
    meaning: Meaning,
}

/// A place that holds, or may come to hold, a head.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

impl Familiar {
    /// Nothing is known yet.
    pub fn new() -> Familiar {
        Familiar {
            places: (0..PLACES).map(|_| Place::default()).collect(),
        }
    }

    /// The request at the begin of `bytes`, which have this mark, and the length of its head, if
    /// that is known.
    #[inline]
    pub fn find<'a>(&self, mark: Mark, bytes: &'a [u8]) -> Option<(Request<'a>, usize)> {
        let known = self.place(mark).known.as_deref()?;
        let head = bytes.get(..known.head.len())?;
        (*head == *known.head).then(|| (known.request.request(head), head.len()))
    }

    /// Takes note of a head that was parsed because it was not found. What a body follows is not
    /// kept: nobody needs to send one here.
    pub fn met(&mut self, mark: Mark, request: &Request<'_>, head: &[u8]) {
        let place = &mut self.places[mark.0 as usize % PLACES];
        // Heads that differ behind their marks alone ask for the same place, each of them once.
        let all = mix_all(head);
        let came_before = std::mem::replace(&mut place.last, all) == all;
        if !came_before || head.len() > HEAD_BYTES || request.body != RequestBody::None {
            return;
        }
        place.known = RequestOffsets::new(request, head).map(|request| {
            Box::new(Known {
                head: head.into(),
                request,
                meaning: None,
            })
        });
    }

    /// What a head that was found means, if that was understood before and still holds.
    pub fn meaning(&self, mark: Mark, service: Service, catalog: u64) -> Option<&Meaning> {
        let understood = self.place(mark).known.as_deref()?.meaning.as_ref()?;
        let holds = understood.catalog == catalog && understood.service == service;
        holds.then_some(&understood.meaning)
    }

    /// Keeps what a head that was found means.
    pub fn understand(&mut self, mark: Mark, service: Service, catalog: u64, meaning: Meaning) {
        if let Some(known) = &mut self.places[mark.0 as usize % PLACES].known {
            known.meaning = Some(Understood {
                service,
                catalog,
                meaning,
            });
        }
    }

    fn place(&self, mark: Mark) -> &Place {
        &self.places[mark.0 as usize % PLACES]
    }
}

impl Mark {
    /// Of the bytes that begin with a head: tells heads apart, for the most part.
    pub fn of(bytes: &[u8]) -> Mark {
        Mark(mix_all(&bytes[..bytes.len().min(MARK_BYTES)]))
    }
}

/// One number for all of these bytes: tells them from others, for the most part.
#[inline]
fn mix_all(bytes: &[u8]) -> u64 {
    /// Odd, and about half of its bits are set: the golden ratio's digits.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |mark: u64, word: u64| (mark ^ word).wrapping_mul(FACTOR).rotate_left(29);
    // The last eight overlap those before them. No head is shorter.
    let last = bytes.last_chunk().copied().unwrap_or_default();
    let words = bytes.as_chunks().0.iter().chain([&last]);
    let words = words.map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use crate::core::api::chart::Asked;
    use crate::http::{HeadLimits, Parsed, parse};
    use crate::interval::Interval;
    use crate::market::{ChartSpec, SymbolId};

    fn look(familiar: &mut Familiar, raw: &[u8]) -> bool {
        let limits = HeadLimits::from(&Limits::default());
        let Ok(Parsed::Complete { request, used }) = parse(raw, &limits) else {
            panic!("a request");
        };
        let mark = Mark::of(raw);
        match familiar.find(mark, raw) {
            Some(found) => {
                assert_eq!(found, (request, used));
                true
            }
            None => {
                familiar.met(mark, &request, &raw[..used]);
                false
            }
        }
    }

    #[test]
    fn a_head_is_known_from_its_third_time_on() {
        let mut familiar = Familiar::new();
        let raw = b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\n\r\n";
        let times: Vec<bool> = (0..4).map(|_| look(&mut familiar, raw)).collect();
        assert_eq!(times, [false, false, true, true]);
        let other = b"GET /a?b=d HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\n\r\n";
        assert!(!look(&mut familiar, other));
    }

    #[test]
    fn a_head_is_known_only_byte_for_byte_to_its_end() {
        let mut familiar = Familiar::new();
        let path = "x".repeat(MARK_BYTES);
        let head = |agent: &str| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nUser-Agent: {agent}");
        for _ in 0..3 {
            look(&mut familiar, format!("{}\r\n\r\n", head("a")).as_bytes());
        }
        assert!(look(
            &mut familiar,
            format!("{}\r\n\r\n", head("a")).as_bytes()
        ));
        assert!(!look(
            &mut familiar,
            format!("{}\r\n\r\n", head("b")).as_bytes()
        ));
        let part = head("a");
        let found = familiar.find(Mark::of(part.as_bytes()), part.as_bytes());
        assert_eq!(found, None, "a part of a head is none");
    }

    #[test]
    fn heads_that_differ_behind_their_marks_do_not_pass_for_one_that_comes_again() {
        let mut familiar = Familiar::new();
        let path = "x".repeat(MARK_BYTES);
        let head = |number: u8| format!("GET /{path} HTTP/1.1\r\nHost: h\r\nX: {number}\r\n\r\n");
        (0..9).for_each(|number| _ = look(&mut familiar, head(number).as_bytes()));
        let place = familiar.place(Mark::of(head(0).as_bytes()));
        assert!(place.known.is_none(), "none has come twice");
    }

    #[test]
    fn what_a_head_means_holds_at_one_listener_until_the_catalog_changes() {
        let mut familiar = Familiar::new();
        let raw = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        (0..3).for_each(|_| _ = look(&mut familiar, raw));
        let mark = Mark::of(raw);
        let spec = ChartSpec {
            interval: Interval::H1,
            from: None,
            to: None,
            limit: 1,
            fill_previous: false,
            quoted: false,
        };
        let meaning = Meaning::Chart(Asked::new(SymbolId(1), spec, None));
        assert!(familiar.meaning(mark, Service::Api, 7).is_none());
        familiar.understand(mark, Service::Api, 7, meaning);
        assert!(familiar.meaning(mark, Service::Api, 7).is_some());
        assert!(familiar.meaning(mark, Service::Both, 7).is_none());
        assert!(familiar.meaning(mark, Service::Api, 8).is_none());
    }
}
