//! A made-up exchange on a bad day: what is wrong with it and when, what it answers, and what it counts.
//!
//! Owns what was traded there ([`Truth`]), what is wrong with it when, and its count of the units that it was
//! asked for, over all sources that ask it. Quotes follow the trades that candles tell of, so the two never
//! contradict each other. It never looks at what marketd makes of its answers.

use super::super::exchange::{MINUTE, MOST_A_MINUTE, Scale, Task, UNKNOWN_MARKET};
use super::super::truth::{Brain, Habits, ListChange, Row, Trading, Truth};
use super::super::weather::SECOND;
use super::judge::check;
use crate::support::Rng;
use crate::support::generated::{UNIT, decimal};
use crate::support::message::{MessageHead, field};
use crate::virtual_time::{Request, Response};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

/// Tells how many units were asked for in this window.
const USED: &str = "x-mbx-used-weight-1m";

pub struct Host {
    pub truth: Truth,
    pub spells: Vec<Spell>,
    /// Units in any minute.
    pub budget: u64,
    /// Whether its answers have a `Date`.
    pub has_date: bool,
    /// The tag of its market list, if it has one, and how often it was sent whole.
    pub tag: Option<&'static str>,
    pub lists_sent: u64,
    /// Requests for candles: market, interval, first and last open time.
    pub asked: Vec<(usize, &'static str, i64, i64)>,
    /// What it was asked in the last minute, and how often for one page of candles at most.
    scale: Scale,
    pub most_a_minute: usize,
    /// Rows that were told before they were final: market, interval, open time.
    pub drafts: HashMap<(usize, &'static str, i64), Vec<Rc<Row>>>,
    reported: Option<Reported>,
    /// The last window in which others have spent, and how many units.
    spent_by_others: (u64, u64),
    /// Answers of a kind that each spell has bent or refused.
    bent: BTreeMap<usize, u64>,
}

/// What the exchange last said was used in a window.
#[derive(Clone, Copy, Debug)]
struct Reported {
    window: u64,
    used: u64,
    /// When that was read, and what was asked for after that.
    at: u64,
    since: u64,
}

impl Host {
    /// One whose markets, numbered from `first` on, were traded like this since they were born.
    pub fn new(
        (first, traded): (usize, Vec<Trading>),
        (born_ms, begin_ms): (i64, i64),
        budget: u64,
        rng: &mut Rng,
    ) -> Host {
        let numbers = first..first + traded.len();
        let markets = numbers.map(|at| (format!("M{at:02}"), "USDT", 500 * UNIT));
        let brain = Rc::new(Brain::of(rng.next(), markets));
        let habits = Habits {
            revised: 1,
            booked_ms: Some(BOOKED_MS),
            traded,
            refuses: true,
            born_ms: Some(born_ms),
            ..Habits::default()
        };
        Host {
            truth: Truth::new(brain, habits, begin_ms),
            spells: Vec::new(),
            budget,
            has_date: rng.chance(3, 4),
            tag: None,
            lists_sent: 0,
            asked: Vec::new(),
            scale: Scale::default(),
            most_a_minute: MOST_A_MINUTE,
            drafts: HashMap::new(),
            reported: None,
            spent_by_others: (0, 0),
            bent: BTreeMap::new(),
        }
    }

    /// Another daemon has not read what the last one was told.
    pub fn is_met_anew(&mut self, us: u64) {
        (self.reported, self.scale.since) = (None, us);
    }

    /// Its clock.
    pub fn clock(&self, us: u64) -> i64 {
        self.truth.clock(us)
    }

    /// The symbol of a market.
    pub fn symbol(&self, market: usize) -> String {
        self.truth.brain.markets[market].symbol()
    }

    /// How many markets it ever had.
    pub fn count(&self) -> usize {
        self.truth.brain.markets.len()
    }

    /// Removes a market for good.
    pub fn remove(&mut self, market: usize, at_ms: i64) {
        let change = ListChange { at_ms, market, active: None, lingers: false, least: 1 };
        self.truth.changes.push(change);
    }

    /// Whether a market is never removed.
    pub fn stays(&self, market: usize) -> bool {
        self.truth.changes.iter().all(|change| change.market != market)
    }

    /// The spells that are on, with their places.
    fn ills(&self, us: u64) -> impl Iterator<Item = (usize, Spell)> {
        let spells = self.spells.iter().copied().enumerate();
        spells.filter(move |(_, spell)| spell.is_on(us))
    }

    pub fn has(&self, us: u64, is_it: impl Fn(Ill) -> bool) -> bool {
        self.ills(us).any(|(_, spell)| is_it(spell.ill))
    }

    /// Whether the only witness of its time lies, or has until some minutes ago: it is believed.
    pub fn deceives(&self, us: u64) -> bool {
        let was_on = |is_it: fn(Ill) -> bool| {
            let mut spells = self.spells.iter();
            spells.any(|it| {
                is_it(it.ill) && (it.from..it.until.saturating_add(10 * MINUTE)).contains(&us)
            })
        };
        let is_untold = |ill| match ill {
            Ill::ClockMissing { .. } => true,
            Ill::Refuses { kind, .. } => kind.is_none_or(|kind| kind == Kind::Clock),
            _ => false,
        };
        let are_lies = |ill| matches!(ill, Ill::TickersDated { all: true, .. });
        !self.has_date && was_on(is_untold) && was_on(are_lies)
    }

    /// Whether a market list of the last hour, by which the next one comes, may have lacked a market. With
    /// `again`: also where it was asked for again.
    pub fn hides(&self, market: usize, again: bool, us: u64) -> bool {
        self.spells.iter().any(|spell| match spell.ill {
            Ill::ListShort { left, once } if !again || !once => {
                left <= market
                    && (spell.from..spell.until.saturating_add(70 * MINUTE)).contains(&us)
            }
            _ => false,
        })
    }

    /// When the last spell that is on or over ended.
    pub fn calm_since(&self, us: u64) -> Option<u64> {
        let begun = self.spells.iter().filter(|spell| spell.from <= us);
        let until = begun.map(|spell| spell.until).max().unwrap_or(0);
        (until <= us).then_some(until)
    }

    /// A request has arrived: counts it. What the exchange has reported as used counts until the end of
    /// the window.
    fn weigh(&mut self, (target, task): (&str, &Task), sent: u64, us: u64) -> u64 {
        let (units, window) = (task.units(), us / MINUTE * MINUTE);
        // Several sources ask for the same pages.
        let asked = target.find("/api").map_or(target, |at| &target[at..]);
        let same = self.scale.note(asked, units, us);
        check(same <= self.most_a_minute, us, || {
            format!("{target} is asked for {same} times in a minute")
        });
        // What a killed daemon has spent nobody knows but the exchange, which counts by whole windows.
        let sum = self.scale.sum(self.scale.since.min(window));
        let budget = self.budget;
        check(sum <= budget, us, || format!("{target} makes {sum} of {budget} units in a window"));
        if let Some(it) =
            self.reported.as_mut().filter(|it| it.window == us / MINUTE && sent > it.at)
        {
            it.since += units;
            let (used, since) = (it.used, it.since);
            check(used + since <= budget, us, || {
                format!(
                    "{target} makes {since} units after {used} of {budget} were reported as used"
                )
            });
        }
        self.scale.sum(window) + self.others(us)
    }

    /// What other programs have spent in this window.
    fn others(&mut self, us: u64) -> u64 {
        let percents = self.ills(us).map(|(_, spell)| match spell.ill {
            Ill::OtherProgram { percent } => percent,
            _ => 0,
        });
        let (window, units) = (us / MINUTE, self.budget * percents.sum::<u64>() / 100);
        // What was spent stays so until the window ends.
        self.spent_by_others = match self.spent_by_others {
            (known, most) if known == window => (window, units.max(most)),
            _ => (window, units),
        };
        self.spent_by_others.1
    }

    /// An answer has been read: what it says about the budget holds from now on.
    pub fn was_read(&mut self, head: &MessageHead, us: u64) {
        let number = |name: &str| field(&head.fields, name).map_or(0, |it| it.parse().expect(name));
        let (used, window) = (number(USED), number("X-Window"));
        let is_known = |it: &Reported| it.window == window && it.used + it.since >= used;
        if window == us / MINUTE && !self.reported.as_ref().is_some_and(is_known) {
            self.reported = Some(Reported { window, used, at: us, since: 0 });
        }
    }

    /// Answers a request.
    pub fn answer(&mut self, request: &Request, us: u64) -> Response {
        if self.has(us, |ill| ill == Ill::Gone) {
            return Response::End;
        }
        if self.has(us, |ill| ill == Ill::Silent) {
            return Response::Silence;
        }
        let target = &request.target;
        let (kind, task) = (Kind::of(target), self.truth.read(target));
        let used = self.weigh((target, &task), request.sent_us, us);
        let clock = self.clock(us);
        let refusal = self.refusal(kind, us);
        let (mut status, mut body) = match refusal {
            Some((status @ (429 | 418), _)) => {
                (status, "{\"code\":-1003,\"msg\":\"Too many requests.\"}".to_string())
            }
            Some((status, _)) => (status, "<html>down</html>".to_string()),
            None => self.tell(request, kind, task, us),
        };
        // In which window it counts.
        let mut fields = format!("{USED}: {used}\r\nX-Window: {}\r\n", us / MINUTE);
        if let Some(tag) = self.tag.filter(|_| kind == Kind::List && status == 200) {
            fields.push_str(&format!("ETag: {tag}\r\n"));
            if field(&request.fields, "If-None-Match") == Some(tag) {
                (status, body) = (304, String::new());
            }
        }
        self.lists_sent += u64::from(kind == Kind::List && status == 200);
        let retry_after = refusal.and_then(|(_, after)| after);
        fields.extend(retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")));
        let mut slow = 0;
        let (mut has_date, mut date) = (self.has_date, clock);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::ClockSlow if kind == Kind::Clock => slow = 3_000_000,
                Ill::ClockMissing { date } => has_date = date,
                Ill::DateOff(ms) => date += ms,
                Ill::ErrorsDated(ms) if status >= 300 => date += ms,
                Ill::Aged => {
                    date -= 40_000;
                    fields.push_str("Age: 40\r\n");
                }
                _ => {}
            }
        }
        if has_date {
            let date = UNIX_EPOCH + Duration::from_millis(date.unsigned_abs());
            fields.push_str(&format!("Date: {}\r\n", httpdate::fmt_http_date(date)));
        }
        Response::new(status, &fields, &body).after(slow)
    }

    /// How a request of this kind is refused, if it is.
    fn refusal(&mut self, of: Kind, us: u64) -> Option<(u16, Option<u64>)> {
        let found = self.ills(us).find_map(|(at, spell)| match spell.ill {
            Ill::Refuses { kind, status, retry_after, every_other }
                if kind.is_none_or(|it| it == of) =>
            {
                Some((at, status, retry_after, every_other))
            }
            _ => None,
        });
        let (at, status, retry_after, every_other) = found?;
        let count = self.bent.entry(at).or_default();
        *count += 1;
        (!every_other || *count % 2 == 1).then_some((status, retry_after))
    }

    /// True in the first answer of a spell.
    fn is_first(&mut self, spell: usize) -> bool {
        let count = self.bent.entry(spell).or_default();
        *count += 1;
        *count == 1
    }

    fn tell(&mut self, request: &Request, kind: Kind, task: Task, us: u64) -> (u16, String) {
        match (kind, task) {
            (Kind::Clock, _) => self.tell_time(us),
            (Kind::List, _) => self.tell_list(us),
            (Kind::Quotes, _) => self.tell_tickers(request.parameter("symbol"), us),
            (_, Task::Candles { market, interval, from, to, limit })
                if self.truth.state(market, self.clock(us)).is_some() =>
            {
                self.tell_candles((market, interval), (from, to), limit, us)
            }
            _ => (400, UNKNOWN_MARKET.to_string()),
        }
    }

    fn tell_time(&mut self, us: u64) -> (u16, String) {
        let mut clock = self.clock(us);
        let ills: Vec<(usize, Spell)> = self.ills(us).collect();
        for (at, spell) in ills {
            match spell.ill {
                Ill::ClockLies { lie, once } if !once || self.is_first(at) => {
                    clock = lie.tell(clock)
                }
                Ill::ClockMissing { .. } => return (404, "{}".to_string()),
                _ => {}
            }
        }
        (200, format!("{{\"serverTime\":{clock}}}"))
    }

    fn tell_list(&mut self, us: u64) -> (u16, String) {
        let clock = self.clock(us);
        let mut most = usize::MAX;
        let ills: Vec<(usize, Spell)> = self.ills(us).collect();
        for (at, spell) in ills {
            if let Ill::ListShort { left, once } = spell.ill
                && (!once || self.is_first(at))
            {
                most = left;
            }
        }
        let listed = self.truth.list(clock).into_iter().take(most);
        let items =
            listed.map(|(market, is_active)| self.truth.brain.listing(market, is_active, 1));
        let items: Vec<String> = items.collect();
        (200, format!("{{\"symbols\":[{}]}}", items.join(",")))
    }

    fn tell_tickers(&mut self, id: Option<&str>, us: u64) -> (u16, String) {
        let clock = self.clock(us);
        let (mut off_ms, mut one_off_ms, mut undated) = (0, 0, false);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::TickersDated { off_ms: ms, all: true } => off_ms = ms,
                Ill::TickersDated { off_ms: ms, all: false } => one_off_ms = ms,
                Ill::TickersUndated => undated = true,
                Ill::TickersStand(at_ms) => off_ms = at_ms - clock,
                _ => {}
            }
        }
        let ticker = |(at, _): (usize, bool)| {
            let off_ms = if at == 0 { off_ms + one_off_ms } else { off_ms };
            let time = match undated {
                true => "\"soon\"".to_string(),
                false => (clock + off_ms).to_string(),
            };
            let id = self.truth.brain.markets[at].id();
            let price = decimal(self.truth.last_price(at, clock).unwrap_or(0));
            // That of a day: it falls while nobody trades.
            let traded = self.truth.last_trade(at, clock).unwrap_or(clock);
            let volume = 2 * traded - clock;
            format!(
                "{{\"symbol\":\"{id}\",\"lastPrice\":\"{price}\",\"volume\":\"{volume}\",\"closeTime\":{time}}}"
            )
        };
        let mut listed = self.truth.list(clock).into_iter();
        match id {
            Some(id) => match listed.find(|it| self.truth.brain.markets[it.0].id() == id) {
                Some(market) => (200, ticker(market)),
                None => (400, UNKNOWN_MARKET.to_string()),
            },
            None => (200, format!("[{}]", listed.map(ticker).collect::<Vec<_>>().join(","))),
        }
    }

    fn tell_candles(
        &mut self,
        (market, interval): (usize, &'static str),
        (from, to): (i64, i64),
        limit: usize,
        us: u64,
    ) -> (u16, String) {
        self.asked.push((market, interval, from, to));
        let mut clock = self.clock(us);
        let (mut most, mut keeps_newest, mut lacking) = (usize::MAX, false, None);
        let is_of = |of: Option<usize>| of.is_none_or(|of| of == market);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::CandlesEmpty(of) if is_of(of) => return (200, "[]".to_string()),
                Ill::CandlesFrozen(of) if is_of(of) => clock = self.clock(spell.from),
                Ill::CandlesSince(minute) if from < minute * MINUTE_MS => {
                    return (400, "{}".to_string());
                }
                Ill::CandlesCut { rows, newest } => (most, keeps_newest) = (rows, newest),
                Ill::CandleLacking(minute) if interval == "1m" => {
                    lacking = Some(minute * MINUTE_MS);
                }
                _ => {}
            }
        }
        let rows = self.truth.rows((market, interval), (from, to), clock);
        let rows = rows.filter(|row| lacking != Some(row.open_ms));
        let mut rows: Vec<Rc<Row>> = rows.take(limit).collect();
        let behind = rows.len().saturating_sub(most);
        rows.drain(if keeps_newest { 0..behind } else { rows.len() - behind..rows.len() });
        for row in &rows {
            if !self.truth.is_final(interval, row.open_ms, clock) {
                let told = self.drafts.entry((market, interval, row.open_ms)).or_default();
                told.push(row.clone());
            }
        }
        let rows: Vec<&str> = rows.iter().map(|row| &*row.text).collect();
        (200, format!("[{}]", rows.join(",")))
    }
}

