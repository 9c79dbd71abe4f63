//! The core in virtual time, with the plainest driver there is: whole messages, each after a while.
//!
//! [`VirtualTime`] owns the core, both clocks, the connections and what is on its way on them, clients that
//! ask once and take all at once, and the jobs of the disk. It goes from one event to the next: what the core
//! waits for, what arrives at either end. No message overtakes another one on its connection. What exchanges
//! and the disk do, its [`Peers`] say; their fields are read as its own.
//!
//! The simulation in `sim` has a driver of its own, in which messages come in pieces and sockets block.
#![allow(dead_code, reason = "two programs compile this, and each uses a part of it")]

use crate::support::client::{self, read_response};
use crate::support::message::{MessageHead, field, parse_head};
use marketd::core::{Action, Broken, Core, Event, Service};
use marketd::history::{DiskJob, Reply};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

pub const SECOND_US: u64 = 1_000_000;

/// A turn takes so long at least: what wakes the core again and again shows as time that passes.
const TURN_US: u64 = 1000;

/// So much is read from a socket at once.
const READ: usize = 16 * 1024;

/// Within this time a client that waits for its answer must have it.
const PATIENCE_US: u64 = 10 * SECOND_US;

/// What the core asks of an exchange.
#[derive(Clone, Debug)]
pub struct Request {
    pub target: String,
    pub fields: Vec<(String, String)>,
    /// When it left the core.
    pub sent_us: u64,
}

impl Request {
    /// The value of a parameter of its target; of several, the last.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.rfind(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// What an exchange does with a request.
#[derive(Clone, Debug)]
pub enum Response {
    /// It sends this, which takes so much longer than its flight.
    Message {
        bytes: Vec<u8>,
        slow_us: u64,
    },
    Silence,
    /// It closes the connection.
    End,
}

impl Response {
    /// A message with these fields, each with its line's end.
    pub fn new(status: u16, fields: &str, body: &str) -> Response {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} .\r\n{fields}Content-Length: {length}\r\n\r\n");
        Response::Message { bytes: (head + body).into_bytes(), slow_us: 0 }
    }

    /// The same, but so much later.
    pub fn after(self, slow_us: u64) -> Response {
        match self {
            Response::Message { bytes, .. } => Response::Message { bytes, slow_us },
            other => other,
        }
    }
}

/// What the exchanges do, and the disk. Times are those of the run.
pub trait Peers {
    /// Whether a connection can be opened.
    fn takes_connection(&mut self, address: SocketAddr, us: u64) -> bool;

    /// How long a message is on its way.
    fn flight_us(&mut self) -> u64 {
        0
    }

    /// A request has arrived.
    fn answer(&mut self, request: &Request, us: u64) -> Response;

    /// The core reads an answer of this address, with this head.
    fn was_read(&mut self, _address: SocketAddr, _head: &MessageHead, _us: u64) {}

    /// How long a job of the disk takes.
    fn job_us(&mut self) -> u64 {
        0
    }

    /// Does a job of the disk.
    fn work(&mut self, job: DiskJob, _us: u64) -> Vec<Reply> {
        panic!("no history is kept: {job:?}")
    }
}

#[derive(Default)]
struct Link {
    /// The exchange at its other end; a client has none.
    address: Option<SocketAddr>,
    is_open: bool,
    /// What the core has sent: the begin of a request, or what a client has read.
    outbox: Vec<u8>,
    /// When the last message on it arrives.
    busy_until: u64,
}

enum Mail {
    Connected,
    Refused,
    Request(Request),
    Answer(Vec<u8>),
    End,
}

pub struct VirtualTime<P> {
    pub core: Core,
    pub peers: P,
    /// Microseconds since the begin of the run.
    pub us: u64,
    /// The true time at the begin of the run.
    begin_ms: i64,
    /// How far this machine's clock is ahead of the true time.
    pub wall_ahead: i64,
    /// When the monotonic clock was zero.
    mono_zero: u64,
    /// By the time of arrival, and in the order of sending.
    mail: BTreeMap<(u64, u64), (Key, Mail)>,
    posted: u64,
    links: HashMap<Key, Link>,
    answers: HashMap<Key, Vec<u8>>,
    /// By the `Retry-After` that the core has read, nothing may be asked before.
    quiet: HashMap<SocketAddr, u64>,
    jobs: VecDeque<(u64, DiskJob)>,
    /// The disk does nothing before.
    pub disk_from: u64,
}

impl<P> Deref for VirtualTime<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.peers
    }
}

impl<P> DerefMut for VirtualTime<P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.peers
    }
}

