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
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

/// Look-ups that may wait for the thread. Each source has at most one under way, and so has the engine of
/// a cluster. One that does not fit fails, and is tried again.
const LOOK_UPS: usize = 64;

/// Addresses that are used of one result: more than any exchange has.
const ADDRESSES: usize = 16;

/// The result of a look-up: addresses in the system's order, or an error text.
type Resolved = Result<Vec<SocketAddr>, String>;

/// The results, and the sources that they are for.
type Results = Receiver<(SourceId, Resolved)>;

/// A name and a port to look up, for a source.
type LookUp = (SourceId, String, u16);

/// The loop's end of the queues to and from the thread.
#[derive(Debug)]
pub struct Resolver {
    waker: Arc<Waker>,
    /// Once the thread has started.
    queues: Option<(SyncSender<LookUp>, Results)>,
}

impl Resolver {
    /// A resolver. The thread starts later.
    pub fn new(waker: Arc<Waker>) -> Resolver {
        Resolver { waker, queues: None }
    }

    /// Starts to look up the addresses of a host. The error says why that is not possible.
    pub fn look_up(&mut self, source: SourceId, host: &str, port: u16) -> Result<(), String> {
        if self.queues.is_none() {
            self.start()?;
        }
        let (look_ups, _) = self.queues.as_ref().expect("started just above");
        look_ups.try_send((source, host.to_string(), port)).map_err(|error| match error {
            TrySendError::Full(_) => "the resolver is busy".to_string(),
            TrySendError::Disconnected(_) => "the resolver's thread has ended".to_string(),
        })
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<(SourceId, Resolved)> {
        self.queues.as_ref()?.1.try_recv().ok()
    }

    fn start(&mut self) -> Result<(), String> {
        let (look_ups, inbox) = sync_channel::<LookUp>(LOOK_UPS);
        let (outbox, results) = channel();
        let waker = Arc::clone(&self.waker);
        let body = move || {
            for (source, host, port) in inbox {
                let resolved = resolve(&host, port);
                if outbox.send((source, resolved)).is_err() || waker.wake().is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("resolver".to_string())
            .stack_size(256 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start the resolver's thread: {error}"))?;
        self.queues = Some((look_ups, results));
        Ok(())
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
