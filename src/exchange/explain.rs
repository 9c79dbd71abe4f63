//! Explaining: shows which text of a body is which field, for a person who writes a dialect.
//!
//! It has no rules of its own: a reading passes in what it has read.

use super::json::Raw;
use super::shape::{ItemFields, ItemForm};

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
