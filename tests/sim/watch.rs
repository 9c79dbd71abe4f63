//! What must hold at any time: nobody waits for ever, nobody stays for ever, nobody is sent away
//! without a reason; and each source is polled when it should be, and left alone when it should be.
//!
//! Owns what follows for one source from the failures that the daemon has seen ([`Schedule`]): until when
//! nothing may be asked, and when quotes are due. Nothing is asked of a host that asks for a pause, or that was
//! not reached. Other failures hold up their own kind of request alone, which is not looked at here.

use super::client::{Client, Reading, Stage};
use super::exchange::Failure;
use super::listeners::Heard;
use super::trace::{Verdict, ensure, seconds, us};
use super::weather::SECOND;
use super::wire::{JUST_NOW, Link, Peer};
use super::world::World;
use marketd::config::Limits;
use marketd::table::Key;
use std::time::Duration;

/// Deadlines of clients are looked at once a second.
const SWEEP: u64 = SECOND + 300_000;

/// After how long without trouble a list that lacks markets must have been read again.
const REREAD: u64 = 70 * SECOND;

impl World {
    /// Looks at everything.
    pub fn look(&mut self) {
        for (key, link) in &self.links {
            if let Peer::Client(at) = link.peer {
                let verdict = self.look_at_client(*key, at);
                self.check(verdict, &|| format!("client {at}"));
            }
        }
        for link in self.links.values() {
            if let Peer::Exchange(source, _) = link.peer
                && !self.reload.is_there[source]
                && !self.reload.is_new
            {
                self.fail(&format!("a connection to source {source} is left over"));
            }
        }
        // Who is stopping asks nothing more.
        let schedules = match self.stopped_at {
            Some(_) => 0,
            None => self.schedules.len(),
        };
        for source in (0..schedules).filter(|it| self.reload.is_there[*it]) {
            let exchange = &self.exchanges[source];
            let flights = exchange.conns.iter().filter_map(|c| c.in_flight.as_ref());
            let busy = flights.into_iter().any(|it| it.meaning.is_err());
            // An address that nobody has tried since a reload may not answer.
            let is_connecting = |link: &Link| {
                matches!(link.peer, Peer::Exchange(of, _) if of == source) && link.connecting
            };
            let busy = busy || self.links.values().any(is_connecting);
            let fine = exchange.weather(self.now).is_fine();
            let verdict = self.schedules[source].look(busy, fine, self.now);
            self.check(verdict, &|| format!("source {source}"));
            let since = self.ledgers[source].doubted_since();
            let since = since.map(|since| since.max(self.schedules[source].trouble));
            if since.is_some_and(|since| self.now > since + REREAD) {
                self.fail(&format!("source {source}: a list that lacks markets stands for long"));
            }
        }
    }

    fn look_at_client(&self, key: Key, at: usize) -> Verdict {
        let (link, client) = (&self.links[&key], &self.clients[at]);
        let (alive, pending) = (link.active.max(client.since), self.core.outgoing(key).len());
        let too_long = SWEEP + self.stall;
        let is_stuck = |since: u64| self.now > since + too_long;
        let of = |limit: fn(&Limits) -> Duration| self.longest(limit);
        let heard = client.listener.as_ref().map(|it| it.heard());
        let was_told = client.listener.as_ref().is_some_and(|it| it.was_told());
        // What it waits for, since when, and for how long at most.
        let (since, span, why) = if link.broken {
            (alive, of(|it| it.idle_timeout), "its broken connection is still here")
        } else if pending > 0 && link.is_writable() && link.room > 0 && is_stuck(client.since) {
            (client.since, 0, "bytes are made and not sent")
        } else if pending > 0 {
            (alive, of(|it| it.write_timeout), "it takes nothing and is still here")
        } else if heard == Some(Heard::Stream) {
            (client.since, of(|it| it.stream_heartbeat), "its stream is silent")
        } else if client.talk.closing || link.finished || was_told {
            (link.active, of(|it| it.linger), "the last answer is sent and it is still here")
        } else if let Some(first) = client.talk.pending.front().filter(|_| client.talk.owed() > 0) {
            let since = first.arrived.unwrap_or(0).max(client.talk.last_answer);
            (since.max(client.since), of(|it| it.chart_wait), "its request is not answered")
        } else if !link.inbound.is_empty() && !link.queued && is_stuck(alive) {
            (alive, 0, "bytes have come and nobody reads them")
        } else if let Some(since) = client.partial_since {
            let span = of(|it| it.head_timeout) + of(|it| it.body_timeout);
            (since, span, "it is within a request and still here")
        } else {
            (alive, of(|it| it.idle_timeout), "it is idle and still here")
        };
        ensure(self.now <= since + span + too_long, || {
            let asked = client.talk.pending.front().map(|it| &it.ask.target);
            format!("{why}: {pending} bytes pending, {} unread, {asked:?}", link.inbound.len())
        })
    }

