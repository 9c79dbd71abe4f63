//! The compressed-body cache: bodies in gzip, and those that are being compressed.
//!
//! A body is compressed once for all who ask for it, in slices of 16 KiB, one a call of
//! [`CompressedBodies::step`]. The first few bodies take turns, so that a short one does not wait for a
//! long one; the others wait in line. A body is dropped when the last client that waits for it has left.
//!
//! Compressed bodies are kept up to `limits.compressedBytes`, by their [`CacheKey`]: a new version replaces
//! the old one. A body that nobody has asked for since it was last looked at makes room for others, and is
//! dropped within a minute in any case, since its version is probably gone. The cache knows the clients that
//! wait by their keys alone.

use crate::http::{Compressor, ETag, Output};
use crate::table::Key;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Bytes compressed at a time: 0.05 ms, and 0.3 ms if a block ends with them.
const SLICE: usize = 16 * 1024;

/// Bodies that are compressed in turns: each has tables of 300 KB.
const CONCURRENT_JOBS: usize = 4;

/// Bytes that may wait to be compressed: 30 ms of work. Further bodies are sent as they are, which is
/// faster.
const WAITING_BYTES: usize = 4 * 1024 * 1024;

/// Bodies that may wait to be compressed: each new one is compared with all of them.
const WAITING_BODIES: usize = 128;

/// What an entry takes besides its bytes: places in two tables, and counts.
const ENTRY_BYTES: usize = 192;

/// Sweeps, one a second, in which every entry is looked at once.
const SWEEPS_A_ROUND: usize = 30;

/// Identifies a body without its version: a hash of where the body is from and of what was chosen there. The
/// tag identifies the version. One body is taken for another only if the hash and the tag are both equal by
/// chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(u64);

impl CacheKey {
    /// The key of a body from this place that depends on this choice.
    pub fn new(place: &str, choice: impl Hash) -> CacheKey {
        let mut hasher = DefaultHasher::new();
        (place, choice).hash(&mut hasher);
        CacheKey(hasher.finish())
    }
}

/// See the module's page.
#[derive(Default)]
pub struct CompressedBodies {
    entries: HashMap<CacheKey, Entry>,
    /// The keys of all entries. The keys at the front are looked at next.
    order: VecDeque<CacheKey>,
    /// The size of all entries, which [`CompressedBodies::sweep`] may drop.
    pub bytes: usize,
    /// The most bytes. If more are kept, entries are dropped with the next body.
    pub most_bytes: usize,
    /// The first [`CONCURRENT_JOBS`] of them take turns.
    jobs: VecDeque<Job>,
}

struct Entry {
    tag: ETag,
    bytes: Arc<[u8]>,
    /// True if a client has asked for the body since the entry was last looked at.
    was_asked_for: Cell<bool>,
}

/// A body that is being compressed.
struct Job {
    key: CacheKey,
    tag: ETag,
    /// The part that is not compressed yet.
    body: Output,
    gzip: Option<Compressor>,
    /// Who waits for it.
    clients: Vec<Key>,
}

impl CompressedBodies {
    /// An empty cache of at most `most_bytes`. With 0, nothing is ever compressed.
    pub fn new(most_bytes: usize) -> CompressedBodies {
        CompressedBodies { most_bytes, ..CompressedBodies::default() }
    }

    /// True if bodies are compressed.
    pub fn is_on(&self) -> bool {
        self.most_bytes > 0
    }

    /// How many bodies are being compressed. [`CompressedBodies::step`] has something to do if there are any.
    pub fn depth(&self) -> usize {
        self.jobs.len()
    }

    /// Looks up a compressed body.
    pub fn find(&self, key: &CacheKey, tag: ETag) -> Option<&Arc<[u8]>> {
        let entry = self.entries.get(key).filter(|entry| entry.tag == tag)?;
        entry.was_asked_for.set(true);
        Some(&entry.bytes)
    }

    /// True if a body of this length may wait to be compressed, or is being compressed.
    pub fn has_room(&self, key: &CacheKey, tag: ETag, length: usize) -> bool {
        // If no body waits, any body may wait, however long it is.
        let waiting: usize = self.jobs.iter().map(|job| job.body.len()).sum();
        self.jobs.is_empty()
            || self.jobs.len() < WAITING_BODIES && waiting + length <= WAITING_BYTES
            || self.jobs.iter().any(|job| job.is(key, tag))
    }

    /// Takes in a client that waits for a body, and the body, unless it is being compressed already.
    pub fn insert(&mut self, key: CacheKey, tag: ETag, body: Output, client: Key) {
        let mut jobs = self.jobs.iter_mut();
        if let Some(job) = jobs.find(|job| job.is(&key, tag)) {
            return job.clients.push(client);
        }
        self.jobs.push_back(Job { key, tag, body, gzip: None, clients: vec![client] });
    }