pub const HOUR: u64 = 60 * MINUTE;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Quotes,
    Candles,
    List,
    Clock,
}

impl Kind {
    /// That of a target.
    pub fn of(target: &str) -> Kind {
        let path = target.split('?').next().unwrap_or_default();
        match path.rsplit('/').next().unwrap_or_default() {
            "klines" => Kind::Candles,
            "exchangeInfo" => Kind::List,
            "time" => Kind::Clock,
            _ => Kind::Quotes,
        }
    }
}

/// What a clock says instead of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Zero,
    SecondsForMs,
    Off(i64),
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ill {
    /// Candles of this market, or of all, are answered with an empty list.
    CandlesEmpty(Option<usize>),
    /// Candles of this market, or of all, are those of the spell's begin.
    CandlesFrozen(Option<usize>),
    /// A page of candles has so many rows at most: the oldest or the newest of them.
    CandlesCut {
        rows: usize,
        newest: bool,
    },
    /// Pages of candles that begin before this minute are refused.
    CandlesSince(i64),
    /// The candle of this minute is left out.
    CandleLacking(i64),
    /// The time call lies; with `once` in its first answer alone.
    ClockLies {
        lie: Lie,
        once: bool,
    },
    /// The time call takes three seconds.
    ClockSlow,
    /// The time call is not there. Whether the answers have a `Date` nevertheless.
    ClockMissing {
        date: bool,
    },
    /// Answers come from a cache: an `Age`, and a `Date` as old as that.
    Aged,
    /// The `Date` is off by so many milliseconds; or that of errors alone.
    DateOff(i64),
    ErrorsDated(i64),
    /// One ticker is dated so many milliseconds off; or all of them are.
    TickersDated {
        off_ms: i64,
        all: bool,
    },
    /// The times of tickers cannot be read.
    TickersUndated,
    /// Every ticker has this time.
    TickersStand(i64),
    /// The market list lacks every market but so many; with `once` in its first answer alone.
    ListShort {
        left: usize,
        once: bool,
    },
    /// Requests are refused: all of them, or those of one kind; every one, or every other one.
    Refuses {
        kind: Option<Kind>,
        status: u16,
        retry_after: Option<u64>,
        every_other: bool,
    },
    /// Another program has spent so much of the budget of each window.
    OtherProgram {
        percent: u64,
    },
    /// Nobody can connect.
    Gone,
    /// Requests are not answered.
    Silent,
}

