//! Shapes: which member of an item is which field, as the table of a dialect's file says.
//!
//! Owns the walk through one item along such a table, and the names of the last item in their
//! order: exchanges write all items alike, so most names are known before they are read. It also
//! owns how a table is written in JSON.
//!
//! It converts no values: it passes on [`Raw`] ones in [`ItemFields`].

use super::json::{Cursor, Raw, Stop};
use super::path::{Step, find};
use crate::config::members::Named;
use crate::config::values::{KeyType, KeyValue as _, Wrong};
use crate::config::{Node, Report};
use std::marker::PhantomData;
use std::ops::Deref;

/// The most entries of one table, and the deepest nesting of tables. Exchanges stay below half.
const ENTRIES: usize = 100;
const DEPTH: usize = 8;

const TABLE: &str = "the name of a field, or a table of members or positions";

/// The member of a table that says by which member objects of several kinds are told apart.
const BY: &str = "$by";

/// Where a value goes. A field is its place in [`ItemFields`].
pub(super) enum MemberTable {
    /// It is this field: `"last"`.
    Is(usize),
    /// It is each of these fields: `"taker maker"`.
    Each(Vec<usize>),
    /// An object with such members: `{ "price": "last" }`.
    In(Entries),
    /// An array with such elements, by position: `["time", null, "close"]`.
    At(Vec<Option<MemberTable>>),
    /// An array of objects of several kinds: `{ "$by": "type", "LOT": { "min": "amountMin" } }`.
    Tagged {
        /// The path to the member that tells the kind.
        tag: [Step; 1],
        /// What the members of each kind are.
        kinds: Entries,
    },
}

/// Members by name, ideally in the order in which they are sent.
type Entries = Vec<(Box<str>, MemberTable)>;

/// A table of fields of this kind.
pub(super) struct TableOf<F>(MemberTable, PhantomData<F>);

impl<F> Deref for TableOf<F> {
    type Target = MemberTable;

    fn deref(&self) -> &MemberTable {
        &self.0
    }
}

impl<F> Default for TableOf<F> {
    fn default() -> TableOf<F> {
        TableOf(MemberTable::Each(Vec::new()), PhantomData)
    }
}

impl<F: Named> KeyType for TableOf<F> {
    type Rule = ();

    fn expected((): &()) -> String {
        TABLE.to_owned()
    }

    fn read((): &(), node: &Node<'_>, report: &mut Report) -> Result<TableOf<F>, Wrong> {
        Ok(TableOf(MemberTable::read(node, F::NAMES, 0, report), PhantomData))
    }
}

impl<F: Named> TableOf<F> {
    /// True if some member is this field.
    pub(super) fn has(&self, field: F) -> bool {
        let mut found = false;
        self.walk(&mut |other| found |= other == field.place());
        found
    }
}

impl MemberTable {
    /// Calls `each` for each field of the table.
    pub(super) fn walk(&self, each: &mut dyn FnMut(usize)) {
        match self {
            MemberTable::Is(field) => each(*field),
            MemberTable::Each(fields) => fields.iter().for_each(|field| each(*field)),
            MemberTable::At(tables) => tables.iter().flatten().for_each(|table| table.walk(each)),
            MemberTable::In(named) | MemberTable::Tagged { kinds: named, .. } => {
                named.iter().for_each(|(_, table)| table.walk(each));
            }
        }
    }

    /// True if this is the table of such a value.
    pub(super) fn takes(&self, value: Raw<'_>) -> bool {
        let fits = (self, value);
        matches!(fits, (MemberTable::In(_), Raw::Object(_)) | (MemberTable::At(_), Raw::Array(_)))
    }

    /// True if it is of a value that is neither an array nor an object.
    pub(super) fn is_of_plain(&self) -> bool {
        matches!(self, MemberTable::Is(_) | MemberTable::Each(_))
    }

    /// What an item is, and what this table says that it is, for messages.
    pub(super) fn shapes(&self, item: &[u8]) -> [&'static str; 2] {
        let found = match item.trim_ascii_start().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a text",
            Some(b'-' | b'0'..=b'9') => "a number",
            _ => "a word",
        };
        let expected = match self {
            MemberTable::In(_) => "an object",
            MemberTable::At(_) | MemberTable::Tagged { .. } => "an array",
            MemberTable::Is(_) | MemberTable::Each(_) => "a text",
        };
        [found, expected]
    }

    /// Reads a table that lies so deep in others. The fields have these names.
    fn read(node: &Node<'_>, names: &[&str], depth: usize, report: &mut Report) -> MemberTable {
        if let Some(text) = node.text() {
            let place = |name| names.iter().position(|known| *known == name);
            let fields: Option<Vec<usize>> = text.split(' ').map(place).collect();
            match fields.as_deref() {
                None => node.refuse(None, format!("one of {}", names.join(", ")), report),
                Some([field]) => return MemberTable::Is(*field),
                Some(_) => {}
            }
            return MemberTable::Each(fields.unwrap_or_default());
        }
        let (items, members) = (node.items(), node.members());
        let count = items.as_ref().map(Vec::len).or(members.as_ref().map(Vec::len));
        if depth == DEPTH || count.is_some_and(|count| count > ENTRIES) {
            let most = format!("at most {DEPTH} tables in each other, of {ENTRIES} entries each");
            node.refuse(None, most, report);
            return MemberTable::Each(Vec::new());
        }
        if let Some(items) = items {
            let mut table = |item: &Node<'_>| {
                report.place(&item.path, item.offset);
                (!item.is_null()).then(|| MemberTable::read(item, names, depth + 1, report))
            };
            return MemberTable::At(items.iter().map(&mut table).collect());
        }
        let Some(members) = members else {
            node.refuse(None, TABLE.to_owned(), report);
            return MemberTable::Each(Vec::new());
        };
        let (mut tag, mut kinds) = (None, Entries::new());
        for (name, member) in members {
            report.place(&member.path, member.offset);
            if kinds.iter().any(|(known, _)| **known == *name) {
                report.fault(&member.path, "given twice");
            }
            match &*name {
                BY => (tag.get_or_insert_with(Box::default), &()).read(&member, report),
                _ => {
                    kinds.push((name.into(), MemberTable::read(&member, names, depth + 1, report)))
                }
            }
        }
        match tag {
            Some(key) => MemberTable::Tagged { tag: [Step::Key(key)], kinds },
            None => MemberTable::In(kinds),
        }
    }
}

