//! A reading: decodes the body of one response as it arrives.
//!
//! It connects the item reader with what a dialect says about tickers, candles, markets and times.
//! It owns the verdict at the end: cut short, refused, of the wrong shape, or good.
//!
//! It stores no items: each goes to a [`Sink`] at once, which stages it until [`Reading::finish`]
//! accepts the whole body. A wrong item is rejected, and the others are kept. A wrong body gives an
//! error, which every later call returns again.

use super::call::{Call, NextPage};
use super::dialect::Dialect;
use super::endpoint::EndpointSpec;
use super::error::{ItemFault, ReadError, RefusalKind, Reject};
use super::items::Items;
use super::json::{Cursor, Raw, Stop};
use super::path::{Form, find};
use super::prices::{Known, take_candle, take_ticker};
use super::shape::{ItemForm, Order};
use super::sink::{Explained, Sink};
use super::value::Unit;
use super::{listing, value};
use crate::time::UnixMs;

/// The decoder of one response's body.
pub struct Reading {
    /// The number of requests for a list of named markets; 1 for any other call.
    parts: u32,
    records: Records,
    items: Items,
    /// The front of the body: some exchanges send errors in the place of the items.
    front: Vec<u8>,
    /// The verdict, once the body is complete or wrong.
    end: Option<Result<(), ReadError>>,
}

/// How the items of a body become records.
struct Records {
    dialect: &'static Dialect,
    call: &'static EndpointSpec,
    task: Task,
    /// `None` if the body has no items.
    form: Option<ItemForm>,
    order: Order,
    /// The time of all tickers, if it is a member among them.
    stamp: Option<UnixMs>,
    /// The items of a list so far.
    count: u64,
    /// True if the sink gets an explanation of each item.
    explains: bool,
}

/// What the body should hold.
enum Task {
    Tickers(Known),
    Candles,
    Markets,
    /// The exchange has no list of its own: base and quote of each market of the source.
    Named(Vec<[Box<str>; 2]>),
    Time(Unit),
    /// The clock is the date of the response.
    Date {
        is_known: bool,
    },
}

/// Bytes of the front of a body that are searched for an error. An error comes first, and is short.
const FRONT_BYTES: usize = 1024;

/// The most bytes outside of the items of a body: codes, a time, perhaps the exchange's own limits. All
/// recorded bodies have less than 1 KiB.
const ENVELOPE_BYTES: usize = 16 * 1024;

/// The longest cursor. Escaped, it may be three times as long, and servers accept targets of 8 KiB.
const CURSOR_BYTES: usize = 1024;

impl Reading {
    /// A reading of the response to this call, whose items have at most so many bytes.
    pub fn new(dialect: &'static Dialect, call: &Call<'_>, item_bytes: usize) -> Reading {
        let file = &dialect.file;
        let form = dialect.item_form(call);
        let names_assets = form.as_ref().is_some_and(|form| form.table.names_assets());
        let tickers = |id: Option<&str>| {
            Task::Tickers(Known {
                by_asset: names_assets.then_some(&file.markets),
                unit: file.tickers.time.unwrap_or(Unit::Millis),
                stats: matches!(call, Call::Stats { .. }),
                id: id.map(Into::into),
            })
        };
        let task = match call {
            Call::Tickers | Call::Several { .. } => tickers(None),
            Call::Ticker { id } | Call::Stats { id } => tickers(Some(id)),
            Call::Candles { .. } => Task::Candles,
            Call::Markets { named } if !dialect.has_list() => {
                let pairs = named.iter().filter_map(|symbol| symbol.split_once('/'));
                Task::Named(pairs.map(|(base, quote)| [base.into(), quote.into()]).collect())
            }
            Call::Markets { .. } | Call::MarketsOf { .. } => Task::Markets,
            Call::Time => file.time.unit.map_or(Task::Date { is_known: false }, Task::Time),
        };
        let parts = match call {
            Call::MarketsOf { ids } => file.markets.parts(ids).len() as u32,
            _ => 1,
        };
        let call = dialect.endpoint(call);
        Reading {
            parts,
            records: Records {
                dialect,
                call,
                task,
                form,
                order: Order::default(),
                stamp: None,
                count: 0,
                explains: false,
            },
            items: Items::new(&call.items, item_bytes, ENVELOPE_BYTES),
            front: Vec::new(),
            end: None,
        }
    }

