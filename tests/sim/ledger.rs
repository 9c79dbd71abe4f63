//! What one exchange has said so far, as the daemon must have understood it.
//!
//! Owns what answers can have been made of: for each market the figures and the time at which they
//! were said, for each candle its last word, the slots that some answer could have held, the market
//! list, the clock. It learns from answers whose last byte the daemon has read, and from nothing
//! else. Whether what was said is so, [`super::truth`] knows.
//!
//! The daemon takes a moment from an answer's last byte to what it serves. So a state has a
//! *window*: it may be seen from the first moment on, and must be seen from the second on.

use super::truth::{Figures, Row, Truth};
use crate::support::naive::length_ms;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// From when on something may be seen, and from when on it must; microseconds.
pub type Window = (u64, u64);

/// The exchange's clock, at least and at most, as far as the daemon may be wrong about it.
pub type Times = (i64, i64);

/// A span of time in which an answer was made; microseconds.
pub type Span = (u64, u64);

/// How late a flag may be turned: the longest turn of the simulated driver, and some.
pub const FLIP_SLACK_US: u64 = 100_000;

/// States older than this are forgotten: no answer takes as long.
const MEMORY_US: u64 = 120_000_000;

/// The exchange's time is told from before the answer left: it is behind by a round trip at most.
const ROUND_TRIP_MS: u64 = 6000;

/// Quotes are older than those before where their newest time is by more than this.
const GOES_BACK_MS: i64 = 6000;

/// From when the daemon could know that the exchange's clock has moved, until it must: it asks, and
/// what was under way before ends first.
const CLOCK_GRACE_US: u64 = 20_000_000;

/// How far ahead the daemon takes this machine's clock to be while the exchange's is in doubt.
const MACHINE_OFF_MS: i64 = 300_000;

/// A list that lacks more than one in so many of those that are tracked is read again before it removes them.
const MANY: usize = 10;

/// When the exchange's clock moved against the run's, and whether it went back.
#[derive(Clone, Copy, Debug)]
struct Shift {
    at: u64,
    is_back: bool,
}

/// What is known of a yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tri {
    No,
    Maybe,
    Yes,
}

/// What changes over time, with all that it was not long ago.
#[derive(Clone, Debug)]
pub struct History<T>(Vec<(Window, T)>);

impl<T> Default for History<T> {
    fn default() -> Self {
        History(Vec::new())
    }
}

impl<T> History<T> {
    pub fn push(&mut self, window: Window, value: T) {
        let old = |next: &(Window, T)| next.0.1.saturating_add(MEMORY_US) < window.0;
        while self.0.len() > 1 && old(&self.0[1]) {
            self.0.remove(0);
        }
        self.0.push((window, value));
    }

    /// All that could be seen in this span. `true` when nothing at all could be seen, too.
    pub fn seen(&self, span: Span) -> (Vec<&(Window, T)>, bool) {
        // Once a state must be seen, none before it is.
        let must = |state: &(Window, T)| state.0.1 < span.0;
        let first = self.0.iter().rposition(must).unwrap_or(0);
        let seen = self.0[first..].iter().filter(|it| it.0.0 <= span.1);
        let nothing = self.0.iter().all(|state| state.0.1 > span.0);
        (seen.collect(), nothing)
    }

    /// Whether this held in a span: never, at some time, or all the time.
    pub fn held(&self, span: Span, is_so: impl Fn(&T) -> bool) -> Tri {
        let (seen, nothing) = self.seen(span);
        match seen.iter().filter(|it| is_so(&it.1)).count() {
            0 => Tri::No,
            count if count == seen.len() && !nothing => Tri::Yes,
            _ => Tri::Maybe,
        }
    }

    pub fn last(&self) -> Option<&T> {
        self.0.last().map(|(_, value)| value)
    }
}

/// One state of a quote.
#[derive(Clone, Debug)]
pub struct Quoted {
    /// `None`: dropped.
    pub figures: Option<Rc<Figures>>,
    /// The wall clock in the window.
    pub received_ms: (i64, i64),
}

