//! Shapes: finds the fields of an item by the table of a dialect's file.
//!
//! Owns the walk through one item along such a table. It remembers the names of the last item in
//! their order: exchanges write all items alike, so most names are known before they are read.
//!
//! It converts no values: [`ItemFields`] has [`Raw`] ones.

use super::fields::{ASSETS, Constants, Entries, MemberTable, TableOf};
use super::json::{Cursor, Raw, Stop};
use super::path::find;
use crate::config::members::Named;

/// The most fields of a kind of item.
pub(super) const FIELDS: usize = 21;

/// The values of an item, by field.
pub(super) struct ItemFields<'a> {
    values: [Raw<'a>; FIELDS],
    /// Base and quote of the item's market as the exchange writes them, once they are known.
    assets: Option<[Box<str>; 2]>,
}

impl<'a> ItemFields<'a> {
    pub(super) fn new() -> ItemFields<'a> {
        ItemFields { values: [Raw::Absent; FIELDS], assets: None }
    }

    pub(super) fn get(&self, field: impl Named) -> Raw<'a> {
        self.at(field.place())
    }

    /// The field of this place.
    pub(super) fn at(&self, place: usize) -> Raw<'a> {
        self.values[place]
    }

    /// Sets the field of this place. A `null` does not replace the value of another member.
    fn put(&mut self, place: usize, value: Raw<'a>) {
        if value != Raw::Null || self.values[place] == Raw::Absent {
            self.values[place] = value;
        }
    }
}

/// How the items of a call are written.
pub(super) struct ItemForm {
    /// Which member of an item is which field.
    pub(super) table: &'static MemberTable,
    /// The fields that the name of an item sets, if it has one: those that no member is.
    pub(super) name: Vec<usize>,
    /// The values of fields that the table does not set.
    pub(super) constants: Vec<(usize, &'static str)>,
    /// The words of the fields, by place.
    pub(super) words: &'static [&'static str],
}

impl ItemForm {
    pub(super) fn new<F: Named>(
        table: &'static TableOf<F>,
        name: &MemberTable,
        constants: &'static Constants<F>,
    ) -> ItemForm {
        let is_alone = |place: &usize| !table.has(F::ALL[*place]);
        let name = name.own().iter().copied().filter(is_alone).collect();
        let constants = constants.iter().map(|(field, text)| (field.place(), &**text)).collect();
        ItemForm { table: &table.0, name, constants, words: F::NAMES }
    }

    /// The fields of an item of this name before it is read: its constants and its name.
    pub(super) fn fields<'a>(&self, name: Raw<'a>) -> ItemFields<'a> {
        let mut fields = ItemFields::new();
        for (place, text) in &self.constants {
            fields.put(*place, Raw::Text(text.as_bytes()));
        }
        self.name.iter().for_each(|place| fields.put(*place, name));
        fields
    }

    /// Reads an item again, now that the assets of its market are known: base and quote.
    pub(super) fn read_by_assets<'a>(
        &self,
        item: &'a [u8],
        assets: [Box<str>; 2],
        fields: &mut ItemFields<'a>,
    ) {
        fields.assets = Some(assets);
        // The first reading has reported any error.
        let _ = read(&mut Cursor::new(item), Some(self.table), fields);
    }
}

/// The names of the last item's members, in their order.
#[derive(Default)]
pub(super) struct Order {
    names: Vec<Known>,
}

struct Known {
    /// The name as it was sent, with the comma before it, quotes and colon.
    sent: Vec<u8>,
    table: Option<&'static MemberTable>,
}

/// The most names that are remembered, and the longest. Other names are looked up each time.
const KNOWN_NAMES: usize = 64;
const KNOWN_NAME_BYTES: usize = 48;

