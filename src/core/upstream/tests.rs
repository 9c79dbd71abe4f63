//! A source in virtual time whose exchange has several addresses, some of them dead in one way or another,
//! and whose name server may be.

use crate::config::{Config, Poll, SourceConfig, Url};
use crate::core::testing::{HANGS, Manner, answer, target};
use crate::core::{Action, Broken, Core, Event, LookUp, ProcessFacts, Resolved, SourceState};
use crate::demo::Demo;
use crate::interval::Stored;
use crate::market::{Lookup, SeriesKey, SourceId};
use crate::table::Key;
use crate::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

const STEP_MS: u64 = 50;
const POLL_MS: u64 = 1000;
const TIMEOUT_MS: u64 = 3000;

/// What one dead part may cost: a poll that has failed, and this long from the quotes before it.
const MOST_MS: u64 = POLL_MS + TIMEOUT_MS + 2000;

const A: &str = "1.1.1.1:80";
const B: &str = "1.1.1.2:80";
const C: &str = "[::3]:80";

const FAILS: Manner = Manner::Answers(FAILURE);
const FAILURE: &str = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";

/// All manners of the dead. The first five accept a connection, one of them to say half a head.
const DEAD: [Manner; 7] = [
    HANGS,
    Manner::Answers("HTTP/1.1 200 OK\r\nContent-"),
    Manner::Closes,
    Manner::Resets,
    FAILS,
    Manner::Rejects,
    Manner::Swallows,
];

struct World {
    core: Core,
    ms: u64,
    demo: Demo,
    manners: BTreeMap<SocketAddr, Manner>,
    /// What the name server says, and after how many milliseconds. `None`: that it does not know.
    names: Option<Vec<SocketAddr>>,
    name_ms: u64,
    /// Look-ups that are under way: when they end.
    look_ups: Vec<(u64, LookUp)>,
    /// Look-ups that have begun.
    looked_up: usize,
    conns: HashMap<Key, Conn>,
    /// Addresses that were connected to.
    connects: Vec<SocketAddr>,
    /// Requests that an address does not serve, though it serves others.
    excepted: usize,
    /// Markets that the exchange has besides its own: more than are applied at once.
    more: usize,
}

struct Conn {
    address: SocketAddr,
    /// What this connection answers to any request, or nothing, because its network has forgotten it.
    last_word: Option<&'static str>,
    has_tunnel: bool,
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// The source of this exchange, through the proxy at this host, if any.
fn source(url: &str, proxy: Option<&str>) -> SourceConfig {
    let parsed = |url: &str| Url::parse(url).expect("well-formed");
    let proxy = proxy.map(|host| parsed(&format!("http://{host}")));
    SourceConfig { url: Some(parsed(url)), proxy, ..SourceConfig::new("binance") }
}

impl World {
    fn new(manners: &[(&str, Manner)], names: &[&str], proxy: Option<&str>, poll_ms: u64) -> World {
        let source = SourceConfig {
            poll: Poll::Every(Duration::from_millis(poll_ms)),
            timeout: Duration::from_millis(TIMEOUT_MS.min(3 * poll_ms)),
            ..source("http://a.com", proxy)
        };
        World::of(Config { sources: vec![source], ..Config::default() }, manners, names)
    }

    /// One whose source has a single connection to an exchange of this manner, under a numeric address or a name
    /// that is never found.
    fn single(url: &str, proxy: Option<&str>, at: &str, manner: Manner) -> World {
        let mut config = Config { sources: vec![source(url, proxy)], ..Config::default() };
        config.limits.connections_per_source = 1;
        let mut world = World::of(config, &[(at, manner)], &[]);
        world.name_ms = 1_000_000;
        world
    }

    fn of(config: Config, manners: &[(&str, Manner)], names: &[&str]) -> World {
        let now = Now { mono: Mono(1_000_000), unix: UnixMs(1_790_000_001_000) };
        let mut world = World {
            core: Core::new(config, None, ProcessFacts::default, 1, now),
            ms: 1000,
            demo: Demo::new(1),
            manners: manners.iter().map(|(at, manner)| (address(at), *manner)).collect(),
            names: None,
            name_ms: 20,
            look_ups: Vec::new(),
            looked_up: 0,
            conns: HashMap::new(),
            connects: Vec::new(),
            excepted: 0,
            more: 0,
        };
        world.lead_to(names);
        world
    }

