//! A made-up exchange on a bad day: what is wrong with it and when, what it answers, and what it counts.
//!
//! Owns its markets with every trade of each from the first one on, made from a seed before the run: quotes and
//! candles are sums over the same trades, so they never contradict each other. Owns its clock, what is wrong with it when, and its count of the units that it was asked
//! for, over all sources that ask it. It never looks at what marketd makes of its answers.

use super::judge::{Fault, Judge};
use crate::support::Rng;
use crate::support::message::{field, parse_head};
use crate::support::naive::plain;
use crate::virtual_time::{Request, Response};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, UNIX_EPOCH};

/// A page of candles is not asked for more often in a minute.
const MOST_A_MINUTE: usize = 40;

/// A budget is for so long.
pub const WINDOW: u64 = 60_000_000;

/// Tells how many units were asked for in this window.
const USED: &str = "x-mbx-used-weight-1m";

#[derive(Debug)]
pub struct Host {
    pub markets: Vec<Market>,
    pub spells: Vec<Spell>,
    /// Units in any [`WINDOW`].
    pub budget: u64,
    /// Its clock at the begin of the run.
    pub begin_ms: i64,
    /// Whether its answers have a `Date`.
    pub has_date: bool,
    /// The tag of its market list, if it has one, and how often it was sent whole.
    pub tag: Option<&'static str>,
    pub lists_sent: u64,
    /// Requests for candles: market, length, first and last open time.
    pub asked: Vec<Page>,
    /// Those of the last minute, and how often one may be asked for in it.
    recent: VecDeque<(u64, Page)>,
    pub most_a_minute: usize,
    /// Units asked for, and when.
    spent: VecDeque<(u64, u64)>,
    /// By its `Retry-After`, nothing may be asked before.
    pub quiet_until: u64,
    reported: Option<Reported>,
    /// When the daemon that asks began.
    met: u64,
    /// The last window in which others have spent, and how many units.
    spent_by_others: (u64, u64),
    /// Answers of a kind that each spell has bent or refused.
    bent: BTreeMap<usize, u64>,
}