/// The most fields of a kind of item.
pub(super) const FIELDS: usize = 21;

/// What an item holds, by field.
pub(super) struct ItemFields<'a>([Raw<'a>; FIELDS]);

impl<'a> ItemFields<'a> {
    pub(super) fn new() -> ItemFields<'a> {
        ItemFields([Raw::Absent; FIELDS])
    }

    pub(super) fn get(&self, field: impl Named) -> Raw<'a> {
        self.at(field.place())
    }

    /// The field of this place.
    pub(super) fn at(&self, place: usize) -> Raw<'a> {
        self.0[place]
    }

    /// Sets the field of this place. `null` keeps what another member set.
    fn put(&mut self, place: usize, value: Raw<'a>) {
        if !matches!(value, Raw::Null) {
            self.0[place] = value;
        }
    }
}

/// How the items of a call are written.
pub(super) struct ItemForm {
    /// Which of their members is which field.
    pub(super) table: &'static MemberTable,
    /// The fields that the name of an item sets, if it has one.
    pub(super) name: &'static MemberTable,
    /// The words of the fields, by place.
    pub(super) words: &'static [&'static str],
}

impl ItemForm {
    /// The fields of an item of this name, of which nothing else is read yet.
    pub(super) fn fields<'a>(&self, name: Raw<'a>) -> ItemFields<'a> {
        let mut fields = ItemFields::new();
        self.name.walk(&mut |place| fields.put(place, name));
        fields
    }
}

/// The names of the last item's members, in their order.
#[derive(Default)]
pub(super) struct Order {
    names: Vec<Known>,
}

struct Known {
    /// The name as it was sent, quotes and colon included.
    sent: Vec<u8>,
    table: Option<&'static MemberTable>,
}

/// The most names that are remembered, and the longest: others are looked up each time.
const KNOWN_NAMES: usize = 64;
const KNOWN_NAME_BYTES: usize = 48;

impl Order {
    /// Reads one item along its table. Returns false if it is of another type.
    pub(super) fn read<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        table: &'static MemberTable,
        fields: &mut ItemFields<'a>,
    ) -> Result<bool, Stop> {
        match (table, cursor.peek()?) {
            (MemberTable::In(members), b'{') => {
                cursor.skip();
                let (mut first, mut index) = (true, 0);
                while cursor.next(&mut first, b'}')? {
                    match self.name(index, cursor, members)? {
                        None => drop(cursor.value()?),
                        Some(MemberTable::Is(field)) => fields.put(*field, cursor.value()?),
                        table => read(cursor, table, fields)?,
                    }
                    index += 1;
                }
            }
            (MemberTable::At(_), b'[')
            | (MemberTable::Is(_) | MemberTable::Each(_), b'"' | b'-' | b'0'..=b'9') => {
                read(cursor, Some(table), fields)?;
            }
            _ => return cursor.value().map(|_| false),
        }
        Ok(true)
    }

    /// Passes a name, and returns its entry in the table.
    fn name(
        &mut self,
        index: usize,
        cursor: &mut Cursor<'_>,
        members: &'static Entries,
    ) -> Result<Option<&'static MemberTable>, Stop> {
        if let Some(known) = self.names.get(index)
            && cursor.pass_text(&known.sent)
        {
            return Ok(known.table);
        }
        let begin = cursor.position();
        let name = cursor.name()?;
        let table = table_of(name, members);
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
        Ok(table)
    }
}

fn table_of(name: Raw<'_>, members: &'static Entries) -> Option<&'static MemberTable> {
    let Raw::Text(name) = name else {
        return None;
    };
    let found = members.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(_, table)| table)
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
                let table = table_of(cursor.name()?, members);
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
                    let table = table_of(find(object, tag), kinds);
                    read(&mut Cursor::new(object), table, fields)?;
                }
            }
        }
        (Some(table), _) => {
            // A field is unknown only if the exchange does not send it: one in a value of another type is
            // wrong.
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
            assert_eq!(order.read(&mut cursor, &LETTERS, &mut fields), Ok(true), "{item}");
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
        assert_eq!(order.read(&mut cursor, &LETTERS, &mut ItemFields::new()), Ok(true));
        assert!(order.names.len() <= KNOWN_NAMES);
    }

    #[test]
    fn what_is_no_object_is_passed_and_told() {
        let mut order = Order::default();
        let mut cursor = Cursor::new(b"[1,2] ");
        assert_eq!(order.read(&mut cursor, &LETTERS, &mut ItemFields::new()), Ok(false));
        assert_eq!(cursor.position(), 5);
    }
}