    /// One that has been polled well for ten seconds.
    fn settled(manners: &[(&str, Manner)], names: &[&str]) -> World {
        let mut world = World::new(manners, names, None, POLL_MS);
        world.run(10_000);
        assert_eq!(world.errors(), 0);
        world
    }

    fn lead_to(&mut self, names: &[&str]) {
        self.names = Some(names.iter().map(|it| address(it)).collect());
    }

    fn set(&mut self, at: &str, manner: Manner) {
        self.manners.insert(address(at), manner);
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.ms * 1000), unix: UnixMs(1_790_000_000_000 + self.ms as i64) }
    }

    fn errors(&self) -> u64 {
        self.core.cx.stats.sources[0].errors
    }

    /// The error of the next poll that fails.
    #[track_caller]
    fn next_error(&mut self) -> &str {
        let (before, until) = (self.errors(), self.ms + 400_000);
        while self.errors() == before {
            assert!(self.ms < until, "no poll fails");
            self.run(STEP_MS);
        }
        let status = &self.core.cx.stats.sources[0];
        assert!([SourceState::Backoff, SourceState::Down].contains(&status.state));
        status.last_error.as_deref().expect("it has failed")
    }

    /// Milliseconds since quotes last came.
    fn age_ms(&self) -> u64 {
        let at = self.core.cx.stats.sources[0].quotes_at;
        at.map_or(self.ms - 1000, |at| (self.now().unix - at) as u64)
    }

    /// Lets time pass. Returns the longest time that no quotes came.
    fn run(&mut self, ms: u64) -> u64 {
        let (end, mut longest) = (self.ms + ms, 0);
        while self.ms < end {
            self.ms += STEP_MS;
            longest = longest.max(self.age_ms());
            let (now, ms) = (self.now(), self.ms);
            for (_, look_up) in self.look_ups.extract_if(.., |it| it.0 <= ms) {
                let why = || "try again".to_string();
                let addresses = self.names.clone().ok_or_else(why);
                self.core.resolved(Resolved { look_up, addresses }, now);
            }
            self.core.handle_timeout(self.now());
            self.act();
        }
        longest
    }

    fn act(&mut self) {
        for _ in 0..1000 {
            match self.core.poll_action() {
                Some(Action::Resolve(look_up)) => {
                    let source = &self.core.cx.config.sources[0];
                    let url = source.proxy.as_ref().or(source.url.as_ref());
                    assert_eq!(Some(&look_up.host), url.map(|it| &it.host));
                    self.look_ups.push((self.ms + self.name_ms, look_up));
                    self.looked_up += 1;
                    assert_eq!(self.look_ups.len(), 1, "one at a time");
                }
                Some(Action::Connect(key, to)) => self.connect(key, to),
                Some(Action::Flush(key)) => self.pump(key),
                Some(Action::Close(key)) => {
                    self.conns.remove(&key);
                    self.core.closed(key);
                }
                // A peer that hangs never takes part in TLS.
                Some(Action::Secure(..)) => {}
                Some(other) => panic!("{other:?}"),
                None if self.core.has_work() => {
                    self.core.work(self.now());
                    // Something else may be ready between two steps.
                    self.core.backend.watch(&mut self.core.cx);
                }
                None => return,
            }
        }
        panic!("there is no end of work");
    }

    fn connect(&mut self, key: Key, to: SocketAddr) {
        self.connects.push(to);
        match self.manners[&to] {
            Manner::Swallows => return,
            Manner::Rejects => {
                let why = Broken::Io(ErrorKind::ConnectionRefused);
                return self.core.handle(key, Event::Failed(&why), self.now());
            }
            _ => {}
        }
        let conn = Conn {
            address: to,
            last_word: None,
            has_tunnel: self.core.cx.config.sources[0].proxy.is_none(),
        };
        self.conns.insert(key, conn);
        self.core.handle(key, Event::Connected, self.now());
        self.pump(key);
    }

    /// Takes what is sent, and answers as the address does.
    fn pump(&mut self, key: Key) {
        let now = self.now();
        loop {
            let sent = self.core.outgoing(key).to_vec();
            let Some(conn) = self.conns.get_mut(&key).filter(|_| !sent.is_empty()) else { return };
            self.core.handle(key, Event::Sent(sent.len()), now);
            let answer = match self.manners[&conn.address] {
                _ if conn.last_word.is_some() => conn.last_word.unwrap_or_default().into(),
                Manner::Serves if !conn.has_tunnel => {
                    conn.has_tunnel = true;
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into()
                }
                Manner::ServesExcept(path, answer) if sent[4..].starts_with(path.as_bytes()) => {
                    self.excepted += 1;
                    answer.into()
                }
                Manner::Serves | Manner::ServesExcept(..) => {
                    answer(&self.demo, target(&sent), now.unix, |body| self.add_markets(body))
                }
                Manner::Answers(text) => text.into(),
                Manner::Closes => return self.core.handle(key, Event::Eof, now),
                Manner::Resets => {
                    let why = Broken::Io(ErrorKind::ConnectionReset);
                    return self.core.handle(key, Event::Failed(&why), now);
                }
                Manner::Rejects | Manner::Swallows => Vec::new(),
            };
            if answer.is_empty() {
                return;
            }
            self.core.handle(key, Event::Received(&answer), now);
        }
    }

    /// Adds further markets to a list, or their tickers to those of all.
    fn add_markets(&self, body: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8_lossy(&body).into_owned();
        let begin = "{\"symbol\":\"BTCUSDT\"";
        if let Some((before, rest)) = text.split_once(begin)
            && let Some((item, behind)) = rest.split_once(",{\"symbol\":")
        {
            let of = |name: &str| format!("{begin}{item},").replace("BTC", name);
            let more: String = (0..self.more).map(|at| of(&format!("M{at}"))).collect();
            return format!("{before}{more}{begin}{item},{{\"symbol\":{behind}").into_bytes();
        }
        body
    }

    /// On the connections that stand now, this comes in answer to a request, or nothing.
    fn forget_connections(&mut self, last_word: &'static str) {
        self.conns.values_mut().for_each(|it| it.last_word = Some(last_word));
    }

    /// Lets a minute pass, of which one poll may be lost. Then all connections lead there, after so many
    /// errors.
    #[track_caller]
    fn goes_on_at(&mut self, at: &str, most_errors: u64) {
        let longest = self.run(60_000);
        let (errors, manners) = (self.errors(), &self.manners);
        assert!(errors <= most_errors, "{manners:?}: {errors} errors");
        assert!(longest <= MOST_MS, "{manners:?}: {longest} ms");
        self.all_are_at(at);
    }

    #[track_caller]
    fn all_are_at(&self, at: &str) {
        assert!(!self.conns.is_empty());
        let is_there = |it: &Conn| it.address == address(at);
        assert!(self.conns.values().all(is_there), "not all are at {at}");
    }
}