/// A page of candles: market, length of a slot, first and last open time.
pub type Page = (usize, i64, i64, i64);

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
    pub fn new(
        markets: Vec<Market>,
        spells: Vec<Spell>,
        budget: u64,
        begin_ms: i64,
        rng: &mut Rng,
    ) -> Host {
        Host {
            markets,
            spells,
            budget,
            begin_ms,
            has_date: rng.chance(3, 4),
            tag: None,
            lists_sent: 0,
            asked: Vec::new(),
            recent: VecDeque::new(),
            most_a_minute: MOST_A_MINUTE,
            spent: VecDeque::new(),
            met: 0,
            quiet_until: 0,
            reported: None,
            spent_by_others: (0, 0),
            bent: BTreeMap::new(),
        }
    }

    /// Another daemon has not read what the last one was told.
    pub fn is_met_anew(&mut self, us: u64) {
        (self.quiet_until, self.reported, self.met) = (0, None, us);
    }

    /// Its clock.
    pub fn clock(&self, us: u64) -> i64 {
        self.begin_ms + (us / 1000) as i64
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

    /// What a target asks for, and what that costs.
    pub fn read(target: &str) -> (Kind, u64) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path.rsplit('/').next().unwrap_or_default() {
            "klines" => (Kind::Candles, 2),
            "exchangeInfo" => (Kind::List, 20),
            "time" => (Kind::Clock, 1),
            _ if query.is_empty() => (Kind::Quotes, 80),
            _ => (Kind::Quotes, 2),
        }
    }

    /// A request has arrived: counts it. What the exchange has reported as used counts until the end of
    /// the window.
    fn weigh(&mut self, target: &str, sent: u64, us: u64, judge: &mut Judge) -> u64 {
        let (_, units) = Host::read(target);
        self.spent.push_back((us, units));
        while self.spent.front().is_some_and(|(at, _)| at + WINDOW <= us) {
            self.spent.pop_front();
        }
        // What a killed daemon has spent nobody knows but the exchange, which counts by whole windows.
        let known = self.met.min(us / WINDOW * WINDOW);
        let sum = self.spent.iter().filter(|(at, _)| *at >= known);
        let sum: u64 = sum.map(|(_, units)| units).sum();
        let budget = self.budget;
        judge.check(sum <= budget, Fault::OverBudget, us, || {
            format!("{target} makes {sum} of {budget} units in a window")
        });
        if let Some(it) =
            self.reported.as_mut().filter(|it| it.window == us / WINDOW && sent > it.at)
        {
            it.since += units;
            let (used, since) = (it.used, it.since);
            judge.check(used + since <= budget, Fault::OverBudget, us, || {
                format!(
                    "{target} makes {since} units after {used} of {budget} were reported as used"
                )
            });
        }
        let window = us / WINDOW * WINDOW;
        let own = self.spent.iter().filter(|(at, _)| *at >= window);
        let own: u64 = own.map(|(_, units)| units).sum();
        own + self.others(us)
    }

    /// What other programs have spent in this window.
    fn others(&mut self, us: u64) -> u64 {
        let percents = self.ills(us).map(|(_, spell)| match spell.ill {
            Ill::OtherProgram { percent } => percent,
            _ => 0,
        });
        let (window, units) = (us / WINDOW, self.budget * percents.sum::<u64>() / 100);
        // What was spent stays so until the window ends.
        self.spent_by_others = match self.spent_by_others {
            (known, most) if known == window => (window, units.max(most)),
            _ => (window, units),
        };
        self.spent_by_others.1
    }

    /// An answer has been read: what it says about the budget and about waiting holds from now on.
    pub fn was_read(&mut self, bytes: &[u8], us: u64) {
        let (head, _) = parse_head(bytes).ok().flatten().expect("a head");
        let number = |name: &str| field(&head.fields, name).map_or(0, |it| it.parse().expect(name));
        self.quiet_until = self.quiet_until.max(us + number("Retry-After") * 1_000_000);
        let (used, window) = (number(USED), number("X-Window"));
        let is_known = |it: &Reported| it.window == window && it.used + it.since >= used;
        if window == us / WINDOW && !self.reported.as_ref().is_some_and(is_known) {
            self.reported = Some(Reported { window, used, at: us, since: 0 });
        }
    }

    /// Answers a request.
    pub fn answer(&mut self, request: &Request, us: u64, judge: &mut Judge) -> Response {
        if self.has(us, |ill| ill == Ill::Gone) {
            return Response::End;
        }
        if self.has(us, |ill| ill == Ill::Silent) {
            return Response::Silence;
        }
        let target = &request.target;
        let used = self.weigh(target, request.sent_us, us, judge);
        let (kind, _) = Host::read(target);
        let clock = self.clock(us);
        let refusal = self.refusal(kind, us);
        let (mut status, mut body) = match refusal {
            Some((status @ (429 | 418), _)) => {
                (status, "{\"code\":-1003,\"msg\":\"Too many requests.\"}".to_string())
            }
            Some((status, _)) => (status, "<html>down</html>".to_string()),
            None => self.tell(request, kind, us, judge),
        };
        // In which window it counts.
        let mut fields = format!("{USED}: {used}\r\nX-Window: {}\r\n", us / WINDOW);
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

    fn tell(&mut self, request: &Request, kind: Kind, us: u64, judge: &mut Judge) -> (u16, String) {
        match kind {
            Kind::Clock => self.tell_time(us),
            Kind::List => self.tell_list(us),
            Kind::Quotes => self.tell_tickers(request.parameter("symbol"), us),
            Kind::Candles => self.tell_candles(request, us, judge),
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
        let items = self.markets.iter().filter(|market| clock < market.gone_ms).take(most);
        let items: Vec<String> = items.map(listing).collect();
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
        let ticker = |(at, market): (usize, &Market)| {
            let off_ms = if at == 0 { off_ms + one_off_ms } else { off_ms };
            let time = match undated {
                true => "\"soon\"".to_string(),
                false => (clock + off_ms).to_string(),
            };
            let (price, volume) = (market.last(clock).unwrap_or(0), market.volume(clock));
            format!(
                "{{\"symbol\":\"{}\",\"lastPrice\":\"{}\",\"volume\":\"{}.{:03}\",\"closeTime\":{time}}}",
                market.id,
                cents(price),
                volume / 1000,
                volume % 1000,
            )
        };
        let listed = self.markets.iter().enumerate().filter(|(_, it)| clock < it.gone_ms);
        let mut listed = listed.filter(|(_, market)| id.is_none_or(|id| market.id == id));
        match id {
            Some(_) => match listed.next() {
                Some(market) => (200, ticker(market)),
                None => unknown(),
            },
            None => (200, format!("[{}]", listed.map(ticker).collect::<Vec<_>>().join(","))),
        }
    }

    fn tell_candles(&mut self, request: &Request, us: u64, judge: &mut Judge) -> (u16, String) {
        let id = request.parameter("symbol");
        let number = |name: &str| request.parameter(name)?.parse::<i64>().ok();
        let now = self.clock(us);
        let mut markets = self.markets.iter();
        let at = markets.position(|it| id == Some(&it.id) && now < it.gone_ms);
        let length = super::judge::length_of(request.parameter("interval").unwrap_or_default());
        let (Some(at), Some(from), Some(to)) = (at, number("startTime"), number("endTime")) else {
            return unknown();
        };
        self.note_page((at, length, from, to), us, judge);
        let mut clock = now;
        let (mut most, mut keeps_newest, mut lacking) = (usize::MAX, false, None);
        let limit = number("limit").unwrap_or(500) as usize;
        let is_of = |of: Option<usize>| of.is_none_or(|of| of == at);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::CandlesEmpty(of) if is_of(of) => return (200, "[]".to_string()),
                Ill::CandlesFrozen(of) if is_of(of) => clock = self.clock(spell.from),
                Ill::CandlesCut { rows, newest } => (most, keeps_newest) = (rows, newest),
                Ill::CandleLacking(slot) if length == MINUTE_MS => lacking = Some(slot),
                _ => {}
            }
        }
        let market = &self.markets[at];
        // Before the first trade there is nothing to look for.
        let born = market.born_ms.div_euclid(length);
        let first = (from + length - 1).div_euclid(length).max(born);
        let last = to.min(clock).div_euclid(length);
        let row = |slot| Some((slot * length, market.row(length, slot, clock)?));
        let slots = (first..=last).filter(|slot| lacking != Some(*slot));
        let mut rows: Vec<_> = slots.filter_map(row).take(limit).collect();
        let behind = rows.len().saturating_sub(most);
        rows.drain(if keeps_newest { 0..behind } else { rows.len() - behind..rows.len() });
        let rows = rows.into_iter().map(|(open_ms, [open, high, low, close, volume])| {
            format!("[{open_ms},\"{open}\",\"{high}\",\"{low}\",\"{close}\",\"{volume}\",0]")
        });
        (200, format!("[{}]", rows.collect::<Vec<_>>().join(",")))
    }

    /// Nobody asks for one page again and again.
    fn note_page(&mut self, page: Page, us: u64, judge: &mut Judge) {
        self.asked.push(page);
        self.recent.push_back((us, page));
        while self.recent.front().is_some_and(|(at, _)| at + WINDOW <= us) {
            self.recent.pop_front();
        }
        let same = self.recent.iter().filter(|it| it.1 == page).count();
        judge.check(same <= self.most_a_minute, Fault::Hammered, us, || {
            format!("{page:?} is asked for {same} times in a minute")
        });
    }
}