/// A stretch of time in which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spell {
    pub from: u64,
    pub until: u64,
    pub ill: Ill,
}

impl Spell {
    pub fn is_on(&self, us: u64) -> bool {
        (self.from..self.until).contains(&us)
    }

    /// Whether only some witness of the time is wrong, so little that what has long ended has ended by
    /// every witness.
    pub fn leaves_the_past(&self) -> bool {
        match self.ill {
            Ill::ClockLies { lie: Lie::Off(ms), .. } => ms > -HOUR_MS,
            Ill::ClockSlow
            | Ill::ClockMissing { .. }
            | Ill::Aged
            | Ill::DateOff(_)
            | Ill::TickersDated { .. }
            | Ill::TickersUndated => true,
            _ => false,
        }
    }
}

impl Lie {
    pub fn tell(self, now_ms: i64) -> i64 {
        match self {
            Lie::Zero => 0,
            Lie::SecondsForMs => now_ms / 1000,
            Lie::Off(ms) => now_ms + ms,
        }
    }

    fn any(rng: &mut Rng) -> Lie {
        let decade = 3650 * DAY_MS;
        match rng.below(6) {
            0 => Lie::Zero,
            1 => Lie::SecondsForMs,
            2 => Lie::Off(decade),
            3 => Lie::Off(-decade),
            _ => Lie::Off(rng.between(-30, 30) * MINUTE_MS + 7000),
        }
    }
}

