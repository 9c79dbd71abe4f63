//! The budget of requests to one host, in the units of its exchange.
//!
//! [`Budget`] owns an account for each limit that the host's sources state: mostly there is one. Each account
//! counts every request, at the cost that the dialect of its source states, so all limits hold for the sum of
//! the sources. Two rules of an account decide when a request may be sent:
//!
//! - *Window.* A unit counts from when its request is chosen. It expires one window and a slack after the
//!   request is sent. What counts and the next request stay within `PERCENT_MOST` of the limit; a request
//!   that costs more is sent alone. So no window ever sees more than the limit, whatever the calls cost and
//!   however long a connection takes to open. The exchange may tell how many units it has counted. Until its
//!   window has surely ended, at least this number counts, and what was sent since. So a chosen request may
//!   no longer fit.
//! - *Pace.* Within a window, requests are spread: on average, `PERCENT_RATE` of the limit is spent, and a
//!   burst may be ahead of that. The more urgent a request is, the further ahead it may be ([`Purpose`]). So
//!   history yields first and named quotes last, also to requests of other sources.

use crate::exchange::BudgetLimit as Limit;
use crate::time::Mono;
use std::collections::VecDeque;
use std::time::Duration;

/// The most that counts at a time. The rest is left to others at the same address.
const PERCENT_MOST: u64 = 95;

/// Share of the limit that is spent on average, if there is enough to do.
const PERCENT_RATE: u64 = 80;

/// Share of the limit by which the spending may be ahead of the average.
const PERCENT_BURST: u64 = 10;

/// Share of the pace that quotes take while other requests wait.
const PERCENT_QUOTES: u64 = 75;

/// From the sending of a request to its arrival at the exchange, at most.
const SLACK: Duration = Duration::from_millis(200);

/// Slack for drifting clocks and bunched packets: the window divided by this.
const SLACK_PARTS: u32 = 20;

/// Pieces in which a window is counted: it bounds the memory, and each piece expires as a whole.
const PIECES: u32 = 64;

/// Share of the limit that others must spend before that is reported.
const PERCENT_OTHERS: u64 = 10;

/// Longest wait for a request of a sound dialect. It bounds the arithmetic on hostile figures.
const LONGEST: Duration = Duration::from_secs(3600);

/// What units are spent for, the most urgent first. Purpose n leaves n/4 of the dearest request's cost
/// unspent for more urgent ones, so that a cheap request that yields does not overtake a dear one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Quotes that the configuration names or a stream follows, and the list without which there are none.
    Named = 0,
    /// Other quotes.
    Quotes = 1,
    /// The newest candles, candles that a client waits for, lists, clocks and 24-hour figures.
    Newest = 5,
    /// Candles of the past.
    History = 6,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Budget {
    accounts: Vec<Account>,
    /// Units of the chosen requests that are not sent yet.
    pub unsent: u64,
    /// Units of all requests that were sent since the start.
    sent: u64,
}

/// What was spent of one limit.
#[derive(Clone, Debug)]
struct Account {
    limit: Limit,
    /// The cost of the dearest request without which nothing is served.
    dearest: u64,
    /// What still counts, the oldest first.
    pieces: VecDeque<Piece>,
    /// What the exchange itself has counted in its running window, with what was sent since: the most in each
    /// piece, the oldest first.
    reports: VecDeque<Piece>,
    /// Until when the average pays for all requests so far.
    paid_until: Mono,
    /// Until when the average pays for all requests for quotes, by their share of the pace.
    quotes_paid_until: Mono,
    /// What others spent before this is not reported: an earlier run may have spent it.
    since: Mono,
}

/// Units that expire together.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: Mono,
    last: Mono,
    units: u64,
    /// Of a report: the most units that others had spent.
    others: u64,
}

/// The pieces that count now, if each counts for `span`.
fn counting(pieces: &VecDeque<Piece>, span: Duration, now: Mono) -> impl Iterator<Item = &Piece> {
    pieces.iter().filter(move |piece| now < piece.last + span)
}

/// The newest piece, or a new one. Pieces that count no more are dropped.
fn newest(pieces: &mut VecDeque<Piece>, span: Duration, now: Mono) -> &mut Piece {
    while pieces.front().is_some_and(|piece| piece.last + span <= now) {
        pieces.pop_front();
    }
    if pieces.back().is_none_or(|piece| now.since(piece.first) >= span / PIECES) {
        pieces.push_back(Piece { first: now, last: now, units: 0, others: 0 });
    }
    let piece = pieces.back_mut().expect("there is one now");
    piece.last = now;
    piece
}

