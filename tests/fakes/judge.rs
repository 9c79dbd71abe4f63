//! A body through the decoder, in all kinds of pieces, and each of its records against what the body says.
//!
//! Where a body says what, the description of the exchange tells, which is written without a look at its
//! dialect: so the two are judged by each other.

use crate::fakes::places::{Fake, Place};
use crate::support::naive::plain;
use crate::support::{FIGURES, Json, Rng};
use marketd::decimal::Decimal;
use marketd::exchange::{Call, Dialect, ReadError, Reading, Reject, Sink};
use marketd::record::{Candle, MarketInfo, Stats, Ticker};
use marketd::time::UnixMs;
use std::collections::BTreeMap;

/// A sink that keeps everything.
#[derive(Debug, Default, PartialEq)]
pub struct Kept {
    pub tickers: Vec<(String, Ticker)>,
    pub stats: Vec<(String, Stats)>,
    pub candles: Vec<(Candle, bool)>,
    pub markets: Vec<MarketInfo>,
    pub times: Vec<UnixMs>,
}

impl Sink for Kept {
    fn wants(&mut self, _: &str) -> bool {
        true
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn stats(&mut self, ticker_id: &str, stats: Stats) {
        self.stats.push((ticker_id.to_owned(), stats));
    }
    fn candle(&mut self, candle: Candle, is_forming: bool) {
        self.candles.push((candle, is_forming));
    }
    fn market(&mut self, info: MarketInfo) {
        self.markets.push(info);
    }
    fn stamp(&mut self, time: UnixMs) {
        for (_, ticker) in &mut self.tickers {
            ticker.timestamp = ticker.timestamp.or(Some(time));
        }
    }
    fn time(&mut self, time: UnixMs) {
        self.times.push(time);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        panic!("rejected: {reason}");
    }
}

/// Decodes a body at once; then in slices of several sizes and split in two at every place (of a long body: at
/// so many seeded ones that about this many bytes are read), which must give the same.
pub fn decode(
    fake: &Fake,
    call: &Call<'_>,
    (status, body): (u16, &str),
    bytes: usize,
) -> (Kept, Result<(), ReadError>) {
    let dialect = Dialect::by_name(fake.name).expect("it is there");
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut kept = Kept::default();
        let mut reading = Reading::new(dialect, call, 64 * 1024);
        for piece in pieces {
            // What finish says, counts: it knows of every error before.
            let _ = reading.feed(piece, &mut kept);
        }
        (kept, reading.finish(status))
    };
    let body = body.as_bytes();
    let whole = run(&mut std::iter::once(body));
    let same = |(kept, end): (Kept, Result<(), ReadError>), how: String| {
        let is_same = end == whole.1 && (kept == whole.0 || end.is_err());
        assert!(is_same, "{how}: {}", String::from_utf8_lossy(&body[..body.len().min(500)]));
    };
    for size in [1, 2, 3, 7, 100, 1000, 16 * 1024] {
        same(run(&mut body.chunks(size)), format!("by {size}"));
    }
    let splits = (bytes / (body.len() + 1)).clamp(5, 3000);
    let mut rng = Rng::new(body.len() as u64);
    for index in 0..splits.min(body.len()) {
        let at = match body.len() <= splits {
            true => index,
            false => rng.below(body.len() as u64) as usize,
        };
        let (front, back) = body.split_at(at);
        same(run(&mut [front, back].into_iter()), format!("at {at}"));
    }
    whole
}

/// What a body or one of its items says: texts by their names in the description.
#[derive(Clone, Debug, Default)]
pub struct Said(BTreeMap<String, String>);

impl Said {
    pub fn of(&self, name: &str) -> Option<&str> {
        self.0.get(&format!("${name}")).map(String::as_str)
    }

