//! One upstream connection, from its addresses to its end.
//!
//! | state | what it waits for | until when | the next state |
//! |---|---|---|---|
//! | closed | a user | for ever | resolving |
//! | resolving | an address of the name | the deadline | connecting |
//! | connecting | TCP | its share of the time | tunnelling, securing or open |
//! | tunnelling | the proxy's response | its share of the time | securing or open |
//! | securing | the TLS handshake | its share of the time | open |
//! | open | what its user waits for | the deadline | idle or closed |
//! | idle | a user, or the peer | a minute | open or closed |
//!
//! While a connection is being opened, a failure or the end of its time leads to connecting at the next
//! address. After the last address, it leads to closed. [`UpstreamConnection`] owns the state, the one
//! deadline that the state has, and the tunnel. The driver connects and does the TLS handshake.
//! [`super::Upstream`] owns the addresses. Its user owns what the connection carries.
//!
//! Through a proxy every host is reached by a tunnel (CONNECT), also over plain http: so the proxy's response
//! can never be mistaken for the host's, and the credentials are sent once a connection and to nobody else.

use crate::config::Url;
use crate::http::{Output, parse_connected, write_connect};
use crate::table::Key;
use crate::time::{Mono, Now};
use std::net::SocketAddr;
use std::time::Duration;

/// An open connection that nobody has used for this long is closed. Many networks drop such a connection
/// soon after, and tell nobody.
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
    /// Its user has nothing to send on it for now.
    Idle,
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
    /// How many addresses may be tried after this one, if there are as many.
    pub untried: u32,
    /// Until when its user waits: for the connection, then for what it carries.
    pub deadline: Mono,
    /// When the time of the state ends. `None`: closed.
    pub due: Option<Mono>,
    /// The tunnel that the proxy was asked for.
    pub tunnel: Tunnel,
}

impl UpstreamConnection {
    /// Begins a state. While the connection is being opened, each state divides the time that is left until
    /// the deadline among this attempt and the attempts that may follow. So an address that never answers
    /// leaves enough time for the others.
    pub fn enter(&mut self, state: ConnectState, now: Now) {
        self.state = state;
        self.due = match state {
            ConnectState::Closed => None,
            ConnectState::Resolving | ConnectState::Open => Some(self.deadline),
            ConnectState::Connecting | ConnectState::Tunnelling | ConnectState::Securing => {
                Some(now.mono + self.deadline.since(now.mono) / (self.untried + 1))
            }
            ConnectState::Idle => Some(now.mono + IDLE),
        };
    }

    /// The driver or the proxy has done what the present state waits for. Returns the next state.
    pub fn advance(&mut self, route: &Route, now: Now) -> ConnectState {
        let is_connecting = self.state == ConnectState::Connecting;
        let proxy = route.proxy.as_ref().filter(|_| is_connecting);
        let next = match proxy {
            Some(_) => ConnectState::Tunnelling,
            None if route.is_tls && self.state != ConnectState::Securing => ConnectState::Securing,
            None => ConnectState::Open,
        };
        // The credentials are not needed any more once the tunnel is open.
        self.tunnel = proxy.map(|proxy| Tunnel::new(route, proxy)).unwrap_or_default();
        self.enter(next, now);
        next
    }

    /// What has failed if the present state ends too early.
    pub fn obstacle(&self, route: &Route) -> String {
        let what = match self.state {
            ConnectState::Connecting if route.proxy.is_some() => "cannot connect to the proxy",
            ConnectState::Connecting => "cannot connect",
            ConnectState::Tunnelling => "no tunnel through the proxy",
            ConnectState::Securing => "TLS handshake",
            ConnectState::Resolving => return format!("cannot resolve {}", route.peer().0),
            ConnectState::Closed | ConnectState::Open | ConnectState::Idle => "connection lost",
        };
        what.to_string()
    }

    /// Enters `Closed`. Returns the key of the socket to close, if there is one. The address of the last
    /// attempt stays.
    pub fn close(&mut self) -> Option<Key> {
        (self.state, self.due, self.tunnel) = (ConnectState::Closed, None, Tunnel::default());
        self.key.take()
    }
}

/// The host to reach, and the proxy in front of it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The name that the certificate must have.
    pub host: String,
    /// The port.
    pub port: u16,
    /// True if TLS is spoken.
    pub is_tls: bool,
    /// The proxy.
    pub proxy: Option<Url>,
}

impl Route {
    /// The route to the host of this URL.
    pub fn new(url: &Url, proxy: Option<Url>) -> Route {
        Route { host: url.host.clone(), port: url.port, is_tls: url.is_tls(), proxy }
    }

    /// Host and port of the socket's peer: the proxy, if there is one.
    pub fn peer(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&self.host, self.port),
        }
    }
}

/// The request for a tunnel, and the proxy's response. It has no `Debug`, because it holds a proxy's
/// credentials while they are sent.
#[derive(Default)]
pub struct Tunnel {
    /// What is still to be sent.
    pub request: Output,
    inbox: Vec<u8>,
}

