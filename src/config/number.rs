//! Whole numbers: their unit and their bounds.

use super::json::Node;
use std::fmt::{self, Display};

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
    /// The reason of these bounds; empty if it is obvious.
    pub(super) why: &'static str,
}

/// The bounds of a whole number that need no reason.
#[rustfmt::skip]
pub(super) const fn number(unit: Unit, min: u64, max: u64) -> Number {
    Number { unit, min, max, why: "" }
}

impl Number {
    /// The number in a value, within the bounds.
    pub(super) fn read<T: TryFrom<u64>>(&self, node: &Node) -> Result<T, Option<String>> {
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
