//! The faults of requests to exchanges: text for the log, and whom to blame.

use crate::config::Secret;
use crate::core::upstream::Ended;
use crate::exchange::{ReadError, RefusalKind};
use crate::http::{Fields, RetryAfter};
use crate::named::named;
use std::fmt;

/// Bytes of an unknown encoding's name that are shown: more than any name has.
const ENCODING_TOLD: usize = 40;

/// Why a request failed.
#[derive(Debug)]
pub enum Fault {
    /// The connection has ended, or was never open, or the exchange took too long.
    Ended(Ended),
    /// The exchange closed too early, or does not speak HTTP: how, in words.
    Transport(String),
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
            Fault::Ended(ended) => write!(f, "{ended}"),
            Fault::Transport(why) | Fault::Content(why) => f.write_str(why),
            Fault::Body { error, .. } => write!(f, "{error}"),
            Fault::Status { status, message, .. } => match message {
                Some(message) => write!(f, "status {status}: {message}"),
                None => write!(f, "status {status}"),
            },
        }
    }
}

named! {
    /// What a failure concerns, by the name in the log.
    pub enum Blame {
        /// Every request of its kind.
        Kind "kind"
        /// Every request to the host: it is not reached, or has banned this address.
        Host "host"
        /// Every request of its kind, and in the end every one to the host: there were too many.
        RateLimit "rate_limit"
        /// One market, unless others fail as well.
        Market "market"
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

    /// That of a body that begins like this, and cannot be read. What is not JSON at all is told as what it
    /// is.
    pub fn body(error: ReadError, begin: &[u8], retry_after: Option<RetryAfter>) -> Fault {
        let what = match begin {
            _ if matches!(error, ReadError::Refused { .. } | ReadError::NoDate) => None,
            [] => return Fault::Content("the answer is empty".to_string()),
            [0xef, 0xbb, 0xbf, ..] => Some("text behind a byte order mark"),
            [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [_, 0, ..] | [0, ..] => Some("text in UTF-16"),
            _ => match begin.trim_ascii_start() {
                [b'<', ..] => Some("a page of HTML or XML"),
                [b'{' | b'[', ..] | [] => None,
                _ => Some("plain text"),
            },
        };
        match what {
            Some(what) => {
                let begin = begin.escape_ascii();
                Fault::Content(format!("the answer is {what}, which begins with \"{begin}\""))
            }
            None => Fault::Body { error, retry_after },
        }
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

    /// The same without the key of the source, which an exchange may repeat.
    pub fn without(mut self, key: Option<&Secret>) -> Fault {
        let hide = |text: &mut String| {
            if let Some(key) = key {
                *text = key.hide_in(text);
            }
        };
        match &mut self {
            Fault::Transport(text) | Fault::Content(text) => hide(text),
            Fault::Body { error: ReadError::Refused { code, message, .. }, .. } => {
                hide(code);
                hide(message);
            }
            Fault::Status { message, .. } => message.iter_mut().for_each(hide),
            Fault::Ended(_) | Fault::Body { .. } => {}
        }
        self
    }

    /// True if the exchange does not know the market.
    pub fn is_unknown_market(&self) -> bool {
        self.kind() == RefusalKind::UnknownMarket
    }

    /// True if the exchange has answered that it will not serve this request.
    pub fn is_refusal(&self) -> bool {
        match self {
            Fault::Body { error, .. } => matches!(error, ReadError::Refused { .. }),
            Fault::Status { status, .. } => (400..500).contains(status),
            Fault::Ended(_) | Fault::Transport(_) | Fault::Content(_) => false,
        }
    }

    /// True if something has taken too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Fault::Ended(Ended { why: None, .. }))
    }

    /// The fault without what varies from one response to the next. Faults with the same code are the same
    /// in the log.
    pub fn code(&self) -> String {
        match self {
            Fault::Ended(_) if self.is_timeout() => "timeout".to_string(),
            Fault::Ended(ended) if !ended.was_open => "unreached".to_string(),
            Fault::Ended(_) | Fault::Transport(_) => "transport".to_string(),
            Fault::Content(_) => "content".to_string(),
            Fault::Body { error: ReadError::Refused { code, .. }, .. } => format!("refused {code}"),
            Fault::Body { .. } => "body".to_string(),
            Fault::Status { status, .. } => format!("status {status}"),
        }
    }

    /// True if another address of the exchange may do better: this one is not reached, breaks off, says
    /// nothing or fails.
    pub fn is_of_address(&self) -> bool {
        let is_failure = match self {
            Fault::Ended(_) | Fault::Transport(_) => true,
            Fault::Status { status, .. } => *status >= 500,
            Fault::Content(_) | Fault::Body { .. } => false,
        };
        is_failure && self.kind() == RefusalKind::Other
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

    /// What it concerns. If that may be one market alone (`may_be_market`), an error status, a body or a
    /// response that takes too long is blamed on that.
    pub fn blame(&self, may_be_market: bool) -> Blame {
        match (self.kind(), self) {
            (RefusalKind::RateLimited, _) => Blame::RateLimit,
            (RefusalKind::Banned, _) => Blame::Host,
            (_, Fault::Ended(ended)) if !ended.was_open => Blame::Host,
            (_, Fault::Ended(_)) if !self.is_timeout() => Blame::Kind,
            (_, Fault::Transport(_)) => Blame::Kind,
            _ if !may_be_market || self.retry_after().is_some() => Blame::Kind,
            _ => Blame::Market,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(was_open: bool) -> Fault {
        Fault::Ended(Ended { was_open, what: "cannot connect".to_string(), why: None })
    }

    #[test]
    fn what_a_refusal_means_decides_before_its_status_and_before_its_body() {
        let check = |status: u16, kind: RefusalKind, expected: Blame| {
            let fault = Fault::Status { status, kind, retry_after: None, message: None };
            assert_eq!(fault.blame(true), expected, "{fault}");
            let refused =
                || ReadError::Refused { code: String::new(), message: String::new(), kind };
            let body = Fault::Body { error: refused(), retry_after: None };
            assert_eq!(body.blame(true), expected, "{body}");
            let of_all = match expected {
                Blame::Market => Blame::Kind,
                other => other,
            };
            assert_eq!((fault.blame(false), body.blame(false)), (of_all, of_all));
            let retry_after = Some(RetryAfter::Seconds(5));
            let asks = Fault::Body { error: refused(), retry_after };
            assert_eq!(asks.blame(true), of_all, "an exchange that asks for a pause means all");
        };
        check(429, RefusalKind::RateLimited, Blame::RateLimit);
        check(400, RefusalKind::RateLimited, Blame::RateLimit);
        check(503, RefusalKind::RateLimited, Blame::RateLimit);
        check(403, RefusalKind::Banned, Blame::Host);
        check(400, RefusalKind::UnknownMarket, Blame::Market);
        check(404, RefusalKind::Other, Blame::Market);
        check(500, RefusalKind::Other, Blame::Market);
        assert_eq!(Fault::cut_short().blame(true), Blame::Kind);
        assert_eq!(late(false).blame(true), Blame::Host);
        assert_eq!(late(true).blame(true), Blame::Market);
        assert_eq!(Fault::empty().blame(true), Blame::Market);
    }

    #[test]
    fn texts_that_vary_are_the_same_fault() {
        let status = |status: u16, message: &str| Fault::Status {
            status,
            kind: RefusalKind::Other,
            retry_after: None,
            message: Some(message.to_string()),
        };
        assert_eq!(status(503, "request 1").code(), status(503, "request 2").code());
        assert_ne!(status(503, "").code(), status(500, "").code());
        let refused = |code: &str, message: &str| Fault::Body {
            error: ReadError::Refused {
                code: code.to_string(),
                message: message.to_string(),
                kind: RefusalKind::Other,
            },
            retry_after: None,
        };
        assert_eq!(refused("50001", "id 1").code(), refused("50001", "id 2").code());
        assert_ne!(refused("50001", "").code(), refused("50011", "").code());
    }

    #[test]
    fn an_address_is_at_fault_for_what_another_may_do_better() {
        let check = |status: u16, kind: RefusalKind, expected: bool| {
            let fault = Fault::Status { status, kind, retry_after: None, message: None };
            assert_eq!(fault.is_of_address(), expected, "{fault}");
        };
        check(503, RefusalKind::Other, true);
        check(503, RefusalKind::RateLimited, false);
        check(403, RefusalKind::Banned, false);
        check(404, RefusalKind::Other, false);
        assert!(Fault::cut_short().is_of_address());
        assert!(late(true).is_of_address());
        assert!(!Fault::empty().is_of_address());
    }

    #[test]
    fn what_is_not_json_is_told_as_what_it_is() {
        let check = |begin: &[u8], expected: &str| {
            let error = ReadError::CutShort;
            assert_eq!(Fault::body(error.clone(), begin, None).to_string(), expected);
        };
        check(b"", "the answer is empty");
        let page = "the answer is a page of HTML or XML, which begins with \"\\n<html>\"";
        check(b"\n<html>", page);
        let mark =
            "the answer is text behind a byte order mark, which begins with \"\\xef\\xbb\\xbf{\"";
        check(b"\xef\xbb\xbf{", mark);
        check(
            b"\xff\xfe{\0",
            "the answer is text in UTF-16, which begins with \"\\xff\\xfe{\\x00\"",
        );
        check(b"{\0", "the answer is text in UTF-16, which begins with \"{\\x00\"");
        check(b"Sorry", "the answer is plain text, which begins with \"Sorry\"");
        check(b" {", &ReadError::CutShort.to_string());
    }
}
