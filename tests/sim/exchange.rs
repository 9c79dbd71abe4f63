//! The connections of a made-up exchange: it reads requests, and answers them as the weather is. What
//! [`super::truth`] has to tell is bent, and what of it is to be believed is said.
//!
//! Owns each connection and the one request that is under way on it, with what its answer will
//! mean. What it does to a connection, it says as steps, each after a while; the world carries
//! them out. It knows the daemon's bytes and nothing else of it.

use super::ledger::{Moment, Page, Said, Word};
use super::trace::ensure;
use super::truth::{Figures, Row, Truth, figures_of};
use super::weather::{Address, Fault, Places, SECOND, Weather};
use crate::support::Rng;
use crate::support::message::parse_head;
use crate::support::naive::{STORED, length_ms};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

/// More often a page of candles is not asked, whatever goes wrong: by clients, and for itself.
pub const MOST_A_MINUTE: usize = 40;

/// The weight that the exchange takes in a minute.
const BUDGET: u64 = 6000;

pub const MINUTE: u64 = 60 * SECOND;

/// What happens to the daemon's end of a connection.
#[derive(Clone, Debug)]
pub enum Step {
    Bytes(Vec<u8>),
    Eof,
    Reset,
}

/// What an answer is to be taken for, once the daemon has read it.
pub type Meaning = Result<Said, Failure>;

/// A request that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Whether nothing is to be asked of the exchange for a while.
    pub backs_off: bool,
    /// For how long at least, in microseconds, where the exchange says so.
    pub retry_after: Option<u64>,
}

impl InFlight {
    /// One that nobody answers.
    fn unanswered(task: Task, sent: Moment) -> InFlight {
        let (meaning, end, head_end) = (bad(true), None, u64::MAX);
        InFlight { task, sent, meaning, end, head_end, begun: false }
    }

    /// What it comes to when the daemon has read so many bytes and will read no more.
    pub fn cut(&self, read: u64) -> Failure {
        match self.meaning {
            Err(failure) if read >= self.head_end => failure,
            _ => Failure::of_source(),
        }
    }

    /// What it comes to when the daemon has waited long enough: of one market's candles that says
    /// nothing about the others.
    pub fn given_up(&self, read: u64) -> Failure {
        let failure = self.cut(read);
        match self.task {
            Task::Candles { .. } if failure == Failure::of_source() => {
                Failure { backs_off: false, ..failure }
            }
            _ => failure,
        }
    }
}

impl Failure {
    /// The exchange as a whole does not answer.
    pub fn of_source() -> Failure {
        Failure { backs_off: true, retry_after: None }
    }
}

/// A request under way.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub task: Task,
    /// When its first byte left the daemon.
    pub sent: Moment,
    pub meaning: Meaning,
    /// Where its answer ends in the connection's stream; `None`: with the stream.
    pub end: Option<u64>,
    /// Where the answer's head ends.
    pub head_end: u64,
    /// Whether the daemon has read some of the answer.
    pub begun: bool,
}

#[derive(Debug, Default)]
pub struct Conn {
    pub open: bool,
    /// Where it leads.
    place: usize,
    inbox: Vec<u8>,
    first_byte: Option<Moment>,
    pub in_flight: Option<InFlight>,
    /// Answers that the daemon has read to their end.
    pub served: usize,
    /// Bytes that were or will be sent.
    written: u64,
    /// Bytes that the daemon has read.
    pub read: u64,
    /// When the last of what was sent arrives: nothing overtakes it.
    busy_until: u64,
}

/// What becomes of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    After(u64),
    RefusedAfter(u64),
    Never,
    /// The system knows at once that there is no way.
    NoWay,
}

pub struct Exchange {
    pub truth: Truth,
    pub forecast: Vec<(u64, Weather)>,
    pub places: Places,
    pub conns: Vec<Conn>,
    pub rng: Rng,
    /// Longest wait before an answer begins when all is well.
    pub latency: u64,
    /// Whether answers come in pieces over a while also in fine weather.
    pub dribbles: bool,
    /// Answers are sent at multiples of this, whole: those to what was asked together, together.
    pub beat: Option<u64>,
    /// What its clock says when the answer at hand is made.
    pub date_ms: i64,
    /// What was asked of it, under each of its names.
    pub scale: Rc<RefCell<Scale>>,
}

