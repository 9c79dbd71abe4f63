//! What a made-up exchange says to a request, and what that ought to mean to whoever reads it.
//!
//! Owns what it has said wrongly and stands by. It never looks at a connection:
//! [`super::exchange`] sends what this says.

use super::brain::{Brain, Row, figures_of, row_of};
use super::ledger::{Item, Page, Said, Word};
use super::naive::{STORED, length_ms};
use super::weather::Fault;
use crate::support::Rng;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What is asked of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Tickers,
    Markets,
    Time,
    Candles {
        market: usize,
        interval: &'static str,
        from: i64,
        to: i64,
        limit: usize,
    },
    /// An address that is not there, or a market that nobody knows.
    Unknown,
}

/// A body with what it says.
#[derive(Clone, Debug)]
pub struct Speech {
    pub body: String,
    /// `None`: it is to be taken for a failure.
    pub said: Option<Said>,
    pub status: u16,
}

/// A change of the market list, at this time of the run.
#[derive(Clone, Debug)]
pub struct ListChange {
    pub at_us: u64,
    pub market: usize,
    /// `None`: it leaves the list.
    pub active: Option<bool>,
    /// Whether tickers go on to hold it all the same.
    pub lingers: bool,
}

/// See the module's page.
#[derive(Debug)]
pub struct Mouth {
    pub brain: Rc<Brain>,
    /// The exchange's clock at zero of the run.
    pub clock_ms: i64,
    pub changes: Vec<ListChange>,
    /// A span of the run in which no figure changes.
    pub freeze: Option<(u64, u64)>,
    revised: HashMap<(usize, &'static str, i64), Rc<Row>>,
    /// Slots about which it has lied.
    pub lied: HashSet<(usize, &'static str, i64)>,
}

impl Mouth {
    pub fn new(brain: Rc<Brain>, clock_ms: i64) -> Mouth {
        Mouth {
            brain,
            clock_ms,
            changes: Vec::new(),
            freeze: None,
            revised: HashMap::new(),
            lied: HashSet::new(),
        }
    }

    /// What a request's target asks for.
    pub fn read(&self, target: &str) -> Task {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let number = |name: &str| parameter(name).and_then(|value| value.parse::<i64>().ok());
        match path {
            "/api/v3/ticker/24hr" if query.is_empty() => Task::Tickers,
            "/api/v3/exchangeInfo" => Task::Markets,
            "/api/v3/time" => Task::Time,
            "/api/v3/klines" => {
                let market = parameter("symbol").and_then(|id| self.brain.find(id));
                let interval = STORED.iter().find(|i| parameter("interval") == Some(i));
                let bounds = (number("startTime"), number("endTime"), number("limit"));
                match (market, interval, bounds) {
                    (Some(market), Some(interval), (Some(from), Some(to), Some(limit))) => {
                        Task::Candles {
                            market,
                            interval,
                            from,
                            to,
                            limit: limit as usize,
                        }
                    }
                    _ => Task::Unknown,
                }
            }
            _ => Task::Unknown,
        }
    }

    /// The exchange's clock at this time of the run.
    pub fn clock(&self, us: u64) -> i64 {
        self.clock_ms + (us / 1000) as i64
    }

    /// Answers at this time of the run. Of faults, those that are about what is said.
    pub fn speak(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let speech = |body: String, said: Said| Speech {
            body,
            said: Some(said),
            status: 200,
        };
        match task {
            Task::Time => {
                let clock = self.clock(us);
                speech(format!("{{\"serverTime\":{clock}}}"), Said::Time(clock))
            }
            Task::Markets => {
                let list = self.list(us);
                let items: Vec<String> = (list.iter())
                    .map(|(market, active)| self.brain.listing(*market, *active))
                    .collect();
                let body = format!("{{\"timezone\":\"UTC\",\"symbols\":[{}]}}", items.join(","));
                speech(body, Said::Markets(list))
            }
            Task::Tickers => self.tickers(fault, us, rng),
            Task::Candles { .. } => self.candles(task, fault, us, rng),
            Task::Unknown => Speech {
                body: "{\"code\":-1121,\"msg\":\"Invalid symbol.\"}".to_string(),
                said: None,
                status: 400,
            },
        }
    }

    /// The list at this time of the run: markets with their state.
    pub fn list(&self, us: u64) -> Vec<(usize, bool)> {
        let all = 0..self.brain.markets.len();
        all.filter_map(|market| {
            let mut changes = self.changes.iter();
            let last = changes.rfind(|change| change.market == market && change.at_us <= us);
            match last {
                Some(change) => change.active.map(|active| (market, active)),
                None => Some((market, true)),
            }
        })
        .collect()
    }

    fn tickers(&mut self, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let told_at = match self.freeze {
            Some((from, to)) if (from..to).contains(&us) => from,
            _ => us,
        };
        let listed = self.list(us);
        let mut items = Vec::new();
        let mut texts = Vec::new();
        for market in 0..self.brain.markets.len() {
            let mut change = self.changes.iter();
            let change = change.rfind(|c| c.market == market && c.at_us <= us);
            let is_listed = listed.iter().any(|(of, _)| *of == market);
            if !is_listed && !change.is_some_and(|change| change.lingers) {
                continue;
            }
            if fault == Some(Fault::Missing) && rng.chance(1, 3) {
                continue;
            }
            let ticker = self.brain.ticker(market, self.clock(told_at));
            let bent = fault == Some(Fault::BadItems) && rng.chance(1, 3);
            let (text, figures) = match bent {
                true => bend_ticker(&ticker.text, rng),
                false => (ticker.text.clone(), Some(ticker.figures.clone())),
            };
            texts.push(text);
            items.push(Item {
                market,
                figures: figures.map(Rc::new),
            });
        }
        let body = format!("[{}]", texts.join(","));
        Speech {
            // A list without a single item is no list.
            said: (!items.is_empty()).then_some(Said::Tickers(items)),
            body,
            status: 200,
        }
    }

    fn candles(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let Task::Candles {
            market,
            interval,
            from,
            to,
            limit,
        } = *task
        else {
            unreachable!("candles are asked for");
        };
        let length = length_ms(interval).expect("stored");
        let mut rows = self
            .brain
            .rows(market, interval, (from, to), self.clock(us));
        rows.truncate(limit);
        let present = self.clock(us).div_euclid(length);
        for row in &mut rows {
            let slot = row.open_ms / length;
            let key = (market, interval, slot);
            if let Some(revised) = self.revised.get(&key).filter(|_| slot < present) {
                *row = revised.clone();
            }
        }
        if fault == Some(Fault::EmptyList) {
            rows.clear();
            self.lied
                .extend((from / length..=to / length).map(|slot| (market, interval, slot)));
        }
        let mut words = Vec::new();
        let mut texts = Vec::new();
        let mut undated = false;
        for row in rows {
            let slot = row.open_ms / length;
            let key = (market, interval, slot);
            let hit = rng.chance(1, 4);
            match fault {
                Some(Fault::Missing) if hit => {
                    self.lied.insert(key);
                    continue;
                }
                Some(Fault::BadItems) if hit && rng.chance(1, 12) => {
                    // Nobody can tell which slot this was.
                    let time = *rng.pick(&["null", "\"abc\"", "true", "\"\""]);
                    let rest = row.text.split_once(',').map(|(_, rest)| rest);
                    texts.push(format!("[{time},{}", rest.expect("a row of twelve")));
                    undated = true;
                }
                Some(Fault::BadItems) if hit => {
                    self.lied.insert(key);
                    texts.push(bend_row(&row, rng));
                    words.push(Word::Unsound(slot));
                    continue;
                }
                Some(Fault::Revised) if hit && slot < present => {
                    self.lied.insert(key);
                    let row = Rc::new(revise(&row, rng));
                    self.revised.insert(key, row.clone());
                    texts.push(row.text.clone());
                    words.push(Word::Row(row));
                }
                _ => {
                    texts.push(row.text.clone());
                    words.push(Word::Row(row));
                }
            }
        }
        if rng.chance(1, 8) {
            rng.shuffle(&mut texts);
        }
        let slots = (from.div_euclid(length), to.div_euclid(length));
        Speech {
            body: format!("[{}]", texts.join(",")),
            said: Some(Said::Candles(Page {
                market,
                interval,
                slots,
                words,
                is_whole: !undated,
            })),
            status: 200,
        }
    }
}

/// The value of a member of a flat object, replaced.
fn replace(text: &str, name: &str, value: &str) -> String {
    let key = format!("\"{name}\":\"");
    let begin = text.find(&key).expect("the member is there") + key.len() - 1;
    let end = begin + 1 + text[begin + 1..].find('"').expect("a text ends") + 1;
    format!("{}{value}{}", &text[..begin], &text[end..])
}

/// A ticker that is not what it was, and what is to be served of it; `None`: nothing.
fn bend_ticker(text: &str, rng: &mut Rng) -> (String, Option<super::naive::Figures>) {
    let refused = [
        "\"0.00000000\"",
        "\"-1.50\"",
        "\"1e999\"",
        "\"NaN\"",
        "\"abc\"",
        "\"\"",
        "null",
        "{}",
        "[1,2]",
        "true",
        "\"1111111111111111111111111111111111111111111111111111111111111111111\"",
    ];
    let odd = [
        "\"6.4e4\"",
        "\"1.2e-7\"",
        "\"00123.4500\"",
        "\"99999999999.5\"",
    ];
    match rng.below(6) {
        // The price is well-formed and far off: there is no jump filter.
        0 => {
            let text = replace(text, "lastPrice", rng.pick::<&str>(&odd[..2]));
            let figures = figures_of(&text);
            (text, Some(figures))
        }
        1 => {
            let text = replace(text, "lastPrice", odd[3]);
            let figures = figures_of(&text);
            (text, Some(figures))
        }
        2 => {
            let text = replace(
                text,
                rng.pick::<&str>(&["bidPrice", "askPrice"]),
                "\"0.00\"",
            );
            let figures = figures_of(&text);
            (text, Some(figures))
        }
        _ => (replace(text, "lastPrice", rng.pick::<&str>(&refused)), None),
    }
}

/// A row that no market can have.
fn bend_row(row: &Row, rng: &mut Rng) -> String {
    let [open, high, low, close, volume] = &row.figures;
    let time = row.open_ms;
    let tail = format!("{},\"0\",1,\"0\",\"0\",\"0\"", time + 1);
    let bad = |figures: [&str; 5]| {
        let [o, h, l, c, v] = figures;
        format!("[{time},{o},{h},{l},{c},{v},{tail}]")
    };
    let quoted = |text: &String| format!("\"{text}\"");
    let (o, h, l, c, v) = (
        quoted(open),
        quoted(high),
        quoted(low),
        quoted(close),
        quoted(volume),
    );
    match rng.below(8) {
        0 => bad([&o, "\"0.00000001\"", &l, &c, &v]),
        1 => bad([&o, &h, "\"0\"", &c, &v]),
        2 => bad([&o, &h, &l, "\"99999999\"", &v]),
        3 => bad([&o, &h, &l, &c, "\"-5\""]),
        4 => bad([&o, "\"abc\"", &l, &c, &v]),
        5 => bad([&o, &h, "null", &c, &v]),
        6 => bad([&o, &h, &l, "{\"a\":[1]}", &v]),
        _ => format!("[{},{o},{h},{l},{c},{v},{tail}]", time + 1),
    }
}

/// The same candle with other numbers, all of them sound.
fn revise(row: &Row, rng: &mut Rng) -> Row {
    let [open, high, low, close, _] = &row.figures;
    let volume = 1 + rng.below(1_000_000);
    let close = if rng.chance(1, 2) { close } else { high };
    row_of(&format!(
        "[{},\"{open}\",\"{high}\",\"{low}\",\"{close}\",\"{volume}.250\",0,\"0\",0,\"0\",\"0\",\"0\"]",
        row.open_ms
    ))
}
