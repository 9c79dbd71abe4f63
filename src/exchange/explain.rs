//! Explaining: which text of a body is which field, for a person who writes a dialect.
//!
//! Owns no rule of its own: it goes through a body as a reading does, and shows what that would see.

use super::call::Call;
use super::dialect::Dialect;
use super::items::{Caps, Items};
use super::json::{Cursor, Raw};
use super::path::{Form, Step, find};
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

/// The first item of a whole body that is wanted. `assets` are base and quote of its market, if known.
pub fn explain(
    dialect: &'static Dialect,
    call: &Call<'_>,
    body: &[u8],
    (caps, assets): (Caps, Option<[&str; 2]>),
    is_wanted: &mut dyn FnMut(&Explained) -> bool,
) -> Option<Explained> {
    let endpoint = dialect.endpoint(call);
    let form = dialect.item_form(call)?;
    let place = &endpoint.items;
    let own = assets.map(|both| both.map(|asset| dialect.file.markets.own(asset)));
    let mut found = None;
    let mut look = |name: Raw<'_>, item: &[u8]| {
        if found.is_none() {
            found = Some(explained(&form, name, item, own.clone())).filter(&mut *is_wanted);
        }
    };
    match (place.form, find(body, &place.path)) {
        (Form::Itself, Raw::Object(item) | Raw::Array(item)) => look(Raw::Absent, item),
        // Of a body that breaks off, the items before that are shown.
        _ => drop(Items::new(place, caps).feed(body, &mut |cursor| {
            let Some(cursor) = cursor else {
                return Ok(());
            };
            let name = place.name_of(cursor)?;
            let begin = cursor.position();
            cursor.value()?;
            if !endpoint.is_stamp(name) {
                look(name, cursor.since(begin));
            }
            Ok(())
        })),
    }
    found
}

/// Which step of the path to the items of a call leads nowhere in this body, in words.
pub fn missing(dialect: &Dialect, call: &Call<'_>, body: &[u8]) -> Option<String> {
    let place = &dialect.endpoint(call).items;
    let (mut text, mut at) = (String::new(), find(body, &[]));
    for (count, step) in place.path.iter().enumerate() {
        let next = find(body, &place.path[..=count]);
        if next == Raw::Absent {
            let within = if count == 0 { "the body".to_owned() } else { format!("`{text}`") };
            return Some(format!("there is no `{step}` in {within}, which is {}", kind_of(at)));
        }
        let dot = if count == 0 || matches!(step, Step::At(_)) { "" } else { "." };
        (text, at) = (format!("{text}{dot}{step}"), next);
    }
    let text = if text.is_empty() { "the body".to_owned() } else { format!("`{text}`") };
    Some(format!("{text} is {}", kind_of(at)))
}

fn kind_of(raw: Raw<'_>) -> &'static str {
    match raw {
        Raw::Object(_) => "an object",
        Raw::Array(_) => "an array",
        Raw::Text(_) | Raw::Escaped(_) => "a text",
        Raw::Number(_) => "a number",
        Raw::Absent => "no JSON",
        Raw::Null | Raw::Bool(_) | Raw::NotANumber => "a word",
    }
}

/// The item of this name, field by field.
fn explained(
    form: &ItemForm,
    name: Raw<'_>,
    item: &[u8],
    assets: Option<[Box<str>; 2]>,
) -> Explained {
    let mut fields = form.fields(name);
    // A number has no end of its own.
    let whole = [item, b" "].concat();
    // Of an item that is not as its table says, the fields before that are shown.
    let _ = Order::default().read(&mut Cursor::new(&whole), form.table, &mut fields);
    if let Some(assets) = assets.filter(|_| form.table.names_assets()) {
        form.read_by_assets(&whole, assets, &mut fields);
    }
    let mut places = Vec::new();
    let mut add = |place| {
        if !places.contains(&place) {
            places.push(place);
        }
    };
    if name != Raw::Absent {
        form.name.walk(&mut add);
    }
    form.table.walk(&mut add);
    form.constants.iter().for_each(|(place, _)| add(*place));
    let shown = |place: usize| (form.words[place].to_owned(), text_of(fields.at(place)));
    Explained {
        item: String::from_utf8_lossy(item).trim().chars().take(ITEM_CHARS).collect(),
        fields: places.into_iter().map(shown).collect(),
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
