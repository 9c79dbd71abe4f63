//! The way to a host: its name and port, whether TLS is spoken, and the tunnel through a proxy.
//!
//! Through a proxy every host is reached by a tunnel (CONNECT), also over plain http: so the proxy's response
//! can never be mistaken for the host's, and the credentials are sent once a connection and to nobody else.

use crate::config::{Proxy, Url};
use crate::http::{parse_connected, write_connect};

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
    pub proxy: Option<Proxy>,
}

impl Route {
    /// The route to the host of this URL.
    pub fn new(url: &Url, proxy: Option<Proxy>) -> Route {
        Route { host: url.host.clone(), port: url.port, is_tls: url.https, proxy }
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
    request: Vec<u8>,
    inbox: Vec<u8>,
}

impl Tunnel {
    /// Asks the proxy of a route for a tunnel.
    pub fn new(route: &Route, proxy: &Proxy) -> Tunnel {
        let place = match route.host.contains(':') {
            true => format!("[{}]:{}", route.host, route.port),
            false => format!("{}:{}", route.host, route.port),
        };
        let credentials = proxy.credentials.as_ref().map(|it| (&it.user[..], &it.password[..]));
        let mut tunnel = Tunnel::default();
        write_connect(&mut tunnel.request, &place, credentials);
        tunnel
    }

    /// Bytes for the proxy.
    pub fn outgoing(&self) -> &[u8] {
        &self.request
    }

    /// Notes that `count` more bytes were sent to the proxy.
    pub fn sent_bytes(&mut self, count: usize) {
        self.request.drain(..count);
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
