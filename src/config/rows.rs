//! The rows: short forms of the keys that tables are made of.
//!
//! Owns one macro for each sort of value that lives in a field of its own, so that a row reads as
//! one line: whose, which field, its name in the file, what it may say, what it means.

use crate::decimal::Decimal;

/// A row for a whole number: owner, field, name, unit, bounds, phrase, reason of the bounds.
macro_rules! number {
    ($owner:ty, $field:ident, $name:expr, $unit:ident, $min:literal..=$max:literal, $about:expr) => {
        number!($owner, $field, $name, $unit, $min..=$max, $about, "")
    };
    ($owner:ty, $field:ident, $name:expr, $unit:ident, $min:literal..=$max:literal, $about:expr,
     $why:expr) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Number {
                unit: $crate::config::keys::Unit::$unit,
                min: $min,
                max: $max,
                why: $why,
                get: |owner: &$owner| $crate::config::keys::Quantity::number(&owner.$field),
                set: |owner: &mut $owner, number| {
                    owner.$field = $crate::config::keys::Quantity::of_number(number);
                },
            },
        }
    };
}
pub(super) use number;

/// A row for an object that lives in one field: owner, field, name, its table, phrase.
macro_rules! part {
    ($owner:ty, $field:ident, $name:expr, $keys:expr, $about:expr) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Part {
                expected: "an object",
                read: |owner: &mut $owner, node, report| {
                    $crate::config::keys::read_object(&mut owner.$field, $keys, node, report);
                },
                print: |owner: &$owner| $crate::config::keys::print_object(&owner.$field, $keys),
            },
        }
    };
}
pub(super) use part;

/// A row for a text: owner, field (with `?` where `null` is `None`), name, what is expected, the
/// form that reads it, phrase.
macro_rules! text {
    ($owner:ty, $field:ident, $name:literal, $expected:expr, $form:expr, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Text {
                expected: $expected,
                get: |owner: &$owner| Some(owner.$field.to_string()),
                set: |owner: &mut $owner, text| $form(text).map(|value| owner.$field = value),
                clear: None,
            },
        }
    };
    ($owner:ty, $field:ident?, $name:literal, $expected:expr, $form:expr, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Text {
                expected: $expected,
                get: |owner: &$owner| owner.$field.as_ref().map(ToString::to_string),
                set: |owner: &mut $owner, text| $form(text).map(|value| owner.$field = Some(value)),
                clear: Some(|owner: &mut $owner| owner.$field = None),
            },
        }
    };
}
pub(super) use text;

/// A row for a list of texts: owner, field, name, what each is, the form that reads it, phrase.
macro_rules! texts {
    ($owner:ty, $field:ident, $name:literal, $each:expr, $form:expr, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Texts {
                each: $each,
                parse: $form,
                get: |owner: &$owner| owner.$field.clone(),
                set: |owner: &mut $owner, texts| owner.$field = texts,
            },
        }
    };
}
pub(super) use texts;

/// A row for a switch: owner, field (with `?` where `null` is `None`), name, phrase.
macro_rules! switch {
    ($owner:ty, $field:ident, $name:literal, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Switch {
                nullable: false,
                get: |owner: &$owner| Some(owner.$field),
                set: |owner: &mut $owner, value| owner.$field = value.unwrap_or_default(),
            },
        }
    };
    ($owner:ty, $field:ident?, $name:literal, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Switch {
                nullable: true,
                get: |owner: &$owner| owner.$field,
                set: |owner: &mut $owner, value| owner.$field = value,
            },
        }
    };
}
pub(super) use switch;

/// A row for a decimal that may be `null`: owner, field, name, what is expected, which values are
/// good, phrase.
macro_rules! decimal {
    ($owner:ty, $field:ident, $name:literal, $expected:literal, $good:expr, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Decimal {
                expected: $expected,
                get: |owner: &$owner| owner.$field.clone(),
                set: |owner: &mut $owner, value| {
                    let good = value.as_ref().is_none_or($good);
                    owner.$field = value;
                    good
                },
            },
        }
    };
}
pub(super) use decimal;

/// A row for decimal places: owner, field, name, phrase.
macro_rules! places {
    ($owner:ty, $field:ident, $name:literal, $about:literal) => {
        $crate::config::keys::Key {
            name: $name,
            about: $about,
            kind: $crate::config::keys::Kind::Decimal {
                expected: "a whole number from 0 to 64",
                get: |owner: &$owner| owner.$field.map(|places| i64::from(places).into()),
                set: |owner: &mut $owner, value| {
                    owner.$field = value.as_ref().and_then($crate::config::rows::whole_places);
                    owner.$field.is_some() == value.is_some()
                },
            },
        }
    };
}
pub(super) use places;

/// Decimal places as a decimal says them.
pub(super) fn whole_places(value: &Decimal) -> Option<u8> {
    let places = value.to_string().parse().ok()?;
    (places <= 64).then_some(places)
}