/// The exchange's count of what it is asked from one address in a minute.
#[derive(Debug, Default)]
pub struct Scale {
    /// When, for how many units, and what.
    asked: VecDeque<(u64, u64, String)>,
    /// What was asked before, as far as anybody can see, was asked by somebody else, or under another name.
    pub since: u64,
}

impl Scale {
    /// Something is asked. How often it was, within a minute.
    pub fn note(&mut self, target: &str, units: u64, now: u64) -> usize {
        self.asked.push_back((now, units, target.to_string()));
        while self.asked.front().is_some_and(|(at, ..)| at + MINUTE <= now) {
            self.asked.pop_front();
        }
        match target.contains("/klines?") {
            true => self.asked.iter().filter(|(.., it)| it == target).count(),
            false => 0,
        }
    }

    /// The units since then.
    pub fn sum(&self, since: u64) -> u64 {
        let asked = self.asked.iter().filter(|(at, ..)| *at >= since);
        asked.map(|(_, units, _)| units).sum()
    }
}

impl Exchange {
    pub fn weather(&self, us: u64) -> Weather {
        let spell = self.forecast.iter().find(|(until, _)| us < *until);
        spell.map_or(Weather::Fine, |(_, weather)| *weather)
    }

    /// When the spell begins that ends then.
    pub fn begin_of(&self, end: u64) -> u64 {
        let before = self.forecast.iter().take_while(|(until, _)| *until < end);
        before.last().map_or(0, |(until, _)| *until)
    }

    /// Somebody connects.
    pub fn connect(&mut self, place: usize, us: u64) -> (usize, Reached) {
        self.conns.push(Conn { open: true, place, ..Conn::default() });
        let wait = 1000 + self.rng.below(self.latency);
        let reached = match (self.places.at(place, us), self.weather(us)) {
            (Address::NoWay, _) => Reached::NoWay,
            (Address::Refusing, _) => Reached::RefusedAfter(wait),
            (Address::Silent, _) => Reached::Never,
            (_, Weather::Refusing | Weather::Nameless) => match self.rng.chance(1, 6) {
                true => Reached::NoWay,
                false => Reached::RefusedAfter(wait),
            },
            (_, Weather::Unreachable) => Reached::Never,
            _ => Reached::After(wait),
        };
        (self.conns.len() - 1, reached)
    }

