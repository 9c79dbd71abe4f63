//! How an upstream connection comes to be: from addresses to a connection that carries requests.
//!
//! ```text
//! Closed -> (Resolving ->) Connecting -> (Tunnelling ->) (Securing ->) Open -> Closed
//! ```
//!
//! [`Connecting`] owns the phase of one connection, the addresses that are still to be tried, how long
//! each attempt may take, and the tunnel through a proxy. The driver connects and does the TLS
//! handshake. It does not know what is requested.
//!
//! Through a proxy every exchange is reached by a tunnel (CONNECT), also over plain http: so the
//! proxy's response can never be mistaken for the exchange's, and the credentials are sent once a
//! connection and to nobody else.

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
    /// It waits for the addresses of the name.
    Resolving,
    /// The driver connects.
    Connecting,
    /// The proxy has been asked for a tunnel.
    Tunnelling,
    /// The driver does the TLS handshake.
    Securing,
    /// It carries requests.
    Open,
}

/// Why a proxy opens no tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// A status other than success.
    Status {
        /// The status.
        status: u16,
        /// True if user and password were sent.
        identified: bool,
    },
    /// Its response is not HTTP.
    Malformed(ResponseError),
    /// There are bytes behind its response, before anything was sent through the tunnel.
    Early,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyError::Status { status: 407, identified: false } => {
                f.write_str("status 407, it wants user and password")
            }
            ProxyError::Status { status: 407, identified: true } => {
                f.write_str("status 407, it does not take user and password")
            }
            ProxyError::Status { status, .. } => write!(f, "status {status}"),
            ProxyError::Malformed(error) => write!(f, "malformed answer: {error}"),
            ProxyError::Early => f.write_str("it speaks before it is spoken to"),
        }
    }
}

/// The host to reach, and the proxy in front of it.
#[derive(Clone, Debug)]
pub struct Route {
    host: String,
    port: u16,
    https: bool,
    proxy: Option<Proxy>,
}

impl Route {
    /// The route to the host of this URL.
    pub fn new(url: &Url, proxy: Option<Proxy>) -> Route {
        Route { host: url.host.clone(), port: url.port, https: url.https, proxy }
    }

