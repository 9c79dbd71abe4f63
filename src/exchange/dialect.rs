//! A dialect: the endpoints, limits and JSON of one exchange, as data.
//!
//! Owns how a [`Call`] becomes the path and query of a request. It sends nothing, reads no clock,
//! and does not count what was spent: it only tells what a call costs.

use super::candle::CandleForm;
use super::envelope::Place;
use super::error::RefusalKind;
use super::json::Step;
use super::listing::ListingForm;
use super::refusal::{Refusal, Statuses};
use super::ticker::TickerForm;
use super::value::TimeForm;
use crate::interval::Stored;
use crate::time::UnixMs;
use std::fmt::Write;
use std::time::Duration;

/// A request to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// The tickers of all markets.
    Tickers,
    /// The ticker of one market.
    Ticker {
        /// The market's `ticker_id`.
        id: &'a str,
    },
    /// The figures of the last 24 hours that the ticker of one market lacks.
    /// [`Ticker::fill_from`](crate::record::Ticker::fill_from) adds them to it.
    Stats {
        /// The market's `ticker_id`.
        id: &'a str,
    },
    /// Candles of one market.
    Candles {
        /// The market's `candle_id`, or its `ticker_id` where it has none.
        id: &'a str,
        /// The interval.
        interval: Stored,
        /// First open time. Exchanges may answer with more on either side.
        from: UnixMs,
        /// Last open time.
        to: UnixMs,
        /// The most rows, at most those of a page.
        limit: usize,
        /// The exchange's clock: some keep old candles elsewhere.
        now: UnixMs,
    },
    /// The list of markets.
    Markets,
    /// The exchange's clock.
    Time,
}

/// What an exchange allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The costs that may be spent ...
    pub units: u32,
    /// ... within any such period.
    pub per: Duration,
}

/// A header field (its name in lower case) that reports the state of the budget, as a whole number
/// in the units of [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// Spent in the current period.
    Used(&'static str),
    /// Left in the current period.
    Left(&'static str),
}

/// What one request for candles may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most rows. A range must not have more slots than this: exchanges differ in which of its
    /// rows they send then.
    pub rows: usize,
    /// How many candles, back from the newest, the exchange serves; `None`: all.
    pub depth: Option<usize>,
}

/// The endpoints, limits and JSON of one exchange.
pub struct Dialect {
    pub(super) name: &'static str,
    pub(super) base_url: &'static str,
    pub(super) budget: Budget,
    pub(super) meter: Option<Meter>,
    pub(super) refusal: Refusal,
    pub(super) statuses: Statuses,
    pub(super) tickers: Tickers,
    pub(super) candles: Candles,
    pub(super) markets: Markets,
    pub(super) time: Time,
}

/// One endpoint.
pub(super) struct Endpoint {
    /// Path and query, with `{id}` and, for candles, `{interval}`, `{limit}`, `{from}`, `{to}`
    /// (first and last open time in the unit of the rows), `{from-}`, `{to+}` (one unit outside
    /// of those, for exchanges that leave the ends out), `{from iso}`, `{to iso}` (as dates) and
    /// `{slots}` (as many as the range has, for exchanges that know no begin of it).
    pub(super) target: &'static str,
    pub(super) cost: u32,
    pub(super) place: Place,
}

pub(super) struct Tickers {
    /// `None` if they must be requested one by one.
    pub(super) all: Option<Endpoint>,
    pub(super) one: Endpoint,
    /// The figures of 24 hours, for exchanges that do not send them with the ticker.
    pub(super) stats: Option<Stats>,
    /// Where the response has the time of all tickers, for tickers without a time of their own.
    pub(super) stamp: Option<&'static [Step]>,
    pub(super) form: TickerForm,
}

pub(super) struct Stats {
    pub(super) endpoint: Endpoint,
    pub(super) form: TickerForm,
}

pub(super) struct Candles {
    pub(super) endpoint: Endpoint,
    /// The endpoint of older candles, for exchanges that keep them elsewhere.
    pub(super) archive: Option<Archive>,
    /// Names of one minute, one hour and one day.
    pub(super) intervals: [&'static str; 3],
    pub(super) page: Page,
    pub(super) form: CandleForm,
}

pub(super) struct Archive {
    pub(super) endpoint: Endpoint,
    /// How many candles, back from now, the other endpoint has: of one minute, one hour, one day.
    pub(super) behind: [i64; 3],
}

pub(super) struct Markets {
    pub(super) endpoint: Endpoint,
    pub(super) form: ListingForm,
}

pub(super) struct Time {
    /// Its place is the time itself.
    pub(super) endpoint: Endpoint,
    pub(super) form: TimeForm,
}

impl Dialect {
    /// The exchange's name in the configuration.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The exchange's own base URL: scheme and host.
    pub fn base_url(&self) -> &'static str {
        self.base_url
    }

