//! The streams that read one thing, and at which of their places.

use crate::table::Key;

/// See the module's page.
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
    pub fn add(&mut self, stream: Key, place: usize) {
        let at = self.0.partition_point(|(key, _)| *key < stream);
        self.0.insert(at, (stream, place as u32));
    }

    /// Removes a stream.
    pub fn remove(&mut self, stream: Key) {
        if let Ok(at) = self.0.binary_search_by_key(&stream, |(key, _)| *key) {
            self.0.remove(at);
        }
    }

    /// Passes each to `note`.
    pub fn each(&self, mut note: impl FnMut(Key, usize)) {
        for (stream, place) in &self.0 {
            note(*stream, *place as usize);
        }
    }
}
