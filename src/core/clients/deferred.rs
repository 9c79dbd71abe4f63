//! Deferred responses: those that wait for candles, those that are made in parts, and those whose body is
//! compressed first.
//!
//! Owns the order in which they are made, as the keys of their connections. Each response belongs to the
//! connection that waits for it (`Phase::Waiting`), so that it is dropped with the connection. A response
//! *waits* for candles, at most until its deadline, and then *runs*. The responses that run are made in
//! turn, one bounded part at a time. Only the client that asked waits.
//!
//! A response that is not begun is small; one that is being made holds a body. So only the first few in the
//! queue take turns. A response that is begun, and comes back from waiting for more candles, goes to the
//! front of the queue. A connection may be gone by the time that its key is looked at.

use crate::config::Limits;
use crate::core::api::{Deferred, Endpoint};
use crate::http::{OwnedRequest, Quota};
use crate::table::Key;
use crate::time::Mono;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Ranges of candles for which responses may wait in all. Each time that candles have come, all of them are
/// checked, which must take well below a millisecond. Above the limit, a response does not wait.
const RANGES: usize = 2048;

/// What one connection may cost at a time, in bytes of responses: some 0.05 ms, or 0.3 ms if no response is
/// cached.
pub const SHARE: u64 = 64 * 1024;

/// A deferred response, and what is kept of its request until it is written.
pub struct Pending {
    /// The request.
    pub request: OwnedRequest,
    /// What the request is for.
    pub endpoint: Endpoint,
    /// The address that the request counts for, if known.
    pub client: Option<IpAddr>,
    /// What this address has left, if there is a limit.
    pub quota: Option<Quota>,
    /// The request's part of the line in the access log.
    pub line: Option<Box<str>>,
    /// When the request was read.
    pub asked_at: Mono,
    /// How the response comes about.
    pub kind: Deferred,
    /// True once its first part is made. Until then it holds only what its request needs.
    pub is_begun: bool,
}

impl Pending {
    /// The bytes that the response holds until it is made.
    pub fn held(&self) -> usize {
        match &self.kind {
            Deferred::InParts(response) => response.held(),
            _ => 0,
        }
    }
}

/// See the module's page.
#[derive(Default)]
pub struct DeferredResponses {
    /// Responses that wait for candles, by their deadlines. The value is the number of ranges that a
    /// response needs.
    pub waiting: BTreeMap<(Mono, Key), usize>,
    /// Responses that run. The first `limits.deferredResponses` of them take turns. Some connections may be
    /// gone.
    pub running: VecDeque<Key>,
}

impl DeferredResponses {
    /// True if another response may wait for candles.
    pub fn has_room(&self) -> bool {
        self.waiting.values().sum::<usize>() < RANGES
    }

    /// The earliest deadline of a waiting response: when [`Clients::wake`](super::Clients::wake) is wanted.
    pub fn due(&self) -> Mono {
        self.waiting.keys().next().map_or(Mono::NEVER, |(until, _)| *until)
    }

    /// A response runs: it joins the queue, at the front if it is begun.
    pub fn run(&mut self, key: Key, is_begun: bool) {
        match is_begun {
            false => self.running.push_back(key),
            true => self.running.push_front(key),
        }
    }

    /// Removes a connection from those that wait for candles. Returns true if it was there. If its response
    /// runs, `step` passes it over.
    pub fn forget(&mut self, key: Key) -> bool {
        let found = self.waiting.keys().find(|(_, it)| *it == key).copied();
        found.and_then(|it| self.waiting.remove(&it)).is_some()
    }

