//! One upstream connection, from its addresses to its end.
//!
//! | state | what it waits for | until when | the next state |
//! |---|---|---|---|
//! | closed | a user | for ever | resolving |
//! | resolving | an address of the name | the deadline | connecting |
//! | connecting | TCP | its share of the time | tunnelling, securing or open |
//! | tunnelling | the proxy's response | its share of the time | securing or open |
//! | securing | the TLS handshake | its share of the time | open |
//! | open | its user, or the peer | a minute without a user | closed |
//!
//! From each state but the first, a failure or the end of the time leads to connecting, at the next address,
//! or to closed behind the last one. [`UpstreamConnection`] owns the state, the addresses that are still to
//! be tried, the one deadline that the state has, and the tunnel. The driver connects and does the TLS
//! handshake. A connection does not know what it carries: that is [`super::Upstream`]'s user's.

use super::route::{Route, Tunnel};
use crate::table::Key;
use crate::time::{Mono, Now};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// An open connection that nobody has used for so long is closed. Many a network forgets it without a word
/// soon after.
const IDLE: Duration = Duration::from_secs(60);

/// See the table of the module's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectState {
    /// There is no connection.
    #[default]
    Closed,
    /// No address of the host is known yet, or all have failed.
    Resolving,
    /// The driver connects.
    Connecting,
    /// The proxy has been asked for a tunnel.
    Tunnelling,
    /// The driver does the TLS handshake.
    Securing,
    /// It carries what its user sends.
    Open,
}

/// See the module's page. It has no `Debug`, because it may hold a proxy's credentials.
#[derive(Default)]
pub struct UpstreamConnection {
    /// Set while there is a socket.
    pub key: Option<Key>,
    /// Its state.
    pub state: ConnectState,
    /// The address of the last attempt, also after the end.
    pub address: Option<SocketAddr>,
    untried: VecDeque<SocketAddr>,
    /// When all attempts have had their time.
    deadline: Mono,
    /// When the state has had its time. `None`: closed, or in use.
    pub due: Option<Mono>,
    /// The tunnel that the proxy was asked for.
    pub tunnel: Tunnel,
}

impl UpstreamConnection {
    /// It is wanted, and is to be open by then.
    pub fn begin(&mut self, deadline: Mono) {
        let state = ConnectState::Resolving;
        *self = UpstreamConnection {
            state,
            deadline,
            due: Some(deadline),
            ..UpstreamConnection::default()
        };
    }

    /// It waits for an address no longer than that, unless none is known.
    pub fn wait_until(&mut self, time: Mono) {
        self.due = Some(time.min(self.deadline));
    }

    /// Sets the addresses to try, in their order.
    pub fn set_untried(&mut self, addresses: VecDeque<SocketAddr>) {
        self.untried = addresses;
    }

    /// Begins the next attempt. `false`: there is no other address, or no time.
    pub fn next_attempt(&mut self, now: Now) -> bool {
        let address = self.untried.pop_front().filter(|_| now.mono < self.deadline);
        if address.is_some() {
            self.address = address;
            self.step(ConnectState::Connecting, now);
        }
        address.is_some()
    }

    /// What the present state was for is done: by the driver, or by the proxy.
    pub fn advance(&mut self, route: &Route, now: Now) {
        let tunnel = Tunnel::new(route).filter(|_| self.state == ConnectState::Connecting);
        let next = match &tunnel {
            Some(_) => ConnectState::Tunnelling,
            None if route.is_tls && self.state != ConnectState::Securing => ConnectState::Securing,
            None => ConnectState::Open,
        };
        // The credentials are not needed any more once the tunnel is open.
        self.tunnel = tunnel.unwrap_or_default();
        self.step(next, now);
    }

    /// Begins a state. It divides the time until the deadline among this attempt and those that may follow,
    /// anew in every state: an address that never answers leaves enough for the others.
    fn step(&mut self, state: ConnectState, now: Now) {
        self.state = state;
        let attempts = u32::try_from(self.untried.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.due = match state {
            ConnectState::Open => None,
            _ => Some(now.mono + self.deadline.since(now.mono) / attempts),
        };
    }

    /// What has failed if the present state fails. `None`: it is open, or closed.
    pub fn obstacle(&self, route: &Route) -> Option<&'static str> {
        match self.state {
            ConnectState::Closed | ConnectState::Open => None,
            ConnectState::Resolving => Some("cannot resolve the name"),
            ConnectState::Connecting if route.proxy.is_some() => {
                Some("cannot connect to the proxy")
            }
            ConnectState::Connecting => Some("cannot connect"),
            ConnectState::Tunnelling => Some("no tunnel through the proxy"),
            ConnectState::Securing => Some("TLS handshake"),
        }
    }

    /// Its user has nothing to send on it for now.
    pub fn rest(&mut self, now: Now) {
        self.due = Some(now.mono + IDLE);
    }

    /// True if it is open, and its user has nothing to send on it.
    pub fn is_resting(&self) -> bool {
        self.state == ConnectState::Open && self.due.is_some()
    }

    /// It is used again.
    pub fn resume(&mut self) {
        self.due = None;
    }

    /// Its process was paused for so long while it was being opened.
    pub fn postpone(&mut self, by: Duration) {
        self.deadline = self.deadline + by;
        self.due = self.due.map(|due| due + by);
    }

    /// It is closed. The address of the last attempt stays, and so do those that are untried.
    pub fn close(&mut self) -> Option<Key> {
        (self.state, self.due) = (ConnectState::Closed, None);
        self.tunnel = Tunnel::default();
        self.key.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Credentials, Proxy, Url};
    use crate::time::UnixMs;

    const MOST: usize = 4096;

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

