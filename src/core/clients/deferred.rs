//! The table of deferred responses: those that need several turns of the loop, or candles that are not
//! in memory.
//!
//! Owns each of them and the key of its client. A response is *held* while it waits for candles, at most
//! until its deadline, and then *runs*: each call of [`Longs::step`] makes one bounded part of one of
//! them, in turn. Only the client that asked waits.
//!
//! A held response is small; one that is being made holds a body. So only the first few are made at the
//! same time, and the others queue. One that is *set aside* waits for its compressed body.
//!
//! It never touches a connection: a response that is done is handed back with its client's key.

use crate::core::CloseReason;
use crate::core::api::{Long, View};
use crate::core::clients::admission::Visit;
use crate::durations::Endpoint;
use crate::http::{Accept, Method, Output, Persistence, Request, Responder, Stamp};
use crate::market::SeriesKey;
use crate::table::{Key, Table};
use crate::time::Mono;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

/// Answers that may be held: all of them are looked through whenever candles have come, which is
/// to stay well below a millisecond.
const HELD: usize = 1024;

/// See the module's page.
pub struct Longs {
    jobs: Table<Job>,
    /// The first `making` of them are in the making.
    running: VecDeque<Key>,
    making: usize,
    held: usize,
    /// Earliest deadline of a held answer.
    next_due: Option<Mono>,
}

struct Job {
    client: Key,
    long: Box<dyn Long>,
    reply: Reply,
    held_until: Option<Mono>,
}

/// What of a request its answer's head depends on.
pub struct Reply {
    /// Why the connection ends with this answer, if it does.
    pub closing: Option<CloseReason>,
    /// What it was for.
    pub endpoint: &'static Endpoint,
    /// When it was asked.
    pub asked_at: Mono,
    /// What the access log says of the request.
    pub line: Option<Box<str>>,
    visit: Visit,
    head_only: bool,
    persistence: Persistence,
    if_match: Option<Box<[u8]>>,
    if_none_match: Option<Box<[u8]>>,
    accept: Accept<'static>,
}

impl Reply {
    /// Remembers what is needed of a request.
    pub fn of(
        request: &Request<'_>,
        endpoint: &'static Endpoint,
        closing: Option<CloseReason>,
        visit: Visit,
        line: Option<Box<str>>,
        now: Mono,
    ) -> Reply {
        Reply {
            closing,
            endpoint,
            asked_at: now,
            line,
            visit,
            head_only: request.method == Method::Head,
            persistence: Persistence::of(request, closing.is_none()),
            if_match: request.if_match(),
            if_none_match: request.none_match().map(|list| list.into_owned().into()),
            accept: request.accept().known(),
        }
    }

    /// The connection ends with this answer, for this reason unless there is one already.
    pub fn end(&mut self, reason: CloseReason) {
        self.closing.get_or_insert(reason);
        self.persistence = Persistence::Close;
    }

    /// A responder as the request itself would have had.
    pub fn responder<'a>(&'a self, out: &'a mut Output, stamp: &'a Stamp) -> Responder<'a> {
        let mut responder = Responder::resumed(
            out,
            stamp,
            self.head_only,
            self.persistence,
            (self.if_match.as_deref(), self.if_none_match.as_deref()),
            self.accept,
        );
        responder.tell_quota(self.visit.quota);
        responder
    }

    /// Whose request it was, where that is known.
    pub fn client(&self) -> Option<IpAddr> {
        self.visit.client
    }
}

impl Longs {
    /// At most one answer for each of so many clients, at most `making` of them in the making.
    pub fn new(clients: usize, making: usize) -> Longs {
        Longs {
            jobs: Table::new(clients),
            running: VecDeque::new(),
            making: making.max(1),
            held: 0,
            next_due: None,
        }
    }

