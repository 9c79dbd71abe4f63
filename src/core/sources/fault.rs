//! Why a request to an exchange failed, in words, and whose fault that is.

use crate::core::Broken;
use crate::exchange::{ReadError, RefusalKind};
use crate::http::{Fields, RetryAfter};
use std::fmt;

/// Bytes of an unknown encoding's name that are shown: more than any name has.
const ENCODING_TOLD: usize = 40;

/// Why a request failed.
#[derive(Debug)]
pub enum Fault {
    /// The name has no addresses.
    Resolve(String),
    /// No address could be connected to: what failed with the last one, and why.
    Connect(&'static str, Broken),
    /// The proxy opens no tunnel: why.
    Proxy(String),
    /// The connection broke.
    Broken(Broken),
    /// The exchange closed before the end of the response.
    CutShort,
    /// It took too long; what had not been done, if the request was never sent.
    Timeout(Option<&'static str>),
    /// The head, the framing or the compression of the response is malformed, or it is too large: what is
    /// wrong with it.
    Malformed(String),
    /// The body has an encoding that cannot be decoded: its name.
    Encoding(String),
    /// The body is not what this exchange sends, or says that the request failed.
    Body {
        /// What is wrong with it, or what it says.
        error: ReadError,
        /// How long to wait, if the exchange said so: some refuse with status 200.
        retry_after: Option<RetryAfter>,
    },
    /// A status other than success.
    Status {
        /// The status.
        status: u16,
        /// What it means, together with what the body said.
        kind: RefusalKind,
        /// How long to wait, if the exchange said so.
        retry_after: Option<RetryAfter>,
        /// What the body said, if that could be read.
        message: Option<String>,
    },
    /// A list without any item.
    Empty,
    /// No item could be read: why the first could not.
    AllRefused(String),
    /// More items than there are slots or markets.
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Resolve(why) => f.write_str(why),
            Fault::Connect(what, why) => write!(f, "{what}: {why}"),
            Fault::Proxy(why) => write!(f, "no tunnel through the proxy: {why}"),
            Fault::Broken(why) => write!(f, "connection lost: {why}"),
            Fault::CutShort => f.write_str("the connection was closed before the answer's end"),
            Fault::Timeout(Some(what)) => write!(f, "{what}: no answer in time"),
            Fault::Timeout(None) => f.write_str("no answer in time"),
            Fault::Malformed(why) => write!(f, "malformed answer: {why}"),
            Fault::Encoding(name) => {
                write!(f, "the answer is encoded in \"{name}\", which cannot be read here")
            }
            Fault::Body { error, .. } => write!(f, "{error}"),
            Fault::Status { status, message, .. } => match message {
                Some(message) => write!(f, "status {status}: {message}"),
                None => write!(f, "status {status}"),
            },
            Fault::Empty => f.write_str("the answer holds no item"),
            Fault::AllRefused(first) => write!(f, "no item can be read, the first: {first}"),
            Fault::TooMany => f.write_str("the answer holds the same items again and again"),
        }
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The exchange's as a whole: nothing is requested for a while.
    Source,
    /// The exchange has banned this address: the same.
    Ban,
    /// Too many requests: the same, and counted separately.
    RateLimit,
    /// This one request's.
    Call,
}

impl Blame {
    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Blame::Source => "source",
            Blame::Ban => "ban",
            Blame::RateLimit => "rate_limit",
            Blame::Call => "call",
        }
    }
}

impl Fault {
    /// That of a response which is not as HTTP has it.
    pub fn malformed(why: impl fmt::Display) -> Fault {
        Fault::Malformed(why.to_string())
    }

    /// The fault of a response with these fields, whose body cannot be decoded.
    pub fn encoding(fields: Fields<'_>) -> Fault {
        let is_meant = |name: &[u8]| name.eq_ignore_ascii_case(b"content-encoding");
        let values = fields.filter(|(name, _)| is_meant(name));
        let values: Vec<&[u8]> = values.map(|(_, value)| value).collect();
        let all = values.join(&b", "[..]);
        let told = &all[..all.len().min(ENCODING_TOLD)];
        Fault::Encoding(told.escape_ascii().to_string())
    }

    /// True if the exchange was reached, and responded or took too long to.
    pub fn is_answer(&self) -> bool {
        matches!(self, Fault::Status { .. } | Fault::Timeout(None))
    }

    /// How long the exchange asks to wait.
    pub fn retry_after(&self) -> Option<RetryAfter> {
        match self {
            Fault::Status { retry_after, .. } | Fault::Body { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What it means, if the exchange has said so.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Fault::Status { kind, .. } => *kind,
            Fault::Body { error: ReadError::Refused { kind, .. }, .. } => *kind,
            _ => RefusalKind::Other,
        }
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match (self.kind(), self) {
            (RefusalKind::RateLimited, _) => Blame::RateLimit,
            (RefusalKind::Banned, _) => Blame::Ban,
            (_, Fault::Status { status: 500..=599, .. }) => Blame::Source,
            (
                _,
                Fault::Status { .. }
                | Fault::Body { .. }
                | Fault::Empty
                | Fault::AllRefused(_)
                | Fault::TooMany,
            ) => Blame::Call,
            _ => Blame::Source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refusal_means_decides_before_its_status_and_before_its_body() {
        let check = |status: u16, kind: RefusalKind, expected: Blame| {
            let fault = Fault::Status { status, kind, retry_after: None, message: None };
            assert_eq!(fault.blame(), expected, "{fault}");
            let body = Fault::Body {
                error: ReadError::Refused { code: String::new(), message: String::new(), kind },
                retry_after: None,
            };
            let hidden = match expected {
                Blame::Source => Blame::Call,
                other => other,
            };
            assert_eq!(body.blame(), hidden, "{body}");
        };
        check(429, RefusalKind::RateLimited, Blame::RateLimit);
        check(400, RefusalKind::RateLimited, Blame::RateLimit);
        check(503, RefusalKind::RateLimited, Blame::RateLimit);
        check(403, RefusalKind::Banned, Blame::Ban);
        check(400, RefusalKind::UnknownMarket, Blame::Call);
        check(404, RefusalKind::Other, Blame::Call);
        check(500, RefusalKind::Other, Blame::Source);
        assert_eq!(Fault::CutShort.blame(), Blame::Source);
        assert_eq!(Fault::Empty.blame(), Blame::Call);
    }
}
