//! An exchange as a table: its addresses, what each takes, and what it answers.
//!
//! In the texts of a table, `$name` stands for a value: of the exchange (`$now`, `$seconds`, `$millis`,
//! `$iso`), of a market (`$id`, `$base`, `$tick`, ...), of its day (`$last`, `$bidVolume`, ...) or of a
//! candle (`$time`, `$open`, ...); `$items` stands for the items of a body.

use crate::fakes::shop::*;
use crate::support::generated::GeneratedMarket;
use crate::support::*;
use marketd::time::{UnixMs, iso_8601};
use std::cell::OnceCell;

/// A fake exchange as its clients see it.
pub struct Fake {
    /// Its dialect's name.
    pub name: &'static str,
    /// Its name of a market.
    pub id: fn(base: &str, quote: &str) -> String,
    /// How it writes a price or an amount.
    pub digits: fn(u64) -> String,
    /// The first that fits a request answers it.
    pub places: &'static [Place],
    /// Its answer where it does not know a market.
    pub unknown: Refusal,
    /// Its answer to what it does not understand.
    pub wrong: Refusal,
    /// Its answer to whoever asks too often.
    pub too_many: Refusal,
    /// Which of its limits a request counts against, and for how much.
    pub charge: fn(&Asked) -> Charge,
    /// Fields of a quote that it sends, by their names in a quote, with blanks between them. The others
    /// are computed, or null.
    pub sends: &'static str,
}

/// A status and a body.
#[derive(Clone, Copy)]
pub struct Refusal(pub u16, pub &'static str);

/// An address.
pub struct Place {
    /// Its path. `*` stands for a part that names the market or the interval.
    path: &'static str,
    /// A parameter that must be there (`symbol`), with this value (`category=spot`); empty: none.
    with: &'static str,
    gives: Gives,
    body: &'static str,
    /// Whether a name that is unknown leaves no item, and is no error.
    is_lenient: bool,
}

/// What the items of a body are.
enum Gives {
    /// It has none.
    Itself,
    /// One of each market that this parameter names, or of all: the parameter, and the item.
    Markets(&'static str, &'static str),
    Candles(&'static Candles, &'static str),
}

/// Which candles are answered.
pub struct Candles {
    /// The parameter of the market; empty: the path names it.
    pub market: &'static str,
    /// The parameter of the interval (empty: the path names it), and the names of minutes, hours and days.
    pub interval: (&'static str, [&'static str; 3]),
    pub unit: Unit,
    pub from: Bound,
    pub to: Bound,
    pub rows: Rows,
    pub newest_first: bool,
    /// Days back for which there are minutes, hours and days.
    pub reach_days: [i64; 3],
    /// A range of more intervals is refused, ...
    pub most_span: i64,
    /// ... and one that begins more intervals ago.
    pub most_ago: i64,
    /// A parameter that does not go with a range.
    pub never: &'static str,
}

/// How times are written.
#[derive(Clone, Copy)]
pub enum Unit {
    Ms,
    Seconds,
    Iso,
}