impl Budget {
    /// Takes in the limits of the host's sources, and the cost of the dearest request without which nothing
    /// is served. What was spent still counts.
    pub fn configure(&mut self, limits: &[Limit], dearest: u32, now: Mono) {
        let old = std::mem::take(&mut self.accounts);
        for limit in limits {
            if self.accounts.iter().all(|it| it.limit != *limit) {
                // A new limit begins with what the account of the longest period has counted.
                let known = old.iter().max_by_key(|it| (it.limit == *limit, it.limit.per));
                let account = known.cloned().unwrap_or_else(|| Account::new(*limit, now));
                let (limit, dearest) = (*limit, dearest.into());
                self.accounts.push(Account { limit, dearest, ..account });
            }
        }
    }

    /// When a request of this cost may be sent: now or later. The pace is divided by `parts`.
    pub fn ready_at(&self, cost: u32, purpose: Purpose, parts: u32, now: Mono) -> Mono {
        let of = |it: &Account| it.ready_at(cost, self.unsent, purpose, parts, now);
        let at = self.accounts.iter().map(of).max().unwrap_or(now);
        at.max(now).min(now + LONGEST)
    }

    /// When quotes of this cost may be sent while other requests wait for their share.
    pub fn quotes_turn(&self, cost: u32, parts: u32, now: Mono) -> Mono {
        let of = |it: &Account| {
            let ahead = it.ahead(cost, parts) * 100 / PERCENT_QUOTES;
            Mono(it.quotes_paid_until.0.saturating_sub(ahead))
        };
        self.accounts.iter().map(of).max().unwrap_or(now).min(now + LONGEST)
    }

    /// Chooses a request of this cost: it takes its share of the pace, and counts until it is sent.
    pub fn choose(&mut self, cost: u32, purpose: Purpose, parts: u32, now: Mono) {
        let cost = u64::from(cost);
        self.unsent += cost;
        for account in &mut self.accounts {
            let time = account.time_of(cost, parts);
            account.paid_until = account.paid_until.max(now) + Duration::from_micros(time);
            if matches!(purpose, Purpose::Named | Purpose::Quotes) {
                let time = Duration::from_micros(time * 100 / PERCENT_QUOTES);
                account.quotes_paid_until = account.quotes_paid_until.max(now) + time;
            }
        }
    }

    /// True if a chosen request of this cost still fits: others may have spent units since it was chosen.
    pub fn fits(&self, cost: u32, now: Mono) -> bool {
        let fits = |it: &Account| it.counted(now) + self.unsent <= it.most().max(cost.into());
        self.accounts.iter().all(fits)
    }

    /// A chosen request of this cost is sent now. Returns the units of all requests that were sent so far.
    pub fn send(&mut self, cost: u32, now: Mono) -> u64 {
        self.unsent = self.unsent.saturating_sub(cost.into());
        self.sent += u64::from(cost);
        self.accounts.iter_mut().for_each(|it| it.count(cost.into(), now));
        self.sent
    }

    /// `used`: the units of this limit that the exchange has counted in its running window, told in the
    /// response to a request sent at `sent`. `units`: what was sent so far, with the request. A report of a
    /// request that was sent after the greatest one begins a new window, if it is lower by more than the cost
    /// of the dearest request.
    pub fn note_used(&mut self, limit: Limit, used: u64, (sent, units): (Mono, u64), now: Mono) {
        let since = self.sent.saturating_sub(units);
        for account in self.accounts.iter_mut().filter(|it| it.limit == limit) {
            let units = used.min(limit.units.into()) + since;
            let is_less = |it: &Piece| it.last <= sent && units + account.dearest < it.units;
            if account.running(now).is_some_and(is_less) {
                account.reports.clear();
            }
            let (span, own) = (account.span(), account.own(now));
            let others = if now < account.since { 0 } else { units.saturating_sub(own) };
            let most = newest(&mut account.reports, span, now);
            (most.units, most.others) = (units.max(most.units), others.max(most.others));
        }
    }

