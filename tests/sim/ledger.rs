//! What one exchange has said so far, as the daemon must have understood it.
//!
//! Owns the model that answers are compared with: for each market the figures and the time at
//! which they were said, for each candle its last word, the market list, the clock. It learns
//! from answers whose last byte the daemon has read, and from nothing else.
//!
//! The daemon takes a moment from an answer's last byte to what it serves. So a state has a
//! *window*: it may be seen from the first moment on, and must be seen from the second on.

use super::brain::Row;
use super::naive::{Figures, length_ms};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// From when on something may be seen, and from when on it must; microseconds.
pub type Window = (u64, u64);

/// A span of time in which an answer was made; microseconds.
pub type Span = (u64, u64);

/// How late a flag may be turned: the longest turn of the simulated driver, and some.
pub const FLIP_SLACK_US: u64 = 100_000;

/// States older than this are forgotten: no answer takes as long.
const MEMORY_US: u64 = 120_000_000;

/// What is known of a yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let behind = |at: usize| self.0.get(at + 1).is_none_or(|next| next.0.1 >= span.0);
        let seen = (0..self.0.len())
            .filter(|at| self.0[*at].0.0 <= span.1 && behind(*at))
            .map(|at| &self.0[at]);
        let nothing = self.0.first().is_none_or(|first| first.0.1 > span.0);
        (seen.collect(), nothing)
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

/// One item of a list of tickers.
#[derive(Clone, Debug)]
pub struct Item {
    pub market: usize,
    /// `None`: bent so that the daemon must refuse it.
    pub figures: Option<Rc<Figures>>,
}

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
    Tickers(Vec<Item>),
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
    /// First slot and last.
    pub slots: (i64, i64),
    pub words: Vec<Word>,
    /// Whether slots without a word have no candle.
    pub is_whole: bool,
}

/// What was said about a candle: at which time, and the row; `None`: there is none.
type Words = Vec<(u64, Option<Rc<Row>>)>;

/// The candles of one market and stored interval.
#[derive(Clone, Debug, Default)]
pub struct Candles {
    said: BTreeMap<i64, Words>,
}

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub us: u64,
    pub unix_ms: i64,
}

