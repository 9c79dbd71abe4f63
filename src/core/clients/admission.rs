//! Decides whether a request is answered: finds the client address it counts for, and asks the rate
//! limiter.
//!
//! Owns the trusted proxies and the rate limiter. Without either, which is the default, a request costs
//! one look at one flag. It never counts connections: those count for the peer's own address.

use crate::config::{Config, Network};
use crate::core::api;
use crate::core::clients::Shared;
use crate::core::clients::access_log::Answer;
use crate::core::clients::connection::Session;
use crate::core::clients::rate_limiter::Rates;
use crate::core::{CloseReason, Context};
use crate::durations::Endpoint;
use crate::http::{Fields, Quota, Request, Responder};
use crate::log_targets::HTTP;
use crate::time::Mono;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How often the log tells that addresses are forgotten.
const COMPLAINT: Duration = Duration::from_secs(60);

/// See the module's page.
#[derive(Debug)]
pub struct Gate {
    /// Whether there is anything to look at.
    is_watched: bool,
    trusted: Box<[Network]>,
    rates: Rates,
    /// When the log may tell again that addresses are forgotten.
    next_complaint: Mono,
}

/// A request that has come through the gate.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Whose request it is, where that is known.
    pub client: Option<IpAddr>,
    /// What its address has left, where that has a limit.
    pub quota: Option<Quota>,
}

/// One that has not: its address has had all it may.
pub struct TooMany {
    visit: Visit,
    endpoint: &'static Endpoint,
    retry_s: u32,
}

impl Gate {
    /// As the configuration says.
    pub fn new(config: &Config) -> Gate {
        let rates = Rates::new(&config.limits);
        Gate {
            is_watched: rates.is_on() || !config.trusted_proxies.is_empty(),
            trusted: config.trusted_proxies.clone().into(),
            rates,
            next_complaint: Mono(0),
        }
    }

    /// Whose request this is: the peer's, or that of whom trusted proxies name. Each has put whom it
    /// heard it from behind the others, so they are read from the last one on, as far as those who
    /// say it are trusted; what is before that, anybody may have made up. Where a trusted one says
    /// nothing, or what is no address, the request counts as its own.
    fn client(&self, peer: IpAddr, fields: Fields<'_>) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let is_list = |name: &[u8]| name.eq_ignore_ascii_case(b"x-forwarded-for");
        let lists: Vec<&[u8]> = (fields.filter(|(name, _)| is_list(name)))
            .map(|(_, list)| list)
            .collect();
        let members = lists
            .iter()
            .rev()
            .flat_map(|list| list.rsplit(|it| *it == b','));
        let members = members.map(|member| member.trim_ascii());
        for member in members.filter(|member| !member.is_empty()) {
            let Some(address) = read_address(member) else {
                break;
            };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.holds(address))
    }
}

