//! The server's side of one connection: its bytes taken apart into answers, each matched with the
//! request that it is for.
//!
//! Invariant: answers come in the order of the requests, one each, framed so that the next one
//! begins where this one ends; after one that says `Connection: close`, nothing comes.

use super::grammar::{Ask, Kind};
use super::trace::ensure;
use super::verdict::{self, Context};
use crate::support::message::{MessageHead, parse_head};
use std::collections::{HashMap, VecDeque};

/// One whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: MessageHead,
    /// Bytes of its body as it came, or as a `HEAD` tells them.
    pub length: usize,
    /// Unpacked.
    pub body: Vec<u8>,
    /// Whether it came packed.
    pub is_packed: bool,
}

impl Answer {
    /// The value of a field that stands at most once.
    pub fn field(&self, name: &str) -> Result<Option<&str>, String> {
        let mut values = (self.head.fields.iter())
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str());
        let first = values.next();
        match values.next() {
            Some(_) => Err(format!("{name} stands twice")),
            None => Ok(first),
        }
    }

    /// Whether the connection ends with it.
    pub fn closes(&self) -> bool {
        let connection = self.field("Connection").unwrap_or_default();
        connection.is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Pending {
    pub ask: Ask,
    /// Where it ends in the client's stream.
    pub end: u64,
    /// When the daemon had read all of it.
    pub arrived: Option<u64>,
}

/// An answer that a client may ask to be compared with.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub etag: String,
    pub body: Vec<u8>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Conversation {
    pub pending: VecDeque<Pending>,
    unread: Vec<u8>,
    /// Bytes of all whole answers.
    read: u64,
    /// Where each final answer ends in the server's stream.
    pub ends: VecDeque<u64>,
    /// When the last answer was made.
    pub last_answer: u64,
    pub answers: usize,
    /// The server has said that it closes.
    pub closing: bool,
    interim: bool,
    pub remembered: HashMap<String, Remembered>,
    /// The last answer, for who asks for one thing at a time.
    pub last: Option<Answer>,
}

impl Conversation {
    /// The daemon has read so many bytes of the client's stream.
    pub fn arrived(&mut self, total: u64, now: u64) {
        for pending in &mut self.pending {
            if pending.end <= total && pending.arrived.is_none() {
                pending.arrived = Some(now);
            }
        }
    }

    /// Requests that have arrived whole and are not answered.
    pub fn owed(&self) -> usize {
        let arrived = self.pending.iter();
        arrived.filter(|pending| pending.arrived.is_some()).count()
    }

    /// The daemon has made these bytes. `started`: bytes of the client's stream that it has read.
    pub fn made(
        &mut self,
        bytes: &[u8],
        started: u64,
        context: &mut Context<'_>,
    ) -> Result<(), String> {
        self.unread.extend_from_slice(bytes);
        loop {
            // Also of a request that could not be read, or not to its end, the method is known.
            let head_only = self.pending.front().is_some_and(|front| {
                let bytes = &front.ask.bytes;
                let begin = front.end - bytes.len() as u64;
                let come = (started.saturating_sub(begin) as usize).min(bytes.len());
                bytes[..come].trim_ascii_start().starts_with(b"HEAD ")
            });
            let Some((answer, used)) = read_answer(&self.unread, head_only)? else {
                return Ok(());
            };
            if self.closing {
                return Err("an answer after the last one".to_string());
            }
            self.unread.drain(..used);
            self.read += used as u64;
            self.take(answer, started, context)?;
        }
    }

    /// Whether an answer has begun and is not whole.
    pub fn is_partial(&self) -> bool {
        !self.unread.is_empty()
    }

    fn take(
        &mut self,
        answer: Answer,
        started: u64,
        context: &mut Context<'_>,
    ) -> Result<(), String> {
        if answer.status == 100 {
            let front = self.pending.front();
            if self.interim || front.is_none_or(|front| !front.ask.expects_continue) {
                return Err("an interim answer that nobody expects".to_string());
            }
            self.interim = true;
            return Ok(());
        }
        self.interim = false;
        let mut answer = answer;
        if let Some(pending) = self.pending.front() {
            verdict::unpack(&pending.ask, &mut answer, context)?;
        }
        self.ends.push_back(self.read);
        self.closing = answer.closes();
        self.answers += 1;
        verdict::check_head(&answer)?;
        let Some(pending) = self.pending.pop_front() else {
            let refused = context.refused && answer.status == 503 && self.answers == 1;
            return ensure(refused && self.closing, || format!("{} to nobody", answer.status));
        };
        if let Some(verdict) = unasked(&pending, &answer, started, self.answers, context) {
            self.last = Some(answer);
            return verdict;
        }
        if pending.ask.last && !self.closing {
            return Err("the client wanted it to be the last".to_string());
        }
        let begun = pending.arrived.unwrap_or(context.now.us);
        context.books.span.0 = match &pending.ask.kind {
            // What is packed may have been made some turns ago.
            _ if answer.is_packed => begun,
            kind if kind.is_long() || matches!(kind, Kind::Udf(_)) => begun.max(self.last_answer),
            _ => context.now.us,
        };
        self.last_answer = context.now.us;
        context.arrived = pending.arrived;
        let known = self.remembered.get(&pending.ask.target);
        let verdict = verdict::check(&pending.ask, &answer, known, context);
        if let (Ok(()), 200) = (&verdict, answer.status)
            && !pending.ask.head_only
            && let Some(etag) = answer.field("ETag")?
        {
            let remembered = Remembered { etag: etag.to_string(), body: answer.body.clone() };
            self.remembered.insert(pending.ask.target.clone(), remembered);
        }
        let target = &pending.ask.target;
        let verdict = verdict.map_err(|why| format!("{} to {target}: {why}", answer.status));
        self.last = Some(answer);
        verdict
    }
}

/// Answers that may come before the request has: to one that is too slow or too large, and to a
/// client for whom there is no room. `None`: it is none of these.
fn unasked(
    pending: &Pending,
    answer: &Answer,
    started: u64,
    number: usize,
    context: &Context<'_>,
) -> Option<Result<(), String>> {
    let whole = pending.arrived.is_some();
    let early = match answer.status {
        408 => !whole,
        // Who has got a place all the same may be told that something is not ready.
        503 => context.refused && number == 1 && answer.closes(),
        400 | 413 | 414 | 431 | 501 | 505 => matches!(pending.ask.kind, Kind::Fatal(_)),
        _ => false,
    };
    if early && answer.status != 503 && started == 0 {
        return Some(Err("an answer to nothing".to_string()));
    }
    if matches!(answer.status, 408 | 503) && early {
        return Some(ensure(answer.closes(), || format!("{} and no close", answer.status)));
    }
    match whole || early {
        true => None,
        false => {
            let target = &pending.ask.target;
            Some(Err(format!("{} before {target} had arrived whole", answer.status)))
        }
    }
}

/// The answer at the begin of these bytes, and its length.
pub fn read_answer(bytes: &[u8], head_only: bool) -> Result<Option<(Answer, usize)>, String> {
    let Some((head, used)) = parse_head(bytes)? else {
        return Ok(None);
    };
    let status = head
        .first_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    let status = status.ok_or_else(|| format!("the status line is {:?}", head.first_line))?;
    let mut answer = Answer { status, head, length: 0, body: Vec::new(), is_packed: false };
    let bare = matches!(status, 100..=199 | 204 | 304);
    let length = match answer.field("Content-Length")? {
        Some(_) if bare => return Err(format!("{status} with a length")),
        None if bare => 0,
        Some(length) => length.parse::<usize>().map_err(|why| why.to_string())?,
        None => return Err("no Content-Length".to_string()),
    };
    answer.length = length;
    let length = if head_only { 0 } else { length };
    let Some(body) = bytes.get(used..used + length) else {
        return Ok(None);
    };
    answer.body = body.to_vec();
    Ok(Some((answer, used + length)))
}
