//! The way to one host that marketd connects to: an exchange, the proxy in front of it, or the engine of a
//! cluster.
//!
//! [`Upstream`] owns the [`Route`], the [`Addresses`] of the host, and a few [`UpstreamConnection`]s, whose
//! states are in the table of `connection`. Its user asks for a connection, and says until when it waits. The
//! user is told what comes, and how the connection has [`Ended`]. Then the user judges what came.
//! [`Upstream::worked`] makes an address good. [`Upstream::failed`] has the other addresses tried first,
//! closes idle connections to this one, and has the name looked up again. An [`Upstream`] does not know what
//! its connections carry, and repeats nothing.

mod addresses;
mod connection;
#[cfg(test)]
mod tests;

use crate::core::context::Context;
use crate::core::{Action, Broken, Event, LookUp, Resolved};
use crate::http::{EMPTY, Output};
use crate::log_targets::{CLUSTER, SOURCE, quoted};
use crate::market::SourceId;
use crate::table::Key;
use crate::time::{Mono, Now};
use addresses::Addresses;
use connection::UpstreamConnection;
pub use connection::{ConnectState, Route};
use std::fmt;
use std::time::Duration;

/// While every known address has failed, how long a connection waits for a look-up that is under way.
const LOOK_UP_WAIT: Duration = Duration::from_secs(1);

/// See the module's page.
pub struct Upstream {
    /// Its user: a source, or the engine.
    user: SourceId,
    route: Route,
    /// The addresses of the host.
    pub addresses: Addresses,
    all: Vec<UpstreamConnection>,
}

/// What a user is to know of a connection: `Connected` once it is open, however many steps that takes, then
/// what is sent and received, and its end.
type Told<'a> = Result<Option<Event<'a>>, Ended>;

/// How a connection that its user wanted or used has ended.
#[derive(Debug)]
pub struct Ended {
    /// True if it was open. Otherwise no address has led to an open one.
    pub was_open: bool,
    /// What has failed, in words.
    pub what: String,
    /// Why. `None`: the deadline has passed.
    pub why: Option<Broken>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(f, "{}: {why}", self.what),
            None if self.was_open => f.write_str("no answer in time"),
            None => write!(f, "{}: no answer in time", self.what),
        }
    }
}

impl Upstream {
    /// `count` connections, all of them closed.
    pub fn new(user: SourceId, route: Route, count: usize) -> Upstream {
        let (host, port) = route.peer();
        let addresses = Addresses::of(host, port);
        let all = (0..count).map(|_| UpstreamConnection::default()).collect();
        Upstream { user, route, addresses, all }
    }

    /// Leads elsewhere from now on: every connection is closed.
    pub fn reroute(&mut self, route: Route, cx: &mut Context) {
        self.close_all(cx);
        let mut former = std::mem::replace(self, Upstream::new(self.user, route, self.all.len()));
        self.inherit(&mut former);
    }

    /// Takes over the addresses of a former way, and its look-up, if it led to the same host and port.
    pub fn inherit(&mut self, former: &mut Upstream) {
        if self.route.peer() == former.route.peer() {
            self.addresses = std::mem::take(&mut former.addresses);
        }
    }

    /// What a connection waits for.
    pub fn state(&self, conn: usize) -> ConnectState {
        self.all[conn].state
    }

    /// True if this is the key of its present socket.
    pub fn has_key(&self, conn: usize, key: Key) -> bool {
        self.all[conn].key == Some(key)
    }

