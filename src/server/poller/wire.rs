//! A source's connections: its addresses, and what happens on its lanes.
//!
//! Owns the list of addresses and which of them is tried first. It never decides what is asked;
//! a request whose connection fails is tried on every address before it counts as failed.

use super::{Desk, Poller};
use crate::config::Url;
use crate::exchange::Meter;
use crate::server::fault::Fault;
use crate::server::{Action, Conn, Event};
use crate::table::{Key, Table};
use crate::time::{Mono, Now};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Addresses of a name are looked up again after this.
const ADDRESS_AGE: Duration = Duration::from_secs(300);

/// Where an exchange can be reached.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    list: Vec<SocketAddr>,
    /// The one to try first: the last that worked.
    first: usize,
    asked: bool,
    /// `None`: they are to be looked up again.
    known_since: Option<Mono>,
}

impl Poller {
    /// Bytes to be sent on a lane's connection.
    pub fn outgoing(&self, lane: usize, key: Key) -> &[u8] {
        let lane = &self.lanes[lane];
        match &lane.asking {
            Some(asking) if lane.conn == Some(key) && lane.connected => asking.outgoing(),
            _ => &[],
        }
    }

    /// The name's addresses have come, or have not.
    pub fn resolved(
        &mut self,
        addresses: Result<Vec<SocketAddr>, String>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) {
        self.addresses.asked = false;
        match addresses {
            Ok(list) => self.addresses.renew(list, now.mono),
            // The last good addresses are kept: most name servers' troubles pass.
            Err(why) if self.addresses.list.is_empty() => {
                for lane in 0..self.lanes.len() {
                    if self.lanes[lane].asking.is_some() && self.lanes[lane].conn.is_none() {
                        self.fail(lane, Fault::Resolve(why.clone()), desk, now);
                    }
                }
            }
            Err(why) => log::warn!("{}: {why}; keeping the known addresses", self.config.id),
        }
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].asking.is_some() && self.lanes[lane].conn.is_none() {
                self.connect(lane, conns, desk, now);
            }
        }
        self.start_due(conns, desk, now);
    }

    /// Takes in what happened to a lane's connection. `true`: a task has ended.
    pub(super) fn handle(
        &mut self,
        lane: usize,
        key: Key,
        event: Event<'_>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        if self.lanes[lane].conn != Some(key) {
            return false;
        }
        let ended = match event {
            Event::Connected => {
                self.lanes[lane].connected = true;
                if let Some(asking) = &self.lanes[lane].asking {
                    self.addresses.first = asking.address;
                }
                return false;
            }
            Event::Sent(count) => {
                if let Some(asking) = &mut self.lanes[lane].asking {
                    asking.advance(count, now);
                }
                return false;
            }
            Event::Received(bytes) => {
                desk.status.bytes_received += bytes.len() as u64;
                let received = self.receive(lane, bytes, desk);
                self.heed_meter(lane, desk, now);
                match received {
                    Ok(None) => return false,
                    Ok(Some(keep_alive)) => {
                        if !keep_alive {
                            self.hang_up(lane, desk);
                        }
                        self.succeed(lane, desk, now);
                        true
                    }
                    Err(fault) => {
                        self.hang_up(lane, desk);
                        self.fail(lane, fault, desk, now);
                        true
                    }
                }
            }
            Event::Eof => self.lost(lane, None, conns, desk, now),
            Event::Failed(kind) => self.lost(lane, Some(kind), conns, desk, now),
        };
        self.start_due(conns, desk, now);
        ended
    }

    /// Believes what the head of an answer tells of the budget.
    fn heed_meter(&mut self, lane: usize, desk: &mut Desk<'_>, now: Now) {
        let asking = self.lanes[lane].asking.as_deref_mut();
        let Some(units) = asking.and_then(|asking| asking.metered.take()) else {
            return;
        };
        match self.dialect.meter() {
            Some(Meter::Used(_)) => self.budget.heed_used(units, now.mono),
            Some(Meter::Left(_)) => self.budget.heed_left(units, now.mono),
            None => {}
        }
        desk.status.budget_left = self.budget.left(now.mono);
    }

    fn receive(
        &mut self,
        lane: usize,
        bytes: &[u8],
        desk: &mut Desk<'_>,
    ) -> Result<Option<bool>, Fault> {
        match &mut self.lanes[lane].asking {
            Some(asking) => {
                asking.receive(bytes, self.id, &desk.market.catalog, &desk.config.limits)
            }
            // Bytes that nobody asked for: the next answer could not be told from them.
            None => Err(Fault::CutShort),
        }
    }

    /// A connection has ended, or never came to be.
    fn lost(
        &mut self,
        lane: usize,
        kind: Option<ErrorKind>,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) -> bool {
        let was_connected = self.lanes[lane].connected;
        self.hang_up(lane, desk);
        let Some(asking) = &mut self.lanes[lane].asking else {
            return false;
        };
        if !was_connected {
            asking.tried += 1;
            if asking.tried < self.addresses.list.len() {
                self.connect(lane, conns, desk, now);
                return false;
            }
            // None of them answers: perhaps the name has moved.
            self.addresses.known_since = None;
            let fault = Fault::Connect(kind.unwrap_or(ErrorKind::ConnectionRefused));
            self.fail(lane, fault, desk, now);
            return true;
        }
        if !asking.fresh && !asking.has_begun() {
            asking.rewind();
            self.connect(lane, conns, desk, now);
            return false;
        }
        match (kind, asking.end()) {
            (None, Ok(())) => self.succeed(lane, desk, now),
            (None, Err(fault)) => {
                let fault = asking.cut(fault);
                self.fail(lane, fault, desk, now);
            }
            (Some(kind), _) => {
                let fault = asking.cut(Fault::Broken(kind));
                self.fail(lane, fault, desk, now);
            }
        }
        true
    }

    /// Opens a lane's connection, or asks for the addresses first.
    pub(super) fn connect(
        &mut self,
        lane: usize,
        conns: &mut Table<Conn>,
        desk: &mut Desk<'_>,
        now: Now,
    ) {
        let addresses = &mut self.addresses;
        if addresses.is_old(&self.url, now.mono) && !addresses.asked {
            addresses.asked = true;
            desk.actions.push_back(Action::Resolve {
                source: self.id,
                host: self.url.host.clone(),
                port: self.url.port,
            });
        }
        let Some(asking) = &mut self.lanes[lane].asking else {
            return;
        };
        // Each request goes through the list by itself, from the one that worked last.
        asking.address = match asking.tried {
            0 => addresses.first,
            _ => asking.address + 1,
        };
        if asking.address >= addresses.list.len() {
            asking.address = 0;
        }
        let Some(address) = addresses.list.get(asking.address).copied() else {
            return;
        };
        let source = self.id;
        let key = conns.insert(Conn::Upstream { source, lane });
        let key = key.expect("the table has a place for every lane");
        self.lanes[lane].conn = Some(key);
        self.lanes[lane].connected = false;
        desk.actions.push_back(Action::Connect(key, address));
    }

    /// A connection that did not come to be in time: another address comes first from now on.
    pub(super) fn pass_over(&mut self, lane: usize) {
        let place = &self.lanes[lane];
        let (Some(asking), Some(_), false) = (&place.asking, place.conn, place.connected) else {
            return;
        };
        if self.addresses.first == asking.address {
            self.addresses.first = (asking.address + 1) % self.addresses.list.len().max(1);
        }
        self.addresses.known_since = None;
    }

    /// Lets a lane's connection go; what is asked on it is untouched.
    pub(super) fn hang_up(&mut self, lane: usize, desk: &mut Desk<'_>) {
        if let Some(key) = self.lanes[lane].conn.take() {
            self.lanes[lane].connected = false;
            desk.actions.push_back(Action::Close(key));
        }
    }
}

impl Addresses {
    /// An address written as such needs no resolver.
    pub(super) fn of(url: &Url) -> Addresses {
        let literal = url.host.parse::<IpAddr>().ok();
        Addresses {
            list: literal
                .map(|ip| SocketAddr::new(ip, url.port))
                .into_iter()
                .collect(),
            ..Addresses::default()
        }
    }

    /// Takes what the resolver has found. The address that worked goes on to come first.
    fn renew(&mut self, list: Vec<SocketAddr>, now: Mono) {
        let worked = self.list.get(self.first);
        let place = list.iter().position(|address| Some(address) == worked);
        self.first = place.unwrap_or(0);
        self.list = list;
        self.known_since = Some(now);
    }

    fn is_old(&self, url: &Url, now: Mono) -> bool {
        let literal = url.host.parse::<IpAddr>().is_ok();
        let fresh = (self.known_since).is_some_and(|since| now.since(since) <= ADDRESS_AGE);
        !literal && (self.list.is_empty() || !fresh)
    }
}