    /// From now on, tells the sink which text of an item is which field.
    pub fn explain(&mut self) {
        self.records.explains = true;
    }

    /// Takes the `Date` of the response, which is the clock of exchanges without another one. It
    /// has whole seconds, rounded down, so it may be up to a second too low.
    pub fn date(&mut self, date: UnixMs, sink: &mut dyn Sink) {
        if let Task::Date { is_known } = &mut self.records.task {
            *is_known = true;
            sink.time(date);
        }
    }

    /// Reads the next bytes of the body, in pieces of any size, empty ones too.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), ReadError> {
        if let Some(end @ Err(_)) = &self.end {
            return end.clone();
        }
        let room = FRONT_BYTES - self.front.len();
        self.front.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let records = &mut self.records;
        let fed = self.items.feed(bytes, &mut |item| match item {
            Some(item) => records.take_next(item, sink),
            None => {
                records.count += 1;
                sink.rejected(Reject::new(None, records.what(), ItemFault::TooLong));
                Ok(())
            }
        });
        let end = match fed {
            Ok(()) if self.end.is_some() || !self.items.is_whole() => return Ok(()),
            Ok(()) => self.read_envelope(sink),
            error => error,
        };
        self.end.insert(end).clone()
    }

    /// The page after this one, once the body is complete. `this` is the current page, or `None` for the
    /// first one. Returns `None` if this is the last page.
    pub fn next_page(&self, this: Option<&NextPage>) -> Result<Option<NextPage>, ReadError> {
        if self.end != Some(Ok(())) {
            return Ok(None);
        }
        let mut next = this.cloned().unwrap_or(NextPage { number: 1, ..NextPage::default() });
        next.number += 1;
        let Some(pages) = &self.records.call.pages else {
            return Ok((next.number <= self.parts).then_some(next));
        };
        next.offset += self.records.count;
        if let Some(path) = &pages.cursor {
            let cursor = cursor(find(&self.items.envelope, path))?;
            next.before.push(std::mem::replace(&mut next.cursor, cursor));
            if next.cursor.is_empty() {
                return Ok(None);
            }
            if next.before.contains(&next.cursor) {
                return Err(ReadError::WrongCursor);
            }
        } else if self.records.count < u64::from(pages.size.unwrap_or(1)) {
            return Ok(None);
        }
        match next.number > pages.most {
            true => Err(ReadError::TooManyPages { most: pages.most }),
            false => Ok(Some(next)),
        }
    }

    /// What the status of a response means, without its body.
    pub fn status_kind(&self, status: u16) -> RefusalKind {
        self.records.dialect.file.errors.statuses.kind(status)
    }

    /// Ends the body. Returns `Ok` if the records that the sink got may be used. It may be called
    /// after an error too. An error status takes precedence over an error in the body, and the
    /// exchange's own reason over both. Status and code together decide what the reason means,
    /// because perhaps only one of them says that there were too many requests.
    pub fn finish(self, status: u16) -> Result<(), ReadError> {
        let by_status = self.status_kind(status);
        match self.end.unwrap_or(Err(ReadError::CutShort)) {
            Err(ReadError::Refused { code, message, kind }) => Err(ReadError::Refused {
                kind: match (by_status, kind) {
                    (_, RefusalKind::RateLimited) => RefusalKind::RateLimited,
                    (RefusalKind::Other, by_code) => by_code,
                    (by_status, _) => by_status,
                },
                code,
                message,
            }),
            _ if !(200..300).contains(&status) => Err(ReadError::Status(status)),
            end => end,
        }
    }

    /// Reads the envelope, once the body's value is complete.
    fn read_envelope(&mut self, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let (records, envelope) = (&mut self.records, &self.items.envelope);
        let dialect = records.dialect;
        let errors = &dialect.file.errors;
        if let Some(refused) = errors.read(envelope, &self.front) {
            return Err(refused);
        }
        let item = find(envelope, &records.call.items.path);
        let fits = match (&records.task, item) {
            (Task::Date { is_known }, _) => return is_known.then_some(()).ok_or(ReadError::NoDate),
            (Task::Named(pairs), _) => {
                for [base, quote] in pairs {
                    sink.market(dialect.file.markets.unlisted(base, quote));
                }
                // The content of the response does not matter.
                true
            }
            (Task::Time(unit), word) => {
                let time = value::time(word, *unit).ok().flatten();
                time.into_iter().for_each(|time| sink.time(time));
                time.is_some()
            }
            _ if records.call.items.form != Form::Itself => self.items.found,
            (Task::Tickers(_) | Task::Markets, Raw::Object(bytes) | Raw::Array(bytes))
                if records.form.as_ref().is_some_and(|form| form.table.takes(item)) =>
            {
                let taken = records.take(&mut Cursor::new(bytes), Raw::Absent, sink);
                taken.expect("the envelope is whole and was walked through");
                true
            }
            _ => false,
        };
        if !fits {
            return Err(ReadError::WrongShape { expected: records.what() });
        }
        let stamp = || records.stamp_of(find(envelope, records.call.stamp.as_ref()?));
        if let Some(time) = records.stamp.or_else(stamp) {
            sink.stamp(time);
        }
        Ok(())
    }
}

