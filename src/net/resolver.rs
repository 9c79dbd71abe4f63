//! Looks up host names on threads of their own, because the system's resolver blocks.
//!
//! [`Resolver`] owns the waiting look-ups, and the count of the running ones. Each look-up runs on its own
//! thread, which ends with it. The threads share no state with the loop: a queue carries the results, and the
//! waker wakes the loop after each.
//!
//! A name that no name server answers blocks its own thread for some ten seconds. Names that have worked go
//! first, and some threads are reserved for them. So names that have never worked do not delay them. Results
//! are never cached.

use crate::core::{LookUp, Resolved};
use mio::Waker;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// At most this many look-ups run at a time. Few configurations have more sources. A waiting thread takes
/// less than 100 KiB.
const MOST_RUNNING: usize = 16;

/// How many of the running look-ups are reserved for names that have worked before.
const RESERVED: usize = 4;

/// A function that looks up the addresses of a name and a port. It blocks.
pub type Ask = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Looks up the addresses with the system's resolver.
pub fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// The look-ups of host names.
#[derive(Debug)]
pub struct Resolver {
    waker: Arc<Waker>,
    ask: Ask,
    /// At most one of each source, and one of the engine: a later one replaces an earlier one.
    waiting: VecDeque<LookUp>,
    running: usize,
    outbox: Sender<Resolved>,
    results: Receiver<Resolved>,
}

impl Resolver {
    /// A resolver that has not started a thread yet.
    pub fn new(waker: Arc<Waker>, ask: Ask) -> Resolver {
        let (outbox, results) = channel();
        Resolver { waker, ask, waiting: VecDeque::new(), running: 0, outbox, results }
    }

    /// Looks up the addresses of a host, as soon as there is a thread for it.
    pub fn look_up(&mut self, look_up: LookUp) {
        self.waiting.retain(|it| it.source != look_up.source);
        self.waiting.push_back(look_up);
        self.start_due();
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<Resolved> {
        let result = self.results.try_recv().ok()?;
        self.running -= 1;
        self.start_due();
        Some(result)
    }

    /// Starts waiting look-ups while there are threads for them.
    fn start_due(&mut self) {
        while self.running < MOST_RUNNING {
            let has_free = self.running < MOST_RUNNING - RESERVED;
            let next = self.waiting.iter().position(|it| it.has_worked);
            let next = next.or(Some(0).filter(|_| has_free));
            let Some(look_up) = next.and_then(|at| self.waiting.remove(at)) else {
                return;
            };
            self.running += 1;
            self.start(look_up);
        }
    }

    fn start(&self, look_up: LookUp) {
        let (ask, outbox, waker) = (self.ask, self.outbox.clone(), Arc::clone(&self.waker));
        let failed = look_up.clone();
        let body = move || {
            let addresses = resolve(ask, &look_up.host, look_up.port);
            // An error means that the loop has ended.
            let _ = outbox.send(Resolved { look_up, addresses });
            let _ = waker.wake();
        };
        let thread = thread::Builder::new().name("resolver".to_string()).stack_size(256 * 1024);
        if let Err(error) = thread.spawn(body) {
            let why = format!("cannot start a thread of the resolver: {error}");
            let result = Resolved { look_up: failed, addresses: Err(why) };
            self.outbox.send(result).expect("this struct holds the other end");
            // An error means that the loop has ended.
            let _ = self.waker.wake();
        }
    }
}

fn resolve(ask: Ask, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    match ask(host, port) {
        Ok(addresses) if addresses.is_empty() => Err("the name has no address".to_string()),
        found => found.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::SourceId;
    use mio::{Events, Poll, Token};
    use std::sync::{Condvar, Mutex};
    use std::time::{Duration, Instant};

    type Found = Result<Vec<SocketAddr>, String>;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(20);

    /// True once the dead names get their answer.
    static ARE_ANSWERED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    /// A name server that does not answer for names that begin with `dead`.
    fn ask(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if host.starts_with("dead") {
            let (lock, condition) = &ARE_ANSWERED;
            let guard = lock.lock().expect("nobody panics with it");
            let waited = condition.wait_timeout_while(guard, LONG, |answered| !*answered);
            drop(waited.expect("nobody panics with it"));
            return Err(io::Error::other("no answer"));
        }
        Ok(vec![SocketAddr::from(([10, 0, 0, 0], port))])
    }

    /// A resolver, and what its waker wakes.
    fn resolver() -> (Resolver, Poll) {
        let poll = Poll::new().expect("a poller");
        let waker = Waker::new(poll.registry(), Token(0)).expect("a waker");
        (Resolver::new(Arc::new(waker), ask), poll)
    }

    fn look_up(at: u16, host: &str, has_worked: bool) -> LookUp {
        LookUp { source: SourceId(at), host: host.to_string(), port: 80, has_worked }
    }

    /// The next results, up to the result of this look-up.
    fn results(resolver: &mut Resolver, poll: &mut Poll, last: u16) -> Vec<(u16, Found)> {
        let mut all: Vec<(u16, Found)> = Vec::new();
        let (mut events, begin) = (Events::with_capacity(1), Instant::now());
        while !all.iter().any(|(id, _)| *id == last) {
            assert!(begin.elapsed() < LONG, "{} results", all.len());
            poll.poll(&mut events, Some(Duration::from_millis(100))).expect("it waits");
            all.extend(
                std::iter::from_fn(|| resolver.result())
                    .map(|it| (it.look_up.source.0, it.addresses)),
            );
        }
        all
    }

    #[test]
    fn names_without_an_answer_hold_up_nobody_who_has_had_one() {
        let (mut resolver, mut poll) = resolver();
        for at in 0..20 {
            resolver.look_up(look_up(at, &format!("dead{at}"), false));
        }
        assert_eq!(resolver.running, MOST_RUNNING - RESERVED);
        // No dead name is answered meanwhile.
        for at in 20..40 {
            resolver.look_up(look_up(at, "alive", true));
            let found = results(&mut resolver, &mut poll, at);
            assert_eq!(found, [(at, Ok(vec![SocketAddr::from(([10, 0, 0, 0], 80))]))]);
        }
        // A name that has never worked waits for a thread, and for the names before it.
        resolver.look_up(look_up(40, "alive", false));
        assert_eq!((resolver.running, resolver.waiting.len()), (MOST_RUNNING - RESERVED, 9));
        *ARE_ANSWERED.0.lock().expect("nobody panics with it") = true;
        ARE_ANSWERED.1.notify_all();
        let found = results(&mut resolver, &mut poll, 40);
        let why = || Err("no answer".to_string());
        assert!(found.iter().all(|(at, it)| *at == 40 && it.is_ok() || *it == why()));
    }

    #[test]
    fn some_dead_names_do_not_delay_one_that_is_new() {
        let (mut resolver, mut poll) = resolver();
        for at in 0..4 {
            resolver.look_up(look_up(at, "dead", false));
        }
        resolver.look_up(look_up(4, "new", false));
        let found = results(&mut resolver, &mut poll, 4);
        let found = found.iter().find(|(at, _)| *at == 4).expect("it is among them");
        assert_eq!(found.1.as_ref().map(Vec::len), Ok(1));
    }
}