/// See the module's page.
#[derive(Debug)]
pub struct Ledger {
    pub id: String,
    pub named: Vec<usize>,
    /// Whether every active market is tracked.
    pub tracks_all: bool,
    pub stale_after_us: u64,
    pub frozen_after_us: u64,
    /// From an answer's last byte until all of it must be served.
    pub grace_us: u64,
    pub quotes: Vec<History<Quoted>>,
    frozen: History<Tri>,
    last_change: Option<Window>,
    polled: Option<Window>,
    /// The listed markets with their state.
    listed: History<BTreeMap<usize, bool>>,
    /// Markets whose listing came not long ago, and when.
    listed_at: HashMap<usize, u64>,
    /// The exchange's clock at our zero.
    clock: Option<i64>,
    pub candles: HashMap<(usize, &'static str), Candles>,
    /// Every price and volume that was said of a market.
    pub prices: Vec<HashSet<String>>,
    /// Slots about which the exchange once did not tell the truth.
    pub lied: HashSet<(usize, &'static str, i64)>,
    /// Whether some candles were forgotten: what was said of them may be said again.
    pub has_left: bool,
}

impl Ledger {
    pub fn new(id: &str, markets: usize, named: Vec<usize>, tracks_all: bool) -> Ledger {
        Ledger {
            id: id.to_string(),
            named,
            tracks_all,
            stale_after_us: 0,
            frozen_after_us: 0,
            grace_us: 0,
            quotes: (0..markets).map(|_| History::default()).collect(),
            frozen: History::default(),
            last_change: None,
            polled: None,
            listed: History::default(),
            listed_at: HashMap::new(),
            clock: None,
            candles: HashMap::new(),
            prices: vec![HashSet::new(); markets],
            lied: HashSet::new(),
            has_left: false,
        }
    }

    /// The daemon has read the last byte of a good answer. `sent`: when it had asked.
    pub fn learn(&mut self, said: Said, sent: Moment, now: Moment) {
        match said {
            Said::Tickers(items) => self.learn_tickers(items, now),
            Said::Markets(list) => self.learn_list(list, now),
            Said::Time(time) => {
                // A clock that is set back puts in doubt what was said by it.
                self.has_left |= self.exchange_ms(now) > time + 1900;
                self.clock = Some(time - (now.us / 1000) as i64);
            }
            Said::Candles(page) => self.learn_candles(page, sent, now),
        }
    }

    fn learn_tickers(&mut self, items: Vec<Item>, now: Moment) {
        let window = (now.us, now.us + self.grace_us);
        let received_ms = (now.unix_ms, now.unix_ms + (self.grace_us / 1000) as i64 + 1);
        let mut changed = false;
        for Item { market, figures } in items {
            let Some(figures) = figures.filter(|_| self.is_listed(market)) else {
                continue;
            };
            let before = self.quotes[market].last();
            let before = before.and_then(|quoted| quoted.figures.as_ref());
            changed |= before.is_none_or(|before| before.named != figures.named);
            let last = figures.get("last").expect("a price").to_string();
            self.prices[market].insert(last);
            // Listed while this answer was on its way: it may have come too early.
            let fresh = self.listed_at.get(&market);
            let unsure = fresh.is_some_and(|at| now.us < at + 10_000_000);
            let window = (window.0, if unsure { u64::MAX } else { window.1 });
            let figures = Some(figures);
            self.quotes[market].push(
                window,
                Quoted {
                    figures,
                    received_ms,
                },
            );
        }
        self.polled.get_or_insert(window);
        if changed || self.last_change.is_none() {
            self.last_change = Some(window);
            self.frozen.push(window, Tri::No);
        } else if let Some(change) = self.last_change {
            let least = window.0.saturating_sub(change.1);
            let most = window.1 - change.0;
            if least >= self.frozen_after_us {
                self.frozen.push(window, Tri::Yes);
            } else if most >= self.frozen_after_us {
                self.frozen.push(window, Tri::Maybe);
            }
        }
    }

    fn learn_list(&mut self, list: Vec<(usize, bool)>, now: Moment) {
        let window = (now.us, now.us + self.grace_us);
        let tracked = |(market, active): &(usize, bool)| {
            self.named.contains(market) || self.tracks_all && *active
        };
        let list: BTreeMap<usize, bool> = list.into_iter().filter(tracked).collect();
        let before = self.listed.last().cloned();
        for market in list.keys() {
            if before
                .as_ref()
                .is_none_or(|before| !before.contains_key(market))
            {
                self.listed_at.insert(*market, now.us);
            }
        }
        for market in before.unwrap_or_default().keys() {
            if !list.contains_key(market) && !self.named.contains(market) {
                self.has_left = true;
                self.candles.retain(|(of, _), _| of != market);
                let received_ms = (0, 0);
                let figures = None;
                self.quotes[*market].push(
                    window,
                    Quoted {
                        figures,
                        received_ms,
                    },
                );
            }
        }
        self.listed.push(window, list);
    }

    fn learn_candles(&mut self, page: Page, sent: Moment, now: Moment) {
        let Page {
            market,
            interval,
            slots,
            words,
            is_whole,
        } = page;
        let length = length_ms(interval).expect("stored");
        let present = self.exchange_ms(sent).div_euclid(length);
        let mut rows: BTreeMap<i64, Option<Rc<Row>>> = BTreeMap::new();
        for word in words {
            match word {
                Word::Row(row) => {
                    for figure in &row.figures {
                        self.prices[market].insert(figure.clone());
                    }
                    rows.insert(row.open_ms / length, Some(row));
                }
                Word::Unsound(slot) => drop(rows.insert(slot, None)),
            }
        }
        let candles = self.candles.entry((market, interval)).or_default();
        for slot in slots.0..=slots.1.min(present - 1) {
            let said = candles.said.entry(slot).or_default();
            let word = match rows.remove(&slot) {
                Some(Some(row)) => Some(row),
                // Something unsound is no word, and neither is silence where a candle came that
                // may be of any slot.
                Some(None) => continue,
                None if !is_whole => continue,
                None => None,
            };
            if said.last().is_none_or(|(_, last)| *last != word) {
                said.push((now.us, word));
            }
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

    fn is_listed(&self, market: usize) -> bool {
        let list = self.listed.last();
        list.is_some_and(|list| list.contains_key(&market))
    }

    /// Whether the source tracks a market.
    pub fn tracks(&self, market: usize, span: Span) -> Tri {
        if self.named.contains(&market) {
            return Tri::Yes;
        }
        let (seen, nothing) = self.listed.seen(span);
        let listed = |list: &&(Window, BTreeMap<usize, bool>)| list.1.contains_key(&market);
        match (seen.iter().any(listed), seen.iter().all(listed) && !nothing) {
            (_, true) => Tri::Yes,
            (true, false) => Tri::Maybe,
            (false, false) => Tri::No,
        }
    }

    /// Whether a list has come.
    pub fn has_list(&self, span: Span) -> Tri {
        match self.listed.seen(span) {
            (seen, _) if seen.is_empty() => Tri::No,
            (_, true) => Tri::Maybe,
            (_, false) => Tri::Yes,
        }
    }

    /// Whether a poll of quotes has succeeded.
    pub fn has_polled(&self, span: Span) -> Tri {
        match self.polled {
            Some((_, must)) if must <= span.0 => Tri::Yes,
            Some((may, _)) if may <= span.1 => Tri::Maybe,
            _ => Tri::No,
        }
    }

    /// Whether a state of a quote is stale.
    pub fn is_stale(&self, seen: &(Window, Quoted), span: Span) -> Tri {
        let window = seen.0;
        let least = span.0.saturating_sub(window.1);
        let most = span.1.saturating_sub(window.0);
        let (states, _) = self.frozen.seen(span);
        let frozen = |tri: Tri| states.iter().any(|(_, state)| *state == tri);
        if least >= self.stale_after_us.saturating_add(FLIP_SLACK_US)
            || frozen(Tri::Yes) && !frozen(Tri::No) && !frozen(Tri::Maybe)
        {
            Tri::Yes
        } else if most < self.stale_after_us && !frozen(Tri::Yes) && !frozen(Tri::Maybe) {
            Tri::No
        } else {
            Tri::Maybe
        }
    }

    /// Tracked markets that have a quote, at least and at most.
    pub fn count_quotes(&self, span: Span) -> (usize, usize) {
        let mut counts = (0, 0);
        for history in &self.quotes {
            let (seen, nothing) = history.seen(span);
            let has = |state: &&(Window, Quoted)| state.1.figures.is_some();
            counts.0 += usize::from(!nothing && seen.iter().all(has));
            counts.1 += usize::from(seen.iter().any(has));
        }
        counts
    }

    /// All that was said about a candle as it could be seen in this span; `None`: nothing was.
    pub fn words(
        &self,
        market: usize,
        interval: &'static str,
        slot: i64,
        span: Span,
    ) -> Option<Vec<Option<&Row>>> {
        let said = self.candles.get(&(market, interval))?.said.get(&slot)?;
        let behind = |at: usize| said.get(at + 1).is_none_or(|(next, _)| *next >= span.0);
        let seen = (0..said.len()).filter(|at| behind(*at) && said[*at].0 <= span.1);
        let words: Vec<_> = seen.map(|at| said[at].1.as_deref()).collect();
        (!words.is_empty()).then_some(words)
    }

    /// Slot of the newest candle that was said closed.
    pub fn newest_row(&self, market: usize, interval: &'static str, at: u64) -> Option<i64> {
        let candles = self.candles.get(&(market, interval))?;
        let found = candles.said.iter().rev().find(|(_, words)| {
            let word = words.iter().rev().find(|(said, _)| *said <= at);
            word.is_some_and(|(_, word)| word.is_some())
        });
        found.map(|(slot, _)| *slot)
    }

    /// The markets tracked for certain.
    pub fn tracked(&self) -> BTreeSet<usize> {
        let listed = self.listed.last().into_iter().flat_map(BTreeMap::keys);
        listed.copied().collect()
    }
}
