//! Clients of the stream: slow ones, ones that stall, come back, or are never heard of again.
//!
//! Owns what one of them has asked for, what it has been told, and what of that has reached it. What it
//! is told is judged as it is made: a quote by what the exchanges have said and what was so, a candle by
//! the chart of that moment. Whenever the daemon has nothing left to do, a reader that has taken all that
//! was made for it knows what anybody would be answered then: no change was left out that lasted until
//! the next pause, and none that came back from what it was before.

use super::answers::{Answer, Context, read_answer, read_json};
use super::client::{Ending, Nature, Stage};
use super::grammar::{address, decimals};
use super::ledger::Tri;
use super::setup::add_client;
use super::trace::{Verdict, ensure, excerpt};
use super::wire::Peer;
use super::world::World;
use crate::support::client::read_chunk;
use crate::support::message::{field, parse_head};
use crate::support::{Json, Rng, ServerEvent};
use marketd::core::Event as Told;
use marketd::core::{Broken, Service};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::Ipv4Addr;

/// A symbol that no exchange has.
const NOBODY: &str = "NO/BODY";

/// What one turn of a stream makes: one share, and the 32 closed candles that go over it, with their forming one.
const MOST_PENDING: usize = 64 * 1024 + 33 * 256;

#[derive(Debug, Default)]
pub struct Listener {
    pub target: String,
    /// Whose place it takes: the client, whose last id it sends.
    pub resumes: Option<usize>,
    markets: Vec<usize>,
    source: Option<usize>,
    is_text: bool,
    is_old: bool,
    /// Whether its error was the last answer.
    is_closing: bool,
    stage: Heard,
    raw: Vec<u8>,
    text: String,
    /// Bytes made so far.
    made: u64,
    /// By symbol: the newest quote that was made for it.
    newest: BTreeMap<String, String>,
    /// The symbols of those of them that are of this stream, and not of the one before.
    told: BTreeSet<String>,
    /// The symbols, and the charts, of which it was told that they are gone, and nothing since.
    gone: BTreeSet<String>,
    /// What has not reached it yet, with the end of each event in the stream. What is gone has no value.
    underway: VecDeque<(u64, String, String)>,
    /// What has: the quotes, and the last id.
    pub known: BTreeMap<String, String>,
    pub id: String,
    /// By chart: the newest candle that was closed.
    closes: BTreeMap<String, i64>,
    pub events: u64,
    /// Candles that are to be compared with the chart of this moment.
    claims: Vec<Json>,
}

/// What has come of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heard {
    #[default]
    Nothing,
    Stream,
    /// It was told that the stream ends.
    Bye,
    Error,
}

impl Listener {
    /// What it sends.
    pub fn request(&self) -> Vec<u8> {
        let version = if self.is_old { "1.0" } else { "1.1" };
        let id = match self.id.as_str() {
            "" => String::new(),
            id => format!("Last-Event-ID: {id}\r\n"),
        };
        format!("GET {} HTTP/{version}\r\nHost: sim\r\n{id}\r\n", self.target).into_bytes()
    }

    pub fn heard(&self) -> Heard {
        self.stage
    }

    /// Whether nothing more comes behind what it was told.
    pub fn was_told(&self) -> bool {
        self.stage == Heard::Bye || self.stage == Heard::Error && self.is_closing
    }

    /// The client has taken so many bytes in all.
    pub fn taken(&mut self, total: u64) {
        while self.underway.front().is_some_and(|(end, ..)| *end <= total) {
            let Some((_, name, value)) = self.underway.pop_front() else {
                return;
            };
            match name.as_str() {
                "id" => self.id = value,
                _ if value.is_empty() => _ = self.known.remove(&name),
                _ => _ = self.known.insert(name, value),
            }
        }
    }

    /// Goes on for another one.
    pub fn take_over(&mut self, other: &Listener) {
        self.id.clone_from(&other.id);
        self.known.clone_from(&other.known);
        self.newest.clone_from(&other.known);
    }

    /// The daemon has made these bytes.
    pub fn made(&mut self, bytes: &[u8], context: &Context) -> Verdict {
        self.made += bytes.len() as u64;
        self.raw.extend_from_slice(bytes);
        if self.stage == Heard::Nothing {
            self.read_head(context)?;
        }
        if self.stage == Heard::Error {
            return Ok(());
        }
        self.unframe()?;
        while let Some(end) = self.text.find("\n\n") {
            let block: String = self.text.drain(..end + 2).collect();
            self.take_block(block.trim_end_matches('\n'), context)?;
        }
        Ok(())
    }

