//! A fake exchange: what its description says, read and answered by.
//!
//! In the bodies of a description, `$name` stands for a value: of the exchange (`$now`, `$seconds`, `$millis`,
//! `$iso`), of a market (`$id`, `$base`, `$tick`, ...), of its day (`$last`, `$bidVolume`, ...) or of a
//! candle (`$time`, `$open`, ...); `$items` stands for the items of a body.

use crate::fakes::shop::*;
use crate::support::generated::{GeneratedMarket, UNIT, decimal};
use crate::support::*;
use marketd::time::{UnixMs, iso_8601};
use std::cell::OnceCell;

/// A fake exchange as its clients see it. It is strict: what the exchange would refuse, it refuses.
pub struct Fake {
    /// Its dialect's name.
    pub name: &'static str,
    /// Its name of a market: `{base}-{quote}`.
    names: &'static str,
    /// `lower`: its names are in lower case.
    is_lower: bool,
    /// Common names of assets, and its own.
    renamed: Vec<(&'static str, &'static str)>,
    /// `padded`: prices and amounts have all their places.
    is_padded: bool,
    /// What its list says of a market that trades.
    pub open: &'static str,
    /// Fields of a quote that it sends, by their names in a quote, with blanks between them. The others
    /// are computed, or null.
    pub sends: &'static str,
    limit: Charge,
    /// The first that fits a request answers it.
    pub places: Vec<Place>,
    pub refusals: Vec<Refusal>,
}

/// A status, a kind and a code, words, and the body that says so.
#[derive(Clone)]
pub struct Refusal {
    pub status: u16,
    pub kind: &'static str,
    pub code: &'static str,
    pub words: &'static str,
    pub body: &'static str,
}

/// An address.
#[derive(Clone)]
pub struct Place {
    /// Its path. `*` stands for a part that names the market or the interval.
    path: &'static str,
    /// A parameter that must be there (`symbol`), with this value (`category=spot`); empty: none.
    with: &'static str,
    pub body: &'static str,
    pub item: &'static str,
    /// The items are one of each market that this parameter names (empty: that the path names), or of all.
    markets: Option<&'static str>,
    /// The items are candles.
    pub candles: Option<Candles>,
    /// Whether a name that is unknown leaves no item, and is no error.
    is_lenient: bool,
    /// What a request counts against, ...
    charge: Charge,
    /// ... and its units: for up to 20 markets, up to 100, or more.
    costs: Vec<u32>,
}

/// Which candles are answered.
#[derive(Clone)]
pub struct Candles {
    /// The parameter of the market; empty: the path names it.
    market: &'static str,
    /// The parameter of the interval (empty: the path names it), and the names of minutes, hours and days.
    interval: (&'static str, Vec<&'static str>),
    unit: Unit,
    from: Option<Bound>,
    to: Option<Bound>,
    rows: Rows,
    /// `newest`: it comes first.
    pub newest_first: bool,
    /// Days back for which there are minutes, hours and days.
    reach: Vec<i64>,
    /// A range of more intervals is refused, ...
    span: i64,
    /// ... and one that begins more intervals ago.
    ago: i64,
    /// A parameter that does not go with a range.
    never: &'static str,
}

/// How times are written.
#[derive(Clone, Copy)]
enum Unit {
    Ms,
    Seconds,
    Iso,
}

/// An end of a range, `endTime?:-1`: the parameter, `?` if it may be left out, and the milliseconds that make it
/// one that is included.
#[derive(Clone)]
struct Bound {
    name: &'static str,
    is_optional: bool,
    more: i64,
}

/// How many rows of a range are answered: the first or the last ones, as many as a parameter says, from 1 to the
/// most, or without it so many (0: it must be there).
#[derive(Clone)]
struct Rows {
    is_first: bool,
    /// Empty: there is none, and always so many.
    name: &'static str,
    most: i64,
    default: i64,
}

/// The step of amounts: 0.0001.
const STEP: u64 = UNIT / 10_000;

const INTERVALS: [i64; 3] = [MINUTE_MS, HOUR_MS, DAY_MS];

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

