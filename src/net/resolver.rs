//! Looks up host names on a thread of its own, because the system's resolver blocks.
//!
//! Owns the thread, which starts with the first look-up. It shares no state with the loop: two queues
//! carry look-ups and results, and the waker wakes the loop after each result.
//!
//! It never caches a result.

use crate::market::SourceId;
use mio::Waker;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

/// Look-ups that may wait for the thread. Each source has at most one under way, so this limit is not
/// reached.
const LOOK_UPS: usize = 64;

/// Addresses that are used of one result: more than any exchange has.
const ADDRESSES: usize = 16;

/// The result of a look-up: addresses in the system's order, or an error text.
type Resolved = Result<Vec<SocketAddr>, String>;

/// A name to look up, for a source.
struct LookUp {
    source: SourceId,
    host: String,
    port: u16,
}

/// The loop's end of the queues to and from the thread.
#[derive(Debug)]
pub struct Resolver {
    waker: Arc<Waker>,
    look_ups: Option<SyncSender<LookUp>>,
    results: Receiver<(SourceId, Resolved)>,
    result_sender: Sender<(SourceId, Resolved)>,
}

impl Resolver {
    /// A resolver. The thread starts later.
    pub fn new(waker: Arc<Waker>) -> Resolver {
        let (result_sender, results) = channel();
        Resolver { waker, look_ups: None, results, result_sender }
    }

    /// Starts to look up the addresses of a host. The error says why that is not possible.
    pub fn look_up(&mut self, source: SourceId, host: &str, port: u16) -> Result<(), String> {
        if self.look_ups.is_none() {
            self.look_ups = Some(self.start()?);
        }
        let look_ups = self.look_ups.as_ref().expect("started just above");
        let look_up = LookUp { source, host: host.to_string(), port };
        look_ups.try_send(look_up).map_err(|error| match error {
            TrySendError::Full(_) => "the resolver is busy".to_string(),
            TrySendError::Disconnected(_) => "the resolver's thread has ended".to_string(),
        })
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<(SourceId, Resolved)> {
        self.results.try_recv().ok()
    }

    fn start(&self) -> Result<SyncSender<LookUp>, String> {
        let (look_ups, inbox) = sync_channel::<LookUp>(LOOK_UPS);
        let results = self.result_sender.clone();
        let waker = Arc::clone(&self.waker);
        let body = move || {
            for look_up in inbox {
                let resolved = resolve(&look_up.host, look_up.port);
                if results.send((look_up.source, resolved)).is_err() || waker.wake().is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("resolver".to_string())
            .stack_size(256 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start the resolver's thread: {error}"))?;
        Ok(look_ups)
    }
}

fn resolve(host: &str, port: u16) -> Resolved {
    let addresses: Vec<_> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {host}: {error}"))?
        .take(ADDRESSES)
        .collect();
    if addresses.is_empty() {
        return Err(format!("{host} has no address"));
    }
    Ok(addresses)
}
