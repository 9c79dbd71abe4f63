//! What becomes of a request that has failed, or has come to nothing.

use super::Source;
use crate::core::context::Context;
use crate::core::sources::fault::{Blame, Fault};
use crate::core::sources::request::RequestInFlight;
use crate::core::sources::task::Task;
use crate::exchange::RefusalKind;
use crate::log_targets::{SOURCE, quoted};
use crate::replication::Update;
use crate::time::Mono;

impl Source {
    /// A task that began then has failed: it changes nothing that is served.
    pub(super) fn failed(&mut self, task: &Task, fault: Fault, began: Mono, cx: &mut Context) {
        let id = &self.profile.config.id;
        // An exchange may fail at one market and serve the others.
        let blame = match fault.blame() {
            Blame::Source if task.is_of_one_market() && fault.is_answer() => Blame::Call,
            blame => blame,
        };
        let what = task.describe(&cx.market);
        let text = format!("{what}: {fault}");
        let status = &mut cx.stats[self.profile.id];
        status.errors += 1;
        status.timeouts += u64::from(matches!(fault, Fault::Timeout(_)));
        status.rate_limited += u64::from(blame == Blame::RateLimit);
        status.last_error_at = Some(cx.now.unix);
        let is_news = status.last_error.as_deref() != Some(&text);
        let is_warned = match (task, fault.kind()) {
            // It is left alone for a while, and longer each time.
            (Task::Ticker(symbol), RefusalKind::UnknownMarket) => {
                self.schedule.round.pause(*symbol, self.profile.config.poll * 2, cx.now.mono)
            }
            _ => false,
        };
        if !is_warned && (is_news || !self.schedule.backoff.is_failing()) {
            log::warn!(
                target: SOURCE,
                "request failed source={id} what={} error={}",
                quoted(&what),
                quoted(&fault)
            );
        }
        log::debug!(
            target: SOURCE,
            "failed source={id} what={what:?} blame={} ms={} error={}",
            blame.name(),
            cx.now.mono.since(began).as_millis(),
            quoted(&fault),
        );
        status.last_error = Some(text);
        // Nothing is served without quotes, and there are no quotes without the list: their faults are the
        // whole source's.
        let is_vital = *task == Task::Tickers || *task == Task::Markets && !self.schedule.has_list;
        self.schedule.failed(&self.profile, task, cx);
        if is_vital || blame != Blame::Call {
            self.schedule.backoff.failed(&fault, began, cx);
            // What has been begun and not sent yet waits as well.
            self.put_back_all(|request| !request.has_left(), cx);
            self.schedule.candles.give_up_asked();
            self.schedule.round.abandon();
        }
        let error = cx.stats[self.profile.id].last_error.as_deref().map(Into::into);
        self.publish(Update::Status(error), cx.now, cx);
    }

    /// Ends those requests that are chosen. Their tasks are due again at once.
    pub(super) fn put_back_all(
        &mut self,
        is_chosen: impl Fn(&RequestInFlight) -> bool,
        cx: &mut Context,
    ) {
        for task in self.connections.put_back_all(is_chosen, cx) {
            self.schedule.put_back(&task, cx.now.mono);
        }
    }
}
