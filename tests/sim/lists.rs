//! Long lists by the piece, and the charts of several markets in one answer.
//!
//! Owns what a client picks of a list, and the charts that it asks for at once. Each row and each chart is
//! judged as if it had come alone; beside that, those that are shown are the right ones, in the right order,
//! and so many as are said. And at one moment, while nothing changes, the pieces of a list, taken one after
//! the other by their links, are the list.

use super::answers::{Answer, read_json};
use super::charts::{ChartAsk, ChartFields, is_complete, read_rows};
use super::grammar::{address, decimals};
use super::ledger::Tri;
use super::quotes::Books;
use super::trace::{Verdict, ensure};
use super::weather::SECOND;
use super::world::{Event, World};
use crate::support::naive::fixed;
use crate::support::{Json, Rng};
use std::cmp::Ordering;

/// Which list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    Quotes,
    Category(String),
    Ecosystem,
}

/// What a client picks of a list.
#[derive(Clone, Debug)]
pub struct Piece {
    pub list: List,
    pub sort: Option<&'static str>,
    pub descending: Option<bool>,
    pub limit: Option<usize>,
    pub offset: usize,
    pub search: Option<&'static str>,
    pub text: bool,
}

/// What is to be found, as it is asked for and as it stands in a symbol.
pub const SEARCHES: [(&str, &str); 7] = [
    ("btc", "BTC"),
    ("h/b", "H/B"),
    ("doge-u", "DOGE/U"),
    ("_usdt", "/USDT"),
    ("W01", "W01"),
    ("nothing", "NOTHING"),
    ("", ""),
];

impl Piece {
    /// All of this list.
    pub fn whole(list: List, text: bool) -> Piece {
        let (sort, descending, limit, offset, search) = (None, None, None, 0, None);
        Piece { list, sort, descending, limit, offset, search, text }
    }

    /// Some piece of this list.
    pub fn any(list: List, rng: &mut Rng) -> Piece {
        let sorts = ["symbol", "last", "percentage", "quoteVolume"];
        let mut piece = Piece {
            list,
            sort: rng.chance(2, 3).then(|| *rng.pick(&sorts)),
            descending: rng.chance(1, 2).then(|| rng.chance(1, 2)),
            limit: rng.chance(2, 3).then(|| 1 + rng.below(6) as usize),
            offset: *rng.pick(&[0, 0, 0, 1, 3, 8]),
            search: rng.chance(1, 4).then(|| rng.pick(&SEARCHES[..6]).0),
            text: rng.chance(1, 6),
        };
        if piece.sort.is_none() && piece.limit.is_none() && piece.search.is_none() {
            piece.limit = Some(5);
        }
        piece
    }

    /// What is asked for.
    pub fn target(&self) -> String {
        let path = match &self.list {
            List::Quotes => "/api/v1/quotes".to_string(),
            List::Category(id) => format!("/api/v1/categories/{id}/markets"),
            List::Ecosystem => "/api/ecosystem/market".to_string(),
        };
        let order = |down| if down { "desc" } else { "asc" }.to_string();
        let parameters = [
            ("symbols", (self.list == List::Quotes).then(|| "*".to_string())),
            ("sort", self.sort.map(str::to_string)),
            ("order", self.descending.map(order)),
            ("limit", self.limit.map(|it| it.to_string())),
            ("search", self.search.map(str::to_string)),
            ("decimals", decimals(self.text)),
            ("offset", (self.offset > 0).then(|| self.offset.to_string())),
        ];
        address(&path, &parameters)
    }

    fn is_picked(&self) -> bool {
        self.sort.is_some() || self.limit.is_some() || self.search.is_some() || self.offset > 0
    }

    /// Whether the list has a row of a market.
    fn has(&self, market: usize, books: &Books) -> Tri {
        let symbol = &books.symbols[market];
        let quote = symbol.split('/').nth(1).unwrap_or_default();
        match &self.list {
            _ if self.search.is_some_and(|it| !finds(symbol, it)) => Tri::No,
            List::Quotes => books.has_quote(market, None),
            List::Category(id) if !quote.eq_ignore_ascii_case(id) => Tri::No,
            List::Category(_) => books.known(market),
            // Whether it is active here is not looked at.
            List::Ecosystem => match books.known(market) {
                Tri::No => Tri::No,
                _ => Tri::Maybe,
            },
        }
    }

