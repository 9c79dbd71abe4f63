//! The numbers of symbols and sources.
//!
//! Each number is assigned once and keeps its meaning while the process lives.

/// One symbol: its place among all symbols ever seen. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// One source: its place in `Config::sources`, which is the order of failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

impl SymbolId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// No source: the engine of the cluster, whose name is looked up like those of exchanges.
    pub const ENGINE: SourceId = SourceId(u16::MAX);

    /// The number as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
