//! What really happened at one made-up exchange, and how honestly it tells of it.
//!
//! Owns the true history: for each market and slot what was traded or that nothing was, what the
//! exchange's row said before it was final and when it became final, when a market was traded at
//! all, and the exchange's own clock. Answers are judged by this, and by nothing that marketd
//! believes. It never looks at a connection or at what marketd does with what it is told.
//!
//! Real exchanges tell their history badly, each in its own way, and so does this one:
//!
//! - *silent*: now and then a page is `[]` though something was traded. It heals: all such answers
//!   that leave out one traded slot come within [`HEALS_MS`] of each other, which is less than
//!   the least distance at which two answers count as two (one re-read apart).
//! - *cut*: a page never holds more than so many rows, fewer than documented. The limit stays the
//!   same for the whole run, and the rows that are lost are those on the side on which this
//!   exchange cuts: the newest. [`LEAST_PAGE`] rows always fit.
//! - *late*: an answer is made of what was there up to [`LATE_MS`] ago.
//! - *revised*: a closed row changes until it is final, at the latest [`FINAL_BEFORE_MS`] before the
//!   moment from which a second reading counts (`REREAD` slots after its close), so that a late
//!   answer at that moment has the final row.
//! - *thin*: in many slots nothing is traded, and the first trade of a slot comes at any time in it.
//! - *young*: before some time nothing was traded at all, and silence is all that is told of it.
//! - *away*: a market leaves the list, or is halted, and comes back. Meanwhile nothing is traded.
//!   Its history stays, or is refused as an unknown market's; it is never answered with silence,
//!   which two times in a row would be the word of an exchange that has no history.
//!
//! What no rule can tell from the truth is left out: an exchange that says twice, a re-read apart,
//! that nothing was traded where something was; a row that is missing in the middle of a page; a
//! revision after `REREAD` slots.
//!
//! The figures are a pure function of seed, market and time ([`Brain`]): made once, all runs of a test thread
//! share them.
//!
//! The clock may be off by hours, jumps, and goes on while the machine under marketd sleeps. A jump
//! forward shows in whatever the exchange says next: the time of its quotes, the `Date` of every answer.
//! A jump back shows only where quotes are older than those of the poll before: any other answer that
//! is old may just be late, and so may quotes after an outage or a standstill of the exchange. So it
//! comes while the exchange answers well, and goes back by more than two polls.

use crate::support::chance::mix;
use crate::support::generated::{GeneratedMarket, UNIT};
use crate::support::naive::{length_ms, plain};
use crate::support::{FIGURES, Json, Rng};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

const MINUTE_MS: i64 = 60_000;

/// Closed candles that are read again: a row is final so many slots after its close.
pub const REREAD: i64 = 2;

/// Silent answers about one traded slot come within this time.
pub const HEALS_MS: i64 = 30_000;

/// How late an answer may be.
pub const LATE_MS: i64 = 20_000;

/// How long before the second reading a row is final.
pub const FINAL_BEFORE_MS: i64 = 30_000;

/// A page holds so many rows at least, however it is cut.
pub const LEAST_PAGE: u64 = 20;

/// How one exchange tells of its history. All off: without fault.
#[derive(Clone, Default)]
pub struct Habits {
    /// So many of a thousand pages are silent, where the truth lets them.
    pub silent: u64,
    /// Most rows of a page.
    pub cut: Option<usize>,
    /// Most milliseconds that an answer is late.
    pub late: i64,
    /// One in so many rows is revised; 0: none.
    pub revised: u64,
    /// How long after its end a revised row is final; `None`: until shortly before it is read again.
    pub booked_ms: Option<i64>,
    /// When each market is traded.
    pub traded: Vec<Trading>,
    /// Whether the history of a market that is away is refused.
    pub refuses: bool,
    /// When its markets were first traded, by its clock.
    pub born_ms: Option<i64>,
}

