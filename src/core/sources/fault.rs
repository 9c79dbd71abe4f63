//! The faults of requests to exchanges: text for the log, and whom to blame.

use crate::config::Secret;
use crate::core::upstream::Ended;
use crate::exchange::{ReadError, RefusalKind};
use crate::http::{Fields, RetryAfter};
use crate::named::named;
use crate::time::UnixMs;
use std::fmt;
use std::time::Duration;

/// Bytes of an unknown encoding's name that are shown: more than any name has.
const ENCODING_TOLD: usize = 40;

/// The code of a request that has taken too long.
const TIMEOUT: &str = "timeout";

/// Why a request failed.
#[derive(Debug)]
pub struct Fault {
    cause: Cause,
    /// What the fault means, if the exchange has said so.
    pub kind: RefusalKind,
    /// How long the exchange asks to wait.
    pub retry_after: Option<RetryAfter>,
    /// The fault without what varies from one response to the next. Faults with the same code are the same
    /// in the log.
    pub code: String,
    /// The fault in words.
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    /// No address has led to an open connection.
    Unreached,
    /// The response was not complete in time on an open connection, or the request was not, as the exchange
    /// says (status 408).
    Late,
    /// The exchange closed too early, does not speak HTTP, or sends too much or an encoding that is unknown;
    /// or the connection failed.
    Transport,
    /// The response is not what this exchange sends, has nothing of what was asked, or far too much.
    Content,
    /// The status is one of success, but the body says that the request failed.
    Refused,
    /// Another status than success and 408.
    Status(u16),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

named! {
    /// What a failure concerns, by the name in the log.
    pub enum Blame {
        /// Every request of its kind.
        Kind "kind"
        /// Every request to the host: it is not reached, or has banned this address.
        Host "host"
        /// Every request of its kind: there were too many. After a second refusal in a row, every request to
        /// the host.
        RateLimit "rate_limit"
        /// One market, unless others fail as well.
        Market "market"
    }
}

impl Fault {
    fn new(cause: Cause, code: impl Into<String>, text: impl Into<String>) -> Fault {
        let (kind, retry_after) = (RefusalKind::Other, None);
        Fault { cause, kind, retry_after, code: code.into(), text: text.into() }
    }

    /// The fault of a connection that has ended.
    pub fn ended(ended: &Ended) -> Fault {
        let (cause, code) = match (ended.was_open, &ended.why) {
            (false, Some(_)) => (Cause::Unreached, "unreached"),
            (false, None) => (Cause::Unreached, TIMEOUT),
            (true, None) => (Cause::Late, TIMEOUT),
            (true, Some(_)) => (Cause::Transport, "transport"),
        };
        Fault::new(cause, code, ended.to_string())
    }

    fn transport(why: impl Into<String>) -> Fault {
        Fault::new(Cause::Transport, "transport", why)
    }

    /// The fault of a response that has nothing of what was asked, or far too much.
    pub fn content(why: impl Into<String>) -> Fault {
        Fault::new(Cause::Content, "content", why)
    }

    /// The fault of a response that is not valid HTTP, or too large.
    pub fn malformed(why: impl fmt::Display) -> Fault {
        Fault::transport(format!("malformed answer: {why}"))
    }

    /// The fault of a response that ends too early.
    pub fn cut_short() -> Fault {
        Fault::transport("the connection was closed before the answer's end")
    }

    /// The fault of a status other than success. `kind`: what the status and the body mean together.
    /// `message`: what the body said, if it could be read.
    pub fn status(status: u16, kind: RefusalKind, message: Option<String>) -> Fault {
        let code = format!("status {status}");
        let text = message.map_or(code.clone(), |message| format!("{code}: {message}"));
        let cause = if status == 408 { Cause::Late } else { Cause::Status(status) };
        Fault { kind, ..Fault::new(cause, code, text) }
    }

    /// The fault of a body that begins with `begin`, and cannot be read. If the body is no JSON object or
    /// list, or in UTF-16, the fault shows how it begins.
    pub fn body(error: ReadError, begin: &[u8], retry_after: Option<RetryAfter>) -> Fault {
        match begin.trim_ascii_start() {
            _ if matches!(error, ReadError::Refused { .. } | ReadError::NoDate) => {}
            _ if begin.is_empty() => return Fault::content("the answer is empty"),
            [b'{' | b'[', ..] | [] if !begin.contains(&0) => {}
            _ => {
                let begin = begin.escape_ascii();
                return Fault::content(format!(
                    "the answer is no JSON object or list, it begins with \"{begin}\""
                ));
            }
        }
        let fault = match &error {
            ReadError::Refused { code, kind, .. } => {
                let code = format!("refused {code}");
                Fault { kind: *kind, ..Fault::new(Cause::Refused, code, error.to_string()) }
            }
            _ => Fault::new(Cause::Content, "body", error.to_string()),
        };
        // Some exchanges refuse with status 200.
        Fault { retry_after, ..fault }
    }

    /// The fault of a response without any item.
    pub fn empty() -> Fault {
        Fault::content("the answer holds no item")
    }

    /// The fault of a response with these fields, whose body cannot be decoded.
    pub fn encoding(fields: Fields<'_>) -> Fault {
        let is_meant = |name: &[u8]| name.eq_ignore_ascii_case(b"content-encoding");
        let values = fields.filter(|(name, _)| is_meant(name));
        let values: Vec<&[u8]> = values.map(|(_, value)| value).collect();
        let all = values.join(&b", "[..]);
        let told = all[..all.len().min(ENCODING_TOLD)].escape_ascii();
        Fault::transport(format!("the answer is encoded in \"{told}\", which cannot be read here"))
    }