impl<P: Peers> VirtualTime<P> {
    /// A core that begins at this time, by a clock that is so far ahead.
    pub fn begin(
        peers: P,
        (begin_ms, wall_ahead): (i64, i64),
        core: impl FnOnce(Now) -> Core,
    ) -> VirtualTime<P> {
        VirtualTime {
            core: core(Now { mono: Mono(0), unix: UnixMs(begin_ms + wall_ahead) }),
            peers,
            us: 0,
            begin_ms,
            wall_ahead,
            mono_zero: 0,
            mail: BTreeMap::new(),
            posted: 0,
            links: HashMap::new(),
            answers: HashMap::new(),
            quiet: HashMap::new(),
            jobs: VecDeque::new(),
            disk_from: 0,
        }
    }

    /// The true time.
    pub fn time(&self) -> i64 {
        self.begin_ms + (self.us / 1000) as i64
    }

    /// This machine's clocks.
    pub fn now(&self) -> Now {
        Now { mono: Mono(self.us - self.mono_zero), unix: UnixMs(self.time() + self.wall_ahead) }
    }

    /// The machine sleeps: its monotonic clock stands still, all else goes on.
    pub fn suspend(&mut self, ms: i64) {
        self.us += ms.unsigned_abs() * 1000;
        self.mono_zero += ms.unsigned_abs() * 1000;
    }

    /// Kills the daemon. What it has asked of the disk is lost; the first job may be done all the same.
    pub fn kill(&mut self, is_first_done: bool) {
        if let Some((_, job)) = self.jobs.pop_front().filter(|_| is_first_done) {
            self.peers.work(job, self.us);
        }
        self.jobs.clear();
        self.links.clear();
        self.quiet.clear();
        self.mail.clear();
        self.answers.clear();
    }

    /// Begins anew after so long.
    pub fn begin_anew(&mut self, away_us: u64, core: impl FnOnce(Now) -> Core) {
        self.us += away_us;
        self.mono_zero = self.us;
        self.core = core(self.now());
        self.settle();
    }

    /// Lets everything happen that happens until then.
    pub fn run_to(&mut self, until_us: u64) {
        self.settle();
        while self.step(until_us) {}
    }

    /// Lets so many seconds pass.
    pub fn run(&mut self, seconds: u64) {
        self.run_to(self.us + seconds * SECOND_US);
    }