/// An end of a range: the parameter, and the milliseconds that make it one that is included.
pub enum Bound {
    /// It must be there.
    Must(&'static str, i64),
    /// Without it, there is none.
    May(&'static str, i64),
    Never,
}

/// How many rows of a range are answered.
pub enum Rows {
    First(usize),
    Last(usize),
    /// The last ones: as many as a parameter says, from 1 to this; without it so many (0: it must be there).
    Asked(&'static str, i64, i64),
}

/// Oldest first, both ends included, from as long ago as one likes.
pub const CANDLES: Candles = Candles {
    market: "symbol",
    interval: ("interval", ["1m", "1h", "1d"]),
    unit: Unit::Ms,
    from: Bound::Never,
    to: Bound::Never,
    rows: Rows::Last(0),
    newest_first: false,
    reach_days: [100_000; 3],
    most_span: i64::MAX,
    most_ago: i64::MAX,
    never: "",
};

const INTERVALS: [i64; 3] = [MINUTE_MS, HOUR_MS, DAY_MS];

impl Refusal {
    pub fn reply(self) -> Reply {
        Reply::status(self.0, self.1)
    }
}

impl Bound {
    /// In milliseconds; `default` where it need not be there.
    fn read(&self, asked: &Asked, unit: Unit, default: i64) -> Option<i64> {
        let (name, more) = match self {
            Bound::Must(name, more) | Bound::May(name, more) => (*name, *more),
            Bound::Never => return Some(default),
        };
        let number = || asked.param(name)?.parse::<i64>().ok();
        let found = match unit {
            Unit::Ms => number(),
            Unit::Seconds => number().map(|seconds| seconds * 1000),
            Unit::Iso => {
                asked.param(name).and_then(|it| iso_8601(it.strip_suffix('Z')?.as_bytes()))
            }
        };
        let is_optional = matches!(self, Bound::May(..));
        found.map(|at| at + more).or_else(|| is_optional.then_some(default))
    }
}

impl Place {
    /// An address with this body.
    pub const fn fixed(path: &'static str, body: &'static str) -> Place {
        Place { path, with: "", gives: Gives::Itself, body, is_lenient: false }
    }

    /// An address with an item of each market that this parameter names (empty: that the path names), or
    /// of all.
    pub const fn markets(
        path: &'static str,
        named: &'static str,
        item: &'static str,
        body: &'static str,
    ) -> Place {
        Place { gives: Gives::Markets(named, item), ..Place::fixed(path, body) }
    }

    pub const fn candles(
        path: &'static str,
        candles: &'static Candles,
        item: &'static str,
        body: &'static str,
    ) -> Place {
        Place { gives: Gives::Candles(candles, item), ..Place::fixed(path, body) }
    }

    /// The same only with this parameter.
    pub const fn with(self, with: &'static str) -> Place {
        Place { with, ..self }
    }

    /// The same, whose body has no items where a name is unknown.
    pub const fn lenient(self) -> Place {
        Place { is_lenient: true, ..self }
    }

    /// The part that its `*` stands for, if it is asked for.
    fn fits<'a>(&self, asked: &'a Asked) -> Option<&'a str> {
        let part = match self.path.split_once('*') {
            Some((front, back)) => asked.path().strip_prefix(front)?.strip_suffix(back)?,
            None => asked.path().strip_prefix(self.path).filter(|rest| rest.is_empty())?,
        };
        let (name, value) = self.with.split_once('=').unwrap_or((self.with, ""));
        let is_there = |sent: String| value.is_empty() || sent == value;
        (name.is_empty() || asked.param(name).is_some_and(is_there)).then_some(part)
    }
}

impl Fake {
    /// Its answer.
    pub fn answer(&self, shop: &Shop, asked: &Asked) -> Reply {
        let fitting = |place: &'static Place| Some((place, place.fits(asked)?));
        let Some((place, part)) = self.places.iter().find_map(fitting) else {
            return self.wrong.reply();
        };
        let named = |name: &str| match name {
            "" => Some(part.to_string()).filter(|part| !part.is_empty()),
            name => asked.param(name).map(|text| text.replace(['[', ']', '"'], "")),
        };
        let made = match &place.gives {
            Gives::Itself => Some(String::new()),
            Gives::Markets(name, item) => {
                let made = self.items(shop, named(name), item);
                made.or_else(|| place.is_lenient.then(String::new))
            }
            Gives::Candles(candles, item) => {
                let id = named(candles.market).unwrap_or_default();
                match shop.find(self, &id).map(|it| self.rows(shop, it, asked, part, candles)) {
                    Some(Some((interval, rows))) => Some(self.candles(shop, interval, &rows, item)),
                    Some(None) => return self.wrong.reply(),
                    None => None,
                }
            }
        };
        let Some(items) = made else {
            return self.unknown.reply();
        };
        Reply::json(fill(place.body, |name| match name {
            "items" => items.clone(),
            name => shop.value(name),
        }))
    }

    /// An item of each market with these names, a comma between two of them, or of all. `None`: one of
    /// the names is unknown.
    fn items(&self, shop: &Shop, ids: Option<String>, item: &str) -> Option<String> {
        let make = |market: &GeneratedMarket| {
            let day = OnceCell::new();
            fill(item, |name| self.value(shop, market, &day, name))
        };
        let Some(ids) = ids else {
            return Some(shop.listed().map(make).collect::<Vec<_>>().join(","));
        };
        let market = |id: &str| shop.find(self, id).filter(|_| !shop.gone.contains(id));
        let made: Option<Vec<String>> = ids.split(',').map(|id| market(id).map(make)).collect();
        Some(made?.join(","))
    }

