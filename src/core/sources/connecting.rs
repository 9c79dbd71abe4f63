//! The phases of an upstream connection, from its addresses to one that carries requests.
//!
//! ```text
//! Closed -> Connecting -> (Tunnelling ->) (Securing ->) Open -> Closed
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
use crate::http::{parse_response, write_connect};
use crate::time::{Mono, Now};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectPhase {
    /// There is none.
    #[default]
    Closed,
    /// The driver connects.
    Connecting,
    /// The proxy has been asked for a tunnel.
    Tunnelling,
    /// The driver does the TLS handshake.
    Securing,
    /// It carries requests.
    Open,
}

/// The host to reach, and the proxy in front of it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The name that the certificate must have.
    pub host: String,
    /// The port.
    pub port: u16,
    /// True if TLS is spoken.
    pub https: bool,
    /// The proxy.
    pub proxy: Option<Proxy>,
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
    /// How far it has come.
    pub phase: ConnectPhase,
    /// True if the peer is a proxy.
    proxied: bool,
    /// The address of the present attempt.
    pub address: Option<SocketAddr>,
    untried: VecDeque<SocketAddr>,
    /// When all attempts have had their time.
    pub deadline: Mono,
    /// When the present attempt has had its share of the time. `None`: it may use all that is left.
    pub give_up_at: Option<Mono>,
    request: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
}

impl Connecting {
    /// Whether requests can be sent.
    pub fn is_open(&self) -> bool {
        self.phase == ConnectPhase::Open
    }

