//! Explaining: which text of a body is which field, for a person who writes a dialect.
//!
//! Owns no rule of its own: it goes through a body as a reading does, and shows what that would see.

use super::call::Call;
use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::items::{Caps, Items, Take};
use super::json::{Cursor, Raw, Stop};
use super::path::{Form, find};
use super::shape::{ItemForm, Order};

/// The most of an item that is shown.
const ITEM_CHARS: usize = 600;

/// An item as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its text, cut at its end if it is long.
    pub item: String,
    /// Each field of the dialect's table, and the text that was sent for it; empty: none.
    pub fields: Vec<(String, String)>,
}

impl Explained {
    /// The text that was sent for a field.
    pub fn sent(&self, field: &str) -> &str {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map_or("", |(_, text)| text)
    }
}

/// The first item of a whole body that is wanted.
pub fn explain(
    dialect: &'static Dialect,
    call: &Call<'_>,
    body: &[u8],
    caps: Caps,
    is_wanted: &mut dyn FnMut(&Explained) -> bool,
) -> Option<Explained> {
    let endpoint = dialect.endpoint(call);
    let form = dialect.item_form(call);
    let mut tracer = Tracer { endpoint, form, is_wanted, found: None };
    let place = &endpoint.items;
    match (place.form, find(body, &place.path)) {
        (Form::Itself, Raw::Object(item) | Raw::Array(item)) => tracer.look(Raw::Absent, item),
        // A body that breaks off has told its first items.
        _ => drop(Items::new(place, caps).feed(body, &mut tracer)),
    }
    tracer.found
}

struct Tracer<'t> {
    endpoint: &'static Endpoint,
    form: Option<ItemForm>,
    is_wanted: &'t mut dyn FnMut(&Explained) -> bool,
    found: Option<Explained>,
}

impl Take for Tracer<'_> {
    fn begin(&mut self, _: &[u8]) {}

    fn take(&mut self, item: &mut Cursor<'_>) -> Result<(), Stop> {
        let name = self.endpoint.items.name_of(item)?;
        let begin = item.position();
        item.value()?;
        if !self.endpoint.is_stamp(name) {
            self.look(name, item.since(begin));
        }
        Ok(())
    }
}

impl Tracer<'_> {
    fn look(&mut self, name: Raw<'_>, item: &[u8]) {
        if self.found.is_some() {
            return;
        }
        // A number has no end of its own.
        let whole = [item, b" "].concat();
        let form = self.form.as_ref();
        let fields = form.map(|form| fields_of(form, name, &whole)).unwrap_or_default();
        let text = String::from_utf8_lossy(item);
        let item = text.trim().chars().take(ITEM_CHARS).collect();
        let explained = Explained { item, fields };
        if (self.is_wanted)(&explained) {
            self.found = Some(explained);
        }
    }
}

/// The fields of an item of this name.
fn fields_of(form: &ItemForm, name: Raw<'_>, item: &[u8]) -> Vec<(String, String)> {
    let mut fields = form.fields(name);
    // Of an item that is not as its table says, the fields before that are shown.
    let _ = Order::new().read(&mut Cursor::new(item), form.table, &mut fields);
    let mut places = Vec::new();
    if name != Raw::Absent {
        places.extend_from_slice(&form.named);
    }
    form.table.walk(&mut |place| {
        if !places.contains(&place) {
            places.push(place);
        }
    });
    let shown = |place: usize| (form.words[place].to_owned(), text_of(fields.at(place)));
    places.into_iter().map(shown).collect()
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
