//! A table of fixed capacity whose keys go stale when their entry leaves.
//!
//! Owns its entries. A [`Key`] is a place and a generation: after `remove`, the old key finds
//! nothing, also when the place is taken again. So an event that was on its way to a dead
//! connection cannot reach the next one in its place.
//!
//! It never grows beyond its capacity, and never moves an entry: it grows by [`Pages`].

use std::ops::Range;

/// Names one entry of a [`Table`], for as long as that entry lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    /// The key as one number, for a poller's token.
    pub fn token(self) -> usize {
        (self.generation as usize) << 32 | self.place as usize
    }

    /// The key that became this token.
    pub fn from_token(token: usize) -> Key {
        Key {
            place: token as u32,
            generation: (token >> 32) as u32,
        }
    }

    /// Its place in the table: below the table's capacity.
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// Places on one page.
const PAGE: usize = 64;

/// Places by their number, from 0 on. They come a page at a time, so growing copies nothing, leaves
/// no holes behind, and takes memory for less than a page of places that are not used.
#[derive(Debug)]
pub struct Pages<T>(Vec<Box<[T; PAGE]>>);

impl<T> Default for Pages<T> {
    /// No places yet.
    fn default() -> Pages<T> {
        Pages(Vec::new())
    }
}

impl<T: Default> Pages<T> {
    /// Brings as many pages as this place needs, and is the place.
    pub fn reach(&mut self, place: usize) -> &mut T {
        while self.0.len() <= place / PAGE {
            self.0.push(Box::new(std::array::from_fn(|_| T::default())));
        }
        &mut self.0[place / PAGE][place % PAGE]
    }

    /// This place, if its page has come.
    pub fn get(&self, place: usize) -> Option<&T> {
        Some(&self.0.get(place / PAGE)?[place % PAGE])
    }

    /// This place, if its page has come.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        Some(&mut self.0.get_mut(place / PAGE)?[place % PAGE])
    }

    /// All places of all pages, in order.
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|page| page.iter())
    }

    /// All places of all pages, in order.
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flat_map(|page| page.iter_mut())
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct Table<T> {
    places: Pages<Place<T>>,
    /// Places that were ever taken: those above it are new.
    used: usize,
    free: Vec<u32>,
    len: usize,
    capacity: usize,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    entry: Option<T>,
}

impl<T> Default for Place<T> {
    fn default() -> Place<T> {
        Place {
            generation: 0,
            entry: None,
        }
    }
}

impl<T> Table<T> {
    /// A table of at most `capacity` entries. Memory is taken as entries come.
    pub fn new(capacity: usize) -> Table<T> {
        Table {
            places: Pages::default(),
            used: 0,
            free: Vec::new(),
            len: 0,
            capacity: capacity.min(u32::MAX as usize),
        }
    }

    /// Puts an entry in. `None` when the table is full: the entry is dropped.
    pub fn insert(&mut self, entry: T) -> Option<Key> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.used < self.capacity => {
                self.used += 1;
                self.used as u32 - 1
            }
            None => return None,
        };
        self.len += 1;
        let slot = self.places.reach(place as usize);
        slot.entry = Some(entry);
        Some(Key {
            place,
            generation: slot.generation,
        })
    }

    /// Takes the entry out; its key is stale from now on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.places.get_mut(key.place())?;
        if slot.generation != key.generation {
            return None;
        }
        let entry = slot.entry.take()?;
        // The top half of a token stays below 2^30: the highest tokens belong to the driver.
        slot.generation = (slot.generation + 1) & 0x3fff_ffff;
        self.free.push(key.place);
        self.len -= 1;
        Some(entry)
    }

    /// The entry of this key, if it still lives.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.places.get(key.place())?;
        (slot.generation == key.generation)
            .then_some(slot.entry.as_ref())
            .flatten()
    }

    /// The entry of this key, if it still lives.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.places.get_mut(key.place())?;
        (slot.generation == key.generation)
            .then_some(slot.entry.as_mut())
            .flatten()
    }

    /// How many entries live.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Places that were ever taken: all entries are in those below.
    pub fn places(&self) -> usize {
        self.used
    }

    /// Whether none lives.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether one more would be refused.
    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// All living entries, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().enumerate().filter_map(|(place, slot)| {
            let key = Key {
                place: place as u32,
                generation: slot.generation,
            };
            slot.entry.as_ref().map(|entry| (key, entry))
        })
    }

    /// All living entries, in the order of their places.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.range_mut(0..usize::MAX)
    }

    /// The living entries of these places.
    pub fn range_mut(&mut self, places: Range<usize>) -> impl Iterator<Item = (Key, &mut T)> {
        let count = places.end.saturating_sub(places.start);
        self.places
            .iter_mut()
            .enumerate()
            .skip(places.start)
            .take(count)
            .filter_map(|(place, slot)| {
                let key = Key {
                    place: place as u32,
                    generation: slot.generation,
                };
                slot.entry.as_mut().map(|entry| (key, entry))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_even_when_its_place_is_taken_again() {
        let mut table = Table::new(2);
        let first = table.insert("first").expect("room for two");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second").expect("room for two");
        assert_eq!(second.place(), first.place());
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
        assert_eq!(Key::from_token(second.token()), second);
    }

    #[test]
    fn a_full_table_refuses_and_has_room_again_after_a_remove() {
        let mut table = Table::new(1);
        let key = table.insert(1).expect("room for one");
        assert!(table.is_full());
        assert_eq!(table.insert(2), None);
        table.remove(key);
        assert!(table.insert(3).is_some());
        assert_eq!(
            table.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(),
            [3]
        );
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_table_of_many_pages_finds_each_entry_and_goes_through_them_in_their_order() {
        let count = 3 * PAGE + 1;
        let mut table = Table::new(count);
        let keys: Vec<Key> = (0..count)
            .map(|n| table.insert(n).expect("room for all"))
            .collect();
        assert_eq!(table.insert(count), None);
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(table.get(*key), Some(&n));
        }
        assert_eq!(table.remove(keys[PAGE]), Some(PAGE));
        assert!(table.iter_mut().all(|(key, entry)| key.place() == *entry));
        let part = table.range_mut(PAGE - 1..PAGE + 2);
        assert_eq!(
            part.map(|(_, entry)| *entry).collect::<Vec<_>>(),
            [PAGE - 1, PAGE + 1]
        );
        assert_eq!(table.places(), count);
        let found: Vec<(Key, usize)> = table.iter().map(|(key, entry)| (key, *entry)).collect();
        let expected = (0..count).filter(|n| *n != PAGE).map(|n| (keys[n], n));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
}