    /// When [`Upstream::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        self.all.iter().filter_map(|it| it.due).min()
    }

    /// The user wants a connection, and waits for what comes on it until the deadline. `true`: it is open
    /// already.
    pub fn want(&mut self, conn: usize, deadline: Mono, cx: &mut Context) -> bool {
        let is_moving = self.addresses.is_looking_up && !self.addresses.has_good();
        self.look_up(cx);
        let it = &mut self.all[conn];
        (it.deadline, it.untried) = (deadline, u32::MAX);
        if it.state == ConnectState::Idle {
            it.enter(ConnectState::Open, cx.now);
            self.flush(conn, cx);
            return true;
        }
        it.enter(ConnectState::Resolving, cx.now);
        if is_moving {
            it.due = Some(deadline.min(cx.now.mono + LOOK_UP_WAIT));
        } else {
            self.try_next(conn, cx.now);
        }
        false
    }

    /// The user of an open connection waits until then.
    pub fn wait_until(&mut self, conn: usize, deadline: Mono) {
        let it = &mut self.all[conn];
        (it.deadline, it.due) = (deadline, Some(deadline));
    }

    /// There is something to send, or to read again.
    pub fn flush(&self, conn: usize, cx: &mut Context) {
        cx.actions.extend(self.all[conn].key.map(Action::Flush));
    }

    /// Tries the first address. Addresses that have failed come last. Returns false if no address is known,
    /// all were tried, or no time is left.
    fn try_next(&mut self, conn: usize, now: Now) -> bool {
        let it = &mut self.all[conn];
        let untried = it.untried.min(self.addresses.len());
        let may_try = untried > 0 && now.mono < it.deadline;
        if may_try {
            (it.address, it.untried) = (self.addresses.first(), untried - 1);
            it.enter(ConnectState::Connecting, now);
        }
        may_try
    }

    /// Looks the name up, if that is due. Nobody waits for it while a good address is known.
    fn look_up(&mut self, cx: &mut Context) {
        let has_worked = self.addresses.len() > 0;
        if self.addresses.look_up(cx.now) {
            let (host, port) = self.route.peer();
            let (source, host) = (self.user, host.to_string());
            cx.actions.push_back(Action::Resolve(LookUp { source, host, port, has_worked }));
        }
    }

    /// Has the driver open the connections that are wanted, each under a new key. If no key is free, the next
    /// call tries again.
    pub fn open(&mut self, cx: &mut Context) {
        for (conn, it) in self.all.iter_mut().enumerate() {
            let is_wanted = it.key.is_none() && it.state == ConnectState::Connecting;
            if let Some(address) = it.address.filter(|_| is_wanted)
                && let Some(key) = cx.upstreams.insert((self.user, conn))
            {
                let (target, name) = named(self.user, cx);
                log::debug!(target: target, "connect source={name} address={address}");
                it.key = Some(key);
                cx.actions.push_back(Action::Connect(key, address));
            }
        }
    }

    /// Takes in the addresses of the host, or why the look-up failed. After a failure, the known addresses
    /// stay. A connection whose address has left the list is closed once it is idle. The connections that
    /// have waited for the look-up are due.
    pub fn resolved(&mut self, Resolved { look_up, addresses }: Resolved, cx: &mut Context) {
        // The route may lead elsewhere meanwhile.
        if (&*look_up.host, look_up.port) != self.route.peer() {
            return;
        }
        match addresses {
            Ok(list) => self.addresses.found(list, cx.now),
            Err(why) => {
                let is_news = self.addresses.not_found(&why, cx.now);
                if is_news && self.addresses.len() > 0 {
                    let (target, name) = named(self.user, cx);
                    log::warn!(
                        target: target,
                        "name look-up failed source={name} addresses=kept error={}",
                        quoted(why)
                    );
                }
            }
        }
        self.close_idle(cx);
        for it in self.all.iter_mut().filter(|it| it.state == ConnectState::Resolving) {
            it.due = Some(cx.now.mono);
        }
    }

    /// Bytes to send on a connection that is being opened, and whether bytes from it are welcome. Bytes of
    /// the TLS handshake are the driver's. `None`: it is open, and its user knows.
    pub fn interest(&self, conn: usize, key: Key) -> Option<(&Output, bool)> {
        let it = &self.all[conn];
        match it.state {
            ConnectState::Tunnelling => Some((&it.tunnel.request, true)),
            ConnectState::Open | ConnectState::Idle if it.key == Some(key) => None,
            _ => Some((&EMPTY, false)),
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
        match (event, it.state) {
            _ if it.key != Some(key) => Ok(None),
            (Event::Eof, _) => self.lost(conn, Some(Broken::Closed), cx),
            (Event::Failed(why), _) => self.lost(conn, Some(why.clone()), cx),
            (Event::Received(_), ConnectState::Idle) => {
                // Nothing was requested: these bytes could not be told from the next response.
                self.lost(conn, Some(Broken::Text("unexpected data".into())), cx)
            }
            (event, ConnectState::Open | ConnectState::Idle) => Ok(Some(event)),
            (Event::Connected | Event::Secured, _) => self.advance(conn, key, cx),
            (Event::Sent(count), _) => {
                it.tunnel.request.advance(count);
                Ok(None)
            }
            (Event::Received(bytes), _) => {
                let most = cx.config.limits.upstream_head_bytes;
                match it.tunnel.receive(bytes, &self.route, most) {
                    Ok(true) => self.advance(conn, key, cx),
                    Ok(false) => Ok(None),
                    Err(why) => self.lost(conn, Some(Broken::Text(why.into())), cx),
                }
            }
        }
    }

    /// What a state waits for is done.
    fn advance<'a>(&mut self, conn: usize, key: Key, cx: &mut Context) -> Told<'a> {
        let next = self.all[conn].advance(&self.route, cx.now);
        if next == ConnectState::Securing {
            cx.actions.push_back(Action::Secure(key, self.route.host.clone()));
        }
        Ok((next == ConnectState::Open).then_some(Event::Connected))
    }

    /// A connection has ended, by itself or (without `why`) because the time of its state has ended. If it
    /// was being opened, the next address is tried.
    fn lost<'a>(&mut self, conn: usize, why: Option<Broken>, cx: &mut Context) -> Told<'a> {
        let (state, what) = (self.all[conn].state, self.all[conn].obstacle(&self.route));
        let ended = Ended { was_open: state == ConnectState::Open, what, why };
        if let Some(why) = &ended.why {
            let ((target, name), reason) = (named(self.user, cx), quoted(why));
            log::debug!(target: target, "connection ended source={name} reason={reason}");
        }
        self.close(conn, cx);
        if !ended.was_open && state != ConnectState::Idle {
            self.failed(conn, cx.now.mono, cx);
        }
        match state {
            ConnectState::Idle => Ok(None),
            ConnectState::Open => Err(ended),
            _ if self.try_next(conn, cx.now) => Ok(None),
            _ => Err(ended),
        }
    }

    /// Gives up a state whose time has ended.
    pub fn handle_timeout<'a>(&mut self, conn: usize, cx: &mut Context) -> Told<'a> {
        let it = &self.all[conn];
        if cx.is_behind || it.due.is_none_or(|due| due > cx.now.mono) {
            return Ok(None);
        }
        let is_resolving = it.state == ConnectState::Resolving;
        if is_resolving && self.try_next(conn, cx.now) {
            return Ok(None);
        }
        let trouble = self.addresses.trouble().filter(|_| is_resolving);
        self.lost(conn, trouble.map(Broken::Text), cx)
    }

    /// A request on a connection was answered well.
    pub fn worked(&mut self, conn: usize, cx: &mut Context) {
        self.addresses.worked(self.all[conn].address, cx.now);
        self.close_idle(cx);
    }

    /// An attempt or a request on a connection, which began at `begun`, has failed. The address is at fault,
    /// unless it has answered something else well since.
    pub fn failed(&mut self, conn: usize, begun: Mono, cx: &mut Context) {
        if self.addresses.failed(self.all[conn].address, begun, cx.now) {
            self.close_idle(cx);
            self.look_up(cx);
        }
    }

    /// The user has nothing to send on an open connection for now.
    pub fn rest(&mut self, conn: usize, now: Now) {
        self.all[conn].enter(ConnectState::Idle, now);
    }

    /// Closes idle connections to an address that has failed or has left the list.
    fn close_idle(&mut self, cx: &mut Context) {
        for it in &mut self.all {
            if it.state == ConnectState::Idle && !self.addresses.is_good(it.address) {
                cx.actions.extend(it.close().map(Action::Close));
            }
        }
    }

    /// Closes a connection.
    pub fn close(&mut self, conn: usize, cx: &mut Context) {
        cx.actions.extend(self.all[conn].close().map(Action::Close));
    }

    /// Closes every connection.
    pub fn close_all(&mut self, cx: &mut Context) {
        (0..self.all.len()).for_each(|conn| self.close(conn, cx));
    }

    /// This process was paused for this long: moves all deadlines by as much.
    pub fn postpone(&mut self, by: Duration) {
        for it in &mut self.all {
            it.deadline = it.deadline + by;
            it.due = it.due.map(|due| due + by);
        }
    }
}

/// The target of a user's log lines, and its name in them.
fn named(user: SourceId, cx: &Context) -> (&'static str, &str) {
    match cx.stats.sources.get(user.index()) {
        Some(source) => (SOURCE, &source.id),
        None => (CLUSTER, "engine"),
    }
}
