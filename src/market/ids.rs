//! The numbers that stand for symbols and sources everywhere.
//!
//! Each number is given once and keeps its meaning while the process lives, so it may be kept
//! anywhere.

/// One symbol, as a number: its place among all symbols ever met. It is never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// One source: its place in `Config::sources`, which is the order of failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

impl SymbolId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// As an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