#[test]
fn a_half_dead_address_costs_one_poll_from_the_start() {
    for manner in DEAD {
        for names in [[A, B], [C, B]] {
            let hosts = [(names[0], manner), (B, Manner::Serves)];
            let mut world = World::new(&hosts, &names, None, POLL_MS);
            // Where nobody is, the other one is tried before a poll fails. Otherwise the market list and the
            // clock are asked for together.
            let is_there = !matches!(manner, Manner::Rejects | Manner::Swallows);
            world.goes_on_at(B, if is_there { 2 } else { 0 });
        }
    }
    let hosts = [(A, HANGS), (B, FAILS), (C, Manner::Serves)];
    let mut world = World::new(&hosts, &[A, B, C], None, POLL_MS);
    world.run(60_000);
    assert!(world.errors() <= 2, "{} errors", world.errors());
    world.all_are_at(C);
}

#[test]
fn an_address_that_dies_later_costs_one_poll_and_is_left_for_where_the_name_leads_now() {
    // Also when the name was looked up a moment ago.
    let cases: [(&[&str], &[&str], u64); 3] =
        [(&[A, B], &[A, B], 10_000), (&[A], &[B], 10_000), (&[A], &[B], 2_000)];
    for (manner, (names, later, well_ms)) in
        DEAD.into_iter().flat_map(|it| cases.map(|case| (it, case)))
    {
        let mut world =
            World::new(&[(A, Manner::Serves), (B, Manner::Serves)], names, None, POLL_MS);
        world.run(well_ms);
        assert_eq!(world.errors(), 0);
        world.set(A, manner);
        world.lead_to(later);
        world.goes_on_at(B, 1);
    }
}

