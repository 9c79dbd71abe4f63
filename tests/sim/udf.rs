//! Charting libraries: clients that ask as the standard adapter of TradingView's protocol does.
//!
//! Owns what one of them asks next: the configuration, a market, its history page after page to the left
//! until it is told that there is no more, then the newest candles every few seconds, and quotes. Such a
//! client never asks again for what was left out, and stops where there is no data. So each page is judged
//! by what was traded: no closed candle is missing from its first one on, and where there is none, there was
//! none.

use super::answers::{Answer, read_json};
use super::charts::{ChartAsk, ChartFields, ChartRow};
use super::grammar::{Ask, Grammar, Kind, address};
use super::ledger::Tri;
use super::lists::{SEARCHES, finds};
use super::quotes::Books;
use super::trace::{Verdict, ensure};
use super::weather::SECOND;
use crate::support::naive::{INTERVALS, candle_at, length_ms};
use crate::support::{Json, Rng};
use std::collections::VecDeque;

/// What is asked of the feed.
#[derive(Clone, Debug)]
pub enum UdfAsk {
    Config,
    Time,
    Search(&'static str),
    Symbol(usize),
    Quotes(Vec<usize>),
    History(Page),
}

/// A page of history.
#[derive(Clone, Debug)]
pub struct Page {
    pub market: usize,
    pub source: usize,
    pub interval: &'static str,
    /// In seconds; `to` is not part of it.
    pub from: Option<i64>,
    pub to: i64,
    pub countback: Option<usize>,
}

/// What came of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Time in milliseconds and figures, oldest first.
    Bars(Vec<ChartRow>),
    /// Where the next older one is, in seconds.
    NoData(Option<i64>),
    Error(String),
}

/// Closed slots that are shown as a chart shows them.
const NEWEST: i64 = 2;

/// The name of an interval in the protocol.
fn resolution(interval: &str) -> String {
    let (number, unit) = interval.split_at(interval.len() - 1);
    match unit {
        "m" => number.to_string(),
        "h" => (60 * number.parse::<i64>().expect("a number")).to_string(),
        unit => format!("{number}{}", unit.to_uppercase()),
    }
}

impl Page {
    /// What is asked for. A source is always named, so that it is known who answers.
    pub fn target(&self, grammar: &Grammar) -> String {
        let (source, symbol) = (&grammar.sources[self.source], &grammar.symbols[self.market]);
        let parameters = [
            ("symbol", Some(format!("{source}:{symbol}"))),
            ("resolution", Some(resolution(self.interval))),
            ("to", Some(self.to.to_string())),
            ("from", self.from.map(|it| it.to_string())),
            ("countback", self.countback.map(|it| it.to_string())),
        ];
        address("/udf/history", &parameters)
    }

    /// What an answer says.
    pub fn read(&self, json: &Json) -> Result<Found, String> {
        match json.get("s").and_then(Json::text) {
            Some("error") => {
                let why = json["errmsg"].text().ok_or("no errmsg")?;
                return Ok(Found::Error(why.to_string()));
            }
            Some("no_data") => {
                let next = json.get("nextTime").and_then(Json::integer);
                return Ok(Found::NoData(next));
            }
            Some("ok") => {}
            other => return Err(format!("s is {other:?}")),
        }
        if json.get("t").is_none() {
            return Err("no candles".to_string());
        }
        let columns = ["o", "h", "l", "c", "v"].map(|name| json[name].items());
        let times = json["t"].items();
        if columns.iter().any(|column| column.len() != times.len()) || times.is_empty() {
            return Err("the columns have different lengths, or none".to_string());
        }
        let row = |at: usize| {
            let figures = columns.map(|column| column[at].to_string());
            Some((times[at].integer()? * 1000, figures))
        };
        let rows: Option<Vec<ChartRow>> = (0..times.len()).map(row).collect();
        Ok(Found::Bars(rows.ok_or("a time is no integer")?))
    }

