//! Values of the file: how each type is read, printed and described.
//!
//! A [`Value`] is a type that a key can have. Its rule is data: the bounds of a number, the form of a
//! text. `Option`, `Vec` and structs of keys are values too, made of the values in them. `object!`
//! makes a struct and its keys from one list of rows.

use super::fault::Report;
use super::forms::{Data, Form};
use super::json::{self, Node};
use super::keys::{Key, Object, Place, Visitor, print_object, read_object};
use super::network::Network;
use super::url::Url;
use crate::decimal::Decimal;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::time::Duration;

/// A type that a key of the file can have.
pub(super) trait Value: Sized {
    /// What the file may say, beyond what the type tells.
    type Rule;

    /// See [`Place::inner`].
    const INNER: Option<&'static str> = None;

    /// Most values in a list.
    const MOST: usize = usize::MAX;

    /// See [`Place::expected`].
    fn expected(rule: &Self::Rule) -> String;

    /// Reads a value. An object keeps of the `old` one what the file does not say.
    fn read(
        rule: &Self::Rule,
        old: Option<&Self>,
        node: &Node<'_>,
        report: &mut Report,
    ) -> Read<Self>;

    /// See [`Place::print`].
    fn print(&self) -> String;

    /// Visits the keys in a value, or in a new one.
    fn visit(_value: Option<&Self>, _visitor: &mut Visitor<'_>) {}
}

/// A value, or what is wrong: nothing more to say than what was expected and found, or a message.
pub(super) type Read<T> = Result<T, Option<String>>;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Ms,
    Bytes,
    Slots,
}

/// The bounds of a whole number.
pub(super) struct Number {
    pub(super) unit: Unit,
    pub(super) min: u64,
    pub(super) max: u64,
    /// Why these bounds, where it is not obvious.
    pub(super) why: &'static str,
}

/// The bounds of a whole number that need no reason.
pub(super) const fn number(unit: Unit, min: u64, max: u64) -> Number {
    let why = "";
    Number {
        unit,
        min,
        max,
        why,
    }
}

impl Number {
    fn read<T: TryFrom<u64>>(&self, node: &Node<'_>) -> Read<T> {
        let number = node.number().and_then(|digits| digits.parse().ok());
        let number = number.filter(|number| (self.min..=self.max).contains(number));
        number.and_then(|number| number.try_into().ok()).ok_or(None)
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Count => "",
            Unit::Ms => " of milliseconds",
            Unit::Bytes => " of bytes",
            Unit::Slots => " of candles",
        };
        write!(f, "a whole number{unit} from {} to {}", self.min, self.max)?;
        match self.why {
            "" => Ok(()),
            why => write!(f, " ({why})"),
        }
    }
}

/// The bounds of a decimal.
pub(super) struct Range {
    pub(super) expected: &'static str,
    pub(super) holds: fn(&Decimal) -> bool,
}

/// Values that are neither lists nor objects: types, their rule, what is expected by it, how a node
/// is read and how a value is printed.
macro_rules! leaves {
    ($($type:ty)+, $rule:ty, $expected:expr, $read:expr, $print:expr) => { $(
        impl Value for $type {
            type Rule = $rule;

            fn expected(rule: &$rule) -> String {
                $expected(rule)
            }

            fn read(rule: &$rule, _: Option<&$type>, node: &Node<'_>, _: &mut Report) -> Read<$type> {
                $read(rule, node)
            }

            fn print(&self) -> String {
                $print(self)
            }
        }
    )+ };
}

leaves!(u32 u64 usize i64, Number, Number::to_string, Number::read, Self::to_string);
leaves!(
    Duration,
    Number,
    Number::to_string,
    |rule: &Number, node| rule.read(node).map(Duration::from_millis),
    |time: &Duration| time.as_millis().to_string()
);
leaves!(
    bool,
    (),
    |(): &()| "true or false".to_string(),
    |(): &(), node: &Node<'_>| node.switch().ok_or(None),
    bool::to_string
);
// A text of digits is a decimal too: some writers of JSON round numbers.
leaves!(
    Decimal,
    Range,
    |range: &Range| range.expected.to_string(),
    |range: &Range, node: &Node<'_>| {
        let digits = node.text().or(node.number().map(str::to_string));
        let value = digits.and_then(|digits| Decimal::parse(digits.as_bytes()).ok());
        value.filter(range.holds).ok_or(None)
    },
    Decimal::to_string
);
leaves!(
    String SocketAddr Data Network Url,
    Form<Self>,
    |form: &Form<Self>| form.expected.to_string(),
    |form: &Form<Self>, node: &Node<'_>| form.parse(&node.text().ok_or(None)?).map_err(Some),
    |value: &Self| json::text(&value.to_string())
);

/// `None` is `null`.
impl<T: Value> Value for Option<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = T::INNER;

    fn expected(rule: &T::Rule) -> String {
        T::expected(rule) + " or null"
    }

    fn read(
        rule: &T::Rule,
        old: Option<&Self>,
        node: &Node<'_>,
        report: &mut Report,
    ) -> Read<Self> {
        if node.is_null() {
            return Ok(None);
        }
        T::read(rule, old.and_then(Option::as_ref), node, report).map(Some)
    }

    fn print(&self) -> String {
        self.as_ref().map_or("null".to_string(), T::print)
    }

    fn visit(value: Option<&Self>, visitor: &mut Visitor<'_>) {
        T::visit(value.and_then(Option::as_ref), visitor);
    }
}