    /// One that is being opened, and has so many addresses.
    fn begun(count: u8, deadline: u64) -> UpstreamConnection {
        let mut conn = UpstreamConnection::default();
        conn.begin(at(deadline).mono);
        assert_eq!((conn.state, conn.due), (ConnectState::Resolving, Some(at(deadline).mono)));
        conn.set_untried(addresses(count));
        assert!(conn.next_attempt(at(0)));
        conn
    }

    /// One whose address has been connected to.
    fn connected(route: &Route) -> UpstreamConnection {
        let mut conn = begun(1, 9);
        conn.advance(route, at(0));
        conn
    }

    #[test]
    fn a_connection_goes_through_the_states_of_its_route() {
        let check = |url: &str, proxied: bool, expected: &[ConnectState]| {
            let route = route(url, proxied.then_some(None));
            let mut conn = begun(1, 5000);
            let mut seen = vec![conn.state];
            while conn.state != ConnectState::Open {
                if conn.state == ConnectState::Tunnelling {
                    let answer =
                        b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n";
                    let (last, others) = answer.split_last().expect("it has bytes");
                    for byte in others {
                        assert_eq!(conn.tunnel.receive(&[*byte], &route, MOST), Ok(false));
                    }
                    assert_eq!(conn.tunnel.receive(&[*last], &route, MOST), Ok(true));
                }
                conn.advance(&route, at(1));
                seen.push(conn.state);
            }
            assert_eq!(seen, expected, "{url}");
            assert_eq!(conn.due, None);
            assert_eq!(conn.tunnel.outgoing(), b"");
        };
        use ConnectState::{Connecting, Open, Securing, Tunnelling};
        check("http://a.com", false, &[Connecting, Open]);
        check("https://a.com", false, &[Connecting, Securing, Open]);
        check("http://a.com", true, &[Connecting, Tunnelling, Open]);
        check("https://a.com", true, &[Connecting, Tunnelling, Securing, Open]);
    }

    #[test]
    fn a_tunnel_is_asked_for_by_name_and_port() {
        let check = |url: &str, expected: &str| {
            let route = route(url, Some(Some(("me", "hunter2"))));
            assert_eq!(route.peer(), ("proxy", 3128));
            let mut conn = connected(&route);
            let asked = String::from_utf8_lossy(conn.tunnel.outgoing()).into_owned();
            assert!(asked.starts_with(&format!("CONNECT {expected} HTTP/1.1\r\n")), "{asked}");
            assert!(asked.contains("\r\nProxy-Authorization: Basic bWU6aHVudGVyMg==\r\n"));
            conn.tunnel.sent_bytes(asked.len());
            assert_eq!(conn.tunnel.outgoing(), b"");
            assert!(!format!("{route:?}").contains("hunter2"));
        };
        check("https://okx.com", "okx.com:443");
        check("http://okx.com/x", "okx.com:80");
        check("https://[fe80::1]:8443", "[fe80::1]:8443");
    }

    #[test]
    fn what_a_proxy_has_against_it_is_told() {
        let check =
            |answer: &str, credentials: Option<(&str, &str)>, expected: Result<bool, &str>| {
                let route = route("https://okx.com", Some(credentials));
                let taken = connected(&route).tunnel.receive(answer.as_bytes(), &route, MOST);
                assert_eq!(taken, expected.map_err(str::to_string), "{answer:?}");
            };
        let wants = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno";
        check(wants, None, Err("status 407, the proxy requires a user and password"));
        let known = Some(("me", "hunter2"));
        check(wants, known, Err("status 407, the proxy rejects the user and password"));
        check("HTTP/1.1 502 Bad Gateway\r\n\r\n", known, Err("status 502"));
        check("220 mail ready\r\n", None, Err("malformed answer: malformed version"));
        let early = "HTTP/1.1 200 OK\r\n\r\n\x15\x03";
        check(early, None, Err("the proxy sent data before any request"));
        // RFC 9110, 9.3.6: what it says about a body is ignored.
        for field in ["Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Length: x"]
        {
            for version in ["1.0", "1.1"] {
                check(&format!("HTTP/{version} 200 OK\r\n{field}\r\n\r\n"), None, Ok(true));
            }
        }
    }

    #[test]
    fn each_attempt_has_its_share_of_the_time_and_the_last_has_the_rest() {
        let route = route("https://okx.com", None);
        let mut conn = begun(3, 6000);
        let attempt = |conn: &UpstreamConnection| (conn.address, conn.due);
        let of = |at_index: usize, ms: u64| (Some(addresses(3)[at_index]), Some(at(ms).mono));
        assert_eq!(attempt(&conn), of(0, 2000));
        // Connected, and stuck in the handshake.
        conn.advance(&route, at(300));
        assert_eq!(attempt(&conn), of(0, 2200));
        assert_eq!(conn.obstacle(&route), Some("TLS handshake"));
        conn.close();
        assert!(conn.next_attempt(at(2200)));
        assert_eq!(attempt(&conn), of(1, 4100));
        conn.close();
        assert!(conn.next_attempt(at(4100)));
        assert_eq!(attempt(&conn), of(2, 6000));
        assert_eq!(conn.obstacle(&route), Some("cannot connect"));
        conn.close();
        assert!(!conn.next_attempt(at(5000)));
        assert_eq!(conn.obstacle(&route), None);
        assert_eq!(conn.address, Some(addresses(3)[2]), "it is known where it was");
    }

    #[test]
    fn an_open_connection_rests_for_a_minute() {
        let mut conn = connected(&route("http://okx.com", None));
        assert!(!conn.is_resting());
        conn.rest(at(1000));
        assert_eq!((conn.is_resting(), conn.due), (true, Some(at(61_000).mono)));
        conn.resume();
        assert_eq!((conn.is_resting(), conn.due), (false, None));
    }
}
