//! Bodies in gzip: those that are packed, and those that are on their way there.
//!
//! Owns both. A body is packed once for all who ask for it, in slices of [`SLICE`] bytes, one a call
//! of [`Packing::step`]; the first few are in the making in turn, so that a short one does not wait
//! for a long one, and the others are in line. When the last who waits for a body has left, it is
//! dropped.
//!
//! Packed bodies are kept up to `limits.packed_bytes`, by what they answer ([`Question`]): a new
//! version takes the place of the old one. What was not asked for since it was last looked at makes
//! room, and leaves within two minutes in any case: most likely its version has gone. It never
//! touches a session, and knows the answers that wait by their keys alone.

use super::api::Question;
use crate::http::gzip::AVAILABLE;
use crate::http::{ETag, Gzip, Output};
use crate::table::Key;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Bytes packed at a time: some 0.1 ms.
const SLICE: usize = 16 * 1024;

/// Bodies in the making: each has tables of 300 KB.
const MAKING: usize = 4;

/// Bytes that may wait to be packed: 30 ms of work. What comes on top is sent sooner as it is.
const WAITING_BYTES: usize = 4 * 1024 * 1024;

/// What an entry takes beside its question and its bytes: places in two tables, and counts.
const ENTRY_BYTES: usize = 192;

/// Sweeps in which every entry is looked at, one a second.
const ROUND: usize = 60;

/// See the module's page.
pub struct Packing {
    kept: HashMap<Arc<Question>, Entry>,
    /// Each entry once. Those at the front are looked at next.
    order: VecDeque<Arc<Question>>,
    /// Of all entries.
    bytes: usize,
    most_bytes: usize,
    /// The first [`MAKING`] of them are in the making.
    jobs: VecDeque<Job>,
    /// Of the jobs' bodies, not yet packed.
    waiting: usize,
}

struct Entry {
    tag: ETag,
    bytes: Arc<[u8]>,
    /// Since it was last looked at.
    was_asked_for: Cell<bool>,
}

struct Job {
    question: Question,
    tag: ETag,
    /// What of it is not packed yet.
    body: Output,
    gzip: Option<Box<Gzip>>,
    /// The answers that wait for it.
    answers: Vec<Key>,
}

/// What there is of a packed body.
pub enum Found<'a> {
    /// All of it.
    Packed(&'a Arc<[u8]>),
    /// It is being packed.
    Coming,
    /// Nothing, and there is room for it.
    Absent,
    /// Nothing, and no room.
    Full,
}

impl Packing {
    /// Nothing is packed yet. Kept are at most so many bytes; 0: nothing will be packed.
    pub fn new(most_bytes: usize) -> Packing {
        Packing {
            kept: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            most_bytes,
            jobs: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Whether anything is ever packed.
    pub fn is_on(&self) -> bool {
        AVAILABLE && self.most_bytes > 0
    }

    /// Bodies that wait to be packed, and bytes kept.
    pub fn depths(&self) -> (usize, usize) {
        (self.jobs.len(), self.bytes)
    }

    /// What there is of a body of this length.
    pub fn find(&self, question: &Question, tag: ETag, length: usize) -> Found<'_> {
        if let Some(entry) = self.kept.get(question)
            && entry.tag == tag
        {
            entry.was_asked_for.set(true);
            return Found::Packed(&entry.bytes);
        }
        if self.jobs.iter().any(|job| job.is(question, tag)) {
            return Found::Coming;
        }
        // One is always let in, however long: there is no other way for it.
        match self.jobs.is_empty() || self.waiting + length <= WAITING_BYTES {
            true => Found::Absent,
            false => Found::Full,
        }
    }

    /// Takes in a body to be packed, unless it is on its way already, and an answer that waits.
    pub fn insert(&mut self, question: Question, tag: ETag, body: Option<Output>, answer: Key) {
        let mut jobs = self.jobs.iter_mut();
        if let Some(job) = jobs.find(|job| job.is(&question, tag)) {
            return job.answers.push(answer);
        }
        let body = body.expect("what is not on its way comes with its body");
        self.waiting += body.len();
        self.jobs.push_back(Job {
            question,
            tag,
            body,
            gzip: None,
            answers: vec![answer],
        });
    }

    /// Whether [`Packing::step`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Packs one slice of the next body. Some when that was its last: the body, and the answers that
    /// wait for it. `waits`: whether an answer does so still.
    pub fn step(&mut self, waits: impl Fn(Key) -> bool) -> Option<(Arc<[u8]>, Vec<Key>)> {
        let mut job = self.jobs.pop_front()?;
        self.waiting -= job.body.len();
        if !job.answers.iter().any(|key| waits(*key)) {
            return None;
        }
        let mut gzip = job.gzip.take().or_else(Gzip::open)?;
        job.pack(&mut gzip);
        if !job.body.is_empty() {
            self.waiting += job.body.len();
            job.gzip = Some(gzip);
            // Behind the others in the making, before those in line.
            let place = self.jobs.len().min(MAKING - 1);
            self.jobs.insert(place, job);
            return None;
        }
        let bytes = Arc::from(gzip.finish());
        self.keep(job.question, job.tag, &bytes);
        Some((bytes, job.answers))
    }

    /// Looks at some of what is kept, and drops what nobody has asked for since the last time. To be
    /// called once a second.
    pub fn sweep(&mut self) {
        for _ in 0..self.order.len().div_ceil(ROUND) {
            self.look_at_next();
        }
    }

    /// Keeps a packed body, and makes room for it.
    fn keep(&mut self, question: Question, tag: ETag, bytes: &Arc<[u8]>) {
        let question = Arc::new(question);
        let entry = Entry {
            tag,
            bytes: bytes.clone(),
            was_asked_for: Cell::new(false),
        };
        let size = entry.size(&question);
        if size > self.most_bytes {
            return;
        }
        self.bytes += size;
        match self.kept.insert(question.clone(), entry) {
            Some(old) => self.bytes -= old.size(&question),
            None => self.order.push_back(question),
        }
        // Ends: the second time around, nothing has been asked for.
        while self.bytes > self.most_bytes {
            self.look_at_next();
        }
        debug_assert_eq!(self.kept.len(), self.order.len());
    }

    /// Drops the entry that is to be looked at next, unless somebody has asked for it.
    fn look_at_next(&mut self) {
        let Some(question) = self.order.pop_front() else {
            return;
        };
        match self.kept.get(&question) {
            Some(entry) if entry.was_asked_for.take() => self.order.push_back(question),
            Some(entry) => {
                self.bytes -= entry.size(&question);
                self.kept.remove(&question);
            }
            None => {}
        }
    }
}

impl Entry {
    fn size(&self, question: &Question) -> usize {
        ENTRY_BYTES + question.size() + self.bytes.len()
    }
}

impl Job {
    fn is(&self, question: &Question, tag: ETag) -> bool {
        self.tag == tag && self.question == *question
    }

    /// Packs a slice.
    fn pack(&mut self, gzip: &mut Gzip) {
        let mut left = SLICE;
        self.body.pending().each(|piece| {
            let piece = &piece[..piece.len().min(left)];
            gzip.push(piece);
            left -= piece.len();
            left > 0
        });
        self.body.advance(SLICE - left);
    }
}