    /// The units that others have spent, if that is enough to report.
    pub fn spent_by_others(&self, now: Mono) -> Option<u64> {
        let of = |it: &Account| {
            let units = counting(&it.reports, it.span(), now).map(|piece| piece.others).max()?;
            let is_much = units * 100 > u64::from(it.limit.units) * PERCENT_OTHERS;
            is_much.then_some(units)
        };
        self.accounts.iter().filter_map(of).max()
    }

    /// True if nothing counts any more.
    pub fn is_unused(&self, now: Mono) -> bool {
        self.accounts.iter().all(|it| counting(&it.pieces, it.span(), now).next().is_none())
    }

    /// Whole units that may be spent at once.
    pub fn left(&self, parts: u32, now: Mono) -> u64 {
        let of = |it: &Account| it.left(parts, self.unsent, now);
        self.accounts.iter().map(of).min().unwrap_or(0)
    }

    /// Other nodes may have spent everything until `since`: nothing was left then.
    pub fn take_over(&mut self, since: Mono) {
        for account in &mut self.accounts {
            let time = Duration::from_micros(account.time_of(account.burst(), 1));
            account.paid_until = account.paid_until.max(since + time);
            // As if all of it was spent for quotes: others get their share from now on.
            let time = time * 100 / PERCENT_QUOTES as u32;
            account.quotes_paid_until = account.quotes_paid_until.max(since + time);
        }
    }
}

impl Account {
    fn new(limit: Limit, now: Mono) -> Account {
        Account {
            limit,
            dearest: 0,
            pieces: VecDeque::new(),
            reports: VecDeque::new(),
            paid_until: now,
            quotes_paid_until: now,
            since: now + limit.per,
        }
    }

    /// How long a unit counts.
    fn span(&self) -> Duration {
        self.limit.per + self.limit.per / SLACK_PARTS + SLACK
    }

    /// The most that the exchange has counted, until its window must have ended.
    fn running(&self, now: Mono) -> Option<&Piece> {
        counting(&self.reports, self.span(), now).max_by_key(|it| it.units)
    }

    /// The units that count at this time, if nothing else is spent.
    fn counted(&self, at: Mono) -> u64 {
        self.running(at).map_or(0, |it| it.units).max(self.own(at))
    }

    /// The units that were spent here and count at this time.
    fn own(&self, at: Mono) -> u64 {
        counting(&self.pieces, self.span(), at).map(|piece| piece.units).sum()
    }

    /// The most that counts at a time.
    fn most(&self) -> u64 {
        (u64::from(self.limit.units) * PERCENT_MOST / 100).max(1)
    }

    /// The units by which the spending may be ahead of the average. They cover what history leaves to more
    /// urgent requests, and one more request as dear as the dearest. It is unknown what an earlier run has
    /// just spent: if it spent the average, a burst may still follow.
    fn burst(&self) -> u64 {
        let units = u64::from(self.limit.units);
        (units * PERCENT_BURST / 100).max(5 * self.dearest / 2).clamp(1, units.max(1))
    }

    /// The microseconds by which the spending may be ahead when this request is sent. A divided pace does not
    /// change how far it may be ahead in time.
    fn ahead(&self, cost: u32, parts: u32) -> u64 {
        let burst = self.time_of(self.burst(), 1);
        burst.saturating_sub(self.time_of(cost.into(), parts))
    }

    /// The microseconds in which the average pays for these units.
    fn time_of(&self, units: u64, parts: u32) -> u64 {
        let span = self.limit.per.as_micros() * 100 * u128::from(parts);
        let time = u128::from(units) * span
            / u128::from(self.limit.units.max(1))
            / u128::from(PERCENT_RATE);
        u64::try_from(time).unwrap_or(u64::MAX).min(LONGEST.as_micros() as u64)
    }

    fn ready_at(&self, cost: u32, unsent: u64, purpose: Purpose, parts: u32, now: Mono) -> Mono {
        let most = self.most();
        let cost_most = u64::from(cost).min(most);
        // Chosen requests count as if they were sent now.
        let all = self.pieces.iter().chain(&self.reports);
        let ends = all.map(|piece| piece.last).chain([now]).map(|at| at + self.span());
        let unsent = |at: Mono| if at < now + self.span() { unsent } else { 0 };
        let fits = |at: &Mono| self.counted(*at) + unsent(*at) + cost_most <= most;
        let later = ends.filter(|at| *at > now);
        let at = std::iter::once(now).chain(later).filter(fits).min().unwrap_or(now);
        let ahead = self.ahead(cost, parts);
        // A limit of hardly more than one request leaves nothing to yield: then requests take turns.
        let yields = (self.time_of(self.dearest, 1) * purpose as u64 / 4).min(ahead);
        let by_pace = Mono((self.paid_until.0 + yields).saturating_sub(ahead));
        at.max(by_pace)
    }

