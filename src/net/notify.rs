//! Tells the service manager the state of marketd (sd_notify(3)).
//!
//! Owns the address that `NOTIFY_SOCKET` names, and the time of the next message. Messages are sent from the
//! loop: if the loop hangs, the watchdog gets none. A message that the manager cannot take at once is lost.
//! Without `NOTIFY_SOCKET` nothing is sent.

use crate::log_targets::{NET, quoted};
use crate::time::{Clock, Mono};
use socket2::{Domain, SockAddr, Socket, Type};
use std::env;
use std::io;
use std::time::Duration;

/// The least time between two status texts, so that a state that comes and goes causes few
/// messages.
const STATUS_EVERY: Duration = Duration::from_secs(2);

/// The shortest time between two messages to the watchdog, whatever the manager wants.
const WATCHDOG_LEAST: Duration = Duration::from_millis(1);

/// The connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    manager: Option<(Socket, SockAddr)>,
    /// The interval of the messages to the watchdog: half of the manager's limit.
    watchdog: Option<Duration>,
    watchdog_due: Mono,
    status: String,
    status_due: Mono,
    /// True once the shutdown has begun. After that no `READY=1` is sent, because the manager would think
    /// that the service runs.
    is_stopping: bool,
}

impl Notifier {
    /// A notifier for the manager that the environment names.
    pub fn from_env() -> Notifier {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let Some(name) = text("NOTIFY_SOCKET") else {
            return Notifier::default();
        };
        let manager = open(&name).inspect_err(|error| {
            let path = quoted(&name);
            log::warn!(target: NET, "service manager not told path={path} error={}", quoted(error));
        });
        let own = std::process::id();
        let is_mine = text("WATCHDOG_PID").is_none_or(|pid| pid.parse() == Ok(own));
        let limit = text("WATCHDOG_USEC").and_then(|text| text.parse::<u64>().ok());
        Notifier {
            manager: manager.ok(),
            watchdog: limit
                .filter(|limit| is_mine && *limit > 0)
                .map(|limit| Duration::from_micros(limit / 2).max(WATCHDOG_LEAST)),
            ..Notifier::default()
        }
    }

    /// Tells that the service listens, or has finished a reload.
    pub fn ready(&self) {
        if !self.is_stopping {
            self.send("READY=1");
        }
    }

    /// Tells that a reload has begun.
    pub fn reloading(&self) {
        if !self.is_stopping {
            let time = Clock::system_us();
            self.send(&format!("RELOADING=1\nMONOTONIC_USEC={time}"));
        }
    }

    /// Tells that the shutdown has begun.
    pub fn stopping(&mut self) {
        self.is_stopping = true;
        self.send("STOPPING=1\nSTATUS=Stopping");
    }

    /// When [`Notifier::turn`] must be called at the latest.
    pub fn due(&self) -> Mono {
        let is_watched = self.manager.is_some() && self.watchdog.is_some();
        if is_watched { self.watchdog_due } else { Mono::NEVER }
    }

    /// Notes a turn of the loop, and sends what is due. `status` describes the service for people.
    #[inline(always)]
    pub fn turn(&mut self, now: Mono, status: impl Fn() -> String) {
        if self.manager.is_some() {
            self.tell(now, status);
        }
    }

    #[inline(never)]
    fn tell(&mut self, now: Mono, status: impl Fn() -> String) {
        if let Some(every) = self.watchdog
            && now >= self.watchdog_due
        {
            self.watchdog_due = now + every;
            self.send("WATCHDOG=1");
        }
        if now >= self.status_due {
            self.status_due = now + STATUS_EVERY;
            let status = status();
            if status != self.status {
                self.send(&format!("STATUS={status}"));
                self.status = status;
            }
        }
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.manager {
            // A failure is not logged: a manager that is gone or busy would cause a line for each
            // message.
            let _ = socket.send_to(message.as_bytes(), address);
        }
    }
}

/// A socket, and the address for a name, which is a path or `@` and an abstract name.
fn open(name: &str) -> io::Result<(Socket, SockAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SockAddr::unix(format!("\0{name}"))?,
        None => SockAddr::unix(name)?,
    };
    let socket = Socket::new(Domain::UNIX, Type::DGRAM.nonblocking(), None)?;
    Ok((socket, address))
}
