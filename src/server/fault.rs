//! Why a request to an exchange failed, in words, and what that says about.

use super::dial::{Broken, Refusal};
use crate::exchange::{ReadError, RefusalKind};
use crate::http::{BodyError, ResponseError, RetryAfter};
use std::fmt;

/// Why a request failed.
#[derive(Debug)]
pub enum Fault {
    /// The name has no addresses.
    Resolve(String),
    /// No address led to a connection: what could not be done with the last one, and why.
    Dial(&'static str, Broken),
    /// The proxy does not let us through.
    Proxy(Refusal),
    /// The connection broke.
    Broken(Broken),
    /// The exchange closed before the answer's end.
    CutShort,
    /// It took too long; what could not be done so long, where it never came to the request.
    Timeout(Option<&'static str>),
    /// The answer's head is malformed.
    Head(ResponseError),
    /// The answer's framing is malformed, or it is too large.
    Framing(BodyError),
    /// The body is not what this exchange sends, or says that the request failed.
    Body(ReadError),
    /// A status other than success.
    Status {
        /// The status.
        status: u16,
        /// How long to wait, if the exchange said so.
        retry_after: Option<RetryAfter>,
        /// What the body said, if that could be read.
        message: Option<String>,
    },
    /// A list without any item.
    Empty,
    /// More items than there are slots or markets to be told of.
    TooMany,
    /// A candle without a time: nobody knows which one it is.
    Undated,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Resolve(why) => f.write_str(why),
            Fault::Dial(what, why) => write!(f, "{what}: {why}"),
            Fault::Proxy(why) => write!(f, "no tunnel through the proxy: {why}"),
            Fault::Broken(why) => write!(f, "connection lost: {why}"),
            Fault::CutShort => f.write_str("the connection was closed before the answer's end"),
            Fault::Timeout(Some(what)) => write!(f, "{what}: no answer in time"),
            Fault::Timeout(None) => f.write_str("no answer in time"),
            Fault::Head(error) => write!(f, "malformed answer: {error}"),
            Fault::Framing(error) => write!(f, "malformed answer: {error}"),
            Fault::Body(error) => write!(f, "{error}"),
            Fault::Status {
                status, message, ..
            } => match message {
                Some(message) => write!(f, "status {status}: {message}"),
                None => write!(f, "status {status}"),
            },
            Fault::Empty => f.write_str("the answer holds no item"),
            Fault::TooMany => f.write_str("the answer holds the same items again and again"),
            Fault::Undated => f.write_str("a candle of the answer has no time"),
        }
    }
}

/// What a fault says about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The exchange as a whole: ask nothing of it for a while.
    Source,
    /// It refuses to be asked so often: the same, and counted apart.
    RateLimit,
    /// This one request.
    Call,
}

impl Fault {
    /// Whether the exchange could be reached, and answered, or took too long to.
    pub fn is_answer(&self) -> bool {
        matches!(self, Fault::Status { .. } | Fault::Timeout(None))
    }

    /// What this fault says about. 403 is what firewalls in front of exchanges send for too many
    /// requests, 418 what Binance sends for a ban.
    pub fn blame(&self) -> Blame {
        match self {
            Fault::Status { status, .. } => match status {
                403 | 418 | 429 => Blame::RateLimit,
                500..=599 => Blame::Source,
                _ => Blame::Call,
            },
            Fault::Body(ReadError::Refused {
                kind: RefusalKind::RateLimited,
                ..
            }) => Blame::RateLimit,
            Fault::Body(_) | Fault::Empty | Fault::TooMany | Fault::Undated => Blame::Call,
            _ => Blame::Source,
        }
    }
}