    /// Bytes of a request. What follows from them, each step after so long.
    pub fn receive(
        &mut self,
        conn: usize,
        bytes: &[u8],
        now: Moment,
        has_list: bool,
    ) -> Result<Vec<(u64, Step)>, String> {
        let weather = self.weather(now.us);
        let at = &mut self.conns[conn];
        if !at.open {
            // Nobody is there any more.
            return Ok(vec![(500, Step::Reset)]);
        }
        at.first_byte.get_or_insert(now);
        at.inbox.extend_from_slice(bytes);
        let Some((head, used)) = parse_head(&at.inbox)? else {
            return Ok(Vec::new());
        };
        if used != at.inbox.len() || at.in_flight.is_some() {
            return Err("the daemon asks before it is answered".to_string());
        }
        at.inbox.clear();
        let sent = at.first_byte.take().unwrap_or(now);
        let line: Vec<&str> = head.first_line.split(' ').collect();
        let ["GET", target, "HTTP/1.1"] = line[..] else {
            return Err(format!("the daemon asks {:?}", head.first_line));
        };
        if !head.fields.iter().any(|(name, _)| name == "Host") {
            return Err("a request without Host".to_string());
        }
        let task = self.truth.read(target);
        let mut scale = self.scale.borrow_mut();
        let times = scale.note(target, task.units(), now.us);
        let sum = scale.sum(scale.since);
        drop(scale);
        ensure(sum <= BUDGET, || format!("{sum} units of {BUDGET} are spent in a minute"))?;
        ensure(times <= MOST_A_MINUTE, || format!("{target} is asked {times} times in a minute"))?;
        let place = self.places.at(self.conns[conn].place, now.us);
        if weather == Weather::Unreachable || place == Address::Silent {
            self.conns[conn].in_flight = Some(InFlight::unanswered(task, sent));
            return Ok(Vec::new());
        }
        let fault = match place {
            Address::HalfDead(fault) => Some(fault),
            _ => weather.fault(&mut self.rng),
        };
        let fault = fault.filter(|fault| fits(*fault, &task));
        let wait = match self.beat {
            // A list that is read again takes as long as the quotes that became due by the first.
            Some(beat) if task == Task::Markets && has_list => 2 * beat - now.us % beat,
            Some(beat) => beat - now.us % beat,
            None => 500 + self.rng.below(self.latency),
        };
        let wait = match place {
            Address::Slow(more) => wait + more,
            _ => wait,
        };
        let wait = wait.max(self.conns[conn].busy_until.saturating_sub(now.us));
        let speech = self.truth.speak(&task, fault, now.us + wait, &mut self.rng);
        // Who refuses does so plainly.
        let fault = fault.filter(|_| speech.status == 200);
        self.date_ms = self.truth.clock(now.us + wait);
        let request = InFlight::unanswered(task, sent);
        let steps = self.answer(conn, request, (speech, fault), wait, has_list);
        if let Some((last, _)) = steps.last() {
            self.conns[conn].busy_until = now.us + last;
        }
        Ok(steps)
    }

    fn answer(
        &mut self,
        conn: usize,
        request: InFlight,
        (speech, fault): (Speech, Option<Fault>),
        wait: u64,
        has_list: bool,
    ) -> Vec<(u64, Step)> {
        let task = &request.task;
        // Nothing is served without quotes, and no quotes without the list.
        let vital = task.is_tickers() || *task == Task::Markets && !has_list;
        let of_one_market = matches!(task, Task::Candles { .. });
        let is_cut = fault.is_some_and(|it| CUTS.contains(&it));
        let meaning = match (fault, &speech.said) {
            (None | Some(Fault::Missing | Fault::BadItems), Some(said)) => Ok(said.clone()),
            // Who is silent about candles is believed.
            (Some(Fault::EmptyList), Some(said @ Said::Candles(_))) => Ok(said.clone()),
            (Some(Fault::Limited(seconds)), _) => {
                Err(Failure { backs_off: true, retry_after: Some(seconds * SECOND) })
            }
            (Some(Fault::Status(403 | 418)), _) => bad(true),
            (Some(Fault::Status(500..)), _) => bad(vital || !of_one_market),
            _ => bad(vital || is_cut || fault == Some(Fault::LongLength)),
        };
        let message = self.message(&speech, fault);
        let at = &mut self.conns[conn];
        let length = message.length.unwrap_or(message.bytes.len() as u64);
        let end = (!message.is_open).then_some(at.written + length);
        let head_end = at.written + message.head;
        at.written += message.bytes.len() as u64;
        at.in_flight = Some(InFlight { meaning, end, head_end, ..request });
        let mut steps = self.pieces(message.bytes, wait, fault.is_some());
        let last = steps.last().map_or(wait, |(after, _)| *after);
        if let Some(after) = message.after {
            steps.push((last + 200 + self.rng.below(20_000), after));
        }
        steps
    }

