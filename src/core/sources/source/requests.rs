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
                if request.sent_at.is_none() {
                    request.units = host.budget.send(request.unsent, now.mono);
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

#[cfg(test)]
mod tests {
    use crate::config::{Config, SourceConfig, Url};
    use crate::core::{Action, Broken, Core, Event, ProcessFacts, SourceState};
    use crate::table::Key;
    use crate::time::{Mono, Now, UnixMs};
    use std::io::ErrorKind;
    use std::net::SocketAddr;
    use std::time::Duration;

    const REFUSED: Broken = Broken::Io(ErrorKind::ConnectionRefused);

    /// A core with one source, in virtual time.
    struct Bench {
        core: Core,
        now: Now,
    }

    impl Bench {
        fn new(url: &str, proxy: Option<Url>) -> Bench {
            let now = Now { mono: Mono(1_000_000), unix: UnixMs(1_600_000_000_000) };
            let source = SourceConfig {
                url: Some(Url::parse(url).expect("well-formed")),
                proxy,
                ..SourceConfig::new("binance")
            };
            let mut config = Config { sources: vec![source], ..Config::default() };
            config.limits.connections_per_source = 1;
            let core = Core::new(config, None, ProcessFacts::default, 1, now);
            Bench { core, now }
        }

        fn pass(&mut self, time: Duration) {
            self.now.mono = self.now.mono + time;
            self.now.unix = self.now.unix + time.as_millis() as i64;
            self.core.handle_timeout(self.now);
        }

        fn actions(&mut self) -> Vec<Action> {
            let mut all = Vec::new();
            while let Some(action) = self.core.poll_action() {
                match action {
                    Action::Close(key) => self.core.closed(key),
                    action => all.push(action),
                }
            }
            all
        }

        /// Checks that a connection to this address is the only action. Returns its key.
        #[track_caller]
        fn connect(&mut self, expected: &str) -> Key {
            let actions = self.actions();
            match &actions[..] {
                [Action::Connect(key, to)] if *to == address(expected) => *key,
                actions => panic!("{actions:?}, not a connection to {expected}"),
            }
        }

        fn handle(&mut self, key: Key, event: Event<'_>) {
            self.core.handle(key, event, self.now);
        }

        #[track_caller]
        fn failed(&mut self, expected: &str) {
            assert_eq!(self.actions(), []);
            let status = &self.core.cx.stats.sources[0];
            assert_eq!(status.last_error.as_deref(), Some(expected));
            let states = [SourceState::Backoff, SourceState::Down];
            assert!(states.contains(&status.state), "{:?}", status.state);
        }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_step_that_never_ends_is_told_as_such() {
        let check = |proxied: bool, connected: bool, expected: &str| {
            let proxy = proxied.then(|| Url::parse("http://1.1.1.9:3128").expect("well-formed"));
            let mut bench = Bench::new("https://1.1.1.1", proxy);
            let key = bench.connect(if proxied { "1.1.1.9:3128" } else { "1.1.1.1:443" });
            if connected {
                bench.handle(key, Event::Connected);
                bench.actions();
            }
            bench.pass(Duration::from_secs(20));
            bench.failed(&format!("market list: {expected}: no answer in time"));
        };
        check(false, false, "cannot connect");
        check(false, true, "TLS handshake");
        check(true, false, "cannot connect to the proxy");
        check(true, true, "no tunnel through the proxy");
        let mut bench = Bench::new("https://a.com", None);
        assert!(matches!(bench.actions()[..], [Action::Resolve(_)]));
        bench.pass(Duration::from_secs(20));
        bench.failed("market list: cannot resolve a.com: no answer in time");
    }

    #[test]
    fn an_address_written_as_one_is_never_looked_up() {
        let mut bench = Bench::new("http://[::1]:81", None);
        for _ in 0..3 {
            let key = bench.connect("[::1]:81");
            bench.handle(key, Event::Failed(&REFUSED));
            bench.failed("market list: cannot connect: connection refused");
            bench.pass(Duration::from_secs(400));
        }
    }

    #[test]
    fn a_neighbour_of_a_source_that_ends_by_a_reload_is_polled_at_once() {
        let mut bench = Bench::new("http://10.0.0.1:80", None);
        bench.connect("10.0.0.1:80");
        let mut config = bench.core.cx.config.clone();
        let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
        config.sources.push(other.clone());
        for _ in 0..2 {
            bench.core.reconfigure(config.clone(), Vec::new(), || (), bench.now).expect("sound");
            bench.pass(Duration::ZERO);
            config.sources = vec![other.clone()];
        }
        assert_eq!(bench.core.cx.stats.running().count(), 1);
        bench.connect("10.0.0.1:80");
    }

    /// A list of blanks in gzip: 200 KB in 200 bytes.
    fn packed() -> Vec<u8> {
        use std::io::Write;
        let body = format!("{{\"serverTime\":1,{}\"symbols\":[]}}", " ".repeat(200_000));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(body.as_bytes()).expect("a vector");
        encoder.finish().expect("a vector")
    }

    #[test]
    fn nothing_more_is_read_until_what_came_is_unpacked() {
        let mut bench = Bench::new("http://10.0.0.1:80", None);
        let key = bench.connect("10.0.0.1:80");
        bench.handle(key, Event::Connected);
        let sent = bench.core.outgoing(key).len();
        bench.handle(key, Event::Sent(sent));
        let packed = packed();
        let (first, last) = packed.split_at(packed.len() - 8);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            packed.len()
        );
        bench.handle(key, Event::Received(&[head.as_bytes(), first].concat()));
        assert_eq!(bench.actions(), []);
        let mut slices = 0;
        while bench.core.has_work() {
            assert!(!bench.core.wants_read(key));
            assert_eq!(bench.actions(), []);
            bench.core.work(bench.now);
            slices += 1;
        }
        assert!(slices >= 200_000 / (64 * 1024), "{slices}");
        assert!(bench.core.wants_read(key));
        assert_eq!(bench.actions(), [Action::Flush(key)]);
        // The last bytes complete the list. A list without a market is an error.
        assert_eq!(bench.core.cx.stats.sources[0].errors, 0);
        bench.handle(key, Event::Received(last));
        bench.core.work(bench.now);
        bench.actions();
        assert_eq!(bench.core.cx.stats.sources[0].errors, 1);
        assert!(!bench.core.has_work());
    }
}