    /// What has failed if the present phase fails. `None`: the connection is open, or closed.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self.phase {
            ConnectPhase::Closed | ConnectPhase::Open => None,
            ConnectPhase::Connecting if self.proxied => Some("cannot connect to the proxy"),
            ConnectPhase::Connecting => Some("cannot connect"),
            ConnectPhase::Tunnelling => Some("no tunnel through the proxy"),
            ConnectPhase::Securing => Some("TLS handshake"),
        }
    }

    /// Sets the addresses to try, in their order, and the time that they have.
    pub fn begin(&mut self, untried: VecDeque<SocketAddr>, deadline: Mono) {
        *self = Connecting { untried, deadline, ..Connecting::default() };
    }

    /// Begins the next attempt, which gets its share of the time. `None`: all addresses have been tried.
    pub fn next_attempt(&mut self, route: &Route, now: Now) -> Option<SocketAddr> {
        self.close();
        let address = self.untried.pop_front()?;
        self.proxied = route.proxy.is_some();
        self.address = Some(address);
        self.step(ConnectPhase::Connecting, now);
        Some(address)
    }

    /// The connection is closed. The untried addresses stay.
    pub fn close(&mut self) {
        let untried = std::mem::take(&mut self.untried);
        self.begin(untried, self.deadline);
    }

    /// What the present phase was for is done: by the driver, or by the proxy.
    pub fn advance(&mut self, route: &Route, now: Now) {
        let next = match (self.phase, &route.proxy) {
            (ConnectPhase::Connecting, Some(proxy)) => {
                self.request = route.connect_request(proxy);
                ConnectPhase::Tunnelling
            }
            (ConnectPhase::Connecting | ConnectPhase::Tunnelling, _) if route.https => {
                ConnectPhase::Securing
            }
            _ => ConnectPhase::Open,
        };
        self.step(next, now);
    }

    /// Bytes for the proxy.
    pub fn outgoing(&self) -> &[u8] {
        &self.request[self.sent..]
    }

    /// Notes that `count` more bytes were sent to the proxy.
    pub fn sent_bytes(&mut self, count: usize) {
        self.sent += count;
    }

    /// Takes in bytes of the proxy's response. The error says why it opens no tunnel.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        route: &Route,
        limits: &Limits,
        now: Now,
    ) -> Result<(), String> {
        self.inbox.extend_from_slice(bytes);
        let parsed = parse_response(&self.inbox, limits.upstream_head_bytes);
        let Some(response) = parsed.map_err(|error| format!("malformed answer: {error}"))? else {
            return Ok(());
        };
        let is_identified = route.proxy.as_ref().is_some_and(|it| it.credentials.is_some());
        match response.head.status {
            200..300 => {}
            407 if is_identified => {
                return Err("status 407, the proxy rejects the user and password".to_string());
            }
            407 => return Err("status 407, the proxy requires a user and password".to_string()),
            status => return Err(format!("status {status}")),
        }
        // The exchange behind the tunnel speaks second, in TLS as in HTTP.
        if response.used < self.inbox.len() {
            return Err("the proxy sent data before any request".to_string());
        }
        self.advance(route, now);
        Ok(())
    }

    /// Begins a phase. It divides the time until the deadline among this attempt and those that may follow,
    /// anew in every phase: an address that never answers leaves enough for the others.
    fn step(&mut self, phase: ConnectPhase, now: Now) {
        if phase == ConnectPhase::Open {
            // The buffers are not needed any more, nor are the credentials in them.
            *self = Connecting { address: self.address, ..Connecting::default() };
        }
        self.phase = phase;
        let attempts = u32::try_from(self.untried.len()).unwrap_or(u32::MAX);
        let left: Duration = self.deadline.since(now.mono);
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

    /// One whose address has been connected to.
    fn connected(route: &Route) -> Connecting {
        let mut connecting = Connecting::default();
        connecting.begin(addresses(1), at(9).mono);
        connecting.next_attempt(route, at(0)).expect("one address");
        connecting.advance(route, at(0));
        connecting
    }

    #[test]
    fn a_connection_goes_through_the_phases_of_its_route() {
        let check = |url: &str, proxied: bool, expected: &[ConnectPhase]| {
            let route = route(url, proxied.then_some(None));
            let (mut connecting, deadline) = (Connecting::default(), at(5000).mono);
            connecting.begin(addresses(1), deadline);
            let mut seen = vec![connecting.phase];
            while connecting.phase != ConnectPhase::Open {
                match connecting.phase {
                    ConnectPhase::Closed => {
                        connecting.next_attempt(&route, at(0)).expect("one address");
                    }
                    ConnectPhase::Connecting | ConnectPhase::Securing => {
                        connecting.advance(&route, at(1))
                    }
                    ConnectPhase::Tunnelling => {
                        let limits = Limits::default();
                        for byte in
                            b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"
                        {
                            let taken = connecting.receive(&[*byte], &route, &limits, at(1));
                            assert_eq!(taken, Ok(()));
                        }
                    }
                    phase => panic!("{phase:?}"),
                }
                seen.push(connecting.phase);
            }
            assert_eq!(seen, expected, "{url}");
            assert_eq!(connecting.give_up_at, None);
            assert_eq!(connecting.outgoing(), b"");
        };
        use ConnectPhase::{Closed, Open, Securing, Tunnelling};
        const CONNECTING: ConnectPhase = ConnectPhase::Connecting;
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
            let mut connecting = connected(&route);
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
            let mut connecting = connected(&route);
            let taken = connecting.receive(answer.as_bytes(), &route, &Limits::default(), at(0));
            assert_eq!(taken.expect_err("refused"), expected);
        };
        let wants = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno";
        check(wants, None, "status 407, the proxy requires a user and password");
        let known = Some(("me", "hunter2"));
        check(wants, known, "status 407, the proxy rejects the user and password");
        check("HTTP/1.1 502 Bad Gateway\r\n\r\n", known, "status 502");
        check("220 mail ready\r\n", None, "malformed answer: malformed version");
        let early = "HTTP/1.1 200 OK\r\n\r\n\x15\x03";
        check(early, None, "the proxy sent data before any request");
    }

    #[test]
    fn each_attempt_has_its_share_of_the_time_and_the_last_has_the_rest() {
        let (mut connecting, deadline) = (Connecting::default(), at(6000).mono);
        let route = route("https://okx.com", None);
        connecting.begin(addresses(3), deadline);
        let next = |connecting: &mut Connecting, ms: u64| connecting.next_attempt(&route, at(ms));
        assert_eq!(next(&mut connecting, 0), Some(addresses(3)[0]));
        assert_eq!(connecting.give_up_at, Some(at(2000).mono));
        // Connected, and stuck in the handshake.
        connecting.advance(&route, at(300));
        assert_eq!(connecting.give_up_at, Some(at(2200).mono));
        assert_eq!(connecting.obstacle(), Some("TLS handshake"));
        connecting.close();
        assert_eq!(next(&mut connecting, 2200), Some(addresses(3)[1]));
        assert_eq!(connecting.give_up_at, Some(at(4100).mono));
        connecting.close();
        assert_eq!(next(&mut connecting, 4100), Some(addresses(3)[2]));
        assert_eq!(connecting.give_up_at, None);
        assert_eq!(connecting.obstacle(), Some("cannot connect"));
        connecting.close();
        assert_eq!(next(&mut connecting, 5000), None);
        assert_eq!(connecting.obstacle(), None);
    }
}