    /// Keeps note of since when a client is in the middle of a request.
    pub fn note_partial(&mut self, key: Key, at: usize) {
        let read = self.links[&key].read;
        let client = &mut self.clients[at];
        let owed = client.talk.owed();
        let partial = client.talk.pending.get(owed).is_some_and(|next| {
            let begin = next.end - next.ask.bytes.len() as u64;
            read > begin
        });
        if !partial || owed > 0 {
            client.partial_since = None;
        } else {
            client.partial_since.get_or_insert(self.now);
        }
    }

    /// The core shuts its side: after a last answer, or between two requests when that is time.
    pub fn part(&mut self, key: Key) {
        let Some(link) = self.links.get(&key) else {
            return;
        };
        let Peer::Client(at) = link.peer else {
            return;
        };
        let client = &self.clients[at];
        let was_told = client.listener.as_ref().is_some_and(|it| it.was_told());
        if client.talk.closing || link.finished || was_told {
            return;
        }
        // What has just come was not there yet when the core let it go: it asks again.
        let is_new = self.now - link.woke < JUST_NOW;
        let quiet = self.now - link.active.max(client.since);
        let quiet = if is_new { link.slept.max(quiet) } else { quiet };
        let is_idle = quiet + 1000 >= self.shortest(|it| it.idle_timeout)
            && (is_new || client.partial_since.is_none());
        if !(is_idle || self.stopped_at.is_some() || client.refused) {
            self.fail(&format!("client {at}: its connection is shut for no reason"));
        }
        if let Some(link) = self.links.get_mut(&key) {
            link.parted = true;
        }
    }

    /// The core lets a client go: there must be a reason, and nothing owed.
    pub fn farewell(&mut self, key: Key, at: usize) {
        let verdict = self.reason_to_close(key, at);
        let what = match &verdict {
            Ok(reason) => *reason,
            Err(why) => why.as_str(),
        };
        self.note(format!("client {at} is closed: {what}"));
        self.check(verdict.map(drop), &|| format!("client {at}"));
        let client = &mut self.clients[at];
        client.stage = Stage::Gone;
        client.link = None;
    }

    /// Whether nobody's address has more connections than that of this client.
    fn holds_most(&self, at: usize) -> bool {
        let open = |it: &&Client| it.link.is_some();
        let count =
            |of: &Client| self.clients.iter().filter(open).filter(|it| it.peer == of.peer).count();
        let own = count(&self.clients[at]);
        own >= 2 && self.clients.iter().filter(open).all(|it| count(it) <= own)
    }

