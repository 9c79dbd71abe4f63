//! A fake exchange: an HTTP/1.1 server on a loopback port whose answers a test writes, and whose
//! faults a test orders while it runs.
//!
//! One thread accepts, one serves each connection. Every request is kept with its time, so that a
//! test can say how often and when it was asked. While it refuses connections, it still holds its
//! port: nobody else gets it, and the same address is there again after [`FakeExchange::open`].
//!
//! It never sleeps: a slow answer waits on a condition that the end of the exchange breaks.

use super::message::{self, decode_query, parse_head};
use super::reply::{Delivery, End, Fault, Framing, Reply};
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running fake exchange. It ends, with all its connections, when this is dropped.
pub struct FakeExchange {
    addr: SocketAddr,
    inner: Arc<Inner>,
    /// Bound, never listening: keeps the port while connections are refused.
    _holder: Socket,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

/// One request as it came in.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When its head was complete.
    pub at: Instant,
    /// The other end of it.
    pub peer: Option<SocketAddr>,
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Header fields in order, names as sent.
    pub fields: Vec<(String, String)>,
}

struct Inner {
    handler: Box<dyn Fn(&Asked) -> Reply + Send + Sync>,
    orders: Mutex<Vec<Order>>,
    asked: Mutex<Vec<Asked>>,
    links: Mutex<Links>,
    /// The acceptor is to end.
    shut: AtomicBool,
    /// Every accepted connection is reset at once.
    hang_up: AtomicBool,
    accepted: AtomicU64,
    /// Everything is to end; told to whoever pauses.
    ending: Mutex<bool>,
    ended: Condvar,
}

#[derive(Default)]
struct Links {
    open: HashMap<u64, TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

struct Order {
    /// `None`: any path.
    path: Option<String>,
    /// `None`: until healed.
    left: Option<usize>,
    fault: Fault,
}

impl FakeExchange {
    /// An exchange on a free port of the loopback that answers what `handler` says.
    pub fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> FakeExchange {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        FakeExchange::start_on(any, handler).expect("the loopback has a free port")
    }

