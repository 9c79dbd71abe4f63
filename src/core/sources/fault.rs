//! The faults of requests to exchanges: text for the log, and whom to blame.

use crate::exchange::{ReadError, RefusalKind};
use crate::http::{Fields, RetryAfter};
use crate::named::named;
use std::fmt;

/// Bytes of an unknown encoding's name that are shown: more than any name has.
const ENCODING_TOLD: usize = 40;

/// Why a request failed.
#[derive(Debug)]
pub enum Fault {
    /// The exchange was not reached, closed too early, or does not speak HTTP: how, in words.
    Transport(String),
    /// It took too long; what had not been done, if the request was never sent.
    Timeout(Option<&'static str>),
    /// The response has nothing of what was asked, or far too much: in words.
    Content(String),
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
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Transport(why) | Fault::Content(why) => f.write_str(why),
            Fault::Timeout(Some(what)) => write!(f, "{what}: no answer in time"),
            Fault::Timeout(None) => f.write_str("no answer in time"),
            Fault::Body { error, .. } => write!(f, "{error}"),
            Fault::Status { status, message, .. } => match message {
                Some(message) => write!(f, "status {status}: {message}"),
                None => write!(f, "status {status}"),
            },
        }
    }
}

named! {
    /// Whose fault a failure is, by the name in the log.
    pub enum Blame {
        /// The exchange's as a whole: nothing is requested for a while.
        Source "source"
        /// The exchange has banned this address: the same.
        Ban "ban"
        /// Too many requests: the same, and counted separately.
        RateLimit "rate_limit"
        /// This one request's.
        Call "call"
    }
}

impl Fault {
    /// That of a response which is not as HTTP has it, or too large.
    pub fn malformed(why: impl fmt::Display) -> Fault {
        Fault::Transport(format!("malformed answer: {why}"))
    }

    /// That of a response which ends too early.
    pub fn cut_short() -> Fault {
        Fault::Transport("the connection was closed before the answer's end".to_string())
    }

    /// That of a list without any item.
    pub fn empty() -> Fault {
        Fault::Content("the answer holds no item".to_string())
    }

    /// The fault of a response with these fields, whose body cannot be decoded.
    pub fn encoding(fields: Fields<'_>) -> Fault {
        let is_meant = |name: &[u8]| name.eq_ignore_ascii_case(b"content-encoding");
        let values = fields.filter(|(name, _)| is_meant(name));
        let values: Vec<&[u8]> = values.map(|(_, value)| value).collect();
        let all = values.join(&b", "[..]);
        let told = all[..all.len().min(ENCODING_TOLD)].escape_ascii();
        Fault::Transport(format!("the answer is encoded in \"{told}\", which cannot be read here"))
    }

    /// True if the exchange sent an error status, or took too long after the connection was open. Such a
    /// failure of a request for one market may concern that market alone.
    pub fn is_status_or_timeout(&self) -> bool {
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
            (_, Fault::Status { .. } | Fault::Body { .. } | Fault::Content(_)) => Blame::Call,
            (_, Fault::Transport(_) | Fault::Timeout(_)) => Blame::Source,
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
        assert_eq!(Fault::cut_short().blame(), Blame::Source);
        assert_eq!(Fault::empty().blame(), Blame::Call);
    }
}
