//! The requests in flight of a source: what each event of a connection leads to.
//!
//! A request tries one address after the other until a connection opens. It fails after the last address, or
//! at its deadline.
//!
//! If a reused connection ends before a response has begun, or with a 408 that closes it (RFC 9110, 15.5.9),
//! its request has not failed: the exchange had closed the connection while it was idle (RFC 9112, 9.3.1), or
//! a network has forgotten the connection, so that nothing comes in time. The task is due again at once, and
//! costs as much again, because the exchange may have counted the first request. All idle connections are
//! closed, so the second request is on a new connection, and there is no third.

use super::Source;
use crate::core::history::Pace;
use crate::core::sources::clock::Witness;
use crate::core::sources::fault::Fault;
use crate::core::sources::host::Host;
use crate::core::sources::jobs::Job;
use crate::core::sources::request::{RequestEnd, RequestInFlight};
use crate::core::upstream::Ended;
use crate::core::{Broken, Context, Event};
use crate::http::{EMPTY, Output};
use crate::table::Key;
use crate::time::Mono;

impl Source {
    /// Until when no quotes can be requested, if they are requested by market and all markets are paused.
    pub(super) fn idle_until(&self) -> Mono {
        self.plan.markets().map(|_| self.round.idle_until()).unwrap_or_default()
    }

