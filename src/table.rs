//! A table of fixed capacity whose keys go stale when their entry is removed.
//!
//! [`Table`] owns its entries. A [`Key`] is the index of a slot and a generation. Each new entry in
//! a slot has the next generation. After `remove`, the old key finds nothing, even when its slot
//! holds a new entry. So an event for a closed connection cannot reach the next connection in the
//! same slot.
//!
//! A table never grows beyond its capacity, and never moves an entry: its memory comes in
//! [`Pages`].

use std::ops::Range;

/// Names one entry of a [`Table`] for as long as that entry lives.
///
/// Invariant: `index < 2^INDEX_BITS`, and `generation <= LAST_GENERATION`, so that both fit a
/// token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Bits of a token that hold the index: half of them where a `usize` has 64, and 20 (a million
/// entries) where it has 32.
const INDEX_BITS: u32 = if usize::BITS >= 64 { 32 } else { 20 };

/// Most entries of a table.
const MAX_CAPACITY: usize = usize::MAX >> (usize::BITS - INDEX_BITS);

/// The generation after which a slot starts again at 0: 2^32 - 2, or 4,094 where a `usize` has 32
/// bits. A key that is older than this many generations could find another entry. One generation is
/// left out, so the highest 2^[`INDEX_BITS`] numbers are never tokens of a key: the poller uses
/// them for other tokens.
const LAST_GENERATION: u32 = ((usize::MAX >> INDEX_BITS) - 1) as u32;

impl Key {
    /// The key as one number, for a poller's token.
    pub fn token(self) -> usize {
        (self.generation as usize) << INDEX_BITS | self.index as usize
    }

    /// The key whose token this is.
    pub fn from_token(token: usize) -> Key {
        Key { index: (token & MAX_CAPACITY) as u32, generation: (token >> INDEX_BITS) as u32 }
    }

    /// The index of the slot.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// The generation: it tells entries apart that were in the same slot.
    pub fn generation(self) -> u32 {
        self.generation
    }
}

/// Elements of one page.
const PAGE: usize = 64;

/// A growable array that allocates a page of elements at a time, so growing copies nothing and
/// leaves no freed blocks behind. Less than a page of its memory is unused.
#[derive(Debug)]
pub struct Pages<T>(Vec<Box<[T; PAGE]>>);

impl<T> Default for Pages<T> {
    /// An array without elements.
    fn default() -> Pages<T> {
        Pages(Vec::new())
    }
}

impl<T: Default> Pages<T> {
    /// The element at this index; allocates the pages up to it where they are missing.
    pub fn grow_to(&mut self, index: usize) -> &mut T {
        while self.0.len() <= index / PAGE {
            self.0.push(Box::new(std::array::from_fn(|_| T::default())));
        }
        &mut self.0[index / PAGE][index % PAGE]
    }

    /// The element at this index, if its page is allocated.
    pub fn get(&self, index: usize) -> Option<&T> {
        Some(&self.0.get(index / PAGE)?[index % PAGE])
    }

    /// The element at this index, if its page is allocated.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        Some(&mut self.0.get_mut(index / PAGE)?[index % PAGE])
    }

    /// The elements of all pages, in order.
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|page| page.iter())
    }

    /// The elements of all pages, in order.
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flat_map(|page| page.iter_mut())
    }
}

/// A table of at most `capacity` entries. See the module documentation.
///
/// Invariant: of the slots below `used`, those that `free` does not list have an entry.
#[derive(Debug)]
pub struct Table<T> {
    slots: Pages<Slot<T>>,
    /// Slots that have ever held an entry: those with an index below this.
    used: usize,
    free: Vec<u32>,
    capacity: usize,
    /// The index of the first slot. Tables whose indexes do not overlap can share one range of keys.
    first: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    entry: Option<T>,
}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot { generation: 0, entry: None }
    }
}

impl<T> Slot<T> {
    /// The key of the entry in this slot, which has this index.
    fn key(&self, index: usize) -> Key {
        Key { index: index as u32, generation: self.generation }
    }
}

impl<T> Table<T> {
    /// A table of at most `capacity` entries, or of `MAX_CAPACITY` if that is less. It allocates
    /// memory as entries are inserted.
    pub fn new(capacity: usize) -> Table<T> {
        Table::behind(0, capacity)
    }

    /// True if the key's index is not below this table's first one. No other table may come behind
    /// this one.
    #[inline]
    pub fn may_own(&self, key: Key) -> bool {
        key.index() >= self.first
    }

    /// Like `new`, but the first key has the index `first`. If the indexes of two tables do not overlap, a
    /// key of one table finds nothing in the other.
    pub fn behind(first: usize, capacity: usize) -> Table<T> {
        let first = first.min(MAX_CAPACITY);
        Table {
            slots: Pages::default(),
            used: 0,
            free: Vec::new(),
            capacity: capacity.min(MAX_CAPACITY - first),
            first,
        }
    }

    /// Inserts an entry. Returns `None` and drops the entry when the table is full.
    pub fn insert(&mut self, entry: T) -> Option<Key> {
        self.insert_with(|_| entry)
    }