    /// Goes to the next moment at which something happens. False if that is later than `until_us`, to which
    /// it goes instead.
    pub fn step(&mut self, until_us: u64) -> bool {
        let timer = self.core.poll_timeout().map(|at| (at.0 + self.mono_zero).max(self.us));
        let mail = self.mail.keys().next().map(|(at, _)| *at);
        let job = self.jobs.front().map(|(at, _)| *at);
        let work = self.core.has_work().then_some(self.us);
        let next = [timer, mail, job, work].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until_us) else {
            self.us = self.us.max(until_us);
            return false;
        };
        self.us = next.max(self.us + TURN_US);
        while self.jobs.front().is_some_and(|(at, _)| *at <= self.us) {
            let (_, job) = self.jobs.pop_front().expect("it is there");
            for said in self.peers.work(job, self.us) {
                self.core.stored(said, self.now());
                self.settle();
            }
        }
        self.settle();
        self.core.handle_timeout(self.now());
        self.settle();
        true
    }

    /// Asks as a client. The answer may come later: see [`VirtualTime::answer_to`].
    pub fn ask_for(&mut self, target: &str) -> Key {
        let now = self.now();
        let key = self.core.accept(None, Service::Both, now).expect("there is room");
        self.links.insert(key, Link { is_open: true, ..Link::default() });
        let request = format!("GET {target} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
        self.core.handle(key, Event::Received(request.as_bytes()), now);
        self.pump(key);
        self.settle();
        key
    }

    /// The answer to a client, once it has come.
    pub fn answer_to(&mut self, key: Key) -> Option<client::Response> {
        self.answers.remove(&key).map(|bytes| {
            let read = read_response(&bytes, false, true).expect("an answer is well formed");
            read.expect("an answer is whole").0
        })
    }

    /// Asks as a client, and lets time pass until that is answered.
    pub fn fetch(&mut self, target: &str) -> client::Response {
        let key = self.ask_for(target);
        let limit = self.us + PATIENCE_US;
        while !self.answers.contains_key(&key) {
            assert!(self.step(limit), "{target} is not answered");
        }
        self.answer_to(key).expect("it has just come")
    }

    /// The exchanges close all connections.
    pub fn cut_all(&mut self) {
        let is_upstream = |(_, link): &(&Key, &Link)| link.address.is_some();
        let open: Vec<Key> = self.links.iter().filter(is_upstream).map(|(key, _)| *key).collect();
        open.into_iter().for_each(|key| self.post(key, 0, Mail::End));
    }

    /// Does what the core asks for, and delivers what has arrived by now.
    pub fn settle(&mut self) {
        loop {
            let now = self.now();
            match self.core.poll_action() {
                Some(Action::Connect(key, address)) => {
                    self.links.insert(key, Link { address: Some(address), ..Link::default() });
                    let mail = match self.peers.takes_connection(address, self.us) {
                        true => Mail::Connected,
                        false => Mail::Refused,
                    };
                    self.post(key, 0, mail);
                }
                Some(Action::Flush(key)) => self.pump(key),
                Some(Action::Finish(key)) => {
                    if self.links.get(&key).is_some_and(|link| link.address.is_none()) {
                        self.core.handle(key, Event::Eof, now);
                    }
                }
                Some(Action::Close(key)) => {
                    let link = self.links.remove(&key).filter(|link| link.address.is_none());
                    self.answers.extend(link.map(|link| (key, link.outbox)));
                    self.core.closed(key);
                }
                Some(Action::Store(job)) => {
                    let last = self.jobs.back().map_or(self.us, |(at, _)| *at);
                    let at = last.max(self.disk_from) + self.peers.job_us();
                    self.jobs.push_back((at, job));
                }
                Some(action @ (Action::Secure(..) | Action::Resolve(_))) => {
                    panic!("exchanges are addresses without TLS: {action:?}")
                }
                None => match self.mail.first_entry().filter(|it| it.key().0 <= self.us) {
                    Some(entry) => {
                        let (key, mail) = entry.remove();
                        self.deliver(key, mail);
                    }
                    None if self.core.has_work() => self.core.work(now),
                    None => return,
                },
            }
        }
    }

    /// Takes what the core has to send on a connection.
    fn pump(&mut self, key: Key) {
        while let Some(link) = self.links.get_mut(&key).filter(|link| link.is_open) {
            let bytes = self.core.outgoing(key).to_vec();
            if bytes.is_empty() {
                return;
            }
            link.outbox.extend_from_slice(&bytes);
            let event = Event::Sent(bytes.len());
            self.core.handle(key, event, self.now());
            self.take_request(key);
        }
    }

    fn take_request(&mut self, key: Key) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some(address) = link.address else { return };
        let parsed = parse_head(&link.outbox).expect("a request is well formed");
        let Some((head, used)) = parsed else { return };
        assert_eq!(used, link.outbox.len(), "one request at a time");
        link.outbox.clear();
        let mut words = head.first_line.split(' ').map(str::to_string);
        let (target, fields) = (words.nth(1).unwrap_or_default(), head.fields);
        let request = Request { target, fields, sent_us: self.us };
        let (us, quiet) = (self.us, self.quiet.get(&address).copied().unwrap_or(0));
        let target = &request.target;
        assert!(us >= quiet, "{target} is asked at {us} us, and nothing may be before {quiet}");
        self.post(key, 0, Mail::Request(request));
    }

    fn post(&mut self, key: Key, slow_us: u64, mail: Mail) {
        let at = self.us + self.peers.flight_us() + slow_us;
        let Some(link) = self.links.get_mut(&key) else { return };
        link.busy_until = link.busy_until.max(at);
        self.posted += 1;
        self.mail.insert((link.busy_until, self.posted), (key, mail));
    }

    fn deliver(&mut self, key: Key, mail: Mail) {
        let now = self.now();
        let address = self.links.get(&key).and_then(|link| link.address);
        match mail {
            Mail::Connected => {
                if let Some(link) = self.links.get_mut(&key) {
                    link.is_open = true;
                    self.core.handle(key, Event::Connected, now);
                    self.pump(key);
                }
            }
            Mail::Refused => {
                let broken = Broken::Io(ErrorKind::ConnectionRefused);
                self.core.handle(key, Event::Failed(&broken), now);
            }
            // It reaches the exchange also if nobody waits for the answer any more.
            Mail::Request(request) => match self.peers.answer(&request, self.us) {
                Response::Message { bytes, slow_us } => {
                    self.post(key, slow_us, Mail::Answer(bytes));
                }
                Response::End => self.post(key, 0, Mail::End),
                Response::Silence => {}
            },
            Mail::Answer(bytes) => {
                if let Some(address) = address {
                    let (head, _) = parse_head(&bytes).ok().flatten().expect("a head");
                    if let Some(seconds) = field(&head.fields, "Retry-After") {
                        let wait: u64 = seconds.parse().expect("whole seconds");
                        let quiet = self.quiet.entry(address).or_default();
                        *quiet = (*quiet).max(self.us + wait * SECOND_US);
                    }
                    self.peers.was_read(address, &head, self.us);
                    for piece in bytes.chunks(READ) {
                        self.core.handle(key, Event::Received(piece), now);
                    }
                }
            }
            Mail::End => self.core.handle(key, Event::Eof, now),
        }
    }
}