impl Tunnel {
    /// Asks the proxy of a route for a tunnel.
    pub fn new(route: &Route, proxy: &Url) -> Tunnel {
        let place = match route.host.contains(':') {
            true => format!("[{}]:{}", route.host, route.port),
            false => format!("{}:{}", route.host, route.port),
        };
        let credentials = proxy.credentials.as_ref().map(|it| (&it.user[..], &it.password[..]));
        let mut tunnel = Tunnel::default();
        write_connect(tunnel.request.bytes(), &place, credentials);
        tunnel
    }

    /// Takes in bytes of the proxy's response, whose head has at most `most` bytes. Returns true if the
    /// tunnel is open. The error says why the proxy opens no tunnel.
    pub fn receive(&mut self, bytes: &[u8], route: &Route, most: usize) -> Result<bool, String> {
        self.inbox.extend_from_slice(bytes);
        let parsed = parse_connected(&self.inbox, most);
        let Some((status, used)) = parsed.map_err(|error| format!("malformed answer: {error}"))?
        else {
            return Ok(false);
        };
        let is_identified = route.proxy.as_ref().is_some_and(|it| it.credentials.is_some());
        match status {
            // The host behind the tunnel speaks second, in TLS as in HTTP.
            200..300 if used < self.inbox.len() => {
                Err("the proxy sent data before any request".to_string())
            }
            200..300 => Ok(true),
            407 if is_identified => {
                Err("status 407, the proxy rejects the user and password".to_string())
            }
            407 => Err("status 407, the proxy requires a user and password".to_string()),
            _ => Err(format!("status {status}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Credentials;
    use crate::time::UnixMs;

    const MOST: usize = 4096;

    fn at(ms: u64) -> Now {
        Now { mono: Mono(ms * 1000), unix: UnixMs(0) }
    }

    fn route(url: &str, proxy: Option<Option<(&str, &str)>>) -> Route {
        let proxy = proxy.map(|credentials| Url {
            credentials: credentials.map(|(user, password)| Credentials {
                user: user.into(),
                password: password.into(),
            }),
            ..Url::parse("http://proxy:3128").expect("well-formed")
        });
        Route::new(&Url::parse(url).expect("well-formed"), proxy)
    }

    /// A connection that tries the first of so many addresses.
    fn begun(count: u32, deadline: u64) -> UpstreamConnection {
        let deadline = at(deadline).mono;
        let mut conn =
            UpstreamConnection { untried: count - 1, deadline, ..UpstreamConnection::default() };
        conn.enter(ConnectState::Resolving, at(0));
        assert_eq!(conn.due, Some(deadline));
        conn.enter(ConnectState::Connecting, at(0));
        conn
    }

    /// A connection whose address has been connected to.
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
                seen.push(conn.advance(&route, at(1)));
            }
            assert_eq!(seen, expected, "{url}");
            assert_eq!(conn.due, Some(at(5000).mono), "its user waits until then");
            assert!(conn.tunnel.request.is_empty());
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
            let asked = String::from_utf8_lossy(&conn.tunnel.request.to_vec()).into_owned();
            assert!(asked.starts_with(&format!("CONNECT {expected} HTTP/1.1\r\n")), "{asked}");
            assert!(asked.contains("\r\nProxy-Authorization: Basic bWU6aHVudGVyMg==\r\n"));
            conn.tunnel.request.advance(asked.len());
            assert!(conn.tunnel.request.is_empty());
            assert!(!format!("{route:?}").contains("hunter2"));
        };
        check("https://okx.com", "okx.com:443");
        check("http://okx.com/x", "okx.com:80");
        check("https://[fe80::1]:8443", "[fe80::1]:8443");
    }

    #[test]
    fn what_a_proxy_has_against_it_is_told() {
        let check = |answer: &str, expected: Result<bool, &str>| {
            let route = route("https://okx.com", Some(None));
            let taken = connected(&route).tunnel.receive(answer.as_bytes(), &route, MOST);
            assert_eq!(taken, expected.map_err(str::to_string), "{answer:?}");
        };
        // What it refuses with is tried in `tests/tls.rs`.
        let early = "HTTP/1.1 200 OK\r\n\r\n\x15\x03";
        check(early, Err("the proxy sent data before any request"));
        // RFC 9110, 9.3.6: what it says about a body is ignored.
        for field in ["Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Length: x"]
        {
            for version in ["1.0", "1.1"] {
                check(&format!("HTTP/{version} 200 OK\r\n{field}\r\n\r\n"), Ok(true));
            }
        }
    }

    #[test]
    fn each_attempt_has_its_share_of_the_time_and_the_last_has_the_rest() {
        let route = route("https://okx.com", None);
        let mut conn = begun(3, 6000);
        assert_eq!(conn.due, Some(at(2000).mono));
        // Connected, and stuck in the handshake.
        conn.advance(&route, at(300));
        assert_eq!(conn.due, Some(at(2200).mono));
        assert_eq!(conn.obstacle(&route), "TLS handshake");
        for (untried, begins, ends) in [(1, 2200, 4100), (0, 4100, 6000)] {
            conn.close();
            conn.untried = untried;
            conn.enter(ConnectState::Connecting, at(begins));
            assert_eq!(conn.due, Some(at(ends).mono));
        }
        assert_eq!(conn.obstacle(&route), "cannot connect");
    }
}