/// An address as proxies write it: as it is, in brackets, or with a port.
fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let bare = (text.strip_prefix('[')).and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    let address = address.or_else(|| text.parse().ok().map(|it: SocketAddr| it.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

impl Shared {
    /// Lets a request through the gate, or not.
    #[inline]
    pub fn admit(
        &mut self,
        session: &Session,
        request: &Request<'_>,
        cx: &mut Context,
    ) -> Result<Visit, TooMany> {
        if !self.gate.is_watched {
            return Ok(Visit {
                client: session.peer,
                quota: None,
            });
        }
        self.look(session, request, cx)
    }

    fn look(
        &mut self,
        session: &Session,
        request: &Request<'_>,
        cx: &mut Context,
    ) -> Result<Visit, TooMany> {
        let client = (session.peer).map(|peer| self.gate.client(peer, request.fields));
        let mut visit = Visit {
            client,
            quota: None,
        };
        let Some(address) = client.filter(|_| self.gate.rates.is_on()) else {
            return Ok(visit);
        };
        let endpoint = api::endpoint(&cx.config, session.service, request);
        // A probe that is turned away takes the service out of its balancer, and a page that is
        // turned away before its request cannot read why. Neither costs more than a 429 does.
        if !endpoint.is_limited() {
            return Ok(visit);
        }
        let taken = self.gate.rates.take(address, cx.now.mono);
        visit.quota = Some(taken.quota);
        if taken.forgot {
            self.note_forgotten(cx);
        }
        match taken.retry_s {
            None => Ok(visit),
            Some(retry_s) => Err(TooMany {
                visit,
                endpoint,
                retry_s,
            }),
        }
    }

    fn note_forgotten(&mut self, cx: &mut Context) {
        cx.stats.http.rates_forgotten += 1;
        if cx.now.mono >= self.gate.next_complaint {
            self.gate.next_complaint = cx.now.mono + COMPLAINT;
            log::warn!(
                target: HTTP,
                "more clients than limits.requestAddresses ({}): some get more requests than they may",
                cx.config.limits.request_addresses
            );
        }
    }

    /// Answers 429. The connection stays: to open another one would cost more than this answer.
    pub fn turn_back(
        &mut self,
        session: &mut Session,
        request: &Request<'_>,
        refused: &TooMany,
        closing: Option<CloseReason>,
        cx: &mut Context,
    ) {
        cx.stats.http.requests += 1;
        cx.stats.http.rate_limited += 1;
        let error = api::Error::too_many_requests(refused.retry_s);
        let before = session.output.len();
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut session.output, &self.stamp, request, keep);
        responder.tell_quota(refused.visit.quota);
        api::send_error(&error, &mut responder);
        self.count_answer(refused.endpoint, error.status, cx);
        if self.access.is_on() {
            let answer = Answer {
                peer: refused.visit.client,
                status: error.status,
                bytes: session.output.len() - before,
            };
            let line = self.access.describe(request);
            self.access.note(answer, line.as_deref());
        }
        self.after_answer(session, closing, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use crate::http::{HeadLimits, Parsed, parse};

    #[track_caller]
    fn check(peer: &str, lines: &[&str], expected: &str) {
        let trusted = ["10.0.0.0/8", "::1", "2001:db8:1::/48"];
        let networks = trusted.iter().filter_map(|text| Network::parse(text));
        let config = Config {
            trusted_proxies: networks.collect(),
            ..Config::default()
        };
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let limits = HeadLimits::from(&Limits::default());
        let Ok(Parsed::Complete { request, .. }) = parse(raw.as_bytes(), &limits) else {
            panic!("{raw:?} is a request");
        };
        let peer = peer.parse().expect("an address");
        let found = Gate::new(&config).client(peer, request.fields);
        assert_eq!(found.to_string(), expected, "{peer} {lines:?}");
    }

    #[test]
    fn nobody_but_a_trusted_proxy_says_whose_request_it_is() {
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["X-Forwarded-For: 192.0.2.9"], "192.0.2.1");
        check(
            "::ffff:192.0.2.1",
            &["X-Forwarded-For: 192.0.2.9"],
            "192.0.2.1",
        );
        check("10.0.0.1", &["x-forwarded-FOR: 192.0.2.9"], "192.0.2.9");
        check(
            "::ffff:10.0.0.1",
            &["X-Forwarded-For: 192.0.2.9"],
            "192.0.2.9",
        );
        check("::1", &["X-Forwarded-For: 2001:db8::9"], "2001:db8::9");
    }

    #[test]
    fn what_a_client_has_said_itself_is_not_believed() {
        let list = "X-Forwarded-For: 198.51.100.1, 192.0.2.9";
        check("10.0.0.1", &[list], "192.0.2.9");
        check(
            "10.0.0.1",
            &["X-Forwarded-For: rubbish, 192.0.2.9"],
            "192.0.2.9",
        );
        // Behind two proxies, and over two lines.
        let list = "X-Forwarded-For: 10.9.9.9, 192.0.2.9, 2001:db8:1::7,10.0.0.2";
        check("10.0.0.1", &[list], "192.0.2.9");
        let first = "X-Forwarded-For: 198.51.100.1, 192.0.2.9";
        check(
            "10.0.0.1",
            &[first, "X-Forwarded-For: 10.0.0.2"],
            "192.0.2.9",
        );
    }

    #[test]
    fn a_trusted_proxy_that_names_nobody_speaks_for_itself() {
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For:"], "10.0.0.1");
        check("10.0.0.1", &["X-Forwarded-For: unknown"], "10.0.0.1");
        check(
            "10.0.0.1",
            &["X-Forwarded-For: 192.0.2.9, _hidden"],
            "10.0.0.1",
        );
        check(
            "10.0.0.1",
            &["X-Forwarded-For: 192.0.2.9, x, 10.0.0.2"],
            "10.0.0.2",
        );
        check("10.0.0.1", &["X-Forwarded-For: 192.0.2.256"], "10.0.0.1");
        check(
            "10.0.0.1",
            &["X-Forwarded-For: 10.0.0.3, 10.0.0.2"],
            "10.0.0.3",
        );
    }

    #[test]
    fn addresses_are_read_as_proxies_write_them() {
        for (text, expected) in [
            ("192.0.2.9:4711", "192.0.2.9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:4711", "2001:db8::9"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            (" ,, 192.0.2.9 ,", "192.0.2.9"),
        ] {
            let line = format!("X-Forwarded-For: {text}");
            check("10.0.0.1", &[&line], expected);
        }
    }
}