    /// Notes what stands in a value where the pattern has names.
    fn note(&mut self, pattern: &Json, value: &Json) {
        match pattern {
            Json::Text(name) if name.contains('$') => {
                let text =
                    value.text().map(str::to_owned).or(value.bool().map(|it| it.to_string()));
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    self.0.entry(name.clone()).or_insert(text);
                }
            }
            Json::Object(members) => {
                for (name, part) in members {
                    value.get(name).into_iter().for_each(|value| self.note(part, value));
                }
            }
            Json::Array(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    // Of objects of several kinds, the first member tells the kind.
                    let first =
                        part.keys().first().map(|key| (key.to_string(), part[*key].clone()));
                    let kind =
                        first.filter(|(_, word)| word.text().is_some_and(|it| !it.contains('$')));
                    let same = |it: &&Json| {
                        kind.as_ref().is_none_or(|(key, word)| it.get(key) == Some(word))
                    };
                    let mut found = value.items().iter().skip(if kind.is_none() { at } else { 0 });
                    found.find(same).into_iter().for_each(|value| self.note(part, value));
                }
            }
            _ => {}
        }
    }

    /// The id of a market.
    pub fn id(&self) -> Option<&str> {
        self.of("id").or_else(|| self.names().1)
    }

    /// Both assets' names, and the id of their market where that is the text of the two.
    fn names(&self) -> ([&str; 2], Option<&str>) {
        let own = |name, own| self.of(name).or(self.of(own));
        if let (Some(base), Some(quote)) = (own("base", "ownBase"), own("quote", "ownQuote")) {
            return ([base, quote], None);
        }
        let both = self.0.iter().find(|(name, _)| name.contains("ase") && name.contains("uote"));
        let (pattern, text) = both.expect("both assets");
        let [front, back] =
            ["/", "-"].iter().find_map(|it| text.split_once(it)).expect("a pair").into();
        let is_base_first = pattern.find("ase") < pattern.find("uote");
        (if is_base_first { [front, back] } else { [back, front] }, Some(text))
    }
}

/// A body of a description as JSON: each name is a text.
fn pattern(text: &str) -> Json {
    let text = text.replace("{$items}", r#"{"$items":0}"#);
    let mut parts = text.split('$');
    let mut quoted = parts.next().unwrap_or_default().to_string();
    let mut is_open = false;
    for part in parts {
        // Inside of quotes there are no others, but around a name without quotes there are.
        if !is_open && (quoted.is_empty() || quoted.ends_with([':', '[', ','])) {
            quoted.push('"');
            is_open = true;
        }
        quoted.push('$');
        match part.find([',', ']', '}']).filter(|_| is_open) {
            Some(end) => {
                quoted.push_str(&[&part[..end], "\"", &part[end..]].concat());
                is_open = false;
            }
            None => quoted.push_str(part),
        }
    }
    if is_open {
        quoted.push('"');
    }
    Json::parse(&quoted).unwrap_or_else(|fault| panic!("{fault}: {quoted}"))
}

/// The items of a body, with the names of those that are members.
fn items<'j>(pattern: &Json, body: &'j Json) -> Option<Vec<(Option<&'j str>, &'j Json)>> {
    let is_items = |it: &Json| matches!(it, Json::Text(name) if name == "$items");
    match (pattern, body) {
        _ if is_items(pattern) => Some(vec![(None, body)]),
        (Json::Array(parts), _) if parts.iter().any(is_items) => {
            Some(body.items().iter().map(|item| (None, item)).collect())
        }
        (Json::Object(parts), Json::Object(members)) => match &parts[..] {
            [(name, _)] if name == "$items" => {
                Some(members.iter().map(|(name, item)| (Some(name.as_str()), item)).collect())
            }
            // A name that is another one in each body.
            [(name, part), ..] if name.starts_with('$') => items(part, &members.first()?.1),
            parts => parts.iter().find_map(|(name, part)| items(part, body.get(name)?)),
        },
        _ => None,
    }
}

impl Place {
    /// What a body says as a whole, and each of its items. `also`: where else an older one says it.
    pub fn said(&self, body: &Json, also: &str) -> (Said, Vec<Said>) {
        let whole = pattern(self.body);
        // The first one of members.
        let item = match self.item {
            "" => Json::Null,
            item if item.starts_with('"') => match pattern(&format!("{{{item}}}")) {
                Json::Object(mut members) => members.swap_remove(0).1,
                other => other,
            },
            item => pattern(item),
        };
        let also = pattern(if also.is_empty() { "null" } else { also });
        let mut about = Said::default();
        about.note(&whole, body);
        let of_item = |(name, value): (Option<&str>, &Json)| {
            let mut said = Said::default();
            said.0.extend(name.map(|name| ("$id".to_string(), name.to_string())));
            said.note(&item, value);
            said.note(&also, value);
            said
        };
        let each = items(&whole, body).unwrap_or_default().into_iter().map(of_item);
        // Dark pools and contracts have the same assets as markets of the list.
        let is_spot = |it: &Said| {
            let is_other =
                |id: &str| id.ends_with(".d") || (id.ends_with("-PERP") && it.of("base").is_some());
            !it.of("id").is_some_and(is_other)
        };
        (about, each.filter(is_spot).collect())
    }

    /// Whether the items of the description have this figure of a quote.
    fn has(&self, figure: &str) -> bool {
        let ends = |part: &str| !part.starts_with(|letter: char| letter.is_ascii_alphabetic());
        let has = |name: &str| self.item.split(&format!("${name}")).skip(1).any(ends);
        has(figure) || (figure == "percentage" && (has("percent") || has("ratio")))
    }
}

