//! A source's upstream connections: what each event of one of them leads to.
//!
//! Owns the step from one event of a connection to the next thing that is to be done about it. It
//! never decides what is asked; a request whose connection cannot be had is tried on every address
//! before it counts as failed.

use super::source::Source;
use crate::core::Broken;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::Upstream;
use crate::core::sources::dial::Phase;
use crate::core::sources::fault::Fault;
use crate::core::{Action, Event};
use crate::exchange::Meter;
use crate::log_targets::SOURCE;
use crate::table::{Key, Table};
use std::net::SocketAddr;

impl Source {
    /// Bytes to be sent on a lane's connection.
    pub fn outgoing(&self, lane: usize, key: Key) -> &[u8] {
        let lane = &self.lanes[lane];
        match (lane.dial.phase(), &lane.asking) {
            _ if lane.conn != Some(key) => &[],
            (Phase::Tunnelling, _) => lane.dial.outgoing(),
            (Phase::Open, Some(asking)) => asking.outgoing(),
            _ => &[],
        }
    }

    /// Whether bytes from a lane's connection are welcome: those of the handshake are not ours,
    /// and those behind what is still packed have time.
    pub fn wants_read(&self, lane: usize, key: Key) -> bool {
        let lane = &self.lanes[lane];
        lane.conn == Some(key)
            && matches!(lane.dial.phase(), Phase::Tunnelling | Phase::Open)
            && !lane.is_unpacking()
    }