    /// The bytes of an answer, and what follows them.
    fn message(&mut self, speech: &Speech, fault: Option<Fault>) -> Message {
        let rng = &mut self.rng;
        let mut body = speech.body.clone();
        let mut status = speech.status;
        let date = UNIX_EPOCH + Duration::from_millis(self.date_ms.unsigned_abs());
        let date = httpdate::fmt_http_date(date);
        let mut fields = format!("Content-Type: application/json\r\nDate: {date}\r\n");
        let mut framing = rng.below(10);
        let mut skew = 0i64;
        use Fault::*;
        match (fault, &speech.said) {
            (Some(EmptyList), Some(Said::Candles(_))) => {}
            (Some(EmptyList), Some(Said::Markets(_))) => body = "{\"symbols\":[]}".to_string(),
            (Some(EmptyList), _) => body = "[]".to_string(),
            (Some(ShortLength), _) => skew = -(1 + rng.below(body.len() as u64 - 1) as i64),
            (Some(LongLength), _) => skew = 1 + rng.below(500) as i64,
            (Some(BrokenJson), _) => {
                body.truncate(1 + rng.below(body.len() as u64 - 1) as usize);
                if rng.chance(1, 2) {
                    body.push_str("\"]]}");
                }
            }
            (Some(Html), _) => {
                body = "<html><body>We will be back soon.</body></html>".to_string();
            }
            (Some(WrongTop), _) => {
                body = rng.pick(&["{\"a\":[1,2]}", "\"ok\"", "null", "42"]).to_string();
            }
            (Some(EmptyBody), _) => body.clear(),
            (Some(Status(other)), _) => {
                status = other;
                body = "{\"code\":-1000,\"msg\":\"Trouble.\"}".to_string();
            }
            (Some(Limited(seconds)), _) => {
                status = 429;
                fields.push_str(&format!("Retry-After: {seconds}\r\n"));
                body = "{\"code\":-1003,\"msg\":\"Too many requests.\"}".to_string();
            }
            _ => {}
        }
        if skew != 0 || fault.is_some_and(|it| CUTS.contains(&it)) {
            framing = 0;
        }
        let mut message = Message::new(status, &fields, body.as_bytes(), (framing, skew), rng);
        message.spoil(fault, rng);
        message
    }

    /// Divides what is sent into pieces, each with its delay.
    fn pieces(&mut self, bytes: Vec<u8>, wait: u64, faulty: bool) -> Vec<(u64, Step)> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let rng = &mut self.rng;
        let pieces = match rng.below(4) {
            0 if self.beat.is_none() => 1 + rng.below(12),
            _ => 1,
        };
        let slow = pieces > 1 && (self.dribbles || faulty) && rng.chance(1, 2);
        let mut cuts: Vec<usize> =
            (1..pieces).map(|_| rng.below(bytes.len() as u64) as usize).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let (mut at, mut from, mut steps) = (wait, 0, Vec::new());
        for cut in cuts {
            if cut > from {
                steps.push((at, Step::Bytes(bytes[from..cut].to_vec())));
                from = cut;
            }
            let most = if slow { 250_000 } else { 2000 };
            at += rng.below(most);
        }
        steps
    }
}

/// Faults that break an answer off.
const CUTS: [Fault; 6] =
    [Fault::Stall, Fault::StallMid, Fault::Reset, Fault::ResetMid, Fault::Eof, Fault::EofMid];

/// An answer on its way to the wire.
struct Message {
    bytes: Vec<u8>,
    /// Length of its head.
    head: u64,
    /// Whether it has no end of its own: the stream's end is it, or it is broken off.
    is_open: bool,
    /// Where it ends for the reader, when that is not the last byte.
    length: Option<u64>,
    /// What follows it.
    after: Option<Step>,
}

