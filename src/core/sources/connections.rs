//! The requests of one source to its exchange: what each event of a connection leads to.
//!
//! [`Connections`] owns the request in flight of each connection. Its [`Upstream`] owns the connections. It
//! does not decide what is requested. A request tries one address after the other until a connection opens.
//! It fails after the last address, or at its deadline.
//!
//! If a reused connection ends before the response has begun, its request has not failed: the exchange had
//! closed the connection while it was idle (RFC 9112, 9.3.1), or a network has forgotten the connection, so
//! that nothing comes in time. The task is due again at once, and costs as much again, because the exchange
//! may have counted the first request. All idle connections are closed, so the second request is on a new
//! connection, and there is no third.

use crate::core::sources::budget::Budget;
use crate::core::sources::fault::Fault;
use crate::core::sources::request::{RequestEnd, RequestInFlight};
use crate::core::sources::task::Profile;
use crate::core::upstream::{Ended, Route, Upstream};
use crate::core::{Broken, Context, Event};
use crate::log_targets::SOURCE;
use crate::table::Key;
use crate::time::{Mono, UnixMs};

/// See the module's page.
pub struct Connections {
    /// The connections.
    pub upstream: Upstream,
    /// By connection.
    requests: Vec<Option<Box<RequestInFlight>>>,
    /// The date of a response whose head has just come, and when its request was sent;
    /// [`Source::handle`](super::Source::handle) takes it out.
    pub date: Option<(UnixMs, Mono)>,
}

/// A request that has ended, on which connection, and how.
pub type EndedRequest = (usize, Box<RequestInFlight>, RequestEnd);

impl Connections {
    /// `count` connections, all of them closed.
    pub fn new(profile: &Profile, count: usize) -> Connections {
        Connections {
            upstream: Upstream::new(profile.id, route_to_exchange(profile), count),
            requests: (0..count).map(|_| None).collect(),
            date: None,
        }
    }

    /// The number of connections.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// The requests in flight.
    pub fn requests(&self) -> impl Iterator<Item = &RequestInFlight> {
        self.requests.iter().filter_map(Option::as_deref)
    }

    /// A connection without a request.
    pub fn idle(&self) -> Option<usize> {
        self.requests.iter().position(Option::is_none)
    }

