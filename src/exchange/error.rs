//! Errors: of one item ([`Reject`]), or of a whole body ([`ReadError`]).
//!
//! Owns the texts of these errors for the log.

use crate::named::named;
use crate::time::UnixMs;
use std::fmt;

/// Why an item is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject<'a> {
    /// The market's id, if the item had a valid one.
    pub id: Option<&'a str>,
    /// The part of the item.
    pub field: &'static str,
    /// What is wrong with that part.
    pub fault: ItemFault,
    /// The open time of a candle, if it was readable.
    pub time: Option<UnixMs>,
    /// What was found and what the dialect expects, if the whole item has the wrong type.
    pub shapes: Option<[&'static str; 2]>,
}

/// The wrong part of an item, and the fault.
pub(super) type WrongPart = (&'static str, ItemFault);

named! {
    /// What is wrong with a part of an item.
    pub enum ItemFault {
        /// Missing, though required.
        Missing "is missing"
        /// Of another type, such as an array where a number belongs.
        WrongType "has the wrong type"
        /// Not a finite decimal number.
        NotANumber "is not a finite decimal number"
        /// Not a time between 1970 and 9999.
        NotATime "is not a time"
        /// Not UTF-8, or a name in an unknown form.
        NotAText "is not text in the known form"
        /// Below zero.
        Negative "is negative"
        /// More digits or letters than any market has.
        TooLong "is too long"
    }
}

/// Why a whole body is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not JSON, or neither an array nor an object at its top, or nested too deeply.
    Malformed {
        /// The byte of the body, from 0.
        at: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The part outside of the items is longer than the limit.
    EnvelopeTooLong {
        /// In bytes.
        cap: usize,
    },
    /// The body ended before its value did.
    CutShort,
    /// JSON, but not what was requested.
    WrongShape {
        /// What an item of the body should be.
        expected: &'static str,
    },
    /// The exchange refuses the request and says why.
    Refused {
        /// Its code.
        code: String,
        /// Its message.
        message: String,
        /// What the refusal means.
        kind: RefusalKind,
    },
    /// A list has more pages than its dialect permits.
    TooManyPages {
        /// The most permitted pages.
        most: u32,
    },
    /// The cursor of the next page was the cursor of an earlier one, or is neither a text nor a number.
    WrongCursor,
    /// The head has no date, or an old one, and the exchange has no other clock.
    NoDate,
    /// An error status without a readable reason.
    Status(u16),
}

/// What a refusal means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// Too many requests: wait.
    RateLimited,
    /// Every request is refused: wait.
    Banned,
    /// No such market.
    UnknownMarket,
    /// Anything else.
    Other,
}

impl<'a> Reject<'a> {
    pub(super) fn new(id: Option<&'a str>, field: &'static str, fault: ItemFault) -> Reject<'a> {
        Reject { id, field, fault, time: None, shapes: None }
    }
}

impl fmt::Display for Reject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.id {
            write!(f, "{}: ", id.escape_debug())?;
        }
        write!(f, "{} {}", self.field, self.fault.name())?;
        match self.shapes {
            Some([found, expected]) => write!(f, ": {found}, where `fields` say {expected}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed { at, expected } => {
                write!(f, "malformed body at byte {at}: expected {expected}")
            }
            ReadError::EnvelopeTooLong { cap } => {
                write!(f, "more than {cap} bytes outside of the items")
            }
            ReadError::CutShort => f.write_str("body ended early"),
            ReadError::WrongShape { expected } => {
                write!(f, "no {expected} where the body should have one")
            }
            ReadError::Refused { code, message, .. } => write!(f, "refused: {message} ({code})"),
            ReadError::TooManyPages { most } => write!(f, "more than {most} pages"),
            ReadError::WrongCursor => {
                f.write_str("the cursor of the next page repeats, or is none")
            }
            ReadError::NoDate => f.write_str("no current `Date` in the answer's head"),
            ReadError::Status(status) => write!(f, "status {status}"),
        }
    }
}

impl std::error::Error for ReadError {}