/// The cursor of the next page in this value. Empty if there is no next page.
fn cursor(value: Raw<'_>) -> Result<Box<str>, ReadError> {
    let cursor = match value {
        Raw::Number(digits) => Some(String::from_utf8_lossy(digits)),
        Raw::Bool(false) => None,
        other => value::text(other).map_err(|_| ReadError::WrongCursor)?,
    };
    let cursor = cursor.unwrap_or_default();
    match cursor.len() > CURSOR_BYTES {
        true => Err(ReadError::WrongCursor),
        false => Ok(cursor.into()),
    }
}

impl Records {
    /// The time of all tickers in this value.
    fn stamp_of(&self, value: Raw<'_>) -> Option<UnixMs> {
        match &self.task {
            Task::Tickers(known) => value::time(value, known.unit).ok().flatten(),
            _ => None,
        }
    }

    /// The name of an item, for messages.
    fn what(&self) -> &'static str {
        match self.task {
            Task::Tickers(_) => "ticker",
            Task::Candles => "candle",
            Task::Markets | Task::Named(_) => "market",
            Task::Time(_) | Task::Date { .. } => "time",
        }
    }

    /// Reads the next item of a list, and passes it to the sink. A member that is the time of all
    /// tickers is not passed on.
    fn take_next(&mut self, item: &mut Cursor<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
        let name = self.call.items.name_of(item)?;
        if !self.call.is_stamp(name) {
            self.take(item, name, sink)?;
            self.count += 1;
            return Ok(());
        }
        self.stamp = self.stamp_of(item.value()?);
        Ok(())
    }

    /// Reads one item of this name by its table, and passes it to the sink. An item of the wrong
    /// type is rejected.
    fn take<'a>(
        &mut self,
        item: &mut Cursor<'a>,
        name: Raw<'a>,
        sink: &mut dyn Sink,
    ) -> Result<(), Stop> {
        let Some(form) = &self.form else {
            return item.value().map(|_| ());
        };
        let mut fields = form.fields(name);
        let begin = item.position();
        let is_passable = matches!(self.task, Task::Tickers(_)) && !self.explains;
        let mut asked = None;
        let mut wants = |id: Raw<'a>| {
            let id = if is_passable { value::name(id).ok() } else { None };
            asked = id.map(|id| (sink.wants(&id), id));
            asked.as_ref().is_none_or(|(is_wanted, _)| *is_wanted)
        };
        let other = self.order.read(item, form.table, &mut fields, &mut wants)?;
        let text = item.since(begin);
        match (other, &self.task) {
            (Some(other), task) => {
                let id = value::name(name).ok().filter(|_| !matches!(task, Task::Candles));
                sink.rejected(Reject {
                    shapes: Some([other.kind(), form.table.kind()]),
                    ..Reject::new(id.as_deref(), self.what(), ItemFault::WrongType)
                });
            }
            (_, Task::Tickers(known)) => {
                take_ticker(&mut fields, (text, form), known, asked, sink);
            }
            (_, Task::Candles) => take_candle(&fields, &self.dialect.file.candles, sink),
            (_, Task::Markets) => listing::take(&fields, &self.dialect.file.markets, sink),
            (_, Task::Time(_) | Task::Date { .. } | Task::Named(_)) => {}
        }
        if self.explains {
            sink.explained(Explained::new(form, name, text, &fields));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::tests::testing::{BINANCE, CANDLES, Notes, SAMPLE};
    use crate::rng::Rng;

    #[test]
    fn an_envelope_has_a_length_at_most() {
        let mut reading = Reading::new(&BINANCE, &Call::Time, 1000);
        let fed = reading.feed(
            format!("{{\"serverTime\":{}", "1".repeat(20_000)).as_bytes(),
            &mut Notes::default(),
        );
        assert_eq!(fed, Err(ReadError::EnvelopeTooLong { cap: 16_384 }));
        let words = reading.finish(200).map_err(|error| error.to_string());
        assert_eq!(words, Err("more than 16384 bytes outside of the items".to_string()));
    }

    #[test]
    fn the_numbers_of_an_unwanted_ticker_are_not_looked_at() {
        let check = |dialect, body: &str| {
            let mut notes = Notes { unwanted: Some("A"), ..Notes::default() };
            let mut reading = Reading::new(dialect, &Call::Tickers, 1000);
            assert_eq!(reading.feed(body.as_bytes(), &mut notes), Ok(()));
            assert_eq!(reading.finish(200), Ok(()));
            assert_eq!((notes.tickers.len(), notes.rejected.len()), (1, 0));
            assert_eq!(notes.tickers[0].0, "B");
        };
        let body = r#"[{"lastPrice":"nothing","symbol":"A"},{"symbol":"B","lastPrice":"2"}]"#;
        check(*BINANCE, body);
        let items = |[a, b]: [&str; 2]| format!(r#"{{"result":{{"list":{{{a},{b}}}}}}}"#);
        check(*SAMPLE, &items([r#""A":{"c":["nothing"]}"#, r#""B":{"c":["2"]}"#]));
        // The name of a member is no id, if the table has one.
        let text = include_str!("tests/sample.json").replacen(r#""at": "#, r#""s":"id","at":"#, 1);
        let own = Dialect::read("sample.json", &text).unwrap_or_else(|faults| panic!("{faults:?}"));
        let swapped = items([r#""B":{"s":"A","c":["nothing"]}"#, r#""A":{"s":"B","c":["2"]}"#]);
        check(Box::leak(Box::new(own)), &swapped);
    }

    #[test]
    fn an_unwanted_ticker_must_end_but_its_members_are_not_checked() {
        let check = |item: &str, is_sound: bool| {
            let body = format!(r#"[{item},{{"symbol":"B","lastPrice":"2"}}]"#);
            for at in 0..body.len() {
                let mut notes = Notes { unwanted: Some("A"), ..Notes::default() };
                let mut reading = Reading::new(&BINANCE, &Call::Tickers, 1000);
                let (front, back) = body.as_bytes().split_at(at);
                let _ = reading.feed(front, &mut notes);
                let _ = reading.feed(back, &mut notes);
                assert_eq!(reading.finish(200).is_ok(), is_sound, "{body} {at}");
                assert!(!is_sound || notes.tickers.len() == 1, "{body} {at}");
            }
        };
        check(r#"{"symbol":"A"}"#, true);
        check(r#"{"symbol":"A","x":1}"#, true);
        check(r#"{"symbol":"A","x":"}","y":"{"}"#, true);
        check(r#"{"symbol":"A","x":"{\"}","y":2}"#, true);
        check(r#"{"symbol":"A","x":{"y":[{}]}}"#, true);
        check(r#"{"symbol":"A","x":01.e,y}"#, true);
        check(r#"{"symbol":"A""#, false);
        check(r#"{"symbol":"A"]"#, false);
        check(r#"{"symbol":"A"}}"#, false);
        check(r#"{"symbol":"A"]}"#, false);
        check(r#"{"symbol":"A","x":"}"#, false);
        check(r#"{"symbol":"A","x":[}"#, false);
        check(r#"{"symbol":"A","x":[1}]}"#, false);
    }

    #[test]
    fn spoilt_bodies_never_panic_and_are_the_same_in_pieces() {
        let bodies = [
            (
                &BINANCE,
                Call::Tickers,
                r#"[{"symbol":"A","lastPrice":"1.5","bidPrice":"\u0031","askQty":null},{"symbol":"B","lastPrice":2e3,"closeTime":15}]"#,
            ),
            (
                &BINANCE,
                Call::Ticker { id: "A" },
                r#"{"symbol":"A","lastPrice":"1.5","bidPrice":7}"#,
            ),
            (
                &BINANCE,
                Call::Markets { named: &[] },
                r#"{"x":[1],"symbols":[{"symbol":"A","baseAsset":"B","quoteAsset":"C","filters":[{"filterType":"LOT_SIZE","minQty":"0"}]}]}"#,
            ),
            (&BINANCE, Call::Time, r#"{"serverTime":1499827319559}"#),
            (
                &SAMPLE,
                Call::Tickers,
                r#"{"result":{"time":"2024-03-13T11:10:41Z","list":{"A":{"c":["1"],"a":[2,3,4],"b":{"size":"5"},"ratio":"-0.1"}}}}"#,
            ),
            (
                &SAMPLE,
                CANDLES,
                r#"{"error":"0","result":{"X":[[7200,"1","4","2","3","9","5","1"],[1.5,1,4,2,3,9,5]]}}"#,
            ),
        ];
        let letters = br#"{}[]:,"\ 0-.eNu"#;
        let mut rng = Rng::new(5);
        let mut random = |below: usize| rng.below(below as u64) as usize;
        let mut good = 0;
        for round in 0..30_000 {
            let (dialect, call, body) = &bodies[round % bodies.len()];
            let mut body = body.as_bytes().to_vec();
            for _ in 0..1 + random(2) {
                let at = random(body.len());
                match random(4) {
                    0 => drop(body.remove(at)),
                    1 => body.insert(at, letters[random(letters.len())]),
                    2 => body[at] = letters[random(letters.len())],
                    _ => body[at] = random(256) as u8,
                }
            }
            let split = random(body.len());
            let run = |pieces: &[&[u8]]| {
                let unwanted = [None, Some("A"), Some("B")][round % 7 % 3];
                let mut notes = Notes { unwanted, ..Notes::default() };
                let mut reading = Reading::new(dialect, call, 1000);
                let fed = pieces.iter().try_for_each(|piece| reading.feed(piece, &mut notes));
                let end = reading.finish(200);
                assert!(fed.is_ok() || fed == end);
                (notes, end)
            };
            let whole = run(&[&body]);
            let split = run(&[&body[..split], &body[split..]]);
            let text = String::from_utf8_lossy(&body);
            assert_eq!(whole.1.is_ok(), split.1.is_ok(), "{text}");
            if whole.1.is_ok() {
                assert_eq!(whole, split, "{text}");
                good += 1;
            }
        }
        assert!(good > 5000, "{good}");
    }
}
