//! What becomes of a source when the configuration is read again.

use super::Source;
use crate::core::context::Context;
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::task::Task;
use crate::job_queue::JobQueue;

impl Source {
    /// Takes in new settings. Requests that these concern end, and are due again.
    pub fn reconfigure(&mut self, markets: bool, route: bool, cx: &mut Context) {
        self.schedule.reconfigure(&cx.config, cx.now.mono);
        let is_list = |request: &RequestInFlight| *request.task() == Task::Markets;
        self.put_back_all(|request| route || markets && is_list(request), cx);
        if route {
            self.connections.reroute(&self.schedule.profile, cx);
        }
        if markets {
            self.schedule.list_due = cx.now.mono;
            self.schedule.round.abandon();
            // A series that is closed, or whose market has no listing, is followed no longer.
            let (id, catalog) = (self.id, &cx.market.catalog);
            self.schedule.candles.retain(|key| {
                let is_listed = !catalog.has_list(id) || catalog.listing(id, key.symbol).is_some();
                is_listed && cx.market.charts.get(*key).is_some()
            });
        }
        self.wake_up(cx.now);
    }

    /// It is configured no longer: its requests end, its connections are closed, and no client need wait
    /// for it.
    pub fn end(&mut self, cx: &mut Context) {
        self.put_back_all(|_| true, cx);
        self.connections.close_all(cx);
        self.jobs = JobQueue::default();
        self.schedule.candles.retain(|_| false);
        self.has_ended = true;
        self.wake_at = None;
    }

    /// Asks no more of its exchange than a source that has ended leaves, if that had the same id or the same
    /// address: the exchange takes both for one.
    pub fn heed(&mut self, ended: &Source, cx: &mut Context) {
        let (own, other) = (&self.schedule.profile, &ended.schedule.profile);
        let is_same = (own.id == other.id || own.url == other.url)
            && own.dialect.name() == other.dialect.name();
        if ended.has_ended && is_same {
            self.schedule.budget.heed(&ended.schedule.budget, cx.now.mono);
            self.schedule.backoff.heed(&ended.schedule.backoff, cx);
        }
    }
}
