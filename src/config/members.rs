//! Values that are neither lists nor objects: numbers, switches and texts. Also macros for JSON files in
//! which most members are required, which are the files of dialects.
//!
//! `members!` makes a struct whose fields are the members of an object. `names!` makes an enum whose variants
//! are words. `texts!` makes a type readable from a text of its own form. `values` reads all of them
//! as it reads the configuration. The caller checks the rules between members.

use super::fault::wrong;
use super::forms::{Data, ListenAddress, Poll, TextForm, form};
use super::json::{self, Node};
use super::url::Url;
use super::values::Wrong;
use crate::decimal::Decimal;
use crate::time::UnixMs;
use ipnet::IpNet;
use std::fmt::{self, Display};
use std::time::Duration;

/// Makes a struct whose fields are the members of an object. A row is a documented field, its type, its
/// default, the name of the member, and its rule if the type has one. A member without a default is
/// required. After a fault, the member has an arbitrary value.
macro_rules! members {
    ($(#[doc = $about:literal])+ $vis:vis struct $name:ident { $(
        $(#[doc = $what:literal])+
        $field:ident: $type:ty $(= $default:expr)?, $key:literal $($rule:expr)?;
    )+ }) => {
        $crate::config::values::object! {
            $(#[doc = $about])+
            $vis struct $name [usize::MAX, &[
                $($crate::config::members::members!(@ $key $($default)?)),+
            ]] { $(
                $(#[doc = $what])+
                $field: $type $(= $default)?, $key $($rule)?;
            )+ }
        }

        #[cfg(test)]
        impl $crate::config::tests::describe::Schema for $name {
            fn schema(types: &mut $crate::config::tests::describe::Types) -> serde_json::Value {
                let about = concat!($($about),+);
                types.object(stringify!($name), about, |members| { $(
                    let default: &[&str] = &[$(stringify!($default))?];
                    members.add::<$type>($key, concat!($($what),+), default.is_empty());
                    $( members.limit($key, &$rule); )?
                )+ })
            }
        }
    };
    (@ $key:literal) => { $key };
    (@ $key:literal $default:expr) => { "" };
}
pub(crate) use members;

/// An enum with a word for each variant.
pub(crate) trait Named: Copy + 'static {
    /// The words, and their variants in the same order.
    const NAMES: &'static [&'static str];
    const ALL: &'static [Self];

    /// The place of the variant.
    fn place(self) -> usize;

    /// The word of the variant.
    fn name(self) -> &'static str {
        Self::NAMES[self.place()]
    }

    /// The variant of a word, or what was expected.
    fn chosen(word: &str) -> Result<Self, String> {
        Self::named(word).ok_or_else(|| wrong(Self::NAMES.join(" or "), word))
    }

    /// The variant of a word.
    fn named(word: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|name| *name == word);
        place.map(|place| Self::ALL[place])
    }
}

impl<T: Named> Default for TextForm<T> {
    /// The word of a variant.
    fn default() -> TextForm<T> {
        form("the name of a field", |word| T::chosen(word).map_err(Some))
    }
}

/// Makes an enum whose variants are words.
macro_rules! names {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $(
        $(#[doc = $what:literal])*
        $variant:ident $word:literal
    )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $( $(#[doc = $what])* $variant, )+ }

        impl $crate::config::members::Named for $name {
            const NAMES: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [$name] = &[$($name::$variant),+];

            fn place(self) -> usize {
                self as usize
            }
        }

        impl Default for $name {
            fn default() -> $name {
                <$name as $crate::config::members::Named>::ALL[0]
            }
        }

        $crate::config::members::leaf! {
            $name,
            format!("one of {}", <$name as $crate::config::members::Named>::NAMES.join(", ")),
            |text: String| $crate::config::members::Named::named(&text).ok_or(None)
        }

        #[cfg(test)]
        impl $crate::config::tests::describe::Described for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static str = concat!($($about),+);
            const WORDS: &'static [&'static str] = &[$(concat!($($what),*)),+];
        }
    };
}
pub(crate) use names;

/// Makes a type readable from a text. Arguments: the type, and an example of the text.
macro_rules! texts {
    ($type:ty, $example:literal) => {
        impl Default for $type {
            fn default() -> $type {
                <$type>::try_from($example.to_owned()).expect("an example is good")
            }
        }

        $crate::config::members::leaf! {
            $type,
            concat!("a text like \"", $example, "\"").to_owned(),
            |text: String| <$type>::try_from(text).map_err(Some)
        }
    };
}
pub(crate) use texts;

