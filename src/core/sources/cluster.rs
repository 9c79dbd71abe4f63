//! What the cluster tells and asks the sources.

use super::Sources;
use super::replica::{Outbound, Role};
use crate::core::context::Context;
use crate::core::history::History;
use crate::market::SourceId;
use crate::replication::{Entry, Markets, SeriesPart};
use crate::time::Now;
use std::time::Duration;

impl Sources {
    /// The number of sources, those that have ended included.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// What this node does for a source.
    pub fn role(&self, source: SourceId) -> Role {
        self.all[source.index()].role()
    }

    /// Gives a source a role.
    pub fn set_role(&mut self, source: SourceId, role: Role, cx: &mut Context) {
        self.all[source.index()].set_role(role, cx);
    }

    /// Has a source collect, with what the last collector has left of the budget, and so many milliseconds
    /// ago.
    pub fn collect(
        &mut self,
        source: SourceId,
        left: Option<(u64, u64)>,
        is_halved: bool,
        cx: &mut Context,
    ) {
        self.all[source.index()].collect(left, is_halved, cx);
    }

    /// No other node spends of the budget any more.
    pub fn use_whole_budget(&mut self, source: SourceId, cx: &Context) {
        self.all[source.index()].use_whole_budget(cx.now);
    }

    /// What a renewal tells to be left of the budget, and how much was spent by then.
    pub fn budget_to_tell(&self, source: SourceId, now: Now) -> (u64, u64) {
        self.all[source.index()].budget_to_tell(now)
    }

    /// What is left of the budget, when nothing more is spent.
    pub fn budget_left(&self, source: SourceId, now: Now) -> u64 {
        self.all[source.index()].budget_left(now)
    }

    /// The engine has taken the renewal that told so.
    pub fn note_told(&mut self, source: SourceId, spent: u64, cx: &Context) {
        self.all[source.index()].note_told(spent, cx.now);
    }

    /// Has the market list written once more.
    pub fn tell_list(&mut self, source: SourceId) {
        self.all[source.index()].list_changed();
    }

    /// Takes out what the other nodes are to be told next of a source.
    pub fn next_told(&mut self) -> Option<(SourceId, Outbound)> {
        let mut all = (0..).map(SourceId).zip(&mut self.all);
        all.find_map(|(id, source)| Some((id, source.next_told()?)))
    }

    /// Applies an entry of the collector that was written so long ago.
    pub fn follow_entry(
        &mut self,
        source: SourceId,
        entry: Entry,
        age: Duration,
        history: &mut History,
        cx: &mut Context,
    ) {
        self.all[source.index()].follow_entry(entry, age, history, cx);
    }

    /// Takes in the market list of the collector. `false`: one is being applied.
    pub fn follow_list(&mut self, source: SourceId, list: Markets, cx: &mut Context) -> bool {
        self.all[source.index()].follow_list(list, cx)
    }

    /// Another node asks for candles.
    pub fn asked(
        &mut self,
        source: SourceId,
        series: &SeriesPart,
        history: &mut History,
        cx: &mut Context,
    ) {
        self.all[source.index()].asked(series, history, cx);
    }

    /// Answers one of the requests of other nodes that can be.
    pub fn answer_asked(&mut self, source: SourceId, history: &History, cx: &Context) {
        self.all[source.index()].answer_asked(history, cx);
    }
}