    /// True if the exchange knows [`Call::Tickers`]. If not, each market is requested by
    /// [`Call::Ticker`].
    pub fn tickers_at_once(&self) -> bool {
        self.tickers.all.is_some()
    }

    /// True if the ticker of a market lacks figures of the last 24 hours, which [`Call::Stats`]
    /// brings. A quote is served without them too.
    pub fn has_stats(&self) -> bool {
        self.tickers.stats.is_some()
    }

    /// What the exchange allows.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The header field that reports the budget.
    pub fn meter(&self) -> Option<Meter> {
        self.meter
    }

    /// What the status of a response means, without its body.
    pub fn status_kind(&self, status: u16) -> RefusalKind {
        self.statuses.kind(status)
    }

    /// What one request for candles may return.
    pub fn page(&self) -> Page {
        self.candles.page
    }

    /// The cost of this call.
    ///
    /// # Panics
    /// As [`Dialect::target`].
    pub fn cost(&self, call: &Call<'_>) -> u32 {
        self.endpoint(call).cost
    }

    /// Path and query of this call's request.
    ///
    /// # Panics
    /// For [`Call::Tickers`] if [`Dialect::tickers_at_once`] is false, and for [`Call::Stats`] if
    /// [`Dialect::has_stats`] is.
    pub fn target(&self, call: &Call<'_>) -> String {
        let mut out = String::new();
        let mut rest = self.endpoint(call).target;
        while let Some((plain, behind)) = rest.split_once('{') {
            let (name, behind) = behind
                .split_once('}')
                .expect("a test walks through the targets of all dialects");
            out.push_str(plain);
            self.fill(name, call, &mut out);
            rest = behind;
        }
        out.push_str(rest);
        out
    }

    pub(super) fn endpoint(&self, call: &Call<'_>) -> &Endpoint {
        match call {
            Call::Tickers => (self.tickers.all.as_ref())
                .expect("who asks for all tickers has seen tickers_at_once"),
            Call::Ticker { .. } => &self.tickers.one,
            Call::Stats { .. } => {
                let stats = self.tickers.stats.as_ref();
                &stats
                    .expect("who asks for stats has seen has_stats")
                    .endpoint
            }
            Call::Candles {
                interval,
                from,
                now,
                ..
            } => match &self.candles.archive {
                Some(archive)
                    if (*now - *from) / interval.length_ms()
                        >= archive.behind[*interval as usize] =>
                {
                    &archive.endpoint
                }
                _ => &self.candles.endpoint,
            },
            Call::Markets => &self.markets.endpoint,
            Call::Time => &self.time.endpoint,
        }
    }

    /// Writes the value of a name in braces.
    fn fill(&self, name: &str, call: &Call<'_>, out: &mut String) {
        match (name, call) {
            ("id", Call::Ticker { id } | Call::Stats { id } | Call::Candles { id, .. }) => {
                escape(id, out);
            }
            (
                _,
                Call::Candles {
                    interval,
                    from,
                    to,
                    limit,
                    ..
                },
            ) => {
                let unit_ms = match self.candles.form.time_form {
                    TimeForm::Seconds => 1000,
                    TimeForm::Millis | TimeForm::Iso8601 => 1,
                };
                let since = UnixMs(from.0.max(0));
                let limit = (*limit).clamp(1, self.candles.page.rows) as i64;
                let slots = (*to - *from) / interval.length_ms() + 1;
                match name {
                    "interval" => write!(out, "{}", self.candles.intervals[*interval as usize]),
                    "limit" => write!(out, "{limit}"),
                    "slots" => write!(out, "{}", slots.clamp(1, limit)),
                    "from" => write!(out, "{}", since.0 / unit_ms),
                    "from-" => write!(out, "{}", (since.0 / unit_ms - 1).max(0)),
                    "from iso" => write!(out, "{since}"),
                    "to" => write!(out, "{}", to.0.max(0) / unit_ms),
                    "to+" => write!(out, "{}", to.0.max(0) / unit_ms + 1),
                    "to iso" => write!(out, "{}", UnixMs(to.0.max(0))),
                    _ => unreachable!("a test walks through the targets of all dialects"),
                }
                .expect("a string takes everything");
            }
            _ => unreachable!("a test walks through the targets of all dialects"),
        }
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3): ids come from the exchange, and
/// must not be able to end the request line.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}

#[cfg(test)]
mod tests;