    /// The rows of an answer.
    fn rows<'a>(&self, json: &'a Json) -> &'a [Json] {
        match self.list {
            List::Quotes => json["quotes"].items(),
            List::Category(_) => json["markets"].items(),
            List::Ecosystem => json.items(),
        }
    }

    /// Judges an answer. `answer`: none if only the body is known.
    pub fn check(&self, answer: Option<&Answer>, json: &Json, books: &Books) -> Verdict {
        let rows = self.rows(json);
        let mut shown: Vec<usize> = Vec::new();
        for row in rows {
            let market = books.market(row["symbol"].text().unwrap_or_default())?;
            match self.list {
                List::Quotes => books.check_quote(row, market, None, self.text)?,
                List::Category(_) => books.check_market(row, self.text)?,
                List::Ecosystem => {
                    let is_active = row["status"] == Json::Bool(true);
                    ensure(is_active, || format!("{row} is not active"))?;
                }
            }
            if self.has(market, books) == Tri::No || shown.contains(&market) {
                return Err(format!("{} is not one of these rows", row["symbol"]));
            }
            shown.push(market);
        }
        self.check_all(json, &shown, books)?;
        // What takes some turns need not be in one order.
        let is_sharp = books.span.0 == books.span.1;
        let values_shown = self.list != List::Ecosystem;
        if is_sharp && (values_shown || matches!(self.sort, None | Some("symbol"))) {
            self.check_order(rows)?;
        }
        let Some(answer) = answer else {
            return Ok(());
        };
        let total = match answer.field("X-Total-Count")? {
            Some(total) => total.parse().map_err(|_| total.to_string())?,
            None if self.is_picked() => return Err("no X-Total-Count".to_string()),
            None => rows.len(),
        };
        let count = |least: Tri| {
            let all = (0..books.symbols.len()).map(|market| self.has(market, books));
            all.filter(|tri| *tri >= least).count()
        };
        if is_sharp && !(count(Tri::Yes)..=count(Tri::Maybe)).contains(&total) {
            let (least, most) = (count(Tri::Yes), count(Tri::Maybe));
            return Err(format!("{total} rows in all, and there are {least} to {most}"));
        }
        let right = (total.saturating_sub(self.offset)).min(self.limit.unwrap_or(usize::MAX));
        if rows.len() > right || is_sharp && rows.len() < right {
            return Err(format!("{} rows, {right} are right", rows.len()));
        }
        self.check_links(answer.field("Link")?.unwrap_or_default(), total)
    }

    /// What a list says of itself; and nothing is missing in a whole one.
    fn check_all(&self, json: &Json, shown: &[usize], books: &Books) -> Verdict {
        let is_whole = self.limit.is_none() && self.offset == 0;
        let is_missing =
            |market: &usize| self.has(*market, books) == Tri::Yes && !shown.contains(market);
        if let Some(market) = (0..books.symbols.len()).find(is_missing).filter(|_| is_whole) {
            return Err(format!("{} is missing", books.symbols[market]));
        }
        let is_right = match &self.list {
            List::Quotes => json["errors"].items().is_empty(),
            List::Category(id) => {
                let (other, count) = (&json["category"]["id"], &json["category"]["marketCount"]);
                let is_counted = *count == shown.len() as i64 || self.is_picked();
                *other == id.as_str() && is_counted
            }
            List::Ecosystem => true,
        };
        ensure(is_right, || format!("{} rows in {json}", shown.len()))
    }

    fn check_links(&self, links: &str, total: usize) -> Verdict {
        let next = self.limit.map(|limit| self.offset + limit);
        let next = next.filter(|next| *next < total);
        let found = next_offset(links);
        ensure(found == next && links.is_empty() == self.limit.is_none(), || {
            format!("{links:?} leads to {found:?}, and not to {next:?}")
        })
    }

    fn check_order(&self, rows: &[Json]) -> Verdict {
        let Some(sort) = self.sort.or(self.descending.map(|_| "symbol")) else {
            return Ok(());
        };
        let is_down = self.descending == Some(true);
        let symbol = |row: &Json| row["symbol"].text().unwrap_or_default().to_string();
        let value = |row: &Json| match &row[sort] {
            Json::Number(digits) | Json::Text(digits) => Some(fixed(digits)),
            _ => None,
        };
        let compare = |one: &Json, other: &Json| {
            if sort == "symbol" {
                let order = symbol(one).cmp(&symbol(other));
                return if is_down { order.reverse() } else { order };
            }
            let order = match (value(one), value(other)) {
                (Some(one), Some(other)) if is_down => other.cmp(&one),
                (Some(one), Some(other)) => one.cmp(&other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            };
            order.then_with(|| symbol(one).cmp(&symbol(other)))
        };
        match rows.windows(2).find(|two| compare(&two[0], &two[1]) != Ordering::Less) {
            Some(two) => Err(format!("{} stands before {}", two[0], two[1])),
            None => Ok(()),
        }
    }
}

/// Whether one of [`SEARCHES`] finds a symbol, in one of its spellings.
pub fn finds(symbol: &str, searched: &str) -> bool {
    let text = SEARCHES.iter().find(|it| it.0 == searched).expect("one of these").1;
    symbol.contains(text) || symbol.replace('/', "").contains(text)
}

