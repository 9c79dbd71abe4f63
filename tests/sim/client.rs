//! Clients: what each sends, how fast it reads, and how it ends.
//!
//! Owns the script of one client and where it stands in it. It acts when the world says that its
//! time has come, and says when it wants to act again.

use super::answers::{Conversation, Pending};
use super::grammar::{Ask, Grammar};
use super::listeners::Listener;
use super::udf::Adapter;
use super::weather::SECOND;
use super::wire::Link;
use crate::support::Rng;
use marketd::core::Service;
use std::net::IpAddr;

/// How a client takes what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// At once.
    Fast,
    /// So many bytes each so many microseconds.
    Slow(usize, u64),
    /// So many bytes, and then no more.
    Stops(usize),
}

/// How a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Closes when all is answered.
    Close,
    /// Says that it sends nothing more, as soon as it has sent all.
    HalfClose,
    /// Stays, and leaves the end to the daemon.
    Stay,
    /// Breaks the connection some time after its last byte.
    Reset,
    /// Closes both sides some time after its last byte.
    Leave,
    /// Is never heard of again, from some time after its last byte.
    Vanish,
}

/// What a client is like.
#[derive(Clone, Debug)]
pub struct Nature {
    pub requests: usize,
    /// Requests that it sends ahead of their answers.
    pub ahead: usize,
    /// Longest piece that it sends at once, and longest pause between two.
    pub piece: usize,
    pub pause: u64,
    /// Longest pause before a request.
    pub think: u64,
    pub reading: Reading,
    pub ending: Ending,
    pub side: Service,
    /// The one of the favourites that it always asks for.
    pub loyal: Option<usize>,
    /// Bytes that its end of the connection takes before they are read.
    pub buffer: usize,
}

impl Nature {
    /// One that sends and reads all at once, and closes when all is answered.
    pub fn plain(side: Service) -> Nature {
        Nature {
            requests: 0,
            ahead: 1,
            piece: usize::MAX,
            pause: 1000,
            think: 1000,
            reading: Reading::Fast,
            ending: Ending::Close,
            side,
            loyal: None,
            buffer: usize::MAX,
        }
    }

    /// One in so many reads slowly, another one only so many bytes at most.
    pub fn reads(&mut self, of: u64, most: u64, rng: &mut Rng) {
        self.reading = match rng.below(of) {
            0 => {
                let pause = *rng.pick(&[2000, 50_000, 400_000]);
                Reading::Slow(1 + rng.below(3000) as usize, pause)
            }
            1 => Reading::Stops(rng.below(most) as usize),
            _ => return,
        };
        self.buffer = *rng.pick(&[1, 500, 5000]);
    }

    pub fn any(rng: &mut Rng, sides: &[Service]) -> Nature {
        let mut nature = Nature {
            requests: 1 + rng.below(8) as usize,
            think: *rng.pick(&[1000, 200_000, 4 * SECOND]),
            buffer: *rng.pick(&[100, 4096, 65_536, usize::MAX, usize::MAX]),
            ..Nature::plain(*rng.pick(sides))
        };
        if rng.chance(1, 3) {
            nature.ahead = 2 + rng.below(12) as usize;
            nature.requests += rng.below(20) as usize;
        }
        match rng.below(6) {
            0 => nature.piece = 1 + rng.below(40) as usize,
            1 => {
                // Drips.
                nature.piece = 1 + rng.below(3) as usize;
                nature.pause = *rng.pick(&[3000, 30_000, SECOND]);
                nature.requests = 1 + rng.below(2) as usize;
            }
            _ => {}
        }
        nature.reads(8, 3000, rng);
        nature.ending = match rng.below(12) {
            0..4 => Ending::Close,
            4..6 => Ending::HalfClose,
            6..8 => Ending::Stay,
            8 => Ending::Reset,
            9 => Ending::Leave,
            10 => Ending::Vanish,
            _ => {
                // Says nothing at all.
                nature.requests = 0;
                Ending::Stay
            }
        };
        nature
    }
}

/// Where a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not connected yet.
    Waiting,
    Talking,
    /// It has sent all that it will.
    Ending,
    /// It does nothing more.
    Gone,
}

#[derive(Debug)]
pub struct Client {
    pub nature: Nature,
    /// Where it comes from.
    pub peer: IpAddr,
    pub stage: Stage,
    pub talk: Conversation,
    /// What it asks for, and hears, in place of a conversation.
    pub listener: Option<Box<Listener>>,
    /// What asks in its place.
    pub adapter: Option<Box<Adapter>>,
    /// All that it asks for.
    pub only: Option<Ask>,
    pub link: Option<marketd::table::Key>,
    pub rng: Rng,
    /// Bytes of requests that were begun and not sent.
    outbox: Vec<u8>,
    /// Bytes sent.
    pub sent: u64,
    /// Requests begun.
    begun: usize,
    /// Bytes that have arrived here, and those that were read.
    pub arrived: u64,
    pub taken: u64,
    /// Answers taken whole.
    pub answers: usize,
    /// Whether it came when there was no room, or too late.
    pub refused: bool,
    /// Bytes that the daemon has made: they must reach the wire as they are.
    pub made: Vec<u8>,
    /// How many bytes it has made.
    pub made_total: u64,
    /// When the daemon last made progress for it.
    pub since: u64,
    /// When the first byte of a request that is not whole reached the daemon.
    pub partial_since: Option<u64>,
}

