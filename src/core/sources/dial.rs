//! The way to an exchange: from addresses to a connection that carries requests.
//!
//! Owns what happens to one lane's connection before a request can be sent on it: which addresses
//! are still to be tried and how long each may take, and the tunnel through a proxy. The steps
//! themselves (connecting, the TLS handshake) are the driver's.
//!
//! It never knows what is asked, and never gives up by itself: it says how long an attempt may
//! take, and whether there is another one.
//!
//! ```text
//! Closed -> (Resolving ->) Connecting -> (Tunnelling ->) (Securing ->) Open -> Closed
//! ```
//!
//! Through a proxy every exchange is reached by a tunnel (CONNECT), also where plain http is
//! spoken: so what a proxy says can never be taken for the exchange's answer, the credentials are
//! sent once a connection and to nobody else, and there is one way to be right about.

use crate::config::{Limits, Proxy, Url};
use crate::http::{HeadLimits, ResponseError, parse_response, write_connect};
use crate::time::{Mono, Now};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    #[default]
    Closed,
    /// No address is known yet.
    Resolving,
    /// The driver connects.
    Connecting,
    /// The proxy has been asked for a tunnel.
    Tunnelling,
    /// The driver and the exchange shake hands.
    Securing,
    /// It carries requests.
    Open,
}

/// What a proxy has against a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A status that is none of success.
    Status {
        /// The status.
        status: u16,
        /// Whether it was told user and password.
        identified: bool,
    },
    /// It does not answer in HTTP.
    Malformed(ResponseError),
    /// There are bytes behind its answer, before anybody has spoken through the tunnel.
    Early,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Status {
                status: 407,
                identified: false,
            } => f.write_str("status 407, it wants user and password"),
            Refusal::Status {
                status: 407,
                identified: true,
            } => f.write_str("status 407, it does not take user and password"),
            Refusal::Status { status, .. } => write!(f, "status {status}"),
            Refusal::Malformed(error) => write!(f, "malformed answer: {error}"),
            Refusal::Early => f.write_str("it speaks before it is spoken to"),
        }
    }
}

/// Who is connected to, and what is done on the way.
#[derive(Clone, Debug)]
pub struct Route {
    host: String,
    port: u16,
    https: bool,
    proxy: Option<Proxy>,
}

impl Route {
    /// The way to this address.
    pub fn new(url: &Url, proxy: Option<Proxy>) -> Route {
        Route {
            host: url.host.clone(),
            port: url.port,
            https: url.https,
            proxy,
        }
    }

    /// Host and port of whoever is connected to.
    pub fn first(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&self.host, self.port),
        }
    }

    /// The proxy on the way.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// Whose certificate is asked for.
    pub fn host(&self) -> &str {
        &self.host
    }

    fn behind_tunnel(&self) -> Phase {
        if self.https {
            Phase::Securing
        } else {
            Phase::Open
        }
    }

    fn write_connect(&self, proxy: &Proxy) -> Vec<u8> {
        let place = if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let credentials = proxy.credentials.as_ref();
        let credentials = credentials.map(|it| (it.user.as_slice(), it.password.as_slice()));
        let mut out = Vec::new();
        write_connect(&mut out, &place, credentials);
        out
    }
}

/// See the module's page. It holds a proxy's credentials while they are sent: it is not printed.
#[derive(Default)]
pub struct Dial {
    phase: Phase,
    /// Whether the next one is a proxy.
    proxied: bool,
    /// Where the present attempt leads.
    address: Option<SocketAddr>,
    untried: VecDeque<SocketAddr>,
    /// When the present step has had its share of the time; `None`: all that is left is its.
    until: Option<Mono>,
    request: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
}