#[test]
fn with_all_dead_the_first_that_lives_is_found_within_a_pause() {
    let manners = [HANGS, FAILS, Manner::Closes, Manner::Rejects];
    let cases = manners.into_iter().flat_map(|it| [(it, A, 100), (it, B, 100), (it, B, 115)]);
    for (manner, living, dead_s) in cases {
        let mut world = World::settled(&[(A, Manner::Serves), (B, Manner::Serves)], &[A, B]);
        (world.names, world.name_ms) = (None, 10_000);
        world.set(A, manner);
        world.set(B, manner);
        world.run(dead_s * 1000);
        assert!(world.errors() > 2);
        world.set(living, Manner::Serves);
        let pause = world.core.cx.config.limits.backoff_max.as_millis() as u64;
        world.run(pause + 2 * TIMEOUT_MS + 2000);
        assert!(world.age_ms() <= 2 * POLL_MS, "{manner:?}, {living}: {} ms", world.age_ms());
        world.all_are_at(living);
    }
}

#[test]
fn a_request_is_given_up_in_time_while_all_are_dead_and_the_name_server_as_well() {
    let mut world = World::new(&[(A, Manner::Serves)], &[A], None, 200);
    world.run(10_000);
    assert_eq!(world.errors(), 0);
    world.set(A, HANGS);
    (world.names, world.name_ms) = (None, 10_000);
    for _ in 0..60_000 / STEP_MS {
        world.run(STEP_MS);
        // What a turn has woken up acts in the next one.
        world.core.handle_timeout(world.now());
        world.act();
        let due = world.core.poll_timeout().expect("something is always due");
        assert!(due > world.now().mono, "what is due is given up or put off");
    }
    assert!(world.errors() > 1);
}

#[test]
fn a_connection_that_its_network_has_forgotten_costs_no_poll() {
    // An exchange may tell the end of an idle connection (RFC 9110, 15.5.9) when the request is on its way.
    let too_late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let too_slow = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    let all = [(&[A][..], ""), (&[A, B], ""), (&[A], too_late), (&[A], too_slow)];
    for (names, last_word) in all {
        let mut world = World::settled(&[(A, Manner::Serves), (B, Manner::Serves)], names);
        world.forget_connections(last_word);
        let longest = world.run(20_000);
        // One that keeps the connection has read the request.
        assert_eq!(world.errors() > 0, last_word == too_slow, "{last_word}");
        assert!(longest <= MOST_MS || last_word == too_slow, "{longest} ms");
    }
}

#[test]
fn what_comes_before_a_request_is_no_answer_to_it() {
    let mut world = World::settled(&[(A, Manner::Serves)], &[A]);
    let keys: Vec<Key> = world.conns.keys().copied().collect();
    assert!(!keys.is_empty());
    for key in keys {
        let early = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";
        world.core.handle(key, Event::Received(early), world.now());
    }
    world.act();
    assert!(world.conns.is_empty(), "they cannot be used any more");
    world.run(10_000);
    assert_eq!(world.errors(), 0);
    world.all_are_at(A);
}

#[test]
fn a_request_is_repeated_once_and_only_on_a_new_connection() {
    let mut world = World::settled(&[(A, Manner::Serves)], &[A]);
    world.set(A, HANGS);
    let connects = world.connects.len();
    while world.errors() == 0 {
        world.run(STEP_MS);
    }
    assert_eq!(world.connects.len(), connects + 1);
    assert!(world.age_ms() <= POLL_MS + 2 * TIMEOUT_MS + 2 * STEP_MS, "{}", world.age_ms());
}

#[test]
fn what_an_address_never_answers_is_repeated_once_though_it_answers_all_else() {
    let mut world = World::settled(&[(A, Manner::Serves)], &[A]);
    world.set(A, Manner::ServesExcept("/api/v3/klines", ""));
    let btc = world.core.cx.market.catalog.find(b"BTC/USDT");
    let Lookup::Known(symbol) = btc else { panic!("{btc:?}") };
    let series = SeriesKey { source: SourceId(0), symbol, interval: Stored::M1 };
    let slot = Stored::M1.slot_of(world.now().unix);
    let until = world.ms + 600_000;
    while world.errors() == 0 {
        world.core.backend.fetch(series, &(slot - 10..slot), &mut world.core.cx);
        world.run(STEP_MS);
        assert!(world.excepted <= 2 && world.ms < until, "{} requests", world.excepted);
    }
    assert!(world.excepted > 0);
}

