//! A table of fixed capacity whose keys go stale when their entry leaves.
//!
//! Owns its entries. A [`Key`] is a place and a generation: after `remove`, the old key finds
//! nothing, also when the place is taken again. So an event that was on its way to a dead
//! connection cannot reach the next one in its place.
//!
//! It never grows beyond its capacity, and never moves an entry.

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

/// See the module's page.
#[derive(Debug)]
pub struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    len: usize,
    capacity: usize,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    entry: Option<T>,
}

impl<T> Table<T> {
    /// A table of at most `capacity` entries. Memory is taken as entries come.
    pub fn new(capacity: usize) -> Table<T> {
        Table {
            places: Vec::new(),
            free: Vec::new(),
            len: 0,
            capacity: capacity.min(u32::MAX as usize),
        }
    }

    /// Puts an entry in. `None` when the table is full: the entry is dropped.
    pub fn insert(&mut self, entry: T) -> Option<Key> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < self.capacity => {
                self.places.push(Place {
                    generation: 0,
                    entry: None,
                });
                self.places.len() as u32 - 1
            }
            None => return None,
        };
        self.len += 1;
        let slot = &mut self.places[place as usize];
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
        self.places
            .iter_mut()
            .enumerate()
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
}