impl Client {
    pub fn new(nature: Nature, peer: IpAddr, rng: Rng) -> Client {
        Client {
            nature,
            peer,
            stage: Stage::Waiting,
            talk: Conversation::default(),
            listener: None,
            adapter: None,
            only: None,
            link: None,
            rng,
            outbox: Vec::new(),
            sent: 0,
            begun: 0,
            arrived: 0,
            taken: 0,
            answers: 0,
            refused: false,
            made: Vec::new(),
            made_total: 0,
            since: 0,
            partial_since: None,
        }
    }

    /// Acts once. After how long it wants to act again; `None`: when something has happened.
    pub fn act(&mut self, link: &mut Link, grammar: &Grammar) -> Option<u64> {
        let read_again = self.read(link);
        let talk_again = match self.stage {
            Stage::Talking => self.talk(link, grammar),
            Stage::Ending => self.end(link),
            Stage::Waiting | Stage::Gone => None,
        };
        match (read_again, talk_again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes what has arrived, as fast as it likes.
    fn read(&mut self, link: &mut Link) -> Option<u64> {
        let unread = self.arrived - self.taken;
        let (count, again) = match self.nature.reading {
            _ if self.stage == Stage::Gone => (0, None),
            Reading::Fast => (unread, None),
            Reading::Slow(bytes, pause) => (unread.min(bytes as u64), Some(pause)),
            Reading::Stops(after) => (unread.min((after as u64).saturating_sub(self.taken)), None),
        };
        self.taken += count;
        link.make_room(count as usize);
        if let Some(listener) = &mut self.listener {
            listener.taken(self.taken);
        }
        while self.talk.ends.front().is_some_and(|end| *end <= self.taken) {
            self.talk.ends.pop_front();
            self.answers += 1;
        }
        again.filter(|_| self.arrived > self.taken)
    }

    fn talk(&mut self, link: &mut Link, grammar: &Grammar) -> Option<u64> {
        if let Some(listener) = &self.listener {
            let request = listener.request();
            link.deliver(&request);
            self.sent += request.len() as u64;
            self.stage = Stage::Ending;
            // It listens for a while.
            return Some(1 + self.rng.below(40 * SECOND));
        }
        if self.outbox.is_empty() {
            let done = self.begun >= self.nature.requests || self.talk.closing;
            if done {
                self.stage = Stage::Ending;
                return self.end(link);
            }
            if self.begun.saturating_sub(self.answers) >= self.nature.ahead {
                return None;
            }
            let remembered = &self.talk.remembered;
            let etag = |target: &str| remembered.get(target).map(|known| known.etag.clone());
            let ask = match &mut self.adapter {
                Some(adapter) => {
                    self.nature.think = adapter.pause();
                    let last = self.talk.last.take();
                    let ask = adapter.next(last.as_ref(), grammar, &mut self.rng);
                    ask.unwrap_or_else(|why| panic!("a charting library: {why}"))
                }
                None => match self.only.take() {
                    Some(ask) => ask,
                    None => grammar.ask(&mut self.rng, &self.nature, etag),
                },
            };
            self.outbox.extend_from_slice(&ask.bytes);
            self.begun += 1;
            if ask.last {
                // A client that has said so sends nothing more.
                self.begun = self.nature.requests.max(self.begun);
            }
            self.talk.pending.push_back(Pending {
                end: self.sent + self.outbox.len() as u64,
                ask,
                arrived: None,
            });
            // Requests that are sent ahead mostly come in one piece.
            let more = self.begun < self.nature.requests
                && self.begun.saturating_sub(self.answers) < self.nature.ahead;
            if more && self.rng.chance(3, 4) {
                return Some(0);
            }
            if self.nature.think > 1000 && self.begun > 1 {
                return Some(self.rng.below(self.nature.think));
            }
        }
        let most = self.outbox.len().min(self.nature.piece);
        let count = match self.nature.piece {
            usize::MAX => most,
            _ => 1 + self.rng.below(most as u64) as usize,
        };
        link.deliver(&self.outbox[..count]);
        self.outbox.drain(..count);
        self.sent += count as u64;
        Some(1 + self.rng.below(self.nature.pause))
    }

    fn end(&mut self, link: &mut Link) -> Option<u64> {
        match self.nature.ending {
            Ending::Stay => None,
            Ending::Close => {
                // Until all that was asked is answered, and taken.
                if !self.talk.pending.is_empty() || !self.talk.ends.is_empty() {
                    return None;
                }
                self.stage = Stage::Gone;
                link.end();
                link.deaf = true;
                None
            }
            Ending::HalfClose => {
                if !link.eof {
                    link.end();
                }
                None
            }
            Ending::Reset | Ending::Leave | Ending::Vanish => {
                if self.rng.chance(2, 3) {
                    return Some(self.rng.below(3 * SECOND));
                }
                self.stage = Stage::Gone;
                match self.nature.ending {
                    Ending::Reset => link.reset(),
                    Ending::Leave => {
                        link.end();
                        link.deaf = true;
                    }
                    _ => {}
                }
                None
            }
        }
    }
}