    /// Counts units from now on.
    fn count(&mut self, units: u64, now: Mono) {
        self.reports.iter_mut().for_each(|it| it.units += units);
        let span = self.span();
        newest(&mut self.pieces, span, now).units += units;
    }

    fn left(&self, parts: u32, unsent: u64, now: Mono) -> u64 {
        let counted = self.counted(now) + unsent;
        let paid = self.paid_until.since(now).as_micros() as u64;
        let ahead = self.time_of(self.burst(), 1).saturating_sub(paid);
        let by_pace = ahead / self.time_of(1, parts).max(1);
        by_pace.min(self.most().saturating_sub(counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn limit(units: u32, seconds: u64) -> Limit {
        Limit { units, per: Duration::from_secs(seconds) }
    }

    fn budget(limits: &[Limit], dearest: u32) -> Budget {
        let mut budget = Budget::default();
        budget.configure(limits, dearest, Mono(0));
        budget
    }

    /// Chooses a request that is sent at once.
    fn spend(budget: &mut Budget, cost: u32, purpose: Purpose, parts: u32, now: Mono) {
        budget.choose(cost, purpose, parts, now);
        budget.send(cost, now);
    }

    /// The exchange tells what is used, in the response to what was sent last, at this time.
    fn told(budget: &mut Budget, limit: Limit, used: u64, now: Mono) {
        budget.note_used(limit, used, (now, budget.sent), now);
    }

    const PURPOSES: [Purpose; 4] =
        [Purpose::Named, Purpose::Quotes, Purpose::Newest, Purpose::History];

    fn judge(limits: &[Limit], spent: &[(Mono, u64)], now: Mono, seed: u64) {
        for limit in limits {
            let within = |(at, _): &&(Mono, u64)| now.since(*at) < limit.per;
            let sum: u64 = spent.iter().rev().take_while(within).map(|it| it.1).sum();
            assert!(sum <= limit.units.into(), "seed {seed}: {sum} of {limit:?}");
        }
    }

    #[test]
    fn what_was_spent_counts_for_a_limit_that_changes() {
        let (minute, changed) = (limit(6000, 60), limit(5900, 60));
        let mut budget = budget(&[limit(100, 1), minute], 80);
        spend(&mut budget, 80, Purpose::Named, 1, Mono(0));
        told(&mut budget, minute, 5990, Mono(0));
        budget.configure(&[changed], 80, Mono(0));
        assert!(budget.ready_at(80, Purpose::Named, 1, Mono(0)) >= Mono(60_000_000));
    }

    #[test]
    fn no_window_of_any_limit_sees_more_than_the_limit_whatever_the_calls_cost() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut limits = Vec::new();
            for _ in 0..1 + rng.below(2) {
                let size = 1 << rng.below(13);
                limits.push(limit(1 + rng.below(size) as u32, 1 + rng.below(60)));
            }
            let least = limits.iter().map(|it| u64::from(it.units)).min().unwrap_or(1);
            let dearest = 1 + rng.below(least) as u32;
            let mut now = Mono(rng.below(1 << 40));
            let mut budget = Budget::default();
            budget.configure(&limits, dearest, now);
            let mut spent: Vec<(Mono, u64)> = Vec::new();
            // Chosen requests, and when their connections are open.
            let mut chosen: Vec<(Mono, u32)> = Vec::new();
            for _ in 0..400 {
                // Bursts, and pauses in which the budget comes back.
                let pause = 1 << rng.below(26);
                now = now + Duration::from_micros(rng.below(pause));
                for (_, cost) in chosen.extract_if(.., |it| it.0 <= now) {
                    if budget.fits(cost, now) {
                        budget.send(cost, now);
                        spent.push((now, cost.into()));
                    }
                }
                budget.unsent = chosen.iter().map(|it| u64::from(it.1)).sum();
                judge(&limits, &spent, now, seed);
                // Any cost, also one above `dearest`.
                let most = 1 + rng.below(least);
                let cost = 1 + rng.below(most) as u32;
                let purpose = PURPOSES[rng.below(4) as usize];
                let parts = 1 + rng.below(2) as u32;
                let at = budget.ready_at(cost, purpose, parts, now);
                if at == now + LONGEST {
                    continue;
                }
                if chosen.iter().any(|it| it.0 <= at) {
                    continue;
                }
                now = at;
                // Others may have spent units in the same window.
                if rng.below(8) == 0 {
                    told(&mut budget, limits[0], rng.below(1 + least), now);
                    continue;
                }
                if budget.ready_at(cost, purpose, parts, now) > now {
                    // What is chosen and not sent may be sent now.
                    assert!(!chosen.is_empty(), "seed {seed}");
                    continue;
                }
                budget.choose(cost, purpose, parts, now);
                let opening = 1 << rng.below(26);
                chosen.push((now + Duration::from_micros(rng.below(opening)), cost));
            }
            assert!(budget.accounts.iter().all(|it| it.pieces.len() <= 2 * PIECES as usize));
        }
    }

    #[test]
    fn own_units_that_count_no_more_are_not_told_as_those_of_others() {
        let minute = limit(1000, 60);
        let mut budget = budget(&[minute], 100);
        let at = |seconds: u64| Mono(seconds * 1_000_000);
        budget.choose(100, Purpose::Named, 1, at(100));
        budget.choose(100, Purpose::Named, 1, at(100));
        budget.send(100, at(100));
        budget.send(100, at(100));
        told(&mut budget, minute, 200, at(155));
        for second in 155..230 {
            assert_eq!(budget.spent_by_others(at(second)), None, "{second}");
        }
        told(&mut budget, minute, 250, at(230));
        assert_eq!(budget.spent_by_others(at(240)), Some(250));
        assert_eq!(budget.spent_by_others(at(300)), None);
    }

    #[test]
    fn a_chosen_request_counts_from_its_sending_and_fits_no_longer_once_others_have_spent_all() {
        let minute = limit(1000, 60);
        let mut budget = budget(&[minute], 100);
        budget.choose(100, Purpose::Named, 1, Mono(0));
        // Its connection takes long to open.
        let sent = Mono(40_000_000);
        assert!(budget.fits(100, sent));
        assert_eq!(budget.left(1, sent), 250);
        budget.send(100, sent);
        assert!(!budget.is_unused(Mono(99_000_000)));
        budget.choose(100, Purpose::Named, 1, sent);
        told(&mut budget, minute, 800, sent);
        assert!(budget.fits(100, sent));
        told(&mut budget, minute, 900, sent);
        assert!(!budget.fits(100, sent));
    }

    #[test]
    fn what_the_exchange_has_counted_is_a_floor_until_its_window_ends() {
        let sixty = limit(6000, 60);
        let mut budget = budget(&[sixty], 80);
        told(&mut budget, sixty, 5_990, Mono(0));
        assert_eq!(budget.left(1, Mono(0)), 0);
        // A figure that is a little better gives nothing back.
        told(&mut budget, sixty, 5_800, Mono(500_000));
        for second in [1, 30, 59] {
            let now = Mono(second * 1_000_000);
            assert!(budget.ready_at(1, Purpose::Named, 1, now) >= Mono(60_000_000), "{second}");
        }
        let at = budget.ready_at(1, Purpose::Named, 1, Mono(0));
        assert!(at <= Mono(64_000_000), "{at:?}");
        assert_eq!(budget.left(1, at), 600);
        assert_eq!(budget.spent_by_others(Mono(0)), None, "it may have been an earlier run");
        told(&mut budget, sixty, 10, Mono(2_000_000));
        assert_eq!(budget.left(1, Mono(2_000_000)), 600, "a new window has begun");
    }

    #[test]
    fn a_count_whose_window_has_ended_is_no_floor_however_many_there_were() {
        let minute = limit(1200, 60);
        let mut budget = budget(&[minute], 80);
        for at in 0..200 {
            let now = Mono(at * 70_000_000);
            told(&mut budget, minute, 1000 - 4 * at, now);
            assert_eq!(budget.accounts[0].reports.len(), 1, "those of earlier windows are gone");
        }
        let now = Mono(200 * 70_000_000);
        told(&mut budget, minute, 10, now);
        assert_eq!(budget.spent_by_others(now), None);
    }

    #[test]
    fn a_count_of_the_next_window_outlives_that_of_the_one_before() {
        let minute = limit(1200, 60);
        let mut budget = budget(&[minute], 80);
        told(&mut budget, minute, 900, Mono(10_000_000));
        spend(&mut budget, 200, Purpose::Named, 1, Mono(30_000_000));
        // In the next window others spend more, so that the count is nearly the same.
        told(&mut budget, minute, 1_060, Mono(65_000_000));
        let at = budget.ready_at(82, Purpose::Named, 1, Mono(65_000_000));
        assert!(at >= Mono(120_000_000), "{at:?}");
        assert!(at <= Mono(129_000_000), "{at:?}");
    }

    #[test]
    fn what_was_spent_before_the_exchange_s_window_hides_nothing_of_what_others_spend_in_it() {
        let minute = limit(1500, 60);
        let mut budget = budget(&[minute], 80);
        spend(&mut budget, 700, Purpose::Named, 1, Mono(0));
        // Others have spent most of these units.
        let at = Mono(40_000_000);
        told(&mut budget, minute, 644, at);
        let (mut now, mut since) = (at, 0);
        while now < Mono(103_000_000) {
            if budget.ready_at(80, Purpose::Named, 1, now) <= now {
                spend(&mut budget, 80, Purpose::Named, 1, now);
                since += 80;
                assert!(644 + since <= 1500, "{since} units since then at {now:?}");
            }
            now = now + Duration::from_millis(200);
        }
        assert!(since >= 700, "{since}");
    }

    #[test]
    fn the_less_urgent_yields_and_quotes_leave_a_share_to_those_that_wait() {
        let mut budget = budget(&[limit(6000, 60)], 80);
        let mut history = 0;
        while budget.ready_at(2, Purpose::History, 1, Mono(0)) == Mono(0) {
            spend(&mut budget, 2, Purpose::History, 1, Mono(0));
            history += 2;
        }
        let at = PURPOSES.map(|purpose| budget.ready_at(80, purpose, 1, Mono(0)));
        assert!(history > 400 && at[0] == Mono(0), "{history}");
        assert!(at.is_sorted() && at[2] < at[3]);
        // Quotes without end: three quarters of the pace.
        let quotes_in = |budget: &mut Budget, seconds: u64| {
            let (mut now, mut quotes) = (Mono(0), 0);
            while now < Mono(seconds * 1_000_000) {
                let at = budget.ready_at(10, Purpose::Quotes, 1, now);
                now = at.max(budget.quotes_turn(10, 1, now));
                spend(budget, 10, Purpose::Quotes, 1, now);
                quotes += 10;
            }
            (now, quotes)
        };
        let (now, quotes) = quotes_in(&mut budget, 60);
        assert!((3_500..=4_300).contains(&quotes), "{quotes}");
        assert_eq!(budget.ready_at(2, Purpose::History, 1, now), now);
        // Also of a budget of which nothing is left.
        let mut budget = self::budget(&[limit(6000, 60)], 80);
        budget.take_over(Mono(0));
        let (_, quotes) = quotes_in(&mut budget, 20);
        assert!((1_150..=1_250).contains(&quotes), "{quotes}");
    }

    #[test]
    fn two_limits_of_one_host_both_hold_and_go_on_when_the_sources_change() {
        let (wide, narrow) = (limit(600, 60), limit(20, 1));
        let mut both = budget(&[wide, narrow, wide], 2);
        assert_eq!(both.accounts.len(), 2);
        spend(&mut both, 19, Purpose::Named, 1, Mono(0));
        assert!(both.ready_at(2, Purpose::Named, 1, Mono(0)) >= Mono(1_000_000));
        both.configure(&[narrow], 2, Mono(0));
        assert!(both.ready_at(2, Purpose::Named, 1, Mono(0)) >= Mono(1_000_000));
        assert!(!both.is_unused(Mono(1_000_000)) && both.is_unused(Mono(2_000_000)));
    }

    #[test]
    fn a_request_dearer_than_the_limit_still_goes_some_day() {
        let mut budget = budget(&[limit(1, 1)], 1);
        spend(&mut budget, 1, Purpose::Named, 1, Mono(0));
        let next = budget.ready_at(1, Purpose::Named, 1, Mono(0));
        assert_eq!(next, Mono(1_250_000));
        assert_eq!(budget.ready_at(1, Purpose::Named, 1, next), next);
        let dear = budget.ready_at(1000, Purpose::Named, 1, next);
        assert!(dear < next + Duration::from_secs(3), "{dear:?}");
    }
}