    fn read_head(&mut self, context: &Context) -> Verdict {
        let Some((head, used)) = parse_head(&self.raw)? else {
            return Ok(());
        };
        self.raw.drain(..used);
        let status = head.first_line.get(9..12).unwrap_or_default();
        self.is_closing = field(&head.fields, "Connection") == Some("close");
        self.stage = Heard::Error;
        let unknown = || {
            let books = context.books;
            let all = self.markets.iter().all(|it| books.known(*it) == Tri::Yes);
            !all || self.source.is_some()
        };
        match status {
            "200" => {}
            "404" if unknown() => return Ok(()),
            "503" if context.stopped_at.is_some() || context.refused => return Ok(()),
            "503" if context.is_long_full() || context.may_lack_streams() => return Ok(()),
            "429" if context.allowance.is_some() || context.rates_since > 0 => return Ok(()),
            _ => return Err(format!("{} to {}", head.first_line, self.target)),
        }
        self.stage = Heard::Stream;
        let is_chunked = field(&head.fields, "Transfer-Encoding") == Some("chunked");
        let kind = field(&head.fields, "Content-Type");
        ensure(kind == Some("text/event-stream") && is_chunked != self.is_old, || {
            format!("the head of a stream is {:?}", head.fields)
        })
    }

    fn unframe(&mut self) -> Verdict {
        if self.is_old {
            self.text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.raw)));
            return Ok(());
        }
        while let Some((data, used)) = read_chunk(&self.raw)? {
            ensure(data.is_empty() == (self.stage == Heard::Bye), || {
                format!("a chunk of {} bytes, {:?}", data.len(), self.stage)
            })?;
            let text = String::from_utf8_lossy(data).into_owned();
            self.text.push_str(&text);
            self.raw.drain(..used);
            if text.contains("event: bye\n") {
                self.stage = Heard::Bye;
            }
        }
        ensure(self.raw.is_empty(), || "a chunk without its end".to_string())
    }

    fn take_block(&mut self, block: &str, context: &Context) -> Verdict {
        let (event, _) = ServerEvent::read(block)?;
        let ServerEvent { name, data, id } = &event;
        self.events += 1;
        match name.as_str() {
            "quote" => self.take_quote(data, context)?,
            "candle" => self.take_candle(data)?,
            "gone" => self.take_gone(data, context)?,
            "bye" => self.stage = Heard::Bye,
            "alive" | "status" => {}
            other => return Err(format!("an event {other:?}")),
        }
        if let Some(id) = id {
            // Another run tells everything, and not what has gone since.
            if id.split('-').next() != self.id.split('-').next() {
                self.newest.retain(|symbol, _| self.told.contains(symbol));
            }
            self.underway.push_back((self.made, "id".to_string(), id.clone()));
        }
        Ok(())
    }

    fn take_quote(&mut self, data: &str, context: &Context) -> Verdict {
        let quote = Json::parse(data)?;
        let symbol = quote["symbol"].text().unwrap_or_default().to_string();
        let books = context.books;
        let market = books.market(&symbol)?;
        ensure(self.markets.contains(&market), || format!("{symbol} was not asked for"))?;
        books.check_quote(&quote, market, self.source, self.is_text)?;
        if self.newest.insert(symbol.clone(), data.to_string()).as_deref() == Some(data) {
            // One that is told again as it was has changed to and fro, or its client was away.
            let is_new = self.resumes.is_some() && !self.underway.iter().any(|it| it.1 == symbol);
            if !is_new && !books.may_be_twice(market, &quote) {
                return Err(format!("{symbol} is told twice: {data}"));
            }
        }
        self.gone.remove(&symbol);
        self.told.insert(symbol.clone());
        self.underway.push_back((self.made, symbol, data.to_string()));
        Ok(())
    }

    fn take_gone(&mut self, data: &str, context: &Context) -> Verdict {
        let gone = Json::parse(data)?;
        let symbol = gone["symbol"].text().unwrap_or_default().to_string();
        let code = gone["code"].text().unwrap_or_default();
        let (books, is_chart) = (context.books, gone.keys().contains(&"interval"));
        let place = match is_chart {
            true => format!("{} {}", gone["symbol"], gone["interval"]),
            false => symbol.clone(),
        };
        self.closes.remove(&place);
        ensure(self.gone.insert(place), || format!("{data} is told twice"))?;
        if !is_chart {
            self.newest.remove(&symbol);
            self.underway.push_back((self.made, symbol.clone(), String::new()));
        }
        if symbol == NOBODY {
            return Ok(());
        }
        let market = books.market(&symbol)?;
        let is_right = match code {
            "symbol_not_found" => self.source.is_some() || books.known(market) != Tri::Yes,
            "quote_not_ready" | "quote_not_found" => !is_chart,
            "invalid_interval" => is_chart,
            _ => false,
        };
        ensure(is_right && (is_chart || books.has_quote(market, self.source) != Tri::Yes), || {
            format!("{data}, which is served")
        })
    }

    fn take_candle(&mut self, data: &str) -> Verdict {
        let candle = Json::parse(data)?;
        let chart = format!("{} {}", candle["symbol"], candle["interval"]);
        let open = candle["candle"][0].integer().ok_or("no open time")?;
        let is_closed = candle["closed"].bool().ok_or("closed is no boolean")?;
        self.gone.remove(&chart);
        let closed = self.closes.get(&chart).copied().unwrap_or(i64::MIN);
        if open <= closed {
            return Err(format!("{data} comes behind {closed}"));
        }
        if is_closed {
            self.closes.insert(chart, open);
        }
        self.claims.push(candle);
        Ok(())
    }
}

