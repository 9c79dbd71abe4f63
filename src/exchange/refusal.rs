//! Refusals: an exchange's own statement that it will not answer, which some send with status 200.
//!
//! Owns the search for it in the envelope, and what the statuses of refusals mean.
//! [`Reading`](super::Reading) decides which of the two counts.

use super::error::{ReadError, RefusalKind};
use super::json::{Raw, Step, find};
use super::value;

/// Where an exchange says that it refuses, and how.
pub(super) struct Refusal {
    /// The top-level member with the code.
    pub(super) code: &'static str,
    /// Its value if all is well; `None` if it is then missing, or an empty array.
    pub(super) ok: Option<&'static str>,
    /// The member with the message.
    pub(super) message: &'static str,
    /// Codes for too many requests.
    pub(super) rate_limited: &'static [&'static str],
    /// Codes for an unknown market.
    pub(super) unknown_market: &'static [&'static str],
}

/// What the statuses of refusals mean, if the body does not say more.
pub(super) struct Statuses {
    /// Too many requests.
    pub(super) rate_limited: &'static [u16],
    /// Every request is refused for now.
    pub(super) banned: &'static [u16],
}

impl Statuses {
    /// 429 is "Too Many Requests" (RFC 6585, 4). 403 is what firewalls of exchanges send to blocked
    /// clients, for too many requests or for their location. 418 is a ban of Binance, copied by
    /// others.
    pub(super) const USUAL: Statuses = Statuses {
        rate_limited: &[429],
        banned: &[403, 418],
    };

    pub(super) fn kind(&self, status: u16) -> RefusalKind {
        match () {
            () if self.rate_limited.contains(&status) => RefusalKind::RateLimited,
            () if self.banned.contains(&status) => RefusalKind::Banned,
            () => RefusalKind::Other,
        }
    }
}

/// The most bytes of a code or message that are logged.
const REASON_BYTES: usize = 200;

impl Refusal {
    /// The refusal in a whole envelope, if there is one.
    pub(super) fn read(&self, envelope: &[u8]) -> Option<ReadError> {
        let code = match find(envelope, &[Step::Key(self.code)]) {
            Raw::Array(_) => find(envelope, &[Step::Key(self.code), Step::First]),
            code => code,
        };
        let code = reason(code)?;
        if self.ok == Some(&code) {
            return None;
        }
        let message = reason(find(envelope, &[Step::Key(self.message)]));
        let is = |codes: &[&str]| codes.contains(&code.as_str());
        let kind = match () {
            () if is(self.rate_limited) => RefusalKind::RateLimited,
            () if is(self.unknown_market) => RefusalKind::UnknownMarket,
            () => RefusalKind::Other,
        };
        Some(ReadError::Refused {
            message: message
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| code.clone()),
            code,
            kind,
        })
    }
}

/// A code or message, fit for one log line.
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
