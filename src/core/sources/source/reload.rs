//! What becomes of a source when the configuration is read again.

use super::Source;
use crate::config::SourceChange;
use crate::core::context::Context;
use crate::core::sources::candle_plans::CandlePlans;
use crate::core::sources::jobs::Job;
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::task::Task;
use crate::job_queue::JobQueue;
use crate::market::SeriesKey;
use crate::time::Mono;

impl Source {
    /// Takes in new settings. Requests that these concern end, and are due again.
    pub fn reconfigure(&mut self, change: SourceChange, cx: &mut Context) {
        let SourceChange::Settings { markets, route } = change else {
            return;
        };
        self.profile = self.profile.renewed(&cx.config);
        self.schedule.reconfigure(&self.profile, cx.now.mono);
        let is_list = |request: &RequestInFlight| *request.task() == Task::Markets;
        self.put_back_all(|request| route || markets && is_list(request), cx);
        if route {
            self.connections.reroute(&self.profile, cx);
        }
        if markets {
            self.schedule.list_due = cx.now.mono;
            self.schedule.round.abandon();
            self.close_untracked(cx);
        }
        self.wake_up(cx.now);
    }

    /// True if a market list waits to be applied.
    pub fn has_new_list(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job, Job::RefreshList))
    }

    /// Follows no series any more that is closed, or whose market has no listing.
    fn close_untracked(&mut self, cx: &Context) {
        let (id, catalog) = (self.profile.id, &cx.market.catalog);
        for key in self.schedule.candles.series().collect::<Vec<SeriesKey>>() {
            let is_listed = !catalog.has_list(id) || catalog.listing(id, key.symbol).is_some();
            if !is_listed || cx.market.charts.get(key).is_none() {
                self.schedule.candles.close(key);
            }
        }
    }

    /// It is configured no longer: its requests end, its connections are closed, and no client need wait
    /// for it.
    pub fn end(&mut self, cx: &mut Context) {
        self.put_back_all(|_| true, cx);
        self.connections.close_all(cx);
        self.jobs = JobQueue::default();
        self.schedule.candles = CandlePlans::new(&self.profile);
        self.has_ended = true;
        self.wake_at = None;
    }

    /// Goes on with budget and back-off of the source that had this id before, if it is the same
    /// exchange: its limit does not begin anew.
    pub fn succeed(&mut self, former: &Source) {
        if self.profile.dialect.name() == former.profile.dialect.name() {
            self.schedule.budget = former.schedule.budget.clone();
            self.schedule.backoff = former.schedule.backoff.clone();
            self.schedule.backoff.reconfigure(&self.profile);
        }
        self.connections.succeed(&former.connections);
    }

    /// Asks no more of its exchange than a source that has ended leaves, if that had another id and the
    /// same address: the exchange takes both for one.
    pub fn heed(&mut self, ended: &Source, now: Mono) {
        let (own, other) = (&self.profile, &ended.profile);
        let is_same = own.url == other.url && own.dialect.name() == other.dialect.name();
        if ended.has_ended && is_same {
            self.schedule.budget.heed(&ended.schedule.budget, now);
            self.schedule.backoff.heed(&ended.schedule.backoff);
        }
    }

    /// Tells of a back-off that it has taken over.
    pub fn report_backoff(&self, cx: &mut Context) {
        self.schedule.backoff.report(cx);
    }
}