    /// Inserts an entry that is made from its key. Returns `None` when the table is full.
    pub fn insert_with(&mut self, entry: impl FnOnce(Key) -> T) -> Option<Key> {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None if self.used < self.capacity => {
                self.used += 1;
                self.used - 1
            }
            None => return None,
        };
        let slot = self.slots.grow_to(index);
        let key = slot.key(self.first + index);
        slot.entry = Some(entry(key));
        Some(key)
    }

    /// Removes and returns the entry of this key. The key is stale from then on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slot_mut(key)?;
        let entry = slot.entry.take()?;
        slot.generation = match slot.generation {
            LAST_GENERATION => 0,
            generation => generation + 1,
        };
        self.free.push(key.index - self.first as u32);
        Some(entry)
    }

    /// The entry of this key, unless the key is stale.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index().checked_sub(self.first)?)?;
        slot.entry.as_ref().filter(|_| slot.generation == key.generation)
    }

    /// The entry of this key, unless the key is stale.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slot_mut(key)?.entry.as_mut()
    }

    fn slot_mut(&mut self, key: Key) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(key.index().checked_sub(self.first)?)?;
        (slot.generation == key.generation).then_some(slot)
    }

    /// The key of the entry with this index, if there is one.
    pub fn at(&self, index: usize) -> Option<Key> {
        let slot = self.slots.get(index.checked_sub(self.first)?)?;
        slot.entry.as_ref().map(|_| slot.key(index))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.used - self.free.len()
    }

    /// The number of slots that have ever held an entry.
    pub fn slots(&self) -> usize {
        self.used
    }

    /// True if the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries with their keys, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, slot)| Some((slot.key(self.first + at), slot.entry.as_ref()?)))
    }

    /// The entries in these slots, counted from the first one of this table, with their keys.
    pub fn range_mut(&mut self, slots: Range<usize>) -> impl Iterator<Item = (Key, &mut T)> {
        let first = self.first;
        let places = self.slots.iter_mut().enumerate();
        let places = places.skip(slots.start).take(slots.len());
        places.filter_map(move |(at, slot)| Some((slot.key(first + at), slot.entry.as_mut()?)))
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
        assert_eq!(second.index(), first.index());
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
        assert_eq!(Key::from_token(second.token()), second);
    }

    #[test]
    fn tokens_keep_their_keys_and_leave_the_highest_numbers_free() {
        let last = Key { index: MAX_CAPACITY as u32, generation: LAST_GENERATION };
        for index in [0, 1, last.index] {
            for generation in [0, 1, last.generation] {
                let key = Key { index, generation };
                assert_eq!(Key::from_token(key.token()), key);
            }
        }
        assert_eq!(last.token(), usize::MAX - MAX_CAPACITY - 1);
        const { assert!(MAX_CAPACITY >= 1_000_000, "the most that may be configured") };
    }

    #[test]
    fn a_key_finds_nothing_in_a_table_with_other_indexes() {
        let (mut low, mut high) = (Table::new(2), Table::behind(2, 1));
        let (first, second) = (low.insert("low"), high.insert("high"));
        let (first, second) = first.zip(second).expect("room in both");
        assert_eq!((first.index(), second.index()), (0, 2));
        assert_eq!([high.at(2), high.at(1), high.at(3)], [Some(second), None, None]);
        assert_eq!((low.get(second), high.get(first)), (None, None));
        assert_eq!((low.remove(second), high.remove(first)), (None, None));
        assert_eq!((low.get(first), high.get(second)), (Some(&"low"), Some(&"high")));
        assert_eq!(high.range_mut(0..1).count(), 1);
        assert_eq!(high.remove(second), Some("high"));
        assert_eq!(high.insert("again").map(Key::index), Some(2));
    }

    #[test]
    fn a_slot_starts_again_after_its_last_generation() {
        let mut table = Table::new(1);
        table.slots.grow_to(0).generation = LAST_GENERATION;
        let last = table.insert("last").expect("room for one");
        table.remove(last);
        let first = table.insert("first").expect("room for one");
        assert_eq!(first.generation, 0);
        assert_eq!(table.get(last), None);
    }

    #[test]
    fn a_full_table_refuses_and_has_room_again_after_a_remove() {
        let mut table = Table::new(1);
        let key = table.insert(1).expect("room for one");
        assert_eq!(table.insert(2), None);
        table.remove(key);
        assert!(table.insert(3).is_some());
        assert_eq!(table.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), [3]);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_table_of_many_pages_finds_each_entry_and_goes_through_them_in_their_order() {
        let count = 3 * PAGE + 1;
        let mut table = Table::new(count);
        let keys: Vec<Key> = (0..count).map(|n| table.insert(n).expect("room for all")).collect();
        assert_eq!(table.insert(count), None);
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(table.get(*key), Some(&n));
        }
        assert_eq!(table.remove(keys[PAGE]), Some(PAGE));
        assert!(table.range_mut(0..usize::MAX).all(|(key, entry)| key.index() == *entry));
        let part = table.range_mut(PAGE - 1..PAGE + 2);
        assert_eq!(part.map(|(_, entry)| *entry).collect::<Vec<_>>(), [PAGE - 1, PAGE + 1]);
        assert_eq!(table.slots(), count);
        let found: Vec<(Key, usize)> = table.iter().map(|(key, entry)| (key, *entry)).collect();
        let expected = (0..count).filter(|n| *n != PAGE).map(|n| (keys[n], n));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
}
