//! A key of the file: its name, what it may say, and where its value lives.
//!
//! Owns the table that each object of the file is made of. One row reads a key, prints it and
//! documents it, so that the three cannot drift: whoever adds a row has done all of it.
//! It never knows a particular key; those are in `schema` and `limits`.

use super::fault::{Report, suggestion};
use super::json::{Json, Node};
use crate::decimal::Decimal;
use std::collections::HashMap;
use std::time::Duration;

/// A key of the object that fills a `T`.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    /// For the documentation: one phrase.
    pub(super) about: &'static str,
    pub(super) kind: Kind<T>,
}

/// What a key may say, and how it goes in and out of a `T`. `null` is allowed where `None` is.
pub(super) enum Kind<T: 'static> {
    /// A whole number within bounds.
    Number {
        unit: Unit,
        min: u64,
        max: u64,
        /// Why these bounds, where it is not obvious.
        why: &'static str,
        get: fn(&T) -> u64,
        set: fn(&mut T, u64),
    },
    /// True or false.
    Switch {
        nullable: bool,
        get: fn(&T) -> Option<bool>,
        set: fn(&mut T, Option<bool>),
    },
    /// A decimal, exact; `set` answers whether it is within the bounds that `expected` names.
    Decimal {
        expected: &'static str,
        get: fn(&T) -> Option<Decimal>,
        set: fn(&mut T, Option<Decimal>) -> bool,
    },
    /// A text; `set` answers what was expected and found.
    Text {
        expected: &'static str,
        get: fn(&T) -> Option<String>,
        set: fn(&mut T, &str) -> Result<(), String>,
        /// What `null` does, where it is allowed.
        clear: Option<fn(&mut T)>,
    },
    /// Texts of one form, each at most once.
    Texts {
        /// What is expected of one of them.
        each: &'static str,
        parse: fn(&str) -> Result<String, String>,
        get: fn(&T) -> Vec<String>,
        set: fn(&mut T, Vec<String>),
    },
    /// An object, or a list of objects.
    Part {
        expected: &'static str,
        read: fn(&mut T, &Node<'_>, &mut Report),
        print: fn(&T) -> Json,
    },
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Ms,
    Bytes,
    Slots,
}

impl Unit {
    fn of(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Ms => " of milliseconds",
            Unit::Bytes => " of bytes",
            Unit::Slots => " of candles",
        }
    }
}