#[test]
fn a_name_is_looked_up_every_five_minutes_and_what_has_left_it_is_closed() {
    let mut world = World::settled(&[(A, Manner::Serves), (B, Manner::Serves)], &[A]);
    world.lead_to(&[B]);
    let longest = world.run(285_000);
    assert_eq!(world.looked_up, 1);
    world.all_are_at(A);
    assert_eq!(longest, POLL_MS);
    assert_eq!(world.run(15_000), POLL_MS, "no answer is cut short");
    assert_eq!((world.looked_up, world.errors()), (2, 0));
    world.all_are_at(B);
}

#[test]
fn a_connection_without_requests_is_closed_after_a_minute() {
    let manners = [(A, Manner::Serves)];
    let mut world = World::new(&manners, &[A], None, 100_000);
    world.run(20_000);
    while !world.conns.is_empty() && world.age_ms() < 90_000 {
        world.run(STEP_MS);
    }
    assert!((60_000..=60_000 + 2 * STEP_MS).contains(&world.age_ms()), "{} ms", world.age_ms());
    world.run(200_000);
    assert_eq!(world.errors(), 0);
}

#[test]
fn a_proxy_with_two_addresses_is_asked_at_both() {
    let refuses = Manner::Answers("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    for manner in [refuses].into_iter().chain(DEAD) {
        let manners = [(A, manner), (B, Manner::Serves)];
        World::new(&manners, &[A, B], Some("proxy.corp"), POLL_MS).goes_on_at(B, 0);
    }
}

#[test]
fn a_name_server_that_dies_costs_nothing_while_an_address_lives() {
    let mut world = World::settled(&[(A, Manner::Serves), (B, Manner::Serves)], &[A, B]);
    (world.names, world.name_ms) = (None, 10_000);
    assert_eq!(world.run(400_000), POLL_MS);
    world.set(A, Manner::Closes);
    world.goes_on_at(B, 1);
}

#[test]
fn the_health_takes_one_step_when_quotes_come_for_the_first_time() {
    // Also while the time call is on its way.
    let hangs_on_time = Manner::ServesExcept("/api/v3/time", "");
    for (more, manner) in [(0, hangs_on_time), (1000, Manner::Serves)] {
        let mut world = World::new(&[(A, manner)], &[A], None, POLL_MS);
        world.more = more;
        world.run(2000);
        assert_eq!(world.core.cx.stats.sources[0].state, SourceState::Up);
        assert_eq!(world.core.cx.stats.health_changes, 1, "{manner:?}");
    }
}

#[test]
fn the_health_takes_one_step_at_once_when_quotes_fail_and_when_they_come_again() {
    // Quotes have failed before any came, or for longer than those that came stay fresh.
    let fails_quotes = Manner::ServesExcept("/api/v3/ticker", FAILURE);
    for (more, well_ms, manner) in [
        (0, 0, fails_quotes),
        (0, 10_000, fails_quotes),
        (0, 10_000, FAILS),
        (0, 0, FAILS),
        (1000, 10_000, FAILS),
    ] {
        let mut world = World::new(&[(A, Manner::Serves)], &[A], None, POLL_MS);
        world.more = more;
        world.run(well_ms);
        assert_eq!(world.errors(), 0);
        world.set(A, manner);
        let changes = world.core.cx.stats.health_changes;
        while world.errors() == 0 {
            assert!(well_ms == 0 || world.core.cx.stats.health_changes == changes);
            world.run(STEP_MS);
        }
        assert_eq!(world.core.cx.stats.health_changes, changes + 1, "{manner:?}");
        world.run(120_000);
        world.set(A, Manner::Serves);
        let changes = world.core.cx.stats.health_changes;
        let served = world.core.cx.stats.sources[0].ok;
        while world.core.cx.stats.sources[0].state != SourceState::Up {
            world.run(STEP_MS);
        }
        assert!(world.core.cx.stats.sources[0].ok > served);
        assert_eq!(world.core.cx.stats.health_changes, changes + 1, "{manner:?}");
    }
}