/// The minutes in which a market is traded.
#[derive(Clone)]
pub enum Trading {
    Always,
    /// So many of a thousand.
    Often(u64),
    /// So many of a thousand in two of five hours, and none in the others.
    Pausing(u64),
    /// Those for which this is true.
    In(Rc<dyn Fn(i64) -> bool>),
}

impl Habits {
    /// Some habits, each of them on in some seeds.
    pub fn any(rng: &mut Rng, markets: usize) -> Habits {
        let some = |rng: &mut Rng, from: &[u64]| match rng.chance(1, 3) {
            true => *rng.pick(from),
            false => 0,
        };
        Habits {
            silent: some(rng, &[30, 200]),
            cut: (rng.chance(1, 4)).then(|| (LEAST_PAGE + rng.below(400)) as usize),
            late: some(rng, &[500, LATE_MS as u64]) as i64,
            revised: *rng.pick(&[0, 0, 2, 8]),
            booked_ms: None,
            traded: (0..markets)
                .map(|_| match *rng.pick(&[1000, 1000, 1000, 960, 500, 60]) {
                    1000 => Trading::Always,
                    often => Trading::Often(often),
                })
                .collect(),
            refuses: rng.chance(1, 2),
            born_ms: None,
        }
    }
}

/// A change of the market list, at this time of the exchange's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    pub at_ms: i64,
    pub market: usize,
    /// `None`: it leaves the list.
    pub active: Option<bool>,
    /// Whether tickers go on to hold it all the same.
    pub lingers: bool,
    /// The least worth of an order from then on.
    pub least: u64,
}

pub struct Truth {
    pub brain: Rc<Brain>,
    pub habits: Habits,
    /// The exchange's clock at zero of the run, and how much it is off the world's time.
    zero_ms: i64,
    pub off_ms: i64,
    /// Oldest first.
    pub changes: Vec<ListChange>,
    /// A span of the run in which no figure changes.
    pub freeze: Option<(u64, u64)>,
    /// When a silent answer first left out a traded slot: the world's time.
    silenced: HashMap<(usize, &'static str, i64), i64>,
}

impl Truth {
    pub fn new(brain: Rc<Brain>, habits: Habits, zero_ms: i64) -> Truth {
        let (changes, silenced) = (Vec::new(), HashMap::new());
        Truth { brain, habits, zero_ms, off_ms: 0, changes, freeze: None, silenced }
    }

    /// The exchange's clock at this time of the run.
    pub fn clock(&self, us: u64) -> i64 {
        self.zero_ms + self.off_ms + (us / 1000) as i64
    }

    /// The world's time then, which does not jump.
    pub fn world_ms(&self, us: u64) -> i64 {
        self.clock(us) - self.off_ms
    }

    /// So much time has passed in which the run's clock stood.
    pub fn passes(&mut self, ms: i64) {
        self.zero_ms += ms;
    }

    /// The listed markets by the exchange's clock, with their state.
    pub fn list(&self, clock: i64) -> Vec<(usize, bool)> {
        let all = 0..self.brain.markets.len();
        all.filter_map(|market| Some((market, self.state(market, clock)?))).collect()
    }

    /// Whether a market is listed then, and active.
    pub fn state(&self, market: usize, clock: i64) -> Option<bool> {
        match self.change(market, clock) {
            Some(change) => change.active,
            None => Some(true),
        }
    }

    /// The last change of a market up to then.
    pub fn change(&self, market: usize, clock: i64) -> Option<&ListChange> {
        let mut changes = self.changes.iter();
        changes.rfind(|change| change.market == market && change.at_ms <= clock)
    }

    /// A number that belongs to a slot, different for each purpose.
    fn chance(&self, market: usize, length: i64, slot: i64, purpose: u64) -> u64 {
        let place = mix(market as u64 ^ (length as u64) << 8 ^ purpose << 56);
        mix(place ^ slot as u64)
    }