/// A type that a number of the file fills.
pub(super) trait Quantity {
    /// The value, as near as the type can hold it.
    fn of_number(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Quantity for Duration {
    fn of_number(number: u64) -> Duration {
        Duration::from_millis(number)
    }
    fn number(&self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

macro_rules! quantity {
    ($($type:ty)*) => { $(
        impl Quantity for $type {
            fn of_number(number: u64) -> $type {
                <$type>::try_from(number).unwrap_or(<$type>::MAX)
            }
            fn number(&self) -> u64 {
                u64::try_from(*self).unwrap_or(0)
            }
        }
    )* };
}
quantity!(usize u64 u32 i64);

impl<T> Key<T> {
    /// What the value may be, as messages and documentation say it.
    pub(super) fn expected(&self) -> String {
        match &self.kind {
            Kind::Number {
                unit,
                min,
                max,
                why,
                ..
            } => {
                let unit = unit.of();
                let why = if why.is_empty() {
                    String::new()
                } else {
                    format!(" ({why})")
                };
                format!("a whole number{unit} from {min} to {max}{why}")
            }
            Kind::Switch { nullable, .. } => {
                let null = if *nullable { " or null" } else { "" };
                format!("true or false{null}")
            }
            Kind::Decimal { expected, .. } => format!("{expected} or null"),
            Kind::Text {
                expected, clear, ..
            } => {
                let null = if clear.is_some() { " or null" } else { "" };
                format!("{expected}{null}")
            }
            Kind::Texts { each, .. } => format!("a list, each {each}"),
            Kind::Part { expected, .. } => (*expected).to_string(),
        }
    }

    /// Reads a value into its place.
    fn read(&self, owner: &mut T, node: &Node<'_>, report: &mut Report) {
        if !self.take(owner, node, report) {
            node.refuse(&self.expected(), report);
        }
    }

    /// The same; answers false where the value is not what is expected and no fault tells it yet.
    fn take(&self, owner: &mut T, node: &Node<'_>, report: &mut Report) -> bool {
        match &self.kind {
            Kind::Number { min, max, set, .. } => {
                let number = node.number().and_then(|digits| digits.parse().ok());
                let number = number.filter(|number| (*min..=*max).contains(number));
                number.inspect(|number| set(owner, *number)).is_some()
            }
            Kind::Switch { nullable, set, .. } => {
                let value = node.switch();
                let good = value.is_some() || (*nullable && node.is_null());
                if good {
                    set(owner, value);
                }
                good
            }
            Kind::Decimal { set, .. } => match decimal(node) {
                None => node.is_null() && set(owner, None),
                value => set(owner, value),
            },
            Kind::Text { set, clear, .. } => match (node.text(), clear) {
                (Some(text), _) => {
                    if let Err(message) = set(owner, &text) {
                        report.fault(&node.path, message);
                    }
                    true
                }
                (None, Some(clear)) if node.is_null() => {
                    clear(owner);
                    true
                }
                (None, _) => false,
            },
            Kind::Texts {
                each, parse, set, ..
            } => {
                let texts = read_texts(*parse, each, node, report);
                texts.map(|texts| set(owner, texts)).is_some()
            }
            Kind::Part { read, .. } => {
                read(owner, node, report);
                true
            }
        }
    }

    /// The value as it would be read.
    pub(super) fn print(&self, owner: &T) -> Json {
        let plain = |text: Option<String>| text.map_or(Json::NULL, Json::Plain);
        match &self.kind {
            Kind::Number { get, .. } => Json::Plain(get(owner).to_string()),
            Kind::Switch { get, .. } => plain(get(owner).map(|value| value.to_string())),
            Kind::Decimal { get, .. } => plain(get(owner).map(|value| value.to_string())),
            Kind::Text { get, .. } => get(owner).map_or(Json::NULL, Json::Text),
            Kind::Texts { get, .. } => Json::texts(&get(owner)),
            Kind::Part { print, .. } => print(owner),
        }
    }
}

/// Fills `owner` from an object. Every key that is unknown, said twice or wrong is a fault of its
/// own; the others are read all the same.
pub(super) fn read_object<T>(
    owner: &mut T,
    keys: &'static [Key<T>],
    node: &Node<'_>,
    report: &mut Report,
) {
    let names: Vec<&'static str> = keys.iter().map(|key| key.name).collect();
    let mut read = |at: usize, value: &Node<'_>, report: &mut Report| {
        keys[at].read(owner, value, report);
    };
    read_members(&names, node, report, &mut read);
}

/// Reads the members of an object: `read` the value of the one whose name stands at a place. It
/// knows no types, so that the program has it once, and not for each of them.
fn read_members(
    names: &[&'static str],
    node: &Node<'_>,
    report: &mut Report,
    read: &mut dyn FnMut(usize, &Node<'_>, &mut Report),
) {
    let Some(members) = node.members() else {
        return node.refuse("an object", report);
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    for member in members {
        let path = &member.value.path;
        let Some(at) = names.iter().position(|name| *name == member.name) else {
            let near = suggestion(&member.name, names.iter().copied());
            report.fault_at(path, member.offset, format!("unknown key{near}"));
            continue;
        };
        let line = report.line(member.offset);
        if let Some(first) = seen.insert(member.name, line) {
            let message = format!("given twice, first on line {first}");
            report.fault_at(path, member.offset, message);
            continue;
        }
        report.place(path, member.value.offset);
        read(at, &member.value, report);
    }
}

/// Reads a list of at most `most` objects, each with the key `needed`, into what `start` makes
/// of it.
pub(super) fn read_objects<T>(
    keys: &'static [Key<T>],
    needed: &str,
    most: usize,
    start: impl Fn(&Node<'_>) -> T,
    node: &Node<'_>,
    report: &mut Report,
) -> Vec<T> {
    let expected = format!("a list of at most {most} objects");
    let Some(items) = node.items() else {
        node.refuse(&expected, report);
        return Vec::new();
    };
    if items.len() > most {
        let message = format!("expected {expected}, found {}", items.len());
        report.fault(&node.path, message);
        return Vec::new();
    }
    let mut read = |item: &Node<'_>| {
        report.place(&item.path, item.offset);
        let mut owner = start(item);
        read_object(&mut owner, keys, item, report);
        require(item, keys, needed, report);
        owner
    };
    items.iter().map(&mut read).collect()
}

/// An object as it would be read.
pub(super) fn print_object<T>(owner: &T, keys: &'static [Key<T>]) -> Json {
    Json::Object(
        keys.iter()
            .map(|key| (key.name, key.print(owner)))
            .collect(),
    )
}

/// A list of objects as it would be read.
pub(super) fn print_objects<T>(owners: &[T], keys: &'static [Key<T>]) -> Json {
    Json::List(
        owners
            .iter()
            .map(|owner| print_object(owner, keys))
            .collect(),
    )
}

/// Tells that a key is missing that has no default.
fn require<T>(node: &Node<'_>, keys: &[Key<T>], name: &str, report: &mut Report) {
    // What is no object at all has been told already.
    if node.members().is_some() && node.member(name).is_none() {
        let key = keys.iter().find(|key| key.name == name);
        let expected = key.map_or(String::new(), Key::expected);
        let path = format!("{}.{name}", node.path);
        report.fault(&path, format!("missing, expected {expected}"));
    }
}

/// Texts of one form, each at most once. `None` when this is no list.
fn read_texts(
    parse: fn(&str) -> Result<String, String>,
    each: &str,
    node: &Node<'_>,
    report: &mut Report,
) -> Option<Vec<String>> {
    let items = node.items()?;
    let mut texts = Vec::with_capacity(items.len());
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        report.place(&item.path, item.offset);
        match item.text().map(|text| parse(&text)) {
            None => item.refuse(each, report),
            Some(Err(message)) => report.fault(&item.path, message),
            Some(Ok(text)) => match seen.insert(text.clone(), at) {
                Some(first) => {
                    let message = format!("{text} is given twice, first as [{first}]");
                    report.fault(&item.path, message);
                }
                None => texts.push(text),
            },
        }
    }
    Some(texts)
}

/// A decimal, as a number or as a text of digits: some writers of JSON round numbers.
fn decimal(node: &Node<'_>) -> Option<Decimal> {
    let text = node.text();
    let digits = text.as_deref().or(node.number())?;
    Decimal::parse(digits.as_bytes()).ok()
}