    /// The same on a given address.
    pub fn start_on(
        addr: SocketAddr,
        handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> io::Result<FakeExchange> {
        let holder = bound(addr)?;
        let addr = holder.local_addr()?.as_socket();
        let exchange = FakeExchange {
            addr: addr.expect("a TCP socket has an IP address"),
            inner: Arc::new(Inner {
                handler: Box::new(handler),
                orders: Mutex::default(),
                asked: Mutex::default(),
                links: Mutex::default(),
                shut: AtomicBool::new(true),
                hang_up: AtomicBool::new(false),
                accepted: AtomicU64::new(0),
                ending: Mutex::new(false),
                ended: Condvar::new(),
            }),
            _holder: holder,
            acceptor: Mutex::new(None),
        };
        exchange.listen()?;
        Ok(exchange)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://IP:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// From now on every request meets this fault, until [`FakeExchange::heal`]. Of several orders
    /// that fit a request the earliest counts, so to change one: heal first.
    pub fn fault(&self, fault: Fault) {
        self.order(None, None, fault);
    }

    /// The same for one path.
    pub fn fault_on(&self, path: &str, fault: Fault) {
        self.order(Some(path), None, fault);
    }

    /// The same for the next `times` requests of one path, or of any.
    pub fn fault_times(&self, times: usize, path: Option<&str>, fault: Fault) {
        self.order(path, Some(times), fault);
    }

    /// No faults any more. What is already stalled or slow stays so.
    pub fn heal(&self) {
        locked(&self.inner.orders).clear();
    }

    /// Refuses connections from now on; when this returns, nobody is accepted any more. Open
    /// connections stay: see [`FakeExchange::cut`].
    pub fn refuse(&self) {
        let acceptor = locked(&self.acceptor).take();
        if let Some(acceptor) = acceptor {
            self.inner.shut.store(true, Ordering::SeqCst);
            // The acceptor sits in `accept`: a connection wakes it. It may just have been woken
            // by another one and be gone, so a failure is as good.
            let _ = TcpStream::connect(self.addr);
            acceptor.join().expect("the acceptor does not panic");
        }
    }

    /// Accepts connections and resets each at once, before it can ask. A quick reset meets the
    /// client while it still connects.
    pub fn hang_up(&self) {
        self.inner.hang_up.store(true, Ordering::SeqCst);
    }

    /// Accepts and serves connections again.
    pub fn open(&self) {
        self.inner.hang_up.store(false, Ordering::SeqCst);
        self.listen().expect("the port was held all the time");
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        for link in locked(&self.inner.links).open.values() {
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    /// Everything that was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.inner.asked).clone()
    }

    /// What was asked of one path.
    pub fn asked_of(&self, path: &str) -> Vec<Asked> {
        let asked = locked(&self.inner.asked);
        asked.iter().filter(|one| one.path() == path).cloned().collect()
    }

    /// How often one path was asked for.
    pub fn count(&self, path: &str) -> usize {
        let asked = locked(&self.inner.asked);
        asked.iter().filter(|one| one.path() == path).count()
    }

    /// Forgets what was asked so far.
    pub fn forget(&self) {
        locked(&self.inner.asked).clear();
    }

    /// Waits until `path` was asked for at least `times` times; panics when that takes longer
    /// than `within`.
    #[track_caller]
    pub fn await_asked(&self, path: &str, times: usize, within: Duration) -> Vec<Asked> {
        let enough = || Some(self.asked_of(path)).filter(|asked| asked.len() >= times);
        match super::poll_until(within, enough) {
            Some(asked) => asked,
            None => panic!(
                "{path} was asked for {} times, not {times}, in {within:?}; all that was asked: {:?}",
                self.count(path),
                self.asked().iter().map(|one| one.target.clone()).collect::<Vec<_>>()
            ),
        }
    }

    /// Connections accepted so far, those that were hung up on included.
    pub fn connections(&self) -> u64 {
        self.inner.accepted.load(Ordering::SeqCst)
    }

    /// Connections open now.
    pub fn connections_open(&self) -> usize {
        locked(&self.inner.links).open.len()
    }

    fn order(&self, path: Option<&str>, left: Option<usize>, fault: Fault) {
        let path = path.map(str::to_string);
        locked(&self.inner.orders).push(Order { path, left, fault });
    }

    fn listen(&self) -> io::Result<()> {
        let mut acceptor = locked(&self.acceptor);
        if acceptor.is_none() {
            let socket = bound(self.addr)?;
            socket.listen(1024)?;
            self.inner.shut.store(false, Ordering::SeqCst);
            let inner = Arc::clone(&self.inner);
            *acceptor = Some(std::thread::spawn(move || accept_all(&inner, &socket.into())));
        }
        Ok(())
    }
}

impl Drop for FakeExchange {
    fn drop(&mut self) {
        self.refuse();
        *locked(&self.inner.ending) = true;
        self.inner.ended.notify_all();
        self.cut();
        let threads = std::mem::take(&mut locked(&self.inner.links).threads);
        for thread in threads {
            // A panic of a handler was printed where it happened.
            let _ = thread.join();
        }
    }
}

/// A socket bound to `addr` that does not listen yet. With the address marked for reuse, several
/// may be bound as long as none of the others listens.
pub fn bound(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// A handler that panicked has said so; its poison would only hide that.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn accept_all(inner: &Arc<Inner>, listener: &TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        if inner.shut.load(Ordering::SeqCst) {
            // Closing would not do: a child that another test is just starting may hold a copy of
            // this socket until it runs its program.
            let _ = SockRef::from(listener).shutdown(Shutdown::Both);
            return;
        }
        let id = inner.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        if inner.hang_up.load(Ordering::SeqCst) {
            reset(&stream);
            continue;
        }
        let (Ok(()), Ok(other)) = (stream.set_nodelay(true), stream.try_clone()) else {
            continue;
        };
        let mut links = locked(&inner.links);
        links.open.insert(id, other);
        links.threads.retain(|thread| !thread.is_finished());
        let inner = Arc::clone(inner);
        let thread = std::thread::spawn(move || {
            let end = inner.serve(&stream);
            locked(&inner.links).open.remove(&id);
            if end == End::Reset {
                reset(&stream);
            }
        });
        links.threads.push(thread);
    }
}

/// Makes the coming close a reset. The last handle of the socket must be closed after this.
fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

impl Inner {
    /// Serves one connection to its end.
    fn serve(&self, mut stream: &TcpStream) -> End {
        let mut inbox = Vec::new();
        while let Some(asked) = read_request(&mut stream, &mut inbox) {
            locked(&self.asked).push(asked.clone());
            let reply = match self.fault_for(&asked) {
                None => (self.handler)(&asked),
                Some(fault) => fault.bend(|| (self.handler)(&asked)),
            };
            match self.deliver(stream, &asked, &reply) {
                Ok(None) => {}
                Ok(Some(End::Stall)) => {
                    // Whatever else it sends is thrown away.
                    let _ = io::copy(&mut stream, &mut io::sink());
                    return End::Close;
                }
                Ok(Some(end)) => return end,
                Err(_) => return End::Close,
            }
        }
        End::Close
    }

    fn fault_for(&self, asked: &Asked) -> Option<Fault> {
        let mut orders = locked(&self.orders);
        let meant = |order: &Order| order.path.as_deref().is_none_or(|path| path == asked.path());
        let at = orders.iter().position(meant)?;
        let fault = orders[at].fault.clone();
        if let Some(left) = &mut orders[at].left {
            *left -= 1;
            if *left == 0 {
                orders.remove(at);
            }
        }
        Some(fault)
    }