    /// More is to be made of a response: it comes behind those that take turns, before the rest of the queue.
    pub fn put_back(&mut self, key: Key, limits: &Limits) {
        let place = self.running.len().min(limits.deferred_responses.max(1) - 1);
        self.running.insert(place, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::api::{Advance, InParts};
    use crate::core::api::{SeriesSlots, View};
    use crate::core::clients::Clients;
    use crate::core::clients::connection::{Connection, Phase};
    use crate::core::testing::{NOW, config_of, context, request};
    use crate::core::{Context, LongWork, Service};
    use crate::http::{Cache, Head, Responder};
    use crate::interval::Stored;
    use crate::market::SeriesKey;
    use crate::market::{SourceId, SymbolId};
    use std::time::Duration;

    /// A response of so many parts, which lacks candles of so many ranges. A response
    /// without parts waits again.
    struct Parts(usize, usize);

    impl InParts for Parts {
        fn needs(&self) -> Vec<SeriesSlots> {
            let series =
                SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval: Stored::M1 };
            vec![(series, 0..1); self.1]
        }

        fn missing(&self, _view: &View<'_>) -> Vec<SeriesSlots> {
            self.needs()
        }

        fn held(&self) -> usize {
            0
        }

        fn step(&mut self, _view: &View<'_>) -> Advance {
            match self.0 {
                0 => return Advance::Waits,
                _ => self.0 -= 1,
            }
            if self.0 == 0 { Advance::Done } else { Advance::More }
        }

        fn finish(
            self: Box<Self>,
            _view: &View<'_>,
            responder: &mut Responder<'_>,
        ) -> Option<Deferred> {
            responder.send(&Head::json(None, Cache::NoStore), b"");
            None
        }
    }

    /// Connections with deferred responses, and their queue.
    struct Bench {
        clients: Clients,
        cx: Context,
    }

    impl Bench {
        /// At most so many take turns. One that waits does so for a millisecond.
        fn new(making: usize) -> Bench {
            let mut config = config_of("binance");
            config.limits.deferred_responses = making;
            config.limits.chart_wait = Duration::from_millis(1);
            let cx = context(config, NOW);
            Bench { clients: Clients::new(None, 0, &cx), cx }
        }

        fn queue(&mut self) -> &mut DeferredResponses {
            &mut self.clients.responses.deferred
        }

        /// How many wait, and how many run.
        fn depths(&mut self) -> (usize, usize) {
            (self.queue().waiting.len(), self.queue().running.len())
        }

        fn defer(&mut self, parts: usize, waits: bool) -> Key {
            self.defer_of(Parts(parts, 1), waits)
        }

        fn defer_of(&mut self, parts: Parts, waits: bool) -> Key {
            let new = |key| Connection::new(key, Service::Api, None, Mono(0));
            let key = self.clients.connections.insert_with(new).expect("room");
            let request = request(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            match waits {
                true => _ = self.queue().waiting.insert((Mono(1001), key), 1),
                false => self.queue().run(key, false),
            }
            let pending = Box::new(Pending {
                request: OwnedRequest::new(&request),
                endpoint: Endpoint::Unknown,
                client: None,
                quota: None,
                line: None,
                asked_at: self.cx.now.mono,
                kind: Deferred::InParts(Box::new(parts)),
                is_begun: false,
            });
            let connection = self.clients.connections.get_mut(key).expect("it is there");
            connection.enter(Phase::Waiting(pending), &self.cx);
            key
        }

        /// Makes one part. Returns the connection whose response this has finished.
        fn step(&mut self) -> Option<Key> {
            let key = *self.queue().running.front()?;
            self.clients.work(LongWork::Responses, &mut self.cx);
            let connection = self.clients.connections.get(key)?;
            (!matches!(connection.phase, Phase::Waiting(_))).then_some(key)
        }

        fn wake(&mut self, comes: bool) {
            self.clients.wake(None, |_, _| comes, &self.cx);
        }
    }

    #[test]
    fn the_first_few_take_turns_and_the_others_wait_in_line() {
        let mut bench = Bench::new(2);
        let [long, short, third] = [3, 2, 1].map(|parts| bench.defer(parts, false));
        let done: Vec<Option<Key>> = (0..6).map(|_| bench.step()).collect();
        let expected = [None, None, None, Some(short), Some(long), Some(third)];
        assert_eq!(done, expected);
        assert_eq!(bench.depths(), (0, 0));
    }

    #[test]
    fn a_response_waits_for_candles_that_come_until_its_deadline() {
        let mut bench = Bench::new(1);
        let key = bench.defer(1, true);
        bench.wake(true);
        assert_eq!(bench.depths(), (1, 0));
        assert_eq!(bench.queue().due(), Mono(1001));
        bench.cx.now.mono = Mono(1001);
        bench.cx.is_behind = true;
        assert!(!bench.clients.handle_timeout(&mut bench.cx));
        bench.wake(true);
        assert_eq!(bench.depths(), (1, 0), "its candles may have come, and are not read yet");
        bench.cx.is_behind = false;
        assert!(bench.clients.handle_timeout(&mut bench.cx));
        bench.wake(true);
        assert_eq!((bench.depths(), bench.queue().due()), ((0, 1), Mono::NEVER));
        assert_eq!(bench.step(), Some(key));
        let lost = bench.defer(1, true);
        bench.wake(false);
        assert_eq!(bench.step(), Some(lost), "nobody has asked for its candles");
        let impatient = bench.defer(1, true);
        bench.clients.wake(Some(lost), |_, _| false, &bench.cx);
        assert_eq!(bench.depths(), (1, 0));
        bench.clients.wake(Some(impatient), |_, _| false, &bench.cx);
        assert_eq!(bench.depths(), (0, 1));
    }

    #[test]
    fn a_response_that_was_begun_and_has_waited_comes_before_those_in_line() {
        let mut bench = Bench::new(1);
        let [begun, in_line] = [1, 1].map(|parts| bench.defer(parts, false));
        assert_eq!(bench.queue().running.pop_front(), Some(begun));
        bench.queue().waiting.insert((Mono(1000), begun), 1);
        assert_eq!(bench.depths(), (1, 1));
        assert!(bench.queue().forget(begun));
        bench.queue().run(begun, true);
        assert_eq!([bench.step(), bench.step()], [Some(begun), Some(in_line)]);
    }

    #[test]
    fn responses_wait_for_a_limited_number_of_ranges_in_all() {
        let mut bench = Bench::new(1);
        for _ in 0..100 {
            bench.defer_of(Parts(0, 50), false);
            bench.clients.work(LongWork::Responses, &mut bench.cx);
        }
        let (waiting, _) = bench.depths();
        assert_eq!(waiting, RANGES.div_ceil(50));
    }

    #[test]
    fn only_a_response_that_waits_is_refused() {
        let mut bench = Bench::new(1);
        let [waits, runs] = [true, false].map(|waits| bench.defer(1, waits));
        for key in [waits, runs] {
            bench.clients.refuse(Some(key), &mut bench.cx);
        }
        assert_eq!((bench.depths(), bench.clients.deferred()), ((0, 1), 1));
        assert_eq!(bench.step(), Some(runs), "it is made from what is there");
    }

    #[test]
    fn a_connection_that_is_gone_is_passed_over() {
        let mut bench = Bench::new(1);
        let [waits, runs] = [true, false].map(|waits| bench.defer(1, waits));
        for key in [waits, runs] {
            let closed = bench.clients.connections.remove(key);
            assert!(closed.is_some());
            bench.queue().forget(key);
        }
        assert_eq!(bench.depths(), (0, 1));
        assert_eq!((bench.step(), bench.depths()), (None, (0, 0)));
    }
}