impl Message {
    fn new(
        status: u16,
        fields: &str,
        body: &[u8],
        (framing, skew): (u64, i64),
        rng: &mut Rng,
    ) -> Message {
        let mut head = String::new();
        if rng.chance(1, 10) {
            head.push_str("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n");
        }
        let (is_open, is_chunked) = (framing == 9, matches!(framing, 7 | 8));
        let version = if is_open && rng.chance(1, 2) { "1.0" } else { "1.1" };
        let closes = !is_open && rng.chance(1, 15);
        let close = if closes { "Connection: close\r\n" } else { "" };
        let is_over = match closes {
            true => rng.chance(4, 5),
            // It closes an idle connection whenever it likes.
            false => is_open || rng.chance(1, 15),
        };
        let length = body.len() as i64 + skew;
        let framed = match (is_open, is_chunked) {
            (true, _) => String::new(),
            (_, true) => "Transfer-Encoding: chunked\r\n".to_string(),
            _ => format!("Content-Length: {length}\r\n"),
        };
        head += &format!("HTTP/{version} {status} Whatever\r\n{fields}{close}{framed}\r\n");
        let begin = head.len() as u64;
        let mut bytes = head.into_bytes();
        let mut rest = body;
        while is_chunked && !rest.is_empty() {
            let size = rest.len().min(1 + rng.below(5000) as usize);
            let extension = if rng.chance(1, 6) { ";a=b" } else { "" };
            bytes.extend(format!("{size:X}{extension}\r\n").bytes());
            bytes.extend(&rest[..size]);
            bytes.extend(b"\r\n");
            rest = &rest[size..];
        }
        bytes.extend(rest);
        if is_chunked {
            let trailer = if rng.chance(1, 4) { "X-Sum: 1\r\n" } else { "" };
            bytes.extend(format!("0\r\n{trailer}\r\n").bytes());
        }
        let length = (skew != 0).then_some(begin + length as u64);
        Message { bytes, head: begin, is_open, length, after: is_over.then_some(Step::Eof) }
    }

    /// What goes wrong on the wire.
    fn spoil(&mut self, fault: Option<Fault>, rng: &mut Rng) {
        let middle = 1 + rng.below(self.bytes.len() as u64 - 1) as usize;
        let (left, after) = match fault {
            Some(Fault::Stall) => (0, None),
            Some(Fault::StallMid) => (middle, None),
            Some(Fault::Reset) => (0, Some(Step::Reset)),
            Some(Fault::ResetMid) => (middle, Some(Step::Reset)),
            Some(Fault::Eof) => (0, Some(Step::Eof)),
            Some(Fault::EofMid) => (middle, Some(Step::Eof)),
            Some(Fault::LongLength) => {
                self.after = rng.chance(1, 2).then_some(Step::Eof);
                return;
            }
            _ => return,
        };
        self.bytes.truncate(left);
        (self.after, self.is_open) = (after, true);
    }
}

fn bad(backs_off: bool) -> Meaning {
    Err(Failure { backs_off, retry_after: None })
}

/// Whether a fault makes sense for such an answer.
fn fits(fault: Fault, task: &Task) -> bool {
    match fault {
        Fault::BadItems => matches!(task, Task::Candles { .. } | Task::Tickers(_)),
        Fault::Missing => task.is_tickers(),
        Fault::EmptyList => !matches!(task, Task::Time | Task::Unknown),
        _ => true,
    }
}

/// What is asked of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// With the weight of the request.
    Tickers(u64),
    Markets,
    Time,
    Candles {
        market: usize,
        interval: &'static str,
        from: i64,
        to: i64,
        limit: usize,
    },
    /// An address that is not there, or a market that nobody knows.
    Unknown,
}

impl Task {
    /// The weight of the request.
    pub fn units(&self) -> u64 {
        match self {
            Task::Tickers(units) => *units,
            Task::Markets => 20,
            Task::Candles { .. } => 2,
            Task::Time | Task::Unknown => 1,
        }
    }

    pub fn is_tickers(&self) -> bool {
        matches!(self, Task::Tickers(_))
    }
}

/// A body with what it says.
#[derive(Clone, Debug)]
pub struct Speech {
    pub body: String,
    /// `None`: it is to be taken for a failure.
    pub said: Option<Said>,
    pub status: u16,
}