    /// How many are held, and how many run.
    pub fn depths(&self) -> (usize, usize) {
        (self.held, self.running.len())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Takes an answer in; held until then where there is room for one more that waits, or running
    /// at once. The error gives the reply back: there is no room at all.
    pub fn insert(
        &mut self,
        client: Key,
        long: Box<dyn Long>,
        reply: Reply,
        held_until: Option<Mono>,
    ) -> Result<Key, Box<Reply>> {
        if self.jobs.is_full() {
            return Err(Box::new(reply));
        }
        let held_until = held_until.filter(|_| self.held < HELD);
        let key = self.jobs.insert(Job {
            client,
            long,
            reply,
            held_until,
        });
        let key = key.expect("a table that is not full takes an entry");
        match held_until {
            Some(until) => {
                self.held += 1;
                self.next_due = Some(self.next_due.map_or(until, |due| due.min(until)));
            }
            None => self.running.push_back(key),
        }
        Ok(key)
    }

    /// Takes an answer in that waits for its body to be packed. The error gives the reply back:
    /// there is no room.
    pub fn set_aside(
        &mut self,
        client: Key,
        long: Box<dyn Long>,
        reply: Reply,
    ) -> Result<Key, Box<Reply>> {
        if self.jobs.is_full() {
            return Err(Box::new(reply));
        }
        let key = self.jobs.insert(Job {
            client,
            long,
            reply,
            held_until: None,
        });
        Ok(key.expect("a table that is not full takes an entry"))
    }

    /// Whether this answer is still wanted.
    pub fn holds(&self, key: Key) -> bool {
        self.jobs.get(key).is_some()
    }

    /// The body of an answer that is set aside has been packed. There is nothing to be made: it is
    /// next.
    pub fn go_on(&mut self, key: Key, bytes: &Arc<[u8]>) {
        if let Some(job) = self.jobs.get_mut(key)
            && job.long.packed(bytes)
        {
            self.running.push_front(key);
        }
    }

    /// The candles that an answer is held for will not come: it runs.
    pub fn go_without(&mut self, key: Key) {
        if let Some(job) = self.jobs.get_mut(key)
            && job.held_until.take().is_some()
        {
            self.held -= 1;
            self.running.push_back(key);
        }
    }

    /// Forgets an answer: it is not wanted any more, or cannot be made.
    pub fn remove(&mut self, key: Key) -> Option<Reply> {
        let job = self.jobs.remove(key)?;
        self.held -= usize::from(job.held_until.is_some());
        Some(job.reply)
    }

    /// Whether [`Longs::step`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.running.is_empty()
    }

    /// When [`Longs::wake`] is wanted.
    pub fn next_due(&self) -> Option<Mono> {
        self.next_due
    }

    /// Whether a held answer has waited long enough.
    pub fn is_due(&self, now: Mono) -> bool {
        self.next_due.is_some_and(|due| due <= now)
    }

    /// Sets those held answers running whose candles have come, are no longer asked for, or whose
    /// time is over.
    pub fn wake(&mut self, view: &View<'_>, asking: impl Fn(SeriesKey, &Range<i64>) -> bool) {
        let mut next_due = None;
        for (key, job) in self.jobs.iter_mut() {
            let Some(until) = job.held_until else {
                continue;
            };
            let waits = until > view.now.mono
                && (job.long.lacks(view)).is_some_and(|(series, range)| asking(series, &range));
            if waits {
                next_due = Some(next_due.map_or(until, |due: Mono| due.min(until)));
            } else {
                job.held_until = None;
                self.held -= 1;
                self.running.push_back(key);
            }
        }
        self.next_due = next_due;
    }

    /// Does a part of the next running answer. `Some` when that has finished it.
    pub fn step(&mut self, view: &View<'_>) -> Option<(Key, Reply, Box<dyn Long>)> {
        let key = self.running.pop_front()?;
        // Gone: its client has left.
        let job = self.jobs.get_mut(key)?;
        if !job.long.step(view) {
            // Behind the others in the making, before those in line.
            let place = self.running.len().min(self.making - 1);
            self.running.insert(place, key);
            return None;
        }
        let job = self.jobs.remove(key)?;
        Some((job.client, job.reply, job.long))
    }
}