/// Something about one of the witnesses of the exchange's time. Never two at once: which of two liars is
/// right nobody can tell.
fn about_time(rng: &mut Rng) -> Ill {
    let once = rng.chance(1, 3);
    let off_ms = *rng.pick(&[-20 * MINUTE_MS, 9 * MINUTE_MS, 3650 * DAY_MS, 28_000 * DAY_MS]);
    match rng.below(11) {
        0..4 => Ill::ClockLies { lie: Lie::any(rng), once },
        4 => Ill::ClockSlow,
        5 => Ill::ClockMissing { date: true },
        6 => Ill::ClockMissing { date: false },
        7 => Ill::Aged,
        8 => Ill::DateOff(off_ms),
        9 => Ill::TickersDated { off_ms, all: rng.chance(1, 2) },
        _ => Ill::TickersUndated,
    }
}

fn about_data(rng: &mut Rng) -> Ill {
    match rng.below(5) {
        0 | 1 => Ill::CandlesEmpty(None),
        2 | 3 => Ill::CandlesFrozen(None),
        _ => Ill::ListShort { left: 1 + rng.below(3) as usize, once: rng.chance(1, 2) },
    }
}

fn about_access(rng: &mut Rng) -> Ill {
    let kinds = [Kind::Quotes, Kind::Candles, Kind::Candles, Kind::List, Kind::Clock];
    let kind = rng.chance(3, 4).then(|| *rng.pick(&kinds));
    let retry_after = rng.chance(1, 2).then(|| 5 + rng.below(300));
    match rng.below(8) {
        0 => Ill::Gone,
        1 => Ill::OtherProgram { percent: 40 + rng.below(60) },
        _ => Ill::Refuses {
            kind,
            status: *rng.pick(&[429, 429, 418, 503, 503, 500]),
            retry_after,
            every_other: rng.chance(1, 5),
        },
    }
}

/// All that is wrong up to `until`, in three tracks that overlap; nothing is from then on.
pub fn forecast(until: u64, rng: &mut Rng) -> Vec<Spell> {
    let mut spells = Vec::new();
    let makers: [fn(&mut Rng) -> Ill; 3] = [about_time, about_data, about_access];
    for make in makers {
        let mut at = match rng.chance(1, 2) {
            true => 0,
            false => rng.below(20 * MINUTE),
        };
        while at < until {
            let length =
                *rng.pick(&[20 * SECOND, 90 * SECOND, 5 * MINUTE, 15 * MINUTE, 70 * MINUTE]);
            let length = length / 2 + rng.below(length);
            let end = (at + length).min(until);
            spells.push(Spell { from: at, until: end, ill: make(rng) });
            at = end + 30 * SECOND + rng.below(40 * MINUTE);
        }
    }
    spells.sort_by_key(|spell| spell.from);
    spells
}

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// The last trade of a candle is booked so long after the candle's end.
const BOOKED_MS: i64 = 90_000;
