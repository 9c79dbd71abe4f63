//! The way to one host, for everyone whom marketd connects to: exchanges, the proxies in front of them, and
//! the engine of a cluster.
//!
//! [`Upstream`] owns the [`Route`], the [`Addresses`] of the host, and a few [`UpstreamConnection`]s, whose
//! life is the table of `connection`. Its user wants a connection until a deadline, and gets told by [`Told`]
//! what comes of it. Then the user says what it thinks of what came: [`Upstream::worked`] makes an address
//! good, [`Upstream::failed`] has the others tried first, closes what rests at this one, and has the name
//! looked up again. It does not know what its connections carry, and repeats nothing.

mod addresses;
mod connection;
mod route;
#[cfg(test)]
mod tests;
mod told;

use crate::core::context::Context;
use crate::core::{Action, Broken, Event, LookUp};
use crate::log_targets::quoted;
use crate::table::Key;
use crate::time::{Mono, Now};
use addresses::Addresses;
use connection::{ConnectState, UpstreamConnection};
pub use route::Route;
use std::net::SocketAddr;
use std::time::Duration;
pub use told::{Obstacle, Told, User};

/// While every known address has failed, how long a connection waits for a look-up that is under way.
const LOOK_UP_WAIT: Duration = Duration::from_secs(1);

/// See the module's page.
pub struct Upstream {
    user: User,
    route: Route,
    addresses: Addresses,
    all: Vec<UpstreamConnection>,
}

impl Upstream {
    /// `count` connections, all of them closed.
    pub fn new(user: User, route: Route, count: usize) -> Upstream {
        let (host, port) = route.peer();
        let addresses = Addresses::of(host, port);
        let all = (0..count).map(|_| UpstreamConnection::default()).collect();
        Upstream { user, route, addresses, all }
    }

    /// Leads elsewhere from now on: every connection is closed.
    pub fn reroute(&mut self, route: Route, cx: &mut Context) {
        self.close_all(cx);
        let mut new = Upstream::new(self.user, route, self.all.len());
        new.await_look_up(self);
        *self = new;
    }

    /// Waits for the look-up of a former route, if one is under way.
    pub fn await_look_up(&mut self, former: &Upstream) {
        self.addresses.await_look_up(&former.addresses);
    }

    /// True if what its user sends is sent.
    pub fn is_open(&self, conn: usize) -> bool {
        self.all[conn].state == ConnectState::Open
    }

    /// True if it has to be wanted first.
    pub fn is_closed(&self, conn: usize) -> bool {
        self.all[conn].state == ConnectState::Closed
    }

    /// True if this is the key of its present socket.
    pub fn has_key(&self, conn: usize, key: Key) -> bool {
        self.all[conn].key == Some(key)
    }

    /// True if an address of the host has not failed since it last answered well.
    pub fn has_other(&self) -> bool {
        self.addresses.has_good()
    }