fn unknown() -> (u16, String) {
    (400, "{\"code\":-1121,\"msg\":\"Invalid symbol.\"}".to_string())
}

fn listing(market: &Market) -> String {
    let (base, quote) = market.symbol.split_once('/').expect("a symbol has two assets");
    format!(
        "{{\"symbol\":\"{}\",\"status\":\"TRADING\",\"baseAsset\":\"{base}\",\"quoteAsset\":\"{quote}\",\
         \"filters\":[]}}",
        market.id
    )
}

pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Quotes,
    Candles,
    List,
    Clock,
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

/// At most one trade of a market happens in so much time.
pub const CELL_MS: i64 = 20_000;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// On bad days the last trade of a candle is booked so long after the candle's end.
const LATE_MS: i64 = 55_000;

/// One trade. Prices are in hundredths, amounts in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    pub at_ms: i64,
    pub price: u64,
    pub amount: u64,
}

#[derive(Debug)]
pub struct Market {
    pub id: String,
    pub symbol: String,
    /// When the first trade may have been.
    pub born_ms: i64,
    /// By the time since then, in cells.
    pub trades: Vec<Option<Trade>>,
    /// Amounts of all trades up to the end of each cell.
    pub sums: Vec<u64>,
    /// The trades end here: the exchange has removed the market.
    pub gone_ms: i64,
    /// The last trade of a candle is booked so long after the candle's end.
    pub late_ms: i64,
}

impl Market {
    /// A market that is traded within this span of time: always, or in some hours alone.
    pub fn any(at: usize, span: (i64, i64), rng: &mut Rng) -> Market {
        let percent = *rng.pick(&[95, 95, 60, 6]);
        // Nobody trades for hours.
        let pauses = rng.chance(1, 3);
        Market::new(at, span, rng, |begin, rng| {
            rng.chance(percent, 100) && !(pauses && begin.div_euclid(HOUR_MS) % 5 > 1)
        })
    }