    fn reason_to_close(&self, key: Key, at: usize) -> Result<&'static str, String> {
        let (link, client) = (&self.links[&key], &self.clients[at]);
        let limits = &self.config.limits;
        let pending = self.unread(key);
        let owed = client.talk.owed();
        let quiet = self.now - link.active;
        let over = |stopped: u64| self.now >= stopped + us(limits.shutdown);
        if link.broken || link.deaf {
            return Ok("it has left");
        }
        if self.stopped_at.is_some_and(over) {
            return Ok("the time for the end is over");
        }
        let heard = client.listener.as_ref().map(|it| it.heard());
        if heard == Some(Heard::Stream) && link.eof {
            return Ok("it listens no more");
        }
        let streams =
            |it: &&Client| it.listener.as_ref().map(|it| it.heard()) == Some(Heard::Stream);
        let are_many = self.clients.iter().filter(streams).count() >= limits.streams;
        let is_crowd = are_many || self.full_at == Some(self.now);
        if heard == Some(Heard::Stream) && is_crowd && self.holds_most(at) {
            return Ok("its stream makes place for that of another address");
        }
        if pending > 0 || client.talk.is_partial() {
            let crowded = self.crowded_at == Some(self.now) && pending > 0;
            return match quiet + 1000 >= self.shortest(|it| it.write_timeout) || crowded {
                true => Ok("it does not take its answer"),
                false => Err(format!("closed with {pending} bytes pending")),
            };
        }
        if client.listener.as_ref().is_some_and(|it| it.was_told()) {
            return Ok("it was told that its stream ends");
        }
        if client.talk.closing {
            // Bytes that nobody read make the system break the connection, and that may
            // overtake the answer.
            // Who takes what comes at its leisure has itself to blame.
            let is_fast = client.nature.reading == Reading::Fast;
            let lost = !link.inbound.is_empty() && client.arrived > client.taken && is_fast;
            let lingered = quiet + 1000 >= self.shortest(|it| it.linger);
            return match lost && !lingered {
                true => Err(format!(
                    "closed with {} bytes unread: the last answer is lost",
                    link.inbound.len()
                )),
                false => Ok("it was told"),
            };
        }
        // Others may have been let go since somebody came for whom there was no room.
        let is_full = self.full_at == Some(self.now);
        if is_full && link.read == 0 && quiet + 1000 >= SECOND {
            return Ok("it has said nothing, and makes place");
        }
        if link.parted {
            return Ok("it was idle, and its side was shut");
        }
        if is_full && owed == 0 && client.partial_since.is_none() && self.holds_most(at) {
            return Ok("it makes place for another address");
        }
        if client.refused && client.talk.answers == 0 {
            return Ok("it was refused, and another one came");
        }
        ensure(owed == 0, || format!("closed with {owed} requests unanswered"))?;
        if link.eof && link.inbound.is_empty() {
            return Ok("it has sent its last byte");
        }
        if self.stopped_at.is_some() && link.inbound.is_empty() {
            return Ok("stopping");
        }
        if quiet + 1000 >= self.shortest(|it| it.idle_timeout) && client.partial_since.is_none() {
            return Ok("it was idle");
        }
        Err(format!("closed for no reason, {} bytes unread", link.inbound.len()))
    }
}

/// Longest that `Retry-After` is believed: a day.
const RETRY_AFTER_MAX: u64 = 86_400_000_000;

#[derive(Clone, Debug, Default)]
pub struct Schedule {
    poll: u64,
    backoff_max: u64,
    addresses: u32,
    lanes: u32,
    /// Nothing is asked before.
    pub not_before: u64,
    streak: u32,
    last_failure: u64,
    /// When a request last failed, also where only its kind is held up.
    failed_at: Option<u64>,
    /// Whether quotes have ever come.
    quoted: bool,
    /// Attempts that belong to requests which began before the last failure.
    credits: u32,
    /// A connection that failed, and since when it was tried: the core may go on at once.
    unsettled: Option<u64>,
    /// How often it went on since something new was begun.
    chain: u32,
    /// When quotes were last asked for, and whether that was answered.
    last_tickers: Option<u64>,
    pub answered: Option<u64>,
    /// Whether the next poll of quotes is one that has waited.
    delayed: bool,
    /// Whether the poll before the last was answered in time.
    steady: bool,
    /// Nothing need be asked before, at most.
    at_latest: u64,
    /// They are asked for once more.
    repeats_tickers: bool,
    /// When something last went wrong.
    pub trouble: u64,
}

impl Schedule {
    /// Of a source that polls each so many microseconds.
    pub fn new(poll: u64, backoff_max: u64, addresses: usize, lanes: usize) -> Schedule {
        Schedule {
            poll,
            backoff_max,
            addresses: addresses as u32,
            lanes: lanes as u32,
            ..Schedule::default()
        }
    }

    /// It polls as often as that from now on. A back-off that has begun goes on.
    pub fn reconfigure(&mut self, poll: u64, backoff_max: u64, now: u64) {
        if (self.poll, self.backoff_max) != (poll, backoff_max) {
            (self.poll, self.backoff_max) = (poll, backoff_max);
            (self.trouble, self.steady) = (now, false);
        }
    }

    /// The source begins anew, with the back-off that it had.
    pub fn begin(&mut self, now: u64) {
        (self.quoted, self.steady) = (false, false);
        (self.last_tickers, self.answered) = (None, None);
        (self.trouble, self.unsettled) = (now, None);
    }

    /// The same exchange was asked under another name, and is left alone as long.
    pub fn heed(&mut self, other: &Schedule) {
        self.not_before = self.not_before.max(other.not_before);
        self.at_latest = self.at_latest.max(other.at_latest);
    }

    /// Something is asked: a connection is opened, or a request is sent on one that stands.
    pub fn attempt(&mut self, now: u64) -> Verdict {
        if self.unsettled.take().is_some() && self.chain < self.addresses * self.lanes {
            // The next address of the same request.
            self.chain += 1;
            return Ok(());
        }
        if now >= self.not_before {
            self.chain = 0;
            self.credits = 0;
            return Ok(());
        }
        if self.credits > 0 {
            self.credits -= 1;
            return Ok(());
        }
        let early = seconds(self.not_before - now);
        Err(format!(
            "asked {early} s before the back-off is over, after {} failures in a row",
            self.streak
        ))
    }