    /// The requests in flight.
    pub fn requests(&self) -> impl Iterator<Item = &RequestInFlight> {
        self.requests.iter().filter_map(Option::as_deref)
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome. No more is read while a part of
    /// the response is to be decompressed.
    pub fn interest(&self, conn: usize, key: Key) -> (&Output, bool) {
        match (self.upstream.interest(conn, key), &self.requests[conn]) {
            (Some(interest), _) => interest,
            (None, Some(request)) => (&request.output, !request.is_decompressing()),
            (None, None) => (&EMPTY, true),
        }
    }

    /// True if some of the response on a connection is to be decompressed.
    pub(super) fn is_decompressing(&self, conn: usize) -> bool {
        self.requests[conn].as_deref().is_some_and(RequestInFlight::is_decompressing)
    }

    /// Takes in what happened to a connection. `true`: a request has ended. `pace`: which candles the history
    /// takes now.
    pub fn handle(
        &mut self,
        (conn, key): (usize, Key),
        event: Event<'_>,
        pace: Pace,
        host: &mut Host,
        cx: &mut Context,
    ) -> bool {
        let (request, now) = (self.requests[conn].as_mut(), cx.now);
        let has_ended = match (self.upstream.handle(conn, key, event, cx), request) {
            (Err(ended), _) => self.lost(conn, ended, host, cx),
            (Ok(Some(Event::Connected)), Some(it)) if !host.budget.fits(it.unsent, now.mono) => {
                // Meanwhile, others have spent the budget that it needs.
                self.upstream.rest(conn, now);
                self.ended(conn, RequestEnd::PutBack, host, cx)
            }
            (Ok(Some(Event::Sent(count))), Some(request)) => {
                let status = &mut cx.stats[self.id];
                status.bytes_sent += count as u64;
                if request.sent_at.is_none() {
                    request.units = host.budget.send(request.unsent, now.mono);
                    status.budget_spent += u64::from(request.unsent);
                    status.polls += 1;
                }
                request.sent(count, now);
                false
            }
            (Ok(Some(Event::Received(bytes))), Some(request)) => {
                let read = request.receive(bytes, cx);
                if let Some(used) = request.used.take() {
                    let sent = (request.sent_mono(), request.units);
                    host.budget.note_used(request.limit, used, sent, now.mono);
                }
                self.upstream.wait_until(conn, request.deadline(now.mono));
                if request.is_decompressing() {
                    self.jobs.push([Job::Decompress(conn)]);
                }
                if let Some((date, sent)) = request.date.take() {
                    // A date has whole seconds.
                    self.clock.note(Witness::Date, [date, date + 999], sent, cx);
                }
                self.was_read(conn, read, host, cx)
            }
            _ => false,
        };
        has_ended && self.go_on(pace, host, cx)
    }

    /// A connection has ended: so has its request. `false`: there is none.
    pub(super) fn lost(
        &mut self,
        conn: usize,
        ended: Ended,
        host: &mut Host,
        cx: &mut Context,
    ) -> bool {
        let Some(request) = &mut self.requests[conn] else {
            return false;
        };
        let how = match ended {
            _ if request.is_unheard() => {
                if ended.why.is_none() {
                    self.upstream.failed(conn, request.began, cx);
                }
                for conn in (0..self.requests.len()).filter(|it| self.requests[*it].is_none()) {
                    self.upstream.close(conn, cx);
                }
                RequestEnd::PutBack
            }
            Ended { was_open: true, why: Some(Broken::Closed), .. } => match request.closed() {
                true => RequestEnd::Complete,
                false => RequestEnd::Failed(Fault::cut_short()),
            },
            _ => RequestEnd::Failed(Fault::ended(&ended)),
        };
        self.ended(conn, how, host, cx)
    }

    /// Decompresses one slice of a response. `true`: its request has ended.
    pub(super) fn decompress(&mut self, conn: usize, host: &mut Host, cx: &mut Context) -> bool {
        let request = self.requests[conn].as_mut().filter(|it| it.is_decompressing());
        let Some(request) = request else {
            return false;
        };
        let read = request.decompress(&mut cx.market.catalog);
        // What the kernel holds was not read meanwhile, and there is no second event for it.
        if !request.is_decompressing() {
            self.upstream.flush(conn, cx);
        }
        self.was_read(conn, read, host, cx)
    }

    /// Some of a response has been read. `true`: its request has ended.
    fn was_read(
        &mut self,
        conn: usize,
        read: Result<(), Fault>,
        host: &mut Host,
        cx: &mut Context,
    ) -> bool {
        let request = self.requests[conn].as_ref();
        if request.is_some_and(|it| it.is_unheard()) {
            self.upstream.close(conn, cx);
            let (what, why) = (String::new(), Some(Broken::Closed));
            return self.lost(conn, Ended { was_open: true, what, why }, host, cx);
        }
        let how = match (read, request) {
            (Err(fault), _) => RequestEnd::Failed(fault),
            (Ok(()), Some(request)) if request.is_complete() => RequestEnd::Complete,
            (Ok(()), _) => return false,
        };
        match (&how, request) {
            (RequestEnd::Complete, Some(it)) if it.keeps_alive() => {
                self.upstream.rest(conn, cx.now)
            }
            _ => self.upstream.close(conn, cx),
        }
        self.ended(conn, how, host, cx)
    }

    /// Takes in how a request has ended. `false`: there is none.
    fn ended(&mut self, conn: usize, how: RequestEnd, host: &mut Host, cx: &mut Context) -> bool {
        let Some(request) = self.requests[conn].take() else {
            return false;
        };
        let (task, began) = (request.task().clone(), request.began);
        let result = match how {
            RequestEnd::Complete => self.complete(request, host, cx),
            RequestEnd::Failed(fault) => Err(request.cut_short(fault)),
            RequestEnd::PutBack => {
                self.put_back(&task, cx.now.mono);
                return true;
            }
        };
        match result {
            Ok(()) => self.upstream.worked(conn, cx),
            Err(fault) => {
                let fault = fault.without(self.profile.config.key.as_ref());
                if fault.is_of_address() {
                    self.upstream.failed(conn, began, cx);
                }
                self.failed(&task, fault, began, host, cx);
            }
        }
        true
    }

    /// Ends the requests that are chosen, and their connections. Their tasks are due again at once.
    pub(super) fn put_back_all(
        &mut self,
        is_chosen: impl Fn(&RequestInFlight) -> bool,
        cx: &mut Context,
    ) {
        for conn in 0..self.requests.len() {
            if let Some(request) = self.requests[conn].take_if(|it| is_chosen(it)) {
                self.upstream.close(conn, cx);
                self.put_back(request.task(), cx.now.mono);
            }
        }
    }
}