impl Order {
    /// Reads one item by its table. Returns the item if it has the wrong type. Once the first field is known,
    /// `wants` tells if the item is needed. If not, the remaining members are skipped unread.
    pub(super) fn read<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        table: &'static MemberTable,
        fields: &mut ItemFields<'a>,
        wants: &mut dyn FnMut(Raw<'a>) -> bool,
    ) -> Result<Option<Raw<'a>>, Stop> {
        match (table, cursor.peek()?) {
            (MemberTable::In(members), b'{') => {
                cursor.skip();
                if !matches!(fields.at(0), Raw::Absent | Raw::Null) && !wants(fields.at(0)) {
                    return cursor.rest_of_object(true).map(|()| None);
                }
                let mut index = 0;
                while let Some(table) = self.next(index, cursor, members)? {
                    match table {
                        None => drop(cursor.value()?),
                        Some(MemberTable::Is(field)) => {
                            let value = cursor.value()?;
                            fields.put(*field, value);
                            if *field == 0 && !wants(value) {
                                return cursor.rest_of_object(false).map(|()| None);
                            }
                        }
                        table => read(cursor, table, fields)?,
                    }
                    index += 1;
                }
            }
            (MemberTable::At(_), b'[')
            | (MemberTable::Is(_) | MemberTable::Each(_), b'"' | b'-' | b'0'..=b'9') => {
                read(cursor, Some(table), fields)?;
            }
            _ => return cursor.value().map(Some),
        }
        Ok(None)
    }

    /// Passes the name of the next member, and returns its entry in the table. Returns `None` after the last
    /// member.
    #[inline(always)]
    fn next(
        &mut self,
        index: usize,
        cursor: &mut Cursor<'_>,
        members: &'static Entries,
    ) -> Result<Option<Option<&'static MemberTable>>, Stop> {
        match self.names.get(index) {
            Some(known) if cursor.pass_text(&known.sent) => Ok(Some(known.table)),
            _ => self.learn(index, cursor, members),
        }
    }

    /// Like `next`, for a name that was not in this place of the last item.
    #[inline(never)]
    fn learn(
        &mut self,
        index: usize,
        cursor: &mut Cursor<'_>,
        members: &'static Entries,
    ) -> Result<Option<Option<&'static MemberTable>>, Stop> {
        let begin = cursor.position();
        if !cursor.next(&mut (index == 0), b'}')? {
            return Ok(None);
        }
        let name = cursor.name()?;
        let table = table_of(name, members, None);
        let sent = cursor.since(begin);
        if sent.len() <= KNOWN_NAME_BYTES && index <= self.names.len() && index < KNOWN_NAMES {
            if index == self.names.len() {
                self.names.push(Known { sent: Vec::new(), table });
            }
            let known = &mut self.names[index];
            known.sent.clear();
            known.sent.extend_from_slice(sent);
            known.table = table;
        }
        Ok(Some(table))
    }
}

/// The entry of a name. The name of an asset may differ in case from the market list.
fn table_of(
    name: Raw<'_>,
    members: &'static Entries,
    assets: Option<&[Box<str>; 2]>,
) -> Option<&'static MemberTable> {
    let Raw::Text(name) = name else {
        return None;
    };
    let entry = |name: &[u8]| members.iter().find(|(known, _)| known.as_bytes() == name);
    let by_asset = || {
        let mut both = assets?.iter();
        let at = both.position(|asset| asset.as_bytes().eq_ignore_ascii_case(name))?;
        entry(ASSETS[at].as_bytes())
    };
    entry(name).or_else(by_asset).map(|(_, table)| table)
}

