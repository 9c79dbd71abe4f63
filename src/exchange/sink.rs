//! The sink: receives the records of a response as they are read, and, for a person who writes a dialect,
//! which text of a body is which field ([`Explained`]).

use super::error::Reject;
use super::json::Raw;
use super::shape::{ItemFields, ItemForm};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;

/// The receiver of the records of a response. They must not be used before
/// [`Reading::finish`](super::Reading::finish) returns `Ok`.
pub trait Sink {
    /// Returns true if this ticker is wanted. The numbers of an unwanted ticker are not read. It may be
    /// called again for a ticker that comes in pieces.
    fn wants(&mut self, ticker_id: &str) -> bool;
    /// Notes that a ticker has come, wanted or not.
    fn seen(&mut self) {}
    /// Base and quote of the ticker's market by their common names, if known.
    fn assets(&self, _ticker_id: &str) -> Option<[&str; 2]> {
        None
    }
    /// Takes a wanted ticker.
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker);
    /// Takes wanted figures of 24 hours. They come only for [`Call::Stats`](super::Call::Stats).
    fn stats(&mut self, _ticker_id: &str, _stats: Stats) {}
    /// Takes a candle. `is_forming` is true if the exchange says that it is not closed yet.
    fn candle(&mut self, candle: Candle, is_forming: bool);
    /// Takes a market of the list.
    fn market(&mut self, info: MarketInfo);
    /// Takes the time of all tickers of the response that have no time of their own. It comes after
    /// the tickers.
    fn stamp(&mut self, _time: UnixMs) {}
    /// Takes the time by the exchange's clock.
    fn time(&mut self, time: UnixMs);
    /// Takes the explanation of an item, wrong or not, if the reading
    /// [explains](super::Reading::explain).
    fn explained(&mut self, _item: Explained) {}
    /// Takes the reason why an item was rejected. The other items are not affected.
    fn rejected(&mut self, reason: Reject<'_>);
}

/// The most characters of an item that are shown.
const ITEM_CHARS: usize = 600;

/// An item as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Explained {
    /// The text of the item, cut at its end if it is long.
    pub item: String,
    /// Each field of the dialect's table, and the text that was sent for it. The text is empty if
    /// none was sent.
    pub fields: Vec<(String, String)>,
}

impl Explained {
    /// An item of this name and text, of which these fields were read.
    pub(super) fn new(
        form: &ItemForm,
        name: Raw<'_>,
        item: &[u8],
        fields: &ItemFields<'_>,
    ) -> Explained {
        let mut places = Vec::new();
        let mut add = |place| {
            if !places.contains(&place) {
                places.push(place);
            }
        };
        if name != Raw::Absent {
            form.name.iter().copied().for_each(&mut add);
        }
        form.table.walk(&mut add);
        form.constants.iter().for_each(|(place, _)| add(*place));
        let shown = |place: usize| (form.words[place].to_owned(), text_of(fields.at(place)));
        Explained {
            item: String::from_utf8_lossy(item).trim().chars().take(ITEM_CHARS).collect(),
            fields: places.into_iter().map(shown).collect(),
        }
    }

    /// The text that was sent for a field.
    pub fn sent(&self, field: &str) -> &str {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map_or("", |(_, text)| text)
    }
}

fn text_of(raw: Raw<'_>) -> String {
    match raw {
        Raw::Absent => String::new(),
        Raw::Null => "null".into(),
        Raw::NotANumber => "NaN".into(),
        Raw::Bool(word) => word.to_string(),
        Raw::Number(text)
        | Raw::Text(text)
        | Raw::Escaped(text)
        | Raw::Object(text)
        | Raw::Array(text) => String::from_utf8_lossy(text).into_owned(),
    }
}