/// A body, the request that it answers, and what is different about it.
#[derive(Clone, Copy)]
pub struct Received<'b> {
    pub target: &'b str,
    pub text: &'b str,
    /// Figures that it lacks.
    pub lacks: &'b str,
    /// Where else it says something.
    pub also: &'b str,
    /// How many bytes are to be decoded to try its pieces.
    pub bytes: usize,
}

/// The records of a body, each of which is what the body says; and assets that have another name there.
pub fn judge(fake: &Fake, call: &Call<'_>, body: Received<'_>) -> (Kept, Vec<[String; 2]>) {
    let what = &format!("{} {}", fake.name, body.target);
    let (kept, end) = decode(fake, call, (200, body.text), body.bytes);
    assert_eq!(end, Ok(()), "{what}");
    let place = fake.place(body.target);
    let json = Json::parse(body.text).expect("a body is JSON");
    let (about, said) = place.said(&json, body.also);
    let mut renamed = Vec::new();
    let counts = [kept.tickers.len(), kept.stats.len(), kept.candles.len(), kept.markets.len()];
    if !matches!(call, Call::Time) {
        assert_eq!(counts.iter().sum::<usize>(), said.len(), "{what}");
    }
    let asked = match call {
        Call::Ticker { id } | Call::Stats { id } => Some(*id),
        _ => None,
    };
    for (said, (id, ticker)) in said.iter().zip(&kept.tickers) {
        let what = &format!("{what} {id}");
        assert_eq!(Some(id.as_str()), said.of("id").or(said.of("base/$quote")).or(asked), "{what}");
        for name in FIGURES {
            let is_there = sent(said, name).is_some() || !place.has(name);
            assert!(is_there || body.lacks.split(' ').any(|it| it == name), "{what}: no {name}");
            assert_eq!(
                figure(ticker, name).map(ToString::to_string),
                sent(said, name),
                "{what} {name}"
            );
        }
        check_time(ticker.timestamp, said, &about, what);
    }
    for (said, (id, stats)) in said.iter().zip(&kept.stats) {
        assert_eq!(Some(id.as_str()), asked, "{what}");
        let Stats { open, high, low, base_volume, quote_volume } = stats;
        let all = [("open", open), ("high", high), ("low", low), ("baseVolume", base_volume)];
        for (name, ours) in all.into_iter().chain([("quoteVolume", quote_volume)]) {
            assert_eq!(ours.as_ref().map(ToString::to_string), sent(said, name), "{what} {name}");
        }
    }
    for (said, (candle, is_forming)) in said.iter().zip(&kept.candles) {
        check_candle(candle, said, what);
        let is_closed = said.of("isClosed").or(said.of("closedFlag"));
        assert_eq!(*is_forming, is_closed.is_some_and(|it| !["true", "1"].contains(&it)), "{what}");
    }
    let times = || kept.candles.iter().map(|(candle, _)| candle.open_time);
    let is_newest_first = place.candles.as_ref().is_some_and(|it| it.newest_first);
    assert!(
        if is_newest_first { times().rev().is_sorted() } else { times().is_sorted() },
        "{what}"
    );
    for (said, market) in said.iter().zip(&kept.markets) {
        renamed.extend(check_market(fake, market, said));
    }
    if let Call::Time = call {
        let [time] = kept.times[..] else { panic!("{what}: {:?}", kept.times) };
        let first = said.first().cloned().unwrap_or_default();
        match about.of("seconds.$millis").and_then(|it| it.split_once('.')) {
            Some((seconds, ms)) => {
                assert_eq!(format!("{seconds}{ms}"), time.0.to_string(), "{what}")
            }
            None => check_time(Some(time), &first, &about, what),
        }
    }
    (kept, renamed)
}

/// What an item says of a figure of a quote.
pub fn sent(said: &Said, name: &str) -> Option<String> {
    match name {
        "percentage" => said.of("percent").map(plain).or(said.of("ratio").map(|it| shifted(it, 2))),
        name => said.of(name).map(plain),
    }
}

/// A figure of a ticker, by its name in a quote.
pub fn figure<'t>(ticker: &'t Ticker, name: &str) -> Option<&'t Decimal> {
    let mut others = Ticker::FIGURES.into_iter().zip(ticker.figures());
    match name {
        "last" => Some(&ticker.last),
        name => others.find(|other| other.0 == name).expect("a figure").1.as_ref(),
    }
}

