//! The symbols that have changed since they were last taken out, each once.
//!
//! [`Touched`] owns the set of these symbols. While nobody watches, noting a change only checks one
//! flag.

use super::symbol::SymbolId;
use crate::place_set::PlaceSet;

/// The changed symbols. `None` while nobody watches.
#[derive(Debug, Default)]
pub struct Touched(Option<PlaceSet>);

impl Touched {
    /// Starts to watch with an empty set, or stops watching.
    pub fn watch(&mut self, is_watched: bool) {
        self.0 = is_watched.then(PlaceSet::default);
    }

    #[inline]
    pub(super) fn note(&mut self, symbol: SymbolId) {
        if let Some(places) = &mut self.0 {
            places.insert(symbol.index());
        }
    }

    /// True if no change is noted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(PlaceSet::is_empty)
    }

    /// Takes out the next symbol in turn.
    pub fn take(&mut self) -> Option<SymbolId> {
        let place = self.0.as_mut()?.take()?;
        Some(SymbolId(place as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_listed_once_until_it_is_taken_out() {
        let mut touched = Touched::default();
        touched.note(SymbolId(3));
        assert!(touched.is_empty(), "nobody watches");
        touched.watch(true);
        for symbol in [3, 1, 3, 3] {
            touched.note(SymbolId(symbol));
        }
        assert_eq!(touched.take(), Some(SymbolId(1)));
        touched.note(SymbolId(1));
        let rest: Vec<u32> = std::iter::from_fn(|| touched.take()).map(|it| it.0).collect();
        assert_eq!(rest, [3, 1]);
        touched.note(SymbolId(3));
        touched.watch(false);
        touched.note(SymbolId(3));
        assert!(touched.is_empty());
    }
}
