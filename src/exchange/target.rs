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
use crate::config::members::{Named, texts};
use crate::time::UnixMs;
use std::fmt::{self, Write};

/// The longest target. Servers take 8 KiB.
const TARGET_BYTES: usize = 1000;

/// Path and query.
pub(super) struct Target(Vec<Piece>);

enum Piece {
    Plain(Box<str>),
    Value(Placeholder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    Id {
        case: Case,
        bare: bool,
    },
    Interval,
    Limit,
    Slots,
    Back,
    /// The first or the last open time, so many units later, in this unit.
    Time {
        last: bool,
        shift: i64,
        unit: Option<Unit>,
    },
}

/// How the letters of an id are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    AsIs,
    Lower,
    Upper,
}

/// What the placeholders of candles depend on besides the call.
pub(super) struct Rows<'d> {
    pub(super) interval: &'d str,
    pub(super) page: usize,
    pub(super) unit: Unit,
}

texts!(Target, "/v1/candles?market={id}");

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Target, String> {
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
        if !text.starts_with('/') || text.starts_with("//") || text.len() > TARGET_BYTES {
            return Err(format!(
                "expected a path that starts with one \"/\", of at most {TARGET_BYTES} bytes"
            ));
        }
        let (mut pieces, mut rest) = (Vec::new(), &*text);
        while !rest.is_empty() {
            let (front, behind) = rest.split_once('{').unwrap_or((rest, "}"));
            if let Some(wrong) = front.chars().find(|it| !it.is_ascii() || !plain(*it as u8)) {
                return Err(format!(
                    "expected the characters of a path and a query, found {wrong:?}"
                ));
            }
            pieces.push(Piece::Plain(front.into()));
            let is_last = front.len() == rest.len();
            let (name, behind) =
                behind.split_once('}').ok_or("expected a \"}\" after the \"{\"")?;
            rest = behind;
            if !is_last {
                pieces.push(Piece::Value(Placeholder::parse(name)?));
            }
        }
        Ok(Target(pieces))
    }
}

impl Placeholder {
    fn parse(text: &str) -> Result<Placeholder, String> {
        let unknown = || {
            let known = "{id}, {interval}, {limit}, {slots}, {back}, {from}, {to}";
            format!("unknown placeholder {{{text}}}: expected one of {known}")
        };
        let (name, modifier) = text.split_once(' ').unwrap_or((text, ""));
        let time = |last| {
            let shift = match &name[if last { 2 } else { 4 }..] {
                "" => 0,
                "+" => 1,
                "-" => -1,
                _ => return Err(unknown()),
            };
            let unit = Unit::named(modifier);
            if unit.is_none() && !modifier.is_empty() {
                let units = Unit::NAMES.join(", ");
                return Err(format!("expected one of {units} in {{{text}}}"));
            }
            Ok(Placeholder::Time { last, shift, unit })
        };
        let id = |case, bare| Ok(Placeholder::Id { case, bare });
        match (name, modifier) {
            ("interval", "") => Ok(Placeholder::Interval),
            ("limit", "") => Ok(Placeholder::Limit),
            ("slots", "") => Ok(Placeholder::Slots),
            ("back", "") => Ok(Placeholder::Back),
            ("id", "") => id(Case::AsIs, false),
            ("id", "bare") => id(Case::AsIs, true),
            ("id", "lower") => id(Case::Lower, false),
            ("id", "upper") => id(Case::Upper, false),
            ("id", "bare lower") => id(Case::Lower, true),
            ("id", "bare upper") => id(Case::Upper, true),
            (name, _) if name.starts_with("from") => time(false),
            (name, _) if name.starts_with("to") => time(true),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Placeholder::Id { .. } => "{id}",
            Placeholder::Interval => "{interval}",
            Placeholder::Limit => "{limit}",
            Placeholder::Slots => "{slots}",
            Placeholder::Back => "{back}",
            Placeholder::Time { last: false, .. } => "{from}",
            Placeholder::Time { last: true, .. } => "{to}",
        })
    }
}

impl Target {
    pub(super) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Plain(_) => None,
            Piece::Value(placeholder) => Some(*placeholder),
        })
    }

    /// The target of this call's request. `rows` is for calls for candles.
    pub(super) fn of(&self, call: &Call<'_>, rows: &Rows<'_>) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Value(placeholder) => placeholder.write(call, rows, &mut out),
            }
        }
        out
    }
}

impl Placeholder {
    fn write(self, call: &Call<'_>, rows: &Rows<'_>, out: &mut String) {
        let most = |limit: usize| limit.clamp(1, rows.page) as i64;
        match (self, *call) {
            (
                Placeholder::Id { case, bare },
                Call::Ticker { id } | Call::Stats { id } | Call::Candles { id, .. },
            ) => escape(id, case, bare, out),
            (Placeholder::Interval, Call::Candles { .. }) => out.push_str(rows.interval),
            (Placeholder::Limit, Call::Candles { limit, .. }) => number(most(limit), out),
            (
                Placeholder::Slots | Placeholder::Back,
                Call::Candles { interval, from, to, limit, now, .. },
            ) => {
                let is_back = self == Placeholder::Back;
                let last = if is_back { now } else { to };
                let [first, last] = [from, last].map(|time| interval.slot_of(time));
                let slots = last.saturating_sub(first) + 1;
                let most = most(if is_back { rows.page } else { limit });
                number(slots.clamp(1, most), out);
            }
            (Placeholder::Time { last, shift, unit }, Call::Candles { from, to, .. }) => {
                let time = if last { to } else { from };
                let unit = unit.unwrap_or(rows.unit);
                unit.write(UnixMs(time.0.max(0)), shift, out);
            }
            // The check of the file keeps each placeholder to the calls that have its value.
            _ => {}
        }
    }
}

fn number(number: i64, out: &mut String) {
    write!(out, "{number}").expect("a string takes everything");
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3): ids come from the exchange, and
/// must not be able to end the request line.
fn escape(id: &str, case: Case, bare: bool, out: &mut String) {
    let is_kept = |byte: &u8| !bare || byte.is_ascii_alphanumeric();
    for byte in id.bytes().filter(is_kept) {
        let byte = match case {
            Case::AsIs => byte,
            Case::Lower => byte.to_ascii_lowercase(),
            Case::Upper => byte.to_ascii_uppercase(),
        };
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}