    /// Whether something was, or will be, traded in a slot.
    pub fn traded(&self, market: usize, interval: &'static str, slot: i64) -> bool {
        if !self.brain.has_candles(market) || slot < 0 {
            return false;
        }
        let length = length_ms(interval).expect("stored");
        let span = slot * length..(slot + 1) * length;
        if self.habits.born_ms.is_some_and(|born| span.start < born) {
            return false;
        }
        let opens = |change: &ListChange| {
            change.market == market && change.active == Some(true) && span.contains(&change.at_ms)
        };
        if self.state(market, span.start) != Some(true) && !self.changes.iter().any(opens) {
            return false;
        }
        self.first_trade(market, span).is_some()
    }

    /// When something is first traded in this span of minutes, but for the changes of the list.
    fn first_trade(&self, market: usize, span: Range<i64>) -> Option<i64> {
        let is_in = |minute: &i64| {
            let chance = || self.chance(market, MINUTE_MS, *minute, 1) % 1000;
            match &self.habits.traded[market] {
                Trading::Always => true,
                Trading::Often(often) => chance() < *often,
                Trading::Pausing(often) => minute.div_euclid(60) % 5 < 2 && chance() < *often,
                Trading::In(is_in) => is_in(*minute),
            }
        };
        let mut minutes = span.start.div_euclid(MINUTE_MS)..span.end.div_euclid(MINUTE_MS);
        let minute = minutes.find(is_in)?;
        let late = match &self.habits.traded[market] {
            Trading::Always | Trading::In(_) => 0,
            _ => (self.chance(market, MINUTE_MS, minute, 2) % 1000) as i64 * MINUTE_MS / 1250,
        };
        Some(minute * MINUTE_MS + late)
    }

    /// The last moment up to this one in which a market was traded, by the exchange's clock.
    pub fn last_trade(&self, market: usize, clock: i64) -> Option<i64> {
        let now = clock.div_euclid(MINUTE_MS);
        let born = self.habits.born_ms.unwrap_or(0).div_euclid(MINUTE_MS);
        (born..=now).rev().find_map(|minute| {
            let end = (minute + 1) * MINUTE_MS;
            let first = self.first_trade(market, minute * MINUTE_MS..end)?;
            let is_over = first <= clock && self.traded(market, "1m", minute);
            is_over.then_some(clock.min(end))
        })
    }

    /// Whether the row that opens then is final by this clock of the exchange.
    pub fn is_final(&self, interval: &'static str, open_ms: i64, clock: i64) -> bool {
        let length = length_ms(interval).expect("stored");
        let after = self.habits.booked_ms.unwrap_or(REREAD * length - FINAL_BEFORE_MS);
        clock >= open_ms + length + after
    }

    /// The final row of a slot.
    pub fn row(&self, market: usize, interval: &'static str, slot: i64) -> Option<Rc<Row>> {
        self.row_at(market, interval, slot, i64::MAX)
    }

    /// The row of a slot as it was then.
    pub fn row_at(
        &self,
        market: usize,
        interval: &'static str,
        slot: i64,
        clock: i64,
    ) -> Option<Rc<Row>> {
        if !self.traded(market, interval, slot) {
            return None;
        }
        let length = length_ms(interval).expect("stored");
        let open = slot * length;
        if self.first_trade(market, open..open + length).is_none_or(|first| clock < first) {
            return None;
        }
        let row = self.brain.row(market, interval, slot, clock);
        let is_revised = match self.habits.revised {
            0 => false,
            part => self.chance(market, length, slot, 3).is_multiple_of(part),
        };
        let is_draft = clock >= open + length && !self.is_final(interval, open, clock);
        Some(match is_revised && is_draft {
            true => Rc::new(draft(&row)),
            false => row,
        })
    }

