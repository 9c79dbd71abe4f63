//! Whether a source is polled when it should be, and left alone when it should be.
//!
//! Owns what follows for one source from the failures that the daemon has seen: until when nothing
//! may be asked, and when quotes are due. Nothing is asked of a host that asks for a pause, or that was
//! not reached. Other failures hold up their own kind of request alone, which is not looked at here.

use super::exchange::Failure;
use super::trace::seconds;

/// Longest that `Retry-After` is believed: a day.
const RETRY_AFTER_MAX: u64 = 86_400_000_000;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    poll: u64,
    backoff_max: u64,
    addresses: u32,
    lanes: u32,
    /// Nothing is asked before.
    pub not_before: u64,
    streak: u32,
    last_failure: u64,
    /// When a request last failed, also where only its kind is held up.
    failed_at: Option<u64>,
    /// Whether quotes have ever come.
    quoted: bool,
    /// Attempts that belong to requests which began before the last failure.
    credits: u32,
    /// A connection that failed, and since when it was tried: the core may go on at once.
    unsettled: Option<u64>,
    /// How often it went on since something new was begun.
    chain: u32,
    /// When quotes were last asked for, and whether that was answered.
    last_tickers: Option<u64>,
    pub answered: Option<u64>,
    /// Whether the next poll of quotes is one that has waited.
    delayed: bool,
    /// Whether the poll before the last was answered in time.
    steady: bool,
    /// Nothing need be asked before, at most.
    at_latest: u64,
    /// They are asked for once more.
    repeats_tickers: bool,
    /// When something last went wrong.
    pub trouble: u64,
}

impl Schedule {
    /// Of a source that polls each so many microseconds.
    pub fn new(poll: u64, backoff_max: u64, addresses: usize, lanes: usize) -> Schedule {
        Schedule {
            poll,
            backoff_max,
            addresses: addresses as u32,
            lanes: lanes as u32,
            ..Schedule::default()
        }
    }

    /// It polls as often as that from now on. A back-off that has begun goes on.
    pub fn reconfigure(&mut self, poll: u64, backoff_max: u64, now: u64) {
        if (self.poll, self.backoff_max) != (poll, backoff_max) {
            (self.poll, self.backoff_max) = (poll, backoff_max);
            (self.trouble, self.steady) = (now, false);
        }
    }

    /// The source begins anew, with the back-off that it had.
    pub fn begin(&mut self, now: u64) {
        (self.quoted, self.steady) = (false, false);
        (self.last_tickers, self.answered) = (None, None);
        (self.trouble, self.unsettled) = (now, None);
    }

    /// The same exchange was asked under another name, and is left alone as long.
    pub fn heed(&mut self, other: &Schedule) {
        self.not_before = self.not_before.max(other.not_before);
        self.at_latest = self.at_latest.max(other.at_latest);
    }

    /// Something is asked: a connection is opened, or a request is sent on one that stands.
    pub fn attempt(&mut self, now: u64) -> Result<(), String> {
        if self.unsettled.take().is_some() && self.chain < self.addresses * self.lanes {
            // The next address of the same request.
            self.chain += 1;
            return Ok(());
        }
        if now >= self.not_before {
            self.chain = 0;
            self.credits = 0;
            return Ok(());
        }
        if self.credits > 0 {
            self.credits -= 1;
            return Ok(());
        }
        let early = seconds(self.not_before - now);
        Err(format!(
            "asked {early} s before the back-off is over, after {} failures in a row",
            self.streak
        ))
    }

    /// All that the core had to say is said: what did not go on has failed.
    pub fn settle(&mut self, now: u64) {
        if let Some(begun) = self.unsettled.take() {
            self.failed(Failure::of_source(), begun, now);
            let step = self.poll.min(self.backoff_max);
            self.not_before = self.not_before.max(now + step - step / 10);
        }
    }

    /// What was waiting for a name may go on, or fails as the look-up did.
    pub fn resolved(&mut self, has_failed: bool, now: u64) {
        self.credits = self.credits.max(self.lanes);
        if has_failed {
            self.trouble = now;
            self.at_latest = self.at_latest.max(now + self.backoff_max);
        }
    }

    /// A connection could not be opened. Either the next address is tried at once, or the request
    /// has failed.
    pub fn connect_failed(&mut self, begun: u64, now: u64) {
        if self.failed_at == Some(now) {
            // Put back, because another request has just failed.
            return;
        }
        self.trouble = now;
        self.unsettled = Some(begun);
    }

    /// A connection that had served before was closed before an answer began: once more.
    pub fn repeated(&mut self, tickers: bool) {
        self.credits += 1;
        self.repeats_tickers |= tickers;
    }

    /// A request that was begun then has failed.
    pub fn failed(&mut self, failure: Failure, begun: u64, now: u64) {
        self.trouble = now;
        self.failed_at = Some(now);
        if !failure.backs_off {
            return;
        }
        self.delayed = true;
        // What left at the moment of that failure was begun before: nothing is begun after it.
        if begun > self.last_failure || self.streak == 0 {
            self.streak += 1;
        }
        self.last_failure = now;
        let asked = failure.retry_after.unwrap_or(0).min(RETRY_AFTER_MAX);
        self.not_before = self.not_before.max(now + asked);
        self.at_latest = self.at_latest.max(now + self.backoff_max.max(asked));
    }

    /// A request was answered well.
    pub fn succeeded(&mut self, tickers: bool, now: u64) {
        if tickers {
            self.answered = Some(now);
        }
        if tickers || !self.quoted {
            self.streak = 0;
        }
        self.quoted |= tickers;
    }

    /// Quotes are asked for.
    pub fn tickers(&mut self, now: u64) -> Result<(), String> {
        if std::mem::take(&mut self.repeats_tickers) {
            return Ok(());
        }
        let (before, answered) = (self.last_tickers.replace(now), self.answered);
        let Some(before) = before.filter(|_| self.lanes > 1 && self.poll >= LEAST_POLL) else {
            return Ok(());
        };
        let calm = self.trouble + 2 * self.poll + 2 * SLACK < before && self.streak == 0;
        let prompt = answered.is_some_and(|at| at > before && at + SLACK < before + self.poll);
        let pause = now - before;
        // One that had to wait for the answer before it leaves no whole pause behind it.
        let is_late = pause > self.poll + SLACK || pause + SLACK < self.poll;
        let steady = std::mem::replace(&mut self.steady, prompt && !self.delayed && !is_late);
        self.delayed = false;
        if calm && prompt && steady && is_late {
            let (pause, poll) = (seconds(pause), seconds(self.poll));
            return Err(format!("quotes were asked for after {pause} s, not {poll} s"));
        }
        Ok(())
    }

    /// Looks from time to time whether quotes are overdue. `busy`: some request is in trouble.
    pub fn look(&mut self, busy: bool, fine: bool, now: u64) -> Result<(), String> {
        if busy || !fine {
            self.trouble = now;
        }
        let Some(last) = (self.last_tickers).filter(|_| self.lanes > 1 && self.poll >= LEAST_POLL)
        else {
            return Ok(());
        };
        let calm = self.trouble + 2 * self.poll + 2 * SLACK < now;
        let answered = self.answered.is_some_and(|at| at > last);
        if calm && answered && now > last.max(self.at_latest) + self.poll + 2 * SLACK {
            let late = seconds(now - last);
            return Err(format!("quotes were last asked for {late} s ago"));
        }
        Ok(())
    }
}

/// Connections take this long, and turns.
const SLACK: u64 = 400_000;

/// Polls that come more often may have to wait for the budget.
const LEAST_POLL: u64 = 2_000_000;