/// A list of objects, or of texts, each at most once.
impl<T: Value> Value for Vec<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = if T::INNER.is_some() { Some("[]") } else { None };

    fn expected(rule: &T::Rule) -> String {
        match Self::INNER {
            Some(_) => format!("a list of at most {} objects", T::MOST),
            None => format!("a list, each {}", T::expected(rule)),
        }
    }

    fn read(rule: &T::Rule, _: Option<&Self>, node: &Node<'_>, report: &mut Report) -> Read<Self> {
        let items = node.items().ok_or(None)?;
        if items.len() > T::MOST {
            let expected = Self::expected(rule);
            return Err(Some(format!("expected {expected}, found {}", items.len())));
        }
        let mut values = Vec::with_capacity(items.len());
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            report.place(&item.path, item.offset);
            match T::read(rule, None, item, report) {
                Err(message) => item.refuse(message, || T::expected(rule), report),
                Ok(value) if Self::INNER.is_none() => match seen.insert(value.print(), at) {
                    Some(first) => {
                        let text = value.print();
                        let text = text.trim_matches('"');
                        let message = format!("{text} is given twice, first as [{first}]");
                        report.fault(&item.path, message);
                    }
                    None => values.push(value),
                },
                Ok(value) => values.push(value),
            }
        }
        Ok(values)
    }

    fn print(&self) -> String {
        json::list(&self.iter().map(T::print).collect::<Vec<_>>())
    }

    fn visit(_: Option<&Self>, visitor: &mut Visitor<'_>) {
        T::visit(None, visitor);
    }
}

impl<T: Object> Value for T {
    type Rule = ();
    const INNER: Option<&'static str> = Some("");
    const MOST: usize = T::ENTRIES;

    fn expected((): &()) -> String {
        "an object".to_string()
    }

    fn read((): &(), old: Option<&T>, node: &Node<'_>, report: &mut Report) -> Read<T> {
        let mut value = old.cloned().unwrap_or_else(|| T::start(Some(node)));
        read_object(&mut |visitor| value.keys(visitor), T::NEEDED, node, report);
        Ok(value)
    }

    fn print(&self) -> String {
        let mut value = self.clone();
        print_object(&mut |visitor| value.keys(visitor))
    }

    fn visit(value: Option<&T>, visitor: &mut Visitor<'_>) {
        let value = value.cloned();
        value.unwrap_or_else(|| T::start(None)).keys(visitor);
    }
}

/// A value in memory, and its rule.
struct Typed<'a, T: Value>(&'a mut T, T::Rule);

impl<T: Value> Place for Typed<'_, T> {
    fn expected(&self) -> String {
        T::expected(&self.1)
    }

    fn inner(&self) -> Option<&'static str> {
        T::INNER
    }

    fn read(&mut self, node: &Node<'_>, report: &mut Report) {
        match T::read(&self.1, Some(self.0), node, report) {
            Ok(value) => *self.0 = value,
            Err(message) => node.refuse(message, || self.expected(), report),
        }
    }

    fn print(&self) -> String {
        self.0.print()
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        T::visit(Some(self.0), visitor);
    }
}

/// Hands one key to a visitor.
pub(super) fn key<T: Value>(
    visitor: &mut Visitor<'_>,
    name: &'static str,
    value: &mut T,
    rule: T::Rule,
    about: &'static str,
) {
    let place = &mut Typed(value, rule);
    visitor(Key { name, about, place });
}

/// A struct whose fields are keys. A row is a documented field, its type, its default if it is not
/// that of the type, its name in the file, and its rule if it has one; a row without a name is a
/// field that the file cannot set. Line comments in a row are for readers of the source, doc comments
/// are also for those of the reference. Entries of a list say how many there may be, which key each
/// needs, and how one starts.
macro_rules! object {
    ($(#[$meta:meta])* pub struct $name:ident $([$entries:literal, $needed:literal, $start:expr])? { $(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty $(= $default:expr)? $(, $key:literal $($rule:expr)?)?;
    )+ }) => {
        $(#[$meta])*
        pub struct $name {
            $( $(#[doc = $about])+ pub $field: $type, )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $field: $crate::config::values::object!(@ $($default)?), )+ }
            }
        }

        impl $crate::config::keys::Object for $name {
            $(
                const ENTRIES: usize = $entries;
                const NEEDED: Option<&'static str> = Some($needed);

                fn start(node: Option<&$crate::config::json::Node<'_>>) -> $name {
                    $start(node)
                }
            )?

            fn keys(&mut self, visitor: &mut $crate::config::keys::Visitor<'_>) {
                $(
                    let _about = concat!($($about),+);
                    $( $crate::config::values::key(
                        visitor, $key, &mut self.$field, ($($rule)?), _about,
                    ); )?
                )+
            }
        }
    };
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
}
pub(super) use object;
