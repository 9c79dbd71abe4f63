//! A set of places that are taken out in turn: no place comes again before all others in the set have come.

/// A set of places, one bit each.
#[derive(Debug, Default)]
pub struct PlaceSet {
    words: Vec<u64>,
    len: usize,
    /// Where the search for the next place begins.
    next: usize,
}

impl PlaceSet {
    /// True if there is no place.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of heap memory that the set takes.
    pub fn held(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Adds a place. Returns false if it is there already.
    pub fn insert(&mut self, place: usize) -> bool {
        let (word, bit) = (place / 64, 1 << (place % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes a place. Returns true if it was there.
    pub fn remove(&mut self, place: usize) -> bool {
        let (word, bit) = (place / 64, 1 << (place % 64));
        let is_there = self.words.get(word).is_some_and(|word| word & bit != 0);
        if is_there {
            self.words[word] &= !bit;
            self.len -= 1;
        }
        is_there
    }

    /// Takes out the next place behind the one that was taken out last. Behind the last place comes the first
    /// one.
    pub fn take(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (words, first) = (self.words.len(), self.next / 64);
        let place = (0..=words).find_map(|step| {
            let at = (first + step) % words;
            let passed = if step == 0 { self.next % 64 } else { 0 };
            let word = self.words[at] >> passed << passed;
            (word != 0).then(|| at * 64 + word.trailing_zeros() as usize)
        })?;
        self.remove(place);
        self.next = place + 1;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_in_turn_and_each_once() {
        let mut set = PlaceSet::default();
        assert_eq!(set.take(), None);
        for place in [200, 3, 64, 3] {
            assert_eq!(set.insert(place), place != 3 || set.len < 3);
        }
        assert_eq!(set.take(), Some(3));
        assert!(set.insert(3) && set.insert(0));
        let rest: Vec<usize> = std::iter::from_fn(|| set.take()).collect();
        assert_eq!(rest, [64, 200, 0, 3], "those before come again after the others");
        assert!(set.is_empty());
    }

    #[test]
    fn the_last_place_of_a_word_and_the_first_of_the_next_are_found() {
        let mut set = PlaceSet::default();
        for place in [63, 64, 127, 128] {
            set.insert(place);
        }
        let all: Vec<usize> = std::iter::from_fn(|| set.take()).collect();
        assert_eq!(all, [63, 64, 127, 128]);
        set.insert(128);
        assert_eq!(set.take(), Some(128), "also from behind the last word");
    }
}