    /// All that the core had to say is said: what did not go on has failed.
    pub fn settle(&mut self, now: u64) {
        if let Some(begun) = self.unsettled.take() {
            self.failed(Failure::of_source(), begun, now);
            let step = self.poll.min(self.backoff_max);
            self.not_before = self.not_before.max(now + step - step / 10);
        }
    }

    /// What was waiting for a name may go on, or fails as the look-up did.
    pub fn resolved(&mut self, has_failed: bool, now: u64) {
        self.credits = self.credits.max(self.lanes);
        if has_failed {
            self.trouble = now;
            self.at_latest = self.at_latest.max(now + self.backoff_max);
        }
    }

    /// A connection could not be opened. Either the next address is tried at once, or the request
    /// has failed.
    pub fn connect_failed(&mut self, begun: u64, now: u64) {
        if self.failed_at == Some(now) {
            // Put back, because another request has just failed.
            return;
        }
        self.trouble = now;
        self.unsettled = Some(begun);
    }

    /// A connection that had served before was closed before an answer began: once more.
    pub fn repeated(&mut self, tickers: bool) {
        self.credits += 1;
        self.repeats_tickers |= tickers;
    }

    /// A request that was begun then has failed.
    pub fn failed(&mut self, failure: Failure, begun: u64, now: u64) {
        self.trouble = now;
        self.failed_at = Some(now);
        if !failure.backs_off {
            return;
        }
        self.delayed = true;
        // What left at the moment of that failure was begun before: nothing is begun after it.
        if begun > self.last_failure || self.streak == 0 {
            self.streak += 1;
        }
        self.last_failure = now;
        let asked = failure.retry_after.unwrap_or(0).min(RETRY_AFTER_MAX);
        self.not_before = self.not_before.max(now + asked);
        self.at_latest = self.at_latest.max(now + self.backoff_max.max(asked));
    }

    /// A request was answered well.
    pub fn succeeded(&mut self, tickers: bool, now: u64) {
        if tickers {
            self.answered = Some(now);
        }
        if tickers || !self.quoted {
            self.streak = 0;
        }
        self.quoted |= tickers;
    }

    /// Quotes are asked for.
    pub fn tickers(&mut self, now: u64) -> Verdict {
        if std::mem::take(&mut self.repeats_tickers) {
            return Ok(());
        }
        let (before, answered) = (self.last_tickers.replace(now), self.answered);
        let Some(before) = before.filter(|_| self.lanes > 1 && self.poll >= LEAST_POLL) else {
            return Ok(());
        };
        let calm = self.trouble + 2 * self.poll + 2 * SLACK < before && self.streak == 0;
        let prompt = answered.is_some_and(|at| at > before && at + SLACK < before + self.poll);
        let pause = now - before;
        // One that had to wait for the answer before it leaves no whole pause behind it.
        let is_late = pause > self.poll + SLACK || pause + SLACK < self.poll;
        let steady = std::mem::replace(&mut self.steady, prompt && !self.delayed && !is_late);
        self.delayed = false;
        if calm && prompt && steady && is_late {
            let (pause, poll) = (seconds(pause), seconds(self.poll));
            return Err(format!("quotes were asked for after {pause} s, not {poll} s"));
        }
        Ok(())
    }

    /// Looks from time to time whether quotes are overdue. `busy`: some request is in trouble.
    pub fn look(&mut self, busy: bool, fine: bool, now: u64) -> Verdict {
        if busy || !fine {
            self.trouble = now;
        }
        let Some(last) = (self.last_tickers).filter(|_| self.lanes > 1 && self.poll >= LEAST_POLL)
        else {
            return Ok(());
        };
        let calm = self.trouble + 2 * self.poll + 2 * SLACK < now;
        let answered = self.answered.is_some_and(|at| at > last);
        if calm && answered && now > last.max(self.at_latest) + self.poll + 2 * SLACK {
            let late = seconds(now - last);
            return Err(format!("quotes were last asked for {late} s ago"));
        }
        Ok(())
    }
}

/// Connections take this long, and turns.
const SLACK: u64 = 500_000;

/// Polls that come more often may have to wait for the budget.
const LEAST_POLL: u64 = 2_000_000;
