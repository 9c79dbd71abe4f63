//! The upstream connections of one source: what each event of one of them leads to.
//!
//! [`Connections`] owns each connection's socket key, how far it is connected (TCP, tunnel, TLS:
//! [`Connecting`]) and its request in flight, and the addresses of the host. It does not decide what is
//! requested. A request tries one address after the other, and fails behind the last or at its deadline.
//!
//! A request on a reused connection that ends before its response has begun has not failed: the
//! exchange had closed the connection while it was idle (RFC 9112, 9.3.1). Its task is due again at
//! once, and costs as much again, because the exchange may have counted the first one.

use crate::core::context::Context;
use crate::core::sources::addresses::Addresses;
use crate::core::sources::connecting::{ConnectPhase, Connecting, Route};
use crate::core::sources::fault::Fault;
use crate::core::sources::request::{HeadFacts, RequestEnd, RequestInFlight, ResponseProgress};
use crate::core::sources::task::Profile;
use crate::core::{Action, Broken, Event};
use crate::log_targets::{SOURCE, quoted};
use crate::market::SourceId;
use crate::table::Key;
use crate::time::Mono;
use std::io::ErrorKind;
use std::net::SocketAddr;

/// See the module's page.
pub struct Connections {
    source: SourceId,
    route: Route,
    addresses: Addresses,
    all: Vec<UpstreamConnection>,
    /// What a head that has just come says; [`Source::handle`](super::Source::handle) takes it out.
    pub head_facts: Option<HeadFacts>,
}

#[derive(Default)]
struct UpstreamConnection {
    /// Set while there is a socket.
    key: Option<Key>,
    connecting: Connecting,
    request: Option<Box<RequestInFlight>>,
}

impl UpstreamConnection {
    /// True if its request waits for the addresses of the name.
    fn is_resolving(&self) -> bool {
        self.request.is_some() && self.connecting.phase == ConnectPhase::Closed
    }
}

/// A request that has ended, and how.
pub type Ended = (Box<RequestInFlight>, RequestEnd);