impl Bound {
    fn read(text: &'static str) -> Option<Bound> {
        let (name, more) = text.split_once(':').unwrap_or((text, "0"));
        let bare = name.trim_end_matches('?');
        Some(Bound { name: bare, is_optional: bare != name, more: number(more) })
    }

    /// In milliseconds; `default` where it need not be there.
    fn of(&self, asked: &Asked, unit: Unit, default: i64) -> Option<i64> {
        let text = asked.param(self.name);
        let number = || text.as_ref()?.parse::<i64>().ok();
        let found = match unit {
            Unit::Ms => number(),
            Unit::Seconds => number().map(|seconds| seconds * 1000),
            Unit::Iso => text.as_ref().and_then(|it| iso_8601(it.strip_suffix('Z')?.as_bytes())),
        };
        found.map(|at| at + self.more).or(self.is_optional.then_some(default))
    }
}

impl Candles {
    /// Oldest first, from as long ago as one likes, but for these words.
    fn read(words: &[(&'static str, &'static str)]) -> Candles {
        let mut made = Candles {
            market: "symbol",
            interval: ("", Vec::new()),
            unit: Unit::Ms,
            from: None,
            to: None,
            rows: Rows { is_first: false, name: "", most: 0, default: 0 },
            newest_first: false,
            reach: vec![100_000; 3],
            span: i64::MAX,
            ago: i64::MAX,
            never: "",
        };
        for (name, value) in words.iter().copied() {
            let parts: Vec<&str> = value.split(':').collect();
            match name {
                "market" => made.market = value,
                "interval" => made.interval = (parts[0], parts[1].split(',').collect()),
                "unit" => made.unit = if value == "s" { Unit::Seconds } else { Unit::Iso },
                "from" => made.from = Bound::read(value),
                "to" => made.to = Bound::read(value),
                "first" | "last" => {
                    let (most, default) = match parts[..] {
                        [_, most, default] => (number(most), number(default)),
                        _ => (number(value), number(value)),
                    };
                    let by_name = if parts.len() == 3 { parts[0] } else { "" };
                    made.rows = Rows { is_first: name == "first", name: by_name, most, default };
                }
                "newest" => made.newest_first = true,
                "reach" => made.reach = value.split(',').map(number).collect(),
                "span" => made.span = number(value),
                "ago" => made.ago = number(value),
                "never" => made.never = value,
                _ => panic!("{name} is no word of an address"),
            }
        }
        made
    }
}

impl Place {
    fn read(path: &'static str, words: &'static str, before: &Fake) -> Place {
        let mut place = Place {
            path,
            with: "",
            body: "",
            item: before.places.last().map_or("", |it| it.item),
            markets: None,
            candles: None,
            is_lenient: false,
            charge: before.limit.clone(),
            costs: vec![1],
        };
        let mut others = Vec::new();
        for word in words.split_terminator(' ') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "with" => place.with = value,
                "markets" => place.markets = Some(value),
                "lenient" => place.is_lenient = true,
                "pool" => place.charge.pool = value,
                "most" => place.charge.most = number(value),
                "cost" => place.costs = value.split(',').map(number).collect(),
                _ => others.push((name, value)),
            }
        }
        place.candles = (!others.is_empty()).then(|| Candles::read(&others));
        place
    }

    /// The part that its `*` stands for, if this target has its path.
    fn part<'a>(&self, asked: &'a Asked) -> Option<&'a str> {
        match self.path.split_once('*') {
            Some((front, back)) => asked.path().strip_prefix(front)?.strip_suffix(back),
            None => asked.path().strip_prefix(self.path).filter(|rest| rest.is_empty()),
        }
    }

    /// The same, if its parameter is there too.
    fn fits<'a>(&self, asked: &'a Asked) -> Option<&'a str> {
        let (name, value) = self.with.split_once('=').unwrap_or((self.with, ""));
        let is_there = |sent: String| value.is_empty() || sent == value;
        let part = self.part(asked)?;
        (name.is_empty() || asked.param(name).is_some_and(is_there)).then_some(part)
    }
}