    /// When [`Upstream::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        self.all.iter().filter_map(|it| it.due).min()
    }

    /// The user wants a connection, which has to be open by then. `true`: it is open already.
    pub fn want(&mut self, conn: usize, deadline: Mono, cx: &mut Context) -> bool {
        let is_moving = self.addresses.is_looking_up() && !self.addresses.has_good();
        self.look_up(cx);
        if self.is_open(conn) {
            self.all[conn].resume();
            self.flush(conn, cx);
            return true;
        }
        self.all[conn].begin(deadline);
        match is_moving {
            true => self.all[conn].wait_until(cx.now.mono + LOOK_UP_WAIT),
            false => self.connect(conn, cx.now),
        }
        false
    }

    /// There is something to send, or to read again.
    pub fn flush(&self, conn: usize, cx: &mut Context) {
        cx.actions.extend(self.all[conn].key.map(Action::Flush));
    }

    /// Begins with the first address, if one is known.
    fn connect(&mut self, conn: usize, now: Now) {
        self.all[conn].set_untried(self.addresses.in_order());
        self.all[conn].next_attempt(now);
    }

    /// Looks the name up, if that is due. Nobody waits for it while a good address is known.
    fn look_up(&mut self, cx: &mut Context) {
        if self.addresses.look_up(cx.now) {
            let (host, port) = self.route.peer();
            let (source, host) = (self.user.id, host.to_string());
            let has_worked = self.addresses.have_worked;
            cx.actions.push_back(Action::Resolve(LookUp { source, host, port, has_worked }));
        }
    }

    /// Has the driver open the connections that are wanted, each under a new key. Without a key, it is tried
    /// at the next call.
    pub fn open(&mut self, mut new_key: impl FnMut(usize) -> Option<Key>, cx: &mut Context) {
        for (conn, it) in self.all.iter_mut().enumerate() {
            let is_wanted = it.key.is_none() && it.state == ConnectState::Connecting;
            if let Some(address) = it.address.filter(|_| is_wanted)
                && let Some(key) = new_key(conn)
            {
                let name = self.user.name(cx);
                log::debug!(target: self.user.target, "connect source={name} address={address}");
                it.key = Some(key);
                cx.actions.push_back(Action::Connect(key, address));
            }
        }
    }

    /// Takes in the addresses of the host, or why the look-up failed. Connections whose address has left the
    /// list are closed, those in use once they rest. After a failure, known addresses are kept, and the first
    /// connection that waited for an address is closed: it is returned, with the reason.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        cx: &mut Context,
    ) -> Option<(usize, String)> {
        let is_waiting = |conn: &usize| self.all[*conn].state == ConnectState::Resolving;
        let waiting: Vec<usize> = (0..self.all.len()).filter(is_waiting).collect();
        if self.addresses.skip_former() {
            if !waiting.is_empty() {
                self.look_up(cx);
            }
            return None;
        }
        match addresses {
            Ok(list) => {
                self.addresses.found(list, cx.now);
                waiting.into_iter().for_each(|conn| self.connect(conn, cx.now));
                self.close_resting(|known, address| !known.has(address), cx);
                None
            }
            Err(why) => {
                if self.addresses.not_found(cx.now) && !self.addresses.is_empty() {
                    log::warn!(
                        target: self.user.target,
                        "name look-up failed source={} addresses=kept error={}",
                        self.user.name(cx),
                        quoted(&why)
                    );
                }
                let first = *waiting.first()?;
                self.close(first, cx);
                Some((first, why))
            }
        }
    }

    /// Bytes to send on a connection that is being opened, and whether bytes from it are welcome. Those of
    /// the TLS handshake are the driver's. `None`: it is open, and its user knows.
    pub fn interest(&self, conn: usize, key: Key) -> Option<(&[u8], bool)> {
        let it = &self.all[conn];
        match it.state {
            _ if it.key != Some(key) => Some((&[], false)),
            ConnectState::Tunnelling => Some((it.tunnel.outgoing(), true)),
            ConnectState::Open => None,
            _ => Some((&[], false)),
        }
    }

    /// Takes in what happened to a connection.
    pub fn handle<'a>(
        &mut self,
        conn: usize,
        key: Key,
        event: Event<'a>,
        cx: &mut Context,
    ) -> Told<'a> {
        let it = &mut self.all[conn];
        let is_open = it.state == ConnectState::Open;
        match event {
            _ if it.key != Some(key) => Told::Nothing,
            Event::Connected | Event::Secured => self.advance(conn, key, cx),
            Event::Sent(count) if is_open => Told::Sent(count),
            Event::Sent(count) => {
                it.tunnel.sent_bytes(count);
                Told::Nothing
            }
            Event::Received(_) if it.is_resting() => {
                // Nothing was requested: these bytes could not be told from the next response.
                self.close(conn, cx);
                Told::Nothing
            }
            Event::Received(bytes) if is_open => Told::Received(bytes),
            Event::Received(bytes) => {
                let most = cx.config.limits.upstream_head_bytes;
                match it.tunnel.receive(bytes, &self.route, most) {
                    Ok(true) => self.advance(conn, key, cx),
                    Ok(false) => Told::Nothing,
                    Err(why) => self.attempt_failed(conn, Some(why), cx),
                }
            }
            // Only clients' connections have this event.
            Event::Eof => self.lost(conn, None, cx),
            Event::Failed(why) => self.lost(conn, Some(why), cx),
        }
    }

    /// What a state was for is done.
    fn advance<'a>(&mut self, conn: usize, key: Key, cx: &mut Context) -> Told<'a> {
        let it = &mut self.all[conn];
        it.advance(&self.route, cx.now);
        match it.state {
            ConnectState::Open => return Told::Opened,
            ConnectState::Securing => {
                cx.actions.push_back(Action::Secure(key, self.route.host.clone()));
            }
            _ => {}
        }
        Told::Nothing
    }

    /// A connection has ended, or an attempt to open one.
    fn lost<'a>(&mut self, conn: usize, why: Option<&'a Broken>, cx: &mut Context) -> Told<'a> {
        log::debug!(
            target: self.user.target,
            "connection ended source={} connected={} reason={}",
            self.user.name(cx),
            self.is_open(conn),
            why.map_or(quoted("closed by the peer"), quoted),
        );
        if self.is_open(conn) {
            let is_resting = self.all[conn].is_resting();
            self.close(conn, cx);
            return if is_resting { Told::Nothing } else { Told::Lost(why) };
        }
        let why = why.unwrap_or(&Broken::Closed).to_string();
        self.attempt_failed(conn, Some(why), cx)
    }

    /// An address is of no use. The next one is tried. Without `why`, it took too long.
    fn attempt_failed<'a>(
        &mut self,
        conn: usize,
        why: Option<String>,
        cx: &mut Context,
    ) -> Told<'a> {
        let what = self.all[conn].obstacle(&self.route);
        self.close(conn, cx);
        self.failed(conn, cx.now.mono, cx);
        match what {
            Some(what) if !self.all[conn].next_attempt(cx.now) => {
                Told::Unreachable(Obstacle { what, why })
            }
            _ => Told::Nothing,
        }
    }

    /// Gives up what has had its time.
    pub fn handle_timeout<'a>(&mut self, conn: usize, cx: &mut Context) -> Told<'a> {
        if self.all[conn].due.is_none_or(|due| due > cx.now.mono) {
            return Told::Nothing;
        }
        match self.all[conn].state {
            ConnectState::Open => self.close(conn, cx),
            ConnectState::Resolving if !self.addresses.is_empty() => self.connect(conn, cx.now),
            _ => return self.attempt_failed(conn, None, cx),
        }
        Told::Nothing
    }

    /// What was asked on a connection was answered well.
    pub fn worked(&mut self, conn: usize, now: Now) {
        if let Some(address) = self.all[conn].address {
            self.addresses.worked(address, now);
        }
    }

    /// What was begun then on a connection has failed, through the fault of its address, unless that has
    /// answered something else well meanwhile.
    pub fn failed(&mut self, conn: usize, begun: Mono, cx: &mut Context) {
        if let Some(address) = self.all[conn].address
            && self.addresses.failed(address, begun, cx.now)
        {
            self.close_resting(|_, it| it == address, cx);
            self.look_up(cx);
        }
    }

    /// The user has nothing to send on an open connection for now. It is closed if its address has left the
    /// list.
    pub fn rest(&mut self, conn: usize, cx: &mut Context) {
        let it = &mut self.all[conn];
        match it.address.is_some_and(|address| self.addresses.has(address)) {
            true => it.rest(cx.now),
            false => self.close(conn, cx),
        }
    }

    /// Closes what rests at these addresses.
    fn close_resting(
        &mut self,
        is_chosen: impl Fn(&Addresses, SocketAddr) -> bool,
        cx: &mut Context,
    ) {
        for conn in 0..self.all.len() {
            let it = &self.all[conn];
            let is_chosen = |address| is_chosen(&self.addresses, address);
            if it.is_resting() && it.address.is_some_and(is_chosen) {
                self.close(conn, cx);
            }
        }
    }

    /// Closes a connection.
    pub fn close(&mut self, conn: usize, cx: &mut Context) {
        cx.actions.extend(self.all[conn].close().map(Action::Close));
    }

    /// Closes every connection.
    pub fn close_all(&mut self, cx: &mut Context) {
        for conn in 0..self.all.len() {
            self.close(conn, cx);
        }
    }

    /// This process was paused for so long: what is being opened gets as much more time.
    pub fn postpone(&mut self, by: Duration) {
        self.all.iter_mut().for_each(|it| it.postpone(by));
    }
}
