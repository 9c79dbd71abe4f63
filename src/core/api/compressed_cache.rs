//! Bodies in gzip: those that are packed, and those that are on their way there.
//!
//! Owns both. A body is packed once for all who ask for it, in slices of 16 KiB, one a call
//! of [`Packing::step`]; the first few are in the making in turn, so that a short one does not wait
//! for a long one, and the others are in line. When the last who waits for a body has left, it is
//! dropped.
//!
//! Packed bodies are kept up to `limits.packed_bytes`, by what they answer ([`Question`]): a new
//! version takes the place of the old one. What was not asked for since it was last looked at makes
//! room, and leaves within minutes in any case: most likely its version has gone. It never
//! touches a session, and knows the answers that wait by their keys alone.

use crate::core::api::Question;
use crate::http::{Compressor, ETag, Output};
use crate::table::Key;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Bytes packed at a time: 0.05 ms, and 0.3 ms where a block ends with them.
const SLICE: usize = 16 * 1024;

/// Bodies in the making: each has tables of 300 KB.
const MAKING: usize = 4;

/// Bytes that may wait to be packed: 30 ms of work. What comes on top is sent sooner as it is.
const WAITING_BYTES: usize = 4 * 1024 * 1024;

/// Bodies that may wait to be packed: each that comes is held against all of them.
const WAITING_BODIES: usize = 128;

/// What an entry takes beside its question and its bytes: places in two tables, and counts.
const ENTRY_BYTES: usize = 192;

