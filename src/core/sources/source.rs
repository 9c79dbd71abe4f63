//! One source: one exchange that is polled.
//!
//! [`Source`] conducts its parts: it starts what `planning` chooses from the [`Schedule`], sends it on
//! its [`Connections`], and turns each response into a [`Job`]. A failure changes
//! nothing that is served. While a source fails, one request at a time is tried, and after each
//! failure nothing until the back-off is over.
//!
//! It serves no client and keeps no price: what it reads goes to the market, in slices
//! ([`Source::work`]), after its body has parsed to its end.

mod applying;
mod failing;
mod following;
mod planning;
mod publishing;
mod reload;

use crate::config::Config;
use crate::core::Event;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::backfill_progress::BackfillProgress;
use crate::core::sources::connections::{Connections, Ended};
use crate::core::sources::jobs::Job;
use crate::core::sources::replica::{Outbound, Replica, Role};
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::schedule::Schedule;
use crate::core::sources::task::{Profile, Task};
use crate::core::stats::on_wall;
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
    pub(super) wake_at: Option<Mono>,
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
        self.drop_records(cx);
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
        let (head, ended) = self.connections.handle(conn, key, event, cx);
        if let Some(head) = head {
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
        let has_ended = self.ended(ended, history, cx);
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
            // What has come is applied first: what is due next may depend on it.
            let planned = match self.staged() {
                0 => self.next_task(history.pace_of(self.profile.id), cx),
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
        let next_poll = schedule.next_quotes();
        let status = &mut cx.stats[self.profile.id];
        status.next_poll = next_poll;
        status.next_poll_at = Some(on_wall(next_poll, cx.now));
        status.budget_left = schedule.budget.left(cx.now.mono);
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
        let mut has_ended = false;
        let is_done = match &mut job {
            Job::ApplyTickers(tickers, received) => self.apply_tickers(tickers, *received, cx),
            Job::ApplyCandles(page, received) => {
                if let Some(received) = received.take() {
                    self.publish_page(page, received, cx);
                }
                let (clock, plans) = (&self.schedule.clock, &mut self.schedule.candles);
                let is_done = page.step(clock, plans, history, cx);
                if is_done {
                    let count = self.progress.applied(plans, cx.now);
                    self.jobs.push(count.map(Job::Count));
                }
                is_done
            }
            Job::ReadList(list) => self.read_list(list, cx),
            Job::RefreshList => {
                self.refresh_list(history, cx);
                true
            }
            Job::DropQuotes(symbols) => self.drop_quotes(symbols, cx),
            Job::FollowNamed(symbols) => self.follow_named(symbols, cx),
            Job::Decompress { conn, .. } => {
                let ended = self.connections.decompress(*conn, cx);
                let is_done = self.connections.decompressing(*conn).is_none();
                has_ended = self.ended(ended, history, cx);
                is_done
            }
            Job::Count(count) => {
                let (id, plans) = (self.profile.id, &self.schedule.candles);
                count.step(id, &mut self.progress, plans, history, cx)
            }
            Job::WriteList(writer) => {
                let list = writer.step(self.profile.id, cx).map(Outbound::List);
                let is_done = list.is_some();
                list.into_iter().for_each(|list| self.replica.tell(list));
                is_done
            }
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
}