/// A time is that of the item, or else of the body.
fn check_time(ours: Option<UnixMs>, said: &Said, about: &Said, what: &str) {
    let own = |name| said.of(name).or(about.of(name));
    let ms = ours.map(|time| time.0.to_string());
    if let Some(now) = own("now") {
        assert_eq!(ms.as_deref(), Some(said.of("now").unwrap_or(now)), "{what}");
    } else if let Some(iso) = own("iso") {
        let ours = ours.expect("there is one").to_string();
        assert!(iso.starts_with(ours.trim_end_matches('Z')), "{what}: {ours} {iso}");
    } else {
        assert_eq!(
            ours.map(|time| (time.0 / 1000).to_string()).as_deref(),
            own("seconds"),
            "{what}"
        );
    }
}

/// The open time that an item says, in milliseconds.
pub fn open_time(said: &Said) -> i64 {
    let number = |text: &str| text.parse::<i64>().expect("a whole number");
    let iso = |text: &str| marketd::time::iso_8601(text.as_bytes()).expect("a date");
    let times = [said.of("time").map(number), said.of("timeSeconds").map(|it| number(it) * 1000)];
    times.into_iter().flatten().next().unwrap_or_else(|| iso(said.of("timeIso").expect("a time")))
}

pub fn candle_figures(candle: &Candle) -> [(&'static str, &Decimal); 5] {
    let Candle { open, high, low, close, volume, .. } = candle;
    [("open", open), ("high", high), ("low", low), ("close", close), ("volume", volume)]
}

fn check_candle(candle: &Candle, said: &Said, what: &str) {
    assert_eq!(candle.open_time.0, open_time(said), "{what}");
    for (name, ours) in candle_figures(candle) {
        assert_eq!(Some(ours.to_string()), sent(said, name), "{what}: {name}");
    }
}

/// Decimal places: of a step, from its text, or as they are said.
pub fn decimals(said: &Said, step: &str, places: &str) -> Option<u8> {
    let step = said.of(step).filter(|step| step.bytes().any(|byte| matches!(byte, b'1'..=b'9')));
    let behind = step.map(|step| step.split_once('.').map_or("", |(_, behind)| behind));
    let of_step = behind.map(|behind| behind.trim_end_matches('0').len() as u8);
    of_step.or(said.of(places).map(|text| text.parse().expect("a small number")))
}

pub const LIMITS: [&str; 6] =
    ["minPrice", "maxPrice", "minAmount", "maxAmount", "minCost", "maxCost"];

/// What an item says of a limit. A limit of zero is none.
pub fn limit(said: &Said, name: &str) -> Option<String> {
    let usdt =
        || said.of("minCostUsdt").filter(|_| name == "minCost" && said.names().0[1] == "USDT");
    said.of(name).or_else(usdt).map(plain).filter(|text| text != "0")
}

/// A listing against its item; gives the assets' names that are not as they were sent.
fn check_market(fake: &Fake, market: &MarketInfo, said: &Said) -> Vec<[String; 2]> {
    let what = &format!("{} {}", fake.name, market.ticker_id);
    let (names, _) = said.names();
    assert_eq!(Some(&*market.ticker_id), said.id(), "{what}");
    // Bitstamp asks for candles by another name than it gives tickers.
    assert_eq!(market.candle_id.as_deref(), said.of("candleId"), "{what}");
    assert_eq!(market.active, said.of("status").is_none_or(|it| it == fake.open), "{what}");
    let rules = &market.rules;
    assert_eq!(rules.price_places, decimals(said, "tick", "places"), "{what}");
    assert_eq!(rules.amount_places, decimals(said, "step", "amountPlaces"), "{what}");
    let bounds = [&rules.price, &rules.amount, &rules.cost];
    let ours = bounds.into_iter().flat_map(|it| [&it.min, &it.max]);
    for (name, ours) in LIMITS.into_iter().zip(ours) {
        assert_eq!(ours.as_ref().map(ToString::to_string), limit(said, name), "{what} {name}");
    }
    let percent = |name| said.of(name).or(said.of("feePercent")).map(|it| shifted(it, -2));
    for (ours, name, percent) in [
        (&rules.taker, "taker", percent("takerPercent")),
        (&rules.maker, "maker", percent("makerPercent")),
    ] {
        let sent = said.of(name).map(plain).or(percent);
        assert_eq!(ours.as_ref().map(ToString::to_string), sent, "{what} {name}");
    }
    let pairs = names.into_iter().zip([&market.base, &market.quote]);
    let other = pairs.filter(|(sent, ours)| *sent != &***ours);
    other.map(|(sent, ours)| [sent.to_string(), ours.to_string()]).collect()
}

/// The text of a number whose point is moved to the right (or to the left), in the same spirit.
fn shifted(text: &str, places: i32) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let room = "0".repeat(places.unsigned_abs() as usize);
    let digits = format!("{room}{whole}{behind}{room}");
    let point = (room.len() + whole.len()) as i32 + places;
    let (whole, behind) = digits.split_at(point as usize);
    plain(&format!("{sign}{whole}.{behind}"))
}