impl Fake {
    /// The exchanges of these descriptions.
    pub fn read(text: &'static str) -> Vec<Fake> {
        let mut fakes: Vec<Fake> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            if !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_lowercase()) {
                match (first, fakes.last_mut()) {
                    ("limit", Some(fake)) => {
                        let (most, span) = rest.split_once(" in ").expect("a limit");
                        let (most, span_ms) = (number(most), number(span));
                        fake.limit = Charge { pool: "all", units: 1, most, span_ms };
                        fake.places.iter_mut().for_each(|it| it.charge = fake.limit.clone());
                    }
                    ("sends", Some(fake)) => fake.sends = rest,
                    _ => fakes.push(Fake::begin(first, rest, &fakes)),
                }
                continue;
            }
            let fake = fakes.last_mut().expect("a name stands first");
            match first.chars().next() {
                Some('#') => {}
                Some('/') => fake.places.push(Place::read(first, rest, fake)),
                None => {
                    let place = fake.places.last_mut().expect("an address stands first");
                    let text =
                        if place.body.is_empty() { &mut place.body } else { &mut place.item };
                    *text = rest;
                }
                Some(_) => {
                    let mut parts = rest.splitn(4, " | ");
                    let mut part = || parts.next().expect("four parts");
                    let (kind, code, words, body) = (part(), part(), part(), part());
                    fake.refusals.push(Refusal { status: number(first), kind, code, words, body });
                }
            }
        }
        fakes
    }

    fn begin(name: &'static str, words: &'static str, before: &[Fake]) -> Fake {
        let (names, words) = words.split_once(' ').expect("words behind the names");
        let limit = Charge { pool: "", units: 0, most: 0, span_ms: 0 };
        let mut fake = Fake {
            name,
            names,
            is_lower: false,
            renamed: Vec::new(),
            is_padded: false,
            open: "",
            sends: "",
            limit,
            places: Vec::new(),
            refusals: Vec::new(),
        };
        for word in words.split(' ') {
            match word.split_once('=').unwrap_or((word, "")) {
                ("lower", _) => fake.is_lower = true,
                ("padded", _) => fake.is_padded = true,
                ("open", value) => fake.open = value,
                // All of that one, at half of the cost.
                ("half", value) => {
                    let whole =
                        before.iter().find(|it| it.name == value).expect("it stands before");
                    fake.refusals = whole.refusals.clone();
                    fake.places = whole.places.clone();
                    for cost in fake.places.iter_mut().flat_map(|it| &mut it.costs) {
                        *cost = cost.div_ceil(2);
                    }
                }
                pair => fake.renamed.push(pair),
            }
        }
        fake
    }

    /// Its name of a market.
    pub fn id(&self, base: &str, quote: &str) -> String {
        let own = self.renamed.iter().find(|(name, _)| *name == base).map_or(base, |it| it.1);
        let id = self.names.replace("{base}", own).replace("{quote}", quote);
        if self.is_lower { id.to_lowercase() } else { id }
    }

    /// Its first refusal of this kind.
    pub fn refuses(&self, kind: &str) -> Reply {
        let found = self.refusals.iter().find(|it| it.kind == kind);
        found.unwrap_or_else(|| panic!("{kind} of {}", self.name)).reply()
    }

    /// The address of a recorded request, of whatever kind of markets.
    pub fn place(&self, target: &str) -> &Place {
        let asked = Asked::of(target);
        let exact = self.places.iter().find(|it| it.fits(&asked).is_some());
        let found = exact.or_else(|| self.places.iter().find(|it| it.part(&asked).is_some()));
        found.unwrap_or_else(|| panic!("{} has no {target}", self.name))
    }

    /// Which of its limits a request counts against, and for how much.
    pub fn charge(&self, asked: &Asked) -> Charge {
        let Some(place) = self.places.iter().find(|it| it.fits(asked).is_some()) else {
            return self.limit.clone();
        };
        let named = place.markets.and_then(|name| asked.param(name));
        let step = match named.map(|ids| ids.split(',').count()) {
            Some(..=20) => 0,
            Some(..=100) => 1,
            _ => 2,
        };
        Charge { units: place.costs[step.min(place.costs.len() - 1)], ..place.charge.clone() }
    }

    /// Its answer.
    pub fn answer(&self, shop: &Shop, asked: &Asked) -> Reply {
        let fitting = |place| Some((place, Place::fits(place, asked)?));
        let Some((place, part)) = self.places.iter().find_map(fitting) else {
            return self.refuses("Other");
        };
        let named = |name: &str| match name {
            "" => Some(part.to_string()).filter(|part| !part.is_empty()),
            name => asked.param(name).map(|text| text.replace(['[', ']', '"'], "")),
        };
        let id = place.candles.as_ref().and_then(|it| named(it.market)).unwrap_or_default();
        let made = match (&place.candles, place.markets) {
            (Some(candles), _) => match shop.find(self, &id) {
                Some(market) => match self.rows(shop, market, asked, part, candles) {
                    Some((interval, rows)) => Some(self.candles(shop, interval, &rows, place.item)),
                    None => return self.refuses("Other"),
                },
                None => None,
            },
            (None, Some(name)) => {
                let made = self.items(shop, named(name), place.item);
                made.or_else(|| place.is_lenient.then(String::new))
            }
            (None, None) => Some(String::new()),
        };
        let Some(items) = made else {
            return self.refuses("UnknownMarket");
        };
        Reply::json(fill(place.body, |name| match name {
            "items" => items.clone(),
            "id" => id.clone(),
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

    /// A price or an amount as it writes them.
    fn digits(&self, units: u64) -> String {
        if self.is_padded { decimal(units) } else { plain(units) }
    }

    /// A value of a market.
    pub fn value(
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
            "id" | "candleId" => return self.id(base, quote),
            "base" => return base.to_string(),
            "quote" => return quote.to_string(),
            // As they stand in its names of markets.
            "ownBase" => return self.id(base, ""),
            "ownQuote" => return self.id("", quote),
            "status" => return self.open.to_string(),
            "places" => return places(market.tick).to_string(),
            "amountPlaces" => return places(STEP).to_string(),
            "taker" => return "0.002".to_string(),
            "maker" => return "0.001".to_string(),
            "takerPercent" | "feePercent" => return "0.26".to_string(),
            "makerPercent" => return "0.16".to_string(),
            "change" => return signed(change()),
            "ratio" => return signed(ratio() * 10_000),
            "percent" => return signed(ratio() * 1_000_000),
            "tick" | "minPrice" => market.tick,
            "maxPrice" => 1_000_000 * UNIT,
            "step" => STEP,
            "minAmount" => 10 * STEP,
            "maxAmount" => 9_000 * UNIT,
            "minCost" | "minCostUsdt" => 5 * UNIT,
            "maxCost" => 9_000_000 * UNIT,
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
        self.digits(figure)
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
        let (name, names) = &candles.interval;
        let sent = if name.is_empty() { part.to_string() } else { asked.param(name)? };
        let at = names.iter().position(|name| *name == sent)?;
        let interval = INTERVALS[at];
        let end = |bound: &Option<Bound>, default| match bound {
            Some(bound) => bound.of(asked, candles.unit, default),
            None => Some(default),
        };
        let (from, to) = (end(&candles.from, 0)?, end(&candles.to, shop.now)?);
        let is_wide = (to - from) / interval > candles.span;
        let is_old = (shop.now - from) / interval > candles.ago;
        let is_mixed = !candles.never.is_empty() && asked.param(candles.never).is_some();
        if is_wide || is_old || is_mixed {
            return None;
        }
        let from = from.max(shop.now - candles.reach[at] * DAY_MS);
        let Rows { is_first, name, most, default } = candles.rows;
        let count = asked.param(name).map_or(Some(default), |text| text.parse().ok())?;
        if !(1..=most).contains(&count) {
            return None;
        }
        let mut rows = match is_first {
            true => shop.rows(market, interval, from, to),
            false => shop.newest(market, interval, (from, to), count as usize),
        };
        rows.truncate(count as usize);
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
                "open" => self.digits(row.open),
                "high" => self.digits(row.high),
                "low" => self.digits(row.low),
                "close" => self.digits(row.close),
                "volume" => self.digits(row.volume),
                "turnover" => self.digits(row.turnover),
                name => shop.value(name),
            })
        };
        rows.iter().map(make).collect::<Vec<String>>().join(",")
    }
}

impl Refusal {
    pub fn reply(&self) -> Reply {
        Reply::status(self.status, self.body)
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
