//! Configurations that are read again while clients ask and exchanges answer.
//!
//! What is served stays true, so the same judges judge: settings change that no answer shows, the
//! connections to exchanges are closed and opened elsewhere, market lists are read again, and sources come
//! and go that nobody can reach and that track nothing.

use super::weather::SECOND;
use super::world::{Event, World};
use crate::support::Rng;
use marketd::config::{SourceConfig, Url};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The network of the sources that come and go.
const GUESTS: &str = "10.77.0.";

/// True for the address of a source that comes and goes.
pub fn is_guest(address: SocketAddr) -> bool {
    let guests = |ip: IpAddr| ip.to_string().starts_with(GUESTS);
    guests(address.ip())
}

fn guest(at: usize) -> SourceConfig {
    SourceConfig {
        id: format!("guest-{at}"),
        url: Some(Url {
            https: false,
            host: format!("{GUESTS}{}", at + 1),
            port: 80,
            path: String::new(),
        }),
        quote_assets: vec!["NOBODY".to_string()],
        ..SourceConfig::of("binance")
    }
}

/// Plans some reloads until then. The last one leaves no guest behind.
pub fn plan(world: &mut World, until: u64, rng: &mut Rng) {
    if rng.chance(1, 2) {
        return;
    }
    for _ in 0..1 + rng.below(12) {
        let after = rng.below(until);
        world.after(after, Event::Reload(false));
        // Some come together.
        if rng.chance(1, 3) {
            world.after(after + rng.below(3) * 200, Event::Reload(false));
        }
    }
    world.after(until + SECOND / 10, Event::Reload(true));
}

impl World {
    /// The configuration is read again.
    pub fn reload(&mut self, is_last: bool) {
        if self.stopped_at.is_some() {
            return;
        }
        for source in &mut self.config.sources {
            match self.rng.below(8) {
                // The same markets, in other words: the list is read again.
                0 if source.quote_assets.len() == 1 => source.quote_assets.push("USDT".to_string()),
                0 | 1 => source.quote_assets.truncate(1),
                2 => source.symbols.rotate_left(1),
                3 => {
                    let url = source.url.as_mut().expect("every source has one");
                    url.host = format!("{}x", &url.host[..url.host.len().min(40)]);
                }
                4 => source.timeout = Duration::from_millis(*self.rng.pick(&[1000, 3000, 5000])),
                _ => {}
            }
        }
        self.config.limits.head_fields = *self.rng.pick(&[64, 100]);
        self.config.limits.input_total = *self.rng.pick(&[16 << 20, 32 << 20]);
        let mut config = self.config.clone();
        for at in 0..self.guests.len() {
            self.guests[at] = !is_last && self.rng.chance(1, 2);
            config.sources.extend(self.guests[at].then(|| guest(at)));
        }
        let guests = self.guests;
        self.trace
            .note(self.now, format!("a reload with guests {guests:?}"));
        let now = self.clocks();
        let reloaded = self.core.reconfigure(config, Vec::new(), now);
        self.check(reloaded, &|| "a reload".to_string());
        (self.is_reloaded, self.woken) = (true, true);
    }
}
