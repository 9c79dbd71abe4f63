//! The rows of a long list that a client picks: `sort`, `order`, `limit`, `offset`, `search`.
//!
//! A [`Choice`] looks at some rows a step. Those that match go into a heap, from which each step takes some:
//! so thousands of rows are never sorted in one piece, and twenty of them cost no more than they need.

use super::error::Error;
use super::list::ListKind;
use super::params::{Call, ParamValue, count, either_word, none_of};
use super::selection::{Selection, Sort};
use super::symbols::served_quote;
use super::view::View;
use crate::decimal::Decimal;
use crate::market::SymbolId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rows of one step: some 0.1 ms.
const ROWS_A_STEP: usize = 512;

/// The rows that a selection picks, in the making.
#[derive(Clone, Debug)]
pub struct Choice {
    pub selection: Selection,
    /// The query that has asked for it.
    query: Box<[u8]>,
    /// How many rows were looked at.
    seen: usize,
    matching: BinaryHeap<Ranked>,
    /// How many match; known when all were looked at.
    total: usize,
    passed_over: usize,
    chosen: Vec<SymbolId>,
}

/// A row, by what decides its place: the greatest comes first. A row without a value comes last.
type Ranked = (Option<Rank>, Reverse<usize>, SymbolId);

/// The value of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Ascending(Reverse<Decimal>),
    Descending(Decimal),
}

impl Choice {
    /// What a request picks. `None` if it says nothing about that.
    pub fn read(call: &Call<'_>) -> Result<Option<Choice>, Error> {
        let params = call.params(["sort", "order", "limit", "offset", "search"])?;
        if params.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [sort, order, limit, offset, search] = params;
        let sort = read_sort(&sort)?;
        let orders = [("asc", false), ("desc", true)];
        let descending = either_word(&order, ("order", "invalid_order"), orders)?;
        let limit = count(&limit, ("limit", "invalid_limit"), 1..=usize::MAX)?;
        let offset = count(&offset, ("offset", "invalid_offset"), 0..=usize::MAX)?;
        let selection = Selection {
            // An order without a value is that of the symbols.
            sort: sort.or(descending.map(|_| Sort::Symbol)),
            descending: descending == Some(true),
            limit,
            offset: offset.unwrap_or(0),
            search: Selection::needle(search.as_deref().unwrap_or_default()),
        };
        Ok(Some(Choice::new(selection, call.query.into())))
    }

    fn new(selection: Selection, query: Box<[u8]>) -> Choice {
        Choice {
            selection,
            query,
            seen: 0,
            matching: BinaryHeap::new(),
            total: 0,
            passed_over: 0,
            chosen: Vec::new(),
        }
    }

    /// The same choice, not begun.
    pub fn anew(&self) -> Choice {
        Choice::new(self.selection.clone(), self.query.clone())
    }

    /// The rows in the order in which they are chosen from: that of the symbols decides between equal
    /// values.
    pub fn arrange(&self, view: &View<'_>, symbols: &mut [SymbolId]) {
        if self.selection.sort.is_some() {
            let name = |symbol: &SymbolId| view.market.catalog.name(*symbol);
            symbols.sort_by(|one, other| name(one).cmp(name(other)));
        }
    }

    /// How many rows match.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The fields of the response.
    pub fn fields(&self) -> String {
        self.selection.fields(&self.query, self.total)
    }

    /// Looks at some of these rows, or takes some that match. Returns those that are chosen once there are no
    /// more.
    pub fn step(
        &mut self,
        view: &View<'_>,
        rows: &ListKind,
        symbols: &[SymbolId],
    ) -> Option<Vec<SymbolId>> {
        if self.seen < symbols.len() {
            let end = symbols.len().min(self.seen + ROWS_A_STEP);
            self.matching.reserve(symbols.len() - self.seen);
            for (place, symbol) in symbols.iter().enumerate().take(end).skip(self.seen) {
                self.look_at(view, rows, *symbol, place);
            }
            self.seen = end;
            self.total = self.matching.len();
            if end < symbols.len() {
                return None;
            }
        }
        let limit = self.selection.limit.unwrap_or(usize::MAX);
        for _ in 0..ROWS_A_STEP {
            if self.chosen.len() >= limit {
                break;
            }
            let Some((_, _, symbol)) = self.matching.pop() else {
                break;
            };
            match self.passed_over < self.selection.offset {
                true => self.passed_over += 1,
                false => self.chosen.push(symbol),
            }
        }
        let is_done = self.matching.is_empty() || self.chosen.len() >= limit;
        is_done.then(|| std::mem::take(&mut self.chosen))
    }

    /// Keeps a row if there is one for the symbol, and it matches.
    fn look_at(&mut self, view: &View<'_>, rows: &ListKind, symbol: SymbolId, place: usize) {
        let catalog = &view.market.catalog;
        let selection = &self.selection;
        if !selection.search.is_empty() && !selection.finds(catalog.name(symbol)) {
            return;
        }
        let source = match rows {
            ListKind::Quotes(source) => *source,
            ListKind::Category(_) | ListKind::Ecosystem => None,
        };
        let quote = served_quote(view, symbol, source);
        let is_listed = match rows {
            ListKind::Quotes(_) => quote.is_some(),
            ListKind::Category(_) => true,
            ListKind::Ecosystem => (catalog.ecosystem_entry(symbol)).is_some_and(|it| it.status),
        };
        if !is_listed {
            return;
        }
        let sort = selection.sort.unwrap_or(Sort::Symbol);
        let value = quote.and_then(|quote| sort.value(quote)).cloned();
        let rank = value.map(|value| match selection.descending {
            true => Rank::Descending(value),
            false => Rank::Ascending(Reverse(value)),
        });
        // Only between symbols is the order of equal values turned.
        let place = match selection.descending && sort == Sort::Symbol {
            true => usize::MAX - place,
            false => place,
        };
        self.matching.push((rank, Reverse(place), symbol));
    }
}

fn read_sort(value: &ParamValue<'_>) -> Result<Option<Sort>, Error> {
    let Some(text) = value.as_deref() else {
        return Ok(None);
    };
    let mut names = Sort::NAMES.iter();
    let found = names.find(|(name, _)| name.as_bytes() == text);
    let names = Sort::NAMES.map(|(name, _)| name);
    found.map(|(_, sort)| Some(*sort)).ok_or_else(|| none_of(text, ("sort", "invalid_sort"), names))
}
