//! The queue of deferred responses: those that wait for candles, and those that are made in parts.
//!
//! Owns the order, by the keys of the connections; each response belongs to its connection (`pending`).
//! A response *waits* for candles, at most until its deadline, and then *runs*: one bounded part of one of
//! them is made at a time, in turn. Only the client that asked waits.
//!
//! A response in line is small; one that is being made holds a body. So only the first few take turns, and
//! the others stand in line. One that was begun and has waited for candles again takes turns at once. A
//! connection may be gone by the time that its key is looked at.

use crate::config::Limits;
use crate::core::api::{Outcome, SeriesSlots, View};
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::pending::Pending;
use crate::market::SeriesKey;
use crate::table::{Key, Table};
use crate::time::Mono;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Responses that may wait for candles. Each time that candles have come, all of them are checked, which
/// must take well below a millisecond. Above the limit, a response is made without its candles.
const WAITING: usize = 1024;

/// See the module's page.
#[derive(Default)]
pub struct DeferredResponses {
    waiting: Vec<Key>,
    /// The earliest deadline of those that wait: when [`DeferredResponses::wake`] is wanted.
    pub next_due: Option<Mono>,
    /// The first `limits.deferredResponses` of them take turns.
    running: VecDeque<Key>,
}

impl DeferredResponses {
    /// How many wait, and how many run.
    pub fn depths(&self) -> (usize, usize) {
        (self.waiting.len(), self.running.len())
    }

    /// True if a response runs.
    pub fn has_work(&self) -> bool {
        !self.running.is_empty()
    }

    /// True if another response may wait for candles.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < WAITING
    }

    /// A response waits for candles until this deadline.
    pub fn wait(&mut self, key: Key, until: Mono) {
        self.waiting.push(key);
        self.next_due = Some(self.next_due.map_or(until, |due| due.min(until)));
    }

    /// A response runs: it stands in line, or takes turns if it is begun.
    pub fn run(&mut self, key: Key, is_begun: bool) {
        match is_begun {
            false => self.running.push_back(key),
            true => self.running.push_front(key),
        }
    }

    /// Removes a connection from those that wait for candles. Returns true if it was there. If its response
    /// runs, `step` passes it over.
    pub fn forget(&mut self, key: Key) -> bool {
        let at = self.waiting.iter().position(|it| *it == key);
        at.map(|at| self.waiting.swap_remove(at)).is_some()
    }

    /// The candles that this response waits for will not come: it runs, unless it is patient.
    pub fn go_without(&mut self, key: Key, connections: &mut Table<Connection>) {
        if let Some(Pending { kind: Outcome::Deferred(response), is_begun, .. }) =
            pending(connections, key)
            && !response.is_patient()
            && self.forget(key)
        {
            self.run(key, *is_begun);
        }
    }

    /// Lets each waiting response choose its source again. Returns the candles that it is made of, and those
    /// of them that it lacks.
    pub fn choose_again(
        &self,
        connections: &mut Table<Connection>,
        view: &View<'_>,
    ) -> Vec<(Key, Vec<SeriesSlots>, Vec<SeriesSlots>)> {
        let choose_again = |key: &Key| match &mut pending(connections, *key)?.kind {
            Outcome::Deferred(response) => {
                response.choose_again(view);
                Some((*key, response.needs(), response.missing(view)))
            }
            _ => None,
        };
        self.waiting.iter().filter_map(choose_again).collect()
    }

    /// Lets responses run: those whose candles are all there or are not on their way any more (`comes` is
    /// false), and those whose deadline has passed.
    pub fn wake(
        &mut self,
        connections: &mut Table<Connection>,
        view: &View<'_>,
        comes: impl Fn(SeriesKey, &Range<i64>) -> bool,
    ) {
        self.next_due = None;
        for key in std::mem::take(&mut self.waiting) {
            if let Some(Pending { kind: Outcome::Deferred(response), served, is_begun, .. }) =
                pending(connections, key)
            {
                let until = served.waits_until(view.config);
                let missing = response.missing(view);
                let is_coming = |(series, slots): &SeriesSlots| comes(*series, slots);
                let some_come = missing.iter().any(|it| response.is_patient() || is_coming(it));
                match until > view.now.mono && some_come {
                    true => self.wait(key, until),
                    false => self.run(key, *is_begun),
                }
            }
        }
    }

    /// The body that these connections wait for is compressed. There is nothing left to be made, so they
    /// are next.
    pub fn compressed(
        &mut self,
        keys: Vec<Key>,
        bytes: &Arc<[u8]>,
        connections: &mut Table<Connection>,
    ) {
        for key in keys {
            if let Some(Pending { kind: Outcome::ToCompress(response), .. }) =
                pending(connections, key)
            {
                response.compressed = Some(bytes.clone());
                self.running.push_front(key);
            }
        }
    }

    /// Takes out the connection whose running response is next, to make a part of it. It may be gone.
    pub fn next(&mut self) -> Option<Key> {
        self.running.pop_front()
    }

    /// More is to be made of a response: it comes behind those that take turns, before those in line.
    pub fn put_back(&mut self, key: Key, limits: &Limits) {
        let place = self.running.len().min(limits.deferred_responses.max(1) - 1);
        self.running.insert(place, key);
    }
}

