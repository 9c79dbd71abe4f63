//! Tables of fields: how a dialect's file says which member of an item is which field.
//!
//! Owns the form of tables and constants in JSON, and the faults in them. `shape` walks through items along a
//! table.

use super::json::Raw;
use super::path::Step;
use crate::config::members::Named;
use crate::config::values::{KeyType, KeyValue as _, Wrong};
use crate::config::{Node, Report};
use crate::decimal::Decimal;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// The most entries of one table, and the deepest nesting of tables. Exchanges need less than half.
const ENTRIES: usize = 100;
const DEPTH: usize = 8;

const TABLE: &str = "the name of a field, or a table of members or positions";

/// The member of a table that names the member by which objects of several kinds are told apart.
const BY: &str = "$by";

/// Names of members that stand for the assets of the item's market: base and quote.
pub(super) const ASSETS: [&str; 2] = ["{base}", "{quote}"];

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
        /// The members of each kind.
        kinds: Entries,
    },
}

/// Members by name. They are found fastest in the order in which they are sent.
pub(super) type Entries = Vec<(Box<str>, MemberTable)>;

impl Default for MemberTable {
    fn default() -> MemberTable {
        MemberTable::Each(Vec::new())
    }
}

/// A table of fields of this kind.
#[derive(Default)]
pub(super) struct TableOf<F>(pub(super) MemberTable, PhantomData<F>);

impl<F: Named> KeyType for TableOf<F> {
    type Rule = ();

    fn expected((): &()) -> String {
        TABLE.to_owned()
    }

    fn read((): &(), node: &Node<'_>, report: &mut Report) -> Result<TableOf<F>, Wrong> {
        Ok(TableOf(MemberTable::read(node, F::NAMES, 0, report), PhantomData))
    }
}

/// Values of fields that no item has, or not every item.
pub(super) type Constants<F> = BTreeMap<F, String>;

/// Reports wrong constants: fields other than these numbers and assets, and numbers that cannot be parsed.
pub(super) fn check_constants<F: Named + Ord>(
    constants: &Constants<F>,
    (numbers, assets): (&[F], &[F]),
    member: &str,
    report: &mut Report,
) {
    for (field, text) in constants {
        let fits = match numbers.contains(field) {
            true => Decimal::parse(text.as_bytes()).is_ok(),
            false => assets.contains(field) && !text.is_empty(),
        };
        let names = names_of(numbers.iter().chain(assets));
        let message = format!("expected a number or an asset, as a text, of one of {names}");
        report.expect(fits, &format!("{member}.{}", field.name()), &message);
    }
}

/// The names of fields, for messages.
pub(super) fn names_of<'a, F: Named>(fields: impl Iterator<Item = &'a F>) -> String {
    fields.map(|field| field.name()).collect::<Vec<_>>().join(", ")
}

impl<F: Named> TableOf<F> {
    /// True if some member is this field.
    pub(super) fn has(&self, field: F) -> bool {
        let mut found = false;
        self.0.walk(&mut |other| found |= other == field.place());
        found
    }

    /// Reports fields that are both a constant and a member of this table.
    pub(super) fn check_beside(&self, constants: &Constants<F>, member: &str, report: &mut Report) {
        for field in constants.keys().filter(|field| self.has(**field)) {
            let member = format!("{member}.{}", field.name());
            report.fault(&member, "some member is this field already");
        }
    }

    /// Reports two members for one field, because one of them would have no effect. Members of different
    /// kinds of objects do not count, because an item has only one of them.
    pub(super) fn check_once(&self, member: &str, report: &mut Report) {
        let (mut seen, mut twice) = (Vec::new(), None);
        self.0.collect(&mut seen, &mut twice);
        if let Some(place) = twice {
            report.fault(member, format!("two members are `{}`", F::NAMES[place]));
        }
    }
}

impl MemberTable {
    /// The inner tables. A table of a member comes with its name, others with an empty one.
    fn inner(&self) -> Vec<(&str, &MemberTable)> {
        match self {
            MemberTable::Is(_) | MemberTable::Each(_) => Vec::new(),
            MemberTable::At(tables) => tables.iter().flatten().map(|table| ("", table)).collect(),
            MemberTable::In(named) | MemberTable::Tagged { kinds: named, .. } => {
                named.iter().map(|(name, table)| (&**name, table)).collect()
            }
        }
    }

    /// Adds the fields of the table to `seen`. Sets `twice` to a field that was in `seen` already.
    fn collect(&self, seen: &mut Vec<usize>, twice: &mut Option<usize>) {
        let before = seen.clone();
        for (_, table) in self.inner() {
            if let MemberTable::Tagged { .. } = self {
                let mut own = before.clone();
                table.collect(&mut own, twice);
                seen.extend(own);
            } else {
                table.collect(seen, twice);
            }
        }
        for field in self.own() {
            *twice = twice.or(Some(*field).filter(|field| seen.contains(field)));
            seen.push(*field);
        }
    }

    /// The fields that a value which is neither array nor object stands for.
    pub(super) fn own(&self) -> &[usize] {
        match self {
            MemberTable::Is(field) => std::slice::from_ref(field),
            MemberTable::Each(fields) => fields,
            _ => &[],
        }
    }

    /// Calls `each` for each field of the table.
    pub(super) fn walk(&self, each: &mut dyn FnMut(usize)) {
        self.own().iter().for_each(|field| each(*field));
        self.inner().iter().for_each(|(_, table)| table.walk(each));
    }

    /// True if some member is named after an asset.
    pub(super) fn names_assets(&self) -> bool {
        let mut inner = self.inner().into_iter();
        inner.any(|(name, table)| ASSETS.contains(&name) || table.names_assets())
    }

    /// True if the table is for values of this type.
    pub(super) fn takes(&self, value: Raw<'_>) -> bool {
        let fits = (self, value);
        matches!(fits, (MemberTable::In(_), Raw::Object(_)) | (MemberTable::At(_), Raw::Array(_)))
    }

    /// The type of an item by this table, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            MemberTable::In(_) => "an object",
            MemberTable::At(_) | MemberTable::Tagged { .. } => "an array",
            MemberTable::Is(_) | MemberTable::Each(_) => "a text",
        }
    }

    /// Reads a table. `names` are the names of the fields, `depth` the number of tables around it.
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
            let is_tag = name == BY && tag.is_some();
            if is_tag || kinds.iter().any(|(known, _)| **known == *name) {
                report.fault(&member.path, "given twice");
            }
            if name.starts_with('{') && !ASSETS.contains(&&*name) {
                report.fault(&member.path, format!("expected {}", ASSETS.join(" or ")));
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
