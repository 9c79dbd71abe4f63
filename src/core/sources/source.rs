//! One source: one exchange that is polled.
//!
//! [`Source`] conducts its parts: it starts what `planner` chooses from the [`Schedule`], sends it on
//! its [`Connections`], and turns each response into a [`Job`]. A failure changes
//! nothing that is served. While a source fails, one request at a time is tried, and after each
//! failure nothing until the back-off is over.
//!
//! It serves no client and keeps no price: what it reads goes to the market, in slices
//! ([`Source::work`]), after its body has parsed to its end.

mod failing;
mod following;
mod publishing;
mod reload;

use crate::config::Config;
use crate::core::Event;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::backfill_progress::BackfillProgress;
use crate::core::sources::connections::{Connections, Ended};

use crate::core::sources::jobs::{
    Job, apply, apply_tickers, drop_quotes, drop_records, follow_named, refresh_list,
};
use crate::core::sources::planner::Planner;
use crate::core::sources::replica::{Replica, Role};
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::schedule::Schedule;
use crate::core::sources::task::{Profile, Task};
use crate::job_queue::JobQueue;
use crate::log_targets::SOURCE;
use crate::market::{SeriesKey, SourceId};
use crate::table::Key;
use crate::time::{Mono, Now};
use std::net::SocketAddr;
use std::ops::Range;

/// See the module's page.
pub struct Source {
    profile: Profile,
    pub(super) connections: Connections,
    schedule: Schedule,
    jobs: JobQueue<Job>,
    progress: BackfillProgress,
    replica: Replica,
    /// When the newest quotes were received.
    newest_quotes: Mono,
    /// When [`Source::handle_timeout`] is wanted; recomputed after each change.
    wake_at: Option<Mono>,
    /// True if it is configured no longer: it requests nothing.
    has_ended: bool,
}

impl Source {
    /// A source whose first task is due at once. `seed` is that of its jitter.
    ///
    /// # Panics
    /// If the source's dialect does not exist, or it has no address: the configuration is checked
    /// before.
    pub fn new(id: SourceId, config: &Config, seed: u64, now: Now) -> Source {
        let profile = Profile::new(id, config);
        let count = config.limits.lanes_per_source.max(1);
        Source {
            connections: Connections::new(&profile, count),
            schedule: Schedule::new(&profile, seed, now.mono),
            jobs: JobQueue::default(),
            progress: BackfillProgress::new(now.mono),
            replica: Replica::default(),
            newest_quotes: Mono::default(),
            wake_at: Some(now.mono),
            has_ended: false,
            profile,
        }
    }

    /// When [`Source::handle_timeout`] is wanted next.
    pub fn wake_at(&self) -> Option<Mono> {
        self.wake_at
    }

    /// True if [`Source::work`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Responses that are read and not yet completely in the market.
    pub fn staged(&self) -> usize {
        self.jobs.iter().filter(|job| job.applies()).count()
    }

    /// Follows a series from now on. `false`: there are too many, or the exchange does not have it.
    pub fn follow(&mut self, series: SeriesKey, cx: &mut Context) -> bool {
        !self.has_ended && self.schedule.candles.follow(series, cx)
    }

    /// Requests candles for a client. `false`: none will come, so the client need not wait.
    pub fn ask(&mut self, series: SeriesKey, slots: &Range<i64>, cx: &Context) -> bool {
        // Nobody is asked while it is not known who collects.
        let is_well = !self.schedule.backoff.is_failing() && self.replica.role() != Role::Waiting;
        let is_taken = is_well && self.schedule.candles.ask(series, slots, cx);
        if is_taken {
            // It starts at the end of this turn, not while a client is served.
            self.wake_up(cx.now);
        }
        is_taken
    }

    /// True if a client waits for some of these candles.
    pub fn is_asking(&self, series: SeriesKey, slots: &Range<i64>) -> bool {
        self.schedule.candles.is_asking(series, slots)
    }

    /// Looks at once for what is due.
    pub fn wake_up(&mut self, now: Now) {
        self.wake_at = (!self.has_ended).then_some(now.mono);
    }

    /// The history file holds more, or less, than before.
    pub fn note_stored(&mut self, now: Now) {
        self.jobs.push(self.progress.stored(now).map(Job::Count));
    }