    /// Sends a reply; says how the connection ends if it does not go on.
    fn deliver(
        &self,
        mut stream: &TcpStream,
        asked: &Asked,
        reply: &Reply,
    ) -> io::Result<Option<End>> {
        let mut pace = None;
        let mut budget = usize::MAX;
        let mut end = matches!(reply.framing, Framing::UntilClose | Framing::LengthOff(_))
            .then_some(End::Close);
        match &reply.delivery {
            Delivery::AtOnce => {}
            Delivery::Slowly { bytes, pause } => pace = Some((*bytes, *pause)),
            Delivery::Cut { after, then } => (budget, end) = (*after, Some(*then)),
            Delivery::Nothing(end) => return Ok(Some(*end)),
            Delivery::Raw(bytes) => {
                stream.write_all(bytes)?;
                return Ok(Some(End::Close));
            }
        }
        // A connection that breaks does not say so before.
        let announced = message::lists(&asked.fields, "Connection", "close")
            || reply.framing == Framing::UntilClose;
        if announced && end.is_none() {
            end = Some(End::Close);
        }
        let mut wire = Wire { inner: self, stream, pace, budget: usize::MAX };
        wire.send(reply.head(announced).as_bytes())?;
        wire.budget = budget;
        if asked.method != "HEAD" {
            send_body(&mut wire, reply)?;
        }
        Ok(end)
    }

    /// Waits; an error when the exchange ends meanwhile.
    fn pause(&self, span: Duration) -> io::Result<()> {
        let waiting = |ending: &mut bool| !*ending;
        let waited = self.ended.wait_timeout_while(locked(&self.ending), span, waiting);
        match waited.is_ok_and(|(ending, _)| !*ending) {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// The way out of a connection, at its pace and up to its budget.
struct Wire<'a> {
    inner: &'a Inner,
    stream: &'a TcpStream,
    pace: Option<(usize, Duration)>,
    budget: usize,
}

impl Wire<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(self.budget)];
        self.budget -= bytes.len();
        let Some((step, pause)) = self.pace else {
            return self.stream.write_all(bytes);
        };
        for piece in bytes.chunks(step.max(1)) {
            self.stream.write_all(piece)?;
            self.inner.pause(pause)?;
        }
        Ok(())
    }
}

fn send_body(wire: &mut Wire<'_>, reply: &Reply) -> io::Result<()> {
    let Framing::Chunked(sizes) = &reply.framing else {
        for (part, times) in &reply.body.0 {
            for _ in 0..*times {
                wire.send(part)?;
                if wire.budget == 0 {
                    return Ok(());
                }
            }
        }
        return Ok(());
    };
    assert!(sizes.iter().all(|size| *size > 0), "a chunk of size 0 is the end");
    let body = reply.body.to_vec();
    let (mut rest, mut sizes) = (&body[..], sizes.iter().cycle());
    // Small chunks are gathered, so that a packet holds many and begins and ends inside of some.
    let mut out = Vec::new();
    while !rest.is_empty() {
        let size = *sizes.next().expect("a list of chunk sizes is not empty");
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = after;
        if out.len() > 4000 {
            wire.send(&out)?;
            out.clear();
        }
    }
    out.extend_from_slice(b"0\r\n\r\n");
    wire.send(&out)
}

/// The next request; `None` when the client is gone or sends no HTTP. Bodies are read over.
fn read_request(stream: &mut &TcpStream, inbox: &mut Vec<u8>) -> Option<Asked> {
    let (head, used) = loop {
        match parse_head(inbox) {
            Ok(Some(complete)) => break complete,
            Ok(None) => read_more(stream, inbox)?,
            Err(_) => return None,
        }
    };
    let length = message::field(&head.fields, "Content-Length").unwrap_or("0");
    let length: usize = length.parse().ok()?;
    while inbox.len() < used + length {
        read_more(stream, inbox)?;
    }
    inbox.drain(..used + length);
    let mut words = head.first_line.split(' ');
    Some(Asked {
        peer: stream.peer_addr().ok(),
        at: Instant::now(),
        method: words.next()?.to_string(),
        target: words.next()?.to_string(),
        fields: head.fields,
    })
}

fn read_more(stream: &mut &TcpStream, inbox: &mut Vec<u8>) -> Option<()> {
    let mut room = [0; 4096];
    match stream.read(&mut room) {
        Ok(0) | Err(_) => None,
        Ok(n) => {
            inbox.extend_from_slice(&room[..n]);
            Some(())
        }
    }
}

impl Asked {
    /// A request of no client.
    pub fn of(target: &str) -> Asked {
        let (method, target) = ("GET".to_string(), target.to_string());
        Asked { peer: None, at: Instant::now(), method, target, fields: Vec::new() }
    }

    /// The target up to its `?`.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The target after its `?`; empty without one.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// A parameter of the query, decoded; of several, the first.
    pub fn param(&self, name: &str) -> Option<String> {
        let pairs = self.query().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut decoded = pairs.map(|(key, value)| (decode_query(key), decode_query(value)));
        decoded.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A header field; its case does not matter.
    pub fn field(&self, name: &str) -> Option<&str> {
        message::field(&self.fields, name)
    }
}