impl Dial {
    /// How far it has come.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether requests can be sent.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// What cannot be done when the present phase fails, in words. `None`: nothing is in the way.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self.phase {
            Phase::Closed | Phase::Open => None,
            Phase::Resolving => Some("cannot resolve the name"),
            Phase::Connecting if self.proxied => Some("cannot connect to the proxy"),
            Phase::Connecting => Some("cannot connect"),
            Phase::Tunnelling => Some("no tunnel through the proxy"),
            Phase::Securing => Some("TLS handshake"),
        }
    }

    /// Where the present attempt leads.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// When the present attempt has had its share of the time.
    pub fn until(&self) -> Option<Mono> {
        self.until
    }

    /// Nothing is known of where to go.
    pub fn wait_for_addresses(&mut self) {
        *self = Dial {
            phase: Phase::Resolving,
            ..Dial::default()
        };
    }

    /// These are to be tried, in their order.
    pub fn begin(&mut self, addresses: VecDeque<SocketAddr>) {
        *self = Dial {
            untried: addresses,
            ..Dial::default()
        };
    }

    /// The address of the next attempt, which has its share of the time until `deadline`.
    pub fn attempt(&mut self, route: &Route, deadline: Mono, now: Now) -> Option<SocketAddr> {
        let untried = std::mem::take(&mut self.untried);
        self.begin(untried);
        let address = self.untried.pop_front()?;
        self.phase = Phase::Connecting;
        self.proxied = route.proxy.is_some();
        self.address = Some(address);
        self.share(deadline, now);
        Some(address)
    }

    /// The connection is gone; the addresses that are still to be tried stay.
    pub fn hang_up(&mut self) {
        let untried = std::mem::take(&mut self.untried);
        self.begin(untried);
    }

    /// The driver has connected.
    pub fn connected(&mut self, route: &Route, deadline: Mono, now: Now) {
        match &route.proxy {
            Some(proxy) => {
                self.request = route.write_connect(proxy);
                self.step(Phase::Tunnelling, deadline, now);
            }
            None => self.step(route.behind_tunnel(), deadline, now),
        }
    }

    /// The handshake has come to its end.
    pub fn secured(&mut self, deadline: Mono, now: Now) {
        self.step(Phase::Open, deadline, now);
    }

    /// Bytes for the proxy.
    pub fn outgoing(&self) -> &[u8] {
        &self.request[self.sent..]
    }

    /// Takes note that so many of them were sent.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
    }

    /// Takes in bytes of the proxy's answer.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        route: &Route,
        limits: &Limits,
        deadline: Mono,
        now: Now,
    ) -> Result<(), Refusal> {
        self.inbox.extend_from_slice(bytes);
        let parsed = parse_response(&self.inbox, &HeadLimits::upstream(limits));
        let Some(response) = parsed.map_err(Refusal::Malformed)? else {
            return Ok(());
        };
        let status = response.head.status;
        if !(200..300).contains(&status) {
            let credentials = route.proxy.as_ref().map(|proxy| &proxy.credentials);
            let identified = matches!(credentials, Some(Some(_)));
            return Err(Refusal::Status { status, identified });
        }
        // Whoever waits behind the tunnel speaks second, in TLS as in HTTP.
        if response.used < self.inbox.len() {
            return Err(Refusal::Early);
        }
        self.step(route.behind_tunnel(), deadline, now);
        Ok(())
    }

    fn step(&mut self, phase: Phase, deadline: Mono, now: Now) {
        self.phase = phase;
        if phase == Phase::Open {
            // What was needed on the way is needed no longer, the credentials least of all.
            *self = Dial {
                phase,
                address: self.address,
                ..Dial::default()
            };
        } else {
            self.share(deadline, now);
        }
    }

    /// The time until the deadline is shared among this attempt and those that may follow, anew
    /// with every step: an address that swallows everything leaves enough for the others.
    fn share(&mut self, deadline: Mono, now: Now) {
        let attempts = u32::try_from(self.untried.len()).unwrap_or(u32::MAX);
        let left: Duration = deadline.since(now.mono);
        self.until = (attempts > 0).then(|| now.mono + left / attempts.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Credentials;
    use crate::time::UnixMs;

    fn at(ms: u64) -> Now {
        Now {
            mono: Mono(ms * 1000),
            unix: UnixMs(0),
        }
    }

    fn route(url: &str, proxy: Option<Option<(&str, &str)>>) -> Route {
        let proxy = proxy.map(|credentials| Proxy {
            host: "proxy".to_string(),
            port: 3128,
            credentials: credentials.map(|(user, password)| Credentials {
                user: user.into(),
                password: password.into(),
            }),
        });
        Route::new(&Url::parse(url).expect("well-formed"), proxy)
    }

    fn addresses(count: u8) -> VecDeque<SocketAddr> {
        let address = |last| SocketAddr::from(([10, 0, 0, last], 1));
        (1..=count).map(address).collect()
    }

    #[test]
    fn a_connection_goes_through_the_phases_of_its_route() {
        let check = |url: &str, proxied: bool, expected: &[Phase]| {
            let route = route(url, proxied.then_some(None));
            let (mut dial, deadline) = (Dial::default(), at(5000).mono);
            dial.begin(addresses(1));
            let mut seen = vec![dial.phase()];
            while dial.phase() != Phase::Open {
                match dial.phase() {
                    Phase::Closed => {
                        dial.attempt(&route, deadline, at(0)).expect("one address");
                    }
                    Phase::Connecting => dial.connected(&route, deadline, at(1)),
                    Phase::Tunnelling => {
                        let limits = Limits::default();
                        for byte in
                            b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"
                        {
                            let taken = dial.receive(&[*byte], &route, &limits, deadline, at(1));
                            assert_eq!(taken, Ok(()));
                        }
                    }
                    Phase::Securing => dial.secured(deadline, at(2)),
                    phase => panic!("{phase:?}"),
                }
                seen.push(dial.phase());
            }
            assert_eq!(seen, expected, "{url}");
            assert_eq!(dial.until(), None);
            assert_eq!(dial.outgoing(), b"");
        };
        use Phase::{Closed, Connecting, Open, Securing, Tunnelling};
        check("http://a.com", false, &[Closed, Connecting, Open]);
        check(
            "https://a.com",
            false,
            &[Closed, Connecting, Securing, Open],
        );
        check(
            "http://a.com",
            true,
            &[Closed, Connecting, Tunnelling, Open],
        );
        let all = [Closed, Connecting, Tunnelling, Securing, Open];
        check("https://a.com", true, &all);
    }

    #[test]
    fn a_tunnel_is_asked_for_by_name_and_port() {
        let check = |url: &str, expected: &str| {
            let route = route(url, Some(Some(("me", "hunter2"))));
            assert_eq!(route.first(), ("proxy", 3128));
            let mut dial = Dial::default();
            dial.connected(&route, at(1).mono, at(0));
            let asked = String::from_utf8_lossy(dial.outgoing()).into_owned();
            assert!(
                asked.starts_with(&format!("CONNECT {expected} HTTP/1.1\r\n")),
                "{asked}"
            );
            assert!(asked.contains("\r\nProxy-Authorization: Basic bWU6aHVudGVyMg==\r\n"));
            dial.advance(asked.len());
            assert_eq!(dial.outgoing(), b"");
            assert!(!format!("{route:?}").contains("hunter2"));
        };
        check("https://okx.com", "okx.com:443");
        check("http://okx.com/x", "okx.com:80");
        check("https://[fe80::1]:8443", "[fe80::1]:8443");
    }

    #[test]
    fn what_a_proxy_has_against_it_is_told() {
        let check = |answer: &str, credentials: Option<(&str, &str)>, expected: &str| {
            let route = route("https://okx.com", Some(credentials));
            let (mut dial, deadline) = (Dial::default(), at(9).mono);
            dial.connected(&route, deadline, at(0));
            let taken = dial.receive(
                answer.as_bytes(),
                &route,
                &Limits::default(),
                deadline,
                at(0),
            );
            assert_eq!(taken.expect_err("refused").to_string(), expected);
        };
        let wants = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno";
        check(wants, None, "status 407, it wants user and password");
        let known = Some(("me", "hunter2"));
        check(
            wants,
            known,
            "status 407, it does not take user and password",
        );
        check("HTTP/1.1 502 Bad Gateway\r\n\r\n", known, "status 502");
        check(
            "220 mail ready\r\n",
            None,
            "malformed answer: malformed version",
        );
        let early = "HTTP/1.1 200 OK\r\n\r\n\x15\x03";
        check(early, None, "it speaks before it is spoken to");
    }

    #[test]
    fn each_attempt_has_its_share_of_the_time_and_the_last_has_the_rest() {
        let (mut dial, deadline) = (Dial::default(), at(6000).mono);
        let route = route("https://okx.com", None);
        dial.begin(addresses(3));
        let next = |dial: &mut Dial, ms: u64| dial.attempt(&route, deadline, at(ms));
        assert_eq!(next(&mut dial, 0), Some(addresses(3)[0]));
        assert_eq!(dial.until(), Some(at(2000).mono));
        // Connected, and stuck in the handshake.
        dial.connected(&route, deadline, at(300));
        assert_eq!(dial.until(), Some(at(2200).mono));
        assert_eq!(dial.obstacle(), Some("TLS handshake"));
        dial.hang_up();
        assert_eq!(next(&mut dial, 2200), Some(addresses(3)[1]));
        assert_eq!(dial.until(), Some(at(4100).mono));
        dial.hang_up();
        assert_eq!(next(&mut dial, 4100), Some(addresses(3)[2]));
        assert_eq!(dial.until(), None);
        assert_eq!(dial.obstacle(), Some("cannot connect"));
        dial.hang_up();
        assert_eq!(next(&mut dial, 5000), None);
        assert_eq!(dial.obstacle(), None);
    }
}
