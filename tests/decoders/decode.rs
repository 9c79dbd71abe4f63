//! A body through the decoder, in all kinds of pieces; and how its texts are compared.

use crate::support::naive::plain;
use crate::support::{Fixture, Json, Rng};
use marketd::decimal::Decimal;
use marketd::exchange::{Call, Caps, Dialect, ReadError, Reading, Reject, Sink};
use marketd::record::{Candle, MarketInfo, Ticker};
use marketd::time::UnixMs;

/// A sink that keeps everything.
#[derive(Debug, Default, PartialEq)]
pub struct Kept {
    pub tickers: Vec<(String, Ticker)>,
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

/// Most places at which one body is split in two.
const SPLITS: usize = 3000;

/// Decodes the body at once; then in slices of several sizes and split in two at every place
/// (of a long body: at seeded ones), which must give the same.
pub fn decode(dialect: &str, fixture: &Fixture, call: &Call<'_>) -> (Kept, Result<(), ReadError>) {
    let dialect = Dialect::by_name(dialect).expect("it is there");
    let caps = Caps { item_bytes: 64 * 1024, envelope_bytes: 16 * 1024 };
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut kept = Kept::default();
        let mut reading = Reading::new(dialect, call, caps);
        for piece in pieces {
            // What finish says, counts: it knows of every error before.
            let _ = reading.feed(piece, &mut kept);
        }
        (kept, reading.finish(200))
    };
    let (file, body) = (&fixture.file, fixture.body.as_bytes());
    let whole = run(&mut std::iter::once(body));
    for size in [1, 2, 3, 7, 100, 1000, 16 * 1024] {
        let other = run(&mut body.chunks(size));
        assert!(other == whole, "{file} by {size}");
    }
    // A split costs a whole reading: as many as a debug build does in about a second.
    let splits = SPLITS.min(60_000_000 / (body.len() + 1)).max(50);
    let mut rng = Rng::new(body.len() as u64);
    for index in 0..splits.min(body.len()) {
        let at = match body.len() <= splits {
            true => index,
            false => rng.below(body.len() as u64) as usize,
        };
        let (front, back) = body.split_at(at);
        let other = run(&mut [front, back].into_iter());
        assert!(other == whole, "{file} at {at}");
    }
    whole
}

/// The same, of a body that is good.
pub fn decode_good(dialect: &str, fixture: &Fixture, call: &Call<'_>) -> Kept {
    let (kept, end) = decode(dialect, fixture, call);
    assert_eq!(end, Ok(()), "{}", fixture.file);
    kept
}

/// The body as a tree.
pub fn sent(fixture: &Fixture) -> Json {
    Json::parse(&fixture.body).expect("a recorded body is JSON")
}

/// What CCXT made of the body, as a tree.
pub fn theirs(fixture: &Fixture) -> Json {
    let expected = fixture.expected.as_ref().expect("it is recorded");
    Json::parse(expected).expect("it is JSON")
}

/// The value at a path: the names of members, the numbers of elements, and `key=value` for the
/// element with that member, with slashes between them. Empty: the value itself.
pub fn at<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    let steps = path.split('/').filter(|step| !step.is_empty());
    steps.into_iter().try_fold(json, |json, step| match json {
        Json::Array(items) => match step.split_once('=') {
            Some((key, value)) => {
                let is = |item: &&Json| item.get(key).and_then(Json::text) == Some(value);
                items.iter().find(is)
            }
            None => items.get(step.parse::<usize>().ok()?),
        },
        other => other.get(step),
    })
}

/// The text there, be it a number or a text; `None` where there is none or an empty one.
pub fn text_at<'j>(json: &'j Json, path: &str) -> Option<&'j str> {
    at(json, path)?.text().filter(|text| !text.is_empty())
}

/// The names and places of a text like `last=lastPrice bid=bidPrice`.
pub fn pairs(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split_terminator(' ').map(|pair| pair.split_once('=').expect("a name and a place"))
}

/// Where the items of a body are.
#[derive(Clone, Copy, Debug)]
pub enum Items {
    /// The elements of the array at this path.
    Elements(&'static str),
    /// The members of the object at this path.
    Members(&'static str),
    /// The one value at this path.
    Itself(&'static str),
}

impl Items {
    /// Each item, with its name where it has one.
    pub fn of<'j>(&self, body: &'j Json) -> Vec<(Option<&'j str>, &'j Json)> {
        let found = |path| at(body, path).expect("the items are there");
        match self {
            Items::Elements(path) => found(path).items().iter().map(|item| (None, item)).collect(),
            Items::Members(path) => {
                let Json::Object(members) = found(path) else {
                    panic!("no object at {path}");
                };
                let member = |(name, item): &'j (String, Json)| (Some(name.as_str()), item);
                members.iter().map(member).collect()
            }
            Items::Itself(path) => vec![(None, found(path))],
        }
    }
}

/// The text of a number whose point is moved to the right (or to the left), in the same spirit.
pub fn shifted(text: &str, places: i32) -> String {
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

/// Digit for digit.
#[track_caller]
pub fn check_digits(ours: Option<&Decimal>, sent: Option<&str>, what: &str) {
    let ours = ours.map(ToString::to_string);
    assert_eq!(ours, sent.map(plain), "{what}");
}

/// Whether CCXT has the same. Its numbers went through binary floating point: equal is what is the
/// same there. It leaves out zeros in some places, where a zero is no figure.
pub fn is_near(ours: Option<&Decimal>, theirs: Option<&Json>) -> bool {
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let ours = ours.map(|ours| number(&ours.to_string()));
    let theirs = theirs.and_then(Json::text).map(number);
    ours.filter(|ours| *ours != 0.0) == theirs.filter(|theirs| *theirs != 0.0)
}

/// A figure of an exchange that CCXT gives another value, and why that is not ours.
pub struct Differs {
    /// The dialect.
    pub dialect: &'static str,
    /// CCXT's names of the figures.
    pub figures: &'static [&'static str],
    /// Why.
    pub why: &'static str,
}

/// Which of the known differences were met.
pub struct Differences {
    known: &'static [Differs],
    met: Vec<(&'static str, &'static str)>,
}

impl Differences {
    pub fn new(known: &'static [Differs]) -> Differences {
        let met = Vec::new();
        Differences { known, met }
    }

    /// The two are the same, or the list knows that they are not.
    #[track_caller]
    pub fn check(&mut self, dialect: &str, figure: &str, same: bool, what: &str) {
        if same {
            return;
        }
        let named =
            |differs: &&Differs| differs.dialect == dialect && differs.figures.contains(&figure);
        let known = self.known.iter().find(named);
        let known = known.unwrap_or_else(|| panic!("{what}: {figure} is not CCXT's"));
        let figure = known.figures.iter().find(|known| **known == figure);
        self.met.push((known.dialect, figure.expect("it was found so")));
    }

    /// Each known difference was there, and has its reason.
    #[track_caller]
    pub fn all_met(&self) {
        if self.met.is_empty() {
            return; // No recordings.
        }
        for differs in self.known {
            assert!(!differs.why.is_empty());
            for figure in differs.figures {
                assert!(
                    self.met.contains(&(differs.dialect, figure)),
                    "{} {figure}",
                    differs.dialect
                );
            }
        }
    }
}