#[test]
fn what_is_not_an_answer_is_told_as_what_it_is() {
    let check = |answer: &'static str, expected: &str| {
        let mut world = World::settled(&[(A, Manner::Serves)], &[A]);
        world.set(A, Manner::Answers(answer));
        world.run(10_000);
        let told = world.core.cx.stats.sources[0].last_error.clone().expect("it has failed");
        assert!(told.ends_with(expected), "{told}");
    };
    check(
        "HTTP/1.1 302 Found\r\nLocation: https://b.com/x\r\nContent-Length: 0\r\n\r\n",
        "status 302: redirected to \"https://b.com/x\", which is not followed",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<html>Back soon",
        "the answer is no JSON object or list, it begins with \"<html>Back soo\"",
    );
    check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "the answer is empty");
    check(
        "HTTP/1.1 400 Bad\r\nContent-Length: 37\r\n\r\n{\"code\":-1121,\"msg\":\"Invalid symbol\"}",
        "status 400: refused: Invalid symbol (-1121)",
    );
    check("HTTP/1.1 503 No\r\nContent-Length: 11\r\n\r\n<html>Busy!", "quotes: status 503");
}

#[test]
fn a_step_that_never_ends_is_told_as_such() {
    let hosts = ["https://1.1.1.1", "https://a.com"];
    for (url, proxy, at, manner, expected) in [
        (hosts[0], None, "1.1.1.1:443", Manner::Swallows, "cannot connect"),
        (hosts[0], None, "1.1.1.1:443", HANGS, "TLS handshake"),
        (hosts[0], Some("1.1.1.9"), "1.1.1.9:80", Manner::Swallows, "cannot connect to the proxy"),
        (hosts[0], Some("1.1.1.9"), "1.1.1.9:80", HANGS, "no tunnel through the proxy"),
        (hosts[1], None, A, HANGS, "cannot resolve a.com"),
    ] {
        let expected = format!("market list: {expected}: no answer in time");
        assert_eq!(World::single(url, proxy, at, manner).next_error(), expected);
    }
}

#[test]
fn an_address_written_as_one_is_never_looked_up() {
    let mut world = World::single("http://[::3]:81", None, "[::3]:81", Manner::Rejects);
    for _ in 0..3 {
        let told = world.next_error();
        assert_eq!(told, "market list: cannot connect: connection refused");
        world.run(400_000);
    }
    assert_eq!(world.looked_up, 0);
}

#[test]
fn a_neighbour_of_a_source_that_ends_by_a_reload_is_polled_at_once() {
    let mut world = World::single("http://1.1.1.1", None, A, Manner::Swallows);
    world.act();
    assert_eq!(world.connects.len(), 1);
    let mut config = world.core.cx.config.clone();
    let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
    config.sources.push(other.clone());
    for _ in 0..2 {
        let now = world.now();
        world.core.reconfigure(config.clone(), Vec::new(), || (), now).expect("sound");
        world.core.handle_timeout(now);
        config.sources = vec![other.clone()];
    }
    world.act();
    assert_eq!(world.core.cx.stats.running().count(), 1);
    assert_eq!(world.connects.len(), 2);
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
    let mut world = World::single("http://1.1.1.1", None, A, HANGS);
    world.act();
    let key = *world.conns.keys().next().expect("it is connected");
    let (packed, now) = (packed(), world.now());
    let (first, last) = packed.split_at(packed.len() - 8);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    );
    let core = &mut world.core;
    core.handle(key, Event::Received(&[head.as_bytes(), first].concat()), now);
    let mut slices = 0;
    while core.has_work() {
        assert!(!core.wants_read(key));
        assert_eq!(core.poll_action(), None);
        core.work(now);
        slices += 1;
    }
    assert!(slices >= 200_000 / (64 * 1024), "{slices}");
    assert!(core.wants_read(key));
    assert_eq!((core.poll_action(), core.poll_action()), (Some(Action::Flush(key)), None));
    // The last bytes complete the list. A list without a market is an error.
    assert_eq!(core.cx.stats.sources[0].errors, 0);
    core.handle(key, Event::Received(last), now);
    world.act();
    assert_eq!(world.errors(), 1);
    assert!(!world.core.has_work());
}