impl Truth {
    /// What a request's target asks for.
    pub fn read(&self, target: &str) -> Task {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let number = |name: &str| parameter(name).and_then(|value| value.parse::<i64>().ok());
        match path.find("/api").map_or(path, |at| &path[at..]) {
            "/api/v3/ticker/24hr" if parameter("symbol").is_some() => Task::Tickers(2),
            // Whichever markets are asked for, all are told.
            "/api/v3/ticker/24hr" => match parameter("symbols").map(|ids| ids.split(',').count()) {
                Some(0..=20) => Task::Tickers(2),
                Some(21..=100) => Task::Tickers(40),
                _ => Task::Tickers(80),
            },
            "/api/v3/exchangeInfo" => Task::Markets,
            "/api/v3/time" => Task::Time,
            "/api/v3/klines" => {
                let market = parameter("symbol").and_then(|id| self.brain.find(id));
                let interval = STORED.iter().find(|i| parameter("interval") == Some(i));
                let bounds = (number("startTime"), number("endTime"), number("limit"));
                match (market, interval, bounds) {
                    (Some(market), Some(interval), (Some(from), Some(to), Some(limit))) => {
                        Task::Candles { market, interval, from, to, limit: limit as usize }
                    }
                    _ => Task::Unknown,
                }
            }
            _ => Task::Unknown,
        }
    }

    /// Answers at this time of the run. Of faults, those that are about what is said.
    pub fn speak(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let speech = |body: String, said: Said| Speech { body, said: Some(said), status: 200 };
        match task {
            Task::Time => {
                let clock = self.clock(us);
                speech(format!("{{\"serverTime\":{clock}}}"), Said::Time(clock))
            }
            Task::Markets => {
                let clock = self.clock(us);
                let list = self.list(clock);
                let listing = |(market, active): &(usize, bool)| {
                    let least = self.change(*market, clock).map_or(1, |change| change.least);
                    self.brain.listing(*market, *active, least)
                };
                let items: Vec<String> = list.iter().map(listing).collect();
                let body = format!("{{\"timezone\":\"UTC\",\"symbols\":[{}]}}", items.join(","));
                speech(body, Said::Markets(list))
            }
            Task::Tickers(_) => self.tickers(fault, us, rng),
            Task::Candles { .. } => self.candles(task, fault, us, rng),
            Task::Unknown => unknown_market(),
        }
    }

    fn tickers(&mut self, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let told_at = match self.freeze {
            Some((from, to)) if (from..to).contains(&us) => from,
            _ => us,
        };
        let clock = self.clock(us);
        let mut items = Vec::new();
        let mut texts = Vec::new();
        for market in 0..self.brain.markets.len() {
            let change = self.change(market, clock);
            if change.is_some_and(|change| change.active.is_none() && !change.lingers) {
                continue;
            }
            if fault == Some(Fault::Missing) && rng.chance(1, 3) {
                continue;
            }
            let told_ms = self.clock(told_at);
            let ticker = self.brain.ticker(market, told_ms);
            let bent = fault == Some(Fault::BadItems) && rng.chance(1, 3);
            let (text, figures) = match bent {
                true => bend_ticker(&ticker.text, rng),
                false => (ticker.text.clone(), Some(ticker.figures.clone())),
            };
            texts.push(text);
            items.push((market, figures.map(Rc::new)));
        }
        let body = format!("[{}]", texts.join(","));
        Speech {
            // A list without a single item is no list.
            said: (!items.is_empty()).then_some(Said::Tickers(items, clock)),
            body,
            status: 200,
        }
    }

