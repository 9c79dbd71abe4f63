//! The driver: the event loop, with its sockets, its clock, and its ends of the channels to helper
//! threads.
//!
//! One turn of the loop is: sleep until an event or the core's earliest deadline; read the clock; move bytes
//! between clients and core; tell the core that time has passed; carry out its actions; do some of the work
//! that can wait, such as reading from exchanges.
//!
//! The driver knows nothing of HTTP, markets or exchanges. It decides nothing but fairness: clients
//! come before exchanges, each connection moves a bounded number of bytes in a turn, and a turn that
//! has taken `TURN_BUDGET` leaves the rest to the next one. It looks at the clock after each piece of
//! work that may have taken a while (`ClockPace`).
//!
//! Invariant: after each change of the core, its actions are carried out before the driver sleeps.
//! Connections that the core knows are dropped in `Driver::carry_out` and nowhere else.
//!
//! Each file imports only from files below it, and calls only these:
//!
//! ```text
//! turn                         the loop and its turns: new connections, clients, work that can wait; reloads
//! actions                      what the core wants done
//! driver                       the driver's state, and moving bytes
//! script_file, replay_file     the script of the demo exchange; the history file that it plays
//! fetch                        one request after another, without the loop
//! tls                          TLS sessions, which a build without the feature lacks
//! listen, connection           listening sockets, their files and addresses; a socket with its TLS session
//! sockopt                      options of sockets
//! disk_thread, resolver        the disk thread; the threads of look-ups
//! process, service_manager     figures, memory and files of the process; sockets passed to it, and messages
//! ```

mod actions;
mod connection;
mod disk_thread;
mod driver;
mod fetch;
mod listen;
mod process;
#[cfg(feature = "sqlite")]
mod replay_file;
mod resolver;
mod script_file;
mod service_manager;
mod sockopt;
#[cfg(feature = "tls")]
mod tls;
/// Opens no TLS sessions. The configuration refuses every https address in a build without TLS.
#[cfg(not(feature = "tls"))]
mod tls {
    use super::connection::Opener;
    use crate::config::Config;
    use crate::core::Broken;
    use crate::time::Clock;

    pub fn opener(_: &Config, _: Clock) -> Result<Opener, String> {
        Ok(Box::new(|_| Err(Broken::Text("this build cannot speak https".into()))))
    }
}
mod turn;

pub use fetch::{Fetched, Fetcher, connect};

use crate::config::{Config, LoadedConfig, Reread};
use crate::core::LogFigures;
#[cfg(feature = "sqlite")]
use crate::demo::Demo;
use crate::time::{Clock, Mono};
use driver::Driver;
use listen::write_addresses;
use script_file::ScriptFile;

/// Runs marketd until a signal tells it to stop.
///
/// `reread` is called when a signal requests a reload. `taken` is called with each configuration that takes
/// effect: when every address is bound and logged, and after a reload. `log` returns the counts of log lines.
/// The error is one line, for the person who runs marketd.
pub fn run(
    loaded: LoadedConfig,
    reread: Reread,
    taken: fn(&LoadedConfig),
    log: fn() -> LogFigures,
) -> Result<(), String> {
    let address_file = loaded.address_file.clone();
    let mut driver = Driver::new(loaded.config.clone(), reread, taken, log)?;
    // The file is written last: a program that waits for it finds open listeners.
    let written = address_file.map(|path| write_addresses(path, &driver.listeners));
    driver.address_file = written.transpose()?;
    taken(&loaded);
    driver.run()
}

/// Checks the files that the configuration names, as far as this is possible without running. Returns the
/// faults, each with the key that names the file.
pub fn check(config: &Config) -> Vec<(&'static str, String)> {
    let roots = tls::opener(config, Clock::new()).err().map(|fault| ("tls.caFile", fault));
    let data = disk_thread::check(&config.data).err().map(|fault| ("data", fault.to_string()));
    let script = ScriptFile::open(config, Mono(0)).err().map(|fault| ("demo.script", fault));
    #[cfg(feature = "sqlite")]
    let replay = replay_file::play(&mut config.clone(), &mut Demo::new(0)).err();
    #[cfg(not(feature = "sqlite"))]
    let replay = None;
    let replay = replay.map(|fault| ("demo.replay.data", fault));
    roots.into_iter().chain(data).chain(script).chain(replay).collect()
}