    /// Host and port of the socket's peer: the proxy, if there is one.
    pub fn peer(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&self.host, self.port),
        }
    }

    /// The proxy.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// The name that the certificate must have.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What follows once the host is reached.
    fn after_connect(&self) -> Phase {
        if self.https { Phase::Securing } else { Phase::Open }
    }

    /// The request for a tunnel.
    fn connect_request(&self, proxy: &Proxy) -> Vec<u8> {
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

/// See the module's page. It has no `Debug`, because it holds a proxy's credentials while they are
/// sent.
#[derive(Default)]
pub struct Connecting {
    phase: Phase,
    /// True if the peer is a proxy.
    proxied: bool,
    /// The address of the present attempt.
    address: Option<SocketAddr>,
    untried: VecDeque<SocketAddr>,
    /// When the present attempt has had its share of the time. `None`: it may use all that is left.
    give_up_at: Option<Mono>,
    request: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
}

impl Connecting {
    /// How far it has come.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether requests can be sent.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// What has failed if the present phase fails. `None`: the connection is open, or closed.
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

    /// The address of the present attempt.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// When the present attempt has had its share of the time; `None`: it may use all that is left.
    pub fn give_up_at(&self) -> Option<Mono> {
        self.give_up_at
    }

    /// No address is known.
    pub fn wait_for_addresses(&mut self) {
        *self = Connecting { phase: Phase::Resolving, ..Connecting::default() };
    }

    /// Sets the addresses to try, in their order.
    pub fn begin(&mut self, addresses: VecDeque<SocketAddr>) {
        *self = Connecting { untried: addresses, ..Connecting::default() };
    }

    /// Begins the next attempt, which gets its share of the time until `deadline`. `None`: all addresses
    /// have been tried.
    pub fn next_attempt(&mut self, route: &Route, deadline: Mono, now: Now) -> Option<SocketAddr> {
        self.close();
        let address = self.untried.pop_front()?;
        self.phase = Phase::Connecting;
        self.proxied = route.proxy.is_some();
        self.address = Some(address);
        self.share_time(deadline, now);
        Some(address)
    }

    /// The connection is closed. The untried addresses stay.
    pub fn close(&mut self) {
        let untried = std::mem::take(&mut self.untried);
        self.begin(untried);
    }

    /// The driver has connected.
    pub fn connected(&mut self, route: &Route, deadline: Mono, now: Now) {
        match &route.proxy {
            Some(proxy) => {
                self.request = route.connect_request(proxy);
                self.step(Phase::Tunnelling, deadline, now);
            }
            None => self.step(route.after_connect(), deadline, now),
        }
    }

    /// The TLS handshake is done.
    pub fn secured(&mut self, deadline: Mono, now: Now) {
        self.step(Phase::Open, deadline, now);
    }

    /// Bytes for the proxy.
    pub fn outgoing(&self) -> &[u8] {
        &self.request[self.sent..]
    }

    /// So many of them were sent.
    pub fn sent_bytes(&mut self, count: usize) {
        self.sent += count;
    }

    /// Takes in bytes of the proxy's response.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        route: &Route,
        limits: &Limits,
        deadline: Mono,
        now: Now,
    ) -> Result<(), ProxyError> {
        self.inbox.extend_from_slice(bytes);
        let parsed = parse_response(&self.inbox, &HeadLimits::upstream(limits));
        let Some(response) = parsed.map_err(ProxyError::Malformed)? else {
            return Ok(());
        };
        let status = response.head.status;
        if !(200..300).contains(&status) {
            let credentials = route.proxy.as_ref().map(|proxy| &proxy.credentials);
            let identified = matches!(credentials, Some(Some(_)));
            return Err(ProxyError::Status { status, identified });
        }
        // The exchange behind the tunnel speaks second, in TLS as in HTTP.
        if response.used < self.inbox.len() {
            return Err(ProxyError::Early);
        }
        self.step(route.after_connect(), deadline, now);
        Ok(())
    }

    fn step(&mut self, phase: Phase, deadline: Mono, now: Now) {
        self.phase = phase;
        if phase == Phase::Open {
            // The buffers are not needed any more, nor are the credentials in them.
            *self = Connecting { phase, address: self.address, ..Connecting::default() };
        } else {
            self.share_time(deadline, now);
        }
    }

    /// Divides the time until the deadline among this attempt and those that may follow, anew in every
    /// phase: an address that never answers leaves enough for the others.
    fn share_time(&mut self, deadline: Mono, now: Now) {
        let attempts = u32::try_from(self.untried.len()).unwrap_or(u32::MAX);
        let left: Duration = deadline.since(now.mono);
        self.give_up_at = (attempts > 0).then(|| now.mono + left / attempts.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Credentials;
    use crate::time::UnixMs;

    fn at(ms: u64) -> Now {
        Now { mono: Mono(ms * 1000), unix: UnixMs(0) }
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
            let (mut connecting, deadline) = (Connecting::default(), at(5000).mono);
            connecting.begin(addresses(1));
            let mut seen = vec![connecting.phase()];
            while connecting.phase() != Phase::Open {
                match connecting.phase() {
                    Phase::Closed => {
                        connecting.next_attempt(&route, deadline, at(0)).expect("one address");
                    }
                    Phase::Connecting => connecting.connected(&route, deadline, at(1)),
                    Phase::Tunnelling => {
                        let limits = Limits::default();
                        for byte in
                            b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"
                        {
                            let taken =
                                connecting.receive(&[*byte], &route, &limits, deadline, at(1));
                            assert_eq!(taken, Ok(()));
                        }
                    }
                    Phase::Securing => connecting.secured(deadline, at(2)),
                    phase => panic!("{phase:?}"),
                }
                seen.push(connecting.phase());
            }
            assert_eq!(seen, expected, "{url}");
            assert_eq!(connecting.give_up_at(), None);
            assert_eq!(connecting.outgoing(), b"");
        };
        use Phase::{Closed, Open, Securing, Tunnelling};
        const CONNECTING: Phase = Phase::Connecting;
        check("http://a.com", false, &[Closed, CONNECTING, Open]);
        check("https://a.com", false, &[Closed, CONNECTING, Securing, Open]);
        check("http://a.com", true, &[Closed, CONNECTING, Tunnelling, Open]);
        let all = [Closed, CONNECTING, Tunnelling, Securing, Open];
        check("https://a.com", true, &all);
    }

    #[test]
    fn a_tunnel_is_asked_for_by_name_and_port() {
        let check = |url: &str, expected: &str| {
            let route = route(url, Some(Some(("me", "hunter2"))));
            assert_eq!(route.peer(), ("proxy", 3128));
            let mut connecting = Connecting::default();
            connecting.connected(&route, at(1).mono, at(0));
            let asked = String::from_utf8_lossy(connecting.outgoing()).into_owned();
            assert!(asked.starts_with(&format!("CONNECT {expected} HTTP/1.1\r\n")), "{asked}");
            assert!(asked.contains("\r\nProxy-Authorization: Basic bWU6aHVudGVyMg==\r\n"));
            connecting.sent_bytes(asked.len());
            assert_eq!(connecting.outgoing(), b"");
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
            let (mut connecting, deadline) = (Connecting::default(), at(9).mono);
            connecting.connected(&route, deadline, at(0));
            let taken =
                connecting.receive(answer.as_bytes(), &route, &Limits::default(), deadline, at(0));
            assert_eq!(taken.expect_err("refused").to_string(), expected);
        };
        let wants = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno";
        check(wants, None, "status 407, it wants user and password");
        let known = Some(("me", "hunter2"));
        check(wants, known, "status 407, it does not take user and password");
        check("HTTP/1.1 502 Bad Gateway\r\n\r\n", known, "status 502");
        check("220 mail ready\r\n", None, "malformed answer: malformed version");
        let early = "HTTP/1.1 200 OK\r\n\r\n\x15\x03";
        check(early, None, "it speaks before it is spoken to");
    }

    #[test]
    fn each_attempt_has_its_share_of_the_time_and_the_last_has_the_rest() {
        let (mut connecting, deadline) = (Connecting::default(), at(6000).mono);
        let route = route("https://okx.com", None);
        connecting.begin(addresses(3));
        let next = |connecting: &mut Connecting, ms: u64| {
            connecting.next_attempt(&route, deadline, at(ms))
        };
        assert_eq!(next(&mut connecting, 0), Some(addresses(3)[0]));
        assert_eq!(connecting.give_up_at(), Some(at(2000).mono));
        // Connected, and stuck in the handshake.
        connecting.connected(&route, deadline, at(300));
        assert_eq!(connecting.give_up_at(), Some(at(2200).mono));
        assert_eq!(connecting.obstacle(), Some("TLS handshake"));
        connecting.close();
        assert_eq!(next(&mut connecting, 2200), Some(addresses(3)[1]));
        assert_eq!(connecting.give_up_at(), Some(at(4100).mono));
        connecting.close();
        assert_eq!(next(&mut connecting, 4100), Some(addresses(3)[2]));
        assert_eq!(connecting.give_up_at(), None);
        assert_eq!(connecting.obstacle(), Some("cannot connect"));
        connecting.close();
        assert_eq!(next(&mut connecting, 5000), None);
        assert_eq!(connecting.obstacle(), None);
    }
}
