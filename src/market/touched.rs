//! The symbols that have changed since somebody last looked, each once.
//!
//! [`Touched`] owns their list, which is never longer than the number of symbols. While nobody watches, to
//! note a change costs the check of one flag.

use super::symbol::SymbolId;
use std::collections::VecDeque;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Touched {
    is_watched: bool,
    /// By symbol: true if it is in the list.
    is_listed: Vec<bool>,
    list: VecDeque<SymbolId>,
}

impl Touched {
    /// Begins to watch, or stops and forgets what was noted.
    pub fn watch(&mut self, is_watched: bool) {
        match is_watched {
            true => self.is_watched = true,
            false => *self = Touched::default(),
        }
    }

    /// Notes a change.
    #[inline]
    pub(super) fn note(&mut self, symbol: SymbolId) {
        if !self.is_watched {
            return;
        }
        let at = symbol.index();
        if self.is_listed.len() <= at {
            self.is_listed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.is_listed[at], true) {
            self.list.push_back(symbol);
        }
    }

    /// True if no change is noted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes out the symbol that was noted first.
    pub fn take(&mut self) -> Option<SymbolId> {
        let symbol = self.list.pop_front()?;
        self.is_listed[symbol.index()] = false;
        Some(symbol)
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
        assert_eq!(touched.take(), Some(SymbolId(3)));
        touched.note(SymbolId(3));
        let rest: Vec<u32> = std::iter::from_fn(|| touched.take()).map(|it| it.0).collect();
        assert_eq!(rest, [1, 3]);
        touched.note(SymbolId(3));
        touched.watch(false);
        touched.note(SymbolId(3));
        assert!(touched.is_empty());
    }
}
