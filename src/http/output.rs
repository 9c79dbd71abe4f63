//! The output: the bytes that a connection has to send. They are written bytes, and between them parts that
//! are not copied.
//!
//! Owns the written bytes and the parts until all of them are sent. Some parts are shared. Sent bytes stay in
//! the buffer until the output is empty or shrunk.
//!
//! Invariant: the positions of the parts in the written bytes ascend. An unsent part comes behind all sent
//! bytes.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Shared parts of fewer bytes in all are copied: for the kernel, one more piece costs as much as copying
/// this many bytes.
const MIN_SHARED: usize = 1024;

/// Shorter given bytes are copied, because a part costs an allocation.
const MIN_GIVEN: usize = 16 * 1024;

/// Smaller buffers are not shrunk.
const MIN_SHRUNK: usize = 4 * 1024;

/// No bytes.
pub static EMPTY: Output = Output { bytes: Vec::new(), sent: 0, shared: None };

/// Bytes to be sent.
#[derive(Clone, Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// Number of written bytes that were sent.
    sent: usize,
    /// The parts. Boxed, because most responses have none, and many connections are idle.
    shared: Option<Box<Shared>>,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    parts: Vec<Part>,
    /// The first part that is not completely sent.
    next: usize,
    /// Unsent bytes of all parts.
    left: usize,
}

#[derive(Clone, Debug)]
struct Part {
    /// The part comes before the written byte at this position.
    at: usize,
    bytes: Bytes,
    /// The unsent bytes.
    range: Range<usize>,
}

#[derive(Clone, Debug)]
enum Bytes {
    Shared(Arc<[u8]>),
    Given(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Shared(bytes) => bytes,
            Bytes::Given(bytes) => bytes,
        }
    }
}

impl Output {
    /// The written bytes, to append to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends bytes. Long ones are not copied: copying a megabyte takes longer than a turn of the loop may
    /// take. The spare capacity of their buffer is freed, because a client may take long to read them.
    pub fn give(&mut self, mut bytes: Vec<u8>) {
        if bytes.len() < MIN_GIVEN {
            return self.bytes.extend_from_slice(&bytes);
        }
        bytes.shrink_to_fit();
        let range = 0..bytes.len();
        let shared = self.shared.get_or_insert_default();
        shared.left += range.len();
        shared.parts.push(Part { at: self.bytes.len(), bytes: Bytes::Given(bytes), range });
    }

    /// Appends a part of shared bytes.
    pub fn share(&mut self, bytes: &Arc<[u8]>, range: Range<usize>) {
        let len = range.len();
        self.share_all(&[(bytes.clone(), range)], len);
    }

    /// Appends parts of shared buffers, one after another. They have `len` bytes together.
    pub fn share_all(&mut self, parts: &[(Arc<[u8]>, Range<usize>)], len: usize) {
        if len < MIN_SHARED {
            let parts = parts.iter().map(|(bytes, range)| &bytes[range.clone()]);
            return parts.for_each(|part| self.bytes.extend_from_slice(part));
        }
        let at = self.bytes.len();
        let shared = self.shared.get_or_insert_default();
        shared.left += len;
        shared.parts.extend(parts.iter().map(|(bytes, range)| Part {
            at,
            bytes: Bytes::Shared(bytes.clone()),
            range: range.clone(),
        }));
    }

    /// A copy that shares the shared parts. `None` if it would copy more than `most` bytes or a given part,
    /// or if some bytes are sent.
    pub fn copy(&self, most: usize) -> Option<Output> {
        let parts = self.shared.as_deref().map_or(&[][..], |shared| &shared.parts);
        let is_small = parts.iter().all(|part| matches!(part.bytes, Bytes::Shared(_)));
        (is_small && self.bytes.len() <= most && self.sent == 0).then(|| self.clone())
    }

    /// The unsent bytes as one shared part.
    pub fn joined(&self) -> Output {
        let (mut joined, bytes) = (Output::default(), self.to_vec());
        joined.share(&bytes.into(), 0..self.len());
        joined
    }

