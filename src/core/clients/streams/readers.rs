//! The streams that read one thing, and at which of their places.

use crate::table::Key;

/// See the module's page. In the order of their keys, in one piece: a map would take twice the memory, for
/// each symbol of each stream.
#[derive(Debug, Default)]
pub struct Readers(Vec<(Key, u32)>);

impl Readers {
    /// True if nobody reads it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many read it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: Key, place: u32) {
        let at = self.0.partition_point(|(key, _)| *key < stream);
        self.0.insert(at, (stream, place));
    }

    /// Removes a stream.
    pub fn remove(&mut self, stream: Key) {
        if let Ok(at) = self.0.binary_search_by_key(&stream, |(key, _)| *key) {
            self.0.remove(at);
        }
    }

    /// Each of them, with its place.
    pub fn iter(&self) -> impl Iterator<Item = (Key, u32)> {
        self.0.iter().copied()
    }
}