    /// The rows that open in a span of time, both ends included, as they were then.
    pub fn rows(
        &self,
        (market, interval): (usize, &'static str),
        (from, to): (i64, i64),
        clock: i64,
    ) -> impl Iterator<Item = Rc<Row>> {
        let length = length_ms(interval).expect("stored");
        let from = from.max(self.habits.born_ms.unwrap_or(0));
        let slots = (from + length - 1).div_euclid(length)..=to.min(clock).div_euclid(length);
        slots.filter_map(move |slot| self.row_at(market, interval, slot, clock))
    }

    /// The price of the last trade.
    pub fn last_price(&self, market: usize, clock: i64) -> Option<u64> {
        Some(self.brain.markets[market].price(self.last_trade(market, clock)?))
    }

    /// Whether a silent answer about these slots would be within what heals; takes note of it.
    pub fn may_be_silent(
        &mut self,
        market: usize,
        interval: &'static str,
        rows: &[Rc<Row>],
        us: u64,
    ) -> bool {
        let length = length_ms(interval).expect("stored");
        let world_ms = self.world_ms(us);
        let keys = || rows.iter().map(|row| (market, interval, row.open_ms / length));
        let told = |key| self.silenced.get(&key).copied().unwrap_or(world_ms);
        if rows.is_empty() || keys().any(|key| world_ms - told(key) > HEALS_MS) {
            return false;
        }
        let keys: Vec<_> = keys().collect();
        for key in keys {
            self.silenced.entry(key).or_insert(world_ms);
        }
        true
    }
}

/// A row as it is told before the last trades are booked: less volume, and another close.
fn draft(row: &Row) -> Row {
    let [open, high, low, close, volume] = row.figures();
    let close = if close == high { low } else { high };
    let volume = plain(&format!("{volume}e-1"));
    let begin = format!("[{},\"{open}\",\"{high}\",\"{low}\",\"{close}\"", row.open_ms);
    Row::new(row.open_ms, format!("{begin},\"{volume}\",0,\"0\",0,\"0\",\"0\",\"0\"]"))
}

/// The markets that have candles: base, quote, and the price around which each moves.
const TRADED: [(&str, &str, u64); 7] = [
    ("BTC", "USDT", 64_000 * UNIT),
    ("ETH", "USDT", 3100 * UNIT),
    ("DOGE", "USDT", UNIT / 7),
    ("SHIB", "USDT", 1234),
    ("ETH", "BTC", UNIT / 20),
    ("SOL", "BTC", UNIT / 500),
    ("BTC", "EUR", 59_000 * UNIT),
];

/// What a ticker calls the figures of a quote, in their order.
const MEMBERS: &str = "lastPrice bidPrice askPrice bidQty askQty openPrice highPrice lowPrice \
                       priceChange priceChangePercent volume quoteVolume";

/// What is to be served of one ticker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// By served name; `None`: null.
    pub named: Vec<(&'static str, Option<String>)>,
    pub timestamp: Option<i64>,
}

impl Figures {
    /// Reads the exchange's members, by its names.
    pub fn of(member: impl Fn(&str) -> Option<String>) -> Figures {
        let read = |(ours, theirs)| (ours, member(theirs).map(|text| plain(&text)));
        let mut named: Vec<_> = FIGURES.into_iter().zip(MEMBERS.split(' ')).map(read).collect();
        // A price of zero is none, and nothing is offered at no price.
        for (price, volume) in [(1, Some(3)), (2, Some(4)), (5, None), (6, None), (7, None)] {
            if named[price].1.as_deref() == Some("0") {
                named[price].1 = None;
            }
            if let (None, Some(volume)) = (&named[price].1, volume) {
                named[volume].1 = None;
            }
        }
        Figures { named, timestamp: member("closeTime").and_then(|text| text.parse().ok()) }
    }

    /// The figure of that served name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.named.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.as_deref())
    }
}

/// One ticker as it is sent, and what it says.
#[derive(Clone, Debug)]
pub struct Ticker {
    pub text: String,
    pub figures: Figures,
}

/// One candle as it is sent.
#[derive(Clone, Debug)]
pub struct Row {
    pub open_ms: i64,
    pub text: String,
    figures: OnceCell<[String; 5]>,
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.text == other.text
    }
}