    /// Appends another output. None of its bytes may be sent.
    pub fn append(&mut self, other: &Output) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        if let Some(other) = other.shared.as_deref().filter(|other| other.left > 0) {
            let shared = self.shared.get_or_insert_default();
            shared.left += other.left;
            let moved = |part: &Part| Part { at: begin + part.at, ..part.clone() };
            shared.parts.extend(other.parts.iter().map(moved));
        }
    }

    /// The unsent bytes, if they are one piece: no part is left.
    #[inline]
    pub fn whole(&self) -> Option<&[u8]> {
        let is_whole = self.shared.as_ref().is_none_or(|shared| shared.left == 0);
        is_whole.then(|| &self.bytes[self.sent..])
    }

    /// Passes the unsent pieces to `take` in order until `take` returns false. No piece is empty. An iterator
    /// would take four times as long.
    pub fn each<'a>(&'a self, mut take: impl FnMut(&'a [u8]) -> bool) {
        let mut begin = self.sent;
        let parts = self.shared.as_deref().filter(|shared| shared.left > 0);
        for part in parts.map_or(&[][..], |shared| &shared.parts[shared.next..]) {
            if begin < part.at && !take(&self.bytes[begin..part.at]) {
                return;
            }
            begin = part.at;
            if !take(&part.bytes[part.range.clone()]) {
                return;
            }
        }
        if begin < self.bytes.len() {
            take(&self.bytes[begin..]);
        }
    }

    /// A copy of the unsent bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.each(|piece| {
            all.extend_from_slice(piece);
            true
        });
        all
    }

    /// Number of unsent bytes.
    pub fn len(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, |shared| shared.left);
        self.bytes.len() - self.sent + shared
    }

    /// True if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that this many bytes were sent.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "more sent than there was");
        if count >= self.len() { self.clear() } else { self.advance_in_part(count) }
    }

    /// Like `advance`, if unsent bytes remain.
    fn advance_in_part(&mut self, count: usize) {
        let mut left = count;
        while let Some(shared) = self.shared.as_deref_mut()
            && let Some(part) = shared.parts.get_mut(shared.next)
        {
            let written = left.min(part.at - self.sent);
            self.sent += written;
            left -= written;
            let of_part = left.min(part.range.len());
            part.range.start += of_part;
            shared.left -= of_part;
            left -= of_part;
            if !part.range.is_empty() {
                return;
            }
            part.bytes = Bytes::Given(Vec::new());
            shared.next += 1;
        }
        self.sent += left;
    }

    /// Frees sent bytes and spare capacity, if these are at least a quarter of a buffer: a client may take
    /// long to read the rest.
    pub fn shrink(&mut self) {
        if let Some(shared) = self.shared.as_deref_mut()
            && let Some(Part { bytes: Bytes::Given(bytes), range, .. }) =
                shared.parts.get_mut(shared.next)
            && range.start >= bytes.len() / 4
        {
            bytes.drain(..range.start);
            bytes.shrink_to_fit();
            *range = 0..bytes.len();
        }
        let capacity = self.bytes.capacity();
        if capacity >= MIN_SHRUNK && self.bytes.len() - self.sent <= capacity - capacity / 4 {
            self.bytes = self.bytes[self.sent..].to_vec();
            if let Some(shared) = self.shared.as_deref_mut() {
                shared.parts.drain(..shared.next);
                shared.next = 0;
                shared.parts.iter_mut().for_each(|part| part.at -= self.sent);
            }
            self.sent = 0;
        }
    }

    /// Takes the buffers of `spare`, if this output has none. Shared parts may wait to be sent without one.
    pub fn borrow(&mut self, spare: &mut Output) {
        debug_assert!(spare.is_empty(), "bytes of another client");
        if self.bytes.capacity() == 0 && self.is_empty() {
            std::mem::swap(self, spare);
        }
    }

    /// Gives up the buffers after all is sent. They go to `spare` if it has none and they take at most `most`
    /// bytes. Otherwise they are freed.
    pub fn give_back(&mut self, spare: &mut Output, most: usize) {
        debug_assert!(self.is_empty(), "there are unsent bytes");
        if spare.bytes.capacity() == 0 && self.capacity() <= most {
            std::mem::swap(self, spare);
        } else {
            *self = Output::default();
        }
    }

    /// The memory that the buffers take, without given and shared parts.
    pub fn capacity(&self) -> usize {
        let parts = self.shared.as_ref().map_or(0, |shared| shared.parts.capacity());
        self.bytes.capacity() + parts * size_of::<Part>()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
        if let Some(shared) = &mut self.shared {
            shared.parts.clear();
            (shared.next, shared.left) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output of written and shared runs of bytes, and all of it in one.
    fn sample(lengths: &[usize]) -> (Output, Vec<u8>) {
        let (mut output, mut all) = (Output::default(), Vec::new());
        for (at, length) in lengths.iter().enumerate() {
            let bytes: Vec<u8> = (0..length + 9).map(|byte| (byte + at * 7) as u8).collect();
            let range = 5..length + 5;
            all.extend_from_slice(&bytes[range.clone()]);
            match at % 2 {
                0 => output.bytes().extend_from_slice(&bytes[range]),
                _ => output.share(&bytes.into(), range),
            }
        }
        (output, all)
    }

    #[test]
    fn what_is_given_comes_behind_what_was_there_and_is_partly_sent() {
        let mut output = Output::default();
        let shared: Arc<[u8]> = vec![b's'; 2 * MIN_SHARED].into();
        output.bytes().extend_from_slice(b"head");
        output.share(&shared, 0..shared.len());
        output.bytes().extend_from_slice(b"more");
        output.advance(6);
        output.give(vec![b'g'; MIN_GIVEN]);
        let mut found = Vec::new();
        output.each(|piece| {
            found.extend_from_slice(piece);
            true
        });
        let expected = [&shared[2..], b"more", &[b'g'; MIN_GIVEN]].concat();
        assert_eq!((output.len(), found), (expected.len(), expected));
    }

    #[test]
    fn what_a_client_does_not_take_is_held_without_what_it_has_taken() {
        let mut output = Output::default();
        let all: Vec<u8> = (0..MIN_SHRUNK + 4 * MIN_GIVEN).map(|byte| byte as u8).collect();
        let (written, given) = all.split_at(MIN_SHRUNK);
        output.bytes().reserve(8 * MIN_SHRUNK);
        output.bytes().extend_from_slice(written);
        let mut buffer = Vec::with_capacity(9 * MIN_GIVEN);
        buffer.extend_from_slice(given);
        output.give(buffer);
        let held = |output: &Output| {
            let parts = output.shared.iter().flat_map(|shared| &shared.parts);
            let given = parts.filter_map(|part| match &part.bytes {
                Bytes::Given(bytes) => Some(bytes.capacity()),
                Bytes::Shared(_) => None,
            });
            output.bytes.capacity() + given.sum::<usize>()
        };
        for sent in [0, MIN_SHRUNK / 2, MIN_SHRUNK / 2 + 1, MIN_GIVEN, 2 * MIN_GIVEN] {
            output.advance(sent);
            output.shrink();
            assert_eq!(output.to_vec(), all[all.len() - output.len()..]);
            assert!(held(&output) <= output.len() * 4 / 3 + MIN_SHRUNK, "{}", held(&output));
        }
        assert_eq!(output.len(), MIN_GIVEN - 1);
    }

    #[test]
    fn whatever_the_kernel_takes_at_a_time_every_byte_is_sent_once_and_in_order() {
        let lengths = [300, 2000, 10, 3, 0, 1500, 0, 1024, 77, 1024, 1];
        for count in (0..=lengths.len()).map(|count| &lengths[..count]) {
            for step in [1, 7, 299, 300, 301, 1024, 2300, 10_000] {
                let (mut output, all) = sample(count);
                let mut sent = Vec::new();
                while !output.is_empty() {
                    let pending = output.to_vec();
                    assert_eq!(pending, all[sent.len()..]);
                    let some = step.min(output.len());
                    sent.extend_from_slice(&pending[..some]);
                    output.advance(some);
                }
                assert_eq!(sent, all);
                assert!(output.is_empty());
            }
        }
    }

    #[test]
    fn what_is_written_while_some_is_pending_comes_behind_it() {
        let (mut output, mut all) = sample(&[20, 3000]);
        output.advance(1500);
        output.bytes().extend_from_slice(b"more");
        output.share(&vec![b'x'; 2000].into(), 0..2000);
        all.extend_from_slice(b"more");
        all.extend_from_slice(&[b'x'; 2000]);
        assert_eq!(output.to_vec(), all[1500..]);
        assert_eq!(output.whole(), None);
    }

    #[test]
    fn small_parts_are_copied_and_an_emptied_output_lends_its_buffers() {
        let (mut output, all) = sample(&[3, 900]);
        assert_eq!(output.whole(), Some(&all[..]));
        let mut spare = Output::default();
        output.advance(903);
        output.give_back(&mut spare, usize::MAX);
        assert_eq!(output.capacity(), 0);
        assert!(spare.is_empty() && spare.capacity() >= 903);
        output.borrow(&mut spare);
        assert!(output.capacity() >= 903 && spare.capacity() == 0);
        // One whose bytes are all shared has no buffer, and needs none of another client.
        let mut other = sample(&[7, 3000]).0.joined();
        let pending = other.to_vec();
        other.borrow(&mut spare);
        assert_eq!((other.to_vec(), spare.len()), (pending, 0));
        // Large ones are let go, and so is a second one.
        output.bytes().push(b'x');
        output.advance(1);
        output.give_back(&mut spare, 902);
        assert_eq!((output.capacity(), spare.capacity()), (0, 0));
        let mut spare = sample(&[7]).0;
        let (mut output, _) = sample(&[9]);
        output.advance(9);
        output.give_back(&mut spare, usize::MAX);
        assert_eq!((output.capacity(), spare.len()), (0, 7));
    }
}