    /// A value of a market.
    fn value(
        &self,
        shop: &Shop,
        market: &GeneratedMarket,
        day: &OnceCell<Day>,
        name: &str,
    ) -> String {
        let (base, quote) = (market.base.as_str(), market.quote);
        let day = || day.get_or_init(|| shop.day(market));
        let change = || day().last as i64 - day().open as i64;
        // In ten thousandths.
        let ratio = || change() * 10_000 / day().open as i64;
        let figure = match name {
            "id" => return (self.id)(base, quote),
            "base" => return base.to_string(),
            "quote" => return quote.to_string(),
            // As they stand in its names of markets.
            "ownBase" => return (self.id)(base, ""),
            "ownQuote" => return (self.id)("", quote),
            "places" => return places(market.tick).to_string(),
            "change" => return signed(change()),
            "ratio" => return signed(ratio() * 10_000),
            "percent" => return signed(ratio() * 1_000_000),
            "tick" => market.tick,
            "last" => day().last,
            "bid" => day().bid,
            "ask" => day().ask,
            "bidVolume" => day().bid_size,
            "askVolume" => day().ask_size,
            "open" => day().open,
            "high" => day().high,
            "low" => day().low,
            "baseVolume" => day().base_volume,
            "quoteVolume" => day().quote_volume,
            name => return shop.value(name),
        };
        (self.digits)(figure)
    }

    /// The candles of a market that are asked for, and their interval. `None`: the request is wrong.
    fn rows(
        &self,
        shop: &Shop,
        market: &GeneratedMarket,
        asked: &Asked,
        part: &str,
        candles: &Candles,
    ) -> Option<(i64, Vec<Row>)> {
        let (name, names) = candles.interval;
        let sent = if name.is_empty() { part.to_string() } else { asked.param(name)? };
        let at = names.iter().position(|name| *name == sent)?;
        let interval = INTERVALS[at];
        let from = candles.from.read(asked, candles.unit, 0)?;
        let to = candles.to.read(asked, candles.unit, shop.now)?;
        let is_wide = (to - from) / interval > candles.most_span;
        let is_old = (shop.now - from) / interval > candles.most_ago;
        let is_mixed = !candles.never.is_empty() && asked.param(candles.never).is_some();
        if is_wide || is_old || is_mixed {
            return None;
        }
        let from = from.max(shop.now - candles.reach_days[at] * DAY_MS);
        let mut rows = match candles.rows {
            Rows::First(most) => {
                let mut rows = shop.rows(market, interval, from, to);
                rows.truncate(most);
                rows
            }
            Rows::Last(count) => shop.newest(market, interval, (from, to), count),
            Rows::Asked(name, most, default) => {
                let count = asked.param(name).map_or(Some(default), |text| text.parse().ok())?;
                if !(1..=most).contains(&count) {
                    return None;
                }
                shop.newest(market, interval, (from, to), count as usize)
            }
        };
        if candles.newest_first {
            rows.reverse();
        }
        Some((interval, rows))
    }

    fn candles(&self, shop: &Shop, interval: i64, rows: &[Row], item: &str) -> String {
        let make = |row: &Row| {
            let end = row.open_ms + interval;
            fill(item, |name| match name {
                "time" => row.open_ms.to_string(),
                "timeSeconds" => (row.open_ms / 1000).to_string(),
                "timeIso" => UnixMs(row.open_ms).to_string().trim_end_matches(".000Z").to_string(),
                "end" => end.to_string(),
                "isClosed" => (end <= shop.now).to_string(),
                "closedFlag" => u8::from(end <= shop.now).to_string(),
                "open" => (self.digits)(row.open),
                "high" => (self.digits)(row.high),
                "low" => (self.digits)(row.low),
                "close" => (self.digits)(row.close),
                "volume" => (self.digits)(row.volume),
                "turnover" => (self.digits)(row.turnover),
                name => shop.value(name),
            })
        };
        rows.iter().map(make).collect::<Vec<String>>().join(",")
    }
}

/// A text with values in the place of their names.
fn fill(text: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(part.len());
        filled.push_str(&value(&part[..end]));
        filled.push_str(&part[end..]);
    }
    filled
}
