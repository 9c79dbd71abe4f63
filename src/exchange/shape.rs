//! Shapes: which member of an item is which field, as a table in the file of each exchange.
//!
//! Owns the walk through one item along such a table, and the names of the last item in their
//! order: exchanges write all items alike, so most names are known before they are read.
//!
//! It converts no values: it passes on [`Raw`] ones in [`Fields`].

use super::json::{Cursor, Raw, Step, Stop, find};

/// Where a value goes.
pub(super) enum Node<F: 'static> {
    /// It is this field.
    Is(F),
    /// It is each of these fields.
    Each(&'static [F]),
    /// An object with such members.
    In(&'static Members<F>),
    /// An array with such elements, by position.
    At(&'static [(usize, Node<F>)]),
    /// An array of objects of several kinds: the member `tag` tells the kind, the table what its
    /// members are.
    Tagged {
        tag: &'static str,
        kinds: &'static [(&'static str, &'static Members<F>)],
    },
}

/// Members by name, ideally in the order in which they are sent.
pub(super) type Members<F> = [(&'static str, Node<F>)];

/// A field of some kind of item.
pub(super) trait Field: Copy {
    /// Its place in [`Fields`]: below [`FIELDS`].
    fn place(self) -> usize;
}

/// The most fields of a kind of item.
pub(super) const FIELDS: usize = 20;

/// What an item holds, by field.
pub(super) struct Fields<'a>([Raw<'a>; FIELDS]);

impl<'a> Fields<'a> {
    pub(super) fn new() -> Fields<'a> {
        Fields([Raw::Absent; FIELDS])
    }

    pub(super) fn get<F: Field>(&self, field: F) -> Raw<'a> {
        self.0[field.place()]
    }

    /// Sets a field. `null` keeps what another member set.
    pub(super) fn set<F: Field>(&mut self, field: F, value: Raw<'a>) {
        if !matches!(value, Raw::Null) {
            self.0[field.place()] = value;
        }
    }
}

/// The names of the last item's members, in their order.
pub(super) struct Order<F: 'static> {
    names: Vec<Known<F>>,
}

struct Known<F: 'static> {
    /// The name as it was sent, quotes and colon included.
    sent: Vec<u8>,
    node: Option<&'static Node<F>>,
}

/// The most names that are remembered, and the longest: others are looked up each time.
const KNOWN_NAMES: usize = 64;
const KNOWN_NAME_BYTES: usize = 48;

impl<F: Field> Order<F> {
    pub(super) fn new() -> Order<F> {
        Order { names: Vec::new() }
    }

    /// Reads one value along the table. Returns false if it is not an object.
    pub(super) fn read<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        members: &'static Members<F>,
        fields: &mut Fields<'a>,
    ) -> Result<bool, Stop> {
        if cursor.peek()? != b'{' {
            cursor.value()?;
            return Ok(false);
        }
        cursor.pass(b'{', "an object")?;
        let mut first = true;
        let mut index = 0;
        while cursor.next(&mut first, b'}')? {
            let node = self.name(index, cursor, members)?;
            index += 1;
            let value = cursor.value()?;
            match node {
                Some(Node::Is(field)) => fields.set(*field, value),
                Some(node) => spread(value, node, fields)?,
                None => {}
            }
        }
        Ok(true)
    }

    /// Passes a name, and returns its entry in the table.
    fn name(
        &mut self,
        index: usize,
        cursor: &mut Cursor<'_>,
        members: &'static Members<F>,
    ) -> Result<Option<&'static Node<F>>, Stop> {
        if let Some(known) = self.names.get(index)
            && cursor.pass_text(&known.sent)
        {
            return Ok(known.node);
        }
        let begin = cursor.position();
        let name = cursor.name()?;
        let node = node_of(name, members);
        let sent = cursor.since(begin);
        if sent.len() <= KNOWN_NAME_BYTES && index <= self.names.len() && index < KNOWN_NAMES {
            if index == self.names.len() {
                self.names.push(Known {
                    sent: Vec::new(),
                    node,
                });
            }
            let known = &mut self.names[index];
            known.sent.clear();
            known.sent.extend_from_slice(sent);
            known.node = node;
        }
        Ok(node)
    }
}

fn node_of<F: Field>(name: Raw<'_>, members: &'static Members<F>) -> Option<&'static Node<F>> {
    let Raw::Text(name) = name else {
        return None;
    };
    let found = members.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(_, node)| node)
}