    /// The name's addresses have come, or have not.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) {
        let known = !self.addresses.is_empty();
        let waiting = |poller: &Source, lane: usize| {
            let lane = &poller.lanes[lane];
            lane.asking.is_some() && lane.dial.phase() == Phase::Resolving
        };
        match addresses {
            Ok(list) => self.addresses.found(list, cx.now),
            Err(why) => {
                let news = self.addresses.not_found(cx.now);
                if known && news {
                    log::warn!(target: SOURCE, "{}: {why}; keeping the known addresses", self.config.id);
                }
                for lane in 0..self.lanes.len() {
                    if !known && waiting(self, lane) {
                        self.hang_up(lane, cx);
                        self.fail(lane, Fault::Resolve(why.clone()), cx);
                    }
                }
            }
        }
        for lane in 0..self.lanes.len() {
            if waiting(self, lane) {
                self.connect(lane, conns, cx);
            }
        }
        self.start_due(conns, history, cx);
    }

    /// Takes in what happened to a lane's connection. `true`: a task has ended.
    pub fn handle(
        &mut self,
        lane: usize,
        key: Key,
        event: Event<'_>,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        if self.lanes[lane].conn != Some(key) {
            return false;
        }
        let ended = match event {
            Event::Connected | Event::Secured => {
                self.step(lane, key, event, cx);
                false
            }
            Event::Sent(count) => {
                let place = &mut self.lanes[lane];
                match &mut place.asking {
                    Some(asking) if place.dial.is_open() => asking.advance(count, cx.now),
                    _ => place.dial.advance(count),
                }
                return false;
            }
            Event::Received(bytes) if !self.lanes[lane].dial.is_open() => {
                self.tunnel(lane, key, bytes, cx)
            }
            Event::Received(bytes) => {
                cx.stats[self.id].bytes_received += bytes.len() as u64;
                let received = self.receive(lane, bytes, cx);
                self.heed_head(lane, cx);
                let ended = self.took(lane, received, history, cx);
                if !ended {
                    return false;
                }
                ended
            }
            // Said of clients alone.
            Event::Late(_) => return false,
            Event::Eof => self.lost(lane, None, conns, history, cx),
            Event::Failed(why) => self.lost(lane, Some(why), conns, history, cx),
        };
        self.start_due(conns, history, cx);
        ended
    }

    /// A lane's connection has come one phase further by the driver's word.
    fn step(&mut self, lane: usize, key: Key, event: Event<'_>, cx: &mut Context) {
        let place = &mut self.lanes[lane];
        let deadline = place.asking.as_ref().map_or(cx.now.mono, |it| it.deadline);
        match event {
            Event::Connected => place.dial.connected(&self.route, deadline, cx.now),
            _ => place.dial.secured(deadline, cx.now),
        }
        self.go_on(lane, key, cx);
    }

    /// Bytes of the proxy's answer have come. `true`: a task has ended.
    fn tunnel(&mut self, lane: usize, key: Key, bytes: &[u8], cx: &mut Context) -> bool {
        let place = &mut self.lanes[lane];
        let deadline = place.asking.as_ref().map_or(cx.now.mono, |it| it.deadline);
        let limits = &cx.config.limits;
        match (place.dial).receive(bytes, &self.route, limits, deadline, cx.now) {
            Ok(()) => {
                self.go_on(lane, key, cx);
                false
            }
            Err(refusal) => {
                self.hang_up(lane, cx);
                self.fail(lane, Fault::Proxy(refusal), cx);
                true
            }
        }
    }

    /// Asks for what the present phase of a connection needs.
    fn go_on(&mut self, lane: usize, key: Key, cx: &mut Context) {
        let dial = &self.lanes[lane].dial;
        match dial.phase() {
            Phase::Securing => {
                let host = self.route.host().to_string();
                cx.actions.push_back(Action::Secure(key, host));
            }
            Phase::Open => {
                if let Some(address) = dial.address() {
                    self.addresses.worked(address);
                }
            }
            _ => {}
        }
    }

    /// Some of an answer has been read, so far. `true`: a task has ended.
    fn took(
        &mut self,
        lane: usize,
        read: Result<Option<bool>, Fault>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        match read {
            Ok(None) => return false,
            Ok(Some(keep_alive)) => {
                if !keep_alive {
                    self.hang_up(lane, cx);
                }
                self.succeed(lane, history, cx);
            }
            Err(fault) => {
                self.hang_up(lane, cx);
                self.fail(lane, fault, cx);
            }
        }
        true
    }

    /// The lane with something to unpack: quotes go before what nobody waits for.
    pub(super) fn unpacking(&self) -> Option<usize> {
        let lanes = (0..self.lanes.len()).filter(|lane| self.lanes[*lane].is_unpacking());
        lanes.max_by_key(|lane| {
            let asking = self.lanes[*lane].asking.as_deref();
            asking.is_some_and(|asking| asking.task.is_quotes())
        })
    }

    /// Unpacks one slice of a lane's answer. `true`: a task has ended.
    pub(super) fn unpack(
        &mut self,
        lane: usize,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        let place = &mut self.lanes[lane];
        let Some(asking) = &mut place.asking else {
            return false;
        };
        let read = asking.unpack(self.id, &mut cx.market.catalog);
        // What the kernel holds meanwhile was not read, and nobody says again that it is there.
        if let (false, Some(key)) = (asking.is_unpacking(), place.conn) {
            cx.actions.push_back(Action::Flush(key));
        }
        let ended = self.took(lane, read, history, cx);
        if ended {
            self.start_due(conns, history, cx);
        }
        ended
    }

    /// Heeds what the head of an answer tells of the time, and of the budget.
    fn heed_head(&mut self, lane: usize, cx: &mut Context) {
        let Some(asking) = self.lanes[lane].asking.as_deref_mut() else {
            return;
        };
        let (date, metered) = (asking.date.take(), asking.metered.take());
        if let Some(date) = date {
            self.heed_date(date, cx);
        }
        let Some(units) = metered else {
            return;
        };
        match self.dialect.meter() {
            Some(Meter::Used(_)) => self.budget.heed_used(units, cx.now.mono),
            Some(Meter::Left(_)) => self.budget.heed_left(units, cx.now.mono),
            None => {}
        }
        cx.stats[self.id].budget_left = self.budget.left(cx.now.mono);
    }

    fn receive(
        &mut self,
        lane: usize,
        bytes: &[u8],
        cx: &mut Context,
    ) -> Result<Option<bool>, Fault> {
        match &mut self.lanes[lane].asking {
            Some(asking) => {
                let catalog = &mut cx.market.catalog;
                asking.receive(bytes, self.id, catalog, &cx.config.limits)
            }
            // Bytes that nobody asked for: the next answer could not be told from them.
            None => Err(Fault::CutShort),
        }
    }

    /// A connection has ended, or never came to be; without `why`, the peer has closed it in due
    /// form. `true`: a task has ended.
    pub(super) fn lost(
        &mut self,
        lane: usize,
        why: Option<&Broken>,
        conns: &mut Table<Upstream>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        let obstacle = self.lanes[lane].dial.obstacle();
        log::debug!(
            target: SOURCE,
            "connection ended source={} connected={} reason={:?}",
            self.config.id,
            obstacle.is_none(),
            why.map_or("closed by the peer".to_string(), ToString::to_string),
        );
        self.hang_up(lane, cx);
        let Some(asking) = &mut self.lanes[lane].asking else {
            return false;
        };
        if let Some(what) = obstacle {
            self.addresses.doubt();
            self.look_up(cx);
            if self.attempt(lane, conns, cx) {
                return false;
            }
            let why = why.cloned().unwrap_or(Broken::Closed);
            self.fail(lane, Fault::Dial(what, why), cx);
            return true;
        }
        if !asking.fresh && !asking.has_begun() {
            self.put_back(lane, cx.now);
            return false;
        }
        match (why, asking.end()) {
            (None, Ok(())) => self.succeed(lane, history, cx),
            (None, Err(fault)) => {
                let fault = asking.cut(fault);
                self.fail(lane, fault, cx);
            }
            (Some(why), _) => {
                let fault = asking.cut(Fault::Broken(why.clone()));
                self.fail(lane, fault, cx);
            }
        }
        true
    }

    /// Opens a lane's connection, or asks for the addresses first.
    pub(super) fn connect(&mut self, lane: usize, conns: &mut Table<Upstream>, cx: &mut Context) {
        self.look_up(cx);
        if self.addresses.is_empty() {
            return self.lanes[lane].dial.wait_for_addresses();
        }
        self.lanes[lane].dial.begin(self.addresses.in_order());
        let tries = self.attempt(lane, conns, cx);
        debug_assert!(tries, "there is a first address");
    }

    /// Tries the next address. `false`: all of them have been tried.
    fn attempt(&mut self, lane: usize, conns: &mut Table<Upstream>, cx: &mut Context) -> bool {
        let place = &mut self.lanes[lane];
        let deadline = place.asking.as_ref().map_or(cx.now.mono, |it| it.deadline);
        let Some(address) = place.dial.attempt(&self.route, deadline, cx.now) else {
            return false;
        };
        let source = self.id;
        let key = conns.insert(Upstream { source, lane });
        let key = key.expect("the table has a place for every lane");
        place.conn = Some(key);
        log::debug!(target: SOURCE, "connect source={} address={address}", self.config.id);
        cx.actions.push_back(Action::Connect(key, address));
        true
    }

    /// Has the name looked up where that is due. Nobody waits for it who has an address.
    fn look_up(&mut self, cx: &mut Context) {
        if self.addresses.look_up(cx.now) {
            let (host, port) = self.route.first();
            cx.actions.push_back(Action::Resolve {
                source: self.id,
                host: host.to_string(),
                port,
            });
        }
    }

    /// Lets a lane's connection go; what is asked on it is untouched.
    pub(super) fn hang_up(&mut self, lane: usize, cx: &mut Context) {
        self.lanes[lane].dial.hang_up();
        if let Some(key) = self.lanes[lane].conn.take() {
            cx.actions.push_back(Action::Close(key));
        }
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
            let now = Now {
                mono: Mono(1_000_000),
                unix: UnixMs(1_600_000_000_000),
            };
            let source = SourceConfig {
                url: Some(Url::parse(url).expect("well-formed")),
                proxy,
                ..SourceConfig::of("binance")
            };
            let mut config = Config {
                sources: vec![source],
                ..Config::default()
            };
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
        assert!(
            bench
                .core
                .outgoing(key)
                .to_vec()
                .starts_with(b"GET /api/v3/exchangeInfo")
        );
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
            let key = bench.connect(if proxied {
                "1.1.1.9:3128"
            } else {
                "1.1.1.1:443"
            });
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
            credentials: Some(Credentials {
                user: b"me".to_vec(),
                password: b"hunter2".to_vec(),
            }),
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
        bench.handle(
            key,
            Event::Received(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"),
        );
        bench.failed(
            "market list: no tunnel through the proxy: status 407, it does not take user and password",
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
        assert!(
            matches!(actions[..], [Action::Resolve { .. }]),
            "{actions:?}"
        );
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
