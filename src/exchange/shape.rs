//! Shapes: which member of an item is which field, as the table of a dialect's file says.
//!
//! Owns the walk through one item along such a table, and the names of the last item in their
//! order: exchanges write all items alike, so most names are known before they are read. It also
//! owns how a table is written in JSON.
//!
//! It converts no values: it passes on [`Raw`] ones in [`Fields`].

use super::json::{Cursor, Raw, Step, Stop, find};
use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use std::fmt;
use std::marker::PhantomData;

/// The most entries of one table, and the deepest nesting of tables. Exchanges stay below half.
const ENTRIES: usize = 100;
const DEPTH: usize = 8;

/// The member of a table that says by which member objects of several kinds are told apart.
const BY: &str = "$by";

/// Where a value goes.
pub(super) enum Node<F> {
    /// It is this field: `"last"`.
    Is(F),
    /// It is each of these fields: `"taker maker"`.
    Each(Vec<F>),
    /// An object with such members: `{ "price": "last" }`.
    In(Members<F>),
    /// An array with such elements, by position: `["time", null, "close"]`.
    At(Vec<Option<Node<F>>>),
    /// An array of objects of several kinds: `{ "$by": "type", "LOT": { "min": "amountMin" } }`.
    Tagged {
        /// The path to the member that tells the kind.
        tag: [Step; 1],
        /// What the members of each kind are.
        kinds: Vec<(Box<str>, Node<F>)>,
    },
}

/// Members by name, ideally in the order in which they are sent.
type Members<F> = Vec<(Box<str>, Node<F>)>;

/// A field of some kind of item. Its name in a table is the variant's in camelCase.
pub(super) trait Field: Copy + PartialEq + DeserializeOwned {
    /// Its place in [`Fields`]: below [`FIELDS`].
    fn place(self) -> usize;
}

impl<F: Field> Node<F> {
    /// Calls `each` for each field of the table.
    pub(super) fn walk(&self, each: &mut dyn FnMut(F)) {
        match self {
            Node::Is(field) => each(*field),
            Node::Each(fields) => fields.iter().for_each(|field| each(*field)),
            Node::At(nodes) => nodes.iter().flatten().for_each(|node| node.walk(each)),
            Node::In(named) | Node::Tagged { kinds: named, .. } => {
                named.iter().for_each(|(_, node)| node.walk(each));
            }
        }
    }

    /// True if this is the table of such a value.
    pub(super) fn takes(&self, value: Raw<'_>) -> bool {
        let fits = (self, value);
        matches!(
            fits,
            (Node::In(_), Raw::Object(_)) | (Node::At(_), Raw::Array(_))
        )
    }

    /// True if some member is this field.
    pub(super) fn has(&self, field: F) -> bool {
        let mut found = false;
        self.walk(&mut |other| found |= other == field);
        found
    }

    fn depth(&self) -> usize {
        let deepest = |nodes: &mut dyn Iterator<Item = &Node<F>>| nodes.map(Node::depth).max();
        1 + match self {
            Node::Is(_) | Node::Each(_) => None,
            Node::At(nodes) => deepest(&mut nodes.iter().flatten()),
            Node::In(named) | Node::Tagged { kinds: named, .. } => {
                deepest(&mut named.iter().map(|(_, node)| node))
            }
        }
        .unwrap_or(0)
    }
}

impl<'de, F: Field> Deserialize<'de> for Node<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node<F>, D::Error> {
        deserializer.deserialize_any(NodeVisitor(PhantomData))
    }
}

struct NodeVisitor<F>(PhantomData<F>);