/// Makes a type readable from a text. Arguments: the type, what is expected, and how the text is read.
macro_rules! leaf {
    ($type:ty, $expected:expr, $read:expr) => {
        $crate::config::members::leaves!(
            $type,
            (),
            |(): &()| $expected,
            |(): &(), node: &$crate::config::Node| $read(node.text().ok_or(None)?),
            |_: &$type| String::new()
        );
    };
}
pub(crate) use leaf;

leaf!(Box<str>, "a text".to_owned(), |text: String| Ok(text.into()));

/// The bounds of a whole number.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    /// What it counts, for messages: empty, or for example " of bytes".
    pub(super) unit: &'static str,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The reason of these bounds; empty if it is obvious.
    pub(super) why: &'static str,
}

/// The bounds of a number that counts something.
pub(crate) const fn count(min: u64, max: u64) -> Number {
    Number { unit: "", min, max, why: "" }
}

pub(crate) const fn millis(min: u64, max: u64) -> Number {
    Number { unit: " of milliseconds", ..count(min, max) }
}

pub(super) const fn bytes(min: u64, max: u64) -> Number {
    Number { unit: " of bytes", ..count(min, max) }
}

pub(super) const fn candles(min: u64, max: u64) -> Number {
    Number { unit: " of candles", ..count(min, max) }
}

impl Number {
    /// The number in a value, within the bounds. On a machine with 32-bit words, a number that does not fit
    /// counts as 2 GiB, because nothing in memory is larger there.
    fn read<T: TryFrom<u64>>(&self, node: &Node) -> Result<T, Wrong> {
        let number = node.number().and_then(|digits| digits.parse().ok());
        let number = number.filter(|number| (self.min..=self.max).contains(number));
        let number = number.ok_or(None)?;
        number.try_into().or_else(|_| (isize::MAX as u64).try_into()).map_err(|_| None)
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number { unit, min, max, .. } = self;
        write!(f, "a whole number{unit} from {min} to {max}")?;
        match self.why {
            "" => Ok(()),
            why => write!(f, " ({why})"),
        }
    }
}

/// Implements values that are neither lists nor objects. Arguments: the types, their rule, the rule as text,
/// how a node is read, and how a value is printed.
macro_rules! leaves {
    ($($type:ty)+, $rule:ty, $expected:expr, $read:expr, $print:expr) => { $(
        impl $crate::config::values::KeyType for $type {
            type Rule = $rule;

            fn expected(rule: &$rule) -> String {
                $expected(rule)
            }

            fn read(
                rule: &$rule,
                node: &$crate::config::Node,
                _: &mut $crate::config::Report,
            ) -> Result<$type, $crate::config::values::Wrong> {
                $read(rule, node)
            }

            fn print(&mut self) -> String {
                $print(self)
            }
        }
    )+ };
}
pub(crate) use leaves;

leaves!(u16 u32 u64 usize i64, Number, Number::to_string, Number::read, Self::to_string);
leaves!(
    Duration,
    Number,
    Number::to_string,
    |rule: &Number, node| rule.read(node).map(Duration::from_millis),
    |time: &Duration| time.as_millis().to_string()
);
leaves!(
    Poll,
    Number,
    |rule: &Number| format!("{rule}, or \"auto\""),
    |rule: &Number, node: &Node| match node.text().as_deref() {
        Some("auto") => Ok(Poll::Auto),
        _ => rule.read(node).map(|ms| Poll::Every(Duration::from_millis(ms))),
    },
    |poll: &Poll| match poll {
        Poll::Every(time) => time.as_millis().to_string(),
        Poll::Auto => json::text("auto"),
    }
);
leaves!(
    bool,
    (),
    |(): &()| "true or false".to_string(),
    |(): &(), node: &Node| node.switch().ok_or(None),
    bool::to_string
);
// The digits may also be a text, because some JSON writers round numbers.
leaves!(u8 Decimal, TextForm<Self>, TextForm::told, TextForm::read_digits, Self::to_string);
leaves!(UnixMs, TextForm<Self>, TextForm::told, TextForm::read_digits, |time: &Self| {
    json::text(time)
});
// A single address is printed without the number of its bits.
leaves!(IpNet, TextForm<Self>, TextForm::told, TextForm::read, |it: &Self| match it.prefix_len()
    == it.max_prefix_len()
{
    true => json::text(it.addr()),
    false => json::text(it),
});
leaves!(
    String ListenAddress Data Url,
    TextForm<Self>,
    TextForm::told,
    TextForm::read,
    |value: &Self| json::text(value)
);