impl Connections {
    /// `count` connections, all of them closed.
    pub fn new(profile: &Profile, count: usize) -> Connections {
        let route = Route::new(&profile.url, profile.config.proxy.clone());
        if let Some(proxy) = &route.proxy {
            log::info!(target: SOURCE, "proxy used source={} proxy={proxy}", profile.config.id);
        }
        let (host, port) = route.peer();
        Connections {
            source: profile.id,
            addresses: Addresses::of(host, port),
            route,
            all: (0..count).map(|_| UpstreamConnection::default()).collect(),
            head_facts: None,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The requests in flight.
    pub fn requests(&self) -> impl Iterator<Item = &RequestInFlight> {
        self.all.iter().filter_map(|it| it.request.as_deref())
    }

    /// A connection without a request.
    pub fn idle(&self) -> Option<usize> {
        self.all.iter().position(|it| it.request.is_none())
    }

    /// When [`Connections::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        let busy = self.all.iter().filter_map(|it| Some((it.request.as_ref()?, it)));
        let dues =
            busy.flat_map(|(request, it)| [Some(request.deadline), it.connecting.give_up_at]);
        dues.flatten().min()
    }

    /// Sends a request on an idle connection, which is opened first if it is closed.
    pub fn send(&mut self, conn: usize, mut request: Box<RequestInFlight>, cx: &mut Context) {
        let it = &mut self.all[conn];
        if let Some(key) = it.key {
            request.is_on_reused = true;
            cx.actions.push_back(Action::Flush(key));
        }
        it.request = Some(request);
        if it.key.is_none() {
            self.connect(conn, cx);
        }
    }

    /// Opens a connection, or waits for the addresses first.
    fn connect(&mut self, conn: usize, cx: &mut Context) {
        self.look_up(cx);
        if self.addresses.is_empty() {
            return;
        }
        let it = &mut self.all[conn];
        let deadline = it.request.as_ref().map_or(cx.now.mono, |it| it.deadline);
        it.connecting.begin(self.addresses.in_order(), deadline);
        let begun = it.connecting.next_attempt(&self.route, cx.now);
        debug_assert!(begun.is_some(), "there is a first address");
    }

    /// Looks the name up, if that is due. A request only waits for it if no address is known.
    fn look_up(&mut self, cx: &mut Context) {
        if self.addresses.look_up(cx.now) {
            let (host, port) = self.route.peer();
            cx.actions.push_back(Action::Resolve {
                source: self.source,
                host: host.to_string(),
                port,
            });
        }
    }

    /// Has the driver open the connections that are wanted, each under a new key.
    pub fn open(&mut self, mut new_key: impl FnMut(usize) -> Key, cx: &mut Context) {
        for (conn, it) in self.all.iter_mut().enumerate() {
            let is_wanted = it.key.is_none() && it.connecting.phase == ConnectPhase::Connecting;
            if let Some(address) = it.connecting.address.filter(|_| is_wanted) {
                let (key, id) = (new_key(conn), &cx.stats[self.source].id);
                log::debug!(target: SOURCE, "connect source={id} address={address}");
                it.key = Some(key);
                cx.actions.push_back(Action::Connect(key, address));
            }
        }
    }

    /// Takes in the addresses of the host, or why the look-up failed. After a failure, known addresses are
    /// kept, and the first request that waited for an address fails. The source then puts back all other
    /// unsent requests.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        cx: &mut Context,
    ) -> Option<Ended> {
        let is_waiting = |conn: &usize| self.all[*conn].is_resolving();
        let waiting: Vec<usize> = (0..self.all.len()).filter(is_waiting).collect();
        if self.addresses.skip_former() {
            if !waiting.is_empty() {
                self.look_up(cx);
            }
            return None;
        }
        match addresses {
            Ok(list) => {
                self.addresses.found(list, cx.now);
                waiting.into_iter().for_each(|conn| self.connect(conn, cx));
                None
            }
            Err(why) => {
                if self.addresses.not_found(cx.now) && !self.addresses.is_empty() {
                    let id = &cx.stats[self.source].id;
                    log::warn!(
                        target: SOURCE,
                        "name look-up failed source={id} addresses=kept error={why:?}"
                    );
                }
                self.end(*waiting.first()?, RequestEnd::Failed(Fault::Transport(why)), cx)
            }
        }
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome. Those of the TLS handshake are
    /// the driver's, and while something is to be decompressed, nothing more is read.
    pub fn interest(&self, conn: usize, key: Key) -> (&[u8], bool) {
        let it = &self.all[conn];
        match (it.connecting.phase, &it.request) {
            _ if it.key != Some(key) => (&[], false),
            (ConnectPhase::Tunnelling, _) => (it.connecting.outgoing(), true),
            (ConnectPhase::Open, Some(request)) => {
                (request.outgoing(), !request.is_decompressing())
            }
            (ConnectPhase::Open, None) => (&[], true),
            _ => (&[], false),
        }
    }

    /// True if [`Connections::decompress`] has something to do.
    pub fn is_decompressing(&self, conn: usize) -> bool {
        self.all[conn].request.as_deref().is_some_and(RequestInFlight::is_decompressing)
    }

    /// Takes in what happened to a connection. Returns the request that has ended.
    pub fn handle(
        &mut self,
        conn: usize,
        key: Key,
        event: Event<'_>,
        cx: &mut Context,
    ) -> Option<Ended> {
        let it = &mut self.all[conn];
        if it.key != Some(key) {
            return None;
        }
        match event {
            Event::Connected | Event::Secured => {
                it.connecting.advance(&self.route, cx.now);
                self.phase_began(conn, key, cx);
            }
            Event::Sent(count) => match &mut it.request {
                Some(request) if it.connecting.is_open() => request.sent(count, cx.now),
                _ => it.connecting.sent_bytes(count),
            },
            Event::Received(bytes) if it.connecting.is_open() => {
                cx.stats[self.source].bytes_received += bytes.len() as u64;
                let Some(request) = &mut it.request else {
                    // Nothing was requested: these bytes could not be told from the next response.
                    self.close(conn, cx);
                    return None;
                };
                let read = request.receive(bytes, &mut cx.market.catalog, &cx.config.limits);
                self.head_facts = request.head_facts.take();
                return self.was_read(conn, read, cx);
            }
            Event::Received(bytes) => {
                let (route, limits) = (&self.route, &cx.config.limits);
                match it.connecting.receive(bytes, route, limits, cx.now) {
                    Ok(()) => self.phase_began(conn, key, cx),
                    Err(error) => {
                        let why = format!("no tunnel through the proxy: {error}");
                        return self.end(conn, RequestEnd::Failed(Fault::Transport(why)), cx);
                    }
                }
            }
            // Only clients' connections have this event.
            Event::Late(_) => {}
            Event::Eof => return self.lost(conn, None, cx),
            Event::Failed(why) => return self.lost(conn, Some(why), cx),
        }
        None
    }

    /// Does what the new phase of a connection needs.
    fn phase_began(&mut self, conn: usize, key: Key, cx: &mut Context) {
        let connecting = &self.all[conn].connecting;
        match (connecting.phase, connecting.address) {
            (ConnectPhase::Securing, _) => {
                let host = self.route.host.clone();
                cx.actions.push_back(Action::Secure(key, host));
            }
            (ConnectPhase::Open, Some(address)) => self.addresses.worked(address),
            _ => {}
        }
    }

    /// Decompresses one slice of a response.
    pub fn decompress(&mut self, conn: usize, cx: &mut Context) -> Option<Ended> {
        let it = &mut self.all[conn];
        let request = it.request.as_mut().filter(|it| it.is_decompressing())?;
        let read = request.decompress(&mut cx.market.catalog);
        // What the kernel holds was not read meanwhile, and there is no second event for it.
        if let (false, Some(key)) = (request.is_decompressing(), it.key) {
            cx.actions.push_back(Action::Flush(key));
        }
        self.was_read(conn, read, cx)
    }

    /// Some of a response has been read.
    fn was_read(
        &mut self,
        conn: usize,
        read: Result<ResponseProgress, Fault>,
        cx: &mut Context,
    ) -> Option<Ended> {
        match read {
            Ok(ResponseProgress::Partly) => None,
            Ok(ResponseProgress::WholeAndClose) => self.end(conn, RequestEnd::Complete, cx),
            Ok(ResponseProgress::Whole) => {
                self.all[conn].request.take().map(|it| (it, RequestEnd::Complete))
            }
            Err(fault) => {
                let fault = match &self.all[conn].request {
                    Some(request) => request.cut_short(fault),
                    None => fault,
                };
                self.end(conn, RequestEnd::Failed(fault), cx)
            }
        }
    }

    /// Gives up what has had its time.
    pub fn handle_timeout(&mut self, conn: usize, cx: &mut Context) -> Option<Ended> {
        let it = &self.all[conn];
        let request = it.request.as_deref()?;
        if request.deadline <= cx.now.mono {
            let obstacle = match it.is_resolving() {
                true => Some("cannot resolve the name"),
                false => it.connecting.obstacle(),
            };
            let fault = request.cut_short(Fault::Timeout(obstacle));
            return self.end(conn, RequestEnd::Failed(fault), cx);
        }
        let is_stuck = (it.connecting.give_up_at).is_some_and(|at| at <= cx.now.mono);
        let lost = || self.lost(conn, Some(&Broken::Io(ErrorKind::TimedOut)), cx);
        is_stuck.then(lost).flatten()
    }

    /// A connection has ended, or was never open. Without `why`, the peer has closed it in order.
    fn lost(&mut self, conn: usize, why: Option<&Broken>, cx: &mut Context) -> Option<Ended> {
        let obstacle = self.all[conn].connecting.obstacle();
        log::debug!(
            target: SOURCE,
            "connection ended source={} connected={} reason={}",
            cx.stats[self.source].id,
            obstacle.is_none(),
            why.map_or(quoted("closed by the peer"), quoted),
        );
        self.close(conn, cx);
        if obstacle.is_some() && self.all[conn].request.is_some() {
            self.addresses.doubt();
            self.look_up(cx);
            if self.all[conn].connecting.next_attempt(&self.route, cx.now).is_some() {
                return None;
            }
        }
        let request = self.all[conn].request.as_mut()?;
        let fault = match (obstacle, why) {
            (Some(what), why) => {
                Fault::Transport(format!("{what}: {}", why.unwrap_or(&Broken::Closed)))
            }
            (None, _) if request.is_on_reused && request.received == 0 => {
                return self.end(conn, RequestEnd::PutBack, cx);
            }
            (None, Some(why)) => {
                request.cut_short(Fault::Transport(format!("connection lost: {why}")))
            }
            (None, None) => match request.closed() {
                Ok(()) => return self.end(conn, RequestEnd::Complete, cx),
                Err(fault) => request.cut_short(fault),
            },
        };
        self.end(conn, RequestEnd::Failed(fault), cx)
    }

    /// Ends a request, and its connection with it.
    fn end(&mut self, conn: usize, how: RequestEnd, cx: &mut Context) -> Option<Ended> {
        self.close(conn, cx);
        self.all[conn].request.take().map(|request| (request, how))
    }

    /// Ends those requests that are chosen, through nobody's fault.
    pub fn put_back_all(
        &mut self,
        is_chosen: impl Fn(&RequestInFlight) -> bool,
        cx: &mut Context,
    ) -> Vec<Ended> {
        let is_chosen = |it: &UpstreamConnection| it.request.as_deref().is_some_and(&is_chosen);
        let chosen: Vec<usize> =
            (0..self.all.len()).filter(|conn| is_chosen(&self.all[*conn])).collect();
        chosen.into_iter().filter_map(|conn| self.end(conn, RequestEnd::PutBack, cx)).collect()
    }

    /// Closes a connection. Its request stays.
    fn close(&mut self, conn: usize, cx: &mut Context) {
        self.all[conn].connecting.close();
        if let Some(key) = self.all[conn].key.take() {
            cx.actions.push_back(Action::Close(key));
        }
    }

    /// Closes every connection. Their requests have been put back.
    pub fn close_all(&mut self, cx: &mut Context) {
        for conn in 0..self.all.len() {
            self.close(conn, cx);
        }
    }

    /// The exchange is reached elsewhere from now on: every connection is closed. Their requests have been
    /// put back.
    pub fn reroute(&mut self, profile: &Profile, cx: &mut Context) {
        self.close_all(cx);
        let mut new = Connections::new(profile, self.all.len());
        new.await_look_up(self);
        *self = new;
    }

    /// Waits for the look-up of the former connections, if one is under way.
    pub fn await_look_up(&mut self, former: &Connections) {
        self.addresses.await_look_up(&former.addresses);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Credentials, Proxy, SourceConfig, Url};
    use crate::core::{Action, Broken, Core, Event, ProcessFacts, SourceState};
    use crate::market::SourceId;
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
                ..SourceConfig::of("binance")
            };
            let mut config = Config { sources: vec![source], ..Config::default() };
            config.limits.lanes_per_source = 1;
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
                if let Action::Close(key) = action {
                    self.core.closed(key);
                } else {
                    all.push(action);
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

        /// The one thing that is wanted: the addresses of this name.
        #[track_caller]
        fn resolve(&mut self, expected: &str) {
            let actions = self.actions();
            match &actions[..] {
                [Action::Resolve { host, .. }] if host == expected => {}
                actions => panic!("{actions:?}, not a look-up of {expected}"),
            }
        }

        fn resolved(&mut self, addresses: Result<&[&str], &str>) {
            let list = |texts: &[&str]| texts.iter().map(|it| address(it)).collect();
            let addresses = addresses.map(list).map_err(str::to_string);
            self.core.resolved(SourceId(0), addresses, self.now);
        }

        fn handle(&mut self, key: Key, event: Event<'_>) {
            self.core.handle(key, event, self.now);
        }

        fn answer(&mut self, key: Key, body: &str) {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let sent = self.core.outgoing(key).len();
            self.handle(key, Event::Sent(sent));
            self.handle(key, Event::Received((head + body).as_bytes()));
        }

        #[track_caller]
        fn failed(&mut self, expected: &str) {
            assert_eq!(self.actions(), []);
            let status = &self.core.cx.stats.sources[0];
            assert_eq!(status.last_error.as_deref(), Some(expected));
            let states = [SourceState::Backoff, SourceState::Down];
            assert!(states.contains(&status.state), "{:?}", status.state);
        }

        fn errors(&self) -> u64 {
            self.core.cx.stats.sources[0].errors
        }

        /// Waits for the next poll: the back-off's first steps are below it.
        fn back_off(&mut self) {
            self.pass(Duration::from_secs(60));
        }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn every_address_is_tried_before_a_poll_fails() {
        let mut bench = Bench::new("http://a.com", None);
        bench.resolve("a.com");
        bench.resolved(Ok(&["1.1.1.1:80", "1.1.1.2:80", "[::1]:80"]));
        for place in ["1.1.1.1:80", "[::1]:80"] {
            let key = bench.connect(place);
            bench.handle(key, Event::Failed(&REFUSED));
            assert_eq!(bench.errors(), 0);
        }
        let key = bench.connect("1.1.1.2:80");
        bench.handle(key, Event::Failed(&REFUSED));
        bench.failed("market list: cannot connect: connection refused");
        assert_eq!(bench.errors(), 1);
        // The next poll asks anew, and does not wait for the answer.
        bench.back_off();
        let actions = bench.actions();
        assert!(
            matches!(actions[..], [Action::Resolve { .. }, Action::Connect(..)]),
            "{actions:?}"
        );
    }

    #[test]
    fn an_address_that_swallows_everything_leaves_time_for_the_others() {
        let mut bench = Bench::new("https://a.com", None);
        bench.resolve("a.com");
        bench.resolved(Ok(&["[::1]:443", "1.1.1.1:443"]));
        bench.connect("[::1]:443");
        // The market list may take four times `timeoutMs`.
        bench.pass(Duration::from_secs(10));
        let actions = bench.actions();
        let [Action::Resolve { .. }, Action::Connect(key, to)] = actions[..] else {
            panic!("{actions:?}");
        };
        assert_eq!(to, address("1.1.1.1:443"));
        bench.handle(key, Event::Connected);
        let secure = Action::Secure(key, "a.com".to_string());
        assert_eq!(bench.actions(), [secure]);
        assert!(!bench.core.wants_read(key), "the handshake is the driver's");
        assert!(bench.core.outgoing(key).is_empty());
        bench.handle(key, Event::Secured);
        assert!(bench.core.outgoing(key).to_vec().starts_with(b"GET /api/v3/exchangeInfo"));
        // The one that worked is tried first from here on.
        bench.answer(key, "[]");
        bench.handle(key, Event::Eof);
        bench.resolved(Ok(&["[::1]:443", "1.1.1.1:443"]));
        bench.back_off();
        bench.connect("1.1.1.1:443");
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
        bench.resolve("a.com");
        bench.pass(Duration::from_secs(20));
        bench.failed("market list: cannot resolve the name: no answer in time");
        // The name server still owes its answer: no second question meanwhile.
        bench.back_off();
        assert_eq!(bench.actions(), []);
        bench.resolved(Ok(&["1.1.1.1:443"]));
        bench.connect("1.1.1.1:443");
    }

    #[test]
    fn known_addresses_outlive_the_name_server() {
        let mut bench = Bench::new("http://a.com", None);
        bench.resolve("a.com");
        bench.resolved(Err("cannot resolve a.com: try again"));
        bench.failed("market list: cannot resolve a.com: try again");
        bench.back_off();
        bench.resolve("a.com");
        bench.resolved(Ok(&["1.1.1.1:80"]));
        let key = bench.connect("1.1.1.1:80");
        bench.handle(key, Event::Connected);
        bench.handle(key, Event::Eof);
        bench.failed("market list: the connection was closed before the answer's end");
        // After five minutes the name is asked for again, beside the poll and not before it.
        bench.pass(Duration::from_secs(300));
        let actions = bench.actions();
        let [Action::Resolve { .. }, Action::Connect(key, _)] = actions[..] else {
            panic!("{actions:?}");
        };
        bench.resolved(Err("cannot resolve a.com: try again"));
        bench.handle(key, Event::Connected);
        assert!(bench.core.outgoing(key).to_vec().starts_with(b"GET "));
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
    fn a_proxy_is_asked_for_a_tunnel_and_its_name_is_the_one_that_is_looked_up() {
        let proxy = Proxy {
            host: "proxy.corp".to_string(),
            port: 3128,
            credentials: Some(Credentials { user: b"me".to_vec(), password: b"hunter2".to_vec() }),
        };
        let mut bench = Bench::new("https://a.com:8443", Some(proxy));
        bench.resolve("proxy.corp");
        bench.resolved(Ok(&["1.1.1.9:3128"]));
        let key = bench.connect("1.1.1.9:3128");
        bench.handle(key, Event::Connected);
        let asked = bench.core.outgoing(key).to_vec();
        assert!(asked.starts_with(b"CONNECT a.com:8443 HTTP/1.1\r\n"));
        bench.handle(key, Event::Sent(asked.len()));
        assert!(bench.core.outgoing(key).is_empty());
        assert!(bench.core.wants_read(key));
        bench.handle(key, Event::Received(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"));
        bench.failed(
            "market list: no tunnel through the proxy: status 407, the proxy rejects the user and password",
        );
        bench.back_off();
        let key = bench.connect("1.1.1.9:3128");
        bench.handle(key, Event::Connected);
        bench.handle(key, Event::Received(b"HTTP/1.1 200 OK\r\n\r\n"));
        assert_eq!(bench.actions(), [Action::Secure(key, "a.com".to_string())]);
        let why = Broken::Tls("the certificate has expired".into());
        bench.handle(key, Event::Failed(&why));
        let text = "TLS handshake: the certificate has expired";
        let actions = bench.actions();
        assert!(matches!(actions[..], [Action::Resolve { .. }]), "{actions:?}");
        bench.failed(&format!("market list: {text}"));
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
        assert_eq!(bench.errors(), 0);
        bench.handle(key, Event::Received(last));
        bench.core.work(bench.now);
        bench.actions();
        assert_eq!(bench.errors(), 1);
        assert!(!bench.core.has_work());
    }
}