impl<'de, F: Field> Visitor<'de> for NodeVisitor<F> {
    type Value = Node<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field, or a table of members or positions")
    }

    fn visit_str<E: Error>(self, names: &str) -> Result<Node<F>, E> {
        let field = |name| F::deserialize(StrDeserializer::new(name));
        let fields: Vec<F> = names.split(' ').map(field).collect::<Result<_, E>>()?;
        Ok(match fields[..] {
            [field] => Node::Is(field),
            _ => Node::Each(fields),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Node<F>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = entries.next_element()? {
            nodes.push(node);
            checked(nodes.len(), 0)?;
        }
        Ok(Node::At(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node<F>, A::Error> {
        let (mut tag, mut named) = (None, Members::new());
        while let Some(name) = entries.next_key::<Box<str>>()? {
            if named.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format_args!("{name:?} is given twice")));
            }
            if &*name == BY {
                tag = Some([Step::Key(entries.next_value()?)]);
                continue;
            }
            let node: Node<F> = entries.next_value()?;
            checked(named.len(), node.depth())?;
            named.push((name, node));
        }
        Ok(match tag {
            Some(tag) => Node::Tagged { tag, kinds: named },
            None => Node::In(named),
        })
    }
}

fn checked<E: Error>(entries: usize, depth: usize) -> Result<(), E> {
    match () {
        () if entries >= ENTRIES => Err(E::custom(format_args!("more than {ENTRIES} entries"))),
        () if depth >= DEPTH => Err(E::custom(format_args!("more than {DEPTH} tables deep"))),
        () => Ok(()),
    }
}

/// The most fields of a kind of item.
pub(super) const FIELDS: usize = 21;

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

    /// Reads one item along its table. Returns false if it is of another type.
    pub(super) fn read<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        table: &'static Node<F>,
        fields: &mut Fields<'a>,
    ) -> Result<bool, Stop> {
        let mut first = true;
        match (table, cursor.peek()?) {
            (Node::In(members), b'{') => {
                cursor.pass(b'{', "an object")?;
                let mut index = 0;
                while cursor.next(&mut first, b'}')? {
                    let node = self.name(index, cursor, members)?;
                    index += 1;
                    put(cursor.value()?, node, fields)?;
                }
            }
            (Node::At(nodes), b'[') => {
                cursor.pass(b'[', "a row")?;
                let mut nodes = nodes.iter();
                while cursor.next(&mut first, b']')? {
                    let node = nodes.next().and_then(Option::as_ref);
                    put(cursor.value()?, node, fields)?;
                }
            }
            (Node::Is(_) | Node::Each(_), b'"' | b'-' | b'0'..=b'9') => {
                put(cursor.value()?, Some(table), fields)?;
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
        members: &'static [(Box<str>, Node<F>)],
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

/// Sets the fields of a value of the item itself.
#[inline(always)]
fn put<'a, F: Field>(
    value: Raw<'a>,
    node: Option<&'static Node<F>>,
    fields: &mut Fields<'a>,
) -> Result<(), Stop> {
    match node {
        Some(Node::Is(field)) => fields.set(*field, value),
        Some(node) => spread(value, node, fields)?,
        None => {}
    }
    Ok(())
}

fn node_of<F>(name: Raw<'_>, members: &'static [(Box<str>, Node<F>)]) -> Option<&'static Node<F>> {
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
        (Node::At(nodes), Raw::Array(array)) => elements(array, &mut |index, value| {
            let node = nodes.get(index).and_then(Option::as_ref);
            node.map_or(Ok(()), |node| spread(value, node, fields))
        })?,
        (Node::Tagged { tag, kinds }, Raw::Array(array)) => elements(array, &mut |_, value| {
            let Raw::Object(object) = value else {
                return Ok(());
            };
            let node = node_of(find(object, tag), kinds);
            node.map_or(Ok(()), |node| spread(value, node, fields))
        })?,
        (_, Raw::Null) => {}
        // A field is unknown only if the exchange does not send it: this one is wrong.
        (node, _) => node.walk(&mut |field| fields.set(field, Raw::Array(b"[]"))),
    }
    Ok(())
}

/// The same for an object. A function of its own makes the program smaller.
#[inline(never)]
fn spread_object<'a, F: Field>(
    object: &'a [u8],
    members: &'static [(Box<str>, Node<F>)],
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
fn elements<'a>(
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
    use super::*;

    use std::sync::LazyLock;

    #[derive(Clone, Copy, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Letter {
        A,
        B,
    }

    impl Field for Letter {
        fn place(self) -> usize {
            self as usize
        }
    }

    static LETTERS: LazyLock<Node<Letter>> =
        LazyLock::new(|| serde_json::from_str(r#"{ "a": "a", "b": "b" }"#).expect("a table"));

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