/// Adds some clients of the stream to a world, each with a few that come back for it.
pub fn add_listeners(world: &mut World, until: u64, rng: &mut Rng) {
    let side = world.service_at("/api/v1/stream");
    for _ in 0..1 + rng.below(4) {
        let mut named: Vec<usize> = world.ledgers.iter().flat_map(|it| it.named()).collect();
        if named.is_empty() {
            named.extend(0..world.symbols.len());
        }
        let mut markets: Vec<usize> = (0..1 + rng.below(4)).map(|_| *rng.pick(&named)).collect();
        markets.dedup();
        let names: Vec<String> = markets.iter().map(|it| world.symbols[*it].clone()).collect();
        let is_all = rng.chance(1, 4);
        let mut list = if is_all { "*".to_string() } else { names.join(",") };
        if !is_all && names.len() == 2 {
            list += &format!(",{NOBODY}");
        }
        let is_text = rng.chance(1, 4);
        let source = rng.chance(1, 4).then(|| rng.below(world.ledgers.len() as u64) as usize);
        let interval = *rng.pick(&["1m", "5m", "1h", "1d"]);
        let parameters = [
            ("symbols", Some(list)),
            ("charts", rng.chance(1, 2).then(|| format!("{}:{interval}", names[0]))),
            ("decimals", decimals(is_text)),
            ("source", source.map(|at| world.ledgers[at].id.clone())),
        ];
        let target = address("/api/v1/stream", &parameters);
        if is_all {
            markets = (0..world.symbols.len()).collect();
        }
        let mut at = rng.below(until);
        let mut resumes = None;
        for _ in 0..1 + rng.below(3) {
            let client = add_client(world, nature(side, rng), at, rng);
            world.clients[client].listener = Some(Box::new(Listener {
                target: target.clone(),
                resumes,
                markets: markets.clone(),
                source,
                is_text,
                is_old: rng.chance(1, 6),
                ..Listener::default()
            }));
            resumes = Some(client);
            at += rng.below(until / 3 + 1);
        }
    }
}

fn nature(side: Service, rng: &mut Rng) -> Nature {
    let buffer = *rng.pick(&[4096, 65_536, usize::MAX]);
    let ending =
        *rng.pick(&[Ending::Stay, Ending::Reset, Ending::Leave, Ending::Vanish, Ending::HalfClose]);
    let mut nature = Nature { ending, buffer, ..Nature::plain(side) };
    nature.reads(4, 9000, rng);
    // Whom nobody hears of again takes no more than fits.
    if ending == Ending::Vanish {
        nature.buffer = 5000;
    }
    nature
}

impl World {
    /// Something was made for a listener: its memory is bounded, and its candles are those of the chart.
    pub fn check_listener(&mut self, at: usize, pending: usize) {
        if pending > MOST_PENDING {
            self.fail(&format!("client {at} has {pending} bytes of its stream pending"));
        }
        let listener = self.clients[at].listener.as_mut();
        let claims = listener.map(|it| (std::mem::take(&mut it.claims), it.is_text));
        let Some((claims, is_text)) = claims else {
            return;
        };
        for claim in claims {
            let open = claim["candle"][0].integer().unwrap_or_default();
            let text = |key: &str| Some(claim[key].text()?.replace('/', "-"));
            let open = Some(open.to_string());
            let parameters = [
                ("symbol", text("symbol")),
                ("interval", text("interval")),
                ("source", text("source")),
                ("from", open.clone()),
                ("to", open),
                ("decimals", decimals(is_text)),
            ];
            let target = address("/api/ecosystem/chart", &parameters);
            let answer = self.answer_to(&target, 0);
            let Some(answer) = answer.filter(|answer| answer.status == 200) else { continue };
            // A later candle may have been made in the same moment.
            let chart = read_json(&answer.body).unwrap_or_else(|why| self.fail(&why));
            if chart.items().first().is_some_and(|row| *row != claim["candle"]) {
                self.fail(&format!("client {at} is told {claim}, and {target} says {chart}"));
            }
        }
    }