    /// The machine's clocks have moved against each other: it slept, or one was set. What is on its
    /// way may have been sent long ago.
    pub fn clocks_moved(&mut self, cx: &mut Context) {
        self.put_back_all(|_| true, cx);
        drop_records(&mut self.jobs, &mut self.schedule, cx.now.mono);
        self.schedule.clock.doubt(cx);
        self.wake_up(cx.now);
    }

    /// Takes in the addresses of the name, or why there are none.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        history: &mut History,
        cx: &mut Context,
    ) {
        if self.connections.skip_former_name(cx) {
            return;
        }
        match addresses {
            Ok(list) => self.connections.resolved(list, cx),
            Err(why) => {
                self.connections.not_resolved(&why, cx);
                for conn in 0..self.connections.len() {
                    let ended = self.connections.fail_unresolved(conn, &why, cx);
                    self.ended(ended, history, cx);
                }
            }
        }
        self.start_due(history, cx);
    }

    /// Takes in what happened to a connection. `true`: a request has ended.
    pub fn handle(
        &mut self,
        conn: usize,
        key: Key,
        event: Event<'_>,
        history: &mut History,
        cx: &mut Context,
    ) -> bool {
        let was_in_doubt = self.schedule.clock.is_in_doubt();
        let handled = self.connections.handle(conn, key, event, cx);
        if let Some(head) = handled.head {
            if let Some(date) = head.date {
                self.schedule.clock.check_date(date, cx);
            }
            if let Some(units) = head.metered {
                self.schedule.metered(&self.profile, units, cx);
            }
        }
        if let Some(task) = self.connections.decompressing(conn) {
            let is_quotes = task.is_quotes();
            self.jobs.push([Job::Decompress { conn, is_quotes }]);
        }
        let has_ended = self.ended(handled.ended, history, cx);
        if has_ended || self.schedule.clock.is_in_doubt() != was_in_doubt {
            self.start_due(history, cx);
        }
        has_ended
    }

    /// Time has passed: gives up what has had its time, and starts what is due. `true`: a request has
    /// ended.
    pub fn handle_timeout(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let mut has_ended = false;
        for conn in 0..self.connections.len() {
            let ended = self.connections.handle_timeout(conn, cx);
            has_ended |= self.ended(ended, history, cx);
        }
        self.schedule.backoff.handle_timeout(cx);
        self.start_due(history, cx);
        has_ended
    }

    /// Starts every task that is due and has an idle connection, then works out when to look again.
    fn start_due(&mut self, history: &mut History, cx: &mut Context) {
        if self.has_ended {
            return;
        }
        if !self.replica.role().collects() {
            return self.want_due(history, cx);
        }
        self.schedule.begin_round(&self.profile, cx);
        let mut next = None;
        while let Some(conn) = self.connections.idle() {
            let planner = Planner {
                profile: &self.profile,
                schedule: &self.schedule,
                connections: &self.connections,
                pace: history.pace_of(self.profile.id),
                cx,
            };
            // What has come is applied first: what is due next may depend on it.
            let planned = match self.staged() {
                0 => planner.next(),
                _ => None,
            };
            match planned {
                Some((when, task)) if when <= cx.now.mono => self.start(conn, task, cx),
                Some((when, task)) => {
                    log::debug!(
                        target: SOURCE,
                        "planned source={} what={:?} in_ms={}",
                        self.profile.config.id,
                        task.describe(&cx.market),
                        when.since(cx.now.mono).as_millis(),
                    );
                    next = Some(when);
                    break;
                }
                None => break,
            }
        }
        let schedule = &self.schedule;
        let has_rounds = !self.profile.dialect.tickers_at_once() && schedule.has_list;
        let round = (has_rounds && schedule.round.is_over()).then(|| schedule.next_quotes());
        let all = [self.connections.due(), next, round, schedule.backoff.down_at(cx)];
        self.wake_at = all.into_iter().flatten().min();
        schedule.report(&self.profile, cx);
    }

    fn start(&mut self, conn: usize, task: Task, cx: &mut Context) {
        self.schedule.sent(&self.profile, &task, cx);
        let request = RequestInFlight::new(&self.profile, task, cx);
        self.connections.send(conn, Box::new(request), cx);
    }

    /// Steps the next job once. `true`: a response is completely in the market, or a request has ended.
    pub fn work(&mut self, history: &mut History, cx: &mut Context) -> bool {
        let next = self.jobs.next(|_| true);
        let Some(mut job) = next.and_then(|at| self.jobs.take(at)) else {
            return false;
        };
        let (id, schedule) = (self.profile.id, &mut self.schedule);
        let mut has_ended = false;
        let is_done = match &mut job {
            Job::ApplyTickers(tickers, received) => {
                self.publish_piece(tickers, *received, cx);
                apply_tickers(id, tickers, *received, &self.schedule, cx)
            }
            Job::ApplyCandles(page) => {
                let is_done = page.step(&schedule.clock, &mut schedule.candles, history, cx);
                if is_done {
                    let count = self.progress.applied(&schedule.candles, cx.now);
                    self.jobs.push(count.map(Job::Count));
                }
                is_done
            }
            Job::Replicate(job) => self.replicate(job, cx),
            Job::RefreshList => {
                let next = refresh_list(&self.profile, schedule, history, cx);
                let is_done = next.is_some();
                self.jobs.push(next.into_iter().flatten());
                if is_done {
                    self.list_changed();
                }
                is_done
            }
            Job::DropQuotes(symbols) => drop_quotes(id, symbols, cx),
            Job::FollowNamed(symbols) => follow_named(id, symbols, schedule, cx),
            Job::Decompress { conn, .. } => {
                let ended = self.connections.decompress(*conn, cx);
                let is_done = self.connections.decompressing(*conn).is_none();
                has_ended = self.ended(ended, history, cx);
                is_done
            }
            Job::Count(count) => count.step(id, &mut self.progress, &schedule.candles, history, cx),
        };
        has_ended |= is_done && job.applies();
        if !is_done {
            self.jobs.put_back(job);
        }
        if has_ended {
            self.start_due(history, cx);
        }
        has_ended
    }

    /// Takes in how a request has ended. `false`: none has.
    fn ended(&mut self, ended: Option<Ended>, history: &mut History, cx: &mut Context) -> bool {
        match ended {
            None => return false,
            Some(Ended::Complete(request)) => self.complete(request, history, cx),
            Some(Ended::Failed(request, fault)) => {
                self.failed(request.task(), fault, request.began, cx);
            }
            Some(Ended::PutBack(task)) => self.schedule.put_back(&task, cx.now.mono),
        }
        true
    }

    /// The response to a request is complete.
    fn complete(&mut self, request: Box<RequestInFlight>, history: &mut History, cx: &mut Context) {
        let (task, began) = (request.task().clone(), request.began);
        let sent_at = request.sent_at.unwrap_or(cx.now);
        let took = cx.now.mono.since(sent_at.mono);
        log::debug!(
            target: SOURCE,
            "response source={} what={:?} status={} bytes={} ms={}",
            self.profile.config.id,
            task.describe(&cx.market),
            request.status().unwrap_or(0),
            request.received,
            took.as_millis(),
        );
        let staged = match request.finish() {
            Ok(staged) => staged,
            Err(fault) => return self.failed(&task, fault, began, cx),
        };
        let status = &mut cx.stats[self.profile.id];
        status.rejected += staged.rejected;
        if let Some(fault) = staged.all_refused() {
            return self.failed(&task, fault, began, cx);
        }
        status.ok += 1;
        status.last_success_at = Some(cx.now.unix);
        status.last_latency_ms = Some(took.as_millis() as u64);
        status.latencies.note(took.as_micros() as u64, 1);
        if task.is_quotes() {
            self.newest_quotes = cx.now.mono;
            self.schedule.backoff.quotes_came(cx);
            cx.market.quotes.count_rejected(staged.rejected);
        }
        let published = self.to_publish(&staged, sent_at, cx);
        match apply(staged, sent_at, &self.profile, &mut self.schedule, history, cx) {
            Ok(job) => {
                // The others are to apply what waits in the same order.
                let is_later = job.is_some();
                let told = published.map(|body| Box::new(self.with_ends(body)));
                match told {
                    Some(body) if is_later => self.tell_later(body, cx),
                    Some(body) => self.publish(*body, cx.now, cx),
                    None => {}
                }
                self.jobs.push(job);
            }
            Err(fault) => self.failed(&task, fault, cx.now.mono, cx),
        }
    }
}
