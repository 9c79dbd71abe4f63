//! What may be wrong: with one item ([`Reject`]), or with a whole body ([`ReadError`]).
//!
//! Owns the words for it, for logs. It decides nothing.

use crate::time::UnixMs;
use std::fmt;

/// Why an item is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject<'a> {
    /// The market's id, where the item had a good one.
    pub id: Option<&'a str>,
    /// Which part of the item.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
    /// Open time of a candle, where that could be read.
    pub time: Option<UnixMs>,
}

/// Which part of an item is wrong, and what is.
pub(super) type Wrong = (&'static str, Fault);

/// What may be wrong with a part of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not there, and there is no item without it.
    Missing,
    /// An array where a number belongs, and the like.
    WrongType,
    /// Not a finite decimal number.
    NotANumber,
    /// Not a time of this era.
    NotATime,
    /// No UTF-8, or a name in another form than the exchange is known for.
    NotAText,
    /// Below zero.
    Negative,
    /// More digits or letters than any market has.
    TooLong,
}

/// Why a whole body is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not JSON, or at its top neither an array nor an object.
    Malformed {
        /// Byte of the body, counted from 0.
        at: u64,
        /// What should have stood there.
        expected: &'static str,
    },
    /// Nested deeper than anything an exchange sends.
    TooDeep {
        /// Byte of the body, counted from 0.
        at: u64,
    },
    /// One item is longer than the cap.
    ItemTooLong {
        /// In bytes.
        cap: usize,
    },
    /// What stands around the items is longer than the cap.
    EnvelopeTooLong {
        /// In bytes.
        cap: usize,
    },
    /// The body ended before its value did.
    CutShort,
    /// JSON, but not what was asked for.
    WrongShape {
        /// What the body should hold.
        expected: &'static str,
    },
    /// The exchange says why it does not answer.
    Refused {
        /// Its own code.
        code: String,
        /// Its own words.
        message: String,
        /// What that means.
        kind: RefusalKind,
    },
    /// An error status without a reason that could be read.
    Status(u16),
}

/// What a refusal means to the one who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// Too many requests: wait.
    RateLimited,
    /// Nothing is let in, whatever is asked: wait.
    Banned,
    /// No such market.
    UnknownMarket,
    /// Anything else.
    Other,
}

impl<'a> Reject<'a> {
    pub(super) fn new(id: Option<&'a str>, field: &'static str, fault: Fault) -> Reject<'a> {
        Reject {
            id,
            field,
            fault,
            time: None,
        }
    }
}

impl fmt::Display for Reject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.id {
            write!(f, "{}: ", id.escape_debug())?;
        }
        write!(f, "{} {}", self.field, self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Missing => "is missing",
            Fault::WrongType => "is of a wrong type",
            Fault::NotANumber => "is no finite decimal number",
            Fault::NotATime => "is no time",
            Fault::NotAText => "is no text of the known form",
            Fault::Negative => "is negative",
            Fault::TooLong => "is absurdly long",
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed { at, expected } => {
                write!(
                    f,
                    "the body is malformed: at byte {at}, {expected} was expected"
                )
            }
            ReadError::TooDeep { at } => write!(f, "the body is nested too deep at byte {at}"),
            ReadError::ItemTooLong { cap } => write!(f, "an item is longer than {cap} bytes"),
            ReadError::EnvelopeTooLong { cap } => {
                write!(f, "more than {cap} bytes stand around the items")
            }
            ReadError::CutShort => f.write_str("the body is cut short"),
            ReadError::WrongShape { expected } => write!(f, "the body is not {expected}"),
            ReadError::Refused { code, message, .. } => write!(f, "refused: {message} ({code})"),
            ReadError::Status(status) => write!(f, "status {status}"),
        }
    }
}

impl std::error::Error for ReadError {}