    /// The same fault without the key of the source, which an exchange may repeat.
    pub fn without(mut self, key: Option<&Secret>) -> Fault {
        if let Some(key) = key {
            (self.code, self.text) = (key.hide_in(&self.code), key.hide_in(&self.text));
        }
        self
    }

    /// True if the exchange does not know the market.
    pub fn is_unknown_market(&self) -> bool {
        self.kind == RefusalKind::UnknownMarket
    }

    /// True if the exchange has answered that it will not serve this request.
    pub fn is_refusal(&self) -> bool {
        matches!(self.cause, Cause::Refused | Cause::Status(400..500))
    }

    /// True if the answer to a request for one market means that the exchange has no quote of the market. A
    /// body that refuses with a status of success may mean the whole exchange, so its code has to tell.
    pub fn denies_market(&self) -> bool {
        self.is_unknown_market() || matches!(self.cause, Cause::Status(400 | 404 | 410 | 422))
    }

    /// True if something has taken too long.
    pub fn is_timeout(&self) -> bool {
        self.code == TIMEOUT
    }

    /// True if another address of the exchange may do better: this one is not reached, breaks off, says
    /// nothing or fails.
    pub fn is_of_address(&self) -> bool {
        let is_failure = match self.cause {
            Cause::Unreached | Cause::Late | Cause::Transport => true,
            Cause::Status(status) => status >= 500,
            Cause::Content | Cause::Refused => false,
        };
        is_failure && self.kind == RefusalKind::Other
    }

    /// True if another node of a cluster may do better: no address of the exchange serves this one, or the
    /// exchange has banned this node's address, or does not serve its country (status 451). If there were too
    /// many requests, or the exchange asks for a pause, other nodes may be meant as well.
    pub fn is_of_node(&self) -> bool {
        let is_failure = self.is_of_address() && self.retry_after.is_none();
        is_failure || self.kind == RefusalKind::Banned || matches!(self.cause, Cause::Status(451))
    }

    /// How long the exchange asks to wait. `exchange`: its time now.
    pub fn asked_pause(&self, exchange: UnixMs) -> Option<Duration> {
        self.retry_after.as_ref().map(|after| match after {
            RetryAfter::Seconds(seconds) => Duration::from_secs(*seconds),
            RetryAfter::Date(date) => Duration::from_millis((*date - exchange).max(0) as u64),
        })
    }

    /// What the fault concerns. If one market alone may be at fault (`may_be_market`), an error status, a
    /// body or a response that takes too long is blamed on the market, unless it asks for a pause.
    pub fn blame(&self, may_be_market: bool) -> Blame {
        match (self.kind, self.cause) {
            (RefusalKind::RateLimited, _) => Blame::RateLimit,
            (RefusalKind::Banned, _) | (_, Cause::Unreached) => Blame::Host,
            (_, Cause::Transport) => Blame::Kind,
            _ if !may_be_market || self.retry_after.is_some() => Blame::Kind,
            _ => Blame::Market,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(was_open: bool) -> Fault {
        Fault::ended(&Ended { was_open, what: "cannot connect".to_string(), why: None })
    }

    #[test]
    fn what_a_refusal_means_decides_before_its_status_and_before_its_body() {
        let check = |status: u16, kind: RefusalKind, expected: Blame| {
            let fault = Fault::status(status, kind, None);
            assert_eq!(fault.blame(true), expected, "{fault}");
            let refused =
                || ReadError::Refused { code: String::new(), message: String::new(), kind };
            let body = Fault::body(refused(), b"{", None);
            assert_eq!(body.blame(true), expected, "{body}");
            let of_all = match expected {
                Blame::Market => Blame::Kind,
                other => other,
            };
            assert_eq!((fault.blame(false), body.blame(false)), (of_all, of_all));
            let retry_after = Some(RetryAfter::Seconds(5));
            let asks = Fault::body(refused(), b"{", retry_after);
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
        let kind = RefusalKind::Other;
        let status =
            |status, message: &str| Fault::status(status, kind, Some(message.to_string())).code;
        assert_eq!(status(503, "request 1"), status(503, "request 2"));
        assert_ne!(status(503, ""), status(500, ""));
        let refused = |code: &str, message: &str| {
            let (code, message) = (code.to_string(), message.to_string());
            Fault::body(ReadError::Refused { code, message, kind }, b"{", None).code
        };
        assert_eq!(refused("50001", "id 1"), refused("50001", "id 2"));
        assert_ne!(refused("50001", ""), refused("50011", ""));
    }

    #[test]
    fn an_address_is_at_fault_for_what_another_may_do_better() {
        let check = |status: u16, kind: RefusalKind, expected: bool| {
            let fault = Fault::status(status, kind, None);
            assert_eq!(fault.is_of_address(), expected, "{fault}");
        };
        check(503, RefusalKind::Other, true);
        check(503, RefusalKind::RateLimited, false);
        check(403, RefusalKind::Banned, false);
        check(404, RefusalKind::Other, false);
        check(408, RefusalKind::Other, true);
        assert!(Fault::cut_short().is_of_address());
        assert!(late(true).is_of_address());
        assert!(!Fault::empty().is_of_address());
    }

    #[test]
    fn of_what_is_not_json_the_begin_is_told() {
        let check = |begin: &[u8], expected: &str| {
            let error = ReadError::CutShort;
            assert_eq!(Fault::body(error.clone(), begin, None).to_string(), expected);
        };
        check(b"", "the answer is empty");
        check(b"\n<html>", "the answer is no JSON object or list, it begins with \"\\n<html>\"");
        check(
            b"\xef\xbb\xbf{",
            "the answer is no JSON object or list, it begins with \"\\xef\\xbb\\xbf{\"",
        );
        check(b"{\0", "the answer is no JSON object or list, it begins with \"{\\x00\"");
        check(b" {", &ReadError::CutShort.to_string());
    }
}