    /// Compresses one slice of the next body. Returns the body and the clients that wait for it if that was
    /// the last slice. `waits`: true if a client still waits.
    pub fn step(&mut self, waits: impl Fn(Key) -> bool) -> Option<(Arc<[u8]>, Vec<Key>)> {
        let mut job = self.jobs.pop_front()?;
        if !job.clients.iter().any(|key| waits(*key)) {
            return None;
        }
        let is_begun = job.gzip.is_some();
        let mut gzip = job.gzip.take().unwrap_or_default();
        let was_empty = job.body.is_empty();
        job.compress(&mut gzip);
        // The end of a long body is a slice of its own: its last block, and a copy of all of it.
        if !job.body.is_empty() || (is_begun && !was_empty) {
            job.gzip = Some(gzip);
            // Behind the bodies that take turns, before the bodies that wait in line.
            let place = self.jobs.len().min(CONCURRENT_JOBS - 1);
            self.jobs.insert(place, job);
            return None;
        }
        let bytes = Arc::from(gzip.finish());
        self.keep(job.key, job.tag, &bytes);
        Some((bytes, job.clients))
    }

    /// Looks at some of the entries, and drops entries that nobody has asked for since the last look. To be
    /// called once a second.
    pub fn sweep(&mut self) {
        for _ in 0..self.order.len().div_ceil(SWEEPS_A_ROUND) {
            self.look_at_next();
        }
    }

    /// Keeps a compressed body, and drops others until all fit. In the second round over the entries, none
    /// counts as asked for, so the loop ends.
    fn keep(&mut self, key: CacheKey, tag: ETag, bytes: &Arc<[u8]>) {
        let is_new = !self.entries.contains_key(&key);
        let entry = Entry { tag, bytes: bytes.clone(), was_asked_for: Cell::new(!is_new) };
        let size = entry.size();
        if size > self.most_bytes {
            return;
        }
        self.bytes += size;
        let old = self.entries.insert(key, entry);
        self.bytes -= old.map_or(0, |old| old.size());
        while self.bytes > self.most_bytes {
            self.look_at_next();
        }
        // A new key is queued last, so that the new body is not dropped to make room for itself.
        if is_new {
            self.order.push_back(key);
        }
        debug_assert_eq!(self.entries.len(), self.order.len());
    }

    /// Looks at the next entry, and drops it unless somebody has asked for it.
    fn look_at_next(&mut self) {
        let Some(key) = self.order.pop_front() else {
            return;
        };
        match self.entries.get(&key) {
            Some(entry) if entry.was_asked_for.take() => self.order.push_back(key),
            Some(entry) => {
                self.bytes -= entry.size();
                self.entries.remove(&key);
            }
            None => {}
        }
    }
}

impl Entry {
    fn size(&self) -> usize {
        ENTRY_BYTES + self.bytes.len()
    }
}

impl Job {
    fn is(&self, key: &CacheKey, tag: ETag) -> bool {
        self.tag == tag && self.key == *key
    }