/// Sweeps in which every entry is looked at, one a second.
const ROUND: usize = 30;

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
    gzip: Option<Compressor>,
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
        self.most_bytes > 0
    }

    /// Whether there is a body that [`Packing::sweep`] may let go.
    pub fn is_keeping(&self) -> bool {
        self.bytes > 0
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
        let has_room = self.jobs.len() < WAITING_BODIES && self.waiting + length <= WAITING_BYTES;
        match self.jobs.is_empty() || has_room {
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
        let is_begun = job.gzip.is_some();
        let mut gzip = job.gzip.take().unwrap_or_default();
        let was_packed = job.body.is_empty();
        job.pack(&mut gzip);
        // The end of a long one is a slice of its own: its last block, and a copy of all of it.
        if !job.body.is_empty() || (is_begun && !was_packed) {
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
        let old = self.kept.get(&question).map(|old| old.size(&question));
        let entry = Entry {
            tag,
            bytes: bytes.clone(),
            was_asked_for: Cell::new(old.is_some()),
        };
        let size = entry.size(&question);
        if size > self.most_bytes {
            return;
        }
        self.bytes += size;
        if let Some(old) = old {
            self.bytes -= old;
            self.kept.insert(question, entry);
            self.make_room();
        } else {
            // First, so that it need not make room for itself.
            self.make_room();
            self.order.push_back(question.clone());
            self.kept.insert(question, entry);
        }
        debug_assert_eq!(self.kept.len(), self.order.len());
    }

    /// Ends: the second time around, nothing has been asked for, and the oldest goes first.
    fn make_room(&mut self) {
        while self.bytes > self.most_bytes {
            self.look_at_next();
        }
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
    fn pack(&mut self, gzip: &mut Compressor) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Decompressor;
    use crate::json::Decimals;
    use crate::market::SymbolId;
    use crate::rng::Rng;
    use crate::table::Table;

    fn tag(version: u64) -> ETag {
        ETag::of_version(1, version, b'o')
    }

    fn question(number: u32) -> Question {
        Question::Market(SymbolId(number), Decimals::Number)
    }

    /// A body that packs to about half of its length.
    fn body(number: u64, length: usize) -> Vec<u8> {
        let mut rng = Rng::new(number);
        let digit = |_| b'0' + rng.below(10) as u8;
        (0..length).map(digit).collect()
    }

    fn output(bytes: &[u8]) -> Option<Output> {
        let mut output = Output::default();
        let (first, second) = bytes.split_at(bytes.len() / 3);
        output.bytes().extend_from_slice(first);
        output.share(&second.into(), 0..second.len());
        Some(output)
    }

    fn keys<const N: usize>() -> [Key; N] {
        let mut table = Table::new(N);
        [(); N].map(|()| table.insert(()).expect("room"))
    }

    /// Packs until one is done.
    fn next(packing: &mut Packing) -> (Vec<u8>, Vec<Key>) {
        loop {
            if let Some((bytes, answers)) = packing.step(|_| true) {
                let mut gunzip = Decompressor::new(1 << 30);
                gunzip.push(&bytes);
                let mut body = Vec::new();
                while gunzip.has_more() {
                    body.extend_from_slice(gunzip.step().expect("sound"));
                }
                gunzip.finish().expect("whole");
                return (body, answers);
            }
        }
    }

    fn is_kept(packing: &Packing, number: u32, version: u64) -> bool {
        let found = packing.find(&question(number), tag(version), 5000);
        matches!(found, Found::Packed(_))
    }

    #[test]
    fn a_body_is_packed_once_for_all_who_ask_for_it() {
        let mut packing = Packing::new(1 << 20);
        let [a, b] = keys();
        let plain = body(1, 200_000);
        assert!(matches!(
            packing.find(&question(1), tag(7), 200_000),
            Found::Absent
        ));
        packing.insert(question(1), tag(7), output(&plain), a);
        assert!(matches!(
            packing.find(&question(1), tag(7), 200_000),
            Found::Coming
        ));
        assert!(matches!(
            packing.find(&question(1), tag(8), 200_000),
            Found::Absent
        ));
        assert!(packing.step(|_| true).is_none(), "it takes some slices");
        packing.insert(question(1), tag(7), None, b);
        assert_eq!(next(&mut packing), (plain, vec![a, b]));
        assert!(!packing.has_work() && packing.waiting == 0);
        assert!(is_kept(&packing, 1, 7) && !is_kept(&packing, 1, 8) && !is_kept(&packing, 2, 7));
    }

    #[test]
    fn short_bodies_do_not_wait_for_long_ones() {
        let mut packing = Packing::new(1 << 20);
        let [long, short] = keys();
        packing.insert(question(1), tag(1), output(&body(1, 1_000_000)), long);
        packing.insert(question(2), tag(1), output(&body(2, 2000)), short);
        assert!(packing.step(|_| true).is_none());
        let (_, answers) = packing.step(|_| true).expect("one slice");
        assert_eq!(answers, [short]);
        assert_eq!(next(&mut packing).1, [long]);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_packed() {
        let mut packing = Packing::new(1 << 20);
        let [gone, stays] = keys();
        packing.insert(question(1), tag(1), output(&body(1, 100_000)), gone);
        packing.insert(question(2), tag(1), output(&body(2, 100_000)), gone);
        packing.insert(question(2), tag(1), None, stays);
        let mut done = Vec::new();
        for _ in 0..20 {
            done.extend(packing.step(|key| key == stays).map(|(_, answers)| answers));
        }
        assert_eq!(done, [[gone, stays]]);
        assert!(!packing.has_work() && packing.waiting == 0);
        assert!(!is_kept(&packing, 1, 1) && is_kept(&packing, 2, 1));
    }

    #[test]
    fn the_queue_takes_so_many_bytes_and_one_body_of_any_length() {
        let mut packing = Packing::new(1 << 20);
        let [key] = keys();
        let find = |packing: &Packing, length| {
            let found = packing.find(&question(9), tag(1), length);
            matches!(found, Found::Absent)
        };
        assert!(find(&packing, 2 * WAITING_BYTES));
        packing.insert(question(1), tag(1), output(&body(1, 1_000_000)), key);
        assert!(find(&packing, WAITING_BYTES - 1_000_000));
        assert!(!find(&packing, WAITING_BYTES - 1_000_000 + 1));
        next(&mut packing);
        assert!(find(&packing, 2 * WAITING_BYTES));
    }

    fn pack(packing: &mut Packing, number: u32, version: u64, length: usize) {
        let [key] = keys();
        let plain = body(u64::from(number), length);
        packing.insert(question(number), tag(version), output(&plain), key);
        next(packing);
    }

    #[test]
    fn kept_bytes_stay_within_their_bound_and_what_is_asked_for_stays() {
        const MOST: usize = 100_000;
        let mut packing = Packing::new(MOST);
        for number in 0..200 {
            pack(&mut packing, number, 1, 5000);
            assert!(packing.bytes <= MOST, "{} bytes", packing.bytes);
            assert!(number == 0 || is_kept(&packing, 0, 1), "{number}");
        }
        let sizes = packing
            .kept
            .iter()
            .map(|(question, entry)| entry.size(question));
        assert_eq!(packing.bytes, sizes.sum::<usize>());
        assert!(
            (20..60).contains(&packing.kept.len()),
            "{}",
            packing.kept.len()
        );
        assert!(!is_kept(&packing, 1, 1) && is_kept(&packing, 199, 1));
        // What is larger than all of the room is sent, and not kept.
        pack(&mut packing, 1000, 1, 500_000);
        assert!(!is_kept(&packing, 1000, 1) && is_kept(&packing, 199, 1));
        for number in 0..200 {
            is_kept(&packing, number, 1);
        }
        pack(&mut packing, 1001, 1, 150_000);
        assert!(packing.bytes <= MOST && is_kept(&packing, 1001, 1));
    }

    #[test]
    fn a_new_version_takes_the_place_of_the_old_one() {
        let mut packing = Packing::new(1 << 20);
        for version in 1..50 {
            pack(&mut packing, 1, version, 5000);
            assert!(is_kept(&packing, 1, version) && !is_kept(&packing, 1, version - 1));
            assert_eq!((packing.kept.len(), packing.order.len()), (1, 1));
        }
        assert!(packing.bytes < 5000);
    }

    #[test]
    fn what_nobody_asks_for_leaves_within_minutes() {
        let mut packing = Packing::new(1 << 20);
        for number in 0..130 {
            pack(&mut packing, number, 1, 2000);
        }
        for _ in 0..4 * ROUND {
            assert!(is_kept(&packing, 77, 1));
            packing.sweep();
        }
        assert_eq!((packing.kept.len(), packing.order.len()), (1, 1));
        for _ in 0..2 {
            packing.sweep();
        }
        assert_eq!((packing.kept.len(), packing.bytes), (0, 0));
    }

    #[test]
    fn without_room_nothing_is_packed() {
        assert!(Packing::new(1).is_on() && !Packing::new(0).is_on());
    }
}