    /// Judges an answer.
    fn check(&self, json: &Json, books: &Books) -> Verdict {
        let ledger = &books.ledgers[self.source];
        let is_tracked = ledger.tracks(self.market, books.span);
        let found = self.read(json)?;
        if is_tracked == Tri::No && !ledger.remembers {
            return match found {
                Found::Error(_) => Ok(()),
                found => Err(format!("{} does not track it: {found:?}", ledger.id)),
            };
        }
        if let Found::Error(why) = &found {
            let may_be_unknown = is_tracked != Tri::Yes || ledger.has_list(books.span) != Tri::Yes;
            return ensure(may_be_unknown, || format!("no reason for {why:?}"));
        }
        let ask = ChartAsk {
            market: self.market,
            interval: self.interval,
            from: self.from.filter(|_| self.countback.is_none()).map(|it| it * 1000),
            to: Some(self.to * 1000 - 1),
            limit: self.countback.unwrap_or(5000).min(5000),
            source: Some(self.source),
            ..ChartAsk::default()
        };
        let fields = ChartFields { source: ledger.id.clone(), ..ChartFields::default() };
        let rows = match &found {
            Found::Bars(rows) => &rows[..],
            _ => &[],
        };
        books.check_chart(&ask, rows, &fields)?;
        let begin = match &found {
            Found::Bars(rows) => rows.first().map(|row| row.0),
            // The next older one is there, or may be.
            Found::NoData(Some(next)) => Some(candle_at(self.interval, next * 1000).1),
            // None is older.
            Found::NoData(None) | Found::Error(_) => None,
        };
        // The exchange may be away. What is behind the newest candle then is asked for again.
        let end = match rows.last() {
            Some(last) if self.to >= books.offsets(self.source).at(books.span.0).0 / 1000 => {
                candle_at(self.interval, last.0).1
            }
            _ => i64::MAX,
        };
        let ask = ChartAsk { to: ask.to.map(|to| to.min(end - 1)), ..ask };
        books.check_all_shown(&ask, rows, begin, NEWEST)?;
        match found {
            Found::NoData(Some(next)) if next >= self.to => {
                Err(format!("the next older one is at {next}"))
            }
            _ => Ok(()),
        }
    }
}

impl UdfAsk {
    fn target(&self, grammar: &Grammar) -> String {
        let name = |market: &usize| grammar.symbols[*market].clone();
        match self {
            UdfAsk::Config => "/udf/config".to_string(),
            UdfAsk::Time => "/udf/time".to_string(),
            UdfAsk::Search(text) => {
                format!("/udf/search?query={text}&type=&exchange=&limit=30")
            }
            UdfAsk::Symbol(market) => format!("/udf/symbols?symbol={}", name(market)),
            UdfAsk::Quotes(markets) => {
                let names: Vec<String> = markets.iter().map(name).collect();
                format!("/udf/quotes?symbols={}", names.join(","))
            }
            UdfAsk::History(page) => page.target(grammar),
        }
    }

    /// Judges an answer.
    pub fn check(&self, body: &[u8], books: &Books, unix_ms: i64) -> Verdict {
        let json = read_json(body)?;
        match self {
            UdfAsk::Time => ensure(json == unix_ms.div_euclid(1000), || {
                format!("it is {unix_ms}, and not {json}")
            }),
            UdfAsk::Config => check_config(&json, books),
            UdfAsk::Search(text) => check_search(text, &json, books),
            UdfAsk::Symbol(market) => {
                let name = json.get("name").and_then(Json::text);
                let is_known = name == Some(&books.symbols[*market]);
                let is_error = json.get("s").is_some_and(|it| *it == "error");
                let is_right = match books.known(*market) {
                    Tri::Yes => is_known,
                    Tri::Maybe => is_known || is_error,
                    Tri::No => is_error || books.ledgers.iter().any(|it| it.remembers),
                };
                ensure(is_right, || format!("{} is {json}", books.symbols[*market]))
            }
            UdfAsk::Quotes(markets) => check_quotes(markets, &json, books),
            UdfAsk::History(page) => page.check(&json, books),
        }
    }
}

fn check_config(json: &Json, books: &Books) -> Verdict {
    let shown = json["exchanges"].items().iter();
    let shown: Vec<&str> = shown.filter_map(|it| it["value"].text()).collect();
    let is_wrong = |it: &&super::ledger::Ledger| match it.is_there(books.span) {
        Tri::Yes => !shown.contains(&it.id.as_str()),
        Tri::Maybe => false,
        Tri::No => shown.contains(&it.id.as_str()),
    };
    match books.ledgers.iter().find(is_wrong) {
        Some(source) => Err(format!("{} and {shown:?}", source.id)),
        None => Ok(()),
    }
}

fn check_search(text: &str, json: &Json, books: &Books) -> Verdict {
    let mut shown = Vec::new();
    for item in json.items() {
        let market = books.market(item["symbol"].text().unwrap_or_default())?;
        let is_there =
            books.known(market) != Tri::No || books.ledgers.iter().any(|it| it.remembers);
        if !is_there || !finds(&books.symbols[market], text) || shown.contains(&market) {
            return Err(format!("{item} should not be found by {text:?}"));
        }
        shown.push(market);
    }
    let is_missing = |market: &usize| {
        let is_known = books.known(*market) == Tri::Yes && books.span.0 == books.span.1;
        is_known && finds(&books.symbols[*market], text) && !shown.contains(market)
    };
    match (0..books.symbols.len()).find(is_missing) {
        Some(market) if shown.len() < 30 => Err(format!("{} is missing", books.symbols[market])),
        _ => Ok(()),
    }
}