    /// Compresses a slice.
    fn compress(&mut self, gzip: &mut Compressor) {
        let mut left = SLICE;
        self.body.each(|piece| {
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
    use crate::http::decompress;
    use crate::rng::Rng;
    use crate::table::Table;

    fn tag(version: u64) -> ETag {
        ETag::new(version, b'o')
    }

    fn key(number: u32) -> CacheKey {
        CacheKey::new("/", number)
    }

    /// A body that compresses to about half of its length.
    fn body(number: u64, length: usize) -> Vec<u8> {
        let mut rng = Rng::new(number);
        let digit = |_| b'0' + rng.below(10) as u8;
        (0..length).map(digit).collect()
    }

    fn output(bytes: &[u8]) -> Output {
        let mut output = Output::default();
        let (first, second) = bytes.split_at(bytes.len() / 3);
        output.bytes().extend_from_slice(first);
        output.share(&second.into(), 0..second.len());
        output
    }

    fn keys<const N: usize>() -> [Key; N] {
        let mut table = Table::new(N);
        [(); N].map(|()| table.insert(()).expect("room"))
    }

    /// Compresses until one is done.
    fn next(cache: &mut CompressedBodies) -> (Vec<u8>, Vec<Key>) {
        loop {
            if let Some((bytes, clients)) = cache.step(|_| true) {
                let body = decompress(&bytes, 1 << 30).expect("sound");
                return (body, clients);
            }
        }
    }

    fn is_kept(cache: &CompressedBodies, number: u32, version: u64) -> bool {
        cache.find(&key(number), tag(version)).is_some()
    }

    #[test]
    fn a_body_is_compressed_once_for_all_who_ask_for_it() {
        let mut cache = CompressedBodies::new(1 << 20);
        let [a, b] = keys();
        let plain = body(1, 200_000);
        cache.insert(key(1), tag(7), output(&plain), a);
        assert!(cache.has_room(&key(1), tag(7), WAITING_BYTES), "it is being compressed");
        assert!(!cache.has_room(&key(1), tag(8), WAITING_BYTES));
        assert!(!is_kept(&cache, 1, 7));
        assert!(cache.step(|_| true).is_none(), "it takes some slices");
        cache.insert(key(1), tag(7), output(&plain), b);
        assert_eq!(next(&mut cache), (plain, vec![a, b]));
        assert!(cache.depth() == 0);
        assert!(is_kept(&cache, 1, 7) && !is_kept(&cache, 1, 8) && !is_kept(&cache, 2, 7));
    }

    #[test]
    fn short_bodies_do_not_wait_for_long_ones() {
        let mut cache = CompressedBodies::new(1 << 20);
        let [long, short] = keys();
        cache.insert(key(1), tag(1), output(&body(1, 1_000_000)), long);
        cache.insert(key(2), tag(1), output(&body(2, 2000)), short);
        assert!(cache.step(|_| true).is_none());
        let (_, clients) = cache.step(|_| true).expect("one slice");
        assert_eq!(clients, [short]);
        assert_eq!(next(&mut cache).1, [long]);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_compressed() {
        let mut cache = CompressedBodies::new(1 << 20);
        let [gone, stays] = keys();
        cache.insert(key(1), tag(1), output(&body(1, 100_000)), gone);
        cache.insert(key(2), tag(1), output(&body(2, 100_000)), gone);
        cache.insert(key(2), tag(1), output(&body(2, 100_000)), stays);
        let mut done = Vec::new();
        for _ in 0..20 {
            done.extend(cache.step(|key| key == stays).map(|(_, clients)| clients));
        }
        assert_eq!(done, [[gone, stays]]);
        assert!(cache.depth() == 0);
        assert!(!is_kept(&cache, 1, 1) && is_kept(&cache, 2, 1));
    }

    #[test]
    fn the_queue_takes_so_many_bytes_and_one_body_of_any_length() {
        let mut cache = CompressedBodies::new(1 << 20);
        let [client] = keys();
        let find = |cache: &CompressedBodies, length| cache.has_room(&key(9), tag(1), length);
        assert!(find(&cache, 2 * WAITING_BYTES));
        cache.insert(key(1), tag(1), output(&body(1, 1_000_000)), client);
        assert!(find(&cache, WAITING_BYTES - 1_000_000));
        assert!(!find(&cache, WAITING_BYTES - 1_000_000 + 1));
        next(&mut cache);
        assert!(find(&cache, 2 * WAITING_BYTES));
    }

    fn compress(cache: &mut CompressedBodies, number: u32, version: u64, length: usize) {
        let [client] = keys();
        let plain = body(u64::from(number), length);
        cache.insert(key(number), tag(version), output(&plain), client);
        next(cache);
    }

    #[test]
    fn kept_bytes_stay_within_their_bound_and_what_is_asked_for_stays() {
        const MOST: usize = 100_000;
        let mut cache = CompressedBodies::new(MOST);
        for number in 0..200 {
            compress(&mut cache, number, 1, 5000);
            assert!(cache.bytes <= MOST, "{} bytes", cache.bytes);
            assert!(number == 0 || is_kept(&cache, 0, 1), "{number}");
        }
        let sizes = cache.entries.values().map(Entry::size);
        assert_eq!(cache.bytes, sizes.sum::<usize>());
        assert!((20..60).contains(&cache.entries.len()), "{}", cache.entries.len());
        assert!(!is_kept(&cache, 1, 1) && is_kept(&cache, 199, 1));
        // What is larger than all of the room is sent, and not kept.
        compress(&mut cache, 1000, 1, 500_000);
        assert!(!is_kept(&cache, 1000, 1) && is_kept(&cache, 199, 1));
        for number in 0..200 {
            is_kept(&cache, number, 1);
        }
        compress(&mut cache, 1001, 1, 150_000);
        assert!(cache.bytes <= MOST && is_kept(&cache, 1001, 1));
    }

    #[test]
    fn a_new_version_takes_the_place_of_the_old_one() {
        let mut cache = CompressedBodies::new(1 << 20);
        for version in 1..50 {
            compress(&mut cache, 1, version, 5000);
            assert!(is_kept(&cache, 1, version) && !is_kept(&cache, 1, version - 1));
            assert_eq!((cache.entries.len(), cache.order.len()), (1, 1));
        }
        assert!(cache.bytes < 5000);
    }

    #[test]
    fn what_nobody_asks_for_leaves_within_minutes() {
        let mut cache = CompressedBodies::new(1 << 20);
        for number in 0..130 {
            compress(&mut cache, number, 1, 2000);
        }
        for _ in 0..4 * SWEEPS_A_ROUND {
            assert!(is_kept(&cache, 77, 1));
            cache.sweep();
        }
        assert_eq!((cache.entries.len(), cache.order.len()), (1, 1));
        for _ in 0..2 {
            cache.sweep();
        }
        assert_eq!((cache.entries.len(), cache.bytes), (0, 0));
    }
}