    /// Where the daemon has nothing left to do, this listener knows what anybody would be answered.
    pub fn check_newest(&mut self, at: usize, symbol: &str) {
        let client = &self.clients[at];
        let Some((listener, key)) = client.listener.as_ref().zip(client.link) else {
            return;
        };
        let is_here = self.links.get(&key).is_some_and(|link| !link.broken);
        let is_quiet = self.core.outgoing(key).is_empty() && !self.core.has_work();
        if listener.stage != Heard::Stream || !is_here || !is_quiet {
            return;
        }
        let source = listener.source.map(|source| self.ledgers[source].id.clone());
        let parameters = [("source", source), ("decimals", decimals(listener.is_text))];
        let path = format!("/api/v1/quotes/{}", symbol.replace('/', "-"));
        let target = address(&path, &parameters);
        let Some(answer) = self.answer_to(&target, 0) else {
            return;
        };
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let is_served = match answer.status {
            200 => true,
            404 => false,
            503 if body.contains("quote_not_ready") => false,
            _ => return,
        };
        // To ask takes time, in which a quote may have turned stale.
        let told = self.clients[at].listener.as_ref().and_then(|it| it.newest.get(symbol));
        if told != Some(&body).filter(|_| is_served) && !self.core.has_work() {
            self.fail(&format!("client {at} was last told {told:?}, and {target} says {body}"));
        }
    }

    /// Looks at one listener and one symbol after every turn, in turn.
    pub fn check_some_listener(&mut self) {
        let listeners = self.links.values().filter_map(|link| match link.peer {
            Peer::Client(at) => self.clients[at].listener.as_ref().map(|it| (at, &it.markets)),
            Peer::Exchange(..) => None,
        });
        let listeners: Vec<(usize, &Vec<usize>)> = listeners.collect();
        if listeners.is_empty() || self.core.has_work() {
            return;
        }
        let turn = self.turns as usize;
        let (at, markets) = listeners[turn % listeners.len()];
        let symbol = self.symbols[markets[turn / listeners.len() % markets.len()]].clone();
        self.check_newest(at, &symbol);
    }

    /// The answer to somebody who comes for this alone. It may take so many turns, in which no time passes.
    pub fn answer_to(&mut self, target: &str, turns: usize) -> Option<Answer> {
        // Where there is no room, somebody else would have to make place.
        if self.clients_open() >= self.config.limits.max_connections {
            return None;
        }
        let stranger = Ipv4Addr::new(203, 0, 113, 2);
        let (now, service) = (self.clocks(), self.service_at(target));
        let key = self.core.accept(Some(stranger.into()), service, now)?;
        let request = format!("GET {target} HTTP/1.1\r\nHost: sim\r\n\r\n");
        self.strangers.insert(key);
        // Its answer counts among what is unread.
        self.crowded_at = Some(self.now);
        self.core.handle(key, Told::Received(request.as_bytes()), now);
        for _ in 0..turns {
            if !self.core.outgoing(key).is_empty() || !self.core.has_work() {
                break;
            }
            self.core.work(now);
            self.carry_out();
        }
        let made = self.core.outgoing(key).to_vec();
        let gone = Broken::Io(ErrorKind::ConnectionReset);
        self.core.handle(key, Told::Failed(&gone), now);
        match read_answer(&made, false) {
            Ok(answer) => answer.map(|(answer, _)| answer),
            Err(why) => self.fail(&format!("{why} in {}", excerpt(&made))),
        }
    }

    /// Listeners that would stay for ever leave.
    pub fn dismiss_listeners(&mut self) {
        for at in 0..self.clients.len() {
            let client = &mut self.clients[at];
            let Some(key) = client.link.filter(|_| client.listener.is_some()) else {
                continue;
            };
            client.stage = Stage::Gone;
            if let Some(link) = self.links.get_mut(&key) {
                link.end();
                link.deaf = true;
                self.wake(key);
            }
        }
    }
}