/// The deferred response of a connection, if that is still there.
fn pending(connections: &mut Table<Connection>, key: Key) -> Option<&mut Pending> {
    match &mut connections.get_mut(key)?.phase {
        Phase::Waiting(pending) => Some(pending),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::core::api::Endpoint;
    use crate::core::api::compressed_cache::CompressedBodies;
    use crate::core::api::{Advance, Deferred};
    use crate::core::clients::pending::Served;
    use crate::core::{Context, Service, Status};
    use crate::http::{HeadLimits, OwnedRequest, Parsed, Responder, parse};
    use crate::interval::Stored;
    use crate::market::{Market, SourceId, SymbolId};
    use crate::time::{Now, UnixMs};
    use std::time::Duration;

    /// A response of so many parts, which needs a candle.
    struct Parts(usize);

    impl Deferred for Parts {
        fn missing(&self, _view: &View<'_>) -> Vec<SeriesSlots> {
            let series =
                SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval: Stored::M1 };
            vec![(series, 0..1)]
        }

        fn held(&self) -> usize {
            0
        }

        fn step(&mut self, _view: &View<'_>) -> Advance {
            self.0 -= 1;
            if self.0 == 0 { Advance::Done } else { Advance::More }
        }

        fn finish(self: Box<Self>, _view: &View<'_>, _responder: &mut Responder<'_>) -> Outcome {
            Outcome::Sent
        }
    }

    /// Connections with deferred responses, and their queue.
    struct Bench {
        connections: Table<Connection>,
        queue: DeferredResponses,
        cx: Context,
    }

    impl Bench {
        /// At most so many take turns. One that waits does so for a millisecond.
        fn new(making: usize) -> Bench {
            let now = Now { mono: Mono(1), unix: UnixMs(1) };
            let mut config = Config::default();
            config.limits.deferred_responses = making;
            config.limits.chart_wait = Duration::from_millis(1);
            let market = Market::new(&config);
            let stats = Status::new(std::iter::empty(), now);
            Bench {
                connections: Table::new(16),
                queue: DeferredResponses::default(),
                cx: Context::new(config, market, stats, now),
            }
        }

        fn defer(&mut self, parts: usize, waits: bool) -> Key {
            let new = |key| Connection::new(key, Service::Api, None, Mono(0));
            let key = self.connections.insert_with(new).expect("room");
            let limits = HeadLimits::from(&self.cx.config.limits);
            let head = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            let Ok(Parsed::Complete { request, .. }) = parse(head, &limits) else {
                panic!("a request");
            };
            let served = Served {
                endpoint: Endpoint::Unknown,
                closing: None,
                client: None,
                quota: None,
                line: None,
                asked_at: self.cx.now.mono,
            };
            match waits {
                true => self.queue.wait(key, served.waits_until(&self.cx.config)),
                false => self.queue.run(key, false),
            }
            let (request, kind) =
                (OwnedRequest::new(&request), Outcome::Deferred(Box::new(Parts(parts))));
            let pending = Box::new(Pending { request, served, kind, is_begun: false });
            let connection = self.connections.get_mut(key).expect("it is there");
            connection.enter(Phase::Waiting(pending), &self.cx);
            key
        }

        /// Makes one part. Returns the connection whose response that has finished.
        fn step(&mut self) -> Option<Key> {
            let compressed = CompressedBodies::new(0);
            let view = View::new(&self.cx, &compressed);
            let connection = self.connections.get_mut(self.queue.next()?)?;
            let mut pending = connection.take_pending().expect("it waits");
            let Outcome::Deferred(deferred) = &mut pending.kind else {
                panic!("it is made in parts");
            };
            if deferred.step(&view) == Advance::Done {
                return Some(connection.key);
            }
            self.queue.put_back(connection.key, &self.cx.config.limits);
            connection.enter(Phase::Waiting(Box::new(pending)), &self.cx);
            None
        }

        fn wake(&mut self, comes: bool) {
            let compressed = CompressedBodies::new(0);
            let view = View::new(&self.cx, &compressed);
            self.queue.wake(&mut self.connections, &view, |_, _| comes);
        }
    }

    #[test]
    fn the_first_few_take_turns_and_the_others_wait_in_line() {
        let mut bench = Bench::new(2);
        let [long, short, third] = [3, 2, 1].map(|parts| bench.defer(parts, false));
        let done: Vec<Option<Key>> = (0..6).map(|_| bench.step()).collect();
        let expected = [None, None, None, Some(short), Some(long), Some(third)];
        assert_eq!(done, expected);
        assert!(!bench.queue.has_work());
    }

    #[test]
    fn a_response_waits_for_candles_that_come_until_its_deadline() {
        let mut bench = Bench::new(1);
        let key = bench.defer(1, true);
        bench.wake(true);
        assert_eq!(bench.queue.depths(), (1, 0));
        assert_eq!(bench.queue.next_due, Some(Mono(1001)));
        bench.cx.now.mono = Mono(1001);
        bench.wake(true);
        assert_eq!((bench.queue.depths(), bench.queue.next_due), ((0, 1), None));
        assert_eq!(bench.step(), Some(key));
        let lost = bench.defer(1, true);
        bench.wake(false);
        assert_eq!(bench.step(), Some(lost), "nobody has asked for its candles");
        let impatient = bench.defer(1, true);
        bench.queue.go_without(impatient, &mut bench.connections);
        bench.queue.go_without(impatient, &mut bench.connections);
        assert_eq!(bench.queue.depths(), (0, 1));
    }

    #[test]
    fn a_response_that_was_begun_and_has_waited_comes_before_those_in_line() {
        let mut bench = Bench::new(1);
        let [begun, in_line] = [1, 1].map(|parts| bench.defer(parts, false));
        assert_eq!(bench.queue.next(), Some(begun));
        bench.queue.wait(begun, Mono(1000));
        assert_eq!(bench.queue.depths(), (1, 1));
        assert!(bench.queue.forget(begun));
        bench.queue.run(begun, true);
        assert_eq!([bench.step(), bench.step()], [Some(begun), Some(in_line)]);
    }

    #[test]
    fn a_connection_that_is_gone_is_passed_over() {
        let mut bench = Bench::new(1);
        let [waits, runs] = [true, false].map(|waits| bench.defer(1, waits));
        for key in [waits, runs] {
            let closed = bench.connections.remove(key);
            assert!(closed.is_some());
            bench.queue.forget(key);
        }
        assert_eq!(bench.queue.depths(), (0, 1));
        assert_eq!((bench.step(), bench.queue.depths()), (None, (0, 0)));
    }
}
