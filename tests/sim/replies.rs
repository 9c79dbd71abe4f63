//! What a made-up exchange says to a request, and what that ought to mean to whoever reads it.
//!
//! Bends what [`super::truth`] has to tell, and says what of it is to be believed. It never looks at
//! a connection: [`super::exchange`] sends what this says.

use super::ledger::{Item, Page, Said, Word};
use super::truth::{Figures, Row, Truth, figures_of};
use super::weather::Fault;
use crate::support::Rng;
use crate::support::naive::{STORED, length_ms};
use std::rc::Rc;

/// What is asked of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// With the weight of the request.
    Tickers(u64),
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

impl Task {
    pub fn is_tickers(&self) -> bool {
        matches!(self, Task::Tickers(_))
    }
}

/// A body with what it says.
#[derive(Clone, Debug)]
pub struct Speech {
    pub body: String,
    /// `None`: it is to be taken for a failure.
    pub said: Option<Said>,
    pub status: u16,
}

impl Truth {
    /// What a request's target asks for.
    pub fn read(&self, target: &str) -> Task {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let number = |name: &str| parameter(name).and_then(|value| value.parse::<i64>().ok());
        match path {
            // Whichever markets are asked for, all are told.
            "/api/v3/ticker/24hr" => match parameter("symbols").map(|ids| ids.split(',').count()) {
                Some(0..=20) => Task::Tickers(2),
                Some(21..=100) => Task::Tickers(40),
                _ => Task::Tickers(80),
            },
            "/api/v3/exchangeInfo" => Task::Markets,
            "/api/v3/time" => Task::Time,
            "/api/v3/klines" => {
                let market = parameter("symbol").and_then(|id| self.brain.find(id));
                let interval = STORED.iter().find(|i| parameter("interval") == Some(i));
                let bounds = (number("startTime"), number("endTime"), number("limit"));
                match (market, interval, bounds) {
                    (Some(market), Some(interval), (Some(from), Some(to), Some(limit))) => {
                        Task::Candles { market, interval, from, to, limit: limit as usize }
                    }
                    _ => Task::Unknown,
                }
            }
            _ => Task::Unknown,
        }
    }

    /// Answers at this time of the run. Of faults, those that are about what is said.
    pub fn speak(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let speech = |body: String, said: Said| Speech { body, said: Some(said), status: 200 };
        match task {
            Task::Time => {
                let clock = self.clock(us);
                speech(format!("{{\"serverTime\":{clock}}}"), Said::Time(clock))
            }
            Task::Markets => {
                let clock = self.clock(us);
                let list = self.list(clock);
                let listing = |(market, active): &(usize, bool)| {
                    let least = self.change(*market, clock).map_or(1, |change| change.least);
                    self.brain.listing(*market, *active, least)
                };
                let items: Vec<String> = list.iter().map(listing).collect();
                let body = format!("{{\"timezone\":\"UTC\",\"symbols\":[{}]}}", items.join(","));
                speech(body, Said::Markets(list))
            }
            Task::Tickers(_) => self.tickers(fault, us, rng),
            Task::Candles { .. } => self.candles(task, fault, us, rng),
            Task::Unknown => unknown_market(),
        }
    }

    fn tickers(&mut self, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let told_at = match self.freeze {
            Some((from, to)) if (from..to).contains(&us) => from,
            _ => us,
        };
        let clock = self.clock(us);
        let mut items = Vec::new();
        let mut texts = Vec::new();
        for market in 0..self.brain.markets.len() {
            let change = self.change(market, clock);
            if change.is_some_and(|change| change.active.is_none() && !change.lingers) {
                continue;
            }
            if fault == Some(Fault::Missing) && rng.chance(1, 3) {
                continue;
            }
            let told_ms = self.clock(told_at);
            let ticker = self.brain.ticker(market, told_ms);
            let bent = fault == Some(Fault::BadItems) && rng.chance(1, 3);
            let (text, figures) = match bent {
                true => bend_ticker(&ticker.text, rng),
                false => (ticker.text.clone(), Some(ticker.figures.clone())),
            };
            texts.push(text);
            items.push(Item { market, figures: figures.map(Rc::new) });
        }
        let body = format!("[{}]", texts.join(","));
        Speech {
            // A list without a single item is no list.
            said: (!items.is_empty()).then_some(Said::Tickers(items, clock)),
            body,
            status: 200,
        }
    }