    /// A market that is traded in those cells of this span of time.
    pub fn new(
        at: usize,
        (born_ms, end_ms): (i64, i64),
        rng: &mut Rng,
        is_traded: impl Fn(i64, &mut Rng) -> bool,
    ) -> Market {
        let mut price = 1000 + rng.below(100_000);
        let cells = (end_ms - born_ms) / CELL_MS;
        let (mut trades, mut sums, mut sum) = (Vec::new(), Vec::new(), 0);
        for cell in 0..cells {
            let begin = born_ms + cell * CELL_MS;
            let trade = is_traded(begin, rng).then(|| {
                price = (price + rng.below(21)).saturating_sub(10).max(500);
                let amount = 1 + rng.below(50_000);
                Trade { at_ms: begin + rng.below(CELL_MS as u64) as i64, price, amount }
            });
            sum += trade.map_or(0, |trade| trade.amount);
            trades.push(trade);
            sums.push(sum);
        }
        let base = format!("M{at:02}");
        Market {
            id: format!("{base}USDT"),
            symbol: format!("{base}/USDT"),
            born_ms,
            trades,
            sums,
            gone_ms: i64::MAX,
            late_ms: LATE_MS,
        }
    }

    fn cell(&self, at_ms: i64) -> usize {
        let cell = (at_ms - self.born_ms).div_euclid(CELL_MS).max(0) as usize;
        cell.min(self.trades.len())
    }

    /// The trades in this span of time, the end excluded.
    fn within(&self, from_ms: i64, to_ms: i64) -> impl DoubleEndedIterator<Item = &Trade> {
        let to_ms = to_ms.min(self.gone_ms);
        let from = self.cell(from_ms);
        let cells = &self.trades[from..(self.cell(to_ms) + 1).min(self.trades.len()).max(from)];
        let trades = cells.iter().flatten();
        trades.filter(move |trade| (from_ms..to_ms).contains(&trade.at_ms))
    }

    /// The last price before this time.
    pub fn last(&self, at_ms: i64) -> Option<u64> {
        self.within(i64::MIN / 2, at_ms).next_back().map(|trade| trade.price)
    }

    /// The amount that was traded in the 24 hours before this time.
    pub fn volume(&self, at_ms: i64) -> u64 {
        let upto = |ms: i64| match self.cell(ms.min(self.gone_ms)) {
            0 => 0,
            cell => self.sums[cell - 1],
        };
        let last: u64 =
            self.within(at_ms - at_ms.rem_euclid(CELL_MS), at_ms).map(|it| it.amount).sum();
        upto(at_ms) + last - upto(at_ms - DAY_MS)
    }

    /// Whether anything was traded in a slot.
    pub fn traded(&self, length: i64, slot: i64) -> bool {
        self.within(slot * length, (slot + 1) * length).next().is_some()
    }

    /// The candle of a slot as the exchange tells it at this time: open, high, low, close, volume.
    pub fn row(&self, length: i64, slot: i64, at_ms: i64) -> Option<[String; 5]> {
        let (open_ms, end_ms) = (slot * length, (slot + 1) * length);
        let mut trades: Vec<&Trade> = self.within(open_ms, end_ms.min(at_ms)).collect();
        let is_draft = (end_ms..end_ms + self.late_ms).contains(&at_ms);
        if is_draft && trades.len() > 1 {
            trades.pop();
        }
        let prices = || trades.iter().map(|trade| trade.price);
        let volume: u64 = trades.iter().map(|trade| trade.amount).sum();
        Some([
            price(prices().next()?),
            price(prices().max()?),
            price(prices().min()?),
            price(prices().next_back()?),
            plain(&format!("{}.{:03}", volume / 1000, volume % 1000)),
        ])
    }

    /// The final candle of a slot.
    pub fn candle(&self, length: i64, slot: i64) -> Option<[String; 5]> {
        self.row(length, slot, i64::MAX)
    }

    /// True if a candle of a slot was told with these figures at some time.
    pub fn was_told(&self, length: i64, slot: i64, figures: &[String; 5]) -> bool {
        let (open_ms, end_ms) = (slot * length, (slot + 1) * length);
        let mut times = self.within(open_ms, end_ms).map(|trade| trade.at_ms + 1).rev();
        let is = |at_ms: i64| self.row(length, slot, at_ms).as_ref() == Some(figures);
        is(i64::MAX) || is(end_ms) || times.any(is)
    }
}

/// Cents as an exchange writes them.
pub fn cents(value: u64) -> String {
    format!("{}.{:02}000000", value / 100, value % 100)
}

/// Cents as marketd writes them.
pub fn price(value: u64) -> String {
    plain(&cents(value))
}