/// Sets the fields of a value that was passed before, so it is complete.
fn spread<'a, F: Field>(
    value: Raw<'a>,
    node: &'static Node<F>,
    fields: &mut Fields<'a>,
) -> Result<(), Stop> {
    match (node, value) {
        (Node::Is(field), value) => fields.set(*field, value),
        (Node::Each(each), value) => each.iter().for_each(|field| fields.set(*field, value)),
        (Node::In(members), Raw::Object(object)) => spread_object(object, members, fields)?,
        (Node::At(positions), Raw::Array(array)) => {
            elements(array, &mut |index, value| {
                let node = positions.iter().find(|(position, _)| *position == index);
                node.map_or(Ok(()), |(_, node)| spread(value, node, fields))
            })?;
        }
        (Node::Tagged { tag, kinds }, Raw::Array(array)) => elements(array, &mut |_, value| {
            let Raw::Object(object) = value else {
                return Ok(());
            };
            let kind = find(object, &[Step::Key(tag)]);
            let members = kinds
                .iter()
                .find(|(name, _)| kind == Raw::Text(name.as_bytes()));
            members.map_or(Ok(()), |(_, members)| {
                spread_object(object, members, fields)
            })
        })?,
        (_, Raw::Null) => {}
        (node, _) => spoil(node, fields),
    }
    Ok(())
}

/// Marks every field of a value of an unexpected type as wrong. A field is unknown only if the
/// exchange does not send it.
fn spoil<F: Field>(node: &'static Node<F>, fields: &mut Fields<'_>) {
    let garbled = Raw::Array(b"[]");
    match node {
        Node::Is(field) => fields.set(*field, garbled),
        Node::Each(each) => each.iter().for_each(|field| fields.set(*field, garbled)),
        Node::In(members) => members.iter().for_each(|(_, node)| spoil(node, fields)),
        Node::At(positions) => positions.iter().for_each(|(_, node)| spoil(node, fields)),
        Node::Tagged { kinds, .. } => {
            for (_, node) in kinds.iter().flat_map(|(_, members)| *members) {
                spoil(node, fields);
            }
        }
    }
}

/// The same for an object. A function of its own makes the program smaller.
#[inline(never)]
fn spread_object<'a, F: Field>(
    object: &'a [u8],
    members: &'static Members<F>,
    fields: &mut Fields<'a>,
) -> Result<(), Stop> {
    let mut cursor = Cursor::new(object);
    cursor.pass(b'{', "an object")?;
    let mut first = true;
    while cursor.next(&mut first, b'}')? {
        let name = cursor.name()?;
        let value = cursor.value()?;
        if let Some(node) = node_of(name, members) {
            spread(value, node, fields)?;
        }
    }
    Ok(())
}

/// Calls `each` for each element of a whole array.
pub(super) fn elements<'a>(
    array: &'a [u8],
    each: &mut dyn FnMut(usize, Raw<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut cursor = Cursor::new(array);
    cursor.pass(b'[', "an array")?;
    let mut first = true;
    let mut index = 0;
    while cursor.next(&mut first, b']')? {
        each(index, cursor.value()?)?;
        index += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Node::Is;
    use super::*;

    #[derive(Clone, Copy)]
    enum Letter {
        A,
        B,
    }

    impl Field for Letter {
        fn place(self) -> usize {
            self as usize
        }
    }

    static LETTERS: [(&str, Node<Letter>); 2] = [("a", Is(Letter::A)), ("b", Is(Letter::B))];

    /// Reads items one after another by one order: what each has as `a` and `b`.
    fn check(items: &[&str], expected: &[(&[u8], &[u8])]) {
        let mut order = Order::new();
        for (item, (a, b)) in items.iter().zip(expected) {
            let mut fields = Fields::new();
            let mut cursor = Cursor::new(item.as_bytes());
            assert_eq!(
                order.read(&mut cursor, &LETTERS, &mut fields),
                Ok(true),
                "{item}"
            );
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
        check(
            &[&item, r#"{"b":4,"a":3}"#, &item],
            &[(b"1", b"2"), (b"3", b"4"), (b"1", b"2")],
        );
        let mut order = Order::<Letter>::new();
        let mut cursor = Cursor::new(item.as_bytes());
        assert_eq!(
            order.read(&mut cursor, &LETTERS, &mut Fields::new()),
            Ok(true)
        );
        assert!(order.names.len() <= KNOWN_NAMES);
    }

    #[test]
    fn what_is_no_object_is_passed_and_told() {
        let mut order = Order::<Letter>::new();
        let mut cursor = Cursor::new(b"[1,2] ");
        assert_eq!(
            order.read(&mut cursor, &LETTERS, &mut Fields::new()),
            Ok(false)
        );
        assert_eq!(cursor.position(), 5);
    }
}