/// One item of a list of tickers: the market, and its figures. `None`: bent so that the daemon must refuse it.
type Item = (usize, Option<Rc<Figures>>);

/// One row of a page of candles.
#[derive(Clone, Debug)]
pub enum Word {
    Row(Rc<Row>),
    /// Something unsound in this slot: no word about it.
    Unsound(i64),
}

/// What a good answer says.
#[derive(Clone, Debug)]
pub enum Said {
    /// And the exchange's clock when they were told.
    Tickers(Vec<Item>, i64),
    /// The listed markets, active ones and others.
    Markets(Vec<(usize, bool)>),
    Time(i64),
    Candles(Page),
}

/// A page of candles.
#[derive(Clone, Debug)]
pub struct Page {
    pub market: usize,
    pub interval: &'static str,
    /// First slot and last of those that it tells of as things stand: without a row, nothing was
    /// traded.
    pub slots: (i64, i64),
    pub words: Vec<Word>,
    /// Whether it can be told which slots have no row.
    pub is_whole: bool,
}

/// Whether a row was told of a slot that had closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It was forming.
    No,
    /// It closed while the answer was on its way, or the clock is in doubt.
    Maybe,
    Yes,
}

/// What was said about a candle: at which time, and the row.
pub type Words = Vec<(u64, Closed, Rc<Row>)>;

/// The candles of one market and stored interval.
#[derive(Clone, Debug, Default)]
pub struct Candles {
    pub said: BTreeMap<i64, Words>,
    /// Slots of answers that could have held their candle.
    pub asked: BTreeSet<i64>,
}

/// The exchange's clock less the run's, in milliseconds: at least and at most, as far as the daemon
/// may be wrong about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    pub least: i64,
    pub most: i64,
}

impl Offsets {
    /// The exchange's clock at this time of the run, at least and at most.
    pub fn at(self, us: u64) -> (i64, i64) {
        let ms = (us / 1000) as i64;
        (ms + self.least, ms + self.most)
    }
}

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub us: u64,
    pub unix_ms: i64,
}

/// A market that a source tracks only lately: whether it has a quote, a poll must tell.
#[derive(Clone, Copy, Debug)]
struct Lately {
    since: u64,
    /// When the next list must be in place.
    listed: Option<u64>,
    /// When a poll first came that may tell.
    may: Option<u64>,
    /// When one that was begun after the list must have told.
    must: Option<u64>,
}

/// A market of the list that is in place.
#[derive(Clone, Copy, Debug)]
struct Listing {
    active: bool,
    /// Whether the last list has it.
    is_listed: bool,
    /// Whether it is in place for certain: where the last list lacks it and nothing tells that the daemon must
    /// doubt this, it may be gone.
    is_sure: bool,
}

type Listings = BTreeMap<usize, Listing>;

/// What a source is to track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub named: BTreeSet<usize>,
    /// Of the others those that a list has had as active, as long as it has them. No run is as long as a
    /// halted market stays.
    pub wanted: BTreeSet<usize>,
}

impl Lately {
    fn new(since: u64) -> Lately {
        Lately { since, listed: None, may: None, must: None }
    }
}

impl Selection {
    /// Whether a market of the list is tracked.
    fn takes(&self, market: usize, active: bool) -> bool {
        self.named.contains(&market) || active && self.wanted.contains(&market)
    }
}

