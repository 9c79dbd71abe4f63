//! Targets: path and query of a request, with placeholders.
//!
//! Owns the placeholders: `{id}`, and for candles `{interval}`, `{limit}` (rows of a page),
//! `{slots}` (as many rows as the range has), `{back}` (as many as there are from its begin until
//! now, for exchanges that send the newest alone), `{from}` and `{to}` (first and last open time).
//!
//! - `{id lower}`, `{id upper}`, `{id bare}`: the id in one case, or its letters and digits alone.
//! - `{from-}`, `{to+}`: one unit outside of the range, for exchanges that leave its ends out.
//! - `{from s}`, `{to+ iso}`: in this unit (`value::Unit`), if it is not that of the rows.
//!
//! A value is never searched for placeholders, and what an exchange has named is escaped.

use super::call::Call;
use super::value::Unit;
use crate::config::members::{Named, names, texts};
use crate::time::UnixMs;
use std::fmt::Write;

/// The longest target. Servers take 8 KiB.
const TARGET_BYTES: usize = 1000;

/// Path and query.
pub(super) struct TargetTemplate {
    /// The placeholders, each with the text in front of it.
    pieces: Vec<(Box<str>, Placeholder)>,
    /// What is behind the last one.
    rest: Box<str>,
}

/// What stands for a part of a target.
#[derive(Clone, Copy, Debug)]
struct Placeholder {
    name: PlaceholderName,
    /// Of an id: how its letters are written, and whether others are left out.
    case: fn(&u8) -> u8,
    is_bare: bool,
    /// Of a time: so many units later, in this unit.
    shift: i64,
    unit: Option<Unit>,
}

names! {
    /// The name of a placeholder.
    pub(super) enum PlaceholderName {
        Id "id"
        Interval "interval"
        Limit "limit"
        Slots "slots"
        Back "back"
        /// The first open time.
        From "from"
        /// The last open time.
        To "to"
    }
}

/// What the placeholders of candles depend on besides the call.
pub(super) struct CandlePlaceholders<'d> {
    pub(super) interval: &'d str,
    pub(super) page: i64,
    pub(super) unit: Unit,
}

texts!(TargetTemplate, "/v1/candles?market={id}");

impl TryFrom<String> for TargetTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<TargetTemplate, String> {
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
        if !text.starts_with('/') || text.starts_with("//") || text.len() > TARGET_BYTES {
            return Err(format!(
                "expected a path that starts with one \"/\", of at most {TARGET_BYTES} bytes"
            ));
        }
        let check = |text: &str| match text.chars().find(|it| !it.is_ascii() || !plain(*it as u8)) {
            Some(odd) => {
                Err(format!("expected the characters of a path and a query, found {odd:?}"))
            }
            None => Ok(text.into()),
        };
        let (mut pieces, mut rest) = (Vec::new(), &*text);
        while let Some((front, behind)) = rest.split_once('{') {
            let front = check(front)?;
            let (name, behind) =
                behind.split_once('}').ok_or("expected a \"}\" after the \"{\"")?;
            pieces.push((front, Placeholder::parse(name)?));
            rest = behind;
        }
        Ok(TargetTemplate { pieces, rest: check(rest)? })
    }
}

impl Placeholder {
    fn parse(text: &str) -> Result<Placeholder, String> {
        let unknown = || {
            let known = PlaceholderName::NAMES.join("}, {");
            format!("unknown placeholder {{{text}}}: expected one of {{{known}}}")
        };
        let (name, modifier) = text.split_once(' ').unwrap_or((text, ""));
        let (name, shift) = match (name.strip_suffix('+'), name.strip_suffix('-')) {
            (Some(name), _) => (name, 1),
            (_, Some(name)) => (name, -1),
            _ => (name, 0),
        };
        let name = PlaceholderName::named(name).ok_or_else(unknown)?;
        let is_time = matches!(name, PlaceholderName::From | PlaceholderName::To);
        let unit = Unit::named(modifier);
        if is_time && unit.is_none() && !modifier.is_empty() {
            let units = Unit::NAMES.join(", ");
            return Err(format!("expected one of {units} in {{{text}}}"));
        }
        let (as_is, lower, upper) = (u8::clone, u8::to_ascii_lowercase, u8::to_ascii_uppercase);
        let (case, is_bare): (fn(&u8) -> u8, bool) = match modifier {
            _ if is_time => (as_is, false),
            _ if shift != 0 => return Err(unknown()),
            "" => (as_is, false),
            _ if name != PlaceholderName::Id => return Err(unknown()),
            "bare" => (as_is, true),
            "lower" => (lower, false),
            "upper" => (upper, false),
            "bare lower" => (lower, true),
            "bare upper" => (upper, true),
            _ => return Err(unknown()),
        };
        Ok(Placeholder { name, case, is_bare, shift, unit })
    }
}

impl TargetTemplate {
    /// Its placeholders.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = PlaceholderName> {
        self.pieces.iter().map(|(_, placeholder)| placeholder.name)
    }

    /// The target of this call's request. `rows` is for calls for candles.
    pub(super) fn fill(&self, call: &Call<'_>, rows: &CandlePlaceholders<'_>) -> String {
        let mut out = String::new();
        for (text, placeholder) in &self.pieces {
            out.push_str(text);
            placeholder.write(call, rows, &mut out);
        }
        out + &self.rest
    }
}

impl Placeholder {
    fn write(self, call: &Call<'_>, rows: &CandlePlaceholders<'_>, out: &mut String) {
        use PlaceholderName::*;
        let number = match (self.name, *call) {
            (Id, Call::Ticker { id } | Call::Stats { id } | Call::Candles { id, .. }) => {
                return escape(id, self.case, self.is_bare, out);
            }
            (Interval, Call::Candles { .. }) => return out.push_str(rows.interval),
            (Limit, Call::Candles { .. }) => rows.page,
            (Slots | Back, Call::Candles { interval, from, to, now, .. }) => {
                let last = if self.name == Back { now } else { to };
                let [first, last] = [from, last].map(|time| interval.slot_of(time));
                (last.saturating_sub(first) + 1).clamp(1, rows.page)
            }
            (From | To, Call::Candles { from, to, .. }) => {
                let time = if self.name == To { to } else { from };
                let unit = self.unit.unwrap_or(rows.unit);
                return unit.write(UnixMs(time.0.max(0)), self.shift, out);
            }
            // The check of the file keeps each placeholder to the calls that have its value.
            _ => return,
        };
        write!(out, "{number}").expect("a string takes everything");
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3): ids come from the exchange, and
/// must not be able to end the request line.
fn escape(id: &str, case: fn(&u8) -> u8, is_bare: bool, out: &mut String) {
    let is_kept = |byte: &&u8| !is_bare || byte.is_ascii_alphanumeric();
    for byte in id.as_bytes().iter().filter(is_kept).map(case) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}