    fn candles(&mut self, task: &Task, fault: Option<Fault>, us: u64, rng: &mut Rng) -> Speech {
        let Task::Candles { market, interval, from, to, limit } = *task else {
            unreachable!("candles are asked for");
        };
        let length = length_ms(interval).expect("stored");
        let mut clock = self.clock(us);
        if self.habits.refuses && self.state(market, clock).is_none() {
            return unknown_market();
        }
        if self.habits.late > 0 && rng.chance(1, 3) {
            clock -= rng.below(self.habits.late as u64) as i64;
        }
        let first = (from.max(0) + length - 1) / length;
        let last = to.div_euclid(length);
        // What it tells of, as things stand: what lies behind the cut it does not.
        let mut told = (first, last.min(clock.div_euclid(length)));
        let mut rows: Vec<Rc<Row>> = (told.0..=told.1)
            .filter_map(|slot| self.row_at(market, interval, slot, clock))
            .collect();
        // Silence is about all that was asked.
        let silent = fault == Some(Fault::EmptyList) || rng.chance(self.habits.silent, 1000);
        if silent && self.may_be_silent(market, interval, &rows, us) {
            rows.clear();
            told.1 = told.0 - 1;
        }
        let most = self.habits.cut.unwrap_or(limit).min(limit);
        if rows.len() > most {
            rows.truncate(most);
            told.1 = rows[most - 1].open_ms / length;
        }
        let mut words = Vec::new();
        let mut texts = Vec::new();
        let mut undated = false;
        for row in rows {
            let slot = row.open_ms / length;
            let hit = rng.chance(1, 4);
            match fault {
                Some(Fault::BadItems) if hit && rng.chance(1, 12) => {
                    // Nobody can tell which slot this was.
                    let time = *rng.pick(&["null", "\"abc\"", "true", "\"\""]);
                    let rest = row.text.split_once(',').map(|(_, rest)| rest);
                    texts.push(format!("[{time},{}", rest.expect("a row of twelve")));
                    undated = true;
                }
                Some(Fault::BadItems) if hit => {
                    texts.push(bend_row(&row, rng));
                    words.push(Word::Unsound(slot));
                    continue;
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
        Speech {
            body: format!("[{}]", texts.join(",")),
            said: Some(Said::Candles(Page {
                market,
                interval,
                slots: told,
                words,
                is_whole: !undated,
            })),
            status: 200,
        }
    }
}

fn unknown_market() -> Speech {
    Speech {
        body: "{\"code\":-1121,\"msg\":\"Invalid symbol.\"}".to_string(),
        said: None,
        status: 400,
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
fn bend_ticker(text: &str, rng: &mut Rng) -> (String, Option<Figures>) {
    const REFUSED: &str = r#""0.00000000" "-1.50" "1e999" "NaN" "abc" "" null {} [1,2] true
        "1111111111111111111111111111111111111111111111111111111111111111111""#;
    let refused: Vec<&str> = REFUSED.split_whitespace().collect();
    let (name, value) = match rng.below(6) {
        // The price is well-formed and far off: there is no jump filter.
        0 => ("lastPrice", *rng.pick(&["\"6.4e4\"", "\"1.2e-7\""])),
        1 => ("lastPrice", "\"99999999999.5\""),
        2 => (*rng.pick(&["bidPrice", "askPrice"]), "\"0.00\""),
        _ => return (replace(text, "lastPrice", rng.pick::<&str>(&refused)), None),
    };
    let text = replace(text, name, value);
    let figures = figures_of(&text);
    (text, Some(figures))
}

/// A row that no market can have: one of its figures is wrong, or its time.
fn bend_row(row: &Row, rng: &mut Rng) -> String {
    let mut parts = row.figures.each_ref().map(|figure| format!("\"{figure}\""));
    let (mut time, end) = (row.open_ms, row.open_ms + 1);
    let wrong = match rng.below(8) {
        0 => Some((1, "\"0.00000001\"")),
        1 => Some((2, "\"0\"")),
        2 => Some((3, "\"99999999\"")),
        3 => Some((4, "\"-5\"")),
        4 => Some((1, "\"abc\"")),
        5 => Some((2, "null")),
        6 => Some((3, "{\"a\":[1]}")),
        _ => None,
    };
    match wrong {
        Some((at, figure)) => parts[at] = figure.to_string(),
        None => time += 1,
    }
    format!("[{time},{},{end},\"0\",1,\"0\",\"0\",\"0\"]", parts.join(","))
}