fn check_quotes(markets: &[usize], json: &Json, books: &Books) -> Verdict {
    let items = json["d"].items();
    if items.len() != markets.len() {
        return Err(format!("{} markets were asked for: {json}", markets.len()));
    }
    for (market, item) in markets.iter().zip(items) {
        let symbol = &books.symbols[*market];
        ensure(item["n"].text() == Some(symbol), || format!("{symbol} is {item}"))?;
        let is_shown = item["s"] == "ok";
        match books.has_quote(*market, None) {
            Tri::Yes if !is_shown => return Err(format!("no quote of {symbol}: {item}")),
            Tri::No if is_shown && !books.ledgers.iter().any(|it| it.remembers) => {
                return Err(format!("a quote of {symbol}: {item}"));
            }
            _ => {}
        }
        if is_shown {
            books.check_values(*market, &item["v"])?;
        }
    }
    Ok(())
}

#[derive(Debug)]
pub struct Adapter {
    page: Page,
    countback: usize,
    /// What it asks first, one after the other; then it goes to the left, until it is up to date.
    first: VecDeque<UdfAsk>,
    is_live: bool,
    /// The open time of the oldest bar so far, and of the newest one; seconds.
    oldest: Option<i64>,
    newest: Option<i64>,
    /// Pages without candles, one after the other.
    errors: usize,
    /// Where it was told to go on.
    next: Option<i64>,
}

impl Adapter {
    /// One that looks at some market.
    pub fn any(grammar: &Grammar, rng: &mut Rng) -> Adapter {
        let interval = *rng.pick(&INTERVALS);
        let length = length_ms(interval).unwrap_or(30 * 86_400_000) / 1000;
        let market = rng.below(7) as usize;
        let search = UdfAsk::Search(rng.pick(&SEARCHES).0);
        Adapter {
            first: [UdfAsk::Config, UdfAsk::Time, search, UdfAsk::Symbol(market)].into(),
            page: Page {
                market,
                source: rng.below(grammar.sources.len() as u64) as usize,
                interval,
                from: None,
                // The end of what is there, by any clock.
                to: grammar.now_ms / 1000 + 20_000 * length.max(60),
                countback: None,
            },
            countback: 2 + rng.below(300) as usize,
            is_live: false,
            oldest: None,
            newest: None,
            errors: 0,
            next: None,
        }
    }

    /// What it asks next, after this answer; and after how long at most.
    pub fn next(
        &mut self,
        last: Option<&Answer>,
        grammar: &Grammar,
        rng: &mut Rng,
    ) -> Result<Ask, String> {
        let json = last.and_then(|it| Json::parse(std::str::from_utf8(&it.body).ok()?).ok());
        let found = json.and_then(|json| self.page.read(&json).ok());
        let next = match self.first.pop_front() {
            Some(ask) => ask,
            None if !self.is_live => self.go_left(found)?,
            None if rng.chance(1, 3) => {
                let mut markets = vec![self.page.market, rng.below(7) as usize];
                markets.dedup();
                UdfAsk::Quotes(markets)
            }
            None => {
                if let Some(Found::Bars(rows)) = found {
                    self.newest = self.newest.max(rows.last().map(|row| row.0 / 1000));
                }
                let from = self.newest.unwrap_or(self.page.to);
                self.page_of(Some(from), self.page.to, Some(2))
            }
        };
        let target = next.target(grammar);
        Ok(Ask::plain(target, Kind::Udf(next)))
    }

    fn page_of(&self, from: Option<i64>, to: i64, countback: Option<usize>) -> UdfAsk {
        UdfAsk::History(Page { from, to, countback, ..self.page.clone() })
    }

    fn go_left(&mut self, found: Option<Found>) -> Result<UdfAsk, String> {
        match found {
            Some(Found::Bars(rows)) => {
                let ends = rows.first().zip(rows.last());
                let (first, last) = ends.map_or((0, 0), |it| (it.0.0 / 1000, it.1.0 / 1000));
                if self.oldest.is_some_and(|oldest| last >= oldest) {
                    return Err(format!("{last} was there already, from {:?} on", self.oldest));
                }
                self.newest.get_or_insert(last);
                (self.oldest, self.errors, self.next) = (Some(first), 0, None);
            }
            Some(Found::Error(_)) if self.errors < 5 => self.errors += 1,
            // It asks for this one and those before.
            Some(Found::NoData(Some(next))) if self.errors < 5 => {
                self.errors += 1;
                self.next = Some(next);
            }
            Some(_) => {
                self.is_live = true;
                return Ok(self.page_of(self.newest, self.page.to, Some(2)));
            }
            // The market was resolved.
            None => {}
        }
        let to = self.oldest.unwrap_or(self.page.to);
        let to = self
            .next
            .map_or(to, |next| to.min(candle_at(self.page.interval, next * 1000).1 / 1000));
        let length = length_ms(self.page.interval).unwrap_or(30 * 86_400_000) / 1000;
        let from = to - self.countback as i64 * length;
        Ok(self.page_of(Some(from), to, Some(self.countback)))
    }

    /// How long it waits before it asks, at most.
    pub fn pause(&self) -> u64 {
        match self.errors {
            _ if self.is_live => 6 * SECOND,
            0 => 50_000,
            _ => 3 * SECOND,
        }
    }
}