    /// Sends a request on an idle connection, which is opened first if it is closed.
    pub fn send(&mut self, conn: usize, mut request: Box<RequestInFlight>, cx: &mut Context) {
        request.is_on_reused = self.upstream.want(conn, request.deadline(cx.now.mono), cx);
        self.requests[conn] = Some(request);
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome. While something is to be
    /// decompressed, nothing more is read.
    pub fn interest(&self, conn: usize, key: Key) -> (&[u8], bool) {
        match (self.upstream.interest(conn, key), &self.requests[conn]) {
            (Some(interest), _) => interest,
            (None, Some(request)) => (request.outgoing(), !request.is_decompressing()),
            (None, None) => (&[], true),
        }
    }

    /// True if [`Connections::decompress`] has something to do.
    pub fn is_decompressing(&self, conn: usize) -> bool {
        self.requests[conn].as_deref().is_some_and(RequestInFlight::is_decompressing)
    }

    /// Takes in what happened to a connection. Returns the request that has ended. Once its connection is
    /// open, a request that does not fit into the budget any more is put back.
    pub fn handle(
        &mut self,
        (conn, key): (usize, Key),
        event: Event<'_>,
        budget: &mut Budget,
        cx: &mut Context,
    ) -> Option<EndedRequest> {
        let (request, now) = (self.requests[conn].as_mut(), cx.now);
        match (self.upstream.handle(conn, key, event, cx), request) {
            (Err(ended), _) => self.lost(conn, ended, cx),
            (Ok(Some(Event::Connected)), Some(it)) if !budget.fits(it.unsent, now.mono) => {
                self.rest(conn, RequestEnd::PutBack, cx)
            }
            (Ok(Some(Event::Sent(count))), Some(request)) => {
                if request.sent_at.is_none() {
                    request.units = budget.send(request.unsent, now.mono);
                }
                request.sent(count, now);
                None
            }
            (Ok(Some(Event::Received(bytes))), Some(request)) => {
                let read = request.receive(bytes, cx);
                self.date = request.date.take();
                if let Some(used) = request.used.take() {
                    let sent = (request.sent_mono(), request.units);
                    budget.note_used(request.limit, used, sent, now.mono);
                }
                self.upstream.wait_until(conn, request.deadline(cx.now.mono));
                self.was_read(conn, read, cx)
            }
            _ => None,
        }
    }

    /// Gives up a request whose time has ended.
    pub fn handle_timeout(&mut self, conn: usize, cx: &mut Context) -> Option<EndedRequest> {
        let ended = self.upstream.handle_timeout(conn, cx).err()?;
        self.lost(conn, ended, cx)
    }

    /// A connection has ended: so has its request.
    fn lost(&mut self, conn: usize, ended: Ended, cx: &mut Context) -> Option<EndedRequest> {
        let request = self.requests[conn].as_mut()?;
        let how = match ended {
            _ if request.is_on_reused && request.received == 0 => {
                if ended.why.is_none() {
                    self.upstream.failed(conn, request.began, cx);
                }
                for conn in (0..self.len()).filter(|conn| self.requests[*conn].is_none()) {
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
        self.end(conn, how, cx)
    }

    /// Decompresses one slice of a response.
    pub fn decompress(&mut self, conn: usize, cx: &mut Context) -> Option<EndedRequest> {
        let request = self.requests[conn].as_mut().filter(|it| it.is_decompressing())?;
        let read = request.decompress(&mut cx.market.catalog);
        // What the kernel holds was not read meanwhile, and there is no second event for it.
        if !request.is_decompressing() {
            self.upstream.flush(conn, cx);
        }
        self.was_read(conn, read, cx)
    }

    /// Some of a response has been read.
    fn was_read(
        &mut self,
        conn: usize,
        read: Result<(), Fault>,
        cx: &mut Context,
    ) -> Option<EndedRequest> {
        let request = self.requests[conn].as_ref()?;
        match read {
            Err(fault) => self.end(conn, RequestEnd::Failed(fault), cx),
            Ok(()) if !request.is_complete() => None,
            Ok(()) if !request.keeps_alive() => self.end(conn, RequestEnd::Complete, cx),
            Ok(()) => self.rest(conn, RequestEnd::Complete, cx),
        }
    }

    /// Ends a request whose connection can carry another one.
    fn rest(&mut self, conn: usize, how: RequestEnd, cx: &Context) -> Option<EndedRequest> {
        self.upstream.rest(conn, cx.now);
        self.requests[conn].take().map(|request| (conn, request, how))
    }

    /// Ends a request, and its connection with it.
    fn end(&mut self, conn: usize, how: RequestEnd, cx: &mut Context) -> Option<EndedRequest> {
        self.upstream.close(conn, cx);
        self.requests[conn].take().map(|request| (conn, request, how))
    }

    /// Ends the requests that are chosen, through nobody's fault.
    pub fn put_back_all(
        &mut self,
        is_chosen: impl Fn(&RequestInFlight) -> bool,
        cx: &mut Context,
    ) -> Vec<EndedRequest> {
        let is_chosen = |conn: &usize| self.requests[*conn].as_deref().is_some_and(&is_chosen);
        let chosen: Vec<usize> = (0..self.len()).filter(is_chosen).collect();
        chosen.into_iter().filter_map(|conn| self.end(conn, RequestEnd::PutBack, cx)).collect()
    }
}

/// The route to a source's exchange.
pub fn route_to_exchange(profile: &Profile) -> Route {
    if let Some(proxy) = &profile.config.proxy {
        log::info!(target: SOURCE, "proxy used source={} proxy={proxy}", profile.config.id);
    }
    Route::new(&profile.url, profile.config.proxy.clone())
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Proxy, SourceConfig, Url};
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
        fn new(url: &str, proxy: Option<Proxy>) -> Bench {
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

        /// The one thing that is wanted: a connection to this address.
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
            let proxy = proxied.then(|| Proxy {
                host: "1.1.1.9".to_string(),
                port: 3128,
                credentials: None,
            });
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
        // The list is without a market: now it is whole.
        assert_eq!(bench.core.cx.stats.sources[0].errors, 0);
        bench.handle(key, Event::Received(last));
        bench.core.work(bench.now);
        bench.actions();
        assert_eq!(bench.core.cx.stats.sources[0].errors, 1);
        assert!(!bench.core.has_work());
    }
}