    fn candles(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let Task::Candles { market, interval, from, to, limit } = *task else {
            unreachable!("candles are asked for");
        };
        let length = length_ms(interval).expect("stored");
        let mut clock = self.clock(us);
        if self.habits.refuses && self.state(market, clock).is_none() {
            return unknown_market();
        }
        if self.habits.late > 0 && rng.chance(1, 3) {
            clock -= rng.below(self.habits.late as u64) as i64;
        }
        let first = (from.max(0) + length - 1) / length;
        let last = to.div_euclid(length);
        // What it tells of, as things stand: what lies behind the cut it does not.
        let mut told = (first, last.min(clock.div_euclid(length)));
        let mut rows: Vec<Rc<Row>> =
            self.rows((market, interval), (from.max(0), to), clock).collect();
        // Silence is about all that was asked.
        let silent = fault == Some(Fault::EmptyList) || rng.chance(self.habits.silent, 1000);
        if silent && self.may_be_silent(market, interval, &rows, us) {
            rows.clear();
            told.1 = told.0 - 1;
        }
        let most = self.habits.cut.unwrap_or(limit).min(limit);
        if rows.len() > most {
            rows.truncate(most);
            told.1 = rows[most - 1].open_ms / length;
        }
        let mut words = Vec::new();
        let mut texts = Vec::new();
        let mut undated = false;
        for row in rows {
            let slot = row.open_ms / length;
            let hit = rng.chance(1, 4);
            match fault {
                Some(Fault::BadItems) if hit && rng.chance(1, 12) => {
                    // Nobody can tell which slot this was.
                    let time = *rng.pick(&["null", "\"abc\"", "true", "\"\""]);
                    let rest = row.text.split_once(',').map(|(_, rest)| rest);
                    texts.push(format!("[{time},{}", rest.expect("a row of twelve")));
                    undated = true;
                }
                Some(Fault::BadItems) if hit => {
                    texts.push(bend_row(&row, rng));
                    words.push(Word::Unsound(slot));
                    continue;
                }
                _ => {
                    texts.push(row.text.clone());
                    words.push(Word::Row(row));
                }
            }
        }
        if rng.chance(1, 8) {
            rng.shuffle(&mut texts);
        }
        Speech {
            body: format!("[{}]", texts.join(",")),
            said: Some(Said::Candles(Page {
                market,
                interval,
                slots: told,
                words,
                is_whole: !undated,
            })),
            status: 200,
        }
    }
}

fn unknown_market() -> Speech {
    Speech { body: UNKNOWN_MARKET.to_string(), said: None, status: 400 }
}

/// What an exchange says of a market that it does not know.
pub const UNKNOWN_MARKET: &str = "{\"code\":-1121,\"msg\":\"Invalid symbol.\"}";

/// The value of a member of a flat object, replaced.
fn replace(text: &str, name: &str, value: &str) -> String {
    let key = format!("\"{name}\":\"");
    let begin = text.find(&key).expect("the member is there") + key.len() - 1;
    let end = begin + 1 + text[begin + 1..].find('"').expect("a text ends") + 1;
    format!("{}{value}{}", &text[..begin], &text[end..])
}

/// A ticker that is not what it was, and what is to be served of it; `None`: nothing.
fn bend_ticker(text: &str, rng: &mut Rng) -> (String, Option<Figures>) {
    const REFUSED: &str = r#""0.00000000" "-1.50" "1e999" "NaN" "abc" "" null {} [1,2] true
        "1111111111111111111111111111111111111111111111111111111111111111111""#;
    let refused: Vec<&str> = REFUSED.split_whitespace().collect();
    let (name, value) = match rng.below(6) {
        // The price is well-formed and far off: there is no jump filter.
        0 => ("lastPrice", *rng.pick(&["\"6.4e4\"", "\"1.2e-7\""])),
        1 => ("lastPrice", "\"99999999999.5\""),
        2 => (*rng.pick(&["bidPrice", "askPrice"]), "\"0.00\""),
        _ => return (replace(text, "lastPrice", rng.pick::<&str>(&refused)), None),
    };
    let text = replace(text, name, value);
    let figures = figures_of(&text);
    (text, Some(figures))
}

/// A row that no market can have: one of its figures is wrong, or its time.
fn bend_row(row: &Row, rng: &mut Rng) -> String {
    let mut parts = row.figures().each_ref().map(|figure| format!("\"{figure}\""));
    let (mut time, end) = (row.open_ms, row.open_ms + 1);
    let wrong = match rng.below(8) {
        0 => Some((1, "\"0.00000001\"")),
        1 => Some((2, "\"0\"")),
        2 => Some((3, "\"99999999\"")),
        3 => Some((4, "\"-5\"")),
        4 => Some((1, "\"abc\"")),
        5 => Some((2, "null")),
        6 => Some((3, "{\"a\":[1]}")),
        _ => None,
    };
    match wrong {
        Some((at, figure)) => parts[at] = figure.to_string(),
        None => time += 1,
    }
    format!("[{time},{},{end},\"0\",1,\"0\",\"0\",\"0\"]", parts.join(","))
}