/// Passes a value, and sets the fields that its table finds in it.
fn read<'a>(
    cursor: &mut Cursor<'a>,
    table: Option<&'static MemberTable>,
    fields: &mut ItemFields<'a>,
) -> Result<(), Stop> {
    let mut first = true;
    match (table, cursor.peek()?) {
        (None, _) => drop(cursor.value()?),
        (Some(MemberTable::Is(field)), _) => fields.put(*field, cursor.value()?),
        (Some(MemberTable::In(members)), b'{') => {
            cursor.skip();
            while cursor.next(&mut first, b'}')? {
                let table = table_of(cursor.name()?, members, fields.assets.as_ref());
                read(cursor, table, fields)?;
            }
        }
        (Some(MemberTable::At(tables)), b'[') => {
            cursor.skip();
            let mut tables = tables.iter();
            while cursor.next(&mut first, b']')? {
                let table = tables.next().and_then(Option::as_ref);
                read(cursor, table, fields)?;
            }
        }
        (Some(MemberTable::Tagged { tag, kinds }), b'[') => {
            cursor.skip();
            while cursor.next(&mut first, b']')? {
                if let Raw::Object(object) = cursor.value()? {
                    let table = table_of(find(object, tag), kinds, fields.assets.as_ref());
                    read(&mut Cursor::new(object), table, fields)?;
                }
            }
        }
        (Some(table), _) => {
            // A field is unknown only if the exchange does not send it. If the value around it has the wrong
            // type, the field is wrong: an array is no valid value of any field.
            let value = match (table, cursor.value()?) {
                (MemberTable::Each(_), value) => value,
                (_, Raw::Null) => Raw::Null,
                _ => Raw::Array(b"[]"),
            };
            table.walk(&mut |field| fields.put(field, value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::config::members::names;
    use crate::config::values::KeyType as _;
    use crate::config::{Node, Report};
    use crate::exchange::fields::TableOf;
    use std::sync::LazyLock;

    names! {
        /// Two fields.
        enum Letter {
            A "a"
            B "b"
        }
    }

    static LETTERS: LazyLock<TableOf<Letter>> = LazyLock::new(|| {
        let node = Node::whole("", r#"{ "a": "a", "b": "b" }"#).expect("it is JSON");
        TableOf::read(&(), &node, &mut Report::default()).expect("it is a table")
    });

    /// Reads items one after another by one order: what each has as `a` and `b`.
    fn check(items: &[&str], expected: &[(&[u8], &[u8])]) {
        let mut order = Order::default();
        for (item, (a, b)) in items.iter().zip(expected) {
            let mut fields = ItemFields::new();
            let mut cursor = Cursor::new(item.as_bytes());
            let read = order.read(&mut cursor, &LETTERS.0, &mut fields, &mut |_| true);
            assert_eq!(read, Ok(None), "{item}");
            let digits = |field| match fields.get(field) {
                Raw::Number(digits) => digits,
                _ => b"",
            };
            assert_eq!((digits(Letter::A), digits(Letter::B)), (*a, *b), "{item}");
        }
    }

    #[test]
    fn members_are_known_in_any_order_and_number() {
        check(
            &[
                r#"{"a":1,"x":2,"b":3}"#,
                r#"{"b":4,"a":5}"#,
                r#"{}"#,
                r#"{ "a" : 6 , "aa":7,"b":null}"#,
                r#"{"b":null,"b":8,"b":null,"\u0061":9}"#,
                r#"{"a":1,"x":2,"b":3}"#,
                r#"{"":1,"a":2}"#,
            ],
            &[
                (b"1", b"3"),
                (b"5", b"4"),
                (b"", b""),
                (b"6", b""),
                (b"", b"8"),
                (b"1", b"3"),
                (b"2", b""),
            ],
        );
    }

    #[test]
    fn more_names_and_longer_ones_than_are_remembered_are_found_as_well() {
        let long = "n".repeat(KNOWN_NAME_BYTES + 1);
        let mut item = format!("{{\"{long}\":0");
        for index in 0..2 * KNOWN_NAMES {
            item += &format!(",\"n{index}\":0");
        }
        item += ",\"a\":1,\"b\":2}";
        check(&[&item, r#"{"b":4,"a":3}"#, &item], &[(b"1", b"2"), (b"3", b"4"), (b"1", b"2")]);
        let mut order = Order::default();
        let mut cursor = Cursor::new(item.as_bytes());
        let read = order.read(&mut cursor, &LETTERS.0, &mut ItemFields::new(), &mut |_| true);
        assert_eq!(read, Ok(None));
        assert!(order.names.len() <= KNOWN_NAMES);
    }
}