/// The offset of the next piece.
fn next_offset(links: &str) -> Option<usize> {
    let next = links.split(", ").find(|it| it.ends_with("rel=\"next\""))?;
    let (target, _) = next.split_once('>')?;
    target.rsplit_once("offset=")?.1.parse().ok()
}

/// Charts of several markets in one answer.
#[derive(Clone, Debug)]
pub struct Several {
    pub asks: Vec<ChartAsk>,
    /// Names that are no symbol.
    pub strangers: usize,
}

impl Several {
    /// Judges an answer.
    pub fn check(&self, json: &Json, books: &Books) -> Verdict {
        let symbols = self.asks.iter().map(|ask| books.symbols[ask.market].as_str());
        let mut shown = json.keys().into_iter();
        let mut missing = 0;
        let mut next = shown.next();
        for (ask, symbol) in self.asks.iter().zip(symbols) {
            if next != Some(symbol) {
                missing += 1;
                let errors = json["errors"].items().iter();
                let error =
                    errors.filter(|it| it["symbol"].text().map(joined) == Some(joined(symbol)));
                if error.count() != 1 {
                    return Err(format!("no chart of {symbol}, and no error, in {json}"));
                }
                // Nothing is told of a market before the first list.
                let is_here = |it: &super::ledger::Ledger| {
                    let has_list = it.has_list(books.span) == Tri::Yes;
                    it.tracks(ask.market, books.span) == Tri::Yes && has_list
                };
                if books.ledgers.iter().any(is_here) {
                    return Err(format!("no chart of {symbol}: {}", json["errors"]));
                }
                continue;
            }
            next = shown.next();
            let chart = &json[symbol];
            let fields = ChartFields {
                source: chart["source"].text().unwrap_or_default().to_string(),
                last_closed: chart["lastClosed"].integer(),
                gaps: chart["gaps"].integer().ok_or("no gaps")?.unsigned_abs(),
                complete: is_complete(chart["coverage"].text())?,
                next: chart["next"].integer().map(|time| time.to_string()),
                ..ChartFields::default()
            };
            let rows = read_rows(chart["candles"].to_string().as_bytes(), ask.text)?;
            let verdict = books.check_chart(ask, &rows, &fields);
            verdict.map_err(|why| format!("{why}; {symbol}, {fields:?}, {ask:?}"))?;
        }
        let errors = json["errors"].items().len();
        ensure(next == Some("errors") && errors == missing + self.strangers, || {
            format!("{next:?} and {errors} errors in {json}")
        })
    }
}

fn joined(symbol: &str) -> String {
    symbol.replace(['/', '-', '_'], "")
}

/// Plans looks at lists until then.
pub fn plan(world: &mut World, until: u64, rng: &mut Rng) {
    for _ in 0..rng.below(1 + until / (10 * SECOND)).min(40) {
        world.after(rng.below(until), Event::Browse);
    }
}

impl World {
    /// Takes the pieces of a list one after the other, at one moment.
    pub fn browse(&mut self) {
        if self.core.has_work() || self.stopped_at.is_some() {
            return;
        }
        let list = match self.rng.below(3) {
            0 => List::Quotes,
            1 => List::Category("usdt".to_string()),
            _ => List::Ecosystem,
        };
        self.woken = true;
        let mut piece = Piece::any(list, &mut self.rng);
        (piece.limit, piece.offset) = (None, 0);
        piece.sort.get_or_insert("symbol");
        let whole = piece.target();
        let Some(all) = self.rows_now(&piece) else {
            return;
        };
        // In a dozen pieces at most, and often in pieces that do not fit.
        let least = 1 + all.0.len() / 12;
        piece.limit = Some(least + self.rng.below(6) as usize);
        let mut pieces = Vec::new();
        loop {
            let Some((rows, next)) = self.rows_now(&piece) else {
                return;
            };
            pieces.extend(rows);
            match next {
                Some(next) => piece.offset = next,
                None => break,
            }
        }
        // What was on its way may have changed something.
        (piece.limit, piece.offset) = (None, 0);
        let is_still = self.rows_now(&piece).as_ref() == Some(&all);
        if is_still && pieces != all.0 {
            let (pieces, all) = (pieces.join(","), all.0.join(","));
            self.fail(&format!("the pieces of {whole} are\n{pieces}\nnot\n{all}"));
        }
    }

    /// The rows of a piece at this moment, and the offset of the next one.
    fn rows_now(&mut self, piece: &Piece) -> Option<(Vec<String>, Option<usize>)> {
        let answer = self.answer_to(&piece.target(), 400).filter(|it| it.status == 200)?;
        let json = read_json(&answer.body).unwrap_or_else(|why| self.fail(&why));
        let rows = piece.rows(&json).iter().map(ToString::to_string).collect();
        let links = answer.field("Link").unwrap_or_default();
        Some((rows, next_offset(links.unwrap_or_default())))
    }
}
