//! Values that are neither lists nor objects: numbers, switches, and what has the form of a text.

use super::forms::{Data, ListenAddress, Poll, TextForm};
use super::json::{self, Node};
use super::network::Network;
use super::url::{EngineUrl, Url};
use super::values::Wrong;
use crate::decimal::Decimal;
use crate::time::UnixMs;
use std::fmt::{self, Display};
use std::time::Duration;

/// The bounds of a whole number.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    /// What it counts, as messages say it: empty, or " of bytes".
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
    /// The number in a value, within the bounds. Where a word has 32 bits, one that is too large for it
    /// counts as 2 GiB: nothing in memory is larger there.
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

/// Makes types values that are neither lists nor objects: the types, their rule, whether a list has each
/// once, the rule in words, how a node is read and how a value is printed.
macro_rules! leaves {
    ($($type:ty)+, $rule:ty, $is_unique:literal, $expected:expr, $read:expr, $print:expr) => { $(
        impl $crate::config::values::KeyType for $type {
            type Rule = $rule;
            const IS_UNIQUE: bool = $is_unique;

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

leaves!(u16 u32 u64 usize i64, Number, false, Number::to_string, Number::read, Self::to_string);
leaves!(
    Duration,
    Number,
    false,
    Number::to_string,
    |rule: &Number, node| rule.read(node).map(Duration::from_millis),
    |time: &Duration| time.as_millis().to_string()
);
leaves!(
    Poll,
    Number,
    false,
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
    false,
    |(): &()| "true or false".to_string(),
    |(): &(), node: &Node| node.switch().ok_or(None),
    bool::to_string
);
// Digits may also stand in a text: some writers of JSON round numbers.
leaves!(
    u8 Decimal,
    TextForm<Self>,
    false,
    |form: &TextForm<Self>| form.expected.to_string(),
    |form: &TextForm<Self>, node: &Node| {
        let digits = node.text().or(node.number().map(str::to_string));
        digits.and_then(|digits| form.parse(&digits).ok()).ok_or(None)
    },
    Self::to_string
);
leaves!(
    UnixMs,
    TextForm<Self>,
    false,
    |form: &TextForm<Self>| form.expected.to_string(),
    |form: &TextForm<Self>, node: &Node| {
        let text = node.text().or(node.number().map(str::to_string));
        form.parse(&text.ok_or(None)?).map_err(Some)
    },
    |time: &Self| json::text(&time.to_string())
);
leaves!(
    String ListenAddress Data Network Url EngineUrl,
    TextForm<Self>,
    true,
    |form: &TextForm<Self>| form.expected.to_string(),
    |form: &TextForm<Self>, node: &Node| form.parse(&node.text().ok_or(None)?).map_err(Some),
    |value: &Self| json::text(&value.to_string())
);
