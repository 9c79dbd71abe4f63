//! Refusals: an exchange's own statement that it refuses a request. Some exchanges send it with
//! status 200.
//!
//! Owns the search for a refusal in a body, and what the statuses of refusals mean.
//! [`Reading`](super::Reading) combines the two.

use super::error::{ReadError, RefusalKind};
use super::json::Raw;
use super::path::{Path, Step, find};
use super::value;
use crate::config::members::{Number, count, members};

members! {
    /// Where an exchange says that it refuses, and how.
    pub(super) struct Refusal {
        /// Where the code is. If it is an array, its first element is the code. If it is the path of an item,
        /// a text or a number there is a code.
        code: Option<Path> = None, "code";
        /// Codes of success. Without them, any code is an error.
        ok: Vec<Box<str>> = Vec::new(), "ok";
        /// Where the message is.
        message: Option<Path> = None, "message";
        /// Codes for too many requests. `*words*` stands for a code or a message that has these words.
        rate_limited: Vec<Box<str>> = Vec::new(), "rateLimited";
        /// Codes for an unknown market, in the same way.
        unknown_market: Vec<Box<str>> = Vec::new(), "unknownMarket";
        /// What the status of a response means.
        statuses: Statuses = Statuses::default(), "statuses";
    }
}

/// A status of a response.
const STATUS: Number = count(0, 65_535);

members! {
    /// What the statuses of refusals mean, if the body does not say more.
    pub(super) struct Statuses {
        /// Too many requests.
        // RFC 6585, 4.
        rate_limited: Vec<u16> = vec![429], "rateLimited" STATUS;
        /// Every request is refused for now.
        // Firewalls of exchanges send 403 to clients that they block, for too many requests or for
        // their location. 418 is a ban of Binance; other exchanges copy it.
        banned: Vec<u16> = vec![403, 418], "banned" STATUS;
        /// No such market.
        unknown_market: Vec<u16> = Vec::new(), "unknownMarket" STATUS;
    }
}

impl Statuses {
    pub(super) fn kind(&self, status: u16) -> RefusalKind {
        match () {
            () if self.rate_limited.contains(&status) => RefusalKind::RateLimited,
            () if self.banned.contains(&status) => RefusalKind::Banned,
            () if self.unknown_market.contains(&status) => RefusalKind::UnknownMarket,
            () => RefusalKind::Other,
        }
    }
}

/// The most bytes of a code or message that are logged.
const REASON_BYTES: usize = 200;

impl Refusal {
    /// The refusal in a complete envelope, if there is one.
    pub(super) fn read(&self, envelope: &[u8]) -> Option<ReadError> {
        let code = match find(envelope, self.code.as_deref()?) {
            Raw::Array(array) => find(array, &[Step::At(0)]),
            code => code,
        };
        self.refused(reason(code)?, envelope)
    }

    /// The refusal in the front of a body, in which the code may be in the place of an item: `[1]` among the
    /// elements of `[]`. An item that is an array or an object is not a code.
    pub(super) fn read_front(&self, front: &[u8]) -> Option<ReadError> {
        self.refused(reason(find(front, self.code.as_deref()?))?, front)
    }

    /// The refusal with this code. `None` if the code means success.
    fn refused(&self, code: String, body: &[u8]) -> Option<ReadError> {
        if self.ok.iter().any(|ok| **ok == *code) {
            return None;
        }
        let message = self.message.as_deref().map(|path| find(body, path));
        let message = message.and_then(|raw| match raw {
            Raw::Array(array) => reason(find(array, &[Step::At(0)])),
            raw => reason(raw),
        });
        let texts = [Some(&code), message.as_ref()];
        let has = |words: &str| texts.iter().flatten().any(|text| text.contains(words));
        let fits = |pattern: &str| match pattern.strip_prefix('*') {
            Some(words) => has(words.strip_suffix('*').unwrap_or(words)),
            None => pattern == code,
        };
        let is = |patterns: &[Box<str>]| patterns.iter().any(|pattern| fits(pattern));
        let kind = match () {
            () if is(&self.rate_limited) => RefusalKind::RateLimited,
            () if is(&self.unknown_market) => RefusalKind::UnknownMarket,
            () => RefusalKind::Other,
        };
        Some(ReadError::Refused {
            message: message.filter(|text| !text.is_empty()).unwrap_or_else(|| code.clone()),
            code,
            kind,
        })
    }
}

/// A code or message, without control characters and short enough for a log line.
fn reason(raw: Raw<'_>) -> Option<String> {
    let text = match raw {
        Raw::Number(digits) => String::from_utf8_lossy(digits).into_owned(),
        Raw::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Raw::Escaped(_) => value::text(raw).ok()??.into_owned(),
        _ => return None,
    };
    let tidy = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut text: String = text.chars().map(tidy).collect();
    while text.len() > REASON_BYTES {
        text.pop();
    }
    Some(text)
}
