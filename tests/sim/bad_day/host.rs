//! A made-up exchange on a bad day: what it answers, and what it counts.
//!
//! Owns its markets, its clock, what is wrong with it when, and its count of the units that it was asked
//! for, over all sources that ask it. It never looks at what marketd makes of its answers.

use super::ill::{Ill, Kind, MINUTE, Spell};
use super::judge::{Fault, Judge};
use super::market::{DAY_MS, HOUR_MS, MINUTE_MS, Market, cents};
use crate::support::Rng;
use crate::support::message::{field, parse_head};
use crate::virtual_time::{Request, Response};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, UNIX_EPOCH};

/// A budget is for so long.
pub const WINDOW: u64 = 60_000_000;

/// Tells how many units were asked for in this window.
const USED: &str = "x-mbx-used-weight-1m";

/// See the module's page.
#[derive(Debug)]
pub struct Host {
    pub markets: Vec<Market>,
    pub spells: Vec<Spell>,
    /// Units in any [`WINDOW`].
    pub budget: u64,
    /// Its clock at the begin of the run.
    pub begin_ms: i64,
    /// Whether its answers have a `Date`.
    has_date: bool,
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
            spells.any(|it| is_it(it.ill) && (it.from..it.until + 10 * MINUTE).contains(&us))
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
                left <= market && (spell.from..spell.until + 70 * MINUTE).contains(&us)
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
        let target = &request.target;
        let used = self.weigh(target, request.sent_us, us, judge);
        let (kind, _) = Host::read(target);
        let clock = self.clock(us);
        let refusal = self.refusal(kind, us);
        let (status, body) = match refusal {
            Some((status @ (429 | 418), _)) => {
                (status, "{\"code\":-1003,\"msg\":\"Too many requests.\"}".to_string())
            }
            Some((status, _)) => (status, "<html>down</html>".to_string()),
            None => self.tell(request, kind, us),
        };
        // In which window it counts.
        let mut fields = format!("{USED}: {used}\r\nX-Window: {}\r\n", us / WINDOW);
        let retry_after = refusal.and_then(|(_, after)| after);
        fields.extend(retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")));
        let mut slow = 0;
        let (mut has_date, mut date) = (self.has_date, clock);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::ClockSlow if kind == Kind::Clock => slow = 3_000_000,
                Ill::ClockMissing { date } => has_date = date,
                Ill::DateOff(ms) => date += ms,
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

    fn tell(&mut self, request: &Request, kind: Kind, us: u64) -> (u16, String) {
        match kind {
            Kind::Clock => self.tell_time(us),
            Kind::List => self.tell_list(us),
            Kind::Quotes => self.tell_tickers(request.parameter("symbol"), us),
            Kind::Candles => self.tell_candles(request, us),
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

    fn tell_candles(&mut self, request: &Request, us: u64) -> (u16, String) {
        let mut clock = self.clock(us);
        for (_, spell) in self.ills(us) {
            match spell.ill {
                Ill::CandlesEmpty => return (200, "[]".to_string()),
                Ill::CandlesFrozen => clock = self.clock(spell.from),
                _ => {}
            }
        }
        let id = request.parameter("symbol");
        let number = |name: &str| request.parameter(name)?.parse::<i64>().ok();
        let market = self.markets.iter().find(|it| id == Some(&it.id) && clock < it.gone_ms);
        let length = match request.parameter("interval") {
            Some("1m") => MINUTE_MS,
            Some("1h") => HOUR_MS,
            _ => DAY_MS,
        };
        let (Some(market), Some(from), Some(to)) = (market, number("startTime"), number("endTime"))
        else {
            return unknown();
        };
        let limit = number("limit").unwrap_or(500) as usize;
        // Before the first trade there is nothing to look for.
        let born = market.born_ms.div_euclid(length);
        let first = (from + length - 1).div_euclid(length).max(born);
        let last = to.min(clock).div_euclid(length);
        let row = |slot| Some((slot * length, market.row(length, slot, clock)?));
        let rows = (first..=last).filter_map(row).take(limit);
        let rows = rows.map(|(open_ms, [open, high, low, close, volume])| {
            format!("[{open_ms},\"{open}\",\"{high}\",\"{low}\",\"{close}\",\"{volume}\",0]")
        });
        (200, format!("[{}]", rows.collect::<Vec<_>>().join(",")))
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