#[derive(Debug, Default)]
pub struct Ledger {
    pub id: String,
    /// Its place in the order of failover, once it has one.
    pub place: usize,
    /// `None`: the source is not configured.
    selection: History<Option<Selection>>,
    /// From which age on quotes are stale, and from when on the source is frozen.
    ages: History<(u64, u64)>,
    /// From an answer's last byte until all of it must be served.
    pub grace_us: u64,
    pub quotes: Vec<History<Quoted>>,
    frozen: History<Tri>,
    last_change: Option<Window>,
    polled: Option<Window>,
    /// The listed markets, and those that stay until a second list lacks them; `None`: no list has come.
    listed: History<Option<Listings>>,
    /// Markets whose listing came not long ago, and when.
    listed_at: HashMap<usize, u64>,
    lately: HashMap<usize, Lately>,
    /// The exchange's clock at our zero.
    clock: Option<i64>,
    pub candles: HashMap<(usize, &'static str), Candles>,
    /// Until when an answer may have been begun that has candles which are forgotten, and those.
    former: HashMap<(usize, &'static str), (u64, Candles)>,
    /// Every price that quotes said of a market, with the exchange's clock then.
    pub ticks: Vec<Vec<(Times, String)>>,
    /// The newest time of the last poll.
    newest_ms: Option<i64>,
    /// The last time that the exchange's clock moved against the run's, and when something first
    /// told the daemon that it had.
    shifted: Option<Shift>,
    contradicted: Option<u64>,
    /// When the exchange's clock was last set back.
    set_back: Option<u64>,
    /// When the machine slept, and for how many milliseconds; when its clock was set, and by how
    /// many.
    pub sleeps: Vec<(u64, i64)>,
    pub sets: Vec<(u64, i64)>,
    /// Whether what it has said of candles may be in a file.
    pub remembers: bool,
    /// Whether some candles were forgotten: what was said of them may be said again.
    pub has_left: bool,
}

impl Ledger {
    pub fn new(id: &str, markets: usize, selection: Option<Selection>) -> Ledger {
        let mut ledger = Ledger {
            id: id.to_string(),
            place: usize::MAX,
            quotes: (0..markets).map(|_| History::default()).collect(),
            ticks: vec![Vec::new(); markets],
            ..Ledger::default()
        };
        ledger.selection.push((0, 0), selection);
        ledger
    }

    /// The source is configured from now on, and begins anew.
    pub fn begin(&mut self, selection: Selection, now: u64) {
        self.forget(now, |_| true);
        // Whether there was a list before says nothing of this one.
        self.listed = History::default();
        self.listed_at.clear();
        self.lately.clear();
        self.frozen.push((now, now), Tri::No);
        (self.last_change, self.polled) = (None, None);
        (self.clock, self.newest_ms) = (None, None);
        (self.shifted, self.contradicted) = (None, None);
        self.selection.push((now, now), Some(selection));
    }

    /// The source is configured no longer.
    pub fn end(&mut self, now: u64) {
        self.forget(now, |_| true);
        self.listed.push((now, now), None);
        self.selection.push((now, now), None);
    }

    /// The source tracks other markets from now on. Those that come with this wait for the next list.
    pub fn select(&mut self, selection: Selection, now: u64) {
        let before = self.listed.last().cloned().flatten();
        let list = before.map(|mut list| {
            list.retain(|market, _| selection.takes(*market, true));
            list
        });
        let is_named = |market: usize| {
            let before = self.selection.last().and_then(Option::as_ref);
            before.is_some_and(|before| before.named.contains(&market))
        };
        for market in &selection.named {
            if !is_named(*market) && !self.is_listed(*market) {
                self.lately.insert(*market, Lately::new(now));
            }
        }
        let stays = |market: usize| list.as_ref().is_some_and(|it| it.contains_key(&market));
        let goes = |market: usize| !selection.named.contains(&market) && !stays(market);
        self.forget(now, goes);
        if list.is_some() {
            self.listed.push((now, now), list);
        }
        self.selection.push((now, now), Some(selection));
    }

    /// Drops quotes and candles of markets.
    fn forget(&mut self, now: u64, goes: impl Fn(usize) -> bool) {
        self.forget_candles((now, now), &goes);
        for market in (0..self.quotes.len()).filter(|market| goes(*market)) {
            self.drop_quote(market, (now, now));
        }
    }

    fn forget_candles(&mut self, window: Window, goes: impl Fn(usize) -> bool) {
        self.has_left = true;
        if !self.remembers {
            let gone = self.candles.extract_if(|(of, _), _| goes(*of));
            let gone = gone.map(|(key, candles)| (key, (window.1, candles)));
            self.former.extend(gone);
        }
    }

    fn drop_quote(&mut self, market: usize, window: Window) {
        let (figures, received_ms) = (None, (0, 0));
        let quoted = Quoted { figures, received_ms };
        self.quotes[market].push(window, quoted);
    }

    /// Quotes are stale, and the source is frozen, from these ages on; microseconds.
    pub fn set_ages(&mut self, stale_after: u64, frozen_after: u64, now: u64) {
        if self.ages.last() == Some(&(stale_after, frozen_after)) {
            return;
        }
        self.ages.push((now, now), (stale_after, frozen_after));
        // That nothing has changed for so long is still so, or it has not been so for long enough.
        let since = self.last_change.map_or(now, |window| window.1);
        if now.saturating_sub(since) < frozen_after {
            self.frozen.push((now, now), Tri::No);
        }
    }

    /// The markets that the configuration names.
    pub fn named(&self) -> BTreeSet<usize> {
        let selection = self.selection.last().cloned().flatten();
        selection.unwrap_or_default().named
    }

    /// Whether the source is configured.
    pub fn is_there(&self, span: Span) -> Tri {
        self.selection.held(span, Option::is_some)
    }

    /// Whether its first list may tell of a market that it then tracks.
    pub fn waits_for_list(&self, market: usize, span: Span) -> bool {
        self.has_list(span) == Tri::No && self.may_want(market, span)
    }

    /// Whether the configuration lets it track this market, if it is listed.
    pub fn may_want(&self, market: usize, span: Span) -> bool {
        let wants =
            |it: &Option<Selection>| it.as_ref().is_some_and(|it| it.wanted.contains(&market));
        self.selection.held(span, wants) != Tri::No
    }

    /// The daemon has read the last byte of a good answer. `sent`: when it had asked.
    pub fn learn(&mut self, said: Said, sent: Moment, now: Moment, truth: &Truth) {
        let since = self.shifted.filter(|shift| shift.at < sent.us);
        if since.is_some_and(|shift| !shift.is_back) {
            self.contradicted.get_or_insert(now.us);
        }
        match said {
            Said::Tickers(items, made_ms) => {
                let times = items.iter().filter_map(|item| item.1.as_ref()?.timestamp);
                let newest = times.max();
                let before = std::mem::replace(&mut self.newest_ms, newest);
                let goes_back = newest < before.map(|before| before - GOES_BACK_MS);
                if since.is_some() && newest.is_some() && goes_back {
                    self.contradicted.get_or_insert(now.us);
                }
                for it in self.lately.values_mut() {
                    it.may.get_or_insert(now.us);
                    if it.listed.is_some_and(|at| at <= sent.us) {
                        it.must.get_or_insert(now.us + self.grace_us);
                    }
                }
                self.learn_tickers(items, made_ms, now);
            }
            Said::Markets(list) => self.learn_list(list, now),
            Said::Time(time) => {
                // A clock that is set back puts in doubt what was said by it.
                self.has_left |= self.exchange_ms(now) > time + 1900;
                self.clock = Some(time - (now.us / 1000) as i64);
                if self.shifted.is_none_or(|shift| shift.at < sent.us) {
                    (self.shifted, self.contradicted) = (None, None);
                }
            }
            Said::Candles(page) => self.learn_candles(page, sent, now, truth),
        }
    }

    fn learn_tickers(&mut self, items: Vec<Item>, made_ms: i64, now: Moment) {
        let window = (now.us, now.us + self.grace_us);
        let received_ms = (now.unix_ms, now.unix_ms + (self.grace_us / 1000) as i64 + 1);
        // Where it cannot know that the exchange's clock went back, it takes them for later ones.
        let is_back = self.shifted.is_some_and(|shift| shift.is_back);
        let believed_ms = self.exchange_ms(now);
        let times = (made_ms, made_ms.max(if is_back { believed_ms } else { made_ms }));
        let mut changed = false;
        for (market, figures) in items {
            let Some(figures) = figures.filter(|_| self.is_listed(market)) else {
                continue;
            };
            let before = self.quotes[market].last();
            let before = before.and_then(|quoted| quoted.figures.as_ref());
            changed |= before.is_none_or(|before| before.named != figures.named);
            let last = figures.get("last").expect("a price").to_string();
            self.ticks[market].push((times, last));
            // Listed while this answer was on its way: it may have come too early.
            let listed_at = self.listed_at.get(&market);
            let unsure = listed_at.is_some_and(|at| now.us < at + 10_000_000)
                || self.listing(market).is_some_and(|it| !it.is_sure);
            let window = (window.0, if unsure { u64::MAX } else { window.1 });
            let figures = Some(figures);
            self.quotes[market].push(window, Quoted { figures, received_ms });
        }
        self.polled.get_or_insert(window);
        if changed || self.last_change.is_none() {
            self.last_change = Some(window);
            self.frozen.push(window, Tri::No);
        } else if let Some(change) = self.last_change {
            let least = window.0.saturating_sub(change.1);
            let moves = self.sleeps.iter().chain(&self.sets);
            let moved = moves.filter(|(at, _)| *at >= change.0);
            let moved: u64 = moved.map(|(_, ms)| 1000 * ms.max(&0).unsigned_abs()).sum();
            let most = window.1 - change.0 + moved;
            let frozen_after = self.ages.last().map_or(u64::MAX, |ages| ages.1);
            if least >= frozen_after {
                self.frozen.push(window, Tri::Yes);
            } else if most >= frozen_after {
                self.frozen.push(window, Tri::Maybe);
            }
        }
    }

    fn learn_list(&mut self, list: Vec<(usize, bool)>, now: Moment) {
        let window = (now.us, now.us + self.grace_us);
        let selection = self.selection.last().cloned().flatten();
        let selection = selection.unwrap_or_default();
        let before = self.listed.last().cloned().flatten();
        // A halted market stays that was tracked before, as a file may tell of an earlier run.
        let is_first = before.is_none();
        let before = before.unwrap_or_default();
        let listing = |(market, active)| {
            let is_taken = selection.takes(market, active);
            let was_sure = before.get(&market).map(|it| it.is_sure);
            let may_be_known = is_first && self.remembers && selection.takes(market, true);
            let is_sure = is_taken || was_sure == Some(true);
            let stays = is_taken || was_sure.is_some() || may_be_known;
            stays.then_some((market, Listing { active, is_listed: true, is_sure }))
        };
        let mut list: Listings = list.into_iter().filter_map(listing).collect();
        for (market, it) in &list {
            if it.is_sure && before.get(market).is_none_or(|before| !before.is_sure) {
                self.listed_at.insert(*market, now.us);
                if !selection.named.contains(market) {
                    self.lately.insert(*market, Lately::new(window.1));
                }
            }
        }
        for it in self.lately.values_mut() {
            it.listed.get_or_insert(window.1);
        }
        let lacking = before.iter().filter(|(market, _)| !list.contains_key(market));
        let lacking: Vec<(usize, Listing)> = lacking.map(|(market, it)| (*market, *it)).collect();
        let are_many = lacking.iter().filter(|(_, it)| it.is_sure).count() > before.len() / MANY;
        for (market, mut it) in lacking {
            let is_named = selection.named.contains(&market);
            // What the list before lacked too goes; else it stays where the daemon must doubt this list.
            let stays = it.is_listed;
            (it.is_listed, it.is_sure) = (false, are_many || self.is_fresh(market, window));
            let sure = it.is_sure;
            if stays {
                list.insert(market, it);
                self.has_left |= !sure;
            } else if !is_named {
                self.forget_candles(window, |of| of == market);
            }
            if !(is_named || stays && sure) {
                let must = if stays { u64::MAX } else { window.1 };
                self.drop_quote(market, (window.0, must));
            }
        }
        self.listed.push(window, Some(list));
    }

    /// Whether there is a quote of a market that is not stale, for certain.
    fn is_fresh(&self, market: usize, span: Span) -> bool {
        let (seen, nothing) = self.quotes[market].seen(span);
        let is_fresh = |state: &&(Window, Quoted)| {
            state.1.figures.is_some() && self.is_stale(state, span) == Tri::No
        };
        !nothing && seen.iter().all(is_fresh)
    }

    fn learn_candles(&mut self, page: Page, sent: Moment, now: Moment, truth: &Truth) {
        let Page { market, interval, slots, words, is_whole } = page;
        let length = length_ms(interval).expect("stored");
        // What the daemon takes for closed, and what may be: by its clock and by the exchange's.
        let clocks = |at: Moment| (self.exchange_ms(at), truth.clock(at.us));
        let (before, after) = (clocks(sent), clocks(now));
        // In doubt it goes by the earliest time that anything tells, which may be this machine's.
        let is_in_doubt = self.shifted.is_some() || self.clock.is_none();
        let least = if is_in_doubt { sent.unix_ms - MACHINE_OFF_MS } else { i64::MAX };
        let surely = before.0.min(before.1).min(least).div_euclid(length);
        let perhaps = after.0.max(after.1).div_euclid(length);
        // The two newest may be those of a market that nobody follows: they only tell that candles go on.
        let may_be_dropped = slots.0 + 1 == slots.1 && slots.1 >= surely;
        let candles = self.candles.entry((market, interval)).or_default();
        let mut unsound = BTreeSet::new();
        for word in words {
            let row = match word {
                Word::Row(row) => row,
                Word::Unsound(slot) => {
                    unsound.insert(slot);
                    continue;
                }
            };
            let slot = row.open_ms / length;
            let closed = match slot {
                _ if slot < surely && !may_be_dropped => Closed::Yes,
                _ if slot <= perhaps => Closed::Maybe,
                _ => Closed::No,
            };
            candles.asked.insert(slot);
            let said = candles.said.entry(slot).or_default();
            said.push((now.us, closed, row));
            // A forming candle is told again and again.
            if let [.., (_, Closed::No, before), (_, Closed::No, last)] = &said[..]
                && before == last
            {
                said.pop();
            }
        }
        if is_whole {
            let told = (slots.0..=slots.1).filter(|slot| !unsound.contains(slot));
            candles.asked.extend(told);
        }
    }

    /// The exchange's clock has jumped. What it says next tells, where it has jumped forward; else only
    /// quotes that are older than those before, for any answer may be old.
    pub fn jumped(&mut self, ms: i64, now: Moment) {
        self.shifted = Some(Shift { at: now.us, is_back: ms < 0 });
        self.set_back = if ms < 0 { Some(now.us) } else { self.set_back };
        self.contradicted = None;
    }

    /// The machine has slept: its own clocks have moved against each other, and that tells.
    pub fn slept(&mut self, ms: i64, now: Moment) {
        self.sleeps.push((now.us, ms));
        self.jumped(ms, now);
        self.contradicted = Some(now.us);
    }

    /// How much the daemon may be wrong about the exchange's clock: within a round trip, or by as much
    /// as it moved, where it could not know better yet. `calm_since`: when something last went wrong.
    pub fn offsets(&self, truth: &Truth, now: Moment, calm_since: u64) -> Offsets {
        let ms = (now.us / 1000) as i64;
        let (right, believed) = (truth.clock(now.us) - ms, self.exchange_ms(now) - ms);
        let in_time = |at: u64| now.us < at.max(calm_since) + CLOCK_GRACE_US;
        let may_be_wrong = match self.shifted {
            Some(_) => self.contradicted.is_none_or(in_time),
            None => self.clock.is_none(),
        };
        match may_be_wrong || right.abs_diff(believed) <= ROUND_TRIP_MS {
            true => Offsets { least: right.min(believed), most: right.max(believed) },
            false => Offsets { least: right, most: right },
        }
    }

    /// Whether the exchange has told its time.
    pub fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// The exchange's clock, as far as the daemon can know it.
    pub fn exchange_ms(&self, now: Moment) -> i64 {
        match self.clock {
            Some(zero) => zero + (now.us / 1000) as i64,
            None => now.unix_ms,
        }
    }

    fn listing(&self, market: usize) -> Option<&Listing> {
        self.listed.last()?.as_ref()?.get(&market)
    }

    fn is_listed(&self, market: usize) -> bool {
        self.listing(market).is_some()
    }

    /// Whether the source lists a market as halted.
    pub fn halts(&self, market: usize, span: Span) -> Tri {
        let halts = |list: &Option<Listings>| Some(!list.as_ref()?.get(&market)?.active);
        self.listed.held(span, |list| halts(list) == Some(true))
    }

    /// Whether the source tracks a market.
    pub fn tracks(&self, market: usize, span: Span) -> Tri {
        let (selections, unset) = self.selection.seen(span);
        let (lists, nothing) = self.listed.seen(span);
        let is_named = |it: &&(Window, Option<Selection>)| {
            it.1.as_ref().is_some_and(|it| it.named.contains(&market))
        };
        let listing = |it: &(Window, Option<Listings>)| it.1.as_ref()?.get(&market).copied();
        let is_sure = |it: &&(Window, _)| listing(it).is_some_and(|it| it.is_sure);
        let is_always_listed = lists.iter().all(is_sure) && !nothing;
        let is_tracked =
            |it: &(Window, Option<Selection>)| is_named(&it) || it.1.is_some() && is_always_listed;
        if !unset && selections.iter().all(|it| is_tracked(it)) {
            return Tri::Yes;
        }
        let is_there = selections.iter().any(|it| it.1.is_some());
        match selections.iter().any(is_named)
            || is_there && lists.iter().any(|it| listing(it).is_some())
        {
            true => Tri::Maybe,
            false => Tri::No,
        }
    }

    /// Whether a list has come.
    pub fn has_list(&self, span: Span) -> Tri {
        self.listed.held(span, Option::is_some)
    }

    /// Since when some market stays that the last list lacks.
    pub fn doubted_since(&self) -> Option<u64> {
        let ((_, since), list) = self.listed.0.last()?;
        let stays = list.iter().flatten().any(|(_, it)| !it.is_listed && it.is_sure);
        stays.then_some(*since)
    }

    /// When what it lists was last changed.
    pub fn listed_at(&self) -> u64 {
        self.listed.0.last().map_or(0, |(window, _)| window.1)
    }

    /// Whether a poll of quotes has succeeded.
    pub fn has_polled(&self, span: Span) -> Tri {
        match self.polled {
            Some((_, must)) if must <= span.0 => Tri::Yes,
            Some((may, _)) if may <= span.1 => Tri::Maybe,
            _ => Tri::No,
        }
    }

    /// Whether no poll has told whether there is a quote of a market that is tracked only lately.
    pub fn is_unready(&self, market: usize, span: Span) -> Tri {
        match self.lately.get(&market) {
            Some(it) if it.since <= span.0 && it.may.is_none_or(|at| at > span.1) => Tri::Yes,
            Some(it) if it.must.is_none_or(|at| at >= span.0) => Tri::Maybe,
            _ => Tri::No,
        }
    }

    /// Whether a state of a quote is stale.
    pub fn is_stale(&self, seen: &(Window, Quoted), span: Span) -> Tri {
        let window = seen.0;
        // While the machine sleeps its quotes age.
        let slept = |moves: &[(u64, i64)], until: u64| -> u64 {
            let during = moves.iter().filter(|(at, _)| (window.0..=until).contains(at));
            during.map(|(_, ms)| 1000 * ms.max(&0).unsigned_abs()).sum()
        };
        let early = span.0.saturating_sub(FLIP_SLACK_US);
        let least = span.0.saturating_sub(window.1) + slept(&self.sleeps, early);
        // Whether nothing has changed for too long in this time nobody can tell then, either.
        let moves = self.sleeps.iter().chain(&self.sets);
        let has_moved = moves.into_iter().any(|(at, _)| (window.0..=span.1).contains(at));
        let most = span.1.saturating_sub(window.0);
        let (states, _) = self.frozen.seen(span);
        let frozen = |tri: Tri| states.iter().any(|(_, state)| *state == tri);
        let (ages, _) = self.ages.seen(span);
        let ages = || ages.iter().map(|(_, ages)| ages.0);
        let youngest = ages().min().unwrap_or(u64::MAX);
        let oldest = ages().max().unwrap_or(u64::MAX);
        if least >= oldest.saturating_add(FLIP_SLACK_US)
            || frozen(Tri::Yes) && !frozen(Tri::No) && !frozen(Tri::Maybe)
        {
            Tri::Yes
        } else if most < youngest && !has_moved && !frozen(Tri::Yes) && !frozen(Tri::Maybe) {
            Tri::No
        } else {
            Tri::Maybe
        }
    }

    /// Tracked markets that have a quote, at least and at most.
    pub fn count_quotes(&self, span: Span) -> (usize, usize) {
        let mut counts = (0, 0);
        for history in &self.quotes {
            let has = history.held(span, |it| it.figures.is_some());
            counts.0 += usize::from(has == Tri::Yes);
            counts.1 += usize::from(has != Tri::No);
        }
        counts
    }

    /// The rows of a candle, said to be closed, that could be seen in this span; none: nothing was
    /// said of it.
    pub fn words(&self, market: usize, interval: &'static str, slot: i64, span: Span) -> Vec<&Row> {
        let hides =
            |(at, closed, _): &(u64, Closed, Rc<Row>)| *closed == Closed::Yes && *at < span.0;
        let said = self.seen(market, interval, span).filter_map(|candles| candles.said.get(&slot));
        // Where a clock is set back, the next candle is young again, and does not replace a final one.
        let was_final = |at: u64| self.set_back.is_some_and(|set_back| at < set_back);
        let begin = |said: &Words| match said.iter().rposition(hides) {
            Some(at) if !was_final(said[0].0) => at,
            _ => 0,
        };
        let seen = said.flat_map(|said| &said[begin(said)..]);
        let seen = seen.filter(|(at, closed, _)| *at <= span.1 && *closed != Closed::No);
        let mut rows: Vec<&Row> = Vec::new();
        for (_, _, row) in seen {
            if !rows.contains(&&**row) {
                rows.push(row);
            }
        }
        rows
    }

    /// What could be known of a series in this span: what was forgotten within it, and what is known now.
    pub fn seen(
        &self,
        market: usize,
        interval: &'static str,
        span: Span,
    ) -> impl Iterator<Item = &Candles> {
        let key = (market, interval);
        let former = self.former.get(&key).filter(|(until, _)| *until >= span.0);
        former.map(|(_, candles)| candles).into_iter().chain(self.candles.get(&key))
    }

    /// Slot of the newest candle that was said closed, for certain and perhaps. What was said a moment ago may
    /// be known in part: a page is taken in slice by slice.
    pub fn newest_row(
        &self,
        market: usize,
        interval: &'static str,
        span: Span,
    ) -> [Option<i64>; 2] {
        let newest = |candles: &Candles, least: Closed, until: u64| {
            let told = |(at, closed, _): &(u64, Closed, Rc<Row>)| {
                *at <= until && (*closed == least || *closed == Closed::Yes)
            };
            let mut said = candles.said.iter().rev();
            said.find(|(_, words)| words.iter().any(told)).map(|(slot, _)| *slot)
        };
        let now = self.candles.get(&(market, interval));
        let until = span.0.saturating_sub(self.grace_us);
        let certain = now.and_then(|it| newest(it, Closed::Yes, until));
        let seen = self.seen(market, interval, span);
        [certain, seen.filter_map(|it| newest(it, Closed::Maybe, span.1)).max()]
    }

    /// The markets tracked for certain.
    pub fn tracked(&self) -> BTreeSet<usize> {
        let list = self.listed.last().and_then(Option::as_ref);
        let sure = list.into_iter().flatten().filter(|(_, it)| it.is_sure);
        sure.map(|(market, _)| *market).collect()
    }
}