impl Row {
    pub fn new(open_ms: i64, text: String) -> Row {
        Row { open_ms, text, figures: OnceCell::new() }
    }

    /// What it says: open, high, low, close, volume.
    pub fn figures(&self) -> &[String; 5] {
        self.figures.get_or_init(|| {
            let json = Json::parse(&self.text).expect("a row is JSON");
            [1, 2, 3, 4, 5].map(|at| plain(json[at].text().expect("a number")))
        })
    }
}

/// So many rows are remembered at most.
const MOST_ROWS: usize = 100_000;

/// By seed, market, interval and slot.
type Rows = HashMap<(u64, usize, &'static str, i64), Rc<Row>>;

thread_local! {
    static TICKERS: RefCell<HashMap<(u64, usize, i64), Rc<Ticker>>> = RefCell::default();
    static ROWS: RefCell<Rows> = RefCell::default();
}

#[derive(Debug)]
pub struct Brain {
    seed: u64,
    pub markets: Vec<GeneratedMarket>,
    /// So many of them have candles.
    with_candles: usize,
}

impl Brain {
    /// One with so many markets beside those that have candles.
    pub fn new(seed: u64, extra: usize) -> Brain {
        let traded = TRADED.iter().map(|(base, quote, level)| (base.to_string(), *quote, *level));
        let others = (0..extra).map(|n| (format!("W{n:03}"), "USDT", 1000 * UNIT));
        Brain { with_candles: TRADED.len(), ..Brain::of(seed, traded.chain(others)) }
    }

    /// One with these markets, all of which have candles: base, quote, and the price around which each moves.
    pub fn of(seed: u64, markets: impl Iterator<Item = (String, &'static str, u64)>) -> Brain {
        let markets = markets.enumerate().map(|(at, (base, quote, level))| {
            GeneratedMarket::new(base, quote, level, mix(seed ^ mix(at as u64)))
        });
        Brain { seed, markets: markets.collect(), with_candles: usize::MAX }
    }

    /// The market of that id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.markets.iter().position(|market| market.id() == id)
    }

    /// What a market is worth at this time of the exchange's clock.
    pub fn ticker(&self, market: usize, at_ms: i64) -> Rc<Ticker> {
        let second = at_ms.div_euclid(1000);
        let made = || {
            let text = self.markets[market].ticker(second * 1000);
            Rc::new(Ticker { figures: figures_of(&text), text })
        };
        TICKERS.with_borrow_mut(|known| {
            known.entry((self.seed, market, second)).or_insert_with(made).clone()
        })
    }

    /// Whether a market has candles at all.
    pub fn has_candles(&self, market: usize) -> bool {
        market < self.with_candles
    }

    /// The candle of a slot that has begun at this time of the exchange's clock.
    pub fn row(&self, market: usize, interval: &'static str, slot: i64, at_ms: i64) -> Rc<Row> {
        let length = length_ms(interval).expect("a stored interval");
        let (open, made) = (slot * length, &self.markets[market]);
        let made = || Rc::new(Row::new(open, made.kline(length, open, at_ms)));
        if open + length > at_ms {
            return made();
        }
        let key = (self.seed, market, interval, slot);
        ROWS.with_borrow_mut(|known| {
            if known.len() > MOST_ROWS {
                known.clear();
            }
            known.entry(key).or_insert_with(made).clone()
        })
    }

    /// The list's entry of a market: whether it is active, and the least worth of an order.
    pub fn listing(&self, market: usize, active: bool, least: u64) -> String {
        let status = if active { "\"TRADING\"" } else { "\"BREAK\"" };
        let info = self.markets[market].info().replace("\"TRADING\"", status);
        info.replace("\"minNotional\":\"5.0", &format!("\"minNotional\":\"{least}.0"))
    }
}

/// What a ticker's text says.
pub fn figures_of(text: &str) -> Figures {
    let json = Json::parse(text).expect("a ticker is JSON");
    Figures::of(|name| json.get(name).and_then(Json::text).map(str::to_string))
}
